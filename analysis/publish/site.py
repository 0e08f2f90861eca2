"""Build the site: ``python -m analysis.publish.site``.

Nothing is executed: the pages show the stored outputs of the chapters.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis.inputs import InputError, Words
from analysis.publish.notebooks import ROOT

#: Smaller than this no page is more than its frame.
MIN_PAGE_BYTES = 2_000
#: The command line of jupyter-book has no module that -m could run.
#: A build makes millions of nodes and drops few: looking for dead ones less often takes a fifth off its time.
_JUPYTER_BOOK = "import gc; gc.set_threshold(200_000, 100, 100); from jupyter_book.cli.main import main; main()"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NO_ROOM = re.compile(r"\[Errno \d+\] (No space left on device|File too large|Read-only file system)")
_STEP = re.compile(r"(reading sources|writing output)\.\.\. \[ *(\d+)%\]")


class BuildError(RuntimeError):
    """A site that could not be built; the message holds the warnings and errors of the build."""


def pages(root: Path = ROOT) -> list[str]:
    """List the pages of the table of contents in reading order, as paths without ending."""
    import yaml

    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))

    def below(part: Any) -> list[str]:
        if isinstance(part, list):
            return [page for item in part for page in below(item)]
        if isinstance(part, dict):
            own = [part[key] for key in ("root", "file") if key in part]
            return own + [page for key in ("parts", "chapters", "sections") for page in below(part.get(key, []))]
        return []

    return [page.removesuffix(".md").removesuffix(".ipynb") for page in below(contents)]


def build(
    root: Path = ROOT, *, out: Path | None = None, progress: Callable[[str, int], None] = lambda stage, percent: None
) -> Path:
    """Build the site of a tree, with every warning an error.

    Parameters
    ----------
    root : Path
        Folder with ``_config.yml`` and ``_toc.yml``.
    out : Path, optional
        Where ``_build`` goes; the root itself if not given.
    progress : callable
        Called with the stage and its percentage.

    Returns
    -------
    Path
        The folder with the pages.

    Raises
    ------
    BuildError
        If the build fails or warns, or a page of the table of contents is missing or empty.
    OSError
        If there is no room for the pages, or no leave to write them.

    Notes
    -----
    No page holds a date, so two builds of one tree are the same to the byte.
    """
    command = [sys.executable, "-c", _JUPYTER_BOOK, "build", str(root), "-W", "-n", "--keep-going"]
    if out is not None:
        command += ["--path-output", str(out)]
    # the order of sets must not reach a page, and a tree is built with its own package
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(_import_path(root))}
    log = []
    with subprocess.Popen(  # noqa: S603 (our own command)
        command,
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    ) as process:
        try:
            for raw in process.stdout or ():
                log.append(_COLOUR.sub("", raw).rstrip())
                if step := _STEP.search(log[-1]):
                    progress(step[1], int(step[2]))
        except BaseException:
            # whoever interrupts us means the build too
            process.kill()
            raise
    if process.returncode != 0:
        if full := _NO_ROOM.search("\n".join(log)):
            raise OSError(None, full[1])
        told = [line for line in log if re.search(r"WARNING:|ERROR:|CRITICAL:|Error: |Exception occurred", line)]
        raise BuildError("the build failed:\n" + "\n".join(told or log[-20:]))
    site = (out or root) / "_build" / "html"
    missing = missing_pages(site, pages(root))
    if missing:
        raise BuildError("pages are missing or empty: " + ", ".join(missing))
    return site


def _import_path(root: Path) -> list[str]:
    return [str(root), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]


def missing_pages(site: Path, expected: list[str]) -> list[str]:
    """List the pages that a site lacks, or that are no more than an empty frame."""
    paths = {page: site / f"{page}.html" for page in expected}
    lacking = [page for page, path in paths.items() if not path.is_file() or path.stat().st_size < MIN_PAGE_BYTES]
    return lacking + ([] if (site / "index.html").is_file() else ["index"])


def main() -> None:
    """Run the command line."""
    import click
    from tqdm import tqdm

    @click.command()
    @click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for _build; here by default.")
    def site(out: Path | None) -> None:
        """Build the site from the stored outputs."""
        with tqdm(total=200, desc="building", bar_format="{desc} {bar} {elapsed}") as bar:

            def step(stage: str, percent: int) -> None:
                bar.set_description_str(stage)
                bar.n = percent + (100 if stage == "writing output" else 0)
                bar.refresh()

            try:
                folder = build(out=out, progress=step)
            except BuildError as error:
                bar.close()
                click.echo(f"error: {error}", err=True)
                sys.exit(1)
            except OSError as error:
                bar.close()
                refusal = InputError(str(out or ROOT), Words(error.strerror), "a folder that can be written")
                click.echo(f"error: {refusal}", err=True)
                sys.exit(2)
        click.echo(f"open {os.path.relpath(folder / 'index.html')}")

    site()


if __name__ == "__main__":
    main()
