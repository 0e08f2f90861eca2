"""Four decoders on one time of a pass: known answers, limits, agreement with the model that measurements judge."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.inputs import InputError
from analysis.model import decoders, decoding
from analysis.model.transformer import pass_work
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import shipped
from analysis.reference.specs import Decoder, Precision, Replica
from analysis.reference.tables import SNAPSHOT, accelerator

H100 = accelerator("h100-sxm", as_of=SNAPSHOT)
AR = Decoder.autoregressive()
DRAFTS = Decoder.speculative(acceptance=0.8, draft_length=4, draft_cost=0.05)
BLOCKS = Decoder.diffusion(block_tokens=32, passes=8)
WHOLE = Decoder.full_sequence(passes=64)
EACH = pytest.mark.parametrize("decoder", [AR, DRAFTS, BLOCKS, WHOLE], ids=lambda decoder: decoder.kind)
SHAPE = {"input_tokens": 1500.0, "output_tokens": 300.0}


def replica(name="llama-3.1-8b", gpus=1, weights="bf16"):
    return Replica(shipped(name).architecture, Precision.of(weights), H100, gpus)


@pytest.mark.parametrize(
    ("acceptance", "drafts", "tokens"),
    [(0.8, 1, 1.8), (0.8, 2, 2.44), (0.8, 3, 2.952), (0.8, 4, 3.3616), (0.8, 5, 3.68928), (1, 4, 5), (0, 4, 1)],
)
def test_expected_tokens_are_those_of_leviathan(acceptance, drafts, tokens):
    """Sums by hand of 0.8^i; every draft accepted gives g + 1, none gives the target's own token."""
    decoder = Decoder.speculative(acceptance=acceptance, draft_length=drafts)
    assert decoder.tokens_per_pass == pytest.approx(tokens, rel=1e-12)


@given(st.floats(0.9999999, 1), st.integers(1, 64))
def test_expected_tokens_are_continuous_where_all_are_accepted(acceptance, drafts):
    """The quotient loses all digits near 1; between a^g and 1 times g + 1 the sum has to lie."""
    tokens = Decoder.speculative(acceptance=acceptance, draft_length=drafts).tokens_per_pass
    assert (drafts + 1) * acceptance**drafts * (1 - 1e-9) <= tokens <= (drafts + 1) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("make", "wrong", "expected"),
    [
        (Decoder.speculative, {"acceptance": 1.2, "draft_length": 4}, "acceptance: got 1.2"),
        (Decoder.speculative, {"acceptance": -0.1, "draft_length": 4}, "acceptance: got -0.1"),
        (Decoder.speculative, {"acceptance": 0.5, "draft_length": 0}, "draft_length: got 0"),
        (Decoder.speculative, {"acceptance": 0.5, "draft_length": 2.5}, "draft_length: got 2.5"),
        (Decoder.speculative, {"acceptance": 0.5, "draft_length": 2, "draft_cost": -1}, "draft_cost: got -1"),
        (Decoder.diffusion, {"block_tokens": 0, "passes": 4}, "block_tokens: got 0"),
        (Decoder.diffusion, {"block_tokens": 32, "passes": 0}, "passes: got 0"),
        (Decoder.full_sequence, {"passes": 0.5}, "passes: got 0.5"),
        (Decoder.full_sequence, {"passes": float("nan")}, "passes: got nan"),
    ],
)
def test_decoders_that_cannot_be_are_refused(make, wrong, expected):
    with pytest.raises(InputError, match=expected):
        make(**wrong)


@EACH
def test_answers_without_tokens_are_refused(decoder):
    with pytest.raises(InputError, match="output_tokens: got 0"):
        decoders.answer_passes(decoder, 0)


def test_answers_come_in_whole_blocks():
    """13 tokens pay for a block of 32, 33 for two; drafts know no blocks."""
    passes = decoders.answer_passes(BLOCKS, [1, 13, 32, 33, 300])
    assert passes.tolist() == [9, 9, 9, 17, 81]
    assert decoders.answer_passes(DRAFTS, 1) == 1
    assert decoders.answer_passes(WHOLE, 300) == 64


def test_speculation_that_never_hits_is_one_token_at_a_time_with_wider_passes():
    missing = Decoder.speculative(acceptance=0, draft_length=4)
    assert decoders.answer_passes(missing, 300) == decoders.answer_passes(AR, 300) == 300


def test_blocks_of_one_token_in_one_pass_are_one_token_at_a_time():
    """Except for the pass that reads the prompt, which makes no token of a block."""
    single = Decoder.diffusion(block_tokens=1, passes=1)
    one = replica()
    for n in (1, 64):
        plain = decoders.cycle(one, AR, batch=n, context_tokens=1500)
        block = decoders.cycle(one, single, batch=n, context_tokens=1500)
        assert block.cycle_s == pytest.approx(plain.cycle_s, rel=1e-12)
    assert decoders.answer_passes(single, 300) == 301


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt-oss-20b"])
def test_one_request_alone_takes_its_prompt_and_its_passes(name):
    """What the validated model says of a run of one: the passes run at the mean context there too."""
    one = replica(name)
    reached = efficiency(one, "vllm")
    alone = decoders.request_s(one, AR, **SHAPE, efficiency=reached)
    token_s = decoding.pass_time(one, batch=1, context_tokens=1650, efficiency=reached).pass_s
    assert alone == pytest.approx(decoding.run_s(one, batch=1, **SHAPE, efficiency=reached) - token_s, rel=1e-6)


def test_long_prompts_take_several_passes():
    one = replica()
    passes = decoders.served(one, AR, batch=1, input_tokens=16_384, output_tokens=300, chunk_tokens=2048).passes
    assert passes == 300 + 7
    whole = decoders.request_s(one, AR, input_tokens=16_384, output_tokens=1, chunk_tokens=2048)
    assert whole == pytest.approx(decoding.prefill_s(one, input_tokens=16_384, chunk_tokens=2048), rel=1e-6)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt-oss-20b"])
def test_saturated_rate_of_one_token_at_a_time_is_the_validated_one(name):
    one = replica(name)
    reached = efficiency(one, "vllm")
    known = decoding.max_load_tok_per_s(one, **SHAPE, slots=256, efficiency=reached) / 300
    assert decoders.saturated_req_per_s(one, AR, **SHAPE, slots=256, efficiency=reached) == pytest.approx(
        known, rel=0.01
    )


def test_nothing_is_served_where_no_request_fits():
    small = replica("llama-3.1-70b")
    assert decoders.largest_batch(small, AR, **SHAPE) < 1
    assert decoders.saturated_req_per_s(small, AR, **SHAPE) == 0


@EACH
@settings(deadline=None, max_examples=30)
@given(batch=st.floats(1, 300), prompt=st.floats(10, 20_000), answer=st.floats(1, 2000))
def test_no_decoder_beats_physics(decoder, batch, prompt, answer):
    """A cycle takes at least its bytes over the bandwidth and its FLOP over the peak."""
    one = replica()
    held = prompt + answer
    positions, context = (held, 0) if decoder.kind == "full-sequence" else (decoder.positions, held)
    work = pass_work(one.architecture, one.precision, batch=batch, context_tokens=context, positions=positions)
    least_s = max(work.byte / H100.mem_bw_byte_per_s, work.flop / H100.peak("bf16"))
    for reached in (decoding.IDEAL, efficiency(one)):
        found = decoders.cycle(one, decoder, batch=batch, context_tokens=held, efficiency=reached)
        assert found.cycle_s >= least_s * (1 - 1e-9)


@EACH
def test_arrays_are_scalars_side_by_side(decoder):
    one = replica("gpt-oss-20b")
    reached = efficiency(one)
    batches, prompts = np.array([1.0, 8, 200]), np.array([100.0, 5000, 12_000])
    together = decoders.served(
        one, decoder, batch=batches, input_tokens=prompts, output_tokens=300, efficiency=reached
    ).request_s
    for n, prompt, found in zip(batches, prompts, together, strict=True):
        single = decoders.served(one, decoder, batch=n, input_tokens=prompt, output_tokens=300, efficiency=reached)
        assert isinstance(single.request_s, float)
        assert single.request_s == pytest.approx(found, rel=1e-12)


@EACH
def test_latency_grows_with_load_and_with_length(decoder):
    one = replica()
    reached = efficiency(one)
    for name, values in {
        "batch": [1, 2, 8, 64, 256],
        "input_tokens": [10, 800, 9000],
        "output_tokens": [1, 40, 999],
    }.items():
        load = {"batch": 4.0, **SHAPE, name: np.array(values, float)}
        found = decoders.served(one, decoder, **load, efficiency=reached).request_s
        assert (np.diff(found) > 0).all()


def test_one_stream_gains_the_tokens_of_a_pass_from_blocks_and_a_full_batch_loses_the_passes():
    """Ideal dense roofline: gain tau at batch 1, 1/T of the rate where both compute."""
    one = replica()
    context = 0.0  # a cache would favour blocks: they read it once for all their tokens

    def gain(batch):
        plain = decoders.cycle(one, AR, batch=batch, context_tokens=context).cycle_s
        return BLOCKS.tokens_per_pass * plain / decoders.cycle(one, BLOCKS, batch=batch, context_tokens=context).cycle_s

    assert gain(1.0) == pytest.approx(BLOCKS.tokens_per_pass, rel=0.01)
    assert gain(1e5) == pytest.approx(1 / BLOCKS.passes_per_block, rel=0.02)


@pytest.mark.parametrize("decoder", [BLOCKS, WHOLE], ids=lambda decoder: decoder.kind)
def test_diffusion_is_more_intense_alone_and_makes_fewer_tokens_in_a_full_batch(decoder):
    """The signs that https://arxiv.org/abs/2510.04146 and https://arxiv.org/abs/2510.18480 report, read 2026-11."""
    one, load = replica("llada-8b"), {"input_tokens": 500.0, "output_tokens": 256.0}
    positions = 756 if decoder is WHOLE else decoder.positions
    narrow, wide = (
        pass_work(one.architecture, one.precision, batch=1, context_tokens=0, positions=m).intensity_flop_per_byte
        for m in (1, positions)
    )
    assert wide > 10 * narrow
    reached = efficiency(one)
    plain, others = (
        decoders.saturated_req_per_s(one, each, **load, slots=256, efficiency=reached) for each in (AR, decoder)
    )
    assert plain > others
