"""The ledger: every registered statement with its verdict on a day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from typing import Any

from analysis.evidence.claims.registry import REGISTRY, Context
from analysis.evidence.claims.verdict import Verdict, evaluate
from analysis.inputs import InputError
from analysis.reference.tables import nearest


def verdicts(
    *, as_of: date, only: str | None = None, progress: Callable[[int, int], None] | None = None
) -> list[Verdict]:
    """Evaluate the registered claims, in the order of their ids.

    Parameters
    ----------
    as_of : date
        The day of the data.
    only : str, optional
        One id.
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
    found = []
    for done, claim_id in enumerate(ids, start=1):
        found.append(evaluate(REGISTRY[claim_id], Context(as_of)))
        if progress is not None:
            progress(done, len(ids))
    return found


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
