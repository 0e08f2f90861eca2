"""How far the model is from measurements, and that the comparison itself is honest."""

import numpy as np
import pandas as pd
import pytest

from analysis.evidence import validation
from analysis.evidence.cases import REASONS, shipped_cases
from analysis.evidence.validation import TARGETS
from analysis.reference.tables import all_rows

CASES, SKIPPED = shipped_cases()
#: Targets that the model misses, and the error that it has instead. The page says why.
MISSED = {"single_stream_dense": 0.122, "batching_dense": 0.136}


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
    """The aim is 5 % either way; the chapter says where it is missed. Twice the aim is a fault."""
    assert abs(validation.comparison().loc[regime, "bias"]) <= 0.10


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
