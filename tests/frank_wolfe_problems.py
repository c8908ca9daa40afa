"""Problems that the tests of Frank-Wolfe share."""

from __future__ import annotations

import numpy as np

from dpsvm.frank_wolfe import LeastSquares


def make_lasso(seed=0, n=60, d=12, noise=0.1):
    """A, entries at most 1, and y, at most 1, from a sparse x."""
    rng = np.random.default_rng(seed)
    A = rng.uniform(-1.0, 1.0, (n, d))
    x = np.zeros(d)
    x[: min(3, d)] = [0.5, -0.3, 0.2][: min(3, d)]
    return A, np.clip(A @ x + noise * rng.standard_normal(n), -1.0, 1.0)


def split(A, parties):
    """The columns in consecutive blocks, as equal as can be."""
    return np.array_split(A, parties, axis=1)


def make_quadratic(seed=0, d=8):
    """A least-squares function of d features whose minimiser over [0, 1]^d lies on its boundary."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3 * d, d))
    return LeastSquares(A, A @ rng.uniform(-0.5, 1.5, d) + rng.standard_normal(3 * d))
