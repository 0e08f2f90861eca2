"""Own prices: what a file may say, what is refused or flagged and why, and how they lie over the book."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.inputs import InputError
from analysis.reference import own_prices, rows, tables
from analysis.reference.own_prices import BOOK, OWN_SOURCE

HEADER = "instance,term,region,model,token_kind,tier,hardware,quantity,value,unit,as_of"


def written(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "ours.csv"
    path.write_text("\n".join((header, *lines, "")), encoding="utf-8")
    return path


NODE = "p5.48xlarge,,,,,,,price,28,USD/node_hour,"
OUTPUT = ",,,gpt-5,output,standard,,price,7,USD/Mtok,"


def test_a_missing_key_column_matches_every_row_of_the_item(tmp_path: Path) -> None:
    """28 dollars for every p5.48xlarge: each region and each term that the book has at any date."""
    (row,) = tables.read_prices(written(tmp_path, NODE)).rows
    book = tables.all_rows("node_prices").query("instance == 'p5.48xlarge'")
    assert row.matches == len(book.drop_duplicates(["region", "term"])) > 10
    prices = tables.OwnPrices("x", (row,))
    ours = tables.node_prices(as_of=tables.SNAPSHOT, prices=prices).where(instance="p5.48xlarge")
    assert set(ours["value"]) == {28.0}
    assert set(ours["source"]) == {OWN_SOURCE}
    assert ours["low"].isna().all()


def test_columns_that_are_left_out_or_reordered_are_no_error(tmp_path: Path) -> None:
    path = written(tmp_path, "28,USD/node_hour,price,p5.48xlarge", header="value,unit,quantity,instance")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert tables.read_prices(path).rows[0].value == 28


def test_nothing_else_moves(tmp_path: Path) -> None:
    prices = tables.read_prices(written(tmp_path, NODE))
    for name in tables.SCHEMAS:
        book, ours = (tables.table(name, as_of=tables.SNAPSHOT, prices=p).rows for p in (BOOK, prices))
        touched = (ours["source"] == OWN_SOURCE).to_numpy()
        assert book[~touched].equals(ours[~touched])
        assert touched.any() == (name == "node_prices")


def test_the_price_with_more_keys_wins_then_the_newer(tmp_path: Path) -> None:
    old, new = OUTPUT + "2026-01-01", OUTPUT.replace(",7,", ",6,") + "2026-11-01"
    everywhere = OUTPUT.replace("output,standard", "output,").replace(",7,", ",9,")
    prices = tables.read_prices(written(tmp_path, new, everywhere, old))
    gpt = {"model": "gpt-5", "token_kind": "output"}
    for day, value in ((tables.SNAPSHOT, 7), (tables.NEWEST, 6)):
        ours = tables.api_prices(as_of=day, prices=prices)
        assert ours.one(**gpt, tier="standard", seller="openai")["value"] == value
    assert set(ours.where(**gpt, tier="batch")["value"]) == {9}


def test_a_price_of_a_later_day_waits_for_it_and_a_missing_item_is_not_brought_back(tmp_path: Path) -> None:
    prices = tables.read_prices(written(tmp_path, OUTPUT + "2026-11-01", OUTPUT.replace("gpt-5", "gpt-6-sol")))
    snapshot = tables.api_prices(as_of=tables.SNAPSHOT, prices=prices).rows
    assert OWN_SOURCE not in set(snapshot["source"])
    newest = tables.api_prices(as_of=tables.NEWEST, prices=prices)
    assert newest.one(model="gpt-5", token_kind="output", tier="standard", seller="openai")["value"] == 7


def test_zero_is_a_price(tmp_path: Path) -> None:
    found = tables.check_prices(written(tmp_path, NODE.replace(",28,", ",0,")))
    assert found.prices.rows[0].value == 0
    assert [reason for _, reason in found.flagged] == ["the price is 0: taken as free, not as missing"]


def test_a_foreign_currency_is_converted_with_the_rate_of_the_file(tmp_path: Path) -> None:
    euro = NODE.replace(",28,USD", ",30,EUR")
    prices = tables.read_prices(written(tmp_path, euro, ",,,,,,,exchange_rate,1.1,USD/EUR,"))
    assert prices.rows[0].value == pytest.approx(33)
    assert prices.rows[0].unit == "USD/node_hour"


def test_every_exchange_rate_is_told_and_one_that_converts_nothing_is_flagged(tmp_path: Path) -> None:
    rates = ",,,,,,,exchange_rate,1.1,USD/EUR,", ",,,,,,,exchange_rate,0.0067,USD/JPY,"
    found = tables.check_prices(written(tmp_path, NODE.replace(",28,USD", ",30,EUR"), *rates))
    assert found.rates == ((3, "EUR", 1.1), (4, "JPY", 0.0067))
    assert (4, "converts nothing: no price is in JPY") in found.flagged
    assert 3 not in {row for row, _ in found.flagged}
    assert own_prices.record(found)["rates"][0] == {"row": 3, "currency": "EUR", "usd": 1.1}


def test_what_it_costs_to_own_is_a_price_too(tmp_path: Path) -> None:
    prices = tables.read_prices(
        written(tmp_path, ",,,,,,,electricity,0.25,USD/kWh,", ",,,,,,hgx-h100,purchase,300000,USD,")
    )
    ours, theirs = (tables.ownership("hgx-h100", as_of=tables.SNAPSHOT, prices=p) for p in (prices, BOOK))
    assert (ours.electricity_usd_per_kwh, ours.purchase_usd) == (0.25, 300_000)
    assert ours.life_years == theirs.life_years


REFUSED = {
    "a price absent from the book": (
        NODE.replace("p5.48xlarge", "p5.48xlarg"),
        "row 2, column instance: got 'p5.48xlarg', expected one in node_prices: p5.48xlarge",
    ),
    "a region absent from the book": (
        NODE.replace("p5.48xlarge,,,", "p5.48xlarge,,ap-southeast-1,"),
        "row 2, column region: got 'ap-southeast-1', expected one in node_prices",
    ),
    "a wrong unit": (
        NODE.replace("node_hour", "GPU_hour"),
        "row 2, column unit: got 'USD/GPU_hour', expected USD/node_hour or USD/Mtok for price",
    ),
    "a negative value": (
        NODE.replace(",28,", ",-28,"),
        "row 2, column value: got -28.0, expected a number, 0 or above",
    ),
    "no value": (NODE.replace(",28,", ",,"), "row 2, column value: got nothing"),
    "not a number": (NODE.replace(",28,", ",nan,"), "row 2, column value: got 'nan'"),
    "an absurd price of a node": (NODE.replace(",28,", ",28000,"), "row 2, column value: got '28000', expected within"),
    "a price per token": (OUTPUT.replace(",7,", ",0.000007,"), "row 2, column value: got '0.000007', expected within"),
    "a currency without a rate": (
        NODE.replace("USD", "EUR"),
        "row 2, column unit: got 'EUR/node_hour', expected USD, or a row of the quantity exchange_rate in USD/EUR",
    ),
    "a future date": (NODE + "2999-01-01", "row 2, column as_of: got '2999-01-01', expected a day up to"),
    "no date at all": (NODE + "soon", "row 2, column as_of: got 'soon', expected an ISO date"),
    "an unknown quantity": (NODE.replace("price", "cost"), "row 2, column quantity: got 'cost', expected price or"),
    "a withdrawal": (
        NODE.replace("price,28,USD/node_hour", "withdrawn,1,1"),
        "row 2, column quantity: got 'withdrawn'",
    ),
    "no item": (NODE.replace("p5.48xlarge", ""), "row 2, column instance: got nothing, expected the instance that"),
    "a key of another table": (
        OUTPUT.replace(",,,gpt-5", "p5.48xlarge,,,gpt-5"),
        "row 2, column instance: got 'p5.48xlarge', expected nothing: api_prices has seller, model, token_kind, tier",
    ),
    "markup in a name": (
        OUTPUT.replace("gpt-5", "<script>alert(1)</script>"),
        "row 2, column model: got '<script>alert(1)</script>', expected a lower-case name without blanks",
    ),
    "a control character": (NODE.replace("p5", "p\x1b5"), "row 2, column instance"),
    "a share above 1": (
        ",,,,,,,power_share,1.2,1,",
        "row 2, column value: got 1.2, expected a fraction above 0 and at",
    ),
    "a ragged row": (NODE + ",", "row 2: got 12 cells, expected 11 cells"),
}


@pytest.mark.parametrize(("line", "message"), REFUSED.values(), ids=REFUSED)
def test_a_bad_row_is_refused_in_one_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError) as refusal:
        tables.read_prices(written(tmp_path, line))
    assert str(refusal.value).startswith(f"ours.csv {message}")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("header", "lines", "message"),
    [
        (HEADER, [], "ours.csv: got no rows, expected at least one price"),
        ("", [], "ours.csv row 1: got nothing, expected quantity,value,unit"),
        (
            "instance,quantity,value",
            ["p5.48xlarge,price,28"],
            "ours.csv row 1: got 'instance,quantity,value', expected",
        ),
        (HEADER + ",colour", [NODE + ",red"], "ours.csv row 1: got 'colour', expected each column once, of provider"),
        (HEADER + ",unit", [NODE + ",USD"], "ours.csv row 1: got 'unit', expected each column once"),
    ],
    ids=["no rows", "an empty file", "no unit", "an unknown column", "a column twice"],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, header: str, lines: list[str], message: str) -> None:
    with pytest.raises(InputError) as refusal:
        tables.read_prices(written(tmp_path, *lines, header=header))
    assert str(refusal.value).startswith(message)


def test_the_same_price_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"row 3: got a second price for p5.48xlarge, expected one \(the first is row"):
        tables.read_prices(written(tmp_path, NODE, NODE.replace(",28,", ",29,")))


def test_an_exchange_rate_twice_or_of_no_currency_is_refused(tmp_path: Path) -> None:
    rate = ",,,,,,,exchange_rate,1.1,USD/EUR,"
    for bad in ([rate, rate], [rate.replace("EUR", "euro")], [rate.replace("1.1", "0")]):
        with pytest.raises(InputError, match=r"expected USD/EUR or the like|column value: got 0"):
            tables.read_prices(written(tmp_path, *bad, NODE))


def test_a_check_goes_on_after_a_refusal(tmp_path: Path) -> None:
    found = tables.check_prices(written(tmp_path, NODE.replace("28", "x"), OUTPUT, NODE.replace("USD", "SGD")))
    assert [row for row, _ in found.refused] == [2, 4]
    assert [row.row for row in found.prices.rows] == [3]
    told = own_prices.record(found)
    assert [row["row"] for row in told["refused"]] == [2, 4]
    assert told["rows"][0]["keys"] == {"model": "gpt-5", "token_kind": "output", "tier": "standard"}


FLAGGED = {
    "a price per accelerator": (
        NODE.replace(",28,", ",6.88,"),
        "looks like the price of one accelerator: times 8",
    ),
    "far below": (OUTPUT.replace(",7,", ",0.5,"), "more than 5 times off what the book has: "),
    "no token kind": (OUTPUT.replace(",output,", ",,"), "no token_kind: one price for input, cached and output tokens"),
}


@pytest.mark.parametrize(("line", "reason"), FLAGGED.values(), ids=FLAGGED)
def test_an_odd_row_is_used_and_flagged(tmp_path: Path, line: str, reason: str) -> None:
    found = tables.check_prices(written(tmp_path, line))
    assert len(found.prices.rows) == 1
    assert not found.refused
    assert any(row == 2 and said.startswith(reason) for row, said in found.flagged), found.flagged


@pytest.mark.parametrize("line", [NODE, OUTPUT, NODE.replace(",28,", ",55.04,")])
def test_a_usual_price_is_not_flagged(tmp_path: Path, line: str) -> None:
    assert tables.check_prices(written(tmp_path, line)).flagged == ()


def test_the_environment_names_the_file_for_the_whole_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, NODE)
    monkeypatch.setenv(tables.PRICES_VARIABLE, str(path))
    node = tables.node("p5.48xlarge", as_of=tables.SNAPSHOT)
    assert node.price(term="plan-1yr").value == 28
    assert OWN_SOURCE in tables.known_sources().index
    assert OWN_SOURCE not in tables.known_sources(prices=BOOK).index
    assert tables.node("p5.48xlarge", as_of=tables.SNAPSHOT, prices=BOOK).price(term="plan-1yr").value == 33


@pytest.mark.parametrize("named", ["ours.csv", "/nowhere/ours.csv", "/"])
def test_the_environment_must_name_an_absolute_path(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv(tables.PRICES_VARIABLE, named)
    with pytest.raises(InputError, match=rf"ANALYSIS_PRICES: got '{named}', expected the absolute path"):
        tables.node_prices(as_of=tables.SNAPSHOT)


def test_a_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    path = written(tmp_path, NODE)
    monkeypatch.setenv(tables.PRICES_VARIABLE, str(path))
    assert tables.prices_in_force().rows[0].value == 28
    written(tmp_path, NODE.replace(",28,", ",29,"))
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1_000_000_000))
    assert tables.prices_in_force().rows[0].value == 29


def test_text_that_looks_like_a_formula_stays_text_in_an_export(tmp_path: Path) -> None:
    """A note may begin with a sign; a spreadsheet must not run it."""
    path = written(tmp_path, NODE + ",=HYPERLINK(1)", header=HEADER + ",note")
    table = tables.node_prices(as_of=tables.SNAPSHOT, prices=tables.read_prices(path))
    text = rows.csv_text(table.where(instance="p5.48xlarge"))
    assert "'=HYPERLINK(1)" in text
    assert ",=HYPERLINK" not in text
    for start in "=+-@":
        assert rows.csv_text(tables.pd.DataFrame({"a": [f"{start}1"]})) == f"a\n'{start}1\n"


def test_the_example_in_the_readme_is_accepted(tmp_path: Path) -> None:
    example = (tables.DATA / "README.md").read_text(encoding="utf-8").split("```\n")[1]
    path = tmp_path / "example.csv"
    path.write_text(example, encoding="utf-8")
    found = tables.check_prices(path)
    assert not found.refused
    assert len(found.prices.rows) == 3


FEED_HEADER = "seller,model,token_kind,tier,quantity,value,unit,source"


@pytest.mark.parametrize("unknown", ["nobody,gpt-5,output,standard", "openai,gpt-0,output,standard"])
def test_a_feed_may_price_what_the_book_lacks_and_a_hand_may_not(tmp_path: Path, unknown: str) -> None:
    known = "openai,gpt-5,output,standard,price,9,USD/Mtok,"
    for source, used in (("litellm", True), ("", False), ("our-contract", False)):
        row = f"{unknown},price,9,USD/Mtok,{source}"
        found = tables.check_prices(written(tmp_path, row, known + source, header=FEED_HEADER))
        assert [own.row for own in found.prices.rows] == [3]
        assert found.unused == ((2,) if used else ())
        assert [line for line, _ in found.refused] == ([] if used else [2])


def test_a_known_name_in_an_unknown_combination_of_a_feed_is_unused(tmp_path: Path) -> None:
    """Both names occur in the table, and never together."""
    row = "groq,gpt-5,output,standard,price,9,USD/Mtok,litellm"
    assert tables.check_prices(written(tmp_path, row, header=FEED_HEADER)).unused == (2,)


def test_the_shipped_example_can_be_used_and_nothing_in_it_is_odd() -> None:
    found = tables.check_prices(tables.DATA / "examples" / "own_prices.csv")
    assert (len(found.prices.rows), found.refused, found.flagged) == (7, (), ())


def test_whoever_changes_a_frame_changes_no_table(tmp_path: Path) -> None:
    """Tables with prices over them are kept, and handed out as copies."""
    prices = tables.read_prices(written(tmp_path, NODE))
    for own in (prices, BOOK):
        first = tables.node_prices(as_of=tables.SNAPSHOT, prices=own)
        first.rows["value"] = 0.0
        assert (tables.node_prices(as_of=tables.SNAPSHOT, prices=own).rows["value"] > 0).any()


def test_many_prices_do_not_push_each_other_out_wrongly(tmp_path: Path) -> None:
    for value in range(20, 20 + 70):
        prices = tables.read_prices(written(tmp_path, NODE.replace(",28,", f",{value},")))
        ours = tables.node_prices(as_of=tables.SNAPSHOT, prices=prices).where(instance="p5.48xlarge")
        assert set(ours["value"]) == {value}


@pytest.mark.parametrize(
    ("quantity", "value", "unit", "expected"),
    [
        ("interest", "10", "1/year", "a fraction from 0 to 1: 10 % a year is 0.1"),
        ("upkeep", "5", "1/year", "a fraction from 0 to 1: 5 % a year is 0.05"),
        ("pue", "130", "1", "a number from 1 to 3"),
        ("pue", "0.9", "1", "a number from 1 to 3"),
        ("engineers", "144570", "1", "a number from 0 to 100"),
        ("life", "48", "year", "a number of years above 0 and at most 30"),
        ("residual", "25", "1", "a fraction from 0 to 1"),
    ],
)
def test_a_pure_number_out_of_its_range_is_a_slip(
    tmp_path: Path, quantity: str, value: str, unit: str, expected: str
) -> None:
    with pytest.raises(InputError, match=rf"column value: got .*, expected {expected}"):
        tables.read_prices(written(tmp_path, f",,,,,,,{quantity},{value},{unit},"))


def test_bounds_have_the_range_of_their_value(tmp_path: Path) -> None:
    path = written(tmp_path, "pue,1.3,1.1,16,1", header="quantity,value,low,high,unit")
    with pytest.raises(InputError, match="column high: got 16"):
        tables.read_prices(path)
