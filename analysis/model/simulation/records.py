"""What the simulation is given: a server, and the requests that come to it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.inputs import InputError, not_negative, positive, share, whole
from analysis.model.decoding import CHUNK_TOKENS, IDEAL, OF_THE_CARD
from analysis.reference.specs import Decoder, Efficiency, MemoryRule, Replica

#: Requests that a server runs together at most, if not told otherwise.
SLOTS = 1024
#: Prompts in one pass, if not told otherwise: as many as the chunk has room for.
ANY_PROMPTS = 2**31 - 1
#: Tokens of a prompt or an answer, and bytes of a table of them, stay far below this.
MOST_TOKENS = 10**7


@dataclass(frozen=True)
class Server:
    """One replica and the rules by which its engine serves.

    Parameters
    ----------
    replica : Replica
    decoder : Decoder
        Plain numbers, no arrays.
    efficiency : Efficiency
    slots : int
        Requests that run together at most. [1]
    rule : MemoryRule
        Memory for a whole request is reserved before it is let in.
    chunk_tokens : int
        Prompt tokens of one pass at most. [token]
    prompts_per_pass : int
        Prompts of which one pass reads something, at most. [1]
    """

    replica: Replica
    decoder: Decoder = field(default_factory=Decoder.autoregressive)
    efficiency: Efficiency = IDEAL
    slots: int = SLOTS
    rule: MemoryRule = OF_THE_CARD
    chunk_tokens: int = CHUNK_TOKENS
    prompts_per_pass: int = ANY_PROMPTS

    def __post_init__(self) -> None:
        for name in ("slots", "chunk_tokens", "prompts_per_pass"):
            object.__setattr__(self, name, int(whole(name, getattr(self, name))))
        if any(np.ndim(value) for value in vars(self.decoder).values()):
            raise InputError("decoder", self.decoder.kind, "a decoder of plain numbers")


@dataclass(frozen=True)
class Requests:
    """Requests in the order of their arrival. Arrays of one length, or single numbers for all.

    Parameters
    ----------
    arrival_s : array
        When each arrives, never before the one ahead of it. [s]
    input_tokens, output_tokens : array or int
        Tokens of each prompt, cached ones included, and of each answer. [token]
    cached_tokens : array or int
        Prompt tokens that a prefix cache holds; at least the last token is computed. [token]

    Raises
    ------
    InputError
        If there are none, lengths differ, times go back, or a number of tokens is outside its domain.

    Examples
    --------
    >>> three = Requests([0.0, 0.5, 0.7], 1000, [200, 10, 50])
    >>> len(three), round(three.rate_req_per_s, 2)
    (3, 2.86)
    """

    arrival_s: Any
    input_tokens: Any
    output_tokens: Any
    cached_tokens: Any = 0

    def __post_init__(self) -> None:
        arrival = not_negative("arrival_s", self.arrival_s).reshape(-1)
        if arrival.size == 0:
            raise InputError("arrival_s", None, "at least one request")
        if np.any(np.diff(arrival) < 0):
            i = int(np.argmax(np.diff(arrival) < 0)) + 1
            raise InputError(f"arrival_s, request {i + 1}", float(arrival[i]), f"{arrival[i - 1]:g} or later")
        object.__setattr__(self, "arrival_s", arrival)
        for name in ("input_tokens", "output_tokens", "cached_tokens"):
            object.__setattr__(self, name, _tokens(name, getattr(self, name), arrival.size))
        if np.any(self.cached_tokens >= self.input_tokens):
            i = int(np.argmax(self.cached_tokens >= self.input_tokens))
            raise InputError(
                "cached_tokens", int(self.cached_tokens[i]), f"fewer than the {self.input_tokens[i]} of the prompt"
            )

    def __len__(self) -> int:
        return int(self.arrival_s.size)

    @property
    def rate_req_per_s(self) -> float:
        """Mean rate: gaps between arrivals over the time from first to last. [request/s]."""
        span = float(self.arrival_s[-1] - self.arrival_s[0])
        return (len(self) - 1) / span if span > 0 else float("inf")

    def at_rate(self, rate_req_per_s: float) -> Requests:
        """Scale time, so that the mean rate becomes another and the order of everything stays.

        Raises
        ------
        InputError
            If the rate is not above zero.
        """
        factor = self.rate_req_per_s / float(positive("rate_req_per_s", rate_req_per_s))
        return replace(self, arrival_s=(self.arrival_s - self.arrival_s[0]) * factor)


def _tokens(where: str, value: ArrayLike, count: int) -> NDArray[np.int32]:
    array = np.asarray(value)
    if array.ndim and array.size != count:
        raise InputError(where, array.size, f"one number, or one for each of {count} requests")
    least = 0 if where == "cached_tokens" else 1
    checked = not_negative(where, array) if least == 0 else positive(where, array)
    refused = (checked != np.floor(checked)) | (checked > MOST_TOKENS)
    if refused.any():
        raise InputError(where, float(np.atleast_1d(checked)[np.atleast_1d(refused)][0]), "a whole number of tokens")
    return np.ascontiguousarray(np.broadcast_to(checked, (count,)), dtype=np.int32)


# --- Draws -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Traffic:
    """What requests look like and how they arrive, at whatever rate.

    Parameters
    ----------
    input_tokens, output_tokens, cached_tokens : float or array
        Tokens of each request; arrays of one length are samples that are drawn together, at random. [token]
    arrival_cv : float
        Standard deviation over mean of the gaps between arrivals (Gamma): 1 is Poisson, 0 a clock. [1]
    length_cv : float
        Spread of the answers (log-normal) about ``output_tokens``, and of the prompts about theirs, both by the
        same share and independent. Not for samples. [1]
    profile : array, optional
        Relative rates in equal windows of a day that repeats; the mean is the rate. [1]
    day_s : float
        Length of that day. [s]
    trace : Requests, optional
        Arrivals and lengths as they were, in place of all of the above; the rate scales their time.

    Examples
    --------
    >>> load = Traffic(1500, 300, arrival_cv=2.0)
    >>> load.draw(count=1000, rate_req_per_s=4.0, seed=1).rate_req_per_s > 3
    True
    """

    input_tokens: Any = 1
    output_tokens: Any = 1
    cached_tokens: Any = 0
    arrival_cv: float = 1.0
    length_cv: float = 0.0
    profile: Any = None
    day_s: float = 86_400.0
    trace: Requests | None = None

    def draw(self, *, rate_req_per_s: float, count: int, seed: int) -> Requests:
        """Draw requests: one sequence for each seed, which a higher rate only compresses in time.

        Parameters
        ----------
        rate_req_per_s : float
            Mean rate. [request/s]
        count : int
            Requests; a trace has its own number. [1]
        seed : int
            The same seed gives the same requests, at any rate.

        Returns
        -------
        Requests

        Raises
        ------
        InputError
            If a number is outside its domain.
        """
        rate = float(positive("rate_req_per_s", rate_req_per_s))
        if self.trace is not None:
            return self.trace.at_rate(rate)
        count = int(whole("count", count))
        gaps_of, lengths_of = (np.random.default_rng([seed, stream]) for stream in (0, 1))
        cv = float(not_negative("arrival_cv", self.arrival_cv))
        gaps = np.ones(count) if cv == 0 else gaps_of.gamma(1 / cv**2, cv**2, count)
        arrival = np.cumsum(gaps, out=gaps)
        arrival /= rate
        if self.profile is not None:
            arrival = self._through_the_day(arrival)
        return Requests(arrival, *self._lengths(count, lengths_of))

    def _lengths(self, count: int, draw: np.random.Generator) -> list[Any]:
        columns = [np.atleast_1d(np.asarray(c)) for c in (self.input_tokens, self.output_tokens, self.cached_tokens)]
        samples = max(column.size for column in columns)
        if samples > 1:
            which = draw.integers(0, samples, count)
            return [column[which] if column.size > 1 else column[0] for column in columns]
        cv = float(not_negative("length_cv", self.length_cv))
        prompt, answer, cached = (float(column[0]) for column in columns)
        if cv == 0:
            return [prompt, answer, cached]
        sigma = np.sqrt(np.log1p(cv**2))
        spread = [
            np.maximum(1.0, np.rint(mean * draw.lognormal(-(sigma**2) / 2, sigma, count))) for mean in (prompt, answer)
        ]
        part = float(share("cached_tokens / input_tokens", cached / prompt))
        return [spread[0], spread[1], np.minimum(np.floor(spread[0] * part), spread[0] - 1)]

    def _through_the_day(self, even_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map arrivals of constant rate to the day's: more of them where its rate is high."""
        relative = not_negative("profile", self.profile).reshape(-1)
        positive("mean of profile", relative.mean())
        edges = np.linspace(0.0, self.day_s, relative.size + 1)
        passed = np.concatenate([[0.0], np.cumsum(relative / relative.mean() * self.day_s / relative.size)])
        days, rest = np.divmod(even_s, self.day_s)
        return days * self.day_s + np.interp(rest, passed, edges)
