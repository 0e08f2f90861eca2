"""The order of the run: fastest first, so that a typing error is told before a browser starts."""

from __future__ import annotations

from pathlib import Path

import pytest

ORDER = ("tests/house", "analysis", "tests/unit", "tests/data", "tests/claims", "tests/notebooks", "book", "tests/site")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def stage(item: pytest.Item) -> int:
        place = Path(item.path).relative_to(config.rootpath).as_posix()
        return next((n for n, folder in enumerate(ORDER) if place.startswith(folder + "/")), len(ORDER))

    items.sort(key=stage)
