"""Nodes as the chapters use them: every split of a node's GPUs, with what the fitted constants say it reaches."""

from __future__ import annotations

from datetime import date

from analysis.model.capacity import Shape
from analysis.reference.efficiency import efficiency, memory_rule, slots
from analysis.reference.model_config import replica


def shapes(
    model: str,
    part: str,
    *,
    as_of: date,
    gpus: int = 8,
    weights: str | None = None,
    engine: str = "vllm",
    splits: tuple[int, ...] = (1, 2, 4, 8),
) -> list[Shape]:
    """List the ways to put replicas of a shipped model on a node.

    Parameters
    ----------
    model, part : str
        Names of a shipped architecture and of an accelerator.
    as_of : date
        The day of the data sheet.
    gpus : int
        GPUs of the node. [1]
    weights : str, optional
        Format of the weights, else the release's.
    engine : str
        Whose constants, memory rule and slots.
    splits : tuple of int
        GPUs of a replica; those that do not divide the node are left out. [1]

    Returns
    -------
    list of Shape

    Raises
    ------
    InputError
        If a name is unknown or has no constants.

    Examples
    --------
    >>> from analysis.reference.tables import SNAPSHOT
    >>> [(each.replica.gpus, each.copies) for each in shapes("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT)]
    [(1, 8), (2, 4), (4, 2), (8, 1)]
    """
    found = []
    for split in (each for each in splits if gpus % each == 0):
        one = replica(model, part, as_of=as_of, gpus=split, weights=weights)
        found.append(Shape(one, gpus // split, efficiency(one, engine), memory_rule(engine), slots(engine)))
    return found
