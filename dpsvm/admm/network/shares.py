"""What a node holds, and how one table of samples is cut into the shares of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from dpsvm._arrays import Array
from dpsvm.admm.network.terms import Terms
from dpsvm.privacy.preparation import row_norms
from dpsvm.rows import core_rows

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Samples:
    """The rows and labels of a node.

    >>> Samples(np.array([[3.0, 4.0]]), np.array([1.0])).longest
    5.0
    """

    rows: Any  # dense or CSR, of shape (B, d)
    signs: Array  # +1 or -1 for each row
    longest: float = field(init=False)  # no row has a larger norm

    def __post_init__(self) -> None:
        object.__setattr__(self, "longest", float(np.max(row_norms(self.rows), initial=0.0)))

    @property
    def size(self) -> int:
        """B_i."""
        return int(self.rows.shape[0])

    def mean_loss(self, terms: Terms, weights: Array) -> float:
        """The mean loss of some weights."""
        return float(terms.loss.value(self.signs * (self.rows @ weights)).mean())

    def objective(self, terms: Terms, weights: Array) -> float:
        """O_i of some weights."""
        shrink = terms.lam / terms.graph.n_nodes / 2.0 * float(weights @ weights)
        return terms.C * self.mean_loss(terms, weights) + shrink


def deal(n_samples: int, n_nodes: int) -> list[Places]:
    """The places of each node's samples, dealt one after the other.

    >>> [places.tolist() for places in deal(5, 2)]
    [[0, 2, 4], [1, 3]]
    """
    if n_samples < n_nodes:
        raise ValueError(f"{n_samples} samples are not enough for {n_nodes} nodes")
    return [np.arange(node, n_samples, n_nodes) for node in range(n_nodes)]


def assigned(nodes: ArrayLike, n_samples: int) -> list[Places]:
    """The places of each node's samples, from the number of the node of each sample.

    >>> [places.tolist() for places in assigned([0, 1, 1, 0], 4)]
    [[0, 3], [1, 2]]
    >>> assigned([0, 2, 2, 0], 4)
    Traceback (most recent call last):
    ...
    ValueError: node 1 has no samples
    """
    try:
        numbers = np.asarray(nodes)
    except ValueError:
        numbers = np.array(None)
    if numbers.dtype.kind not in "iu":
        raise ValueError(
            f"nodes must hold the whole number of each sample's node, got the type {numbers.dtype}"
        )
    if numbers.shape != (n_samples,):
        raise ValueError(f"nodes has the shape {numbers.shape} for {n_samples} samples")
    if numbers.min() < 0:
        raise ValueError(f"nodes are counted from 0, got {int(numbers.min())}")
    counts = np.bincount(numbers)
    if not counts.all():
        raise ValueError(f"node {int(np.flatnonzero(counts == 0)[0])} has no samples")
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(counts)[:-1])


def cut(table: Any, places: Places) -> Any:
    """Some rows of a table: a view where they lie one after the other, else a copy.

    >>> cut(np.eye(4), np.array([1, 2])).base is None
    False
    """
    if len(places) and places[-1] - places[0] + 1 == len(places) and np.all(np.diff(places) == 1):
        return table[places[0] : places[-1] + 1]
    return table[places]


def checked_tables(tables: Sequence[Any]) -> list[Any]:
    """The rows of each node, all of one width.

    >>> checked_tables([np.eye(2), np.ones((1, 3))])
    Traceback (most recent call last):
    ...
    ValueError: the nodes must have the same columns, got [2, 3] of them
    """
    found = []
    for node, table in enumerate(tables):
        if getattr(table, "ndim", None) == 2 and table.shape[0] == 0:
            raise ValueError(f"node {node} has no samples")
        name = f"X of node {node}"
        found.append(
            core_rows(check_array(table, accept_sparse="csr", dtype=np.float64, input_name=name))
        )
    widths = [table.shape[1] for table in found]
    if len(set(widths)) > 1:
        raise ValueError(f"the nodes must have the same columns, got {widths} of them")
    return found


def names_of(tables: Sequence[Any]) -> NDArray[np.object_] | None:
    """The names of the columns, which all nodes must share; None if no table has any.

    >>> names_of([np.eye(2), np.eye(2)]) is None
    True
    """
    names = [list(table.columns) for table in tables if hasattr(table, "columns")]
    if not names:
        return None
    if len(names) < len(tables) or any(own != names[0] for own in names):
        raise ValueError("the nodes must have the same columns in the same order, by name")
    return np.array(names[0], dtype=np.object_)
