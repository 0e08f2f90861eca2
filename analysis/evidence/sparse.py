"""Mixtures of experts against measurements: what neighbouring positions share, and what checking drafts costs."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from analysis.evidence import accuracy
from analysis.evidence.speculation import checking_ratio, costs_of_a_cycle, drafting_share
from analysis.model.transformer import expert_union, skew_of
from analysis.reference import decoder_tables, tables
from analysis.reference.model_config import replica
from analysis.reference.tables import NEWEST

#: Drafts of the chains in `analysis.evidence.speculation.costs_of_a_cycle`.
DRAFTS = 3


def neighbours() -> pd.Series:
    """Read what two consecutive positions of one text share of their experts, and the skew that gives it.

    Returns
    -------
    Series
        ``model``, ``experts``, ``top_k``, ``shared``, ``by_chance`` (with even routing), ``skew``, ``read`` and
        ``read_evenly``: experts of both over those of one. [1]

    Notes
    -----
    One model, one text, one machine.

    Examples
    --------
    >>> round(float(neighbours()["skew"]), 2)
    0.46
    """
    row = tables.table("routing", as_of=NEWEST).one(quantity="neighbour_share", model="glm-4.7-flash")
    experts, top_k, shared = int(row["experts"]), int(row["top_k"]), float(row["value"])
    skew = skew_of(shared, experts=experts, top_k=top_k)
    two, evenly = (expert_union(2, experts=experts, top_k=top_k, skew=s) * experts / top_k for s in (skew, 0.0))
    return pd.Series(
        {
            "model": row["model"],
            "experts": experts,
            "top_k": top_k,
            "shared": shared,
            "by_chance": top_k / experts,
            "skew": skew,
            "read": two,
            "read_evenly": evenly,
            "source": row["source"],
        }
    )


def pool_cap() -> pd.Series:
    """Experts that the positions of one diffusion block may use together, as the maker caps them.

    Returns
    -------
    Series
        ``model``, ``experts``, ``top_k``, ``positions``, ``cap``, ``evenly``: what even routing would use. [1]

    Examples
    --------
    >>> round(float(pool_cap()["evenly"]))
    163
    """
    row = tables.table("routing", as_of=NEWEST).one(quantity="expert_pool", model="llada2.2-flash")
    experts, top_k, positions = (int(row[name]) for name in ("experts", "top_k", "positions"))
    return pd.Series(
        {
            "model": row["model"],
            "experts": experts,
            "top_k": top_k,
            "positions": positions,
            "cap": float(row["value"]),
            "evenly": experts * expert_union(positions, experts=experts, top_k=top_k),
            "source": row["source"],
        }
    )


def costs_by_skew() -> pd.DataFrame:
    """Time of a speculative cycle in plain passes: measured, and predicted with even and with skewed routing.

    Returns
    -------
    DataFrame
        Columns ``model``, ``kind``, ``batch``, ``measured``, ``evenly``, ``skewed``, and their errors
        ``error_evenly``, ``error_skewed`` (predicted over measured, less 1), ``source``. [1]

    Notes
    -----
    The skew is that of `neighbours`, a measurement on another model; nothing is fitted here.

    Examples
    --------
    >>> found = costs_by_skew()
    >>> sparse = found[found["kind"] == "sparse"]
    >>> bool((sparse["skewed"] < sparse["evenly"]).all())
    True
    """
    costs = costs_of_a_cycle()
    measured = decoder_tables.speculation().drop_duplicates("model").set_index("model")["backbone"]
    skew = float(neighbours()["skew"])
    skewed = []
    for row in costs.itertuples():
        one = replica(str(measured[str(row.model)]), "h200-sxm", as_of=NEWEST, gpus=int(row.gpus))
        routed = replace(one, expert_skew=skew)
        ratio = checking_ratio(routed, batch=float(row.batch), draft_length=DRAFTS, engine="sglang")
        skewed.append(float(ratio) + drafting_share())
    found = costs.rename(columns={"predicted": "evenly", "error": "error_evenly"}).assign(skewed=skewed)
    found["error_skewed"] = found["skewed"] / found["measured"] - 1
    kept = ["model", "kind", "batch", "measured", "evenly", "skewed", "error_evenly", "error_skewed", "source"]
    return found[kept]


def regimes() -> pd.DataFrame:
    """Errors of the model on plain decoding and reading, dense and sparse models side by side, on unseen rows.

    Returns
    -------
    DataFrame
        Columns ``work``, ``dense_rows``, ``dense_error``, ``sparse_rows``, ``sparse_error`` (median absolute). [1]

    Examples
    --------
    >>> bool((regimes()["sparse_rows"] > 0).all())
    True
    """
    scores = accuracy.validation.comparison()
    rows = []
    for work, words in (
        ("single_stream", "one stream"),
        ("batching", "batches"),
        ("max_load", "maximum load"),
    ):
        pair = {kind: scores.loc[f"{work}_{kind}"] for kind in ("dense", "moe") if f"{work}_{kind}" in scores.index}
        if len(pair) < 2:
            continue
        rows.append(
            {
                "work": words,
                "dense_rows": int(pair["dense"]["scored"]),
                "dense_error": float(pair["dense"]["calibrated"]),
                "sparse_rows": int(pair["moe"]["scored"]),
                "sparse_error": float(pair["moe"]["calibrated"]),
            }
        )
    return pd.DataFrame(rows)
