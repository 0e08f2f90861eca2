"""How far the model is from measurements: by regime, by cohort, beside simpler models, with sources left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from analysis.evidence.calibration import Stack, cohort, fit, prior, set_of
from analysis.evidence.cases import REGIMES, Case, shipped_cases
from analysis.inputs import or_one_line, write_files
from analysis.reference.efficiency import constants, group, measured_all_reduce_s
from analysis.reference.specs import Efficiency
from analysis.reference.tables import DATA, read_csv_strict

WITHIN = 0.25
#: Shares of bandwidth and peak that rules of thumb take for every GPU and engine.
FLAT_MBU, FLAT_MFU = 0.75, 0.70
#: Median absolute error on validation rows that was aimed at, dense and sparse.
TARGETS = {
    "single_stream_dense": 0.08,
    "single_stream_moe": 0.15,
    "batching_dense": 0.08,
    "batching_moe": 0.12,
    "max_load_dense": 0.07,
    "max_load_moe": 0.25,
    "prefill_dense": 0.10,
}
#: Cohorts of validation rows that the model misses by more than a quarter, and what is known of the reason.
KNOWN_GAPS = {
    ("llama-cpp-gpus", "h100-pcie", "prefill_dense"): (
        "portable kernels do not use this generation's matrix units: they compute about as fast as on an A100"
    ),
    ("llama-cpp-gpus", "l40s", "prefill_dense"): "portable kernels: about as fast as on an A100, with a higher peak",
    ("llama-cpp-gpus", "a100-sxm-80gb", "prefill_dense"): "portable kernels; two rows",
    ("llama-cpp-gpus", "a100-sxm-80gb", "single_stream_dense"): (
        "portable kernels saturate a terabyte per second and not two; the constants are a compromise of two cards"
    ),
    ("dstack-405b", "h100-sxm", "batching_dense"): (
        "a release that sets memory aside for one prompt of the full context: beyond 16 requests of 4,096 tokens they"
        " take turns, at a quarter of the cache that the memory rule gives"
    ),
    ("trtllm-0.8", "h200-sxm", "max_load_dense"): (
        "Mistral-7B runs at the rate of Llama-2-7B in that release, though its cache is a quarter"
    ),
    ("trtllm-1.0", "h100-sxm", "max_load_moe"): (
        "Llama 4 Maverick: its weights leave a fifth of the cards, so that workspace decides how many requests fit"
    ),
    (
        "trtllm-1.0",
        "h200-sxm",
        "max_load_moe",
    ): "layout of attention not stated; split by requests it would fit",
    ("trtllm-1.0", "b200-sxm", "max_load_moe"): "as on H200; nothing of Blackwell is fitted",
    (
        "trtllm-1.0",
        "b200-sxm",
        "max_load_dense",
    ): "4-bit products reach less of their peak; no row of Blackwell is fitted",
    ("trtllm-blog-h200", "h200-sxm", "max_load_dense"): "preliminary figures of an early release",
    ("trtllm-blog-h200-70b", "h200-sxm", "max_load_dense"): "early release, three rows",
}
ORDER = tuple(f"{regime}_{kind}" for regime in REGIMES for kind in ("dense", "moe"))

Predictor = Callable[[Stack], NDArray[np.float64]]


# --- Models to compare -------------------------------------------------------------------------


def calibrated(stack: Stack) -> NDArray[np.float64]:
    """Predictions with the shipped constants."""
    return stack.predicted(stack.efficiency({name: constant.value for name, constant in constants().items()}))


def ideal(stack: Stack) -> NDArray[np.float64]:
    """Predictions of the pure roofline: data sheet bandwidth and peak, nothing else."""
    return stack.predicted(Efficiency())


def flat_caps(stack: Stack) -> NDArray[np.float64]:
    """Predictions of a roofline at 0.75 of every bandwidth and 0.70 of every peak, with measured all-reduces."""

    def all_reduce_s(case: Case) -> float:
        if case.replica.gpus == 1:
            return 0.0
        return measured_all_reduce_s(case.measured.accelerator, case.measured.engine, gpus=case.replica.gpus)

    latencies = np.array([all_reduce_s(case) for case in stack.cases])
    return stack.predicted(
        Efficiency(mbu=FLAT_MBU, mfu=FLAT_MFU, attention_mfu=FLAT_MFU, all_reduce_s=stack.of_passes(latencies))
    )


PREDICTORS: Mapping[str, Predictor] = {"calibrated": calibrated, "flat caps": flat_caps, "roofline": ideal}


# --- Errors ------------------------------------------------------------------------------------


def errors(cases: Sequence[Case], predictor: Predictor = calibrated) -> pd.DataFrame:
    """Predict cases and compare.

    Parameters
    ----------
    cases : sequence of Case
    predictor : callable
        One of ``PREDICTORS``.

    Returns
    -------
    DataFrame
        One row each: ``id``, ``source``, ``accelerator``, ``model``, ``engine``, ``regime``, ``cohort``, ``set``,
        ``predicted``, ``measured``, ``error``, predicted over measured less one, whichever way the number counts, and
        ``speed_ratio``, which turns times round: above 1 the model is too fast, for a time as for a rate.
    """
    stack = Stack(cases)
    predicted = predictor(stack)
    frame = pd.DataFrame(
        {
            "id": [case.measured.id for case in cases],
            "source": [case.measured.source for case in cases],
            "accelerator": [case.measured.accelerator for case in cases],
            "model": [case.measured.model for case in cases],
            "engine": [case.measured.engine for case in cases],
            "regime": [case.regime for case in cases],
            "cohort": [cohort(case) for case in cases],
            "predicted": predicted,
            "measured": stack.measured,
        }
    )
    ratio = frame["predicted"] / frame["measured"]
    # a case without a count of tokens is a time
    speed_ratio = np.where([case.tokens is None for case in cases], 1 / ratio, ratio)
    return frame.assign(error=ratio - 1, speed_ratio=speed_ratio)


def by_regime(frame: pd.DataFrame) -> pd.DataFrame:
    """Summarise errors by regime.

    Parameters
    ----------
    frame : DataFrame
        From `errors`.

    Returns
    -------
    DataFrame
        Index regime; ``scored`` rows, ``median_abs_error``, ``bias`` (median speed ratio less one: positive where
        the model is too fast; times and rates would cancel each other otherwise), ``within_25_percent``,
        and ``balanced_error``: the median with each cohort of m rows weighing sqrt(m), as in the fit. [1]
    """
    found = {}
    for regime in ORDER:
        rows = frame[frame["regime"] == regime]
        if rows.empty:
            continue
        sizes = rows.groupby("cohort")["error"].transform("size")
        found[regime] = {
            "scored": len(rows),
            "median_abs_error": float(rows["error"].abs().median()),
            "bias": float(rows["speed_ratio"].median()) - 1,
            "within_25_percent": float((rows["error"].abs() <= WITHIN).mean()),
            "balanced_error": _weighted_median(rows["error"].abs().to_numpy(), 1 / np.sqrt(sizes.to_numpy(float))),
        }
    return pd.DataFrame.from_dict(found, orient="index")


def _weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    order = np.argsort(values, kind="stable")
    heavy = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(heavy, heavy[-1] / 2)])


@cache
def shipped_errors(predictor: str = "calibrated") -> pd.DataFrame:
    """Errors of all scored rows of the shipped table with one of ``PREDICTORS``; ``set`` says fit or validation."""
    cases, _ = shipped_cases()
    frame = errors(cases, PREDICTORS[predictor])
    return frame.assign(set=[set_of(*pair) for pair in zip(frame["source"], frame["accelerator"], strict=True)])


def comparison(which: str = "validation") -> pd.DataFrame:
    """Median absolute errors by regime of all models on the same rows, with the targets.

    Parameters
    ----------
    which : {"validation", "fit"}

    Returns
    -------
    DataFrame
        Index regime; ``scored``, one column for each of ``PREDICTORS``, ``target`` and ``bias`` of the calibrated. [1]
    """
    summaries = {}
    for name in PREDICTORS:
        rows = shipped_errors(name)
        summaries[name] = by_regime(rows[rows["set"] == which])
    ours = summaries["calibrated"]
    columns = {name: summary["median_abs_error"] for name, summary in summaries.items()}
    frame = pd.DataFrame(
        {"scored": ours["scored"], **columns, "bias": ours["bias"], "balanced": ours["balanced_error"]}
    )
    return frame.assign(target=[TARGETS.get(str(regime), np.nan) for regime in frame.index])


def by_cohort(frame: pd.DataFrame) -> pd.DataFrame:
    """Summarise errors by cohort and model, the worst median first.

    Parameters
    ----------
    frame : DataFrame
        From `errors`.

    Returns
    -------
    DataFrame
        ``source``, ``accelerator``, ``regime``, ``model``, ``scored``, ``median_abs_error``, ``bias``, and ``reason``
        where one is known (``KNOWN_GAPS``). [1]
    """
    groups = frame.groupby(["source", "accelerator", "regime", "model"], sort=False)
    table = groups.agg(
        scored=("error", "size"),
        median_abs_error=("error", lambda e: e.abs().median()),
        bias=("speed_ratio", lambda r: r.median() - 1),
    ).reset_index()
    keys = zip(table["source"], table["accelerator"], table["regime"], strict=True)
    table["reason"] = [KNOWN_GAPS.get(key, "") for key in keys]
    return table.sort_values("median_abs_error", ascending=False, kind="stable", ignore_index=True)


# --- Leaving out -------------------------------------------------------------------------------


def leave_out(held: Sequence[Case]) -> pd.DataFrame:
    """Fit on all scored rows of the shipped table but some, and predict those.

    Parameters
    ----------
    held : sequence of Case

    Returns
    -------
    DataFrame
        As `errors`. A constant that no other row has stays at its prior: a harder test than use.
    """
    left = {case.measured.id for case in held}
    fitted = fit([case for case in shipped_cases()[0] if case.measured.id not in left]).constants
    values = {name: fitted.get(name, prior(name).middle) for name in Stack(held).names}
    values["phase.overlap"] = fitted["phase.overlap"]
    return errors(held, lambda stack: stack.predicted(stack.efficiency(values)))


def leave_one_out(by: str, *, progress: Callable[[int, int], None] | None = None) -> pd.DataFrame:
    """Leave out each source, or each family of accelerators, in turn.

    Parameters
    ----------
    by : {"source", "family"}
        All scored rows take part, fitting and validation rows alike.
    progress : callable, optional
        Called with (done, total).

    Returns
    -------
    DataFrame
        As `errors`, with ``left_out``, the name of what the row's fit did not see.
    """
    cases, _ = shipped_cases()

    def key(case: Case) -> str:
        return case.measured.source if by == "source" else group("accelerator", case.measured.accelerator)

    names = sorted({key(case) for case in cases})
    found = []
    for done, name in enumerate(names, start=1):
        found.append(leave_out([case for case in cases if key(case) == name]).assign(left_out=name))
        if progress is not None:
            progress(done, len(names))
    return pd.concat(found, ignore_index=True)


LEFT_OUT = DATA / "derived" / "left_out.csv"
LEFT_OUT_COLUMNS = ("by", "left_out", "regime", "scored", "median_abs_error", "bias", "within_25_percent")


def left_out_table(by: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Summarise what `leave_one_out` returns: each thing that was left out, and ``all`` of them, by regime."""
    parts = [(name, rows) for name, rows in frame.groupby("left_out")] + [("all", frame)]
    tables = [by_regime(rows).rename_axis("regime").reset_index().assign(by=by, left_out=name) for name, rows in parts]
    return pd.concat(tables, ignore_index=True)[[*LEFT_OUT_COLUMNS]].round(3)


@cache
def left_out() -> pd.DataFrame:
    """Read the stored errors of rows that their fit did not see; `make calibrate` computes them in some minutes.

    Returns
    -------
    DataFrame
        Columns ``LEFT_OUT_COLUMNS``: ``by`` source or family, ``left_out`` its name or ``all``. [1]
    """
    rows = pd.DataFrame(read_csv_strict(LEFT_OUT, LEFT_OUT_COLUMNS), columns=[*LEFT_OUT_COLUMNS])
    numbers = [*LEFT_OUT_COLUMNS[3:]]
    return rows.astype({**dict.fromkeys(numbers, float), "scored": int})


def main() -> None:
    """Leave out each source and each family, and write `data/derived/left_out.csv`."""
    tables = []
    for by in ("source", "family"):
        with tqdm(desc=f"without one {by}", leave=False, disable=None) as bar:

            def progress(done: int, total: int, bar: Any = bar) -> None:
                bar.total = total
                bar.update(done - bar.n)

            tables.append(left_out_table(by, leave_one_out(by, progress=progress)))
    write_files([(LEFT_OUT, str(pd.concat(tables, ignore_index=True).to_csv(index=False, lineterminator="\n")))])
    print(f"{LEFT_OUT.relative_to(DATA.parent)}: {sum(len(table) for table in tables)} rows")


# --- What the data imply -----------------------------------------------------------------------


def repeated(cases: Iterable[Case]) -> pd.DataFrame:
    """Pairs of rows that measure the same thing twice: how far two measurements are apart.

    Parameters
    ----------
    cases : iterable of Case

    Returns
    -------
    DataFrame
        ``regime``, ``same`` (``engine``, ``another engine`` or ``another source``), ``apart``: the difference of
        logarithms. A floor for any model that does not know which engine release it predicts. [1]
    """
    keys: dict[tuple[Any, ...], list[Case]] = {}
    for case in cases:
        m = case.measured
        conditions = (m.model, m.weights, m.accelerator, m.accelerators, m.tensor_parallel, m.concurrency, m.quantity)
        keys.setdefault((*conditions, m.input_tokens, m.output_tokens, case.regime), []).append(case)
    rows = []
    for key, group_of in keys.items():
        for i, first in enumerate(group_of):
            for second in group_of[i + 1 :]:
                a, b = first.measured, second.measured
                kind = "another source" if a.source != b.source else "another engine"
                kind = "engine" if a.source == b.source and a.engine == b.engine else kind
                rows.append({"regime": key[-1], "same": kind, "apart": abs(float(np.log(a.value / b.value)))})
    return pd.DataFrame(rows, columns=["regime", "same", "apart"])


if __name__ == "__main__":
    or_one_line(main)
