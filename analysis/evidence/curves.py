"""Measured batching curves and prompts beside the model's: one row for each measurement, its source with it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from analysis.evidence.calibration import set_of
from analysis.evidence.cases import Case, shipped_cases
from analysis.evidence.validation import shipped_errors
from analysis.reference.tables import all_rows

#: How a chart tells what the constants saw from what they did not.
SET_WORDS = {"fit": "fitted", "validation": "judged only"}
NO_PREDICTION = "no prediction"
#: How a reader sees the makers' names in the tables.
WORDS = {
    "llama": "Llama",
    "mistral": "Mistral",
    "qwen3": "Qwen3",
    "deepseek": "DeepSeek",
    "glm": "GLM",
    "gpt": "gpt",
    "h100": "H100",
    "h200": "H200",
    "b200": "B200",
    "a100": "A100",
    "mi300x": "MI300X",
    "l40s": "L40S",
    "rtx": "RTX",
}
#: The part of a name that says nothing to a reader.
QUIET = ("-sxm-80gb", "-sxm", "-80gb")
#: Time per token times answer length is the whole answer; the prompt of one request is then missing.
DECODE_ONLY = frozenset({"tpot_s", "tokens_per_s_per_user"})
#: Answers that stop by themselves come out a little shorter in the mean of a large batch: within this, the same work.
ALIKE = 0.1
#: A curve that ends before says what a few requests gain, and nothing about a swing.
LARGE_BATCH = 64


def spoken(name: str) -> str:
    """Write a name of the tables as a reader sees it.

    Examples
    --------
    >>> spoken("llama-2-70b"), spoken("a100-sxm-80gb"), spoken("h100-pcie")
    ('Llama-2-70B', 'A100', 'H100 PCIe')
    """
    for ending in QUIET:
        name = name.removesuffix(ending)
    head, _, rest = name.removesuffix("-pcie").partition("-")
    parts = [part.upper() if part[:1].isdigit() else part for part in rest.split("-") if part]
    return "-".join([WORDS.get(head, head), *parts]) + " PCIe" * name.endswith("-pcie")


def _series(case: Case) -> str:
    m = case.measured
    gpus = f"{m.accelerators}×{spoken(m.accelerator)}"
    return f"{spoken(m.model)} {m.weights}, {gpus}, {m.engine}"


def _asked(answers: pd.Series[float]) -> pd.Series[float]:
    """Give each answer of a curve the longest that is alike: the length that was asked for."""
    asked: dict[float, float] = {}
    longest = np.inf
    for answer in sorted(set(answers), reverse=True):
        longest = answer if answer < (1 - ALIKE) * longest or not asked else longest
        asked[answer] = longest
    return answers.map(asked)


def _tok_per_s(case: Case, value: float) -> float:
    """Turn a measured or predicted quantity into output tokens per second of all GPUs."""
    m = case.measured
    copies = m.accelerators / m.tensor_parallel
    if m.quantity == "e2e_latency_s":
        return m.concurrency * float(m.output_tokens or np.nan) / value
    if m.quantity == "tpot_s":
        return m.concurrency / value
    if m.quantity == "tokens_per_s_per_user":
        return m.concurrency * value
    return value * (m.tensor_parallel * copies if m.quantity == "output_tokens_per_s_per_gpu" else 1.0)


@cache
def batching_curves() -> pd.DataFrame:
    """List the measured batching curves: conditions of which two batches or more were measured.

    Returns
    -------
    DataFrame
        One row for each measurement, by curve and batch: ``series`` and ``work`` (words: prompt → answer), ``id``,
        ``source``, ``set``, ``quantity``, ``sparse`` (bool), ``batch`` [1]; ``measured_tok_per_s`` and
        ``predicted_tok_per_s``, output tokens of all GPUs, of decoding alone where the source timed tokens only
        [token/s]; ``measured_gain`` and ``predicted_gain`` over the smallest batch of the curve, each over its own [1].
    """
    predicted = shipped_errors()["predicted"].to_numpy()
    rows = []
    for case, guess in zip(shipped_cases()[0], predicted, strict=True):
        m = case.measured
        if not np.isfinite(m.concurrency) or m.regime == "prefill" or m.output_tokens is None or m.input_tokens is None:
            continue
        rows.append(
            {
                "series": _series(case),
                "id": m.id,
                "source": m.source,
                "set": SET_WORDS[set_of(m.source, m.accelerator)],
                "quantity": m.quantity,
                "layout": m.layout,
                "sparse": case.sparse,
                "input_tokens": m.input_tokens,
                "output_tokens": m.output_tokens,
                "batch": m.concurrency,
                "measured_tok_per_s": _tok_per_s(case, m.value),
                "predicted_tok_per_s": _tok_per_s(case, guess),
            }
        )
    frame = pd.DataFrame(rows)
    asked = frame.groupby(["series", "input_tokens", "source", "quantity", "layout"])["output_tokens"].transform(_asked)
    frame["work"] = [
        f"{prompt:,.0f} → {answer:,.0f}" for prompt, answer in zip(frame["input_tokens"], asked, strict=True)
    ]
    keys = ["series", "work", "source", "quantity", "layout"]
    frame = frame.sort_values([*keys, "batch"], kind="stable", ignore_index=True)
    curves = frame.groupby(keys, sort=False)
    frame = frame.assign(
        measured_gain=frame["measured_tok_per_s"] / curves["measured_tok_per_s"].transform("first"),
        predicted_gain=frame["predicted_tok_per_s"] / curves["predicted_tok_per_s"].transform("first"),
    )
    return frame[curves["batch"].transform("nunique") > 1].drop(columns="layout").reset_index(drop=True)


def swings() -> pd.DataFrame:
    """Swing of every curve from batch 1 to ``LARGE_BATCH`` or beyond: the most tokens over those at batch 1.

    Curves whose conditions were lost are listed without a prediction, their ``set`` says so.

    Returns
    -------
    DataFrame
        One row for each curve, the smallest measured swing first: ``name``, ``series``, ``work``, ``source``, ``set``,
        ``sparse``, ``large_batch`` (where most tokens were measured), ``measured``, ``predicted`` (at that batch),
        ``slower``: time per token there over that at batch 1, as measured [1].
    """
    curves = batching_curves()
    curves = curves[~curves["quantity"].isin(DECODE_ONLY)]
    rows = []
    for (series, work, source), curve in curves.groupby(["series", "work", "source"], sort=False):
        if curve["batch"].min() != 1 or curve["batch"].max() < LARGE_BATCH:
            continue
        best = curve.loc[curve["measured_gain"].idxmax()]
        rows.append(
            {
                "series": series,
                "work": work,
                "source": source,
                "set": best["set"],
                "sparse": best["sparse"],
                "input_tokens": best["input_tokens"],
                "output_tokens": best["output_tokens"],
                "large_batch": best["batch"],
                "measured": best["measured_gain"],
                "predicted": best["predicted_gain"],
                "slower": best["batch"] / best["measured_gain"],
            }
        )
    frame = pd.DataFrame([*rows, *_without_labels()]).sort_values("measured", kind="stable", ignore_index=True)
    # a row of a chart has room for size, GPU and work; the rest is in the series
    size = frame["series"].str.extract(r"(\d+B)", expand=False)
    gpu = frame["series"].str.split(", ").str[1].str.split("×").str[-1]
    name = size + " " + gpu + ", " + frame["work"]
    again = name.duplicated()
    return frame.assign(name=name.where(~again, name + " (2)"))


def runs(*pairs: tuple[str, str], quantity: str) -> pd.DataFrame:
    """Pick measured curves by series and work, in the order asked for.

    Parameters
    ----------
    *pairs : (str, str)
        Series and work as `batching_curves` writes them.
    quantity : str
        What was measured.

    Returns
    -------
    DataFrame
        Rows of `batching_curves` with ``name``, the work; ``measured_stream_tok_per_s`` and
        ``predicted_stream_tok_per_s``, a batch-th of the tokens of all [token/s].

    Raises
    ------
    KeyError
        If a curve is not there.
    """
    table = batching_curves()
    found = []
    for series, work in pairs:
        rows = table[(table["series"] == series) & (table["work"] == work) & (table["quantity"] == quantity)]
        if rows.empty:
            raise KeyError(f"no measured curve of {series}, {work}, {quantity}")
        found.append(rows.assign(name=work))
    frame = pd.concat(found, ignore_index=True)
    streams = {
        f"{kind}_stream_tok_per_s": frame[f"{kind}_tok_per_s"] / frame["batch"] for kind in ("measured", "predicted")
    }
    return frame.assign(**streams)


def gain_of(series: str, work: str) -> float:
    """Measured tokens at the largest batch of a curve over those at its smallest. [1]."""
    table = batching_curves()
    rows = table[(table["series"] == series) & (table["work"] == work)]
    if rows.empty:
        raise KeyError(f"no measured curve of {series}, {work}")
    return float(rows.loc[rows["batch"].idxmax(), "measured_gain"])


def _without_labels() -> list[dict[str, object]]:
    """Curves whose conditions were lost: measured swings all the same, which no model can predict."""
    rows = all_rows("measured")
    rows = rows[(rows["unused"] == "labels-lost") & (rows["quantity"] == "output_tokens_per_s_total")]
    found = []
    for (model, part, source), curve in rows.groupby(["model", "accelerator", "source"], sort=False):
        batch = curve["concurrency"].astype(float)
        if batch.min() != 1:
            continue
        gain = curve["value"] / curve.loc[batch.idxmin(), "value"]
        best = gain.idxmax()
        found.append(
            {
                "series": f"{spoken(model)}, {spoken(part)}",
                "work": "lengths lost",
                "source": source,
                "set": NO_PREDICTION,
                "sparse": False,
                "input_tokens": np.nan,
                "output_tokens": np.nan,
                "large_batch": batch[best],
                "measured": gain[best],
                "predicted": np.nan,
                "slower": batch[best] / gain[best],
            }
        )
    return found


def prompts() -> pd.DataFrame:
    """Measured times to read one prompt on an idle machine beside the model's.

    Returns
    -------
    DataFrame
        ``series`` (words), ``id``, ``source``, ``set``, ``input_tokens`` [token], ``gpus`` [1],
        ``measured_s``, ``predicted_s``, ``ideal_s`` [s], the shortest prompt first.
    """
    predicted, ideal = (shipped_errors(name)["predicted"].to_numpy() for name in ("calibrated", "roofline"))
    rows = []
    for case, guess, least in zip(shipped_cases()[0], predicted, ideal, strict=True):
        m = case.measured
        if m.regime != "prefill":
            continue
        prompt = float(m.input_tokens or 0.0)
        # a rate counts the tokens of the prompt, a time is a time
        seconds = [value if case.tokens is None else prompt / value for value in (m.value, guess, least)]
        rows.append(
            {
                "series": _series(case),
                "id": m.id,
                "source": m.source,
                "set": SET_WORDS[set_of(m.source, m.accelerator)],
                "input_tokens": prompt,
                "gpus": m.tensor_parallel,
                "measured_s": seconds[0],
                "predicted_s": seconds[1],
                "ideal_s": seconds[2],
            }
        )
    return pd.DataFrame(rows).sort_values(["input_tokens", "series", "source"], kind="stable", ignore_index=True)
