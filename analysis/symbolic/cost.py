"""The cost identity and what follows from it, as expressions.

No numbers and no data: the symbols stand in `analysis.symbols`, their values in `analysis.reference`.
"""

from __future__ import annotations

from sympy import Expr, ceiling, solve

from analysis.symbols import (
    ANSWER,
    API_PRICE,
    BILL,
    BUSY_HOURS,
    CACHED,
    COST,
    DISCOUNT,
    DRAW,
    ELECTRICITY,
    FASTER,
    HOURS_A_MONTH,
    HOURS_A_YEAR,
    IN_TPUT,
    IN_WEIGHT,
    INTEREST,
    MONTHS,
    PERIOD,
    POWER,
    PRICE,
    PRICE_HIT,
    PRICE_IN,
    PRICE_OUT,
    PROMPT,
    PUE,
    PURCHASE,
    RATE,
    READ_TPUT,
    REQ_TPUT,
    RESIDUAL,
    SEC_PER_HOUR,
    SPACE,
    STAFF,
    START_HOURS,
    STARTS,
    SUBLET,
    THINKING,
    TOK_PER_MTOK,
    TPUT,
    UPKEEP,
    USEFUL,
    UTIL,
    WRITE_TPUT,
)


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


def saving_of_a_faster_decoder() -> Expr:
    """Money saved by a faster decoder at fixed demand, [USD/h]:  p (ceil(D/X) - ceil(D/X')), D = lambda S_out.

    Zero unless it frees a whole node.
    """
    demand = RATE * ANSWER
    return PRICE * (ceiling(demand / TPUT) - ceiling(demand / FASTER))


def seconds_per_request() -> Expr:
    """Time that one request takes from a node at full use, [s/request].

    Reading and writing share the node, so their times add; a cached prefix is not read.
    """
    return (PROMPT - CACHED) / READ_TPUT + (ANSWER + THINKING) / WRITE_TPUT


def cost_per_request() -> Expr:
    """Cost of one request on a node, [USD/request]:  p / (R u)."""
    return PRICE / (REQ_TPUT * UTIL)


def cost_per_request_of_mix() -> Expr:
    """Cost of one request by what it is made of, [USD/request]:  p ((S_in - S_hit)/X_read + S_out/X_write) / u."""
    return cost_per_request().subs(REQ_TPUT, 1 / seconds_per_request())


def api_bill() -> Expr:
    """Bill of an API for one request, [USD/request].

    Linear in the tokens: nothing in it depends on how many requests run at once, or on idle hours.
    """
    return (1 - DISCOUNT) * ((PROMPT - CACHED) * PRICE_IN + CACHED * PRICE_HIT + (ANSWER + THINKING) * PRICE_OUT)


def price_per_answer_token() -> Expr:
    """Price of a visible output token where hidden ones are billed too, [USD/token]:  p (1 + S_think/S_out)."""
    return PRICE_OUT * (1 + THINKING / ANSWER)


def breakeven_utilization_of_requests() -> Expr:
    """Utilization above which a node undercuts an API on whole requests, [1]:  u* = p / (R b)."""
    (solution,) = solve(cost_per_request() - BILL, UTIL)
    return solution


def breakeven_requests() -> Expr:
    """Volume at which a node that is paid for a whole period costs what an API bills, [request]:  p H / b."""
    return PRICE * PERIOD / BILL


def weighted_throughput() -> Expr:
    """Throughput in tokens that are worth an output token, [token/s]:  X + w X_in."""
    return TPUT + IN_WEIGHT * IN_TPUT


def utilization_scaled_to_zero() -> Expr:
    """Utilization of a node that is paid only while it has work and at each start, [1]."""
    return BUSY_HOURS / (BUSY_HOURS + STARTS * START_HOURS)


def cost_per_useful_token() -> Expr:
    """Cost of a token that is of use, [USD/token]:  c / q."""
    return cost_per_token() / USEFUL


def breakeven_useful_share() -> Expr:
    """Share of useful answers at which a node is as cheap as an API whose answers are all of use, [1]:  c / p_API."""
    (solution,) = solve(COST / USEFUL - API_PRICE, USEFUL)
    return solution


def capital_per_hour() -> Expr:
    """Monthly annuity of a purchase, less what the node fetches at its end, for one hour, [USD/h].

    Without interest the annuity is a straight line: C (1 - rho) / n.
    """
    present_value = PURCHASE - RESIDUAL * PURCHASE / (1 + INTEREST) ** MONTHS
    return present_value * INTEREST / (1 - (1 + INTEREST) ** -MONTHS) / HOURS_A_MONTH


def straight_line_per_hour() -> Expr:
    """Capital for one hour where money costs nothing, [USD/h]:  C (1 - rho) / (730 n)."""
    return PURCHASE * (1 - RESIDUAL) / (MONTHS * HOURS_A_MONTH)


def energy_per_hour() -> Expr:
    """Electricity of a node with its share of the hall, for one hour, [USD/h]."""
    return POWER * DRAW * PUE * ELECTRICITY


def space_per_hour() -> Expr:
    """Space by contracted power, for one hour, [USD/h]."""
    return POWER * SPACE / HOURS_A_MONTH


def upkeep_per_hour() -> Expr:
    """Repairs and support for one hour, [USD/h]."""
    return UPKEEP * PURCHASE / HOURS_A_YEAR


def staff_per_hour() -> Expr:
    """People for one hour of the clock, not of their work, [USD/h]."""
    return STAFF / HOURS_A_YEAR


def avoidable_per_hour() -> Expr:
    """Cost of using a node that is already paid for, [USD/h]: its electricity and the rent it would bring."""
    return energy_per_hour() + SUBLET


def _solved_for(symbol: Expr) -> Expr:
    (solution,) = solve(COST - cost_per_token(), symbol)
    return solution
