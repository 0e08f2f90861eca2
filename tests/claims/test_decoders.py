"""Statements about diffusion and speculation: their tests agree with the model at named points."""

import numpy as np
import pytest

from analysis.evidence.claims import diffusion, serving
from analysis.evidence.claims.ledger import verdicts
from analysis.evidence.claims.registry import REGISTRY, Context
from analysis.evidence.claims.speculation import ACCEPTANCE, DRAFT_COST, DRAFT_LENGTHS, MEDIAN_ACCEPTANCE
from analysis.evidence.claims.verdict import by_choice
from analysis.evidence.scenarios import central, sample
from analysis.evidence.speculation import implied_acceptance
from analysis.model.decoders import request_s
from analysis.reference import decoder_tables, tables
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import replica
from analysis.reference.specs import Decoder
from analysis.reference.tables import NEWEST, SNAPSHOT

CONTEXT = Context(SNAPSHOT)


def at(claim, **values):
    point = {**central(claim.space(CONTEXT)), **values}
    return {name: np.array([value]) for name, value in point.items()}


def test_a_pass_is_compute_bound_without_a_cache_and_on_no_sparse_model():
    """Whole sequences always, blocks of a dense model sometimes, of a sparse one never: the form decides."""
    shares = by_choice(REGISTRY["C21"], "form", CONTEXT).set_index("form")["share_true"]
    assert shares["dense-whole"] == 1
    assert shares["sparse-blocks"] == 0
    assert 0.05 < shares["dense-blocks"] < 0.5


def test_the_intensity_of_a_short_block_is_its_length_in_16_bit():
    """By hand: 2 FLOP for each weight and position over 2 bytes is one FLOP/byte for each position, less the cache."""
    claim = REGISTRY["C22"]
    point = at(claim, form="dense-blocks", size="small", weights="bf16", block=64.0, prompt=500.0)
    value = claim.test(point, CONTEXT).value
    assert value[0] == pytest.approx(64, rel=0.05)


def test_requests_are_those_of_the_model_at_a_named_point():
    point = at(
        REGISTRY["C34"],
        form="dense-blocks",
        size="small",
        weights="bf16",
        setting="llada2.0",
        prompt=2000.0,
        answer=320.0,
        acceptance=0.7,
        draft_cost=0.1,
    )
    seconds = diffusion.requests_s(point)
    one = replica("llama-3.1-8b", "h100-sxm", as_of=NEWEST)
    asked = {"input_tokens": 2000, "output_tokens": 320, "efficiency": efficiency(one, "vllm")}
    blocks = Decoder.diffusion(block_tokens=32, passes=32 / 3.18)
    drafts = [Decoder.speculative(acceptance=0.7, draft_length=g, draft_cost=0.1) for g in DRAFT_LENGTHS]
    assert seconds["blocks"][0] == pytest.approx(request_s(one, blocks, **asked))
    assert seconds["drafts"][0] == pytest.approx(min(request_s(one, each, **asked) for each in drafts))
    assert seconds["plain"][0] == pytest.approx(request_s(one, Decoder.autoregressive(), **asked))


def test_published_settings_are_those_of_the_data():
    """LLaDA2.0: 3.18 and 4.65 tokens of each pass over 32; DiffusionGemma: 16 steps and the pass that commits."""
    rows = tables.all_rows("diffusion").set_index(["id", "quantity"])["value"]
    for setting, row in (("llada2.0", "l20-flash"), ("llada2.0-cap", "l20-flash-cap")):
        block, passes = diffusion.SETTINGS[setting]
        assert block / passes == pytest.approx(rows[row, "tokens_per_pass"])
    assert diffusion.SETTINGS["diffusiongemma-chart"] == (256, 17)


def test_the_range_of_acceptance_is_the_middle_of_the_measured_chains():
    frame = decoder_tables.speculation()
    rows = frame[frame["serving"] & frame["method"].isin(("eagle", "eagle-3", "p-eagle"))]
    rows = rows[rows["tokens_per_pass"].notna() & rows["draft_length"].notna()]
    accepted = implied_acceptance(rows["tokens_per_pass"].to_numpy(), draft_length=rows["draft_length"].to_numpy())
    low, middle, high = np.percentile(accepted, [5, 50, 95])
    assert (low, high) == pytest.approx((ACCEPTANCE.low, ACCEPTANCE.high), abs=0.015)
    assert middle == pytest.approx(MEDIAN_ACCEPTANCE, abs=0.005)


def test_all_decoders_are_compared_over_one_range_of_drafts():
    for claim in ("C29", "C34", "C39", "C65"):
        space = REGISTRY[claim].space(CONTEXT)
        assert space["acceptance"] is ACCEPTANCE
        assert space["draft_cost"] is DRAFT_COST


def test_five_of_six_benchmarks_rise_as_steeply():
    (found,) = verdicts(as_of=SNAPSHOT, only="C27")
    rows = REGISTRY["C27"].test(CONTEXT).rows
    assert rows["supports"].sum() == 5
    assert rows.loc[~rows["supports"], "value"].item() == pytest.approx(12.0 / 17.8, abs=0.01)
    assert found.decided_by.startswith("5 of 6 ")


def test_few_rows_are_told_by_their_own_ends():
    (found,) = verdicts(as_of=SNAPSHOT, only="C23")
    assert (found.computed["p05"], found.computed["p95"]) == (737, 1109)


def test_the_edge_shrinks_with_the_better_rival():
    shares = by_choice(REGISTRY["C34"], "rival", CONTEXT).set_index("rival")["share_true"]
    assert shares["plain"] > shares["look-up"]
    assert shares["plain"] > shares["drafts"]


def test_no_decoder_is_always_first():
    shares = diffusion.winners(CONTEXT).set_index("decoder")["share"]
    assert shares.sum() == pytest.approx(1)
    assert shares["plain"] < 0.01
    assert (shares.drop("plain") > 0.05).all()


def test_speculation_is_decided_by_the_model_kind():
    """Checking loads more experts, so a sparse model gains less from the same drafts."""
    shares = by_choice(REGISTRY["C32"], "model", CONTEXT).set_index("model")["share_true"]
    assert shares["llama-3.1-8b"] > shares["gpt-oss-120b"] > shares["qwen3-30b-a3b"]


def test_no_gain_is_above_the_tokens_of_its_cycle():
    claim = REGISTRY["C32"]
    points = sample(claim.space(CONTEXT), count=256)
    tokens = Decoder.speculative(acceptance=points["acceptance"], draft_length=points["draft_length"]).tokens_per_pass
    assert (claim.test(points, CONTEXT).value <= tokens).all()


@pytest.mark.parametrize(
    ("claim_id", "verdict"),
    [("C23", "cited"), ("C24", "cited"), ("C25", "unsupported"), ("C26", "cited"), ("C27", "cited"), ("C28", "cited")],
)
def test_market_facts_follow_their_rows(claim_id, verdict):
    (found,) = verdicts(as_of=SNAPSHOT, only=claim_id)
    assert found.verdict == verdict


def test_before_its_launch_nothing_was_reported_of_mercury_2():
    (found,) = verdicts(as_of=tables.parse_date("day", "2026-01-31"), only="C24")
    assert found.verdict == "unsupported"


def test_much_less_than_a_dense_model_ends_at_a_few_positions():
    share, positions = serving.much_less(CONTEXT)
    (found,) = verdicts(as_of=SNAPSHOT, only="C33")
    assert share < 0.5 < found.share_true
    assert positions == pytest.approx(10, abs=1)
    assert found.boundary.threshold > 3 * positions


def test_a_pass_over_one_position_reads_the_active_part_and_over_many_all():
    at_1, at_many = (
        serving.read_of_dense({"model": np.array(["mixtral-8x7b"]), "positions": np.array([m])})[0] for m in (1.0, 1e6)
    )
    assert at_1 == pytest.approx(12.9 / 46.7, abs=0.02)
    assert at_many == pytest.approx(1)
