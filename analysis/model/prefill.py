"""Reading prompts: what the time is made of, and from how many tokens arithmetic takes longer than memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.inputs import not_negative
from analysis.model import decoding
from analysis.model.decoding import CHUNK_TOKENS, IDEAL, TERMS, Part
from analysis.reference.specs import Efficiency, Replica

#: No prompt is longer; what is not compute-bound by then is called never so. [token]
LONGEST = 1e7


def sweep_prompt(
    replica: Replica,
    *,
    input_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    chunk_tokens: ArrayLike = CHUNK_TOKENS,
    efficiency: Efficiency = IDEAL,
) -> pd.DataFrame:
    """Time to read one prompt on an idle replica, term by term.

    Parameters
    ----------
    replica : Replica
    input_tokens, cached_tokens, chunk_tokens : float or array, broadcastable
        As in `analysis.model.decoding.prefill_s`. [token]
    efficiency : Efficiency

    Returns
    -------
    DataFrame
        ``input_tokens``, ``cached_tokens``, ``chunk_tokens``, a column for each of
        `analysis.model.decoding.TERMS` over all passes, ``phases_s`` (reading and computing,
        overlapped) and ``prefill_s`` [s], ``ms_per_token`` of those that
        are computed [ms], ``bound``, the largest term, ``mfu``: FLOP over the time and the dense peak [1].

    Raises
    ------
    InputError
        If a number is outside its domain, or the whole prompt is cached.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100)
    >>> sweep_prompt(one, input_tokens=[128, 2048])[["input_tokens", "bound"]].to_dict("list")
    {'input_tokens': [128.0, 2048.0], 'bound': ['weights', 'matmul']}
    """
    prompt, cached, chunk = (
        np.atleast_1d(axis).ravel().astype(float)
        for axis in np.broadcast_arrays(input_tokens, cached_tokens, chunk_tokens)
    )
    rates = decoding.peaks(replica)
    (step,) = decoding.prefill_steps(replica, input_tokens=prompt, cached_tokens=cached, chunk_tokens=chunk)
    time = decoding.time_of(step.asked, rates, efficiency)
    terms: dict[str, Any] = {f"{term}_s": step.count * getattr(time, f"{term}_s") for term in TERMS}
    total = step.count * time.pass_s
    busy = step.count * (
        step.asked.matmul_flop / rates.matmul_flop_per_s + step.asked.attention_flop / rates.attention_flop_per_s
    )
    beside = terms["fixed_s"] + terms["communication_s"] + terms["activations_s"]
    frame = pd.DataFrame({"input_tokens": prompt, "cached_tokens": cached, "chunk_tokens": chunk} | terms)
    return frame.assign(
        phases_s=total - beside,
        prefill_s=total,
        ms_per_token=1e3 * total / (prompt - cached),
        bound=time.bound,
        mfu=busy / total,
    )


def compute_bound_from(replica: Replica, *, cached_tokens: float = 0.0, efficiency: Efficiency = IDEAL) -> float:
    """Fewest new tokens in a pass from which computing takes longer than reading.

    Parameters
    ----------
    replica : Replica
    cached_tokens : float
        Tokens before them that are attended to and not computed. [token]
    efficiency : Efficiency

    Returns
    -------
    float
        Tokens of one prompt, fractions included; infinite where it never happens. [token]

    Raises
    ------
    InputError
        If cached_tokens is negative.

    Notes
    -----
    Both phases together: matrix products and attention against weights and cache. Time that is neither,
    fixed or communicated, does not enter. For dense weights without attention it is
    `analysis.model.roofline.positions_at_ridge`; experts push it up by about their number over top-k.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> for name in ("llama-3.1-8b", "gpt-oss-120b"):
    ...     one = Replica(shipped(name).architecture, Precision.of("bf16"), h100)
    ...     print(name, round(compute_bound_from(one)))
    llama-3.1-8b 316
    gpt-oss-120b 6772
    """
    cached = not_negative("cached_tokens", cached_tokens)
    rates = decoding.peaks(replica)

    def computes(new: np.ndarray) -> np.ndarray:
        time = decoding.time_of(decoding.demand(replica, Part(1.0, cached, new, "last")), rates, efficiency)
        return np.asarray(time.matmul_s + time.attention_s > time.weights_s + time.kv_s)

    # experts make the ratio fall before it rises, so the last crossing counts; three rounds narrow it to 1e-9
    low, high = 1.0, LONGEST
    for _ in range(5):
        grid = np.geomspace(low, high, 200)
        above = computes(grid)
        if not above[-1]:
            return float("inf")
        if above.all():
            return float(grid[0])
        last = int(np.flatnonzero(~above)[-1])
        low, high = float(grid[last]), float(grid[last + 1])
    return high


def sweep_gpus(
    replicas: Mapping[str, Replica], reached: Mapping[str, Efficiency], *, input_tokens: float
) -> pd.DataFrame:
    """Split the time to read one prompt into parts, one row for each replica and part.

    Parameters
    ----------
    replicas : mapping of str to Replica
    reached : mapping of str to Efficiency
        Of the same names.
    input_tokens : float
        The prompt. [token]

    Returns
    -------
    DataFrame
        ``name``, ``part``: computing (with the reading of weights and cache beneath it), reading (of activations),
        communication, other (launches), ``size`` [ms].

    Raises
    ------
    InputError
        If the prompt is not above zero.
    """
    rows = []
    for name, replica in replicas.items():
        found = sweep_prompt(replica, input_tokens=input_tokens, efficiency=reached[name]).iloc[0]
        columns = {
            "computing": "phases_s",
            "reading": "activations_s",
            "communication": "communication_s",
            "other": "fixed_s",
        }
        rows += [{"name": name, "part": part, "size": 1e3 * found[column]} for part, column in columns.items()]
    return pd.DataFrame(rows)
