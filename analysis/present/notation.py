"""The symbol table as frames for the notation page."""

from __future__ import annotations

import pandas as pd

from analysis.symbols import SUBJECTS, TABLE


def notation() -> dict[str, pd.DataFrame]:
    """List every symbol with its LaTeX, its name in the code, its unit and its meaning, by subject.

    Returns
    -------
    dict of str to DataFrame
        For each of `analysis.symbols.SUBJECTS` the columns ``symbol`` (LaTeX), ``means``, ``unit``, ``code``, in the
        order of declaration; a symbol that stands for a conversion constant shows its value as its LaTeX.

    Examples
    --------
    >>> notation()["What a token costs"].set_index("code").loc["utilization", "symbol"]
    'u'
    """
    found: dict[str, list[dict[str, str]]] = {}
    subject = ""
    for name, known in TABLE.items():
        subject = SUBJECTS.get(name, subject)
        row = {"symbol": known.latex, "means": known.means, "unit": _unit(str(known.unit)), "code": name}
        found.setdefault(subject, []).append(row)
    return {subject: pd.DataFrame(rows) for subject, rows in found.items()}


def _unit(text: str) -> str:
    return "1 (a pure number)" if text == "1" else text
