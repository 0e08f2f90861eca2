"""Charts of chapters on decoders: what was measured beside what was predicted, and ranges of published gains."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.present import theme
from analysis.present.charts import PLAIN_TICKS, SET_SHAPES

#: Height of one row of these charts. [pixel]
ROW = 24


def _names(rows: pd.DataFrame) -> Any:
    return alt.Y(
        "name:N",
        title=None,
        sort=list(rows["name"]),
        axis=alt.Axis(labelLimit=190, labelOverlap=False, ticks=False, domain=False, grid=True),
    )


def _across(field: str, title: str, *, log: bool, domain: list[float]) -> Any:
    if log:
        scale = alt.Scale(type="log", nice=False, domain=domain)
        return alt.X(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(values=PLAIN_TICKS, format="~g"))
    form = ",.0f" if domain[1] > 20 else ".1f"
    return alt.X(f"{field}:Q", title=title, scale=alt.Scale(domain=domain), axis=alt.Axis(tickCount=6, format=form))


def beside(rows: pd.DataFrame, *, x_title: str, marks: dict[str, theme.Mark], log: bool = False) -> Any:
    """Draw a measured number as a mark and the predicted one as a stroke, one row each, a hue for each kind.

    Parameters
    ----------
    rows : DataFrame
        Columns ``name``, ``measured``, ``predicted``, ``kind`` (a key of ``marks``), ``set`` (a key of
        `charts.SET_SHAPES`), ``source``; in the order in which they are to stand.
    x_title : str
        With the unit.
    marks : dict of str to Mark
        Kinds and how they are drawn.
    log : bool
        Whether the axis is logarithmic.

    Returns
    -------
    altair chart

    Examples
    --------
    >>> row = {"name": "a", "measured": 2.0, "predicted": 2.2, "kind": "plain", "set": "fitted", "source": "s"}
    >>> chart = beside(pd.DataFrame([row]), x_title="Gain", marks={"plain": theme.AUTOREGRESSIVE}).to_dict()
    >>> chart["layer"][0]["mark"]["type"]
    'rule'
    """
    both = rows[["measured", "predicted"]]
    domain = [float(both.min().min()) / 1.2 if log else 0.0, float(both.max().max()) * 1.08]
    x, y = _across("measured", x_title, log=log, domain=domain), _names(rows)
    kinds, shapes = list(marks), {name: SET_SHAPES[name] for name in dict.fromkeys(rows["set"])}
    hue = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=[mark.colour for mark in marks.values()]),
        legend=alt.Legend(symbolType="circle", columns=1) if len(kinds) > 1 else None,
    )
    base = alt.Chart(rows).encode(
        y=y,
        tooltip=[
            alt.Tooltip("name:N", title="Setting"),
            alt.Tooltip("measured:Q", title="Measured", format=",.3~g"),
            alt.Tooltip("predicted:Q", title="Predicted", format=",.3~g"),
            alt.Tooltip("set:N", title="Set"),
            alt.Tooltip("source:N", title="Source"),
        ],
    )
    return alt.layer(
        base.mark_rule(color=theme.SOFT.colour, strokeWidth=1).encode(x=x, x2="predicted:Q"),
        base.mark_tick(color=theme.INK.colour, thickness=2.5, size=16).encode(
            x=_across("predicted", x_title, log=log, domain=domain)
        ),
        base.mark_point(size=80, opacity=1).encode(
            x=x,
            color=hue,
            shape=alt.Shape(
                "set:N",
                title="Measured",
                scale=alt.Scale(domain=list(shapes), range=list(shapes.values())),
                legend=alt.Legend(
                    orient="top", symbolFillColor=theme.INK.colour, symbolStrokeColor=theme.INK.colour, title=None
                ),
            ),
        ),
    ).properties(width="container", height=ROW * len(rows))


def ranges(rows: pd.DataFrame, *, x_title: str, low: float, high: float, word: str) -> Any:
    """Draw how far published numbers reach, from the least to the largest with their median, and a stated band.

    Parameters
    ----------
    rows : DataFrame
        Columns ``name``, ``low``, ``median``, ``high``, ``settings`` (how many), ``group`` (two kinds at most, told
        apart by colour and shape), ``source``; in the order in which they are to stand.
    x_title : str
    low, high : float
        The band.
    word : str
        What the band is called.

    Returns
    -------
    altair chart
        On a log axis.

    Examples
    --------
    >>> row = {"name": "a", "low": 1.0, "median": 2.0, "high": 3.0, "settings": 4, "group": "g", "source": "s"}
    >>> ranges(pd.DataFrame([row]), x_title="Gain", low=2, high=4, word="2 to 4").to_dict()["layer"][0]["mark"]["type"]
    'rect'
    """
    domain = [float(rows["low"].min()) / 1.1, max(float(rows["high"].max()), high) * 1.1]
    x, y = _across("low", x_title, log=True, domain=domain), _names(rows)
    groups = list(dict.fromkeys(rows["group"]))
    hues, kinds = [theme.SPECULATIVE.colour, theme.API.colour][: len(groups)], ["square", "circle"][: len(groups)]
    hue = alt.Color("group:N", title=None, scale=alt.Scale(domain=groups, range=hues), legend=alt.Legend(columns=1))
    band = alt.Chart(pd.DataFrame([{"low": low, "until": high, "word": word}]))
    base = alt.Chart(rows).encode(
        y=y,
        tooltip=[
            alt.Tooltip("name:N", title="Method"),
            alt.Tooltip("low:Q", title="Least", format=".2f"),
            alt.Tooltip("median:Q", title="Median", format=".2f"),
            alt.Tooltip("high:Q", title="Most", format=".2f"),
            alt.Tooltip("settings:Q", title="Settings"),
            alt.Tooltip("source:N", title="Source"),
        ],
    )
    return alt.layer(
        band.mark_rect(color=theme.BANDS["overhead"].colour).encode(x=x, x2="until:Q"),
        band.mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=theme.SOFT.colour).encode(
            x=x, y=alt.value(0), text="word:N"
        ),
        base.mark_rule(strokeWidth=3).encode(x=x, x2="high:Q", color=hue),
        base.mark_point(size=80, opacity=1).encode(
            x=_across("median", x_title, log=True, domain=domain),
            color=hue,
            shape=alt.Shape("group:N", title=None, scale=alt.Scale(domain=groups, range=kinds)),
        ),
    ).properties(width="container", height=ROW * len(rows))
