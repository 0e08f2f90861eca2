"""Text diffusion, predicted beside measured: one backbone decoded three ways, siblings, batches, closed systems.

Predictions use the calibrated time of a pass, whose constants were fitted on plain decoding and reading of prompts:
no row of diffusion entered them. Where a source leaves out a condition, the column or the docstring says which.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.inputs import InputError, at_least_one, positive, scalar_or_array
from analysis.model.decoders import answer_passes, cycle, request_s
from analysis.model.roofline import ridge_flop_per_byte
from analysis.model.transformer import expert_union, pass_work, weight_bytes
from analysis.reference import decoder_tables, tables
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import replica
from analysis.reference.specs import Accelerator, Decoder, Replica
from analysis.reference.tables import NEWEST, accelerator

#: The pass that writes a finished block into the cache.
COMMIT_PASSES = 1
BYTES_OF_16_BIT = 2.0
#: The test of June 2026: blocks of 256 tokens, 16 denoising passes; 4 drafts at an imposed acceptance of 80 %.
BLOCK_TOKENS, DENOISING_STEPS = 256, 16
DRAFT_LENGTH, ACCEPTANCE = 4, 0.8
#: Its prompts are left out of the rates and their length is not stated; the mean context of one block is taken.
CONTEXT_TOKENS = BLOCK_TOKENS
ENGINE = "vllm"
BACKBONE = "gemma-4-26b-a4b"
PLAIN = Decoder.autoregressive()
BLOCKS = Decoder.diffusion(block_tokens=BLOCK_TOKENS, passes=DENOISING_STEPS + COMMIT_PASSES)
NAMES = {"ar": "one token at a time", "mtp": "with drafts", "diffusion": "in blocks"}


# --- One backbone, three decoders --------------------------------------------------------------


def _one(gpu: str) -> Replica:
    return replica(BACKBONE, f"{gpu}-sxm", as_of=NEWEST, weights="fp8")


def _measured() -> pd.Series:
    frame = decoder_tables.diffusion()
    rates: pd.Series = frame[frame["source"] == "vllm-diffusiongemma"].set_index("id")["output_tok_per_s"]
    return rates


def draft_cost() -> float:
    """Time of one draft in plain passes, from the measured rate with drafts on the H100; the H200 judges it. [1].

    Examples
    --------
    >>> 0.1 < draft_cost() < 0.2
    True
    """
    one = _one("h100")
    reached = efficiency(one, ENGINE)
    free = Decoder.speculative(acceptance=ACCEPTANCE, draft_length=DRAFT_LENGTH)
    at: dict[str, Any] = {"batch": 1, "context_tokens": CONTEXT_TOKENS, "efficiency": reached}
    left = free.tokens_per_pass / _measured()["dg-h100-mtp"] - cycle(one, free, **at).cycle_s
    return float(left / DRAFT_LENGTH / cycle(one, PLAIN, **at).cycle_s)


def same_backbone() -> pd.DataFrame:
    """One model decoded one token at a time, with drafts, and in blocks, on one GPU at batch 1: the fair comparison.

    Returns
    -------
    DataFrame
        Columns ``gpu``, ``decoder``, ``tokens_per_pass``, ``measured_tok_per_s``, ``predicted_tok_per_s``, ``error``
        (predicted over measured, less 1), ``measured_gain`` and ``predicted_gain`` (over one token at a time),
        ``measured_ms`` and ``predicted_ms`` (of a pass with its drafts), ``floor_ms`` (bytes over bandwidth, or
        operations over peak, of the data sheet), ``set`` (``fitted`` where a number comes from that row), ``source``.
        [token/s, 1, ms]

    Notes
    -----
    8-bit weights, prompts left out of the rates. Not stated: their length (taken: one block of context) and the
    form factor of the GPUs (taken: SXM). The only number from these rows is `draft_cost`, from the H100.

    Examples
    --------
    >>> frame = same_backbone().set_index(["gpu", "decoder"])
    >>> round(float(frame.loc[("h100", "in blocks"), "measured_gain"]), 1)
    5.1
    """
    rates, cost = _measured(), draft_cost()
    drafts = Decoder.speculative(acceptance=ACCEPTANCE, draft_length=DRAFT_LENGTH, draft_cost=cost)
    rows = []
    for gpu in ("h100", "h200"):
        one = _one(gpu)
        for name, decoder in (("ar", PLAIN), ("mtp", drafts), ("diffusion", BLOCKS)):
            at: dict[str, Any] = {"batch": 1, "context_tokens": CONTEXT_TOKENS}
            whole = cycle(one, decoder, **at, efficiency=efficiency(one, ENGINE)).cycle_s
            floor = cycle(one, decoder, **at)
            tokens, rate = decoder.tokens_per_pass, float(rates[f"dg-{gpu}-{name}"])
            rows.append(
                {
                    "gpu": gpu,
                    "decoder": NAMES[name],
                    "tokens_per_pass": tokens,
                    "measured_tok_per_s": rate,
                    "predicted_tok_per_s": tokens / whole,
                    "error": tokens / whole / rate - 1,
                    "measured_gain": rate / rates[f"dg-{gpu}-ar"],
                    "measured_ms": 1e3 * tokens / rate,
                    "predicted_ms": 1e3 * whole,
                    "floor_ms": 1e3 * floor.time.pass_s,
                    "set": "fitted" if (gpu, name) == ("h100", "mtp") else "judged",
                    "source": "vllm-diffusiongemma",
                }
            )
    frame = pd.DataFrame(rows)
    plain = frame[frame["decoder"] == NAMES["ar"]].set_index("gpu")["predicted_tok_per_s"]
    frame.insert(7, "predicted_gain", frame["predicted_tok_per_s"] / frame["gpu"].map(plain))
    return frame


def pass_anatomy(gpu: str = "h100") -> pd.Series:
    """Say what one pass over a block of 256 tokens reads and computes, against what it took.

    Parameters
    ----------
    gpu : {"h100", "h200"}

    Returns
    -------
    Series
        ``weights_gb`` (of the whole model), ``read_gb`` (of a pass), ``read_s_floor``, ``compute_s_floor``,
        ``measured_s``, ``predicted_s``, ``fixed_s``, ``mbu`` and ``mfu`` (shares of both peaks, as measured),
        ``intensity_flop_per_byte``, ``ridge_flop_per_byte``. [GB, s, 1, FLOP/byte]

    Examples
    --------
    >>> found = pass_anatomy()
    >>> bool(found["intensity_flop_per_byte"] < found["ridge_flop_per_byte"] / 5)
    True
    """
    one = _one(gpu)
    work = pass_work(
        one.architecture,
        one.precision,
        batch=1,
        context_tokens=CONTEXT_TOKENS,
        positions=BLOCK_TOKENS,
        causal=False,
    )
    peak, bandwidth = one.accelerator.peak("fp8"), one.accelerator.mem_bw_byte_per_s
    measured = BLOCKS.tokens_per_pass / float(_measured()[f"dg-{gpu}-diffusion"])
    time = cycle(one, BLOCKS, batch=1, context_tokens=CONTEXT_TOKENS, efficiency=efficiency(one, ENGINE)).time
    return pd.Series(
        {
            "weights_gb": weight_bytes(one.architecture, one.precision) / 1e9,
            "read_gb": work.byte / 1e9,
            "read_s_floor": work.byte / bandwidth,
            "compute_s_floor": work.flop / peak,
            "measured_s": measured,
            "predicted_s": time.pass_s,
            "fixed_s": time.fixed_s,
            "mbu": work.byte / bandwidth / measured,
            "mfu": work.flop / peak / measured,
            "intensity_flop_per_byte": work.intensity_flop_per_byte,
            "ridge_flop_per_byte": ridge_flop_per_byte(peak, mem_bw_byte_per_s=bandwidth),
        }
    )


def whole_request() -> pd.DataFrame:
    """One whole request at concurrency 1 on one H100, in blocks and one token at a time, as the engine's recipe has it.

    Returns
    -------
    DataFrame
        Columns ``decoder``, ``output_tokens`` (rate times latency), ``ttft_s``, ``e2e_s``, ``output_tok_per_s``,
        ``predicted_e2e_s``, ``predicted_tok_per_s``, ``error`` (of the latency), ``passes_per_block``, ``set``
        (``partly fitted`` where the passes come from the row itself). [token, s, 1]

    Notes
    -----
    Not stated: length of the prompts, format of the weights (taken: 8 bit), steps of a block, which end early. The
    wait for the first token of plain decoding stands for reading the prompt; passes of a block are those of the
    first block, which is the rest of its wait. Both waits are measured, so what is judged is the time after them.

    Examples
    --------
    >>> frame = whole_request().set_index("decoder")
    >>> rate = frame["output_tok_per_s"]
    >>> round(float(rate["in blocks"] / rate["one token at a time"]), 1)
    1.9
    """
    frame = decoder_tables.diffusion().set_index("id")
    one = _one("h100")
    at: dict[str, Any] = {"batch": 1, "context_tokens": CONTEXT_TOKENS, "efficiency": efficiency(one, ENGINE)}
    prompt = float(frame.loc["dg-recipe-ar", "ttft_s"])
    pass_s = cycle(one, BLOCKS, **at).cycle_s
    passes = (float(frame.loc["dg-recipe-diffusion", "ttft_s"]) - prompt) / pass_s
    rows = []
    for name, decoder in (("ar", PLAIN), ("diffusion", Decoder.diffusion(block_tokens=BLOCK_TOKENS, passes=passes))):
        row = frame.loc[f"dg-recipe-{name}"]
        tokens = float(row["output_tok_per_s"] * row["e2e_s"])
        after = answer_passes(decoder, tokens) - 1
        predicted = prompt + after * cycle(one, decoder, **at).cycle_s
        rows.append(
            {
                "decoder": NAMES[name],
                "output_tokens": tokens,
                "ttft_s": row["ttft_s"],
                "e2e_s": row["e2e_s"],
                "output_tok_per_s": row["output_tok_per_s"],
                "predicted_e2e_s": predicted,
                "predicted_tok_per_s": tokens / predicted,
                "error": predicted / row["e2e_s"] - 1,
                "passes_per_block": decoder.passes_per_block,
                "set": "partly fitted" if name == "diffusion" else "judged",
            }
        )
    return pd.DataFrame(rows)


def sweep_blocks(block_tokens: ArrayLike, *, prompt_tokens: float = 1500.0) -> pd.DataFrame:
    """Intensity of one pass of one sequence by block length, over the ridge of an H100 in the same format.

    Parameters
    ----------
    block_tokens : sequence of float
        Blocks. [token]
    prompt_tokens : float
        Cached before the block; without a cache, computed with it. [token]

    Returns
    -------
    DataFrame
        Columns ``name``, ``block_tokens``, ``intensity_flop_per_byte``, ``ridge_flop_per_byte``, ``over_ridge``
        (above 1: compute-bound by the data sheet), ``weights_read`` (share of the weights). [token, FLOP/byte, 1]

    Examples
    --------
    >>> frame = sweep_blocks([256.0]).set_index("name")
    >>> bool(frame.loc["sparse, cached", "over_ridge"] < 0.2 < frame.loc["dense, cached", "over_ridge"])
    True
    """
    block = np.asarray(block_tokens, float)
    rows = []
    for name, model in (
        ("whole sequence", "llada-8b"),
        ("dense, cached", "llama-3.1-8b"),
        ("sparse, cached", BACKBONE),
    ):
        one = replica(model, "h100-sxm", as_of=NEWEST, weights="fp8")
        whole = name == "whole sequence"
        work = pass_work(
            one.architecture,
            one.precision,
            batch=1,
            context_tokens=0.0 if whole else prompt_tokens,
            positions=prompt_tokens + block if whole else block,
            causal=False,
        )
        ridge = ridge_flop_per_byte(one.accelerator.peak("fp8"), mem_bw_byte_per_s=one.accelerator.mem_bw_byte_per_s)
        rows.append(
            pd.DataFrame(
                {
                    "name": name,
                    "block_tokens": block,
                    "intensity_flop_per_byte": work.intensity_flop_per_byte,
                    "ridge_flop_per_byte": ridge,
                    "over_ridge": work.intensity_flop_per_byte / ridge,
                    "weights_read": work.weight_bytes / weight_bytes(one.architecture, one.precision),
                }
            )
        )
    return pd.concat(rows, ignore_index=True)


def sweep_answers(output_tokens: ArrayLike, *, input_tokens: float = 1500.0) -> pd.DataFrame:
    """Time of one whole request by the length of its answer, on one backbone and one H100, predicted.

    Parameters
    ----------
    output_tokens : sequence of float
        Answers. [token]
    input_tokens : float
        Prompt. [token]

    Returns
    -------
    DataFrame
        Columns ``name``, ``output_tokens``, ``seconds``, ``edge`` (time of the plain decoder over it). [token, s, 1]

    Notes
    -----
    Blocks as in the test of June 2026 (17 passes), and as many passes as its whole requests took (see
    `whole_request`). Drafts at the acceptance of that test.

    Examples
    --------
    >>> frame = sweep_answers([50.0, 256.0]).set_index(["name", "output_tokens"])["edge"]
    >>> bool(frame["blocks, 17 passes", 50.0] < 1.5 < frame["blocks, 17 passes", 256.0])
    True
    """
    one, answers = _one("h100"), np.asarray(output_tokens, float)
    many = float(whole_request()["passes_per_block"].max())
    drafts = Decoder.speculative(acceptance=ACCEPTANCE, draft_length=DRAFT_LENGTH, draft_cost=draft_cost())
    decoders = {
        "one at a time": PLAIN,
        "with drafts": drafts,
        f"blocks, {many:.0f} passes": Decoder.diffusion(block_tokens=BLOCK_TOKENS, passes=many),
        "blocks, 17 passes": BLOCKS,
    }
    rows = [
        pd.DataFrame(
            {
                "name": name,
                "output_tokens": answers,
                "seconds": request_s(
                    one,
                    decoder,
                    input_tokens=input_tokens,
                    output_tokens=answers,
                    efficiency=efficiency(one, ENGINE),
                ),
            }
        )
        for name, decoder in decoders.items()
    ]
    plain = rows[0]["seconds"]
    return pd.concat([row.assign(edge=plain / row["seconds"]) for row in rows], ignore_index=True)


# --- Siblings, batches -------------------------------------------------------------------------


def siblings() -> pd.DataFrame:
    """Diffusion models of one maker against their plain or drafting sibling of the same size, as the maker reports it.

    Returns
    -------
    DataFrame
        Columns ``model``, ``method``, ``rival`` (its decoder), ``settings``, ``gain`` (mean rate over mean rate),
        ``low``, ``high`` (over tasks), ``pass_cost`` (tokens per pass over gain: a pass in passes of the rival; NaN
        where no tokens are given), ``source``. [1]

    Notes
    -----
    Reported by the maker. GPU and batch are not stated, except H20 for LLaDA2.0 by a second text; its tokens per pass
    are a mean over other tasks than its rates.

    Examples
    --------
    >>> frame = siblings().set_index(["model", "method"])
    >>> round(float(frame.loc[("llada2.2-flash", "block"), "gain"]), 2)
    1.64
    """
    frame = decoder_tables.diffusion()
    rows = frame[frame["source"].isin(("llada2", "llada2.1", "llada2.2")) & (frame["against"] != "")]
    rows = rows[rows["output_tok_per_s"].notna()]
    of = frame.set_index("id")
    rows = rows.assign(rival=rows["against"].map(of["decoder"]), baseline=rows["against"].map(of["output_tok_per_s"]))
    found = (
        rows.groupby(["source", "model", "method", "weights", "rival"], sort=False)
        .agg(
            settings=("gain", "size"),
            rate=("output_tok_per_s", "mean"),
            base=("baseline", "mean"),
            low=("gain", "min"),
            high=("gain", "max"),
            tokens=("tokens_per_pass", "mean"),
        )
        .reset_index()
    )
    gain = found["rate"] / found["base"]
    return found.assign(gain=gain, pass_cost=found["tokens"] / gain)[
        ["model", "method", "weights", "rival", "settings", "gain", "low", "high", "pass_cost", "source"]
    ]


def sibling_pass() -> pd.Series:
    r"""Cost of a block pass of LLaDA2.0-flash in passes of its plain sibling, from what both read.

    .. math:: \frac{t_\mathrm{plain} - r_\mathrm{plain} + r_\mathrm{block}}{t_\mathrm{plain}}

    with t the measured time of a plain pass, and r the time to read what each pass uses at full bandwidth.

    Returns
    -------
    Series
        ``plain_ms`` (measured), ``plain_read_ms``, ``block_read_ms``, ``experts_read`` (share of all, by the union),
        ``predicted`` and ``measured`` (the cost), ``error``. [ms, 1]

    Notes
    -----
    Sizes are rounded to what the report prints, weights are taken in 16 bit, and eight H20 by a second text: the
    report states neither. All that is not reading is taken to be the same for both passes.

    Examples
    --------
    >>> bool(abs(sibling_pass()["error"]) < 0.15)
    True
    """
    frame = decoder_tables.diffusion().set_index("id")
    size = frame.loc["l20-flash-size"]
    row = frame.loc["l20-flash"]
    one_of, used = size["experts"], size["experts_used"]
    in_experts = (size["params_total"] - size["params_active"]) / (1 - used / one_of)
    shared = size["params_total"] - in_experts
    rate = row["accelerators"] * accelerator("h20", as_of=NEWEST).mem_bw_byte_per_s / BYTES_OF_16_BIT
    union = float(expert_union(row["block_tokens"], experts=one_of, top_k=used))
    plain, block = ((shared + share * in_experts) / rate for share in (used / one_of, union))
    plain_s = 1 / frame.loc["l20-ling-flash", "output_tok_per_s"]
    predicted = (plain_s - plain + block) / plain_s
    measured = row["tokens_per_pass"] / row["gain"]
    return pd.Series(
        {
            "plain_ms": 1e3 * plain_s,
            "plain_read_ms": 1e3 * plain,
            "block_read_ms": 1e3 * block,
            "experts_read": union,
            "predicted": predicted,
            "measured": measured,
            "error": predicted / measured - 1,
        }
    )


def by_task() -> pd.DataFrame:
    """Spread of one model's rate over tasks: how many tokens a pass keeps depends on the text. [token/s].

    Examples
    --------
    >>> frame = by_task()
    >>> rates = frame[frame["weights"] == "bf16"]["output_tok_per_s"]
    >>> round(float(rates.max() / rates.min()), 1)
    3.5
    """
    frame = decoder_tables.diffusion()
    rows = frame[(frame["source"] == "llada2.1") & (frame["model"] == "llada2.1-flash")]
    rows = rows[rows["task"] != "mean-of-domains"]
    return rows[["task", "weights", "output_tok_per_s", "source"]].sort_values(
        "output_tok_per_s", kind="stable", ignore_index=True
    )


def tokens_by_batch() -> pd.DataFrame:
    """Tokens per pass and time of a pass at batch 1 and 4: two models, three GPUs, one engine.

    Returns
    -------
    DataFrame
        Columns ``model``, ``gpu``, ``tokens_1``, ``tokens_4``, ``pass_ms_1``, ``pass_ms_4``, ``longer`` (their ratio),
        ``rate_1``, ``rate_4``, ``plain_ms`` (a pass of the plain rival at batch 1), ``pass_cost`` (at batch 1, in
        plain passes), ``source``. [token, ms, token/s, 1]

    Notes
    -----
    Several blocks at once with attention to everything, says the source; what is cached it does not say. Rates at
    batch 4 are read as sums. The rival is another model of nearly the same size, in the same engine; precision is
    not stated.

    Examples
    --------
    >>> frame = tokens_by_batch()
    >>> bool((frame["tokens_4"] < frame["tokens_1"]).all())
    True
    """
    frame = decoder_tables.diffusion()
    rows = frame[frame["source"] == "d3llm"]
    plain = rows[rows["model"] == "qwen2.5-7b"].set_index("accelerator")["output_tok_per_s"]
    own = rows[rows["decoder"] == "diffusion"].pivot_table(
        index=["model", "accelerator"], columns="batch", values=["tokens_per_pass", "output_tok_per_s"]
    )
    tokens, rates = own["tokens_per_pass"], own["output_tok_per_s"]
    passes = {n: 1e3 * n * tokens[n] / rates[n] for n in (1, 4)}
    plain_ms = 1e3 / own.index.get_level_values("accelerator").map(plain)
    return pd.DataFrame(
        {
            "tokens_1": tokens[1],
            "tokens_4": tokens[4],
            "pass_ms_1": passes[1],
            "pass_ms_4": passes[4],
            "longer": passes[4] / passes[1],
            "rate_1": rates[1],
            "rate_4": rates[4],
            "plain_ms": plain_ms,
            "pass_cost": passes[1] / plain_ms,
            "source": "d3llm",
        }
    ).reset_index(names=["model", "gpu"])


def crossovers() -> pd.DataFrame:
    """List what was seen when requests ran together: where plain decoding overtakes, plateaus, ceilings.

    Returns
    -------
    DataFrame
        Columns ``what``, ``value``, ``low``, ``high``, ``unit``, ``status``, ``source``.

    Notes
    -----
    Two come from research loops (no serving engine), one from a closed benchmark of an issue whose model is not
    visible. One pair at 32 clients has diffusion ahead.

    Examples
    --------
    >>> len(crossovers())
    5
    """
    frame = decoder_tables.diffusion().set_index("id")
    issue = frame[frame["source"] == "sglang-33322"].set_index("batch")["output_tok_per_s"]
    bounds = tables.all_rows("diffusion").query("quantity == 'crossover_batch'")[["low", "high"]].iloc[0]
    ceiling, tpu = frame.loc["dg-ceiling", "max_batch"], frame.loc["tpu-diffusion", "gain"]

    def row(
        what: str, value: float, unit: str, of: str, low: float | None = None, high: float | None = None
    ) -> dict[str, Any]:
        return {
            "what": what,
            "value": value,
            "low": value if low is None else low,
            "high": value if high is None else high,
            "unit": unit,
            "status": frame.loc[of, "status"],
            "source": frame.loc[of, "source"],
        }

    return pd.DataFrame(
        [
            row(
                "batch at which plain decoding overtakes, 8B, research loop",
                frame.loc["peng-crossover", "crossover_batch"],
                "sequences",
                "peng-crossover",
                *bounds,
            ),
            row("largest batch that the recipe admits, 26B-A4B", ceiling, "sequences", "dg-ceiling"),
            row("rate from 1 to 32 sequences, H20", issue[32] / issue[1], "times", "sglang33322-32"),
            row("rate from 32 to 128 sequences, H20", issue[128] / issue[32], "times", "sglang33322-128"),
            row("diffusion over plain at 32 clients, TPU", tpu, "times", "tpu-diffusion"),
        ]
    )


def on_other_hardware() -> pd.DataFrame:
    """List the same diffusion model on other machines, beside the plain rate where it was measured. [token/s].

    Examples
    --------
    >>> frame = on_other_hardware().set_index("id")
    >>> bool(frame.loc["dg-m1-ultra", "gain"] < 0.25)
    True
    """
    frame = decoder_tables.diffusion()
    rows = frame[(frame["model"] == "diffusiongemma-26b-a4b") & frame["output_tok_per_s"].notna()]
    kept = ["id", "accelerator", "accelerators", "engine", "weights", "task", "output_tok_per_s", "gain", "source"]
    return rows[kept].sort_values("output_tok_per_s", ascending=False, kind="stable", ignore_index=True)


# --- Closed systems: what could have made such a rate ------------------------------------------


def largest_active_params(
    accelerator: Accelerator,
    *,
    tok_per_s: ArrayLike,
    tokens_per_pass: ArrayLike,
    gpus: ArrayLike = 1,
    bytes_per_weight: ArrayLike = 1.0,
    passes_per_block: ArrayLike = 1.0,
) -> Any:
    r"""Most parameters that a pass can use if one stream is to come at a rate: the bound of physics, both peaks.

    .. math:: N \le \min\left(\frac{\tau\, n\, BW}{b\, X},\; \frac{n\, P}{2\, X\, T}\right)

    Parameters
    ----------
    accelerator : Accelerator
    tok_per_s : float or array
        Rate of the stream, X. [token/s]
    tokens_per_pass : float or array
        Tokens that a pass keeps, tau. [token]
    gpus : float or array
        GPUs that share each layer, n. [1]
    bytes_per_weight : float or array
        b; the peak is that of the format. [byte]
    passes_per_block : float or array
        Passes over each position until it is kept, T; one or above. [1]

    Returns
    -------
    float or array
        Parameters read and multiplied by each pass. [1]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Notes
    -----
    Nothing is reached in practice: no fixed time, no communication, all of both peaks. A sparse model reads the
    union of its experts, so the bound is on what a pass reads, not on what a token uses.

    Examples
    --------
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> at_one = largest_active_params(h100, tok_per_s=1109, tokens_per_pass=1)
    >>> round(at_one / 1e9, 2)
    3.02
    """
    rate, tokens = positive("tok_per_s", tok_per_s), at_least_one("tokens_per_pass", tokens_per_pass)
    n, width = positive("gpus", gpus), positive("bytes_per_weight", bytes_per_weight)
    passes = at_least_one("passes_per_block", passes_per_block)
    formats = accelerator.peak_flop_per_s
    narrow = np.where(width < 1, accelerator.peak("fp4" if "fp4" in formats else "fp8"), accelerator.peak("fp8"))
    peak = np.where(width < 2, narrow, accelerator.peak("bf16"))
    reading = tokens * n * accelerator.mem_bw_byte_per_s / (width * rate)
    computing = n * peak / (2 * rate * passes)
    return scalar_or_array(np.minimum(reading, computing))


#: Whose rate, on which part, with how many bytes a weight: 8 bit assumed on H100, NVFP4 with its scales as reported.
CLOSED = {
    "Mercury Coder Mini": ("mercury-mini-h100", "h100-sxm", 1.0),
    "Mercury Coder Small": ("mercury-small-h100", "h100-sxm", 1.0),
    "Mercury 2": ("mercury-2-launch", "b200-sxm", 0.5625),
}


def possible_sizes(
    part: Any, *, name: str, tokens_per_pass: ArrayLike, gpus: ArrayLike, passes_per_block: float = 16.0
) -> pd.DataFrame:
    """Sizes with which a closed system's rate is possible, by tokens per pass and GPUs.

    Parameters
    ----------
    part : callable
        Reads an accelerator by name.
    name : str
        A key of ``CLOSED``.
    tokens_per_pass, gpus : sequence of float
        Every pair is a row. [token, 1]
    passes_per_block : float
        Passes over each position. [1]

    Returns
    -------
    DataFrame
        Columns ``system``, ``tok_per_s``, ``accelerator``, ``gpus``, ``tokens_per_pass``, ``params_billion`` (the
        most that a pass can use), ``bound`` (``bandwidth`` or ``arithmetic``). [1e9]

    Raises
    ------
    InputError
        If there is no such system.

    Notes
    -----
    Which Blackwell part Mercury 2 ran on is not published (taken: B200), nor the format of the others (taken: 8
    bit). The rate is read as one stream.
    """
    if name not in CLOSED:
        raise InputError("name", name, " or ".join(CLOSED))
    setting, gpu, width = CLOSED[name]
    frame = decoder_tables.diffusion().set_index("id")
    rate = float(frame.loc[setting, "output_tok_per_s"])
    accelerator: Accelerator = part(gpu)
    tokens, n = (a.ravel() for a in np.meshgrid(np.asarray(tokens_per_pass, float), np.asarray(gpus, float)))
    at: dict[str, Any] = {"tok_per_s": rate, "tokens_per_pass": tokens, "gpus": n, "bytes_per_weight": width}
    by_reading = largest_active_params(accelerator, **at)
    both = largest_active_params(accelerator, **at, passes_per_block=passes_per_block)
    return pd.DataFrame(
        {
            "system": name,
            "tok_per_s": rate,
            "accelerator": gpu,
            "gpus": n,
            "tokens_per_pass": tokens,
            "params_billion": both / 1e9,
            "bound": np.where(both < by_reading, "arithmetic", "bandwidth"),
        }
    )


# --- Quality and scaling -----------------------------------------------------------------------


def losses_by_compute() -> pd.DataFrame:
    """Best validation loss by training compute, diffusion and plain, with the power laws fitted to them.

    Returns
    -------
    DataFrame
        Columns ``decoder``, ``training_flop``, ``loss``, ``fitted``. [FLOP, 1]

    Notes
    -----
    Points are read off the authors' figure. The loss of diffusion is an upper bound, so a part of the gap can be in
    the bound.

    Examples
    --------
    >>> frame = losses_by_compute()
    >>> bool((frame["fitted"] / frame["loss"] - 1).abs().max() < 0.005)
    True
    """
    points = decoder_tables.scaling("smdm")
    points = points[points["quantity"] == "loss"].rename(columns={"value": "loss"})
    laws = scaling_laws().set_index("decoder")
    exponent, scale = (points["decoder"].map(laws[column]) for column in ("exponent", "scale"))
    fitted = scale * points["training_flop"] ** -exponent
    return points.assign(fitted=fitted)[["decoder", "training_flop", "loss", "fitted"]].reset_index(drop=True)


def scaling_laws() -> pd.DataFrame:
    r"""Power laws of the best loss, fitted to the points of both families.

    .. math:: L = k\, C^{-\alpha}

    Returns
    -------
    DataFrame
        Columns ``decoder``, ``exponent`` (alpha), ``scale`` (k), ``error`` (standard error of the exponent). [1]

    Examples
    --------
    >>> laws = scaling_laws().set_index("decoder")
    >>> bool(abs(laws.loc["diffusion", "exponent"] / laws.loc["ar", "exponent"] - 1) < 0.05)
    True
    """
    points = decoder_tables.scaling("smdm")
    points = points[points["quantity"] == "loss"]
    rows = []
    for decoder, of in points.groupby("decoder"):
        x, y = np.log(of["training_flop"].to_numpy()), np.log(of["value"].to_numpy())
        (slope, start), covariance = np.polyfit(x, y, 1, cov=True)
        rows.append(
            {"decoder": decoder, "exponent": -slope, "scale": np.exp(start), "error": np.sqrt(covariance[0, 0])}
        )
    return pd.DataFrame(rows)


def compute_gap(training_flop: ArrayLike) -> Any:
    r"""Compute that diffusion needs for the loss that plain training reaches with so much. [1].

    .. math:: \frac{1}{C} \left(\frac{k_\mathrm{d}}{k\, C^{-\alpha}}\right)^{1/\alpha_\mathrm{d}}

    Parameters
    ----------
    training_flop : float or array
        Compute of plain training. The fitted points reach from 6e18 to 1e20. [FLOP]

    Returns
    -------
    float or array
        Times as much compute. [1]

    Raises
    ------
    InputError
        If the compute is not positive.

    Examples
    --------
    >>> [round(float(compute_gap(c)), 1) for c in (6e18, 1e20)]
    [15.3, 16.5]
    """
    flop = positive("training_flop", training_flop)
    laws = scaling_laws().set_index("decoder")
    reached = laws.loc["ar", "scale"] * flop ** -laws.loc["ar", "exponent"]
    needed = (laws.loc["diffusion", "scale"] / reached) ** (1 / laws.loc["diffusion", "exponent"])
    return scalar_or_array(np.asarray(needed / flop))


def scores_at_equal_compute(training_flop: float = 4.8e22) -> pd.DataFrame:
    """Scores of LLaDA 8B and of its authors' plain 7B at the same training compute, on a line through their points.

    Parameters
    ----------
    training_flop : float
        Within 9e21 to 8.3e22, where both have points. [FLOP]

    Returns
    -------
    DataFrame
        Columns ``task``, ``diffusion``, ``ar``, ``difference`` (points), ``slope_diffusion`` and ``slope_ar`` (points
        for each tenfold compute), ``points`` (how many of both). [%]

    Raises
    ------
    InputError
        If the compute is outside the range of the points.

    Notes
    -----
    Single runs, the authors fit no curves themselves; the two models differ in size and attention, with the same
    data.

    Examples
    --------
    >>> frame = scores_at_equal_compute().set_index("task")
    >>> round(float(frame.loc["mmlu", "difference"]), 1)
    6.4
    """
    points = decoder_tables.scaling("llada")
    large = points[points["model"].isin(("llada-8b", "arm-7b")) & (points["training_flop"] >= 9e21)]
    low, high = (large.groupby("decoder")["training_flop"].agg(end) for end in ("min", "max"))
    if not low.max() <= training_flop <= high.min():
        raise InputError("training_flop", training_flop, f"{low.max():.2g} to {high.min():.2g}, where both have points")
    rows = []
    for task, of in large.groupby("task", sort=False):
        at: dict[str, Any] = {"task": task, "points": len(of)}
        for decoder, own in of.groupby("decoder"):
            slope, start = np.polyfit(np.log10(own["training_flop"].to_numpy()), own["value"].to_numpy(), 1)
            at |= {str(decoder): start + slope * np.log10(training_flop), f"slope_{decoder}": slope}
        rows.append(at | {"difference": at["diffusion"] - at["ar"]})
    return pd.DataFrame(rows)[["task", "diffusion", "ar", "difference", "slope_diffusion", "slope_ar", "points"]]


def break_even_loss(gain: ArrayLike) -> Any:
    r"""Share of its rival's right answers that a faster decoder may lose before a right answer costs the same. [1].

    .. math:: 1 - \frac{q_\mathrm{d}}{q} = 1 - \frac{1}{\text{gain}}

    Parameters
    ----------
    gain : float or array
        Answers per second over those of the rival on the same node, 1 or above. [1]

    Returns
    -------
    float or array
        Largest loss. [1]

    Raises
    ------
    InputError
        If the gain is below 1.

    Notes
    -----
    A wrong answer is taken to cost what a right one costs to make and no more: it is noticed at once and asked for
    again, and a new try is right as often as the first. A model that repeats its error on the same question, and a
    wrong answer that does harm, make the break-even smaller.

    Examples
    --------
    >>> round(break_even_loss(1.9), 3)
    0.474
    """
    return scalar_or_array(np.asarray(1 - 1 / at_least_one("gain", gain)))


def useful_answers() -> pd.DataFrame:
    """Quality given up for speed: right answers per second, and how much quality could go before it does not pay.

    Returns
    -------
    DataFrame
        Columns ``pair``, ``task``, ``diffusion`` and ``rival`` (scores), ``lost`` (share of the rival's), ``gain`` (the
        speed that goes with it), ``break_even`` (the share at which a right answer costs the same), ``useful_gain``
        (right answers per second over the rival's), ``source``. [%, 1]

    Notes
    -----
    Speeds are whole requests of one stream where they exist (Gemma: 1.9), else the means of the maker's rates
    (LLaDA2.2 against a sibling that drafts). Scores are the makers' own.

    Examples
    --------
    >>> bool((useful_answers()["lost"] < useful_answers()["break_even"]).all())
    True
    """
    frame = decoder_tables.diffusion().set_index("id")
    whole = float(frame.loc["dg-recipe-diffusion", "gain"])
    of = siblings().set_index(["model", "method", "weights"])
    agentic = float(of.loc[("llada2.2-flash", "block", "bf16"), "gain"])
    rows = []
    for pair, gain, settings in (
        ("DiffusionGemma and Gemma 4 26B-A4B", whole, ("dg-quality-mmlu-pro", "dg-quality-gpqa-diamond")),
        ("LLaDA2.2-flash and Ling-2.6-flash", agentic, ("l22-score-agentic-mean", "l22-score-general-mean")),
    ):
        for setting in settings:
            own, rival = frame.loc[setting], frame.loc[frame.loc[setting, "against"]]
            kept = own["score_percent"] / rival["score_percent"]
            rows.append(
                {
                    "pair": pair,
                    "task": own["task"],
                    "diffusion": own["score_percent"],
                    "rival": rival["score_percent"],
                    "lost": 1 - kept,
                    "gain": gain,
                    "break_even": break_even_loss(gain),
                    "useful_gain": gain * kept,
                    "source": own["source"],
                }
            )
    return pd.DataFrame(rows)
