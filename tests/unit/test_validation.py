"""How far the model is from measurements, and that the comparison itself is honest."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analysis.evidence import validation
from analysis.evidence.calibration import Stack, prior
from analysis.evidence.cases import REASONS, shipped_cases
from analysis.evidence.validation import TARGETS
from analysis.model.decoding import schedule_s
from analysis.reference.efficiency import measured_all_reduce_s
from analysis.reference.specs import Efficiency
from analysis.reference.tables import all_rows

CASES, SKIPPED = shipped_cases()
#: Targets that the model misses, and the error that it has instead. The page says why.
MISSED = {"single_stream_dense": 0.117, "batching_dense": 0.134}
#: Regimes that lean to the fast side by more than twice the aim, and by how much. The page says why.
LEANING = {"batching_dense": 0.108}


def test_every_row_is_scored_or_skipped_with_a_reason():
    rows = all_rows("measured")
    assert len(CASES) + len(SKIPPED) == len(rows)
    assert all(reason.strip() for reason in SKIPPED.values())
    assert set(rows["unused"]) - {""} == set(REASONS)


def test_no_measured_row_beats_the_ideal():
    """A breach would be a fault of the data first: prompt caching, shorter prompts than the label."""
    frame = validation.shipped_errors("roofline")
    rates = ~frame["id"].isin([case.measured.id for case in CASES if case.tokens is None])
    error = np.where(rates, frame["error"], -frame["error"])
    assert (error >= 0).all(), frame[error < 0]


@pytest.mark.parametrize("regime", TARGETS)
def test_the_error_on_validation_rows_meets_its_target_or_is_known_to_miss_it(regime):
    found = validation.comparison().loc[regime, "calibrated"]
    if regime in MISSED:
        assert found == pytest.approx(MISSED[regime], abs=0.005)
        assert found > TARGETS[regime], "the target is met: take it off the list of misses"
    else:
        assert found <= TARGETS[regime]


@pytest.mark.parametrize("regime", TARGETS)
def test_the_model_is_at_least_two_and_a_half_times_better_than_flat_caps(regime):
    row = validation.comparison().loc[regime]
    assert row["flat caps"] >= 2.5 * row["calibrated"]
    assert row["roofline"] >= row["flat caps"] or row["roofline"] > 5 * row["calibrated"]


@pytest.mark.parametrize("regime", [name for name in TARGETS if name.endswith("dense")])
def test_dense_predictions_lean_little_to_one_side(regime):
    """The aim is 5 % either way; the chapter says where it is missed. Twice the aim is a fault unless it is known."""
    found = validation.comparison().loc[regime, "bias"]
    if regime in LEANING:
        assert found == pytest.approx(LEANING[regime], abs=0.005)
        assert found > 0.10, "it leans less: take it off the list"
    else:
        assert abs(found) <= 0.10


def test_bias_counts_times_and_rates_the_same_way_round():
    """A time predicted a fifth too short and a rate predicted a quarter too high are both a quarter too fast."""
    frame = validation.errors(CASES)
    times = np.array([case.tokens is None for case in CASES])
    assert times.any()
    assert not times.all()
    ratio = (frame["predicted"] / frame["measured"]).to_numpy()
    assert frame["speed_ratio"].to_numpy() == pytest.approx(np.where(times, 1 / ratio, ratio))


def test_a_summary_by_hand():
    frame = pd.DataFrame({"regime": "prefill_dense", "cohort": ["a", "a", "a", "b"], "error": [0.1, -0.2, 0.3, -0.9]})
    frame["speed_ratio"] = 1 + frame["error"]
    row = validation.by_regime(frame).loc["prefill_dense"]
    assert row["scored"] == 4
    assert row["median_abs_error"] == pytest.approx(0.25)
    assert row["bias"] == pytest.approx(-0.05)
    assert row["within_25_percent"] == pytest.approx(0.5)
    # cohort a weighs sqrt(3) in all, cohort b 1: half of 2.73 is reached at the third row of a
    assert row["balanced_error"] == pytest.approx(0.3)


def test_an_error_of_a_quarter_is_within_and_regimes_keep_their_order():
    frame = pd.DataFrame({"regime": ["prefill_dense", "batching_moe"], "cohort": "a", "error": [0.25, -0.26]})
    table = validation.by_regime(frame.assign(speed_ratio=1.0))
    assert table.index.tolist() == ["batching_moe", "prefill_dense"]
    assert table["within_25_percent"].tolist() == [0, 1]


def test_the_middle_weight_is_counted_from_the_smallest_error():
    """Three cohorts: a of four rows weighs 2 in all, b and c 1 each: the half, 2 of 4, is reached with a's last."""
    frame = pd.DataFrame({"cohort": list("caaaab"), "error": [0.9, -0.4, 0.3, 0.2, 0.1, 0.5]})
    row = validation.by_regime(frame.assign(regime="prefill_moe", speed_ratio=1.0)).loc["prefill_moe"]
    assert row["balanced_error"] == pytest.approx(0.4)


def test_simpler_models_by_hand():
    """The roofline reaches all of both peaks, flat caps 0.75 and 0.70 of them; several GPUs wait for all-reduces."""
    few = [*CASES[::60], *(case for case in CASES if case.replica.gpus == 2)][:14]
    assert {case.replica.gpus for case in few} > {1, 2}
    roofline, capped = (
        validation.errors(few, model)["predicted"] for model in (validation.ideal, validation.flat_caps)
    )
    for case, least, flat in zip(few, roofline, capped, strict=True):
        m, gpus = case.measured, case.replica.gpus
        waits = measured_all_reduce_s(m.accelerator, m.engine, gpus=gpus) if gpus > 1 else 0.0
        caps = Efficiency(mbu=0.75, mfu=0.70, attention_mfu=0.70, all_reduce_s=waits)
        assert least == pytest.approx(case.predicted(schedule_s(case.steps, case.replica, Efficiency())))
        assert flat == pytest.approx(case.predicted(schedule_s(case.steps, case.replica, caps)))


def test_a_constant_that_no_other_row_has_stays_at_its_prior(monkeypatch):
    """A fit that knows bandwidth and overlap alone: all else is what was known before any row."""
    held, seen = CASES[:3], []

    def fit(cases):
        seen.extend(cases)
        return SimpleNamespace(constants={"hopper.mbu": 0.5, "ampere.mbu": 0.5, "phase.overlap": 2.0})

    monkeypatch.setattr(validation, "fit", fit)
    found = validation.leave_out(held)["predicted"]
    assert seen == list(CASES[3:])
    stack = Stack(held)
    values = {name: 0.5 if name.endswith(".mbu") else prior(name).middle for name in stack.names}
    assert any(name.endswith(".mbu") for name in values)
    expected = stack.predicted(stack.efficiency(values | {"phase.overlap": 2.0}))
    assert found.tolist() == pytest.approx(expected.tolist())


def test_cohorts_by_hand():
    """Two rows off by 0.1 and 0.5: 0.3 in the middle, and 0.2 too slow. A known gap has its reason; worst first."""
    known = ("dstack-405b", "h100-sxm", "batching_dense")
    keys = dict(zip(("source", "accelerator", "regime"), known, strict=True))
    far = pd.DataFrame({**keys, "model": "far", "error": [0.1, -0.5], "speed_ratio": [1.1, 0.5]})
    near = pd.DataFrame({**keys, "regime": "prefill_dense", "model": "near", "error": [0.1], "speed_ratio": [1.1]})
    table = validation.by_cohort(pd.concat([near, far, near.assign(model="as near")]))
    assert table["model"].tolist() == ["far", "near", "as near"]
    assert table.index.tolist() == [0, 1, 2]
    assert table["scored"].tolist() == [2, 1, 1]
    assert table["median_abs_error"].tolist() == pytest.approx([0.3, 0.1, 0.1])
    assert table["bias"].tolist() == pytest.approx([-0.2, 0.1, 0.1])
    assert table["reason"].tolist() == [validation.KNOWN_GAPS[known], "", ""]


def test_a_comparison_names_its_set_and_its_targets():
    frame = validation.shipped_errors()
    for which in ("validation", "fit"):
        rows = frame[frame["set"] == which]
        table = validation.comparison(which)
        assert table["scored"].sum() == len(rows)
        assert table["calibrated"].tolist() == validation.by_regime(rows)["median_abs_error"].tolist()
        assert table["bias"].tolist() == validation.by_regime(rows)["bias"].tolist()
        assert table["balanced"].tolist() == validation.by_regime(rows)["balanced_error"].tolist()
        assert table["target"].tolist() == [TARGETS[regime] for regime in table.index]


def measured(source, engine, value, **other):
    """Stand in for a case."""
    same = {"model": "m", "weights": "bf16", "accelerator": "x", "accelerators": 8, "tensor_parallel": 8}
    same |= {"concurrency": 16, "quantity": "tpot_s", "input_tokens": 1000, "output_tokens": 100, "regime": "batching"}
    of = same | other
    regime = of.pop("regime")
    return SimpleNamespace(measured=SimpleNamespace(source=source, engine=engine, value=value, **of), regime=regime)


def test_each_pair_that_measures_the_same_is_told_apart_by_engine_and_source():
    """Three alike make three pairs; 2 s and 4 s are ln 2 apart, whichever comes first."""
    pairs = validation.repeated([measured("a", "e", 2.0), measured("a", "f", 4.0), measured("b", "e", 8.0)])
    assert pairs["same"].tolist() == ["another engine", "another source", "another source"]
    assert pairs["apart"].tolist() == pytest.approx([np.log(2), np.log(4), np.log(2)])
    assert set(pairs["regime"]) == {"batching"}
    assert validation.repeated([measured("a", "e", 3.0), measured("a", "e", 1.0)])["same"].tolist() == ["engine"]
    assert validation.repeated([]).columns.tolist() == ["regime", "same", "apart"]


@pytest.mark.parametrize(
    "other",
    [
        {"model": "other"},
        {"weights": "fp8"},
        {"accelerator": "y"},
        {"accelerators": 16},
        {"tensor_parallel": 4},
        {"concurrency": 17},
        {"quantity": "ttft_s"},
        {"input_tokens": 999},
        {"output_tokens": 99},
        {"regime": "prefill"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_measurements_under_other_conditions_are_no_pair(other):
    assert validation.repeated([measured("a", "e", 1.0), measured("b", "e", 1.0, **other)]).empty


def test_each_thing_is_left_out_once_and_seen_by_no_fit_of_its_own(monkeypatch):
    """Two sources with two and one rows, two families: h100 and h200 are one."""
    cases = [
        SimpleNamespace(measured=SimpleNamespace(id=i, source=source, accelerator=part))
        for i, source, part in [(1, "a", "h100-sxm"), (2, "b", "a100-sxm-80gb"), (3, "a", "h200-sxm")]
    ]
    held, told = [], []

    def leave_out(some):
        held.append([case.measured.id for case in some])
        return pd.DataFrame({"id": held[-1]})

    monkeypatch.setattr(validation, "shipped_cases", lambda: (cases, {}))
    monkeypatch.setattr(validation, "leave_out", leave_out)
    frame = validation.leave_one_out("source", progress=lambda done, total: told.append((done, total)))
    assert (held, told) == ([[1, 3], [2]], [(1, 2), (2, 2)])
    assert frame["left_out"].tolist() == ["a", "a", "b"]
    assert frame.index.tolist() == [0, 1, 2]
    held.clear()
    frame = validation.leave_one_out("family")
    assert held == [[2], [1, 3]]
    assert frame["left_out"].tolist() == ["ampere", "hopper", "hopper"]


def test_left_out_rows_are_summed_up_by_thing_and_together():
    frame = pd.DataFrame({"left_out": ["b", "a", "a"], "error": [0.3, 0.1, -0.3], "speed_ratio": [1.3, 1.1, 0.7]})
    table = validation.left_out_table("source", frame.assign(regime="prefill_dense", cohort="c"))
    assert table.columns.tolist() == list(validation.LEFT_OUT_COLUMNS)
    assert table["left_out"].tolist() == ["a", "b", "all"]
    assert table.index.tolist() == [0, 1, 2]
    assert table["scored"].tolist() == [2, 1, 3]
    assert table["median_abs_error"].tolist() == [0.2, 0.3, 0.3]
    assert table["bias"].tolist() == [-0.1, 0.3, 0.1]
    assert table["within_25_percent"].tolist() == [0.5, 0, 0.333]
    assert set(table["by"]) == {"source"}


def test_what_is_written_of_the_rows_left_out_is_read_again(monkeypatch, tmp_path, capsys):
    frame = pd.DataFrame({"left_out": ["b", "a"], "error": [0.3, 0.1], "speed_ratio": [1.3, 1.1], "cohort": "c"})
    path = tmp_path / "data" / "derived" / "left_out.csv"
    path.parent.mkdir(parents=True)
    asked = []

    def leave_one_out(by, *, progress):
        asked.append(by)
        progress(1, 1)
        return frame.assign(regime="prefill_dense")

    monkeypatch.setattr(validation, "leave_one_out", leave_one_out)
    monkeypatch.setattr(validation, "LEFT_OUT", path)
    monkeypatch.setattr(validation, "DATA", tmp_path / "data")
    validation.main()
    assert asked == ["source", "family"]
    assert capsys.readouterr().out == "data/derived/left_out.csv: 6 rows\n"
    expected = [validation.left_out_table(by, frame.assign(regime="prefill_dense")) for by in asked]
    read = validation.left_out.__wrapped__()
    pd.testing.assert_frame_equal(read, pd.concat(expected, ignore_index=True))


def test_cohorts_are_listed_worst_first():
    table = validation.by_cohort(validation.shipped_errors())
    assert table["median_abs_error"].is_monotonic_decreasing
    assert table["scored"].sum() == len(CASES)


def test_every_validation_cohort_that_is_off_by_more_than_a_quarter_has_its_reason():
    frame = validation.shipped_errors()
    table = validation.by_cohort(frame[frame["set"] == "validation"])
    worst = table[table["median_abs_error"] > 0.25]
    assert (worst["reason"] != "").all(), worst
    known = set(zip(table["source"], table["accelerator"], table["regime"], strict=True))
    assert set(validation.KNOWN_GAPS) <= known


def test_the_same_thing_measured_twice_differs():
    """What no model of time can predict: another engine on the same box is off by a tenth and more."""
    pairs = validation.repeated(CASES)
    engines = pairs[(pairs["same"] == "another engine") & pairs["regime"].str.startswith("batching")]
    assert len(engines) >= 20
    assert engines["apart"].median() > 0.1


def test_the_stored_errors_of_a_source_left_out_are_what_a_fit_without_it_gives():
    """One source, so that it stays quick; `make calibrate` writes all of them."""
    held = [case for case in CASES if case.measured.source == "nim-guide"]
    found = validation.left_out_table("source", validation.leave_out(held).assign(left_out="nim-guide"))
    found = found[found["left_out"] == "nim-guide"].set_index("regime")
    stored = validation.left_out().query("by == 'source' and left_out == 'nim-guide'").set_index("regime")
    assert list(found.index) == list(stored.index)
    assert found["scored"].tolist() == stored["scored"].tolist()
    numbers = ["median_abs_error", "bias"]
    assert found[numbers].to_numpy() == pytest.approx(stored[numbers].to_numpy(), abs=0.01)


@pytest.mark.parametrize("by", ["source", "family"])
def test_every_scored_row_was_left_out_once(by):
    rows = validation.left_out().query("by == @by")
    apart, together = rows[rows["left_out"] != "all"], rows[rows["left_out"] == "all"]
    assert apart["scored"].sum() == together["scored"].sum() == len(CASES)
