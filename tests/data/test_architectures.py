"""The shipped architectures against what others publish about their size."""

from __future__ import annotations

import re

import pytest

from analysis.model.transformer import params_active, params_total
from analysis.reference import model_config, tables

ROWS = tables.all_rows("architectures")
PUBLISHED = list(ROWS.itertuples())

#: What a released file holds beside the parameters of the language model.
SURPLUS = {
    "stored_tied_twice": lambda a: a.head_params,
    "stored_with_scales": lambda a: a.components["experts"] // 32,
    "without_indexer": lambda a: (
        -sum(
            group.count * (_indexer_weights(group.attention, a.hidden) + 2 * group.attention.indexer.head_dim)
            for group in a.layers
            if group.attention is not None and group.attention.indexer is not None
        )
    ),
}


def _indexer_weights(attention, hidden):
    return sum(n for name, n in attention.matrices(hidden).items() if name.startswith("indexer."))


def test_there_are_enough_architectures_and_each_has_a_published_total():
    totals = set(ROWS[ROWS["quantity"] != "params_active"]["architecture"])
    assert totals == set(model_config.names())
    assert len(totals) >= 30


@pytest.mark.parametrize("name", model_config.names())
def test_every_architecture_has_a_slug_and_a_source(name):
    source, locator = model_config.origin(name)
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name)
    assert source in tables.sources().index
    assert locator


def _gemma_tower(row) -> float:
    architecture = model_config.shipped(row.architecture).architecture
    projection = 1152 * architecture.hidden
    return row.value - params_total(architecture) - architecture.head_params - projection


def within(ours: float, row) -> bool:
    """Exact figures within 0.1 %; a rounded one within half a unit of its last digit."""
    return row.low <= ours <= row.high if row.low == row.low else abs(ours / row.value - 1) < 1e-3


@pytest.mark.parametrize("row", PUBLISHED, ids=[f"{row.architecture}-{row.quantity}" for row in PUBLISHED])
def test_size_agrees_with_the_published_one(row):
    """The published figure is somebody else's count. Rounding, or what else is in the file, is in the row."""
    architecture = model_config.shipped(row.architecture).architecture
    if row.quantity == "params_active":
        # publishers count the input embedding or leave it out
        both = params_active(architecture)
        assert within(both, row) or within(both - architecture.components["embedding"], row)
    elif row.quantity == "stored_tied_twice_with_vision":
        # both sizes share one tower but for its projection, from 1,152 wide to the width of the model
        assert _gemma_tower(row) == _gemma_tower(next(r for r in PUBLISHED if r.quantity == row.quantity))
    elif row.quantity == "stored_with_vision":
        # both releases hold the same tower, so the exact total of one gives the rounded total of the other
        maverick = next(r for r in PUBLISHED if (r.architecture, r.quantity) == ("llama-4-maverick", row.quantity))
        tower = maverick.value - params_total(model_config.shipped("llama-4-maverick").architecture)
        assert 0.8e9 < tower < 0.9e9
        assert within(params_total(architecture) + tower, row)
    else:
        surplus = SURPLUS.get(row.quantity, lambda _: 0)(architecture)
        assert within(params_total(architecture) + surplus, row)


@pytest.mark.parametrize("row", [r for r in PUBLISHED if r.status == "measured"], ids=lambda r: r.architecture)
def test_a_tensor_count_is_met_to_the_last_parameter(row):
    """Where the source counts tensors, only named extras may differ: scales of fp8, rotary buffers, a vision tower."""
    architecture = model_config.shipped(row.architecture).architecture
    surplus = SURPLUS.get(row.quantity, lambda _: 0)(architecture)
    difference = row.value - params_total(architecture) - surplus
    if "vision" in row.quantity:
        assert 0 < difference - (architecture.head_params if "tied" in row.quantity else 0) < 0.9e9
    elif row.note.startswith(("holds the scales", "2048 rotary")):
        assert 0 < difference < 1e-3 * row.value
    else:
        assert difference == 0


def test_weights_as_released_fit_the_size_that_their_publisher_states():
    """gpt-oss-120b is made to fit one 80 GB part: experts in MXFP4, the rest in 16 bit (github.com/openai/gpt-oss)."""
    from analysis.model.transformer import weight_bytes

    config = model_config.shipped("gpt-oss-120b")
    assert config.precision.weights == "mxfp4"
    assert dict(config.precision.quantized) == {"experts": 1.0}
    assert 64e9 < weight_bytes(config.architecture, config.precision) < 66e9
