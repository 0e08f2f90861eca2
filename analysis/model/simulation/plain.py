"""The rules of the server, pass by pass in plain Python: what the compiled loop has to agree with.

Rules. An arrival joins the replica that holds the fewest requests, the first of equals, and waits in one line.
Before each pass the line is looked at: while slots, memory for its whole answer and room for prompt tokens are
left, its first request is let in. A pass computes one step of every answer under way, and reads prompts in the
order of arrival, ``chunk_tokens`` in all and ``prompts_per_pass`` of them at most; tokens that a prefix cache holds
are seen and not computed. The pass that reads the last of a prompt yields the first token, except where blocks
are refined. A request that is done leaves at the end of its pass.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analysis.model import decoding
from analysis.model.decoding import Part
from analysis.model.simulation.coefficients import Coefficients, coefficients
from analysis.model.simulation.compiled import KEPT, KEPT_BYTE
from analysis.model.simulation.records import Requests, Server

_BITS = 2**64 - 1


def uniform(seed: int, request: int, draw: int) -> float:
    """Draw a number from 0 to 1 that belongs to a request, whatever the order of service (splitmix64).

    Examples
    --------
    >>> uniform(1, 2, 3) == uniform(1, 2, 3) != uniform(1, 2, 4)
    True
    """
    z = (seed + (request + 1) * 0x9E3779B97F4A7C15 + (draw + 1) * 0xD1B54A32D192ED03) & _BITS
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _BITS
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _BITS
    return ((z ^ (z >> 31)) >> 11) / 2.0**53


@dataclass
class _Request:
    number: int
    arrival_s: float
    prompt: int
    cached: int
    output: int
    read: int = 0
    context: int = 0
    made: int = 0
    draws: int = 0
    passes_left: int = 0


@dataclass
class _Machine:
    """One replica."""

    now_s: float = 0.0
    line: deque[_Request] = field(default_factory=deque)
    reading: list[_Request] = field(default_factory=list)
    running: list[_Request] = field(default_factory=list)

    @property
    def inside(self) -> int:
        return len(self.line) + len(self.reading) + len(self.running)


def serve_plainly(
    server: Server, requests: Requests, *, replicas: int = 1, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Serve requests pass by pass, with the time of each pass from `analysis.model.decoding`.

    Parameters
    ----------
    server : Server
    requests : Requests
    replicas : int
        Replicas behind shortest-queue routing. [1]
    seed : int
        Of acceptance and of adaptive numbers of passes.

    Returns
    -------
    array, array
        When each request had its first token, and its last. [s]

    Notes
    -----
    Slow: some milliseconds for each pass. Use `analysis.model.simulation.serve`.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision, Replica
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Server(Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100))
    >>> requests = Requests([0.0, 0.5], [1000, 1000], [8, 8])
    >>> first_s, end_s = serve_plainly(one, requests)
    >>> (end_s - requests.arrival_s).round(3).tolist()
    [0.046, 0.046]
    """
    served = _Serving(server, requests, replicas, seed)
    for request in served.requests:
        for machine in served.machines:
            while machine.inside and (end_s := served.end_of_pass(machine, request.arrival_s)) is not None:
                machine.now_s = end_s
        chosen = min(served.machines, key=lambda machine: machine.inside)
        if not chosen.inside:
            chosen.now_s = request.arrival_s
        chosen.line.append(request)
    for machine in served.machines:
        while machine.inside and (end_s := served.end_of_pass(machine, math.inf)) is not None:
            machine.now_s = end_s
    return served.first_s, served.end_s


class _Serving:
    def __init__(self, server: Server, requests: Requests, replicas: int, seed: int) -> None:
        self.server, self.seed = server, seed
        self.memory: Coefficients = coefficients(server.replica, server.efficiency, rule=server.rule)
        columns = (requests.arrival_s, requests.input_tokens, requests.cached_tokens, requests.output_tokens)
        self.requests = [
            _Request(i, float(a), int(s), int(c), int(o)) for i, (a, s, c, o) in enumerate(zip(*columns, strict=True))
        ]
        self.machines = [_Machine() for _ in range(replicas)]
        self.first_s, self.end_s = np.zeros(len(self.requests)), np.zeros(len(self.requests))

    def end_of_pass(self, machine: _Machine, before_s: float) -> float | None:
        """Run the next pass if it ends before a moment; return its end, or None and leave all as it was."""
        kind, server = self.server.decoder.kind, self.server
        in_line = list(machine.line)
        arrived = [request for request in in_line if request.arrival_s <= machine.now_s]
        reading, running = list(machine.reading), list(machine.running)
        takes: list[tuple[_Request, int]] = []
        room = server.chunk_tokens
        for request in reading:
            takes.append((request, min(room, request.prompt - request.cached - request.read)))
            room -= takes[-1][1]
        for request in arrived:
            held = [*reading, *running]
            if (
                room == 0
                or len(takes) == server.prompts_per_pass
                or len(held) == server.slots
                or sum(map(self.held_byte, [*held, request])) > self.memory.memory_byte
            ):
                break
            in_line.remove(request)
            if kind == "full-sequence":
                request.passes_left = self.passes(request)
                running.append(request)
                continue
            reading.append(request)
            takes.append((request, min(room, request.prompt - request.cached)))
            room -= takes[-1][1]
        end_s = machine.now_s + self.pass_s(running, takes)
        if end_s >= before_s:
            return None
        machine.line, machine.reading, machine.running = deque(in_line), reading, running
        for request in list(running):
            self.advance(request, machine, end_s)
        for request, tokens in takes:
            request.read += tokens
            if request.read == request.prompt - request.cached:
                machine.reading.remove(request)
                request.context = request.prompt
                request.passes_left = self.passes(request)
                machine.running.append(request)
                if kind != "diffusion":
                    self.made(request, 1, machine, end_s)
        return end_s

    def passes(self, request: _Request) -> int:
        """Count the passes of the next block."""
        mean = float(self.server.decoder.passes_per_block)
        more = mean > math.floor(mean) and uniform(self.seed, request.number, request.draws) < mean - math.floor(mean)
        return math.floor(mean) + more

    def advance(self, request: _Request, machine: _Machine, end_s: float) -> None:
        """Do to an answer what one pass does."""
        decoder = self.server.decoder
        if decoder.kind == "ar":
            request.context += 1
            self.made(request, 1, machine, end_s)
        elif decoder.kind == "speculative":
            luck = uniform(self.seed, request.number, request.draws)
            request.draws += 1
            tokens = 1 + sum(luck < decoder.acceptance ** (i + 1) for i in range(int(decoder.draft_length)))
            request.context += tokens
            self.made(request, tokens, machine, end_s)
        else:
            request.passes_left -= 1
            if not request.passes_left:
                tokens = request.output if decoder.kind == "full-sequence" else int(decoder.block_tokens)
                request.context += tokens
                request.draws += 1
                request.passes_left = self.passes(request)
                self.made(request, tokens, machine, end_s)

    def made(self, request: _Request, tokens: int, machine: _Machine, end_s: float) -> None:
        if not request.made:
            self.first_s[request.number] = end_s
        request.made += tokens
        if request.made >= request.output:
            self.end_s[request.number] = end_s
            machine.running.remove(request)

    def held_byte(self, request: _Request) -> float:
        answer = request.output
        if self.server.decoder.kind == "diffusion":
            block = int(self.server.decoder.block_tokens)
            answer = -(-answer // block) * block
        readers = self.memory.readers
        return float((readers[:, KEPT_BYTE] * np.minimum(request.prompt + answer, readers[:, KEPT])).sum())

    def pass_s(self, running: list[_Request], takes: list[tuple[_Request, int]]) -> float:
        """Time of a pass, and of the drafts that it needs."""
        server, kind, w = self.server, self.server.decoder.kind, float(self.server.decoder.positions)
        rates = decoding.peaks(server.replica)
        if kind == "full-sequence":
            parts = [Part(1.0, 0.0, r.prompt + r.output, "all", causal=False) for r in running]
        else:
            parts = [Part(1.0, r.context, w, "all", causal=kind != "diffusion") for r in running]
        parts += [Part(1.0, r.cached + r.read, tokens, "last") for r, tokens in takes]
        if not parts:
            return math.inf
        asked = decoding.demand(server.replica, *parts)
        pass_s = float(decoding.time_of(asked, rates, server.efficiency).pass_s)
        if kind == "speculative" and running:
            drafting = decoding.demand(server.replica, *(Part(1.0, r.context) for r in running))
            pass_s += server.decoder.draft_share * float(decoding.time_of(drafting, rates, server.efficiency).pass_s)
        return pass_s
