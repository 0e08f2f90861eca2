"""Nodes by replaying requests: the same identity, near the formula where that one is trusted, and its own floor."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.inputs import InputError
from analysis.model import capacity, replayed
from analysis.model.simulation import Requests, Traffic
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


def test_infeasible_is_an_answer():
    answer = replayed.fleet_by_simulation(SHAPE, AR, replace(RECORD, budget_s=1.0), **SHORT)
    assert (answer.feasible, answer.nodes, answer.shares, answer.cost_usd_per_mtok) == (False, None, None, None)
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
