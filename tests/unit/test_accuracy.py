"""What chapter 13 says of the model: in one direction, complete, and stored as computed."""

import numpy as np
import pandas as pd
import pytest

from analysis.evidence import accuracy, calibration, foreign, validation
from analysis.evidence.cases import shipped_cases
from analysis.evidence.validation import by_regime, errors
from analysis.inputs import InputError
from analysis.reference.efficiency import Constant
from analysis.reference.tables import DATA, NEWEST, all_rows, sources
from analysis.reference.tables import accelerator as part

CASES, _ = shipped_cases()
NODE = {"architecture": "llama-3.1-70b", "gpus": 8}


def test_a_speed_is_tokens_over_the_measured_time():
    """TPOT of 0.0174072 s is 57.4 token/s; a rate stays what it is; above 1 the model is too fast for both."""
    frame = accuracy.rows().set_index("id")
    assert frame.loc["infx-001", "measured_tok_per_s"] == pytest.approx(1 / 0.0174072)
    assert frame.loc["gptfast-001", "measured_tok_per_s"] == pytest.approx(96.67)
    # 128 tokens read in 0.022 s, and two answers of 2,048 tokens in 18.057 s
    assert frame.loc["lmdeploy-003", "measured_tok_per_s"] == pytest.approx(128 / 0.022)
    assert frame.loc["rocm-002", "measured_tok_per_s"] == pytest.approx(2 * 2048 / 18.057)
    slow = frame.loc["infx-001"]
    assert slow["speed_ratio"] == pytest.approx(slow["measured"] / slow["predicted"])
    ratio = frame["predicted_tok_per_s"] / frame["measured_tok_per_s"]
    np.testing.assert_allclose(ratio, frame["speed_ratio"])


def test_regimes_in_words():
    assert accuracy.words("max_load_moe") == "maximum load, sparse"
    assert accuracy.words("single_stream_dense") == "single stream, dense"
    assert accuracy.listed([]) == "none"
    assert accuracy.listed(["batching_dense"]) == "dense batching"
    three = accuracy.listed(["batching_dense", "max_load_moe", "prefill_dense"])
    assert three == "dense batching, sparse maximum load and dense prefill"


def test_marks_of_a_regime_are_spread_by_the_golden_section():
    """Steps of 0.618 of the width, as seeds of a sunflower: no two of a thousand lie on each other."""
    frame = accuracy.points()
    assert frame["id"].tolist() == accuracy.rows()["id"].tolist()
    assert set(frame["kind"] + frame["regime"].str.partition(", ")[2]) == {"sparsesparse", "densedense"}
    for _, of in frame.groupby("regime"):
        assert of["place"].between(0, 1, inclusive="left").all()
        assert of["place"].to_numpy()[:4] == pytest.approx([0, 0.618034, 0.236068, 0.854102][: len(of)])


def made(**columns):
    """Rows by hand in place of the shipped ones."""
    same = {"source": "a", "accelerator": "x", "regime": "batching_dense", "model": "m", "set": "validation"}
    return pd.DataFrame(same | columns).assign(speed_ratio=lambda frame: 1 + frame["error"])


def test_a_median_leaves_out_one_source_of_one_regime_of_one_set(monkeypatch):
    """Of the six, three are asked about: 0.1, 0.3 and 0.5."""
    frame = made(
        source=["a", "b", "a", "b", "a", "c"],
        regime=["batching_dense"] * 4 + ["prefill_dense", "batching_dense"],
        set=["validation"] * 3 + ["fit"] + ["validation"] * 2,
        error=[0.1, -0.3, -0.5, 0.9, 0.8, 0.7],
    )
    monkeypatch.setattr(accuracy, "rows", lambda: frame)
    assert accuracy.median_error("batching_dense", without="c") == pytest.approx(0.3)


def test_the_worst_are_two_rows_or_more_beyond_the_limit(monkeypatch):
    """One row says little, a quarter is not above a quarter, and rows of the fit are not judged."""
    frame = pd.concat(
        [
            made(model="far", error=[0.3, -0.5]),
            made(model="farther", error=[0.9, 0.9, 0.9]),
            made(model="one", error=[0.8]),
            made(model="edge", error=[0.25, 0.25]),
            made(model="fitted", error=[0.7, 0.7], set="fit"),
        ]
    )
    monkeypatch.setattr(accuracy, "rows", lambda: frame)
    table = accuracy.worst()
    assert table["model"].tolist() == ["farther", "far"]
    assert table.index.tolist() == [0, 1]
    assert "index" not in table
    assert table["median_abs_error"].tolist() == pytest.approx([0.9, 0.4])
    assert table["bias"].tolist() == pytest.approx([0.9, -0.1])
    assert accuracy.worst(0.5)["model"].tolist() == ["farther"]


def test_repeats_are_told_as_the_larger_over_the_smaller_less_one(monkeypatch):
    """Twice and four times as much: 1 and 3, 2 in the middle."""
    pairs = pd.DataFrame({"regime": "batching_dense", "same": "engine", "apart": np.log([2.0, 4.0])})
    monkeypatch.setattr(validation, "repeated", lambda cases: pairs)
    (row,) = accuracy.repeats().to_dict("records")
    assert row == {"same": "engine", "regime": "batching_dense", "pairs": 2, "median_apart": pytest.approx(2)}


def test_a_constant_is_at_its_limit_within_half_a_percent(monkeypatch):
    """A share of bandwidth ends at 0.95, of which 99.5 % are 0.94525; what has no prior has no limit."""
    values = {"hopper.mbu": 0.9453, "ada.mbu": 0.9452, "narrow.mfu": 0.996, "phase.overlap": 9.0}
    made_up = {name: Constant(value, value / 2, 2 * value, "1", 7) for name, value in values.items()}
    monkeypatch.setattr(accuracy, "constants", lambda: made_up)
    table = accuracy.fitted_constants()
    assert table["at_limit"].tolist() == [True, False, True, False]
    assert table.iloc[2].to_dict() == {
        "constant": "narrow.mfu",
        "value": "0.996",
        "low": "0.498",
        "high": "1.992",
        "unit": "1",
        "rows": 7,
        "at_limit": True,
    }


def test_strong_correlations_are_each_pair_once_the_strongest_first(monkeypatch, tmp_path, capsys):
    """Of three pairs one is below one half."""
    matrix = np.array([[1, 0.5, -0.7], [0.5, 1, 0.49], [-0.7, 0.49, 1]])
    found = calibration.Fit({}, {}, {}, pd.DataFrame(matrix, index=list("abc"), columns=list("abc")), {})
    lines = [["a", "c", "-0.70"], ["a", "b", "0.50"]]
    assert accuracy.strong_correlations(found) == lines
    monkeypatch.setattr(calibration, "fit", {"declared": found}.get)
    monkeypatch.setattr(calibration, "fitting_cases", lambda: "declared")
    monkeypatch.setattr(accuracy, "DATA", tmp_path / "data")
    monkeypatch.setattr(accuracy, "CORRELATIONS", tmp_path / "data" / "correlations.csv")
    (tmp_path / "data").mkdir()
    accuracy.main()
    assert capsys.readouterr().out == "data/correlations.csv: 2 pairs\n"
    assert accuracy.correlations().to_numpy().tolist() == [["a", "c", -0.7], ["a", "b", 0.5]]


def test_scores_agree_with_the_comparison_and_cover_all_validation_rows():
    table = accuracy.scores().set_index("regime")
    assert list(table.index) == list(validation.comparison().index)
    assert table["scored"].sum() == (accuracy.rows()["set"] == "validation").sum()
    np.testing.assert_allclose(table["median_abs_error"], validation.comparison()["calibrated"])
    assert (table["met"] == (table["median_abs_error"] <= table["target"])).all()
    for column, name in [("target", "target"), ("bias", "bias"), ("flat_caps", "flat caps"), ("roofline", "roofline")]:
        np.testing.assert_allclose(table[column], validation.comparison()[name])
    judged = accuracy.rows().query("set == 'validation'").groupby("regime")["source"].agg(lambda names: len(set(names)))
    assert table["sources"].to_dict() == judged.loc[table.index].to_dict()
    assert accuracy.scores("fit")["scored"].sum() == (accuracy.rows()["set"] == "fit").sum()


def test_every_scored_row_is_in_one_declared_set():
    table = accuracy.sets()
    assert table["scored"].sum() == len(CASES)
    assert (table["scored"] > 0).any()
    assert table.groupby("set")["scored"].sum().to_dict() == accuracy.rows()["set"].value_counts().to_dict()
    assert table["set"].is_monotonic_increasing
    assert table.groupby("set")["source"].agg(lambda names: names.is_monotonic_increasing).all()
    assert table["url"].tolist() == [sources().loc[source, "url"] for source in table["source"]]
    assert table.index.tolist() == list(range(len(table)))
    assert table.columns.tolist() == ["set", "source", "accelerator", "scored", "reason", "url"]


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


def test_long_prompts_are_those_of_one_regime_that_no_constant_has_seen():
    """TensorRT-LLM at maximum load: on H200 three of release 0.17, one of them 5,000 tokens long, and six of 1.0."""
    frame = accuracy.long_prompts("max_load_dense", input_tokens=5000)
    assert sorted(frame["input_tokens"]) == [5000] + [20_000] * 8
    assert set(frame["set"]) == {"validation"}
    assert set(frame["regime"]) == {"max_load_dense"}
    assert len(accuracy.long_prompts("max_load_dense", input_tokens=5001)) == 8


def test_a_sweep_names_its_smallest_and_its_largest_batch():
    """Four H100, 16,035 tokens in and 1,000 out: 23.9 s alone and 51.4 s eight together."""
    of = accuracy.sweep("mazurek-vllm").set_index(["model", "input_tokens"])
    row = of.loc[("llama-3.3-70b", 16_035)]
    assert (row["gpus"], row["output_tokens"], row["scored"], row["batch_low"], row["batch_high"]) == (4, 1000, 4, 1, 8)
    each = accuracy.rows().set_index("id")
    assert row["bias_low"] == pytest.approx(23.93454 / each.loc["mazk-011", "predicted"] - 1)
    assert row["bias_high"] == pytest.approx(51.38168 / each.loc["mazk-014", "predicted"] - 1)
    middle = each.loc[["mazk-012", "mazk-013"], "error"].abs().mean()
    assert row["median_abs_error"] == pytest.approx(middle)
    # of 40 rows one is not scored: the file contradicts itself
    assert of["scored"].sum() == 39


def test_further_caches_were_read_at_a_sixth_of_the_bandwidth():
    """Seven more caches of 16,535 tokens in mean at 327,680 bytes, on four GPUs of 3.35 TB/s: 2.83 ms of 18 ms.

    The eight prompts of 16,035 tokens take 1.2 to 1.8 s each (2.4 PFLOP on four GPUs at 45 to 65 % of 989 TFLOP/s).
    """
    found = accuracy.cache_read_share("mazurek-vllm", model="llama-3.3-70b", input_tokens=16_035)
    at_full_s = 7 * 16_535 * 327_680 / 4 / 3.35e12
    assert at_full_s == pytest.approx(2.83e-3, rel=0.01)
    longer_s = [(51.38168 - 23.93454 - 7 * prompt_s) / 1000 for prompt_s in (1.2, 1.8)]
    assert at_full_s / longer_s[0] < found < at_full_s / longer_s[1]


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("llama-3.3-70b", 138), ("llama-3.3-70b", 4096), ("llama-2-70b", 16_035)],
    ids=["answers of several lengths", "another prompt", "another model"],
)
def test_a_share_needs_two_batches_of_one_kind(model, tokens):
    with pytest.raises(InputError, match="two batches"):
        accuracy.cache_read_share("mazurek-vllm", model=model, input_tokens=tokens)


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


def test_a_tool_is_below_the_floor_from_half_a_percent_on(monkeypatch):
    """Printed steps are rounded: 99.6 % of the floor is on it, 99 % is below, be it at one batch of two."""
    h100 = part("h100-sxm", as_of=NEWEST)
    real = accuracy.tools(h100, **NODE, engine="tensorrt-llm")
    steps = accuracy.step_terms(
        h100, **NODE, weights=["bf16"], batches=[1, 32], context_tokens=2048, engine="tensorrt-llm"
    ).drop_duplicates("batch")
    floor = dict(zip(steps["batch"], 1e3 * steps["floor_s"], strict=True))
    rows = [("x", "v-1", 1, 0.996), ("x", "v-1", 32, 1.5), ("a", "v-2", 32, 0.99), ("a", "v-2", 1, 1.0)]
    printed = pd.DataFrame(
        [
            {"tool": tool, "version": version, "batch": str(batch), "value": times * floor[batch]}
            for tool, version, batch, times in rows
        ]
    ).assign(context_tokens="2048", note=["of x", "", "of a", ""], source="gpt-fast")
    monkeypatch.setattr(accuracy, "all_rows", lambda name: printed)
    table = accuracy.tools(h100, **NODE, engine="tensorrt-llm")
    assert table["tool"].tolist() == ["floor by the data sheet", "this book, tensorrt-llm", "x v 1", "a v 2"]
    assert table["below_floor"].tolist() == [False, False, False, True]
    assert table["note"].tolist() == ["", "", "of x", "of a"]
    assert table["url"].tolist() == ["", "", *[sources().loc["gpt-fast", "url"]] * 2]
    assert table["batch 32"].tolist() == pytest.approx(
        [floor[32], 1e3 * steps["step_s"].iloc[1], 1.5 * floor[32], 0.99 * floor[32]]
    )
    assert real["tool"].tolist()[:2] == table["tool"].tolist()[:2]
    # engines take their time: another one's step is another
    other = accuracy.tools(h100, **NODE, engine="vllm")
    assert other["batch 1"].iloc[1] != table["batch 1"].iloc[1]


def test_each_nearest_step_is_listed_once_and_what_has_none_is_not(monkeypatch):
    """Four asked for: two of one row, one of another, one of none."""
    found = {("bf16", 1): "a", ("bf16", 32): "a", ("fp8", 1): "b"}

    def nearest_step(replica, *, batch):
        row = found.get((replica.precision.weights, batch))
        return None if row is None else {"id": row, "batch": batch}

    monkeypatch.setattr(accuracy, "nearest_step", nearest_step)
    near = accuracy.nearest_measured(part("h100-sxm", as_of=NEWEST), **NODE, weights=["bf16", "fp8"], batches=[1, 32])
    assert near.to_dict("records") == [{"id": "a", "batch": 1}, {"id": "b", "batch": 1}]
    assert near.index.tolist() == [0, 1]


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
