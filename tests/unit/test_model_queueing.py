"""The law of a waiting answer in numbers: derivation, exact queues, a replayed replica, limits, refusals."""

from collections import deque

import numpy as np
import pytest
from scipy.stats import poisson

from analysis.inputs import InputError
from analysis.model import decoders, queueing
from analysis.model.queueing import Service, rate_within_budget, under_load
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import replica
from analysis.reference.specs import Decoder, MemoryRule
from analysis.reference.tables import SNAPSHOT
from analysis.symbolic import queueing as derive
from analysis.symbols import (
    ANSWER_PASSES,
    ARRIVALS,
    BUDGET,
    JOB_TIME,
    LATENCY,
    LATENCY_FLOOR,
    LONE_PASS,
    MARGINAL,
    NORMAL_QUANTILE,
    OFFERED,
    PROMPT_TIME,
    SEQUENCE_TIME,
    SPAN,
    SPAN_PASSES,
    VARIANCE,
)

#: A 70B model on eight H100, in round numbers: 300 passes of 10 ms, 0.1 ms for each request, 50 ms for a prompt.
LINE = {"passes": 300.0, "lone_pass_s": 0.01, "slope_s": 1e-4, "prompt_s": 0.05}
EIGHT = Service.line(**LINE)
FLOOR, MARGIN = 3.05, 0.08
RIDGE = 8.0


def bent(kind, room=64.0):
    """A pass that rises beyond a ridge (convex), or ever less (concave, as experts are read)."""
    shapes = {"convex": lambda n: 0.01 * np.maximum(1, n / RIDGE), "concave": lambda n: 0.002 + 0.03 * (1 - 0.9**n)}
    return Service(100.0, 1.0, 100.0, lambda n: (shapes[kind](n), 0.01), room)


def replay(service, rate, *, count, seed=20260720):
    """Serve Poisson arrivals pass by pass: who comes during a pass joins the next one."""
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))
    passes, room = int(service.passes), float(service.room)
    ends, firsts = np.empty(count), np.empty(count)
    running, now, turn, next_in, done = deque(), 0.0, 0, 0, 0
    known = {}
    while done < count:
        if not running and arrivals[next_in] > now:
            now = arrivals[next_in]
        joined = next_in
        while next_in < count and arrivals[next_in] <= now and len(running) < room:
            running.append((next_in, turn + passes - 1))
            next_in += 1
        n = len(running)
        if n not in known:
            known[n] = float(service.pass_s(np.float64(n))), float(service.prompt_s(np.float64(n)))
        now += known[n][0] + (next_in - joined) * known[n][1]
        firsts[joined:next_in] = now
        while running and running[0][1] == turn:
            ends[running.popleft()[0]] = now
            done += 1
        turn += 1
    settled = slice(count // 20, None)
    return (ends - arrivals)[settled], (firsts - arrivals)[settled], ((ends - firsts) / (passes - 1))[settled]


# --- Derivation --------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.0, 1.0, 5.0, 12.0])
def test_the_closed_form_agrees_with_the_derivation(rate):
    at = {ANSWER_PASSES: 300, LONE_PASS: 0.01, SEQUENCE_TIME: 1e-4, PROMPT_TIME: 0.05}
    exact = float(derive.latency().subs(at).subs(ARRIVALS, rate))
    floor, margin = (float(of().subs(at)) for of in (derive.latency_floor, derive.marginal_time))
    assert (floor, margin) == (pytest.approx(FLOOR), pytest.approx(MARGIN))
    assert queueing.latency_s(rate, floor_s=floor, marginal_s=margin) == pytest.approx(exact, rel=1e-12)
    assert under_load(EIGHT, rate).latency_s == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("budget", [3.1, 4.0, 60.0])
def test_the_largest_rate_agrees_with_the_derivation_and_with_the_search(budget):
    exact = float(derive.largest_rate().subs({BUDGET: budget, LATENCY_FLOOR: FLOOR, MARGINAL: MARGIN}))
    found = queueing.largest_rate_req_per_s(budget, floor_s=FLOOR, marginal_s=MARGIN)
    assert found == pytest.approx(exact, rel=1e-12)
    assert rate_within_budget(EIGHT, budget) == pytest.approx(exact, rel=1e-6)


def test_variance_and_quantile_agree_with_the_derivation():
    at = {ANSWER_PASSES: 300, SEQUENCE_TIME: 1e-4, PROMPT_TIME: 0.05, MARGINAL: MARGIN, ARRIVALS: 5.0, LATENCY: 5.0}
    whole = float(derive.variance().subs(at))
    part = float(derive.variance_of_span().subs(at).subs({SPAN: 2.0, SPAN_PASSES: 120}))
    known = {"stay_s": 5.0, "passes_slope_s": 0.03, "prompt_s": 0.05}
    assert queueing.variance_s2(5.0, **known) == pytest.approx(whole, rel=1e-12)
    assert queueing.variance_s2(5.0, **known, span_s=2.0, share_of_passes=0.4) == pytest.approx(part, rel=1e-12)
    quantile = float(
        derive.lognormal_quantile().subs({LATENCY: 5.0, VARIANCE: 2.0, NORMAL_QUANTILE: 1.6448536269514722})
    )
    assert queueing.lognormal_quantile_s(5.0, variance_s2=2.0, percentile=95) == pytest.approx(quantile, rel=1e-12)


def test_part_of_a_time_is_no_longer_than_the_whole():
    """A part that outlasts its whole has a variance below nothing by the formula, so it is refused."""
    known = {"stay_s": 1.0, "passes_slope_s": 0.2, "prompt_s": 0.01}
    with pytest.raises(InputError, match=r"span_s: got 3.5, expected a part of the whole time, 1 s"):
        queueing.variance_s2(0.1, **known, span_s=3.5)
    with pytest.raises(InputError, match=r"share_of_passes: got 1.2, expected a fraction from 0 to 1"):
        queueing.variance_s2(0.1, **known, share_of_passes=1.2)
    assert queueing.variance_s2(0.1, **known, span_s=1.0) == queueing.variance_s2(0.1, **known)


@pytest.mark.parametrize(("servers", "offered"), [(1, 0.3), (2, 1.0), (7, 5.5), (20, 19.0)])
def test_erlang_c_agrees_with_the_sum(servers, offered):
    exact = float(derive.erlang_c(servers).subs(OFFERED, offered))
    assert queueing.erlang_c(servers, offered=offered) == pytest.approx(exact, rel=1e-9)


def test_the_wait_before_one_server_agrees_with_the_derivation():
    exact = float(derive.single_server_wait().subs({ARRIVALS: 0.7, JOB_TIME: 1.2}))
    assert queueing.single_server_wait_s(0.7, job_s=1.2) == pytest.approx(exact, rel=1e-12)


# --- Exact queues ------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.3])
def test_room_for_one_is_the_queue_before_one_server(rate):
    """One request at a time, all equal: M/D/1, exactly."""
    one = Service.line(**LINE, room=1.0)
    exact = FLOOR + queueing.single_server_wait_s(rate, job_s=FLOOR)
    assert under_load(one, rate).latency_s == pytest.approx(exact, rel=1e-12)
    assert queueing.busy_share(one, rate) == pytest.approx(rate * FLOOR, rel=1e-12)


def test_a_pass_that_costs_only_what_requests_bring_is_processor_sharing():
    """t(n) = n s, no prompts: S / (1 - lambda S), whatever the sizes; busy is the load."""
    shared = Service.line(passes=100, lone_pass_s=0.01, slope_s=0.01)
    assert under_load(shared, 0.6).latency_s == pytest.approx(1 / (1 - 0.6), rel=1e-9)
    assert queueing.busy_share(shared, 0.6) == pytest.approx(0.6, rel=1e-6)


def test_requests_that_do_not_touch_each_other_never_wait_and_keep_the_replica_busy():
    """t(n) constant: M/G/infinity, empty with probability exp(-lambda L)."""
    alone = Service.line(passes=100, lone_pass_s=0.01, slope_s=0.0)
    found = under_load(alone, 3.0)
    assert (found.latency_s, found.quantile_s(99)) == (pytest.approx(1.0), pytest.approx(1.0))
    assert queueing.busy_share(alone, 3.0) == pytest.approx(1 - np.exp(-3.0), rel=1e-9)


@pytest.mark.parametrize("load", [0.1, 0.3, 0.5])
def test_a_replayed_replica_bears_the_law_out(load):
    """Passes replayed one by one: mean within 2 %, percentiles within 4 %, and the time between tokens too."""
    rate = load / MARGIN
    whole, _, between = replay(EIGHT, rate, count=int(50_000 * load))
    found = under_load(EIGHT, rate)
    assert found.latency_s == pytest.approx(whole.mean(), rel=0.02)
    assert found.tpot_s == pytest.approx(between.mean(), rel=0.02)
    for percentile in (50, 95):
        assert found.quantile_s(percentile) == pytest.approx(np.percentile(whole, percentile), rel=0.04)
        assert found.quantile_s(percentile, "tpot") == pytest.approx(np.percentile(between, percentile), rel=0.04)


def test_first_tokens_wait_for_the_pass_in_hand():
    """A prompt that adds one pass: mean within 2 %, 95th percentile within 6 % of a replayed replica."""
    served = Service.line(passes=100, lone_pass_s=0.02, slope_s=5e-4, prompt_s=0.02)
    _, first, _ = replay(served, 4.0, count=6000)
    found = under_load(served, 4.0)
    assert found.ttft_s == pytest.approx(first.mean(), rel=0.02)
    assert found.quantile_s(95, "ttft") == pytest.approx(np.percentile(first, 95), rel=0.06)


@pytest.mark.parametrize("kind", ["convex", "concave"])
def test_bent_passes_follow_a_replayed_replica_too(kind):
    service = bent(kind)
    rate = 0.4 * service.saturated_req_per_s
    whole, _, _ = replay(service, rate, count=6000)
    assert under_load(service, rate).latency_s == pytest.approx(whole.mean(), rel=0.08)


@pytest.mark.parametrize(("rate", "prompt", "first"), [(3.0, 0.02, 3.0), (6.0, 0.05, 1.0), (2.0, 0.0, 2.0)])
def test_the_first_token_agrees_with_the_sum_over_prompts_in_a_pass(rate, prompt, first):
    """Passes that cost nothing more for more requests: T = t + p N, N Poisson with the mean rate times E T.

    Who comes in a pass meets a longer one (weight T), waits an even share U of it, and shares the next pass with
    those who came in the same one: U T + p M, M Poisson with mean rate times T. Summed number by number.
    """
    t, passes = 0.1, 40.0
    service = Service.line(passes=passes, lone_pass_s=t, slope_s=0.0, prompt_s=prompt, first_passes=first)
    found = under_load(service, rate)
    mean = t / (1 - rate * prompt)
    n = np.arange(60)
    chance = poisson.pmf(n, rate * mean)
    length = t + prompt * n
    met = chance * length / (chance * length).sum()
    m1, m2 = (met * length).sum(), (met * length**2).sum()
    wait = m1 / 2 + prompt * rate * m1
    square = m2 / 3 + prompt * rate * m2 + prompt**2 * (rate * m1 + rate**2 * m2)
    busy = 1 - np.exp(-rate * found.latency_s)
    later = (first - 1) * mean
    assert found.ttft_s == pytest.approx(first * t + prompt + busy * wait + rate * prompt * later, rel=1e-6)
    variance = busy * square - (busy * wait) ** 2 + rate * prompt**2 * later
    assert found.variances_s2["ttft"] == pytest.approx(variance, rel=1e-6)


def test_the_number_present_is_summed_one_by_one():
    """Up to three requests are served, S(k) = P t(k) + k p; more wait. Weights rate S(k) / k, added up to 4,000."""
    service = Service.line(passes=100, lone_pass_s=0.01, slope_s=0.002, prompt_s=0.05, room=3.0)
    rates = np.array([0.2, 1.0, 1.5])
    idle = []
    for rate in rates:
        weight, total = 1.0, 1.0
        for k in range(1, 4001):
            inside = min(k, 3)
            weight *= rate * (100 * (0.01 + 0.002 * (inside - 1)) + inside * 0.05) / inside
            total += weight
        idle.append(1 / total)
    assert queueing.busy_share(service, rates) == pytest.approx(1 - np.array(idle), rel=1e-9)
    assert queueing.busy_share(service, service.saturated_req_per_s) == 1
    single = Service.line(passes=100, lone_pass_s=0.01, slope_s=0.0, room=0.5)
    assert queueing.busy_share(single, 0.5) == pytest.approx(0.5)


@pytest.mark.parametrize("cv", [1.0, 2.0])
def test_a_full_replica_is_a_queue_before_its_slots(cv):
    """Room for four: Erlang C of those waits, exponentially, cv^2 / 2 over what is left of the saturated rate."""
    service = Service.line(passes=100, lone_pass_s=0.01, slope_s=0.002, prompt_s=0.05, room=4.0)
    stay = 100 * (0.01 + 3 * 0.002) + 4 * 0.05
    saturated = 4 / stay
    assert service.saturated_req_per_s == pytest.approx(saturated)
    # with four inside, three others come in the time of one: from there on it is full
    rates = np.array([0.99 * 3 / stay, 1.01 * 3 / stay, 0.95 * saturated])
    found = under_load(service, rates, cv=cv)
    assert found.waits.tolist() == [False, True, True]
    assert found.wait_share[0] == found.wait_if_any_s[0] == 0
    share = np.array([float(queueing.erlang_c(4, offered=rate * stay)) for rate in rates[1:]])
    if_any = cv**2 / 2 / (saturated - rates[1:])
    assert found.wait_share[1:] == pytest.approx(share)
    assert found.wait_if_any_s[1:] == pytest.approx(if_any)
    assert found.latency_s[1:] == pytest.approx(stay + share * if_any)
    assert found.tpot_s[1] == pytest.approx(found.tpot_s[2])
    bare = under_load(Service.line(passes=100, lone_pass_s=0.01, slope_s=0.002, prompt_s=0.05), 3 / stay, cv=cv)
    assert found.ttft_s[1:] == pytest.approx(bare.ttft_s + share * if_any, rel=1e-6)
    for metric in ("e2e", "ttft", "tpot"):
        mean, variance = bare.mean_s(metric), bare.variances_s2[metric]
        asked = np.atleast_1d(queueing.lognormal_quantile_s(mean, variance_s2=variance, percentile=90))
        late = (metric != "tpot") * if_any * np.log(share / 0.1)
        assert found.quantile_s(90, metric, anywhere=True)[1:] == pytest.approx(asked + late, rel=1e-5)


def test_spreads_under_load_are_those_of_the_closed_form():
    """The whole, and the passes after the first token: 299 of 300, over 299 gaps."""
    found = under_load(EIGHT, 5.0)
    known = {"stay_s": found.latency_s, "passes_slope_s": 0.03, "prompt_s": 0.05}
    assert found.load == pytest.approx(5 * MARGIN)
    assert found.variances_s2["e2e"] == pytest.approx(queueing.variance_s2(5.0, **known), rel=1e-6)
    assert found.batch == pytest.approx(1 + 5 * found.latency_s)
    alone = 0.01 + 1e-4 * (found.batch - 1)
    rest = 299 * alone / (1 - 5 * 0.05)
    assert found.tpot_s == pytest.approx(rest / 299)
    part = queueing.variance_s2(5.0, **known, span_s=rest, share_of_passes=299 / 300)
    assert found.variances_s2["tpot"] == pytest.approx(part / 299**2, rel=1e-6)
    twice = under_load(EIGHT, 5.0, cv=2.0)
    assert twice.variances_s2["e2e"] == pytest.approx(4 * found.variances_s2["e2e"])
    constant = under_load(Service.line(passes=300.0, lone_pass_s=alone, slope_s=0.0, prompt_s=0.05), 5.0)
    of_first = 5 * (0.03 / 300) ** 2 * found.latency_s / (1 - 5 * MARGIN) ** 2
    assert found.variances_s2["ttft"] - of_first == pytest.approx(constant.variances_s2["ttft"], rel=1e-3)


def test_a_late_first_token_has_its_share_of_what_others_add():
    """Half of 300 passes before it, no prompts: rate (P_half beta)^2 stay / (1 - load)^2, beside the pass in hand."""
    half = Service.line(passes=300, lone_pass_s=0.01, slope_s=1e-4, first_passes=150)
    found = under_load(half, 5.0)
    alone = 0.01 + 1e-4 * (found.batch - 1)
    in_hand = under_load(Service.line(passes=300, lone_pass_s=alone, slope_s=0.0, first_passes=150), 5.0)
    others = 5 * (150 * 1e-4) ** 2 * found.latency_s / (1 - 5 * 0.03) ** 2
    assert found.variances_s2["ttft"] == pytest.approx(others + in_hand.variances_s2["ttft"], rel=1e-4)


# --- The fixed point ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["convex", "concave"])
@pytest.mark.parametrize("part", [0.0, 0.2, 0.7])
def test_the_batch_solves_the_fixed_point(kind, part):
    service = bent(kind)
    rate = part * service.saturated_req_per_s
    found = under_load(service, rate)
    batch = 1 + rate * found.latency_s
    assert found.latency_s == pytest.approx(float(100 * service.pass_s(batch) + 0.01 * batch), rel=1e-6)


def test_no_requests_leave_the_floor_at_every_percentile():
    found = under_load(EIGHT, 1e-9)
    for value in (found.latency_s, found.quantile_s(50), found.quantile_s(99)):
        assert value == pytest.approx(FLOOR, rel=1e-4)
    assert found.ttft_s == pytest.approx(0.06, rel=1e-6)
    assert found.tpot_s == pytest.approx(0.01 * 299 / 299, rel=1e-6)


def test_beyond_the_saturated_rate_there_is_no_number():
    found = under_load(bent("convex"), bent("convex").saturated_req_per_s * 1.001)
    assert found.overload
    assert np.isnan([found.latency_s, found.ttft_s, found.tpot_s, found.quantile_s(95, anywhere=True)]).all()


def test_at_full_room_requests_wait_and_the_time_has_no_jump_down():
    service = bent("convex", room=16.0)
    rates = np.linspace(0.0, 0.999, 200) * service.saturated_req_per_s
    found = under_load(service, rates)
    assert found.waits.any()
    assert not found.overload.any()
    assert (np.diff(found.latency_s) >= -1e-9).all()
    assert found.latency_s[-1] > 5 * found.latency_s[0]


def test_outside_the_domain_there_are_no_percentiles():
    high, full = 0.7 / MARGIN, bent("convex", room=16.0)
    assert np.isnan(under_load(EIGHT, high).quantile_s(95))
    assert np.isnan(under_load(full, 0.98 * full.saturated_req_per_s).quantile_s(95))
    assert np.isnan(under_load(EIGHT, 1.0, cv=2.0).quantile_s(95))
    # a prompt of five passes: the whole request is in the domain, its first token is not
    assert np.isfinite(under_load(EIGHT, 1.0).quantile_s(95))
    assert np.isnan(under_load(EIGHT, 1.0).quantile_s(95, "ttft"))


def test_the_edges_of_the_domain():
    """Load 0.6; room for two standard deviations; a prompt of one and a half passes; a pass that bends by half."""
    at, beyond = (under_load(EIGHT, load / MARGIN) for load in (0.5999, 0.6001))
    assert (at.in_domain, beyond.in_domain) == (True, False)
    found = under_load(EIGHT, 4.0)
    upper = found.batch + 2 * np.sqrt(found.batch - 1) / (1 - 4 * MARGIN)
    wide, narrow = (under_load(Service.line(**LINE, room=x * upper), 4.0) for x in (1.001, 0.999))
    assert (wide.in_domain, narrow.in_domain, narrow.waits) == (True, False, False)
    prompts = [
        under_load(Service.line(passes=300, lone_pass_s=0.01, slope_s=0.0, prompt_s=x * 0.015), 1.0)
        for x in (0.999, 1.001)
    ]
    assert [each.in_domain for each in prompts] == [True, True]
    assert [each.ttft_in_domain for each in prompts] == [True, False]
    assert under_load(Service.line(**LINE, first_passes=300.0), 1.0).ttft_in_domain
    for bend, trusted in ((1.4, True), (1.6, False), (1 / 1.4, True), (1 / 1.6, False)):
        # the slope from five requests on is that many times the one before
        curve = Service(
            300.0, 1.0, 300.0, lambda n, b=bend: (0.01 + 1e-3 * np.where(n < 5, n, 5 + b * (n - 5)), 0.0), 1e9
        )
        # two others on average, so that the upper end lies beyond the bend
        assert under_load(curve, 2 / float(curve.stay_s(3.0))).in_domain == trusted


def test_an_overloaded_replica_has_no_share_within_and_an_idle_one_no_spread():
    over = under_load(bent("convex"), 1.01 * bent("convex").saturated_req_per_s)
    assert np.isnan(over.share_within(1e9))
    idle = under_load(EIGHT, 0.0)
    assert (idle.batch, idle.waits, idle.overload, idle.in_domain) == (1, False, False, True)
    assert [idle.share_within(x * FLOOR) for x in (0.99, 1.01)] == [0, 1]
    assert idle.variances_s2["e2e"] == 0


def test_shares_are_asked_of_rates_and_budgets_at_once():
    loads, budgets = under_load(EIGHT, np.array([[1.0], [5.0]])), np.array([3.2, 4.0, 8.0])
    alone = [[float(under_load(EIGHT, rate).share_within(b)) for b in budgets] for rate in (1.0, 5.0)]
    assert loads.share_within(budgets) == pytest.approx(np.array(alone))


@pytest.mark.parametrize("metric", queueing.METRICS)
def test_the_share_within_a_percentile_of_any_time_is_that_percentile(metric):
    found = under_load(EIGHT, 5.0)
    at = found.quantile_s(80, metric, anywhere=True)
    assert found.share_within(at, metric) == pytest.approx(0.8, abs=1e-6)


def test_all_tokens_at_once_have_no_time_between_them():
    whole = Service.line(**LINE, first_passes=300.0)
    found = under_load(whole, 2.0)
    assert (found.ttft_s, found.tpot_s) == (pytest.approx(found.latency_s), 0.0)
    assert found.variances_s2["ttft"] == found.variances_s2["e2e"]
    more_than_all = under_load(Service.line(**LINE, first_passes=400.0), 2.0)
    assert (more_than_all.ttft_s, more_than_all.tpot_s) == (pytest.approx(found.latency_s), 0.0)


# --- Rates within a budget ---------------------------------------------------------------------


@pytest.mark.parametrize("metric", queueing.METRICS)
@pytest.mark.parametrize("percentile", [None, 50, 95])
def test_the_found_rate_meets_the_budget_and_no_more(metric, percentile):
    service = bent("concave")
    start = under_load(service, 0.0).mean_s(metric)
    rate = rate_within_budget(service, 1.4 * start, percentile=percentile, metric=metric)

    def time(at):
        found = under_load(service, at)
        return found.mean_s(metric) if percentile is None else found.quantile_s(percentile, metric, anywhere=True)

    assert time(0.999 * rate) <= 1.4 * start <= time(1.001 * rate)


@pytest.mark.parametrize("kind", ["convex", "concave"])
def test_a_growing_budget_never_lowers_the_rate_and_ends_at_saturation(kind):
    service = bent(kind, room=32.0)
    floor = float(service.stay_s(1.0))
    rates = rate_within_budget(service, floor * np.geomspace(1.01, 1e6, 60), percentile=95)
    assert (np.diff(rates) >= 0).all()
    assert rates[-1] == pytest.approx(service.saturated_req_per_s, rel=1e-3)


def test_below_the_floor_no_rate_keeps_the_budget():
    assert rate_within_budget(EIGHT, 0.99 * FLOOR, percentile=95) == 0
    assert queueing.largest_rate_req_per_s(0.99 * FLOOR, floor_s=FLOOR, marginal_s=MARGIN) == 0


def test_burstier_arrivals_leave_a_lower_rate():
    rates = [rate_within_budget(EIGHT, 6.0, percentile=95, cv=cv) for cv in (1.0, 2.0, 4.0)]
    assert rates[0] > rates[1] > rates[2] > 0


def test_a_rate_near_saturation_meets_the_budget_too():
    """Room for four: a time of ten times the floor is kept by waiting for room, not by the fixed point."""
    service = Service.line(passes=100, lone_pass_s=0.01, slope_s=0.002, prompt_s=0.05, room=4.0)
    budgets = np.array([1.2, 10.0]) * float(service.floor_s())
    for percentile in (None, 90):
        rates = rate_within_budget(service, budgets, percentile=percentile, cv=1.5)
        found = under_load(service, rates, cv=1.5)
        times = found.latency_s if percentile is None else found.quantile_s(90, anywhere=True)
        assert times == pytest.approx(budgets, rel=1e-4)
        assert found.waits.tolist() == [False, True]
        alone = [rate_within_budget(service, budget, percentile=percentile, cv=1.5) for budget in budgets]
        assert rates == pytest.approx(alone, rel=1e-6)


def test_with_room_for_one_the_rate_is_that_of_one_server():
    """S + lambda S^2 / (2 (1 - lambda S)) = D, solved for the rate: 2 (D - S) / (S^2 + 2 S (D - S))."""
    one = Service.line(**LINE, room=1.0)
    budget = np.array([1.001, 2.0, 50.0]) * FLOOR
    wait = budget - FLOOR
    exact = 2 * wait / (FLOOR**2 + 2 * FLOOR * wait)
    assert rate_within_budget(one, budget) == pytest.approx(exact, rel=1e-6)
    assert rate_within_budget(Service.line(**LINE, room=0.999), [0.5, 1e6]).tolist() == [0, 0]
    just = float(under_load(EIGHT, 2.0).latency_s)
    assert rate_within_budget(Service.line(**LINE, room=1.999), 1.0001 * FLOOR) > 0
    assert rate_within_budget(Service.line(**LINE, room=1e3), just) == pytest.approx(2.0, rel=1e-6)


def test_a_replica_that_slows_down_more_than_it_gains_sells_what_it_makes_when_full():
    """t rises with the square of the batch: at 16 requests it does more than at 64, and settles at the latter."""
    service = Service(100.0, 1.0, 100.0, lambda n: (0.01 * (1 + (n / 16) ** 2), 0.0), 64.0)
    saturated = 64 / (100 * 0.17)
    assert service.saturated_req_per_s == pytest.approx(saturated)
    rates = rate_within_budget(service, float(service.floor_s()) * np.geomspace(1.01, 1e5, 40))
    assert (np.diff(rates) >= 0).all()
    assert rates[-1] <= saturated
    assert under_load(service, [0.99 * saturated, 1.01 * saturated]).overload.tolist() == [False, True]


def test_many_budgets_at_once_give_what_each_gives_alone():
    """Beyond 64 numbers the search halves instead of narrowing by grids."""
    service = bent("convex")
    budgets = float(service.floor_s()) * np.geomspace(1.001, 30, 70)
    together = rate_within_budget(service, budgets, percentile=95)
    alone = [rate_within_budget(service, budget, percentile=95) for budget in budgets[::23]]
    assert together[::23] == pytest.approx(alone, rel=1e-6)


def test_nothing_fits_serves_nothing():
    none = Service.line(**LINE, room=0.5)
    assert none.saturated_req_per_s == 0
    assert rate_within_budget(none, 100.0) == 0
    assert under_load(none, 0.1).overload


def test_arrays_give_what_single_numbers_give():
    rates = np.array([0.5, 4.0, 9.0])
    together = under_load(EIGHT, rates)
    alone = [under_load(EIGHT, rate) for rate in rates]
    assert together.latency_s == pytest.approx([each.latency_s for each in alone])
    assert together.quantile_s(95, anywhere=True) == pytest.approx([e.quantile_s(95, anywhere=True) for e in alone])
    many = Service.line(passes=np.array([300.0, 100.0]), lone_pass_s=0.01, slope_s=1e-4, prompt_s=0.05)
    assert under_load(many, 2.0).latency_s[0] == pytest.approx(under_load(EIGHT, 2.0).latency_s)


def test_the_share_within_a_percentile_is_that_percentile():
    found = under_load(EIGHT, 5.0)
    assert found.share_within(found.quantile_s(95)) == pytest.approx(0.95, abs=1e-6)
    assert found.share_within(0.5 * FLOOR) < 1e-9
    assert under_load(EIGHT, 0.0).share_within(1.01 * FLOOR) == 1


# --- A replica of the model --------------------------------------------------------------------


ONE = replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT)
KIND = {"input_tokens": 1500.0, "output_tokens": 320.0, "cached_tokens": 500.0, "chunk_tokens": 600.0}


@pytest.mark.parametrize(
    ("decoder", "passes", "first"),
    [
        (Decoder.autoregressive(), 320, 1),
        (Decoder.diffusion(block_tokens=32, passes=8), 10 * 8, 8),
        (Decoder.speculative(acceptance=1.0, draft_length=3), 320 / 4, 0),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_replica_makes_its_first_token_after_the_passes_of_its_kind(decoder, passes, first):
    """1,000 tokens to read in chunks of 600 take two passes; the last of them yields a token unless blocks do."""
    reached = efficiency(ONE, "vllm")
    service = Service.of(ONE, decoder, **KIND, slots=64, rule=MemoryRule(share=0.5), efficiency=reached)
    served = decoders.served(ONE, decoder, batch=5.0, **KIND, efficiency=reached)
    assert service.pass_s(5.0) == pytest.approx(served.cycle_s)
    assert service.prompt_s(5.0) == pytest.approx(served.prompt_s)
    assert service.stay_s(5.0) == pytest.approx(served.request_s)
    assert service.passes == pytest.approx(served.passes)
    # all passes but those that write the answer read the prompt
    writing = float(decoders.answer_passes(decoder, 320.0, prompt_passes=0.0))
    reading = float(served.passes) - writing
    assert writing == pytest.approx(passes, abs=1)
    assert service.first_passes == pytest.approx(reading + (8 if decoder.kind == "diffusion" else 0))
    assert service.output_tokens == 320
    half = decoders.largest_batch(
        ONE, decoder, input_tokens=1500, output_tokens=320, slots=64, rule=MemoryRule(share=0.5)
    )
    assert service.room == half == 64
    tight = MemoryRule(share=0.25)
    few = Service.of(ONE, decoder, **KIND, rule=tight).room
    assert few == decoders.largest_batch(ONE, decoder, input_tokens=1500, output_tokens=320, rule=tight) < 64


def test_a_whole_sequence_is_there_at_once():
    service = Service.of(ONE, Decoder.full_sequence(passes=16), input_tokens=500.0, output_tokens=320.0)
    assert service.first_passes == service.passes
    assert service.floor_s("ttft") == pytest.approx(service.floor_s())


def test_a_floor_by_hand():
    """100 passes of 10 ms, four until the first of 51 tokens, 30 ms for the prompt; one token has nothing between."""
    service = Service(100.0, 4.0, 51.0, lambda n: (0.01 * n**0, 0.03), 8.0)
    assert service.floor_s() == pytest.approx(1.03)
    assert service.floor_s("ttft") == pytest.approx(0.07)
    assert service.floor_s("tpot") == pytest.approx(0.96 / 50)
    found = under_load(service, 1e-9)
    assert (found.latency_s, found.ttft_s, found.tpot_s) == (
        pytest.approx(1.03),
        pytest.approx(0.07),
        pytest.approx(0.96 / 50),
    )
    single = Service(3.0, 1.0, 1.0, lambda n: (0.01 * n**0, 0.03), 8.0)
    assert single.floor_s("tpot") == pytest.approx(0.02)
    assert under_load(single, 1e-9).tpot_s == pytest.approx(0.02)
    assert Service(3.0, 5.0, 1.0, single.times_s, 8.0).floor_s("ttft") == pytest.approx(0.06)


def test_a_line_has_room_and_no_prompts_unless_said():
    line = Service.line(passes=10, lone_pass_s=0.1, slope_s=0.01)
    assert (line.floor_s(), line.room, float(line.first_passes)) == (pytest.approx(1.0), 1e9, 1)
    assert line.stay_s(3.0) == pytest.approx(1.2)


@pytest.mark.parametrize(("room", "rate"), [(1.0, 1.0), (1.5, 1.5 / 1.05), (0.99, 0.0)])
def test_what_is_saturated_has_room_for_one_at_least(room, rate):
    """Ten passes of 0.1 s and 0.01 s for each other request: n / (10 (0.1 + 0.01 (n - 1)))."""
    line = Service.line(passes=10, lone_pass_s=0.1, slope_s=0.01, room=room)
    assert line.saturated_req_per_s == pytest.approx(rate)


def test_streams_of_a_rate():
    """500 tokens a second at 32 ms a token are 16 streams."""
    assert queueing.in_flight(500.0, tpot_s=0.032) == pytest.approx(16)


def test_nothing_is_cached_and_no_slot_is_missing_unless_said():
    lengths = {"input_tokens": 1500.0, "output_tokens": 320.0}
    bare = Service.of(ONE, Decoder.autoregressive(), **lengths)
    assert bare.stay_s(3.0) == decoders.served(ONE, Decoder.autoregressive(), batch=3.0, **lengths).request_s
    assert bare.room == decoders.largest_batch(ONE, Decoder.autoregressive(), **lengths)


def test_ends_of_the_closed_forms():
    """At a load of one there is no number; all servers busy is a certain wait; one token has no gap."""
    assert np.isnan(queueing.latency_s(0.5, floor_s=3.0, marginal_s=2.0))
    assert np.isnan(queueing.variance_s2(1.0, stay_s=3.0, passes_slope_s=0.5, prompt_s=0.5))
    assert np.isnan(queueing.single_server_wait_s(1.0, job_s=1.0))
    assert queueing.erlang_c([2, 2, 2], offered=[0.0, 2.0, 3.0]).tolist() == [0, 1, 1]
    assert queueing.whole_answer_s(0.6, tpot_s=0.04, output_tokens=[0.5, 1, 2]).tolist() == [0.6, 0.6, 0.64]
    assert queueing.variance_s2(0.0, stay_s=3.0, passes_slope_s=0.5, prompt_s=0.5) == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: under_load(EIGHT, -1.0), "rate_req_per_s: got -1.0"),
        (lambda: under_load(EIGHT, 1.0).quantile_s(100), "percentile: got 100.0"),
        (lambda: under_load(EIGHT, 1.0).quantile_s(50, "speed"), "metric: got 'speed'"),
        (lambda: rate_within_budget(EIGHT, 0.0), "budget_s: got 0.0"),
        (lambda: queueing.erlang_c(0, offered=1.0), "servers: got 0.0"),
        (lambda: queueing.latency_s(1.0, floor_s=-1.0, marginal_s=0.1), "floor_s: got -1.0"),
    ],
)
def test_impossible_input_is_refused_with_its_value(call, words):
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        call()
