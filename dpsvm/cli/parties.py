"""The flag that says which columns are whose."""

from __future__ import annotations

import numpy as np

from dpsvm.cli.options import Flag, UsageError, reader

Parties = int | tuple[int, ...]


def _parties(text: str) -> Parties:
    sizes = tuple(int(part) for part in text.split(","))
    if min(sizes) < 1:
        raise ValueError
    return sizes[0] if len(sizes) == 1 else sizes


PARTIES = Flag(
    "--parties",
    "parties",
    "how many share the columns equally, or the columns of each",
    ("K|n,n,...",),
    reader(_parties, "a whole number above 0, nor a list of them like 66,57"),
)


def width_of(parties: Parties | None) -> int | None:
    """How many columns they have together; None where that is not said.

    >>> width_of((66, 57)), width_of(4)
    (123, None)
    """
    return sum(parties) if isinstance(parties, tuple) else None


def sizes_of(parties: Parties, width: int) -> list[int]:
    """How many columns each party has.

    >>> sizes_of(3, 7)
    [3, 2, 2]
    """
    if isinstance(parties, tuple):
        return list(parties)
    if parties > width:
        raise UsageError(f"--parties: {parties} cannot share {width} columns")
    return [len(part) for part in np.array_split(np.arange(width), parties)]
