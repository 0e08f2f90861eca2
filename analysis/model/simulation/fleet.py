"""Fleets by simulation, in the words of `analysis.model.capacity`: nodes, what they cost, where utilization goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis.inputs import InputError, not_negative
from analysis.model import capacity
from analysis.model.capacity import Fleet, Shape, Shares
from analysis.model.decoding import CHUNK_TOKENS
from analysis.model.simulation.capacity import REQUESTS, capacity_by_simulation
from analysis.model.simulation.records import Requests, Server, Traffic
from analysis.model.simulation.serving import Estimate
from analysis.reference.specs import Decoder, Workload
from analysis.units import SECONDS_PER_HOUR, TOKENS_PER_MTOK

#: Requests in a replica that a simulation keeps apart at most, where the engine sets no limit.
MOST_SLOTS = 4096
#: Hours of a trace from which on it says something about the shape of a day.
HOURS_OF_A_SHAPE = 2


@dataclass(frozen=True)
class SimulatedFleet(Fleet):
    """A fleet by simulation: beside what `analysis.model.capacity.Fleet` has, how sure the count of nodes is. [1]."""

    nodes_low: int | None = None
    nodes_high: int | None = None


def fleet_by_simulation(
    shape: Shape,
    decoder: Decoder,
    workload: Workload,
    *,
    trace: Requests | None = None,
    price_usd_per_node_hour: float = 0.0,
    spares: int = 0,
    seed: int = 0,
    runs: int = 5,
    requests: int = REQUESTS,
    chunk_tokens: int = CHUNK_TOKENS,
) -> SimulatedFleet:
    """Count the nodes of one shape that keep a budget, by simulation, and take their utilization apart.

    Parameters
    ----------
    shape : Shape
    decoder : Decoder
    workload : Workload
        Its rate is the mean one. Where the rate of its hours differs, nodes are counted at the peak.
    trace : Requests, optional
        Arrivals and lengths as they were, in place of the workload's; time is scaled to the workload's rate.
    price_usd_per_node_hour, spares
        As in `analysis.model.capacity.fleet`.
    seed, runs, requests
        As in `analysis.model.simulation.capacity_by_simulation`.
    chunk_tokens : int
        Prompt tokens of one pass at most. [token]

    Returns
    -------
    SimulatedFleet
        ``extrapolated`` is always False: nothing is. With a trace its own hours are the shape of the day, if there
        are two or more.

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Replicas stand behind one shortest-queue routing, so a fleet does more than as many queues of their own as the
    closed form sees. In hours below the peak all answers count as in time as they are at the peak.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision, Replica
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Shape(Replica(shipped("llama-3.1-70b").architecture, Precision.of("fp8"), h100, gpus=8), 1, slots=256)
    >>> work = Workload(20.0, 1500.0, 300.0, budget_s=1.0)
    >>> found = fleet_by_simulation(one, Decoder.autoregressive(), work, requests=2000, price_usd_per_node_hour=33)
    >>> found.nodes, round(found.shares.utilization, 2), found.cost_usd_per_mtok > found.saturated_usd_per_mtok
    (3, 0.15, True)
    """
    capacity.check(workload)
    if trace is not None:
        workload = replace(
            workload,
            input_tokens=float(trace.input_tokens.mean()),
            output_tokens=float(trace.output_tokens.mean()),
            cached_tokens=float(trace.cached_tokens.mean()),
        )
    price, extra = float(not_negative("price_usd_per_node_hour", price_usd_per_node_hour)), int(spares)
    service = shape.service(decoder, workload, chunk_tokens=chunk_tokens)
    floor_s = float(service.floor_s(workload.metric)) + (0.0 if workload.metric == "tpot" else workload.overhead_s)
    saturated = shape.copies * float(service.saturated_req_per_s)
    held, limit = workload.input_tokens + workload.output_tokens, shape.replica.architecture.max_context
    none = SimulatedFleet(
        feasible=False,
        reason=None,
        latency_floor_s=floor_s if service.room >= 1 else None,
        room=float(service.room),
        node_saturated_req_per_s=saturated,
        node_req_per_s=None,
        nodes=None,
        spares=extra,
        load=None,
        busy=None,
        shares=None,
        percentiles_s=dict.fromkeys((50.0, 95.0, 99.0)),
        means_s=None,
        extrapolated=None,
        saturated_usd_per_mtok=None,
        cost_usd_per_mtok=None,
    )
    if trace is None and limit is not None and held > limit:
        words = f"prompt and answer of {held:,.0f} tokens exceed the model's context of {limit:,.0f}"
        return replace(none, reason=words)
    if service.room < 1:
        words = f"memory holds {float(service.room):.2g} of one such request beside the weights"
        return replace(none, reason=words)
    hours = _hours(workload, trace)
    over_mean = float(hours.max() / hours.mean())
    # a trace has its peaks in it, drawn arrivals have not
    factor = over_mean if trace is None else 1.0
    traffic = _drawn(workload) if trace is None else Traffic(trace=trace)
    server = Server(
        shape.replica,
        decoder,
        shape.efficiency,
        slots=int(min(shape.slots, MOST_SLOTS)),
        rule=shape.rule,
        chunk_tokens=int(chunk_tokens),
    )
    found = capacity_by_simulation(
        server,
        traffic,
        rate_req_per_s=workload.rate_req_per_s * factor,
        budget_s=workload.budget_s,
        percentile=workload.percentile,
        replicas_per_node=shape.copies,
        metric=workload.metric,
        overhead_s=workload.overhead_s,
        spares=extra,
        seed=seed,
        runs=runs,
        requests=requests,
    )
    saturated = found.saturated_req_per_s
    full_cost = TOKENS_PER_MTOK * price / (SECONDS_PER_HOUR * saturated * workload.output_tokens)
    none = replace(
        none,
        latency_floor_s=found.latency_floor_s,
        node_saturated_req_per_s=saturated,
        saturated_usd_per_mtok=full_cost,
    )
    if found.nodes is None or found.largest_req_per_s is None or found.goodput is None or found.busy is None:
        reason = f"an empty replica takes {found.latency_floor_s:.3g} s, the budget is {workload.budget_s:g} s"
        return replace(none, reason=reason)
    # rates at the peak, whether the simulated ones were means with a peak or the peak itself
    peak, largest = workload.rate_req_per_s * over_mean, found.largest_req_per_s / factor * over_mean
    shares = Shares(
        day=1 / over_mean,
        integer=peak / largest,
        latency=largest / (found.nodes * saturated),
        goodput=found.goodput.value,
    )
    return replace(
        none,
        feasible=True,
        node_req_per_s=largest / found.nodes,
        nodes=found.nodes,
        nodes_low=found.nodes_low,
        nodes_high=found.nodes_high,
        load=peak / (found.nodes * saturated),
        busy=found.busy.value,
        shares=shares,
        percentiles_s={q: _value(found.percentiles_s[q]) for q in none.percentiles_s},
        means_s={metric: mean.value for metric, mean in found.means_s.items()},
        extrapolated=False,
        cost_usd_per_mtok=full_cost / shares.utilization,
    )


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def _drawn(workload: Workload) -> Traffic:
    for name in ("input_tokens", "output_tokens", "cached_tokens"):
        if getattr(workload, name) != int(getattr(workload, name)):
            raise InputError(name, getattr(workload, name), "a whole number of tokens for a simulation")
    return Traffic(workload.input_tokens, workload.output_tokens, workload.cached_tokens, arrival_cv=workload.cv)


def _hours(workload: Workload, trace: Requests | None) -> Any:
    """Rates of hours: of the workload, or of the whole hours of a trace."""
    if trace is None:
        return np.asarray(workload.shape, float)
    counts = np.bincount(((trace.arrival_s - trace.arrival_s[0]) // SECONDS_PER_HOUR).astype(int))[:-1]
    return counts.astype(float) if counts.size >= HOURS_OF_A_SHAPE else np.ones(1)


def fleets_by_simulation(
    shapes: Iterable[Shape], decoder: Decoder, workload: Workload, **how: Any
) -> dict[int, SimulatedFleet]:
    """Count the nodes for every shape of a replica, by the GPUs of a replica; arguments as in `fleet_by_simulation`.

    Raises
    ------
    InputError
        If the workload is outside its domain, or no shape can hold the model.
    """
    found: dict[int, SimulatedFleet] = {}
    refusal: InputError | None = None
    for shape in shapes:
        try:
            found[shape.replica.gpus] = fleet_by_simulation(shape, decoder, workload, **how)
        except InputError as error:
            if error.where != "tensor_parallel":
                raise
            refusal = error
    if not found:
        raise refusal or InputError("shapes", None, "at least one shape of a replica")
    return found
