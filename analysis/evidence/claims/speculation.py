"""Statements about speculative decoding (chapter 6), on the calibrated time of a pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import simplify

from analysis.evidence.claims.registry import Context, Counterfactual, Outcome, Stated, Structure, claim
from analysis.evidence.claims.serving import by_replica
from analysis.evidence.scenarios import Choice, Point, Range, Space, fixed
from analysis.model.decoders import cycle
from analysis.reference.specs import Decoder, Efficiency, Replica
from analysis.symbolic import decoders as symbolic
from analysis.symbols import ACCEPT, DRAFTS

CHAPTER, ANCHOR = "speculation", "speculation-claims"
MODELS = {"llama-3.1-8b": 1, "llama-3.1-70b": 8, "qwen3-30b-a3b": 1, "gpt-oss-120b": 2}
#: What drafts are taken to do wherever decoders are compared, so that no two statements rest on two ranges.
ACCEPTANCE = Range(
    0.46, 0.89, "chains on serving engines, the middle 90 % of settings", scale="uniform", floor=0, ceiling=1
)
#: The median of those settings: it lies above the middle of the range.
MEDIAN_ACCEPTANCE = 0.73
DRAFT_COST = Range(
    0.02,
    0.15,
    "time of a draft in plain passes: from extra heads, 0.06 on 70B, to the drafts that were measured at 0.12 and 0.14",
    scale="uniform",
    floor=0,
)
COPIED = Range(
    0.14,
    0.75,
    "look-up in the prompt: from mathematics, where nothing repeats, to editing a text that stands in the prompt",
    scale="uniform",
    floor=0,
    ceiling=1,
)
#: Draft lengths that samples choose the best of: fewer than the pages show, to the same effect.
DRAFT_LENGTHS, COPIES = (1, 2, 3, 5, 8), (2, 4, 8, 16)
ABOUT_2_TO_4 = Stated(1.5, 4.5, "1", "about 2 to 4, both rounded to whole numbers")


@claim("C31", kind="definition", stated_in="both", chapter=CHAPTER, anchor=ANCHOR)
def drafted_and_checked() -> Structure:
    """Speculative decoding (Medusa, EAGLE) drafts tokens with a small model and checks them in one pass."""
    drafts = Decoder.speculative(acceptance=0.8, draft_length=4)
    tokens = symbolic.tokens_of_a_cycle().subs({DRAFTS: 4}).doit()
    kept = simplify(tokens - sum(ACCEPT**i for i in range(5))) == 0
    return Structure(
        present=drafts.positions == 5 and drafts.kind == "speculative" and kept,
        departs_when=(
            "Medusa and multi-token prediction add heads to the large model and EAGLE a layer that reads its states:"
            " none of them is a separate small model; look-up in the prompt has no model at all"
        ),
    )


def _one_stream(context: Context) -> Space:
    return {
        "model": Choice(tuple(MODELS), "open models, dense and sparse, one GPU to a node"),
        "weights": Choice(("fp8", "bf16"), "as served and as released"),
        "draft_length": Choice((3.0, 5.0, 7.0), "chains of the benchmarks"),
        "acceptance": ACCEPTANCE,
        "draft_cost": DRAFT_COST,
        "context_tokens": Range(500, 8000, "a question to a document", floor=1),
    }


@claim(
    "C32",
    kind="computed",
    stated_in="both",
    quantifier="typically",
    chapter=CHAPTER,
    anchor=ANCHOR,
    stated=ABOUT_2_TO_4,
    space=_one_stream,
    counterfactual=Counterfactual(
        "text that no draft guesses: one of five accepted", lambda space: fixed(space, acceptance=0.2)
    ),
    inputs={"acceptance": "the acceptance", "draft_cost": "the cost of a draft", "model": "the model"},
    sources=("radar2026", "specforge", "sglang-spec-docs", "vllm-diffusiongemma"),
)
def two_to_four_times(point: Point, context: Context) -> Outcome:
    """Speculation makes a single stream about 2 to 4 times as fast."""

    def of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        drafts = Decoder.speculative(
            acceptance=at["acceptance"], draft_length=at["draft_length"], draft_cost=at["draft_cost"]
        )
        asked: dict[str, Any] = {"batch": 1.0, "context_tokens": at["context_tokens"], "efficiency": reached}
        plain = cycle(replica, Decoder.autoregressive(), **asked).cycle_s
        return np.asarray(drafts.tokens_per_pass * plain / cycle(replica, drafts, **asked).cycle_s)

    gpus = np.array([MODELS[str(model)] for model in np.ravel(point["model"])]).reshape(np.shape(point["model"]))
    gain = by_replica({**point, "gpus": gpus}, of)
    return Outcome(ABOUT_2_TO_4.contains(gain), value=gain)
