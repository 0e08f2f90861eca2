"""llm-prices: one vendor's file with price histories, or the list built of all; USD per million tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from typing import Any

from analysis.inputs import InputError, Words
from analysis.reference.price_feeds import names
from analysis.reference.price_feeds.findings import Feed, Offer, Progress
from analysis.reference.price_feeds.litellm import tier_name
from analysis.reference.tables import parse_date

_KINDS = {"input": "input", "output": "output", "input_cached": "cached-input"}
#: A price that moved by more than this from one period to the next is more likely a slip of the unit.
_LARGEST_STEP = 10


def read(feed: Feed, content: Any, progress: Progress) -> None:
    """Read every model into offers and findings.

    Raises
    ------
    InputError
        If the content has neither a vendor with models nor a list of prices.
    """
    models = list(_models(content))
    if not models:
        raise InputError(feed.file, Words(type(content).__name__), "a vendor with models, or a list of prices")
    ids = {(vendor, str(model["id"])) for vendor, model, _ in models if isinstance(model, dict) and "id" in model}
    for done, (vendor, model, history) in enumerate(models, 1):
        _model(feed, vendor, model, history, ids)
        progress(done, len(models))


def _models(content: Any) -> Iterator[tuple[str, Any, list[Any]]]:
    if not isinstance(content, dict):
        return
    if isinstance(content.get("models"), list) and isinstance(content.get("vendor"), str):
        for model in content["models"]:
            history = model.get("price_history") if isinstance(model, dict) else None
            yield content["vendor"], model, history if isinstance(history, list) else []
    elif isinstance(content.get("prices"), list):
        # the built list repeats a model for each of its periods
        periods: dict[tuple[str, str], list[Any]] = {}
        for row in content["prices"]:
            key = (str(row.get("vendor")), str(row.get("id"))) if isinstance(row, dict) else ("", "")
            periods.setdefault(key, []).append(row)
        for (vendor, _), rows in periods.items():
            yield vendor, rows[0], rows


def _model(feed: Feed, vendor: str, model: Any, history: list[Any], ids: set[tuple[str, str]]) -> None:
    name = model.get("id") if isinstance(model, dict) else None
    sold_by = names.seller(vendor)
    if not isinstance(name, str) or not names.slug(name) or not sold_by:
        return feed.refuse("no-name", f"{vendor}/{name}", "id", name, "a vendor and a model with letters or digits")
    place = f"{vendor}/{name}"
    # a tier is a model of its own here, named after the prompt length above which it applies
    long_prompt = re.fullmatch(r"(.+)-(\d+)k", name)
    is_tier = long_prompt is not None and (">" in str(model.get("name")) or (vendor, long_prompt[1]) in ids)
    tier = tier_name(float(long_prompt[2])) if long_prompt and is_tier else "standard"
    slug = names.model(long_prompt[1] if long_prompt and is_tier else name, sold_by=sold_by)

    periods = [period for period in (_period(feed, place, entry) for entry in history) if period]
    _steps(feed, place, periods)
    current = [period for period in periods if period[0] <= feed.day < period[1]]
    for start, end, _ in periods:
        if not start <= feed.day < end:
            got = Words(" to ".join("open" if day in (date.min, date.max) else day.isoformat() for day in (start, end)))
            feed.refuse("another-day", place, "from_date, to_date", got, f"not the price of {feed.day}")
    if len(current) > 1:
        return feed.flag("two-prices", place, "from_date, to_date", len(current), "one price holds on a day; none used")
    found = False
    for start, _, prices in current:
        as_of = feed.as_of or ("" if start == date.min else start.isoformat())
        for column, kind in _KINDS.items():
            value = feed.price(place, column, prices.get(column))
            if value is not None:
                found = True
                feed.offers.append(Offer(place, column, (sold_by, slug, kind, tier), value, as_of))
    if not found:
        feed.refuse("missing-price", place, "price_history", None, f"no price on {feed.day}; none is filled in")
    return None


def _period(feed: Feed, place: str, entry: Any) -> tuple[date, date, dict[str, Any]] | None:
    """Read one period: its first day, the day after its last, and its prices."""
    if not isinstance(entry, dict):
        feed.refuse("no-entry", place, "price_history", entry, "a period is an object")
        return None
    days = []
    for column, open_end in (("from_date", date.min), ("to_date", date.max)):
        try:
            stated = entry.get(column)
            days.append(open_end if stated is None else parse_date(column, str(stated)))
        except InputError as refusal:
            feed.refuse("no-date", place, column, refusal.got, refusal.expected)
            return None
    return days[0], days[1], entry


def _steps(feed: Feed, place: str, periods: list[tuple[date, date, dict[str, Any]]]) -> None:
    """Flag a price that moved between periods as a slip of the unit would move it."""
    ordered = sorted(periods, key=lambda period: period[0])
    for (_, _, before), (start, _, after) in pairwise(ordered):
        for column in _KINDS:
            old, new = _readable(before.get(column)), _readable(after.get(column))
            if old and new and max(new / old, old / new) >= _LARGEST_STEP:
                reason = f"a step of {max(new / old, old / new):.3g} times on {start}, from {old:g}"
                feed.flag("step-in-time", place, column, new, reason, used=True)


def _readable(value: object) -> float:
    # what is above a billion is refused as a price anyway, and may be too large to divide
    return float(value) if isinstance(value, int | float) and 0 < value < 1e9 else 0.0
