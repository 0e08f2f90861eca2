"""Scenario spaces sample evenly, reproducibly, and inside their ends."""

import numpy as np
import pytest
from scipy import stats

from analysis.evidence.scenarios import Choice, Range, central, fixed, sample, stretched

SPACE = {
    "ratio": Range(1, 100, "an example"),
    "fraction": Range(0.2, 0.8, "an example", scale="uniform", floor=0, ceiling=1),
    "kind": Choice(("a", "b", "c", "d"), "an example"),
}


def test_points_are_log_uniform_uniform_and_equally_weighted():
    points = sample(SPACE)
    assert stats.kstest(np.log(points["ratio"]) / np.log(100), "uniform").pvalue > 0.99
    assert stats.kstest((points["fraction"] - 0.2) / 0.6, "uniform").pvalue > 0.99
    assert np.unique(points["kind"], return_counts=True)[1].tolist() == [1024] * 4


def test_the_same_seed_gives_the_same_points():
    first, again, other = sample(SPACE), sample(SPACE), sample(SPACE, seed=1)
    assert all((first[name] == again[name]).all() for name in SPACE)
    assert (first["ratio"] != other["ratio"]).any()


def test_middle_is_on_the_scale_of_the_range():
    assert central(SPACE) == {"ratio": pytest.approx(10), "fraction": pytest.approx(0.5), "kind": "b"}


def test_quantiles_0_and_1_are_the_ends_and_one_half_the_middle():
    """Of 2 to 200 on a scale of ratios: ten times the lower end. Of three values: the first, the second, the last."""
    halves = np.array([0, 0.5, 1])
    assert Range(2, 200, "an example").at(halves).tolist() == [2, pytest.approx(20), 200]
    assert Range(-1, 3, "an example", scale="uniform").at(halves).tolist() == [-1, 1, 3]
    assert Choice(("a", "b", "c"), "an example").at(halves).tolist() == ["a", "b", "c"]


def test_stretching_keeps_the_middle_and_stops_at_hard_bounds():
    half, double = stretched(SPACE, 0.5), stretched(SPACE, 2)
    assert (half["ratio"].low, half["ratio"].high) == (pytest.approx(10**0.5), pytest.approx(10**1.5))
    assert (double["ratio"].low, double["ratio"].high) == (pytest.approx(0.1), pytest.approx(1000))
    assert (double["fraction"].low, double["fraction"].high) == (0, 1)
    assert double["kind"] is SPACE["kind"]


@pytest.mark.parametrize(
    ("low", "high", "reason", "scale"),
    [(2, 1, "x", "log"), (0, 1, "x", "log"), (1, 1, "x", "uniform"), (1, float("inf"), "x", "log"), (1, 2, " ", "log")],
)
def test_a_range_without_order_or_reason_is_refused(low, high, reason, scale):
    with pytest.raises(ValueError, match=f"range {low} to {high}: expected"):
        Range(low, high, reason, scale)


def test_a_choice_without_values_or_reason_is_refused():
    for values, reason in [((), "x"), ((1,), "")]:
        with pytest.raises(ValueError, match="expected at least one value, and a reason"):
            Choice(values, reason)


def test_fixing_holds_an_input_and_refuses_a_stranger():
    assert set(sample(fixed(SPACE, ratio=3.0))["ratio"]) == {3.0}
    with pytest.raises(KeyError, match="no input other"):
        fixed(SPACE, other=1.0)


def test_a_range_from_data_may_shrink_to_one_value_or_start_at_zero():
    """Own prices can make every row alike, and zero is a price."""
    from analysis.evidence.scenarios import between

    assert between(3, 3, "one price").values == (3.0,)
    assert between(1, 4, "two prices").central == pytest.approx(2)
    assert between(0, 4, "a free one").central == pytest.approx(2)
    assert between(0, 4, "a free one").scale == "uniform"
    doubled = between(0, 4, "a free one", floor=0).stretched(2)
    assert (doubled.low, doubled.high) == (0, 6), "-2 to 6, but a price is not negative"
