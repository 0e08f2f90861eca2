"""Style, types and floors: what a tool says about the tree is a test like any other."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BIN / command[0], *command[1:]], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "command",
    [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",), ("lint-imports",)],
    ids=["lint", "format", "types", "floors"],
)
def test_tree_passes(command: tuple[str, ...]) -> None:
    done = run(*command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_package_under_test_lies_in_this_tree() -> None:
    """An editable installation of another checkout would be tested in its place."""
    import analysis

    assert Path(analysis.__file__).resolve().parent == ROOT / "analysis"


def pins(name: str) -> dict[str, str]:
    """Packages of a requirements file with their versions; a line that pins nothing has an empty one."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    packages = [line for line in lines if line and not line.startswith(("#", "-"))]
    return {package: number for package, _, number in (line.partition("==") for line in packages)}


def test_what_prints_stored_outputs_is_pinned_to_one_version() -> None:
    """Outputs are compared to the letter, so another pandas is a change of its own, with the outputs that it moves.

    https://github.com/volkamerlab/teachopencadd/pull/332 shows what else happens; and jupyter-book 2 makes no HTML of
    such a book, without a word: https://github.com/brainhackorg/brainhack_jupyter_book/issues/201.
    """
    direct, locked = pins("requirements.txt"), pins("requirements.lock")
    assert all(re.fullmatch(r"[\d.]+(post\d+)?", number) for number in (direct | locked).values())
    assert {package: locked[package] for package in direct} == direct
    for printer in ("altair", "numpy", "pandas", "sympy", "jupyter-book"):
        assert version(printer) == direct[printer]
    assert direct["jupyter-book"].startswith("1.")


@pytest.mark.parametrize(
    ("below", "above"),
    [("model/cost.py", "analysis.evidence.scenarios"), ("present/charts.py", "analysis.model.cost")],
    ids=["upward", "sideways"],
)
def test_import_against_the_floors_is_refused(tmp_path: Path, below: str, above: str) -> None:
    shutil.copytree(ROOT / "analysis", tmp_path / "analysis", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    module = tmp_path / "analysis" / below
    module.write_text(module.read_text() + f"\nimport {above}\n")
    done = run("lint-imports", "--no-cache", cwd=tmp_path)
    assert done.returncode == 1
    assert f"is not allowed to import {above.rpartition('.')[0]}" in done.stdout


def unstable_sorts(text: str) -> Iterator[int]:
    """Find sorts whose order of equal values depends on the processor: NumPy has other loops for newer ones."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named = {keyword.arg for keyword in node.keywords}
            # several columns are always sorted in a stable way
            several = bool(node.args) and isinstance(node.args[0], ast.List)
            if node.func.attr in ("sort_values", "argsort") and "kind" not in named and not several:
                yield node.lineno


def test_equal_values_stay_in_order_on_every_processor() -> None:
    """A table sorted by price had its ties in another order on a processor without AVX-512."""
    found = [f"{path.relative_to(ROOT)}:{n}" for path in (ROOT / "analysis").rglob("*.py")
             for n in unstable_sorts(path.read_text(encoding="utf-8"))]  # fmt: skip
    for path in (ROOT / "book").rglob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                found += [f"{path.name} {cell['id']}" for _ in unstable_sorts("".join(cell["source"]))]
    assert found == [], 'a sort without kind="stable"'
    assert list(unstable_sorts('f.sort_values("a")\nf.sort_values("a", kind="stable")\nf.sort_values(["a"])')) == [1]


@pytest.mark.soak
@pytest.mark.parametrize("floor", ["symbolic", "model"])
def test_every_module_of_a_floor_has_its_place_on_its_page(floor: str) -> None:
    """Asked before a release; parts that only serve the module beside them need none."""
    parts = {"model.simulation.coefficients", "model.simulation.compiled", "model.simulation.plain"}
    page = (ROOT / "book" / "api" / f"{floor}.md").read_text(encoding="utf-8")
    there = {
        ".".join(path.relative_to(ROOT / "analysis").with_suffix("").parts)
        for path in (ROOT / "analysis" / floor).rglob("*.py")
        if path.stem != "__init__"
    }
    assert [name for name in sorted(there - parts) if f".. automodule:: analysis.{name}\n" not in page] == []
