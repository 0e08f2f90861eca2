"""Measure the budgets of the report: ``make bench``.

Each line says what was measured, its budget, and how it compares with a named baseline. Times are the best of
several runs, interpreter start-up apart; they depend on the machine and no test asserts one. ``make bench STORE=1``
keeps them in data/derived/bench.csv, which the page on speed shows.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "site"))


@dataclass(frozen=True)
class Line:
    """One measurement beside its budget, and its ratio to a baseline that has a name."""

    what: str
    measured: str
    budget: str
    kept: bool | None
    against: str = ""


def best_of(runs: int, work: Callable[[], Any]) -> float:
    """Return the shortest of several runs. [s]."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def at_most(what: str, seconds: float, budget_s: float, against: str = "") -> Line:
    """Compare a time with what it may be."""
    return Line(what, f"{seconds:.2f} s", f"at most {budget_s:g} s", seconds <= budget_s, against)


def site_and_chapters() -> Iterator[Line]:
    """Build the site, and execute every chapter, one after the other."""
    from analysis.publish import notebooks, site

    with tempfile.TemporaryDirectory() as folder:
        first = best_of(1, lambda: site.build(out=Path(folder)))
    yield at_most("build of the site from stored outputs", first, 30, f"{first / 30:.2f} of the budget")
    site.build()  # for the pages below
    chapters = notebooks.chapters()
    slowest = max(
        ((best_of(1, lambda path=path: notebooks.refreshed(path)), path.stem) for path in chapters),
        key=lambda run: run[0],
    )
    yield at_most(f"slowest chapter, executed ({slowest[1]})", slowest[0], 30, f"of {len(chapters)} chapters")


def pages() -> Iterator[Line]:
    """Load every page in a browser: what travels, and how long until its first chart stands."""
    from browser import chromium, find_chromium, serve

    from analysis.publish.site import pages as names

    if find_chromium() is None:
        yield Line("pages in a browser", "not measured", "", None, "no Chromium here")
        return
    heaviest, slowest = (0.0, ""), (0.0, "")
    with serve(ROOT / "_build" / "html") as origin, chromium() as browser:
        for name in names():
            page = browser.new_context().new_page()
            answers: list[Any] = []
            page.on("response", lambda answer, answers=answers: answers.append(answer))
            page.goto(f"{origin}/{name}.html", wait_until="load")
            if page.locator("script[data-chart]").count():
                loaded = time.perf_counter()
                page.wait_for_selector(".chart svg")
                slowest = max(slowest, (time.perf_counter() - loaded, name))
                page.wait_for_timeout(500)
                # asked for only now: a handler that waits for a body may outlive its page
                byte = sum(len(gzip.compress(answer.body())) for answer in answers)
                heaviest = max(heaviest, (byte / 1e6, name))
            page.context.close()
    yield Line(
        f"heaviest page with charts, compressed ({heaviest[1]})",
        f"{heaviest[0]:.2f} MB",
        "at most 0.9 MB",
        heaviest[0] <= 0.9,
        f"{heaviest[0] / 1.26:.2f} of the theme as it comes (1.26 MB)",
    )
    yield at_most(f"first chart after load ({slowest[1]})", slowest[0], 0.5)


#: From the event of an input to the frame that shows the new number, the middle of many. [ms].
_SLIDE = """
async ([chart, input, low, high]) => {
  const slider = document.querySelector(input);
  const view = () => document.querySelector(chart).view;
  const times = [];
  for (let i = 0; i < 40; i++) {
    slider.value = low + ((high - low) * ((i * 17) % 40)) / 40;
    const start = performance.now();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await view().runAsync();
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - start);
    await new Promise((rest) => setTimeout(rest, 30));
  }
  return times.sort((a, b) => a - b)[20];
}
"""


def sliders() -> Iterator[Line]:
    """Move a slider of a chapter and one of the calculator: how long until the new number stands."""
    from browser import chromium, find_chromium, serve

    if find_chromium() is None:
        yield Line("sliders in a browser", "not measured", "", None, "no Chromium here")
        return
    moves = {
        "cost": ("#fig-cost-move-chart", '#fig-cost-move input[name="price"]', 1, 120),
        "calculator": ("#fig-calculator-chart", '[data-slider="in_day_share"]', 0.1, 1),
    }
    with serve(ROOT / "_build" / "html") as origin, chromium() as browser:
        for name, move in moves.items():
            page = browser.new_context().new_page()
            page.goto(f"{origin}/book/{name}.html", wait_until="load")
            page.wait_for_function("(chart) => document.querySelector(chart)?.view", arg=move[0])
            page.wait_for_timeout(1000)
            took_s = page.evaluate(_SLIDE, list(move)) / 1e3
            yield Line(
                f"slider to new value ({name})",
                f"{1e3 * took_s:.0f} ms",
                "at most 50 ms",
                took_s <= 0.05,
                "one frame 17 ms",
            )
            page.context.close()


def pass_times() -> Iterator[Line]:
    """Time a million passes with all terms, against one call for each."""
    import numpy as np

    from analysis.model.decoding import Replica, pass_time, sweep_pass_s
    from analysis.reference.efficiency import efficiency
    from analysis.reference.model_config import shipped
    from analysis.reference.specs import Precision
    from analysis.reference.tables import SNAPSHOT, accelerator

    part = accelerator("h100-sxm", as_of=SNAPSHOT)
    draw = np.random.default_rng(0)
    count = 1_000_000
    batch, context = draw.integers(1, 257, count), draw.integers(128, 8192, count)
    for model in ("llama-3.1-70b", "gpt-oss-120b"):
        replica = Replica(shipped(model).architecture, Precision.of("fp8"), part, gpus=8)
        constants = efficiency(replica)
        rate = count / best_of(
            3, lambda r=replica, e=constants: sweep_pass_s(r, batch=batch, context_tokens=context, efficiency=e)
        )
        single = best_of(
            3,
            lambda r=replica, e=constants: [
                pass_time(r, batch=n, context_tokens=s, efficiency=e)
                for n, s in zip(batch[:200], context[:200], strict=True)
            ],
        )
        yield Line(
            f"passes with all terms, {model}",
            f"{rate / 1e6:.1f} million/s",
            "at least 10 million/s",
            rate >= 10e6,
            f"{rate * single / 200:,.0f} times one call for each",
        )


def serving() -> Iterator[Line]:
    """Serve a 70B model at 5 requests a second: mixed lengths, prompts in chunks; against SimPy, pass by pass."""
    import numpy as np

    from analysis.model.simulation import Requests, Server, Traffic, serve
    from analysis.reference.efficiency import efficiency
    from analysis.reference.model_config import shipped
    from analysis.reference.specs import Decoder, Precision, Replica
    from analysis.reference.tables import SNAPSHOT, accelerator

    part = accelerator("h100-sxm", as_of=SNAPSHOT)
    replica = Replica(shipped("llama-3.1-70b").architecture, Precision.of("fp8"), part, gpus=8)
    of = Server(replica, efficiency=efficiency(replica), chunk_tokens=2048)
    requests = Traffic(1500, 300, length_cv=0.6).draw(rate_req_per_s=5.0, count=500_000, seed=1)
    few = Requests(requests.arrival_s[:1000], requests.input_tokens[:1000], requests.output_tokens[:1000])
    compiling = best_of(1, lambda: serve(of, few))
    rate = len(requests) / best_of(3, lambda: serve(of, requests))
    try:
        import simpy_server
    except ModuleNotFoundError:
        against = "SimPy is not installed: pip install -e .[bench]"
    else:
        found = simpy_server.serve(of, few)
        if not np.allclose(found, serve(of, few).end_s, rtol=1e-9):
            raise AssertionError("the two servers differ")
        slow = len(few) / best_of(1, lambda: simpy_server.serve(of, few))
        against = f"{rate / slow:,.0f} times the same server in SimPy"
    yield Line(
        "simulated requests, 70B at 5 req/s",
        f"{rate / 1e6:.2f} million/s",
        "at least 1 million/s",
        rate >= 1e6,
        against,
    )
    yield at_most("first call, compiled or read from disk", compiling, 15)
    fewer = Traffic(1500, 300).draw(rate_req_per_s=5.0, count=100_000, seed=1)
    for decoder in (Decoder.speculative(acceptance=0.7, draft_length=4), Decoder.diffusion(block_tokens=32, passes=8)):
        its = Server(replica, decoder=decoder, efficiency=of.efficiency)
        rate = len(fewer) / best_of(3, lambda its=its: serve(its, fewer))
        yield Line(f"the same, {decoder.kind}", f"{rate / 1e6:.2f} million/s", "", None)


def imports() -> Iterator[Line]:
    """Import made-up feeds of the size of the real ones, against reading them as JSON and text alone."""
    from analysis.reference.price_feeds import import_feed

    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        feed = Path(folder) / "feed.json"
        feed.write_text(
            json.dumps(
                {
                    f"seller{i % 90}/model-{i}": {
                        "mode": "chat",
                        "litellm_provider": f"seller{i % 90}",
                        "input_cost_per_token": draw.uniform(1e-7, 5e-6),
                        "output_cost_per_token": draw.uniform(1e-6, 2e-5),
                    }
                    for i in range(5_000)
                }
            )
        )
        seconds = best_of(3, lambda: import_feed("litellm", feed, today=date(2026, 11, 30)))
        plain = best_of(3, lambda: json.loads(feed.read_text()))
        yield at_most("import of 5,000 models (litellm)", seconds, 2, f"{seconds / plain:.0f} times json.loads")
        catalog = Path(folder) / "azure.csv"
        rows = ["InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region"]
        # as in the real catalog, one row in 35 has an accelerator
        rows += [
            f"Standard_X{i % 700},{'H100,8' if i % 35 == 0 else ','},96,1900,,{draw.uniform(20, 99):.4f},,r{i % 81}"
            for i in range(56_671)
        ]
        catalog.write_text("\n".join(rows) + "\n")
        seconds = best_of(1, lambda: import_feed("skypilot", catalog, today=date(2026, 11, 30), provider="azure"))
        plain = best_of(3, lambda: catalog.read_text().split("\n"))
        yield at_most(
            "import of 56,671 catalog rows (skypilot)", seconds, 3, f"{seconds / plain:.0f} times reading the lines"
        )


def ledger() -> Iterator[Line]:
    """Compute every verdict."""
    from analysis.evidence.claims.ledger import verdicts
    from analysis.evidence.claims.registry import REGISTRY
    from analysis.reference.tables import SNAPSHOT

    seconds = best_of(1, lambda: verdicts(as_of=SNAPSHOT))
    yield Line("every verdict of the ledger", f"{seconds:.2f} s", "", None, f"{len(REGISTRY)} statements")


#: Commands that hold much at once, as one types them.
LARGE_COMMANDS = (
    "claims",
    "validate data/example_measurements.csv",
    "measure-host",
    "capacity --model llama-3.1-8b --gpu h100-sxm --gpus 8 --node-usd-per-hour 30 --rate-req-per-s 500"
    " --input-tokens 1500 --output-tokens 300 --budget-s 3 --percentile 95 --method simulation",
)


def memory() -> Iterator[Line]:
    """Run commands one after the other: the most memory that one of them held."""
    largest = (0.0, "")
    for words in LARGE_COMMANDS:
        command = [sys.executable, "-m", "analysis", *words.split()]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise AssertionError(f"{words}: exit status {process.returncode}")
        # Linux counts in kB, macOS in bytes
        held_gb = used.ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)
        largest = max(largest, (held_gb, words.split()[0]))
    yield Line(
        f"memory of a command ({largest[1]})",
        f"{largest[0]:.2f} GB",
        "at most 1 GB",
        largest[0] <= 1,
        f"the most of {len(LARGE_COMMANDS)} commands",
    )


def processor() -> str:
    """Name the processor, and how many of its cores are ours."""
    named = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        known = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        named = known[1] if known else named
    return f"{' '.join(named.split())}, {len(os.sched_getaffinity(0))} cores"


def stored(line: Line, *, day: date, cpu: str) -> list[str] | None:
    """Take a line apart for the table: number and unit, ratio and the name of what it is a ratio to.

    A line that was not measured is not kept.
    """
    number = re.fullmatch(r"([\d.,]+) (\S.*)", line.measured)
    if number is None:
        return None
    ratio = re.fullmatch(r"([\d.,]+) (?:times|of) (\S.*)", line.against)
    return [
        line.what,
        number[1].replace(",", ""),
        number[2],
        line.budget,
        {True: "yes", False: "no", None: ""}[line.kept],
        ratio[2] if ratio else "",
        ratio[1].replace(",", "") if ratio else "",
        day.isoformat(),
        cpu,
    ]


def main() -> None:
    """Print one line for each measurement as soon as it is known; with ``--store`` keep them all."""
    os.chdir(ROOT)
    rows = []
    for part in (ledger, pass_times, serving, imports, memory, site_and_chapters, pages, sliders):
        for line in part():
            kept = {True: "kept", False: "MISSED", None: ""}[line.kept]
            sys.stdout.write(f"{line.what:<58} {line.measured:>16}  {line.budget:<22} {kept:<7} {line.against}\n")
            sys.stdout.flush()
            # a machine that measures has a clock; no page and no test reads it
            rows.append(stored(line, day=date.today(), cpu=processor()))
    if "--store" in sys.argv[1:]:
        from analysis.inputs import write_files
        from analysis.reference.rows import csv_lines
        from analysis.reference.tables import BENCH, BENCH_COLUMNS

        write_files([(BENCH, csv_lines(BENCH_COLUMNS, [row for row in rows if row is not None]))])


if __name__ == "__main__":
    main()
