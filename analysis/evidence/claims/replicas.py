"""Samples that stand for replicas: one call of the model for all that share a model, its format and its GPUs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.evidence.scenarios import Point
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import shipped
from analysis.reference.specs import Efficiency, Replica
from analysis.reference.tables import NEWEST, accelerator

#: The node that the article names has eight of these.
GPU, GPUS = "h100-sxm", 8
ENGINE = "vllm"


@cache
def set_up(model: str, weights: str, gpus: int) -> tuple[Replica, Efficiency]:
    """Put a model on GPUs of the node that the article names, with what the engine reaches there."""
    config = shipped(model)
    precision = config.precision
    if precision.weights == "bf16":
        precision = precision.with_formats(weights=weights, kv=None)
    replica = Replica(config.architecture, precision, accelerator(GPU, as_of=NEWEST), gpus)
    return replica, efficiency(replica, ENGINE)


def by_replica(
    point: Point, of: Callable[[Replica, Efficiency, dict[str, NDArray[Any]]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Compute one number for each sample, in one call for all samples that share a replica.

    Parameters
    ----------
    point : mapping of str to array
        Samples with ``model``, ``weights`` and ``gpus`` among their inputs.
    of : callable
        Gets the replica, its efficiency and the samples on it.

    Returns
    -------
    array
        One number for each sample.
    """
    shape = np.shape(point["model"])
    choices = [np.broadcast_to(point[name], shape).reshape(-1) for name in ("model", "weights", "gpus")]
    names = np.array([f"{model} {weights} {int(gpus)}" for model, weights, gpus in zip(*choices, strict=True)])
    keys, which = np.unique(names, return_inverse=True)
    found = np.empty(which.size)
    for index, key in enumerate(keys):
        model, weights, gpus = str(key).split()
        here = which == index
        of_key = {name: np.broadcast_to(values, shape).reshape(-1)[here] for name, values in point.items()}
        found[here] = of(*set_up(model, weights, int(gpus)), of_key)
    return found.reshape(shape)
