"""The stored chapters: what strict comparison does not see is looked for here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from analysis.publish import notebooks

#: Cells that may turn the comparison of their output off, each with its reason. An entry that is not needed fails.
ALLOWED: dict[str, str] = {}


@pytest.mark.parametrize("path", notebooks.chapters(), ids=lambda path: path.stem)
def test_chapter_is_executed_normalised_and_free_of_strays(path: Path) -> None:
    assert notebooks.problems(path, allowed=ALLOWED) == []


def test_allow_list_names_existing_chapters() -> None:
    stems = {path.stem for path in notebooks.chapters()}
    assert {cell.rpartition("-")[0] for cell in ALLOWED} <= stems


def test_chapter_gives_the_same_from_another_folder() -> None:
    """The package and its data are found from wherever a kernel starts: nbval runs in book/, this in the root.

    https://github.com/jupyter-book/jupyter-book/issues/705
    """
    path = notebooks.chapters(["cost"])[0]
    stored = path.read_text(encoding="utf-8")
    elsewhere = notebooks.execute(notebooks.from_text(stored), path=notebooks.ROOT / path.name)
    assert notebooks.to_text(notebooks.normalise(elsewhere, stem=path.stem)) == stored


@pytest.mark.parametrize("path", notebooks.chapters(), ids=lambda path: path.stem)
def test_code_in_view_is_a_derivation(path: Path) -> None:
    """A reader for whom the code is noise finds it folded; the steps in SymPy, which are the point, stay in view."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    shown = [
        "".join(cell["source"])
        for cell in cells
        if cell["cell_type"] == "code" and not {"hide-input", "remove-cell"} & {*cell["metadata"].get("tags", ())}
    ]
    assert [source for source in shown if not re.search(r"limit\(|simplify\(|\.subs\(", source)] == []
