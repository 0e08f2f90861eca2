"""Execute, normalise and check the executable chapters.

``python -m analysis.publish.notebooks`` runs every chapter in a clean kernel and writes it back only if
something changed; ``--check`` compares instead of writing. `problems` is the guard: it finds what strict
comparison of outputs does not see, above all outputs that are not there.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from types import MappingProxyType
from typing import Any

import nbformat
from nbformat import NotebookNode

from analysis.inputs import InputError, write_files
from analysis.reference.tables import nearest

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python"}
#: The command of a kernel, of this very Python: a kernel specification of the user would win over the environment.
KERNEL = (sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR")
#: A kernel is given its ports before it takes them, and another program may be faster.
STARTS = 3
TIMEOUT_S = 300
MAX_OUTPUT_BYTES = 500_000
MAX_NOTEBOOK_BYTES = 2_000_000


class CellError(RuntimeError):
    """A chapter that does not run: which notebook, which cell, which error."""


def chapters(names: Sequence[str] = (), *, book: Path = BOOK) -> list[Path]:
    """List the notebooks of a book, or those that are named.

    Parameters
    ----------
    names : sequence of str
        File names with or without ending, relative to the book folder; none means all.
    book : Path
        The folder.

    Raises
    ------
    InputError
        If no notebook has that name; the message lists the nearest.
    """
    found = sorted(path for path in book.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
    known = {path.relative_to(book).with_suffix("").as_posix(): path for path in found}
    chosen = []
    for name in names:
        stem = name.removesuffix(".ipynb").removeprefix("book/")
        if stem not in known:
            raise InputError("chapter", name, f"one of {nearest(stem, known)}")
        chosen.append(known[stem])
    return chosen or found


# ---------------------------------------------------------------------------------------------- execute


def execute(
    notebook: NotebookNode, *, path: Path, environment: Mapping[str, str] = MappingProxyType({})
) -> NotebookNode:
    """Run all cells of a notebook in a new kernel of this very Python.

    Parameters
    ----------
    notebook : NotebookNode
        Changed in place.
    path : Path
        Where it lies: its folder is the kernel's, its name stands in the message.
    environment : mapping of str to str
        Variables that the kernel gets beside ours.

    Raises
    ------
    CellError
        If a cell fails, or no kernel starts.
    """
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    # A warning of the kernel's own event loop, turned into an error by the caller's environment, would hang it
    # (https://github.com/jupyter/nbconvert/issues/2186). Warnings of a chapter show as outputs and are refused there.
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONWARNINGS"} | dict(environment)
    for _ in range(STARTS):
        # what a kernel says besides its outputs is of use only if it does not start
        with tempfile.TemporaryFile() as said:
            try:
                _run(notebook, folder=str(path.parent), env=variables, stderr=said)
            except CellExecutionError as error:
                raise CellError(f"{path.name}: {_failed_cell(notebook)}: {error.ename}: {error.evalue}") from None
            except (CellTimeoutError, DeadKernelError) as error:
                reason = str(error).strip().splitlines()[0]
                raise CellError(f"{path.name}: {_failed_cell(notebook)}: {reason}") from None
            except RuntimeError as error:
                said.seek(0)
                lines = [str(error), *said.read().decode(errors="replace").split("\n")]
                reason = next(line.strip() for line in reversed(lines) if line.strip())
            else:
                return notebook
    raise CellError(f"{path.name}: no kernel started in {STARTS} tries: {reason}")


def _run(notebook: NotebookNode, *, folder: str, **options: Any) -> None:
    """Run all cells once; a kernel that does not start is a RuntimeError, and nothing of it stays."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    class ThisPython(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            return KernelSpec(argv=list(KERNEL), display_name="Python 3", language="python")

    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=ThisPython()),
        timeout=TIMEOUT_S,
        record_timing=False,
        resources={"metadata": {"path": folder}},
    )
    try:
        # a manager that was handed over is not shut down unless asked
        asyncio.run(client.async_execute(cwd=folder, cleanup_kc=True, **options))
    finally:
        if client.km is None:
            # it was shut down, but where a start failed it is not taken off what is done at exit
            atexit.unregister(client._cleanup_kernel)


def _failed_cell(notebook: NotebookNode) -> str:
    for number, cell in _code_cells(notebook):
        if any(output["output_type"] == "error" for output in cell["outputs"]):
            return _place(number, cell)
    last = [(number, cell) for number, cell in _code_cells(notebook) if cell["execution_count"] is not None]
    return _place(*last[-1]) if last else "cell 1"


def _code_cells(notebook: NotebookNode) -> list[tuple[int, NotebookNode]]:
    return [(n, cell) for n, cell in enumerate(notebook["cells"], 1) if cell["cell_type"] == "code"]


def _place(number: int, cell: NotebookNode) -> str:
    first = next((line.strip() for line in cell["source"].splitlines() if line.strip()), "")
    return f"cell {number} ({cell.get('id', 'no id')}: {first[:60]})"


# -------------------------------------------------------------------------------------------- normalise


def normalise(notebook: NotebookNode, *, stem: str) -> NotebookNode:
    """Return the notebook without anything that differs between two runs or two editors.

    Cell ids are kept where they are of the form ``stem-03`` and given where not; empty cells go; of cell
    metadata only tags stay; execution counts run from 1 in order; no transient or timing data.

    Parameters
    ----------
    notebook : NotebookNode
    stem : str
        What cell ids begin with: the file's name without ending.
    """
    cells = [cell for cell in notebook["cells"] if cell["source"].strip()]
    form = re.compile(rf"{re.escape(stem)}-(\d{{2,}})")
    taken: set[str] = set()
    for cell in cells:
        identity = cell.get("id", "")
        if not form.fullmatch(identity) or identity in taken:
            cell["id"] = ""
        taken.add(cell["id"])
    highest = max((int(match[1]) for match in map(form.fullmatch, taken) if match), default=0)
    count = 0
    normal = []
    for cell in cells:
        if not cell["id"]:
            highest += 1
            cell["id"] = f"{stem}-{highest:02d}"
        plain: dict[str, Any] = {
            "id": cell["id"],
            "cell_type": cell["cell_type"],
            "metadata": {"tags": list(cell["metadata"]["tags"])} if cell["metadata"].get("tags") else {},
            "source": "\n".join(line.rstrip() for line in cell["source"].strip("\n").splitlines())
            if cell["cell_type"] == "code"
            else cell["source"].strip("\n"),
        }
        if cell["cell_type"] == "code":
            executed = cell.get("execution_count") is not None
            count += executed
            plain["execution_count"] = count if executed else None
            plain["outputs"] = _normal_outputs(cell["outputs"], plain["execution_count"])
        normal.append(plain)
    result = nbformat.from_dict(
        {
            "cells": normal,
            "metadata": {"kernelspec": KERNELSPEC, "language_info": LANGUAGE},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )
    nbformat.validate(result)
    return result


def _normal_outputs(outputs: Iterable[Mapping[str, Any]], count: int | None) -> list[dict[str, Any]]:
    normal: list[dict[str, Any]] = []
    for output in outputs:
        plain = {key: value for key, value in output.items() if key != "transient"}
        if plain["output_type"] == "execute_result":
            plain["execution_count"] = count
        before = normal[-1] if normal else {}
        if plain["output_type"] == "stream" and before.get("name") == plain["name"]:
            # a stream arrives in as many pieces as the machine pleases
            before["text"] += plain["text"]
        else:
            normal.append(plain)
    return normal


def to_text(notebook: NotebookNode) -> str:
    """Write a notebook as the text of its file."""
    return str(nbformat.v4.writes(notebook)).rstrip("\n") + "\n"


def from_text(text: str) -> NotebookNode:
    """Read the text of a notebook file as it is: the usual reader mends what the guard has to tell."""
    return nbformat.v4.reads(text)


def refreshed(path: Path, environment: Mapping[str, str] = MappingProxyType({})) -> str:
    """Execute a notebook file and return the normalised text, without writing it.

    Raises
    ------
    CellError
        If a cell fails.
    """
    notebook = from_text(path.read_text(encoding="utf-8"))
    return to_text(normalise(execute(notebook, path=path, environment=environment), stem=path.stem))


def refresh(
    paths: Sequence[Path],
    *,
    write: bool = True,
    workers: int = 2,
    environment: Mapping[str, str] = MappingProxyType({}),
    progress: Callable[[Path], None] = lambda path: None,
) -> tuple[list[Path], list[str]]:
    """Execute notebooks side by side, each in its own kernel, and write back those that changed.

    Parameters
    ----------
    paths : sequence of Path
    write : bool
        False compares only.
    workers : int
        Kernels at a time.
    environment : mapping of str to str
        Variables that the kernels get beside ours.
    progress : callable
        Called with the path of each notebook that is done.

    Returns
    -------
    changed : list of Path
        Notebooks whose stored text was not what a run gives.
    failed : list of str
        One message for each notebook that did not run.

    Raises
    ------
    InputError
        If a notebook can't be written back; it is then as it was.
    """
    changed, failed = [], []
    pool = ThreadPoolExecutor(max_workers=workers)
    try:
        running = {pool.submit(refreshed, path, environment): path for path in paths}
        for done in as_completed(running):
            path = running[done]
            try:
                text = done.result()
            except CellError as error:
                failed.append(str(error))
            else:
                if text != path.read_text(encoding="utf-8"):
                    changed.append(path)
                    if write:
                        write_files([(path, text)])
            progress(path)
    finally:
        # whoever interrupts waits for the chapters that run, not for those that have not begun
        pool.shutdown(cancel_futures=True)
    return sorted(changed), sorted(failed)


# ------------------------------------------------------------------------------------------------ guard

MARKERS = re.compile(
    r"#\s*(NBVAL_IGNORE_OUTPUT|NBVAL_CHECK_OUTPUT|NBVAL_RAISES_EXCEPTION|NBVAL_SKIP|PYTEST_VALIDATE_IGNORE_OUTPUT)"
)
MARKER_TAGS = frozenset(
    {
        "nbval-ignore-output",
        "nbval-check-output",
        "nbval-raises-exception",
        "nbval-skip",
        "raises-exception",
        "pytest-validate-ignore-output",
    }
)
#: Kinds of output that nbval passes over.
UNCOMPARED = ("image/png", "image/jpeg", "application/vnd.jupyter.widget-view+json")
#: What must not stand in a source or an output, and what to call it.
STRAYS = {
    "an absolute path": re.compile(
        r"(?<![\w.:/-])/(?:home|root|tmp|Users|var|opt|usr|mnt|private|srv|work)/\w|\b[A-Z]:\\\w|file://"
    ),
    "a timing": re.compile(
        r"\b(?:CPU times|Wall time):|\d ?(?:[mµn]?s) ± |\bper loop\b|^\s*%%?(?:time|timeit|prun)\b", re.MULTILINE
    ),
    "a random-looking id": re.compile(
        r"\b0x[0-9a-f]{6,}\b|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|altair-viz-[0-9a-f]{8,}", re.IGNORECASE
    ),
}
ACTIVE_HTML = re.compile(r"<script|<iframe|<style|\son[a-z]+\s*=\s*[\"']", re.IGNORECASE)
#: Calls that show something, and the kind of output they leave.
SHOWS = {
    "display.figure(": "application/vnd.vegalite.v5+json",
    "display.table(": "text/html",
    "display.equation(": "text/latex",
    "display.glue(": "application/papermill.record/text/plain",
    "display.download(": "application/vnd.book.download+json",
}


def problems(path: Path, *, allowed: Mapping[str, str] | None = None) -> list[str]:
    """Say what is wrong with a stored notebook, one line each; nothing is executed.

    Parameters
    ----------
    path : Path
        The notebook.
    allowed : mapping of cell id to reason, optional
        Cells that may carry a marker that turns the comparison off. An entry for a cell of this notebook that
        carries none is itself a problem.

    Returns
    -------
    list of str
        Empty if all is well.
    """
    text = path.read_text(encoding="utf-8")
    notebook = from_text(text)
    allowed = {cell: why for cell, why in (allowed or {}).items() if cell.rpartition("-")[0] == path.stem}
    found = [f"{path.name}: {what}" for what in _of_notebook(path, notebook, text)]
    marked = set()
    for number, cell in enumerate(notebook["cells"], 1):
        markers = _markers(cell)
        if markers:
            marked.add(cell.get("id", ""))
        unlisted = markers if cell.get("id", "") not in allowed else []
        what = [f"carries {marker} without an entry in the allow-list" for marker in unlisted]
        what += _of_source(cell)
        if cell["cell_type"] == "code":
            what += _of_outputs(cell)
        found += [f"{path.name}: {_place(number, cell)} {line}" for line in what]
    found += [
        f"{path.name}: the allow-list names {cell}, which carries no marker" for cell in allowed if cell not in marked
    ]
    found += [
        f"{path.name}: the allow-list gives no reason for {cell}" for cell, why in allowed.items() if not why.strip()
    ]
    return found


def _of_notebook(path: Path, notebook: NotebookNode, text: str) -> list[str]:
    what = []
    code = [cell for _, cell in _code_cells(notebook)]
    counts = [cell["execution_count"] for cell in code]
    if None not in counts and counts != list(range(1, len(code) + 1)):
        what.append(f"execution counts are {counts}, not 1 to {len(code)} in order")
    if code and not any(cell["outputs"] for cell in code):
        what.append("no cell has an output: they were stripped")
    if notebook["metadata"].get("kernelspec", {}).get("name") != "python3":
        what.append("the kernel is not called python3")
    if path.with_suffix(".md").exists():
        what.append(f"a twin {path.stem}.md lies beside it")
    if len(text.encode()) > MAX_NOTEBOOK_BYTES:
        what.append(f"holds {len(text.encode()):,} bytes, more than {MAX_NOTEBOOK_BYTES:,}")
    twice = [cell for cell, times in Counter(cell.get("id") for cell in notebook["cells"]).items() if times > 1]
    what += [f"two cells have the id {cell}" for cell in twice]
    if not twice and to_text(normalise(from_text(text), stem=path.stem)) != text:
        what.append("is not normalised (run: make notebooks)")
    return what


def _markers(cell: NotebookNode) -> list[str]:
    tags = [tag for tag in cell["metadata"].get("tags", ()) if tag in MARKER_TAGS]
    return tags + [match[1] for match in MARKERS.finditer(cell["source"]) if cell["cell_type"] == "code"]


def _of_source(cell: NotebookNode) -> list[str]:
    return [
        f"holds {name}: {match[0]!r}"
        for name, form in STRAYS.items()
        for match in [form.search(cell["source"])]
        if match
    ]


def _of_outputs(cell: NotebookNode) -> list[str]:
    what = []
    if cell["execution_count"] is None:
        what.append("was not executed")
    kinds = {kind for output in cell["outputs"] for kind in output.get("data", {})}
    what += [
        f"has lost the output of {call})"
        for call, kind in SHOWS.items()
        if call in cell["source"] and kind not in kinds
    ]
    for output in cell["outputs"]:
        if output["output_type"] == "error":
            what.append(f"ends in an error: {output['ename']}: {output['evalue']}")
            continue
        if output.get("name") == "stderr":
            what.append(f"writes to standard error: {output['text'].strip()[:60]!r}")
        data = output.get("data", {"text/plain": output.get("text", "")})
        what += [f"shows {kind}, which is not compared" for kind in UNCOMPARED if kind in data]
        if ACTIVE_HTML.search(str(data.get("text/html", ""))):
            what.append("shows HTML with a script, a style or a handler")
        written = "\n".join(v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in data.values())
        if len(written.encode()) > MAX_OUTPUT_BYTES:
            what.append(f"has an output of {len(written.encode()):,} bytes, more than {MAX_OUTPUT_BYTES:,}")
        what += [
            f"shows {name}: {match[0]!r}" for name, form in STRAYS.items() for match in [form.search(written)] if match
        ]
    return what


# ------------------------------------------------------------------------------------------ command line


def main() -> None:
    """Run the command line."""
    import click
    from tqdm import tqdm

    @click.command()
    @click.argument("names", nargs=-1)
    @click.option("--check", is_flag=True, help="Compare with the stored outputs, write nothing.")
    @click.option("--workers", default=2, show_default=True, help="Kernels at a time.")
    def notebooks(names: tuple[str, ...], check: bool, workers: int) -> None:
        """Execute and normalise chapters; without NAMES all of them."""
        try:
            paths = chapters(names)
        except InputError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(2)
        with tqdm(total=len(paths), unit="chapter", desc="executing") as bar:

            def step(path: Path) -> None:
                bar.set_postfix_str(path.stem)
                bar.update()

            try:
                changed, failed = refresh(paths, write=not check, workers=workers, progress=step)
            except InputError as error:
                bar.close()
                click.echo(f"error: {error}", err=True)
                sys.exit(2)
        for path in changed:
            click.echo(f"{'differs' if check else 'changed'}: {path.relative_to(ROOT)}")
        for message in failed:
            click.echo(f"error: {message}", err=True)
        if not changed and not failed:
            click.echo(f"nothing changed in {len(paths)} chapters")
        sys.exit(1 if failed or (check and changed) else 0)

    notebooks()


if __name__ == "__main__":
    main()
