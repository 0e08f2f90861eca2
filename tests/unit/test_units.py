"""The unit checker walks the whole tree and is stricter than dimensions: scales must agree too."""

import pytest
from sympy import Abs, Max, Min, Mod, Piecewise, Rational, Symbol, ceiling, exp, floor, log, oo, sin, sqrt

from analysis.units import ONE, USD, UnitError, hour, second, token, unit_of, unit_ratio

T, H, X, P, N = (Symbol(name, positive=True) for name in ("t", "h", "x", "p", "n"))
UNITS = {T: second, H: hour, X: token / second, P: USD / hour, N: ONE}


@pytest.mark.parametrize(
    ("expr", "unit"),
    [
        (X * T, token),
        (P / X * N, USD * second / (hour * token)),
        (Max(T, 2 * T) + Min(T, T / 2), second),
        (Max(T, oo) if False else Max(X * T, X * T * N), token),
        (sqrt(X * T) ** 2, token),
        (T ** Rational(1, 2), second ** Rational(1, 2)),
        (Piecewise((T, N > 1), (2 * T, True)), second),
        (Piecewise((T, (N > 1) & (T < 2 * T * N)), (2 * T, True)), second),
        (exp(N) * log(N) + ceiling(N) - floor(N), ONE),
        (N**N, ONE),
        (Abs(T), second),
        (Mod(T, 2 * T * N), second),
    ],
)
def test_unit_of_a_sound_expression(expr, unit):
    assert unit_ratio(unit_of(expr, UNITS), unit) == 1


@pytest.mark.parametrize(
    ("expr", "part"),
    [
        (T + X, "beside"),
        (T + H, "beside"),  # 3,600 apart: the same dimension is not enough
        (T + 1, "beside"),
        (Max(T, X), "beside"),
        (Min(T, N), "beside"),
        (Max(N, Min(T, X)), "beside"),
        (N**T, "pure number"),
        (T**N, "not a number"),
        (exp(T), "pure number"),
        (log(X), "pure number"),
        (ceiling(T), "pure number"),
        (Piecewise((T, N > 1), (X, True)), "beside"),
        (Piecewise((T, T > 1), (2 * T, True)), "beside"),
        (Piecewise((T, (N > 1) & (T > X)), (2 * T, True)), "beside"),
        (Mod(T, N), "beside"),
        (sin(N), "sin is not a form"),
        (Symbol("stranger"), "without a unit"),
    ],
)
def test_unit_of_refuses_what_does_not_fit_and_names_it(expr, part):
    with pytest.raises(UnitError, match=part):
        unit_of(expr, UNITS)


def test_ratio_tells_scale_from_kind():
    assert unit_ratio(hour, second) == 3600
    assert not unit_ratio(hour, token).is_number
