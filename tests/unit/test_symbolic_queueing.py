"""The law of a waiting answer: units, limits, signs, and the identities that the book rests on."""

import pytest
from sympy import Rational, diff, factor, limit, oo, simplify

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
    MEAN_RATE,
    NODES,
    OFFERED,
    PROMPT_TIME,
    SATURATED_RATE,
    SEQUENCE_TIME,
    SEQUENCES,
    SPAN,
    UNITS,
    VARIANCE,
    WITHIN,
)
from analysis.units import USD, request, second, token, unit_of, unit_ratio

TIMES = (
    derive.stay,
    derive.latency_floor,
    derive.marginal_time,
    derive.latency,
    derive.latency_in_short,
    derive.lognormal_quantile,
    derive.single_server_wait,
    derive.processor_sharing,
)
PURE = (derive.others, derive.sold_share, derive.variance_of_others, derive.covariance_of_both, derive.utilization)
OTHER = (
    (derive.largest_rate, 1 / second),
    (derive.rate_at_batch, 1 / second),
    (derive.full_rate, 1 / second),
    (derive.endless_rate, 1 / second),
    (derive.night_documents, request),
    (derive.night_nodes, 1),
    (derive.variance, second**2),
    (derive.variance_of_span, second**2),
    (derive.cost_per_useful_token, USD / token),
    (derive.cost_of_the_bill, USD / token),
)


@pytest.mark.parametrize(
    ("derivation", "unit"),
    [*((f, second) for f in TIMES), *((f, 1) for f in PURE), *OTHER],
    ids=lambda f: getattr(f, "__name__", str(f)),
)
def test_units(derivation, unit):
    assert unit_ratio(unit_of(derivation(), UNITS), unit) == 1 or unit == USD / token


def test_a_cost_is_in_dollars_per_token():
    assert unit_ratio(unit_of(derive.cost_per_useful_token(), UNITS), USD / token).is_number


def test_the_root_solves_the_fixed_point():
    from analysis.symbols import PASS_TIME

    fixed_point = LATENCY - derive.stay().subs(PASS_TIME, derive.pass_among_others())
    assert simplify(fixed_point.subs(LATENCY, derive.latency())) == 0


def test_short_and_long_form_are_the_same():
    short = derive.latency_in_short().subs({LATENCY_FLOOR: derive.latency_floor(), MARGINAL: derive.marginal_time()})
    assert simplify(short - derive.latency()) == 0


def test_without_others_the_floor_remains_and_load_only_adds():
    assert limit(derive.latency_in_short(), ARRIVALS, 0) == LATENCY_FLOOR
    assert derive.latency_in_short().diff(ARRIVALS).subs(ARRIVALS, 0) == LATENCY_FLOOR * MARGINAL


def test_the_largest_rate_is_zero_at_the_floor_and_one_over_c_without_a_budget():
    assert derive.largest_rate().subs(BUDGET, LATENCY_FLOOR) == 0
    assert limit(derive.largest_rate(), BUDGET, oo) == 1 / MARGINAL
    assert factor(diff(derive.largest_rate(), BUDGET)).is_positive
    assert limit(derive.sold_share(), BUDGET, oo) == 1


def test_on_a_line_the_rate_at_a_batch_is_the_closed_form_turned_round():
    """With n = 1 + lambda L the parametric solution gives the latency of the closed form."""
    from analysis.symbols import PASS_TIME

    line = LONE_PASS + SEQUENCE_TIME * (SEQUENCES - 1)
    rate = derive.rate_at_batch().subs(PASS_TIME, line)
    assert simplify(derive.latency().subs(ARRIVALS, rate) - (SEQUENCES - 1) / rate) == 0


def test_the_variance_is_the_one_of_the_whole_stay():
    """(2/3)(P beta)^2 + p^2 + P beta p, by hand from the window average of M/D/infinity."""
    passes = ANSWER_PASSES * SEQUENCE_TIME
    by_hand = ARRIVALS * LATENCY * (Rational(2, 3) * passes**2 + PROMPT_TIME**2 + passes * PROMPT_TIME)
    assert simplify(derive.variance() - by_hand / (1 - ARRIVALS * MARGINAL) ** 2) == 0


def test_the_others_at_one_moment_are_poisson():
    assert limit(derive.variance_of_others(), SPAN, 0) == ARRIVALS * LATENCY


def test_without_variance_every_quantile_is_the_mean():
    assert limit(derive.lognormal_quantile(), VARIANCE, 0) == LATENCY


def test_the_four_factors_are_the_utilization_and_the_cost_is_the_bill():
    """Largest rate and peak cancel: the product is useful requests over what the bought nodes could serve."""
    assert simplify(derive.utilization() - MEAN_RATE * WITHIN / (NODES * SATURATED_RATE)) == 0
    assert simplify(derive.cost_per_useful_token() - derive.cost_of_the_bill()) == 0


def test_passes_that_cost_only_what_requests_bring_are_processor_sharing():
    assert simplify(derive.processor_sharing() - JOB_TIME / (1 - ARRIVALS * JOB_TIME)) == 0


def test_a_single_server_waits_half_as_long_as_with_memoryless_jobs():
    """Pollaczek and Khinchine: W = lambda E[S^2] / (2 (1 - rho)), with E[S^2] = S^2 against 2 S^2."""
    memoryless = ARRIVALS * JOB_TIME**2 / (1 - ARRIVALS * JOB_TIME)
    assert simplify(derive.single_server_wait() / memoryless) == Rational(1, 2)


@pytest.mark.parametrize(("servers", "offered", "share"), [(1, Rational(1, 2), Rational(1, 2)), (2, 1, Rational(1, 3))])
def test_erlang_c_by_hand(servers, offered, share):
    """One server waits when busy; two at half load: a^2/2 * 2 / (1 + 1 + 1) = 1/3."""
    assert derive.erlang_c(servers).subs(OFFERED, offered) == share


def test_an_endless_batch_serves_one_request_for_each_marginal_time():
    assert simplify(derive.endless_rate() - 1 / derive.marginal_time()) == 0


def test_saturated_rate_does_not_enter_the_bill():
    """At a fixed demand a faster decoder changes the bill only through the number of nodes."""
    assert not simplify(derive.cost_per_useful_token()).has(SATURATED_RATE)
