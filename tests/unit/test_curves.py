"""Measured curves beside the model's: spelled for readers, counted as the sources count."""

import pytest

from analysis.evidence import curves


@pytest.mark.parametrize(
    ("name", "seen"),
    [("llama-3.1-70b", "Llama-3.1-70B"), ("a100-pcie-80gb", "A100 PCIe"), ("rtx-4090", "RTX-4090")],
)
def test_names_are_spelled_for_readers(name, seen):
    assert curves.spoken(name) == seen


def test_swings_that_the_sources_print():
    """Llama-2-7B, 128 in and out: 102 tokens/s at batch 1, 3,024 at 64, read by hand: 29.6-fold."""
    swings = curves.swings().set_index("name")
    assert swings.loc["7B A100, 128 → 128", "measured"] == pytest.approx(29.6, abs=0.05)
    assert swings.loc["70B A100, 128 → 2,048", "measured"] == pytest.approx(43.0, abs=0.05)
    assert swings.loc["8B H100, lengths lost", "measured"] == pytest.approx(62.2, abs=0.05)
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
