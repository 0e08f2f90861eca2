"""Statements about text diffusion (chapter 5), on the calibrated time of a pass and on dated rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.evidence import diffusion as measured
from analysis.evidence.claims.registry import Context, Counterfactual, Evidence, Outcome, Stated, Structure, claim
from analysis.evidence.claims.serving import by_replica
from analysis.evidence.claims.speculation import ACCEPTANCE, COPIED, COPIES, DRAFT_COST, DRAFT_LENGTHS
from analysis.evidence.scenarios import Choice, Point, Range, Space, fixed, sample
from analysis.model.decoding import pass_time
from analysis.model.head_to_head import Rival, best, look_up, one_by_one, speculation
from analysis.model.transformer import pass_work
from analysis.reference import decoder_tables, tables
from analysis.reference.specs import Decoder, Efficiency, Replica
from analysis.symbolic import decoders as symbolic
from analysis.symbols import BLOCK, PASSES

CHAPTER, ANCHOR = "diffusion", "diffusion-claims"
#: How diffusion is run, and on which kind of model. Blocks write finished text to a cache, whole sequences have none.
DENSE_BLOCKS, SPARSE_BLOCKS, WHOLE = "dense-blocks", "sparse-blocks", "dense-whole"
FORMS = Choice((DENSE_BLOCKS, WHOLE, SPARSE_BLOCKS), "as the open diffusion models run: with a cache, without, sparse")
#: Backbones of the same kinds as the open diffusion models, small and large, and the GPUs that hold them.
BACKBONES = {
    (DENSE_BLOCKS, "small"): ("llama-3.1-8b", 1),
    (DENSE_BLOCKS, "large"): ("llama-3.1-70b", 8),
    (WHOLE, "small"): ("llada-8b", 1),
    (WHOLE, "large"): ("llama-3.1-70b", 8),
    (SPARSE_BLOCKS, "small"): ("gemma-4-26b-a4b", 1),
    (SPARSE_BLOCKS, "large"): ("qwen3-235b-a22b", 8),
}
SIZES = Choice(("small", "large"), "one GPU, or the eight of a node")
WIDTHS = Choice(("fp8", "bf16"), "as served and as released")
BLOCK_RANGE = Range(32, 256, "blocks of the open diffusion models: LLaDA2 to DiffusionGemma", floor=1)
PROMPT = Range(500, 8000, "from a short question to a long document", floor=1)
ANSWER = Range(100, 500, "a record with its fields", floor=1)
#: Block length and passes of a block, the one that commits it included, as published.
SETTINGS = {
    "llada2.0": (32.0, 32 / 3.18),
    "llada2.0-cap": (32.0, 32 / 4.65),
    "diffusiongemma-chart": (256.0, 17.0),
    "diffusiongemma-request": (256.0, 33.0),
}
#: "Large" is twice as fast or more.
LARGE = 2.0
#: "Similar" ends at this ratio, so what leaves out a rival that changes it by more misleads.
SIMILAR = 1.25
#: "As steep": at least this share of the other's rise with compute, the lower end of what is similar.
AS_STEEP = 1 / SIMILAR


def _backbones(point: Point) -> dict[str, NDArray[Any]]:
    """Name the model and the GPUs of each sample from its form and size."""
    form, size = np.broadcast_arrays(np.asarray(point["form"]), np.asarray(point["size"]))
    pairs = [BACKBONES[str(f), str(s)] for f, s in zip(form.ravel(), size.ravel(), strict=True)]
    return {
        **point,
        "model": np.array([model for model, _ in pairs]).reshape(form.shape),
        "gpus": np.array([gpus for _, gpus in pairs]).reshape(form.shape),
    }


def _pass_of(at: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Say which positions a pass computes after which context: a block, or prompt and answer without a cache."""
    whole = at["form"] == WHOLE
    return {
        "batch": 1.0,
        "context_tokens": np.where(whole, 0.0, at["prompt"]),
        "positions": np.where(whole, at["prompt"] + at["answer"], np.rint(at["block"])),
        "causal": False,
    }


def _passes(context: Context) -> Space:
    return {
        "form": FORMS,
        "size": SIZES,
        "weights": WIDTHS,
        "block": BLOCK_RANGE,
        "prompt": PROMPT,
        "answer": ANSWER,
    }


# --- What it is --------------------------------------------------------------------------------


@claim("C20", kind="definition", stated_in="both", chapter=CHAPTER, anchor=ANCHOR)
def refined_in_parallel() -> Structure:
    """Text diffusion starts from masked or noisy tokens and refines a block in several parallel passes."""
    block = Decoder.diffusion(block_tokens=256, passes=17)
    rate = symbolic.block_gain()
    return Structure(
        present=block.positions == 256 and block.tokens_per_pass == 256 / 17 and rate.has(BLOCK, PASSES),
        departs_when=(
            "what is served writes one block after the other and keeps a cache of the finished ones, so it is"
            " autoregressive between blocks; only research loops refine the whole text; the number of passes depends"
            " on the text"
        ),
    )


@claim(
    "C21",
    kind="computed",
    stated_in="article",
    quantifier="always",
    chapter=CHAPTER,
    anchor=ANCHOR,
    space=_passes,
    counterfactual=Counterfactual(
        "the whole sequence in every pass, without a cache, of a dense model",
        lambda space: {**space, "form": Choice((WHOLE,), "held fixed")},
    ),
    inputs={"form": "the form", "block": "the block, in tokens,", "weights": "the format of the weights"},
    sources=("radar2026", "vllm-diffusiongemma"),
)
def compute_bound_alone(point: Point, context: Context) -> Outcome:
    """Each diffusion pass is compute-bound even at batch one."""

    def of(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        time = pass_time(replica, **_pass_of(at), efficiency=reached)
        return np.asarray((time.matmul_s + time.attention_s) / (time.weights_s + time.kv_s))

    ratio = by_replica(_backbones(point), of)
    return Outcome(ratio > 1, value=ratio)


HUNDREDS = Stated(100, 999, "FLOP/byte", "hundreds: 100 to 999, and more than that is no contradiction")
NEAR_ONE = Stated(0.5, 2, "FLOP/byte", "near 1: 0.5 to 2")


@claim(
    "C22",
    kind="computed",
    stated_in="both",
    quantifier="typically",
    chapter=CHAPTER,
    anchor=ANCHOR,
    stated=HUNDREDS,
    space=_passes,
    counterfactual=Counterfactual(
        "blocks of 32 tokens of a sparse model, as half of the open models run",
        lambda space: {**fixed(space, block=32.0), "form": Choice((SPARSE_BLOCKS,), "held fixed")},
    ),
    inputs={"form": "the form", "block": "the block, in tokens,", "weights": "the format of the weights"},
    sources=("radar2026", "vllm-diffusiongemma"),
)
def intensity_in_the_hundreds(point: Point, context: Context) -> Outcome:
    """Diffusion models land at arithmetic intensities in the hundreds where comparable ones of today are near 1."""

    def of_pass(replica: Replica, asked: dict[str, Any]) -> Any:
        return pass_work(replica.architecture, replica.precision, **asked).intensity_flop_per_byte

    def wide(replica: Replica, _: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        return np.asarray(of_pass(replica, _pass_of(at)))

    def narrow(replica: Replica, _: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        return np.asarray(of_pass(replica, {"batch": 1.0, "context_tokens": at["prompt"] + at["answer"] / 2}))

    named = _backbones(point)
    intensity = by_replica(named, wide)
    plain = by_replica(named, narrow)
    return Outcome((intensity >= HUNDREDS.low) & NEAR_ONE.contains(plain), value=intensity)


# --- Market facts ------------------------------------------------------------------------------


def _rates(models: tuple[str, ...], sources: tuple[str, ...], context: Context) -> pd.DataFrame:
    """What some sources say of rates, up to a day: a newer figure of somebody else does not undo a report."""
    rows = tables.all_rows("api_latency")
    rows = rows[rows["model"].isin(models) & (rows["quantity"] == "output_rate")]
    return rows[rows["source"].isin(sources) & (rows["as_of"] <= context.as_of)]


@claim(
    "C23",
    kind="market fact",
    stated_in="both",
    quantifier="can",
    chapter=CHAPTER,
    anchor=ANCHOR,
    stated=Stated(1100, 1199, "token/s", "over 1,100, by the digits given"),
)
def mercury_on_h100(context: Context) -> Evidence:
    """Mercury reported more than 1,100 tokens per second on H100 for code."""
    rows = _rates(("mercury-coder-mini", "mercury-coder-small"), ("mercury-paper",), context)
    return Evidence(
        rows.assign(supports=rows["value"] >= 1100),
        searched="the paper on Mercury, June 2025: rates of both sizes",
        called="reported rates (the smaller model's; the other size is at 737)",
    )


ABOUT_1000 = Stated(900, 1100, "token/s", "roughly 1,000: within a tenth")


@claim(
    "C24",
    kind="market fact",
    stated_in="article",
    quantifier="can",
    chapter=CHAPTER,
    anchor=ANCHOR,
    stated=ABOUT_1000,
)
def mercury_2_on_blackwell(context: Context) -> Evidence:
    """Mercury 2 reported roughly 1,000 tokens per second on Blackwell at low latency."""
    rows = _rates(("mercury-2",), ("awesomeagents-mercury", "airs-mercury"), context)
    return Evidence(
        rows.assign(supports=ABOUT_1000.contains(rows["value"].to_numpy())),
        searched="the figures of the launch in February 2026; which Blackwell part is not published",
        called="rates that its maker or the press reported; others have 732 and 874, and 2.8 s to the first token",
    )


@claim("C25", kind="market fact", stated_in="article", quantifier="typically", chapter=CHAPTER, anchor=ANCHOR)
def gemini_diffusion_in_preview(context: Context) -> Evidence:
    """Gemini Diffusion is in enterprise preview, and general availability is expected later in 2026."""
    return Evidence(
        pd.DataFrame(columns=["value", "unit", "as_of", "source", "supports"]),
        searched=(
            "no page found that says so: the maker's model page, its cloud documentation and the press describe an"
            " experiment with a waiting list of May 2025, and DiffusionGemma of June 2026 with open weights (searched"
            " November 2026)"
        ),
    )


@claim("C26", kind="market fact", stated_in="both", quantifier="can", chapter=CHAPTER, anchor=ANCHOR)
def mercury_2_is_sold(context: Context) -> Evidence:
    """Mercury 2 is commercially available."""
    rows = tables.table("api_prices", as_of=context.as_of).rows
    rows = rows[(rows["model"] == "mercury-2") & (rows["quantity"] == "price")]
    return Evidence(
        rows.assign(supports=rows["value"] > 0), searched="the price feeds of the data table", called="listed prices"
    )


@claim(
    "C27",
    kind="market fact",
    stated_in="both",
    quantifier="typically",
    chapter=CHAPTER,
    anchor=ANCHOR,
    sources=("radar2026", "smdm-figures"),
)
def llada_scales(context: Context) -> Evidence:
    """LLaDA is open and shows scaling laws like those of autoregressive models."""
    scores = measured.scores_at_equal_compute()
    slopes = scores["slope_diffusion"] / scores["slope_ar"]
    rows = pd.DataFrame(
        {
            "value": slopes,
            "unit": "1",
            "as_of": tables.parse_date("llada", tables.sources().loc["llada", "published"]),
            "source": "llada",
            "supports": slopes >= AS_STEEP,
        }
    )
    return Evidence(
        rows,
        searched="tables 18 and 19 of the paper: six benchmarks by training compute; its weights are published",
        called=(
            f"benchmarks that rise with compute at least {AS_STEEP:g} times as steeply as for the authors' own plain"
            " model (the other one, ARC-C, two thirds as steeply); equal slope is not equal level: at equal loss"
            " diffusion took about 16 times the compute"
        ),
    )


@claim(
    "C28",
    kind="market fact",
    stated_in="addition",
    quantifier="can",
    chapter=CHAPTER,
    anchor=ANCHOR,
    sources=("vllm-diffusiongemma", "vllm-recipe-diffusiongemma"),
)
def open_and_like_for_like(context: Context) -> Evidence:
    """The article leaves out the one like-for-like test: an open 26B-A4B diffusion model on a plain one's backbone."""
    frame = decoder_tables.diffusion()
    rows = frame[frame["source"].eq("vllm-diffusiongemma") & frame["against"].ne("") & frame["gain"].notna()]
    rows = rows[(rows["decoder"] == "diffusion") & (rows["as_of"] <= context.as_of)]
    return Evidence(
        rows.assign(value=rows["gain"], unit="1", supports=rows["status"] == "measured"),
        searched="the engine's post of June 2026: the same backbone, engine, format and GPU, at batch 1",
        called="measured pairs; over plain decoding, prompts left out",
    )


# --- Is the edge large? ------------------------------------------------------------------------

RIVAL_KINDS = ("plain", "drafts", "look-up")
RIVALS = Choice(RIVAL_KINDS, "what else the node can run at batch 1")


def edge_space(context: Context) -> Space:
    """Make the space of a single request with a tight budget: every decoder, one GPU or a node."""
    return {
        "form": Choice((DENSE_BLOCKS, SPARSE_BLOCKS), "with a cache, as it is served"),
        "size": SIZES,
        "weights": WIDTHS,
        "setting": Choice(tuple(SETTINGS), "blocks and passes as published"),
        "prompt": Range(1500, 8000, "a prompt with a document", floor=1),
        "answer": ANSWER,
        "acceptance": ACCEPTANCE,
        "draft_cost": DRAFT_COST,
        "look_up": COPIED,
    }


def requests_s(point: Point) -> dict[str, NDArray[np.float64]]:
    """Latency of one request alone in blocks and with each rival, on the same backbone. [s].

    Drafts and look-up draft as many tokens as pay best, or none, as in the statements of
    `analysis.evidence.claims.rivals`; blocks and passes are those that were published together.
    """
    named = _backbones(point)
    block = np.array([SETTINGS[str(s)][0] for s in np.ravel(point["setting"])]).reshape(np.shape(point["setting"]))
    passes = np.array([SETTINGS[str(s)][1] for s in np.ravel(point["setting"])]).reshape(block.shape)
    named |= {"block": block, "passes": passes}

    def rival(kind: str, at: dict[str, NDArray[Any]]) -> Rival:
        if kind == "blocks":
            return Rival(kind, (Decoder.diffusion(block_tokens=at["block"], passes=at["passes"]),))
        if kind == "plain":
            return one_by_one()
        if kind == "look-up":
            return look_up(acceptance=at["look_up"], lengths=COPIES)
        return speculation(acceptance=at["acceptance"], draft_cost=at["draft_cost"], lengths=DRAFT_LENGTHS)

    def of(kind: str) -> NDArray[np.float64]:
        def one(replica: Replica, reached: Efficiency, at: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
            return np.asarray(
                best(
                    replica,
                    rival(kind, at),
                    batch=1.0,
                    input_tokens=at["prompt"],
                    output_tokens=np.rint(at["answer"]),
                    efficiency=reached,
                ).request_s
            )

        return by_replica(named, one)

    return {kind: of(kind) for kind in ("blocks", *RIVAL_KINDS)}


def _with_rivals(context: Context) -> Space:
    return {**edge_space(context), "rival": RIVALS}


@claim(
    "C34",
    kind="computed",
    stated_in="article",
    quantifier="typically",
    chapter=CHAPTER,
    anchor=ANCHOR,
    stated=Stated(LARGE, 100, "1", "large: twice as fast or more; for durable there is no series of dates to test"),
    space=_with_rivals,
    counterfactual=Counterfactual(
        "against plain decoding, for one full block that keeps 15 tokens of each pass",
        lambda space: fixed(
            space, rival="plain", setting="diffusiongemma-chart", answer=256.0, prompt=1500.0, size="small"
        ),
    ),
    inputs={"rival": "the rival", "setting": "blocks and passes", "answer": "the answer, in tokens,"},
    split="rival",
    sources=("radar2026", "vllm-diffusiongemma", "llada2", "specforge", "specdecode-bench"),
)
def edge_is_large(point: Point, context: Context) -> Outcome:
    """For one stream with a tight budget the edge of diffusion is large and durable."""
    seconds = requests_s(point)
    named = np.asarray(point["rival"])
    rival = np.select([named == kind for kind in RIVAL_KINDS], [seconds[k] for k in RIVAL_KINDS])
    edge = rival / seconds["blocks"]
    return Outcome(edge >= LARGE, value=edge)


@claim(
    "C65",
    kind="computed",
    stated_in="summary",
    quantifier="typically",
    chapter=CHAPTER,
    anchor=ANCHOR,
    stated=Stated(SIMILAR, 10, "1", "misleading: the edge over plain decoding is more than a quarter too large"),
    space=edge_space,
    counterfactual=Counterfactual(
        "text that no draft guesses: one of five accepted",
        lambda space: fixed(space, acceptance=0.2, look_up=0.1),
    ),
    inputs={"acceptance": "the acceptance of drafts", "draft_cost": "the cost of a draft"},
    sources=("radar2026", "vllm-diffusiongemma", "llada2.2", "specforge"),
)
def leaving_out_drafts_misleads(point: Point, context: Context) -> Outcome:
    """Comparisons that leave out speculative decoding mislead; there is no absolute winner."""
    seconds = requests_s(point)
    overstated = seconds["plain"] / np.minimum(seconds["drafts"], seconds["look-up"])
    return Outcome(overstated > SIMILAR, value=overstated)


def winners(context: Context) -> pd.DataFrame:
    """Say how often each decoder answers a lone request first, over the samples of C65: there is no absolute winner.

    Returns
    -------
    DataFrame
        Columns ``decoder``, ``share``, the most frequent first. [1]
    """
    seconds = requests_s(sample(edge_space(context)))
    names = list(seconds)
    first = np.argmin(np.stack([seconds[name] for name in names]), axis=0)
    shares = [float(np.mean(first == index)) for index in range(len(names))]
    frame = pd.DataFrame({"decoder": names, "share": shares})
    return frame.sort_values("share", ascending=False, kind="stable", ignore_index=True)
