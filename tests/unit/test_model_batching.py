"""What a batch is worth: against passes counted by hand, against limits, against the derivation."""

import numpy as np
import pytest

from analysis.inputs import InputError
from analysis.model import batching, decoding
from analysis.model.transformer import context_limit, equal_context, pass_work
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import replica
from analysis.reference.specs import Efficiency, MemoryRule
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


@pytest.mark.parametrize(("cached", "reached"), [(0.0, REACHED), (6000.0, REACHED), (6000.0, Efficiency())])
def test_a_request_lasts_its_tokens_and_its_own_prompt(cached, reached):
    """S_out·TPOT + p: prompts of the n - 1 others lie between two tokens, the own one before the first.

    The share that prompts take of the replica is n p over the time of a request, which gives p once more.
    """
    frame = batching.sweep_batch(NODE, batch=[1, 8, 64], **DOCUMENT, cached_tokens=cached, efficiency=reached)
    prompt_s = frame["prompt_share"] * frame["request_s"] / frame["batch"]
    assert frame["request_s"].to_numpy() == pytest.approx((300 * frame["tpot_s"] + prompt_s).to_numpy(), rel=1e-9)
    assert (frame["stream_tok_per_s"] * frame["tpot_s"]).to_numpy() == pytest.approx(1)
    alone = decoding.pass_time(NODE, batch=1, context_tokens=8150, efficiency=reached).pass_s
    assert frame["request_s"].iloc[0] - prompt_s.iloc[0] == pytest.approx(300 * alone)
    assert frame["batch"].tolist() == [1, 8, 64]


def test_a_swing_compares_the_same_requests_on_the_same_engine():
    """Costs are the inverse of rates: 1/X(1) over 1/X(64); in the table each pair is that of its own row."""
    load = {**DOCUMENT, "cached_tokens": 4000, "efficiency": REACHED}
    small, large = (batching.served_tok_per_s(NODE, batch=n, **load) for n in (1, 64))
    assert batching.swing(NODE, small=1, large=64, **load) == pytest.approx(large / small)
    frame = batching.sweep_swing(
        NODE, small=[2, 4], large=16, input_tokens=[100, 9000], output_tokens=[50, 900], efficiency=REACHED
    )
    assert len(frame) == 8
    for row in frame.itertuples():
        lengths = {"input_tokens": row.input_tokens, "output_tokens": row.output_tokens}
        expected = batching.swing(NODE, small=row.small_batch, large=16, **lengths, efficiency=REACHED)
        assert row.swing == pytest.approx(expected)


SHY = MemoryRule(share=0.3)


def test_what_fits_follows_the_rule_of_the_engine():
    """Eight cards of 80 GiB are 687 GB: nine tenths less 141 GB of weights hold 64 requests, three tenths do not.

    Those leave 65 GB, and a request of 8,300 tokens at 327,680 bytes or of 8,192 takes 2.7 GB: 23 of them.
    """
    for rule, held in ((decoding.OF_THE_CARD, [True, True]), (SHY, [True, False])):
        assert batching.sweep_batch(NODE, batch=[23, 64], **DOCUMENT, rule=rule)["fits"].tolist() == held
        swings = batching.sweep_swing(NODE, small=1, large=[23, 64], **DOCUMENT, rule=rule)
        assert swings["fits"].tolist() == held
        traffic = batching.sweep_traffic(NODE, batch=[23, 64], context_tokens=8192, rule=rule)
        assert traffic["fits"].tolist() == held
    assert batching.capacity({"node": NODE}, tokens=[8192, 81_920], rule=SHY).loc[0, "at 8,192"] == 23
    assert batching.capacity({"node": NODE}, tokens=[8192, 81_920], rule=SHY).loc[0, "at 81,920"] == 2


def test_an_empty_context_still_holds_the_token_that_is_made():
    at_one = float(decoding.max_batch(NODE, tokens=1))
    assert batching.sweep_traffic(NODE, batch=[at_one, 1.001 * at_one], context_tokens=0)["fits"].tolist() == [
        True,
        False,
    ]


def test_the_last_request_that_memory_holds_fits():
    """Room for a prompt of 8,000 and an answer of 300, to the last digit; a hair more does not fit."""
    room = float(decoding.max_batch(NODE, tokens=8300))
    assert batching.sweep_batch(NODE, batch=[room, 1.001 * room], **DOCUMENT)["fits"].tolist() == [True, False]
    swings = batching.sweep_swing(NODE, small=1, large=[room, 1.001 * room], **DOCUMENT)
    assert swings["fits"].tolist() == [True, False]


def test_a_map_runs_through_the_small_batches_and_leaves_out_equal_ones():
    frame = batching.sweep_swing(NODE, small=[2, 4], large=[2, 4, 8], **DOCUMENT)
    assert frame[["small_batch", "large_batch"]].to_numpy().tolist() == [[2, 4], [2, 8], [4, 8]]


def test_nothing_is_cached_unless_said():
    assert batching.swing(NODE, small=1, large=64, **DOCUMENT) == batching.swing(
        NODE, small=1, large=64, **DOCUMENT, cached_tokens=0
    )
    left_out, said = (
        batching.sweep_batch(NODE, batch=[1, 64], **DOCUMENT, **more) for more in ({}, {"cached_tokens": 0})
    )
    assert left_out.equals(said)


def test_a_sparse_cache_weighs_against_the_experts_of_one_position():
    """Equal where one sequence's cache is what a pass over one position reads: few tokens, for few experts."""
    sparse = replica("qwen3-30b-a3b", "h100-sxm", as_of=SNAPSHOT)
    row = batching.capacity({"sparse": sparse}, tokens=[8192]).iloc[0]
    work = pass_work(sparse.architecture, sparse.precision, batch=1, context_tokens=row["equal_tokens"])
    assert work.kv_read_bytes == pytest.approx(work.weight_bytes)


def test_copies_and_windows_count_where_cache_and_weights_are_equal_to_read():
    """Eight copies of a latent cache bring the point eight times nearer; half of gpt-oss's layers see a window."""
    latent = replica("deepseek-r1", "h200-sxm", as_of=SNAPSHOT, gpus=8)
    windowed = replica("gpt-oss-120b", "h100-sxm", as_of=SNAPSHOT, gpus=2)
    frame = batching.capacity({"latent": latent, "windowed": windowed}, tokens=[8192]).set_index("replica")
    for name, one in (("latent", latent), ("windowed", windowed)):
        equal = frame.loc[name, "equal_tokens"]
        time = decoding.pass_time(one, batch=1, context_tokens=equal)
        assert time.kv_s == pytest.approx(time.weights_s, rel=1e-6)
    alone = equal_context(latent.architecture, latent.precision)
    assert frame.loc["latent", "equal_tokens"] == pytest.approx(alone / 8)
    # 36,864 bytes a token of the 18 layers that see everything; a window of 128 in the others hardly counts
    assert frame.loc["windowed", "equal_tokens"] == pytest.approx(5.003e9 / 36_864, rel=0.01)


def test_terms_by_hand():
    """Cache: 64 of 8,192 tokens at 327,680 bytes over eight times 3.35 TB/s; weights as `test_traffic_by_hand`."""
    frame = batching.sweep_terms(NODE, batch=[1, 64], context_tokens=[512, 8192]).set_index(["batch", "context_tokens"])
    assert frame.loc[(64, 8192), "kv_s"] == pytest.approx(64 * 8192 * 327_680 / (8 * 3.35e12))
    assert frame["weights_s"].to_numpy() == pytest.approx(139.006e9 / (8 * 3.35e12), rel=1e-4)
    assert frame.loc[(64, 8192), "pass_s"] == pytest.approx(frame.loc[(64, 8192), ["weights_s", "kv_s"]].sum())
    assert frame.loc[(64, 8192), "bound"] == "kv"
    assert frame.loc[(1, 8192), "bound"] == "weights"
    slow = batching.sweep_terms(NODE, batch=1, context_tokens=0, efficiency=Efficiency(layer_s=1e-3))
    assert slow["fixed_s"].item() == pytest.approx(0.08)


def test_terms_of_a_pass_add_up_where_nothing_overlaps():
    frame = batching.sweep_terms(NODE, batch=[1, 64], context_tokens=[512, 8192], efficiency=REACHED)
    terms = frame[[f"{term}_s" for term in decoding.TERMS]].sum(axis=1)
    assert (frame["pass_s"] <= terms).all()
    assert frame["bound"].isin(decoding.TERMS).all()


def test_traffic_by_hand():
    """64 sequences of 8,192 tokens with 327,680 bytes each token, over 141.1 GB less the input embedding."""
    row = batching.sweep_traffic(NODE, batch=64, context_tokens=8192).iloc[0]
    assert row["kv_byte"] == 64 * 8192 * 327_680
    assert row["weight_byte"] == 2 * (70_553_706_496 - 128_256 * 8192)
    assert row["kv_over_weights"] == pytest.approx(171.8 / 139.0, rel=1e-3)
    # two FLOP for each weight but the norms; four for each number of a query, 80 layers of 64 heads of 128
    flop = 64 * (2 * 69.5e9 + 4 * 80 * 64 * 128 * 8193)
    assert row["intensity_flop_per_byte"] == pytest.approx(flop / (139.006e9 + 171.799e9), rel=1e-4)


def test_capacity_by_hand():
    frame = batching.capacity({"node": NODE}, tokens=[8192])
    assert frame.loc[0, "kv_kb_per_token"] == pytest.approx(327.68)
    assert frame.loc[0, "at 8,192"] == int(decoding.max_batch(NODE, tokens=8192))
    assert frame.loc[0, "weights_gb"] == pytest.approx(2 * 70.553706496)
    assert frame.loc[0, "equal_tokens"] == pytest.approx(139_006_066_688 / 327_680)


def test_limits_of_the_context_that_others_quote():
    """393 tokens for Llama-3.1-8B and 1,476 for 70B in bf16 on H100."""
    small = replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT)
    limits = batching.context_limits({"8B": small, "70B": NODE})
    assert limits["limit_tokens"].round().tolist() == [393, 1476]
    assert (limits["memory_tokens"] < limits["limit_tokens"]).all()


@pytest.mark.parametrize(
    "rule",
    [MemoryRule(), MemoryRule(share=0.8, reserve_byte=2e9), MemoryRule(share=0.8, of_the_rest=True, reserve_byte=2e9)],
    ids=["of the card", "less a reserve", "of the rest"],
)
def test_the_largest_batch_reaches_the_ridge_where_the_limit_in_memory_says(rule):
    """At that context the sequences that fit do one ridge of FLOP for each byte that a pass reads."""
    row = batching.context_limits({"70B": NODE}, rule=rule).iloc[0]
    assert row["ridge_flop_per_byte"] == pytest.approx(989.4e12 / 3.35e12, rel=1e-3)
    at = float(row["memory_tokens"])
    batch = decoding.max_batch(NODE, tokens=at, rule=rule)
    work = pass_work(NODE.architecture, NODE.precision, batch=batch, context_tokens=at)
    assert work.intensity_flop_per_byte == pytest.approx(row["ridge_flop_per_byte"], rel=1e-3)


def test_copies_of_a_latent_cache_bring_the_limits_nearer():
    """Eight GPUs hold and read the cache of DeepSeek-R1 eight times; a pass then reads as long as it computes."""
    one = replica("deepseek-r1", "h200-sxm", as_of=SNAPSHOT, gpus=8)
    row = batching.context_limits({"R1": one}).iloc[0]
    at = {"ridge_flop_per_byte": row["ridge_flop_per_byte"]}
    assert row["limit_tokens"] < context_limit(one.architecture, one.precision, **at) / 8
    for name, batch in (("limit_tokens", 1e9), ("memory_tokens", None)):
        context = float(row[name])
        n = decoding.max_batch(one, tokens=context) if batch is None else batch
        work = pass_work(one.architecture, one.precision, batch=n, context_tokens=context)
        read = work.weight_bytes + 8 * work.kv_read_bytes
        assert work.flop / read == pytest.approx(row["ridge_flop_per_byte"], rel=1e-3)


def test_where_the_weights_do_not_fit_no_context_does():
    one = replica("llama-3.1-70b", "h100-sxm", as_of=SNAPSHOT)
    row = batching.context_limits({"70B": one}, rule=MemoryRule(reserve_byte=1e12)).iloc[0]
    assert row["memory_tokens"] == 0
    assert row["folk_tokens"] == pytest.approx(2 * 70.553706496e9 / (327_680 * row["ridge_flop_per_byte"]))


@pytest.mark.parametrize(("name", "value"), [("batch", 0.0), ("input_tokens", -1.0), ("output_tokens", 0.0)])
def test_numbers_outside_their_domain_are_refused(name, value):
    with pytest.raises(InputError, match=name):
        batching.served_tok_per_s(NODE, **{"batch": 1.0, **DOCUMENT, name: value})
