"""Pairwise Frank-Wolfe: weight goes from the worst vertex that x is made of to the best there is.

    s = argmin over X of <s, grad f(x)>,    v = argmax over the vertices of x of <v, grad f(x)>,
    x <- x + g (s - v),    g in [0, weight of v] with the least f(x)

Towards s alone, x nears a face of X in a zigzag, and the gap falls like 1/t. Here what does not
belong to the face is dropped, and over a polytope the gap of a strongly convex f falls like a
geometric series, steps that only drop a vertex not counted (Lacoste-Julien and Jaggi 2015). For
sets whose vertices are single coordinates: the l1 ball and the simplex. The point that x starts
from counts as a vertex until its weight is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.frank_wolfe.objectives import Point
from dpsvm.frank_wolfe.sets import Atom, L1Ball, Simplex

Array = NDArray[np.float64]


class PairwiseMove:
    """The move of an iteration, in the place of one towards the vertex alone."""

    def __init__(self, domain: Any, start: Array) -> None:
        if not isinstance(domain, (L1Ball, Simplex)):
            raise ValueError(
                f"step='pairwise' is for an L1Ball or a Simplex, got {type(domain).__name__}"
            )
        self._mean = VertexWeights(domain, start)
        self._away: Array | Atom = start

    def length(self, point: Point, vertex: Atom, gradient: Array, t: int) -> float:
        """The weight to move from the worst vertex of x."""
        self._away, most = self._mean.worst(gradient)
        return point.best_exchange(self._away, vertex, most)

    def move(self, point: Point, vertex: Atom, length: float) -> None:
        """Move it."""
        self._mean.shift(self._away, vertex, length)
        point.exchange(self._away, vertex, length, self._mean.x)


class VertexWeights:
    """x as a mean of the vertices +r e_i and -r e_i, and of where it started.

    >>> mean = VertexWeights(L1Ball(3, 2.0), np.zeros(3))
    >>> gradient = np.array([1.0, -4.0, 3.0])
    >>> mean.worst(gradient)
    (array([0., 0., 0.]), 1.0)
    >>> mean.shift(mean.start, Atom(1, 2.0), 0.75)
    >>> mean.x
    array([0. , 1.5, 0. ])
    >>> mean.worst(-gradient)
    (Atom(index=1, value=2.0), 0.75)
    """

    def __init__(self, domain: L1Ball | Simplex, start: Array) -> None:
        self.radius, self.start = domain.radius, start
        self.x = start.copy()
        self._rest = 1.0  # the weight of the start
        self._weights = np.zeros((2, len(start)))  # of +r e_i, and of -r e_i

    def worst(self, gradient: Array) -> tuple[Array | Atom, float]:
        """The vertex in use with the largest <v, gradient>, and its weight."""
        slopes = np.where(self._weights > 0.0, np.stack([gradient, -gradient]), -np.inf)
        sign, index = divmod(int(np.argmax(slopes)), len(gradient))
        if self._rest > 0.0 and self.start @ gradient >= self.radius * slopes[sign, index]:
            return self.start, self._rest
        value = self.radius if sign == 0 else -self.radius
        return Atom(index, value), float(self._weights[sign, index])

    def shift(self, away: Array | Atom, toward: Atom, weight: float) -> None:
        """Move weight from one vertex to another; x is exact, with 0 where nothing is left."""
        self._weights[self._place(toward)] += weight
        if isinstance(away, Atom):
            self._weights[self._place(away)] -= weight
            places: NDArray[np.intp] | slice = np.array([away.index, toward.index])
        else:
            self._rest -= weight
            places = slice(None)
        mean = self.radius * (self._weights[0, places] - self._weights[1, places])
        self.x[places] = mean + self._rest * self.start[places]

    @staticmethod
    def _place(atom: Atom) -> tuple[int, int]:
        return (0 if atom.value > 0.0 else 1), atom.index
