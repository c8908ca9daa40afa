"""Platt's sigmoid on the decisions of rows held out of the training, by LIBSVM's folds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpsvm.svm.probability import fit_sigmoid
from dpsvm.svm.validation import Random, Rows, folds

Floats = NDArray[np.float64]
Decide = Callable[[Rows, Rows], Floats]
"""From training rows and rows held out to decisions on the latter, positive for the first class."""

PROBABILITY_FOLDS = 5


def held_out_sigmoid(
    positive: NDArray[np.bool_], random: Random, decide: Decide
) -> tuple[float, float]:
    """Return the sigmoid ``(a, b)`` of one pair of classes.

    ``positive`` tells which rows of the pair are of its first class. Folds whose training rows are
    all of one class decide for it, by one.

    >>> from dpsvm.svm.validation import GlibcRandom
    >>> line = np.linspace(-1, 1, 20)
    >>> a, b = held_out_sigmoid(line > 0, GlibcRandom(), lambda rows, held_out: line[held_out])
    >>> a < 0
    True
    """
    decision = np.zeros(len(positive))
    for rows, held_out in folds([np.arange(len(positive))], PROBABILITY_FOLDS, random):
        seen = positive[rows]
        if not len(seen):
            continue
        if seen.all() or not seen.any():
            decision[held_out] = 1.0 if seen[0] else -1.0
        else:
            decision[held_out] = decide(rows, held_out)
    return fit_sigmoid(decision, positive)
