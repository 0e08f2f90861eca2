"""The report again with own prices: in a folder of its own, marked, complete or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from analysis.cli import EXIT_BAD_INPUT, EXIT_INTERRUPTED, main
from analysis.publish import notebooks, report, site
from analysis.publish.notebooks import ROOT
from analysis.reference import tables
from analysis.reference.own_prices import BOOK, OwnPrices

HEADER = "seller,model,token_kind,tier,provider,instance,region,term,quantity,value,unit,note"
#: A name and a note that would be markup, a formula and a macro if a page took them as such.
NASTY = "<script>alert(1)<b>.csv"
NOTE = "<script>alert(2)</script> {{ config }} $x$ <img src=q onerror=alert(3)>"
#: Folders that tools write into, and what belongs to nobody's checkout.
NOT_THE_CHECKOUT = {".git", ".venv", "_build", "build", "__pycache__", ".hypothesis"}


def scaled(folder: Path, name: str = "ours.csv", *, nodes: float = 1, tokens: float = 1, note: str = "") -> Path:
    """Write every price of the article's day times a factor."""
    lines = []
    for table, factor in (("node_prices", nodes), ("api_prices", tokens)):
        rows = tables.table(table, as_of=tables.SNAPSHOT, prices=BOOK).where(quantity="price")
        for _, row in rows.iterrows() if factor != 1 else ():
            cells = [row.get(column, "") for column in HEADER.split(",")[:-4]]
            lines.append(",".join([*cells, "price", str(row["value"] * factor), row["unit"], note]))
    path = folder / name
    path.write_text("\n".join([HEADER, *lines, ""]), encoding="utf-8")
    return path


def fingerprint(root: Path) -> str:
    """Hash names and contents of a tree, without what tools leave in it."""
    digest = hashlib.sha256()
    for folder, inside, files in os.walk(root):
        inside[:] = sorted(f for f in inside if f not in NOT_THE_CHECKOUT and not f.endswith(("_cache", ".egg-info")))
        for name in sorted(files):
            path = Path(folder) / name
            digest.update(f"{path.relative_to(root)}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One whole run, as an analyst starts it: nodes at half their price, tokens at ten times theirs."""
    folder = tmp_path_factory.mktemp("report")
    prices, out = scaled(folder, NASTY, nodes=0.5, tokens=10, note=NOTE), folder / "new" / "site"
    before = fingerprint(ROOT)
    done = subprocess.run(
        [sys.executable, "-m", "analysis", "report", "--prices", str(prices), "--out", str(out), "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={key: value for key, value in os.environ.items() if key != "PYTHONWARNINGS"},
    )
    return {"done": done, "out": out, "before": before, "after": fingerprint(ROOT)}


@pytest.mark.soak
def test_the_run_ends_with_the_changed_verdicts(run: dict[str, Any]) -> None:
    """Ten times the price: no commodity below a dollar, no frontier in 5 to 15; half of 33 is not about 33."""
    assert run["done"].returncode == 0, run["done"].stderr
    answer = json.loads(run["done"].stdout)
    assert answer["prices"] == NASTY
    changed = {(change["id"], change["as_of"]): change for change in answer["verdict_changes"]}
    day = tables.SNAPSHOT.isoformat()
    for claim, verdict in {"C40": "unsupported", "C41": "cited", "C43": "cited"}.items():
        assert (changed[claim, day]["from"], changed[claim, day]["to"]) == (verdict, "contradicted")
    assert all(change["decided_by"].strip() for change in changed.values())
    assert all({"boundary", "share_from", "share_to", "statement", "chapter"} <= set(c) for c in changed.values())


@pytest.mark.soak
def test_the_site_is_complete_and_marked_on_every_page(run: dict[str, Any]) -> None:
    assert site.missing_pages(run["out"], site.pages()) == []
    for path in run["out"].rglob("*.html"):
        if "_static" not in path.parts and path.name != "index.html":
            assert "Re-run with <strong>&lt;script&gt;alert(1)&lt;b&gt;.csv</strong>" in path.read_text(), path.name
    assert "own-prices" in (run["out"] / "book" / "cost.html").read_text()
    assert "&lt;script&gt;alert(2)" in (run["out"] / "book" / "rerun.html").read_text()


@pytest.mark.soak
def test_nothing_of_a_price_file_is_markup(run: dict[str, Any]) -> None:
    pages = list(run["out"].rglob("*.html"))
    assert len(pages) >= len(site.pages())
    for path in pages:
        text = path.read_text()
        for needle in ("<script>alert", "<img src=q", "<b>.csv"):
            assert needle not in text, f"{path.name} holds {needle}"


@pytest.mark.soak
def test_the_checkout_stays_as_it_is_and_nothing_is_left_beside_the_site(run: dict[str, Any]) -> None:
    assert run["before"] == run["after"]
    assert [path.name for path in run["out"].parent.iterdir()] == ["site"]
    assert "/tmp" not in run["done"].stdout.replace(str(run["out"]), "")


@pytest.mark.parametrize(("nodes", "tokens", "moved"), [(0.5, 1, {"C40"}), (1, 10, {"C41", "C43"})])
def test_the_verdicts_that_should_move_do(tmp_path: Path, nodes: float, tokens: float, moved: set[str]) -> None:
    seen: list[tuple[str, int, int]] = []
    prices = tables.read_prices(scaled(tmp_path, nodes=nodes, tokens=tokens))
    changed = report.verdict_changes(prices, progress=lambda *step: seen.append(step))
    assert moved <= {change["id"] for change in changed}
    assert seen[-1][1] == seen[-1][2]
    untouched = {"C36", "C37", "C45", "C46", "C64", "C70"}
    assert not untouched & {change["id"] for change in changed}


def test_prices_of_the_book_change_nothing(tmp_path: Path) -> None:
    """The same prices again, as a file: no verdict may depend on who wrote them down, market facts apart."""
    assert report.verdict_changes(BOOK) == []


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a report that must be refused in one line."""
    assert main(["report", *arguments]) == EXIT_BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("checkout/_build/again", "outside of the tree of the report"),
        ("checkout", "outside of the tree of the report"),
        ("full", "a folder that is new or empty"),
        ("file", "a folder that is new or empty"),
        ("file/below", "a folder that can be written"),
    ],
)
def test_a_folder_that_is_taken_or_ours_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str, expected: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    (tmp_path / "file").touch()
    out = ROOT / where.partition("/")[2] if where.startswith("checkout") else tmp_path / where
    assert expected in refusal(capsys, "--out", str(out))
    assert (tmp_path / "full" / "thesis.tex").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "absent.csv: got"),
        ("", "absent.csv row 1: got nothing"),
        ("instance,quantity,value,unit\np5.48xlarge,price,-1,USD/node_hour\n", "row 2, column value: got -1.0"),
        ("instance,quantity,value,unit\np6,price,1,USD/node_hour\n", "row 2, column instance: got 'p6'"),
    ],
    ids=["no file", "empty", "negative", "unknown"],
)
def test_a_bad_price_file_is_one_line_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, expected: str
) -> None:
    path = tmp_path / "absent.csv"
    if text is not None:
        path.write_text(text)
    assert expected in refusal(capsys, "--prices", str(path), "--out", str(tmp_path / "deep" / "site"))
    assert not (tmp_path / "deep").exists()


def test_without_a_folder_the_usage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--out: got nothing, expected the folder for the site" in refusal(capsys)


def failing(error: BaseException) -> Any:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    return fail


FAILURES = {
    "a full disk": ("shutil.copytree", failing(OSError(errno.ENOSPC, "No space left on device")), "No space left"),
    "a chapter that does not run": (
        "notebooks.refresh",
        lambda *a, **k: ([], ["cost.ipynb: cell 3 (cost-05: x):\nValueError: boom"]),
        "cost.ipynb: cell 3 (cost-05: x): ValueError: boom: got a failure",
    ),
    "a site that does not build": ("site.build", failing(site.BuildError("a\nb")), "a b: got a failure"),
    "an interruption": ("site.build", failing(KeyboardInterrupt()), "error: interrupted"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_run_that_fails_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    target, fails, expected = FAILURES[failure]
    if target != "notebooks.refresh":
        monkeypatch.setattr(notebooks, "refresh", lambda *a, **k: ([], []))
    module, _, name = target.partition(".")
    monkeypatch.setattr(getattr(report, module), name, fails)
    status = main(["report", "--out", str(tmp_path / "deep" / "site")])
    assert status == (EXIT_INTERRUPTED if failure == "an interruption" else EXIT_BAD_INPUT)
    out, err = capsys.readouterr()
    assert out == ""
    assert expected in err
    assert err.strip().count("\n") == 0
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_kept_when_a_run_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebooks, "refresh", failing(KeyboardInterrupt()))
    (tmp_path / "site").mkdir()
    with pytest.raises(KeyboardInterrupt):
        report.rerun(tmp_path / "site")
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_banner_escapes_what_it_shows() -> None:
    own = OwnPrices("a<b>&{{x}}$y$\\(z\\).csv", tables.read_prices(tables.DATA / "examples" / "own_prices.csv").rows)
    shown = report.banner(own)
    assert "a&lt;b&gt;&amp;&#123;&#123;x}}&#36;y&#36;&#92;(z&#92;).csv" in shown
    assert "7 prices" in shown


def planned(*arguments: str) -> str:
    """Return the commands that make would run."""
    return subprocess.run(
        ["make", "-n", "book", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def test_make_passes_file_and_folder_on() -> None:
    commands = planned("PRICES=our file.csv", "OUT=there")
    assert '-m analysis report --prices "our file.csv" --out "there"' in commands
    assert "error" not in commands


def test_make_asks_for_the_folder_by_its_own_name() -> None:
    assert "error: OUT: got nothing, expected a new folder beside PRICES=ours.csv" in planned("PRICES=ours.csv")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("nodes", "tokens"), [(0, 1), (10, 1), (1, 0), (1, 0.1), (0, 0)], ids=lambda factor: f"times {factor}"
)
def test_every_chapter_runs_with_odd_prices(tmp_path: Path, nodes: float, tokens: float) -> None:
    """Zero is a price, and ten times a price is one too: no chapter may end in an error."""
    variables = {tables.PRICES_VARIABLE: str(scaled(tmp_path, nodes=nodes, tokens=tokens))}
    _, failed = notebooks.refresh(notebooks.chapters(), write=False, environment=variables)
    assert failed == []


# --- a disk that fails, a tree that can't be written, a run that is ended, two runs at once

#: A run whose chapters are only written back: what follows is about files, not about chapters.
UNEXECUTED = """
import sys
from analysis.cli import main
from analysis.publish import notebooks
notebooks.refreshed = lambda path, environment: path.read_text(encoding="utf-8") + " "
sys.exit(main(["report", "--out", sys.argv[1]]))
"""
#: Runs a command with this tree mounted read-only.
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 77; cd "$1"; shift; exec "$@"'
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONWARNINGS"}


def one_line(err: str) -> str:
    """Return the one line of a refusal; a progress display before it has gone by then."""
    lines = [line for line in err.replace("\r", "\n").split("\n") if line.strip()]
    assert len(lines) == 1, err
    assert lines[0].startswith("error: "), err
    return lines[0]


def unexecuted(out: Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", UNEXECUTED, str(out)],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.parametrize(
    "limit_byte", [1_000, 200_000, pytest.param(900_000, marks=pytest.mark.soak)], ids=["copy", "chapter", "site"]
)
def test_a_file_that_can_not_grow_is_one_line_and_leaves_nothing(tmp_path: Path, limit_byte: int) -> None:
    """The system refuses to write beyond the limit: while copying, while writing a chapter, while building."""

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_byte, limit_byte))

    run = unexecuted(tmp_path / "deep" / "site", preexec_fn=small)
    out, err = run.communicate()
    assert (run.returncode, out) == (EXIT_BAD_INPUT, "")
    assert one_line(err) == "error: --out: got File too large, expected a folder that can be written"
    assert list(tmp_path.iterdir()) == []


def read_only(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command while nobody can write into this tree."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here, which mounts the tree read-only")
    mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", READ_ONLY, "sh", str(ROOT)]
    done = subprocess.run([*mount, *command], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this system does not let users mount")
    return done


def test_a_tree_that_can_not_be_written_is_one_line() -> None:
    done = read_only(sys.executable, "-m", "analysis.publish.site")
    assert done.returncode == EXIT_BAD_INPUT
    assert done.stderr.splitlines()[-1].endswith("got Read-only file system, expected a folder that can be written")
    assert "Traceback" not in done.stderr
    done = read_only(
        *(sys.executable, "-m", "analysis", "prices", "import", "litellm"),
        *("data/examples/litellm-2026-07-20.json", "--out", "data/ours.csv"),
    )
    assert done.returncode == EXIT_BAD_INPUT
    line = "error: data/ours.csv: got Read-only file system, expected a file that can be written"
    assert one_line(done.stderr) == line


@pytest.mark.soak
def test_a_report_needs_nothing_of_the_tree_but_to_read_it(tmp_path: Path) -> None:
    prices = scaled(tmp_path, nodes=0.5)
    done = read_only(
        sys.executable, "-m", "analysis", "report", "--prices", str(prices), "--out", str(tmp_path / "site")
    )
    assert done.returncode == 0, done.stderr
    assert site.missing_pages(tmp_path / "site", site.pages()) == []


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("pause_s", [0, 5, 20])
def test_a_run_that_is_told_to_end_leaves_nothing(tmp_path: Path, number: signal.Signals, pause_s: float) -> None:
    """As it begins, while chapters are executed, while the site is built: neither a file nor a kernel stays."""
    run = subprocess.Popen(
        [sys.executable, "-m", "analysis", "report", "--out", str(tmp_path / "deep" / "site")],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (tmp_path / "deep").exists() and run.poll() is None:
        time.sleep(0.05)
    time.sleep(pause_s)
    children = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(number)
    out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == (EXIT_INTERRUPTED, "")
    assert one_line(err) == "error: interrupted"
    assert list(tmp_path.iterdir()) == []
    assert psutil.wait_procs(children, timeout=20)[1] == []


@pytest.mark.soak
def test_of_two_runs_into_one_folder_one_wins_and_nothing_of_it_is_lost(tmp_path: Path) -> None:
    """Neither folder is there when they begin, so the one that fails must not take it away from the other."""
    runs = [unexecuted(tmp_path / "deep" / "site") for _ in range(2)]
    ends = [run.communicate() for run in runs]
    assert sorted(run.returncode for run in runs) == [0, EXIT_BAD_INPUT]
    (lost,) = (err for run, (_, err) in zip(runs, ends, strict=True) if run.returncode)
    assert one_line(lost).endswith("expected a folder that can be written")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["site"]
    assert site.missing_pages(tmp_path / "deep" / "site", site.pages()) == []


def test_a_run_that_fails_leaves_what_another_has_put_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both runs found no folder and made it; the other one is complete when ours is interrupted."""

    def meanwhile(*args: Any, **kwargs: Any) -> Any:
        (tmp_path / "deep" / "other").mkdir()
        (tmp_path / "deep" / "other" / "index.html").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(notebooks, "refresh", meanwhile)
    with pytest.raises(KeyboardInterrupt):
        report.rerun(tmp_path / "deep" / "site")
    assert [path.name for path in (tmp_path / "deep").rglob("*")] == ["other", "index.html"]
