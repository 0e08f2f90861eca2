"""A model in two dozen numbers: sums over its layers from which `analysis.symbolic.workload` computes every pass.

The page "Your workload" has no layers, only these sums. They hold where layers see everything or one window.
"""

from __future__ import annotations

import math

from analysis.inputs import InputError, Words
from analysis.model.decoding import _sizes
from analysis.model.transformer import _layer_matmul, _readers, _streams, weight_bytes
from analysis.reference.specs import Architecture, Precision


def figures(architecture: Architecture, precision: Precision) -> dict[str, float]:
    """Sum up a model.

    Parameters
    ----------
    architecture : Architecture
    precision : Precision

    Returns
    -------
    dict of str to float
        By the names of the inputs of `analysis.symbolic.workload`: bytes, FLOP and plain numbers as there.

    Raises
    ------
    InputError
        If layers have more than one window, a window that starts anew, or experts of several kinds.

    Notes
    -----
    ``_full`` sums what looks at all tokens, ``_windowed`` what looks at the ``window`` last; ``kept`` is what has to
    be held, ``seen`` the FLOP of one position per token that it sees, ``expanded`` and ``again`` the second form of
    latent attention, equal to the first and 0 elsewhere.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> found = figures(shipped("llama-3.1-8b").architecture, Precision.of("bf16"))
    >>> found["kv_full_byte"], found["layer_weights"] + found["vocab"] * found["hidden"]
    (131072.0, 7504658432.0)
    """
    readers, sizes = _readers(architecture), _sizes(architecture)
    always, routed = _streams(architecture, precision)
    kinds = {(experts, top_k) for _, experts, top_k in routed}
    windows = {reader.reach for reader in readers if math.isfinite(reader.reach)}
    kept = {reader.kept for reader in readers if math.isfinite(reader.kept)}
    if len(kinds) > 1:
        raise InputError("architecture", Words(architecture.name), "experts of one kind")
    if len(windows) > 1 or kept - windows or any(reader.chunked for reader in readers):
        raise InputError("architecture", Words(architecture.name), "layers that see everything or one window")
    experts, top_k = next(iter(kinds), (1, 1))
    found = {
        "always_byte": always,
        "routed_byte": sum(size for size, *_ in routed),
        "stored_byte": weight_bytes(architecture, precision),
        "layer_weights": _layer_matmul(architecture),
        "expert_row_flop": sum(row_flop for row_flop, *_ in sizes.experts),
        "experts": experts,
        "top_k": top_k,
        "layers": architecture.n_layers,
        "hidden": architecture.hidden,
        "vocab": architecture.vocabulary,
        "window": next(iter(windows), 1),
        "whole_elements": sizes.whole_elements,
        "split_elements": sizes.split_elements,
        "plain_layers": sizes.plain_layers,
        "expert_layers": sizes.expert_layers,
    }
    for name in ("kv_full_byte", "kv_windowed_byte", "kept_full_byte", "kept_windowed_byte"):
        found[name] = 0.0
    for name in ("seen", "expanded", "again"):
        found |= {f"{name}_full_flop": 0.0, f"{name}_windowed_flop": 0.0}
    for reader in readers:
        reach = "windowed" if math.isfinite(reader.reach) else "full"
        hold = "windowed" if math.isfinite(reader.kept) else "full"
        size = reader.count * reader.elements * precision.byte_per_kv
        found[f"kv_{reach}_byte"] += size
        found[f"kept_{hold}_byte"] += size
        other = reader.expanded_flop_per_token_seen
        found[f"seen_{reach}_flop"] += reader.count * reader.flop_per_token_seen
        found[f"expanded_{reach}_flop"] += reader.count * (reader.flop_per_token_seen if other is None else other)
        found[f"again_{reach}_flop"] += reader.count * reader.expansion_flop_per_token
    return {name: float(value) for name, value in found.items()}
