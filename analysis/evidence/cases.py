"""Measurements as cases: which passes of which replica a measured number is about, or why none.

A case predicts one number as a schedule of passes: seconds, or tokens over those seconds. Rows that the
model cannot speak about are skipped with the reason; nothing is guessed from a neighbouring row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from analysis.inputs import InputError
from analysis.model import decoding
from analysis.model.decoding import Step
from analysis.reference.efficiency import group, memory_rule, recipe, slots
from analysis.reference.model_config import shipped
from analysis.reference.specs import KV_FORMATS, Accelerator, Precision, Replica
from analysis.reference.tables import NEWEST, accelerator, all_rows

REGIMES = ("single_stream", "batching", "max_load", "prefill")
#: Requests of a source that states upper ends have 0.8 to 1.0 of them.
MEAN_OF_UPPER = 0.9
#: gpt-fast's own default where a source gives no answer length; at batch 1 the cache is small beside the weights.
SHORT_ANSWER = 200.0
#: llama.cpp's mixture of 4- and 6-bit blocks, as its files come out. [bit]
Q4_K_M_BIT = 4.85
#: Classes whose benchmarks start and end a whole batch together.
STATIC = frozenset({"session", "compiled", "portable"})

#: Why a row of the shipped table is not scored, by the word in its column ``unused``.
REASONS = {
    "suspect": "the row contradicts itself or its neighbours (its note says how)",
    "speculative": "speculative decoding: another number of passes",
    "labels-lost": "GPU count and precision are missing in the copy that was read",
    "beam-search": "beam search: several sequences for each answer",
    "disaggregated": "prompts are read on other nodes",
    "mixed-layout": "the best of several layouts, not said which",
    "unclear-tokens": "the source does not say whether input tokens count",
    "restated": "the same measurement as the rate beside it",
    "no-input-length": "the length of the prompts is not known",
    "no-output-length": "the length of the answers is not known",
    "queueing": "time to the first token under load holds the wait in a queue",
    "early-engine": "first support of the model, far below later releases by the source's own words",
    "layer-split": "layers are split: the GPUs take turns",
    "pipeline": "pipeline parallelism is not modelled",
}


class Skipped(Exception):  # noqa: N818  not an error: a row without a prediction
    """A row that the model does not speak about, with the reason."""


@dataclass(frozen=True)
class Measurement:
    """One measured number with its conditions, in the names of the tables."""

    id: str
    source: str
    model: str
    weights: str
    kv: str
    accelerator: str
    accelerators: int
    tensor_parallel: int
    engine: str
    layout: str
    regime: str
    concurrency: float
    input_tokens: float | None
    output_tokens: float | None
    quantity: str
    value: float


@dataclass(frozen=True)
class Case:
    """A measurement and the schedule that predicts it.

    ``tokens`` is what the schedule makes; None where the measured number is its time.
    """

    measured: Measurement
    replica: Replica
    steps: tuple[Step, ...]
    tokens: float | None

    @property
    def sparse(self) -> bool:
        """Whether the model has routed experts."""
        return self.replica.architecture.components["experts"] > 0

    @property
    def regime(self) -> str:
        """Regime with ``_dense`` or ``_moe``."""
        return f"{self.measured.regime}_{'moe' if self.sparse else 'dense'}"

    def predicted(self, seconds: Any) -> Any:
        """Turn the time of the schedule into the measured quantity."""
        return seconds if self.tokens is None else self.tokens / seconds


# --- Rows of the shipped table -----------------------------------------------------------------


def shipped_measurement(row: Mapping[str, Any]) -> Measurement:
    """Read one row of the shipped table.

    Raises
    ------
    Skipped
        If the table says why it is not to be used.
    """
    if row["unused"]:
        raise Skipped(REASONS[row["unused"]])
    scale = MEAN_OF_UPPER if row["lengths"] == "upper" else 1.0
    regime = {"batched": "batching"}.get(row["regime"], row["regime"])
    return Measurement(
        id=row["id"],
        source=row["source"],
        model=row["model"],
        weights=row["weights"],
        kv=row["kv"],
        accelerator=row["accelerator"],
        accelerators=int(row["accelerators"]),
        tensor_parallel=int(row["tensor_parallel"] or row["accelerators"]),
        engine=row["engine"],
        layout=row["layout"],
        regime=regime,
        concurrency=float(row["concurrency"]) if row["concurrency"].isdigit() else np.inf,
        input_tokens=scale * float(row["input_tokens"]) if row["input_tokens"] else None,
        output_tokens=scale * float(row["output_tokens"]) if row["output_tokens"] else None,
        quantity=row["quantity"],
        value=float(row["value"]),
    )


@cache
def shipped_cases() -> tuple[tuple[Case, ...], Mapping[str, str]]:
    """All scored rows of the shipped table as cases, and why each of the others is skipped."""
    cases: list[Case] = []
    skipped: dict[str, str] = {}
    for row in all_rows("measured").to_dict("records"):
        try:
            cases.append(case(shipped_measurement(row)))
        except Skipped as reason:
            skipped[row["id"]] = str(reason)
    return tuple(cases), skipped


@cache
def _part(name: str) -> Accelerator:
    return accelerator(name, as_of=NEWEST)


# --- From a measurement to its passes ----------------------------------------------------------


def case(measured: Measurement) -> Case:
    """Say which passes a measured number is about.

    Parameters
    ----------
    measured : Measurement

    Returns
    -------
    Case

    Raises
    ------
    Skipped
        If model, GPU, engine or layout is not known, the weights do not fit, or lengths are missing.
    """
    replica = _replica(measured)
    steps, tokens = _schedule(measured, replica)
    return Case(measured, replica, tuple(_floats(steps)), None if tokens is None else float(tokens))


def _floats(steps: Iterable[Step]) -> Iterable[Step]:
    for step in steps:
        yield Step(float(step.count), type(step.asked)(*(float(value) for value in step.asked)))


def _replica(measured: Measurement) -> Replica:
    if measured.layout in ("layer-split", "pp"):
        raise Skipped(REASONS["layer-split" if measured.layout == "layer-split" else "pipeline"])
    try:
        config = shipped(measured.model)
        part = _part(measured.accelerator)
        replica = Replica(
            config.architecture,
            _precision(measured, config.precision),
            part,
            measured.tensor_parallel,
            split_attention=measured.layout != "dp-attention",
        )
        recipe(replica, measured.engine)
        decoding.demand(replica, decoding.Part(1.0, 1.0))
    except InputError as refusal:
        raise Skipped(str(refusal)) from None
    return replica


def _precision(measured: Measurement, as_released: Precision) -> Precision:
    """Return the formats of a row; which parts of a quantized release are quantized is in its own files.

    Where the cache's format is not said: 8 bit beside 8- and 4-bit weights in TensorRT-LLM, whose builds and
    checkpoints set it so for all but latent caches, else 16 bit.
    """
    kv = measured.kv
    if not kv:
        eight = measured.engine.startswith("tensorrt-llm") and measured.weights in ("fp8", "nvfp4")
        kv = "fp8" if eight and not measured.model.startswith("deepseek") else "bf16"
    if measured.weights == as_released.weights != "bf16":
        return replace(as_released, kv=kv, byte_per_kv=KV_FORMATS[kv] / 8)
    if measured.weights == "q4_k_m":
        parts = tuple((part, 1.0) for part in ("attention", "mlp", "shared_experts", "experts", "head"))
        return Precision("q4_k_m", kv, Q4_K_M_BIT / 8, KV_FORMATS[kv] / 8, "bf16", parts)
    found = Precision.of(measured.weights, kv=kv)
    # in these engines 8-bit integers are a way of storing weights only
    return replace(found, compute="bf16") if measured.weights == "int8" else found


def _schedule(measured: Measurement, replica: Replica) -> tuple[list[Step], float | None]:
    m, kind = measured, group("engine", measured.engine)
    prompt = max(m.input_tokens or 0.0, 1.0)
    copies = m.accelerators / m.tensor_parallel
    n = m.concurrency / copies
    if m.quantity in ("prefill_tokens_per_s", "ttft_s"):
        if m.concurrency != 1:
            raise Skipped(REASONS["queueing"])
        if m.input_tokens is None:
            raise Skipped(REASONS["no-input-length"])
        return decoding.prefill_steps(replica, input_tokens=prompt), prompt if m.quantity != "ttft_s" else None

    answer = m.output_tokens or SHORT_ANSWER
    room = decoding.max_batch(replica, tokens=prompt + answer, rule=memory_rule(m.engine))
    if room < 1 and m.regime != "single_stream":
        raise Skipped("weights and one cache do not fit into memory by the engine's rule")
    if m.regime == "single_stream" and m.quantity in ("tokens_per_s_per_user", "tpot_s"):
        step = decoding.demand(replica, decoding.Part(1.0, prompt + answer / 2))
        return [Step(1.0, step)], 1.0 if m.quantity != "tpot_s" else None
    if m.input_tokens is None or m.output_tokens is None:
        raise Skipped(REASONS["no-input-length" if m.input_tokens is None else "no-output-length"])

    per_gpu = m.quantity == "output_tokens_per_s_per_gpu"
    shown = 1 / m.tensor_parallel if per_gpu else copies
    if m.quantity == "e2e_latency_s" or kind in STATIC or m.regime == "single_stream":
        together = max(room, 1.0) if kind in ("python", "early") else np.inf
        steps = decoding.run_steps(replica, batch=n, input_tokens=prompt, output_tokens=answer, slots=together)
        return steps, None if m.quantity == "e2e_latency_s" else n * answer * shown
    n = min(n, room, slots(m.engine) * (1 if replica.split_attention else replica.gpus))
    others = n if m.regime == "max_load" else None
    steps = decoding.token_steps(replica, batch=n, input_tokens=prompt, output_tokens=answer, others=others)
    if m.quantity in ("tpot_s", "tokens_per_s_per_user"):
        return steps, None if m.quantity == "tpot_s" else 1.0
    return steps, n * shown


# --- The nearest measurement -------------------------------------------------------------------


def nearest_step(replica: Replica, *, batch: float, engine: str = "vllm") -> dict[str, Any] | None:
    """Find the measured time per token on this GPU, and this many of them, that lies nearest to a pass.

    Parameters
    ----------
    replica : Replica
    batch : float
        Sequences. [1]
    engine : str
        Of rows that are equally near, the first of this engine is taken.

    Returns
    -------
    dict or None
        The conditions, ``step_s`` measured and ``predicted_s`` for the same conditions; nearest by size of the
        weights, then by concurrency. None where no row has this GPU in this number.
    """
    from analysis.model.transformer import params_total, weight_bytes
    from analysis.reference.efficiency import efficiency

    rows = all_rows("measured")
    rows = rows[
        (rows["accelerator"] == replica.accelerator.name)
        & (rows["tensor_parallel"] == str(replica.gpus))
        & (rows["quantity"].isin(["tpot_s", "tokens_per_s_per_user"]))
        & (rows["unused"] == "")
    ]
    size = weight_bytes(replica.architecture, replica.precision)
    ranked: list[tuple[float, bool, Case]] = []
    for row in rows.to_dict("records"):
        measured = shipped_measurement(row)
        try:
            architecture = shipped(measured.model).architecture
        except InputError:
            continue
        if abs(np.log(params_total(architecture) / params_total(replica.architecture))) > np.log(2):
            continue
        try:
            found = case(measured)
        except Skipped:
            continue
        far = 3 * abs(np.log(weight_bytes(architecture, found.replica.precision) / size))
        away = far + abs(np.log(measured.concurrency / batch))
        ranked.append((round(away, 9), measured.engine != engine, found))
    if not ranked:
        return None
    *_, best = min(ranked, key=lambda rank: rank[:2])
    seconds = decoding.schedule_s(best.steps, best.replica, efficiency(best.replica, best.measured.engine))
    m = best.measured
    return {
        "id": m.id,
        "source": m.source,
        "model": m.model,
        "weights": m.weights,
        "gpu": m.accelerator,
        "gpus": m.tensor_parallel,
        "engine": m.engine,
        "concurrency": m.concurrency,
        "input_tokens": m.input_tokens or 0.0,
        "output_tokens": m.output_tokens or 0.0,
        "step_s": m.value if best.tokens is None else 1 / m.value,
        "predicted_s": seconds,
    }
