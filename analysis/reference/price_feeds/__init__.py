"""Price files that people really have: read, doubted, and turned into own prices.

Each format has a reader of its own; all hand offers and findings to the same doubt. A price is used, flagged
(odd and used, or doubtful and held back), or refused; whatever is not used has a line that says why. Zero is a
price, missing is not, and no price is ever filled in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from analysis.inputs import InputError
from analysis.reference.own_prices import FEEDS
from analysis.reference.price_feeds import genai_prices, litellm, llm_prices, names, openrouter, skypilot
from analysis.reference.price_feeds.doubt import doubt_api
from analysis.reference.price_feeds.files import read_json, read_text, write_csvs
from analysis.reference.price_feeds.findings import Feed, Finding, Offer, Progress
from analysis.reference.tables import SCHEMAS

_API_READERS: dict[str, Callable[[Feed, Any, Progress], None]] = {
    "litellm": litellm.read,
    "genai-prices": genai_prices.read,
    "llm-prices": llm_prices.read,
    "openrouter": openrouter.read,
}
FORMATS = FEEDS
REPORT_COLUMNS = ("verdict", "used", "kind", "place", "column", "got", "reason")


@dataclass(frozen=True)
class Imported:
    """What one file gave.

    Parameters
    ----------
    table : str
        The table that the offers belong to.
    source : str
        The format of the feed.
    offers : list of Offer
        What is used.
    findings : list of Finding
        What is not used, or odd.
    """

    table: str
    source: str
    offers: list[Offer]
    findings: list[Finding]

    @property
    def refused(self) -> list[Finding]:
        """What is no price of a node or of text tokens."""
        return [finding for finding in self.findings if finding.verdict == "refused"]

    @property
    def flagged(self) -> list[Finding]:
        """What a person should look at."""
        return [finding for finding in self.findings if finding.verdict == "flagged"]

    def rows(self) -> list[dict[str, Any]]:
        """Write the offers as rows of their table."""
        schema = SCHEMAS[self.table]
        return [
            {
                **dict(zip(schema.keys, offer.keys, strict=True)),
                "quantity": "price",
                "value": offer.value,
                "low": None if offer.high is None else offer.value,
                "high": offer.high,
                "unit": schema.units["price"],
                "as_of": offer.as_of or None,
                "source": self.source,
                "locator": f"{offer.place}: {offer.column}",
                "status": "quoted",
                "note": offer.note,
            }
            for offer in self.offers
        ]

    def counts(self) -> dict[tuple[str, bool, str], tuple[int, Finding]]:
        """Count the findings by verdict, use and kind, the most frequent first, each with its first one."""
        groups: dict[tuple[str, bool, str], list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault((finding.verdict, finding.used, finding.kind), []).append(finding)
        most = sorted(groups.items(), key=lambda group: -len(group[1]))
        return {what: (len(findings), findings[0]) for what, findings in most}


def _silent(done: int, total: int) -> None:
    """Show no progress."""


def import_feed(
    form: str,
    path: Path,
    *,
    today: date,
    as_of: date | None = None,
    provider: str | None = None,
    progress: Progress = _silent,
) -> Imported:
    """Read a price file of a known format, plain or gzipped, and doubt what it says.

    Parameters
    ----------
    form : str
        One of ``FORMATS``.
    path : Path
        The file.
    today : date
        Prices of this day are taken where no other day is stated.
    as_of : date, optional
        The day of the prices; without it an ISO date in the name of the file.
    provider : str, optional
        Whose prices a SkyPilot catalog holds; without it the first word of the file's name.
    progress : callable, optional
        Called with what is done, and how much there is.

    Returns
    -------
    Imported

    Raises
    ------
    InputError
        If the file as a whole can't be read as that format.
    """
    stated = as_of
    if stated is None and (named := re.search(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)", path.name)):
        try:
            stated = date.fromisoformat(named[0])
        except ValueError:
            stated = None
    table = "node_prices" if form == "skypilot" else "api_prices"
    feed = Feed(table, path.name, form, stated or today, stated.isoformat() if stated else "")
    if form == "skypilot":
        who = names.slug(provider) if provider else skypilot.provider_of(path.name, path.absolute().parent.name)
        if not who:
            raise InputError("--provider", provider, "a name with letters or digits")
        skypilot.read(feed, read_text(path), who, progress)
    elif form in _API_READERS:
        _API_READERS[form](feed, read_json(path), progress)
        doubt_api(feed)
    else:
        raise InputError("format", form, " or ".join(FORMATS))
    return Imported(table, form, feed.offers, feed.findings)


def report_path(out: Path) -> Path:
    """Return where the report of an import lies: beside its result.

    Examples
    --------
    >>> report_path(Path("mine.csv")).name
    'mine.report.csv'
    """
    try:
        return out.with_suffix(".report.csv")
    except ValueError:
        raise InputError("--out", str(out) or None, "the name of a CSV file") from None


def write(imported: Imported, out: Path) -> None:
    """Write the offers as own prices, and the findings beside them; both files appear whole or not at all.

    Parameters
    ----------
    imported : Imported
        From `import_feed`.
    out : Path
        The CSV to write, with the columns of the shipped table.

    Raises
    ------
    InputError
        If a file can't be written.
    """
    columns = SCHEMAS[imported.table].columns
    rows = ([row[column] for column in columns] for row in imported.rows())
    lines = (
        (f.verdict, "yes" if f.used else "no", f.kind, f.place, f.column, f.got, f.reason) for f in imported.findings
    )
    write_csvs([(out, columns, rows), (report_path(out), REPORT_COLUMNS, lines)])
