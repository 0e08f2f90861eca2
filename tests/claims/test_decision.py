"""The choice and the additions of the summary: what their verdicts rest on, at points that can be checked."""

import numpy as np
import pytest

from analysis.evidence.claims import decision, serving
from analysis.evidence.claims.ledger import verdicts
from analysis.evidence.claims.registry import REGISTRY, Context
from analysis.model import decoders
from analysis.reference import tables
from analysis.reference.specs import Decoder

SNAPSHOT = Context(tables.SNAPSHOT)
POINT = {
    "model": np.array(["llama-3.1-70b"]),
    "weights": np.array(["fp8"]),
    "gpus": np.array([8]),
    "prompt": np.array([1500.0]),
    "answer": np.array([300.0]),
    "budget_s": np.array([1.0]),
    "block": np.array([64]),
    "tokens_a_pass": np.array([4.0]),
    "acceptance": np.array([0.7]),
    "copied": np.array([0.4]),
    "drafts": np.array([3]),
    "draft_cost": np.array([0.05]),
    "documents": np.array([1e6]),
    "hours": np.array([10.0]),
}


@pytest.mark.parametrize("claim", ["C01", "C66", "C73"])
def test_a_story_and_a_forecast_are_unsupported_and_say_what_was_searched(claim):
    (found,) = verdicts(as_of=tables.NEWEST, only=claim)
    assert found.verdict == "unsupported"
    assert "(searched November 2026)" in found.decided_by


def test_idle_fleets_are_cited_from_measurements_that_are_not_the_banks():
    """5 %, 10.5 % and 20 % of three mixed fleets, each with its day; before the first day there is nothing."""
    (found,) = verdicts(as_of=tables.SNAPSHOT, only="C02")
    assert found.verdict == "cited"
    assert found.decided_by.startswith("3 of 3 dated figures of mixed fleets")
    assert found.computed["median"] == pytest.approx(0.105)
    (early,) = verdicts(as_of=tables.date(2019, 1, 1), only="C02")
    assert early.verdict == "unsupported"


def test_statements_that_stand_only_in_the_summary_are_marked():
    marked = {claim.id for claim in REGISTRY.values() if claim.stated_in == "summary"}
    assert {"C66", "C73", "C74", "C75", "C76"} <= marked
    assert not any("radar2026" in REGISTRY[claim].sources for claim in ("C66", "C73", "C74", "C75", "C76"))


def test_batch_work_is_true_where_token_by_token_is_faster_at_a_full_batch():
    outcome = decision.batch_needs_nothing_new(POINT, SNAPSHOT)
    assert outcome.true[0]
    assert outcome.value[0] < 1


def test_a_breakthrough_is_a_budget_that_only_diffusion_keeps():
    """Both alone on the node: what decides is which of them is within the second."""
    missed = decision.breakthrough(POINT | {"answer": np.array([500.0])}, SNAPSHOT)
    short = decision.breakthrough(POINT | {"answer": np.array([60.0])}, SNAPSHOT)
    wide = decision.breakthrough(POINT | {"answer": np.array([500.0]), "tokens_a_pass": np.array([16.0])}, SNAPSHOT)
    assert (missed.true[0], short.true[0], wide.true[0]) == (False, False, True)


def test_more_rivals_leave_less_to_diffusion_and_c75_counts_those_of_its_reading():
    shares = decision.breakthrough_against(SNAPSHOT).set_index("rivals")["share"]
    assert shares.is_monotonic_decreasing
    (found,) = verdicts(as_of=tables.SNAPSHOT, only="C75")
    assert found.share_true == pytest.approx(shares["copies from the prompt"])
    assert shares["a sparse model on the node"] < shares["plain decoding"]


def test_drafts_choose_their_length_and_never_make_the_rival_slower():
    seconds = decision._seconds_alone(POINT)
    fixed = decoders.request_s(
        serving.set_up("llama-3.1-70b", "fp8", 8)[0],
        Decoder.speculative(acceptance=0.7, draft_length=3, draft_cost=0.05),
        input_tokens=1500.0,
        output_tokens=300.0,
        efficiency=serving.set_up("llama-3.1-70b", "fp8", 8)[1],
    )
    assert seconds["drafts of any length"][0] <= fixed
    assert seconds["copies from the prompt"][0] < seconds["plain decoding"][0]


def test_a_batch_within_a_second_is_the_last_that_is():
    """One more request than the answer breaks the budget, and the answer itself keeps it."""
    outcome = decision.batches_stay_tiny(POINT | {"answer": np.array([100.0])}, SNAPSHOT)
    replica, reached = serving.set_up("llama-3.1-70b", "fp8", 8)
    load = {"input_tokens": 1500.0, "output_tokens": 100.0, "efficiency": reached}
    n = float(outcome.value[0])
    kept = decoders.served(replica, Decoder.autoregressive(), batch=n, **load).request_s
    broken = decoders.served(replica, Decoder.autoregressive(), batch=n + 0.01, **load).request_s
    assert kept <= 1 < broken
    assert n > 1
