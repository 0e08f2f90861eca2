"""Numbers in prose are computed: none with a currency, a rate, a ratio or a per-cent sign is typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.publish import notebooks

#: What the texts themselves say; a chapter that tests a number has to name it.
STATED = {"30-fold", "$33", "33 dollars", "15 dollars", "$15", "10x", "10-fold"}
#: Other numbers that are typed, by page: nothing computes them, and the reason says why. An entry that no page needs
#: any more fails.
ALLOWED: dict[tuple[str, str], str] = {
    ("batching", "90 %"): "a setting of the engine, named as such",
    ("waiting", "300 times"): "the tokens of the answer that the book carries along, one at a time",
    ("notation", "7 %"): "the definition of two units",
    ("roofline", "60 %"): "an example of shares that the sentence takes",
    ("roofline", "70 %"): "an example of shares that the sentence takes",
    ("roofline", "12 %"): "what formats of four bits add by their definition",
    ("roofline", "30 %"): "an end of a range that the sentence defines",
    ("roofline", "95 %"): "the limit from which always holds",
    ("validation", "5 %"): "an aim set before the measurement",
    ("validation", "11 %"): "an aim set before the measurement",
    ("validation", "16 %"): "an aim set before the measurement",
    ("validation", "25 %"): "a limit that the table applies",
    ("validation", "70 %"): "a rule of thumb that is tested",
    ("validation", "75 %"): "a rule of thumb that is tested",
    ("validation", "11.8 %"): "what the authors of another tool print, cited",
}
NUMBER = r"(?<![\w.,])\d[\d,.]*"
PER = r"(?:/|per\ |an?\ )\s?(?:s\b|second|hour|h\b|day|night|year|token|byte)"
TYPED = re.compile(
    rf"""(?ix)
    [$€£]\s?\d[\d,.]*\d|[$€£]\s?\d                                               # a currency before it
    |{NUMBER}\s?(?:%|per\ ?cent\b|USD\b|dollars?\b|cents?\b|EUR\b|euros?\b)        # a currency or a per-cent sign
    |{NUMBER}\s?(?:-fold\b|×|times\b|x\b)                                       # a ratio
    |{NUMBER}\s?(?:tokens?|requests?|documents?|bytes?|[KMGTP]i?B|[KMGTP]?FLOPs?|TOPs?)\s?{PER}   # a rate
    """
)
#: What is no prose: code, formulas, roles (glued values are one), quotations, addresses.
NO_PROSE = [
    re.compile(form, re.DOTALL)
    for form in (
        r"^(`{3,}).*?^\1",
        r"\$\$.*?\$\$",
        r"\{[a-z:]+\}`[^`]*`",
        r"`[^`]*`",
        r"(?<!\\)\$(?!\s)[^$\n]*?[A-Za-z\\^_=<>][^$\n]*?(?<!\\)\$",
        r"“[^”]*”|\"[^\"\n]*\"",
        r"\]\([^)]*\)|https?://\S+",
    )
]


def typed(text: str) -> list[str]:
    """Numbers with a currency, a rate, a ratio or a per-cent sign that a text holds outside of what is no prose."""
    for form in NO_PROSE:
        text = re.sub(form.pattern, " ", text, flags=re.DOTALL | re.MULTILINE)
    return [" ".join(match[0].split()).strip(".,") for match in TYPED.finditer(text.replace("\\$", "$"))]


def prose(path: Path) -> Iterator[str]:
    if path.suffix == ".md":
        yield path.read_text(encoding="utf-8")
    else:
        for cell in notebooks.from_text(path.read_text(encoding="utf-8")).cells:
            # an exercise gives the reader numbers to calculate with
            if cell.cell_type == "markdown" and not cell.source.lstrip().startswith("## Exercise"):
                yield cell.source


PAGES = sorted([*notebooks.BOOK.glob("*.ipynb"), *notebooks.BOOK.glob("*.md")])


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_no_number_that_can_be_computed_is_typed(path: Path) -> None:
    found = {(path.stem, number) for text in prose(path) for number in typed(text)}
    assert {number for page, number in found if number not in STATED and (page, number) not in ALLOWED} == set()


def test_allowed_numbers_are_still_there_and_have_a_reason() -> None:
    found = {(path.stem, number) for path in PAGES for text in prose(path) for number in typed(text)}
    assert set(ALLOWED) - found == set()
    assert all(reason.strip() for reason in ALLOWED.values())


@pytest.mark.parametrize(
    "text",
    [
        "It costs 4.20 dollars.",
        "It costs \\$4.20 an hour.",
        "a share of 17%",
        "a share of 17 per cent",
        "It is 3 times faster.",
        "a 12-fold gain",
        "It makes 5,000 tokens a second.",
        "reads 3.35 TB/s",
    ],
)
def test_a_typed_number_is_told(text: str) -> None:
    assert typed(text)


@pytest.mark.parametrize(
    "text",
    [
        "It costs {glue:text}`cost-full:.2f` dollars.",
        "`--usd 4 dollars`",
        "$x = 4 \\%$ of it",
        "eight H100, 300 tokens, 80 layers, C36, 2026",
        "as they say, “10 times better”",
        "on eight MI300X",
        "```\n5 dollars\n```",
    ],
)
def test_what_is_no_typed_number_is_not(text: str) -> None:
    assert typed(text) == []
