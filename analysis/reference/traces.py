"""Request traces: when requests came, how long prompts and answers were, what a prefix cache would have held.

Formats: a plain CSV, Azure's two columns of tokens, Mooncake's JSON lines with hashes of prompt blocks, and the
rates and client files of ServeGen. Shipped traces are plain CSV; ``data/README.md`` says what was done to them.
"""

from __future__ import annotations

import csv
import json
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.inputs import InputError, Words, positive, read_file, share
from analysis.reference.rows import nearest, place
from analysis.reference.tables import DATA, all_rows

#: Ten million requests of a plain trace take less.
MAX_TRACE_BYTE = 512 * 2**20
#: More tokens than any context holds.
MOST_TOKENS = 10**7
#: Tokens of a prompt block that Mooncake hashes.
BLOCK_TOKENS = 512
PLAIN = ("arrival_s", "input_tokens", "output_tokens", "cached_tokens")
AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
FORMATS = f"a header {','.join(PLAIN[:3])} or {','.join(AZURE)}, or JSON lines with timestamp and input_length"


@dataclass(frozen=True)
class Trace:
    """Requests in the order of their arrival, the first at 0.

    Parameters
    ----------
    arrival_s : array
        [s]
    input_tokens, output_tokens, cached_tokens : array
        Tokens of prompt, of answer, and of the prompt that an endless prefix cache would have held. [token]
    """

    arrival_s: NDArray[np.float64]
    input_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    cached_tokens: NDArray[np.int32]

    def __len__(self) -> int:
        return int(self.arrival_s.size)

    @property
    def span_s(self) -> float:
        """Time from the first arrival to the last. [s]."""
        return float(self.arrival_s[-1])

    @property
    def rate_req_per_s(self) -> float:
        """Mean rate. [request/s]."""
        return len(self) / self.span_s if self.span_s > 0 else math.inf

    def spread(self, step_s: float, *, seed: int = 0) -> Trace:
        """Move each arrival to a random moment of the step by which its stamp was rounded, and sort anew.

        Raises
        ------
        InputError
            If the step is not above zero.

        Examples
        --------
        >>> Trace(np.zeros(2), *(np.ones((3, 2), np.int32))).spread(3.0, seed=1).span_s < 3
        True
        """
        moved = self.arrival_s + np.random.default_rng(seed).uniform(0, float(positive("step_s", step_s)), len(self))
        order = np.argsort(moved, kind="stable")
        return Trace(
            moved[order] - moved[order[0]],
            self.input_tokens[order],
            self.output_tokens[order],
            self.cached_tokens[order],
        )

    def between(self, begin_s: float, until_s: float) -> Trace:
        """Cut out a part.

        Raises
        ------
        InputError
            If nothing arrives in it.
        """
        inside = (self.arrival_s >= begin_s) & (self.arrival_s < until_s)
        if not inside.any():
            raise InputError("between", f"{begin_s:g} to {until_s:g} s", f"a part of 0 to {self.span_s:g} s")
        cut = Trace(*(column[inside] for column in vars(self).values()))
        return replace(cut, arrival_s=cut.arrival_s - cut.arrival_s[0])


# --- Readers -----------------------------------------------------------------------------------


def read(path: Path) -> Trace:
    """Read a trace, whatever its format.

    Parameters
    ----------
    path : Path
        Plain (``arrival_s,input_tokens,output_tokens[,cached_tokens]``), Azure's, or Mooncake's.

    Returns
    -------
    Trace

    Raises
    ------
    InputError
        For the first damaged row: file, row, column, value, and what was expected.

    Examples
    --------
    >>> len(read(DATA / "traces" / "azure-2023-code.csv"))
    8819
    """
    text = _text(path)
    first = text.partition("\n")[0].strip()
    if first.startswith("{"):
        return _mooncake(path, text)
    header = tuple(cell.strip() for cell in first.split(","))
    if header == AZURE:
        return _azure(path, text)
    if header in (PLAIN, PLAIN[:3]):
        return _plain(path, text, len(header))
    raise InputError(f"{path.name} row 1", first or None, FORMATS)


def _text(path: Path) -> str:
    raw = read_file(path, at_most=MAX_TRACE_BYTE, expected="a readable trace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{path.name} row {row}", Words(f"byte 0x{raw[error.start]:02x}"), "UTF-8 text") from None


class _Columns:
    """Columns that grow row by row, each number checked as it comes."""

    def __init__(self, path: Path, names: tuple[str, ...]) -> None:
        self.path, self.names = path, names
        self.arrival_s, self.tokens = array("d"), [array("i") for _ in range(3)]

    def at(self, row: int, column: int) -> str:
        return place(self.path, row, self.names[column])

    def arrive(self, row: int, got: object, arrival_s: float) -> None:
        if self.arrival_s and arrival_s < self.arrival_s[-1]:
            raise InputError(self.at(row, 0), got, "a time not before that of the row above")
        self.arrival_s.append(arrival_s)

    def count(self, row: int, column: int, got: Any, *, least: int = 1) -> int:
        """Check one number of tokens."""
        try:
            value = int(got)
            exact = str(value) == got.strip() if isinstance(got, str) else type(got) is int
        except (TypeError, ValueError):
            exact, value = False, 0
        if not exact or not least <= value <= MOST_TOKENS:
            expected = f"a whole number of tokens, {least} to {MOST_TOKENS:,}"
            raise InputError(self.at(row, column), got if got != "" else None, expected)
        return value

    def add(self, row: int, given: tuple[Any, Any, Any]) -> None:
        prompt, answer = (self.count(row, i + 1, given[i]) for i in (0, 1))
        cached = self.count(row, 3, given[2], least=0) if given[2] != 0 else 0
        if cached >= prompt:
            raise InputError(self.at(row, 3), cached, f"fewer than the {prompt} tokens of the prompt")
        for column, value in zip(self.tokens, (prompt, answer, cached), strict=True):
            column.append(value)

    def trace(self) -> Trace:
        if not self.arrival_s:
            raise InputError(self.path.name, None, "at least one request")
        arrival = np.frombuffer(self.arrival_s, float)
        columns = (np.frombuffer(column, np.int32) for column in self.tokens)
        return Trace(arrival - arrival[0], *columns)


def _rows(path: Path, text: str, width: int, *, header: bool = True) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        if header:
            next(reader)
        for cells in reader:
            if len(cells) != width:
                raise InputError(f"{path.name} row {reader.line_num}", Words(f"{len(cells)} cells"), f"{width} cells")
            yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"{path.name} row {reader.line_num}", Words(str(error)), "a well-formed CSV row") from None


def _number(at: str, text: str, expected: str, accept: Callable[[float], bool]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not accept(value):
        raise InputError(at, text or None, expected)
    return value


def _plain(path: Path, text: str, width: int) -> Trace:
    columns = _Columns(path, PLAIN)
    for row, cells in _rows(path, text, width):
        arrival = _number(columns.at(row, 0), cells[0], "a number of seconds, 0 or above", lambda value: value >= 0)
        columns.arrive(row, cells[0], arrival)
        columns.add(row, (cells[1], cells[2], cells[3] if width == 4 else 0))
    return columns.trace()


def _azure(path: Path, text: str) -> Trace:
    columns = _Columns(path, (*AZURE, "CachedTokens"))
    for row, cells in _rows(path, text, len(AZURE)):
        stamp, _, fraction = cells[0].partition(".")
        try:
            # seven decimals, one more than a datetime holds
            whole_s = datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
            moment = whole_s + float(f"0.{fraction or 0}")
        except ValueError:
            expected = "a time such as 2023-11-16 18:17:03.9799600"
            raise InputError(columns.at(row, 0), cells[0] or None, expected) from None
        columns.arrive(row, cells[0], moment)
        columns.add(row, (cells[1], cells[2], 0))
    return columns.trace()


def _mooncake(path: Path, text: str) -> Trace:
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    columns = _Columns(path, names)
    prompts, blocks = [], []
    for row, line in enumerate(text.splitlines(), start=1):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise InputError(f"{path.name} row {row}", line or None, "a JSON object") from None
        if not isinstance(found, dict) or not set(names) <= set(found):
            raise InputError(f"{path.name} row {row}", line, f"a JSON object with {', '.join(names)}")
        stamp, prompt, answer, hashes = (found[name] for name in names)
        if type(stamp) is not int or stamp < 0:
            raise InputError(columns.at(row, 0), stamp, "a whole number of milliseconds, 0 or above")
        if not isinstance(hashes, list) or not all(type(block) is int for block in hashes):
            raise InputError(columns.at(row, 3), hashes, "a list of whole numbers")
        columns.arrive(row, stamp, stamp / 1000)
        columns.add(row, (prompt, answer, 0))
        prompts.append(prompt)
        blocks.append(hashes)
    return replace(columns.trace(), cached_tokens=prefix_hits(prompts, blocks))


def prefix_hits(input_tokens: Iterable[int], blocks: Iterable[list[int]], *, block_tokens: int = BLOCK_TOKENS) -> Any:
    """Tokens of each prompt that a prefix cache would hold which never forgets.

    Parameters
    ----------
    input_tokens : iterable of int
        Prompts in the order of arrival. [token]
    blocks : iterable of list of int
        The name of each block of a prompt; equal names mean equal text up to the end of the block.
    block_tokens : int
        Tokens of a block. [token]

    Returns
    -------
    array
        Leading blocks that an earlier prompt had, in tokens; the last token of a prompt is never among them. An
        upper bound for a cache that has an end, or is not shared by all replicas. [token]

    Examples
    --------
    >>> prefix_hits([1200, 1300, 1024], [[0, 1, 2], [0, 1, 9], [0, 1]]).tolist()
    [0, 1024, 1023]
    """
    seen: set[int] = set()
    hits = []
    for prompt, names in zip(input_tokens, blocks, strict=True):
        known = next((i for i, name in enumerate(names) if name not in seen), len(names))
        hits.append(min(known * block_tokens, prompt - 1))
        seen.update(names)
    return np.array(hits, np.int32)


# --- ServeGen: rates and clients ---------------------------------------------------------------


@dataclass(frozen=True)
class Windows:
    """Rates in windows of equal length.

    Parameters
    ----------
    window_s : float
        Length of a window. [s]
    req_per_s : array
        Mean rate in each. [request/s]
    cv : array
        Standard deviation over mean of the gaps in each, NaN where none is given. [1]
    """

    window_s: float
    req_per_s: NDArray[np.float64]
    cv: NDArray[np.float64]

    def day(self) -> NDArray[np.float64]:
        """Average rate in each window of a day, over the days. [request/s].

        Raises
        ------
        InputError
            If the windows do not fill a day evenly, or there is not a whole day.
        """
        each = 86_400 / self.window_s
        days = int(self.req_per_s.size // each)
        if each != round(each) or not days:
            raise InputError("day", self.req_per_s.size, "windows that divide a day, at least a day of them")
        return np.asarray(self.req_per_s[: days * int(each)].reshape(days, int(each)).mean(axis=0))


def read_rates(path: Path) -> Windows:
    """Read a file of rates: header ``t_s,req_per_s``.

    Raises
    ------
    InputError
        For the first damaged row.
    """
    text = _text(path)
    header = text.partition("\n")[0].strip()
    if header != "t_s,req_per_s":
        raise InputError(f"{path.name} row 1", header or None, "t_s,req_per_s")
    return _windows(path, ((row, [*cells, ""]) for row, cells in _rows(path, text, 2)), ("t_s", "req_per_s", "cv"))


def read_client(path: Path) -> Windows:
    """Read a client file of ServeGen: window start, mean rate, variation of gaps, family, two parameters; no header.

    Raises
    ------
    InputError
        For the first damaged row.
    """
    rows = _rows(path, _text(path), 6, header=False)
    return _windows(path, ((row, cells[:3]) for row, cells in rows), ("1 (start)", "2 (rate)", "3 (variation)"))


def _windows(path: Path, rows: Iterator[tuple[int, list[str]]], names: tuple[str, str, str]) -> Windows:
    starts: list[float] = []
    rates: list[float] = []
    spreads: list[float] = []
    for row, cells in rows:
        start, rate = (
            _number(place(path, row, names[i]), cells[i], "a number, 0 or above", lambda value: value >= 0)
            for i in (0, 1)
        )
        if len(starts) > 1 and not math.isclose(start - starts[-1], starts[1] - starts[0]):
            raise InputError(place(path, row, names[0]), cells[0], f"{2 * starts[-1] - starts[-2]:g}, the next window")
        spread = place(path, row, names[2])
        known = cells[2] not in ("", "0")
        starts.append(start)
        rates.append(rate)
        spreads.append(_number(spread, cells[2], "a number above 0", lambda v: v > 0) if known else math.nan)
    if len(starts) < 2 or not starts[1] > starts[0]:
        raise InputError(path.name, len(starts), "at least two windows, one after the other")
    return Windows(starts[1] - starts[0], np.array(rates), np.array(spreads))


# --- What is shipped ---------------------------------------------------------------------------


@cache
def known() -> Mapping[str, Mapping[str, float]]:
    """Read what the sources' files hold, by trace: requests, span, mean tokens, share in a cache, step of stamps."""
    found: dict[str, dict[str, float]] = {}
    for row in all_rows("traces").to_dict("records"):
        found.setdefault(row["trace"], {})[row["quantity"]] = row["value"]
    return found


@cache
def shipped(name: str, *, spread: bool = True) -> Trace:
    """Read a shipped trace.

    Parameters
    ----------
    name : str
        As in ``data/traces.csv``.
    spread : bool
        Move arrivals inside the step by which their stamps were rounded, where the table has one (seed 0).

    Returns
    -------
    Trace

    Raises
    ------
    InputError
        If there is no such trace; the message lists the nearest.

    Examples
    --------
    >>> code = shipped("azure-2023-code")
    >>> len(code), round(code.rate_req_per_s, 2), round(float(code.input_tokens.mean()))
    (8819, 2.57, 2048)
    """
    its = _of(name, "requests")
    trace = read(DATA / "traces" / f"{name}.csv")
    step_s = its.get("stamp_step")
    return trace.spread(step_s) if spread and step_s else trace


@cache
def shipped_windows(name: str) -> Windows:
    """Read shipped rates over two weeks: of all clients of a model, or of one client.

    Raises
    ------
    InputError
        If there are none of that name; the message lists the nearest.

    Examples
    --------
    >>> round(shipped_windows("servegen-m-large").req_per_s.mean())
    196
    """
    _of(name, "mean_rate")
    path = DATA / "traces" / f"{name}.csv"
    return read_client(path) if "chunk" in name else read_rates(path)


def _of(name: str, quantity: str) -> Mapping[str, float]:
    names = [trace for trace, its in known().items() if quantity in its]
    if name not in names:
        raise InputError("trace", name, f"one that is shipped: {nearest(name, names)}")
    return known()[name]


def burstiness(arrival_s: NDArray[np.float64], *, window_s: float) -> float:
    """Variance over mean of the number of arrivals in a window: 1 for Poisson at any window.

    Parameters
    ----------
    arrival_s : array
        Sorted. [s]
    window_s : float
        [s]

    Returns
    -------
    float
        Index of dispersion. [1]

    Raises
    ------
    InputError
        If the window is not above zero.

    Examples
    --------
    >>> round(burstiness(shipped("azure-2023-code").arrival_s, window_s=60.0))
    167
    """
    width = float(positive("window_s", window_s))
    # the last window is not a whole one
    counts = np.bincount((arrival_s // width).astype(np.int64))[:-1]
    return float(counts.var(ddof=1) / counts.mean()) if counts.size > 1 else math.nan


def cached_share(trace: Trace) -> float:
    """Share of all prompt tokens that the prefix cache holds. [1]."""
    return float(share("cached_share", trace.cached_tokens.sum() / trace.input_tokens.sum()))
