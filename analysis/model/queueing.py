"""The law of a waiting answer, in numbers: latency under load, its spread, and the rate that a budget allows.

Everything here is about one replica to which requests of one kind come at random. A replica is a `Service`:
how many passes a request takes, how long a pass is with n requests, what a prompt adds, how many fit. With n
requests in it, a request stays for ``P t(n) + n p(n)``, and Little's law says at which rate that is so. Where t is
a line this closes (`latency_s`); everywhere else the batch is found that belongs to a rate, the lowest one. Where
there is none the replica is overloaded, and no number is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincc, gammaln, ndtri

from analysis.inputs import InputError, not_negative, positive, scalar_or_array, share
from analysis.inputs import percentile as percentile_door
from analysis.model import decoders
from analysis.model.decoding import CHUNK_TOKENS, IDEAL, OF_THE_CARD
from analysis.reference.specs import Decoder, Efficiency, MemoryRule, Replica

#: Times that a budget can be about: the whole request, its first token, the time between two tokens.
METRICS = ("e2e", "ttft", "tpot")
#: The spread was compared with simulated replicas up to this share of the load at which the fixed point ends.
LOAD_OF_DOMAIN = 0.6
#: The pass counts as a line where one more request costs at the upper end of the batch what it costs at its mean,
#: or at most this many times as much or as little.
BEND_OF_DOMAIN = 1.5
#: The spread of the time to the first token is trusted where a prompt adds at most this many times a pass.
PROMPT_OF_DOMAIN = 1.5
#: Batches at which a search looks before it halves.
_GRID = 48
_HALVINGS = 40
#: Up to so many numbers at a time it narrows by grids, in so many rounds.
_FEW, _ROUNDS = 64, 6
#: The variance is not let grow beyond what this much of the load left makes of it.
_LEAST_LEFT = 1e-3
#: The nearest to the saturated rate that a search looks: the last part in so many of the way there.
_NEAREST = 1e9
#: Requests in a replica that a sum over their number counts one by one.
_MOST = 4096

Metric = Literal["e2e", "ttft", "tpot"]


# --- The closed form ---------------------------------------------------------------------------


def latency_s(rate_req_per_s: ArrayLike, *, floor_s: ArrayLike, marginal_s: ArrayLike) -> Any:
    r"""Mean time of a request where a pass is a line in the batch.

    .. math:: \mathcal{L} = \frac{\mathcal{L}_0}{1 - \lambda_r c_r}

    Parameters
    ----------
    rate_req_per_s : float or array
        Requests that come to the replica. [1/s]
    floor_s : float or array
        Time of a request alone, P alpha + p. [s]
    marginal_s : float or array
        What one more request in the replica adds to the time of another, P beta + p. [s]

    Returns
    -------
    float or array, broadcast shape
        Mean time; NaN where the rate is too high for any. [s]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.queueing.latency`. Limits: no requests leave the floor; where a pass costs only
    what its requests bring, it is the processor-sharing queue. Poisson arrivals, equal requests.

    Examples
    --------
    >>> latency_s([0.0, 0.25, 1.0], floor_s=3.0, marginal_s=2.0).tolist()
    [3.0, 6.0, nan]
    """
    rate = not_negative("rate_req_per_s", rate_req_per_s)
    floor, marginal = positive("floor_s", floor_s), not_negative("marginal_s", marginal_s)
    left = 1 - rate * marginal
    return scalar_or_array(np.asarray(np.where(left > 0, floor / np.where(left > 0, left, 1.0), np.nan)))


def largest_rate_req_per_s(budget_s: ArrayLike, *, floor_s: ArrayLike, marginal_s: ArrayLike) -> Any:
    r"""Most requests per second at which the mean keeps a budget, where a pass is a line in the batch.

    .. math:: \lambda_\mathrm{max}(D) = \frac{1 - \mathcal{L}_0 / D}{c_r}

    Parameters
    ----------
    budget_s : float or array
        Time that an answer may take. [s]
    floor_s, marginal_s : float or array
        As in `latency_s`. [s]

    Returns
    -------
    float or array, broadcast shape
        Rate of one replica, 0 where the floor alone breaks the budget. [1/s]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.queueing.largest_rate`. Knows no limit of memory or arithmetic:
    `rate_within_budget` does.

    Examples
    --------
    >>> largest_rate_req_per_s([2.0, 4.0, 1e9], floor_s=3.0, marginal_s=2.0).round(3).tolist()
    [0.0, 0.125, 0.5]
    """
    budget = positive("budget_s", budget_s)
    floor, marginal = positive("floor_s", floor_s), positive("marginal_s", marginal_s)
    return scalar_or_array(np.asarray(np.maximum(1 - floor / budget, 0.0) / marginal))


def variance_s2(
    rate_req_per_s: ArrayLike,
    *,
    stay_s: ArrayLike,
    passes_slope_s: ArrayLike,
    prompt_s: ArrayLike,
    span_s: ArrayLike | None = None,
    share_of_passes: ArrayLike = 1.0,
) -> Any:
    r"""Variance of the time of a request, or of a part of it.

    .. math:: \frac{\lambda_r \left[(P_\theta \beta)^2 (\mathcal{L} - \theta/3) + p^2 \theta
              + P_\theta \beta\, p\, \theta\right]}{(1 - \lambda_r c_r)^2}, \quad c_r = P \beta + p

    Parameters
    ----------
    rate_req_per_s : float or array
        Requests that come to the replica. [1/s]
    stay_s : float or array
        Mean time of a whole request. [s]
    passes_slope_s : float or array
        What one more request adds to the passes of another, P beta. [s]
    prompt_s : float or array
        What a prompt adds, p. [s]
    span_s : float or array, optional
        Mean time of the part; the whole if left out. [s]
    share_of_passes : float or array
        Share of the passes that lie in the part. [1]

    Returns
    -------
    float or array, broadcast shape
        Variance; NaN where the load leaves none. [s^2]

    Raises
    ------
    InputError
        If an argument is outside its domain, or a part is longer than the whole.

    Notes
    -----
    Derived in `analysis.symbolic.queueing.variance_of_span`. Poisson arrivals, equal requests.

    Examples
    --------
    >>> round(variance_s2(0.1, stay_s=3.0, passes_slope_s=1.0, prompt_s=0.5), 4)
    0.5882
    """
    rate, stay = not_negative("rate_req_per_s", rate_req_per_s), positive("stay_s", stay_s)
    slope, prompt = not_negative("passes_slope_s", passes_slope_s), not_negative("prompt_s", prompt_s)
    span = stay if span_s is None else not_negative("span_s", span_s)
    if np.any(span > stay):
        raise InputError("span_s", float(np.max(span)), f"a part of the whole time, {np.min(stay):g} s")
    part = share("share_of_passes", share_of_passes) * slope
    left = 1 - rate * (slope + prompt)
    raw = _raw_variance(rate, stay, part, prompt, span)
    return scalar_or_array(np.asarray(np.where(left > 0, raw / np.where(left > 0, left, 1.0) ** 2, np.nan)))


def lognormal_quantile_s(mean_s: ArrayLike, *, variance_s2: ArrayLike, percentile: ArrayLike) -> Any:
    r"""Quantile of a lognormal time with a given mean and variance.

    .. math:: \mathcal{L}\, e^{z_Q \sigma - \sigma^2/2}, \quad
              \sigma^2 = \ln\left(1 + \mathrm{var}_\mathcal{L} / \mathcal{L}^2\right)

    Parameters
    ----------
    mean_s : float or array
        Mean. [s]
    variance_s2 : float or array
        Variance. [s^2]
    percentile : float or array
        Above 0 and below 100. [1]

    Returns
    -------
    float or array, broadcast shape
        Time that this percentage of the requests does not exceed. [s]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.queueing.lognormal_quantile`. Limits: no variance leaves the mean.

    Examples
    --------
    >>> lognormal_quantile_s(2.0, variance_s2=[0.0, 1.0], percentile=95).round(3).tolist()
    [2.0, 3.891]
    """
    mean, variance = positive("mean_s", mean_s), not_negative("variance_s2", variance_s2)
    return scalar_or_array(np.asarray(_quantile(mean, variance, percentile_door("percentile", percentile))))


def _quantile(mean: Any, variance: Any, percentile: Any) -> NDArray[np.float64]:
    spread = np.log1p(variance / mean**2)
    return np.asarray(mean * np.exp(ndtri(percentile / 100) * np.sqrt(spread) - spread / 2))


def whole_answer_s(ttft_s: ArrayLike, *, tpot_s: ArrayLike, output_tokens: ArrayLike) -> Any:
    r"""Time of a whole answer that two other targets imply.

    .. math:: \mathrm{TTFT} + (S_\mathrm{out} - 1)\, \mathrm{TPOT}

    Parameters
    ----------
    ttft_s, tpot_s : float or array
        Time to the first token, and between two. [s]
    output_tokens : float or array
        Tokens of the answer, 1 or more. [token]

    Returns
    -------
    float or array, broadcast shape
        Whole answer. A budget below it contradicts the two. [s]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Examples
    --------
    >>> round(whole_answer_s(0.6, tpot_s=0.04, output_tokens=200), 2)
    8.56
    """
    first, between = not_negative("ttft_s", ttft_s), not_negative("tpot_s", tpot_s)
    later = np.maximum(positive("output_tokens", output_tokens) - 1, 0.0)
    return scalar_or_array(np.asarray(first + later * between))


def in_flight(tok_per_s: ArrayLike, *, tpot_s: ArrayLike) -> Any:
    r"""Count the requests that a rate of tokens implies, by Little's law.

    .. math:: X \cdot \mathrm{TPOT}

    Parameters
    ----------
    tok_per_s : float or array
        Output tokens per second of all streams. [token/s]
    tpot_s : float or array
        Time between two tokens of one stream. [s]

    Returns
    -------
    float or array, broadcast shape
        Requests that decode at once. A record that prints another batch contradicts itself. [1]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Examples
    --------
    >>> round(in_flight(500.0, tpot_s=0.032), 6)
    16.0
    """
    return scalar_or_array(not_negative("tok_per_s", tok_per_s) * not_negative("tpot_s", tpot_s))


# --- Queues with an exact answer ---------------------------------------------------------------


def single_server_wait_s(rate_req_per_s: ArrayLike, *, job_s: ArrayLike) -> Any:
    r"""Mean wait before one server with equal jobs and Poisson arrivals, first come first served.

    .. math:: W_q = \frac{\lambda_r S_\mathrm{job}^2}{2 (1 - \lambda_r S_\mathrm{job})}

    Parameters
    ----------
    rate_req_per_s : float or array
        Arrivals. [1/s]
    job_s : float or array
        Time of a job. [s]

    Returns
    -------
    float or array, broadcast shape
        Mean wait without the job itself; NaN where the server can't keep up. [s]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Exact. Derived in `analysis.symbolic.queueing.single_server_wait`. A replica with room for one request is
    such a server, and so is one that reads prompts one by one and writes a single token.

    Examples
    --------
    >>> single_server_wait_s([0.0, 0.5], job_s=1.0).tolist()
    [0.0, 0.5]
    """
    rate, job = not_negative("rate_req_per_s", rate_req_per_s), positive("job_s", job_s)
    left = 1 - rate * job
    return scalar_or_array(np.asarray(np.where(left > 0, rate * job**2 / 2 / np.where(left > 0, left, 1.0), np.nan)))


def erlang_c(servers: ArrayLike, *, offered: ArrayLike) -> Any:
    r"""Share of requests that wait where servers of constant speed take one each.

    .. math:: C = \frac{B}{1 - \rho (1 - B)}, \quad B = \frac{a^k e^{-a}}{\Gamma(k + 1, a)}, \quad \rho = a / k

    Parameters
    ----------
    servers : float or array
        k, fractions included. [1]
    offered : float or array
        Rate times the time of a job, a. [1]

    Returns
    -------
    float or array, broadcast shape
        Probability to wait; 1 where the servers can't keep up. [1]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Exact for Poisson arrivals and memoryless jobs. Whole servers: `analysis.symbolic.queueing.erlang_c`.

    Examples
    --------
    >>> round(erlang_c(1, offered=0.5), 6), round(erlang_c(10, offered=8.0), 4)
    (0.5, 0.4092)
    """
    k, a = positive("servers", servers), not_negative("offered", offered)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_blocked = k * np.log(a) - a - gammaln(k + 1) - np.log(gammaincc(k + 1, a))
        blocked = np.where(a > 0, np.exp(log_blocked), 0.0)
    busy = np.minimum(a / k, 1.0)
    return scalar_or_array(np.asarray(np.where(a < k, blocked / (1 - busy * (1 - blocked)), 1.0)))


# --- A replica ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Service:
    """What one replica does to requests of one kind.

    Parameters
    ----------
    passes : float or array
        Passes of a request, the one that reads its prompt included, P. [1]
    first_passes : float or array
        Of these, the ones until its first token is there. [1]
    output_tokens : float or array
        Tokens of the answer. [token]
    times_s : callable
        From the requests in the replica to the time of a pass, t(n), and to what the passes that carry a prompt
        take longer, p(n). [s, s]
    room : float or array
        Requests that memory and engine let run together; less than 1: not one fits. [1]
    """

    passes: Any
    first_passes: Any
    output_tokens: Any
    times_s: Callable[[Any], tuple[Any, Any]]
    room: Any

    @classmethod
    def line(
        cls,
        *,
        passes: ArrayLike,
        lone_pass_s: ArrayLike,
        slope_s: ArrayLike,
        prompt_s: ArrayLike = 0.0,
        room: ArrayLike = 1e9,
        first_passes: ArrayLike = 1.0,
    ) -> Service:
        """Make a replica whose pass is a line: t(n) = alpha + beta (n - 1), the prompt's share constant.

        Examples
        --------
        >>> one = Service.line(passes=300, lone_pass_s=0.01, slope_s=0.001, prompt_s=0.1)
        >>> round(under_load(one, 1.0).latency_s, 3)
        5.167
        """
        alpha, beta = positive("lone_pass_s", lone_pass_s), not_negative("slope_s", slope_s)
        excess, count = not_negative("prompt_s", prompt_s), positive("passes", passes)
        return cls(count, np.asarray(first_passes, float), count, lambda n: (alpha + beta * (n - 1), excess), room)

    @classmethod
    def of(
        cls,
        replica: Replica,
        decoder: Decoder,
        *,
        input_tokens: ArrayLike,
        output_tokens: ArrayLike,
        cached_tokens: ArrayLike = 0.0,
        slots: ArrayLike = np.inf,
        rule: MemoryRule = OF_THE_CARD,
        chunk_tokens: ArrayLike = CHUNK_TOKENS,
        efficiency: Efficiency = IDEAL,
    ) -> Service:
        """Make the service of a replica to requests of one kind; arguments as in `analysis.model.decoders.served`.

        Raises
        ------
        InputError
            If a number is outside its domain, or the whole prompt is cached.

        Examples
        --------
        >>> from analysis.reference.model_config import shipped
        >>> from analysis.reference.specs import Precision
        >>> from analysis.reference.tables import SNAPSHOT, accelerator
        >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
        >>> eight = Replica(shipped("llama-3.1-70b").architecture, Precision.of("bf16"), h100, gpus=8)
        >>> service = Service.of(eight, Decoder.autoregressive(), input_tokens=1500, output_tokens=300)
        >>> under_load(service, [0.0, 2.0]).latency_s.round(2).tolist()
        [1.58, 1.67]
        """
        load: dict[str, Any] = {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "cached_tokens": cached_tokens,
            "chunk_tokens": chunk_tokens,
            "efficiency": efficiency,
        }

        def times_s(batch: Any) -> tuple[Any, Any]:
            found = decoders.served(replica, decoder, batch=batch, **load)
            return np.asarray(found.cycle_s), np.asarray(found.prompt_s)

        lone = decoders.served(replica, decoder, batch=1.0, **load)
        passes = np.asarray(lone.passes, float)
        if decoder.kind == "full-sequence":
            first = passes
        else:
            # a block is there as a whole, with its last pass
            reading = passes - np.asarray(decoders.answer_passes(decoder, output_tokens, prompt_passes=0.0))
            first = reading + (decoder.passes_per_block if decoder.kind == "diffusion" else 0.0)
        room = decoders.largest_batch(
            replica, decoder, input_tokens=input_tokens, output_tokens=output_tokens, slots=slots, rule=rule
        )
        return cls(passes, first, np.asarray(output_tokens, float), times_s, room)

    def pass_s(self, batch: Any) -> Any:
        """Time of a pass with so many requests, t(n). [s]."""
        return self.times_s(batch)[0]

    def prompt_s(self, batch: Any) -> Any:
        """Time that the passes which carry a prompt take longer, p(n). [s]."""
        return self.times_s(batch)[1]

    def stay_s(self, batch: Any) -> Any:
        """Time of a request beside ``batch - 1`` others, P t(n) + n p(n). [s]."""
        alone, prompt = self.times_s(batch)
        return self.passes * alone + batch * prompt

    def floor_s(self, metric: Metric = "e2e") -> Any:
        """Time on an empty replica, which no number of such replicas undercuts. [s]."""
        alone, prompt = self.times_s(1.0)
        first = np.minimum(self.first_passes, self.passes)
        tokens = np.maximum(np.asarray(self.output_tokens, float) - 1, 1.0)
        found = {
            "e2e": self.passes * alone + prompt,
            "ttft": first * alone + prompt,
            "tpot": (self.passes - first) * alone / tokens,
        }[_known(metric)]
        return scalar_or_array(np.asarray(found, float))

    @property
    def saturated_req_per_s(self) -> Any:
        """Rate of a replica that is always full, n / (P t(n) + n p(n)) at its room; 0 where nothing fits. [1/s]."""
        room = np.asarray(self.room, float)
        full = np.maximum(room, 1.0)
        return scalar_or_array(np.asarray(np.where(room >= 1, full / self.stay_s(full), 0.0)))


@dataclass(frozen=True)
class Load:
    """One replica at one rate. Floats or arrays of one shape; NaN where it is overloaded.

    ``waits``: the replica is full and requests wait for room. ``overload``: more come than it can ever serve.
    ``load`` is the share of the rate at which the fixed point would end, with the slope that the pass has here;
    ``in_domain`` says where the spread can be trusted (see `under_load`).
    """

    batch: Any
    latency_s: Any
    ttft_s: Any
    tpot_s: Any
    load: Any
    waits: Any
    overload: Any
    in_domain: Any
    ttft_in_domain: Any
    variances_s2: dict[str, Any]
    wait_share: Any
    wait_if_any_s: Any

    def mean_s(self, metric: Metric = "e2e") -> Any:
        """Mean of one of the three times. [s]."""
        return {"e2e": self.latency_s, "ttft": self.ttft_s, "tpot": self.tpot_s}[_known(metric)]

    def quantile_s(self, percentile: ArrayLike, metric: Metric = "e2e", *, anywhere: bool = False) -> Any:
        """Percentile of one of the three times; NaN outside the domain, unless it is asked for anywhere. [s].

        While the replica is full, the wait for room is added; what a token takes afterwards has none.
        """
        q = percentile_door("percentile", percentile)
        served = _quantile(self._served_s(metric), self.variances_s2[metric], q)
        late = 0.0 if metric == "tpot" else _wait_quantile(self.wait_share, self.wait_if_any_s, q)
        found = served + late
        trusted = self.ttft_in_domain if metric == "ttft" else self.in_domain
        return scalar_or_array(np.asarray(found if anywhere else np.where(trusted, found, np.nan)))

    def share_within(self, budget_s: ArrayLike, metric: Metric = "e2e") -> Any:
        """Share of the requests whose time keeps a budget. [1]."""
        budget = positive("budget_s", budget_s)
        low = np.full(np.broadcast_shapes(np.shape(budget), np.shape(self.batch)), 1e-9)
        high = np.full_like(low, 100 - 1e-9)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            inside = self.quantile_s(middle, metric, anywhere=True) <= budget
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        # without a spread every percentile is the mean: all or none
        return scalar_or_array(np.asarray(np.where(self.overload, np.nan, np.round((low + high) / 200, 9))))

    def _served_s(self, metric: Metric) -> Any:
        wait = 0.0 if metric == "tpot" else np.asarray(self.wait_share) * self.wait_if_any_s
        return np.asarray(self.mean_s(metric)) - wait


def _known(metric: str) -> str:
    if metric not in METRICS:
        raise InputError("metric", metric, " or ".join(METRICS))
    return metric


def _wait_quantile(share: Any, if_any_s: Any, percentile: Any) -> Any:
    """Quantile of a wait that a share of the requests has, exponential for those."""
    beyond = 1 - percentile / 100
    with np.errstate(divide="ignore", invalid="ignore"):
        wait = if_any_s * np.log(share / beyond)
    return np.where(np.asarray(share) > beyond, wait, 0.0)


def _rate_at(service: Service, batch: Any) -> Any:
    return (batch - 1) / service.stay_s(batch)


def _first_above(of: Callable[[Any], Any], level: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Find where a function first passes a level between two positive ends; say also where it never does."""
    shape = np.broadcast_shapes(np.shape(level), np.shape(low), np.shape(high))
    low, high, level = (np.broadcast_to(np.asarray(end, float), shape) for end in (low, high, level))
    steps = np.linspace(0.0, 1.0, _GRID).reshape(-1, *(1 for _ in shape))

    def narrowed(below: Any, beyond: Any) -> tuple[Any, Any, Any]:
        grid = below * (beyond / below) ** steps
        above = of(grid) > level
        first = np.argmax(above, axis=0)
        ends = (np.take_along_axis(grid, at[None], axis=0)[0] for at in (np.maximum(first - 1, 0), first))
        return (*ends, ~above.any(axis=0))

    below, beyond, never = narrowed(low, high)
    if level.size <= _FEW:
        # a grid costs as much as a point where there are few
        for _ in range(_ROUNDS):
            below, beyond, _ = narrowed(below, beyond)
    else:
        for _ in range(_HALVINGS):
            middle = np.sqrt(below * beyond)
            passed = of(middle) > level
            below, beyond = np.where(passed, below, middle), np.where(passed, middle, beyond)
    return np.where(never, high, below), never


def under_load(service: Service, rate_req_per_s: ArrayLike, *, cv: ArrayLike = 1.0) -> Load:
    r"""Find what a rate of requests does to one replica.

    .. math:: \mathcal{L} = P\, t(1 + \lambda_r \mathcal{L}) + p\,(1 + \lambda_r \mathcal{L})

    Parameters
    ----------
    service : Service
    rate_req_per_s : float or array
        Requests that come to the replica. [1/s]
    cv : float or array
        Coefficient of variation of the gaps between arrivals, 1 for Poisson; it widens the spread by its
        square. [1]

    Returns
    -------
    Load

    Raises
    ------
    InputError
        If the rate or the variation is outside its domain.

    Notes
    -----
    The lowest root counts: from an empty replica that is where it settles. Up to the room for requests the fixed
    point holds. From there to the saturated rate the replica is a queue before full slots: share that waits by
    Erlang C, the wait half of what it is with memoryless jobs (equal requests; exact with room for one). Beyond:
    overload.

    The spread is trusted (``in_domain``) up to a ``load`` of 0.6, for Poisson arrivals, where two standard
    deviations above the mean batch fit, and where the pass is nearly a line up to there. Against
    simulated replicas (dense, sparse, drafts, blocks; 1,500 tokens in, 300 out) the mean is then within 3 % where an
    answer takes hundreds of passes and within 9 % where it takes tens, percentiles 50 and 95 within 8 %, percentile 99
    within 15 %, mostly low. What is missing is the wait for the pass in hand, which counts where passes are few. The
    time to the first token has it; its percentiles are trusted where a prompt adds at most 1.5 passes
    (``ttft_in_domain``), within 8 %.

    Examples
    --------
    >>> eight = Service.line(passes=300, lone_pass_s=0.01, slope_s=0.001, prompt_s=0.1)
    >>> found = under_load(eight, [0.0, 1.0, 2.4, 3.0])
    >>> found.latency_s.round(2).tolist(), found.overload.tolist()
    ([3.1, 5.17, 77.5, nan], [False, False, False, True])
    """
    rate = not_negative("rate_req_per_s", rate_req_per_s)
    batch, at_cap = _first_above(lambda n: _rate_at(service, n), rate, 1.0, _full(service))
    return _load(service, batch, rate, cv=cv, full=at_cap & (rate > 0), judge=True)


def rate_within_budget(
    service: Service,
    budget_s: ArrayLike,
    *,
    percentile: ArrayLike | None = None,
    metric: Metric = "e2e",
    cv: ArrayLike = 1.0,
) -> Any:
    """Most requests per second of one replica at which a mean or a percentile keeps a budget.

    Parameters
    ----------
    service : Service
    budget_s : float or array
        Time allowed. [s]
    percentile : float or array, optional
        Which percentile has to keep it; the mean if left out. [1]
    metric : {"e2e", "ttft", "tpot"}
        Which time it is about.
    cv : float or array
        As in `under_load`. [1]

    Returns
    -------
    float or array, broadcast shape
        Rate, below the saturated one; 0 where even an empty replica breaks the budget. [1/s]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    The first rate, from below, at which the time passes the budget; so it never falls when the budget grows, and
    nears the saturated rate. Percentiles are computed outside the domain of `under_load` too: what is found there
    is an extrapolation, which `Load.in_domain` at the found rate tells. On a line it is `largest_rate_req_per_s`.

    Examples
    --------
    >>> eight = Service.line(passes=300, lone_pass_s=0.01, slope_s=0.001, prompt_s=0.1)
    >>> [round(rate_within_budget(eight, 6.0, percentile=q), 3) for q in (None, 50, 95)]
    [1.208, 1.258, 0.771]
    """
    budget = positive("budget_s", budget_s)
    full = _full(service)

    def time(load: Load) -> Any:
        mean = load.mean_s(metric)
        found = mean if percentile is None else load.quantile_s(percentile, metric, anywhere=True)
        return np.nan_to_num(np.asarray(found), nan=np.inf)

    def with_batch(n: Any) -> Any:
        return time(_load(service, n, _rate_at(service, n), cv=cv))

    batch, up_to_full = _first_above(with_batch, budget, 1.0, full)
    below = np.asarray(_rate_at(service, batch))
    if not np.any(up_to_full):
        return scalar_or_array(np.where(np.asarray(service.room, float) >= 1, below, 0.0))
    last, saturated = np.asarray(_rate_at(service, full)), np.asarray(service.saturated_req_per_s)

    def near_saturation(y: Any) -> Any:
        rate = saturated - (saturated - last) / y
        return time(_load(service, np.broadcast_to(full, np.shape(rate)), rate, cv=cv, full=True))

    y, _ = _first_above(near_saturation, budget, 1.0, _NEAREST)
    found = np.where(up_to_full, saturated - (saturated - last) / y, below)
    return scalar_or_array(np.where(np.asarray(service.room, float) >= 1, found, 0.0))


def busy_share(service: Service, rate_req_per_s: ArrayLike) -> Any:
    r"""Share of the time in which a replica has anything to do.

    .. math:: 1 - \left[\sum_n \prod_{k \le n} \frac{\lambda_r}{k}\,(P\, t(k) + k\, p(k))\right]^{-1}

    Parameters
    ----------
    service : Service
        Of plain numbers.
    rate_req_per_s : float or array
        Requests that come to the replica. [1/s]

    Returns
    -------
    float or array
        What monitoring shows as busy; 1 from the saturated rate on. It says little about the load. [1]

    Raises
    ------
    InputError
        If the rate is outside its domain.

    Notes
    -----
    All requests present are served alike, so the number present has a product form, whatever their sizes; a full
    replica lets the rest wait.

    Examples
    --------
    >>> eight = Service.line(passes=300, lone_pass_s=0.01, slope_s=0.001, prompt_s=0.1)
    >>> busy_share(eight, [0.0, 0.1, 1.0, 3.0]).round(3).tolist()
    [0.0, 0.271, 0.981, 1.0]
    """
    rate = not_negative("rate_req_per_s", rate_req_per_s)
    most = int(min(max(float(service.room), 1.0), _MOST))
    k = np.arange(1, most + 1, dtype=float).reshape(-1, *(1 for _ in rate.shape))
    stays = np.asarray(service.stay_s(k))
    with np.errstate(divide="ignore"):
        weights = np.cumsum(np.log(rate * stays / k), axis=0)
    ratio = rate * stays[-1] / most
    # beyond the room the number falls by the same ratio at each step
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        present = np.exp(weights).sum(axis=0) + np.exp(weights[-1]) * ratio / (1 - ratio)
    return scalar_or_array(np.asarray(np.where(ratio < 1, present / (1 + np.minimum(present, 1e300)), 1.0)))


# --- Parts of the law --------------------------------------------------------------------------


def _full(service: Service) -> Any:
    """Return the room, 1 at least, in the shape of everything the service holds."""
    shape = np.broadcast_shapes(*(np.shape(field) for field in (service.room, service.passes, service.output_tokens)))
    return np.broadcast_to(np.maximum(np.asarray(service.room, float), 1.0), shape)


def _load(service: Service, batch: Any, rate: Any, *, cv: Any, full: Any = False, judge: bool = False) -> Load:
    """Describe a replica with so many requests beside and including one, whose rate is known."""
    spread = not_negative("cv", cv) ** 2
    room, saturated = _full(service), np.asarray(service.saturated_req_per_s)
    overload = (np.asarray(service.room, float) < 1) | (rate >= saturated)
    waits = np.asarray(full) & ~overload
    alone, prompt = (np.asarray(each, float) for each in service.times_s(batch))
    stay = service.passes * alone + batch * prompt
    # what one more request adds, as the derivation has it: the difference over one
    added = np.asarray(service.stay_s(batch + 1)) - stay
    flow = _rate_at(service, batch)
    load = flow * added
    slope = np.maximum(added - prompt, 0.0)
    share_first = np.minimum(np.asarray(service.first_passes, float) / service.passes, 1.0)
    first, first_spread = _first_token(service, alone, flow, prompt, stay)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(waits, erlang_c(room, offered=np.minimum(rate * stay, room)), 0.0)
        # equal requests wait half as long as memoryless ones, arrivals count by their variation
        if_any = np.where(waits, spread / 2 / np.where(waits, saturated - rate, 1.0), 0.0)
    tokens = np.maximum(np.asarray(service.output_tokens, float) - 1, 1.0)
    left = np.maximum(1 - load, _LEAST_LEFT)
    rest = (1 - share_first) * service.passes * alone / (1 - flow * prompt)

    def spread_of(part: Any, span: Any, prompts_s: Any) -> Any:
        return spread * _raw_variance(flow, stay, part * slope, prompts_s, span) / left**2

    variances = {
        "e2e": spread_of(1.0, stay, prompt),
        "ttft": spread_of(share_first, 0.0, 0.0) + first_spread,
        "tpot": spread_of(1 - share_first, rest, prompt) / tokens**2,
    }
    whole = share_first >= 1
    first, variances["ttft"] = np.where(whole, stay, first), np.where(whole, variances["e2e"], variances["ttft"])
    trusted: Any = np.zeros(np.shape(waits), bool)
    short: Any = trusted
    if judge:
        upper = batch + 2 * np.sqrt(batch - 1) / left
        bend = (np.asarray(service.stay_s(upper + 1)) - service.stay_s(upper)) / np.where(added > 0, added, 1.0)
        line = (added <= 0) | ((bend <= BEND_OF_DOMAIN) & (bend >= 1 / BEND_OF_DOMAIN))
        trusted = line & (load <= LOAD_OF_DOMAIN) & (upper <= room) & (spread == 1) & ~waits & ~overload
        short = trusted & (whole | (prompt <= PROMPT_OF_DOMAIN * alone))

    def shown(values: Any) -> Any:
        return scalar_or_array(np.asarray(np.where(overload, np.nan, values)))

    return Load(
        batch=shown(batch),
        latency_s=shown(stay + share * if_any),
        ttft_s=shown(first + share * if_any),
        tpot_s=shown(rest / tokens),
        load=shown(load),
        waits=_plain(waits),
        overload=_plain(overload),
        in_domain=_plain(trusted),
        ttft_in_domain=_plain(short),
        variances_s2={metric: shown(found) for metric, found in variances.items()},
        wait_share=shown(share),
        wait_if_any_s=shown(if_any),
    )


def _first_token(service: Service, alone: Any, rate: Any, prompt: Any, stay: Any) -> tuple[Any, Any]:
    """Mean of the time to the first token, and what its variance has besides the number of others.

    Whoever comes while the replica runs waits for the rest of the pass in hand, whose length is t and p for each
    prompt in it; whoever came in the same pass shares the next one. Prompts in a pass are Poisson.
    """
    passes = np.minimum(np.asarray(service.first_passes, float), service.passes)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = alone / (1 - rate * prompt)
        count = rate * mean
        second = alone**2 + 2 * alone * prompt * count + prompt**2 * (count + count**2)
        third = (
            alone**3
            + 3 * alone**2 * prompt * count
            + 3 * alone * prompt**2 * (count + count**2)
            + prompt**3 * (count**3 + 3 * count**2 + count)
        )
        # the pass that an arrival falls into is longer than the mean one
        met, met_square = second / mean, third / mean
        of_met = met_square - met**2
        wait = met / 2 + prompt * rate * met
        of_wait = met_square / 3 - met**2 / 4 + prompt**2 * rate * (met + rate * of_met) + prompt * rate * of_met
        busy = -np.expm1(-rate * stay)
        later = (passes - 1) * mean
        first = passes * alone + prompt + busy * wait + rate * prompt * later
        variance = busy * (of_wait + wait**2) - (busy * wait) ** 2 + rate * prompt**2 * later
    return first, np.maximum(variance, 0.0)


def _plain(values: Any) -> Any:
    return values if np.ndim(values) else bool(values)


def _raw_variance(rate: Any, stay: Any, slope: Any, prompt: Any, span: Any) -> Any:
    return rate * (slope**2 * (stay - span / 3) + prompt**2 * span + slope * prompt * span)
