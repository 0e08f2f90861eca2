"""Charts of the answer that cannot wait: each takes a tidy frame and draws it, computing nothing."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.present import theme
from analysis.present.charts import PLAIN_TICKS, label

#: Height of one row. [pixel]
ROW = 25
#: What a cell says that no number of nodes can fill, and its class on the page.
NEVER = "╱╱╱"
#: Shades of boards: how many nodes, the fewest lightest.
COUNTED = {"one node": theme.STEPS[0], "2 to 9": theme.STEPS[1], "10 or more": theme.STEPS[2]}
INFEASIBLE = "infeasible"
#: Shades of a comparison of nodes.
COMPARED = {
    "more": theme.WINNERS["plain"],
    "the same": theme.STEPS[0],
    "fewer": theme.WINNERS["diffusion"],
    "at most a third": theme.STRONG,
    "only diffusion can": theme.WINNERS["speculation"],
}
NEITHER = "neither can"
#: Shades of an error, of a share within a budget.
MISSED = {"within 5 %": theme.STEPS[0], "5 to 10 %": theme.STEPS[1], "more": theme.STEPS[2]}
KEPT = {"under half": theme.STEPS[0], "50 to 95 %": theme.STEPS[1], "95 % and more": theme.STEPS[2]}
#: Hues of the shares whose product is utilization.
SHARES = {
    "day": theme.WORK["other"],
    "whole nodes": theme.WORK["communication"],
    "budget": theme.WORK["computing"],
    "late": theme.WORK["reading"],
}
SHAPES = ("circle", "square", "diamond", "triangle-up")


def _names(rows: pd.DataFrame, *, limit: int = 150, grid: bool = True) -> Any:
    return alt.Y(
        "name:N",
        title=None,
        sort=list(dict.fromkeys(rows["name"])),
        axis=alt.Axis(labelLimit=limit, labelOverlap=False, ticks=False, domain=False, grid=grid),
    )


def counted(nodes: pd.Series) -> pd.DataFrame:
    """Write numbers of nodes for `board`: the number and its class, strokes where there is none.

    Examples
    --------
    >>> counted(pd.Series([1.0, 456.0, float("nan")]))["text"].tolist()
    ['1', '456', '╱╱╱']
    """
    few, many = list(COUNTED)[1:]
    words = nodes.map(lambda n: INFEASIBLE if n != n else "one node" if n == 1 else few if n < 10 else many)
    return pd.DataFrame({"text": nodes.map(lambda n: NEVER if n != n else f"{n:,.0f}"), "class": words})


def short(tokens: pd.Series) -> pd.Series:
    """Write numbers of tokens in the room of a column.

    Examples
    --------
    >>> short(pd.Series([500.0, 1500.0, 32_000.0])).tolist()
    ['500', '1.5k', '32k']
    """
    return tokens.map(lambda t: f"{t:g}" if t < 1000 else f"{t / 1000:g}k")


def compared(pairs: pd.DataFrame) -> pd.DataFrame:
    """Write a comparison of nodes for `board`: budgets down, rates across, nodes to the rival's nodes.

    Parameters
    ----------
    pairs : DataFrame
        Columns ``budget_s`` [s], ``rate`` [request/s], ``nodes``, ``rival_nodes`` (NaN: infeasible) [1], ``class``.

    Examples
    --------
    >>> row = {"budget_s": 1.0, "rate": 10.0, "nodes": 1.0, "rival_nodes": float("nan"), "class": "only diffusion can"}
    >>> compared(pd.DataFrame([row]))["text"].tolist()
    ['1:–']
    """

    def word(nodes: float) -> str:
        return "–" if nodes != nodes else f"{nodes:,.0f}"

    words = [f"{word(a)}:{word(b)}" for a, b in zip(pairs["nodes"], pairs["rival_nodes"], strict=True)]
    return pd.DataFrame(
        {
            "name": pairs["budget_s"].map("{:g} s".format),
            "x": pairs["rate"].map("{:g}".format),
            "text": [NEVER if word == "–:–" else word for word in words],
            "class": pairs["class"],
        }
    )


def missed(errors: pd.DataFrame) -> pd.DataFrame:
    """Write errors for `board`: prompts down with their share, load across, per cent with a sign.

    Parameters
    ----------
    errors : DataFrame
        Columns ``prompt_tokens`` [token], ``prompt_share``, ``load``, ``error`` [1].

    Examples
    --------
    >>> row = {"prompt_tokens": 500.0, "prompt_share": 0.14, "load": 0.6, "error": 0.078}
    >>> missed(pd.DataFrame([row])).to_dict("records")
    [{'name': '500, 14 %', 'x': '0.6', 'text': '+8', 'class': '5 to 10 %'}]
    """
    names = [f"{p:,.0f}, {100 * s:.0f} %" for p, s in zip(errors["prompt_tokens"], errors["prompt_share"], strict=True)]
    small, middle, large = MISSED
    whole = (100 * errors["error"]).round()
    return pd.DataFrame(
        {
            "name": names,
            "x": errors["load"].map("{:g}".format).to_list(),
            "text": [f"{w:+.0f}" if w else "0" for w in whole],
            "class": [small if abs(w) <= 5 else middle if abs(w) <= 10 else large for w in whole],
        }
    )


def kept(shares: pd.DataFrame, *, names: list[str]) -> pd.DataFrame:
    """Write shares within a budget for `board`; who was not replayed has a dash.

    Parameters
    ----------
    shares : DataFrame
        Columns ``name``, ``x``, ``within`` [1].
    names : list of str
        Rows, in order.

    Examples
    --------
    >>> kept(pd.DataFrame({"name": ["a"], "x": ["chat"], "within": [0.978]}), names=["a", "b"])["text"].tolist()
    ['98 %', '–']
    """
    of = shares.set_index(["name", "x"])["within"]
    low, middle, high = KEPT
    rows = []
    for name in names:
        for x in dict.fromkeys(shares["x"]):
            if (name, x) not in of.index:
                rows.append((name, x, "–", "not replayed"))
                continue
            share = float(of[name, x])
            words = f"{100 * share:.0f} %"
            rows.append((name, x, words, low if share < 0.5 else middle if share < 0.95 else high))
    return pd.DataFrame(rows, columns=["name", "x", "text", "class"])


def board(cells: pd.DataFrame, *, x_title: str, classes: dict[str, theme.Mark], never: str = INFEASIBLE) -> Any:
    """Draw a board of words: a row for each name, a column for each input, the class as the shade.

    Parameters
    ----------
    cells : DataFrame
        Columns ``name``, ``x`` (words), ``text``, ``class`` (one of ``classes``, or ``never``), in the order in which
        names and columns are to stand.
    x_title : str
    classes : dict of str to Mark
        Shades, the least first.
    never : str
        The class of cells that cannot be; they stay empty but for strokes.

    Returns
    -------
    altair chart

    Examples
    --------
    >>> frame = pd.DataFrame({"name": ["a"] * 2, "x": ["1", "10"], "text": ["1", "3"], "class": ["one node", "2 to 9"]})
    >>> board(frame, x_title="Rate", classes=COUNTED).to_dict()["layer"][0]["encoding"]["x"]["sort"]
    ['1', '10']
    """
    present = set(cells["class"])
    shades = {name: mark for name, mark in classes.items() if name in present}
    if never in present:
        shades[never] = theme.PAPER
    across = alt.X(
        "x:N",
        title=x_title,
        sort=list(dict.fromkeys(cells["x"])),
        axis=alt.Axis(labelAngle=0, labelOverlap=False, ticks=False, domain=False, grid=False),
    )
    base = alt.Chart(cells).encode(x=across, y=_names(cells, limit=120, grid=False))
    squares = base.mark_rect(stroke=theme.GRID.colour, strokeWidth=1).encode(
        color=alt.Color(
            "class:N",
            title=None,
            scale=alt.Scale(domain=list(shades), range=[mark.colour for mark in shades.values()]),
            legend=alt.Legend(symbolType="square", symbolStrokeColor=theme.SOFT.colour, symbolStrokeWidth=1, columns=2),
        ),
        tooltip=[
            alt.Tooltip("name:N", title="Who"),
            alt.Tooltip("x:N", title=x_title),
            alt.Tooltip("text:N", title="Value"),
            alt.Tooltip("class:N", title="Class"),
        ],
    )
    # strokes in grey, numbers in ink
    inks = alt.condition(alt.datum["class"] == never, alt.value(theme.SOFT.colour), alt.value(theme.INK.colour))
    texts = base.mark_text(fontSize=11).encode(text="text:N", color=inks)
    return alt.layer(squares, texts).properties(width="container", height=ROW * cells["name"].nunique())


def seconds(
    rows: pd.DataFrame, *, x_title: str, marks: dict[str, theme.Mark], budget_s: float, number: bool = False
) -> Any:
    """Draw times on one axis by ratio, a row for each name, with the budget as a rule.

    Parameters
    ----------
    rows : DataFrame
        Columns ``name``, ``seconds`` [s], ``kind`` (a key of ``marks``), ``set`` (four at most, a shape each), in the
        order in which they are to stand.
    x_title : str
    marks : dict of str to Mark
        Hue of each kind.
    budget_s : float
        [s]
    number : bool
        Whether the time is written beside each mark.

    Returns
    -------
    altair chart

    Examples
    --------
    >>> frame = pd.DataFrame({"name": ["a"], "seconds": [2.0], "kind": ["plain"], "set": ["8 bit"]})
    >>> seconds(frame, x_title="s", marks={"plain": theme.AUTOREGRESSIVE}, budget_s=1.0).to_dict()["layer"][0]["mark"]
    {'type': 'rule', 'color': '#1f2328'}
    """
    low, high = float(rows["seconds"].min()), float(rows["seconds"].max())
    x = alt.X(
        "seconds:Q",
        title=x_title,
        scale=alt.Scale(type="log", nice=False, domain=[min(low, budget_s) / 1.3, max(high, budget_s) * 2]),
        axis=alt.Axis(values=PLAIN_TICKS, format="~g"),
    )
    kinds = [kind for kind in marks if kind in set(rows["kind"])]
    sets = list(dict.fromkeys(rows["set"]))
    base = alt.Chart(rows).encode(
        x=x,
        y=_names(rows),
        tooltip=[
            alt.Tooltip("name:N", title="Who"),
            alt.Tooltip("seconds:Q", title="Seconds", format=",.3~g"),
            alt.Tooltip("kind:N", title="Kind"),
            alt.Tooltip("set:N", title="Set"),
        ],
    )
    points = base.mark_point(size=80, opacity=1).encode(
        color=alt.Color(
            "kind:N",
            title=None,
            scale=alt.Scale(domain=kinds, range=[marks[kind].colour for kind in kinds]),
            legend=alt.Legend(symbolType="circle", columns=2) if len(kinds) > 1 else None,
        ),
        shape=alt.Shape(
            "set:N",
            title=None,
            scale=alt.Scale(domain=sets, range=list(SHAPES[: len(sets)])),
            legend=alt.Legend(
                orient="top", symbolFillColor=theme.INK.colour, symbolStrokeColor=theme.INK.colour, columns=2
            ),
        ),
    )
    budget = alt.Chart(pd.DataFrame([{"seconds": budget_s, "word": f"{budget_s:g} s"}])).encode(x=x)
    layers = [
        budget.mark_rule(color=theme.INK.colour),
        label(
            budget.encode(y=alt.value(0), text="word:N"),
            align="left",
            baseline="bottom",
            dx=4,
            dy=-3,
            fontWeight=600,
            color=theme.INK.colour,
        ),
        points,
    ]
    if number:
        layers.append(label(base.encode(text=alt.Text("seconds:Q", format=".3~r")), align="left", dx=9))
    return alt.layer(*layers).properties(width="container", height=ROW * rows["name"].nunique())


def falls(rows: pd.DataFrame) -> Any:
    """Draw shares end to end on an axis by ratio, so that equal factors are equally long.

    Parameters
    ----------
    rows : DataFrame
        Columns ``name``, ``part`` (a key of `SHARES`), ``left``, ``right`` (above 0), ``share``. [1]

    Returns
    -------
    altair chart
        Each row ends in the product.

    Examples
    --------
    >>> frame = pd.DataFrame([{"name": "a", "part": "day", "left": 0.5, "right": 1.0, "share": 0.5}])
    >>> falls(frame).to_dict()["layer"][0]["mark"]["type"]
    'bar'
    """
    least = float(rows["left"].min())
    parts = [part for part in SHARES if part in set(rows["part"])]
    x = alt.X(
        "left:Q",
        title="Share of what the nodes could do",
        # room for the product at the left end
        scale=alt.Scale(type="log", nice=False, domain=[least / 4, 1.0]),
        axis=alt.Axis(values=[tick for tick in PLAIN_TICKS if least / 1.5 <= tick <= 1], format=".0~%"),
    )
    ends = rows.loc[rows.groupby("name", sort=False)["left"].agg("idxmin")]
    base = alt.Chart(rows).encode(y=_names(rows, limit=120))
    bars = base.mark_bar(height={"band": 0.66}, stroke=theme.PAPER.colour, strokeWidth=1).encode(
        x=x,
        x2="right:Q",
        color=alt.Color(
            "part:N",
            title=None,
            scale=alt.Scale(domain=parts, range=[SHARES[part].colour for part in parts]),
            legend=alt.Legend(symbolType="square", symbolStrokeColor=theme.SOFT.colour, columns=2),
        ),
        tooltip=[
            alt.Tooltip("name:N", title="Who"),
            alt.Tooltip("part:N", title="Part"),
            alt.Tooltip("share:Q", title="Factor", format=".1%"),
            alt.Tooltip("left:Q", title="Left of all", format=".1%"),
        ],
    )
    words = label(
        alt.Chart(ends).encode(x=x, y=_names(rows, limit=120), text=alt.Text("left:Q", format=".2p")),
        align="right",
        dx=-5,
        fontWeight=600,
    )
    return alt.layer(bars, words).properties(width="container", height=ROW * rows["name"].nunique())
