"""A table of samples cut into the blocks of columns that the parties hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from dpsvm.rows import core_rows

Layout = list[NDArray[np.intp]]
"""For each party, the places of its columns in the whole table."""


def is_blocks(X: Any) -> bool:
    """Whether X is a list of tables, not one table.

    >>> is_blocks([np.eye(2), np.eye(2)]), is_blocks([[1.0, 0.0], [0.0, 1.0]])
    (True, False)
    """
    return isinstance(X, (list, tuple)) and any(getattr(one, "ndim", None) == 2 for one in X)


def layout_of(parties: Sequence[Any] | None, n_features: int) -> Layout:
    """The columns of each party: whole numbers are sizes, anything else lists columns.

    >>> [places.tolist() for places in layout_of([2, 1], 3)]
    [[0, 1], [2]]
    >>> [places.tolist() for places in layout_of([[0, 2], [1]], 3)]
    [[0, 2], [1]]
    >>> layout_of([2, 2], 3)
    Traceback (most recent call last):
    ...
    ValueError: parties = [2, 2] are 4 columns, X has 3
    """
    if parties is None:
        return [np.arange(n_features)]
    if isinstance(parties, (str, bytes)) or not isinstance(parties, Iterable):
        raise ValueError(f"parties must be a list of sizes or of columns, got {parties!r}")
    given = list(parties)
    if not given:
        raise ValueError("parties must name at least one block of columns, got none")
    if all(isinstance(one, Integral) for one in given):
        return _by_sizes([int(one) for one in given], n_features)
    every = np.arange(n_features)
    try:
        layout = [
            np.atleast_1d(every[one if isinstance(one, slice) else list(one)]) for one in given
        ]
    except (IndexError, TypeError) as error:
        raise ValueError(
            f"parties do not name columns of X, which has {n_features}: {error}"
        ) from error
    for party, places in enumerate(layout):
        if places.ndim != 1:
            raise ValueError(f"party {party} must be a list of columns, got {given[party]!r}")
        if not places.size:
            raise ValueError(f"party {party} has no columns")
    taken = np.concatenate(layout)
    if len(np.unique(taken)) != len(taken):
        raise ValueError("parties name a column twice")
    if len(taken) != n_features:
        raise ValueError(f"parties name {len(taken)} columns, X has {n_features}")
    return layout


def _by_sizes(sizes: list[int], n_features: int) -> Layout:
    for party, size in enumerate(sizes):
        if size < 1:
            raise ValueError(f"party {party} has no columns: its size is {size}")
    if sum(sizes) != n_features:
        raise ValueError(f"parties = {sizes} are {sum(sizes)} columns, X has {n_features}")
    return np.split(np.arange(n_features), np.cumsum(sizes)[:-1])


def cut(table: Any, layout: Layout) -> list[Any]:
    """The columns of each party of one table.

    >>> [block.tolist() for block in cut(np.array([[1.0, 2.0, 3.0]]), layout_of([2, 1], 3))]
    [[[1.0, 2.0]], [[3.0]]]
    """
    if sparse.issparse(table):
        by_column = sparse.csc_array(table)
        return [sparse.csr_array(by_column[:, places]) for places in layout]
    return [np.ascontiguousarray(table[:, places]) for places in layout]


def names_of(blocks: Sequence[Any]) -> NDArray[np.object_] | None:
    """The names of all the columns of blocks that have them, None if one has none.

    >>> names_of([np.eye(2), np.eye(2)]) is None
    True
    """
    if not all(hasattr(block, "columns") for block in blocks):
        return None
    return np.array([name for block in blocks for name in block.columns], dtype=np.object_)


class SplitColumns:
    """An estimator whose table is cut into blocks, the same way in every call after ``fit``."""

    def _split(self, X: Any, parties: Sequence[Any] | None) -> list[Any]:
        """The blocks of a fit; their layout and their features are kept."""
        if not is_blocks(X):
            table = _checked(X, "X")
            self._layout = layout_of(parties, table.shape[1])
            validate_data(self, X, skip_check_array=True)
            return cut(table, self._layout)
        if parties is not None:
            raise ValueError("parties is for one table; a list of blocks is already split")
        blocks = _checked_all(X)
        sizes = [block.shape[1] for block in blocks]
        self.n_features_in_ = sum(sizes)
        self._layout = _by_sizes(sizes, self.n_features_in_)
        if (names := names_of(X)) is not None:
            self.feature_names_in_ = names
        return blocks

    def _blocks(self, X: Any) -> list[Any]:
        """New samples in the blocks of the fit, with its features."""
        if not is_blocks(X):
            table = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
            return cut(table, self._layout)
        known, names = getattr(self, "feature_names_in_", None), names_of(X)
        if known is not None and names is not None and not np.array_equal(known, names):
            raise ValueError(
                f"the feature names should match those of the fit, {known.tolist()!r}, got "
                f"{names.tolist()!r}"
            )
        blocks = _checked_all(X)
        wanted, widths = [len(own) for own in self._layout], [own.shape[1] for own in blocks]
        if widths != wanted:
            raise ValueError(f"blocks of {wanted} columns are needed, got {widths}")
        return blocks

    def _decisions(self, X: Any) -> NDArray[np.float64]:
        """The sum of what the parties predict, each from its own columns."""
        check_is_fitted(self)
        weights: Any = np.ravel(self.coef_)  # type: ignore[attr-defined]
        blocks = zip(self._blocks(X), self._layout, strict=True)
        parts = [np.asarray(block @ weights[places]) for block, places in blocks]
        return np.asarray(np.add.reduce(parts))


def _checked_all(X: Sequence[Any]) -> list[Any]:
    blocks = [_checked(block, f"block {party}") for party, block in enumerate(X)]
    heights = [block.shape[0] for block in blocks]
    if len(set(heights)) > 1:
        raise ValueError(f"the blocks must have the same rows, got {heights} of them")
    return blocks


def _checked(table: Any, name: str) -> Any:
    if getattr(table, "ndim", None) == 2 and table.shape[1] == 0:
        raise ValueError(
            f"{name} has 0 feature(s) (shape={table.shape}) while a minimum of 1 is required."
        )
    checked = check_array(
        table, accept_sparse="csr", dtype=np.float64, ensure_min_features=1, input_name=name
    )
    return core_rows(checked) if sparse.issparse(checked) else checked  # each entry stored once
