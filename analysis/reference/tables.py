"""The data tables: read, validated row by row, selected by date.

One row is one observation. Readers refuse a damaged table with file, row and column; they never
repair, skip or default. Row numbers count as an editor does: the header is row 1.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.inputs import InputError, Words, not_negative, positive, whole
from analysis.reference import own_prices
from analysis.reference.own_prices import OWN_SOURCE, OwnPrices, overlay
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
from analysis.reference.specs import (
    COMPUTE_FORMATS,
    MODEL_CLASSES,
    Accelerator,
    ApiModel,
    Host,
    Node,
    Ownership,
    Price,
    Tariff,
)
from analysis.units import BASE_UNITS_PER, BYTE_PER_GB, DATA_UNITS, FLOP_PER_TFLOP, WATT_PER_KILOWATT

#: The tables lie beside the package, wherever the caller stands.
#:
#: :meta hide-value:
DATA = Path(__file__).resolve().parents[2] / "data"

#: The day the article appeared. Chapters take their data as of this day, so that a row added later moves nothing.
SNAPSHOT = date(2026, 7, 20)
#: The newest prices that the tables hold.
NEWEST = date(2026, 11, 20)

SCHEMAS = {
    schema.name: schema
    for schema in (
        Schema(
            "node_prices",
            ("provider", "instance", "region", "term"),
            {"price": "USD/node_hour", WITHDRAWN: "1"},
            frozenset({"region"}),
        ),
        Schema("api_prices", ("seller", "model", "token_kind", "tier"), {"price": "USD/Mtok", WITHDRAWN: "1"}),
        Schema(
            "accelerators",
            ("accelerator",),
            {
                **{f"peak_{number_format}": "TFLOP/s" for number_format in ("tf32", "bf16", "fp8", "fp4")},
                "peak_int8": "TOP/s",
                "mem_nominal": "GB GiB",
                "mem_capacity": "byte MiB GiB",
                "mem_bw": "GB/s",
                "link_bw": "GB/s",
                "link_bw_both": "GB/s",
                "tdp": "W",
            },
        ),
        Schema("on_chip", ("part",), {"on_chip": "MB GB"}),
        Schema(
            "measured",
            (
                *("id", "model", "weights", "kv", "accelerator", "accelerators", "tensor_parallel", "engine"),
                *("engine_version", "layout", "regime", "concurrency", "input_tokens", "output_tokens", "lengths"),
                "unused",
            ),
            {
                "tpot_s": "s",
                "ttft_s": "s",
                "e2e_latency_s": "s",
                "tokens_per_s_per_user": "token/s",
                "tokens_per_s_reported": "token/s",
                "output_tokens_per_s_total": "token/s",
                "output_tokens_per_s_per_gpu": "token/s",
                "prefill_tokens_per_s": "token/s",
                "achieved_mem_bandwidth_per_gpu": "GB/s",
            },
            frozenset(
                {
                    *("weights", "kv", "accelerators", "tensor_parallel", "engine_version", "input_tokens"),
                    *("output_tokens", "unused"),
                }
            ),
        ),
        # how answers were made, and what that gained; `analysis.reference.decoder_tables` reads the next three
        Schema(
            "diffusion",
            (
                *("id", "model", "backbone", "decoder", "method", "weights", "accelerator", "accelerators", "engine"),
                *("batch", "answer_tokens", "block_tokens", "denoising_steps", "task", "against", "unused"),
            ),
            {
                "output_rate": "token/s",
                "ttft": "s",
                "e2e": "s",
                "tokens_per_pass": "1",
                "speedup": "1",
                "score": "%",
                "max_batch": "count",
                "crossover_batch": "count",
                **dict.fromkeys(("params_total", "params_active", "experts", "experts_used"), "count"),
            },
            frozenset(
                {
                    *("backbone", "weights", "accelerator", "accelerators", "engine", "batch", "answer_tokens"),
                    *("block_tokens", "denoising_steps", "against", "unused"),
                }
            ),
        ),
        Schema(
            "speculation",
            (
                *("id", "method", "shape", "model", "backbone", "draft", "weights", "accelerator", "accelerators"),
                *("engine", "batch", "temperature", "task", "draft_length", "unused"),
            ),
            {
                "output_rate": "token/s",
                "baseline_rate": "token/s",
                "speedup": "1",
                "tokens_per_pass": "1",
                "acceptance": "1",
            },
            frozenset(
                {
                    *("shape", "backbone", "draft", "weights", "accelerator", "accelerators", "engine", "batch"),
                    *("temperature", "draft_length", "unused"),
                }
            ),
        ),
        Schema(
            "scaling",
            ("study", "model", "decoder", "training_flop", "task", "coefficient", "unused"),
            {"loss": "1", "params_optimal": "count", "score": "%", "coefficient": "1"},
            frozenset({"training_flop", "task", "coefficient", "unused"}),
        ),
        Schema("collectives", ("accelerator", "accelerators", "engine", "mode", "message_byte"), {"all_reduce": "us"}),
        Schema(
            "tools",
            ("tool", "version", "model", "accelerator", "accelerators", "weights", "batch", "context_tokens"),
            {"step": "ms"},
        ),
        Schema("nodes", ("provider", "instance", "accelerator"), {"accelerator_count": "count"}),
        Schema(
            "host_example",
            ("machine", "batch"),
            {
                "threads": "count",
                "inputs": "count",
                "outputs": "count",
                "bytes_per_weight": "byte",
                "copy_byte_per_s": "byte/s",
                "read_byte_per_s": "byte/s",
                "peak_flop_per_s": "FLOP/s",
                "time": "s",
            },
            frozenset({"batch"}),
        ),
        Schema(
            "architectures",
            ("architecture",),
            dict.fromkeys(
                (
                    "params_total",
                    "params_active",
                    # tensor counts of released files, which hold more than the language model's parameters
                    "stored_tied_twice",
                    "stored_with_vision",
                    "stored_tied_twice_with_vision",
                    "stored_with_scales",
                    "without_indexer",
                ),
                "count",
            ),
        ),
        Schema(
            "ownership",
            ("hardware", "accelerator"),
            {
                "purchase": "USD",
                "accelerator_count": "count",
                "power_max": "W",
                "power_share": "1",
                "pue": "1",
                "electricity": "USD/kWh",
                "colocation": "USD/kW_month",
                "life": "year",
                "residual": "1",
                "interest": "1/year",
                "upkeep": "1/year",
                "engineers": "1",
                "engineer_pay": "USD/year",
                "wage_share": "1",
            },
        ),
        Schema(
            "api_latency",
            ("seller", "model", "thinking", "input_tokens", "output_tokens"),
            {"ttft": "s", "ttfat": "s", "e2e": "s", "output_rate": "token/s"},
            frozenset({"input_tokens", "output_tokens"}),
        ),
        Schema("rules", ("jurisdiction", "rule"), {"external_api_forbidden": "1", "exemption_possible": "1"}),
        Schema(
            "traces",
            ("trace",),
            {
                "requests": "count",
                "windows": "count",
                "span": "s",
                "stamp_step": "s",
                "mean_rate": "1/s",
                "mean_input": "token",
                "mean_output": "token",
                "cached_share": "1",
                "gap_cv": "1",
            },
        ),
        Schema(
            "routing",
            ("model", "experts", "top_k", "positions"),
            {"neighbour_share": "1", "expert_pool": "count"},
        ),
        Schema("fleet_utilization", ("fleet", "work"), {"utilization": "1"}),
    )
}

SOURCE_COLUMNS = ("key", "title", "publisher", "url", "published", "read", "licence")
MODEL_COLUMNS = ("model", "class", "open_weights", "source", "locator", "note")


def _row(path: Path, schema: Schema, cells: Mapping[str, str], sources: Iterable[str]) -> dict[str, Any]:
    line = int(cells["row"])

    def at(column: str) -> str:
        return place(path, line, column)

    record: dict[str, Any] = {}
    for key in schema.keys:
        if cells[key] == "" and key in schema.may_be_blank:
            record[key] = ""
            continue
        if not SLUG.fullmatch(cells[key]):
            raise InputError(at(key), cells[key] or None, "a lower-case name without blanks")
        record[key] = cells[key]
    if cells["quantity"] not in schema.units:
        raise InputError(at("quantity"), cells["quantity"] or None, " or ".join(schema.units))
    unit, units = cells["unit"], schema.units[cells["quantity"]].split()
    if unit not in units or unit not in DATA_UNITS:
        raise InputError(at("unit"), unit or None, f"{' or '.join(units)} for {cells['quantity']}")
    value, low, high = parse_value(at, cells)
    if cells["source"] not in sources:
        raise InputError(at("source"), cells["source"] or None, "a key of sources.csv")
    if cells["status"] not in STATUSES:
        raise InputError(at("status"), cells["status"] or None, " or ".join(STATUSES))
    if cells["locator"] == "":
        raise InputError(at("locator"), None, "the table, page or section of the source")
    return record | {
        "quantity": cells["quantity"],
        "value": value,
        "low": low,
        "high": high,
        "unit": unit,
        "as_of": parse_date(at("as_of"), cells["as_of"]),
        "source": cells["source"],
        "locator": cells["locator"],
        "status": cells["status"],
        "note": cells["note"],
        "row": line,
    }


def load(path: Path, schema: Schema, sources: Iterable[str]) -> pd.DataFrame:
    """Read and validate every row of one table, all dates.

    Parameters
    ----------
    path : Path
        The CSV file.
    schema : Schema
        Its keys, quantities and units.
    sources : iterable of str
        The source keys that exist.

    Returns
    -------
    DataFrame
        The rows in file order: the columns of the file, and ``row``, the line in the file.

    Raises
    ------
    InputError
        For the first damaged row: file, row, column, value, and what was expected.
    """
    known = frozenset(sources)
    seen: dict[tuple[Any, ...], int] = {}
    records = []
    for cells in read_csv_strict(path, schema.columns):
        record = _row(path, schema, cells, known)
        identity = (*(record[key] for key in schema.keys), record["quantity"], record["as_of"])
        if identity in seen:
            same = " ".join(str(part) for part in identity if part != "")
            raise InputError(
                f"{path.name} row {record['row']}",
                f"a second row for {same}",
                f"one (the first is row {seen[identity]})",
            )
        seen[identity] = record["row"]
        records.append(record)
    return pd.DataFrame.from_records(records, columns=[*schema.columns, "row"])


@dataclass(frozen=True)
class Table:
    """Rows of one table as of one day."""

    schema: Schema
    as_of: date
    rows: pd.DataFrame

    def where(self, **keys: str) -> pd.DataFrame:
        """Return the rows that match all given columns.

        Raises
        ------
        InputError
            If no row matches; the message lists the nearest names.
        """
        selected = self.rows
        for column, wanted in keys.items():
            matching = selected[selected[column] == wanted]
            if matching.empty:
                near = nearest(wanted, selected[column].unique()) or "there is none"
                raise InputError(column, wanted, f"one in {self.schema.name} as of {self.as_of}: {near}")
            selected = matching
        return selected

    def one(self, **keys: str) -> pd.Series:
        """Return the single row that matches all given columns.

        Raises
        ------
        InputError
            If none or several match.
        """
        selected = self.where(**keys)
        if len(selected) > 1:
            asked = ", ".join(f"{k}={v}" for k, v in keys.items())
            apart = [key for key in self.schema.keys if selected[key].nunique() > 1]
            raise InputError(self.schema.name, asked, f"a single row: {len(selected)} differ in {', '.join(apart)}")
        return selected.iloc[0]


@cache
def sources() -> pd.DataFrame:
    """Read sources.csv, indexed by key.

    Raises
    ------
    InputError
        If a cell is blank, a key occurs twice, or a date is not ISO.
    """
    path = DATA / "sources.csv"
    rows = read_csv_strict(path, SOURCE_COLUMNS)
    keys: set[str] = set()
    for cells in rows:
        line = int(cells["row"])
        for column in SOURCE_COLUMNS:
            if cells[column] == "":
                raise InputError(place(path, line, column), None, "text")
        if cells["key"] in keys:
            raise InputError(place(path, line, "key"), cells["key"], "a key that no other row has")
        keys.add(cells["key"])
        for column in ("published", "read"):
            if cells[column] != "undated":
                parse_date(place(path, line, column), cells[column])
    return pd.DataFrame.from_records(rows, columns=[*SOURCE_COLUMNS]).set_index("key")


@cache
def all_rows(name: str) -> pd.DataFrame:
    """Read one shipped table with all its dates (validated once per process)."""
    return load(DATA / f"{name}.csv", SCHEMAS[name], sources().index)


def table(name: str, *, as_of: date, prices: OwnPrices | None = None) -> Table:
    """Read one table as of a day: of each item the newest row on or before it, own prices laid over it.

    Parameters
    ----------
    name : str
        A key of ``SCHEMAS``.
    as_of : date
        The day. An item whose first row is later is absent, and so is an offer withdrawn by then.
    prices : OwnPrices, optional
        Own prices; without them those that the environment names, see `prices_in_force`.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        As `prices_in_force`.
    """
    prices = prices_in_force(prices)
    as_of = _OTHER_DAYS.get().get(name, as_of)
    rows, key = all_rows(name), (name, as_of, prices)
    if key not in _LAID or _LAID[key][0] is not rows:
        found = as_of_day(rows, SCHEMAS[name], as_of)
        laid = replace(found, rows=overlay(found.rows, table=name, as_of=as_of, prices=prices))
        if len(_LAID) >= _MOST_LAID:
            _LAID.clear()
        _LAID[key] = rows, laid
    laid = _LAID[key][1]
    # a frame of its own, so that nobody writes into what another one reads
    return replace(laid, rows=laid.rows.copy())


#: Tables that are read as of another day than is asked for, see `as_if`.
_OTHER_DAYS: ContextVar[Mapping[str, date]] = ContextVar("other_days", default={})  # noqa: B039 - never changed


@contextmanager
def as_if(days: Mapping[str, date]) -> Iterator[None]:
    """Read some tables as of another day, the others as they are asked for: to see what these alone move.

    Parameters
    ----------
    days : mapping of str to date
        The day for each such table.

    Raises
    ------
    InputError
        If there is no such table.

    Examples
    --------
    >>> with as_if({"rules": date(2019, 1, 1)}):
    ...     len(table("rules", as_of=SNAPSHOT).rows)
    0
    """
    for name in days:
        if name not in SCHEMAS:
            raise InputError("table", name, f"one of {nearest(name, SCHEMAS)}")
    before = _OTHER_DAYS.set(dict(days))
    try:
        yield
    finally:
        _OTHER_DAYS.reset(before)


#: Tables as of a day with prices over them, and the rows that they were made from: a claim asks for the same again
#: and again.
_LAID: dict[tuple[str, date, OwnPrices], tuple[pd.DataFrame, Table]] = {}
_MOST_LAID = 64

#: The terms of a commitment for a year or more, as node prices call them; an estimate is none.
COMMITTED_TERMS = r"(reserved|commit|plan|savings-plan)-\d+yr"

#: The environment variable with the absolute path of a price file, so that every process of a run sees the same.
PRICES_VARIABLE = "ANALYSIS_PRICES"


def check_prices(path: Path) -> own_prices.Check:
    """Judge every row of a price file against the book; errors as `own_prices.check`."""
    # a clock that is behind the tables is wrong, and no reason to refuse a price as of their newest day
    today = max(date.today(), NEWEST)
    return own_prices.check(path, schemas=SCHEMAS, book=all_rows, today=today)


def read_prices(path: Path) -> OwnPrices:
    """Read a price file of which every row can be used.

    Parameters
    ----------
    path : Path
        The CSV file; data/README.md says what it may hold.

    Returns
    -------
    OwnPrices

    Raises
    ------
    InputError
        For the first row that is refused: file, row, column, value, and what was expected.
    """
    found = check_prices(path)
    refusal = own_prices.first_refusal(found)
    if refusal is not None:
        raise refusal
    return found.prices


@cache
def _prices_of(path: Path, stamp: int) -> OwnPrices:
    """Read a price file once for each state of it: ``stamp`` is the time of its last change."""
    return read_prices(path)


def prices_in_force(prices: OwnPrices | None = None) -> OwnPrices:
    """Return the own prices that hold: those given, else those that the environment names, else none.

    Parameters
    ----------
    prices : OwnPrices, optional
        An explicit choice; `own_prices.BOOK` is the choice of none.

    Returns
    -------
    OwnPrices

    Raises
    ------
    InputError
        If the environment names something else than the absolute path of a good price file.
    """
    if prices is not None:
        return prices
    named = os.environ.get(PRICES_VARIABLE)
    if not named:
        return own_prices.BOOK
    path = Path(named)
    if not path.is_absolute() or not path.is_file():
        raise InputError(PRICES_VARIABLE, named, "the absolute path of a price file")
    return _prices_of(path, path.stat().st_mtime_ns)


def as_of_day(rows: pd.DataFrame, schema: Schema, as_of: date) -> Table:
    """Select from rows of all dates what held on a day, as `table` does with a shipped table."""
    known = rows[rows["as_of"] <= as_of].sort_values("as_of", kind="stable")
    newest = known.drop_duplicates([*schema.keys, "quantity"], keep="last").sort_index()
    ended = newest[newest["quantity"] == WITHDRAWN].set_index([*schema.keys])["as_of"]
    if not ended.empty:
        items = pd.MultiIndex.from_frame(newest[[*schema.keys]])
        alive = [day > ended.get(item, date.min) for item, day in zip(items, newest["as_of"], strict=True)]
        newest = newest[alive]
    return Table(schema, as_of, newest.reset_index(drop=True))


def node_prices(*, as_of: date, prices: OwnPrices | None = None) -> Table:
    """Prices of whole nodes, by provider, instance, region and term. [USD/node_hour]."""
    return table("node_prices", as_of=as_of, prices=prices)


def api_prices(*, as_of: date, prices: OwnPrices | None = None) -> Table:
    """Prices of tokens at APIs, by seller, model, token kind and tier. [USD/Mtok]."""
    return table("api_prices", as_of=as_of, prices=prices)


def _statuses(rows: pd.DataFrame) -> dict[str, str]:
    return dict(zip(rows["quantity"], rows["status"], strict=True))


def accelerator(name: str, *, as_of: date) -> Accelerator:
    """Read one accelerator, in the base units of the model.

    Parameters
    ----------
    name : str
        Its slug with the form factor, for example ``h100-sxm``.
    as_of : date
        The day; a part that came out later is absent.

    Returns
    -------
    Accelerator

    Raises
    ------
    InputError
        If there is no such accelerator on that day; the message lists the nearest names.

    Examples
    --------
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> h100.mem_bw_byte_per_s, round(h100.mem_capacity_byte / 1e9, 2)
    (3350000000000.0, 85.52)
    """
    rows = table("accelerators", as_of=as_of).where(accelerator=name)
    values = {
        quantity: value * BASE_UNITS_PER[unit]
        for quantity, value, unit in zip(rows["quantity"], rows["value"], rows["unit"], strict=True)
    }
    link = values.get("link_bw", values["link_bw_both"] / 2 if "link_bw_both" in values else None)
    return Accelerator(
        name=name,
        peak_flop_per_s={
            quantity.removeprefix("peak_"): value for quantity, value in values.items() if quantity.startswith("peak_")
        },
        mem_capacity_byte=values.get("mem_capacity", values["mem_nominal"]),
        mem_bw_byte_per_s=values["mem_bw"],
        link_byte_per_s=link,
        tdp_w=values.get("tdp"),
        status=_statuses(rows),
    )


def accelerators(*, as_of: date) -> list[Accelerator]:
    """Read every accelerator known on a day, in the order of the file."""
    names = table("accelerators", as_of=as_of).rows["accelerator"].unique()
    return [accelerator(name, as_of=as_of) for name in names]


def on_chip_byte(*, as_of: date) -> dict[str, float]:
    """Read the memory that parts hold on their chip, by name. [byte].

    Parts that are no GPU stand beside the GPUs; a name with a row in accelerators.csv means that accelerator.

    Examples
    --------
    >>> on_chip_byte(as_of=SNAPSHOT)["h100-pcie"]
    50000000.0
    """
    rows = table("on_chip", as_of=as_of).rows
    sizes = rows["value"] * rows["unit"].map(BASE_UNITS_PER)
    return dict(zip(rows["part"], sizes, strict=True))


def accelerator_sheet(*, as_of: date) -> pd.DataFrame:
    """Lay the accelerators out wide, one row each, as a page shows them.

    Returns
    -------
    DataFrame
        Columns ``accelerator``, ``year`` (the part came out), a peak for each compute format in TFLOP/s or TOP/s
        dense, ``memory`` in GB of 10^9 byte, ``bandwidth`` and ``link`` (one direction) in GB/s, ``power`` in W,
        ``assumed`` (quantities without a second source) and ``source`` (keys of all rows). Not known is NaN.

    Examples
    --------
    >>> sheet = accelerator_sheet(as_of=SNAPSHOT).set_index("accelerator")
    >>> sheet.loc["h100-sxm", ["bf16", "bandwidth", "link"]].tolist()
    [989.4, 3350.0, 450.0]
    """
    rows = table("accelerators", as_of=as_of).rows
    of_part = rows.groupby("accelerator", sort=False)
    first_row, all_sources = of_part["as_of"].min(), of_part["source"].agg(lambda keys: ", ".join(dict.fromkeys(keys)))
    return pd.DataFrame(
        [
            {
                "accelerator": part.name,
                "year": str(first_row[part.name].year),
                **{name: part.peak_flop_per_s.get(name, math.nan) / FLOP_PER_TFLOP for name in COMPUTE_FORMATS},
                "memory": part.mem_capacity_byte / BYTE_PER_GB,
                "bandwidth": part.mem_bw_byte_per_s / BYTE_PER_GB,
                "link": math.nan if part.link_byte_per_s is None else part.link_byte_per_s / BYTE_PER_GB,
                "power": math.nan if part.tdp_w is None else part.tdp_w,
                "assumed": ", ".join(sorted(part.assumed)),
                "source": all_sources[part.name],
            }
            for part in accelerators(as_of=as_of)
        ]
    )


def price(row: pd.Series) -> Price:
    """Make a record of one price row."""
    return Price(**{column: row[column] for column in (f.name for f in fields(Price))})


def node(instance: str, *, as_of: date, provider: str | None = None, prices: OwnPrices | None = None) -> Node:
    """Read one node: which accelerators, how many, and every price known on a day.

    Parameters
    ----------
    instance : str
        The name on the price list in lower case, for example ``p5.48xlarge``.
    as_of : date
        The day.
    provider : str, optional
        Needed where several providers use the same name.
    prices : OwnPrices, optional
        As `table`.

    Returns
    -------
    Node

    Raises
    ------
    InputError
        If there is no such instance, or several providers have it.

    Examples
    --------
    >>> p5 = node("p5.48xlarge", as_of=SNAPSHOT)
    >>> p5.accelerator_count, p5.price(term="on-demand", region="us-east-1").value
    (8, 55.04)
    """
    keys = {"instance": instance} | ({} if provider is None else {"provider": provider})
    row = table("nodes", as_of=as_of).one(**keys)
    offers = node_prices(as_of=as_of, prices=prices).rows
    offers = offers[(offers["provider"] == row["provider"]) & (offers["instance"] == instance)]
    return Node(
        provider=row["provider"],
        instance=instance,
        accelerator=accelerator(row["accelerator"], as_of=as_of),
        accelerator_count=int(row["value"]),
        prices={(offer["region"], offer["term"]): price(offer) for _, offer in offers.iterrows()},
    )


def offers(accelerator: str, *, as_of: date, term: str = "on-demand", prices: OwnPrices | None = None) -> pd.DataFrame:
    """List the nodes on offer with one accelerator, each at its lowest price of a term.

    Parameters
    ----------
    accelerator : str
        Slug of the part.
    as_of : date
        The day.
    term : str
        Price term.
    prices : OwnPrices, optional
        As `table`.

    Returns
    -------
    DataFrame
        ``provider``, ``instance``, ``gpus`` [1], ``usd_per_hour`` [USD/node_hour], the smallest node first.

    Examples
    --------
    >>> rows = offers("h100-sxm", as_of=SNAPSHOT)
    >>> sorted(set(rows["gpus"]))
    [1, 8]
    """
    keys = ["provider", "instance"]
    nodes = table("nodes", as_of=as_of).rows
    nodes = nodes[(nodes["accelerator"] == accelerator) & (nodes["quantity"] == "accelerator_count")]
    rows = node_prices(as_of=as_of, prices=prices).rows
    lowest = rows[(rows["quantity"] == "price") & (rows["term"] == term)].groupby(keys)["value"].min()
    found = nodes[[*keys, "value"]].merge(lowest.rename("usd_per_hour").reset_index(), on=keys)
    found = found.rename(columns={"value": "gpus"}).astype({"gpus": int})
    return found.sort_values(["gpus", "usd_per_hour", *keys], ignore_index=True, kind="stable")


@cache
def api_models() -> dict[str, ApiModel]:
    """Read which class each model at an API belongs to, and whether its weights are open.

    Raises
    ------
    InputError
        If a cell is blank or not of the known words, a source is unknown, or a model occurs twice.
    """
    return load_models(DATA / "models_at_apis.csv", sources().index)


def load_models(path: Path, sources: Iterable[str]) -> dict[str, ApiModel]:
    """Read and validate a table of models at APIs; errors as `api_models`."""
    known = frozenset(sources)
    weights = {"yes": True, "no": False, "unknown": None}
    models: dict[str, ApiModel] = {}
    for cells in read_csv_strict(path, MODEL_COLUMNS):
        for column, fits, expected in (
            ("model", SLUG.fullmatch(cells["model"]), "a lower-case name without blanks"),
            ("model", cells["model"] not in models, "a model that no other row has"),
            ("class", cells["class"] in MODEL_CLASSES, " or ".join(MODEL_CLASSES)),
            ("open_weights", cells["open_weights"] in weights, " or ".join(weights)),
            ("source", cells["source"] in known, "a key of sources.csv"),
            ("locator", cells["locator"], "the table, page or section of the source"),
        ):
            if not fits:
                raise InputError(place(path, int(cells["row"]), column), cells[column] or None, expected)
        models[cells["model"]] = ApiModel(
            model=cells["model"],
            model_class=cells["class"],
            open_weights=weights[cells["open_weights"]],
            source=cells["source"],
            locator=cells["locator"],
            note=cells["note"],
        )
    return models


def output_prices(
    *, as_of: date, classes: Iterable[str] = MODEL_CLASSES, prices: OwnPrices | None = None
) -> pd.DataFrame:
    """Return the standard prices of output tokens on a day, with the class of each model.

    Parameters
    ----------
    as_of : date
        The day.
    classes : iterable of str
        Which classes of models (`specs.MODEL_CLASSES`).
    prices : OwnPrices, optional
        As `table`.

    Returns
    -------
    DataFrame
        Rows of api_prices with a column ``class``.

    Examples
    --------
    >>> sorted(output_prices(as_of=SNAPSHOT, classes=["diffusion"])["model"].unique())[0]
    'mercury-2'
    """
    rows = api_prices(as_of=as_of, prices=prices).where(token_kind="output", tier="standard", quantity="price")
    models = api_models()
    rows = rows.assign(**{"class": [models[model].model_class for model in rows["model"]]})
    return rows[rows["class"].isin(list(classes))]


def price_bands(rows: pd.DataFrame) -> pd.DataFrame:
    """Summarise prices by class of model: how many, and the 5th, 50th and 95th percentile.

    Parameters
    ----------
    rows : DataFrame
        From `output_prices`.

    Returns
    -------
    DataFrame
        Columns ``class``, ``prices``, ``p05``, ``median``, ``p95``, the cheapest class first. [USD/Mtok]
    """
    bands = rows.groupby("class")["value"].quantile([0.05, 0.5, 0.95]).unstack()
    bands.columns = pd.Index(["p05", "median", "p95"])
    bands.insert(0, "prices", rows.groupby("class").size())
    return bands.sort_values("median", kind="stable").reset_index()


def tariffs(model: str, *, as_of: date, tier: str = "standard", prices: OwnPrices | None = None) -> dict[str, Tariff]:
    """Read what each seller of a model asks for the kinds of its tokens.

    Parameters
    ----------
    model : str
        The model's slug.
    as_of : date
        The day.
    tier : str
        ``standard``, ``batch``, or a surcharge for long prompts.
    prices : OwnPrices, optional
        As `table`.

    Returns
    -------
    dict of str to Tariff
        By seller; one that has no price for input or for output in this tier is left out.

    Raises
    ------
    InputError
        If nobody sells the model on that day in that tier; the message lists the nearest names.

    Examples
    --------
    >>> found = tariffs("gpt-5", as_of=SNAPSHOT)["openai"]
    >>> found.input_usd_per_mtok, found.cached_usd_per_mtok, found.output_usd_per_mtok
    (1.25, 0.125, 10.0)
    """
    rows = api_prices(as_of=as_of, prices=prices).where(model=model, quantity="price", tier=tier)
    found = {}
    for seller, offer in rows.groupby("seller"):
        by_kind = dict(zip(offer["token_kind"], offer["value"], strict=True))
        if {"input", "output"} <= by_kind.keys():
            found[str(seller)] = Tariff(by_kind["input"], by_kind["output"], by_kind.get("cached-input"))
    if not found:
        raise InputError("tier", tier, f"one with prices of input and of output for {model}")
    return found


def class_tariffs(
    model_class: str, *, as_of: date, tier: str = "standard", prices: OwnPrices | None = None
) -> dict[str, dict[str, Tariff]]:
    """Read the tariffs of every model of a class, as `tariffs` does for one.

    Returns
    -------
    dict of model to (seller to Tariff)
        A model that nobody sells on that day with prices of input and of output in this tier is left out.

    Examples
    --------
    >>> "deepinfra" in class_tariffs("commodity", as_of=SNAPSHOT)["llama-3.3-70b"]
    True
    """
    rows = api_prices(as_of=as_of, prices=prices).where(quantity="price", tier=tier)
    kinds = rows.groupby(["model", "seller"])["token_kind"].agg(set)
    whole = {model for (model, _), has in kinds.items() if {"input", "output"} <= has}
    models = api_models()
    return {
        model: tariffs(model, as_of=as_of, tier=tier, prices=prices)
        for model in sorted(whole)
        if models[model].model_class == model_class
    }


def ownership(hardware: str, *, as_of: date, prices: OwnPrices | None = None) -> Ownership:
    """Read what it takes to own one node: its purchase, its power, and the costs that all nodes share.

    Parameters
    ----------
    hardware : str
        A node that can be bought, for example ``hgx-h100``.
    as_of : date
        The day.
    prices : OwnPrices, optional
        As `table`.

    Returns
    -------
    Ownership

    Raises
    ------
    InputError
        If no such node is known on that day; the message lists the nearest names. If a cost is not known yet.

    Examples
    --------
    >>> hgx = ownership("hgx-h100", as_of=SNAPSHOT)
    >>> hgx.purchase_usd, hgx.power_kw
    (230000.0, 10.2)
    """
    known = table("ownership", as_of=as_of, prices=prices)
    # what all nodes share first, so that a node's own figure takes its place
    rows = pd.concat([known.where(hardware="any"), known.where(hardware=hardware)])
    values = dict(zip(rows["quantity"], rows["value"], strict=True))
    for quantity in SCHEMAS["ownership"].units:
        if quantity not in values:
            later = all_rows("ownership").query("quantity == @quantity")["as_of"].min()
            raise InputError("as_of", as_of.isoformat(), f"a day from {later}, when {quantity} is first known")
    return Ownership(
        purchase_usd=values["purchase"],
        power_kw=values["power_max"] / WATT_PER_KILOWATT,
        power_share=values["power_share"],
        pue=values["pue"],
        electricity_usd_per_kwh=values["electricity"],
        colocation_usd_per_kw_month=values["colocation"],
        life_years=values["life"],
        residual_share=values["residual"],
        interest_per_year=values["interest"],
        upkeep_per_year=values["upkeep"],
        staff_usd_per_year=values["engineers"] * values["engineer_pay"] / values["wage_share"],
    )


def hardware_like(node: Node, *, as_of: date) -> list[str]:
    """List the nodes that can be bought with the same accelerators as many of them as a rented one has.

    Examples
    --------
    >>> hardware_like(node("p5.48xlarge", as_of=SNAPSHOT), as_of=SNAPSHOT)
    ['dgx-h100', 'hgx-h100']
    """
    rows = table("ownership", as_of=as_of).rows
    same = rows[
        (rows["quantity"] == "accelerator_count")
        & (rows["accelerator"] == node.accelerator.name)
        & (rows["value"] == node.accelerator_count)
    ]
    return list(same["hardware"])


def api_latency(*, as_of: date) -> pd.DataFrame:
    """Read how fast APIs answer: one row for each endpoint, model and way of thinking, newest figures.

    Parameters
    ----------
    as_of : date
        The day.

    Returns
    -------
    DataFrame
        Columns ``seller`` (``model-level`` where the source names none), ``model``, ``class`` (blank where the
        book has no price of the model), ``thinking``, ``input_tokens``, ``output_tokens`` (blank where the
        source does not say), ``ttft_s`` and ``ttfat_s`` (first token, first token of the answer),
        ``output_tok_per_s``, ``e2e_s``, ``as_of``, ``source``, ``status``; NaN where the source has no figure.

    Examples
    --------
    >>> listing = api_latency(as_of=SNAPSHOT)
    >>> float(listing[listing["model"] == "mercury-2"]["ttft_s"].max())
    2.79
    """
    found = table("api_latency", as_of=as_of)
    columns = {"ttft": "ttft_s", "ttfat": "ttfat_s", "output_rate": "output_tok_per_s", "e2e": "e2e_s"}
    # one page, one row: a seller's figures from two sources do not mix
    by = [*found.schema.keys, "as_of", "source", "status"]
    wide = found.rows.pivot(index=by, columns="quantity", values="value").rename(columns=columns)
    # a day on which nobody had measured one of them yet still has its column
    wide = wide.reindex(columns=sorted(columns.values())).reset_index()
    wide.columns.name = None
    models = api_models()
    wide.insert(2, "class", [models[name].model_class if name in models else "" for name in wide["model"]])
    return wide


def ttft(model: str, *, as_of: date) -> dict[str, Any] | None:
    """Return the shortest wait for the first token that was seen for a model, and where; None if nobody measured.

    Hidden thinking comes before the first token, so the entry says how the model was asked to think.

    Examples
    --------
    >>> ttft("gpt-4.1", as_of=SNAPSHOT)["api_ttft_s"]
    0.844
    """
    listing = api_latency(as_of=as_of)
    seen = listing[(listing["model"] == model) & listing["ttft_s"].notna()]
    if seen.empty:
        return None
    best = seen.loc[seen["ttft_s"].idxmin()]
    return {
        "api_ttft_s": float(best["ttft_s"]),
        "api_ttft_seller": best["seller"],
        "api_ttft_thinking": best["thinking"],
        "api_ttft_as_of": best["as_of"].isoformat(),
    }


#: What `make bench STORE=1` measured last, on the machine that it names.
#:
#: :meta hide-value:
BENCH = DATA / "derived" / "bench.csv"
BENCH_COLUMNS = ("what", "value", "unit", "budget", "kept", "baseline", "ratio", "date", "cpu")


def bench(path: Path = BENCH) -> pd.DataFrame:
    """Read what the report itself takes: times, rates and sizes, each beside its budget and a named baseline.

    Parameters
    ----------
    path : Path
        The table.

    Returns
    -------
    DataFrame
        Columns of the file; ``value`` in ``unit``, ``ratio`` of it to the ``baseline`` (NaN without one).

    Raises
    ------
    InputError
        If the file is damaged, a number is none, or a row has no date.

    Examples
    --------
    >>> set(bench()["kept"]) <= {"yes", "no", ""}
    True
    """
    rows = read_csv_strict(path, BENCH_COLUMNS)
    frame = pd.DataFrame(rows, columns=[*BENCH_COLUMNS, "row"])
    for row in rows:
        at = partial(place, path, int(row["row"]))
        not_negative.parse(at("value"), row["value"])
        parse_date(at("date"), row["date"])
        if row["ratio"]:
            positive.parse(at("ratio"), row["ratio"])
    numbers = {column: pd.to_numeric(frame[column]) for column in ("value", "ratio")}
    return frame.drop(columns="row").assign(**numbers)


def known_sources(*, prices: OwnPrices | None = None) -> pd.DataFrame:
    """Return the sources, with one for the price file of this run where there is one."""
    if not prices_in_force(prices).rows:
        return sources()
    own = dict.fromkeys(sources().columns, "") | {"title": "The price file of this run"}
    return pd.concat([sources(), pd.DataFrame([own], index=pd.Index([OWN_SOURCE], name="key"))])


def with_urls(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the address of each row's source in a column ``url``, so that a page can link to it."""
    return rows.assign(url=known_sources().loc[rows["source"], "url"].to_numpy())


def assumed_rows(*, as_of: date) -> pd.DataFrame:
    """Return the rows of every table, as of a day, that no usable source bears out.

    Returns
    -------
    DataFrame
        Columns ``table``, ``item``, ``quantity``, ``value``, ``unit``, ``note``.
    """
    found = []
    for name, schema in SCHEMAS.items():
        rows = table(name, as_of=as_of).rows
        rows = rows[rows["status"] == "assumed"]
        items = [" ".join(filter(None, keys)) for keys in rows[[*schema.keys]].itertuples(index=False)]
        found.append(rows.assign(table=name, item=items)[["table", "item", "quantity", "value", "unit", "note"]])
    return pd.concat([frame for frame in found if not frame.empty], ignore_index=True)


def host(path: Path | None = None) -> Host:
    """Read one computer's measurement, the shipped example or a file that ``measure-host`` wrote.

    Parameters
    ----------
    path : Path, optional
        The file; without it ``data/host_example.csv``.

    Returns
    -------
    Host

    Raises
    ------
    InputError
        If a row is damaged, a quantity is missing, or the file holds several computers or days.

    Examples
    --------
    >>> sorted(host().seconds_by_batch)
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    """
    schema = SCHEMAS["host_example"]
    path = path or DATA / f"{schema.name}.csv"
    rows = load(path, schema, sources().index)
    for column in ("machine", "as_of"):
        if rows[column].nunique() != 1:
            raise InputError(
                path.name, Words(f"{rows[column].nunique()} in column {column}"), "one computer on one day"
            )
    single = rows[rows["batch"] == ""].set_index("quantity")["value"]
    missing = [quantity for quantity in schema.units if quantity not in single.index and quantity != "time"]
    curve = rows[rows["quantity"] == "time"]
    if missing or curve.empty:
        raise InputError(path.name, None, f"a row for {(missing or ['time'])[0]}")
    return Host(
        machine=rows["machine"].iloc[0],
        threads=int(single["threads"]),
        inputs=int(single["inputs"]),
        outputs=int(single["outputs"]),
        bytes_per_weight=single["bytes_per_weight"],
        copy_byte_per_s=single["copy_byte_per_s"],
        read_byte_per_s=single["read_byte_per_s"],
        peak_flop_per_s=single["peak_flop_per_s"],
        seconds_by_batch={
            int(whole.parse(f"{path.name} row {line}, column batch", batch)): seconds
            for batch, seconds, line in zip(curve["batch"], curve["value"], curve["row"], strict=True)
        },
    )
