"""What a transformer weighs and what a pass costs, as expressions.

Written for equal layers with one kind of attention: the cases that the page derives. The numeric twin,
`analysis.model.transformer`, sums over layers of any kind.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import (
    Add,
    Expr,
    Min,
    Piecewise,
    Symbol,
    cancel,
    collect,
    expand,
    factor,
    fraction,
    solve,
    sqrt,
    summation,
)

from analysis.symbols import (
    ATTENTION_FLOP,
    BYTES_PER_WEIGHT,
    CONTEXT,
    EXPERTS,
    FFN,
    FLOP_PER_WEIGHT,
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
    NEIGHBOUR,
    POSITIONS,
    RIDGE,
    ROPE_DIM,
    SEQ_POSITIONS,
    SEQUENCES,
    SKEW,
    STREAMED,
    TOKEN_EACH,
    TOP_K,
    VOCAB,
    WINDOW,
)

# --- Parameters --------------------------------------------------------------------------------


def attention_params() -> Expr:
    """Projections of one layer, [1]:  d d_h (2 h_q + 2 h_kv): queries and output, keys and values."""
    return HIDDEN * HEAD_DIM * (2 * HEADS + 2 * KV_HEADS)


def mlp_params() -> Expr:
    """Gated MLP of one layer, [1]:  3 d d_f. A plain one has two matrices."""
    return 3 * HIDDEN * FFN


def params_total() -> Expr:
    """All parameters of a dense model with untied embeddings and two norms per layer, [1]."""
    return LAYERS * (attention_params() + mlp_params() + 2 * HIDDEN) + 2 * VOCAB * HIDDEN + HIDDEN


def params_matmul() -> Expr:
    """Weights that multiply a token, [1]: no norms, and no input embedding, which is a look-up."""
    return LAYERS * (attention_params() + mlp_params()) + VOCAB * HIDDEN


def expert_union() -> Expr:
    """Share of the experts that at least one of m positions uses, [1]:  1 - (1 - k/n_e)^m.

    For independent uniform routing; skew lowers it.
    """
    return 1 - (1 - TOP_K / EXPERTS) ** POSITIONS


def distinct_experts(uses: Sequence[Expr]) -> Expr:
    """Experts that at least one of m positions uses, of experts with these chances to be used by one, [1].

    Sum over the experts of 1 - (1 - p_i)^m, for positions that choose independently of each other.
    """
    return Add(*(1 - (1 - chance) ** POSITIONS for chance in uses))


def skewed_chances() -> tuple[Expr, Expr]:
    """Chance that one position uses a favourite expert, and any other one, [1].

    A share of the positions takes the k favourites, the others draw evenly: q + z (1 - q) and (1 - z) q with
    q = k/n_e. Their sum over all experts stays k.
    """
    evenly = TOP_K / EXPERTS
    return evenly + SKEW * (1 - evenly), (1 - SKEW) * evenly


def expert_union_skewed() -> Expr:
    """Share of the experts that at least one of m positions uses where some are favourites, [1].

    q (1 - (1 - p_f)^m) + (1 - q) (1 - (1 - p_o)^m), with `skewed_chances`. Without skew it is `expert_union`; with
    full skew every pass reads k experts. Domain: positions of one text, which have the same favourites.
    """
    favourite, other = skewed_chances()
    share = TOP_K / EXPERTS
    return share * distinct_experts([favourite]) + (1 - share) * distinct_experts([other])


def expert_union_of_texts() -> Expr:
    """Share of the experts that w positions of each of n texts use, every text with favourites of its own, [1].

    1 - (1 - u_w)^n: texts are independent of each other. With one position each, skew changes nothing.
    """
    return 1 - (1 - expert_union_skewed().subs(POSITIONS, SEQ_POSITIONS)) ** SEQUENCES


def neighbour_share() -> Expr:
    """Share of the experts of one position that another one uses too, [1]:  q + z^2 (1 - q), q = k/n_e."""
    favourite, other = skewed_chances()
    pairs = TOP_K * favourite**2 + (EXPERTS - TOP_K) * other**2
    evenly = Symbol("q", positive=True)
    share = collect(expand(factor(expand(pairs / TOP_K)).subs(TOP_K, evenly * EXPERTS)), SKEW, factor)
    return share.subs(evenly, TOP_K / EXPERTS)


def skew_of_neighbours() -> Expr:
    """Skew at which two positions share so many experts, [1]:  z = sqrt((o - q) / (1 - q)). Domain: o >= q."""
    square = Symbol("z2", positive=True)
    (found,) = solve(neighbour_share().subs(SKEW**2, square) - NEIGHBOUR, square)
    above, below = fraction(factor(found))
    return sqrt(above / below)


def ridge_of_experts() -> Expr:
    """Positions at the ridge of a sparse model over those of a dense one of equal format, [1]:  N_all / N_mm.

    Every expert is read, and only k multiply: W = b N_all bytes against b N_mm.
    """
    sparse = RIDGE * BYTES_PER_WEIGHT * N_TOTAL / (FLOP_PER_WEIGHT * N_MATMUL)
    return cancel(sparse / (RIDGE * BYTES_PER_WEIGHT / FLOP_PER_WEIGHT))


# --- Cache -------------------------------------------------------------------------------------


def kv_bytes_per_token() -> Expr:
    """Bytes that one token leaves in the cache, [byte/token]:  2 L h_kv d_h b_kv."""
    return 2 * LAYERS * KV_HEADS * HEAD_DIM * KV_BYTE


def latent_bytes_per_token() -> Expr:
    """Bytes that a token leaves with latent attention, [byte/token]:  L (r + d_r) b_kv, whatever the heads."""
    return LAYERS * (LATENT_RANK + ROPE_DIM) * KV_BYTE


def kv_bytes_windowed() -> Expr:
    """Bytes of one sequence that a windowed layer needs, [byte]:  2 h_kv d_h b_kv min(s, s_win)."""
    return kv_bytes_per_token() / LAYERS * Min(CONTEXT, WINDOW)


# --- Arithmetic --------------------------------------------------------------------------------


def matmul_flop() -> Expr:
    """FLOP of the matrix products for w positions, [FLOP]:  2 N_mm w."""
    return FLOP_PER_WEIGHT * N_MATMUL * SEQ_POSITIONS


def causal_tokens_seen() -> Expr:
    """Tokens that w positions see in sum, after s cached ones, [token]:  w s + w (w + 1)/2.

    The i-th of them sees the cache, those before it and itself.
    """
    i = Symbol("i", integer=True, positive=True)
    return summation(CONTEXT + i * TOKEN_EACH, (i, 1, SEQ_POSITIONS))


def windowed_tokens_seen() -> Expr:
    """Tokens seen in sum by a layer that sees at most a window, [token]."""
    return _seen_since_start(CONTEXT + SEQ_POSITIONS * TOKEN_EACH) - _seen_since_start(CONTEXT)


def _seen_since_start(end: Expr) -> Expr:
    def growing(tokens: Expr) -> Expr:
        return tokens * (tokens + TOKEN_EACH) / (2 * TOKEN_EACH)

    return Piecewise((growing(end), end <= WINDOW), (growing(WINDOW) + (end - WINDOW) * WINDOW / TOKEN_EACH, True))


def attention_flop_per_token_seen() -> Expr:
    """FLOP of one position per token that it sees, all layers, [FLOP/token]:  4 L h_q d_h.

    The score is a product of width d_h, the weighted sum of values another: 2 FLOP per number each.
    """
    return 2 * FLOP_PER_WEIGHT * LAYERS * HEADS * HEAD_DIM / TOKEN_EACH


def absorbed_flop_per_token_seen() -> Expr:
    """FLOP per token seen, latent attention in absorbed form, [FLOP/token]:  2 L h_q (2 r + d_r).

    Queries are projected into the latent space, so that the score needs r + d_r products and the sum r.
    """
    return FLOP_PER_WEIGHT * LAYERS * HEADS * (2 * LATENT_RANK + ROPE_DIM) / TOKEN_EACH


def attention_intensity() -> Expr:
    """Attention FLOP per cached byte of one position, [FLOP/byte]:  a / kappa."""
    return ATTENTION_FLOP / KAPPA


def grouped_attention_intensity() -> Expr:
    """Intensity of grouped-query attention, [FLOP/byte]:  2 h_q / (h_kv b_kv), whatever the layers and widths."""
    return attention_flop_per_token_seen() / kv_bytes_per_token()


# --- Limits of the context ---------------------------------------------------------------------


def context_limit() -> Expr:
    """Context above which no batch reaches the ridge, [token]:  2 N_mm / (kappa (R - a/kappa)).

    A large batch shares the weights among so many sequences that each costs only its own work,
    2 N_mm + a s, and its own bytes, kappa s. Their ratio falls with s and meets the ridge once.
    """
    work = FLOP_PER_WEIGHT * N_MATMUL + ATTENTION_FLOP * CONTEXT
    (limit,) = solve(work - RIDGE * KAPPA * CONTEXT, CONTEXT)
    above, below = fraction(limit)
    return -above / -below


def folk_context_limit() -> Expr:
    """Usual approximation of the limit, [token]:  2 N / (kappa R): all parameters, no attention."""
    return FLOP_PER_WEIGHT * N_TOTAL / (KAPPA * RIDGE)


def batch_at_ridge() -> Expr:
    """Sequences at which a pass reaches the ridge, [1]:  R W / (2 N_mm - (R kappa - a) s). Below zero: never."""
    n = Symbol("n", positive=True)
    work = n * (FLOP_PER_WEIGHT * N_MATMUL + ATTENTION_FLOP * CONTEXT)
    (batch,) = solve(work - RIDGE * (STREAMED + n * KAPPA * CONTEXT), n)
    return batch


def context_limit_in_memory() -> Expr:
    """Context above which the batch that reaches the ridge no longer fits, [token].

    The cache of that batch fills the memory M that the weights leave. With endless memory it is
    `context_limit`.
    """
    (limit,) = solve(batch_at_ridge() * KAPPA * CONTEXT - MEMORY, CONTEXT)
    return factor(limit)
