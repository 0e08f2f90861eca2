"""Nodes under a latency budget, and where their utilization goes.

A fleet is a number of equal nodes, each with as many replicas as its GPUs hold; requests are spread evenly over
them. How many nodes it takes follows from `analysis.model.queueing.rate_within_budget`. What they cost follows from
four shares whose product is the utilization, exactly: the day, whole nodes, the budget, and answers that are late.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.inputs import InputError, not_negative, percentile, positive, scalar_or_array, whole
from analysis.model import decoders, queueing
from analysis.model.cost import cost_usd_per_mtok
from analysis.model.decoding import CHUNK_TOKENS, IDEAL, OF_THE_CARD
from analysis.model.queueing import METRICS, Service
from analysis.reference.specs import Decoder, Efficiency, MemoryRule, Replica, Workload
from analysis.units import SECONDS_PER_HOUR

#: More nodes than anybody has are no answer.
MOST_NODES = 10**9
#: A count of nodes is not raised by rounding in its last digits.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Shape:
    """A way to put replicas on a node: the replica, how many of it, and how it is run.

    Parameters
    ----------
    replica : Replica
    copies : int
        Replicas of one node. [1]
    efficiency : Efficiency
    rule : MemoryRule
    slots : float
        Requests that the engine runs together at most. [1]
    """

    replica: Replica
    copies: int
    efficiency: Efficiency = IDEAL
    rule: MemoryRule = OF_THE_CARD
    slots: float = float("inf")

    def service(self, decoder: Decoder, workload: Workload, *, chunk_tokens: float = CHUNK_TOKENS) -> Service:
        """Say what one replica does to a request of the workload."""
        return Service.of(
            self.replica,
            decoder,
            input_tokens=workload.input_tokens,
            output_tokens=workload.output_tokens,
            cached_tokens=workload.cached_tokens,
            slots=self.slots,
            rule=self.rule,
            chunk_tokens=chunk_tokens,
            efficiency=self.efficiency,
        )


@dataclass(frozen=True)
class Shares:
    """Utilization taken apart. [1].

    ``day`` is mean over peak, ``integer`` the peak over what the nodes can take within the budget, ``latency`` that
    over what they can take at all, ``goodput`` the share of the requests that are answered within the budget.
    """

    day: float
    integer: float
    latency: float
    goodput: float

    @property
    def utilization(self) -> float:
        """Their product: useful requests over those that the nodes could serve. [1]."""
        return self.day * self.integer * self.latency * self.goodput


@dataclass(frozen=True)
class Fleet:
    """Nodes for a workload; None in what an infeasible one does not have.

    Parameters
    ----------
    feasible : bool
        An empty replica keeps the budget, and one request fits.
    reason : str or None
        What stands in the way.
    latency_floor_s : float or None
        The budget's metric on an empty replica, time outside the GPU included. Requests are equal, so it is every
        percentile of the unloaded time. [s]
    room : float
        Requests that one replica holds at once. [1]
    node_saturated_req_per_s : float
        Rate of a node that always has more waiting. [request/s]
    node_req_per_s : float or None
        Largest rate of a node within the budget. [request/s]
    nodes : int or None
        Nodes bought, spares included. [1]
    spares : int
        Of these, the ones that may fail. [1]
    load : float or None
        Peak rate over the saturated rate of all nodes. [1]
    busy : float or None
        Share of the peak hour in which a replica has anything to do. [1]
    shares : Shares or None
    time_s : float or None
        The budget's percentile of its metric at the peak, time outside the GPU included; None outside the domain
        of the spread. [s]
    percentiles_s : mapping of float to float or None
        Percentiles of the whole answer at the peak, likewise. [s]
    means_s : mapping of str to float, or None
        Mean of each metric at the peak, likewise. [s]
    extrapolated : bool or None
        The rate that the budget allows lies outside the domain in which the spread was compared with replays.
    saturated_usd_per_mtok : float
        Cost of a million output tokens of nodes that always have more waiting. [USD/Mtok]
    cost_usd_per_mtok : float or None
        Cost of a million output tokens of answers within the budget. [USD/Mtok]
    nodes_low, nodes_high : int or None
        By simulation: nodes whose percentile keeps the budget with the lower and the upper end of its interval,
        spares included. [1]
    """

    feasible: bool
    reason: str | None
    latency_floor_s: float | None
    room: float
    node_saturated_req_per_s: float
    node_req_per_s: float | None
    nodes: int | None
    spares: int
    load: float | None
    busy: float | None
    shares: Shares | None
    time_s: float | None
    percentiles_s: Mapping[float, float | None]
    means_s: Mapping[str, float] | None
    extrapolated: bool | None
    saturated_usd_per_mtok: float | None
    cost_usd_per_mtok: float | None
    nodes_low: int | None = None
    nodes_high: int | None = None


def check(workload: Workload) -> None:
    """Refuse a workload that nothing can be asked about.

    Raises
    ------
    InputError
        If a field is outside its domain; the message names it and the value.

    Examples
    --------
    >>> check(Workload(5.0, 1500.0, 300.0, budget_s=0.0))
    Traceback (most recent call last):
    analysis.inputs.InputError: budget_s: got 0.0, expected a number above 0
    """
    for name in ("rate_req_per_s", "input_tokens", "output_tokens", "budget_s"):
        positive(name, getattr(workload, name))
    for name in ("cached_tokens", "overhead_s", "cv"):
        not_negative(name, getattr(workload, name))
    percentile("percentile", workload.percentile)
    if workload.metric not in METRICS:
        raise InputError("metric", workload.metric, " or ".join(METRICS))
    if not workload.shape or not np.isclose(np.mean(not_negative("shape", workload.shape)), 1.0, rtol=1e-9):
        raise InputError("shape", float(np.mean(workload.shape or 0.0)), "rates of the hours with a mean of 1")


def fleet(
    service: Service,
    workload: Workload,
    *,
    copies: int = 1,
    price_usd_per_node_hour: float = 0.0,
    spares: int = 0,
    context_limit_tokens: float | None = None,
) -> Fleet:
    r"""Count the nodes of one shape that keep a budget, and take their utilization apart.

    .. math::
        n = \left\lceil \frac{\hat\lambda}{\Lambda(1)} \right\rceil + \mathrm{spares}, \qquad
        \frac{10^6\, p_\mathrm{node}}{3600\, \lambda_\mathrm{sat} S_\mathrm{out}\,
        u_\mathrm{day} u_\mathrm{integer} u_\mathrm{latency} u_\mathrm{goodput}}

    Parameters
    ----------
    service : Service
        Of one replica.
    workload : Workload
    copies : int
        Replicas of one node. [1]
    price_usd_per_node_hour : float
        Price of one node, always on. [USD/node_hour]
    spares : int
        Nodes that may fail without the budget being broken. [1]
    context_limit_tokens : float, optional
        Longest context of the model. [token]

    Returns
    -------
    Fleet

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.queueing.utilization` and `cost_per_useful_token`. Never rises with the budget,
    never falls with the rate. Each replica is a queue of its own: routing to the emptiest would do better. All
    nodes serve, the spares too.

    Examples
    --------
    >>> one = Service.line(passes=300, lone_pass_s=0.01, slope_s=1e-4, prompt_s=0.05, room=256)
    >>> found = fleet(one, Workload(40.0, 1500.0, 300.0, budget_s=5.0), price_usd_per_node_hour=30.0)
    >>> found.nodes, round(found.shares.utilization, 3), round(found.cost_usd_per_mtok, 2)
    (11, 0.32, 7.95)
    """
    check(workload)
    price = float(not_negative("price_usd_per_node_hour", price_usd_per_node_hour))
    replicas, extra = int(whole("copies", copies)), _spares(spares)
    saturated = replicas * float(service.saturated_req_per_s)
    outside = 0.0 if workload.metric == "tpot" else workload.overhead_s
    floor = float(service.floor_s(workload.metric)) + outside
    held = workload.input_tokens + workload.output_tokens
    reason = None
    if context_limit_tokens is not None and held > context_limit_tokens:
        reason = f"prompt and answer of {held:,.0f} tokens exceed the model's context of {context_limit_tokens:,.0f}"
    elif service.room < 1:
        reason = f"memory holds {float(service.room):.2g} of one such request beside the weights"
    elif floor >= workload.budget_s:
        reason = f"an empty replica takes {floor:.3g} s, the budget is {workload.budget_s:g} s"
    full_cost = full_usd_per_mtok(price, saturated, workload) if saturated > 0 else None
    answer = Fleet(
        feasible=reason is None,
        reason=reason,
        latency_floor_s=floor if service.room >= 1 else None,
        room=float(service.room),
        node_saturated_req_per_s=saturated,
        node_req_per_s=None,
        nodes=None,
        spares=extra,
        load=None,
        busy=None,
        shares=None,
        time_s=None,
        percentiles_s=dict.fromkeys((50.0, 95.0, 99.0)),
        means_s=None,
        extrapolated=None,
        saturated_usd_per_mtok=full_cost,
        cost_usd_per_mtok=None,
    )
    if reason is not None:
        return answer
    budget = workload.budget_s - outside
    per_replica = float(
        queueing.rate_within_budget(
            service, budget, percentile=workload.percentile, metric=workload.metric, cv=workload.cv
        )
    )
    hours = workload.rate_req_per_s * np.asarray(workload.shape, float)
    peak = float(hours.max())
    if per_replica > 0 and not peak / (replicas * per_replica) <= MOST_NODES:
        return replace(answer, feasible=False, reason=f"more than {MOST_NODES:,} nodes would be needed")
    if per_replica <= 0:
        floor_words = f"an empty replica takes {floor:.3g} s, which leaves nothing of {workload.budget_s:g} s"
        return replace(answer, feasible=False, reason=floor_words)
    nodes = max(1, _nodes(peak, replicas * per_replica)) + extra
    of_hours = queueing.under_load(service, hours / (nodes * replicas), cv=workload.cv)
    at_peak = queueing.under_load(service, peak / (nodes * replicas), cv=workload.cv)
    within = np.asarray(of_hours.share_within(budget, workload.metric))
    largest = nodes * replicas * per_replica
    shares = Shares(
        day=float(hours.mean()) / peak,
        integer=peak / largest,
        latency=largest / (nodes * saturated),
        goodput=float((hours * within).sum() / hours.sum()),
    )
    judged = queueing.under_load(service, per_replica, cv=workload.cv)
    trusted = judged.ttft_in_domain if workload.metric == "ttft" else judged.in_domain
    return replace(
        answer,
        node_req_per_s=replicas * per_replica,
        nodes=nodes,
        load=peak / (nodes * saturated),
        busy=float(queueing.busy_share(service, peak / (nodes * replicas))),
        shares=shares,
        time_s=_known(at_peak.quantile_s(workload.percentile, workload.metric), outside),
        percentiles_s={q: _known(at_peak.quantile_s(q), workload.overhead_s) for q in answer.percentiles_s},
        means_s={
            "e2e": at_peak.latency_s + workload.overhead_s,
            "ttft": at_peak.ttft_s + workload.overhead_s,
            "tpot": at_peak.tpot_s,
        },
        extrapolated=not trusted,
        cost_usd_per_mtok=cost_usd_per_mtok(
            price, node_tok_per_s=saturated * workload.output_tokens, utilization=shares.utilization
        ),
    )


def full_usd_per_mtok(price_usd_per_node_hour: float, saturated_req_per_s: float, workload: Workload) -> float:
    """Cost of a million output tokens of a node that always has more waiting. [USD/Mtok]."""
    tok_per_s = saturated_req_per_s * workload.output_tokens
    return float(cost_usd_per_mtok(price_usd_per_node_hour, node_tok_per_s=tok_per_s, utilization=1.0))


def _spares(spares: float) -> int:
    count = not_negative("spares", spares)
    if count > MOST_NODES:
        raise InputError("spares", float(count), f"at most {MOST_NODES:,}")
    return int(count)


def _nodes(rate: float, of_one: float) -> int:
    return math.ceil(rate / of_one * (1 - _ROUNDING))


def _known(value: Any, outside: float) -> float | None:
    return float(value) + outside if np.isfinite(value) else None


# --- Shapes and nodes --------------------------------------------------------------------------


def fleets(
    shapes: Iterable[Shape],
    decoder: Decoder,
    workload: Workload,
    *,
    price_usd_per_node_hour: float = 0.0,
    spares: int = 0,
) -> dict[int, Fleet]:
    """Count the nodes for every shape of a replica, by the GPUs of a replica.

    Parameters
    ----------
    shapes : iterable of Shape
        Of one node and model.
    decoder : Decoder
    workload : Workload
    price_usd_per_node_hour, spares
        As in `fleet`.

    Returns
    -------
    dict of int to Fleet
        In the order of the shapes. Shapes into which the model can't be split are left out.

    Raises
    ------
    InputError
        If the workload is outside its domain, or no shape can hold the model.
    """
    found: dict[int, Fleet] = {}
    refusal: InputError | None = None
    for shape in shapes:
        try:
            service = shape.service(decoder, workload)
            service.floor_s()
        except InputError as error:
            if error.where != "tensor_parallel":
                raise
            refusal = error
            continue
        found[shape.replica.gpus] = fleet(
            service,
            workload,
            copies=shape.copies,
            price_usd_per_node_hour=price_usd_per_node_hour,
            spares=spares,
            context_limit_tokens=shape.replica.architecture.max_context,
        )
    if not found:
        raise refusal or InputError("shapes", None, "at least one shape of a replica")
    return found


def best(found: Mapping[int, Fleet]) -> int:
    """Choose the shape with the fewest nodes, then with the largest rate within the budget, then the fewest GPUs.

    Parameters
    ----------
    found : mapping of int to Fleet
        As `fleets` returns it.

    Returns
    -------
    int
        GPUs of a replica; where none is feasible, of the one that comes nearest: with the lowest floor.

    Examples
    --------
    >>> slow, fast = (Service.line(passes=300, lone_pass_s=t, slope_s=1e-4, room=256) for t in (0.02, 0.005))
    >>> work = Workload(2.0, 1500.0, 300.0, budget_s=5.0)
    >>> best({1: fleet(slow, work, copies=8), 8: fleet(fast, work)})
    8
    """

    def order(gpus: int) -> tuple[float, ...]:
        each = found[gpus]
        if each.nodes is None or each.node_req_per_s is None:
            return (math.inf, each.latency_floor_s if each.latency_floor_s is not None else math.inf, gpus)
        return (each.nodes, -each.node_req_per_s, gpus)

    return min(found, key=order)


@dataclass(frozen=True)
class Offer:
    """A node that somebody offers: its name, its GPUs, its price. [1, USD/node_hour]."""

    name: str
    gpus: int
    price_usd_per_node_hour: float


def cheapest_offer(
    offers: Iterable[Offer], shapes: Sequence[Shape], decoder: Decoder, workload: Workload, *, spares: int = 0
) -> tuple[Offer, int, Fleet] | None:
    """Find the node on offer whose fleet costs least: where a replica needs few GPUs, a small one may do.

    Parameters
    ----------
    offers : iterable of Offer
        Nodes with the GPUs of the shapes.
    shapes : sequence of Shape
        Replicas that may be put on them; ``copies`` is not looked at.
    decoder, workload, spares
        As in `fleets`.

    Returns
    -------
    (Offer, int, Fleet) or None
        The node, GPUs of a replica, and its fleet; None where none is feasible.

    Raises
    ------
    InputError
        As `fleets`.
    """
    chosen: tuple[float, Offer, int, Fleet] | None = None
    for offer in offers:
        fitting = [
            replace(shape, copies=offer.gpus // shape.replica.gpus)
            for shape in shapes
            if offer.gpus >= shape.replica.gpus
        ]
        if not fitting:
            continue
        found = fleets(fitting, decoder, workload, price_usd_per_node_hour=offer.price_usd_per_node_hour, spares=spares)
        gpus = best(found)
        nodes = found[gpus].nodes
        if nodes is None:
            continue
        bill = nodes * offer.price_usd_per_node_hour
        if chosen is None or bill < chosen[0]:
            chosen = (bill, offer, gpus, found[gpus])
    return None if chosen is None else chosen[1:]


# --- A day and a night -------------------------------------------------------------------------


def day(service: Service, workload: Workload, *, copies: int = 1, spares: int = 0) -> pd.DataFrame:
    """Follow a day of rates with a fixed fleet and with an elastic one, which has each hour the nodes that it needs.

    Parameters
    ----------
    service : Service
        Of one replica.
    workload : Workload
        Its shape gives the hours.
    copies, spares
        As in `fleet`.

    Returns
    -------
    DataFrame
        One row for each hour: ``hour``, ``rate_req_per_s`` [request/s], ``fixed_nodes``, ``elastic_nodes`` (spares
        included) [1], ``fixed_load``, ``elastic_load`` (of the saturated rate) [1].

    Raises
    ------
    InputError
        If the workload is outside its domain, or infeasible.

    Examples
    --------
    >>> one = Service.line(passes=300, lone_pass_s=0.01, slope_s=1e-4, prompt_s=0.05, room=256)
    >>> hours = day(one, Workload(10.0, 1500.0, 300.0, budget_s=5.0, shape=(0.5, 1.5)))
    >>> hours[["fixed_nodes", "elastic_nodes"]].to_numpy().tolist()
    [[5, 2], [5, 5]]
    """
    fixed = fleet(service, workload, copies=copies, spares=spares)
    if fixed.nodes is None or fixed.node_req_per_s is None:
        raise InputError("budget_s", workload.budget_s, f"a budget that can be kept: {fixed.reason}")
    hours = workload.rate_req_per_s * np.asarray(workload.shape, float)
    elastic = np.array([max(1, _nodes(rate, fixed.node_req_per_s)) + spares for rate in hours])
    return pd.DataFrame(
        {
            "hour": np.arange(len(hours)),
            "rate_req_per_s": hours,
            "fixed_nodes": fixed.nodes,
            "elastic_nodes": elastic,
            "fixed_load": hours / (fixed.nodes * fixed.node_saturated_req_per_s),
            "elastic_load": hours / (elastic * fixed.node_saturated_req_per_s),
        }
    )


def sweep_night(
    nodes: Mapping[str, Sequence[Shape]],
    decoder: Decoder,
    *,
    input_tokens: ArrayLike,
    output_tokens: float,
    cached_tokens: float = 0.0,
    window_hours: float,
    documents: float,
) -> pd.DataFrame:
    """Read a pile of documents in a night: per model and length of document, at the split that reads most.

    Parameters
    ----------
    nodes : mapping of str to sequence of Shape
        A name for each node and model, and the splits that may be tried.
    decoder : Decoder
    input_tokens : float or sequence
        Tokens of a document with its instructions; a row for each. [token]
    output_tokens, cached_tokens : float
        Tokens of the record; tokens of each prompt that a cache holds. [token]
    window_hours : float
        The night. [hour]
    documents : float
        The pile. [1]

    Returns
    -------
    DataFrame
        ``name``, ``input_tokens`` [token], ``gpus`` of a replica, ``batch`` of a full replica [1],
        ``node_req_per_s`` [request/s], ``prompt_share`` (of the time that reading takes) [1], ``documents`` that one
        node reads in the night, ``nodes`` for the pile [1]. Lengths that fit on no split have no row.

    Raises
    ------
    InputError
        If a number is outside its domain.
    """
    rows = []
    for name, shapes in nodes.items():
        for length in np.atleast_1d(np.asarray(input_tokens, float)):
            load = {"input_tokens": float(length), "output_tokens": output_tokens, "cached_tokens": cached_tokens}
            full = [_full(shape, decoder, load) for shape in shapes]
            shape, held = max(zip(shapes, full, strict=True), key=lambda pair: pair[0].copies * pair[1].req_per_s)
            rate = float(shape.copies * held.req_per_s)
            if rate <= 0:
                continue
            rows.append(
                {
                    "name": name,
                    "input_tokens": length,
                    "gpus": shape.replica.gpus,
                    "batch": float(held.batch),
                    "node_req_per_s": rate,
                    "prompt_share": float(held.batch * held.prompt_s / held.request_s),
                    "documents": documents_in(window_hours, node_req_per_s=rate),
                    "nodes": nodes_for_documents(documents, window_hours=window_hours, node_req_per_s=rate),
                }
            )
    return pd.DataFrame(rows)


def _full(shape: Shape, decoder: Decoder, load: dict[str, float]) -> decoders.Served:
    """Fill a replica with requests; one that can't hold a single one serves none."""
    lengths = {name: load[name] for name in ("input_tokens", "output_tokens")}
    room = decoders.largest_batch(shape.replica, decoder, **lengths, slots=shape.slots, rule=shape.rule)
    if room < 1:
        return decoders.Served(0.0, 1.0, 1.0, 0.0)
    return decoders.served(shape.replica, decoder, batch=room, **load, efficiency=shape.efficiency)


def documents_in(window_hours: ArrayLike, *, node_req_per_s: ArrayLike, requests_per_document: ArrayLike = 1.0) -> Any:
    r"""Count the documents that one node reads in a window in which it is never idle.

    .. math:: 3600\, h\, \frac{\lambda_\mathrm{sat}}{r}

    Parameters
    ----------
    window_hours : float or array
        Length of the window. [hour]
    node_req_per_s : float or array
        Saturated rate of the node. [request/s]
    requests_per_document : float or array
        Requests that one document takes. [1]

    Returns
    -------
    float or array, broadcast shape
        Documents. [1]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Examples
    --------
    >>> documents_in(8.0, node_req_per_s=2.5)
    72000.0
    """
    hours, rate = positive("window_hours", window_hours), not_negative("node_req_per_s", node_req_per_s)
    each = positive("requests_per_document", requests_per_document)
    return scalar_or_array(np.asarray(SECONDS_PER_HOUR * hours * rate / each))


def nodes_for_documents(
    documents: ArrayLike, *, window_hours: ArrayLike, node_req_per_s: ArrayLike, requests_per_document: ArrayLike = 1.0
) -> Any:
    r"""Count the nodes that read a pile of documents in a window.

    .. math:: \left\lceil \frac{N r}{3600\, h\, \lambda_\mathrm{sat}} \right\rceil

    Parameters
    ----------
    documents : float or array
        The pile. [1]
    window_hours, node_req_per_s, requests_per_document
        As in `documents_in`; the rate is above 0.

    Returns
    -------
    float or array, broadcast shape
        Whole nodes. [1]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Examples
    --------
    >>> nodes_for_documents(1e6, window_hours=8.0, node_req_per_s=2.5)
    14.0
    """
    pile = not_negative("documents", documents)
    of_one = documents_in(
        window_hours,
        node_req_per_s=positive("node_req_per_s", node_req_per_s),
        requests_per_document=requests_per_document,
    )
    return scalar_or_array(np.asarray(np.ceil(pile / of_one * (1 - _ROUNDING))))
