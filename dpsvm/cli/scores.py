"""How well predictions fit, in the words of ``svm-train -v`` and ``svm-predict``."""

from __future__ import annotations

import numpy as np

from dpsvm._arrays import Array

_WORDS = {
    "mean_squared_error": "Mean squared error = {:g}",
    "squared_correlation": "Squared correlation coefficient = {:g}",
    "accuracy": "Accuracy = {:g}%",
}


def scores(predicted: Array, target: Array, regression: bool) -> dict[str, float]:
    """The figures by name; Pearson's correlation is NaN where either side is constant.

    >>> scores(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]), regression=True)
    {'mean_squared_error': 4.666666666666667, 'squared_correlation': 1.0}
    >>> scores(np.array([1.0, -1.0]), np.array([1.0, 1.0]), regression=False)
    {'accuracy': 50.0}
    """
    p, t, n = predicted, target, len(target)
    if not regression:
        return {"accuracy": 100.0 * int(np.count_nonzero(p == t)) / n}
    covariance = n * (p @ t) - p.sum() * t.sum()
    spread = (n * (p @ p) - p.sum() ** 2) * (n * (t @ t) - t.sum() ** 2)
    return {
        "mean_squared_error": float(np.mean((p - t) ** 2)),
        "squared_correlation": float(covariance**2 / spread) if spread else float("nan"),
    }


def told(found: dict[str, float]) -> list[str]:
    """The lines that LIBSVM prints of such figures.

    >>> told({"accuracy": 50.0})
    ['Accuracy = 50%']
    """
    return [_WORDS[name].format(value) for name, value in found.items()]
