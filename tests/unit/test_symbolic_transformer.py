"""What a transformer weighs: units, limits, signs."""

import pytest
from sympy import Rational, diff, factor, limit, oo, simplify, symbols

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
    KV_HEADS,
    LAYERS,
    MEMORY,
    N_MATMUL,
    N_TOTAL,
    NEIGHBOUR,
    POSITIONS,
    RIDGE,
    SEQ_POSITIONS,
    SEQUENCES,
    SKEW,
    STREAMED,
    TOKEN_EACH,
    TOP_K,
    UNITS,
    VOCAB,
    WINDOW,
    with_constants,
)
from analysis.units import ONE, byte, flop, token, unit_of, unit_ratio


@pytest.mark.parametrize(
    ("derivation", "unit"),
    [
        (derive.attention_params, ONE),
        (derive.mlp_params, ONE),
        (derive.params_total, ONE),
        (derive.params_matmul, ONE),
        (derive.expert_union, ONE),
        (derive.expert_union_skewed, ONE),
        (derive.expert_union_of_texts, ONE),
        (derive.neighbour_share, ONE),
        (derive.skew_of_neighbours, ONE),
        (derive.ridge_of_experts, ONE),
        (derive.kv_bytes_per_token, byte / token),
        (derive.latent_bytes_per_token, byte / token),
        (derive.kv_bytes_windowed, byte),
        (derive.matmul_flop, flop),
        (derive.causal_tokens_seen, token),
        (derive.windowed_tokens_seen, token),
        (derive.attention_flop_per_token_seen, flop / token),
        (derive.absorbed_flop_per_token_seen, flop / token),
        (derive.attention_intensity, flop / byte),
        (derive.grouped_attention_intensity, flop / byte),
        (derive.context_limit, token),
        (derive.folk_context_limit, token),
        (derive.batch_at_ridge, ONE),
        (derive.context_limit_in_memory, token),
    ],
)
def test_units(derivation, unit):
    assert unit_ratio(unit_of(derivation(), UNITS), unit) == 1


def test_grouping_scales_the_cache_and_not_the_queries():
    """One KV head per group: the cache shrinks by the group, arithmetic stays, so intensity grows by the group."""
    group = symbols("group", positive=True)
    grouped = {KV_HEADS: HEADS / group}
    assert simplify(derive.kv_bytes_per_token().subs(grouped) * group) == derive.kv_bytes_per_token().subs(
        KV_HEADS, HEADS
    )
    assert derive.attention_flop_per_token_seen().subs(grouped) == derive.attention_flop_per_token_seen()
    many, one = (derive.grouped_attention_intensity().subs(KV_HEADS, heads) for heads in (HEADS, HEADS / group))
    assert simplify(one / many) == group


def test_what_separates_stored_from_multiplied_is_the_input_embedding_and_the_norms():
    extra = derive.params_total() - derive.params_matmul()
    assert simplify(extra - (VOCAB * HIDDEN + HIDDEN * (2 * LAYERS + 1))) == 0


@pytest.mark.parametrize(
    ("kv_heads", "ffn", "vocab", "params"), [(32, 11_008, 32_000, 6_738_415_616), (8, 14_336, 128_256, 8_030_261_248)]
)
def test_parameters_of_published_models(kv_heads, ffn, vocab, params):
    """Llama-2-7B and Llama-3-8B as their cards count them; 32 layers, 32 heads of 128, width 4,096."""
    of = {LAYERS: 32, HEADS: 32, KV_HEADS: kv_heads, HEAD_DIM: 128, HIDDEN: 4096, FFN: ffn, VOCAB: vocab}
    assert derive.params_total().subs(of) == params


def test_expert_union_runs_from_top_k_to_all():
    share = derive.expert_union()
    assert simplify(share.subs(POSITIONS, 1) - TOP_K / EXPERTS) == 0
    assert limit(share.subs({TOP_K: 2, EXPERTS: 8}), POSITIONS, oo) == 1
    assert share.subs({TOP_K: 8, EXPERTS: 8}) == 1, "a model that uses all experts is dense"


def test_a_causal_pass_counts_each_pair_once():
    seen = with_constants(derive.causal_tokens_seen())
    assert seen.subs(SEQ_POSITIONS, 1) == CONTEXT + 1, "a decode step sees the cache and itself"
    assert seen.subs({CONTEXT: 0, SEQ_POSITIONS: 4}) == 1 + 2 + 3 + 4
    split = seen.subs(SEQ_POSITIONS, 3) + seen.subs({CONTEXT: CONTEXT + 3, SEQ_POSITIONS: 5})
    assert simplify(split - seen.subs(SEQ_POSITIONS, 8)) == 0, "chunks of a prompt cost what the whole costs"


@pytest.mark.parametrize(("start", "new", "window"), [(0, 7, 3), (2, 5, 4), (9, 4, 3), (1, 2, 50)])
def test_a_window_cuts_what_each_position_sees(start, new, window):
    counted = sum(min(start + i, window) for i in range(1, new + 1))
    seen = with_constants(derive.windowed_tokens_seen())
    assert seen.subs({CONTEXT: start, SEQ_POSITIONS: new, WINDOW: window}) == counted


def test_latent_attention_trades_bytes_for_arithmetic():
    """DeepSeek-V3: 128 heads, r = 512, rope 64: 576 numbers per token instead of 32,768, at 242 FLOP per byte."""
    values = dict(zip(symbols("heads latent_rank rope_dim kv_byte", positive=True), (128, 512, 64, 2), strict=True))
    ratio = with_constants(derive.absorbed_flop_per_token_seen() / derive.latent_bytes_per_token())
    assert ratio.subs(values) == Rational(128 * (2 * 512 + 64), 512 + 64)


def test_limits_of_the_context_limit():
    s = derive.context_limit()
    folk = derive.folk_context_limit()
    assert simplify(s.subs(ATTENTION_FLOP, 0) - folk.subs(N_TOTAL, N_MATMUL)) == 0, "folk: no attention, N for N_mm"
    assert limit(s, RIDGE, oo) == 0
    assert limit(s.subs({N_MATMUL: 1, KAPPA: 1, ATTENTION_FLOP: 2}), RIDGE, 2, "+") == oo, "attention alone is enough"
    assert simplify(limit(derive.context_limit_in_memory(), MEMORY, oo) - s) == 0
    assert limit(derive.context_limit_in_memory(), MEMORY, 0) == 0
    gap = s - derive.context_limit_in_memory().subs(ATTENTION_FLOP, 0)
    assert factor(gap.subs(ATTENTION_FLOP, 0)).is_positive, "memory only shortens it"


def test_monotone():
    assert factor(diff(derive.kv_bytes_per_token(), KV_HEADS)).is_positive
    assert factor(diff(derive.params_total(), HEAD_DIM)).is_positive
    assert factor(diff(derive.folk_context_limit(), KAPPA)).is_negative
    assert factor(diff(derive.context_limit_in_memory().subs(ATTENTION_FLOP, 0), STREAMED)).is_negative
    assert factor(diff(derive.causal_tokens_seen(), TOKEN_EACH)).is_positive


def test_skewed_chances_sum_to_top_k():
    favourite, other = derive.skewed_chances()
    assert simplify(TOP_K * favourite + (EXPERTS - TOP_K) * other - TOP_K) == 0


def test_skewed_experts_run_from_even_routing_to_the_favourites_alone():
    union = derive.expert_union_skewed()
    assert simplify(union.subs(SKEW, 0) - derive.expert_union()) == 0
    assert simplify(union.subs(SKEW, 1) - TOP_K / EXPERTS) == 0
    assert simplify(union.subs(POSITIONS, 1) - TOP_K / EXPERTS) == 0


def test_the_union_is_the_sum_over_all_experts():
    """Three of two kinds, counted one by one."""
    favourite, other = derive.skewed_chances()
    of = {EXPERTS: 3, TOP_K: 1, SKEW: Rational(1, 4)}
    one_by_one = derive.distinct_experts([favourite, other, other])
    assert simplify((3 * derive.expert_union_skewed() - one_by_one).subs(of)) == 0


def test_neighbours_share_what_the_union_of_two_lacks():
    share = derive.neighbour_share()
    two = derive.expert_union_skewed().subs(POSITIONS, 2)
    assert simplify(two - TOP_K / EXPERTS * (2 - share)) == 0
    assert simplify(derive.skew_of_neighbours().subs(NEIGHBOUR, share)) == SKEW


def test_the_ridge_of_a_sparse_model_lies_higher_by_all_over_used():
    assert derive.ridge_of_experts() == N_TOTAL / N_MATMUL


def test_texts_of_one_position_route_evenly_whatever_the_skew():
    union = derive.expert_union_of_texts()
    evenly = derive.expert_union().subs(POSITIONS, SEQUENCES)
    assert simplify(union.subs(SEQ_POSITIONS, 1) - evenly) == 0
    many = derive.expert_union().subs(POSITIONS, SEQUENCES * SEQ_POSITIONS)
    numbers = {SEQ_POSITIONS: 4, SEQUENCES: 3, EXPERTS: 8, TOP_K: 2}
    assert union.subs(SKEW, 0).subs(numbers) == many.subs(numbers)
