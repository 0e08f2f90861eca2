"""The symbol table as a frame for the notation page."""

from __future__ import annotations

import pandas as pd

from analysis.symbols import TABLE


def notation() -> pd.DataFrame:
    """List every symbol with its LaTeX, its name in the code, its unit and its meaning.

    Returns
    -------
    DataFrame
        Columns ``symbol`` (LaTeX), ``means``, ``unit``, ``code``, in the order of declaration; a symbol that
        stands for a conversion constant shows its value as its LaTeX.

    Examples
    --------
    >>> notation().set_index("code").loc["utilization", "symbol"]
    'u'
    """
    return pd.DataFrame(
        [
            {"symbol": known.latex, "means": known.means, "unit": _unit(str(known.unit)), "code": name}
            for name, known in TABLE.items()
        ]
    )


def _unit(text: str) -> str:
    return "1 (a pure number)" if text == "1" else text
