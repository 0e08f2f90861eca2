"""What hardware and engines reach: names of things, measured all-reduces, and the fitted constants.

`efficiency` puts an `analysis.reference.specs.Efficiency` together from `data/derived/efficiency.csv`
and the measured all-reduces. Which constants enter for which GPU and engine is `recipe`: calibration
and use share it, so that what is fitted is what is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from analysis.inputs import InputError, not_negative
from analysis.reference.specs import Efficiency, MemoryRule, Replica
from analysis.reference.tables import DATA, all_rows, nearest, read_csv_strict
from analysis.units import BASE_UNITS_PER, BYTE_PER_GB

#: Cards in slots of PCIe 4.0 x16 reach each other at this rate in one direction. [byte/s]
SLOT_BYTE_PER_S = 32e9
#: A step of decoding sums messages of about this size: a hidden state of 8,192 in 16 bit. [byte]
MESSAGE_BYTE = "16384"
#: Context, graphs and workspace on each GPU; fitted rows at the limit of memory bear 3 GB out, not 0 or 6. [byte]
RESERVE_BYTE = 3 * BYTE_PER_GB
#: Requests that a server runs together at most, as the published benchmarks set it.
SLOTS = {"native": 2048, "session": 4096, "python": 1024, "early": 256, "compiled": 1, "portable": 1}
#: Classes whose memory rule takes a share of what the weights leave; the others a share of the card.
OF_THE_REST = frozenset({"native", "session"})
#: Whose all-reduce a class runs, where it was measured.
ALL_REDUCE_OF = {
    "native": ("tensorrt-llm", "graph"),
    "session": ("tensorrt-llm", "graph"),
    "python": ("vllm", "graph"),
    "early": ("vllm", "eager"),
    "compiled": ("nccl-torch", "graph"),
    "portable": ("nccl-torch", "graph"),
}
CONSTANT_COLUMNS = ("constant", "value", "low", "high", "unit", "rows")


# --- Names and groups --------------------------------------------------------------------------


@cache
def _groups() -> dict[tuple[str, str], str]:
    rows = read_csv_strict(DATA / "groups.csv", ("kind", "name", "group", "note"))
    return {(cells["kind"], cells["name"]): cells["group"] for cells in rows}


@cache
def _aliases() -> dict[tuple[str, str], str]:
    rows = read_csv_strict(DATA / "aliases.csv", ("kind", "spelling", "name"))
    return {(cells["kind"], cells["spelling"]): cells["name"] for cells in rows}


def named(kind: str, spelling: str) -> str:
    """Return the name that the tables use for a spelling of a GPU, model, engine, format or regime.

    Parameters
    ----------
    kind : str
        ``accelerator``, ``model``, ``engine``, ``weights``, ``kv`` or ``regime``.
    spelling : str
        As somebody wrote it; case and blanks around it do not matter.

    Returns
    -------
    str
        The name, or the spelling in lower case where no alias is known.

    Examples
    --------
    >>> named("accelerator", "H100-SXM-80GB"), named("engine", "NIM (TensorRT-LLM)"), named("model", "own-7b")
    ('h100-sxm', 'tensorrt-llm', 'own-7b')
    """
    word = " ".join(spelling.lower().split())
    return _aliases().get((kind, word), word)


def group(kind: str, name: str) -> str:
    """Return the family of an accelerator or the class of an engine.

    Raises
    ------
    InputError
        If the table has no such name; the message lists the nearest.

    Examples
    --------
    >>> group("accelerator", "h200-sxm"), group("engine", "sglang")
    ('hopper', 'python')
    """
    if (kind, name) not in _groups():
        known = [its for of, its in _groups() if of == kind]
        raise InputError(kind, name, f"one that constants were fitted for: {nearest(name, known)}")
    return _groups()[kind, name]


def engines() -> list[str]:
    """Names of the engines that have a class."""
    return sorted(name for kind, name in _groups() if kind == "engine")


def in_slots(accelerator: str) -> bool:
    """Whether the cards reach each other through their slots only."""
    return ("link", accelerator) in _groups()


# --- Measured all-reduces ----------------------------------------------------------------------


@cache
def _measured_all_reduces() -> Mapping[tuple[str, str, str], Mapping[int, float]]:
    rows = all_rows("collectives")
    rows = rows[rows["message_byte"] == MESSAGE_BYTE]
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in rows.to_dict("records"):
        of = found.setdefault((row["accelerator"], row["engine"], row["mode"]), {})
        of.setdefault(int(row["accelerators"]), row["value"] * BASE_UNITS_PER[row["unit"]])
    return found


def measured_all_reduce_s(accelerator: str, engine: str, *, gpus: int) -> float:
    """Latency of one small all-reduce, from measurements on this GPU or the nearest thing measured.

    Parameters
    ----------
    accelerator, engine : str
        Names of the tables.
    gpus : int
        GPUs that sum. [1]

    Returns
    -------
    float
        Seconds: of the engine's own all-reduce or that of its class, on this GPU, else on the H100 SXM. Where
        only another number of GPUs was measured, the growth of the H100's table is taken. [s]

    Examples
    --------
    >>> round(measured_all_reduce_s("h100-sxm", "tensorrt-llm", gpus=8) * 1e6, 2)
    3.56
    """
    tables = _measured_all_reduces()
    by_class, mode = ALL_REDUCE_OF[group("engine", engine)]
    if engine == "vllm-eager":
        mode = "eager"
    grown = tables["h100-sxm", "tensorrt-llm", "graph"]
    choices = [(part, who, mode) for part in (accelerator, "h100-sxm") for who in (engine, by_class)]
    found = next(tables[choice] for choice in choices if choice in tables)
    if gpus in found:
        return found[gpus]
    near = max(found)
    return found[near] * _growth(grown, gpus) / _growth(grown, near)


def _growth(measured: Mapping[int, float], gpus: int) -> float:
    """Latency among any number of GPUs: linear in the logarithm between and beyond those measured."""
    low, high = min(measured), max(measured)
    slope = (measured[high] - measured[low]) / math.log2(high / low)
    return measured[low] + slope * math.log2(gpus / low)


# --- Constants ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constant:
    """One fitted constant with the interval that the fitted rows leave open, and how many rows it is in."""

    value: float
    low: float
    high: float
    unit: str
    rows: int


@cache
def constants() -> Mapping[str, Constant]:
    """Read the shipped constants."""
    return load_constants(DATA / "derived" / "efficiency.csv")


def load_constants(path: Path) -> dict[str, Constant]:
    """Read a table of constants.

    Raises
    ------
    InputError
        If a number is malformed, negative, or outside its own interval.
    """
    found = {}
    for cells in read_csv_strict(path, CONSTANT_COLUMNS):
        place = f"{path.name} row {cells['row']}"
        value, low, high, rows = (
            not_negative.parse(f"{place}, column {name}", cells[name]) for name in ("value", "low", "high", "rows")
        )
        if not low <= value <= high:
            raise InputError(f"{place}, column value", cells["value"], f"a value from {low:g} to {high:g}")
        found[cells["constant"]] = Constant(value, low, high, cells["unit"], int(rows))
    return found


Recipe = Mapping[str, tuple[float, tuple[str, ...]]]


def recipe(replica: Replica, engine: str) -> Recipe:
    """Say of which constants each field of an `Efficiency` is the product, with a factor that is known.

    Parameters
    ----------
    replica : Replica
    engine : str
        A name of the tables.

    Returns
    -------
    mapping of str to (float, tuple of str)
        Field to known factor and names of constants; a field that is not there keeps its ideal value.

    Raises
    ------
    InputError
        If the GPU or the engine has no constants.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("fp8"), h100)
    >>> recipe(one, "vllm")["mfu"]
    (1.0, ('hopper.mfu', 'narrow.mfu', 'python.mfu'))
    """
    part, precision = replica.accelerator, replica.precision
    family, kind = group("accelerator", part.name), group("engine", engine)
    weight_only = precision.byte_per_weight < 1 and precision.compute == "bf16" and precision.weights != "mxfp4"
    # native formats narrower than 16 bit; where the GPU has no units for one, it computes in 16 bit
    narrow = precision.compute != "bf16" and precision.compute in part.peak_flop_per_s
    of_class = (f"{kind}.mfu",) if kind in ("python", "portable") else ()
    fields: dict[str, tuple[float, tuple[str, ...]]] = {
        "mbu": (1.0, (f"{family}.mbu", *(("four_bit.mbu",) if weight_only else ()))),
        "mfu": (1.0, (f"{family}.mfu", *(("narrow.mfu",) if narrow else ()), *of_class)),
        "attention_mfu": (1.0, (f"{family}.mfu", *of_class)),
        "expert_mfu": (1.0, ("experts.mfu",)),
        "expert_rows": (1.0, ("experts.rows",)),
        "layer_s": (1e-6, (f"{kind}.layer",)),
        "expert_layer_s": (1e-6, ("experts.layer",)),
        "prompt_layer_s": (1e-6, ("prompt.layer",)),
        "activation_share": (1.0, ("activations.share",)),
        "overlap": (1.0, ("phase.overlap",)),
    }
    if kind in ("native", "session", "python"):
        fields["sequence_s"] = (1e-6, (f"{kind}.sequence",))
    if replica.gpus > 1:
        slots = in_slots(part.name) or part.link_byte_per_s is None
        rate = SLOT_BYTE_PER_S if slots else float(part.link_byte_per_s)
        fields["link_byte_per_s"] = (rate, ("slot.share" if slots else "nvlink.share",))
        if slots:
            who = "early" if kind == "early" else "slot"
            fields["all_reduce_s"] = (1e-6 * math.log2(replica.gpus), (f"{who}.all_reduce",))
        else:
            fields["all_reduce_s"] = (measured_all_reduce_s(part.name, engine, gpus=replica.gpus), ())
    return fields


def put_together(of: Recipe, values: Mapping[str, float]) -> Efficiency:
    """Multiply out a recipe."""
    for name in (name for _, names in of.values() for name in names if name not in values):
        known = ", ".join(sorted({each.partition(".")[0] for each in values if each.endswith(".mfu")}))
        raise InputError("groups.csv, column group", name.partition(".")[0], f"a group with constants, such as {known}")
    return Efficiency(
        **{field: factor * math.prod(values[name] for name in names) for field, (factor, names) in of.items()}
    )


def efficiency(replica: Replica, engine: str = "vllm") -> Efficiency:
    """Return the calibrated efficiency of a replica under an engine.

    Parameters
    ----------
    replica : Replica
    engine : str
        A name of the tables (`engines` lists them).

    Returns
    -------
    Efficiency
        Built from the shipped constants and measured all-reduces. A fit, not a mechanism: constants trade
        against each other, so none of them is a measurement of its own.

    Raises
    ------
    InputError
        If the GPU or the engine has no constants.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("fp8"), h100)
    >>> 0.5 < efficiency(one).mbu < 1
    True
    """
    return put_together(recipe(replica, engine), {name: c.value for name, c in constants().items()})


def memory_rule(engine: str) -> MemoryRule:
    """How an engine divides the memory of a GPU: nine tenths, of the card or of what the weights leave."""
    return MemoryRule(0.9, group("engine", engine) in OF_THE_REST, RESERVE_BYTE)


def slots(engine: str) -> int:
    """Return how many requests an engine runs together at most. [1]."""
    return SLOTS[group("engine", engine)]


def names_in(recipes: Iterable[Recipe]) -> list[str]:
    """Names of all constants in some recipes, sorted."""
    return sorted({name for of in recipes for _, names in of.values() for name in names})
