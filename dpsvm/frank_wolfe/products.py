"""Sets that are products of blocks: boxes, and products of any sets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.constraints import check_choice
from dpsvm.frank_wolfe.checks import check_count, check_vector
from dpsvm.frank_wolfe.sets import SLACK, ConvexSet, L1Ball, L2Ball, OneBlock, largest_eigenvalue


class Box(ConvexSet):
    """The points between two corners; every coordinate is a block.

    >>> box = Box([0.0, -1.0], [1.0, 1.0])
    >>> box.lmo(np.array([-2.0, 0.5]))
    array([ 1., -1.])
    >>> len(box.blocks)
    2
    """

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower = check_vector(lower, "lower")
        self.upper = check_vector(upper, "upper", len(self.lower))
        self.dimension = check_count(len(self.lower), "dimension")
        if not np.all(self.lower < self.upper):
            i = int(np.argmin(self.lower < self.upper))
            raise ValueError(
                f"lower must be below upper, got {self.lower[i]:g} and {self.upper[i]:g} at {i}"
            )
        self.blocks = tuple(slice(i, i + 1) for i in range(self.dimension))

    def lmo(self, gradient: Array) -> Array:
        return np.where(gradient >= 0.0, self.lower, self.upper)

    def block_lmo(self, block: int, gradient: Array) -> Array:
        here = self.blocks[block]
        return np.where(gradient >= 0.0, self.lower[here], self.upper[here])

    def contains(self, x: Array) -> bool:
        slack = SLACK * (self.upper - self.lower)
        return bool(np.all((x >= self.lower - slack) & (x <= self.upper + slack)))

    def start(self) -> Array:
        """The lower corner."""
        return self.lower.copy()

    def diameters(self) -> Array:
        return np.asarray(self.upper - self.lower)

    def curvature(self, block: int, hessian: Array) -> float:
        """The squared width times H."""
        return float((self.upper[block] - self.lower[block]) ** 2 * hessian[0, 0])

    def n_differences(self, block: int) -> int:
        return 2

    def differences(self, block: int) -> Array | None:
        """Both widths of an interval, the one minus the other end."""
        width = float(self.upper[block] - self.lower[block])
        return np.array([[-width], [width]])


class Product(ConvexSet):
    """A product of sets, each of them one block.

    >>> two = Product([L1Ball(2, 1.0), L1Ball(3, 2.0)])
    >>> two.lmo(np.array([1.0, 0.0, 0.0, -1.0, 0.0]))
    array([-1.,  0.,  0.,  2.,  0.])
    >>> two.blocks
    (slice(0, 2, None), slice(2, 5, None))
    """

    def __init__(self, sets: Sequence[Any]) -> None:
        self.sets = tuple(sets)
        if not self.sets:
            raise ValueError("a product needs at least one set, got none")
        ends = [0, *np.cumsum([part.dimension for part in self.sets]).tolist()]
        self.dimension = ends[-1]
        self.blocks = tuple(slice(first, last) for first, last in pairwise(ends))

    def lmo(self, gradient: Array) -> Array:
        return np.concatenate([self.block_lmo(i, gradient[b]) for i, b in enumerate(self.blocks)])

    def block_lmo(self, block: int, gradient: Array) -> Array:
        return np.asarray(self.sets[block].lmo(gradient))

    def contains(self, x: Array) -> bool:
        return all(part.contains(x[b]) for part, b in zip(self.sets, self.blocks, strict=True))

    def start(self) -> Array:
        return np.concatenate([part.start() for part in self.sets])

    def diameters(self) -> Array:
        return np.array([float(np.linalg.norm(part.diameters())) for part in self.sets])

    def curvature(self, block: int, hessian: Array) -> float:
        """That of one of the sets; a bound if that has several blocks itself."""
        part = self.sets[block]
        if len(part.blocks) == 1:
            return float(part.curvature(0, hessian))
        return float(np.sum(part.diameters() ** 2)) * largest_eigenvalue(hessian)

    def n_differences(self, block: int) -> int:
        return int(self.sets[block].n_differences(0))

    def differences(self, block: int) -> Array | None:
        """Those of one of the sets, if that is a single block."""
        part = self.sets[block]
        return part.differences(0) if len(part.blocks) == 1 else None


def product_of_balls(sizes: Sequence[int], radii: Any, norm: str = "l1") -> Product:
    """Balls of given sizes, side by side; one radius for all of them, or one for each.

    >>> product_of_balls([2, 3], 1.5).sets
    (L1Ball(2, 1.5), L1Ball(3, 1.5))
    """
    kinds: dict[str, type[OneBlock]] = {"l1": L1Ball, "l2": L2Ball}
    check_choice(norm, "norm", tuple(kinds))
    each = [radii] * len(sizes) if np.ndim(radii) == 0 else list(radii)
    if len(each) != len(sizes):
        raise ValueError(f"radii must be one number or {len(sizes)}, got {len(each)}")
    return Product([kinds[norm](size, radius) for size, radius in zip(sizes, each, strict=True)])
