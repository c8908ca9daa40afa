"""What an attacker computes from what it was sent: spaces, 0/1 columns, bounds; no protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Array = NDArray[np.float64]

_ROUNDING = 1e-11  # of the largest singular value: smaller ones are rounding errors
_NEAR = 1e-4  # of 0 or 1: it is a 0/1 column


def plain_predictions(
    sent: Sequence[Array],
    prices: Sequence[Array],
    rhos: Sequence[float],
    *,
    share: float,
    part: float,
) -> Array:
    """The D x behind relaxed messages, one column a round, from what a coordinator knows.

    A message is share * D x + (1 - share) * (last message - part * excess), and the excess follows
    from the prices that were broadcast (:class:`dpsvm.admm.sharing.party.Party`). The part is 1/M
    in a message of one of M parties, 1 in the sum of all.
    """
    found = []
    last, excess, price, rho = 0.0 * sent[0], 0.0 * sent[0], 0.0 * sent[0], rhos[0]
    for message, asked, now in zip(sent, prices, rhos, strict=True):
        excess = (asked - price + rho * excess) / (rho + now)
        found.append((message - (1.0 - share) * (last - part * excess)) / share)
        last, price, rho = message, asked, now
    return np.column_stack(found)


def column_space(vectors: Array) -> Array:
    """An orthonormal basis of what some vectors span, but for rounding."""
    left, values, _ = np.linalg.svd(vectors / np.linalg.norm(vectors, axis=0), full_matrices=False)
    return np.asarray(left[:, values > _ROUNDING * values[0]])


def largest_sine(space: Array, columns: Array) -> float:
    """Of the angles by which columns, all they span, stand out of a space: 0 if it holds them."""
    own = column_space(columns)
    return float(np.linalg.norm(own - space @ (space.T @ own), 2))


def binary_columns(space: Array, rng: np.random.Generator, starts: int) -> Iterator[Array]:
    """0/1 vectors that lie in a space, by ascent from random starts.

    The vectors of a space with all entries from 0 to 1 are a polytope. A 0/1 vector is a corner of
    it and, of all its points, one with a large sum of (z - 1/2)^2. Linearised that is a linear
    program; each one's corner is the next one's direction.
    """
    rows, dimension = space.shape
    limits = np.vstack([space, -space])
    sides = np.concatenate([np.ones(rows), np.zeros(rows)])
    free = [(None, None)] * dimension
    for _ in range(starts):
        direction, reached = rng.standard_normal(rows), -np.inf
        while True:
            found = linprog(-space.T @ direction, limits, sides, bounds=free, method="highs")
            if found.status != 0:
                break
            point = space @ found.x
            direction = point - 0.5
            if direction @ direction <= reached + 1e-9:
                if _is_binary(point) and 0 < np.sum(np.round(point)) < rows:
                    yield np.round(point)
                break
            reached = direction @ direction


def _is_binary(point: Array) -> bool:
    return bool(np.max(np.abs(point - np.round(point))) <= _NEAR)


def few_ones(matrix: Array, sketch: Array) -> Array | None:
    """The 0/1 vector with the sketch matrix @ vector, if the one of least sum is 0/1; else None."""
    width = matrix.shape[1]
    found = linprog(np.ones(width), A_eq=matrix, b_eq=sketch, bounds=(0.0, 1.0), method="highs")
    if found.status != 0 or not _is_binary(found.x):
        return None
    return np.asarray(np.round(found.x))


def bisected(holds: Callable[[float], bool], low: float, high: float, steps: int) -> float:
    """The least value that holds, between one that does not and one that does.

    >>> round(bisected(lambda value: value >= 0.3, 0.0, 1.0, 30), 6)
    0.3
    """
    for _ in range(steps):
        middle = (low + high) / 2.0
        low, high = (low, middle) if holds(middle) else (middle, high)
    return (low + high) / 2.0
