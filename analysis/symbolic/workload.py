"""From a request to a bill, step by step: the computation behind the page "Your workload", as one chain of expressions.

Each line is a name and its value from inputs and earlier lines. The chain is that of `analysis.model.decoding`,
`decoders` and `queueing` for architectures whose layers see everything or one window: the time of a pass, what a
prompt adds, the batch at which Little's law and the budget meet, nodes, money. Where no closed form exists, a fixed
number of halvings finds the batch, so that the whole is a list of expressions and nothing else.

Tokens and requests count as pure numbers here; every other unit is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType

from sympy import Expr, Float, Integer, Max, Min, Piecewise, Rational, Symbol, ceiling, exp, floor, log, sqrt

from analysis.symbolic.cost import api_bill, breakeven_utilization_of_requests, cost_per_request
from analysis.symbolic.transformer import expert_union
from analysis.symbols import (
    ANSWER,
    BILL,
    CACHED,
    DISCOUNT,
    EXPERTS,
    FLOP_PER_WEIGHT,
    GPUS,
    HIDDEN,
    HOURS_A_MONTH,
    LAYERS,
    MBU,
    MEM_BW,
    MFU,
    PEAK,
    POSITIONS,
    PRICE,
    PRICE_HIT,
    PRICE_IN,
    PRICE_OUT,
    PROMPT,
    REQ_TPUT,
    SEC_PER_HOUR,
    TABLE,
    THINKING,
    TOK_PER_MTOK,
    TOP_K,
    UTIL,
    VOCAB,
    WINDOW,
)
from analysis.units import ONE, USD, byte, flop, request, second, token

#: The price of what cannot be had: dearer than anything.
NEVER = Integer(10) ** 30
#: Stands for no sequence in a pass, as in `analysis.model.decoders`.
NOBODY = Float("1e-9")
#: Halvings of the batch, then straight lines between the ends.
HALVINGS, LINES = 7, 4

UNITS: dict[Symbol, Expr] = {
    entry.symbol: entry.unit.subs({token: 1, request: 1}) if hasattr(entry.unit, "subs") else entry.unit
    for entry in TABLE.values()
}


def _named(name: str, unit: Expr) -> Symbol:
    """Take a symbol of the book's table where it has one, else one of this chain's own."""
    symbol = TABLE[name].symbol if name in TABLE else Symbol(name, positive=True)
    UNITS[symbol] = unit
    return symbol


# --- Inputs ------------------------------------------------------------------------------------

# the work
PEAK_REQ = _named("peak_req_per_s", 1 / second)
DAY_SHARE = _named("day_share", ONE)
BUDGET = _named("budget_s", second)
METRIC = _named("metric", ONE)
OVERHEAD = _named("overhead_s", second)

# the model: sums over its layers
ALWAYS = _named("always_byte", byte)
ROUTED = _named("routed_byte", byte)
STORED = _named("stored_byte", byte)
LAYER_WEIGHTS = _named("layer_weights", ONE)
EXPERT_ROW = _named("expert_row_flop", flop)
KV_FULL = _named("kv_full_byte", byte)
KV_WINDOWED = _named("kv_windowed_byte", byte)
KEPT_FULL = _named("kept_full_byte", byte)
KEPT_WINDOWED = _named("kept_windowed_byte", byte)
SEEN_FULL = _named("seen_full_flop", flop)
SEEN_WINDOWED = _named("seen_windowed_flop", flop)
EXPANDED_FULL = _named("expanded_full_flop", flop)
EXPANDED_WINDOWED = _named("expanded_windowed_flop", flop)
AGAIN_FULL = _named("again_full_flop", flop)
AGAIN_WINDOWED = _named("again_windowed_flop", flop)
WHOLE_ELEMENTS = _named("whole_elements", ONE)
SPLIT_ELEMENTS = _named("split_elements", ONE)
PLAIN_LAYERS = _named("plain_layers", ONE)
EXPERT_LAYERS = _named("expert_layers", ONE)
KV_COPIES = _named("kv_copies", ONE)

# the hardware, and what an engine reaches of it
PEAK_16 = _named("peak_16bit_flop_per_s", flop / second)
MEMORY = _named("memory_byte", byte)
LINK = _named("link_byte_per_s", byte / second)
NODE_GPUS = _named("node_gpus", ONE)
SPARES = _named("spares", ONE)
ATTENTION_MFU = _named("attention_mfu", ONE)
EXPERT_MFU = _named("expert_mfu", ONE)
EXPERT_ROWS = _named("expert_rows", ONE)
LAYER_S = _named("layer_s", second)
EXPERT_LAYER_S = _named("expert_layer_s", second)
PROMPT_LAYER_S = _named("prompt_layer_s", second)
SEQUENCE_S = _named("sequence_s", second)
ALL_REDUCE_S = _named("all_reduce_s", second)
ACTIVATION_SHARE = _named("activation_share", ONE)
OVERLAP = _named("overlap", ONE)
MEMORY_SHARE = _named("memory_share", ONE)
RESERVED_SHARE = _named("reserved_share", ONE)
RESERVE = _named("reserve_byte", byte)
SLOTS = _named("slots", ONE)
CHUNK = _named("chunk_tokens", ONE)

# how an answer is made
ACCEPTANCE = _named("acceptance", ONE)
DRAFTS = _named("draft_length", ONE)
DRAFT_COST = _named("draft_cost", ONE)
BLOCK = _named("block", ONE)
REFINEMENTS = _named("passes", ONE)

# the rival: its prices are those of `analysis.symbolic.cost`, quoted for a million tokens
API_IN = _named("api_input_usd_per_mtok", USD)
API_HIT = _named("api_cached_usd_per_mtok", USD)
API_OUT = _named("api_output_usd_per_mtok", USD)
API_FIRST = _named("api_first_s", second)
API_SPEED = _named("api_tok_per_s", 1 / second)

# constants that stay symbols while units are checked
BYTE_PER_ACTIVATION = _named("BYTE_PER_ACTIVATION", byte)
BYTE_PER_LOGIT = _named("BYTE_PER_LOGIT", byte)
NORMAL_QUANTILE = _named("normal_quantile", ONE)
NOTHING_S = _named("NOTHING_S", second)
#: A budget in which any API answers: the slowest of the table takes a quarter of it for 500 tokens.
PATIENT_S = _named("PATIENT_S", second)
CONSTANTS: Mapping[Symbol, Expr] = {
    BYTE_PER_ACTIVATION: Integer(2),
    BYTE_PER_LOGIT: Integer(4),
    # the 95th percentile
    NORMAL_QUANTILE: Float("1.6448536269514722"),
    # an unknown time is passed on as 0
    NOTHING_S: Rational(1, 10**9),
    PATIENT_S: Integer(600),
}
#: Up to this share of the load at which the fixed point ends, and this change of slope, the spread is trusted: as in
#: `analysis.model.queueing`.
LOAD_OF_DOMAIN, BEND_OF_DOMAIN, LEAST_LEFT = Rational(3, 5), Rational(3, 2), Rational(1, 1000)
#: How far beyond the mean the 95th percentile of an exponential wait lies: ln(1 / 0.05).
LATE = log(20)
#: All-reduces of one layer: after attention, and after the MLP.
ALL_REDUCES_PER_LAYER = Integer(2)

INPUTS = (
    PROMPT,
    CACHED,
    ANSWER,
    PEAK_REQ,
    DAY_SHARE,
    BUDGET,
    METRIC,
    OVERHEAD,
    ALWAYS,
    ROUTED,
    STORED,
    LAYER_WEIGHTS,
    EXPERT_ROW,
    EXPERTS,
    TOP_K,
    LAYERS,
    HIDDEN,
    VOCAB,
    KV_FULL,
    KV_WINDOWED,
    KEPT_FULL,
    KEPT_WINDOWED,
    WINDOW,
    SEEN_FULL,
    SEEN_WINDOWED,
    EXPANDED_FULL,
    EXPANDED_WINDOWED,
    AGAIN_FULL,
    AGAIN_WINDOWED,
    WHOLE_ELEMENTS,
    SPLIT_ELEMENTS,
    PLAIN_LAYERS,
    EXPERT_LAYERS,
    KV_COPIES,
    PEAK,
    PEAK_16,
    MEM_BW,
    MEMORY,
    LINK,
    NODE_GPUS,
    GPUS,
    SPARES,
    PRICE,
    THINKING,
    DISCOUNT,
    MBU,
    MFU,
    ATTENTION_MFU,
    EXPERT_MFU,
    EXPERT_ROWS,
    LAYER_S,
    EXPERT_LAYER_S,
    PROMPT_LAYER_S,
    SEQUENCE_S,
    ALL_REDUCE_S,
    ACTIVATION_SHARE,
    OVERLAP,
    MEMORY_SHARE,
    RESERVED_SHARE,
    RESERVE,
    SLOTS,
    CHUNK,
    ACCEPTANCE,
    DRAFTS,
    DRAFT_COST,
    BLOCK,
    REFINEMENTS,
    API_IN,
    API_HIT,
    API_OUT,
    API_FIRST,
    API_SPEED,
)
#: The times that a budget can be about; each stands for its number; all but one are means.
METRICS = ("e2e", "p95", "ttft", "tpot")
#: Suffixes of the lines of each decoder: one token at a time, drafts, blocks.
DECODERS = ("ar", "sd", "dl")
#: Terms of a pass, in the order of `analysis.model.decoding.TERMS`.
TERMS = ("weights", "matmul", "kv", "attention", "fixed", "communication", "activations")
#: Why a decoder has no price: it has one, the model does not fit, it is too slow even alone.
REASONS = ("fine", "does not fit", "too slow alone")


@dataclass(frozen=True)
class Line:
    """One step: its symbol, its value, its unit. The value may be one for many lines, with other symbols in place."""

    symbol: Symbol
    value: Expr
    unit: Expr
    renamed: Mapping[Symbol, Symbol] = field(default_factory=dict)


@dataclass
class _Lines:
    lines: list[Line] = field(default_factory=list)

    def add(
        self, name: str, value: Expr, unit: Expr = ONE, renamed: Mapping[Symbol, Symbol] = MappingProxyType({})
    ) -> Symbol:
        symbol = Symbol(name, positive=True)
        self.lines.append(Line(symbol, value, unit, renamed))
        return symbol


# --- A pass ------------------------------------------------------------------------------------


def expert_share(positions: Expr) -> Expr:
    """Share of the experts that so many positions use, [1]: `analysis.symbolic.transformer.expert_union`."""
    return expert_union().subs(POSITIONS, positions)


def overlapped(reading: Expr, computing: Expr) -> Expr:
    """Time of two things that overlap, [s]:  (a^p + b^p)^(1/p): their sum at p = 1, their maximum at endless p."""
    return (reading**OVERLAP + computing**OVERLAP) ** (1 / OVERLAP)


def tokens_seen(context: Expr, positions: Expr, *, causal: bool) -> Expr:
    """Tokens that w positions see in sum after s cached ones, [1]:  w (s + (w + 1)/2), or w (s + w) in a block."""
    return positions * (context + ((positions + 1) / 2 if causal else positions))


def windowed_tokens_seen(context: Expr, positions: Expr, *, causal: bool) -> Expr:
    """Count the same where a layer sees at most a window, [1]."""
    if not causal:
        return positions * (Min(context, WINDOW) + positions)

    def since_start(end: Expr) -> Expr:
        growing = Min(end, WINDOW)
        return growing * (growing + 1) / 2 + (end - growing) * WINDOW

    return since_start(context + positions) - since_start(context)


def attention_flop(context: Expr, positions: Expr, *, causal: bool) -> Expr:
    """FLOP of attention of one sequence, [FLOP]; of latent attention the cheaper of its two forms."""
    full = tokens_seen(context, positions, causal=causal)
    windowed = windowed_tokens_seen(context, positions, causal=causal)
    return Min(SEEN_FULL * full, EXPANDED_FULL * full + AGAIN_FULL * context) + Min(
        SEEN_WINDOWED * windowed, EXPANDED_WINDOWED * windowed + AGAIN_WINDOWED * Min(context, WINDOW)
    )


def kv_byte(context: Expr) -> Expr:
    """Bytes of the cache that a pass reads for one sequence, [byte]."""
    return KV_FULL * context + KV_WINDOWED * Min(context, WINDOW)


def kept_byte(tokens: Expr) -> Expr:
    """Bytes that one sequence holds in the cache, [byte]."""
    return KEPT_FULL * tokens + KEPT_WINDOWED * Min(tokens, WINDOW)


@dataclass(frozen=True)
class _Rates:
    """What each thing costs one GPU, by symbols of earlier lines. [s]."""

    always: Symbol
    routed: Symbol
    position: Symbol
    logit: Symbol
    rows: Symbol
    fixed: Symbol
    prompt: Symbol
    sums: Symbol
    sent: Symbol
    moved: Symbol
    logit_moved: Symbol
    idle: Symbol


def _rates(of: _Lines) -> _Rates:
    bandwidth, rate = GPUS * MBU * MEM_BW, GPUS * MFU * PEAK
    all_reduces = ALL_REDUCES_PER_LAYER * LAYERS * Min(1, GPUS - 1)
    # a ring sends every number to the sum and back, all but one share of it
    payload = 2 * (GPUS - 1) / GPUS * HIDDEN * BYTE_PER_ACTIVATION
    routed = EXPERT_ROW * TOP_K / EXPERTS
    elements = WHOLE_ELEMENTS + SPLIT_ELEMENTS / GPUS
    values = {
        "always": ALWAYS / bandwidth,
        "routed": ROUTED / bandwidth,
        # products of experts take longer than others
        "position": (FLOP_PER_WEIGHT * LAYER_WEIGHTS - routed + routed / EXPERT_MFU) / rate,
        "logit": FLOP_PER_WEIGHT * VOCAB * HIDDEN / rate,
        "rows": EXPERT_ROWS * EXPERT_ROW / (EXPERT_MFU * rate),
        "fixed": PLAIN_LAYERS * LAYER_S + EXPERT_LAYERS * EXPERT_LAYER_S,
        "prompt": PLAIN_LAYERS * PROMPT_LAYER_S,
        "sums": all_reduces * ALL_REDUCE_S,
        "sent": all_reduces * payload / LINK,
        "moved": ACTIVATION_SHARE * BYTE_PER_ACTIVATION * elements / (MBU * MEM_BW),
        "logit_moved": ACTIVATION_SHARE * BYTE_PER_LOGIT * VOCAB / bandwidth,
    }
    found = {name: of.add(f"rate_{name}", value, second) for name, value in values.items()}
    return _Rates(**found, idle=of.add("rate_idle", found["fixed"] + found["sums"], second))


def _reading_s(context: Expr) -> Expr:
    return KV_COPIES * kv_byte(context) / (GPUS * MBU * MEM_BW)


def _attending_s(context: Expr, positions: Expr, *, causal: bool) -> Expr:
    return attention_flop(context, positions, causal=causal) / (GPUS * ATTENTION_MFU * PEAK_16)


@dataclass(frozen=True)
class _Decoder:
    """What a decoder is, by symbols of earlier lines: all that its passes need."""

    suffix: str
    positions: Expr
    passes: Expr
    first_passes: Expr
    draft_share: Expr
    reading: Expr
    attending: Expr
    prompt_tokens: Expr
    prompt_reading: Expr
    prompt_attending: Expr
    prompt_room: Expr
    prompt_passes: Expr
    phase: Expr
    plain_phase: Expr


@dataclass(frozen=True)
class _State:
    """A replica with n requests, by symbols of lines; every name is one of `_LETTERS`."""

    n: Symbol
    b: Symbol
    t: Symbol
    p: Symbol
    l: Symbol  # noqa: E741 (as the law has it)
    h: Symbol
    more: Symbol
    spread: Symbol
    m: Symbol


def pass_s(r: _Rates, sequences: Expr, positions: Expr, attending: Expr, used: Expr) -> Expr:
    """Time of a pass that decodes, [s]: both phases, each the overlap of reading and computing, and the rest."""
    m = sequences * positions
    return (
        overlapped(r.always + r.routed * used, (r.position + r.logit) * m + r.rows * used)
        + sequences * (attending + SEQUENCE_S)
        + r.idle
        + m * (r.sent + r.moved + r.logit_moved)
    )


def carrying_pass_s(r: _Rates, d: _Decoder, sequences: Expr, prompts: Expr, positions: Expr, used: Expr) -> Expr:
    """Time of a pass that decodes for some sequences and reads prompts of others, [s]; a prompt needs one logit."""
    logits = sequences * d.positions + prompts
    return (
        overlapped(r.always + r.routed * used, r.position * positions + r.logit * logits + r.rows * used)
        + overlapped(
            sequences * d.reading + prompts * d.prompt_reading, sequences * d.attending + prompts * d.prompt_attending
        )
        + r.idle
        + r.prompt
        + (sequences + prompts) * SEQUENCE_S
        + positions * (r.sent + r.moved)
        + logits * r.logit_moved
    )


def _own(name: str) -> Symbol:
    """Name something in a value that stands for many lines."""
    return Symbol(f"this_{name}", positive=True)


#: A replica that holds n requests: requests, prompts that share a pass, time of a pass with its drafts, of what a
#: prompt adds, of a whole request, the rate that keeps n there, the time of a request beside one more, the variance of
#: its logarithm, and the time that the budget is about.
THIS = _State(*(_own(name) for name in ("n", "b", "t", "p", "l", "h", "more", "spread", "m")))
#: Lines on the way: prompts that share a pass, experts that a pass uses, its time, positions and experts of a pass that
#: carries prompts, what a prompt adds.
_STEPS = ("b", "u", "t", "c", "v", "p")
_LETTERS = tuple(symbol.name.removeprefix("this_") for symbol in vars(THIS).values())


def _stay_lines(r: _Rates, d: _Decoder, n: Expr, end: str = "") -> list[tuple[str, Expr, Expr]]:
    """Name the lines up to the time of a request, as `analysis.model.decoders.served`."""
    b, u, t, c, v, p = (_own(f"{name}{end}") for name in _STEPS)
    others = Max(n - 1, NOBODY)
    cycle = pass_s(r, n, d.positions, d.phase, u)
    carrying = carrying_pass_s(r, d, others, b, c, v)
    if d.draft_share != 0:
        drafts = d.draft_share * pass_s(r, n, Integer(1), d.plain_phase, expert_share(n))
        cycle += drafts
        # the newcomer has nothing drafted yet, the others have
        carrying += drafts * (n - 1) / n
    return [
        # short prompts share a pass, as many as come in one
        (f"b{end}", Min(Max(n / d.passes, 1), d.prompt_room), ONE),
        (f"u{end}", expert_share(n * d.positions), ONE),
        (f"t{end}", cycle, second),
        (f"c{end}", others * d.positions + b * d.prompt_tokens, ONE),
        (f"v{end}", expert_share(c), ONE),
        (f"p{end}", d.prompt_passes / b * (carrying - t), second),
        ("more" if end else "l", d.passes * t + n * p, second),
    ]


def _state_lines(r: _Rates, d: _Decoder, *, judged: bool) -> list[tuple[str, Expr, Expr]]:
    """Name the lines of a replica that holds so many requests; judged: with the time that the budget is about."""
    found = [*_stay_lines(r, d, THIS.n), ("h", (THIS.n - 1) / THIS.l, 1 / second)]
    if not judged:
        return found
    beside = _stay_lines(r, d, THIS.n + 1, end="2")
    return [*found, *beside, ("spread", spread_of_a_request(), ONE), ("m", _measured(d), second)]


def spread_of_a_request() -> Expr:
    """Variance of the logarithm of a request's time, [1]: lognormal, with `analysis.symbolic.queueing.variance`.

    Beyond a quantile's own height a lognormal with more spread has a lower quantile, so the spread ends there.
    """
    added = THIS.more - THIS.l
    slope = Max(added - THIS.p, 0)
    left = Max(1 - THIS.h * added, LEAST_LEFT)
    raw = THIS.h * THIS.l * (Rational(2, 3) * slope**2 + THIS.p**2 + slope * THIS.p)
    return Min(log(1 + raw / left**2 / THIS.l**2), NORMAL_QUANTILE**2)


def quantile_s() -> Expr:
    """95th percentile of the time of a request, [s]: `analysis.symbolic.queueing.lognormal_quantile`."""
    return THIS.l * exp(NORMAL_QUANTILE * sqrt(THIS.spread) - THIS.spread / 2)


def first_token_s(d: _Decoder) -> Expr:
    """Mean time until the first token, [s], as `analysis.model.queueing`.

    Who comes while the replica runs waits for the rest of the pass in hand, which is longer than the mean one because
    prompts of others are in it; later passes carry prompts too.
    """
    mean = THIS.t / (1 - THIS.h * THIS.p)
    count = THIS.h * mean
    second_moment = THIS.t**2 + 2 * THIS.t * THIS.p * count + THIS.p**2 * (count + count**2)
    met = second_moment / mean
    wait = met / 2 + THIS.p * THIS.h * met
    busy = 1 - exp(-THIS.h * THIS.l)
    later = (d.first_passes - 1) * mean
    first = d.first_passes * THIS.t + THIS.p + busy * wait + THIS.h * THIS.p * later
    return Piecewise((first, d.first_passes < d.passes), (THIS.l, True))


def between_tokens_s(d: _Decoder) -> Expr:
    """Mean time between two tokens of an answer, [s]: the passes after the first token, with prompts of others."""
    rest = (d.passes - d.first_passes) * THIS.t / (1 - THIS.h * THIS.p)
    return rest / Max(ANSWER - 1, 1)


def _measured(d: _Decoder) -> Expr:
    """Time that the budget is about, [s], in the order of `METRICS`."""
    return Piecewise(
        (THIS.l + OVERHEAD, Rational(1, 2) > METRIC),
        (quantile_s() + OVERHEAD, Rational(3, 2) > METRIC),
        (first_token_s(d) + OVERHEAD, Rational(5, 2) > METRIC),
        (between_tokens_s(d), True),
    )


# --- The batch at which a time or a rate is reached ----------------------------------------------


_LOW, _HIGH, _AT_LOW, _AT_HIGH, _LEVEL, _VALUE = (
    _own(name) for name in ("low", "high", "at_low", "at_high", "level", "value")
)
_HALF_WAY = sqrt(_LOW * _HIGH)
_RISE = (_LEVEL - _AT_LOW) / Max(_AT_HIGH - _AT_LOW, _AT_LOW / NEVER)
_ON_THE_LINE = _LOW + Min(Max(_RISE, 0), 1) * (_HIGH - _LOW)
_BELOW = _VALUE <= _LEVEL
_NEXT = (
    ("low", Piecewise((THIS.n, _BELOW), (_LOW, True))),
    ("high", Piecewise((_HIGH, _BELOW), (THIS.n, True))),
    ("at_low", Piecewise((_VALUE, _BELOW), (_AT_LOW, True))),
    ("at_high", Piecewise((_AT_HIGH, _BELOW), (_VALUE, True))),
)
_FOUND = Piecewise((_HIGH, _AT_HIGH <= _LEVEL), (THIS.n, True))


def _batch_at(
    of: _Lines,
    name: str,
    level: Symbol,
    *,
    ends: tuple[_State, _State],
    curve: str,
    unit: Expr,
    state: Callable[..., _State],
    judged: bool = True,
) -> Symbol:
    """Add lines that find the batch at which a growing curve reaches a level; the upper end if it does not.

    Halvings on a scale of ratios come first; between the ends that they leave the curve is all but straight.
    """
    low, high = ends
    bracket = {_LEVEL: level, _LOW: low.n, _HIGH: high.n, _AT_LOW: getattr(low, curve), _AT_HIGH: getattr(high, curve)}
    outer = dict(bracket)
    for k in range(HALVINGS + LINES):
        here = state(_HALF_WAY if k < HALVINGS else _ON_THE_LINE, f"{name.split('_')[1]}{k}", bracket, judged=judged)
        known = bracket | {THIS.n: here.n, _VALUE: getattr(here, curve)}
        for end, value in _NEXT:
            of.add(f"{end}_{name}{k}", value, unit if end.startswith("at") else ONE, known)
        bracket = {_LEVEL: level} | {_own(end): Symbol(f"{end}_{name}{k}", positive=True) for end, _ in _NEXT}
    return of.add(f"root_{name}", _FOUND, ONE, outer | {THIS.n: here.n})


# --- Decoders ----------------------------------------------------------------------------------


def tokens_of_drafts() -> Expr:
    """Count the useful tokens of a pass that verifies drafts, [1]:  (1 - a^(g+1)) / (1 - a), g + 1 at a = 1."""
    chain = (1 - ACCEPTANCE ** (DRAFTS + 1)) / (1 - ACCEPTANCE)
    return Piecewise((chain, ACCEPTANCE < 1), (DRAFTS + 1, True))


def _decoder(of: _Lines, suffix: str) -> _Decoder:
    new = PROMPT - CACHED
    context = PROMPT + ANSWER / 2
    own = Max(1, new / CHUNK)
    blocks = ceiling(ANSWER / BLOCK)
    causal = suffix != "dl"
    positions: Expr = {"ar": Integer(1), "sd": DRAFTS + 1, "dl": BLOCK}[suffix]
    made = {
        "ar": Max(ANSWER - 1, 0),
        "sd": Max(ANSWER - 1, 0) / tokens_of_drafts(),
        "dl": blocks * REFINEMENTS,
    }[suffix]
    first_made: Expr = {"ar": Integer(0), "sd": Integer(0), "dl": REFINEMENTS}[suffix]
    tokens = Min(new, CHUNK)
    before = CACHED + (new - tokens) / 2

    def line(name: str, value: Expr, unit: Expr = ONE) -> Symbol:
        return of.add(f"{name}_{suffix}", value, unit)

    reading = line("reading_s", _reading_s(context), second)
    attending = line("attending_s", _attending_s(context, positions, causal=causal), second)
    plain = Symbol("attending_s_ar", positive=True)
    return _Decoder(
        suffix=suffix,
        positions=positions,
        passes=line("request_passes", own + made),
        first_passes=line("first_passes", own + Min(first_made, made)),
        draft_share=DRAFTS * DRAFT_COST if suffix == "sd" else Integer(0),
        reading=reading,
        attending=attending,
        phase=line("phase_s", overlapped(reading, attending), second),
        plain_phase=line("plain_phase_s", overlapped(reading, plain), second),
        prompt_tokens=line("prompt_tokens", tokens),
        prompt_reading=line("prompt_reading_s", _reading_s(before), second),
        prompt_attending=line("prompt_attending_s", _attending_s(before, tokens, causal=True), second),
        prompt_room=line("prompt_room", Max(1, CHUNK / new)),
        prompt_passes=line("prompt_passes", new / tokens),
    )


def room_for_requests(held: Expr) -> Expr:
    """Count the requests that fit at once, [1]: what the weights leave over what each holds, up to the slots."""
    reserved = STORED + GPUS * RESERVE
    free = MEMORY_SHARE * GPUS * MEMORY - RESERVED_SHARE * reserved
    return Min(Max(free, 0) / (KV_COPIES * kept_byte(held)), SLOTS)


# --- One decoder, from a pass to a bill ----------------------------------------------------------


def _served(of: _Lines, r: _Rates, suffix: str, bill: Symbol) -> None:
    """Add all lines of one decoder."""

    def line(name: str, value: Expr, unit: Expr = ONE) -> Symbol:
        return of.add(f"{name}_{suffix}", value, unit)

    d = _decoder(of, suffix)
    templates = {judged: _state_lines(r, d, judged=judged) for judged in (False, True)}

    def state(
        batch: Expr, name: str, known: Mapping[Symbol, Symbol] = MappingProxyType({}), *, judged: bool = True
    ) -> _State:
        names = [*_LETTERS, "u", "c", "v", *(f"{step}2" for step in _STEPS)]
        own = {_own(letter): Symbol(f"{letter}_{suffix}_{name}", positive=True) for letter in names}
        of.add(own[THIS.n].name, batch, ONE, known)
        for letter, value, unit in templates[judged]:
            of.add(f"{letter}_{suffix}_{name}", value, unit, own)
        return _State(*list(own.values())[: len(_LETTERS)])

    held = PROMPT + (ceiling(ANSWER / BLOCK) * BLOCK if suffix == "dl" else ANSWER)
    room = line("room", room_for_requests(held))
    alone, full = state(Integer(1), "alone"), state(Max(room, 1), "full")
    line("floor_s", alone.m, second)
    line("alone_pass_s", alone.t, second)
    reason = line("reason", Piecewise((1, room < 1), (2, alone.m >= BUDGET), (0, True)))

    # the rate that the budget allows one replica, and the rate that it never exceeds
    found = _batch_at(of, f"{suffix}_top", BUDGET, ends=(alone, full), curve="m", unit=second, state=state)
    most = state(found, "most")
    saturated = line("saturated_req_per_s", full.n / full.l, 1 / second)
    # a full replica lets requests wait: half of the wait of memoryless jobs, if all had to
    mean = Rational(1, 2) > METRIC
    late = Piecewise((1, mean), (LATE, Rational(3, 2) > METRIC), (1, Rational(5, 2) > METRIC), (0, True))
    patient = saturated - late / (2 * Max(BUDGET - full.m, full.l / NEVER))
    allowed = line("allowed_req_per_s", Piecewise((Max(most.h, patient), full.m < BUDGET), (most.h, True)), 1 / second)
    rate = line("replica_req_per_s", Piecewise((allowed, reason < 1), (allowed / NEVER, True)), 1 / second)

    # nodes: enough of them, and spares
    replicas = line("replicas", floor(NODE_GPUS / GPUS))
    # a count of nodes is not raised by rounding in its last digits; spares serve too
    nodes = line("nodes", ceiling(PEAK_REQ / (replicas * rate) * (1 - Rational(1, 10**9))) + SPARES)
    each = line("each_req_per_s", PEAK_REQ / (nodes * replicas), 1 / second)
    line("load", each / rate)
    # a queue before a server that is nine tenths busy is long, and grows fast
    line("near", Piecewise((1, each > Rational(9, 10) * saturated), (0, True)))

    # where the replicas stand at the peak
    found = _batch_at(
        of, f"{suffix}_now", each, ends=(alone, most), curve="h", unit=1 / second, state=state, judged=False
    )
    now = state(found, "now")
    line("latency_s", now.l, second)
    line("metric_s", now.m, second)
    line("pass_s", now.t, second)
    line("batch", now.n)
    line("concurrency", PEAK_REQ * now.l)
    _bound(r, d, now, line)
    _percentile(state, now, room, line)

    # money
    node_saturated = line("node_saturated_req_per_s", replicas * saturated, 1 / second)
    mean_rate = PEAK_REQ * DAY_SHARE
    line("utilization", mean_rate / (nodes * node_saturated))
    owned = line("request_usd", nodes * _usd_per_request(mean_rate), USD)
    line("cost_usd_per_mtok", owned * TOK_PER_MTOK / ANSWER, USD)
    line("saturated_usd_per_mtok", _usd_per_request(node_saturated) * TOK_PER_MTOK / ANSWER, USD)
    line("month_usd", nodes * PRICE * HOURS_A_MONTH, USD)
    even = breakeven_utilization_of_requests().subs({REQ_TPUT: node_saturated, BILL: Max(bill, bill_of_nothing())})
    breakeven = line("breakeven", even / SEC_PER_HOUR)
    line("loses", Piecewise((1, breakeven > 1), (0, True)))
    line("offer_usd", Piecewise((owned, reason < 1), (NEVER * owned, True)), USD)


def _usd_per_request(req_per_s: Expr) -> Expr:
    """Cost of a request on a node that makes so many per second without a pause, [USD]."""
    return cost_per_request().subs({REQ_TPUT: req_per_s, UTIL: 1}) / SEC_PER_HOUR


def bill_of_nothing() -> Expr:
    """Stand in for a bill of zero, against which no utilization pays, [USD]."""
    return PRICE * HOURS_A_MONTH / NEVER


def _bound(r: _Rates, d: _Decoder, at: _State, line: Callable[..., Symbol]) -> None:
    """Add the terms of a pass and the number of the largest, as `PassTime.bound` names it."""
    m = at.n * d.positions
    used = expert_share(m)
    terms = {
        "weights": r.always + r.routed * used,
        "matmul": (r.position + r.logit) * m + r.rows * used,
        "kv": at.n * d.reading,
        "attention": at.n * d.attending,
        "fixed": r.fixed + at.n * SEQUENCE_S,
        "communication": r.sums + m * r.sent,
        "activations": m * (r.moved + r.logit_moved),
    }
    found = [line(f"{name}_s", value, second) for name, value in terms.items()]
    largest = Max(*found)
    line("bound", Piecewise(*((i, found[i] >= largest) for i in range(len(TERMS) - 1)), (len(TERMS) - 1, True)))


def _percentile(state: Callable[..., _State], now: _State, room: Expr, line: Callable[..., Symbol]) -> None:
    """Add the 95th percentile of a whole request, and whether it can be trusted, as `analysis.model.queueing` does."""
    line("p95_s", now.l * exp(NORMAL_QUANTILE * sqrt(now.spread) - now.spread / 2) + OVERHEAD, second)
    added = now.more - now.l
    share = line("slope_load", now.h * added)
    upper = line("upper", now.n + 2 * sqrt(now.n - 1) / Max(1 - share, LEAST_LEFT))
    far, farther = state(upper, "far", judged=False), state(upper + 1, "farther", judged=False)
    bend = (farther.l - far.l) / added
    straight = ((bend <= BEND_OF_DOMAIN) & (bend >= 1 / BEND_OF_DOMAIN)) | (now.n <= 1)
    line("trusted", Piecewise((1, straight & (share <= LOAD_OF_DOMAIN) & (upper <= room)), (0, True)))


# --- The whole -----------------------------------------------------------------------------------


@cache
def lines() -> tuple[Line, ...]:
    """List every line of the computation, in order, constants still as symbols."""
    of = _Lines()
    prices = {PRICE_IN: API_IN / TOK_PER_MTOK, PRICE_HIT: API_HIT / TOK_PER_MTOK, PRICE_OUT: API_OUT / TOK_PER_MTOK}
    bill = of.add("request_usd_api", api_bill().subs(prices), USD)
    of.add("cost_usd_per_mtok_api", bill * TOK_PER_MTOK / ANSWER, USD)
    mean_rate = PEAK_REQ * DAY_SHARE
    of.add("month_usd_api", bill * mean_rate * SEC_PER_HOUR * HOURS_A_MONTH, USD)
    r = _rates(of)
    for suffix in DECODERS:
        _served(of, r, suffix, bill)
    # an axis of the map of decisions: what would be under way if none met another, one token at a time
    of.add("together", PEAK_REQ * Symbol("l_ar_alone", positive=True))

    # the rival's own latency, where it is known
    known = (API_FIRST > NOTHING_S) & (API_SPEED * 10**-9 > 1 / (10**18 * NOTHING_S))
    writing = Max(ANSWER + THINKING - 1, 0) / API_SPEED
    each = 1 / API_SPEED
    time = Piecewise((API_FIRST + writing, Rational(3, 2) > METRIC), (API_FIRST, Rational(5, 2) > METRIC), (each, True))
    metric = of.add("metric_s_api", Piecewise((time, known), (0 * API_FIRST, True)), second)
    reason = of.add("reason_api", Piecewise((1, known & (metric > BUDGET)), (0, known), (2, True)))
    of.add("unsure_api", Piecewise((1, (reason > Rational(3, 2)) & (PATIENT_S > BUDGET)), (0, True)))
    fine = (reason < Rational(1, 2)) | (reason > Rational(3, 2))
    offer = of.add("offer_usd_api", Piecewise((bill, fine), (NEVER * bill + NEVER * bill_of_nothing(), True)), USD)

    # the answer: the cheapest that keeps the budget; its number, 4 where nothing does
    offers = [*(Symbol(f"offer_usd_{suffix}", positive=True) for suffix in DECODERS), offer]
    own = Min(*offers[:-1])
    best = of.add("best_usd", Min(*offers), USD)
    nothing = of.add("none", Piecewise((1, best > NEVER * bill_of_nothing()), (0, True)))
    cases = [(i, offers[i] <= best) for i in range(len(offers) - 1)]
    of.add("choice", Piecewise((len(offers), nothing > Rational(1, 2)), *cases, (len(offers) - 1, True)))
    own_best = [(i, offers[i] <= own) for i in range(len(DECODERS) - 1)]
    of.add("best_own", Piecewise(*own_best, (len(DECODERS) - 1, True)))
    of.add("own_none", Piecewise((1, own > NEVER * bill_of_nothing()), (0, True)))
    of.add("own_over_api", Min(own / Max(offer, bill_of_nothing()), NEVER))
    return tuple(of.lines)


def curve(suffix: str) -> list[tuple[Symbol, Expr]]:
    """List the lines of a replica that holds ``this_n`` requests, in order: time of a pass to the budget's time.

    Their other symbols are lines of `chain`.
    """
    of = _Lines()
    found = _state_lines(_rates(of), _decoder(of, suffix), judged=True)
    return [(_own(name), value.xreplace(dict(CONSTANTS))) for name, value, _ in found]


@cache
def chain() -> tuple[Line, ...]:
    """List every line with the numbers of its constants in place: what a page computes."""
    numbers = {**CONSTANTS, **{e.symbol: e.constant for e in TABLE.values() if e.constant is not None}}
    values = {line.value: line.value.xreplace(numbers) for line in lines()}
    return tuple(replace(line, value=values[line.value]) for line in lines())
