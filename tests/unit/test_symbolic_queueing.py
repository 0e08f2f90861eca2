"""The law of a waiting answer: units, limits, signs, and the identities that the book rests on."""

import pytest
from sympy import E, Rational, diff, exp, factor, fraction, limit, oo, simplify

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
    NIGHT,
    NODES,
    NORMAL_QUANTILE,
    OFFERED,
    PASS_TIME,
    PILE,
    PROMPT_TIME,
    SATURATED_RATE,
    SEC_PER_HOUR,
    SEQUENCE_TIME,
    SEQUENCES,
    SPAN,
    SPAN_PASSES,
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
    fixed_point = LATENCY - derive.stay().subs(PASS_TIME, derive.pass_among_others())
    assert simplify(fixed_point.subs(LATENCY, derive.latency())) == 0


def test_short_and_long_form_are_the_same():
    short = derive.latency_in_short().subs({LATENCY_FLOOR: derive.latency_floor(), MARGINAL: derive.marginal_time()})
    assert simplify(short - derive.latency()) == 0


def test_the_law_is_written_with_1_before_the_minus():
    """As the page prints it: L0 / (1 - lambda c), and lambda S^2 / (2 (1 - lambda S))."""
    assert derive.latency_in_short() == LATENCY_FLOOR / (1 - ARRIVALS * MARGINAL)
    above, below = fraction(derive.single_server_wait())
    assert not above.could_extract_minus_sign()
    assert below.subs(ARRIVALS, 0).is_positive
    assert fraction(derive.latency())[1].subs(ARRIVALS, 0) == 1


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


def test_the_variance_of_a_part_of_a_stay_by_hand():
    """One request a second, stays of 3 s, a part of 1.5 s whose passes weigh 2 s for each other, prompts of 1 s.

    4 x (3 - 0.5) of the others, 1.5 of the prompts, 2 x 2 x 0.75 of both: 14.5, and four times as much at c = 1/2.
    """
    at = {ARRIVALS: 1, LATENCY: 3, SPAN: Rational(3, 2), SPAN_PASSES: 20, SEQUENCE_TIME: Rational(1, 10)}
    assert derive.variance_of_span().subs(at | {PROMPT_TIME: 1, MARGINAL: Rational(1, 2)}) == 58


def test_a_request_alone_makes_its_passes_and_reads_its_prompt():
    """P alpha + p, and each other one adds P beta + p."""
    assert derive.latency_floor() == ANSWER_PASSES * LONE_PASS + PROMPT_TIME
    assert simplify(derive.marginal_time() - ANSWER_PASSES * SEQUENCE_TIME - PROMPT_TIME) == 0


def test_a_night_by_hand():
    """Two documents a second for ten hours are 72,000; 72,001 need a second node."""
    assert derive.night_documents().subs({NIGHT: 10, SATURATED_RATE: 2, SEC_PER_HOUR: 3600}) == 72_000
    nodes = derive.night_nodes().subs({NIGHT: 10, SATURATED_RATE: 2, SEC_PER_HOUR: 3600})
    assert [nodes.subs(PILE, pile) for pile in (72_000, 72_001)] == [1, 2]


def test_a_full_replica_by_hand():
    """Four requests, ten passes of 0.2 s, prompts of half a second: 4 / (2 + 2), and 3 / 4 beside three others."""
    at = {SEQUENCES: 4, ANSWER_PASSES: 10, PASS_TIME: Rational(1, 5), PROMPT_TIME: Rational(1, 2)}
    assert derive.full_rate().subs(at) == 1
    assert derive.rate_at_batch().subs(at) == Rational(3, 4)


def test_quantiles_of_a_lognormal_time_by_hand():
    """With var / L^2 = e - 1 the logarithm has deviation 1 and mean ln L - 1/2: L / sqrt(e) in the middle."""
    spread = derive.lognormal_quantile().subs(VARIANCE, LATENCY**2 * (E - 1))
    assert simplify(spread.subs(NORMAL_QUANTILE, 0) - LATENCY * exp(-Rational(1, 2))) == 0
    assert simplify(spread.subs(NORMAL_QUANTILE, 2) - LATENCY * exp(Rational(3, 2))) == 0


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


@pytest.mark.parametrize(
    ("servers", "offered", "share"),
    [(1, Rational(1, 2), Rational(1, 2)), (2, 1, Rational(1, 3)), (3, 2, Rational(4, 9))],
)
def test_erlang_c_by_hand(servers, offered, share):
    """One server waits when busy; two at half load: 1/2 x 2 / (1 + 1 + 1); three at two thirds: 4 / (1 + 2 + 2 + 4)."""
    assert derive.erlang_c(servers).subs(OFFERED, offered) == share


def test_an_endless_batch_serves_one_request_for_each_marginal_time():
    assert simplify(derive.endless_rate() - 1 / derive.marginal_time()) == 0


def test_saturated_rate_does_not_enter_the_bill():
    """At a fixed demand a faster decoder changes the bill only through the number of nodes."""
    assert not simplify(derive.cost_per_useful_token()).has(SATURATED_RATE)
