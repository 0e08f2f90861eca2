"""Reader of Hugging Face ``config.json`` files: exact dimensions, or a refusal that names the key.

A ``config.json`` states the numbers; which matrices they span is in the code of the model. The
families below say what the code says and the file does not. Whatever is in neither is refused: an
unknown ``model_type``, a key that speaks of sizes and is not understood, a dimension left to a
library's default.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal

from analysis.inputs import InputError, Words, read_file
from analysis.reference.specs import (
    KV_FORMATS,
    USUALLY_QUANTIZED,
    Architecture,
    Attention,
    Indexer,
    Latent,
    LayerGroup,
    Mlp,
    Precision,
    Replica,
)
from analysis.reference.tables import DATA, accelerator, nearest

SHIPPED = DATA / "architectures"

#: Real files have up to 0.1 MB (long lists of unquantized modules); anything above this is not one.
MAX_FILE_BYTE = 4 * 2**20
MAX_NESTING = 40
MAX_LAYERS = 1_000
MAX_DIMENSION = 10**8
MAX_WILDCARDS = 500
#: More repetitions in one pattern could hang the reader: its time grows with a power of them. Releases have up to two.
MAX_STARS = 4
#: Each alternative multiplies that time again. Releases have up to three.
MAX_ALTERNATIVES = 8
MAX_PATTERN = 200


@dataclass(frozen=True)
class ModelConfig:
    """What a file says: the dimensions, and how the released weights and cache are stored."""

    architecture: Architecture
    precision: Precision


# --- What the code of each family says ---------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """Facts of a ``model_type`` that its ``config.json`` leaves to the code.

    Parameters
    ----------
    bias : bool
        Query, key and value projections have biases where ``bias_key`` is absent.
    bias_key : str
        The key that decides; empty: the code decides alone.
    output_bias : {"same", "never"}
        Whether the output projection follows.
    mlp_bias : str or bool
        The key that decides, or the code's decision.
    query_norm : {"none", "head", "width"}
    norms : int
        Norms of the width of the model in each layer, besides the final one.
    norm_bias : bool
        LayerNorm with a bias instead of RMSNorm.
    gated : bool
    tied : bool
        Where ``tie_word_embeddings`` is absent.
    experts : {"never", "all", "step", "first_dense", "list"}
        Which layers have experts: none; all; every n-th but those listed; all after the first n; as listed.
    expert_width, dense_width : str
        The keys of the inner widths.
    router_bias : {"never", "always", "choice"}
        ``choice``: where the file asks for a correction of the choice of experts.
    window : {"never", "all", "listed", "switch", "even", "sixth", "chunks"}
        Which layers ``sliding_window`` is about.
    kv_heads_required : bool
        The library has a number of its own for a missing ``num_key_value_heads``, so none is assumed.
    latent : bool
    aliases : mapping
        Own names of keys, to the usual ones.
    """

    bias: bool = False
    bias_key: str = "attention_bias"
    output_bias: Literal["same", "never"] = "same"
    mlp_bias: str | bool = False
    query_norm: Literal["none", "head", "width"] = "none"
    norms: int = 2
    norm_bias: bool = False
    gated: bool = True
    tied: bool = False
    experts: Literal["never", "all", "step", "first_dense", "list"] = "never"
    expert_width: str = "moe_intermediate_size"
    dense_width: str = "intermediate_size"
    router_bias: Literal["never", "always", "choice"] = "never"
    window: Literal["never", "all", "listed", "switch", "even", "sixth", "chunks"] = "never"
    kv_heads_required: bool = False
    latent: bool = False
    aliases: tuple[tuple[str, str], ...] = ()


_LLAMA = Family(mlp_bias="mlp_bias")
_MISTRAL = Family(bias_key="", window="all", kv_heads_required=True)
_QWEN2 = Family(bias=True, bias_key="", output_bias="never", window="switch", kv_heads_required=True)
_QWEN3 = Family(query_norm="head", window="switch", kv_heads_required=True)
_QWEN3_MOE = replace(_QWEN3, experts="step")
_GEMMA = Family(tied=True, kv_heads_required=True)
_DEEPSEEK = Family(latent=True, experts="first_dense", router_bias="choice")
_OLMO = Family(query_norm="width")
_FALCON = Family(
    bias_key="bias", mlp_bias="bias", norm_bias=True, gated=False, tied=True,
    aliases=(("n_head", "num_attention_heads"), ("n_layer", "num_hidden_layers"), ("n_head_kv", "num_kv_heads"),
             ("ffn_hidden_size", "intermediate_size")),
)  # fmt: skip

FAMILIES: Mapping[str, Family] = {
    "llama": _LLAMA,
    "granite": _LLAMA,
    "mistral": _MISTRAL,
    "ministral3": _MISTRAL,
    "mixtral": replace(_MISTRAL, experts="all", expert_width="intermediate_size"),
    "phi3": Family(bias_key="", window="all"),
    "phimoe": Family(
        norm_bias=True, experts="all", expert_width="intermediate_size", window="all", kv_heads_required=True
    ),
    "qwen2": _QWEN2,
    "qwen2_vl": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_5_omni": _QWEN2,
    "dream": _QWEN2,
    "qwen2_moe": replace(_QWEN2, bias_key="qkv_bias", experts="step"),
    "qwen3": _QWEN3,
    "qwen3_vl": _QWEN3,
    "sdar": _QWEN3,
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_vl_moe": _QWEN3_MOE,
    "qwen3_omni_moe": _QWEN3_MOE,
    "gemma": _GEMMA,
    "gemma2": replace(_GEMMA, norms=4, window="even"),
    "gemma3": replace(_GEMMA, norms=4, query_norm="head", window="sixth"),
    "gemma4": replace(_GEMMA, norms=4, query_norm="head", window="listed", experts="all"),
    "olmo2": _OLMO,
    "olmo3": replace(_OLMO, window="listed"),
    "gpt_oss": Family(
        bias=True, mlp_bias=True, experts="all", expert_width="intermediate_size", router_bias="always",
        window="listed", kv_heads_required=True,
    ),
    "llama4": Family(
        experts="step", expert_width="intermediate_size", dense_width="intermediate_size_mlp", window="chunks",
        kv_heads_required=True,
    ),
    "deepseek_v2": replace(_DEEPSEEK, router_bias="never"),
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": _DEEPSEEK,
    "kimi_k2": _DEEPSEEK,
    "glm_moe_dsa": _DEEPSEEK,
    "minimax_m2": Family(
        bias_key="", query_norm="width", experts="all", expert_width="intermediate_size", router_bias="choice",
        kv_heads_required=True,
    ),
    "mimo_v2_flash": Family(experts="list", router_bias="choice", window="listed", kv_heads_required=True),
    "nemotron-nas": _LLAMA,
    "falcon": _FALCON,
    "refinedwebmodel": _FALCON,
    "refinedweb": _FALCON,
    "gpt2": Family(
        bias=True, bias_key="", mlp_bias=True, norm_bias=True, gated=False, tied=True,
        aliases=(("n_embd", "hidden_size"), ("n_layer", "num_hidden_layers"), ("n_head", "num_attention_heads"),
                 ("n_inner", "intermediate_size"), ("n_positions", "max_position_embeddings")),
    ),
    "gpt_neox": Family(bias=True, mlp_bias=True, norm_bias=True, gated=False),
    "llada": Family(
        bias_key="include_qkv_bias", output_bias="never", mlp_bias="include_bias",
        aliases=(("d_model", "hidden_size"), ("n_layers", "num_hidden_layers"), ("n_heads", "num_attention_heads"),
                 ("n_kv_heads", "num_key_value_heads"), ("mlp_hidden_size", "intermediate_size"),
                 ("embedding_size", "vocab_size"), ("weight_tying", "tie_word_embeddings"),
                 ("max_sequence_length", "max_position_embeddings")),
    ),
}  # fmt: skip

#: Architectures whose sizes this accounting cannot give, and why.
REFUSED: Mapping[str, str] = {
    "qwen3_5": "gated delta-net layers",
    "qwen3_5_moe": "gated delta-net layers",
    "qwen3_next": "gated delta-net layers",
    "nemotron_h": "state-space (Mamba) layers",
    "mamba": "state-space (Mamba) layers",
    "mamba2": "state-space (Mamba) layers",
    "falcon_mamba": "state-space (Mamba) layers",
    "falcon_h1": "state-space (Mamba) layers",
    "jamba": "state-space (Mamba) layers",
    "zamba": "state-space (Mamba) layers",
    "zamba2": "state-space (Mamba) layers",
    "bamba": "state-space (Mamba) layers",
    "granitemoehybrid": "state-space (Mamba) layers",
    "recurrent_gemma": "linear-recurrence layers",
    "rwkv": "linear-recurrence layers",
    "rwkv7": "linear-recurrence layers",
    "minimax": "lightning-attention layers",
    "minimax_m1": "lightning-attention layers",
    "lfm2": "convolution layers",
    "kimi_linear": "delta-attention layers whose gates the file does not size",
    "kimi_k3": "delta-attention layers whose gates the file does not size",
    "minimax_m3": "index projections that the file does not size",
    "deepseek_v4": "compressed attention and hyper-connections",
    "step3p7": "layers whose head counts the file does not give",
}

#: Sub-configurations that hold the language model, outermost first.
LANGUAGE_PARTS = ("thinker_config", "text_config", "language_config", "llm_config")
#: Parts of a checkpoint that are no part of the language model.
OTHER_PARTS = ("vision_config", "audio_config", "talker_config", "token2wav_config", "code2wav_config", "speech_config")
#: Layers that draft further tokens; served models read them only when they speculate.
DRAFT_KEYS = (
    "num_nextn_predict_layers",
    "num_mtp_modules",
    "mtp_num_hidden_layers",
    "use_mtp",
)

#: Keys that cannot change a size. Everything else is either read or, if it speaks of sizes, refused.
_INERT = re.compile(
    r"""_.* | architectures | auto_map | model_type | .*token.* | .*rope.* | .*rotary.* | .*dropout.* | .*_pdrop
    | .*_eps | .*epsilon | .*init.* | .*hidden_act.* | .*activation.* | .*dtype.* | .*precision.* | .*use_cache
    | output_(attentions|hidden_states|router_logits) | .*_coef | .*aux_loss.* | seq_aux | norm_topk_prob | scoring_func
    | topk_method | n_group | topk_group | .*scaling_factor | .*scal(e|ing|ar) | .*softcapping | .*multiplier
    | .*jitter.* | pretraining_tp | ep_size | num_beam.* | diversity_penalty | num_return_sequences
    | no_repeat_ngram_size
    | encoder_no_repeat_ngram_size | min_length | max_length | length_penalty | chunk_size_feed_forward | torchscript
    | is_decoder | return_dict.* | id2label | label2id | num_labels | finetuning_task | problem_type
    | task_specific_params
    | transformers_version | cache_implementation | attn_implementation | block_size
    | original_max_position_embeddings | initial_context_length | swiglu_limit | swiglu_alpha | max_window_layers
    | qk_norm_type | use_mrope | mtp_transformer_layers | .*moe_router_dtype | moe_backend | use_(deepep|flash.*)
    | flash_attention
    | n_ctx | block_type | block_group_size | layer_norm_type | (attention_)?layer_norm_with_affine
    | mlp_ratio | alibi.* | scale_.* | summary_.* | gradient_checkpointing | apply_residual_connection_post_layernorm
    | use_bidirectional_attention | spatial_merge_size | vision_feature_.* | projector_hidden_act | for_llm_compressor
    | eos_.* | bos_.* | pad_.* | .*_seq_length | skip_checkpoint | fuse_cross_entropy | micro_forward | debug
    | index_share_for_mtp_iteration | use_parallel_residual | .*position_id.* | position_embedding_type | classifier_.*
    | experts_per_token | bad_words_ids | ignore_index | media_.* | video_.* | image_.* | vision_.*_id""",
    re.VERBOSE,
)  # fmt: skip
_SPEAKS_OF_SIZES = re.compile(
    r"dim|size|rank|lora|head|layer|expert|hidden|width|mlp|ff[nw]|bias|proj|norm|att|window|pattern|ratio|latent|shar"
    r"|tie|vocab|conv|ssm|mamba|state|linear|recur|gate|block|adapter|(^|_)n_|num_|multi|index|sparse|moe|k_eq_v|sink"
    r"|embed|kv|compress|hash|mtp|interval|freq|length|position|depth|channels|inner"
)


# --- Reading a file ----------------------------------------------------------------------------


def _load_json(path: Path) -> dict[str, Any]:
    raw = read_file(path, at_most=MAX_FILE_BYTE, expected="a readable config.json")
    if not raw.strip():
        raise InputError(path.name, Words("an empty file"), "a config.json")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(path.name, Words(f"byte 0x{raw[error.start]:02x} at {error.start}"), "UTF-8 text") from None

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise InputError(f"{path.name}, key {twice}", Words("the key twice"), "each key once")
        return found

    try:
        content = json.loads(text, object_pairs_hook=once)
    except RecursionError:
        raise InputError(path.name, Words("too deep a nesting"), f"at most {MAX_NESTING} levels") from None
    except InputError:
        raise
    except ValueError as error:
        place = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(path.name, Words(place), "well-formed JSON") from None
    if not isinstance(content, dict):
        kind = {list: "a list", str: "a text", type(None): "null", bool: "a truth value"}.get(type(content), "a number")
        raise InputError(path.name, Words(kind), "an object with the keys of a config.json")
    level: list[Any] = [content]
    for _ in range(MAX_NESTING):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise InputError(path.name, Words("too deep a nesting"), f"at most {MAX_NESTING} levels")
    return content


class _Keys:
    """One object of a file: typed access by key, and which keys were understood."""

    def __init__(self, file: str, content: Mapping[str, Any], parent: str = "") -> None:
        self.file, self.content, self.parent = file, content, parent
        self.understood: set[str] = set()

    def place(self, key: str) -> str:
        """Where a key stands, for a refusal."""
        return f"{self.file}, key {self.parent}{key}"

    def refuse(self, key: str, expected: str) -> InputError:
        """Refuse the value of a key."""
        return InputError(self.place(key), self.content.get(key), expected)

    def get(self, key: str) -> Any:
        """Return the value as it is, None if absent."""
        self.understood.add(key)
        return self.content.get(key)

    def whole(self, key: str, *, low: int = 1, high: int = MAX_DIMENSION) -> int:
        """Return a whole number that must be there."""
        value = self.optional(key, low=low, high=high)
        if value is None:
            raise self.refuse(key, self._range(low, high))
        return value

    def optional(self, key: str, *, low: int = 1, high: int = MAX_DIMENSION) -> int | None:
        """Return a whole number, or None where the key is absent or null."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.refuse(key, self._range(low, high))
        return value

    @staticmethod
    def _range(low: int, high: int) -> str:
        return f"a whole number from {low} to {high:,}"

    def flag(self, key: str, default: bool) -> bool:
        """Return a truth value; the default where the key is absent or null."""
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(key, "true or false")
        return value

    def text(self, key: str) -> str | None:
        """Return a text, None if absent or null."""
        value = self.get(key)
        if value is not None and not isinstance(value, str):
            raise self.refuse(key, "a text")
        return value

    def sequence(self, key: str, length: int | None = None) -> list[Any] | None:
        """Return a list, None if absent or null."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or (length is not None and len(value) != length):
            got: object = Words(f"{len(value)} entries") if isinstance(value, list) else value
            raise InputError(self.place(key), got, "a list" if length is None else f"a list of {length} entries")
        return value

    def flags(self, key: str, length: int) -> list[bool] | None:
        """Return a list of zeros and ones."""
        value = self.sequence(key, length)
        if value is None:
            return None
        for entry in value:
            if entry not in (0, 1):
                raise InputError(self.place(key), entry, "zeros and ones")
        return [bool(entry) for entry in value]

    def inner(self, key: str) -> _Keys | None:
        """Return an object inside, None if absent or null."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.refuse(key, "an object")
        return _Keys(self.file, value, f"{self.parent}{key}.")

    def one_of(self, *keys: str, low: int = 1) -> int | None:
        """Return the number that several spellings may state; they must agree."""
        found = {key: value for key in keys if (value := self.optional(key, low=low)) is not None}
        if len(set(found.values())) > 1:
            first, second, *_ = (key for key in found)
            raise self.refuse(second, f"{found[first]}, which {first} says")
        return next(iter(found.values()), None)

    def refuse_what_is_left(self) -> None:
        """Refuse the first key that speaks of sizes and was not understood."""
        for key, value in self.content.items():
            if key in self.understood or value in (None, False, 0, "", [], {}) or isinstance(value, str):
                continue
            if _SPEAKS_OF_SIZES.search(key.lower()) and not _INERT.fullmatch(key.lower()):
                raise self.refuse(key, "no such key: it may change sizes, and this reader does not know it")


def read(path: str | Path, *, name: str | None = None) -> ModelConfig:
    """Read a ``config.json`` of the Hugging Face kind.

    Parameters
    ----------
    path : str or Path
        The file. An ``hf_quant_config.json`` beside it (or ``NAME.hf_quant_config.json`` beside
        ``NAME.json``) is read too: some releases state their precision only there.
    name : str, optional
        What to call the architecture; the file's stem if left out.

    Returns
    -------
    ModelConfig

    Raises
    ------
    InputError
        If the file is not readable, not JSON, larger or deeper than any real one, or says something
        that this reader does not understand. The message names the file and the key.

    Notes
    -----
    Only the language model is counted: vision towers and draft layers are listed in ``left_out``.
    """
    path = Path(path)
    content = _load_json(path)
    outer = _Keys(path.name, content)
    keys, levels = outer, [outer]
    while True:
        inside = next((part for part in LANGUAGE_PARTS if isinstance(keys.content.get(part), dict)), None)
        if inside is None:
            break
        keys = keys.inner(inside) or keys
        levels.append(keys)
    model_type, family = _family(levels)
    for own, usual in family.aliases:
        if own in keys.content:
            if keys.content.get(usual, keys.content[own]) != keys.content[own]:
                raise keys.refuse(usual, f"{keys.content[own]}, which {own} says")
            keys.content = {**keys.content, usual: keys.content[own]}
            keys.understood.add(own)

    layers = _layers(keys, family, model_type)
    hidden = keys.whole("hidden_size")
    tied = {level.place("tie_word_embeddings"): level.flag("tie_word_embeddings", family.tied)
            for level in levels if level.content.get("tie_word_embeddings") is not None}  # fmt: skip
    if len(set(tied.values())) > 1:
        raise InputError(next(reversed(tied)), list(tied.values())[-1], "what the object around it says")
    architecture = Architecture(
        name=name or path.stem,
        hidden=hidden,
        vocabulary=keys.whole("vocab_size"),
        layers=tuple(replace(layer, count=count) for layer, count in Counter(layers).items()),
        tied=next(iter(tied.values()), family.tied),
        final_norm_params=hidden * (2 if family.norm_bias else 1),
        head_bias=keys.flag("lm_head_bias", False),
        position_rows=keys.whole("max_position_embeddings") if model_type == "gpt2" else 0,
        max_context=keys.optional("max_position_embeddings"),
        left_out=_left_out(levels),
    )
    quantization = next((found for level in levels if (found := level.inner("quantization_config"))), None)
    precision = _precision(quantization or _companion(path), layers, architecture)
    keys.refuse_what_is_left()
    return ModelConfig(architecture, precision)


def _family(levels: list[_Keys]) -> tuple[str, Family]:
    keys = levels[-1]
    model_type = keys.text("model_type")
    if model_type is None:
        classes = next((found for level in reversed(levels) if (found := level.sequence("architectures"))), [])
        for found in classes:
            squeezed = re.sub(r"(forcausallm|lmheadmodel|forconditionalgeneration|model)$", "", str(found).lower())
            for known in (*FAMILIES, *REFUSED):
                if known.replace("_", "").replace("-", "") == squeezed:
                    model_type = known
        if model_type is None:
            raise InputError(keys.place("model_type"), classes[0] if classes else None, "the model_type of the code")
    known = model_type.lower().removesuffix("_text")
    if known in REFUSED:
        raise keys.refuse("model_type", f"a transformer that can be sized from its file; this one has {REFUSED[known]}")
    if known not in FAMILIES:
        raise keys.refuse("model_type", f"one whose code this reader knows, such as {nearest(known, FAMILIES)}")
    return known, FAMILIES[known]


def _left_out(levels: list[_Keys]) -> tuple[str, ...]:
    parts = [part for level in levels for part in OTHER_PARTS if level.get(part)]
    drafts = [key for level in levels for key in DRAFT_KEYS if level.get(key)]
    return (*parts, *(["draft layers"] if drafts else []))


# --- Layers ------------------------------------------------------------------------------------


def _layers(keys: _Keys, family: Family, model_type: str) -> list[LayerGroup]:
    count = keys.whole("num_hidden_layers", high=MAX_LAYERS)
    hidden = keys.whole("hidden_size")
    if keys.content.get("block_configs") is not None:
        return _blocks(keys, hidden, count)
    windowed = _windowed(keys, family, model_type, count)
    windows, full = _attention(keys, family, model_type, hidden)
    sparse, dense = _mlps(keys, family, model_type, hidden)
    with_experts = _with_experts(keys, family, count) if sparse else [False] * count
    indexers = keys.sequence("indexer_types", count)
    if indexers is not None:  # then the rules from which the list was made are said twice
        for key in ("index_topk_freq", "index_topk_pattern", "index_skip_topk_offset"):
            keys.get(key)
    layers = []
    for i in range(count):
        attention = windows if windowed[i] else full
        mlp = sparse if with_experts[i] else dense
        if attention is None or mlp is None:
            raise keys.refuse("sliding_window" if attention is None else family.dense_width, "a size: layers need it")
        if indexers is not None and indexers[i] != "full":
            # a layer that takes over an earlier choice has no indexer of its own, and reads only the chosen keys
            follows = attention.indexer and replace(attention.indexer, heads=0, head_dim=0)
            attention = replace(attention, indexer=follows)
        norms = family.norms * hidden * (2 if family.norm_bias else 1)
        if model_type == "gemma4" and mlp.experts:
            norms += 4 * hidden + mlp.experts  # norms around both branches; scales of the router and of each expert
        if model_type in ("falcon", "refinedwebmodel", "refinedweb") and keys.flag("parallel_attn", True):
            norms = 2 * hidden * (2 if keys.flag("new_decoder_architecture", False) else 1)
        layers.append(LayerGroup(1, attention, mlp, norms))
    return layers


def _windowed(keys: _Keys, family: Family, model_type: str, count: int) -> list[bool]:
    """Which layers see only a window."""
    listed = keys.sequence("layer_types", count)
    known = {"full_attention": False, "sliding_attention": True, "chunked_attention": True}
    for kind in listed or []:
        if not isinstance(kind, str) or kind not in known:
            raise InputError(keys.place("layer_types"), kind, " or ".join(known))
    pattern = keys.flags("hybrid_layer_pattern", count)
    window = keys.optional("attention_chunk_size" if family.window == "chunks" else "sliding_window")
    if window is None or (not keys.flag("use_sliding_window", True) and family.window == "switch"):
        if any(known[kind] for kind in listed or []) or any(pattern or []):
            raise keys.refuse("sliding_window", "the window of the layers that are said to have one")
        return [False] * count
    if listed is not None:
        return [known[kind] for kind in listed]
    if pattern is not None:
        return pattern
    if family.window == "all":
        return [True] * count
    if family.window == "switch":
        first = keys.whole("max_window_layers", low=0)
        return [i >= first for i in range(count)] if keys.flag("use_sliding_window", False) else [False] * count
    if family.window == "even":
        return [i % 2 == 0 for i in range(count)]
    if family.window == "sixth":
        period = keys.one_of("sliding_window_pattern", "_sliding_window_pattern") or 6
        return [(i + 1) % period != 0 for i in range(count)]
    if family.window == "chunks":
        rotary = keys.flags("no_rope_layers", count) if keys.content.get("no_rope_layers") else None
        period = keys.optional("no_rope_layer_interval") or 4
        return rotary if rotary is not None else [(i + 1) % period != 0 for i in range(count)]
    if family.window == "listed":
        raise keys.refuse("layer_types", "the kind of each layer")
    raise keys.refuse("sliding_window", f"null: the code of {model_type} has no window")


def _heads(keys: _Keys, family: Family, model_type: str) -> tuple[int, int]:
    heads = keys.whole("num_attention_heads")
    if model_type.startswith(("falcon", "refinedweb")):
        if keys.flag("multi_query", True) and not keys.flag("new_decoder_architecture", "num_kv_heads" in keys.content):
            return heads, 1
        return heads, keys.optional("num_kv_heads") or heads
    stated = keys.optional("num_key_value_heads")
    if stated is None and family.kv_heads_required and "num_key_value_heads" not in keys.content:
        raise keys.refuse("num_key_value_heads", "a whole number: for a missing one this model_type has another rule")
    kv_heads = stated or heads
    if heads % kv_heads:
        raise keys.refuse("num_key_value_heads", f"a divisor of num_attention_heads, {heads}")
    return heads, kv_heads


def _head_dim(keys: _Keys, hidden: int, heads: int) -> int:
    stated = keys.optional("head_dim")
    if stated is None and hidden % heads:
        raise keys.refuse("num_attention_heads", f"a divisor of hidden_size, {hidden}, or a head_dim")
    return stated or hidden // heads


def _attention(keys: _Keys, family: Family, model_type: str, hidden: int) -> tuple[Attention | None, Attention]:
    """Attention of windowed layers (None without a window) and of the others."""
    heads, kv_heads = _heads(keys, family, model_type)
    window = keys.one_of("sliding_window", "sliding_window_size")
    chunk = keys.optional("attention_chunk_size")
    input_bias = keys.flag(family.bias_key, family.bias) if family.bias_key else family.bias
    if keys.flag("qkv_bias", False) and family.bias_key != "qkv_bias":
        raise keys.refuse("qkv_bias", "false: the code of this model_type has no such biases")
    shared = {
        "input_bias": input_bias,
        "output_bias": input_bias and family.output_bias == "same",
        "query_norm": family.query_norm,
        "sinks": model_type == "gpt_oss",
    }
    normed = keys.flag("use_qk_norm", family.query_norm != "none")
    if model_type == "minimax_m2":
        shared["query_norm"] = "width" if normed else "none"
    elif normed != (family.query_norm != "none") and model_type != "llama4":  # there the norm has no parameters
        raise keys.refuse("use_qk_norm", f"{not normed}: the code of {model_type} decides it".lower())
    if family.latent:
        return None, _latent(keys, heads, shared)
    head_dim = _head_dim(keys, hidden, heads)
    value_dim = keys.optional("v_head_dim") or head_dim
    # the checker sees one type for all values of a dictionary
    full = Attention(heads, kv_heads, head_dim, value_dim, **shared)  # type: ignore[arg-type]
    reach = chunk if family.window == "chunks" else window
    local = None if reach is None else replace(full, window=reach, chunked=family.window == "chunks")
    if model_type == "gemma4":
        if not keys.get("hidden_size_per_layer_input"):
            keys.get("vocab_size_per_layer_input")  # the rows of embeddings that are not there
        full = replace(
            full,
            kv_heads=keys.whole("num_global_key_value_heads"),
            head_dim=keys.whole("global_head_dim"),
            value_dim=keys.whole("global_head_dim"),
            keys_are_values=keys.flag("attention_k_eq_v", False),
        )
        if heads % full.kv_heads:
            raise keys.refuse("num_global_key_value_heads", f"a divisor of num_attention_heads, {heads}")
    if model_type == "mimo_v2_flash":
        full = replace(full, sinks=keys.flag("add_full_attention_sink_bias", False))
        if local is not None:
            local = replace(
                local,
                query_heads=keys.whole("swa_num_attention_heads"),
                kv_heads=keys.whole("swa_num_key_value_heads"),
                head_dim=keys.whole("swa_head_dim"),
                value_dim=keys.whole("swa_v_head_dim"),
                sinks=keys.flag("add_swa_attention_sink_bias", False),
            )
            if local.query_heads % local.kv_heads:
                raise keys.refuse("swa_num_key_value_heads", f"a divisor of {local.query_heads}")
    return local, full


def _latent(keys: _Keys, heads: int, shared: dict[str, Any]) -> Attention:
    nope, rope = keys.whole("qk_nope_head_dim"), keys.whole("qk_rope_head_dim")
    stated = keys.optional("qk_head_dim")
    if stated is not None and stated != nope + rope:
        raise keys.refuse("qk_head_dim", f"{nope + rope}, the sum of its two parts")
    keys.get("head_dim")  # means one of the parts or nothing in latent attention, differently from file to file
    indexer = None
    if keys.content.get("index_topk") is not None:
        indexer = Indexer(keys.whole("index_n_heads"), keys.whole("index_head_dim"), keys.whole("index_topk"))
    latent = Latent(keys.whole("kv_lora_rank"), rope, keys.optional("q_lora_rank"))
    return Attention(heads, heads, nope + rope, keys.whole("v_head_dim"), latent=latent, indexer=indexer, **shared)


def _mlps(keys: _Keys, family: Family, model_type: str, hidden: int) -> tuple[Mlp | None, Mlp | None]:
    """Expert MLP (None if there are no experts) and dense MLP (None if there is no width for it)."""
    bias = keys.flag(family.mlp_bias, False) if isinstance(family.mlp_bias, str) else family.mlp_bias
    experts = keys.one_of("num_local_experts", "num_experts", "n_routed_experts", low=0) or 0
    chosen = keys.one_of("num_experts_per_tok", "top_k_experts", "num_experts_per_token", low=0)
    width = keys.optional(family.dense_width)
    if width is None and model_type in ("gpt2", "falcon", "refinedwebmodel", "refinedweb"):
        width = 4 * hidden
    dense = None if width is None else Mlp(width, family.gated, bias)
    if model_type == "gemma4" and not keys.flag("enable_moe_block", False):
        experts = 0
    elif family.experts == "never":
        if experts:
            raise keys.refuse("num_local_experts" if keys.content.get("num_local_experts") else "num_experts",
                              f"no experts: the code of {model_type} has none")  # fmt: skip
    elif not experts:
        raise keys.refuse("num_local_experts", "the number of experts, 1 or above")
    if not experts:
        if dense is None:
            raise keys.refuse(family.dense_width, f"a whole number from 1 to {MAX_DIMENSION:,}")
        for key in ("moe_intermediate_size", "expert_intermediate_size"):
            keys.get(key)
        return None, dense
    if not chosen:
        raise keys.refuse("num_experts_per_tok", "how many experts a token uses, 1 or above")
    if chosen > experts:
        raise keys.refuse("num_experts_per_tok", f"at most the number of experts, {experts}")
    each = keys.whole(family.expert_width)
    shared = keys.one_of("shared_expert_intermediate_size", "shared_intermediate_size", low=0)
    if shared is None:
        shared = each * (keys.one_of("n_shared_experts", "num_shared_experts", low=0) or 0)
    else:
        keys.one_of("n_shared_experts", "num_shared_experts", low=0)
    if model_type == "llama4":
        shared = each
    if model_type == "gemma4":
        shared = keys.whole("intermediate_size")
    router_bias = family.router_bias == "always"
    if family.router_bias == "choice":
        router_bias = keys.get("topk_method") == "noaux_tc" or keys.flag("use_routing_bias", False)
    sparse = Mlp(each, family.gated, bias, experts, chosen, shared, model_type == "qwen2_moe", router_bias)
    return sparse, dense


def _with_experts(keys: _Keys, family: Family, count: int) -> list[bool]:
    """Which layers have experts."""
    listed = keys.sequence("mlp_layer_types", count)
    if listed is not None:
        for kind in listed:
            if kind not in ("dense", "sparse"):
                raise InputError(keys.place("mlp_layer_types"), kind, "dense or sparse")
        keys.optional("first_k_dense_replace", low=0)
        keys.optional("moe_layer_freq")
        return [kind == "sparse" for kind in listed]
    if family.experts == "all":
        return [True] * count
    if family.experts == "list":
        found = keys.flags("moe_layer_freq", count)
        if found is None:
            raise keys.refuse("moe_layer_freq", f"a list of {count} entries")
        return found
    if family.experts == "step":
        step = keys.one_of("decoder_sparse_step", "interleave_moe_layer_step")
        if step is None:
            raise keys.refuse("decoder_sparse_step", "every how many layers there are experts")
        dense_only = keys.sequence("mlp_only_layers") or []
        return [(i + 1) % step == 0 and i not in dense_only for i in range(count)]
    first, step = keys.whole("first_k_dense_replace", low=0), keys.optional("moe_layer_freq") or 1
    return [i >= first and i % step == 0 for i in range(count)]


def _blocks(keys: _Keys, hidden: int, count: int) -> list[LayerGroup]:
    """Layers of a searched network, each with its own attention and MLP (``block_configs``)."""
    heads = keys.whole("num_attention_heads")
    head_dim = _head_dim(keys, hidden, heads)
    for key in ("num_key_value_heads", "intermediate_size", "attention_bias", "mlp_bias"):
        if keys.get(key):
            raise keys.refuse(key, "null beside block_configs")
    layers = []
    for i, block in enumerate(keys.sequence("block_configs", count) or []):
        place = f"{keys.parent}block_configs[{i}]."
        if not isinstance(block, dict):
            raise InputError(keys.place(f"block_configs[{i}]"), block, "an object")
        inside = _Keys(keys.file, block, place)
        attention_keys, mlp_keys = inside.inner("attention"), inside.inner("ffn")
        if attention_keys is None or mlp_keys is None:
            raise InputError(inside.place("attention" if attention_keys is None else "ffn"), None, "an object")
        inside.refuse_what_is_left()
        attention = mlp = None
        if not attention_keys.flag("no_op", False):
            group = attention_keys.whole("n_heads_in_group")
            if heads % group:
                raise attention_keys.refuse("n_heads_in_group", f"a divisor of num_attention_heads, {heads}")
            attention = Attention(heads, heads // group, head_dim, head_dim)
        if not mlp_keys.flag("no_op", False):
            ratio = mlp_keys.get("ffn_mult")
            if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= 1000:
                raise mlp_keys.refuse("ffn_mult", "a number above 0")
            mlp = Mlp(-(-int(2 * Fraction(ratio) * hidden / 3) // 256) * 256)
        for part in (attention_keys, mlp_keys):
            part.get("n_heads_in_group")
            part.get("ffn_mult")
            for key, value in part.content.items():
                if value and key not in part.understood:
                    raise part.refuse(key, "null or false: this reader does not know it")
        norms = hidden * ((attention is not None) + (mlp is not None))
        layers.append(LayerGroup(1, attention, mlp, norms))
    return layers


# --- Precision ---------------------------------------------------------------------------------


def _companion(path: Path) -> _Keys | None:
    """Find the quantization that some releases state in a file of its own."""
    beside = path.with_name("hf_quant_config.json")
    if path.name != "config.json" or not beside.is_file():
        beside = path.with_name(f"{path.stem}.hf_quant_config.json")
    if not beside.is_file():
        return None
    found = _Keys(beside.name, _load_json(beside)).inner("quantization")
    if found is None:
        raise InputError(f"{beside.name}, key quantization", None, "an object")
    return found


def _precision(keys: _Keys | None, layers: list[LayerGroup], architecture: Architecture) -> Precision:
    if keys is None:
        return Precision.of("bf16")
    method = keys.text("quant_method") or ("modelopt" if keys.text("quant_algo") else None)
    readers: Mapping[str, Callable[[_Keys], Precision]] = {
        "fp8": _fp8,
        "fbgemm_fp8": _fp8,
        "mxfp4": lambda _: Precision.of("mxfp4"),
        "gptq": _groups,
        "awq": _groups,
        "bitsandbytes": _bitsandbytes,
        "compressed-tensors": _compressed_tensors,
        "modelopt": _modelopt,
    }
    if method is None or method not in readers:
        raise InputError(keys.place("quant_method"), method, " or ".join(readers))
    precision = readers[method](keys)
    ignored = [
        entry
        for key in ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "llm_int8_skip_modules")
        for entry in keys.sequence(key) or []
    ]
    names = _Names(keys, ignored)
    everywhere = method in ("compressed-tensors", "modelopt") or (method == "gptq" and keys.flag("lm_head", False))
    kept, total = Counter[str](), Counter[str]()
    for i, layer in enumerate(layers):
        for component, module, params in _modules(layer, architecture.hidden):
            total[component] += params
            kept[component] += params if f"layers.{i}.{module}" in names else 0
    shares = [(c, 1 - kept[c] / total[c]) for c in USUALLY_QUANTIZED if total[c] and kept[c] < total[c]]
    if everywhere and not architecture.tied and "lm_head" not in names:
        shares.append(("head", 1.0))
    return replace(precision, quantized=tuple(shares))


def _modules(layer: LayerGroup, hidden: int) -> Iterable[tuple[str, str, int]]:
    """Component, name in the checkpoint, and parameters of each matrix of one layer."""
    if layer.attention is not None:
        for name, params in layer.attention.matrices(hidden).items():
            yield "attention", f"self_attn.{name}", params
    if layer.mlp is not None:
        places = {"mlp": "mlp.", "shared_experts": "mlp.shared_experts.", "experts": "mlp.experts.0."}
        sizes = layer.mlp.components(hidden)
        projections = ("gate_proj", "up_proj", "down_proj")[-layer.mlp.matrices_each :]
        for component, place in places.items():
            for projection in projections:
                yield component, f"{place}{projection}", sizes.get(component, 0) // len(projections)


class _Names:
    """Modules that a quantization leaves alone: names, parts of names, wildcards, or ``re:`` and a pattern."""

    def __init__(self, keys: _Keys, entries: list[Any]) -> None:
        self.plain: set[str] = set()
        self.patterns: list[re.Pattern[str]] = []
        place = keys.place("ignore")
        for entry in entries:
            if not isinstance(entry, str) or not entry:
                raise InputError(place, entry, "names of modules")
            if entry.startswith("re:"):
                self.patterns.append(self._compiled(place, entry))
            elif "*" in entry:
                # each star multiplies the ways in which a name can fail to match
                entry = re.sub(r"\*+", "*", entry)
                if entry.count("*") > MAX_STARS:
                    raise InputError(place, entry, f"at most {MAX_STARS} stars in a name")
                start, tail = self._from_layers(entry), "" if entry.endswith("*") else r"(\.|$)"
                body = r"[^.]*".join(re.escape(part) for part in start.rstrip("*").split("*"))
                self.patterns.append(re.compile(rf"(^|.*\.){body}{tail}"))
            else:
                self.plain.add(self._from_layers(entry))
        if len(self.patterns) > MAX_WILDCARDS:
            raise InputError(place, Words(f"{len(self.patterns)} patterns"), f"at most {MAX_WILDCARDS}")

    @staticmethod
    def _from_layers(name: str) -> str:
        """Cut what stands before the layers: releases differ in it."""
        return re.sub(r"^.*?(?=\b(?:layers\.|lm_head))", "", name.replace("shared_expert.", "shared_experts."))

    @staticmethod
    def _compiled(place: str, entry: str) -> re.Pattern[str]:
        # a file must not be able to hang its reader; what may be absent counts as repeated, a lazy repetition once
        repetitions = len(re.findall(r"[*+{]\??|(?<![(*+])\?", entry))
        if re.search(r"\)[*+{?]", entry) or repetitions > MAX_STARS or entry.count("|") > MAX_ALTERNATIVES:
            limits = f"at most {MAX_STARS} repetitions, none of a group, and {MAX_ALTERNATIVES} alternatives"
            raise InputError(place, entry, f"a pattern with {limits}")
        if len(entry) > MAX_PATTERN:
            raise InputError(place, entry, f"a pattern of at most {MAX_PATTERN} characters")
        try:
            return re.compile(entry[3:])
        except (re.error, OverflowError, RecursionError):
            raise InputError(place, entry, "a regular expression after re:") from None

    def __contains__(self, name: str) -> bool:
        segments = name.split(".")
        parts = (
            ".".join(segments[a:b]) for a in range(len(segments)) for b in range(a + 1, len(segments) + 1)
        )  # fmt: skip
        if any(part in self.plain for part in parts):
            return True
        return any(pattern.match(name) or pattern.match(f"model.{name}") for pattern in self.patterns)


def _fp8(keys: _Keys) -> Precision:
    precision = Precision.of("fp8")
    block = keys.sequence("weight_block_size")
    if block is None:
        return precision
    if len(block) != 2 or any(isinstance(side, bool) or not isinstance(side, int) or side < 1 for side in block):
        raise keys.refuse("weight_block_size", "two whole numbers")
    return replace(precision, byte_per_weight=1 + 4 / (block[0] * block[1]))  # one float32 scale per block


def _integer_groups(keys: _Keys, bits_key: str, zero_points: bool) -> tuple[str, float]:
    """Name and bytes of integer weights with a 16-bit scale (and a zero point) per group."""
    bits = keys.whole(bits_key)
    if bits not in (4, 8):
        raise keys.refuse(bits_key, "4 or 8")
    group = keys.optional("group_size", low=-1) or -1
    scales = 0.0 if group < 0 else (16 + (bits if zero_points else 0)) / group
    return f"int{bits}", (bits + scales) / 8


def _groups(keys: _Keys) -> Precision:
    """GPTQ and AWQ: weight-only, products in 16 bit."""
    name, size = _integer_groups(keys, "w_bit" if "w_bit" in keys.content else "bits", zero_points=True)
    return replace(Precision.of(name), byte_per_weight=size, compute="bf16")


def _bitsandbytes(keys: _Keys) -> Precision:
    """4 bit with a 32-bit scale per 64 weights (8 bit and a second level if quantized twice), or 8 bit; weight-only."""
    if keys.flag("load_in_8bit", False):
        return replace(Precision.of("int8"), compute="bf16")
    if not keys.flag("load_in_4bit", False):
        raise keys.refuse("load_in_4bit", "true, or load_in_8bit")
    scales = 8 / 64 + 32 / (64 * 256) if keys.flag("bnb_4bit_use_double_quant", False) else 32 / 64
    return replace(Precision.of("int4"), byte_per_weight=(4 + scales) / 8)


def _only_group(keys: _Keys) -> _Keys:
    groups = keys.inner("config_groups")
    if groups is None or len(groups.content) != 1:
        raise keys.refuse("config_groups", "one group of modules")
    group = groups.inner(next(iter(groups.content)))
    if group is None:
        raise keys.refuse("config_groups", "one group of modules")
    if (targets := group.sequence("targets")) not in (None, ["Linear"]):
        raise InputError(group.place("targets"), targets, '["Linear"]')
    return group


def _number_format(keys: _Keys | None) -> tuple[str, float, str] | None:
    """Dtype, bytes with scales, and the compute format of numbers described by bits, type and groups."""
    if keys is None:
        return None
    bits, kind, group = keys.whole("num_bits"), keys.text("type"), keys.optional("group_size", low=-1)
    if kind == "int" and bits in (4, 8):
        name, size = _integer_groups(keys, "num_bits", zero_points=keys.get("symmetric") is False)
        return name, size, "int8"
    if kind == "float" and bits == 8:
        return "fp8", 1.0, "fp8"
    if kind == "float" and bits == 4 and group in (16, 32):
        name = "nvfp4" if group == 16 else "mxfp4"
        return name, Precision.of(name).byte_per_weight, "fp4"
    raise keys.refuse("num_bits", "int of 4 or 8 bits, float of 8, or float of 4 in groups of 16 or 32")


def _with_cache(keys: _Keys, precision: Precision) -> Precision:
    scheme = _number_format(keys.inner("kv_cache_scheme"))
    kv = scheme[0] if scheme else "bf16"
    return replace(precision, kv=kv, byte_per_kv=KV_FORMATS[kv] / 8)


def _compressed_tensors(keys: _Keys) -> Precision:
    group = _only_group(keys)
    weights, inputs = _number_format(group.inner("weights")), _number_format(group.inner("input_activations"))
    if weights is None:
        raise group.refuse("weights", "an object")
    name, size, compute = weights
    precision = replace(Precision.of(name), byte_per_weight=size, compute="bf16" if inputs is None else inputs[2])
    return _with_cache(keys, replace(precision, compute=compute) if inputs and inputs[0] == name else precision)


def _modelopt(keys: _Keys) -> Precision:
    known = {"FP8": "fp8", "NVFP4": "nvfp4", "W4A16_AWQ": "int4", "W4A16": "int4", "MXFP4": "mxfp4"}
    algorithm = keys.text("quant_algo")
    if algorithm not in known:
        raise InputError(keys.place("quant_algo"), algorithm, " or ".join(known))
    precision = Precision.of(known[algorithm])
    if "kv_cache_quant_algo" in keys.content:
        cache_format = {None: "bf16", "FP8": "fp8", "NVFP4": "nvfp4", "INT8": "int8"}
        stated = keys.text("kv_cache_quant_algo")
        if stated not in cache_format:
            raise InputError(keys.place("kv_cache_quant_algo"), stated, "FP8, NVFP4, INT8 or null")
        kv = cache_format[stated]
        return replace(precision, kv=kv, byte_per_kv=KV_FORMATS[kv] / 8)
    return _with_cache(keys, precision)


# --- Shipped architectures ---------------------------------------------------------------------


def names() -> list[str]:
    """Names of the shipped architectures."""
    return sorted(path.stem for path in SHIPPED.glob("*.json"))


def origin(name: str) -> tuple[str, str]:
    """Where the dimensions of a shipped architecture come from: a key of sources.csv, and the place in it.

    Raises
    ------
    InputError
        If the file does not say.
    """
    keys = _Keys(f"{name}.json", _load_json(SHIPPED / f"{name}.json"))
    source, locator = keys.text("_source"), keys.text("_locator")
    if not source or not locator:
        raise keys.refuse("_locator" if source else "_source", "a source and the place in it")
    return source, locator


@cache
def shipped(name: str) -> ModelConfig:
    """Read a shipped architecture.

    Parameters
    ----------
    name : str
        A lower-case slug such as ``llama-3.1-70b``.

    Returns
    -------
    ModelConfig

    Raises
    ------
    InputError
        If there is none of that name; the message lists the nearest.

    Examples
    --------
    >>> shipped("llama-3.1-70b").architecture.n_layers
    80
    """
    if name not in names():
        raise InputError("model", name, f"a shipped architecture ({nearest(name, names())}) or a config.json")
    return read(SHIPPED / f"{name}.json", name=name)


def named(model: str) -> ModelConfig:
    """Read a shipped architecture by its name, or a file by its path.

    Parameters
    ----------
    model : str
        A name, or a path that ends in ``.json`` or has a folder in it.

    Returns
    -------
    ModelConfig

    Raises
    ------
    InputError
        As `shipped` and `read`.

    Examples
    --------
    >>> named("mixtral-8x7b").architecture.n_layers
    32
    """
    return read(model) if model.endswith(".json") or "/" in model or "\\" in model else shipped(model)


def replica(model: str, part: str, *, as_of: date, gpus: int = 1, weights: str | None = None) -> Replica:
    """Put a shipped model on GPUs of the tables.

    Parameters
    ----------
    model, part : str
        Names of a shipped architecture and of an accelerator.
    as_of : date
        The day of the data sheet.
    gpus : int
        GPUs that share each layer. [1]
    weights : str, optional
        Format of the weights, else the release's.

    Returns
    -------
    Replica

    Raises
    ------
    InputError
        If a name or format is unknown.

    Examples
    --------
    >>> from analysis.reference.tables import SNAPSHOT
    >>> two = replica("llama-3.1-70b", "h100-sxm", as_of=SNAPSHOT, gpus=2, weights="fp8")
    >>> two.precision.byte_per_weight, two.gpus
    (1.0, 2)
    """
    config = shipped(model)
    precision = config.precision.with_formats(weights=weights)
    return Replica(config.architecture, precision, accelerator(part, as_of=as_of), gpus)
