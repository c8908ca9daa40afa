"""The coefficients of the last fit, for the next one to continue from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.svm.expansion import Expansion

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Previous:
    """What a fit left behind.

    >>> from dpsvm import SVC
    >>> machine = SVC(C=1.0, kernel="linear").fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    >>> before = Previous(machine._expansion(), machine.support_, 3, machine.classes_, False)
    >>> before.coefficients(3, machine.classes_, C=1.0).tolist()
    [[0.0, 1.0, -1.0]]
    >>> before.coefficients(4, machine.classes_, C=1.0) is None
    True
    """

    expansion: Expansion
    support: NDArray[np.int32]  # [vectors] rows of the training data
    n_rows: int  # of the training data
    classes: NDArray[Any] | None  # of a classifier
    bounded: bool  # most of the support vectors are at their bounds

    def coefficients(self, n_rows: int, classes: NDArray[Any] | None, C: float) -> Floats | None:
        """Return the coefficient of every row, in the core's layout; None if there is no telling.

        With a new C those at their bounds move along, so where most are, all are scaled with C.
        """
        if n_rows != self.n_rows or not np.array_equal(
            [] if self.classes is None else self.classes, [] if classes is None else classes
        ):
            return None
        scales = self.bounded and math.isfinite(C)
        factor = C / self.expansion.parameters.C if scales else 1.0
        table = np.zeros((len(self.expansion.dual_coef), n_rows))
        table[:, self.support] = factor * self.expansion.dual_coef
        return table
