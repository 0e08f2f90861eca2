"""Measuring this computer: the form of the answer, its way through a file, and the shipped example."""

import json
from datetime import date
from functools import partial

import numpy as np
import pytest

from analysis.cli import main
from analysis.evidence import host
from analysis.inputs import InputError
from analysis.reference import tables

TINY = {"size": 128, "matmul_size": 96, "batches": (1, 2, 8), "repeats": 2}
DAY = date(2026, 11, 30)


@pytest.fixture(scope="module")
def measured():
    return host.measure_host(**TINY)


def test_every_step_is_timed_and_announced():
    """One warm-up and then the repeats, for copy, read, matmul and each batch; one announcement for each step."""
    seen = []
    found = host.measure_host(**TINY, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(step, 6) for step in range(1, 7)]
    assert list(found.seconds_by_batch) == [1, 2, 8]
    assert min(found.seconds_by_batch.values()) > 0


def test_the_roofs_are_the_most_that_was_reached(measured):
    assert measured.bandwidth_byte_per_s == max(measured.copy_byte_per_s, measured.read_byte_per_s)
    assert (host.curve(measured)["flop_per_s"] <= measured.peak_flop_per_s * (1 + 1e-12)).all()


def test_rates_are_counts_over_times(monkeypatch):
    """With a clock that ticks once a second every step takes one second, so each rate is its count."""
    ticks = iter(range(10_000))
    monkeypatch.setattr(host, "perf_counter", lambda: next(ticks))
    found = host.measure_host(**TINY)
    matrix_byte = 4 * 128 * 128
    assert found.copy_byte_per_s == 2 * matrix_byte
    assert found.read_byte_per_s == matrix_byte
    assert found.peak_flop_per_s == max(2 * 96**3, 2 * 128 * 128 * 8)
    assert found.seconds_by_batch == {1: 1, 2: 1, 8: 1}
    assert host.curve(found)["flop_per_s"].tolist() == [2 * 128 * 128 * batch for batch in (1, 2, 8)]


def test_the_curve_lies_on_its_own_roofline(measured):
    """A square matrix of d rows moves 4 d^2 + 8 m d bytes and does 2 m d^2 operations."""
    curve = host.curve(measured)
    m = np.array([1, 2, 8])
    assert curve["intensity_flop_per_byte"].to_numpy() == pytest.approx(2 * m * 128 / (4 * 128 + 8 * m))
    assert (curve["attainable_flop_per_s"] <= measured.peak_flop_per_s).all()


def test_a_measurement_survives_its_file(measured, tmp_path):
    path = tmp_path / "mine.csv"
    host.write_csv(measured, path, as_of=DAY)
    again = tables.host(path)
    assert again.machine == measured.machine
    assert again.seconds_by_batch == pytest.approx(measured.seconds_by_batch, rel=1e-5)
    for field in ("threads", "inputs", "outputs", "bytes_per_weight", "read_byte_per_s", "peak_flop_per_s"):
        assert getattr(again, field) == pytest.approx(getattr(measured, field), rel=1e-5)


def lines(measured):
    return host.to_csv(measured, as_of=DAY).splitlines()


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda rows: [row for row in rows if ",threads," not in row], "a row for threads"),
        (lambda rows: [row for row in rows if ",time," not in row], "a row for time"),
        (lambda rows: [*rows, rows[-1].replace(",8,time,", ",half,time,")], "column batch: got 'half'"),
        (lambda rows: [*rows, rows[-1].replace("2026-11-30", "2026-12-01")], "one computer on one day"),
        (lambda rows: [row.replace("FLOP/s", "GFLOP/s") for row in rows], "column unit: got 'GFLOP/s'"),
    ],
)
def test_a_damaged_measurement_is_refused(measured, tmp_path, damage, named):
    path = tmp_path / "mine.csv"
    path.write_text("\n".join([*damage(lines(measured)), ""]), encoding="utf-8")
    with pytest.raises(InputError) as refusal:
        tables.host(path)
    assert "mine.csv" in str(refusal.value)
    assert named in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("environment", "threads"),
    [({"OMP_NUM_THREADS": "3"}, 3), ({"OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "1"}, 1)],
)
def test_a_limit_on_threads_is_reported(environment, threads):
    assert host._threads(environment) == threads


@pytest.mark.parametrize("value", ["", "0", "many"])
def test_a_limit_that_is_none_leaves_the_processors(value):
    assert host._threads({"OMP_NUM_THREADS": value}) == host._threads({}) >= 1


@pytest.mark.parametrize(
    ("text", "machine"),
    [("processor : 0\nmodel name\t: Some CPU @ 2.60GHz (R)\n", "some-cpu-2.60ghz-r"), ("model name : ((\n", "unnamed")],
)
def test_a_processor_is_named_as_a_slug(tmp_path, text, machine):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(text, encoding="utf-8")
    assert host._machine(cpuinfo) == machine


def test_where_no_file_names_the_processor_the_system_does(tmp_path):
    assert host._machine(tmp_path / "absent")


def test_the_command_prints_the_contract_and_writes_the_file(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(host, "measure_host", partial(host.measure_host, **TINY))
    path = tmp_path / "mine.csv"
    assert main(["measure-host", "--out", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"bandwidth_byte_per_s", "peak_flop_per_s", "curve", "threads"} <= set(found)
    assert [point["batch"] for point in found["curve"]] == list(tables.host(path).seconds_by_batch) == [1, 2, 8]
    assert main(["measure-host"]) == 0
    assert "GB/s" in capsys.readouterr().out


def test_the_command_refuses_a_place_that_it_cannot_write(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(host, "measure_host", partial(host.measure_host, **TINY))
    assert main(["measure-host", "--out", str(tmp_path / "absent" / "mine.csv")]) == 2
    assert (
        capsys.readouterr().err == "error: --out: got No such file or directory, expected a file that can be written\n"
    )


def test_the_shipped_example_shows_what_chapter_two_says():
    """One vector runs far below the matmul rate; a vector in the largest batch costs a small fraction of one alone."""
    example = tables.host()
    curve = host.curve(example).set_index("batch")
    assert list(curve.index) == list(host.BATCHES)
    assert (curve["flop_per_s"] <= 1.05 * curve["attainable_flop_per_s"]).all()
    assert curve["flop_per_s"][1] < 0.2 * example.peak_flop_per_s
    assert curve["seconds"][512] / 512 < 0.15 * curve["seconds"][1]
    assert curve["flop_per_s"][512] > 0.9 * example.peak_flop_per_s
