"""The whole report again, with somebody's own prices, in a folder of its own.

The book is copied beside the folder that is asked for, executed and built there, and appears under its name only
when it is complete. The tree that this package lies in is read and never written.
"""

from __future__ import annotations

import html
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from analysis.evidence.claims import ledger
from analysis.inputs import InputError, Words
from analysis.publish import notebooks, site
from analysis.publish.notebooks import ROOT
from analysis.reference import own_prices, tables
from analysis.reference.own_prices import BOOK, OwnPrices

#: What of the tree a site is made from.
PARTS = ("_config.yml", "_toc.yml", "assets", "book")
#: Verdicts are given for these days; a price without a date holds on both.
DAYS = (tables.SNAPSHOT, tables.NEWEST)

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Rerun:
    """What a re-run gave.

    Parameters
    ----------
    folder : Path
        The site; ``index.html`` is its door.
    prices : OwnPrices
        The prices; without rows the book's own.
    flagged : tuple of (int, str)
        Rows of the price file that were used and look odd, with the reason.
    verdict_changes : list of dict
        See `verdict_changes`.
    """

    folder: Path
    prices: OwnPrices
    flagged: tuple[tuple[int, str], ...]
    verdict_changes: list[dict[str, Any]]


def rerun(
    out: Path,
    *,
    prices: Path | None = None,
    workers: int | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> Rerun:
    """Execute every chapter with own prices and build the site into a folder.

    Parameters
    ----------
    out : Path
        The folder: absent or empty, and outside of this tree. It appears complete or not at all.
    prices : Path, optional
        The price file; without it the one that the environment names, if any, else the book's own prices.
    workers : int, optional
        Chapters at a time; as many as there are processors if left out.
    progress : callable
        Called with the stage, what is done of it, and how much there is.

    Returns
    -------
    Rerun

    Raises
    ------
    InputError
        If a price cannot be used, the folder cannot be written, a chapter does not run with these prices, or the
        site cannot be built from it. Nothing is left behind then, nor when interrupted.
    """
    target = _free(out)
    named = prices or (Path(os.environ[tables.PRICES_VARIABLE]) if os.environ.get(tables.PRICES_VARIABLE) else None)
    own: OwnPrices = BOOK
    flagged: tuple[tuple[int, str], ...] = ()
    if named is not None:
        found = tables.check_prices(named)
        if refusal := own_prices.first_refusal(found):
            raise refusal
        own, flagged = found.prices, found.flagged
    above = next((parent for parent in reversed(target.parents) if not parent.exists()), None)
    work: Path | None = None
    complete = False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # beside the target, so that the finished site only changes its name
        work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        folder = _build(work, named, own, workers or os.cpu_count() or 1, progress)
        changed = verdict_changes(own, progress=progress)
        folder.replace(target)
        complete = True
    except OSError as error:
        raise InputError("--out", Words(_reason(error)), "a folder that can be written") from None
    finally:
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)
        if not complete and above is not None:
            _remove_empty(target.parent, above)
    return Rerun(target, own, flagged, changed)


def _reason(error: OSError) -> str:
    """Say why a file could not be written; a copy of a whole folder lists the reason of each file in it."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        first = str(error.args[0][0][-1])
        return re.sub(r"^\[Errno \d+\] |: '.*", "", first)
    return error.strerror or str(error)


def _remove_empty(folder: Path, highest: Path) -> None:
    """Take away folders that were made for a site that did not come to be, up to the highest.

    Only empty ones: another run may have put its site beside ours meanwhile.
    """
    while folder.is_relative_to(highest):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _free(out: Path) -> Path:
    """Return where the site goes, or refuse a place that is taken or ours."""
    try:
        target = out.resolve()
        taken = target.exists() and (not target.is_dir() or any(target.iterdir()))
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError("--out", Words(str(reason)), "a folder that can be written") from None
    if target.is_relative_to(ROOT):
        raise InputError("--out", str(out), "a folder outside of the tree of the report, which stays as it is")
    if taken:
        raise InputError("--out", str(out), "a folder that is new or empty")
    return target


def _build(work: Path, named: Path | None, own: OwnPrices, workers: int, progress: Progress) -> Path:
    """Make the site in the work folder; return the folder with its pages."""
    tree = work / "tree"
    tree.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, tree / part, ignore=shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__"))
        else:
            shutil.copy(source, tree / part)
    _mark_pages(tree / "_config.yml", own)
    environment = {
        # the very package that runs us, and no file of it written
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        "PYTHONDONTWRITEBYTECODE": "1",
        tables.PRICES_VARIABLE: "",
    }
    if named is not None:
        # a copy, so that every chapter sees the same prices whatever happens to the file meanwhile
        (work / "prices").mkdir()
        kept = shutil.copyfile(named, work / "prices" / named.name)
        environment[tables.PRICES_VARIABLE] = str(kept)
    paths = notebooks.chapters(book=tree / "book")
    done = 0

    def step(path: Path) -> None:
        nonlocal done
        done += 1
        progress("executing chapters", done, len(paths))

    progress("executing chapters", 0, len(paths))
    try:
        _, failed = notebooks.refresh(paths, workers=workers, environment=environment, progress=step)
    except InputError as refusal:
        # a chapter that can't be written lies in a folder that nobody asked for by that name
        raise InputError("--out", refusal.got, "a folder that can be written") from None
    if failed:
        raise InputError(_line(failed[0]), Words("a failure"), "a chapter that runs with these prices")

    def building(stage: str, percent: int) -> None:
        progress("building the site", percent + (100 if stage == "writing output" else 0), 200)

    try:
        return site.build(tree, progress=building)
    except site.BuildError as error:
        told = _line(str(error).replace(f"{tree.resolve()}/", "").replace(f"{tree}/", ""))
        raise InputError(told, Words("a failure"), "a site that builds with these prices") from None


def _line(text: str) -> str:
    return " ".join(text.split())


def _mark_pages(config: Path, own: OwnPrices) -> None:
    """Let the theme show on every page which prices it was made with."""
    import yaml

    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    options = settings["sphinx"]["config"].setdefault("html_theme_options", {})
    options["announcement"] = banner(own)
    config.write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), encoding="utf-8")


def banner(own: OwnPrices) -> str:
    """Say in HTML which prices a page was made with; nothing from a price file can be markup in it.

    Examples
    --------
    >>> banner(OwnPrices("<b>ours</b>.csv"))
    '<p>Re-run with the prices of the book.</p>'
    """
    if not own.rows:
        return "<p>Re-run with the prices of the book.</p>"
    rows = f"{len(own.rows)} price{'s' if len(own.rows) != 1 else ''}"
    # braces and dollars would be read by the scripts of the page
    name = html.escape(_line(own.name)).replace("{", "&#123;").replace("$", "&#36;").replace("\\", "&#92;")
    return (
        f"<p>Re-run with <strong>{name}</strong>: {rows} laid over those of the book."
        " Numbers, charts and verdicts follow them; the sentences between are the book's.</p>"
    )


def verdict_changes(own: OwnPrices, *, progress: Progress = lambda stage, done, total: None) -> list[dict[str, Any]]:
    """List the verdicts that own prices change, on the article's day and by the newest prices.

    Parameters
    ----------
    own : OwnPrices
        The prices.
    progress : callable
        As in `rerun`.

    Returns
    -------
    list of dict
        ``id``, ``as_of``, ``statement``, ``from`` (the book), ``to``, ``share_from``, ``share_to`` (of true samples
        or rows), ``decided_by``, ``boundary`` (input, threshold and accuracy, or None), ``chapter``.
    """
    if not own.rows:
        return []
    found = []
    for number, day in enumerate(DAYS):

        def step(done: int, total: int, number: int = number) -> None:
            progress("comparing verdicts", number * total + done, len(DAYS) * total)

        found += _changes(own, day, step)
    return sorted(found, key=lambda change: (change["id"], change["as_of"]))


def _changes(own: OwnPrices, day: date, step: Callable[[int, int], None]) -> list[dict[str, Any]]:
    ids = ledger.priced(as_of=day)
    verdicts = {}
    for done, claim_id in enumerate(ids, 1):
        (verdicts[claim_id],) = ledger.verdicts(as_of=day, only=claim_id, prices=own)
        step(done, len(ids))
    changed = ledger.changes(verdicts.values())
    return [
        {
            "id": row["id"],
            "as_of": day.isoformat(),
            "statement": row["statement"],
            "from": row["verdict_book"],
            "to": row["verdict"],
            "share_from": _share(row["share_book"]),
            "share_to": _share(row["share_true"]),
            "decided_by": row["decided_by"],
            "boundary": None if (edge := verdicts[row["id"]].boundary) is None else asdict(edge),
            "chapter": verdicts[row["id"]].claim.chapter,
        }
        for row in changed.to_dict("records")
    ]


def _share(value: float | None) -> float | None:
    """Return a share, or None where a verdict rests on none (a frame writes that as NaN)."""
    return None if value is None or math.isnan(value) else float(value)
