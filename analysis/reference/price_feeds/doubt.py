"""Doubt: what a price must be like to be used. Every real feed has had errors of 2 to 100,000 times.

A doubtful price is held back with its reason. A price that is only odd is used and flagged.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from statistics import median, median_high

from analysis.reference import tables
from analysis.reference.price_feeds.findings import Feed, Offer
from analysis.reference.price_feeds.names import family

#: Prices outside are slips of the unit. The dearest real ones are those of o1-pro, 150 and 600; the cheapest
#: real input and output cost 0.005, and reading a cache 0.001. [USD/Mtok]
_BOUNDS_USD_PER_MTOK = {"input": (0.004, 300.0), "output": (0.004, 700.0), "cached-input": (0.0005, 150.0)}
#: Output at more than this many times the price of input, or input at more than this of output, is a slip.
_MOST_OUTPUT_PER_INPUT, _MOST_INPUT_PER_OUTPUT = 50, 10
#: How far a price may lie from the median of the other sellers of a model, and from the seller's own ones in
#: the shipped tables. Honest sellers differ by up to 7 times; unit slips start at 10.
_MOST_PER_MEDIAN, _MOST_PER_SHIPPED = 8, 4
#: Where fewer sellers have a model, their median says little.
_LEAST_SELLERS = 3

#: One accelerator for an hour, whatever it is. [USD]
_BOUNDS_USD_PER_ACCELERATOR_HOUR = (0.01, 100.0)
#: On-demand below this share of what the same size costs in other regions is a commitment's price.
_LEAST_PER_REGION, _MOST_PER_REGION = 0.6, 3
#: How far a price of an accelerator may lie outside of all shipped prices of it; spot goes for a tenth of the list.
_MOST_PER_BAND, _MOST_LIST_PER_SPOT = 4, 12


#: An offer to hold back, the kind of doubt, and the reason.
_Doubt = tuple[Offer, str, str]


def doubt_api(feed: Feed) -> None:
    """Hold back every doubtful API price: scale, relations within an offer, other sellers, the shipped tables."""
    _scale(feed)
    _relations(feed)
    _shipped(feed)
    _sellers(feed)
    one_price_each(feed)


def _by_place(feed: Feed) -> dict[str, list[Offer]]:
    grouped: dict[str, list[Offer]] = defaultdict(list)
    for offer in feed.offers:
        grouped[offer.place].append(offer)
    return grouped


def _scale(feed: Feed) -> None:
    """Refuse all prices of an entry that has one out of scale: its unit is another one."""
    wrong: dict[str, str] = {}
    for offer in feed.offers:
        low, high = _BOUNDS_USD_PER_MTOK[offer.keys[2]]
        if offer.value and not low <= offer.value <= high:
            reason = f"{offer.column} is {offer.value:g} USD/Mtok, outside {low:g} to {high:g}: another unit"
            wrong.setdefault(offer.place, reason)
    for offer in feed.offers:
        if offer.place in wrong:
            feed.refuse("scale", offer.place, offer.column, offer.value, wrong[offer.place])
    feed.offers = [offer for offer in feed.offers if offer.place not in wrong]


def _relations(feed: Feed) -> None:
    """Compare the prices of one entry and tier with each other."""
    doubts: list[_Doubt] = []
    for offers in _by_place(feed).values():
        tiers: dict[str, dict[str, Offer]] = defaultdict(dict)
        for offer in offers:
            tiers[offer.keys[3]][offer.keys[2]] = offer
        for tier in tiers.values():
            doubts.extend(_relation(feed, tier.get("input"), tier.get("output"), tier.get("cached-input")))
        standard = tiers.get("standard", {})
        for kind, offer in tiers.get("batch", {}).items():
            if kind in standard and offer.value > standard[kind].value:
                doubts.append((offer, "batch-above-standard", f"the standard price is {standard[kind].value:g}"))
    feed.hold(doubts)


def _relation(feed: Feed, read: Offer | None, written: Offer | None, cached: Offer | None) -> list[_Doubt]:
    """Return what to hold back of one tier, and flag what is only odd."""
    of_tier = [offer for offer in (read, written, cached) if offer]
    if read is None or written is None:
        # a tier may differ in one price only; the standard tier needs both
        alone = read or written
        if alone and alone.keys[3] == "standard":
            missing = "output" if read else "input"
            feed.flag("one-sided", alone.place, alone.column, alone.value, f"no price of {missing}", used=True)
    elif read.value == written.value == 0:
        if feed.source != "openrouter" and not re.search(r"\bfree\b", read.place.lower()):
            # openrouter alone has another mark for what is not known
            return [(offer, "free-or-unknown", "input and output at 0, and nothing says free") for offer in of_tier]
    elif written.value == 0:
        return [(offer, "zero-output", "output at 0, input paid: a router or an embedding") for offer in of_tier]
    elif read.value:
        ratio = written.value / read.value
        if ratio > _MOST_OUTPUT_PER_INPUT or ratio < 1 / _MOST_INPUT_PER_OUTPUT:
            return [(offer, "ratio", f"output at {ratio:.3g} times the price of input") for offer in of_tier]
        if ratio < 1:
            reason = f"output cheaper than input at {read.value:g}"
            feed.flag("output-below-input", written.place, written.column, written.value, reason, used=True)
    if read and cached and read.value:
        if cached.value > read.value:
            return [(cached, "cached-above-input", f"dearer than input that is not cached, at {read.value:g}")]
        if cached.value in (0, read.value):
            reason = "free, input paid" if cached.value == 0 else "as dear as input that is not cached"
            feed.flag("cached-odd", cached.place, cached.column, cached.value, reason, used=True)
    return []


@cache
def _shipped_prices() -> dict[tuple[str, ...], list[float]]:
    prices: dict[tuple[str, ...], list[float]] = defaultdict(list)
    rows = tables.all_rows("api_prices")
    rows = rows[rows["quantity"] == "price"]
    for *keys, value in rows[[*tables.SCHEMAS["api_prices"].keys, "value"]].itertuples(index=False):
        prices[tuple(keys)].append(value)
    return dict(prices)


def _shipped(feed: Feed) -> None:
    """Compare with what the shipped tables have of the same seller and model, at any date."""
    doubts: list[_Doubt] = []
    for offer in feed.offers:
        known = _shipped_prices().get(offer.keys)
        if not known or not offer.value:
            continue
        if not min(known) / _MOST_PER_SHIPPED <= offer.value <= max(known) * _MOST_PER_SHIPPED:
            doubts.append((offer, "shipped", f"the shipped tables have {min(known):g} to {max(known):g}"))
    feed.hold(doubts)


def _sellers(feed: Feed) -> None:
    """Compare the sellers of a model. Prices of cached input differ by policy, not by error."""
    groups: dict[tuple[str, str, str], dict[str, list[Offer]]] = defaultdict(lambda: defaultdict(list))
    for offer in feed.offers:
        sold_by, model, kind, tier = offer.keys
        if kind != "cached-input" and offer.value:
            groups[family(model), kind, tier][sold_by].append(offer)
    doubts: list[_Doubt] = []
    for by_seller in groups.values():
        if len(by_seller) < _LEAST_SELLERS:
            continue
        middle = median(median(offer.value for offer in offers) for offers in by_seller.values())
        for offers in by_seller.values():
            for offer in offers:
                if not middle / _MOST_PER_MEDIAN < offer.value < middle * _MOST_PER_MEDIAN:
                    doubts.append((offer, "sellers", f"the median of {len(by_seller)} sellers is {middle:g}"))
    feed.hold(doubts)


def one_price_each(feed: Feed) -> None:
    """Leave one offer for each key: the same price twice counts once, two prices for one name not at all."""
    groups: dict[tuple[str, ...], list[Offer]] = defaultdict(list)
    for offer in feed.offers:
        groups[offer.keys].append(offer)
    kept: list[Offer] = []
    for first, *others in groups.values():
        apart = sorted({offer.value for offer in (first, *others)})
        if len(apart) > 1:
            places = ", ".join(offer.place for offer in (first, *others))
            for offer in (first, *others):
                feed.flag(
                    "two-prices", offer.place, offer.column, offer.value, f"one name, {len(apart)} prices: {places}"
                )
            continue
        kept.append(first)
        for offer in others:
            feed.refuse(
                "same-price", offer.place, offer.column, offer.value, f"{first.place} says the same; counts once"
            )
    feed.offers = kept


@dataclass(frozen=True)
class NodeOffer:
    """An on-demand or spot price of a node, with what it is made of.

    Parameters
    ----------
    offer : Offer
        The price of the whole node. [USD/node_hour]
    accelerator : str
        The name in the feed.
    accelerator_count : float
        How many; fractions where an instance has a part of one.
    host_usd_per_hour : float
        What of the price is the host's, where the feed lists it apart, else 0.
    """

    offer: Offer
    accelerator: str
    accelerator_count: float
    host_usd_per_hour: float = 0.0

    @property
    def part_usd_per_accelerator_hour(self) -> float:
        """Price of one accelerator without the host."""
        return (self.offer.value - self.host_usd_per_hour) / self.accelerator_count


def _part(accelerator: str) -> str:
    """Return the first letters and digits of an accelerator's name, by which feeds and tables agree.

    Examples
    --------
    >>> _part("H100-MEGA"), _part("RTX4090"), _part("a100-sxm-80gb")
    ('h100', 'rtx4090', 'a100')
    """
    found = re.match(r"[a-z]+\d+[a-z]?(?![a-z0-9])|[a-z]+\d+", accelerator.lower().replace("rtx-", "rtx"))
    return found[0] if found else accelerator.lower()


def _line(instance: str) -> str:
    """Return the line that an instance is a size of, where its name ends in a number of accelerators.

    Examples
    --------
    >>> _line("a2-ultragpu-8g"), _line("p5.48xlarge")
    ('a2-ultragpu', 'p5.48xlarge')
    """
    return re.sub(r"-\d+g$", "", instance)


@cache
def _shipped_nodes() -> dict[tuple[str, str, str], list[float]]:
    """Read prices of one accelerator: by part, and by part, provider and instance for on-demand only. [USD/hour]."""
    nodes = tables.all_rows("nodes")
    held = {
        (provider, instance): (accelerator, count)
        for provider, instance, accelerator, count in nodes[
            ["provider", "instance", "accelerator", "value"]
        ].itertuples(index=False)
    }
    prices: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    rows = tables.all_rows("node_prices")
    rows = rows[rows["quantity"] == "price"]
    for provider, instance, term, value in rows[["provider", "instance", "term", "value"]].itertuples(index=False):
        if (provider, instance) in held:
            accelerator, count = held[provider, instance]
            prices["", _part(accelerator), ""].append(value / count)
            if term == "on-demand":
                prices[provider, _line(instance), "on-demand"].append(value / count)
    return dict(prices)


def doubt_nodes(feed: Feed, nodes: Iterable[NodeOffer]) -> None:
    """Hold back every doubtful node price: scale, spot against list, other regions, the shipped tables."""
    nodes = list(nodes)
    feed.offers = [node.offer for node in nodes]
    on_demand = {node.offer.keys[:3]: node for node in nodes if node.offer.keys[3] == "on-demand"}
    sizes: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for node in on_demand.values():
        sizes[_size(node)].append(node.part_usd_per_accelerator_hour)

    doubts: list[_Doubt] = []
    for node in nodes:
        offer, part = node.offer, node.part_usd_per_accelerator_hour
        low, high = _BOUNDS_USD_PER_ACCELERATOR_HOUR
        whole = offer.value / node.accelerator_count
        if not low <= whole <= high:
            reason = f"{whole:.4g} USD an hour for one {node.accelerator}, outside {low:g} to {high:g}"
            doubts.append((offer, "scale", reason))
            continue
        band = _shipped_nodes().get(("", _part(node.accelerator), ""))
        least_share = 1 / (_MOST_LIST_PER_SPOT if offer.keys[3] == "spot" else _MOST_PER_BAND)
        if band and not min(band) * least_share <= whole <= max(band) * _MOST_PER_BAND:
            reason = f"{whole:.4g} USD an hour for one; the shipped tables have {min(band):.3g} to {max(band):.3g}"
            doubts.append((offer, "shipped", reason))
        elif offer.keys[3] == "spot":
            listed = on_demand.get(offer.keys[:3])
            if listed and offer.value > listed.offer.value:
                doubts.append((offer, "spot-above-list", f"on-demand costs {listed.offer.value:g}"))
        else:
            # the upper of two middle values: with two regions the dearer one is the list price
            usual, source = median_high(sizes[_size(node)]), "the median of its regions"
            listed_usd = _shipped_nodes().get((offer.keys[0], _line(offer.keys[1]), "on-demand"))
            if listed_usd:
                shipped = min(listed_usd) - node.host_usd_per_hour / node.accelerator_count
                if shipped > usual:
                    usual, source = shipped, "the shipped tables"
            if part < _LEAST_PER_REGION * usual:
                reason = f"{part:.4g} USD an hour for one is {part / usual:.0%} of {usual:.4g}, {source}: a commitment?"
                doubts.append((offer, "below-list", reason))
            elif part > _MOST_PER_REGION * usual:
                reason = f"{part:.4g} USD an hour for one is {part / usual:.3g} times {usual:.4g}, {source}"
                doubts.append((offer, "above-list", reason))
    feed.hold(doubts)


def _size(node: NodeOffer) -> tuple[str, str, float]:
    return node.offer.keys[0], node.offer.keys[1], node.accelerator_count
