"""How well predictions fit, in the words of ``svm-train -v`` and ``svm-predict``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def n_correct(predicted: Floats, target: Floats) -> int:
    """How many labels were predicted right.

    >>> n_correct(np.array([1.0, -1.0]), np.array([1.0, 1.0]))
    1
    """
    return int(np.count_nonzero(predicted == target))


def mean_squared_error(predicted: Floats, target: Floats) -> float:
    """The mean of the squared differences.

    >>> mean_squared_error(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    2.0
    """
    return float(np.mean((predicted - target) ** 2))


def squared_correlation(predicted: Floats, target: Floats) -> float:
    """The square of Pearson's correlation; NaN where either side is constant.

    >>> squared_correlation(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    1.0
    """
    p, t, n = predicted, target, len(target)
    covariance = n * (p @ t) - p.sum() * t.sum()
    spread = (n * (p @ p) - p.sum() ** 2) * (n * (t @ t) - t.sum() ** 2)
    return float(covariance**2 / spread) if spread else float("nan")
