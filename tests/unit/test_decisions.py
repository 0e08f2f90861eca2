"""Chances over spaces and what they hang on: against cases with a known answer, and against the model itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import sobol_indices, uniform

from analysis.evidence import decision_map, decisions
from analysis.evidence.claims import ownership
from analysis.evidence.claims.registry import Context
from analysis.evidence.scenarios import SEED, Choice, Range, sample
from analysis.model import decoders
from analysis.present import display, map_charts
from analysis.reference.efficiency import constants, efficiency
from analysis.reference.specs import Decoder, Tariff
from analysis.reference.tables import SNAPSHOT

CONTEXT = Context(SNAPSHOT)
SECOND_COPIED = "a second, drafts copied from the prompt"
ONE = {"weights": np.array(["fp8"]), "prompt": np.array([1500.0]), "answer": np.array([200.0])}
OF_DRAFTS = {"acceptance": np.array([0.75]), "drafts": np.array([4]), "draft_cost": np.array([0.05])}


# --- first-order indices -----------------------------------------------------------------------


def ishigami(x: np.ndarray) -> np.ndarray:
    return np.sin(x[0]) + 7 * np.sin(x[1]) ** 2 + 0.1 * x[2] ** 4 * np.sin(x[0])


def test_indices_of_a_function_with_known_ones():
    """Ishigami's function (a = 7, b = 0.1): S = 0.3139, 0.4424, 0 by its closed form.

    Within 0.03: the second input waves twice over 16 bins, and what it does inside a bin is not seen.
    """
    angle = Range(-np.pi, np.pi, "a whole turn", scale="uniform")
    points = sample(dict.fromkeys("xyz", angle))
    values = ishigami(np.array([points[name] for name in "xyz"]))
    found = [decisions.first_order(points[name], values) for name in "xyz"]
    assert found == pytest.approx([0.3139, 0.4424, 0.0], abs=0.03)


def test_indices_agree_with_another_estimator():
    """Saltelli's design with far more evaluations, as SciPy has it."""
    turn = uniform(loc=-np.pi, scale=2 * np.pi)
    theirs = sobol_indices(func=ishigami, n=4096, dists=[turn] * 3, rng=SEED).first_order
    angle = Range(-np.pi, np.pi, "a whole turn", scale="uniform")
    points = sample(dict.fromkeys("xyz", angle))
    values = ishigami(np.array([points[name] for name in "xyz"]))
    assert [decisions.first_order(points[name], values) for name in "xyz"] == pytest.approx(list(theirs), abs=0.03)


def test_indices_of_a_sum_are_shares_of_variance_and_a_choice_is_an_input_too():
    """Var(x + 2y + z) with x, y uniform and z of two values 0 and 1: 1/12, 4/12, 3/12."""
    space = {
        "x": Range(0, 1, "r", scale="uniform"),
        "y": Range(0, 1, "r", scale="uniform"),
        "z": Choice((0.0, 1.0), "r"),
        "idle": Range(0, 1, "r", scale="uniform"),
    }
    points = sample(space)
    values = points["x"] + 2 * points["y"] + points["z"]
    found = [decisions.first_order(points[name], values) for name in space]
    assert found == pytest.approx([1 / 8, 4 / 8, 3 / 8, 0.0], abs=0.01)
    assert decisions.first_order(points["x"], np.ones(len(values))) == 0


def test_knowing_an_input_that_decides_ends_the_doubt():
    x = np.linspace(0, 1, 4096)
    true = x > 0.25
    assert decisions.wrong_if_known(x, true) < 0.001
    coin = np.resize([True, False, False, False], 4096)
    assert decisions.wrong_if_known(x, coin) == pytest.approx(0.25, abs=0.001)
    assert decisions.wrong_if_known(np.array(["a", "b"] * 2048), np.resize([True, False], 4096)) == 0


def test_bins_hold_equally_many_samples_and_each_choice_is_one():
    assert set(np.bincount(decisions.bins_of(np.random.default_rng(1).random(4096)))) == {4096 // decisions.BINS}
    assert decisions.bins_of(np.array(["b", "a", "b"])).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("outcome", "index"),
    [
        ([0, 0, 0, 1, 1, 1], 1.0),
        # 2/3 of 4/3 lie between the halves; of the rest chance gives them a quarter: (2/3 - 1/6) / (4/3)
        ([0, 0, 1, 1, 1, 1], 0.375),
        # 1/6 of 3/2 lies between them; of the other 4/3 a quarter is chance: below zero
        ([0, 0, 1, 0, 1, 1], (1 / 6 - 1 / 3) / 1.5),
        ([1, 1, 1, 1, 1, 1], 0.0),
    ],
)
def test_an_index_of_six_samples_by_hand(outcome, index):
    values = np.array(["a"] * 3 + ["b"] * 3)
    assert decisions.first_order(values, np.array(outcome, float)) == pytest.approx(index)


def by_hand(true, defined=None, value=None, **points):
    """Judge a decision on a few points."""
    truth = np.array([letter == "T" for letter in true])
    there = np.ones(truth.size, bool) if defined is None else np.array([letter == "T" for letter in defined])
    answer = decisions.Answer(truth, there, np.zeros(truth.size) if value is None else np.array(value, float))
    chance = float(truth[there].mean())
    named = {name: np.array(values) for name, values in points.items()}
    return decisions.Judged(decisions.DECISIONS["second"], named, answer, chance, chance, chance)


def test_influence_on_eight_points_by_hand():
    """Six of eight have an answer: in 16 bit one of three is true, in 8 bit all three.

    The chance is 4/6, so a third is wrong; with the weights known one in six. Their index is that of six samples above.
    """
    judged = by_hand(
        "FFTTTTFF",
        defined="TTTTTTFF",
        weights=["bf16"] * 3 + ["fp8"] * 3 + ["fp8"] * 2,
        ownership=["rent", "own", "own", "own", "rent", "own", "own", "own"],
    )
    found = decisions.influence(judged).set_index("input")
    assert found.index.tolist() == ["weights", "ownership"]
    row = found.loc["weights"]
    assert (row["called"], row["origin"]) == ("format of the weights", "workload")
    assert row["index"] == pytest.approx(0.375)
    assert row["wrong_if_known"] == pytest.approx(1 / 6)
    assert row["saves"] == pytest.approx(1 / 3 - 1 / 6)
    assert row["low"] < row["index"] < row["high"]
    # of two by rent one is true, of four others three
    assert found.loc["ownership", "wrong_if_known"] == pytest.approx(2 / 6)
    assert found.loc["ownership", "saves"] == pytest.approx(0)
    assert judged.defined_share == 0.75
    assert judged.wrong == pytest.approx(1 / 3)


def test_an_interval_of_an_index_has_its_width():
    """Three of four answers agree with the input: r = 2 x 3/4 - 1 = 1/2, and the index is its square.

    The spread of r over n samples is sqrt(4 x 3/4 x 1/4 / n), that of its square 2 r times as much: 0.0194 of 2,000,
    and 90 % of a normal lie within 3.29 of it.
    """
    draw = np.random.default_rng(3)
    weights = np.resize(["bf16", "fp8"], 2000)
    agrees = draw.random(2000) < 0.75
    judged = by_hand(np.where((weights == "fp8") == agrees, "T", "F"), weights=weights)
    (row,) = decisions.influence(judged).to_dict("records")
    assert row["index"] == pytest.approx(0.25, abs=2 * 0.0194)
    assert row["high"] - row["low"] == pytest.approx(3.29 * 0.0194, rel=0.15)
    assert row["high"] - row["index"] == pytest.approx(row["index"] - row["low"], rel=0.35)


def test_origins_add_up_and_noise_below_zero_counts_as_none():
    found = pd.DataFrame({"origin": ["workload", "market", "workload", "market"], "index": [0.1, 0.5, 0.2, -0.1]})
    table = decisions.by_origin(found)
    assert table["origin"].tolist() == ["market", "workload", "only in combination"]
    assert table["index"].tolist() == pytest.approx([0.5, 0.3, 0.2])
    assert decisions.by_origin(found.assign(index=0.4))["index"].tolist() == pytest.approx([0.8, 0.8, 0])


def test_a_chance_along_an_input_by_hand():
    """Two of a, one of them undefined; two of b, one true; one of c without an answer."""
    judged = by_hand("TTFTT", defined="TFTTF", weights=list("aabbc"), prompt=[5.0, 1, 2, 3, 4])
    line = decisions.along(judged, "weights")
    assert line["at"].tolist() == ["a", "b", "c"]
    assert line["chance"].tolist() == pytest.approx([1, 0.5, np.nan], nan_ok=True)
    assert line["undefined"].tolist() == [0.5, 0, 1]
    assert set(line["decision"]) == {"second"}
    assert decisions.along(judged, "prompt")["at"].tolist() == [1, 2, 3, 4, 5]


def test_chances_by_hand():
    judged = by_hand("TTFFF", defined="TTTFF", value=[1.0, 3.0, 2.0, 9.0, 9.0])
    (row,) = decisions.chances([judged]).to_dict("records")
    assert (row["decision"], row["chance"], row["undefined"]) == ("second", pytest.approx(2 / 3), pytest.approx(0.4))
    assert (row["value_p05"], row["value_median"], row["value_p95"]) == (1, 2, 3)
    nothing = decisions.Answer(np.zeros(2, bool), np.zeros(2, bool), np.zeros(2))
    none = decisions.Judged(decisions.DECISIONS["second"], {}, nothing, 0.0, 0.0, 0.0)
    assert np.isnan(decisions.chances([none])["value_median"].iloc[0])


def test_numbers_behind_a_chance_are_those_of_nineteen_in_twenty():
    judged = by_hand("T" * 100, value=np.arange(1.0, 101.0))
    (row,) = decisions.chances([judged]).to_dict("records")
    assert (row["value_p05"], row["value_median"], row["value_p95"]) == (5, 50, 95)


def test_sixteen_values_are_bins_of_their_own_and_seventeen_are_not():
    assert decisions.bins_of(np.repeat(np.arange(16), 2)).tolist() == np.repeat(np.arange(16), 2).tolist()
    assert decisions.bins_of(np.repeat(np.arange(17), 16)).max() == 15


def test_a_judged_chance_is_that_of_its_space(monkeypatch):
    """An answer exists below one half, true above one quarter: one half of 1,024; 90 % are 1.645 sqrt(1/4 / 1,024)."""
    half = decisions.Decision(
        "half",
        "Is it?",
        "no answer",
        "itself",
        lambda context: {"place": Range(0, 1, "r", scale="uniform")} if context is CONTEXT else {},
        lambda point, context: decisions.Answer(
            (point["place"] > 0.25) & (context is CONTEXT), point["place"] < 0.5, point["place"]
        ),
    )
    monkeypatch.setitem(decisions.DECISIONS, "half", half)
    found = decisions.judge("half", CONTEXT, count=2048)
    assert found.chance == pytest.approx(0.5, abs=0.002)
    assert found.defined_share == pytest.approx(0.5, abs=0.002)
    assert (found.high - found.chance, found.chance - found.low) == pytest.approx((0.0257, 0.0257), rel=0.2)
    assert found.points["place"].size == 2048
    assert (decisions.judge("half", CONTEXT, count=64, seed=1).points["place"] != found.points["place"][:64]).any()


# --- decisions ---------------------------------------------------------------------------------


@pytest.fixture
def rates(monkeypatch):
    """Set what one node takes by hand: one token at a time, drafts, copies, blocks."""
    found = {"autoregressive": [2.0, 4.0, 0.0], "speculative": [4.0, 2.0, 0.0]}
    found |= {"look-up": [6.0, 0.0, 0.0], "diffusion": [3.0, 1.0, 0.0]}
    asked = []

    def node_req_per_s(kind, point, *, budget_s, shapes=decisions.SHAPES, model=decisions.MODEL):
        asked.append((kind, budget_s, shapes, model))
        return np.array(found[kind])

    monkeypatch.setattr(decisions, "node_req_per_s", node_req_per_s)
    return asked


def test_owning_against_an_api_by_hand(rates, monkeypatch):
    """Ten requests a second need three nodes of four each: 60 USD an hour for 3600 x 10 x 0.5 x 0.8 useful ones.

    The API asks 10 USD for a million tokens of output, a fifth of it for input and half of that for cached input:
    500 x 2 + 500 x 1 + 100 x 10 = 2,500 USD for a million requests.
    """
    monkeypatch.setattr(ownership, "node_price_ranges", lambda context: {"rent": (10.0, 40.0), "paid": (0.0, 8.0)})
    point = {
        "rate_req_per_s": np.array([10.0, 10.0, 10.0]),
        "day_share": 0.5,
        "useful": 0.8,
        "ownership": np.array(["rent", "paid", "rent"]),
        "place": np.array([0.5, 0.5, 0.5]),
        "input_price_ratio": 0.2,
        "api_usd_per_mtok": 10.0,
        "cached_price_ratio": 0.5,
        "prompt": np.array([1000.0] * 3),
        "answer": np.array([100.0] * 3),
        "cached_share": 0.5,
        "budget_s": 7.0,
    }
    found = decisions.DECISIONS["own"].answer(point, CONTEXT)
    assert found.value[:2] == pytest.approx([60 / 14_400 / 2.5e-3, 12 / 14_400 / 2.5e-3])
    assert found.true.tolist() == [False, True, False]
    assert found.defined.tolist() == [True, True, False]
    assert rates == [(kind, 7.0, decisions.SHAPES, decisions.MODEL) for kind in ("autoregressive", "speculative")]


def test_a_price_lies_between_its_ends_by_ratio_or_from_nothing(monkeypatch):
    """Between 10 and 40 the middle is 20; between nothing and 8 it is 4."""
    monkeypatch.setattr(ownership, "node_price_ranges", lambda context: {"rent": (10.0, 40.0), "paid": (0.0, 8.0)})
    at = {"ownership": np.array(["rent", "rent", "rent", "paid", "paid"]), "place": np.array([0, 0.5, 1, 0.5, 1])}
    assert ownership.node_price(at, CONTEXT).tolist() == pytest.approx([10, 20, 40, 4, 8])


@pytest.mark.parametrize(
    ("name", "true", "defined", "value"),
    [
        ("diffusion", [False, False, False], [True, True, False], [0.75, 0.5, np.nan]),
        ("look-up", [False, True, False], [True, True, False], [0.5, np.inf, np.nan]),
        ("second", [True, True, False], [True, True, True], [4, 4, 0]),
        ("sparse second", [True, True, False], [True, True, True], [4, 4, 0]),
        ("nodes", [True, False, False], [True, True, False], [1, 2, np.nan]),
    ],
)
def test_decisions_of_a_second_by_hand(rates, name, true, defined, value):
    point = {"budget_s": 0.7, "rate_req_per_s": np.array([4.0, 5.0, 1.0])}
    found = decisions.DECISIONS[name].answer(point, CONTEXT)
    assert found.true.tolist() == true
    assert found.defined.tolist() == defined
    assert found.value == pytest.approx(np.array(value), nan_ok=True)
    model = decisions.SPARSE_MODEL if name == "sparse second" else decisions.MODEL
    assert {asked[1:] for asked in rates} == {(0.7, (8,), model)}


def test_the_api_is_as_cheap_as_its_cheapest_seller(monkeypatch):
    """Sold at 1 and 2 with inputs at a tenth and one half; a free offer is a price and has no ratio."""
    tariffs = {"a": Tariff(0.1, 1.0), "b": Tariff(1.0, 2.0), "free": Tariff(0.0, 0.0)}
    monkeypatch.setattr(decisions.tables, "tariffs", lambda model, *, as_of, prices: tariffs)
    space = decisions.DECISIONS["own"].space(CONTEXT)
    assert (space["api_usd_per_mtok"].low, space["api_usd_per_mtok"].high) == (0, 15)
    assert (space["input_price_ratio"].low, space["input_price_ratio"].high) == (0.1, 1)
    del tariffs["free"], tariffs["a"]
    space = decisions.DECISIONS["own"].space(CONTEXT)
    assert space["api_usd_per_mtok"].low == 2
    assert space["input_price_ratio"].low == 0.125
    tariffs["b"] = Tariff(30.0, 60.0)
    held = decisions.DECISIONS["own"].space(CONTEXT)["api_usd_per_mtok"]
    assert isinstance(held, Choice)
    assert held.central == 15


def test_a_node_of_ones_own_is_asked_over_these_ranges():
    """Shares by their differences, times and prices by their ratios."""
    space = decisions.DECISIONS["own"].space(CONTEXT)
    ranges = {
        "day_share": (0.1, 0.6, "uniform"),
        "budget_s": (2, 30, "log"),
        "useful": (0.8, 1, "uniform"),
        "cached_price_ratio": (0.1, 1, "log"),
    }
    for name, of in ranges.items():
        assert (space[name].low, space[name].high, space[name].scale) == of, name


def test_own_prices_of_the_api_are_those_that_are_asked(monkeypatch):
    """The prices and the day of the context reach the table."""
    asked = []

    def tariffs(model, **day):
        asked.append((model, day))
        return {"a": Tariff(0.1, 1.0)}

    monkeypatch.setattr(decisions.tables, "tariffs", tariffs)
    own = Context(SNAPSHOT, prices=object())
    decisions.DECISIONS["own"].space(own)
    assert asked == [(decisions.MODEL, {"as_of": SNAPSHOT, "prices": own.prices})]


def test_decoders_take_their_own_inputs():
    """Three drafts at one half keep 1.875 tokens; a block of 32 at four tokens a pass takes eight, and at least one."""
    point = {"acceptance": 0.5, "copied": 0.25, "drafts": 3, "draft_cost": 0.1, "block": 32.0, "tokens_a_pass": 4.0}
    drafts, copies = (decisions.decoder_of(kind, point) for kind in ("speculative", "look-up"))
    assert (drafts.tokens_per_pass, drafts.draft_share) == pytest.approx((1.875, 0.3))
    assert (copies.tokens_per_pass, copies.draft_share) == pytest.approx((1 + 1 / 4 + 1 / 16 + 1 / 64, 0))
    assert decisions.decoder_of("diffusion", point) == Decoder.diffusion(block_tokens=32.0, passes=8.0)
    fast = decisions.decoder_of("diffusion", point | {"tokens_a_pass": 64.0})
    assert fast == Decoder.diffusion(block_tokens=32.0, passes=1.0)
    assert decisions.decoder_of("autoregressive", point) == Decoder.autoregressive()
    assert len(decisions.decoders_of("speculative", point)) == 1
    free = {name: value for name, value in point.items() if name != "drafts"}
    lengths = [decoder.draft_length for decoder in decisions.decoders_of("look-up", free)]
    assert lengths == list(decisions.LENGTHS["look-up"])


def test_constants_end_where_all_of_it_is_reached():
    """Of what a share is made of no more than all can be reached, also when its range is doubled."""
    found = decisions.hardware()
    for name, axis in found.items():
        constant, is_share = constants()[name], name.endswith((".mbu", ".mfu"))
        assert (axis.low, axis.high) == (constant.low, min(constant.high, 1) if is_share else constant.high)
        assert axis.ceiling == (1 if is_share else np.inf)
    assert found["hopper.mbu"].high == 1
    assert set(found) == {name for name, (_, origin) in decisions.INPUTS.items() if origin == "hardware"}


@pytest.fixture(scope="module")
def judged() -> decisions.Judged:
    return decisions.judge("second", CONTEXT, count=512)


def test_a_chance_is_the_share_of_what_is_defined_and_the_same_every_time(judged):
    again = decisions.judge("second", CONTEXT, count=512)
    assert (again.chance, again.low, again.high) == (judged.chance, judged.low, judged.high)
    assert judged.low <= judged.chance <= judged.high
    assert judged.chance == judged.answer.true[judged.answer.defined].mean()
    assert judged.wrong == min(judged.chance, 1 - judged.chance)
    found = decisions.influence(judged)
    pd.testing.assert_frame_equal(found, decisions.influence(again))
    assert found["index"].is_monotonic_decreasing
    assert (found["low"] <= found["index"]).all()
    assert (found["index"] <= found["high"]).all()
    assert (found["saves"] >= -1e-12).all()
    assert decisions.by_origin(found)["index"].sum() >= 1 - 1e-9


@pytest.mark.parametrize("name", decisions.DECISIONS)
def test_every_input_has_a_reason_a_name_and_the_constants_are_inputs(name):
    space = decisions.DECISIONS[name].space(CONTEXT)
    assert set(space) <= set(decisions.INPUTS)
    assert all(axis.reason.strip() for axis in space.values())
    for constant in decisions.hardware():
        assert space[constant].low == constants()[constant].low
        assert space[constant].high <= constants()[constant].high
    assert {"slower", "hopper.mbu", "python.layer"} <= set(space)


def test_a_chance_along_an_input_averages_to_the_chance(judged):
    """Bins hold equally many samples, so the mean over them is the chance where every sample has an answer."""
    line = decisions.along(judged, "answer")
    assert len(line) == decisions.POINTS_ALONG
    assert line["chance"].mean() == pytest.approx(judged.chance)
    assert line["chance"].iloc[0] > line["chance"].iloc[-1]
    with pytest.raises(KeyError):
        decisions.along(judged, "no such input")


def test_a_node_takes_what_its_replicas_take_and_the_budget_limits_it():
    """With one replica of eight, a mean within a long budget nears the saturated rate; none within half a floor."""
    replica = decisions.replica_of(decisions.MODEL, "fp8", 8)
    plain = Decoder.autoregressive()
    alone = decoders.request_s(
        replica, plain, input_tokens=1500, output_tokens=200, efficiency=efficiency(replica, decisions.ENGINE)
    )
    rates = [
        decisions.node_req_per_s("autoregressive", ONE, budget_s=budget, shapes=(8,), percentile=None)[0]
        for budget in (alone / 2, 2 * alone, 1e6)
    ]
    assert rates[0] == 0
    saturated = decoders.saturated_req_per_s(
        replica,
        plain,
        input_tokens=1500,
        output_tokens=200,
        efficiency=efficiency(replica, decisions.ENGINE),
        slots=decisions.slots(decisions.ENGINE),
        rule=decisions.memory_rule(decisions.ENGINE),
    )
    assert rates[1] < rates[2] <= saturated * (1 + 1e-9)
    assert rates[2] == pytest.approx(saturated, rel=0.01)


@pytest.mark.parametrize("percentile", [95.0, None])
def test_a_nodes_rate_is_that_of_its_replicas_at_each_point(percentile):
    """Two formats, a part in a cache, bursts, times a tenth longer: the law of queues for each, by the better split."""
    point = {
        "weights": np.array(["fp8", "bf16", "fp8"]),
        "prompt": np.array([1500.0, 800.0, 3000.0]),
        "answer": np.array([200.0, 100.0, 60.0]),
        "cached_share": np.array([0.0, 0.5, 0.9]),
        "cv": np.array([1.0, 3.0, 2.0]),
        "slower": np.array([1.0, 1.1, 0.9]),
    }
    budget = np.array([6.0, 4.0, 2.0])
    found = decisions.node_req_per_s("autoregressive", point, budget_s=budget, percentile=percentile)
    for i in range(3):
        each = []
        for gpus in (4, 8):
            replica = decisions.replica_of(decisions.MODEL, str(point["weights"][i]), gpus)
            service = decisions.Service.of(
                replica,
                Decoder.autoregressive(),
                input_tokens=point["prompt"][i],
                output_tokens=point["answer"][i],
                cached_tokens=point["prompt"][i] * point["cached_share"][i],
                slots=decisions.slots(decisions.ENGINE),
                rule=decisions.memory_rule(decisions.ENGINE),
                efficiency=efficiency(replica, decisions.ENGINE),
            )
            rate = decisions.rate_within_budget(
                service, budget[i] / point["slower"][i], percentile=percentile, cv=point["cv"][i]
            )
            each.append(8 / gpus * float(rate) / point["slower"][i])
        assert found[i] == pytest.approx(max(each), rel=1e-6)
        assert found[i] > 0
    # each decoder is asked with what the caller asked: another split, another percentile
    drafting = {**{name: values[:1] for name, values in point.items()}, **OF_DRAFTS}
    free = {name: values for name, values in drafting.items() if name != "drafts"}
    for shapes in ((4,), (8,)):
        asked = {"budget_s": 6.0, "shapes": shapes, "percentile": percentile}
        each = [
            decisions.node_req_per_s("speculative", {**free, "drafts": np.array([n])}, **asked)[0]
            for n in decisions.LENGTHS["speculative"]
        ]
        assert decisions.node_req_per_s("speculative", free, **asked) == pytest.approx([max(each)])


def test_a_fitted_constant_of_the_space_is_what_a_replica_reaches():
    replica = decisions.replica_of(decisions.MODEL, "fp8", 8)
    half = decisions.reached(replica, {"hopper.mbu": np.array([0.4])})
    assert half.mbu == pytest.approx(0.4 * efficiency(replica, decisions.ENGINE).mbu / constants()["hopper.mbu"].value)


def test_measured_times_twice_as_long_are_half_the_budget_at_half_the_rate():
    twice = decisions.node_req_per_s("autoregressive", {**ONE, "slower": np.array([2.0])}, budget_s=8.0)
    assert twice == pytest.approx(decisions.node_req_per_s("autoregressive", ONE, budget_s=4.0) / 2)


def test_drafts_of_certain_acceptance_and_no_cost_serve_more_within_a_budget():
    plain = decisions.node_req_per_s("autoregressive", ONE, budget_s=2.0)
    sure = {**OF_DRAFTS, "acceptance": np.array([1.0]), "draft_cost": np.array([0.0])}
    assert decisions.node_req_per_s("speculative", {**ONE, **sure}, budget_s=2.0) > plain


@pytest.mark.parametrize("kind", ["speculative", "look-up"])
def test_drafts_without_a_length_are_as_long_as_serves_best(kind):
    """The best of all lengths is the largest rate of them one by one, and no fixed one is above it."""
    point = {**ONE, "acceptance": np.array([0.7]), "draft_cost": np.array([0.05]), "copied": np.array([0.5])}
    chosen = decisions.node_req_per_s(kind, point, budget_s=2.0)
    each = [
        decisions.node_req_per_s(kind, {**point, "drafts": np.array([length])}, budget_s=2.0)[0]
        for length in decisions.LENGTHS[kind]
    ]
    assert chosen == pytest.approx([max(each)])
    assert max(each) > min(each)


# --- the map -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    return decision_map.grid(CONTEXT)


def test_every_cell_has_the_cheapest_option_that_is_in_time(cells):
    base = cells[cells["setting"] == decision_map.BASE.name].iloc[::97]
    costs = decision_map.usd_per_request(
        decision_map.BASE,
        CONTEXT,
        concurrency=base["concurrency"].to_numpy(),
        api_usd_per_mtok=base["api_usd_per_mtok"].to_numpy(),
    )
    best = np.min(np.stack([*costs.values()]), axis=0)
    for place, option in enumerate(base["option"]):
        assert costs[option][place] == best[place]


def test_cost_of_a_request_on_a_full_node_by_hand():
    """Half a request a second at a quarter of the peak on one node: price over 3600 x 0.5 x 0.25, twice as much if
    half of the answers are of no use.
    """
    setting = decision_map.replace(decision_map.BASE, day_share=0.25)
    together = 0.5 * decision_map.stay_alone_s(setting)
    node = decision_map.node_usd_per_hour("rent", CONTEXT)
    assert node == 55.04
    ratio = decision_map.input_price_ratio(CONTEXT)
    assert 0.2 < ratio < 0.5
    at = {"concurrency": together, "api_usd_per_mtok": 4.0}
    costs = decision_map.usd_per_request(setting, CONTEXT, **at)
    assert costs["autoregressive"] == pytest.approx(node / (3600 * 0.5 * 0.25))
    assert costs["API"] == pytest.approx((2000 * 4.0 * ratio + 300 * 4.0) / 1e6)
    useless = decision_map.usd_per_request(decision_map.replace(setting, useful=0.5), CONTEXT, **at)
    assert useless["autoregressive"] == pytest.approx(2 * costs["autoregressive"])


def test_a_dearer_api_never_wins_a_cell_and_more_company_never_loses_one(cells):
    for _, column in cells.groupby(["setting", "concurrency"]):
        api = (column.sort_values("api_usd_per_mtok")["option"] == "API").to_numpy()
        assert (np.diff(api.astype(int)) <= 0).all()
    owned = {name: frame["option"].ne("API").mean() for name, frame in cells.groupby("setting")}
    assert owned["ten workloads share the node"] > owned[decision_map.BASE.name]
    assert owned["the node is already paid for"] > owned[decision_map.BASE.name]
    assert owned["bursts: peak four times the mean"] < owned[decision_map.BASE.name]


def test_no_api_where_data_must_stay_or_none_is_fast_enough(cells):
    for setting in decision_map.SETTINGS:
        fastest = decision_map.fastest_api_s(setting, CONTEXT)
        options = set(cells[cells["setting"] == setting.name]["option"])
        if not setting.api or setting.budget_s < fastest:
            assert "API" not in options
    hopeless = decision_map.replace(decision_map.BASE, name="no time", budget_s=0.01)
    costs = decision_map.usd_per_request(hopeless, CONTEXT, concurrency=[1.0], api_usd_per_mtok=[1.0])
    assert decision_map.cheapest(costs).tolist() == ["infeasible"]


def test_a_second_is_diffusions_only_in_the_middle_of_the_ranges(cells):
    """With good drafts, a sparse or a small model others are in time; with times an eighth longer nobody is."""
    shares = decision_map.shares(cells).set_index("setting")
    assert shares.loc["a second", "diffusion"] == 1
    assert shares.loc["a second, all times 12 % longer", "infeasible"] == 1
    compared = decision_map.seconds_compared().set_index("setting")
    assert compared.loc["a second", "speculative"] == 0
    for name in ("a second, good drafts", "a second, a sparse model", "a second, a model of 8B", SECOND_COPIED):
        assert compared.loc[name, "speculative"] > 0
    assert compared.loc["a second, a model of 8B", "autoregressive"] > 0
    assert shares.loc["a second, APIs as fast as makers say", "API"] > 0


def test_the_time_to_spare_is_where_a_decoder_stops_being_in_time():
    spare = decision_map.time_to_spare(decision_map.SECOND, "diffusion")
    assert 1 < spare < 1.12
    for factor, kept in ((0.998, True), (1.002, False)):
        setting = decision_map.replace(decision_map.SECOND, slower=spare * factor)
        assert (decision_map.node_rates(setting)["diffusion"] > 0) == kept
    assert decision_map.time_to_spare(decision_map.SECOND, "speculative") < 1
    # a request alone takes no longer than the budget of the 95th percentile
    assert decision_map.alone_s(decision_map.SECOND)["diffusion"] * spare <= decision_map.SECOND.budget_s * 1.001


def test_numbers_behind_a_chance_count_the_endless_ones():
    """Where most rivals never keep the budget the middle ratio is endless, as the chance says."""
    ratio = np.array([0.5, 2.0, np.inf, np.inf, np.inf])
    answer = decisions.Answer(ratio > 1, np.ones(5, bool), ratio)
    judged = decisions.Judged(decisions.DECISIONS["diffusion"], {}, answer, 0.8, 0.8, 0.8)
    (row,) = decisions.chances([judged]).itertuples()
    assert (row.value_p05, row.value_median, row.value_p95) == (0.5, np.inf, np.inf)


def test_borders_lie_where_the_options_cost_the_same():
    edge = decision_map.breakeven_concurrency(decision_map.BASE, CONTEXT, 15.0)
    just_below, just_above = (
        decision_map.cheapest(
            decision_map.usd_per_request(decision_map.BASE, CONTEXT, concurrency=[edge * f], api_usd_per_mtok=[15.0])
        )[0]
        for f in (0.99, 1.0)
    )
    assert just_below == "API"
    assert just_above != "API"
    assert decision_map.breakeven_concurrency(decision_map.BASE, CONTEXT, 0.1) is None


def test_rectangles_names_and_shares_are_those_of_the_cells(cells):
    runs = decision_map.runs(cells)
    area = (np.log(runs["right"] / runs["left"]) * np.log(runs["top"] / runs["bottom"])).groupby(
        [runs["setting"], runs["option"]]
    )
    whole = np.log(decision_map.CONCURRENCY[1] / decision_map.CONCURRENCY[0]) * np.log(
        decision_map.API_USD_PER_MTOK[1] / decision_map.API_USD_PER_MTOK[0]
    )
    shares = decision_map.shares(cells).set_index("setting")
    for (setting, option), part in area:
        assert part.sum() / whole == pytest.approx(shares.loc[setting, option])
    assert shares.sum(axis=1).tolist() == pytest.approx([1.0] * len(shares))
    names = decision_map.names_on_map(cells)
    merged = names.merge(cells, on=["setting", "concurrency", "api_usd_per_mtok"], suffixes=("", "_cell"))
    assert (merged["option"] == merged["option_cell"]).all()
    assert len(merged) == len(names)


# --- pictures ----------------------------------------------------------------------------------


def test_pictures_hold_what_they_are_given_and_fit_a_page(cells, judged):
    drawn = map_charts.decision_map(decision_map.runs(cells), decision_map.names_on_map(cells))
    shown = display.figure(drawn, name="fig-map-test", alt="A map of the cheapest option over two axes.")
    spec = shown.data[display.VEGA_LITE]
    (control,) = spec["params"]
    assert control["bind"]["options"] == [setting.name for setting in decision_map.SETTINGS]
    found = decisions.influence(judged)
    bars = display.figure(map_charts.influence(found), name="fig-bars", alt="Bars of what an answer hangs on.")
    (rows,) = bars.data[display.VEGA_LITE]["datasets"].values()
    assert [row["called"] for row in rows] == found["called"].head(map_charts.MOST_BARS).tolist()
    chances = decisions.chances([judged])
    assert chances["chance"].tolist() == [judged.chance]
    display.figure(map_charts.chances(chances), name="fig-chances", alt="The chance of one single decision.")
    line = map_charts.along(decisions.along(judged, "slower"), title="Measured over predicted time")
    display.figure(line, name="fig-line", alt="The chance of one decision along the error of the model.")
