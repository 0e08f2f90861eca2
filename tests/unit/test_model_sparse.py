"""What a mixture of experts saves: against counts by hand and against dense models."""

import numpy as np
import pytest

from analysis.inputs import InputError
from analysis.model import sparse
from analysis.model.decoding import pass_time
from analysis.reference.model_config import replica
from analysis.reference.specs import Efficiency
from analysis.reference.tables import SNAPSHOT

DENSE = replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT)
SPARSE = replica("qwen3-30b-a3b", "h100-sxm", as_of=SNAPSHOT)
BOTH = {"dense": DENSE, "sparse": SPARSE}


def test_sizes_are_in_billions_and_in_billions_of_bytes():
    """8,030,261,248 parameters of two bytes; a pass leaves out the embedding, 128,256 rows of 4,096, a look-up."""
    found = sparse.sizes(BOTH).set_index("name").loc["dense"]
    assert (found["total_b"], found["active_b"]) == (8.030261248, 8.030261248)
    assert found["weights_gb"] == pytest.approx(2 * 8.030261248, rel=1e-12)
    assert found["read_gb"] == pytest.approx(2 * (8.030261248 - 128_256 * 4096 / 1e9), rel=1e-12)


def test_one_position_reads_what_it_uses():
    """Two bytes for each active parameter but the embedding, 151,936 rows of 2,048."""
    found = sparse.sizes(BOTH).set_index("name").loc["sparse"]
    assert found["read_gb"] == pytest.approx(2 * (found["active_b"] - 151_936 * 2048 / 1e9), rel=1e-9)


def test_the_ridge_of_a_sparse_model_lies_higher_by_what_it_reads_over_what_it_uses():
    found = sparse.sizes(BOTH).set_index("name")
    assert found.loc["dense", "active_share"] == 1
    ratio = found.loc["sparse", "ridge_positions"] / found.loc["dense", "ridge_positions"]
    assert ratio == pytest.approx(found.loc["sparse", "total_b"] / found.loc["sparse", "active_b"], rel=0.15)


def test_a_prompt_must_be_longer_on_a_sparse_model():
    found = sparse.sizes(BOTH).set_index("name")["prompt_tokens"]
    assert found["sparse"] > 3 * found["dense"]


def test_a_dense_model_reads_the_same_whatever_the_positions():
    read = sparse.sweep_read(BOTH, positions=[1, 8, 64]).pivot(index="positions", columns="name", values="read_share")
    assert np.ptp(read["dense"]) == 0
    assert read["sparse"].is_monotonic_increasing
    assert read["sparse"].iloc[0] < 0.15


def test_saving_is_the_number_of_positions_for_a_dense_model_and_less_for_a_sparse_one():
    found = sparse.sweep_read(BOTH, positions=[1, 16]).set_index(["name", "positions"])["saving"]
    assert found["dense", 16] == pytest.approx(16)
    assert 1 < found["sparse", 16] < 5


def test_one_position_saves_nothing_and_texts_of_favourites_save_like_a_dense_model():
    """Batch 1 is the measure itself; at full skew all positions of a text use the experts of its first."""
    found = sparse.sweep_read({"a": SPARSE}, positions=[1, 16], skews=[0, 1]).set_index(["skew", "positions"])
    assert found.loc[(0, 1), "saving"] == pytest.approx(1)
    assert found.loc[(1, 16), "saving"] == pytest.approx(16)


def test_rows_of_all_models_are_numbered_through():
    assert sparse.sweep_read(BOTH, positions=[1, 8], skews=[0, 1]).index.tolist() == list(range(8))
    assert sparse.sweep_width(BOTH, widths=[2, 4], batch=[1, 8], context_tokens=0).index.tolist() == list(range(8))


def test_skew_lowers_what_is_read():
    even, skewed = sparse.sweep_read({"a": SPARSE}, positions=[32], skews=[0, 0.5])["read_share"]
    assert skewed < even


def test_the_ratio_of_widths_is_that_of_two_passes():
    found = sparse.sweep_width(BOTH, widths=[4], batch=[1, 64], context_tokens=500).set_index(["name", "batch"])
    by_hand = (
        pass_time(SPARSE, batch=64, context_tokens=500, positions=4).pass_s
        / pass_time(SPARSE, batch=64, context_tokens=500).pass_s
    )
    assert found.loc[("sparse", 64), "ratio"] == pytest.approx(by_hand)
    assert found.loc[("dense", 1), "ratio"] == pytest.approx(1, abs=0.01)
    assert found.loc[("sparse", 1), "ratio"] > 2


def test_extra_positions_cost_a_sparse_model_most_in_small_batches():
    """A hump: one stream loads new experts with each position, a full batch has loaded them anyway."""
    found = sparse.sweep_width({"a": SPARSE}, widths=[4], batch=[1, 64], context_tokens=500)["ratio"]
    assert found.iloc[0] > found.iloc[1]


def test_positions_are_free_where_they_read_nothing_new_or_where_a_fixed_time_decides():
    """At full skew a text's positions share their experts; beside a second a layer, reading takes no time."""
    asked = {"widths": [4], "batch": [1], "context_tokens": 500}
    assert sparse.sweep_width({"a": SPARSE}, **asked, expert_skew=1.0)["ratio"].item() == pytest.approx(1, abs=0.02)
    slow = {"a": Efficiency(layer_s=1.0)}
    assert sparse.sweep_width({"a": SPARSE}, **asked, efficiencies=slow)["ratio"].item() == pytest.approx(1, abs=1e-3)


def test_an_efficiency_must_be_named_for_each():
    with pytest.raises(InputError, match="efficiencies: got 'dense'"):
        sparse.sweep_width(BOTH, widths=[4], batch=[1], context_tokens=1, efficiencies={})
