"""What an hour of a node costs by how it is had: rented, reserved, bought, or already paid for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.inputs import Door, fraction, not_negative, positive, scalar_or_array, share
from analysis.reference.specs import Ownership
from analysis.units import HOURS_PER_MONTH, HOURS_PER_YEAR, MONTHS_PER_YEAR

#: The ways to have a node. ``sunk`` is one that is already paid for.
MODES = ("rent", "reserved", "bought", "sunk")

_pue = Door("a number, 1 or above", lambda a: a >= 1)


@dataclass(frozen=True)
class OwnedHour:
    """What one hour of a bought node costs, part by part. [USD/node_hour]."""

    capital_usd: Any
    energy_usd: Any
    space_usd: Any
    upkeep_usd: Any
    staff_usd: Any

    @property
    def total_usd(self) -> Any:
        """All parts together. [USD/node_hour]."""
        return self.capital_usd + self.energy_usd + self.space_usd + self.upkeep_usd + self.staff_usd


def capital_usd_per_hour(
    purchase_usd: ArrayLike, *, life_years: ArrayLike, residual_share: ArrayLike, interest_per_year: ArrayLike
) -> Any:
    r"""Monthly annuity of a purchase, less what the node fetches at its end, for one hour.

    .. math:: \left(C - \frac{\rho\, C}{(1 + i)^n}\right) \frac{i}{1 - (1 + i)^{-n}} \cdot \frac{1}{730},
              \quad i = r / 12,\; n = 12\, L

    Parameters
    ----------
    purchase_usd : float or array
        Price of the whole node. [USD]
    life_years : float or array
        Years until it is sold or scrapped, above 0. [year]
    residual_share : float or array
        What it then fetches over the purchase price, 0 to 1. [1]
    interest_per_year : float or array
        Cost of capital, 0 or above. [1/year]

    Returns
    -------
    float or array, broadcast shape
        Capital for one hour of the clock. [USD/node_hour]

    Raises
    ------
    InputError
        If an argument is outside its domain; the message names it and the value.

    Notes
    -----
    Derived in `analysis.symbolic.cost.capital_per_hour`. Limits: without interest the straight line
    ``C (1 - residual) / (730 * 12 L)``; a node that loses no value costs the interest alone; an endless life too.

    Examples
    --------
    >>> round(capital_usd_per_hour(255_237.0, life_years=4.0, residual_share=0.1, interest_per_year=0.1), 2)
    8.27
    """
    purchase = not_negative("purchase_usd", purchase_usd)
    months = positive("life_years", life_years) * MONTHS_PER_YEAR
    residual = share("residual_share", residual_share)
    interest = not_negative("interest_per_year", interest_per_year) / MONTHS_PER_YEAR
    # through logarithms, so that a small interest does not drown in rounding
    shrinks = np.exp(-months * np.log1p(interest))
    lost = -np.expm1(-months * np.log1p(interest))
    with np.errstate(divide="ignore", invalid="ignore"):
        annuity = np.where(interest > 0, (1 - residual * shrinks) * interest / lost, (1 - residual) / months)
    return scalar_or_array(np.asarray(purchase * annuity / HOURS_PER_MONTH))


def energy_usd_per_hour(terms: Ownership) -> Any:
    r"""Electricity of a node with its share of the cooling, for one hour.

    .. math:: P_\mathrm{max}\, d_\mathrm{avg}\, \mathrm{PUE}\, p_\mathrm{el}

    Parameters
    ----------
    terms : Ownership
        Its power limit [kW], average draw [1], PUE [1] and price of electricity [USD/kWh].

    Returns
    -------
    float or array, broadcast shape
        Energy. [USD/node_hour]

    Raises
    ------
    InputError
        If a field is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.cost.energy_per_hour`.

    Examples
    --------
    >>> terms = Ownership(255_237.0, 10.2, 1.0, 1.3, 0.09, 184.06, 4.0, 0.1, 0.1, 0.05)
    >>> round(energy_usd_per_hour(terms), 2)
    1.19
    """
    power = not_negative("power_kw", terms.power_kw) * fraction("power_share", terms.power_share)
    price = not_negative("electricity_usd_per_kwh", terms.electricity_usd_per_kwh)
    return scalar_or_array(power * _pue("pue", terms.pue) * price)


def bought_usd_per_node_hour(terms: Ownership) -> OwnedHour:
    r"""Cost of one hour of a bought node, part by part.

    .. math:: \mathrm{capital} + P_\mathrm{max}\, d_\mathrm{avg}\, \mathrm{PUE}\, p_\mathrm{el}
              + \frac{P_\mathrm{max}\, p_\mathrm{space}}{730} + \frac{\mu\, C}{8760} + \frac{s}{8760}

    Parameters
    ----------
    terms : Ownership
        What it takes to own the node.

    Returns
    -------
    OwnedHour
        Its parts and, as ``total_usd``, their sum. [USD/node_hour]

    Raises
    ------
    InputError
        If a field is outside its domain; the message names it and the value.

    Notes
    -----
    Each part is derived in `analysis.symbolic.cost`. An hour of the clock, 8,760 a year, whether used or not.
    Space is charged by contracted power, which is the limit and not the draw.

    Examples
    --------
    >>> terms = Ownership(255_237.0, 10.2, 1.0, 1.3, 0.09, 184.06, 4.0, 0.1, 0.1, 0.05)
    >>> round(bought_usd_per_node_hour(terms).total_usd, 2)
    13.49
    """
    return OwnedHour(
        capital_usd=capital_usd_per_hour(
            terms.purchase_usd,
            life_years=terms.life_years,
            residual_share=terms.residual_share,
            interest_per_year=terms.interest_per_year,
        ),
        energy_usd=energy_usd_per_hour(terms),
        space_usd=scalar_or_array(
            not_negative("power_kw", terms.power_kw)
            * not_negative("colocation_usd_per_kw_month", terms.colocation_usd_per_kw_month)
            / HOURS_PER_MONTH
        ),
        upkeep_usd=scalar_or_array(
            not_negative("upkeep_per_year", terms.upkeep_per_year)
            * not_negative("purchase_usd", terms.purchase_usd)
            / HOURS_PER_YEAR
        ),
        staff_usd=scalar_or_array(not_negative("staff_usd_per_year", terms.staff_usd_per_year) / HOURS_PER_YEAR),
    )


def reserved_usd_per_node_hour(
    hourly_usd: ArrayLike, *, upfront_usd: ArrayLike, term_years: ArrayLike, interest_per_year: ArrayLike
) -> Any:
    r"""Price of one hour of a reservation: the hourly rate, and the advance payment spread over the term.

    Parameters
    ----------
    hourly_usd : float or array
        Rate that is billed for every hour of the term, used or not. [USD/node_hour]
    upfront_usd : float or array
        Payment at the start, 0 if there is none. [USD]
    term_years : float or array
        Length of the commitment. [year]
    interest_per_year : float or array
        Cost of capital. [1/year]

    Returns
    -------
    float or array, broadcast shape
        Price of one hour of the clock. [USD/node_hour]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    The advance payment is a purchase without residual value, `capital_usd_per_hour`. Limits: without advance
    payment the hourly rate; without interest ``hourly + upfront / (8760 * years)``.

    Examples
    --------
    >>> reserved_usd_per_node_hour(20.0, upfront_usd=87_600.0, term_years=1.0, interest_per_year=0.0)
    30.0
    """
    hourly = not_negative("hourly_usd", hourly_usd)
    spread = capital_usd_per_hour(
        not_negative("upfront_usd", upfront_usd),
        life_years=positive("term_years", term_years),
        residual_share=0.0,
        interest_per_year=interest_per_year,
    )
    return scalar_or_array(np.asarray(hourly + spread))


def committed_usd_at_same_discount(
    listed_usd: ArrayLike, *, then_listed_usd: ArrayLike, then_committed_usd: ArrayLike
) -> Any:
    r"""Price with a commitment that a known discount, from another time or seller, would give today.

    .. math:: p_\mathrm{list}\, \frac{p'_\mathrm{commit}}{p'_\mathrm{list}}

    Parameters
    ----------
    listed_usd : float or array
        List price today. [USD/node_hour]
    then_listed_usd, then_committed_usd : float or array
        The pair that shows the discount; the first is above 0. [USD/node_hour]

    Returns
    -------
    float or array, broadcast shape
        An inference, no price list. [USD/node_hour]

    Raises
    ------
    InputError
        If a price is negative, or the one that is divided by is 0.

    Examples
    --------
    >>> round(committed_usd_at_same_discount(55.04, then_listed_usd=98.32, then_committed_usd=57.63), 2)
    32.26
    """
    listed = not_negative("listed_usd", listed_usd)
    committed = not_negative("then_committed_usd", then_committed_usd)
    return scalar_or_array(np.asarray(listed * committed / positive("then_listed_usd", then_listed_usd)))


def discounts_carried_over(
    rows: pd.DataFrame, *, listed_usd: float, committed_terms: Sequence[str], instances: Sequence[str]
) -> pd.DataFrame:
    """Carry the discounts of known commitments over to a list price.

    Parameters
    ----------
    rows : DataFrame
        Prices of nodes on one day: ``provider``, ``instance``, ``region``, ``term``, ``quantity``, ``value``.
    listed_usd : float
        The list price that they are carried over to. [USD/node_hour]
    committed_terms : sequence of str
        Terms of the commitments.
    instances : sequence of str
        Instances whose discounts are looked at.

    Returns
    -------
    DataFrame
        One row for each commitment with a list price of the same instance and region on that day: ``provider``,
        ``instance``, ``term``, ``then_committed_usd``, ``then_listed_usd``, ``implied_usd``.

    Raises
    ------
    InputError
        As `committed_usd_at_same_discount`.

    Examples
    --------
    >>> rows = pd.DataFrame(
    ...     [("a", "n", "x", "on-demand", "price", 100.0), ("a", "n", "x", "commit-1yr", "price", 60.0)],
    ...     columns=["provider", "instance", "region", "term", "quantity", "value"],
    ... )
    >>> found = discounts_carried_over(rows, listed_usd=50.0, committed_terms=["commit-1yr"], instances=["n"])
    >>> found["implied_usd"].tolist()
    [30.0]
    """
    priced = rows[(rows["quantity"] == "price") & rows["instance"].isin(list(instances))]
    place = ["provider", "instance", "region"]
    listed = priced[priced["term"] == "on-demand"][[*place, "value"]].rename(columns={"value": "then_listed_usd"})
    pairs = (
        priced[priced["term"].isin(list(committed_terms))]
        .rename(columns={"value": "then_committed_usd"})
        .merge(listed, on=place)
    )
    implied = committed_usd_at_same_discount(
        listed_usd, then_listed_usd=pairs["then_listed_usd"], then_committed_usd=pairs["then_committed_usd"]
    )
    columns = ["provider", "instance", "term", "then_committed_usd", "then_listed_usd", "implied_usd"]
    return pairs.assign(implied_usd=implied)[columns].sort_values("implied_usd", kind="stable", ignore_index=True)


def sunk_usd_per_node_hour(terms: Ownership, *, sublet_usd_per_node_hour: ArrayLike = 0.0) -> Any:
    r"""Price at which to count an hour of a node that is already paid for: what using it costs, and what it forgoes.

    .. math:: P_\mathrm{max}\, d_\mathrm{avg}\, \mathrm{PUE}\, p_\mathrm{el} + p_\mathrm{let}

    Parameters
    ----------
    terms : Ownership
        What it takes to own the node. Purchase, space, upkeep and staff are paid either way and do not enter.
    sublet_usd_per_node_hour : float or array
        Rent, after fees, that somebody would pay for the hour; 0 if nobody may use the node. [USD/node_hour]

    Returns
    -------
    float or array, broadcast shape
        Avoidable cost and opportunity cost. [USD/node_hour]

    Raises
    ------
    InputError
        If a field or the rent is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.cost.avoidable_per_hour`. Counts the whole draw as avoidable: an idle node draws
    some of it, so this is the dear end. Limits: without a tenant electricity alone decides.

    Examples
    --------
    >>> terms = Ownership(255_237.0, 10.2, 1.0, 1.3, 0.09, 184.06, 4.0, 0.1, 0.1, 0.05)
    >>> round(sunk_usd_per_node_hour(terms, sublet_usd_per_node_hour=10.0), 2)
    11.19
    """
    rent = not_negative("sublet_usd_per_node_hour", sublet_usd_per_node_hour)
    return scalar_or_array(np.asarray(np.asarray(energy_usd_per_hour(terms)) + rent))


def compare(
    terms: Ownership, *, rent_usd: float, reserved_usd: float | None = None, sublet_usd: float = 0.0
) -> pd.DataFrame:
    """Tabulate one node in each way to have it.

    Parameters
    ----------
    terms : Ownership
        What it takes to own it.
    rent_usd : float
        Price by the hour, without commitment. [USD/node_hour]
    reserved_usd : float, optional
        Price with a commitment; left out if there is none. [USD/node_hour]
    sublet_usd : float
        Rent that somebody else would pay for a node that is already paid for. [USD/node_hour]

    Returns
    -------
    DataFrame
        One row for each mode: ``mode``, the parts ``price_usd``, ``capital_usd``, ``energy_usd``, ``space_usd``,
        ``upkeep_usd``, ``staff_usd``, ``sublet_usd`` and their ``total_usd``; 0 where a mode has no such part.

    Raises
    ------
    InputError
        As the functions of the modes.

    Examples
    --------
    >>> terms = Ownership(255_237.0, 10.2, 1.0, 1.3, 0.09, 184.06, 4.0, 0.1, 0.1, 0.05)
    >>> compare(terms, rent_usd=55.04).set_index("mode").total_usd.round(2).to_dict()
    {'rent': 55.04, 'bought': 13.49, 'sunk': 1.19}
    """
    bought = bought_usd_per_node_hour(terms)
    rows = [
        {"mode": "rent", "price_usd": float(not_negative("rent_usd", rent_usd))},
        {
            "mode": "bought",
            "capital_usd": bought.capital_usd,
            "energy_usd": bought.energy_usd,
            "space_usd": bought.space_usd,
            "upkeep_usd": bought.upkeep_usd,
            "staff_usd": bought.staff_usd,
        },
        {
            "mode": "sunk",
            "energy_usd": sunk_usd_per_node_hour(terms),
            "sublet_usd": float(not_negative("sublet_usd", sublet_usd)),
        },
    ]
    if reserved_usd is not None:
        rows.insert(1, {"mode": "reserved", "price_usd": float(not_negative("reserved_usd", reserved_usd))})
    parts = ["price_usd", "capital_usd", "energy_usd", "space_usd", "upkeep_usd", "staff_usd", "sublet_usd"]
    frame = pd.DataFrame(rows, columns=["mode", *parts]).fillna(0.0)
    return frame.assign(total_usd=frame[parts].sum(axis=1))
