"""Doors: checks that arguments pass before a formula sees them.

Every refusal in this package has one shape, ``WHERE: got VALUE, expected WHAT``, so that the
command line can print it as one line and a test can look for the value in it.
"""

from __future__ import annotations

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
        super().__init__(f"{where}: got {show(got)}, expected {expected}")

    def at(self, where: str) -> InputError:
        """Return the same refusal with another place, for example an option for an argument."""
        return InputError(where, self.got, self.expected)


def show(value: object) -> str:
    r"""Write a refused value on one short line.

    Examples
    --------
    >>> show("a\nb"), show(float("nan")), show(None)
    ("'a\\nb'", 'nan', 'nothing')
    """
    if value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."


def _door(where: str, value: ArrayLike, accept: Any, expected: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(where, value, expected) from None
    refused = ~(np.isfinite(array) & accept(array))
    if refused.any():
        raise InputError(where, float(array[refused].flat[0]), expected)
    return array


def positive(where: str, value: ArrayLike) -> NDArray[np.float64]:
    """Accept finite numbers above zero, as an array of floats."""
    return _door(where, value, lambda a: a > 0, "a number above 0")


def not_negative(where: str, value: ArrayLike) -> NDArray[np.float64]:
    """Accept finite numbers from zero up, as an array of floats."""
    return _door(where, value, lambda a: a >= 0, "a number, 0 or above")


def fraction(where: str, value: ArrayLike) -> NDArray[np.float64]:
    """Accept fractions above zero and at most one, as an array of floats."""
    return _door(where, value, lambda a: (a > 0) & (a <= 1), "a fraction above 0 and at most 1")


def share(where: str, value: ArrayLike) -> NDArray[np.float64]:
    """Accept fractions from zero to one, both included, as an array of floats."""
    return _door(where, value, lambda a: (a >= 0) & (a <= 1), "a fraction from 0 to 1")


def whole(where: str, value: ArrayLike) -> NDArray[np.float64]:
    """Accept whole numbers from one up, as an array of floats."""
    return _door(where, value, lambda a: (a >= 1) & (a == np.floor(a)), "a whole number, 1 or above")


def scalar_or_array(value: NDArray[np.float64]) -> Any:
    """Return a plain float for a result without axes, the array itself otherwise."""
    return value if value.ndim else float(value)
