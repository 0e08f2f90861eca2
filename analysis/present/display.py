"""What a chapter shows: figures, tables, equations and glued values, the same on every run.

Each function returns (or publishes) a MIME bundle that holds no random id, no full-precision float and no
markup from data, so that strict comparison of stored outputs works and a page can't be written to by a file.
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from sympy import Basic, Eq, Expr

from analysis.inputs import InputError
from analysis.present import theme
from analysis.symbols import to_latex

#: Draws in JupyterLab 4, which shows the key of Vega-Lite 6 as text; the site's renderer takes the same key.
VEGA_LITE = "application/vnd.vegalite.v5+json"
#: Rows that the site offers as files.
DOWNLOAD = "application/vnd.book.download+json"
#: Metadata key by which the site's renderer finds the label of an equation.
LABEL = "equation_label"
GLUE_PREFIX = "application/papermill.record/"

MAX_ROWS = 5_000
DIGITS = 6
ABSENT = "–"
#: Addresses of what has none: the second is how the table of sources says so.
NOWHERE = (None, "none", "")
#: Up to so many characters a word in a table is kept on one line.
SHORT = 16
#: A column with a cell of at least so many characters holds sentences, which a phone must not fold into a thread.
LONG = 60

#: Words of column names that are written in capitals.
ACRONYMS = {"api": "API", "gpu": "GPU", "gpus": "GPUs", "kv": "KV"}
#: Endings of column names that are units, longest first, and how a reader sees them.
UNIT_ENDINGS = {
    "flop_per_byte": "FLOP/byte",
    "usd_per_node_hour": "USD/node-hour",
    "usd_per_request": "USD/request",
    "usd_per_mtok": "USD/Mtok",
    "req_per_s": "requests/s",
    "flop_per_s": "FLOP/s",
    "byte_per_s": "byte/s",
    "tok_per_s": "token/s",
    "usd": "USD",
    "bytes": "byte",
    "byte": "byte",
    "flop": "FLOP",
    "s": "s",
}


@dataclass(frozen=True)
class Shown:
    """A MIME bundle with its metadata, which Jupyter displays as it is."""

    data: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return dict(self.data), dict(self.metadata)


def rounded(value: Any) -> Any:
    """Round every number in a nested structure to six significant digits.

    Full-precision floats differ in the last digits between processors, and six digits are more than a chart shows.

    Examples
    --------
    >>> rounded({"x": [1 / 3, 1234567, True, "1.23456789"]})
    {'x': [0.333333, 1234570, True, '1.23456789']}
    """
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if isinstance(value, int) else short


def figure(chart: Any, *, name: str, alt: str, caption: str | None = None) -> Shown:
    """Show a chart under a stable name, with words for those who can't see it.

    The numbers that it plots follow on the site in a folded table.

    Parameters
    ----------
    chart : altair chart
        Holds its data inline. A title of its own is set as text above the chart on the site, where it wraps.
    name : str
        ``fig-`` and lower-case words, unique in the book; ``{numref}`` finds the figure by it if it has a caption.
    alt : str
        What a person who can't see the chart needs to know: a sentence, not a label.
    caption : str, optional
        MyST text below the chart: the finding with its assumptions.

    Returns
    -------
    Shown
        ``application/vnd.vegalite.v5+json`` and ``text/plain``.

    Raises
    ------
    InputError
        If the name or the alternative text won't do, the chart holds more than 5,000 rows, or it loads its data
        from elsewhere.

    Examples
    --------
    >>> import altair as alt
    >>> chart = alt.Chart(pd.DataFrame({"x": [1, 2], "y": [1 / 3, 4]})).mark_line().encode(x="x", y="y")
    >>> shown = figure(chart, name="fig-demo", alt="A line that rises from a third to four.")
    >>> shown.data["text/plain"]
    '[chart] A line that rises from a third to four.'
    """
    _check_name(name)
    _check_alt(name, alt)
    spec = _spec(chart)
    for part in walk(spec):
        if isinstance(part.get("data"), Mapping) and "url" in part["data"]:
            raise InputError(f"figure {name}", part["data"]["url"], "data held by the chart itself")
    spec = _with_stable_names(rounded(spec))
    rows = sum(len(values) for values in spec.get("datasets", {}).values())
    if rows > MAX_ROWS:
        raise InputError(f"figure {name}", f"{rows:,} rows", f"at most {MAX_ROWS:,}: aggregate or thin them first")
    spec["config"] = theme.config() | {k: v for k, v in spec.get("config", {}).items() if k != "view"}
    spec["description"] = alt
    spec["usermeta"] = {"name": name, "embedOptions": {"actions": False, "renderer": "svg"}}
    if caption is not None:
        spec["usermeta"]["caption"] = caption
    if spec.get("width") == "container":
        if isinstance(spec.get("height"), dict):
            # Vega-Lite can't fit such a chart, and says so on the console of whoever reads the page
            raise InputError(f"height of {name}", "a step for each row", "pixels, for a chart as wide as its column")
        # JupyterLab draws a chart that asks for the width of its cell again and again, and freezes; the site's
        # renderer gives the width back
        spec["usermeta"]["fluid"] = True
        spec["width"] = theme.WIDTH
    return Shown({VEGA_LITE: spec, "text/plain": f"[chart] {alt}"})


def _check_name(name: str) -> None:
    if not re.fullmatch(r"fig(-[a-z0-9]+)+", name):
        raise InputError("name", name, "fig- and lower-case words with hyphens between")


def _check_alt(name: str, alt: str) -> None:
    words = alt.split()
    if len(words) < 5 or len(set(map(str.lower, words))) < 4 or name in alt:
        raise InputError(f"alt of {name}", alt or None, "a sentence that says what the chart shows")


def _spec(chart: Any) -> dict[str, Any]:
    """Turn a chart into plain JSON, with the limit on rows left to us so that there is one message."""
    import altair

    with altair.data_transformers.enable("default", consolidate_datasets=True, max_rows=None):
        spec: dict[str, Any] = json.loads(chart.to_json(validate=True))
    return spec


def walk(part: Any) -> Iterator[Mapping[str, Any]]:
    """Visit every object of a chart's specification, its data left out."""
    if isinstance(part, Mapping):
        yield part
        for key, item in part.items():
            if key != "datasets":
                yield from walk(item)
    elif isinstance(part, list):
        for item in part:
            yield from walk(item)


def _with_stable_names(spec: dict[str, Any]) -> dict[str, Any]:
    """Name datasets by what they hold, views and parameters by their order.

    Altair counts them or hashes them with unrounded numbers in them, depending on its version.
    """
    datasets = {}
    renamed = {}
    for old, rows in spec.pop("datasets", {}).items():
        text = json.dumps(rows, sort_keys=True, ensure_ascii=False)
        renamed[old] = "data-" + hashlib.sha256(text.encode()).hexdigest()[:16]
        datasets[renamed[old]] = rows
    text = json.dumps(spec, sort_keys=True, ensure_ascii=False)
    counted: dict[str, dict[str, str]] = {"view": {}, "param": {}}

    def count(match: re.Match[str]) -> str:
        known = counted[match[1]]
        return known.setdefault(match[0], f"{match[1]}_{len(known) + 1}")

    text = re.sub(r"\b(view|param)_(?:[0-9a-f]{16}(?:_\d+)?|\d+)\b", count, text)
    text = re.sub(r"\bdata-[0-9a-f]{32}\b", lambda match: renamed.get(match[0], match[0]), text)
    stable: dict[str, Any] = json.loads(text)
    if datasets:
        stable["datasets"] = dict(sorted(datasets.items()))
    return stable


def readable(column: str) -> str:
    """Write a column name as a reader sees it: words, and the unit in brackets.

    Examples
    --------
    >>> readable("cost_usd_per_mtok"), readable("node_tok_per_s"), readable("utilization")
    ('Cost (USD/Mtok)', 'Node (token/s)', 'Utilization')
    """
    if column in UNIT_ENDINGS:
        return UNIT_ENDINGS[column]
    for ending, unit in UNIT_ENDINGS.items():
        if column.endswith("_" + ending):
            return f"{_sentence(column.removesuffix('_' + ending))} ({unit})"
    return _sentence(column)


def _sentence(name: str) -> str:
    words = " ".join(ACRONYMS.get(word, word) for word in name.replace("_", " ").split())
    return words[:1].upper() + words[1:]


def table(
    frame: pd.DataFrame,
    *,
    decimals: int | Mapping[str, int] = 2,
    headers: Mapping[str, str] | None = None,
    caption: str | None = None,
    links: Mapping[str, str] | None = None,
    math: Sequence[str] = (),
    anchors: str | None = None,
    filters: Mapping[str, str] | None = None,
    hidden: Sequence[str] = (),
) -> Shown:
    r"""Show a frame as a table: no index, nothing in it can be markup, numbers to the precision that is meant.

    Parameters
    ----------
    frame : DataFrame
        Rows in the order in which they are shown. The index is not shown; a frame with names in its index wants
        ``reset_index()``.
    decimals : int or mapping of column to int
        Digits after the point for columns of floats (2 for columns that a mapping leaves out). Whole numbers
        have none.
    headers : mapping of column to str, optional
        Headers for columns whose name does not read well as it is (see `readable`).
    caption : str, optional
        Plain text above the table.
    links : mapping of column to column, optional
        A column whose cells link to the address in another, which is then not shown itself. Without an address
        (blank or ``none``) a cell is plain text.
    math : sequence of str
        Columns that hold LaTeX.
    anchors : str, optional
        A column whose cells become the anchors of their rows, lower-case words; not shown itself.
    filters : mapping of str to column, optional
        By which columns a reader can choose rows, each under its label; on the site a script makes the controls,
        and without it every row shows.
    hidden : sequence of str
        Columns that are there for ``filters`` only.

    Returns
    -------
    Shown
        ``text/html`` and ``text/plain``.

    Raises
    ------
    InputError
        If the frame has no columns, a column has no name or is asked for and absent, or an address is neither a
        web page nor a page of the book.

    Examples
    --------
    >>> print(table(pd.DataFrame({"node": ["<b>a</b>"], "cost_usd": [1234.5]})).data["text/plain"])
    Node      Cost (USD)
    <b>a</b>    1,234.50
    """
    headers, links, filters = dict(headers or {}), dict(links or {}), dict(filters or {})
    columns = [str(column) for column in frame.columns]
    places = {column: decimals if isinstance(decimals, int) else decimals.get(column, 2) for column in columns}
    asked = {*headers, *links, *links.values(), *math, *(decimals if isinstance(decimals, Mapping) else ())}
    asked |= {*filters.values(), *hidden, *([anchors] if anchors else [])}
    for column in sorted(asked - set(columns)):
        raise InputError("column", column, "one of " + ", ".join(columns))
    if not columns or any(not column.strip() for column in columns):
        raise InputError("columns", ", ".join(columns) or None, "a name for each column")
    aside = {*links.values(), *hidden, anchors}
    shown = [column for column in columns if column not in aside]
    heads = [headers.get(column, readable(column)) for column in shown]
    texts = [[cell_text(value, places[column]) for value in frame[column]] for column in shown]
    right = [_is_number_column(frame[column]) for column in shown]
    cells = [[html.escape(text) for text in column] for column in texts]
    for index, column in enumerate(shown):
        if column in links:
            cells[index] = [
                text if url in NOWHERE else f'<a href="{html.escape(_address(url))}">{text}</a>'
                for url, text in zip(frame[links[column]], cells[index], strict=True)
            ]
        if column in math:
            cells[index] = [rf'<span class="math notranslate nohighlight">\({text}\)</span>' for text in cells[index]]
    plain = _plain([[head, *column] for head, column in zip(heads, texts, strict=True)], right)
    chosen_by = {label: [cell_text(value, 2) for value in frame[column]] for label, column in filters.items()}
    ids = None if anchors is None else [_anchor(value) for value in frame[anchors]]
    page = markup(heads, cells, right, caption=caption, typeset=bool(math), ids=ids, chosen_by=chosen_by)
    return Shown({"text/html": page, "text/plain": plain})


def _anchor(value: Any) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", str(value)):
        raise InputError("anchor", value, "lower-case words with hyphens between")
    return str(value)


def markup(
    heads: Sequence[str],
    cells: Sequence[Sequence[str]],
    right: Sequence[bool],
    *,
    caption: str | None = None,
    typeset: bool = False,
    ids: Sequence[str] | None = None,
    chosen_by: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Write a table as HTML that scrolls by itself on a phone and by keyboard.

    Parameters
    ----------
    heads : sequence of str
        Plain text, one for each column.
    cells : sequence of sequence of str
        For each column its cells, which are HTML: whoever calls has escaped what came from data.
    right : sequence of bool
        Columns that are set to the right.
    caption : str, optional
        Plain text.
    typeset : bool
        Whether LaTeX in the cells is for MathJax. Elsewhere two dollar signs in a row of prices are no formula.
    ids : sequence of str, optional
        An anchor for each row.
    chosen_by : mapping of str to sequence of str, optional
        Plain text: by what rows can be chosen, and the word of each row for it.
    """
    kinds = [_kind(column, is_number) for column, is_number in zip(cells, right, strict=True)]
    head = "".join(f'<th scope="col"{kind}>{html.escape(h)}</th>' for h, kind in zip(heads, kinds, strict=True))
    chosen_by = chosen_by or {}
    body = "\n".join(
        f"<tr{_of_row(number, ids, chosen_by)}>"
        + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for number, row in enumerate(zip(*cells, strict=True))
    )
    if not body:
        body = f'<tr><td colspan="{len(heads)}">none</td></tr>'
    choices = f' data-choices="{html.escape(json.dumps(list(chosen_by), ensure_ascii=False))}"' if chosen_by else ""
    label = html.escape(caption or "Table: " + ", ".join(heads))
    title = f"<caption>{html.escape(caption)}</caption>\n" if caption else ""
    return (
        f'<div class="table-scroll{"" if typeset else " tex2jax_ignore"}" role="group" tabindex="0" '
        f'aria-label="{label}">\n<table class="data-table"{choices}>\n{title}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def _of_row(number: int, ids: Sequence[str] | None, chosen_by: Mapping[str, Sequence[str]]) -> str:
    anchor = f' id="{ids[number]}"' if ids else ""
    return anchor + "".join(
        f' data-choice-{place}="{html.escape(words[number])}"' for place, words in enumerate(chosen_by.values())
    )


def _kind(cells: Sequence[str], is_number: bool) -> str:
    """Tell the page how to set a column: short words do not break at their hyphens, sentences get room."""
    if is_number:
        return ' class="number"'
    if all(len(cell) <= SHORT and " " not in cell for cell in cells):
        return ' class="short"'
    return ' class="long"' if any(len(cell) >= LONG and "<" not in cell for cell in cells) else ""


def cell_text(value: Any, decimals: int) -> str:
    """Write one value for a table: a dash where nothing is known, which is not zero.

    Examples
    --------
    >>> cell_text(1234.567, 1), cell_text(8, 2), cell_text(None, 2), cell_text(True, 2)
    ('1,234.6', '8', '–', 'yes')
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return ABSENT
        # 0.925 is a tie of two decimals: processors differ in its sixteenth digit, and then in the second
        shown = float(f"{value:.14g}")
        text = f"{shown:,.{decimals}f}" if math.isfinite(value) else ("∞" if value > 0 else "-∞")
        return text.replace("-", "−") if text.strip("-0.,") else text.lstrip("-")
    if isinstance(value, pd.Timestamp | date):
        return value.isoformat()[:10]
    if value is None or value is pd.NA or value is pd.NaT or value == "":
        return ABSENT
    return str(value)


def _is_number_column(column: pd.Series) -> bool:
    known = [value for value in column if value is not None and value is not pd.NA]
    return bool(known) and all(
        isinstance(v, int | float | np.integer | np.floating) and not isinstance(v, bool) for v in known
    )


def _address(url: Any) -> str:
    if not re.fullmatch(r"https?://\S+|[\w./-]+\.html(#[\w-]+)?|#[\w-]+", str(url)):
        raise InputError("link", url, "https://... or a page of the book")
    return str(url)


def _plain(columns: list[list[str]], right: list[bool]) -> str:
    padded = []
    for texts, is_right in zip(columns, right, strict=True):
        width = max(map(len, texts))
        padded.append([text.rjust(width) if is_right else text.ljust(width) for text in texts])
    return "\n".join("  ".join(row).rstrip() for row in zip(*padded, strict=True))


def equation(expr: Basic, *, lhs: Expr | str | None = None, label: str | None = None) -> Shown:
    r"""Show an expression in the notation of the book; with a label it gets a number on the site.

    Parameters
    ----------
    expr : sympy expression or equation
        What is shown, printed with the LaTeX of the symbol table.
    lhs : sympy expression or str, optional
        What it equals: put before an equals sign. A string is LaTeX.
    label : str, optional
        ``eq-`` and lower-case words; ``{eq}`` finds the equation by it.

    Returns
    -------
    Shown
        ``text/latex`` and ``text/plain``.

    Raises
    ------
    InputError
        If the label is not of that form.

    Examples
    --------
    >>> from analysis.symbolic.cost import cost_per_token
    >>> from analysis.symbols import COST
    >>> equation(cost_per_token(), lhs=COST).data["text/latex"]
    '$$c = \\frac{p_\\mathrm{node}}{X u}$$'
    """
    if label is not None and not re.fullmatch(r"eq(-[a-z0-9]+)+", label):
        raise InputError("label", label, "eq- and lower-case words with hyphens between")
    latex = to_latex(expr)
    plain = str(expr) if not isinstance(expr, Eq) else f"{expr.lhs} = {expr.rhs}"
    if lhs is not None:
        latex = f"{lhs if isinstance(lhs, str) else to_latex(lhs)} = {latex}"
        plain = f"{lhs} = {plain}"
    return Shown({"text/latex": f"$${latex}$$", "text/plain": plain}, {LABEL: label} if label else {})


def download(rows: Sequence[Mapping[str, Any]], *, name: str, words: str) -> Shown:
    """Offer rows as files: on the site a JSON file and a CSV file, with numbers of six significant digits.

    Parameters
    ----------
    rows : sequence of mapping
        Plain values, all rows with the same keys; in the CSV file a mapping or a list in a cell is JSON.
    name : str
        What the files are called, without ending.
    words : str
        What they hold, for the link.

    Returns
    -------
    Shown
        ``application/vnd.book.download+json`` and ``text/plain``.

    Raises
    ------
    InputError
        If the name is not of lower-case words, there is no row, or two rows have different keys.

    Examples
    --------
    >>> download([{"a": 1 / 3}], name="thirds", words="a third").data["text/plain"]
    '[files] thirds.json, thirds.csv: a third'
    """
    if not rows or any(list(row) != list(rows[0]) for row in rows):
        raise InputError(f"rows of {name}", f"{len(rows)} rows", "at least one, all with the same keys")
    kept = {"name": _anchor(name), "words": words, "rows": rounded([dict(row) for row in rows])}
    return Shown({DOWNLOAD: kept, "text/plain": f"[files] {name}.json, {name}.csv: {words}"})


def outcome(breakeven_utilization: float) -> str:
    """Say in words what a break-even utilization means for the node, so that a sentence follows its number.

    Examples
    --------
    >>> outcome(0.231), outcome(1.8), outcome(0.004), outcome(0)
    ('wins from 23% of the hour', 'loses even when it is full', 'wins from 0.4% of the hour', 'wins at any utilization')
    """
    if breakeven_utilization > 1:
        return "loses even when it is full"
    if breakeven_utilization <= 0:
        return "wins at any utilization"
    return f"wins from {100 * breakeven_utilization:.2g}% of the hour"


def times(value: float, of: float) -> str:
    """Say how many times one price is another; own prices can be 0, and then there is no number.

    Examples
    --------
    >>> times(55.04, 33.0), times(0, 0), times(5, 0)
    ('1.67 times', 'as much as', 'endlessly many times')
    """
    if of == 0:
        return "as much as" if value == 0 else "endlessly many times"
    return f"{value / of:.2f} times"


def glue(name: str, value: float | str) -> None:
    """Keep a computed value under a name, for ``{glue:text}`` in the prose of this page or another.

    Numbers are kept to six significant digits; the prose gives the format, as in
    ``{glue:text}`cost-full:.2f```. Text is kept as it is.

    Raises
    ------
    InputError
        If the name is not of lower-case words with hyphens, or the value is neither text nor a finite number.

    Examples
    --------
    >>> glue("cost full", 1.0)
    Traceback (most recent call last):
    analysis.inputs.InputError: name: got 'cost full', expected lower-case words with hyphens between
    """
    from IPython.display import display

    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise InputError("name", name, "lower-case words with hyphens between")
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(f"glued value {name}", value, "text or a finite number")
    display(
        {GLUE_PREFIX + "text/plain": repr(rounded(value))},
        metadata={"scrapbook": {"mime_prefix": GLUE_PREFIX, "name": name}},
        raw=True,
    )
