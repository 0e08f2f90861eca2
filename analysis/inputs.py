"""Doors: checks that arguments pass before a formula sees them, and the way in and out for files.

Every refusal in this package has one shape, ``WHERE: got VALUE, expected WHAT``, so that the
command line can print it as one line and a test can look for the value in it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class InputError(ValueError):
    """A value from outside that the model does not accept.

    Parameters
    ----------
    where : str
        The argument, option, or file with row and column, that holds the value.
    got : object
        The offending value, shown as given.
    expected : str
        What would have been accepted.

    Examples
    --------
    >>> print(InputError("utilization", 1.2, "a fraction above 0 and at most 1"))
    utilization: got 1.2, expected a fraction above 0 and at most 1
    """

    def __init__(self, where: str, got: object, expected: str) -> None:
        self.where, self.got, self.expected = where, got, expected
        super().__init__(f"{printable(where)}: got {show(got)}, expected {printable(expected)}")

    def at(self, where: str) -> InputError:
        """Return the same refusal with another place, for example an option for an argument."""
        return InputError(where, self.got, self.expected)


def printable(text: str) -> str:
    r"""Escape what would move a terminal's cursor or start another line.

    Examples
    --------
    >>> printable("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def read_file(path: Path, *, at_most: int, expected: str) -> bytes:
    """Read a file from outside: a regular one, and not without bound.

    Raises
    ------
    InputError
        If it is missing, a folder, a pipe or a device, or larger than ``at_most`` bytes.
    """
    try:
        # a pipe would be waited for and a device read without end, so only a regular file is opened
        special = path.exists() and not path.is_file()
        if not special:
            with path.open("rb") as file:
                raw = file.read(at_most + 1)
    except (OSError, ValueError) as error:
        raise InputError(str(path), Words(getattr(error, "strerror", None) or error), expected) from None
    if special:
        raise InputError(str(path), Words("Is a directory" if path.is_dir() else "a pipe or a device"), expected)
    if len(raw) > at_most:
        raise InputError(str(path), Words(f"more than {at_most:,} bytes"), expected)
    return raw


def write_files(texts: Iterable[tuple[Path, str]]) -> None:
    """Write several text files; each appears whole or not at all, and none before all of them could be written.

    Parameters
    ----------
    texts : iterable of (Path, str)
        The files. One that is there keeps its mode; a new one gets the mode that any other new file has.

    Raises
    ------
    InputError
        If a file can't be written: its folder is missing or read-only, the disk is full, a limit is reached.
    """
    ready: list[tuple[Path, Path]] = []
    path = Path()
    try:
        for path, text in texts:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            ready.append((Path(name), path))
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            # mkstemp makes files for the owner only; these are meant to be shared like any other
            umask = os.umask(0)
            os.umask(umask)
            Path(name).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~umask)
        while ready:
            temporary, path = ready[0]
            temporary.replace(path)
            del ready[0]
    except OSError as error:
        raise InputError(str(path), Words(error.strerror or "no file"), "a file that can be written") from None
    finally:
        for temporary, _ in ready:
            temporary.unlink(missing_ok=True)


def or_one_line(command: Callable[[], None]) -> None:
    """Run a command of a maintainer; a refusal is one line on standard error and exit status 2, as everywhere."""
    try:
        command()
    except InputError as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        sys.exit(2)


class Words(str):
    """A description that stands in the place of a value, shown without quotes."""

    __slots__ = ()


def show(value: object) -> str:
    r"""Write a refused value on one short line.

    Examples
    --------
    >>> show("a\nb"), show(float("nan")), show(None)
    ("'a\\nb'", 'nan', 'nothing')
    """
    if value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str) and not isinstance(value, Words) else str(value)
    text = printable(" ".join(text.split()))
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass(frozen=True)
class Door:
    """A domain of numbers: returns values as floats, or refuses the first that is outside.

    Examples
    --------
    >>> print(positive("batch", [1, 2]))
    [1. 2.]
    >>> positive.parse("--batch", "1_000")
    Traceback (most recent call last):
    analysis.inputs.InputError: --batch: got '1_000', expected a number above 0
    """

    expected: str
    accept: Callable[[NDArray[np.float64]], NDArray[np.bool_]]

    def __call__(self, where: str, value: ArrayLike) -> NDArray[np.float64]:
        """Accept finite numbers inside the domain."""
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(where, value, self.expected) from None
        refused = ~(np.isfinite(array) & self.accept(array))
        if refused.any():
            raise InputError(where, float(array[refused].flat[0]), self.expected)
        return array

    def parse(self, where: str, text: str) -> float:
        """Read one number from text. Only plain decimal notation: ``float`` would also take 1_000 and other scripts."""
        if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text, re.ASCII):
            raise InputError(where, text or None, self.expected)
        value = float(text)
        if value == 0 and re.search(r"[1-9]", text.lower().partition("e")[0]):
            raise InputError(where, text, f"{self.expected}, not too small to be told from 0")
        return float(self(where, value + 0.0))  # a minus before 0 says nothing


positive = Door("a number above 0", lambda a: a > 0)
not_negative = Door("a number, 0 or above", lambda a: a >= 0)
fraction = Door("a fraction above 0 and at most 1", lambda a: (a > 0) & (a <= 1))
share = Door("a fraction from 0 to 1", lambda a: (a >= 0) & (a <= 1))
at_least_one = Door("a number, 1 or above", lambda a: a >= 1)
percentile = Door("a number above 0 and below 100", lambda a: (a > 0) & (a < 100))
whole_from_zero = Door("a whole number, 0 or above", lambda a: (a >= 0) & (a == np.floor(a)))
whole = Door("a whole number, 1 or above", lambda a: (a >= 1) & (a == np.floor(a)))


def scalar_or_array(value: NDArray[np.float64]) -> Any:
    """Return a plain float for a result without axes, the array itself otherwise."""
    return value if value.ndim else float(value)
