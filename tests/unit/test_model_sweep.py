"""Sweeps: a piece is the closed form, pieces fit together, and a cluster returns the same."""

from __future__ import annotations

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

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
    whole, parts = (cheapest(candidates(SHAPES, DECODERS), GRID, piece_size=size) for size in (10**6, 50))
    assert whole.equals(parts)
    assert set(whole["candidate"]) > {"infeasible", "8b tp1, blocks"}
    assert (whole["nodes"] > 0).equals(whole["candidate"] != "infeasible")
    assert np.isinf(whole["usd_per_mtok"]).equals(whole["candidate"] == "infeasible")


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
    """300,000 scenarios hold 7 MB of answers; a sweep that summarises holds one piece of 20,000 at a time."""
    grid = Grid(WORK, np.geomspace(3, 10, 60), np.geomspace(0.5, 500, 5000))
    way = Candidate("blocks", SHAPES[1][1], DECODERS[2][1], 33.0)
    tracemalloc.start()
    try:
        total = sum(sweep.sweep([way], grid, summarise=feasible_count, piece_size=20_000))
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
