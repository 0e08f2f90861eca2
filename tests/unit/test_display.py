"""Figures, tables, equations and glued values: the same on every run, and nothing in them is markup."""

from __future__ import annotations

import json
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest
from sympy import Symbol

from analysis.inputs import InputError
from analysis.present import charts, display, theme
from analysis.symbolic.cost import cost_per_token
from analysis.symbols import COST

ALT = "A line that falls as the node gets busier."


def line(rows: int = 3, **encoding: Any) -> alt.Chart:
    frame = pd.DataFrame({"x": np.arange(rows) + 1, "y": 1 / (np.arange(rows) + 3.0)})
    return alt.Chart(frame).mark_line().encode(x="x:Q", y="y:Q", **encoding)


def spec(chart: Any, **options: Any) -> Any:
    return display.figure(chart, **({"name": "fig-a", "alt": ALT} | options)).data[display.VEGA_LITE]


def test_figure_is_the_same_on_every_run() -> None:
    """Also where a number differs beyond what is drawn; https://github.com/streamlit/streamlit/pull/8628."""

    def chart(noise: float) -> Any:
        left = line().transform_calculate(z=f"datum.y * {noise}")
        zoomed = left.add_params(alt.selection_interval(bind="scales"), alt.selection_point(fields=["x"]))
        return zoomed | line(5).encode(x=alt.datum(1 / 3 * noise)).add_params(alt.selection_interval(empty=False))

    first, again = (json.dumps(spec(chart(1.0))) for _ in range(2))
    assert first == again
    noisy = json.dumps(spec(chart(1 + 1e-12))).replace(str(1 + 1e-12), "1.0")
    assert first == noisy
    for name in ("view_1", "view_2", "param_1", "param_2", "param_3"):
        assert f'"{name}"' in first


def test_references_to_renamed_parameters_still_hold() -> None:
    picked = alt.selection_point(fields=["x"])
    chart = line(opacity=alt.condition(picked, alt.value(1), alt.value(0.2))).add_params(picked)
    drawn = spec(chart)
    assert drawn["params"][0]["name"] == "param_1"
    assert drawn["encoding"]["opacity"]["condition"]["param"] == "param_1"
    assert drawn["data"]["name"] in drawn["datasets"]


def test_dataset_is_named_by_what_it_holds() -> None:
    names = [next(iter(spec(line(rows))["datasets"])) for rows in (3, 3, 4)]
    assert names[0] == names[1] != names[2]


def test_plotted_numbers_are_rounded() -> None:
    """Six significant digits: 1/3 differs between processors in the sixteenth."""
    rows = next(iter(spec(line(1))["datasets"].values()))
    assert rows == [{"x": 1, "y": 0.333333}]
    assert spec(line().encode(y=alt.datum(2 / 3)))["encoding"]["y"]["datum"] == 0.666667


def test_a_tie_of_the_last_decimal_falls_the_same_way_on_every_processor() -> None:
    just_below, just_above = 0.925 * (1 - 1e-15), 0.925 * (1 + 1e-15)
    assert f"{just_below:.2f}" != f"{just_above:.2f}"
    assert display.cell_text(just_below, 2) == display.cell_text(just_above, 2) == display.cell_text(0.925, 2)


@pytest.mark.parametrize("rows", [5_001, 6_000])
def test_too_many_rows_are_refused_whatever_the_limit_of_altair(rows: int) -> None:
    """A grid of 6,000 points wants thinning, not a lifted limit: https://github.com/vega/altair/issues/611."""
    with (
        alt.data_transformers.enable("default", max_rows=None),
        pytest.raises(InputError, match=f"got '{rows:,} rows', expected at most 5,000"),
    ):
        spec(line(rows))


def test_rows_of_all_parts_count_together() -> None:
    assert spec(line(5_000))
    with pytest.raises(InputError, match="8,001 rows"):
        spec(line(4_000) | line(4_001))


def test_chart_that_loads_its_data_is_refused() -> None:
    with pytest.raises(InputError, match="expected data held by the chart itself"):
        spec(alt.Chart("https://example.org/a.csv").mark_line().encode(x="x:Q"))


@pytest.mark.parametrize("alternative", ["", "chart", "A chart of cost.", "fig-a shows cost against utilization here"])
def test_trivial_alternative_text_is_refused(alternative: str) -> None:
    with pytest.raises(InputError, match="alt of fig-a"):
        spec(line(), alt=alternative)


@pytest.mark.parametrize("name", ["roofline", "fig-", "fig-A", "fig a", "fig-a--b"])
def test_name_that_is_no_slug_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="name: got"):
        spec(line(), name=name)


def test_figure_says_what_it_shows_in_words_too() -> None:
    shown, _ = display.figure(line(), name="fig-a", alt=ALT)._repr_mimebundle_()
    assert shown["text/plain"] == f"[chart] {ALT}"
    assert shown[display.VEGA_LITE]["description"] == ALT
    json.dumps(shown, allow_nan=False)


def test_fluid_chart_has_a_fixed_width_in_a_notebook() -> None:
    """JupyterLab 4 freezes on ``container``: the embedded chart resizes the cell that it measures."""
    assert spec(line().properties(width="container"))["width"] == theme.WIDTH
    assert spec(line().properties(width="container"))["usermeta"]["fluid"]
    assert "fluid" not in spec(line().properties(width=200))["usermeta"]


def test_fluid_chart_whose_height_counts_rows_is_refused() -> None:
    with pytest.raises(InputError, match="height of fig-a: got 'a step for each row'"):
        spec(line().properties(width="container", height=alt.Step(20)))


def test_table_escapes_markup_from_data() -> None:
    evil = '<script>alert("1")</script>'
    html = display.table(pd.DataFrame({evil: [evil]}), caption=evil).data["text/html"]
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 4


def test_table_has_neither_index_nor_empty_header() -> None:
    html = display.table(pd.DataFrame({"node": ["a"], "cost_usd_per_mtok": [1.234]}, index=["row"])).data["text/html"]
    assert "row" not in html.replace("role", "").replace("</tr", "")
    assert '<th scope="col" class="short">Node</th><th scope="col" class="number">Cost (USD/Mtok)</th>' in html
    assert '<td class="short">a</td><td class="number">1.23</td>' in html
    with pytest.raises(InputError, match="a name for each column"):
        display.table(pd.DataFrame({"": [1]}))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.0"),
        (-0.04, "0.0"),
        (-1.25, "−1.2"),
        (np.float64(12345.678), "12,345.7"),
        (np.int64(12345), "12,345"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (pd.NA, "–"),
        (pd.Timestamp("2026-07-20"), "2026-07-20"),
        (False, "no"),
        ("", "–"),
    ],
)
def test_values_are_written_for_people(value: Any, shown: str) -> None:
    assert display.cell_text(value, 1) == shown


def test_number_columns_are_set_right_even_with_gaps() -> None:
    html = display.table(pd.DataFrame({"a": [1.0, None], "b": ["x", None]}), decimals={"a": 0}).data["text/html"]
    assert '<td class="number">1</td><td class="short">x</td>' in html
    assert '<td class="number">–</td><td class="short">–</td>' in html


def test_dollar_signs_in_a_table_are_no_formula_unless_asked_for() -> None:
    frame = pd.DataFrame({"a": ["$33 to $55"], "tex": [r"\frac{1}{x}"]})
    assert "tex2jax_ignore" in display.table(frame[["a"]]).data["text/html"]
    assert (
        r'class="math notranslate nohighlight">\(\frac{1}{x}\)<' in display.table(frame, math=["tex"]).data["text/html"]
    )


@pytest.mark.parametrize("none", ["", "none"])
def test_what_has_no_address_is_no_link(none: str) -> None:
    frame = pd.DataFrame({"title": ["A", "B"], "url": ["https://example.org/a", none]})
    html = display.table(frame, links={"title": "url"}).data["text/html"]
    assert html.count("<a ") == 1
    assert ">B</t" in html


def test_links_lead_to_pages_only() -> None:
    frame = pd.DataFrame({"title": ["A & B"], "url": ["https://example.org/?a=1&b=2"]})
    html = display.table(frame, links={"title": "url"}).data["text/html"]
    assert '<td><a href="https://example.org/?a=1&amp;b=2">A &amp; B</a></td>' in html
    assert "Url" not in html
    assert "<td>A &amp; B</td>" in display.table(frame.assign(url="none"), links={"title": "url"}).data["text/html"]
    for bad in ("javascript:alert(1)", "data:text/html,x", "//elsewhere.org", 'x" onclick="y'):
        with pytest.raises(InputError, match="link: got"):
            display.table(frame.assign(url=bad), links={"title": "url"})


@pytest.mark.parametrize(
    "option", [{"decimals": {"z": 1}}, {"headers": {"z": "Z"}}, {"math": ["z"]}, {"links": {"z": "a"}}]
)
def test_column_that_is_asked_for_and_absent_is_told(option: Any) -> None:
    with pytest.raises(InputError, match="column: got 'z', expected one of a"):
        display.table(pd.DataFrame({"a": [1]}), **option)


def test_equation_speaks_the_notation_of_the_book() -> None:
    data, metadata = display.equation(cost_per_token(), lhs=COST, label="eq-cost")._repr_mimebundle_()
    assert data["text/latex"] == r"$$c = \frac{p_\mathrm{node}}{X u}$$"
    assert metadata == {display.LABEL: "eq-cost"}
    with pytest.raises(InputError, match="label: got 'cost'"):
        display.equation(Symbol("x"), label="cost")


def test_glued_numbers_are_rounded_and_text_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[tuple[Any, Any]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, metadata, raw: kept.append((data, metadata)))
    display.glue("a-third", np.float64(1) / 3)
    display.glue("verdict", "holds if")
    display.glue("nodes", np.int64(8))
    assert [next(iter(data.values())) for data, _ in kept] == ["0.333333", "'holds if'", "8"]
    assert kept[0][1]["scrapbook"]["name"] == "a-third"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, [1]])
def test_glued_value_is_text_or_a_finite_number(value: Any) -> None:
    with pytest.raises(InputError, match="glued value a"):
        display.glue("a", value)


COSTS = pd.DataFrame(
    {
        "node_tok_per_s": [1100.0, 1100.0, 5000.0, 5000.0],
        "utilization": [0.1, 1.0, 0.1, 1.0],
        "cost_usd_per_mtok": [83.3, 8.33, 18.3, 1.83],
    }
)
APIS = pd.DataFrame({"label": ["a cheap API"], "usd_per_mtok": [0.6]})


@pytest.mark.parametrize("apis", [None, APIS], ids=["alone", "with rivals"])
def test_cost_chart_holds_the_rows_it_was_given(apis: pd.DataFrame | None) -> None:
    drawn = spec(charts.cost_of_utilization(COSTS, apis))
    assert json.loads(json.dumps(drawn)) == drawn
    held = [pd.DataFrame(rows) for rows in drawn["datasets"].values()]
    for given in (COSTS,) if apis is None else (COSTS, APIS):
        assert any(frame[list(given)].equals(given) for frame in held if set(given) == set(frame))
    assert len(held) == (1 if apis is None else 2)


def test_cost_chart_is_log_log_with_units_and_a_word_for_each_line() -> None:
    drawn = spec(charts.cost_of_utilization(COSTS, APIS))
    encodings = [part["encoding"] for part in display.walk(drawn) if "encoding" in part]
    for axis, title in (("x", "Utilization"), ("y", "Cost (USD/Mtok)")):
        channel = next(encoding[axis] for encoding in encodings if "title" in encoding.get(axis, {}))
        assert channel["title"] == title
        assert channel["scale"]["type"] == "log"
    assert {encoding["text"]["field"] for encoding in encodings if "text" in encoding} == {"name", "label"}


def contrast(ink: str, paper: str) -> float:
    def luminance(colour: str) -> float:
        parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(ink), luminance(paper)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("mark", [*theme.DECODERS.values(), theme.INK, theme.SOFT], ids=lambda mark: mark.colour)
def test_colours_carry_text_on_both_papers(mark: theme.Mark) -> None:
    """WCAG 2 asks 4.5 of text: labels of lines have the colour of the line."""
    assert contrast(mark.colour, theme.PAPER.colour) >= 4.5
    assert contrast(mark.dark, theme.PAPER.dark) >= 4.5


def test_decoders_differ_without_colour() -> None:
    assert len({mark.dash for mark in theme.DECODERS.values()}) == len(theme.DECODERS)
    assert len({mark.shape for mark in theme.DECODERS.values()}) == len(theme.DECODERS)


def test_each_colour_has_one_twin() -> None:
    """The page swaps colours by their value, so two things that look alike by day must do so by night."""
    assert len(theme.dark_twins()) == len({(mark.colour, mark.dark) for mark in theme.MARKS})


def test_sentences_in_a_table_get_room() -> None:
    frame = pd.DataFrame({"why": ["because " * 10], "what": ["a few words here"]})
    html = display.table(frame).data["text/html"]
    assert html.count('class="long"') == 2, "head and cell of one column"
    assert '<td class="long">because' in html


def test_bars_of_an_hour_keep_the_order_of_ways_and_parts() -> None:
    frame = pd.DataFrame(
        [("sunk", "energy", 1.0), ("bought", "capital", 7.0), ("bought", "energy", 1.0)],
        columns=["way", "part", "usd_per_node_hour"],
    )
    chart = charts.hour_of_ownership(frame).to_dict()
    assert chart["layer"][0]["encoding"]["y"]["sort"] == ["sunk", "bought"]
    assert chart["layer"][0]["encoding"]["opacity"]["scale"]["domain"] == list(charts.HOUR_PARTS)


def test_charts_of_requests_and_waits_name_their_fields_and_show_their_rows() -> None:
    costs = pd.DataFrame({"way": ["sunk"], "utilization": [0.5], "usd": [2.0], "low": [1.0], "high": [4.0]})
    drawn = spec(charts.requests_of_utilization(costs, pd.DataFrame({"label": ["API"], "usd": [3.0]})))
    assert [rows[0] for rows in sorted(drawn["datasets"].values(), key=lambda rows: len(rows[0]))] == [
        {"label": "API", "usd": 3},
        {"way": "sunk", "utilization": 0.5, "usd": 2, "low": 1, "high": 4},
    ]
    waits = pd.DataFrame({"model": ["a", "b"], "e2e_s": [2.0, 9.0], "share": [0.5, 1.0]})
    drawn = spec(charts.share_answered(waits, budget_s=1.0))
    assert sorted(len(rows) for rows in drawn["datasets"].values()) == [1, 2]


def test_rows_can_have_anchors_and_be_chosen_by_their_words() -> None:
    frame = pd.DataFrame({"id": ["C1", "C2"], "verdict": ["holds", "<b>"], "at": ["c1", "c2"], "kind": ["a", "b"]})
    shown = display.table(frame, anchors="at", filters={"Verdict": "verdict", "Kind": "kind"}, hidden=["kind"])
    page = shown.data["text/html"]
    assert '<table class="data-table" data-choices="[&quot;Verdict&quot;, &quot;Kind&quot;]">' in page
    assert '<tr id="c1" data-choice-0="holds" data-choice-1="a">' in page
    assert '<tr id="c2" data-choice-0="&lt;b&gt;" data-choice-1="b">' in page
    assert ">a<" not in page
    assert "data-choice" not in display.table(frame).data["text/html"]
    with pytest.raises(InputError, match="anchor: got 'C 1'"):
        display.table(frame.assign(at="C 1"), anchors="at")
    with pytest.raises(InputError, match="column: got 'absent'"):
        display.table(frame, filters={"X": "absent"})


def test_rows_offered_as_files_are_alike_and_rounded() -> None:
    shown = display.download([{"a": 1 / 3, "b": None}, {"a": 2.0, "b": [1]}], name="two-rows", words="two rows")
    assert shown.data[display.DOWNLOAD]["rows"] == [{"a": 0.333333, "b": None}, {"a": 2.0, "b": [1]}]
    with pytest.raises(InputError, match="rows of x: got '0 rows'"):
        display.download([], name="x", words="nothing")
    with pytest.raises(InputError, match="all with the same keys"):
        display.download([{"a": 1}, {"b": 1}], name="x", words="two kinds")
    with pytest.raises(InputError, match=r"anchor: got '\.\./x'"):
        display.download([{"a": 1}], name="../x", words="elsewhere")
