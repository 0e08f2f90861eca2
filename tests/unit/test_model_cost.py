"""The cost identity in numbers: agreement with the derivation, golden values, guards, invariances."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Rational as R  # noqa: N817 - the customary short form in exact test values

from analysis.inputs import InputError
from analysis.model import cost
from analysis.symbolic import cost as symbolic
from analysis.symbols import API_PRICE, COST, PRICE, TPUT, UTIL, with_constants

GOLDEN = Path(__file__).parents[1] / "golden" / "cost.csv"
PRICES = st.floats(1e-3, 1e4)
THROUGHPUTS = st.floats(1e-2, 1e7)
FRACTIONS = st.floats(1e-6, 1)
PER_MTOK = R(10**6, 3600)


@pytest.mark.parametrize(("p", "x", "u"), [(33, 1100, R(3, 10)), (98, 5000, R(1)), (2, 40, R(1, 20))])
def test_cost_agrees_with_derivation(p, x, u):
    exact = symbolic.cost_per_token().subs({PRICE: p, TPUT: x, UTIL: u}) * PER_MTOK
    quoted = with_constants(symbolic.cost_per_mtok()).subs({PRICE: p, TPUT: x, UTIL: u})
    numeric = cost.cost_usd_per_mtok(float(p), node_tok_per_s=float(x), utilization=float(u))
    assert exact == quoted
    assert numeric == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(("c", "p", "x", "u"), [(3, 33, 1100, R(3, 10)), (R(1, 2), 98, 5000, R(1))])
def test_inverses_agree_with_derivation(c, p, x, u):
    point = {COST: c / PER_MTOK, API_PRICE: c / PER_MTOK, PRICE: p, TPUT: x, UTIL: u}
    c, p, x, u = (float(value) for value in (c, p, x, u))
    assert cost.node_tok_per_s_at_cost(c, price_usd_per_node_hour=p, utilization=u) == pytest.approx(
        float(symbolic.throughput_at_cost().subs(point)), rel=1e-12
    )
    needed = cost.utilization_at_cost(c, price_usd_per_node_hour=p, node_tok_per_s=x)
    assert needed == pytest.approx(float(symbolic.utilization_at_cost().subs(point)), rel=1e-12)
    assert needed == pytest.approx(float(symbolic.breakeven_utilization().subs(point)), rel=1e-12)
    assert cost.price_usd_per_node_hour_at_cost(c, node_tok_per_s=x, utilization=u) == pytest.approx(
        float(symbolic.price_at_cost().subs(point)), rel=1e-12
    )


@pytest.mark.parametrize("row", list(csv.DictReader(GOLDEN.read_text().splitlines())), ids=lambda row: row["locator"])
def test_published_worked_examples(row):
    """Published sums, to half a unit in their last printed digit."""
    ours = cost.cost_usd_per_mtok(
        float(row["price_usd_per_node_hour"]),
        node_tok_per_s=float(row["node_tok_per_s"]),
        utilization=float(row["utilization"]),
    )
    assert ours == pytest.approx(float(row["cost_usd_per_mtok"]), abs=0.5 * 10 ** -int(row["digits"]))


def test_utilization_divides_tokens_not_the_bill():
    """A published page halves the monthly bill at half use; the bill of an always-on node is fixed.

    https://dataku-5px.pages.dev/blog/cost-running-llama-3-1-405b-full-math: 505.7 at full use, so 1,011 at half.
    """
    assert cost.cost_usd_per_mtok(32.77, node_tok_per_s=18, utilization=0.5) == pytest.approx(1011, abs=1)


def test_price_to_throughput_and_back():
    """2.50 an hour at 15 to 25 a million is 46 to 28 tokens a second.

    https://drpranayjha.com/?p=8265&post_type=post
    """
    assert cost.node_tok_per_s_at_cost([15, 25], price_usd_per_node_hour=2.5, utilization=1) == pytest.approx(
        [46.3, 27.8], abs=0.05
    )
    assert cost.node_tok_per_s_at_cost([1.5, 2.5], price_usd_per_node_hour=2.5, utilization=1) == pytest.approx(
        [463, 278], abs=0.5
    )


@given(PRICES, THROUGHPUTS, FRACTIONS)
def test_round_trips(p, x, u):
    c = cost.cost_usd_per_mtok(p, node_tok_per_s=x, utilization=u)
    assert cost.node_tok_per_s_at_cost(c, price_usd_per_node_hour=p, utilization=u) == pytest.approx(x)
    assert cost.utilization_at_cost(c, price_usd_per_node_hour=p, node_tok_per_s=x) == pytest.approx(u)
    assert cost.price_usd_per_node_hour_at_cost(c, node_tok_per_s=x, utilization=u) == pytest.approx(p)


@given(PRICES, THROUGHPUTS, FRACTIONS, st.floats(1.01, 100))
def test_monotone_and_scale_invariant(p, x, u, k):
    c = cost.cost_usd_per_mtok(p, node_tok_per_s=x, utilization=u)
    assert cost.cost_usd_per_mtok(p * k, node_tok_per_s=x, utilization=u) == pytest.approx(c * k)
    assert cost.cost_usd_per_mtok(p, node_tok_per_s=x * k, utilization=u) < c
    assert cost.cost_usd_per_mtok(p, node_tok_per_s=x, utilization=u / k) > c
    # counted in thousands of tokens at a thousand times fewer of them, the price is the same
    assert cost.cost_usd_per_mtok(p / 1000, node_tok_per_s=x / 1000, utilization=u) == pytest.approx(c)


def test_scalar_equals_one_element_array_and_order_does_not_matter():
    x = np.array([10.0, 1000.0, 7.0])
    whole = cost.cost_usd_per_mtok(33, node_tok_per_s=x, utilization=0.5)
    assert whole[::-1] == pytest.approx(cost.cost_usd_per_mtok(33, node_tok_per_s=x[::-1], utilization=0.5))
    one = cost.cost_usd_per_mtok(33, node_tok_per_s=1000.0, utilization=0.5)
    assert isinstance(one, float)
    assert one == whole[1]


def test_a_free_node_costs_nothing():
    """Zero is a price."""
    assert cost.cost_usd_per_mtok(0, node_tok_per_s=10, utilization=1) == 0


GOOD = {"price_usd_per_node_hour": 33.0, "node_tok_per_s": 100.0, "utilization": 0.5, "cost_usd_per_mtok": 1.0}
BAD = {
    "price_usd_per_node_hour": [-1, float("nan")],
    "node_tok_per_s": [0, -5, float("inf")],
    "utilization": [0, 1.2, -0.1],
    "cost_usd_per_mtok": [-1],
}


@pytest.mark.parametrize(
    ("function", "unknown"),
    [
        (cost.cost_usd_per_mtok, "cost_usd_per_mtok"),
        (cost.node_tok_per_s_at_cost, "node_tok_per_s"),
        (cost.utilization_at_cost, "utilization"),
        (cost.price_usd_per_node_hour_at_cost, "price_usd_per_node_hour"),
    ],
)
def test_each_guard_fires_and_names_argument_and_value(function, unknown):
    for name, values in BAD.items():
        for value in values if name != unknown else []:
            arguments = {k: v for k, v in GOOD.items() if k != unknown} | {name: value}
            with pytest.raises(InputError, match=f"^{name}: got {float(value)}, expected"):
                function(**arguments)
            with pytest.raises(InputError, match=f"^{name}: got {float(value)}, expected"):
                function(**arguments | {name: np.array([GOOD[name], value])})


def test_at_fixed_demand_a_faster_node_costs_the_same():
    slow, fast = (
        cost.cost_usd_per_mtok_at_demand(33, rate_req_per_s=1, output_tokens=300, node_tok_per_s=x) for x in (400, 4000)
    )
    assert slow == pytest.approx(fast)
    assert slow == pytest.approx(33e6 / 3600 / 300)


def test_demand_above_throughput_is_refused():
    with pytest.raises(InputError, match=r"demand over node_tok_per_s: got 3.0, expected a fraction"):
        cost.cost_usd_per_mtok_at_demand(33, rate_req_per_s=1, output_tokens=300, node_tok_per_s=100)


def test_sweep_has_every_pair_once():
    frame = cost.sweep_utilization(33, node_tok_per_s=[100, 200], utilization=[0.1, 0.5, 1])
    assert len(frame.drop_duplicates(["node_tok_per_s", "utilization"])) == 6
    row = frame[(frame.node_tok_per_s == 200) & (frame.utilization == 0.5)].cost_usd_per_mtok.item()
    assert row == cost.cost_usd_per_mtok(33, node_tok_per_s=200, utilization=0.5)


def test_breakeven_sweep_pairs_throughputs_with_prices():
    frame = cost.sweep_breakeven(36, node_tok_per_s=[1000, 10000], api_usd_per_mtok=[10, 1])
    assert frame.breakeven_utilization.tolist() == pytest.approx([1, 10, 0.1, 1])


def test_demand_sweep_keeps_the_cost_and_lowers_the_utilization():
    frame = cost.sweep_demand(36, rate_req_per_s=1, output_tokens=500, node_tok_per_s=[1000, 5000])
    assert frame.utilization.tolist() == pytest.approx([0.5, 0.1])
    assert frame.cost_usd_per_mtok.tolist() == pytest.approx([20, 20])
    assert frame.cost_full_usd_per_mtok.tolist() == pytest.approx([10, 2])
