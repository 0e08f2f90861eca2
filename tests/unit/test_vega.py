"""The printer to Vega: what it writes computes in Vega what NumPy computes, and what it does not know it refuses."""

import json
import re
from inspect import signature
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
from sympy import (
    Abs,
    And,
    Expr,
    Float,
    Function,
    I,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Piecewise,
    Pow,
    Rational,
    Sum,
    Symbol,
    ceiling,
    exp,
    floor,
    gamma,
    lambdify,
    log,
    oo,
    pi,
    sign,
    symbols,
    tanh,
    zoo,
)

from analysis.inputs import InputError
from analysis.present import vega
from analysis.symbolic import cost, decoding, roofline, transformer
from analysis.symbols import with_constants

A, B, C = symbols("a b c", positive=True)
REAL = symbols("r", real=True)

#: Each form, and each place where brackets decide.
FORMS = [
    A - (B - C),
    A / (B * C),
    A / B / C**2 * (A + 1),
    Mul(A, Pow(B, -1), Pow(C, -1), evaluate=False),
    (A + B) / (A - B - 10),
    -(A**2) + (-B) ** 3,
    2**-A + A**-B,
    Rational(-1, 3) * A - Rational(2, 7),
    A ** Rational(2, 3) * B ** Rational(-1, 2),
    -A * (B - C) * -2,
    (A - B) ** 2 / (B - C) ** -1,
    Float("1e-6") * A + Float("123456.789"),
    1 - (1 - A / (A + B)) ** C,
    Max(A, B, C) - Min(A, 1) + Max(A - B, B - A) / 2,
    Abs(A - B) + Abs(REAL),
    exp(A / 10) + log(B) - log(C, 10) + exp(1) * pi,
    ceiling(A / B) + floor(C) - ceiling(REAL) + floor(REAL),
    Piecewise((A, A < B), (B, And(A > C, B < C)), (C, True)) * 3 - 1,
    1 - Piecewise((1, Or(And(A < 1, B < 2), C <= 1)), (Piecewise((A, B >= C), (B, True)), True)) / A,
    Piecewise((1, Not(Or(A < B, B < C), evaluate=False)), (2, True)) ** A,
    ((A**1.5 + B**1.5) ** Rational(2, 3)) ** Rational(1, 2),
]
#: Derivations of the book, whatever they are: none may be printed wrongly.
DERIVED = [
    with_constants(derivation())
    for module in (cost, decoding, roofline, transformer)
    for name, derivation in vars(module).items()
    if getattr(derivation, "__module__", "") == module.__name__
    and not name.startswith("_")
    and not signature(derivation).parameters
    and isinstance(derivation(), Expr)
]


def computed_by_vega(expressions, points):
    """Let Vega itself compute: a data set of points, a column for each expression, written as marks with all digits."""
    import vl_convert

    columns = [{"type": "formula", "as": f"value{i}", "expr": text} for i, text in enumerate(expressions)]
    row = "join([" + ", ".join(f"'' + datum.value{i}" for i in range(len(expressions))) + "], '|')"
    spec = {
        "data": [{"name": "points", "values": points, "transform": columns}],
        "marks": [{"type": "text", "from": {"data": "points"}, "encode": {"enter": {"text": {"signal": row}}}}],
    }
    svg = Xml.fromstring(vl_convert.vega_to_svg(json.dumps(spec)))
    texts = [node.text for node in svg.iter() if node.tag.endswith("text")]
    return np.array([[float(number) for number in text.split("|")] for text in texts])


def test_vega_and_numpy_agree_at_random_points():
    """Every form and every derivation of the book, at seeded points, to a billionth."""
    expressions = FORMS + DERIVED
    known = sorted({symbol for one in expressions for symbol in one.free_symbols}, key=str)
    draw = np.random.default_rng(20260720)
    points = {s.name: draw.uniform(-5, 5, 20) if s == REAL else draw.uniform(0.3, 9.0, 20) for s in known}
    names = {symbol: f"datum.{symbol.name}" for symbol in known}
    rows = [{name: float(values[i]) for name, values in points.items()} for i in range(20)]
    seen = computed_by_vega([vega.expression(one, names=names) for one in expressions], rows)
    assert seen.shape == (20, len(expressions))
    with np.errstate(all="ignore"):
        for column, one in zip(seen.T, expressions, strict=True):
            free = sorted(one.free_symbols, key=str)
            expected = lambdify(free, one, "numpy")(*(points[s.name] for s in free))
            np.testing.assert_allclose(column, np.broadcast_to(expected, 20), rtol=1e-9, err_msg=str(one))


def test_derivations_of_the_book_were_found():
    assert len(DERIVED) > 40


def test_typed_text_is_made_a_number():
    """Of a text field Vega holds text: ``p + 1`` was "551"."""
    written = vega.expression(A + 1, inputs=[A])
    assert written == "toNumber(a) + 1"
    assert computed_by_vega([written.replace("a)", "datum.a)")], [{"a": "55"}])[0, 0] == 56


@pytest.mark.parametrize(
    ("expr", "named"),
    [
        (Sum(A, (B, 1, 3)), "Sum"),
        (tanh(A) + 1, "tanh"),
        (A + sign(REAL), "sign"),
        (gamma(A), "gamma"),
        (Function("f")(A), "f"),
        (A * I, "ImaginaryUnit"),
        (A + oo * REAL, "Infinity"),
        (zoo, "ComplexInfinity"),
        (Piecewise((A, A < 1)), "a Piecewise"),
        (Max(A, Sum(A, (B, 1, 3))), "Sum"),
    ],
)
def test_other_forms_are_refused_by_name(expr, named):
    with pytest.raises(InputError, match=re.escape(f"got {named},")):
        vega.expression(expr)


@pytest.mark.parametrize("name", ["a b", "1a", "datum", "a-b", "", "a;b", "λ", "a.1"])
def test_names_that_vega_cannot_take_are_refused(name):
    with pytest.raises(InputError, match="symbol"):
        vega.expression(A + 1, names={A: name})


def test_chain_refuses_what_is_not_known_yet_and_names_taken_twice():
    with pytest.raises(InputError, match="step b: got 'c', expected inputs and earlier steps only"):
        vega.chain([vega.Step(B, C + A)], inputs=[A])
    with pytest.raises(InputError, match="got 'a', expected a name"):
        vega.chain([vega.Step(A, A + 1)], inputs=[A])
    with pytest.raises(InputError, match="Sum"):
        vega.evaluate([vega.Step(C, Sum(A, (B, 1, 3)))], {A: 1.0, B: 1.0})


def test_chain_and_twin_take_arrays_and_keep_the_order():
    steps = [vega.Step(B, A**2), vega.Step(C, B / (A + 1))]
    found = vega.evaluate(steps, {A: np.array([1.0, 3.0])})
    assert list(found) == ["b", "c"]
    assert found["c"].tolist() == [0.5, 2.25]


def test_same_expression_prints_the_same_whatever_the_order_of_its_parts():
    x, y = Symbol("x1"), Symbol("y1")
    assert vega.expression(Max(x, y, 3)) == vega.expression(Max(3, y, x))
    assert vega.expression(And(x < 1, y < 2)) == vega.expression(And(y < 2, x < 1))
