"""Every page from a file, as an air-gapped reader opens it; apart from the others, so that another worker runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import browser as look
import pytest

from analysis.publish import site as publish

PAGES = [*publish.pages(), "search"]


@pytest.mark.browser
@pytest.mark.parametrize("page", PAGES)
def test_page_from_a_file(context: Any, site: Path, page: str) -> None:
    visit = look.Visit(context, look.as_file(site, page), origin=site.resolve().as_uri())
    visit.settle()
    visit.check_charts()
    visit.page.close()
    assert visit.problems == []
