"""Chart builders for the whole: the tally of verdicts, the map of decisions, and what their uncertainty is made of."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.present import theme
from analysis.present.charts import NAMED_BAR_DOWN_PX, NAMED_BAR_PX, NAMED_ROW_PX, label

#: Verdicts by kind: neither a decoder nor a price, so no hue of theirs.
KIND_COLOURS = {
    "computed": theme.STEPS[2].colour,
    "market fact": theme.STEPS[1].colour,
    "definition": theme.GRID.colour,
}


def tally(counts: pd.DataFrame) -> Any:
    """Draw how many statements have each verdict, a bar for each.

    Parameters
    ----------
    counts : DataFrame
        Columns ``verdict``, ``kind``, ``statements``, ``close`` (how many of them are close), in the order of rows.

    Returns
    -------
    altair chart
        Each bar ends in its number; above it stand the verdict, its kind, and how many are close.

    Examples
    --------
    >>> frame = pd.DataFrame({"verdict": ["holds"], "kind": ["computed"], "statements": [9], "close": [2]})
    >>> tally(frame).to_dict()["layer"][0]["encoding"]["y"]["sort"]
    ['holds · computed, 2 close']
    """
    names = [
        f"{verdict} · {kind}" + (f", {close} close" if close else "")
        for verdict, kind, close in zip(counts["verdict"], counts["kind"], counts["close"], strict=True)
    ]
    base = alt.Chart(counts.assign(name=names)).encode(
        # words stand above the bars: beside them a phone would have no room for bars
        y=alt.Y("name:N", sort=names, title=None, axis=None),
        tooltip=[
            alt.Tooltip("verdict:N", title="Verdict"),
            alt.Tooltip("kind:N", title="Kind"),
            alt.Tooltip("statements:Q", title="Statements"),
            alt.Tooltip("close:Q", title="Of these close"),
        ],
    )
    x = alt.X(
        "statements:Q",
        title="Statements",
        # room for the number behind the longest bar
        scale=alt.Scale(domain=[0, 1.12 * float(counts["statements"].max())]),
        axis=alt.Axis(tickMinStep=1, tickCount=5, grid=False),
    )
    bars = base.mark_bar(height=NAMED_BAR_PX, yOffset=NAMED_BAR_DOWN_PX).encode(
        x=x,
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(domain=list(KIND_COLOURS), range=list(KIND_COLOURS.values())),
            legend=None,
        ),
    )
    numbers = label(base.encode(x=x, text="statements:Q"), align="left", dx=5, dy=NAMED_BAR_DOWN_PX)
    called = label(base.encode(x=alt.value(2), text="name:N"), align="left", dy=-7)
    return alt.layer(bars, numbers, called).properties(width="container", height=NAMED_ROW_PX * len(counts))


PERCENT = "~%"
#: How many inputs a bar picture shows: what comes after them explains nothing that a bar could show.
MOST_BARS = 8


def chances(frame: pd.DataFrame) -> Any:
    """Draw the chance of each decision, its name above it with the share of the space that has no answer.

    Parameters
    ----------
    frame : DataFrame
        Columns ``decision``, ``chance``, ``low``, ``high``, ``undefined``. [1]

    Returns
    -------
    altair chart
        A mark with its interval between never and always; the rule is at one half.

    Examples
    --------
    >>> row = {"decision": ["own"], "chance": [0.3], "low": [0.28], "high": [0.32], "undefined": [0.1]}
    >>> chances(pd.DataFrame(row)).to_dict()["layer"][0]["mark"]["type"]
    'rule'
    """
    names = [
        f"{decision}: {chance:.0%}" + (f", no answer in {gone:.0%}" if gone > 0 else "")
        for decision, chance, gone in zip(frame["decision"], frame["chance"], frame["undefined"], strict=True)
    ]
    base = alt.Chart(frame.assign(name=names)).encode(
        # names stand above the marks, as with bars
        y=alt.Y("name:N", sort=names, title=None, axis=None),
        tooltip=[
            alt.Tooltip("decision:N", title="Decision"),
            alt.Tooltip("chance:Q", title="Share of yes", format=".1%"),
            alt.Tooltip("undefined:Q", title="Without an answer", format=".1%"),
        ],
    )
    x = alt.X("chance:Q", title="Share of yes", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=PERCENT))
    coin = (
        alt.Chart(pd.DataFrame({"half": [0.5]}))
        .mark_rule(color=theme.SOFT.colour, strokeDash=[4, 3])
        .encode(x=alt.X("half:Q", scale=alt.Scale(domain=[0, 1])))
    )
    interval = base.mark_rule(color=theme.INK.colour, strokeWidth=4, yOffset=NAMED_BAR_DOWN_PX).encode(
        x=alt.X("low:Q"), x2="high:Q"
    )
    marks = base.mark_point(color=theme.INK.colour, size=80, yOffset=NAMED_BAR_DOWN_PX).encode(x=x)
    called = label(base.encode(x=alt.value(2), text="name:N"), align="left", dy=-7)
    return alt.layer(coin, interval, marks, called).properties(width="container", height=NAMED_ROW_PX * len(frame))


def influence(frame: pd.DataFrame) -> Any:
    """Draw what a decision hangs on: a bar for each of the inputs that explain most of it, with its interval.

    Parameters
    ----------
    frame : DataFrame
        Columns ``called``, ``origin``, ``index``, ``low``, ``high`` [1], the most influential first.

    Returns
    -------
    altair chart
        The first eight; each is named with its origin.

    Examples
    --------
    >>> row = {"called": ["answer"], "origin": ["workload"], "index": [0.5], "low": [0.4], "high": [0.6]}
    >>> influence(pd.DataFrame(row)).to_dict()["layer"][0]["encoding"]["y"]["sort"]
    ['answer (workload)']
    """
    shown = frame.head(MOST_BARS)
    names = [f"{called} ({origin})" for called, origin in zip(shown["called"], shown["origin"], strict=True)]
    # what lies around zero has no sign once it is rounded
    shown = shown.assign(name=names, words=[f"{round(value, 2) + 0.0:.0%}" for value in shown["index"]])
    # room for the number behind the longest bar, on a phone too
    scale = alt.Scale(domain=[min(0.0, float(shown["low"].min())), 1.25 * max(float(shown["high"].max()), 0.1)])
    base = alt.Chart(shown).encode(
        # names stand above the bars: beside them a phone would have no room for bars
        y=alt.Y("name:N", sort=names, title=None, axis=None),
        tooltip=[
            alt.Tooltip("called:N", title="Input"),
            alt.Tooltip("origin:N", title="Origin"),
            alt.Tooltip("index:Q", title="First-order index", format=".1%"),
            alt.Tooltip("low:Q", title="From", format=".1%"),
            alt.Tooltip("high:Q", title="To", format=".1%"),
        ],
    )
    axis = alt.Axis(format=PERCENT, tickCount=5, grid=False)
    bars = base.mark_bar(color=theme.STEPS[2].colour, height=NAMED_BAR_PX, yOffset=NAMED_BAR_DOWN_PX).encode(
        x=alt.X("index:Q", title="Variance that it explains alone", scale=scale, axis=axis)
    )
    intervals = base.mark_rule(color=theme.INK.colour, yOffset=NAMED_BAR_DOWN_PX).encode(
        x=alt.X("low:Q", scale=scale), x2="high:Q"
    )
    numbers = label(
        base.encode(x=alt.X("high:Q", scale=scale), text="words:N"), align="left", dx=5, dy=NAMED_BAR_DOWN_PX
    )
    called = label(base.encode(x=alt.value(2), text="name:N"), align="left", dy=-7)
    height = NAMED_ROW_PX * len(shown)
    return alt.layer(bars, intervals, numbers, called).properties(width="container", height=height)


def along(frame: pd.DataFrame, *, title: str, logarithmic: bool = True) -> Any:
    """Draw how chances move along one input, a line for each decision, all other inputs as uncertain as they are.

    Parameters
    ----------
    frame : DataFrame
        Columns ``decision``, ``at``, ``chance`` (missing where there is no answer). [1]
    title : str
        Of the axis of the input, with its unit.
    logarithmic : bool
        For ratios.

    Examples
    --------
    >>> rows = pd.DataFrame({"decision": ["own"] * 2, "at": [1.0, 2.0], "chance": [0.2, 0.4]})
    >>> along(rows, title="Rate (requests/s)").to_dict()["layer"][0]["encoding"]["x"]["scale"]["type"]
    'log'
    """
    names = list(dict.fromkeys(frame["decision"]))
    dashes = [[1, 0], [8, 3], [2, 2], [8, 3, 2, 3], [4, 2], [12, 3]]
    scale = alt.Scale(type="log", nice=False) if logarithmic else alt.Scale(zero=False, nice=False)
    x = alt.X("at:Q", title=title, scale=scale, axis=alt.Axis(format="~g", tickCount=6))
    y = alt.Y("chance:Q", title="Share of yes", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=PERCENT))
    base = alt.Chart(frame.dropna(subset=["chance"])).encode(x=x, y=y)
    lines = base.mark_line(color=theme.INK.colour, point=False).encode(
        strokeDash=alt.StrokeDash("decision:N", scale=alt.Scale(domain=names, range=dashes[: len(names)]), legend=None),
        tooltip=[
            alt.Tooltip("decision:N", title="Decision"),
            alt.Tooltip("at:Q", title=title, format=".3~g"),
            alt.Tooltip("chance:Q", title="Share of yes", format=".0%"),
        ],
    )
    # each name stands at another place along its line, so that names of lines that meet do not
    known = frame.dropna(subset=["chance"])
    lines_of = [known[known["decision"] == name] for name in names]
    named = [line.iloc[[(place + 1) * len(line) // (len(names) + 1)]] for place, line in enumerate(lines_of)]
    texts = label(alt.Chart(pd.concat(named)).encode(x=x, y=y, text="decision:N"), dy=-11, fontWeight=600)
    return alt.layer(lines, texts).properties(width="container", height=theme.HEIGHT)


#: What a reader calls the options of the map: the same words on the map, in its key, its tables and its prose.
OPTION_NAMES = {
    "API": "API",
    "autoregressive": "token by token",
    "speculative": "with drafts",
    "diffusion": "diffusion",
    "infeasible": "infeasible",
}
#: The options of the map in the hues of the book; where nothing is possible the paper shows through.
OPTION_COLOURS = {
    "API": theme.API.colour,
    "autoregressive": theme.AUTOREGRESSIVE.colour,
    "speculative": theme.SPECULATIVE.colour,
    "diffusion": theme.DIFFUSION.colour,
    "infeasible": theme.PAPER.colour,
}
DECADE_TICKS = [10.0**power for power in range(-2, 4)]


def decision_map(cells: pd.DataFrame, names: pd.DataFrame) -> Any:
    """Draw the cheapest option over two axes, with a control that chooses what the axes leave out.

    Parameters
    ----------
    cells : DataFrame
        Columns ``setting``, ``option``, ``left``, ``right`` [1], ``bottom``, ``top`` [USD/Mtok].
    names : DataFrame
        Where the name of each region stands: ``setting``, ``option``, ``concurrency``, ``api_usd_per_mtok``.

    Returns
    -------
    altair chart
        Both axes logarithmic; every region carries its name (`OPTION_NAMES`), and the key has them all.

    Examples
    --------
    >>> cell = {"setting": ["a"], "option": ["API"], "left": [1.0], "right": [2.0], "bottom": [1.0], "top": [2.0]}
    >>> name = {"setting": ["a"], "option": ["API"], "concurrency": [1.4], "api_usd_per_mtok": [1.4]}
    >>> decision_map(pd.DataFrame(cell), pd.DataFrame(name)).to_dict()["params"][0]["bind"]["options"]
    ['a']
    """
    cells, names = (frame.assign(option=frame["option"].map(OPTION_NAMES)) for frame in (cells, names))
    settings = list(dict.fromkeys(cells["setting"]))
    chosen = alt.param(
        name="shown_setting",
        value=settings[0],
        bind=alt.binding_select(options=settings, name="What the axes leave out: "),
    )
    x_scale = alt.Scale(type="log", nice=False, domain=[float(cells["left"].min()), float(cells["right"].max())])
    y_scale = alt.Scale(type="log", nice=False, domain=[float(cells["bottom"].min()), float(cells["top"].max())])
    x_axis = alt.Axis(values=DECADE_TICKS, format="~g", grid=False)
    y_axis = alt.Axis(values=[0.1, 0.3, 1, 3, 10, 30], format="~g", grid=False)
    x_title, y_title = "Requests that run together", "Price of the API (USD/Mtok of output)"
    rectangles = (
        alt.Chart(cells)
        .transform_filter("datum.setting == shown_setting")
        .mark_rect(opacity=0.75, strokeWidth=0)
        .encode(
            x=alt.X("left:Q", scale=x_scale, axis=x_axis, title=x_title),
            x2="right:Q",
            y=alt.Y("bottom:Q", scale=y_scale, axis=y_axis, title=y_title),
            y2="top:Q",
            color=alt.Color(
                "option:N",
                scale=alt.Scale(domain=list(OPTION_NAMES.values()), range=list(OPTION_COLOURS.values())),
                # a region too narrow for its name is found by its colour
                legend=alt.Legend(title=None, symbolStrokeColor=theme.SOFT.colour, symbolStrokeWidth=1),
            ),
            tooltip=[
                alt.Tooltip("option:N", title="Cheapest"),
                alt.Tooltip("left:Q", title="Run together, from", format=".2~g"),
                alt.Tooltip("right:Q", title="to", format=".2~g"),
                alt.Tooltip("bottom:Q", title="API (USD/Mtok), from", format=".2~g"),
                alt.Tooltip("top:Q", title="up to", format=".2~g"),
            ],
        )
    )
    texts = label(
        alt.Chart(names)
        .transform_filter("datum.setting == shown_setting")
        .encode(
            x=alt.X("concurrency:Q", scale=x_scale, axis=x_axis, title=x_title),
            y=alt.Y("api_usd_per_mtok:Q", scale=y_scale, axis=y_axis, title=y_title),
            text="option:N",
        ),
        fontWeight=600,
        fontSize=13,
    )
    return alt.layer(rectangles, texts).add_params(chosen).properties(width="container", height=theme.HEIGHT)
