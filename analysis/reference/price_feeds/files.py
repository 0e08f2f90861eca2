"""Files of a feed: read within limits whatever they hold, written all or nothing."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from analysis.inputs import InputError, Words

#: Real feeds have up to 4 MB; parsed JSON takes about ten times its size in memory.
LIMIT_BYTE = 16 * 2**20
#: Half of a character that JSON writes in two; without the other half no file or terminal takes it.
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def read_text(path: Path) -> str:
    """Read a UTF-8 text file, plain or gzipped.

    Raises
    ------
    InputError
        If the file is missing, not readable, too large, damaged, or not UTF-8.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            raw = (gzip.GzipFile(fileobj=file) if packed else file).read(LIMIT_BYTE + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(path.name, Words(str(error)), "a whole gzip file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file name"
        raise InputError(path.name or str(path), Words(reason), "a readable file") from None
    if len(raw) > LIMIT_BYTE:
        raise InputError(path.name, Words(f"more than {LIMIT_BYTE} bytes"), "a price feed of at most that size")
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
    ready: list[tuple[str, Path]] = []
    path = Path()
    try:
        for path, columns, rows in tables:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([cell(value) for value in row] for row in rows)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            ready.append((temporary, path))
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text.getvalue())
            # mkstemp makes files for the owner only; these are meant to be shared like any other
            umask = os.umask(0)
            os.umask(umask)
            Path(temporary).chmod(0o666 & ~umask)
        while ready:
            temporary, path = ready[0]
            Path(temporary).replace(path)
            del ready[0]
    except OSError as error:
        raise InputError(str(path), Words(error.strerror or "no file"), "a file that can be written") from None
    finally:
        for temporary, _ in ready:
            Path(temporary).unlink(missing_ok=True)
