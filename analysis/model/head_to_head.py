"""Which decoder wins: rivals on one backbone and one node, each in its best configuration, over batch and context.

A rival is a way to decode with the configurations that it may choose from. At a fixed number of requests in the
replica the quickest answer and the largest rate are the same configuration, so one choice serves both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from analysis.inputs import InputError, not_negative, positive, scalar_or_array, whole
from analysis.model.decoders import largest_batch, served
from analysis.model.decoding import IDEAL, OF_THE_CARD, peaks
from analysis.model.transformer import (
    FLOP_PER_WEIGHT,
    kv_bytes_per_token,
    params_matmul,
    weight_bytes_streamed,
)
from analysis.reference.specs import Decoder, Efficiency, MemoryRule, Replica

#: Draft lengths that a speculative rival may choose from.
DRAFT_LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8)
#: A prompt look-up costs nothing to draft and may therefore try longer chains.
LOOK_UP_LENGTHS = (1, 2, 3, 5, 8, 12, 16)
#: The block of the open block-diffusion models; longer ones were worse in their authors' tests.
BLOCK_TOKENS = 32
#: Requests that an engine runs together, if not told otherwise, and steps to that number.
SLOTS = 256.0
RATE_STEPS = 17
#: Steps of the search for a crossover, from batch 1 to the largest.
STEPS = 400
#: A lead below this, in the logarithm of the rates, is rounding.
LEVEL = 1e-9
#: So many positions stand for "every expert is in use".
MANY_POSITIONS = 1e9


# --- Rivals ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rival:
    """A way to decode, with the configurations that it may choose from.

    Parameters
    ----------
    name : str
        As pages call it.
    decoders : tuple of Decoder
        Of one kind. Their fields may be arrays of one shape.
    """

    name: str
    decoders: tuple[Decoder, ...]


def one_by_one(name: str = "one token at a time") -> Rival:
    """Plain decoding."""
    return Rival(name, (Decoder.autoregressive(),))


def speculation(
    *, acceptance: Any, draft_cost: Any, lengths: Iterable[int] = DRAFT_LENGTHS, name: str = "speculation"
) -> Rival:
    """Drafts of a model or of extra heads, of whatever length pays best; plain decoding where none pays.

    Parameters
    ----------
    acceptance, draft_cost : float or array
        As in `Decoder.speculative`. [1]
    lengths : iterable of int
        Draft lengths to choose from. [1]
    name : str

    Raises
    ------
    InputError
        If a number is outside its domain.
    """
    return _with_drafts(name, acceptance, draft_cost, lengths)


def look_up(*, acceptance: Any, lengths: Iterable[int] = LOOK_UP_LENGTHS, name: str = "prompt look-up") -> Rival:
    """Drafts copied from the prompt: no model, no cost, accepted as far as the answer repeats the prompt.

    Parameters and errors as in `speculation`.
    """
    return _with_drafts(name, acceptance, 0.0, lengths)


def _with_drafts(name: str, acceptance: Any, draft_cost: Any, lengths: Iterable[int]) -> Rival:
    drafting = (
        Decoder.speculative(acceptance=acceptance, draft_length=length, draft_cost=draft_cost) for length in lengths
    )
    return Rival(name, (Decoder.autoregressive(), *drafting))


def diffusion(
    *, tokens_per_pass: Any, block_tokens: Sequence[int] = (BLOCK_TOKENS,), name: str = "block diffusion"
) -> Rival:
    """Blocks refined in so many passes that each yields that many tokens.

    Parameters
    ----------
    tokens_per_pass : float or array
        Tokens of a block over its mean passes, the commit pass included. [1]
    block_tokens : sequence of int
        Blocks to choose from, each at least as long as the tokens of a pass. [token]
    name : str

    Raises
    ------
    InputError
        If a pass is to yield more than a block.

    Notes
    -----
    Tokens per pass are taken as given for every block: how many passes text of a wanted quality needs is a
    measurement, no result of a model of time.
    """
    tau = positive("tokens_per_pass", tokens_per_pass)
    if np.any(tau > min(block_tokens)):
        raise InputError("tokens_per_pass", float(np.max(tau)), f"at most the shortest block, {min(block_tokens)}")
    return Rival(
        name,
        tuple(Decoder.diffusion(block_tokens=block, passes=scalar_or_array(block / tau)) for block in block_tokens),
    )


class Best(NamedTuple):
    """The best configuration of a rival. Floats or arrays of one shape."""

    request_s: Any
    req_per_s: Any
    index: Any


def best(
    replica: Replica,
    rival: Rival,
    *,
    batch: ArrayLike,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    efficiency: Efficiency = IDEAL,
) -> Best:
    """Choose a rival's best configuration for requests of one kind.

    Parameters
    ----------
    replica : Replica
    rival : Rival
    batch : float or array
        Requests in the replica. [1]
    input_tokens, output_tokens, cached_tokens : float or array
        As in `analysis.model.decoders.served`. [token]
    efficiency : Efficiency

    Returns
    -------
    Best
        Latency of a whole request [s], requests per second [request/s], and the place of the configuration.

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
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100)
    >>> drafts = speculation(acceptance=0.7, draft_cost=0.05)
    >>> found = best(one, drafts, batch=[1, 200], input_tokens=100, output_tokens=300)
    >>> [drafts.decoders[i].draft_length for i in found.index]
    [6.0, 1.0]
    """
    load: dict[str, Any] = {
        "batch": batch,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cached_tokens": cached_tokens,
        "efficiency": efficiency,
    }
    found = [served(replica, decoder, **load) for decoder in rival.decoders]
    latency = np.stack(np.broadcast_arrays(*(np.asarray(each.request_s, float) for each in found)))
    index = np.argmin(latency, axis=0)
    quickest = np.take_along_axis(latency, index[None], axis=0)[0]
    rate = np.asarray(batch, float) / quickest
    return Best(scalar_or_array(quickest), scalar_or_array(rate), index if index.ndim else int(index))


def rate_within(
    replica: Replica,
    rival: Rival,
    *,
    budget_s: ArrayLike,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    cached_tokens: ArrayLike = 0.0,
    slots: float = SLOTS,
    rule: MemoryRule = OF_THE_CARD,
    efficiency: Efficiency = IDEAL,
) -> Any:
    """Largest rate at which a replica's mean latency stays within a budget.

    Parameters
    ----------
    replica, rival, input_tokens, output_tokens, cached_tokens, efficiency
        As in `best`.
    budget_s : float or array
        Time for a whole request on the GPUs. [s]
    slots : float
        Requests that the engine runs together at most. [1]
    rule : MemoryRule

    Returns
    -------
    float or array, broadcast shape
        Requests per second; 0 where a request alone takes longer or does not fit. [request/s]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Notes
    -----
    A mean, in batches of a grid: percentiles under random arrivals come from the simulation of the chapter on
    answers that cannot wait.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100)
    >>> load = {"input_tokens": 1500, "output_tokens": 300}
    >>> [round(rate_within(one, one_by_one(), budget_s=budget, **load), 1) for budget in (1.0, 2.0, 100.0)]
    [0.0, 8.3, 22.2]
    """
    budget = positive("budget_s", budget_s)
    shape = np.broadcast_shapes(*(np.shape(x) for x in (budget, input_tokens, output_tokens, cached_tokens)))
    room = _room(replica, rival, input_tokens, output_tokens, rule)
    found = np.zeros(shape)
    for n in np.geomspace(1.0, slots, RATE_STEPS):
        each = best(
            replica,
            rival,
            batch=n,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_tokens=cached_tokens,
            efficiency=efficiency,
        )
        within = (np.asarray(each.request_s) <= budget) & (n <= np.asarray(room))
        found = np.where(within, np.maximum(found, each.req_per_s), found)
    return scalar_or_array(found)


def configuration(decoder: Decoder) -> str:
    """Say in words how a decoder of plain numbers is set.

    Examples
    --------
    >>> configuration(Decoder.speculative(acceptance=0.7, draft_length=3, draft_cost=0.1))
    '3 drafts'
    >>> configuration(Decoder.diffusion(block_tokens=32, passes=8))
    'block of 32, 8 passes'
    """
    if decoder.kind == "speculative":
        drafts = int(decoder.draft_length)
        return f"{drafts} draft{'s' if drafts > 1 else ''}"
    if decoder.kind == "diffusion":
        return f"block of {decoder.block_tokens:.0f}, {decoder.passes_per_block:.3g} passes"
    if decoder.kind == "full-sequence":
        return f"{decoder.passes_per_block:.3g} passes"
    return "no drafts"


# --- Sweeps ------------------------------------------------------------------------------------


def sweep_batch(
    replica: Replica,
    rivals: Iterable[Rival],
    *,
    batch: Sequence[float],
    input_tokens: float,
    output_tokens: float,
    cached_tokens: float = 0.0,
    rule: MemoryRule = OF_THE_CARD,
    efficiency: Efficiency = IDEAL,
) -> pd.DataFrame:
    """Follow every rival from a small batch to a large one.

    Parameters
    ----------
    replica : Replica
    rivals : iterable of Rival
        The first of them is the base of ``gain``; fields of their decoders are plain numbers.
    batch : sequence of float
        Requests in the replica. [1]
    input_tokens, output_tokens, cached_tokens : float
        As in `best`. [token]
    rule : MemoryRule
    efficiency : Efficiency

    Returns
    -------
    DataFrame
        ``rival``, ``batch``, ``configuration``, ``request_s`` [s], ``req_per_s`` of the replica [request/s],
        ``replica_tok_per_s`` and ``stream_tok_per_s``, answers over their whole latency [token/s], ``gain`` over the
        first rival at the same batch [1], ``fits`` (bool).

    Raises
    ------
    InputError
        If a number is outside its domain, or there is no rival.
    """
    n = positive("batch", batch)
    frames = []
    base = None
    for rival in rivals:
        found = best(
            replica,
            rival,
            batch=n,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_tokens=cached_tokens,
            efficiency=efficiency,
        )
        base = found.req_per_s if base is None else base
        room = _room(replica, rival, input_tokens, output_tokens, rule)
        frames.append(
            pd.DataFrame(
                {
                    "rival": rival.name,
                    "batch": n,
                    "configuration": [configuration(rival.decoders[i]) for i in np.atleast_1d(found.index)],
                    "request_s": found.request_s,
                    "req_per_s": found.req_per_s,
                    "replica_tok_per_s": found.req_per_s * output_tokens,
                    "stream_tok_per_s": output_tokens / found.request_s,
                    "gain": found.req_per_s / base,
                    "fits": n <= room,
                }
            )
        )
    if not frames:
        raise InputError("rivals", None, "at least one")
    return pd.concat(frames, ignore_index=True)


def _room(replica: Replica, rival: Rival, input_tokens: Any, output_tokens: Any, rule: MemoryRule) -> Any:
    """Count the requests that fit in the roomiest configuration of a rival."""
    return np.max(
        [
            largest_batch(replica, decoder, input_tokens=input_tokens, output_tokens=output_tokens, rule=rule)
            for decoder in rival.decoders
        ],
        axis=0,
    )


def winners(
    replica: Replica,
    rivals: Sequence[Rival],
    *,
    batch: Sequence[float],
    input_tokens: Sequence[float],
    output_tokens: float,
    rule: MemoryRule = OF_THE_CARD,
    efficiency: Efficiency = IDEAL,
) -> pd.DataFrame:
    """Say for every batch and every prompt which rival is quickest, and by how much.

    Parameters
    ----------
    replica, rivals, batch, output_tokens, rule, efficiency
        As in `sweep_batch`.
    input_tokens : sequence of float
        Tokens of a prompt, one column of the map each. [token]

    Returns
    -------
    DataFrame
        ``batch``, ``input_tokens``, ``winner`` (empty where memory does not hold the batch), ``second``, ``lead``:
        the winner's rate over that of the second [1].

    Raises
    ------
    InputError
        If a number is outside its domain, or there are fewer than two rivals.
    """
    if len(rivals) < 2:
        raise InputError("rivals", len(rivals), "at least two")
    sweeps = []
    for prompt in input_tokens:
        sweep = sweep_batch(
            replica,
            rivals,
            batch=batch,
            input_tokens=prompt,
            output_tokens=output_tokens,
            rule=rule,
            efficiency=efficiency,
        )
        sweeps.append(sweep.assign(input_tokens=prompt))
    rows = []
    for (prompt, n), group in pd.concat(sweeps).groupby(["input_tokens", "batch"], sort=False):
        ranked = group[group["fits"]].sort_values("req_per_s", ascending=False, kind="stable")
        none = ranked.empty
        rows.append(
            {
                "batch": n,
                "input_tokens": prompt,
                "winner": "" if none else ranked["rival"].iloc[0],
                "second": "" if len(ranked) < 2 else ranked["rival"].iloc[1],
                "lead": np.nan if len(ranked) < 2 else ranked["req_per_s"].iloc[0] / ranked["req_per_s"].iloc[1],
            }
        )
    return pd.DataFrame(rows)


# --- Where the lines cross ---------------------------------------------------------------------

Ending = Literal["never ahead", "crosses", "ahead to the last"]


class Crossover(NamedTuple):
    """Where a challenger stops being ahead for good. ``batch`` is NaN unless it crosses. [1]."""

    ending: Ending
    batch: float


def crossover(
    replica: Replica,
    challenger: Rival,
    incumbent: Rival,
    *,
    input_tokens: float,
    output_tokens: float,
    cached_tokens: float = 0.0,
    at_most: float | None = None,
    rule: MemoryRule = OF_THE_CARD,
    efficiency: Efficiency = IDEAL,
) -> Crossover:
    """Find the batch from which the challenger no longer answers more requests per second than the incumbent.

    Parameters
    ----------
    replica : Replica
    challenger, incumbent : Rival
        Each in its best configuration at every batch.
    input_tokens, output_tokens, cached_tokens : float
        As in `best`. [token]
    at_most : float, optional
        Largest batch to look at; what memory holds of the challenger if left out. [1]
    rule : MemoryRule
    efficiency : Efficiency

    Returns
    -------
    Crossover
        The last batch at which it is ahead. A rival that may fall back on plain decoding ends level, not behind.

    Raises
    ------
    InputError
        If a number is outside its domain, or not one request fits.

    Notes
    -----
    In the limit of the ideal roofline without prompt and with short attention this is
    `analysis.symbolic.decoders.breakeven_batch`.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> one = Replica(shipped("llama-3.1-8b").architecture, Precision.of("bf16"), h100)
    >>> found = crossover(one, diffusion(tokens_per_pass=3.18), one_by_one(), input_tokens=1, output_tokens=320)
    >>> found.ending, round(found.batch)
    ('crosses', 30)
    """
    room = _room(replica, challenger, input_tokens, output_tokens, rule) if at_most is None else at_most
    if room < 1:
        raise InputError("at_most", float(room), "room for at least one request")
    steps = np.geomspace(1.0, float(room), STEPS)
    load: dict[str, Any] = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cached_tokens": cached_tokens,
        "efficiency": efficiency,
    }

    def lead(batch: NDArray[np.float64]) -> NDArray[np.float64]:
        ahead = best(replica, challenger, batch=batch, **load).req_per_s
        return np.asarray(np.log(ahead / best(replica, incumbent, batch=batch, **load).req_per_s))

    leads = lead(steps)
    ahead = np.flatnonzero(leads > LEVEL)
    if not ahead.size:
        return Crossover("never ahead", np.nan)
    last = int(ahead[-1])
    if last == STEPS - 1:
        return Crossover("ahead to the last", np.nan)
    # between two steps of a fine grid the lead is a line in the logarithm of the batch
    share = leads[last] / (leads[last] - leads[last + 1])
    return Crossover("crosses", float(steps[last] * (steps[last + 1] / steps[last]) ** share))


def crossovers(
    replicas: Mapping[str, Replica],
    challengers: Sequence[Rival],
    incumbents: Sequence[Rival],
    *,
    input_tokens: Sequence[float],
    output_tokens: float,
    rule: MemoryRule = OF_THE_CARD,
    efficiencies: Mapping[str, Efficiency],
) -> pd.DataFrame:
    """List where every challenger stops being ahead of every incumbent.

    Parameters
    ----------
    replicas : mapping of str to Replica
    challengers, incumbents : sequence of Rival
    input_tokens : sequence of float
        Prompts. [token]
    output_tokens : float
        Answer. [token]
    rule : MemoryRule
    efficiencies : mapping of str to Efficiency
        Of the same names.

    Returns
    -------
    DataFrame
        ``name``, ``challenger``, ``incumbent``, ``input_tokens``, ``ending``, ``batch`` (NaN unless it crosses) [1].

    Raises
    ------
    InputError
        If a number is outside its domain.
    """
    rows = []
    for name, one in replicas.items():
        for prompt in input_tokens:
            for challenger in challengers:
                for incumbent in incumbents:
                    found = crossover(
                        one,
                        challenger,
                        incumbent,
                        input_tokens=prompt,
                        output_tokens=output_tokens,
                        rule=rule,
                        efficiency=efficiencies[name],
                    )
                    rows.append((name, challenger.name, incumbent.name, prompt, *found))
    columns = ["name", "challenger", "incumbent", "input_tokens", "ending", "batch"]
    return pd.DataFrame(rows, columns=columns)


# --- What would overturn a lead ----------------------------------------------------------------


def tokens_per_pass_to_win(
    replica: Replica,
    incumbents: Iterable[Rival],
    *,
    batch: float,
    input_tokens: float,
    output_tokens: float,
    block_tokens: int = BLOCK_TOKENS,
    efficiency: Efficiency = IDEAL,
) -> float:
    """Find the tokens that a pass over a block must keep for diffusion to be as fast as the best of its rivals.

    Parameters
    ----------
    replica : Replica
    incumbents : iterable of Rival
    batch, input_tokens, output_tokens : float
        As in `best`. [1, token, token]
    block_tokens : int
        The block. [token]
    efficiency : Efficiency

    Returns
    -------
    float
        Tokens of a pass: 1 where it wins with any, infinite where not even one pass a block is enough. [1]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import replica
    >>> from analysis.reference.tables import SNAPSHOT
    >>> one = replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT)
    >>> load = {"input_tokens": 500, "output_tokens": 320}
    >>> [round(tokens_per_pass_to_win(one, [one_by_one()], batch=n, **load), 1) for n in (1, 100)]
    [1.0, 8.5]
    """
    load: dict[str, Any] = {
        "batch": batch,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "efficiency": efficiency,
    }
    quickest = min(best(replica, rival, **load).request_s for rival in incumbents)

    def behind(tokens: float) -> float:
        blocks = diffusion(tokens_per_pass=tokens, block_tokens=(block_tokens,))
        return float(np.log(best(replica, blocks, **load).request_s / quickest))

    if behind(1.0) <= 0:
        return 1.0
    if behind(float(block_tokens)) > 0:
        return np.inf
    return float(brentq(behind, 1.0, float(block_tokens), xtol=1e-6))


def acceptance_to_win(
    replica: Replica,
    incumbents: Iterable[Rival],
    *,
    draft_cost: float,
    batch: float,
    input_tokens: float,
    output_tokens: float,
    lengths: Iterable[int] = DRAFT_LENGTHS,
    efficiency: Efficiency = IDEAL,
) -> float:
    """Find the acceptance that drafts need for speculation to be as fast as the best of its rivals.

    Parameters
    ----------
    replica, incumbents, batch, input_tokens, output_tokens, efficiency
        As in `tokens_per_pass_to_win`.
    draft_cost : float
        As in `Decoder.speculative`. [1]
    lengths : iterable of int
        Draft lengths to choose from. [1]

    Returns
    -------
    float
        Acceptance: 0 where it wins without any, infinite where certain acceptance is not enough. [1]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Examples
    --------
    >>> from analysis.reference.model_config import replica
    >>> from analysis.reference.tables import SNAPSHOT
    >>> one = replica("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT)
    >>> load = {"batch": 1, "input_tokens": 500, "output_tokens": 320}
    >>> blocks = diffusion(tokens_per_pass=3.0)
    >>> round(acceptance_to_win(one, [blocks], draft_cost=0.1, **load), 2)
    0.86
    """
    load: dict[str, Any] = {
        "batch": batch,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "efficiency": efficiency,
    }
    quickest = min(best(replica, rival, **load).request_s for rival in incumbents)
    choice = tuple(lengths)

    def behind(acceptance: float) -> float:
        drafts = speculation(acceptance=acceptance, draft_cost=draft_cost, lengths=choice)
        return float(np.log(best(replica, drafts, **load).request_s / quickest))

    if behind(0.0) <= 0:
        return 0.0
    if behind(1.0) > 0:
        return np.inf
    return float(brentq(behind, 0.0, 1.0, xtol=1e-6))


# --- The closed form ---------------------------------------------------------------------------


class Scales(NamedTuple):
    """The scales of a pass that decide every comparison of decoders.

    ``ridge_positions``: positions that take as long to multiply as the weights take to read [1].
    ``context_tokens``: context of one sequence that takes as long to read as one position to multiply [token].
    ``overhead_positions``: the fixed time of a pass in positions [1].
    """

    ridge_positions: Any
    context_tokens: Any
    overhead_positions: Any


def scales(replica: Replica, *, efficiency: Efficiency = IDEAL) -> Scales:
    r"""Scales of the time of a pass on one replica.

    .. math:: m_r = \frac{W P}{2 N\,\mathrm{BW}},\qquad s_\kappa = \frac{2 N\,\mathrm{BW}}{\kappa P}

    Parameters
    ----------
    replica : Replica
    efficiency : Efficiency
        Of it, the shares of both peaks and the fixed time of plain layers count.

    Returns
    -------
    Scales

    Notes
    -----
    Derived in `analysis.symbolic.decoders.ridge_positions` and ``context_scale``. Sparse models: with every expert
    in use. GPUs of a replica share bytes and arithmetic, so that their number cancels.

    Examples
    --------
    >>> from analysis.reference.model_config import shipped
    >>> from analysis.reference.specs import Precision
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> for name in ("llama-3.1-8b", "gemma-4-26b-a4b"):
    ...     found = scales(Replica(shipped(name).architecture, Precision.of("bf16"), h100))
    ...     print(round(found.ridge_positions), round(found.context_tokens))
    295 388
    1950 115
    """
    rates = peaks(replica)
    flop_per_s = efficiency.mfu * rates.matmul_flop_per_s
    byte_per_s = efficiency.mbu * rates.mem_bw_byte_per_s
    position_s = FLOP_PER_WEIGHT * params_matmul(replica.architecture) / flop_per_s
    weights = weight_bytes_streamed(replica.architecture, replica.precision, positions=MANY_POSITIONS)
    per_token = kv_bytes_per_token(replica.architecture, replica.precision)
    fixed_s = replica.architecture.n_layers * efficiency.layer_s
    return Scales(
        weights / byte_per_s / position_s,
        position_s * byte_per_s / per_token if per_token else np.inf,
        fixed_s * replica.gpus / position_s,
    )


def breakeven_batch(
    of: Scales, *, positions: ArrayLike, tokens_per_pass: ArrayLike, context_tokens: ArrayLike = 0.0
) -> Any:
    r"""Batch at which w positions for tau tokens are as fast as one for one.

    .. math:: n^* = \frac{\tau m_r + (\tau - 1) f}{w - (\tau - 1)\, s/s_\kappa}

    Parameters
    ----------
    of : Scales
    positions : float or array
        w, positions that a pass computes for each sequence. [1]
    tokens_per_pass : float or array
        tau, useful tokens of a pass; for drafts less their cost, tau - g c. [1]
    context_tokens : float or array
        Cached tokens of each sequence, s. [token]

    Returns
    -------
    float or array, broadcast shape
        Batch; 0 where a pass yields no more than one token, infinite where none exists. [1]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.decoders.breakeven_batch`, above the ridge ``breakeven_batch_past_ridge``; none
    exists from ``context_without_breakeven`` on. Dense, arithmetic of attention left out.

    Examples
    --------
    >>> h100 = Scales(ridge_positions=295.0, context_tokens=388.0, overhead_positions=0.0)
    >>> [round(breakeven_batch(h100, positions=32, tokens_per_pass=3.18, context_tokens=s), 1) for s in (0, 2000, 9000)]
    [29.3, 45.2, inf]
    """
    w, tau, s = np.broadcast_arrays(
        positive("positions", positions),
        positive("tokens_per_pass", tokens_per_pass),
        not_negative("context_tokens", context_tokens),
    )
    more = tau - 1
    reach = s / of.context_tokens
    with np.errstate(divide="ignore", invalid="ignore"):
        below = (tau * of.ridge_positions + more * of.overhead_positions) / (w - more * reach)
        above = more * of.overhead_positions / (w - tau - more * reach)
    at_most_ridge = (below > 0) & (below <= of.ridge_positions * (1 + 1e-12))
    past_ridge = np.where((above > of.ridge_positions) & np.isfinite(above), above, np.inf)
    found = np.where(at_most_ridge, below, past_ridge)
    return scalar_or_array(np.where(tau <= 1, 0.0, found))


def context_without_breakeven(of: Scales, *, positions: ArrayLike, tokens_per_pass: ArrayLike) -> Any:
    r"""Context from which w positions for tau tokens are faster at every batch.

    .. math:: s = s_\kappa \frac{w - \tau}{\tau - 1}

    Parameters
    ----------
    of, positions, tokens_per_pass
        As in `breakeven_batch`.

    Returns
    -------
    float or array, broadcast shape
        Tokens; infinite where a pass yields no more than one, 0 where it keeps every position. [token]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.decoders.context_without_breakeven`. Attention over a wide block multiplies too:
    where a block of grouped queries reaches the ridge, this is too early.

    Examples
    --------
    >>> h100 = Scales(ridge_positions=295.0, context_tokens=388.0, overhead_positions=0.0)
    >>> round(context_without_breakeven(h100, positions=32, tokens_per_pass=3.18))
    5129
    """
    w, tau = np.broadcast_arrays(positive("positions", positions), positive("tokens_per_pass", tokens_per_pass))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = of.context_tokens * np.maximum(w - tau, 0.0) / (tau - 1)
    return scalar_or_array(np.where(tau <= 1, np.inf, found))


def best_draft_length(*, acceptance: ArrayLike, draft_cost: ArrayLike, at_most: int = 64) -> Any:
    r"""Draft length of the largest gain while checking is free.

    .. math:: \arg\max_g \frac{\tau(g)}{1 + g c}

    Parameters
    ----------
    acceptance, draft_cost : float or array
        As in `Decoder.speculative`. [1]
    at_most : int
        Largest length to look at; the answer where longer drafts always pay. [1]

    Returns
    -------
    float or array, broadcast shape
        Whole drafts, 0 where none pays. [1]

    Raises
    ------
    InputError
        If a number is outside its domain.

    Notes
    -----
    A neighbour of `analysis.symbolic.decoders.best_draft_length`.

    Examples
    --------
    >>> [best_draft_length(acceptance=a, draft_cost=c) for a, c in ((0.8, 0.05), (0.6, 0.1), (0.3, 0.5))]
    [8.0, 3.0, 0.0]
    """
    longest = int(whole("at_most", at_most))
    lengths = range(1, longest + 1)
    a, c = np.broadcast_arrays(np.asarray(acceptance, float), np.asarray(draft_cost, float))
    drafts = [Decoder.speculative(acceptance=a, draft_length=g, draft_cost=c) for g in lengths]
    gains = np.stack([np.ones_like(a), *(np.asarray(each.tokens_per_pass / (1 + each.draft_share)) for each in drafts)])
    return scalar_or_array(np.argmax(gains, axis=0).astype(float))
