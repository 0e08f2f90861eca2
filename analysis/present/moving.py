"""Charts that the reader moves: sliders, and a line computed in the page from the derivation itself.

`line` takes an expression, says which symbol runs along the axis and which have sliders, and returns a chart whose
numbers Vega computes from what `analysis.present.vega` prints. The axes stand still, so that what moves is the line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from sympy import Expr, Integer, Piecewise, Symbol, lambdify

from analysis.inputs import InputError
from analysis.present import charts, theme, vega
from analysis.symbolic import cost, decoders, decoding, roofline
from analysis.symbols import (
    ANSWER_PASSES,
    API_PRICE,
    BASE_TIME,
    BYTES_PER_WEIGHT,
    CONTEXT,
    CONTEXT_SCALE,
    FLOP_PER_WEIGHT,
    KAPPA,
    MEM_BW,
    N_MATMUL,
    OVERHEAD,
    PASS_TIME,
    PEAK,
    POSITION_TIME,
    POSITIONS,
    PRICE,
    PROMPT_TIME,
    RIDGE_POSITIONS,
    SEC_PER_HOUR,
    SEQ_POSITIONS,
    SEQUENCE_TIME,
    SEQUENCES,
    STREAMED,
    TOK_PER_MTOK,
    TOKENS_KEPT,
    TPUT,
    UTIL,
    WEIGHTS,
    with_constants,
)


@dataclass(frozen=True)
class Slider:
    """A symbol that the reader sets.

    Parameters
    ----------
    symbol : Symbol
        In the units of the label.
    label : str
        What a reader sees, with the unit.
    low, high, step : float
        Ends and step of the slider.
    value : float
        Where it starts.
    """

    symbol: Symbol
    label: str
    low: float
    high: float
    step: float
    value: float


@dataclass(frozen=True)
class Axis:
    """An axis that stands still: its title with the unit, its ends, its ticks, whether it counts by ratios."""

    title: str
    low: float
    high: float
    ticks: Sequence[float]
    format: str = "~g"
    log: bool = True

    def encoding(self, field: str, kind: Any) -> Any:
        """Make Altair's channel for a field on this axis."""
        scale = alt.Scale(type="log" if self.log else "linear", nice=False, domain=[self.low, self.high])
        axis = alt.Axis(values=list(self.ticks), format=self.format)
        return kind(f"{field}:Q", title=self.title, scale=scale, axis=axis)


@dataclass(frozen=True)
class Mark:
    """A rule at a computed place, with its value written on it; not drawn where it lies outside the axis.

    Parameters
    ----------
    value : Expr
        Where it is.
    words : str
        What is written before the value.
    format : str
        How the value is written, in the notation of d3-format; not at all if empty.
    mark : theme.Mark
        Its hue.
    """

    value: Expr
    words: str
    format: str = ",.3~r"
    mark: theme.Mark = theme.API


def line(
    value: Expr,
    *,
    along: Symbol,
    x: Axis,
    y: Axis,
    sliders: Sequence[Slider],
    verticals: Sequence[Mark] = (),
    horizontals: Sequence[Mark] = (),
    mark: theme.Mark = theme.OWNED,
    points: int = 81,
) -> Any:
    """Draw an expression along one of its symbols, with sliders for the others.

    Parameters
    ----------
    value : Expr
        What is drawn, in the unit of the y axis; all its symbols but one have sliders.
    along : Symbol
        What runs along the x axis.
    x, y : Axis
    sliders : sequence of Slider
    verticals, horizontals : sequence of Mark
        Rules at computed places, of the symbols that have sliders.
    mark : theme.Mark
        Hue of the line.
    points : int
        Of the line.

    Returns
    -------
    altair chart
        Its folded table holds the line where the sliders start.

    Raises
    ------
    InputError
        If a symbol has neither a slider nor the axis, a slider starts outside its ends, or a form has no counterpart
        in Vega.

    Examples
    --------
    >>> from analysis.symbolic.cost import cost_per_mtok
    >>> from analysis.symbols import PRICE, TPUT, UTIL, with_constants
    >>> chart = line(
    ...     with_constants(cost_per_mtok()),
    ...     along=UTIL,
    ...     x=Axis("Utilization", 0.01, 1, [0.01, 0.1, 1]),
    ...     y=Axis("USD/Mtok", 0.1, 1000, [1, 10, 100]),
    ...     sliders=[Slider(PRICE, "Node (USD/hour)", 1, 120, 1, 33), Slider(TPUT, "Token/s", 100, 9000, 100, 3000)],
    ... )
    >>> spec = chart.to_dict()
    >>> [param["name"] for param in spec["params"]], spec["layer"][0]["transform"][0]["calculate"]
    (['price', 'node_tput'], '(2500 * toNumber(price))/(9 * toNumber(node_tput) * datum.along)')
    """
    inputs = [slider.symbol for slider in sliders]
    for slider in sliders:
        if not slider.low <= slider.value <= slider.high:
            raise InputError(f"slider {slider.symbol}", slider.value, f"a value from {slider.low:g} to {slider.high:g}")
    for part in (value, *(rule.value for rule in (*verticals, *horizontals))):
        for symbol in sorted(part.free_symbols - {*inputs, *([along] if part is value else [])}, key=str):
            raise InputError("symbol", str(symbol), "one with a slider")
    start = {slider.symbol: slider.value for slider in sliders}
    grid = np.geomspace(x.low, x.high, points) if x.log else np.linspace(x.low, x.high, points)
    rows = pd.DataFrame({"along": grid, "start": _at(value, {**start, along: grid})})
    across, up = x.encoding("along", alt.X), y.encoding("now", alt.Y)
    drawn = (
        alt.Chart(rows)
        .transform_calculate(now=vega.expression(value, names={along: "datum.along"}, inputs=inputs))
        .mark_line(color=mark.colour, clip=True)
        .encode(
            x=across,
            y=up,
            tooltip=[
                alt.Tooltip("along:Q", title=x.title, format=",.3~r"),
                alt.Tooltip("now:Q", title=y.title, format=",.3~r"),
                alt.Tooltip("start:Q", title=f"{y.title}, where the sliders start", format=",.3~r"),
            ],
        )
    )
    params = [
        alt.param(
            name=slider.symbol.name,
            value=slider.value,
            bind=alt.binding_range(min=slider.low, max=slider.high, step=slider.step, name=f"{slider.label} "),
        )
        for slider in sliders
    ]
    layers = [drawn]
    layers += [_rule(rule, x, "along", inputs, start, vertical=True) for rule in verticals]
    layers += [_rule(rule, y, "now", inputs, start, vertical=False) for rule in horizontals]
    return alt.layer(*layers).add_params(*params).properties(width="container", height=theme.HEIGHT)


def _at(value: Expr, values: Mapping[Symbol, Any]) -> Any:
    symbols = sorted(values, key=str)
    # over a price of nothing a ratio has no end, in NumPy as in the page
    with np.errstate(divide="ignore", invalid="ignore"):
        return lambdify(symbols, value, "numpy")(*(np.asarray(values[symbol], float) for symbol in symbols))


def _rule(
    rule: Mark, axis: Axis, field: str, inputs: Sequence[Symbol], start: Mapping[Symbol, float], *, vertical: bool
) -> Any:
    """Draw a rule where an expression says, and write its value beside it."""
    at = float(_at(rule.value, start))
    first = pd.DataFrame([{"words": rule.words, "start": at if np.isfinite(at) else None}])
    written = f"datum.words + ' ' + format(datum.{field}, '{rule.format}')" if rule.format else "datum.words"
    inside = f"datum.{field} >= {axis.low} && datum.{field} <= {axis.high}"
    base = (
        alt.Chart(first)
        .transform_calculate(**{field: vega.expression(rule.value, inputs=inputs)})
        .transform_filter(inside)
        .transform_calculate(text=written)
    )
    place = axis.encoding(field, alt.X if vertical else alt.Y)
    if vertical:
        # over the line, on the side where there is room
        far = f"datum.{field} > {np.sqrt(axis.low * axis.high) if axis.log else (axis.low + axis.high) / 2}"
        texts = [
            charts.label(
                base.transform_filter(f"{'' if right else '!'}({far})").encode(
                    x=place, y=alt.value(0), text="text:N", tooltip=alt.Tooltip("start:Q", title=rule.words)
                ),
                align="right" if right else "left",
                dx=-6 if right else 6,
                dy=10,
                color=theme.SOFT.colour,
            )
            for right in (False, True)
        ]
        drawn = base.mark_rule(color=rule.mark.colour, strokeDash=[6, 4]).encode(x=place)
        return alt.layer(drawn, *texts)
    texts = [
        charts.label(
            base.encode(x=alt.value("width"), y=place, text="text:N"),
            align="right",
            dx=-4,
            dy=-7,
            color=theme.SOFT.colour,
        )
    ]
    return alt.layer(base.mark_rule(color=rule.mark.colour).encode(y=place), *texts)


# --- The charts of the chapters ----------------------------------------------------------------


def _of_prices(slider: Slider) -> Slider:
    """Let the ends of a slider give way: own prices may be nothing, or many times those of the book."""
    return replace(slider, low=min(slider.low, slider.value), high=max(slider.high, slider.value))


def cost_of_utilization(*, price_usd_per_node_hour: float, node_tok_per_s: float, api_usd_per_mtok: float) -> Any:
    """Cost of a million tokens against utilization, with sliders for the three things that decide; chapter 1.

    Parameters
    ----------
    price_usd_per_node_hour, node_tok_per_s, api_usd_per_mtok : float
        Where the sliders start. [USD/node_hour, token/s, USD/Mtok]

    Returns
    -------
    altair chart

    Examples
    --------
    >>> chart = cost_of_utilization(price_usd_per_node_hour=33, node_tok_per_s=3000, api_usd_per_mtok=10)
    >>> chart.to_dict()["params"][2]["bind"]["name"]
    'API (USD/Mtok) '
    """
    # the slider of the API is in USD per million tokens, hours are of 3,600 seconds
    even = cost.breakeven_utilization().subs(API_PRICE, API_PRICE / TOK_PER_MTOK) / SEC_PER_HOUR
    return line(
        with_constants(cost.cost_per_mtok()),
        along=UTIL,
        x=Axis("Utilization", 0.01, 1, charts.UTILIZATION_TICKS, "~%"),
        y=Axis("Cost (USD/Mtok)", 0.1, 2000, [0.1, 1, 10, 100, 1000]),
        sliders=[
            _of_prices(Slider(PRICE, "Node (USD/hour)", 1, 120, 0.5, price_usd_per_node_hour)),
            Slider(TPUT, "Tokens per second at full use", 100, 20_000, 100, node_tok_per_s),
            _of_prices(Slider(API_PRICE, "API (USD/Mtok)", 0.1, 60, 0.1, api_usd_per_mtok)),
        ],
        verticals=[Mark(with_constants(even), "cheaper from", ".1~%", theme.OWNED)],
        horizontals=[Mark(API_PRICE, "API")],
    )


def time_of_positions(
    *, weights: float, bytes_per_weight: float, peak_flop_per_s: float, mem_bw_byte_per_s: float
) -> Any:
    """Time of a pass against its positions, with sliders for the model and the GPU; chapter 2.

    Parameters
    ----------
    weights, bytes_per_weight, peak_flop_per_s, mem_bw_byte_per_s : float
        Where the sliders start. [1, byte, FLOP/s, byte/s]

    Returns
    -------
    altair chart

    Examples
    --------
    >>> chart = time_of_positions(weights=8e9, bytes_per_weight=2, peak_flop_per_s=989e12, mem_bw_byte_per_s=3.35e12)
    >>> [param["value"] for param in chart.to_dict()["params"]]
    [8.0, 2, 989.0, 3.35]
    """
    # the sliders are in billions of weights, trillions of operations and terabytes a second; the axis in milliseconds
    scaled = {WEIGHTS: WEIGHTS * 10**9, PEAK: PEAK * 10**12, MEM_BW: MEM_BW * 10**12}
    return line(
        1000 * with_constants(roofline.pass_time()).subs(scaled, simultaneous=True),
        along=POSITIONS,
        x=Axis("Positions of a pass", 1, 4096, [1, 4, 16, 64, 256, 1024, 4096]),
        y=Axis("Time of a pass (ms)", 0.1, 1000, [0.1, 1, 10, 100, 1000]),
        sliders=[
            Slider(WEIGHTS, "Weights (billion)", 1, 120, 1, weights / 1e9),
            Slider(BYTES_PER_WEIGHT, "Bytes of a weight", 0.5, 2, 0.5, bytes_per_weight),
            Slider(PEAK, "Peak (TFLOP/s)", 100, 4500, 1, peak_flop_per_s / 1e12),
            Slider(MEM_BW, "Bandwidth (TB/s)", 0.5, 8, 0.05, mem_bw_byte_per_s / 1e12),
        ],
        verticals=[Mark(with_constants(roofline.positions_at_ridge()), "ridge at", ",.3~r", theme.INK)],
    )


def gain_of_batch(*, base_s: float, sequence_s: float, prompt_s: float, answer_passes: float) -> Any:
    """Tokens over those at batch 1 against the batch, with sliders for what is shared and what is not; chapter 3.

    Parameters
    ----------
    base_s, sequence_s, prompt_s : float
        Time of a pass whatever its batch, what each sequence adds, what reading a prompt takes. [s]
    answer_passes : float
        Passes of an answer. [1]

    Returns
    -------
    altair chart

    Examples
    --------
    >>> chart = gain_of_batch(base_s=0.017, sequence_s=0.0001, prompt_s=0.3, answer_passes=300)
    >>> chart.to_dict()["params"][0]["value"]
    17.0
    """
    tokens = SEQUENCES * decoding.max_load_passes().subs(PASS_TIME, decoding.linear_pass())
    return line(
        tokens / tokens.subs(SEQUENCES, 1),
        along=SEQUENCES,
        x=Axis("Batch", 1, 512, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
        y=Axis("Tokens over those at batch 1", 1, 300, [1, 3, 10, 30, 100, 300]),
        sliders=[
            Slider(BASE_TIME, "A pass, whatever its batch (ms)", 1, 60, 0.1, round(1e3 * base_s, 1)),
            Slider(SEQUENCE_TIME, "Each sequence adds (ms)", 0.01, 1, 0.01, round(1e3 * sequence_s, 2)),
            Slider(PROMPT_TIME, "Reading a prompt (ms)", 1, 2000, 1, round(1e3 * prompt_s)),
            Slider(ANSWER_PASSES, "Answer (tokens)", 10, 3000, 10, answer_passes),
        ],
        horizontals=[Mark(decoding.largest_swing(), "at most", ",.3~r", theme.INK)],
    )


def gain_of_wide_passes(
    *,
    positions: float,
    tokens_per_pass: float,
    context_tokens: float,
    ridge_positions: float,
    context_scale_tokens: float,
    overhead_positions: float,
) -> Any:
    """Gain of w positions for tau tokens over one for one against the batch, and where it ends; chapter 8.

    Parameters
    ----------
    positions, tokens_per_pass : float
        Of a pass, for each sequence. [1, token]
    context_tokens : float
        Cached tokens of each sequence. [token]
    ridge_positions, context_scale_tokens, overhead_positions : float
        Scales of the pass, as `analysis.model.head_to_head.scales` has them. [1, token, 1]

    Returns
    -------
    altair chart

    Examples
    --------
    >>> chart = gain_of_wide_passes(
    ...     positions=32,
    ...     tokens_per_pass=4,
    ...     context_tokens=500,
    ...     ridge_positions=290,
    ...     context_scale_tokens=390,
    ...     overhead_positions=200,
    ... )
    >>> [param["name"] for param in chart.to_dict()["params"]][:2]
    ['sequence_positions', 'tokens_kept']
    """
    # the time of one position is the unit, so that weights, bandwidth and peak are the three scales
    units = {FLOP_PER_WEIGHT: 1, N_MATMUL: 1, PEAK: 1, MEM_BW: 1, POSITION_TIME: 1}
    scales = {STREAMED: RIDGE_POSITIONS, KAPPA: 1 / CONTEXT_SCALE}
    early, late = (batch.subs(units) for batch in (decoders.breakeven_batch(), decoders.breakeven_batch_past_ridge()))
    # negative: never; each holds on its side of the ridge
    crossing = Piecewise((early, (early > 0) & (early <= RIDGE_POSITIONS)), (late, late > RIDGE_POSITIONS), (0, True))
    return line(
        decoders.gain().subs(scales).subs(units),
        along=SEQUENCES,
        x=Axis("Batch", 1, 1024, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]),
        y=Axis("Tokens over one at a time", 0.1, 20, [0.1, 0.2, 0.5, 1, 2, 5, 10, 20]),
        sliders=[
            Slider(SEQ_POSITIONS, "Positions of a pass", 2, 256, 1, positions),
            Slider(TOKENS_KEPT, "Tokens that it keeps", 1, 20, 0.1, tokens_per_pass),
            Slider(CONTEXT, "Context (tokens)", 0, 16_000, 100, context_tokens),
            Slider(RIDGE_POSITIONS, "Ridge (positions)", 50, 2000, 1, round(ridge_positions)),
            Slider(CONTEXT_SCALE, "Context scale (tokens)", 50, 8000, 1, round(context_scale_tokens)),
            Slider(OVERHEAD, "Fixed time (positions)", 0, 2000, 1, round(overhead_positions)),
        ],
        verticals=[Mark(crossing, "ahead up to", ",.0f", theme.INK)],
        horizontals=[Mark(Integer(1), "one at a time", "")],
        mark=theme.DIFFUSION,
    )
