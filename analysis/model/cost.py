"""Cost of tokens: the identity between price, throughput, utilization and cost, every way round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.inputs import fraction, not_negative, positive, scalar_or_array
from analysis.units import SECONDS_PER_HOUR, TOKENS_PER_MTOK

#: What a throughput and a price can count. A cost has the kind of the throughput it was made from.
TOKEN_KINDS = ("output", "input", "total")


def cost_usd_per_mtok(price_usd_per_node_hour: ArrayLike, *, node_tok_per_s: ArrayLike, utilization: ArrayLike) -> Any:
    r"""Effective cost of a million tokens on an owned node.

    .. math:: c = \frac{10^6\, p_\mathrm{node}}{3600\, X\, u}

    Parameters
    ----------
    price_usd_per_node_hour : float or array, shape (...)
        Price of the whole node, not of one accelerator. Zero is a price. [USD/node_hour]
    node_tok_per_s : float or array, broadcastable
        Sustained tokens per second of the node at full use, of the kind that the cost is about. [token/s]
    utilization : float or array
        Fraction of the hour spent at that throughput, 0 < u <= 1. No default: idle is not free. [1]

    Returns
    -------
    float or array, broadcast shape
        Effective cost, for tokens of the same kind as ``node_tok_per_s``. [USD/Mtok]

    Raises
    ------
    InputError
        If a price is negative, a throughput is not positive, or u is outside (0, 1].
        The message names the argument and the offending value.

    Notes
    -----
    Derived in `analysis.symbolic.cost.cost_per_mtok`. Limits: a free node costs nothing;
    u -> 0 has no finite cost, so 0 raises; doubling X halves c. Excludes energy, staff and
    network unless the price has them.

    References
    ----------
    The identity is equation (eq-cost-identity) in chapter 1.

    Examples
    --------
    >>> round(cost_usd_per_mtok(33.0, node_tok_per_s=5000.0, utilization=1.0), 3)
    1.833
    """
    price = not_negative("price_usd_per_node_hour", price_usd_per_node_hour)
    throughput = positive("node_tok_per_s", node_tok_per_s)
    busy_fraction = fraction("utilization", utilization)
    return scalar_or_array(TOKENS_PER_MTOK * price / (SECONDS_PER_HOUR * throughput * busy_fraction))


def node_tok_per_s_at_cost(
    cost_usd_per_mtok: ArrayLike, *, price_usd_per_node_hour: ArrayLike, utilization: ArrayLike
) -> Any:
    r"""Throughput that a node needs for a given cost.

    .. math:: X = \frac{10^6\, p_\mathrm{node}}{3600\, c\, u}

    Parameters
    ----------
    cost_usd_per_mtok : float or array
        Cost to reach, above zero. [USD/Mtok]
    price_usd_per_node_hour : float or array
        Price of the whole node. [USD/node_hour]
    utilization : float or array
        Fraction of the hour at that throughput, 0 < u <= 1. [1]

    Returns
    -------
    float or array, broadcast shape
        Throughput at full use. [token/s]

    Raises
    ------
    InputError
        If an argument is outside its domain; the message names it and the value.

    Notes
    -----
    Inverse of `cost_usd_per_mtok`, derived in `analysis.symbolic.cost.throughput_at_cost`.

    Examples
    --------
    >>> round(node_tok_per_s_at_cost(10.0, price_usd_per_node_hour=33.0, utilization=0.5), 1)
    1833.3
    """
    cost = positive("cost_usd_per_mtok", cost_usd_per_mtok)
    price = not_negative("price_usd_per_node_hour", price_usd_per_node_hour)
    busy_fraction = fraction("utilization", utilization)
    return scalar_or_array(TOKENS_PER_MTOK * price / (SECONDS_PER_HOUR * cost * busy_fraction))


def utilization_at_cost(
    cost_usd_per_mtok: ArrayLike, *, price_usd_per_node_hour: ArrayLike, node_tok_per_s: ArrayLike
) -> Any:
    r"""Utilization that a node needs for a given cost; against an API's price, the break-even utilization.

    .. math:: u^* = \frac{10^6\, p_\mathrm{node}}{3600\, X\, c}

    Parameters
    ----------
    cost_usd_per_mtok : float or array
        Cost to reach, above zero, of the same token kind as the throughput. [USD/Mtok]
    price_usd_per_node_hour : float or array
        Price of the whole node. [USD/node_hour]
    node_tok_per_s : float or array
        Throughput at full use. [token/s]

    Returns
    -------
    float or array, broadcast shape
        Utilization. A value above 1 says that the node does not reach this cost however busy it is;
        it is returned as it is, because how far above 1 is the answer to "how much faster?". [1]

    Raises
    ------
    InputError
        If an argument is outside its domain; the message names it and the value.

    Notes
    -----
    Derived in `analysis.symbolic.cost.utilization_at_cost` and ``breakeven_utilization``.

    Examples
    --------
    >>> round(utilization_at_cost(10.0, price_usd_per_node_hour=33.0, node_tok_per_s=3000.0), 4)
    0.3056
    """
    cost = positive("cost_usd_per_mtok", cost_usd_per_mtok)
    price = not_negative("price_usd_per_node_hour", price_usd_per_node_hour)
    throughput = positive("node_tok_per_s", node_tok_per_s)
    return scalar_or_array(TOKENS_PER_MTOK * price / (SECONDS_PER_HOUR * throughput * cost))


def price_usd_per_node_hour_at_cost(
    cost_usd_per_mtok: ArrayLike, *, node_tok_per_s: ArrayLike, utilization: ArrayLike
) -> Any:
    r"""Node price at which a token costs what is given.

    .. math:: p_\mathrm{node} = \frac{3600\, c\, X\, u}{10^6}

    Parameters
    ----------
    cost_usd_per_mtok : float or array
        Cost to reach, zero or above. [USD/Mtok]
    node_tok_per_s : float or array
        Throughput at full use. [token/s]
    utilization : float or array
        Fraction of the hour at that throughput, 0 < u <= 1. [1]

    Returns
    -------
    float or array, broadcast shape
        Price of the whole node. [USD/node_hour]

    Raises
    ------
    InputError
        If an argument is outside its domain; the message names it and the value.

    Notes
    -----
    Inverse of `cost_usd_per_mtok`, derived in `analysis.symbolic.cost.price_at_cost`.

    Examples
    --------
    >>> round(price_usd_per_node_hour_at_cost(10.0, node_tok_per_s=3000.0, utilization=0.5), 6)
    54.0
    """
    cost = not_negative("cost_usd_per_mtok", cost_usd_per_mtok)
    throughput = positive("node_tok_per_s", node_tok_per_s)
    busy_fraction = fraction("utilization", utilization)
    return scalar_or_array(SECONDS_PER_HOUR * cost * throughput * busy_fraction / TOKENS_PER_MTOK)


def cost_usd_per_mtok_at_demand(
    price_usd_per_node_hour: ArrayLike,
    *,
    rate_req_per_s: ArrayLike,
    output_tokens: ArrayLike,
    node_tok_per_s: ArrayLike,
) -> Any:
    r"""Cost of a million output tokens of one always-on node at a fixed demand.

    .. math:: c = \frac{10^6\, p_\mathrm{node}}{3600\, \lambda\, S_\mathrm{out}}
              \quad\text{while}\quad \lambda\, S_\mathrm{out} \le X

    Parameters
    ----------
    price_usd_per_node_hour : float or array
        Price of the whole node. [USD/node_hour]
    rate_req_per_s : float or array
        Requests that arrive, on average over the hours paid for. [request/s]
    output_tokens : float or array
        Output tokens of one request. [token/request]
    node_tok_per_s : float or array
        Output tokens per second at full use: does not enter the cost, only the check that the
        demand fits. [token/s]

    Returns
    -------
    float or array, broadcast shape
        Cost. [USD/Mtok]

    Raises
    ------
    InputError
        If an argument is outside its domain, or the demand exceeds the throughput.

    Notes
    -----
    Derived in `analysis.symbolic.cost.cost_at_demand`: the throughput cancels.

    Examples
    --------
    >>> slow, fast = (
    ...     cost_usd_per_mtok_at_demand(33.0, rate_req_per_s=1.0, output_tokens=300.0, node_tok_per_s=x)
    ...     for x in (1000.0, 5000.0)
    ... )
    >>> slow == fast, round(slow, 2)
    (True, 30.56)
    """
    rate = positive("rate_req_per_s", rate_req_per_s)
    answer = positive("output_tokens", output_tokens)
    throughput = positive("node_tok_per_s", node_tok_per_s)
    utilization = fraction("demand over node_tok_per_s", rate * answer / throughput)
    return cost_usd_per_mtok(price_usd_per_node_hour, node_tok_per_s=throughput, utilization=utilization)


def sweep_utilization(
    price_usd_per_node_hour: float, *, node_tok_per_s: ArrayLike, utilization: ArrayLike
) -> pd.DataFrame:
    """Tabulate the identity over throughputs and utilizations.

    Parameters
    ----------
    price_usd_per_node_hour : float
        Price of the whole node. [USD/node_hour]
    node_tok_per_s : array, shape (m,)
        Throughputs at full use. [token/s]
    utilization : array, shape (n,)
        Fractions of the hour. [1]

    Returns
    -------
    DataFrame
        One row for each pair, columns ``node_tok_per_s``, ``utilization``, ``cost_usd_per_mtok``.

    Raises
    ------
    InputError
        As `cost_usd_per_mtok`.

    Examples
    --------
    >>> sweep_utilization(36.0, node_tok_per_s=[1000.0], utilization=[0.5, 1.0]).cost_usd_per_mtok.tolist()
    [20.0, 10.0]
    """
    throughput, busy_fraction = _pairs(node_tok_per_s, utilization)
    return pd.DataFrame(
        {
            "node_tok_per_s": throughput,
            "utilization": busy_fraction,
            "cost_usd_per_mtok": cost_usd_per_mtok(
                price_usd_per_node_hour, node_tok_per_s=throughput, utilization=busy_fraction
            ),
        }
    )


def sweep_breakeven(
    price_usd_per_node_hour: float, *, node_tok_per_s: ArrayLike, api_usd_per_mtok: ArrayLike
) -> pd.DataFrame:
    """Tabulate the break-even utilization over throughputs and API prices.

    Parameters
    ----------
    price_usd_per_node_hour : float
        Price of the whole node. [USD/node_hour]
    node_tok_per_s : array, shape (m,)
        Throughputs at full use. [token/s]
    api_usd_per_mtok : array, shape (n,)
        What an API asks for tokens of the same kind. [USD/Mtok]

    Returns
    -------
    DataFrame
        One row for each pair, columns ``node_tok_per_s``, ``api_usd_per_mtok``, ``breakeven_utilization``;
        above 1 the node never wins.

    Raises
    ------
    InputError
        As `utilization_at_cost`.

    Examples
    --------
    >>> sweep_breakeven(36.0, node_tok_per_s=[1000.0], api_usd_per_mtok=[5.0, 20.0]).breakeven_utilization.tolist()
    [2.0, 0.5]
    """
    throughput, api = _pairs(node_tok_per_s, api_usd_per_mtok)
    needed = utilization_at_cost(api, price_usd_per_node_hour=price_usd_per_node_hour, node_tok_per_s=throughput)
    return pd.DataFrame({"node_tok_per_s": throughput, "api_usd_per_mtok": api, "breakeven_utilization": needed})


def sweep_demand(
    price_usd_per_node_hour: float, *, rate_req_per_s: float, output_tokens: float, node_tok_per_s: ArrayLike
) -> pd.DataFrame:
    """Tabulate what a faster node changes when the demand stays as it is.

    Parameters
    ----------
    price_usd_per_node_hour : float
        Price of the whole node. [USD/node_hour]
    rate_req_per_s : float
        Requests that arrive. [request/s]
    output_tokens : float
        Output tokens of one request. [token/request]
    node_tok_per_s : array, shape (m,)
        Throughputs at full use. [token/s]

    Returns
    -------
    DataFrame
        Columns ``node_tok_per_s``, ``utilization``, ``cost_full_usd_per_mtok`` (at full use) and
        ``cost_usd_per_mtok`` (at this demand).

    Raises
    ------
    InputError
        As `cost_usd_per_mtok_at_demand`.

    Examples
    --------
    >>> sweep_demand(36.0, rate_req_per_s=1.0, output_tokens=500.0, node_tok_per_s=[1000.0]).iloc[0].tolist()
    [1000.0, 0.5, 10.0, 20.0]
    """
    throughput = positive("node_tok_per_s", node_tok_per_s)
    return pd.DataFrame(
        {
            "node_tok_per_s": throughput,
            "utilization": rate_req_per_s * output_tokens / throughput,
            "cost_full_usd_per_mtok": cost_usd_per_mtok(
                price_usd_per_node_hour, node_tok_per_s=throughput, utilization=1.0
            ),
            "cost_usd_per_mtok": cost_usd_per_mtok_at_demand(
                price_usd_per_node_hour,
                rate_req_per_s=rate_req_per_s,
                output_tokens=output_tokens,
                node_tok_per_s=throughput,
            ),
        }
    )


def _pairs(first: ArrayLike, second: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return every pair of two lists, the second running fastest."""
    left, right = np.meshgrid(np.asarray(first, dtype=float), np.asarray(second, dtype=float), indexing="ij")
    return left.ravel(), right.ravel()
