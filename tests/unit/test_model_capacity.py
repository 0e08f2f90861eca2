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


#: A 70B model on eight H100, in round numbers: 300 passes of 10 ms, 0.1 ms for each request, 50 ms for a prompt.
LINE = Service.line(passes=300, lone_pass_s=0.01, slope_s=1e-4, prompt_s=0.05, room=256)


@pytest.mark.parametrize("metric", queueing.METRICS)
@pytest.mark.parametrize("cv", [1.0, 2.0])
def test_every_figure_of_a_fleet_follows_from_the_law_at_its_hours(metric, cv):
    """Four replicas a node, two hours at 20 and 60 requests a second, half a second outside, one spare."""
    budget = {"e2e": 5.5, "ttft": 0.7, "tpot": 0.013}[metric]
    work = changed(
        rate_req_per_s=40.0, budget_s=budget, metric=metric, cv=cv, shape=(0.5, 1.5), overhead_s=0.5, percentile=90.0
    )
    found = fleet(LINE, work, copies=4, spares=1, price_usd_per_node_hour=30.0)
    outside = 0.0 if metric == "tpot" else 0.5
    one = float(queueing.rate_within_budget(LINE, budget - outside, percentile=90.0, metric=metric, cv=cv))
    assert found.nodes == np.ceil(60 / (4 * one)) + 1
    assert found.spares == 1
    assert found.node_req_per_s == pytest.approx(4 * one)
    replicas = 4 * found.nodes
    peak, valley = (queueing.under_load(LINE, rate / replicas, cv=cv) for rate in (60.0, 20.0))
    saturated = 4 * 256 / (300 * (0.01 + 255e-4) + 256 * 0.05)
    assert found.node_saturated_req_per_s == pytest.approx(saturated)
    assert found.load == pytest.approx(60 / (found.nodes * saturated))
    assert found.busy == pytest.approx(float(queueing.busy_share(LINE, 60 / replicas)))
    assert found.shares.day == pytest.approx(2 / 3)
    assert found.shares.integer == pytest.approx(60 / (replicas * one))
    assert found.shares.latency == pytest.approx(4 * one / saturated)
    within = [float(each.share_within(budget - outside, metric)) for each in (valley, peak)]
    assert found.shares.goodput == pytest.approx((within[0] + 3 * within[1]) / 4)
    assert found.saturated_usd_per_mtok == pytest.approx(30e6 / (3600 * saturated * 300))
    assert found.cost_usd_per_mtok == pytest.approx(
        1e6 * 30 * found.nodes / 3600 / (40 * 300 * found.shares.goodput), rel=1e-12
    )
    assert found.latency_floor_s == pytest.approx({"e2e": 3.55, "ttft": 0.56, "tpot": 0.01}[metric])
    assert found.means_s == pytest.approx({"e2e": peak.latency_s + 0.5, "ttft": peak.ttft_s + 0.5, "tpot": peak.tpot_s})
    # a prompt takes five passes, which the spread of the first token is not trusted with; nor are bursts
    assert found.extrapolated == (cv != 1 or metric == "ttft")
    asked = float(peak.quantile_s(90.0, metric))
    assert found.time_s == (None if np.isnan(asked) else pytest.approx(asked + outside))
    assert (found.time_s is None) == found.extrapolated
    assert set(found.percentiles_s) == {50.0, 95.0, 99.0}
    for percentile, time in found.percentiles_s.items():
        assert time == (None if cv != 1 else pytest.approx(float(peak.quantile_s(percentile)) + 0.5))
    assert (found.feasible, found.reason, found.room) == (True, None, 256)


def test_the_first_token_has_a_domain_of_its_own():
    """At a rate where the whole answer is trusted, a prompt of five passes leaves its first token an extrapolation."""
    found = fleet(LINE, changed(budget_s=0.15, metric="ttft"))
    assert queueing.under_load(LINE, found.node_req_per_s).in_domain
    assert found.extrapolated
    assert not fleet(LINE, changed(budget_s=4.0)).extrapolated


def test_few_requests_take_one_replica_of_one_node():
    found = fleet(LINE, changed(rate_req_per_s=0.01))
    assert (found.nodes, found.spares, found.cost_usd_per_mtok) == (1, 0, 0)
    assert found.node_req_per_s == pytest.approx(float(queueing.rate_within_budget(LINE, 6.0, percentile=95)))


def test_rounding_in_the_last_digits_buys_no_node():
    one = float(queueing.rate_within_budget(LINE, 6.0, percentile=95))
    rates = (3 * one * (1 + 1e-12), 3 * one * (1 + 1e-6))
    assert [fleet(LINE, changed(rate_req_per_s=rate)).nodes for rate in rates] == [3, 4]


def test_a_slow_service_takes_more_nodes_than_anybody_has():
    """A request of 300,000 s at ten thousand a second is three billion at a time, one on each node."""
    slow = Service.line(passes=3e7, lone_pass_s=0.01, slope_s=1e-4, room=1.0)
    found = fleet(slow, changed(rate_req_per_s=1e4, budget_s=6e5))
    assert (found.feasible, found.nodes) == (False, None)
    assert found.reason.startswith("more than 1,000,000,000 nodes")


def test_the_edges_of_what_is_feasible():
    """At the floor, one request in memory, the last token of the context, a billion nodes."""
    floor = float(LINE.floor_s())
    at_floor = fleet(LINE, changed(budget_s=floor))
    assert (at_floor.feasible, at_floor.nodes) == (False, None)
    assert "the budget is 3.05" in at_floor.reason
    a_hair_more = fleet(LINE, changed(budget_s=floor * (1 + 1e-15)))
    assert (a_hair_more.feasible, a_hair_more.nodes) == (False, None)
    assert "leaves nothing" in a_hair_more.reason
    for room, feasible in ((1.0, True), (0.99, False)):
        narrow = Service.line(passes=300, lone_pass_s=0.01, slope_s=1e-4, prompt_s=0.05, room=room)
        found = fleet(narrow, changed(rate_req_per_s=0.01, budget_s=60.0))
        assert (found.feasible, found.latency_floor_s) == (feasible, pytest.approx(floor) if feasible else None)
        assert (found.saturated_usd_per_mtok is None) == (not feasible)
        many = fleet(narrow, changed(rate_req_per_s=1e12, budget_s=60.0))
        assert (many.feasible, many.nodes) == (False, None)
        assert many.reason.startswith("more than 1,000,000,000" if feasible else "memory holds 0.99")
    assert [fleet(LINE, RECORD, context_limit_tokens=limit).feasible for limit in (1800, 1799)] == [True, False]
    with pytest.raises(InputError, match=r"spares: got 1000000001\.0"):
        fleet(LINE, RECORD, spares=10**9 + 1)
    assert fleet(LINE, RECORD, spares=10**9).nodes > 10**9


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
        ({"shape": (1.0, 1.00001)}, "shape: got 1.000005"),
        ({"overhead_s": -1.0}, "overhead_s: got -1.0"),
        ({"cv": -1.0}, "cv: got -1.0"),
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


def test_of_equal_counts_the_larger_rate_is_best_and_of_infeasible_ones_the_lowest_floor():
    """Passes of 5 and 10 ms, one node each for few requests; and a shape that holds no request has no floor."""
    quick, slow, none = (
        Service.line(passes=300, lone_pass_s=t, slope_s=1e-4, room=room)
        for t, room in ((0.005, 256), (0.01, 256), (0.01, 0.5))
    )
    few, soon = changed(rate_req_per_s=0.1), changed(budget_s=0.1)
    assert capacity.best({1: fleet(slow, few), 2: fleet(quick, few)}) == 2
    assert capacity.best({1: fleet(quick, few), 2: fleet(slow, few)}) == 1
    assert capacity.best({2: fleet(slow, few), 1: fleet(slow, few)}) == 1
    assert capacity.best({1: fleet(none, soon), 2: fleet(slow, soon), 4: fleet(quick, soon)}) == 4


def test_a_shape_serves_with_its_slots_and_the_chunks_that_are_asked_for():
    """Four slots are room for four; a prompt of 1,500 in chunks of 100 takes 15 passes, each of which reads weights."""
    from dataclasses import replace

    of = replace(shape(), slots=4.0)
    assert of.service(AR, RECORD).room == 4
    whole, pieces = (of.service(AR, RECORD, chunk_tokens=tokens) for tokens in (2048, 100))
    assert pieces.passes - whole.passes == pytest.approx(14, abs=1)


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


def test_a_shape_is_counted_with_all_its_terms():
    """What `fleets` finds for a shape is the fleet of its service on the same terms, spares and context included."""
    of = shape("llama-3.1-8b", gpus=2)
    terms = {"price_usd_per_node_hour": 40.0, "spares": 1}
    alone = fleet(of.service(AR, RECORD), RECORD, copies=4, context_limit_tokens=131_072, **terms)
    assert fleets([of], AR, RECORD, **terms) == {2: alone}
    assert fleets([of], AR, RECORD)[2].nodes == alone.nodes - 1
    assert fleets([of], AR, RECORD)[2].cost_usd_per_mtok == 0
    long = changed(input_tokens=130_773.0, budget_s=1e4)
    assert "exceed the model's context" in fleets([shape()], AR, long)[8].reason
    assert fleets([shape()], AR, changed(input_tokens=130_772.0, budget_s=1e4))[8].feasible


def test_a_split_that_the_heads_do_not_allow_is_left_out_and_refused_where_there_is_no_other():
    """64 query heads do not divide by three."""
    thirds = shape(gpus=3)
    assert set(fleets([thirds, shape()], AR, RECORD)) == {8}
    with pytest.raises(InputError, match=r"tensor_parallel: got 3\.0"):
        fleets([thirds], AR, RECORD)
    with pytest.raises(InputError, match="shapes: got nothing"):
        fleets([], AR, RECORD)


def test_offers_that_hold_no_replica_or_miss_the_budget_are_passed_over():
    """70B on eight GPUs only; and 8B, whose answer on one GPU takes longer than on eight."""
    two = [Offer("one", 1, 4.0), Offer("eight", 8, 32.0)]
    assert capacity.cheapest_offer(two, [shape()], AR, RECORD)[0].name == "eight"
    shapes = [shape("llama-3.1-8b", gpus=g) for g in (1, 8)]
    alone = [fleets([s], AR, RECORD)[g].latency_floor_s for s, g in zip(shapes, (1, 8), strict=True)]
    between = changed(rate_req_per_s=0.5, budget_s=sum(alone) / 2)
    offer, gpus, _ = capacity.cheapest_offer(two, shapes, AR, between)
    assert (offer.name, gpus) == ("eight", 8)


def test_an_offer_holds_whole_replicas_at_its_own_price():
    """Six GPUs hold one replica of four; ten hold two. Of equal bills the first counts."""
    fours = [shape("llama-3.1-8b", gpus=4)]
    busy = changed(rate_req_per_s=300.0)
    for gpus, copies in ((6, 1), (10, 2)):
        _, _, found = capacity.cheapest_offer([Offer("this", gpus, 20.0)], fours, AR, busy, spares=1)
        alone = fleet(fours[0].service(AR, busy), busy, copies=copies, price_usd_per_node_hour=20.0, spares=1)
        assert found.nodes == alone.nodes > 2
        assert found.cost_usd_per_mtok == pytest.approx(alone.cost_usd_per_mtok)
    same = [Offer("first", 4, 20.0), Offer("second", 4, 20.0)]
    assert capacity.cheapest_offer(same, fours, AR, busy)[0].name == "first"


def test_loads_of_a_day_share_the_rate_among_the_nodes_of_the_hour():
    """The same rate on more nodes is a smaller load, in inverse proportion; one node is on in the emptiest hour."""
    of = shape("llama-3.1-8b", gpus=1)
    work = changed(rate_req_per_s=100.0, shape=(0.001, 1.999))
    hours = capacity.day(of.service(AR, work), work, copies=8)
    fixed = fleet(of.service(AR, work), work, copies=8)
    assert hours["fixed_nodes"].tolist() == [fixed.nodes] * 2
    assert hours["elastic_nodes"].tolist() == [1, fixed.nodes]
    assert hours["hour"].tolist() == [0, 1]
    assert hours["fixed_load"].iloc[1] == pytest.approx(fixed.load)
    assert hours["fixed_load"].to_numpy() == pytest.approx(
        (hours["elastic_load"] * hours["elastic_nodes"] / hours["fixed_nodes"]).to_numpy()
    )
    assert hours["rate_req_per_s"].tolist() == pytest.approx([0.1, 199.9])
    alone = capacity.day(of.service(AR, work), work)
    assert alone["fixed_nodes"].iloc[1] == fleet(of.service(AR, work), work).nodes > fixed.nodes


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


def test_a_night_fills_replicas_to_their_slots_and_passes_over_what_fits_nowhere():
    """With slots for one request a document takes its time alone; a prompt of three million fits nowhere."""
    from dataclasses import replace

    single = [replace(shape(), slots=1.0)]
    frame = capacity.sweep_night(
        {"70B": single}, AR, input_tokens=[3e6, 8000], output_tokens=300.0, window_hours=8, documents=1e5
    )
    alone = float(shape().service(AR, changed(input_tokens=8000.0)).floor_s())
    assert frame["input_tokens"].tolist() == [8000]
    assert frame[["gpus", "batch"]].to_numpy().tolist() == [[8, 1]]
    assert frame["node_req_per_s"].item() == pytest.approx(1 / alone)
    assert frame["node_req_per_s"].item() < 1
    assert frame["nodes"].item() == np.ceil(1e5 * alone / 28_800)


def test_two_requests_a_document_take_twice_the_nodes():
    assert capacity.nodes_for_documents(72_000, window_hours=8.0, node_req_per_s=2.5, requests_per_document=2) == 2


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
