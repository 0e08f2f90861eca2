"""Measure the computer at hand: its two roofs, and what a batch costs on it.

The same experiment as on a GPU, small enough for a laptop: read a matrix that no cache holds, and multiply it with
more and more vectors. Nothing else in the package measures time.
"""

from __future__ import annotations

import csv
import io
import os
import platform
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pandas as pd

from analysis.model import roofline
from analysis.reference.price_feeds.files import write_csvs
from analysis.reference.specs import Host
from analysis.reference.tables import SCHEMAS

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
#: Environment variables that limit the threads of the libraries behind NumPy, in the order in which they win.
THREAD_LIMITS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")
#: How the two roofs are found from repeated timings; what is not here was set.
HOW = {
    "copy_byte_per_s": "best of the repeats",
    "read_byte_per_s": "best of all steps that read the matrix",
    "peak_flop_per_s": "best of all matmuls",
}

Progress = Callable[[int, int], None]


def _machine(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Name the processor as a slug; where the system does not say, its architecture."""
    try:
        named = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        named = None
    name = named[1] if named else platform.processor() or platform.machine() or "unnamed"
    return re.sub(r"[^a-z0-9.+]+", "-", name.lower()).strip("-.+") or "unnamed"


def _threads(environment: Mapping[str, str] = os.environ) -> int:
    """Count the threads that NumPy's matmul may use: the limit that is set, else the processors of this process."""
    for name in THREAD_LIMITS:
        if environment.get(name, "").isdigit() and int(environment[name]) > 0:
            return int(environment[name])
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def measure_host(
    *,
    size: int = 8192,
    matmul_size: int = 4096,
    batches: tuple[int, ...] = BATCHES,
    repeats: int = 5,
    progress: Progress | None = None,
) -> Host:
    r"""Measure memory bandwidth, matmul rate, and the time of a matrix times batches of vectors.

    .. math:: \mathrm{BW} = \frac{\text{bytes}}{t}, \qquad P = \frac{2 n^3}{t}

    Parameters
    ----------
    size : int
        Rows and columns of the matrix; 8,192 make 268 MB, far beyond the caches. [1]
    matmul_size : int
        Rows and columns of the square matmul. [1]
    batches : tuple of int
        Numbers of vectors. [1]
    repeats : int
        How often each step is timed, after one run that does not count. [1]
    progress : callable, optional
        Called with (done, total) after each step.

    Returns
    -------
    Host
        In 32-bit floating point, the narrowest format in which NumPy multiplies at full speed.

    Notes
    -----
    The two roofs are the best of the repeats and of all steps that read the matrix or multiply, since a roof is
    the most that was ever reached; the curve is the median, what one meets. The copy and the sum of squares run in
    as many threads as the matmul may use, each on its own slice, so that all have the same processors. A busy
    machine measures slow, and a library may take another routine for one vector than for two.

    Examples
    --------
    >>> tiny = measure_host(size=64, matmul_size=64, batches=(1, 4), repeats=1)
    >>> sorted(tiny.seconds_by_batch), tiny.bandwidth_byte_per_s > 0
    ([1, 4], True)
    """
    done, total = 0, 3 + len(batches)
    rng = np.random.default_rng(0)
    matrix = rng.random((size, size), dtype=np.float32)
    threads = _threads()

    def seconds(work: Callable[[], object], of_times: Callable[[list[float]], float]) -> float:
        nonlocal done
        work()
        times = []
        for _ in range(repeats):
            start = perf_counter()
            work()
            times.append(perf_counter() - start)
        done += 1
        if progress is not None:
            progress(done, total)
        return of_times(times)

    def copy_and_read_s() -> tuple[float, float]:
        source, target = (array.reshape(-1) for array in (matrix, np.empty_like(matrix)))
        edges = [source.size * part // threads for part in range(threads + 1)]
        bounds = [slice(start, stop) for start, stop in pairwise(edges)]
        with ThreadPoolExecutor(threads) as pool:
            return (
                seconds(lambda: list(pool.map(lambda at: np.copyto(target[at], source[at]), bounds)), min),
                seconds(lambda: list(pool.map(lambda at: np.dot(source[at], source[at]), bounds)), min),
            )

    copy_s, read_s = copy_and_read_s()
    square = matrix[:matmul_size, :matmul_size].copy()
    matmul_s = seconds(lambda: square @ square, min)

    def batch_s(batch: int) -> float:
        vectors = rng.random((size, batch), dtype=np.float32)
        result = np.empty((size, batch), dtype=np.float32)
        return seconds(lambda: np.matmul(matrix, vectors, out=result), median)

    seconds_by_batch = {batch: batch_s(batch) for batch in batches}
    flop_per_s = [2 * size**2 * batch / its_s for batch, its_s in seconds_by_batch.items()]
    fastest_s = min(read_s, *seconds_by_batch.values())
    return Host(
        machine=_machine(),
        threads=threads,
        inputs=size,
        outputs=size,
        bytes_per_weight=float(matrix.itemsize),
        copy_byte_per_s=2 * matrix.nbytes / copy_s,
        read_byte_per_s=matrix.nbytes / fastest_s,
        peak_flop_per_s=max(2 * len(square) ** 3 / matmul_s, *flop_per_s),
        seconds_by_batch=seconds_by_batch,
    )


def curve(host: Host) -> pd.DataFrame:
    """Place each batch on the computer's own roofline.

    Parameters
    ----------
    host : Host
        The measurement.

    Returns
    -------
    DataFrame
        Columns ``batch``, ``seconds``, ``seconds_per_vector``, ``flop_per_s``, ``intensity_flop_per_byte``,
        ``attainable_flop_per_s``, and ``least_s_per_vector``, which the roofs allow.
    """
    batch = np.array(list(host.seconds_by_batch), dtype=float)
    seconds = np.array(list(host.seconds_by_batch.values()))
    intensity = roofline.matmul_intensity_flop_per_byte(
        batch,
        inputs=host.inputs,
        outputs=host.outputs,
        bytes_per_weight=host.bytes_per_weight,
        bytes_per_activation=host.bytes_per_weight,
    )
    flop = roofline.pass_flop(host.inputs * host.outputs, positions=batch)
    attainable = roofline.attainable_flop_per_s(
        intensity, peak_flop_per_s=host.peak_flop_per_s, mem_bw_byte_per_s=host.bandwidth_byte_per_s
    )
    return pd.DataFrame(
        {
            "batch": batch.astype(int),
            "seconds": seconds,
            "seconds_per_vector": seconds / batch,
            "flop_per_s": flop / seconds,
            "intensity_flop_per_byte": intensity,
            "attainable_flop_per_s": attainable,
            "least_s_per_vector": flop / attainable / batch,
        }
    )


def record(host: Host) -> dict[str, object]:
    """Write a measurement as plain values: the object of ``measure-host --json``."""
    return {
        "machine": host.machine,
        "threads": host.threads,
        "number_format": f"fp{8 * int(host.bytes_per_weight)}",
        "bandwidth_byte_per_s": host.bandwidth_byte_per_s,
        "peak_flop_per_s": host.peak_flop_per_s,
        "ridge_flop_per_byte": roofline.ridge_flop_per_byte(
            host.peak_flop_per_s, mem_bw_byte_per_s=host.bandwidth_byte_per_s
        ),
        "curve": curve(host).to_dict("records"),
    }


def to_csv(host: Host, *, as_of: date) -> str:
    """Write a measurement in the form of the data tables, as `analysis.reference.tables.host` reads it."""
    schema = SCHEMAS["host_example"]
    values = {quantity: getattr(host, quantity) for quantity in schema.units if quantity != "time"}
    rows = [(quantity, "", value, HOW.get(quantity, "setting")) for quantity, value in values.items()]
    rows += [("time", str(batch), seconds, "median of the repeats") for batch, seconds in host.seconds_by_batch.items()]
    text = io.StringIO()
    table = csv.DictWriter(text, schema.columns, restval="", lineterminator="\n")
    table.writeheader()
    for quantity, batch, value, how in rows:
        table.writerow(
            {
                "machine": host.machine,
                "batch": batch,
                "quantity": quantity,
                "value": f"{value:.6g}",
                "unit": schema.units[quantity],
                "as_of": as_of.isoformat(),
                "source": "measure-host",
                "locator": how,
                "status": "measured",
            }
        )
    return text.getvalue()


def write_csv(host: Host, path: Path, *, as_of: date) -> None:
    """Write `to_csv` into a file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    header, *rows = csv.reader(io.StringIO(to_csv(host, as_of=as_of), newline=""))
    write_csvs([(path, header, rows)])
