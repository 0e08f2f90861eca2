"""Rivals on one backbone: best configurations, crossings against the derivation, refusals."""

import numpy as np
import pytest

from analysis.inputs import InputError
from analysis.model import head_to_head as h2h
from analysis.model.decoders import served
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import replica
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
    [(32, 3.18, 0, 0), (32, 3.18, 3000, 0), (5, 3.36, 100, 20), (8, 4, 0, 200), (4, 1.1, 0, 3)],
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


def test_nothing_is_gained_from_one_token_a_pass():
    of = h2h.Scales(295.0, 388.0, 0.0)
    assert h2h.breakeven_batch(of, positions=32, tokens_per_pass=1) == 0
    assert h2h.context_without_breakeven(of, positions=32, tokens_per_pass=1) == np.inf


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
