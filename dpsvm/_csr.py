"""Compressed sparse rows without scipy, whose import takes longer than training on a small file.

The command line reads, splits, scales and writes with these alone; a user is given scipy's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Integers = NDArray[np.integer[Any]]
Arrays = tuple[NDArray[Any], Integers, Integers]


class Csr:
    """Rows whose columns ascend, as the core takes them; made, and spelt, like scipy's csr_array.

    The maker vouches for the arrays (they come from the file reader, or from another Csr): nothing
    is checked.

    >>> X = Csr((np.array([5.0, 7.0]), np.array([2, 0]), np.array([0, 1, 1, 2])), shape=(3, 3))
    >>> X[[2, 0]].toarray()
    array([[7., 0., 0.],
           [0., 0., 5.]])
    """

    def __init__(self, arrays: Arrays, shape: tuple[int, int]) -> None:
        data, indices, indptr = arrays
        index = np.int32 if max(len(data), shape[1]) <= np.iinfo(np.int32).max else np.int64
        self.data = data
        self.indices: Integers = indices.astype(index, copy=False)
        self.indptr: Integers = indptr.astype(index, copy=False)
        self.shape = shape

    @staticmethod
    def of(X: Any) -> Csr:
        """X, which scipy may have to put in order, in double precision.

        >>> Csr.of([[0.0, 2.0]]).indices.tolist()
        [1]
        """
        if isinstance(X, Csr):
            return X
        if is_sparse(X):
            X = X.tocsr().astype(np.float64, copy=False)
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            return Csr((X.data, X.indices, X.indptr), shape=X.shape)
        dense = np.atleast_2d(np.asarray(X, dtype=np.float64))
        if dense.ndim != 2:
            raise ValueError(f"expected a matrix, got {dense.ndim} dimensions")
        rows, columns = np.nonzero(dense)
        return Csr((dense[rows, columns], columns, _offsets(rows, len(dense))), shape=dense.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """The entries."""
        return len(self.data)

    def __getitem__(self, rows: Any) -> Csr:
        """Some rows: a slice of consecutive ones, or their numbers."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.shape[0])
            indptr = self.indptr[start : stop + 1]
            entries: Any = slice(indptr[0], indptr[-1])
            indptr = indptr - indptr[0]
        else:
            chosen = np.asarray(rows, dtype=np.intp)
            starts = self.indptr[chosen].astype(np.int64)
            counts = self.indptr[chosen + 1] - starts
            indptr = np.concatenate([[0], np.cumsum(counts)])
            entries = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
        arrays = (self.data[entries], self.indices[entries], indptr)
        return Csr(arrays, shape=(len(indptr) - 1, self.shape[1]))

    def columns(self, ascending: NDArray[np.int64]) -> NDArray[Any]:
        """Some columns, each once, as a dense array.

        >>> Csr.of([[5.0, 6.0, 7.0]]).columns(np.array([0, 2]))
        array([[5., 7.]])
        """
        result = np.zeros((self.shape[0], len(ascending)), dtype=self.dtype)
        slots = np.searchsorted(ascending, self.indices)
        held = np.flatnonzero(slots < len(ascending))
        held = held[ascending[slots[held]] == self.indices[held]]
        result[self._rows()[held], slots[held]] = self.data[held]
        return result

    def toarray(self) -> NDArray[Any]:
        """All columns, as a dense array."""
        result = np.zeros(self.shape, dtype=self.dtype)
        result[self._rows(), self.indices] = self.data
        return result

    def widened(self, n_columns: int) -> Csr:
        """The same rows, of so many columns, which hold all entries."""
        arrays = (self.data, self.indices, self.indptr)
        return Csr(arrays, shape=(self.shape[0], n_columns))

    def without_zeros(self) -> Csr:
        """The entries that are not zero.

        >>> X = Csr((np.array([0.0, 2.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
        >>> X.without_zeros().nnz
        1
        """
        kept = self.data != 0.0
        arrays = (self.data[kept], self.indices[kept], _offsets(self._rows()[kept], self.shape[0]))
        return Csr(arrays, shape=self.shape)

    def _rows(self) -> NDArray[np.int64]:
        """The row of each entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    def to_scipy(self) -> csr_array:
        """The same rows for a user, sharing their arrays."""
        from scipy.sparse import csr_array

        return csr_array((self.data, self.indices, self.indptr), shape=self.shape)


def _offsets(rows: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
    """indptr, from the row of each entry, ascending."""
    return np.searchsorted(rows, np.arange(n_rows + 1))


def is_sparse(X: Any) -> bool:
    """Whether X is a matrix of scipy's, which is asked only where X is no plain array.

    >>> is_sparse(np.eye(2))
    False
    """
    if isinstance(X, (np.ndarray, Csr)):
        return False
    from scipy.sparse import issparse

    return bool(issparse(X))
