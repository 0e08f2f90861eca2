"""Charts that set decoders against each other: who wins where, and predicted against measured costs."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.present import theme
from analysis.present.charts import label

#: Ticks of gains, close enough for less than one octave.
GAIN_TICKS = [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8, 12, 16]
#: Distance that names beside lines keep, as a share of the height.
APART = 0.055
#: The letter that a cell carries for each winner.
LETTERS = {"plain": "P", "speculation": "S", "prompt look-up": "L", "diffusion": "D"}
#: The class of a cell where memory does not hold the batch.
NOT_HELD = "does not fit"


def winner_map(cells: pd.DataFrame, *, x: str, y: str, x_title: str, y_title: str) -> Any:
    """Draw a map of winners: a letter above the lead in percent in each cell, the winner as its shade.

    Parameters
    ----------
    cells : DataFrame
        Columns ``x`` and ``y`` (names below), ``winner`` (a key of `LETTERS`, empty where nothing fits) and ``lead``
        (its rate over that of the second, NaN where there is none).
    x, y : str
        Columns with the inputs.
    x_title, y_title : str

    Returns
    -------
    altair chart

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [1, 2], "b": 8, "winner": ["diffusion", ""], "lead": [2.54, float("nan")]})
    >>> chart = winner_map(frame, x="a", y="b", x_title="A", y_title="B")
    >>> [row["text"] for row in next(iter(chart.to_dict()["datasets"].values()))]
    ['D 154%', '–']
    """
    fits = cells["winner"] != ""
    text = cells["winner"].map(LETTERS) + (100 * (cells["lead"] - 1)).map(" {:.0f}%".format)
    shown = cells.assign(
        text=text.where(fits, "–"),
        winner=cells["winner"].where(fits, NOT_HELD),
    )[[x, y, "winner", "lead", "text"]]
    names = [name for name in LETTERS if name in set(shown["winner"])]
    spoken = {name: f"{LETTERS[name]}: {name}" for name in names}
    empty = [NOT_HELD] if not fits.all() else []
    shown = shown.assign(winner=shown["winner"].replace(spoken))
    shades = [theme.WINNERS[name].colour for name in names] + [theme.PAPER.colour for _ in empty]
    base = alt.Chart(shown).encode(
        x=alt.X(f"{x}:O", title=x_title, axis=alt.Axis(labelAngle=0, format=",.0f", ticks=False, domain=False)),
        y=alt.Y(f"{y}:O", title=y_title, sort="descending", axis=alt.Axis(format=",.0f", ticks=False, domain=False)),
    )
    squares = base.mark_rect(stroke=theme.GRID.colour, strokeWidth=1).encode(
        color=alt.Color(
            "winner:N",
            title=None,
            scale=alt.Scale(domain=[*spoken.values(), *empty], range=shades),
            legend=alt.Legend(symbolType="square", symbolStrokeColor=theme.SOFT.colour, symbolStrokeWidth=1),
        ),
        tooltip=[
            alt.Tooltip(f"{y}:Q", title=y_title, format=",.0f"),
            alt.Tooltip(f"{x}:Q", title=x_title, format=",.0f"),
            alt.Tooltip("winner:N", title="Winner"),
            alt.Tooltip("lead:Q", title="Lead over the second", format=".2f"),
        ],
    )
    # one above the other, since a cell of a phone is hardly wider than three digits
    texts = base.mark_text(color=theme.INK.colour, lineBreak=" ", lineHeight=13, dy=-6).encode(text="text:N")
    return alt.layer(squares, texts).properties(width="container", height=38 * int(shown[y].nunique()))


def predicted_two_ways(rows: pd.DataFrame, *, title: str) -> Any:
    """Draw a measured number for each name, with two predictions of it.

    Parameters
    ----------
    rows : DataFrame
        Columns ``name``, ``kind`` (``dense`` or ``sparse``), ``measured``, ``evenly``, ``skewed``, ``source``. In the
        order in which they are to stand.
    title : str
        Of the axis.

    Returns
    -------
    altair chart

    Examples
    --------
    >>> row = {"name": "a", "kind": "dense", "measured": 1.2, "evenly": 1.4, "skewed": 1.3, "source": "s"}
    >>> predicted_two_ways(pd.DataFrame([row]), title="Ratio").to_dict()["layer"][0]["mark"]["type"]
    'rule'
    """
    low = float(rows[["measured", "evenly", "skewed"]].min().min())
    high = float(rows[["measured", "evenly", "skewed"]].max().max())
    x = alt.X(
        "measured:Q",
        title=title,
        scale=alt.Scale(nice=False, zero=False, domain=[min(1.0, 0.95 * low), 1.08 * high]),
        axis=alt.Axis(tickCount=6, format="~g"),
    )
    y = alt.Y(
        "name:N",
        title=None,
        sort=list(rows["name"]),
        axis=alt.Axis(labelLimit=185, labelOverlap=False, ticks=False, domain=False, grid=True),
    )
    tooltip = [
        alt.Tooltip("name:N", title="Model"),
        alt.Tooltip("kind:N", title="Kind"),
        alt.Tooltip("measured:Q", title="Measured", format=".2f"),
        alt.Tooltip("evenly:Q", title="Predicted, even routing", format=".2f"),
        alt.Tooltip("skewed:Q", title="Predicted, skewed routing", format=".2f"),
        alt.Tooltip("source:N", title="Source"),
    ]
    base = alt.Chart(rows).encode(y=y, tooltip=tooltip)
    kinds = [kind for kind in ("dense", "sparse") if kind in set(rows["kind"])]
    hues = {"dense": theme.AUTOREGRESSIVE, "sparse": theme.SPARSE}
    return alt.layer(
        base.mark_rule(color=theme.SOFT.colour, strokeWidth=2).encode(x=alt.X("skewed:Q", title=title), x2="evenly:Q"),
        base.mark_tick(color=theme.INK.colour, thickness=2.5, size=15).encode(x=alt.X("evenly:Q", title=title)),
        base.mark_tick(color=theme.SOFT.colour, thickness=2.5, size=9).encode(x=alt.X("skewed:Q", title=title)),
        base.mark_point(size=80, opacity=1).encode(
            x=x,
            color=alt.Color(
                "kind:N", title="Measured", scale=alt.Scale(domain=kinds, range=[hues[kind].colour for kind in kinds])
            ),
            shape=alt.Shape(
                "kind:N", title="Measured", scale=alt.Scale(domain=kinds, range=[hues[kind].shape for kind in kinds])
            ),
        ),
    ).properties(width="container", height=26 * len(rows))


def gains(lines: pd.DataFrame, *, marks: dict[str, theme.Mark], x_ticks: list[float], width_of_names: int = 120) -> Any:
    """Draw the gain of each rival over plain decoding against the batch, with the level of plain decoding.

    Parameters
    ----------
    lines : DataFrame
        Columns ``batch``, ``gain`` and ``name``.
    marks : mapping of name to Mark
        In the order in which the names are to stand.
    x_ticks : list of float
    width_of_names : int
        Room for the names, left of the lines. [pixel]

    Returns
    -------
    altair chart
        Both axes logarithmic; below the level the shade says who is faster there.

    Examples
    --------
    >>> frame = pd.DataFrame({"batch": [1, 8], "gain": [3.0, 0.8], "name": "a"})
    >>> gains(frame, marks={"a": theme.DIFFUSION}, x_ticks=[1, 8]).to_dict()["layer"][0]["mark"]["type"]
    'rect'
    """
    names = list(marks)
    left, right = float(lines["batch"].min()), float(lines["batch"].max())
    least, most = min(float(lines["gain"].min()), 0.9) * 0.9, float(lines["gain"].max()) * 1.15
    across = alt.X(
        "batch:Q",
        title="Batch (requests in the replica)",
        scale=alt.Scale(type="log", nice=False, domain=[left, right], range=[width_of_names, {"expr": "width"}]),
        axis=alt.Axis(values=[tick for tick in x_ticks if left <= tick <= right], format=",.0f"),
    )
    up = alt.Y(
        "gain:Q",
        title="Requests per second over plain decoding",
        scale=alt.Scale(type="log", nice=False, domain=[least, most]),
        axis=alt.Axis(values=[tick for tick in GAIN_TICKS if least <= tick <= most], format="~g"),
    )
    hue = alt.Color("name:N", scale=alt.Scale(domain=names, range=[marks[name].colour for name in names]), legend=None)
    dash = alt.StrokeDash(
        "name:N", scale=alt.Scale(domain=names, range=[list(marks[name].dash) or [1, 0] for name in names]), legend=None
    )
    behind = pd.DataFrame([{"batch": left, "until": right, "gain": least, "level": 1.0, "word": "plain is faster"}])
    shade = alt.Chart(behind)
    starts = _apart(lines.loc[lines.groupby("name", sort=False)["batch"].idxmin()], least, most)
    return alt.layer(
        shade.mark_rect(color=theme.BANDS["overhead"].colour).encode(x=across, x2="until:Q", y=up, y2="level:Q"),
        label(
            shade.encode(x=across, y=up, text="word:N"),
            align="left",
            baseline="bottom",
            dx=6,
            dy=-6,
            color=theme.SOFT.colour,
        ),
        alt.Chart(lines)
        .mark_line()
        .encode(
            x=across,
            y=up,
            color=hue,
            strokeDash=dash,
            tooltip=[
                alt.Tooltip("name:N", title="Decoder"),
                alt.Tooltip("batch:Q", title="Batch", format=",.0f"),
                alt.Tooltip("gain:Q", title="Over plain", format=".2f"),
            ],
        ),
        label(alt.Chart(starts).encode(x=across, y=up, text="name:N", color=hue), align="right", dx=-7, fontWeight=600),
    ).properties(width="container", height=theme.HEIGHT)


def _apart(names: pd.DataFrame, least: float, most: float) -> pd.DataFrame:
    """Move names beside lines up where they would cover each other."""
    step = (most / least) ** APART
    places: list[float] = []
    for height in sorted(names["gain"]):
        places.append(max(height, places[-1] * step) if places else height)
    return names.sort_values("gain", kind="stable").assign(gain=places)
