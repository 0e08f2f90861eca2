"""Which decoder wins on named workloads, by how much, and which number would overturn it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.evidence.claims.rivals import DRAFT_COST, line_up
from analysis.model.decoders import largest_batch
from analysis.model.head_to_head import acceptance_to_win, best, configuration, tokens_per_pass_to_win
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


def decisions(replica: Replica, *, efficiency: Efficiency, rule: MemoryRule, slots: float) -> pd.DataFrame:
    """Say for every workload which decoder answers most requests per second, each in its best configuration.

    Parameters
    ----------
    replica : Replica
    efficiency : Efficiency
    rule : MemoryRule
    slots : float
        Requests that the engine runs together at most. [1]

    Returns
    -------
    DataFrame
        ``workload``, ``batch``, ``winner``, ``configuration``, ``request_s`` [s], ``over_plain`` and
        ``over_second`` (its rate over theirs) [1], ``tokens_to_win`` (that diffusion must keep of a block of 32 in a
        pass to be level with the best rival) and ``acceptance_to_win`` (that drafts need to be level with the best
        of plain decoding and diffusion), infinite where none is enough [1].

    Notes
    -----
    Rivals stand in the middle of the ranges of `analysis.evidence.claims.rivals.line_up`: there diffusion keeps four
    tokens in a pass.
    """
    rivals = line_up()
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
                "tokens_to_win": tokens_per_pass_to_win(replica, rivals[:-1], **at),
                "acceptance_to_win": acceptance_to_win(
                    replica, [rivals[0], rivals[-1]], draft_cost=DRAFT_COST.central, **at
                ),
            }
        )
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
