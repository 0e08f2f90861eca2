"""The reader of config.json: exact sizes in every spelling, and one line for everything that it does not understand."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs import InputError
from analysis.model.transformer import params_active, params_total, weight_bytes
from analysis.reference import model_config
from analysis.reference.specs import KV_FORMATS, WEIGHT_FORMATS, Precision

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
LLAMA_TOTAL = 8_030_261_248
OLMO = LLAMA | {"model_type": "olmo3", "sliding_window": 9}
MIXTRAL = {
    **LLAMA,
    "model_type": "mixtral",
    "vocab_size": 32000,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}
SMALL_MLA = {
    "model_type": "deepseek_v3",
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 128,
    "moe_intermediate_size": 32,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "topk_method": "noaux_tc",
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "vocab_size": 100,
}


@pytest.fixture
def read(tmp_path):
    def reader(content, name="config.json"):
        path = tmp_path / name
        path.write_text(json.dumps(content))
        return model_config.read(path)

    return reader


@pytest.fixture
def refusal(read):
    def refused(content):
        with pytest.raises(InputError) as caught:
            read(content)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return refused


def without(content, *keys):
    return {key: value for key, value in content.items() if key not in keys}


# --- sizes that somebody else counted


@pytest.mark.parametrize(
    ("content", "total"),
    [
        (LLAMA, LLAMA_TOTAL),
        # multi-head attention: a missing or empty number of KV heads means one per query head (Llama-2-7B)
        (
            without(LLAMA, "num_key_value_heads") | {"intermediate_size": 11008, "vocab_size": 32000},
            6_738_415_616,
        ),
        (LLAMA | {"num_key_value_heads": None, "intermediate_size": 11008, "vocab_size": 32000}, 6_738_415_616),
        # alternating windows, four norms, tied by default (Gemma-2-9B, huggingface.co/google/gemma-2-9b-it)
        (
            {
                "model_type": "gemma2",
                "hidden_size": 3584,
                "num_hidden_layers": 42,
                "num_attention_heads": 16,
                "num_key_value_heads": 8,
                "head_dim": 256,
                "intermediate_size": 14336,
                "vocab_size": 256000,
                "sliding_window": 4096,
            },
            9_241_705_984,
        ),
        # learned positions, biases, plain MLP of four times the width (GPT-2, 124,439,808 in its paper's code)
        (
            {
                "model_type": "gpt2",
                "n_embd": 768,
                "n_layer": 12,
                "n_head": 12,
                "n_positions": 1024,
                "vocab_size": 50257,
            },
            124_439_808,
        ),
        # parallel biases and an untied head (Pythia-6.9B, github.com/EleutherAI/pythia)
        (
            {
                "model_type": "gpt_neox",
                "hidden_size": 4096,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "intermediate_size": 16384,
                "vocab_size": 50432,
            },
            6_857_302_016,
        ),
    ],
    ids=["llama-3.1-8b", "mha", "mha-null", "gemma-2-9b", "gpt-2", "pythia-6.9b"],
)
def test_totals_by_family(read, content, total):
    assert params_total(read(content).architecture) == total


def test_a_latent_model_by_hand(read):
    """Counted with pencil: 64 wide, 4 heads, latent 16 + 4, queries through 24, 1 dense layer and 2 with experts."""
    attention = 64 * 24 + 24 * 4 * 12 + 64 * (16 + 4) + 16 * 4 * (8 + 8) + 4 * 8 * 64
    norms = 2 * 64 + 16 + 24
    dense = 3 * 64 * 128
    sparse = (8 + 1) * 3 * 64 * 32 + 8 * 64 + 8
    by_hand = 3 * (attention + norms) + dense + 2 * sparse + 2 * 100 * 64 + 64
    architecture = read(SMALL_MLA).architecture
    assert params_total(architecture) == by_hand
    assert params_total(architecture) - params_active(architecture) == 2 * 6 * 3 * 64 * 32


# --- spellings


@pytest.mark.parametrize(
    ("spelling", "same"),
    [
        ({"model_type": "llama", "text_config": LLAMA}, LLAMA),
        ({"model_type": "any_omni", "thinker_config": {"text_config": LLAMA, "vision_config": {"depth": 2}}}, LLAMA),
        (without(LLAMA, "model_type") | {"architectures": ["LlamaForCausalLM"]}, LLAMA),
        (LLAMA | {"head_dim": 128, "tie_word_embeddings": False, "attention_bias": False}, LLAMA),
        (LLAMA | {"rope_scaling": {"factor": 8.0}, "max_length": 20, "id2label": {"0": "a"}}, LLAMA),
        (MIXTRAL | {"num_experts": 8}, MIXTRAL),
        (SMALL_MLA | {"n_shared_experts": 2, "moe_intermediate_size": 16, "n_routed_experts": 16}, None),
        (SMALL_MLA | {"moe_layer_freq": 1, "num_nextn_predict_layers": 1}, SMALL_MLA),
    ],
)
def test_spellings_of_the_same_model(read, spelling, same):
    found = read(spelling).architecture
    if same is not None:
        assert dict(found.components) == dict(read(same, "other.json").architecture.components)
    else:
        assert found.components["shared_experts"] == 2 * 2 * 3 * 64 * 16


def test_what_is_left_out_is_named(read):
    content = {"model_type": "llava", "text_config": LLAMA, "vision_config": {"model_type": "clip"}}
    assert read(content).architecture.left_out == ("vision_config",)
    assert read(SMALL_MLA | {"num_nextn_predict_layers": 1}).architecture.left_out == ("draft layers",)


def test_explicit_head_width_wins_over_the_quotient(read):
    narrow, wide = (
        read(LLAMA | {"head_dim": d}).architecture.layers[0].attention.matrices(4096)["q_proj"] for d in (64, 128)
    )
    assert wide == 2 * narrow == 4096 * 4096


def test_tied_embeddings_are_stored_once(read):
    """The count differs by vocabulary times width (github.com/huggingface/trl/pull/6731)."""
    tied, untied = (params_total(read(LLAMA | {"tie_word_embeddings": t}).architecture) for t in (True, False))
    assert untied - tied == 128256 * 4096


def test_every_nth_layer_has_experts(read):
    moe = {
        **without(LLAMA, "num_hidden_layers"),
        "model_type": "qwen3_moe",
        "head_dim": 128,
        "num_hidden_layers": 6,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 256,
    }
    sparse = read(moe | {"decoder_sparse_step": 2, "mlp_only_layers": [1]}).architecture
    assert sum(group.count for group in sparse.layers if group.mlp.experts) == 2, "layers 3 and 5 of 0 to 5"
    assert {group.mlp.width for group in sparse.layers} == {256, 14336}


@pytest.mark.parametrize(
    ("change", "windowed"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, 32),
        ({"model_type": "mistral", "sliding_window": None}, 0),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False, "max_window_layers": 20}, 0),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 20}, 12),
        ({"model_type": "gemma2", "sliding_window": 4096}, 16),
        ({"model_type": "gemma3", "sliding_window": 1024}, 27),
        ({"model_type": "olmo3", "sliding_window": 9, "layer_types": ["sliding_attention", "full_attention"] * 16}, 16),
    ],
)
def test_which_layers_see_a_window(read, change, windowed):
    layers = read(LLAMA | change).architecture.layers
    assert sum(group.count for group in layers if group.attention.window) == windowed


# --- precision


def quantized(read, config, content=LLAMA):
    found = read(content | {"quantization_config": config})
    return found.precision, weight_bytes(found.architecture, found.precision)


@pytest.mark.parametrize(
    ("config", "weights", "bits", "compute"),
    [
        ({"quant_method": "fp8"}, "fp8", 8, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", 8 + 32 / 128**2, "fp8"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "int4", 4 + 20 / 128, "bf16"),
        ({"quant_method": "awq", "bits": 4, "group_size": 32}, "int4", 4 + 20 / 32, "bf16"),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8", 8, "bf16"),
        ({"quant_method": "mxfp4"}, "mxfp4", 4.25, "bf16"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4", 4.5, "bf16"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}, "nvfp4", 4.5, "fp4"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "group_0": {
                        "targets": ["Linear"],
                        "weights": {"num_bits": 4, "type": "int", "group_size": 32, "symmetric": True},
                        "input_activations": None,
                    }
                },
                "ignore": ["lm_head"],
            },
            "int4",
            4.5,
            "bf16",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "group_0": {
                        "targets": ["Linear"],
                        "weights": {"num_bits": 8, "type": "float"},
                        "input_activations": {"num_bits": 8, "type": "float"},
                    }
                },
                "ignore": ["re:.*lm_head"],
            },
            "fp8",
            8,
            "fp8",
        ),
    ],
)
def test_bytes_of_quantized_weights(read, config, weights, bits, compute):
    """Matrices of the layers take the narrow format with its scales; embeddings, head and norms keep 16 bit."""
    precision, held = quantized(read, config)
    assert (precision.weights, precision.compute) == (weights, compute)
    wide = 2 * 128256 * 4096 + 65 * 4096
    assert held == pytest.approx((LLAMA_TOTAL - wide) * bits / 8 + 2 * wide, rel=1e-12)


@pytest.mark.parametrize(
    ("left", "component"),
    [
        (["model.layers.*.self_attn"], "attention"),
        (["re:.*self_attn.*"], "attention"),
        (["re:.*?layers.*?self_attn.*?[qkvo]_proj.*?"], "attention"),
        ([r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"], "mlp"),
        ([f"model.layers.{i}.self_attn.{p}_proj" for i in range(32) for p in "qkvo"], "attention"),
        ([f"language_model.model.layers.{i}.mlp*" for i in range(32)], "mlp"),
    ],
)
def test_modules_left_in_16_bit(read, left, component):
    precision, _ = quantized(read, {"quant_method": "fp8", "modules_to_not_convert": left})
    assert precision.byte_of(component) == 2
    assert {precision.byte_of(c) for c in ("attention", "mlp")} == {1, 2}


def test_a_head_that_nobody_left_out_is_quantized(read):
    """compressed-tensors names what it leaves alone; a head that is not among it takes the narrow format."""
    group = {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int"}, "input_activations": None}
    of = {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}}
    for ignored, size in (([], 1), (["lm_head"], 2), (["language_model.lm_head"], 2)):
        precision, _ = quantized(read, of | {"ignore": ignored})
        assert precision.byte_of("head") == size
        assert (precision.byte_of("embedding"), precision.byte_of("router"), precision.byte_of("mlp")) == (2, 2, 1)


def test_part_of_a_component_may_be_left_out(read):
    precision, _ = quantized(read, {"quant_method": "fp8", "modules_to_not_convert": ["o_proj"]})
    assert precision.byte_of("attention") == pytest.approx(1 + 4096 / (2 * 4096 + 2 * 1024))
    one_layer = [f"model.layers.7.self_attn.{p}_proj" for p in "qkvo"]
    precision, _ = quantized(read, {"quant_method": "fp8", "modules_to_not_convert": one_layer})
    assert precision.byte_of("attention") == pytest.approx(1 + 1 / 32)


def test_precision_may_stand_in_a_file_beside(tmp_path):
    """Some releases state their format only in hf_quant_config.json (huggingface.co/nvidia)."""
    beside = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    for name, companion in (("config.json", "hf_quant_config.json"), ("x.json", "x.hf_quant_config.json")):
        (tmp_path / name).write_text(json.dumps(LLAMA))
        assert model_config.read(tmp_path / name).precision.weights == "bf16"
        (tmp_path / companion).write_text(json.dumps(beside))
        precision = model_config.read(tmp_path / name).precision
        assert (precision.weights, precision.kv, precision.byte_per_kv) == ("fp8", "fp8", 1)


def test_bytes_of_a_weight_by_format():
    """Scales included: int4 has 20 bits per group of 128, MXFP4 8 per 32, NVFP4 8 per 16."""
    sizes = {name: Precision.of(name).byte_per_weight for name in WEIGHT_FORMATS}
    assert sizes == {
        "bf16": 2,
        "fp8": 1,
        "int8": 1,
        "int4": (4 * 128 + 20) / 128 / 8,
        "mxfp4": (4 * 32 + 8) / 32 / 8,
        "nvfp4": (4 * 16 + 8) / 16 / 8,
    }
    assert {name: Precision.of(kv=name).byte_per_kv for name in ("bf16", "fp8", "nvfp4")} == {
        "bf16": 2,
        "fp8": 1,
        "nvfp4": 0.5625,
    }
    assert {name for name in WEIGHT_FORMATS if Precision.of(name).compute == "bf16"} == {"bf16", "int4", "mxfp4"}


def test_formats_of_the_command_line_are_those_of_the_records():
    from analysis.cli import DTYPES

    assert list(WEIGHT_FORMATS) == list(KV_FORMATS) == DTYPES
    for number_format in DTYPES:
        assert Precision.of(number_format, kv=number_format).byte_per_weight <= 2
    with pytest.raises(InputError, match="weights: got 'fp32'"):
        Precision.of("fp32")
    with pytest.raises(InputError, match="kv: got 'int3'"):
        Precision.of(kv="int3")


# --- refusals


@pytest.mark.parametrize(
    ("content", "key", "value"),
    [
        *((without(LLAMA, key), key, "nothing") for key in LLAMA if key != "num_key_value_heads"),
        *((LLAMA | {key: "many"}, key, "'many'") for key in LLAMA if key != "model_type"),
        *((LLAMA | {key: wrong}, key, str(wrong)) for key in ("num_hidden_layers", "vocab_size")
          for wrong in (0, -1, 1.5, True, [32], 10**30)),
        (LLAMA | {"num_key_value_heads": 7}, "num_key_value_heads", "7"),
        (LLAMA | {"num_attention_heads": 33, "num_key_value_heads": 3}, "num_attention_heads", "33"),
        (LLAMA | {"num_hidden_layers": 10**9}, "num_hidden_layers", "1000000000"),
        (without(MIXTRAL, "num_experts_per_tok"), "num_experts_per_tok", "nothing"),
        (MIXTRAL | {"num_experts_per_tok": 9}, "num_experts_per_tok", "9"),
        (MIXTRAL | {"num_experts_per_tok": 0}, "num_experts_per_tok", "0"),
        (MIXTRAL | {"num_experts": 16}, "num_experts", "16"),
        (without(MIXTRAL, "num_local_experts"), "num_local_experts", "nothing"),
        (LLAMA | {"num_experts": 8}, "num_experts", "8"),
        (without(SMALL_MLA, "v_head_dim"), "v_head_dim", "nothing"),
        (SMALL_MLA | {"qk_head_dim": 13}, "qk_head_dim", "13"),
        (without(LLAMA | {"model_type": "mistral"}, "num_key_value_heads"), "num_key_value_heads", "nothing"),
        (OLMO, "layer_types", "nothing"),
        (OLMO | {"layer_types": ["full_attention"]}, "layer_types", "1 entries"),
        (LLAMA | {"layer_types": ["linear_attention"] * 32}, "layer_types", "'linear_attention'"),
        (LLAMA | {"layer_types": ["sliding_attention"] * 32}, "sliding_window", "nothing"),
        (LLAMA | {"sliding_window": 4096}, "sliding_window", "4096"),
        (LLAMA | {"tie_word_embeddings": "no"}, "tie_word_embeddings", "'no'"),
        ({"text_config": LLAMA | {"tie_word_embeddings": True}, "tie_word_embeddings": False},
         "text_config.tie_word_embeddings", "True"),
        (LLAMA | {"mamba_d_state": 128}, "mamba_d_state", "128"),
        (LLAMA | {"per_layer_projection_dim": 256}, "per_layer_projection_dim", "256"),
        (LLAMA | {"num_kv_shared_layers": 4}, "num_kv_shared_layers", "4"),
        (LLAMA | {"quantization_config": 4}, "quantization_config", "4"),
    ],
)  # fmt: skip
def test_the_refused_key_is_named(refusal, content, key, value):
    """File, key, value and what was expected, in one line."""
    line = refusal(content)
    assert line.startswith("config.json, key ")
    assert f"{key}: got {value}" in line
    assert ", expected " in line


@pytest.mark.parametrize(
    ("config", "key", "value"),
    [
        ({"quant_method": "aqlm"}, "quant_method", "'aqlm'"),
        ({}, "quant_method", "nothing"),
        ({"quant_method": "gptq"}, "bits", "nothing"),
        ({"quant_method": "gptq", "bits": 3}, "bits", "3"),
        ({"quant_method": "fp8", "weight_block_size": [0, 1]}, "weight_block_size", "[0, 1]"),
        ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, "modules_to_not_convert", "'lm_head'"),
        ({"quant_method": "fp8", "ignore": [3]}, "ignore", "3"),
        ({"quant_method": "fp8", "ignore": ["re:("]}, "ignore", "'re:('"),
        ({"quant_method": "fp8", "ignore": ["re:(a+)+$"]}, "ignore", "'re:(a+)+$'"),
        ({"quant_method": "fp8", "ignore": ["re:" + ".?" * 60 + "#"]}, "ignore", "'re:.?.?"),
        ({"quant_method": "fp8", "ignore": ["re:" + "(.|.)" * 30 + "#"]}, "ignore", "'re:(.|.)"),
        ({"quant_method": "fp8", "ignore": ["re:" + "a" * 200]}, "ignore", "'re:aaa"),
        ({"quant_method": "fp8", "ignore": ["a*"] * 600}, "ignore", "600 patterns"),
        ({"quant_method": "modelopt", "quant_algo": "INT3"}, "quant_algo", "'INT3'"),
        ({"quant_method": "compressed-tensors"}, "config_groups", "nothing"),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": {}, "b": {}}}, "config_groups", "{'a': {}"),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": {"targets": ["x"]}}}, "a.targets", "['x']"),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": {}}}, "a.weights", "nothing"),
    ],
)
def test_a_quantization_that_is_not_understood_is_named(refusal, config, key, value):
    line = refusal(LLAMA | {"quantization_config": config})
    assert line.startswith("config.json, key quantization_config.")
    assert f"{key}: got {value}" in line


@pytest.mark.parametrize("model_type", ["nemotron_h", "qwen3_next", "mamba2", "jamba", "kimi_linear", "brand_new"])
def test_what_cannot_be_sized_is_refused_by_name(refusal, model_type):
    assert f"key model_type: got '{model_type}'" in refusal(LLAMA | {"model_type": model_type})


@given(
    st.sampled_from(sorted(LLAMA)),
    st.one_of(st.none(), st.booleans(), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=2)),
)
def test_no_value_of_another_kind_is_taken_for_a_dimension(tmp_path_factory, key, value):
    """Whatever stands where a number should: the same size as without it, or one line."""
    path = tmp_path_factory.mktemp("any") / "config.json"
    path.write_text(json.dumps(LLAMA | {key: value}))
    if (key, value) == ("num_key_value_heads", None):
        return
    with pytest.raises(InputError, match=r"config\.json, key "):
        model_config.read(path)


JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 300), st.floats(), st.text(max_size=6)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
REAL = {name: json.loads((model_config.SHIPPED / f"{name}.json").read_text()) for name in model_config.names()}


@given(st.data(), st.sampled_from(sorted(REAL)), JUNK)
def test_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path_factory, data, name, junk):
    """One value of a real file replaced by anything, at any depth: an answer or one line, never another exception."""
    content = json.loads(json.dumps(REAL[name]))
    place = content
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = junk
    path = tmp_path_factory.mktemp("damaged") / "config.json"
    path.write_text(json.dumps(content))
    try:
        answer = f"{params_total(model_config.read(path).architecture)}"
    except InputError as refusal:
        answer = str(refusal)
    assert len(answer.splitlines()) == 1


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "an empty file"),
        (b" \n", "an empty file"),
        (b"[]", "a list"),
        (b"3", "a number"),
        (b'"text"', "a text"),
        (b"null", "null"),
        (b"true", "a truth value"),
        (b"{", "line 1"),
        (b"\x80\x04\x95\x00\xff", "byte 0x80"),
        (b"\x7fELF\x02\x01\x01\x00" + bytes(64), "line 1"),
        (b'{"a": 1, "a": 2}', "the key twice"),
        (b'{"a": ' + b"9" * 5000 + b"}", "limit"),
        (b"[" * 10_000 + b"]" * 10_000, "nesting"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nesting"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "nesting"),
        (b'{"model_type": "llama", "hidden_size": NaN}', "hidden_layers"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else None,
)
def test_a_file_that_is_no_configuration_gets_one_line(tmp_path, raw, says):
    path = tmp_path / "config.json"
    path.write_bytes(raw)
    with pytest.raises(InputError) as caught:
        model_config.read(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert says in str(caught.value)


def test_a_huge_file_is_refused_before_it_is_parsed(tmp_path):
    """200 MB: read no further than the limit, so memory stays small. The file is sparse, so the disk does too."""
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.write(b"{")
        file.truncate(200 * 10**6)
    code = (
        "import resource, sys\n"
        "from analysis.inputs import InputError\n"
        "from analysis.reference.model_config import read\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: read(sys.argv[1])\n"
        "except InputError as refusal: print(refusal)\n"
        "grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "assert grown < 50_000, grown\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}: got more than 4,194,304 bytes, expected a readable config.json\n"


def test_a_missing_file_or_a_folder_gets_one_line(tmp_path):
    for path in (tmp_path, tmp_path / "nothing.json"):
        with pytest.raises(InputError, match=r"expected a readable config\.json"):
            model_config.read(path)


def test_an_unknown_name_lists_the_nearest():
    with pytest.raises(InputError, match=r"got 'llama-3-70b', expected a shipped architecture \(llama-3.\d-70b"):
        model_config.shipped("llama-3-70b")


def test_a_path_is_told_from_a_name(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(LLAMA))
    assert model_config.named(str(path)).architecture.name == "mine"
    assert model_config.named("gpt-oss-20b").architecture.n_layers == 24
