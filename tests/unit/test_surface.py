"""Every public function of the model, found by inspection, under random inputs; and random command lines.

A function that is new takes part by itself where its arguments have ranges here. Where one has not, ``make soak``
says so: give it a range, or say in `APART` why it is not drawn.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import analysis.model
from analysis import cli
from analysis.inputs import InputError
from analysis.model import decoders, decoding
from analysis.model.decoding import IDEAL
from analysis.model.head_to_head import diffusion, one_by_one
from analysis.reference import tables
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import replica
from analysis.reference.specs import Counted, Decoder, MemoryRule, Ownership, Replica, RequestMix, Tariff, Workload
from analysis.reference.tables import SNAPSHOT

#: Where an argument is drawn from, by its name: log-uniform between the two.
RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("price_usd_per_node_hour", "hourly_usd", "listed_usd", "rent_usd"), (2, 120)),
    **dict.fromkeys(("reserved_usd", "sublet_usd", "sublet_usd_per_node_hour"), (1, 40)),
    # a node is never asked for more than it makes, and a faster one is faster
    "node_tok_per_s": (26_000, 90_000),
    "faster_tok_per_s": (91_000, 200_000),
    **dict.fromkeys(("read_tok_per_s", "write_tok_per_s"), (50, 50_000)),
    **dict.fromkeys(("cost_usd_per_mtok", "output_usd_per_mtok", "api_usd_per_mtok"), (0.05, 80)),
    **dict.fromkeys(("usd_per_unit", "api_usd_per_unit", "usd_per_request", "api_usd_per_request"), (1e-5, 1)),
    **dict.fromkeys(("utilization", "useful_share", "mfu", "mbu"), (0.02, 1)),
    **dict.fromkeys(("rate_req_per_s", "saturated_req_per_s", "node_req_per_s", "node_units_per_s"), (0.01, 50)),
    **dict.fromkeys(("discount", "input_weight"), (0.1, 0.9)),
    "requests_per_document": (1, 30),
    "hours": (1, 800),
    "busy_hours": (1, 200),
    "starts": (1, 20),
    "start_hours": (0.01, 1),
    "upfront_usd": (1e3, 1e6),
    "purchase_usd": (1e5, 5e5),
    **dict.fromkeys(("life_years", "term_years"), (1, 7)),
    "residual_share": (0.01, 0.4),
    "interest_per_year": (0.01, 0.2),
    "then_listed_usd": (30, 120),
    "then_committed_usd": (5, 30),
    # what a pass is made of
    **dict.fromkeys(("batch", "positions", "small"), (1, 300)),
    "large": (301, 900),
    **dict.fromkeys(("context_tokens", "input_tokens", "tokens"), (600, 60_000)),
    "output_tokens": (2, 500),
    "cached_tokens": (1, 500),
    "chunk_tokens": (256, 16_384),
    "slots": (1, 500),
    **dict.fromkeys(("tensor_parallel", "kv_copies", "gpus", "prompt_passes"), (1, 8)),
    "experts": (16, 256),
    "top_k": (1, 8),
    "memory_byte": (1e10, 1e13),
    "weights": (1e8, 1e12),
    **dict.fromkeys(("inputs", "outputs"), (512, 16_384)),
    **dict.fromkeys(("bytes_per_weight", "bytes_per_activation"), (0.5, 4)),
    "peak_flop_per_s": (1e13, 5e15),
    "mem_bw_byte_per_s": (1e11, 1e13),
    **dict.fromkeys(("ridge_flop_per_byte", "intensity_flop_per_byte"), (1, 1000)),
    "flop": (1e9, 1e16),
    "byte": (1e8, 1e13),
    "per": (1e9, 1e12),
    **dict.fromkeys(("reading_s", "computing_s"), (1e-4, 1)),
    "exponent": (1, 6),
}
#: What a queue can serve: arrivals times service stay below one.
QUEUES: dict[str, tuple[float, float]] = {
    "rate_req_per_s": (0.01, 0.5),
    "floor_s": (0.1, 2),
    **dict.fromkeys(("marginal_s", "passes_slope_s", "prompt_s"), (0.001, 0.3)),
    "budget_s": (2.5, 30),
    **dict.fromkeys(("stay_s", "ttft_s"), (0.1, 5)),
    "span_s": (0.01, 0.1),  # a part of the stay
    **dict.fromkeys(("share_of_passes", "skew"), (0.1, 0.9)),
    "mean_s": (0.1, 10),
    "variance_s2": (0.01, 10),
    "percentile": (1, 99),
    "tpot_s": (0.001, 0.1),
    "tok_per_s": (50, 50_000),
    "job_s": (0.05, 1.5),
    "servers": (10, 30),
    "offered": (0.5, 9),
    "window_hours": (1, 12),
    "documents": (100, 1e6),
    "acceptance": (0.1, 0.95),
    "draft_cost": (0.01, 0.5),
    "neighbour_share": (0.55, 0.95),  # above what chance gives, at most 8 of 16
}
RANGES |= {name: bounds for name, bounds in QUEUES.items() if name not in RANGES}
#: Arguments that count things.
WHOLE = frozenset(
    {
        *("batch", "positions", "small", "large", "slots", "tensor_parallel", "kv_copies", "gpus", "prompt_passes"),
        *("experts", "top_k", "starts", "servers"),
    }
)
#: Functions that are not drawn, and why.
APART = {
    "decoding.demand": "its parts are made inside; pass_time is the sum of what it does",
    "decoding.time_of": "takes what demand makes",
    "decoding.schedule_s": "takes steps; run_s, tpot_s and prefill_s are made of it",
    "decoding.prompt_part": "returns a part of a pass; prefill_s is made of it",
    "decoding.prefill_steps": "returns steps; prefill_s is made of it",
    "decoding.token_steps": "returns steps; tpot_s is made of it",
    "decoding.run_steps": "returns steps; run_s is made of it",
    "cost.rival_bills": "picks from tables of tariffs; api_usd_per_request is what it computes with",
    "cost.sweep_accounts": "a frame about tables of tariffs",
    "ownership.discounts_carried_over": "a frame about rows of a table",
    **dict.fromkeys(
        (
            "capacity.check",
            "capacity.fleet",
            "capacity.fleets",
            "capacity.best",
            "capacity.cheapest_offer",
            "capacity.day",
            "capacity.sweep_night",
            "replayed.floor_s",
            "replayed.fleet_by_simulation",
        ),
        "about a workload and a fleet; its own tests draw those",
    ),
    **dict.fromkeys(
        ("queueing.under_load", "queueing.rate_within_budget", "queueing.busy_share"),
        "about a service; its own tests draw those",
    ),
    **dict.fromkeys(
        (
            *(
                "head_to_head.crossovers",
                "head_to_head.speculation",
                "head_to_head.look_up",
                "head_to_head.diffusion",
                "head_to_head.best",
            ),
            *("head_to_head.rate_within", "head_to_head.sweep_batch", "head_to_head.winners", "head_to_head.crossover"),
            *("head_to_head.breakeven_batch", "head_to_head.context_without_breakeven"),
        ),
        "searches among rivals; its own tests try them one by one",
    ),
    **dict.fromkeys(
        ("sweep.candidates", "sweep.piece", "sweep.sweep", "sweep.feasible_count", "sweep.whole", "sweep.cheapest"),
        "about a grid of capacity questions; its own tests hold it against capacity.fleet",
    ),
    "sparse.sweep_width": "a frame about expert parallel groups, which have to divide the experts",
    "head_to_head.configuration": "says a configuration in words",
    "roofline.stored_and_computed": "a frame about formats by their names",
}
#: Results that may have no end: a cache of nothing binds no batch and no context.
ENDLESS = frozenset(
    {
        *("transformer.context_limit", "transformer.context_limit_in_memory", "batching.context_limits"),
        *("decoding.max_batch", "head_to_head.acceptance_to_win", "head_to_head.tokens_per_pass_to_win"),
    }
)


#: Results that say by how much one thing is above another, and so may be below nothing.
DIFFERENCES = (".premium_usd_per_request",)


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Find every public function of the model."""
    for found in pkgutil.iter_modules(analysis.model.__path__):
        module = importlib.import_module(f"analysis.model.{found.name}")
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_"):
                yield f"{found.name}.{name}", function


FUNCTIONS = dict(public())
#: These lay out tables, with a row for each of the numbers that they are given.
TABLES = frozenset(name for name in FUNCTIONS if re.search(r"\.(sweep_|roof$)", name))


def replicas() -> dict[str, Replica]:
    """Make small and large, dense and sparse, wide and narrow ones."""
    return {
        "dense": replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT),
        "wide": replica("llama-3.1-70b", "h100-sxm", as_of=SNAPSHOT, gpus=8, weights="fp8"),
        "sparse": replica("gpt-oss-120b", "h200-sxm", as_of=SNAPSHOT, gpus=2),
        "latent": replica("deepseek-v2-lite", "h100-sxm", as_of=SNAPSHOT, gpus=2),
    }


REPLICAS = replicas()
DECODERS = (
    Decoder.autoregressive(),
    Decoder.speculative(acceptance=0.7, draft_length=3, draft_cost=0.1),
    Decoder.diffusion(block_tokens=32, passes=9),
)


def number(draw: np.random.Generator, name: str, of: str = "") -> float:
    low, high = (QUEUES if of.startswith("queueing.") and name in QUEUES else RANGES)[name]
    value = float(np.exp(draw.uniform(np.log(low), np.log(high))))
    if name == "tensor_parallel":  # a divisor of the heads
        return float(2 ** round(np.log2(value)))
    return float(round(value)) if name in WHOLE else value


def record(draw: np.random.Generator, name: str, kind: str) -> Any:
    """Make the record that an argument wants, by its name or its type; None where there is none."""
    chosen = REPLICAS[str(draw.choice(list(REPLICAS)))]
    mix = RequestMix(number(draw, "input_tokens"), number(draw, "output_tokens"), 100.0, 50.0)
    makers: dict[str, Callable[[], Any]] = {
        "Replica": lambda: chosen,
        "Mapping[str, Replica]": lambda: dict(REPLICAS),
        "Mapping[str, Efficiency]": lambda: {each: efficiency(one) for each, one in REPLICAS.items()},
        "Architecture": lambda: chosen.architecture,
        "Precision": lambda: chosen.precision,
        "Iterable[Accelerator]": lambda: [chosen.accelerator],
        "Decoder": lambda: DECODERS[int(draw.integers(len(DECODERS)))],
        "MemoryRule": lambda: MemoryRule(float(draw.uniform(0.5, 1))),
        "RequestMix": lambda: mix,
        "Tariff": lambda: Tariff(*(number(draw, "api_usd_per_mtok") for _ in range(3))),
        "Iterable[Rival]": lambda: [one_by_one(), diffusion(tokens_per_pass=float(draw.uniform(1, 8)))],
        "Iterable[tuple[Any, Any]]": lambda: [(number(draw, "batch"), number(draw, "positions")) for _ in range(2)],
        "Workload": lambda: Workload(
            number(draw, "rate_req_per_s"), number(draw, "input_tokens"), number(draw, "output_tokens"), budget_s=5.0
        ),
        "Ownership": lambda: Ownership(
            number(draw, "purchase_usd"), 10.0, 0.7, 1.3, 0.1, 180.0, 4.0, 0.1, 0.1, 0.05, float(draw.uniform(0, 9e4))
        ),
    }
    if kind == "Counted":
        return Counted(number(draw, "api_usd_per_mtok" if name == "api" else "node_tok_per_s"), "output")
    if name in ("bills_usd_per_request", "prices_usd_per_node_hour"):
        return {each: number(draw, "usd_per_request") * 1e3 for each in ("one", "other")}
    if name == "kind":
        return "output"
    return makers[kind]() if kind in makers else None


def arguments(name: str, draw: np.random.Generator) -> dict[str, Any]:
    """Draw the arguments of a function: every one that it needs, and the optional ones that have a range."""
    given: dict[str, Any] = {}
    for parameter in inspect.signature(FUNCTIONS[name]).parameters.values():
        needed = parameter.default is parameter.empty
        kind = str(parameter.annotation)
        if name == "roofline.pass_time" and parameter.name == "positions":
            continue
        value = record(draw, parameter.name, kind) if needed else None
        if value is None and parameter.name in RANGES:
            value = number(draw, parameter.name, name)
        if value is None and needed:
            raise LookupError(f"{name}: no range for {parameter.name} ({kind})")
        if value is not None:
            a_list = kind.startswith("Sequence") or (kind == "ArrayLike" and name in TABLES)
            given[parameter.name] = np.array([value]) if a_list else value
    if "positions" in given and "context_tokens" in given and name.startswith("decoding"):
        given["positions"] = 1.0
    if "replica" in given and "efficiency" in inspect.signature(FUNCTIONS[name]).parameters:
        given["efficiency"] = efficiency(given["replica"])
    return given


def can_be_drawn(name: str) -> bool:
    """Whether each argument that a function needs has a range or a record here."""
    try:
        arguments(name, np.random.default_rng(0))
    except LookupError:
        return False
    return name not in APART


DRAWN = [name for name in FUNCTIONS if can_be_drawn(name)]


def numbers(result: Any, at: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Take every number out of a result: plain, array, record, frame, mapping or tuple."""
    if isinstance(result, pd.DataFrame):
        for column in result.select_dtypes("number"):
            yield f"{at}.{column}", result[column].to_numpy(dtype=float)
    elif is_dataclass(result) and not isinstance(result, type):
        for field in fields(result):
            yield from numbers(getattr(result, field.name), f"{at}.{field.name}")
    elif isinstance(result, Mapping):
        for key, value in result.items():
            yield from numbers(value, f"{at}.{key}")
    elif isinstance(result, list | tuple):
        for place, value in enumerate(result):
            yield from numbers(value, f"{at}.{place}")
    elif not isinstance(result, str | bool | np.bool_) and result is not None:
        array = np.asarray(result)
        if array.dtype.kind in "fiu":
            yield at, array.astype(float)


def seeds(name: str, count: int) -> Iterator[np.random.Generator]:
    for seed in range(count):
        yield np.random.default_rng([seed, *name.encode()])


def wide(name: str) -> list[str]:
    """List the arguments of a function that may be arrays."""
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    return [p.name for p in parameters if str(p.annotation) in ("ArrayLike", "ArrayLike | None") and p.name in RANGES]


FEW, MANY = 3, 150
effort = pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])


@pytest.mark.soak
def test_every_public_function_is_drawn_or_stands_apart_with_a_reason() -> None:
    """Asked before a release, so that a new function need not wait for its ranges."""
    assert set(APART) <= set(FUNCTIONS)
    assert [name for name in FUNCTIONS if name not in APART and name not in DRAWN] == []


def test_most_of_the_model_is_drawn() -> None:
    assert len(DRAWN) > 90
    assert {"cost.cost_usd_per_mtok", "decoding.pass_time", "queueing.latency_s"} <= set(DRAWN)


@effort
@pytest.mark.parametrize("name", DRAWN)
def test_results_are_numbers_and_none_is_below_nothing(name: str, count: int) -> None:
    for draw in seeds(name, count):
        given = arguments(name, draw)
        found = list(numbers(FUNCTIONS[name](**given)))
        assert found, name
        for place, array in found:
            assert not np.isnan(array).any(), (name, place, given)
            assert place.endswith(DIFFERENCES) or (array >= 0).all(), (name, place, given)
            assert name in ENDLESS or np.isfinite(array).all(), (name, place, given)


ARRAYS = [name for name in DRAWN if wide(name) and name not in TABLES]


@effort
@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_its_numbers_side_by_side(name: str, count: int) -> None:
    """One number, an array of one, and three draws at once: broadcasting changes no digit."""
    for draw in seeds(name, count):
        given = arguments(name, draw)
        many = {
            each: np.array([given[each], number(draw, each, name), number(draw, each, name)]) for each in wide(name)
        }
        if "positions" in many and "context_tokens" in many and name.startswith("decoding"):
            many["positions"] = np.ones(3)
        together = dict(numbers(FUNCTIONS[name](**given | many)))
        for place in range(3):
            alone = dict(numbers(FUNCTIONS[name](**given | {each: float(v[place]) for each, v in many.items()})))
            one = dict(numbers(FUNCTIONS[name](**given | {each: v[place : place + 1] for each, v in many.items()})))
            assert together.keys() == alone.keys() == one.keys()
            for key, value in alone.items():
                if value.ndim == 0:
                    both = [float(one[key].ravel()[0]), float(np.broadcast_to(together[key], 3)[place])]
                    assert both == pytest.approx([float(value)] * 2, rel=1e-12), (name, key, given)


# --- units ------------------------------------------------------------------------------------------

#: How a word in a name or a unit scales with a unit of measure.
SCALES = {
    "usd": {"usd": 1, "USD": 1},
    "flop": {"flop": 1, "FLOP": 1},
    "byte": {"byte": 1, "bytes": 1},
    "time": {"s": 1, "s2": 2, "s^2": 2, "hour": 1, "hours": 1, "node_hour": 1, "year": 1, "years": 1},
}
#: A product and a sum are two FLOP by definition, so a result that counts them has no other unit.
COUNTED = ("pass_flop", "pass_intensity_flop_per_byte", "matmul_intensity_flop_per_byte", "positions_at_ridge")
#: Interest is paid by the month, so a longer month is another contract and not another unit.
MONTHLY = ("ownership.",)


def power(measure: str, numerator: str, denominator: str) -> int:
    words = SCALES[measure]
    count = lambda text: sum(words.get(word, 0) for word in re.split(r"[ _*·]", text))  # noqa: E731
    return count(numerator.replace("node_hour", "hour")) - count(denominator.replace("node_hour", "hour"))


def power_of_argument(measure: str, name: str) -> int:
    """Read the power of a measure from a name: ``price_usd_per_node_hour`` is USD to the 1, time to the -1."""
    numerator, _, denominator = name.partition("_per_")
    return power(measure, numerator, denominator)


def unit_of_result(name: str) -> str | None:
    doc = inspect.getdoc(FUNCTIONS[name]) or ""
    returned = doc.partition("Returns\n---")[2].partition("\n\n")[0]
    units = re.findall(r"\[([^\[\]]+)\]", returned)
    return units[0] if len(units) == 1 else None


def scaled(value: Any, measure: str, name: str, by: float) -> Any:
    if isinstance(value, RequestMix | str):
        return value
    if isinstance(value, Counted):
        exponent = {"usd": int(name == "api"), "time": -int(name != "api")}.get(measure, 0)
        return replace(value, value=value.value * by**exponent)
    if is_dataclass(value) and not isinstance(value, type):
        powers = {f.name: power_of_argument(measure, f.name) for f in fields(value)}
        return replace(value, **{each: getattr(value, each) * by**p for each, p in powers.items() if p})
    return value * by ** power_of_argument(measure, name)


def plain(name: str) -> bool:
    """Whether the units of all arguments stand in their names: no part, no model, one unit for the result."""
    kinds = {str(p.annotation) for p in inspect.signature(FUNCTIONS[name]).parameters.values()}
    return not kinds & {"Replica", "Architecture", "Precision", "Mapping[str, Replica]"} and bool(unit_of_result(name))


@pytest.mark.parametrize("measure", SCALES)
@pytest.mark.parametrize("name", [name for name in DRAWN if plain(name)])
def test_another_unit_of_measure_changes_nothing_but_the_unit(name: str, measure: str) -> None:
    """Cents for dollars, bits for bytes, minutes for seconds: the result moves by the power its unit says."""
    if measure == "time" and name.startswith(MONTHLY):
        pytest.skip("interest is paid by the month")
    if measure == "flop" and name.endswith(COUNTED):
        pytest.skip("counts FLOP")
    unit = unit_of_result(name)
    assert unit is not None
    numerator, _, denominator = unit.partition("/")
    for draw in seeds(name, FEW):
        given = arguments(name, draw)
        here = dict(numbers(FUNCTIONS[name](**given)))
        try:
            there = dict(numbers(FUNCTIONS[name](**{k: scaled(v, measure, k, 0.5) for k, v in given.items()})))
        except InputError:
            pytest.skip("half a unit is outside of a domain")
        expected = 0.5 ** power(measure, numerator, denominator)
        for key, value in here.items():
            assert there[key] == pytest.approx(value * expected, rel=1e-9), (name, measure, key, given)


# --- physics ----------------------------------------------------------------------------------------


@effort
def test_a_machine_twice_as_fast_in_everything_takes_half_the_time(count: int) -> None:
    for draw in seeds("speed", count):
        slow = record(draw, "replica", "Replica")
        part, reached = slow.accelerator, efficiency(slow)
        fast = replace(
            slow,
            accelerator=replace(
                part,
                peak_flop_per_s={each: 2 * peak for each, peak in part.peak_flop_per_s.items()},
                mem_bw_byte_per_s=2 * part.mem_bw_byte_per_s,
            ),
        )
        quick = replace(
            reached,
            link_byte_per_s=2 * reached.link_byte_per_s,
            **{
                f.name: getattr(reached, f.name) / 2
                for f in fields(reached)
                if f.name.endswith("_s") and "_per_" not in f.name
            },
        )
        asked = {each: number(draw, each) for each in ("batch", "context_tokens")}
        one = decoding.pass_time(slow, **asked, efficiency=reached).pass_s
        assert decoding.pass_time(fast, **asked, efficiency=quick).pass_s == pytest.approx(one / 2, rel=1e-9)


@effort
def test_no_time_is_below_physics(count: int) -> None:
    """Whatever the constants: a pass takes its bytes over the bandwidth and its FLOPs over the peak, at least."""
    for draw in seeds("physics", count):
        one = record(draw, "replica", "Replica")
        batch, context, prompt = (number(draw, each) for each in ("batch", "context_tokens", "input_tokens"))
        for reached in (IDEAL, efficiency(one)):
            floor = decoding.floor_s(one, batch=batch, context_tokens=context)
            time = decoding.pass_time(one, batch=batch, context_tokens=context, efficiency=reached).pass_s
            assert time >= floor * (1 - 1e-12)
            read = decoding.prefill_s(one, input_tokens=prompt, chunk_tokens=1e9, efficiency=reached)
            whole = decoding.floor_s(one, batch=1, context_tokens=0, positions=prompt, logits="last")
            assert read >= whole * (1 - 1e-12)
            for decoder in DECODERS:
                cycle = decoders.cycle(one, decoder, batch=batch, context_tokens=context, efficiency=reached)
                assert cycle.cycle_s >= cycle.time.pass_s >= floor * (1 - 1e-12)
                assert decoder.tokens_per_pass <= decoder.positions


#: What theory says of one argument with all others held: 1 the result never falls, -1 it never rises.
MONOTONE: list[tuple[str, str, int]] = [
    ("queueing.latency_s", "rate_req_per_s", 1),
    ("queueing.largest_rate_req_per_s", "budget_s", 1),
    ("queueing.lognormal_quantile_s", "percentile", 1),
    ("queueing.erlang_c", "offered", 1),
    ("queueing.single_server_wait_s", "job_s", 1),
    ("cost.cost_usd_per_mtok", "price_usd_per_node_hour", 1),
    ("cost.cost_usd_per_mtok", "node_tok_per_s", -1),
    ("cost.cost_usd_per_mtok", "utilization", -1),
    ("cost.cost_usd_per_mtok_at_demand", "rate_req_per_s", -1),
    ("cost.nodes_at_demand", "rate_req_per_s", 1),
    ("cost.owned_usd_per_request", "utilization", -1),
    ("cost.breakeven_utilization_of_requests", "api_usd_per_request", -1),
    ("cost.usd_per_useful", "useful_share", -1),
    ("cost.utilization_scaled_to_zero", "start_hours", -1),
    ("ownership.capital_usd_per_hour", "residual_share", -1),
    ("ownership.capital_usd_per_hour", "interest_per_year", 1),
    ("ownership.reserved_usd_per_node_hour", "upfront_usd", 1),
    ("roofline.attainable_flop_per_s", "intensity_flop_per_byte", 1),
    ("roofline.pass_intensity_flop_per_byte", "positions", 1),
    ("roofline.matmul_intensity_flop_per_byte", "positions", 1),
    ("decoding.pass_time", "batch", 1),
    ("decoding.pass_time", "context_tokens", 1),
    ("decoding.floor_s", "batch", 1),
    ("decoding.prefill_s", "input_tokens", 1),
    ("decoding.prefill_s", "cached_tokens", -1),
    ("decoding.run_s", "output_tokens", 1),
    ("decoding.max_batch", "tokens", -1),
    ("decoders.request_s", "output_tokens", 1),
    ("decoders.largest_batch", "input_tokens", -1),
    ("batching.served_tok_per_s", "input_tokens", -1),
    ("transformer.expert_union", "positions", 1),
    ("transformer.weight_bytes_streamed", "positions", 1),
    ("transformer.kv_bytes_per_sequence", "context_tokens", 1),
    ("transformer.attention_flop", "context_tokens", 1),
    ("transformer.matmul_flop", "positions", 1),
    ("transformer.max_sequences", "memory_byte", 1),
    ("transformer.context_limit", "ridge_flop_per_byte", -1),
]


@effort
@pytest.mark.parametrize(("name", "argument", "sign"), MONOTONE)
def test_results_move_one_way_where_theory_says_so(name: str, argument: str, sign: int, count: int) -> None:
    for draw in seeds(name, count):
        given = arguments(name, draw)
        low, high = sorted((number(draw, argument, name), number(draw, argument, name)))
        before, after = (FUNCTIONS[name](**given | {argument: value}) for value in (low, high))
        before, after = (getattr(found, "pass_s", found) for found in (before, after))
        assert sign * after >= sign * before - 1e-9 * abs(before), (name, given, low, high)


# --- command lines ----------------------------------------------------------------------------------

GOOD = {
    "--node": ["p5.48xlarge", "p4d.24xlarge", "gb200-per-gpu"],
    "--model": ["llama-3.1-70b", "gpt-oss-120b", "deepseek-v3", "phi-4"],
    "--gpu": ["h100", "h200-sxm", "mi300x", "tpu-v5e", "l4"],
    "--gpus": ["1", "2", "8"],
    "--api": ["gpt-5", "llama-3.3-70b", "o3"],
    "--engine": ["vllm", "sglang", "tensorrt-llm"],
    "--as-of": ["2026-07-20", "2026", "2025-06"],
    "--term": ["on-demand", "spot", "reserved"],
    "--region": ["us-east-1", "us-east", ""],
    "--tier": ["standard", "batch"],
    "--seller": ["openai", "groq"],
    "--only": ["C36", "C40"],
    "model": ["llama-3.1-8b", "mixtral-8x7b", "kimi-k2"],
}
BAD = [
    "", "0", "-1", "1.5", "nan", "inf", "1e308", "1e-308", "1e-400", "9" * 400, "1_000", "0x10", "٣", "1,5", "half",
    "-", "--", "\x1b[31m", "a\nb", "𝔘", "../..", "/dev/null", "/dev/zero", ".", "absent.json", "%s", "{}",
]  # fmt: skip
#: It measures for a minute, or executes the whole book.
SLOW = {"measure-host", "report"}


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        elif name not in SLOW:
            yield (*path, name), command


def value_of(draw: random.Random, param: Any, folder: str) -> str:
    """Type something behind an option: mostly what it wants, at times anything."""
    if draw.random() < 0.12:
        return draw.choice(BAD)
    if param.name in ("file", "own", "out"):
        return (
            f"{folder}/{draw.choice(['prices.csv', 'feed.json', 'config.json', 'measured.csv', 'new.csv', 'no.csv'])}"
        )
    option = param.opts[0]
    if option in GOOD:
        return draw.choice(GOOD[option])
    if hasattr(param.type, "choices"):
        return draw.choice(list(param.type.choices))
    if option in ("--utilization", "--acceptance"):
        return f"{draw.uniform(0.05, 1):.3g}"
    return draw.choice(["1", "2", "8", "32", "300", "2048", "100000"])


def command_line(draw: random.Random, folder: str) -> list[str]:
    path, command = draw.choice(list(commands(cli.cli)))
    words = list(path)
    for param in command.params:
        if param.param_type_name == "argument":
            if draw.random() < 0.95:
                words.append(value_of(draw, param, folder))
        elif param.required or (path == ("claims",) and param.name == "only"):
            if draw.random() < 0.95:
                words += [param.opts[0], value_of(draw, param, folder)]
        elif draw.random() < 0.3:
            words += [param.opts[0]] if param.is_flag else [param.opts[0], value_of(draw, param, folder)]
    if path == ("cost",) or path == ("breakeven",):
        words += draw.choice([["--node", "p5.48xlarge"], ["--node-usd-per-hour", "36"]])
    if draw.random() < 0.05:
        words.append(draw.choice(BAD))
    if draw.random() < 0.05:
        words.remove(draw.choice(words))
    return words


@pytest.mark.parametrize("count", [250, pytest.param(10_000, marks=pytest.mark.soak)])
def test_no_command_line_ends_in_a_traceback(
    count: int, tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer on standard output and 0, or one line on standard error and 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.csv").write_text("instance,quantity,value,unit\np5.48xlarge,price,41.5,USD/node_hour\n")
    (tmp_path / "feed.json").write_text('{"gpt-5": {"mode": "chat", "input_cost_per_token": 1e-06}}')
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 64}')
    (tmp_path / "measured.csv").write_bytes((tables.DATA / "example_measurements.csv").read_bytes())
    draw = random.Random(count)
    statuses = []
    for _ in range(count):
        words = command_line(draw, str(tmp_path))
        statuses.append(cli.main(words))
        out, err = capsys.readouterr()
        assert statuses[-1] in (0, 2), words
        if statuses[-1] == 2:
            assert err.startswith("error: "), (words, err)
            assert err.count("\n") == 1, (words, err)
            assert out == "" or words[:2] == ["prices", "check"], words
        elif "--help" not in words:
            assert out.strip(), words
            if "--json" in words:
                json.loads(out)
    assert 0.2 < statuses.count(0) / count < 0.95
