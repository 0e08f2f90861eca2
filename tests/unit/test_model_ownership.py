"""The hour of a node by how it is had: golden values, agreement with the derivation, every limit case, guards."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sympy import Rational as R  # noqa: N817 - the customary short form in exact test values

from analysis.inputs import InputError
from analysis.model import ownership
from analysis.reference.specs import Ownership
from analysis.symbolic import cost as symbolic
from analysis.symbols import (
    DRAW,
    ELECTRICITY,
    INTEREST,
    MONTHS,
    POWER,
    PUE,
    PURCHASE,
    RESIDUAL,
    SPACE,
    STAFF,
    SUBLET,
    UPKEEP,
    with_constants,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "ownership.csv"
#: What the worked table holds fixed: 10 % a year, PUE 1.3, 0.09 USD/kWh, 184.06 USD/kW_month, 5 % upkeep.
TERMS = Ownership(
    purchase_usd=255_237.0,
    power_kw=10.2,
    power_share=1.0,
    pue=1.3,
    electricity_usd_per_kwh=0.09,
    colocation_usd_per_kw_month=184.06,
    life_years=4.0,
    residual_share=0.1,
    interest_per_year=0.1,
    upkeep_per_year=0.05,
)
CAPITAL = {"life_years": 4.0, "residual_share": 0.1, "interest_per_year": 0.1}


@pytest.mark.parametrize("row", list(csv.DictReader(GOLDEN.read_text().splitlines())), ids=lambda row: row["locator"])
def test_worked_table(row):
    """Worked apart from this code, printed to cents."""
    terms = replace(
        TERMS, **{name: float(row[name]) for name in ("purchase_usd", "power_kw", "life_years", "residual_share")}
    )
    hour = ownership.bought_usd_per_node_hour(terms)
    for part in ("capital_usd", "energy_usd", "space_usd", "upkeep_usd"):
        assert getattr(hour, part) == pytest.approx(float(row[part]), abs=0.005)
    # the total is the sum of what was rounded
    assert hour.total_usd == pytest.approx(float(row["total_usd"]), abs=0.02)


def test_a_textbook_loan():
    """The standard example of an annuity: 100,000 at 6 % over 30 years is 599.55 a month."""
    hourly = ownership.capital_usd_per_hour(1e5, life_years=30, residual_share=0, interest_per_year=0.06)
    assert hourly * 730 == pytest.approx(599.55, abs=0.005)


@pytest.mark.parametrize(("rho", "i", "n"), [(R(1, 10), R(1, 120), 48), (R(0), R(1, 200), 36), (R(1, 4), R(1, 50), 7)])
def test_capital_agrees_with_derivation(rho, i, n):
    exact = with_constants(symbolic.capital_per_hour()).subs({PURCHASE: 250_000, RESIDUAL: rho, INTEREST: i, MONTHS: n})
    ours = ownership.capital_usd_per_hour(
        250_000, life_years=n / 12, residual_share=float(rho), interest_per_year=float(12 * i)
    )
    assert ours == pytest.approx(float(exact), rel=1e-12)


def test_the_other_parts_agree_with_the_derivation():
    values = {POWER: R(102, 10), DRAW: R(3, 4), PUE: R(13, 10), ELECTRICITY: R(9, 100), SPACE: 184, UPKEEP: R(1, 20)}
    values |= {PURCHASE: 250_000, STAFF: 400_000, SUBLET: 7}
    terms = replace(
        TERMS, purchase_usd=250_000, power_share=0.75, colocation_usd_per_kw_month=184, staff_usd_per_year=400_000
    )
    hour = ownership.bought_usd_per_node_hour(terms)
    for ours, derived in (
        (hour.energy_usd, symbolic.energy_per_hour()),
        (hour.space_usd, symbolic.space_per_hour()),
        (hour.upkeep_usd, symbolic.upkeep_per_hour()),
        (hour.staff_usd, symbolic.staff_per_hour()),
        (ownership.sunk_usd_per_node_hour(terms, sublet_usd_per_node_hour=7), symbolic.avoidable_per_hour()),
    ):
        assert ours == pytest.approx(float(with_constants(derived).subs(values)), rel=1e-12)


def test_without_interest_the_annuity_is_a_straight_line():
    """C (1 - rho) / (730 * 12 L), and an interest too small to matter gives the same."""
    line = 250_000 * 0.9 / (730 * 48)
    for interest in (0.0, 1e-14):
        ours = ownership.capital_usd_per_hour(250_000, **CAPITAL | {"interest_per_year": interest})
        assert ours == pytest.approx(line, rel=1e-12)
    mixed = ownership.capital_usd_per_hour(250_000, **CAPITAL | {"interest_per_year": np.array([0.0, 0.1])})
    assert mixed[0] == pytest.approx(line)
    assert mixed[1] > line


def test_a_node_that_keeps_its_value_costs_the_interest_alone():
    ours = ownership.capital_usd_per_hour(73_000, life_years=[1, 9], residual_share=1, interest_per_year=0.12)
    assert ours == pytest.approx([73_000 * 0.01 / 730] * 2)
    assert ownership.capital_usd_per_hour(73_000, life_years=3, residual_share=1, interest_per_year=0) == 0


def test_a_node_that_loses_all_costs_a_whole_annuity():
    all_lost, some_left = (
        ownership.capital_usd_per_hour(250_000, **CAPITAL | {"residual_share": rho}) for rho in (0.0, 0.1)
    )
    present_value_of_the_rest = 0.1 / (1 + 0.1 / 12) ** 48
    assert some_left == pytest.approx(all_lost * (1 - present_value_of_the_rest))


def test_an_endless_life_costs_the_interest_and_a_month_the_whole_price():
    endless = ownership.capital_usd_per_hour(73_000, life_years=1e6, residual_share=0, interest_per_year=0.12)
    assert endless == pytest.approx(73_000 * 0.01 / 730)
    month = ownership.capital_usd_per_hour(73_000, life_years=1 / 12, residual_share=0, interest_per_year=0.12)
    assert month == pytest.approx(73_000 * 1.01 / 730)


def test_capital_rises_with_interest_and_falls_with_life_and_residual():
    for name, values, rises in (
        ("interest_per_year", [0, 0.05, 0.1, 0.2], True),
        ("life_years", [2, 3, 4, 6], False),
        ("residual_share", [0, 0.1, 0.3, 1], False),
    ):
        steps = np.diff(ownership.capital_usd_per_hour(250_000, **CAPITAL | {name: np.array(values)}))
        assert (steps > 0).all() if rises else (steps < 0).all()


def test_a_free_node_with_free_power_costs_its_space_and_staff():
    terms = replace(TERMS, purchase_usd=0, electricity_usd_per_kwh=0, staff_usd_per_year=87_600)
    hour = ownership.bought_usd_per_node_hour(terms)
    assert (hour.capital_usd, hour.energy_usd, hour.upkeep_usd, hour.staff_usd) == (0, 0, 0, 10)
    assert hour.total_usd == pytest.approx(10 + 10.2 * 184.06 / 730)


def test_two_engineers_cost_more_than_the_node():
    """Two at a loaded 200,000 each are 45.7 an hour."""
    hour = ownership.bought_usd_per_node_hour(replace(TERMS, staff_usd_per_year=400_000))
    assert hour.staff_usd == pytest.approx(45.7, abs=0.05)
    assert hour.staff_usd > hour.total_usd - hour.staff_usd


def test_a_reservation_without_advance_payment_is_its_hourly_rate():
    terms = {"term_years": 3, "interest_per_year": 0.1}
    assert ownership.reserved_usd_per_node_hour(33, upfront_usd=0, **terms) == 33
    assert ownership.reserved_usd_per_node_hour(0, upfront_usd=26_280 * 20, **terms) > 20
    free_money = terms | {"interest_per_year": 0}
    assert ownership.reserved_usd_per_node_hour(1, upfront_usd=26_280 * 20, **free_money) == pytest.approx(21)


def test_what_is_paid_either_way_does_not_enter_a_sunk_node():
    dear = replace(TERMS, purchase_usd=1e7, colocation_usd_per_kw_month=1e4, upkeep_per_year=1, staff_usd_per_year=1e6)
    assert ownership.sunk_usd_per_node_hour(dear) == ownership.sunk_usd_per_node_hour(TERMS)
    assert ownership.sunk_usd_per_node_hour(TERMS) == ownership.bought_usd_per_node_hour(TERMS).energy_usd


def test_a_tenant_makes_a_sunk_node_as_dear_as_his_rent():
    alone, let = (ownership.sunk_usd_per_node_hour(TERMS, sublet_usd_per_node_hour=rent) for rent in (0, 19.7))
    assert let - alone == pytest.approx(19.7)


def test_scalar_equals_one_element_array():
    terms = replace(TERMS, life_years=np.array([4.0]), residual_share=np.array([0.1]))
    assert ownership.bought_usd_per_node_hour(terms).total_usd[0] == pytest.approx(
        ownership.bought_usd_per_node_hour(TERMS).total_usd, rel=1e-15
    )
    assert isinstance(ownership.bought_usd_per_node_hour(TERMS).total_usd, float)


BAD = {
    "purchase_usd": -1.0,
    "power_kw": -1.0,
    "power_share": 1.2,
    "pue": 0.9,
    "electricity_usd_per_kwh": -0.1,
    "colocation_usd_per_kw_month": -1.0,
    "life_years": 0.0,
    "residual_share": 1.1,
    "interest_per_year": -0.01,
    "upkeep_per_year": -0.1,
    "staff_usd_per_year": -1.0,
}


@pytest.mark.parametrize(("name", "value"), BAD.items())
def test_each_guard_fires_and_names_field_and_value(name, value):
    for bad in (value, np.array([getattr(TERMS, name), value]), float("nan")):
        with pytest.raises(InputError, match=f"^{name}: got (nan|{value}), expected"):
            ownership.bought_usd_per_node_hour(replace(TERMS, **{name: bad}))


def test_guards_of_reservation_and_sublet():
    with pytest.raises(InputError, match=r"hourly_usd: got -1\.0"):
        ownership.reserved_usd_per_node_hour(-1, upfront_usd=0, term_years=1, interest_per_year=0)
    with pytest.raises(InputError, match=r"upfront_usd: got -1\.0"):
        ownership.reserved_usd_per_node_hour(1, upfront_usd=-1, term_years=1, interest_per_year=0)
    with pytest.raises(InputError, match=r"sublet_usd_per_node_hour: got -1\.0"):
        ownership.sunk_usd_per_node_hour(TERMS, sublet_usd_per_node_hour=-1)


def test_the_comparison_has_each_mode_and_its_parts_add_up():
    frame = ownership.compare(TERMS, rent_usd=55.04, reserved_usd=33, sublet_usd=10)
    assert frame["mode"].tolist() == list(ownership.MODES)
    parts = frame.drop(columns=["mode", "total_usd"])
    assert parts.sum(axis=1).tolist() == pytest.approx(frame["total_usd"].tolist())
    assert frame.set_index("mode")["total_usd"].is_monotonic_decreasing
    assert "reserved" not in set(ownership.compare(TERMS, rent_usd=55.04)["mode"])


def test_a_discount_carries_over_and_none_is_the_list_price():
    assert ownership.committed_usd_at_same_discount(50.0, then_listed_usd=80.0, then_committed_usd=80.0) == 50
    assert ownership.committed_usd_at_same_discount(0.0, then_listed_usd=80.0, then_committed_usd=40.0) == 0
    with pytest.raises(InputError, match="then_listed_usd: got 0"):
        ownership.committed_usd_at_same_discount(50.0, then_listed_usd=0.0, then_committed_usd=40.0)


def test_the_band_around_the_quoted_33_dollars():
    """By hand: 57.63 / 98.32 and 7.67 / 11.06 of the 55.04 on the list are 32.3 and 38.2."""
    from datetime import date

    from analysis.reference import tables

    found = ownership.discounts_carried_over(
        tables.node_prices(as_of=date(2025, 5, 31), prices=tables.own_prices.BOOK).rows,
        listed_usd=55.04,
        committed_terms=["reserved-1yr-estimate", "commit-1yr"],
        instances=["p5.48xlarge", "a3-highgpu-8g"],
    )
    assert found["implied_usd"].round(1).tolist() == [32.3, 38.2]
