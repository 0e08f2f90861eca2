"""Chart builders: each takes a tidy frame and returns an Altair chart. They draw, they compute nothing."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.present import theme

#: Ticks in steps that people use.
UTILIZATION_TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]
COST_TICKS = [round(digit * 10.0**power, 9) for power in range(-3, 5) for digit in (1, 2, 5)]


#: Of a bar or mark with its name above it, since beside it a phone would have no room for it: height of its row, its
#: own, and how far it lies below the middle of its row.
NAMED_ROW_PX, NAMED_BAR_PX, NAMED_BAR_DOWN_PX = 38, 10, 9


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


#: Steps of ten, for axes that span many.
DECADES = [10.0**power for power in range(-3, 7)]
#: How the width of a number format is drawn: shapes, since hues mean decoders.
WIDTH_SHAPES = {"16 bit": "circle", "8 bit": "square", "4 bit": "triangle-up"}


def roofline(roof: pd.DataFrame, points: pd.DataFrame, *, ridge_flop_per_byte: float, unit: str) -> Any:
    """Draw performance against intensity under one machine's roof, with named points and the two regions.

    Parameters
    ----------
    roof : DataFrame
        Columns ``intensity_flop_per_byte`` [FLOP/byte] and ``performance``, from the left edge to the right.
    points : DataFrame
        The same columns and ``label``.
    ridge_flop_per_byte : float
        Where the regions meet. [FLOP/byte]
    unit : str
        Unit of ``performance``.

    Returns
    -------
    altair chart
        Log-log.

    Examples
    --------
    >>> line = pd.DataFrame({"intensity_flop_per_byte": [1, 100], "performance": [1, 50]})
    >>> chart = roofline(line, line.assign(label="a"), ridge_flop_per_byte=50, unit="TFLOP/s").to_dict()
    >>> chart["layer"][0]["mark"]["type"]
    'rect'
    """
    left, right = float(roof["intensity_flop_per_byte"].min()), float(roof["intensity_flop_per_byte"].max())
    lowest = float(min(roof["performance"].min(), points["performance"].min()))
    x = alt.X(
        "intensity_flop_per_byte:Q",
        title="Arithmetic intensity (FLOP/byte)",
        scale=alt.Scale(type="log", nice=False, domain=[left, right]),
        axis=alt.Axis(values=DECADES, format="~g"),
    )
    y = alt.Y(
        "performance:Q",
        title=f"Performance ({unit})",
        # room above the roof for the names of the regions
        scale=alt.Scale(type="log", nice=False, domain=[lowest / 1.5, 6 * float(roof["performance"].max())]),
        axis=alt.Axis(values=DECADES, format="~g"),
    )
    tooltip = [
        alt.Tooltip("label:N", title="Pass"),
        alt.Tooltip("intensity_flop_per_byte:Q", title="FLOP/byte", format=",.3~g"),
        alt.Tooltip("performance:Q", title=unit, format=",.3~g"),
    ]
    bands = pd.DataFrame(
        [
            {"intensity_flop_per_byte": left, "until": ridge_flop_per_byte, "region": "memory-bound"},
            {"intensity_flop_per_byte": ridge_flop_per_byte, "until": right, "region": "compute-bound"},
        ]
    )
    layers: list[Any] = []
    for region in bands["region"]:
        base = alt.Chart(bands[bands["region"] == region])
        layers.append(base.mark_rect(color=theme.BANDS[region].colour).encode(x=x, x2="until:Q"))
        to_right = region == "compute-bound"
        layers.append(
            base.mark_text(
                align="right" if to_right else "left", baseline="top", dx=-6 if to_right else 6, color=theme.SOFT.colour
            ).encode(x=alt.X("until:Q") if to_right else x, y=alt.value(4), text="region:N")
        )
    rule = alt.Chart(bands[bands["region"] == "compute-bound"]).transform_calculate(
        ridge="'ridge ' + format(datum.intensity_flop_per_byte, '.3~g')"
    )
    layers += [
        rule.mark_rule(color=theme.SOFT.colour, strokeDash=[4, 3]).encode(x=x),
        label(
            rule.encode(x=x, y=alt.value("height"), text="ridge:N"),
            align="left",
            dx=5,
            dy=-10,
            color=theme.SOFT.colour,
        ),
        alt.Chart(roof).mark_line(color=theme.INK.colour).encode(x=x, y=y),
        alt.Chart(points).mark_point(color=theme.OWNED.colour, size=90, opacity=1).encode(x=x, y=y, tooltip=tooltip),
    ]
    on_roof = points["performance"] >= 0.98 * roof["performance"].max()
    for above in (False, True):
        if (on_roof == above).any():
            layers.append(
                label(
                    alt.Chart(points[on_roof == above]).encode(x=x, y=y, text="label:N"),
                    align="right" if above else "left",
                    dx=24 if above else 9,
                    dy=-14 if above else 9,
                    fontWeight=600,
                    color=theme.OWNED.colour,
                )
            )
    return alt.layer(*layers).properties(width="container", height=theme.HEIGHT)


def ridges(points: pd.DataFrame, *, low: float, high: float) -> Any:
    """Draw ridge points of accelerators by number format, with the band that a word covers.

    Parameters
    ----------
    points : DataFrame
        Columns ``accelerator``, ``width`` (a key of `WIDTH_SHAPES`), ``number_format``, ``ridge_flop_per_byte``
        [FLOP/byte], ``outside`` and ``assumed`` (bool). In the order in which the accelerators are to stand.
    low, high : float
        The band. [FLOP/byte]

    Returns
    -------
    altair chart
        Points outside the band carry their value; hollow marks rest on an assumed figure.

    Examples
    --------
    >>> row = {"accelerator": "a", "width": "8 bit", "number_format": "fp8", "ridge_flop_per_byte": 74.0}
    >>> frame = pd.DataFrame([row | {"outside": True, "assumed": False}])
    >>> ridges(frame, low=100, high=999).to_dict()["layer"][1]["mark"]["type"]
    'text'
    """
    x = alt.X(
        "ridge_flop_per_byte:Q",
        title="Ridge point (FLOP/byte)",
        scale=alt.Scale(type="log", nice=False, domain=[12, 6000]),
        axis=alt.Axis(values=[20, 50, 100, 200, 500, 1000, 2000], format="~g"),
    )
    y = alt.Y(
        "accelerator:N",
        title=None,
        sort=list(dict.fromkeys(points["accelerator"])),
        axis=alt.Axis(labelLimit=140, labelOverlap=False, ticks=False, domain=False, grid=True),
    )
    band = alt.Chart(pd.DataFrame([{"ridge_flop_per_byte": low, "until": high, "word": "hundreds"}]))
    shape = alt.Shape(
        "width:N",
        title=None,
        scale=alt.Scale(domain=list(WIDTH_SHAPES), range=list(WIDTH_SHAPES.values())),
        legend=alt.Legend(symbolFillColor=theme.INK.colour, symbolStrokeColor=theme.INK.colour, columns=3),
    )
    base = alt.Chart(points)
    marks = base.mark_point(
        color=theme.INK.colour, stroke=theme.INK.colour, size=50, strokeWidth=1.5, opacity=1
    ).encode(
        x=x,
        y=y,
        shape=shape,
        fillOpacity=alt.condition("datum.assumed", alt.value(0), alt.value(1)),
        tooltip=[
            alt.Tooltip("accelerator:N", title="Accelerator"),
            alt.Tooltip("number_format:N", title="Computes in"),
            alt.Tooltip("ridge_flop_per_byte:Q", title="Ridge (FLOP/byte)", format=",.0f"),
            alt.Tooltip("assumed:N", title="Assumed"),
        ],
    )
    # the widest format stands leftmost, its value before it
    text = alt.Text("ridge_flop_per_byte:Q", format=",.0f")
    widest = base.transform_filter("datum.outside && datum.width == '16 bit'").encode(x=x, y=y, text=text)
    narrower = base.transform_filter("datum.outside && datum.width != '16 bit'").encode(x=x, y=y, text=text)
    return alt.layer(
        band.mark_rect(color=theme.BANDS["overhead"].colour).encode(x=x, x2="until:Q"),
        band.mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=theme.SOFT.colour).encode(
            x=x, y=alt.value(0), text="word:N"
        ),
        marks,
        widest.mark_text(align="right", dx=-8, color=theme.INK.colour),
        narrower.mark_text(align="left", dx=8, color=theme.INK.colour),
    ).properties(width="container", height=19 * points["accelerator"].nunique())


def time_of_batch(curve: pd.DataFrame) -> Any:
    """Draw the time for each item against batch: what was measured, and the least that the roofs of the machine allow.

    Parameters
    ----------
    curve : DataFrame
        Columns ``batch`` [1], ``ms_per_item`` and ``least_ms_per_item`` [ms].

    Returns
    -------
    altair chart
        Log-log.

    Examples
    --------
    >>> frame = pd.DataFrame({"batch": [1, 2], "ms_per_item": [3.0, 2.0], "least_ms_per_item": [2.0, 1.0]})
    >>> time_of_batch(frame).to_dict()["layer"][1]["mark"]["type"]
    'point'
    """
    x = alt.X(
        "batch:Q",
        title="Batch (vectors at once)",
        scale=alt.Scale(type="log", base=2, nice=False, padding=10),
        axis=alt.Axis(values=sorted(set(curve["batch"].tolist())), format="~g"),
    )
    scale = alt.Scale(type="log", nice=True)
    ticks = alt.Axis(
        values=[round(digit * 10.0**power, 9) for power in range(-4, 4) for digit in (1, 2, 5)], format="~g"
    )
    base = alt.Chart(curve)
    line = base.mark_line(color=theme.INK.colour).encode(
        x=x, y=alt.Y("least_ms_per_item:Q", title="Time per vector (ms)", scale=scale, axis=ticks)
    )
    measured = base.mark_point(color=theme.OWNED.colour, size=80, opacity=1).encode(
        x=x,
        y=alt.Y("ms_per_item:Q", scale=scale, axis=ticks, title="Time per vector (ms)"),
        tooltip=[
            alt.Tooltip("batch:Q", title="Batch"),
            alt.Tooltip("ms_per_item:Q", title="Measured (ms)", format=",.3~g"),
            alt.Tooltip("least_ms_per_item:Q", title="Roofline (ms)", format=",.3~g"),
        ],
    )
    names = [
        label(
            base.transform_filter(f"datum.batch == {batch}")
            .transform_calculate(name=f"'{word}'")
            .encode(x=x, y=alt.Y(f"{column}:Q", scale=scale, axis=ticks, title="Time per vector (ms)"), text="name:N"),
            align=align,
            dx=dx,
            dy=dy,
            fontWeight=600,
            color=mark.colour,
        )
        for batch, word, column, align, dx, dy, mark in (
            (8, "measured", "ms_per_item", "left", 9, -7, theme.OWNED),
            (64, "least, by the roofs", "least_ms_per_item", "center", 0, 17, theme.INK),
        )
        if batch in set(curve["batch"])
    ]
    return alt.layer(line, measured, *names).properties(width="container", height=theme.HEIGHT)


#: How dense models and those with experts are drawn.
KINDS = {"dense": theme.AUTOREGRESSIVE, "sparse": theme.SPARSE}
#: What a tooltip says of a row.
POINT_WORDS = {
    "id:N": "Row",
    "source:N": "Source",
    "model:N": "Model",
    "accelerator:N": "GPU",
    "engine:N": "Engine",
    "regime:N": "Regime",
    "set:N": "Set",
}
POINT_SPEEDS = {"measured_tok_per_s:Q": "Measured (token/s)", "predicted_tok_per_s:Q": "Predicted (token/s)"}


def _predictions(points: pd.DataFrame, *, size: int) -> Any:
    """Draw predictions: hue and shape for the kind of model, filled where no constant has seen the row."""
    kinds = alt.Scale(domain=list(KINDS), range=[mark.colour for mark in KINDS.values()])
    legend = alt.Legend(columns=2, symbolOpacity=1)
    return (
        alt.Chart(points)
        .mark_point(size=size, strokeWidth=1, opacity=0.8)
        .encode(
            stroke=alt.Stroke("kind:N", title=None, scale=kinds, legend=legend),
            fill=alt.Fill("kind:N", title=None, scale=kinds, legend=legend),
            shape=alt.Shape(
                "kind:N",
                title=None,
                scale=alt.Scale(domain=list(KINDS), range=[mark.shape for mark in KINDS.values()]),
                legend=legend,
            ),
            fillOpacity=alt.condition("datum.set == 'validation'", alt.value(0.6), alt.value(0)),
            tooltip=[alt.Tooltip(name, title=title) for name, title in POINT_WORDS.items()]
            + [alt.Tooltip(name, title=title, format=",.3~g") for name, title in POINT_SPEEDS.items()],
        )
    )


def predicted_and_measured(points: pd.DataFrame, *, within: float) -> Any:
    """Draw predicted against measured speeds, with the diagonal and a band around it.

    Parameters
    ----------
    points : DataFrame
        Columns ``measured_tok_per_s`` and ``predicted_tok_per_s`` [token/s], ``kind`` (a key of `KINDS`), ``set``
        (``fit`` or ``validation``) and the words of the tooltip: ``id, source, model, accelerator, engine, regime``.
    within : float
        Half the width of the band, as a share of what was measured. [1]

    Returns
    -------
    altair chart
        Log-log; hollow marks are fitted rows.

    Examples
    --------
    >>> words = dict.fromkeys(["id", "source", "model", "accelerator", "engine", "regime"], "a")
    >>> row = words | {"kind": "dense", "set": "fit", "measured_tok_per_s": 10.0, "predicted_tok_per_s": 11.0}
    >>> predicted_and_measured(pd.DataFrame([row]), within=0.25).to_dict()["layer"][0]["mark"]["type"]
    'area'
    """
    both = points[["measured_tok_per_s", "predicted_tok_per_s"]]
    low, high = float(both.min().min()) / 1.3, float(both.max().max()) * 1.3
    ends = pd.DataFrame({"measured_tok_per_s": [low, high]})
    ends = ends.assign(
        below=(1 - within) * ends["measured_tok_per_s"],
        above=(1 + within) * ends["measured_tok_per_s"],
        equal=ends["measured_tok_per_s"],
    )
    scale = alt.Scale(type="log", nice=False, domain=[low, high])
    ticks = alt.Axis(values=[decade for decade in DECADES if low <= decade <= high], format=",")
    x = alt.X("measured_tok_per_s:Q", title="Measured (token/s)", scale=scale, axis=ticks)
    base = alt.Chart(ends)
    return alt.layer(
        base.mark_area(color=theme.BANDS["overhead"].colour, clip=True).encode(
            x=x,
            y=alt.Y("below:Q", title="Predicted (token/s)", scale=scale, axis=ticks, stack=None),
            y2="above:Q",
        ),
        base.mark_line(color=theme.SOFT.colour, strokeWidth=1).encode(x=x, y=alt.Y("equal:Q", scale=scale, axis=ticks)),
        _predictions(points, size=35).encode(x=x, y=alt.Y("predicted_tok_per_s:Q", scale=scale, axis=ticks)),
    ).properties(width="container", height=1.2 * theme.HEIGHT)


def misses(points: pd.DataFrame, medians: pd.DataFrame, *, within: float) -> Any:
    """Draw the ratio of predicted to measured speed, a strip for each regime, with a band and medians.

    Parameters
    ----------
    points : DataFrame
        As in `predicted_and_measured`, and ``speed_ratio`` and ``place`` (0 to 1, spreads the marks of a strip). [1]
    medians : DataFrame
        Columns ``regime`` and ``speed_ratio`` [1], in the order in which the strips are to stand.
    within : float
        Half the width of the band. [1]

    Returns
    -------
    altair chart
        Right of 1 the model is too fast.

    Examples
    --------
    >>> words = dict.fromkeys(["id", "source", "model", "accelerator", "engine", "regime"], "a")
    >>> row = words | {"kind": "dense", "set": "fit", "measured_tok_per_s": 10.0, "predicted_tok_per_s": 11.0}
    >>> frame = pd.DataFrame([row | {"speed_ratio": 1.1, "place": 0.5}])
    >>> misses(frame, frame[["regime", "speed_ratio"]], within=0.25).to_dict()["layer"][3]["mark"]["type"]
    'tick'
    """
    x = alt.X(
        "speed_ratio:Q",
        title="Predicted over measured speed",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(values=[0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4], format="~g"),
    )
    order = list(medians["regime"])
    y = alt.Y(
        "regime:N",
        title=None,
        sort=order,
        axis=alt.Axis(labelExpr="split(datum.label, ', ')", ticks=False, domain=False, grid=False, labelLimit=120),
    )
    band = pd.DataFrame([{"speed_ratio": 1 - within, "until": 1 + within}])
    one = pd.DataFrame([{"speed_ratio": 1.0}])
    place = alt.YOffset("place:Q", scale=alt.Scale(domain=[-0.15, 1.15]))
    return alt.layer(
        alt.Chart(band).mark_rect(color=theme.BANDS["overhead"].colour).encode(x=x, x2="until:Q"),
        alt.Chart(one).mark_rule(color=theme.SOFT.colour).encode(x=x),
        _predictions(points, size=25).encode(x=x, y=y, yOffset=place),
        alt.Chart(medians).mark_tick(color=theme.INK.colour, thickness=3, size=38).encode(x=x, y=y),
    ).properties(width="container", height=46 * len(order))


def step_parts(parts: pd.DataFrame) -> Any:
    """Draw steps as bars of parts that add up, each with its total and the least that physics grants.

    Parameters
    ----------
    parts : DataFrame
        Columns ``step`` (its name), ``part`` (a key of `theme.PARTS`), ``part_ms``, ``step_ms`` and ``floor_ms``
        [ms]. In the order in which the steps are to stand.

    Returns
    -------
    altair chart
        Linear from zero, for parts of a whole.

    Examples
    --------
    >>> row = {"step": "bf16, batch 1", "part": "weights", "part_ms": 5.0, "step_ms": 9.0, "floor_ms": 5.0}
    >>> step_parts(pd.DataFrame([row])).to_dict()["layer"][0]["mark"]["type"]
    'bar'
    """
    order = list(theme.PARTS)
    # room for the total behind the longest bar
    room = alt.Scale(domain=[0, 1.15 * float(parts["step_ms"].max())], nice=False)
    x = alt.X("part_ms:Q", title="Time of a step (ms)", stack="zero", scale=room)
    y = alt.Y(
        "step:N",
        title=None,
        sort=list(dict.fromkeys(parts["step"])),
        scale=alt.Scale(paddingInner=0.25),
        axis=alt.Axis(labelExpr="split(datum.label, ', ')", ticks=False, domain=False, labelLimit=120),
    )
    base = alt.Chart(parts.assign(rank=parts["part"].map(order.index)))
    bars = base.mark_bar(stroke=theme.PAPER.colour, strokeWidth=1).encode(
        x=x,
        y=y,
        color=alt.Color(
            "part:N",
            title=None,
            sort=order,
            scale=alt.Scale(domain=order, range=[mark.colour for mark in theme.PARTS.values()]),
            legend=alt.Legend(columns=3),
        ),
        order=alt.Order("rank:Q"),
        tooltip=[
            alt.Tooltip("step:N", title="Step"),
            alt.Tooltip("part:N", title="Part"),
            alt.Tooltip("part_ms:Q", title="Takes (ms)", format=".3~g"),
            alt.Tooltip("step_ms:Q", title="Whole step (ms)", format=".3~g"),
            alt.Tooltip("floor_ms:Q", title="Floor (ms)", format=".3~g"),
        ],
    )
    whole_steps = parts.drop_duplicates("step")[["step", "step_ms", "floor_ms"]]
    whole = alt.Chart(whole_steps)
    floor = whole.mark_tick(color=theme.INK.colour, thickness=2.5, size=26).encode(x=alt.X("floor_ms:Q"), y=y)
    total = whole.mark_text(align="left", dx=5, fontWeight=600, color=theme.INK.colour).encode(
        x=alt.X("step_ms:Q"), y=y, text=alt.Text("step_ms:Q", format=".1f")
    )
    return alt.layer(bars, floor, total).properties(width="container", height=40 * len(whole_steps))


#: The parts of an hour's cost: shades of one hue, and how dense each is.
HOUR_PARTS = {"price": 0.95, "capital": 0.8, "space": 0.58, "upkeep": 0.42, "energy": 0.28, "rent forgone": 0.16}


def hour_of_ownership(parts: pd.DataFrame) -> Any:
    """Draw what an hour of a node costs in each way to have it, a bar for each, stacked by its parts.

    Parameters
    ----------
    parts : DataFrame
        Columns ``way``, ``part`` (of ``HOUR_PARTS``), ``usd_per_node_hour`` [USD/node_hour]; ways in their order.

    Returns
    -------
    altair chart
        Horizontal bars with their sums written beside them.

    Examples
    --------
    >>> frame = pd.DataFrame({"way": ["rent"], "part": ["price"], "usd_per_node_hour": [55.0]})
    >>> hour_of_ownership(frame).to_dict()["layer"][0]["mark"]["type"]
    'bar'
    """
    order = list(HOUR_PARTS)
    y = alt.Y("way:N", title=None, sort=list(dict.fromkeys(parts["way"])), axis=alt.Axis(labelFontSize=13))
    base = alt.Chart(parts).transform_calculate(order=f"indexof({order!r}, datum.part)")
    bars = base.mark_bar(color=theme.OWNED.colour, stroke=theme.PAPER.colour, strokeWidth=1).encode(
        y=y,
        x=alt.X("usd_per_node_hour:Q", title="USD per node and hour", stack="zero"),
        opacity=alt.Opacity(
            "part:N",
            title=None,
            sort=order,
            scale=alt.Scale(type="ordinal", domain=order, range=list(HOUR_PARTS.values())),
            legend=alt.Legend(columns=3, symbolType="square", symbolFillColor=theme.OWNED.colour, symbolStrokeWidth=0),
        ),
        order=alt.Order("order:Q"),
        tooltip=[
            alt.Tooltip("way:N", title="Way"),
            alt.Tooltip("part:N", title="Part"),
            alt.Tooltip("usd_per_node_hour:Q", title="USD/node-hour", format=",.2f"),
        ],
    )
    sums = label(
        alt.Chart(parts)
        .transform_aggregate(total="sum(usd_per_node_hour)", groupby=["way"])
        .encode(y=y, x="total:Q", text=alt.Text("total:Q", format=",.2f")),
        align="left",
        dx=6,
        fontWeight=600,
        color=theme.INK.colour,
    )
    return alt.layer(bars, sums).properties(width="container", height=44 * parts["way"].nunique())


def requests_of_utilization(costs: pd.DataFrame, bills: pd.DataFrame) -> Any:
    """Cost of a thousand requests against utilization, a line for each way to have the node, a rule for each API.

    Parameters
    ----------
    costs : DataFrame
        Columns ``way``, ``utilization`` [1], ``usd``, ``low`` and ``high`` [USD per 1,000 requests].
    bills : DataFrame
        Columns ``label`` and ``usd`` [USD per 1,000 requests].

    Returns
    -------
    altair chart
        Log-log, with a band from the slowest to the fastest node around each line.

    Examples
    --------
    >>> costs = pd.DataFrame({"way": ["sunk"], "utilization": [1.0], "usd": [2.0], "low": [1.0], "high": [4.0]})
    >>> requests_of_utilization(costs, pd.DataFrame({"label": ["API"], "usd": [3.0]})).to_dict()["layer"][0]["mark"]
    {'type': 'rule', 'color': '#6e7781'}
    """
    ways = list(dict.fromkeys(costs["way"]))
    dashes = [[1, 0], [8, 3], [8, 3, 2, 3], list(theme.SUNK.dash)]
    x = alt.X(
        "utilization:Q",
        title="Utilization",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(values=UTILIZATION_TICKS, format="~%"),
    )
    y = alt.Y(
        "usd:Q",
        title="USD per 1,000 requests",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(values=COST_TICKS, format="~g"),
    )
    rules = (
        alt.Chart(bills)
        .mark_rule(color=theme.API.colour)
        .encode(
            y=y,
            tooltip=[
                alt.Tooltip("label:N", title="API"),
                alt.Tooltip("usd:Q", title="USD per 1,000 requests", format=",.2f"),
            ],
        )
    )
    texts = label(
        alt.Chart(bills).encode(y=y, x=alt.value("width"), text="label:N"),
        align="right",
        dx=-4,
        dy=-7,
        color=theme.SOFT.colour,
    )
    bands = (
        alt.Chart(costs)
        .mark_area(color=theme.OWNED.colour, opacity=0.1)
        .encode(x=x, y=alt.Y("low:Q", title="USD per 1,000 requests"), y2="high:Q", detail="way:N")
    )
    lines = (
        alt.Chart(costs)
        .mark_line(color=theme.OWNED.colour)
        .encode(
            x=x,
            y=y,
            strokeDash=alt.StrokeDash("way:N", scale=alt.Scale(domain=ways, range=dashes[: len(ways)]), legend=None),
            tooltip=[
                alt.Tooltip("way:N", title="Way"),
                alt.Tooltip("utilization:Q", title="Utilization", format=".0%"),
                alt.Tooltip("usd:Q", title="USD per 1,000 requests", format=",.2f"),
                alt.Tooltip("low:Q", title="fastest node", format=",.2f"),
                alt.Tooltip("high:Q", title="slowest node", format=",.2f"),
            ],
        )
    )
    names = label(
        alt.Chart(costs)
        .transform_joinaggregate(start="min(utilization)", groupby=["way"])
        .transform_filter("datum.utilization == datum.start")
        .encode(x=x, y=y, text="way:N"),
        align="left",
        dx=6,
        dy=-4,
        fontWeight=600,
        color=theme.OWNED.colour,
    )
    return alt.layer(rules, bands, lines, texts, names).properties(width="container", height=theme.HEIGHT)


def share_answered(waits: pd.DataFrame, *, budget_s: float) -> Any:
    """Share of served models that have answered after a time, with the budget as a rule.

    Parameters
    ----------
    waits : DataFrame
        Columns ``model``, ``e2e_s`` [s], ``share`` [1], in rising order.
    budget_s : float
        The wait that is allowed. [s]

    Returns
    -------
    altair chart
        A staircase over a log axis, a point for each model.

    Examples
    --------
    >>> frame = pd.DataFrame({"model": ["a"], "e2e_s": [2.5], "share": [1.0]})
    >>> len(share_answered(frame, budget_s=1.0).to_dict()["layer"])
    3
    """
    x = alt.X(
        "e2e_s:Q",
        title="Seconds until the last of 500 tokens",
        scale=alt.Scale(type="log", nice=False, domainMin=budget_s * 0.8),
        axis=alt.Axis(values=[0.5, 1, 2, 5, 10, 20, 50, 100], format="~g"),
    )
    y = alt.Y("share:Q", title="Share of models", axis=alt.Axis(format=".0%"), scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(waits)
    steps = base.mark_line(color=theme.API.colour, interpolate="step-after").encode(x=x, y=y)
    points = base.mark_point(color=theme.API.colour, size=36).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("model:N", title="Model"),
            alt.Tooltip("e2e_s:Q", title="Seconds", format=",.2f"),
            alt.Tooltip("share:Q", title="Share answered", format=".0%"),
        ],
    )
    budget = alt.Chart(pd.DataFrame({"e2e_s": [budget_s], "budget": [f"{budget_s:g} s"]})).encode(x=x)
    rule = budget.mark_rule(color=theme.INK.colour) + label(
        budget.encode(y=alt.value(8), text="budget:N"), align="left", dx=5, fontWeight=600, color=theme.INK.colour
    )
    return alt.layer(rule, steps, points).properties(width="container", height=theme.HEIGHT)


#: Ticks of ratios, tokens and times, in steps that people use.
PLAIN_TICKS = [round(digit * 10.0**power, 9) for power in range(-3, 7) for digit in (1, 2, 5)]
#: What the constants of the model saw, and what they did not: a shape each.
SET_SHAPES = {"judged only": "circle", "fitted": "square"}


def cells(
    frame: pd.DataFrame, value: str, *, bounds: list[float], classes: list[str], outside: str | None = None
) -> pd.DataFrame:
    """Write the cells of `grid_map`: two digits of a number, and its class.

    Parameters
    ----------
    frame : DataFrame
        With the column ``value``, and with ``outside`` also ``fits`` (bool).
    value : str
        Column with the number.
    bounds : list of float
        Where one class ends and the next begins.
    classes : list of str
        One more than bounds.
    outside : str, optional
        The class of what does not fit.

    Returns
    -------
    DataFrame
        The frame with ``text`` and ``class``.

    Examples
    --------
    >>> cells(pd.DataFrame({"a": [7.86, 45.2]}), "a", bounds=[10], classes=["low", "high"])["text"].tolist()
    ['7.9', '45']
    """
    numbers = frame[value]
    names = pd.cut(numbers, [-float("inf"), *bounds, float("inf")], labels=classes, right=False).astype(str)
    text = numbers.map(_two_digits)
    if outside is not None:
        names, text = names.where(frame["fits"], outside), text.where(frame["fits"], "–")
    return frame.assign(text=text, **{"class": names})


def _two_digits(number: float) -> str:
    """Write a number in the room of a cell."""
    if number < 0.1:
        return f"{number:.1g}"
    places = 0 if number >= 9.95 else 1 if number >= 0.995 else 2
    return f"{number:.{places}f}"


def grid_map(
    shaded: pd.DataFrame, *, x: str, y: str, x_title: str, y_title: str, classes: list[str], outside: str | None = None
) -> Any:
    """Draw a map of one number over two inputs: the number in each cell, its class as the shade.

    Parameters
    ----------
    shaded : DataFrame
        Columns ``x`` and ``y`` (names below), ``text`` (what the cell says) and ``class``, one of ``classes`` or
        ``outside``. Rows of the map in the order of the frame.
    x, y : str
        Columns with the inputs.
    x_title, y_title : str
    classes : list of str
        Up to three, the least first.
    outside : str, optional
        The class of cells that cannot be; they stay empty.

    Returns
    -------
    altair chart

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [1, 2], "b": [8, 8], "text": ["3", "9"], "class": ["low", "high"]})
    >>> chart = grid_map(frame, x="a", y="b", x_title="A", y_title="B", classes=["low", "high"]).to_dict()
    >>> chart["layer"][0]["encoding"]["color"]["scale"]["domain"]
    ['low', 'high']
    """
    empty = [outside] if outside in set(shaded["class"]) else []
    names = [*classes, *empty]
    shades = [mark.colour for mark in theme.STEPS[: len(classes)]] + [theme.PAPER.colour for _ in empty]
    base = alt.Chart(shaded).encode(
        x=alt.X(f"{x}:O", title=x_title, axis=alt.Axis(labelAngle=0, format=",.0f", ticks=False, domain=False)),
        y=alt.Y(f"{y}:O", title=y_title, sort="descending", axis=alt.Axis(format=",.0f", ticks=False, domain=False)),
    )
    squares = base.mark_rect(stroke=theme.GRID.colour, strokeWidth=1).encode(
        color=alt.Color(
            "class:N",
            title=None,
            scale=alt.Scale(domain=names, range=shades),
            legend=alt.Legend(symbolType="square", symbolStrokeColor=theme.SOFT.colour, symbolStrokeWidth=1),
        ),
        tooltip=[
            alt.Tooltip(f"{y}:Q", title=y_title, format=",.0f"),
            alt.Tooltip(f"{x}:Q", title=x_title, format=",.0f"),
            alt.Tooltip("text:N", title="Value"),
            alt.Tooltip("class:N", title="Class"),
        ],
    )
    texts = base.mark_text(color=theme.INK.colour, fontSize=12).encode(text="text:N")
    return alt.layer(squares, texts).properties(width="container", height=30 * shaded[y].nunique())


def named_lines(
    lines: pd.DataFrame,
    *,
    x: str,
    y: str,
    x_title: str,
    y_title: str,
    x_ticks: list[float],
    marks: list[theme.Mark],
    y_log: bool = True,
    y_format: str = "~g",
    rule: tuple[str, float] | None = None,
    names_at: str = "end",
    width_of_names: int = 90,
    points: pd.DataFrame | None = None,
) -> Any:
    """Draw one line for each name, the name written at its end; measured points on request.

    Parameters
    ----------
    lines : DataFrame
        Columns ``x``, ``y`` (names below) and ``name``.
    x, y : str
        Columns.
    x_title, y_title : str
        With units.
    x_ticks : list of float
        Ticks of the log axis.
    marks : list of Mark
        How each name is drawn, in the order in which they first occur; only colour and dash.
    y_log : bool
        False for a share, which starts at zero.
    y_format : str
        Format of the vertical ticks and values.
    rule : (str, float), optional
        Words and height of a level to compare with.
    names_at : {"end", "start"}
    width_of_names : int
        Room that the names take beside the lines. [pixel]
    points : DataFrame, optional
        Measured: the columns of ``lines``, ``set`` (a key of `SET_SHAPES`) and ``source``.

    Returns
    -------
    altair chart

    Examples
    --------
    >>> frame = pd.DataFrame({"batch": [1, 2], "gain": [1.0, 1.9], "name": "a"})
    >>> axes = {"x": "batch", "y": "gain", "x_title": "Batch", "y_title": "Gain", "x_ticks": [1, 2]}
    >>> named_lines(frame, **axes, marks=[theme.AUTOREGRESSIVE]).to_dict()["layer"][0]["mark"]["type"]
    'line'
    """
    lines = lines.reset_index(drop=True)
    names = list(dict.fromkeys(lines["name"]))
    left, right = float(lines[x].min()), float(lines[x].max())
    across = alt.X(
        f"{x}:Q",
        title=x_title,
        scale=alt.Scale(type="log", nice=False, domain=[left, right], range=_beside(names_at, width_of_names)),
        axis=alt.Axis(values=[tick for tick in x_ticks if left <= tick <= right], format=",.0f"),
    )
    scale = alt.Scale(type="log", nice=False, padding=12) if y_log else alt.Scale(zero=True, nice=True)
    up = alt.Y(
        f"{y}:Q",
        title=y_title,
        scale=scale,
        axis=alt.Axis(values=PLAIN_TICKS, format=y_format) if y_log else alt.Axis(format=y_format, tickCount=6),
    )
    hue = alt.Color("name:N", scale=alt.Scale(domain=names, range=[mark.colour for mark in marks]), legend=None)
    base = alt.Chart(lines)
    tooltip = [
        alt.Tooltip("name:N", title="Line"),
        alt.Tooltip(f"{x}:Q", title=x_title, format=",.4~g"),
        alt.Tooltip(f"{y}:Q", title=y_title, format=y_format if "%" in y_format else ",.3~g"),
    ]
    drawn = base.mark_line().encode(
        x=across,
        y=up,
        color=hue,
        strokeDash=alt.StrokeDash(
            "name:N", scale=alt.Scale(domain=names, range=[list(mark.dash) or [1, 0] for mark in marks]), legend=None
        ),
        tooltip=tooltip,
    )
    layers: list[Any] = [drawn]
    if rule is not None:
        level = alt.Chart(pd.DataFrame([{y: rule[1], "word": rule[0]}]))
        layers.append(level.mark_rule(color=theme.API.colour).encode(y=up))
        # away from the names
        side, align = (4, "left") if names_at == "end" else ("width", "right")
        layers.append(
            label(level.encode(x=alt.value(side), y=up, text="word:N"), align=align, dy=-8, color=theme.SOFT.colour)
        )
    if points is not None:
        layers.append(_measured(points, across, up, hue, tooltip))
    ends = lines.loc[lines.groupby("name", sort=False)[x].agg("idxmax" if names_at == "end" else "idxmin")]
    layers.append(
        label(
            alt.Chart(ends).encode(x=across, y=up, text="name:N", color=hue),
            align="left" if names_at == "end" else "right",
            dx=7 if names_at == "end" else -7,
            fontWeight=600,
        )
    )
    return alt.layer(*layers).properties(width="container", height=theme.HEIGHT)


def _beside(names_at: str, room: int) -> list[Any]:
    """Leave room for the names beside the lines."""
    if names_at == "end":
        return [0, {"expr": f"width - {room}"}]
    return [room, {"expr": "width"}]


def _measured(points: pd.DataFrame, across: Any, up: Any, hue: Any, tooltip: list[Any]) -> Any:
    shapes = [name for name in SET_SHAPES if name in set(points["set"])]
    return (
        alt.Chart(points)
        .mark_point(size=60, opacity=1, strokeWidth=1, stroke=theme.PAPER.colour)
        .encode(
            x=across,
            y=up,
            color=hue,
            shape=alt.Shape(
                "set:N",
                title="Measured",
                scale=alt.Scale(domain=shapes, range=[SET_SHAPES[name] for name in shapes]),
                legend=alt.Legend(symbolFillColor=theme.INK.colour, symbolStrokeColor=theme.INK.colour),
            ),
            tooltip=[*tooltip, alt.Tooltip("set:N", title="Set"), alt.Tooltip("source:N", title="Source")],
        )
    )


def ratios(rows: pd.DataFrame, *, title: str, low: float, high: float, word: str) -> Any:
    """Draw measured ratios as marks and predicted ones as strokes, one row each, with the band that a text states.

    Parameters
    ----------
    rows : DataFrame
        Columns ``name``, ``measured``, ``predicted`` (may be absent), ``set`` (a key of `SET_SHAPES`, or other words
        where nothing is predicted), ``source``. In the order in which they are to stand.
    title : str
        Of the axis.
    low, high : float
        The band.
    word : str
        What the band is called.

    Returns
    -------
    altair chart

    Examples
    --------
    >>> row = {"name": "a", "measured": 12.0, "predicted": 13.0, "set": "fitted", "source": "s"}
    >>> chart = ratios(pd.DataFrame([row]), title="Ratio", low=10, high=30, word="article").to_dict()
    >>> chart["layer"][0]["mark"]["type"]
    'rect'
    """
    most = float(rows[["measured", "predicted"]].max().max())
    x = alt.X(
        "measured:Q",
        title=title,
        scale=alt.Scale(type="log", nice=False, domain=[1, 1.15 * most]),
        axis=alt.Axis(values=PLAIN_TICKS, format="~g"),
    )
    y = alt.Y(
        "name:N",
        title=None,
        sort=list(rows["name"]),
        axis=alt.Axis(labelLimit=185, labelOverlap=False, ticks=False, domain=False, grid=True),
    )
    shapes = {name: SET_SHAPES.get(name, "diamond") for name in dict.fromkeys(rows["set"])}
    band = alt.Chart(pd.DataFrame([{"measured": low, "until": high, "word": word}]))
    tooltip = [
        alt.Tooltip("name:N", title="Run"),
        alt.Tooltip("measured:Q", title="Measured", format=",.1f"),
        alt.Tooltip("predicted:Q", title="Predicted", format=",.1f"),
        alt.Tooltip("set:N", title="Set"),
        alt.Tooltip("source:N", title="Source"),
    ]
    base = alt.Chart(rows).encode(y=y, tooltip=tooltip)
    return alt.layer(
        band.mark_rect(color=theme.BANDS["overhead"].colour).encode(x=x, x2="until:Q"),
        band.mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=theme.SOFT.colour).encode(
            x=x, y=alt.value(0), text="word:N"
        ),
        base.mark_tick(color=theme.INK.colour, thickness=2.5, size=15).encode(x=alt.X("predicted:Q", title=title)),
        base.mark_point(color=theme.OWNED.colour, size=70, opacity=1).encode(
            x=x,
            shape=alt.Shape(
                "set:N",
                title=None,
                scale=alt.Scale(domain=list(shapes), range=list(shapes.values())),
                legend=alt.Legend(
                    symbolFillColor=theme.OWNED.colour,
                    symbolStrokeColor=theme.OWNED.colour,
                    columns=1,
                ),
            ),
        ),
    ).properties(width="container", height=20 * len(rows))


def trade(curve: pd.DataFrame, points: pd.DataFrame) -> Any:
    """Draw what a batch trades: speed of each stream against tokens of all, batches written beside the line.

    Parameters
    ----------
    curve : DataFrame
        Predicted: ``stream_tok_per_s``, ``node_tok_per_s`` [token/s], ``batch`` [1], ``name``, by batch.
    points : DataFrame
        Measured: the same, ``set`` (a key of `SET_SHAPES`) and ``source``.

    Returns
    -------
    altair chart

    Examples
    --------
    >>> line = {"stream_tok_per_s": [50.0, 40.0], "node_tok_per_s": [50.0, 80.0], "batch": [1, 2], "name": "a"}
    >>> frame = pd.DataFrame(line)
    >>> trade(frame, frame.assign(set="fitted", source="s")).to_dict()["layer"][0]["mark"]["type"]
    'line'
    """
    names = list(dict.fromkeys(curve["name"]))
    x = alt.X(
        "stream_tok_per_s:Q",
        title="Speed of one stream (token/s)",
        scale=alt.Scale(zero=True, nice=True),
        axis=alt.Axis(tickCount=6),
    )
    y = alt.Y(
        "node_tok_per_s:Q",
        title="All streams together (token/s)",
        # room above the largest batch for the name
        scale=alt.Scale(type="log", nice=False, padding=34),
        axis=alt.Axis(values=PLAIN_TICKS, format=",.0f"),
    )
    hue = alt.Color(
        "name:N", scale=alt.Scale(domain=names, range=[theme.OWNED.colour, theme.INK.colour][: len(names)]), legend=None
    )
    dash = alt.StrokeDash("name:N", scale=alt.Scale(domain=names, range=[[1, 0], [6, 3]][: len(names)]), legend=None)
    tooltip = [
        alt.Tooltip("name:N", title="Work"),
        alt.Tooltip("batch:Q", title="Batch", format=",.0f"),
        alt.Tooltip("stream_tok_per_s:Q", title="Stream (token/s)", format=",.0f"),
        alt.Tooltip("node_tok_per_s:Q", title="All (token/s)", format=",.0f"),
    ]
    lines = alt.Chart(curve).mark_line().encode(x=x, y=y, color=hue, strokeDash=dash, order="batch:Q", tooltip=tooltip)
    biggest = curve.loc[curve.groupby("name", sort=False)["batch"].idxmax()]
    batches = points.assign(text=points["batch"].map("{:.0f}".format))
    return alt.layer(
        lines,
        _measured(points, x, y, hue, tooltip),
        label(alt.Chart(batches).encode(x=x, y=y, text="text:N", color=hue), align="left", dx=8, dy=-5),
        label(alt.Chart(biggest).encode(x=x, y=y, text="name:N", color=hue), align="center", dy=-26, fontWeight=600),
    ).properties(width="container", height=theme.HEIGHT)


def parts(bars: pd.DataFrame, *, name_title: str, x_title: str) -> Any:
    """Draw bars made of parts, each part's size written on it where there is room.

    Parameters
    ----------
    bars : DataFrame
        Columns ``name``, ``part`` (a key of the theme's PARTS), ``size``, ``text`` (may be empty). Bars in the
        order of the frame, parts in the order of the theme.
    name_title, x_title : str

    Returns
    -------
    altair chart

    Examples
    --------
    >>> frame = pd.DataFrame({"name": ["a"], "part": ["reading"], "size": [3.0], "text": ["3"]})
    >>> parts(frame, name_title="GPUs", x_title="ms").to_dict()["layer"][0]["mark"]["type"]
    'bar'
    """
    order = list(theme.WORK)
    ranked = bars.assign(rank=bars["part"].map(order.index)).sort_values("rank", kind="stable")
    ends = ranked.groupby("name", sort=False)["size"].cumsum()
    ranked = ranked.assign(start=ends - ranked["size"], end=ends, middle=ends - ranked["size"] / 2)
    y = alt.Y("name:N", title=name_title, sort=list(dict.fromkeys(bars["name"])), axis=alt.Axis(ticks=False))
    base = alt.Chart(ranked)
    return alt.layer(
        base.mark_bar(stroke=theme.PAPER.colour, strokeWidth=1).encode(
            x=alt.X("start:Q", title=x_title, axis=alt.Axis(tickCount=6)),
            x2="end:Q",
            y=y,
            color=alt.Color(
                "part:N",
                title=None,
                scale=alt.Scale(domain=order, range=[mark.colour for mark in theme.WORK.values()]),
                legend=alt.Legend(symbolType="square", symbolStrokeWidth=0, columns=2),
            ),
            tooltip=[
                alt.Tooltip("name:N", title=name_title),
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("size:Q", title=x_title, format=",.3~g"),
            ],
        ),
        base.mark_text(color=theme.INK.colour).encode(x="middle:Q", y=y, text="text:N"),
    ).properties(width="container", height=34 * bars["name"].nunique())


def agreement(points: pd.DataFrame, *, unit: str, within: float) -> Any:
    """Draw predicted against measured numbers, the line on which they agree, and a band around it.

    Parameters
    ----------
    points : DataFrame
        Columns ``measured``, ``predicted``, ``name``, ``set`` (a key of `SET_SHAPES`), ``source``, ``group`` (words
        by which two or three kinds are told apart by colour).
    unit : str
        Of both.
    within : float
        Half-width of the band. [1]

    Returns
    -------
    altair chart
        Log-log.

    Examples
    --------
    >>> row = {"measured": 10.0, "predicted": 11.0, "name": "a", "set": "fitted", "source": "s", "group": "g"}
    >>> agreement(pd.DataFrame([row]), unit="ms", within=0.25).to_dict()["layer"][0]["mark"]["type"]
    'area'
    """
    both = points[["measured", "predicted"]]
    low, high = float(both.min().min()) / 1.3, float(both.max().max()) * 1.3
    ends = pd.DataFrame({"measured": [low, high]})
    ends = ends.assign(least=ends["measured"] * (1 - within), most=ends["measured"] * (1 + within))
    axis = alt.Axis(values=[tick for tick in PLAIN_TICKS if low <= tick <= high], format=",~g")
    scale = alt.Scale(type="log", nice=False, domain=[low, high])
    x = alt.X("measured:Q", title=f"Measured ({unit})", scale=scale, axis=axis)
    up: dict[str, Any] = {"title": f"Predicted ({unit})", "scale": scale, "axis": axis}
    groups = list(dict.fromkeys(points["group"]))
    hues = [theme.OWNED.colour, theme.INK.colour, theme.API.colour][: len(groups)]
    shapes = [name for name in SET_SHAPES if name in set(points["set"])]
    dots = (
        alt.Chart(points)
        .mark_point(size=70, opacity=1)
        .encode(
            x=x,
            y=alt.Y("predicted:Q", **up),
            color=alt.Color(
                "group:N", title=None, scale=alt.Scale(domain=groups, range=hues), legend=alt.Legend(columns=1)
            ),
            shape=alt.Shape(
                "set:N",
                title=None,
                scale=alt.Scale(domain=shapes, range=[SET_SHAPES[name] for name in shapes]),
                legend=alt.Legend(symbolFillColor=theme.INK.colour, symbolStrokeColor=theme.INK.colour, columns=1),
            ),
            tooltip=[
                alt.Tooltip("name:N", title="Run"),
                alt.Tooltip("measured:Q", title=f"Measured ({unit})", format=",.3~g"),
                alt.Tooltip("predicted:Q", title=f"Predicted ({unit})", format=",.3~g"),
                alt.Tooltip("set:N", title="Set"),
                alt.Tooltip("source:N", title="Source"),
            ],
        )
    )
    base = alt.Chart(ends)
    return alt.layer(
        base.mark_area(color=theme.BANDS["overhead"].colour, clip=True).encode(
            x=x, y=alt.Y("least:Q", **up), y2="most:Q"
        ),
        base.mark_line(color=theme.SOFT.colour, strokeWidth=1.5).encode(x=x, y=alt.Y("measured:Q", **up)),
        dots,
    ).properties(width="container", height=theme.HEIGHT)
