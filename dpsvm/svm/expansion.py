"""The kernel expansion a fitted machine decides with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm import _core
from dpsvm._arrays import Array
from dpsvm._csr import is_sparse
from dpsvm._result import Solution
from dpsvm.rows import FLOAT_TYPES, all_finite, core_rows
from dpsvm.svm.parameters import Parameters
from dpsvm.svm.voting import pair_count


class Expansion:
    """``sum_t coef_t K(x_t, x) - rho`` for every pair of classes, in LIBSVM's signs.

    The arrays may come from anywhere, even from a model altered after its fit: whatever does not
    fit together raises ValueError here, before the core reads it.

    >>> line = Expansion(
    ...     Parameters(machine="epsilon-svr", kernel="linear"),
    ...     support=[0], support_vectors=np.array([[2.0]]), n_support=np.array([1]),
    ...     dual_coef=np.array([[0.5]]), rho=np.array([-1.0]), columns=1,
    ... )
    >>> line.decision_values(np.array([[3.0]]), threads=1)
    array([[4.]])
    """

    def __init__(
        self,
        parameters: Parameters,
        *,
        support: Any,  # int[vectors], training rows; read for a precomputed kernel only
        support_vectors: Any,  # (vectors, columns); not read for a precomputed kernel
        n_support: Any,  # int[classes], vectors of each class; one number without classes
        dual_coef: Any,  # (classes - 1, vectors); one row without classes
        rho: Any,  # [pairs]; one number without classes
        columns: int,  # of the rows to decide; for a precomputed kernel, the training rows
        n_classes: int = 1,  # 1 without classes
        decision_range: Any = None,  # [pairs] over the training rows, if it is known
    ) -> None:
        self.parameters = parameters
        self.columns = columns
        self.n_support = _counts(n_support, n_classes)
        n_vectors = int(self.n_support.sum(dtype=np.int64))
        pairs = max(pair_count(n_classes), 1)
        self.dual_coef = _floats("dual_coef_", dual_coef, (max(n_classes - 1, 1), n_vectors))
        self.rho = _floats("intercept_", rho, (pairs,))
        self.decision_range: Array | None = decision_range
        self.support: NDArray[np.int32] | None = None
        self.support_vectors: Any = None
        if parameters.kernel == "precomputed":
            self.support = _indices("support_", support, n_vectors, columns)
        else:
            self.support_vectors = _vectors(support_vectors, (n_vectors, columns))

    @staticmethod
    def of(parameters: Parameters, solution: Solution, rows: Any) -> Expansion:
        """The expansion of a solution over the rows, or the kernel matrix, it was trained on."""
        precomputed = parameters.kernel == "precomputed"
        return Expansion(
            parameters,
            support=solution.support,
            support_vectors=None if precomputed else rows[solution.support],
            n_support=solution.n_support,
            dual_coef=solution.dual_coef,
            rho=solution.rho,
            columns=rows.shape[1],
            n_classes=len(solution.n_support),
            decision_range=np.array([report.decision_range for report in solution.reports]),
        )

    def decision_values(self, X: Any, *, threads: int) -> Array:
        """Return the decisions, of shape (rows, pairs), for rows in the core's form."""
        if X.shape[1] != self.columns:
            raise ValueError(f"expected {self.columns} columns, got {X.shape[1]}")
        decisions: Array = _core.decision_values(
            X,
            self.support_vectors,
            self.dual_coef,
            self.rho,
            self.n_support,
            support=self.support,
            decision_range=self.decision_range,
            machine=self.parameters.machine,
            threads=threads,
            **self.parameters.kernel_options(),
        )
        return decisions


def _counts(values: Any, size: int) -> NDArray[np.int32]:
    counts = np.asarray(values)
    if counts.shape != (size,) or counts.dtype.kind not in "iu":
        raise ValueError(f"n_support_ must be {size} integers, got {values!r}")
    if size and not 0 <= counts.min() <= counts.max() <= np.iinfo(np.int32).max:
        raise ValueError(f"n_support_ must be counts, got {values!r}")
    return counts.astype(np.int32)


def _indices(name: str, values: Any, size: int, limit: int) -> NDArray[np.int32]:
    indices = np.asarray(values)
    if indices.shape != (size,) or indices.dtype.kind not in "iu":
        raise ValueError(f"{name} must be {size} integers, got shape {indices.shape}")
    if size and not 0 <= indices.min() <= indices.max() < limit:
        raise ValueError(f"{name} must be from 0 to {limit - 1}")
    return indices.astype(np.int32)


def _floats(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    dense = values.toarray() if is_sparse(values) else np.asarray(values)
    if dense.shape != shape or dense.dtype.kind not in "fiu":
        got = f"shape {dense.shape} and type {dense.dtype}"
        raise ValueError(f"{name} must be numbers of shape {shape}, got {got}")
    if not np.isfinite(dense).all():
        raise ValueError(f"{name} must be finite")
    return np.ascontiguousarray(dense, dtype=np.float64)


def _vectors(values: Any, shape: tuple[int, int]) -> Any:
    got = f"shape {np.shape(values)} and type {getattr(values, 'dtype', type(values))}"
    if np.shape(values) != shape or getattr(values, "dtype", None) not in FLOAT_TYPES:
        raise ValueError(f"support_vectors_ must be floats of shape {shape}, got {got}")
    vectors = core_rows(values)
    if not all_finite(vectors):
        raise ValueError("support_vectors_ must be finite")
    return vectors
