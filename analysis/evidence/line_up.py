"""Which decoder wins on named workloads, by how much, and which number would overturn it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.evidence.claims.rivals import CANVAS_TOKENS, DRAFT_COST, line_up
from analysis.model.decoders import cycle, largest_batch
from analysis.model.head_to_head import (
    Rival,
    acceptance_to_win,
    best,
    configuration,
    crossover,
    diffusion,
    tokens_per_pass_to_win,
)
from analysis.reference.specs import Decoder, Efficiency, MemoryRule, Replica


class Workload(NamedTuple):
    """Requests of one kind: how many at once (endless: as many as fit), prompt and answer. [1, token, token]."""

    name: str
    batch: float
    input_tokens: float
    output_tokens: float


#: From a lone question to a queue that never runs dry.
WORKLOADS = (
    Workload("a question, alone", 1, 500, 300),
    Workload("a document, alone", 1, 8000, 300),
    Workload("four agents", 4, 4000, 200),
    Workload("sixteen documents at once", 16, 8000, 300),
    Workload("a chat service, 64 at once", 64, 1000, 500),
    Workload("long answers, 64 at once", 64, 500, 4000),
    Workload("the overnight queue", np.inf, 8000, 300),
)


def canvases(passes: Sequence[float]) -> list[Rival]:
    """List diffusion over a canvas of 256 tokens, a rival for each number of passes, the committing one included.

    Examples
    --------
    >>> [rival.name for rival in canvases([17.0])]
    ['diffusion, canvas of 17 passes']
    """
    return [
        diffusion(
            tokens_per_pass=CANVAS_TOKENS / each,
            block_tokens=(CANVAS_TOKENS,),
            name=f"diffusion, canvas of {each:.0f} passes",
        )
        for each in passes
    ]


def decisions(
    replica: Replica,
    *,
    efficiency: Efficiency,
    rule: MemoryRule,
    slots: float,
    canvas_passes: Sequence[float] = (),
) -> pd.DataFrame:
    """Say for every workload which decoder answers most requests per second, each in its best configuration.

    Parameters
    ----------
    replica : Replica
    efficiency : Efficiency
    rule : MemoryRule
    slots : float
        Requests that the engine runs together at most. [1]
    canvas_passes : sequence of float
        Passes of a canvas of 256 tokens that run too, a rival each: where a model that decodes so exists. [1]

    Returns
    -------
    DataFrame
        ``workload``, ``batch``, ``winner``, ``configuration``, ``request_s`` [s], ``over_plain`` and
        ``over_second`` (its rate over theirs) [1], ``tokens_to_win`` and ``canvas_to_win`` (that diffusion must keep
        of a block of 32, or of a canvas of 256, in a pass to be level with the best of the others) and
        ``acceptance_to_win`` (that drafts need to be level with the best of plain decoding and diffusion), infinite
        where none is enough [1].

    Notes
    -----
    Rivals are those of `analysis.evidence.claims.rivals.line_up`: there diffusion keeps four tokens in a pass. An
    engine may admit fewer requests to a canvas than to the others; the batch is that of the workload all the same.
    """
    others = line_up()[:-1]
    blocks = [line_up()[-1], *canvases(canvas_passes)]
    rivals = [*others, *blocks]
    rows = []
    for work in WORKLOADS:
        load = {"input_tokens": work.input_tokens, "output_tokens": work.output_tokens}
        room = float(largest_batch(replica, Decoder.autoregressive(), **load, slots=slots, rule=rule))
        batch = min(work.batch, np.floor(room))
        found = [best(replica, rival, batch=batch, **load, efficiency=efficiency) for rival in rivals]
        times = np.array([each.request_s for each in found])
        first, second = np.argsort(times, kind="stable")[:2]
        at = {"batch": batch, **load, "efficiency": efficiency}
        rows.append(
            {
                "workload": work.name,
                "batch": batch,
                "winner": rivals[first].name,
                "configuration": configuration(rivals[first].decoders[found[first].index]),
                "request_s": times[first],
                "over_plain": times[0] / times[first],
                "over_second": times[second] / times[first],
                "tokens_to_win": tokens_per_pass_to_win(replica, others, **at),
                "canvas_to_win": tokens_per_pass_to_win(replica, others, block_tokens=CANVAS_TOKENS, **at),
                "acceptance_to_win": acceptance_to_win(
                    replica, [others[0], *blocks], draft_cost=DRAFT_COST.central, **at
                ),
            }
        )
    return pd.DataFrame(rows)


def gains(
    replica: Replica,
    rivals: Sequence[Rival],
    *,
    batch: Sequence[float],
    input_tokens: float,
    output_tokens: float,
    efficiency: Efficiency,
) -> pd.DataFrame:
    """Compare every rival with plain decoding at a few batches, a column each.

    Parameters
    ----------
    replica : Replica
    rivals : sequence of Rival
        The first of them is the base.
    batch : sequence of float
        Requests in the replica; whether memory holds them is not asked. [1]
    input_tokens, output_tokens : float
        Tokens of each prompt and answer. [token]
    efficiency : Efficiency

    Returns
    -------
    DataFrame
        One row for each rival but the first: its name as index, its rate over that of the first at each batch. [1]
    """
    load: dict[str, Any] = {
        "batch": np.asarray(batch, float),
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
    }
    times = [np.asarray(best(replica, each, **load, efficiency=efficiency).request_s) for each in rivals]
    rows = {each.name: times[0] / time for each, time in zip(rivals[1:], times[1:], strict=True)}
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(batch)).rename_axis("rival")


def long_contexts(
    replica: Replica,
    *,
    input_tokens: Sequence[float],
    output_tokens: float,
    batch: Sequence[float],
    efficiency: Efficiency,
    rule: MemoryRule,
    slots: float,
) -> pd.DataFrame:
    """Follow diffusion against plain decoding as contexts grow: its passes, and the end of its lead in whole requests.

    Parameters
    ----------
    replica : Replica
    input_tokens : sequence of float
        Prompts, a row each; the passes are those at this context. [token]
    output_tokens : float
        Tokens of each answer. [token]
    batch : sequence of float
        Requests in the replica, a column each. [1]
    efficiency : Efficiency
    rule : MemoryRule
    slots : float
        Requests that the engine runs together at most. [1]

    Returns
    -------
    DataFrame
        ``input_tokens`` [token], ``room`` (requests that memory holds), ``passes_N`` for each batch N (tokens per
        second of passes over blocks, over plain passes; NaN where memory does not hold them), ``ending`` and
        ``batch`` of the lead in whole requests, as in `analysis.model.head_to_head.crossover`. [1]
    """
    plain, blocks = line_up()[0], line_up()[-1]
    (narrow,), (wide,) = plain.decoders, blocks.decoders
    rows = []
    for prompt in input_tokens:
        load: dict[str, Any] = {"input_tokens": prompt, "output_tokens": output_tokens}
        room = np.floor(float(largest_batch(replica, narrow, **load, slots=slots, rule=rule)))
        at: dict[str, Any] = {"context_tokens": prompt, "efficiency": efficiency}
        passes = {
            f"passes_{n:g}": wide.tokens_per_pass
            * cycle(replica, narrow, batch=n, **at).cycle_s
            / cycle(replica, wide, batch=n, **at).cycle_s
            if n <= room
            else np.nan
            for n in batch
        }
        end = crossover(replica, blocks, plain, **load, at_most=room, efficiency=efficiency)
        rows.append({"input_tokens": prompt, "room": room, **passes, "ending": end.ending, "batch": end.batch})
    return pd.DataFrame(rows)


def when_full(
    replicas: Mapping[str, Replica],
    efficiencies: Mapping[str, Efficiency],
    *,
    input_tokens: float,
    output_tokens: float,
    rule: MemoryRule,
    slots: float,
    node_gpus: int,
) -> pd.DataFrame:
    """Count the requests that a node answers per second when the queue never runs dry, by decoder.

    Parameters
    ----------
    replicas : mapping of str to Replica
    efficiencies : mapping of str to Efficiency
        Of the same names.
    input_tokens, output_tokens : float
        Tokens of each prompt and answer. [token]
    rule : MemoryRule
    slots : float
        Requests that the engine runs together at most in one replica. [1]
    node_gpus : int
        GPUs of the node, among which replicas are put. [1]

    Returns
    -------
    DataFrame
        ``name``, ``rival``, ``batch`` of each replica [1], ``node_req_per_s`` [request/s], ``over_plain`` [1].
    """
    rows = []
    for name, one in replicas.items():
        load = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        room = np.floor(float(largest_batch(one, Decoder.autoregressive(), **load, slots=slots, rule=rule)))
        rates = {
            rival.name: best(one, rival, batch=room, **load, efficiency=efficiencies[name]).req_per_s
            for rival in line_up()
        }
        plain = next(iter(rates.values()))
        rows += [
            {
                "name": name,
                "rival": rival,
                "batch": room,
                "node_req_per_s": rate * node_gpus / one.gpus,
                "over_plain": rate / plain,
            }
            for rival, rate in rates.items()
        ]
    return pd.DataFrame(rows)
