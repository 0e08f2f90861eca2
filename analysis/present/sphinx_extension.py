"""The site: draws stored charts, and needs nothing from anywhere else.

Two parts. `VegaRenderer` turns the stored output of a chart or a labelled equation into page content (an entry
point of MyST-NB names it). `setup` hooks into the build: it brings Vega and MathJax along as files, and rewrites
the finished pages so that they work under ``default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'
data:`` and from ``file:``, where a browser loads neither modules nor fetched files.

The key is that of Vega-Lite 5 because JupyterLab 4 draws that one and shows the newer key as text
(https://github.com/executablebooks/MyST-NB/issues/266 is why a renderer is needed at all); the site draws with
Vega-Lite 6, whose specification is a superset of what the book uses.
"""

from __future__ import annotations

import csv
import hashlib
import html
import io
import json
import math
import re
import shutil
from collections.abc import Iterator, Mapping
from importlib.metadata import files, version
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from docutils import nodes

from analysis.present import calculator, display, theme

STATIC = Path(__file__).parent / "static"
VEGA_LITE_VERSION = "6.4"

# ------------------------------------------------------------------------------------------ stored outputs


class VegaRenderer:
    """Render charts and labelled equations of a notebook as page content."""

    mime_priority_overrides: ClassVar[list[tuple[str, str, int]]] = [
        ("*", display.VEGA_LITE, 5),
        ("*", display.DOWNLOAD, 6),
    ]

    @staticmethod
    def handle_mime(renderer: Any, data: Any, inline: bool) -> list[nodes.Element] | None:
        """Return the nodes for one output, or nothing where the usual renderer serves."""
        if inline:
            return None
        if data.mime_type == display.VEGA_LITE and "calculator" in data.content["usermeta"]:
            return _calculator(renderer.renderer, data.content)
        if data.mime_type == display.VEGA_LITE:
            return _figure(renderer.renderer, data.content)
        if data.mime_type == display.DOWNLOAD:
            return [nodes.raw("", download_links(data.content), format="html")]
        if data.mime_type == "text/latex" and display.LABEL in data.output_metadata:
            latex = data.string.strip().strip("$")
            node = nodes.math_block(latex, latex, nowrap=False, number=None, label=data.output_metadata[display.LABEL])
            node.line = data.line
            return [renderer.renderer.add_math_target(node), node]
        return None


def _figure(renderer: Any, spec: Mapping[str, Any]) -> list[nodes.Element]:
    """Build the figure with title, chart and caption; the plotted numbers follow, folded."""
    name, caption_text = spec["usermeta"]["name"], spec["usermeta"].get("caption")
    title, drawing = _split_title(spec)
    heading = f'<p class="chart-title">{html.escape(title)}</p>\n' if title else ""
    figure = nodes.figure(classes=["chart-figure"])
    text = _in_script(drawing)
    figure += nodes.raw(
        "",
        f'{heading}<div class="chart" id="{name}-chart"></div>'
        f'<script type="application/json" data-chart="{name}">{text}</script>'
        "<noscript><p>This chart is drawn by a script; its numbers stand in the table below.</p></noscript>",
        format="html",
    )
    if caption_text:
        caption = nodes.caption()
        figure += caption
        with renderer.current_node_context(caption):
            renderer.nested_render_text(caption_text, 0, inline=True)
    figure["names"].append(name)
    renderer.document.note_explicit_target(figure, figure)
    return [figure, nodes.raw("", numbers(spec), format="html")]


def _in_script(content: Any) -> str:
    """Write JSON for a script element, in which only "<" can end or change what the browser reads."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _calculator(renderer: Any, spec: Mapping[str, Any]) -> list[nodes.Element]:
    """Build the form with its answer and table, then the chart that holds the computation."""
    page, name = json.loads(spec["usermeta"]["calculator"]), spec["usermeta"]["name"]
    figure, _ = _figure(renderer, spec)
    data = f'<script type="application/json" data-calculator="{name}-chart">{_in_script(page)}</script>'
    before, after = calculator.markup(page)
    return [nodes.raw("", before, format="html"), figure, nodes.raw("", after + data, format="html")]


def _split_title(spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Take a chart's title off it, as text on the page it wraps on a phone; and let it fill its column."""
    drawing = {key: value for key, value in spec.items() if key not in ("title", "usermeta")}
    if spec["usermeta"].get("fluid"):
        drawing["width"] = "container"
    title = spec.get("title", "")
    if isinstance(title, Mapping):
        title = title.get("text", "")
    return " ".join(title) if isinstance(title, list) else str(title), drawing


def numbers(spec: Mapping[str, Any]) -> str:
    """Write the plotted numbers of a chart as a folded table for each of its datasets."""
    titles = dict(_field_titles(spec))
    tables = []
    for rows in spec.get("datasets", {}).values():
        frame = pd.DataFrame.from_records(rows)
        shown = [column for column in titles if column in frame.columns] or list(frame.columns)
        heads = [titles.get(column) or display.readable(column) for column in shown]
        cells = [[html.escape(_as_drawn(value)) for value in frame[column]] for column in shown]
        tables.append(display.markup(heads, cells, [pd.api.types.is_numeric_dtype(frame[c]) for c in shown]))
    if not tables:
        return ""
    return (
        '<details class="chart-data"><summary>The numbers in this chart</summary>\n'
        + "\n".join(tables)
        + "\n</details>"
    )


def _field_titles(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Find the fields that a chart shows, with their titles: those of tooltips first, which are short and in order."""
    channels = [
        (name != "tooltip", one["field"], one.get("title") or "")
        for part in display.walk(spec)
        for name, channel in part.get("encoding", {}).items()
        for one in (channel if isinstance(channel, list) else [channel])
        if isinstance(one.get("field"), str)
    ]
    known = set()
    for _, column, title in sorted(channels, key=lambda channel: channel[0]):
        if column not in known:
            known.add(column)
            yield column, title


def _as_drawn(value: Any) -> str:
    """Write a plotted value with all the digits it has."""
    if isinstance(value, float) and math.isfinite(value):
        plain = value == 0 or 1e-4 <= abs(value) < 1e9
        return (
            f"{value:,.{display.DIGITS}g}" if plain and abs(value) < 1e6 else f"{value:,.0f}" if plain else f"{value:g}"
        )
    return display.cell_text(value, 0)


def download_links(offered: Mapping[str, Any]) -> str:
    """Write the links to the files that a page offers; the build puts them beside the page."""
    name, words = offered["name"], html.escape(offered["words"])
    links = " · ".join(f'<a href="{name}.{kind}" download>{name}.{kind}</a>' for kind in ("csv", "json"))
    return f'<p class="downloads">{words[:1].upper()}{words[1:]}: {links}</p>'


def download_files(offered: Mapping[str, Any]) -> dict[str, str]:
    """Write the rows of `analysis.present.display.download` as files: name and text of each."""
    rows = offered["rows"]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow(
            json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | Mapping | bool) else cell
            for cell in row.values()
        )
    return {
        f"{offered['name']}.json": json.dumps(rows, ensure_ascii=False, indent=1) + "\n",
        f"{offered['name']}.csv": table.getvalue(),
    }


def offered_in(notebook: str) -> Iterator[Mapping[str, Any]]:
    """Find what a notebook offers as files, in its stored outputs."""
    if display.DOWNLOAD in notebook:
        for cell in json.loads(notebook)["cells"]:
            for output in cell.get("outputs", ()):
                if display.DOWNLOAD in output.get("data", {}):
                    yield output["data"][display.DOWNLOAD]


# ------------------------------------------------------------------------------------------------ the build


def setup(app: Any) -> dict[str, Any]:
    """Connect to the events of a build."""
    # a page of an earlier build must not outlive a change of what makes pages
    app.add_config_value("page_makers", _digest(), rebuild="env", types=[str])
    app.connect("config-inited", _configure)
    app.connect("builder-inited", _bring_assets)
    app.connect("html-page-context", _choose_assets, priority=900)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _digest() -> str:
    makers = sorted(path for path in Path(__file__).parent.rglob("*") if path.suffix in {".py", ".js", ".css"})
    return hashlib.sha256(b"".join(path.read_bytes() for path in makers)).hexdigest()


def _configure(app: Any, config: Any) -> None:
    config.mathjax_path = "mathjax/tex-mml-chtml.js"
    mathjax = dict(config.mathjax3_config or {})
    # its menu leads to other sites and to files that are not here
    mathjax["options"] = {**mathjax.get("options", {}), "enableMenu": False}
    config.mathjax3_config = mathjax


def _bring_assets(app: Any) -> None:
    """Put Vega, MathJax and our own style where pages find them."""
    if app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    for name in ("book.css", "calculator.css", "formulas.js", "tables.js", "calculator.js"):
        shutil.copyfile(STATIC / name, static / name)
    (static / "charts.js").write_text(_chart_script(Path(app.doctreedir).parent / ".vega"), encoding="utf-8")
    for path in files("sphinx-mathjax-offline") or ():
        inside = path.as_posix().partition("/static/mathjax/")[2]
        if inside == "tex-mml-chtml.js" or inside.startswith("output/chtml/fonts/woff-v2/"):
            target = static / "mathjax" / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path.locate(), target)


def _chart_script(cache: Path) -> str:
    """Bundle Vega with our script; kept in a cache folder, because it takes some seconds to make."""
    import vl_convert

    ours = f"const DARK_TWINS = {json.dumps(theme.dark_twins())};\n" + (STATIC / "charts.js").read_text(
        encoding="utf-8"
    )
    key = hashlib.sha256(f"{version('vl-convert-python')} {VEGA_LITE_VERSION}\n{ours}".encode()).hexdigest()[:16]
    cached = cache / f"{key}.js"
    if not cached.exists():
        bundle = vl_convert.javascript_bundle(ours, vl_version=VEGA_LITE_VERSION)
        cache.mkdir(parents=True, exist_ok=True)
        # in a function of its own: its short names collide with those of other scripts on the page
        cached.write_text(f"(function () {{\n{bundle}\n}})();\n", encoding="utf-8")
    return cached.read_text(encoding="utf-8")


def _choose_assets(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Load on each page what it needs and nothing else."""
    context["default_mode"] = "auto"
    body = context.get("body", "")
    app.add_css_file("book.css")
    if "data-chart=" in body:
        app.add_js_file("charts.js", loading_method="defer")
    if 'class="data-table"' in body:
        app.add_js_file("tables.js", loading_method="defer")
    if "data-calculator=" in body:
        app.add_css_file("calculator.css")
        app.add_js_file("calculator.js", loading_method="defer")
    if 'class="math notranslate' in body:
        app.add_js_file("formulas.js", loading_method="defer")
        if not any("mathjax" in str(script) for script in context["script_files"]):
            app.add_js_file(app.config.mathjax_path, loading_method="defer")
    context["script_files"] = [script for script in context["script_files"] if "thebe" not in str(script).lower()]
    context["css_files"] = [style for style in context["css_files"] if "thebe" not in str(style).lower()]


# -------------------------------------------------------------------------------------------- finished pages

_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<body>.*?)</script>", re.DOTALL)
_HANDLER = re.compile(r'(?P<before><[a-z][^<>]*?)\son(?P<event>[a-z]+)="(?P<body>[^"]*)"')
_ICON = re.compile(r'class="[^"]*\b(?:fas|fa-solid|far|fa-regular|fab|fa-brands)\b[^"]*"')
#: What the theme writes, and what a screen reader can make sense of.
_REPAIRS = {
    '<div id="pst-primary-sidebar" class': '<div id="pst-primary-sidebar" role="navigation" aria-label="Book" class',
    'role="doc-biblioentry"': 'role="listitem"',
    # where no script chooses a theme, there are colours too
    ' data-theme="auto">': ' data-theme="light">',
}
#: What only the page of results needs: the index of all words, and what looks into it.
_SEARCH = re.compile(r'<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>\n?')
_INDEX = re.compile(r'content="0; url=([^"]+)"')


def _finish(app: Any, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    root = Path(app.outdir)
    for page in sorted(app.env.found_docs):
        source = Path(app.env.doc2path(page))
        if source.suffix == ".ipynb":
            for offered in offered_in(source.read_text(encoding="utf-8")):
                for name, text in download_files(offered).items():
                    (root / page).with_name(name).write_text(text, encoding="utf-8")
    _write_index(root / "index.html", app.config.html_title, Path(app.config.html_favicon or "").name)
    icons: set[str] = set()
    for path in sorted(root.rglob("*.html")):
        if "_static" not in path.relative_to(root).parts:
            before = path.read_text(encoding="utf-8")
            after = offline_page(before, root=root, depth=len(path.relative_to(root).parts) - 1)
            if after != before:
                path.write_text(after, encoding="utf-8")
            icons |= used_icons(after)
    library = root / "_static" / "scripts" / "fontawesome.js"
    if library.exists():
        (root / "_static" / "icons.css").write_text(
            icon_styles(icons, library.read_text(encoding="utf-8")), encoding="utf-8"
        )
        # 1.5 MB of script for a dozen pictures
        for path in library.parent.glob("fontawesome.js*"):
            path.unlink()


def offline_page(page: str, *, root: Path, depth: int) -> str:
    """Move the scripts in a page to files under ``_static/inline``, its handlers to listeners, and repair its roles.

    Parameters
    ----------
    page : str
        The HTML.
    root : Path
        Folder of the site.
    depth : int
        How many folders below it the page lies.

    Returns
    -------
    str
        The page, which a second call leaves as it is.
    """
    up = "../" * depth
    folder = root / "_static" / "inline"

    def keep(text: str) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
        return name

    def script(match: re.Match[str]) -> str:
        attributes, body = match["attributes"], match["body"].strip()
        if "fontawesome" in attributes:
            return f'<link rel="stylesheet" href="{up}_static/icons.css" />'
        if " src=" in attributes or "application/json" in attributes:
            return match[0]
        if not body or "thebe" in body.lower() or "thebe" in attributes or body.startswith("kernelName"):
            return ""
        return f'<script src="{up}_static/inline/{keep(body)}.js"></script>'

    listeners: list[str] = []

    def handler(match: re.Match[str]) -> str:
        code = f"(event) => {{ {html.unescape(match['body'])}; }}"
        listeners.append(f'e.addEventListener("{match["event"]}", {code})')
        name = hashlib.sha256(listeners[-1].encode()).hexdigest()[:12]
        listeners[-1] = f"document.querySelectorAll('[data-listen=\"{name}\"]').forEach((e) => {listeners[-1]});"
        return f'{match["before"]} data-listen="{name}"'

    page = _HANDLER.sub(handler, _SCRIPT.sub(script, page))
    if 'id="search-results"' not in page:
        page = _SEARCH.sub("", page)
    for theirs, ours in _REPAIRS.items():
        page = page.replace(theirs, ours)
    if listeners:
        name = keep("\n".join(dict.fromkeys(listeners)))
        page = page.replace("</head>", f'<script defer src="{up}_static/inline/{name}.js"></script>\n</head>', 1)
    return page


def used_icons(page: str) -> set[str]:
    """List the icons that a page shows by their class."""
    return {name for match in _ICON.finditer(page) for name in re.findall(r"\bfa-([a-z0-9-]+)", match[0])}


def icon_styles(names: set[str], library: str) -> str:
    """Write a style sheet with the outlines of some icons, taken from the icon script of the theme.

    The outlines are masks, so that an icon has the colour of the text around it, and data addresses, because a
    browser refuses masks from files beside a page that was itself opened as a file.
    """
    lines = [
        "/* Icons: Font Awesome Free, CC BY 4.0, https://fontawesome.com */",
        ".fas, .far, .fab, .fa-solid, .fa-regular, .fa-brands {",
        "  display: inline-block; width: 1.25em; height: 1em; vertical-align: -0.125em; background: currentColor;",
        "  mask: var(--icon) center / contain no-repeat;",
        "}",
        ".fa-lg { font-size: 1.25em; }",
        # the same as glyphs would bring a font of all icons along
        ".fas::before, .far::before, .fab::before, .fa-solid::before, .fa-regular::before, .fa-brands::before,",
        ".admonition > .admonition-title::after, .onthispage::after { content: none !important; }",
        ".admonition > .admonition-title { padding-left: 0.75rem !important; }",
        "@media print { .fas, .fa-solid { print-color-adjust: exact; } }",
    ]
    for name in sorted(names):
        quoted = re.escape(name)
        outline_of = r':\[(\d+),(\d+),\[[^\]]*\],"[0-9a-f]+","([^"]+)"\]'
        found = re.search(rf'[{{,]"?{quoted}"?{outline_of}', library) or re.search(
            rf'[{{,]"?[a-z0-9-]+"?:\[(\d+),(\d+),\[[^\]]*"{quoted}"[^\]]*\],"[0-9a-f]+","([^"]+)"\]', library
        )
        if found:
            width, height, outline = found.groups()
            lines.append(
                f".fa-{name} {{ --icon: url(\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' "
                f"viewBox='0 0 {width} {height}'%3E%3Cpath d='{outline}'/%3E%3C/svg%3E\"); }}"
            )
    return "\n".join(lines) + "\n"


def _write_index(path: Path, title: str, icon: str) -> None:
    """Give the redirect to the title page a language, a title, an icon and a link."""
    found = _INDEX.search(path.read_text(encoding="utf-8")) if path.exists() else None
    if found:
        path.write_text(
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8" />\n'
            f"<title>{html.escape(title)}</title>\n"
            f'<link rel="icon" href="_static/{icon}" />\n'
            f'<meta http-equiv="refresh" content="0; url={found[1]}" />\n</head>\n'
            f'<body><main><h1><a href="{found[1]}">{html.escape(title)}</a></h1></main></body>\n</html>\n',
            encoding="utf-8",
        )
