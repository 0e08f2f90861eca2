"""How long an API takes for an answer: by hand, and what cannot be judged is named."""

from __future__ import annotations

import pytest

from analysis.evidence import api_times
from analysis.inputs import InputError
from analysis.reference import tables
from analysis.reference.tables import SNAPSHOT


def test_no_measured_api_answers_three_hundred_tokens_in_a_second():
    """In the listing of 2026-06-27 the quickest of all models takes 1.9 s."""
    frame = api_times.answers(300, as_of=SNAPSHOT)
    measured = frame[frame["status"] == "measured"]
    assert len(measured) > 30
    assert measured["seconds"].min() == pytest.approx(0.58 + 299 / 225.02, rel=1e-9)
    assert api_times.fastest_s(300, as_of=SNAPSHOT) == measured["seconds"].min()
    assert frame["seconds"].is_monotonic_increasing


def test_makers_say_less_than_was_measured_and_one_of_them_a_second():
    """Mercury 2: 0.7 s and 1,196 token/s by its maker, 2.79 s and 874 token/s as measured."""
    frame = api_times.answers(300, as_of=SNAPSHOT).set_index(["model", "status"])["seconds"]
    assert frame["mercury-2", "reported"] == pytest.approx(0.7 + 299 / 1196)
    assert frame["mercury-2", "measured"] == pytest.approx(2.79 + 299 / 873.56)


def test_rows_without_a_wait_or_a_rate_are_named_and_none_is_lost():
    """Every page is judged or unjudged; Cerebras has a rate of 1,706 token/s and no wait."""
    lacking = api_times.unjudged(as_of=SNAPSHOT)
    assert (lacking["wait_s"].isna() | lacking["tok_per_s"].isna()).all()
    assert lacking.iloc[0][["seller", "tok_per_s", "lacks"]].tolist() == ["cerebras", 1705.8, "wait"]
    every = api_times._pages(SNAPSHOT)
    judged = sum(len(api_times.judged(as_of=SNAPSHOT, status=status)) for status in every["status"].unique())
    assert judged + len(lacking) == len(every)


def test_a_day_before_all_rows_has_no_answer_and_bad_numbers_are_refused():
    assert api_times.fastest_s(300, as_of=tables.date(2019, 1, 1)) == float("inf")
    assert api_times.answer_s(0.5, 100.0, tokens=1) == 0.5
    for bad in ({"wait_s": -1.0}, {"tok_per_s": 0.0}, {"tokens": 0.0}):
        with pytest.raises(InputError, match=next(iter(bad))):
            api_times.answer_s(**({"wait_s": 0.5, "tok_per_s": 100.0, "tokens": 300.0} | bad))
