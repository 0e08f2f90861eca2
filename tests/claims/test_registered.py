"""Every registered statement: its verdict is computed, its ranges have reasons, its counterfactual flips it."""

from datetime import date

import pytest

from analysis.evidence.claims.ledger import priced, record, summary, tally_by_kind, tally_words, verdicts
from analysis.evidence.claims.registry import REGISTRY, Computed, Context
from analysis.evidence.claims.verdict import evaluate, flipped
from analysis.evidence.scenarios import Choice
from analysis.inputs import InputError
from analysis.reference.tables import NEWEST, SNAPSHOT, sources

DATES = pytest.mark.parametrize("as_of", [SNAPSHOT, NEWEST], ids=["snapshot", "newest"])
VERDICTS = {
    "computed": {"holds", "holds if", "fails"},
    "definition": {"by definition"},
    "market fact": {"cited", "contradicted", "unsupported"},
}
COMPUTED = [claim for claim in REGISTRY.values() if isinstance(claim, Computed)]


@DATES
def test_each_verdict_is_one_of_its_kind_and_says_what_decides_it(as_of):
    for verdict in verdicts(as_of=as_of):
        assert verdict.verdict in VERDICTS[verdict.claim.kind]
        assert verdict.decided_by.strip()


@pytest.mark.parametrize("claim", COMPUTED, ids=lambda claim: claim.id)
@DATES
def test_the_counterfactual_flips_the_verdict(claim, as_of):
    context = Context(as_of)
    assert flipped(claim, context) != evaluate(claim, context).verdict, claim.counterfactual.change


@pytest.mark.parametrize("claim", COMPUTED, ids=lambda claim: claim.id)
def test_each_range_has_a_reason_and_each_input_is_used(claim):
    space = claim.space(Context(SNAPSHOT))
    for name, axis in space.items():
        assert axis.reason.strip(), name
        assert isinstance(axis, Choice) or axis.low < axis.high
    assert set(claim.inputs) <= set(space)


def test_each_claim_names_existing_sources_chapter_and_text():
    for verdict in verdicts(as_of=SNAPSHOT):
        assert set(verdict.sources) <= set(sources().index)
        assert verdict.claim.paraphrase.endswith(".")
        assert verdict.claim.stated_in in ("article", "summary", "both", "addition")


def test_market_facts_rest_on_dated_rows_or_say_what_was_searched():
    found = verdicts(as_of=SNAPSHOT)
    for verdict in (v for v in found if v.claim.kind == "market fact"):
        evidence = verdict.claim.test(Context(SNAPSHOT))
        assert evidence.searched.strip()
        assert (evidence.rows["as_of"] <= SNAPSHOT).all()


def test_the_quoted_price_is_no_evidence_for_itself():
    """The article's 33 dollars stand in the table, quoted; nobody else has a one-year price."""
    (found,) = verdicts(as_of=SNAPSHOT, only="C40")
    assert REGISTRY["C40"].test(Context(SNAPSHOT)).rows["source"].tolist() == ["radar2026"]
    assert found.verdict == "unsupported"


def test_a_newer_listed_price_would_decide_the_quoted_one(monkeypatch):
    """The verdict follows the rows: a listed one-year price of 33 supports it, one of 45 contradicts it."""
    from analysis.reference import tables

    rows = tables.all_rows("node_prices")
    quoted = rows[(rows["instance"] == "p5.48xlarge") & (rows["term"] == "plan-1yr")]
    for price, verdict in [(33.0, "cited"), (45.0, "contradicted")]:
        listed = quoted.assign(value=price, low=None, high=None, source="aws-price-list", region="us-east-1")
        patched = tables.pd.concat([rows, listed], ignore_index=True)
        monkeypatch.setattr(tables, "all_rows", lambda name, patched=patched: patched)
        assert verdicts(as_of=SNAPSHOT, only="C40")[0].verdict == verdict


def test_share_and_band_of_the_frontier_price_by_hand():
    """The share inside is the count of standard output prices from 5 to 15 dollars over all of them."""
    from analysis.reference.tables import output_prices

    prices = output_prices(as_of=SNAPSHOT, classes=["frontier", "reasoning"])["value"]
    (found,) = verdicts(as_of=SNAPSHOT, only="C43")
    assert found.share_true == pytest.approx(sum(5 <= p <= 15 for p in prices) / len(prices))
    assert found.computed["share_inside"] == found.share_true


def test_records_words_and_tally_agree():
    found = verdicts(as_of=SNAPSHOT)
    words = summary(found)
    assert words["id"].tolist() == [record(v)["id"] for v in found] == sorted(REGISTRY)
    counts = tally_by_kind(found)
    assert counts["statements"].sum() == len(found)
    defined = counts.loc[counts["verdict"] == "by definition", "statements"].sum()
    assert defined == sum(v.verdict == "by definition" for v in found)
    assert f"{defined} by definition" in tally_words(found)


def test_an_unknown_claim_is_refused_and_progress_counts_all():
    with pytest.raises(InputError, match="only: got 'C999', expected a registered claim"):
        verdicts(as_of=SNAPSHOT, only="C999")
    seen = []
    verdicts(as_of=SNAPSHOT, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(REGISTRY), len(REGISTRY))


def test_claims_without_prices_are_known_and_cannot_change():
    """A claim that never asks its context for prices has the same verdict with any."""
    asking = set(priced(as_of=SNAPSHOT))
    assert {"C38", "C40", "C41", "C43", "C44", "C62", "C69", "C70"} <= asking
    assert not {"C36", "C37", "C45", "C46", "C64"} & asking
    assert asking < set(REGISTRY)


def test_before_its_hardware_was_sold_a_claim_is_undefined_and_says_so():
    """The article's GPU is in the tables from 2022 on; what takes no hardware has an answer on any day."""
    before, after = ({v.claim.id: v for v in verdicts(as_of=date(year, 12, 31))} for year in (2021, 2022))
    bare = {claim.id for claim in COMPUTED if claim.accelerator is None}
    assert bare == {"C05", "C08", "C33"}
    for claim in COMPUTED:
        if claim.id in bare:
            assert before[claim.id].verdict == after[claim.id].verdict != "undefined"
    assert before["C53"].verdict == "undefined"
    assert before["C53"].decided_by.startswith("no data on that day (accelerator: got 'h100-sxm', expected one in")
    assert after["C53"].verdict == "holds"
    (oldest,) = verdicts(as_of=date(2000, 1, 1), only="C06")
    assert oldest.decided_by.startswith("no data on that day (on_chip: got nothing, expected at least one GPU known")
    on_a_node = {id_ for id_, v in before.items() if "got 'h100-sxm', expected one in accelerators" in v.decided_by}
    assert len(on_a_node) > 30
    assert {before[id_].verdict for id_ in on_a_node} == {"undefined"}
