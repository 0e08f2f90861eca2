"""The roofline in numbers: intensity, ridge point, attainable performance, two times and their maximum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.inputs import fraction, not_negative, positive, scalar_or_array
from analysis.reference.specs import Accelerator

#: A multiplication and an addition.
FLOP_PER_WEIGHT = 2


def pass_flop(weights: ArrayLike, *, positions: ArrayLike) -> Any:
    r"""Operations of one pass through a stack of matmuls.

    .. math:: F = 2\, m\, N

    Parameters
    ----------
    weights : float or array, shape (...)
        Weights that the pass multiplies. An input embedding is looked up, not multiplied. [1]
    positions : float or array, broadcastable
        Positions over all sequences of the pass: at decode the batch, at prefill the prompt tokens. [1]

    Returns
    -------
    float or array, broadcast shape
        Operations, a multiplication and an addition counted as two. [FLOP]

    Raises
    ------
    InputError
        If an argument is not above zero; the message names it and the value.

    Notes
    -----
    Derived in `analysis.symbolic.roofline.pass_flop`. Attention over the context comes on top.

    Examples
    --------
    >>> pass_flop(70e9, positions=1)
    140000000000.0
    """
    return scalar_or_array(FLOP_PER_WEIGHT * positive("positions", positions) * positive("weights", weights))


def pass_byte(weights: ArrayLike, *, bytes_per_weight: ArrayLike) -> Any:
    r"""Weight bytes that one pass reads, once for all its positions.

    .. math:: D = b_\mathrm{w}\, N

    Parameters
    ----------
    weights : float or array
        Weights that the pass multiplies. [1]
    bytes_per_weight : float or array
        Size of a stored weight with its share of the scales: 2 for 16 bit, 1 for 8, about 0.53 to 0.56 for 4. [byte]

    Returns
    -------
    float or array, broadcast shape
        Bytes read. The KV cache comes on top. [byte]

    Raises
    ------
    InputError
        If an argument is not above zero.

    Notes
    -----
    Derived in `analysis.symbolic.roofline.pass_byte`.

    Examples
    --------
    >>> pass_byte(70e9, bytes_per_weight=2)
    140000000000.0
    """
    return scalar_or_array(positive("bytes_per_weight", bytes_per_weight) * positive("weights", weights))


def pass_intensity_flop_per_byte(positions: ArrayLike, *, bytes_per_weight: ArrayLike) -> Any:
    r"""Operations for each weight byte of one pass.

    .. math:: \mathcal{I} = \frac{2\, m}{b_\mathrm{w}}

    Parameters
    ----------
    positions : float or array
        Positions over all sequences of the pass. [1]
    bytes_per_weight : float or array
        Size of a stored weight, whatever format it is computed in. [byte]

    Returns
    -------
    float or array, broadcast shape
        Arithmetic intensity. [FLOP/byte]

    Raises
    ------
    InputError
        If an argument is not above zero.

    Notes
    -----
    Derived in `analysis.symbolic.roofline.pass_intensity`: the size of the model cancels. Counting a
    multiplication with its addition as one operation would halve it, and every ridge point too.

    Examples
    --------
    >>> pass_intensity_flop_per_byte([1, 64], bytes_per_weight=2).tolist()
    [1.0, 64.0]
    >>> pass_intensity_flop_per_byte(1, bytes_per_weight=0.5)
    4.0
    """
    return scalar_or_array(
        FLOP_PER_WEIGHT * positive("positions", positions) / positive("bytes_per_weight", bytes_per_weight)
    )


def matmul_intensity_flop_per_byte(
    positions: ArrayLike,
    *,
    inputs: ArrayLike,
    outputs: ArrayLike,
    bytes_per_weight: ArrayLike,
    bytes_per_activation: ArrayLike,
) -> Any:
    r"""Operations for each byte of one matmul, with what goes in and comes out.

    .. math:: \mathcal{I} = \frac{2\, m\, d_\mathrm{in}\, d_\mathrm{out}}
              {b_\mathrm{w}\, d_\mathrm{in}\, d_\mathrm{out} + b_\mathrm{a}\, m\,(d_\mathrm{in} + d_\mathrm{out})}

    Parameters
    ----------
    positions : float or array
        Positions over all sequences of the pass. [1]
    inputs, outputs : float or array
        Rows and columns of the weight matrix. [1]
    bytes_per_weight : float or array
        Size of a stored weight. [byte]
    bytes_per_activation : float or array
        Size of a number that goes in or comes out; zero leaves them aside. [byte]

    Returns
    -------
    float or array, broadcast shape
        Arithmetic intensity. [FLOP/byte]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.roofline.matmul_intensity`. Many positions lead to
    2 d_in d_out / (b_a (d_in + d_out)), for square matrices d / b_a.

    Examples
    --------
    >>> sizes = {"inputs": 8192, "outputs": 8192, "bytes_per_weight": 2, "bytes_per_activation": 2}
    >>> matmul_intensity_flop_per_byte([1, 256, 1e9], **sizes).round(1).tolist()
    [1.0, 240.9, 4096.0]
    """
    m = positive("positions", positions)
    weights = positive("inputs", inputs) * positive("outputs", outputs)
    moved_byte = positive("bytes_per_weight", bytes_per_weight) * weights + not_negative(
        "bytes_per_activation", bytes_per_activation
    ) * m * (np.asarray(inputs, float) + np.asarray(outputs, float))
    return scalar_or_array(FLOP_PER_WEIGHT * m * weights / moved_byte)


def ridge_flop_per_byte(
    peak_flop_per_s: ArrayLike, *, mem_bw_byte_per_s: ArrayLike, mfu: ArrayLike = 1, mbu: ArrayLike = 1
) -> Any:
    r"""Intensity from which the arithmetic units are the limit.

    .. math:: \mathcal{I}^* = \frac{\eta_\mathrm{f}\, P_\mathrm{peak}}{\eta_\mathrm{b}\, \mathrm{BW}}

    Parameters
    ----------
    peak_flop_per_s : float or array
        Dense peak in the format that the units compute in; for 4-bit weights computed in 16 bit the 16-bit
        peak. [FLOP/s]
    mem_bw_byte_per_s : float or array
        Peak memory bandwidth. [byte/s]
    mfu, mbu : float or array
        Shares of the two peaks that an engine reaches, above 0 and at most 1; left out, the ideal ridge. [1]

    Returns
    -------
    float or array, broadcast shape
        Ridge point. [FLOP/byte]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.roofline.attainable_ridge`. It does not depend on how weights are stored.

    Examples
    --------
    >>> round(ridge_flop_per_byte(989.4e12, mem_bw_byte_per_s=3350e9))
    295
    >>> round(ridge_flop_per_byte(989.4e12, mem_bw_byte_per_s=3350e9, mfu=0.6, mbu=0.7))
    253
    """
    attained_flop_per_s = fraction("mfu", mfu) * positive("peak_flop_per_s", peak_flop_per_s)
    attained_byte_per_s = fraction("mbu", mbu) * positive("mem_bw_byte_per_s", mem_bw_byte_per_s)
    return scalar_or_array(attained_flop_per_s / attained_byte_per_s)


def attainable_flop_per_s(
    intensity_flop_per_byte: ArrayLike, *, peak_flop_per_s: ArrayLike, mem_bw_byte_per_s: ArrayLike
) -> Any:
    r"""Largest performance that the roof allows.

    .. math:: \min(P_\mathrm{peak},\; \mathcal{I}\, \mathrm{BW})

    Parameters
    ----------
    intensity_flop_per_byte : float or array
        Arithmetic intensity. [FLOP/byte]
    peak_flop_per_s : float or array
        Dense peak, or the share of it that an engine reaches. [FLOP/s]
    mem_bw_byte_per_s : float or array
        Memory bandwidth, or the share of it that an engine reaches. [byte/s]

    Returns
    -------
    float or array, broadcast shape
        Performance that the hardware allows. [FLOP/s]

    Raises
    ------
    InputError
        If an argument is not above zero.

    Notes
    -----
    Derived in `analysis.symbolic.roofline.attainable`. The optimistic bound: times of parts that run one
    after the other add.

    Examples
    --------
    >>> attainable_flop_per_s([1, 1000], peak_flop_per_s=989e12, mem_bw_byte_per_s=3350e9).tolist()
    [3350000000000.0, 989000000000000.0]
    """
    intensity = positive("intensity_flop_per_byte", intensity_flop_per_byte)
    peak = positive("peak_flop_per_s", peak_flop_per_s)
    return scalar_or_array(np.minimum(peak, intensity * positive("mem_bw_byte_per_s", mem_bw_byte_per_s)))


@dataclass(frozen=True)
class PassTime:
    """The two times of a pass, floats or arrays of one shape. [s]."""

    memory_s: Any
    compute_s: Any

    @property
    def pass_s(self) -> Any:
        """Time of the pass when both overlap fully: the larger of the two. [s]."""
        return scalar_or_array(np.maximum(self.memory_s, self.compute_s))

    @property
    def memory_bound(self) -> Any:
        """Whether reading takes longer than computing."""
        bound = np.greater(self.memory_s, self.compute_s)
        return bound if np.ndim(bound) else bool(bound)


def pass_time(
    flop: ArrayLike, *, byte: ArrayLike, peak_flop_per_s: ArrayLike, mem_bw_byte_per_s: ArrayLike
) -> PassTime:
    r"""Time that a pass takes at least, and which of its two halves decides.

    .. math:: t = \max\left(\frac{D}{\mathrm{BW}},\; \frac{F}{P_\mathrm{peak}}\right)

    Parameters
    ----------
    flop : float or array
        Operations of the pass. [FLOP]
    byte : float or array
        Bytes that it moves. [byte]
    peak_flop_per_s : float or array
        Dense peak of all accelerators that share the pass, times the share that is reached. [FLOP/s]
    mem_bw_byte_per_s : float or array
        Their memory bandwidth, times the share that is reached. [byte/s]

    Returns
    -------
    PassTime
        Both times; ``pass_s`` is their maximum. [s]

    Raises
    ------
    InputError
        If an argument is outside its domain.

    Notes
    -----
    Derived in `analysis.symbolic.roofline.pass_time`. A lower bound: no attention, communication or launch.

    Examples
    --------
    >>> times = pass_time(140e9, byte=140e9, peak_flop_per_s=989e12, mem_bw_byte_per_s=3350e9)
    >>> round(times.memory_s * 1e3, 1), round(times.compute_s * 1e3, 2), times.memory_bound
    (41.8, 0.14, True)
    """
    memory_s = not_negative("byte", byte) / positive("mem_bw_byte_per_s", mem_bw_byte_per_s)
    compute_s = not_negative("flop", flop) / positive("peak_flop_per_s", peak_flop_per_s)
    return PassTime(*(scalar_or_array(time) for time in np.broadcast_arrays(memory_s, compute_s)))


def positions_at_ridge(ridge_flop_per_byte: ArrayLike, *, bytes_per_weight: ArrayLike) -> Any:
    r"""Positions of a pass at which reading and computing take equally long.

    .. math:: m^* = \frac{b_\mathrm{w}\, \mathcal{I}^*}{2}

    Parameters
    ----------
    ridge_flop_per_byte : float or array
        Ridge point of the compute format, ideal or attainable. [FLOP/byte]
    bytes_per_weight : float or array
        Size of a stored weight. [byte]

    Returns
    -------
    float or array, broadcast shape
        Positions; below them one more costs no time. [1]

    Raises
    ------
    InputError
        If an argument is not above zero.

    Notes
    -----
    Derived in `analysis.symbolic.roofline.positions_at_ridge`.

    Examples
    --------
    >>> positions_at_ridge(295.0, bytes_per_weight=2), positions_at_ridge(295.0, bytes_per_weight=0.5)
    (295.0, 73.75)
    """
    ridge = positive("ridge_flop_per_byte", ridge_flop_per_byte)
    return scalar_or_array(positive("bytes_per_weight", bytes_per_weight) * ridge / FLOP_PER_WEIGHT)


def ridge_points(accelerators: Iterable[Accelerator]) -> pd.DataFrame:
    """Tabulate the ridge point of every accelerator in every format that it computes in.

    Parameters
    ----------
    accelerators : iterable of Accelerator
        Records of `analysis.reference.tables.accelerators`.

    Returns
    -------
    DataFrame
        Columns ``accelerator``, ``number_format``, ``peak_flop_per_s``, ``mem_bw_byte_per_s``,
        ``ridge_flop_per_byte``, and ``assumed``: whether the peak or the bandwidth lacks a second source.

    Examples
    --------
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> ridge_points([accelerator("h100-sxm", as_of=SNAPSHOT)]).ridge_flop_per_byte.round().tolist()
    [148.0, 295.0, 591.0, 591.0]
    """
    return pd.DataFrame(
        [
            {
                "accelerator": part.name,
                "number_format": number_format,
                "peak_flop_per_s": peak,
                "mem_bw_byte_per_s": part.mem_bw_byte_per_s,
                "ridge_flop_per_byte": ridge_flop_per_byte(peak, mem_bw_byte_per_s=part.mem_bw_byte_per_s),
                "assumed": not part.assumed.isdisjoint({f"peak_{number_format}", "mem_bw"}),
            }
            for part in accelerators
            for number_format, peak in part.peak_flop_per_s.items()
        ]
    )


def roof(
    intensity_flop_per_byte: ArrayLike, *, peak_flop_per_s: float, mem_bw_byte_per_s: float, per: float = 1
) -> pd.DataFrame:
    """Tabulate the roof over intensities, for a drawing.

    Parameters
    ----------
    intensity_flop_per_byte : array
        Where. [FLOP/byte]
    peak_flop_per_s : float
        Dense peak. [FLOP/s]
    mem_bw_byte_per_s : float
        Memory bandwidth. [byte/s]
    per : float
        Size of the unit in which performance is given, 1e12 for TFLOP/s. [FLOP/s]

    Returns
    -------
    DataFrame
        Columns ``intensity_flop_per_byte`` and ``performance``.

    Examples
    --------
    >>> roof([1, 1000], peak_flop_per_s=989e12, mem_bw_byte_per_s=3350e9, per=1e12)["performance"].tolist()
    [3.35, 989.0]
    """
    height = attainable_flop_per_s(
        intensity_flop_per_byte, peak_flop_per_s=peak_flop_per_s, mem_bw_byte_per_s=mem_bw_byte_per_s
    )
    return pd.DataFrame({"intensity_flop_per_byte": intensity_flop_per_byte, "performance": np.asarray(height) / per})


def sweep_positions(
    weights: float,
    *,
    positions: ArrayLike,
    bytes_per_weight: float,
    peak_flop_per_s: float,
    mem_bw_byte_per_s: float,
) -> pd.DataFrame:
    """Time passes of more and more positions through one model, at the least that the roofline allows.

    Parameters
    ----------
    weights : float
        Weights that the pass multiplies. [1]
    positions : array
        Positions of the passes. [1]
    bytes_per_weight : float
        Size of a stored weight. [byte]
    peak_flop_per_s, mem_bw_byte_per_s : float
        Of all accelerators that share the pass. [FLOP/s], [byte/s]

    Returns
    -------
    DataFrame
        Columns ``positions``, ``intensity_flop_per_byte``, ``memory_s``, ``compute_s``, ``pass_s``,
        ``share_of_peak`` (operations done over those that the peak allows in the time of the pass) and
        ``position_per_s``.

    Raises
    ------
    InputError
        If an argument is not above zero.

    Examples
    --------
    >>> peaks = {"peak_flop_per_s": 989e12, "mem_bw_byte_per_s": 3350e9}
    >>> sweep_positions(8e9, positions=[1, 1000], bytes_per_weight=2, **peaks)["share_of_peak"].round(4).tolist()
    [0.0034, 1.0]
    """
    m = np.asarray(positions, dtype=float)
    times = pass_time(
        pass_flop(weights, positions=m),
        byte=pass_byte(weights, bytes_per_weight=bytes_per_weight),
        peak_flop_per_s=peak_flop_per_s,
        mem_bw_byte_per_s=mem_bw_byte_per_s,
    )
    return pd.DataFrame(
        {
            "positions": m.astype(int),
            "intensity_flop_per_byte": pass_intensity_flop_per_byte(m, bytes_per_weight=bytes_per_weight),
            "memory_s": times.memory_s,
            "compute_s": times.compute_s,
            "pass_s": times.pass_s,
            "share_of_peak": times.compute_s / times.pass_s,
            "position_per_s": m / times.pass_s,
        }
    )


def stored_and_computed(part: Accelerator, *, formats: Iterable[tuple[str, float, str]]) -> pd.DataFrame:
    """Compare ways to store weights and to compute with them on one accelerator.

    Parameters
    ----------
    part : Accelerator
        The record of the table.
    formats : iterable of (str, float, str)
        Name of the storage format, bytes of one weight in it, compute format.

    Returns
    -------
    DataFrame
        Columns ``accelerator``, ``stored_in``, ``computed_in``, ``intensity_flop_per_byte`` (of one position),
        ``ridge_flop_per_byte`` and ``positions_at_ridge``.

    Raises
    ------
    InputError
        If the part does not compute in a format.

    Examples
    --------
    >>> from analysis.reference.tables import SNAPSHOT, accelerator
    >>> h100 = accelerator("h100-sxm", as_of=SNAPSHOT)
    >>> frame = stored_and_computed(h100, formats=[("bf16", 2, "bf16"), ("int4", 0.5, "bf16")])
    >>> frame["positions_at_ridge"].round().tolist()
    [295.0, 74.0]
    """
    rows = []
    for stored_in, bytes_per_weight, computed_in in formats:
        ridge = ridge_flop_per_byte(part.peak(computed_in), mem_bw_byte_per_s=part.mem_bw_byte_per_s)
        rows.append(
            {
                "accelerator": part.name,
                "stored_in": stored_in,
                "computed_in": computed_in,
                "intensity_flop_per_byte": pass_intensity_flop_per_byte(1, bytes_per_weight=bytes_per_weight),
                "ridge_flop_per_byte": ridge,
                "positions_at_ridge": positions_at_ridge(ridge, bytes_per_weight=bytes_per_weight),
            }
        )
    return pd.DataFrame(rows)
