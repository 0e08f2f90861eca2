"""What a row of a table is: its schema, and a CSV reader that refuses what is damaged.

One row is one observation. Row numbers count as an editor does: the header is row 1.
"""

from __future__ import annotations

import calendar
import csv
import difflib
import io
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import Literal, get_args

import pandas as pd

from analysis.inputs import InputError, Words, not_negative, read_file

Status = Literal["listed", "measured", "reported", "quoted", "assumed"]
STATUSES = get_args(Status)


@dataclass(frozen=True)
class Observation:
    """What every row has besides its keys."""

    quantity: str
    value: float
    low: float | None
    high: float | None
    unit: str
    as_of: date
    source: str
    locator: str
    status: str
    note: str


@dataclass(frozen=True)
class Schema:
    """The columns that identify a row of one table, and the unit of each quantity it may hold.

    A quantity that sources print in several units lists them all, split by blanks: ``"GB GiB"``.
    """

    name: str
    keys: tuple[str, ...]
    units: Mapping[str, str]
    may_be_blank: frozenset[str] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, keys first, in the order of the file."""
        return (*self.keys, *(f.name for f in fields(Observation)))


#: A row of this quantity says that an offer had ended by that day: its older prices are history.
WITHDRAWN = "withdrawn"

#: The shape of every name in a key column.
#: A table or a price file larger than this is something else.
MAX_FILE_BYTE = 32 * 2**20
SLUG = re.compile(r"[a-z0-9][a-z0-9._+-]*")


def parse_date(where: str, text: str) -> date:
    """Read an ISO date; a month or a year means its last day.

    Parameters
    ----------
    where : str
        File, row and column, or option, for the message.
    text : str
        ``2026``, ``2026-07`` or ``2026-07-20``.

    Returns
    -------
    date

    Raises
    ------
    InputError
        If the text is none of the three.

    Examples
    --------
    >>> parse_date("--as-of", "2026-02").isoformat()
    '2026-02-28'
    """
    expected = "an ISO date such as 2026-07-20, 2026-07 or 2026"
    if not re.fullmatch(r"\d{4}(-\d{2}(-\d{2})?)?", text, re.ASCII):
        raise InputError(where, text, expected)
    parts = [int(part) for part in text.split("-")]
    year, month = parts[0], parts[1] if len(parts) > 1 else 12
    try:
        return date(year, month, parts[2] if len(parts) > 2 else calendar.monthrange(year, month)[1])
    except (ValueError, calendar.IllegalMonthError):
        raise InputError(where, text, expected) from None


def place(path: Path, row: int, column: str) -> str:
    """Name a cell in a refusal."""
    return f"{path.name} row {row}, column {column}"


def parse_value(at: Callable[[str], str], cells: Mapping[str, str]) -> tuple[float, float | None, float | None]:
    """Read the value of a row and the bounds around it, None where a bound is blank.

    Raises
    ------
    InputError
        If one is no number, 0 or above, or the value is not between its bounds.
    """
    value = not_negative.parse(at("value"), cells["value"])
    low, high = (not_negative.parse(at(bound), cells[bound]) if cells[bound] else None for bound in ("low", "high"))
    for bound, fits in (("low", low is None or low <= value), ("high", high is None or high >= value)):
        if not fits:
            raise InputError(at(bound), cells[bound], f"a bound around the value {cells['value']}")
    return value, low, high


def read_csv_strict(path: Path, columns: Iterable[str], *, may_lack: Collection[str] = ()) -> list[dict[str, str]]:
    """Read a UTF-8 CSV whose header is exactly ``columns`` into a list of text rows.

    Parameters
    ----------
    path : Path
        The file.
    columns : iterable of str
        The names in its header.
    may_lack : collection of str
        Columns that a file from outside may leave out; its columns then stand in any order, a byte-order mark
        (spreadsheets write one) is passed over, and a column that is left out reads as blank.

    Raises
    ------
    InputError
        If the file is missing, empty, not UTF-8, starts with a byte-order mark, has another header,
        a ragged row, or a control character in a cell.
    """
    expected = list(columns)
    raw = read_file(path, at_most=MAX_FILE_BYTE, expected="a readable file (tables lie in data/ beside the package)")
    if raw.startswith(b"\xef\xbb\xbf"):
        raw = raw[3:] if may_lack else raw
    if raw.startswith(b"\xef\xbb\xbf"):
        raise InputError(f"{path.name} row 1", Words("a byte-order mark"), "plain UTF-8")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        row = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{path.name} row {row}", Words(f"byte 0x{raw[error.start]:02x}"), "UTF-8 text") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[dict[str, str]] = []
    blank = dict.fromkeys(may_lack, "")
    try:
        header = next(reader, None)
        header = expected if header == expected else _free_header(path, header or [], expected, may_lack)
        for cells in reader:
            if len(cells) != len(header):
                raise InputError(
                    f"{path.name} row {reader.line_num}", Words(f"{len(cells)} cells"), f"{len(header)} cells"
                )
            for column, cell in zip(header, cells, strict=True):
                if cell != cell.strip() or not cell.isprintable():
                    raise InputError(
                        place(path, reader.line_num, column), cell, "printable text without blanks around it"
                    )
            rows.append(blank | dict(zip(header, cells, strict=True)) | {"row": str(reader.line_num)})
    except csv.Error as error:
        raise InputError(f"{path.name} row {reader.line_num}", Words(str(error)), "a well-formed CSV row") from None
    return rows


def _free_header(path: Path, header: list[str], columns: list[str], may_lack: Collection[str]) -> list[str]:
    """Accept a header in any order if no column is unknown, twice there, or missing without leave."""
    needed = [column for column in columns if column not in may_lack]
    if not may_lack or not header or not set(needed) <= set(header):
        raise InputError(f"{path.name} row 1", ",".join(header) or None, ",".join(needed))
    for column in header:
        if column not in columns or header.count(column) > 1:
            raise InputError(f"{path.name} row 1", column, f"each column once, of {', '.join(columns)}")
    return header


def nearest(wanted: str, names: Iterable[str], count: int = 3) -> str:
    """List the names that look most like the wanted one.

    Examples
    --------
    >>> nearest("p5.48xlrage", ["p5.48xlarge", "a3-highgpu-8g"], count=1)
    'p5.48xlarge'
    """
    known = sorted(str(name) for name in names)
    close = difflib.get_close_matches(wanted.lower(), known, n=count, cutoff=0.3) or known[:count]
    return ", ".join(close)


def csv_lines(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    r"""Write a header and rows of text as CSV with LF line ends.

    Examples
    --------
    >>> csv_lines(["a", "b"], [["1", "x,y"]])
    'a,b\n1,"x,y"\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(frame: pd.DataFrame) -> str:
    r"""Write rows as CSV for people who open it in a spreadsheet: text that looks like a formula stays text.

    Parameters
    ----------
    frame : DataFrame
        The rows; numbers are written as they are, so a negative one stays a number.

    Returns
    -------
    str
        CSV with a header and LF line ends, each formula-like text behind an apostrophe.

    Examples
    --------
    >>> csv_text(pd.DataFrame({"value": [-1.5], "note": ["=1+1"]}))
    "value,note\n-1.5,'=1+1\n"
    """

    def as_text(cell: object) -> object:
        return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell

    return str(frame.map(as_text).to_csv(index=False, lineterminator="\n"))
