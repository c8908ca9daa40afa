"""LIBSVM's cross-validation folds, row for row.

LIBSVM shuffles with the C library's ``rand()``, so the folds of ``svm-train -v`` on Linux follow
from glibc's generator and its default seed of 1. Both are restated here: the same seed gives the
same folds, hence the same cross-validation accuracy and the same Platt sigmoids.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


class Random(Protocol):
    """Draws the numbers of a shuffle."""

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""


_LAG_LONG, _LAG_SHORT, _WARM_UP = 31, 3, 310


class GlibcRandom:
    """The stream of ``srand(seed); rand(); rand(); ...`` in the GNU C library.

    An additive feedback generator: ``r[i] = r[i-3] + r[i-31] (mod 2**32)``, of which ``rand``
    returns the upper 31 bits. The 31 words of state are filled by the multiplicative generator
    ``16807 w mod (2**31 - 1)`` and the first 310 outputs are dropped.

    >>> random = GlibcRandom()
    >>> random(), random(), random()
    (1804289383, 846930886, 1681692777)
    """

    def __init__(self, seed: int = 1) -> None:
        word = seed % 2**32 or 1
        if word >= 2**31:
            word -= 2**32
        state = [word]
        while len(state) < _LAG_LONG:
            word = 16807 * word % (2**31 - 1)
            state.append(word)
        # The first three words past the seeded ones repeat r[i-31] alone.
        self._state = deque(state[_LAG_SHORT:] + state[:_LAG_SHORT], maxlen=_LAG_LONG)
        for _ in range(_WARM_UP):
            self()

    def __call__(self) -> int:
        state = self._state
        word = (state[-_LAG_SHORT] + state[0]) & 0xFFFFFFFF
        state.append(word)
        return word >> 1

    def below(self, n: int) -> int:
        """A number from 0 to n - 1, as LIBSVM takes it."""
        return self() % n


class MersenneRandom:
    """The stream of the LIBSVM inside scikit-learn: a Mersenne Twister, a generator of its own.

    Numbers below n come by Lemire's multiplication ("Fast random integer generation in an
    interval", 2019), which draws again where the remainder would favour some.

    >>> random = MersenneRandom(1)
    >>> random.below(10), random.below(10), random.below(10)
    (4, 9, 7)
    """

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed)

    def below(self, n: int) -> int:
        """A number from 0 to n - 1, all equally likely."""
        unfair = 2**32 % n
        while True:
            product = int(self._state.randint(2**32, dtype=np.uint32)) * n
            if product % 2**32 >= unfair:
                return product >> 32


def shuffled(rows: Rows, random: Random) -> Rows:
    """A Fisher-Yates shuffle that draws from the front, as LIBSVM does.

    >>> shuffled(np.arange(6), GlibcRandom()).tolist()
    [1, 2, 3, 4, 5, 0]
    """
    order = rows.tolist()
    n = len(order)
    for i in range(n):
        j = i + random.below(n - i)
        order[i], order[j] = order[j], order[i]
    return np.asarray(order, dtype=np.intp)


def folds(groups: Sequence[Rows], n_folds: int, random: Random) -> list[tuple[Rows, Rows]]:
    """The (training rows, held-out rows) of each fold.

    ``groups`` holds the row numbers of each class in LIBSVM's class order: every group is shuffled
    and dealt evenly over the folds. One group of all rows gives the unstratified folds that LIBSVM
    uses for regression, one-class machines, leave-one-out and Platt sigmoids; with fewer rows than
    folds some folds hold out none. Training rows come in the order LIBSVM gives them to its solver.

    >>> [held_out.tolist() for _, held_out in folds([np.arange(6)], 3, GlibcRandom())]
    [[1, 2], [3, 4], [5, 0]]
    """
    if n_folds < 2:
        raise ValueError(f"cross-validation needs at least 2 folds, got {n_folds}")
    dealt: list[list[Rows]] = [[] for _ in range(n_folds)]
    for group in groups:
        order = shuffled(group, random)
        n = len(order)
        for i, part in enumerate(dealt):
            part.append(order[i * n // n_folds : (i + 1) * n // n_folds])
    held_out = [np.concatenate(part) for part in dealt]
    return [
        (np.concatenate(held_out[:i] + held_out[i + 1 :]), rows) for i, rows in enumerate(held_out)
    ]
