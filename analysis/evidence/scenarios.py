"""Scenario spaces: the inputs that a statement covers, each range with its reason, sampled evenly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from analysis.inputs import InputError, Words

#: A power of two, as Sobol points want it; the share of true samples is then good to about half a point.
SAMPLES = 4096
SEED = 20260720


@dataclass(frozen=True)
class Range:
    """An input that varies between two values.

    Parameters
    ----------
    low, high : float
        The ends, low < high.
    reason : str
        Why these ends: a source, a market, a bound of physics.
    scale : {"log", "uniform"}
        Log-uniform for quantities compared by ratio, uniform for fractions.
    floor, ceiling : float, optional
        What the input can never pass (a fraction stays below 1), also when the range is doubled.
    """

    low: float
    high: float
    reason: str
    scale: Literal["log", "uniform"] = "log"
    floor: float = -math.inf
    ceiling: float = math.inf

    def __post_init__(self) -> None:
        lowest = 0.0 if self.scale == "log" else -math.inf
        if not lowest < self.low < self.high < math.inf:
            raise ValueError(f"range {self.low} to {self.high}: expected low < high, above zero on a log scale")
        if not self.reason.strip():
            raise ValueError(f"range {self.low} to {self.high}: expected a reason")

    def at(self, quantile: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map numbers between 0 and 1 onto the range."""
        if self.scale == "log":
            # through the ratio, so that quantile 0 and 1 give the ends to the last digit
            return self.low * (self.high / self.low) ** quantile
        return self.low + (self.high - self.low) * quantile

    @property
    def central(self) -> float:
        """The middle of the range on its scale."""
        return float(self.at(np.asarray(0.5)))

    def stretched(self, factor: float) -> Range:
        """Return the range with its width on its scale times a factor, around the same middle."""
        ends = self.at(np.array([0.5 - factor / 2, 0.5 + factor / 2]))
        return replace(self, low=max(float(ends[0]), self.floor), high=min(float(ends[1]), self.ceiling))


@dataclass(frozen=True)
class Choice:
    """An input that takes one of several values, all equally likely."""

    values: tuple[Any, ...]
    reason: str

    def __post_init__(self) -> None:
        if not self.values or not self.reason.strip():
            raise InputError("choice", Words(self.values), "at least one value, and a reason")

    def at(self, quantile: NDArray[np.float64]) -> NDArray[Any]:
        """Map numbers between 0 and 1 onto the values."""
        index = np.minimum((np.asarray(quantile) * len(self.values)).astype(int), len(self.values) - 1)
        return np.array(self.values)[index]

    @property
    def central(self) -> Any:
        """The middle value in the order given."""
        return self.values[(len(self.values) - 1) // 2]

    def stretched(self, factor: float) -> Choice:
        """Return itself: a choice has no width."""
        return self


def between(low: float, high: float, reason: str, *, floor: float = -math.inf) -> Range | Choice:
    """Return a range between two values that come from data, or the one value where they agree.

    Own prices can make every row of a table alike, and zero is a price: such a range is uniform.

    Examples
    --------
    >>> between(2, 2, "one price").central, between(1, 4, "two prices").central
    (2.0, 2.0)
    """
    low, high = float(low), float(high)
    if low == high:
        return Choice((low,), reason)
    return Range(low, high, reason, scale="log" if low > 0 else "uniform", floor=floor)


Space = Mapping[str, Range | Choice]
Point = Mapping[str, Any]


def sample(space: Space, *, count: int = SAMPLES, seed: int = SEED) -> dict[str, NDArray[Any]]:
    """Draw scrambled Sobol points from a space.

    Parameters
    ----------
    space : mapping of str to Range or Choice
        The inputs.
    count : int
        How many points, a power of two.
    seed : int
        Seed of the scrambling; the same seed gives the same points.

    Returns
    -------
    dict of str to array, shape (count,)
        One array for each input.

    Examples
    --------
    >>> points = sample({"u": Range(0.1, 0.9, "an example", scale="uniform")}, count=4)
    >>> bool(((points["u"] > 0.1) & (points["u"] < 0.9)).all())
    True
    """
    quantiles = qmc.Sobol(len(space), scramble=True, rng=seed).random(count)
    return {name: axis.at(quantiles[:, i]) for i, (name, axis) in enumerate(space.items())}


def central(space: Space) -> dict[str, Any]:
    """Return the middle of each input."""
    return {name: axis.central for name, axis in space.items()}


def stretched(space: Space, factor: float) -> dict[str, Range | Choice]:
    """Return the space with every range halved (0.5), doubled (2), or otherwise scaled."""
    return {name: axis.stretched(factor) for name, axis in space.items()}


def fixed(space: Space, **values: Any) -> dict[str, Range | Choice]:
    """Return the space with some inputs held at one value.

    Raises
    ------
    KeyError
        If the space has no such input.
    """
    missing = values.keys() - space.keys()
    if missing:
        raise KeyError(f"no input {', '.join(sorted(missing))} in {', '.join(space)}")
    return {**space, **{name: Choice((value,), "held fixed") for name, value in values.items()}}
