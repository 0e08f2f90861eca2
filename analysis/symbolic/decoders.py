"""What several tokens for each pass are worth: speculation, block diffusion, diffusion of the whole sequence.

All are one structure: a pass computes w positions of each sequence and keeps tau of them, against one position and
one token. The time of a pass is that of two phases on one GPU, matrix products and then the cache, with the
arithmetic of attention left out:

    t(w) = max(W / BW, 2 N n w / P) + n kappa s / BW + f

Results are written in the scales of that time. One position takes t_pos = 2 N / P to multiply. The ridge m_r is the
number of positions whose multiplying takes as long as reading the weights; the context s_kappa takes as long to read
as one position takes to multiply.
Sparse models come in through W, which then grows with the positions (`analysis.symbolic.transformer.expert_union`);
here it is constant, as in a dense model or where every expert is in use.
"""

from __future__ import annotations

from typing import NamedTuple

from sympy import (
    Ge,
    LambertW,
    Le,
    Max,
    Symbol,
    cancel,
    ceiling,
    collect,
    expand,
    factor,
    fraction,
    limit,
    oo,
    solve,
    summation,
    together,
)
from sympy.core.expr import Expr
from sympy.core.relational import Relational

from analysis.symbols import (
    ACCEPT,
    ANSWER_LENGTH,
    ATTENTION_FLOP,
    BLOCK,
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
    WIDER,
)

# --- The time of a pass ------------------------------------------------------------------------


def weights_time() -> Expr:
    """Time to read the weights once, [s]:  W / BW."""
    return STREAMED / MEM_BW


def position_time() -> Expr:
    """Time to multiply one position with all weights, [s]:  2 N / P."""
    return FLOP_PER_WEIGHT * N_MATMUL / PEAK


def cache_time() -> Expr:
    """Time to read the cache of one sequence, [s]:  kappa s / BW."""
    return KAPPA * CONTEXT / MEM_BW


def pass_time() -> Expr:
    """Time of a pass of w positions of n sequences, [s]:  max(W / BW, 2 N n w / P) + n kappa s / BW + f."""
    return Max(weights_time(), SEQUENCES * SEQ_POSITIONS * position_time()) + SEQUENCES * cache_time() + OVERHEAD


def reading_pass() -> Expr:
    """Time of a pass whose weights take longer to read than to multiply, [s]. Domain: n w <= m_r."""
    return weights_time() + SEQUENCES * cache_time() + OVERHEAD


def multiplying_pass() -> Expr:
    """Time of a pass whose weights take longer to multiply than to read, [s]. Domain: n w >= m_r."""
    return SEQUENCES * SEQ_POSITIONS * position_time() + SEQUENCES * cache_time() + OVERHEAD


def ridge_positions() -> Expr:
    """Positions at which the two are equal, [1]:  m_r = W P / (2 N BW).

    Dense: half a byte-width times the ridge. Sparse: W is that of all experts and N that of the used ones, so that
    the ridge lies higher by their ratio.
    """
    m = Symbol("m", positive=True)
    (found,) = solve(m * position_time() - weights_time(), m)
    return found


def context_scale() -> Expr:
    """Context whose cache takes as long to read as one position takes to multiply, [token]:  2 N BW / (kappa P)."""
    (found,) = solve(cache_time() - position_time(), CONTEXT)
    return found


def _in_scales(expr: Expr) -> Expr:
    """Write W, kappa and N as the scales of the time of a pass: m_r, s_kappa and the time of one position."""
    (streamed,) = solve(ridge_positions() - RIDGE_POSITIONS, STREAMED)
    (kappa,) = solve(context_scale() - CONTEXT_SCALE, KAPPA)
    (weights,) = solve(position_time() - POSITION_TIME, N_MATMUL)
    return cancel(expr.subs({STREAMED: streamed, KAPPA: kappa}).subs(N_MATMUL, weights))


def _in_ridges(expr: Expr) -> Expr:
    """Write a ratio of times without context and fixed time in positions: the time of one cancels."""
    return _in_scales(expr.subs({CONTEXT: 0, OVERHEAD: 0})).subs(POSITION_TIME, 1)


def _batch(expr: Expr) -> Expr:
    """Sort a batch of break-even by what it is made of: positions above, positions of each sequence below."""
    above, below = fraction(factor(_in_scales(expr)))
    each = CONTEXT_SCALE * POSITION_TIME
    sign = -1 if expand(below).coeff(SEQ_POSITIONS).could_extract_minus_sign() else 1
    above, below = expand(sign * above / each), expand(sign * below / each)
    return collect(above, OVERHEAD, factor) / collect(below, CONTEXT, factor)


def _upright(expr: Expr) -> Expr:
    """Divide so that no minus stands before a quotient of two sums."""
    above, below = fraction(factor(expr))
    return above / below if not above.could_extract_minus_sign() else expand(-above) / expand(-below)


# --- Any w positions for tau tokens against one for one ----------------------------------------


def gain() -> Expr:
    """Tokens per second with w positions and tau tokens over those with one and one, [1]:  tau t(1) / t(w)."""
    return TOKENS_KEPT * pass_time().subs(SEQ_POSITIONS, 1) / pass_time()


def endless_batch_gain() -> Expr:
    """Gain at an endless batch, where both multiply, [1]:  tau (1 + s/s_kappa) / (w + s/s_kappa).

    Below 1 at short context: each kept token costs w / tau positions. It rises with the context towards tau.
    """
    ratio = TOKENS_KEPT * multiplying_pass().subs(SEQ_POSITIONS, 1) / multiplying_pass()
    return factor(_in_scales(limit(ratio, SEQUENCES, oo)))


def breakeven_batch() -> Expr:
    """Batch at which w positions for tau tokens are as fast as one for one, [1].

    (tau m_r + (tau - 1) f/t_pos) / (w - (tau - 1) s/s_kappa).  Domain: the narrow pass still reads and the wide one
    multiplies, so the result holds while it is positive and at most m_r; above m_r: `breakeven_batch_past_ridge`.
    """
    narrow = reading_pass()
    (batch,) = solve(TOKENS_KEPT * narrow - multiplying_pass(), SEQUENCES)
    return _batch(batch)


def breakeven_batch_past_ridge() -> Expr:
    """Batch of break-even where both passes multiply, [1]:  (tau - 1) (f/t_pos) / (w - tau - (tau - 1) s/s_kappa).

    Domain: at least m_r. Only a fixed time per pass can put it there: without one the lines meet below the ridge or
    nowhere.
    """
    narrow = multiplying_pass().subs(SEQ_POSITIONS, 1)
    (batch,) = solve(TOKENS_KEPT * narrow - multiplying_pass(), SEQUENCES)
    return _batch(batch)


def context_without_breakeven() -> Expr:
    """Context from which no batch makes one for one faster, [token]:  s_kappa (w - tau) / (tau - 1).

    There the gain at an endless batch is 1. Domain: 1 < tau < w.
    """
    (found,) = solve(endless_batch_gain() - 1, CONTEXT)
    return _upright(found)


class WithoutBreakeven(NamedTuple):
    """Conditions under which no batch is a break-even. Where none holds there is one."""

    below_from_the_start: Relational
    never_below: Relational
    cache_bound: Relational


def without_breakeven() -> WithoutBreakeven:
    """Say what removes the break-even.

    ``below_from_the_start``: tau <= 1, a pass yields nothing more. ``never_below``: tau >= w, every position is
    kept. ``cache_bound``: the context is so long that reading it, which w positions share, outweighs their
    arithmetic.
    """
    return WithoutBreakeven(
        below_from_the_start=Le(TOKENS_KEPT, 1),
        never_below=Ge(TOKENS_KEPT, SEQ_POSITIONS),
        cache_bound=Ge(CONTEXT, context_without_breakeven()),
    )


# --- Speculation -------------------------------------------------------------------------------


def tokens_of_a_cycle() -> Expr:
    """Tokens that one cycle yields on average, [1]:  1 + a + ... + a^g = (1 - a^(g+1)) / (1 - a), and g + 1 at a = 1.

    The i-th draft counts if it and all before it are accepted; one token comes from the check itself.
    """
    i = Symbol("i", integer=True, nonnegative=True)
    return summation(ACCEPT**i, (i, 0, DRAFTS))


def speculative_gain() -> Expr:
    """Gain of speculation at any batch, [1]:  tau / (v + g c), v = t(n (g+1)) / t(n), tau tokens of a cycle."""
    return TOKENS_KEPT / (WIDER + DRAFTS * DRAFT_COST)


def checking_ratio() -> Expr:
    """Time of a checking pass over that of a plain one, dense and at short context, [1].

    v = max(m_r, n (g+1)) / max(m_r, n).
    """
    ratio = pass_time().subs(SEQ_POSITIONS, DRAFTS + 1) / pass_time().subs(SEQ_POSITIONS, 1)
    return _in_ridges(ratio)


def first_decline_batch() -> Expr:
    """Batch up to which checking costs nothing, [1]:  m_r / (g + 1).

    Up to there the gain is constant, tau / (1 + g c), at any context; above it falls. It is no break-even.
    """
    (batch,) = solve(SEQUENCES * (DRAFTS + 1) - RIDGE_POSITIONS, SEQUENCES)
    return batch


def speculative_breakeven_batch() -> Expr:
    """Batch above which speculation is slower than plain decoding, [1].

    `breakeven_batch` with g + 1 positions for tau - g c tokens: drafts cost time, as if so many tokens fewer were
    kept. At short context and without a fixed time: m_r (tau - g c) / (g + 1).
    """
    return _speculative(breakeven_batch())


def speculative_context_without_breakeven() -> Expr:
    """Context from which speculation gains at every batch, [token]:  s_kappa (g + 1 + g c - tau) / (tau - g c - 1)."""
    return _upright(_speculative(context_without_breakeven()))


def speculation_without_breakeven() -> WithoutBreakeven:
    """Say what removes the break-even of speculation; fields as in `without_breakeven`."""
    return WithoutBreakeven(*(_speculative(condition) for condition in without_breakeven()))


def _speculative(expr: Expr) -> Expr:
    return expr.subs({SEQ_POSITIONS: DRAFTS + 1, TOKENS_KEPT: TOKENS_KEPT - DRAFTS * DRAFT_COST}, simultaneous=True)


def next_draft_pays() -> Expr:
    """Above zero where one more draft token raises the gain while checking is free, [1]:  a^(g+1) (1 + g c) - c tau.

    The next draft brings a^(g+1) tokens and costs what c tokens take at the present rate.
    """
    brings = Symbol("brings", positive=True)
    more = (TOKENS_KEPT + brings) / (1 + (DRAFTS + 1) * DRAFT_COST)
    now = TOKENS_KEPT / (1 + DRAFTS * DRAFT_COST)
    above, _ = fraction(together(more - now))
    return collect(expand(above), brings, factor).subs(brings, ACCEPT ** (DRAFTS + 1))


def best_draft_length() -> Expr:
    """Draft length of the largest gain while checking is free, as a real number, [1].

    Domain: 0 < a < 1 and c > 0; below zero: do not draft. The whole length of the largest gain is one of its two
    neighbours. Without a draft cost there is no limit.
    """
    gain_of = (1 - ACCEPT ** (DRAFTS + 1)) / ((1 - ACCEPT) * (1 + DRAFTS * DRAFT_COST))
    slope, _ = fraction(cancel(gain_of.diff(DRAFTS) * (1 - ACCEPT)))
    (found,) = solve(slope, DRAFTS)
    # the equation has two roots; the other one, of the principal branch, lies below zero
    return found.replace(LambertW, lambda x, *_: LambertW(x, -1))


# --- Block diffusion ---------------------------------------------------------------------------


def block_intensity() -> Expr:
    """Operations for each byte of a pass over blocks, [FLOP/byte]:  n l (2 N + a s) / (W + n kappa s).

    Dense, one sequence, no context: 2 l / b. What positions of a block see of each other is left out: l << s.
    """
    work = SEQUENCES * BLOCK * (FLOP_PER_WEIGHT * N_MATMUL + ATTENTION_FLOP * CONTEXT)
    return work / (STREAMED + SEQUENCES * KAPPA * CONTEXT)


def ridge_block() -> Expr:
    """Block whose pass of one sequence without context sits at the ridge, [1]:  R W / (2 N)."""
    (found,) = solve(block_intensity().subs({SEQUENCES: 1, CONTEXT: 0}) - RIDGE, BLOCK)
    return found


def block_gain() -> Expr:
    """Gain of blocks over one token at a time, dense and at short context, [1].

    (l / T) max(m_r, n) / max(m_r, n l):  l / T while n l <= m_r, and 1 / T from n = m_r.
    """
    return _in_ridges(_blocks(gain()))


def saturated_tokens() -> Expr:
    """Tokens per second of one GPU at an endless batch without context, [1/s]:  P / (2 N T). One at a time: P / (2 N).

    Domain: dense, or every expert in use.
    """
    rate = SEQUENCES * TOKENS_KEPT / multiplying_pass().subs(CONTEXT, 0)
    return limit(_blocks(rate), SEQUENCES, oo)


def crossover_batch() -> Expr:
    """Batch from which one token at a time is faster than blocks, [1].

    (m_r + (1 - T/l) f/t_pos) / (T - (1 - T/l) s/s_kappa).  Domain as for `breakeven_batch`. At short context and
    without a fixed time: m_r / T.
    """
    above, below = fraction(_blocks(breakeven_batch()))
    per_block = PASSES / BLOCK
    above, below = expand(above * per_block), expand(below * per_block)
    return collect(above, OVERHEAD, factor) / collect(below, CONTEXT, factor)


def block_context_without_crossover() -> Expr:
    """Context from which one token at a time is slower at every batch, [token]:  s_kappa l (T - 1) / (l - T)."""
    return _upright(_blocks(context_without_breakeven()))


def _blocks(expr: Expr) -> Expr:
    return expr.subs({SEQ_POSITIONS: BLOCK, TOKENS_KEPT: BLOCK / PASSES})


def job_cost_ratio() -> Expr:
    """Arithmetic of a whole request in blocks over one token at a time, [1]:  (S + T G) / (S + G).

    Reading the prompt costs both the same: a long one shrinks the penalty and never turns it into a gain.
    """
    one = PROMPT_LENGTH + ANSWER_LENGTH
    blocks = PROMPT_LENGTH + ANSWER_LENGTH / BLOCK * PASSES * BLOCK
    return blocks / one


def answer_time_in_blocks() -> Expr:
    """Time of an answer that comes in whole blocks, [s]:  p + ceil(G / l) T t. A short answer pays a whole block."""
    return PROMPT_TIME + ceiling(ANSWER_LENGTH / BLOCK) * PASSES * PASS_TIME


# --- Blocks that take more passes where the text is hard ---------------------------------------


def adaptive_tokens_kept() -> Expr:
    """Tokens per pass of easy and hard blocks in one stream, [1]:  l / E[T].

    Many blocks yield l tokens each and take the sum of their passes: tokens over passes tends to l / E[T], the
    right number for a rate.
    """
    return BLOCK / (SHARE_EASY * PASSES_EASY + (1 - SHARE_EASY) * PASSES_HARD)


def mean_of_block_rates() -> Expr:
    """Mean over blocks of the tokens per pass of each, [1]:  E[l / T]. A mean over tasks is of this kind."""
    return SHARE_EASY * BLOCK / PASSES_EASY + (1 - SHARE_EASY) * BLOCK / PASSES_HARD


def excess_of_mean_rate() -> Expr:
    """How much too high the mean of rates is, [1]:  E[T] E[1/T] - 1 = q (1 - q) (T_e - T_h)^2 / (T_e T_h).

    Never below zero (Jensen: 1/T is convex), and zero only if all blocks take the same.
    """
    spread = SHARE_EASY * (1 - SHARE_EASY)
    return spread * factor(cancel((mean_of_block_rates() / adaptive_tokens_kept() - 1) / spread))


# --- Diffusion of the whole sequence, without a cache ------------------------------------------


def full_sequence_positions() -> Expr:
    """Positions of one request over all its passes, [1]:  (S + G) T: every pass computes the prompt again."""
    return (PROMPT_LENGTH + ANSWER_LENGTH) * PASSES


def full_sequence_gain() -> Expr:
    """Time of a request alone, one token at a time, over that of T passes over all of it, [1].

    (S + G m_r) / (T max(m_r, S + G)).  Domain: batch 1, dense, the prompt is long enough to multiply (S >= m_r),
    the cache and fixed times left out.
    """
    one = PROMPT_LENGTH * position_time() + ANSWER_LENGTH * weights_time()
    whole = PROMPT_LENGTH + ANSWER_LENGTH
    all_of_it = PASSES * Max(weights_time(), whole * position_time())
    return _in_ridges(one / all_of_it)


def full_sequence_passes_at_parity() -> Expr:
    """Count the passes below which it is faster for one request alone, [1]:  (S + G m_r) / (S + G).

    Domain: S + G >= m_r.
    """
    one = PROMPT_LENGTH * position_time() + ANSWER_LENGTH * weights_time()
    (passes,) = solve(full_sequence_positions() * position_time() - one, PASSES)
    return _in_ridges(passes)


def full_sequence_crossover_batch() -> Expr:
    """Batch from which one token at a time is faster, prompt aside, [1]:  m_r G / (T (S + G)). Below 1: always.

    Domain: S + G >= m_r, so that its passes multiply from the first request on.
    """
    whole = PROMPT_LENGTH + ANSWER_LENGTH
    return breakeven_batch().subs({OVERHEAD: 0, CONTEXT: 0}).subs({SEQ_POSITIONS: whole, TOKENS_KEPT: _per_pass()})


def _per_pass() -> Expr:
    return ANSWER_LENGTH / PASSES


# --- A whole request at saturation -------------------------------------------------------------


def saturated_request_time() -> Expr:
    """Time that a request takes from a GPU at an endless batch, [s].

    t_pos (S + (G / tau) (w + g c + (1 + g c) s/s_kappa)):  the prompt once, then w positions and one reading of the
    cache in each of G / tau cycles, and the drafts in passes of one position. One token at a time: w = tau = 1, g = 0.
    Blocks: w = l, tau = l / T, g = 0.
    """
    draft = DRAFTS * DRAFT_COST * multiplying_pass().subs(SEQ_POSITIONS, 1)
    cycles = ANSWER_LENGTH / TOKENS_KEPT * (multiplying_pass() + draft)
    prompts = SEQUENCES * PROMPT_LENGTH * position_time()
    each = _in_scales(limit((cycles + prompts) / SEQUENCES, SEQUENCES, oo)) / POSITION_TIME
    of_answer = ANSWER_LENGTH / TOKENS_KEPT
    answer = collect(expand((each - PROMPT_LENGTH) / of_answer), CONTEXT, factor)
    return POSITION_TIME * (PROMPT_LENGTH + of_answer * answer)


def saturated_full_sequence_time() -> Expr:
    """Time that a request of T whole passes takes from a GPU at an endless batch, [s]:  t_pos (S + G) T."""
    return full_sequence_positions() * POSITION_TIME
