"""OpenRouter's list of models (``/api/v1/models``): decimal text, USD per single token."""

from __future__ import annotations

from typing import Any

from analysis.inputs import InputError, Words
from analysis.reference.price_feeds import names
from analysis.reference.price_feeds.findings import Feed, Offer, Progress
from analysis.reference.price_feeds.litellm import tier_name
from analysis.units import TOKENS_PER_MTOK

SELLER = "openrouter"
_KINDS = {"prompt": "input", "completion": "output", "input_cache_read": "cached-input"}
_NOTE = "one price a model, of the cheapest or default provider; the fee on credits is extra"


def read(feed: Feed, content: Any, progress: Progress) -> None:
    """Read every model into offers and findings.

    Raises
    ------
    InputError
        If the content is not an object whose data is a list of models.
    """
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, list) or not data:
        raise InputError(f"{feed.file} key data", data, "a list of models with id and pricing")
    for done, model in enumerate(data, 1):
        _model(feed, done, model)
        progress(done, len(data))


def _model(feed: Feed, position: int, model: Any) -> None:
    name = model.get("id") if isinstance(model, dict) else None
    if not isinstance(name, str) or not names.slug(name):
        return feed.refuse("no-name", f"model {position}", "id", name, "a model with letters or digits in its name")
    if name.startswith("~") or "alias_target" in model:
        return feed.refuse("alias", name, "id", name, "another name of a model that counts once")
    pricing = model.get("pricing")
    if not isinstance(pricing, dict):
        return feed.refuse("missing-price", name, "pricing", pricing, "no price of text tokens; none is filled in")
    shape = model.get("architecture")
    outputs = shape.get("output_modalities") if isinstance(shape, dict) else None
    if isinstance(outputs, list) and outputs and "text" not in outputs:
        return feed.refuse("not-text", name, "output_modalities", outputs, "a model that answers in text")
    per_request = feed.price(name, "request", pricing.get("request"))
    if per_request:
        feed.flag("per-request", name, "request", per_request, "each request costs extra", used=True)
    expires = model.get("expiration_date")
    if isinstance(expires, str) and expires <= feed.day.isoformat():
        feed.flag("deprecated", name, "expiration_date", expires, f"expired on {feed.day}, still priced", used=True)

    slug = names.model(name, sold_by=SELLER)
    tiers = [("standard", "", pricing)]
    overrides = pricing.get("overrides")
    for step, override in enumerate(overrides if isinstance(overrides, list) else []):
        column = f"overrides[{step}]"
        least = override.get("min_prompt_tokens") if isinstance(override, dict) else None
        start = feed.price(name, f"{column}.min_prompt_tokens", least)
        if start:
            tiers.append((tier_name(start / 1000), f"{column}.", override))
        else:
            feed.refuse("no-range", name, column, least, "a second price starts at a number of prompt tokens above 0")
    found = False
    for tier, prefix, prices in tiers:
        for part, kind in _KINDS.items():
            value = feed.price(name, f"{prefix}{part}", prices.get(part), TOKENS_PER_MTOK)
            if value is not None:
                found = True
                keys = (SELLER, slug, kind, tier)
                feed.offers.append(Offer(name, f"{prefix}{part}", keys, value, feed.as_of, _NOTE))
    others = [part for part, raw in pricing.items() if part not in {*_KINDS, "overrides", "request"} and _costs(raw)]
    if not found:
        feed.refuse("missing-price", name, "pricing", Words("no price"), "none is filled in")
    elif others:
        feed.refuse("other-goods", name, ", ".join(others), Words("prices"), "not of text tokens read or written")
    return None


def _costs(raw: Any) -> bool:
    return raw not in (None, "", "0", 0)
