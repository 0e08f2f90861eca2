"""Rivals on one backbone: best configurations, crossings against the derivation, refusals."""

import numpy as np
import pytest

from analysis.inputs import InputError
from analysis.model import head_to_head as h2h
from analysis.model.decoders import served
from analysis.model.transformer import params_matmul, params_total
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import replica
from analysis.reference.specs import Architecture, Decoder, Efficiency, LayerGroup, MemoryRule, Mlp, Replica
from analysis.reference.tables import SNAPSHOT
from analysis.symbolic import decoders as derive
from analysis.symbols import (
    ACCEPT,
    CONTEXT,
    CONTEXT_SCALE,
    DRAFT_COST,
    OVERHEAD,
    POSITION_TIME,
    RIDGE_POSITIONS,
    SEQ_POSITIONS,
    TOKENS_KEPT,
)

ONE = replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT, gpus=1)
NODE = replica("llama-3.1-70b", "h100-sxm", as_of=SNAPSHOT, gpus=8)
REACHED = efficiency(NODE, "vllm")
DOCUMENT = {"input_tokens": 8000, "output_tokens": 300}
#: No prompt to speak of, so that only passes compare.
PASSES_ONLY = {"input_tokens": 1, "output_tokens": 320}
RIVALS = (
    h2h.one_by_one(),
    h2h.speculation(acceptance=0.7, draft_cost=0.05),
    h2h.look_up(acceptance=0.5),
    h2h.diffusion(tokens_per_pass=4),
)


@pytest.mark.parametrize(
    ("w", "tau", "s", "fixed"),
    [
        (32, 3.18, 0, 0),
        (32, 3.18, 3000, 0),
        (5, 3.36, 100, 20),
        (8, 4, 0, 200),
        (4, 1.1, 0, 3),
        (5, 3.36, 0, 400),
        (5, 3.36, 100, 400),
    ],
)
def test_the_break_even_agrees_with_the_derivation(w, tau, s, fixed):
    at = {SEQ_POSITIONS: w, TOKENS_KEPT: tau, CONTEXT: s, OVERHEAD: fixed, POSITION_TIME: 1}
    scales = {RIDGE_POSITIONS: 295, CONTEXT_SCALE: 388}
    exact = float(derive.breakeven_batch().subs(scales).subs(at))
    if exact > 295:
        exact = float(derive.breakeven_batch_past_ridge().subs(scales).subs(at))
    of = h2h.Scales(295.0, 388.0, float(fixed))
    assert h2h.breakeven_batch(of, positions=w, tokens_per_pass=tau, context_tokens=s) == pytest.approx(exact)


def test_the_context_without_break_even_agrees_with_the_derivation():
    of = h2h.Scales(295.0, 388.0, 0.0)
    exact = derive.context_without_breakeven().subs({CONTEXT_SCALE: 388, SEQ_POSITIONS: 32, TOKENS_KEPT: 3.18})
    end = h2h.context_without_breakeven(of, positions=32, tokens_per_pass=3.18)
    assert end == pytest.approx(float(exact))
    at = [0.999 * end, 1.001 * end]
    last, none = h2h.breakeven_batch(of, positions=32, tokens_per_pass=3.18, context_tokens=at)
    assert last == pytest.approx(295, rel=0.02)
    assert none == np.inf


def test_a_break_even_past_the_ridge_by_hand():
    """Beyond 295 positions both compute: n w + f for tau tokens against n + f for one, so n = (tau - 1) f / (w - tau).

    With 400 positions of fixed time and 3 tokens of 5 positions: 2 * 400 / 2.
    """
    of = h2h.Scales(295.0, 388.0, 400.0)
    assert h2h.breakeven_batch(of, positions=5, tokens_per_pass=3) == pytest.approx(400)
    assert h2h.breakeven_batch(of, positions=5, tokens_per_pass=3, context_tokens=194) == pytest.approx(800 / (2 - 1))
    assert h2h.breakeven_batch(of, positions=5, tokens_per_pass=3, context_tokens=388) == np.inf
    # below one request there is a break-even too: a batch of fractions is the limit of few
    assert h2h.breakeven_batch(h2h.Scales(1.0, 388.0, 0.0), positions=32, tokens_per_pass=2) == pytest.approx(1 / 16)


def test_the_context_without_break_even_ends_where_every_position_is_kept():
    of = h2h.Scales(295.0, 388.0, 0.0)
    found = h2h.context_without_breakeven(of, positions=[32, 4, 4], tokens_per_pass=[1.5, 4, 5])
    assert found.tolist() == [pytest.approx(388 * 30.5 / 0.5), 0, 0]


def test_nothing_is_gained_from_one_token_a_pass():
    of = h2h.Scales(295.0, 388.0, 0.0)
    assert h2h.breakeven_batch(of, positions=32, tokens_per_pass=1) == 0
    assert h2h.context_without_breakeven(of, positions=32, tokens_per_pass=[0.5, 1]).tolist() == [np.inf, np.inf]


def test_keeping_every_position_has_no_break_even():
    of = h2h.Scales(295.0, 388.0, 0.0)
    assert h2h.breakeven_batch(of, positions=4, tokens_per_pass=4, context_tokens=10) == np.inf


@pytest.mark.parametrize(("block", "tau"), [(32, 3.18), (32, 4.65), (4, 1.1)])
def test_the_crossing_of_the_ideal_model_is_the_derived_one(block, tau):
    """Short contexts of 161 tokens: what the derivation leaves out is attention, a few percent."""
    found = h2h.crossover(
        ONE, h2h.diffusion(tokens_per_pass=tau, block_tokens=(block,)), h2h.one_by_one(), **PASSES_ONLY
    )
    derived = h2h.breakeven_batch(h2h.scales(ONE), positions=block, tokens_per_pass=tau, context_tokens=161)
    assert found.ending == "crosses"
    assert found.batch == pytest.approx(derived, rel=0.05)


def test_speculation_ends_level_where_it_falls_back():
    """At 3 of 4 positions kept and free drafts the derivation says 295 * 3 / 4 = 221."""
    drafts = h2h.speculation(acceptance=0.82, draft_cost=0.0, lengths=(3,))
    tau = drafts.decoders[1].tokens_per_pass
    found = h2h.crossover(ONE, drafts, h2h.one_by_one(), **PASSES_ONLY)
    derived = h2h.breakeven_batch(h2h.scales(ONE), positions=4, tokens_per_pass=tau, context_tokens=161)
    assert found.batch == pytest.approx(derived, rel=0.05)
    sweep = h2h.sweep_batch(ONE, [h2h.one_by_one(), drafts], batch=[300], **PASSES_ONLY)
    assert sweep["gain"].iloc[1] == 1
    assert sweep["configuration"].iloc[1] == "no drafts"


def test_long_contexts_have_no_crossing():
    """From 5,129 tokens on reading the cache decides, which a block shares among its tokens."""
    found = h2h.crossover(
        ONE, h2h.diffusion(tokens_per_pass=3.18), h2h.one_by_one(), input_tokens=1, output_tokens=20_000, at_most=500
    )
    assert found == ("ahead to the last", pytest.approx(np.nan, nan_ok=True))


def test_a_block_that_keeps_one_token_is_never_ahead():
    found = h2h.crossover(ONE, h2h.diffusion(tokens_per_pass=1), h2h.one_by_one(), **DOCUMENT)
    assert found.ending == "never ahead"


def test_the_best_configuration_is_the_quickest_of_them():
    drafts = RIVALS[1]
    n = np.array([1.0, 20.0, 200.0])
    found = h2h.best(NODE, drafts, batch=n, efficiency=REACHED, **DOCUMENT)
    every = np.stack([served(NODE, d, batch=n, efficiency=REACHED, **DOCUMENT).request_s for d in drafts.decoders])
    assert found.request_s == pytest.approx(every.min(axis=0))
    assert found.req_per_s == pytest.approx(n / found.request_s)
    one = h2h.best(NODE, drafts, batch=20.0, efficiency=REACHED, **DOCUMENT)
    assert isinstance(one.request_s, float)
    assert (one.request_s, one.index) == (pytest.approx(found.request_s[1]), found.index[1])


def test_fewer_drafts_pay_in_larger_batches():
    drafts = RIVALS[1]
    index = h2h.best(NODE, drafts, batch=[1, 30, 100, 400], efficiency=REACHED, **PASSES_ONLY).index
    lengths = [drafts.decoders[i].draft_length for i in index]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]


def test_rivals_take_arrays_of_samples():
    many = h2h.diffusion(tokens_per_pass=np.array([2.0, 4.0]))
    both = h2h.best(NODE, many, batch=np.array([1.0, 1.0]), efficiency=REACHED, **DOCUMENT).request_s
    each = [
        h2h.best(NODE, h2h.diffusion(tokens_per_pass=tau), batch=1.0, efficiency=REACHED, **DOCUMENT).request_s
        for tau in (2.0, 4.0)
    ]
    assert both.tolist() == pytest.approx(each)


def test_a_sweep_is_consistent_in_itself():
    sweep = h2h.sweep_batch(NODE, RIVALS, batch=[1, 8, 64], efficiency=REACHED, **DOCUMENT)
    assert list(sweep["rival"].unique()) == [rival.name for rival in RIVALS]
    assert (sweep["req_per_s"] * sweep["request_s"]).tolist() == pytest.approx(sweep["batch"].tolist())
    streams = sweep["stream_tok_per_s"] * sweep["batch"]
    assert sweep["replica_tok_per_s"].tolist() == pytest.approx(streams.tolist())
    assert (sweep.loc[sweep["rival"] == RIVALS[0].name, "gain"] == 1).all()
    assert not h2h.sweep_batch(NODE, RIVALS, batch=[1000], **DOCUMENT)["fits"].any()


def test_winners_lead_the_second_and_are_empty_where_nothing_fits():
    sweep = h2h.sweep_batch(NODE, RIVALS, batch=[1, 32], efficiency=REACHED, **DOCUMENT)
    map_ = h2h.winners(NODE, RIVALS, batch=[1, 32, 1000], input_tokens=[8000], output_tokens=300, efficiency=REACHED)
    for n, cell in map_.set_index("batch").iloc[:2].iterrows():
        ranked = sweep[sweep["batch"] == n].sort_values("req_per_s", ascending=False, kind="stable")
        assert cell["winner"] == ranked["rival"].iloc[0]
        assert cell["lead"] == pytest.approx(ranked["req_per_s"].iloc[0] / ranked["req_per_s"].iloc[1])
    assert map_["winner"].iloc[2] == ""
    assert np.isnan(map_["lead"].iloc[2])


def test_at_the_tokens_that_win_both_are_equally_fast():
    load = {"batch": 8.0, **DOCUMENT, "efficiency": REACHED}
    tokens = h2h.tokens_per_pass_to_win(NODE, RIVALS[:3], **load)
    quickest = min(h2h.best(NODE, rival, **load).request_s for rival in RIVALS[:3])
    blocks = h2h.diffusion(tokens_per_pass=tokens)
    assert h2h.best(NODE, blocks, **load).request_s == pytest.approx(quickest, rel=1e-4)


def test_at_the_acceptance_that_wins_both_are_equally_fast():
    load = {"batch": 2.0, **DOCUMENT, "efficiency": REACHED}
    accepted = h2h.acceptance_to_win(NODE, [h2h.diffusion(tokens_per_pass=2.5)], draft_cost=0.05, **load)
    drafts = h2h.speculation(acceptance=accepted, draft_cost=0.05)
    blocks = h2h.best(NODE, h2h.diffusion(tokens_per_pass=2.5), **load).request_s
    assert h2h.best(NODE, drafts, **load).request_s == pytest.approx(blocks, rel=1e-4)


def test_what_cannot_be_won_is_endless_and_what_is_won_anyway_needs_nothing():
    full = {"batch": 200.0, "input_tokens": 10, "output_tokens": 320}
    assert h2h.tokens_per_pass_to_win(ONE, [h2h.diffusion(tokens_per_pass=32)], **full) == pytest.approx(32, rel=1e-4)
    alone = {"batch": 1.0, "input_tokens": 10, "output_tokens": 320}
    assert h2h.tokens_per_pass_to_win(ONE, [h2h.diffusion(tokens_per_pass=8)], block_tokens=2, **alone) == np.inf
    assert h2h.acceptance_to_win(ONE, [h2h.diffusion(tokens_per_pass=1)], draft_cost=0.1, **alone) == 0
    assert h2h.acceptance_to_win(ONE, [h2h.diffusion(tokens_per_pass=30)], draft_cost=0.1, **alone) == np.inf


def test_crossovers_lists_what_crossover_finds():
    frame = h2h.crossovers(
        {"node": NODE}, RIVALS[3:], RIVALS[:1], input_tokens=[8000], output_tokens=300, efficiencies={"node": REACHED}
    )
    found = h2h.crossover(NODE, RIVALS[3], RIVALS[0], efficiency=REACHED, **DOCUMENT)
    assert (frame["ending"][0], frame["batch"][0]) == (found.ending, pytest.approx(found.batch))


def test_a_tighter_budget_leaves_a_lower_rate():
    of = {"efficiency": REACHED, **DOCUMENT}
    tight, loose, none = (h2h.rate_within(NODE, RIVALS[0], budget_s=b, slots=64, **of) for b in (6.0, 20.0, 1.0))
    assert 0 == none < tight < loose
    assert loose <= h2h.best(NODE, RIVALS[0], batch=64, **of).req_per_s


@pytest.mark.parametrize(("a", "c"), [(0.8, 0.05), (0.6, 0.1), (0.9, 0.02)])
def test_the_best_draft_length_is_next_to_the_derived_one(a, c):
    real = float(derive.best_draft_length().subs({ACCEPT: a, DRAFT_COST: c}))
    assert abs(h2h.best_draft_length(acceptance=a, draft_cost=c) - real) < 1


def test_where_drafts_cost_what_they_bring_none_pays():
    found = h2h.best_draft_length(acceptance=[0.3, 1.0], draft_cost=[0.5, 0.0], at_most=10)
    assert found.tolist() == [0, 10]


def test_the_scales_do_not_depend_on_how_many_gpus_share_a_model():
    few = replica("llama-3.1-70b", "h100-sxm", as_of=SNAPSHOT, gpus=2)
    assert h2h.scales(NODE) == pytest.approx(h2h.scales(few))


def test_the_scales_by_hand():
    """69.5 billion weights of two bytes: 2 N over half the peak, W over four fifths of the bandwidth; 80 layers."""
    n = params_matmul(NODE.architecture)
    reached = Efficiency(mbu=0.8, mfu=0.5, layer_s=1e-4)
    found = h2h.scales(NODE, efficiency=reached)
    position_s = 2 * n / (0.5 * NODE.accelerator.peak("bf16"))
    read_s = 2 * n / (0.8 * NODE.accelerator.mem_bw_byte_per_s)
    assert found.ridge_positions == pytest.approx(read_s / position_s, rel=1e-3)
    assert found.context_tokens == pytest.approx(position_s * 0.8 * NODE.accelerator.mem_bw_byte_per_s / 327_680)
    assert found.overhead_positions == pytest.approx(80 * 1e-4 * 8 / position_s)


def test_experts_are_all_in_use_at_the_ridge_of_a_sparse_model():
    """30.5 billion parameters stored, less the look-up of 151,936 rows of 2,048."""
    sparse = replica("qwen3-30b-a3b", "h100-sxm", as_of=SNAPSHOT)
    stored = 2 * (params_total(sparse.architecture) - 151_936 * 2048)
    flop = 2 * params_matmul(sparse.architecture)
    peak, bandwidth = sparse.accelerator.peak("bf16"), sparse.accelerator.mem_bw_byte_per_s
    assert h2h.scales(sparse).ridge_positions == pytest.approx(stored / bandwidth / (flop / peak))


@pytest.mark.parametrize(
    ("challenger", "of", "at_most"),
    [
        (h2h.diffusion(tokens_per_pass=3), ONE, None),
        (h2h.diffusion(tokens_per_pass=3, block_tokens=(8, 32)), NODE, 400),
    ],
)
def test_at_the_crossing_both_answer_as_many(challenger, of, at_most):
    """Three quarters of the prompt cached, on a real engine: just before, the challenger still leads."""
    load = {"input_tokens": 2000, "output_tokens": 320, "cached_tokens": 1500, "efficiency": REACHED}
    found = h2h.crossover(of, challenger, h2h.one_by_one(), at_most=at_most, **load)
    assert found.ending == "crosses"
    at = [h2h.best(of, rival, batch=found.batch, **load).req_per_s for rival in (challenger, h2h.one_by_one())]
    assert at[0] == pytest.approx(at[1], rel=1e-4)
    before = [h2h.best(of, r, batch=0.98 * found.batch, **load).req_per_s for r in (challenger, h2h.one_by_one())]
    assert before[0] > before[1]


def test_a_crossing_beyond_what_memory_holds_is_none():
    """A quarter of 86 GB leaves 5 GB beside 16 GB of weights: nine requests of 4,320 tokens at 131 kB each."""
    blocks, load = h2h.diffusion(tokens_per_pass=3), {"input_tokens": 4000, "output_tokens": 320}
    tight = MemoryRule(share=0.25)
    assert h2h.crossover(ONE, blocks, h2h.one_by_one(), **load).ending == "crosses"
    assert h2h.crossover(ONE, blocks, h2h.one_by_one(), **load, rule=tight).ending == "ahead to the last"
    listed = h2h.crossovers(
        {"one": ONE},
        [blocks],
        [h2h.one_by_one()],
        input_tokens=[4000],
        output_tokens=320,
        rule=tight,
        efficiencies={"one": Efficiency()},
    )
    assert listed.iloc[0].tolist()[:5] == ["one", blocks.name, h2h.one_by_one().name, 4000, "ahead to the last"]
    assert h2h.crossover(ONE, blocks, h2h.one_by_one(), **load, at_most=1.0).ending == "ahead to the last"


def test_memory_decides_which_batches_fit():
    tight = MemoryRule(share=0.25)
    room = h2h.largest_batch(ONE, RIVALS[0].decoders[0], **DOCUMENT, rule=tight)
    assert 2 < room < 9
    few = h2h.sweep_batch(ONE, RIVALS[:1], batch=[1, room, 9], **DOCUMENT, rule=tight)
    assert few["fits"].tolist() == [True, True, False]
    map_ = h2h.winners(ONE, RIVALS[:2], batch=[1, 9], input_tokens=[8000], output_tokens=300, rule=tight)
    assert [bool(name) for name in map_["winner"]] == [True, False]
    assert [bool(name) for name in map_["second"]] == [True, False]


def test_the_roomiest_configuration_counts():
    """A block of 512 holds more than the answer of 300; a block of 4 does not."""
    both = h2h.diffusion(tokens_per_pass=4, block_tokens=(512, 4))
    load = {"input_tokens": 100, "output_tokens": 300}
    rooms = [h2h.largest_batch(ONE, decoder, **load) for decoder in both.decoders]
    assert rooms[0] < rooms[1]
    sweep = h2h.sweep_batch(ONE, [both], batch=[rooms[0], rooms[1], 1.01 * rooms[1]], **load)
    assert sweep["fits"].tolist() == [True, True, False]


def test_a_cached_prompt_is_cheaper_for_every_rival_alike():
    """What is cached is not computed: in each table the answer is that of the configuration with the same cache."""
    load = {**DOCUMENT, "cached_tokens": 6000, "efficiency": REACHED}
    alone = served(NODE, RIVALS[0].decoders[0], batch=16.0, **load)
    assert h2h.best(NODE, RIVALS[0], batch=16.0, **load).request_s == pytest.approx(alone.request_s)
    sweep = h2h.sweep_batch(NODE, RIVALS[:1], batch=[16], **load)
    assert sweep["request_s"].item() == pytest.approx(alone.request_s)
    found = h2h.rate_within(NODE, RIVALS[0], budget_s=1e6, slots=16, **load)
    assert found == pytest.approx(16 / alone.request_s)


def test_the_largest_rate_is_that_of_the_largest_batch_within_budget_and_memory():
    """Steps of 2^(1/4) from 1 to 16: where a batch of 4 just takes the budget, it is the answer."""
    of = {"efficiency": REACHED, **DOCUMENT}
    at_four, at_more = (h2h.best(NODE, RIVALS[0], batch=n, **of) for n in (4.0, 2**2.25))
    within = h2h.rate_within(NODE, RIVALS[0], budget_s=[at_four.request_s, at_more.request_s], slots=16, **of)
    assert within == pytest.approx([at_four.req_per_s, at_more.req_per_s])
    assert within[1] > within[0]
    tight = MemoryRule(share=0.25)
    room = h2h.largest_batch(ONE, RIVALS[0].decoders[0], **DOCUMENT, rule=tight)
    steps = np.geomspace(1, 16, h2h.RATE_STEPS)
    largest = steps[steps <= room][-1]
    found = h2h.rate_within(ONE, RIVALS[0], budget_s=1e6, slots=16, rule=tight, **DOCUMENT)
    assert found == pytest.approx(h2h.best(ONE, RIVALS[0], batch=largest, **DOCUMENT).req_per_s)


def test_a_map_keeps_its_order_and_of_equals_names_the_first():
    """Two rivals that are the same lead each other by nothing."""
    twice = [h2h.one_by_one("first"), h2h.one_by_one("second")]
    map_ = h2h.winners(NODE, twice, batch=[32, 1], input_tokens=[8000, 500], output_tokens=300)
    assert map_[["batch", "input_tokens"]].to_numpy().tolist() == [[32, 8000], [1, 8000], [32, 500], [1, 500]]
    assert map_["winner"].unique().tolist() == ["first"]
    assert map_["second"].unique().tolist() == ["second"]
    assert map_["lead"].tolist() == [1] * 4


def test_rivals_are_called_as_they_are_named():
    named = (
        h2h.one_by_one("a"),
        h2h.speculation(acceptance=0.5, draft_cost=0.3, name="a"),
        h2h.look_up(acceptance=0.5, name="a"),
        h2h.diffusion(tokens_per_pass=2, name="a"),
    )
    assert [rival.name for rival in named] == ["a"] * 4
    assert {decoder.draft_cost for decoder in named[1].decoders[1:]} == {0.3}


def test_prompts_of_several_lengths_are_asked_together():
    """Each prompt has room of its own: what fits of the short one does not of the long one."""
    tight = {"budget_s": 1e6, "output_tokens": 300, "rule": MemoryRule(share=0.25), "slots": 64}
    together = h2h.rate_within(ONE, RIVALS[3], input_tokens=np.array([500, 16_000]), **tight)
    alone = [h2h.rate_within(ONE, RIVALS[3], input_tokens=tokens, **tight) for tokens in (500, 16_000)]
    assert together.tolist() == pytest.approx(alone)
    assert isinstance(alone[0], float)
    assert isinstance(h2h.best(ONE, RIVALS[1], batch=1, **DOCUMENT).index, int)


def test_a_lead_that_ends_before_two_requests_is_found():
    """A block of 256 that keeps 1.3 tokens a pass is level at 295 * 1.3 / 256 requests: one and a half."""
    found = h2h.crossover(
        ONE,
        h2h.diffusion(tokens_per_pass=1.3, block_tokens=(256,)),
        h2h.one_by_one(),
        input_tokens=1,
        output_tokens=256,
    )
    assert found.ending == "crosses"
    assert found.batch == pytest.approx(295 * 1.3 / 256, rel=0.06)


def test_a_model_without_a_cache_has_no_scale_of_the_context():
    layer = LayerGroup(4, None, Mlp(96), 0)
    bare = Architecture("x", 64, 500, (layer,), tied=False, final_norm_params=0)
    assert h2h.scales(Replica(bare, ONE.precision, ONE.accelerator)).context_tokens == np.inf


def test_gains_are_over_the_first_rival_at_the_same_batch():
    sweep = h2h.sweep_batch(NODE, RIVALS, batch=[1, 64], efficiency=REACHED, **DOCUMENT)
    rates = sweep.pivot(index="batch", columns="rival", values="req_per_s")
    for row in sweep.itertuples():
        assert row.gain == pytest.approx(row.req_per_s / rates.loc[row.batch, RIVALS[0].name])
    assert sweep.index.tolist() == list(range(8))


def test_a_look_up_drafts_for_nothing():
    found = h2h.look_up(acceptance=0.5, lengths=(2, 5))
    assert [decoder.kind for decoder in found.decoders] == ["ar", "speculative", "speculative"]
    assert [(d.draft_length, d.draft_cost, d.acceptance) for d in found.decoders[1:]] == [(2, 0, 0.5), (5, 0, 0.5)]


@pytest.mark.parametrize(
    ("decoder", "words"),
    [
        (Decoder.autoregressive(), "no drafts"),
        (Decoder.speculative(acceptance=0.5, draft_length=1), "1 draft"),
        (Decoder.speculative(acceptance=0.5, draft_length=2), "2 drafts"),
        (Decoder.diffusion(block_tokens=32, passes=8), "block of 32, 8 passes"),
        (Decoder.full_sequence(passes=12.5), "12.5 passes"),
    ],
)
def test_a_configuration_in_words(decoder, words):
    assert h2h.configuration(decoder) == words


def test_what_a_longer_block_loses_a_shorter_one_need_not_win_back():
    """Among 200 requests, past the ridge, a block of 64 with one token a pass takes twice the time of one of 32.

    Answers of 640 are whole blocks of either.
    """
    slow = [h2h.diffusion(tokens_per_pass=1, block_tokens=(64,))]
    full = {"batch": 200.0, "input_tokens": 10, "output_tokens": 640}
    assert h2h.tokens_per_pass_to_win(ONE, slow, **full) == 1
    assert h2h.tokens_per_pass_to_win(ONE, slow, block_tokens=128, **full) == pytest.approx(2, rel=0.05)


def test_a_rival_s_own_tokens_a_pass_are_what_it_takes_to_draw_level():
    """The same block: 1.5 for 1.5. A block twice as long with 40 of 64 takes 8 passes, and 32 of 32 would take 10."""
    alone = {"batch": 1.0, "input_tokens": 10, "output_tokens": 320}
    same = [h2h.diffusion(tokens_per_pass=1.5)]
    assert h2h.tokens_per_pass_to_win(ONE, same, **alone) == pytest.approx(1.5, rel=1e-5)
    longer = [h2h.diffusion(tokens_per_pass=40, block_tokens=(64,))]
    assert h2h.tokens_per_pass_to_win(ONE, longer, **alone) == np.inf


def test_one_draft_never_yields_more_than_two_tokens():
    blocks = [h2h.diffusion(tokens_per_pass=3)]
    alone = {"batch": 1.0, "input_tokens": 10, "output_tokens": 320}
    assert h2h.acceptance_to_win(ONE, blocks, draft_cost=0.0, lengths=(1,), **alone) == np.inf
    assert 0.5 < h2h.acceptance_to_win(ONE, blocks, draft_cost=0.0, **alone) < 1


def test_free_and_certain_drafts_are_taken_as_long_as_they_come():
    assert h2h.best_draft_length(acceptance=1.0, draft_cost=0.0) == 64


@pytest.mark.parametrize(
    ("call", "name", "value"),
    [
        (lambda: h2h.diffusion(tokens_per_pass=33), "tokens_per_pass", "33.0"),
        (lambda: h2h.diffusion(tokens_per_pass=0), "tokens_per_pass", "0.0"),
        (lambda: h2h.speculation(acceptance=1.2, draft_cost=0), "acceptance", "1.2"),
        (lambda: h2h.sweep_batch(ONE, [], batch=[1], **DOCUMENT), "rivals", "nothing"),
        (lambda: h2h.winners(ONE, RIVALS[:1], batch=[1], input_tokens=[1], output_tokens=1), "rivals", "1"),
        (lambda: h2h.crossover(ONE, RIVALS[3], RIVALS[0], at_most=0.5, **DOCUMENT), "at_most", "0.5"),
        (lambda: h2h.breakeven_batch(h2h.Scales(1, 1, 0), positions=0, tokens_per_pass=2), "positions", "0.0"),
        (lambda: h2h.best_draft_length(acceptance=0.5, draft_cost=-1), "draft_cost", "-1.0"),
    ],
)
def test_a_number_outside_its_domain_is_refused_by_name(call, name, value):
    with pytest.raises(InputError) as refused:
        call()
    assert name in str(refused.value)
    assert value in str(refused.value)
