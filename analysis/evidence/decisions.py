"""How sure a decision is: its chance over everything that is not known, and which of the unknowns it hangs on.

A decision is a question with an answer at every point of a space of inputs. Inputs are what a workload asks, what the
market asks, what a decoder keeps, what hardware reaches (the fitted constants with their intervals), and by how much
the times of the model miss measurements. The chance is a share of that space: as good as its ranges, and no better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.evidence import validation
from analysis.evidence.claims.decision import BLOCK, TOKENS_A_PASS
from analysis.evidence.claims.ownership import PLACE, WAYS, node_price
from analysis.evidence.claims.registry import Context
from analysis.evidence.claims.serving import ENGINE, GPU, GPUS, WIDTHS
from analysis.evidence.claims.speculation import ACCEPTANCE, COPIED, DRAFT_COST, DRAFT_LENGTHS
from analysis.evidence.claims.speculation import COPIES as COPY_LENGTHS
from analysis.evidence.scenarios import SAMPLES, SEED, Choice, Point, Range, Space, between, sample
from analysis.model.cost import api_usd_per_request
from analysis.model.queueing import Service, rate_within_budget
from analysis.reference import tables
from analysis.reference.efficiency import constants, memory_rule, put_together, recipe, slots
from analysis.reference.model_config import shipped
from analysis.reference.specs import Decoder, Efficiency, Replica, RequestMix, Tariff
from analysis.units import SECONDS_PER_HOUR

#: The model of the decisions, and in how many ways its replicas are put on the node. [GPUs of one replica]
MODEL = "llama-3.1-70b"
SHAPES = (4, 8)
#: A sparse model of larger total size, of which a token uses a twentieth.
SPARSE_MODEL = "gpt-oss-120b"
#: Within a second the whole node works on each request.
FASTEST_SHAPE = (8,)
#: Percentile of the requests that has to keep a budget.
PERCENTILE = 95.0
#: Bins of an input whose values are not a few choices, and resamples of an interval.
BINS, RESAMPLES = 16, 200
#: Points of a line along an input. In so many dimensions a sixteenth of one input has too much of some others, and its
#: neighbour as much too little of them: such a line would zigzag. Eighths are even.
POINTS_ALONG = 8
#: Share that a printed interval holds.
INTERVAL = 0.90

Origin = Literal["workload", "market", "decoder", "hardware", "model error"]

#: What each input is called, and who can find it out: the workload is known at home, a decoder is measured there.
INPUTS: Mapping[str, tuple[str, Origin]] = {
    "weights": ("format of the weights", "workload"),
    "prompt": ("prompt", "workload"),
    "answer": ("answer", "workload"),
    "cached_share": ("share of the prompt in a cache", "workload"),
    "rate_req_per_s": ("requests at the peak", "workload"),
    "cv": ("burstiness", "workload"),
    "day_share": ("mean over peak", "workload"),
    "budget_s": ("budget", "workload"),
    "useful": ("useful answers against the API's", "workload"),
    "ownership": ("way to have the node", "market"),
    "place": ("place in its price range", "market"),
    "api_usd_per_mtok": ("the API's price", "market"),
    "input_price_ratio": ("input price over output price", "market"),
    "cached_price_ratio": ("price of cached over other input", "market"),
    "acceptance": ("acceptance of drafts", "decoder"),
    "draft_cost": ("cost of a draft", "decoder"),
    "copied": ("acceptance of copied drafts", "decoder"),
    "block": ("block of a diffusion model", "decoder"),
    "tokens_a_pass": ("tokens of a pass over a block", "decoder"),
    "hopper.mbu": ("bandwidth reached", "hardware"),
    "hopper.mfu": ("arithmetic reached", "hardware"),
    "narrow.mfu": ("the same in 8 bit", "hardware"),
    "python.mfu": ("the same by the engine", "hardware"),
    "python.layer": ("fixed time of a layer", "hardware"),
    "prompt.layer": ("the same while prompts are read", "hardware"),
    "python.sequence": ("time of each sequence", "hardware"),
    "nvlink.share": ("link rate reached", "hardware"),
    "activations.share": ("activation traffic", "hardware"),
    "slower": ("measured over predicted time", "model error"),
}


@dataclass(frozen=True)
class Answer:
    """A decision's answer at every point: true or false, whether there is one, and the number that decides it."""

    true: NDArray[np.bool_]
    defined: NDArray[np.bool_]
    value: NDArray[np.float64]


@dataclass(frozen=True)
class Decision:
    """A question of a reader with the space of what is not known.

    Parameters
    ----------
    name : str
        Short and lower-case.
    question : str
        What is asked.
    undefined : str
        What it means where there is no answer.
    value : str
        What the number behind the answer is.
    space : callable
        Makes the space from a context.
    answer : callable
        Answers points in a context.
    """

    name: str
    question: str
    undefined: str
    value: str
    space: Callable[[Context], Space]
    answer: Callable[[Point, Context], Answer]


# --- What is not known -------------------------------------------------------------------------


@cache
def slower_than_predicted() -> Range:
    """Return how many times longer measured times are than predicted ones, on rows that no constant has seen.

    The middle nine tenths of single streams, batches and prompts of dense models; 1 is exact, above 1 the model is
    too fast.
    """
    frame = validation.shipped_errors()
    dense = [f"{regime}_dense" for regime in ("single_stream", "batching", "prefill")]
    held = frame[(frame["set"] == "validation") & frame["regime"].isin(dense)]["speed_ratio"]
    low, high = (float(f"{end:.3g}") for end in np.percentile(held, [5, 95]))
    return Range(low, high, f"measured over predicted times of {len(held)} rows that no constant has seen")


def hardware() -> dict[str, Range]:
    """Return the fitted constants that enter here, each over its 90 % interval; a share reached ends at 1.

    Examples
    --------
    >>> round(hardware()["hopper.mbu"].high, 2)
    1.0
    """
    found = {}
    for name, (_, origin) in INPUTS.items():
        if origin == "hardware":
            constant = constants()[name]
            # bandwidth and arithmetic that are reached are shares of what there is
            ends_at = 1.0 if name.endswith((".mbu", ".mfu")) else np.inf
            reason = f"90 % interval of the fit, {constant.rows} rows"
            found[name] = Range(constant.low, min(constant.high, ends_at), reason, ceiling=ends_at)
    return found


#: The dear end of the text, for output. [USD/Mtok]
DEAR = 15.0
PROMPT = Range(500, 8_000, "from a message to a long document", floor=1)
ANSWER = Range(50, 1_000, "from a short record to a page", floor=1)
PEAK = Range(0.1, 100, "from six requests a minute to a busy service", floor=0)
CACHED = Range(0, 0.9, "from nothing to all but the last tenth of the prompt", scale="uniform", floor=0, ceiling=0.95)
BURSTS = Range(1, 2, "from Poisson arrivals to a spread twice as wide", floor=0)
SECOND = Range(0.5, 1.0, "under a second: from half of one to all of it", scale="uniform", floor=0.1)
#: Draft lengths of which a server takes the best: where drafts cost, and where they are copied.
LENGTHS = {"speculative": DRAFT_LENGTHS, "look-up": COPY_LENGTHS}
OF_DRAFTS: dict[str, Range | Choice] = {"acceptance": ACCEPTANCE, "draft_cost": DRAFT_COST}
OF_COPIES: dict[str, Range | Choice] = {"copied": COPIED}
OF_BLOCKS: dict[str, Range | Choice] = {"block": BLOCK, "tokens_a_pass": TOKENS_A_PASS}


def _served() -> dict[str, Range | Choice]:
    return {"weights": WIDTHS, "prompt": PROMPT, "answer": ANSWER, "cached_share": CACHED}


def _physics() -> dict[str, Range | Choice]:
    return {**hardware(), "slower": slower_than_predicted()}


# --- Nodes -------------------------------------------------------------------------------------


def decoder_of(kind: str, point: Point) -> Decoder:
    """Return one of the decoders at the points of a space.

    Parameters
    ----------
    kind : {"autoregressive", "speculative", "look-up", "diffusion"}
    point : mapping
        With the inputs of that decoder.
    """
    if kind == "speculative":
        return Decoder.speculative(
            acceptance=point["acceptance"], draft_length=point["drafts"], draft_cost=point["draft_cost"]
        )
    if kind == "look-up":
        return Decoder.speculative(acceptance=point["copied"], draft_length=point["drafts"], draft_cost=0.0)
    if kind == "diffusion":
        passes = np.maximum(np.asarray(point["block"]) / point["tokens_a_pass"], 1.0)
        return Decoder.diffusion(block_tokens=point["block"], passes=passes)
    return Decoder.autoregressive()


def decoders_of(kind: str, point: Point) -> list[Decoder]:
    """List the configurations that a decoder chooses from: drafts of several lengths where the point has none.

    Parameters
    ----------
    kind, point
        As `decoder_of`; where the point has ``drafts``, that length is the only one.

    Returns
    -------
    list of Decoder

    Examples
    --------
    >>> point = {"acceptance": 0.7, "draft_cost": 0.05}
    >>> [len(decoders_of(kind, point)) for kind in ("autoregressive", "speculative")]
    [1, 5]
    """
    if kind not in LENGTHS or "drafts" in point:
        return [decoder_of(kind, point)]
    return [decoder_of(kind, {**point, "drafts": length}) for length in LENGTHS[kind]]


@cache
def replica_of(model: str, weights: str, gpus: int) -> Replica:
    """Return a shipped model on so many H100, its weights in a format unless it is released in one of its own."""
    config = shipped(model)
    precision = config.precision
    if precision.weights == "bf16":
        precision = precision.with_formats(weights=weights, kv=None)
    return Replica(config.architecture, precision, tables.accelerator(GPU, as_of=tables.NEWEST), gpus)


def reached(replica: Replica, point: Point) -> Efficiency:
    """Return what a replica reaches at the points of a space: constants that the space has, the others as fitted."""
    values = {name: point.get(name, constant.value) for name, constant in constants().items()}
    return put_together(recipe(replica, ENGINE), values)


def node_req_per_s(
    kind: str,
    point: Point,
    *,
    budget_s: Any,
    shapes: Sequence[int] = SHAPES,
    percentile: float | None = PERCENTILE,
    model: str = MODEL,
) -> NDArray[np.float64]:
    """Most requests per second that one node of eight H100 takes within a budget, its replicas and drafts cut best.

    Parameters
    ----------
    kind : str
        As `decoder_of`.
    point : mapping of str to array, shape (n,)
        ``weights``, ``prompt``, ``answer``, and what else of the inputs is varied.
    budget_s : float or array
        Time of a whole answer. [s]
    shapes : sequence of int
        GPUs of a replica, of which the best is taken. [1]
    percentile : float, optional
        Which percentile keeps it; the mean without. [1]
    model : str
        A shipped architecture.

    Returns
    -------
    array, shape (n,)
        0 where even an empty replica breaks the budget. [request/s]

    Notes
    -----
    Times that are all f times longer are a budget f times shorter: so enters by how much measurements are slower.
    """
    weights = np.asarray(point["weights"])
    if kind in LENGTHS and "drafts" not in point:
        # all lengths in one call, the points one length after the other
        lengths = LENGTHS[kind]
        every = {name: np.tile(np.broadcast_to(values, weights.shape), len(lengths)) for name, values in point.items()}
        every["drafts"] = np.repeat(lengths, weights.size)
        budgets = np.tile(np.broadcast_to(np.asarray(budget_s, float), weights.shape), len(lengths))
        rates = node_req_per_s(kind, every, budget_s=budgets, shapes=shapes, percentile=percentile, model=model)
        return np.asarray(rates.reshape(len(lengths), weights.size).max(axis=0))
    slower = np.broadcast_to(np.asarray(point.get("slower", 1.0), float), weights.shape)
    budget = np.broadcast_to(np.asarray(budget_s, float), weights.shape) / slower
    best = np.zeros(weights.shape)
    for width in np.unique(weights):
        here = weights == width
        at = {name: np.broadcast_to(np.asarray(values), weights.shape)[here] for name, values in point.items()}
        for gpus in shapes:
            replica = replica_of(model, str(width), gpus)
            service = Service.of(
                replica,
                decoder_of(kind, at),
                input_tokens=at["prompt"],
                output_tokens=at["answer"],
                cached_tokens=at["prompt"] * at.get("cached_share", 0.0),
                slots=slots(ENGINE),
                rule=memory_rule(ENGINE),
                efficiency=reached(replica, at),
            )
            rate = rate_within_budget(service, budget[here], percentile=percentile, cv=at.get("cv", 1.0))
            best[here] = np.maximum(best[here], GPUS // gpus * np.asarray(rate) / slower[here])
    return best


def _nodes(rate: Any, of_one: Any) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.ceil(np.asarray(rate) / of_one)


# --- The decisions -----------------------------------------------------------------------------


def _against_api(context: Context) -> Space:
    same = tables.tariffs(MODEL, as_of=context.as_of, prices=context.prices)
    sold = [tariff for tariff in same.values() if tariff.output_usd_per_mtok > 0]
    ratios = [tariff.input_usd_per_mtok / tariff.output_usd_per_mtok for tariff in sold]
    # own prices can be above the text's dear end, or nothing at all
    cheapest = min([DEAR, *(float(tariff.output_usd_per_mtok) for tariff in same.values())])
    return {
        **_served(),
        "rate_req_per_s": PEAK,
        "day_share": Range(0.1, 0.6, "from a short office day to nearly around the clock", scale="uniform"),
        "budget_s": Range(2, 30, "an answer that somebody waits for, but not a second"),
        "useful": Range(0.8, 1.0, "assumed: up to one answer in five is worse than the API's", scale="uniform"),
        "ownership": WAYS,
        "place": PLACE,
        "api_usd_per_mtok": between(
            cheapest, DEAR, "from the same model at its cheapest seller to the text's dear end"
        ),
        "input_price_ratio": between(
            min([0.125, *(ratio for ratio in ratios if ratio > 0)]),
            1.0,
            "from an eighth, as frontier models ask, to as much as output",
        ),
        "cached_price_ratio": Range(
            0.1, 1.0, "from a tenth of the input price, as sellers with a discount ask, to none"
        ),
        **OF_DRAFTS,
        **_physics(),
    }


def _owned(point: Point, context: Context) -> Answer:
    kinds = ("autoregressive", "speculative")
    rates = [node_req_per_s(kind, point, budget_s=point["budget_s"]) for kind in kinds]
    of_one = np.maximum(*rates)
    defined = of_one > 0
    nodes = _nodes(point["rate_req_per_s"], of_one)
    per_hour = SECONDS_PER_HOUR * np.asarray(point["rate_req_per_s"]) * point["day_share"] * point["useful"]
    owned = np.where(defined, nodes, np.nan) * node_price(point, context) / per_hour
    reading = np.asarray(point["input_price_ratio"] * point["api_usd_per_mtok"])
    tariff = Tariff(reading, point["api_usd_per_mtok"], point["cached_price_ratio"] * reading)
    mix = RequestMix(point["prompt"], point["answer"], point["prompt"] * point["cached_share"])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = owned / api_usd_per_request(tariff, mix)
    return Answer(np.nan_to_num(ratio, nan=np.inf) < 1, defined, ratio)


def _within_a_second() -> dict[str, Range | Choice]:
    return {**_served(), "cv": BURSTS, "budget_s": SECOND}


def _diffusion_beats(point: Point, context: Context, *, rival: str) -> Answer:
    theirs, blocks = (
        node_req_per_s(kind, point, budget_s=point["budget_s"], shapes=FASTEST_SHAPE) for kind in (rival, "diffusion")
    )
    defined = np.maximum(theirs, blocks) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = blocks / theirs
    return Answer(blocks > theirs, defined, ratio)


def _best_known(point: Point, *, model: str = MODEL) -> NDArray[np.float64]:
    rates = [
        node_req_per_s(kind, point, budget_s=point["budget_s"], shapes=FASTEST_SHAPE, model=model)
        for kind in ("autoregressive", "speculative")
    ]
    return np.maximum(*rates)


def _in_reach(point: Point, context: Context, *, model: str) -> Answer:
    rate = _best_known(point, model=model)
    return Answer(rate > 0, np.ones(rate.shape, bool), rate)


def _one_node(point: Point, context: Context) -> Answer:
    rate = _best_known(point)
    nodes = _nodes(point["rate_req_per_s"], rate)
    return Answer(nodes <= 1, rate > 0, np.where(rate > 0, nodes, np.nan))


DECISIONS = {
    decision.name: decision
    for decision in (
        Decision(
            "own",
            "Is a node of one's own cheaper than the API, by requests?",
            "no node of eight H100 keeps the budget",
            "cost of a request on the node over the bill of the API",
            _against_api,
            _owned,
        ),
        Decision(
            "diffusion",
            "Does a diffusion model serve more requests within a second than the same model with drafts?",
            "neither keeps the budget",
            "requests of the diffusion model over those with drafts",
            lambda context: {**_within_a_second(), **OF_DRAFTS, **OF_BLOCKS, **_physics()},
            partial(_diffusion_beats, rival="speculative"),
        ),
        Decision(
            "look-up",
            "Does a diffusion model serve more requests within a second than the same model that copies from the"
            " prompt?",
            "neither keeps the budget",
            "requests of the diffusion model over those with look-up",
            lambda context: {**_within_a_second(), **OF_COPIES, **OF_BLOCKS, **_physics()},
            partial(_diffusion_beats, rival="look-up"),
        ),
        Decision(
            "second",
            "Is an answer within a second in reach of a 70B model on eight H100, with drafts if need be?",
            "never",
            "requests per second of one node within the budget",
            lambda context: {**_within_a_second(), **OF_DRAFTS, **_physics()},
            partial(_in_reach, model=MODEL),
        ),
        Decision(
            "sparse second",
            f"Is an answer within a second in reach of a sparse model ({SPARSE_MODEL}) on eight H100, with drafts if"
            " need be?",
            "never",
            "requests per second of one node within the budget",
            lambda context: {**_within_a_second(), **OF_DRAFTS, **_physics()},
            partial(_in_reach, model=SPARSE_MODEL),
        ),
        Decision(
            "nodes",
            "Where it is in reach: is one node enough?",
            "no number of nodes keeps the budget",
            "nodes",
            lambda context: {**_within_a_second(), "rate_req_per_s": PEAK, **OF_DRAFTS, **_physics()},
            _one_node,
        ),
    )
}


# --- Chance, and what it hangs on --------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """A decision over its space: the points, the answers, the chance with its interval of sampling."""

    decision: Decision
    points: dict[str, NDArray[Any]]
    answer: Answer
    chance: float
    low: float
    high: float

    @property
    def defined_share(self) -> float:
        """Share of the space where there is an answer. [1]."""
        return float(self.answer.defined.mean())

    @property
    def wrong(self) -> float:
        """Chance to be wrong for who decides by the chance alone. [1]."""
        return min(self.chance, 1 - self.chance)


def judge(name: str, context: Context, *, count: int = SAMPLES, seed: int = SEED) -> Judged:
    """Answer a decision all over its space.

    Parameters
    ----------
    name : str
        A key of `DECISIONS`.
    context : Context
        The day of the data and the prices.
    count, seed : int
        As `analysis.evidence.scenarios.sample`.

    Returns
    -------
    Judged
        The interval is that of a share of so many points, by bootstrap; the points are spread more evenly than by
        chance, so it is on the wide side.
    """
    decision = DECISIONS[name]
    points = sample(decision.space(context), count=count, seed=seed)
    answer = decision.answer(points, context)
    true = answer.true[answer.defined]
    draws = np.random.default_rng(seed).integers(0, true.size, (RESAMPLES, true.size))
    low, high = np.percentile(true[draws].mean(axis=1), _ends())
    return Judged(decision, points, answer, float(true.mean()), float(low), float(high))


def _ends() -> tuple[float, float]:
    return 50 * (1 - INTERVAL), 50 * (1 + INTERVAL)


def bins_of(values: NDArray[Any], count: int = BINS) -> NDArray[np.intp]:
    """Sort the samples of an input into bins: one for each value of a choice, else equally many samples in each."""
    names, index = np.unique(values, return_inverse=True)
    if len(names) <= count:
        return np.asarray(index)
    order = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return np.asarray(order * count // len(values))


def first_order(values: NDArray[Any], outcome: NDArray[np.float64]) -> float:
    r"""Share of an outcome's variance that one input explains alone: the first-order Sobol index, from given samples.

    .. math:: S_i = \frac{\mathrm{Var}\,\mathrm{E}[Y \mid X_i]}{\mathrm{Var}\,Y}

    Parameters
    ----------
    values : array, shape (n,)
        The input's samples.
    outcome : array, shape (n,)
        The outcome at them.

    Returns
    -------
    float
        Estimated within bins of the input; what the bins would explain by chance is taken off, so that an input without
        influence is at 0 on average, and can be slightly below. 0 where the outcome never varies. [1]

    Examples
    --------
    >>> x = np.linspace(0, 1, 4096)
    >>> round(first_order(x, x), 2), round(first_order(x, np.resize([0.0, 1.0], 4096)), 2)
    (1.0, -0.0)
    """
    return float(_first_orders(bins_of(values), outcome[None])[0])


def _first_orders(index: NDArray[np.intp], outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
    count = outcomes.shape[1]
    sizes = np.bincount(index).astype(float)
    used = sizes > 0
    sums = np.array([np.bincount(index, weights=row, minlength=len(sizes)) for row in outcomes])[:, used]
    total = outcomes.sum(axis=1)
    between_bins = (sums**2 / sizes[used]).sum(axis=1) - total**2 / count
    around = (outcomes**2).sum(axis=1) - total**2 / count
    spare = count - used.sum()
    by_chance = (used.sum() - 1) * (around - between_bins) / max(spare, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (between_bins - by_chance) / around
    return np.where(around > 0, found, 0.0)


def wrong_if_known(values: NDArray[Any], true: NDArray[np.bool_]) -> float:
    """Chance to decide wrongly if this input were known and all others not. [1].

    Examples
    --------
    >>> x = np.linspace(0, 1, 4096)
    >>> round(wrong_if_known(x, x > 0.5), 3), round(wrong_if_known(x, np.resize([True, False], 4096)), 3)
    (0.0, 0.5)
    """
    index = bins_of(values)
    sizes = np.bincount(index)
    trues = np.bincount(index, weights=true)
    return float(np.minimum(trues, sizes - trues).sum() / sizes.sum())


def influence(judged: Judged, *, seed: int = SEED) -> pd.DataFrame:
    """Say how much of a decision each input explains, over the points of its chance.

    Parameters
    ----------
    judged : Judged
    seed : int
        Of the resampling.

    Returns
    -------
    DataFrame
        One row for each input, the most influential first: ``input``, ``called``, ``origin``, ``index`` (first-order
        Sobol index of true and false), ``low``, ``high`` (90 % interval by bootstrap), ``wrong_if_known`` (chance to
        decide wrongly if it were known), ``saves`` (by how much that is less than without).

    Notes
    -----
    What the indices leave of 1 is explained only by several inputs together.
    """
    defined = judged.answer.defined
    true = judged.answer.true[defined]
    draws = np.random.default_rng(seed).integers(0, true.size, (RESAMPLES, true.size))
    rows = []
    for name, values in judged.points.items():
        index = bins_of(values[defined])
        at = float(_first_orders(index, true.astype(float)[None])[0])
        again = np.array([_first_orders(index[draw], true[draw].astype(float)[None])[0] for draw in draws])
        # drawn again, samples repeat and bins explain a little more by chance: only the spread is taken
        low, high = at + np.percentile(again - again.mean(), _ends())
        called, origin = INPUTS[name]
        wrong = wrong_if_known(values[defined], true)
        rows.append(
            {
                "input": name,
                "called": called,
                "origin": origin,
                "index": at,
                "low": float(low),
                "high": float(high),
                "wrong_if_known": wrong,
                "saves": judged.wrong - wrong,
            }
        )
    return pd.DataFrame(rows).sort_values(["index", "input"], ascending=[False, True], ignore_index=True)


#: What no input explains alone.
ONLY_TOGETHER = "only in combination"


def by_origin(found: pd.DataFrame) -> pd.DataFrame:
    """Add up the indices of an `influence` by origin; the rest is what only several inputs together explain.

    Returns
    -------
    DataFrame
        ``origin`` and ``index``; the last row is "only in combination". An index below 0 is noise around
        none, and counts as none.
    """
    sums = (
        found.assign(index=found["index"].clip(lower=0))
        .groupby("origin", as_index=False)["index"]
        .sum()
        .sort_values("index", ascending=False, kind="stable")
    )
    rest = max(0.0, 1 - float(sums["index"].sum()))
    return pd.concat([sums, pd.DataFrame([{"origin": ONLY_TOGETHER, "index": rest}])], ignore_index=True)


def chances(found: Sequence[Judged]) -> pd.DataFrame:
    """Put judged decisions side by side.

    Returns
    -------
    DataFrame
        ``decision``, ``question``, ``chance``, ``low``, ``high``, ``undefined`` (share of the space), ``value_p05``,
        ``value_median``, ``value_p95`` of the number behind, where there is an answer: over the samples of the chance,
        those where the one keeps the budget and the other never does are endless ratios and count as such.
    """
    rows = []
    for judged in found:
        value = judged.answer.value[judged.answer.defined]
        # a sample itself, not a mean of two: between a number and an endless one there is no middle
        ends = np.percentile(value, [5, 50, 95], method="inverted_cdf") if value.size else (np.nan,) * 3
        p05, median, p95 = ends
        rows.append(
            {
                "decision": judged.decision.name,
                "question": judged.decision.question,
                "chance": judged.chance,
                "low": judged.low,
                "high": judged.high,
                "undefined": 1 - judged.defined_share,
                "value_p05": float(p05),
                "value_median": float(median),
                "value_p95": float(p95),
            }
        )
    return pd.DataFrame(rows)


def along(judged: Judged, name: str) -> pd.DataFrame:
    """Follow a decision along one of its inputs, all others as uncertain as they are.

    Parameters
    ----------
    judged : Judged
    name : str
        An input of its space.

    Returns
    -------
    DataFrame
        One row for each choice or each of `POINTS_ALONG` bins: ``decision``, ``at`` (median of the bin, or the choice),
        ``chance`` (NaN where the bin has no answer), ``undefined`` (share of the bin).

    Raises
    ------
    KeyError
        If the space has no such input.
    """
    values = judged.points[name]
    index = bins_of(values, POINTS_ALONG)
    rows = []
    for place in range(int(index.max()) + 1):
        here = index == place
        answered = here & judged.answer.defined
        numeric = np.issubdtype(values.dtype, np.number)
        rows.append(
            {
                "decision": judged.decision.name,
                "at": float(np.median(values[here])) if numeric else str(values[here][0]),
                "chance": float(judged.answer.true[answered].mean()) if answered.any() else np.nan,
                "undefined": float(1 - judged.answer.defined[here].mean()),
            }
        )
    return pd.DataFrame(rows)
