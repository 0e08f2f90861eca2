"""Statements about batching, reading prompts and sparse models (chapters 3, 4 and 7), on the calibrated time of a pass.

Times carry the fitted constants of `analysis.reference.efficiency`; the chapter on validation says how far
those are from measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.evidence.claims.registry import (
    REGISTRY,
    Computed,
    Context,
    Counterfactual,
    Outcome,
    Stated,
    Structure,
    claim,
)
from analysis.evidence.claims.verdict import find_boundary
from analysis.evidence.scenarios import Choice, Point, Range, Space, fixed, sample
from analysis.model import decoding
from analysis.model.transformer import weight_bytes_streamed
from analysis.reference.efficiency import efficiency, memory_rule
from analysis.reference.model_config import shipped
from analysis.reference.specs import Efficiency, Replica
from analysis.reference.tables import NEWEST, accelerator
from analysis.symbolic import decoding as symbolic
from analysis.symbols import BYTES_PER_WEIGHT, CONTEXT, KAPPA

BATCHING, PREFILL, SPARSE = "batching", "prefill", "sparse"
#: Labels of their claim checks: a label is unique in the book.
ON_BATCHING, ON_PREFILL, ON_SPARSE = "batching-claims", "prefill-claims", "sparse-claims"
#: The node that the article names has eight of these.
GPU, GPUS = "h100-sxm", 8
ENGINE = "vllm"
#: "Moves less memory" is met where a pass reads at most this share of what a dense model of the same size reads:
#: less than five hundredths are noise of any measurement. "Much less" is half of it.
LESS, MUCH_LESS = 1 / 1.05, 0.5
#: So many positions stand for "every expert is in use".
MANY_POSITIONS = 1e9
#: "Mostly" and "much of its time" are more than this share.
MOST = 0.5


# --- Rates of the samples ----------------------------------------------------------------------


@cache
def set_up(model: str, weights: str, gpus: int) -> tuple[Replica, Efficiency]:
    """Return a model on so many of the node's GPUs, with what it reaches there under the engine."""
    config = shipped(model)
    precision = config.precision
    if precision.weights == "bf16":
        precision = precision.with_formats(weights=weights, kv=None)
    replica = Replica(config.architecture, precision, accelerator(GPU, as_of=NEWEST), gpus)
    return replica, efficiency(replica, ENGINE)


def by_replica(
    point: Point, of: Callable[[Replica, Efficiency, dict[str, NDArray[Any]]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Compute one number for each sample, in one call for all samples that share a replica."""
    shape = np.shape(point["model"])
    choices = [np.broadcast_to(point[name], shape).reshape(-1) for name in ("model", "weights", "gpus")]
    names = np.array([f"{model} {weights} {int(gpus)}" for model, weights, gpus in zip(*choices, strict=True)])
    keys, which = np.unique(names, return_inverse=True)
    found = np.empty(which.size)
    for index, key in enumerate(keys):
        model, weights, gpus = str(key).split()
        here = which == index
        of_key = {name: np.broadcast_to(values, shape).reshape(-1)[here] for name, values in point.items()}
        found[here] = of(*set_up(model, weights, int(gpus)), of_key)
    return found.reshape(shape)


def _room(replica: Replica, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    held = at["prompt"] + at["answer"]
    return np.asarray(decoding.max_batch(replica, tokens=held, rule=memory_rule(ENGINE)))


def _served(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]], batch: NDArray[Any]) -> NDArray[Any]:
    """Output tokens per second of one replica that always holds so many requests."""
    between = decoding.tpot_s(
        replica,
        batch=batch,
        input_tokens=at["prompt"],
        output_tokens=at["answer"],
        others=batch,
        efficiency=reached,
    )
    return np.asarray(batch / between)


# --- Spaces ------------------------------------------------------------------------------------

LARGE_DENSE = Choice(
    ("llama-3.1-70b", "qwen2.5-72b", "mistral-large-2411"), "open dense models of 60 to 130 billion parameters"
)
WIDTHS = Choice(("fp8", "bf16"), "as served and as released")
WHOLE_NODE = Choice((8,), "one replica on the node that the article names")
REPLICAS = Choice((2, 4, 8), "one replica on 2, 4 or 8 of the node's GPUs")
PROMPT = Range(500, 8000, "from a short question to a long document", floor=1)
ANSWER = Range(100, 1000, "from a record to a page", floor=1)


def _swing(context: Context) -> Space:
    return {
        "model": LARGE_DENSE,
        "weights": WIDTHS,
        "gpus": WHOLE_NODE,
        "prompt": PROMPT,
        "answer": ANSWER,
        "small": Range(1, 8, "a few requests at a time", floor=1),
        "large": Range(32, 256, "what a busy server holds", floor=8),
    }


def _hundreds(context: Context) -> Space:
    return {**_swing(context), "large": Range(100, 999, "hundreds", floor=8)}


FROM_10_TO_30 = Stated(10, 30, "1", "10- to 30-fold, ends included")


def _ratio(point: Point) -> Outcome:
    """Cost of a token at the small batch over that at the large one, or at what memory holds of it."""

    def of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        large = np.minimum(at["large"], _room(replica, at))
        fits = large > at["small"]
        many = _served(replica, reached, at, np.where(fits, large, 1.0))
        few = _served(replica, reached, at, np.where(fits, at["small"], 1.0))
        return np.where(fits, many / few, np.nan)

    ratio = by_replica(point, of)
    defined = np.isfinite(ratio)
    return Outcome(FROM_10_TO_30.contains(np.nan_to_num(ratio)), value=ratio, defined=defined)


# --- Batching ----------------------------------------------------------------------------------


@claim("C10", kind="definition", stated_in="article", chapter=BATCHING, anchor=ON_BATCHING)
def weights_read_once() -> Structure:
    """Batching reads the weights once and advances many requests with that read."""
    per_sequence = symbolic.sequence_slope()
    return Structure(
        present=not per_sequence.has(BYTES_PER_WEIGHT) and per_sequence.has(KAPPA) and per_sequence.has(CONTEXT),
        departs_when=(
            "each request brings a cache of its own, which no other shares: its part of the reads grows with batch and"
            " context; and the more requests a sparse model serves, the more experts it reads"
        ),
    )


@claim(
    "C11",
    kind="computed",
    stated_in="both",
    quantifier="can",
    chapter=BATCHING,
    anchor=ON_BATCHING,
    stated=Stated(100, 999, "1", "hundreds: 100 to 999, and more than that is no contradiction"),
    space=lambda context: {
        "model": LARGE_DENSE,
        "weights": WIDTHS,
        "gpus": WHOLE_NODE,
        "prompt": Range(500, 32_000, "from a short question to a long file", floor=1),
        "answer": ANSWER,
    },
    counterfactual=Counterfactual(
        "every request holds 100,000 tokens", lambda space: fixed(space, prompt=100_000.0, answer=100.0)
    ),
    inputs={"prompt": "the prompt, in tokens,"},
)
def hundreds_at_once(point: Point, context: Context) -> Outcome:
    """A node can compute hundreds of requests at once."""
    room = by_replica(point, lambda replica, _, at: _room(replica, at))
    return Outcome(room >= 100, value=room, defined=room > 0)


@claim(
    "C12",
    kind="computed",
    stated_in="article",
    quantifier="can",
    chapter=BATCHING,
    anchor=ON_BATCHING,
    stated=FROM_10_TO_30,
    space=_swing,
    counterfactual=Counterfactual(
        "long documents and answers of a few tokens, where reading prompts is nearly all of the work",
        lambda space: fixed(space, prompt=30_000.0, answer=10.0),
    ),
    inputs={"small": "the small batch", "large": "the large batch", "prompt": "the prompt, in tokens,"},
    sources=("radar2026", "inferencex-dump"),
)
def swing_between_batches(point: Point, context: Context) -> Outcome:
    """On the same hardware a token can cost 10 to 30 times as much in small batches as in large ones."""
    return _ratio(point)


@claim(
    "C13",
    kind="computed",
    stated_in="summary",
    quantifier="typically",
    chapter=BATCHING,
    anchor=ON_BATCHING,
    stated=FROM_10_TO_30,
    space=_hundreds,
    counterfactual=Counterfactual(
        "one request alone against hundreds of short prompts with long answers",
        lambda space: fixed(space, small=1.0, large=900.0, prompt=100.0, answer=2000.0),
    ),
    inputs={"small": "the small batch", "large": "the large batch", "prompt": "the prompt, in tokens,"},
    sources=("radar2026", "inferencex-dump"),
)
def swing_of_hundreds(point: Point, context: Context) -> Outcome:
    """Handling hundreds of requests together cuts the cost of a token 10- to 30-fold."""
    return _ratio(point)


@claim(
    "C17",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    chapter=BATCHING,
    anchor=ON_BATCHING,
    space=lambda context: {
        "model": LARGE_DENSE,
        "weights": WIDTHS,
        "gpus": WHOLE_NODE,
        "batch": Range(1, 512, "one stream to a full node", floor=1),
        "prompt": Range(100, 32_000, "tokens in the cache", floor=1),
        "answer": Choice((1.0,), "one pass"),
    },
    counterfactual=Counterfactual(
        "thousands of sequences with hardly any context", lambda space: fixed(space, batch=4000.0, prompt=100.0)
    ),
    inputs={"batch": "the batch", "prompt": "the context, in tokens,"},
)
def generation_is_memory_bound(point: Point, context: Context) -> Outcome:
    """Generating tokens is bound by memory, not by arithmetic."""

    def of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        time = decoding.pass_time(replica, batch=at["batch"], context_tokens=at["prompt"], efficiency=reached)
        reading = (time.weights_s + time.kv_s) / (time.matmul_s + time.attention_s)
        return np.where(_room(replica, at) >= at["batch"], reading, np.nan)

    ratio = by_replica(point, of)
    return Outcome(np.nan_to_num(ratio) > 1, value=ratio, defined=np.isfinite(ratio))


STANDARD_NODE = Stated(2000, 9999, "token/s", "several thousand output tokens per second of one node")


@claim(
    "C49",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    chapter=BATCHING,
    anchor=ON_BATCHING,
    stated=STANDARD_NODE,
    space=lambda context: {
        "model": LARGE_DENSE,
        "weights": WIDTHS,
        "gpus": REPLICAS,
        "prompt": PROMPT,
        "answer": ANSWER,
        "batch": Range(32, 256, "requests that a replica holds, as servers are set up", floor=1),
    },
    counterfactual=Counterfactual(
        "long documents and short records", lambda space: fixed(space, prompt=16_000.0, answer=50.0)
    ),
    inputs={"prompt": "the prompt, in tokens,", "answer": "the answer, in tokens,", "batch": "the batch"},
    sources=("radar2026", "inferencex-dump", "trtllm-1.0"),
)
def several_thousand_tokens(point: Point, context: Context) -> Outcome:
    """With continuous batching a standard model makes several thousand tokens per second on one node."""

    def of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        batch = np.minimum(at["batch"], _room(replica, at))
        served = _served(replica, reached, at, np.maximum(batch, 1.0))
        return np.where(batch >= 1, GPUS / replica.gpus * served, np.nan)

    rate = by_replica(point, of)
    return Outcome(STANDARD_NODE.contains(np.nan_to_num(rate)), value=rate, defined=np.isfinite(rate))


def _one_stream(context: Context) -> Space:
    return {
        "model": LARGE_DENSE,
        "weights": WIDTHS,
        "gpus": Choice((4, 8), "half a node and a whole one"),
        "prompt": Range(1500, 8000, "a prompt with a document", floor=1),
        "answer": Range(200, 400, "a few hundred tokens", floor=1),
    }


TENS = Stated(10, 99, "token/s", "tens: 10 to 99")
SECONDS = Stated(2, 9.9, "s", "several seconds: 2 to 9.9")
SMALL_MODEL = Counterfactual(
    "a model of 8 billion parameters",
    lambda space: {**space, "model": Choice(("llama-3.1-8b",), "held fixed"), "gpus": WHOLE_NODE},
)


def _stream(point: Point, of: Callable[[Any, Any, Any], Any]) -> NDArray[np.float64]:
    """Compute a number of one stream alone, NaN where the weights do not fit."""

    def one(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        return np.where(_room(replica, at) >= 1, of(replica, reached, at), np.nan)

    return by_replica(point, one)


@claim(
    "C53",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    chapter=BATCHING,
    anchor=ON_BATCHING,
    stated=TENS,
    space=_one_stream,
    counterfactual=SMALL_MODEL,
    inputs={"weights": "the format of the weights", "gpus": "the GPUs that share the model"},
    sources=("radar2026", "inferencex-dump", "nim-guide"),
)
def tens_of_tokens_per_second(point: Point, context: Context) -> Outcome:
    """A large autoregressive model decodes tens of tokens per second in one stream."""

    def rate_of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> Any:
        middle = at["prompt"] + at["answer"] / 2
        return 1 / decoding.pass_time(replica, batch=1, context_tokens=middle, efficiency=reached).pass_s

    rate = _stream(point, rate_of)
    return Outcome(TENS.contains(np.nan_to_num(rate)), value=rate, defined=np.isfinite(rate))


@claim(
    "C54",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    chapter=BATCHING,
    anchor=ON_BATCHING,
    stated=SECONDS,
    space=_one_stream,
    counterfactual=SMALL_MODEL,
    inputs={"answer": "the answer, in tokens,", "weights": "the format of the weights"},
    sources=("radar2026", "inferencex-dump", "nim-guide"),
)
def several_seconds(point: Point, context: Context) -> Outcome:
    """An answer of a few hundred tokens then takes several seconds."""

    def seconds_of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> Any:
        return decoding.run_s(
            replica, batch=1, input_tokens=at["prompt"], output_tokens=at["answer"], efficiency=reached
        )

    seconds = _stream(point, seconds_of)
    return Outcome(SECONDS.contains(np.nan_to_num(seconds)), value=seconds, defined=np.isfinite(seconds))


@claim(
    "C33",
    kind="computed",
    stated_in="both",
    quantifier="typically",
    chapter=SPARSE,
    anchor=ON_SPARSE,
    space=lambda context: {
        "model": Choice(
            ("gpt-oss-120b", "qwen3-235b-a22b", "deepseek-r1", "mixtral-8x7b"), "open models with routed experts"
        ),
        "positions": Range(1, 512, "one stream to a full batch, or one block of a diffusion model", floor=1),
    },
    counterfactual=Counterfactual("hundreds of positions share the pass", lambda space: fixed(space, positions=1000.0)),
    inputs={"positions": "the number of positions in a pass", "model": "the model"},
    accelerator=None,
)
def experts_save_memory_traffic(point: Point, context: Context) -> Outcome:
    """A mixture of experts uses a fraction of its weights, so that it moves less memory for each token."""
    read = read_of_dense(point)
    return Outcome(read <= LESS, value=read)


def read_of_dense(point: Point) -> NDArray[np.float64]:
    """Bytes of weights that a pass reads, over those of a dense model of the same total size, by sample. [1]."""
    read = np.empty(np.shape(point["model"]))
    for model in np.unique(point["model"]):
        here = np.asarray(point["model"]) == model
        config = shipped(str(model))
        positions = np.broadcast_to(point["positions"], here.shape)[here]
        some, all_of = (
            weight_bytes_streamed(config.architecture, config.precision, positions=m)
            for m in (positions, MANY_POSITIONS)
        )
        read[here] = some / all_of
    return read


def much_less(context: Context) -> tuple[float, float]:
    """Say how often a pass of C33's samples reads at most half of what a dense model of the same size does.

    Returns
    -------
    tuple of float
        Share of the samples, and the positions that separate them best. [1]
    """
    found = REGISTRY["C33"]
    assert isinstance(found, Computed)
    points = sample(found.space(context))
    true = read_of_dense(points) <= MUCH_LESS
    boundary = find_boundary(found.space(context), points, true, lambda at: read_of_dense(at) <= MUCH_LESS)
    assert boundary is not None
    return float(true.mean()), float(boundary.threshold)


# --- Reading the prompt ------------------------------------------------------------------------


@claim(
    "C18",
    kind="computed",
    stated_in="article",
    quantifier="always",
    chapter=PREFILL,
    anchor=ON_PREFILL,
    space=lambda context: {
        "model": LARGE_DENSE,
        "weights": WIDTHS,
        "gpus": WHOLE_NODE,
        "prompt": Range(100, 32_000, "tokens of one prompt", floor=2),
        "cached_share": Range(
            0,
            0.9,
            "of the prompt, held by a prefix cache: nothing to a common system prompt",
            scale="uniform",
            floor=0,
            ceiling=0.95,
        ),
    },
    counterfactual=Counterfactual(
        "prompts of 64 tokens, as a question without its document", lambda space: fixed(space, prompt=64.0)
    ),
    inputs={"prompt": "the prompt, in tokens,", "cached_share": "the cached share"},
)
def prompts_are_compute_bound(point: Point, context: Context) -> Outcome:
    """Reading a prompt is bound by arithmetic, because its tokens are processed in parallel."""

    def of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        cached = at["prompt"] * at["cached_share"]
        time = decoding.pass_time(
            replica,
            batch=1,
            context_tokens=cached,
            positions=np.maximum(at["prompt"] - cached, 1.0),
            logits="last",
            efficiency=reached,
        )
        return np.asarray((time.matmul_s + time.attention_s) / (time.weights_s + time.kv_s))

    ratio = by_replica(point, of)
    return Outcome(ratio > 1, value=ratio)


@claim(
    "C19",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    chapter=PREFILL,
    anchor=ON_PREFILL,
    space=lambda context: {
        "model": LARGE_DENSE,
        "weights": WIDTHS,
        "gpus": REPLICAS,
        "prompt": Range(2000, 16_000, "documents of 3 to 25 pages", floor=1),
        "answer": Range(100, 500, "a record with its fields", floor=1),
        "batch": Range(32, 256, "an overnight queue fills the server", floor=1),
    },
    counterfactual=Counterfactual("one document at a time", lambda space: fixed(space, batch=1.0)),
    inputs={"prompt": "the document, in tokens,", "answer": "the record, in tokens,", "batch": "the batch"},
)
def extraction_mostly_reads(point: Point, context: Context) -> Outcome:
    """Document extraction, long in and short out, already spends much of its time where arithmetic is not starved."""

    def of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        batch = np.minimum(at["batch"], _room(replica, at))
        held = np.maximum(batch, 1.0)
        decode = decoding.pass_time(
            replica, batch=held, context_tokens=at["prompt"] + at["answer"] / 2, efficiency=reached
        ).pass_s
        reading = decoding.prefill_s(replica, input_tokens=at["prompt"], efficiency=reached)
        share = held * reading / (at["answer"] * decode + held * reading)
        return np.where(batch >= 1, share, np.nan)

    share = by_replica(point, of)
    return Outcome(np.nan_to_num(share) > MOST, value=share, defined=np.isfinite(share))
