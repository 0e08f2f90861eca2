"""The report on paper: pages in order, titles in the outline, one line where there is no browser."""

from __future__ import annotations

import io
from pathlib import Path

import browser as look
import pytest
from pypdf import PdfReader, PdfWriter

from analysis.inputs import InputError
from analysis.publish import pdf


def sheet(width: float) -> bytes:
    writer = PdfWriter()
    writer.add_blank_page(width=width, height=200)
    whole = io.BytesIO()
    writer.write(whole)
    return whole.getvalue()


def test_parts_are_joined_in_order_with_their_titles() -> None:
    whole = PdfReader(io.BytesIO(pdf.join([("First", sheet(100)), ("Second", sheet(300))])))
    assert [float(page.mediabox.width) for page in whole.pages] == [100, 300]
    assert [entry.title for entry in whole.outline] == ["First", "Second"]


def test_missing_browser_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="Chromium: got none on PATH, expected one of chromium"):
        pdf.printed(tmp_path, [])


@pytest.mark.browser
def test_site_that_is_not_built_is_told(tmp_path: Path) -> None:
    look.chromium_or_skip()
    with pytest.raises(InputError, match=r"no page book/intro, expected a built site"):
        pdf.printed(tmp_path, ["book/intro"])


@pytest.mark.browser
def test_page_is_printed_with_its_title(tmp_path: Path) -> None:
    look.chromium_or_skip()
    page = '<!DOCTYPE html><html lang="en"><title>a</title><h1>One page#</h1><p>Words on paper.</p>'
    (tmp_path / "one.html").write_text(page + "<!-- " + "x" * 3000 + " -->")
    (tmp_path / "index.html").write_text(page)
    ((title, printed),) = pdf.printed(tmp_path, ["one"])
    assert title == "One page"
    assert "Words on paper." in PdfReader(io.BytesIO(printed)).pages[0].extract_text()
