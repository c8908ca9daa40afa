"""Platt's sigmoids of a classifier, by the folds of the LIBSVM inside scikit-learn."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.svm.expansion import Expansion
from dpsvm.svm.platt import held_out_sigmoid
from dpsvm.svm.solving import CoreFit
from dpsvm.svm.validation import MersenneRandom, Rows

Floats = NDArray[np.float64]

# Of the largest nu of a fold, at which all coefficients of a class are at their bounds and the
# offset is left open.
_NU_SHARE = 0.99


def pair_sigmoids(
    solve: CoreFit,
    problem: Any,  # rows, or their kernel matrix
    codes: Floats,  # [rows] of the classes
    *,
    weight: Floats | None,  # [rows]
    class_weight: Floats,  # [classes]
    seed: int,
) -> tuple[Floats, Floats]:
    """Return the sigmoids ``(a, b)`` of all pairs of classes, in LIBSVM's order.

    Every pair is shuffled anew from the seed, and the second class of a pair comes first in its
    folds: so does scikit-learn, and so its numbers come out.

    >>> from dpsvm.svm.parameters import Parameters
    >>> solve = CoreFit(Parameters(kernel="linear"), threads=1)
    >>> rows, codes = np.arange(20.0)[:, None], np.repeat([0.0, 1.0], 10)
    >>> a, b = pair_sigmoids(solve, rows, codes, weight=None, class_weight=np.ones(2), seed=0)
    >>> a.shape, bool(a[0] < 0)
    ((1,), True)
    """
    groups = [np.flatnonzero(codes == code) for code in range(len(class_weight))]
    sigmoids = []
    for i, j in combinations(range(len(groups)), 2):
        folds = _Folds(solve, problem, groups[i], groups[j], weight, class_weight[[j, i]])
        sigmoids.append(held_out_sigmoid(folds.positive, MersenneRandom(seed), folds.decide))
    a, b = np.array(sigmoids).T
    return a, b


class _Folds:
    """The machines that tell one pair of classes apart, trained without some of its rows."""

    def __init__(
        self,
        solve: CoreFit,
        problem: Any,
        first: Rows,
        second: Rows,
        weight: Floats | None,
        class_weight: Floats,  # of the second class and of the first
    ) -> None:
        self.positive = np.arange(len(first) + len(second)) < len(first)
        self._solve = solve
        self._problem = problem
        self._pair = np.concatenate([first, second])
        self._weight = weight
        self._class_weight = class_weight
        self._precomputed = solve.parameters.kernel == "precomputed"

    def decide(self, rows: Rows, held_out: Rows) -> Floats:
        """Return the decisions on the rows held out, positive for the first class."""
        if not len(held_out):
            return np.empty(0)
        trained, asked = self._pair[rows], self._pair[held_out]
        weight = None if self._weight is None else self._weight[trained]
        problem = self._between(trained, trained)
        solution = self._solve(
            problem,
            self.positive[rows].astype(np.float64),
            weight=weight,
            class_weight=self._class_weight,
            nu=self._nu(self.positive[rows], weight),
        )
        machine = Expansion(
            self._solve.parameters,
            support=solution.support,
            support_vectors=None if self._precomputed else problem[solution.support],
            n_support=solution.n_support,
            dual_coef=solution.dual_coef,
            rho=solution.rho,
            columns=problem.shape[1],
            n_classes=2,
            decision_range=np.array([solution.reports[0].decision_range]),
        )
        queries = self._between(asked, trained)
        return -machine.decision_values(queries, threads=self._solve.threads)[:, 0]

    def _between(self, rows: Rows, others: Rows) -> Any:
        """Return rows, or of a kernel matrix their kernel with the others."""
        return self._problem[np.ix_(rows, others) if self._precomputed else rows]

    def _nu(self, positive: NDArray[np.bool_], weight: Floats | None) -> float | None:
        """Return nu, lowered where the fold has too few rows of one class for it."""
        if self._solve.parameters.machine != "nu-svc":
            return None
        weight = np.ones(len(positive)) if weight is None else weight
        scarce = min(weight[positive].sum(), weight[~positive].sum())
        largest = float(2.0 * scarce / weight.sum())
        nu = self._solve.parameters.nu
        return nu if nu < largest else _NU_SHARE * largest
