"""How long a pass takes where reading bounds it: units, limits, signs."""

import pytest
from sympy import Rational, diff, limit, oo, simplify

from analysis.symbolic import decoding as derive
from analysis.symbols import (
    ANSWER_PASSES,
    BASE_TIME,
    CONTEXT,
    GPUS,
    LAYER_TIME,
    LAYERS,
    MBU,
    MEM_BW,
    PASS_TIME,
    PROMPT_TIME,
    SEQUENCE_TIME,
    SEQUENCES,
    UNITS,
)
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


def test_the_largest_swing_is_a_pure_number_and_shrinks_with_the_prompt():
    swing = derive.largest_swing()
    assert unit_ratio(unit_of(swing, UNITS), 1).is_number
    assert diff(swing, PROMPT_TIME).is_negative
    assert diff(swing, BASE_TIME).is_positive


def test_where_sequences_bring_nothing_of_their_own_the_swing_has_no_end():
    """Without caches and prompts a batch shares everything."""
    assert limit(derive.largest_swing().subs(PROMPT_TIME, SEQUENCE_TIME), SEQUENCE_TIME, 0, "+") == oo


def test_the_prompts_take_more_of_the_time_the_more_requests_share_a_pass():
    share = derive.prompt_share().subs(PASS_TIME, derive.linear_pass())
    assert diff(share, SEQUENCES).simplify().is_positive
    assert limit(share, SEQUENCES, oo).equals(PROMPT_TIME / (PROMPT_TIME + ANSWER_PASSES * SEQUENCE_TIME))


def test_half_of_the_time_is_reached_at_once_where_the_prompt_is_the_whole_work():
    assert limit(derive.batch_at_half(), ANSWER_PASSES, 0) == 0
    at_half = derive.prompt_share().subs(PASS_TIME, derive.linear_pass()).subs(SEQUENCES, derive.batch_at_half())
    assert simplify(at_half) == Rational(1, 2)
