"""What the browser tests share: the site, built once for a run by whichever worker comes first, and a browser."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser as look
import pytest

from analysis.publish import site as publish

#: A build takes half a minute on an idle machine.
PATIENCE_S = 600


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site from nothing: pages of an earlier build would hide what a change breaks."""
    own = tmp_path_factory.getbasetemp()
    # the folders of all workers of a run lie in one
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "built"
    try:
        shared.mkdir()
    except FileExistsError:
        return _waited_for(shared)
    try:
        site = publish.build(out=shared)
    except BaseException as error:
        (shared / "failed").write_text(str(error))
        raise
    (shared / "done").touch()
    return site


def _waited_for(shared: Path) -> Path:
    for _ in range(PATIENCE_S):
        if (shared / "failed").exists():
            raise publish.BuildError((shared / "failed").read_text())
        if (shared / "done").exists():
            return shared / "_build" / "html"
        time.sleep(1)
    raise publish.BuildError(f"no site after {PATIENCE_S} s")


@pytest.fixture(scope="module")
def site(built: Path) -> Path:
    return built


@pytest.fixture(scope="module")
def origin(site: Path) -> Iterator[str]:
    with look.serve(site) as address:
        yield address


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    look.chromium_or_skip()
    with look.chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def context(chromium: Any) -> Any:
    return chromium.new_context(viewport=look.PHONE)
