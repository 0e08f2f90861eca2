"""Mixtures of experts against measurements: numbers by hand from the rows."""

import pytest

from analysis.evidence import sparse
from analysis.evidence.speculation import costs_of_a_cycle


def test_neighbours_read_what_they_do_not_share():
    """The source says 1.74: two positions of four experts with 25.7 % in common."""
    found = sparse.neighbours()
    assert found["read"] == pytest.approx(2 - 0.257, abs=1e-9)
    assert found["read_evenly"] == pytest.approx(2 - 4 / 64)
    assert 0 < found["skew"] < 1


def test_the_pool_of_a_block_is_capped_below_even_routing():
    found = sparse.pool_cap()
    assert found["cap"] == 48
    assert found["evenly"] == pytest.approx(256 * (1 - (31 / 32) ** 32))


def test_skewed_routing_explains_a_part_of_the_gap_and_leaves_dense_models_alone():
    found, plain = sparse.costs_by_skew(), costs_of_a_cycle()
    assert found["evenly"].tolist() == plain["predicted"].tolist()
    of = found.groupby("kind")
    assert (of.get_group("dense")["skewed"] - of.get_group("dense")["evenly"]).abs().max() < 1e-9
    errors = of.get_group("sparse")[["error_evenly", "error_skewed"]].abs().median()
    assert errors["error_skewed"] < errors["error_evenly"]


def test_regimes_stand_side_by_side():
    found = sparse.regimes().set_index("work")
    assert list(found.index) == ["one stream", "batches", "maximum load"]
    assert (found[["dense_error", "sparse_error"]] < 0.25).all(axis=None)
