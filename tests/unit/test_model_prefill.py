"""Reading prompts: where computing passes reading, and what the time is made of."""

import numpy as np
import pytest

from analysis.inputs import InputError
from analysis.model import decoding, prefill
from analysis.model.roofline import positions_at_ridge
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import replica
from analysis.reference.tables import SNAPSHOT, accelerator

H100 = accelerator("h100-sxm", as_of=SNAPSHOT)
SMALL = replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT)
SPARSE = replica("mixtral-8x7b", "h100-sxm", as_of=SNAPSHOT, gpus=2)


def test_the_sweep_is_the_prefill_of_the_model():
    reached = efficiency(SMALL, "vllm")
    frame = prefill.sweep_prompt(SMALL, input_tokens=[100, 20000], efficiency=reached)
    whole = decoding.prefill_s(SMALL, input_tokens=np.array([100, 20000]), efficiency=reached)
    assert frame["prefill_s"].to_numpy() == pytest.approx(whole)
    parts = frame[["phases_s", "fixed_s", "communication_s", "activations_s"]].sum(axis=1)
    assert parts.to_numpy() == pytest.approx(whole)


def test_no_prompt_uses_more_than_the_peak():
    """MFU is at most 1 on the ideal machine, and near it for a long prompt."""
    mfu = prefill.sweep_prompt(SMALL, input_tokens=[16, 512, 8192])["mfu"]
    assert (mfu <= 1 + 1e-12).all()
    assert mfu.iloc[-1] > 0.99


def test_a_dense_model_turns_near_the_ridge():
    """By hand: 295 positions at the ridge of the H100; logits of one token only move it up, attention down."""
    ridge = H100.peak("bf16") / H100.mem_bw_byte_per_s
    assert prefill.compute_bound_from(SMALL) == pytest.approx(positions_at_ridge(ridge, bytes_per_weight=2), rel=0.1)


def test_below_the_border_reading_takes_longer_and_above_it_computing():
    border = prefill.compute_bound_from(SMALL)
    below, above = (prefill.sweep_prompt(SMALL, input_tokens=factor * border).iloc[0] for factor in (0.99, 1.01))
    assert below["weights_s"] > below["matmul_s"] + below["attention_s"]
    assert above["weights_s"] < above["matmul_s"] + above["attention_s"]


def test_experts_raise_the_border_about_as_often_as_they_are_more_than_used():
    """Mixtral uses 2 of 8."""
    ridge = H100.peak("bf16") / H100.mem_bw_byte_per_s
    assert prefill.compute_bound_from(SPARSE) == pytest.approx(8 / 2 * ridge, rel=0.15)


def test_a_cached_prefix_lowers_the_border_by_its_attention():
    assert prefill.compute_bound_from(SMALL, cached_tokens=8000) < prefill.compute_bound_from(SMALL)


def test_memory_without_end_makes_every_prompt_compute_bound():
    from dataclasses import replace

    fast = replace(SMALL, accelerator=replace(H100, mem_bw_byte_per_s=1e18))
    slow = replace(SMALL, accelerator=replace(H100, mem_bw_byte_per_s=1e6))
    assert prefill.compute_bound_from(fast) == 1
    assert prefill.compute_bound_from(slow) > 1e6


def test_wider_replicas_talk_more():
    splits = {str(n): replica("llama-3.1-70b", "h100-sxm", as_of=SNAPSHOT, gpus=n, weights="fp8") for n in (1, 2, 8)}
    reached = {name: efficiency(one, "vllm") for name, one in splits.items()}
    frame = prefill.sweep_gpus(splits, reached, input_tokens=8000).set_index(["part", "name"])["size"]
    assert frame["communication"].tolist()[0] == 0
    assert frame["communication"].is_monotonic_increasing
    assert frame["computing"].is_monotonic_decreasing


@pytest.mark.parametrize("cached", [-1.0, float("nan")])
def test_a_cache_of_less_than_nothing_is_refused(cached):
    with pytest.raises(InputError, match="cached_tokens"):
        prefill.compute_bound_from(SMALL, cached_tokens=cached)
