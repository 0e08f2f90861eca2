"""Nodes under a budget: the shares multiply to the bill, nothing turns the wrong way, what can't be says why."""

import numpy as np
import pytest

from analysis.inputs import InputError
from analysis.model import capacity, cost, queueing
from analysis.model.capacity import Offer, Shape, fleet, fleets
from analysis.model.queueing import Service
from analysis.model.transformer import kv_bytes_per_token
from analysis.reference.efficiency import efficiency, memory_rule, slots
from analysis.reference.model_config import replica, shipped
from analysis.reference.specs import Decoder, Precision, Workload
from analysis.reference.tables import SNAPSHOT

AR = Decoder.autoregressive()
DIFFUSION = Decoder.diffusion(block_tokens=32, passes=8)
RECORD = Workload(rate_req_per_s=12.0, input_tokens=1500.0, output_tokens=300.0, budget_s=6.0)


def shape(model="llama-3.1-70b", gpus=8, weights="bf16", node_gpus=8):
    one = replica(model, "h100-sxm", as_of=SNAPSHOT, gpus=gpus, weights=weights)
    return Shape(one, node_gpus // gpus, efficiency(one, "vllm"), memory_rule("vllm"), slots("vllm"))


def changed(**fields):
    from dataclasses import replace

    return replace(RECORD, **fields)


def plan(workload, decoder=AR, of=None, **more):
    chosen = of or shape()
    return fleet(chosen.service(decoder, workload), workload, copies=chosen.copies, **more)


# --- The identity ------------------------------------------------------------------------------


@pytest.mark.parametrize("spares", [0, 2])
@pytest.mark.parametrize("rates", [(1.0,), (0.25, 0.5, 1.25, 2.0)])
def test_four_shares_and_the_saturated_cost_give_the_cost_and_the_bill(spares, rates):
    """Cost is saturated cost over the product; and all nodes' price over the useful tokens, the shares left out."""
    found = plan(changed(shape=rates), price_usd_per_node_hour=55.04, spares=spares)
    product = found.shares.day * found.shares.integer * found.shares.latency * found.shares.goodput
    assert product == pytest.approx(found.shares.utilization, rel=1e-15)
    assert found.cost_usd_per_mtok == pytest.approx(found.saturated_usd_per_mtok / product, rel=1e-12)
    useful_tok_per_s = 12.0 * 300.0 * found.shares.goodput
    assert found.cost_usd_per_mtok == pytest.approx(1e6 * 55.04 * found.nodes / 3600 / useful_tok_per_s, rel=1e-12)


def test_spares_are_bought_and_paid():
    without, with_two = (plan(RECORD, price_usd_per_node_hour=50.0, spares=k) for k in (0, 2))
    assert with_two.nodes == without.nodes + 2
    assert with_two.shares.integer == pytest.approx(without.shares.integer * without.nodes / with_two.nodes)


def test_at_the_chosen_nodes_the_budget_is_kept_and_with_one_less_it_is_not():
    found = plan(RECORD)
    service = shape().service(AR, RECORD)
    times = [
        queueing.under_load(service, 12.0 / n).quantile_s(95, anywhere=True) for n in (found.nodes, found.nodes - 1)
    ]
    assert times[0] <= 6.0 < times[1]
    assert found.percentiles_s[95.0] == pytest.approx(times[0])
    assert found.shares.goodput >= 0.95


# --- Feasible or not ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "decoder", [AR, DIFFUSION, Decoder.speculative(acceptance=0.7, draft_length=3, draft_cost=0.05)]
)
@pytest.mark.parametrize("metric", queueing.METRICS)
def test_just_below_the_floor_nothing_helps_and_above_it_a_count_does(decoder, metric):
    eight_b = shape("llama-3.1-8b", gpus=1)
    floor = plan(changed(budget_s=1e6, metric=metric), decoder, eight_b).latency_floor_s
    assert floor > 0
    below, above = (plan(changed(budget_s=x * floor, metric=metric), decoder, eight_b) for x in (0.99, 1.5))
    assert (below.feasible, below.nodes, below.shares, below.cost_usd_per_mtok) == (False, None, None, None)
    assert "an empty replica takes" in below.reason
    assert above.feasible
    assert above.nodes >= 1


def test_the_articles_node_does_not_answer_within_a_second():
    """Llama 3.1 70B in bf16 on eight H100, 1,500 in and 300 out: reading the weights 300 times takes 1.6 s alone."""
    found = plan(changed(budget_s=1.0))
    assert not found.feasible
    assert 2.3 < found.latency_floor_s < 4.5


def test_time_outside_the_gpu_counts_for_the_answer_and_not_between_tokens():
    whole, between = (plan(changed(budget_s=10.0, metric=metric, overhead_s=0.5)) for metric in ("e2e", "tpot"))
    bare = plan(changed(budget_s=10.0))
    assert whole.latency_floor_s == pytest.approx(bare.latency_floor_s + 0.5)
    assert whole.percentiles_s[50.0] > bare.percentiles_s[50.0]
    assert between.latency_floor_s == plan(changed(budget_s=10.0, metric="tpot")).latency_floor_s


def test_what_does_not_fit_is_named():
    beyond_memory = plan(changed(input_tokens=100_000.0), of=shape("llama-3.1-70b", gpus=2))
    assert not beyond_memory.feasible
    assert "memory holds" in beyond_memory.reason
    service = shape().service(AR, changed(input_tokens=140_000.0))
    beyond_context = fleet(service, changed(input_tokens=140_000.0, budget_s=1e3), context_limit_tokens=131_072)
    assert not beyond_context.feasible
    assert "exceed the model's context of 131,072" in beyond_context.reason


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"rate_req_per_s": 0.0}, "rate_req_per_s: got 0.0"),
        ({"budget_s": -1.0}, "budget_s: got -1.0"),
        ({"percentile": 0.0}, "percentile: got 0.0"),
        ({"percentile": 100.0}, "percentile: got 100.0"),
        ({"output_tokens": 0.0}, "output_tokens: got 0.0"),
        ({"cached_tokens": 1500.0}, "cached_tokens: got 1500.0"),
        ({"metric": "speed"}, "metric: got 'speed'"),
        ({"shape": (1.0, 2.0)}, "shape: got 1.5"),
        ({"shape": ()}, "shape: got 0.0"),
    ],
)
def test_impossible_workloads_are_refused_in_one_line(fields, words):
    with pytest.raises(InputError) as refusal:
        plan(changed(**fields))
    assert words in str(refusal.value)


# --- Nothing turns the wrong way ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "gpus", "decoder"),
    [("llama-3.1-70b", 8, AR), ("gpt-oss-120b", 4, AR), ("llama-3.1-8b", 1, DIFFUSION)],
    ids=["dense", "sparse", "diffusion"],
)
def test_more_time_never_takes_more_nodes_and_more_work_never_fewer(model, gpus, decoder):
    of = shape(model, gpus=gpus, weights="bf16" if model != "gpt-oss-120b" else None)
    start = plan(changed(budget_s=1e6), decoder, of).latency_floor_s

    def nodes(**fields):
        found = plan(changed(**{"budget_s": 2 * start, "rate_req_per_s": 300.0, **fields}), decoder, of).nodes
        return np.inf if found is None else found

    budgets = [nodes(budget_s=x * start) for x in np.geomspace(1.02, 50, 12)]
    rates = [nodes(rate_req_per_s=x) for x in np.geomspace(1, 3000, 12)]
    answers = [nodes(output_tokens=x) for x in np.linspace(50, 700, 12)]
    assert (np.diff(budgets) <= 0).all()
    assert budgets[0] > budgets[-1]
    assert (np.diff(rates) >= 0).all()
    assert (np.diff([n for n in answers if np.isfinite(n)]) >= 0).all()
    assert np.all(np.isinf(answers) == np.sort(np.isinf(answers)))


def test_more_passes_and_burstier_arrivals_never_take_fewer_nodes():
    of = shape("llama-3.1-8b", gpus=1)
    by_passes = [
        plan(changed(rate_req_per_s=400.0, budget_s=3.0), Decoder.diffusion(block_tokens=32, passes=t), of).nodes
        for t in (2, 4, 8, 12, 16)
    ]
    by_cv = [plan(changed(cv=cv)).nodes for cv in (0.5, 1.0, 2.0, 4.0)]
    assert (np.diff(by_passes) >= 0).all()
    assert by_passes[0] < by_passes[-1]
    assert (np.diff(by_cv) >= 0).all()


@pytest.mark.parametrize(("model", "gpus", "decoder"), [("llama-3.1-70b", 8, AR), ("llama-3.1-8b", 1, DIFFUSION)])
def test_without_a_budget_a_node_sells_what_it_can_make(model, gpus, decoder):
    """Largest rate within a growing budget: min of the closed form's limit 1/c and the saturated rate."""
    of = shape(model, gpus=gpus)
    service = of.service(decoder, RECORD)
    found = plan(changed(budget_s=1e9), decoder, of)
    assert found.node_req_per_s == pytest.approx(of.copies * service.saturated_req_per_s, rel=1e-6)
    assert found.shares.latency == pytest.approx(1.0, rel=1e-6)
    floor = float(service.stay_s(1.0))
    line = queueing.largest_rate_req_per_s(1e9, floor_s=floor, marginal_s=float(service.stay_s(2.0)) - floor)
    assert found.node_req_per_s <= of.copies * min(line * 1.3, service.saturated_req_per_s)


# --- Shapes, offers, days ----------------------------------------------------------------------


def test_the_best_shape_needs_the_fewest_nodes():
    shapes = [shape("llama-3.1-8b", gpus=g) for g in (1, 2, 4, 8)]
    found = fleets(shapes, AR, changed(rate_req_per_s=200.0, budget_s=3.0))
    chosen = capacity.best(found)
    assert set(found) == {1, 2, 4, 8}
    assert found[chosen].nodes == min(each.nodes for each in found.values() if each.nodes)


def test_shapes_that_cannot_hold_the_model_are_no_candidates():
    found = fleets([shape(gpus=g) for g in (1, 4, 8)], AR, RECORD)
    assert not found[1].feasible
    assert "memory holds" in found[1].reason
    assert capacity.best(found) in (4, 8)
    assert (
        capacity.best(
            {g: fleet(shape(gpus=g).service(AR, changed(budget_s=1.0)), changed(budget_s=1.0)) for g in (4, 8)}
        )
        == 8
    )


def test_a_small_node_does_the_work_of_few_requests_for_less():
    """One 8B model on one H100 of eight: a node with one GPU at an eighth of the price is enough."""
    few = changed(rate_req_per_s=0.5, budget_s=6.0)
    shapes = [shape("llama-3.1-8b", gpus=g) for g in (1, 8)]
    offer, gpus, found = capacity.cheapest_offer([Offer("eight", 8, 32.0), Offer("one", 1, 4.0)], shapes, AR, few)
    assert (offer.name, gpus, found.nodes) == ("one", 1, 1)
    assert capacity.cheapest_offer([Offer("eight", 8, 32.0)], shapes, AR, changed(budget_s=0.1)) is None


def test_an_elastic_fleet_never_has_more_nodes_than_the_fixed_one():
    rates = tuple(np.array([0.2, 0.4, 1.0, 1.6, 1.8]))
    hours = capacity.day(shape().service(AR, RECORD), changed(rate_req_per_s=30.0, shape=rates), spares=1)
    assert (hours["elastic_nodes"] <= hours["fixed_nodes"]).all()
    assert hours["elastic_nodes"].max() == hours["fixed_nodes"].max()
    assert (hours["elastic_load"] >= hours["fixed_load"]).all()
    with pytest.raises(InputError, match=r"budget_s: got 1\.0"):
        capacity.day(shape().service(AR, RECORD), changed(budget_s=1.0))


def test_documents_of_a_night_and_the_nodes_for_a_pile():
    """2.5 requests a second for eight hours: 72,000; a million takes 13.9 of them, so 14."""
    assert capacity.documents_in(8.0, node_req_per_s=2.5) == 72_000
    assert capacity.nodes_for_documents(1e6, window_hours=8.0, node_req_per_s=2.5) == 14
    assert capacity.nodes_for_documents(72_000, window_hours=8.0, node_req_per_s=2.5) == 1
    assert capacity.documents_in(8.0, node_req_per_s=2.5, requests_per_document=2) == 36_000


def test_a_night_by_model_takes_the_split_that_reads_most():
    """A full replica by hand: n / (P t + n p); what fits nowhere has no row."""
    splits = [shape("llama-3.1-70b", gpus=g) for g in (1, 4, 8)]
    frame = capacity.sweep_night(
        {"70B": splits}, AR, input_tokens=[2000, 8000, 3e6], output_tokens=300.0, window_hours=8, documents=1e6
    )
    assert frame["input_tokens"].tolist() == [2000, 8000]
    row = frame.iloc[1]
    rates = [s.copies * s.service(AR, changed(input_tokens=8000.0)).saturated_req_per_s for s in splits]
    assert row["node_req_per_s"] == pytest.approx(max(rates))
    assert row["documents"] == pytest.approx(28_800 * max(rates))
    assert row["nodes"] == np.ceil(1e6 / row["documents"])
    assert 0.5 < row["prompt_share"] < 1


# --- Published targets that contradict themselves ----------------------------------------------


def test_first_token_and_token_time_of_a_published_target_exceed_its_budget():
    """600 ms and 40 ms for 200 tokens are 8.6 s, not under 4 s; 200 streams are 5,000 tokens/s.

    https://kevinluzbetak.com/Design/AI_Systems/LLM-Inference-Service.html asks for all of it. Its 1.50
    dollars a million then leave 27 dollars an hour, and 200 requests of 700 tokens hold 22.9 GB of cache.
    """
    implied = queueing.whole_answer_s(0.6, tpot_s=0.04, output_tokens=200)
    assert implied == pytest.approx(8.6, rel=0.01)
    assert implied > 4
    assert queueing.in_flight(5000.0, tpot_s=0.04) == pytest.approx(200)
    assert cost.price_usd_per_node_hour_at_cost(1.5, node_tok_per_s=5000.0, utilization=1.0) == pytest.approx(27)
    each = kv_bytes_per_token(shipped("llama-3.1-70b").architecture, Precision.of("fp8", kv="fp8"))
    assert each == 163_840
    assert 200 * 700 * each == pytest.approx(22.9e9, rel=0.01)


def test_a_published_record_contradicts_its_own_batch():
    """Batch 16 at 32 ms a token is 500 tokens/s; the 1,480 beside it need 47 requests in flight.

    https://evokernel-specs.pages.dev/en/cases/case-llama33-a100x8-vllm-001/
    """
    assert queueing.in_flight(500.0, tpot_s=0.032) == pytest.approx(16)
    assert queueing.in_flight(1480.0, tpot_s=0.032) == pytest.approx(47, rel=0.05)
    assert queueing.in_flight(1480.0, tpot_s=0.032) > 2 * 16


def test_two_targets_that_cannot_be_kept_at_once_are_told_apart():
    """The budget for the whole answer is infeasible where its own token time already breaks it."""
    eight_b = shape("llama-3.1-8b", gpus=1)
    work = changed(output_tokens=200.0, input_tokens=500.0)
    service: Service = eight_b.service(AR, work)
    implied = queueing.whole_answer_s(service.floor_s("ttft"), tpot_s=service.floor_s("tpot"), output_tokens=200)
    assert implied == pytest.approx(service.floor_s(), rel=1e-9)
