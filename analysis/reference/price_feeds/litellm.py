"""LiteLLM's ``model_prices_and_context_window.json``: one object of entries, USD per single token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from analysis.inputs import InputError, Words
from analysis.reference.price_feeds import names
from analysis.reference.price_feeds.findings import Feed, Offer, Progress
from analysis.units import TOKENS_PER_MTOK

_KINDS = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cached-input",
}
_FIELD = re.compile(rf"({'|'.join(_KINDS)})(?:_above_(\d+)k_tokens)?(?:_([a-z]+))?")
#: An older name of the price of cached input, which some entries have alone.
_CACHE_HIT = "input_cost_per_token_cache_hit"
#: Modes that answer in text.
_TEXT_MODES = ("chat", "completion", "responses")


def tier_name(above_ktok: float | None, service: str | None = None) -> str:
    """Name a tier as the shipped tables do.

    Examples
    --------
    >>> tier_name(None), tier_name(272), tier_name(None, "batches"), tier_name(272, "priority")
    ('standard', 'above-272k', 'batch', 'above-272k-priority')
    """
    above = "" if above_ktok is None else f"above-{above_ktok:g}k"
    return "-".join(part for part in (above, "batch" if service == "batches" else service) if part) or "standard"


def read(feed: Feed, content: Any, progress: Progress) -> None:
    """Read every entry into offers and findings.

    Raises
    ------
    InputError
        If the content is not an object of entries.
    """
    if not isinstance(content, dict) or not any(isinstance(entry, dict) for entry in content.values()):
        raise InputError(feed.file, Words(type(content).__name__), "an object with an entry for each model")
    for done, (key, entry) in enumerate(content.items(), 1):
        _entry(feed, key, entry)
        progress(done, len(content))


def _entry(feed: Feed, key: str, entry: Any) -> None:
    if key == "sample_spec":
        return feed.refuse("documentation", key, "", None, "it explains the fields and prices nothing")
    if not isinstance(entry, dict):
        return feed.refuse("no-entry", key, "", entry, "an entry is an object")
    if "alias_of" in entry:
        return feed.refuse("alias", key, "alias_of", entry["alias_of"], "another name of an entry that counts once")
    mode = entry.get("mode")
    if mode not in _TEXT_MODES:
        return feed.refuse("not-text", key, "mode", mode, f"a mode that answers in text: {' '.join(_TEXT_MODES)}")

    provider = entry.get("litellm_provider")
    head, _, rest = key.partition("/")
    sold_by = names.seller(provider if isinstance(provider, str) else head)
    own_prefix = rest and (head == provider or names.seller(head) == sold_by)
    name = names.model(rest if own_prefix else key, sold_by=sold_by)
    if not sold_by or not name:
        return feed.refuse("no-name", key, "", key, "a seller and a model with letters or digits in their names")

    notes = []
    withdrawn = entry.get("deprecation_date")
    if isinstance(withdrawn, str) and withdrawn <= feed.day.isoformat():
        notes.append(f"withdrawn on {withdrawn[:10]} by the feed")
        reason = f"withdrawn by then and still priced: the day is {feed.day}"
        feed.flag("deprecated", key, "deprecation_date", withdrawn, reason, used=True)

    found = _prices(feed, key, entry)
    for (kind, tier), (column, value, note) in found.items():
        keys = (sold_by, name, kind, tier)
        feed.offers.append(Offer(key, column, keys, value, feed.as_of, "; ".join([*notes, *([note] if note else [])])))
    _unread(feed, key, entry, priced=bool(found))
    return None


def _prices(feed: Feed, key: str, entry: Mapping[str, Any]) -> dict[tuple[str, str], tuple[str, float, str]]:
    found: dict[tuple[str, str], tuple[str, float, str]] = {}

    def add(kind: str, tier: str, column: str, raw: Any, note: str = "") -> None:
        value = feed.price(key, column, raw, TOKENS_PER_MTOK)
        if value is None:
            return
        first = found.setdefault((kind, tier), (column, value, note))
        if first[1] != value:
            feed.flag("two-prices", key, column, value, f"{first[0]} says {first[1]}, which is used")

    for column, raw in entry.items():
        if named := _FIELD.fullmatch(column):
            add(_KINDS[named[1]], tier_name(float(named[2]) if named[2] else None, named[3]), column, raw)
    if ("cached-input", "standard") not in found:
        add("cached-input", "standard", _CACHE_HIT, entry.get(_CACHE_HIT))

    steps = entry.get("tiered_pricing")
    for position, step in enumerate(steps if isinstance(steps, list) else []):
        column = f"tiered_pricing[{position}]"
        span = step.get("range") if isinstance(step, dict) else None
        start = feed.price(key, f"{column}.range", span[0]) if isinstance(span, list) and span else None
        if start is None:
            feed.refuse("no-range", key, column, span, "a step has a range that starts at a number of tokens")
            continue
        for part, kind in _KINDS.items():
            add(kind, tier_name(start / 1000 if start else None), f"{column}.{part}", step.get(part))

    off_peak = entry.get("off_peak_pricing")
    if isinstance(off_peak, dict):
        windows = str(off_peak.get("windows", "unstated")).translate(str.maketrans("", "", "'{}[]"))
        for part, kind in _KINDS.items():
            add(kind, "off-peak", f"off_peak_pricing.{part}", off_peak.get(part), f"hours of {windows}"[:200])
    return found


def _unread(feed: Feed, key: str, entry: Mapping[str, Any], *, priced: bool) -> None:
    """Say which prices of an entry are in other units or of other goods than text tokens."""
    known = {_CACHE_HIT, "tiered_pricing", "off_peak_pricing"}
    others = [
        column
        for column, value in entry.items()
        if "cost" in column and value and column not in known and not _FIELD.fullmatch(column)
    ]
    if not priced:
        reason = f"no price of text tokens{', only: ' + ', '.join(others) if others else ''}; none is filled in"
        feed.refuse("missing-price", key, "input_cost_per_token", entry.get("input_cost_per_token"), reason)
    elif others:
        feed.refuse("other-goods", key, ", ".join(others), Words("prices"), "not of text tokens read or written")
