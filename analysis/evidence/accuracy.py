"""How right the model is and why not more: scores against targets, the worst cohorts, one step taken apart.

`python -m analysis.evidence.accuracy` writes which constants trade against each other to `data/derived`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from analysis.evidence import calibration, validation
from analysis.evidence.cases import Case, nearest_step, shipped_cases
from analysis.inputs import InputError, or_one_line, write_files
from analysis.model import decoding
from analysis.reference.efficiency import constants, efficiency
from analysis.reference.model_config import shipped
from analysis.reference.rows import csv_lines
from analysis.reference.specs import Accelerator, Precision, Replica
from analysis.reference.tables import DATA, all_rows, read_csv_strict, sources

#: Regimes as the page names them.
WORDS = {
    "single_stream": "single stream",
    "batching": "batching",
    "max_load": "maximum load",
    "prefill": "prefill",
}
#: Fewer rows say little about a cause.
FEWEST = 2
#: Median absolute error with each source left out that was aimed at.
LEFT_OUT_TARGETS = {
    "single_stream_dense": 0.11,
    "batching_dense": 0.11,
    "max_load_dense": 0.11,
    "prefill_dense": 0.16,
}
CORRELATIONS = DATA / "derived" / "correlations.csv"
CORRELATION_COLUMNS = ("constant", "trades_with", "correlation")
#: Correlations below this are left out of the table.
STRONG = 0.5


# --- Rows --------------------------------------------------------------------------------------


def rows(predictor: str = "calibrated") -> pd.DataFrame:
    """List all scored rows of the shipped table with their errors, and as speeds.

    Parameters
    ----------
    predictor : str
        A key of `analysis.evidence.validation.PREDICTORS`.

    Returns
    -------
    DataFrame
        As `analysis.evidence.validation.shipped_errors`, and ``measured_tok_per_s`` and ``predicted_tok_per_s``
        [token/s]: a time turns into the tokens made or read in it.
    """
    cases, _ = shipped_cases()
    frame = validation.shipped_errors(predictor)
    measured = np.array([_tok_per_s(case, case.measured.value) for case in cases])
    return frame.assign(measured_tok_per_s=measured, predicted_tok_per_s=measured * frame["speed_ratio"])


def _tok_per_s(case: Case, value: float) -> float:
    """Measured number as a speed. [token/s]."""
    m = case.measured
    if case.tokens is not None:
        return value
    made = {
        "tpot_s": 1.0,
        "ttft_s": m.input_tokens or 0.0,
        "e2e_latency_s": m.concurrency * (m.output_tokens or 0.0),
    }
    return made[m.quantity] / value


def words(regime: str) -> str:
    """Write a regime as the page does.

    Examples
    --------
    >>> words("max_load_moe"), words("prefill_dense")
    ('maximum load, sparse', 'prefill, dense')
    """
    name, _, kind = regime.rpartition("_")
    return f"{WORDS[name]}, {'sparse' if kind == 'moe' else kind}"


def listed(regimes: Iterable[str]) -> str:
    """Write several regimes in one phrase.

    Examples
    --------
    >>> listed(["single_stream_dense", "max_load_moe", "prefill_dense"]), listed([])
    ('dense single stream, sparse maximum load and dense prefill', 'none')
    """
    phrases = [" ".join(reversed(words(regime).split(", "))) for regime in regimes]
    return " and ".join(part for part in (", ".join(phrases[:-1]), *phrases[-1:]) if part) or "none"


def points() -> pd.DataFrame:
    """Rows as a chart wants them: ``id, source, model, engine, accelerator, regime, kind, set`` and speeds.

    ``place`` spreads the rows of a regime evenly from 0 to 1, so that marks do not cover each other.
    """
    frame = rows()
    turn = frame.groupby("regime").cumcount()
    frame = frame.assign(
        kind=np.where(frame["regime"].str.endswith("_moe"), "sparse", "dense"),
        place=(turn * (5**0.5 - 1) / 2) % 1,
        regime=frame["regime"].map(words),
    )
    shown = ["id", "source", "model", "engine", "accelerator", "regime", "kind", "set", "place"]
    return frame[[*shown, "measured_tok_per_s", "predicted_tok_per_s", "speed_ratio"]]


# --- Scores ------------------------------------------------------------------------------------


def scores(which: str = "validation") -> pd.DataFrame:
    """Summarise the model by regime against its targets, with simpler models on the same rows.

    Parameters
    ----------
    which : {"validation", "fit"}

    Returns
    -------
    DataFrame
        ``regime``, ``scored`` rows, ``sources``, ``median_abs_error``, ``target``, ``met``, ``bias`` (median of the
        speed ratio less one: positive where the model is too fast), ``within_25_percent``, ``flat_caps`` and
        ``roofline`` (their median absolute errors). [1]
    """
    frame = rows()
    frame = frame[frame["set"] == which]
    ours = validation.by_regime(frame)
    others = validation.comparison(which)
    by = frame.groupby("regime")
    table = pd.DataFrame(
        {
            "scored": ours["scored"],
            "sources": by["source"].nunique().reindex(ours.index),
            "median_abs_error": ours["median_abs_error"],
            "target": others["target"],
            "met": others["target"] >= ours["median_abs_error"],
            "bias": ours["bias"],
            "within_25_percent": ours["within_25_percent"],
            "flat_caps": others["flat caps"],
            "roofline": others["roofline"],
        }
    )
    return table.rename_axis("regime").reset_index()


def sets() -> pd.DataFrame:
    """List the declared sets with the rows scored in each: ``set, source, accelerator, scored, reason, url``."""
    declared = calibration.declared_sets()
    known = set(zip(declared["source"], declared["accelerator"], strict=True))
    frame = rows()
    named = [
        accelerator if (source, accelerator) in known else "any"
        for source, accelerator in zip(frame["source"], frame["accelerator"], strict=True)
    ]
    counts = frame.assign(accelerator=named).groupby(["source", "accelerator"]).size()
    table = declared.assign(
        scored=[int(counts.get(pair, 0)) for pair in zip(declared["source"], declared["accelerator"], strict=True)]
    )
    table["url"] = sources()["url"].loc[table["source"]].to_list()
    columns = ["set", "source", "accelerator", "scored", "reason", "url"]
    return table.sort_values(["set", "source"], kind="stable")[columns].reset_index(drop=True)


def median_error(regime: str, *, without: str) -> float:
    """Return the median absolute error on the validation rows of a regime but those of one source. [1]."""
    frame = rows()
    kept = frame[(frame["set"] == "validation") & (frame["regime"] == regime) & (frame["source"] != without)]
    return float(kept["error"].abs().median())


def repeats() -> pd.DataFrame:
    """Summarise how far two measurements of the same thing are apart.

    Returns
    -------
    DataFrame
        ``same`` (as in `analysis.evidence.validation.repeated`), ``regime``, ``pairs`` and ``median_apart``, the
        median of the larger over the smaller less one. [1]
    """
    pairs = validation.repeated(shipped_cases()[0])
    groups = pairs.assign(apart=np.expm1(pairs["apart"])).groupby(["same", "regime"])["apart"]
    return groups.agg(pairs="size", median_apart="median").reset_index()


def fitted_constants() -> pd.DataFrame:
    """List the constants as text, with ``at_limit`` where the prior stops one and not the rows."""
    found = []
    for name, constant in constants().items():
        known = name in calibration.PRIORS or name.partition(".")[2] in calibration.PRIORS
        most = calibration.prior(name).most if known else np.inf
        numbers = {key: f"{getattr(constant, key):g}" for key in ("value", "low", "high")}
        at_limit = constant.value >= 0.995 * most
        found.append({"constant": name, **numbers, "unit": constant.unit, "rows": constant.rows, "at_limit": at_limit})
    return pd.DataFrame(found)


def worst(above: float = validation.WITHIN) -> pd.DataFrame:
    """List models in validation cohorts whose median error is above a limit, the worst first, each with the reason.

    Parameters
    ----------
    above : float
        Limit on the median absolute error. [1]

    Returns
    -------
    DataFrame
        ``source, accelerator, regime, model, scored`` (``FEWEST`` or more), ``median_abs_error``, ``bias`` (of the
        speed), ``reason`` as in `analysis.evidence.validation.KNOWN_GAPS`.
    """
    frame = rows()
    table = validation.by_cohort(frame[frame["set"] == "validation"])
    return table[(table["scored"] >= FEWEST) & (table["median_abs_error"] > above)].reset_index(drop=True)


# --- By length of the prompt, and one source on its own ----------------------------------------


def _with_conditions() -> pd.DataFrame:
    """List all scored rows with the conditions that tell the rows of one source apart, small batches first."""
    cases, _ = shipped_cases()
    frame = rows().assign(
        gpus=[case.replica.gpus for case in cases],
        input_tokens=[case.measured.input_tokens for case in cases],
        output_tokens=[case.measured.output_tokens for case in cases],
        batch=[case.measured.concurrency for case in cases],
        case=cases,
    )
    return frame.sort_values("batch", kind="stable")


def long_prompts(regime: str, *, input_tokens: float) -> pd.DataFrame:
    """List the validation rows of a regime with prompts of some length or more, as `rows`.

    Parameters
    ----------
    regime : str
        For example ``max_load_dense``.
    input_tokens : float
        Shortest prompt. [token]
    """
    frame = _with_conditions()
    kept = (frame["set"] == "validation") & (frame["regime"] == regime) & (frame["input_tokens"] >= input_tokens)
    return frame[kept].drop(columns="case")


def sweep(source: str) -> pd.DataFrame:
    """Summarise a source by model and length of the prompt, from its smallest batch to its largest.

    Parameters
    ----------
    source : str
        A key of ``data/sources.csv`` with scored rows.

    Returns
    -------
    DataFrame
        ``model``, ``gpus``, ``input_tokens``, ``output_tokens`` (the longest), ``scored`` rows, the batches
        ``batch_low`` and ``batch_high``, the speed ratio less one of these two (``bias_low``, ``bias_high``: positive
        where the model is too fast), and ``median_abs_error``. [1]
    """
    found = []
    frame = _with_conditions().query("source == @source")
    for (model, gpus, prompt), of in frame.groupby(["model", "gpus", "input_tokens"]):
        small, large = of.iloc[0], of.iloc[-1]
        found.append(
            {
                "model": model,
                "gpus": gpus,
                "input_tokens": prompt,
                "output_tokens": of["output_tokens"].max(),
                "scored": len(of),
                "batch_low": small["batch"],
                "batch_high": large["batch"],
                "bias_low": small["speed_ratio"] - 1,
                "bias_high": large["speed_ratio"] - 1,
                "median_abs_error": of["error"].abs().median(),
            }
        )
    return pd.DataFrame(found)


def cache_read_share(source: str, *, model: str, input_tokens: float) -> float:
    """Estimate at which share of the data sheet's bandwidth a source read its further caches.

    A batch of n that starts and ends together takes the time of n prompts and S_out passes. From the smallest batch
    to the largest a pass takes longer by ((T_2 - T_1) - (n_2 - n_1) t_prompt) / S_out; the share is the time that the
    further caches take at full bandwidth over that. t_prompt is predicted, T is measured.

    Parameters
    ----------
    source, model : str
    input_tokens : float
        Length of the prompts. [token]

    Returns
    -------
    float
        A lower end: whatever else a further sequence costs in a pass is counted as reading. [1]

    Raises
    ------
    InputError
        If the source did not measure that prompt in two batches with answers of one length.
    """
    frame = _with_conditions()
    of = frame[(frame["source"] == source) & (frame["model"] == model) & (frame["input_tokens"] == input_tokens)]
    if of["batch"].nunique() < 2 or of["output_tokens"].nunique() != 1:
        raise InputError("input_tokens", input_tokens, f"two batches of {model} by {source} with one length of answer")
    small, large = of.iloc[0], of.iloc[-1]
    replica, answer = small["case"].replica, small["output_tokens"]
    prompt_s = decoding.prefill_s(replica, input_tokens=input_tokens, efficiency=efficiency(replica, small["engine"]))
    prompts_s = (large["batch"] - small["batch"]) * prompt_s
    longer_s = (large["measured"] - small["measured"] - prompts_s) / answer
    batches = np.array([small["batch"], large["batch"]])
    at_full_s = np.diff(decoding.pass_time(replica, batch=batches, context_tokens=input_tokens + answer / 2).kv_s)
    return float(at_full_s[0] / longer_s)


# --- One step taken apart ----------------------------------------------------------------------


def step_terms(
    accelerator: Accelerator,
    *,
    architecture: str,
    gpus: int,
    weights: Iterable[str],
    batches: Iterable[float],
    context_tokens: float,
    engine: str,
) -> pd.DataFrame:
    """Take predicted steps of decoding apart into parts that add up.

    Parameters
    ----------
    accelerator : Accelerator
    architecture : str
        Name of a shipped model.
    gpus : int
        GPUs of the replica. [1]
    weights : iterable of str
        Formats of the weights.
    batches : iterable of float
        Sequences in the pass. [1]
    context_tokens : float
        Cached tokens of each. [token]
    engine : str

    Returns
    -------
    DataFrame
        A row for each part of each step: ``weights``, ``batch``, ``part``, ``part_s``, and the same ``step_s`` and
        ``floor_s`` in each row of a step. [s]

    Notes
    -----
    Reading and computing overlap in part, so their times do not add. ``arithmetic`` is what computing adds to
    reading: the time of both phases less the time of reading alone.
    """
    found = []
    for number_format in weights:
        replica = Replica(shipped(architecture).architecture, Precision.of(number_format), accelerator, gpus=gpus)
        reached = efficiency(replica, engine)
        for batch in batches:
            time = decoding.pass_time(replica, batch=batch, context_tokens=context_tokens, efficiency=reached)
            floor = decoding.floor_s(replica, batch=batch, context_tokens=context_tokens)
            parts = {
                "weights": time.weights_s,
                "KV cache": time.kv_s,
                "fixed": time.fixed_s,
                "all-reduce": time.communication_s,
                "activations": time.activations_s,
            }
            parts["arithmetic"] = time.pass_s - sum(parts.values())
            step = {"weights": number_format, "batch": batch, "step_s": time.pass_s, "floor_s": floor}
            found += [step | {"part": part, "part_s": seconds} for part, seconds in parts.items()]
    return pd.DataFrame(found)


def nearest_measured(
    accelerator: Accelerator, *, architecture: str, gpus: int, weights: Iterable[str], batches: Iterable[float]
) -> pd.DataFrame:
    """List the measured steps nearest to some predicted ones, each beside its own prediction.

    Parameters
    ----------
    accelerator, architecture, gpus, weights, batches
        As in `step_terms`.

    Returns
    -------
    DataFrame
        As `analysis.evidence.cases.nearest_step`, each row once; no rows where nothing was measured.
    """
    found = []
    for number_format in weights:
        replica = Replica(shipped(architecture).architecture, Precision.of(number_format), accelerator, gpus=gpus)
        found += [nearest_step(replica, batch=batch) for batch in batches]
    return pd.DataFrame([row for row in found if row is not None]).drop_duplicates("id", ignore_index=True)


def tools(accelerator: Accelerator, *, architecture: str, gpus: int, engine: str) -> pd.DataFrame:
    """Show what other tools print for the same steps, below the floor and the model.

    Parameters
    ----------
    accelerator, architecture, gpus, engine
        As in `step_terms`.

    Returns
    -------
    DataFrame
        ``tool``, one column ``batch N`` for each batch, ``below_floor`` (whether any step is faster than the
        data sheet allows), ``note`` and ``url``. [ms]
    """
    printed = all_rows("tools")
    batches = sorted({int(batch) for batch in printed["batch"]})
    context = float(printed["context_tokens"].iloc[0])
    steps = step_terms(
        accelerator,
        architecture=architecture,
        gpus=gpus,
        weights=["bf16"],
        batches=batches,
        context_tokens=context,
        engine=engine,
    ).drop_duplicates("batch")
    own = pd.DataFrame({"batch": batches, "floor": 1e3 * steps["floor_s"], "model": 1e3 * steps["step_s"]})
    floor = own.set_index("batch")["floor"]
    found = []
    for name in ("floor", "model"):
        label = "floor by the data sheet" if name == "floor" else f"this book, {engine}"
        values = dict(zip(batches, own[name], strict=True))
        found.append({"tool": label, **_by_batch(values), "below_floor": False, "note": "", "url": ""})
    addresses = sources()["url"]
    for (tool, version), group_of in printed.groupby(["tool", "version"], sort=False):
        values = {int(row["batch"]): row["value"] for row in group_of.to_dict("records")}
        found.append(
            {
                "tool": f"{tool} {version.replace('-', ' ')}",
                **_by_batch(values),
                "below_floor": any(value < 0.995 * floor[batch] for batch, value in values.items()),
                "note": group_of["note"].iloc[0],
                "url": addresses[group_of["source"].iloc[0]],
            }
        )
    return pd.DataFrame(found)


def _by_batch(values: dict[int, float]) -> dict[str, float]:
    return {f"batch {batch}": float(value) for batch, value in values.items()}


# --- Constants that trade ----------------------------------------------------------------------


def correlations() -> pd.DataFrame:
    """Read the stored correlations of fitted constants: ``constant``, ``trades_with``, ``correlation`` [1]."""
    cells = read_csv_strict(CORRELATIONS, CORRELATION_COLUMNS)
    return pd.DataFrame(cells, columns=list(CORRELATION_COLUMNS)).astype({"correlation": float})


def strong_correlations(found: calibration.Fit) -> list[list[str]]:
    """Write the strong correlations of a fit as text rows, the strongest first."""
    names = list(found.correlation.index)
    pairs = [
        (abs(value), first, second, value)
        for i, first in enumerate(names)
        for second, value in zip(names[i + 1 :], found.correlation.iloc[i, i + 1 :], strict=True)
        if abs(value) >= STRONG
    ]
    return [[first, second, f"{value:.2f}"] for _, first, second, value in sorted(pairs, reverse=True)]


def main() -> None:
    """Write `data/derived/correlations.csv`."""
    lines = strong_correlations(calibration.fit(calibration.fitting_cases()))
    write_files([(CORRELATIONS, csv_lines(CORRELATION_COLUMNS, lines))])
    print(f"{CORRELATIONS.relative_to(DATA.parent)}: {len(lines)} pairs")


if __name__ == "__main__":
    or_one_line(main)
