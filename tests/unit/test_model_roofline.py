"""The roofline in numbers: agreement with the derivation, published cases, guards, invariances."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Rational as R  # noqa: N817 - the customary short form in exact test values

from analysis.inputs import InputError
from analysis.model import roofline
from analysis.reference.tables import SNAPSHOT, accelerator, accelerators
from analysis.symbolic import roofline as symbolic
from analysis.symbols import (
    BYTES_PER_ACT,
    BYTES_PER_WEIGHT,
    INPUTS,
    INTENSITY,
    MBU,
    MEM_BW,
    MFU,
    OUTPUTS,
    PEAK,
    POSITIONS,
    WEIGHTS,
    with_constants,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "roofline.csv"
POSITIVE = st.floats(1e-3, 1e9)


@pytest.mark.parametrize(
    ("m", "n", "bw", "ba", "d_in", "d_out", "peak", "mem"),
    [
        (1, 70 * 10**9, R(2), 2, 8192, 28672, 989 * 10**12, 3350 * 10**9),
        (64, 8 * 10**9, R(9, 16), 1, 4096, 4096, 312 * 10**12, 2039 * 10**9),
        (4096, 26 * 10**9, R(1), 2, 2816, 8448, 148 * 10**12, 4 * 10**12),
    ],
)
def test_functions_agree_with_their_derivations(m, n, bw, ba, d_in, d_out, peak, mem):
    point = {
        POSITIONS: m, WEIGHTS: n, BYTES_PER_WEIGHT: bw, BYTES_PER_ACT: ba, INPUTS: d_in, OUTPUTS: d_out,
        PEAK: peak, MEM_BW: mem, MFU: R(3, 5), MBU: R(7, 10), INTENSITY: R(2 * m) / bw,
    }  # fmt: skip

    def exact(derivation):
        return pytest.approx(float(with_constants(derivation).subs(point)), rel=1e-12)

    bw, peak, mem = float(bw), float(peak), float(mem)
    flop, byte = roofline.pass_flop(n, positions=m), roofline.pass_byte(n, bytes_per_weight=bw)
    intensity = roofline.pass_intensity_flop_per_byte(m, bytes_per_weight=bw)
    ridge = roofline.ridge_flop_per_byte(peak, mem_bw_byte_per_s=mem)
    times = roofline.pass_time(flop, byte=byte, peak_flop_per_s=peak, mem_bw_byte_per_s=mem)
    assert flop == exact(symbolic.pass_flop())
    assert byte == exact(symbolic.pass_byte())
    assert intensity == exact(symbolic.pass_intensity())
    assert roofline.matmul_intensity_flop_per_byte(
        m, inputs=d_in, outputs=d_out, bytes_per_weight=bw, bytes_per_activation=ba
    ) == exact(symbolic.matmul_intensity())
    assert ridge == exact(symbolic.ridge())
    assert roofline.ridge_flop_per_byte(peak, mem_bw_byte_per_s=mem, mfu=0.6, mbu=0.7) == exact(
        symbolic.attainable_ridge()
    )
    assert roofline.attainable_flop_per_s(intensity, peak_flop_per_s=peak, mem_bw_byte_per_s=mem) == exact(
        symbolic.attainable()
    )
    assert times.memory_s == exact(symbolic.memory_time())
    assert times.compute_s == exact(symbolic.compute_time())
    assert times.pass_s == exact(symbolic.pass_time())
    assert roofline.positions_at_ridge(ridge, bytes_per_weight=bw) == exact(symbolic.positions_at_ridge())


@pytest.mark.parametrize("row", list(csv.DictReader(GOLDEN.read_text().splitlines())), ids=lambda row: row["locator"])
def test_published_worked_examples(row):
    """Published numbers, to half a unit in their last printed digit."""
    value = {key: float(cell) for key, cell in row.items() if key not in ("quantity", "source", "locator") and cell}
    gpus = value.get("gpus", 1)
    peak, mem_bw = value["peak_tflop_per_s"] * 1e12 * gpus, value["mem_bw_gb_per_s"] * 1e9 * gpus
    if row["quantity"] == "ridge":
        ours = roofline.ridge_flop_per_byte(peak, mem_bw_byte_per_s=mem_bw)
    else:
        byte = roofline.pass_byte(value["weights"], bytes_per_weight=value["bytes_per_weight"]) + value["extra_byte"]
        flop = roofline.pass_flop(value["weights"], positions=value["positions"])
        ours = 1e3 * roofline.pass_time(flop, byte=byte, peak_flop_per_s=peak, mem_bw_byte_per_s=mem_bw).pass_s
    assert ours == pytest.approx(value["expected"], abs=0.5 * 10 ** -value["digits"])


@pytest.mark.parametrize(("positions", "ratio"), [(1, 1), (208, 1), (312, 1.5), (416, 2)])
def test_a_pass_costs_nothing_more_up_to_the_ridge(positions, ratio):
    """kipply, transformer inference arithmetic: 312 tokens take 1.5 times as long as 208, and 416 twice."""
    byte = roofline.pass_byte(52e9, bytes_per_weight=2)

    def seconds(m):
        flop = roofline.pass_flop(52e9, positions=m)
        return roofline.pass_time(flop, byte=byte, peak_flop_per_s=312e12, mem_bw_byte_per_s=1.5e12).pass_s

    assert seconds(positions) == pytest.approx(ratio * seconds(1), rel=1e-12)


def test_model_flop_utilization_is_taken_of_the_dense_peak():
    """480 TFLOP/s on an H100 SXM are 48.5 % of the dense peak; 24.3 % is of the sparse one.

    https://github.com/foundation-model-stack/fms-fsdp/issues/89, read 2026-11-30: the project's readme says 46.
    """
    peak = accelerator("h100-sxm", as_of=SNAPSHOT).peak("bf16")
    assert 480e12 / peak == pytest.approx(0.485, abs=0.0005)


def test_the_pcie_card_has_756_dense():
    """1,513 is the sparse figure: https://github.com/qoofyk/LLM_Sizing_Guide/issues/3, read 2026-11-30."""
    assert accelerator("h100-pcie", as_of=SNAPSHOT).peak("bf16") == 756.5e12


def test_sixteen_bit_doubles_the_tf32_peak_and_its_ridge():
    """https://github.com/pytorch/torchtitan/issues/668, read 2026-11-30: a TF32 peak stood for a BF16 one."""
    points = roofline.ridge_points([accelerator("h100-sxm", as_of=SNAPSHOT)]).set_index("number_format")
    for column in ("peak_flop_per_s", "ridge_flop_per_byte"):
        assert points[column]["bf16"] / points[column]["tf32"] == pytest.approx(2, rel=1e-3)


def test_ridge_points_of_all_accelerators():
    """By hand from the data sheets: H100 989.4/3.35, H20 148/4, L40S 362.05/0.864."""
    points = roofline.ridge_points(accelerators(as_of=SNAPSHOT))
    bf16 = points[points["number_format"] == "bf16"].set_index("accelerator")
    for name, ridge in (("h100-sxm", 295), ("h20", 37), ("l40s", 419), ("mi300x", 247)):
        assert bf16["ridge_flop_per_byte"][name] == pytest.approx(ridge, abs=0.5)
    assert set(bf16[bf16["assumed"]].index) == {"a10g", "tpu7x", "rtx-5090"}
    assert not points.duplicated(["accelerator", "number_format"]).any()


def test_arrays_broadcast_and_scalars_stay_scalars():
    positions = np.array([[1.0], [64.0]])
    byte = np.array([140e9, 70e9, 35e9])
    times = roofline.pass_time(
        roofline.pass_flop(70e9, positions=positions), byte=byte, peak_flop_per_s=989e12, mem_bw_byte_per_s=3350e9
    )
    assert times.memory_s.shape == times.compute_s.shape == times.pass_s.shape == times.memory_bound.shape == (2, 3)
    alone = roofline.pass_time(
        roofline.pass_flop(70e9, positions=64), byte=70e9, peak_flop_per_s=989e12, mem_bw_byte_per_s=3350e9
    )
    assert isinstance(alone.pass_s, float)
    assert isinstance(alone.memory_bound, bool)
    assert times.pass_s[1, 1] == alone.pass_s


@given(POSITIVE, POSITIVE, POSITIVE, POSITIVE, st.floats(1e-3, 1e3))
def test_the_unit_of_time_and_of_size_does_not_matter(flop, byte, peak, mem_bw, factor):
    """Milliseconds for seconds on both rates scale the time; gigabytes for bytes on both sides leave it."""
    plain = roofline.pass_time(flop, byte=byte, peak_flop_per_s=peak, mem_bw_byte_per_s=mem_bw).pass_s
    slower = roofline.pass_time(flop, byte=byte, peak_flop_per_s=peak / factor, mem_bw_byte_per_s=mem_bw / factor)
    larger = roofline.pass_time(flop, byte=byte * factor, peak_flop_per_s=peak, mem_bw_byte_per_s=mem_bw * factor)
    assert slower.pass_s == pytest.approx(plain * factor, rel=1e-12)
    assert larger.pass_s == pytest.approx(plain, rel=1e-12)


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), POSITIVE, POSITIVE)
def test_performance_rises_with_intensity_and_never_above_the_peak(low, high, peak, mem_bw):
    low, high = sorted((low, high))
    below, above = roofline.attainable_flop_per_s([low, high], peak_flop_per_s=peak, mem_bw_byte_per_s=mem_bw)
    assert below <= above <= peak


GUARDS = [
    (lambda x: roofline.pass_flop(x, positions=1), "weights", 0.0),
    (lambda x: roofline.pass_flop(1, positions=x), "positions", -1.0),
    (lambda x: roofline.pass_byte(1, bytes_per_weight=x), "bytes_per_weight", 0.0),
    (lambda x: roofline.pass_intensity_flop_per_byte(x, bytes_per_weight=2), "positions", float("nan")),
    (lambda x: roofline.ridge_flop_per_byte(x, mem_bw_byte_per_s=1), "peak_flop_per_s", 0.0),
    (lambda x: roofline.ridge_flop_per_byte(1, mem_bw_byte_per_s=x), "mem_bw_byte_per_s", float("inf")),
    (lambda x: roofline.ridge_flop_per_byte(1, mem_bw_byte_per_s=1, mfu=x), "mfu", 1.2),
    (lambda x: roofline.ridge_flop_per_byte(1, mem_bw_byte_per_s=1, mbu=x), "mbu", 0.0),
    (lambda x: roofline.pass_time(x, byte=1, peak_flop_per_s=1, mem_bw_byte_per_s=1), "flop", -3.0),
    (lambda x: roofline.pass_time(1, byte=x, peak_flop_per_s=1, mem_bw_byte_per_s=1), "byte", -3.0),
    (lambda x: roofline.positions_at_ridge(x, bytes_per_weight=1), "ridge_flop_per_byte", 0.0),
    (
        lambda x: roofline.attainable_flop_per_s(x, peak_flop_per_s=1, mem_bw_byte_per_s=1),
        "intensity_flop_per_byte",
        0.0,
    ),
    (
        lambda x: roofline.matmul_intensity_flop_per_byte(
            1, inputs=x, outputs=1, bytes_per_weight=1, bytes_per_activation=1
        ),
        "inputs",
        0.0,
    ),
]


@pytest.mark.parametrize(("call", "argument", "value"), GUARDS, ids=lambda part: part if isinstance(part, str) else "")
def test_guards_name_the_argument_and_the_value(call, argument, value):
    with pytest.raises(InputError) as refusal:
        call(value)
    assert refusal.value.where == argument
    assert str(value) in str(refusal.value)
    with pytest.raises(InputError, match=argument):
        call(np.array([1.0, value]))
