"""The two-class data a comparison trains on, in LIBSVM's class order, and their plain facts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from dpsvm.rows import FLOAT_TYPES, core_rows
from dpsvm.svm.training import grouped_by_class
from dpsvm.svm.validation import Rows


@dataclass(frozen=True)
class Facts:
    """What the paper's Table 2 tells of a data set.

    >>> Dataset.of([[0.0], [1.0], [4.0]], [-1, 1, 1]).facts.imbalance
    2.0
    """

    name: str
    rows: int
    features: int
    low: float
    high: float
    imbalance: float  # rows of the larger class for one of the smaller
    positives: int


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and class codes: code 0 is the class LIBSVM puts first.

    The positive class of precision, recall and AUC is the larger label, which is +1 of {-1, +1}.

    >>> data = Dataset.of([[0.0], [1.0], [2.0]], [-1, 1, -1])
    >>> data.codes.tolist(), data.positive.tolist()
    ([1.0, 0.0, 1.0], [False, True, False])
    """

    name: str
    X: Any
    codes: NDArray[np.float64]
    labels: tuple[Any, Any]  # by code

    @staticmethod
    def of(X: Any, y: ArrayLike, name: str = "data") -> Dataset:
        """The data of two arrays; ValueError unless there are two classes."""
        rows = core_rows(check_array(X, accept_sparse="csr", dtype=list(FLOAT_TYPES), order="C"))
        given = np.asarray(y)
        if given.shape != (rows.shape[0],):
            raise ValueError(f"y must hold one label per row, got {given.shape} for {rows.shape}")
        labels, codes = _in_order(given)
        return Dataset(name, rows, codes, labels)

    @staticmethod
    def breast_cancer() -> Dataset:
        """scikit-learn's breast-cancer data, scaled to [-1, 1]."""
        from sklearn.datasets import load_breast_cancer
        from sklearn.preprocessing import minmax_scale

        X, y = load_breast_cancer(return_X_y=True)
        return Dataset.of(minmax_scale(X, (-1, 1)), y, "breast-cancer (scikit-learn)")

    def coded(self, X: Any, y: ArrayLike, name: str = "test") -> Dataset:
        """Held-out rows with their labels coded as here; ValueError at a label not seen here."""
        rows = core_rows(check_array(X, accept_sparse="csr", dtype=list(FLOAT_TYPES), order="C"))
        given = np.asarray(y)
        if rows.shape != (given.size, self.X.shape[1]):
            raise ValueError(f"{name}: expected {self.X.shape[1]} features, got {rows.shape}")
        known = np.isin(given, self.labels)
        if not known.all():
            raise ValueError(f"{name}: label {given[~known][0]} is not in {self.name}")
        codes = np.where(given == self.labels[0], 0.0, 1.0)
        return Dataset(name, rows, codes, self.labels)

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Which rows are of the positive class."""
        return np.asarray(self.codes == self.positive_code)

    @property
    def positive_code(self) -> int:
        """The code of the positive class."""
        return int(self.labels[1] > self.labels[0])

    @property
    def groups(self) -> list[Rows]:
        """The rows of each class."""
        return [np.flatnonzero(self.codes == code) for code in (0, 1)]

    @cached_property
    def facts(self) -> Facts:
        """Rows, features, range and imbalance."""
        n, d = self.X.shape
        sizes = sorted(len(rows) for rows in self.groups)
        low, high = (float(self.X.min()), float(self.X.max())) if d else (0.0, 0.0)
        positives = int(np.count_nonzero(self.positive))
        return Facts(self.name, n, d, low, high, sizes[1] / max(sizes[0], 1), positives)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of rows and codes: the same data, whatever they are called."""
        digest = hashlib.sha256(repr(self.X.shape).encode())
        parts = (self.X.data, self.X.indices, self.X.indptr) if sp.issparse(self.X) else (self.X,)
        for part in (*parts, self.codes):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:16]


def _in_order(y: NDArray[Any]) -> tuple[tuple[Any, Any], NDArray[np.float64]]:
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y holds NaN or infinity")
    values, inverse = np.unique(y, return_inverse=True)
    if len(values) != 2:
        raise ValueError(f"a comparison needs two classes, got {len(values)}")
    # LIBSVM's rule is about numbers; any labels but -1 and +1 may be numbered as they sort.
    numbers = y if values.dtype.kind in "if" and values.tolist() == [-1, 1] else inverse
    _, groups = grouped_by_class(np.asarray(numbers, dtype=np.float64))
    codes = np.empty(len(y))
    for code, rows in enumerate(groups):
        codes[rows] = code
    first, second = (y[rows[0]].item() for rows in groups)
    return (first, second), codes
