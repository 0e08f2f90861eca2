"""Records of what the tables hold: frozen, in the base units of the model, with what each number rests on.

Fields with a number may be arrays of one shape; functions of `analysis.model` broadcast over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from analysis.inputs import InputError

#: Formats that a matmul unit computes in. Weights may be stored in a narrower one.
COMPUTE_FORMATS = ("tf32", "bf16", "fp8", "fp4", "int8")

#: What a model at an API is, by rules that data/README.md states.
MODEL_CLASSES = ("commodity", "small", "frontier", "reasoning", "diffusion")


@dataclass(frozen=True)
class Accelerator:
    """One accelerator of one form factor.

    Parameters
    ----------
    name : str
        Slug with the form factor.
    peak_flop_per_s : mapping of str to float or array
        Dense peak by compute format; a format without hardware of its own is missing. [FLOP/s]
    mem_capacity_byte : float or array
        What the driver reports where somebody read it, else what the data sheet prints. [byte]
    mem_bw_byte_per_s : float or array
        Memory bandwidth of the data sheet. [byte/s]
    link_byte_per_s : float, array or None
        Rate to the other accelerators of the node in one direction, None if not known. [byte/s]
    tdp_w : float, array or None
        Power limit of the part, None if not published. [W]
    status : mapping of str to str
        Quantity of the table to the status of its row.
    """

    name: str
    peak_flop_per_s: Mapping[str, Any]
    mem_capacity_byte: Any
    mem_bw_byte_per_s: Any
    link_byte_per_s: Any
    tdp_w: Any
    status: Mapping[str, str]

    @property
    def assumed(self) -> frozenset[str]:
        """Quantities that no second source bears out."""
        return frozenset(quantity for quantity, status in self.status.items() if status == "assumed")

    def peak(self, number_format: str) -> Any:
        """Return the dense peak in one compute format. [FLOP/s].

        Raises
        ------
        InputError
            If the part has no units for that format; the message lists those it has.
        """
        if number_format not in self.peak_flop_per_s:
            has = " or ".join(self.peak_flop_per_s)
            raise InputError("number_format", number_format, f"one that {self.name} computes in: {has}")
        return self.peak_flop_per_s[number_format]


@dataclass(frozen=True)
class Price:
    """One price as its row has it; ``low`` and ``high`` are None where the source gives no range."""

    value: float
    low: float | None
    high: float | None
    unit: str
    as_of: date
    source: str
    locator: str
    status: str
    note: str


@dataclass(frozen=True)
class Node:
    """A whole node: accelerators of one kind, and its prices by region and term. [USD/node_hour]."""

    provider: str
    instance: str
    accelerator: Accelerator
    accelerator_count: int
    prices: Mapping[tuple[str, str], Price]

    def price(self, *, term: str, region: str | None = None) -> Price:
        """Return the price of one term, in one region.

        Raises
        ------
        InputError
            If no such price is known on that day, or several regions have one and none was named.
        """
        of_term = {place: price for (place, its_term), price in self.prices.items() if its_term == term}
        if not of_term:
            terms = ", ".join(sorted({its_term for _, its_term in self.prices})) or "none"
            raise InputError("term", term, f"a term with a price for {self.instance} on that day: {terms}")
        if region is None and len(of_term) == 1:
            return next(iter(of_term.values()))
        if region not in of_term:
            places = ", ".join(sorted(of_term))
            raise InputError("region", region, f"one with a price for {self.instance} {term}: {places}")
        return of_term[region]


@dataclass(frozen=True)
class ApiModel:
    """What kind of model an API sells; ``open_weights`` is None where nothing was found."""

    model: str
    model_class: str
    open_weights: bool | None
    source: str
    locator: str
    note: str


@dataclass(frozen=True)
class Host:
    """One computer, measured: the two roofs, and the time of a matrix times batches of vectors.

    Parameters
    ----------
    machine : str
        Slug of the processor.
    threads : int
        Threads that the kernels used.
    inputs, outputs : int
        Columns and rows of the matrix; it is larger than the caches. [1]
    bytes_per_weight : float
        Size of one of its numbers, and of those that go in and come out. [byte]
    copy_byte_per_s, read_byte_per_s : float
        Bytes read plus written by a copy; bytes read by a sum of squares or a matmul. [byte/s]
    peak_flop_per_s : float
        Rate of a large square matmul in the same number format. [FLOP/s]
    seconds_by_batch : mapping of int to float
        Time of the matrix times that many vectors. [s]
    """

    machine: str
    threads: int
    inputs: int
    outputs: int
    bytes_per_weight: float
    copy_byte_per_s: float
    read_byte_per_s: float
    peak_flop_per_s: float
    seconds_by_batch: Mapping[int, float]

    @property
    def bandwidth_byte_per_s(self) -> float:
        """Memory roof: the most that either kernel moved. [byte/s]."""
        return max(self.copy_byte_per_s, self.read_byte_per_s)


@dataclass(frozen=True)
class RequestMix:
    """What one request is made of. [token/request].

    Parameters
    ----------
    input_tokens : float or array
        Tokens of the prompt, cached ones included.
    output_tokens : float or array
        Tokens of the answer.
    cached_tokens : float or array
        Tokens of the prompt that a cache already holds, at most ``input_tokens``.
    thinking_tokens : float or array
        Tokens that a reasoning model writes before the answer, hidden and billed as output.
    """

    input_tokens: Any
    output_tokens: Any
    cached_tokens: Any = 0.0
    thinking_tokens: Any = 0.0


@dataclass(frozen=True)
class Tariff:
    """What an API asks, by kind of token; without a cached price cached tokens cost what input costs. [USD/Mtok]."""

    input_usd_per_mtok: Any
    output_usd_per_mtok: Any
    cached_usd_per_mtok: Any = None


@dataclass(frozen=True)
class Counted:
    """A rate or a price of tokens, with the kind of token that it counts.

    Parameters
    ----------
    value : float or array
        Tokens per second, or USD per million tokens.
    kind : {"output", "input", "total", "weighted"}
        Which tokens. Two values may be set against each other only if they count the same.
    """

    value: Any
    kind: str


@dataclass(frozen=True)
class Ownership:
    """What it takes to own one node.

    Parameters
    ----------
    purchase_usd : float or array
        Price of the whole node. [USD]
    power_kw : float or array
        Power limit of the node, for which space is contracted. [kW]
    power_share : float or array
        Average draw over the limit, 0 < share <= 1. [1]
    pue : float or array
        Power that the hall takes over the power that the node takes, 1 or above. [1]
    electricity_usd_per_kwh : float or array
        Price of electricity. [USD/kWh]
    colocation_usd_per_kw_month : float or array
        Rent of the space, by contracted power. [USD/kW_month]
    life_years : float or array
        Years until the node is sold or scrapped. [year]
    residual_share : float or array
        What it then fetches, as a share of the purchase price, 0 to 1. [1]
    interest_per_year : float or array
        Cost of capital. [1/year]
    upkeep_per_year : float or array
        Repairs and support in a year, as a share of the purchase price. [1/year]
    staff_usd_per_year : float or array
        What the people cost who run the node. [USD/year]
    """

    purchase_usd: Any
    power_kw: Any
    power_share: Any
    pue: Any
    electricity_usd_per_kwh: Any
    colocation_usd_per_kw_month: Any
    life_years: Any
    residual_share: Any
    interest_per_year: Any
    upkeep_per_year: Any
    staff_usd_per_year: Any = 0.0
