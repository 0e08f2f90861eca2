"""What the bench keeps: a line of it taken apart, and the table that the page on speed shows."""

from __future__ import annotations

import importlib.util
import sys
from datetime import date
from pathlib import Path

import pytest

from analysis.inputs import InputError
from analysis.reference import tables
from analysis.reference.rows import csv_lines

SCRIPT = Path(__file__).resolve().parents[1] / "bench" / "bench.py"
_spec = importlib.util.spec_from_file_location("bench", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
bench = importlib.util.module_from_spec(_spec)
sys.modules["bench"] = bench
_spec.loader.exec_module(bench)
sys.path.remove(str(SCRIPT.parents[1] / "site"))

DAY = {"day": date(2026, 11, 30), "cpu": "a machine, 2 cores"}


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (
            bench.Line("passes", "12.3 million/s", "at least 10 million/s", True, "1,234 times one call for each"),
            ["12.3", "million/s", "at least 10 million/s", "yes", "one call for each", "1234"],
        ),
        (
            bench.Line("page", "0.71 MB", "at most 0.9 MB", True, "0.56 of the theme as it comes (1.26 MB)"),
            ["0.71", "MB", "at most 0.9 MB", "yes", "the theme as it comes (1.26 MB)", "0.56"],
        ),
        (bench.at_most("chapter", 31.04, 30, "of 9 chapters"), ["31.04", "s", "at most 30 s", "no", "", ""]),
        (bench.Line("verdicts", "4.20 s", "", None, "40 statements"), ["4.20", "s", "", "", "", ""]),
    ],
    ids=["rate", "size", "missed", "no budget"],
)
def test_a_line_is_taken_apart(line: bench.Line, kept: list[str]) -> None:
    assert bench.stored(line, **DAY) == [line.what, *kept, "2026-11-30", "a machine, 2 cores"]


def test_what_was_not_measured_is_not_kept() -> None:
    assert bench.stored(bench.Line("pages", "not measured", "", None, "no Chromium here"), **DAY) is None


def test_the_machine_has_a_name_and_cores() -> None:
    assert bench.processor().endswith(" cores")


def test_the_stored_table_is_read_with_its_numbers(tmp_path: Path) -> None:
    row = ["passes", "12.3", "million/s", "", "", "one call", "1234", "2026-11-30", "a machine"]
    path = tmp_path / "bench.csv"
    path.write_text(csv_lines(tables.BENCH_COLUMNS, [row, [*row[:5], "", "", *row[7:]]]))
    frame = tables.bench(path)
    assert frame["value"].tolist() == [12.3, 12.3]
    assert frame["ratio"].iloc[0] == 1234
    assert frame["ratio"].isna().iloc[1]
    path.write_text(csv_lines(tables.BENCH_COLUMNS, [[*row[:7], "yesterday", row[8]]]))
    with pytest.raises(InputError, match="row 2, column date: got 'yesterday'"):
        tables.bench(path)
