"""What a browser says about built pages: the checks, and a server that sends the content policy."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: Under this policy the site has to work: nothing from elsewhere, no inline script, no eval.
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Chromium itself must not speak to anybody either.
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 900}

#: How long a page may take to load, and then to draw, before something counts as missing: a busy machine is no finding.
LOAD_MS = PATIENCE_MS = 120_000

DRAWN = """
(mode) => document.documentElement.dataset.theme === mode && [...document.querySelectorAll("script[data-chart]")].every(
    (script) => script.previousElementSibling.dataset.drawn === mode)
"""
SETTLED = "() => document.fonts.ready.then(() => window.MathJax?.startup?.promise).then(() => true)"
FITS = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
TOO_WIDE = """
() => [...document.querySelectorAll("main *")]
  .filter((part) => part.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .slice(0, 3).map((part) => part.outerHTML.slice(0, 80))
"""
CHARTS = """
() => [...document.querySelectorAll("script[data-chart]")].map((script) => {
  const svg = script.previousElementSibling.querySelector("svg");
  const box = svg?.getBoundingClientRect();
  return {
    name: script.dataset.chart,
    label: script.previousElementSibling.getAttribute("aria-label") ?? "",
    width: box?.width ?? 0,
    marks: svg?.querySelectorAll(".role-mark path, .role-mark text, .role-mark line").length ?? 0,
    paper: svg?.querySelector("rect")?.getAttribute("fill") ?? svg?.style.backgroundColor ?? "",
    inks: [...new Set([...(svg?.querySelectorAll("text") ?? [])].map((text) => text.getAttribute("fill")))],
  };
})
"""


def find_chromium() -> str | None:
    """Return the path of the system's Chromium, if there is one."""
    return next((path for path in map(shutil.which, CHROMIUM_NAMES) if path), None)


def chromium_or_skip() -> None:
    """Skip the test where there is no browser, or fail it where one is required (REQUIRE_BROWSER=1)."""
    if find_chromium() is None:
        reason = f"no Chromium on PATH ({', '.join(CHROMIUM_NAMES)})"
        (pytest.fail if os.environ.get("REQUIRE_BROWSER") == "1" else pytest.skip)(reason)


@contextmanager
def serve(root: Path) -> Iterator[str]:
    """Serve a folder with the content policy on a free local port; gives the address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            self.send_header("Content-Security-Policy", POLICY)
            super().end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is inherited)
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the system's Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One page in the browser, and everything that it complained about."""

    def __init__(self, context: Any, address: str, *, origin: str) -> None:
        self.problems: list[str] = []
        self.page = context.new_page()
        self.page.set_default_timeout(LOAD_MS)
        self.page.on("request", lambda request: self._request(request.url, origin))
        self.page.on("requestfailed", lambda request: self._failed(request.url, request.failure))
        self.page.on("response", lambda answer: self._response(answer))
        self.page.on("console", lambda message: self._console(message))
        self.page.on("pageerror", lambda error: self.problems.append(f"script error: {error}"))
        self.page.goto(address)

    def _request(self, url: str, origin: str) -> None:
        if not url.startswith((origin, "data:", "blob:")):
            self.problems.append(f"asks elsewhere: {url}")

    def _failed(self, url: str, reason: str) -> None:
        # what a page no longer wants when it leads on to another is not missing
        if reason != "net::ERR_ABORTED":
            self.problems.append(f"not loaded: {url} ({reason})")

    def _response(self, answer: Any) -> None:
        if answer.status >= 400:
            self.problems.append(f"{answer.status}: {answer.url}")

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text}")

    def settle(self, mode: str = "light") -> None:
        """Wait until charts and formulas are drawn, or note that they are not."""
        from playwright.sync_api import TimeoutError as TooLate

        try:
            self.page.wait_for_function(DRAWN, arg=mode, timeout=PATIENCE_MS)
        except TooLate:
            self.problems.append(f"a chart is not drawn ({mode})")
        self.page.evaluate(SETTLED)

    def check_charts(self) -> None:
        """Each chart has marks, fits, and its text stands out from its background."""
        for chart in self.page.evaluate(CHARTS):
            name = chart["name"]
            if chart["marks"] == 0 or chart["width"] < 100:
                self.problems.append(f"{name}: drawn without marks or too small")
            if not chart["label"]:
                self.problems.append(f"{name}: has no text for a screen reader")
            for ink in chart["inks"]:
                if (ratio := contrast(ink, chart["paper"])) < 4.5:
                    self.problems.append(f"{name}: text {ink} on {chart['paper']} has contrast {ratio:.1f}, not 4.5")

    def check_width(self) -> None:
        """Nothing is wider than the window, once the page has come to rest."""
        from playwright.sync_api import TimeoutError as TooLate

        try:
            self.page.wait_for_function(FITS, timeout=min(PATIENCE_MS, 10_000))
        except TooLate:
            width = self.page.viewport_size["width"]
            self.problems += [f"scrolls sideways at {width} px: {part}" for part in self.page.evaluate(TOO_WIDE)]

    def check_dark(self) -> None:
        """Turn the light off: the page is dark, and the charts follow."""
        self.page.emulate_media(color_scheme="dark")
        self.settle("dark")
        paper = self.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        if luminance(paper) > 0.1:
            self.problems.append(f"the dark page has the background {paper}")
        for chart in self.page.evaluate(CHARTS):
            if luminance(chart["paper"]) > 0.1:
                self.problems.append(f"{chart['name']}: stays on {chart['paper']} in the dark")
        self.check_charts()

    def axe(self) -> dict[str, str]:
        """Return the rules of axe that the page violates, with an example each."""
        from axe_playwright_python.sync_playwright import Axe

        # preloading makes axe itself ask for style sheets, at addresses that it gets wrong; a report on what is in
        # order takes most of its time
        options = {"preload": False, "resultTypes": ["violations"]}
        found = Axe().run(self.page, options=options).response["violations"]
        return {rule["id"]: f"{rule['help']}: {rule['nodes'][0]['html'][:200]}" for rule in found}


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` or ``rgb(r, g, b)``, as WCAG 2 defines it."""
    if colour.startswith("#"):
        parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    elif colour.startswith("rgb"):
        parts = [float(part) for part in colour.partition("(")[2].rstrip(")").split(",")[:3]]
    else:
        return 1.0
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in parts)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(ink: str, paper: str) -> float:
    """Contrast ratio of two colours, as WCAG 2 defines it."""
    dark, light = sorted((luminance(ink), luminance(paper)))
    return (light + 0.05) / (dark + 0.05)


def as_file(root: Path, page: str) -> str:
    """Return the ``file:`` address of a page."""
    return (root / f"{page}.html").resolve().as_uri()
