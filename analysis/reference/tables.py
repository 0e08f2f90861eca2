"""The data tables: read, validated row by row, selected by date.

One row is one observation. Readers refuse a damaged table with file, row and column; they never
repair, skip or default. Row numbers count as an editor does: the header is row 1.
"""

from __future__ import annotations

import calendar
import csv
import difflib
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd

from analysis.inputs import InputError, Words, not_negative, whole
from analysis.reference.specs import MODEL_CLASSES, Accelerator, ApiModel, Host, Node, Price
from analysis.units import BASE_UNITS_PER, DATA_UNITS

#: The tables lie beside the package, wherever the caller stands.
DATA = Path(__file__).resolve().parents[2] / "data"

#: The day the article appeared. Chapters take their data as of this day, so that a row added later moves nothing.
SNAPSHOT = date(2026, 7, 20)
#: The newest prices that the tables hold.
NEWEST = date(2026, 11, 20)

Status = Literal["listed", "measured", "reported", "quoted", "assumed"]
STATUSES = get_args(Status)


@dataclass(frozen=True)
class Observation:
    """What every row has besides its keys."""

    quantity: str
    value: float
    low: float | None
    high: float | None
    unit: str
    as_of: date
    source: str
    locator: str
    status: str
    note: str


@dataclass(frozen=True)
class Schema:
    """The columns that identify a row of one table, and the unit of each quantity it may hold.

    A quantity that sources print in several units lists them all, split by blanks: ``"GB GiB"``.
    """

    name: str
    keys: tuple[str, ...]
    units: Mapping[str, str]
    may_be_blank: frozenset[str] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, keys first, in the order of the file."""
        return (*self.keys, *(f.name for f in fields(Observation)))


#: A row of this quantity says that an offer had ended by that day: its older prices are history.
WITHDRAWN = "withdrawn"

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
    )
}

SOURCE_COLUMNS = ("key", "title", "publisher", "url", "published", "read", "licence")
MODEL_COLUMNS = ("model", "class", "open_weights", "source", "locator", "note")
_SLUG = re.compile(r"[a-z0-9][a-z0-9._+-]*")


def parse_date(where: str, text: str) -> date:
    """Read an ISO date; a month or a year means its last day.

    Parameters
    ----------
    where : str
        File, row and column, or option, for the message.
    text : str
        ``2026``, ``2026-07`` or ``2026-07-20``.

    Returns
    -------
    date

    Raises
    ------
    InputError
        If the text is none of the three.

    Examples
    --------
    >>> parse_date("--as-of", "2026-02").isoformat()
    '2026-02-28'
    """
    expected = "an ISO date such as 2026-07-20, 2026-07 or 2026"
    if not re.fullmatch(r"\d{4}(-\d{2}(-\d{2})?)?", text):
        raise InputError(where, text, expected)
    parts = [int(part) for part in text.split("-")]
    year, month = parts[0], parts[1] if len(parts) > 1 else 12
    try:
        return date(year, month, parts[2] if len(parts) > 2 else calendar.monthrange(year, month)[1])
    except (ValueError, calendar.IllegalMonthError):
        raise InputError(where, text, expected) from None


def _place(path: Path, row: int, column: str) -> str:
    return f"{path.name} row {row}, column {column}"


def read_csv_strict(path: Path, columns: Iterable[str]) -> list[dict[str, str]]:
    """Read a UTF-8 CSV whose header is exactly ``columns`` into a list of text rows.

    Raises
    ------
    InputError
        If the file is missing, empty, not UTF-8, starts with a byte-order mark, has another header,
        a ragged row, or a control character in a cell.
    """
    expected = list(columns)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(
            str(path), Words(error.strerror), "a readable file (the tables lie in data/ beside the package)"
        ) from None
    if raw.startswith(b"\xef\xbb\xbf"):
        raise InputError(f"{path.name} row 1", Words("a byte-order mark"), "plain UTF-8")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        row = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{path.name} row {row}", Words(f"byte 0x{raw[error.start]:02x}"), "UTF-8 text") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[dict[str, str]] = []
    try:
        header = next(reader, None)
        if header != expected:
            raise InputError(f"{path.name} row 1", ",".join(header or []) or None, ",".join(expected))
        for cells in reader:
            if len(cells) != len(expected):
                raise InputError(
                    f"{path.name} row {reader.line_num}", Words(f"{len(cells)} cells"), f"{len(expected)} cells"
                )
            for column, cell in zip(expected, cells, strict=True):
                if cell != cell.strip() or not cell.isprintable():
                    raise InputError(
                        _place(path, reader.line_num, column), cell, "printable text without blanks around it"
                    )
            rows.append({**dict(zip(expected, cells, strict=True)), "row": str(reader.line_num)})
    except csv.Error as error:
        raise InputError(f"{path.name} row {reader.line_num}", Words(str(error)), "a well-formed CSV row") from None
    return rows


def _row(path: Path, schema: Schema, cells: Mapping[str, str], sources: Iterable[str]) -> dict[str, Any]:
    line = int(cells["row"])

    def place(column: str) -> str:
        return _place(path, line, column)

    record: dict[str, Any] = {}
    for key in schema.keys:
        if cells[key] == "" and key in schema.may_be_blank:
            record[key] = ""
            continue
        if not _SLUG.fullmatch(cells[key]):
            raise InputError(place(key), cells[key] or None, "a lower-case name without blanks")
        record[key] = cells[key]
    if cells["quantity"] not in schema.units:
        raise InputError(place("quantity"), cells["quantity"] or None, " or ".join(schema.units))
    unit, units = cells["unit"], schema.units[cells["quantity"]].split()
    if unit not in units or unit not in DATA_UNITS:
        raise InputError(place("unit"), unit or None, f"{' or '.join(units)} for {cells['quantity']}")
    value = not_negative.parse(place("value"), cells["value"])
    low, high = (not_negative.parse(place(bound), cells[bound]) if cells[bound] else None for bound in ("low", "high"))
    for bound, fits in (("low", low is None or low <= value), ("high", high is None or high >= value)):
        if not fits:
            raise InputError(place(bound), cells[bound], f"a bound around the value {cells['value']}")
    if cells["source"] not in sources:
        raise InputError(place("source"), cells["source"] or None, "a key of sources.csv")
    if cells["status"] not in STATUSES:
        raise InputError(place("status"), cells["status"] or None, " or ".join(STATUSES))
    if cells["locator"] == "":
        raise InputError(place("locator"), None, "the table, page or section of the source")
    return record | {
        "quantity": cells["quantity"],
        "value": value,
        "low": low,
        "high": high,
        "unit": unit,
        "as_of": parse_date(place("as_of"), cells["as_of"]),
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


def nearest(wanted: str, names: Iterable[str], count: int = 3) -> str:
    """List the names that look most like the wanted one.

    Examples
    --------
    >>> nearest("p5.48xlrage", ["p5.48xlarge", "a3-highgpu-8g"], count=1)
    'p5.48xlarge'
    """
    known = sorted(str(name) for name in names)
    close = difflib.get_close_matches(wanted.lower(), known, n=count, cutoff=0.3) or known[:count]
    return ", ".join(close)


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
                raise InputError(_place(path, line, column), None, "text")
        if cells["key"] in keys:
            raise InputError(_place(path, line, "key"), cells["key"], "a key that no other row has")
        keys.add(cells["key"])
        for column in ("published", "read"):
            if cells[column] != "undated":
                parse_date(_place(path, line, column), cells[column])
    return pd.DataFrame.from_records(rows, columns=[*SOURCE_COLUMNS]).set_index("key")


@cache
def all_rows(name: str) -> pd.DataFrame:
    """Read one shipped table with all its dates (validated once per process)."""
    return load(DATA / f"{name}.csv", SCHEMAS[name], sources().index)


def table(name: str, *, as_of: date) -> Table:
    """Read one shipped table as of a day: of each item the newest row on or before it.

    Parameters
    ----------
    name : str
        A key of ``SCHEMAS``.
    as_of : date
        The day. An item whose first row is later is absent, and so is an offer withdrawn by then.

    Returns
    -------
    Table
    """
    return as_of_day(all_rows(name), SCHEMAS[name], as_of)


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


def node_prices(*, as_of: date) -> Table:
    """Prices of whole nodes, by provider, instance, region and term. [USD/node_hour]."""
    return table("node_prices", as_of=as_of)


def api_prices(*, as_of: date) -> Table:
    """Prices of tokens at APIs, by seller, model, token kind and tier. [USD/Mtok]."""
    return table("api_prices", as_of=as_of)


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


def price(row: pd.Series) -> Price:
    """Make a record of one price row."""
    return Price(**{column: row[column] for column in (f.name for f in fields(Price))})


def node(instance: str, *, as_of: date, provider: str | None = None) -> Node:
    """Read one node: which accelerators, how many, and every price known on a day.

    Parameters
    ----------
    instance : str
        The name on the price list in lower case, for example ``p5.48xlarge``.
    as_of : date
        The day.
    provider : str, optional
        Needed where several providers use the same name.

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
    offers = node_prices(as_of=as_of).rows
    offers = offers[(offers["provider"] == row["provider"]) & (offers["instance"] == instance)]
    return Node(
        provider=row["provider"],
        instance=instance,
        accelerator=accelerator(row["accelerator"], as_of=as_of),
        accelerator_count=int(row["value"]),
        prices={(offer["region"], offer["term"]): price(offer) for _, offer in offers.iterrows()},
    )


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
            ("model", _SLUG.fullmatch(cells["model"]), "a lower-case name without blanks"),
            ("model", cells["model"] not in models, "a model that no other row has"),
            ("class", cells["class"] in MODEL_CLASSES, " or ".join(MODEL_CLASSES)),
            ("open_weights", cells["open_weights"] in weights, " or ".join(weights)),
            ("source", cells["source"] in known, "a key of sources.csv"),
            ("locator", cells["locator"], "the table, page or section of the source"),
        ):
            if not fits:
                raise InputError(_place(path, int(cells["row"]), column), cells[column] or None, expected)
        models[cells["model"]] = ApiModel(
            model=cells["model"],
            model_class=cells["class"],
            open_weights=weights[cells["open_weights"]],
            source=cells["source"],
            locator=cells["locator"],
            note=cells["note"],
        )
    return models


def output_prices(*, as_of: date, classes: Iterable[str] = MODEL_CLASSES) -> pd.DataFrame:
    """Return the standard prices of output tokens on a day, with the class of each model.

    Parameters
    ----------
    as_of : date
        The day.
    classes : iterable of str
        Which classes of models (`specs.MODEL_CLASSES`).

    Returns
    -------
    DataFrame
        Rows of api_prices with a column ``class``.

    Examples
    --------
    >>> sorted(output_prices(as_of=SNAPSHOT, classes=["diffusion"])["model"].unique())[0]
    'mercury-2'
    """
    rows = api_prices(as_of=as_of).where(token_kind="output", tier="standard", quantity="price")
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
    return bands.sort_values("median").reset_index()


def with_urls(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the address of each row's source in a column ``url``, so that a page can link to it."""
    return rows.assign(url=sources().loc[rows["source"], "url"].to_numpy())


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
