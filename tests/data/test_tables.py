"""The readers: what they select, and that each kind of damage is refused in one line that says where."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pandas as pd
import pytest

from analysis.inputs import InputError
from analysis.reference import tables

SCHEMA = tables.SCHEMAS["node_prices"]
HEADER = ",".join(SCHEMA.columns)
GOOD = "aws,p5.48xlarge,us-east-1,on-demand,price,55.04,,,USD/node_hour,2025-07-03,list,page 1,listed,"


def load(tmp_path: Path, *rows: str, header: str = HEADER) -> pd.DataFrame:
    path = tmp_path / "node_prices.csv"
    path.write_bytes("\n".join((header, *rows, "")).encode("utf-8"))
    return tables.load(path, SCHEMA, ["list"])


@pytest.mark.parametrize(
    ("text", "day"),
    [("2026-07-20", date(2026, 7, 20)), ("2026-02", date(2026, 2, 28)), ("2024-02", date(2024, 2, 29)),
     ("2025", date(2025, 12, 31))],
)  # fmt: skip
def test_a_month_or_year_means_its_last_day(text: str, day: date) -> None:
    assert tables.parse_date("as_of", text) == day


@pytest.mark.parametrize("text", ["", "2026-13", "2026-02-30", "20 July 2026", "2026-7-20", "26", "2026-07-20 "])
def test_other_dates_are_refused_with_their_text(text: str) -> None:
    with pytest.raises(InputError, match=r"as_of: got .*expected an ISO date"):
        tables.parse_date("as_of", text)


def test_a_good_row_is_read_with_its_line_number(tmp_path: Path) -> None:
    (row,) = load(tmp_path, GOOD).to_dict("records")
    assert (row["value"], row["as_of"], row["row"]) == (55.04, date(2025, 7, 3), 2)


DAMAGES = {
    "wrong unit": (("USD/node_hour", "USD/hour"), ["row 2, column unit", "'USD/hour'"]),
    "text for a number": (("55.04", "about 55"), ["row 2, column value", "'about 55'"]),
    "decimal comma": (("55.04,,,", '"55,04",,,'), ["row 2, column value", "'55,04'"]),
    "blank value": ((",55.04,", ",,"), ["row 2, column value", "nothing"]),
    "negative": (("55.04", "-55.04"), ["row 2, column value", "-55.04"]),
    "nan": (("55.04", "nan"), ["row 2, column value", "nan"]),
    "infinite": (("55.04", "1e999"), ["row 2, column value", "inf"]),
    "unknown source": ((",list,", ",lists,"), ["row 2, column source", "'lists'"]),
    "blank source": ((",list,", ",,"), ["row 2, column source", "nothing"]),
    "blank locator": ((",page 1,", ",,"), ["row 2, column locator", "nothing"]),
    "unknown status": (("listed", "guessed"), ["row 2, column status", "'guessed'"]),
    "unknown quantity": ((",price,", ",cost,"), ["row 2, column quantity", "'cost'"]),
    "blank key": (("on-demand", ""), ["row 2, column term", "nothing"]),
    "upper case key": (("aws", "AWS"), ["row 2, column provider", "'AWS'"]),
    "bad date": (("2025-07-03", "3 July 2025"), ["row 2, column as_of", "'3 July 2025'"]),
    "low above value": (("55.04,,", "55.04,60,"), ["row 2, column low", "60"]),
    "high below value": (("55.04,,,", "55.04,,50,"), ["row 2, column high", "50"]),
    "ragged row": (("listed,", "listed"), ["row 2", "13 cells", "14 cells"]),
    "control character": (("page 1", "page\x071"), ["row 2, column locator", "page"]),
    "blanks around a cell": (("page 1", " page 1"), ["row 2, column locator", "' page 1'"]),
}


@pytest.mark.parametrize(("change", "named"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_row_is_refused_in_one_line(tmp_path: Path, change: tuple[str, str], named: list[str]) -> None:
    damaged = GOOD.replace(*change)
    assert damaged != GOOD
    with pytest.raises(InputError) as refusal:
        load(tmp_path, damaged)
    message = str(refusal.value)
    assert "\n" not in message
    for part in ("node_prices.csv", *named):
        assert part in message


def test_a_second_row_for_the_same_item_and_day_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"row 3.*second row for aws p5.48xlarge.*first is row 2"):
        load(tmp_path, GOOD, GOOD.replace("55.04", "60"))


def test_the_same_item_on_another_day_is_another_observation(tmp_path: Path) -> None:
    assert len(load(tmp_path, GOOD, GOOD.replace("2025-07-03", "2025-07-04"))) == 2


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (b"\xef\xbb\xbf" + HEADER.encode(), "row 1: got a byte-order mark"),
        (f"{HEADER}\n{GOOD}caf".encode() + b"\xe9\n", "row 2: got byte 0xe9, expected UTF-8"),
        (HEADER.replace("value", "amount").encode(), "row 1"),
        (b"", "row 1: got nothing"),
        (f'{HEADER}\n"{GOOD}'.encode(), "row 2"),
        (f"{HEADER}\n{GOOD}a\0b\n".encode(), "row 2"),
    ],
    ids=["byte-order mark", "not UTF-8", "another header", "empty", "open quote", "zero byte"],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, raw: bytes, named: str) -> None:
    path = tmp_path / "node_prices.csv"
    path.write_bytes(raw)
    with pytest.raises(InputError) as refusal:
        tables.load(path, SCHEMA, ["list"])
    assert named in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_missing_file_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.csv: got No such file"):
        tables.load(tmp_path / "absent.csv", SCHEMA, [])


def test_an_appended_newer_price_leaves_the_snapshot_and_shows_later(tmp_path: Path) -> None:
    """The book reads as of its snapshot, so a table that grows does not move it."""
    newer = GOOD.replace("55.04", "41").replace("2025-07-03", "2026-08-01")
    before, after = load(tmp_path, GOOD), load(tmp_path, GOOD, newer)
    at_snapshot = [tables.as_of_day(rows, SCHEMA, tables.SNAPSHOT).rows for rows in (before, after)]
    pd.testing.assert_frame_equal(*at_snapshot)
    assert tables.as_of_day(after, SCHEMA, tables.NEWEST).one(instance="p5.48xlarge")["value"] == 41


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    newer = GOOD.replace("55.04", "41").replace("2025-07-03", "2026-01-01")
    for rows in ((GOOD, newer), (newer, GOOD)):
        assert tables.as_of_day(load(tmp_path, *rows), SCHEMA, tables.SNAPSHOT).one(provider="aws")["value"] == 41


def test_an_item_is_absent_before_its_first_row(tmp_path: Path) -> None:
    table = tables.as_of_day(load(tmp_path, GOOD), SCHEMA, date(2025, 7, 2))
    with pytest.raises(InputError, match=r"p5.48xlarge"):
        table.where(instance="p5.48xlarge")


@pytest.mark.parametrize(
    ("day", "values"),
    [("2025-12-31", [55.04]), ("2026-01-01", []), ("2026-02-28", []), ("2026-03-01", [60.0])],
)
def test_a_withdrawn_offer_is_absent_until_it_comes_back(tmp_path: Path, day: str, values: list[float]) -> None:
    ended = GOOD.replace("price,55.04", "withdrawn,1").replace("USD/node_hour", "1").replace("2025-07-03", "2026-01-01")
    back = GOOD.replace("55.04", "60").replace("2025-07-03", "2026-03-01")
    other = GOOD.replace("us-east-1", "us-west-2")
    rows = tables.as_of_day(load(tmp_path, GOOD, ended, back, other), SCHEMA, date.fromisoformat(day)).rows
    assert rows[rows["region"] == "us-east-1"]["value"].tolist() == values
    assert rows[rows["region"] == "us-west-2"]["value"].tolist() == [55.04]


def test_one_asks_for_the_column_that_tells_rows_apart(tmp_path: Path) -> None:
    table = tables.as_of_day(load(tmp_path, GOOD, GOOD.replace("us-east-1", "us-west-2")), SCHEMA, tables.SNAPSHOT)
    with pytest.raises(InputError, match="2 differ in region"):
        table.one(instance="p5.48xlarge")
    assert table.one(region="us-west-2")["value"] == 55.04


def test_an_unknown_name_lists_the_nearest() -> None:
    with pytest.raises(InputError, match=r"'h100-smx'.*h100-sxm"):
        tables.accelerator("h100-smx", as_of=tables.SNAPSHOT)
    with pytest.raises(InputError, match=r"'p5.48xlrage'.*p5.48xlarge"):
        tables.node("p5.48xlrage", as_of=tables.SNAPSHOT)
    with pytest.raises(InputError, match=r"'fp8'.*a100-sxm-80gb computes in: bf16 or int8"):
        tables.accelerator("a100-sxm-80gb", as_of=tables.SNAPSHOT).peak("fp8")


def test_nearest_falls_back_to_the_first_names() -> None:
    assert tables.nearest("zzz", ["b", "a"]) == "a, b"


MODEL = "gpt-oss-120b,commodity,yes,list,model card,"


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (MODEL.replace("commodity", "cheap"), "row 2, column class: got 'cheap'"),
        (MODEL.replace("yes", "maybe"), "row 2, column open_weights: got 'maybe'"),
        (MODEL.replace("list", "lists"), "row 2, column source: got 'lists'"),
        (MODEL.replace("model card", ""), "row 2, column locator: got nothing"),
        (MODEL.replace("gpt-oss-120b", "GPT OSS"), "row 2, column model: got 'GPT OSS'"),
        (f"{MODEL}\n{MODEL}", "row 3, column model: got 'gpt-oss-120b'"),
    ],
)
def test_a_damaged_model_row_is_refused(tmp_path: Path, row: str, named: str) -> None:
    path = tmp_path / "models_at_apis.csv"
    path.write_text(",".join(tables.MODEL_COLUMNS) + "\n" + row + "\n", encoding="utf-8")
    with pytest.raises(InputError) as refusal:
        tables.load_models(path, ["list"])
    assert named in str(refusal.value)


SOURCE = "radar2026,Title,Publisher,https://example.org,2026-07-20,2026-07-21,terms"


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([SOURCE.replace("Publisher", "")], "row 2, column publisher: got nothing"),
        ([SOURCE, SOURCE], "row 3, column key: got 'radar2026'"),
        ([SOURCE.replace("2026-07-21", "July")], "row 2, column read: got 'July'"),
    ],
)
def test_a_damaged_source_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[str], named: str
) -> None:
    (tmp_path / "sources.csv").write_text("\n".join((",".join(tables.SOURCE_COLUMNS), *rows, "")), encoding="utf-8")
    monkeypatch.setattr(tables, "DATA", tmp_path)
    tables.sources.cache_clear()
    try:
        with pytest.raises(InputError) as refusal:
            tables.sources()
    finally:
        tables.sources.cache_clear()
    assert named in str(refusal.value)
