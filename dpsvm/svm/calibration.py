"""Platt's sigmoids of a classifier, by the folds of the LIBSVM inside scikit-learn."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm._arrays import Array
from dpsvm.svm.expansion import Expansion
from dpsvm.svm.parameters import Parameters
from dpsvm.svm.probability import held_out_sigmoid
from dpsvm.svm.solving import CoreFit
from dpsvm.svm.validation import MersenneRandom, Rows

# Of the largest nu of a fold, at which all coefficients of a class are at their bounds and the
# offset is left open.
_NU_SHARE = 0.99


def pair_sigmoids(
    solve: CoreFit,
    problem: Any,  # rows, or their kernel matrix
    rows: Rows,  # [n] of the training
    codes: Array,  # [n] of their classes
    *,
    weight: Array | None,  # [n]
    class_weight: Array,  # [classes]
    seed: int,
) -> tuple[Array, Array]:
    """Return the sigmoids ``(a, b)`` of all pairs of classes, in LIBSVM's order.

    Every pair is shuffled anew from the seed, and the second class of a pair comes first in its
    folds: so does scikit-learn, and so its numbers come out.

    >>> from dpsvm.svm.parameters import Parameters
    >>> solve = CoreFit(Parameters(kernel="linear"), threads=1)
    >>> X, rows, codes = np.arange(20.0)[:, None], np.arange(20), np.repeat([0.0, 1.0], 10)
    >>> a, b = pair_sigmoids(solve, X, rows, codes, weight=None, class_weight=np.ones(2), seed=0)
    >>> a.shape, bool(a[0] < 0)
    ((1,), True)
    """
    groups = [np.flatnonzero(codes == code) for code in range(len(class_weight))]

    def sigmoid(i: int, j: int) -> tuple[float, float]:
        pair = np.concatenate([groups[i], groups[j]])
        positive = codes[pair] == i

        def decide(trained: Rows, held_out: Rows) -> Array:
            if not len(held_out):
                return np.empty(0)
            own = None if weight is None else weight[pair[trained]]
            solution = solve(
                problem,
                positive[trained].astype(np.float64),
                rows=rows[pair[trained]],
                weight=own,
                class_weight=class_weight[[j, i]],
                nu=_feasible_nu(solve.parameters, positive[trained], own),
            )
            machine = Expansion.of(solve.parameters, solution, problem)
            asked = problem[rows[pair[held_out]]]
            return -machine.decision_values(asked, threads=solve.threads)[:, 0]

        return held_out_sigmoid(positive, MersenneRandom(seed), decide)

    a, b = np.array([sigmoid(i, j) for i, j in combinations(range(len(groups)), 2)]).T
    return a, b


def _feasible_nu(
    parameters: Parameters, positive: NDArray[np.bool_], weight: Array | None
) -> float | None:
    """Return nu, lowered where a fold has too few rows of one class for it; None without nu."""
    if parameters.machine != "nu-svc":
        return None
    weight = np.ones(len(positive)) if weight is None else weight
    scarce = min(weight[positive].sum(), weight[~positive].sum())
    largest = float(2.0 * scarce / weight.sum())
    return parameters.nu if parameters.nu < largest else _NU_SHARE * largest
