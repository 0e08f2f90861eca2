"""Charts of work that waits and answers that cannot: each takes a tidy frame and draws it, computing nothing."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.present import theme
from analysis.present.charts import COST_TICKS, NAMED_BAR_DOWN_PX, NAMED_ROW_PX, label


def counts(rows: pd.DataFrame, *, x_title: str, name_title: str, rule: tuple[str, float] | None = None) -> Any:
    """Draw bars of a count, the count written behind each.

    Parameters
    ----------
    rows : DataFrame
        Columns ``name`` and ``count``, in the order in which the bars are to stand.
    x_title, name_title : str
    rule : (str, float), optional
        Words and place of a level to compare with.

    Returns
    -------
    altair chart

    Examples
    --------
    >>> frame = pd.DataFrame({"name": ["a", "b"], "count": [2, 14]})
    >>> counts(frame, x_title="Nodes", name_title="Model").to_dict()["layer"][0]["mark"]["type"]
    'bar'
    """
    most = float(rows["count"].max())
    x = alt.X(
        "count:Q", title=x_title, scale=alt.Scale(domain=[0, 1.12 * most], nice=False), axis=alt.Axis(tickCount=6)
    )
    y = alt.Y(
        "name:N",
        title=None,
        sort=list(rows["name"]),
        axis=alt.Axis(labelLimit=190, labelOverlap=False, ticks=False, domain=False),
    )
    tooltip = [alt.Tooltip("name:N", title=name_title), alt.Tooltip("count:Q", title=x_title, format=",.0f")]
    base = alt.Chart(rows).encode(x=x, y=y, tooltip=tooltip)
    layers: list[Any] = [
        base.mark_bar(color=theme.OWNED.colour, height={"band": 0.66}),
        label(base.encode(text=alt.Text("count:Q", format=",.0f")), align="left", dx=5, fontWeight=600),
    ]
    if rule is not None:
        level = alt.Chart(pd.DataFrame([{"count": rule[1], "word": rule[0]}]))
        layers.append(level.mark_rule(color=theme.API.colour).encode(x=x))
        layers.append(
            label(
                level.encode(x=x, y=alt.value(0), text="word:N"),
                align="left",
                baseline="bottom",
                dx=4,
                dy=-3,
                color=theme.SOFT.colour,
            )
        )
    return alt.layer(*layers).properties(width="container", height=30 * len(rows))


#: How a price is drawn by whose it is: shape and hue.
WHOSE = {"own node": theme.OWNED, "API": theme.API, "API, batch": theme.Mark(theme.API.colour, theme.API.dark)}
WHOSE_SHAPES = {"own node": "circle", "API": "square", "API, batch": "diamond"}


def prices(rows: pd.DataFrame, *, x_title: str) -> Any:
    """Draw what a thing costs in several ways as marks on one axis by ratio, cheapest first.

    Parameters
    ----------
    rows : DataFrame
        Columns ``name``, ``usd`` (above 0), ``whose`` (a key of `WHOSE`), in the order in which they are to stand.
    x_title : str
        With the unit.

    Returns
    -------
    altair chart

    Examples
    --------
    >>> frame = pd.DataFrame({"name": ["a", "b"], "usd": [0.1, 3.0], "whose": ["own node", "API"]})
    >>> prices(frame, x_title="USD").to_dict()["layer"][1]["mark"]["type"]
    'point'
    """
    low, high = float(rows["usd"].min()), float(rows["usd"].max())
    shown = [name for name in WHOSE if name in set(rows["whose"])]
    x = alt.X(
        "usd:Q",
        title=x_title,
        scale=alt.Scale(type="log", nice=False, domain=[low / 1.4, high * 2.2]),
        axis=alt.Axis(values=COST_TICKS, format="~g"),
    )
    y = alt.Y("name:N", title=None, sort=list(rows["name"]), axis=None)
    base = alt.Chart(rows).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("name:N", title="Way"),
            alt.Tooltip("usd:Q", title=x_title, format=",.3~g"),
            alt.Tooltip("whose:N", title="Whose"),
        ],
    )
    # hue and shape say the same, so they share a legend
    legend = alt.Legend(columns=3)
    hue = alt.Color(
        "whose:N",
        title=None,
        scale=alt.Scale(domain=shown, range=[WHOSE[name].colour for name in shown]),
        legend=legend,
    )
    shape = alt.Shape(
        "whose:N",
        title=None,
        scale=alt.Scale(domain=shown, range=[WHOSE_SHAPES[name] for name in shown]),
        legend=legend,
    )
    return alt.layer(
        label(base.encode(text=alt.Text("usd:Q", format=",.2~r")), align="left", dx=9, dy=NAMED_BAR_DOWN_PX),
        base.mark_point(size=90, opacity=1, yOffset=NAMED_BAR_DOWN_PX).encode(color=hue, shape=shape),
        label(base.encode(x=alt.value(2), text="name:N"), align="left", dy=-7),
    ).properties(width="container", height=NAMED_ROW_PX * len(rows))
