"""Files of a feed: read within limits whatever they hold, written all or nothing."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from analysis.inputs import InputError, Words, read_file, write_files
from analysis.reference.rows import csv_lines

#: Real feeds have up to 4 MB; parsed JSON takes about ten times its size in memory.
LIMIT_BYTE = 16 * 2**20
#: Half of a character that JSON writes in two; without the other half no file or terminal takes it.
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def read_text(path: Path) -> str:
    """Read a UTF-8 text file, plain or gzipped.

    Raises
    ------
    InputError
        If the file is missing, no regular one, not readable, too large, damaged, or not UTF-8.
    """
    raw = read_file(path, at_most=LIMIT_BYTE, expected="a price feed: a regular file of at most that size")
    try:
        if raw.startswith(b"\x1f\x8b"):
            raw = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(LIMIT_BYTE + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(path.name, Words(str(error)), "a whole gzip file") from None
    if len(raw) > LIMIT_BYTE:
        raise InputError(path.name, Words(f"more than {LIMIT_BYTE:,} bytes"), "a price feed of at most that size")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{path.name} row {row}", Words(f"byte 0x{raw[error.start]:02x}"), "UTF-8 text") from None


def read_json(path: Path) -> Any:
    """Parse a JSON file.

    Raises
    ------
    InputError
        As `read_text`, and if the text is no JSON, holds a key twice, or nests too deep.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for position, key in enumerate(keys) if key in keys[:position])
            raise InputError(f"{path.name} key {twice}", Words("the key twice"), "each key once")
        return found

    text = read_text(path)
    try:
        content = json.loads(text, object_pairs_hook=once)
        if _ESCAPED_HALF.search(text):
            json.dumps(content, ensure_ascii=False).encode()
        return content
    except UnicodeEncodeError:
        raise InputError(path.name, Words("half a surrogate pair"), "whole characters") from None
    except json.JSONDecodeError as error:
        place = f"{path.name} row {error.lineno}, column {error.colno}"
        raise InputError(place, text[error.pos : error.pos + 20] or None, "well-formed JSON") from None
    except RecursionError:
        raise InputError(path.name, Words("too many levels"), "JSON of a few levels") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(path.name, Words("a number of thousands of digits"), "well-formed JSON") from None


def cell(value: object) -> str:
    """Write a value so that a spreadsheet takes it for text or a number, never for a formula.

    Examples
    --------
    >>> cell("=1+1"), cell("@cf/meta"), cell(0.5), cell(None)
    ("'=1+1", "'@cf/meta", '0.5', '')
    """
    if value is None:
        return ""
    text = repr(value) if isinstance(value, float) else str(value)
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    text = " ".join(text.split())
    return f"'{text}" if text[:1] in {"=", "+", "-", "@"} else text


def write_csvs(tables: Iterable[tuple[Path, Sequence[str], Iterable[Sequence[object]]]]) -> None:
    """Write several CSV files; each appears whole or not at all.

    Parameters
    ----------
    tables : iterable of (Path, columns, rows)
        The files.

    Raises
    ------
    InputError
        If a file can't be written.
    """
    write_files(
        [(path, csv_lines(columns, ([cell(value) for value in row] for row in rows))) for path, columns, rows in tables]
    )
