"""How long a pass takes, and what a replica serves: decoding, reading prompts, both together.

A pass computes ``positions`` new positions of each of ``batch`` sequences after ``context_tokens``
cached ones. Within a layer, matrix products and attention run one after the other, so their times
add; inside each of these two phases reading and computing overlap. What hardware and engine reach of
their peaks comes in as `Efficiency`, whose default is the ideal: the pure roofline of two phases.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.inputs import InputError, not_negative, positive, scalar_or_array
from analysis.model.transformer import (
    FLOP_PER_WEIGHT,
    expert_union,
    kv_bytes_per_sequence,
    kv_replication,
    pass_work,
    weight_bytes,
    weight_bytes_of_parts,
)
from analysis.reference.specs import Architecture, Efficiency, MemoryRule, Precision, Replica

IDEAL = Efficiency()
#: Nine tenths of the card, less the weights.
OF_THE_CARD = MemoryRule()
#: Activations are kept in 16 bit.
BYTE_PER_ACTIVATION = 2
#: Sums over all GPUs in one layer: after attention, and after the MLP.
ALL_REDUCES_PER_LAYER = 2
#: Kernels of a plain layer: projection, attention, output, and two of the MLP.
PLAIN_KERNELS = 5
#: Instead of the first three, latent attention has six: down, up, absorb, attend, expand, output.
LATENT_KERNELS = 3
#: An indexer projects, scores and selects; shared experts are a second MLP.
INDEXER_KERNELS = 3
SHARED_KERNELS = 2
#: Prompt tokens that a server computes in one pass, if not told otherwise.
CHUNK_TOKENS = 8192

#: Passes that a sweep computes at a time: their arrays fit into the cache of a core.
PIECE = 16_384

#: The terms of a pass by which a result names its bound, in this order.
TERMS = ("weights", "matmul", "kv", "attention", "fixed", "communication", "activations")


# --- What a pass asks of one GPU ---------------------------------------------------------------


class Part(NamedTuple):
    """Sequences of one kind in a pass: how many, cached tokens of each, new positions of each, whose logits."""

    batch: Any
    context_tokens: Any
    positions: Any = 1.0
    logits: Literal["all", "last"] = "all"
    causal: bool = True


class Demand(NamedTuple):
    """What one pass asks of one GPU of a replica, before any efficiency. Floats or arrays of one shape.

    ``expert_flop`` is in ``matmul_flop`` too; ``expert_row_flop`` is one row more for each expert in use.
    """

    weight_byte: Any
    matmul_flop: Any
    expert_flop: Any
    expert_row_flop: Any
    kv_byte: Any
    attention_flop: Any
    activation_byte: Any
    plain_layers: Any
    expert_layers: Any
    prompt_layers: Any
    sequences: Any
    all_reduces: Any
    payload_byte: Any


class _Sizes(NamedTuple):
    """Sums over the layers of an architecture."""

    #: Numbers moved for each position: on every GPU, and split among them.
    whole_elements: float
    split_elements: float
    #: Fixed times: kernels over those of a plain layer, layers with experts.
    plain_layers: float
    expert_layers: int
    #: For each group with experts: FLOP of one row in every expert, experts, top-k.
    experts: tuple[tuple[float, int, int], ...]


@lru_cache(maxsize=256)
def _sizes(architecture: Architecture) -> _Sizes:
    hidden = architecture.hidden
    whole = split = 0.0
    kernels = expert_layers = 0
    experts = []
    for group in architecture.layers:
        if group.attention is not None:
            attention = group.attention
            kernels += group.count * (PLAIN_KERNELS - 2)
            kernels += group.count * LATENT_KERNELS * (attention.latent is not None)
            kernels += group.count * INDEXER_KERNELS * (attention.indexer is not None)
            whole += group.count * 6 * hidden
            heads = attention.query_heads * (attention.head_dim + attention.value_dim)
            split += group.count * (heads + attention.kv_elements)
        if group.mlp is not None:
            mlp = group.mlp
            shared = mlp.shared_width > 0
            used = mlp.top_k if mlp.experts else 1
            kernels += group.count * (2 + SHARED_KERNELS * shared)
            whole += group.count * 2 * hidden * (used + shared)
            split += group.count * mlp.matrices_each * (used * mlp.width + mlp.shared_width)
            if mlp.experts:
                expert_layers += group.count
                row_flop = FLOP_PER_WEIGHT * mlp.matrices_each * hidden * mlp.width
                experts.append((float(group.count * row_flop * mlp.experts), mlp.experts, mlp.top_k))
    return _Sizes(whole, split, kernels / PLAIN_KERNELS, expert_layers, tuple(experts))


def activation_elements(architecture: Architecture, *, gpus: int = 1) -> float:
    """Numbers that one position moves between the kernels of all layers, on one GPU.

    Parameters
    ----------
    architecture : Architecture
    gpus : int
        GPUs among which each layer is split: what lies between two projections is split with them, the
        residual stream is on each. [1]

    Returns
    -------
    float
        Numbers. [1]

    Notes
    -----
    Counted per layer: six times the width around attention, twice the width into and out of each MLP or
    expert, queries, keys, values and attention outputs once, and each inner width once per matrix. Kernels
    that fuse move less, others more: `Efficiency.activation_share` is that ratio.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> round(activation_elements(shipped("llama-3.1-8b").architecture) / (32 * 4096), 1)
    21.0
    """
    sizes = _sizes(architecture)
    return sizes.whole_elements + sizes.split_elements / gpus


def demand(replica: Replica, *parts: Part) -> Demand:
    """Count what one pass over sequences of one or several kinds asks of one GPU.

    Parameters
    ----------
    replica : Replica
    *parts : Part
        Sequences that share the pass; the weights are read once for all of them.

    Returns
    -------
    Demand
        Fields of the broadcast shape.

    Raises
    ------
    InputError
        If a number is outside its domain, or the GPUs do not divide the heads.
    """
    architecture, precision, gpus = replica.architecture, replica.precision, replica.gpus
    sizes = _sizes(architecture)
    works = [
        pass_work(
            architecture,
            precision,
            batch=part.batch,
            context_tokens=part.context_tokens,
            positions=part.positions,
            logits=part.logits,
            causal=part.causal,
            expert_skew=replica.expert_skew,
        )
        for part in parts
    ]
    rows = sum(np.asarray(part.batch, float) * np.asarray(part.positions, float) for part in parts)
    # parts share one read of the weights, of the experts that any of them uses
    weights = works[0].weight_bytes
    if len(parts) > 1:
        if replica.expert_skew:
            texts = [(part.batch, part.positions) for part in parts]
            weights = weight_bytes_of_parts(architecture, precision, texts, skew=replica.expert_skew)
        else:
            weights = pass_work(architecture, precision, batch=rows, context_tokens=0).weight_bytes
    if not replica.split_attention:
        weights = weights + (gpus - 1) * _attention_byte(architecture, precision)
    expert_flop: Any = 0.0
    expert_row_flop: Any = 0.0
    for row_flop, of, top_k in sizes.experts:
        expert_flop = expert_flop + row_flop * rows * top_k / of
        if replica.expert_skew:
            unused: Any = 1.0
            for part in parts:
                used = expert_union(
                    part.positions, experts=of, top_k=top_k, skew=replica.expert_skew, sequences=part.batch
                )
                unused = unused * (1 - used)
            in_use = 1 - unused
        else:  # without doors, for sweeps
            in_use = -np.expm1(rows * np.log1p(-top_k / of)) if top_k < of else 1.0
        expert_row_flop = expert_row_flop + row_flop * in_use
    moved = BYTE_PER_ACTIVATION * activation_elements(architecture, gpus=gpus)
    return Demand(
        weight_byte=weights / gpus,
        matmul_flop=sum(work.matmul_flop for work in works) / gpus,
        expert_flop=expert_flop / gpus,
        expert_row_flop=expert_row_flop / gpus,
        kv_byte=kv_copies(replica) / gpus * sum(work.kv_read_bytes for work in works),
        attention_flop=sum(work.attention_flop for work in works) / gpus,
        activation_byte=rows * moved + sum(work.logit_bytes for work in works) / gpus,
        plain_layers=sizes.plain_layers,
        expert_layers=float(sizes.expert_layers),
        prompt_layers=sizes.plain_layers * any(part.logits == "last" for part in parts),
        sequences=sum(np.asarray(part.batch, float) for part in parts),
        all_reduces=float(ALL_REDUCES_PER_LAYER * architecture.n_layers * (gpus > 1)),
        # a ring sends every number to the sum and back, all but one share of it
        payload_byte=rows * (2 * (gpus - 1) / gpus) * architecture.hidden * BYTE_PER_ACTIVATION,
    )


@lru_cache(maxsize=256)
def _attention_byte(architecture: Architecture, precision: Precision) -> float:
    return architecture.components["attention"] * precision.byte_of("attention")


def kv_copies(replica: Replica) -> float:
    """Count copies of the cache: latent attention and few KV heads leave one on several GPUs. [1].

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h200 = accelerator("h200-sxm", as_of=SNAPSHOT)
    >>> one = shipped("deepseek-r1")
    >>> kv_copies(Replica(one.architecture, one.precision, h200, gpus=8))
    8.0
    """
    if not replica.split_attention:
        return 1.0
    return float(kv_replication(replica.architecture, tensor_parallel=replica.gpus))


# --- Time of a pass ----------------------------------------------------------------------------


class Peaks(NamedTuple):
    """Data sheet rates of one GPU for one precision. [FLOP/s, FLOP/s, byte/s]."""

    matmul_flop_per_s: Any
    attention_flop_per_s: Any
    mem_bw_byte_per_s: Any


def peaks(replica: Replica) -> Peaks:
    """Rates that the replica's precision computes at: in 16 bit where the GPU has no units for its format.

    Attention computes in 16 bit whatever format the weights have.
    """
    accelerator = replica.accelerator
    number_format = replica.precision.compute
    if number_format not in accelerator.peak_flop_per_s:
        number_format = "bf16"
    return Peaks(accelerator.peak(number_format), accelerator.peak("bf16"), accelerator.mem_bw_byte_per_s)


@dataclass(frozen=True)
class PassTime:
    """Time of one pass, term by term. Floats or arrays of one shape. [s].

    ``pass_s`` overlaps reading and computing within each of the two phases and adds everything else.
    """

    weights_s: Any
    matmul_s: Any
    kv_s: Any
    attention_s: Any
    fixed_s: Any
    communication_s: Any
    activations_s: Any
    pass_s: Any

    @property
    def bound(self) -> Any:
        """Name of the largest term, one of ``TERMS``, or an array of names."""
        terms = np.broadcast_arrays(*(getattr(self, f"{term}_s") for term in TERMS))
        names = np.array(TERMS)[np.argmax(terms, axis=0)]
        return names if names.ndim else str(names)


def overlapped(reading_s: Any, computing_s: Any, *, exponent: float) -> Any:
    r"""Time of two things that overlap: from their maximum (endless exponent) to their sum (1).

    .. math:: \left(a^p + b^p\right)^{1/p}

    Parameters
    ----------
    reading_s, computing_s : float or array
        The two times. [s]
    exponent : float
        p, 1 or above. [1]

    Returns
    -------
    float or array
        Time of both. [s]

    Examples
    --------
    >>> [round(float(overlapped(3.0, 4.0, exponent=p)), 3) for p in (1, 1.5, 2, float("inf"))]
    [7.0, 5.584, 5.0, 4.0]
    """
    if exponent == np.inf:
        return np.maximum(reading_s, computing_s)
    if exponent == 1:
        return reading_s + computing_s
    if exponent == 1.5:
        root = np.cbrt(reading_s * np.sqrt(reading_s) + computing_s * np.sqrt(computing_s))
        return root * root
    return (reading_s**exponent + computing_s**exponent) ** (1 / exponent)


def time_of(asked: Demand, rates: Peaks, efficiency: Efficiency = IDEAL) -> PassTime:
    r"""Time of a pass from what it asks of one GPU.

    .. math::
        t = \left\|\frac{W}{\eta_b B}, \frac{F}{\eta_f P}\right\|_p
          + \left\|\frac{K}{\eta_b B}, \frac{F_a}{\eta_a P_{16}}\right\|_p
          + L t_L + n t_n + R \left(t_R + \frac{D}{B_l}\right) + \frac{c A}{\eta_b B}

    Parameters
    ----------
    asked : Demand
    rates : Peaks
    efficiency : Efficiency

    Returns
    -------
    PassTime

    Notes
    -----
    No doors: fields are taken as they are, so that calibration can call it many times.
    """
    e = efficiency
    bandwidth = e.mbu * rates.mem_bw_byte_per_s
    experts_flop = (asked.expert_flop + e.expert_rows * asked.expert_row_flop) / e.expert_mfu
    weights_s = asked.weight_byte / bandwidth
    matmul_s = (asked.matmul_flop - asked.expert_flop + experts_flop) / (e.mfu * rates.matmul_flop_per_s)
    kv_s = asked.kv_byte / bandwidth
    attention_s = asked.attention_flop / (e.attention_mfu * rates.attention_flop_per_s)
    fixed_s = (
        asked.plain_layers * e.layer_s
        + asked.expert_layers * e.expert_layer_s
        + asked.prompt_layers * e.prompt_layer_s
        + asked.sequences * e.sequence_s
    )
    communication_s = asked.all_reduces * (e.all_reduce_s + asked.payload_byte / e.link_byte_per_s)
    activations_s = e.activation_share * asked.activation_byte / bandwidth
    pass_s = (
        overlapped(weights_s, matmul_s, exponent=e.overlap)
        + overlapped(kv_s, attention_s, exponent=e.overlap)
        + fixed_s
        + communication_s
        + activations_s
    )
    return PassTime(weights_s, matmul_s, kv_s, attention_s, fixed_s, communication_s, activations_s, pass_s)


def pass_time(
    replica: Replica,
    *,
    batch: ArrayLike,
    context_tokens: ArrayLike,
    positions: ArrayLike = 1.0,
    logits: Literal["all", "last"] = "all",
    causal: bool = True,
    efficiency: Efficiency = IDEAL,
) -> PassTime:
    """Time of one pass, term by term.

    Parameters
    ----------
    replica : Replica
    batch : float or array
        Sequences. [1]
    context_tokens : float or array
        Cached tokens of each before the pass. [token]
    positions : float or array
        New positions of each: 1 when decoding one token at a time. [1]
    logits : {"all", "last"}
        Which positions need logits; ``last`` marks a pass that reads prompts.
    causal : bool
        False for a block whose positions all see each other.
    efficiency : Efficiency

    Returns
    -------
    PassTime
        Fields of the broadcast shape. [s]

    Raises
    ------
    InputError
        If a number is outside its domain, or the GPUs do not divide the heads.

    Notes
    -----
    In the memory-bound limit this is `analysis.symbolic.decoding.memory_bound_pass`. Limits: an endless
    batch makes it linear in the batch; one sequence on an ideal GPU takes its bytes over the bandwidth.
    Large sweeps: `sweep_pass_s`.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Replica(shipped("llama-3.1-70b").architecture, Precision.of("bf16"), h100, gpus=8)
    >>> step = pass_time(eight, batch=1, context_tokens=2048)
    >>> round(step.pass_s * 1e3, 2), step.bound
    (5.21, 'weights')
    """
    asked = demand(replica, Part(batch, context_tokens, positions, logits, causal))
    return _plain(time_of(asked, peaks(replica), efficiency))


def sweep_pass_s(
    replica: Replica,
    *,
    batch: ArrayLike,
    context_tokens: ArrayLike,
    positions: ArrayLike = 1.0,
    efficiency: Efficiency = IDEAL,
) -> NDArray[np.float64]:
    """Time of very many passes, in pieces that stay in the cache of a core.

    Parameters
    ----------
    replica, batch, context_tokens, positions, efficiency
        As in `pass_time`; arrays of one shape or single numbers.

    Returns
    -------
    array
        Time of each pass; besides it, the memory of one piece. [s]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100)
    >>> (sweep_pass_s(one, batch=[1, 128], context_tokens=2048) * 1e3).round(2).tolist()
    [4.56, 14.74]
    """
    shape = np.broadcast_shapes(np.shape(batch), np.shape(context_tokens), np.shape(positions))
    inputs = [np.broadcast_to(np.asarray(x, float), shape).reshape(-1) for x in (batch, context_tokens, positions)]
    found = np.empty(int(np.prod(shape)))
    rates = peaks(replica)
    for start in range(0, found.size, PIECE):
        piece = slice(start, start + PIECE)
        n, context, w = (x[piece] for x in inputs)
        asked = demand(replica, Part(n, context, w))
        found[piece] = time_of(asked, rates, efficiency).pass_s
    return found.reshape(shape)


def _plain(time: PassTime) -> PassTime:
    return PassTime(*(scalar_or_array(np.asarray(getattr(time, name), float)) for name in PassTime.__annotations__))


def floor_s(
    replica: Replica,
    *,
    batch: ArrayLike,
    context_tokens: ArrayLike,
    positions: ArrayLike = 1.0,
    logits: Literal["all", "last"] = "all",
) -> Any:
    r"""Time that physics grants a pass at least: all bytes over the bandwidth, or all FLOP over the peak.

    .. math:: \max\left(\frac{W + K}{N B}, \frac{F + F_a}{N P}\right)

    Parameters
    ----------
    replica, batch, context_tokens, positions, logits
        As in `pass_time`.

    Returns
    -------
    float or array
        One maximum over everything, the roofline of the whole pass. [s]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100)
    >>> round(floor_s(one, batch=128, context_tokens=2048) * 1e3, 2)
    14.74
    """
    work = pass_work(
        replica.architecture,
        replica.precision,
        batch=batch,
        context_tokens=context_tokens,
        positions=positions,
        logits=logits,
    )
    rates = peaks(replica)
    reading_s = work.byte / (replica.gpus * rates.mem_bw_byte_per_s)
    # attention may compute in another format than the matmuls: the floor takes the faster of the two
    fastest = max(rates.matmul_flop_per_s, rates.attention_flop_per_s)
    return scalar_or_array(np.maximum(reading_s, work.flop / (replica.gpus * fastest)))


# --- Schedules: passes of a run ----------------------------------------------------------------


class Step(NamedTuple):
    """Equal passes of a schedule: how many, and what each asks of one GPU."""

    count: Any
    asked: Demand


def schedule_s(steps: Iterable[Step], replica: Replica, efficiency: Efficiency = IDEAL) -> Any:
    """Time of all passes of a schedule. [s]."""
    rates = peaks(replica)
    return scalar_or_array(
        np.asarray(sum(step.count * time_of(step.asked, rates, efficiency).pass_s for step in steps))
    )


def prompt_part(new_tokens: Any, cached_tokens: Any, prompts: Any, chunk_tokens: Any) -> tuple[Part, Any]:
    """Return what prompts put into one pass, and how many passes one prompt takes.

    A prompt longer than the chunk takes several passes of its own; shorter ones share a pass, ``prompts`` of
    them at most. Attention is linear in the context, so the mean chunk stands for all without an error.
    """
    tokens = np.minimum(new_tokens, chunk_tokens)
    together = np.clip(prompts, 1.0, np.maximum(1.0, chunk_tokens / new_tokens))
    part = Part(together, cached_tokens + (new_tokens - tokens) / 2, tokens, "last")
    return part, new_tokens / (tokens * together)


def new_tokens(input_tokens: ArrayLike, cached_tokens: ArrayLike) -> tuple[Any, Any]:
    """Split prompts into tokens to compute and tokens that a cache holds; arguments as in `prefill_s`."""
    prompt, cached = positive("input_tokens", input_tokens), not_negative("cached_tokens", cached_tokens)
    if np.any(cached >= prompt):
        raise InputError("cached_tokens", float(np.max(cached)), "fewer than the input: the last token is computed")
    return prompt - cached, cached


def prefill_steps(
    replica: Replica,
    *,
    input_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    batch: ArrayLike = 1.0,
    chunk_tokens: ArrayLike = CHUNK_TOKENS,
) -> list[Step]:
    """List the passes that read the prompts of a batch, of each what no cache holds; arguments as in `prefill_s`."""
    new, cached = new_tokens(input_tokens, cached_tokens)
    prompts = positive("batch", batch)
    part, passes = prompt_part(new, cached, prompts, positive("chunk_tokens", chunk_tokens))
    return [Step(passes * prompts, demand(replica, part))]


def prefill_s(
    replica: Replica,
    *,
    input_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    batch: ArrayLike = 1.0,
    chunk_tokens: ArrayLike = CHUNK_TOKENS,
    efficiency: Efficiency = IDEAL,
) -> Any:
    """Time to read the prompts of a batch on an otherwise idle replica.

    Parameters
    ----------
    replica : Replica
    input_tokens : float or array
        Tokens of each prompt. [token]
    cached_tokens : float or array
        Of these, held by a prefix cache: attended to, not computed. [token]
    batch : float or array
        Prompts. [1]
    chunk_tokens : float or array
        Most prompt tokens of one pass. [token]
    efficiency : Efficiency

    Returns
    -------
    float or array
        Time until the first token of all of them. [s]

    Raises
    ------
    InputError
        If a number is outside its domain, or the whole prompt is cached.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Replica(shipped("llama-3.1-70b").architecture, Precision.of("bf16"), h100, gpus=8)
    >>> round(prefill_s(eight, input_tokens=2048) * 1e3, 1)
    36.1
    """
    steps = prefill_steps(
        replica, input_tokens=input_tokens, cached_tokens=cached_tokens, batch=batch, chunk_tokens=chunk_tokens
    )
    return schedule_s(steps, replica, efficiency)


def token_steps(
    replica: Replica,
    *,
    batch: ArrayLike,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    others: ArrayLike | None = None,
    chunk_tokens: ArrayLike = CHUNK_TOKENS,
) -> list[Step]:
    """List the passes between two tokens of a stream; arguments as in `tpot_s`."""
    new, cached = new_tokens(input_tokens, cached_tokens)
    n, answer = positive("batch", batch), positive("output_tokens", output_tokens)
    decoding = Part(n, np.asarray(input_tokens, float) + answer / 2)
    prompts, passes = prompt_part(new, cached, n / answer, positive("chunk_tokens", chunk_tokens))
    neighbours = np.maximum(n - 1.0, 0.0) if others is None else not_negative("others", others)
    share = neighbours / answer * passes
    return [Step(1.0 - share, demand(replica, decoding)), Step(share, demand(replica, decoding, prompts))]


def tpot_s(
    replica: Replica,
    *,
    batch: ArrayLike,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    others: ArrayLike | None = None,
    chunk_tokens: ArrayLike = CHUNK_TOKENS,
    efficiency: Efficiency = IDEAL,
) -> Any:
    r"""Time between two tokens of one stream while others come and go.

    .. math:: t + \frac{(n - 1)\, p}{S_\mathrm{out}}

    Parameters
    ----------
    replica : Replica
    batch : float or array
        Requests in the replica, n. [1]
    input_tokens, output_tokens : float or array
        Tokens of each prompt and answer. [token]
    cached_tokens : float or array
        Prompt tokens that a prefix cache holds. [token]
    others : float or array, optional
        Requests whose prompts are read meanwhile; all but its own if left out. [1]
    chunk_tokens : float or array
        Most prompt tokens of one pass. [token]
    efficiency : Efficiency

    Returns
    -------
    float or array
        Mean time per output token; p is what the passes that carry a prompt take longer. [s]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> two = Replica(shipped("llama-3.1-70b").architecture, Precision.of("fp8"), h100, gpus=2)
    >>> load = {"input_tokens": 1024, "output_tokens": 1024}
    >>> [round(tpot_s(two, batch=n, **load) * 1e3, 1) for n in (1, 64)]
    [10.6, 17.0]
    """
    steps = token_steps(
        replica,
        batch=batch,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        others=others,
        chunk_tokens=chunk_tokens,
    )
    return schedule_s(steps, replica, efficiency)


def run_steps(
    replica: Replica, *, batch: ArrayLike, input_tokens: ArrayLike, output_tokens: ArrayLike, slots: ArrayLike = np.inf
) -> list[Step]:
    """List the passes of a run that starts and ends together; arguments as in `run_s`."""
    n, answer = positive("batch", batch), positive("output_tokens", output_tokens)
    together = np.minimum(n, slots)
    waves = n / together
    decoding = demand(replica, Part(together, np.asarray(input_tokens, float) + answer / 2))
    return [*prefill_steps(replica, input_tokens=input_tokens, batch=n), Step(waves * answer, decoding)]


def run_s(
    replica: Replica,
    *,
    batch: ArrayLike,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    slots: ArrayLike = np.inf,
    efficiency: Efficiency = IDEAL,
) -> Any:
    """Time of a batch that starts and ends together: all prompts, then one pass for each token.

    Parameters
    ----------
    replica : Replica
    batch : float or array
        Requests. [1]
    input_tokens, output_tokens : float or array
        Tokens of each prompt and answer. [token]
    slots : float or array
        Requests that memory lets decode together; more take turns. [1]
    efficiency : Efficiency

    Returns
    -------
    float or array
        Static batching's time for the whole batch; with ``batch=1`` the time of one request alone. [s]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Replica(shipped("llama-3.1-70b").architecture, Precision.of("fp8"), h100, gpus=8)
    >>> round(run_s(eight, batch=1, input_tokens=8000, output_tokens=300), 2)
    0.9
    """
    steps = run_steps(replica, batch=batch, input_tokens=input_tokens, output_tokens=output_tokens, slots=slots)
    return schedule_s(steps, replica, efficiency)


# --- Memory and maximum load -------------------------------------------------------------------


def max_batch(replica: Replica, *, tokens: ArrayLike, rule: MemoryRule = OF_THE_CARD) -> Any:
    """Sequences whose caches fit beside the weights.

    Parameters
    ----------
    replica : Replica
    tokens : float or array
        Tokens that each sequence holds in the cache. [token]
    rule : MemoryRule
        How the engine divides the memory.

    Returns
    -------
    float or array
        Sequences, fractions included, for memory holds a part of an average one; 0 where the weights do
        not fit. [1]

    Raises
    ------
    InputError
        If tokens is not above zero.

    Notes
    -----
    A card sold as 80 GB holds 80 GiB, 7 % more: where weights fill it, that is half of the cache.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Replica(shipped("llama-3.1-70b").architecture, Precision.of("bf16"), h100, gpus=8)
    >>> round(max_batch(eight, tokens=8192))
    177
    """
    held = positive("tokens", tokens)
    weights = weight_bytes(replica.architecture, replica.precision)
    if not replica.split_attention:
        weights += (replica.gpus - 1) * _attention_byte(replica.architecture, replica.precision)
    reserved = weights + replica.gpus * rule.reserve_byte
    card = replica.gpus * replica.accelerator.mem_capacity_byte
    free = rule.share * (card - reserved) if rule.of_the_rest else rule.share * card - reserved
    each = kv_copies(replica) * kv_bytes_per_sequence(
        replica.architecture, replica.precision, context_tokens=held, policy="needed"
    )
    with np.errstate(divide="ignore"):
        return scalar_or_array(np.maximum(free, 0.0) / np.asarray(each))


def max_load_tok_per_s(
    replica: Replica,
    *,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    slots: ArrayLike = np.inf,
    rule: MemoryRule = OF_THE_CARD,
    efficiency: Efficiency = IDEAL,
) -> Any:
    r"""Output tokens of a replica that always has requests waiting, with continuous batching.

    .. math:: X = \frac{n}{t + n\, p / S_\mathrm{out}}

    Parameters
    ----------
    replica : Replica
    input_tokens, output_tokens : float or array
        Tokens of each prompt and answer. [token]
    cached_tokens : float or array
        Prompt tokens that a prefix cache holds. [token]
    slots : float or array
        Requests that the engine runs together at most; memory may hold fewer. [1]
    rule : MemoryRule
    efficiency : Efficiency

    Returns
    -------
    float or array
        Output tokens per second, 0 where not one request fits. [token/s]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Notes
    -----
    Memory is reserved for whole requests, so that none is thrown out; the passes run at the mean context.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Replica(shipped("llama-3.1-70b").architecture, Precision.of("fp8"), h100, gpus=8)
    >>> round(max_load_tok_per_s(eight, input_tokens=8000, output_tokens=300, slots=256))
    2937
    """
    whole = np.asarray(input_tokens, float) + np.asarray(output_tokens, float)
    n = np.minimum(max_batch(replica, tokens=whole, rule=rule), slots)
    fits = n >= 1
    steps = token_steps(
        replica,
        batch=np.where(fits, n, 1.0),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        others=np.where(fits, n, 1.0),
    )
    return scalar_or_array(np.where(fits, n / schedule_s(steps, replica, efficiency), 0.0))
