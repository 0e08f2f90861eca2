"""The answer that cannot wait, in frames: floors, nodes by rate and budget, bursts, prompts, replays, shares.

Everybody serves at the split of an eight-GPU node that carries most within the budget. A count that no number of
nodes makes possible is NaN, and the floor beside it says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from analysis.evidence.fleets import shapes
from analysis.evidence.speculation import costs_of_a_cycle, drafting_share, implied_acceptance, tokens_by_task
from analysis.inputs import InputError
from analysis.model import capacity, queueing
from analysis.model.capacity import Shape
from analysis.model.head_to_head import best as quickest
from analysis.model.head_to_head import speculation
from analysis.model.queueing import Metric, Service
from analysis.model.simulation import Requests, Run, Server, Traffic, largest_rate_req_per_s, serve, serve_runs
from analysis.reference import traces
from analysis.reference.specs import Decoder, Workload
from analysis.reference.tables import SNAPSHOT

GPU = "h100-sxm"
#: The bank's record from a page or two, and the budget of the text.
PROMPT_TOKENS, ANSWER_TOKENS, BUDGET_S, PERCENTILE = 1500.0, 300.0, 1.0, 95.0
#: Tokens of a block, as in the open block-diffusion models.
BLOCK_TOKENS = 32
#: Drafts of a cycle in the measurements from which acceptance is taken.
DRAFT_LENGTH, COPIED_LENGTH = 3, 5
SIZES = {"70B": "llama-3.1-70b", "8B": "llama-3.1-8b"}
SPARSE = {"gpt-oss-120b": "gpt-oss-120b", "qwen3-30b-a3b": "qwen3-30b-a3b"}


# --- Who competes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contestant:
    """A model with a decoder. ``kind`` is a key of `analysis.present.theme.DECODERS`."""

    name: str
    kind: str
    model: str
    decoder: Decoder


@cache
def acceptances() -> pd.DataFrame:
    """Say what the drafts of the contestants keep and cost, each with the measurement that it is taken from.

    Returns
    -------
    DataFrame
        Columns ``way``, ``draft_length``, ``tokens_per_pass`` (measured), ``acceptance`` (implied), ``draft_cost``
        of one draft in plain passes, ``measured_on``, ``source``. [1]

    Notes
    -----
    Drafts for 70B: EAGLE-3 on Llama-3.3-70B in a serving engine. Drafts for 8B: EAGLE on documents to be summarised.
    Look-up: editing a text that stands in the prompt, the most that was measured; for fields of forms there is no
    figure.

    Examples
    --------
    >>> acceptances()["acceptance"].round(2).tolist()
    [0.67, 0.64, 0.7]
    """
    cycles = costs_of_a_cycle().set_index("model").loc["llama-3.3-70b"]
    tasks = tokens_by_task()

    def task(name: str, method: str, drafts: int) -> pd.Series:
        return tasks[(tasks["task"] == name) & (tasks["method"] == method) & (tasks["draft_length"] == drafts)].iloc[0]

    of_8b, copied = task("cnn-dailymail", "eagle", DRAFT_LENGTH), task("edit-5k-char", "n-gram", COPIED_LENGTH)
    rows: list[tuple[str, int, float, float, str, str]] = [
        (
            "70B drafts",
            DRAFT_LENGTH,
            float(cycles["tokens_per_pass"]),
            float(cycles["measured"] - cycles["checking_ratio"]) / DRAFT_LENGTH,
            "EAGLE-3 on Llama-3.3-70B, batch 8",
            str(cycles["source"]),
        ),
        (
            "8B drafts",
            DRAFT_LENGTH,
            float(of_8b["tokens_per_pass"]),
            drafting_share() / DRAFT_LENGTH,
            "EAGLE on Llama-3.1-8B, documents to summarise",
            str(of_8b["source"]),
        ),
        (
            "look-up",
            COPIED_LENGTH,
            float(copied["tokens_per_pass"]),
            0.0,
            "n-grams on Llama-3.1-8B, editing a text",
            str(copied["source"]),
        ),
    ]
    found = pd.DataFrame(
        rows, columns=["way", "draft_length", "tokens_per_pass", "draft_cost", "measured_on", "source"]
    )
    kept = implied_acceptance(found["tokens_per_pass"].to_numpy(), draft_length=found["draft_length"].to_numpy())
    found.insert(3, "acceptance", kept)
    return found


def _drafting(way: str) -> Decoder:
    of = acceptances().set_index("way").loc[way]
    return Decoder.speculative(
        acceptance=float(of["acceptance"]), draft_length=int(of["draft_length"]), draft_cost=float(of["draft_cost"])
    )


def _blocks(tokens_per_pass: float) -> Decoder:
    return Decoder.diffusion(block_tokens=BLOCK_TOKENS, passes=BLOCK_TOKENS / tokens_per_pass)


@cache
def line_up() -> tuple[Contestant, ...]:
    """List who competes: 70B and 8B, each plain, with drafts, with look-up and in blocks; two sparse models, plain.

    Examples
    --------
    >>> [each.name for each in line_up()][:4]
    ['70B', '70B drafts', '70B look-up', '70B diffusion 2']
    """
    plain = Decoder.autoregressive()
    found = []
    for size, model in SIZES.items():
        found += [
            Contestant(size, "autoregressive", model, plain),
            Contestant(f"{size} drafts", "speculative", model, _drafting(f"{size} drafts")),
            Contestant(f"{size} look-up", "speculative", model, _drafting("look-up")),
            *(Contestant(f"{size} diffusion {kept}", "diffusion", model, _blocks(kept)) for kept in (2, 4, 8)),
        ]
        if size == "70B":
            found += [Contestant(name, "sparse", model, plain) for name, model in SPARSE.items()]
    return tuple(found)


def contestants(*names: str) -> list[Contestant]:
    """Pick some of them, in the order asked for.

    Raises
    ------
    InputError
        If one does not compete.
    """
    known = {each.name: each for each in line_up()}
    for name in names:
        if name not in known:
            raise InputError("contestant", name, "one of " + ", ".join(known))
    return [known[name] for name in names]


@cache
def _shapes(model: str, weights: str) -> tuple[Shape, ...]:
    # a release that is quantised already stays as it is
    return tuple(shapes(model, GPU, as_of=SNAPSHOT, weights=None if model == "gpt-oss-120b" else weights))


@cache
def _services(
    each: Contestant, weights: str, input_tokens: float | tuple[float, ...], output_tokens: float
) -> tuple[tuple[Shape, Service], ...]:
    # a workload is of one kind; its service takes arrays of kinds as well
    load = Workload(1.0, np.asarray(input_tokens, float), output_tokens, budget_s=1.0)  # type: ignore[arg-type]
    return tuple((shape, shape.service(each.decoder, load)) for shape in _shapes(each.model, weights))


# --- Floors ------------------------------------------------------------------------------------


def floors(
    *,
    weights: Sequence[str] = ("bf16", "fp8"),
    prompt_tokens: float = PROMPT_TOKENS,
    output_tokens: float = ANSWER_TOKENS,
) -> pd.DataFrame:
    """Time of a request alone, by contestant, format and GPUs of a replica: no number of nodes goes below.

    Parameters
    ----------
    weights : sequence of str
        Formats of the weights.
    prompt_tokens, output_tokens : float
        [token]

    Returns
    -------
    DataFrame
        Columns ``name``, ``kind``, ``weights``, ``gpus`` of a replica [1], ``floor_s`` of the whole answer and
        ``ttft_s`` of its first token [s]; splits that cannot hold one request have no row.

    Examples
    --------
    >>> frame = floors(weights=("fp8",)).set_index(["name", "gpus"])["floor_s"]
    >>> bool(frame["70B", 8] > 2) and bool(frame["8B diffusion 4", 1] < 0.5)
    True
    """
    rows = []
    for each in line_up():
        for width in weights:
            for shape, service in _services(each, width, prompt_tokens, output_tokens):
                if service.room < 1:
                    continue
                rows.append(
                    {
                        "name": each.name,
                        "kind": each.kind,
                        "weights": "mxfp4" if each.model == "gpt-oss-120b" else width,
                        "gpus": shape.replica.gpus,
                        "floor_s": float(service.floor_s("e2e")),
                        "ttft_s": float(service.floor_s("ttft")),
                    }
                )
    return pd.DataFrame(rows).drop_duplicates(ignore_index=True)


def drafts_that_keep(budget_s: float, *, weights: str = "fp8", model: str = "llama-3.1-70b") -> float:
    """Find the acceptance at which drafts keep a budget alone on a whole node, at their best length up to eight.

    Parameters
    ----------
    budget_s : float
        [s]
    weights, model : str

    Returns
    -------
    float
        Acceptance, with drafts that cost what the contestant's cost; NaN where none below 1 does. [1]

    Examples
    --------
    >>> 0.8 < drafts_that_keep(1.0) < 0.95
    True
    """
    shape = next(each for each in _shapes(model, weights) if each.replica.gpus == 8)
    cost = float(acceptances().set_index("way").loc["70B drafts", "draft_cost"])

    def over(acceptance: float) -> float:
        rival = speculation(acceptance=acceptance, draft_cost=cost)
        load: dict[str, Any] = {"batch": 1.0, "input_tokens": PROMPT_TOKENS, "output_tokens": ANSWER_TOKENS}
        return float(quickest(shape.replica, rival, **load, efficiency=shape.efficiency).request_s) - budget_s

    return float(brentq(over, 0.0, 0.999)) if over(0.999) < 0 < over(0.0) else math.nan


# --- Nodes -------------------------------------------------------------------------------------


def _within(
    each: Contestant,
    budgets_s: Sequence[float],
    *,
    weights: str = "fp8",
    input_tokens: float | tuple[float, ...] = PROMPT_TOKENS,
    output_tokens: float = ANSWER_TOKENS,
    metric: Metric = "e2e",
    cv: float = 1.0,
) -> pd.DataFrame:
    """Largest rate of a node within each budget (or for each prompt), at its best split, and the floor there."""
    rates, floor_s, gpus = [], [], []
    budgets = np.asarray(budgets_s, float)
    for shape, service in _services(each, weights, input_tokens, output_tokens):
        room = np.broadcast_to(
            np.asarray(service.room, float), np.broadcast_shapes(np.shape(service.room), budgets.shape)
        )
        alone = np.where(room >= 1, service.floor_s(metric), np.inf)
        found = np.zeros(alone.shape)
        if (alone < budgets).any():
            found = np.asarray(
                queueing.rate_within_budget(service, budgets, percentile=PERCENTILE, metric=metric, cv=cv)
            )
        rates.append(shape.copies * np.where(alone < budgets, found, 0.0))
        floor_s.append(alone)
        gpus.append(shape.replica.gpus)
    table, alone = np.array(rates), np.array(floor_s)
    best = np.where(table.max(axis=0) > 0, table.argmax(axis=0), alone.argmin(axis=0))
    return pd.DataFrame(
        {
            "name": each.name,
            "kind": each.kind,
            "gpus": np.array(gpus)[best],
            "node_req_per_s": table.max(axis=0),
            "floor_s": alone.min(axis=0),
        }
    )


def nodes_for(rate_req_per_s: Any, node_req_per_s: Any, *, spares: int = 0) -> Any:
    """Count whole nodes, spares included; NaN where a node keeps the budget at no rate. [1].

    Examples
    --------
    >>> nodes_for(10.0, np.array([4.0, 0.0])).tolist()
    [3.0, nan]
    """
    rate, of_one = np.broadcast_arrays(np.asarray(rate_req_per_s, float), np.asarray(node_req_per_s, float))
    with np.errstate(divide="ignore"):
        return np.where(of_one > 0, np.ceil(rate / np.where(of_one > 0, of_one, 1.0) * (1 - 1e-9)) + spares, np.nan)


#: Budgets at which nodes are counted. [s]
BUDGETS_S = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)


def by_budget(*, weights: str = "fp8", names: Iterable[str] = ()) -> pd.DataFrame:
    """Largest rate of a node within budgets from half a second to ten, by contestant.

    Parameters
    ----------
    weights : str
        Format of the weights, where the release leaves the choice.
    names : iterable of str
        Contestants; all if none is named.

    Returns
    -------
    DataFrame
        Columns ``name``, ``kind``, ``budget_s`` [s], ``gpus`` of a replica [1], ``node_req_per_s`` (0: infeasible)
        [request/s], ``floor_s`` of the quickest split [s].

    Notes
    -----
    Percentile 95 by the closed form, 1,500 tokens in and 300 out, Poisson arrivals.

    Examples
    --------
    >>> frame = by_budget(names=["70B", "8B diffusion 4"]).set_index(["name", "budget_s"])["node_req_per_s"]
    >>> float(frame["70B", 1.0]), bool(frame["8B diffusion 4", 1.0] > 30)
    (0.0, True)
    """
    chosen = contestants(*names) or line_up()
    return pd.concat([_of_budgets(each, weights) for each in chosen], ignore_index=True)


@cache
def _of_budgets(each: Contestant, weights: str) -> pd.DataFrame:
    return _within(each, BUDGETS_S, weights=weights).assign(budget_s=BUDGETS_S)


def by_rate(
    rates: Sequence[float], *, budget_s: float = BUDGET_S, weights: str = "fp8", spares: int = 0
) -> pd.DataFrame:
    """Nodes by arrival rate within one of the budgets of `BUDGETS_S`.

    Parameters
    ----------
    rates : sequence of float
        [request/s]
    budget_s : float
        [s]
    weights : str
    spares : int
        Nodes that may fail. [1]

    Returns
    -------
    DataFrame
        As `by_budget`, with ``rate`` [request/s] and ``nodes`` [1], NaN where infeasible.

    Raises
    ------
    InputError
        If the budget is not one of them.

    Examples
    --------
    >>> frame = by_rate([1.0, 100.0]).set_index(["name", "rate"])["nodes"]
    >>> frame["8B diffusion 4"].tolist()
    [1.0, 3.0]
    """
    if budget_s not in BUDGETS_S:
        raise InputError("budget_s", budget_s, "one of " + ", ".join(f"{each:g}" for each in BUDGETS_S))
    frame = by_budget(weights=weights)
    frame = frame[frame["budget_s"] == budget_s].merge(pd.DataFrame({"rate": rates}), how="cross")
    return frame.assign(nodes=nodes_for(frame["rate"], frame["node_req_per_s"], spares=spares))


#: Prompts at which nodes are counted. [token]
PROMPTS = (500.0, 1500.0, 4000.0, 8000.0, 16_000.0, 32_000.0)


def by_prompt(
    names: Iterable[str], *, rate_req_per_s: float, weights: str = "fp8", budget_s: float = BUDGET_S
) -> pd.DataFrame:
    """Nodes by the length of the prompt at one rate, and how long reading it takes alone.

    Parameters
    ----------
    names : iterable of str
        Contestants.
    rate_req_per_s : float
        [request/s]
    weights : str
    budget_s : float
        [s]

    Returns
    -------
    DataFrame
        Columns as `by_budget` with ``prompt_tokens`` [token], ``nodes`` [1], ``reading_s``: time to the first token
        that a plain decoder has alone on the whole node [s].

    Examples
    --------
    >>> frame = by_prompt(["8B diffusion 4"], rate_req_per_s=10.0).set_index("prompt_tokens")["nodes"]
    >>> float(frame[1500.0]), float(frame[8000.0])
    (1.0, 2.0)
    """
    found = []
    for each in contestants(*names):
        frame = _within(each, [budget_s], weights=weights, input_tokens=PROMPTS)
        reading = Contestant(each.name, each.kind, each.model, Decoder.autoregressive())
        _, whole = _services(reading, weights, PROMPTS, 1.0)[-1]
        found.append(frame.assign(prompt_tokens=PROMPTS, reading_s=np.asarray(whole.floor_s("e2e"))))
    frame = pd.concat(found, ignore_index=True)
    return frame.assign(nodes=nodes_for(rate_req_per_s, frame["node_req_per_s"]))


#: The three comparisons: who makes the answer in blocks, and against whom.
PAIRS = {
    "8B diffusion against 70B plain": ("8B diffusion 4", "70B"),
    "8B against 8B plain": ("8B diffusion 4", "8B"),
    "8B against 8B with drafts": ("8B diffusion 4", "8B drafts"),
}
FAR_FEWER = 1 / 3


def pairs(rates: Sequence[float], *, weights: str = "fp8", spares: int = 0) -> pd.DataFrame:
    """Set nodes of diffusion beside those of three rivals, by rate and budget.

    Parameters
    ----------
    rates : sequence of float
        [request/s]
    weights : str
    spares : int
        Nodes that may fail, of each. [1]

    Returns
    -------
    DataFrame
        Columns ``pair``, ``rate`` [request/s], ``budget_s`` [s], ``nodes``, ``rival_nodes`` [1], ``class``.

    Examples
    --------
    >>> frame = pairs([1.0, 100.0]).set_index(["pair", "rate", "budget_s"])["class"]
    >>> frame["8B diffusion against 70B plain", 1.0, 1.0], frame["8B diffusion against 70B plain", 1.0, 5.0]
    ('only diffusion can', 'the same')
    """
    who_plays = dict.fromkeys(who for pair in PAIRS.values() for who in pair)
    of = by_budget(weights=weights, names=who_plays).set_index(["name", "budget_s"])["node_req_per_s"]
    rows = []
    for pair, (name, rival) in PAIRS.items():
        for budget in BUDGETS_S:
            for rate in rates:
                nodes, others = (float(nodes_for(rate, of[who, budget], spares=spares)) for who in (name, rival))
                rows.append((pair, rate, budget, nodes, others, _class(nodes, others)))
    return pd.DataFrame(rows, columns=["pair", "rate", "budget_s", "nodes", "rival_nodes", "class"])


CLASSES = ("more", "the same", "fewer", "at most a third", "only diffusion can", "neither can")


def _class(nodes: float, others: float) -> str:
    if math.isnan(nodes):
        return "neither can" if math.isnan(others) else "more"
    if math.isnan(others):
        return "only diffusion can"
    if nodes <= FAR_FEWER * others:
        return "at most a third"
    return "fewer" if nodes < others else "the same" if nodes == others else "more"


# --- Utilization taken apart -------------------------------------------------------------------


def hours_of(name: str = "servegen-m-large") -> tuple[float, ...]:
    """Rate of each hour of a shipped trace of rates over their mean: two weeks.

    Examples
    --------
    >>> hours = hours_of()
    >>> len(hours), round(float(max(hours)), 2)
    (336, 1.86)
    """
    windows = traces.shipped_windows(name)
    each = round(3600 / windows.window_s)
    hours = windows.req_per_s[: windows.req_per_s.size // each * each].reshape(-1, each).mean(axis=1)
    return tuple(hours / hours.mean())


def busiest_day(name: str) -> Any:
    """Rates in the windows of the day that has the highest one. [request/s]."""
    windows = traces.shipped_windows(name)
    each = round(86_400 / windows.window_s)
    days = windows.req_per_s[: windows.req_per_s.size // each * each].reshape(-1, each)
    return days[days.max(axis=1).argmax()]


def taken_apart(
    names: Iterable[str],
    *,
    rate_req_per_s: float,
    price_usd_per_node_hour: float,
    weights: str = "fp8",
    budget_s: float = BUDGET_S,
    spares: int = 0,
) -> pd.DataFrame:
    """Take utilization apart over two weeks of real shape, with what a request and a million tokens cost.

    Parameters
    ----------
    names : iterable of str
        Contestants.
    rate_req_per_s : float
        Mean over the weeks. [request/s]
    price_usd_per_node_hour : float
        [USD/node_hour]
    weights : str
    budget_s : float
        [s]
    spares : int
        [1]

    Returns
    -------
    DataFrame
        Columns ``name``, ``kind``, ``gpus`` of a replica, ``nodes``, ``day``, ``integer``, ``latency``, ``goodput``,
        ``utilization`` (their product), ``busy`` at the peak, ``full_usd`` and ``usd`` per 1,000 requests of full
        nodes and of these [USD], ``usd_per_mtok`` of output [USD/Mtok], ``p95_s`` at the peak [s], ``reason`` where
        infeasible.

    Examples
    --------
    >>> frame = taken_apart(["8B diffusion 4"], rate_req_per_s=10.0, price_usd_per_node_hour=30.0)
    >>> row = frame.iloc[0]
    >>> round(float(row["usd"] * row["utilization"] / row["full_usd"]), 9)
    1.0
    """
    load = Workload(
        rate_req_per_s, PROMPT_TOKENS, ANSWER_TOKENS, budget_s=budget_s, percentile=PERCENTILE, shape=hours_of()
    )
    rows = []
    for each in contestants(*names):
        shape, service = _split(each, weights=weights, budget_s=budget_s)
        found = capacity.fleet(
            service, load, copies=shape.copies, price_usd_per_node_hour=price_usd_per_node_hour, spares=spares
        )
        row: dict[str, Any] = {"name": each.name, "kind": each.kind, "gpus": shape.replica.gpus, "nodes": found.nodes}
        shares = found.shares
        if shares is not None and found.cost_usd_per_mtok is not None and found.saturated_usd_per_mtok is not None:
            row |= vars(shares) | {
                "utilization": shares.utilization,
                "busy": found.busy,
                "full_usd": found.saturated_usd_per_mtok * ANSWER_TOKENS / 1e3,
                "usd": found.cost_usd_per_mtok * ANSWER_TOKENS / 1e3,
                "usd_per_mtok": found.cost_usd_per_mtok,
                "p95_s": found.percentiles_s[95.0],
            }
        rows.append(row | {"reason": found.reason})
    return pd.DataFrame(rows)


def falls(apart: pd.DataFrame) -> pd.DataFrame:
    """Lay the shares of `taken_apart` end to end, from all of the node's work down to their product.

    Parameters
    ----------
    apart : DataFrame
        As `taken_apart` returns it.

    Returns
    -------
    DataFrame
        Columns ``name``, ``part`` (``day``, ``whole nodes``, ``budget``, ``late``), ``left``, ``right``, ``share``: the
        factor, which is left over right. Infeasible contestants have no row. [1]

    Examples
    --------
    >>> frame = pd.DataFrame({"name": ["a"], "day": [0.5], "integer": [0.5], "latency": [0.1], "goodput": [1.0]})
    >>> falls(frame)["left"].round(3).tolist()
    [0.5, 0.25, 0.025, 0.025]
    """
    rows = []
    for row in apart.dropna(subset=["latency"]).to_dict("records"):
        right = 1.0
        for part, column in PARTS.items():
            rows.append((row["name"], part, right * row[column], right, row[column]))
            right *= row[column]
    return pd.DataFrame(rows, columns=["name", "part", "left", "right", "share"])


PARTS = {"day": "day", "whole nodes": "integer", "budget": "latency", "late": "goodput"}


# --- By simulation -----------------------------------------------------------------------------


def _server(each: Contestant, shape: Shape) -> Server:
    return Server(shape.replica, each.decoder, efficiency=shape.efficiency, rule=shape.rule, slots=int(shape.slots))


def _split(each: Contestant, *, weights: str = "fp8", budget_s: float = BUDGET_S) -> tuple[Shape, Service]:
    """Return the split that carries most within the budget; where none keeps it, the quickest alone."""
    split = _of_budgets(each, weights).set_index("budget_s").loc[budget_s, "gpus"]
    found = _services(each, weights, PROMPT_TOKENS, ANSWER_TOKENS)
    return next(pair for pair in found if pair[0].replica.gpus == split)


def checks(names: Iterable[str], *, part: float = 0.9, count: int = 4000, seed: int = 11) -> pd.DataFrame:
    """Set percentiles of the closed form beside simulated ones, at a rate near the largest within the budget.

    Parameters
    ----------
    names : iterable of str
        Contestants that keep the budget.
    part : float
        Share of the largest rate. [1]
    count : int
        Requests of each of three runs. [1]
    seed : int

    Returns
    -------
    DataFrame
        Columns ``name``, ``gpus``, ``replica_req_per_s`` [request/s], ``p50_s``, ``p95_s`` by the closed form,
        ``simulated_p50_s``, ``simulated_p95_s`` of one replica, ``node_p95_s`` of a whole node whose requests go
        where fewest are [s]; ``error`` of the closed p95 against the replica [1].
    """
    rows = []
    for each in contestants(*names):
        shape, service = _split(each)
        rate = part * float(queueing.rate_within_budget(service, BUDGET_S, percentile=PERCENTILE))
        closed = queueing.under_load(service, rate)
        server, traffic = _server(each, shape), Traffic(PROMPT_TOKENS, ANSWER_TOKENS)
        one = serve_runs(server, traffic, rate_req_per_s=rate, count=count, runs=3, seed=seed)
        node = serve_runs(
            server,
            traffic,
            rate_req_per_s=rate * shape.copies,
            count=count,
            runs=3,
            replicas=shape.copies,
            seed=seed,
        )
        p50, p95 = (float(closed.quantile_s(q, anywhere=True)) for q in (50.0, 95.0))
        rows.append(
            {
                "name": each.name,
                "gpus": shape.replica.gpus,
                "replica_req_per_s": rate,
                "p50_s": p50,
                "simulated_p50_s": one.percentile_s(50.0).value,
                "p95_s": p95,
                "simulated_p95_s": one.percentile_s(95.0).value,
                "node_p95_s": node.percentile_s(95.0).value,
                "error": p95 / one.percentile_s(95.0).value - 1,
            }
        )
    return pd.DataFrame(rows)


def error_map(
    name: str,
    prompts: Sequence[float],
    loads: Sequence[float],
    *,
    gpus: int,
    output_tokens: float = ANSWER_TOKENS,
    count: int = 3000,
    seed: int = 5,
) -> pd.DataFrame:
    """Compare the closed form's 95th percentile with simulation, over prompt and load.

    Parameters
    ----------
    name : str
        Contestant.
    prompts, loads : sequence of float
        Tokens of the prompt [token]; rate over the saturated rate [1].
    gpus : int
        Of the replica. [1]
    output_tokens : float
        [token]
    count : int
        Requests of each of two runs. [1]
    seed : int

    Returns
    -------
    DataFrame
        Columns ``prompt_tokens``, ``prompt_share`` of a full replica's time, ``load`` [1], ``error`` [1],
        ``in_domain``.
    """
    (each,) = contestants(name)
    rows = []
    for prompt in prompts:
        shape, service = next(
            pair for pair in _services(each, "fp8", prompt, output_tokens) if pair[0].replica.gpus == gpus
        )
        full = float(service.room)
        share = full * float(service.prompt_s(full)) / float(service.stay_s(full))
        for load in loads:
            rate = load * float(service.saturated_req_per_s)
            closed = queueing.under_load(service, rate)
            simulated = serve_runs(
                _server(each, shape),
                Traffic(prompt, output_tokens),
                rate_req_per_s=rate,
                count=count,
                runs=2,
                seed=seed,
            ).percentile_s(95.0)
            found = float(closed.quantile_s(95.0, anywhere=True))
            rows.append((prompt, share, load, found / simulated.value - 1, bool(closed.in_domain)))
    return pd.DataFrame(rows, columns=["prompt_tokens", "prompt_share", "load", "error", "in_domain"])


def bursts(
    names: Iterable[str], variations: Sequence[float] = (1.0, 2.0, 4.0), *, count: int = 4000, seed: int = 3
) -> pd.DataFrame:
    """Largest rate of a node within the budget by the variation of the gaps between arrivals, simulated.

    Parameters
    ----------
    names : iterable of str
        Contestants that keep the budget.
    variations : sequence of float
        Standard deviation over mean of the gaps, 1 for Poisson. [1]
    count : int
        Requests of each of two runs. [1]
    seed : int

    Returns
    -------
    DataFrame
        Columns ``name``, ``kind``, ``cv``, ``node_req_per_s`` [request/s], ``of_poisson`` [1].
    """
    rows = []
    for each in contestants(*names):
        shape, _ = _split(each)
        found = [
            largest_rate_req_per_s(
                _server(each, shape),
                Traffic(PROMPT_TOKENS, ANSWER_TOKENS, arrival_cv=cv),
                replicas=shape.copies,
                budget_s=BUDGET_S,
                percentile=PERCENTILE,
                runs=2,
                requests=count,
                seed=seed,
            )
            for cv in variations
        ]
        rows += [(each.name, each.kind, cv, rate, rate / found[0]) for cv, rate in zip(variations, found, strict=True)]
    return pd.DataFrame(rows, columns=["name", "kind", "cv", "node_req_per_s", "of_poisson"])


def arrivals(name: str, *, seed: int = 7) -> Requests:
    """Return real arrivals: a shipped trace, a client of ServeGen over its busiest day, or a day's shape alone.

    Parameters
    ----------
    name : str
        ``azure-2023-code``, ``azure-2023-conversation``, ``servegen-m-mid-chunk-52`` (every tenth minute of the
        day: rates as they are, hours of six minutes), or ``servegen-m-large`` (a day, one request per second on
        average).
    seed : int
        Of what a trace of rates leaves open.

    Returns
    -------
    Requests
    """
    if not name.startswith("servegen"):
        trace = traces.shipped(name)
        return Requests(trace.arrival_s, trace.input_tokens, trace.output_tokens)
    its = traces.known()[name]
    client = "chunk" in name
    load = Traffic(
        round(its["mean_input"]) if client else PROMPT_TOKENS,
        round(its["mean_output"]) if client else ANSWER_TOKENS,
        arrival_cv=its.get("gap_cv", 1.0),
        profile=busiest_day(name),
        # a client's day passes ten times as fast, at its own rates
        day_s=8640.0 if client else 86_400.0,
    )
    rate = float(busiest_day(name).mean()) if client else 1.0
    return load.draw(rate_req_per_s=rate, count=round(rate * load.day_s), seed=seed)


def replays(names: Iterable[str], of: Iterable[str], *, budget_s: float = BUDGET_S, seed: int = 7) -> pd.DataFrame:
    """Replay real arrivals on one node, everything as it came: share of requests within the budget.

    Parameters
    ----------
    names : iterable of str
        Contestants, each at the split of the node that keeps most of the first quarter within the budget.
    of : iterable of str
        Arrivals, as `arrivals` names them.
    budget_s : float
        [s]
    seed : int

    Returns
    -------
    DataFrame
        Columns ``arrivals``, ``requests``, ``name``, ``kind``, ``gpus`` of a replica [1], ``within`` the budget [1],
        ``p50_s``, ``p95_s`` [s], ``busy`` [1], ``inside``: mean requests in the node [1].
    """
    rows = []
    for trace in of:
        requests = arrivals(trace, seed=seed)
        for each in contestants(*names):
            shape = _split_for(each, requests, budget_s=budget_s, seed=seed)
            run: Run = serve(_server(each, shape), requests, replicas=shape.copies, seed=seed, edge=0.0)
            rows.append(
                {
                    "arrivals": trace,
                    "requests": len(requests),
                    "name": each.name,
                    "kind": each.kind,
                    "gpus": shape.replica.gpus,
                    "within": run.goodput(budget_s),
                    "p50_s": run.percentile_s(50.0),
                    "p95_s": run.percentile_s(95.0),
                    "busy": run.busy,
                    "inside": run.inside,
                }
            )
    return pd.DataFrame(rows)


#: Part of a replay on which the splits of a node are tried.
TRIED = 0.25


def _split_for(each: Contestant, requests: Requests, *, budget_s: float, seed: int) -> Shape:
    """Choose the split by the first part of a replay; for the usual request it is known already."""
    usual, _ = _split(each)
    if (requests.input_tokens == PROMPT_TOKENS).all():
        return usual
    count = round(TRIED * len(requests))
    first = Requests(requests.arrival_s[:count], requests.input_tokens[:count], requests.output_tokens[:count])
    fitting = [
        shape for shape, service in _services(each, "fp8", PROMPT_TOKENS, ANSWER_TOKENS) if float(service.room) >= 4
    ]

    def kept(shape: Shape) -> float:
        served = serve(_server(each, shape), first, replicas=shape.copies, seed=seed, edge=0.0)
        return served.goodput(budget_s)

    return max(fitting, key=kept)
