"""The night and the queue: what the verdicts rest on, checked against the model's own functions and by hand."""

import numpy as np
import pytest

from analysis.evidence.claims import queueing as claims
from analysis.evidence.claims.ledger import verdicts
from analysis.evidence.claims.registry import REGISTRY, Context
from analysis.evidence.claims.serving import ENGINE, set_up
from analysis.evidence.claims.verdict import by_choice
from analysis.evidence.scenarios import central
from analysis.model import decoders, queueing
from analysis.model.simulation import Server, Traffic, serve_runs
from analysis.reference.efficiency import memory_rule, slots
from analysis.reference.specs import Decoder
from analysis.reference.tables import SNAPSHOT

CONTEXT = Context(SNAPSHOT)
LOAD = {"slots": slots(ENGINE), "rule": memory_rule(ENGINE)}


def point(claim_id, **values):
    """Return the middle of a claim's space with some inputs changed, as arrays of one sample."""
    middle = {**central(REGISTRY[claim_id].space(CONTEXT)), **values}
    return {name: np.array([value]) for name, value in middle.items()}


def outcome(claim_id, **values):
    return REGISTRY[claim_id].test(point(claim_id, **values), CONTEXT)


def service(model="llama-3.1-70b", weights="bf16", gpus=8, prompt=1500.0, answer=300.0):
    replica, reached = set_up(model, weights, gpus)
    return queueing.Service.of(
        replica, claims.PLAIN, input_tokens=prompt, output_tokens=answer, **LOAD, efficiency=reached
    )


def curve(**at):
    replica, reached = set_up("llama-3.1-70b", "bf16", 8)
    sample = {"prompt": np.array([1500.0]), "answer": np.array([300.0])}
    return claims.curve_of(replica, claims.PLAIN, reached, sample)


def test_the_interpolated_curve_follows_the_law():
    """A few batches stand for all: rates within a budget and batches at a rate within 3 % of the model's search."""
    exact, few = service(), curve()
    assert few.saturated[0] == pytest.approx(exact.saturated_req_per_s, rel=1e-9)
    for budget in (4.0, 6.0, 15.0):
        assert few.rate_within(budget)[0] == pytest.approx(queueing.rate_within_budget(exact, budget), rel=0.03)
    for rate in (0.5, 2.0, 5.0):
        assert few.batch_at(rate)[0] == pytest.approx(queueing.under_load(exact, rate).batch, rel=0.03)
    assert np.isinf(few.batch_at(100.0)[0])
    assert few.rate_within(1.0)[0] == 0


@pytest.mark.parametrize(
    ("model", "gpus", "decoder", "part", "mean", "tail"),
    [
        ("llama-3.1-70b", 8, claims.PLAIN, 0.4, 0.02, 0.03),
        ("gpt-oss-120b", 2, claims.PLAIN, 0.2, 0.04, 0.08),
        ("llama-3.1-8b", 1, Decoder.diffusion(block_tokens=32, passes=8), 0.3, 0.04, 0.06),
        ("llama-3.1-8b", 2, Decoder.speculative(acceptance=0.7, draft_length=3, draft_cost=0.05), 0.4, 0.04, 0.05),
    ],
    ids=["dense", "sparse", "blocks", "drafts"],
)
def test_the_simulation_bears_the_law_out_at_named_points(model, gpus, decoder, part, mean, tail):
    """Statements use the law; requests that are served pass by pass say how far off it is: mean and percentile 95."""
    replica, reached = set_up(model, "bf16", gpus)
    law = queueing.Service.of(replica, decoder, input_tokens=1500, output_tokens=300, **LOAD, efficiency=reached)
    rate = part * law.saturated_req_per_s
    server = Server(replica, decoder, reached, **LOAD)
    served = serve_runs(server, Traffic(1500, 300), rate_req_per_s=rate, count=6000, runs=2)
    found = queueing.under_load(law, rate)
    assert found.in_domain
    assert found.latency_s == pytest.approx(served.mean_s().value, rel=mean)
    assert found.quantile_s(95) == pytest.approx(served.percentile_s(95).value, rel=tail)
    assert queueing.busy_share(law, rate) == pytest.approx(served.busy.value, abs=0.03)


def test_one_node_reads_a_tenth_of_a_million_files_in_a_night():
    """70B in 8 bit: 107,000 documents of 8,000 tokens in eight hours, by the chapter's own function."""
    at = {"model": "llama-3.1-70b", "weights": "fp8", "prompt": 8000.0, "answer": 300.0, "documents": 1e6, "hours": 8.0}
    replica, reached = set_up("llama-3.1-70b", "fp8", 2)
    rate = 4 * decoders.saturated_req_per_s(
        replica, claims.PLAIN, input_tokens=8000, output_tokens=300, **LOAD, efficiency=reached
    )
    point = {name: np.array([value]) for name, value in (at | {"weights": "fp8"}).items()}
    assert claims.night_share(point) == pytest.approx([28_800 * rate / 1e6])


def test_a_pile_of_millions_keeps_the_batch_full_and_one_of_a_dozen_does_not():
    """The pile over what the node holds at once, at the split that holds most; that one node reads it is apart."""
    at = {"model": "llama-3.1-70b", "weights": "fp8", "prompt": 8000.0, "answer": 300.0, "hours": 8.0}
    rooms = [
        8
        // gpus
        * float(
            decoders.largest_batch(
                set_up("llama-3.1-70b", "fp8", gpus)[0], claims.PLAIN, input_tokens=8000, output_tokens=300, **LOAD
            )
        )
        for gpus in (1, 2, 4, 8)
    ]
    found = outcome("C14", **at, documents=1e6)
    assert found.value[0] == pytest.approx(1e6 / max(rooms))
    assert found.true[0]
    assert not outcome("C14", **at, documents=12.0).true[0]
    apart = claims.one_node_reads(CONTEXT)
    assert 0 < apart["share_true"] < 0.5
    assert 0 < apart["median"] < 1


def test_at_night_reading_is_most_of_the_time_and_live_it_is_not():
    at = {"model": "llama-3.1-70b", "prompt": 8000.0, "answer": 300.0, "rate": 0.03}
    assert outcome("C48", **at).true[0]
    assert outcome("C16", **at).true[0]
    assert outcome("C51", **{k: v for k, v in at.items() if k != "rate"}).value[0] > 0.5
    assert not outcome("C51", **{k: v for k, v in at.items() if k != "rate"}, filled=0.0).true[0]


def test_one_at_a_time_is_little_law():
    """Beside a request stand rate times stay others."""
    found = outcome("C52", model="llama-3.1-70b", weights="bf16", prompt=2000.0, answer=300.0, rate=0.1)
    stay = queueing.under_load(service(prompt=2000.0), 0.1).latency_s
    assert found.value[0] == pytest.approx(0.1 * stay, rel=0.03)
    assert found.true[0]


def test_a_batch_that_is_collected_takes_its_gaps():
    """The first of 11 requests at 5 a second waits for ten gaps, two seconds."""
    at = {"batch": 11.0, "rate": 5.0, "scheduler": "collects a batch first"}
    assert outcome("C15", **at).value[0] == pytest.approx(2.0)
    next_pass = outcome("C15", **at | {"scheduler": "admits at the next pass"})
    assert next_pass.value[0] < 1
    frame = by_choice(REGISTRY["C15"], "scheduler", CONTEXT).set_index("scheduler")
    assert frame.loc["admits at the next pass", "verdict"] == "fails"


def test_a_house_reaches_the_batch_of_half_the_throughput_near_half_the_saturated_rate():
    at = {"model": "llama-3.1-70b", "weights": "bf16", "prompt": 1500.0, "answer": 300.0}
    full = service().saturated_req_per_s
    assert outcome("C60", **at, rate=0.3 * full).true[0]
    assert not outcome("C60", **at, rate=0.7 * full).true[0]


def test_fewer_nodes_need_a_rival_near_its_floor_and_many_requests():
    near = {
        "pair": "8B diffusion for 70B plain",
        "weights": "bf16",
        "prompt": 1500.0,
        "answer": 300.0,
        "budget_s": 4.5,
        "block": 32,
        "tokens_a_pass": 4.0,
    }
    assert outcome("C61", **near, rate=300.0).value[0] < 1 / 3
    assert outcome("C61", **near, rate=0.1).value[0] == 1
    assert not outcome("C61", **near, rate=0.1).true[0]


def test_the_share_that_latency_leaves_is_the_smallest_of_three_or_not():
    busy = {"model": "llama-3.1-70b", "weights": "bf16", "prompt": 1500.0, "answer": 300.0, "budget_s": 4.2}
    assert outcome("C03", **busy, rate=500.0, day=0.8).true[0]
    assert not outcome("C03", **busy, rate=0.01, day=0.8).true[0]


def test_all_statements_of_the_chapters_have_one_claim_check_each():
    of = {
        "overnight": {"C14", "C16", "C48", "C50", "C51", "C63"},
        "waiting": {"C03", "C15", "C52", "C55", "C56", "C57", "C59", "C60", "C61", "C67"},
    }
    for chapter, ids in of.items():
        found = verdicts(as_of=SNAPSHOT, chapter=chapter)
        assert {v.claim.anchor for v in found} == {f"{chapter}-claims"}
        assert {v.claim.id for v in found} == ids


def test_a_record_in_blocks_is_well_under_a_second_on_a_small_model():
    """The whole answer on an empty node at its quickest split, by the model's own function, and the overhead."""
    at = {"weights": "fp8", "prompt": 1500.0, "answer": 300.0, "block": 32, "tokens_a_pass": 4.0, "overhead_s": 0.1}
    alone = [
        decoders.request_s(
            set_up("llama-3.1-70b", "fp8", gpus)[0],
            Decoder.diffusion(block_tokens=32, passes=8),
            input_tokens=1500,
            output_tokens=300,
            efficiency=set_up("llama-3.1-70b", "fp8", gpus)[1],
        )
        for gpus in (1, 2, 4, 8)
    ]
    found = outcome("C55", **at, model="llama-3.1-70b")
    assert found.value[0] == pytest.approx(min(alone) + 0.1)
    assert not found.true[0]
    assert outcome("C55", **at, model="llama-3.1-8b").true[0]


def test_a_handful_is_counted_where_the_budget_can_be_kept():
    """A 70B model, plain, has no batch small enough; an 8B model has a node with one or two."""
    at = {"weights": "bf16", "prompt": 1500.0, "answer": 300.0, "budget_s": 1.0, "decoder": "plain"}
    assert not outcome("C56", **at, model="llama-3.1-70b").defined[0]
    small = outcome("C56", **at, model="llama-3.1-8b")
    assert small.defined[0]
    assert 0 < small.value[0] < 10


def test_one_node_each_is_not_fewer_and_a_spare_counts():
    at = {
        "pair": "8B diffusion for 70B plain",
        "weights": "fp8",
        "prompt": 1500.0,
        "answer": 300.0,
        "budget_s": 3.0,
        "block": 32,
        "tokens_a_pass": 4.0,
    }
    assert outcome("C57", **at, rate=0.1, spares=0).value[0] == 1
    many = outcome("C57", **at, rate=30.0, spares=0).value[0]
    assert many < 1 / 3
    assert outcome("C57", **at, rate=30.0, spares=1).value[0] > many
    assert not outcome("C57", **at | {"budget_s": 1.0}, rate=30.0).defined[0]
