"""Executing, normalising and guarding notebooks, on small ones made here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from analysis.inputs import InputError
from analysis.publish import notebooks


def good(path: Path) -> Path:
    """Write a notebook with nothing wrong."""
    result = new_output("execute_result", {"text/plain": "2", "text/html": "<b>2</b>"}, execution_count=1)
    cells = [
        new_markdown_cell("# A title", id=f"{path.stem}-01"),
        new_code_cell("1 + 1", id=f"{path.stem}-02", execution_count=1, outputs=[result]),
        new_code_cell("x = 1", id=f"{path.stem}-03", execution_count=2),
    ]
    notebook = notebooks.normalise(new_notebook(cells=cells), stem=path.stem)
    path.write_text(notebooks.to_text(notebook))
    return path


def shows(data: dict[str, Any]) -> Callable[[Any], None]:
    return lambda nb: nb.cells[1].update(outputs=[new_output("display_data", data)])


def writes(name: str, text: str) -> Callable[[Any], None]:
    return lambda nb: nb.cells[1].update(outputs=[new_output("stream", name=name, text=text)])


def sources(text: str) -> Callable[[Any], None]:
    return lambda nb: nb.cells[1].update(source=text)


BROKEN: dict[str, tuple[Callable[[Any], None], str]] = {
    "not executed": (lambda nb: nb.cells[2].update(execution_count=None), "was not executed"),
    "out of order": (lambda nb: nb.cells[2].update(execution_count=7), "execution counts are [1, 7]"),
    "error": (
        lambda nb: nb.cells[1].update(outputs=[new_output("error", ename="ValueError", evalue="no", traceback=[])]),
        "ends in an error: ValueError: no",
    ),
    "stripped": (lambda nb: nb.cells[1].update(outputs=[]), "no cell has an output"),
    "empty figure": (sources("display.figure(chart)"), "has lost the output of display.figure()"),
    "marker in a tag": (lambda nb: nb.cells[1].metadata.update(tags=["nbval-skip"]), "carries nbval-skip"),
    "exception tag": (lambda nb: nb.cells[1].metadata.update(tags=["raises-exception"]), "carries raises-exception"),
    "marker in a comment": (sources("1 + 1  # NBVAL_IGNORE_OUTPUT"), "carries NBVAL_IGNORE_OUTPUT"),
    "picture": (shows({"image/png": "aGk="}), "image/png, which is not compared"),
    "photograph": (shows({"image/jpeg": "aGk="}), "image/jpeg, which is not compared"),
    "path in an output": (writes("stdout", "/home/me/data.csv"), "shows an absolute path: '/home/m"),
    "path in a source": (sources("open('/tmp/x')"), "holds an absolute path"),
    "windows path": (writes("stdout", r"C:\Users"), "shows an absolute path"),
    "timing": (writes("stdout", "Wall time: 3 s"), "shows a timing"),
    "timing magic": (sources("%time 1 + 1"), "holds a timing"),
    "standard error": (writes("stderr", "careful"), "writes to standard error: 'careful'"),
    "address": (shows({"text/plain": "<object object at 0x7f3a2c1d>"}), "shows a random-looking id"),
    "uuid": (shows({"text/html": "<p id='3f2504e0-4f89-41d3-9a0c-0305e82c3301'>"}), "shows a random-looking id"),
    "script": (shows({"text/html": "<script>alert(1)</script>"}), "HTML with a script"),
    "handler": (shows({"text/html": '<b onclick="x()">x</b>'}), "HTML with a script"),
    "oversized": (writes("stdout", "x" * (notebooks.MAX_OUTPUT_BYTES + 1)), "has an output of 500,001 bytes"),
    "kernel": (lambda nb: nb.metadata.kernelspec.update(name="my-env"), "not called python3"),
    "same id": (lambda nb: nb.cells[2].update(id=nb.cells[1].id), "two cells have the id"),
    "left by an editor": (lambda nb: nb.cells[1].metadata.update(collapsed=True), "is not normalised"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_guard_tells(tmp_path: Path, name: str) -> None:
    path = good(tmp_path / "a.ipynb")
    change, told = BROKEN[name]
    notebook = notebooks.from_text(path.read_text())
    change(notebook)
    path.write_text(notebooks.to_text(notebook))
    assert any(told in line for line in notebooks.problems(path)), notebooks.problems(path)


def test_guard_is_silent_on_a_good_notebook(tmp_path: Path) -> None:
    assert notebooks.problems(good(tmp_path / "a.ipynb")) == []


def test_guard_tells_a_twin_page(tmp_path: Path) -> None:
    path = good(tmp_path / "a.ipynb")
    path.with_suffix(".md").touch()
    assert notebooks.problems(path) == ["a.ipynb: a twin a.md lies beside it"]


@pytest.mark.parametrize(("reason", "told"), [("needs the hour", 0), (" ", 1)])
def test_listed_marker_needs_a_reason(tmp_path: Path, reason: str, told: int) -> None:
    path = good(tmp_path / "a.ipynb")
    path.write_text(path.read_text().replace('"1 + 1"', '"1 + 1  # NBVAL_SKIP"'))
    assert len(notebooks.problems(path, allowed={"a-02": reason})) == told


def test_listed_marker_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = good(tmp_path / "a.ipynb")
    told = notebooks.problems(path, allowed={"a-02": "was needed once", "b-02": "of another chapter"})
    assert told == ["a.ipynb: the allow-list names a-02, which carries no marker"]


def test_normalised_twice_is_normalised_once(tmp_path: Path) -> None:
    path = good(tmp_path / "a.ipynb")
    text = path.read_text()
    again = notebooks.normalise(notebooks.from_text(text), stem="a")
    assert notebooks.to_text(again) == text


def test_normalise_keeps_ids_and_gives_new_ones_after_the_highest() -> None:
    ids = ["a-02", "random", "a-07", "a-02"]
    notebook = new_notebook()
    notebook.cells = [new_code_cell(f"x{n}", id=name) for n, name in enumerate(ids)]
    notebook.cells.insert(1, new_code_cell("  \n", id="a-05"))
    normal = notebooks.normalise(notebook, stem="a")
    assert [cell.id for cell in normal.cells] == ["a-02", "a-08", "a-07", "a-09"]


def test_normalise_drops_what_differs_between_two_runs() -> None:
    pieces = [new_output("stream", name="stdout", text=text) for text in ("a", "b")]
    cell = new_code_cell("f()  \n\n", execution_count=9, outputs=pieces)
    cell.metadata = {"tags": ["hide-input"], "execution": {"iopub.status.busy": "2026-01-01T00:00:00Z"}}
    normal = notebooks.normalise(new_notebook(cells=[cell], metadata={"widgets": {}}), stem="a")
    assert normal.cells[0] == {
        "id": "a-01",
        "cell_type": "code",
        "metadata": {"tags": ["hide-input"]},
        "source": "f()",
        "execution_count": 1,
        "outputs": [{"output_type": "stream", "name": "stdout", "text": "ab"}],
    }
    assert set(normal.metadata) == {"kernelspec", "language_info"}


def test_failing_cell_is_named_in_one_line(tmp_path: Path) -> None:
    cells = [new_code_cell("x = 1"), new_code_cell("x / 0\n", id="bad")]
    with pytest.raises(notebooks.CellError) as told:
        notebooks.execute(new_notebook(cells=cells), path=tmp_path / "a.ipynb")
    assert str(told.value) == "a.ipynb: cell 2 (bad: x / 0): ZeroDivisionError: division by zero"


def test_execution_ends_where_warnings_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's policy is not handed to kernels: https://github.com/jupyter/nbconvert/issues/2186."""
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    done = notebooks.execute(new_notebook(cells=[new_code_cell("1 + 1")]), path=tmp_path / "a.ipynb")
    assert done.cells[0].outputs[0].data["text/plain"] == "2"


def test_a_kernel_that_finds_its_ports_taken_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the first one said is not shown, and the second one runs the cells."""
    late = (
        "import os, pathlib, sys\nmark = pathlib.Path(sys.argv[1])\n"
        "if not mark.exists():\n    mark.touch()\n    sys.exit('Address already in use')\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
    )
    first, *rest = notebooks.KERNEL
    monkeypatch.setattr(notebooks, "KERNEL", (first, "-c", late, str(tmp_path / "mark"), *rest))
    done = notebooks.execute(new_notebook(cells=[new_code_cell("1 + 1")]), path=tmp_path / "a.ipynb")
    assert done.cells[0].outputs[0].data["text/plain"] == "2"
    assert (tmp_path / "mark").exists()
    assert capfd.readouterr().err == ""


def test_kernels_that_never_start_are_one_line_with_their_own_reason(tmp_path: Path) -> None:
    """In a process of its own: a start that failed may leave something to complain of at its end."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom nbformat.v4 import new_code_cell, new_notebook\n"
        "from analysis.publish import notebooks\n"
        "notebooks.KERNEL = (sys.executable, '-c', 'raise SystemExit(\"no port is free\")')\n"
        "try:\n    notebooks.execute(new_notebook(cells=[new_code_cell('1')]), path=Path('a.ipynb').resolve())\n"
        "except notebooks.CellError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"a.ipynb: no kernel started in {notebooks.STARTS} tries: no port is free\n"
    assert done.stderr == ""


def test_refresh_writes_only_what_changed(tmp_path: Path) -> None:
    for name, source in (("a", "2"), ("b", "3"), ("c", "1 / 0")):
        (tmp_path / f"{name}.ipynb").write_text(nbformat.writes(new_notebook(cells=[new_code_cell(source)])))
    paths = notebooks.chapters(book=tmp_path)
    stored = [path.read_text() for path in paths]
    assert notebooks.refresh(paths, write=False)[0] == paths[:2]
    assert [path.read_text() for path in paths] == stored
    changed, failed = notebooks.refresh(paths)
    assert changed == paths[:2]
    assert len(failed) == 1
    assert failed[0].startswith("c.ipynb: cell 1 (")
    assert failed[0].endswith(": 1 / 0): ZeroDivisionError: division by zero")
    assert notebooks.refresh(paths[:2]) == ([], [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ipynb", "b.ipynb", "c.ipynb"]


def test_unknown_chapter_lists_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "cost.ipynb").touch()
    assert notebooks.chapters(["book/cost.ipynb"], book=tmp_path) == [tmp_path / "cost.ipynb"]
    with pytest.raises(InputError, match=r"chapter: got 'cots', expected one of cost"):
        notebooks.chapters(["cots"], book=tmp_path)
