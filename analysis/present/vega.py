"""Print derivations as Vega expressions, so that a page computes with what the book derives.

A page has no Python. Its numbers come from the same SymPy expressions that print the LaTeX: `expression` writes one
in the language of Vega, `chain` writes several that build on each other, and `evaluate` is their NumPy twin, by which
tests see that browser and model agree. Vega computes in floats of 64 bit, as NumPy does.

The printer knows a list of forms and refuses every other by name before it writes anything: a printer that falls back
on SymPy's own text would write ``Sum(...)``, and only the reader's browser would find out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import (
    Abs,
    Add,
    And,
    Basic,
    E,
    Eq,
    Expr,
    Float,
    Ge,
    Gt,
    Integer,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Not,
    Or,
    Piecewise,
    Pow,
    Rational,
    Symbol,
    ceiling,
    exp,
    floor,
    fraction,
    lambdify,
    log,
    pi,
    preorder_traversal,
)
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanFalse, BooleanTrue

from analysis.inputs import InputError, Words, scalar_or_array

_CALLS = {Max: "max", Min: "min", Abs: "abs", exp: "exp", log: "log", ceiling: "ceil", floor: "floor"}
_RELATIONS = {Eq: "==", Ne: "!=", Lt: "<", Le: "<=", Gt: ">", Ge: ">="}
_CONSTANTS: dict[Basic, str] = {E: "E", pi: "PI"}
_FORMS = (
    Symbol,
    Integer,
    Rational,
    Float,
    Add,
    Mul,
    Pow,
    Piecewise,
    ExprCondPair,
    BooleanTrue,
    BooleanFalse,
    And,
    Or,
    Not,
    *_CALLS,
    *_RELATIONS,
)
_WORDS = (
    "datum event item parent group xy x y true false null undefined NaN E LN10 LN2 LOG10E LOG2E MAX_VALUE MIN_VALUE "
    "PI SQRT1_2 SQRT2 if data scale width height padding autosize background cursor"
)
#: Names that the language of Vega has for itself.
RESERVED = frozenset(_WORDS.split())
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: How tightly the forms bind, as in JavaScript.
_OR, _AND, _RELATION, _SUM, _PRODUCT, _ATOM = range(1, 7)


def expression(
    expr: Expr, *, names: Mapping[Symbol, str] | None = None, inputs: Collection[Symbol] = frozenset()
) -> str:
    """Write an expression in the language of Vega.

    Parameters
    ----------
    expr : sympy expression
        Of sums, products, powers, ``Max``, ``Min``, ``Abs``, ``exp``, ``log``, ``ceiling``, ``floor``, ``Piecewise``
        with a last case, comparisons and numbers. Powers of numbers below zero give ``NaN``, as in NumPy.
    names : mapping of Symbol to str, optional
        What a symbol is called there, for example ``datum.x``; its own name if left out.
    inputs : collection of Symbol
        Symbols that somebody types: what a text field holds is text, so each is passed through ``toNumber``.

    Returns
    -------
    str
        One line.

    Raises
    ------
    InputError
        If a part has another form, a number is not finite, a ``Piecewise`` has no last case, or a symbol has a name
        that Vega cannot take.

    Examples
    --------
    >>> from analysis.symbolic.cost import cost_per_mtok, saving_of_a_faster_decoder
    >>> from analysis.symbols import UTIL, with_constants
    >>> expression(with_constants(cost_per_mtok()), names={UTIL: "datum.u"})
    '(2500 * price)/(9 * node_tput * datum.u)'
    >>> expression(saving_of_a_faster_decoder())
    'price * (ceil((answer * rate)/node_tput) - ceil((answer * rate)/faster_tput))'
    """
    for part in preorder_traversal(expr):
        check(part)
    return _Printer(dict(names or {}), frozenset(inputs)).text(expr, 0)


def check(part: Basic) -> None:
    """Refuse one node of an expression whose form the printer does not know.

    Raises
    ------
    InputError
        With the name of the form.
    """
    if part in _CONSTANTS or isinstance(part, _FORMS):
        if isinstance(part, Piecewise) and not isinstance(part.args[-1][1], BooleanTrue):
            raise InputError("expression", Words("a Piecewise"), "one with a last case, which holds otherwise")
        if isinstance(part, Float) and not np.isfinite(float(part)):
            raise InputError("expression", str(part), "finite numbers")
        return
    raise InputError("expression", Words(type(part).__name__), "a form that Vega has a counterpart of")


class _Printer:
    def __init__(self, names: dict[Symbol, str], inputs: frozenset[Symbol]) -> None:
        self.names, self.inputs = names, inputs

    def text(self, expr: Basic, outside: int) -> str:
        """Write a part, in brackets where what stands around it binds as tightly."""
        text, binds = self.part(expr)
        return f"({text})" if binds <= outside else text

    def part(self, expr: Basic) -> tuple[str, int]:
        if isinstance(expr, Symbol):
            return self.symbol(expr), _ATOM
        if expr in _CONSTANTS:
            return _CONSTANTS[expr], _ATOM
        if isinstance(expr, BooleanTrue | BooleanFalse):
            return str(bool(expr)).lower(), _ATOM
        if isinstance(expr, Integer | Float):
            number = repr(float(expr)) if isinstance(expr, Float) else str(expr)
            return number, _SUM if number.startswith("-") else _ATOM
        if isinstance(expr, Rational):
            return f"{expr.p}/{expr.q}", _SUM if expr.p < 0 else _PRODUCT
        if isinstance(expr, Add):
            return self.sum(expr), _SUM
        if isinstance(expr, Mul):
            return self.product(expr)
        if isinstance(expr, Pow):
            return self.power(expr)
        if isinstance(expr, Piecewise):
            return self.cases(expr), 0
        for form, sign in _RELATIONS.items():
            if isinstance(expr, form):
                return f"{self.text(expr.lhs, _RELATION)} {sign} {self.text(expr.rhs, _RELATION)}", _RELATION
        if isinstance(expr, And | Or):
            sign, binds = (" && ", _AND) if isinstance(expr, And) else (" || ", _OR)
            return sign.join(self.text(argument, binds) for argument in self.ordered(expr.args)), binds
        if isinstance(expr, Not):
            return f"!{self.text(expr.args[0], _PRODUCT)}", _PRODUCT
        name = next(name for form, name in _CALLS.items() if isinstance(expr, form))
        return f"{name}({', '.join(self.text(argument, 0) for argument in self.ordered(expr.args))})", _ATOM

    @staticmethod
    def ordered(arguments: Sequence[Basic]) -> list[Basic]:
        # the arguments of these come out of a set
        return sorted(arguments, key=lambda argument: argument.sort_key())

    def symbol(self, symbol: Symbol) -> str:
        name = self.names.get(symbol, symbol.name)
        if not all(_NAME.fullmatch(part) for part in name.split(".")) or name in RESERVED:
            raise InputError("symbol", name, "a name of letters, digits and _ that Vega has no use for itself")
        return f"toNumber({name})" if symbol in self.inputs else name

    def sum(self, expr: Add) -> str:
        text = ""
        for term in sorted(expr.as_ordered_terms(), key=lambda term: bool(term.could_extract_minus_sign())):
            minus = bool(text) and term.could_extract_minus_sign()
            written = self.text(-term if minus else term, _SUM)
            text += (" - " if minus else " + " if text else "") + written
        return text

    def product(self, expr: Mul) -> tuple[str, int]:
        above, below = fraction(expr, exact=True)
        if below != 1:
            return f"{self.text(above, _PRODUCT)}/{self.text(below, _PRODUCT)}", _PRODUCT
        factors = list(expr.as_ordered_factors())
        if factors[0] == -1:
            return f"-{self.text(Mul(*factors[1:]), _SUM)}", _SUM
        return " * ".join(self.text(factor, _SUM if i == 0 else _PRODUCT) for i, factor in enumerate(factors)), _PRODUCT

    def power(self, expr: Pow) -> tuple[str, int]:
        base, exponent = expr.base, expr.exp
        if exponent.could_extract_minus_sign():
            return f"1/{self.text(Pow(base, -exponent), _PRODUCT)}", _PRODUCT
        if exponent == Rational(1, 2):
            return f"sqrt({self.text(base, 0)})", _ATOM
        return f"pow({self.text(base, 0)}, {self.text(exponent, 0)})", _ATOM

    def cases(self, expr: Piecewise) -> str:
        text = ""
        for value, condition in expr.args:
            if isinstance(condition, BooleanTrue):
                return f"{text}{self.text(value, 0)}"
            text += f"({self.text(condition, 0)}) ? {self.text(value, 0)} : "
        return text


# ------------------------------------------------------------------------------------------ several in a row


@dataclass(frozen=True)
class Step:
    """One line of a computation: a name, and its value from inputs and from lines before it."""

    symbol: Symbol
    value: Expr
    #: Symbols that take the place of others in the value, which many steps can share.
    renamed: Mapping[Symbol, Symbol] = field(default_factory=dict)

    @property
    def uses(self) -> set[Symbol]:
        """Symbols that it needs."""
        return {self.renamed.get(symbol, symbol) for symbol in self.value.free_symbols}


def chain(steps: Sequence[Step], *, inputs: Collection[Symbol]) -> list[dict[str, str]]:
    """Write a computation as parameters of a chart, each ``{"name": ..., "expr": ...}``, in their order.

    Parameters
    ----------
    steps : sequence of Step
        Each uses inputs and earlier steps.
    inputs : collection of Symbol
        What somebody sets.

    Returns
    -------
    list of dict
        Parameters of Vega-Lite, also understood by Altair's ``param(name, expr=...)``.

    Raises
    ------
    InputError
        As `expression`, or if a step uses what is not known yet or has a name that is taken.

    Examples
    --------
    >>> a, b, c = map(Symbol, "abc")
    >>> chain([Step(b, a**2), Step(c, b + a)], inputs=[a])
    [{'name': 'b', 'expr': 'pow(toNumber(a), 2)'}, {'name': 'c', 'expr': 'toNumber(a) + b'}]
    """
    _check_order(steps, inputs)
    printed: dict[Expr, str] = {}
    written = []
    for step in steps:
        if step.value not in printed:
            printed[step.value] = expression(step.value, inputs=inputs)
        names = {old.name: expression(new, inputs=inputs) for old, new in step.renamed.items()}
        written.append({"name": step.symbol.name, "expr": _with_names(printed[step.value], names)})
    return written


def _with_names(text: str, names: Mapping[str, str]) -> str:
    return _NAME.sub(lambda word: names.get(word[0], word[0]), text)


def _check_order(steps: Sequence[Step], inputs: Collection[Symbol]) -> None:
    known = set(inputs)
    for step in steps:
        for symbol in sorted(step.uses - known, key=str):
            raise InputError(f"step {step.symbol}", str(symbol), "inputs and earlier steps only")
        if step.symbol in known:
            raise InputError("step", str(step.symbol), "a name that no input and no other step has")
        known.add(step.symbol)


def evaluate(steps: Sequence[Step], values: Mapping[Symbol, Any]) -> dict[str, Any]:
    """Compute a chain in NumPy: the twin of what a page computes.

    Parameters
    ----------
    steps : sequence of Step
    values : mapping of Symbol to float or array
        Of every input.

    Returns
    -------
    dict of str to float or array
        The value of each step by its name.

    Raises
    ------
    InputError
        As `chain`.

    Examples
    --------
    >>> a, b, c = map(Symbol, "abc")
    >>> evaluate([Step(b, a**2), Step(c, b + a)], {a: 3.0})
    {'b': 9.0, 'c': 12.0}
    """
    _check_order(steps, values.keys())
    # numbers of NumPy, not of Python, divide by zero as a browser does
    known = {symbol.name: np.asarray(value, float)[()] for symbol, value in values.items()}
    found = {}
    with np.errstate(all="ignore"):
        for step in steps:
            arguments, function = _function(step.value)
            value = function(*(known[step.renamed.get(symbol, symbol).name] for symbol in arguments))
            known[step.symbol.name] = np.asarray(value, float)[()]
            found[step.symbol.name] = scalar_or_array(np.asarray(value, float))
    return found


@lru_cache(maxsize=4096)
def _function(expr: Expr) -> tuple[list[Symbol], Any]:
    for part in preorder_traversal(expr):
        check(part)
    arguments = sorted(expr.free_symbols, key=str)
    return arguments, lambdify(arguments, expr, "numpy")
