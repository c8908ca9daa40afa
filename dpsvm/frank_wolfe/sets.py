"""The sets over which Frank-Wolfe minimises, and their linear minimisation oracles.

A set X is compact and convex, and a product X_1 x ... x X_b of blocks (often b = 1). All that the
method asks of it is, for a gradient g, a point s of X that minimises <s, g>: for a product, block
by block. Of a polytope s is a vertex.

    L1Ball(d, r)       |x|_1 <= r             s = -r sign(g_i) e_i, i = argmax |g_i|
    Simplex(d, r)      x >= 0, sum x = r      s = r e_i, i = argmin g_i
    L2Ball(d, r)       |x|_2 <= r             s = -r g / |g|
    Box(l, u)          l <= x <= u            s_i = l_i if g_i >= 0, else u_i; d blocks
    Product([...])     one block for each of the sets given

The last two are in :mod:`~dpsvm.frank_wolfe.products`. Ties go to the first index, and 0 counts as
a positive gradient.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.linalg import eigvalsh

from dpsvm._arrays import Array
from dpsvm.constraints import check_positive
from dpsvm.frank_wolfe.checks import check_count

SLACK = 1e-9
"""Of the size of a set: how far outside a point may lie for the sake of rounding."""


@dataclass(frozen=True)
class Atom:
    """A vertex with one number that is not 0.

    >>> Atom(2, -1.5)
    Atom(index=2, value=-1.5)
    """

    index: int
    value: float


class ConvexSet(Protocol):
    """A product of compact convex blocks with a linear minimisation oracle."""

    dimension: int
    blocks: tuple[slice, ...]

    def lmo(self, gradient: Array) -> Array:
        """A point of the set that minimises <s, gradient>."""

    def block_lmo(self, block: int, gradient: Array) -> Array:
        """The part of such a point in one block, from the gradient in that block."""

    def contains(self, x: Array) -> bool:
        """Whether a point lies in the set, up to rounding."""

    def start(self) -> Array:
        """A point of the set."""

    def diameters(self) -> Array:
        """The Euclidean diameter of every block."""

    def curvature(self, block: int, hessian: Array) -> float:
        """The largest v'Hv, v a difference of two points of a block, H that of the block."""

    def n_differences(self, block: int) -> int:
        """At least how many rows ``differences`` has; 0 of what is no polytope."""

    def differences(self, block: int) -> Array | None:
        """All differences of two vertices of a block, a row each; None of what is no polytope."""


class OneBlock(ConvexSet):
    """A set of a single block, of a size and a radius: a ball around 0 if it says no more."""

    def __init__(self, dimension: int, radius: float = 1.0) -> None:
        self.dimension = check_count(dimension, "dimension")
        self.radius = check_positive(radius, "radius")
        self.blocks: tuple[slice, ...] = (slice(0, self.dimension),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dimension}, {self.radius!r})"

    def block_lmo(self, block: int, gradient: Array) -> Array:
        return self.lmo(gradient)

    def start(self) -> Array:
        """The centre."""
        return np.zeros(self.dimension)

    def diameters(self) -> Array:
        """2 r, between opposite points."""
        return np.array([2.0 * self.radius])

    def n_differences(self, block: int) -> int:
        return 0

    def differences(self, block: int) -> Array | None:
        return None


class Atomic(OneBlock):
    """A polytope whose vertices are r e_i, and -r e_i too if ``signs`` has both."""

    signs: ClassVar[tuple[float, ...]]

    @abstractmethod
    def atom(self, gradient: Array) -> Atom:
        """The vertex that the oracle finds, without its zeros."""

    def lmo(self, gradient: Array) -> Array:
        return dense(self.atom(gradient), self.dimension)

    def n_differences(self, block: int) -> int:
        return (len(self.signs) * self.dimension) ** 2

    def differences(self, block: int) -> Array | None:
        vertices = self.radius * np.vstack([sign * np.eye(self.dimension) for sign in self.signs])
        every = (vertices[:, None, :] - vertices[None, :, :]).reshape(-1, self.dimension)
        return np.unique(every, axis=0)


class L1Ball(Atomic):
    """The points with |x|_1 <= radius; the oracle finds -r sign(g_i) e_i of the largest |g_i|.

    >>> ball = L1Ball(3, 2.0)
    >>> ball.lmo(np.array([1.0, -4.0, 3.0]))
    array([0., 2., 0.])
    >>> ball.contains(np.array([1.0, -1.0, 0.5]))
    False
    """

    signs = (1.0, -1.0)

    def atom(self, gradient: Array) -> Atom:
        index = int(np.argmax(np.abs(gradient)))
        return Atom(index, -self.radius if gradient[index] >= 0.0 else self.radius)

    def contains(self, x: Array) -> bool:
        return bool(np.sum(np.abs(x)) <= self.radius * (1.0 + SLACK))

    def curvature(self, block: int, hessian: Array) -> float:
        """4 r^2 max H_ii: v'Hv is a seminorm squared, at most (2 r max sqrt(H_ii))^2."""
        return 4.0 * self.radius**2 * float(np.max(np.diag(hessian)))


class Simplex(Atomic):
    """The points x >= 0 of sum radius; the oracle finds r e_i of the least g_i.

    >>> Simplex(3).lmo(np.array([1.0, -4.0, 3.0]))
    array([0., 1., 0.])
    """

    signs = (1.0,)

    def atom(self, gradient: Array) -> Atom:
        return Atom(int(np.argmin(gradient)), self.radius)

    def contains(self, x: Array) -> bool:
        slack = self.radius * SLACK
        return bool(np.all(x >= -slack) and abs(np.sum(x) - self.radius) <= slack)

    def start(self) -> Array:
        """The centre."""
        return np.full(self.dimension, self.radius / self.dimension)

    def diameters(self) -> Array:
        """sqrt(2) r, the length of an edge; 0 of a point."""
        return np.array([math.sqrt(2.0) * self.radius if self.dimension > 1 else 0.0])

    def curvature(self, block: int, hessian: Array) -> float:
        """r^2 max (H_ii + H_jj - 2 H_ij)."""
        diagonal = np.diag(hessian)
        return self.radius**2 * float(np.max(diagonal[:, None] + diagonal - 2.0 * hessian))


class L2Ball(OneBlock):
    """The points with |x|_2 <= radius; the oracle finds the one opposite to the gradient.

    >>> L2Ball(2, 10.0).lmo(np.array([3.0, -4.0]))
    array([-6.,  8.])
    """

    def lmo(self, gradient: Array) -> Array:
        norm = float(np.linalg.norm(gradient))
        if norm == 0.0:
            return dense(Atom(0, -self.radius), self.dimension)
        return np.asarray(gradient * (-self.radius / norm))

    def contains(self, x: Array) -> bool:
        return bool(np.linalg.norm(x) <= self.radius * (1.0 + SLACK))

    def curvature(self, block: int, hessian: Array) -> float:
        """4 r^2 times the largest eigenvalue."""
        return 4.0 * self.radius**2 * largest_eigenvalue(hessian)


def largest_eigenvalue(matrix: Array) -> float:
    """Of a symmetric matrix.

    >>> largest_eigenvalue(np.diag([1.0, 3.0]))
    3.0
    """
    last = len(matrix) - 1
    return float(eigvalsh(matrix, subset_by_index=[last, last])[0])


def dense(vertex: Array | Atom, dimension: int) -> Array:
    """A point with its zeros.

    >>> dense(Atom(1, 2.0), 3)
    array([0., 2., 0.])
    """
    if not isinstance(vertex, Atom):
        return vertex
    found = np.zeros(dimension)
    found[vertex.index] = vertex.value
    return found
