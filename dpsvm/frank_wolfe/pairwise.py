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

from dpsvm._arrays import Array
from dpsvm.frank_wolfe.loop import Oracle, TowardVertex
from dpsvm.frank_wolfe.objectives import Point
from dpsvm.frank_wolfe.sets import Atom, L1Ball, Simplex


class Pairwise(TowardVertex):
    """The move of an iteration, and the weights of the vertices that x is made of."""

    def __init__(self, point: Point, oracle: Oracle, domain: Any, start: Array) -> None:
        super().__init__(point, oracle, schedule=None)
        if not isinstance(domain, (L1Ball, Simplex)):
            raise ValueError(
                f"step='pairwise' is for an L1Ball or a Simplex, got {type(domain).__name__}"
            )
        self._radius, self._start = domain.radius, start
        self._rest = 1.0  # the weight of the start
        self._weights = np.zeros((2, len(start)))  # of +r e_i, and of -r e_i

    def length(self, t: int) -> float:
        """The weight to move from the vertex in use with the largest <v, gradient>."""
        slopes = np.where(self._weights > 0.0, np.stack([self.gradient, -self.gradient]), -np.inf)
        sign, index = divmod(int(np.argmax(slopes)), len(self._start))
        most = float(self._weights[sign, index])
        self._away: Array | Atom = Atom(index, -self._radius if sign else self._radius)
        if self._rest > 0.0 and self._start @ self.gradient >= self._radius * slopes[sign, index]:
            self._away, most = self._start, self._rest
        return self.point.best_step_toward(self.vertex, self._away, most)

    def go(self, length: float) -> None:
        """Move it; x is exact, with 0 where nothing is left."""
        assert isinstance(self.vertex, Atom)  # of these sets
        self._weights[_place(self.vertex)] += length
        if isinstance(self._away, Atom):
            self._weights[_place(self._away)] -= length
            here: NDArray[np.intp] | slice = np.array([self._away.index, self.vertex.index])
        else:
            self._rest -= length
            here = slice(None)
        mean = self._radius * (self._weights[0, here] - self._weights[1, here])
        self.point.x[here] = mean + self._rest * self._start[here]
        self.point.exchanged(self._away, self.vertex, length)


def _place(atom: Atom) -> tuple[int, int]:
    return (0 if atom.value > 0.0 else 1), atom.index
