"""Statements about the answer that cannot wait: how fast, how many at once, on how many nodes.

Times and rates follow the law of a waiting answer in its means, as in `analysis.evidence.claims.queueing`, each
decoder at the split of the node that serves it best. The chapter holds percentiles and simulations beside them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.evidence.claims.decision import BLOCK, DRAFTS, TOKENS_A_PASS
from analysis.evidence.claims.queueing import (
    DENSE,
    FRACTION,
    PAIRS,
    RECORD,
    SPLITS,
    WAITING,
    best_split,
    blocks,
    by_split,
    curve_of,
    drafts,
    plain,
    request,
    room_of,
    within_budget,
)
from analysis.evidence.claims.registry import Context, Counterfactual, Outcome, Stated, claim
from analysis.evidence.claims.serving import PROMPT, WIDTHS, by_replica
from analysis.evidence.claims.speculation import ACCEPTANCE, DRAFT_COST
from analysis.evidence.scenarios import Choice, Point, Range, fixed
from analysis.model import decoders
from analysis.reference.specs import Efficiency, Replica

SIZES = Choice(("llama-3.1-8b", "llama-3.1-70b"), "a small model and a large one")
DRAFTING: dict[str, Range | Choice] = {"acceptance": ACCEPTANCE, "drafts": DRAFTS, "draft_cost": DRAFT_COST}
IN_BLOCKS: dict[str, Range | Choice] = {"block": BLOCK, "tokens_a_pass": TOKENS_A_PASS}
CALLED = {
    "model": "the model",
    "weights": "the format of the weights",
    "prompt": "the prompt, in tokens,",
    "answer": "the answer, in tokens,",
    "tokens_a_pass": "tokens that a pass yields",
    "block": "the block, in tokens,",
    "budget_s": "the budget, in seconds,",
    "rate": "the rate, in requests per second,",
    "decoder": "the decoder",
    "acceptance": "the acceptance of drafts",
    "pair": "the pair",
}


def _of(*names: str) -> dict[str, str]:
    return {name: CALLED[name] for name in names}


# --- How fast ----------------------------------------------------------------------------------

WELL_UNDER = Stated(0.0, 0.7, "s", "well under a second: below 0.7 s, whole answer, prompt included")


@claim(
    "C55",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    stated=WELL_UNDER,
    space=lambda context: {
        "model": SIZES,
        "weights": WIDTHS,
        "prompt": Range(1500, 8000, "the document that the record is taken from: a page to a dozen", floor=1),
        "answer": Range(200, 400, "a few hundred tokens", floor=1),
        **IN_BLOCKS,
        "overhead_s": Range(0.0, 0.1, "network, gateway, tokenizer", scale="uniform", floor=0),
    },
    counterfactual=Counterfactual(
        "a document of 32,000 tokens for the large model",
        lambda space: fixed(space, prompt=32_000.0, model="llama-3.1-70b"),
    ),
    inputs=_of("tokens_a_pass", "model", "prompt", "answer", "block", "weights"),
    **WAITING,
)
def well_under_a_second(point: Point, context: Context) -> Outcome:
    """Diffusion returns the same record well under a second."""

    # that the record is the same, no source shows; here only its time is computed, on an empty node
    def alone(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        found = decoders.request_s(replica, blocks(at), **request(at), efficiency=reached)
        return np.where(room_of(replica, blocks(at), at) >= 1, found, np.inf)

    shape = np.shape(point["model"])
    of_splits = [by_replica({**point, "gpus": np.full(shape, gpus)}, alone) for gpus in SPLITS]
    found = np.min(of_splits, axis=0) + point["overhead_s"]
    return Outcome(found < WELL_UNDER.high, value=found, defined=np.isfinite(found))


# --- How many at once --------------------------------------------------------------------------

HANDFUL = Stated(0, 9.99, "1", "a handful: fewer than ten requests at once on a node")
PLAIN_OR_DRAFTS = Choice(("plain", "drafts"), "one token after the other, and with drafts")


def _at_once(decoder_of: Any) -> Any:
    """Count the requests together on a replica at the largest rate within the budget, by Little's law. [1]."""

    def of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        found = curve_of(replica, decoder_of(at), reached, at)
        return np.minimum(found.rate_within(at["budget_s"]) * at["budget_s"], found.room)

    return of


@claim(
    "C56",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    stated=HANDFUL,
    space=lambda context: {
        "model": DENSE,
        "weights": WIDTHS,
        "prompt": PROMPT,
        "answer": RECORD,
        "budget_s": Range(0.5, 1.0, "sub-second", floor=0.1),
        "decoder": PLAIN_OR_DRAFTS,
        **DRAFTING,
    },
    counterfactual=Counterfactual(
        "a 70B model in 8 bit, plain, short answers, 1.3 seconds",
        lambda space: fixed(
            space, model="llama-3.1-70b", weights="fp8", decoder="plain", budget_s=1.3, answer=128.0, prompt=500.0
        ),
    ),
    inputs=_of("model", "decoder", "budget_s", "answer", "prompt", "acceptance"),
    **WAITING,
)
def a_handful(point: Point, context: Context) -> Outcome:
    """An answer within a second forces tiny batches on token-by-token models, so a node serves a handful at a time."""
    # where the budget can't be kept at all, no batch is small enough: those samples are apart
    drafting = np.asarray(point["decoder"]) == "drafts"
    found = np.empty(drafting.shape)
    for rows, decoder_of in ((~drafting, plain), (drafting, drafts)):
        at = {name: np.asarray(values)[rows] for name, values in point.items()}
        if rows.any():
            together, rates = by_split(at, _at_once(decoder_of)), by_split(at, within_budget(decoder_of))
            best = np.argmax(rates, axis=0)[None]
            found[rows] = np.take_along_axis(together, best, axis=0)[0]
    return Outcome(HANDFUL.contains(found), value=found, defined=found > 0)


# --- On how many nodes -------------------------------------------------------------------------


@claim(
    "C57",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    stated=Stated(0.0, FRACTION, "1", "far fewer: at most a third of the rival's nodes, spares included"),
    space=lambda context: {
        "pair": PAIRS,
        "model": SIZES,
        "weights": WIDTHS,
        "prompt": PROMPT,
        "answer": RECORD,
        "rate": Range(0.1, 100, "from one request in ten seconds to a hundred a second"),
        "budget_s": Range(0.5, 10, "from half a second to what a person waits for", floor=0.1),
        "spares": Choice((0, 1), "none, or one node that may fail"),
        **IN_BLOCKS,
        **DRAFTING,
    },
    counterfactual=Counterfactual(
        "a thousand requests a second, a budget just above the large model's floor, a model an eighth of its size",
        lambda space: fixed(
            space,
            pair="8B diffusion for 70B plain",
            weights="bf16",
            rate=1000.0,
            budget_s=6.0,
            prompt=1500.0,
            answer=300.0,
        ),
    ),
    inputs=_of("pair", "rate", "budget_s", "tokens_a_pass", "prompt", "acceptance"),
    **WAITING,
)
def far_fewer_nodes(point: Point, context: Context) -> Outcome:
    """A node with diffusion absorbs far more traffic that cannot wait, so far fewer nodes are needed."""
    # one node each is not fewer; where either can't keep the budget there is nothing to compare
    pair = np.asarray(point["pair"])
    smaller = pair == PAIRS.values[0]
    within, _ = best_split({**point, "model": np.where(smaller, "llama-3.1-8b", point["model"])}, blocks)
    of_rival = {**point, "model": np.where(smaller, "llama-3.1-70b", point["model"])}
    rival = best_split(of_rival, plain)[0]
    drafting = pair == PAIRS.values[2]
    if drafting.any():
        at = {name: np.asarray(values)[drafting] for name, values in of_rival.items()}
        # drafts are not used where they do not pay
        rival[drafting] = np.maximum(rival[drafting], by_split(at, within_budget(drafts)).max(axis=0))
    defined = (within > 0) & (rival > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        nodes, others = (np.ceil(point["rate"] / rate) + point["spares"] for rate in (within, rival))
        ratio = nodes / others
    return Outcome((np.nan_to_num(ratio, nan=2.0) <= FRACTION) & defined, value=ratio, defined=defined)
