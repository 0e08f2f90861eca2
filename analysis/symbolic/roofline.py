"""The roofline: two times, their maximum, and where they meet, as expressions.

No numbers and no data. A pass multiplies every weight with each of its positions and reads every weight once,
however many positions share it: from that alone follows why one stream starves the arithmetic units.
"""

from __future__ import annotations

from sympy import Expr, Max, Min, solve

from analysis.symbols import (
    BYTES_PER_ACT,
    BYTES_PER_WEIGHT,
    FLOP_PER_WEIGHT,
    INPUTS,
    INTENSITY,
    MBU,
    MEM_BW,
    MFU,
    OUTPUTS,
    PEAK,
    POSITIONS,
    WEIGHTS,
)


def pass_flop() -> Expr:
    """Operations of one pass, [FLOP]:  2 m N."""
    return FLOP_PER_WEIGHT * POSITIONS * WEIGHTS


def pass_byte() -> Expr:
    """Weight bytes that one pass reads, [byte]:  b_w N. The number of positions does not enter."""
    return BYTES_PER_WEIGHT * WEIGHTS


def pass_intensity() -> Expr:
    """Operations for each weight byte of one pass, [FLOP/byte]:  2 m / b_w. The size of the model cancels."""
    return pass_flop() / pass_byte()


def matmul_intensity() -> Expr:
    """Intensity of one matmul with the numbers that go in and come out, [FLOP/byte].

    2 m d_in d_out / (b_w d_in d_out + b_a m (d_in + d_out)):  close to `pass_intensity` while m is far below
    d_in and d_out, and bounded above by 2 d_in d_out / (b_a (d_in + d_out)).
    """
    weights = INPUTS * OUTPUTS
    moved = BYTES_PER_WEIGHT * weights + BYTES_PER_ACT * POSITIONS * (INPUTS + OUTPUTS)
    return FLOP_PER_WEIGHT * POSITIONS * weights / moved


def ridge() -> Expr:
    """Intensity at which reading and computing take equally long, [FLOP/byte]:  P_peak / BW."""
    return PEAK / MEM_BW


def attainable_ridge() -> Expr:
    """Ridge of what engines reach of both peaks, [FLOP/byte]:  (mfu P_peak) / (mbu BW)."""
    return MFU * PEAK / (MBU * MEM_BW)


def attainable() -> Expr:
    """Largest performance under the roof, [FLOP/s]:  min(P_peak, I BW)."""
    return Min(PEAK, INTENSITY * MEM_BW)


def memory_time() -> Expr:
    """Time to read the weights once, [s]:  b_w N / BW."""
    return pass_byte() / MEM_BW


def compute_time() -> Expr:
    """Time to multiply, [s]:  2 m N / P_peak."""
    return pass_flop() / PEAK


def pass_time() -> Expr:
    """Time of a pass whose reading and multiplying overlap, [s]:  max(b_w N / BW, 2 m N / P_peak)."""
    return Max(memory_time(), compute_time())


def positions_at_ridge() -> Expr:
    """Positions at which both times are equal, [1]:  m* = b_w P_peak / (2 BW).

    Below it another position costs no time; above it each costs the same. Narrower weights lower it when the
    compute format stays (weight-only quantization) and leave it when the peak rises as the width falls.
    """
    (solution,) = solve(memory_time() - compute_time(), POSITIONS)
    return solution
