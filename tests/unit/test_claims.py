"""The mechanism of claims on made-up statements whose right verdicts are known by hand."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

from analysis.evidence.claims import ledger, registry
from analysis.evidence.claims.registry import Context, Counterfactual, Evidence, Outcome, Stated, Structure, claim
from analysis.evidence.claims.verdict import (
    bisect,
    by_choice,
    evaluate,
    find_boundary,
    flipped,
    limits,
    share_where,
    verdict_of_share,
)
from analysis.evidence.scenarios import Choice, Range, fixed
from analysis.reference import tables
from analysis.reference.tables import SNAPSHOT

TODAY = Context(date(2026, 7, 20))
UNIT = Range(1, 3, "an example", scale="uniform")
OTHER = Range(1, 3, "an example", scale="uniform")


@pytest.fixture(autouse=True)
def empty_registry(monkeypatch):
    monkeypatch.setattr(registry, "REGISTRY", {})


def computed(test, *, quantifier="typically", space=None, apply=None, **more):
    """Register one computed claim about x and y and return it; every step must ask about the same day."""

    def space_of_today(context):
        assert context is TODAY
        return space or {"x": UNIT, "y": OTHER}

    def test_of_today(point, context):
        assert context is TODAY
        return test(point, context)

    test_of_today.__doc__ = test.__doc__ or "An example."
    claim(
        "C99",
        kind="computed",
        stated_in="addition",
        chapter="cost",
        quantifier=quantifier,
        space=space_of_today,
        counterfactual=Counterfactual("x is 1", apply or (lambda s: fixed(s, x=1.0))),
        **more,
    )(test_of_today)
    return registry.REGISTRY["C99"]


def above(threshold):
    def test(point, context):
        """X is large."""
        return Outcome(point["x"] > threshold, value=point["x"])

    return test


@pytest.mark.parametrize(
    ("quantifier", "threshold", "verdict", "close"),
    [
        ("always", 1.02, "holds", True),  # 99 % true; doubled ranges reach below 1 and spoil it
        ("always", 2.0, "holds if", False),
        ("always", 1.5, "holds if", True),  # all true where the ranges are halved
        ("always", 2.99, "fails", True),
        ("typically", 1.5, "holds", False),
        ("typically", 1.97, "holds", True),  # 51.5 %: within two points of one half
        ("typically", 2.2, "holds if", False),
        ("can", 2.2, "holds", False),
        ("can", 2.999, "fails", True),
    ],
)
def test_verdict_and_closeness_by_quantifier(quantifier, threshold, verdict, close):
    found = evaluate(computed(above(threshold), quantifier=quantifier), TODAY)
    assert found.verdict == verdict
    assert found.share_true == pytest.approx((3 - threshold) / 2, abs=0.002)
    assert found.close == close
    assert (found.claim.id, found.context) == ("C99", TODAY)


def test_ranges_are_doubled_and_not_more():
    """All of 1 to 3 and of 0 to 4 but its last 1.3 % lie above 0.05; of -1 to 5, thrice as wide, 17 % do not."""
    found = evaluate(computed(above(0.05), quantifier="always"), TODAY)
    assert (found.verdict, found.share_true, found.close) == ("holds", 1, False)


def test_nothing_true_is_an_agreement_too():
    found = evaluate(computed(above(3.5)), TODAY)
    assert (found.verdict, found.decided_by) == ("fails", "every sample agrees")


def test_shares_at_the_limits():
    """At least 95 % is always, above 50 % is typically, at most 5 % fails, at least 5 % can."""
    assert verdict_of_share(0.95, "always") == "holds"
    assert verdict_of_share(0.9499, "always") == "holds if"
    assert verdict_of_share(0.5, "typically") == "holds if"
    assert verdict_of_share(0.05, "typically") == verdict_of_share(0.05, "always") == "fails"
    assert verdict_of_share(0.0501, "can") == "holds"
    assert verdict_of_share(0.0499, "can") == "fails"
    assert verdict_of_share(0.05, "can") == "holds"
    assert limits("typically") == (pytest.approx(0.05), 0.5)


def test_boundary_names_the_input_its_threshold_accuracy_and_bisected_value():
    found = evaluate(computed(above(2.2), inputs={"x": "the x of the example"}), TODAY)
    assert found.boundary.input == "x"
    assert found.boundary.true_when == "above"
    assert found.boundary.threshold == pytest.approx(2.2, abs=0.002)
    assert found.boundary.accuracy == 1
    assert found.boundary.bisected == pytest.approx(2.2, abs=1e-6)
    assert found.decided_by == "true where the x of the example is above 2.2"
    assert found.computed["median"] == pytest.approx(2, abs=0.01)


def test_boundary_below_a_threshold():
    found = evaluate(computed(lambda point, context: Outcome(point["y"] <= 1.5)), TODAY)
    assert (found.boundary.input, found.boundary.true_when, found.boundary.accuracy) == ("y", "at most", 1)
    assert found.boundary.threshold == pytest.approx(1.5, abs=0.002)
    assert found.boundary.bisected == pytest.approx(1.5, abs=1e-6)


def test_no_single_input_decides_a_checkerboard():
    found = evaluate(computed(lambda point, context: Outcome((point["x"] > 2) ^ (point["y"] > 2))), TODAY)
    assert found.boundary is None
    assert found.decided_by == "no single input decides"


def test_a_choice_can_decide():
    space = {"x": UNIT, "kind": Choice(("dense", "sparse"), "an example")}
    found = evaluate(computed(lambda point, context: Outcome(point["kind"] == "sparse"), space=space), TODAY)
    assert (found.boundary.input, found.boundary.threshold, found.boundary.bisected) == ("kind", "sparse", None)
    assert found.decided_by == "true where kind is sparse"


def test_a_verdict_for_each_value_of_a_choice():
    space = {"x": UNIT, "kind": Choice(("dense", "sparse"), "an example")}
    found = computed(lambda point, context: Outcome((point["kind"] == "sparse") | (point["x"] > 2.2)), space=space)
    frame = by_choice(found, "kind", TODAY)
    assert frame["kind"].tolist() == ["dense", "sparse"]
    assert frame["verdict"].tolist() == ["holds if", "holds"]
    assert frame["share_true"].tolist() == pytest.approx([0.4, 1], abs=0.002)
    with pytest.raises(KeyError, match="x of C99 is a range"):
        by_choice(found, "x", TODAY)


TEN = Range(1, 10, "ten points by hand", scale="uniform")
COUNTED = np.arange(1.0, 11.0)


def by_hand(answers, **other):
    """Find the boundary of points 1, 2, 3, ... with these answers, T or F, and other inputs beside."""
    true = np.array([answer == "T" for answer in answers])
    points = {"x": COUNTED[: len(true)], **{name: np.array(values) for name, values in other.items()}}
    space = {
        name: TEN if values.dtype == float else Choice(tuple(values), "by hand") for name, values in points.items()
    }
    return find_boundary(space, points, true, lambda at: at["x"] > 5)


def test_a_threshold_makes_the_fewest_errors():
    """Of ten, one error each, at 3."""
    found = by_hand("FFTFFTTTTT")
    assert (found.input, found.true_when, found.threshold, found.accuracy) == ("x", "above", 5, 0.9)
    assert found.bisected == pytest.approx(5, abs=1e-6)
    found = by_hand("TTFTTTFFFF")
    assert (found.input, found.true_when, found.threshold, found.accuracy) == ("x", "at most", 6, 0.9)


def test_the_most_accurate_input_decides_whichever_way_it_points():
    """X separates all above 5, y nine of ten at most 5."""
    found = by_hand("FFFFFTTTTT", y=[10.0, 9, 8, 7, 5, 6, 4, 3, 2, 1])
    assert (found.input, found.true_when, found.accuracy) == ("x", "above", 1)
    found = by_hand("FFFFTFTTTT", y=[10.0, 9, 8, 7, 5, 6, 4, 3, 2, 1])
    assert (found.input, found.true_when, found.threshold, found.accuracy) == ("y", "at most", 5, 1)


def test_a_threshold_decides_from_half_of_the_errors_on():
    """Of eight, four are true: above 2 errs twice (4 and 6), half of four. Alternating answers leave three errors."""
    found = by_hand("FFTFTFTT")
    assert (found.true_when, found.threshold, found.accuracy) == ("above", 2, 0.75)
    assert by_hand("FTFTFTFT") is None
    assert by_hand("TTTTTTTT") is None


def test_of_two_thresholds_as_good_the_upper_end_is_told():
    """At most 3 errs at 1, above 1 errs at 4."""
    found = by_hand("FTTF")
    assert (found.true_when, found.threshold, found.accuracy) == ("at most", 3, 0.75)


def test_a_value_is_called_true_where_most_of_its_samples_are():
    """Of c two in five are true, of b half: neither is most. Two of c and one of b err, of fourteen."""
    kinds = list("aaabbcccccdddd")
    true = np.array([*"TTT", *"TF", *"TTFFF", *"FFFF"]) == "T"
    found = find_boundary({"kind": Choice(tuple("abcd"), "by hand")}, {"kind": np.array(kinds)}, true, lambda at: true)
    assert (found.true_when, found.threshold, found.bisected) == ("is", "a", None)
    assert found.accuracy == pytest.approx(11 / 14)


def test_the_fewer_values_are_named():
    """True at three of four: it is told where not. At two of four: where."""
    space = {"x": UNIT, "kind": Choice(("a", "b", "c", "d"), "an example")}
    three = computed(lambda point, context: Outcome(point["kind"] != "c"), space=space)
    assert evaluate(three, TODAY).decided_by == "true where kind is not c"
    registry.REGISTRY.clear()
    two = computed(lambda point, context: Outcome(np.isin(point["kind"], ["a", "b"])), space=space)
    assert evaluate(two, TODAY).decided_by == "true where kind is a or b"


def test_a_test_that_flips_beyond_the_range_does_not_flip_in_it():
    assert bisect({"x": UNIT}, "x", lambda at: at["x"] > 3.5) is None
    assert bisect({"x": UNIT}, "x", lambda at: at["x"] > 2.75) == pytest.approx(2.75, abs=1e-6)


def odd(point):
    """Half of all samples, and no single input tells which."""
    return (point["y"] > 2) ^ (point["z"] > 2)


@pytest.mark.parametrize(("inputs", "called"), [({}, "a x"), ({"a_x": "the x,"}, "the x")])
def test_what_matters_most_is_told_where_no_input_decides(inputs, called):
    """Of the lower half of x one half can be true, and half of that is odd: a quarter. The rest: 38 % on both sides."""
    space = {"a_x": UNIT, "y": UNIT, "z": UNIT, "kind": Choice(("a", "b"), "an example")}
    found = computed(lambda point, context: Outcome(odd(point) & (point["a_x"] > 1.5)), space=space, inputs=inputs)
    told = evaluate(found, TODAY).decided_by
    assert told == (
        f"no single input decides; {called} matters most: true in 25% of its lower half and 50% of its upper"
    )


def test_up_to_eight_values_are_told_one_by_one():
    """Value k lets k of eight pass, and half of them are odd: 6 % at 1, 50 % at 8."""
    space = {"x": UNIT, "y": UNIT, "z": UNIT, "k": Choice(tuple(range(1, 9)), "an example")}
    found = computed(lambda point, context: Outcome(odd(point) & (point["x"] > 3 - point["k"] / 4)), space=space)
    told = evaluate(found, TODAY).decided_by
    assert told == "no single input decides; k matters most: true in 6% (1) to 50% (8)"


def test_nine_values_are_told_by_halves():
    """The middle one, 5, belongs to the lower half."""
    space = {"y": UNIT, "z": UNIT, "k": Choice(tuple(range(1, 10)), "an example")}
    found = computed(lambda point, context: Outcome(odd(point) & (point["k"] > 5)), space=space)
    told = evaluate(found, TODAY).decided_by
    assert told == "no single input decides; k matters most: true in 0% of its lower half and 50% of its upper"


def test_a_share_with_some_inputs_otherwise():
    """X above 1.5 is true on three quarters of 1 to 3, on half of 1 to 2, and at 2."""
    found = computed(above(1.5))
    assert share_where(found, TODAY) == pytest.approx(0.75, abs=0.002)
    assert share_where(found, TODAY, x=Range(1, 2, "narrower", scale="uniform")) == pytest.approx(0.5, abs=0.002)
    assert share_where(found, TODAY, x=Choice((1.0, 2.0, 3.0), "three")) == pytest.approx(2 / 3, abs=0.002)
    assert share_where(found, TODAY, x=2.0, y=1.0) == 1
    with pytest.raises(KeyError, match="no input z"):
        share_where(found, TODAY, z=1.0)


def test_a_share_of_what_has_no_samples_is_refused():
    claim("C98", kind="definition", stated_in="both", chapter="cost")(above(1))
    with pytest.raises(TypeError, match="claim C98 has no samples"):
        share_where(registry.REGISTRY["C98"], TODAY)


def test_undefined_samples_are_counted_apart_never_as_false():
    def test(point, context):
        return Outcome(np.ones_like(point["x"], bool), defined=point["x"] > 2)

    found = evaluate(computed(test, quantifier="always"), TODAY)
    assert (found.verdict, found.share_true) == ("holds", 1)
    assert found.share_undefined == pytest.approx(0.5, abs=0.001)
    assert found.decided_by == "every sample agrees"


def test_nowhere_defined_is_a_fault():
    with pytest.raises(ValueError, match="claim C99: no sample of its space is defined"):
        evaluate(computed(lambda point, context: Outcome(True, defined=False)), TODAY)


def test_change_that_leaves_nothing_defined_is_no_flip():
    """A counterfactual has to bring another answer, not none."""
    only_above_one = computed(lambda point, context: Outcome(point["x"] > 2, defined=point["x"] > 1))
    with pytest.raises(ValueError, match="claim C99: no sample of its space is defined"):
        flipped(only_above_one, TODAY)


def test_own_prices_may_leave_a_question_without_an_answer(monkeypatch):
    """Which of two things that are free is cheaper, for example: that is no fault of the test."""
    monkeypatch.setenv(tables.PRICES_VARIABLE, str(tables.DATA / "examples" / "own_prices.csv"))
    found = evaluate(computed(lambda point, context: Outcome(True, defined=False)), TODAY)
    assert (found.verdict, found.share_true, found.share_undefined) == ("undefined", None, 1.0)
    assert found.decided_by == "with these prices the question has no answer anywhere"


def test_stated_range_reports_the_share_inside():
    found = evaluate(computed(above(1), stated=Stated(1.5, 2.5, "1", "one and a half to two and a half")), TODAY)
    assert found.computed["share_inside"] == pytest.approx(0.5, abs=0.002)
    assert found.computed["p05"] == pytest.approx(1.1, abs=0.01)
    assert found.computed["p95"] == pytest.approx(2.9, abs=0.01)


def test_counterfactual_flips():
    assert flipped(computed(above(1.5)), TODAY) == "fails"


def test_definition():
    def test():
        """A name."""
        return Structure(True, "never")

    claim("C98", kind="definition", stated_in="both", chapter="cost")(test)
    found = evaluate(registry.REGISTRY["C98"], TODAY)
    assert (found.verdict, found.decided_by, found.share_true) == ("by definition", "never", None)
    assert (found.claim.id, found.context) == ("C98", TODAY)


def test_a_definition_that_the_model_lacks_is_a_fault():
    def test():
        """A name."""
        return Structure(False, "never")

    claim("C98", kind="definition", stated_in="both", chapter="cost")(test)
    with pytest.raises(ValueError, match="claim C98: the model does not have the structure"):
        evaluate(registry.REGISTRY["C98"], TODAY)


def fact(values, *, source="other", quantifier="typically", stated=None, **words):
    def test(context):
        """Prices are below 1."""
        rows = pd.DataFrame({"value": values, "unit": "USD", "as_of": context.as_of, "source": source})
        return Evidence(rows.assign(supports=rows["value"] < 1), "a search of two price lists", **words)

    claim("C97", kind="market fact", stated_in="both", chapter="cost", quantifier=quantifier, stated=stated)(test)
    return evaluate(registry.REGISTRY.pop("C97"), TODAY)


def test_market_fact_by_its_dated_rows():
    assert fact([0.5, 0.7, 3.0]).verdict == "cited"
    assert fact([0.5, 2.0, 3.0]).verdict == "contradicted"
    assert fact([0.5, 2.0, 3.0], quantifier="can").verdict == "cited"
    assert fact([0.5]).decided_by == "1 of 1 dated prices"
    assert fact([0.5, 3.0], called="rules read").decided_by == "1 of 2 rules read"
    assert fact([0.5]).sources == ("radar2026", "other")


def test_the_text_is_no_evidence_for_itself():
    found = fact([0.5], source="radar2026")
    assert (found.verdict, found.decided_by) == ("unsupported", "a search of two price lists")
    assert (found.claim.id, found.context) == ("C97", TODAY)


def test_a_market_fact_has_the_share_of_its_rows_and_says_how_near_it_is():
    found = fact([0.5, 0.7, 3.0])
    assert (found.share_true, found.close, found.claim.id, found.context) == (2 / 3, False, "C97", TODAY)
    assert fact([0.5, 3.0]).close, "one half, the limit of typically"


def test_few_rows_tell_their_ends_and_many_their_middle():
    """Of four the ends; of five the 5th and 95th percentile, a fifth of the way from the ends to their neighbours."""
    few = fact([1, 2, 3, 4], stated=Stated(2, 3, "USD", "two or three"))
    assert few.computed == {"p05": 1, "median": 2.5, "p95": 4, "share_inside": 0.5}
    many = fact([1, 2, 3, 4, 5]).computed
    assert many == {"p05": pytest.approx(1.2), "median": 3, "p95": pytest.approx(4.8)}


def register(test, **changes):
    arguments = {
        "kind": "computed",
        "stated_in": "both",
        "chapter": "cost",
        "quantifier": "can",
        "space": lambda context: {"x": UNIT},
        "counterfactual": Counterfactual("x is 1", lambda s: s),
    }
    claim(changes.pop("claim_id", "C96"), **{k: v for k, v in (arguments | changes).items() if v is not None})(test)


def test_a_claim_keeps_what_it_was_told():
    stated = Stated(1, 2, "1", "one to two")
    register(above(1), stated=stated, anchor="there", sources=("a", "b"), inputs={"x": "the x"}, split="x")
    found = registry.REGISTRY["C96"]
    assert (found.id, found.paraphrase, found.stated_in, found.chapter) == ("C96", "X is large.", "both", "cost")
    assert (found.stated, found.anchor, found.sources, found.quantifier) == (stated, "there", ("a", "b"), "can")
    assert (found.kind, found.inputs, found.split) == ("computed", {"x": "the x"}, "x")
    assert stated.contains([0.999, 1, 2, 2.001]).tolist() == [False, True, True, False]
    register(above(1), claim_id="C95")
    assert (registry.REGISTRY["C95"].anchor, registry.REGISTRY["C95"].sources) == ("claims", ("radar2026",))


@pytest.mark.parametrize("missing", ["counterfactual", "space", "quantifier"])
def test_a_computed_claim_that_lacks_a_part_is_refused_by_name(missing):
    with pytest.raises(ValueError, match=f"claim C96: a computed claim .*{missing}"):
        register(above(1), **{missing: None})


def test_malformed_registrations_are_refused():
    test = above(1)
    with pytest.raises(ValueError, match="without a docstring"):
        register(lambda point, context: None)
    with pytest.raises(ValueError, match="kind 'opinion', expected one of"):
        register(test, kind="opinion")
    with pytest.raises(ValueError, match="expected C and digits"):
        register(test, claim_id="X1")
    register(test)
    with pytest.raises(ValueError, match="not yet registered"):
        register(test)


def test_a_chapter_gets_its_own_claims_and_none_where_it_has_none():
    found = ledger.verdicts(as_of=SNAPSHOT, chapter="roofline")
    assert {verdict.claim.chapter for verdict in found} == {"roofline"}
    assert ledger.verdicts(as_of=SNAPSHOT, chapter="no-such-chapter") == []


def test_a_threshold_that_leaves_errors_says_how_many_samples_it_fits():
    """One sample in ten is turned by another input, so that the threshold fits nine tenths."""
    space = {name: Range(0.1, 0.9, "an example", scale="uniform") for name in "xy"}
    turned = computed(lambda point, context: Outcome((point["x"] > 0.5) ^ (point["y"] > 0.82)), space=space)
    assert evaluate(turned, TODAY).decided_by == "true where x is above 0.5 (fits 90% of the samples)"


def test_a_value_of_a_choice_is_told_as_a_phrase():
    space = {"x": UNIT, "form": Choice(("dense-whole", "sparse-blocks"), "an example")}
    found = evaluate(computed(lambda point, context: Outcome(point["form"] == "dense-whole"), space=space), TODAY)
    assert found.decided_by == "true where a dense model computes whole sequences without a cache"


def test_a_phrase_is_told_as_the_exception_where_the_others_are_true():
    space = {"x": UNIT, "form": Choice(("dense-whole", "dense-blocks", "sparse-blocks"), "an example")}
    found = evaluate(computed(lambda point, context: Outcome(point["form"] != "dense-whole"), space=space), TODAY)
    assert found.decided_by == "true except where a dense model computes whole sequences without a cache"


def test_values_of_a_choice_are_joined_and_numbers_have_no_needless_digits():
    blocks = {"x": UNIT, "block": Choice((4, 16, 32, 64, 128.0), "an example")}
    found = evaluate(computed(lambda point, context: Outcome(point["block"] <= 16), space=blocks), TODAY)
    assert found.decided_by == "true where block is 4 or 16"


def test_a_split_is_told_where_no_threshold_decides():
    """Half of all samples are odd; of b, only those with a large x."""
    space = {"x": UNIT, "y": UNIT, "z": UNIT, "kind": Choice(("a", "b"), "an example")}
    found = computed(
        lambda point, context: Outcome(odd(point) & ((point["kind"] == "a") | (point["x"] > 2))),
        space=space,
        split="kind",
        inputs={"kind": "the kind,"},
    )
    told = evaluate(found, TODAY).decided_by
    assert told == "no single input decides; by the kind: true in 50% (a), 25% (b)"
