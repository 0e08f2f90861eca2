"""Statements about intensity, ridge points and what bounds one stream (chapter 2)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import numpy as np
from numpy.typing import NDArray

from analysis.evidence.claims.registry import Context, Counterfactual, Outcome, Stated, Structure, claim
from analysis.evidence.scenarios import Choice, Point, Range, Space, fixed
from analysis.inputs import InputError
from analysis.model.roofline import FLOP_PER_WEIGHT, ridge_points
from analysis.reference.tables import accelerators, on_chip_byte
from analysis.symbolic import roofline as symbolic
from analysis.symbols import POSITIONS

ANCHOR = "roofline-claims"
#: Makers call these something else than a GPU; the article speaks of GPUs.
NOT_GPUS = ("tpu", "gaudi", "trainium", "cerebras")
#: The narrowest number that a unit of each format is fed with. [byte]
FORMAT_BYTES = {"tf32": 4.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5}
#: "All weights" is met where a pass reads at least this share of them.
ALL = 0.9


@claim("C04", kind="definition", stated_in="both", chapter="roofline", anchor=ANCHOR)
def one_token_per_pass() -> Structure:
    """Standard autoregressive models emit one token per forward pass."""
    one_position = symbolic.pass_flop().subs(POSITIONS, 1)
    return Structure(
        present=one_position == symbolic.pass_flop() / POSITIONS and not symbolic.pass_byte().has(POSITIONS),
        departs_when=(
            "a pass yields more where drafts are checked in it: speculation, prompt look-up, the multi-token heads of"
            " several open models; how closed models decode is not public"
        ),
    )


KINDS = Choice(
    ("dense", "mixture of experts"), "the named families hold both: Llama 3 and Llama 4, Mistral and Mixtral"
)
ONE_STREAM = Choice((1,), "the sentence explains one stream")


def _weights_read(context: Context) -> Space:
    return {
        "kind": KINDS,
        "active_share": Range(
            0.04, 0.3, "from gpt-oss-120b and Llama 4 Maverick (4 %) to Mixtral 8x7B (28 %)", ceiling=1
        ),
        "looked_up_share": Range(
            0.015, 0.066, "the input embedding, one row of which is read: Llama 3 70B to 8B", ceiling=1
        ),
        "streams": ONE_STREAM,
        "tokens_per_pass": Choice((1.0,), "standard autoregressive, as in C04"),
    }


@claim(
    "C05",
    kind="computed",
    stated_in="both",
    quantifier="always",
    chapter="roofline",
    anchor=ANCHOR,
    space=_weights_read,
    counterfactual=Counterfactual(
        "only dense models", lambda space: {**space, "kind": Choice(("dense",), "held fixed")}
    ),
    inputs={"kind": "the model", "active_share": "the share of weights that a token uses"},
    sources=("radar2026", "huggingface"),
    accelerator=None,
)
def all_weights_for_every_token(point: Point, context: Context) -> Outcome:
    """All weights stream from memory through the compute units for every token."""
    used = np.where(np.asarray(point["kind"]) == "dense", 1.0, point["active_share"])
    read = used * (1 - point["looked_up_share"]) / (point["streams"] * point["tokens_per_pass"])
    return Outcome(read >= ALL, value=read)


def _gpus_and_models(context: Context) -> Space:
    parts = on_chip_byte(as_of=context.as_of)
    sizes = tuple(size for part, size in parts.items() if not part.startswith(NOT_GPUS))
    if not sizes:
        raise InputError("on_chip", None, f"at least one GPU known on {context.as_of}")
    return {
        "on_chip_byte": Choice(
            sizes,
            "the largest cache of the GPUs in the table",
        ),
        "inner_levels": Range(
            1, 3, "the caches and registers inside come on top, on an H100 about as much again", floor=1
        ),
        "gpus": Choice((1, 2, 4, 8), "one GPU to a whole node"),
        "params": Range(2e9, 1e12, "multibillion: from two billion to the largest open models", floor=2e9),
        "bytes_per_weight": Choice((2.0, 1.0, 0.5), "16, 8 and 4 bit"),
    }


@claim(
    "C06",
    kind="computed",
    stated_in="article",
    quantifier="always",
    chapter="roofline",
    anchor=ANCHOR,
    space=_gpus_and_models,
    counterfactual=Counterfactual(
        "one wafer as a chip: 44 GB of SRAM",
        lambda space: fixed(space, on_chip_byte=44e9, inner_levels=1.0, gpus=1),
    ),
    inputs={"on_chip_byte": "the memory on the chip (byte)", "params": "the number of weights"},
    sources=("radar2026", "chips-h100", "besthub-b200", "sth-mi300x", "yobitel-wse3"),
)
def model_exceeds_on_chip_memory(point: Point, context: Context) -> Outcome:
    """On-chip memory can't hold a model of several billion weights."""
    held = point["on_chip_byte"] * point["inner_levels"] * point["gpus"]
    ratio = point["params"] * point["bytes_per_weight"] / held
    return Outcome(ratio > 1, value=ratio)


def _one_stream(context: Context) -> dict[str, Choice | Range]:
    """Make the space of one stream: what is stored in which width, and how much cache a token reads beside it."""
    return {
        "bytes_per_weight": Choice((2.0, 1.0, 0.5), "16, 8 and 4 bit stored, without scales"),
        "kv_byte_per_weight": Range(
            0.002, 0.15, "KV cache over weights: a 70B model with 500 tokens of context to an 8B model with 8,000"
        ),
        "kv_flop_per_byte": Range(
            1, 16, "heads that share a cached key: one in 16 bit to eight in 8 bit", floor=1, ceiling=16
        ),
    }


def stream_intensity(point: Mapping[str, NDArray[np.float64]], positions: float | NDArray[np.float64] = 1.0) -> object:
    r"""Operations for each byte of a pass of one sequence, attention over its KV cache included. [FLOP/byte].

    .. math:: \mathcal{I} = \frac{m\,(2 + k\,a)}{b_\mathrm{w} + k}

    with k the bytes of KV cache for each weight and a the operations on each of them.

    Examples
    --------
    >>> stream_intensity({"bytes_per_weight": 2.0, "kv_byte_per_weight": 0.1, "kv_flop_per_byte": 8.0}).round(3)
    np.float64(1.333)
    """
    cached = np.asarray(point["kv_byte_per_weight"], dtype=float)
    flop = positions * (FLOP_PER_WEIGHT + cached * point["kv_flop_per_byte"])
    return np.divide(flop, point["bytes_per_weight"] + cached)


def gpu_ridges(*, as_of: date) -> dict[str, float]:
    """Map "part format" to its dense ridge point, GPUs only. [FLOP/byte].

    Examples
    --------
    >>> round(gpu_ridges(as_of=date(2026, 7, 20))["h100-sxm bf16"])
    295
    """
    parts = accelerators(as_of=as_of)
    if not parts:
        raise InputError("accelerators", None, f"at least one known on {as_of}")
    frame = ridge_points(parts)
    frame = frame[~frame["accelerator"].str.startswith(NOT_GPUS)]
    names = frame["accelerator"] + " " + frame["number_format"]
    return dict(zip(names, frame["ridge_flop_per_byte"], strict=True))


def _gpus(context: Context) -> Choice:
    ridges = gpu_ridges(as_of=context.as_of)
    return Choice(tuple(ridges), "every GPU of the table in every format that it computes in, at dense peaks")


def _ridge_of(names: NDArray[np.str_], context: Context) -> NDArray[np.float64]:
    ridges = gpu_ridges(as_of=context.as_of)
    return np.array([ridges[name] for name in np.asarray(names)])


def _stream_on_gpu(context: Context) -> Space:
    return {
        "gpu": _gpus(context),
        **_one_stream(context),
        "mfu": Range(0.3, 1, "share of the dense peak that matmuls reach, up to the sheet itself", "uniform", 0, 1),
        "mbu": Range(0.5, 1, "share of the bandwidth that reading reaches, up to the sheet itself", "uniform", 0, 1),
        "positions": Choice((1,), "decode of one stream: one position in a pass"),
    }


@claim(
    "C07",
    kind="computed",
    stated_in="both",
    quantifier="always",
    chapter="roofline",
    anchor=ANCHOR,
    space=_stream_on_gpu,
    counterfactual=Counterfactual(
        "the pass reads a prompt of 2,048 tokens in place of one", lambda space: fixed(space, positions=2048)
    ),
    inputs={"gpu": "the GPU and its format"},
    sources=("radar2026", "aiconfigurator", "epoch2026"),
)
def one_stream_is_memory_bound(point: Point, context: Context) -> Outcome:
    """Decoding a single stream is limited by memory, not by compute."""
    wide = np.array([FORMAT_BYTES[name.split()[1]] for name in point["gpu"]])
    limit = _ridge_of(point["gpu"], context) * point["mfu"] / point["mbu"]
    longer = limit / stream_intensity(point, point["positions"])
    return Outcome(longer > 1, value=longer, defined=point["bytes_per_weight"] <= wide)


NEAR_1 = Stated(0.5, 2, "FLOP/byte", "near 1, taken for half to twice")
HUNDREDS = Stated(100, 999, "FLOP/byte", "hundreds, taken for three digits before the point")


@claim(
    "C08",
    kind="computed",
    stated_in="both",
    quantifier="always",
    chapter="roofline",
    anchor=ANCHOR,
    stated=NEAR_1,
    space=_one_stream,
    counterfactual=Counterfactual("weights stored in 16 bit", lambda space: fixed(space, bytes_per_weight=2.0)),
    inputs={
        "bytes_per_weight": "the size of a stored weight (byte)",
        "kv_flop_per_byte": "the operations on a cached byte",
    },
    accelerator=None,
)
def intensity_near_one(point: Point, context: Context) -> Outcome:
    """The arithmetic intensity of autoregressive decoding at batch one is near 1."""
    intensity = np.asarray(stream_intensity(point), dtype=float)
    return Outcome(NEAR_1.contains(intensity), value=intensity)


def _every_gpu(context: Context) -> Space:
    return {
        "gpu": _gpus(context),
        "faster_memory": Choice((1.0,), "the bandwidth of the sheet: what the part is built for"),
    }


@claim(
    "C09",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    chapter="roofline",
    anchor=ANCHOR,
    stated=HUNDREDS,
    space=_every_gpu,
    counterfactual=Counterfactual(
        "memory a hundred times as fast, as SRAM on the chip is", lambda space: fixed(space, faster_memory=100.0)
    ),
    inputs={"gpu": "the part"},
    sources=("radar2026", "aiconfigurator", "epoch2026"),
)
def gpus_built_for_hundreds(point: Point, context: Context) -> Outcome:
    """GPUs are built for arithmetic intensities in the hundreds."""
    ridge = _ridge_of(point["gpu"], context) / point["faster_memory"]
    return Outcome(HUNDREDS.contains(ridge), value=ridge)
