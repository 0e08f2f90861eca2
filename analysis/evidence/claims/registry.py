"""What a claim is: a statement of the texts, a test of it, and where its answer is shown.

A claim is declared by decorating its test. Its verdict is computed by `analysis.evidence.claims.verdict`, never typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.evidence.scenarios import Point, Space
from analysis.reference.own_prices import OwnPrices

Kind = Literal["computed", "definition", "market fact"]
Quantifier = Literal["always", "typically", "can"]
StatedIn = Literal["article", "summary", "both", "addition"]


@dataclass(frozen=True)
class Context:
    """What a verdict is given for: the day of the data, and own prices if there are any.

    Without own prices here those hold that the environment names, see `analysis.reference.tables.prices_in_force`.
    """

    as_of: date
    prices: OwnPrices | None = None


@dataclass(frozen=True)
class Stated:
    """A number in the text, as the range that its words cover.

    ``words`` says how the words became numbers, for example "about 33" as 32.5 to 33.5.
    """

    low: float
    high: float
    unit: str
    words: str

    def contains(self, value: ArrayLike) -> NDArray[np.bool_]:
        """Say which values lie in the range, ends included."""
        array = np.asarray(value, dtype=float)
        return (array >= self.low) & (array <= self.high)


@dataclass(frozen=True)
class Outcome:
    """What a computed claim's test says of each sample: true or false, defined or not, and the number behind it."""

    true: NDArray[np.bool_]
    value: NDArray[np.float64] | None = None
    defined: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Structure:
    """What a definition's test says: whether our model has that structure, and when practice departs from it."""

    present: bool
    departs_when: str


@dataclass(frozen=True)
class Evidence:
    """The dated rows that speak for or against a market fact.

    ``rows`` has the columns ``value``, ``unit``, ``as_of``, ``source`` and ``supports``; without rows the fact is
    unsupported, and ``searched`` says what was looked for, where and when. ``called`` is what the rows are.
    """

    rows: pd.DataFrame
    searched: str
    called: str = "dated prices"


@dataclass(frozen=True)
class Counterfactual:
    """A change of inputs under which a computed claim's verdict becomes another."""

    change: str
    apply: Callable[[Space], Space]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement with its test. Fields as in `claim`."""

    id: str
    paraphrase: str
    stated_in: StatedIn
    chapter: str
    anchor: str
    test: Callable[..., Any]
    stated: Stated | None
    sources: tuple[str, ...]
    quantifier: Quantifier | None
    kind: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class Computed(Claim):
    """A statement that sampled points make true or false."""

    kind = "computed"
    quantifier: Quantifier
    space: Callable[[Context], Space]
    counterfactual: Counterfactual
    inputs: Mapping[str, str] = field(default_factory=dict)
    split: str | None = None
    accelerator: str | None = "h100-sxm"

    def outcome(self, points: Point, context: Context) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Outcome]:
        """Run the test: which samples are defined, which of all are true, and the outcome as returned."""
        shape = np.shape(next(iter(points.values())))
        outcome = self.test(points, context)
        defined = np.ones(shape, bool) if outcome.defined is None else np.broadcast_to(outcome.defined, shape)
        return defined, np.broadcast_to(outcome.true, shape) & defined, outcome


@dataclass(frozen=True, kw_only=True)
class Definition(Claim):
    """A statement that says how a thing is meant."""

    kind = "definition"
    quantifier: None = None


@dataclass(frozen=True, kw_only=True)
class MarketFact(Claim):
    """A statement that dated sources bear out or not."""

    kind = "market fact"
    quantifier: Quantifier


KINDS = {cls.kind: cls for cls in (Computed, Definition, MarketFact)}
REGISTRY: dict[str, Claim] = {}


def claim(
    claim_id: str,
    *,
    kind: Kind,
    stated_in: StatedIn,
    chapter: str,
    anchor: str = "claims",
    stated: Stated | None = None,
    sources: tuple[str, ...] = ("radar2026",),
    **of_kind: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a statement; the docstring of the decorated test is its paraphrase.

    Parameters
    ----------
    claim_id : str
        ``C`` and digits; permanent.
    kind : {"computed", "definition", "market fact"}
        Decides which verdicts there are and what the test returns: an `Outcome` of sampled points and a
        `Context`, a `Structure`, or the `Evidence` in a `Context`.
    stated_in : {"article", "summary", "both", "addition"}
        Which text says it; an addition is ours.
    chapter : str
        File stem of the chapter that shows the computation.
    anchor : str
        Label in that chapter.
    stated : Stated, optional
        The number in the text, if it has one.
    sources : tuple of str
        Keys of sources.csv: who states it and what the computation rests on.
    **of_kind
        What only this kind has. Computed: ``quantifier`` ("always", "typically", "can"), ``space`` (makes the
        scenario space from a context), ``counterfactual``, and optionally ``inputs`` (how an input is called on
        the page), ``split`` (a choice whose values the page tells apart where no threshold decides) and
        ``accelerator`` (what a test computes on that asks its context for no day: the article's GPU if left out,
        None where it takes none). Market fact: ``quantifier``.

    Raises
    ------
    ValueError
        If the id is malformed or taken, or the kind lacks what it needs.
    """

    def register(test: Callable[..., Any]) -> Callable[..., Any]:
        if kind not in KINDS:
            raise ValueError(f"claim {claim_id}: kind {kind!r}, expected one of {', '.join(KINDS)}")
        paraphrase = " ".join((test.__doc__ or "").split())
        if not paraphrase:
            raise ValueError(f"claim {claim_id}: a {kind} claim without a docstring")
        if not re.fullmatch(r"C\d{2,3}", claim_id) or claim_id in REGISTRY:
            raise ValueError(f"claim {claim_id!r}: expected C and digits, not yet registered")
        try:
            REGISTRY[claim_id] = KINDS[kind](
                id=claim_id,
                paraphrase=paraphrase,
                stated_in=stated_in,
                chapter=chapter,
                anchor=anchor,
                test=test,
                stated=stated,
                sources=sources,
                **of_kind,
            )
        except TypeError as error:
            # the dataclass names what is missing or superfluous: a computed claim needs its counterfactual
            raise ValueError(f"claim {claim_id}: a {kind} claim {str(error).partition(') ')[2] or error}") from None
        return test

    return register
