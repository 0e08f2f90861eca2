"""The ledger: every registered statement with its verdict on a day."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from typing import Any

import pandas as pd

from analysis.evidence.claims.registry import REGISTRY, Claim, Computed, Context, MarketFact
from analysis.evidence.claims.verdict import Verdict, by_choice, evaluate
from analysis.evidence.scenarios import Choice, sample
from analysis.inputs import InputError
from analysis.reference.own_prices import BOOK, OwnPrices
from analysis.reference.tables import accelerator, nearest, prices_in_force

#: Enough samples to meet every branch of a test.
_FEW_SAMPLES = 64


def verdicts(
    *,
    as_of: date,
    only: str | None = None,
    chapter: str | None = None,
    prices: OwnPrices | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Verdict]:
    """Evaluate the registered claims, in the order of their ids.

    Parameters
    ----------
    as_of : date
        The day of the data.
    only : str, optional
        One id.
    chapter : str, optional
        Those that this chapter computes; none where it has none.
    prices : OwnPrices, optional
        Own prices; without them those that the environment names.
    progress : callable, optional
        Called with (done, total) after each claim.

    Returns
    -------
    list of Verdict

    Raises
    ------
    InputError
        If ``only`` names no registered claim.
    """
    if only is not None and only not in REGISTRY:
        raise InputError("only", only, f"a registered claim: {nearest(only, REGISTRY)}")
    ids = sorted(REGISTRY) if only is None else [only]
    ids = [claim_id for claim_id in ids if chapter in (None, REGISTRY[claim_id].chapter)]
    # a price file that cannot be used must not pass for a day without data
    prices_in_force(prices)
    found = []
    for done, claim_id in enumerate(ids, start=1):
        found.append(_evaluated(REGISTRY[claim_id], Context(as_of, prices)))
        if progress is not None:
            progress(done, len(ids))
    return found


@dataclass(frozen=True)
class _Watched(Context):
    """A context that notes what it is asked for: the day, or prices."""

    asked: list[str] = field(default_factory=list, compare=False)

    def __getattribute__(self, name: str) -> Any:
        if name in ("prices", "as_of"):
            object.__getattribute__(self, "asked").append(name)
        return object.__getattribute__(self, name)


def priced(*, as_of: date) -> list[str]:
    """List the claims that ask for prices, so that own prices can change their verdict; a few samples tell.

    Parameters
    ----------
    as_of : date
        The day of the data.

    Returns
    -------
    list of str
        Their ids, in order.

    Examples
    --------
    >>> [claim for claim in priced(as_of=date(2026, 7, 20)) if claim in ("C36", "C40", "C44")]
    ['C40', 'C44']
    """
    return [claim_id for claim_id in sorted(REGISTRY) if _asks_for_prices(REGISTRY[claim_id], as_of)]


def _asks_for_prices(claim: Claim, as_of: date) -> bool:
    return "prices" in _asked(claim, as_of)


def _asked(claim: Claim, as_of: date) -> set[str]:
    """Return what a claim asks its context for; one that asks for nothing has the same verdict on every day."""
    watched = _Watched(as_of, BOOK)
    if isinstance(claim, Computed):
        claim.outcome(sample(claim.space(watched), count=_FEW_SAMPLES), watched)
    elif isinstance(claim, MarketFact):
        claim.test(watched)
    return set(watched.asked)


def changes(found: Iterable[Verdict]) -> pd.DataFrame:
    """List the verdicts that own prices change, with the boundary that explains each.

    Parameters
    ----------
    found : iterable of Verdict
        Given with own prices.

    Returns
    -------
    DataFrame
        Columns ``id``, ``statement``, ``verdict_book``, ``verdict``, ``share_book``, ``share_true``,
        ``decided_by``; no rows where nothing changes.
    """
    rows = []
    for verdict in found:
        if not _asks_for_prices(verdict.claim, verdict.context.as_of):
            continue
        book = evaluate(verdict.claim, Context(verdict.context.as_of, BOOK))
        if book.verdict != verdict.verdict:
            rows.append(
                {
                    "id": verdict.claim.id,
                    "statement": verdict.claim.paraphrase,
                    "verdict_book": book.verdict,
                    "verdict": verdict.verdict,
                    "share_book": book.share_true,
                    "share_true": verdict.share_true,
                    "decided_by": verdict.decided_by,
                }
            )
    columns = ["id", "statement", "verdict_book", "verdict", "share_book", "share_true", "decided_by"]
    return pd.DataFrame(rows, columns=columns)


#: Verdicts of claims that ask for nothing: the same on another day, and with other prices, once there is the hardware.
_ALWAYS: dict[str, tuple[Claim, Verdict]] = {}


def _evaluated(claim: Claim, context: Context) -> Verdict:
    """Evaluate a claim; where the tables have nothing on that day, the claim says so."""
    known = _ALWAYS.get(claim.id)
    try:
        if known is None or known[0] is not claim:
            verdict = evaluate(claim, context)
            if _asked(claim, context.as_of):
                return verdict
            known = _ALWAYS[claim.id] = claim, verdict
        if isinstance(claim, Computed) and claim.accelerator is not None:
            # refuses a day on which nobody could have it
            accelerator(claim.accelerator, as_of=context.as_of)
        return replace(known[1], context=context)
    except InputError as absent:
        no_data = "unsupported" if claim.kind == "market fact" else "undefined"
        return Verdict(claim, context, no_data, decided_by=f"no data on that day ({absent})", share_undefined=1.0)


def record(verdict: Verdict) -> dict[str, Any]:
    """Write one verdict as plain values: a row of the ledger, an object of ``claims --json``."""
    claim = verdict.claim
    return {
        "id": claim.id,
        "paraphrase": claim.paraphrase,
        "stated_in": claim.stated_in,
        "kind": claim.kind,
        "quantifier": claim.quantifier,
        "verdict": verdict.verdict,
        "close": verdict.close,
        "share_true": verdict.share_true,
        "share_undefined": verdict.share_undefined,
        "stated": None if claim.stated is None else [claim.stated.low, claim.stated.high],
        "computed": None if verdict.computed is None else dict(verdict.computed),
        "unit": None if claim.stated is None else claim.stated.unit,
        "decided_by": verdict.decided_by,
        "boundary": None if verdict.boundary is None else asdict(verdict.boundary),
        "chapter": claim.chapter,
        "anchor": claim.anchor,
        "sources": list(verdict.sources),
        "as_of": verdict.context.as_of.isoformat(),
    }


def summary(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Put verdicts into words for a table: one row each, with the address of the chapter that computes it."""
    return pd.DataFrame(
        [
            {
                "id": verdict.claim.id,
                "statement": verdict.claim.paraphrase,
                "verdict": verdict.verdict + (" (close)" if verdict.close else ""),
                "stated": _stated_words(verdict),
                "computed": _computed_words(verdict),
                "decided_by": verdict.decided_by,
                "kind": verdict.claim.kind,
                "stated_in": verdict.claim.stated_in,
                "address": f"{verdict.claim.chapter}.html#{verdict.claim.anchor}",
            }
            for verdict in verdicts
        ]
    )


def _stated_words(verdict: Verdict) -> str:
    stated = verdict.claim.stated
    return "" if stated is None else f"{_short(stated.low)} to {_short(stated.high)}{_of(stated.unit)}"


def _short(number: float) -> str:
    """Write a bound as it is; a fraction such as a third to three digits."""
    return f"{number:,.3g}" if number < 1 else f"{number:,g}"


def _of(unit: str) -> str:
    """Write a unit behind a number; a ratio has none."""
    return "" if unit == "1" else f" {unit}"


def _computed_words(verdict: Verdict) -> str:
    """Say what was found: the share of true samples or rows, and the middle 90 % of the number behind it."""
    words = [] if verdict.share_true is None else [f"{verdict.share_true:.0%} true"]
    if verdict.computed is not None and verdict.claim.stated is not None:
        band = verdict.computed
        low, high = (f"{float(f'{band[end]:.3g}'):,g}" for end in ("p05", "p95"))
        words.append(f"{low} to {high}{_of(verdict.claim.stated.unit)}")
    return ", ".join(words)


def anchor(claim_id: str) -> str:
    """Return the anchor of a statement on the page of the ledger, which stays.

    Examples
    --------
    >>> anchor("C12")
    'c12'
    """
    return claim_id.lower()


def whole(found: Iterable[Verdict], newest: Iterable[Verdict]) -> pd.DataFrame:
    """Put the whole ledger into words: one row for each statement, on the article's day and by the newest prices.

    Parameters
    ----------
    found, newest : iterable of Verdict
        The same statements on the two days.

    Returns
    -------
    DataFrame
        As `summary`, with ``at_newest`` (verdict and what was computed, or "the same"), ``is`` (the verdict without
        "close"), ``anchor``, ``own_link`` and the chapter as ``computed_in``.
    """
    found, newest = list(found), list(newest)
    words, later = summary(found), summary(newest)
    if list(words["id"]) != list(later["id"]):
        raise InputError("newest", ", ".join(later["id"]), "the statements of the article's day, in their order")
    same = (words["verdict"] == later["verdict"]) & (words["computed"] == later["computed"])
    joined = (later["verdict"] + ": " + later["computed"]).str.removesuffix(": ")
    return words.assign(
        at_newest=joined.where(~same, "the same"),
        **{"is": [verdict.verdict for verdict in found]},
        anchor=[anchor(claim_id) for claim_id in words["id"]],
        own_link=["#" + anchor(claim_id) for claim_id in words["id"]],
        computed_in=[verdict.claim.chapter.replace("-", " ") for verdict in found],
    )


def by_ownership(*, as_of: date, prices: OwnPrices | None = None) -> pd.DataFrame:
    """Give the verdicts that depend on how a node came for each way to have one.

    Parameters
    ----------
    as_of : date
        The day of the data.
    prices : OwnPrices, optional
        As `verdicts`.

    Returns
    -------
    DataFrame
        Columns ``id``, ``statement`` and one for each way: verdict and share of true samples.
    """
    rows = []
    for claim_id in sorted(REGISTRY):
        claim, context = REGISTRY[claim_id], Context(as_of, prices)
        if isinstance(claim, Computed) and isinstance(claim.space(context).get("ownership"), Choice):
            ways = by_choice(claim, "ownership", context).to_dict("records")
            said = {way["ownership"]: _said(way["verdict"], way["share_true"]) for way in ways}
            rows.append({"id": claim_id, "statement": claim.paraphrase, **said})
    return pd.DataFrame(rows)


def _said(verdict: str, share: float) -> str:
    return verdict if verdict == "undefined" else f"{verdict}, {share:.0%} true"


#: The order in which verdicts are told: of computed statements, of market facts, of definitions.
TOLD = ("holds", "holds if", "fails", "cited", "contradicted", "unsupported", "by definition", "undefined")


def tally_by_kind(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Count verdicts with their kind, in the order of `TOLD`.

    Parameters
    ----------
    verdicts : iterable of Verdict

    Returns
    -------
    DataFrame
        Columns ``verdict``, ``kind``, ``statements``, ``close`` (how many of these are close).
    """
    rows = [(v.verdict, v.claim.kind, v.close) for v in verdicts]
    frame = pd.DataFrame(rows, columns=["verdict", "kind", "close"])
    counts = frame.groupby(["verdict", "kind"], as_index=False).agg(
        statements=("close", "size"), close=("close", "sum")
    )
    order = counts["verdict"].map({verdict: place for place, verdict in enumerate(TOLD)})
    return counts.assign(order=order).sort_values(["order", "kind"], ignore_index=True).drop(columns="order")


def tally_words(verdicts: Iterable[Verdict]) -> str:
    """Say the tally in words: how many statements have each verdict."""
    counts = pd.Series([verdict.verdict for verdict in verdicts]).value_counts()
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in TOLD if verdict in counts)
