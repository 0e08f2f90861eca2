"""Fit the constants of `analysis.reference.efficiency` on the declared rows, and say how sure they are.

Constants are named by accelerator family or engine class, never by row, model or source. The loss is
robust, each cohort of a source weighs the square root of its rows, and a prior says what physics and
micro-benchmarks know of a constant before any row: a constant that no row can tell stays there.

Merged, because the rows do not tell them apart: attention's share of the peak is the one of matrix products
in 16 bit; one factor (``narrow.mfu``) stands between 16-bit and 8-bit products on all parts; the extra time
of a pass with prompts is the same for all engines; a server at maximum load needs no factor of its own, for
it came out as 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from analysis.evidence.cases import Case, shipped_cases
from analysis.inputs import InputError, or_one_line, write_files
from analysis.model.decoding import Demand, Peaks, peaks, time_of
from analysis.reference.efficiency import CONSTANT_COLUMNS, names_in, recipe
from analysis.reference.rows import csv_lines
from analysis.reference.specs import Efficiency
from analysis.reference.tables import DATA, read_csv_strict, sources

#: An error of a tenth counts as one; beyond it the loss grows like the error and no longer like its square.
TYPICAL_ERROR = 0.1
#: Two-sided 90 % of a normal distribution.
Z90 = 1.645
#: Between the sum (1) and the maximum (endless) of reading and computing. Chosen on the fitting rows by leaving
#: out each source in turn: 1.5 is best of 1, 1.5, 2, 3 and endless.
OVERLAP = 1.5
#: Written with so many digits that another computer's fit rounds to the same.
DIGITS = 3


@dataclass(frozen=True)
class Prior:
    """What is known of a constant before any row: its middle, the log-width of that, and its largest value."""

    middle: float
    width: float
    unit: str
    most: float = math.inf


def prior(name: str) -> Prior:
    """Return the prior of a constant: its own, or that of its kind, the part of its name behind the point.

    Raises
    ------
    KeyError
        If it is no kind that is known.
    """
    return PRIORS[name] if name in PRIORS else PRIORS[name.partition(".")[2]]


#: Copies reach 0.90 to 0.93 of the data sheet, kernels less; large matrix products 0.6 to 0.8 of the dense peak.
PRIORS = {
    "mbu": Prior(0.85, 0.07, "1", 0.95),
    "mfu": Prior(0.7, 0.2, "1", 0.95),
    "narrow.mfu": Prior(0.85, 0.25, "1", 1.0),
    "four_bit.mbu": Prior(0.85, 0.25, "1", 1.0),
    "python.mfu": Prior(0.85, 0.25, "1", 1.0),
    "portable.mfu": Prior(0.85, 0.25, "1", 1.0),
    "share": Prior(0.65, 0.25, "1", 1.0),
    "activations.share": Prior(1.0, 0.3, "1"),
    "layer": Prior(50, 0.7, "us"),
    "sequence": Prior(5, 1.0, "us"),
    "all_reduce": Prior(15, 0.7, "us"),
    "experts.mfu": Prior(0.85, 0.2, "1", 1.0),
    "experts.rows": Prior(48, 0.7, "1"),
    "experts.layer": Prior(30, 1.0, "us"),
}


# --- Sets --------------------------------------------------------------------------------------


@cache
def declared_sets() -> pd.DataFrame:
    """Which rows are fitted and which only judged, by source and accelerator, with the reason.

    Raises
    ------
    InputError
        If a set is not known, a source is not, or a pair occurs twice.
    """
    path = DATA / "measured_sets.csv"
    rows = read_csv_strict(path, ("source", "accelerator", "set", "reason"))
    seen: set[tuple[str, str]] = set()
    for cells in rows:
        place, pair = f"{path.name} row {cells['row']}", (cells["source"], cells["accelerator"])
        if cells["set"] not in ("fit", "validation"):
            raise InputError(f"{place}, column set", cells["set"] or None, "fit or validation")
        if cells["source"] not in sources().index:
            raise InputError(f"{place}, column source", cells["source"] or None, "a key of sources.csv")
        if not cells["reason"]:
            raise InputError(f"{place}, column reason", None, "why")
        if pair in seen:
            raise InputError(f"{place}, column accelerator", cells["accelerator"], "a pair that no other row has")
        seen.add(pair)
    return pd.DataFrame(rows, columns=["source", "accelerator", "set", "reason"])


def set_of(source: str, accelerator: str) -> str:
    """Return ``fit`` or ``validation`` for the rows of a source on an accelerator; ``any`` covers the rest of it."""
    declared = declared_sets().set_index(["source", "accelerator"])["set"]
    for pair in ((source, accelerator), (source, "any")):
        if pair in declared.index:
            return str(declared[pair])
    raise InputError("source", f"{source} on {accelerator}", "a row of measured_sets.csv for it")


# --- Many cases at once ------------------------------------------------------------------------


class Stack:
    """The passes of many cases in flat arrays, so that all are predicted in one call.

    Parameters
    ----------
    cases : sequence of Case
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = cases
        self.recipes = [recipe(case.replica, case.measured.engine) for case in cases]
        self.names = [name for name in names_in(self.recipes) if name != "phase.overlap"]
        steps = [step for case in cases for step in case.steps]
        self._counts = np.array([step.count for step in steps])
        self._asked = Demand(*np.array([step.asked for step in steps]).T)
        self._of_case = np.repeat(np.arange(len(cases)), [len(case.steps) for case in cases])
        self._starts = np.flatnonzero(np.diff(self._of_case, prepend=-1))
        self._peaks = Peaks(*np.array([peaks(case.replica) for case in cases])[self._of_case].T)
        self._tokens = np.array([np.nan if case.tokens is None else case.tokens for case in cases])
        self.measured = np.array([case.measured.value for case in cases])
        self._fields = {field: self._design(field) for field in Efficiency.__annotations__ if field != "overlap"}

    def _design(self, field: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Logarithm of the known factor of a field, and which constants multiply it, for each case."""
        ideal = getattr(Efficiency(), field)
        known = np.array([of.get(field, (ideal, ()))[0] for of in self.recipes])
        uses = np.zeros((len(self.recipes), len(self.names)))
        for row, of in enumerate(self.recipes):
            for name in of.get(field, (ideal, ()))[1]:
                uses[row, self.names.index(name)] += 1
        return known, uses

    def of_passes(self, of_cases: NDArray[np.float64]) -> NDArray[np.float64]:
        """Repeat one number for each case over its passes."""
        return np.asarray(of_cases[self._of_case])

    def efficiency(self, values: Mapping[str, float]) -> Efficiency:
        """Efficiencies of all passes for some values of the constants."""
        logs = np.log([values[name] for name in self.names])
        fields: dict[str, Any] = {
            field: (known * np.exp(uses @ logs))[self._of_case] for field, (known, uses) in self._fields.items()
        }
        return Efficiency(**fields, overlap=values["phase.overlap"])

    def predicted(self, efficiency: Efficiency) -> NDArray[np.float64]:
        """Predictions of all cases: seconds, or tokens per second."""
        seconds = np.add.reduceat(self._counts * time_of(self._asked, self._peaks, efficiency).pass_s, self._starts)
        return np.where(np.isnan(self._tokens), seconds, self._tokens / seconds)

    def log_error(self, values: Mapping[str, float]) -> NDArray[np.float64]:
        """Logarithm of predicted over measured."""
        return np.asarray(np.log(self.predicted(self.efficiency(values)) / self.measured))


# --- Fit ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """Fitted constants: values, 90 % intervals, correlations of their logarithms, rows that each is in."""

    constants: Mapping[str, float]
    low: Mapping[str, float]
    high: Mapping[str, float]
    correlation: pd.DataFrame
    rows: Mapping[str, int]


def cohort(case: Case) -> str:
    """Rows of one source, accelerator and regime: they share their errors."""
    return f"{case.measured.source} {case.measured.accelerator} {case.regime}"


def weights(cases: Sequence[Case]) -> NDArray[np.float64]:
    """Weigh rows so that a cohort of m of them counts like sqrt(m), the mean row like one."""
    sizes = Counter(cohort(case) for case in cases)
    each = np.array([sizes[cohort(case)] ** -0.5 for case in cases])
    return np.asarray(each / each.mean())


def fit(cases: Sequence[Case], *, overlap: float = OVERLAP) -> Fit:
    """Fit all constants that some cases use.

    Parameters
    ----------
    cases : sequence of Case
    overlap : float
        Exponent of the overlap, which is chosen and not fitted. [1]

    Returns
    -------
    Fit
        The same on every run: no randomness, and a fixed start at the priors.

    Notes
    -----
    Minimises the sum of a robust loss of log(predicted/measured) / 0.1, weighted so that a cohort of m rows
    counts like sqrt(m), plus the squared distances from the priors in their widths. Intervals and
    correlations come from the Jacobian at the minimum, scaled by the residuals there.
    """
    stack = Stack(cases)
    names = stack.names
    priors = [prior(name) for name in names]
    middles = np.log([p.middle for p in priors])
    widths = np.array([p.width for p in priors])
    most = np.log([min(p.most, 1e9) for p in priors])
    roots = np.sqrt(weights(cases))

    def values(x: NDArray[np.float64]) -> dict[str, float]:
        return dict(zip(names, np.exp(x), strict=True)) | {"phase.overlap": overlap}

    def residuals(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([roots * stack.log_error(values(x)) / TYPICAL_ERROR, (x - middles) / widths])

    found = least_squares(
        residuals,
        middles,
        bounds=(np.full(len(names), -20.0), most),
        loss="soft_l1",
        x_scale="jac",
        max_nfev=100,
    )
    covariance = np.linalg.inv(found.jac.T @ found.jac)
    spread = np.sqrt(np.diag(covariance))
    correlation = pd.DataFrame(covariance / np.outer(spread, spread), index=names, columns=names)
    uses = {name: sum(any(name in of[1] for of in r.values()) for r in stack.recipes) for name in names}
    return Fit(
        constants=values(found.x),
        low=dict(zip(names, np.exp(found.x - Z90 * spread), strict=True)),
        high=dict(zip(names, np.exp(found.x + Z90 * spread), strict=True)),
        correlation=correlation,
        rows=uses,
    )


def fitting_cases() -> list[Case]:
    """Scored rows of the shipped table that are declared for fitting."""
    return [c for c in shipped_cases()[0] if set_of(c.measured.source, c.measured.accelerator) == "fit"]


def table(found: Fit, *, overlap: float = OVERLAP) -> list[list[str]]:
    """Constants as text rows, rounded to the digits that are written."""

    def text(value: float) -> str:
        return f"{value:.{DIGITS}g}"

    rows = []
    for name in sorted(found.low):
        value = found.constants[name]
        low, high = min(found.low[name], value), max(found.high[name], value)
        rows.append([name, text(value), text(low), text(high), prior(name).unit, str(found.rows[name])])
    chosen = text(overlap)
    rows.append(["phase.overlap", chosen, "1", "3", "1", str(len(fitting_cases()))])
    return rows


def write(path: Path, rows: list[list[str]]) -> None:
    """Write the table of constants."""
    write_files([(path, csv_lines(CONSTANT_COLUMNS, rows))])


def main() -> None:
    """Fit on the declared rows and write `data/derived/efficiency.csv`."""
    path = DATA / "derived" / "efficiency.csv"
    path.parent.mkdir(exist_ok=True)
    rows = table(fit(fitting_cases()))
    write(path, rows)
    print(f"{path.relative_to(DATA.parent)}: {len(rows)} constants from {len(fitting_cases())} rows")


if __name__ == "__main__":
    or_one_line(main)
