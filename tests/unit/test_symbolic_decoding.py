"""How long a pass takes where reading bounds it: units, limits, signs."""

import pytest
from sympy import diff, limit, oo, simplify

from analysis.symbolic import decoding as derive
from analysis.symbols import CONTEXT, GPUS, LAYER_TIME, LAYERS, MBU, MEM_BW, PROMPT_TIME, SEQUENCES, UNITS
from analysis.units import second, unit_of, unit_ratio


@pytest.mark.parametrize("derivation", [derive.memory_bound_pass, derive.time_between_tokens], ids=lambda f: f.__name__)
def test_times_come_out_in_seconds(derivation):
    assert unit_ratio(unit_of(derivation(), UNITS), second).is_number


def test_a_rate_of_passes_is_per_second():
    assert unit_ratio(unit_of(derive.max_load_passes(), UNITS), 1 / second).is_number


def test_endless_gpus_leave_the_fixed_time():
    """What a wider replica cannot buy: the launches of every layer."""
    assert limit(derive.memory_bound_pass(), GPUS, oo) == LAYERS * LAYER_TIME


def test_without_context_the_batch_is_free():
    assert derive.sequence_slope().subs(CONTEXT, 0) == 0


def test_each_sequence_adds_its_cache_over_the_bandwidth():
    slope = derive.sequence_slope()
    assert simplify(slope * GPUS * MBU * MEM_BW / CONTEXT).free_symbols.isdisjoint({SEQUENCES, GPUS, MEM_BW})
    assert slope.is_positive


def test_a_lone_stream_waits_for_no_prompts():
    assert derive.time_between_tokens().subs(SEQUENCES, 1).free_symbols.isdisjoint({PROMPT_TIME})
    assert diff(derive.time_between_tokens(), SEQUENCES).is_positive
