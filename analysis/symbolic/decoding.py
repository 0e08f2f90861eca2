"""How long a pass takes where reading bounds it, and what others' prompts add to it."""

from __future__ import annotations

from sympy import Expr, Rational, fraction, limit, oo, simplify, solve

from analysis.symbols import (
    ANSWER_PASSES,
    BASE_TIME,
    BYTES_PER_WEIGHT,
    CONTEXT,
    GPUS,
    KAPPA,
    LAYER_TIME,
    LAYERS,
    MBU,
    MEM_BW,
    N_MATMUL,
    PASS_TIME,
    PROMPT_TIME,
    SEQUENCE_TIME,
    SEQUENCES,
)


def memory_bound_pass() -> Expr:
    """Time of a decoding pass that reading bounds, [s]:  t = (b_w N + n kappa s) / (G eta_b BW) + L t_L."""
    read_byte = BYTES_PER_WEIGHT * N_MATMUL + SEQUENCES * KAPPA * CONTEXT
    return read_byte / (GPUS * MBU * MEM_BW) + LAYERS * LAYER_TIME


def sequence_slope() -> Expr:
    """Time that one sequence more adds to such a pass, [s]:  kappa s / (G eta_b BW)."""
    return memory_bound_pass().diff(SEQUENCES)


def time_between_tokens() -> Expr:
    """Time between two tokens of a stream beside n - 1 others, [s]:  t + (n - 1) p / P."""
    return PASS_TIME + (SEQUENCES - 1) * PROMPT_TIME / ANSWER_PASSES


def max_load_passes() -> Expr:
    """Rate of passes at maximum load, each with a token for every sequence, [1/s]:  1 / (t + n p / P)."""
    return 1 / (PASS_TIME + SEQUENCES * PROMPT_TIME / ANSWER_PASSES)


def linear_pass() -> Expr:
    """Time of a pass as a line in its sequences, [s]:  t = t_0 + beta n. `memory_bound_pass` is one."""
    return BASE_TIME + SEQUENCE_TIME * SEQUENCES


def largest_swing() -> Expr:
    """Cost of a token at batch 1 over that at an endless batch, [1]:  1 + t_0 / (beta + p/P).

    What all sequences share, over what each brings with it: its cache in every pass, its prompt once an answer.
    """
    tokens = SEQUENCES * max_load_passes().subs(PASS_TIME, linear_pass())
    ratio = simplify(limit(tokens, SEQUENCES, oo) / tokens.subs(SEQUENCES, 1))
    return 1 + BASE_TIME / (BASE_TIME / (ratio - 1)).simplify().expand()


def prompt_share() -> Expr:
    """Share of a replica's time that reading prompts takes, [1]:  n p / (P t + n p)."""
    reading = SEQUENCES * PROMPT_TIME
    return reading / (ANSWER_PASSES * PASS_TIME + reading)


def batch_at_half() -> Expr:
    """Sequences at which reading prompts takes half of the time, [1]:  P t_0 / (p - P beta). Below zero: never."""
    half = prompt_share().subs(PASS_TIME, linear_pass()) - Rational(1, 2)
    (batch,) = solve(half, SEQUENCES)
    above, below = fraction(batch)
    return -above / -below
