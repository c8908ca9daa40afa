"""Data rows in the form the core takes, made without touching the caller's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsvm._csr import Csr, is_sparse

FLOAT_TYPES = (np.float64, np.float32)
"""The element types that are kept as they are; the first is what all others become."""


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


def scale_gamma(X: Any) -> float:
    """Return gamma for ``gamma='scale'``: 1 / (features x variance), or 1 for constant data.

    >>> scale_gamma(np.array([[0.0], [1.0]]))
    4.0
    """
    with np.errstate(over="ignore", invalid="ignore"):  # the core refuses rows so large
        variance = _sparse_variance(X) if is_sparse(X) else X.var(dtype=np.float64)
    return 1.0 / (X.shape[1] * float(variance)) if variance != 0 else 1.0


def _sparse_variance(X: Any) -> np.float64:
    """The variance of all entries about their mean, in double precision, the zeros counted."""
    size = np.float64(X.shape[0] * X.shape[1])
    mean = X.data.sum(dtype=np.float64) / size
    deviations = np.subtract(X.data, mean, dtype=np.float64)
    squares = np.square(deviations, out=deviations).sum()
    return np.float64((squares + (size - X.data.size) * mean**2) / size)
