"""Statements about the whole: what the texts set out from, what they advise, and what the summary adds.

Those that rest on sources alone are shown with the data; those about the choice itself with the decision map.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.evidence import api_times
from analysis.evidence.claims.registry import (
    REGISTRY,
    Computed,
    Context,
    Counterfactual,
    Evidence,
    Outcome,
    Stated,
    Structure,
    claim,
)
from analysis.evidence.claims.rivals import COPIED
from analysis.evidence.claims.serving import ANSWER, ENGINE, LARGE_DENSE, PROMPT, WHOLE_NODE, WIDTHS, by_replica
from analysis.evidence.claims.speculation import ACCEPTANCE, DRAFT_COST
from analysis.evidence.scenarios import Choice, Point, Range, Space, fixed, sample
from analysis.model import decoders
from analysis.model.head_to_head import Rival, best, look_up, one_by_one, speculation
from analysis.model.queueing import Service
from analysis.reference import tables
from analysis.reference.efficiency import memory_rule, slots
from analysis.reference.specs import Decoder, Efficiency, Replica
from analysis.symbolic import cost as symbolic
from analysis.symbols import API_PRICE, PRICE, RATE, TPUT, UTIL
from analysis.units import SECONDS_PER_HOUR

#: Chapters and the labels of their claim checks.
SOURCED: dict[str, Any] = {"chapter": "data", "anchor": "data-claims"}
CHOOSING: dict[str, Any] = {"chapter": "map", "anchor": "map-claims"}
#: Looked for again in November 2026, in public pages and in what the texts link to.
WHEN = "(searched November 2026)"


# --- What rests on sources alone ---------------------------------------------------------------


def _nothing() -> pd.DataFrame:
    return pd.DataFrame(columns=["value", "unit", "as_of", "source", "supports"])


@claim("C01", kind="market fact", stated_in="both", quantifier="can", **SOURCED)
def vignette(context: Context) -> Evidence:
    """A bank in Singapore bought eight H100 to keep its AI in the country, and then saw them hardly used."""
    return Evidence(
        _nothing(),
        searched=(
            "the bank has no name, no figure of use and no date, and nobody else reports it: a scenario with eight"
            f" H100, which this report computes, and evidence for nothing {WHEN}"
        ),
    )


IDLE = Stated(0, 0.5, "1", "utilization did not arrive: less than half of what was provisioned is used")


@claim("C02", kind="market fact", stated_in="both", quantifier="typically", stated=IDLE, **SOURCED)
def hangover(context: Context) -> Evidence:
    """Companies have the hardware; the utilization did not come with it."""
    rows = tables.table("fleet_utilization", as_of=context.as_of).where(work="mixed")
    return Evidence(
        rows.assign(supports=IDLE.contains(rows["value"].to_numpy())),
        searched=f"telemetry of GPU fleets that companies run for work of every kind {WHEN}",
        called=(
            "dated figures of mixed fleets: GPUs in containers and in one cloud company, none of them a bank's model"
            " server; training fleets are busier"
        ),
    )


@claim("C66", kind="market fact", stated_in="summary", quantifier="can", sources=(), **SOURCED)
def forecast(context: Context) -> Evidence:
    """These technologies could change finance and service work that waits for an answer."""
    return Evidence(
        _nothing(),
        searched=(
            "a forecast: nothing dated can bear it out or refute it, and no measured change of such work by text"
            f" diffusion was found {WHEN}"
        ),
    )


@claim("C73", kind="market fact", stated_in="summary", quantifier="typically", sources=(), **SOURCED)
def rushed_to_build(context: Context) -> Evidence:
    """Companies rushed to build infrastructure of their own for AI."""
    return Evidence(
        _nothing(),
        searched=(
            "spending and plans are reported, haste is not: no survey was found that asks who bought before there was"
            f" work; sellers of optimization say so of their customers {WHEN}"
        ),
    )


# --- What is advised ---------------------------------------------------------------------------


@claim("C58", kind="definition", stated_in="article", **CHOOSING)
def two_axes() -> Structure:
    """Choose by two questions: can the work be batched, and what is the token worth that one would buy instead."""
    traffic = symbolic.cost_at_demand()
    worth = symbolic.breakeven_utilization()
    return Structure(
        present=traffic.has(RATE) and bool(worth.diff(API_PRICE).is_negative),
        departs_when=(
            "neither question has only two answers: what can be batched is the number of requests that run together,"
            " rate times stay, and the worth is a price; and cells change with the share of the prompt, with bursts,"
            " with workloads that share a node, and with the quality that the task needs"
        ),
    )


@claim("C76", kind="definition", stated_in="summary", sources=(), **CHOOSING)
def business_return() -> Structure:
    """What counts is the return of the business, not metrics of engineers."""
    return Structure(
        present=not symbolic.cost_at_demand().free_symbols & {TPUT, UTIL} and symbolic.cost_at_demand().has(PRICE),
        departs_when=(
            "throughput and utilization cancel out of what an always-on node costs at fixed demand; they come back"
            " where they free whole nodes, decide whether a budget is met, or make room for other work"
        ),
    )


TOKENS_A_PASS = Range(
    2, 16, "tokens that a pass over a block yields: published open models keep 2 to 10, one of blocks of 256 keeps 15"
)
BLOCK = Choice((32, 64, 128, 256), "blocks of published models, and one length between them")
#: Short blocks survive full batches best, so those of the open models count beside the longer ones.
NIGHT_BLOCKS = Choice((4, 16, 32, 64, 128, 256), f"{BLOCK.reason}, the short ones included")
DRAFTS = Choice((3, 4, 5), "drafts of a cycle, as engines are set up")


def _diffusion(at: Point) -> Decoder:
    return Decoder.diffusion(
        block_tokens=at["block"], passes=np.maximum(np.asarray(at["block"]) / at["tokens_a_pass"], 1.0)
    )


def in_two_passes(point: Point) -> Point:
    """Hold what a pass keeps to half of a block, which takes a pass that fills it and one that commits it."""
    return {**point, "tokens_a_pass": np.minimum(point["tokens_a_pass"], np.asarray(point["block"]) / 2)}


def _request(at: Point) -> dict[str, Any]:
    return {"input_tokens": at["prompt"], "output_tokens": at["answer"]}


def _night(context: Context) -> Space:
    return {
        "model": LARGE_DENSE,
        "weights": WIDTHS,
        "gpus": WHOLE_NODE,
        "prompt": Range(2000, 8000, "documents of a few pages to a few dozen", floor=1),
        "answer": ANSWER,
        "documents": Range(1e6, 5e6, "millions: 1 to 5, ends included"),
        "hours": Range(8, 12, "a night"),
        "block": NIGHT_BLOCKS,
        "tokens_a_pass": TOKENS_A_PASS,
    }


@claim(
    "C74",
    kind="computed",
    stated_in="summary",
    quantifier="always",
    space=_night,
    counterfactual=Counterfactual(
        "a cache that fills the node with a dozen requests, and blocks that take two passes",
        lambda space: fixed(space, prompt=100_000.0, answer=1000.0, block=32, tokens_a_pass=16.0, documents=1e6),
    ),
    inputs={"tokens_a_pass": "tokens that a pass yields", "block": "the block", "answer": "the answer, in tokens,"},
    sources=(),
    **CHOOSING,
)
def batch_needs_nothing_new(point: Point, context: Context) -> Outcome:
    """For batch work the known methods are enough: a model that decodes token by token, with requests batched."""
    point = in_two_passes(point)

    # enough: the night's documents on no more nodes than a diffusion model of the same size would take
    def nodes(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        load = {**_request(at), "slots": slots(ENGINE), "rule": memory_rule(ENGINE), "efficiency": reached}
        rates = [
            np.asarray(decoders.saturated_req_per_s(replica, decoder, **load))
            for decoder in (Decoder.autoregressive(), _diffusion(at))
        ]
        with np.errstate(divide="ignore"):
            known, new = (np.ceil(at["documents"] / (at["hours"] * SECONDS_PER_HOUR * rate)) for rate in rates)
        return np.where(np.minimum(*rates) > 0, known / new, np.nan)

    ratio = by_replica(point, nodes)
    return Outcome(np.nan_to_num(ratio, nan=np.inf) <= 1, value=ratio, defined=np.isfinite(ratio))


ONE_SECOND = Choice((1.0,), "the budget of the text, with nothing spent outside the GPUs")


def _second(context: Context) -> Space:
    return {
        "model": LARGE_DENSE,
        "weights": WIDTHS,
        "gpus": WHOLE_NODE,
        "prompt": PROMPT,
        "answer": Range(100, 500, "a record to half a page", floor=1),
        "budget_s": ONE_SECOND,
    }


@claim(
    "C75",
    kind="computed",
    stated_in="summary",
    quantifier="can",
    space=lambda context: {
        **_second(context),
        "block": BLOCK,
        "tokens_a_pass": TOKENS_A_PASS,
        "acceptance": ACCEPTANCE,
        "draft_cost": DRAFT_COST,
        "copied": COPIED,
    },
    counterfactual=Counterfactual("records of 60 tokens", lambda space: fixed(space, answer=60.0)),
    inputs={
        "answer": "the answer, in tokens,",
        "prompt": "the prompt, in tokens,",
        "tokens_a_pass": "tokens that a pass yields",
        "weights": "the format of the weights",
    },
    sources=(),
    **CHOOSING,
)
def breakthrough(point: Point, context: Context) -> Outcome:
    """Where an answer cannot wait, diffusion can be a breakthrough."""
    # a breakthrough: it keeps a budget that the same model keeps in no other way, on any number of nodes
    of_same = ("plain decoding", "drafts of any length", "copies from the prompt")
    seconds = _seconds_alone(point)
    rivals = np.minimum.reduce([seconds[name] for name in of_same])
    diffusion = seconds["diffusion"]
    defined = np.isfinite(rivals) & np.isfinite(diffusion)
    budget = np.asarray(point["budget_s"])
    true = (np.nan_to_num(diffusion, nan=np.inf) <= budget) & (np.nan_to_num(rivals, nan=0.0) > budget)
    return Outcome(true, value=rivals / diffusion, defined=defined)


def _seconds_alone(point: Point) -> dict[str, NDArray[np.float64]]:
    """Time of a request alone in every way to decode on the same model; NaN where the replica does not hold it."""

    def seconds(rival_of: Callable[[Point], Rival]) -> NDArray[np.float64]:
        def of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
            rival = rival_of(at)
            alone = best(replica, rival, **_request(at), batch=1.0, efficiency=reached).request_s
            room = decoders.largest_batch(replica, rival.decoders[0], **_request(at), rule=memory_rule(ENGINE))
            return np.where(np.asarray(room) >= 1, alone, np.nan)

        return by_replica(point, of)

    return {
        "plain decoding": seconds(lambda at: one_by_one()),
        "drafts of any length": seconds(
            lambda at: speculation(acceptance=at["acceptance"], draft_cost=at["draft_cost"])
        ),
        "copies from the prompt": seconds(lambda at: look_up(acceptance=at["copied"])),
        "diffusion": seconds(lambda at: Rival("diffusion", (_diffusion(at),))),
    }


#: A sparse model on the same node: larger in all its weights, smaller in those that a token uses.
OTHER_MODEL = "gpt-oss-120b"


def breakthrough_against(context: Context) -> pd.DataFrame:
    """Follow the breakthrough as more rivals are admitted: the share in which diffusion alone keeps the second.

    Parameters
    ----------
    context : Context

    Returns
    -------
    DataFrame
        ``rivals``, each row with those above it, and ``share`` of the samples of C75: the same model token by token,
        with drafts, with copies from the prompt (the reading of C75), then the quickest API that was measured for
        the sample's answer, makers' word on APIs, and a sparse model of another make on the same node with the same
        drafts. [1]
    """
    claim_of = REGISTRY["C75"]
    assert isinstance(claim_of, Computed)
    points = sample(claim_of.space(context))
    seconds, budget = _seconds_alone(points), points["budget_s"]
    diffusion = seconds.pop("diffusion")
    defined = claim_of.outcome(points, context)[0]
    for called, status in (("APIs as measured", "measured"), ("APIs as their makers say", "reported")):
        found = api_times.judged(as_of=context.as_of, status=status)
        each = [api_times.answer_s(row.wait_s, row.tok_per_s, tokens=points["answer"]) for row in found.itertuples()]
        seconds[called] = np.min(each, axis=0) if each else np.full(budget.shape, np.inf)
    other = {**points, "model": np.full(budget.shape, OTHER_MODEL)}
    seconds["a sparse model on the node"] = _seconds_alone(other)["drafts of any length"]
    rows, rivals = [], np.full(budget.shape, np.inf)
    for called, theirs in seconds.items():
        rivals = np.fmin(rivals, theirs)
        rows.append((called, float(((diffusion <= budget) & (rivals > budget))[defined].mean())))
    return pd.DataFrame(rows, columns=["rivals", "share"])


#: Steps from one request to as many as fit.
_STEPS = 24
TINY = Stated(1, 8, "1", "tiny: 1 to 8 requests at a time")


@claim(
    "C77",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    stated=TINY,
    space=lambda context: {**_second(context), "answer": Range(50, 500, "a short record to half a page", floor=1)},
    counterfactual=Counterfactual("the answer may take ten seconds", lambda space: fixed(space, budget_s=10.0)),
    inputs={
        "answer": "the answer, in tokens,",
        "prompt": "the prompt, in tokens,",
        "weights": "the format of the weights",
    },
    **CHOOSING,
)
def batches_stay_tiny(point: Point, context: Context) -> Outcome:
    """A model that decodes token by token has to keep its batches tiny to answer within a second."""

    def of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        plain = Service.of(
            replica,
            Decoder.autoregressive(),
            **_request(at),
            slots=slots(ENGINE),
            rule=memory_rule(ENGINE),
            efficiency=reached,
        )
        # a stay grows with the batch: where it passes the budget, between the steps of a ladder
        most = np.maximum(np.asarray(plain.room), 1.0)
        batches = most ** np.linspace(0, 1, _STEPS)[:, None]
        stays = np.asarray(plain.stay_s(batches))
        late = stays > at["budget_s"]
        first = np.argmax(late, axis=0)
        below, beyond = (
            np.take_along_axis(part, np.maximum(first - back, 0)[None], 0)[0]
            for part, back in ((np.log(stays), 1), (np.log(stays), 0))
        )
        share = (np.log(at["budget_s"]) - below) / np.where(beyond > below, beyond - below, 1.0)
        found = most ** ((np.maximum(first - 1, 0) + share) / (_STEPS - 1))
        return np.where(late[0] | (plain.room < 1), 0.0, np.where(late.any(axis=0), found, most))

    batch = by_replica(point, of)
    return Outcome(TINY.contains(batch), value=batch, defined=batch >= 1)
