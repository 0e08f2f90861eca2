"""The constants: fitted on declared rows alone, the same on every run, and as shipped."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.evidence import calibration
from analysis.evidence.cases import shipped_cases
from analysis.inputs import InputError
from analysis.model import decoding
from analysis.reference import efficiency as reached
from analysis.reference.tables import DATA

CASES = calibration.fitting_cases()


@pytest.fixture(scope="module")
def fitted():
    return calibration.fit(CASES)


def test_the_shipped_constants_are_what_the_shipped_rows_give(fitted):
    """Whoever changes a row, the model or the loss runs `make calibrate`; digits beyond 1 % are the computer's."""
    shipped = reached.constants()
    assert set(shipped) == {*fitted.low, "phase.overlap"}
    for name, constant in shipped.items():
        assert fitted.constants[name] == pytest.approx(constant.value, rel=0.01), name
        if name != "phase.overlap":
            assert (fitted.low[name], fitted.high[name]) == pytest.approx((constant.low, constant.high), rel=0.05), name


def test_a_fit_does_not_depend_on_the_order_of_rows(fitted):
    again = calibration.fit(CASES[::-1])
    assert again.constants == pytest.approx(fitted.constants, rel=1e-3)


def test_there_are_few_constants_and_none_is_named_after_a_row_model_or_source(fitted):
    assert len(fitted.constants) <= 40
    groups = {"ampere", "hopper", "ada", "cdna3", "compiled", "native", "session", "python", "early", "portable"}
    things = {"experts", "prompt", "activations", "phase", "nvlink", "slot", "narrow", "four_bit"}
    assert {name.partition(".")[0] for name in fitted.constants} <= groups | things


def test_no_validation_row_is_fitted():
    every = shipped_cases()[0]
    judged = {c.measured.id for c in every if calibration.set_of(c.measured.source, c.measured.accelerator) != "fit"}
    assert judged
    fitted = calibration.fitting_cases()
    assert judged.isdisjoint(case.measured.id for case in fitted)
    assert len(judged) + len(fitted) == len(every)


def test_no_source_and_accelerator_is_in_both_sets():
    rows = calibration.declared_sets()
    assert not rows.duplicated(["source", "accelerator"]).any()
    named = {"h200-sxm", "b200-sxm", "gb200"}
    fitted = {case.measured.accelerator for case in CASES}
    assert fitted.isdisjoint(named)


def test_an_undeclared_source_is_refused():
    with pytest.raises(InputError, match=r"'nobody on h100-sxm'.*measured_sets.csv"):
        calibration.set_of("nobody", "h100-sxm")


def test_constants_of_made_measurements_are_found_again(fitted):
    """Numbers that the model itself made, from other constants than the priors, lead back to those constants."""
    truth = dict(fitted.constants) | {"hopper.mbu": 0.8, "python.layer": 55.0, "native.layer": 90.0, "ampere.mbu": 0.7}
    stack = calibration.Stack(CASES)
    made = stack.predicted(stack.efficiency(truth))
    cases = [
        replace(case, measured=replace(case.measured, value=float(value)))
        for case, value in zip(CASES, made, strict=True)
    ]
    found = calibration.fit(cases)
    for name in ("hopper.mbu", "python.layer", "native.layer", "ampere.mbu"):
        assert found.constants[name] == pytest.approx(truth[name], rel=0.06), name
        assert found.low[name] < truth[name] < found.high[name]


def test_intervals_hold_their_values_and_correlations_are_sane(fitted):
    for name, low in fitted.low.items():
        assert 0 < low <= fitted.constants[name] <= fitted.high[name]
    matrix = fitted.correlation.to_numpy()
    assert np.diag(matrix) == pytest.approx(1)
    assert (np.abs(matrix) <= 1 + 1e-9).all()
    # launches and small kernels of prompts, and of decoding, come apart only by their rows
    assert fitted.correlation.loc["prompt.layer", "session.layer"] < -0.5


def test_priors_start_inside_their_bounds():
    """The fit starts at them."""
    for name, of in calibration.PRIORS.items():
        assert of.middle < of.most, name


def test_shares_are_shares():
    for name, constant in reached.constants().items():
        if name.endswith((".mbu", ".mfu")):
            assert 0 < constant.value <= 1, name


def test_no_pair_of_constants_is_inseparable(fitted):
    """A pair above 0.9 would be one constant with two names."""
    matrix = np.abs(fitted.correlation.to_numpy().copy())
    np.fill_diagonal(matrix, 0)
    assert matrix.max() < 0.9


def test_a_large_cohort_counts_like_the_root_of_its_rows():
    sizes = Counter(calibration.cohort(case) for case in CASES)
    share = Counter()
    for case, weight in zip(CASES, calibration.weights(CASES), strict=True):
        share[calibration.cohort(case)] += weight
    (large, many), (small, few) = sizes.most_common()[0], sizes.most_common()[-1]
    assert many > 10 * few
    assert share[large] / share[small] == pytest.approx((many / few) ** 0.5)


def test_the_mean_row_counts_like_one():
    """Four rows of one cohort weigh half each, a row of its own weighs one: 0.5 and 1 over their mean of 0.6."""
    one, other = CASES[0], next(case for case in CASES if calibration.cohort(case) != calibration.cohort(CASES[0]))
    assert calibration.weights([one, one, other, one, one]) == pytest.approx(np.array([5, 5, 10, 5, 5]) / 6)
    assert calibration.weights(CASES).mean() == pytest.approx(1)


def test_a_constant_has_its_own_prior_before_that_of_its_kind():
    assert calibration.prior("narrow.mfu").middle == 0.85
    assert calibration.prior("hopper.mfu") == calibration.prior("ada.mfu") == calibration.PRIORS["mfu"]
    with pytest.raises(KeyError, match="speed"):
        calibration.prior("hopper.speed")


def test_a_pair_of_its_own_comes_before_the_rest_of_its_source():
    assert calibration.set_of("trtllm-0.17", "h200-sxm") == "validation"
    assert calibration.set_of("trtllm-0.17", "h100-sxm") == "fit"


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ("gpt-fast,h100-sxm,test,why", "row 3, column set: got 'test'"),
        ("gpt-fast,h100-sxm,,why", "row 3, column set: got nothing"),
        ("nobody,any,fit,why", "row 3, column source: got 'nobody'"),
        (",any,fit,why", "row 3, column source: got nothing"),
        ("gpt-fast,h100-sxm,fit,", "row 3, column reason: got nothing"),
        ("gpt-fast,any,validation,why", "row 3, column accelerator: got 'any'"),
    ],
)
def test_a_damaged_table_of_sets_is_refused(tmp_path, monkeypatch, row, named):
    head = "source,accelerator,set,reason\ngpt-fast,any,fit,why\n"
    path = tmp_path / "measured_sets.csv"
    monkeypatch.setattr(calibration, "DATA", tmp_path)
    path.write_text(f"{head}gpt-fast,h100-sxm,validation,why\n", encoding="utf-8")
    assert calibration.declared_sets.__wrapped__()["set"].tolist() == ["fit", "validation"]
    path.write_text(f"{head}{row}\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"measured_sets.csv {named}"):
        calibration.declared_sets.__wrapped__()


def test_stacked_cases_are_predicted_as_one_by_one():
    """The sum over the passes of each case by the model itself, a time or the tokens made in it."""
    some = [*CASES[::23], *[case for case in shipped_cases()[0] if case.tokens is None][::23]]
    values = {name: constant.value for name, constant in reached.constants().items()}
    stack = calibration.Stack(some)
    found = stack.predicted(stack.efficiency(values))
    for case, predicted in zip(some, found, strict=True):
        of = reached.efficiency(case.replica, case.measured.engine)
        assert predicted == pytest.approx(case.predicted(decoding.schedule_s(case.steps, case.replica, of)))
    measured = np.array([case.measured.value for case in some])
    assert stack.log_error(values) == pytest.approx(np.log(found / measured))


def test_a_constant_counts_the_rows_that_use_it(fitted):
    """Bandwidth and peak of a generation are in every row of its parts."""
    for family in ("ada", "ampere", "cdna3", "hopper"):
        of = [case for case in CASES if reached.group("accelerator", case.measured.accelerator) == family]
        assert fitted.rows[f"{family}.mbu"] == len(of)
    assert fitted.rows["prompt.layer"] <= len(CASES)


def test_constants_are_written_with_three_digits_inside_their_intervals(monkeypatch, tmp_path, capsys):
    """Sorted by name; an end on the wrong side of the value, by rounding of a tight bound, is the value."""
    found = calibration.Fit(
        constants={"native.layer": 74.8123, "hopper.mbu": 0.95, "phase.overlap": 1.5},
        low={"native.layer": 60.04, "hopper.mbu": 0.951},
        high={"native.layer": 89.96, "hopper.mbu": 0.949},
        correlation=pd.DataFrame(),
        rows={"native.layer": 12, "hopper.mbu": 30},
    )
    lines = [
        ["hopper.mbu", "0.95", "0.95", "0.95", "1", "30"],
        ["native.layer", "74.8", "60", "90", "us", "12"],
        ["phase.overlap", "1.5", "1", "3", "1", str(len(CASES))],
    ]
    monkeypatch.setattr(calibration, "fitting_cases", lambda: CASES)
    assert calibration.table(found) == lines
    monkeypatch.setattr(calibration, "fit", lambda cases: {id(CASES): found}[id(cases)])
    monkeypatch.setattr(calibration, "DATA", tmp_path / "data")
    (tmp_path / "data").mkdir()
    for _ in ("into a new folder", "over the table there"):
        calibration.main()
        assert capsys.readouterr().out == f"data/derived/efficiency.csv: 3 constants from {len(CASES)} rows\n"
    written = reached.load_constants(tmp_path / "data" / "derived" / "efficiency.csv")
    assert {name: (c.value, c.low, c.high, c.unit, c.rows) for name, c in written.items()} == {
        line[0]: (*map(float, line[1:4]), line[4], int(line[5])) for line in lines
    }


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("hopper.mbu,", "hopper.mbu,-"), "column value"),
        (("hopper.mbu,", "hopper.mbu,9"), "column value"),
        (("constant,value", "name,value"), "row 1"),
    ],
)
def test_a_damaged_table_of_constants_is_refused(tmp_path, change, named):
    text = (DATA / "derived" / "efficiency.csv").read_text(encoding="utf-8")
    assert change[0] in text
    path = tmp_path / "efficiency.csv"
    path.write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(InputError, match=named):
        reached.load_constants(path)


def test_measured_all_reduces_come_first_and_grow_with_the_gpus():
    """16 KiB in a CUDA graph on eight H100: 3.56 us (TensorRT-LLM) and 5.31 us (vLLM); 22.99 us eager."""
    of = reached.measured_all_reduce_s
    assert of("h100-sxm", "tensorrt-llm", gpus=8) == pytest.approx(3.56e-6)
    assert of("h100-sxm", "vllm", gpus=8) == pytest.approx(5.31e-6)
    assert of("h100-sxm", "vllm-eager", gpus=8) == pytest.approx(22.99e-6)
    assert of("a100-sxm-80gb", "vllm", gpus=8) == of("h100-sxm", "vllm", gpus=8)
    for engine in ("vllm", "sglang", "gpt-fast", "lmdeploy"):
        assert of("b200-sxm", engine, gpus=2) < of("b200-sxm", engine, gpus=8)


@pytest.mark.parametrize(("kind", "name"), [("accelerator", "tpu-v5e"), ("engine", "vlm")])
def test_a_thing_without_constants_is_refused_with_its_name(kind, name):
    with pytest.raises(InputError, match=f"{kind}: got '{name}'"):
        reached.group(kind, name)
