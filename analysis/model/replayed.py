"""Nodes under a latency budget by replaying requests: as `analysis.model.capacity`, where that one has a formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from analysis.inputs import InputError, not_negative
from analysis.model import simulation
from analysis.model.capacity import Fleet, Shape, Shares, check, full_usd_per_mtok
from analysis.model.cost import cost_usd_per_mtok
from analysis.model.simulation.capacity import REQUESTS, alone_s
from analysis.model.simulation.records import SLOTS
from analysis.reference.specs import Decoder, Workload

#: A simulated fleet is not larger than this by its spares.
MOST_SPARES = 4096


def _server(shape: Shape, decoder: Decoder) -> simulation.Server:
    slots = int(min(shape.slots, SLOTS))
    return simulation.Server(shape.replica, decoder, shape.efficiency, slots=slots, rule=shape.rule)


def _traffic(workload: Workload) -> simulation.Traffic:
    lengths = (workload.input_tokens, workload.output_tokens, workload.cached_tokens)
    return simulation.Traffic(*lengths, arrival_cv=workload.cv)


def floor_s(
    shape: Shape,
    decoder: Decoder,
    workload: Workload,
    *,
    traffic: simulation.Traffic | None = None,
    seed: int = 0,
    requests: int = REQUESTS,
) -> float:
    """Percentile of requests that never meet another: what no number of such replicas undercuts.

    Parameters
    ----------
    shape, decoder, workload, traffic, seed, requests
        As in `fleet_by_simulation`.

    Returns
    -------
    float
        Time of the metric, time outside the GPU included. [s]

    Raises
    ------
    InputError
        As `fleet_by_simulation`.
    """
    check(workload)
    alone = alone_s(
        _server(shape, decoder),
        _traffic(workload) if traffic is None else traffic,
        percentile=workload.percentile,
        metric=workload.metric,
        count=requests,
        seed=seed,
    )
    return alone + (0.0 if workload.metric == "tpot" else workload.overhead_s)


def fleet_by_simulation(
    shape: Shape,
    decoder: Decoder,
    workload: Workload,
    *,
    traffic: simulation.Traffic | None = None,
    price_usd_per_node_hour: float = 0.0,
    spares: int = 0,
    seed: int = 0,
    runs: int = 5,
    requests: int = REQUESTS,
    progress: Callable[[int], None] | None = None,
) -> Fleet:
    """Count the nodes that keep a budget by replaying requests, and take their utilization apart.

    Parameters
    ----------
    shape : Shape
    decoder : Decoder
    workload : Workload
        With one rate for all hours; its lengths are the means where the traffic has its own.
    traffic : Traffic, optional
        Arrivals and lengths; those of the workload if left out.
    price_usd_per_node_hour, spares
        As in `fleet`. The fleet is served with all nodes.
    seed, runs, requests, progress
        As in `analysis.model.simulation.capacity_by_simulation`.

    Returns
    -------
    Fleet
        All replicas of all nodes stand behind one routing to the emptiest, where `fleet` gives each a queue of its
        own; the floor is the percentile of requests that never meet another.

    Raises
    ------
    InputError
        If a number is outside its domain, or a request does not fit into a replica.
    """
    check(workload)
    if len(workload.shape) > 1:
        raise InputError("shape", len(workload.shape), "one rate for all hours")
    server, traffic = _server(shape, decoder), _traffic(workload) if traffic is None else traffic
    price = float(not_negative("price_usd_per_node_hour", price_usd_per_node_hour))
    extra = int(not_negative("spares", min(spares, MOST_SPARES + 1)))
    if extra > MOST_SPARES:
        raise InputError("spares", spares, f"at most {MOST_SPARES:,} in a simulation")
    asked: dict[str, Any] = {"percentile": workload.percentile, "metric": workload.metric, "seed": seed}
    found = simulation.capacity_by_simulation(
        server,
        traffic,
        rate_req_per_s=workload.rate_req_per_s,
        budget_s=workload.budget_s,
        overhead_s=workload.overhead_s,
        replicas_per_node=shape.copies,
        runs=runs,
        requests=requests,
        progress=progress,
        **asked,
    )
    saturated, tokens = found.saturated_req_per_s, workload.output_tokens
    room = float(shape.service(decoder, workload).room)
    infeasible = Fleet(
        feasible=found.feasible,
        reason=None
        if found.feasible
        else f"a request alone takes {found.latency_floor_s:.3g} s, the budget is {workload.budget_s:g} s",
        latency_floor_s=found.latency_floor_s,
        room=room,
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
        saturated_usd_per_mtok=full_usd_per_mtok(price, saturated, workload),
        cost_usd_per_mtok=None,
    )
    if found.nodes is None or found.largest_req_per_s is None:
        return infeasible
    outside = 0.0 if workload.metric == "tpot" else workload.overhead_s
    nodes, largest, served = found.nodes + extra, found.largest_req_per_s, found
    if extra:
        # the same traffic on all that is bought
        largest = simulation.largest_rate_req_per_s(
            server,
            traffic,
            replicas=nodes * shape.copies,
            budget_s=workload.budget_s - outside,
            runs=runs,
            requests=requests,
            **asked,
        )
        served = simulation.capacity_by_simulation(
            server,
            traffic,
            rate_req_per_s=workload.rate_req_per_s,
            budget_s=workload.budget_s,
            overhead_s=workload.overhead_s,
            replicas_per_node=nodes * shape.copies,
            runs=runs,
            requests=requests,
            **asked,
        )
    shares = Shares(
        day=1.0,
        integer=workload.rate_req_per_s / largest,
        latency=largest / (nodes * saturated),
        goodput=_value(served.goodput),
    )
    return replace(
        infeasible,
        node_req_per_s=largest / nodes,
        nodes=nodes,
        load=workload.rate_req_per_s / (nodes * saturated),
        busy=_value(served.busy),
        shares=shares,
        time_s=_value(served.time_s),
        percentiles_s={
            q: None if each is None else each.value
            for q, each in zip(
                infeasible.percentiles_s,
                (served.latency_p50_s, served.latency_p95_s, served.latency_p99_s),
                strict=True,
            )
        },
        extrapolated=False,
        cost_usd_per_mtok=cost_usd_per_mtok(price, node_tok_per_s=saturated * tokens, utilization=shares.utilization),
        nodes_low=None if found.nodes_low is None else found.nodes_low + extra,
        nodes_high=None if found.nodes_high is None else found.nodes_high + extra,
    )


def _value(estimate: Any) -> float:
    return float(estimate.value)
