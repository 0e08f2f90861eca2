"""Cost of tokens: the identity between price, throughput, utilization and cost, every way round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.inputs import InputError, Words, fraction, not_negative, positive, scalar_or_array, share
from analysis.reference.specs import Counted, RequestMix, Tariff
from analysis.units import (
    HOURS_PER_30_DAYS,
    HOURS_PER_MONTH,
    HOURS_PER_YEAR,
    SECONDS_PER_HOUR,
    TOKENS_PER_MTOK,
)

#: What a throughput and a price can count. A cost has the kind of the throughput it was made from; ``weighted``
#: counts tokens that are worth an output token.
TOKEN_KINDS = ("output", "input", "total", "weighted")

#: The billing periods, in hours. A month of thirty days is 1.4 % shorter than a twelfth of a year.
PERIOD_HOURS = {"30-days": HOURS_PER_30_DAYS, "month": HOURS_PER_MONTH, "year": HOURS_PER_YEAR}


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


def nodes_at_demand(rate_req_per_s: ArrayLike, *, output_tokens: ArrayLike, node_tok_per_s: ArrayLike) -> Any:
    r"""Whole nodes that a fixed demand needs, without spares and without a latency to meet.

    .. math:: n = \left\lceil \frac{\lambda\, S_\mathrm{out}}{X} \right\rceil

    Parameters
    ----------
    rate_req_per_s : float or array
        Requests that arrive in the hour for which the fleet is sized. [request/s]
    output_tokens : float or array
        Output tokens of one request. [token/request]
    node_tok_per_s : float or array
        Output tokens per second of one node at full use. [token/s]

    Returns
    -------
    float or array, broadcast shape
        Nodes. [count]

    Raises
    ------
    InputError
        If an argument is not above zero.

    Notes
    -----
    A faster decoder saves money at fixed demand only where this number falls, see
    `analysis.symbolic.cost.saving_of_a_faster_decoder`.

    Examples
    --------
    >>> nodes_at_demand(10.0, output_tokens=300.0, node_tok_per_s=[1000.0, 1400.0, 2900.0]).tolist()
    [3.0, 3.0, 2.0]
    """
    rate = positive("rate_req_per_s", rate_req_per_s)
    answer = positive("output_tokens", output_tokens)
    throughput = positive("node_tok_per_s", node_tok_per_s)
    return scalar_or_array(np.asarray(np.ceil(rate * answer / throughput)))


def saving_usd_per_hour(
    price_usd_per_node_hour: ArrayLike,
    *,
    rate_req_per_s: ArrayLike,
    output_tokens: ArrayLike,
    node_tok_per_s: ArrayLike,
    faster_tok_per_s: ArrayLike,
) -> Any:
    r"""Money that a faster decoder saves in an hour at fixed demand, by freeing whole nodes.

    .. math:: p_\mathrm{node}\left(\left\lceil \frac{\lambda S_\mathrm{out}}{X} \right\rceil
              - \left\lceil \frac{\lambda S_\mathrm{out}}{X'} \right\rceil\right)

    Parameters
    ----------
    price_usd_per_node_hour : float or array
        Price of the whole node. [USD/node_hour]
    rate_req_per_s, output_tokens, node_tok_per_s : float or array
        As `nodes_at_demand`. [request/s], [token/request], [token/s]
    faster_tok_per_s : float or array
        Output tokens per second of one node with the other decoder. [token/s]

    Returns
    -------
    float or array, broadcast shape
        Saving, negative where the other decoder is slower. [USD/hour]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.cost.saving_of_a_faster_decoder`.

    Examples
    --------
    >>> demand = {"rate_req_per_s": 1.0, "output_tokens": 300.0, "node_tok_per_s": 1000.0}
    >>> saving_usd_per_hour(33.0, **demand, faster_tok_per_s=5000.0)  # one node is needed either way
    0.0
    """
    price = not_negative("price_usd_per_node_hour", price_usd_per_node_hour)
    before, after = (
        nodes_at_demand(rate_req_per_s, output_tokens=output_tokens, node_tok_per_s=positive(name, value))
        for name, value in (("node_tok_per_s", node_tok_per_s), ("faster_tok_per_s", faster_tok_per_s))
    )
    return scalar_or_array(np.asarray(price * (np.asarray(before) - np.asarray(after))))


def counted_cost(price_usd_per_node_hour: ArrayLike, *, throughput: Counted, utilization: ArrayLike) -> Counted:
    """Cost of a million tokens, of the kind that the throughput counts.

    Parameters
    ----------
    price_usd_per_node_hour : float or array
        Price of the whole node. [USD/node_hour]
    throughput : Counted
        Tokens per second at full use, and which. [token/s]
    utilization : float or array
        Fraction of the hour at that throughput. [1]

    Returns
    -------
    Counted
        Cost, of the same kind. [USD/Mtok]

    Raises
    ------
    InputError
        As `cost_usd_per_mtok`, or if the kind is none of ``TOKEN_KINDS``.

    Examples
    --------
    >>> counted_cost(36.0, throughput=Counted(1000.0, "total"), utilization=1.0)
    Counted(value=10.0, kind='total')
    """
    _known_kind("throughput", throughput)
    cost = cost_usd_per_mtok(price_usd_per_node_hour, node_tok_per_s=throughput.value, utilization=utilization)
    return Counted(cost, throughput.kind)


def breakeven_utilization(price_usd_per_node_hour: ArrayLike, *, throughput: Counted, api: Counted) -> Any:
    r"""Utilization above which a node undercuts an API, for tokens of one kind.

    .. math:: u^* = \frac{10^6\, p_\mathrm{node}}{3600\, X\, p_\mathrm{API}}

    Parameters
    ----------
    price_usd_per_node_hour : float or array
        Price of the whole node. [USD/node_hour]
    throughput : Counted
        Tokens per second at full use, and which. [token/s]
    api : Counted
        What the API asks, and for which tokens. [USD/Mtok]

    Returns
    -------
    float or array, broadcast shape
        Utilization; above 1 the node never wins. [1]

    Raises
    ------
    InputError
        If the two count different tokens, or an argument is outside its domain.

    Notes
    -----
    As `utilization_at_cost`, with the kinds compared first: a throughput of input and output tokens together
    against a price of output tokens is the commonest error in published sums. `converted` changes a kind.

    Examples
    --------
    >>> breakeven_utilization(36.0, throughput=Counted(1000.0, "output"), api=Counted(20.0, "output"))
    0.5
    """
    _known_kind("throughput", throughput)
    if api.kind != throughput.kind:
        raise InputError(
            "api", Words(f"a price of {api.kind} tokens"), f"one of {throughput.kind} tokens, as throughput"
        )
    return utilization_at_cost(
        api.value, price_usd_per_node_hour=price_usd_per_node_hour, node_tok_per_s=throughput.value
    )


def _known_kind(where: str, counted: Counted) -> None:
    if counted.kind not in TOKEN_KINDS:
        raise InputError(where, counted.kind, f"tokens of the kind {' or '.join(TOKEN_KINDS)}")


def converted(throughput: Counted, kind: str, *, mix: RequestMix, input_weight: ArrayLike = 1.0) -> Counted:
    """Count a throughput of whole requests in tokens of another kind.

    Parameters
    ----------
    throughput : Counted
        Tokens per second of a node that works on requests of the mix. [token/s]
    kind : {"output", "input", "total", "weighted"}
        The kind to count.
    mix : RequestMix
        What one request is made of; cached tokens count as input, as benchmarks have it. [token/request]
    input_weight : float or array
        Worth of an input token in output tokens, for ``weighted``. [1]

    Returns
    -------
    Counted
        The same requests per second, counted in the other tokens. [token/s]

    Raises
    ------
    InputError
        If a kind is unknown, a weight is negative, or the mix has no tokens of the kind that is converted from.

    Notes
    -----
    Weighted: ``X_out + w X_in``, `analysis.symbolic.cost.weighted_throughput`.

    Examples
    --------
    >>> whole = Counted(4166.0, "total")
    >>> round(converted(whole, "output", mix=RequestMix(2035, 300)).value)
    535
    """
    prompt, _, output = _tokens(mix)
    weight = not_negative("input_weight", input_weight)
    per_request = {"output": output, "input": prompt, "total": prompt + output, "weighted": output + weight * prompt}
    for where, named in (("throughput", throughput.kind), ("kind", kind)):
        if named not in per_request:
            raise InputError(where, named, f"tokens of the kind {' or '.join(per_request)}")
    counted = positive(f"{throughput.kind} tokens of the mix", per_request[throughput.kind])
    rate = positive("throughput", throughput.value)
    return Counted(scalar_or_array(np.asarray(rate * per_request[kind] / counted)), kind)


def _tokens(mix: RequestMix) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return prompt, cached and written tokens of a request, all checked."""
    prompt = not_negative("input_tokens", mix.input_tokens)
    cached = not_negative("cached_tokens", mix.cached_tokens)
    answer = positive("output_tokens", mix.output_tokens)
    thinking = not_negative("thinking_tokens", mix.thinking_tokens)
    uncached = prompt - cached
    if (uncached < 0).any():
        worst = float(np.broadcast_to(cached, uncached.shape)[uncached < 0].flat[0])
        raise InputError("cached_tokens", worst, "at most the tokens of the prompt")
    return prompt, cached, answer + thinking


def node_req_per_s(mix: RequestMix, *, read_tok_per_s: ArrayLike, write_tok_per_s: ArrayLike) -> Any:
    r"""Rate of requests of a node at full use, from the rates at which it reads and writes.

    .. math:: R = \left(\frac{S_\mathrm{in} - S_\mathrm{hit}}{X_\mathrm{read}}
              + \frac{S_\mathrm{out} + S_\mathrm{think}}{X_\mathrm{write}}\right)^{-1}

    Parameters
    ----------
    mix : RequestMix
        What one request is made of. [token/request]
    read_tok_per_s : float or array
        Input tokens per second of the whole node while it only reads prompts. [token/s]
    write_tok_per_s : float or array
        Output tokens per second of the whole node while it only writes, at its full batch. [token/s]

    Returns
    -------
    float or array, broadcast shape
        Requests per second. [request/s]

    Raises
    ------
    InputError
        If an argument is outside its domain, or more tokens are cached than the prompt has.

    Notes
    -----
    Derived in `analysis.symbolic.cost.seconds_per_request`: reading and writing share the node, so their times
    add. A cached prefix costs no reading. Limits: with everything cached only writing counts.

    Examples
    --------
    >>> round(node_req_per_s(RequestMix(8000, 300), read_tok_per_s=40_000.0, write_tok_per_s=3_000.0), 4)
    3.3333
    """
    prompt, cached, output = _tokens(mix)
    reading = (prompt - cached) / positive("read_tok_per_s", read_tok_per_s)
    writing = output / positive("write_tok_per_s", write_tok_per_s)
    return scalar_or_array(1 / (reading + writing))


def owned_usd_per_request(
    price_usd_per_node_hour: ArrayLike, *, node_req_per_s: ArrayLike, utilization: ArrayLike
) -> Any:
    r"""Cost of one request on an owned node.

    .. math:: \frac{p_\mathrm{node}}{3600\, R\, u}

    Parameters
    ----------
    price_usd_per_node_hour : float or array
        Price of the whole node. [USD/node_hour]
    node_req_per_s : float or array
        Requests per second of the node at full use, of the mix that the cost is about. [request/s]
    utilization : float or array
        Fraction of the hour at that rate, 0 < u <= 1. [1]

    Returns
    -------
    float or array, broadcast shape
        Cost. [USD/request]

    Raises
    ------
    InputError
        If an argument is outside its domain; the message names it and the value.

    Notes
    -----
    Derived in `analysis.symbolic.cost.cost_per_request`.

    Examples
    --------
    >>> owned_usd_per_request(36.0, node_req_per_s=2.0, utilization=0.5)
    0.01
    """
    price = not_negative("price_usd_per_node_hour", price_usd_per_node_hour)
    rate = positive("node_req_per_s", node_req_per_s)
    busy_fraction = fraction("utilization", utilization)
    return scalar_or_array(price / (SECONDS_PER_HOUR * rate * busy_fraction))


def api_usd_per_request(tariff: Tariff, mix: RequestMix, *, discount: ArrayLike = 0.0) -> Any:
    r"""Bill of an API for one request.

    .. math:: b = (1 - \delta)\left((S_\mathrm{in} - S_\mathrm{hit})\, p_\mathrm{in}
              + S_\mathrm{hit}\, p_\mathrm{hit} + (S_\mathrm{out} + S_\mathrm{think})\, p_\mathrm{out}\right)

    Parameters
    ----------
    tariff : Tariff
        Prices by kind of token. Without a cached price cached tokens are billed as input. [USD/Mtok]
    mix : RequestMix
        What one request is made of; hidden thinking is billed as output. [token/request]
    discount : float or array
        Discount for requests that may wait, 0 to 1. Leave it at 0 with the prices of a batch tier. [1]

    Returns
    -------
    float or array, broadcast shape
        Bill. [USD/request]

    Raises
    ------
    InputError
        If a price or a token count is negative, a discount is outside 0 to 1, or more is cached than is read.

    Notes
    -----
    Derived in `analysis.symbolic.cost.api_bill`. Zero is a price.

    Examples
    --------
    >>> round(api_usd_per_request(Tariff(1.25, 10.0, 0.125), RequestMix(8000, 300)), 6)
    0.013
    """
    prompt, cached, output = _tokens(mix)
    price_in = not_negative("input_usd_per_mtok", tariff.input_usd_per_mtok)
    price_out = not_negative("output_usd_per_mtok", tariff.output_usd_per_mtok)
    price_hit = (
        price_in
        if tariff.cached_usd_per_mtok is None
        else not_negative("cached_usd_per_mtok", tariff.cached_usd_per_mtok)
    )
    bill = (prompt - cached) * price_in + cached * price_hit + output * price_out
    return scalar_or_array(np.asarray((1 - share("discount", discount)) * bill / TOKENS_PER_MTOK))


def usd_per_document(usd_per_request: ArrayLike, *, requests_per_document: ArrayLike) -> Any:
    """Cost of one document that takes several requests: parts of it, several passes, repeats.

    Parameters
    ----------
    usd_per_request : float or array
        Cost of one request, on either side. [USD/request]
    requests_per_document : float or array
        Requests for one document, on average; 1.1 if every tenth is asked again. [request]

    Returns
    -------
    float or array, broadcast shape
        Cost. [USD]

    Raises
    ------
    InputError
        If a cost is negative or a number of requests not positive.

    Examples
    --------
    >>> usd_per_document(0.013, requests_per_document=2)
    0.026
    """
    cost = not_negative("usd_per_request", usd_per_request)
    return scalar_or_array(cost * positive("requests_per_document", requests_per_document))


def usd_per_answer_mtok(output_usd_per_mtok: ArrayLike, *, mix: RequestMix) -> Any:
    r"""Price of a million visible output tokens where hidden ones are billed too.

    .. math:: p_\mathrm{out}\left(1 + \frac{S_\mathrm{think}}{S_\mathrm{out}}\right)

    Parameters
    ----------
    output_usd_per_mtok : float or array
        Price of output. [USD/Mtok]
    mix : RequestMix
        Visible and hidden output tokens of a request. [token/request]

    Returns
    -------
    float or array, broadcast shape
        Price of what is read. [USD/Mtok]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.cost.price_per_answer_token`.

    Examples
    --------
    >>> usd_per_answer_mtok(8.0, mix=RequestMix(0, 300, thinking_tokens=900))
    32.0
    """
    _, _, output = _tokens(mix)
    price = not_negative("output_usd_per_mtok", output_usd_per_mtok)
    return scalar_or_array(np.asarray(price * output / np.asarray(mix.output_tokens, dtype=float)))


def breakeven_utilization_of_requests(
    price_usd_per_node_hour: ArrayLike, *, node_req_per_s: ArrayLike, api_usd_per_request: ArrayLike
) -> Any:
    r"""Utilization above which a node undercuts an API, over whole requests.

    .. math:: u^* = \frac{p_\mathrm{node}}{3600\, R\, b}

    Parameters
    ----------
    price_usd_per_node_hour : float or array
        Price of the whole node. [USD/node_hour]
    node_req_per_s : float or array
        Requests per second of the node at full use. [request/s]
    api_usd_per_request : float or array
        Bill of the API for the same request, above zero. [USD/request]

    Returns
    -------
    float or array, broadcast shape
        Utilization; above 1 the node never wins. [1]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.cost.breakeven_utilization_of_requests`. The throughput at which the node wins
    when full is ``u* R``, and the price at which it does is ``price / u*``.

    Examples
    --------
    >>> breakeven_utilization_of_requests(36.0, node_req_per_s=2.0, api_usd_per_request=0.01)
    0.5
    """
    price = not_negative("price_usd_per_node_hour", price_usd_per_node_hour)
    rate = positive("node_req_per_s", node_req_per_s)
    bill = positive("api_usd_per_request", api_usd_per_request)
    return scalar_or_array(price / (SECONDS_PER_HOUR * rate * bill))


def period_bill_usd(price_usd_per_node_hour: ArrayLike, *, hours: ArrayLike) -> Any:
    """Bill for one node that is paid for a whole period, used or not.

    Parameters
    ----------
    price_usd_per_node_hour : float or array
        Price of the whole node. [USD/node_hour]
    hours : float or array
        Hours of the period, `PERIOD_HOURS` has the usual ones. No default: months differ. [hour]

    Returns
    -------
    float or array, broadcast shape
        Bill. Utilization is no argument: it does not lower a bill. [USD]

    Raises
    ------
    InputError
        If a price is negative or a period not positive.

    Examples
    --------
    >>> [round(period_bill_usd(6.4, hours=PERIOD_HOURS[name])) for name in ("30-days", "month")]
    [4608, 4672]
    """
    price = not_negative("price_usd_per_node_hour", price_usd_per_node_hour)
    return scalar_or_array(price * positive("hours", hours))


def breakeven_volume(price_usd_per_node_hour: ArrayLike, *, api_usd_per_unit: ArrayLike, hours: ArrayLike) -> Any:
    r"""Units in a period at which a node that is paid for all of it costs what an API bills.

    .. math:: \frac{p_\mathrm{node}\, H}{b}

    Parameters
    ----------
    price_usd_per_node_hour : float or array
        Price of the whole node. [USD/node_hour]
    api_usd_per_unit : float or array
        Price at the API of one unit: a request, a document, or a token (``USD/Mtok`` over ``TOKENS_PER_MTOK``). [USD]
    hours : float or array
        Hours of the period. [hour]

    Returns
    -------
    float or array, broadcast shape
        Units. Independent of throughput and utilization; whether one node can make them is `capacity`. [count]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.cost.breakeven_requests`.

    Examples
    --------
    >>> round(breakeven_volume(6.4, api_usd_per_unit=10.0 / TOKENS_PER_MTOK, hours=730) / 1e6, 1)
    467.2
    """
    bill = np.asarray(period_bill_usd(price_usd_per_node_hour, hours=hours))
    return scalar_or_array(bill / positive("api_usd_per_unit", api_usd_per_unit))


def capacity(node_units_per_s: ArrayLike, *, hours: ArrayLike) -> Any:
    """Units that a node makes in a period at full use.

    Parameters
    ----------
    node_units_per_s : float or array
        Tokens or requests per second at full use. [1/s]
    hours : float or array
        Hours of the period. [hour]

    Returns
    -------
    float or array, broadcast shape
        Units. [count]

    Raises
    ------
    InputError
        If an argument is not positive.

    Examples
    --------
    >>> round(capacity(3400.0, hours=PERIOD_HOURS["month"]) / 1e9, 3)
    8.935
    """
    return scalar_or_array(positive("node_units_per_s", node_units_per_s) * SECONDS_PER_HOUR * positive("hours", hours))


def utilization_scaled_to_zero(busy_hours: ArrayLike, *, starts: ArrayLike, start_hours: ArrayLike) -> Any:
    r"""Utilization of a node that is paid only while it has work, and a while at each start.

    .. math:: u = \frac{H_\mathrm{busy}}{H_\mathrm{busy} + k\, h_0}

    Parameters
    ----------
    busy_hours : float or array
        Hours with work in a period. [hour]
    starts : float or array
        Times that the node is started in it. [count]
    start_hours : float or array
        Hours paid at each start without work: boot, load the weights, wait before switching off. [hour]

    Returns
    -------
    float or array, broadcast shape
        Utilization, for `owned_usd_per_request` and the rest. An always-on node has ``busy_hours / hours``. [1]

    Raises
    ------
    InputError
        If there is no hour of work, or another argument is negative.

    Notes
    -----
    Derived in `analysis.symbolic.cost.utilization_scaled_to_zero`. Only hardware that somebody else takes back can
    be scaled to zero: a bought or reserved node is always on.

    Examples
    --------
    >>> utilization_scaled_to_zero(8.0, starts=1, start_hours=0.5) > 8.0 / 24.0
    True
    """
    busy = positive("busy_hours", busy_hours)
    idle = not_negative("starts", starts) * not_negative("start_hours", start_hours)
    return scalar_or_array(busy / (busy + idle))


def usd_per_useful(usd_per_unit: ArrayLike, *, useful_share: ArrayLike) -> Any:
    """Cost of a unit that is of use: a token that is accepted, a task that is done right.

    Parameters
    ----------
    usd_per_unit : float or array
        Cost of a unit, useful or not. [USD]
    useful_share : float or array
        Share of the units that are of use, at a stated target of quality; above 0, at most 1. [1]

    Returns
    -------
    float or array, broadcast shape
        Cost of a useful one. [USD]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.cost.cost_per_useful_token`. A node is as cheap as an API whose answers are all of
    use where the share is cost over price, `analysis.symbolic.cost.breakeven_useful_share`.

    Examples
    --------
    >>> usd_per_useful(1.8, useful_share=0.9)
    2.0
    """
    cost = not_negative("usd_per_unit", usd_per_unit)
    return scalar_or_array(cost / fraction("useful_share", useful_share))


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
        What an API asks for tokens of the same kind; 0 is a price. [USD/Mtok]

    Returns
    -------
    DataFrame
        One row for each pair, columns ``node_tok_per_s``, ``api_usd_per_mtok``, ``breakeven_utilization``;
        above 1 the node never wins, and against a free API it is endless (0 where the node is free too).

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
    free = not_negative("api_usd_per_mtok", api) == 0
    needed = np.asarray(
        utilization_at_cost(
            np.where(free, 1.0, api), price_usd_per_node_hour=price_usd_per_node_hour, node_tok_per_s=throughput
        )
    )
    needed = np.where(free, 0.0 if price_usd_per_node_hour == 0 else np.inf, needed)
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


def sweep_requests(
    price_usd_per_node_hour: ArrayLike,
    *,
    node_req_per_s: float,
    utilization: ArrayLike,
    bills_usd_per_request: Mapping[str, float],
) -> pd.DataFrame:
    """Tabulate a request on a node against the bills of several APIs.

    Parameters
    ----------
    price_usd_per_node_hour : float
        Price of the whole node. [USD/node_hour]
    node_req_per_s : float
        Requests per second of the node at full use. [request/s]
    utilization : array, shape (n,)
        Fractions of the hour. [1]
    bills_usd_per_request : mapping of str to float
        What each API bills for the same request. [USD/request]

    Returns
    -------
    DataFrame
        One row for each pair: ``api``, ``utilization``, ``owned_usd_per_request``, ``api_usd_per_request``,
        ``breakeven_utilization``, ``winner`` (``owned`` or ``api``) and ``premium_usd_per_request``, what owning
        costs on top: the price of keeping the data at home.

    Raises
    ------
    InputError
        As `owned_usd_per_request` and `breakeven_utilization_of_requests`.

    Examples
    --------
    >>> found = sweep_requests(36.0, node_req_per_s=2.0, utilization=[0.25, 1.0], bills_usd_per_request={"a": 0.01})
    >>> found.winner.tolist()
    ['api', 'owned']
    """
    names = list(bills_usd_per_request)
    which, busy_fraction = _pairs(np.arange(len(names)), utilization)
    api = np.array([bills_usd_per_request[name] for name in names], dtype=float)[which.astype(int)]
    owned = owned_usd_per_request(price_usd_per_node_hour, node_req_per_s=node_req_per_s, utilization=busy_fraction)
    return pd.DataFrame(
        {
            "api": [names[int(i)] for i in which],
            "utilization": busy_fraction,
            "owned_usd_per_request": owned,
            "api_usd_per_request": api,
            "breakeven_utilization": breakeven_utilization_of_requests(
                price_usd_per_node_hour, node_req_per_s=node_req_per_s, api_usd_per_request=api
            ),
            "winner": np.where(owned < api, "owned", "api"),
            "premium_usd_per_request": owned - api,
        }
    )


def sweep_breakeven_of_requests(
    prices_usd_per_node_hour: Mapping[str, float],
    *,
    node_req_per_s: float,
    bills_usd_per_request: Mapping[str, float],
    hours: float,
) -> pd.DataFrame:
    """Tabulate how busy a node must be in each way to have it against each API, for one kind of request.

    Parameters
    ----------
    prices_usd_per_node_hour : mapping of str to float
        What an hour of the node costs in each way. [USD/node_hour]
    node_req_per_s : float
        Requests per second of the node at full use. [request/s]
    bills_usd_per_request : mapping of str to float
        What each API bills for the same request; 0 is a bill. [USD/request]
    hours : float
        Hours of the period in which the requests are counted. [hour]

    Returns
    -------
    DataFrame
        One row for each pair: ``way``, ``api``, ``price_usd_per_node_hour``, ``api_usd_per_request``,
        ``breakeven_utilization`` and ``breakeven_requests`` in the period. Above 1 the node never wins, and against
        an API that asks nothing both are endless, or 0 where the node costs nothing either.

    Raises
    ------
    InputError
        If a price, a bill, the rate or the period is outside its domain.

    Notes
    -----
    As `breakeven_utilization_of_requests` and `breakeven_volume`.

    Examples
    --------
    >>> found = sweep_breakeven_of_requests(
    ...     {"rent": 36.0, "sunk": 1.8}, node_req_per_s=2.0, bills_usd_per_request={"a": 0.01, "free": 0.0}, hours=1.0
    ... )
    >>> found.breakeven_utilization.tolist()
    [0.5, inf, 0.025, inf]
    """
    not_negative("prices_usd_per_node_hour", list(prices_usd_per_node_hour.values()))
    not_negative("api_usd_per_request", list(bills_usd_per_request.values()))
    rows = []
    for way, price in prices_usd_per_node_hour.items():
        for api, bill in bills_usd_per_request.items():
            endless = 0.0 if price == 0 else np.inf
            needed, volume = endless, endless
            if bill > 0:
                needed = breakeven_utilization_of_requests(
                    price, node_req_per_s=node_req_per_s, api_usd_per_request=bill
                )
                volume = breakeven_volume(price, api_usd_per_unit=bill, hours=hours)
            rows.append((way, api, price, bill, needed, volume))
    return pd.DataFrame(
        rows,
        columns=[
            "way",
            "api",
            "price_usd_per_node_hour",
            "api_usd_per_request",
            "breakeven_utilization",
            "breakeven_requests",
        ],
    )


def price_usd_per_node_hour_of_requests(api_usd_per_request: ArrayLike, *, node_req_per_s: ArrayLike) -> Any:
    r"""Price of a node's hour at which a full node costs what an API bills for the same requests.

    .. math:: p^* = 3600\, R\, b

    Parameters
    ----------
    api_usd_per_request : float or array
        Bill of the API for one request. [USD/request]
    node_req_per_s : float or array
        Requests per second of the node at full use. [request/s]

    Returns
    -------
    float or array, broadcast shape
        Price up to which the node wins when it is full. [USD/node_hour]

    Raises
    ------
    InputError
        If a bill is negative or a rate not positive.

    Notes
    -----
    The inverse of `owned_usd_per_request` at full use. Limit: against a free API only a free node does not lose.

    Examples
    --------
    >>> price_usd_per_node_hour_of_requests(0.005, node_req_per_s=2.0)
    36.0
    """
    bill = not_negative("api_usd_per_request", api_usd_per_request)
    return scalar_or_array(np.asarray(SECONDS_PER_HOUR * positive("node_req_per_s", node_req_per_s) * bill))


def rival_bills(
    commodity: Mapping[str, Mapping[str, Tariff]], mix: RequestMix, *, same: str, frontier: Mapping[str, Tariff]
) -> dict[str, float]:
    """Bill one request at the APIs that a node is held against.

    Parameters
    ----------
    commodity : mapping of model to (seller to Tariff)
        The open models on sale, the one that the node runs among them.
    mix : RequestMix
        The request. [token/request]
    same : str
        The model that the node runs.
    frontier : mapping of seller to Tariff
        A frontier model.

    Returns
    -------
    dict of str to float
        ``same model, cheapest`` and ``same model, median`` over its sellers, ``commodity, cheapest`` over all open
        models, and ``frontier`` at its cheapest seller. [USD/request]

    Raises
    ------
    InputError
        If nobody sells the model, or as `api_usd_per_request`.

    Examples
    --------
    >>> offers = {"a": {"x": Tariff(1.0, 1.0), "y": Tariff(3.0, 3.0)}, "b": {"x": Tariff(0.5, 0.5)}}
    >>> found = rival_bills(offers, RequestMix(900, 100), same="a", frontier={"z": Tariff(2.0, 12.0)})
    >>> {rival: round(bill, 6) for rival, bill in found.items()}  # doctest: +NORMALIZE_WHITESPACE
    {'same model, cheapest': 0.001, 'same model, median': 0.002, 'commodity, cheapest': 0.0005, 'frontier': 0.003}
    """
    if not commodity.get(same):
        raise InputError("same", same, f"a model on sale: {', '.join(sorted(commodity))}")
    bills = {
        model: [api_usd_per_request(tariff, mix) for tariff in offers.values()] for model, offers in commodity.items()
    }
    return {
        "same model, cheapest": min(bills[same]),
        "same model, median": float(np.median(bills[same])),
        "commodity, cheapest": min(min(each) for each in bills.values() if each),
        "frontier": min(api_usd_per_request(tariff, mix) for tariff in frontier.values()),
    }


def sweep_accounts(
    prices_usd_per_node_hour: Mapping[str, float],
    *,
    mix: RequestMix,
    read_tok_per_s: float,
    write_tok_per_s: float,
    tariffs: Mapping[str, Mapping[str, Tariff]],
) -> pd.DataFrame:
    """Tabulate the break-even utilization counted by output tokens and by whole requests.

    Parameters
    ----------
    prices_usd_per_node_hour : mapping of str to float
        What an hour of the node costs in each way to have it. [USD/node_hour]
    mix : RequestMix
        The request. [token/request]
    read_tok_per_s, write_tok_per_s : float
        Speed of the node, as `node_req_per_s`. [token/s]
    tariffs : mapping of str to (seller to Tariff)
        The rivals; of each the seller who is cheapest for the request.

    Returns
    -------
    DataFrame
        One row for each pair: ``way``, ``api``, ``output_only`` (the node does nothing but write, and the API bills
        nothing but output) and ``whole_request``. Above 1 the node never wins.

    Raises
    ------
    InputError
        As `sweep_breakeven` and `sweep_breakeven_of_requests`.

    Examples
    --------
    >>> found = sweep_accounts(
    ...     {"rent": 36.0},
    ...     mix=RequestMix(8000, 300),
    ...     read_tok_per_s=40_000.0,
    ...     write_tok_per_s=3_000.0,
    ...     tariffs={"a": {"x": Tariff(1.0, 5.0)}},
    ... )
    >>> [round(found[column].item(), 3) for column in ("output_only", "whole_request")]
    [0.667, 0.316]
    """
    rate = node_req_per_s(mix, read_tok_per_s=read_tok_per_s, write_tok_per_s=write_tok_per_s)
    rows = []
    for way, price in prices_usd_per_node_hour.items():
        for api, offers in tariffs.items():
            tariff = min(offers.values(), key=lambda offer: api_usd_per_request(offer, mix))
            by_output = sweep_breakeven(
                price, node_tok_per_s=[write_tok_per_s], api_usd_per_mtok=[tariff.output_usd_per_mtok]
            )
            by_request = sweep_breakeven_of_requests(
                {way: price},
                node_req_per_s=rate,
                bills_usd_per_request={api: api_usd_per_request(tariff, mix)},
                hours=1.0,
            )
            both = [float(frame["breakeven_utilization"].iloc[0]) for frame in (by_output, by_request)]
            rows.append((way, api, *both))
    return pd.DataFrame(rows, columns=["way", "api", "output_only", "whole_request"])


def _pairs(first: ArrayLike, second: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return every pair of two lists, the second running fastest."""
    left, right = np.meshgrid(np.asarray(first, dtype=float), np.asarray(second, dtype=float), indexing="ij")
    return left.ravel(), right.ravel()
