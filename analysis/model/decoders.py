"""Four ways to make an answer on one time of a pass: token by token, with drafts, in blocks, all at once.

A decoder is three numbers: positions that a pass computes for each sequence, useful tokens that it yields, and the
time of drafts beside it. Everything else follows from `analysis.model.decoding.pass_time`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from analysis.inputs import positive, scalar_or_array
from analysis.model.decoding import (
    CHUNK_TOKENS,
    IDEAL,
    OF_THE_CARD,
    Part,
    PassTime,
    demand,
    max_batch,
    new_tokens,
    pass_time,
    peaks,
    prompt_part,
    time_of,
)
from analysis.reference.specs import Decoder, Efficiency, MemoryRule, Replica

#: Stands for no sequence in a pass, where a count of 0 would be refused.
NOBODY = 1e-9


@dataclass(frozen=True)
class Cycle:
    """Time between two passes of the target: the pass itself, then the drafts of the next. Floats or arrays. [s]."""

    time: PassTime
    draft_s: Any

    @property
    def cycle_s(self) -> Any:
        """Both together. [s]."""
        return self.time.pass_s + self.draft_s


def _part(decoder: Decoder, batch: Any, context_tokens: Any) -> Part:
    if decoder.kind == "full-sequence":
        return Part(batch, 0.0, context_tokens, "all", causal=False)
    return Part(batch, context_tokens, decoder.positions, "all", causal=decoder.kind != "diffusion")


def cycle(
    replica: Replica,
    decoder: Decoder,
    *,
    batch: ArrayLike,
    context_tokens: ArrayLike,
    efficiency: Efficiency = IDEAL,
) -> Cycle:
    r"""Time of one pass of a decoder, with the drafts that it needs.

    .. math:: t_\mathrm{cycle} = t(w) + g c\, t(1)

    Parameters
    ----------
    replica : Replica
    decoder : Decoder
    batch : float or array
        Sequences. [1]
    context_tokens : float or array
        Cached tokens of each; for a full-sequence decoder all tokens of each, which every pass computes. [token]
    efficiency : Efficiency

    Returns
    -------
    Cycle
        Fields of the broadcast shape. [s]

    Raises
    ------
    InputError
        If a number is outside its domain, or the GPUs do not divide the heads.

    Notes
    -----
    A wide pass computes logits for every position, work of the size of the vocabulary. Positions of a diffusion
    block see each other; drafts and their verification see only what is before them.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100)
    >>> for d in (Decoder.autoregressive(), Decoder.diffusion(block_tokens=32, passes=10)):
    ...     print(round(cycle(one, d, batch=1, context_tokens=1000).cycle_s * 1e3, 2))
    4.52
    4.52
    """
    part = _part(decoder, batch, context_tokens)
    time = pass_time(
        replica,
        batch=part.batch,
        context_tokens=part.context_tokens,
        positions=part.positions,
        causal=part.causal,
        efficiency=efficiency,
    )
    if np.all(np.asarray(decoder.draft_share) == 0):
        return Cycle(time, 0.0)
    plain = pass_time(replica, batch=batch, context_tokens=context_tokens, efficiency=efficiency)
    return Cycle(time, scalar_or_array(np.asarray(decoder.draft_share * plain.pass_s)))


def blocks(decoder: Decoder, output_tokens: ArrayLike) -> Any:
    """Count the whole blocks that an answer takes: a short answer pays for a whole block. [1]."""
    answer = positive("output_tokens", output_tokens)
    if decoder.kind == "full-sequence":
        return scalar_or_array(np.ones_like(answer))
    return scalar_or_array(np.ceil(answer / decoder.block_tokens))


def answer_passes(decoder: Decoder, output_tokens: ArrayLike, *, prompt_passes: ArrayLike = 1.0) -> Any:
    r"""Count the passes of one request, those that read its prompt included.

    .. math::
        P = 1 + \frac{S_\mathrm{out} - 1}{\tau}, \qquad
        P_\mathrm{blocks} = 1 + \left\lceil \frac{S_\mathrm{out}}{L} \right\rceil T

    Parameters
    ----------
    decoder : Decoder
    output_tokens : float or array
        Tokens of the answer, S_out. [token]
    prompt_passes : float or array
        Passes that read the prompt; the 1 of the formula. [1]

    Returns
    -------
    float or array
        P. Reading the prompt yields the first token, except where blocks are refined. [1]

    Raises
    ------
    InputError
        If the answer has no token.

    Notes
    -----
    Limits: at acceptance 0 drafts change nothing; a block of one token in one pass is a pass more than
    one token at a time. A full-sequence decoder reads the prompt in every pass: P = T.

    Examples
    --------
    >>> [answer_passes(d, 300) for d in (Decoder.autoregressive(), Decoder.diffusion(block_tokens=256, passes=17))]
    [300.0, 35.0]
    """
    answer = positive("output_tokens", output_tokens)
    if decoder.kind == "full-sequence":
        return scalar_or_array(np.asarray(decoder.passes_per_block + 0.0 * answer))
    if decoder.kind == "diffusion":
        made = blocks(decoder, answer) * decoder.passes_per_block
    else:
        made = np.maximum(answer - 1.0, 0.0) / decoder.tokens_per_pass
    return scalar_or_array(np.asarray(prompt_passes + made))


@dataclass(frozen=True)
class Served:
    r"""What requests ask of a replica that holds n of them. Floats or arrays of one shape.

    A request takes P t(n) + n p, of which it waits n - 1 times for the prompt of somebody else; in that time the
    replica answers n of them.

    Parameters
    ----------
    batch : float or array
        Requests in the replica, n. [1]
    passes : float or array
        Passes of one request, those that read its prompt included, P. [1]
    cycle_s : float or array
        Time of a pass with its drafts, t(n). [s]
    prompt_s : float or array
        What one prompt makes the passes that carry it take longer, p. [s]
    """

    batch: Any
    passes: Any
    cycle_s: Any
    prompt_s: Any

    @property
    def request_s(self) -> Any:
        """Latency of a request while the replica holds n, P t(n) + n p. [s]."""
        return self.passes * self.cycle_s + self.batch * self.prompt_s

    @property
    def req_per_s(self) -> Any:
        """Requests that the replica answers per second, n / (P t(n) + n p). [request/s]."""
        return self.batch / self.request_s


def served(
    replica: Replica,
    decoder: Decoder,
    *,
    batch: ArrayLike,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    chunk_tokens: ArrayLike = CHUNK_TOKENS,
    efficiency: Efficiency = IDEAL,
) -> Served:
    r"""Say what requests of one kind ask of a replica that always holds n of them.

    .. math:: p = k \left[t(n - 1, \text{prompt}) - t(n)\right], \qquad L(n) = P\, t(n) + n\, p

    Parameters
    ----------
    replica : Replica
    decoder : Decoder
    batch : float or array
        Requests in the replica, n. [1]
    input_tokens, output_tokens : float or array
        Tokens of each prompt and answer. [token]
    cached_tokens : float or array
        Prompt tokens that a prefix cache holds. [token]
    chunk_tokens : float or array
        Most prompt tokens of one pass. [token]
    efficiency : Efficiency

    Returns
    -------
    Served
        Passes run at the mean context, prompt and half of the answer.

    Raises
    ------
    InputError
        If a number is outside its domain, or the whole prompt is cached.

    Notes
    -----
    Limits: alone (n = 1) the latency is the time to read the prompt and one cycle for every further pass; for one
    token at a time it is that of `analysis.model.decoding.run_s`. Many short prompts share a pass. A
    full-sequence decoder reads its prompt in every pass, so that p = 0. What a draft model takes to read the
    prompt itself is left out.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100)
    >>> drafts = Decoder.speculative(acceptance=0.8, draft_length=4, draft_cost=0.05)
    >>> for decoder in (Decoder.autoregressive(), drafts, Decoder.diffusion(block_tokens=32, passes=8)):
    ...     alone = served(one, decoder, batch=1, input_tokens=1500, output_tokens=300)
    ...     print(round(alone.request_s, 2))
    1.38
    0.51
    0.39
    """
    answer, n = positive("output_tokens", output_tokens), positive("batch", batch)
    new, cached = new_tokens(input_tokens, cached_tokens)
    if decoder.kind == "full-sequence":
        between = cycle(
            replica, decoder, batch=n, context_tokens=np.asarray(input_tokens) + answer, efficiency=efficiency
        )
        return Served(batch, answer_passes(decoder, answer), between.cycle_s, 0.0)
    context = np.asarray(input_tokens, float) + answer / 2
    between = cycle(replica, decoder, batch=n, context_tokens=context, efficiency=efficiency)
    chunk = positive("chunk_tokens", chunk_tokens)
    own_passes = np.maximum(1.0, new / chunk)
    passes = answer_passes(decoder, answer, prompt_passes=own_passes)
    prompts, passes_each = prompt_part(new, cached, n / passes, chunk)
    neighbours = _part(decoder, np.maximum(n - 1.0, NOBODY), context)
    carrying_s = time_of(demand(replica, neighbours, prompts), peaks(replica), efficiency).pass_s
    # the newcomer has nothing drafted yet, the others have
    carrying_s = carrying_s + between.draft_s * (n - 1.0) / n
    prompt_s = passes_each * (carrying_s - between.cycle_s)

    return Served(scalar_or_array(n), passes, between.cycle_s, scalar_or_array(np.asarray(prompt_s)))


def request_s(
    replica: Replica,
    decoder: Decoder,
    *,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    chunk_tokens: ArrayLike = CHUNK_TOKENS,
    efficiency: Efficiency = IDEAL,
) -> Any:
    """Latency of one request alone on a replica: below it no number of such replicas helps.

    Parameters
    ----------
    replica, decoder, input_tokens, output_tokens, cached_tokens, chunk_tokens, efficiency
        As in `served`.

    Returns
    -------
    float or array
        Latency of the whole answer, L0. [s]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> eight = Replica(shipped("llama-3.1-70b").architecture, Precision.of("bf16"), h100, gpus=8)
    >>> round(request_s(eight, Decoder.autoregressive(), input_tokens=1500, output_tokens=300), 2)
    1.58
    """
    return served(
        replica,
        decoder,
        batch=1.0,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        chunk_tokens=chunk_tokens,
        efficiency=efficiency,
    ).request_s


def largest_batch(
    replica: Replica,
    decoder: Decoder,
    *,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    slots: ArrayLike = np.inf,
    rule: MemoryRule = OF_THE_CARD,
) -> Any:
    """Count the requests that a replica can hold at once, as memory or the engine allows; below 1 where none fits.

    Parameters
    ----------
    replica : Replica
    decoder : Decoder
        Blocks and drafts reserve room for what they may not keep.
    input_tokens, output_tokens : float or array
        Tokens of each prompt and answer. [token]
    slots : float or array
        Requests that the engine runs together at most. [1]
    rule : MemoryRule

    Returns
    -------
    float or array
        Requests, fractions included. [1]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Notes
    -----
    A full-sequence decoder keeps no cache, but the keys and values of a pass have to be somewhere: it is counted
    like the others.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100)
    >>> round(largest_batch(one, Decoder.autoregressive(), input_tokens=8000, output_tokens=300, slots=1024))
    56
    """
    answer = positive("output_tokens", output_tokens)
    whole = np.asarray(blocks(decoder, answer) * decoder.block_tokens) if decoder.kind == "diffusion" else answer
    held = positive("input_tokens", input_tokens) + whole
    return scalar_or_array(np.minimum(max_batch(replica, tokens=held, rule=rule), slots))


def saturated_req_per_s(
    replica: Replica,
    decoder: Decoder,
    *,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    slots: ArrayLike = np.inf,
    rule: MemoryRule = OF_THE_CARD,
    chunk_tokens: ArrayLike = CHUNK_TOKENS,
    efficiency: Efficiency = IDEAL,
) -> Any:
    r"""Rate at which a replica answers that always has more waiting.

    .. math:: \lambda_\mathrm{sat} = \frac{n}{P\, t(n) + n\, p}, \quad n = \text{as many as fit}

    Parameters
    ----------
    replica, decoder, input_tokens, output_tokens, cached_tokens, chunk_tokens, efficiency
        As in `served`.
    slots, rule
        As in `largest_batch`.

    Returns
    -------
    float or array
        Requests per second, 0 where not one fits. [request/s]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Notes
    -----
    For one token at a time this is `analysis.model.decoding.max_load_tok_per_s` over the answer.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100)
    >>> load = {"input_tokens": 1500, "output_tokens": 300, "slots": 256}
    >>> [round(saturated_req_per_s(one, d, **load), 1) for d in (
    ...     Decoder.autoregressive(), Decoder.diffusion(block_tokens=32, passes=8))]
    [22.2, 15.3]
    """
    n = largest_batch(replica, decoder, input_tokens=input_tokens, output_tokens=output_tokens, slots=slots, rule=rule)
    fits = np.asarray(n) >= 1
    full = served(
        replica,
        decoder,
        batch=np.where(fits, n, 1.0),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        chunk_tokens=chunk_tokens,
        efficiency=efficiency,
    )
    return scalar_or_array(np.asarray(np.where(fits, full.req_per_s, 0.0)))
