"""The answer that cannot wait, by simulation: nodes of each way to serve, bursts, long prompts, real arrivals.

A way is a model with a decoder; it takes the split of the node and the decoder's settings that need the fewest
nodes by the closed form, and the nodes are then counted by simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from analysis.evidence.claims.rivals import ACCEPTANCE, DRAFT_COST
from analysis.evidence.fleets import shapes
from analysis.inputs import InputError
from analysis.model import capacity, queueing
from analysis.model.capacity import Shape
from analysis.model.simulation import Requests, Server, Traffic, capacity_by_simulation, serve, serve_runs
from analysis.model.simulation.records import SLOTS
from analysis.reference import traces
from analysis.reference.specs import Decoder, Workload

GPU = "h100-sxm"
#: Requests and runs behind one count of nodes: 8,000 counted answers, 400 of them beyond the 95th percentile.
REQUESTS, RUNS = 3_000, 3
#: A run that judges the closed form lasts so many mean latencies at least.
MANY_STAYS = 40
#: Draft lengths that speculation chooses from.
DRAFTS = (1, 2, 3, 5)
#: Tokens of a diffusion block, and tokens that a pass keeps.
BLOCK_TOKENS, KEPT = 32, (2, 4, 8)
PLAIN = Decoder.autoregressive()


@dataclass(frozen=True)
class Way:
    """A way to serve: its name, the splits of a node that it may take, and settings of its decoder."""

    name: str
    shapes: tuple[Shape, ...]
    decoders: tuple[Decoder, ...]


@dataclass(frozen=True)
class Choice:
    """The split and the setting that a way takes."""

    shape: Shape
    decoder: Decoder

    @property
    def server(self) -> Server:
        """One replica for the simulation."""
        slots = int(min(self.shape.slots, SLOTS))
        return Server(self.shape.replica, self.decoder, self.shape.efficiency, slots=slots, rule=self.shape.rule)


def ways(*, as_of: date, kept: Sequence[int] = KEPT) -> list[Way]:
    """List the ways to serve that the article speaks of, on nodes of eight H100.

    Parameters
    ----------
    as_of : date
        The day of the data sheet.
    kept : sequence of int
        Tokens that a pass of diffusion keeps. [token]

    Returns
    -------
    list of Way
        Large and small, plain, with drafts (acceptance and cost in the middle of their ranges), sparse, and by
        diffusion at equal size and, as the article compares, at a ninth of it.

    Examples
    --------
    >>> from analysis.reference.tables import SNAPSHOT
    >>> [way.name for way in ways(as_of=SNAPSHOT, kept=(4,))]
    ['70B plain', '70B drafts', '120B sparse', '8B plain', '70B diffusion, 4 a pass', '8B diffusion, 4 a pass']
    """
    large, small = (tuple(shapes(m, GPU, as_of=as_of, weights="fp8")) for m in ("llama-3.1-70b", "llama-3.1-8b"))
    sparse = tuple(shapes("gpt-oss-120b", GPU, as_of=as_of))
    drafts = tuple(
        Decoder.speculative(acceptance=ACCEPTANCE.central, draft_length=g, draft_cost=DRAFT_COST.central)
        for g in DRAFTS
    )
    blocks = {n: Decoder.diffusion(block_tokens=BLOCK_TOKENS, passes=BLOCK_TOKENS / n) for n in kept}
    return [
        Way("70B plain", large, (PLAIN,)),
        Way("70B drafts", large, drafts),
        Way("120B sparse", sparse, (PLAIN,)),
        Way("8B plain", small, (PLAIN,)),
        *(Way(f"70B diffusion, {n} a pass", large, (decoder,)) for n, decoder in blocks.items()),
        *(Way(f"8B diffusion, {n} a pass", small, (decoder,)) for n, decoder in blocks.items()),
    ]


def choose(way: Way, workload: Workload) -> tuple[Choice, float]:
    """Choose the split and the setting that take the most requests per node within the budget, by the closed form.

    Parameters
    ----------
    way : Way
    workload : Workload
        Its rate does not matter.

    Returns
    -------
    Choice, float
        And that rate of one node, 0 where none keeps the budget: then the choice has the lowest floor. [request/s]

    Raises
    ------
    InputError
        If the workload is outside its domain, or no split can hold the model.
    """
    capacity.check(workload)
    outside = 0.0 if workload.metric == "tpot" else workload.overhead_s
    found: list[tuple[float, float, Choice]] = []
    for decoder, shape in product(way.decoders, way.shapes):
        service = shape.service(decoder, workload)
        budget, floor_s = workload.budget_s - outside, float(service.floor_s(workload.metric))
        rate = 0.0
        if service.room >= 1 and floor_s < budget:
            rate = shape.copies * float(
                queueing.rate_within_budget(
                    service, budget, percentile=workload.percentile, metric=workload.metric, cv=workload.cv
                )
            )
        found.append((-rate, floor_s if service.room >= 1 else np.inf, Choice(shape, decoder)))
    rate, _, choice = min(found, key=lambda each: each[:2])
    return choice, -rate


def count(
    way: str, choice: Choice, workload: Workload, *, traffic: Traffic | None = None, seed: int = 0
) -> dict[str, Any]:
    """Count the nodes of one way by simulation.

    Parameters
    ----------
    way : str
        Its name.
    choice : Choice
    workload : Workload
    traffic : Traffic, optional
        Arrivals and lengths; those of the workload if left out.
    seed : int

    Returns
    -------
    dict
        ``way, gpus_per_replica, nodes, nodes_low, nodes_high, floor_s, load, busy``; NaN where the budget is
        infeasible.

    Raises
    ------
    InputError
        If the workload is outside its domain.

    Examples
    --------
    >>> from analysis.reference.tables import SNAPSHOT
    >>> work = Workload(20.0, 1500.0, 300.0, budget_s=4.0)
    >>> small = ways(as_of=SNAPSHOT, kept=(4,))[3]
    >>> row = count(small.name, choose(small, work)[0], work)
    >>> row["way"], row["nodes"], row["busy"] > row["load"]
    ('8B plain', 1.0, True)
    """
    drawn = traffic or Traffic(
        workload.input_tokens, workload.output_tokens, workload.cached_tokens, arrival_cv=workload.cv
    )
    row: dict[str, Any] = {"way": way, "gpus_per_replica": choice.shape.replica.gpus}
    nothing = dict.fromkeys(("nodes", "nodes_low", "nodes_high", "load", "busy"), np.nan)
    if choice.shape.service(choice.decoder, workload).room < 1:
        return row | nothing | {"floor_s": np.nan}
    found = capacity_by_simulation(
        choice.server,
        drawn,
        rate_req_per_s=workload.rate_req_per_s,
        budget_s=workload.budget_s,
        percentile=workload.percentile,
        replicas_per_node=choice.shape.copies,
        metric=workload.metric,
        overhead_s=workload.overhead_s,
        runs=RUNS,
        requests=REQUESTS,
        largest=False,
        seed=seed,
    )
    if found.nodes is None or found.busy is None:
        return row | nothing | {"floor_s": found.latency_floor_s}
    return row | {
        "nodes": float(found.nodes),
        "nodes_low": float(found.nodes_low or 0),
        "nodes_high": float(found.nodes_high or 0),
        "load": found.load,
        "busy": found.busy.value,
        "floor_s": found.latency_floor_s,
    }


def by_workload(of: Iterable[Way], workloads: Mapping[float, Workload], *, name: str, seed: int = 0) -> pd.DataFrame:
    """Count the nodes of several ways for several workloads, told apart by one number.

    Parameters
    ----------
    of : iterable of Way
    workloads : mapping of float to Workload
    name : str
        What the number is; becomes a column.
    seed : int

    Returns
    -------
    DataFrame
        Columns of `count`, the number, and ``closed_form_nodes``.

    Raises
    ------
    InputError
        If a workload is outside its domain.
    """
    rows = []
    for way in of:
        chosen: dict[Workload, tuple[Choice, float]] = {}
        for value, workload in workloads.items():
            # which split is best does not depend on the rate
            kind = replace(workload, rate_req_per_s=1.0)
            if kind not in chosen:
                chosen[kind] = choose(way, kind)
            choice, of_one = chosen[kind]
            closed = np.ceil(workload.rate_req_per_s / of_one) if of_one > 0 else np.nan
            row = count(way.name, choice, workload, seed=seed)
            rows.append({name: value} | row | {"closed_form_nodes": closed})
    return pd.DataFrame(rows)


def by_rate(of: Iterable[Way], workload: Workload, rates_req_per_s: Sequence[float], *, seed: int = 0) -> pd.DataFrame:
    """Nodes by arrival rate: a row for each way and rate (column ``rate_req_per_s``); otherwise as `by_workload`."""
    asked = {rate: replace(workload, rate_req_per_s=rate) for rate in rates_req_per_s}
    return by_workload(of, asked, name="rate_req_per_s", seed=seed)


def by_budget(of: Iterable[Way], workload: Workload, budgets_s: Sequence[float], *, seed: int = 0) -> pd.DataFrame:
    """Nodes by budget: a row for each way and budget (column ``budget_s``); otherwise as `by_workload`."""
    asked = {budget: replace(workload, budget_s=budget) for budget in budgets_s}
    return by_workload(of, asked, name="budget_s", seed=seed)


def by_burst(of: Iterable[Way], workload: Workload, cvs: Sequence[float], *, seed: int = 0) -> pd.DataFrame:
    """Nodes by variation of the gaps: a row for each way and variation (column ``cv``); otherwise as `by_workload`."""
    return by_workload(of, {cv: replace(workload, cv=cv) for cv in cvs}, name="cv", seed=seed)


def by_prompt(of: Iterable[Way], workload: Workload, prompts: Sequence[float], *, seed: int = 0) -> pd.DataFrame:
    """Nodes by prompt: a row for each way and length (column ``input_tokens``); otherwise as `by_workload`."""
    asked = {tokens: replace(workload, input_tokens=tokens) for tokens in prompts}
    return by_workload(of, asked, name="input_tokens", seed=seed)


# --- Real arrivals -----------------------------------------------------------------------------


def replayed(of: Iterable[Way], names: Sequence[str], *, budget_s: float, nodes: int = 1) -> pd.DataFrame:
    """Replay real arrivals, with their lengths, on some nodes of each way.

    Parameters
    ----------
    of : iterable of Way
    names : sequence of str
        Shipped traces.
    budget_s : float
        Time for the whole answer, which the splits and settings are chosen for. [s]
    nodes : int
        [1]

    Returns
    -------
    DataFrame
        ``trace, way, gpus_per_replica, within, p50_s, p95_s, busy``; NaN where a request does not fit.

    Raises
    ------
    InputError
        If a trace is unknown.

    Examples
    --------
    >>> from analysis.reference.tables import SNAPSHOT
    >>> found = replayed(ways(as_of=SNAPSHOT, kept=(4,))[-1:], ["azure-2023-code"], budget_s=1.0)
    >>> found["within"].round(2).tolist()
    [1.0]
    """
    rows = []
    for name in names:
        trace = traces.shipped(name)
        requests = Requests(trace.arrival_s, trace.input_tokens, trace.output_tokens, trace.cached_tokens)
        mean = Workload(
            trace.rate_req_per_s / nodes,
            float(trace.input_tokens.mean()),
            float(trace.output_tokens.mean()),
            budget_s=budget_s,
            cached_tokens=float(trace.cached_tokens.mean()),
        )
        for way in of:
            choice, _ = choose(way, mean)
            row: dict[str, Any] = {"trace": name, "way": way.name, "gpus_per_replica": choice.shape.replica.gpus}
            try:
                run = serve(choice.server, requests, replicas=nodes * choice.shape.copies)
            except InputError:  # the longest request is longer than the memory
                rows.append(row | dict.fromkeys(("within", "p50_s", "p95_s", "busy"), np.nan))
                continue
            percentiles = {f"p{q}_s": run.percentile_s(q) for q in (50, 95)}
            rows.append(row | {"within": run.goodput(budget_s)} | percentiles | {"busy": run.busy})
    return pd.DataFrame(rows)


def day(
    choice: Choice, client: str, *, input_tokens: int, output_tokens: int, nodes: int, seed: int = 0
) -> pd.DataFrame:
    """Serve a day with the rates of a real client, averaged over two weeks.

    Parameters
    ----------
    choice : Choice
    client : str
        Shipped rates.
    input_tokens, output_tokens : int
        Of each request. [token]
    nodes : int
        [1]
    seed : int

    Returns
    -------
    DataFrame
        By hour: ``hour, rate_req_per_s, mean_s, p95_s``.

    Raises
    ------
    InputError
        If there are no rates of that name.
    """
    rates = traces.shipped_windows(client).day()
    requests = Traffic(input_tokens, output_tokens, profile=rates).draw(
        rate_req_per_s=float(rates.mean()), count=int(rates.mean() * 86_400), seed=seed
    )
    run = serve(choice.server, requests, replicas=nodes * choice.shape.copies, seed=seed)
    times = pd.DataFrame({"hour": (requests.arrival_s // 3600).astype(int) % 24, "s": run.times_s(counted=False)})
    by_hour = times.groupby("hour")["s"]
    found = pd.DataFrame(
        {"rate_req_per_s": by_hour.size() / 3600, "mean_s": by_hour.mean(), "p95_s": by_hour.quantile(0.95)}
    )
    return found.reset_index()


# --- The closed form, judged -------------------------------------------------------------------


def closed_form_errors(
    shape: Shape,
    *,
    prompts: Sequence[float],
    output_tokens: float,
    loads: Sequence[float],
    decoder: Decoder = PLAIN,
    requests: int = 10_000,
    runs: int = 3,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Compare the closed form with simulated replicas, over the share that the prompt has and the load.

    Parameters
    ----------
    shape : Shape
        One replica of it is served.
    prompts : sequence of float
        Input tokens; they set the share of the prompt. [token]
    output_tokens : float
        [token]
    loads : sequence of float
        Rate times what one more request costs, lambda c, at the empty replica. [1]
    decoder : Decoder
    requests : int
        Of each run at least; more where the run would last less than forty mean latencies. [1]
    runs, seed
        As in `analysis.model.simulation.serve_runs`.

    Returns
    -------
    DataFrame
        ``input_tokens, prompt_share, load, rate_req_per_s, mean_s, p95_s`` (simulated), ``mean_error, p95_error``
        (closed form over simulation, less one), ``in_domain``. Loads at or beyond the saturated rate are left out.

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.tables import SNAPSHOT
    >>> one = shapes("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT)[0]
    >>> found = closed_form_errors(one, prompts=[500], output_tokens=300, loads=[0.2], requests=2000)
    >>> bool(abs(found["mean_error"][0]) < 0.05), bool(found["in_domain"][0])
    (True, True)
    """
    server = Choice(shape, decoder).server
    rows = []
    for prompt in prompts:
        workload = Workload(1.0, float(prompt), float(output_tokens), budget_s=1.0)
        service = shape.service(decoder, workload)
        alone, pair = float(service.stay_s(1.0)), float(service.stay_s(2.0))
        excess = float(service.prompt_s(np.asarray(1.0)))
        for load in loads:
            rate = load / (pair - alone)
            if rate >= float(service.saturated_req_per_s):
                continue
            law = queueing.under_load(service, rate)
            # long enough for a steady state, whatever a request takes
            many = max(requests, int(np.ceil(MANY_STAYS * rate * float(law.latency_s))))
            served = serve_runs(
                server, Traffic(prompt, output_tokens), rate_req_per_s=rate, count=many, runs=runs, seed=seed
            )
            mean, p95 = served.mean_s().value, served.percentile_s(95).value
            rows.append(
                {
                    "input_tokens": float(prompt),
                    "prompt_share": excess / alone,
                    "load": load,
                    "rate_req_per_s": rate,
                    "mean_s": mean,
                    "p95_s": p95,
                    "mean_error": float(law.latency_s) / mean - 1,
                    "p95_error": float(law.quantile_s(95, anywhere=True)) / p95 - 1,
                    "in_domain": bool(law.in_domain),
                }
            )
    return pd.DataFrame(rows)
