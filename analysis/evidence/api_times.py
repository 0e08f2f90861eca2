"""How long an API takes for an answer: one rule for every chapter, the wait for the first token and the rest at a rate.

A row of the table is judged where its page has both a wait and a rate. Rows that lack one are counted and named, not
filled in.
"""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.inputs import not_negative, positive, scalar_or_array
from analysis.reference import tables

#: A page's figures stand together: a row is one endpoint, model and way of thinking on one page of one day.
BY = ("seller", "model", "thinking", "input_tokens", "output_tokens", "as_of", "source", "status")


def answer_s(wait_s: ArrayLike, tok_per_s: ArrayLike, *, tokens: ArrayLike) -> Any:
    r"""Time until an API has answered so many tokens: the wait for the first, and the others at the stated rate.

    .. math:: t_\mathrm{first} + \frac{n - 1}{r}

    Parameters
    ----------
    wait_s : float or array
        Until the first token of the answer. [s]
    tok_per_s : float or array
        Output rate after it, above 0. [token/s]
    tokens : float or array
        Tokens of the answer, above 0. [token]

    Returns
    -------
    float or array, broadcast shape
        [s]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    An answer below one token takes the wait. Rates of one page are taken as they are, whatever they average over.

    Examples
    --------
    >>> answer_s(0.5, 100.0, tokens=301)
    3.5
    """
    wait, rate = not_negative("wait_s", wait_s), positive("tok_per_s", tok_per_s)
    others = np.maximum(positive("tokens", tokens) - 1, 0.0)
    return scalar_or_array(np.asarray(wait + others / rate))


def _pages(as_of: date) -> pd.DataFrame:
    rows = tables.all_rows("api_latency")
    # a newer figure of somebody else does not undo what one page says as a whole
    rows = rows[rows["as_of"] <= as_of]
    wide = rows.pivot(index=list(BY), columns="quantity", values="value")
    wide = wide.reindex(columns=["ttfat", "ttft", "output_rate", "e2e"]).reset_index()
    # hidden thinking comes before the first token of the answer
    return wide.assign(wait=wide["ttfat"].fillna(wide["ttft"]))


def answers(output_tokens: float, *, as_of: date) -> pd.DataFrame:
    """Seconds until an API has answered so many tokens, quickest first.

    Parameters
    ----------
    output_tokens : float
        [token]
    as_of : date

    Returns
    -------
    DataFrame
        Columns ``model``, ``seller``, ``seconds`` by `answer_s` [s], ``status`` (``measured`` by others, ``reported``
        by the maker, ``quoted``), ``as_of``, ``source``: rows that have both figures, the quickest of each model and
        source.

    Raises
    ------
    InputError
        If the tokens are not above 0.

    Examples
    --------
    >>> frame = answers(500, as_of=tables.SNAPSHOT)
    >>> bool((frame[frame["status"] == "measured"]["seconds"] > 1).all())
    True
    """
    both = _pages(as_of).dropna(subset=["wait", "output_rate"])
    seconds = answer_s(both["wait"].to_numpy(), both["output_rate"].to_numpy(), tokens=output_tokens)
    found = both.assign(seconds=seconds).sort_values("seconds", kind="stable")
    kept = ["model", "seller", "seconds", "status", "as_of", "source"]
    return found[kept].drop_duplicates(["model", "source"], ignore_index=True).rename_axis(None, axis=1)


def judged(*, as_of: date, status: str) -> pd.DataFrame:
    """Give the rows of one status that `answers` judges, for answers of any length.

    Returns
    -------
    DataFrame
        ``model``, ``seller``, ``wait_s`` [s], ``tok_per_s`` [token/s].

    Examples
    --------
    >>> judged(as_of=tables.SNAPSHOT, status="reported")["model"].tolist()
    ['gemini-diffusion', 'mercury-2']
    """
    both = _pages(as_of).dropna(subset=["wait", "output_rate"])
    both = both[both["status"] == status].rename(columns={"wait": "wait_s", "output_rate": "tok_per_s"})
    return both[["model", "seller", "wait_s", "tok_per_s"]].reset_index(drop=True).rename_axis(None, axis=1)


def unjudged(*, as_of: date) -> pd.DataFrame:
    """Name the rows that `answers` cannot judge, because their page has no wait or no rate.

    Parameters
    ----------
    as_of : date

    Returns
    -------
    DataFrame
        ``model``, ``seller``, ``lacks`` (``wait``, ``rate`` or ``both``), ``tok_per_s`` and ``wait_s`` where there is
        one, ``status``, ``as_of``, ``source``; the highest rates first.

    Examples
    --------
    >>> frame = unjudged(as_of=tables.SNAPSHOT)
    >>> frame.iloc[0][["seller", "model", "lacks"]].tolist()
    ['cerebras', 'gpt-oss-120b', 'wait']
    """
    pages = _pages(as_of)
    no_wait, no_rate = pages["wait"].isna(), pages["output_rate"].isna()
    lacks = np.select([no_wait & no_rate, no_wait, no_rate], ["both", "wait", "rate"], "")
    found = pages.assign(lacks=lacks).rename(columns={"output_rate": "tok_per_s", "wait": "wait_s"})
    found = found[no_wait | no_rate].sort_values(["tok_per_s", "model", "seller"], ascending=[False, True, True])
    kept = ["model", "seller", "lacks", "tok_per_s", "wait_s", "status", "as_of", "source"]
    return found[kept].reset_index(drop=True).rename_axis(None, axis=1)


def fastest_s(output_tokens: float, *, as_of: date, status: str = "measured") -> float:
    """Shortest time of an answer of so many tokens at an API, by rows of one status that have both figures.

    Parameters
    ----------
    output_tokens : float
        [token]
    as_of : date
    status : str
        ``measured`` by others, or ``reported`` by makers.

    Returns
    -------
    float
        Endless where nobody has both figures. [s]

    Raises
    ------
    InputError
        As `answers`.

    Examples
    --------
    >>> [round(fastest_s(300, as_of=tables.SNAPSHOT, status=word), 2) for word in ("measured", "reported")]
    [1.91, 0.95]
    """
    found = answers(output_tokens, as_of=as_of)
    seconds = found[found["status"] == status]["seconds"]
    return float(seconds.min()) if len(seconds) else float("inf")
