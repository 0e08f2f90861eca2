"""How long a pass takes where reading bounds it, and what others' prompts add to it."""

from __future__ import annotations

from sympy import Expr

from analysis.symbols import (
    ANSWER_PASSES,
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
