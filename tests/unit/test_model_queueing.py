"""The law of a waiting answer in numbers: derivation, exact queues, a replayed replica, limits, refusals."""

from collections import deque

import numpy as np
import pytest

from analysis.inputs import InputError
from analysis.model import queueing
from analysis.model.queueing import Service, rate_within_budget, under_load
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


def test_all_tokens_at_once_have_no_time_between_them():
    whole = Service.line(**LINE, first_passes=300.0)
    found = under_load(whole, 2.0)
    assert (found.ttft_s, found.tpot_s) == (pytest.approx(found.latency_s), 0.0)


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
