"""Owning, renting, calling: what the verdicts rest on, checked at points that can be worked by hand."""

import numpy as np
import pytest

from analysis.evidence.claims import ownership
from analysis.evidence.claims.ledger import changes, verdicts
from analysis.evidence.claims.registry import REGISTRY, Context
from analysis.evidence.claims.verdict import by_choice
from analysis.reference import tables
from analysis.reference.own_prices import OwnPrices

SNAPSHOT = Context(tables.SNAPSHOT)
POINT = {
    "ownership": np.array(["reserved"]),
    "place": np.array([0.0]),
    "write_tok_per_s": np.array([5000.0]),
    "read_tok_per_s": np.array([30_000.0]),
    "input_tokens": np.array([3000.0]),
    "output_tokens": np.array([300.0]),
    "api_usd_per_mtok": np.array([10.0]),
    "input_price_ratio": np.array([0.125]),
    "accounting": np.array(["output"]),
}


def test_ratio_of_owned_to_api_by_hand():
    """33 an hour at 5,000 tokens a second is 1.83 a million, 0.183 of 10. By requests: a tenth of a second of reading
    and 0.06 of writing are 0.00147 dollars, against 3,000 x 1.25 + 300 x 10 per million.
    """
    assert ownership.node_price_ranges(SNAPSHOT)["reserved"][0] == 33
    assert ownership.owned_over_api(POINT, SNAPSHOT) == pytest.approx([33e6 / 3600 / 5000 / 10])
    by_request = ownership.owned_over_api(POINT | {"accounting": np.array(["request"])}, SNAPSHOT)
    assert by_request == pytest.approx([33 / 3600 * 0.16 / 0.00675])


def test_the_ways_to_have_a_node_are_in_order_and_bought_is_well_under_half_of_the_rent():
    ranges = ownership.node_price_ranges(SNAPSHOT)
    assert all(0 < low <= high for low, high in ranges.values())
    assert ranges["sunk"][0] < ranges["bought"][0] < ranges["reserved"][0] <= ranges["rent"][1]
    assert ranges["bought"][1] < 33
    cheapest_rent = ranges["rent"][0]
    assert ranges["sunk"][0] < cheapest_rent / 30


def test_a_price_of_zero_is_sampled_without_a_ratio(monkeypatch):
    monkeypatch.setattr(ownership, "node_price_ranges", lambda context: {"reserved": (0.0, 40.0)})
    point = {"ownership": np.array(["reserved"] * 3), "place": np.array([0, 0.5, 1])}
    assert ownership.node_price(point, SNAPSHOT) == pytest.approx([0, 20, 40])


@pytest.mark.parametrize("as_of", [tables.SNAPSHOT, tables.NEWEST])
def test_a_bought_node_makes_the_claim_hold_and_a_rented_one_needs_a_condition(as_of):
    """The article speaks of bought nodes and prices a rented one: the verdict depends on which."""
    frame = by_choice(REGISTRY["C44"], "ownership", Context(as_of)).set_index("ownership")
    assert frame.loc["bought", "verdict"] == "holds"
    assert frame.loc["rent", "verdict"] == "holds if"
    assert frame["share_true"].is_monotonic_increasing


def test_a_node_is_dearer_than_an_engineer_by_how_it_came_and_whose_hours_count():
    """Rented it mostly is, bought mostly not: 12 dollars an hour against 24 of an engineer over the whole clock."""
    ways = by_choice(REGISTRY["C62"], "ownership", SNAPSHOT).set_index("ownership")["share_true"]
    assert ways["rent"] > 0.5 > 0.2 > ways["bought"] > ways["sunk"]
    hours = by_choice(REGISTRY["C62"], "hours_per_year", SNAPSHOT).set_index("hours_per_year")["share_true"]
    assert hours[2080] < 0.5 < hours[8760]
    one = {"pay_usd_per_year": 104.0e3, "loading": 2.0, "hours_per_year": 2080.0}
    rented = {"ownership": np.array(["rent"] * 2), "place": np.array([0, 1])}
    found = REGISTRY["C62"].test(rented | one, SNAPSHOT)
    assert found.value == pytest.approx(np.array(ownership.node_price_ranges(SNAPSHOT)["rent"]) / 100)


def test_diffusion_beats_an_api_somewhere_and_not_everywhere():
    """The close and the economics contradict each other: the claim neither holds nor fails over all prices."""
    assert verdicts(as_of=tables.SNAPSHOT, only="C69")[0].verdict == "holds if"


def test_rules_that_forbid_and_rules_that_do_not():
    (found,) = verdicts(as_of=tables.SNAPSHOT, only="C45")
    assert found.decided_by == "1 of 3 rules read, exemptions apart"
    assert verdicts(as_of=tables.SNAPSHOT, only="C46")[0].verdict == "unsupported"


def test_every_diffusion_model_on_sale_is_closed():
    (found,) = verdicts(as_of=tables.NEWEST, only="C70")
    assert (found.verdict, found.share_true) == ("cited", 1)


def test_own_prices_change_verdicts_and_say_what_decides(tmp_path):
    path = tmp_path / "ours.csv"
    path.write_text("instance,term,quantity,value,unit\np5.48xlarge,plan-1yr,price,33,USD/node_hour\n")
    prices = tables.read_prices(path)
    frame = changes(verdicts(as_of=tables.SNAPSHOT, prices=prices, only="C40"))
    assert frame[["id", "verdict_book", "verdict", "decided_by"]].to_numpy().tolist() == [
        ["C40", "unsupported", "cited", "1 of 1 dated prices"]
    ]
    none = changes(verdicts(as_of=tables.SNAPSHOT, prices=OwnPrices("nothing"), only="C40"))
    assert none.empty
    assert list(none.columns) == list(frame.columns)
