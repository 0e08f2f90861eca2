"""Statements that set decoders against each other (chapter 8), on the calibrated time of a pass.

Every rival decodes in its best configuration: speculation and prompt look-up choose how many tokens they draft, or
none; diffusion alone chooses between a block of 32 tokens and a canvas of 256. In full batches, where short blocks
are at their best, each published block is a sample of its own: a model decodes the block that it was trained for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.evidence.api_times import answer_s
from analysis.evidence.claims.ownership import PLACE, WAYS, node_price
from analysis.evidence.claims.registry import REGISTRY, Computed, Context, Counterfactual, Outcome, Stated, claim
from analysis.evidence.claims.speculation import (
    ACCEPTANCE,
    COPIED,
    COPIES,
    DRAFT_COST,
    DRAFT_LENGTHS,
    MEDIAN_ACCEPTANCE,
)
from analysis.evidence.scenarios import Choice, Point, Range, Space, between, fixed, sample
from analysis.inputs import InputError
from analysis.model import cost
from analysis.model.decoders import cycle, largest_batch, served
from analysis.model.decoding import prefill_s
from analysis.model.head_to_head import Rival, best, diffusion, look_up, one_by_one, rate_within, speculation
from analysis.reference import model_config, tables
from analysis.reference.efficiency import efficiency, memory_rule, slots
from analysis.reference.specs import Decoder, Efficiency, Replica, RequestMix
from analysis.reference.tables import NEWEST
from analysis.units import SECONDS_PER_HOUR

CHAPTER, ANCHOR = "head-to-head", "head-to-head-claims"
GPU, NODE_GPUS, ENGINE = "h100-sxm", 8, "vllm"
#: Tokens that a canvas of 256 keeps in a pass, over what a block of 32 keeps.
CANVAS_KEEPS = 2.0
CANVAS_TOKENS = 256
#: Tokens that a pass over a block of 16 keeps, over what a block of 32 of the same model keeps: 2.44 against 2.55.
SHORT_KEEPS, SHORT_TOKENS = 2.44 / 2.55, 16
#: No block is done in fewer passes: one that fills it and one that commits it.
FEWEST_PASSES = 2.0
#: "Vanishes" and "similar": rates within a quarter of each other, either way.
LEVEL = Stated(0.8, 1.25, "1", "does not matter: 0.8 to 1.25 times the rival's rate")
GONE = Stated(0.0, LEVEL.high, "1", "vanishes: at most 1.25 times the rival's rate")
#: "Decisively" is twice the rate.
DECISIVE = 2.0
#: "Mostly" is more than half.
MOST = 0.5
#: A rival is ahead where it is at least so much faster: less is noise of any measurement.
AHEAD = 1.05

Rates = Mapping[str, NDArray[Any]]


def line_up(*, tokens_per_pass: tuple[float, ...] = (4.0,)) -> list[Rival]:
    """List the rivals at typical values of the ranges that the statements are tested on, plain decoding first.

    Drafts are accepted as at the median of the measured settings, and cost the middle of their range.

    Parameters
    ----------
    tokens_per_pass : tuple of float
        Of diffusion over a block of 32, a rival each. [1]
    """
    return [
        one_by_one(),
        speculation(acceptance=MEDIAN_ACCEPTANCE, draft_cost=DRAFT_COST.central),
        look_up(acceptance=COPIED.central),
        *(diffusion(tokens_per_pass=kept, name=f"diffusion, {kept:g} a pass") for kept in tokens_per_pass),
    ]


# --- Samples by replica ------------------------------------------------------------------------


@cache
def _set_up(name: str) -> tuple[Replica, Efficiency]:
    model, weights, gpus = name.split()
    one = model_config.replica(model, GPU, as_of=NEWEST, gpus=int(gpus), weights=weights)
    return one, efficiency(one, ENGINE)


def _by_replica(
    point: Point, of: Callable[[Replica, Efficiency, Rates], NDArray[np.float64]], *, name: str = "backbone"
) -> NDArray[np.float64]:
    """Compute one number for each sample, in one call for all samples that share a replica."""
    shape = np.shape(point[name])
    flat = {key: np.broadcast_to(values, shape).reshape(-1) for key, values in point.items()}
    keys, which = np.unique(flat[name], return_inverse=True)
    found = np.empty(which.size)
    for index, key in enumerate(keys):
        here = which == index
        found[here] = of(*_set_up(str(key)), {key: values[here] for key, values in flat.items()})
    return found.reshape(shape)


def _blocks(at: Rates) -> Rival:
    of_32 = diffusion(tokens_per_pass=at["tokens_per_pass"])
    canvas = diffusion(tokens_per_pass=CANVAS_KEEPS * at["tokens_per_pass"], block_tokens=(CANVAS_TOKENS,))
    return Rival("diffusion", (*of_32.decoders, *canvas.decoders))


def _published_block(at: Rates) -> Decoder:
    """Return the block of each sample, with the tokens that it keeps beside those of a block of 32."""
    block = np.asarray(at["block"], float)
    keeps = np.select([block == CANVAS_TOKENS, block == SHORT_TOKENS], [CANVAS_KEEPS, SHORT_KEEPS], 1.0)
    return Decoder.diffusion(
        block_tokens=block, passes=np.maximum(block / (keeps * np.asarray(at["tokens_per_pass"])), FEWEST_PASSES)
    )


def _published_s(replica: Replica, reached: Efficiency, at: Rates, *, batch: Any) -> NDArray[np.float64]:
    rival = Rival("diffusion", (_published_block(at),))
    return np.asarray(best(replica, rival, **_load(at), batch=batch, efficiency=reached).request_s)


def _drafts(at: Rates) -> Rival:
    return speculation(acceptance=at["acceptance"], draft_cost=at["draft_cost"], lengths=DRAFT_LENGTHS)


def _copies(at: Rates) -> Rival:
    return look_up(acceptance=at["copied"], lengths=COPIES)


def _load(at: Rates) -> dict[str, Any]:
    return {"input_tokens": at["prompt"], "output_tokens": at["answer"]}


def _rival_s(replica: Replica, reached: Efficiency, at: Rates, *, batch: Any) -> NDArray[np.float64]:
    """Latency of the rival that each sample names. [s]."""
    load = _load(at) | {"batch": batch, "efficiency": reached}
    rivals = {"plain": one_by_one(), "speculation": _drafts(at), "prompt look-up": _copies(at)}
    names = [str(name).partition(",")[0] for name in at["rival"]]
    found = np.empty(len(names))
    for name in set(names):
        here = np.array([each == name for each in names])
        latency = np.broadcast_to(best(replica, rivals[name], **load).request_s, here.shape)
        found[here] = latency[here]
    return found


def _diffusion_s(replica: Replica, reached: Efficiency, at: Rates, *, batch: Any) -> NDArray[np.float64]:
    return np.asarray(best(replica, _blocks(at), **_load(at), batch=batch, efficiency=reached).request_s)


def _full(replica: Replica, at: Rates) -> NDArray[np.float64]:
    """Count the requests that a replica holds when the queue is never empty."""
    room = largest_batch(replica, Decoder.autoregressive(), **_load(at), slots=slots(ENGINE), rule=memory_rule(ENGINE))
    return np.asarray(room, float)


# --- Spaces ------------------------------------------------------------------------------------

BACKBONES = Choice(
    ("llama-3.1-8b fp8 1", "llama-3.1-8b bf16 1", "llama-3.1-70b fp8 4", "llama-3.1-70b bf16 8"),
    "the two sizes that the texts speak of, as served and as released, each on the GPUs it is served on",
)
KEPT = Range(
    2,
    10,
    "tokens that a pass over a block of 32 keeps: 2.4 to 4.7 in the makers' reports, up to 9.91 for distilled models; a"
    " canvas of 256 is taken to keep twice as many, 15 in the one comparison on equal terms",
    floor=1,
    ceiling=32,
)
PUBLISHED_BLOCKS = Choice(
    (4, 16, 32, CANVAS_TOKENS),
    "blocks of open models; one of 4 is taken to keep the two tokens that two passes allow, for nothing is published",
)
RIVALS = Choice(("plain", "speculation", "prompt look-up"), "three ways to decode one token after the other")
PROMPT = Range(500, 8000, "from a short question to a long document", floor=1)
ANSWER = Range(100, 500, "from a record to half a page", floor=1)
LONGER = Range(100, 1000, "from a record to a page", floor=1)

CALLED = {
    "backbone": "the model, its format and its GPUs",
    "tokens_per_pass": "the tokens that a pass over a block of 32 keeps",
    "acceptance": "the acceptance of drafts",
    "draft_cost": "the cost of a draft",
    "copied": "the acceptance of copied drafts",
    "rival": "the rival",
    "block": "the block, in tokens,",
    "prompt": "the prompt, in tokens,",
    "answer": "the answer, in tokens,",
    "batch": "the batch",
}


def _of(*names: str) -> dict[str, str]:
    return {name: CALLED[name] for name in names}


def _decoders() -> dict[str, Range | Choice]:
    return {
        "tokens_per_pass": KEPT,
        "acceptance": ACCEPTANCE,
        "draft_cost": DRAFT_COST,
        "copied": COPIED,
    }


#: What the article's real-time part sets against each other: a large model token by token, a small one in blocks.
UNEQUAL = "plain, nine times the size"


def _alone(context: Context) -> Space:
    return {
        "backbone": BACKBONES,
        **_decoders(),
        "rival": Choice((*RIVALS.values, UNEQUAL), "three rivals of equal size, and a 70B model against one of 8B"),
        "prompt": PROMPT,
        "answer": ANSWER,
    }


TENFOLD = Stated(
    8, 100, "1", "ten times: 8 times and more, whole answers with their prompts; above 12 is no contradiction"
)
#: "Ten times" to the letter, rounded.
JUST_TENFOLD = 12.0
#: The replicas of the comparison of unequal sizes: what makes the answer, and what makes it in blocks.
LARGE_PLAIN, SMALL_BLOCKS = "llama-3.1-70b bf16 8", "llama-3.1-8b bf16 1"


@claim(
    "C29",
    kind="computed",
    stated_in="summary",
    quantifier="typically",
    chapter=CHAPTER,
    anchor=ANCHOR,
    stated=TENFOLD,
    space=_alone,
    counterfactual=Counterfactual(
        "the rival is plain, prompts are short, answers fill whole blocks, and a pass keeps 12 of 32 tokens",
        lambda space: fixed(space, rival="plain", prompt=100.0, answer=512.0, tokens_per_pass=12.0),
    ),
    inputs=_of("tokens_per_pass", "rival", "prompt", "answer", "acceptance"),
    split="rival",
    sources=("radar2026", "vllm-diffusiongemma", "llada2", "specdecode-bench"),
)
def ten_times_alone(point: Point, context: Context) -> Outcome:
    """For single requests that cannot wait, diffusion is ten times faster."""

    def of(replica: Replica, reached: Efficiency, at: Rates) -> NDArray[np.float64]:
        equal = _rival_s(replica, reached, at, batch=1.0) / _diffusion_s(replica, reached, at, batch=1.0)
        large = served(
            _set_up(LARGE_PLAIN)[0],
            Decoder.autoregressive(),
            **_load(at),
            batch=1.0,
            efficiency=_set_up(LARGE_PLAIN)[1],
        ).request_s
        small = _diffusion_s(*_set_up(SMALL_BLOCKS), at, batch=1.0)
        return np.where(at["rival"] == UNEQUAL, large / small, equal)

    ratio = _by_replica(point, of)
    return Outcome(ratio >= TENFOLD.low, value=ratio)


def just_tenfold(context: Context) -> float:
    """Share of C29's samples that are ten times to the letter, from 8 to 12. [1]."""
    found = ten_times_alone(sample(_alone(context)), context).value
    assert found is not None
    return float(np.mean((found >= TENFOLD.low) & (found <= JUST_TENFOLD)))


def _offline(context: Context) -> Space:
    return {
        "backbone": BACKBONES,
        **_decoders(),
        "block": PUBLISHED_BLOCKS,
        "rival": Choice(("plain", "speculation"), "the two that servers offer"),
        "prompt": PROMPT,
        "answer": LONGER,
    }


def _computing_share(
    replica: Replica, reached: Efficiency, at: Rates, decoder: Decoder, batch: NDArray[Any]
) -> NDArray[np.float64]:
    """Share of a full replica's time in which arithmetic takes longer than reading: prompts, and passes if so."""
    load = served(replica, decoder, **_load(at), batch=batch, efficiency=reached)
    context = at["prompt"] + at["answer"] / 2
    time = cycle(replica, decoder, batch=batch, context_tokens=context, efficiency=reached).time
    computing = time.matmul_s + time.attention_s > time.weights_s + time.kv_s
    reading = batch * load.prompt_s
    return np.asarray((reading + np.where(computing, load.passes * load.cycle_s, 0.0)) / load.request_s)


@claim(
    "C30",
    kind="computed",
    stated_in="summary",
    quantifier="typically",
    chapter=CHAPTER,
    anchor=ANCHOR,
    stated=GONE,
    space=_offline,
    counterfactual=Counterfactual(
        "answers of 2,000 tokens after prompts as long, whose plain passes read longer than they compute",
        lambda space: fixed(space, prompt=2000.0, answer=2000.0),
    ),
    inputs=_of("tokens_per_pass", "block", "prompt", "answer", "rival"),
    split="block",
    sources=("radar2026", "peng2025"),
)
def level_in_batch(point: Point, context: Context) -> Outcome:
    """In large batches diffusion's advantage vanishes, because both reach the limit of arithmetic."""

    def rate_of(replica: Replica, reached: Efficiency, at: Rates) -> NDArray[np.float64]:
        batch = np.maximum(_full(replica, at), 1.0)
        return _rival_s(replica, reached, at, batch=batch) / _published_s(replica, reached, at, batch=batch)

    def share_of(replica: Replica, reached: Efficiency, at: Rates) -> NDArray[np.float64]:
        batch = np.maximum(_full(replica, at), 1.0)
        plain = _computing_share(replica, reached, at, Decoder.autoregressive(), batch)
        blocks = _computing_share(replica, reached, at, _published_block(at), batch)
        return np.minimum(plain, blocks)

    ratio, share = _by_replica(point, rate_of), _by_replica(point, share_of)
    fits = _by_replica(point, lambda replica, _, at: _full(replica, at)) >= 1
    # behind the rival it has no advantage either
    return Outcome(GONE.contains(ratio) & (share > MOST), value=ratio, defined=fits)


@claim(
    "C35",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    chapter=CHAPTER,
    anchor=ANCHOR,
    stated=LEVEL,
    space=lambda context: {name: axis for name, axis in _offline(context).items() if name not in ("rival", "copied")},
    counterfactual=Counterfactual(
        "prompts of 30,000 tokens and answers that fill one block, where all do little but read",
        lambda space: fixed(space, prompt=30_000.0, answer=32.0),
    ),
    inputs=_of("tokens_per_pass", "block", "prompt", "answer", "acceptance"),
    split="block",
    sources=("radar2026", "peng2025", "magicdec"),
)
def neither_matters_offline(point: Point, context: Context) -> Outcome:
    """In an offline batch neither diffusion nor speculation matters; batching brings both to the arithmetic limit."""

    def gains_of(which: str) -> Callable[[Replica, Efficiency, Rates], NDArray[np.float64]]:
        def of(replica: Replica, reached: Efficiency, at: Rates) -> NDArray[np.float64]:
            batch = np.maximum(_full(replica, at), 1.0)
            load = _load(at) | {"batch": batch, "efficiency": reached}
            rival = _drafts(at) if which == "speculation" else Rival("diffusion", (_published_block(at),))
            return np.asarray(best(replica, one_by_one(), **load).request_s / best(replica, rival, **load).request_s)

        return of

    def share_of(replica: Replica, reached: Efficiency, at: Rates) -> NDArray[np.float64]:
        return _computing_share(replica, reached, at, Decoder.autoregressive(), np.maximum(_full(replica, at), 1.0))

    drafts, blocks = (_by_replica(point, gains_of(which)) for which in ("speculation", "diffusion"))
    fits = _by_replica(point, lambda replica, _, at: _full(replica, at)) >= 1
    true = LEVEL.contains(drafts) & LEVEL.contains(blocks) & (_by_replica(point, share_of) > MOST)
    return Outcome(true, value=blocks, defined=fits)


def _batched_or_not(context: Context) -> Space:
    return {
        "backbone": BACKBONES,
        **_decoders(),
        "rival": RIVALS,
        "prompt": PROMPT,
        "answer": LONGER,
        "batch": Range(16, 256, "requests together where they may be collected", floor=2),
    }


@claim(
    "C39",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    chapter=CHAPTER,
    anchor=ANCHOR,
    space=_batched_or_not,
    counterfactual=Counterfactual(
        "the rival drafts well and cheaply, and a pass keeps 2 of 32 tokens",
        lambda space: fixed(space, rival="speculation", acceptance=0.85, draft_cost=0.05, tokens_per_pass=2.0),
    ),
    inputs=_of("tokens_per_pass", "rival", "prompt", "answer", "batch"),
    split="rival",
    sources=("radar2026", "vllm-diffusiongemma", "peng2025"),
)
def decisive_only_unbatched(point: Point, context: Context) -> Outcome:
    """Diffusion raises throughput decisively, but only where requests can't be batched."""

    def gain_at(together: bool) -> Callable[[Replica, Efficiency, Rates], NDArray[np.float64]]:
        def of(replica: Replica, reached: Efficiency, at: Rates) -> NDArray[np.float64]:
            batch = np.minimum(at["batch"], np.maximum(_full(replica, at), 1.0)) if together else 1.0
            return _rival_s(replica, reached, at, batch=batch) / _diffusion_s(replica, reached, at, batch=batch)

        return of

    alone, batched = _by_replica(point, gain_at(False)), _by_replica(point, gain_at(True))
    return Outcome((alone >= DECISIVE) & (batched < DECISIVE), value=alone)


# --- Against an API ----------------------------------------------------------------------------

SERVED = Choice(("llama-3.1-70b fp8 2", "llama-3.1-70b fp8 4", "llama-3.1-70b fp8 8"), "the model that APIs sell too")
#: The model of the comparison as APIs call it.
SOLD = "llama-3.3-70b"


def _best_full_rate(replica: Replica, reached: Efficiency, at: Rates) -> NDArray[np.float64]:
    """Requests per second of a whole node, never short of work, with the best of all decoders."""
    batch = np.maximum(_full(replica, at), 1.0)
    load = _load(at) | {"batch": batch, "efficiency": reached}
    rates = [best(replica, rival, **load).req_per_s for rival in (one_by_one(), _drafts(at), _copies(at), _blocks(at))]
    return np.asarray(np.max(rates, axis=0)) * NODE_GPUS / replica.gpus


#: Whose bill the node is held against.
SAME_MODEL, ITS_SIZE, ANY_MODEL = "the same model", "open models of its size or above", "any open model"
#: Open models on sale with well below 70 billion parameters, or sold as small: an answer of theirs is not the same.
SMALLER = ("llama-3.1-8b", "qwen3-32b", "mistral-small-latest")


def _cheapest_bill(point: Point, context: Context, *, against: str) -> NDArray[np.float64]:
    """Return the lowest bill for each sample's request, of the models that it is held against. [USD/request]."""
    by_model = tables.class_tariffs("commodity", as_of=context.as_of, prices=context.prices)
    left_out = {SAME_MODEL: set(by_model) - {SOLD}, ITS_SIZE: set(SMALLER), ANY_MODEL: set()}[against]
    sellers = [found for name, found in by_model.items() if name not in left_out]
    mix = RequestMix(point["prompt"], point["answer"])
    bills = [cost.api_usd_per_request(tariff, mix) for found in sellers for tariff in found.values()]
    none = np.full(np.shape(point["prompt"]), np.nan)
    return np.min(bills, axis=0) if bills else none


def _against_commodity(context: Context) -> Space:
    return {
        "backbone": SERVED,
        **_decoders(),
        "prompt": PROMPT,
        "answer": LONGER,
        "ownership": WAYS,
        "place": PLACE,
        "utilization": Range(
            0.05, 1, "from one busy hour in twenty to all of them", scale="uniform", floor=0.01, ceiling=1
        ),
        "against": Choice((SAME_MODEL, ITS_SIZE), "the cheapest seller of either on that day"),
    }


@claim(
    "C42",
    kind="computed",
    stated_in="article",
    quantifier="always",
    chapter=CHAPTER,
    anchor=ANCHOR,
    space=_against_commodity,
    counterfactual=Counterfactual(
        "the node is paid for and always busy, and the API sells the same model",
        lambda space: fixed(
            space,
            ownership="sunk",
            place=0.0,
            utilization=1.0,
            against=SAME_MODEL,
            backbone="llama-3.1-70b fp8 4",
        ),
    ),
    inputs={
        **_of("prompt", "answer", "backbone"),
        "ownership": "the way to have the node",
        "place": "the place of its price between the cheapest and the dearest",
        "utilization": "utilization",
        "against": "the API it is held against",
    },
    sources=("radar2026", "litellm-1.93.0", "epoch2026", "cbre-h2-2024"),
)
def owned_loses_to_commodity(point: Point, context: Context) -> Outcome:
    """Against a cheap commodity API, hardware of one's own loses whatever decodes on it."""
    rate = _by_replica(point, _best_full_rate)
    owned = node_price(point, context) / (SECONDS_PER_HOUR * rate * point["utilization"])
    against = np.asarray(point["against"])
    bill = np.full(against.shape, np.nan)
    for name in np.unique(against):
        bill = np.where(against == name, _cheapest_bill(point, context, against=str(name)), bill)
    defined = np.isfinite(owned) & np.isfinite(bill)
    # an API for nothing is cheaper than whatever costs something, by no ratio that has a number
    ratio = None if np.any(bill[defined] == 0) else np.divide(owned, bill, out=np.zeros_like(bill), where=defined)
    return Outcome(defined & (owned > bill), value=ratio, defined=defined)


def against_commodity(context: Context) -> dict[str, dict[str, float]]:
    """Split C42 by whose bill the node is held against, with the reading that it does not take.

    Parameters
    ----------
    context : Context

    Returns
    -------
    dict of str to dict
        The same model, open models of its size or above (the two of the verdict), and any open model, however small:
        each with the share of true samples as ``share_true``, and by each way to have a node. [1]
    """
    found: dict[str, dict[str, float]] = {}
    for against in (SAME_MODEL, ITS_SIZE, ANY_MODEL):
        points = sample(fixed(_against_commodity(context), against=against))
        outcome = owned_loses_to_commodity(points, context)
        defined = np.asarray(outcome.defined)
        if not defined.any():
            continue
        by_way = {way: float(outcome.true[defined & (points["ownership"] == way)].mean()) for way in WAYS.values}
        found[against] = {"share_true": float(outcome.true[defined].mean()), **by_way}
    return found


def _whole_decision(context: Context) -> Space:
    listed = tables.api_latency(as_of=context.as_of)
    rates, waits = listed["output_tok_per_s"].dropna(), listed["ttft_s"].dropna()
    if rates.empty or waits.empty:
        raise InputError("api_latency", None, f"a rate and a wait of an API on or before {context.as_of}")
    return {
        "backbone": SERVED,
        **_decoders(),
        "prompt": PROMPT,
        "answer": ANSWER,
        "budget_s": Range(0.5, 10, "from half a second to the patience of a reader", floor=0.05),
        "rate": Range(0.1, 30, "requests per second, from a desk to a busy service", floor=0.01),
        "ownership": WAYS,
        "place": PLACE,
        "api_usd_per_mtok": Range(0.3, 15, "from the cheapest commodity output to the text's dear end", floor=0.01),
        "api_wait_s": between(
            waits.min(), waits.quantile(0.75), "time to the first token of listed APIs, the fastest to three quarters"
        ),
        "api_tok_per_s": between(
            rates.quantile(0.25), rates.max(), "output rate of listed APIs, from a quarter of them to the fastest"
        ),
        "must_stay": Choice((MAY_LEAVE, MUST_STAY), "whether data may leave"),
    }


MAY_LEAVE, MUST_STAY = "free to leave", "bound to stay"
#: Prices of input over output at APIs of chat models: a third to a fifth; a quarter is taken.
INPUT_SHARE = 0.25
#: "Expensive": the text's own range begins here. [USD/Mtok]
DEAR = 5.0


@claim(
    "C47",
    kind="computed",
    stated_in="article",
    quantifier="always",
    chapter=CHAPTER,
    anchor=ANCHOR,
    space=_whole_decision,
    counterfactual=Counterfactual("data must stay", lambda space: fixed(space, must_stay=MUST_STAY)),
    inputs={
        **_of("tokens_per_pass", "acceptance", "prompt", "answer", "backbone"),
        "budget_s": "the time that an answer may take (s)",
        "rate": "the requests per second",
        "api_usd_per_mtok": "the API's price of output",
        "api_wait_s": "the API's wait for its first token (s)",
        "api_tok_per_s": "the API's output rate",
        "must_stay": "data",
        "ownership": "the way to have the node",
    },
    sources=("radar2026", "aa-2026-06", "epoch2026", "cbre-h2-2024"),
)
def pays_in_two_situations(point: Point, context: Context) -> Outcome:
    """Diffusion on hardware of one's own pays in two situations only: the other tokens are dear, or data must stay."""

    def rates_of(rivals: Callable[[Rates], list[Rival]]) -> Callable[..., NDArray[np.float64]]:
        def of(replica: Replica, reached: Efficiency, at: Rates) -> NDArray[np.float64]:
            found = [
                rate_within(
                    replica,
                    rival,
                    budget_s=at["budget_s"],
                    **_load(at),
                    slots=slots(ENGINE),
                    rule=memory_rule(ENGINE),
                    efficiency=reached,
                )
                for rival in rivals(at)
            ]
            return np.asarray(np.max(found, axis=0)) * NODE_GPUS / replica.gpus

        return of

    hourly = node_price(point, context)
    blocks, others = (
        _nodes(point["rate"], _by_replica(point, rates_of(rivals)))
        for rivals in (lambda at: [_blocks(at)], lambda at: [one_by_one(), _drafts(at), _copies(at)])
    )
    output = np.asarray(point["api_usd_per_mtok"])
    bill = (INPUT_SHARE * point["prompt"] + point["answer"]) * output / 1e6
    quick = _quick(point)
    stays = np.asarray(point["must_stay"]) == MUST_STAY
    api = np.where(quick & ~stays, bill * point["rate"] * SECONDS_PER_HOUR, np.inf)
    pays = (blocks * hourly < others * hourly) & (blocks * hourly < api)
    return Outcome(stays | (output >= DEAR), value=output, defined=pays)


def why_it_pays(context: Context) -> dict[str, float]:
    """Share of the cases in which diffusion is the cheapest way, by what makes it so. [1].

    Each case counts once, for the first that applies: ``must stay``, ``dear`` (5 USD/Mtok and more), ``too slow``
    (tokens are cheap and no answer of the API comes in time), ``cheap`` (the API is in time, cheap, and still dearer).
    """
    claim_of = REGISTRY["C47"]
    assert isinstance(claim_of, Computed)
    points = sample(claim_of.space(context))
    outcome = pays_in_two_situations(points, context)
    pays = np.asarray(outcome.defined)
    stays, dear = points["must_stay"] == MUST_STAY, points["api_usd_per_mtok"] >= DEAR
    quick = _quick(points)
    reasons = np.select([stays, dear, ~quick], ["must stay", "dear", "too slow"], "cheap")[pays]
    return {name: float(np.mean(reasons == name)) for name in ("must stay", "dear", "too slow", "cheap")}


def _quick(point: Point) -> NDArray[np.bool_]:
    """Say where an API answers within the budget."""
    seconds = answer_s(point["api_wait_s"], point["api_tok_per_s"], tokens=point["answer"])
    return np.asarray(seconds <= point["budget_s"])


def _nodes(rate: Any, node_req_per_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Count the nodes that carry a rate; endless where one request alone takes too long."""
    with np.errstate(divide="ignore"):
        return np.where(node_req_per_s > 0, np.ceil(rate / np.maximum(node_req_per_s, 1e-12)), np.inf)


# --- Which question to ask ---------------------------------------------------------------------


def _workloads(context: Context) -> Space:
    return {
        "backbone": BACKBONES,
        "prompt": PROMPT,
        "answer": LONGER,
        "batch": Range(1, 256, "one stream to a full server", floor=1),
        "draft_cost": DRAFT_COST,
        "spread": Range(
            0.5,
            1.0,
            "how much of the measured ranges the workloads of one firm cover: half to all",
            scale="uniform",
            floor=0,
            ceiling=1,
        ),
    }


def _ends(axis: Range, spread: Any) -> tuple[Any, Any]:
    """Return the ends of a part of a range around its middle."""
    half = np.asarray(spread) / 2
    return axis.at(0.5 - half), axis.at(0.5 + half)


@claim(
    "C68",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    chapter=CHAPTER,
    anchor=ANCHOR,
    space=_workloads,
    counterfactual=Counterfactual(
        "batches of 200 and prompts of 500, where blocks lose whatever the text",
        lambda space: fixed(space, batch=200.0, prompt=500.0),
    ),
    inputs={
        **_of("backbone", "prompt", "answer", "batch", "draft_cost"),
        "spread": "the part of the measured ranges that the workloads cover",
    },
    sources=("radar2026", "vllm-diffusiongemma", "llada2", "specdecode-bench"),
)
def workload_decides(point: Point, context: Context) -> Outcome:
    """The workload at hand decides: diffusion's parallelism on it against decoding one by one with speculation."""

    def lead(kept_high: bool) -> Callable[[Replica, Efficiency, Rates], NDArray[np.float64]]:
        def of(replica: Replica, reached: Efficiency, at: Rates) -> NDArray[np.float64]:
            kept, accepted = _ends(KEPT, at["spread"]), _ends(ACCEPTANCE, at["spread"])
            of_text = {
                **at,
                "tokens_per_pass": kept[1] if kept_high else kept[0],
                "acceptance": accepted[0] if kept_high else accepted[1],
            }
            batch = np.minimum(at["batch"], np.maximum(_full(replica, at), 1.0))
            load = _load(at) | {"batch": batch, "efficiency": reached}
            drafts = best(replica, _drafts(of_text), **load).request_s
            return np.asarray(drafts / best(replica, _blocks(of_text), **load).request_s)

        return of

    for_blocks, for_drafts = _by_replica(point, lead(True)), _by_replica(point, lead(False))
    return Outcome((for_blocks >= AHEAD) & (for_drafts <= 1 / AHEAD), value=for_blocks)


def _any_workload(context: Context) -> Space:
    return {**_batched_or_not(context), "batch": Range(1, 256, "one stream to a full server", floor=1)}


@claim(
    "C71",
    kind="computed",
    stated_in="article",
    quantifier="can",
    chapter=CHAPTER,
    anchor=ANCHOR,
    space=_any_workload,
    counterfactual=Counterfactual(
        "one request at a time, of which a pass keeps 8 of 32 tokens, against plain decoding",
        lambda space: fixed(space, batch=1.0, tokens_per_pass=8.0, rival="plain"),
    ),
    inputs=_of("batch", "tokens_per_pass", "rival", "prompt", "answer", "backbone"),
    sources=("radar2026", "peng2025", "vllm-recipe-diffusiongemma"),
)
def no_blanket_upgrade(point: Point, context: Context) -> Outcome:
    """Diffusion is no blanket upgrade: on some work tokens in order, drafted or not, come faster on the same node."""

    def of(replica: Replica, reached: Efficiency, at: Rates) -> NDArray[np.float64]:
        batch = np.minimum(at["batch"], np.maximum(_full(replica, at), 1.0))
        return _rival_s(replica, reached, at, batch=batch) / _diffusion_s(replica, reached, at, batch=batch)

    gain = _by_replica(point, of)
    return Outcome(gain < 1 / AHEAD, value=gain)


def _documents(context: Context) -> Space:
    return {
        "backbone": BACKBONES,
        "tokens_per_pass": KEPT,
        "prompt": Range(4000, 32_000, "a long document: 6 to 50 pages", floor=1),
        "answer": Range(100, 500, "the record that is parsed from it", floor=1),
        "batch": Range(1, 8, "a few requests at once: the answer cannot wait for more", floor=1),
        "decoder": Choice(("plain",), "before the switch: a condition of the work, not of what then decodes it"),
    }


@claim(
    "C72",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    chapter=CHAPTER,
    anchor=ANCHOR,
    space=_documents,
    counterfactual=Counterfactual(
        "after the switch: what decodes faster spends more of its time reading",
        lambda space: fixed(space, decoder="diffusion"),
    ),
    inputs={**_of("prompt", "answer", "batch", "backbone", "tokens_per_pass"), "decoder": "the decoder"},
)
def documents_are_decode_heavy(point: Point, context: Context) -> Outcome:
    """Diffusion's third condition is work that is mostly decoding, as parsing a long document in real time is."""

    def of(replica: Replica, reached: Efficiency, at: Rates) -> NDArray[np.float64]:
        batch = np.minimum(at["batch"], np.maximum(_full(replica, at), 1.0))
        reading = batch * prefill_s(replica, input_tokens=at["prompt"], efficiency=reached)
        plain = best(replica, one_by_one(), **_load(at), batch=batch, efficiency=reached).request_s
        blocks = _diffusion_s(replica, reached, at, batch=batch)
        return np.asarray(1 - reading / np.where(at["decoder"] == "plain", plain, blocks))

    share = _by_replica(point, of)
    fits = _by_replica(point, lambda replica, _, at: _full(replica, at)) >= 1
    return Outcome(share > MOST, value=share, defined=fits)
