"""genai-prices, version 2: a list of providers with their models, USD per million tokens."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from analysis.inputs import InputError, Words
from analysis.reference.price_feeds import names
from analysis.reference.price_feeds.findings import Feed, Offer, Progress
from analysis.reference.price_feeds.litellm import tier_name
from analysis.reference.tables import parse_date

_KINDS = {"input_mtok": "input", "output_mtok": "output", "cache_read_mtok": "cached-input"}


def read(feed: Feed, content: Any, progress: Progress) -> None:
    """Read every model of every provider into offers and findings.

    Raises
    ------
    InputError
        If the content is not a list of providers with models.
    """
    if not isinstance(content, list) or not any(isinstance(p, dict) and "models" in p for p in content):
        raise InputError(feed.file, Words(type(content).__name__), "a list of providers, each with id and models")
    for done, provider in enumerate(content, 1):
        if not isinstance(provider, dict) or not isinstance(provider.get("models"), list):
            feed.refuse("no-entry", f"provider {done}", "models", None, "a provider has a list of models")
            continue
        for model in provider["models"]:
            _model(feed, provider.get("id"), model)
        progress(done, len(content))


def _model(feed: Feed, provider: Any, model: Any) -> None:
    name = model.get("id") if isinstance(model, dict) else None
    place = f"{provider}/{name}"
    sold_by = names.seller(provider) if isinstance(provider, str) else ""
    slug = names.model(name, sold_by=sold_by) if isinstance(name, str) else ""
    if not sold_by or not slug:
        return feed.refuse("no-name", place, "id", name, "a provider and a model with letters or digits in their names")
    if model.get("deprecated"):
        feed.flag("deprecated", place, "deprecated", model["deprecated"], "still priced", used=True)

    stated = model.get("prices")
    dated = stated if isinstance(stated, list) else [{"prices": stated}]
    parsed = [entry for entry in (_dated(feed, place, entry) for entry in dated) if entry]
    begun = [entry for entry in parsed if entry[0] <= feed.day]
    newest = max((start for start, _, _ in begun), default=date.min)
    current = [entry for entry in begun if entry[0] == newest]
    for start, _, prices in parsed:
        if start != newest:
            got = Words("always" if start == date.min else f"from {start}")
            feed.refuse("another-day", place, ", ".join(prices), got, f"not the price of {feed.day}")

    # of prices that differ by the hour, the dearest is what a request at any time can cost
    current.sort(key=lambda entry: -_sum(entry[2]))
    as_of = feed.as_of or ("" if newest == date.min else newest.isoformat())
    found = False
    for position, (_, hours, prices) in enumerate(current):
        note = f"hours of {hours}" if hours else ("outside the hours of the standard price" if position else "")
        for column, kind in _KINDS.items():
            for tier, field, raw in _steps(feed, place, column, prices.get(column)):
                value = feed.price(place, field, raw)
                if value is not None:
                    found = True
                    named = tier if not position else "off-peak" if tier == "standard" else f"{tier}-off-peak"
                    feed.offers.append(Offer(place, field, (sold_by, slug, kind, named), value, as_of, note))
        others = [column for column, value in prices.items() if column not in _KINDS and value]
        if others:
            feed.refuse("other-goods", place, ", ".join(others), Words("prices"), "not of text tokens read or written")
    if not found:
        feed.refuse("missing-price", place, "prices", None, "no price of text tokens; none is filled in")
    return None


def _dated(feed: Feed, place: str, entry: Any) -> tuple[date, str, Mapping[str, Any]] | None:
    """Read the first day, the hours and the prices of one of a model's price lists."""
    prices = entry.get("prices") if isinstance(entry, dict) else None
    if not isinstance(prices, dict):
        feed.refuse("no-entry", place, "prices", prices, "prices are an object of fields")
        return None
    limits = entry.get("constraint") or {}
    unknown = set(limits) - {"start_date", "start_time", "end_time", "type"} if isinstance(limits, dict) else {"?"}
    if unknown:
        feed.refuse("unknown-constraint", place, "constraint", limits, "a start_date, or a start_time and an end_time")
        return None
    try:
        start = parse_date(place, str(limits["start_date"])) if "start_date" in limits else date.min
    except InputError as refusal:
        feed.refuse("unknown-constraint", place, "constraint.start_date", refusal.got, refusal.expected)
        return None
    hours = f"{limits['start_time']} to {limits.get('end_time')}" if "start_time" in limits else ""
    return start, hours[:80], prices


def _sum(prices: Mapping[str, Any]) -> float:
    values = [prices.get(column) for column in _KINDS]
    # what is above a billion is refused as a price anyway, and may be too large to add
    return sum(value for value in values if isinstance(value, int | float) and abs(value) < 1e9)


def _steps(feed: Feed, place: str, column: str, stated: Any) -> list[tuple[str, str, Any]]:
    """Spread a price, or a base with steps by prompt length, over tiers: tier, field and raw price."""
    if not isinstance(stated, dict):
        return [("standard", column, stated)]
    found = [("standard", f"{column}.base", stated.get("base"))]
    steps = stated.get("tiers")
    for position, step in enumerate(steps if isinstance(steps, list) else []):
        field = f"{column}.tiers[{position}]"
        start = feed.price(place, f"{field}.start", step.get("start")) if isinstance(step, dict) else None
        if start:
            found.append((tier_name(start / 1000), f"{field}.price", step.get("price")))
        else:
            feed.refuse("no-range", place, field, start, "a step starts at a number of tokens above 0")
    return found
