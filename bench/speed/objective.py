"""The dual objective of a fitted machine, worked out afresh from its support vectors.

It is what every library minimises, so it tells whether two of them found the same optimum.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from bench.speed.adapters import Solution
from bench.speed.workloads import Problem

BLOCK = 1000  # kernel rows at a time


def dual_objective(problem: Problem, solution: Solution) -> float:
    """The minimised dual, summed over the one-vs-one problems of a classifier.

    With b = y * alpha: 1/2 b'Kb - sum |b| for C-SVC, 1/2 b'Kb - y'b + epsilon sum |b| for
    epsilon-SVR, 1/2 b'Kb for one-class. A solution without dual coefficients states its own.
    """
    if solution.dual_coef is None:
        if solution.objective is None:
            raise ValueError("a solution needs dual coefficients or an objective")
        return solution.objective
    if problem.estimator == "SVC":
        return sum(
            _quadratic(problem, rows, coef) - float(np.abs(coef).sum())
            for rows, coef in _pairs(solution.support, solution.dual_coef, solution.n_support)
        )
    coef = solution.dual_coef[0]
    value = _quadratic(problem, solution.support, coef)
    if problem.estimator == "SVR":
        value -= float(problem.y[solution.support] @ coef)
        value += problem.params["epsilon"] * float(np.abs(coef).sum())
    return value


def _pairs(
    support: np.ndarray, dual_coef: np.ndarray, n_support: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and coefficients of each pair (i, j): i's in row j - 1 of dual_coef, j's in row i."""
    ends = np.cumsum(n_support)
    classes = [slice(end - n, end) for end, n in zip(ends, n_support, strict=True)]
    return [
        (
            np.concatenate([support[first], support[second]]),
            np.concatenate([dual_coef[j - 1, first], dual_coef[i, second]]),
        )
        for i, first in enumerate(classes)
        for j, second in enumerate(classes[i + 1 :], start=i + 1)
    ]


def _quadratic(problem: Problem, rows: np.ndarray, coef: np.ndarray) -> float:
    used = coef != 0
    rows, coef = rows[used], coef[used]
    X = problem.X[rows].astype(np.float64)
    if sp.issparse(X):
        X = X.tocsr()
    shape = {k: v for k, v in problem.params.items() if k in ("gamma", "coef0", "degree")}
    total = 0.0
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        K = pairwise_kernels(
            X[block], X, metric=problem.params["kernel"], filter_params=True, **shape
        )
        total += float(coef[block] @ (K @ coef))
    return total / 2
