"""Speculative decoding, predicted beside measured: by batch on dense and sparse models, by task, at one stream.

One number of each curve is taken from a row that says so (``fitted``); every other row only judges.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from analysis.inputs import InputError, positive, scalar_or_array
from analysis.model.decoders import cycle
from analysis.model.decoding import max_batch
from analysis.model.transformer import expert_union
from analysis.reference import decoder_tables
from analysis.reference.efficiency import efficiency, memory_rule
from analysis.reference.model_config import replica
from analysis.reference.specs import Decoder, Replica
from analysis.reference.tables import NEWEST, all_rows

#: Context at which these tests are taken to run: none of them states its own. MT-bench questions are short.
ASSUMED_CONTEXT_TOKENS = 500
#: Drafts of a chain whose cost the two drafts for Llama-3.1-8B of one benchmark give at batch 1.
COST_FROM = {"model": "llama-3.1-8b", "draft_length": 3}
PLAIN = Decoder.autoregressive()


def implied_acceptance(tokens_per_pass: ArrayLike, *, draft_length: ArrayLike) -> Any:
    r"""Find the acceptance that a chain of drafts needs for so many tokens per pass.

    .. math:: \tau = \sum_{i=0}^{g} a^i \quad \text{solved for } a

    Parameters
    ----------
    tokens_per_pass : float or array
        Tokens that one cycle yields, 1 to g + 1. [token]
    draft_length : float or array
        Drafts of a cycle, g. [1]

    Returns
    -------
    float or array
        The acceptance that is the same at every position. Real drafts are accepted less often the later they
        stand, so this is an average. [1]

    Raises
    ------
    InputError
        If the tokens are below 1 or above g + 1.

    Examples
    --------
    >>> round(implied_acceptance(3.3616, draft_length=4), 4)
    0.8
    """
    tau, g = np.broadcast_arrays(positive("tokens_per_pass", tokens_per_pass), positive("draft_length", draft_length))
    if np.any((tau < 1) | (tau > g + 1)):
        worst = float(tau[(tau < 1) | (tau > g + 1)].flat[0])
        raise InputError("tokens_per_pass", worst, "1 to one more than the draft length")

    def solved(tokens: float, drafts: float) -> float:
        return float(
            brentq(lambda a: Decoder.speculative(acceptance=a, draft_length=drafts).tokens_per_pass - tokens, 0, 1)
        )

    return scalar_or_array(np.vectorize(solved, otypes=[float])(tau, g))


def checking_ratio(
    one: Replica, *, batch: ArrayLike, draft_length: int, engine: str, context_tokens: float = ASSUMED_CONTEXT_TOKENS
) -> Any:
    """Time of the pass that checks a chain over that of a plain pass at the same batch, calibrated. [1].

    Examples
    --------
    >>> one = replica("llama-3.1-8b", "h100-sxm", as_of=NEWEST)
    >>> round(checking_ratio(one, batch=2, draft_length=3, engine="sglang"), 2)
    1.01
    """
    drafts = Decoder.speculative(acceptance=0.5, draft_length=draft_length)
    wide, narrow = (
        cycle(one, d, batch=batch, context_tokens=context_tokens, efficiency=efficiency(one, engine)).cycle_s
        for d in (drafts, PLAIN)
    )
    return wide / narrow


@cache
def drafting_share() -> float:
    """Time of a chain of three EAGLE-3 drafts, in plain passes, from rows that no curve here is judged by. [1].

    Tokens per pass over the measured gain is the time of a cycle in plain passes; less that of its checking pass, at
    batch 1 and on a dense model, where checking is nearly free, it is what drafting takes.

    Examples
    --------
    >>> 0.3 < drafting_share() < 0.4
    True
    """
    frame = decoder_tables.speculation()
    rows = frame[(frame["source"] == "specforge") & (frame["batch"] == 1)]
    for column, value in COST_FROM.items():
        rows = rows[rows[column] == value]
    one = replica(str(COST_FROM["model"]), "h200-sxm", as_of=NEWEST)
    checked = checking_ratio(one, batch=1, draft_length=3, engine="sglang")
    return float((rows["tokens_per_pass"] / rows["gain"]).mean() - checked)


def dense_by_batch() -> pd.DataFrame:
    r"""Gain of EAGLE and EAGLE-3 on Llama-3.1-8B by batch, measured on one H100 and predicted.

    .. math:: \text{gain}(n) = \frac{\tau}{v(n) + g c}, \qquad v(n) = \frac{t(n, g + 1)}{t(n, 1)}

    Returns
    -------
    DataFrame
        Columns ``method``, ``batch``, ``measured``, ``predicted``, ``error`` (predicted over measured, less 1),
        ``checking_ratio``, ``set`` (``fitted`` or ``judged``), ``source``. [1]

    Notes
    -----
    The source prints neither tokens per pass nor context. The tokens are those that the row at batch 2 needs, the
    cost of drafting is `drafting_share`, the context is `ASSUMED_CONTEXT_TOKENS`.

    Examples
    --------
    >>> frame = dense_by_batch().set_index(["method", "batch"])
    >>> float(frame.loc[("eagle-3", 64.0), "measured"])
    1.38
    """
    frame = decoder_tables.speculation()
    rows = frame[(frame["source"] == "eagle3") & (frame["accelerator"] == "h100-sxm")].sort_values(
        ["method", "batch"], kind="stable"
    )
    one = replica("llama-3.1-8b", "h100-sxm", as_of=NEWEST)
    ratio = checking_ratio(one, batch=rows["batch"].to_numpy(), draft_length=3, engine="sglang")
    cycle_in_passes = ratio + drafting_share()
    first = rows["batch"] == rows["batch"].min()
    tokens = rows["method"].map(
        dict(zip(rows["method"][first], rows["gain"][first] * cycle_in_passes[first], strict=True))
    )
    return _judged(
        rows.assign(checking_ratio=ratio, predicted=tokens / cycle_in_passes, tokens_per_pass=tokens),
        fitted=first,
    )


def _judged(rows: pd.DataFrame, *, fitted: Any) -> pd.DataFrame:
    """Name what is measured, how far the prediction is off, and which rows gave it a number."""
    found = rows.assign(
        measured=rows["gain"],
        error=rows["predicted"] / rows["gain"] - 1,
        set=np.where(fitted, "fitted", "judged"),
    )
    kept = ["method", "model", "batch", "measured", "predicted", "error", "checking_ratio", "tokens_per_pass", "set"]
    return found[[*kept, *(c for c in ("low", "high") if c in found), "source"]].reset_index(drop=True)


def sparse_by_batch() -> pd.DataFrame:
    """Gain of EAGLE-3 on gpt-oss-20b by batch, measured on one B200 and predicted with the union of experts.

    Returns
    -------
    DataFrame
        As `dense_by_batch`, with ``low`` and ``high``: the gain if both bars were read 60 token/s off. [1]

    Notes
    -----
    The figures are read off a bar chart of the best draft length from 3 to 7; tokens per pass at both lengths are
    printed. Taken: a chain of 3 and its tokens. Drafting costs what the row at batch 64 needs, where the chart reads
    best; no context is stated.

    Examples
    --------
    >>> frame = sparse_by_batch()
    >>> peak = frame.loc[frame["measured"].idxmax(), "batch"]
    >>> float(peak)
    8.0
    """
    frame = decoder_tables.speculation()
    chart = frame[(frame["source"] == "vllm-p-eagle") & (frame["method"] == "eagle-3")]
    rows = chart[chart["output_tok_per_s"].notna()].sort_values("batch", kind="stable")
    (tokens,) = chart[(chart["task"] == "speed-bench") & (chart["draft_length"] == 3)]["tokens_per_pass"]
    one = replica("gpt-oss-20b", "b200-sxm", as_of=NEWEST)
    ratio = checking_ratio(one, batch=rows["batch"].to_numpy(), draft_length=3, engine="vllm")
    last = rows["batch"] == rows["batch"].max()
    drafting = float(tokens / rows["gain"][last].iloc[0] - ratio[last][0])
    bounds = all_rows("speculation").pivot_table(index="id", columns="quantity", values=["low", "high"])
    of = bounds.loc[rows["id"]].reset_index(drop=True)
    rows = rows.reset_index(drop=True).assign(
        low=of[("low", "output_rate")] / of[("high", "baseline_rate")],
        high=of[("high", "output_rate")] / of[("low", "baseline_rate")],
        checking_ratio=ratio,
        predicted=tokens / (ratio + drafting),
        tokens_per_pass=tokens,
    )
    return _judged(rows, fitted=last.to_numpy())


def many_experts_by_batch() -> pd.DataFrame:
    """Gain of EAGLE-3.1 on Kimi-K2.6, 384 experts, by batch, measured on four GB200 and predicted.

    Returns
    -------
    DataFrame
        As `dense_by_batch`. [1]

    Notes
    -----
    Rates for each user are printed, tokens per pass and context are not: the row at batch 1 gives the tokens, the
    cost of drafting is `drafting_share`. Dimensions are those of Kimi-K2. The rates themselves are predicted far too
    low, as nothing of Blackwell or of latent attention was fitted; only their ratio is judged.

    Examples
    --------
    >>> frame = many_experts_by_batch().set_index("batch")
    >>> bool(frame.loc[16.0, "measured"] < frame.loc[1.0, "measured"])
    True
    """
    frame = decoder_tables.speculation()
    rows = frame[frame["source"] == "vllm-eagle31"].sort_values("batch", kind="stable")
    one = replica("kimi-k2", "gb200", as_of=NEWEST, gpus=4, weights="nvfp4")
    ratio = checking_ratio(one, batch=rows["batch"].to_numpy(), draft_length=3, engine="vllm")
    cycle_in_passes = ratio + drafting_share()
    tokens = float(rows["gain"].iloc[0] * cycle_in_passes[0])
    first = rows["batch"] == rows["batch"].min()
    return _judged(
        rows.assign(checking_ratio=ratio, predicted=tokens / cycle_in_passes, tokens_per_pass=tokens), fitted=first
    )


def plain_rates() -> pd.DataFrame:
    """Rates of plain decoding that the curve of 32 experts is divided by, measured and predicted. [token/s].

    Returns
    -------
    DataFrame
        Columns ``batch``, ``measured``, ``predicted``, ``error``; sums over the batch.

    Examples
    --------
    >>> bool((plain_rates()["error"].abs() < 0.2).all())
    True
    """
    frame = decoder_tables.speculation()
    rows = frame[(frame["source"] == "vllm-p-eagle") & (frame["method"] == "eagle-3")]
    rows = rows[rows["baseline_tok_per_s"].notna()].sort_values("batch", kind="stable")
    one = replica("gpt-oss-20b", "b200-sxm", as_of=NEWEST)
    return _plain(one, rows["batch"].to_numpy(), rows["baseline_tok_per_s"].to_numpy())


def many_experts_rates() -> pd.DataFrame:
    """Rates of plain decoding that the curve of 384 experts is divided by; columns as `plain_rates`. [token/s].

    Examples
    --------
    >>> bool((many_experts_rates()["error"] < -0.1).all())
    True
    """
    frame = decoder_tables.speculation()
    rows = frame[frame["source"] == "vllm-eagle31"].sort_values("batch", kind="stable")
    one = replica("kimi-k2", "gb200", as_of=NEWEST, gpus=4, weights="nvfp4")
    batch = rows["batch"].to_numpy()
    return _plain(one, batch, batch * rows["baseline_tok_per_s"].to_numpy())


def _plain(one: Replica, batch: Any, measured: Any) -> pd.DataFrame:
    time = cycle(one, PLAIN, batch=batch, context_tokens=ASSUMED_CONTEXT_TOKENS, efficiency=efficiency(one, "vllm"))
    predicted = batch / time.cycle_s
    return pd.DataFrame(
        {"batch": batch, "measured": measured, "predicted": predicted, "error": predicted / measured - 1}
    )


def _fewest_gpus(model: str) -> Replica:
    """Put a model on the fewest H200 of 1, 2, 4 and 8 that hold it: the source states no number."""
    for gpus in (1, 2, 4, 8):
        one = replica(model, "h200-sxm", as_of=NEWEST, gpus=gpus)
        if max_batch(one, tokens=2048, rule=memory_rule("sglang")) >= 8:
            return one
    raise InputError("model", model, "one that eight H200 hold")


def costs_of_a_cycle() -> pd.DataFrame:
    """Time of a cycle in plain passes, by model: measured as tokens per pass over gain, and predicted.

    Returns
    -------
    DataFrame
        Columns ``model``, ``kind`` (``dense`` or ``sparse``), ``batch``, ``tokens_per_pass``, ``gain``, ``measured``,
        ``predicted`` (checking pass and `drafting_share`), ``checking_ratio``, ``experts_read`` (those of a checking
        pass over those of a plain one), ``gpus`` (assumed), ``error``; means over tasks and drafts of a chain of 3.
        [1]

    Notes
    -----
    Rows whose own speed-up is above their tokens per pass are not in the table. GPUs are the fewest of 1, 2, 4 and 8
    H200 that hold the model and 8 sequences.

    Examples
    --------
    >>> frame = costs_of_a_cycle().set_index("model")
    >>> bool(frame.loc["qwen3-30b-a3b", "measured"] > frame.loc["llama-3.3-70b", "measured"])
    True
    """
    frame = decoder_tables.speculation()
    rows = frame[(frame["source"] == "specforge") & (frame["draft_length"] == 3) & (frame["backbone"] != "")]
    rows = rows[rows["gain"].notna() & (rows["model"] != "llama-4-scout")]
    found = []
    for (model, backbone, batch), of in rows.groupby(["model", "backbone", "batch"]):
        one = _fewest_gpus(str(backbone))
        ratio = checking_ratio(one, batch=float(batch), draft_length=3, engine="sglang")
        cost = float((of["tokens_per_pass"] / of["gain"]).mean())
        found.append(
            {
                "model": model,
                "kind": "sparse" if _routed(one) else "dense",
                "batch": batch,
                "tokens_per_pass": of["tokens_per_pass"].mean(),
                "gain": of["gain"].mean(),
                "measured": cost,
                "predicted": ratio + drafting_share(),
                "checking_ratio": ratio,
                "experts_read": _experts_read(one, batch=float(batch), positions=4.0),
                "gpus": one.gpus,
                "error": (ratio + drafting_share()) / cost - 1,
                "source": "specforge",
            }
        )
    return pd.DataFrame(found).sort_values(["kind", "measured"], kind="stable", ignore_index=True)


def costs_left_out() -> pd.DataFrame:
    """Time of a cycle in plain passes of the models of the same benchmark that `costs_of_a_cycle` leaves out, and why.

    Returns
    -------
    DataFrame
        Columns ``model``, ``batch``, ``settings`` (tasks and drafts of a chain of 3), ``judged`` (those whose gain is
        below their tokens per pass), ``measured`` (their mean), ``why``, ``source``. [1]

    Notes
    -----
    A cycle holds one pass over at least one position of each sequence, so a gain above the tokens per pass is not
    possible on equal terms. The table keeps the tokens of such settings and drops their rates; what is left of that
    model is no fair sample of it.

    Examples
    --------
    >>> frame = costs_left_out().set_index("model")
    >>> frame.loc["llama-4-scout", ["settings", "judged"]].tolist()
    [14, 4]
    """
    frame = decoder_tables.speculation()
    rows = frame[(frame["source"] == "specforge") & (frame["draft_length"] == 3) & frame["batch"].notna()]
    rows = rows[(rows["backbone"] == "") | (rows["model"] == "llama-4-scout")]
    rows = rows.assign(cost=rows["tokens_per_pass"] / rows["gain"])
    found = (
        rows.groupby(["model", "batch"])
        .agg(settings=("model", "size"), judged=("cost", "count"), measured=("cost", "mean"))
        .reset_index()
    )
    why = np.where(found["judged"] < found["settings"], "others gain more than their tokens", "dimensions not tabled")
    return found.assign(why=why, source="specforge")


def _routed(one: Replica) -> list[tuple[int, int]]:
    mlps = [group.mlp for group in one.architecture.layers if group.mlp is not None]
    return [(mlp.experts, mlp.top_k) for mlp in mlps if mlp.experts]


def _experts_read(one: Replica, *, batch: float, positions: float) -> float:
    routed = _routed(one)
    if not routed:
        return 1.0
    experts, top_k = routed[0]
    wide, narrow = (expert_union(m, experts=experts, top_k=top_k) for m in (batch * positions, batch))
    return float(wide / narrow)


def at_one_stream() -> pd.DataFrame:
    """Measured gains of one stream, serving engines and research loops apart.

    Returns
    -------
    DataFrame
        Columns ``baseline`` (``serving engine`` or ``research loop``), ``method``, ``settings`` (how many),
        ``low``, ``median``, ``high``, ``from_2_to_4`` and ``about_2_to_4`` (shares of settings from 2 to 4 and from
        1.5 to 4.5), ``source``. [1]

    Examples
    --------
    >>> frame = at_one_stream()
    >>> frame["baseline"].unique().tolist()
    ['serving engine', 'research loop']
    """
    frame = decoder_tables.speculation()
    rows = frame[(frame["batch"] == 1) & frame["gain"].notna()]
    rows = rows.assign(baseline=np.where(rows["serving"], "serving engine", "research loop"))
    found = (
        rows.assign(inside=rows["gain"].between(2, 4), near=rows["gain"].between(1.5, 4.5))
        .groupby(["baseline", "method", "source"])
        .agg(
            settings=("gain", "size"),
            low=("gain", "min"),
            median=("gain", "median"),
            high=("gain", "max"),
            from_2_to_4=("inside", "mean"),
            about_2_to_4=("near", "mean"),
        )
        .reset_index()
    )
    return found.sort_values(["baseline", "median"], ascending=[False, False], kind="stable", ignore_index=True)


def tokens_by_task() -> pd.DataFrame:
    """Measured tokens per pass on Llama-3.1-8B by task: look-up in the prompt beside trained drafts.

    Returns
    -------
    DataFrame
        Columns ``task``, ``method``, ``draft_length``, ``tokens_per_pass``, ``acceptance`` (implied), ``source``. [1]

    Notes
    -----
    No measured figure of look-up was found for extraction of fields from forms or contracts: editing a text that
    stands in the prompt is the nearest.

    Examples
    --------
    >>> frame = tokens_by_task()
    >>> {"n-gram", "eagle"} <= set(frame["method"])
    True
    """
    frame = decoder_tables.speculation()
    rows = frame[frame["source"].isin(("specdecode-bench", "vllm-24344")) & frame["tokens_per_pass"].notna()]
    accepted = implied_acceptance(rows["tokens_per_pass"].to_numpy(), draft_length=rows["draft_length"].to_numpy())
    kept = ["task", "method", "draft_length", "tokens_per_pass", "acceptance", "source"]
    return rows.assign(acceptance=accepted)[kept].sort_values(
        ["task", "method", "draft_length"], kind="stable", ignore_index=True
    )


def sweep_drafts(*, acceptance: ArrayLike, draft_length: ArrayLike, draft_cost: float) -> pd.DataFrame:
    """Gain of a chain of drafts by its length where checking is free, one line for each acceptance.

    Parameters
    ----------
    acceptance, draft_length : sequence of float
        Every pair is a row. [1]
    draft_cost : float
        Time of a draft in plain passes. [1]

    Returns
    -------
    DataFrame
        Columns ``acceptance``, ``draft_length``, ``tokens_per_pass``, ``gain``. [1, token]

    Examples
    --------
    >>> sweep_drafts(acceptance=[0.8], draft_length=[4], draft_cost=0)["gain"].round(2).tolist()
    [3.36]
    """
    a, g = (grid.ravel() for grid in np.meshgrid(np.asarray(acceptance, float), np.asarray(draft_length, float)))
    drafts = Decoder.speculative(acceptance=a, draft_length=g, draft_cost=draft_cost)
    return pd.DataFrame(
        {
            "acceptance": a,
            "draft_length": g,
            "tokens_per_pass": drafts.tokens_per_pass,
            "gain": drafts.tokens_per_pass / (1 + drafts.draft_share),
        }
    )
