"""Catalogs in the shape of SkyPilot's ``vms.csv``: a row for each instance, region and zone, USD per hour."""

from __future__ import annotations

import ast
import csv
import io
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from analysis.inputs import InputError, Words, not_negative, positive
from analysis.reference import tables
from analysis.reference.price_feeds import names
from analysis.reference.price_feeds.doubt import NodeOffer, doubt_nodes, one_price_each
from analysis.reference.price_feeds.findings import Feed, Offer, Progress

_NEEDED = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")
_OPTIONAL = ("SpotPrice", "AvailabilityZone", "GpuInfo")

#: Hosts of accelerators that Google lists without one, by how many accelerators they hold.
_HOSTS: dict[str, dict[int, tuple[str, ...]]] = {
    "A100": {**{count: (f"a2-highgpu-{count}g",) for count in (1, 2, 4, 8)}, 16: ("a2-megagpu-16g",)},
    "A100-80GB": {count: (f"a2-ultragpu-{count}g",) for count in (1, 2, 4, 8)},
    "H100": {count: (f"a3-highgpu-{count}g",) for count in (1, 2, 4, 8)},
    "H100-MEGA": {8: ("a3-megagpu-8g",)},
    "H200": {8: ("a3-ultragpu-8g",)},
    "B200": {8: ("a4-highgpu-8g",)},
    "L4": {
        1: tuple(f"g2-standard-{vcpus}" for vcpus in (4, 8, 12, 16, 32)),
        2: ("g2-standard-24",),
        4: ("g2-standard-48",),
        8: ("g2-standard-96",),
    },
}
#: These attach to hosts of many sizes, so no host can be told.
_ANY_HOST = ("K80", "P4", "P100", "T4", "V100")
_KNOWN_HOSTS = frozenset(host for sizes in _HOSTS.values() for hosts in sizes.values() for host in hosts)

#: Longer texts are not read as Python literals; real ones have 150 characters.
_MOST_LITERAL_CHARACTERS = 2_000
_ZERO = "a missing price: nothing is for rent at 0"
#: No accelerator with so little memory is for rent: the number is in GiB.
_LEAST_MEMORY_MIB = 1_024


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    instance: str
    accelerator: str
    count: str
    region: str
    zone: str
    price: str
    spot: str
    info: str

    @property
    def place(self) -> str:
        return f"row {self.line}"


def read(feed: Feed, text: str, provider: str, progress: Progress) -> None:
    """Read every row into offers and findings.

    Parameters
    ----------
    feed : Feed
        Takes offers and findings.
    text : str
        The file.
    provider : str
        Whose catalog it is: the rows do not say it.
    progress : callable
        Called now and then.

    Raises
    ------
    InputError
        If a column is missing, or the text is no CSV.
    """
    rows = list(_rows(feed, text, progress))
    if not rows and not feed.findings:
        raise InputError(f"{feed.file} row 2", None, "a row for each instance")
    _remarks(feed, rows)
    instances = [row for row in rows if row.instance and row.accelerator]
    parts = [row for row in rows if row.accelerator and not row.instance]
    hosts = [row for row in rows if not row.accelerator]
    found = [offer for row in instances for offer in _offers(feed, provider, row, None)]
    if parts:
        first = parts[0]
        reason = f"{len(parts)} rows name an accelerator and no instance: their prices are without the host"
        feed.flag("host-less", first.place, "InstanceType", None, reason, used=True)
    composed, used = _compose(feed, provider, parts, hosts)
    found += composed
    for row in hosts:
        if row.line not in used:
            got = row.instance or None
            feed.refuse("no-accelerator", row.place, "AcceleratorName", got, "an instance without accelerator")
    by_region = _one_per_region(feed, found)
    _one_list_price(feed, by_region)
    doubt_nodes(feed, by_region)
    _as_listed_once(feed)
    one_price_each(feed)


def _rows(feed: Feed, text: str, progress: Progress) -> Iterator[_Row]:
    total = text.count("\n")
    reader = csv.reader(io.StringIO(text, newline=""))
    ragged = Counter[int]()
    try:
        header = next(reader, None) or []
        for name in _NEEDED:
            if header.count(name) != 1:
                raise InputError(f"{feed.file} row 1, column {name}", ",".join(header) or None, "this column once")
        at = [header.index(name) if name in header else -1 for name in (*_NEEDED, *_OPTIONAL)]
        # a last column that nobody reads may hold the commas of an unquoted list
        last_is_list = header[-1] not in (*_NEEDED, *_OPTIONAL)
        for cells in reader:
            line = reader.line_num
            if line % 4_096 == 0:
                progress(min(line, total), total)
            if not cells:
                continue
            if len(cells) != len(header):
                if len(cells) < len(header) or not last_is_list:
                    got = Words(f"{len(cells)} cells")
                    feed.refuse("ragged", f"row {line}", "", got, f"{len(header)} cells, as the header has")
                    continue
                ragged[line] = len(cells)
            instance, accelerator, count, price, region, spot, zone, info = (
                cells[position].strip() if position >= 0 else "" for position in at
            )
            yield _Row(line, instance, accelerator, count, region, zone, price, spot, info)
    except csv.Error as error:
        raise InputError(f"{feed.file} row {reader.line_num}", Words(str(error)), "a well-formed CSV row") from None
    if ragged:
        line, cells_there = next(iter(ragged.items()))
        reason = f"{len(ragged)} rows have more cells than the header's {len(header)}: the last column holds a list"
        feed.flag("ragged", f"row {line}", header[-1], Words(f"{cells_there} cells"), reason, used=True)
    progress(total, total)


def _remarks(feed: Feed, rows: list[_Row]) -> None:
    """Report what rows say that no price can be: zeros, spot above list; and odd texts about the accelerator."""
    seen: set[tuple[str, str, str]] = set()
    for row in rows:
        if not row.accelerator and row.price and not row.price.strip("0."):
            feed.flag("zero-price", row.place, "Price", row.price, _ZERO)
        if row.accelerator and row.info and (key := (row.accelerator, row.count, row.info)) not in seen:
            seen.add(key)
            for kind, reason in _memory_remarks(row.info, row.count):
                feed.flag(kind, row.place, "GpuInfo", row.info, reason, used=True)


@lru_cache(maxsize=1_024)
def _memory_remarks(info: str, count: str) -> tuple[tuple[str, str], ...]:
    """Read the Python literal of a row, and say what is odd about the memory in it."""
    if not info.startswith("{"):
        return ()
    try:
        if len(info) > _MOST_LITERAL_CHARACTERS:
            raise ValueError
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            literal = ast.literal_eval(info)
        size = float(literal["Gpus"][0]["MemoryInfo"]["SizeInMiB"])
        total = float(literal.get("TotalGpuMemoryInMiB", 0))
        number = float(count)
    except (
        ValueError,
        SyntaxError,
        TypeError,
        LookupError,
        AttributeError,
        OverflowError,
        MemoryError,
        RecursionError,
    ):
        return (("no-literal", "not a Python literal with Gpus, MemoryInfo and SizeInMiB"),)
    remarks = []
    if size < _LEAST_MEMORY_MIB:
        remarks.append(("memory-unit", f"{size:g} MiB for an accelerator: GiB are meant"))
    if number > 1 and size == total:
        remarks.append(("memory-total", f"the same memory for one and for {number:g}"))
    return tuple(remarks)


def _offers(feed: Feed, provider: str, row: _Row, host: _Row | None) -> Iterator[NodeOffer]:
    """Make the on-demand and the spot offer of a row, with its host where that has a row of its own."""
    instance, region = names.slug(host.instance if host else row.instance), names.slug(row.region)
    try:
        count = positive.parse("AcceleratorCount", row.count)
    except InputError as refusal:
        return feed.refuse("no-count", row.place, "AcceleratorCount", row.count, refusal.expected)
    if not instance or re.fullmatch(r"[\d.]+", region):
        return feed.refuse("no-name", row.place, "InstanceType, Region", f"{row.instance} {row.region}", "names")
    note = f"{count:g} {row.accelerator}" + (f", accelerator + host {host.place}" if host else "")
    parts = (row, host) if host else (row,)
    prices: dict[str, tuple[float, float]] = {}
    for column, term in (("Price", "on-demand"), ("SpotPrice", "spot")):
        amounts = []
        for part in parts:
            text = part.price if term == "on-demand" else part.spot
            try:
                amounts.append(not_negative.parse(column, text))
            except InputError as refusal:
                if text:
                    feed.refuse("not-a-number", part.place, column, text, refusal.expected)
                elif term == "on-demand":
                    feed.refuse("missing-price", part.place, column, None, "no price; none is filled in")
        if len(amounts) < len(parts):
            if amounts:
                feed.refuse("half-a-price", row.place, column, amounts[0], "a price of accelerator and host both")
        elif all(amounts):
            prices[term] = (float(f"{sum(amounts):.10g}"), amounts[1] if host else 0.0)
        elif term == "spot":
            feed.refuse("no-spot", row.place, column, amounts[0], "spot at 0 means that there is none")
        elif not amounts[0]:
            feed.flag("zero-price", row.place, column, amounts[0], _ZERO)
        elif host:
            feed.flag("zero-host", row.place, column, amounts[0], f"its host, {host.place}, is priced 0")
    listed, spot = prices.get("on-demand"), prices.get("spot")
    if listed and spot and listed[0] == spot[0]:
        feed.refuse("no-spot", row.place, "SpotPrice", spot[0], "spot equal to on-demand means that there is none")
        del prices["spot"]
    for term, (value, of_host) in prices.items():
        column = "Price" if term == "on-demand" else "SpotPrice"
        offer = Offer(row.place, column, (provider, instance, region, term), value, feed.as_of, note)
        yield NodeOffer(offer, row.accelerator, count, of_host)
    return None


def _compose(feed: Feed, provider: str, parts: list[_Row], hosts: list[_Row]) -> tuple[list[NodeOffer], set[int]]:
    """Add to each accelerator without an instance the price of the host that it comes in."""
    by_zone: dict[tuple[str, str], dict[str, _Row]] = defaultdict(dict)
    for row in hosts:
        by_zone[row.region, row.zone].setdefault(row.instance, row)
    offers: list[NodeOffer] = []
    used: set[int] = set()
    for row in parts:
        if row.spot and row.price and _number(row.spot) > _number(row.price) > 0:
            feed.flag("spot-above-list", row.place, "SpotPrice", row.spot, f"on-demand costs {row.price}")
            row = replace(row, spot="")
        if row.accelerator.lower().startswith("tpu"):
            reason = "a slice sold as one accelerator: how many it holds is not stated"
            feed.refuse("slice", row.place, "AcceleratorName", row.accelerator, reason)
            continue
        count = _number(row.count)
        there = by_zone[row.region, row.zone]
        wanted = _HOSTS.get(row.accelerator, {}).get(int(count) if count == count // 1 else 0, ())
        if row.accelerator not in _HOSTS and row.accelerator not in _ANY_HOST:
            wanted = tuple(name for name in there if re.search(rf"gpu-{count:g}g$", name) and name not in _KNOWN_HOSTS)
            wanted = wanted if len(wanted) == 1 else ()
        present = [there[name] for name in wanted if name in there]
        if not present:
            named = " or ".join(wanted) or f"one for {row.count} of {row.accelerator}"
            feed.refuse("no-host", row.place, "InstanceType", None, f"no row of its host in this zone: {named}")
        for host in present:
            used.add(host.line)
            offers += _offers(feed, provider, row, host)
    return offers, used


def _number(text: str) -> float:
    try:
        return not_negative.parse("", text)
    except InputError:
        return 0.0


def _one_per_region(feed: Feed, nodes: list[NodeOffer]) -> list[NodeOffer]:
    """Leave one offer for each instance, region and term of rows that differ by zone."""
    groups: dict[tuple[str, ...], list[NodeOffer]] = defaultdict(list)
    for node in nodes:
        groups[node.offer.keys].append(node)
    kept = []
    for keys, group in groups.items():
        first, *others = sorted(group, key=lambda node: node.offer.value)
        dearest = group[0] if not others else others[-1]
        if dearest.offer.value == first.offer.value:
            first, *others = group
        elif keys[3] == "on-demand":
            low, high = first.offer.value, dearest.offer.value
            for node in group:
                offer = node.offer
                feed.flag("zones-differ", offer.place, offer.column, offer.value, f"{low:g} to {high:g} in one region")
            continue
        else:
            # spot is a price by zone: the cheapest is the offer, the dearest its range
            offer = first.offer
            note = f"{offer.note}, cheapest zone"
            first = replace(first, offer=replace(offer, note=note, high=dearest.offer.value))
        kept.append(first)
        for node in others:
            reason = f"another zone of the region of {first.offer.place}, which counts"
            feed.refuse("another-zone", node.offer.place, node.offer.column, node.offer.value, reason)
    return kept


def _one_list_price(feed: Feed, nodes: list[NodeOffer]) -> None:
    """Say where a catalog repeats one price list for all regions: a region then tells nothing about a price."""
    regions: dict[str, dict[str, float]] = defaultdict(dict)
    for node in nodes:
        _, instance, region, term = node.offer.keys
        if term == "on-demand":
            regions[instance][region] = node.offer.value
    repeated = [prices for prices in regions.values() if len(prices) > 1 and len(set(prices.values())) == 1]
    if repeated and len(repeated) == len(regions):
        most = max(len(prices) for prices in repeated)
        reason = f"{len(repeated)} instances, each at one price in all of up to {most} regions: one list, repeated"
        feed.flag("one-list", nodes[0].offer.place, "Price", nodes[0].offer.value, reason, used=True)


def _as_listed_once(feed: Feed) -> None:
    """Name the region as the shipped tables do where they list an instance once for all, and the feed agrees."""
    rows = tables.all_rows("node_prices")
    listed_once = set(rows[rows["region"] == "all"][["provider", "instance"]].itertuples(index=False, name=None))
    prices: dict[tuple[str, str, str], set[float]] = defaultdict(set)
    for offer in feed.offers:
        provider, instance, _, term = offer.keys
        prices[provider, instance, term].add(offer.value)
    offers = []
    for offer in feed.offers:
        provider, instance, _, term = offer.keys
        once = (provider, instance) in listed_once and len(prices[provider, instance, term]) == 1
        offers.append(replace(offer, keys=(provider, instance, "all", term)) if once else offer)
    feed.offers = offers


def provider_of(path_name: str, folder: str) -> str:
    """Read from a file's name, or its folder's, whose catalog it is.

    Examples
    --------
    >>> provider_of("gcp_vms.2026-05-20.csv", "feeds"), provider_of("vms.csv", "aws"), provider_of("mine.csv", "x")
    ('gcp', 'aws', 'mine')
    """
    stem = re.split(r"[_.-]?vms\b|\.", path_name.lower())[0]
    return names.slug(stem or folder)
