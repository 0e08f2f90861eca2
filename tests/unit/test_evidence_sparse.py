"""Mixtures of experts against measurements: numbers by hand from the rows."""

from dataclasses import replace

import pytest

from analysis.evidence import sparse
from analysis.evidence.speculation import costs_of_a_cycle, drafting_share
from analysis.evidence.validation import comparison
from analysis.model import decoding
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import replica
from analysis.reference.tables import NEWEST, sources


def test_neighbours_read_what_they_do_not_share():
    """The source says 1.74: two positions of four experts with 25.7 % in common."""
    found = sparse.neighbours()
    assert found["read"] == pytest.approx(2 - 0.257, abs=1e-9)
    assert found["read_evenly"] == pytest.approx(2 - 4 / 64)
    # skew as a share z of positions that take the favourites: shared = q + z^2 (1 - q)
    assert found["skew"] == pytest.approx(((0.257 - 4 / 64) / (1 - 4 / 64)) ** 0.5)
    assert found[["model", "experts", "top_k", "shared"]].tolist() == ["glm-4.7-flash", 64, 4, 0.257]
    assert found["by_chance"] == 4 / 64
    assert found["source"] in sources().index


def test_the_pool_of_a_block_is_capped_below_even_routing():
    found = sparse.pool_cap()
    assert found["cap"] == 48
    assert found["evenly"] == pytest.approx(256 * (1 - (31 / 32) ** 32))
    assert found[["model", "experts", "top_k", "positions"]].tolist() == ["llada2.2-flash", 256, 8, 32]
    assert found["source"] in sources().index


def test_skewed_routing_explains_a_part_of_the_gap_and_leaves_dense_models_alone():
    found, plain = sparse.costs_by_skew(), costs_of_a_cycle()
    assert found["evenly"].tolist() == plain["predicted"].tolist()
    of = found.groupby("kind")
    assert (of.get_group("dense")["skewed"] - of.get_group("dense")["evenly"]).abs().max() < 1e-9
    errors = of.get_group("sparse")[["error_evenly", "error_skewed"]].abs().median()
    assert errors["error_skewed"] < errors["error_evenly"]


def test_a_skewed_cycle_is_a_checking_pass_with_skewed_experts_and_the_same_drafts():
    found, plain = sparse.costs_by_skew().set_index("model"), costs_of_a_cycle().set_index("model")
    one = replica("qwen3-30b-a3b", "h200-sxm", as_of=NEWEST, gpus=1)
    of = {"batch": 8, "context_tokens": 500, "efficiency": efficiency(one, "sglang")}
    routed = replace(one, expert_skew=float(sparse.neighbours()["skew"]))
    checked = decoding.pass_time(routed, **of, positions=4).pass_s / decoding.pass_time(routed, **of).pass_s
    row = found.loc["qwen3-30b-a3b"]
    assert row["skewed"] == pytest.approx(checked + drafting_share())
    assert found["error_skewed"].tolist() == pytest.approx(found["skewed"] / found["measured"] - 1)
    assert found["error_evenly"].tolist() == plain["error"].tolist()


def test_regimes_stand_side_by_side():
    found = sparse.regimes().set_index("work")
    assert list(found.index) == ["one stream", "batches", "maximum load"]
    assert (found[["dense_error", "sparse_error"]] < 0.25).all(axis=None)
    scores = comparison()
    for words, work in [("one stream", "single_stream"), ("batches", "batching"), ("maximum load", "max_load")]:
        dense, moe = (scores.loc[f"{work}_{kind}", ["scored", "calibrated"]].tolist() for kind in ("dense", "moe"))
        assert found.loc[words].tolist() == [*dense, *moe]
