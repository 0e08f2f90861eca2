"""Statements about work that waits and answers that cannot: the night, the queue, the nodes.

Rates and batches follow the law of a waiting answer in its means (`analysis.model.queueing`): each batch has a time
that a request takes in it, and by Little's law a rate at which it is that batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sympy import limit, oo

from analysis.evidence.claims.decision import BLOCK, DRAFTS, NIGHT_BLOCKS, TOKENS_A_PASS, in_two_passes
from analysis.evidence.claims.registry import Context, Counterfactual, Evidence, Outcome, Stated, Structure, claim
from analysis.evidence.claims.serving import ENGINE, GPUS, LARGE_DENSE, MOST, PROMPT, WHOLE_NODE, WIDTHS, by_replica
from analysis.evidence.claims.speculation import ACCEPTANCE, DRAFT_COST
from analysis.evidence.scenarios import Choice, Point, Range, Space, fixed, sample
from analysis.model import decoders, decoding
from analysis.reference.efficiency import memory_rule, slots
from analysis.reference.specs import Decoder, Efficiency, Replica
from analysis.symbolic import queueing as symbolic
from analysis.symbols import BUDGET, LATENCY_FLOOR, MARGINAL
from analysis.units import SECONDS_PER_HOUR

#: Chapters and the labels of their claim checks.
NIGHT: dict[str, Any] = {"chapter": "overnight", "anchor": "overnight-claims"}
WAITING: dict[str, Any] = {"chapter": "waiting", "anchor": "waiting-claims"}
PLAIN = Decoder.autoregressive()
#: Batches at which the time of a request is computed; between them it is interpolated.
BATCHES = 14
#: GPUs of one replica that the node's eight can be split into.
SPLITS = (1, 2, 4, 8)


# --- Times, rates and batches of the samples ---------------------------------------------------


class _Curve(NamedTuple):
    """Time of a request by the requests in a replica, at a few batches of each sample up to its room."""

    room: NDArray[np.float64]
    batch: NDArray[np.float64]
    stay_s: NDArray[np.float64]

    @property
    def saturated(self) -> NDArray[np.float64]:
        """Rate of the full replica, 0 where not one request fits. [request/s]."""
        return np.where(self.room >= 1, self.batch[-1] / self.stay_s[-1], 0.0)

    def batch_where(self, values: NDArray[np.float64], level: Any) -> NDArray[np.float64]:
        """Find the batch at which growing values pass a level; the room where they stay below it."""
        above = values > level
        first = np.argmax(above, axis=0)
        never = ~above.any(axis=0)
        low, high = np.maximum(first - 1, 0)[None], first[None]
        ends = [np.take_along_axis(each, at, axis=0)[0] for each in (values, self.batch) for at in (low, high)]
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(first > 0, (level - ends[0]) / (ends[1] - ends[0]), 0.0)
        return np.where(never, self.batch[-1], ends[2] + part * (ends[3] - ends[2]))

    def batch_at(self, rate: Any) -> NDArray[np.float64]:
        """Requests beside and including one, at a rate; infinite where the replica can't keep up. [1]."""
        found = self.batch_where((self.batch - 1) / self.stay_s, rate)
        return np.where(rate < self.saturated, found, np.inf)

    def rate_within(self, budget_s: Any) -> NDArray[np.float64]:
        """Largest rate at which the mean keeps a budget, 0 where the floor breaks it. [request/s]."""
        batch = self.batch_where(self.stay_s, budget_s)
        rate = np.where(batch < self.batch[-1], (batch - 1) / budget_s, self.saturated)
        return np.where((self.stay_s[0] < budget_s) & (self.room >= 1), rate, 0.0)


def request(at: Point) -> dict[str, Any]:
    """Return the tokens of each sample's request."""
    return {"input_tokens": at["prompt"], "output_tokens": at["answer"]}


def room_of(replica: Replica, decoder: Decoder, at: Point) -> NDArray[np.float64]:
    """Count the requests that the replica's memory and engine hold. [1]."""
    return np.asarray(
        decoders.largest_batch(replica, decoder, **request(at), slots=slots(ENGINE), rule=memory_rule(ENGINE))
    )


def curve_of(replica: Replica, decoder: Decoder, reached: Efficiency, at: Point) -> _Curve:
    """Compute the time of a request at a few batches up to the room."""
    room = room_of(replica, decoder, at)
    batch = np.maximum(room, 1.0) ** np.linspace(0.0, 1.0, BATCHES)[:, None]
    stay = decoders.served(replica, decoder, batch=batch, **request(at), efficiency=reached).request_s
    return _Curve(room, batch, np.asarray(stay))


def blocks(at: Point) -> Decoder:
    """Return the block diffusion of each sample."""
    passes = np.maximum(np.asarray(at["block"]) / at["tokens_a_pass"], 1.0)
    return Decoder.diffusion(block_tokens=at["block"], passes=passes)


def drafts(at: Point) -> Decoder:
    """Return the drafts of each sample."""
    return Decoder.speculative(acceptance=at["acceptance"], draft_length=at["drafts"], draft_cost=at["draft_cost"])


def _reading_share(replica: Replica, reached: Efficiency, at: Point, batch: Any) -> NDArray[np.float64]:
    """Share of a replica's time that reading prompts takes, with so many requests in it."""
    held = decoders.served(replica, PLAIN, batch=batch, **request(at), efficiency=reached)
    return np.asarray(batch * held.prompt_s / held.request_s)


def _memory_share(replica: Replica, reached: Efficiency, at: Point, batch: Any) -> NDArray[np.float64]:
    """Share of a replica's time in passes, and in reading prompts, where memory takes longer than arithmetic."""
    reading = _reading_share(replica, reached, at, batch)
    step = decoding.pass_time(replica, batch=batch, context_tokens=at["prompt"] + at["answer"] / 2, efficiency=reached)
    (prompts,) = decoding.prefill_steps(replica, input_tokens=at["prompt"])
    prompt = decoding.time_of(prompts.asked, decoding.peaks(replica), reached)
    bound = [time.weights_s + time.kv_s > time.matmul_s + time.attention_s for time in (step, prompt)]
    return (1 - reading) * np.asarray(bound[0]) + reading * np.asarray(bound[1])


def saturated(decoder_of: Any) -> Any:
    """Compute the rate of a replica that always has more waiting. [request/s]."""

    def of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        load = {**request(at), "slots": slots(ENGINE), "rule": memory_rule(ENGINE), "efficiency": reached}
        return np.asarray(decoders.saturated_req_per_s(replica, decoder_of(at), **load))

    return of


def within_budget(decoder_of: Any) -> Any:
    """Compute the largest rate of a replica at which the mean keeps the budget. [request/s]."""

    def of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        return curve_of(replica, decoder_of(at), reached, at).rate_within(at["budget_s"])

    return of


def by_split(point: Point, of: Any) -> NDArray[np.float64]:
    """Compute a rate of the node for each split of its GPUs, a row each."""
    shape = np.shape(point["model"])
    return np.array(
        [GPUS // gpus * by_replica({**point, "gpus": np.full(shape, gpus)}, of) for gpus in SPLITS], dtype=float
    )


def best_split(point: Point, decoder_of: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rate of a node within its budget and its saturated rate, at the split that gives the largest first."""
    rates, full = (by_split(point, of(decoder_of)) for of in (within_budget, saturated))
    best = np.argmax(rates, axis=0)[None]
    return np.take_along_axis(rates, best, axis=0)[0], np.take_along_axis(full, best, axis=0)[0]


def plain(at: Point) -> Decoder:
    """Return one token after the other, whatever the sample."""
    return PLAIN


# --- Ranges ------------------------------------------------------------------------------------

DOCUMENT = Range(2000, 8000, "documents of a few pages to a few dozen", floor=1)
RECORD = Range(100, 300, "fields of a record to a short summary", floor=1)
DENSE = Choice(("llama-3.1-8b", *LARGE_DENSE.values), "open dense models of 8 to 123 billion parameters")
SINGLY = Range(
    0.003, 10, "from ten applicants an hour to ten a second, which would be 36,000 an hour at one bank", floor=0
)
INTERNAL = Range(0.01, 100, "from one request in a hundred seconds to a hundred a second")
HARD = Range(1, 10, "from the second of the text to what a person waits for", floor=0.1)


# --- The night ---------------------------------------------------------------------------------


def _pile(context: Context) -> Space:
    return {
        "model": DENSE,
        "weights": WIDTHS,
        "prompt": DOCUMENT,
        "answer": RECORD,
        "documents": Range(1e6, 5e6, "millions: 1 to 5", floor=1),
        "hours": Range(8, 12, "a night"),
    }


#: "Trivially": so many full nodes in the pile that filling and draining the batch is a tenth of the work.
FULL_NODES = 10.0


@claim(
    "C14",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    space=_pile,
    counterfactual=Counterfactual("a pile of a dozen files", lambda space: fixed(space, documents=12.0)),
    inputs={"documents": "the pile", "prompt": "a document, in tokens,", "model": "the model"},
    **NIGHT,
)
def trivially_batched(point: Point, context: Context) -> Outcome:
    """Queues of millions of documents overnight are trivially batched."""

    # what is said is that they batch: all wait, so the batch is full from the first minute nearly to the last. That
    # one node gets through them is another statement, `night_share`
    def held(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        return room_of(replica, PLAIN, at)

    together = by_split(point, held).max(axis=0)
    with np.errstate(divide="ignore"):
        fills = np.asarray(point["documents"]) / together
    return Outcome(fills >= FULL_NODES, value=fills, defined=together >= 1)


def night_share(point: Point) -> NDArray[np.float64]:
    """Compute what share of its pile one node reads in the night, at the split that reads most. [1]."""
    rate = by_split(point, saturated(plain)).max(axis=0)
    return np.asarray(SECONDS_PER_HOUR * point["hours"] * rate / point["documents"])


def one_node_reads(context: Context) -> pd.Series:
    """Say how often one node gets through the pile of C14, the reading that its verdict does not take.

    Returns
    -------
    Series
        ``share_true`` of the samples of C14 in which one node reads the whole pile, and ``median`` share of the
        pile that it reads. [1]
    """
    share = night_share(sample(_pile(context)))
    return pd.Series({"share_true": float((share >= 1).mean()), "median": float(np.median(share))})


def _paths(context: Context) -> Space:
    return {
        "model": DENSE,
        "weights": WIDTHS,
        "gpus": WHOLE_NODE,
        "prompt": DOCUMENT,
        "answer": RECORD,
        "rate": SINGLY,
    }


LONG_ANSWERS = Counterfactual(
    "short prompts and answers of 600 tokens", lambda space: fixed(space, prompt=300.0, answer=1000.0)
)
LONG_FILES = Counterfactual(
    "files of 30,000 tokens with answers of three thousand",
    lambda space: fixed(space, prompt=30_000.0, answer=3000.0, rate=0.1),
)
OF_PATHS = {
    "rate": "the rate of live requests, per second,",
    "prompt": "a document, in tokens,",
    "answer": "the answer, in tokens,",
    "model": "the model",
    "weights": "the format of the weights",
}


def _on_both_paths(point: Point, of: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute a share with a full replica, and with the batch that the live rate leaves; NaN where it can't be."""

    def at_batch(live: bool) -> NDArray[np.float64]:
        def share(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
            curve = curve_of(replica, PLAIN, reached, at)
            batch = curve.batch_at(at["rate"]) if live else curve.batch[-1]
            known = np.isfinite(batch) & (curve.room >= 1)
            return np.where(known, of(replica, reached, at, np.where(known, batch, 1.0)), np.nan)

        return by_replica(point, share)

    return at_batch(live=False), at_batch(live=True)


@claim(
    "C16",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    space=_paths,
    counterfactual=LONG_FILES,
    inputs=OF_PATHS,
    **NIGHT,
)
def bound_by_path(point: Point, context: Context) -> Outcome:
    """The overnight job is not bound by memory, the live one is."""
    night, live = _on_both_paths(point, _memory_share)
    defined = np.isfinite(night) & np.isfinite(live)
    return Outcome((np.nan_to_num(night, nan=1.0) <= MOST) & (np.nan_to_num(live) > MOST), value=live, defined=defined)


@claim(
    "C48",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    space=_paths,
    counterfactual=LONG_ANSWERS,
    inputs=OF_PATHS,
    **NIGHT,
)
def opposite_paths(point: Point, context: Context) -> Outcome:
    """The bank's two document paths look the same and behave as opposites."""
    # opposites: one spends most of its time reading, the other most of it writing
    night, live = _on_both_paths(point, _reading_share)
    defined = np.isfinite(night) & np.isfinite(live)
    return Outcome((np.nan_to_num(night) > MOST) & (np.nan_to_num(live, nan=1.0) <= MOST), value=live, defined=defined)


@claim(
    "C51",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    stated=Stated(MOST, 1.0, "1", "mostly: more than half of the node's time"),
    space=lambda context: (
        {name: axis for name, axis in _paths(context).items() if name != "rate"}
        | {"filled": Choice((1.0,), "the queue keeps the node full; 0 stands for one document at a time")}
    ),
    counterfactual=Counterfactual("one document at a time", lambda space: fixed(space, filled=0.0)),
    inputs={name: words for name, words in OF_PATHS.items() if name != "rate"},
    **NIGHT,
)
def mostly_reading(point: Point, context: Context) -> Outcome:
    """The overnight job is mostly reading prompts."""

    def share(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        room = room_of(replica, PLAIN, at)
        batch = np.maximum(room, 1.0) ** at["filled"]
        return np.where(room >= 1, _reading_share(replica, reached, at, batch), np.nan)

    found = by_replica(point, share)
    return Outcome(np.nan_to_num(found) > MOST, value=found, defined=np.isfinite(found))


A_LITTLE_FASTER = Stated(1.0, 1.3, "1", "a little faster: 1.0 to 1.3 times")


@claim(
    "C50",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    stated=A_LITTLE_FASTER,
    space=lambda context: {
        "model": DENSE,
        "weights": WIDTHS,
        "prompt": DOCUMENT,
        "answer": RECORD,
        "block": NIGHT_BLOCKS,
        "tokens_a_pass": TOKENS_A_PASS,
    },
    counterfactual=Counterfactual(
        "blocks of 32 that are done in two passes, long documents, answers of 600 tokens",
        lambda space: fixed(space, block=32, tokens_a_pass=16.0, prompt=8000.0, answer=600.0),
    ),
    inputs={
        "tokens_a_pass": "tokens that a pass yields",
        "block": "the block, in tokens,",
        "prompt": "a document, in tokens,",
        "answer": "the answer, in tokens,",
    },
    split="block",
    **NIGHT,
)
def diffusion_at_night(point: Point, context: Context) -> Outcome:
    """Overnight, diffusion is a little faster at a similar cost."""
    # that both fit on one node is not judged here but with the pile, in `one_node_reads`
    point = in_two_passes(point)
    # each at the split of the node that reads most
    wide, narrow = (by_split(point, saturated(of)).max(axis=0) for of in (blocks, plain))
    defined = (wide > 0) & (narrow > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(defined, wide / narrow, np.nan)
    return Outcome(A_LITTLE_FASTER.contains(np.nan_to_num(found)), value=found, defined=np.isfinite(found))


# --- The answer that cannot wait ---------------------------------------------------------------


@claim(
    "C03",
    kind="computed",
    stated_in="both",
    quantifier="typically",
    space=lambda context: {
        "model": DENSE,
        "weights": WIDTHS,
        "prompt": PROMPT,
        "answer": RECORD,
        "rate": INTERNAL,
        "budget_s": HARD,
        "day": Range(0.2, 0.8, "mean over peak: traces of a day have 0.34 to 0.7", scale="uniform", floor=0, ceiling=1),
    },
    counterfactual=Counterfactual(
        "every hour is alike, and thousands of requests a second fill the nodes",
        lambda space: fixed(space, day=1.0, rate=5000.0),
    ),
    inputs={
        "rate": "the rate, in requests per second,",
        "budget_s": "the budget, in seconds,",
        "day": "mean over peak",
    },
    **WAITING,
)
def mismatch_idles(point: Point, context: Context) -> Outcome:
    """Hardware idles because token-by-token decoding does not match how enterprises use models."""
    # of the shares whose product is utilization, the one that decoding and budget make is the smallest: what a node
    # sells within the budget over what it could make; against the day, and against nodes that come whole
    within, full = best_split(point, plain)
    defined = within > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        latency = within / full
        integer = point["rate"] / (within * np.ceil(point["rate"] / within))
    return Outcome(
        np.nan_to_num(latency, nan=2.0) < np.minimum(np.nan_to_num(integer), point["day"]),
        value=latency,
        defined=defined,
    )


@claim(
    "C15",
    kind="computed",
    stated_in="both",
    quantifier="always",
    space=lambda context: {
        "model": DENSE,
        "weights": WIDTHS,
        "gpus": WHOLE_NODE,
        "prompt": PROMPT,
        "answer": RECORD,
        "rate": INTERNAL,
        "batch": Range(8, 64, "a batch worth collecting", floor=2),
        "scheduler": Choice(
            ("collects a batch first", "admits at the next pass"), "static batching, and what servers have done since"
        ),
    },
    counterfactual=Counterfactual(
        "the server admits a request at its next pass", lambda space: fixed(space, scheduler="admits at the next pass")
    ),
    inputs={"scheduler": "the scheduler", "rate": "the rate, in requests per second,"},
    **WAITING,
)
def cannot_wait_for_a_batch(point: Point, context: Context) -> Outcome:
    """A lone request that has to be answered within a second cannot wait for a batch to fill."""

    # it cannot wait where the wait alone takes the second
    def pass_s(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        held = decoders.served(replica, PLAIN, batch=at["batch"], **request(at), efficiency=reached)
        return np.asarray(held.cycle_s + held.prompt_s)

    collecting = (point["batch"] - 1) / point["rate"]
    wait = np.where(np.asarray(point["scheduler"]) == "collects a batch first", collecting, by_replica(point, pass_s))
    return Outcome(wait > 1.0, value=wait)


@claim(
    "C52",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    space=_paths,
    counterfactual=Counterfactual(
        "five applicants a second", lambda space: fixed(space, rate=5.0, model="llama-3.1-70b", answer=300.0)
    ),
    inputs=OF_PATHS,
    **WAITING,
)
def singly(point: Point, context: Context) -> Outcome:
    """Onboarding requests come one at a time with hard budgets and cannot be batched."""

    # one at a time: fewer than one other request beside each, by Little's law
    def beside(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        curve = curve_of(replica, PLAIN, reached, at)
        return np.where(curve.room >= 1, curve.batch_at(at["rate"]) - 1, np.nan)

    found = by_replica(point, beside)
    finite = np.where(np.isinf(found), slots(ENGINE), found)
    return Outcome(np.nan_to_num(finite, nan=np.inf) < 1, value=finite, defined=~np.isnan(found))


@claim(
    "C60",
    kind="computed",
    stated_in="article",
    quantifier="always",
    space=lambda context: {
        "model": LARGE_DENSE,
        "weights": WIDTHS,
        "gpus": WHOLE_NODE,
        "prompt": PROMPT,
        "answer": Range(100, 1000, "from a record to a page", floor=1),
        "rate": INTERNAL,
    },
    counterfactual=Counterfactual(
        "all workloads of a house share one gateway: a hundred requests a second",
        lambda space: fixed(space, rate=100.0),
    ),
    inputs=OF_PATHS | {"rate": "the rate, in requests per second,"},
    **WAITING,
)
def never_enough_at_once(point: Point, context: Context) -> Outcome:
    """Valuable internal workloads never reach the concurrency that the economics of the cloud need."""

    # needed: the batch at which a node makes half of what it can; reached: rate times stay
    def reached_over_needed(replica: Replica, reach: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        curve = curve_of(replica, PLAIN, reach, at)
        needed = curve.batch_where(curve.batch / curve.stay_s, curve.saturated / 2)
        present = np.minimum(curve.batch_at(at["rate"]), curve.batch[-1])
        return np.where(curve.room >= 1, present / needed, np.nan)

    ratio = by_replica(point, reached_over_needed)
    return Outcome(np.nan_to_num(ratio, nan=1.0) < 1, value=ratio, defined=np.isfinite(ratio))


PAIRS = Choice(
    ("8B diffusion for 70B plain", "same model, plain", "same model, drafts"),
    "the comparisons that the texts and their critics make",
)
FRACTION = 1 / 3


@claim(
    "C61",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    space=lambda context: {
        "pair": PAIRS,
        "model": Choice(("llama-3.1-8b", "llama-3.1-70b"), "a small model and a large one"),
        "weights": WIDTHS,
        "prompt": PROMPT,
        "answer": RECORD,
        "rate": INTERNAL,
        "budget_s": HARD,
        "block": BLOCK,
        "tokens_a_pass": TOKENS_A_PASS,
        "acceptance": ACCEPTANCE,
        "drafts": DRAFTS,
        "draft_cost": DRAFT_COST,
    },
    counterfactual=Counterfactual(
        "hundreds of requests a second, a budget just above the large model's floor, a model an eighth of its size",
        lambda space: fixed(
            space,
            pair="8B diffusion for 70B plain",
            weights="bf16",
            rate=300.0,
            budget_s=6.0,
            prompt=1500.0,
            answer=300.0,
        ),
    ),
    inputs={
        "pair": "the pair",
        "rate": "the rate, in requests per second,",
        "budget_s": "the budget, in seconds,",
        "tokens_a_pass": "tokens that a pass yields",
    },
    **WAITING,
)
def saturated_on_fewer(point: Point, context: Context) -> Outcome:
    """Diffusion turns an idle node into a saturated one, on a fraction of the boxes."""
    # a fraction: at most a third of the nodes; saturated: more than half of what they can make; means, best splits
    pair = np.asarray(point["pair"])
    smaller = pair == "8B diffusion for 70B plain"
    new_model = np.where(smaller, "llama-3.1-8b", point["model"])
    old_model = np.where(smaller, "llama-3.1-70b", point["model"])
    within, full = best_split({**point, "model": new_model}, blocks)
    rival = np.empty(np.shape(pair))
    for rows, decoder_of in ((pair != "same model, drafts", plain), (pair == "same model, drafts", drafts)):
        at = {name: np.asarray(values)[rows] for name, values in {**point, "model": old_model}.items()}
        rival[rows] = by_split(at, within_budget(decoder_of)).max(axis=0)
    defined = (within > 0) & (rival > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        nodes, others = (np.ceil(point["rate"] / rate) for rate in (within, rival))
        load = point["rate"] / (nodes * full)
        ratio = nodes / others
    return Outcome((ratio <= FRACTION) & (load > MOST) & defined, value=ratio, defined=defined)


@claim("C67", kind="definition", stated_in="article", **WAITING)
def latency_bound_set() -> Structure:
    """Copilots, code completion, live checks and steps of agents are the work that latency binds."""
    rate = symbolic.largest_rate()
    return Structure(
        present=rate.subs(BUDGET, LATENCY_FLOOR) == 0 and limit(rate, BUDGET, oo) == 1 / MARGINAL,
        departs_when=(
            "a budget binds where it is near the floor of the answer, whatever the work is called: completions of 10 to"
            " 50 tokens fill a part of a block of 256, steps of agents read long prompts that a cache mostly holds and"
            " wait for tools, and a copilot that streams is bound by its first token"
        ),
    )


# --- What rests on sources alone ---------------------------------------------------------------


def _nothing() -> pd.DataFrame:
    return pd.DataFrame(columns=["value", "unit", "as_of", "source", "supports"])


@claim("C59", kind="market fact", stated_in="article", quantifier="typically", **WAITING)
def motives(context: Context) -> Evidence:
    """Firms bought their nodes for sovereignty, control and independence, not for cheap tokens; rightly so."""
    return Evidence(
        _nothing(),
        searched=(
            "no survey was found that asks owners why they bought; one of 203 firms, paid for by a seller of storage in"
            " 2026, asks where they would run AI, and has sovereignty first and unpredictable cost of clouds second"
            " (searched November 2026)"
        ),
    )


@claim("C63", kind="market fact", stated_in="summary", quantifier="typically", sources=(), **NIGHT)
def idle_nights(context: Context) -> Evidence:
    """The bank's H100s stood idle overnight."""
    return Evidence(
        _nothing(),
        searched=(
            "the bank has no name and no telemetry of it is published; were its overnight batch run on the node, the"
            " night would be the one time when it is full (searched November 2026)"
        ),
    )
