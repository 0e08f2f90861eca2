"""Chart builders for the whole: the tally of verdicts, the map of decisions, and what their uncertainty is made of."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.present import theme
from analysis.present.charts import label

#: Verdicts by kind: neither a decoder nor a price, so no hue of theirs.
KIND_COLOURS = {
    "computed": theme.STEPS[2].colour,
    "market fact": theme.STEPS[1].colour,
    "definition": theme.GRID.colour,
}
ROW_PX = 34


def tally(counts: pd.DataFrame) -> Any:
    """Draw how many statements have each verdict, a bar for each.

    Parameters
    ----------
    counts : DataFrame
        Columns ``verdict``, ``kind``, ``statements``, ``close`` (how many of them are close), in the order of rows.

    Returns
    -------
    altair chart
        Each bar ends in its number, its kind, and how many are close.

    Examples
    --------
    >>> frame = pd.DataFrame({"verdict": ["holds"], "kind": ["computed"], "statements": [9], "close": [2]})
    >>> tally(frame).to_dict()["layer"][0]["encoding"]["y"]["sort"]
    ['holds']
    """
    words = [
        f"{count} · {kind}" + (f", {close} close" if close else "")
        for count, kind, close in zip(counts["statements"], counts["kind"], counts["close"], strict=True)
    ]
    base = alt.Chart(counts.assign(words=words)).encode(
        y=alt.Y("verdict:N", sort=list(dict.fromkeys(counts["verdict"])), title=None, axis=alt.Axis(ticks=False)),
        x=alt.X(
            "statements:Q",
            title="Statements",
            # room for the words behind the longest bar
            scale=alt.Scale(domain=[0, 1.6 * float(counts["statements"].max())]),
            axis=alt.Axis(tickMinStep=1, tickCount=5, grid=False),
        ),
        tooltip=[
            alt.Tooltip("verdict:N", title="Verdict"),
            alt.Tooltip("kind:N", title="Kind"),
            alt.Tooltip("statements:Q", title="Statements"),
            alt.Tooltip("close:Q", title="Of these close"),
        ],
    )
    bars = base.mark_bar().encode(
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(domain=list(KIND_COLOURS), range=list(KIND_COLOURS.values())),
            legend=None,
        )
    )
    texts = label(base.encode(text="words:N"), align="left", dx=6)
    height = ROW_PX * counts["verdict"].nunique()
    return alt.layer(bars, texts).properties(width="container", height=height)
