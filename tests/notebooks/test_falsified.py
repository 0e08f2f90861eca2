"""Tests of the tests: a falsified copy of the tree must be told.

Each runs in a copy whose package comes before an installed one, else the original would be tested in its place.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from analysis.publish import notebooks

ROOT = notebooks.ROOT
NOT_COPIED = shutil.ignore_patterns(
    ".venv", "_build", "build", ".git", ".*_cache", "__pycache__", "*.egg-info", ".hypothesis"
)


class Tree:
    """A copy of the project in which anything may be broken."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.chapter = root / "book" / "cost.ipynb"
        shutil.copytree(ROOT, root, ignore=NOT_COPIED)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.root), "NO_COLOR": "1"}
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)

    def compare(self, *chapters: Path) -> tuple[set[str], str]:
        """Run nbval on chapters; returns the cells that failed and the whole report."""
        paths = [str(path.relative_to(self.root)) for path in chapters]
        done = self.run("-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *paths)
        return set(re.findall(r"FAILED book/\S+::(Cell \d+)", done.stdout)), done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    copy = Tree(tmp_path / "copy")
    found = copy.run("-c", "import analysis; print(analysis.__file__)").stdout
    assert Path(found.strip()).is_relative_to(copy.root), "the copy must be tested, not the original"
    return copy


def change_digit(text: str) -> str:
    """Change the first digit, or the first letter of a formula without one."""
    changed = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), text, count=1)
    return changed if changed != text else text.replace("c", "d", 1)


def change_table(html: str) -> str:
    return re.sub(r'(?<=<td class="number">)[^<]*\d[^<]*', lambda cell: change_digit(cell[0]), html, count=1)


def change_chart(spec: dict[str, Any]) -> dict[str, Any]:
    row = next(iter(spec["datasets"].values()))[0]
    column = next(key for key, value in row.items() if isinstance(value, int | float))
    row[column] *= 1.01
    return spec


def falsify(path: Path, kind: str, change: Callable[[Any], Any]) -> str:
    """Change the first stored output of a kind; returns the cell as nbval calls it."""
    notebook = notebooks.from_text(path.read_text())
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    number, output = next(
        (n, out) for n, cell in enumerate(code) for out in cell.outputs if kind in out.get("data", {})
    )
    before = nbformat.from_dict(output)["data"][kind]
    output["data"][kind] = change(nbformat.from_dict(before))
    assert output["data"][kind] != before
    path.write_text(notebooks.to_text(notebook))
    return f"Cell {number}"


def test_changed_digit_in_table_chart_and_formula_is_told(tree: Tree) -> None:
    falsified = {
        falsify(tree.chapter, "text/html", change_table),
        falsify(tree.chapter, "application/vnd.vegalite.v5+json", change_chart),
        falsify(tree.chapter, "text/latex", change_digit),
    }
    assert len(falsified) == 3
    failed, report = tree.compare(tree.chapter)
    assert failed == falsified, report


def test_changed_data_row_is_told_and_a_new_run_shows_it(tree: Tree) -> None:
    """No cache stands between a price and the page: old outputs fail, a refresh brings the new number.

    https://github.com/jupyter-book/jupyter-book/issues/1633
    """
    double_prices(tree.root / "data" / "node_prices.csv")
    failed, report = tree.compare(tree.chapter)
    assert failed, report
    before = tree.chapter.read_text()
    done = tree.run("-m", "analysis.publish.notebooks", "cost")
    assert "changed: book/cost.ipynb" in done.stdout, done.stderr
    assert tree.chapter.read_text() != before
    assert tree.compare(tree.chapter)[0] == set()
    assert 'execute_notebooks: "off"' in (tree.root / "_config.yml").read_text()


def double_prices(path: Path) -> None:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row |= {"value": str(2 * float(row["value"])), "low": "", "high": ""}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


#: A row of three tables: what to raise by a fifth (still possible: a share stays below 1), a chapter whose page shows
#: it, and one that never reads the table.
ROWS = {
    "on_chip": ("value", "ledger", "cost"),
    "fleet_utilization": ("value", "data", "cost"),
    "ownership": ("value", "own-rent-api", "roofline"),
}


@pytest.mark.soak
@pytest.mark.parametrize("table", ROWS)
def test_changed_row_turns_exactly_the_chapters_red_that_show_it(tree: Tree, table: str) -> None:
    """The comparison fails where a new run would give another page, and nowhere else."""
    column, shows, never_reads = ROWS[table]
    path = tree.root / "data" / f"{table}.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0][column] = str(1.2 * float(rows[0][column]))
    rows[0] |= {"low": "", "high": ""}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    chapters = sorted((tree.root / "book").glob("*.ipynb"))
    paths = [str(chapter.relative_to(tree.root)) for chapter in chapters]
    compared = tree.run("-m", "pytest", "-p", "no:cacheprovider", *paths).stdout
    red = set(re.findall(r"FAILED book/(\S+?)\.ipynb::", compared))
    done = tree.run("-m", "analysis.publish.notebooks", "--check")
    assert red == set(re.findall(r"differs: book/(\S+)\.ipynb", done.stdout)), done.stderr
    assert shows in red
    assert never_reads not in red


def test_stripped_chapter_is_told(tree: Tree) -> None:
    """Strict comparison passes a stripped notebook: it has nothing to compare. The guard does not."""
    notebook = notebooks.from_text(tree.chapter.read_text())
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    tree.chapter.write_text(notebooks.to_text(notebook))
    assert tree.compare(tree.chapter)[0] == set()
    found = notebooks.problems(tree.chapter)
    assert any("was not executed" in line for line in found)
    assert any("no cell has an output" in line for line in found)
    assert any("has lost the output of display.figure" in line for line in found)


def test_kernel_that_is_not_installed_does_not_matter(tree: Tree) -> None:
    """Chapters run in the environment that tests them, whatever kernel name an editor wrote.

    https://github.com/computationalmodelling/nbval/issues/13
    """
    notebook = notebooks.from_text(tree.chapter.read_text())
    notebook.metadata.kernelspec = {"name": "my-env", "display_name": "My env", "language": "python"}
    tree.chapter.write_text(notebooks.to_text(notebook))
    failed, report = tree.compare(tree.chapter)
    assert failed == set(), report
    assert " passed" in report
    assert any("not called python3" in line for line in notebooks.problems(tree.chapter))
