"""Nodes that keep a latency budget, by simulation: the smallest fleet, how sure that is, and what it leaves unused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from analysis.inputs import InputError, Words, not_negative, positive, whole
from analysis.model.simulation.records import Server, Traffic
from analysis.model.simulation.serving import BEYOND, EDGE, Estimate, Metric, Runs, _runs, check_length, serve

#: Requests of one run, if not told otherwise.
REQUESTS = 20_000
#: A run lasts at least so many budgets, so that a fleet that can't keep up is seen to fall behind.
BUDGETS = 30
#: Requests of a run at most, unless more are asked for.
MOST_REQUESTS = 300_000
#: A run has come to rest if it lasts so many mean latencies.
STAYS = 10
#: Share by which the largest rate may be missed.
NEAR = 0.01
#: Far enough apart that no request meets another. [s]
ALONE_S = 1e5


@dataclass(frozen=True)
class Capacity:
    """What a fleet under a budget needs, by simulation; None for what an infeasible one has not.

    Parameters
    ----------
    latency_floor_s : float
        The percentile of requests that each have a replica to themselves, overhead included. [s]
    saturated_req_per_s : float
        Rate of one node that always has more waiting. [request/s]
    rate_req_per_s : float
        Rate at which the fleet has to keep the budget: the mean, which the traffic's own shape surrounds.
    nodes, nodes_low, nodes_high : int, optional
        Fewest nodes whose percentile keeps the budget, and whose interval does with its lower and its upper end.
    time_s : Estimate, optional
        The percentile of the metric with these nodes, overhead included. [s]
    largest_req_per_s : float, optional
        Largest rate at which these nodes keep the budget, within 1 %. [request/s]
    goodput, busy : Estimate, optional
        Share of requests within the budget; share of time in which a replica computes. [1]
    latency_p50_s, latency_p95_s, latency_p99_s : Estimate, optional
        Request latencies with these nodes, overhead included; None where too few requests lie beyond. [s]
    """

    latency_floor_s: float
    saturated_req_per_s: float
    rate_req_per_s: float
    nodes: int | None = None
    nodes_low: int | None = None
    nodes_high: int | None = None
    time_s: Estimate | None = None
    largest_req_per_s: float | None = None
    goodput: Estimate | None = None
    busy: Estimate | None = None
    latency_p50_s: Estimate | None = None
    latency_p95_s: Estimate | None = None
    latency_p99_s: Estimate | None = None

    @property
    def feasible(self) -> bool:
        """Whether any number of nodes keeps the budget."""
        return self.nodes is not None

    @property
    def load(self) -> float | None:
        """Rate over what these nodes could do if they always had more waiting. [1]."""
        return None if self.nodes is None else self.rate_req_per_s / (self.nodes * self.saturated_req_per_s)


def saturated_req_per_s(server: Server, traffic: Traffic, *, count: int = REQUESTS, seed: int = 0) -> float:
    """Rate of one replica that always has more requests waiting.

    Parameters
    ----------
    server : Server
    traffic : Traffic
        Only the lengths matter.
    count : int
        Requests that wait in the beginning. [1]
    seed : int

    Returns
    -------
    float
        Answers per second in the middle part of the run. [request/s]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision, Replica
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Server(Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100), slots=256)
    >>> round(saturated_req_per_s(one, Traffic(1500, 300)), 1)
    21.9
    """
    drawn = traffic.draw(rate_req_per_s=1.0, count=count, seed=seed)
    at_once = replace(drawn, arrival_s=np.zeros(len(drawn)))
    end = np.sort(serve(server, at_once, seed=seed).end_s)
    low, high = int(0.2 * end.size), int(0.8 * end.size)
    if not end[high] > end[low]:
        raise InputError("count", count, "enough requests for the replica to answer some after others")
    return float((high - low) / (end[high] - end[low]))


def alone_s(
    server: Server,
    traffic: Traffic,
    *,
    percentile: float,
    metric: Metric = "e2e",
    count: int = REQUESTS,
    seed: int = 0,
) -> float:
    """Percentile of requests that never meet another: the floor that no number of replicas lowers.

    Parameters
    ----------
    server, traffic
        As in `analysis.model.simulation.serve_runs`.
    percentile : float
        Above 0 and below 100. [1]
    metric : {"e2e", "ttft", "tpot"}
    count, seed
        As in `saturated_req_per_s`.

    Returns
    -------
    float
        Time. [s]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision, Replica
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Server(Replica(shipped("llama-3.1-70b").architecture, Precision.of("bf16"), h100, gpus=8))
    >>> round(alone_s(eight, Traffic(1500, 300), percentile=95, count=1000), 2)
    1.58
    """
    drawn = traffic.draw(rate_req_per_s=1.0, count=count, seed=seed)
    apart = replace(drawn, arrival_s=np.arange(len(drawn)) * ALONE_S)
    return serve(server, apart, seed=seed, edge=0.0).percentile_s(percentile, metric)


@dataclass(frozen=True)
class _Search:
    """One budget, and fleets tried against it."""

    server: Server
    traffic: Traffic
    budget_s: float
    percentile: float
    metric: Metric
    seed: int
    runs: int
    requests: int
    saturated_req_per_s: float

    def served(self, *, replicas: int, rate_req_per_s: float) -> Runs | None:
        """Serve, or None where more comes than the replicas could ever do, or what they do does not come to rest."""
        if rate_req_per_s >= replicas * self.saturated_req_per_s:
            return None
        wanted = BUDGETS * self.budget_s * rate_req_per_s / (1 - 2 * EDGE)
        while True:
            count = max(self.requests, int(np.ceil(min(wanted, MOST_REQUESTS))))
            found = _runs(
                self.server,
                self.traffic,
                rate_req_per_s=rate_req_per_s,
                count=count,
                runs=self.runs,
                replicas=replicas,
                seed=self.seed,
            )
            stays = min(run.window_s / run.mean_s() for run in found)
            if stays >= STAYS or self.traffic.trace is not None:
                return Runs(tuple(found))
            # thirty budgets of a whole request are long enough; those of a token say nothing about its request
            if self.metric == "e2e" or count >= MOST_REQUESTS:
                return None
            wanted = 1.1 * count * STAYS / stays

    def time_s(self, served: Runs | None) -> Estimate:
        if served is None:
            return Estimate(np.inf, np.inf, np.inf)
        return served.percentile_s(self.percentile, self.metric)


def largest_rate_req_per_s(
    server: Server,
    traffic: Traffic,
    *,
    replicas: int,
    budget_s: float,
    percentile: float,
    metric: Metric = "e2e",
    seed: int = 0,
    runs: int = 3,
    requests: int = REQUESTS,
) -> float:
    """Largest rate at which a fleet keeps a budget.

    Parameters
    ----------
    server, traffic, seed, runs
        As in `analysis.model.simulation.serve_runs`.
    replicas : int
        Of the whole fleet. [1]
    budget_s : float
        Time that the percentile may take. [s]
    percentile : float
        Above 0 and below 100. [1]
    metric : {"e2e", "ttft", "tpot"}
    requests : int
        Of each run, at least: more where the run would be shorter than thirty budgets, or, under a budget of tokens,
        than ten mean latencies. [1]

    Returns
    -------
    float
        Rate, found to 1 % by halving on the same arrivals compressed in time; 0 if none. [request/s]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision, Replica
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Server(Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100))
    >>> load = {"budget_s": 2.0, "percentile": 95, "requests": 2000}
    >>> [round(largest_rate_req_per_s(one, Traffic(1500, 300), replicas=n, **load) / n, 1) for n in (1, 4)]
    [6.2, 7.6]
    """
    saturated = saturated_req_per_s(server, traffic, seed=seed)
    if not alone_s(server, traffic, percentile=percentile, metric=metric, seed=seed) <= budget_s:
        return 0.0
    search = _search(server, traffic, budget_s, percentile, metric, seed, runs, requests, saturated)
    return _largest_rate(search, replicas=int(whole("replicas", replicas)), low=0.0)


def _search(
    server: Server,
    traffic: Traffic,
    budget_s: float,
    percentile: float,
    metric: Metric,
    seed: int,
    runs: int,
    requests: int,
    saturated: float,
) -> _Search:
    count = len(traffic.trace) if traffic.trace is not None else int(whole("requests", requests))
    check_length(count - 2 * int(count * EDGE), percentile)
    return _Search(
        server,
        traffic,
        float(positive("budget_s", budget_s)),
        percentile,
        metric,
        seed,
        runs,
        requests,
        saturated,
    )


def _largest_rate(search: _Search, *, replicas: int, low: float) -> float:
    high = replicas * search.saturated_req_per_s
    while high - low > NEAR * high:
        middle = (low + high) / 2
        kept = search.time_s(search.served(replicas=replicas, rate_req_per_s=middle)).value <= search.budget_s
        low, high = (middle, high) if kept else (low, middle)
    return low


def capacity_by_simulation(
    server: Server,
    traffic: Traffic,
    *,
    rate_req_per_s: float,
    budget_s: float,
    percentile: float,
    replicas_per_node: int = 1,
    metric: Metric = "e2e",
    overhead_s: float = 0.0,
    seed: int = 0,
    runs: int = 5,
    requests: int = REQUESTS,
    most_nodes: int = 4096,
    largest: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Capacity:
    """Fewest nodes that keep a latency budget.

    Parameters
    ----------
    server : Server
        One replica.
    traffic : Traffic
        A trace is replayed once, with its time scaled to the rate.
    rate_req_per_s : float
        Mean rate to the whole fleet. [request/s]
    budget_s : float
        Time that the percentile may take, overhead included. [s]
    percentile : float
        Above 0 and below 100. [1]
    replicas_per_node : int
        Replicas of one node; all replicas of all nodes stand behind one shortest-queue routing. [1]
    metric : {"e2e", "ttft", "tpot"}
        What has the budget: the request, its first token, or a further token.
    overhead_s : float
        Time outside the GPU, added to a request and to its first token. [s]
    seed : int
    runs : int
        Independent runs, from which the interval comes. [1]
    requests : int
        Of each run, at least: more, up to 300,000, where the run would be shorter than thirty budgets, or, under a
        budget of tokens, than ten mean latencies. [1]
    most_nodes : int
        Where the search ends. [1]
    largest : bool
        Whether to look for the largest rate of the found fleet too, which takes as long again.
    progress : callable, optional
        Called with each number of nodes before it is tried.

    Returns
    -------
    Capacity

    Raises
    ------
    InputError
        If a number is outside its domain, too few requests lie beyond the percentile, so many arrive that a run is
        over before it has come to rest, or more than ``most_nodes`` are needed.

    Notes
    -----
    Every fleet serves the same arrivals, so that more nodes are never slower by chance, and halving finds the
    fewest. Infeasible is an answer: a floor above the budget leaves ``nodes`` None.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision, Replica
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Server(Replica(shipped("llama-3.1-70b").architecture, Precision.of("fp8"), h100, gpus=8))
    >>> ask = {"rate_req_per_s": 20.0, "percentile": 95, "requests": 2000}
    >>> found = [capacity_by_simulation(eight, Traffic(1500, 300), budget_s=d, **ask) for d in (0.5, 1.0, 2.0)]
    >>> [answer.nodes for answer in found]
    [None, 3, 1]
    """
    rate = float(positive("rate_req_per_s", rate_req_per_s))
    overhead = float(not_negative("overhead_s", overhead_s)) if metric != "tpot" else 0.0
    each = int(whole("replicas_per_node", replicas_per_node))
    budget = float(positive("budget_s", budget_s))
    saturated = saturated_req_per_s(server, traffic, seed=seed)
    floor = alone_s(server, traffic, percentile=percentile, metric=metric, count=requests, seed=seed)
    if not floor + overhead <= budget:
        return Capacity(floor + overhead, saturated * each, rate)
    search = _search(server, traffic, budget - overhead, percentile, metric, seed, runs, requests, saturated)
    if traffic.trace is None:
        stay_s = alone_s(server, traffic, percentile=50, count=requests, seed=seed)
        highest = max(requests, MOST_REQUESTS) * (1 - 2 * EDGE) / (STAYS * stay_s)
        if rate > highest:
            raise InputError("rate_req_per_s", rate, f"at most {highest:.3g} in a simulation")
    tried: dict[int, tuple[Runs | None, Estimate]] = {}

    def time_s(nodes: int) -> Estimate:
        if nodes not in tried:
            if progress is not None:
                progress(nodes)
            served = search.served(replicas=nodes * each, rate_req_per_s=rate)
            tried[nodes] = served, search.time_s(served)
        return tried[nodes][1]

    least = max(1, int(rate // (each * saturated)))

    def fewest(end: Literal["value", "low", "high"]) -> int:
        return _fewest(lambda nodes: getattr(time_s(nodes), end) <= search.budget_s, least, most_nodes)

    counts = [fewest("value"), fewest("low"), fewest("high")]
    nodes = counts[0]
    served, time = tried[nodes]
    if served is None:  # a fleet that keeps the budget was served
        raise AssertionError(nodes)
    return Capacity(
        floor + overhead,
        saturated * each,
        rate,
        nodes,
        nodes_low=counts[1],
        nodes_high=counts[2],
        time_s=_later(time, overhead),
        largest_req_per_s=_largest_rate(search, replicas=nodes * each, low=rate) if largest else None,
        goodput=served.goodput(search.budget_s, metric),
        busy=served.busy,
        latency_p50_s=_latency(served, 50, overhead_s),
        latency_p95_s=_latency(served, 95, overhead_s),
        latency_p99_s=_latency(served, 99, overhead_s),
    )


def _latency(served: Runs, percentile: float, overhead_s: float) -> Estimate | None:
    if min(run.times_s().size for run in served.runs) < BEYOND / (1 - percentile / 100):
        return None
    return _later(served.percentile_s(percentile), overhead_s)


def _later(time: Estimate, overhead_s: float) -> Estimate:
    return Estimate(time.value + overhead_s, time.low + overhead_s, time.high + overhead_s)


def _fewest(enough: Callable[[int], Any], least: int, most: int) -> int:
    """Find the smallest number that is enough, if all above it are: doubling steps, then halves."""
    low, high, step = least - 1, least, 1
    while not enough(high):
        if high >= most:
            raise InputError("rate_req_per_s", Words(f"a fleet beyond {most} nodes"), "a rate for which fewer do")
        low, high, step = high, min(high + step, most), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
