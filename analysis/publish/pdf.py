"""One file for paper: every page of the built site, printed by Chromium in the order of the contents and joined.

``python -m analysis.publish.pdf`` after a build writes ``_build/report.pdf``. The pages are opened as files, so
nothing is served and nothing is loaded from elsewhere.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis.inputs import InputError, Words
from analysis.publish.notebooks import ROOT
from analysis.publish.site import missing_pages, pages

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: A page is ready when its charts and formulas are drawn and its numbers are computed.
_READY = """
() => [...document.querySelectorAll("script[data-chart]")].every((one) => one.previousElementSibling.dataset.drawn)
  && (!document.getElementById("calculator") || document.getElementById("calculator").dataset.done)
"""
_SETTLED = "() => document.fonts.ready.then(() => window.MathJax?.startup?.promise).then(() => true)"
_PAPER = {"format": "A4", "print_background": True, "margin": dict.fromkeys(("top", "bottom", "left", "right"), "16mm")}
_PATIENCE_MS = 120_000


def find_chromium() -> str:
    """Return the path of the system's Chromium.

    Raises
    ------
    InputError
        If there is none.
    """
    found = next((path for path in map(shutil.which, CHROMIUM_NAMES) if path), None)
    if found is None:
        raise InputError("Chromium", Words("none on PATH"), f"one of {', '.join(CHROMIUM_NAMES)}, to print the pages")
    return found


def join(parts: list[tuple[str, bytes]]) -> bytes:
    """Join printed pages into one file, with an entry in its outline for each.

    Parameters
    ----------
    parts : list of (str, bytes)
        Title and PDF of each page.

    Returns
    -------
    bytes
        A PDF.
    """
    from pypdf import PdfWriter

    writer = PdfWriter()
    for title, printed in parts:
        writer.append(io.BytesIO(printed), outline_item=title)
    whole = io.BytesIO()
    writer.write(whole)
    return whole.getvalue()


def printed(
    site: Path, names: list[str], *, progress: Callable[[str], None] = lambda name: None
) -> list[tuple[str, bytes]]:
    """Print pages of a built site.

    Parameters
    ----------
    site : Path
        The folder with the pages.
    names : list of str
        Pages as paths without ending.
    progress : callable
        Called with the name of each page when it is done.

    Returns
    -------
    list of (str, bytes)
        Title and PDF of each page.

    Raises
    ------
    InputError
        If there is no Chromium, or a page is not there.
    """
    executable = find_chromium()
    if absent := missing_pages(site, names):
        raise InputError("site", Words(f"no page {absent[0]}"), "a built site: make book")
    from playwright.sync_api import sync_playwright

    found: list[tuple[str, bytes]] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        try:
            context = browser.new_context(color_scheme="light")
            for name in names:
                found.append(_printed(context, (site / f"{name}.html").resolve().as_uri()))
                progress(name)
        finally:
            browser.close()
    return found


def _printed(context: Any, address: str) -> tuple[str, bytes]:
    page = context.new_page()
    page.set_default_timeout(_PATIENCE_MS)
    # on paper a chart is as wide as the sheet, and it is drawn before it is printed
    page.set_viewport_size({"width": 740, "height": 1050})
    page.goto(address)
    page.wait_for_function(_READY)
    page.evaluate(_SETTLED)
    # the numbers of charts would be three quarters of the sheets; a page that is printed alone has them
    page.add_style_tag(content="details.chart-data { display: none; }")
    title = page.locator("h1").first.inner_text().rstrip("#").strip()
    whole = page.pdf(**_PAPER)
    page.close()
    return title, whole


def main() -> None:
    """Run the command line."""
    import click
    from tqdm import tqdm

    @click.command()
    @click.option(
        "--out", type=click.Path(path_type=Path, dir_okay=False), help="The file; _build/report.pdf if left out."
    )
    def pdf(out: Path | None) -> None:
        """Print every page of the built site into one PDF."""
        target = out or ROOT / "_build" / "report.pdf"
        names = pages()
        try:
            find_chromium()
            with tqdm(total=len(names), desc="printing", unit="page") as bar:
                parts = printed(ROOT / "_build" / "html", names, progress=lambda name: bar.update())
        except InputError as refusal:
            click.echo(f"error: {refusal}", err=True)
            sys.exit(2)
        target.write_bytes(join(parts))
        click.echo(f"{len(parts)} pages of the site in {target}")

    pdf()


if __name__ == "__main__":
    main()
