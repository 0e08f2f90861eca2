"""Own prices: a file from outside, doubted row by row, laid over the shipped tables.

A row names the item that it prices by the key columns that it needs; a key column that is missing or blank
matches every row of that item. Nothing is repaired: a row that cannot be right is refused, one that looks odd
is taken and flagged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.inputs import Door, InputError, Words, fraction, positive, share
from analysis.reference.rows import (
    SLUG,
    STATUSES,
    WITHDRAWN,
    Schema,
    nearest,
    parse_date,
    parse_value,
    place,
    read_csv_strict,
)

#: The tables that own prices may change, and the key columns that name an item there.
ITEM_COLUMNS = {"node_prices": ("instance",), "api_prices": ("model",), "ownership": ()}
#: What stands as source beside a value that came from outside.
OWN_SOURCE = "own-prices"
#: Sources of rows that an import made from a whole feed. Most of a feed prices what the book does not have, so there
#: an unknown name is no slip: the row is counted as unused, where a row typed by hand is refused.
FEEDS = ("litellm", "genai-prices", "llm-prices", "skypilot", "openrouter")
#: A row of this quantity says what a foreign currency is worth: unit ``USD/EUR``, value 1.1.
EXCHANGE_RATE = "exchange_rate"
#: A price this many times above or below all that the book has for the item is a slip of the unit, not a price.
ABSURD = 100
#: A price this many times away is possible, and worth a second look.
ODD = 5

_NEEDED = ("quantity", "value", "unit")
_OPTIONAL = ("low", "high", "as_of", "source", "locator", "status", "note")
#: Quantities with a domain narrower than "a number, 0 or above". Pure numbers have no neighbours in the book to be
#: held against, so each has limits of its own: a percentage for a fraction, or months for years, is a slip.
_DOMAINS: dict[str, Door] = {
    "pue": Door("a number from 1 to 3: all electricity over that of the computers", lambda a: (a >= 1) & (a <= 3)),
    "power_share": fraction,
    "wage_share": fraction,
    "residual": share,
    "life": Door("a number of years above 0 and at most 30", lambda a: (a > 0) & (a <= 30)),
    "interest": Door("a fraction from 0 to 1: 10 % a year is 0.1", lambda a: (a >= 0) & (a <= 1)),
    "upkeep": Door("a fraction from 0 to 1: 5 % a year is 0.05", lambda a: (a >= 0) & (a <= 1)),
    "engineers": Door("a number from 0 to 100 of people for one node", lambda a: (a >= 0) & (a <= 100)),
    "accelerator_count": positive,
}


@dataclass(frozen=True)
class OwnRow:
    """One price from outside, in USD; ``matches`` counts the items of the book that it prices."""

    row: int
    table: str
    keys: tuple[tuple[str, str], ...]
    quantity: str
    value: float
    low: float | None
    high: float | None
    unit: str
    as_of: date | None
    locator: str
    status: str
    note: str
    matches: int


@dataclass(frozen=True)
class OwnPrices:
    """A set of own prices; without rows it is the book itself."""

    name: str
    rows: tuple[OwnRow, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Hash the rows once: a file may have thousands, and a table is asked for by its prices."""
        return hash((self.name, self.rows))


#: No own prices, also where the environment names a file.
BOOK = OwnPrices("the book")


@dataclass(frozen=True)
class Check:
    """What was found in a price file: rows that can be used, rows that cannot, and what looks odd about the former.

    ``unused`` holds the lines of rows from a feed that price nothing in the book; ``rates`` the row of each exchange
    rate, its currency and what one unit of it is worth [USD].
    """

    prices: OwnPrices
    refused: tuple[tuple[int, InputError], ...]
    flagged: tuple[tuple[int, str], ...]
    unused: tuple[int, ...] = ()
    rates: tuple[tuple[int, str, float], ...] = ()


class _NotInBookError(Exception):
    """A row of a feed for something that the book does not have."""


def check(path: Path, *, schemas: Mapping[str, Schema], book: Callable[[str], pd.DataFrame], today: date) -> Check:
    """Read a price file and judge every row of it.

    Parameters
    ----------
    path : Path
        A CSV with ``quantity, value, unit``, the key columns that it needs, and any of the other columns.
    schemas : mapping of str to Schema
        The tables of the book.
    book : callable
        Returns all rows of one table.
    today : date
        A price of a later day is refused.

    Returns
    -------
    Check

    Raises
    ------
    InputError
        If the file as a whole cannot be read: missing, empty, damaged, or with an unknown column.
    """
    keys = list(dict.fromkeys(key for name in ITEM_COLUMNS for key in schemas[name].keys))
    cells_of_rows = read_csv_strict(path, [*keys, *_NEEDED, *_OPTIONAL], may_lack=[*keys, *_OPTIONAL])
    if not cells_of_rows:
        raise InputError(path.name, Words("no rows"), "at least one price")
    reader = _Reader(path, schemas, book, today)
    refused: list[tuple[int, InputError]] = []
    for cells in (row for row in cells_of_rows if row["quantity"] == EXCHANGE_RATE):
        _collect(refused, cells, reader.exchange_rate)
    rows = [
        found
        for cells in cells_of_rows
        if cells["quantity"] != EXCHANGE_RATE and (found := _collect(refused, cells, reader.price)) is not None
    ]
    flagged = [(row.row, reason) for row in rows for reason in reader.doubts(row)]
    idle = [currency for currency in reader.rate_rows if currency not in reader.converted]
    flagged += [(reader.rate_rows[name], f"converts nothing: no price is in {name}") for name in idle]
    return Check(
        OwnPrices(path.name, tuple(rows)),
        tuple(sorted(refused, key=lambda r: r[0])),
        tuple(flagged),
        tuple(reader.unused),
        tuple((row, currency, reader.rates[currency]) for currency, row in reader.rate_rows.items()),
    )


def _collect(
    refused: list[tuple[int, InputError]], cells: dict[str, str], read: Callable[[dict[str, str]], OwnRow | None]
) -> OwnRow | None:
    try:
        return read(cells)
    except InputError as refusal:
        refused.append((int(cells["row"]), refusal))
    except _NotInBookError:
        pass
    return None


class _Reader:
    """Judges the rows of one file; remembers exchange rates and what it has seen."""

    def __init__(
        self, path: Path, schemas: Mapping[str, Schema], book: Callable[[str], pd.DataFrame], today: date
    ) -> None:
        self.path, self.book, self.today = path, book, today
        self.schemas = [schemas[name] for name in ITEM_COLUMNS]
        self.rates = {"USD": 1.0}
        self.rate_rows: dict[str, int] = {}
        self.converted: set[str] = set()
        self.seen: dict[tuple[Any, ...], int] = {}
        self.unused: list[int] = []
        self._names: dict[tuple[str, str, str], frozenset[str]] = {}

    def exchange_rate(self, cells: dict[str, str]) -> None:
        """Take in what one unit of a foreign currency is worth."""
        at = self._places(cells)
        named = re.fullmatch(r"USD/([A-Z]{3})", cells["unit"])
        if named is None or named[1] in self.rates:
            raise InputError(at("unit"), cells["unit"] or None, "USD/EUR or the like, each currency once")
        self.rates[named[1]] = positive.parse(at("value"), cells["value"])
        self.rate_rows[named[1]] = int(cells["row"])

    def price(self, cells: dict[str, str]) -> OwnRow:
        """Read one price and find the rows of the book that it matches."""
        at = self._places(cells)
        schema, unit, rate = self._schema(cells)
        keys = self._keys(cells, schema)
        value, low, high = parse_value(at, cells)
        if cells["quantity"] in _DOMAINS:
            for column in ("value", "low", "high"):
                if cells[column]:
                    _DOMAINS[cells["quantity"]].parse(at(column), cells[column])
        as_of = parse_date(at("as_of"), cells["as_of"]) if cells["as_of"] else None
        if as_of is not None and as_of > self.today:
            raise InputError(at("as_of"), cells["as_of"], f"a day up to {self.today}")
        if cells["status"] and cells["status"] not in STATUSES:
            raise InputError(at("status"), cells["status"], " or ".join(STATUSES))
        matching = self._matching(cells, schema, keys)
        row = OwnRow(
            row=int(cells["row"]),
            table=schema.name,
            keys=tuple(keys.items()),
            quantity=cells["quantity"],
            value=value * rate,
            low=None if low is None else low * rate,
            high=None if high is None else high * rate,
            unit=unit,
            as_of=as_of,
            locator=", ".join(
                part for part in (cells["source"], cells["locator"], f"row {cells['row']} of the price file") if part
            ),
            status=cells["status"] or "reported",
            note=cells["note"],
            matches=len(matching.drop_duplicates([*schema.keys])),
        )
        self._refuse_absurd(at, cells, row, matching)
        identity = (row.table, frozenset(keys.items()), row.quantity, as_of)
        if identity in self.seen:
            same = Words(f"a second price for {' '.join(keys.values()) or row.quantity}")
            raise InputError(f"{self.path.name} row {row.row}", same, f"one (the first is row {self.seen[identity]})")
        self.seen[identity] = row.row
        return row

    def doubts(self, row: OwnRow) -> list[str]:
        """Say what looks odd about a row that is used."""
        known = self._values(row)
        found = []
        if row.value == 0 and row.unit != "1":
            found.append("the price is 0: taken as free, not as missing")
        count = self._accelerators(row)
        if count > 1 and row.value < known.min() / 2 and known.min() * 0.8 <= row.value * count <= known.max() * 1.25:
            found.append(
                f"looks like the price of one accelerator: times {count:g} it is {row.value * count:.2f}, and the book"
                f" has {known.min():.2f} to {known.max():.2f} for the node"
            )
        elif known.max() > 0 and row.value > 0 and not known.min() / ODD <= row.value <= known.max() * ODD:
            found.append(f"more than {ODD} times off what the book has: {known.min():g} to {known.max():g} {row.unit}")
        if row.table == "api_prices" and "token_kind" not in dict(row.keys):
            found.append("no token_kind: one price for input, cached and output tokens, which are three goods")
        return found

    def _places(self, cells: Mapping[str, str]) -> Callable[[str], str]:
        return lambda column: place(self.path, int(cells["row"]), column)

    def _schema(self, cells: dict[str, str]) -> tuple[Schema, str, float]:
        """Tell from quantity and unit which table is meant; a foreign currency needs its rate."""
        at = self._places(cells)
        quantity = cells["quantity"]
        having = [schema for schema in self.schemas if quantity in schema.units and quantity != WITHDRAWN]
        if not having:
            quantities = dict.fromkeys(q for schema in self.schemas for q in schema.units if q != WITHDRAWN)
            raise InputError(at("quantity"), quantity or None, " or ".join([*quantities, EXCHANGE_RATE]))
        foreign = re.fullmatch(r"([A-Z]{3})(/.+)?", cells["unit"])
        currency, rest = (foreign[1], foreign[2] or "") if foreign else ("USD", "")
        unit = f"USD{rest}" if foreign else cells["unit"]
        for schema in having:
            if unit == schema.units[quantity]:
                if currency not in self.rates:
                    raise InputError(
                        at("unit"), cells["unit"], f"USD, or a row of the quantity {EXCHANGE_RATE} in USD/{currency}"
                    )
                self.converted.add(currency)
                return schema, unit, self.rates[currency]
        raise InputError(
            at("unit"), cells["unit"] or None, f"{' or '.join(s.units[quantity] for s in having)} for {quantity}"
        )

    def _keys(self, cells: dict[str, str], schema: Schema) -> dict[str, str]:
        at = self._places(cells)
        for other in self.schemas:
            for key in other.keys:
                if cells[key] and key not in schema.keys:
                    raise InputError(at(key), cells[key], f"nothing: {schema.name} has {', '.join(schema.keys)}")
        for key in ITEM_COLUMNS[schema.name]:
            if not cells[key]:
                raise InputError(at(key), None, f"the {key} that this price is for")
        keys = {key: cells[key] for key in schema.keys if cells[key]}
        for key, name in keys.items():
            if not SLUG.fullmatch(name):
                raise InputError(at(key), name, "a lower-case name without blanks")
        return keys

    def _matching(self, cells: dict[str, str], schema: Schema, keys: Mapping[str, str]) -> pd.DataFrame:
        """Return the rows of the book that a price is for, or refuse a name that the book does not have."""
        from_feed = cells["source"] in FEEDS
        if from_feed and any(keys[key] not in self._known(schema, cells["quantity"], key) for key in keys):
            raise self._not_in_book(cells)
        rows = self.book(schema.name)
        rows = rows[rows["quantity"] == cells["quantity"]]
        # the item first, so that an unknown instance is not reported as an unknown provider of it
        for key in sorted(keys, key=lambda k: k not in ITEM_COLUMNS[schema.name]):
            matching = rows[rows[key] == keys[key]]
            if matching.empty and from_feed:
                raise self._not_in_book(cells)
            if matching.empty:
                at = self._places(cells)(key)
                raise InputError(at, keys[key], f"one in {schema.name}: {nearest(keys[key], rows[key].unique())}")
            rows = matching
        return rows

    def _not_in_book(self, cells: Mapping[str, str]) -> _NotInBookError:
        self.unused.append(int(cells["row"]))
        return _NotInBookError()

    def _known(self, schema: Schema, quantity: str, key: str) -> frozenset[str]:
        """Return the names in one column; kept, because a feed asks thousands of times."""
        asked = (schema.name, quantity, key)
        if asked not in self._names:
            rows = self.book(schema.name)
            self._names[asked] = frozenset(rows.loc[rows["quantity"] == quantity, key])
        return self._names[asked]

    def _values(self, row: OwnRow) -> pd.Series:
        rows = self.book(row.table)
        return _matched(rows, row)["value"]

    def _refuse_absurd(
        self, at: Callable[[str], str], cells: Mapping[str, str], row: OwnRow, matching: pd.DataFrame
    ) -> None:
        low, high = matching["value"].min(), matching["value"].max()
        if row.unit != "1" and high > 0 and row.value > 0 and not low / ABSURD <= row.value <= high * ABSURD:
            raise InputError(
                at("value"),
                cells["value"],
                f"within {ABSURD} times of the book's {low:g} to {high:g} {row.unit}",
            )

    def _accelerators(self, row: OwnRow) -> float:
        """Return how many accelerators the priced node has, 1 for anything else."""
        if row.table != "node_prices":
            return 1
        nodes = self.book("nodes")
        return float(nodes[nodes["instance"] == dict(row.keys)["instance"]]["value"].min())


def _matched(rows: pd.DataFrame, own: OwnRow) -> pd.DataFrame:
    matching = rows[rows["quantity"] == own.quantity]
    for key, name in own.keys:
        matching = matching[matching[key] == name]
    return matching


def overlay(rows: pd.DataFrame, *, table: str, as_of: date, prices: OwnPrices) -> pd.DataFrame:
    """Lay own prices over the rows of one table as of a day.

    Parameters
    ----------
    rows : DataFrame
        What the book has on that day. An item that it does not have then is not brought back.
    table : str
        Its name.
    as_of : date
        The day: an own price of a later day is not used; one without a date always is.
    prices : OwnPrices
        The own prices. Where several match a row, the one with more key columns wins, then the newer, then
        the later in the file.

    Returns
    -------
    DataFrame
        The rows, those with an own price with its value, date and note, and ``own-prices`` as source.
    """
    mine = [own for own in prices.rows if own.table == table and (own.as_of is None or own.as_of <= as_of)]
    if not mine:
        return rows
    laid = rows.copy()
    for own in sorted(mine, key=lambda own: (len(own.keys), own.as_of or date.min, own.row)):
        index = _matched(laid, own).index
        laid.loc[index, ["value", "low", "high"]] = [own.value, own.low, own.high]
        laid.loc[index, ["source", "locator", "status", "note"]] = [OWN_SOURCE, own.locator, own.status, own.note]
        laid.loc[index, "as_of"] = own.as_of or as_of
    return laid


def record(found: Check) -> dict[str, Any]:
    """Write a check as plain values: the object of ``prices check --json``."""

    def words(row: OwnRow) -> dict[str, Any]:
        return asdict(row) | {"keys": dict(row.keys), "as_of": None if row.as_of is None else row.as_of.isoformat()}

    return {
        "rows": [words(row) for row in found.prices.rows],
        "refused": [{"row": row, "reason": str(refusal)} for row, refusal in found.refused],
        "flagged": [{"row": row, "reason": reason} for row, reason in found.flagged],
        "unused": list(found.unused),
        "rates": [{"row": row, "currency": currency, "usd": usd} for row, currency, usd in found.rates],
    }


def first_refusal(found: Check) -> InputError | None:
    """Return the refusal that stands first in the file, None if every row can be used."""
    return next((refusal for _, refusal in found.refused), None)


def names(prices: Iterable[OwnRow]) -> list[str]:
    """Say each own price in one line."""
    return [
        f"row {own.row}: {' '.join(name for _, name in own.keys) or 'everywhere'} {own.quantity}"
        f" {own.value:g} {own.unit}, {own.matches} {'row' if own.matches == 1 else 'rows'} of {own.table}"
        for own in prices
    ]
