"""What a mixture of experts saves and what it does not: reading, room, and the batch at which arithmetic fills up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.inputs import InputError, positive
from analysis.model.decoding import IDEAL, pass_time
from analysis.model.head_to_head import scales
from analysis.model.prefill import compute_bound_from
from analysis.model.transformer import params_active, params_total, weight_bytes, weight_bytes_streamed
from analysis.reference.specs import Efficiency, Replica
from analysis.units import BYTE_PER_GB


def sizes(replicas: Mapping[str, Replica]) -> pd.DataFrame:
    """Say of several models what they store, what a token uses, and where reading and computing balance.

    Parameters
    ----------
    replicas : mapping of str to Replica

    Returns
    -------
    DataFrame
        ``name``, ``total_b`` and ``active_b`` (parameters in billions), ``active_share`` [1], ``weights_gb`` and
        ``read_gb`` (of a pass over one position) [GB], ``ridge_positions`` at which a decoding pass is balanced with
        every expert in use [1], ``prompt_tokens`` from which one prompt is compute-bound [token].

    Examples
    --------
    >>> from analysis.reference.model_config import replica
    >>> from analysis.reference.tables import SNAPSHOT
    >>> found = sizes({"a": replica("qwen3-30b-a3b", "h100-sxm", as_of=SNAPSHOT)})
    >>> found[["total_b", "active_b", "ridge_positions"]].round(1).values.tolist()
    [[30.5, 3.4, 2934.4]]
    """
    rows = []
    for name, one in replicas.items():
        of = one.architecture, one.precision
        total, active = params_total(one.architecture), params_active(one.architecture)
        rows.append(
            {
                "name": name,
                "total_b": total / 1e9,
                "active_b": active / 1e9,
                "active_share": active / total,
                "weights_gb": weight_bytes(*of) / BYTE_PER_GB,
                "read_gb": weight_bytes_streamed(*of, positions=1) / BYTE_PER_GB,
                "ridge_positions": scales(one).ridge_positions,
                "prompt_tokens": compute_bound_from(one),
            }
        )
    return pd.DataFrame(rows)


def sweep_read(
    replicas: Mapping[str, Replica], *, positions: Sequence[float], skews: Sequence[float] = (0.0,)
) -> pd.DataFrame:
    """Follow the share of its weights that one pass reads.

    Parameters
    ----------
    replicas : mapping of str to Replica
    positions : sequence of float
        Positions of the pass over all sequences. [1]
    skews : sequence of float
        Of the routing, as in `analysis.model.transformer.expert_union`. [1]

    Returns
    -------
    DataFrame
        ``name``, ``skew``, ``positions``, ``read_share`` (weights read over weights stored) and ``saving``: bytes
        that each position costs at batch 1 over what it costs here [1].

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import replica
    >>> from analysis.reference.tables import SNAPSHOT
    >>> one = {"a": replica("gpt-oss-120b", "h100-sxm", as_of=SNAPSHOT)}
    >>> sweep_read(one, positions=[1, 32, 1000])["read_share"].round(2).tolist()
    [0.08, 0.64, 0.98]
    """
    m = positive("positions", positions)
    frames = []
    for name, one in replicas.items():
        for skew in skews:
            read = weight_bytes_streamed(one.architecture, one.precision, positions=m, skew=skew)
            alone = weight_bytes_streamed(one.architecture, one.precision, positions=1, skew=skew)
            frames.append(
                pd.DataFrame(
                    {
                        "name": name,
                        "skew": skew,
                        "positions": m,
                        "read_share": read / weight_bytes(one.architecture, one.precision),
                        "saving": alone * m / read,
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


def sweep_width(
    replicas: Mapping[str, Replica],
    *,
    widths: Sequence[int],
    batch: Sequence[float],
    context_tokens: float,
    efficiencies: Mapping[str, Efficiency] | None = None,
    expert_skew: float = 0.0,
) -> pd.DataFrame:
    """Follow how much longer a pass over several positions of each sequence takes than one over a single position.

    Parameters
    ----------
    replicas : mapping of str to Replica
    widths : sequence of int
        Positions of each sequence: drafts and one more, or a block. [1]
    batch : sequence of float
        Sequences. [1]
    context_tokens : float
        Cached tokens of each. [token]
    efficiencies : mapping of str to Efficiency, optional
        Of the same names; the ideal if left out.
    expert_skew : float
        Of the routing. [1]

    Returns
    -------
    DataFrame
        ``name``, ``width``, ``batch``, ``ratio`` [1].

    Raises
    ------
    InputError
        If a number is outside its domain, or efficiencies lack a name.

    Examples
    --------
    >>> from analysis.reference.model_config import replica
    >>> from analysis.reference.tables import SNAPSHOT
    >>> both = {n: replica(n, "h100-sxm", as_of=SNAPSHOT) for n in ("llama-3.1-8b", "qwen3-30b-a3b")}
    >>> sweep_width(both, widths=[4], batch=[1], context_tokens=500)["ratio"].round(1).tolist()
    [1.0, 2.6]
    """
    n = positive("batch", batch)
    frames = []
    for name, one in replicas.items():
        if efficiencies is not None and name not in efficiencies:
            raise InputError("efficiencies", name, "an entry for every replica")
        reached = IDEAL if efficiencies is None else efficiencies[name]
        routed = replace(one, expert_skew=expert_skew)
        plain = pass_time(routed, batch=n, context_tokens=context_tokens, efficiency=reached).pass_s
        for width in widths:
            wide = pass_time(routed, batch=n, context_tokens=context_tokens, positions=width, efficiency=reached)
            ratio = np.asarray(wide.pass_s / plain)
            frames.append(pd.DataFrame({"name": name, "width": width, "batch": n, "ratio": ratio}))
    return pd.concat(frames, ignore_index=True)
