"""What the newest data changed: verdicts and shares that moved since the article's day, and which prices moved them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import pandas as pd

from analysis.evidence.claims.ledger import verdicts
from analysis.evidence.claims.verdict import Verdict
from analysis.reference import tables

#: Tables of prices, and how they are called on the page.
PRICES = {"node_prices": "prices of nodes", "api_prices": "prices of APIs"}
#: Which nodes hold which accelerators goes with their prices: a new offer is a row in both.
WITH = {"node_prices": ("node_prices", "nodes"), "api_prices": ("api_prices",)}


def moved(before: date, after: date) -> pd.DataFrame:
    """List the statements whose verdict or share of true moved between two days, and what moved them.

    Parameters
    ----------
    before, after : date
        The days of the data.

    Returns
    -------
    DataFrame
        Columns ``id``, ``statement``, ``verdict_before``, ``verdict_after``, ``share_before``, ``share_after``; for
        each table of prices ``verdict_`` and ``share_`` with its name (as of the first day, that table alone as of
        the second); ``moved_by`` (the table that alone moves the share most, "both together" where neither does);
        ``decided_by`` on the second day.

    Notes
    -----
    The two partial moves need not add up: a verdict can rest on both tables.
    """
    first, second = ({v.claim.id: v for v in verdicts(as_of=day)} for day in (before, after))
    ids = [key for key in first if _state(first[key]) != _state(second[key])]
    alone = {table: _only(ids, dict.fromkeys(WITH[table], after), before) for table in PRICES}
    rows = []
    for key in ids:
        shifts = {table: abs(_share(alone[table][key]) - _share(first[key])) for table in PRICES}
        most = max(shifts, key=lambda table: shifts[table])
        rows.append(
            {
                "id": key,
                "statement": first[key].claim.paraphrase,
                "verdict_before": first[key].verdict,
                "verdict_after": second[key].verdict,
                "share_before": first[key].share_true,
                "share_after": second[key].share_true,
                **{f"verdict_{table}": alone[table][key].verdict for table in PRICES},
                **{f"share_{table}": alone[table][key].share_true for table in PRICES},
                "moved_by": PRICES[most] if shifts[most] > 0 else "both together",
                "decided_by": second[key].decided_by,
            }
        )
    columns = ["id", "statement", "verdict_before", "verdict_after", "share_before", "share_after"]
    columns += [f"{what}_{table}" for what in ("verdict", "share") for table in PRICES]
    return pd.DataFrame(rows, columns=[*columns, "moved_by", "decided_by"])


def _state(verdict: Verdict) -> tuple[str, float]:
    return verdict.verdict, _share(verdict)


def _share(verdict: Verdict) -> float:
    return -1.0 if verdict.share_true is None else verdict.share_true


def _only(ids: list[str], days: Mapping[str, date], before: date) -> dict[str, Verdict]:
    with tables.as_if(days):
        return {key: verdicts(as_of=before, only=key)[0] for key in ids}


def price_changes(table: str, before: date, after: date) -> pd.DataFrame:
    """Compare one table of prices on two days.

    Parameters
    ----------
    table : str
        ``node_prices`` or ``api_prices``.
    before, after : date
        The days.

    Returns
    -------
    DataFrame
        The key columns, ``change`` ("new", "withdrawn", "dearer", "cheaper", "the same"), ``usd_before``,
        ``usd_after``, ``ratio`` (after over before; NaN where one is missing or the first is 0), ``as_of`` and
        ``source`` of the newer row.
    """
    keys = list(tables.SCHEMAS[table].keys)
    older, newer = (tables.table(table, as_of=day).where(quantity="price") for day in (before, after))
    rows = older[[*keys, "value", "as_of", "source"]].merge(
        newer[[*keys, "value", "as_of", "source"]], on=keys, how="outer", suffixes=("_before", "_after")
    )
    was, now = rows["value_before"], rows["value_after"]
    change = pd.Series("the same", index=rows.index)
    change = change.mask(now > was, "dearer").mask(now < was, "cheaper")
    change = change.mask(was.isna(), "new").mask(now.isna(), "withdrawn")
    return rows[keys].assign(
        change=change,
        usd_before=was,
        usd_after=now,
        ratio=(now / was.where(was > 0)),
        as_of=rows["as_of_after"].fillna(rows["as_of_before"]),
        source=rows["source_after"].fillna(rows["source_before"]),
    )


def counted(before: date, after: date) -> pd.DataFrame:
    """Count what happened to the offers of each table of prices between two days.

    Parameters
    ----------
    before, after : date
        The days.

    Returns
    -------
    DataFrame
        One row for each table: ``table`` and the number of offers "new", "withdrawn", "dearer", "cheaper", "the same".
    """
    kinds = ["new", "withdrawn", "dearer", "cheaper", "the same"]
    rows = []
    for table, called in PRICES.items():
        counts = price_changes(table, before, after)["change"].value_counts()
        rows.append({"table": called, **{kind: int(counts.get(kind, 0)) for kind in kinds}})
    return pd.DataFrame(rows)
