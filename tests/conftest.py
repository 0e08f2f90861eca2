"""The order of the run: fastest first, so that a typing error is told before a browser starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

ORDER = (
    *("tests/house", "analysis", "tests/unit", "tests/data", "tests/claims", "tests/notebooks", "book"),
    # whoever comes to the first of these builds the site; the next need none, and run while it is built
    *("tests/site/test_site", "tests/site/test_report", "tests/site/test_pdf", "tests/site/test_calculator"),
    "tests/site",
)
#: Each of these tests stands alone, so that both workers have pages to the end.
ONE_BY_ONE = "tests/site/test_pages.py"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def stage(item: pytest.Item) -> int:
        place = Path(item.path).relative_to(config.rootpath).as_posix()
        return next((n for n, folder in enumerate(ORDER) if place.startswith(folder)), len(ORDER))

    items.sort(key=stage)


class ByFile(LoadFileScheduling):
    """A file to a worker, as --dist loadfile does, but pages one by one."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if nodeid.startswith(ONE_BY_ONE) else super()._split_scope(nodeid)


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    return ByFile(config, log)
