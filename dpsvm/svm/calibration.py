"""Platt's sigmoids of a classifier, by the folds of the LIBSVM inside scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.svm.expansion import Expansion
from dpsvm.svm.probability import held_out_sigmoid
from dpsvm.svm.solving import CoreFit
from dpsvm.svm.validation import MersenneRandom, Rows

Floats = NDArray[np.float64]

# Of the largest nu of a fold, at which all coefficients of a class are at their bounds and the
# offset is left open.
_NU_SHARE = 0.99


def pair_sigmoids(
    solve: CoreFit,
    problem: Any,  # rows, or their kernel matrix
    rows: Rows,  # [n] of the training
    codes: Floats,  # [n] of their classes
    *,
    weight: Floats | None,  # [n]
    class_weight: Floats,  # [classes]
    seed: int,
) -> tuple[Floats, Floats]:
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
    sigmoids = []
    for i, j in combinations(range(len(groups)), 2):
        pair = np.concatenate([groups[i], groups[j]])
        folds = _Folds(
            solve,
            problem,
            rows[pair],
            codes[pair] == i,
            None if weight is None else weight[pair],
            class_weight[[j, i]],
        )
        sigmoids.append(held_out_sigmoid(folds.positive, MersenneRandom(seed), folds.decide))
    a, b = np.array(sigmoids).T
    return a, b


@dataclass(frozen=True, eq=False)
class _Folds:
    """The machines that tell one pair of classes apart, trained without some of its rows."""

    solve: CoreFit
    problem: Any
    rows: Rows  # of the pair
    positive: NDArray[np.bool_]  # which of them are of its first class
    weight: Floats | None
    class_weight: Floats  # of the second class and of the first

    def decide(self, trained: Rows, held_out: Rows) -> Floats:
        """Return the decisions on the rows held out, positive for the first class."""
        if not len(held_out):
            return np.empty(0)
        positive = self.positive[trained]
        weight = None if self.weight is None else self.weight[trained]
        solution = self.solve(
            self.problem,
            positive.astype(np.float64),
            rows=self.rows[trained],
            weight=weight,
            class_weight=self.class_weight,
            nu=self._nu(positive, weight),
        )
        machine = Expansion.of(self.solve.parameters, solution, self.problem)
        asked = self.problem[self.rows[held_out]]
        return -machine.decision_values(asked, threads=self.solve.threads)[:, 0]

    def _nu(self, positive: NDArray[np.bool_], weight: Floats | None) -> float | None:
        """Return nu, lowered where the fold has too few rows of one class for it."""
        if self.solve.parameters.machine != "nu-svc":
            return None
        weight = np.ones(len(positive)) if weight is None else weight
        scarce = min(weight[positive].sum(), weight[~positive].sum())
        largest = float(2.0 * scarce / weight.sum())
        nu = self.solve.parameters.nu
        return nu if nu < largest else _NU_SHARE * largest
