"""What chapter 13 says of the model: in one direction, complete, and stored as computed."""

import numpy as np
import pytest

from analysis.evidence import accuracy, calibration, foreign, validation
from analysis.evidence.cases import shipped_cases
from analysis.evidence.validation import by_regime, errors
from analysis.reference.tables import DATA, NEWEST, all_rows
from analysis.reference.tables import accelerator as part

CASES, _ = shipped_cases()
NODE = {"architecture": "llama-3.1-70b", "gpus": 8}


def test_a_speed_is_tokens_over_the_measured_time():
    """TPOT of 0.0174072 s is 57.4 token/s; a rate stays what it is; above 1 the model is too fast for both."""
    frame = accuracy.rows().set_index("id")
    assert frame.loc["infx-001", "measured_tok_per_s"] == pytest.approx(1 / 0.0174072)
    assert frame.loc["gptfast-001", "measured_tok_per_s"] == pytest.approx(96.67)
    slow = frame.loc["infx-001"]
    assert slow["speed_ratio"] == pytest.approx(slow["measured"] / slow["predicted"])
    ratio = frame["predicted_tok_per_s"] / frame["measured_tok_per_s"]
    np.testing.assert_allclose(ratio, frame["speed_ratio"])


def test_scores_agree_with_the_comparison_and_cover_all_validation_rows():
    table = accuracy.scores().set_index("regime")
    assert list(table.index) == list(validation.comparison().index)
    assert table["scored"].sum() == (accuracy.rows()["set"] == "validation").sum()
    np.testing.assert_allclose(table["median_abs_error"], validation.comparison()["calibrated"])
    assert (table["met"] == (table["median_abs_error"] <= table["target"])).all()


def test_every_scored_row_is_in_one_declared_set():
    table = accuracy.sets()
    assert table["scored"].sum() == len(CASES)
    assert (table["scored"] > 0).any()


def test_each_of_the_worst_cohorts_has_its_reason():
    """Whoever changes rows or constants looks at the cohorts that are now a quarter off, and says why."""
    table = accuracy.worst()
    assert not table.empty
    assert (table["reason"] != "").all(), table[table["reason"] == ""]
    assert table["median_abs_error"].is_monotonic_decreasing


def test_leaving_a_source_out_of_a_median_leaves_the_others():
    frame = accuracy.rows()
    some = frame[(frame["set"] == "validation") & (frame["regime"] == "batching_dense")]
    assert accuracy.median_error("batching_dense", without="nobody") == pytest.approx(some["error"].abs().median())
    assert accuracy.median_error("batching_dense", without="dstack-405b") < some["error"].abs().median()


def test_repeats_count_each_pair_once():
    table = accuracy.repeats()
    assert table["pairs"].sum() == len(validation.repeated(CASES))
    assert (table["median_apart"] > 0).all()


def test_constants_say_where_the_prior_stops_them():
    table = accuracy.fitted_constants().set_index("constant")
    assert len(table) == len(accuracy.constants())
    assert not table.loc["phase.overlap", "at_limit"]
    assert not table.loc["native.layer", "at_limit"]


def test_parts_of_a_step_add_up_and_none_is_negative():
    h100 = part("h100-sxm", as_of=NEWEST)
    frame = accuracy.step_terms(
        h100, **NODE, weights=["bf16", "fp8"], batches=[1, 32, 256], context_tokens=2048, engine="vllm"
    )
    sums = frame.groupby(["weights", "batch"]).agg({"part_s": "sum", "step_s": "first", "floor_s": "first"})
    np.testing.assert_allclose(sums["part_s"], sums["step_s"])
    assert (frame["part_s"] >= 0).all()
    assert (sums["floor_s"] < sums["step_s"]).all()
    # the floor of the worked case: 5.21 ms in 16 bit at batch 1
    assert 1e3 * sums.loc[("bf16", 1), "floor_s"] == pytest.approx(5.21, abs=0.005)


def test_the_nearest_measured_step_is_a_row_of_the_table():
    h100 = part("h100-sxm", as_of=NEWEST)
    near = accuracy.nearest_measured(h100, **NODE, weights=["bf16", "fp8"], batches=[1, 32])
    assert set(near["id"]) <= set(all_rows("measured")["id"])
    assert near["id"].is_unique


def test_tools_stand_beside_the_floor_and_those_below_it_are_named():
    """A printed step of 3.73 ms is less than the 5.21 ms that reading the weights takes."""
    table = accuracy.tools(part("h100-sxm", as_of=NEWEST), **NODE, engine="vllm").set_index("tool")
    assert table.loc["blis f90a1e3 roofline", "below_floor"]
    assert not table.loc["epoch c8808fb caps 0.7 and 0.75", "below_floor"]
    assert table.iloc[0]["batch 1"] == pytest.approx(5.21, abs=0.005)
    assert table.iloc[1]["batch 1"] > table.iloc[0]["batch 1"]


def test_bandwidth_and_fixed_time_trade_against_each_other():
    pairs = accuracy.correlations()
    both = pairs["constant"].str.endswith("mbu") | pairs["trades_with"].str.endswith("mbu")
    layer = pairs["constant"].str.endswith("layer") | pairs["trades_with"].str.endswith("layer")
    assert (both & layer).any()
    assert (pairs["correlation"].abs() >= accuracy.STRONG).all()


def test_the_stored_correlations_are_those_of_the_fit():
    """Whoever changes a row or the model runs `make calibrate`; the last digits are the computer's."""
    fitted = calibration.fit(calibration.fitting_cases()).correlation
    for row in accuracy.correlations().itertuples():
        assert fitted.loc[row.constant, row.trades_with] == pytest.approx(row.correlation, abs=0.03)


def test_the_example_file_scores_two_rows_and_says_why_it_skips_two():
    cases, skipped = foreign.read(DATA / "example_measurements.csv")
    assert [case.measured.id for case in cases] == ["mine-1", "mine-2"]
    assert [row["id"] for row in skipped] == ["mine-3", "mine-4"]
    assert set(by_regime(errors(cases)).index) == {"batching_dense", "prefill_dense"}
