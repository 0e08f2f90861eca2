"""Measured curves beside the model's: spelled for readers, counted as the sources count."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analysis.evidence import curves
from analysis.evidence.cases import shipped_cases
from analysis.evidence.validation import shipped_errors
from analysis.reference.tables import all_rows


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("llama-3.1-70b", "Llama-3.1-70B"),
        ("a100-pcie-80gb", "A100 PCIe"),
        ("a100-sxm-80gb", "A100"),
        ("h200-sxm", "H200"),
        ("rtx-4090", "RTX-4090"),
        ("deepseek-v3", "DeepSeek-v3"),
        ("unheard", "unheard"),
    ],
)
def test_names_are_spelled_for_readers(name, seen):
    assert curves.spoken(name) == seen


def timed(quantity, value, **other):
    """Make a case of 16 requests of 100 tokens on two copies of four GPUs, of which one number was measured."""
    of = {"input_tokens": 1000.0, "output_tokens": 100.0, "concurrency": 16.0, "accelerators": 8, "tensor_parallel": 4}
    of |= {"model": "llama-3.1-8b", "weights": "fp8", "accelerator": "h100-sxm", "engine": "vllm", "regime": "batching"}
    of |= {"id": "x", "source": "trtllm-0.17", "layout": "", "quantity": quantity, "value": value}
    tokens = None if quantity in ("e2e_latency_s", "tpot_s", "ttft_s") else 1.0
    return SimpleNamespace(measured=SimpleNamespace(**of | other), sparse=False, tokens=tokens)


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        ("e2e_latency_s", 2.0),  # 16 answers of 100 tokens in two seconds
        ("tpot_s", 0.02),
        ("tokens_per_s_per_user", 50.0),
        ("output_tokens_per_s_per_gpu", 100.0),
        ("output_tokens_per_s_total", 800.0),
    ],
)
def test_eight_hundred_tokens_a_second_in_five_ways(quantity, value):
    assert curves._tok_per_s(timed(quantity, value), value) == pytest.approx(800)


def table_of(monkeypatch, *cases, predicted, ideal=0.0):
    """Show some cases in place of the shipped ones."""
    guesses = {"calibrated": predicted, "roofline": ideal}
    monkeypatch.setattr(curves, "shipped_cases", lambda: (cases, {}))
    monkeypatch.setattr(
        curves,
        "shipped_errors",
        lambda name="calibrated": pd.DataFrame({"predicted": np.broadcast_to(guesses[name], len(cases))}),
    )
    curves.batching_curves.cache_clear()


@pytest.fixture
def of_its_own(monkeypatch):
    """Forget what was shown in place of the shipped rows."""
    yield monkeypatch
    monkeypatch.undo()
    curves.batching_curves.cache_clear()


def test_a_curve_by_hand(of_its_own):
    """Batches 1, 4 and 64 make 10, 30 and 80 token/s for 16 ms, 20 ms and 25 ms predicted; others are no curve."""
    total = "output_tokens_per_s_total"
    table_of(
        of_its_own,
        timed(total, 80.0, concurrency=64.0),
        timed(total, 10.0, concurrency=1.0),
        timed(total, 30.0, concurrency=4.0),
        timed(total, 99.0, concurrency=1.0, weights="bf16"),
        timed(total, 98.0, concurrency=np.inf),
        timed(total, 97.0, concurrency=2.0, regime="prefill"),
        timed(total, 96.0, concurrency=2.0, input_tokens=None),
        timed(total, 95.0, concurrency=2.0, output_tokens=None),
        timed(total, 94.0, concurrency=2.0, layout="dp-attention"),
        predicted=[100.0, 20.0, 50.0, 1, 1, 1, 1, 1, 1],
    )
    table = curves.batching_curves()
    assert table["batch"].tolist() == [1, 4, 64]
    assert table["measured_tok_per_s"].tolist() == [10, 30, 80]
    assert table["measured_gain"].tolist() == [1, 3, 8]
    assert table["predicted_gain"].tolist() == [1, 2.5, 5]
    assert set(table["series"]) == {"Llama-3.1-8B fp8, 8×H100, vllm"}
    assert set(table["work"]) == {"1,000 → 100"}
    assert set(table["set"]) == {"fitted"}
    (row,) = (row for row in curves.swings().to_dict("records") if row["set"] != curves.NO_PREDICTION)
    assert row == {
        "series": "Llama-3.1-8B fp8, 8×H100, vllm",
        "work": "1,000 → 100",
        "source": "trtllm-0.17",
        "set": "fitted",
        "sparse": False,
        "input_tokens": 1000,
        "output_tokens": 100,
        "large_batch": 64,
        "measured": 8,
        "predicted": 5,
        "slower": 8,
        "name": "8B H100, 1,000 → 100",
    }
    of = ("Llama-3.1-8B fp8, 8×H100, vllm", "1,000 → 100")
    assert curves.gain_of(*of) == 8
    assert curves.runs(of, quantity=total)["predicted_stream_tok_per_s"].tolist() == [20, 12.5, 1.5625]
    with pytest.raises(KeyError, match="tpot_s"):
        curves.runs(of, quantity="tpot_s")


def test_a_swing_ends_where_most_was_measured_and_starts_at_batch_1(of_its_own):
    """Batch 4 makes more than 64. From batch 2 on or up to 63 is no swing; tokens alone leave out the prompt."""
    total = "output_tokens_per_s_total"
    table_of(
        of_its_own,
        *(timed(total, value, concurrency=n) for n, value in [(1.0, 10.0), (4.0, 60.0), (64.0, 50.0)]),
        *(timed(total, 10.0 * n, concurrency=n, weights="bf16") for n in (2.0, 4.0)),
        *(timed("tpot_s", 0.01, concurrency=n) for n in (1.0, 4.0)),
        *(timed(total, 10.0 * n, concurrency=n, engine="sglang") for n in (1.0, 64.0)),
        *(timed(total, 10.0 * n, concurrency=n, engine="lmdeploy") for n in (1.0, 63.0)),
        predicted=1.0,
    )
    table = curves.swings()
    assert table.index.tolist() == list(range(len(table)))
    row, other = (row for row in table.to_dict("records") if row["set"] != curves.NO_PREDICTION)
    assert (row["large_batch"], row["measured"], row["slower"]) == (4, 6, pytest.approx(4 / 6))
    # an axis has room for size, GPU and work: a second one of the same is numbered
    assert (row["name"], other["name"]) == ("8B H100, 1,000 → 100", "8B H100, 1,000 → 100 (2)")
    assert len(curves.batching_curves()) == 11


def test_mean_answers_a_little_shorter_are_the_same_work(of_its_own):
    """Of 300 tokens asked for, 280 and 271 came in the mean of larger batches; 269 is more than a tenth off."""
    total = "output_tokens_per_s_total"
    table_of(
        of_its_own,
        *(
            timed(total, 10.0 * n, concurrency=n, output_tokens=s)
            for n, s in [(1.0, 300.0), (2.0, 280.0), (4.0, 271.0)]
        ),
        *(timed(total, 10.0 * n, concurrency=n, output_tokens=s) for n, s in [(8.0, 269.0), (16.0, 250.0)]),
        predicted=1.0,
    )
    table = curves.batching_curves()
    assert table["batch"].tolist() == [8, 16, 1, 2, 4]
    assert table["work"].tolist() == ["1,000 → 269"] * 2 + ["1,000 → 300"] * 3


def test_prompts_by_hand(of_its_own):
    """A thousand tokens at 5,000 token/s take 0.2 s; a time stays a time. The shortest prompt comes first."""
    table_of(
        of_its_own,
        timed("prefill_tokens_per_s", 5000.0, regime="prefill"),
        timed("ttft_s", 0.25, regime="prefill", input_tokens=500.0, accelerator="h200-sxm"),
        timed("tpot_s", 0.25),
        predicted=[4000.0, 0.5, 1.0],
        ideal=[10_000.0, 0.125, 1.0],
    )
    table = curves.prompts()
    assert table[["input_tokens", "measured_s", "predicted_s", "ideal_s"]].to_numpy().tolist() == [
        [500, 0.25, 0.5, 0.125],
        [1000, 0.2, 0.25, 0.1],
    ]
    assert table["gpus"].tolist() == [4, 4]
    assert table["set"].tolist() == ["judged only", "fitted"]
    assert table.index.tolist() == [0, 1]


def test_lost_labels_leave_a_measured_swing():
    """The largest over that of one request, from the rows of the table themselves."""
    found = curves.swings()
    found = found[found["set"] == curves.NO_PREDICTION]
    rows = all_rows("measured").query("unused == 'labels-lost' and quantity == 'output_tokens_per_s_total'")
    assert len(found) == rows.groupby(["model", "accelerator", "source"]).ngroups
    for (model, part, _), of in rows.groupby(["model", "accelerator", "source"]):
        by_batch = of.set_index(of["concurrency"].astype(int))["value"]
        (row,) = found[found["series"] == f"{curves.spoken(model)}, {curves.spoken(part)}"].to_dict("records")
        assert row["measured"] == pytest.approx(by_batch.max() / by_batch[1])
        assert row["large_batch"] == by_batch.idxmax()
        assert row["slower"] == pytest.approx(row["large_batch"] / row["measured"])
        assert not row["sparse"]
        assert np.isnan([row["predicted"], row["input_tokens"], row["output_tokens"]]).all()


def test_what_is_shown_is_what_was_measured():
    table, cases = curves.batching_curves(), {case.measured.id: case for case in shipped_cases()[0]}
    errors = shipped_errors().set_index("id")
    for row in table.iloc[::40].itertuples():
        case = cases[row.id]
        assert (row.source, row.batch, row.sparse) == (case.measured.source, case.measured.concurrency, case.sparse)
        assert row.predicted_tok_per_s / row.measured_tok_per_s == pytest.approx(errors.loc[row.id, "speed_ratio"])


def test_swings_that_the_sources_print():
    """Llama-2-7B, 128 in and out: 102 tokens/s at batch 1, 3,024 at 64, read by hand: 29.6-fold."""
    swings = curves.swings().set_index("name")
    assert swings.loc["7B A100, 128 → 128", "measured"] == pytest.approx(29.6, abs=0.05)
    assert swings.loc["70B A100, 128 → 2,048", "measured"] == pytest.approx(43.0, abs=0.05)
    assert swings.loc["8B H100, lengths lost", "measured"] == pytest.approx(62.2, abs=0.05)
    # Llama-3.3-70B in whole batches: 300 tokens in 5.565 s alone, 512 times 299 in 129.6 s
    gain = 512 * 299.0566 / 129.6023 / (300 / 5.565227)
    assert swings.loc["70B H100, 2,035 → 300", "measured"] == pytest.approx(gain)
    assert swings.index.is_unique
    assert swings["measured"].is_monotonic_increasing


def test_whole_batches_are_counted_once_whatever_was_timed():
    """A latency of a batch and tokens over it are the same number: 128 requests of 2,048 tokens."""
    rows = curves.batching_curves()
    row = rows[(rows["source"] == "rocm-vllm") & (rows["batch"] == 128) & (rows["work"] == "128 → 2,048")].iloc[0]
    assert row["measured_tok_per_s"] == pytest.approx(5639, rel=0.01)


def test_every_curve_starts_at_its_own_one():
    rows = curves.batching_curves()
    first = rows.groupby(["series", "work", "source", "quantity"])["batch"].idxmin()
    assert (rows.loc[first, ["measured_gain", "predicted_gain"]] == 1).all(axis=None)


def test_runs_come_in_the_order_asked_for():
    pairs = [("Llama-2-70B bf16, 4×A100, lmdeploy", work) for work in ("2,048 → 128", "128 → 128")]
    frame = curves.runs(*pairs, quantity="output_tokens_per_s_total")
    assert frame["name"].unique().tolist() == ["2,048 → 128", "128 → 128"]
    assert frame.index.tolist() == list(range(len(frame)))
    assert (frame["measured_stream_tok_per_s"] * frame["batch"] == frame["measured_tok_per_s"]).all()
    with pytest.raises(KeyError, match="no measured curve"):
        curves.runs(("none", "1 → 1"), quantity="tpot_s")


def test_a_gain_between_two_batches():
    """405B with prompts of 32,784 tokens hardly gains from 4 to 16."""
    assert curves.gain_of("Llama-3.1-405B fp8, 8×H100, vllm", "32,784 → 2,048") == pytest.approx(1.09, abs=0.01)
    with pytest.raises(KeyError, match="no measured curve"):
        curves.gain_of("none", "1 → 1")


def test_no_prompt_is_read_faster_than_the_roofline():
    prompts = curves.prompts()
    assert (prompts["measured_s"] >= prompts["ideal_s"]).all()
    assert prompts["input_tokens"].is_monotonic_increasing
