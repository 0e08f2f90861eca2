"""What a reader makes of a feed: offers that may be used, and findings that say what was not, and why."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from analysis.inputs import show

#: Called with the rows or entries done, and how many there are.
Progress = Callable[[int, int], None]

#: Plain decimal notation: ``float`` would also take 1_000 and other scripts.
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Offer:
    """One price as a feed states it, in the unit of its table.

    Parameters
    ----------
    place : str
        The entry or row of the feed. Prices of one place are doubted together.
    column : str
        The field that holds the price.
    keys : tuple of str
        The key columns of the table.
    value : float
        USD per million tokens, or USD per node and hour.
    as_of : str
        The day of the price, blank where the feed has none.
    note : str
        What a reader of the price should know.
    high : float or None
        The dearest of several prices for these keys, where ``value`` is the cheapest.
    """

    place: str
    column: str
    keys: tuple[str, ...]
    value: float
    as_of: str = ""
    note: str = ""
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of the report: something that was not used, or used although it looks odd."""

    verdict: Literal["flagged", "refused"]
    used: bool
    kind: str
    place: str
    column: str
    got: str
    reason: str


@dataclass
class Feed:
    """What was read from one file.

    Parameters
    ----------
    table : str
        The table whose rows the offers are: ``api_prices`` or ``node_prices``.
    file : str
        The name of the file, for messages.
    source : str
        The format of the feed.
    day : date
        The day whose prices are wanted.
    as_of : str
        That day as text where it was stated, blank where it is only today.
    """

    table: str
    file: str
    source: str
    day: date
    as_of: str = ""
    offers: list[Offer] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def refuse(self, kind: str, place: str, column: str, got: object, reason: str) -> None:
        """Report something that is no price of text tokens or of a node."""
        self.findings.append(Finding("refused", False, kind, place, column, show(got), reason))

    def flag(self, kind: str, place: str, column: str, got: object, reason: str, *, used: bool = False) -> None:
        """Report something that a person should look at; ``used`` says whether it went into the result."""
        self.findings.append(Finding("flagged", used, kind, place, column, show(got), reason))

    def hold(self, doubts: Sequence[tuple[Offer, str, str]]) -> None:
        """Take offers out of the result, each with the kind of doubt and the reason."""
        held = {id(offer) for offer, _, _ in doubts}
        self.offers = [offer for offer in self.offers if id(offer) not in held]
        for offer, kind, reason in doubts:
            self.flag(kind, offer.place, offer.column, offer.value, reason)

    def price(self, place: str, column: str, raw: Any, factor: float = 1.0) -> float | None:
        """Read one number of a feed, or refuse it with a line. Missing is not zero: None stays None.

        Six significant digits remain: feeds write 7.499999e-07 for 0.75 per million.

        Examples
        --------
        >>> feed = Feed("api_prices", "feed.json", "litellm", date(2026, 7, 20))
        >>> feed.price("gpt-5", "input_cost_per_token", 1.25e-06, 1e6)
        1.25
        >>> feed.price("router", "prompt", "-1", 1e6), feed.findings[0].kind
        (None, 'no-price')
        """
        if raw is None:
            return None
        try:
            plain = not isinstance(raw, bool | str) or (isinstance(raw, str) and _PLAIN.fullmatch(raw))
            number = float(raw) if plain else math.nan
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            self.refuse("not-a-number", place, column, raw, "a price is a finite number")
        elif number < 0:
            self.refuse("no-price", place, column, raw, "below zero: a router or a variable price, not a price")
        else:
            value = float(f"{number * factor:.6g}") + 0.0  # no minus before a zero
            if math.isfinite(value):
                return value
            self.refuse("not-a-number", place, column, raw, "a price is a finite number")
        return None
