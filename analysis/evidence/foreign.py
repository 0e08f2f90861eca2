"""Anybody's measurements: rows as people write them, read into the names of the tables or skipped with the reason."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from analysis.evidence.cases import MEAN_OF_UPPER, REASONS, Case, Measurement, Skipped, case
from analysis.inputs import InputError, Words, positive, read_file, whole
from analysis.reference.efficiency import engines, group, named

#: Columns without which no row can be read; the others may be missing.
NEEDED = ("model", "gpu", "metric", "value", "batch_or_concurrency")
MAX_FILE_BYTE = 64 * 2**20

#: What a metric is called in the tables, by the name in the file.
METRICS = {
    "tpot_s": "tpot_s",
    "itl_s": "tpot_s",
    "ttft_s": "ttft_s",
    "e2e_latency_s": "e2e_latency_s",
    "tokens_per_s_per_user": "tokens_per_s_per_user",
    "output_tokens_per_s_total": "output_tokens_per_s_total",
    "output_tokens_per_s_per_gpu": "output_tokens_per_s_per_gpu",
    "prefill_tokens_per_s": "prefill_tokens_per_s",
}
SECONDS_PER = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
RATES = frozenset({"", "tok/s", "token/s", "tok/s/gpu", "tokens/s"})

#: Words of a note that say why a row is about something else.
NOTES = (
    (r"\bSUSPECT\b", "suspect"),
    (r"\bspeculative\b(?! decoding: no)", "speculative"),
    (r"labels lost", "labels-lost"),
    (r"beam search", "beam-search"),
    (r"prefill and decode on separate nodes|disaggregat", "disaggregated"),
    (r"does not say whether input tokens count", "unclear-tokens"),
    (r"layer split", "layer-split"),
    (r"early deepseek support", "early-engine"),
    (r"PP([2-9]|\d\d)\b|pipeline parallel", "pipeline"),
)


def read(path: str | Path) -> tuple[list[Case], list[dict[str, str]]]:
    """Read a file of measurements.

    Parameters
    ----------
    path : str or Path
        A CSV with a header; columns ``id, model, weights_dtype, kv_dtype, gpu, n_gpus, tp, engine, engine_version,
        batch_or_concurrency, input_tokens, output_tokens, metric, value, unit, regime, source_title, note`` in any
        order; those of ``NEEDED`` must be there, others are ignored.

    Returns
    -------
    list of Case, list of dict
        What can be predicted, and ``id`` and ``reason`` of each row that is skipped.

    Raises
    ------
    InputError
        If the file is no readable CSV or lacks a column.
    """
    cases: list[Case] = []
    skipped = []
    for line, cells in _rows(Path(path)):
        name = cells.get("id") or f"row {line}"
        try:
            cases.append(case(_measurement(cells, name)))
        except (Skipped, InputError) as reason:
            # the column as it is called in such a file
            column = "tp" if cells.get("tp") else "n_gpus"
            said = re.sub(r"^tensor_parallel: got (\d+)\.0,", rf"{column}: got \1,", str(reason))
            skipped.append({"id": name, "reason": said})
    return cases, skipped


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    raw = read_file(path, at_most=MAX_FILE_BYTE, expected="a readable CSV")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(path.name, Words(f"byte 0x{error.object[error.start]:02x}"), "UTF-8 text") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        header = [column.strip().lower() for column in reader.fieldnames or ()]
        missing = [column for column in NEEDED if column not in header]
        if missing:
            raise InputError(f"{path.name} row 1", ",".join(header) or None, f"a column {missing[0]}")
        twice = next((column for column in header if column and header.count(column) > 1), None)
        if twice is not None:
            raise InputError(f"{path.name} row 1", Words(f"the column {twice} twice"), "each column once")
        reader.fieldnames = header
        rows = []
        for cells in reader:
            if None in cells or None in cells.values():
                ragged = Words("too many cells" if None in cells else "too few cells")
                raise InputError(f"{path.name} row {reader.line_num}", ragged, f"{len(header)} cells")
            rows.append((reader.line_num, {key: value.strip() for key, value in cells.items()}))
        return rows
    except csv.Error as error:
        raise InputError(f"{path.name} row {reader.line_num}", Words(str(error)), "a well-formed CSV row") from None


def _stated_format(cells: Mapping[str, str]) -> str:
    """Return the format of the weights, which no default stands in for."""
    stated = _format(cells, "weights_dtype", "weights")
    if not stated:
        raise Skipped("weights_dtype is blank: the bytes of a weight decide the time")
    return stated


def _measurement(cells: Mapping[str, str], name: str) -> Measurement:
    note = f"{cells.get('note', '')} {cells.get('source_title', '')}"
    for pattern, reason in NOTES:
        if re.search(pattern, note, re.IGNORECASE) and not re.search("no speculation", note, re.IGNORECASE):
            raise Skipped(REASONS[reason])
    if re.search(r"best tp/pp/dp mix", note, re.IGNORECASE) and not cells.get("tp"):
        raise Skipped(REASONS["mixed-layout"])
    quantity = METRICS.get(cells["metric"].lower())
    if quantity is None:
        raise Skipped(f"metric {cells['metric'] or 'not given'}: the model predicts {', '.join(METRICS)}")
    engine = _engine(cells, note)
    # so the harness of this source says: it draws lengths from 0.8 to 1.0 of what it states
    upper = re.search(r"inference(max|x)", note, re.IGNORECASE) and not re.search("gap.analysis", note, re.IGNORECASE)
    scale = MEAN_OF_UPPER if upper else 1.0
    accelerators = _whole(cells, "n_gpus")
    if accelerators is None:
        raise Skipped("n_gpus is blank: how many cards shared the work decides the time")
    regime, concurrency = _load(cells, quantity)
    if accelerators > 1 and engine in ("llama.cpp", "exllama", "exllama-v2"):
        raise Skipped(REASONS["layer-split"])
    dp = re.search(r"attention dp", note, re.IGNORECASE) is not None
    return Measurement(
        id=name,
        source=cells.get("source_title", ""),
        model=named("model", cells["model"]),
        weights=_stated_format(cells),
        kv=_format(cells, "kv_dtype", "kv"),
        accelerator=named("accelerator", cells["gpu"]),
        accelerators=accelerators,
        tensor_parallel=_whole(cells, "tp") or accelerators,
        engine=engine,
        layout="dp-attention" if dp else "tp",
        regime=regime,
        concurrency=concurrency,
        input_tokens=_tokens(cells, "input_tokens", scale),
        output_tokens=_tokens(cells, "output_tokens", scale),
        quantity=quantity,
        value=_value(cells, quantity),
    )


def _engine(cells: Mapping[str, str], note: str) -> str:
    """Name of the engine; of releases that worked in another way, the name of that way."""
    spelling = cells.get("engine", "")
    if not spelling:
        raise Skipped("engine not given")
    engine, version = named("engine", spelling), cells.get("engine_version", "")
    if engine == "tensorrt-llm" and re.match(r"v?0\.[0-8]($|\D)", version) and "nim" not in spelling.lower():
        return "tensorrt-llm-session"
    if engine == "vllm" and (version.startswith("2023") or re.match(r"v?0\.[12]($|\D)", version)):
        return "vllm-2023"
    if engine == "vllm" and "eager" in note.lower():
        return "vllm-eager"
    try:
        group("engine", engine)
    except InputError:
        raise Skipped(f"engine {spelling}: known are {', '.join(engines())}") from None
    return engine


def _format(cells: Mapping[str, str], column: str, kind: str) -> str:
    written = cells.get(column, "")
    return named(kind, written) if written else ""


def _load(cells: Mapping[str, str], quantity: str) -> tuple[str, float]:
    """Regime and concurrency; a row that says nothing of its regime has the one of its concurrency."""
    written = cells["batch_or_concurrency"]
    regime = named("regime", cells.get("regime", ""))
    concurrency = float(whole.parse("batch_or_concurrency", written)) if re.fullmatch(r"\d+", written) else np.inf
    if concurrency == np.inf and written.lower() not in ("max", "offline"):
        raise Skipped(f"concurrency {written or 'not given'}: a number, max or offline")
    if quantity in ("ttft_s", "prefill_tokens_per_s") and concurrency == 1:
        return "prefill", concurrency
    if concurrency == 1:
        return "single_stream", concurrency
    return ("max_load" if concurrency == np.inf or regime == "max_load" else "batching"), concurrency


def _whole(cells: Mapping[str, str], column: str) -> int | None:
    return int(whole.parse(column, cells[column])) if cells.get(column) else None


def _tokens(cells: Mapping[str, str], column: str, scale: float) -> float | None:
    return scale * positive.parse(column, cells[column]) if cells.get(column) not in (None, "", "0") else None


def _value(cells: Mapping[str, str], quantity: str) -> float:
    value, unit = positive.parse("value", cells["value"]), cells.get("unit", "").lower()
    if quantity.endswith("_s") and quantity != "prefill_tokens_per_s":
        if unit not in SECONDS_PER:
            raise InputError("unit", unit, "s, ms or us")
        return value * SECONDS_PER[unit]
    if unit not in RATES:
        raise InputError("unit", unit, "tok/s or tok/s/GPU")
    return value
