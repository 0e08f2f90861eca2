"""The built site: complete, searchable, usable by keyboard, and the checks of its pages tell what is broken."""

from __future__ import annotations

import filecmp
import json
import shutil
from pathlib import Path
from typing import Any

import browser as look
import pytest

from analysis.publish import site as publish
from analysis.publish.notebooks import ROOT


def test_every_page_of_the_contents_is_there(site: Path) -> None:
    """A build can succeed and leave nothing: https://github.com/brainhackorg/brainhack_jupyter_book/issues/201."""
    assert publish.missing_pages(site, publish.pages()) == []
    assert len(publish.pages()) >= 3


def test_missing_and_empty_pages_are_told(site: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(site, tmp_path / "copy")
    first, second, *_ = publish.pages()
    (copy / f"{first}.html").unlink()
    (copy / f"{second}.html").write_text("<html></html>")
    (copy / "index.html").unlink()
    assert publish.missing_pages(copy, publish.pages()) == [first, second, "index"]


def test_pages_hold_no_inline_script_and_no_address_to_load_from(site: Path) -> None:
    for path in site.rglob("*.html"):
        if "_static" not in path.parts:
            for needle in ("<script>", "onclick=", "cdn.", "unpkg", "fontawesome.js"):
                assert needle not in path.read_text(), f"{path.name} holds {needle}"


def test_no_page_tells_where_it_was_built(site: Path) -> None:
    """The pages of the package show values of constants, and some constants are paths."""
    for path in (*site.rglob("*.html"), site / "searchindex.js"):
        for needle in (str(ROOT), "PosixPath(", "WindowsPath("):
            assert needle not in path.read_text(), f"{path.name} holds {needle}"


@pytest.mark.soak
def test_two_builds_are_the_same_to_the_byte(site: Path, tmp_path: Path) -> None:
    again = publish.build(out=tmp_path)
    first, second = ({p.relative_to(root): p for p in root.rglob("*") if p.is_file()} for root in (site, again))
    assert set(first) == set(second)
    assert [name for name in first if not filecmp.cmp(first[name], second[name], shallow=False)] == []


@pytest.mark.browser
@pytest.mark.parametrize("way", ["http", "file"])
def test_start_leads_to_the_title_page(context: Any, site: Path, origin: str, way: str) -> None:
    root = origin if way == "http" else site.resolve().as_uri()
    visit = look.Visit(context, f"{root}/index.html", origin=root)
    visit.page.wait_for_url(f"**/{publish.pages()[0]}.html")
    visit.settle()
    visit.page.close()
    assert visit.problems == []


@pytest.mark.browser
@pytest.mark.parametrize("way", ["http", "file"])
def test_buttons_work_without_inline_handlers(context: Any, site: Path, origin: str, way: str) -> None:
    root = origin if way == "http" else site.resolve().as_uri()
    visit = look.Visit(context, f"{root}/book/cost.html", origin=root)
    visit.page.set_viewport_size(look.DESK)
    visit.settle()
    switch = visit.page.locator(".theme-switch-button").first
    for _ in range(3):
        if visit.page.evaluate("document.documentElement.dataset.mode") != "dark":
            switch.click()
    visit.settle("dark")
    visit.page.evaluate("window.print = () => { window.printed = true; }")
    visit.page.locator(".dropdown-download-buttons > button").click()
    visit.page.locator(".btn-download-pdf-button").click()
    assert visit.page.evaluate("window.printed")
    # without the side bar the column is wider, and the charts with it
    narrow = visit.page.evaluate("document.querySelector('.chart').clientWidth")
    visit.page.locator(".primary-toggle:visible").first.click()
    follows = """(before) => [...document.querySelectorAll(".chart")].every((chart) => chart.clientWidth > before + 50
        && Math.abs(chart.clientWidth - chart.querySelector("svg").getAttribute("width")) < 3)"""
    visit.page.wait_for_function(follows, arg=narrow)
    visit.page.evaluate("localStorage.clear()")
    visit.page.close()
    assert visit.problems == []


@pytest.mark.browser
@pytest.mark.parametrize("way", ["http", "file"])
def test_search_finds_a_page(context: Any, site: Path, origin: str, way: str) -> None:
    root = origin if way == "http" else site.resolve().as_uri()
    visit = look.Visit(context, f"{root}/search.html?q=token", origin=root)
    visit.page.locator("#search-results li a").first.wait_for()
    visit.page.close()
    assert visit.problems == []


@pytest.mark.browser
def test_numbers_of_a_chart_unfold(context: Any, origin: str) -> None:
    visit = look.Visit(context, f"{origin}/book/cost.html", origin=origin)
    details = visit.page.locator("details.chart-data").first
    assert not details.locator("table").first.is_visible()
    details.locator("summary").click()
    assert details.locator("tbody tr").first.is_visible()
    visit.check_width()
    # a table that is wider than the phone says so, and its caption does not scroll out of it
    caption = visit.page.locator(".table-scroll[data-wide] caption").first.bounding_box()
    assert caption["x"] + caption["width"] <= look.PHONE["width"]
    visit.page.close()
    assert visit.problems == []


@pytest.mark.browser
@pytest.mark.parametrize("way", ["http", "file"])
def test_ledger_can_be_searched_by_keyboard_and_says_how_many_rows_remain(
    context: Any, site: Path, origin: str, way: str
) -> None:
    root = origin if way == "http" else site.resolve().as_uri()
    visit = look.Visit(context, f"{root}/book/ledger.html", origin=root)
    page = visit.page
    rows, told = page.locator("tr[id^=c]"), page.locator("form.choices output")
    every = rows.count()
    assert told.text_content() == f"{every} of {every} rows"
    assert told.get_attribute("aria-live") == "polite"
    verdict = page.get_by_label("Verdict", exact=True)
    verdict.focus()
    page.keyboard.press("ArrowDown")
    chosen = verdict.input_value()
    left = page.locator("tr[id^=c]:visible")
    assert 0 < left.count() < every
    assert {row.get_attribute("data-choice-0") for row in left.all()} == {chosen}
    assert told.text_content() == f"{left.count()} of {every} rows"
    page.get_by_label("Words", exact=True).fill("no such words anywhere")
    assert told.text_content() == f"0 of {every} rows"
    # a link to a row that is not chosen shows it
    page.evaluate("location.hash = '#c44'")
    page.wait_for_function("() => !document.querySelector('#c44').hidden")
    assert told.text_content() == f"{every} of {every} rows"
    visit.check_width()
    page.close()
    assert visit.problems == []


@pytest.mark.browser
def test_ledger_shows_every_row_without_a_script(chromium: Any, site: Path) -> None:
    still = chromium.new_context(java_script_enabled=False)
    page = still.new_page()
    page.goto(look.as_file(site, "book/ledger"))
    assert page.locator("tr[id^=c]:visible").count() == page.locator("tr[id^=c]").count() > 0
    assert page.locator("form.choices").count() == 0
    still.close()


@pytest.mark.browser
def test_ledger_is_a_row_of_cards_on_a_phone(context: Any, origin: str) -> None:
    visit = look.Visit(context, f"{origin}/book/ledger.html", origin=origin)
    visit.page.set_viewport_size(look.PHONE)
    box = visit.page.locator("table.stacks:has(#c12)").bounding_box()
    assert box["width"] <= look.PHONE["width"]
    cell = visit.page.locator("#c12 td").first
    assert cell.get_attribute("data-label") == "Id"
    assert visit.page.locator("#c12").get_attribute("role") == "row"
    visit.page.close()
    assert visit.problems == []


def test_ledger_comes_as_files(site: Path) -> None:
    page = (site / "book" / "ledger.html").read_text(encoding="utf-8")
    for kind in ("csv", "json"):
        assert f'href="ledger.{kind}" download' in page
        assert (site / "book" / f"ledger.{kind}").stat().st_size > 1_000


BROKEN = {
    "asks elsewhere": '<img alt="a" src="https://elsewhere.invalid/x.png">',
    "console error": "<script>1</script>",
    "404": '<script src="gone.js"></script>',
    "scrolls sideways": '<main><p style="width: 2000px">wide</p></main>',
    "a chart is not drawn": '<div></div><script type="application/json" data-chart="fig-a">{}</script>',
}


@pytest.mark.browser
@pytest.mark.parametrize("told", BROKEN)
def test_broken_page_is_told(context: Any, tmp_path: Path, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "PATIENCE_MS", 300)
    (tmp_path / "bad.html").write_text(
        f'<!DOCTYPE html><html lang="en" data-theme="light"><title>a</title><body>{BROKEN[told]}</body></html>'
    )
    way = look.as_file(tmp_path, "bad") if told == "asks elsewhere" else None
    with look.serve(tmp_path) as origin:
        root = tmp_path.resolve().as_uri() if way else origin
        visit = look.Visit(context, way or f"{origin}/bad.html", origin=root)
        visit.settle()
        visit.check_width()
        visit.page.close()
    assert any(told in problem for problem in visit.problems), visit.problems


@pytest.mark.browser
def test_axe_tells_an_image_without_words(context: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text(
        '<html lang="en"><title>a</title><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="></html>'
    )
    visit = look.Visit(context, look.as_file(tmp_path, "bad"), origin=tmp_path.resolve().as_uri())
    assert "image-alt" in visit.axe()
    visit.page.close()


def test_missing_browser_skips_or_fails_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("REQUIRE_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium on PATH"):
        look.chromium_or_skip()
    monkeypatch.setenv("REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="no Chromium on PATH"):
        look.chromium_or_skip()


def test_warning_of_the_build_is_an_error_and_told(tmp_path: Path) -> None:
    """A book of two pages with the settings of this one, and a link to nowhere."""
    shutil.copy(ROOT / "_config.yml", tmp_path)
    shutil.copytree(ROOT / "assets", tmp_path / "assets")
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "references.bib").touch()
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/intro\nchapters:\n  - file: book/second\n")
    (tmp_path / "book" / "intro.md").write_text("# Title\n\nWords.\n")
    (tmp_path / "book" / "second.md").write_text("# Title\n\nSee {ref}`ch-nowhere`.\n")
    with pytest.raises(publish.BuildError, match="ch-nowhere") as told:
        publish.build(tmp_path)
    assert str(told.value).count("WARNING") == 1
    (tmp_path / "book" / "second.md").write_text("# Title\n\nWords.\n")
    assert publish.build(tmp_path).is_dir()


def test_every_statement_of_the_ledger_leads_to_a_place_on_a_page(site: Path) -> None:
    """The address of a claim is a page of the book and an anchor on it."""
    rows = json.loads((site / "book" / "ledger.json").read_text(encoding="utf-8"))
    assert len(rows) > 70
    for row in rows:
        page = (site / "book" / f"{row['chapter']}.html").read_text(encoding="utf-8")
        assert f'id="{row["anchor"]}"' in page, row["id"]
