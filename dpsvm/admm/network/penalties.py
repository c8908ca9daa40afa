"""The penalties of a run: one for every edge and update, fixed before the first.

Each node has a penalty rho_i(k) for its k-th update. An edge has

    W_ij = (rho_i + rho_j) / 2   form "edge": symmetric, so that sum_i lambda_i stays 0 and the
                                 fixed point is the minimiser of sum_i O_i;
    W_ij = rho_i                 form "per-node", the paper's: now sum_i lambda_i / rho_i stays 0,
                                 and constant penalties lead to the minimiser of sum_i O_i / rho_i,
                                 which is another point unless all are equal.

Penalties that grow bring the nodes to agree sooner, but let the mean move less and less: by about
sum_i grad O_i / (2 sum_i R_i(k)) an update. If they grow by a factor each time, all that is left to
move is finite, and the nodes come to rest at a point that is not the minimiser of anything named
here, the farther from it the faster they grow.

With symmetric edges neighbours tell each other their penalties, which are public anyway: none of
them may be kept to hide anything, as the paper has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.admm.network.graph import Graph
from dpsvm.privacy.rounding import RANGE, check_scale

FORMS = ("edge", "per-node")
"""How the penalty of an edge follows from those of its ends."""


@dataclass(frozen=True, eq=False)
class Penalties:
    """The penalties of every edge and update.

    >>> from dpsvm.admm.network.graph import make_graph
    >>> penalties = Penalties(make_graph("path", 3), np.array([[1.0, 2.0, 4.0]]))
    >>> penalties.of_edges(1, 1)  # of the middle node's edges, at the first update
    array([1.5, 3. ])
    >>> penalties.of_nodes()
    array([[1.5, 4.5, 3. ]])
    """

    graph: Graph
    table: Array  # rho_i(k), of shape (updates, N)
    form: str = "edge"

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(
                f"penalty must be one of {', '.join(map(repr, FORMS))}, got {self.form!r}"
            )

    @property
    def equal(self) -> bool:
        """Whether all nodes have the same penalty at every update; both forms are one then."""
        return bool(np.all(self.table == self.table[:, :1]))

    def of_edges(self, node: int, update: int) -> Array:
        """W_ij(k) for every neighbour j of a node, k counting from 1."""
        rho = self.table[update - 1]
        own = float(rho[node])
        others = np.array([rho[other] for other in self.graph.neighbours[node]])
        return (own + others) / 2.0 if self.form == "edge" else np.full(len(others), own)

    def of_nodes(self) -> Array:
        """R_i(k) = sum_j W_ij(k), of shape (updates, N)."""
        own = self.table * self.graph.degrees
        if self.form == "per-node":
            return own
        return np.asarray((own + self.table @ self.graph.adjacency()) / 2.0)

    def wrong_limit(self) -> str | None:
        """Where the per-node form leads, if that is not the minimiser of sum_i O_i."""
        if self.form == "edge" or self.equal:
            return None
        first = self.table / self.table[:, :1]
        if np.allclose(first, first[0], rtol=1e-12, atol=0.0):
            weights = ", ".join(f"{value:.4g}" for value in 1.0 / self.table[0])
            point = f"argmin sum_i O_i / rho_i, the nodes weighing {weights}"
        else:
            point = (
                "argmin sum_i O_i / rho_i for constant penalties, and to a point that depends on "
                "the path for these, which grow unequally"
            )
        return (
            f"penalty='per-node' does not lead to the minimiser of sum_i O_i but to {point}; "
            "penalty='edge' leads to the minimiser, if the penalties do not grow"
        )

    @property
    def grown(self) -> float:
        """How many times the first penalty the last one is, at the most."""
        return float(np.max(self.table[-1] / self.table[0]))


def schedule(rho: Any, growth: Any, updates: int, n_nodes: int) -> Array:
    """A checked table of penalties rho_i(k) = rho_i q_i^k, k = 1, 2, ..

    rho : one number, one for each node, or a table of shape (updates, N), which takes no growth
    growth : q, one number or one for each node, from 1 on

    >>> schedule(0.5, 2.0, updates=3, n_nodes=2)
    array([[1., 1.],
           [2., 2.],
           [4., 4.]])
    >>> schedule([1.0, -1.0], 1.0, updates=3, n_nodes=2)
    Traceback (most recent call last):
    ...
    ValueError: rho must hold finite numbers above 0, got -1.0
    >>> schedule([[2.0, 2.0], [1.0, 2.0]], 1.0, updates=2, n_nodes=2)
    Traceback (most recent call last):
    ...
    ValueError: penalties must not decrease: that of node 0 goes from 2 to 1 at update 2
    """
    first, rate = positive_numbers(rho, "rho"), positive_numbers(growth, "growth")
    for name, values in (("rho", first), ("growth", rate)):
        if values.ndim == 1 and len(values) != n_nodes:
            raise ValueError(f"{name} has {len(values)} numbers for {n_nodes} nodes")
    if rate.ndim > 1:
        raise ValueError(
            f"growth must be a number or one for each node, got the shape {rate.shape}"
        )
    if np.any(rate < 1.0):
        raise ValueError(
            f"growth must be at least 1, penalties must not decrease, got {float(rate.min())!r}"
        )
    if first.ndim > 2:
        raise ValueError(f"rho must have at most 2 dimensions, got the shape {first.shape}")
    if first.ndim == 2:
        return _given_table(first, rate, updates, n_nodes)
    power = np.arange(1, updates + 1)[:, None]
    with np.errstate(over="ignore"):
        table = np.broadcast_to(first * rate**power, (updates, n_nodes)).copy()
    if not np.all(table <= 1e100):
        raise ValueError(f"growth = {growth!r} makes a penalty too large within {updates} updates")
    return table


def _given_table(table: Array, rate: Array, updates: int, n_nodes: int) -> Array:
    if np.any(rate != 1.0):
        raise ValueError("growth has no effect on a table of penalties: leave it at 1")
    if table.shape != (updates, n_nodes):
        raise ValueError(
            f"rho is a table of shape {table.shape}, and {updates} updates of {n_nodes} nodes "
            f"need {(updates, n_nodes)}"
        )
    falls = np.argwhere(np.diff(table, axis=0) < 0.0)
    if falls.size:
        k, node = falls[0]
        raise ValueError(
            f"penalties must not decrease: that of node {node} goes from {table[k, node]:g} to "
            f"{table[k + 1, node]:g} at update {k + 2}"
        )
    return table.copy()


def positive_numbers(values: Any, name: str) -> Array:
    """Finite numbers above 0, within RANGE, as an array."""
    try:
        given = np.asarray(values)
    except (TypeError, ValueError):
        given = np.array([])
    if given.dtype.kind not in "iuf" or given.size == 0:
        raise ValueError(f"{name} must hold numbers, got {values!r}")
    found = given.astype(np.float64)
    wrong = found[~((found > 0.0) & np.isfinite(found))]
    if wrong.size:
        raise ValueError(f"{name} must hold finite numbers above 0, got {float(wrong.flat[0])!r}")
    for far in found[(found < RANGE[0]) | (found > RANGE[1])]:
        check_scale(float(far), name)
    return found
