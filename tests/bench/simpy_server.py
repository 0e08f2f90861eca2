"""The server of the report once more, in SimPy: one event for each pass. A baseline for speed, dense models only."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator
from typing import Any

import simpy

from analysis.model.simulation import Requests, Server
from analysis.model.simulation.coefficients import coefficients
from analysis.model.simulation.compiled import (
    BASE,
    CACHED,
    LOGIT,
    LOGIT_MATMUL,
    OVERLAP,
    PROMPT,
    ROW,
    ROW_MATMUL,
    SEEN,
    SEQUENCE,
    WEIGHTS,
)


def serve(server: Server, requests: Requests) -> list[float]:
    """Return when each request has its last token, of one autoregressive replica with room for all. [s]."""
    env = simpy.Environment()
    c = [float(x) for x in coefficients(server.replica, server.efficiency, rule=server.rule).scalars]
    p, end_s = c[OVERLAP], [0.0] * len(requests)
    line: deque[int] = deque()
    wake = env.event()
    prompts, answers = requests.input_tokens.tolist(), requests.output_tokens.tolist()

    def overlapped(reading_s: float, computing_s: float) -> float:
        return math.pow(math.pow(reading_s, p) + math.pow(computing_s, p), 1 / p)

    def arrivals() -> Generator[Any, Any, None]:
        nonlocal wake
        for i, moment in enumerate(requests.arrival_s.tolist()):
            yield env.timeout(moment - env.now)
            line.append(i)
            if not wake.triggered:
                wake.succeed()

    def replica() -> Generator[Any, Any, None]:
        nonlocal wake
        left: dict[int, int] = {}
        context, partial, done = 0, -1, 0
        while True:
            if not line and not left and partial < 0:
                wake = env.event()
                yield wake
            room, read, ended, cached_s, looks_s = server.chunk_tokens, 0, [], 0.0, 0.0
            while room and (partial >= 0 or line):
                if partial < 0:
                    partial, done = line.popleft(), 0
                take = min(room, prompts[partial] - done)
                cached_s += c[CACHED] * done
                looks_s += c[SEEN] * take * (done + (take + 1) / 2)
                done, room, read = done + take, room - take, read + 1
                if done == prompts[partial]:
                    ended.append(partial)
                    partial = -1
            n = len(left)
            rows, logits = n + server.chunk_tokens - room, n + read
            pass_s = overlapped(c[WEIGHTS], rows * c[ROW_MATMUL] + logits * c[LOGIT_MATMUL]) + c[BASE]
            pass_s += rows * c[ROW] + logits * c[LOGIT] + c[SEQUENCE] * (n + read) + (c[PROMPT] if read else 0.0)
            pass_s += overlapped(cached_s + c[CACHED] * context, looks_s + c[SEEN] * (context + n))
            yield env.timeout(pass_s)
            context += n
            for i in list(left):
                left[i] -= 1
                if not left[i]:
                    end_s[i] = env.now
                    context -= prompts[i] + answers[i] - 1
                    del left[i]
            for i in ended:
                left[i] = answers[i] - 1
                context += prompts[i]

    env.process(arrivals())
    env.process(replica())
    env.run(until=float(requests.arrival_s[-1]) + 1e4)
    return end_s
