"""The cost identity: units, limits, monotonicity, and what follows from it."""

import pytest
from sympy import factor, limit, oo, simplify

from analysis.symbolic import cost
from analysis.symbols import ANSWER, COST, PRICE, RATE, TPUT, UNITS, UTIL
from analysis.units import ONE, USD, hour, second, token, unit_of, unit_ratio


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
