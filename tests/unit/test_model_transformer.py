"""Bytes and FLOP of a transformer: agreement with the derivations, published cases, and what must always hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Rational

from analysis.inputs import InputError
from analysis.model import transformer as model
from analysis.reference.model_config import names, shipped
from analysis.reference.specs import Architecture, Attention, Indexer, LayerGroup, Mlp, Precision
from analysis.symbolic import transformer as derive
from analysis.symbols import (
    ATTENTION_FLOP,
    CONTEXT,
    EXPERTS,
    FFN,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    KAPPA,
    KV_BYTE,
    KV_HEADS,
    LATENT_RANK,
    LAYERS,
    MEMORY,
    N_MATMUL,
    N_TOTAL,
    POSITIONS,
    RIDGE,
    ROPE_DIM,
    SEQ_POSITIONS,
    SEQUENCES,
    SKEW,
    STREAMED,
    TOP_K,
    VOCAB,
    WINDOW,
    with_constants,
)
from analysis.units import BYTE_PER_GIB

approx = pytest.approx
BF16 = Precision.of("bf16")
H100_RIDGE = 989.5e12 / 3.35e12


def dense(layers=4, hidden=64, heads=8, kv_heads=2, head_dim=16, ffn=96, vocab=500, tied=False, **attention):
    kind = Attention(heads, kv_heads, head_dim, head_dim, **attention)
    return Architecture("x", hidden, vocab, (LayerGroup(layers, kind, Mlp(ffn), 2 * hidden),), tied, hidden)


def symbols_of(layers=4, hidden=64, heads=8, kv_heads=2, head_dim=16, ffn=96, vocab=500):
    return {
        LAYERS: layers,
        HIDDEN: hidden,
        HEADS: heads,
        KV_HEADS: kv_heads,
        HEAD_DIM: head_dim,
        FFN: ffn,
        VOCAB: vocab,
    }


def exact(expression, values):
    return float(with_constants(expression).subs(values))


shapes = st.fixed_dictionaries(
    {
        "layers": st.integers(1, 100),
        "hidden": st.integers(1, 20_000),
        "kv_heads": st.integers(1, 16),
        "heads": st.integers(1, 16),
        "head_dim": st.integers(1, 512),
        "ffn": st.integers(1, 60_000),
        "vocab": st.integers(1, 300_000),
    }
).map(lambda shape: shape | {"heads": shape["heads"] * shape["kv_heads"]})


# --- agreement with the derivations


@given(shapes)
def test_parameters_agree_with_the_derivation(shape):
    architecture, values = dense(**shape), symbols_of(**shape)
    assert model.params_total(architecture) == with_constants(derive.params_total()).subs(values)
    assert model.params_matmul(architecture) == with_constants(derive.params_matmul()).subs(values)
    assert model.params_active(architecture) == model.params_total(architecture)


@given(shapes, st.sampled_from([2.0, 1.0, 0.5]))
def test_cache_agrees_with_the_derivation(shape, size):
    precision = replace(BF16, byte_per_kv=size)
    expected = derive.kv_bytes_per_token().subs(symbols_of(**shape) | {KV_BYTE: Rational(size)})
    assert model.kv_bytes_per_token(dense(**shape), precision) == float(expected)


@given(shapes, st.integers(0, 10**6), st.integers(1, 10**5))
def test_arithmetic_agrees_with_the_derivation(shape, context, positions):
    architecture, values = dense(**shape), symbols_of(**shape)
    pass_of = {CONTEXT: context, SEQ_POSITIONS: positions}
    per_token = with_constants(derive.attention_flop_per_token_seen()).subs(values)
    seen = with_constants(derive.causal_tokens_seen()).subs(pass_of)
    found = model.attention_flop(architecture, context_tokens=context, positions=positions)
    assert found == approx(float(per_token * seen), rel=1e-12)
    n_matmul = derive.params_matmul().subs(values)
    expected = with_constants(derive.matmul_flop()).subs({N_MATMUL: n_matmul, SEQ_POSITIONS: positions})
    assert model.matmul_flop(architecture, positions=positions) == approx(float(expected), rel=1e-12)


@pytest.mark.parametrize(("m", "e", "k"), [(1, 128, 8), (16, 256, 8), (300, 8, 2), (5, 8, 8)])
def test_expert_union_agrees_with_the_derivation(m, e, k):
    expected = exact(derive.expert_union(), {POSITIONS: m, EXPERTS: e, TOP_K: k})
    assert model.expert_union(m, experts=e, top_k=k) == approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("m", "e", "k", "skew"), [(1, 128, 8, Rational(1, 2)), (32, 256, 8, Rational(3, 10)), (7, 8, 2, 0), (9, 64, 4, 1)]
)
def test_the_union_of_skewed_experts_agrees_with_the_derivation(m, e, k, skew):
    expected = exact(derive.expert_union_skewed(), {POSITIONS: m, EXPERTS: e, TOP_K: k, SKEW: skew})
    assert model.expert_union(m, experts=e, top_k=k, skew=float(skew)) == approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n", "w", "skew"), [(8, 4, Rational(1, 2)), (1, 32, Rational(3, 10)), (6, 1, 1), (3, 5, 0)])
def test_the_union_over_texts_agrees_with_the_derivation(n, w, skew):
    values = {SEQUENCES: n, SEQ_POSITIONS: w, EXPERTS: 128, TOP_K: 8, SKEW: skew}
    expected = exact(derive.expert_union_of_texts(), values)
    found = model.expert_union(w, experts=128, top_k=8, skew=float(skew), sequences=n)
    assert found == approx(expected, rel=1e-12)


def test_parts_of_a_pass_share_one_reading():
    """One kind alone is itself; two kinds read what either uses, counted once."""
    of = shipped("gpt-oss-20b").architecture, BF16
    alone = model.weight_bytes_of_parts(*of, [(3, 4)], skew=0.4)
    assert alone == approx(model.weight_bytes_streamed(*of, positions=4, sequences=3, skew=0.4))
    evenly = model.weight_bytes_of_parts(*of, [(3, 4), (2, 1)], skew=0)
    assert evenly == approx(model.weight_bytes_streamed(*of, positions=14))


def test_32_positions_use_163_of_256_experts_at_top_8():
    """By hand: 256 (1 - (31/32)^32) = 163.3; the report of LLaDA 2.2 caps this pool at 48."""
    assert 256 * model.expert_union(32, experts=256, top_k=8) == approx(163.3, abs=0.05)


def test_skew_lowers_the_union_and_not_what_one_position_reads():
    skews = np.linspace(0, 1, 11)
    many = model.expert_union(32, experts=256, top_k=8, skew=skews)
    assert np.all(np.diff(many) < 0)
    assert many[-1] == approx(8 / 256)
    assert model.expert_union(1, experts=256, top_k=8, skew=skews) == approx(8 / 256)
    assert model.expert_union(0, experts=256, top_k=8, skew=skews) == approx(0)


def test_the_union_of_skewed_experts_agrees_with_drawing_them():
    """10,000 passes of 16 positions over 32 experts: all choose two, three in ten of them the favourites."""
    rng = np.random.default_rng(7)
    chance = np.where(np.arange(32) < 2, 2 / 32 + 0.3 * (1 - 2 / 32), 0.7 * 2 / 32)
    used = (rng.random((10_000, 16, 32)) < chance).any(axis=1)
    assert model.expert_union(16, experts=32, top_k=2, skew=0.3) == approx(used.mean(), abs=0.002)


def test_the_skew_of_two_positions_gives_back_what_they_share():
    """Two positions read 2 k - o k experts."""
    for common in (0.0625, 0.257, 0.9, 1.0):
        skew = model.skew_of(common, experts=64, top_k=4)
        assert model.expert_union(2, experts=64, top_k=4, skew=skew) * 64 == approx(2 * 4 - common * 4)


def test_a_pass_of_a_skewed_replica_reads_less():
    architecture, precision = shipped("gpt-oss-20b").architecture, BF16
    skewed = model.pass_work(architecture, precision, batch=8, positions=4, context_tokens=0, expert_skew=0.5)
    even = model.pass_work(architecture, precision, batch=8, positions=4, context_tokens=0)
    assert skewed.weight_bytes < even.weight_bytes
    assert skewed.matmul_flop == even.matmul_flop
    found = model.weight_bytes_streamed(architecture, precision, positions=4, skew=0.5, sequences=8)
    assert skewed.weight_bytes == approx(found)
    one_each = model.pass_work(architecture, precision, batch=8, context_tokens=0, expert_skew=0.5)
    assert one_each.weight_bytes == approx(
        model.pass_work(architecture, precision, batch=8, context_tokens=0).weight_bytes
    )
    dense_model = shipped("llama-3.1-8b").architecture
    assert (
        model.pass_work(dense_model, precision, batch=8, context_tokens=0, expert_skew=0.5).weight_bytes
        == model.pass_work(dense_model, precision, batch=8, context_tokens=0).weight_bytes
    )


@pytest.mark.parametrize(
    ("context", "positions", "window"), [(0, 1, 8), (0, 20, 8), (5, 9, 8), (100, 1, 8), (3, 2, 90)]
)
def test_a_window_agrees_with_the_derivation_and_with_counting(context, positions, window):
    architecture = dense(window=window)
    values = symbols_of() | {CONTEXT: context, SEQ_POSITIONS: positions, WINDOW: window, KV_BYTE: 2}
    expected = exact(derive.windowed_tokens_seen() * derive.attention_flop_per_token_seen(), values)
    assert model.attention_flop(architecture, context_tokens=context, positions=positions) == approx(expected)
    counted = sum(min(context + i, window) for i in range(1, positions + 1))
    assert expected == 4 * 4 * 8 * 16 * counted
    needed = model.kv_bytes_per_sequence(architecture, BF16, context_tokens=context)
    assert needed == approx(exact(derive.kv_bytes_windowed(), values) * 4)


def test_latent_attention_agrees_with_the_derivation():
    architecture = shipped("deepseek-v3").architecture
    values = {LAYERS: 61, HEADS: 128, LATENT_RANK: 512, ROPE_DIM: 64, KV_BYTE: 2}
    assert model.kv_bytes_per_token(architecture, BF16) == exact(derive.latent_bytes_per_token(), values) == 70_272
    absorbed = model.attention_flop(architecture, context_tokens=4095, form="absorbed")
    assert absorbed == approx(exact(derive.absorbed_flop_per_token_seen(), values) * 4096)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "mixtral-8x7b", "deepseek-v3"])
def test_limits_of_the_context_agree_with_the_derivation(name):
    architecture = shipped(name).architecture
    per_token_seen = model.attention_flop(architecture, context_tokens=1, positions=1, form="absorbed") / 2
    weights = model.weight_bytes(architecture, BF16)
    streamed = model.weight_bytes_streamed(architecture, BF16, positions=1e7)
    values = {
        N_MATMUL: model.params_matmul(architecture),
        N_TOTAL: model.params_active(architecture),
        KAPPA: Rational(model.kv_bytes_per_token(architecture, BF16)),
        ATTENTION_FLOP: Rational(per_token_seen),
        RIDGE: Rational(600),
        MEMORY: Rational(weights),
        STREAMED: Rational(streamed),
    }
    asked = {"ridge_flop_per_byte": 600.0}
    assert model.context_limit(architecture, BF16, **asked) == approx(exact(derive.context_limit(), values))
    assert model.context_limit_folk(architecture, BF16, **asked) == approx(exact(derive.folk_context_limit(), values))
    in_memory = model.context_limit_in_memory(architecture, BF16, memory_byte=2 * weights, **asked)
    assert in_memory == approx(exact(derive.context_limit_in_memory(), values))


# --- published cases; the sources are public reports with the right answer


def test_windowed_layers_still_store_each_token():
    """gpt-oss-120b: 36 layers x 8 heads x 64 x 2 x 2 bytes; half of it drops the windowed layers.

    github.com/alvarobartt/hf-mem/issues/60: 5.38 GiB hold about 78,350 tokens, the engine's log says 78,384.
    """
    per_token = model.kv_bytes_per_token(shipped("gpt-oss-120b").architecture, BF16)
    assert per_token == 73_728
    assert 5.38 * BYTE_PER_GIB / per_token == approx(78_384, rel=1e-3)


def test_the_policy_of_a_hybrid_cache_is_named():
    """gpt-oss-20b, 8,192 tokens, batch 32: 12.00 GiB reserved, 6.09 needed (github.com/alvarobartt/hf-mem/pull/70)."""
    architecture = shipped("gpt-oss-20b").architecture
    held = {
        policy: 32 * model.kv_bytes_per_sequence(architecture, BF16, context_tokens=8192, policy=policy) / BYTE_PER_GIB
        for policy in ("reserved", "needed", "read")
    }
    assert held["reserved"] == approx(12.00, abs=0.005)
    assert held["needed"] == held["read"] == approx(6.09, abs=0.005)


def test_capacity_counts_all_experts_and_traffic_the_used_ones():
    """125.1 billion, 10 active, 0.58 bytes each: 72.6 GB to hold, not 5.8 (github.com/AlexsJones/llmfit/issues/230).

    A model of that shape: what it holds follows the total, what a token reads the active parameters.
    """
    experts = Mlp(width=1000, experts=100, top_k=5)
    kind = Attention(8, 8, 128, 128)
    sparse = Architecture("x", 1024, 1000, (LayerGroup(100, kind, experts, 0),), tied=False, final_norm_params=0)
    total, active = model.params_total(sparse), model.params_active(sparse)
    everywhere = Precision("int4", "bf16", 0.58, 2.0, "bf16", tuple((c, 1.0) for c in sparse.components))
    assert model.weight_bytes(sparse, everywhere) == approx(0.58 * total)
    read = model.weight_bytes_streamed(sparse, everywhere, positions=1)
    assert read == approx(0.58 * (active - sparse.components["embedding"]))
    assert read < 0.1 * model.weight_bytes(sparse, everywhere)
    assert approx(72.6, rel=0.01) == 125.1 * 0.58


def test_tied_and_untied_heads_cost_the_same_arithmetic():
    """github.com/huggingface/trl/pull/6731: 2 V h for the head either way, nothing for the input embedding."""
    tied, untied = dense(tied=True), dense(tied=False)
    assert model.matmul_flop(tied, positions=1) == model.matmul_flop(untied, positions=1)
    assert model.params_total(untied) - model.params_total(tied) == 500 * 64
    read = [model.weight_bytes_streamed(a, BF16, positions=1) for a in (tied, untied)]
    assert read[0] == read[1] == 2 * (model.params_total(tied))
    head = model.matmul_flop(tied, positions=1) - model.matmul_flop(tied, positions=1, logit_positions=0)
    assert head == 2 * 500 * 64


@given(shapes, st.integers(2, 8))
def test_the_group_is_never_hard_coded(shape, group):
    """A calculator that took an eighth of the width for K and V was right for 70B only.

    github.com/tugot17/tokenomics-from-first-principles: 7,896,043,520 for Llama-3.1-8B instead of 8,030,261,248.
    """
    many, few = (
        dense(**shape | {"kv_heads": shape["kv_heads"] * group, "heads": shape["heads"] * group}),
        dense(**shape | {"heads": shape["heads"] * group}),
    )
    saved = 2 * shape["layers"] * shape["hidden"] * shape["head_dim"] * shape["kv_heads"] * (group - 1)
    assert model.params_total(many) - model.params_total(few) == saved
    assert model.kv_bytes_per_token(many, BF16) == group * model.kv_bytes_per_token(few, BF16)
    assert model.attention_flop(many, context_tokens=9) == model.attention_flop(few, context_tokens=9)


def test_the_count_that_was_wrong_for_8b():
    assert model.params_total(shipped("llama-3.1-8b").architecture) == 8_030_261_248


@pytest.mark.parametrize("name", names())
def test_no_format_takes_more_bits_than_it_says(name):
    """By count a 16-bit model has 16.0 bits per parameter; a headline count gave 16.44.

    github.com/0xBakeer/inference-atlas/pull/153. Narrow formats lie between theirs and 16.
    """
    architecture = shipped(name).architecture
    total = model.params_total(architecture)
    assert 8 * model.weight_bytes(architecture, BF16) / total == 16
    for weights in ("fp8", "int8", "int4", "mxfp4", "nvfp4"):
        precision = Precision.of(weights)
        bits = 8 * model.weight_bytes(architecture, precision) / total
        assert 8 * precision.byte_per_weight < bits < 16


def test_llama_3_3_70b_in_16_bit():
    """70,553,706,496 parameters, 141,107,412,992 bytes (tensoreconomics.com, first principles)."""
    architecture = shipped("llama-3.3-70b").architecture
    assert model.params_total(architecture) == 70_553_706_496
    assert model.weight_bytes(architecture, BF16) == 141_107_412_992


def test_scaling_book_sizes():
    """Quizzes of github.com/jax-ml/scaling-book: Llama-3-70B in int8 keeps 163,840 bytes per token.

    32 sequences of 8,192 tokens and 70e9 bytes of weights are 112.9 GB; read at 8 x 8.1e11 byte/s, 17.4 ms.
    The other quiz has 26e9 bytes and 1.34e9 per sequence: 4.17 ms at batch 1, 52.99 at 240 over 8 x 8.2e11.
    """
    cache = Precision.of("int8", kv="int8")
    architecture = shipped("llama-3.1-70b").architecture
    assert model.kv_bytes_per_token(architecture, cache) == 163_840
    held = 70e9 + 32 * model.kv_bytes_per_sequence(architecture, cache, context_tokens=8192)
    assert held / 1e9 == approx(112.9, abs=0.05)
    assert held / (8 * 8.1e11) * 1e3 == approx(17.4, abs=0.05)
    # 1.34e9 bytes over 8,192 tokens is that same cache: 163,840 x 8,192 = 1.342e9
    per_sequence = model.kv_bytes_per_sequence(architecture, cache, context_tokens=8192)
    assert per_sequence == approx(1.34e9, rel=2e-3)
    for batch, milliseconds in ((1, 4.17), (8, 5.60), (16, 7.23), (32, 10.50), (64, 17.04), (240, 52.99)):
        assert (26e9 + batch * per_sequence) / (8 * 8.2e11) * 1e3 == approx(milliseconds, rel=2e-3)


def test_llama_2_70b_primer():
    """cursor.so, llama inference: 140e9 FLOP per token and 140.66e9 bytes per step at 2,048 tokens.

    With its round 70e9 parameters; ours are 68.98e9, of which 0.26e9 are the input embedding.
    """
    architecture = shipped("llama-2-70b").architecture
    cache = model.kv_bytes_per_sequence(architecture, BF16, context_tokens=2048)
    assert (2 * 70e9 + cache) / 1e9 == approx(140.66, rel=1e-3)
    assert model.kv_bytes_per_token(architecture, BF16) == 320 * 1024
    assert model.matmul_flop(architecture, positions=1) == 2 * (68_976_648_192 - 32_000 * 8_192 - 161 * 8_192)
    assert model.matmul_flop(architecture, positions=1) == approx(140e9, rel=0.02)


@pytest.mark.parametrize(("name", "ours", "folk"), [("llama-3.1-8b", 393, 415), ("llama-3.1-70b", 1476, 1458)])
def test_context_limit_on_h100(name, ours, folk):
    """By hand for 8B: 2 x 7.505e9 / (131,072 x (295.4 - 4)); folk: 2 x 8.030e9 / (131,072 x 295.4)."""
    architecture = shipped(name).architecture
    assert round(model.context_limit(architecture, BF16, ridge_flop_per_byte=H100_RIDGE)) == ours
    assert round(model.context_limit_folk(architecture, BF16, ridge_flop_per_byte=H100_RIDGE)) == folk


# --- what must always hold

passes = st.tuples(st.integers(1, 512), st.integers(0, 200_000), st.integers(1, 256))
models = st.sampled_from(names())


@given(models, passes)
def test_arrays_give_what_scalars_give(name, single):
    architecture, precision = (config := shipped(name)).architecture, config.precision
    n, s, w = single
    alone = model.pass_work(architecture, precision, batch=n, context_tokens=s, positions=w)
    many = model.pass_work(architecture, precision, batch=[n, 1], context_tokens=[[s], [7]], positions=w)
    for key in ("weight_bytes", "kv_read_bytes", "kv_written_bytes", "matmul_flop", "attention_flop", "logit_bytes"):
        assert isinstance(getattr(alone, key), float)
        assert getattr(many, key).shape == (2, 2)
        assert getattr(many, key)[0, 0] == getattr(alone, key)
    assert alone.flop == alone.matmul_flop + alone.attention_flop
    assert alone.intensity_flop_per_byte == alone.flop / alone.byte


@given(models, passes)
def test_more_work_never_costs_less(name, single):
    architecture, precision = (config := shipped(name)).architecture, config.precision
    n, s, w = single
    base, *more = (
        model.pass_work(architecture, precision, batch=n + dn, context_tokens=s + ds, positions=w + dw)
        for dn, ds, dw in ((0, 0, 0), (1, 0, 0), (0, 0, 1), (0, 1, 0))
    )
    grows = ("weight_bytes", "matmul_flop", "logit_bytes", "kv_written_bytes")
    for other in more:
        assert all(getattr(other, key) >= getattr(base, key) * (1 - 1e-12) for key in grows)
        # a chunk that ends lets go of what it saw, so only other layers grow with the context
        if not any(group.attention and group.attention.chunked for group in architecture.layers):
            assert other.kv_read_bytes >= base.kv_read_bytes
            assert other.attention_flop >= base.attention_flop * (1 - 1e-12)


@given(models, st.integers(1, 4096))
def test_traffic_lies_between_one_token_and_all_weights(name, positions):
    architecture, precision = (config := shipped(name)).architecture, config.precision
    held = model.weight_bytes(architecture, precision)
    one, read = (model.weight_bytes_streamed(architecture, precision, positions=m) for m in (1, positions))
    assert one <= read <= held
    if not any(group.mlp and group.mlp.experts for group in architecture.layers):
        looked_up = 0 if architecture.tied else architecture.components["embedding"] * precision.byte_of("embedding")
        assert read == approx(held - looked_up, rel=1e-12)


@given(models, st.integers(1, 60_000), st.integers(1, 60_000))
def test_a_prompt_in_chunks_costs_what_the_whole_costs(name, first, second):
    """Chunked prefill sees the same pairs; only latent keys and values are made again, so one form is compared."""
    architecture = shipped(name).architecture
    form = {"form": "absorbed"}
    whole = model.attention_flop(architecture, context_tokens=0, positions=first + second, **form)
    parts = model.attention_flop(architecture, context_tokens=0, positions=first, **form)
    parts += model.attention_flop(architecture, context_tokens=first, positions=second, **form)
    assert parts == approx(whole, rel=1e-9)


@given(models, st.integers(0, 200_000))
def test_policies_of_the_cache_are_ordered(name, context):
    architecture = shipped(name).architecture
    read, needed, reserved = (
        model.kv_bytes_per_sequence(architecture, BF16, context_tokens=context, policy=policy)
        for policy in ("read", "needed", "reserved")
    )
    assert read <= needed <= reserved == context * model.kv_bytes_per_token(architecture, BF16)


@given(models, st.sampled_from(["fp8", "int8", "int4", "mxfp4", "nvfp4"]))
def test_the_cache_scales_with_its_format_and_nothing_else_does(name, kv):
    architecture, narrow = shipped(name).architecture, Precision.of(kv=kv)
    ratio = model.kv_bytes_per_token(architecture, narrow) / model.kv_bytes_per_token(architecture, BF16)
    assert ratio == approx(narrow.byte_per_kv / 2)
    assert model.weight_bytes(architecture, narrow) == model.weight_bytes(architecture, BF16)


@given(models, st.floats(50, 2000), st.floats(1.05, 3))
def test_context_limits_shrink_with_the_ridge_and_grow_with_memory(name, ridge, factor):
    architecture, precision = (config := shipped(name)).architecture, config.precision
    weights = model.weight_bytes(architecture, precision)

    def limits(r, m):
        return (
            model.context_limit(architecture, precision, ridge_flop_per_byte=r),
            model.context_limit_in_memory(architecture, precision, ridge_flop_per_byte=r, memory_byte=m),
        )

    free, inside = limits(ridge, 1.5 * weights)
    assert inside <= free
    assert limits(ridge * factor, 1.5 * weights)[0] <= free
    assert limits(ridge, 1.5 * factor * weights)[1] >= inside
    assert limits(ridge, 0.9 * weights)[1] == 0


@given(models, st.floats(100, 2000))
def test_at_the_context_limit_the_largest_batches_meet_the_ridge(name, ridge):
    """The limit by its meaning: intensity of an enormous batch is above the ridge before it and below after it."""
    architecture, precision = (config := shipped(name)).architecture, config.precision
    limit = model.context_limit(architecture, precision, ridge_flop_per_byte=ridge)
    if not np.isfinite(limit) or limit < 100 or any(g.attention and g.attention.chunked for g in architecture.layers):
        return
    context = limit * np.array([0.9, 1.1])
    work = model.pass_work(architecture, precision, batch=1e12, context_tokens=context)
    absorbed = 1e12 * model.attention_flop(architecture, context_tokens=context, form="absorbed")
    below, above = (work.matmul_flop + absorbed) / work.byte
    assert below > ridge > above


# --- limits and shapes of single functions


def test_latent_attention_takes_the_cheaper_form():
    """Decode on the latent vectors, prefill on keys and values made of them."""
    architecture = shipped("deepseek-v3").architecture

    def flop(form, **of):
        return model.attention_flop(architecture, form=form, **of)

    decode, prefill = {"context_tokens": 4096, "positions": 1}, {"context_tokens": 0, "positions": 4096}
    assert flop("cheaper", **decode) == flop("absorbed", **decode) < 0.02 * flop("expanded", **decode)
    assert flop("cheaper", **prefill) == flop("expanded", **prefill) < 0.3 * flop("absorbed", **prefill)
    by_hand = 61 * 2 * 128 * (192 + 128) * 4096 * 4097 / 2
    assert flop("expanded", **prefill) == approx(by_hand)


def test_a_block_sees_itself_whole():
    architecture = dense()
    causal, block = (
        model.attention_flop(architecture, context_tokens=100, positions=32, causal=c) for c in (True, False)
    )
    assert block / causal == approx(32 * 132 / (32 * 100 + 32 * 33 / 2))
    assert model.attention_flop(architecture, context_tokens=0, positions=1, causal=False) == model.attention_flop(
        architecture, context_tokens=0, positions=1
    )


def test_prefill_makes_logits_once():
    """A prompt of 2,048 needs one row of logits; all of them would be 2 V h more for each other position."""
    architecture = shipped("llama-3.1-8b").architecture
    of = {"batch": 3, "context_tokens": 0, "positions": 2048}
    last, every = (model.pass_work(architecture, BF16, logits=logits, **of) for logits in ("last", "all"))
    assert every.matmul_flop - last.matmul_flop == 3 * 2047 * 2 * 128256 * 4096
    assert every.logit_bytes == 2048 * last.logit_bytes == 3 * 2048 * 4 * 128256
    assert last.kv_read_bytes == 0
    assert last.kv_written_bytes == 3 * 2048 * 131072


def test_a_chunk_starts_anew():
    """Layers that see chunks of 8 tokens: position 8 sees itself only."""
    architecture = dense(window=8, chunked=True)
    seen = [model.attention_flop(architecture, context_tokens=s) / (4 * 4 * 8 * 16) for s in (0, 6, 7, 8, 9)]
    assert seen == [1, 7, 8, 1, 2]
    read = [model.kv_bytes_per_sequence(architecture, BF16, context_tokens=s, policy="read") for s in (7, 8, 9)]
    assert read == [7 * 512, 0, 512]


def test_an_indexer_bounds_what_is_read_and_not_what_is_held():
    """DeepSeek-V3.2 reads 2,048 chosen tokens and every index key of 128 numbers; it must hold all."""
    architecture = shipped("deepseek-v3.2").architecture
    read, needed = (
        model.kv_bytes_per_sequence(architecture, BF16, context_tokens=100_000, policy=policy)
        for policy in ("read", "needed")
    )
    assert read == 61 * 2 * (2048 * 576 + 100_000 * 128)
    assert needed == 61 * 2 * 100_000 * (576 + 128)


@pytest.mark.parametrize(
    ("name", "gpus", "copies"),
    [
        ("llama-3.1-70b", 8, 1),
        ("llama-3.1-70b", 64, 8),
        ("qwen3-30b-a3b", 8, 2),
        ("falcon-7b", 1, 1),
        ("deepseek-v3", 8, 8),
        ("deepseek-v3.2", 8, 8),
        # windowed layers of 8 heads, full ones of 4, of 192 + 128 numbers each: 39 and 9 layers
        ("mimo-v2-flash", 8, (39 * 8 + 9 * 8) / (39 * 8 + 9 * 4)),
    ],
)
def test_cache_is_copied_where_gpus_outnumber_kv_heads(name, gpus, copies):
    assert model.kv_replication(shipped(name).architecture, tensor_parallel=gpus) == approx(copies)


@pytest.mark.parametrize(
    ("query", "kv", "gpus", "copies"), [(8, 8, 2, 1), (8, 4, 2, 1), (8, 2, 4, 2), (6, 2, 4, None), (8, 3, 2, None)]
)
def test_heads_are_split_among_gpus_or_gpus_among_heads(query, kv, gpus, copies):
    """Six query heads do not go into four, nor three KV heads into two."""
    architecture = dense(heads=query, kv_heads=kv)
    if copies is not None:
        assert model.kv_replication(architecture, tensor_parallel=gpus) == copies
        return
    with pytest.raises(InputError, match=rf"tensor_parallel: got {gpus}\.0"):
        model.kv_replication(architecture, tensor_parallel=gpus)


def test_every_gpu_holds_the_keys_of_an_indexer():
    """Two KV heads of 16 + 16 numbers on two GPUs are held once, 16 index numbers twice: 64 + 32 over 64 + 16."""
    architecture = dense(indexer=Indexer(heads=2, head_dim=16, keys=8))
    assert model.kv_replication(architecture, tensor_parallel=2) == approx(96 / 80)


def test_looking_at_what_is_cached_by_hand():
    """DeepSeek-V3 makes keys of 128 and values of 128 anew for each cached token; an indexer looks with two heads."""
    architecture = shipped("deepseek-v3").architecture
    found = model.attention_flop(architecture, context_tokens=4096, form="expanded")
    assert found == approx(61 * 2 * 128 * ((192 + 128) * 4097 + 512 * (128 + 128) * 4096))
    indexed = dense(indexer=Indexer(heads=2, head_dim=16, keys=8))
    assert model.attention_flop(indexed, context_tokens=0) == 4 * (2 * 8 * (16 + 16) + 2 * 2 * 16)


def test_layers_without_a_cache_have_nothing_to_copy():
    attention = dense().layers[0]
    bare = replace(attention, attention=None)
    mixed = replace(dense(), layers=(bare, attention))
    assert model.kv_replication(mixed, tensor_parallel=[1, 2, 4]).tolist() == [1, 1, 2]
    none = replace(dense(), layers=(bare,))
    assert model.kv_replication(none, tensor_parallel=[1, 2, 4]).tolist() == [1, 1, 1]
    assert model.context_limit_folk(none, BF16, ridge_flop_per_byte=[100, 300]).tolist() == [np.inf, np.inf]
    held = model.weight_bytes(none, BF16)
    fits = model.max_sequences(none, BF16, memory_byte=held * np.array([0.5, 1.0, 2.0]), context_tokens=100)
    assert fits.tolist() == [0, 0, np.inf]


def test_layers_with_different_pools_of_experts_are_counted_apart():
    """Two layers leave 3 of 4 experts idle, three leave 6 of 8; an expert is three matrices of 64 by 10."""
    kind = dense().layers[0].attention
    pools = (
        LayerGroup(2, kind, Mlp(10, experts=4, top_k=1), 0),
        LayerGroup(3, kind, Mlp(10, experts=8, top_k=2), 0),
    )
    mixed = replace(dense(), layers=pools)
    idle = (2 * 3 + 3 * 6) * 3 * 64 * 10
    active = model.params_active(mixed)
    assert active == model.params_total(mixed) - idle
    assert isinstance(active, int)
    # what multiplies is what is active, less the look-up and the final norm
    assert model.params_matmul(mixed) == active - 500 * 64 - 64
    one = model.weight_bytes_streamed(mixed, BF16, positions=1)
    assert one == approx(2 * (active - 500 * 64))


def test_a_limit_of_the_context_beyond_each_window_in_turn():
    """Layers that see 8, 64 and all tokens: c (min(s, 8) + min(s, 64) + s) = 2 N, with c = 128 R - 512 by hand.

    A token leaves 64 numbers of two bytes in each layer and takes 2 * 8 * (16 + 16) FLOP to look at.
    """
    group = dense(layers=1).layers[0]
    layers = tuple(replace(group, attention=replace(group.attention, window=window)) for window in (8, 64, None))
    architecture = replace(dense(), layers=layers)
    ridge = np.array([300.0, 100.0, 20.0, 10.0])
    reach = 2 * model.params_matmul(architecture) / (128 * ridge - 512)
    by_hand = [reach[0] / 3, (reach[1] - 8) / 2, reach[2] - 72, reach[3] - 72]
    assert by_hand[0] < 8 < by_hand[1] < 64 < by_hand[2]
    assert model.context_limit(architecture, BF16, ridge_flop_per_byte=ridge) == approx(np.array(by_hand))
    assert model.context_limit(architecture, BF16, ridge_flop_per_byte=20.0) == approx(by_hand[2])
    memory = np.array([0.5, 1.5, 1e9]) * model.weight_bytes(architecture, BF16)
    inside = model.context_limit_in_memory(architecture, BF16, ridge_flop_per_byte=20.0, memory_byte=memory)
    assert inside[0] == 0 < inside[1] < inside[2]
    assert inside[2] == approx(by_hand[2], rel=1e-6)


def test_how_many_sequences_fit_depends_on_what_each_layer_holds():
    """gpt-oss-20b, half of its 24 layers windowed to 128 tokens: 8,192 reserved in all are 4,160 needed on average."""
    architecture = shipped("gpt-oss-20b").architecture
    memory = model.weight_bytes(architecture, BF16) + 100 * 8192 * 2 * 24 * 1024
    counts = {
        policy: model.max_sequences(architecture, BF16, memory_byte=memory, context_tokens=8192, policy=policy)
        for policy in ("reserved", "needed")
    }
    assert counts == {"reserved": 100, "needed": np.floor(100 * 8192 / 4160)}
    assert model.max_sequences(architecture, BF16, memory_byte=memory, context_tokens=8192) == counts["needed"]


def test_a_pass_over_a_block_sees_as_its_attention_does():
    """Of 32 positions after 100 each sees 132 where all see each other, and 116.5 on average where they do not."""
    architecture = dense()
    of = {"batch": 3, "context_tokens": 100, "positions": 32}
    causal, block, left_out = (
        model.pass_work(architecture, BF16, **of, **more).attention_flop
        for more in ({"causal": True}, {"causal": False}, {})
    )
    assert block == 3 * 4 * 4 * 8 * 16 * 32 * 132
    assert causal == left_out == 3 * 4 * 4 * 8 * 16 * 32 * 116.5
    widths = model.pass_work(architecture, BF16, batch=3, context_tokens=100, positions=[1, 32])
    assert widths.attention_flop.tolist() == [3 * 4 * 4 * 8 * 16 * 101, causal]
    assert widths.kv_read_bytes.tolist() == [3 * 100 * 512] * 2


def test_a_share_of_a_prompt_has_its_share_of_the_logits():
    """A pass that on average carries a quarter of a position of each sequence makes a quarter of its logits."""
    work = model.pass_work(dense(), BF16, batch=8, context_tokens=0, positions=0.25, logits="last")
    assert work.logit_bytes == 4 * 500 * 2


def test_texts_of_several_positions_are_so_many_positions_where_routing_is_even():
    of = shipped("gpt-oss-20b").architecture, BF16
    texts = model.weight_bytes_streamed(*of, positions=[4, 2], sequences=8)
    assert texts.tolist() == model.weight_bytes_streamed(*of, positions=[32, 16]).tolist()


def test_a_dense_model_reads_its_weights_once_for_all_texts_of_all_shapes():
    of = dense(), BF16
    alone = model.weight_bytes_streamed(*of, positions=1)
    assert model.weight_bytes_of_parts(*of, [([1, 2], 4), (3, [[1], [2]])], skew=0.5).tolist() == [[alone] * 2] * 2
    assert model.weight_bytes_streamed(*of, positions=4, skew=[0.1, 0.2]).tolist() == [alone] * 2


def test_layers_without_attention_or_mlp_are_counted():
    """A searched network has layers with no attention; they have no cache and no query heads."""
    architecture = shipped("nemotron-super-49b").architecture
    assert sum(group.count for group in architecture.layers if group.attention is None) == 31
    assert model.kv_bytes_per_token(architecture, BF16) == 49 * 2 * 8 * 128 * 2
    bare = Architecture("x", 8, 10, (LayerGroup(2, None, Mlp(16), 8),), tied=False, final_norm_params=8)
    assert model.kv_bytes_per_token(bare, BF16) == 0
    assert model.kv_replication(bare, tensor_parallel=2) == 1
    assert model.context_limit(bare, BF16, ridge_flop_per_byte=10) == np.inf
    assert model.context_limit_folk(bare, BF16, ridge_flop_per_byte=10) == np.inf
    assert model.max_sequences(bare, BF16, memory_byte=1e9, context_tokens=9) == np.inf


def test_memory_caps_the_batch():
    architecture = shipped("llama-3.1-70b").architecture
    of = {"memory_byte": 8 * 80e9 * 0.9, "context_tokens": 4096}
    batch = model.max_sequences(architecture, BF16, **of)
    each = model.kv_bytes_per_sequence(architecture, BF16, context_tokens=4096)
    used = model.weight_bytes(architecture, BF16) + batch * each
    assert used <= of["memory_byte"] < used + each
    assert model.max_sequences(architecture, BF16, **of, kv_copies=2) == batch // 2
    assert model.max_sequences(architecture, BF16, memory_byte=80e9, context_tokens=4096) == 0


LLAMA = shipped("llama-3.1-8b").architecture


@pytest.mark.parametrize(
    ("call", "where", "value"),
    [
        (lambda: model.expert_union(4, experts=8, top_k=9), "top_k", "9.0"),
        (lambda: model.expert_union(-1, experts=8, top_k=2), "positions", "-1.0"),
        (lambda: model.expert_union(1, experts=8, top_k=2, skew=1.1), "skew", "1.1"),
        (lambda: model.weight_bytes_streamed(dense(), BF16, positions=1, skew=-0.1), "skew", "-0.1"),
        (lambda: model.pass_work(dense(), BF16, batch=1, context_tokens=0, expert_skew=2), "expert_skew", "2.0"),
        (lambda: model.skew_of(0.01, experts=64, top_k=4), "neighbour_share", "0.01"),
        (lambda: model.skew_of(1, experts=4, top_k=4), "top_k", "4.0"),
        (lambda: model.expert_union(1, experts=1.5, top_k=1), "experts", "1.5"),
        (lambda: model.weight_bytes_streamed(LLAMA, BF16, positions=-2), "positions", "-2.0"),
        (lambda: model.kv_bytes_per_sequence(LLAMA, BF16, context_tokens=-1), "context_tokens", "-1.0"),
        (lambda: model.kv_bytes_per_sequence(LLAMA, BF16, context_tokens=1, policy="all"), "policy", "'all'"),
        (lambda: model.kv_replication(LLAMA, tensor_parallel=3), "tensor_parallel", "3.0"),
        (lambda: model.kv_replication(LLAMA, tensor_parallel=0.5), "tensor_parallel", "0.5"),
        (lambda: model.kv_replication(dense(heads=24, kv_heads=6), tensor_parallel=4), "tensor_parallel", "4.0"),
        (lambda: model.matmul_flop(LLAMA, positions=-1), "positions", "-1.0"),
        (lambda: model.matmul_flop(LLAMA, positions=1, logit_positions=-1), "logit_positions", "-1.0"),
        (lambda: model.attention_flop(LLAMA, context_tokens=float("nan")), "context_tokens", "nan"),
        (lambda: model.attention_flop(LLAMA, context_tokens=1, form="fast"), "form", "'fast'"),
        (lambda: model.pass_work(LLAMA, BF16, batch=0, context_tokens=1), "batch", "0.0"),
        (lambda: model.pass_work(LLAMA, BF16, batch=1, context_tokens=1, positions=0), "positions", "0.0"),
        (lambda: model.pass_work(LLAMA, BF16, batch=1, context_tokens=1, logits="none"), "logits", "'none'"),
        (lambda: model.context_limit(LLAMA, BF16, ridge_flop_per_byte=0), "ridge_flop_per_byte", "0.0"),
        (lambda: model.context_limit_folk(LLAMA, BF16, ridge_flop_per_byte=-1), "ridge_flop_per_byte", "-1.0"),
        (
            lambda: model.context_limit_in_memory(LLAMA, BF16, ridge_flop_per_byte=1, memory_byte=-1),
            "memory_byte",
            "-1.0",
        ),
        (lambda: model.max_sequences(LLAMA, BF16, memory_byte=-1, context_tokens=1), "memory_byte", "-1.0"),
        (
            lambda: model.max_sequences(LLAMA, BF16, memory_byte=1, context_tokens=1, kv_copies=0),
            "kv_copies",
            "0.0",
        ),
    ],
)
def test_guards_name_the_argument_and_the_value(call, where, value):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(f"{where}: got {value}, expected ")
