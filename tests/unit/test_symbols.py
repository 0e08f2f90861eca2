"""The symbol table is complete and unambiguous."""

import pytest
from sympy import Integer, Symbol

from analysis.present.notation import notation
from analysis.publish.notebooks import ROOT
from analysis.symbols import (
    PRICE,
    SEC_PER_HOUR,
    SUBJECTS,
    TABLE,
    TOK_PER_MTOK,
    UNITS,
    entry,
    to_latex,
    with_constants,
)
from analysis.units import ONE


def test_every_symbol_is_positive_and_has_latex_unit_and_meaning():
    for name, known in TABLE.items():
        assert known.symbol == Symbol(name, positive=True)
        assert known.latex.strip()
        assert known.means.strip()
        assert UNITS[known.symbol] == known.unit


def test_latex_names_are_distinct():
    assert len({known.latex for known in TABLE.values()}) == len(TABLE)


@pytest.mark.parametrize(("name", "latex"), [("price", "new"), ("new", r"p_\mathrm{node}")])
def test_a_taken_name_or_latex_is_refused(name, latex):
    with pytest.raises(ValueError, match="already taken"):
        entry(name, latex=latex, unit=ONE, means="x")


def test_constants_become_numbers_only_when_asked():
    expr = TOK_PER_MTOK * PRICE / SEC_PER_HOUR
    assert to_latex(expr) == r"\frac{10^{6} p_\mathrm{node}}{3600}"
    assert with_constants(expr) == PRICE * Integer(10**6) / 3600


def test_page_of_notation_has_every_subject() -> None:
    by_subject = notation()
    assert list(by_subject) == list(SUBJECTS.values())
    assert sum(map(len, by_subject.values())) == len(TABLE)
    page = (ROOT / "book" / "notation.ipynb").read_text(encoding="utf-8")
    assert [subject for subject in by_subject if f'by_subject[\\"{subject}\\"]' not in page] == []
