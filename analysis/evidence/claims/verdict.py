"""From a claim's test to its verdict, and to the condition that decides it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.evidence.claims.registry import Claim, Computed, Context, Definition, MarketFact, Stated
from analysis.evidence.scenarios import Choice, Point, Range, Space, central, fixed, sample, stretched
from analysis.reference.tables import prices_in_force

#: Share of true samples from which "always" holds, and up to which anything fails ("can": below which).
ALMOST, FEW = 0.95, 0.05
#: A share this near to a limit is called close.
CLOSE = 0.02
#: A threshold decides when it removes at least half of the errors that the commoner answer alone makes.
DECISIVE = 0.5
#: Up to so many rows a middle 90 % is between rows that nobody reported: the ends are told instead.
FEW_ROWS = 4
#: Values of choices that are told as a whole phrase, by input and value.
PHRASES = {
    ("scheduler", "collects a batch first"): "the server collects a batch first",
    ("hours_per_year", "8,760"): "a year's pay is spread over all 8,760 hours",
    ("form", "dense-whole"): "a dense model computes whole sequences without a cache",
    ("form", "dense-blocks"): "a dense model computes blocks with a cache",
    ("form", "sparse-blocks"): "a sparse model computes blocks with a cache",
}


@dataclass(frozen=True)
class Boundary:
    """The threshold on one input that best separates true from false samples.

    ``bisected`` is where the claim flips with the other inputs at their middle, None where it does not.
    """

    input: str
    true_when: str
    threshold: float | str
    accuracy: float
    bisected: float | None


@dataclass(frozen=True)
class Verdict:
    """One row of the ledger."""

    claim: Claim
    context: Context
    verdict: str
    decided_by: str
    close: bool = False
    share_true: float | None = None
    share_undefined: float | None = None
    computed: Mapping[str, float] | None = None
    boundary: Boundary | None = None
    evidence: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Keys of sources.csv: who states it, what the computation rests on, and the rows that spoke."""
        return tuple(dict.fromkeys((*self.claim.sources, *self.evidence)))


def limits(quantifier: str) -> tuple[float, float]:
    """Return the shares (fails up to, holds from) of a quantifier; between them it holds under a condition.

    Examples
    --------
    >>> limits("always"), limits("can")
    ((0.05, 0.95), (0.05, 0.05))
    """
    return {"always": (FEW, ALMOST), "typically": (FEW, 0.5), "can": (FEW, FEW)}[quantifier]


def verdict_of_share(share_true: float, quantifier: str) -> str:
    """Turn a share of true samples into a verdict.

    Examples
    --------
    >>> [verdict_of_share(0.6, quantifier) for quantifier in ("always", "typically", "can")]
    ['holds if', 'holds', 'holds']
    """
    fails_to, holds_from = limits(quantifier)
    if share_true > holds_from or (share_true == holds_from and quantifier != "typically"):
        return "holds"
    return "fails" if share_true <= fails_to else "holds if"


#: An input whose halves differ by less says little about what decides.
TELLING = 0.1
#: Inputs with no more values than this are told value by value.
FEW_VALUES = 8

Test = Callable[[Point], NDArray[np.bool_]]


def find_boundary(space: Space, points: Point, true: NDArray[np.bool_], test: Test) -> Boundary | None:
    """Find the input whose single threshold best separates true from false samples.

    Parameters
    ----------
    space : Space
        Where the points come from.
    points : dict of arrays, shape (n,)
        Defined samples.
    true : array of bool, shape (n,)
        The test's answer on them.
    test : callable
        Answers a mapping of arrays with an array of bool; used for the bisection.

    Returns
    -------
    Boundary or None
        None where no threshold removes at least half of the errors that the commoner answer makes.
    """
    commoner = max(true.mean(), 1 - true.mean())
    if commoner == 1:
        return None
    splits = {
        name: (_best_values if isinstance(axis, Choice) else _best_threshold)(points[name], true)
        for name, axis in space.items()
    }
    name, (accuracy, true_when, threshold) = max(splits.items(), key=lambda split: split[1][0])
    if (accuracy - commoner) / (1 - commoner) < DECISIVE:
        return None
    return Boundary(name, true_when, threshold, accuracy, bisect(space, name, test))


def _best_values(values: NDArray[Any], true: NDArray[np.bool_]) -> tuple[float, str, str]:
    """Call true the values of a choice at which most samples are true; name the true or the others, the fewer."""
    names, index = np.unique(values, return_inverse=True)
    counts = np.bincount(index)
    trues = np.bincount(index, weights=true)
    right = np.maximum(trues, counts - trues).sum()
    mostly = 2 * trues > counts
    true_when, named = ("is not", ~mostly) if 2 * mostly.sum() > len(names) else ("is", mostly)
    *others, last = [_spoken(name) for name in names[named]] or ["none of its values"]
    words = f"{', '.join(others)} or {last}" if others else last
    return float(right / len(true)), true_when, words


def _spoken(value: Any) -> str:
    """Say a value of a choice: numbers without needless digits."""
    return f"{value:,g}" if isinstance(value, float | int | np.number) else str(value)


def _best_threshold(values: NDArray[np.float64], true: NDArray[np.bool_]) -> tuple[float, str, float]:
    """Call true all samples at most, or above, the value that makes the fewest errors."""
    order = np.argsort(values, kind="stable")
    trues_up_to = np.cumsum(true[order])
    falses_above = np.cumsum(~true[order])[-1] - np.cumsum(~true[order])
    right_at_most = trues_up_to + falses_above
    right_above = len(true) - right_at_most
    true_when, right = (
        ("at most", right_at_most) if right_at_most.max() >= right_above.max() else ("above", right_above)
    )
    best = int(right.argmax())
    return float(right[best] / len(true)), true_when, float(values[order][best])


def bisect(space: Space, name: str, test: Test) -> float | None:
    """Find where the test flips along one input with the others at their middle; None where it does not."""
    axis = space[name]
    if not isinstance(axis, Range):
        return None

    def answer(quantile: float) -> bool:
        point = {**central(space), name: float(axis.at(np.asarray(quantile)))}
        return bool(test({key: np.array([value]) for key, value in point.items()})[0])

    low, high = 0.0, 1.0
    at_low = answer(low)
    if at_low == answer(high):
        return None
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if answer(middle) == at_low else (low, middle)
    return float(axis.at(np.asarray((low + high) / 2)))


def share_and_verdict(claim: Computed, space: Space, context: Context) -> tuple[float, str]:
    """Sample a space; return the share of true among the defined samples, and the verdict it gives."""
    share, verdict = _judged(claim, *claim.outcome(sample(space), context)[:2])
    if verdict == "undefined":
        raise ValueError(f"claim {claim.id}: no sample of its space is defined")
    return share, verdict


def _judged(claim: Computed, defined: NDArray[np.bool_], true: NDArray[np.bool_]) -> tuple[float, str]:
    # where own prices leave no answer that is one; elsewhere callers call it a fault
    if not defined.any():
        return np.nan, "undefined"
    share = float(true[defined].mean())
    return share, verdict_of_share(share, claim.quantifier)


def flipped(claim: Computed, context: Context) -> str:
    """Return the verdict of a computed claim under its counterfactual."""
    return share_and_verdict(claim, claim.counterfactual.apply(claim.space(context)), context)[1]


def by_choice(claim: Computed, name: str, context: Context) -> pd.DataFrame:
    """Give a computed claim's verdict for each value of one of its choices, for example each way to have a node.

    Parameters
    ----------
    claim : Computed
        Of the registry.
    name : str
        An input of its scenario space that is a choice.
    context : Context
        The day of the data and the prices.

    Returns
    -------
    DataFrame
        One row for each value: the input's name, ``share_true``, ``verdict``; undefined where the question has no
        answer for that value.

    Raises
    ------
    KeyError
        If the space has no such choice.
    """
    space = claim.space(context)
    axis = space[name]
    if not isinstance(axis, Choice):
        raise KeyError(f"{name} of {claim.id} is a range, not a choice")
    # the samples of the verdict itself, so that a share is the same wherever it stands
    points = sample(space)
    defined, true, _ = claim.outcome(points, context)
    rows = []
    for value in axis.values:  # noqa: PD011 - a field of Choice, not of a frame
        here = points[name] == value
        share, verdict = _judged(claim, defined[here], true[here])
        rows.append({name: value, "share_true": share, "verdict": verdict})
    return pd.DataFrame(rows)


def share_where(claim: Claim, context: Context, **inputs: Any) -> float:
    """Share of a computed claim's defined samples that are true with some inputs otherwise than in its space. [1].

    Parameters
    ----------
    claim : Claim
        A computed one of the registry.
    context : Context
        The day of the data and the prices.
    **inputs
        A `Range` or `Choice` in place of the input's own, or the value at which it is held.

    Raises
    ------
    TypeError
        If the claim is not computed.
    KeyError
        If the space has no such input.
    """
    if not isinstance(claim, Computed):
        raise TypeError(f"claim {claim.id} has no samples")
    axes = {
        name: axis if isinstance(axis, Range | Choice) else Choice((axis,), "held") for name, axis in inputs.items()
    }
    space = claim.space(context)
    fixed(space, **inputs)
    return share_and_verdict(claim, {**space, **axes}, context)[0]


def evaluate(claim: Claim, context: Context) -> Verdict:
    """Compute the verdict of one claim.

    Parameters
    ----------
    claim : Claim
        Of the registry.
    context : Context
        The day of the data.

    Returns
    -------
    Verdict

    Raises
    ------
    ValueError
        If a definition's structure is absent from the model, or no sample of a space is defined: faults of the
        claim's test, not answers.
    """
    if isinstance(claim, Computed):
        return _computed(claim, context)
    if isinstance(claim, MarketFact):
        return _market_fact(claim, context)
    if isinstance(claim, Definition):
        return _definition(claim, context)
    raise TypeError(f"claim {claim.id}: a kind without a rule, {type(claim).__name__}")


def _computed(claim: Computed, context: Context) -> Verdict:
    space = claim.space(context)
    points = sample(space)
    defined, true, outcome = claim.outcome(points, context)
    share, verdict = _judged(claim, defined, true)
    if verdict == "undefined":
        if not prices_in_force(context.prices).rows:
            raise ValueError(f"claim {claim.id}: no sample of its space is defined")
        said = "with these prices the question has no answer anywhere"
        return Verdict(claim, context, verdict, decided_by=said, share_undefined=1.0)
    others = {share_and_verdict(claim, stretched(space, factor), context)[1] for factor in (0.5, 2.0)}
    boundary = find_boundary(
        space,
        {name: values[defined] for name, values in points.items()},
        true[defined],
        lambda at: claim.outcome(at, context)[1],
    )
    values = None if outcome.value is None else np.broadcast_to(outcome.value, defined.shape)[defined]
    return Verdict(
        claim,
        context,
        verdict,
        close=_near_limit(share, claim.quantifier) or others != {verdict},
        share_true=share,
        share_undefined=float(1 - defined.mean()),
        computed=None if values is None else _band(values, claim.stated),
        decided_by=_decided_by(claim, boundary, share) + _by_value(claim, boundary, points, defined, true),
        boundary=boundary,
    )


def _near_limit(share: float, quantifier: str) -> bool:
    return any(abs(share - limit) <= CLOSE for limit in limits(quantifier))


def _band(values: NDArray[np.float64], stated: Stated | None) -> dict[str, float]:
    p05, median, p95 = (float(v) for v in np.percentile(values, [5, 50, 95]))
    band = {"p05": p05, "median": median, "p95": p95}
    return band if stated is None else band | {"share_inside": float(stated.contains(values).mean())}


def _band_of_rows(values: NDArray[np.float64], stated: Stated | None) -> dict[str, float]:
    """Return the band of dated rows; of a few, their own ends."""
    band = _band(values, stated)
    return band if len(values) > FEW_ROWS else band | {"p05": float(values.min()), "p95": float(values.max())}


def _decided_by(claim: Computed, boundary: Boundary | None, share: float) -> str:
    if boundary is None:
        return "every sample agrees" if share in (0.0, 1.0) else "no single input decides"
    called = claim.inputs.get(boundary.input, boundary.input.replace("_", " "))
    at = boundary.threshold if isinstance(boundary.threshold, str) else f"{float(f'{boundary.threshold:.3g}'):,g}"
    # a threshold that leaves errors says so
    fits = "" if boundary.accuracy >= 1 - CLOSE else f" (fits {boundary.accuracy:.0%} of the samples)"
    phrase = PHRASES.get((boundary.input, at))
    if phrase is not None:
        return f"true {'where' if boundary.true_when == 'is' else 'except where'} {phrase}{fits}"
    verb = "" if boundary.true_when.startswith("is") else "is "
    return f"true where {called} {verb}{boundary.true_when} {at}{fits}"


def _by_value(
    claim: Computed, boundary: Boundary | None, points: Point, defined: NDArray[np.bool_], true: NDArray[np.bool_]
) -> str:
    """Tell shares apart where the whole has no threshold: by a claim's own split, else by what matters most."""
    answers = true[defined]
    if boundary is not None or answers.min() == answers.max():
        return ""
    if claim.split is not None:
        named = np.asarray(points[claim.split])[defined]
        shares = [f"{answers[named == value].mean():.0%} ({_spoken(value)})" for value in np.unique(named)]
        return f"; by {claim.inputs[claim.split].strip(',')}: true in {', '.join(shares)}"
    apart = {name: _apart(np.asarray(values)[defined], answers) for name, values in points.items()}
    name = max(apart, key=lambda each: apart[each][0])
    if apart[name][0] < TELLING:
        return ""
    called = claim.inputs.get(name, name.replace("_", " ")).strip(",")
    return f"; {called} matters most: true in {apart[name][1]}"


def _apart(values: NDArray[Any], true: NDArray[np.bool_]) -> tuple[float, str]:
    """Say how far the share of true differs along an input, between its halves or among its choices."""
    names = np.unique(values)
    if len(names) <= FEW_VALUES:
        shares = sorted((float(true[values == value].mean()), _spoken(value)) for value in names)
        (low, least), (high, most) = shares[0], shares[-1]
        return high - low, f"{low:.0%} ({least}) to {high:.0%} ({most})"
    lower = values <= np.median(values)
    low, high = float(true[lower].mean()), float(true[~lower].mean())
    return abs(high - low), f"{low:.0%} of its lower half and {high:.0%} of its upper"


def _definition(claim: Definition, context: Context) -> Verdict:
    structure = claim.test()
    if not structure.present:
        raise ValueError(f"claim {claim.id}: the model does not have the structure that the definition names")
    return Verdict(claim, context, "by definition", decided_by=structure.departs_when)


def _market_fact(claim: MarketFact, context: Context) -> Verdict:
    """Compare the quantifier with the share of dated rows that support the fact.

    The text that states the fact is no evidence for it, so its own rows do not count.
    """
    evidence = claim.test(context)
    rows = evidence.rows[evidence.rows["source"] != "radar2026"]
    if rows.empty:
        return Verdict(claim, context, "unsupported", decided_by=evidence.searched)
    share = float(rows["supports"].mean())
    return Verdict(
        claim,
        context,
        "cited" if verdict_of_share(share, claim.quantifier) == "holds" else "contradicted",
        close=_near_limit(share, claim.quantifier),
        share_true=share,
        computed=_band_of_rows(rows["value"].to_numpy(dtype=float), claim.stated),
        decided_by=f"{int(rows['supports'].sum())} of {len(rows)} {evidence.called}",
        evidence=tuple(dict.fromkeys(rows["source"])),
    )
