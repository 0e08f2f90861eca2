"""Times of passes, runs and decoders written out once more, number by number, without an array.

A second hand for the formulas: sums over layers and parts are loops here, and each default is said out loud.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.model import decoders, decoding, ownership, prefill, roofline
from analysis.model.decoding import IDEAL, Demand, Part, Peaks
from analysis.model.transformer import kv_bytes_per_sequence, kv_replication, pass_work, weight_bytes
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import replica
from analysis.reference.specs import Decoder, Efficiency, MemoryRule, Ownership, Replica
from analysis.reference.tables import SNAPSHOT

DENSE = replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT)
PAIR = replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT, gpus=2)
WIDE = replica("llama-3.1-70b", "h100-sxm", as_of=SNAPSHOT, gpus=4, weights="fp8")
SPARSE = replica("mixtral-8x7b", "h100-sxm", as_of=SNAPSHOT, gpus=2)
LATENT = replica("deepseek-v2-lite", "h100-sxm", as_of=SNAPSHOT, gpus=2)
APART = replace(LATENT, split_attention=False)
REPLICAS = {"dense": DENSE, "pair": PAIR, "wide": WIDE, "sparse": SPARSE, "latent": LATENT, "apart": APART}
#: No two terms alike, so that none stands for another.
EVERYTHING = Efficiency(
    mbu=0.83,
    mfu=0.61,
    attention_mfu=0.37,
    expert_mfu=0.53,
    expert_rows=11.0,
    layer_s=1.3e-5,
    expert_layer_s=1.7e-5,
    prompt_layer_s=2.3e-5,
    sequence_s=2.9e-6,
    all_reduce_s=3.1e-6,
    link_byte_per_s=2.7e11,
    activation_share=0.41,
    overlap=2.0,
)


def elements(one: Replica) -> float:
    """Numbers that one position moves: on each GPU around the residual stream, split between two projections."""
    hidden, total = one.architecture.hidden, 0.0
    for group in one.architecture.layers:
        attention, mlp = group.attention, group.mlp
        if attention is not None:
            between = attention.query_heads * (attention.head_dim + attention.value_dim) + attention.kv_elements
            total += group.count * (6 * hidden + between / one.gpus)
        if mlp is not None:
            used, shared = (mlp.top_k if mlp.experts else 1), int(mlp.shared_width > 0)
            inner = mlp.matrices_each * (used * mlp.width + mlp.shared_width)
            total += group.count * (2 * hidden * (used + shared) + inner / one.gpus)
    return total


def asked_by_hand(one: Replica, *parts: Part) -> dict[str, float]:
    architecture, precision, gpus = one.architecture, one.precision, one.gpus
    rows = sum(part.batch * part.positions for part in parts)
    works = [
        pass_work(
            architecture,
            precision,
            batch=part.batch,
            context_tokens=part.context_tokens,
            positions=part.positions,
            logits=part.logits,
            causal=part.causal,
        )
        for part in parts
    ]
    weights = pass_work(architecture, precision, batch=rows, context_tokens=0).weight_bytes
    copies = float(kv_replication(architecture, tensor_parallel=gpus))
    if not one.split_attention:
        copies = 1.0
        weights += (gpus - 1) * architecture.components["attention"] * precision.byte_of("attention")
    expert_flop = row_of_each = 0.0
    for group in architecture.layers:
        if group.mlp is not None and group.mlp.experts:
            mlp = group.mlp
            row = group.count * 2 * mlp.matrices_each * architecture.hidden * mlp.width
            expert_flop += row * rows * mlp.top_k
            row_of_each += row * mlp.experts * (1 - (1 - mlp.top_k / mlp.experts) ** rows)
    return {
        "weight_byte": weights / gpus,
        "matmul_flop": sum(work.matmul_flop for work in works) / gpus,
        "expert_flop": expert_flop / gpus,
        "expert_row_flop": row_of_each / gpus,
        "kv_byte": copies * sum(work.kv_read_bytes for work in works) / gpus,
        "attention_flop": sum(work.attention_flop for work in works) / gpus,
        "activation_byte": 2 * rows * elements(one) + sum(work.logit_bytes for work in works) / gpus,
        "sequences": sum(part.batch for part in parts),
        "all_reduces": 2 * architecture.n_layers if gpus > 1 else 0,
        "payload_byte": 2 * rows * architecture.hidden * 2 * (gpus - 1) / gpus,
    }


DECODING = Part(7.0, 900.0)
BLOCKS = Part(3.0, 500.0, 32.0, "all", causal=False)
PROMPT = Part(2.0, 100.0, 1200.0, "last")


@pytest.mark.parametrize("parts", [[DECODING], [BLOCKS], [PROMPT], [DECODING, PROMPT]], ids=len)
@pytest.mark.parametrize("name", REPLICAS)
def test_what_a_pass_asks_is_what_its_parts_add_up_to(name: str, parts: list[Part]) -> None:
    one = REPLICAS[name]
    asked = decoding.demand(one, *parts)._asdict()
    for field, value in asked_by_hand(one, *parts).items():
        assert float(asked[field]) == pytest.approx(value, rel=1e-9), field
    assert asked["prompt_layers"] == (asked["plain_layers"] if PROMPT in parts else 0)


def test_numbers_moved_by_one_position_of_a_layer() -> None:
    """Llama-3.1-8B: 8 x 4,096 on each GPU; 32 x 256 + 2,048 around attention and 3 x 14,336 inside the MLP, split."""
    whole, split = 32 * 8 * 4096, 32 * (32 * 256 + 2048 + 3 * 14336)
    assert decoding.activation_elements(DENSE.architecture) == whole + split
    assert decoding.activation_elements(DENSE.architecture, gpus=4) == whole + split / 4


def test_every_expert_is_in_use_where_all_are_chosen() -> None:
    """With top-k equal to the experts, one row for each of them whatever the batch."""
    groups = tuple(
        replace(group, mlp=replace(group.mlp, top_k=group.mlp.experts)) for group in SPARSE.architecture.layers
    )
    all_chosen = replace(SPARSE, architecture=replace(SPARSE.architecture, layers=groups))
    few, many = (float(decoding.demand(all_chosen, Part(n, 10.0)).expert_row_flop) for n in (1.0, 64.0))
    assert few == many == pytest.approx(8 * 32 * 2 * 3 * 4096 * 14336 / 2)


ASKED = Demand(3e9, 5e12, 2e12, 7e9, 1.1e9, 1.3e11, 1.7e8, 19.0, 23.0, 29.0, 31.0, 37.0, 4.1e6)
RATES = Peaks(9e14, 4.5e14, 3.35e12)


@pytest.mark.parametrize("overlap", [1.0, 1.5, 2.0, 3.0, math.inf])
def test_the_time_of_a_pass_term_by_term(overlap: float) -> None:
    e = replace(EVERYTHING, overlap=overlap)
    weights, kv = 3e9 / (0.83 * 3.35e12), 1.1e9 / (0.83 * 3.35e12)
    matmul = (3e12 + (2e12 + 11 * 7e9) / 0.53) / (0.61 * 9e14)
    attention = 1.3e11 / (0.37 * 4.5e14)
    fixed = 19 * 1.3e-5 + 23 * 1.7e-5 + 29 * 2.3e-5 + 31 * 2.9e-6
    communication = 37 * (3.1e-6 + 4.1e6 / 2.7e11)
    activations = 0.41 * 1.7e8 / (0.83 * 3.35e12)

    def both(a: float, b: float) -> float:
        return max(a, b) if math.isinf(overlap) else (a**overlap + b**overlap) ** (1 / overlap)

    found = decoding.time_of(ASKED, RATES, e)
    terms = {
        "weights_s": weights,
        "matmul_s": matmul,
        "kv_s": kv,
        "attention_s": attention,
        "fixed_s": fixed,
        "communication_s": communication,
        "activations_s": activations,
    }
    for name, value in terms.items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-12), name
    whole = both(weights, matmul) + both(kv, attention) + fixed + communication + activations
    assert found.pass_s == pytest.approx(whole, rel=1e-12)


def seconds(one: Replica, *parts: Part, reached: Efficiency = IDEAL) -> float:
    return float(decoding.time_of(decoding.demand(one, *parts), decoding.peaks(one), reached).pass_s)


def test_a_format_without_units_of_its_own_computes_in_sixteen_bit() -> None:
    old = replica("llama-3.1-8b", "a100-sxm-80gb", as_of=SNAPSHOT, weights="fp8")
    assert decoding.peaks(old).matmul_flop_per_s == old.accelerator.peak("bf16")
    new = replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT, weights="fp8")
    assert decoding.peaks(new).matmul_flop_per_s == new.accelerator.peak("fp8") > new.accelerator.peak("bf16")


def test_defaults_are_one_position_all_logits_no_cache_one_prompt_and_the_ideal() -> None:
    """What is left out is the plainest case, in each function."""
    at = {"batch": 4, "context_tokens": 700}
    load = {"input_tokens": 900, "output_tokens": 60}
    pairs = [
        (decoding.floor_s, at, {"positions": 1, "logits": "all"}),
        (decoding.pass_time, at, {"positions": 1, "logits": "all", "causal": True, "efficiency": IDEAL}),
        (decoding.sweep_pass_s, at, {"positions": 1, "efficiency": IDEAL}),
        (decoding.prefill_s, {"input_tokens": 900}, {"cached_tokens": 0, "batch": 1, "chunk_tokens": 8192}),
        (decoding.tpot_s, load | {"batch": 4}, {"cached_tokens": 0, "others": 3, "chunk_tokens": 8192}),
        (decoding.run_s, load | {"batch": 4}, {"slots": math.inf, "efficiency": IDEAL}),
        (decoding.max_load_tok_per_s, load, {"cached_tokens": 0, "slots": math.inf, "rule": MemoryRule(0.9)}),
    ]
    for function, given, left_out in pairs:
        assert function(PAIR, **given) == function(PAIR, **given, **left_out), function.__name__
    assert decoders.saturated_req_per_s(PAIR, Decoder.autoregressive(), **load) == decoders.saturated_req_per_s(
        PAIR, Decoder.autoregressive(), **load, cached_tokens=0, slots=math.inf, rule=MemoryRule(0.9), chunk_tokens=8192
    )


def test_a_wide_pass_with_the_last_logits_only_has_a_lower_floor() -> None:
    at = {"batch": 2, "context_tokens": 100, "positions": 512}
    work = pass_work(PAIR.architecture, PAIR.precision, **at, logits="last")
    floor = max(work.byte / (2 * 3.35e12), work.flop / (2 * PAIR.accelerator.peak("bf16")))
    assert decoding.floor_s(PAIR, **at, logits="last") == pytest.approx(floor, rel=1e-12)
    assert floor < decoding.floor_s(PAIR, **at)


def test_blocks_whose_positions_see_each_other_attend_to_more() -> None:
    at = {"batch": 2, "context_tokens": 100, "positions": 512}
    both, before = (decoding.pass_time(PAIR, **at, causal=causal).attention_s for causal in (False, True))
    assert both == pytest.approx(before * (100 + 512) / (100 + 512 / 2), rel=0.01)


def test_a_sweep_has_the_shape_of_its_arguments_and_the_times_of_single_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two batches down, three contexts across, two widths deep; in pieces of five."""
    batch, context = np.array([1.0, 9.0]).reshape(2, 1, 1), np.array([10.0, 500.0, 4000.0]).reshape(3, 1)
    width = np.array([1.0, 6.0])
    pieces: list[int] = []
    plain = decoding.demand
    monkeypatch.setattr(decoding, "PIECE", 5)
    monkeypatch.setattr(decoding, "demand", lambda one, part: pieces.append(part.batch.size) or plain(one, part))
    found = decoding.sweep_pass_s(SPARSE, batch=batch, context_tokens=context, positions=width, efficiency=EVERYTHING)
    assert found.shape == (2, 3, 2)
    assert pieces == [5, 5, 2]
    for i, j, k in np.ndindex(2, 3, 2):
        part = Part(batch[i, 0, 0], context[j, 0], width[k])
        assert found[i, j, k] == pytest.approx(seconds(SPARSE, part, reached=EVERYTHING), rel=1e-12)


@pytest.mark.parametrize(
    ("new", "prompts", "chunk", "tokens", "together", "passes"),
    [
        (1000.0, 1.0, 8192.0, 1000.0, 1.0, 1.0),
        (1000.0, 3.0, 8192.0, 1000.0, 3.0, 1 / 3),
        (1000.0, 30.0, 8000.0, 1000.0, 8.0, 1 / 8),
        (10_000.0, 3.0, 4000.0, 4000.0, 1.0, 2.5),
        (6000.0, 3.0, 8000.0, 6000.0, 8000 / 6000, 3 / 4),
        (1000.0, 0.2, 8192.0, 1000.0, 1.0, 1.0),
    ],
)
def test_prompts_share_a_pass_while_it_has_room(
    new: float, prompts: float, chunk: float, tokens: float, together: float, passes: float
) -> None:
    part, count = decoding.prompt_part(new, 64.0, prompts, chunk)
    assert (part.positions, part.batch, part.logits) == (tokens, pytest.approx(together), "last")
    # the mean chunk begins in the middle of what comes before the last one
    assert part.context_tokens == 64 + (new - tokens) / 2
    assert count == pytest.approx(passes)


def test_prompts_of_a_batch_are_read_one_pass_after_the_other() -> None:
    """Five prompts of 6,000 tokens, 1,000 of them cached, in chunks of 2,000: 2.5 passes each."""
    each = seconds(PAIR, Part(1.0, 1000.0 + 1500.0, 2000.0, "last"), reached=EVERYTHING)
    found = decoding.prefill_s(
        PAIR, input_tokens=6000, cached_tokens=1000, batch=5, chunk_tokens=2000, efficiency=EVERYTHING
    )
    assert found == pytest.approx(5 * 2.5 * each, rel=1e-12)


def test_time_between_tokens_while_prompts_of_others_are_read() -> None:
    """40 streams of 1,000 + 100 tokens; each of 39 others reads its 5 passes in the 100 passes of an answer."""
    decode = Part(40.0, 1050.0)
    prompt, _ = decoding.prompt_part(900.0, 100.0, 40 / 100, 180.0)
    plain, carrying = (seconds(PAIR, *parts, reached=EVERYTHING) for parts in ([decode], [decode, prompt]))
    load = {"batch": 40, "input_tokens": 1000, "output_tokens": 100, "cached_tokens": 100, "chunk_tokens": 180}
    share = 39 / 100 * 5
    expected = (1 - share) * plain + share * carrying
    assert decoding.tpot_s(PAIR, **load, efficiency=EVERYTHING) == pytest.approx(expected, rel=1e-12)
    share = 10 / 100 * 5
    expected = (1 - share) * plain + share * carrying
    assert decoding.tpot_s(PAIR, **load, others=10, efficiency=EVERYTHING) == pytest.approx(expected, rel=1e-12)


def test_more_requests_than_slots_take_turns() -> None:
    """Ten requests in four slots: two and a half waves of answers, each of 60 passes at the middle of its context."""
    decode = seconds(PAIR, Part(4.0, 930.0), reached=EVERYTHING)
    read = decoding.prefill_s(PAIR, input_tokens=900, batch=10, efficiency=EVERYTHING)
    found = decoding.run_s(PAIR, batch=10, input_tokens=900, output_tokens=60, slots=4, efficiency=EVERYTHING)
    assert found == pytest.approx(read + 2.5 * 60 * decode, rel=1e-12)


@pytest.mark.parametrize("name", ["pair", "wide", "latent", "apart"])
@pytest.mark.parametrize("of_the_rest", [False, True])
def test_how_many_sequences_memory_holds(name: str, of_the_rest: bool) -> None:
    one = REPLICAS[name]
    weights = weight_bytes(one.architecture, one.precision)
    copies = 1.0
    if one.split_attention:
        copies = float(kv_replication(one.architecture, tensor_parallel=one.gpus))
    else:
        weights += (one.gpus - 1) * one.architecture.components["attention"] * one.precision.byte_of("attention")
    card, taken = one.gpus * one.accelerator.mem_capacity_byte, weights + one.gpus * 3e9
    free = 0.8 * (card - taken) if of_the_rest else 0.8 * card - taken
    each = copies * kv_bytes_per_sequence(one.architecture, one.precision, context_tokens=5000, policy="needed")
    found = decoding.max_batch(one, tokens=5000, rule=MemoryRule(0.8, of_the_rest=of_the_rest, reserve_byte=3e9))
    assert found == pytest.approx(free / each, rel=1e-12)


def test_windowed_layers_need_no_more_cache_than_their_window() -> None:
    windowed = replica("gpt-oss-20b", "h100-sxm", as_of=SNAPSHOT)
    each = kv_bytes_per_sequence(windowed.architecture, windowed.precision, context_tokens=9000, policy="needed")
    free = 0.9 * windowed.accelerator.mem_capacity_byte - weight_bytes(windowed.architecture, windowed.precision)
    assert decoding.max_batch(windowed, tokens=9000) == pytest.approx(free / each, rel=1e-12)


def holding(sequences: float, tokens: float) -> MemoryRule:
    """Make the rule by which memory holds so many sequences."""
    each = kv_bytes_per_sequence(PAIR.architecture, PAIR.precision, context_tokens=tokens, policy="needed")
    used = weight_bytes(PAIR.architecture, PAIR.precision) + sequences * each
    return MemoryRule(used / (2 * PAIR.accelerator.mem_capacity_byte) * (1 + 1e-12))


@pytest.mark.parametrize(("room", "served"), [(0.99, 0.0), (1.0, 1.0), (1.5, 1.5), (6.0, 5.0)])
def test_a_full_replica_runs_what_fits_and_what_has_a_slot(room: float, served: float) -> None:
    """Memory for that many requests of 900 + 60 tokens, and five slots."""
    load = {"input_tokens": 900, "output_tokens": 60, "cached_tokens": 300, "slots": 5}
    rule = holding(room, 960.0)
    rate = decoding.max_load_tok_per_s(PAIR, **load, rule=rule, efficiency=EVERYTHING)
    answers = decoders.saturated_req_per_s(PAIR, Decoder.autoregressive(), **load, rule=rule, efficiency=EVERYTHING)
    if not served:
        assert rate == answers == 0
        return
    between = decoding.tpot_s(
        PAIR,
        batch=served,
        others=served,
        input_tokens=900,
        output_tokens=60,
        cached_tokens=300,
        efficiency=EVERYTHING,
    )
    assert rate == pytest.approx(served / between, rel=1e-9)
    alike = decoders.served(
        PAIR,
        Decoder.autoregressive(),
        batch=served,
        input_tokens=900,
        output_tokens=60,
        cached_tokens=300,
        efficiency=EVERYTHING,
    )
    assert answers == pytest.approx(alike.req_per_s, rel=1e-9)


# --- decoders

SPECULATIVE = Decoder.speculative(acceptance=0.7, draft_length=3, draft_cost=0.13)
BLOCKWISE = Decoder.diffusion(block_tokens=32, passes=9)
WHOLE = Decoder.full_sequence(passes=40)


def test_a_cycle_of_drafts_is_a_wide_pass_and_narrow_ones_at_the_same_efficiency() -> None:
    wide = seconds(PAIR, Part(6.0, 800.0, 4.0), reached=EVERYTHING)
    narrow = seconds(PAIR, Part(6.0, 800.0), reached=EVERYTHING)
    found = decoders.cycle(PAIR, SPECULATIVE, batch=6, context_tokens=800, efficiency=EVERYTHING)
    assert found.draft_s == pytest.approx(3 * 0.13 * narrow, rel=1e-12)
    assert found.cycle_s == pytest.approx(wide + 3 * 0.13 * narrow, rel=1e-12)


def test_a_block_sees_itself_and_all_its_logits() -> None:
    both_ways = seconds(PAIR, Part(6.0, 800.0, 32.0, "all", causal=False), reached=EVERYTHING)
    found = decoders.cycle(PAIR, BLOCKWISE, batch=6, context_tokens=800, efficiency=EVERYTHING)
    assert (found.cycle_s, found.draft_s) == (pytest.approx(both_ways, rel=1e-12), 0)


def test_answers_in_blocks_keep_whole_blocks_in_memory() -> None:
    """70 tokens are three blocks of 32."""
    load = {"input_tokens": 900, "output_tokens": 70}
    assert decoders.blocks(BLOCKWISE, 70) == 3
    assert decoders.largest_batch(PAIR, BLOCKWISE, **load) == decoding.max_batch(PAIR, tokens=900 + 96)
    assert decoders.largest_batch(PAIR, SPECULATIVE, **load) == decoding.max_batch(PAIR, tokens=970)
    assert decoders.largest_batch(PAIR, SPECULATIVE, **load, slots=3) == 3


@pytest.mark.parametrize("decoder", [Decoder.autoregressive(), SPECULATIVE, BLOCKWISE], ids=lambda d: d.kind)
def test_a_request_among_others_pays_for_its_passes_and_for_their_prompts(decoder: Decoder) -> None:
    """A prompt of 5,000 tokens, 1,000 cached, in chunks of 1,600: 2.5 passes; seven requests."""
    n, answer, context = 7.0, 90.0, 5045.0
    between = decoders.cycle(PAIR, decoder, batch=n, context_tokens=context, efficiency=EVERYTHING)
    passes = 2.5 + (3 * 9 if decoder.kind == "diffusion" else 89 / float(decoder.tokens_per_pass))
    prompt, each = decoding.prompt_part(4000.0, 1000.0, n / passes, 1600.0)
    others = Part(6.0, context, decoder.positions, "all", causal=decoder.kind != "diffusion")
    carrying = seconds(PAIR, others, prompt, reached=EVERYTHING) + float(between.draft_s) * 6 / 7
    excess = each * (carrying - between.cycle_s)
    load = {"input_tokens": 5000, "output_tokens": answer, "cached_tokens": 1000, "chunk_tokens": 1600}
    found = decoders.served(PAIR, decoder, batch=n, **load, efficiency=EVERYTHING)
    assert found.passes == pytest.approx(passes, rel=1e-12)
    assert found.prompt_s == pytest.approx(excess, rel=1e-9)
    assert found.request_s == pytest.approx(passes * between.cycle_s + 7 * excess, rel=1e-9)
    alone = decoders.served(PAIR, decoder, batch=1, **load, efficiency=EVERYTHING)
    assert decoders.request_s(PAIR, decoder, **load, efficiency=EVERYTHING) == alone.request_s
    full = decoders.saturated_req_per_s(PAIR, decoder, **load, slots=7, efficiency=EVERYTHING)
    assert full == pytest.approx(7 / found.request_s, rel=1e-9)


def test_a_whole_sequence_is_computed_anew_in_every_pass() -> None:
    """1,200 + 300 tokens at once, nothing cached, all logits, 40 passes, and no prompt of its own."""
    one = seconds(PAIR, Part(5.0, 0.0, 1500.0, "all", causal=False), reached=EVERYTHING)
    load = {"batch": 5, "input_tokens": 1200, "output_tokens": 300, "efficiency": EVERYTHING}
    found = decoders.served(PAIR, WHOLE, **load)
    assert (found.passes, found.prompt_s) == (40, 0)
    assert found.cycle_s == pytest.approx(one, rel=1e-12)
    assert found.request_s == pytest.approx(40 * one, rel=1e-12)
    assert decoders.blocks(WHOLE, [1, 300]).tolist() == [1, 1]


# --- reading prompts


def test_the_table_of_a_prompt_is_made_of_the_terms_of_its_passes() -> None:
    """9,000 tokens, 1,000 of them cached, in chunks of 4,000: two passes at the mean context of 3,000."""
    one = decoding.time_of(decoding.demand(PAIR, Part(1.0, 3000.0, 4000.0, "last")), decoding.peaks(PAIR), EVERYTHING)
    options = {"cached_tokens": 1000, "chunk_tokens": 4000, "efficiency": EVERYTHING}
    row = prefill.sweep_prompt(PAIR, input_tokens=9000, **options).iloc[0]
    for term in ("weights", "matmul", "kv", "attention", "fixed", "communication", "activations"):
        assert row[f"{term}_s"] == pytest.approx(2 * getattr(one, f"{term}_s"), rel=1e-9), term
    assert row["prefill_s"] == pytest.approx(2 * one.pass_s, rel=1e-9)
    beside = 2 * (one.fixed_s + one.communication_s + one.activations_s)
    assert row["phases_s"] == pytest.approx(2 * one.pass_s - beside, rel=1e-9)
    assert row["ms_per_token"] == pytest.approx(1e3 * 2 * one.pass_s / 8000, rel=1e-9)
    assert row["bound"] == one.bound


def test_the_split_of_a_prompt_among_gpus_uses_the_constants_of_each() -> None:
    reached = {"one": EVERYTHING, "two": IDEAL}
    frame = prefill.sweep_gpus({"one": DENSE, "two": PAIR}, reached, input_tokens=3000)
    for name, part in (("one", DENSE), ("two", PAIR)):
        row = prefill.sweep_prompt(part, input_tokens=3000, efficiency=reached[name]).iloc[0]
        total = frame[frame["name"] == name]["size"].sum()
        assert total == pytest.approx(1e3 * row["prefill_s"], rel=1e-9)


def test_the_border_counts_the_cache_and_the_constants() -> None:
    """At the border of a prompt with 4,000 cached tokens, computing takes as long as reading weights and cache."""
    for cached in (0.0, 4000.0):
        border = prefill.compute_bound_from(PAIR, cached_tokens=cached, efficiency=EVERYTHING)
        time = decoding.time_of(
            decoding.demand(PAIR, Part(1.0, cached, border, "last")), decoding.peaks(PAIR), EVERYTHING
        )
        assert time.matmul_s + time.attention_s == pytest.approx(time.weights_s + time.kv_s, rel=1e-3)
    assert prefill.compute_bound_from(PAIR) == prefill.compute_bound_from(PAIR, cached_tokens=0.0, efficiency=IDEAL)
    assert efficiency(PAIR) != EVERYTHING


# --- tables of the roofline and of owning


def test_a_roof_is_the_lower_of_slope_and_peak_in_the_unit_asked_for() -> None:
    peaks = {"peak_flop_per_s": 600e12, "mem_bw_byte_per_s": 2e12}
    plain = roofline.roof([10.0, 300.0, 1000.0], **peaks)
    assert plain["intensity_flop_per_byte"].tolist() == [10, 300, 1000]
    assert plain["performance"].tolist() == [20e12, 600e12, 600e12]
    assert roofline.roof([10.0, 1000.0], **peaks, per=1e12)["performance"].tolist() == [20, 600]


def test_passes_of_more_positions_by_hand() -> None:
    """10e9 weights of a byte over 2e12 byte/s: 5 ms; 2 x 10e9 x m FLOP over 400e12: 0.05 ms for each position."""
    frame = roofline.sweep_positions(
        10e9, positions=[1, 50, 400], bytes_per_weight=1.0, peak_flop_per_s=400e12, mem_bw_byte_per_s=2e12
    )
    expected = {
        "positions": [1, 50, 400],
        "intensity_flop_per_byte": [2, 100, 800],
        "memory_s": [5e-3] * 3,
        "compute_s": [5e-5, 2.5e-3, 2e-2],
        "pass_s": [5e-3, 5e-3, 2e-2],
        "share_of_peak": [0.01, 0.5, 1],
        "position_per_s": [200, 10_000, 20_000],
    }
    assert list(frame) == list(expected)
    for column, values in expected.items():
        assert frame[column].tolist() == pytest.approx(values), column


def test_storing_narrow_and_computing_wide_by_hand() -> None:
    """The H100: 989 TFLOP/s in 16 bit, 1,979 in 8, over 3.35 TB/s; half a byte meets a quarter of the ridge."""
    part = DENSE.accelerator
    frame = roofline.stored_and_computed(part, formats=[("int4", 0.5, "bf16"), ("fp8", 1.0, "fp8")])
    ridges = [part.peak(wide) / part.mem_bw_byte_per_s for wide in ("bf16", "fp8")]
    assert frame[["accelerator", "stored_in", "computed_in"]].to_numpy().tolist() == [
        [part.name, "int4", "bf16"],
        [part.name, "fp8", "fp8"],
    ]
    assert frame["intensity_flop_per_byte"].tolist() == [4, 2]
    assert frame["ridge_flop_per_byte"].tolist() == pytest.approx(ridges)
    assert frame["positions_at_ridge"].tolist() == pytest.approx([ridges[0] / 4, ridges[1] / 2])


def test_a_ridge_is_assumed_where_its_peak_or_its_bandwidth_is() -> None:
    part = replace(DENSE.accelerator, status={"peak_fp8": "assumed"})
    frame = roofline.ridge_points([part]).set_index("number_format")
    assert frame["assumed"].to_dict() == {name: name == "fp8" for name in part.peak_flop_per_s}
    frame = roofline.ridge_points([replace(part, status={"mem_bw": "assumed"})])
    assert frame["assumed"].all()


TERMS = Ownership(250_000.0, 10.0, 0.7, 1.3, 0.1, 180.0, 4.0, 0.1, 0.12, 0.05, 60_000.0)


def test_the_ways_to_have_a_node_side_by_side() -> None:
    """Sunk: 10 kW x 0.7 x 1.3 x 0.10 USD an hour, and the rent that is forgone; nothing else."""
    frame = ownership.compare(TERMS, rent_usd=55.0, reserved_usd=33.0, sublet_usd=8.0).set_index("mode")
    assert frame.index.tolist() == ["rent", "reserved", "bought", "sunk"]
    assert frame["price_usd"].tolist() == [55, 33, 0, 0]
    assert frame.loc["sunk", ["energy_usd", "sublet_usd", "total_usd"]].tolist() == pytest.approx([0.91, 8, 8.91])
    bought = ownership.bought_usd_per_node_hour(TERMS)
    assert frame.loc["bought", "total_usd"] == pytest.approx(bought.total_usd)
    assert frame.loc["bought", "staff_usd"] == pytest.approx(60_000 / 8760)
    assert frame.loc["bought", ["price_usd", "sublet_usd"]].tolist() == [0, 0]
    plain = ownership.compare(TERMS, rent_usd=55.0).set_index("mode")
    assert plain.index.tolist() == ["rent", "bought", "sunk"]
    assert plain.loc["sunk", "total_usd"] == pytest.approx(0.91)


def test_a_discount_is_carried_over_from_the_same_place_only() -> None:
    """60 of 100 in one region, 90 of 120 in another; other quantities, instances and terms do not count."""
    rows = pd.DataFrame(
        [
            ("a", "n", "x", "on-demand", "price", 100.0),
            ("a", "n", "x", "commit-1yr", "price", 60.0),
            ("a", "n", "y", "on-demand", "price", 120.0),
            ("a", "n", "y", "commit-1yr", "price", 90.0),
            ("a", "n", "y", "commit-3yr", "price", 30.0),
            ("a", "n", "z", "commit-1yr", "price", 10.0),
            ("a", "m", "x", "commit-1yr", "price", 10.0),
            ("a", "m", "x", "on-demand", "price", 100.0),
            ("a", "n", "x", "commit-1yr", "withdrawn", 1.0),
        ],
        columns=["provider", "instance", "region", "term", "quantity", "value"],
    )
    found = ownership.discounts_carried_over(rows, listed_usd=50.0, committed_terms=["commit-1yr"], instances=["n"])
    assert found["implied_usd"].tolist() == pytest.approx([30.0, 37.5])
    assert found[["then_committed_usd", "then_listed_usd"]].to_numpy().tolist() == [[60, 100], [90, 120]]
    assert found.index.tolist() == [0, 1]
