"""Serve requests on replicas, and what came of it: latencies, time averages, percentiles with intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from analysis.inputs import InputError, not_negative, whole
from analysis.model.simulation import compiled as c
from analysis.model.simulation.coefficients import coefficients
from analysis.model.simulation.records import Requests, Server, Traffic

Metric = Literal["e2e", "ttft", "tpot"]
METRICS: tuple[Metric, ...] = ("e2e", "ttft", "tpot")
#: Share of the requests at either end of a run that no average counts: the line fills up, and runs dry.
EDGE = 0.05
#: Counted requests that must lie beyond a percentile for it to say something.
BEYOND = 10
#: Requests between two reports of progress.
REPORT = 100_000


@dataclass(frozen=True)
class Run:
    """One simulated run.

    Parameters
    ----------
    requests : Requests
    first_s, end_s : array
        When each request had its first token, and its last. [s]
    counted : slice
        Requests that averages count.
    inside : float
        Requests in all replicas, averaged over the time in which the counted ones arrived. [1]
    busy : float
        Share of that time in which a replica computed, averaged over replicas. [1]
    passes : int
        Passes of all replicas. [1]
    replicas : int
        [1]
    """

    requests: Requests
    first_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    counted: slice
    inside: float
    busy: float
    passes: int
    replicas: int

    def times_s(self, metric: Metric = "e2e", *, counted: bool = True) -> NDArray[np.float64]:
        """Request latency, time to first token, or time per further token, of each request. [s].

        Answers of one token have no time per further token and are left out of it.

        Raises
        ------
        InputError
            If the metric is unknown.
        """
        if metric not in METRICS:
            raise InputError("metric", metric, " or ".join(METRICS))
        of = self.counted if counted else slice(None)
        if metric == "e2e":
            return np.asarray(self.end_s[of] - self.requests.arrival_s[of])
        if metric == "ttft":
            return np.asarray(self.first_s[of] - self.requests.arrival_s[of])
        further = self.requests.output_tokens[of] - 1
        some = further > 0
        return np.asarray((self.end_s[of] - self.first_s[of])[some] / further[some])

    def percentile_s(self, percentile: float, metric: Metric = "e2e") -> float:
        """Percentile of the counted requests. [s]."""
        times = self.times_s(metric)
        return float(np.percentile(times, percentile)) if times.size else float("nan")

    def mean_s(self, metric: Metric = "e2e") -> float:
        """Mean of the counted requests. [s]."""
        times = self.times_s(metric)
        return float(times.mean()) if times.size else float("nan")

    def goodput(self, budget_s: float, metric: Metric = "e2e") -> float:
        """Share of the counted requests within a budget. [1]."""
        return float((self.times_s(metric) <= budget_s).mean())

    @property
    def window_s(self) -> float:
        """Time in which the counted requests arrived. [s]."""
        arrival = self.requests.arrival_s[self.counted]
        return float(arrival[-1] - arrival[0])


def serve(
    server: Server,
    requests: Requests,
    *,
    replicas: int = 1,
    routing: Literal["shortest", "random"] = "shortest",
    seed: int = 0,
    edge: float = EDGE,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Serve requests on equal replicas, by the rules of `analysis.model.simulation.plain`.

    Parameters
    ----------
    server : Server
    requests : Requests
    replicas : int
        Equal servers. [1]
    routing : {"shortest", "random"}
        To the replica with the fewest requests, or to any.
    seed : int
        Of acceptance, adaptive numbers of passes and random routing.
    edge : float
        Share of the requests at either end that averages leave out. [1]
    progress : callable, optional
        Called with requests done and requests in all.

    Returns
    -------
    Run

    Raises
    ------
    InputError
        If a request is longer than the memory of a replica, or a number is outside its domain.

    Notes
    -----
    Agrees with the plain rules to 1e-9 of each time, where no arrival falls on the very end of a pass. Not
    modelled: prompts that are thrown out and read again, transfers between replicas, what a draft model takes to
    read a prompt, passes that refresh a cache.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision, Replica
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Server(Replica(shipped("llama-3.1-70b").architecture, Precision.of("fp8"), h100, gpus=8))
    >>> run = serve(eight, Traffic(1500, 300).draw(rate_req_per_s=5.0, count=2000, seed=1))
    >>> round(run.mean_s(), 2), round(run.busy, 2)
    (0.88, 0.98)
    """
    if routing not in ("shortest", "random"):
        raise InputError("routing", routing, "shortest or random")
    count, machines = len(requests), int(whole("replicas", replicas))
    decoder = server.decoder
    kind = {"ar": c.AR, "speculative": c.SPECULATIVE, "diffusion": c.DIFFUSION, "full-sequence": c.FULL}[decoder.kind]
    of = coefficients(server.replica, server.efficiency, rule=server.rule, one_position=kind == c.AR)
    block = int(decoder.block_tokens) if kind == c.DIFFUSION else 1
    _fits(requests, of.readers[:, c.KEPT_BYTE], of.readers[:, c.KEPT], block, of.memory_byte)
    slots, left_out = min(server.slots, count), int(count * edge)
    counted = slice(left_out, count - left_out)
    begin_s, until_s = float(requests.arrival_s[counted][0]), float(requests.arrival_s[counted][-1])
    rules = c.Rules(
        kind=kind,
        positions=int(decoder.positions),
        block=block,
        drafts=int(decoder.draft_length),
        slots=slots,
        chunk=server.chunk_tokens,
        prompts=server.prompts_per_pass,
        routing=c.RANDOM if routing == "random" else c.SHORTEST,
        seed=int(seed),
        draft_share=float(decoder.draft_share),
        passes=float(decoder.passes_per_block),
        memory_byte=of.memory_byte,
        from_s=begin_s,
        to_s=until_s,
        powers=float(decoder.acceptance) ** np.arange(1.0, decoder.draft_length + 1.0),
        scalars=of.scalars,
        experts=of.experts,
        readers=of.readers,
        alone=np.zeros(slots + 1),
    )
    by_block = count if kind in (c.SPECULATIVE, c.DIFFUSION) else 1
    work = c.Work(
        arrival=requests.arrival_s,
        new=requests.input_tokens - requests.cached_tokens if requests.cached_tokens.any() else requests.input_tokens,
        cached=requests.cached_tokens,
        output=requests.output_tokens,
        first=np.zeros(count),
        end=np.zeros(count),
        following=np.zeros(count, np.int32),
        context=np.zeros(by_block, np.int32),
        left=np.zeros(by_block, np.int32),
        draws=np.zeros(by_block, np.int32),
    )
    fleet = c.Fleet(
        state=np.zeros((machines, c.INSIDE + 1), np.int64),
        clock=np.zeros((machines, c.LOOKS_STEP + 1)),
        keys=np.zeros((machines, slots), np.int64),
        items=np.zeros((machines, slots), np.int32),
        reads=np.zeros((machines, slots), np.int32),
    )
    fleet.state[:, c.PARTIAL] = -1
    fleet.clock[:, c.END] = np.inf
    piece = count if progress is None else REPORT
    for start in range(0, count, piece):
        stop = min(start + piece, count)
        c.serve(start, stop, stop == count, work, fleet, rules)
        if progress is not None:
            progress(stop, count)
    time_s = max(until_s - begin_s, np.finfo(float).tiny)
    return Run(
        requests,
        work.first,
        work.end,
        counted,
        inside=float(fleet.clock[:, c.NUMBER_S].sum()) / time_s,
        busy=float(fleet.clock[:, c.BUSY_S].mean()) / time_s,
        passes=int(fleet.state[:, c.COUNTER].sum()),
        replicas=machines,
    )


def _fits(
    requests: Requests, byte: NDArray[np.float64], kept: NDArray[np.float64], block: int, memory_byte: float
) -> None:
    longest = int(np.max(requests.input_tokens.astype(np.int64) + -(-requests.output_tokens // block) * block))
    if float((byte * np.minimum(longest, kept)).sum()) > memory_byte:
        raise InputError("input_tokens + output_tokens", longest, "a request that fits into the memory of the replica")


# --- Several runs ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """A mean over independent runs with its 95 % interval; both ends are the value where one run says all."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(values: Any) -> Estimate:
        """Average, with Student's interval.

        Examples
        --------
        >>> Estimate.of([1.0, 2.0, 3.0]).value
        2.0
        """
        found = np.asarray(values, float)
        mean = float(found.mean())
        if found.size < 2:
            return Estimate(mean, mean, mean)
        half = float(student.ppf(0.975, found.size - 1) * found.std(ddof=1) / np.sqrt(found.size))
        return Estimate(mean, mean - half, mean + half)


@dataclass(frozen=True)
class Runs:
    """Independent runs of one kind of traffic on one fleet."""

    runs: tuple[Run, ...]

    def mean_s(self, metric: Metric = "e2e") -> Estimate:
        """Mean. [s]."""
        return Estimate.of([run.mean_s(metric) for run in self.runs])

    def percentile_s(self, percentile: float, metric: Metric = "e2e") -> Estimate:
        """Percentile, averaged over runs. [s].

        Raises
        ------
        InputError
            If too few requests lie beyond it.
        """
        check_length(min(run.times_s(metric).size for run in self.runs), percentile)
        return Estimate.of([run.percentile_s(percentile, metric) for run in self.runs])

    def goodput(self, budget_s: float, metric: Metric = "e2e") -> Estimate:
        """Share within a budget. [1]."""
        return Estimate.of([run.goodput(budget_s, metric) for run in self.runs])

    @property
    def busy(self) -> Estimate:
        """Share of the time in which a replica computes. [1]."""
        return Estimate.of([run.busy for run in self.runs])

    @property
    def inside(self) -> Estimate:
        """Requests in all replicas, averaged over time. [1]."""
        return Estimate.of([run.inside for run in self.runs])


def check_length(counted: int, percentile: float) -> None:
    """Refuse a percentile beyond which hardly a request lies.

    Raises
    ------
    InputError
        If fewer than ten of the counted requests lie beyond it, or it is not between 0 and 100.

    Examples
    --------
    >>> check_length(500, 99)
    Traceback (most recent call last):
    analysis.inputs.InputError: requests: got 500, expected at least 1000 counted in each run for percentile 99
    """
    if not 0 < percentile < 100:
        raise InputError("percentile", percentile, "a number above 0 and below 100")
    least = needed(percentile)
    if counted < least:
        raise InputError("requests", counted, f"at least {least} counted in each run for percentile {percentile:g}")


def needed(percentile: float) -> int:
    """Count the requests of which ten lie beyond a percentile.

    Examples
    --------
    >>> needed(95), needed(99.9)
    (200, 10000)
    """
    return int(np.ceil(round(BEYOND / (1 - percentile / 100), 6)))


def serve_runs(
    server: Server,
    traffic: Traffic,
    *,
    rate_req_per_s: float,
    count: int,
    runs: int = 5,
    replicas: int = 1,
    routing: Literal["shortest", "random"] = "shortest",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Runs:
    """Serve traffic in independent runs, which tell how sure an average is.

    Parameters
    ----------
    server : Server
    traffic : Traffic
        A trace is replayed once, whatever the number of runs.
    rate_req_per_s : float
        Requests to all replicas. [request/s]
    count : int
        Requests of each run. [1]
    runs : int
        Independent runs. [1]
    replicas, routing
        As in `serve`.
    seed : int
        Run i draws from this seed and i; the same seed gives the same requests at any rate and number of replicas.
    progress : callable, optional
        Called with runs done and runs in all.

    Returns
    -------
    Runs

    Raises
    ------
    InputError
        If a run is over before its requests are: it lasts less than ten mean latencies, so that no average is
        that of a steady state. More requests help, or a lower rate where the fleet can't keep up.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision, Replica
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Server(Replica(shipped("llama-3.1-70b").architecture, Precision.of("fp8"), h100, gpus=8))
    >>> found = serve_runs(eight, Traffic(1500, 300), rate_req_per_s=5.0, count=2000, seed=1)
    >>> p95 = found.percentile_s(95)
    >>> p95.low < p95.value < p95.high
    True
    """
    found = tuple(
        _runs(
            server,
            traffic,
            rate_req_per_s=rate_req_per_s,
            count=count,
            runs=runs,
            replicas=replicas,
            routing=routing,
            seed=seed,
            progress=progress,
        )
    )
    for run in found:
        if run.window_s < 10 * run.mean_s():
            raise InputError(
                "requests",
                len(run.requests),
                f"a run of at least ten mean latencies: this one lasts {run.window_s:.3g} s and a request takes "
                f"{run.mean_s():.3g} s on average",
            )
    return Runs(found)


def _runs(
    server: Server,
    traffic: Traffic,
    *,
    rate_req_per_s: float,
    count: int,
    runs: int,
    replicas: int,
    routing: Literal["shortest", "random"] = "shortest",
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[Run]:
    """Serve without a look at the result."""
    not_negative("seed", seed)
    several = 1 if traffic.trace is not None else int(whole("runs", runs))
    found = []
    for i in range(several):
        own = int(np.random.SeedSequence([seed, i]).generate_state(1, np.uint32)[0])
        requests = traffic.draw(rate_req_per_s=rate_req_per_s, count=count, seed=own)
        found.append(serve(server, requests, replicas=replicas, routing=routing, seed=own))
        if progress is not None:
            progress(i + 1, several)
    return found
