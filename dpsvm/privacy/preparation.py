"""From the caller's rows to rows of norm at most 1, by public numbers alone.

Every mechanism here rests on one fact: no row it sees is longer than 1. Three steps see to that,
and none of them looks at more than one row at a time.

1. A row longer than ``data_norm`` is shortened to it. How many were is never said.
2. Linear: the row is divided by ``data_norm``. Radial basis functions: it becomes random Fourier
   features, whose norm is 1 by construction.
3. The bias is the weight of a constant feature s, regularised like the others, and the whole row is
   divided by the constant sqrt(1 + s^2). An unregularised bias would have no bounded sensitivity;
   dividing each row by its own norm would be another function of the record.

Rounding: norms are computed in floating point, so rows are divided by 1 + 2**-30 more than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsvm._arrays import Array

_SLACK = 1.0 + 2.0**-30
_BLOCK = 2**20  # numbers that are squared at once
_FEATURES = 0x52464621  # keeps the stream of the features apart from any noise of the same seed


def clip_rows(X: Any, data_norm: float) -> Any:
    """Rows longer than ``data_norm`` shortened to it, in a copy if there are any.

    Each row is a function of itself alone: rows that differ in one record before differ in that
    record after. A row whose norm is beyond the largest number becomes 0.

    >>> clip_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    norms = row_norms(X)
    long = ~(norms <= data_norm)
    if not long.any():
        return X
    # By the row's own unit first: data_norm / norm may be too small for a float to be exact.
    unit = np.where(long & np.isfinite(norms), norms, np.where(long, np.inf, 1.0))
    factor = np.where(long, data_norm, 1.0)
    if sp.issparse(X):
        clipped, entries = X.copy(), np.diff(X.indptr)
        clipped.data = _quotient(X.data, np.repeat(unit, entries)) * np.repeat(factor, entries)
        return clipped
    return _quotient(X, unit[:, None]) * factor[:, None]


def clip_columns(X: Any, column_norm: float) -> Any:
    """Columns longer than ``column_norm`` shortened to it, each a function of itself alone.

    >>> clip_columns(np.array([[3.0, 0.3], [4.0, 0.4]]), 1.0)
    array([[0.6, 0.3],
           [0.8, 0.4]])
    """
    if sp.issparse(X):
        return sp.csr_array(clip_rows(sp.csr_array(X.T), column_norm).T)
    return np.ascontiguousarray(clip_rows(X.T, column_norm).T)


def _quotient(values: Array, unit: Array) -> Array:
    """values / unit, and 0 where the unit is infinite."""
    found = np.zeros(np.broadcast_shapes(values.shape, unit.shape))
    return np.divide(values, unit, out=found, where=np.isfinite(unit))


def row_norms(X: Any) -> Array:
    """The norm of every row, without overflow; infinite where a row is not finite.

    Squares are added in pairs, whatever the order of X in memory: the error is some tens of units
    of rounding for rows of any length, which :data:`~dpsvm.privacy.rounding.OVER` covers.

    >>> row_norms(sp.csr_array([[3e200, 4e200], [0.0, 0.0]]))
    array([5.e+200, 0.e+000])
    """
    if sp.issparse(X):
        norms = np.zeros(X.shape[0])
        filled = np.flatnonzero(np.diff(X.indptr))
        if len(filled):
            starts, size = X.indptr[filled], np.abs(X.data)
            unit = _unit(np.maximum.reduceat(size, starts))
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                shares = (size / np.repeat(unit, np.diff(X.indptr)[filled])) ** 2
                norms[filled] = unit * np.sqrt(np.add.reduceat(shares, starts))
    else:
        norms = np.empty(len(X))
        step = max(1, _BLOCK // max(1, X.shape[1]))
        for start in range(0, len(X), step):
            block = np.ascontiguousarray(X[start : start + step])  # pairs are added along it
            unit = _unit(np.abs(block).max(axis=1))
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                squares = np.square(block / unit[:, None]).sum(axis=1)
                norms[start : start + step] = unit * np.sqrt(squares)
    return np.where(np.isfinite(norms), norms, np.inf)


def _unit(largest: Array) -> Array:
    """What rows are divided by before they are squared."""
    return np.where(largest > 0, largest, 1.0)


@dataclass(frozen=True)
class RandomFourierFeatures:
    """Features whose inner products approximate exp(-gamma |x - x'|^2) (Rahimi and Recht 2007).

    The features of x are the pairs cos(f . x), sin(f . x) of ``n_components`` frequencies f, all
    divided by sqrt(n_components): cos^2 + sin^2 = 1 makes their norm exactly 1. (One cosine with a
    random phase for each frequency would have a norm of up to sqrt 2.) The frequencies are normal
    of variance 2 gamma and follow from the seed, never from data.

    >>> features = RandomFourierFeatures(n_features=2, n_components=3, gamma=0.5, seed=0)
    >>> row = features(np.array([[1.0, 2.0]]))
    >>> row.shape, round(float(np.linalg.norm(row)), 12)
    ((1, 6), 1.0)
    """

    n_features: int
    n_components: int
    gamma: float
    seed: int

    @cached_property
    def frequencies(self) -> Array:
        """Of shape (n_features, n_components)."""
        random = np.random.default_rng(np.random.SeedSequence([_FEATURES, self.seed]))
        draws = random.standard_normal((self.n_features, self.n_components))
        return np.asarray(math.sqrt(2.0 * self.gamma) * draws)

    def __call__(self, X: Any) -> Array:
        """The features of every row, of shape (rows, 2 n_components)."""
        angles = np.asarray(X @ self.frequencies)
        size = math.sqrt(self.n_components)
        return np.hstack([np.cos(angles), np.sin(angles)]) / size

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Preparation:
    """What is done to every row before a mechanism sees it; all of it public.

    >>> prepare = Preparation(data_norm=5.0, constant=1.0)
    >>> prepare(np.array([[3.0, 4.0], [30.0, 40.0]])).round(4)
    array([[0.4243, 0.5657, 0.7071],
           [0.4243, 0.5657, 0.7071]])
    """

    data_norm: float
    constant: float = 1.0  # s, the appended feature; 0 for no bias
    features: RandomFourierFeatures | None = None

    @property
    def scale(self) -> float:
        """What the features are divided by; the constant feature by the same but data_norm."""
        return self._norm * (1.0 if self.features else self.data_norm)

    @property
    def _norm(self) -> float:
        return math.sqrt(1.0 + self.constant**2) * _SLACK

    def dimension(self, n_features: int) -> int:
        """The number of weights for rows of so many features.

        >>> Preparation(data_norm=1.0).dimension(13)
        14
        """
        wide = 2 * self.features.n_components if self.features else n_features
        return wide + (self.constant > 0)

    def __call__(self, X: Any) -> Any:
        """Rows of norm at most 1; CSR stays CSR unless it becomes random features."""
        rows = clip_rows(X, self.data_norm)
        if self.features:
            rows = self.features(rows)
        rows = rows * (1.0 / self.scale)
        if self.constant == 0.0:
            return rows
        column = np.full((rows.shape[0], 1), self.constant / self._norm)
        if sp.issparse(rows):
            return sp.hstack([rows, sp.csr_array(column)], format="csr")
        return np.hstack([rows, column])

    def unprepare(self, weights: Array) -> tuple[Array, Array]:
        """Coefficients of the features as given (or of the random ones), and intercepts.

        >>> prepare = Preparation(data_norm=5.0, constant=1.0)
        >>> X, w = np.array([[3.0, 4.0]]), np.array([[1.0, 2.0, 3.0]])
        >>> coef, intercept = prepare.unprepare(w)
        >>> bool(np.allclose(X @ coef.T + intercept, prepare(X) @ w.T))
        True
        """
        if self.constant == 0.0:
            return weights / self.scale, np.zeros(len(weights))
        return weights[:, :-1] / self.scale, weights[:, -1] * (self.constant / self._norm)
