"""What a transformer weighs, and the bytes and FLOP of a pass.

A pass computes ``positions`` new positions of each sequence after ``context_tokens`` cached ones:
one new position is a decode step, a whole prompt after an empty cache is prefill, a block is a
diffusion pass or the check of a draft. Counts are facts of the architecture: no efficiency, no time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.inputs import InputError, not_negative, positive, scalar_or_array, share, whole
from analysis.reference.specs import MATMUL_COMPONENTS, ROUTED_COMPONENTS, Architecture, LayerGroup, Precision

FLOP_PER_WEIGHT = 2
#: Logits are made and compared in 32 bit.
BYTE_PER_LOGIT = 4.0

KvPolicy = Literal["needed", "reserved", "read"]
LatentForm = Literal["absorbed", "expanded", "cheaper"]


# --- Parameters and weight bytes ---------------------------------------------------------------


def params_total(architecture: Architecture) -> int:
    """All parameters, each stored tensor once: tied embeddings count once.

    Parameters
    ----------
    architecture : Architecture

    Returns
    -------
    int
        Parameters. [1]

    Notes
    -----
    For equal dense layers derived in `analysis.symbolic.transformer.params_total`. Published "model
    sizes" may store a tied head twice, hold draft layers, or count quantization scales.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> params_total(shipped("llama-3.1-8b").architecture)
    8030261248
    """
    return sum(architecture.components.values())


def params_active(architecture: Architecture) -> int:
    """Parameters that one token uses: all but the routed experts, and top-k of those.

    Parameters
    ----------
    architecture : Architecture

    Returns
    -------
    int
        Parameters, both embedding matrices counted. [1]

    Notes
    -----
    Publishers differ: gpt-oss-120b has 5.71 billion by this count and 5.13 without its input
    embedding, which is a look-up. What decides arithmetic and traffic is `params_matmul`, and what
    decides memory is `params_total`.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> params_active(shipped("mixtral-8x7b").architecture)
    12879925248
    """
    idle = 0
    for group in architecture.layers:
        if group.mlp is not None and group.mlp.experts:
            parts = group.mlp.components(architecture.hidden)
            unused = group.mlp.experts - group.mlp.top_k
            idle += group.count * sum(parts[c] // group.mlp.experts * unused for c in ROUTED_COMPONENTS)
    return params_total(architecture) - idle


def params_matmul(architecture: Architecture) -> int:
    """Weights that multiply one token: head included, input embedding, norms and biases left out.

    Parameters
    ----------
    architecture : Architecture

    Returns
    -------
    int
        Weights; a tied head multiplies like an untied one. [1]

    Notes
    -----
    For equal dense layers derived in `analysis.symbolic.transformer.params_matmul`.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> params_matmul(shipped("llama-3.1-8b").architecture)
    7504658432
    """
    return _layer_matmul(architecture) + architecture.head_params


@lru_cache(maxsize=256)
def _layer_matmul(architecture: Architecture) -> int:
    count = 0
    for group in architecture.layers:
        if group.attention is not None:
            count += group.count * sum(group.attention.matrices(architecture.hidden).values())
        if group.mlp is not None:
            for component, params in group.mlp.components(architecture.hidden).items():
                if component in MATMUL_COMPONENTS:
                    used = params // group.mlp.experts * group.mlp.top_k if component == "experts" else params
                    count += group.count * used
    return count


def weight_bytes(architecture: Architecture, precision: Precision) -> float:
    """Bytes that the weights occupy, quantization scales included.

    Parameters
    ----------
    architecture : Architecture
    precision : Precision

    Returns
    -------
    float
        Bytes: of all experts, whichever a token uses. [byte]

    Notes
    -----
    Linear in the bytes of each component. 1 B = 8 bit; a bf16 model has 2 bytes per parameter.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> weight_bytes(shipped("llama-3.3-70b").architecture, Precision.of("bf16"))
    141107412992.0
    """
    return float(sum(n * precision.byte_of(component) for component, n in architecture.components.items()))


def expert_union(
    positions: ArrayLike, *, experts: ArrayLike, top_k: ArrayLike, skew: ArrayLike = 0.0, sequences: ArrayLike = 1.0
) -> Any:
    r"""Share of the experts that a pass reads.

    .. math:: 1 - (1 - u)^n,\quad u = q\,\bigl(1 - (1 - p_f)^m\bigr) + (1 - q)\,\bigl(1 - (1 - p_o)^m\bigr),\quad
        q = \tfrac{k}{n_e},\; p_f = q + z\,(1 - q),\; p_o = (1 - z)\,q

    Parameters
    ----------
    positions : float or array
        Positions that the pass routes: of each sequence, or of all where routing is even. [1]
    experts, top_k : float or array, broadcastable
        Routed experts of a layer, and how many one position uses. [1]
    skew : float or array, broadcastable
        Share of the positions that use the k favourite experts of their text, 0 to 1; the others draw evenly. [1]
    sequences : float or array, broadcastable
        Texts of so many positions, each with favourites of its own. [1]

    Returns
    -------
    float or array, broadcast shape
        Expected share: without skew 1 - (1 - k/n_e)^(m n), with full skew 1 - (1 - k/n_e)^n. [1]

    Raises
    ------
    InputError
        If a number is outside its domain, or top-k exceeds the experts.

    Notes
    -----
    Derived in `analysis.symbolic.transformer`: ``expert_union``, ``expert_union_skewed`` and
    ``expert_union_of_texts``. Limits: one position reads k of n_e; many read all; where each text has one position,
    skew changes nothing. The skew of two positions that share a part of their experts: `skew_of`.

    Examples
    --------
    >>> [round(float(u), 3) for u in expert_union([1, 16, 256], experts=128, top_k=8)]
    [0.062, 0.644, 1.0]
    >>> [round(float(u), 3) for u in expert_union([1, 16, 256], experts=128, top_k=8, skew=0.5)]
    [0.062, 0.436, 1.0]
    """
    m = not_negative("positions", positions)
    of, used, favour = whole("experts", experts), whole("top_k", top_k), share("skew", skew)
    n = not_negative("sequences", sequences)
    if np.any(used > of):
        raise InputError("top_k", float(np.max(used)), f"at most the number of experts, {np.min(of):g}")
    return scalar_or_array(_union(m, of, used, favour, n))


def skew_of(neighbour_share: ArrayLike, *, experts: ArrayLike, top_k: ArrayLike) -> Any:
    r"""Skew of routing at which two positions share so many of their experts.

    .. math:: z = \sqrt{\frac{o - q}{1 - q}},\quad q = \tfrac{k}{n_e}

    Parameters
    ----------
    neighbour_share : float or array
        Share of the experts of one position that the other uses too, from k/n_e (no skew) to 1. [1]
    experts, top_k : float or array, broadcastable
        Routed experts of a layer, and how many one position uses, fewer than all. [1]

    Returns
    -------
    float or array, broadcast shape
        Skew, the argument of `expert_union`. [1]

    Raises
    ------
    InputError
        If a number is outside its domain, or positions share less than chance gives.

    Notes
    -----
    Derived in `analysis.symbolic.transformer.skew_of_neighbours`.

    Examples
    --------
    >>> round(skew_of(0.257, experts=64, top_k=4), 3)
    0.455
    """
    common = share("neighbour_share", neighbour_share)
    of, used = whole("experts", experts), whole("top_k", top_k)
    if np.any(used >= of):
        raise InputError("top_k", float(np.max(used)), f"fewer than the number of experts, {np.min(of):g}")
    evenly = used / of
    if np.any(common < evenly):
        raise InputError("neighbour_share", float(np.min(common)), f"at least what chance gives, {np.max(evenly):g}")
    return scalar_or_array(np.sqrt((common - evenly) / (1 - evenly)))


def _union(
    m: NDArray[np.float64], experts: Any, top_k: Any, skew: Any = 0.0, sequences: Any = 1.0
) -> NDArray[np.float64]:
    evenly = np.asarray(top_k) / experts
    if not np.any(skew):
        return _used(m * sequences, evenly)
    favourite, other = evenly + skew * (1 - evenly), (1 - skew) * evenly
    return _used(sequences, evenly * _used(m, favourite) + (1 - evenly) * _used(m, other))


def _used(m: Any, chance: Any) -> NDArray[np.float64]:
    """Chance that one of m positions uses what each uses with this chance."""
    # log1p and expm1 keep the digits where the chance is tiny; chance 1 is always used, and nothing uses nothing
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(m) == 0, 0.0, -np.expm1(m * np.log1p(-np.asarray(chance))))


def weight_bytes_streamed(
    architecture: Architecture,
    precision: Precision,
    *,
    positions: ArrayLike,
    skew: ArrayLike = 0.0,
    sequences: ArrayLike = 1.0,
) -> Any:
    """Weight bytes that one pass reads.

    Parameters
    ----------
    architecture : Architecture
    precision : Precision
    positions : float or array
        Positions of the pass: of each sequence, or of all where routing is even. [1]
    skew, sequences : float or array, broadcastable
        As in `expert_union`. [1]

    Returns
    -------
    float or array
        Bytes. [byte]

    Raises
    ------
    InputError
        If positions is negative or the skew outside 0 to 1.

    Notes
    -----
    The input embedding is a look-up of one row per position, which is left out; a tied embedding is
    read once, as the head. Routed experts count by `expert_union`: capacity is `weight_bytes`, traffic
    is this, and the two differ by an order of magnitude at batch 1.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> model = shipped("gpt-oss-120b")
    >>> one, many = weight_bytes_streamed(model.architecture, model.precision, positions=[1, 4096]) / 1e9
    >>> round(float(one), 2), round(float(many), 2)
    (5.0, 64.09)
    """
    m, favour, n = np.broadcast_arrays(
        not_negative("positions", positions), share("skew", skew), not_negative("sequences", sequences)
    )
    if not np.any(favour):
        return scalar_or_array(_streamed(architecture, precision, m * n))
    return scalar_or_array(_streamed_by_texts(architecture, precision, [(n, m)], favour))


def _streamed(architecture: Architecture, precision: Precision, m: NDArray[np.float64]) -> NDArray[np.float64]:
    always, routed = _streams(architecture, precision)
    total = np.full_like(m, always)
    for size, experts, top_k in routed:
        total += size * _union(m, experts, top_k)
    return total


def weight_bytes_of_parts(
    architecture: Architecture, precision: Precision, parts: Iterable[tuple[Any, Any]], *, skew: float
) -> Any:
    """Weight bytes of a pass over sequences of several kinds, where positions of one text share experts.

    Parameters
    ----------
    architecture : Architecture
    precision : Precision
    parts : iterable of (float or array, float or array)
        Sequences of a kind, and positions of each of them. [1, 1]
    skew : float
        Of the routing, as in `expert_union`. [1]

    Returns
    -------
    float or array
        Bytes; an expert that any of them uses is read once. [byte]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> model = shipped("gpt-oss-20b")
    >>> of = model.architecture, model.precision
    >>> both = weight_bytes_of_parts(*of, [(4, 1), (1, 8)], skew=0.5)
    >>> bool(weight_bytes_streamed(*of, positions=1, sequences=4) < both < weight_bytes_streamed(*of, positions=12))
    True
    """
    texts = [(not_negative("batch", n), not_negative("positions", w)) for n, w in parts]
    return scalar_or_array(_streamed_by_texts(architecture, precision, texts, share("skew", skew)))


def _streamed_by_texts(
    architecture: Architecture,
    precision: Precision,
    texts: Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]],
    skew: Any,
) -> NDArray[np.float64]:
    always, routed = _streams(architecture, precision)
    texts = list(texts)
    total = np.full(np.broadcast_shapes(*(np.shape(x) for pair in texts for x in pair), np.shape(skew)), always)
    for size, experts, top_k in routed:
        unused: Any = 1.0
        for n, w in texts:
            unused = unused * (1 - _union(w, experts, top_k, skew, n))
        total = total + size * (1 - unused)
    return np.asarray(total)


@lru_cache(maxsize=256)
def _streams(architecture: Architecture, precision: Precision) -> tuple[float, tuple[tuple[float, int, int], ...]]:
    """Bytes that every pass reads, and for each group of layers those of all experts, how many, and top-k."""
    parts = architecture.components
    looked_up = {"embedding", "positions"}
    always = architecture.head_params * precision.byte_of("embedding" if architecture.tied else "head")
    always += sum(parts[c] * precision.byte_of(c) for c in parts if c not in ROUTED_COMPONENTS | looked_up | {"head"})
    routed = []
    for group in architecture.layers:
        if group.mlp is not None and group.mlp.experts:
            of = group.mlp.components(architecture.hidden)
            size = group.count * sum(of[c] * precision.byte_of(c) for c in ROUTED_COMPONENTS)
            routed.append((size, group.mlp.experts, group.mlp.top_k))
    return always, tuple(routed)


# --- Cache -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reader:
    """Attention over one kind of cached number: what a token leaves, what a look at it costs, how far it looks.

    ``reach`` is infinite for full attention. ``kept`` says how long the numbers must be held.
    """

    count: int
    elements: int
    flop_per_token_seen: int
    reach: float
    kept: float
    chunked: bool = False
    expanded_flop_per_token_seen: int | None = None
    expansion_flop_per_token: int = 0

    def tokens_read(self, context: NDArray[np.float64]) -> NDArray[np.float64]:
        """Count the cached tokens that the next position reads."""
        if np.isinf(self.reach):
            return context
        return context % self.reach if self.chunked else np.minimum(context, self.reach)

    def tokens_seen(self, context: NDArray[np.float64], w: NDArray[np.float64], causal: bool) -> NDArray[np.float64]:
        """Tokens that w positions see in sum."""
        if not causal:
            return w * (self.tokens_read(context) + w)
        if np.isinf(self.reach):
            return w * (context + (w + 1) / 2)
        return self._seen_since_start(context + w) - self._seen_since_start(context)

    def _seen_since_start(self, end: NDArray[np.float64]) -> NDArray[np.float64]:
        whole_window = self.reach * (self.reach + 1) / 2
        if self.chunked:
            chunks, rest = np.divmod(end, self.reach)
            return chunks * whole_window + rest * (rest + 1) / 2
        growing = np.minimum(end, self.reach)
        return growing * (growing + 1) / 2 + (end - growing) * self.reach


@lru_cache(maxsize=256)
def _readers(architecture: Architecture) -> tuple[_Reader, ...]:
    return tuple(reader for group in architecture.layers for reader in _readers_of(group))


def _readers_of(group: LayerGroup) -> Iterator[_Reader]:
    attention = group.attention
    if attention is None:
        return
    window = np.inf if attention.window is None else attention.window
    indexer = attention.indexer
    reach = min(window, np.inf if indexer is None else indexer.keys)
    direct = FLOP_PER_WEIGHT * attention.query_heads * (attention.head_dim + attention.value_dim)
    if attention.latent is None:
        yield _Reader(group.count, attention.kv_elements, direct, reach, window, attention.chunked)
    else:
        rank, rope = attention.latent.kv_rank, attention.latent.rope_dim
        nope = attention.head_dim - rope
        absorbed = FLOP_PER_WEIGHT * attention.query_heads * (2 * rank + rope)
        again = FLOP_PER_WEIGHT * rank * attention.query_heads * (nope + attention.value_dim)
        yield _Reader(group.count, attention.kv_elements, absorbed, reach, window, False, direct, again)
    if indexer is not None and indexer.heads:
        look = FLOP_PER_WEIGHT * indexer.heads * indexer.head_dim
        yield _Reader(group.count, indexer.head_dim, look, window, window)


def kv_bytes_per_token(architecture: Architecture, precision: Precision) -> float:
    """Bytes that one token leaves in the cache, in all layers.

    Parameters
    ----------
    architecture : Architecture
    precision : Precision

    Returns
    -------
    float
        Bytes per token; windowed layers count like others, for they store each token too. [byte/token]

    Notes
    -----
    Derived in `analysis.symbolic.transformer.kv_bytes_per_token` and ``latent_bytes_per_token``: KV
    heads count, query heads do not, and latent attention has neither.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> kv_bytes_per_token(shipped("llama-3.1-70b").architecture, Precision.of("bf16"))
    327680.0
    """
    return precision.byte_per_kv * sum(r.count * r.elements for r in _readers(architecture))


def kv_bytes_per_sequence(
    architecture: Architecture, precision: Precision, *, context_tokens: ArrayLike, policy: KvPolicy = "needed"
) -> Any:
    """Cache bytes of one sequence.

    Parameters
    ----------
    architecture : Architecture
    precision : Precision
    context_tokens : float or array
        Cached tokens. [token]
    policy : {"needed", "reserved", "read"}
        ``needed``: what later positions can still see, so that windowed layers hold a window.
        ``reserved``: every layer holds every token, as engines without a hybrid cache do.
        ``read``: what the next position reads.

    Returns
    -------
    float or array
        Bytes. [byte]

    Raises
    ------
    InputError
        If the context is negative or the policy unknown.

    Notes
    -----
    Derived in `analysis.symbolic.transformer.kv_bytes_windowed`. Without windows and indexers the
    three policies agree.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> model = shipped("gpt-oss-20b").architecture
    >>> for policy in ("needed", "reserved", "read"):
    ...     print(kv_bytes_per_sequence(model, Precision.of("bf16"), context_tokens=8192, policy=policy))
    204472320.0
    402653184.0
    204472320.0
    """
    context = not_negative("context_tokens", context_tokens)
    return scalar_or_array(_kv_bytes(architecture, precision, context, policy))


def _kv_bytes(
    architecture: Architecture, precision: Precision, context: NDArray[np.float64], policy: str
) -> NDArray[np.float64]:
    held: dict[str, Callable[[_Reader], NDArray[np.float64]]] = {
        "needed": lambda reader: context if np.isinf(reader.kept) else np.minimum(context, reader.kept),
        "reserved": lambda _: context,
        "read": lambda reader: reader.tokens_read(context),
    }
    if policy not in held:
        raise InputError("policy", policy, "needed, reserved or read")
    total = np.zeros_like(context)
    for reader in _readers(architecture):
        total += precision.byte_per_kv * reader.count * reader.elements * held[policy](reader)
    return total


def kv_replication(architecture: Architecture, *, tensor_parallel: ArrayLike) -> Any:
    """Count the copies of the cache that tensor parallelism makes.

    Parameters
    ----------
    architecture : Architecture
    tensor_parallel : float or array
        GPUs among which each layer is split. [1]

    Returns
    -------
    float or array
        Cache bytes on all those GPUs over those of one copy: 1 while each GPU has KV heads of its
        own, then it grows. A latent vector belongs to all heads, so every GPU holds it. [1]

    Raises
    ------
    InputError
        If the GPUs are no whole number, or do not divide the query heads, or neither divide the KV
        heads nor are divided by them.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> kv_replication(shipped("llama-3.1-70b").architecture, tensor_parallel=[1, 8, 16]).tolist()
    [1.0, 1.0, 2.0]
    """
    tp = whole("tensor_parallel", tensor_parallel)
    held, once = np.zeros_like(tp), 0
    for group in architecture.layers:
        attention = group.attention
        if attention is None:
            continue
        split = attention.query_heads % tp == 0
        indexer = 0 if attention.indexer is None else attention.indexer.head_dim
        if attention.latent is not None:
            copies = tp
        else:
            heads = attention.kv_heads
            split &= (heads % tp == 0) | (tp % heads == 0)
            copies = np.maximum(1.0, tp / heads)
        if not split.all():
            raise InputError(
                "tensor_parallel",
                float(tp[~split].flat[0]),
                f"a divisor of {attention.query_heads} query heads that splits {attention.kv_heads} KV heads evenly",
            )
        held = held + group.count * (attention.kv_elements * copies + indexer * tp)
        once += group.count * (attention.kv_elements + indexer)
    return scalar_or_array(np.asarray(held / once if once else np.ones_like(tp)))


# --- Arithmetic --------------------------------------------------------------------------------


def matmul_flop(architecture: Architecture, *, positions: ArrayLike, logit_positions: ArrayLike | None = None) -> Any:
    r"""FLOP of all matrix products outside the attention scores.

    .. math:: 2\,(N_\mathrm{layers}\, m + V d\, m_\mathrm{logits})

    Parameters
    ----------
    architecture : Architecture
    positions : float or array
        Positions computed. [1]
    logit_positions : float or array, optional
        Positions for which logits are made; all of them if left out. Prefill needs one per sequence.

    Returns
    -------
    float or array
        FLOP; two per weight that multiplies, of k experts per position. [FLOP]

    Raises
    ------
    InputError
        If a number is negative.

    Notes
    -----
    Derived in `analysis.symbolic.transformer.matmul_flop`. The input embedding costs nothing, a tied
    head as much as an untied one. Projections into and out of the latent space are in the weights, so
    latent attention needs no term of its own here.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> matmul_flop(shipped("llama-3.1-8b").architecture, positions=1) / 1e9
    15.009316864
    """
    m = not_negative("positions", positions)
    logits = m if logit_positions is None else not_negative("logit_positions", logit_positions)
    flop = FLOP_PER_WEIGHT * (_layer_matmul(architecture) * m + architecture.head_params * logits)
    return scalar_or_array(np.asarray(flop))


def attention_flop(
    architecture: Architecture,
    *,
    context_tokens: ArrayLike,
    positions: ArrayLike = 1,
    causal: bool = True,
    form: LatentForm = "cheaper",
) -> Any:
    r"""FLOP of the attention scores and weighted sums of one sequence.

    .. math:: a\,\left(w s + \tfrac{w(w+1)}{2}\right),\qquad a = 4 L h_q d_h

    Parameters
    ----------
    architecture : Architecture
    context_tokens : float or array
        Cached tokens before the pass. [token]
    positions : float or array
        New positions of the sequence. [1]
    causal : bool
        Each position sees those before it and itself. False: it sees the whole block, as in diffusion.
    form : {"cheaper", "absorbed", "expanded"}
        Of latent attention. ``absorbed`` works on the latent vectors; ``expanded`` first makes keys and
        values of them, for cached tokens anew in each pass. Engines decode in the first form and
        prefill in the second; ``cheaper`` takes the smaller.

    Returns
    -------
    float or array, broadcast shape
        FLOP. [FLOP]

    Raises
    ------
    InputError
        If a number is negative or the form unknown.

    Notes
    -----
    Derived in `analysis.symbolic.transformer` (``causal_tokens_seen``, ``windowed_tokens_seen``,
    ``attention_flop_per_token_seen``, ``absorbed_flop_per_token_seen``). Only the triangle that a
    causal kernel computes is counted. A windowed layer sees at most its window; the choice of keys by
    an indexer is counted at full length.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> attention_flop(shipped("llama-3.1-8b").architecture, context_tokens=0, positions=2048) / 1e12
    1.100048498688
    """
    if form not in ("absorbed", "expanded", "cheaper"):
        raise InputError("form", form, "absorbed, expanded or cheaper")
    context, w = not_negative("context_tokens", context_tokens), not_negative("positions", positions)
    return scalar_or_array(_attention_flop(architecture, context, w, causal, form))


def _attention_flop(
    architecture: Architecture, context: NDArray[np.float64], w: NDArray[np.float64], causal: bool, form: LatentForm
) -> NDArray[np.float64]:
    total = np.zeros(np.broadcast_shapes(context.shape, w.shape))
    for r in _readers(architecture):
        seen = r.tokens_seen(context, w, causal)
        flop = r.flop_per_token_seen * seen
        if r.expanded_flop_per_token_seen is not None:
            again = np.where(w > 0, r.expansion_flop_per_token * r.tokens_read(context), 0.0)
            expanded = r.expanded_flop_per_token_seen * seen + again
            flop = {"absorbed": flop, "expanded": expanded, "cheaper": np.minimum(flop, expanded)}[form]
        total += r.count * flop
    return total


# --- A pass ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PassWork:
    """Bytes and FLOP of one pass over a batch, on all GPUs of a replica together, nothing replicated.

    Fields are floats or arrays of one shape.
    """

    weight_bytes: Any
    kv_read_bytes: Any
    kv_written_bytes: Any
    matmul_flop: Any
    attention_flop: Any
    logit_bytes: Any

    @property
    def flop(self) -> Any:
        """All FLOP. [FLOP]."""
        return self.matmul_flop + self.attention_flop

    @property
    def byte(self) -> Any:
        """Weights and cache that are read; what is written is small beside it except in prefill. [byte]."""
        return self.weight_bytes + self.kv_read_bytes

    @property
    def intensity_flop_per_byte(self) -> Any:
        """FLOP per byte read. [FLOP/byte]."""
        return self.flop / self.byte


def pass_work(
    architecture: Architecture,
    precision: Precision,
    *,
    batch: ArrayLike,
    context_tokens: ArrayLike,
    positions: ArrayLike = 1,
    logits: Literal["all", "last"] = "all",
    causal: bool = True,
    expert_skew: float = 0.0,
) -> PassWork:
    """Bytes and FLOP of one pass.

    Parameters
    ----------
    architecture : Architecture
    precision : Precision
    batch : float or array
        Sequences. [1]
    context_tokens : float or array
        Cached tokens of each before the pass. [token]
    positions : float or array
        New positions of each sequence. [1]
    logits : {"all", "last"}
        Positions that need logits: all (decoding of any kind) or the last of each sequence (prefill).
    causal : bool
        False for a block whose positions all see each other.
    expert_skew : float
        Skew of the routing, as in `expert_union`. [1]

    Returns
    -------
    PassWork
        Fields of the broadcast shape.

    Raises
    ------
    InputError
        If a number is outside its domain.

    Notes
    -----
    The logits of wide passes are work of the size of the vocabulary: ``logit_bytes`` is what it takes
    to write them once (4 bytes each), and their FLOP are in ``matmul_flop``.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> model = shipped("llama-3.1-8b").architecture
    >>> work = pass_work(model, Precision.of("bf16"), batch=[1, 256], context_tokens=2048)
    >>> work.intensity_flop_per_byte.round(1).tolist()
    [1.1, 49.2]
    """
    if logits not in ("all", "last"):
        raise InputError("logits", logits, "all or last")
    n, s, w = positive("batch", batch), not_negative("context_tokens", context_tokens), positive("positions", positions)
    skew = float(share("expert_skew", expert_skew))
    m = np.asarray(n * w)
    with_logits = m if logits == "all" else n * np.minimum(w, 1.0)
    head, layers = architecture.head_params, _layer_matmul(architecture)
    results = {
        "weight_bytes": _streamed_by_texts(architecture, precision, [(n, w)], skew)
        if skew
        else _streamed(architecture, precision, m),
        "kv_read_bytes": n * _kv_bytes(architecture, precision, s, "read"),
        "kv_written_bytes": m * kv_bytes_per_token(architecture, precision),
        "matmul_flop": FLOP_PER_WEIGHT * (layers * m + head * with_logits),
        "attention_flop": n * _attention_flop(architecture, s, w, causal, "cheaper"),
        "logit_bytes": BYTE_PER_LOGIT * architecture.vocabulary * with_logits,
    }
    shape = np.broadcast_shapes(n.shape, s.shape, w.shape)
    return PassWork(**{name: scalar_or_array(np.broadcast_to(value, shape)) for name, value in results.items()})


# --- Limits of the context ---------------------------------------------------------------------


def context_limit(
    architecture: Architecture, precision: Precision, *, ridge_flop_per_byte: ArrayLike, kv_copies: float = 1
) -> Any:
    r"""Context above which no batch makes one-token decoding reach the ridge.

    .. math:: s^* = \frac{2 N_\mathrm{mm}}{\kappa\,(R - a/\kappa)}

    Parameters
    ----------
    architecture : Architecture
    precision : Precision
        Its compute format is the one that the ridge must be about.
    ridge_flop_per_byte : float or array
        Peak arithmetic over memory bandwidth. [FLOP/byte]
    kv_copies : float
        Copies of the cache that a pass reads, from `kv_replication`; kappa counts them all. [1]

    Returns
    -------
    float or array
        Tokens; infinite where attention alone does enough arithmetic per cached byte, as latent
        attention may. [token]

    Raises
    ------
    InputError
        If the ridge or the copies are not above zero.

    Notes
    -----
    Derived in `analysis.symbolic.transformer.context_limit` for equal layers. With windows the cache
    grows in pieces; the first context at which work meets bytes is returned. Memory may stop the batch
    long before: `context_limit_in_memory`.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> model = shipped("llama-3.1-8b").architecture
    >>> round(context_limit(model, Precision.of("bf16"), ridge_flop_per_byte=989.5e12 / 3.35e12))
    393
    """
    ridge = positive("ridge_flop_per_byte", ridge_flop_per_byte)
    of_each = float(positive("kv_copies", kv_copies)) * precision.byte_per_kv
    terms = [
        (r.count * (ridge * r.elements * of_each - r.flop_per_token_seen), r.reach) for r in _readers(architecture)
    ]
    return scalar_or_array(_first_crossing(terms, np.full_like(ridge, FLOP_PER_WEIGHT * params_matmul(architecture))))


def context_limit_folk(architecture: Architecture, precision: Precision, *, ridge_flop_per_byte: ArrayLike) -> Any:
    r"""Approximate `context_limit` as is usual: all active parameters, no attention, no windows.

    .. math:: s^* \approx \frac{2 N}{\kappa R}

    Parameters
    ----------
    architecture : Architecture
    precision : Precision
    ridge_flop_per_byte : float or array
        Peak arithmetic over memory bandwidth. [FLOP/byte]

    Returns
    -------
    float or array
        Tokens. An approximation, kept because it is what is usually quoted: 6 % too long for
        Llama-3.1-8B on H100, and far off for latent attention. [token]

    Raises
    ------
    InputError
        If the ridge is not above zero.

    Notes
    -----
    Derived in `analysis.symbolic.transformer.folk_context_limit`.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> model = shipped("llama-3.1-8b").architecture
    >>> round(context_limit_folk(model, Precision.of("bf16"), ridge_flop_per_byte=989.5e12 / 3.35e12))
    415
    """
    ridge = positive("ridge_flop_per_byte", ridge_flop_per_byte)
    per_token = kv_bytes_per_token(architecture, precision)
    if not per_token:
        return scalar_or_array(np.full_like(ridge, np.inf))
    return scalar_or_array(FLOP_PER_WEIGHT * params_active(architecture) / (per_token * ridge))


def context_limit_in_memory(
    architecture: Architecture,
    precision: Precision,
    *,
    ridge_flop_per_byte: ArrayLike,
    memory_byte: ArrayLike,
    kv_copies: float = 1,
) -> Any:
    r"""Context above which the batch that reaches the ridge no longer fits into memory.

    .. math:: s_M = \frac{2 N_\mathrm{mm} M}{\kappa\,(R\,(M + W) - a M/\kappa)}

    Parameters
    ----------
    architecture : Architecture
    precision : Precision
    ridge_flop_per_byte : float or array
        Peak arithmetic over memory bandwidth. [FLOP/byte]
    memory_byte : float or array
        Usable memory of the replica, weights included. [byte]
    kv_copies : float
        Copies of the cache, from `kv_replication`, which are held and read. [1]

    Returns
    -------
    float or array, broadcast shape
        Tokens; 0 where the weights alone do not fit. [token]

    Raises
    ------
    InputError
        If the ridge or the copies are not above zero, or the memory is negative.

    Notes
    -----
    Derived in `analysis.symbolic.transformer.context_limit_in_memory`, with M the memory that the
    weights leave and W the bytes that a pass reads with all experts in use. Approaches `context_limit`
    with endless memory.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> model = shipped("llama-3.1-8b").architecture
    >>> round(context_limit_in_memory(model, Precision.of("bf16"), ridge_flop_per_byte=295.4, memory_byte=72e9))
    309
    """
    ridge, memory = np.broadcast_arrays(
        positive("ridge_flop_per_byte", ridge_flop_per_byte), not_negative("memory_byte", memory_byte)
    )
    free = np.maximum(memory - weight_bytes(architecture, precision), 0.0)
    always, routed = _streams(architecture, precision)
    streamed = always + sum(size for size, *_ in routed)
    of_each = float(positive("kv_copies", kv_copies)) * precision.byte_per_kv
    terms = []
    for r in _readers(architecture):
        size = r.elements * of_each
        terms.append((r.count * free * (ridge * size - r.flop_per_token_seen), r.reach))
        terms.append((r.count * ridge * streamed * size, r.kept))
    limit = _first_crossing(terms, FLOP_PER_WEIGHT * params_matmul(architecture) * free)
    return scalar_or_array(np.where(free > 0, limit, 0.0))


def equal_context(architecture: Architecture, precision: Precision, *, kv_copies: float = 1) -> float:
    r"""Context at which the next token of one sequence reads as much cache as weights.

    .. math:: \sum_g c\, \kappa_g \min(s, w_g) = W(1)

    with the cache's bytes of a token in layers of one kind, their window, and the weights that one position reads.

    Parameters
    ----------
    architecture : Architecture
    precision : Precision
    kv_copies : float
        Copies of the cache that a pass reads, from `kv_replication`, c. [1]

    Returns
    -------
    float
        Tokens; infinite where windows end before that. [token]

    Raises
    ------
    InputError
        If the copies are not above zero.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> config = shipped("gpt-oss-120b")
    >>> context = equal_context(config.architecture, config.precision)
    >>> work = pass_work(config.architecture, config.precision, batch=1, context_tokens=context)
    >>> round(work.kv_read_bytes / work.weight_bytes, 6)
    1.0
    """
    of_each = float(positive("kv_copies", kv_copies)) * precision.byte_per_kv
    terms = [(np.asarray(r.count * r.elements * of_each), r.reach) for r in _readers(architecture)]
    streamed = np.asarray(weight_bytes_streamed(architecture, precision, positions=1))
    return float(_first_crossing(terms, streamed))


def _first_crossing(terms: list[tuple[NDArray[np.float64], float]], level: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smallest s at which the sum of c·min(s, reach) over the terms reaches the level; infinite if none does."""
    found = np.full(np.broadcast_shapes(level.shape, *(np.shape(c) for c, _ in terms)), np.inf)
    start, height = 0.0, np.zeros_like(found)
    for end in sorted({reach for _, reach in terms}):
        slope = sum((c for c, reach in terms if reach >= end), start=np.zeros_like(found))
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = start + (level - height) / slope
        here = (slope > 0) & (crossing <= end) & np.isinf(found)
        found = np.where(here, crossing, found)
        if np.isfinite(end):
            height = height + slope * (end - start)
            start = end
    return found


def max_sequences(
    architecture: Architecture,
    precision: Precision,
    *,
    memory_byte: ArrayLike,
    context_tokens: ArrayLike,
    policy: KvPolicy = "needed",
    kv_copies: ArrayLike = 1,
) -> Any:
    """Sequences whose cache fits beside the weights.

    Parameters
    ----------
    architecture : Architecture
    precision : Precision
    memory_byte : float or array
        Usable memory of the replica, weights included. [byte]
    context_tokens : float or array
        Cached tokens of each sequence. [token]
    policy : {"needed", "reserved"}
        As in `kv_bytes_per_sequence`.
    kv_copies : float or array
        Copies of the cache, from `kv_replication`. [1]

    Returns
    -------
    float or array, broadcast shape
        Whole sequences, 0 where the weights alone do not fit, infinite where nothing is cached. [1]

    Raises
    ------
    InputError
        If a number is negative.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> model = shipped("llama-3.1-8b").architecture
    >>> max_sequences(model, Precision.of("bf16"), memory_byte=72e9, context_tokens=2048)
    208.0
    """
    memory = not_negative("memory_byte", memory_byte)
    each = positive("kv_copies", kv_copies) * kv_bytes_per_sequence(
        architecture, precision, context_tokens=context_tokens, policy=policy
    )
    free = np.maximum(memory - weight_bytes(architecture, precision), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        count = np.where(free > 0, np.floor(free / each), 0.0)
    return scalar_or_array(np.asarray(count))
