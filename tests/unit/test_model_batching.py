"""What a batch is worth: against passes counted by hand, against limits, against the derivation."""

import numpy as np
import pytest

from analysis.inputs import InputError
from analysis.model import batching, decoding
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import replica
from analysis.reference.tables import SNAPSHOT
from analysis.symbolic import decoding as derive
from analysis.symbols import ANSWER_PASSES, BASE_TIME, PASS_TIME, PROMPT_TIME, SEQUENCE_TIME, SEQUENCES

NODE = replica("llama-3.1-70b", "h100-sxm", as_of=SNAPSHOT, gpus=8)
REACHED = efficiency(NODE, "vllm")
DOCUMENT = {"input_tokens": 8000, "output_tokens": 300}


def test_one_request_after_the_other_is_its_run():
    """At batch 1 the replica does what a static run of one does: the prompt, then a pass for each token."""
    run = decoding.run_s(NODE, batch=1, **DOCUMENT, efficiency=REACHED)
    rate = batching.served_tok_per_s(NODE, batch=1, **DOCUMENT, efficiency=REACHED)
    # the pass that reads the prompt carries a token of the stream too, so it is not counted twice
    assert rate == pytest.approx(300 / run, rel=0.01)


def test_at_the_batch_that_memory_holds_it_is_the_maximum_load():
    room = decoding.max_batch(NODE, tokens=8300)
    rate = batching.served_tok_per_s(NODE, batch=room, **DOCUMENT, efficiency=REACHED)
    assert rate == pytest.approx(decoding.max_load_tok_per_s(NODE, **DOCUMENT, efficiency=REACHED), rel=1e-9)


def test_rate_and_share_agree_with_the_derivation():
    """With t and p taken from the model itself, the formulas of the chapter give what the schedule gives."""
    n, answer = 64, 300
    t = decoding.pass_time(NODE, batch=n, context_tokens=8150).pass_s
    with_prompt = decoding.schedule_s(decoding.token_steps(NODE, batch=n, others=n, **DOCUMENT), NODE)
    p = (with_prompt - t) * answer / n
    at = {SEQUENCES: n, ANSWER_PASSES: answer, PASS_TIME: t, PROMPT_TIME: p}
    assert batching.served_tok_per_s(NODE, batch=n, **DOCUMENT) == pytest.approx(
        float(n * derive.max_load_passes().subs(at))
    )
    assert batching.prompt_share(NODE, batch=n, **DOCUMENT) == pytest.approx(float(derive.prompt_share().subs(at)))


def test_the_swing_nears_the_largest_that_the_line_allows():
    """On the ideal node, where passes are lines: t0, beta and p read off at small batches give the end of the swing."""
    one, two = (decoding.pass_time(NODE, batch=n, context_tokens=8150).pass_s for n in (1, 2))
    p = 1 / batching.served_tok_per_s(NODE, batch=1, **DOCUMENT) * 300 - 300 * one
    at = {BASE_TIME: 2 * one - two, SEQUENCE_TIME: two - one, PROMPT_TIME: p, ANSWER_PASSES: 300}
    largest = float(derive.largest_swing().subs(at))
    assert batching.swing(NODE, small=1, large=1e5, **DOCUMENT) == pytest.approx(largest, rel=0.05)


def test_the_same_batch_twice_swings_nothing():
    assert batching.swing(NODE, small=8, large=8, **DOCUMENT) == pytest.approx(1)


def test_longer_prompts_shrink_the_swing_and_longer_answers_widen_it():
    prompts = batching.swing(NODE, small=1, large=64, input_tokens=[500, 2000, 8000], output_tokens=300)
    answers = batching.swing(NODE, small=1, large=64, input_tokens=2000, output_tokens=[30, 300, 1000])
    assert (np.diff(prompts) < 0).all()
    assert (np.diff(answers) > 0).all()


def test_a_cached_prefix_serves_more():
    whole, cached = (batching.served_tok_per_s(NODE, batch=64, **DOCUMENT, cached_tokens=c) for c in (0, 6000))
    assert cached > 1.5 * whole


def test_a_map_holds_every_pair_once_and_says_what_fits():
    frame = batching.sweep_swing(NODE, small=[1, 64], large=[32, 256], input_tokens=8000, output_tokens=300)
    assert frame[["small_batch", "large_batch", "fits"]].to_numpy().tolist() == [
        [1, 32, True],
        [1, 256, False],
        [64, 256, False],
    ]


def test_following_a_batch_gives_gains_that_start_at_one():
    frame = batching.sweep_batch(NODE, batch=[1, 8, 64], **DOCUMENT, efficiency=REACHED)
    assert frame["gain"].iloc[0] == 1
    assert frame["gain"].is_monotonic_increasing
    assert frame["request_s"].is_monotonic_increasing
    # Little's law: requests in the replica over requests per second are the time of one
    assert frame["request_s"].to_numpy() == pytest.approx((frame["batch"] * 300 / frame["node_tok_per_s"]).to_numpy())


def test_terms_of_a_pass_add_up_where_nothing_overlaps():
    frame = batching.sweep_terms(NODE, batch=[1, 64], context_tokens=[512, 8192], efficiency=REACHED)
    terms = frame[[f"{term}_s" for term in decoding.TERMS]].sum(axis=1)
    assert (frame["pass_s"] <= terms).all()
    assert frame["bound"].isin(decoding.TERMS).all()


def test_traffic_by_hand():
    """64 sequences of 8,192 tokens with 327,680 bytes each token, over 141.1 GB less the input embedding."""
    row = batching.sweep_traffic(NODE, batch=64, context_tokens=8192).iloc[0]
    assert row["kv_byte"] == 64 * 8192 * 327_680
    assert row["kv_over_weights"] == pytest.approx(171.8 / 139.0, rel=1e-3)


def test_capacity_by_hand():
    frame = batching.capacity({"node": NODE}, tokens=[8192])
    assert frame.loc[0, "kv_kb_per_token"] == pytest.approx(327.68)
    assert frame.loc[0, "at 8,192"] == int(decoding.max_batch(NODE, tokens=8192))


def test_limits_of_the_context_that_others_quote():
    """393 tokens for Llama-3.1-8B and 1,476 for 70B in bf16 on H100."""
    small = replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT)
    limits = batching.context_limits({"8B": small, "70B": NODE})
    assert limits["limit_tokens"].round().tolist() == [393, 1476]
    assert (limits["memory_tokens"] < limits["limit_tokens"]).all()


@pytest.mark.parametrize(("name", "value"), [("batch", 0.0), ("input_tokens", -1.0), ("output_tokens", 0.0)])
def test_numbers_outside_their_domain_are_refused(name, value):
    with pytest.raises(InputError, match=name):
        batching.served_tok_per_s(NODE, **{"batch": 1.0, **DOCUMENT, name: value})
