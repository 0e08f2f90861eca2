"""Decoders against each other: what the verdicts rest on, checked at points that can be followed by hand."""

import numpy as np
import pytest

from analysis.evidence.claims import rivals
from analysis.evidence.claims.registry import REGISTRY, Context
from analysis.evidence.claims.verdict import by_choice, evaluate, share_where
from analysis.evidence.scenarios import central, fixed, sample
from analysis.model.decoders import request_s
from analysis.reference import tables
from analysis.reference.specs import Decoder

SNAPSHOT = Context(tables.SNAPSHOT)


def at(claim, **values):
    """One sample: the middle of the claim's space, some inputs named."""
    space = fixed(REGISTRY[claim].space(SNAPSHOT), **values)
    return {name: np.array([value]) for name, value in central(space).items()}


def value(claim, **values):
    return float(REGISTRY[claim].test(at(claim, **values), SNAPSHOT).value[0])


def test_the_ratio_alone_is_that_of_two_requests():
    """A block of 32 with 8 passes against one token at a time, both with their prompt."""
    point = {"backbone": "llama-3.1-8b bf16 1", "tokens_per_pass": 4.0, "rival": "plain"}
    one, reached = rivals._set_up("llama-3.1-8b bf16 1")
    load = {"input_tokens": 1000, "output_tokens": 320, "efficiency": reached}
    plain = request_s(one, Decoder.autoregressive(), **load)
    blocks = request_s(one, Decoder.diffusion(block_tokens=32, passes=8), **load)
    canvas = request_s(one, Decoder.diffusion(block_tokens=256, passes=32), **load)
    found = value("C29", **point, prompt=1000.0, answer=320.0)
    assert found == pytest.approx(plain / min(blocks, canvas))


def test_unequal_sizes_give_diffusion_its_smaller_model():
    equal = value("C29", rival="plain", backbone="llama-3.1-8b bf16 1")
    assert value("C29", rival=rivals.UNEQUAL, backbone="llama-3.1-8b bf16 1") > 1.3 * equal


def test_a_rival_that_may_draft_is_never_slower_than_plain():
    """It may leave drafting, so that diffusion's lead over it is at most that over plain decoding."""
    for backbone in rivals.BACKBONES.values:
        plain = value("C29", rival="plain", backbone=backbone)
        assert value("C29", rival="speculation", backbone=backbone) <= plain
        assert value("C29", rival="prompt look-up", backbone=backbone) <= plain


def test_ten_times_is_nowhere_reached_at_equal_size_against_drafts():
    shares = by_choice(REGISTRY["C29"], "rival", SNAPSHOT).set_index("rival")["share_true"]
    assert shares["speculation"] == shares["prompt look-up"] == 0
    assert shares[rivals.UNEQUAL] > shares["plain"]


def test_more_than_ten_times_is_no_contradiction():
    at_once = fixed(REGISTRY["C29"].space(SNAPSHOT), rival=rivals.UNEQUAL, tokens_per_pass=10.0, prompt=500.0)
    _, true, outcome = REGISTRY["C29"].outcome(sample(at_once, count=256), SNAPSHOT)
    assert outcome.value.max() > rivals.JUST_TENFOLD
    assert true[outcome.value > rivals.JUST_TENFOLD].all()


def test_short_blocks_stay_level_in_full_batches():
    shares = by_choice(REGISTRY["C35"], "block", SNAPSHOT).set_index("block")["share_true"]
    assert list(shares.index) == [4, 16, 32, 256]
    assert shares.is_monotonic_decreasing
    assert shares[4] > 0.5 > shares[32]


def test_an_advantage_that_has_turned_round_is_gone_too():
    """A canvas of 256 is behind in full batches: no block keeps an advantage, whatever its length."""
    shares = by_choice(REGISTRY["C30"], "block", SNAPSHOT).set_index("block")["share_true"]
    assert (shares > 0.5).all()
    canvas = fixed(REGISTRY["C30"].space(SNAPSHOT), block=256)
    _, true, found = REGISTRY["C30"].outcome(sample(canvas, count=256), SNAPSHOT)
    assert np.median(found.value) < rivals.LEVEL.low
    assert true.any()


def test_no_block_is_done_in_fewer_than_two_passes():
    found = rivals._published_block({"block": np.array([4, 16, 32, 256]), "tokens_per_pass": np.full(4, 5.1)})
    assert found.passes_per_block == pytest.approx([2, 16 / (5.1 * 2.44 / 2.55), 32 / 5.1, 256 / 10.2])


def test_where_no_threshold_decides_the_shares_by_rival_are_told():
    found = evaluate(REGISTRY["C39"], SNAPSHOT)
    shares = by_choice(REGISTRY["C39"], "rival", SNAPSHOT).set_index("rival")
    assert "by the rival: true in" in found.decided_by
    assert shares.loc["plain", "verdict"] == "holds"
    assert shares.loc["speculation", "share_true"] < 0.5


def test_in_full_batches_without_prompts_the_ratio_is_a_quotient_of_arithmetic():
    """Short prompts: blocks compute T positions for each token that they keep, here 8."""
    point = {"prompt": 16.0, "answer": 320.0, "tokens_per_pass": 4.0, "block": 32}
    ratio = value("C30", rival="plain", backbone="llama-3.1-8b bf16 1", **point)
    assert 1 / 8 < ratio < 0.6


def test_a_node_at_twice_the_price_loses_twice_as_clearly():
    of = {"ownership": "reserved", "place": 0.0, "backbone": "llama-3.1-70b fp8 4"}
    full, half = (value("C42", **of, utilization=u) for u in (1.0, 0.5))
    assert half == pytest.approx(2 * full)
    bills = [value("C42", **of, against=name) for name in (rivals.SAME_MODEL, rivals.ITS_SIZE, rivals.ANY_MODEL)]
    assert bills == sorted(bills)


def test_whose_bill_it_is_decides_how_often_the_node_loses():
    """Any open model, however small, undercuts models of the node's size, and these undercut the same model."""
    split = {name: shares["share_true"] for name, shares in rivals.against_commodity(SNAPSHOT).items()}
    assert split[rivals.SAME_MODEL] <= split[rivals.ITS_SIZE] <= split[rivals.ANY_MODEL]
    found = by_choice(REGISTRY["C42"], "against", SNAPSHOT).set_index("against")["share_true"]
    assert found[rivals.SAME_MODEL] == pytest.approx(split[rivals.SAME_MODEL], abs=0.03)
    assert set(rivals.SMALLER) < set(tables.class_tariffs("commodity", as_of=tables.SNAPSHOT))


def test_nodes_are_whole_and_endless_where_the_budget_is_missed():
    assert rivals._nodes(np.array([10.0, 10.0, 1.0]), np.array([4.0, 0.0, 1.0])).tolist() == [3, np.inf, 1]


def test_the_reasons_for_diffusion_are_counted_once_each():
    reasons = rivals.why_it_pays(SNAPSHOT)
    assert sum(reasons.values()) == pytest.approx(1)
    assert reasons["too slow"] > reasons["cheap"]
    shares = by_choice(REGISTRY["C47"], "must_stay", SNAPSHOT).set_index("must_stay")["share_true"]
    dear = reasons["dear"] / (1 - reasons["must stay"])
    assert shares[rivals.MAY_LEAVE] == pytest.approx(dear, abs=0.03)


def test_faster_decoding_makes_the_same_documents_read_heavy():
    plain, blocks = (value("C72", decoder=decoder) for decoder in ("plain", "diffusion"))
    assert plain > blocks


def test_shares_under_other_readings():
    claim = REGISTRY["C72"]
    assert share_where(claim, SNAPSHOT, decoder="plain") == evaluate(claim, SNAPSHOT).share_true
    assert share_where(claim, SNAPSHOT, decoder="diffusion") < 0.5
    assert 0 < rivals.just_tenfold(SNAPSHOT) < evaluate(REGISTRY["C29"], SNAPSHOT).share_true
    with pytest.raises(KeyError, match="no input speed"):
        share_where(claim, SNAPSHOT, speed=1.0)
    with pytest.raises(TypeError, match="C31 has no samples"):
        share_where(REGISTRY["C31"], SNAPSHOT, speed=1.0)


def test_whatever_costs_something_loses_to_an_api_for_nothing(tmp_path):
    """Zero is a price: the answer is plain, though its ratio has no number; what is free itself does not lose."""
    rows = tables.api_prices(as_of=tables.SNAPSHOT).where(quantity="price")
    keys = [*tables.SCHEMAS["api_prices"].keys, "quantity", "value", "unit"]
    rows.assign(value=0)[keys].to_csv(tmp_path / "free.csv", index=False)
    found = evaluate(REGISTRY["C42"], Context(tables.SNAPSHOT, tables.read_prices(tmp_path / "free.csv")))
    assert (found.share_true, found.share_undefined, found.computed, found.verdict) == (1, 0, None, "holds")
