"""One-against-one classification: what the decisions of all pairs of classes add up to.

Pairs come in LIBSVM's order (0, 1), (0, 2), ..., (1, 2), ...; a positive decision of the pair
(i, j) speaks for class i. All arrays of decisions have shape (rows, pairs).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsvm._arrays import Array


def pair_count(n_classes: int) -> int:
    """Return the number of pairs of classes.

    >>> pair_count(4)
    6
    """
    return n_classes * (n_classes - 1) // 2


def winners(decisions: Array, n_classes: int) -> NDArray[np.intp]:
    """Return the class with the most votes in each row, the first among equals.

    A decision of exactly zero is a vote for the second class of its pair, as in LIBSVM.

    >>> winners(np.array([[1.0, 1.0, 1.0], [-1.0, 1.0, -1.0]]), 3)
    array([0, 0])
    """
    votes = np.zeros((len(decisions), n_classes), dtype=np.int64)
    for first, block in _blocks(decisions, n_classes):
        votes[:, first] += (block > 0).sum(axis=1)
        votes[:, first + 1 :] += block <= 0
    best: NDArray[np.intp] = votes.argmax(axis=1)
    return best


def one_vs_rest(decisions: Array, n_classes: int) -> Array:
    """Return one score per class: its votes, and its summed decisions to part equal votes.

    The sum s is squeezed to s / (3 (abs(s) + 1)), less than a third in size, so that it never
    outweighs a vote. A decision of exactly zero is a vote for the first class here, as in
    scikit-learn.

    >>> one_vs_rest(np.array([[1.0, 0.0, -2.0]]), 3).round(3).tolist()
    [[2.167, -0.25, 1.222]]
    """
    scores = np.zeros((len(decisions), n_classes))
    margins = np.zeros((len(decisions), n_classes))
    for first, block in _blocks(decisions, n_classes):
        scores[:, first] += (block >= 0).sum(axis=1)
        scores[:, first + 1 :] += block < 0
        margins[:, first] += block.sum(axis=1)
        margins[:, first + 1 :] -= block
    scores += margins / (3 * (np.abs(margins) + 1))
    return scores


def pair_dual_coef(dual_coef: Array, n_support: NDArray[np.int32]) -> Array:
    """Return the coefficient of each support vector in each pair, of shape (pairs, vectors).

    ``dual_coef`` is LIBSVM's table of shape (classes - 1, vectors): for a vector of class c, row r
    holds its coefficient against class r, or r + 1 from c onwards.

    >>> pair_dual_coef(np.array([[1.0, -1.0, -3.0], [3.0, 2.0, -2.0]]), np.array([1, 1, 1]))
    array([[ 1., -1.,  0.],
           [ 3.,  0., -3.],
           [ 0.,  2., -2.]])
    """
    n_classes = len(n_support)
    ends = np.cumsum(n_support)
    vectors = [slice(end - size, end) for size, end in zip(n_support, ends, strict=True)]
    table = np.zeros((pair_count(n_classes), dual_coef.shape[1]))
    for row, (i, j) in zip(table, combinations(range(n_classes), 2), strict=True):
        row[vectors[i]] = dual_coef[j - 1, vectors[i]]
        row[vectors[j]] = dual_coef[i, vectors[j]]
    return table


def _blocks(decisions: Array, n_classes: int) -> Iterator[tuple[int, Array]]:
    """Yield each class with the columns of its pairs with all later classes."""
    start = 0
    for first in range(n_classes - 1):
        stop = start + n_classes - 1 - first
        yield first, decisions[:, start:stop]
        start = stop
