"""What the page "Your workload" can be filled with: nodes, models, formats, engines, APIs, and eight workloads.

Everything but the workloads is computed from the tables. The workloads are examples, of our own choosing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import product
from typing import Any

import pandas as pd

from analysis.inputs import InputError
from analysis.model.decoding import CHUNK_TOKENS, peaks
from analysis.model.figures import figures
from analysis.model.ownership import bought_usd_per_node_hour, sunk_usd_per_node_hour
from analysis.model.simulation import Server, Traffic, serve_runs
from analysis.model.transformer import kv_replication
from analysis.present.calculator import Choice, Fill, Filled, Option, baseline, compute
from analysis.reference import model_config, tables
from analysis.reference.efficiency import efficiency, memory_rule, slots
from analysis.reference.own_prices import OwnPrices
from analysis.reference.specs import WEIGHT_FORMATS, Accelerator, Precision, Replica

ENGINES = ("vllm", "sglang", "tensorrt-llm")
METRICS = {
    "e2e": "the whole answer, on average",
    "p95": "the whole answer, 95 of 100",
    "ttft": "its first token, on average",
    "tpot": "each token after it, on average",
}
SPLITS = (1, 2, 4, 8)
CACHES = ("bf16", "fp8", "int8", "int4")
RELEASED = "released"
OWNERSHIP = {
    "rent": "rented by the hour",
    "reserved": "reserved for a year or more",
    "bought": "bought: capital, power, space, upkeep; no people",
    "sunk": "already paid for: energy only",
}


@dataclass(frozen=True)
class Workload:
    """An example of work: choices and typed values by their names on the page."""

    name: str
    choices: Mapping[str, str]
    values: Mapping[str, float]


def _work(prompt: float, cached: float, answer: float, rate: float, day: float, budget: float) -> dict[str, float]:
    return {
        "prompt": prompt,
        "cached": cached,
        "answer": answer,
        "peak_req_per_s": rate,
        "day_share": day,
        "budget_s": budget,
    }


_EIGHT = {"node": "aws p5.48xlarge", "ownership": "rent"}
#: The bank's two first; then one for each kind of service that people ask about.
WORKLOADS = (
    Workload(
        "The bank, overnight: 2 million documents in 10 hours",
        {**_EIGHT, "model": "llama-3.3-70b", "weights": "fp8", "gpus": "2", "metric": "e2e", "api": "llama-3.3-70b"},
        _work(8000, 0, 300, 55.6, 0.417, 36_000),
    ),
    Workload(
        "The bank, live: onboarding while the customer waits",
        {**_EIGHT, "model": "llama-3.1-8b", "weights": "fp8", "gpus": "8", "metric": "p95", "api": "gpt-4.1"},
        _work(1500, 0, 300, 4, 0.35, 1),
    ),
    Workload(
        "Support chat",
        {**_EIGHT, "model": "llama-3.3-70b", "weights": "fp8", "gpus": "4", "metric": "ttft", "api": "llama-3.3-70b"},
        _work(1200, 800, 250, 8, 0.4, 0.5),
    ),
    Workload(
        "Answers from retrieved pages",
        {**_EIGHT, "model": "llama-3.3-70b", "weights": "fp8", "gpus": "8", "metric": "e2e", "api": "llama-3.3-70b"},
        _work(6000, 1000, 300, 3, 0.4, 6),
    ),
    Workload(
        "Code completion",
        {**_EIGHT, "model": "qwen2.5-7b", "weights": "fp8", "gpus": "1", "metric": "e2e", "api": "gpt-5-mini"},
        _work(2000, 1500, 30, 40, 0.3, 0.4),
    ),
    Workload(
        "Agent with a long history",
        {**_EIGHT, "model": "gpt-oss-120b", "gpus": "4", "metric": "e2e", "api": "gpt-oss-120b"},
        _work(20_000, 18_000, 400, 4, 0.5, 8),
    ),
    Workload(
        "Reasoning: long answers",
        {**_EIGHT, "model": "qwen3-32b", "weights": "fp8", "gpus": "4", "metric": "tpot", "api": "qwen3-32b"},
        _work(1000, 0, 4000, 0.5, 0.4, 0.025),
    ),
    Workload(
        "Voice assistant",
        {**_EIGHT, "model": "llama-3.1-8b", "weights": "fp8", "gpus": "1", "metric": "ttft", "api": "gpt-4.1"},
        _work(900, 600, 60, 10, 0.4, 0.3),
    ),
    Workload(
        "Sorting mail into classes, by the hour",
        {**_EIGHT, "model": "qwen3-8b", "weights": "fp8", "gpus": "1", "metric": "e2e", "api": "gpt-5-nano"},
        _work(700, 200, 5, 100, 0.5, 60),
    ),
)


# --- What there is to choose -------------------------------------------------------------------


@dataclass(frozen=True)
class _Offer:
    """One node with its price per hour in each way to have it; a way without a price is left out."""

    key: str
    label: str
    accelerator: Accelerator
    count: int
    usd_per_hour: Mapping[str, float]


def _offers(as_of: date, prices: OwnPrices | None) -> list[_Offer]:
    rows = tables.node_prices(as_of=as_of, prices=prices).rows
    rows = rows[rows["quantity"] == "price"]
    found = []
    for row in tables.table("nodes", as_of=as_of).rows.to_dict("records"):
        provider, instance = row["provider"], row["instance"]
        node = tables.node(instance, as_of=as_of, provider=provider, prices=prices)
        own = rows[(rows["provider"] == provider) & (rows["instance"] == instance)]
        usd = {}
        for way, terms in (("rent", "on-demand"), ("reserved", tables.COMMITTED_TERMS)):
            offers = own[own["term"].str.fullmatch(terms)]
            if not offers.empty:
                usd[way] = float(offers["value"].min())
        bought = [
            tables.ownership(name, as_of=as_of, prices=prices) for name in tables.hardware_like(node, as_of=as_of)
        ]
        if bought:
            usd["bought"] = min(float(bought_usd_per_node_hour(terms).total_usd) for terms in bought)
            usd["sunk"] = min(float(sunk_usd_per_node_hour(terms)) for terms in bought)
        part = node.accelerator
        label = f"{provider} {instance} ({node.accelerator_count} × {part.name})"
        found.append(_Offer(f"{provider} {instance}", label, part, node.accelerator_count, usd))
    return found


def _models() -> dict[str, model_config.ModelConfig]:
    """List the shipped models that the page can compute: whose layers see everything or one window."""
    found = {}
    for name in model_config.names():
        config = model_config.shipped(name)
        try:
            figures(config.architecture, config.precision)
        except InputError:
            continue
        found[name] = config
    return found


def _apis(as_of: date, prices: OwnPrices | None) -> Iterator[tuple[str, str, str, dict[str, float]]]:
    """List the rivals, with label: each model at its cheapest seller for prompts three times as long as answers."""
    for model_class in ("commodity", "diffusion", "small", "frontier", "reasoning"):
        for model, offers in tables.class_tariffs(model_class, as_of=as_of, prices=prices).items():
            seller = min(
                offers, key=lambda name: 3 * offers[name].input_usd_per_mtok + offers[name].output_usd_per_mtok
            )
            tariff = offers[seller]
            cached = tariff.cached_usd_per_mtok
            values = {
                "api_input_usd_per_mtok": tariff.input_usd_per_mtok,
                "api_cached_usd_per_mtok": tariff.input_usd_per_mtok if cached is None else cached,
                "api_output_usd_per_mtok": tariff.output_usd_per_mtok,
            }
            yield model, f"{model} ({seller}, {model_class})", seller, {**values, **_speed(model, as_of)}


def _speed(model: str, as_of: date) -> dict[str, float]:
    """Return the latency that was seen for a model: shortest first token, and the rate of the same listing."""
    listing = tables.api_latency(as_of=as_of)
    seen = listing[(listing["model"] == model) & listing["ttft_s"].notna() & listing["output_tok_per_s"].notna()]
    if seen.empty:
        return {}
    best = seen.loc[seen["ttft_s"].idxmin()]
    return {"api_first_s": float(best["ttft_s"]), "api_tok_per_s": float(best["output_tok_per_s"])}


def choices(*, as_of: date, prices: OwnPrices | None = None) -> list[Choice]:
    """List what can be chosen on the page, with the first workload's choice as default.

    Parameters
    ----------
    as_of : date
        Day of the prices and data sheets.
    prices : OwnPrices, optional
        As `analysis.reference.tables.table`.

    Returns
    -------
    list of Choice

    Examples
    --------
    >>> [choice.name for choice in choices(as_of=tables.NEWEST)][:3]
    ['workload', 'metric', 'node']
    """
    first = WORKLOADS[0].choices
    formats = [Option(RELEASED, "as released"), *(Option(name, name) for name in WEIGHT_FORMATS)]
    return [
        Choice("workload", [Option(str(i), work.name) for i, work in enumerate(WORKLOADS)], "0"),
        Choice("metric", [Option(key, words) for key, words in METRICS.items()], first["metric"]),
        Choice("node", [Option(offer.key, offer.label) for offer in _offers(as_of, prices)], first["node"]),
        Choice("ownership", [Option(key, words) for key, words in OWNERSHIP.items()], first["ownership"]),
        Choice("gpus", [Option(str(n), str(n)) for n in SPLITS], first["gpus"]),
        Choice("engine", [Option(name, name) for name in ENGINES], ENGINES[0]),
        Choice("model", [Option(name, name) for name in _models()], first["model"]),
        Choice("weights", formats, first["weights"]),
        Choice("kv", [Option(name, name) for name in CACHES], "bf16"),
        Choice("api", [Option(key, label) for key, label, *_ in _apis(as_of, prices)], first["api"]),
    ]


# --- What a choice fills -----------------------------------------------------------------------


def fills(*, as_of: date, prices: OwnPrices | None = None) -> list[Fill]:
    """Say which numbers each choice fills in, in base units.

    Parameters
    ----------
    as_of : date
        Day of the prices and data sheets.
    prices : OwnPrices, optional
        As `analysis.reference.tables.table`.

    Returns
    -------
    list of Fill
        In an order in which each uses choices and names that earlier ones set.

    Examples
    --------
    >>> work = fills(as_of=tables.NEWEST)[0]
    >>> work.keys, work.rows["0",].values["prompt"]
    (('workload',), 8000)
    """
    offers, models = _offers(as_of, prices), _models()
    parts = {offer.accelerator.name: offer.accelerator for offer in offers}
    # any model will do where only the format matters
    plain = models["llama-3.1-8b"].architecture

    def reached(part: Accelerator, weights: str, gpus: int, engine: str) -> Any:
        return efficiency(Replica(plain, Precision.of(weights), part, gpus), engine)

    def sheet(part: Accelerator, count: int) -> dict[str, float]:
        return {
            "node_gpus": count,
            "peak_16bit_flop_per_s": part.peak("bf16"),
            "mem_bw_byte_per_s": part.mem_bw_byte_per_s,
            "memory_byte": part.mem_capacity_byte,
        }

    def formats(name: str) -> Iterator[tuple[str, Precision]]:
        yield RELEASED, models[name].precision
        for weights in WEIGHT_FORMATS:
            yield weights, models[name].precision.with_formats(weights=weights)

    by_weights: dict[tuple[str, ...], Filled] = {}
    by_cache: dict[tuple[str, ...], Filled] = {}
    by_model: dict[tuple[str, ...], Filled] = {}
    for name, config in models.items():
        for weights, precision in formats(name):
            of = figures(config.architecture, precision)
            values = {key: of[key] for key in ("always_byte", "routed_byte", "stored_byte")}
            by_weights[name, weights] = Filled(values, {"format": precision.weights})
        for kv in CACHES:
            of = figures(config.architecture, Precision.of("bf16", kv=kv))
            by_cache[name, kv] = Filled({key: of[key] for key in of if key.startswith(("kv_", "kept_"))})
        left = {"always_byte", "routed_byte", "stored_byte"} | {key for key in of if key.startswith(("kv_", "kept_"))}
        limit = config.architecture.max_context
        longest = {} if limit is None else {"max_context": float(limit)}
        by_model[name,] = Filled({key: value for key, value in of.items() if key not in left} | longest)
    return [
        Fill(
            ("workload",),
            {
                (str(i),): Filled(
                    dict(work.values), {"kv": "bf16", "weights": RELEASED, "engine": ENGINES[0], **work.choices}
                )
                for i, work in enumerate(WORKLOADS)
            },
        ),
        Fill(
            ("node",),
            {(o.key,): Filled(sheet(o.accelerator, o.count), {"gpu": o.accelerator.name}) for o in offers},
        ),
        Fill(
            ("node", "ownership"),
            {(o.key, way): Filled({"price": usd}) for o in offers for way, usd in o.usd_per_hour.items()},
        ),
        Fill(("model", "weights"), by_weights),
        Fill(("model",), by_model),
        Fill(("model", "kv"), by_cache),
        Fill(("model", "gpus"), dict(_copies(models))),
        Fill(
            ("gpu", "format"),
            {
                (name, weights): Filled(
                    {
                        "peak_flop_per_s": peaks(Replica(plain, Precision.of(weights), part)).matmul_flop_per_s,
                        "mbu": reached(part, weights, 1, ENGINES[0]).mbu,
                    }
                )
                for (name, part), weights in product(parts.items(), WEIGHT_FORMATS)
            },
        ),
        Fill(
            ("gpu", "format", "engine"),
            {
                (name, weights, engine): Filled({"mfu": reached(part, weights, 1, engine).mfu})
                for (name, part), weights, engine in product(parts.items(), WEIGHT_FORMATS, ENGINES)
            },
        ),
        Fill(
            ("gpu", "engine"),
            {
                (name, engine): Filled({"attention_mfu": reached(part, "bf16", 1, engine).attention_mfu})
                for (name, part), engine in product(parts.items(), ENGINES)
            },
        ),
        Fill(
            ("gpu", "engine", "gpus"),
            {
                (name, engine, str(gpus)): Filled(_links(part, reached(part, "bf16", gpus, engine)))
                for (name, part), engine, gpus in product(parts.items(), ENGINES, SPLITS)
            },
        ),
        Fill(("engine",), {(engine,): Filled(_of_engine(engine, parts["h100-sxm"], plain)) for engine in ENGINES}),
        Fill(("gpus",), {(str(gpus),): Filled({"gpus": gpus}) for gpus in SPLITS}),
        Fill(("metric",), {(name,): Filled({"metric": i}) for i, name in enumerate(METRICS)}),
        Fill(("api",), {(key,): Filled(values, {"seller": seller}) for key, _, seller, values in _apis(as_of, prices)}),
    ]


def _copies(models: Mapping[str, model_config.ModelConfig]) -> Iterator[tuple[tuple[str, str], Filled]]:
    """Count the copies of the cache for each split of a model; a split that its heads do not allow is left out."""
    for (name, config), gpus in product(models.items(), SPLITS):
        try:
            yield (name, str(gpus)), Filled({"kv_copies": kv_replication(config.architecture, tensor_parallel=gpus)})
        except InputError:
            continue


def _links(part: Accelerator, of: Any) -> dict[str, float]:
    # among one GPU nothing is sent, at whatever rate
    rate = of.link_byte_per_s if math.isfinite(of.link_byte_per_s) else part.link_byte_per_s
    return {"all_reduce_s": of.all_reduce_s, "link_byte_per_s": rate}


def _of_engine(engine: str, part: Accelerator, plain: Any) -> dict[str, float]:
    of, rule = efficiency(Replica(plain, Precision.of("bf16"), part), engine), memory_rule(engine)
    names = ("expert_mfu", "expert_rows", "layer_s", "expert_layer_s", "prompt_layer_s", "sequence_s")
    return {
        **{name: getattr(of, name) for name in (*names, "activation_share", "overlap")},
        "memory_share": rule.share,
        "reserved_share": rule.share if rule.of_the_rest else 1.0,
        "reserve_byte": rule.reserve_byte,
        "slots": slots(engine),
        "chunk_tokens": CHUNK_TOKENS,
    }


# --- The page against a replay -------------------------------------------------------------------


def replays(*, as_of: date, prices: OwnPrices | None = None, count: int = 5_000, seed: int = 0) -> pd.DataFrame:
    """Replay the examples request by request, one token at a time, at the load that the page gives each replica.

    Parameters
    ----------
    as_of : date
        Day of the prices and data sheets.
    prices : OwnPrices, optional
        As `analysis.reference.tables.table`.
    count : int
        Requests of each run. [1]
    seed : int
        Of their arrivals.

    Returns
    -------
    DataFrame
        Columns ``work``, ``mean_s`` and ``replayed_mean_s``, ``p95_s`` and ``replayed_p95_s`` of whole answers without
        the time outside the GPU [s], ``trusted``: whether the page marks its percentile as within its range. Examples
        that the page calls infeasible, or that wait for room, are left out.

    Raises
    ------
    InputError
        As `fills`.

    Examples
    --------
    >>> frame = replays(as_of=tables.NEWEST, count=2000)
    >>> bool((frame["replayed_p95_s"] > frame["replayed_mean_s"]).all())
    True
    """
    filled = fills(as_of=as_of, prices=prices)
    rows = []
    for i, work in enumerate(WORKLOADS):
        chosen, values = baseline({"workload": str(i)}, filled)
        page = compute(values)
        if page["reason_ar"] != 0 or page["each_req_per_s_ar"] >= page["h_ar_full"]:
            continue
        weights = None if chosen["weights"] == RELEASED else chosen["weights"]
        replica = model_config.replica(
            chosen["model"], chosen["gpu"], as_of=as_of, gpus=int(chosen["gpus"]), weights=weights
        )
        engine = chosen["engine"]
        served = serve_runs(
            Server(replica, efficiency=efficiency(replica, engine), slots=slots(engine), rule=memory_rule(engine)),
            Traffic(values["prompt"], values["answer"], values["cached"]),
            rate_req_per_s=float(page["each_req_per_s_ar"]),
            count=count,
            runs=3,
            seed=seed,
        )
        outside = values["overhead_s"] or 0.0
        rows.append(
            {
                "work": work.name,
                "mean_s": float(page["latency_s_ar"]),
                "replayed_mean_s": served.mean_s().value,
                "p95_s": float(page["p95_s_ar"]) - outside,
                "replayed_p95_s": served.percentile_s(95).value,
                "trusted": bool(page["trusted_ar"]),
            }
        )
    return pd.DataFrame(rows)
