"""The page "Your workload": a form, the chain that computes from it, and what is shown of the result.

The chain is `analysis.symbolic.workload`, printed to Vega; the page's script moves numbers from the form into it and
words and numbers out of it, and holds no formula. What choices fill in is handed over.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sympy import Rational, Symbol

from analysis.inputs import InputError
from analysis.present import display, theme, vega
from analysis.symbolic import workload

# --- What is handed over -----------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """One entry of a choice: the word that stands for it in a link, and what a reader sees."""

    key: str
    label: str


@dataclass(frozen=True)
class Choice:
    """Something that is chosen from a list."""

    name: str
    options: Sequence[Option]
    default: str


@dataclass(frozen=True)
class Filled:
    """What one choice fills in: numbers by the names of the chain's inputs, and other choices."""

    values: Mapping[str, float]
    sets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Fill:
    """Numbers that follow from one choice or from several together; a combination that has none is not there."""

    keys: tuple[str, ...]
    rows: Mapping[tuple[str, ...], Filled]


# --- The form ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """A number that is typed.

    Parameters
    ----------
    symbol : str
        Input of the chain that it gives.
    label, unit, words : str
        What a reader sees.
    low, high : float
        What is accepted, in this unit.
    scale : number of SymPy
        Base units in one of this unit.
    slider : float, optional
        Step of a slider beside it.
    whole : bool
        Only whole numbers.
    optional : bool
        May be left empty: not known.
    default : float, optional
        Where no choice fills it in.
    """

    symbol: str
    label: str
    unit: str
    words: str
    low: float
    high: float
    scale: Any = 1
    slider: float | None = None
    whole: bool = False
    optional: bool = False
    default: float | None = None

    @property
    def name(self) -> str:
        """Its name on the page and in links."""
        return f"in_{self.symbol}"


@dataclass(frozen=True)
class Group:
    """Fields and choices under one heading; a folded one is for those who know more than the tables."""

    title: str
    parts: tuple[Field | str, ...]
    folded: bool = False
    note: str = ""


TERA, GIGA, MEGA, KILO, MICRO = 10**12, 10**9, 10**6, 10**3, Rational(1, 10**6)
#: Labels of choices, and what to say about them.
CHOICES = {
    "workload": ("Start from", "An example that fills in everything below."),
    "metric": ("The budget covers", "What has to be there within the latency budget."),
    "node": ("Node", "From the price tables; a price can be typed too."),
    "ownership": ("How you have it", "Fills in the price of an hour where the tables know one."),
    "gpus": ("GPUs of a replica", "How many GPUs share each copy of the model."),
    "engine": ("Engine", "Whose measured efficiency is used."),
    "model": ("Model", "Fills in layers, parameters, cache and experts."),
    "weights": ("Format of the weights", "Four-bit integers save bytes and no arithmetic."),
    "kv": ("Format of the cache", "Fewer bytes let more requests in."),
    "api": ("Rival at an API", "Its cheapest seller in the tables; prices can be typed."),
}


def _number(symbol: str, label: str, unit: str, low: float, high: float, words: str, **more: Any) -> Field:
    return Field(symbol, label, unit, words, low, high, **more)


GROUPS = (
    Group(
        "The work",
        (
            "workload",
            _number("prompt", "Prompt", "tokens", 1, 1e6, "What one request sends, cached part included."),
            _number("cached", "Cached part of it", "tokens", 0, 1e6, "Held by a prefix cache."),
            _number("answer", "Answer", "tokens", 1, 1e5, "What one request gets back."),
            _number("peak_req_per_s", "Busiest hour", "requests/s", 1e-4, 1e5, "Mean rate of requests in that hour."),
            _number("day_share", "Average rate / busiest-hour rate", "", 0.01, 1, "1: the same all day.", slider=0.01),
            _number("budget_s", "Latency budget", "s", 0.001, 1e6, "Large if nobody waits."),
            "metric",
            _number("overhead_s", "Outside the GPU", "s", 0, 60, "Network, queues before, checks after.", default=0),
        ),
    ),
    Group(
        "The hardware",
        (
            "node",
            "ownership",
            # at a price of nothing what keeps no budget would cost nothing too, and could not be told apart
            _number(
                "price", "Price of the node", "USD/hour", 0.01, 1e4, "All its GPUs, all hours paid; 0.01 if it is free."
            ),
            "gpus",
            "engine",
            _number("spares", "Spare nodes", "", 0, 100, "Bought beside those that serve.", whole=True, default=0),
        ),
    ),
    Group("The model", ("model", "weights", "kv")),
    Group(
        "Other decoders",
        (
            _number(
                "acceptance", "Drafts: acceptance", "", 0, 1, "Chance that a draft is kept.", slider=0.01, default=0.75
            ),
            _number("draft_length", "Drafts: length", "tokens", 1, 64, "Before each check.", default=4, whole=True),
            _number(
                "draft_cost", "Drafts: cost of one", "", 0, 2, "Over a pass of the model, same batch.", default=0.05
            ),
            _number("block", "Diffusion: block", "tokens", 1, 4096, "Made together.", default=32, whole=True),
            _number(
                "passes",
                "Diffusion: passes of a block",
                "",
                1,
                4096,
                "On average.",
                default=12,
                slider=1,
            ),
        ),
        note="All three decoders are always computed: one token at a time, with drafts, by diffusion; the same model "
        "in each form, if it existed in each. Quality is not part of this page.",
    ),
    Group(
        "The rival",
        (
            "api",
            _number("api_input_usd_per_mtok", "Input", "USD/Mtok", 0, 1e4, "A million tokens of prompts."),
            _number("api_cached_usd_per_mtok", "Cached input", "USD/Mtok", 0, 1e4, "Those that it has cached."),
            _number("api_output_usd_per_mtok", "Output", "USD/Mtok", 0, 1e4, "A million tokens of answers."),
            _number("discount", "Discount", "", 0, 0.99, "Batch tiers give half.", default=0, slider=0.01),
            _number("thinking", "Hidden thinking", "tokens", 0, 1e6, "Billed as output.", default=0),
            _number("api_first_s", "First token after", "s", 0, 1000, "As listed, thinking included.", optional=True),
            _number("api_tok_per_s", "Then", "tokens/s", 0, 1e5, "Empty: not known.", optional=True),
        ),
    ),
    Group(
        "Your own model: its sums over all layers",
        (
            _number("layers", "Layers", "", 1, 1000, "Of all kinds.", whole=True),
            _number("hidden", "Width", "", 1, 1e6, "Of the residual stream."),
            _number("vocab", "Vocabulary", "", 1, 1e7, "Rows of the embedding."),
            _number("max_context", "Context at most", "tokens", 1, 1e8, "Empty: without a limit.", optional=True),
            _number(
                "layer_weights",
                "Weights per token",
                "billion",
                1e-6,
                1e5,
                "Without the head.",
                scale=GIGA,
            ),
            _number("stored_byte", "Weights stored", "GB", 1e-6, 1e5, "All of them, in their format.", scale=GIGA),
            _number("always_byte", "Read by each pass", "GB", 1e-6, 1e5, "Weights outside experts.", scale=GIGA),
            _number("routed_byte", "Experts stored", "GB", 0, 1e5, "0 if it has none.", scale=GIGA),
            _number("experts", "Experts", "", 1, 1e5, "Of a layer; 1 if it has none.", whole=True),
            _number("top_k", "Experts of a token", "", 1, 1e4, "1 if it has none.", whole=True),
            _number(
                "expert_row_flop",
                "Arithmetic in all experts",
                "GFLOP",
                0,
                1e6,
                "0 if none.",
                scale=GIGA,
            ),
            _number("expert_layers", "Layers with experts", "", 0, 1000, "0 if it has none."),
            _number("plain_layers", "Kernels", "layers", 0.1, 5000, "Over those of a plain layer."),
            _number("kv_full_byte", "Cache read", "kB/token", 0, 1e6, "Layers that see everything.", scale=KILO),
            _number("kv_windowed_byte", "Cache read in windows", "kB/token", 0, 1e6, "Other layers.", scale=KILO),
            _number("window", "Window", "tokens", 1, 1e7, "Of those layers."),
            _number("kept_full_byte", "Cache held", "kB/token", 0, 1e6, "For every token.", scale=KILO),
            _number("kept_windowed_byte", "Cache held in windows", "kB/token", 0, 1e6, "The last ones.", scale=KILO),
            _number("kv_copies", "Copies of the cache", "", 1, 64, "Where GPUs outnumber KV heads."),
            _number("seen_full_flop", "Attention", "MFLOP", 0, 1e6, "Per token seen.", scale=MEGA),
            _number("seen_windowed_flop", "Attention in windows", "MFLOP", 0, 1e6, "Per token seen.", scale=MEGA),
            _number(
                "expanded_full_flop",
                "Attention, expanded",
                "MFLOP",
                0,
                1e6,
                "If latent; else as above.",
                scale=MEGA,
            ),
            _number("expanded_windowed_flop", "Expanded in windows", "MFLOP", 0, 1e6, "The same.", scale=MEGA),
            _number("again_full_flop", "Expanding", "MFLOP", 0, 1e6, "Per cached token, 0 if not latent.", scale=MEGA),
            _number("again_windowed_flop", "Expanding in windows", "MFLOP", 0, 1e6, "The same.", scale=MEGA),
            _number(
                "whole_elements",
                "Moved by every GPU",
                "million",
                0,
                1e4,
                "Numbers of a position.",
                scale=MEGA,
            ),
            _number(
                "split_elements",
                "Moved by one of them",
                "million",
                0,
                1e4,
                "Where layers are split.",
                scale=MEGA,
            ),
        ),
        folded=True,
    ),
    Group(
        "Your own hardware: one GPU, and the engine on it",
        (
            _number("node_gpus", "GPUs of the node", "", 1, 1024, "Replicas never span nodes.", whole=True),
            _number("peak_flop_per_s", "Peak of matmuls", "TFLOP/s", 1, 1e6, "Dense, in their format.", scale=TERA),
            _number("peak_16bit_flop_per_s", "Peak in 16 bit", "TFLOP/s", 1, 1e6, "For attention.", scale=TERA),
            _number("mem_bw_byte_per_s", "Memory bandwidth", "GB/s", 1, 1e6, "Of the data sheet.", scale=GIGA),
            _number("memory_byte", "Memory", "GB", 1, 1e5, "Of one GPU.", scale=GIGA),
            _number("link_byte_per_s", "Link", "GB/s", 0.1, 1e5, "What a sum reaches, one direction.", scale=GIGA),
            _number("all_reduce_s", "All-reduce", "µs", 0, 1e5, "Latency of a small one.", scale=MICRO),
            _number("mbu", "Reached of bandwidth", "", 0.01, 1, "Fitted on measurements."),
            _number("mfu", "Reached of peak", "", 0.01, 1, "Fitted on measurements."),
            _number("attention_mfu", "Reached in attention", "", 0.01, 1, "Fitted on measurements."),
            _number("expert_mfu", "Reached in experts", "", 0.01, 1, "Of the above."),
            _number("expert_rows", "Rows each expert costs", "", 0, 1000, "Beside those routed to it."),
            _number("layer_s", "Fixed time of a layer", "µs", 0, 1e5, "Launches, small kernels.", scale=MICRO),
            _number("expert_layer_s", "Experts add to it", "µs", 0, 1e5, "Choice, permutation.", scale=MICRO),
            _number("prompt_layer_s", "Prompts add to it", "µs", 0, 1e5, "Passes that read them.", scale=MICRO),
            _number("sequence_s", "Each sequence adds", "µs", 0, 1e5, "Scheduling, sampling.", scale=MICRO),
            _number("activation_share", "Activations", "", 0, 100, "Traffic over what is counted."),
            _number("overlap", "Overlap", "", 1, 16, "1: reading and computing add; many: they overlap."),
            _number("memory_share", "Usable memory", "", 0.1, 1, "Share of the card."),
            _number("reserved_share", "Of weights counted", "", 0.1, 1, "Less where the share is of the rest."),
            _number("reserve_byte", "Reserved on each GPU", "GB", 0, 1000, "Context and workspace.", scale=GIGA),
            _number("slots", "Slots", "", 1, 1e5, "Requests that the engine runs together."),
            _number("chunk_tokens", "Prompt tokens of a pass", "tokens", 1, 1e6, "More take several."),
        ),
        folded=True,
    ),
)
FIELDS = tuple(part for group in GROUPS for part in group.parts if isinstance(part, Field))
#: Pairs of fields of which the first, or the sum of the first, must not exceed the second; whether they must differ
#: too; and what to say otherwise.
RULES: tuple[tuple[str | tuple[str, ...], str, bool, str], ...] = (
    ("cached", "prompt", True, "The cached part has to be smaller than the prompt: its last token is computed."),
    ("gpus", "node_gpus", False, "A replica cannot have more GPUs than the node."),
    ("top_k", "experts", False, "A token cannot use more experts than there are."),
    (
        ("prompt", "answer"),
        "max_context",
        False,
        "Prompt and answer together are longer than the context of {model}, {in_max_context} tokens: choose another "
        "model, or shorten them.",
    ),
)

#: What to say where a combination of choices has no number.
MISSING = {
    "price": "The tables know no price of this node in this way to have it: type one.",
    "kv_copies": "The heads of this model cannot be split among so many GPUs: choose fewer.",
}


def entered() -> list[vega.Step]:
    """Turn what is typed into base units: the first lines of the chain; typed text becomes numbers here.

    Examples
    --------
    >>> [step.value for step in entered() if step.symbol.name == "mem_bw_byte_per_s"]
    [1000000000*in_mem_bw_byte_per_s]
    """
    symbols = {symbol.name: symbol for symbol in workload.INPUTS}
    # what only limits the others is no part of the chain
    return [
        vega.Step(symbols[one.symbol], one.scale * Symbol(one.name, positive=True))
        for one in (*FIELDS, *_CHOSEN)
        if one.symbol in symbols
    ]


#: Numbers that only choices give.
_CHOSEN = (
    Field("gpus", "GPUs of a replica", "", "", 1, 64, whole=True),
    Field("metric", "Budget", "", "", 0, 3, whole=True),
)


def steps() -> list[vega.Step]:
    """List the whole computation, from what is typed to what is shown.

    Examples
    --------
    >>> found = steps()
    >>> found[-1].symbol.name, len(found) > 500
    ('own_over_api', True)
    """
    return entered() + [vega.Step(line.symbol, line.value, line.renamed) for line in workload.chain()]


def inputs() -> list[Symbol]:
    """List the symbols of what is typed or chosen."""
    return [Symbol(one.name, positive=True) for one in (*FIELDS, *_CHOSEN)]


def baseline(choices: Mapping[str, str], fills: Sequence[Fill]) -> tuple[dict[str, str], dict[str, float | None]]:
    """Fill in everything that follows from some choices, as the page does when it opens.

    Parameters
    ----------
    choices : mapping of str to str
        What was chosen; the rest is as these set it.
    fills : sequence of Fill

    Returns
    -------
    tuple of dict
        All choices with those that others set, and the number of each input by its name in the chain, in base units;
        None where nothing is known.

    Examples
    --------
    >>> fill = Fill(("a",), {("x",): Filled({"price": 2.0}, {"b": "y"})})
    >>> chosen, values = baseline({"a": "x"}, [fill])
    >>> chosen["b"], values["price"], values["spares"], values["hidden"]
    ('y', 2.0, 0.0, None)
    """
    chosen = dict(choices)
    values: dict[str, float | None] = {
        one.symbol: None if one.default is None else float(one.default * one.scale) for one in (*FIELDS, *_CHOSEN)
    }
    for fill in fills:
        filled = fill.rows.get(tuple(chosen[key] for key in fill.keys), Filled({}))
        names = {name for row in fill.rows.values() for name in row.values}
        values |= {name: filled.values.get(name) for name in sorted(names)}
        chosen |= {name: key for name, key in filled.sets.items() if name not in choices}
    return chosen, values


def compute(values: Mapping[str, Any]) -> dict[str, Any]:
    """Compute in NumPy what the page computes: the twin of its dataflow.

    Parameters
    ----------
    values : mapping of str to float, array or None
        Of each input of the chain, in base units; what is not known counts as 0, as on the page.

    Returns
    -------
    dict of str to float or array
        Each line of the chain.
    """
    typed = {}
    for one in (*FIELDS, *_CHOSEN):
        value = values[one.symbol]
        typed[Symbol(one.name, positive=True)] = 0.0 if value is None else np.asarray(value, float) / float(one.scale)
    return vega.evaluate(steps(), typed)


# --- What is shown -----------------------------------------------------------------------------

#: How numbers are written: options of the browser's own formatting, and what follows them.
FORMATS: dict[str, dict[str, Any]] = {
    "usd": {"options": {"style": "currency", "currency": "USD", "maximumSignificantDigits": 3}, "after": ""},
    "s": {"options": {"maximumSignificantDigits": 3}, "after": " s"},
    "per_s": {"options": {"maximumSignificantDigits": 3}, "after": "/s"},
    "share": {"options": {"style": "percent", "maximumSignificantDigits": 3}, "after": ""},
    "number": {"options": {"maximumSignificantDigits": 3}, "after": ""},
    "whole": {"options": {"maximumFractionDigits": 0}, "after": ""},
    "times": {"options": {"maximumSignificantDigits": 2}, "after": " times"},
}
OPTIONS = {
    "ar": ("One token at a time", theme.AUTOREGRESSIVE),
    "sd": ("With drafts", theme.SPECULATIVE),
    "dl": ("By diffusion", theme.DIFFUSION),
    "api": ("The API", theme.API),
}
_WHY = ("", "does not fit", "too slow")
_WHY_API = ("", "too slow", "")
_BOUNDS = ("reading weights", "matmuls", "reading the cache", "attention", "fixed time", "communication", "activations")
#: Rows of the table: words, lines of the chain, how they are written; whether they need a price; the API's line.
ROWS: tuple[tuple[str, str, str, bool, str | None], ...] = (
    ("Cost of a request", "request_usd", "usd", True, "request_usd_api"),
    ("Cost of a million answer tokens", "cost_usd_per_mtok", "usd", True, "cost_usd_per_mtok_api"),
    ("the same, if it never idled", "saturated_usd_per_mtok", "usd", False, None),
    ("Bill of a month", "month_usd", "usd", True, "month_usd_api"),
    ("Cheaper than the API from", "breakeven", "share", False, None),
    ("Nodes, spares included", "nodes", "whole", True, None),
    ("Utilization over the day", "utilization", "share", True, None),
    ("Alone, without any load", "floor_s", "s", False, None),
    ("At the busiest hour, what the budget is about", "metric_s", "s", True, "metric_s_api"),
    ("95 of 100 whole answers within", "p95_s", "s", True, None),
    ("A pass then", "pass_s", "s", True, None),
    ("which is mostly", "bound", "words", True, None),
    ("Requests in a replica then", "batch", "number", True, None),
    ("Requests under way in all", "concurrency", "number", True, None),
    ("A replica takes at most", "replica_req_per_s", "per_s", True, None),
)
#: Rows with which something else begins: nodes, time, what happens inside.
_FIRST = ("nodes", "floor_s", "pass_s")
_RIVAL = "against {request_usd_api|usd} for {api} at {seller}"
_SLOW_RIVAL = "while {api} at {seller}, for {request_usd_api|usd}, takes {metric_s_api|s}"
#: An API whose speed nobody published is called on a condition, but where the budget is minutes.
_CALLS: tuple[tuple[dict[str, int], str], ...] = (
    (
        {"unsure_api": 1},
        "Call {api} at {seller} if it is fast enough, which is not known: {request_usd_api|usd} a request.",
    ),
    ({}, "Call {api} at {seller}: {request_usd_api|usd} a request."),
)


def _own_sentence(index: int, suffix: str, rival: str) -> str:
    how = ("one token at a time", "with drafts", "by diffusion")[index]
    nodes, usd = f"{{nodes_{suffix}|whole}} × {{node}}", f"{{request_usd_{suffix}|usd}}"
    return f"Run {{model}} yourself, {how}: {nodes} at {usd} a request, {rival}."


#: The sentence that says the answer: the first whose lines have the numbers that it asks for.
ANSWERS: tuple[dict[str, Any], ...] = (
    *(
        {"when": {"choice": i, **asked}, "text": _own_sentence(i, suffix, rival)}
        for i, suffix in enumerate(workload.DECODERS)
        for asked, rival in (({"reason_api": 1}, _SLOW_RIVAL), ({}, _RIVAL))
    ),
    *(
        {"when": {"choice": 3, **asked, **unknown}, "text": f"{call} {why}"}
        for asked, why in (
            (
                {"own_none": 1, "reason_ar": 1},
                "{model} and one request do not fit into the memory of a replica: take more GPUs per replica, or a "
                "smaller format.",
            ),
            (
                {"own_none": 1},
                "No replica of {model} in this shape keeps the budget: alone, one token at a time takes "
                "{floor_s_ar|s}.",
            ),
            *(
                (
                    {"best_own": i},
                    f"{{model}} on your own nodes costs {{own_over_api|times}} as much: {{nodes_{suffix}|whole}} × "
                    f"{{node}}, used to {{utilization_{suffix}|share}} of their capacity over the day.",
                )
                for i, suffix in enumerate(workload.DECODERS)
            ),
        )
        for unknown, call in _CALLS
    ),
    {
        "when": {"reason_ar": 1},
        "text": "Nothing here keeps the budget: {api} at {seller} is too slow, and {model} and one request do not fit "
        "into the memory of a replica: take more GPUs per replica, or a smaller format.",
    },
    {
        "when": {},
        "text": "Nothing here keeps the budget: alone, a request takes {floor_s_ar|s} one token at a time, "
        "{floor_s_dl|s} by diffusion. More GPUs for a replica, faster ones, or a smaller model would.",
    },
)
#: What else has to be said, each where its lines have these numbers.
NOTES: tuple[dict[str, Any], ...] = (
    *(
        {
            "when": {"best_own": i, f"near_{suffix}": 1, f"reason_{suffix}": 0},
            "text": "Your nodes would stand near overload: a burst, and answers wait long.",
        }
        for i, suffix in enumerate(workload.DECODERS)
    ),
    *(
        {
            "when": {f"reason_{suffix}": 1},
            "text": f"{OPTIONS[suffix][0]}, the model and one request do not fit into the memory of a replica.",
        }
        for suffix in workload.DECODERS
    ),
    *(
        {
            "when": {"reason_ar": fits},
            "text": "On the axes of the map of decisions this work lies at {together|number} requests together, the "
            "peak rate times the {l_ar_alone|s} of one alone token by token, and at {in_api_output_usd_per_mtok|usd} "
            "for a million output tokens of the API.",
        }
        for fits in (0, 2)
    ),
    {
        "when": {},
        "differ": ["model", "api"],
        "text": "The rival is another model, {api} and not {model}: whether it answers as well is not computed here.",
    },
    {
        "when": {},
        "above": ["in_passes", "in_block"],
        "text": "A block of diffusion takes more passes here than it has tokens, and one pass for each token would do.",
    },
    {"when": {"reason_api": 2}, "text": "How fast the API answers is not known here: type it, or measure it."},
)
#: The command that simulates the same, in parts that depend on choices and lines.
COMMAND: tuple[dict[str, Any], ...] = (
    {"text": "python -m analysis capacity --model {model}"},
    {"unless": {"weights": "released"}, "text": "--weights {weights}"},
    {"text": "--kv {kv} --engine {engine} --gpu {gpu} --gpus {in_node_gpus} --tp {gpus}"},
    {"text": "--node-usd-per-hour {in_price} --rate-req-per-s {in_peak_req_per_s}"},
    {"text": "--input-tokens {in_prompt} --cached-tokens {in_cached} --output-tokens {in_answer}"},
    {"text": "--budget-s {in_budget_s} --overhead-s {in_overhead_s} --spares {in_spares}"},
    {"unless": {"metric": "p95"}, "text": "--metric {metric}"},
    {"text": "--percentile 95"},
    {
        "when": {"best_own": 1},
        "text": "--decoder speculative --acceptance {in_acceptance} --draft-length {in_draft_length}",
    },
    {"when": {"best_own": 1}, "text": "--draft-cost {in_draft_cost}"},
    {"when": {"best_own": 2}, "text": "--decoder diffusion --block {in_block} --passes {in_passes}"},
    {"text": "--method simulation"},
)


def _cells() -> list[list[dict[str, Any] | None]]:
    """For each row of the table and each option: which line is shown, how, and what stands there without a price."""
    rows: list[list[dict[str, Any] | None]] = []
    for _, line, kind, priced, rival in ROWS:
        row: list[dict[str, Any] | None] = []
        for suffix in workload.DECODERS:
            cell: dict[str, Any] = {"line": f"{line}_{suffix}"}
            cell |= {"words": _BOUNDS} if kind == "words" else {"format": kind}
            cell["unless"] = [{"line": f"reason_{suffix}", "words": _WHY if priced else ("", _WHY[1], "")}]
            if line == "breakeven":
                cell["unless"].append({"line": f"loses_{suffix}", "words": ("", "not even full")})
            if line == "p95_s":
                cell["mark"] = {"line": f"trusted_{suffix}", "words": (" *", "")}
            row.append(cell)
        unless = [{"line": "reason_api", "words": ("", "", "not known")}] if rival == "metric_s_api" else []
        row.append(None if rival is None else {"line": rival, "format": kind, "unless": unless})
        rows.append(row)
    return rows


def _chart() -> dict[str, Any]:
    """Bars of what a million answer tokens cost in each way, out of the lines of the chain."""
    names = {suffix: words for suffix, (words, _) in OPTIONS.items()}
    rows = [{"option": suffix, "name": name} for suffix, name in names.items()]

    def chosen(line: str, otherwise: str) -> str:
        text = otherwise
        for suffix in reversed(OPTIONS):
            text = f"datum.option == '{suffix}' ? {line}_{suffix} : {text}"
        return text

    why = "datum.reason == 0 ? '' : datum.option == 'api' ? (datum.reason == 1 ? 'too slow' : '') : "
    why += f"datum.reason == 1 ? '{_WHY[1]}' : '{_WHY[2]}'"
    x = {
        "field": "shown",
        "type": "quantitative",
        "title": "Cost of a million answer tokens (USD)",
        "axis": {"tickCount": 5, "format": "~s"},
    }
    y = {
        "field": "name",
        "type": "nominal",
        "title": None,
        "sort": list(names.values()),
        "axis": {"ticks": False, "domain": False, "labelLimit": 150},
    }
    return {
        "data": {"values": rows},
        "transform": [
            {"calculate": chosen("reason", "0"), "as": "reason"},
            {"calculate": why, "as": "why"},
            {"calculate": chosen("cost_usd_per_mtok", "0"), "as": "usd"},
            {"calculate": "datum.why == '' ? datum.usd : 0", "as": "shown"},
            {"calculate": "datum.why == '' ? '$' + format(datum.usd, ',.3~r') : datum.why", "as": "text"},
        ],
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "bar", "height": 18},
                "encoding": {
                    "x": x,
                    "color": {
                        "field": "option",
                        "type": "nominal",
                        "legend": None,
                        "scale": {"domain": list(OPTIONS), "range": [mark.colour for _, mark in OPTIONS.values()]},
                    },
                },
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 5, "color": theme.INK.colour},
                "encoding": {"x": x, "text": {"field": "text", "type": "nominal"}},
            },
        ],
        "height": 34 * len(OPTIONS),
        "padding": {"left": 4, "right": 64, "top": 4, "bottom": 4},
    }


#: Labels of an axis of ratios: plain numbers, over more than a decade those that begin with 1, 2 or 5.
_LOG_LABEL = (
    "domain('y')[1] > 10 * domain('y')[0] && !test(/^0*[125]0*$/, replace(format(datum.value, '.3~r'), '.', ''))"
    " ? '' : format(datum.value, ',.6~r')"
)
#: Points of each line of the second chart.
_POINTS = 48
#: Over the longest time: a budget above it is not drawn but told.
_FAR = 20


def _copies() -> list[str]:
    """Lines of the chain that the second chart needs."""
    needed = {"budget_s"}
    for suffix in workload.DECODERS:
        own = {symbol for symbol, _ in workload.curve(suffix)} | {workload.THIS.n}
        needed |= {str(symbol) for _, value in workload.curve(suffix) for symbol in value.free_symbols - own}
        needed |= {f"{line}_{suffix}" for line in ("room", "replicas", "each_req_per_s", "metric_s", "reason")}
    return sorted(needed)


def load(fills: Sequence[Fill], *, name: str, alt: str) -> display.Shown:
    """Show the time that the budget is about against the load of a node, which follows the form on the same page.

    Parameters
    ----------
    fills : sequence of Fill
        As in `show`.
    name, alt : str
        As in `analysis.present.display.figure`.

    Returns
    -------
    Shown
        A chart that starts with the first example.
    """
    found = compute(baseline({"workload": "0"}, fills)[1])
    x = {
        "field": "rate",
        "type": "quantitative",
        "title": "Requests per second of a node",
        "axis": {"tickCount": 6, "format": ",.3~f"},
    }
    y = {
        "field": "time",
        "type": "quantitative",
        "title": "What the budget is about (s)",
        "scale": {"type": "log", "nice": False, "padding": 12},
        "axis": {"tickCount": 6, "labelExpr": _LOG_LABEL, "labelOverlap": "greedy"},
    }
    shown = [*(OPTIONS[suffix] for suffix in workload.DECODERS), ("Budget", replace(theme.INK, dash=(6, 4)))]
    hues = {"domain": [words for words, _ in shown], "range": [mark.colour for _, mark in shown]}
    dashes = {"domain": hues["domain"], "range": [list(mark.dash) or [1, 0] for _, mark in shown]}
    legend: dict[str, Any] = {"title": None, "orient": "top", "symbolType": "stroke", "symbolSize": 300}
    # above the axis title, which stands over the plot; in two rows on a phone
    legend |= {"offset": 24, "columns": {"expr": "width < 420 ? 2 : 4"}}
    # a budget far above all times would press them to the ground: then words stand in its place
    times = [f"(reason_{suffix} == 1 ? 0 : metric_s_{suffix})" for suffix in workload.DECODERS]
    longest = f"max({', '.join(times)})"
    far = f"({longest} > 0 && budget_s > {_FAR} * {longest})"
    level = f"({far} ? {longest} : budget_s)"
    layers: list[dict[str, Any]] = []
    for suffix in workload.DECODERS:
        words, mark = OPTIONS[suffix]
        steps_of = workload.curve(suffix)
        names = {symbol: f"datum.{symbol.name}" for symbol in (workload.THIS.n, *(symbol for symbol, _ in steps_of))}
        # one more: where more requests come than a full replica holds, they wait, and the line goes on level
        rows = [{"share": k / (_POINTS - 1), "name": words} for k in range(_POINTS + 1)]
        layers.append(
            {
                "data": {"values": rows},
                "transform": [
                    {"calculate": f"pow(max(room_{suffix}, 1), min(datum.share, 1))", "as": workload.THIS.n.name},
                    *(
                        {"calculate": vega.expression(value, names=names), "as": symbol.name}
                        for symbol, value in steps_of
                    ),
                    # what has no line is a single point: without any, Vega complains of an axis without an end
                    {
                        "calculate": f"datum.share > 1 ? max(datum.this_h, each_req_per_s_{suffix}) : datum.this_h",
                        "as": "each",
                    },
                    {"calculate": f"reason_{suffix} == 1 ? 0 : datum.each * replicas_{suffix}", "as": "rate"},
                    {"calculate": f"reason_{suffix} == 1 ? {level} : datum.this_m", "as": "time"},
                ],
                "mark": {"type": "line"},
                "encoding": {
                    "x": x,
                    "y": y,
                    "order": {"field": "share", "type": "quantitative"},
                    "color": {"datum": words, "type": "nominal", "scale": hues, "legend": legend},
                    "strokeDash": {"datum": words, "type": "nominal", "scale": dashes, "legend": legend},
                },
            }
        )
        layers.append(
            {
                "data": {"values": [{"name": words}]},
                "transform": [
                    {"calculate": f"reason_{suffix} == 0", "as": "shown"},
                    {"calculate": f"datum.shown ? each_req_per_s_{suffix} * replicas_{suffix} : 0", "as": "rate"},
                    {"calculate": f"datum.shown ? metric_s_{suffix} : {level}", "as": "time"},
                ],
                "mark": {"type": "point", "color": mark.colour, "shape": mark.shape, "size": 90},
                "encoding": {
                    "x": x,
                    "y": y,
                    "opacity": {"condition": {"test": "datum.shown", "value": 1}, "value": 0},
                },
            }
        )
    none = " && ".join(f"reason_{suffix} == 1" for suffix in workload.DECODERS)
    nothing = {
        "data": {"values": [{"name": "No line: the model does not fit."}]},
        "transform": [{"calculate": f"{none} ? datum.name : ''", "as": "shown"}],
        "mark": {"type": "text", "color": theme.INK.colour, "dy": -14},
        "encoding": {
            "text": {"field": "shown", "type": "nominal"},
            "x": {"value": {"expr": "width / 2"}},
            "y": {"value": {"expr": "height / 3"}},
        },
    }
    budget = {
        "data": {"values": [{"name": "budget"}]},
        "transform": [
            {"calculate": level, "as": "time"},
            {"calculate": "0", "as": "rate"},
            {"calculate": f"{far} ? 'Budget: ' + format(budget_s, ',.3~r') + ' s, far above' : ''", "as": "words"},
        ],
        "layer": [
            # where no line is drawn, the axis still has an end
            {"mark": {"type": "point", "opacity": 0}, "encoding": {"x": x}},
            {
                "mark": {"type": "rule"},
                "encoding": {
                    "color": {"datum": "Budget", "type": "nominal", "scale": hues, "legend": legend},
                    "strokeDash": {"datum": "Budget", "type": "nominal", "scale": dashes, "legend": legend},
                    "opacity": {"condition": {"test": far, "value": 0}, "value": 1},
                },
            },
            {
                "mark": {"type": "text", "color": theme.INK.colour, "align": "left"},
                "encoding": {
                    "text": {"field": "words", "type": "nominal"},
                    "x": {"value": 8},
                    "y": {"value": 8},
                },
            },
        ],
        "encoding": {"y": y},
    }
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "config": theme.config(),
        "description": alt,
        "params": [{"name": line, "value": display.rounded(float(found[line]))} for line in _copies()],
        "layer": [*layers, budget, nothing],
        "width": theme.WIDTH,
        "height": theme.HEIGHT,
        "usermeta": {"name": name, "fluid": True, "embedOptions": {"actions": False, "renderer": "svg"}},
    }
    return display.Shown({display.VEGA_LITE: spec, "text/plain": f"[chart] {alt}"})


def show(choices: Sequence[Choice], fills: Sequence[Fill], *, name: str, alt: str) -> display.Shown:
    """Show the page: the chart that holds the chain, the form and the table for the site's renderer.

    Parameters
    ----------
    choices : sequence of Choice
    fills : sequence of Fill
        In an order in which each uses choices and names that earlier ones set.
    name, alt : str
        As in `analysis.present.display.figure`.

    Returns
    -------
    Shown
        A chart for notebooks; on the site a form, an answer, a table and the chart.

    Raises
    ------
    InputError
        If a choice, its default or a filled number is not known to the page.
    """
    known = {choice.name: {option.key for option in choice.options} for choice in choices}
    numbers = {one.symbol for one in (*FIELDS, *_CHOSEN)}
    for group in GROUPS:
        for part in group.parts:
            if isinstance(part, str) and part not in known:
                raise InputError("choices", ", ".join(known), f"a choice of {part}")
    for fill in fills:
        for key, row in fill.rows.items():
            for strange in sorted(set(row.values) - numbers):
                raise InputError(f"fill {', '.join(key)}", strange, "an input of the chain")
            for chosen, option in row.sets.items():
                if chosen in known and option not in known[chosen]:
                    raise InputError(f"fill {', '.join(key)}", option, f"an option of {chosen}")
    start = {choice.name: choice.default for choice in choices if choice.name == "workload"}
    _, values = baseline(start, fills)
    typed = {
        one.name: None if values[one.symbol] is None else _typed(one, values[one.symbol]) for one in (*FIELDS, *_CHOSEN)
    }
    spec = _chart() | {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "params": [
            *({"name": entry, "value": 0 if value is None else value} for entry, value in typed.items()),
            *vega.chain(steps(), inputs=inputs()),
        ],
        "config": theme.config(),
        "description": alt,
        "width": theme.WIDTH,
    }
    spec["usermeta"] = {
        "name": name,
        "fluid": True,
        "embedOptions": {"actions": False, "renderer": "svg"},
        # as text: each of some thousand numbers would take a line of the notebook
        "calculator": json.dumps(_page(choices, fills, typed), ensure_ascii=False, separators=(",", ":")),
    }
    return display.Shown({display.VEGA_LITE: spec, "text/plain": f"[calculator] {alt}"})


def _typed(one: Field, value: float | None) -> float:
    """Put a number into the unit of its field, to six digits."""
    found: float = display.rounded(float(value or 0.0) / float(one.scale))
    return found


def _page(choices: Sequence[Choice], fills: Sequence[Fill], typed: Mapping[str, float | None]) -> dict[str, Any]:
    """Return what the page's script and the site's renderer need, as plain JSON."""
    by_symbol = {one.symbol: one for one in (*FIELDS, *_CHOSEN)}
    tables = []
    for fill in fills:
        names = sorted({name for row in fill.rows.values() for name in row.values})
        sets = sorted({name for row in fill.rows.values() for name in row.sets})
        rows: dict[str, list[Any]] = {}
        for key, row in fill.rows.items():
            numbers = [_typed(by_symbol[name], row.values[name]) if name in row.values else None for name in names]
            rows["|".join(key)] = [*(row.sets.get(name) for name in sets), *numbers]
        tables.append(
            {"keys": fill.keys, "sets": sets, "fields": [by_symbol[name].name for name in names], "rows": rows}
        )
    return {
        "choices": {
            choice.name: {"options": [[o.key, o.label] for o in choice.options], "default": choice.default}
            for choice in choices
        },
        "fields": {
            one.name: {
                "low": one.low,
                "high": one.high,
                "label": one.label,
                **({"whole": True} if one.whole else {}),
                **({"optional": True} if one.optional else {}),
                "default": None if one.default is None else _typed(one, float(one.default * one.scale)),
            }
            for one in (*FIELDS, *_CHOSEN)
        },
        "start": typed,
        "tables": tables,
        "rules": [
            {
                "small": [by_symbol[name].name for name in ([small] if isinstance(small, str) else small)],
                "large": by_symbol[large].name,
                "strict": strict,
                "words": words,
            }
            for small, large, strict, words in RULES
        ],
        "missing": {by_symbol[symbol].name: words for symbol, words in MISSING.items()},
        "formats": FORMATS,
        "copies": _copies(),
        "cells": _cells(),
        "answers": ANSWERS,
        "notes": NOTES,
        "command": COMMAND,
    }


# --- The form as the site shows it ---------------------------------------------------------------


def markup(page: Mapping[str, Any]) -> tuple[str, str]:
    """Write the form, the answer and the table as HTML, for a page of the site.

    Parameters
    ----------
    page : mapping
        What `show` stored.

    Returns
    -------
    tuple of str
        HTML without any script, before and after the chart, which stands in the middle of one element.
    """
    groups = "\n".join(_group(group, page) for group in GROUPS)
    start = _choice("workload", page)
    before = f"""<div class="calculator" id="calculator">
<noscript><p>This page computes in the browser, by a script; without one, the commands of the last section do the same.
</p></noscript>
<div class="calc-start">{start}</div>
<p class="calc-unread" role="status"></p>
<div class="calc-answer"><p class="calc-sentence" role="status" aria-live="polite"></p></div>"""
    after = f"""<form class="calc-form" autocomplete="off" novalidate>
{groups}
</form>
<p class="calc-buttons"><button type="button" data-do="reset">Reset</button>
<button type="button" data-do="share">Copy a link to these numbers</button>
<span class="calc-shared" role="status"></span></p>
{_table()}
<p class="calc-help">* outside the range in which this percentile was compared with replayed queues: simulate it,
by the command below.
The cost counts late answers too.</p>
<ul class="calc-notes"></ul>
<p>The same replayed request by request, with its percentiles; its cost is for the rate of the busiest hour all day,
while the table above counts the day's quiet hours too:</p>
<pre class="calc-command" tabindex="0"></pre>
</div>"""
    return before, after


def _group(group: Group, page: Mapping[str, Any]) -> str:
    parts = "\n".join(
        _choice(part, page) if isinstance(part, str) else _field(part, page)
        for part in group.parts
        if part != "workload"
    )
    note = f'<p class="calc-note">{html.escape(group.note)}</p>' if group.note else ""
    title, grid = html.escape(group.title), f'<div class="calc-grid">{parts}</div>'
    if group.folded:
        return f'<details class="calc-group calc-folded"><summary>{title}</summary>{note}\n{grid}</details>'
    return f'<fieldset class="calc-group"><legend>{title}</legend>{note}\n{grid}</fieldset>'


#: Letters of an option that half a phone holds.
_NARROW = 12


def _choice(name: str, page: Mapping[str, Any]) -> str:
    label, words = CHOICES[name]
    choice = page["choices"][name]
    picked = {choice["default"]: " selected"}
    # half of a phone is too narrow for some
    wide = " calc-wide" if max(len(text) for _, text in choice["options"]) > _NARROW else ""
    options = "".join(
        f'<option value="{html.escape(key)}"{picked.get(key, "")}>{html.escape(text)}</option>'
        for key, text in choice["options"]
    )
    return (
        f'<div class="calc-field{wide}"><label for="calc-{name}">{html.escape(label)}</label>'
        f'<select id="calc-{name}" data-choice="{name}" aria-describedby="calc-{name}-help">{options}</select>'
        f'<span class="calc-help" id="calc-{name}-help">{html.escape(words)}</span></div>'
    )


def _field(one: Field, page: Mapping[str, Any]) -> str:
    value = page["start"][one.name]
    shown = "" if value is None else f"{value:.12g}"
    unit = f' <span class="calc-unit">{html.escape(one.unit)}</span>' if one.unit else ""
    limits = f"{one.low:,.10g} to {one.high:,.10g}"
    slider = ""
    if one.slider is not None:
        most = min(one.high, 64) if one.slider >= 1 else one.high
        slider = (
            f'<input type="range" data-slider="{one.name}" min="{one.low:g}" max="{most:g}" step="{one.slider:g}" '
            f'value="{shown}" aria-label="{html.escape(one.label)}" />'
        )
    return (
        f'<div class="calc-field"><label for="calc-{one.name}">{html.escape(one.label)}{unit}</label>'
        f'<input type="text" id="calc-{one.name}" data-field="{one.name}" inputmode="decimal" '
        f'value="{shown}" aria-describedby="calc-{one.name}-help" />{slider}'
        f'<span class="calc-help" id="calc-{one.name}-help"><span class="calc-range">{limits}. </span>'
        f"{html.escape(one.words)}</span></div>"
    )


def _table() -> str:
    heads = "".join(
        f'<th scope="col" class="number calc-{suffix}">{html.escape(words)}</th>'
        for suffix, (words, _) in OPTIONS.items()
    )
    body = "\n".join(
        f'<tr{" class=calc-first" if line in _FIRST else ""}><th scope="row">{html.escape(words)}</th>'
        + "".join(f'<td class="number" data-cell="{i}.{j}"></td>' for j in range(len(OPTIONS)))
        + "</tr>"
        for i, (words, line, *_) in enumerate(ROWS)
    )
    return (
        '<div class="table-scroll tex2jax_ignore" role="group" tabindex="0" aria-label="The result in numbers">'
        '<table class="data-table calc-table"><caption>The result in numbers</caption>'
        f"<thead><tr><td></td>{heads}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )
