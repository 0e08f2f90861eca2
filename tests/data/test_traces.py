"""The shipped traces hold what their sources hold, and a damaged trace is told in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.inputs import InputError
from analysis.reference import tables, traces

FOLDER = tables.DATA / "traces"
REQUESTS = [name for name, its in traces.known().items() if "requests" in its]
RATES = [name for name, its in traces.known().items() if "windows" in its]


@pytest.mark.parametrize("name", REQUESTS)
def test_counts_and_means_are_those_of_the_source(name: str) -> None:
    its, trace = traces.known()[name], traces.shipped(name, spread=False)
    assert len(trace) == its["requests"]
    assert trace.span_s == pytest.approx(its["span"], abs=0.001)
    assert trace.input_tokens.mean() == pytest.approx(its["mean_input"], abs=0.006)
    assert trace.output_tokens.mean() == pytest.approx(its["mean_output"], abs=0.006)
    assert traces.cached_share(trace) == pytest.approx(its.get("cached_share", 0.0), abs=6e-5)


@pytest.mark.parametrize("name", RATES)
def test_rates_are_those_of_the_source(name: str) -> None:
    its, windows = traces.known()[name], traces.shipped_windows(name)
    assert (windows.req_per_s.size, windows.window_s) == (its["windows"], 600)
    assert windows.req_per_s.mean() == pytest.approx(its["mean_rate"], rel=1e-4)
    if "gap_cv" in its:
        known = np.isfinite(windows.cv)
        assert np.average(windows.cv[known], weights=windows.req_per_s[known]) == pytest.approx(its["gap_cv"], rel=1e-4)


def test_every_file_is_described_and_attributed() -> None:
    files = {path.stem for path in FOLDER.glob("*.csv")}
    assert files == set(traces.known())
    rows = tables.all_rows("traces")
    assert set(tables.sources().loc[rows["source"].unique(), "licence"]) == {"CC BY 4.0", "Apache-2.0"}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2e6
    assert "Apache License" in (FOLDER / "LICENSE-APACHE.txt").read_text()


def test_percentiles_and_bursts_are_those_of_the_published_description() -> None:
    """Azure 2023, as computed from its files: medians, 95th percentiles, and variance over mean of counts."""
    code, chat = traces.shipped("azure-2023-code"), traces.shipped("azure-2023-conversation")
    assert np.percentile(code.input_tokens, [50, 95]).round().tolist() == [1469, 7303]
    assert np.percentile(code.output_tokens, [50, 95]).round().tolist() == [13, 90]
    assert np.percentile(chat.output_tokens, [50, 95]).round().tolist() == [129, 451]
    assert traces.burstiness(code.arrival_s, window_s=1.0) == pytest.approx(13.2, abs=0.05)
    assert traces.burstiness(chat.arrival_s, window_s=1.0) == pytest.approx(1.4, abs=0.05)


def test_rounded_stamps_are_spread_within_their_step() -> None:
    raw = traces.shipped("mooncake-conversation", spread=False)
    spread = traces.shipped("mooncake-conversation")
    assert np.unique(raw.arrival_s).size == 1180
    assert np.unique(spread.arrival_s).size > 12_000
    assert np.array_equal(np.sort(spread.input_tokens), np.sort(raw.input_tokens))
    assert traces.burstiness(raw.arrival_s, window_s=1.0) > 7 > 2 > traces.burstiness(spread.arrival_s, window_s=1.0)


def test_a_day_is_the_mean_over_days() -> None:
    """Hours of the large model: the busiest has 1.45 times the requests of the calmest."""
    day = traces.shipped_windows("servegen-m-large").day()
    assert day.shape == (144,)
    hours = day.reshape(24, 6).mean(axis=1)
    assert hours.max() / hours.min() == pytest.approx(1.45, abs=0.01)


def test_a_part_of_a_trace_starts_at_its_own_beginning() -> None:
    trace = traces.shipped("azure-2023-code").between(600, 1200)
    assert trace.arrival_s[0] == 0
    assert trace.span_s < 600
    with pytest.raises(InputError, match="between: got '9000 to 9600 s'"):
        traces.shipped("azure-2023-code").between(9000, 9600)


# --- Formats


def test_formats_say_the_same(tmp_path: Path) -> None:
    plain = "arrival_s,input_tokens,output_tokens,cached_tokens\n0,1200,10,0\n0.25,1300,20,1024\n"
    azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 23:59:59.9000000,1200,10\n"
    azure += "2023-11-17 00:00:00.1500000,1300,20\n"
    rows = ((5, 1200, 10, [0, 1, 2]), (255, 1300, 20, [0, 1, 9]))
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    mooncake = "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    found = []
    for i, text in enumerate((plain, azure, mooncake)):
        (tmp_path / f"{i}.txt").write_text(text)
        found.append(traces.read(tmp_path / f"{i}.txt"))
    for trace in found:
        assert trace.arrival_s == pytest.approx([0.0, 0.25], abs=1e-6)
        assert trace.input_tokens.tolist() == [1200, 1300]
        assert trace.output_tokens.tolist() == [10, 20]
    assert [trace.cached_tokens.tolist() for trace in found] == [[0, 1024], [0, 0], [0, 1024]]


GOOD = "arrival_s,input_tokens,output_tokens\n0,10,5\n"
LINE = '{"timestamp": 0, "input_length": 10, "output_length": 5, "hash_ids": [1]}\n'


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "t.csv row 1: got nothing, expected a header arrival_s,input_tokens,output_tokens or TIMESTAMP"),
        ("a,b\n1,2\n", "t.csv row 1: got 'a,b', expected a header"),
        ("arrival_s,input_tokens,output_tokens\n", "t.csv: got nothing, expected at least one request"),
        (GOOD + "1,10\n", "t.csv row 3: got 2 cells, expected 3 cells"),
        (GOOD + "soon,10,5\n", "t.csv row 3, column arrival_s: got 'soon', expected a number of seconds"),
        (GOOD + "nan,10,5\n", "t.csv row 3, column arrival_s: got 'nan'"),
        (GOOD + "1,,5\n", "t.csv row 3, column input_tokens: got nothing, expected a whole number of tokens"),
        (GOOD + "1,1.5,5\n", "t.csv row 3, column input_tokens: got '1.5'"),
        (GOOD + "1,10,0\n", "t.csv row 3, column output_tokens: got '0', expected a whole number of tokens, 1 to"),
        (GOOD + "1,99999999999999999999,5\n", "column input_tokens: got '99999999999999999999'"),
        (GOOD + "2,10,5\n1,10,5\n", "t.csv row 4, column arrival_s: got '1', expected a time not before"),
        (GOOD.replace("\n", ",cached_tokens\n", 1).replace("5\n", "5,10\n"), "row 2, column cached_tokens: got 10"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n16.11.2023,10,5\n", "row 2, column TIMESTAMP: got '16.11.2023'"),
        (LINE + "{oops\n", "t.csv row 2: got '{oops', expected a JSON object"),
        (LINE + '{"timestamp": 1}\n', "t.csv row 2: got '{\"timestamp\": 1}', expected a JSON object with timestamp"),
        (LINE.replace("[1]", '["a"]'), "row 1, column hash_ids"),
        (LINE.replace('": 10', '": true'), "row 1, column input_length: got True"),
        (LINE.replace('": 0', '": -1'), "row 1, column timestamp: got -1"),
    ],
)
def test_a_damaged_trace_is_told_in_one_line(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError) as refusal:
        traces.read(path)
    assert named in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("t,rate\n0,1\n", "row 1: got 't,rate', expected t_s,req_per_s"),
        ("t_s,req_per_s\n0,1\n600,-2\n", "row 3, column req_per_s: got '-2'"),
        ("t_s,req_per_s\n0,1\n600,2\n1300,2\n", "row 4, column t_s: got '1300', expected 1200"),
        ("t_s,req_per_s\n0,1\n", "got 1, expected at least two windows"),
    ],
)
def test_damaged_rates_are_told_in_one_line(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError) as refusal:
        traces.read_rates(path)
    assert named in str(refusal.value)


def test_a_damaged_client_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("0,0,0,,0,0\n600,1,wild,Gamma,1,1\n")
    with pytest.raises(
        InputError, match=r"t\.csv row 2, column 3 \(variation\): got 'wild', expected a number above 0"
    ):
        traces.read_client(path)
    path.write_bytes(b"arrival_s,input_tokens\n\xff\n")
    with pytest.raises(InputError, match=r"t\.csv row 2: got byte 0xff"):
        traces.read(path)
    with pytest.raises(InputError, match="a readable trace"):
        traces.read(tmp_path / "none.csv")


def test_an_unknown_trace_lists_the_nearest() -> None:
    with pytest.raises(InputError, match=r"got 'azure-code', expected one that is shipped: azure-2023-code"):
        traces.shipped("azure-code")
    with pytest.raises(InputError, match="got 'azure-2023-code', expected one that is shipped: servegen"):
        traces.shipped_windows("azure-2023-code")
