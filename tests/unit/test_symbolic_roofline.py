"""The roofline: units, limits, monotonicity, and what quantization moves."""

import pytest
from sympy import Rational, diff, limit, oo, simplify

from analysis.symbolic import roofline
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
    UNITS,
    WEIGHTS,
    with_constants,
)
from analysis.units import ONE, byte, flop, second, unit_of, unit_ratio


@pytest.mark.parametrize(
    ("derive", "unit"),
    [
        (roofline.pass_flop, flop),
        (roofline.pass_byte, byte),
        (roofline.pass_intensity, flop / byte),
        (roofline.matmul_intensity, flop / byte),
        (roofline.ridge, flop / byte),
        (roofline.attainable_ridge, flop / byte),
        (roofline.attainable, flop / second),
        (roofline.memory_time, second),
        (roofline.compute_time, second),
        (roofline.pass_time, second),
        (roofline.positions_at_ridge, ONE),
    ],
)
def test_units(derive, unit):
    assert unit_ratio(unit_of(derive(), UNITS), unit) == 1


def test_one_stream_in_16_bit_does_one_operation_for_each_byte():
    assert with_constants(roofline.pass_intensity()).subs({POSITIONS: 1, BYTES_PER_WEIGHT: 2}) == 1


def test_the_size_of_the_model_cancels():
    assert WEIGHTS not in roofline.pass_intensity().free_symbols
    assert WEIGHTS not in roofline.positions_at_ridge().free_symbols


def test_limits_of_a_matmul():
    """Nothing to do, no intensity; very many positions, and only what goes in and comes out is moved."""
    intensity = roofline.matmul_intensity()
    square = intensity.subs(OUTPUTS, INPUTS)
    assert limit(intensity, POSITIONS, 0) == 0
    ceiling = FLOP_PER_WEIGHT * INPUTS * OUTPUTS / (BYTES_PER_ACT * (INPUTS + OUTPUTS))
    assert simplify(limit(intensity, POSITIONS, oo) - ceiling) == 0
    assert simplify(limit(with_constants(square), POSITIONS, oo) - INPUTS / BYTES_PER_ACT) == 0
    assert simplify(limit(square, INPUTS, oo) - roofline.pass_intensity()) == 0


def test_more_positions_raise_the_intensity_and_wider_numbers_lower_it():
    """Proved for every positive value: the sign of the derivative."""
    intensity = roofline.matmul_intensity()
    assert simplify(diff(intensity, POSITIONS)).is_positive
    assert simplify(diff(intensity, BYTES_PER_WEIGHT)).is_negative
    assert simplify(diff(intensity, BYTES_PER_ACT)).is_negative
    assert diff(roofline.pass_intensity(), POSITIONS).is_positive


def test_activations_only_lower_the_intensity():
    gap = roofline.pass_intensity() - roofline.matmul_intensity()
    assert simplify(gap).is_positive


def test_more_bandwidth_lowers_the_ridge_and_more_compute_raises_it():
    assert diff(roofline.ridge(), MEM_BW).is_negative
    assert diff(roofline.ridge(), PEAK).is_positive
    assert simplify(roofline.attainable_ridge() / roofline.ridge() - MFU / MBU) == 0


def test_the_roof_breaks_at_the_ridge():
    """Below it the slope is the bandwidth, above it the peak holds, at it both agree."""
    roof = roofline.attainable()
    ridge = roofline.ridge()
    assert simplify(roof.subs(INTENSITY, ridge)) == PEAK
    assert simplify(roof.subs(INTENSITY, ridge / 3)) == PEAK / 3
    assert simplify(roof.subs(INTENSITY, 3 * ridge)) == PEAK


def test_time_and_roof_say_the_same():
    """Operations over the time of a pass are the attainable performance at its intensity."""
    point = {WEIGHTS: 7, BYTES_PER_WEIGHT: 2, PEAK: 312, MEM_BW: Rational(3, 2)}
    for m in (1, 50, 208, 416, 9999):
        at = {**point, POSITIONS: m}
        rate = with_constants(roofline.pass_flop() / roofline.pass_time()).subs(at)
        intensity = with_constants(roofline.pass_intensity()).subs(at)
        assert rate == roofline.attainable().subs(INTENSITY, intensity).subs(at)


def test_positions_at_the_ridge_balance_the_two_times():
    at = roofline.positions_at_ridge()
    assert simplify(with_constants(roofline.memory_time() - roofline.compute_time().subs(POSITIONS, at))) == 0
    assert simplify(roofline.pass_intensity().subs(POSITIONS, at) - roofline.ridge()) == 0


def test_weight_only_quantization_raises_the_intensity_and_leaves_the_ridge():
    """4-bit weights computed in 16 bit: a quarter of the bytes, four times the intensity, the same ridge."""
    quarter = {BYTES_PER_WEIGHT: BYTES_PER_WEIGHT / 4}
    assert roofline.pass_intensity().subs(quarter) == 4 * roofline.pass_intensity()
    assert roofline.ridge().subs(quarter) == roofline.ridge()
    assert simplify(roofline.positions_at_ridge().subs(quarter) - roofline.positions_at_ridge() / 4) == 0


def test_a_narrower_compute_format_moves_both_and_keeps_the_batch_at_the_ridge():
    """8-bit weights computed in 8 bit: half the bytes at twice the peak, so the same number of positions."""
    native = {BYTES_PER_WEIGHT: BYTES_PER_WEIGHT / 2, PEAK: 2 * PEAK}
    at = roofline.positions_at_ridge()
    assert simplify(at.subs(native, simultaneous=True) - at) == 0
    assert roofline.ridge().subs(PEAK, 2 * PEAK) == 2 * roofline.ridge()
