"""What was published about text diffusion, speculative decoding and the scaling of masked diffusion.

These are observations of one setting each, so all dates are read: a newer measurement does not replace an older one.
Rows marked ``unused`` stay in the files with their reason and leave every figure here.
"""

from __future__ import annotations

import math
from functools import cache

import pandas as pd

from analysis.inputs import InputError
from analysis.reference import tables
from analysis.reference.rows import nearest

#: Engines whose baseline is research code: a speed-up over it says less than one over a serving engine.
REFERENCE_LOOPS = ("reference-loop", "transformers", "magicdec")

_NUMBERS = {
    "diffusion": ("accelerators", "batch", "answer_tokens", "block_tokens", "denoising_steps"),
    "speculation": ("accelerators", "batch", "temperature", "draft_length"),
}
_COLUMNS = {
    "output_rate": "output_tok_per_s",
    "baseline_rate": "baseline_tok_per_s",
    "ttft": "ttft_s",
    "e2e": "e2e_s",
    "score": "score_percent",
}


@cache
def _settings(name: str) -> pd.DataFrame:
    """Lay the usable rows of a table out wide, one row for each setting, in the order of the file."""
    rows = tables.all_rows(name)
    rows = rows[rows["unused"] == ""]
    schema = tables.SCHEMAS[name]
    by = [key for key in schema.keys if key != "unused"]
    wide = rows.pivot(index=[*by, "as_of", "source", "status"], columns="quantity", values="value").reset_index()
    wide.columns.name = None
    for quantity in schema.units:
        if quantity not in wide:
            wide[quantity] = math.nan
    order = {setting: place for place, setting in enumerate(dict.fromkeys(rows["id"]))}
    wide = wide.sort_values("id", key=lambda ids: ids.map(order), kind="stable").reset_index(drop=True)
    for column in _NUMBERS[name]:
        wide[column] = pd.to_numeric(wide[column].where(wide[column] != ""), errors="raise")
    return wide.rename(columns=_COLUMNS)


def diffusion() -> pd.DataFrame:
    """Read the measured and claimed speed of text diffusion, one row for each setting.

    Returns
    -------
    DataFrame
        The key columns of ``data/diffusion.csv`` (counts as numbers, NaN where not stated), ``output_tok_per_s``,
        ``ttft_s``, ``e2e_s``, ``tokens_per_pass``, ``speedup`` (as printed), ``score_percent``, ``max_batch``,
        ``crossover_batch``, ``as_of``, ``source``, ``status``, and ``gain``: the rate over that of the setting it is
        held against, or the printed ratio. [token/s, s, 1, %]

    Examples
    --------
    >>> frame = diffusion().set_index("id")
    >>> round(float(frame.loc["dg-h100-diffusion", "gain"]), 2)
    5.12
    """
    frame = _settings("diffusion").copy()
    rates = frame.drop_duplicates("id").set_index("id")["output_tok_per_s"]
    frame["gain"] = frame["output_tok_per_s"] / frame["against"].map(rates)
    frame["gain"] = frame["gain"].fillna(frame["speedup"])
    return frame


def speculation() -> pd.DataFrame:
    """Read measured speculative decoding, one row for each setting.

    Returns
    -------
    DataFrame
        The key columns of ``data/speculation.csv`` (counts as numbers, NaN where not stated), ``output_tok_per_s``,
        ``baseline_tok_per_s`` (the same engine without), ``speedup`` (as printed), ``tokens_per_pass``,
        ``acceptance``, ``as_of``, ``source``, ``status``, and ``gain``: the ratio of the rates, or the printed one;
        ``serving`` says whether the baseline is a serving engine. [token/s, 1]

    Examples
    --------
    >>> frame = speculation()
    >>> sorted(frame[frame["source"] == "sglang-spec-docs"]["gain"].round(2))
    [1.54, 2.36]
    """
    frame = _settings("speculation").copy()
    frame["gain"] = (frame["output_tok_per_s"] / frame["baseline_tok_per_s"]).fillna(frame["speedup"])
    frame["serving"] = ~frame["engine"].isin((*REFERENCE_LOOPS, ""))
    return frame


def scaling(study: str) -> pd.DataFrame:
    """Read the points of one study of scaling, one row for each model and amount of compute.

    Parameters
    ----------
    study : str
        ``smdm`` (loss and best size by compute) or ``llada`` (benchmark scores by compute).

    Returns
    -------
    DataFrame
        Columns ``model``, ``decoder``, ``training_flop`` [FLOP], ``task``, ``quantity``, ``value``, ``unit``,
        ``source``.

    Raises
    ------
    InputError
        If there is no such study with points.

    Examples
    --------
    >>> points = scaling("smdm")
    >>> sorted(points["decoder"].unique())
    ['ar', 'diffusion']
    """
    rows = tables.all_rows("scaling")
    points = rows[(rows["training_flop"] != "") & (rows["unused"] == "")]
    found = points[points["study"] == study]
    if found.empty:
        raise InputError("study", study, f"a study with points: {nearest(study, points['study'].unique())}")
    found = found.assign(training_flop=found["training_flop"].astype(float))
    return found[["model", "decoder", "training_flop", "task", "quantity", "value", "unit", "source"]].reset_index(
        drop=True
    )


def scaling_coefficient(study: str, model: str, coefficient: str, *, decoder: str = "diffusion") -> float:
    """Read one published coefficient of a scaling law. [1].

    Raises
    ------
    InputError
        If no such coefficient was published; the message lists the nearest names.

    Examples
    --------
    >>> scaling_coefficient("smdm", "optimal", "compute-gap")
    16.0
    """
    table = tables.table("scaling", as_of=tables.NEWEST)
    row = table.one(study=study, model=model, coefficient=coefficient, decoder=decoder)
    return float(row["value"])
