"""Records of what the tables hold: frozen, in the base units of the model, with what each number rests on.

Fields with a number may be arrays of one shape; functions of `analysis.model` broadcast over them.
An `Architecture` is a record of whole numbers: one model, its layers and their parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from analysis.inputs import InputError, at_least_one, not_negative, scalar_or_array, share, whole

#: Formats that a matmul unit computes in. Weights may be stored in a narrower one.
COMPUTE_FORMATS = ("tf32", "bf16", "fp8", "fp4", "int8")

#: What a model at an API is, by rules that data/README.md states.
MODEL_CLASSES = ("commodity", "small", "frontier", "reasoning", "diffusion")


@dataclass(frozen=True)
class Accelerator:
    """One accelerator of one form factor.

    Parameters
    ----------
    name : str
        Slug with the form factor.
    peak_flop_per_s : mapping of str to float or array
        Dense peak by compute format; a format without hardware of its own is missing. [FLOP/s]
    mem_capacity_byte : float or array
        What the driver reports where somebody read it, else what the data sheet prints. [byte]
    mem_bw_byte_per_s : float or array
        Memory bandwidth of the data sheet. [byte/s]
    link_byte_per_s : float, array or None
        Rate to the other accelerators of the node in one direction, None if not known. [byte/s]
    tdp_w : float, array or None
        Power limit of the part, None if not published. [W]
    status : mapping of str to str
        Quantity of the table to the status of its row.
    """

    name: str
    peak_flop_per_s: Mapping[str, Any]
    mem_capacity_byte: Any
    mem_bw_byte_per_s: Any
    link_byte_per_s: Any
    tdp_w: Any
    status: Mapping[str, str]

    @property
    def assumed(self) -> frozenset[str]:
        """Quantities that no second source bears out."""
        return frozenset(quantity for quantity, status in self.status.items() if status == "assumed")

    def peak(self, number_format: str) -> Any:
        """Return the dense peak in one compute format. [FLOP/s].

        Raises
        ------
        InputError
            If the part has no units for that format; the message lists those it has.
        """
        if number_format not in self.peak_flop_per_s:
            has = " or ".join(self.peak_flop_per_s)
            raise InputError("number_format", number_format, f"one that {self.name} computes in: {has}")
        return self.peak_flop_per_s[number_format]


@dataclass(frozen=True)
class Price:
    """One price as its row has it; ``low`` and ``high`` are None where the source gives no range."""

    value: float
    low: float | None
    high: float | None
    unit: str
    as_of: date
    source: str
    locator: str
    status: str
    note: str


@dataclass(frozen=True)
class Node:
    """A whole node: accelerators of one kind, and its prices by region and term. [USD/node_hour]."""

    provider: str
    instance: str
    accelerator: Accelerator
    accelerator_count: int
    prices: Mapping[tuple[str, str], Price]

    def price(self, *, term: str, region: str | None = None) -> Price:
        """Return the price of one term, in one region.

        Raises
        ------
        InputError
            If no such price is known on that day, or several regions have one and none was named.
        """
        of_term = {place: price for (place, its_term), price in self.prices.items() if its_term == term}
        if not of_term:
            terms = ", ".join(sorted({its_term for _, its_term in self.prices})) or "none"
            raise InputError("term", term, f"a term with a price for {self.instance} on that day: {terms}")
        if region is None and len(of_term) == 1:
            return next(iter(of_term.values()))
        if region not in of_term:
            places = ", ".join(sorted(of_term))
            raise InputError("region", region, f"one with a price for {self.instance} {term}: {places}")
        return of_term[region]


@dataclass(frozen=True)
class ApiModel:
    """What kind of model an API sells; ``open_weights`` is None where nothing was found."""

    model: str
    model_class: str
    open_weights: bool | None
    source: str
    locator: str
    note: str


@dataclass(frozen=True)
class Host:
    """One computer, measured: the two roofs, and the time of a matrix times batches of vectors.

    Parameters
    ----------
    machine : str
        Slug of the processor.
    threads : int
        Threads that the kernels used.
    inputs, outputs : int
        Columns and rows of the matrix; it is larger than the caches. [1]
    bytes_per_weight : float
        Size of one of its numbers, and of those that go in and come out. [byte]
    copy_byte_per_s, read_byte_per_s : float
        Bytes read plus written by a copy; bytes read by a sum of squares or a matmul. [byte/s]
    peak_flop_per_s : float
        Rate of a large square matmul in the same number format. [FLOP/s]
    seconds_by_batch : mapping of int to float
        Time of the matrix times that many vectors. [s]
    """

    machine: str
    threads: int
    inputs: int
    outputs: int
    bytes_per_weight: float
    copy_byte_per_s: float
    read_byte_per_s: float
    peak_flop_per_s: float
    seconds_by_batch: Mapping[int, float]

    @property
    def bandwidth_byte_per_s(self) -> float:
        """Memory roof: the most that either kernel moved. [byte/s]."""
        return max(self.copy_byte_per_s, self.read_byte_per_s)


# --- Architecture: what a model is made of -----------------------------------------------------

#: Parts of a model that differ in how they are stored, read or used. "Vectors" are norms, biases and
#: other parameters that are added or multiplied element by element, never a matrix product.
COMPONENTS = (
    "embedding",
    "positions",
    "head",
    "attention",
    "mlp",
    "shared_experts",
    "experts",
    "router",
    "vectors",
    "expert_vectors",
)
#: Components whose every parameter is one multiplication and one addition per token that passes it.
MATMUL_COMPONENTS = frozenset({"head", "attention", "mlp", "shared_experts", "experts", "router"})
#: Components of which a token uses only top-k of all experts.
ROUTED_COMPONENTS = frozenset({"experts", "expert_vectors"})


@dataclass(frozen=True)
class Latent:
    """Latent attention: one compressed vector and one rotary key per token instead of keys and values per head."""

    kv_rank: int
    rope_dim: int
    query_rank: int | None = None


@dataclass(frozen=True)
class Indexer:
    """A small attention that picks the ``keys`` tokens that the large one may read; it caches its own keys."""

    heads: int
    head_dim: int
    keys: int


@dataclass(frozen=True)
class Attention:
    """Softmax attention of one layer.

    Parameters
    ----------
    query_heads, kv_heads : int
        Heads of queries, and of keys and values. With ``latent`` the second is not used.
    head_dim, value_dim : int
        Width of a query (and key) head, and of a value head.
    window : int, optional
        The most tokens that a position can see, itself included. None: all.
    chunked : bool
        The window does not slide but starts anew every ``window`` tokens.
    keys_are_values : bool
        One projection makes keys and values (they are normed apart, so both are cached).
    latent, indexer : Latent, Indexer, optional
        Latent attention; choice of keys before attention.
    input_bias, output_bias : bool
        Biases on the query, key and value projections, and on the output projection.
    query_norm : {"none", "head", "width"}
        Norms of queries and keys: none, one of a head's width, or one over all heads.
    sinks : bool
        One learned logit per head that absorbs attention.
    """

    query_heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    window: int | None = None
    chunked: bool = False
    keys_are_values: bool = False
    latent: Latent | None = None
    indexer: Indexer | None = None
    input_bias: bool = False
    output_bias: bool = False
    query_norm: Literal["none", "head", "width"] = "none"
    sinks: bool = False

    def matrices(self, hidden: int) -> dict[str, int]:
        """Parameters of each projection, by the name it has in checkpoints."""
        queries, values = self.query_heads * self.head_dim, self.query_heads * self.value_dim
        if self.latent is None:
            found = {
                "q_proj": hidden * queries,
                "k_proj": hidden * self.kv_heads * self.head_dim,
                "v_proj": 0 if self.keys_are_values else hidden * self.kv_heads * self.value_dim,
            }
        else:
            rank, nope = self.latent.query_rank, self.head_dim - self.latent.rope_dim
            found = (
                {"q_proj": hidden * queries}
                if rank is None
                else {"q_a_proj": hidden * rank, "q_b_proj": rank * queries}
            )
            found["kv_a_proj_with_mqa"] = hidden * (self.latent.kv_rank + self.latent.rope_dim)
            found["kv_b_proj"] = self.latent.kv_rank * self.query_heads * (nope + self.value_dim)
        found["o_proj"] = values * hidden
        if self.indexer is not None:
            rank = hidden if self.latent is None or self.latent.query_rank is None else self.latent.query_rank
            found["indexer.wq_b"] = rank * self.indexer.heads * self.indexer.head_dim
            found["indexer.wk"] = hidden * self.indexer.head_dim
            found["indexer.weights_proj"] = hidden * self.indexer.heads
        return found

    def vector_params(self, hidden: int) -> int:
        """Parameters of biases, norms of queries and keys, sinks, and the norms inside latent attention."""
        queries, keys = self.query_heads * self.head_dim, self.kv_heads * self.head_dim
        values = 0 if self.keys_are_values else self.kv_heads * self.value_dim
        count = (queries + keys + values if self.input_bias else 0) + (hidden if self.output_bias else 0)
        count += {"none": 0, "head": 2 * self.head_dim, "width": queries + keys}[self.query_norm]
        count += self.query_heads if self.sinks else 0
        if self.latent is not None:
            count += self.latent.kv_rank + (self.latent.query_rank or 0)
        if self.indexer is not None:
            count += 2 * self.indexer.head_dim
        return count

    @property
    def kv_elements(self) -> int:
        """Numbers that one token leaves in the cache of this layer, without the keys of an indexer."""
        if self.latent is not None:
            return self.latent.kv_rank + self.latent.rope_dim
        return self.kv_heads * (self.head_dim + self.value_dim)


@dataclass(frozen=True)
class Mlp:
    """Feed-forward part of one layer: dense, or experts of which each token uses ``top_k``.

    Parameters
    ----------
    width : int
        Inner width of the dense MLP or of one expert.
    gated : bool
        Three matrices (gate, up, down) instead of two.
    bias : bool
        Biases on all of them.
    experts, top_k : int
        Routed experts and how many of them a token uses; 0 for a dense MLP.
    shared_width : int
        Inner width of what every token passes beside the experts, all shared experts together.
    shared_gate : bool
        One learned gate vector on the shared expert.
    router_bias : bool
        One number per expert beside the router's matrix, added to its logits or only to the choice.
    """

    width: int
    gated: bool = True
    bias: bool = False
    experts: int = 0
    top_k: int = 0
    shared_width: int = 0
    shared_gate: bool = False
    router_bias: bool = False

    @property
    def matrices_each(self) -> int:
        """Matrices of one MLP."""
        return 3 if self.gated else 2

    def components(self, hidden: int) -> dict[str, int]:
        """Parameters by component."""
        one = self.matrices_each * hidden * self.width
        biases = (self.matrices_each - 1) * self.width + hidden if self.bias else 0
        if not self.experts:
            return {"mlp": one, "vectors": biases}
        return {
            "experts": self.experts * one,
            "expert_vectors": self.experts * biases,
            "shared_experts": self.matrices_each * hidden * self.shared_width,
            "router": self.experts * hidden + (hidden if self.shared_gate else 0),
            "vectors": self.experts if self.router_bias else 0,
        }


@dataclass(frozen=True)
class LayerGroup:
    """Equal layers: how many, their attention and MLP (None: the layer has none), parameters of its other norms."""

    count: int
    attention: Attention | None
    mlp: Mlp | None
    norm_params: int


@dataclass(frozen=True)
class Architecture:
    """Dimensions of a decoder-only transformer.

    Parameters
    ----------
    name : str
    hidden, vocabulary : int
        Width of the residual stream; rows of the embedding.
    layers : tuple of LayerGroup
    tied : bool
        The output head is the transposed input embedding: stored once, still multiplied.
    final_norm_params : int
    head_bias : bool
    position_rows : int
        Rows of a learned position embedding, 0 for rotary or none.
    max_context : int, optional
        The longest context that the file states.
    left_out : tuple of str
        Parts of the released files that are not counted here, for example a vision tower.

    Examples
    --------
    >>> attention = Attention(query_heads=32, kv_heads=8, head_dim=128, value_dim=128)
    >>> layer = LayerGroup(32, attention, Mlp(width=14336), norm_params=2 * 4096)
    >>> llama = Architecture("llama-3.1-8b", 4096, 128256, (layer,), tied=False, final_norm_params=4096)
    >>> sum(llama.components.values())
    8030261248
    """

    name: str
    hidden: int
    vocabulary: int
    layers: tuple[LayerGroup, ...]
    tied: bool
    final_norm_params: int
    head_bias: bool = False
    position_rows: int = 0
    max_context: int | None = None
    left_out: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        # what was worked out stays behind: a read-only view can't travel to another process
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def components(self) -> Mapping[str, int]:
        """Parameters by component, each stored tensor once."""
        total = dict.fromkeys(COMPONENTS, 0)
        total["embedding"] = self.vocabulary * self.hidden
        total["head"] = 0 if self.tied else self.head_params
        total["positions"] = self.position_rows * self.hidden
        total["vectors"] = self.final_norm_params + (self.vocabulary if self.head_bias else 0)
        for group in self.layers:
            total["vectors"] += group.count * group.norm_params
            if group.attention is not None:
                total["attention"] += group.count * sum(group.attention.matrices(self.hidden).values())
                total["vectors"] += group.count * group.attention.vector_params(self.hidden)
            if group.mlp is not None:
                for component, params in group.mlp.components(self.hidden).items():
                    total[component] += group.count * params
        return MappingProxyType(total)

    @property
    def n_layers(self) -> int:
        """Layers of all kinds."""
        return sum(group.count for group in self.layers)

    @property
    def head_params(self) -> int:
        """Weights that turn one hidden state into logits, whether or not they are stored a second time."""
        return self.vocabulary * self.hidden


# --- Precision: how numbers are stored and multiplied ------------------------------------------

#: Bits of one stored weight with its scales, and the format in which the product is computed.
#: fp8 and int8: one scale per channel or tensor, which vanishes. int4: groups of 128 with a 16-bit scale
#: and a 4-bit zero point, as GPTQ and AWQ write them. mxfp4: 8 bits per 32 weights. nvfp4: 8 bits per 16.
WEIGHT_FORMATS: dict[str, tuple[float, str]] = {
    "bf16": (16, "bf16"),
    "fp8": (8, "fp8"),
    "int8": (8, "int8"),
    "int4": (4 + (16 + 4) / 128, "bf16"),
    "mxfp4": (4 + 8 / 32, "bf16"),
    "nvfp4": (4 + 8 / 16, "fp4"),
}
#: Bits of one cached number with its scales.
KV_FORMATS: dict[str, float] = {"bf16": 16, "fp8": 8, "int8": 8, "int4": 4, "mxfp4": 4.25, "nvfp4": 4.5}
#: Components that quantized checkpoints usually store in the narrow format; the rest stays in 16 bit.
USUALLY_QUANTIZED = ("attention", "mlp", "shared_experts", "experts")


@dataclass(frozen=True)
class Precision:
    """How weights and cache are stored, and in which format products are computed.

    Parameters
    ----------
    weights, kv : str
        Format names, keys of ``WEIGHT_FORMATS`` and ``KV_FORMATS``.
    byte_per_weight : float
        Bytes of a weight in that format, its share of the scales included. [byte]
    byte_per_kv : float
        Bytes of a cached number. [byte]
    compute : str
        Format of the matrix products: ``bf16``, ``fp8``, ``int8`` or ``fp4``. Weight-only formats
        save bytes and not arithmetic.
    quantized : tuple of (component, share)
        The share of each component's parameters in the narrow format; what is not named has 2 bytes.

    Examples
    --------
    >>> half = Precision.of("int4", kv="fp8")
    >>> half.byte_per_weight, half.byte_per_kv, half.compute, half.byte_of("head")
    (0.51953125, 1.0, 'bf16', 2.0)
    """

    weights: str
    kv: str
    byte_per_weight: float
    byte_per_kv: float
    compute: str
    quantized: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(
        cls, weights: str = "bf16", *, kv: str = "bf16", quantized: tuple[str, ...] = USUALLY_QUANTIZED
    ) -> Precision:
        """Name formats; the components in ``quantized`` take the one of the weights.

        Raises
        ------
        InputError
            If a format is unknown.
        """
        if weights not in WEIGHT_FORMATS:
            raise InputError("weights", weights, " or ".join(WEIGHT_FORMATS))
        if kv not in KV_FORMATS:
            raise InputError("kv", kv, " or ".join(KV_FORMATS))
        bits, compute = WEIGHT_FORMATS[weights]
        shares = tuple((component, 1.0) for component in quantized) if weights != "bf16" else ()
        return cls(weights, kv, bits / 8, KV_FORMATS[kv] / 8, compute, shares)

    def with_formats(self, *, weights: str | None = None, kv: str | None = None) -> Precision:
        """Change the formats that are named; the same format as before changes nothing.

        Raises
        ------
        InputError
            If a format is unknown.

        Examples
        --------
        >>> Precision.of("mxfp4", quantized=("experts",)).with_formats(weights="mxfp4", kv="fp8").quantized
        (('experts', 1.0),)
        """
        cache = self.kv if kv is None else kv
        named = Precision.of(self.weights if weights is None else weights, kv=cache)
        if weights is not None and weights != self.weights:
            return named
        return replace(self, kv=cache, byte_per_kv=named.byte_per_kv)

    def byte_of(self, component: str) -> float:
        """Mean bytes of one parameter of a component. [byte]."""
        share = dict(self.quantized).get(component, 0.0)
        return share * self.byte_per_weight + (1 - share) * 2.0


@dataclass(frozen=True)
class RequestMix:
    """What one request is made of. [token/request].

    Parameters
    ----------
    input_tokens : float or array
        Tokens of the prompt, cached ones included.
    output_tokens : float or array
        Tokens of the answer.
    cached_tokens : float or array
        Tokens of the prompt that a cache already holds, at most ``input_tokens``.
    thinking_tokens : float or array
        Tokens that a reasoning model writes before the answer, hidden and billed as output.
    """

    input_tokens: Any
    output_tokens: Any
    cached_tokens: Any = 0.0
    thinking_tokens: Any = 0.0


@dataclass(frozen=True)
class Workload:
    """Requests of one kind that come at random, and what their answers may take.

    Parameters
    ----------
    rate_req_per_s : float
        Requests per second, on average over the day. [request/s]
    input_tokens, output_tokens, cached_tokens : float
        Tokens of each prompt, cached ones included; of each answer; of each prompt that a cache holds. [token]
    budget_s : float
        Time that the metric may take. [s]
    percentile : float
        Percentage of the requests that have to keep the budget, above 0 and below 100. [1]
    metric : {"e2e", "ttft", "tpot"}
        Whole answer, first token, or time between two tokens.
    overhead_s : float
        Time outside the GPU: network, gateway, tokenizer. It is part of the first two metrics. [s]
    cv : float
        Coefficient of variation of the gaps between arrivals, 1 for Poisson. [1]
    shape : tuple of float
        Rate of each hour over the mean; one entry where every hour is alike. [1]
    """

    rate_req_per_s: float
    input_tokens: float
    output_tokens: float
    budget_s: float
    cached_tokens: float = 0.0
    percentile: float = 95.0
    metric: Literal["e2e", "ttft", "tpot"] = "e2e"
    overhead_s: float = 0.0
    cv: float = 1.0
    shape: tuple[float, ...] = (1.0,)


@dataclass(frozen=True)
class Tariff:
    """What an API asks, by kind of token; without a cached price cached tokens cost what input costs. [USD/Mtok]."""

    input_usd_per_mtok: Any
    output_usd_per_mtok: Any
    cached_usd_per_mtok: Any = None


@dataclass(frozen=True)
class Counted:
    """A rate or a price of tokens, with the kind of token that it counts.

    Parameters
    ----------
    value : float or array
        Tokens per second, or USD per million tokens.
    kind : {"output", "input", "total", "weighted"}
        Which tokens. Two values may be set against each other only if they count the same.
    """

    value: Any
    kind: str


@dataclass(frozen=True)
class Ownership:
    """What it takes to own one node.

    Parameters
    ----------
    purchase_usd : float or array
        Price of the whole node. [USD]
    power_kw : float or array
        Power limit of the node, for which space is contracted. [kW]
    power_share : float or array
        Average draw over the limit, 0 < share <= 1. [1]
    pue : float or array
        Power that the hall takes over the power that the node takes, 1 or above. [1]
    electricity_usd_per_kwh : float or array
        Price of electricity. [USD/kWh]
    colocation_usd_per_kw_month : float or array
        Rent of the space, by contracted power. [USD/kW_month]
    life_years : float or array
        Years until the node is sold or scrapped. [year]
    residual_share : float or array
        What it then fetches, as a share of the purchase price, 0 to 1. [1]
    interest_per_year : float or array
        Cost of capital. [1/year]
    upkeep_per_year : float or array
        Repairs and support in a year, as a share of the purchase price. [1/year]
    staff_usd_per_year : float or array
        What the people cost who run the node. [USD/year]
    """

    purchase_usd: Any
    power_kw: Any
    power_share: Any
    pue: Any
    electricity_usd_per_kwh: Any
    colocation_usd_per_kw_month: Any
    life_years: Any
    residual_share: Any
    interest_per_year: Any
    upkeep_per_year: Any
    staff_usd_per_year: Any = 0.0


# --- Replica: one copy of a model on the GPUs that share it ------------------------------------


@dataclass(frozen=True)
class Replica:
    """One copy of a model on the GPUs that share it; it never spans nodes.

    Parameters
    ----------
    architecture : Architecture
    precision : Precision
    accelerator : Accelerator
    gpus : int
        GPUs among which each layer is split. [1]
    split_attention : bool
        True: tensor parallelism, every GPU has its share of the heads of all sequences. False: only the
        experts are split, and each GPU attends for sequences of its own.
    expert_skew : float
        Share of a text's positions that use its favourite experts, 0 to 1, as in
        `analysis.model.transformer.expert_union`; 0: routing is even. [1]
    """

    architecture: Architecture
    precision: Precision
    accelerator: Accelerator
    gpus: int = 1
    split_attention: bool = True
    expert_skew: float = 0.0


@dataclass(frozen=True)
class MemoryRule:
    """How an engine divides the memory of a GPU.

    Parameters
    ----------
    share : float or array
        What it may use, of the card or of what the weights leave. [1]
    of_the_rest : bool
        True: the share of what weights and reserve leave. False: the share of the card, less those.
    reserve_byte : float or array
        What context, graphs and workspace take on each GPU. [byte]
    """

    share: Any = 0.9
    of_the_rest: bool = False
    reserve_byte: Any = 0.0


# --- Efficiency: what hardware and engine reach of their peaks ---------------------------------


@dataclass(frozen=True)
class Efficiency:
    """What a pass reaches of the peaks, and what it costs besides. The default is the ideal: the roofline.

    Parameters
    ----------
    mbu : float or array
        Share of the memory bandwidth, above 0 and at most 1. [1]
    mfu : float or array
        Share of the dense peak in matrix products. [1]
    attention_mfu : float or array
        Share of the dense 16-bit peak in attention. [1]
    expert_mfu : float or array
        Share of ``mfu`` that products of routed experts reach. [1]
    expert_rows : float or array
        Rows that every expert costs besides those routed to it: tiles that are not full. [1]
    layer_s : float or array
        Fixed time of a plain layer: launches, synchronization, small kernels. [s]
    expert_layer_s : float or array
        What routed experts add to it: choice, permutation. [s]
    prompt_layer_s : float or array
        What a pass that reads prompts adds to it: such passes are launched kernel by kernel. [s]
    sequence_s : float or array
        What each sequence adds to a pass: scheduling, sampling. [s]
    all_reduce_s : float or array
        Latency of one small all-reduce among the GPUs of the replica. [s]
    link_byte_per_s : float or array
        Rate that the payload of an all-reduce reaches in one direction; endless: it costs nothing. [byte/s]
    activation_share : float or array
        Activation traffic over what `analysis.model.decoding.activation_elements` counts. [1]
    overlap : float
        How reading and computing overlap within a phase: fully where endless, not at all at 1. [1]
    """

    mbu: Any = 1.0
    mfu: Any = 1.0
    attention_mfu: Any = 1.0
    expert_mfu: Any = 1.0
    expert_rows: Any = 0.0
    layer_s: Any = 0.0
    expert_layer_s: Any = 0.0
    prompt_layer_s: Any = 0.0
    sequence_s: Any = 0.0
    all_reduce_s: Any = 0.0
    link_byte_per_s: Any = float("inf")
    activation_share: Any = 0.0
    overlap: float = float("inf")


# --- Decoder: how an answer is made ------------------------------------------------------------


@dataclass(frozen=True)
class Decoder:
    """How an answer is made: positions that a pass computes, tokens that it yields. Made by its four methods.

    Parameters
    ----------
    kind : {"ar", "speculative", "diffusion", "full-sequence"}
    positions : float or array
        Positions that one pass computes for each sequence; a full-sequence decoder computes prompt and
        answer, so that the request decides, and 0 stands here. [1]
    tokens_per_pass : float or array
        Useful tokens of one pass; NaN for a full-sequence decoder, where the answer decides. [token]
    block_tokens : float or array
        Answers come in whole blocks of so many tokens; endless where the answer is one block. [token]
    passes_per_block : float or array
        Mean passes of a block, the one that commits it included. [1]
    draft_share : float or array
        Time of a cycle's drafts over that of the target's pass over one position at the same batch. [1]
    acceptance, draft_length, draft_cost : float or array
        As given to `speculative`, 0 elsewhere. [1]
    """

    kind: Literal["ar", "speculative", "diffusion", "full-sequence"]
    positions: Any
    tokens_per_pass: Any
    block_tokens: Any = 1.0
    passes_per_block: Any = 1.0
    draft_share: Any = 0.0
    acceptance: Any = 0.0
    draft_length: Any = 0.0
    draft_cost: Any = 0.0

    @staticmethod
    def autoregressive() -> Decoder:
        """One position, one token."""
        return Decoder("ar", 1.0, 1.0)

    @staticmethod
    def speculative(*, acceptance: Any, draft_length: Any, draft_cost: Any = 0.0) -> Decoder:
        r"""Draft a chain of tokens and verify it in one pass.

        .. math:: \tau = \sum_{i=0}^{g} a^i = \frac{1 - a^{g+1}}{1 - a}

        Parameters
        ----------
        acceptance : float or array
            Chance that a draft is accepted if all before it were. [1]
        draft_length : float or array
            Drafts of a cycle, whole. [1]
        draft_cost : float or array
            Time of one draft over that of the target's pass over one position, at the same batch: a draft
            model about its share of the bytes, extra heads less, prompt look-up next to nothing. [1]

        Raises
        ------
        InputError
            If a number is outside its domain.

        Examples
        --------
        >>> round(Decoder.speculative(acceptance=0.8, draft_length=4).tokens_per_pass, 4)
        3.3616
        """
        a, g, c = (
            share("acceptance", acceptance),
            whole("draft_length", draft_length),
            not_negative("draft_cost", draft_cost),
        )
        # log1p keeps the quotient exact near certain acceptance, where 1 - a^(g+1) would lose its digits
        miss = np.maximum(1.0 - a, 1e-300)
        tau = np.where(a < 1, -np.expm1((g + 1) * np.log(np.maximum(a, 1e-300))) / miss, g + 1)
        return Decoder(
            "speculative",
            scalar_or_array(g + 1),
            scalar_or_array(np.asarray(tau)),
            draft_share=scalar_or_array(g * c),
            acceptance=scalar_or_array(a),
            draft_length=scalar_or_array(g),
            draft_cost=scalar_or_array(c),
        )

    @staticmethod
    def diffusion(*, block_tokens: Any, passes: Any) -> Decoder:
        r"""Block by block: each is refined in several passes, then committed to the cache.

        .. math:: \tau = L / T

        Parameters
        ----------
        block_tokens : float or array
            Tokens of a block, L. [token]
        passes : float or array
            Passes of a block with the one that commits it, T; the mean of an adaptive number, at least 1. [1]

        Raises
        ------
        InputError
            If a number is outside its domain.

        Examples
        --------
        >>> round(Decoder.diffusion(block_tokens=256, passes=17).tokens_per_pass, 2)
        15.06
        """
        block, t = whole("block_tokens", block_tokens), at_least_one("passes", passes)
        return Decoder(
            "diffusion", scalar_or_array(block), scalar_or_array(block / t), scalar_or_array(block), scalar_or_array(t)
        )

    @staticmethod
    def full_sequence(*, passes: Any) -> Decoder:
        """Prompt and answer at once, recomputed in each of so many passes, without a cache.

        Raises
        ------
        InputError
            If the passes are below 1.

        Examples
        --------
        >>> Decoder.full_sequence(passes=64).passes_per_block
        64.0
        """
        return Decoder("full-sequence", 0.0, math.nan, math.inf, scalar_or_array(at_least_one("passes", passes)))
