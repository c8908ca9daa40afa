"""Public random sketches: what travels in the place of a column of n numbers.

J of m rows and n columns has independent N(0, 1/m) entries, so that (J a)'(J b) is a'b on average,
with a relative error of order 1/sqrt(m). It is drawn from a public seed before any data are seen,
and every participant has it. Replacing A and y by J A and J y everywhere, residual and labels
alike, gives the least squares of the sketched data,

    f_J(x) = |J A x - J y|^2 / (2 n),

a convex function, which Frank-Wolfe minimises like any other. (Keeping A'y exact and sketching the
rest would not be the gradient of anything.) Without a sketch J is the identity.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from dpsvm._arrays import Array
from dpsvm.frank_wolfe.checks import check_count
from dpsvm.frank_wolfe.sets import largest_eigenvalue

_WORD = 0x736B


class Sketch:
    """J, of m rows for n samples; the identity if no m is given.

    >>> Sketch(1000).of(np.ones(1000)).shape
    (1000,)
    >>> Sketch(1000, 50, seed=3).of(np.ones((1000, 2))).shape
    (50, 2)
    >>> Sketch(4).longest
    1.0
    """

    def __init__(self, n_samples: int, size: int | None = None, seed: int = 0) -> None:
        self.n_samples = check_count(n_samples, "n_samples")
        self.matrix: Array | None = None
        self._last: tuple[Array | None, Array] = (None, np.zeros(0))
        if size is not None:
            self.size = check_count(size, "the size of a sketch")
            # A word of its own, so that a seed used elsewhere too does not give the same numbers.
            rng = np.random.default_rng([check_count(seed, "sketch_seed", least=0), _WORD])
            self.matrix = rng.standard_normal((self.size, n_samples)) / np.sqrt(self.size)
        else:
            self.size = self.n_samples

    def of(self, table: Any) -> Any:
        """J times a vector or a table; sparse as it came if J is the identity."""
        if self.matrix is None:
            return table
        if sparse.issparse(table):
            return np.asarray((sparse.csr_array(table.T) @ self.matrix.T).T)
        return np.asarray(self.matrix @ table)

    def back(self, values: Array) -> Array:
        """J' v, one number for each sample; kept for the next party that asks the same."""
        if self.matrix is None:
            return values
        asked, answer = self._last
        if asked is None or not np.array_equal(asked, values):
            answer = np.asarray(self.matrix.T @ values)
            self._last = (values.copy(), answer)
        return answer

    @cached_property
    def longest(self) -> float:
        """The largest norm of a column of J: how far a change of one sample can go."""
        if self.matrix is None:
            return 1.0
        return float(np.sqrt(np.max(np.einsum("ij,ij->j", self.matrix, self.matrix))))

    @cached_property
    def leading(self) -> float:
        """The leading singular value of J."""
        if self.matrix is None:
            return 1.0
        return math.sqrt(largest_eigenvalue(self.matrix @ self.matrix.T))
