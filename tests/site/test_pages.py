"""Every page in a browser, over HTTP under the content policy and from a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import browser as look
import pytest

from analysis.publish import site as publish

PAGES = [*publish.pages(), "search"]
#: Very long pages that are built like book/api/symbolic, at which axe looks for all of them.
ALIKE = {f"book/api/{floor}" for floor in ("model", "reference", "present", "evidence")}

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("page", PAGES)
def test_page_under_the_policy(context: Any, origin: str, page: str) -> None:
    """Nothing from elsewhere, no complaint, charts drawn by day and by night, no sideways scrolling, axe clean.

    The air-gapped reader: https://github.com/vega/altair/issues/2316.
    """
    visit = look.Visit(context, f"{origin}/{page}.html", origin=origin)
    visit.settle()
    visit.check_charts()
    visit.check_width()
    found = {} if page in ALIKE else visit.axe()
    visit.check_dark()
    visit.page.set_viewport_size(look.DESK)
    visit.check_width()
    found |= {} if page in ALIKE else visit.axe()
    visit.page.close()
    assert visit.problems == []
    assert found == {}


def loaded(path: Path) -> set[Path]:
    """Files that a page asks its reader's disk for, by the addresses written in it."""
    found = re.findall(r'<(?:script|link|img)\b[^>]*?\b(?:src|href)="([^"#?]+)', path.read_text(encoding="utf-8"))
    return {(path.parent / address).resolve() for address in found if not address.startswith("data:")}


def test_pages_from_a_file(context: Any, site: Path) -> None:
    """As a reader without a server opens them: whatever a page loads is there, and each set of scripts works."""
    kinds = {}
    for page in PAGES:
        files = loaded(site / f"{page}.html")
        assert [file for file in files if not file.is_file()] == [], page
        kinds.setdefault(frozenset(file.name for file in files if file.suffix == ".js"), page)
    assert len(kinds) > 2
    for page in kinds.values():
        visit = look.Visit(context, look.as_file(site, page), origin=site.resolve().as_uri())
        visit.settle()
        visit.check_charts()
        visit.page.close()
        assert visit.problems == [], page
