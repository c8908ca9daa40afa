"""Data rows in the form the core takes, made without touching the caller's arrays.

Rows may be mapped from a file larger than memory: what looks at all of them does so in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm._csr import Csr, is_sparse

FLOAT_TYPES = (np.float64, np.float32)
"""The element types that are kept as they are; the first is what all others become."""

_BLOCK = 1 << 16  # numbers looked at together


def core_rows(X: Any) -> Any:
    """Return X as an aligned C-ordered array, or as CSR with sorted indices and no duplicates.

    A CSR matrix is looked at afresh instead of trusting the flags it carries, since the core relies
    on its indices being in range; a malformed one raises ValueError.

    >>> from scipy.sparse import csr_array
    >>> X = csr_array((np.ones(2), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    >>> core_rows(X).indices, X.indices
    (array([0, 1]), array([1, 0]))
    """
    if isinstance(X, Csr):
        return X
    if not is_sparse(X):
        return np.require(np.asarray(X), requirements=["C", "A"])
    if X.format != "csr":
        raise ValueError(f"expected CSR rows, got the sparse format {X.format!r}")
    rows = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
    rows.check_format(full_check=True)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def lies_in_rows(X: Any) -> bool:
    """Whether the core reads X where it is: an array of floats, the entries of a row side by side.

    >>> X = np.zeros((4, 2))
    >>> lies_in_rows(X), lies_in_rows(X[::2]), lies_in_rows(X.T)
    (True, True, False)
    """
    return (
        isinstance(X, np.ndarray)
        and X.ndim == 2
        and X.dtype in FLOAT_TYPES
        and X.flags.aligned
        and (X.shape[1] == 1 or X.strides[1] == X.itemsize)
        and X.strides[0] % X.itemsize == 0
    )


def rows_to_read(X: Any) -> Any:
    """Return :func:`core_rows` of X, or X itself, uncopied, where the core reads it as it lies."""
    return np.asarray(X) if lies_in_rows(X) else core_rows(X)


def all_finite(X: Any) -> bool:
    """Whether rows in the core's form hold neither NaN nor infinity.

    >>> all_finite(np.array([[0.0], [np.inf]]))
    False
    """
    return all(bool(np.isfinite(block).all()) for block in _blocks(_numbers(X)))


def scale_gamma(X: Any) -> float:
    """Return gamma for ``gamma='scale'``: 1 / (features x variance), or 1 for constant data.

    For dense rows the variance is that of ``X.astype(np.float64).var()``, with numpy 2 to the bit.

    >>> scale_gamma(np.array([[0.0], [1.0]]))
    4.0
    """
    with np.errstate(over="ignore", invalid="ignore"):  # the core refuses rows so large
        variance = _variance(_numbers(X), X.shape[0] * X.shape[1])
    return 1.0 / (X.shape[1] * float(variance)) if variance != 0 else 1.0


def _numbers(X: Any) -> Any:
    """All stored entries in one dimension, where they are; slices of it may be copies."""
    if not isinstance(X, np.ndarray):
        return X.data
    return X.reshape(-1) if X.flags.c_contiguous else X.flat


def _blocks(numbers: Any) -> Iterator[Any]:
    return (numbers[at : at + _BLOCK] for at in range(0, len(numbers), _BLOCK))


def _variance(numbers: Any, size: int) -> np.float64:
    """The variance of `size` numbers about their mean, those that are not given being zeros."""
    every = 0, len(numbers)
    mean = _sum_of(numbers, lambda block: block, *every) / np.float64(size)
    squares = _sum_of(numbers, lambda block: np.square(block - mean), *every)
    zeros = size - len(numbers)
    return (squares + zeros * mean**2 if zeros else squares) / np.float64(size)


def _sum_of(numbers: Any, of: Callable[[Array], Array], begin: int, end: int) -> np.float64:
    """The sum ``of(numbers[begin:end]).sum()`` in double precision, to the bit, by blocks.

    numpy adds a contiguous array by halves, the first a multiple of 8, and so down to 128 numbers:
    a part that this halving comes to has the same sum alone.
    """
    n = end - begin
    if n <= _BLOCK:
        return np.float64(of(numbers[begin:end].astype(np.float64, copy=False)).sum())
    middle = begin + n // 2 - n // 2 % 8
    return _sum_of(numbers, of, begin, middle) + _sum_of(numbers, of, middle, end)
