"""Sweeps: a piece is the closed form, pieces fit together, and a cluster returns the same."""

from __future__ import annotations

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from analysis.inputs import InputError
from analysis.model import capacity, sweep
from analysis.model.capacity import Shape
from analysis.model.sweep import Candidate, Grid, candidates, cheapest, feasible_count
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import shipped
from analysis.reference.specs import Decoder, Precision, Replica, Workload
from analysis.reference.tables import SNAPSHOT, accelerator

H100 = accelerator("h100-sxm", as_of=SNAPSHOT)
WORK = Workload(1.0, 1500.0, 300.0, 1.0, overhead_s=0.2)
DECODERS = [
    ("ar", Decoder.autoregressive()),
    ("drafts", Decoder.speculative(acceptance=0.7, draft_length=3, draft_cost=0.05)),
    ("blocks", Decoder.diffusion(block_tokens=32, passes=8)),
]


def shape(model: str, gpus: int) -> Shape:
    replica = Replica(shipped(model).architecture, Precision.of("fp8"), H100, gpus=gpus)
    return Shape(replica, 8 // gpus, efficiency(replica), slots=256)


SHAPES = [("70b tp8", shape("llama-3.1-70b", 8), 33.0), ("8b tp1", shape("llama-3.1-8b", 1), 33.0)]
GRID = Grid(WORK, np.geomspace(0.3, 10, 12), np.geomspace(0.5, 500, 30))


@pytest.mark.parametrize("candidate", list(candidates(SHAPES, DECODERS)), ids=lambda c: c.name)
def test_a_piece_is_the_fleet_of_the_closed_form(candidate: Candidate) -> None:
    found = sweep.piece(candidate, GRID, 4, 12)
    service = candidate.shape.service(candidate.decoder, WORK)
    for i in (0, 3, 7):
        for j in (0, 17, 29):
            work = replace(WORK, budget_s=GRID.budgets_s[4 + i], rate_req_per_s=GRID.rates_req_per_s[j])
            one = capacity.fleet(service, work, copies=candidate.shape.copies, price_usd_per_node_hour=33.0)
            assert found.nodes[i, j] == (one.nodes or 0)
            if one.feasible:
                share = one.shares.goodput
                assert found.usd_per_mtok[i, j] == pytest.approx(one.cost_usd_per_mtok * share, rel=1e-6)


def test_pieces_of_any_size_say_the_same() -> None:
    whole, parts = (cheapest(candidates(SHAPES, DECODERS), GRID, piece_size=size) for size in (10**6, 70))
    assert whole.equals(parts)
    assert set(whole["candidate"]) > {"infeasible", "8b tp1, blocks"}
    assert (whole["nodes"] > 0).equals(whole["candidate"] != "infeasible")
    assert np.isinf(whole["usd_per_mtok"]).equals(whole["candidate"] == "infeasible")


def test_the_cheapest_costs_its_nodes_and_no_other_costs_less() -> None:
    """Nodes at 33 dollars; a million tokens are 1e6 / 300 answers, at the rate's requests an hour."""
    grid = Grid(WORK, [0.5, 2.0, 8.0], [1.0, 300.0])
    found = cheapest(candidates(SHAPES, DECODERS[:2]), grid, piece_size=4)
    pieces = {c.name: sweep.piece(c, grid, 0, 3) for c in candidates(SHAPES, DECODERS[:2])}
    assert list(zip(found["budget_s"], found["rate_req_per_s"], strict=True)) == [
        (budget, rate) for budget in (0.5, 2.0, 8.0) for rate in (1.0, 300.0)
    ]
    for k, row in enumerate(found.itertuples()):
        costs = {name: each.usd_per_hour[k // 2, k % 2] for name, each in pieces.items()}
        assert row.usd_per_hour == min(costs.values())
        if row.nodes:
            assert costs[row.candidate] == row.usd_per_hour == 33 * row.nodes
            assert row.usd_per_mtok == pytest.approx(row.usd_per_hour * 1e6 / 300 / (3600 * row.rate_req_per_s))


def test_time_outside_the_gpu_does_not_lie_between_tokens() -> None:
    """Two seconds outside leave a budget of 50 ms for a token untouched, and of one second for an answer nothing."""
    slow = replace(WORK, overhead_s=2.0)
    candidate = Candidate("8b", SHAPES[1][1], DECODERS[0][1], 33.0)
    between = [sweep.piece(candidate, Grid(replace(w, metric="tpot"), [0.05], [100.0]), 0, 1) for w in (WORK, slow)]
    assert between[0].nodes == between[1].nodes > 0
    assert sweep.piece(candidate, Grid(slow, [1.0, 1e3], [100.0]), 0, 2).nodes.ravel().tolist() == [0, 1]


def test_bursts_take_more_nodes_and_rounding_none() -> None:
    """As the fleet of the same workload: thrice the rate of one node, give or take the last digits, takes three."""
    candidate = Candidate("8b", SHAPES[1][1], DECODERS[0][1], 33.0)
    service = candidate.shape.service(candidate.decoder, WORK)
    calm = Grid(WORK, [2.0], [100.0])
    bursts = Grid(replace(WORK, cv=4.0), [2.0], [100.0])
    fleets = [
        capacity.fleet(service, replace(grid.workload, budget_s=2.0, rate_req_per_s=100.0), copies=8).nodes
        for grid in (calm, bursts)
    ]
    assert [int(sweep.piece(candidate, grid, 0, 1).nodes.item()) for grid in (calm, bursts)] == fleets
    assert fleets[1] > fleets[0]
    of_one = capacity.fleet(service, replace(WORK, budget_s=2.0), copies=8).node_req_per_s
    rates = [3 * of_one * (1 + 1e-12), 3 * of_one * (1 + 1e-6)]
    assert sweep.piece(candidate, Grid(WORK, [2.0], rates), 0, 1).nodes.tolist() == [[3, 4]]


def test_what_fits_nowhere_takes_no_number_of_nodes() -> None:
    """405 GB of weights do not fit on one H100; a context of 131,072 tokens holds 130,772 and 300, no more."""
    small = Candidate("405b tp1", shape("llama-3.1-405b", 1), DECODERS[0][1], 33.0)
    assert feasible_count(sweep.piece(small, Grid(WORK, [1e3], [1.0]), 0, 1)) == 0
    held = {tokens: Grid(replace(WORK, input_tokens=tokens), [1e4], [0.01]) for tokens in (130_772.0, 130_773.0)}
    eight = Candidate("70b tp8", SHAPES[0][1], DECODERS[0][1], 33.0)
    assert [feasible_count(sweep.piece(eight, grid, 0, 1)) for grid in held.values()] == [1, 0]


def test_the_rate_and_the_budget_of_the_workload_are_not_asked_for() -> None:
    assert len(Grid(replace(WORK, rate_req_per_s=0.0, budget_s=0.0), [1.0, 2.0], [1.0, 2.0, 3.0])) == 6


class Counting:
    """A pool that works at once, and counts what was handed in and not yet asked for."""

    def __init__(self) -> None:
        self.handed_in, self.waiting, self.most = 0, 0, 0

    def submit(self, function, *arguments):
        self.handed_in, self.waiting = self.handed_in + 1, self.waiting + 1
        self.most = max(self.most, self.waiting)
        found = function(*arguments)
        return SimpleNamespace(result=lambda: self.back(found))

    def back(self, found):
        self.waiting -= 1
        return found


def test_a_pool_gets_every_piece_and_never_more_than_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve budgets of 30 rates: 12 pieces where a piece is smaller than a budget, 4 where it holds three."""
    monkeypatch.setattr(sweep, "WAITING", 3)
    way = [Candidate("8b", SHAPES[1][1], DECODERS[0][1], 33.0)]
    for size, pieces in ((1, 12), (90, 4)):
        pool = Counting()
        cheapest(way, GRID, pool=pool, piece_size=size)
        assert (pool.handed_in, pool.most, pool.waiting) == (pieces, 3, 0)


def test_a_pool_returns_the_same_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "WAITING", 3)
    here = list(sweep.sweep(candidates(SHAPES, DECODERS), GRID, summarise=feasible_count, piece_size=90))
    with ThreadPoolExecutor(2) as pool:
        there = list(
            sweep.sweep(candidates(SHAPES, DECODERS), GRID, summarise=feasible_count, piece_size=90, pool=pool)
        )
    assert here == there
    assert len(here) == 6 * 4


def test_what_a_piece_needs_can_travel() -> None:
    candidate = next(candidates(SHAPES, DECODERS))
    _ = candidate.shape.replica.architecture.components  # works something out that must stay behind
    there = pickle.loads(pickle.dumps((candidate, GRID)))
    assert np.array_equal(sweep.piece(*there, 0, 12).nodes, sweep.piece(candidate, GRID, 0, 12).nodes)


def test_memory_stays_that_of_a_piece() -> None:
    """300,000 scenarios hold 7 MB of answers; a sweep that summarises holds one piece of 50,000 at a time."""
    grid = Grid(WORK, np.geomspace(3, 10, 6), np.geomspace(0.5, 500, 50_000))
    way = Candidate("blocks", SHAPES[1][1], DECODERS[2][1], 33.0)
    tracemalloc.start()
    try:
        total = sum(sweep.sweep([way], grid, summarise=feasible_count, piece_size=50_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == len(grid)
    assert peak < 4e6


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Grid(WORK, [], [1.0]), "budgets_s: got nothing"),
        (lambda: Grid(WORK, [1.0], [0.0]), "rates_req_per_s: got 0"),
        (lambda: Grid(replace(WORK, percentile=0.0), [1.0], [1.0]), "percentile: got 0"),
        (lambda: list(sweep.sweep([], GRID, summarise=feasible_count, piece_size=0)), "piece_size: got 0"),
    ],
)
def test_what_cannot_be_swept_is_refused(make, named: str) -> None:
    with pytest.raises(InputError) as refusal:
        make()
    assert named in str(refusal.value)


@pytest.mark.soak
@pytest.mark.filterwarnings("default")
def test_a_cluster_returns_the_same_sums() -> None:
    distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    here = list(sweep.sweep(candidates(SHAPES, DECODERS), GRID, summarise=feasible_count, piece_size=90))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = list(
            sweep.sweep(candidates(SHAPES, DECODERS), GRID, summarise=feasible_count, piece_size=90, pool=client)
        )
        table = cheapest(candidates(SHAPES, DECODERS), GRID, pool=client)
    assert here == there
    assert table.equals(cheapest(candidates(SHAPES, DECODERS), GRID))
