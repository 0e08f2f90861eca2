"""The cost identity and what follows from it, as expressions.

No numbers and no data: the symbols stand in `analysis.symbols`, their values in `analysis.reference`.
"""

from __future__ import annotations

from sympy import Expr, solve

from analysis.symbols import ANSWER, API_PRICE, COST, PRICE, RATE, SEC_PER_HOUR, TOK_PER_MTOK, TPUT, UTIL


def cost_per_token() -> Expr:
    """Cost of one token, [USD/token]:  c = p / (X u)."""
    return PRICE / (TPUT * UTIL)


def cost_per_mtok() -> Expr:
    """Cost of a million tokens in the units in which people quote it, [USD]:  10^6 p / (3600 X u)."""
    return TOK_PER_MTOK * PRICE / (SEC_PER_HOUR * TPUT * UTIL)


def throughput_at_cost() -> Expr:
    """Throughput at which a token costs c, [token/h]:  X = p / (c u)."""
    return _solved_for(TPUT)


def utilization_at_cost() -> Expr:
    """Utilization at which a token costs c, [1]:  u = p / (c X). Above 1 nothing reaches that cost."""
    return _solved_for(UTIL)


def price_at_cost() -> Expr:
    """Node price at which a token costs c, [USD/h]:  p = c X u."""
    return _solved_for(PRICE)


def breakeven_utilization() -> Expr:
    """Utilization above which the own node undercuts an API, [1]:  u* = p / (X p_API)."""
    return utilization_at_cost().subs(COST, API_PRICE)


def utilization_at_demand() -> Expr:
    """Utilization that a fixed demand leaves, [1]:  u = lambda S_out / X."""
    return RATE * ANSWER / TPUT


def cost_at_demand() -> Expr:
    """Cost of one token of an always-on node at fixed demand, [USD/token]:  p / (lambda S_out).

    The throughput cancels: a faster node does the same work in less of the hour, and the hour is paid.
    """
    return cost_per_token().subs(UTIL, utilization_at_demand())


def _solved_for(symbol: Expr) -> Expr:
    (solution,) = solve(COST - cost_per_token(), symbol)
    return solution
