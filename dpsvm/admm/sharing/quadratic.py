"""Quadratic functions of weights, as a party's steps meet them, and the systems they lead to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

from dpsvm.admm.sharing.columns import Columns

Array = NDArray[np.float64]

_ROUNDING = 4.0 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Quadratic:
    """x'Qx / 2 with Q = D'D + diag(s).

    >>> quadratic = Quadratic.of(Columns(np.array([[1.0, 2.0]]))).shifted(0.5)
    >>> quadratic.times(np.array([1.0, 1.0]))
    array([3.5, 6.5])
    >>> quadratic.among(np.array([True, False]))
    array([[1.5]])
    """

    columns: Columns
    gram: Array | None  # D'D; None for wide columns
    diagonal: Array  # of D'D
    largest: float  # at least the largest eigenvalue of D'D
    spread: float  # and, if all columns had norm 1 or 0, of that
    shift: Array  # s, a number per feature

    @classmethod
    def of(cls, columns: Columns) -> Quadratic:
        """The quadratic of columns, s being 0."""
        gram, diagonal = columns.gram(), columns.squares()
        scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        wide = columns.wide
        even = columns.scaled(1.0 / scale).gram() if wide else gram / np.outer(scale, scale)
        spread, none = _largest(even), np.zeros(columns.n_features)
        return cls(columns, None if wide else gram, diagonal, _largest(gram), spread, none)

    def shifted(self, shift: float | Array) -> Quadratic:
        """The same with another s."""
        return replace(self, shift=np.broadcast_to(shift, self.shift.shape))

    def units(self) -> tuple[Array, float]:
        """The unit of each feature that makes Q's diagonal 1, and a bound on Q's eigenvalues then.

        D'D is at most spread times its diagonal, so Q is at most max(spread, 1) times its own.
        """
        diagonal = self.diagonal + self.shift
        return np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), max(self.spread, 1.0)

    def one_unit(self) -> tuple[Array, float]:
        """The unit 1 for every feature, and a bound on Q's eigenvalues."""
        return np.ones(len(self.shift)), self.largest + float(self.shift.max(initial=0.0))

    def times(self, x: Array) -> Array:
        """Q x."""
        if self.gram is not None:
            return np.asarray(self.gram @ x + self.shift * x)
        return self.columns.transposed_times(self.columns.times(x)) + self.shift * x

    def among(self, features: NDArray[np.bool_]) -> Array:
        """Q of some of the features."""
        if self.gram is not None:
            block = self.gram[np.ix_(features, features)]
        else:
            block = self.columns.gram_of(features)
        block[np.diag_indices_from(block)] += self.shift[features]
        return block


def _largest(gram: Array) -> float:
    """The largest eigenvalue, rounded up."""
    last = len(gram) - 1
    return float(eigh(gram, eigvals_only=True, subset_by_index=[last, last])[0]) * (1.0 + 1e-10)


class Definite:
    """Solves systems with one symmetric matrix that is positive definite, but for rounding.

    >>> Definite(np.array([[2.0, 0.0], [0.0, 4.0]])).solve(np.array([2.0, 2.0]))
    array([1. , 0.5])
    """

    def __init__(self, system: Array) -> None:
        """Factor the matrix, by Cholesky or, where that breaks down, by its eigenvectors."""
        self._factor: tuple[Array, bool] | None = None
        try:
            self._factor = cho_factor(system, lower=True)
        except np.linalg.LinAlgError:
            values, self._vectors = eigh(system)
            self._values = np.maximum(values, len(values) * _ROUNDING * values[-1])

    def solve(self, right: Array) -> Array:
        """The solution for one right side."""
        if len(right) == 0:  # which scipy solves from 1.14 on
            return np.zeros(0)
        if self._factor is not None:
            return np.asarray(cho_solve(self._factor, right, check_finite=False))
        return np.asarray(self._vectors @ ((self._vectors.T @ right) / self._values))
