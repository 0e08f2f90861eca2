"""How charts look: the one place where a colour gets its meaning.

Hues are from the set of Okabe and Ito (https://jfly.uni-koeln.de/color/), which people with the common forms
of colour blindness tell apart, darkened where text in that colour would be too faint on white. Each has a twin
for dark pages; the page's script swaps one for the other, so a chart is built once. Colour is never the only
cue: each thing has a dash and a shape of its own too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Mark:
    """How one thing is drawn wherever it appears."""

    colour: str
    dark: str
    dash: tuple[int, ...] = ()
    shape: str = "circle"


INK = Mark("#1f2328", "#e6e6e6")
PAPER = Mark("#ffffff", "#121212")
GRID = Mark("#dfe2e6", "#333a44")
SOFT = Mark("#59636e", "#a9b1ba")

AUTOREGRESSIVE = Mark("#0072b2", "#56b4e9")
SPECULATIVE = Mark("#b85000", "#ff9e5e", (8, 3), "square")
DIFFUSION = Mark("#007a59", "#2fd0a5", (2, 2), "triangle-up")
SPARSE = Mark("#a6457d", "#e39bc6", (8, 3, 2, 3), "diamond")

#: What an API asks: always a grey rule, never a series colour.
API = Mark("#6e7781", "#9aa3ad", (1, 0))
OWNED = AUTOREGRESSIVE
#: Hardware that is already paid for: the hue of the owned node, dashed.
SUNK = Mark(OWNED.colour, OWNED.dark, (6, 4))

DECODERS = {
    "autoregressive": AUTOREGRESSIVE,
    "speculative": SPECULATIVE,
    "diffusion": DIFFUSION,
    "sparse": SPARSE,
}
#: Light bands behind a curve that say what bounds it.
BANDS = {
    "memory-bound": Mark("#e3eefa", "#1d2c3c"),
    "compute-bound": Mark("#fbe9dc", "#3a2a1f"),
    "overhead": Mark("#ececec", "#2b2f36"),
}
#: Parts of a step: what is read in the blue of memory, arithmetic in the orange of compute, overhead in greys.
PARTS = {
    "weights": Mark("#8fbbe3", "#2f5f92"),
    "KV cache": Mark("#c4dcf2", "#4d84b8"),
    "arithmetic": Mark("#f2b98f", "#8a4f22"),
    "fixed": Mark("#a3a9b1", "#5b626b"),
    "all-reduce": Mark("#c6cad0", "#7c838c"),
    "activations": Mark("#e4e6e9", "#9aa0a8"),
}

#: Classes of a number in a map, the least first: cells carry the number too, and text on them is ink.
STEPS = (Mark("#edf4fa", "#17222d"), Mark("#b9d7ec", "#254058"), Mark("#7db3da", "#35648a"))
#: Cells of a map that says which decoder wins: pale twins of the decoders' hues; cells carry letters too.
WINNERS = {
    "plain": Mark("#d3e6f5", "#1b3a55"),
    "speculation": Mark("#fadcc3", "#5a3315"),
    "prompt look-up": Mark("#efdcea", "#4f3047"),
    "diffusion": Mark("#c6e9df", "#12463a"),
}
#: A cell in which diffusion wins by far; text on it is ink too.
STRONG = Mark("#7fcdb5", "#1a6853")
#: What a bar is made of; its length is written on it, in ink.
WORK = {
    "computing": Mark("#f3c19d", "#7d4a24"),
    "reading": Mark("#a9cdea", "#2c5878"),
    "communication": Mark("#c9c9c9", "#5a5a5a"),
    "other": Mark("#e6e6e6", "#303030"),
}

MARKS = (
    INK,
    PAPER,
    GRID,
    SOFT,
    *DECODERS.values(),
    API,
    *BANDS.values(),
    *PARTS.values(),
    *STEPS,
    *WINNERS.values(),
    STRONG,
    *WORK.values(),
)
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"
#: Size of a chart in a notebook; on the site it is as wide as the column.
WIDTH, HEIGHT = 600, 320


def dark_twins() -> dict[str, str]:
    """Map each colour of the book to the one that replaces it on a dark page.

    Examples
    --------
    >>> dark_twins()["#0072b2"]
    '#56b4e9'
    """
    return {mark.colour: mark.dark for mark in MARKS}


def config() -> dict[str, Any]:
    """Vega-Lite configuration that every chart gets: legible at 360 px, in grey and on paper.

    Axis titles stand level above their axis, because a turned title costs a phone a tenth of its width.
    """
    return {
        "background": PAPER.colour,
        "font": FONT,
        "padding": {"left": 4, "right": 8, "top": 4, "bottom": 4},
        "view": {"stroke": None},
        "title": {"anchor": "start", "color": INK.colour, "fontSize": 14, "fontWeight": 600, "offset": 12},
        "axis": {
            "labelColor": INK.colour,
            "titleColor": INK.colour,
            "gridColor": GRID.colour,
            "domainColor": SOFT.colour,
            "tickColor": SOFT.colour,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "labelOverlap": True,
        },
        "axisX": {"titlePadding": 8},
        "axisY": {
            "titleAngle": 0,
            "titleAlign": "left",
            "titleAnchor": "end",
            "titleBaseline": "bottom",
            "titleX": -34,
            "titleY": -10,
        },
        "legend": {
            "orient": "bottom",
            "direction": "horizontal",
            "columns": 2,
            "labelColor": INK.colour,
            "titleColor": INK.colour,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "symbolStrokeWidth": 2,
        },
        "header": {"labelColor": INK.colour, "titleColor": INK.colour},
        "text": {"color": INK.colour, "fontSize": 12},
        "line": {"strokeWidth": 2.5, "color": OWNED.colour},
        "rule": {"color": API.colour, "strokeWidth": 1.5},
        "point": {"filled": True, "size": 60, "color": OWNED.colour},
        "range": {"category": [mark.colour for mark in DECODERS.values()]},
    }
