"""The law of a waiting answer: how long a request takes on a server that batches pass by pass, and what that costs.

A request that stays for a time L shares the replica with the requests that come meanwhile, lambda L of them
(Little's law). Its passes are as slow as the batch is large, and each prompt that comes meanwhile delays it once.
"""

from __future__ import annotations

from sympy import Expr, Integer, ceiling, exp, factorial, fraction, integrate, limit, log, oo, simplify, solve, sqrt

from analysis.symbols import (
    ANSWER,
    ANSWER_PASSES,
    ARRIVALS,
    BUDGET,
    FLEET_RATE,
    JOB_TIME,
    LAG,
    LATENCY,
    LATENCY_FLOOR,
    LONE_PASS,
    MARGINAL,
    MEAN_RATE,
    NIGHT,
    NODES,
    NORMAL_QUANTILE,
    OFFERED,
    PASS_TIME,
    PEAK_RATE,
    PILE,
    PRICE,
    PROMPT_TIME,
    SATURATED_RATE,
    SEC_PER_HOUR,
    SEQUENCE_TIME,
    SEQUENCES,
    SPAN,
    SPAN_PASSES,
    VARIANCE,
    WAIT,
    WITHIN,
)

# --- The mean: a fixed point -------------------------------------------------------------------


def others() -> Expr:
    """Count what a request finds beside it, [1]:  lambda L, by Little's law."""
    return ARRIVALS * LATENCY


def stay() -> Expr:
    """Time of a request by the passes it needs and the prompts that it sits through, [s]:  P t + p (1 + lambda L)."""
    return ANSWER_PASSES * PASS_TIME + PROMPT_TIME * (1 + others())


def pass_among_others() -> Expr:
    """Time of a pass where it is a line in the batch, [s]:  t = alpha + beta lambda L."""
    return LONE_PASS + SEQUENCE_TIME * others()


def latency_floor() -> Expr:
    """Time of a request alone, [s]:  L0 = P alpha + p."""
    return stay().subs(PASS_TIME, pass_among_others()).subs(ARRIVALS, 0)


def marginal_time() -> Expr:
    """Time that one more request in the replica adds to another, [s]:  c = P beta + p."""
    return simplify(stay().subs(PASS_TIME, pass_among_others()).diff(LATENCY) / ARRIVALS)


def latency() -> Expr:
    """Mean time of a request under load, [s]:  L = L0 / (1 - lambda c), the root of L = P t + p (1 + lambda L)."""
    (root,) = solve(LATENCY - stay().subs(PASS_TIME, pass_among_others()), LATENCY)
    return _positive_below(root)


def latency_in_short() -> Expr:
    """Return the same with L0 and c as symbols, [s]:  L0 / (1 - lambda c)."""
    (root,) = solve(LATENCY - LATENCY_FLOOR - ARRIVALS * MARGINAL * LATENCY, LATENCY)
    return _positive_below(root)


def largest_rate() -> Expr:
    """Most requests per second and replica at which the mean keeps the budget, [1/s]:  (1 - L0/D) / c."""
    (rate,) = solve(latency_in_short() - BUDGET, ARRIVALS)
    return rate


def sold_share() -> Expr:
    """Share of the line's own limit 1/c that a budget lets you sell, [1]:  1 - L0/D."""
    return simplify(largest_rate() * MARGINAL)


def rate_at_batch() -> Expr:
    """Rate that keeps n - 1 others beside a request, whatever the shape of t(n), [1/s]:  (n - 1) / (P t + n p).

    The numerical solution runs along it: each batch has one rate, so nothing is iterated.
    """
    among = stay().subs(ARRIVALS, (SEQUENCES - 1) / LATENCY)
    return (SEQUENCES - 1) / among


def full_rate() -> Expr:
    """Rate of a replica that always holds n requests, [1/s]:  n / (P t + n p)."""
    return SEQUENCES / (ANSWER_PASSES * PASS_TIME + SEQUENCES * PROMPT_TIME)


def endless_rate() -> Expr:
    """Rate of a full replica without a limit of memory, where a pass is a line, [1/s]:  1 / (P beta + p) = 1/c."""
    line = LONE_PASS + SEQUENCE_TIME * (SEQUENCES - 1)
    return limit(full_rate().subs(PASS_TIME, line), SEQUENCES, oo)


def night_documents() -> Expr:
    """Documents that a full node reads in a night, [request]:  3600 h lambda_sat."""
    return SEC_PER_HOUR * NIGHT * SATURATED_RATE


def night_nodes() -> Expr:
    """Nodes that read a pile in a night, [1]:  ceil(N / (3600 h lambda_sat))."""
    return ceiling(PILE / night_documents())


# --- The spread --------------------------------------------------------------------------------


def variance_of_others() -> Expr:
    """Variance of the number of others, averaged over a part of a stay, [1]:  lambda (L - theta/3).

    In the steady state of Poisson arrivals with equal stays the number has covariance lambda (L - lag).
    """
    covariance = ARRIVALS * (LATENCY - LAG)
    return simplify(integrate(2 * (SPAN - LAG) * covariance, (LAG, 0, SPAN)) / SPAN**2)


def variance_of_prompts() -> Expr:
    """Variance of the number of prompts that come in a part of a stay, [1]:  lambda theta, for they are Poisson."""
    return ARRIVALS * SPAN


def covariance_of_both() -> Expr:
    """Covariance of the two, [1]:  lambda theta / 2. Who comes early stays for the rest of the part."""
    return integrate(ARRIVALS * (SPAN - LAG) / SPAN, (LAG, 0, SPAN))


def variance_of_span() -> Expr:
    """Variance of a part of a request's time, [s^2]; a longer stay meets more others, hence 1/(1 - lambda c).

    Passes weigh the others with P_theta beta, prompts count p each.
    """
    passes, prompts = SPAN_PASSES * SEQUENCE_TIME, PROMPT_TIME
    raw = (
        passes**2 * variance_of_others()
        + prompts**2 * variance_of_prompts()
        + 2 * passes * prompts * covariance_of_both()
    )
    return raw / (1 - ARRIVALS * MARGINAL) ** 2


def variance() -> Expr:
    """Variance of a request's whole time, [s^2].

    lambda L [(2/3)(P beta)^2 + p^2 + P beta p] / (1 - lambda c)^2.
    """
    return simplify(variance_of_span().subs({SPAN: LATENCY, SPAN_PASSES: ANSWER_PASSES}))


def lognormal_quantile() -> Expr:
    """Quantile of a lognormal time with that mean and variance, [s]:  L exp(z s - s^2/2), s^2 = ln(1 + var/L^2)."""
    spread = log(1 + VARIANCE / LATENCY**2)
    return LATENCY * exp(NORMAL_QUANTILE * sqrt(spread) - spread / 2)


# --- Utilization taken apart -------------------------------------------------------------------


def day_share() -> Expr:
    """Mean over peak of the day, [1]."""
    return MEAN_RATE / PEAK_RATE


def integer_share() -> Expr:
    """Peak over what the bought nodes can take within the budget, [1]: nodes come whole, and spares stand by."""
    return PEAK_RATE / FLEET_RATE


def latency_share() -> Expr:
    """Largest rate of the nodes within the budget over their largest at all, [1]."""
    return FLEET_RATE / (NODES * SATURATED_RATE)


def utilization() -> Expr:
    """Product of the four shares, [1]. Peak and largest rate cancel: useful requests over those of full nodes."""
    return day_share() * integer_share() * latency_share() * WITHIN


def cost_per_useful_token() -> Expr:
    """Cost of a token of an answer within the budget, [USD/token]:  p / (3600 lambda_sat S_out u)."""
    return PRICE / (SEC_PER_HOUR * SATURATED_RATE * ANSWER * utilization())


def cost_of_the_bill() -> Expr:
    """Return the same from the bill, [USD/token]: all nodes for an hour over the useful tokens of that hour."""
    return NODES * PRICE / (SEC_PER_HOUR * MEAN_RATE * WITHIN * ANSWER)


# --- Queues with an exact answer ---------------------------------------------------------------


def single_server_wait() -> Expr:
    """Mean wait before one server with equal jobs, first come first served, [s]:  lambda S^2 / (2 (1 - lambda S)).

    Who comes waits for the rest of the job in hand, half a job while the server is busy, and for those in line.
    """
    rest_of_the_job = ARRIVALS * JOB_TIME * JOB_TIME / 2
    (wait,) = solve(WAIT - rest_of_the_job - ARRIVALS * WAIT * JOB_TIME, WAIT)
    return _positive_below(wait)


def processor_sharing() -> Expr:
    """Mean time on one server that all share equally, [s]:  S / (1 - lambda S).

    It is the law where passes cost nothing but what requests bring: P alpha = P beta = S, no prompts.
    """
    return simplify(
        latency().subs({PROMPT_TIME: 0, LONE_PASS: SEQUENCE_TIME}).subs(SEQUENCE_TIME, JOB_TIME / ANSWER_PASSES)
    )


def erlang_c(servers: int) -> Expr:
    """Share of requests that wait where so many servers of constant speed take one each, [1].

    From the balance of arrivals and departures: pi(j) ~ a^j/j! up to the servers, a geometric tail beyond.
    """
    tail = OFFERED**servers / factorial(servers) * Integer(servers) / (servers - OFFERED)
    return simplify(tail / (sum(OFFERED**j / factorial(j) for j in range(servers)) + tail))


def _positive_below(root: Expr) -> Expr:
    """Write a fraction so that 1 stands before the minus below the line."""
    above, below = fraction(simplify(root))
    return -above / -below
