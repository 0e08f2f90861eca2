"""Sweeps: nodes and cost of many candidates under many budgets and rates, piece by piece, here or on a cluster.

A piece is one candidate under some budgets and all rates. It needs nothing but itself, so that the same function
runs in a loop, in a pool of processes, or on the workers of a Dask cluster; what comes back is a summary.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.inputs import InputError, not_negative, positive
from analysis.model import queueing
from analysis.model.capacity import Shape, check
from analysis.reference.specs import Decoder, Workload
from analysis.units import SECONDS_PER_HOUR, TOKENS_PER_MTOK

#: Scenarios of a piece: their arrays stay in the cache of a core.
PIECE = 65_536
#: Pieces that wait for a cluster at a time; more would hold more results than a summary needs.
WAITING = 64


class Candidate(NamedTuple):
    """A way to serve: a shape on a node of a price, and a decoder. The name is how results call it."""

    name: str
    shape: Shape
    decoder: Decoder
    price_usd_per_node_hour: float


@dataclass(frozen=True)
class Grid:
    """What every candidate is asked: requests of one kind, and all pairs of a budget and a rate.

    Parameters
    ----------
    workload : Workload
        Tokens, percentile, metric, overhead and variation; its own rate and budget are not used.
    budgets_s : sequence of float
        [s]
    rates_req_per_s : sequence of float
        [request/s]
    """

    workload: Workload
    budgets_s: Sequence[float]
    rates_req_per_s: Sequence[float]

    def __post_init__(self) -> None:
        for name in ("budgets_s", "rates_req_per_s"):
            if not len(getattr(self, name)):
                raise InputError(name, None, "at least one number")
            positive(name, getattr(self, name))
        check(replace(self.workload, rate_req_per_s=1.0, budget_s=1.0))

    def __len__(self) -> int:
        return len(self.budgets_s) * len(self.rates_req_per_s)


class Piece(NamedTuple):
    """Answers for one candidate: a row for each budget from ``first`` on, a column for each rate.

    ``nodes`` is 0 where no number of nodes keeps the budget; ``usd_per_hour`` and ``usd_per_mtok`` are infinite there.
    """

    candidate: str
    first: int
    nodes: NDArray[np.float64]
    usd_per_hour: NDArray[np.float64]
    usd_per_mtok: NDArray[np.float64]


class Pool(Protocol):
    """Anything that runs a function elsewhere: a Dask client, or an executor of `concurrent.futures`."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Return a future."""


Found = TypeVar("Found")


def candidates(
    shapes: Iterable[tuple[str, Shape, float]], decoders: Iterable[tuple[str, Decoder]]
) -> Iterator[Candidate]:
    """Pair each shape (with its name and the price of its node) with each decoder (with its name).

    Examples
    --------
    >>> pairs = candidates([("h100 tp8", "a shape", 33.0)], [("ar", Decoder.autoregressive())])
    >>> [candidate.name for candidate in pairs]
    ['h100 tp8, ar']
    """
    for (shape_name, shape, price), (decoder_name, decoder) in product(shapes, decoders):
        yield Candidate(f"{shape_name}, {decoder_name}", shape, decoder, price)


def piece(candidate: Candidate, grid: Grid, first: int, last: int) -> Piece:
    """Count nodes and cost of one candidate under the budgets from one to before another, and all rates.

    Parameters
    ----------
    candidate : Candidate
    grid : Grid
    first, last : int
        Budgets, by their place.

    Returns
    -------
    Piece

    Raises
    ------
    InputError
        If the model can't be split as the shape says.

    Notes
    -----
    The closed form of `analysis.model.capacity.fleet`, without the day, spares and goodput: the cost is that of
    every answer, late ones included. Percentiles outside the domain of the closed form are extrapolated.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision, Replica
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Shape(Replica(shipped("llama-3.1-70b").architecture, Precision.of("fp8"), h100, gpus=8), 1, slots=256)
    >>> grid = Grid(Workload(1.0, 1500.0, 300.0, 1.0), [0.5, 1.0, 2.0], [5.0, 50.0])
    >>> piece(Candidate("70b", eight, Decoder.autoregressive(), 33.0), grid, 0, 3).nodes.tolist()
    [[0.0, 0.0], [1.0, 7.0], [1.0, 2.0]]
    """
    work, shape = grid.workload, candidate.shape
    service = shape.service(candidate.decoder, work)
    outside = 0.0 if work.metric == "tpot" else work.overhead_s
    budgets, rates = np.asarray(grid.budgets_s[first:last], float) - outside, np.asarray(grid.rates_req_per_s, float)
    limit = shape.replica.architecture.max_context
    fits = limit is None or work.input_tokens + work.output_tokens <= limit
    possible = (budgets > float(service.floor_s(work.metric))) & fits
    of_one = np.zeros(len(budgets))
    if possible.any():
        of_one[possible] = shape.copies * queueing.rate_within_budget(
            service, budgets[possible], percentile=work.percentile, metric=work.metric, cv=work.cv
        )
    with np.errstate(divide="ignore"):
        nodes = np.ceil(rates / of_one[:, None] * (1 - 1e-9))
    feasible = np.isfinite(nodes)
    usd_per_hour = np.where(feasible, nodes * candidate.price_usd_per_node_hour, np.inf)
    usd_per_mtok = usd_per_hour * (TOKENS_PER_MTOK / SECONDS_PER_HOUR / work.output_tokens) / rates
    return Piece(candidate.name, first, np.where(feasible, nodes, 0.0), usd_per_hour, usd_per_mtok)


def _summary(summarise: Callable[[Piece], Found], candidate: Candidate, grid: Grid, first: int, last: int) -> Found:
    return summarise(piece(candidate, grid, first, last))


def sweep(
    of: Iterable[Candidate],
    grid: Grid,
    *,
    summarise: Callable[[Piece], Found],
    pool: Pool | None = None,
    piece_size: int = PIECE,
) -> Iterator[Found]:
    """Ask every candidate everything, and hand back one summary for each piece, in order.

    Parameters
    ----------
    of : iterable of Candidate
        Read as it is needed.
    grid : Grid
    summarise : callable
        What to keep of a piece; runs where the piece was made.
    pool : Pool, optional
        A Dask client or an executor of processes; without one the pieces are made here, one after the other.
    piece_size : int
        Scenarios of a piece, about; at least one budget with all its rates. [1]

    Yields
    ------
    object
        Summaries. Memory holds one piece here, or as many summaries as wait for a cluster.

    Raises
    ------
    InputError
        If a candidate or the grid is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision, Replica
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Shape(Replica(shipped("llama-3.1-8b").architecture, Precision.of("fp8"), h100), 8, slots=256)
    >>> ways = candidates([("8b", one, 33.0)], [("ar", Decoder.autoregressive())])
    >>> grid = Grid(Workload(1.0, 1500.0, 300.0, 1.0), np.linspace(0.2, 2, 10), np.linspace(1, 100, 100))
    >>> sum(sweep(ways, grid, summarise=feasible_count))
    700
    """
    budgets = max(1, int(positive("piece_size", piece_size)) // len(grid.rates_req_per_s))
    work = (
        (summarise, candidate, grid, first, min(first + budgets, len(grid.budgets_s)))
        for candidate in of
        for first in range(0, len(grid.budgets_s), budgets)
    )
    if pool is None:
        for arguments in work:
            yield _summary(*arguments)
        return
    waiting: deque[Any] = deque()
    for arguments in work:
        waiting.append(pool.submit(_summary, *arguments))
        if len(waiting) >= WAITING:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def feasible_count(found: Piece) -> int:
    """Count the scenarios of a piece that some number of nodes serves."""
    return int((found.nodes > 0).sum())


def whole(found: Piece) -> Piece:
    """Keep a piece as it is."""
    return found


def cheapest(of: Iterable[Candidate], grid: Grid, *, pool: Pool | None = None, piece_size: int = PIECE) -> pd.DataFrame:
    """Find the cheapest candidate for each budget and rate.

    Parameters
    ----------
    of, grid, pool, piece_size
        As in `sweep`.

    Returns
    -------
    DataFrame
        One row for each budget and rate: ``budget_s, rate_req_per_s, candidate, nodes, usd_per_hour, usd_per_mtok``;
        the candidate is "infeasible" where none keeps the budget. Of equal costs the first candidate counts.

    Raises
    ------
    InputError
        If a candidate or the grid is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision, Replica
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Shape(Replica(shipped("llama-3.1-8b").architecture, Precision.of("fp8"), h100), 8, slots=256)
    >>> ways = candidates([("8b", one, 33.0)], [("ar", Decoder.autoregressive())])
    >>> found = cheapest(ways, Grid(Workload(1.0, 1500.0, 300.0, 1.0), [0.1, 5.0], [10.0]))
    >>> found["candidate"].tolist(), found["nodes"].tolist()
    (['infeasible', '8b, ar'], [0.0, 1.0])
    """
    shape = (len(grid.budgets_s), len(grid.rates_req_per_s))
    cost, nodes, winner = np.full(shape, np.inf), np.zeros(shape), np.full(shape, -1, np.int32)
    names: list[str] = []
    for found in sweep(of, grid, summarise=whole, pool=pool, piece_size=piece_size):
        if found.candidate not in names[-1:]:
            names.append(found.candidate)
        rows = slice(found.first, found.first + len(found.nodes))
        better = found.usd_per_hour < cost[rows]
        cost[rows] = np.where(better, found.usd_per_hour, cost[rows])
        nodes[rows] = np.where(better, found.nodes, nodes[rows])
        winner[rows] = np.where(better, len(names) - 1, winner[rows])
    budgets, rates = (axis.ravel() for axis in np.meshgrid(grid.budgets_s, grid.rates_req_per_s, indexing="ij"))
    hourly = not_negative("rates_req_per_s", rates) * SECONDS_PER_HOUR * grid.workload.output_tokens / TOKENS_PER_MTOK
    return pd.DataFrame(
        {
            "budget_s": budgets,
            "rate_req_per_s": rates,
            "candidate": np.array([*names, "infeasible"])[winner.ravel()],
            "nodes": nodes.ravel(),
            "usd_per_hour": cost.ravel(),
            "usd_per_mtok": cost.ravel() / hourly,
        }
    )
