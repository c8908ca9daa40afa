"""Who talks to whom: a connected undirected graph without loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpsvm._arrays import Array

Edge = tuple[int, int]

SHAPES = ("complete", "ring", "star", "path", "random")
"""The graphs that have a name; node 0 is the centre of the star."""


@dataclass(frozen=True)
class Graph:
    """A connected undirected graph on the nodes 0 .. n - 1, at least two of them.

    >>> graph = Graph.of(3, [(0, 1), (1, 2)])
    >>> graph.neighbours
    ((1,), (0, 2), (1,))
    >>> graph.bipartite
    True
    >>> Graph.of(4, [(0, 1), (2, 3)])
    Traceback (most recent call last):
    ...
    ValueError: the graph is not connected: no path leads from node 0 to node 2
    """

    neighbours: tuple[tuple[int, ...], ...]  # of each node, in increasing order

    def __post_init__(self) -> None:
        n = len(self.neighbours)
        for node, others in enumerate(self.neighbours):
            for other in others:
                if other == node:
                    raise ValueError(f"node {node} has an edge to itself")
                if not 0 <= other < n or node not in self.neighbours[other]:
                    raise ValueError(
                        f"the graph is directed: it has the edge ({node}, {other}) and not "
                        f"({other}, {node})"
                    )
        if n < 2:
            raise ValueError(f"a network has at least 2 nodes, got {n}")
        unreached = [node for node, side in enumerate(self._sides) if side is None]
        if unreached:
            raise ValueError(
                f"the graph is not connected: no path leads from node 0 to node {unreached[0]}"
            )

    @classmethod
    def of(cls, n_nodes: int, edges: Iterable[Edge]) -> Graph:
        """The graph of some edges; one that is named twice counts once."""
        found: list[set[int]] = [set() for _ in range(n_nodes)]
        for a, b in edges:
            for node in (a, b):
                if not 0 <= node < n_nodes:
                    raise ValueError(
                        f"the edge ({a}, {b}) leads to node {node}, and the nodes are 0 to "
                        f"{n_nodes - 1}"
                    )
            found[a].add(b)
            found[b].add(a)
        return cls(tuple(tuple(sorted(others)) for others in found))

    @property
    def n_nodes(self) -> int:
        """N."""
        return len(self.neighbours)

    @property
    def degrees(self) -> NDArray[np.intp]:
        """V_i, the number of neighbours of each node."""
        return np.array([len(others) for others in self.neighbours], dtype=np.intp)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Every edge once, its smaller end first."""
        return tuple((a, b) for a, others in enumerate(self.neighbours) for b in others if a < b)

    def adjacency(self) -> Array:
        """The matrix with a 1 for each edge, of shape (N, N)."""
        found = np.zeros((self.n_nodes, self.n_nodes))
        for a, b in self.edges:
            found[a, b] = found[b, a] = 1.0
        return found

    @property
    def bipartite(self) -> bool:
        """Whether the nodes fall into two sides with no edge inside either."""
        return all(self._sides[a] != self._sides[b] for a, b in self.edges)

    @cached_property
    def _sides(self) -> list[int | None]:
        """The parity of each node's distance from node 0; None where there is no path."""
        sides: list[int | None] = [None] * self.n_nodes
        sides[0], front = 0, [0]
        for node in front:
            for other in self.neighbours[node]:
                if sides[other] is None:
                    sides[other] = 1 - int(sides[node] or 0)
                    front.append(other)
        return sides


def make_graph(
    graph: Any, n_nodes: int | None, *, seed: int = 0, density: float | None = None
) -> Graph:
    """A graph from a name, a matrix, edges or another library's graph.

    graph : a name of SHAPES, which needs n_nodes; an adjacency matrix of zeros and ones, dense or
        sparse; a list of edges (a, b); a networkx graph without weights, whose nodes are numbered
        in its order unless they are the numbers 0 to N - 1 themselves; or a Graph. A list of pairs
        is a list of edges, also if it is as long as it is wide.
    seed, density : of "random", a random spanning tree and each other edge with that probability;
        None is 2 / N, which leaves every node about four neighbours

    >>> make_graph("star", 4).edges
    ((0, 1), (0, 2), (0, 3))
    >>> make_graph([(0, 1), (1, 2)], None) == make_graph([[0, 1, 0], [1, 0, 1], [0, 1, 0]], 3)
    True
    >>> make_graph(np.array([[0, 1], [0, 0]]), None)
    Traceback (most recent call last):
    ...
    ValueError: the graph is directed: it has the edge (0, 1) and not (1, 0)
    """
    if isinstance(graph, str):
        if n_nodes is None:
            raise ValueError(f"the number of nodes of graph={graph!r} is not known")
        return Graph.of(n_nodes, _named(graph, n_nodes, seed, density))
    made = graph if isinstance(graph, Graph) else _given(graph, n_nodes)
    if n_nodes is not None and made.n_nodes != n_nodes:
        raise ValueError(f"the graph has {made.n_nodes} nodes, and the data have {n_nodes}")
    return made


def _named(name: str, n: int, seed: int, density: float | None) -> list[Edge]:
    path = [(node, node + 1) for node in range(n - 1)]
    if name == "complete":
        return list(combinations(range(n), 2))
    if name == "ring":
        return [*path, (n - 1, 0)] if n > 2 else path
    if name == "star":
        return [(0, node) for node in range(1, n)]
    if name == "path":
        return path
    if name == "random":
        random = np.random.default_rng(seed)
        order = random.permutation(n).tolist()
        tree = [(order[at], order[int(random.integers(at))]) for at in range(1, n)]
        share = 2.0 / n if density is None else density
        return [*tree, *(edge for edge in combinations(range(n), 2) if random.random() < share)]
    raise ValueError(f"graph must be one of {', '.join(map(repr, SHAPES))}, got {name!r}")


def _given(graph: Any, n_nodes: int | None) -> Graph:
    if all(hasattr(graph, name) for name in ("is_directed", "nodes", "edges")):
        if graph.is_directed():
            raise ValueError("the graph is directed: messages have to travel both ways")
        if callable(graph.edges) and any(w != 1 for *_, w in graph.edges(data="weight", default=1)):
            raise ValueError("the graph has weights: penalties are set by rho")
        numbers = {node: at for at, node in enumerate(graph.nodes)}
        if set(numbers) == set(range(len(numbers))):
            numbers = {node: node for node in numbers}
        return Graph.of(len(numbers), [(numbers[a], numbers[b]) for a, b, *_ in graph.edges])
    if sparse.issparse(graph):
        return _of_matrix(graph.toarray())
    is_list = isinstance(graph, (list, tuple))
    pairs = is_list and len(graph) > 0 and all(_is_pair(one) for one in graph)
    table = None if pairs else _as_table(graph)
    square = table is not None and table.shape[0] == table.shape[1]
    if table is not None and square and not _is_two_edges(table):
        return _of_matrix(table)
    if table is not None and table.shape[1] == 2:
        graph, pairs = table.tolist(), True
    if not pairs:
        raise ValueError(
            "graph must be a name, a square adjacency matrix, a list of edges (a, b) or a networkx "
            f"graph, got {graph!r}"
        )
    edges = [(_node(a), _node(b)) for a, b in graph]
    size = max(max(edge) for edge in edges) + 1
    if n_nodes is not None and size > n_nodes:
        raise ValueError(f"the graph has {size} nodes, and the data have {n_nodes}")
    return Graph.of(size, edges)


def _is_two_edges(table: NDArray[Any]) -> bool:
    """Whether a table of two rows and columns is no matrix: a number above 1, and a loop."""
    return table.shape == (2, 2) and bool(table.max() > 1 and np.any(np.diag(table)))


def _is_pair(one: Any) -> bool:
    return isinstance(one, Sequence) and not isinstance(one, str) and len(one) == 2


def _as_table(graph: Any) -> NDArray[Any] | None:
    try:
        table = np.asarray(graph)
    except (TypeError, ValueError):
        return None
    numeric = table.dtype.kind in "biuf"
    return table if numeric and table.ndim == 2 and table.size else None


def _node(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"an edge leads from node to node, whole numbers from 0, got {value!r}")
    return int(value)


def _of_matrix(matrix: NDArray[Any]) -> Graph:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"an adjacency matrix is square, got the shape {matrix.shape}")
    odd = matrix[(matrix != 0) & (matrix != 1)]
    if odd.size:
        raise ValueError(
            f"an adjacency matrix holds zeros and ones (penalties are set by rho), got "
            f"{odd.flat[0].item()!r}"
        )
    return Graph(tuple(tuple(np.flatnonzero(row).tolist()) for row in matrix))
