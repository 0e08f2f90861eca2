"""The mechanism of claims on made-up statements whose right verdicts are known by hand."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

from analysis.evidence.claims import ledger, registry
from analysis.evidence.claims.registry import Context, Counterfactual, Evidence, Outcome, Stated, Structure, claim
from analysis.evidence.claims.verdict import by_choice, evaluate, flipped, limits, verdict_of_share
from analysis.evidence.scenarios import Choice, Range, fixed
from analysis.reference.tables import SNAPSHOT

TODAY = Context(date(2026, 7, 20))
UNIT = Range(1, 3, "an example", scale="uniform")
OTHER = Range(1, 3, "an example", scale="uniform")


@pytest.fixture(autouse=True)
def empty_registry(monkeypatch):
    monkeypatch.setattr(registry, "REGISTRY", {})


def computed(test, *, quantifier="typically", space=None, apply=None, **more):
    """Register one computed claim about x and y and return it."""
    test.__doc__ = test.__doc__ or "An example."
    claim(
        "C99",
        kind="computed",
        stated_in="addition",
        chapter="cost",
        quantifier=quantifier,
        space=lambda context: space or {"x": UNIT, "y": OTHER},
        counterfactual=Counterfactual("x is 1", apply or (lambda s: fixed(s, x=1.0))),
        **more,
    )(test)
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
    assert (found.boundary.input, found.boundary.true_when) == ("y", "at most")
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


def test_a_definition_that_the_model_lacks_is_a_fault():
    def test():
        """A name."""
        return Structure(False, "never")

    claim("C98", kind="definition", stated_in="both", chapter="cost")(test)
    with pytest.raises(ValueError, match="claim C98: the model does not have the structure"):
        evaluate(registry.REGISTRY["C98"], TODAY)


def fact(values, *, source="other", quantifier="typically", **words):
    def test(context):
        """Prices are below 1."""
        rows = pd.DataFrame({"value": values, "unit": "USD", "as_of": context.as_of, "source": source})
        return Evidence(rows.assign(supports=rows["value"] < 1), "a search of two price lists", **words)

    claim("C97", kind="market fact", stated_in="both", chapter="cost", quantifier=quantifier)(test)
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


def test_a_value_of_a_choice_is_told_as_a_phrase():
    space = {"x": UNIT, "form": Choice(("dense-whole", "sparse-blocks"), "an example")}
    found = evaluate(computed(lambda point, context: Outcome(point["form"] == "dense-whole"), space=space), TODAY)
    assert found.decided_by == "true where a dense model computes whole sequences without a cache"


def test_values_of_a_choice_are_joined_and_numbers_have_no_needless_digits():
    blocks = {"x": UNIT, "block": Choice((4, 16, 32, 64, 128.0), "an example")}
    found = evaluate(computed(lambda point, context: Outcome(point["block"] <= 16), space=blocks), TODAY)
    assert found.decided_by == "true where block is 4 or 16"


def test_a_split_is_told_where_no_threshold_decides():
    space = {"x": UNIT, "y": UNIT, "kind": Choice(("a", "b"), "an example")}
    odd = computed(
        lambda point, context: Outcome((point["x"] > 2) ^ (point["y"] > 2)),
        space=space,
        split="kind",
        inputs={"kind": "the kind"},
    )
    assert evaluate(odd, TODAY).decided_by == "no single input decides; by the kind: true in 50% (a), 50% (b)"
