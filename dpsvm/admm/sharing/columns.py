"""The columns of one party, and the products that the algorithm needs of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpsvm._arrays import Array
from dpsvm.privacy.preparation import row_norms


class Columns:
    """A matrix D of N samples and d features, dense or sparse, with its transpose at hand.

    A sparse matrix is kept in CSR, its transpose too, and is never made dense: what is dense is a
    Gram matrix, D'D or DD', whichever is smaller.

    >>> columns = Columns(np.array([[1.0, 2.0], [0.0, 1.0], [0.0, 0.0]]))
    >>> columns.gram()
    array([[1., 2.],
           [2., 5.]])
    """

    def __init__(self, matrix: Any, *, constant: bool = False) -> None:
        """Keep the matrix; ``constant`` appends a column of ones, whose weight is an intercept."""
        if sparse.issparse(matrix):
            rows = sparse.csr_array(matrix, dtype=np.float64)
            if constant:
                ones = sparse.csr_array(np.ones((rows.shape[0], 1)))
                rows = sparse.csr_array(sparse.hstack([rows, ones]))
            self.matrix: Any = rows
            self.transpose: Any = sparse.csr_array(rows.T)
        else:
            dense = np.asarray(matrix, np.float64)
            if constant:
                dense = np.column_stack([dense, np.ones(len(dense))])
            self.matrix = np.ascontiguousarray(dense)
            self.transpose = self.matrix.T
        self.constant = constant
        self.n_samples, self.n_features = map(int, self.matrix.shape)

    @property
    def wide(self) -> bool:
        """Whether there are more features than samples."""
        return self.n_features > self.n_samples

    def times(self, weights: Array) -> Array:
        """D x, one number per sample."""
        return np.asarray(self.matrix @ weights)

    def transposed_times(self, values: Array) -> Array:
        """D' v, one number per feature."""
        return np.asarray(self.transpose @ values)

    def gram(self) -> Array:
        """D'D, or DD' if that is smaller."""
        left, right = (self.matrix, self.transpose) if self.wide else (self.transpose, self.matrix)
        with np.errstate(over="ignore", invalid="ignore"):
            product = _dense(left @ right)
        if not np.all(np.isfinite(product)):
            raise ValueError("the columns are too large: sums of their products overflow")
        return product

    def gram_of(self, features: NDArray[np.bool_]) -> Array:
        """D'D of some of the features."""
        part = self.matrix[:, np.flatnonzero(features)]
        return _dense(part.T @ part)

    def squares(self) -> Array:
        """The squared norm of every column: the diagonal of D'D."""
        return row_norms(self.transpose) ** 2

    def scaled(self, factors: Array) -> Columns:
        """The columns, each times a factor."""
        if sparse.issparse(self.matrix):
            return Columns(sparse.csr_array(self.matrix @ sparse.diags_array(factors)))
        return Columns(self.matrix * factors)

    def row_norms(self) -> Array:
        """The norm of every sample's row, a constant column included."""
        return row_norms(self.matrix)

    def column_norms(self) -> Array:
        """The norm of every feature's column, a constant column left out."""
        norms = row_norms(self.transpose)
        return norms[:-1] if self.constant else norms


def predicted(columns: Sequence[Columns], weights: Iterable[Array]) -> Array:
    """sum_m D_m x_m, one number per sample."""
    parts = [own.times(x) for own, x in zip(columns, weights, strict=True)]
    return np.asarray(np.add.reduce(parts, axis=0))


def _dense(product: Any) -> Array:
    return np.asarray(product.toarray() if sparse.issparse(product) else product)
