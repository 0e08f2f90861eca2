"""What a batch is worth: tokens of a replica against the requests in it, and what bounds them.

Everything here is about whole requests on one replica with continuous batching: as many requests as
the batch says are in it all the time, each brings a prompt and leaves with an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.inputs import positive, scalar_or_array
from analysis.model import decoding
from analysis.model.decoding import IDEAL, OF_THE_CARD, TERMS
from analysis.model.transformer import (
    context_limit,
    context_limit_folk,
    context_limit_in_memory,
    equal_context,
    kv_bytes_per_token,
    pass_work,
    weight_bytes,
)
from analysis.reference.specs import Efficiency, MemoryRule, Replica
from analysis.units import BYTE_PER_GB


def served_tok_per_s(
    replica: Replica,
    *,
    batch: ArrayLike,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    efficiency: Efficiency = IDEAL,
) -> Any:
    r"""Output tokens of a replica that always has so many requests in it, their prompts read too.

    .. math:: X = \frac{n}{t + n\, p / S_\mathrm{out}}

    Parameters
    ----------
    replica : Replica
    batch : float or array
        Requests in the replica, n. [1]
    input_tokens, output_tokens : float or array
        Tokens of each prompt and answer. [token]
    cached_tokens : float or array
        Prompt tokens that a prefix cache holds. [token]
    efficiency : Efficiency

    Returns
    -------
    float or array
        Output tokens per second; with ``batch=1`` those of one request after the other. [token/s]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Notes
    -----
    Memory is not looked at: `analysis.model.decoding.max_batch` says how many requests fit. At that batch
    it is `analysis.model.decoding.max_load_tok_per_s`. Derived in `analysis.symbolic.decoding.max_load_passes`.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Replica(shipped("llama-3.1-70b").architecture, Precision.of("bf16"), h100, gpus=8)
    >>> [round(served_tok_per_s(eight, batch=n, input_tokens=8000, output_tokens=300)) for n in (1, 64)]
    [173, 1555]
    """
    n = positive("batch", batch)
    steps = decoding.token_steps(
        replica,
        batch=n,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        others=n,
    )
    return scalar_or_array(np.asarray(n / decoding.schedule_s(steps, replica, efficiency)))


def swing(
    replica: Replica,
    *,
    small: ArrayLike,
    large: ArrayLike,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    efficiency: Efficiency = IDEAL,
) -> Any:
    r"""How many times as much a token costs at a small batch as at a large one, on the same hardware.

    .. math:: \frac{c(n_\mathrm{small})}{c(n_\mathrm{large})} = \frac{X(n_\mathrm{large})}{X(n_\mathrm{small})}

    Parameters
    ----------
    replica : Replica
    small, large : float or array
        Requests in the replica. [1]
    input_tokens, output_tokens, cached_tokens : float or array
        As in `served_tok_per_s`. [token]
    efficiency : Efficiency

    Returns
    -------
    float or array, broadcast shape
        Ratio of costs; price and utilization cancel. [1]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Replica(shipped("llama-3.1-70b").architecture, Precision.of("bf16"), h100, gpus=8)
    >>> round(swing(eight, small=1, large=64, input_tokens=8000, output_tokens=300), 1)
    9.0
    """
    load: dict[str, Any] = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cached_tokens": cached_tokens,
        "efficiency": efficiency,
    }
    return scalar_or_array(
        np.asarray(served_tok_per_s(replica, batch=large, **load) / served_tok_per_s(replica, batch=small, **load))
    )


def sweep_swing(
    replica: Replica,
    *,
    small: ArrayLike,
    large: ArrayLike,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    rule: MemoryRule = OF_THE_CARD,
    efficiency: Efficiency = IDEAL,
) -> pd.DataFrame:
    """Lay out the swing over every combination of the numbers given.

    Parameters
    ----------
    replica : Replica
    small, large, input_tokens, output_tokens : float or sequence
        As in `swing`.
    rule : MemoryRule
        How the engine divides the memory.
    efficiency : Efficiency

    Returns
    -------
    DataFrame
        One row for each combination in which the large batch is above the small one: ``small_batch``,
        ``large_batch``, ``input_tokens``, ``output_tokens``, ``swing`` [1], ``fits`` (bool: memory holds the
        large batch).

    Raises
    ------
    InputError
        If a number is outside its domain.
    """
    axes = np.meshgrid(*(np.atleast_1d(axis) for axis in (small, large, input_tokens, output_tokens)), indexing="ij")
    n, many, prompt, answer = (axis.ravel() for axis in axes)
    keep = many > n
    n, many, prompt, answer = n[keep], many[keep], prompt[keep], answer[keep]
    ratio = swing(replica, small=n, large=many, input_tokens=prompt, output_tokens=answer, efficiency=efficiency)
    return pd.DataFrame(
        {
            "small_batch": n,
            "large_batch": many,
            "input_tokens": prompt,
            "output_tokens": answer,
            "swing": ratio,
            "fits": decoding.max_batch(replica, tokens=prompt + answer, rule=rule) >= many,
        }
    )


def sweep_batch(
    replica: Replica,
    *,
    batch: Sequence[float],
    input_tokens: float,
    output_tokens: float,
    cached_tokens: float = 0.0,
    rule: MemoryRule = OF_THE_CARD,
    efficiency: Efficiency = IDEAL,
) -> pd.DataFrame:
    """Follow one kind of request from a small batch to a large one: tokens, streams, waiting, prompts.

    Parameters
    ----------
    replica : Replica
    batch : sequence of float
        Requests in the replica, the first of them the base of ``gain``. [1]
    input_tokens, output_tokens, cached_tokens : float
        As in `served_tok_per_s`. [token]
    rule : MemoryRule
    efficiency : Efficiency

    Returns
    -------
    DataFrame
        ``batch``, ``node_tok_per_s`` (of the replica) [token/s], ``gain`` over the first batch [1], ``tpot_s`` [s],
        ``stream_tok_per_s`` (between two tokens) [token/s], ``request_s`` (from prompt to last token) [s],
        ``prompt_share`` (of the replica's time that reading prompts takes) [1], ``fits`` (bool).

    Raises
    ------
    InputError
        If a number is outside its domain.
    """
    n = np.asarray(batch, float)
    load: dict[str, Any] = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cached_tokens": cached_tokens,
        "efficiency": efficiency,
    }
    rate = served_tok_per_s(replica, batch=n, **load)
    between = decoding.tpot_s(replica, batch=n, **load)
    return pd.DataFrame(
        {
            "batch": n,
            "node_tok_per_s": rate,
            "gain": rate / rate[0],
            "tpot_s": between,
            "stream_tok_per_s": 1 / between,
            "request_s": n * output_tokens / rate,
            "prompt_share": prompt_share(replica, batch=n, **load),
            "fits": decoding.max_batch(replica, tokens=input_tokens + output_tokens, rule=rule) >= n,
        }
    )


def prompt_share(
    replica: Replica,
    *,
    batch: ArrayLike,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    efficiency: Efficiency = IDEAL,
) -> Any:
    r"""Share of a replica's time that reading prompts takes.

    .. math:: \frac{n\, p / S_\mathrm{out}}{t + n\, p / S_\mathrm{out}}

    Parameters
    ----------
    replica, batch, input_tokens, output_tokens, cached_tokens, efficiency
        As in `served_tok_per_s`.

    Returns
    -------
    float or array
        What passes take longer because they carry prompts, over all time. [1]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Replica(shipped("llama-3.1-70b").architecture, Precision.of("bf16"), h100, gpus=8)
    >>> [round(prompt_share(eight, batch=n, input_tokens=8000, output_tokens=300), 2) for n in (1, 64)]
    [0.08, 0.72]
    """
    n, answer = positive("batch", batch), positive("output_tokens", output_tokens)
    rate = served_tok_per_s(
        replica,
        batch=n,
        input_tokens=input_tokens,
        output_tokens=answer,
        cached_tokens=cached_tokens,
        efficiency=efficiency,
    )
    alone = decoding.pass_time(
        replica, batch=n, context_tokens=np.asarray(input_tokens, float) + answer / 2, efficiency=efficiency
    )
    return scalar_or_array(np.asarray(1 - alone.pass_s * rate / n))


# --- One pass ----------------------------------------------------------------------------------


def sweep_terms(
    replica: Replica, *, batch: ArrayLike, context_tokens: ArrayLike, efficiency: Efficiency = IDEAL
) -> pd.DataFrame:
    """Time of decoding passes term by term, over every combination of batch and context.

    Parameters
    ----------
    replica : Replica
    batch : float or sequence
        Sequences. [1]
    context_tokens : float or sequence
        Cached tokens of each. [token]
    efficiency : Efficiency

    Returns
    -------
    DataFrame
        ``batch``, ``context_tokens``, a column for each of `analysis.model.decoding.TERMS` and ``pass_s`` [s],
        ``bound``, the largest term.

    Raises
    ------
    InputError
        If a number is outside its domain.
    """
    n, context = (axis.ravel() for axis in np.meshgrid(np.atleast_1d(batch), np.atleast_1d(context_tokens)))
    time = decoding.pass_time(replica, batch=n, context_tokens=context, efficiency=efficiency)
    terms = {f"{term}_s": np.broadcast_to(getattr(time, f"{term}_s"), n.shape) for term in TERMS}
    return pd.DataFrame({"batch": n, "context_tokens": context, **terms, "pass_s": time.pass_s, "bound": time.bound})


def sweep_traffic(
    replica: Replica, *, batch: ArrayLike, context_tokens: ArrayLike, rule: MemoryRule = OF_THE_CARD
) -> pd.DataFrame:
    """Bytes and intensity of decoding passes, over every combination of batch and context.

    Parameters
    ----------
    replica : Replica
    batch : float or sequence
        Sequences. [1]
    context_tokens : float or sequence
        Cached tokens of each. [token]
    rule : MemoryRule

    Returns
    -------
    DataFrame
        ``batch``, ``context_tokens``, ``weight_byte`` and ``kv_byte`` that the pass reads [byte],
        ``kv_over_weights`` [1], ``intensity_flop_per_byte`` [FLOP/byte], ``fits`` (bool).

    Raises
    ------
    InputError
        If a number is outside its domain.
    """
    n, context = (axis.ravel() for axis in np.meshgrid(np.atleast_1d(batch), np.atleast_1d(context_tokens)))
    work = pass_work(replica.architecture, replica.precision, batch=n, context_tokens=context)
    return pd.DataFrame(
        {
            "batch": n,
            "context_tokens": context,
            "weight_byte": work.weight_bytes,
            "kv_byte": work.kv_read_bytes,
            "kv_over_weights": work.kv_read_bytes / work.weight_bytes,
            "intensity_flop_per_byte": work.intensity_flop_per_byte,
            "fits": decoding.max_batch(replica, tokens=np.maximum(context, 1.0), rule=rule) >= n,
        }
    )


def capacity(
    replicas: Mapping[str, Replica], *, tokens: Sequence[float], rule: MemoryRule = OF_THE_CARD
) -> pd.DataFrame:
    """Say how much a cached token takes and how many sequences fit, for several replicas.

    Parameters
    ----------
    replicas : mapping of str to Replica
    tokens : sequence of float
        Tokens that each sequence holds; a column for each. [token]
    rule : MemoryRule

    Returns
    -------
    DataFrame
        ``replica``, ``weights_gb`` [GB], ``kv_kb_per_token`` [kB], and for each length whole sequences. The
        number of tokens at which one sequence's cache, all copies of it, is as much to read as the weights at batch
        1, ``equal_tokens`` [token].

    Raises
    ------
    InputError
        If tokens are not above zero.
    """
    rows = []
    for name, replica in replicas.items():
        of = (replica.architecture, replica.precision)
        held = decoding.max_batch(replica, tokens=np.asarray(tokens, float), rule=rule)
        rows.append(
            {
                "replica": name,
                "weights_gb": weight_bytes(*of) / BYTE_PER_GB,
                "kv_kb_per_token": kv_bytes_per_token(*of) / 1e3,
                "equal_tokens": equal_context(*of, kv_copies=decoding.kv_copies(replica)),
                **{f"at {length:,.0f}": int(count) for length, count in zip(tokens, held, strict=True)},
            }
        )
    return pd.DataFrame(rows)


def context_limits(replicas: Mapping[str, Replica], *, rule: MemoryRule = OF_THE_CARD) -> pd.DataFrame:
    """Say for several replicas up to which context a batch can reach the ridge at all.

    Parameters
    ----------
    replicas : mapping of str to Replica
    rule : MemoryRule

    Returns
    -------
    DataFrame
        ``replica``, ``ridge_flop_per_byte`` [FLOP/byte]; ``limit_tokens``: `context_limit`; ``folk_tokens``, the usual
        approximation; ``memory_tokens``, up to which the batch that reaches the ridge also fits [token].

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100)
    >>> context_limits({"8B": one})[["limit_tokens", "folk_tokens"]].round().to_dict("records")
    [{'limit_tokens': 393.0, 'folk_tokens': 415.0}]
    """
    rows = []
    for name, replica in replicas.items():
        rates = decoding.peaks(replica)
        ridge = rates.matmul_flop_per_s / rates.mem_bw_byte_per_s
        of: tuple[Any, Any] = (replica.architecture, replica.precision)
        at: dict[str, Any] = {"ridge_flop_per_byte": ridge, "kv_copies": decoding.kv_copies(replica)}
        card = replica.gpus * replica.accelerator.mem_capacity_byte
        reserved = replica.gpus * rule.reserve_byte
        weights = weight_bytes(*of)
        rest = rule.share * (card - weights - reserved)
        usable = weights + rest if rule.of_the_rest else rule.share * card - reserved
        rows.append(
            {
                "replica": name,
                "ridge_flop_per_byte": ridge,
                "limit_tokens": context_limit(*of, **at),
                "folk_tokens": context_limit_folk(*of, ridge_flop_per_byte=ridge),
                "memory_tokens": context_limit_in_memory(*of, **at, memory_byte=max(usable, 0.0)),
            }
        )
    return pd.DataFrame(rows)
