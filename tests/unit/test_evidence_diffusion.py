"""Diffusion beside measurements: ratios as their sources print them, bounds by hand, errors that stay known."""

import numpy as np
import pytest

from analysis.evidence import diffusion
from analysis.inputs import InputError
from analysis.model.transformer import pass_work
from analysis.reference import decoder_tables
from analysis.reference.model_config import replica
from analysis.reference.tables import NEWEST, accelerator


def same():
    return diffusion.same_backbone().set_index(["gpu", "decoder"])


def test_the_gains_are_those_that_the_engines_chart_prints():
    """5.1 and 6.0 over one token at a time, 2.6 and 3.0 over drafts (vLLM, 10 June 2026)."""
    for gpu, over_plain, over_drafts in (("h100", 5.1, 2.6), ("h200", 6.0, 3.0)):
        rate = same().loc[gpu]["measured_tok_per_s"]
        assert rate["in blocks"] / rate["one token at a time"] == pytest.approx(over_plain, abs=0.05)
        assert rate["in blocks"] / rate["with drafts"] == pytest.approx(over_drafts, abs=0.05)


def test_rates_that_no_constant_saw_are_within_a_fifth():
    frame = same()
    judged = frame[frame["set"] == "judged"]
    assert len(judged) == 5
    assert (judged["error"].abs() < 0.2).all()
    assert frame[frame["set"] == "fitted"]["error"].iloc[0] == pytest.approx(0, abs=1e-12)


def test_no_pass_was_faster_than_its_data_sheet():
    frame = same()
    assert (frame["measured_ms"] > frame["floor_ms"]).all()
    assert (frame["predicted_ms"] > frame["floor_ms"]).all()


def test_gains_errors_and_passes_follow_from_the_rates():
    """17 passes for 256 tokens are 15.06 a pass; four drafts at 80 % yield 3.36; a pass takes tokens over rate."""
    frame = same()
    assert frame.loc["h200"]["tokens_per_pass"].tolist() == pytest.approx([1, 3.3616, 256 / 17])
    for gpu in ("h100", "h200"):
        of = frame.loc[gpu]
        for kind in ("measured", "predicted"):
            rate = of[f"{kind}_tok_per_s"]
            assert of[f"{kind}_gain"].tolist() == pytest.approx((rate / rate["one token at a time"]).tolist())
            assert of[f"{kind}_ms"].tolist() == pytest.approx((1e3 * of["tokens_per_pass"] / rate).tolist())
    assert frame["error"].tolist() == pytest.approx(frame["predicted_tok_per_s"] / frame["measured_tok_per_s"] - 1)
    # the floor of a plain pass: the bytes that it reads at full bandwidth
    one = replica("gemma-4-26b-a4b", "h100-sxm", as_of=NEWEST, weights="fp8")
    work = pass_work(one.architecture, one.precision, batch=1, context_tokens=256)
    assert frame.loc[("h100", "one token at a time"), "floor_ms"] == pytest.approx(1e3 * work.byte / 3.35e12, rel=0.01)


def test_a_block_of_the_sparse_model_reads_everything_and_starves_the_arithmetic():
    """By hand: 25.2 GB at 3.35 TB/s are 7.5 ms; 17 passes for 256 tokens at 1,008 token/s are 14.9 ms each."""
    found = diffusion.pass_anatomy("h100")
    assert found["measured_s"] == pytest.approx(256 / 17 / 1008, rel=1e-12)
    assert found["read_s_floor"] == pytest.approx(7.5e-3, rel=0.05)
    assert found["read_gb"] / found["weights_gb"] == pytest.approx(1, abs=0.01)
    assert found["ridge_flop_per_byte"] == pytest.approx(591, abs=1)
    assert found["intensity_flop_per_byte"] == pytest.approx(77, abs=2)
    assert found["mbu"] == pytest.approx(0.5, abs=0.03)
    assert found["mfu"] == pytest.approx(0.07, abs=0.01)
    assert found["predicted_s"] == pytest.approx(same().loc[("h100", "in blocks"), "predicted_ms"] / 1e3)
    # weights that a position uses: attention of 25 and 5 layers, router, 8 experts and the shared one, the head
    local, distant = 2816 * 4096 * 2 + 2 * 2816 * 2048, 2816 * 8192 * 2 + 2816 * 1024
    used = 25 * local + 5 * distant + 30 * 2816 * (128 + 3 * (8 * 704 + 2112)) + 262_144 * 2816
    # every position of the block sees the context and the whole block: 512 keys, each of 256 or 512 numbers
    attention = 4 * 256 * 512 * 16 * (25 * 256 + 5 * 512)
    flop = 2 * 256 * used + attention
    assert found["intensity_flop_per_byte"] * found["read_gb"] * 1e9 == pytest.approx(flop, rel=1e-4)
    assert found["compute_s_floor"] == pytest.approx(flop / 1978.9e12, rel=1e-4)


def test_more_bandwidth_helps_a_block_more_than_its_plain_rival():
    """H200 has the same arithmetic and 1.43 times the bandwidth: 1.28 for blocks, 1.08 for plain decoding."""
    frame = same()
    gain = frame.loc["h200"]["measured_tok_per_s"] / frame.loc["h100"]["measured_tok_per_s"]
    predicted = frame.loc["h200"]["predicted_tok_per_s"] / frame.loc["h100"]["predicted_tok_per_s"]
    assert gain["in blocks"] == pytest.approx(1.28, abs=0.005)
    assert gain["one token at a time"] == pytest.approx(1.08, abs=0.005)
    assert predicted["in blocks"] > predicted["one token at a time"] > 1
    assert (predicted < 4.8 / 3.35).all()


def test_a_whole_request_gains_less_than_its_decoding():
    frame = diffusion.whole_request().set_index("decoder")
    rate = frame["output_tok_per_s"]
    assert rate["in blocks"] / rate["one token at a time"] == pytest.approx(1.9, abs=0.05)
    assert (frame["error"].abs() < 0.1).all()
    # two blocks hold 330 tokens
    assert frame.loc["in blocks", "predicted_e2e_s"] == pytest.approx(0.053 + 2 * (0.489 - 0.053))
    # a plain answer of 571 tokens: the prompt, then 570 passes of the same length as those of the decoding test
    pass_s = same().loc[("h100", "one token at a time"), "predicted_ms"] / 1e3
    assert frame.loc["one token at a time", "predicted_e2e_s"] == pytest.approx(0.053 + (199 * 2.87 - 1) * pass_s)
    assert (frame["predicted_tok_per_s"] * frame["predicted_e2e_s"]).tolist() == pytest.approx(
        frame["output_tokens"].tolist()
    )


def test_a_sibling_that_drafts_is_the_harder_rival():
    """LLaDA2.2 report, table 3: 1.64 as a ratio of mean rates, from 1.04 to 2.29 by task; LLaDA2.0: 2.1 and 2.2."""
    frame = diffusion.siblings().set_index(["model", "method", "source"])
    drafting = frame.loc[("llada2.2-flash", "block", "llada2.2")]
    assert (drafting["rival"], round(drafting["gain"], 2)) == ("speculative", 1.64)
    assert (round(drafting["low"], 2), round(drafting["high"], 2)) == (1.04, 2.29)
    costs = frame["pass_cost"].dropna()
    assert costs.between(2.1, 2.25).all()
    assert len(costs) == 2


def test_a_siblings_pass_costs_what_it_reads_more():
    """By hand: 93.9/(1 - 8/256) = 96.9e9 weights in experts, of which 32 positions read 1 - (1 - 1/32)^32 = 64 %."""
    found = diffusion.sibling_pass()
    assert found["experts_read"] == pytest.approx(1 - (31 / 32) ** 32)
    read = 100e9 - (1 - found["experts_read"]) * 93.9e9 / (31 / 32)
    assert found["block_read_ms"] == pytest.approx(1e3 * 2 * read / (8 * 4e12))
    assert found["measured"] == pytest.approx(2.13, abs=0.01)
    # the plain sibling makes 256 tokens per second, and reads what it uses: 6.1 of the 100 billion weights
    assert found["plain_ms"] == pytest.approx(1e3 / 256)
    assert found["plain_read_ms"] == pytest.approx(1e3 * 2 * 6.1e9 / (8 * 4e12))
    assert found["predicted"] == pytest.approx(1 + (found["block_read_ms"] - found["plain_read_ms"]) / 3.90625)
    assert found["error"] == pytest.approx(found["predicted"] / found["measured"] - 1)


def test_tokens_per_pass_fall_with_the_batch_and_passes_grow_with_it():
    frame = diffusion.tokens_by_batch()
    assert (frame["tokens_4"] / frame["tokens_1"]).between(0.85, 0.88).all()
    # such a pass fills the arithmetic alone: four of them take about three times as long or more
    assert (frame["longer"] > 2.9).all()
    assert (frame["longer"] <= 4).all()


def test_the_uncached_loop_is_below_the_roofline_of_its_whole_sequence():
    """LLaDA-8B without a cache computes prompt and answer in every pass: even its answer alone bounds the rate."""
    rows = decoder_tables.diffusion()
    rows = rows[(rows["source"] == "fast-dllm") & (rows["method"] == "vanilla") & (rows["model"] == "llada-8b")]
    peak = accelerator("a100-sxm-80gb", as_of=NEWEST).peak("bf16")
    bound = peak / (2 * 7.5e9 * rows["answer_tokens"])
    assert len(rows) > 8
    assert (rows["output_tok_per_s"] < bound).all()


@pytest.mark.parametrize(
    ("tokens", "passes", "bound"),
    [
        (1.0, 1.0, 3.35e12 / 1109),  # one token a pass: all weights in 1/1109 s
        (100.0, 16.0, 1978.9e12 / (2 * 1109 * 16)),  # many tokens a pass: arithmetic of 16 passes over each
    ],
)
def test_the_largest_model_behind_a_rate_by_hand(tokens, passes, bound):
    h100 = accelerator("h100-sxm", as_of=NEWEST)
    found = diffusion.largest_active_params(h100, tok_per_s=1109, tokens_per_pass=tokens, passes_per_block=passes)
    assert found == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize(
    ("part", "width", "peak"),
    [
        ("h100-sxm", 2, "bf16"),
        ("h100-sxm", 1, "fp8"),
        ("h100-sxm", 0.5, "fp8"),
        ("b200-sxm", 1, "fp8"),
        ("b200-sxm", 1.5, "fp8"),
        ("b200-sxm", 0.5, "fp4"),
    ],
)
def test_the_peak_is_that_of_the_width_where_the_part_has_it(part, width, peak):
    """With endless tokens a pass only arithmetic bounds: P / (2 X T) on each of two GPUs."""
    gpu = accelerator(part, as_of=NEWEST)
    found = diffusion.largest_active_params(
        gpu, tok_per_s=1000, tokens_per_pass=1e9, gpus=2, bytes_per_weight=width, passes_per_block=10
    )
    assert found == pytest.approx(2 * gpu.peak(peak) / (2 * 1000 * 10))
    reading = diffusion.largest_active_params(gpu, tok_per_s=1000, tokens_per_pass=1, gpus=2, bytes_per_weight=width)
    assert reading == pytest.approx(2 * gpu.mem_bw_byte_per_s / (width * 1000))


def test_blocks_raise_the_intensity_up_to_what_their_context_costs():
    """Without context a dense block has two FLOP for each of its positions and weight, against the weights' bytes.

    Of 7.505e9 weights 0.525e9, the head, stay in 16 bit: 8.03e9 bytes, beside 1.05e9 of embeddings that are looked up.
    A whole sequence computes prompt and block alike, so only their sum counts. A sparse model reads more experts.
    """
    frame = diffusion.sweep_blocks([16.0, 64.0], prompt_tokens=0.0).set_index(["name", "block_tokens"])
    of = frame["intensity_flop_per_byte"]
    for block in (16.0, 64.0):
        assert of["dense, cached", block] == pytest.approx(2 * block * 7.505 / 8.03, rel=0.01)
    assert of["sparse, cached", 64.0] < of["dense, cached", 64.0] / 2
    read = frame["weights_read"]
    assert read["sparse, cached", 16.0] < read["sparse, cached", 64.0] < 1
    assert read["dense, cached"].tolist() == pytest.approx([8.03 / 9.08] * 2, rel=0.01)
    assert frame["over_ridge"].tolist() == pytest.approx(of / frame["ridge_flop_per_byte"])
    assert set(frame["ridge_flop_per_byte"].round()) == {591}
    more = diffusion.sweep_blocks([16.0, 64.0], prompt_tokens=48.0).set_index(["name", "block_tokens"])
    assert more["intensity_flop_per_byte"]["whole sequence", 16.0] == pytest.approx(of["whole sequence", 64.0])
    # attention of four heads a group has 2 x 4 x 16 FLOP for each number of two bytes: 64, more than the products
    assert of["dense, cached", 16.0] < more["intensity_flop_per_byte"]["dense, cached", 16.0] < 64


def test_every_position_of_a_block_sees_the_whole_block():
    """4,096 positions of 32 layers and 4,096 numbers, each against 4,096 keys; half of that if only those before."""
    frame = diffusion.sweep_blocks([4096.0], prompt_tokens=0.0).set_index("name")
    products, attention = 2 * 4096 * 7.505e9, 4 * 32 * 4096**3
    assert frame.loc["dense, cached", "intensity_flop_per_byte"] == pytest.approx(
        (products + attention) / 8.03e9, rel=1e-3
    )


def test_answers_in_blocks_come_in_whole_ones():
    """257 tokens take a second block of 17 passes, 14.9 ms measured for each; the plain decoder takes one more pass."""
    frame = diffusion.sweep_answers([200.0, 256.0, 257.0]).set_index(["name", "output_tokens"])
    seconds = frame["seconds"]
    blocks = seconds["blocks, 17 passes"]
    assert blocks[200.0] == pytest.approx(blocks[256.0], rel=0.01)
    assert blocks[257.0] - blocks[256.0] == pytest.approx(
        17 * same().loc[("h100", "in blocks"), "predicted_ms"] / 1e3, rel=0.05
    )
    assert (frame["edge"]["one at a time"] == 1).all()
    (many,) = (name for name in frame.index.unique("name") if name.startswith("blocks") and "17" not in name)
    assert seconds[many, 256.0] > blocks[256.0]
    for name in ("with drafts", "blocks, 17 passes", many):
        assert frame["edge"][name].tolist() == pytest.approx((seconds["one at a time"] / seconds[name]).tolist())
    assert 1 < frame["edge"]["with drafts", 256.0] < frame["edge"]["blocks, 17 passes", 256.0]
    # five tokens more with drafts are 5/3.3616 passes more, each with the time that its drafts take
    more = diffusion.sweep_answers([200.0, 205.0]).query("name == 'with drafts'")["seconds"].diff().iloc[-1]
    assert more == pytest.approx(5 / 3.3616 * same().loc[("h100", "with drafts"), "predicted_ms"] / 1e3, rel=0.05)


def test_a_pass_of_a_batch_is_its_tokens_over_its_rate():
    """Rates at batch 4 are sums: four sequences keep their tokens in the time of one pass."""
    rows = decoder_tables.diffusion().query("source == 'd3llm'")
    table = diffusion.tokens_by_batch()
    assert len(table) == 6
    for row in table.to_dict("records"):
        of = rows[
            (rows["model"] == row["model"]) & (rows["accelerator"] == row["gpu"]) & (rows["decoder"] == "diffusion")
        ]
        of = of.set_index("batch")
        for n in (1, 4):
            time = n * of.loc[n, "tokens_per_pass"] / of.loc[n, "output_tok_per_s"]
            assert row[f"pass_ms_{n}"] == pytest.approx(1e3 * time)
            assert (row[f"tokens_{n}"], row[f"rate_{n}"]) == (
                of.loc[n, "tokens_per_pass"],
                of.loc[n, "output_tok_per_s"],
            )
        assert row["longer"] == pytest.approx(row["pass_ms_4"] / row["pass_ms_1"])
        (plain,) = rows[(rows["model"] == "qwen2.5-7b") & (rows["accelerator"] == row["gpu"])]["output_tok_per_s"]
        assert row["plain_ms"] == pytest.approx(1e3 / plain)
        assert row["pass_cost"] == pytest.approx(row["pass_ms_1"] * plain / 1e3)


def test_the_largest_model_is_proportional_to_gpus_and_falls_with_the_rate():
    h100 = accelerator("h100-sxm", as_of=NEWEST)
    one = diffusion.largest_active_params(h100, tok_per_s=[1000, 2000], tokens_per_pass=4)
    eight = diffusion.largest_active_params(h100, tok_per_s=[1000, 2000], tokens_per_pass=4, gpus=8)
    np.testing.assert_allclose(eight, 8 * one, rtol=1e-12)
    assert one[0] == pytest.approx(2 * one[1])
    with pytest.raises(InputError, match=r"tokens_per_pass: got 0\.5"):
        diffusion.largest_active_params(h100, tok_per_s=1000, tokens_per_pass=0.5)


def test_possible_sizes_cover_each_pair_and_refuse_an_unknown_system():
    def part(name):
        return accelerator(name, as_of=NEWEST)

    grid = diffusion.possible_sizes(part, name="Mercury 2", tokens_per_pass=[1, 8, 64], gpus=[1, 2])
    assert len(grid) == 6
    assert grid.groupby("gpus")["params_billion"].apply(lambda s: s.is_monotonic_increasing).all()
    assert set(grid["bound"]) == {"bandwidth", "arithmetic"}
    b200 = part("b200-sxm")
    for row in grid.to_dict("records"):
        each = {"tok_per_s": row["tok_per_s"], "tokens_per_pass": row["tokens_per_pass"], "gpus": row["gpus"]}
        most = diffusion.largest_active_params(b200, **each, bytes_per_weight=0.5625, passes_per_block=16)
        assert row["params_billion"] == pytest.approx(most / 1e9)
        reading = row["tokens_per_pass"] * row["gpus"] * b200.mem_bw_byte_per_s / (0.5625 * row["tok_per_s"])
        assert row["bound"] == ("bandwidth" if most == pytest.approx(reading) else "arithmetic")
    with pytest.raises(InputError, match="name: got 'Mercury 3'"):
        diffusion.possible_sizes(part, name="Mercury 3", tokens_per_pass=[1], gpus=[1])


def test_the_slopes_agree_and_the_levels_do_not():
    """SMDM: about 16 times the compute at equal loss; here 15.3 at the smallest point and 16.5 at the largest."""
    laws = diffusion.scaling_laws().set_index("decoder")
    apart = abs(laws.loc["ar", "exponent"] - laws.loc["diffusion", "exponent"])
    assert apart < 2 * np.hypot(*laws["error"])
    low, high = diffusion.compute_gap([6e18, 1e20])
    assert low < decoder_tables.scaling_coefficient("smdm", "optimal", "compute-gap") < high
    # at the gap both laws give the same loss
    scale, exponent = laws["scale"], laws["exponent"]
    plain = scale["ar"] * 1e19 ** -exponent["ar"]
    assert scale["diffusion"] * (1e19 * diffusion.compute_gap(1e19)) ** -exponent["diffusion"] == pytest.approx(plain)


def test_scores_at_equal_compute_are_those_of_the_lines():
    """Level at 4.8e22: MMLU +6.4, GSM8K +18.7, PIQA -5.0, HumanEval -2.2 points (tables 18 and 19 of LLaDA)."""
    found = diffusion.scores_at_equal_compute().set_index("task")["difference"].round(1)
    assert (found["mmlu"], found["gsm8k"], found["piqa"], found["humaneval"]) == (6.4, 18.7, -5.0, -2.2)
    with pytest.raises(InputError, match=r"training_flop: got 1e\+24"):
        diffusion.scores_at_equal_compute(1e24)


def test_break_even_quality_by_hand():
    """Twice as fast may lose half of the right answers; equally fast none."""
    assert diffusion.break_even_loss([1.0, 2.0]).tolist() == [0.0, 0.5]
    with pytest.raises(InputError, match=r"gain: got 0\.9"):
        diffusion.break_even_loss(0.9)
    rows = diffusion.useful_answers()
    at_break_even = rows["gain"] * (1 - rows["break_even"])
    np.testing.assert_allclose(at_break_even, 1)
    kept = rows["diffusion"] / rows["rival"]
    np.testing.assert_allclose(rows["lost"], 1 - kept)
    np.testing.assert_allclose(rows["useful_gain"], rows["gain"] * kept)
    assert rows["gain"].round(1).tolist() == [1.9, 1.9, 1.6, 1.6]


def test_losses_are_those_of_the_figure_beside_their_law():
    """A law through two points of the figure gives the exponent by hand; the fit over five is within two percent."""
    frame = diffusion.losses_by_compute()
    assert list(frame.columns) == ["decoder", "training_flop", "loss", "fitted"]
    assert frame.groupby("decoder").size().to_dict() == {"ar": 5, "diffusion": 5}
    laws = diffusion.scaling_laws().set_index("decoder")
    for decoder, of in frame.groupby("decoder"):
        (low, high) = of["loss"].iloc[[0, -1]]
        assert np.log(low / high) / np.log(1e20 / 6e18) == pytest.approx(laws.loc[decoder, "exponent"], rel=0.02)
        law = laws.loc[decoder]
        assert of["fitted"].tolist() == pytest.approx(
            [law["scale"] / flop ** law["exponent"] for flop in (6e18, 1e19, 3e19, 6e19, 1e20)]
        )
        assert of["loss"].tolist() == pytest.approx(of["fitted"].tolist(), rel=3e-3)


def test_the_rate_of_one_model_spreads_over_tasks():
    """LLaDA2.1 report, table 3: nine tasks in two formats, from IFEval's 219.37 to ProntoQA's 912.16 token/s."""
    frame = diffusion.by_task()
    assert frame.groupby("weights").size().to_dict() == {"bf16": 9, "fp8": 9}
    assert frame["output_tok_per_s"].is_monotonic_increasing
    assert frame.index.tolist() == list(range(18))
    ends = frame.iloc[[0, -1]][["task", "weights", "output_tok_per_s"]].to_numpy().tolist()
    assert ends == [["ifeval", "bf16", 219.37], ["prontoqa", "fp8", 912.16]]
    assert set(frame["source"]) == {"llada2.1"}


def test_what_was_seen_when_requests_ran_together():
    """2,853/592 and 3,412/2,853 on the H20, 9,920/4,790 on the TPU; a range only where the source gives one."""
    frame = diffusion.crossovers().set_index("what")
    assert frame[["value", "low", "high"]].to_numpy() == pytest.approx(
        np.array([[3, 2, 4], [4] * 3, [2853 / 592] * 3, [3412 / 2853] * 3, [9920 / 4790] * 3])
    )
    assert frame["unit"].tolist() == ["sequences", "sequences", "times", "times", "times"]
    told = [("overtakes", 8), ("recipe admits", 26), ("1 to 32", 20), ("32 to 128", 20), ("TPU", 32)]
    assert all(words in what and str(number) in what for (words, number), what in zip(told, frame.index, strict=True))
    sources = ["peng2025", "vllm-recipe-diffusiongemma", "sglang-33322", "sglang-33322", "tpu-inference-3440"]
    assert frame["source"].tolist() == sources
    assert frame["status"].tolist() == ["quoted"] + ["measured"] * 4


def test_the_same_model_on_other_machines_from_the_fastest_on():
    frame = diffusion.on_other_hardware()
    assert frame["output_tok_per_s"].is_monotonic_decreasing
    assert frame.index.tolist() == list(range(len(frame)))
    rates = frame.set_index("id")["output_tok_per_s"]
    assert rates[["dg-h200-diffusion", "dg-5090-code", "dg-l4", "dg-m1-ultra"]].tolist() == [1288, 495.2, 56.3, 15.06]
    rows = decoder_tables.diffusion().set_index("id").loc[frame["id"]]
    assert set(rows["model"]) == {"diffusiongemma-26b-a4b"}


def test_every_frame_names_its_sources():
    frames = (diffusion.siblings(), diffusion.by_task(), diffusion.crossovers(), diffusion.on_other_hardware())
    for frame in frames:
        assert (frame["source"] != "").all()


def test_a_row_that_gives_its_own_passes_is_no_judge_of_them():
    frame = diffusion.whole_request().set_index("decoder")["set"]
    assert frame.to_dict() == {"one token at a time": "judged", "in blocks": "partly fitted"}
