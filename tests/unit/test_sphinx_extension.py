"""The finished pages: scripts in files, handlers in listeners, icons without a script."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from analysis.present import charts, display, sphinx_extension

PAGE = """<html><head>
<script>let a = "</b>";</script>
<script src="x.js"></script>
<script defer src="../_static/scripts/fontawesome.js?digest=1"></script>
<script>const THEBE_JS_URL = "https://unpkg.com/thebe"</script>
<script type="text/x-thebe-config">{}</script>
</head><body><button class="a"
  onclick="window.print()" title="b">c</button>
<script type="application/json" data-chart="fig-a">{"a": 1}</script></body></html>"""


def test_inline_scripts_move_to_files(tmp_path: Path) -> None:
    page = sphinx_extension.offline_page(PAGE, root=tmp_path, depth=1)
    files = {path.name: path.read_text() for path in (tmp_path / "_static" / "inline").iterdir()}
    assert 'let a = "</b>";' in files.values()
    assert all(f'src="../_static/inline/{name}"' in page for name in files)
    assert "thebe" not in page.lower()
    assert '<script src="x.js"></script>' in page
    assert '<script type="application/json" data-chart="fig-a">{"a": 1}</script>' in page
    assert '<link rel="stylesheet" href="../_static/icons.css" />' in page


def test_handlers_become_listeners(tmp_path: Path) -> None:
    page = sphinx_extension.offline_page(PAGE, root=tmp_path, depth=0)
    assert "onclick" not in page
    assert 'title="b">c</button>' in page
    listener = next(
        path for path in (tmp_path / "_static" / "inline").iterdir() if "addEventListener" in path.read_text()
    )
    assert "(event) => { window.print(); }" in listener.read_text()
    assert f'<script defer src="_static/inline/{listener.name}"></script>\n</head>' in page


def test_a_second_pass_changes_nothing(tmp_path: Path) -> None:
    page = sphinx_extension.offline_page(PAGE, root=tmp_path, depth=2)
    assert sphinx_extension.offline_page(page, root=tmp_path, depth=2) == page


def test_icons_are_found_by_name_and_by_alias() -> None:
    library = '{"circle-up":[8,9,[],"f1","M0 0"],up:[1,2,[8,"to-top"],"f2","M1 1"],"x":[3,4,["search",5],"f3","M2 2"]}'
    styles = sphinx_extension.icon_styles({"up", "search", "unknown"}, library)
    assert ".fa-up {" in styles
    assert "viewBox='0 0 1 2'%3E%3Cpath d='M1 1'" in styles
    assert "viewBox='0 0 3 4'%3E%3Cpath d='M2 2'" in styles
    assert "unknown" not in styles


def test_icons_are_read_from_classes() -> None:
    page = '<i class="fa-solid fa-moon fa-lg"></i><b class="fas fa-x"></b><p class="other fa-no"></p>'
    assert sphinx_extension.used_icons(page) == {"solid", "moon", "lg", "x"}


def test_plotted_numbers_stand_in_a_folded_table() -> None:
    """A page that drops a Vega-Lite bundle loses the chart, https://github.com/executablebooks/MyST-NB/issues/266.

    Ours are drawn by a renderer of our own, and their numbers stand in the page for whoever has no script.
    """
    costs = pd.DataFrame({"node_tok_per_s": [1100.0], "utilization": [0.123456789], "cost_usd_per_mtok": [8333333.3]})
    apis = pd.DataFrame({"label": ["<b>cheap</b>"], "usd_per_mtok": [0.00001]})
    shown = display.figure(
        charts.cost_of_utilization(costs, apis), name="fig-a", alt="Cost falls as the node gets busier."
    )
    html = sphinx_extension.numbers(shown.data[display.VEGA_LITE])
    assert html.startswith('<details class="chart-data"><summary>')
    for text in ("Node (token/s)", "Utilization", "Cost (USD/Mtok)", "1,100", "0.123457", "8,333,330", "1e-05"):
        assert f">{text}</t" in html
    assert "&lt;b&gt;cheap&lt;/b&gt;" in html


def test_chart_fills_its_column_and_its_title_is_text() -> None:
    chart = charts.cost_of_utilization(
        pd.DataFrame({"node_tok_per_s": [1e3], "utilization": [1.0], "cost_usd_per_mtok": [9.0]})
    ).properties(title=["Idle is", "not free"])
    shown = display.figure(chart, name="fig-a", alt="Cost falls as the node gets busier.")
    title, drawing = sphinx_extension._split_title(shown.data[display.VEGA_LITE])
    assert title == "Idle is not free"
    assert drawing["width"] == "container"
    assert "title" not in drawing


def test_offered_rows_become_files_and_links() -> None:
    shown = display.download([{"a": 1, "b": {"x": 2}, "c": True}], name="rows", words="some <rows>")
    notebook = json.dumps({"cells": [{"outputs": [{"data": dict(shown.data)}]}, {}]})
    (offered,) = sphinx_extension.offered_in(notebook)
    assert sphinx_extension.download_files(offered) == {
        "rows.json": '[\n {\n  "a": 1,\n  "b": {\n   "x": 2\n  },\n  "c": true\n }\n]\n',
        "rows.csv": 'a,b,c\n1,"{""x"": 2}",true\n',
    }
    links = sphinx_extension.download_links(offered)
    assert links.startswith('<p class="downloads">Some &lt;rows&gt;: <a href="rows.csv" download>rows.csv</a>')
    assert list(sphinx_extension.offered_in('{"cells": []}')) == []
