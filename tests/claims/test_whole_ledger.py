"""The ledger as a page, as files and as a command: one and the same; and what moves when prices do."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from analysis.cli import cli
from analysis.evidence.claims import changed, ledger
from analysis.evidence.claims.registry import REGISTRY
from analysis.evidence.claims.verdict import evaluate
from analysis.inputs import InputError
from analysis.present import display, sphinx_extension
from analysis.publish import notebooks
from analysis.reference import tables
from analysis.reference.tables import NEWEST, SNAPSHOT


@pytest.fixture(scope="module")
def found() -> list[Any]:
    return ledger.verdicts(as_of=SNAPSHOT)


def stored(stem: str, kind: str) -> list[Any]:
    """Outputs of a kind in a stored chapter, in their order."""
    notebook = notebooks.from_text((notebooks.BOOK / f"{stem}.ipynb").read_text())
    outputs = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    return [out["data"][kind] for out in outputs if kind in out.get("data", {})]


@pytest.mark.parametrize("as_of", [SNAPSHOT, NEWEST], ids=["snapshot", "newest"])
def test_the_downloads_are_what_the_command_prints(as_of: Any) -> None:
    """Both are records of the same verdicts; the files have six significant digits, the command has all."""
    done = CliRunner().invoke(cli, ["claims", "--as-of", as_of.isoformat(), "--json"], catch_exceptions=False)
    (offered,) = stored("ledger", display.DOWNLOAD)
    of_day = [row for row in offered["rows"] if row["as_of"] == as_of.isoformat()]
    assert of_day == display.rounded(json.loads(done.stdout))


def test_the_files_hold_what_the_page_stores() -> None:
    (offered,) = stored("ledger", display.DOWNLOAD)
    files = sphinx_extension.download_files(offered)
    assert set(files) == {"ledger.json", "ledger.csv"}
    assert json.loads(files["ledger.json"]) == offered["rows"]
    cells = list(csv.DictReader(io.StringIO(files["ledger.csv"])))
    assert [row["id"] for row in cells] == [row["id"] for row in offered["rows"]]
    for row, kept in zip(cells, offered["rows"], strict=True):
        assert row["verdict"] == kept["verdict"]
        assert row["share_true"] == ("" if kept["share_true"] is None else str(kept["share_true"]))
        assert json.loads(row["sources"]) == kept["sources"]


def test_ledger_title_page_and_command_count_alike(found: list[Any]) -> None:
    """The bars on the title page, those of the ledger, and the verdicts are one count."""
    by_kind = ledger.tally_by_kind(found)
    assert by_kind.groupby("verdict")["statements"].sum().to_dict() == Counter(v.verdict for v in found)
    for page, name in (("intro", "fig-short-answer"), ("ledger", "fig-tally")):
        (bars,) = [
            rows
            for spec in stored(page, display.VEGA_LITE)
            for rows in spec["datasets"].values()
            if spec["usermeta"]["name"] == name
        ]
        assert [{key: row[key] for key in by_kind.columns} for row in bars] == by_kind.to_dict("records")
    assert sum(int(part.split()[0]) for part in ledger.tally_words(found).split(", ")) == len(REGISTRY)


def test_every_statement_has_its_permanent_row(found: list[Any]) -> None:
    (page, *_) = [text for text in stored("ledger", "text/html") if "data-choices" in text]
    for claim_id, claim in REGISTRY.items():
        assert f'<tr id="{ledger.anchor(claim_id)}"' in page
        assert f'href="{claim.chapter}.html#{claim.anchor}"' in page


def test_both_days_stand_in_a_row_and_only_a_difference_is_told(found: list[Any]) -> None:
    newest = ledger.verdicts(as_of=NEWEST)
    whole = ledger.whole(found, newest).set_index("id")
    later = {verdict.claim.id: verdict for verdict in newest}
    for verdict in found:
        said = whole.loc[verdict.claim.id, "at_newest"]
        if verdict.verdict != later[verdict.claim.id].verdict:
            assert said.startswith(later[verdict.claim.id].verdict)
    assert whole.loc["C36", "at_newest"] == "the same"
    assert whole.loc["C43", "at_newest"] != "the same"
    with pytest.raises(InputError, match="the statements of the article's day"):
        ledger.whole(found, newest[1:])


def test_what_depends_on_the_way_to_own_is_split_by_it() -> None:
    ways = ledger.by_ownership(as_of=SNAPSHOT).set_index("id")
    assert {"C44", "C69"} <= set(ways.index)
    assert ways.loc["C44", "bought"].startswith("holds, ")
    assert ways.loc["C44", "rent"].startswith("holds if, ")


# --- what moved --------------------------------------------------------------------------------


def test_moved_verdicts_are_those_that_differ_and_each_has_a_mover() -> None:
    moved = changed.moved(SNAPSHOT, NEWEST).set_index("id")
    first, second = ({v.claim.id: v for v in ledger.verdicts(as_of=day)} for day in (SNAPSHOT, NEWEST))
    differ = {
        key
        for key in first
        if (first[key].verdict, first[key].share_true) != (second[key].verdict, second[key].share_true)
    }
    assert set(moved.index) == differ
    assert moved.loc["C43", "moved_by"] == "prices of APIs"
    assert moved.loc["C43", "share_node_prices"] == moved.loc["C43", "share_before"]
    assert moved.loc["C38", "moved_by"] == "prices of nodes"
    assert changed.moved(SNAPSHOT, SNAPSHOT).empty


def test_offers_are_new_gone_dearer_or_cheaper() -> None:
    """Capacity blocks of a p5.48xlarge rose by about a third on 22 July 2026: 31.464 to 41.528."""
    nodes = changed.price_changes("node_prices", SNAPSHOT, NEWEST)
    block = nodes[(nodes["instance"] == "p5.48xlarge") & (nodes["term"] == "capacity-block")]
    block = block[block["region"] == "us-east-1"]
    assert block["ratio"].tolist() == [pytest.approx(41.528 / 31.464)]
    assert block["change"].tolist() == ["dearer"]
    counted = changed.counted(SNAPSHOT, NEWEST).set_index("table")
    held = len(tables.node_prices(as_of=NEWEST).where(quantity="price"))
    assert counted.loc["prices of nodes", ["new", "dearer", "cheaper", "the same"]].sum() == held
    assert set(changed.price_changes("api_prices", SNAPSHOT, SNAPSHOT)["change"]) == {"the same"}


def test_a_table_read_as_of_another_day_is_so_only_inside() -> None:
    then, now = (len(tables.node_prices(as_of=day).rows) for day in (SNAPSHOT, NEWEST))
    assert then != now
    with tables.as_if({"node_prices": NEWEST}):
        assert len(tables.node_prices(as_of=SNAPSHOT).rows) == now
        assert tables.api_prices(as_of=SNAPSHOT).rows.equals(tables.table("api_prices", as_of=SNAPSHOT).rows)
    assert len(tables.node_prices(as_of=SNAPSHOT).rows) == then
    with pytest.raises(InputError, match="table: got 'no_such'"), tables.as_if({"no_such": NEWEST}):
        pass


# --- other prices ------------------------------------------------------------------------------


def scaled(path: Path, table: str, factor: float) -> Any:
    """Write a price file with every price of a table times a factor, and read it as anybody's."""
    rows = tables.table(table, as_of=NEWEST).where(quantity="price")
    keys = [*tables.SCHEMAS[table].keys, "quantity", "value", "unit"]
    rows.assign(value=rows["value"] * factor)[keys].to_csv(path, index=False)
    return tables.read_prices(path)


def moves(own: Any, ids: tuple[str, ...]) -> dict[str, tuple[Any, Any]]:
    pairs = {}
    for claim_id in ids:
        pairs[claim_id] = tuple(
            ledger.verdicts(as_of=SNAPSHOT, only=claim_id, prices=prices)[0] for prices in (ledger.BOOK, own)
        )
    return pairs


def test_nodes_at_half_price_move_what_rests_on_them(tmp_path: Path) -> None:
    """A cheaper node undercuts dear tokens more often and an engineer less; no price of an API moves."""
    found = moves(scaled(tmp_path / "half.csv", "node_prices", 0.5), ("C40", "C43", "C44", "C62", "C69"))
    assert [verdict.verdict for verdict in found["C40"]] == ["unsupported", "contradicted"]
    assert found["C44"][1].share_true > found["C44"][0].share_true + 0.02
    assert found["C62"][1].share_true < found["C62"][0].share_true - 0.05
    assert found["C69"][1].share_true < found["C69"][0].share_true
    assert found["C43"][0].share_true == found["C43"][1].share_true


def test_tokens_at_ten_times_the_price_move_what_rests_on_them(tmp_path: Path) -> None:
    found = moves(scaled(tmp_path / "ten.csv", "api_prices", 10.0), ("C40", "C41", "C43", "C62", "C69"))
    for claim_id in ("C41", "C43"):
        assert [verdict.verdict for verdict in found[claim_id]] == ["cited", "contradicted"]
        assert "dated prices" in found[claim_id][1].decided_by
    assert found["C69"][1].share_true < found["C69"][0].share_true
    for claim_id in ("C40", "C62"):
        assert found[claim_id][0].share_true == found[claim_id][1].share_true


@pytest.mark.soak
@pytest.mark.parametrize(("table", "factor"), [("node_prices", 0.5), ("api_prices", 10.0)])
@pytest.mark.parametrize("as_of", [SNAPSHOT, NEWEST], ids=["snapshot", "newest"])
def test_every_verdict_that_moves_with_prices_says_why(tmp_path: Path, as_of: Any, table: str, factor: float) -> None:
    """Only statements that ask for prices move, and each that turns names a boundary, a count, or that none decides."""
    own = scaled(tmp_path / "own.csv", table, factor)
    priced = set(ledger.priced(as_of=as_of))
    before = {v.claim.id: v for v in ledger.verdicts(as_of=as_of)}
    after = {v.claim.id: v for v in ledger.verdicts(as_of=as_of, prices=own)}
    turned = {key for key in before if before[key].verdict != after[key].verdict}
    assert turned
    assert turned <= priced
    for key in turned:
        verdict = after[key]
        assert verdict.boundary is not None or any(
            words in verdict.decided_by for words in ("no single input decides", "every sample agrees", " of ")
        )
    same = {key for key in before if key not in priced}
    assert all(before[key].share_true == after[key].share_true for key in same)
    assert evaluate(REGISTRY["C36"], before["C36"].context).verdict == "by definition"
