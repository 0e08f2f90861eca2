"""Several tokens for each pass: units, limits, known answers by hand."""

import pytest
from sympy import Eq, Max, Rational, diff, limit, oo, simplify, solve

from analysis.symbolic import decoders as derive
from analysis.symbolic import roofline
from analysis.symbols import (
    ACCEPT,
    ANSWER_LENGTH,
    ATTENTION_FLOP,
    BLOCK,
    BYTES_PER_WEIGHT,
    CONTEXT,
    CONTEXT_SCALE,
    DRAFT_COST,
    DRAFTS,
    FLOP_PER_WEIGHT,
    KAPPA,
    MEM_BW,
    N_MATMUL,
    OVERHEAD,
    PASS_TIME,
    PASSES,
    PASSES_EASY,
    PASSES_HARD,
    PEAK,
    POSITION_TIME,
    PROMPT_LENGTH,
    PROMPT_TIME,
    RIDGE,
    RIDGE_POSITIONS,
    SEQ_POSITIONS,
    SEQUENCES,
    SHARE_EASY,
    STREAMED,
    TOKENS_KEPT,
    UNITS,
    WIDER,
    with_constants,
)
from analysis.units import ONE, byte, flop, second, token, unit_of, unit_ratio

#: 989.5 TFLOP/s over 3.35 TB/s, 16 bit: positions at the ridge of an H100.
H100 = Rational("989.5") / Rational("3.35")
SHORT = {CONTEXT: 0, OVERHEAD: 0}


@pytest.mark.parametrize(
    ("derivation", "unit"),
    [
        (derive.weights_time, second),
        (derive.position_time, second),
        (derive.cache_time, second),
        (derive.pass_time, second),
        (derive.reading_pass, second),
        (derive.multiplying_pass, second),
        (derive.ridge_positions, ONE),
        (derive.context_scale, token),
        (derive.gain, ONE),
        (derive.endless_batch_gain, ONE),
        (derive.breakeven_batch, ONE),
        (derive.breakeven_batch_past_ridge, ONE),
        (derive.context_without_breakeven, token),
        (derive.tokens_of_a_cycle, ONE),
        (derive.speculative_gain, ONE),
        (derive.checking_ratio, ONE),
        (derive.first_decline_batch, ONE),
        (derive.speculative_breakeven_batch, ONE),
        (derive.speculative_context_without_breakeven, token),
        (derive.next_draft_pays, ONE),
        (derive.block_intensity, flop / byte),
        (derive.ridge_block, ONE),
        (derive.block_gain, ONE),
        (derive.saturated_tokens, 1 / second),
        (derive.crossover_batch, ONE),
        (derive.block_context_without_crossover, token),
        (derive.job_cost_ratio, ONE),
        (derive.answer_time_in_blocks, second),
        (derive.adaptive_tokens_kept, ONE),
        (derive.mean_of_block_rates, ONE),
        (derive.excess_of_mean_rate, ONE),
        (derive.full_sequence_positions, ONE),
        (derive.full_sequence_gain, ONE),
        (derive.full_sequence_passes_at_parity, ONE),
        (derive.full_sequence_crossover_batch, ONE),
        (derive.saturated_request_time, second),
        (derive.saturated_full_sequence_time, second),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_units(derivation, unit):
    assert unit_ratio(unit_of(derivation(), UNITS), unit) == 1


# --- The scales of a pass ----------------------------------------------------------------------


def test_the_ridge_of_a_dense_model_is_that_of_the_roofline():
    dense = derive.ridge_positions().subs(STREAMED, BYTES_PER_WEIGHT * N_MATMUL)
    assert simplify(dense - roofline.positions_at_ridge()) == 0


def test_at_its_scale_a_context_takes_as_long_as_a_position():
    at = derive.cache_time().subs(CONTEXT, derive.context_scale())
    assert simplify(at - derive.position_time()) == 0


def test_a_pass_reads_below_the_ridge_and_multiplies_above():
    at_ridge = {SEQUENCES: derive.ridge_positions() / SEQ_POSITIONS}
    assert simplify((derive.reading_pass() - derive.multiplying_pass()).subs(at_ridge)) == 0
    assert simplify(derive.pass_time().subs(at_ridge) - derive.reading_pass().subs(at_ridge)) == 0


# --- Break-even, any decoder -------------------------------------------------------------------


#: A GPU on which weights take 20 s, a position 2 s and five tokens of cache as long as a position.
A_GPU = {STREAMED: 20, MEM_BW: 1, PEAK: 1, N_MATMUL: 1, FLOP_PER_WEIGHT: 2, KAPPA: Rational(2, 5)}
ITS_SCALES = {RIDGE_POSITIONS: 10, CONTEXT_SCALE: 5, POSITION_TIME: 2}


def test_the_scales_of_the_example():
    assert derive.ridge_positions().subs(A_GPU) == 10
    assert derive.context_scale().subs(A_GPU) == 5
    assert derive.position_time().subs(A_GPU) == 2


@pytest.mark.parametrize(("w", "tau", "s", "f"), [(8, 2, 0, 0), (8, 3, 7, 0), (32, 4, 2, 30), (5, 3, 1, 4)])
def test_both_decoders_are_equally_fast_at_the_break_even(w, tau, s, f):
    """The gain, with its maxima, is 1 there: below it lies above 1, above it below."""
    at = {SEQ_POSITIONS: w, TOKENS_KEPT: tau, CONTEXT: s, OVERHEAD: f}
    batch = derive.breakeven_batch().subs(ITS_SCALES).subs(at)
    assert 0 < batch <= 10
    gain = derive.gain().subs(A_GPU).subs(at)
    assert gain.subs(SEQUENCES, batch) == 1
    assert gain.subs(SEQUENCES, batch * Rational(9, 10)) > 1 > gain.subs(SEQUENCES, batch * Rational(11, 10))


def test_a_fixed_time_can_put_the_break_even_past_the_ridge():
    """8 positions for 4 tokens, 40 s fixed: (4 - 1) 20 / (8 - 4) = 15 sequences, past the ridge of 10."""
    at = {SEQ_POSITIONS: 8, TOKENS_KEPT: 4, CONTEXT: 0, OVERHEAD: 40}
    assert derive.breakeven_batch().subs(ITS_SCALES).subs(at) > 10
    batch = derive.breakeven_batch_past_ridge().subs(ITS_SCALES).subs(at)
    assert batch == 15
    assert derive.gain().subs(A_GPU).subs(at).subs(SEQUENCES, batch) == 1


def test_without_a_fixed_time_both_formulas_fail_at_one_context():
    """At the context without break-even the first lies at the ridge: beyond it there is none."""
    edge = {CONTEXT: derive.context_without_breakeven(), OVERHEAD: 0}
    assert simplify(derive.breakeven_batch().subs(edge) - RIDGE_POSITIONS) == 0
    assert derive.breakeven_batch_past_ridge().subs(OVERHEAD, 0) == 0
    assert simplify(derive.endless_batch_gain().subs(edge) - 1) == 0


def test_long_context_brings_the_whole_gain_back():
    gain = derive.endless_batch_gain()
    assert limit(gain, CONTEXT, oo) == TOKENS_KEPT
    assert simplify(gain.subs(CONTEXT, 0) - TOKENS_KEPT / SEQ_POSITIONS) == 0
    assert simplify(diff(gain, CONTEXT) * (CONTEXT + CONTEXT_SCALE * SEQ_POSITIONS) ** 2).equals(
        TOKENS_KEPT * CONTEXT_SCALE * (SEQ_POSITIONS - 1)
    )


def test_more_context_moves_the_break_even_out():
    at = {SEQ_POSITIONS: 32, TOKENS_KEPT: 3, OVERHEAD: 0}
    slope = diff(derive.breakeven_batch().subs(at), CONTEXT)
    assert (slope * (32 * CONTEXT_SCALE - 2 * CONTEXT) ** 2).simplify().is_positive


def test_each_condition_removes_the_break_even():
    """s_kappa (8 - 3) / (3 - 1) = 12.5 for 8 positions and 3 tokens."""
    below, never, bound = (condition.subs(SEQ_POSITIONS, 8) for condition in derive.without_breakeven())
    assert (below.subs(TOKENS_KEPT, 1), below.subs(TOKENS_KEPT, 2)) == (True, False)
    assert (never.subs(TOKENS_KEPT, 8), never.subs(TOKENS_KEPT, 7)) == (True, False)
    at_3 = bound.subs({TOKENS_KEPT: 3, CONTEXT_SCALE: 5})
    assert (at_3.subs(CONTEXT, 13), at_3.subs(CONTEXT, 12)) == (True, False)


def test_results_are_written_as_the_page_reads_them():
    """Term by term what the docstrings say: no minus before a quotient of sums, fixed time and context apart."""
    more, over, long = TOKENS_KEPT - 1, OVERHEAD / POSITION_TIME, CONTEXT / CONTEXT_SCALE
    below = SEQ_POSITIONS - more * long
    assert derive.breakeven_batch() == (TOKENS_KEPT * RIDGE_POSITIONS + more * over) / below
    assert derive.breakeven_batch_past_ridge() == more * over / (below - TOKENS_KEPT)
    assert derive.context_without_breakeven() == CONTEXT_SCALE * (SEQ_POSITIONS - TOKENS_KEPT) / more
    apart = (BLOCK - PASSES) / BLOCK
    assert derive.crossover_batch() == (RIDGE_POSITIONS + apart * over) / (PASSES - apart * long)
    assert derive.block_context_without_crossover() == BLOCK * CONTEXT_SCALE * (PASSES - 1) / (BLOCK - PASSES)
    spread = SHARE_EASY * (1 - SHARE_EASY)
    square = (PASSES_EASY - PASSES_HARD) ** 2
    assert derive.excess_of_mean_rate() == spread * square / (PASSES_EASY * PASSES_HARD)
    drafts = DRAFTS * DRAFT_COST
    pays = ACCEPT ** (DRAFTS + 1) * (drafts + 1) - DRAFT_COST * TOKENS_KEPT
    assert derive.next_draft_pays() == pays
    whole = (drafts + 1) * long + drafts + SEQ_POSITIONS
    assert derive.saturated_request_time() == POSITION_TIME * (PROMPT_LENGTH + ANSWER_LENGTH / TOKENS_KEPT * whole)
    free = {DRAFTS: 4, DRAFT_COST: 0, CONTEXT_SCALE: 1}
    assert derive.speculative_context_without_breakeven().subs(free) == (5 - TOKENS_KEPT) / more


# --- Speculation -------------------------------------------------------------------------------


def test_tokens_of_a_cycle_are_known():
    """By hand for acceptance 0.8: 1.80, 2.44, 2.95, 3.36, 3.69 for one to five drafts."""
    tokens = derive.tokens_of_a_cycle().subs(ACCEPT, Rational(4, 5))
    assert [round(float(tokens.subs(DRAFTS, g)), 2) for g in range(1, 6)] == [1.80, 2.44, 2.95, 3.36, 3.69]
    assert round(float(tokens.subs(DRAFTS, 4)), 4) == 3.3616


def test_a_perfect_draft_yields_every_position():
    tokens = derive.tokens_of_a_cycle()
    assert tokens.subs(ACCEPT, 1) == DRAFTS + 1
    assert limit((1 - ACCEPT ** (4 + 1)) / (1 - ACCEPT), ACCEPT, 1) == 5
    assert tokens.subs({ACCEPT: 0, DRAFTS: 4}) == 1


def test_tokens_of_a_cycle_are_a_sum():
    a = Rational(3, 7)
    assert derive.tokens_of_a_cycle().subs({ACCEPT: a, DRAFTS: 3}) == 1 + a + a**2 + a**3


def test_checking_is_free_up_to_the_first_decline_and_costs_every_position_from_the_ridge_on():
    ratio = derive.checking_ratio()
    at_decline = ratio.subs(SEQUENCES, derive.first_decline_batch())
    assert at_decline.subs({RIDGE_POSITIONS: 295, DRAFTS: 3}) == 1
    assert ratio.subs({RIDGE_POSITIONS: 295, DRAFTS: 3, SEQUENCES: 74}) > 1
    assert ratio.subs({RIDGE_POSITIONS: 295, DRAFTS: 3, SEQUENCES: 295}) == 4
    assert ratio.subs({RIDGE_POSITIONS: 295, DRAFTS: 3, SEQUENCES: 5000}) == 4


def test_checking_starts_to_cost_where_all_positions_reach_the_ridge():
    """Four positions of 73.75 sequences are 295."""
    assert derive.first_decline_batch().subs({RIDGE_POSITIONS: 295, DRAFTS: 3}) == Rational(295, 4)


def test_the_published_wall_clock_factor_is_the_gain_where_checking_is_free():
    """Leviathan et al. 2023: tokens of a cycle over 1 + g c."""
    assert derive.speculative_gain().subs(WIDER, 1) == TOKENS_KEPT / (1 + DRAFTS * DRAFT_COST)


def test_at_short_context_speculation_breaks_even_at_the_ridge_times_tau_over_positions():
    at = derive.speculative_breakeven_batch().subs(SHORT)
    assert simplify(at - RIDGE_POSITIONS * (TOKENS_KEPT - DRAFTS * DRAFT_COST) / (DRAFTS + 1)) == 0
    v = derive.checking_ratio().subs(Max(RIDGE_POSITIONS, SEQUENCES), RIDGE_POSITIONS)
    gain = derive.speculative_gain().subs(WIDER, v)
    numbers = {RIDGE_POSITIONS: 295, DRAFTS: 3, DRAFT_COST: Rational(1, 10), TOKENS_KEPT: Rational(59, 20)}
    assert gain.subs(SEQUENCES, at).subs(numbers) == 1


def test_speculation_is_below_1_from_the_start_where_drafts_cost_what_they_bring():
    conditions = derive.speculation_without_breakeven()
    dear = {DRAFTS: 4, DRAFT_COST: Rational(1, 2), TOKENS_KEPT: Rational(5, 2)}
    assert conditions.below_from_the_start.subs(dear)
    assert derive.speculative_gain().subs(WIDER, 1).subs(dear) < 1


def test_only_free_and_perfect_drafts_gain_at_every_batch_without_context():
    never = derive.speculation_without_breakeven().never_below
    tokens = derive.tokens_of_a_cycle().subs(DRAFTS, 4)
    free = {DRAFTS: 4, DRAFT_COST: 0}
    assert never.subs(TOKENS_KEPT, tokens.subs(ACCEPT, 1)).subs(free)
    assert not never.subs(TOKENS_KEPT, tokens.subs(ACCEPT, Rational(99, 100))).subs(free)


def test_from_its_context_on_speculation_gains_at_every_batch():
    """The gain at an endless batch, tau (1 + x) / (w + x + g c (1 + x)) with x = s/s_k, is 1 there."""
    numbers = {DRAFTS: 3, DRAFT_COST: Rational(1, 10), TOKENS_KEPT: 3, CONTEXT_SCALE: 100}
    s = derive.speculative_context_without_breakeven().subs(numbers)
    x = s / 100
    assert 3 * (1 + x) / (4 + x + Rational(3, 10) * (1 + x)) == 1
    assert derive.speculation_without_breakeven().cache_bound.subs(numbers).subs(CONTEXT, s + 1)
    assert not derive.speculation_without_breakeven().cache_bound.subs(numbers).subs(CONTEXT, s - 1)


@pytest.mark.parametrize(("a", "c"), [("0.8", "0.05"), ("0.8", "0.1"), ("0.6", "0.1"), ("0.9", "0.02"), ("0.3", "0.2")])
def test_the_best_draft_length_is_a_neighbour_of_the_real_one(a, c):
    of = {ACCEPT: Rational(a), DRAFT_COST: Rational(c)}
    gains = [
        float((derive.tokens_of_a_cycle() / (1 + DRAFTS * DRAFT_COST)).subs(of).subs(DRAFTS, g)) for g in range(40)
    ]
    best = max(range(40), key=gains.__getitem__)
    assert abs(best - float(derive.best_draft_length().subs(of))) < 1
    pays = [
        derive.next_draft_pays().subs(TOKENS_KEPT, derive.tokens_of_a_cycle()).subs(of).subs(DRAFTS, g) > 0
        for g in range(40)
    ]
    assert pays == [g < best for g in range(40)]


# --- Block diffusion ---------------------------------------------------------------------------


@pytest.mark.parametrize(("block", "intensity"), [(4, 4), (32, 32), (256, 256)])
def test_a_dense_block_in_16_bit_has_its_length_as_intensity(block, intensity):
    """2 l / b with b = 2, one sequence without context."""
    alone = derive.block_intensity().subs({SEQUENCES: 1, CONTEXT: 0, STREAMED: 2 * N_MATMUL})
    assert with_constants(alone).subs(BLOCK, block) == intensity


def test_the_intensity_of_a_block_by_hand():
    """Two sequences, blocks of 3: 2 x 3 (2 x 5 + 4 x 10) operations for 20 + 2 x 2 x 10 bytes."""
    of = {
        SEQUENCES: 2,
        BLOCK: 3,
        FLOP_PER_WEIGHT: 2,
        N_MATMUL: 5,
        ATTENTION_FLOP: 4,
        CONTEXT: 10,
        STREAMED: 20,
        KAPPA: 2,
    }
    assert derive.block_intensity().subs(of) == 5


def test_the_ridge_block_is_the_batch_at_the_ridge():
    """295 at 16 bit on an H100, and again at 8 bit: half the bytes, twice the peak."""
    dense = with_constants(derive.ridge_block().subs(STREAMED, BYTES_PER_WEIGHT * N_MATMUL))
    assert round(float(dense.subs({BYTES_PER_WEIGHT: 2, RIDGE: H100}))) == 295
    assert dense.subs({BYTES_PER_WEIGHT: 1, RIDGE: 2 * H100}) == dense.subs({BYTES_PER_WEIGHT: 2, RIDGE: H100})
    assert simplify(dense.subs({BYTES_PER_WEIGHT: 2, RIDGE: PEAK / MEM_BW}) - PEAK / MEM_BW) == 0


def test_context_lowers_the_intensity_of_a_block_and_batch_cannot_raise_it_for_ever():
    intensity = derive.block_intensity()
    endless = limit(intensity.subs(ATTENTION_FLOP, 0), SEQUENCES, oo)
    assert simplify(endless - BLOCK * FLOP_PER_WEIGHT * N_MATMUL / (KAPPA * CONTEXT)) == 0


def test_blocks_gain_tau_at_batch_1_and_lose_the_passes_in_full_batches():
    gain = derive.block_gain().subs({RIDGE_POSITIONS: H100, BLOCK: 32, PASSES: 10})
    assert gain.subs(SEQUENCES, 1) == gain.subs(SEQUENCES, 9) == Rational(32, 10)
    assert gain.subs(SEQUENCES, 296) == gain.subs(SEQUENCES, 10**6) == Rational(1, 10)


def test_saturated_blocks_make_a_passth_of_the_tokens():
    one = derive.saturated_tokens().subs({PASSES: 1})
    assert simplify(derive.saturated_tokens() * PASSES - one) == 0
    assert simplify(one * derive.position_time()) == 1


@pytest.mark.parametrize(
    ("block", "tau", "batch"), [(32, "3.18", 29), (32, "4.65", 43), (256, "256/17", 17), (4, "1.1", 81)]
)
def test_crossovers_at_zero_context_are_known(block, tau, batch):
    """The ridge over the passes: 295.4 / T on an H100 in 16 bit."""
    at = derive.crossover_batch().subs(SHORT)
    assert simplify(at - RIDGE_POSITIONS / PASSES) == 0
    assert round(float(at.subs({RIDGE_POSITIONS: H100, PASSES: block / Rational(tau)}))) == batch


def test_the_crossover_of_llada_moves_out_with_context_and_vanishes():
    """29.3 with a ridge of 295, block 32, 3.18 tokens a pass; later with context, at the ridge where it ends."""
    of = {RIDGE_POSITIONS: 295, BLOCK: 32, PASSES: 32 / Rational("3.18"), OVERHEAD: 0, CONTEXT_SCALE: 415}
    at = derive.crossover_batch().subs(of)
    assert float(at.subs(CONTEXT, 0)) == pytest.approx(29.3, abs=0.05)
    assert at.subs(CONTEXT, 0) < at.subs(CONTEXT, 1000) < at.subs(CONTEXT, 4000)
    end = derive.block_context_without_crossover().subs(of)
    assert at.subs(CONTEXT, end) == 295
    assert at.subs(CONTEXT, end * Rational(11, 10)) > 295


def test_a_fixed_time_moves_the_crossover_out():
    """Whoever makes fewer passes pays it less often."""
    of = {RIDGE_POSITIONS: 295, BLOCK: 32, PASSES: 10, CONTEXT: 0, POSITION_TIME: 1}
    slope = diff(derive.crossover_batch().subs(of), OVERHEAD)
    assert slope == (1 - Rational(10, 32)) / 10


def test_a_long_prompt_shrinks_the_penalty_and_never_turns_it():
    """4,000 in and 300 out: 1.42 at 7 passes, 2.12 at 17."""
    ratio = derive.job_cost_ratio()
    job = {PROMPT_LENGTH: 4000, ANSWER_LENGTH: 300}
    assert [round(float(ratio.subs(job).subs(PASSES, t)), 2) for t in (7, 17)] == [1.42, 2.12]
    assert limit(ratio, PROMPT_LENGTH, oo) == 1
    assert simplify(ratio.subs(PROMPT_LENGTH, 0)) == PASSES
    assert ratio.subs(job).subs(PASSES, 1) == 1


def test_a_short_answer_pays_a_whole_block():
    time = derive.answer_time_in_blocks().subs(BLOCK, 256)
    assert time.subs(ANSWER_LENGTH, 60) == time.subs(ANSWER_LENGTH, 256) != time.subs(ANSWER_LENGTH, 257)
    # half a second for the prompt, two blocks of ten passes of a fifth of a second
    of = {ANSWER_LENGTH: 257, PASSES: 10, PASS_TIME: Rational(1, 5), PROMPT_TIME: Rational(1, 2)}
    assert time.subs(of) == Rational(9, 2)


# --- Adaptive passes ---------------------------------------------------------------------------


def test_tokens_per_pass_follow_the_mean_of_the_passes_and_not_the_mean_of_the_rates():
    """Half the blocks of 32 take 2 passes, half 14: 8 passes, 4 tokens each; the mean of 16 and 2.3 says 9.1."""
    of = {BLOCK: 32, SHARE_EASY: Rational(1, 2), PASSES_EASY: 2, PASSES_HARD: 14}
    assert derive.adaptive_tokens_kept().subs(of) == 4
    tokens, passes = 100 * 32, 50 * 2 + 50 * 14
    assert Rational(tokens, passes) == 4
    assert round(float(derive.mean_of_block_rates().subs(of)), 1) == 9.1
    assert derive.excess_of_mean_rate().subs(of) == derive.mean_of_block_rates().subs(of) / 4 - 1


def test_the_mean_of_rates_is_never_too_low():
    """The excess over q (1 - q), which is positive for a share, is a square over positives."""
    rest = derive.excess_of_mean_rate() / (SHARE_EASY * (1 - SHARE_EASY))
    assert simplify(rest - (PASSES_EASY - PASSES_HARD) ** 2 / (PASSES_EASY * PASSES_HARD)) == 0
    assert derive.excess_of_mean_rate().subs(PASSES_EASY, PASSES_HARD) == 0


# --- The whole sequence ------------------------------------------------------------------------


def test_the_whole_sequence_is_never_faster_at_a_token_a_pass_and_up_to_batch_2_at_eight():
    """1,150 positions, of them 256 of the answer: 295 / 1150 = 0.26 and 2.05."""
    at = derive.full_sequence_crossover_batch().subs({RIDGE_POSITIONS: 295, PROMPT_LENGTH: 894, ANSWER_LENGTH: 256})
    assert float(at.subs(PASSES, 256)) == pytest.approx(0.26, abs=0.005)
    assert float(at.subs(PASSES, 32)) == pytest.approx(2.05, abs=0.005)


def test_parity_passes_are_where_the_gain_is_1():
    of = {RIDGE_POSITIONS: 295, PROMPT_LENGTH: 894, ANSWER_LENGTH: 256}
    passes = derive.full_sequence_passes_at_parity().subs(of)
    assert derive.full_sequence_gain().subs(of).subs(PASSES, passes) == 1
    (again,) = solve(Eq(derive.full_sequence_gain().subs(of), 1), PASSES)
    assert again == passes


def test_below_the_ridge_the_whole_sequence_gains_its_tokens_per_pass():
    of = {RIDGE_POSITIONS: 295, PROMPT_LENGTH: 0, ANSWER_LENGTH: 128, PASSES: 16}
    assert derive.full_sequence_gain().subs(of) == 8


# --- A whole request ---------------------------------------------------------------------------

ONE_BY_ONE = {SEQ_POSITIONS: 1, TOKENS_KEPT: 1, DRAFTS: 0}


def test_a_saturated_request_costs_its_positions_and_its_reading():
    time = derive.saturated_request_time().subs(ONE_BY_ONE)
    by_hand = POSITION_TIME * (PROMPT_LENGTH + ANSWER_LENGTH * (1 + CONTEXT / CONTEXT_SCALE))
    assert simplify(time - by_hand) == 0


def test_without_context_saturated_requests_compare_as_their_arithmetic():
    blocks = derive.saturated_request_time().subs({SEQ_POSITIONS: BLOCK, TOKENS_KEPT: BLOCK / PASSES, DRAFTS: 0})
    ratio = (blocks / derive.saturated_request_time().subs(ONE_BY_ONE)).subs(CONTEXT, 0)
    assert simplify(ratio - derive.job_cost_ratio()) == 0


def test_drafts_cost_passes_of_one_position_with_their_own_reading():
    of = {SEQ_POSITIONS: 4, TOKENS_KEPT: 2, DRAFTS: 3, DRAFT_COST: Rational(1, 10), PROMPT_LENGTH: 100}
    time = derive.saturated_request_time().subs(of).subs({ANSWER_LENGTH: 10, CONTEXT: 50, CONTEXT_SCALE: 5})
    assert time == POSITION_TIME * (100 + 5 * (4 + 10 + Rational(3, 10) * 11))


def test_whole_passes_cost_the_prompt_every_time():
    ratio = derive.saturated_full_sequence_time() / derive.saturated_request_time().subs(ONE_BY_ONE).subs(CONTEXT, 0)
    assert simplify(ratio) == PASSES
