"""Units of measurement: conversion constants for numbers, SymPy units for expressions.

``unit_of`` walks a whole expression and says in which unit it comes out, or refuses it. It is
stricter than dimensional analysis: two terms of a sum must agree in *scale* too, so hours added
to seconds are an error and not a factor of 3,600.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import (
    Abs,
    Add,
    Expr,
    Integer,
    Max,
    Min,
    Mod,
    Mul,
    Number,
    Piecewise,
    Pow,
    Symbol,
    ceiling,
    exp,
    floor,
    log,
    preorder_traversal,
    sympify,
)
from sympy.core.numbers import NumberSymbol
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean, BooleanFunction, BooleanTrue
from sympy.physics.units import Quantity, convert_to
from sympy.physics.units import hour as hour
from sympy.physics.units import second as second
from sympy.physics.units.definitions.unit_definitions import byte as byte

SECONDS_PER_HOUR = 3_600
HOURS_PER_YEAR = 8_760
#: The month of cloud price lists: a twelfth of a year of 8,760 hours.
HOURS_PER_MONTH = 730
#: The month of thirty days, which some bills use. Never mix it with ``HOURS_PER_MONTH``.
HOURS_PER_30_DAYS = 720
TOKENS_PER_MTOK = 1_000_000
WATT_PER_KILOWATT = 1_000
#: A year of a full-time employee: 52 weeks of 40 hours.
WORKING_HOURS_PER_YEAR = 2_080
MONTHS_PER_YEAR = 12
BYTE_PER_MB = 10**6
BYTE_PER_GB = 10**9
BYTE_PER_GIB = 2**30
BYTE_PER_MIB = 2**20
FLOP_PER_TFLOP = 10**12

ONE = Integer(1)
token = Quantity("token")
flop = Quantity("FLOP")
USD = Quantity("USD")
request = Quantity("request")
kilowatt = Quantity("kW")

#: Every unit that a data row may carry. A row with another spelling is refused.
DATA_UNITS = frozenset(
    {
        "1",
        "%",
        "USD/node_hour",
        "USD/Mtok",
        "USD",
        "USD/kWh",
        "USD/kW_month",
        "USD/year",
        "1/year",
        "FLOP/s",
        "TFLOP/s",
        "TOP/s",
        "byte/s",
        "GB/s",
        "byte",
        "MB",
        "MiB",
        "GB",
        "GiB",
        "W",
        "token/s",
        "token",
        "1/s",
        "s",
        "ms",
        "us",
        "year",
        "count",
    }
)

#: Factors from the units that data sheets print to the base units of the model: byte, second, FLOP.
#: Integer units count operations (TOP/s); beside a floating-point peak an operation is a FLOP.
BASE_UNITS_PER = {
    "FLOP/s": 1,
    "TFLOP/s": FLOP_PER_TFLOP,
    "TOP/s": FLOP_PER_TFLOP,
    "byte/s": 1,
    "GB/s": BYTE_PER_GB,
    "byte": 1,
    "MB": BYTE_PER_MB,
    "MiB": BYTE_PER_MIB,
    "GB": BYTE_PER_GB,
    "GiB": BYTE_PER_GIB,
    "W": 1,
    "s": 1,
    "ms": 1e-3,
    "us": 1e-6,
    "count": 1,
}


class UnitError(ValueError):
    """An expression whose parts do not fit together; the message names the part."""


def unit_ratio(unit: Expr, expected: Expr) -> Expr:
    """Divide one unit by another, both in seconds and bytes: a pure number if they agree.

    Examples
    --------
    >>> unit_ratio(hour, second), unit_ratio(token / second, token / second)
    (3600, 1)
    """
    return convert_to(sympify(unit) / expected, [second, byte])


def _same(unit: Expr, other: Expr, part: object) -> Expr:
    if unit_ratio(unit, other) != 1:
        raise UnitError(f"{part}: {other} beside {unit}")
    return unit


def _pure(unit: Expr, part: object) -> Expr:
    if unit_ratio(unit, ONE) != 1:
        raise UnitError(f"{part}: needs a pure number, has {unit}")
    return ONE


def _of_every_unit(part: Expr) -> bool:
    """Nothing, and without end, are the same in all units."""
    return isinstance(part, Number) and bool(part.is_zero or part.is_infinite)


def unit_of(expr: Expr, units: Mapping[Symbol, Expr]) -> Expr:
    """Return the unit in which an expression comes out.

    Parameters
    ----------
    expr : Expr
        Any combination of ``+ * **``, ``Max``, ``Min``, ``Piecewise``, ``Abs``, ``Mod``, ``exp``,
        ``log``, ``ceiling`` and ``floor`` over symbols and numbers.
    units : mapping of Symbol to unit
        The unit of each symbol (`analysis.symbols.UNITS` holds those of the book).

    Returns
    -------
    Expr
        The unit, 1 for a pure number.

    Raises
    ------
    UnitError
        If terms, arguments, branches or conditions disagree, an exponent or the argument of a
        transcendental function is not a pure number, or a symbol or function is unknown.

    Examples
    --------
    >>> x, t = Symbol("x"), Symbol("t")
    >>> unit_of(x * t, {x: token / second, t: second})
    token
    """
    if isinstance(expr, Number | NumberSymbol):
        return ONE
    if isinstance(expr, Symbol):
        if expr not in units:
            raise UnitError(f"{expr}: a symbol without a unit")
        return units[expr]
    if isinstance(expr, Mul):
        product: Expr = ONE
        for factor in expr.args:
            product = product * unit_of(factor, units)
        return product
    if isinstance(expr, Pow):
        _pure(unit_of(expr.exp, units), expr.exp)
        base = unit_of(expr.base, units)
        if unit_ratio(base, ONE) == 1:
            return ONE
        if not expr.exp.is_number:
            raise UnitError(f"{expr}: {base} to a power that is not a number")
        return base**expr.exp
    if isinstance(expr, Add | Max | Min | Mod):
        first, *others = (a for a in expr.args if not _of_every_unit(a))
        unit = unit_of(first, units)
        for other in others:
            _same(unit, unit_of(other, units), other)
        return unit
    if isinstance(expr, Piecewise):
        for branch in expr.args:
            _check_condition(branch.cond, units)
        first, *others = [branch.expr for branch in expr.args if not _of_every_unit(branch.expr)] or [Integer(0)]
        unit = unit_of(first, units)
        for other in others:
            _same(unit, unit_of(other, units), other)
        return unit
    if isinstance(expr, Abs):
        return unit_of(expr.args[0], units)
    if isinstance(expr, exp | log | ceiling | floor):
        for argument in expr.args:
            _pure(unit_of(argument, units), argument)
        return ONE
    raise UnitError(f"{expr}: {type(expr).__name__} is not a form whose unit is known")


def _check_condition(condition: Boolean, units: Mapping[Symbol, Expr]) -> None:
    if isinstance(condition, BooleanTrue):
        return
    if not isinstance(condition, Relational | BooleanFunction):
        raise UnitError(f"{condition}: {type(condition).__name__} is not a condition that can be checked")
    for part in preorder_traversal(condition):
        if isinstance(part, Relational):
            _same(unit_of(part.lhs, units), unit_of(part.rhs, units), part)
