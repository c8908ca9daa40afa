"""Scaling features to an interval, with the arithmetic and the range files of svm-scale."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpsvm._csr import Csr
from dpsvm._range_file import RangeText, read_range_file, write_range_file

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_Doubles = npt.NDArray[np.float64]
_CELLS_PER_BLOCK = 1 << 18


def _rescale(values: Any, lower: float, upper: float, minimum: Any, maximum: Any) -> _Doubles:
    """svm-scale's map of [minimum, maximum] onto [lower, upper]; both ends are met exactly."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = lower + (upper - lower) * (values - minimum) / (maximum - minimum)
    scaled = np.where(values == maximum, upper, scaled)
    return np.where(values == minimum, lower, scaled)


def _require_finite(scaled: _Doubles, values: Any) -> None:
    wrong = ~np.isfinite(scaled)
    if wrong.any():
        raise ValueError(
            f"the value {values[wrong][0]:g} lies so far outside its range "
            "that scaled it is not finite"
        )


@dataclass(frozen=True, eq=False)
class Range:
    """What svm-scale keeps: the interval to scale to and the observed range of each feature.

    lower, upper : the interval that features are scaled to.
    features : indices from 1, ascending. What is not listed, or does not vary, is scaled to 0.
    minimum, maximum : observed range of each of them.
    y : None, or (lower, upper, minimum, maximum) of the labels.

    >>> scale = Range.fit([[0.0, 5.0], [4.0, 5.0]], lower=-1, upper=1)
    >>> scale.features
    array([1])
    >>> scale.apply([[3.0, 5.0]]).toarray()
    array([[0.5, 0. ]])
    """

    lower: float
    upper: float
    features: npt.NDArray[np.int64]
    minimum: _Doubles
    maximum: _Doubles
    y: tuple[float, float, float, float] | None = None

    @classmethod
    def fit(
        cls,
        X: Any,
        y: npt.ArrayLike | None = None,
        *,
        lower: float = -1.0,
        upper: float = 1.0,
        y_limits: tuple[float, float] | None = None,
    ) -> Range:
        """Observe the ranges of X and, when `y_limits` says what to scale them to, of the labels.

        >>> Range.fit([[1.0], [3.0]], [10, 20], y_limits=(0, 1)).y
        (0.0, 1.0, 10.0, 20.0)
        """
        features, minimum, maximum = _observe(_matrix(X))
        varies = minimum != maximum
        limits = None
        if y_limits is not None:
            if y is None:
                raise ValueError("y_limits needs y")
            labels = np.asarray(y, dtype=np.float64)
            low, high = y_limits
            limits = (float(low), float(high), float(labels.min()), float(labels.max()))
        return cls(
            float(lower), float(upper), features[varies], minimum[varies], maximum[varies], limits
        )

    def __post_init__(self) -> None:
        _check_limits("lower and upper", self.lower, self.upper)
        _check_spans(self.lower, self.upper, self.minimum, self.maximum)
        if self.y is not None:
            _check_limits("y_lower and y_upper", *self.y[:2])
            _check_spans(self.y[0], self.y[1], np.array(self.y[2]), np.array(self.y[3]))

    def apply(self, X: Any) -> csr_matrix:
        """Scale X; entries that become zero are dropped, and those that leave zero are added.

        >>> Range.fit([[0.0], [4.0]]).apply([[0.0], [2.0]]).toarray()
        array([[-1.],
               [ 0.]])
        """
        from scipy.sparse import csr_matrix, vstack

        blocks = [csr_matrix(block.to_scipy()) for _, block in self.blocks(X)]
        return vstack(blocks, format="csr")

    def blocks(self, X: Any) -> Iterator[tuple[slice, Csr]]:
        """What `apply` gives, as (rows, their scaled matrix) pairs that each take little memory.

        ``format_libsvm`` takes these matrices; scipy's are ``block.to_scipy()``.

        >>> [(rows.start, block.shape) for rows, block in Range.fit([[0.0], [4.0]]).blocks([[2.0]])]
        [(0, (1, 1))]
        """
        X = _matrix(X)
        features = self._varying()
        width = max(X.shape[1], int(self.features[-1]) if self.features.size else 0)
        if features._rescaled(0.0).any():
            scale, cells = features._scale_cells, len(features.features)
        else:
            scale, cells = features._scale_entries, X.nnz // max(1, X.shape[0])
        rows_per_block = max(1, _CELLS_PER_BLOCK // max(1, cells))
        for start in range(0, max(1, X.shape[0]), rows_per_block):
            rows = slice(start, min(start + rows_per_block, X.shape[0]))
            yield rows, scale(X[rows].widened(width))

    def _varying(self) -> Range:
        """The features that vary; all others become zero."""
        kept = self.minimum != self.maximum
        parts = (self.features[kept], self.minimum[kept], self.maximum[kept])
        return Range(self.lower, self.upper, *parts)

    def _rescaled(self, values: Any, which: Any = slice(None)) -> _Doubles:
        return _rescale(values, self.lower, self.upper, self.minimum[which], self.maximum[which])

    def _scale_entries(self, X: Csr) -> Csr:
        """Scale the stored entries alone: right when no feature moves zero."""
        columns = self.features - 1
        if not len(columns):
            return Csr.of(np.empty((X.shape[0], 0))).widened(X.shape[1])
        slots = np.minimum(np.searchsorted(columns, X.indices), len(columns) - 1)
        scaled = self._rescaled(X.data, slots)
        scaled[columns[slots] != X.indices] = 0.0
        _require_finite(scaled, X.data)
        return Csr((scaled, X.indices, X.indptr), shape=X.shape).without_zeros()

    def _scale_cells(self, X: Csr) -> Csr:
        """Scale every cell, stored or not."""
        columns = self.features - 1
        values = X.columns(columns)
        scaled = self._rescaled(values)
        _require_finite(scaled, values)
        result = Csr.of(scaled)
        return Csr((result.data, columns[result.indices], result.indptr), shape=X.shape)

    def apply_labels(self, y: npt.ArrayLike) -> _Doubles:
        """Scale labels, if their range was observed.

        >>> Range.fit([[1.0], [3.0]], [10, 20], y_limits=(0, 1)).apply_labels([10, 15])
        array([0. , 0.5])
        """
        labels = np.asarray(y, dtype=np.float64)
        return labels if self.y is None else _rescale(labels, *self.y)

    def unseen(self, X: Any) -> npt.NDArray[np.int64]:
        """Indices of the features that vary in X but have no range here: svm-scale warns of each.

        >>> Range.fit([[1.0, 2.0], [3.0, 2.0]]).unseen([[1.0, 2.0], [3.0, 4.0]])
        array([2])
        """
        return np.setdiff1d(Range.fit(X).features, self.features)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Range:
        """Read a range file strictly; what svm-scale would not write raises LibsvmFormatError.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "range")
        ...     _ = path.write_bytes(b"x\\n-1 1\\n1 0 4\\n")
        ...     Range.read(path).maximum
        array([4.])
        """
        text = read_range_file(path)
        features = np.array([row[0] for row in text.rows], dtype=np.int64)
        bounds = np.array([row[1:] for row in text.rows], dtype=np.float64).reshape(-1, 2)
        return cls(*text.x, features, bounds[:, 0].copy(), bounds[:, 1].copy(), text.y)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a range file as svm-scale does.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Range.fit([[0.0], [4.0]]).write(f"{folder}/range")
        ...     open(f"{folder}/range").read()
        'x\\n-1 1\\n1 0 4\\n'
        """
        columns = (self.features.tolist(), self.minimum.tolist(), self.maximum.tolist())
        rows = list(zip(*columns, strict=True))
        write_range_file(path, RangeText((self.lower, self.upper), rows, self.y))


def _matrix(X: Any) -> Csr:
    rows = Csr.of(X)
    if not np.isfinite(rows.data).all():
        raise ValueError("X holds NaN or infinity")
    return rows


def _check_limits(names: str, lower: float, upper: float) -> None:
    if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
        raise ValueError(f"{names} must be finite and ascend, got {lower:g} and {upper:g}")


def _check_spans(lower: float, upper: float, minimum: _Doubles, maximum: _Doubles) -> None:
    with np.errstate(over="ignore"):
        wide = ~np.isfinite((upper - lower) * (maximum - minimum))
    if wide.any():
        low, high = np.atleast_1d(minimum)[wide][0], np.atleast_1d(maximum)[wide][0]
        raise ValueError(f"the range from {low:g} to {high:g} is too wide to scale")


def _observe(X: Csr) -> tuple[npt.NDArray[np.int64], _Doubles, _Doubles]:
    """Index, minimum and maximum of every feature that has an entry, implicit zeros included."""
    if X.shape[1] <= X.nnz:
        columns, slots = np.arange(X.shape[1]), X.indices
    else:
        columns, slots = np.unique(X.indices, return_inverse=True)
    minimum = np.full(len(columns), np.inf)
    maximum = np.full(len(columns), -np.inf)
    np.minimum.at(minimum, slots, X.data)
    np.maximum.at(maximum, slots, X.data)
    has_zero = np.bincount(slots, minlength=len(columns)) < X.shape[0]
    minimum[has_zero] = np.minimum(minimum[has_zero], 0.0)
    maximum[has_zero] = np.maximum(maximum[has_zero], 0.0)
    return columns.astype(np.int64) + 1, minimum, maximum
