"""The cost identity: units, limits, monotonicity, and what follows from it."""

import pytest
from sympy import factor, limit, oo, simplify

from analysis.symbolic import cost
from analysis.symbols import (
    ANSWER,
    BILL,
    CACHED,
    COST,
    DISCOUNT,
    FASTER,
    HOURS_A_MONTH,
    INTEREST,
    MONTHS,
    PRICE,
    PRICE_HIT,
    PRICE_IN,
    PRICE_OUT,
    PROMPT,
    PURCHASE,
    RATE,
    READ_TPUT,
    REQ_TPUT,
    RESIDUAL,
    START_HOURS,
    THINKING,
    TPUT,
    UNITS,
    USEFUL,
    UTIL,
)
from analysis.units import ONE, USD, hour, request, second, token, unit_of, unit_ratio


@pytest.mark.parametrize(
    ("derive", "unit", "scale"),
    [
        (cost.cost_per_token, USD / token, True),
        (cost.cost_per_mtok, USD / token, False),
        (cost.throughput_at_cost, token / hour, True),
        (cost.utilization_at_cost, ONE, True),
        (cost.breakeven_utilization, ONE, True),
        (cost.utilization_at_demand, ONE, True),
        (cost.cost_at_demand, USD / token, True),
        (cost.price_at_cost, USD / second, True),
        (cost.saving_of_a_faster_decoder, USD / hour, False),
        (cost.seconds_per_request, second / request, False),
        (cost.cost_per_request, USD / request, True),
        (cost.cost_per_request_of_mix, USD / request, True),
        (cost.api_bill, USD / request, False),
        (cost.price_per_answer_token, USD / token, False),
        (cost.breakeven_utilization_of_requests, ONE, True),
        (cost.breakeven_requests, request, False),
        (cost.weighted_throughput, token / second, False),
        (cost.utilization_scaled_to_zero, ONE, False),
        (cost.cost_per_useful_token, USD / token, True),
        (cost.breakeven_useful_share, ONE, False),
        (cost.capital_per_hour, USD / hour, False),
        (cost.straight_line_per_hour, USD / hour, False),
        (cost.energy_per_hour, USD / hour, False),
        (cost.space_per_hour, USD / hour, False),
        (cost.upkeep_per_hour, USD / hour, False),
        (cost.staff_per_hour, USD / hour, False),
        (cost.avoidable_per_hour, USD / hour, False),
    ],
)
def test_units(derive, unit, scale):
    """A right formula leaves a pure number after conversion; with the constants in it, exactly one."""
    ratio = unit_ratio(unit_of(derive(), UNITS), unit)
    assert ratio.is_number
    if not scale:
        assert ratio == 1


def test_limits():
    c = cost.cost_per_token()
    assert limit(c, UTIL, 0) == oo, "an idle node has no finite cost per token"
    assert limit(c, TPUT, oo) == 0
    assert limit(c, PRICE, 0) == 0


def test_monotone():
    c = cost.cost_per_token()
    assert factor(c.diff(PRICE)).is_positive
    assert factor(c.diff(TPUT)).is_negative
    assert factor(c.diff(UTIL)).is_negative


@pytest.mark.parametrize(
    ("solution", "symbol"),
    [(cost.throughput_at_cost, TPUT), (cost.utilization_at_cost, UTIL), (cost.price_at_cost, PRICE)],
)
def test_inverses_give_the_cost_back(solution, symbol):
    assert simplify(cost.cost_per_token().subs(symbol, solution()) - COST) == 0


def test_at_fixed_demand_throughput_cancels():
    """A faster decoder on a node that is paid for anyway saves nothing."""
    c = cost.cost_at_demand()
    assert c.diff(TPUT) == 0
    assert simplify(c - PRICE / (RATE * ANSWER)) == 0


def test_a_cached_prefix_is_not_read():
    """With everything cached only writing is left, and the rate of reading no longer matters."""
    assert cost.seconds_per_request().subs(CACHED, PROMPT).diff(READ_TPUT) == 0
    assert factor(cost.cost_per_request_of_mix().diff(CACHED)).is_negative


def test_cost_of_a_mix_is_the_cost_of_a_request_at_its_rate():
    rate = 1 / cost.seconds_per_request()
    assert simplify(cost.cost_per_request_of_mix() - cost.cost_per_request().subs(REQ_TPUT, rate)) == 0


def test_the_bill_of_an_api_depends_on_tokens_and_prices_alone():
    assert not cost.api_bill().free_symbols & {UTIL, RATE, TPUT, REQ_TPUT, PRICE}
    assert cost.api_bill().subs(PRICE_HIT, PRICE_IN).diff(CACHED).simplify() == 0
    assert cost.api_bill().subs(DISCOUNT, 1) == 0


def test_without_hidden_tokens_the_price_of_output_is_the_price_of_the_answer():
    assert cost.price_per_answer_token().subs(THINKING, 0) == PRICE_OUT
    assert limit(cost.price_per_answer_token(), ANSWER, oo) == PRICE_OUT


def test_at_its_break_even_a_request_costs_what_the_api_bills():
    at = cost.cost_per_request().subs(UTIL, cost.breakeven_utilization_of_requests())
    assert simplify(at - BILL) == 0


def test_a_decoder_saves_only_where_it_frees_a_node():
    """Demand of half a node: one node before and after, nothing saved. Of two and a half: three nodes become one."""
    saving = cost.saving_of_a_faster_decoder()
    assert saving.subs({RATE: 1, ANSWER: 500, TPUT: 1000, FASTER: 10_000}) == 0
    assert saving.subs({RATE: 5, ANSWER: 500, TPUT: 1000, FASTER: 10_000}) == 2 * PRICE


def test_a_node_that_starts_at_once_and_stops_at_once_is_never_idle():
    assert cost.utilization_scaled_to_zero().subs(START_HOURS, 0) == 1


def test_useful_cost_reaches_the_api_at_the_break_even_share():
    assert cost.cost_per_useful_token().subs(USEFUL, 1) == cost.cost_per_token()
    assert limit(cost.cost_per_useful_token(), USEFUL, 0) == oo


def test_limits_of_the_annuity():
    """Without interest a straight line; a node that keeps its value costs the interest; so does an endless life."""
    capital = cost.capital_per_hour()
    assert simplify(limit(capital, INTEREST, 0) - cost.straight_line_per_hour()) == 0
    interest_alone = PURCHASE * INTEREST / HOURS_A_MONTH
    assert simplify(capital.subs(RESIDUAL, 1) - interest_alone) == 0
    assert simplify(limit(capital.subs(INTEREST, 1), MONTHS, oo) - interest_alone.subs(INTEREST, 1)) == 0
