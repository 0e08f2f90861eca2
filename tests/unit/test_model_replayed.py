"""Nodes by replaying requests: the same identity, near the formula where that one is trusted, and its own floor."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.inputs import InputError
from analysis.model import capacity, replayed, simulation
from analysis.model.simulation import Requests, Server, Traffic
from analysis.reference.efficiency import efficiency, memory_rule, slots
from analysis.reference.model_config import replica
from analysis.reference.specs import Decoder, Workload
from analysis.reference.tables import SNAPSHOT

AR = Decoder.autoregressive()
ONE = replica("llama-3.1-70b", "h100-sxm", as_of=SNAPSHOT, gpus=8)
SHAPE = capacity.Shape(ONE, 1, efficiency(ONE, "vllm"), memory_rule("vllm"), slots("vllm"))
RECORD = Workload(rate_req_per_s=4.0, input_tokens=1500.0, output_tokens=300.0, budget_s=6.0)
SHORT = {"requests": 1500, "runs": 2}


@pytest.fixture(scope="module")
def found():
    return replayed.fleet_by_simulation(SHAPE, AR, RECORD, price_usd_per_node_hour=55.04, **SHORT)


def test_the_four_shares_and_the_saturated_cost_give_the_cost(found):
    assert found.cost_usd_per_mtok == pytest.approx(found.saturated_usd_per_mtok / found.shares.utilization, rel=1e-12)
    assert found.shares.day == 1


def test_it_is_near_the_formula_where_the_formula_is_trusted(found):
    formula = capacity.fleet(SHAPE.service(AR, RECORD), RECORD, price_usd_per_node_hour=55.04)
    assert formula.extrapolated is False
    assert abs(found.nodes - formula.nodes) <= 1
    assert found.latency_floor_s == pytest.approx(formula.latency_floor_s, rel=0.01)
    assert found.node_saturated_req_per_s == pytest.approx(formula.node_saturated_req_per_s, rel=0.1)
    if found.nodes == formula.nodes:
        assert found.percentiles_s[50.0] == pytest.approx(formula.percentiles_s[50.0], rel=0.05)
        assert found.percentiles_s[95.0] == pytest.approx(formula.percentiles_s[95.0], rel=0.1)


def test_spares_are_bought_and_serve(found):
    more = replayed.fleet_by_simulation(SHAPE, AR, RECORD, price_usd_per_node_hour=55.04, spares=1, **SHORT)
    assert more.nodes == found.nodes + 1
    assert more.percentiles_s[95.0] <= found.percentiles_s[95.0]
    assert more.cost_usd_per_mtok > found.cost_usd_per_mtok


@pytest.mark.parametrize(
    ("metric", "budget", "spares"), [("e2e", 3.5, 1), ("e2e", 6.5, 0), ("ttft", 1.2, 1), ("tpot", 0.015, 1)]
)
def test_every_figure_is_that_of_the_simulated_fleet(metric, budget, spares):
    """8B on eight H100, four replicas of two: half a second outside, a third of the prompt cached, bursts.

    The spares serve too: the fleet is that of all nodes, its largest rate found anew.
    """
    one = replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT, gpus=2)
    of = capacity.Shape(one, 4, efficiency(one, "vllm"), memory_rule("vllm"), 64)
    work = Workload(
        150.0, 1500.0, 300.0, budget, cached_tokens=500.0, percentile=90.0, metric=metric, overhead_s=0.5, cv=2.0
    )
    found = replayed.fleet_by_simulation(of, AR, work, price_usd_per_node_hour=30.0, spares=spares, seed=3, **SHORT)
    server = Server(one, AR, efficiency(one, "vllm"), slots=64, rule=memory_rule("vllm"))
    traffic = Traffic(1500, 300, 500, arrival_cv=2.0)
    asked = {"percentile": 90.0, "metric": metric, "seed": 3, **SHORT}
    load = {"rate_req_per_s": 150.0, "budget_s": budget, "overhead_s": 0.5, **asked}
    least = simulation.capacity_by_simulation(server, traffic, replicas_per_node=4, **load)
    assert found.nodes == least.nodes + spares
    assert (found.nodes_low, found.nodes_high) == (least.nodes_low + spares, least.nodes_high + spares)
    assert (found.feasible, found.reason, found.spares, found.extrapolated) == (True, None, spares, False)
    assert found.latency_floor_s == least.latency_floor_s
    assert found.latency_floor_s == pytest.approx(
        replayed.floor_s(of, AR, work, seed=3, requests=SHORT["requests"]), rel=1e-12
    )
    assert found.node_saturated_req_per_s == least.saturated_req_per_s
    assert found.room == float(of.service(AR, work).room) == 64
    all_of_them, largest = least, least.largest_req_per_s
    if spares:
        all_of_them = simulation.capacity_by_simulation(server, traffic, replicas_per_node=4 * found.nodes, **load)
        outside = 0.0 if metric == "tpot" else 0.5
        largest = simulation.largest_rate_req_per_s(
            server, traffic, replicas=4 * found.nodes, budget_s=budget - outside, **asked
        )
    saturated = found.nodes * least.saturated_req_per_s
    assert found.node_req_per_s == pytest.approx(largest / found.nodes)
    assert found.load == pytest.approx(150 / saturated)
    assert found.shares.integer == pytest.approx(150 / largest)
    assert found.shares.latency == pytest.approx(largest / saturated)
    assert (found.busy, found.time_s) == (all_of_them.busy.value, all_of_them.time_s.value)
    assert found.shares.goodput == all_of_them.goodput.value
    assert list(found.percentiles_s) == [50.0, 95.0, 99.0]
    assert [found.percentiles_s[q] for q in (50.0, 95.0, 99.0)] == [
        each.value for each in (all_of_them.latency_p50_s, all_of_them.latency_p95_s, all_of_them.latency_p99_s)
    ]
    useful_tok_per_s = 150 * 300 * found.shares.goodput
    assert found.cost_usd_per_mtok == pytest.approx(1e6 * 30 * found.nodes / 3600 / useful_tok_per_s)
    assert found.saturated_usd_per_mtok == pytest.approx(1e6 * 30 / 3600 / (least.saturated_req_per_s * 300))


def test_time_outside_counts_for_the_floor_of_an_answer_and_not_between_tokens():
    bare, late = (
        [replayed.floor_s(SHAPE, AR, replace(RECORD, metric=m, overhead_s=o), requests=200) for m in ("e2e", "tpot")]
        for o in (0.0, 0.7)
    )
    assert late == pytest.approx([bare[0] + 0.7, bare[1]])


def test_a_high_percentile_takes_as_many_requests_as_let_ten_lie_beyond(monkeypatch):
    """99 % of nine tenths of the requests: 1,000 / 0.9 and two; what is asked for stays where it is more."""
    counts = []

    def served(*_, requests, **more):
        counts.append((requests, more["runs"]))
        return simulation.Capacity(1.0, 2.0, 4.0)

    monkeypatch.setattr(simulation, "capacity_by_simulation", served)
    for percentile, asked in ((99.0, 50), (99.0, 5000), (99.9999, 50)):
        replayed.fleet_by_simulation(SHAPE, AR, replace(RECORD, percentile=percentile), requests=asked)
    assert counts == [(1114, 5), (5000, 5), (300_000, 5)]
    trace = Traffic(trace=Requests(np.arange(50) * 0.5, 1500, 300))
    replayed.fleet_by_simulation(SHAPE, AR, replace(RECORD, percentile=99.0), traffic=trace, requests=50)
    assert counts[-1] == (50, 5)


def test_more_spares_than_a_simulation_serves_are_refused():
    with pytest.raises(InputError, match="spares: got 4097, expected at most 4,096"):
        replayed.fleet_by_simulation(SHAPE, AR, RECORD, spares=4097, **SHORT)
    # the last number that is allowed gets to the next question
    with pytest.raises(InputError, match="price_usd_per_node_hour: got -1"):
        replayed.fleet_by_simulation(SHAPE, AR, RECORD, spares=4096, price_usd_per_node_hour=-1.0, **SHORT)


def test_infeasible_is_an_answer():
    answer = replayed.fleet_by_simulation(SHAPE, AR, replace(RECORD, budget_s=1.0), **SHORT)
    assert (answer.feasible, answer.nodes, answer.shares, answer.cost_usd_per_mtok) == (False, None, None, None)
    assert answer.reason == f"a request alone takes {answer.latency_floor_s:.3g} s, the budget is 1 s"
    assert answer.latency_floor_s == pytest.approx(replayed.floor_s(SHAPE, AR, RECORD, requests=1500), rel=0.01)


def test_a_trace_brings_its_own_lengths():
    """Answers of 50 and 600 tokens in turn: the 95th percentile alone is that of the long ones."""
    arrival = np.arange(1500) * 0.5
    trace = Traffic(trace=Requests(arrival, 1500, np.where(np.arange(1500) % 2, 600, 50)))
    floors = [
        replayed.floor_s(SHAPE, AR, replace(RECORD, percentile=q), traffic=trace, requests=1500) for q in (30.0, 95.0)
    ]
    assert floors[1] > 8 * floors[0]


def test_a_day_of_rates_is_no_steady_rate():
    with pytest.raises(InputError, match="shape: got 2, expected one rate"):
        replayed.fleet_by_simulation(SHAPE, AR, replace(RECORD, shape=(0.5, 1.5)), **SHORT)
