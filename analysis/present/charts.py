"""Chart builders: each takes a tidy frame and returns an Altair chart. They draw, they compute nothing."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.present import theme

#: Ticks in steps that people use.
UTILIZATION_TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]
COST_TICKS = [round(digit * 10.0**power, 9) for power in range(-3, 5) for digit in (1, 2, 5)]


def label(base: alt.Chart, **mark: Any) -> Any:
    """Write text on a chart with a rim of paper around it, so that a line behind it does not strike it out."""
    rim = base.mark_text(stroke=theme.PAPER.colour, strokeWidth=4, strokeJoin="round", **mark)
    return alt.layer(rim, base.mark_text(**mark))


def cost_of_utilization(costs: pd.DataFrame, api_prices: pd.DataFrame | None = None) -> Any:
    """Cost of a million tokens against utilization, a line for each throughput, a rule for each API price.

    Parameters
    ----------
    costs : DataFrame
        Columns ``node_tok_per_s`` [token/s], ``utilization`` [1], ``cost_usd_per_mtok`` [USD/Mtok].
    api_prices : DataFrame, optional
        Columns ``label`` and ``usd_per_mtok`` [USD/Mtok].

    Returns
    -------
    altair chart
        Log-log, so that the identity is a set of parallel lines: half the utilization is twice the cost.

    Examples
    --------
    >>> frame = pd.DataFrame({"node_tok_per_s": [1e3], "utilization": [1.0], "cost_usd_per_mtok": [9.2]})
    >>> cost_of_utilization(frame).to_dict()["layer"][0]["encoding"]["x"]["field"]
    'utilization'
    """
    dashes = [[1, 0], [8, 3], [2, 2], [8, 3, 2, 3]]
    speeds = sorted(costs["node_tok_per_s"].unique())
    x = alt.X(
        "utilization:Q",
        title="Utilization",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(values=UTILIZATION_TICKS, format="~%"),
    )
    y = alt.Y(
        "cost_usd_per_mtok:Q",
        title="Cost (USD/Mtok)",
        scale=alt.Scale(type="log", nice=False, padding=16),
        axis=alt.Axis(values=COST_TICKS, format="~g"),
    )
    lines = (
        alt.Chart(costs)
        .mark_line(color=theme.OWNED.colour)
        .encode(
            strokeDash=alt.StrokeDash(
                "node_tok_per_s:O", title="Node (token/s)", scale=alt.Scale(domain=speeds, range=dashes), legend=None
            ),
            tooltip=[
                alt.Tooltip("node_tok_per_s:Q", title="Node (token/s)", format=",.0f"),
                alt.Tooltip("utilization:Q", title="Utilization", format=".0%"),
                alt.Tooltip("cost_usd_per_mtok:Q", title="Cost (USD/Mtok)", format=",.2f"),
            ],
        )
    )
    names = label(
        alt.Chart(costs)
        .transform_joinaggregate(start="min(utilization)", groupby=["node_tok_per_s"])
        .transform_filter("datum.utilization == datum.start")
        .transform_calculate(name="format(datum.node_tok_per_s, ',') + ' token/s'")
        .encode(text="name:N"),
        align="left",
        dx=8,
        dy=-6,
        fontWeight=600,
        color=theme.OWNED.colour,
    )
    layers: list[Any] = [lines.encode(x=x, y=y), names.encode(x=x, y=y)]
    if api_prices is not None:
        height = alt.Y("usd_per_mtok:Q")
        base = alt.Chart(api_prices)
        rules = base.mark_rule(color=theme.API.colour).encode(
            y=height,
            tooltip=[alt.Tooltip("label:N", title="API"), alt.Tooltip("usd_per_mtok:Q", title="Price (USD/Mtok)")],
        )
        texts = label(
            base.encode(y=height, x=alt.value("width"), text="label:N"),
            align="right",
            dx=-4,
            dy=-7,
            color=theme.SOFT.colour,
        )
        layers = [rules, *layers, texts]
    return alt.layer(*layers).properties(width="container", height=theme.HEIGHT)
