"""Nodes under a budget, by simulation: what may not be, what must grow, and exact ends."""

from __future__ import annotations

from itertools import pairwise

import pytest

from analysis.inputs import InputError
from analysis.model import decoders
from analysis.model.simulation import Server, Traffic, capacity_by_simulation, largest_rate_req_per_s, serve_runs
from analysis.model.simulation.capacity import alone_s, saturated_req_per_s
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import shipped
from analysis.reference.specs import Decoder, Precision, Replica
from analysis.reference.tables import SNAPSHOT, accelerator

H100 = accelerator("h100-sxm", as_of=SNAPSHOT)
REPLICA = Replica(shipped("llama-3.1-8b").architecture, Precision.of("fp8"), H100)
SMALL = Server(REPLICA, efficiency=efficiency(REPLICA), slots=256)
TRAFFIC = Traffic(1500, 200)
ASK = {"percentile": 95, "requests": 3000, "runs": 3}


def test_a_floor_above_the_budget_is_infeasible() -> None:
    floor = alone_s(SMALL, TRAFFIC, percentile=95, count=1000)
    found = capacity_by_simulation(SMALL, TRAFFIC, rate_req_per_s=5.0, budget_s=floor * 0.99, **ASK)
    assert not found.feasible
    assert found.latency_floor_s == pytest.approx(floor, rel=1e-6)
    assert (found.nodes, found.load, found.goodput) == (None, None, None)
    found = capacity_by_simulation(SMALL, TRAFFIC, rate_req_per_s=5.0, budget_s=floor + 0.4, overhead_s=0.5, **ASK)
    assert not found.feasible
    assert largest_rate_req_per_s(SMALL, TRAFFIC, replicas=9, budget_s=floor * 0.99, **ASK) == 0.0


def test_the_found_fleet_keeps_the_budget_and_one_node_fewer_does_not() -> None:
    found = capacity_by_simulation(SMALL, TRAFFIC, rate_req_per_s=60.0, budget_s=1.5, seed=3, **ASK)
    assert found.nodes is not None
    times = [
        serve_runs(SMALL, TRAFFIC, rate_req_per_s=60.0, count=3000, runs=3, replicas=n, seed=3).percentile_s(95).value
        for n in (found.nodes - 1, found.nodes)
    ]
    assert times[1] <= 1.5 < times[0]
    assert found.time_s.value == times[1] == found.latency_p95_s.value
    assert found.nodes_low <= found.nodes <= found.nodes_high
    assert found.largest_req_per_s >= 60.0
    assert 0.95 <= found.goodput.value <= 1
    assert found.load == pytest.approx(60.0 / found.nodes / found.saturated_req_per_s)
    assert found.latency_p99_s.value > found.latency_p95_s.value > found.latency_p50_s.value


def test_a_budget_of_days_is_answered_as_soon_as_one_of_minutes() -> None:
    """Runs grow with the budget up to 300,000 requests; what does not come to rest in them is not enough."""
    nodes = [
        capacity_by_simulation(
            SMALL, TRAFFIC, rate_req_per_s=60.0, budget_s=d, percentile=95, requests=3000, runs=1, largest=False
        ).nodes
        for d in (30.0, 1e6)
    ]
    assert nodes[1] <= nodes[0]
    assert nodes[1] >= 60.0 / saturated_req_per_s(SMALL, TRAFFIC)


def test_nodes_fall_with_the_budget_and_rise_with_rate_and_bursts() -> None:
    def nodes(rate: float = 60.0, budget: float = 1.5, cv: float = 1.0) -> int:
        traffic = Traffic(1500, 200, arrival_cv=cv)
        return capacity_by_simulation(SMALL, traffic, rate_req_per_s=rate, budget_s=budget, **ASK).nodes

    for of in (
        [nodes(budget=d) for d in (4.0, 2.0, 1.5, 1.2)],
        [nodes(rate=r) for r in (10.0, 30.0, 60.0, 120.0)],
        [nodes(cv=cv) for cv in (1.0, 2.0, 4.0)],
    ):
        assert of == sorted(of)
        assert of[0] < of[-1]


def test_nodes_of_several_replicas_count_them_all() -> None:
    one = capacity_by_simulation(SMALL, TRAFFIC, rate_req_per_s=60.0, budget_s=1.5, **ASK)
    eight = capacity_by_simulation(SMALL, TRAFFIC, rate_req_per_s=60.0, budget_s=1.5, replicas_per_node=8, **ASK)
    assert eight.nodes == -(-one.nodes // 8)
    assert eight.saturated_req_per_s == pytest.approx(8 * one.saturated_req_per_s)


def test_a_larger_fleet_is_worth_more_per_node() -> None:
    """Shortest-queue routing pools: the rate per replica within the budget does not fall with their number."""
    each = [
        largest_rate_req_per_s(SMALL, TRAFFIC, replicas=n, budget_s=1.5, percentile=95, requests=8000) / n
        for n in (1, 2, 4, 8)
    ]
    # the search stops within 1 %
    for fewer, more in pairwise(each):
        assert more >= 0.98 * fewer
    assert each[-1] > 1.1 * each[0]


def test_a_generous_budget_sells_all_that_there_is() -> None:
    saturated = saturated_req_per_s(SMALL, TRAFFIC)
    rate = largest_rate_req_per_s(SMALL, TRAFFIC, replicas=1, budget_s=60.0, percentile=95, requests=3000)
    assert 0.9 * saturated < rate <= saturated


@pytest.mark.parametrize(
    "decoder",
    [
        Decoder.autoregressive(),
        Decoder.diffusion(block_tokens=32, passes=8),
        Decoder.speculative(acceptance=0.7, draft_length=3, draft_cost=0.05),
    ],
    ids=lambda d: d.kind,
)
def test_the_saturated_rate_is_that_of_the_model(decoder: Decoder) -> None:
    """Constant lengths: n requests in P t(n) + n p. Answers whose ends are spread keep the slots a little less full."""
    server = Server(REPLICA, decoder=decoder, efficiency=SMALL.efficiency, slots=64)
    modelled = decoders.saturated_req_per_s(
        REPLICA, decoder, input_tokens=1500, output_tokens=320, slots=64, efficiency=SMALL.efficiency
    )
    assert saturated_req_per_s(server, Traffic(1500, 320)) == pytest.approx(modelled, rel=0.06)


def test_budgets_of_first_and_further_tokens() -> None:
    first = capacity_by_simulation(SMALL, TRAFFIC, rate_req_per_s=30.0, budget_s=0.3, metric="ttft", **ASK)
    further = capacity_by_simulation(SMALL, TRAFFIC, rate_req_per_s=30.0, budget_s=0.02, metric="tpot", **ASK)
    assert first.time_s.value <= 0.3
    assert further.time_s.value <= 0.02
    # a further token waits for nothing outside
    late = capacity_by_simulation(
        SMALL, TRAFFIC, rate_req_per_s=30.0, budget_s=0.02, metric="tpot", overhead_s=1.0, **ASK
    )
    assert late.nodes == further.nodes
    assert late.latency_p50_s.value == pytest.approx(further.latency_p50_s.value + 1.0)


@pytest.mark.parametrize(("metric", "budget"), [("ttft", 0.15), ("tpot", 0.012)])
def test_budgets_of_tokens_let_the_run_come_to_rest(metric: str, budget: float) -> None:
    """Eight times the requests take at most eight times the nodes: one routing over more replicas loses nothing.

    Thirty times a token's budget pass before one answer is written, and 3,000 requests at this rate are over in
    eight seconds: such a run says nothing about the fleet.
    """
    nodes = [
        capacity_by_simulation(
            SMALL,
            TRAFFIC,
            rate_req_per_s=rate,
            budget_s=budget,
            metric=metric,
            percentile=90,
            requests=3000,
            runs=1,
            largest=False,
        ).nodes
        for rate in (45.0, 360.0)
    ]
    assert nodes[1] <= 8 * nodes[0]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rate_req_per_s": 0.0}, "rate_req_per_s: got 0"),
        ({"budget_s": -1.0}, "budget_s: got -1"),
        ({"percentile": 100.0}, "percentile: got 100"),
        ({"percentile": 99.9}, "requests: got 2700, expected at least 10000"),
        ({"metric": "itl"}, "metric: got 'itl'"),
        ({"rate_req_per_s": 1e6, "budget_s": 1e4}, "rate_req_per_s: got 1000000.0, expected at most"),
        ({"most_nodes": 2, "rate_req_per_s": 500.0}, "got a fleet beyond 2 nodes"),
        ({"replicas_per_node": 0.5}, "replicas_per_node: got 0.5"),
    ],
)
def test_what_cannot_be_asked_is_refused(change: dict[str, object], named: str) -> None:
    ask = {"rate_req_per_s": 5.0, "budget_s": 2.0, **ASK, **change}
    with pytest.raises(InputError) as refusal:
        capacity_by_simulation(SMALL, TRAFFIC, **ask)
    assert named in str(refusal.value)
