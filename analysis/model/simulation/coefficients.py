"""A replica's pass time as a few numbers that a compiled loop can use.

`analysis.model.decoding.time_of` is linear in rows, logits and sequences, except for experts in use and
windows of attention. Here its constants are worked out once per replica; a test binds the result to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.inputs import InputError
from analysis.model import decoding, transformer
from analysis.model.decoding import Part
from analysis.model.simulation.compiled import (
    AGAIN_S,
    BASE,
    CACHED,
    EVENLY,
    EXPANDED_S,
    KEPT,
    KEPT_BYTE,
    LOGIT,
    LOGIT_MATMUL,
    LOOK_S,
    OVERLAP,
    PROMPT,
    READ,
    READ_S,
    ROW,
    ROW_MATMUL,
    ROWS,
    SEEN,
    SEQUENCE,
    SUMMED,
    WEIGHTS,
)
from analysis.reference.specs import Efficiency, MemoryRule, Replica


class Coefficients(NamedTuple):
    """Constants of the time of a pass, in seconds of one GPU, and of the memory that a sequence holds.

    ``scalars``, ``experts`` and ``readers`` are what `analysis.model.simulation.compiled` says: numbers, a row for
    each kind of routed layer, a row for each kind of attention.
    """

    scalars: NDArray[np.float64]
    experts: NDArray[np.float64]
    readers: NDArray[np.float64]
    memory_byte: float


def coefficients(
    replica: Replica, efficiency: Efficiency, *, rule: MemoryRule, one_position: bool = True
) -> Coefficients:
    """Work out the constants of a replica's pass time.

    Parameters
    ----------
    replica : Replica
    efficiency : Efficiency
        Plain numbers, no arrays.
    rule : MemoryRule
        How the engine divides the memory.
    one_position : bool
        Whether each sequence computes one position a pass: then latent attention stays in one form.

    Returns
    -------
    Coefficients

    Raises
    ------
    InputError
        If the weights do not fit, or the GPUs do not divide the heads.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100)
    >>> found = coefficients(one, Efficiency(), rule=MemoryRule())
    >>> round(float(found.scalars[WEIGHTS]) * 1e3, 2)
    4.48
    """
    architecture, precision, gpus = replica.architecture, replica.precision, replica.gpus
    e, rates = efficiency, decoding.peaks(replica)
    one = decoding.demand(replica, Part(1.0, 0.0, 1.0, "all"))
    two = decoding.demand(replica, Part(1.0, 0.0, 2.0, "last"))
    bandwidth = float(e.mbu * rates.mem_bw_byte_per_s)
    multiplied = float(e.mfu * rates.matmul_flop_per_s)
    attended = float(e.attention_mfu * rates.attention_flop_per_s)
    row_flop, row_moved = two.matmul_flop - one.matmul_flop, two.activation_byte - one.activation_byte
    experts = _experts(replica, e, bandwidth=bandwidth, multiplied=multiplied)
    in_use_s = float((experts[:, READ] * experts[:, EVENLY]).sum())
    scalars = np.empty(SEEN + 1)
    scalars[WEIGHTS] = one.weight_byte / bandwidth - in_use_s
    scalars[ROW_MATMUL] = (row_flop - one.expert_flop + one.expert_flop / e.expert_mfu) / multiplied
    scalars[LOGIT_MATMUL] = (one.matmul_flop - row_flop) / multiplied
    scalars[BASE] = (
        one.plain_layers * e.layer_s + one.expert_layers * e.expert_layer_s + one.all_reduces * e.all_reduce_s
    )
    scalars[ROW] = one.all_reduces * one.payload_byte / e.link_byte_per_s + e.activation_share * row_moved / bandwidth
    scalars[LOGIT] = e.activation_share * (one.activation_byte - row_moved) / bandwidth
    scalars[SEQUENCE] = e.sequence_s
    scalars[PROMPT] = two.prompt_layers * e.prompt_layer_s
    scalars[OVERLAP] = e.overlap
    readers, needed_byte = _readers(replica, bandwidth=bandwidth, attended=attended, one_position=one_position)
    summed = readers[:, SUMMED] == 1
    scalars[CACHED], scalars[SEEN] = readers[summed, READ_S].sum(), readers[summed, LOOK_S].sum()
    tokens = 1.0
    fits = float(decoding.max_batch(replica, tokens=tokens, rule=rule))
    if not fits > 0:
        raise InputError("gpus", gpus, f"enough for the weights of {architecture.name} in {precision.weights}")
    return Coefficients(scalars, experts, readers, fits * needed_byte)


def _experts(replica: Replica, e: Efficiency, *, bandwidth: float, multiplied: float) -> NDArray[np.float64]:
    """One row for each number of experts and top-k: chances to be used, times of weights and of a row in every one."""
    _, routed = transformer._streams(replica.architecture, replica.precision)
    sizes = decoding._sizes(replica.architecture).experts
    skew = float(replica.expert_skew)
    kinds: dict[float, NDArray[np.float64]] = {}
    for (byte, of, top_k), (row_flop, _, _) in zip(routed, sizes, strict=True):
        evenly = top_k / of
        if evenly not in kinds:
            favourite, other = evenly + skew * (1 - evenly), (1 - skew) * evenly
            logarithms = [np.log1p(-chance) if chance < 1 else -np.inf for chance in (evenly, favourite, other)]
            kinds[evenly] = np.array([evenly, skew, *logarithms, 0.0, 0.0])
        kinds[evenly][READ] += byte / replica.gpus / bandwidth
        kinds[evenly][ROWS] += float(e.expert_rows) * row_flop / replica.gpus / float(e.expert_mfu) / multiplied
    return np.array(list(kinds.values())).reshape(-1, ROWS + 1)


def _readers(
    replica: Replica, *, bandwidth: float, attended: float, one_position: bool
) -> tuple[NDArray[np.float64], float]:
    """One row for each kind of attention, and the bytes that the first token of a sequence takes in the cache."""
    copies = decoding.kv_copies(replica)
    kinds: dict[tuple[Any, ...], NDArray[np.float64]] = {}
    for r in transformer._readers(replica.architecture):
        latent = r.expanded_flop_per_token_seen is not None
        expanded = float(r.expanded_flop_per_token_seen or 0)
        dearer = (r.flop_per_token_seen - expanded) * 2 > r.expansion_flop_per_token
        # the form that is cheaper does not change while a token at a time is computed after one or more
        summed = np.isinf(r.reach) and (not latent or (one_position and not dearer))
        kind = (r.reach, r.kept, r.chunked, latent and not summed, r.elements, r.flop_per_token_seen, expanded)
        row = kinds.setdefault(kind, np.array([0, 0, r.reach, r.chunked, 0, 0, summed, 0, r.kept], float))
        byte = replica.precision.byte_per_kv * r.count * r.elements * copies
        each = r.count / replica.gpus / attended
        row[READ_S] += byte / replica.gpus / bandwidth
        row[LOOK_S] += r.flop_per_token_seen * each
        row[EXPANDED_S] += expanded * each if latent else np.inf
        row[AGAIN_S] += r.expansion_flop_per_token * each
        row[KEPT_BYTE] += byte
    found = np.array(list(kinds.values())).reshape(-1, KEPT + 1)
    return found, float(found[:, KEPT_BYTE].sum())
