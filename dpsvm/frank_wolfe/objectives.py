"""Smooth convex functions, and points that move about while their gradients are kept.

:class:`LeastSquares` is the function of the lasso, f(x) = |A x - y|^2 / (2 n), gradient
A'(A x - y) / n. Moving towards a vertex c e_i by a step t,

    A x <- (1 - t) A x + t c a_i,      A'A x / n <- (1 - t) A'A x / n + t c A'a_i / n,

costs O(n + d) once A'a_i / n is known: it is kept for every vertex that was ever moved to, while
there is room. Moving in a few blocks keeps A x alone. Errors of rounding gather slowly, so every so
often all is computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.optimize import brentq

from dpsvm._arrays import Array
from dpsvm.frank_wolfe.checks import canonical_columns, check_vector
from dpsvm.frank_wolfe.sets import Atom, dense
from dpsvm.frank_wolfe.steps import exact_step

MOST_KEPT = 2**25
"""Numbers of columns A'a_i / n that are kept at most: 256 MB."""

_FEWEST, _MOST = 8, 64  # columns of the Gram matrix that are computed at once
_ANEW = 512  # moves after which A x is computed from x


class Smooth(Protocol):
    """A differentiable convex function."""

    def value(self, x: Array) -> float:
        """f(x)."""

    def gradient(self, x: Array) -> Array:
        """The gradient at x."""


class Function:
    """A function given by two callables.

    >>> f = Function(lambda x: float(x @ x), lambda x: 2 * x)
    >>> f.gradient(np.array([1.0, 2.0]))
    array([2., 4.])
    """

    def __init__(self, value: Callable[[Array], float], gradient: Callable[[Array], Array]) -> None:
        self.value, self.gradient = value, gradient


class LeastSquares:
    """|A x - y|^2 / (2 n), A dense or sparse with n rows and d columns.

    >>> f = LeastSquares(np.eye(2), [1.0, 2.0])
    >>> f.value(np.zeros(2)), f.gradient(np.zeros(2))
    (1.25, array([-0.5, -1. ]))
    """

    def __init__(self, matrix: Any, target: Any) -> None:
        self.matrix = canonical_columns(matrix)
        if sparse.issparse(matrix):
            self.transpose: Any = sparse.csr_array(self.matrix.T)
            numbers = self.matrix.data
        else:
            numbers = self.matrix = np.asfortranarray(self.matrix)
            self.transpose = self.matrix.T
        if self.matrix.ndim != 2 or 0 in self.matrix.shape:
            raise ValueError(f"a matrix with rows and columns is needed, got {self.matrix.shape}")
        if not np.all(np.isfinite(numbers)):
            raise ValueError("the matrix must hold finite numbers, got nan or infinity")
        self.n_samples, self.n_features = map(int, self.matrix.shape)
        self.target = check_vector(target, "target", self.n_samples)
        self.moment = np.asarray(self.transpose @ self.target) / self.n_samples  # A'y / n

    def value(self, x: Array) -> float:
        """f(x)."""
        residual = self.matrix @ x - self.target
        return float(residual @ residual) / (2.0 * self.n_samples)

    def gradient(self, x: Array) -> Array:
        """A'(A x - y) / n."""
        return np.asarray(self.transpose @ (self.matrix @ x - self.target)) / self.n_samples

    def hessian(self) -> Array:
        """A'A / n, dense."""
        product = self.transpose @ self.matrix
        dense = product.toarray() if sparse.issparse(product) else product
        return np.asarray(dense) / self.n_samples

    def column(self, index: int) -> Array:
        """One column of A, dense."""
        if sparse.issparse(self.matrix):
            column = np.zeros(self.n_samples)
            part = slice(self.matrix.indptr[index], self.matrix.indptr[index + 1])
            column[self.matrix.indices[part]] = self.matrix.data[part]
            return column
        return np.asarray(self.matrix[:, index])

    def track(self, x: Array) -> LeastSquaresPoint:
        """A point that moves."""
        return LeastSquaresPoint(self, x)


class Point:
    """A point x of any smooth function; nothing is kept but x.

    >>> point = Point(Function(lambda x: float(x @ x) / 2, lambda x: x), np.zeros(2))
    >>> point.toward(np.array([2.0, 0.0]), 0.5)
    >>> point.x, point.value()
    (array([1., 0.]), 0.5)
    >>> point.best_step(np.array([-4.0, 0.0]))
    0.25
    """

    def __init__(self, function: Smooth, x: Array) -> None:
        self.function, self.x = function, x.copy()

    def value(self) -> float:
        """f(x)."""
        return float(self.function.value(self.x))

    def gradient(self) -> Array:
        """The gradient at x."""
        return np.asarray(self.function.gradient(self.x), dtype=np.float64)

    def gradients_in(self, blocks: Sequence[slice]) -> list[Array]:
        """Its parts in some blocks."""
        gradient = self.gradient()
        return [gradient[block] for block in blocks]

    def best_step(self, direction: Array, most: float = 1.0) -> float:
        """The t in [0, most] with the least f(x + t direction): where its derivative is 0."""

        def slope(t: float) -> float:
            return float(direction @ self.function.gradient(self.x + t * direction))

        if slope(0.0) >= 0.0:
            return 0.0
        if slope(most) <= 0.0:
            return most
        return float(brentq(slope, 0.0, most, xtol=1e-15))

    def best_step_toward(
        self, vertex: Array | Atom, away: Array | Atom | None = None, most: float = 1.0
    ) -> float:
        """The same along vertex - away, away being x if it is None."""
        origin = self.x if away is None else dense(away, len(self.x))
        return self.best_step(dense(vertex, len(self.x)) - origin, most)

    def toward(self, vertex: Array | Atom, step: float) -> None:
        """x <- (1 - step) x + step vertex."""
        self.x *= 1.0 - step
        if isinstance(vertex, Atom):
            self.x[vertex.index] += step * vertex.value
        else:
            self.x += step * vertex

    def exchanged(self, away: Array | Atom, toward: Array | Atom, step: float) -> None:
        """Take note that x <- x + step (toward - away)."""

    def along(self, block: slice, change: Array) -> None:
        """x <- x + change, in one block."""
        self.x[block] += change


class LeastSquaresPoint(Point):
    """A point of a :class:`LeastSquares`, with A x, and A'A x / n while it moves by atoms.

    >>> point = LeastSquares(np.eye(2), [1.0, 2.0]).track(np.zeros(2))
    >>> point.toward(Atom(1, 4.0), 0.5)
    >>> point.value(), point.gradient()
    (0.25, array([-0.5,  0. ]))
    """

    def __init__(self, function: LeastSquares, x: Array) -> None:
        super().__init__(function, x)
        self._f = function
        self._fitted = np.asarray(function.matrix @ self.x)
        self._curved: Array | None = None  # A'A x / n, None if x moved otherwise since
        self._gram: dict[int, Array] = {}  # A'a_i / n of every atom moved to
        self._start: tuple[Array | None, Array, Array] = (None, self.x, self.x)
        self._moves = 0

    @property
    def _residual(self) -> Array:
        return np.asarray(self._fitted - self._f.target)

    def value(self) -> float:
        residual = self._residual
        return float(residual @ residual) / (2.0 * self._f.n_samples)

    def gradient(self) -> Array:
        """A'A x / n - A'y / n."""
        if self._curved is None:
            self._curved = np.asarray(self._f.transpose @ self._fitted) / self._f.n_samples
        return np.asarray(self._curved - self._f.moment)

    def gradients_in(self, blocks: Sequence[slice]) -> list[Array]:
        """Its parts in some blocks, from their columns alone."""
        residual = self._residual / self._f.n_samples
        return [np.asarray(self._f.transpose[block] @ residual) for block in blocks]

    def best_step(self, direction: Array, most: float = 1.0) -> float:
        """-<direction, gradient> / (|A direction|^2 / n), cut off at 0 and at most."""
        return exact_step(np.asarray(self._f.matrix @ direction), self._residual, most)

    def best_step_toward(
        self, vertex: Array | Atom, away: Array | Atom | None = None, most: float = 1.0
    ) -> float:
        """The same along vertex - away, from one column for each that is an atom."""
        origin = self._fitted if away is None else self._image(away)
        return exact_step(self._image(vertex) - origin, self._residual, most)

    def _image(self, vertex: Array | Atom) -> Array:
        """A times a point, one column if that is an atom."""
        if isinstance(vertex, Atom):
            return np.asarray(vertex.value * self._f.column(vertex.index))
        return self._images(vertex)[0]

    def _curved_image(self, vertex: Array | Atom) -> Array:
        """A'A / n times a point."""
        if isinstance(vertex, Atom):
            return vertex.value * self._gram_column(vertex.index)
        return self._images(vertex)[1]

    def _images(self, vertex: Array) -> tuple[Array, Array]:
        """Both, kept for the point that was asked for last: a start is asked for again."""
        known, image, curved = self._start
        if known is not vertex:
            image = np.asarray(self._f.matrix @ vertex)
            curved = np.asarray(self._f.transpose @ image) / self._f.n_samples
            self._start = (vertex, image, curved)
        return image, curved

    def exchanged(self, away: Array | Atom, toward: Array | Atom, step: float) -> None:
        if self._anew():
            return
        self._fitted += step * (self._image(toward) - self._image(away))
        if self._curved is not None:
            self._curved += step * (self._curved_image(toward) - self._curved_image(away))

    def toward(self, vertex: Array | Atom, step: float) -> None:
        super().toward(vertex, step)
        if self._anew():
            return
        self._fitted *= 1.0 - step
        if not isinstance(vertex, Atom):
            self._fitted += step * np.asarray(self._f.matrix @ vertex)
            self._curved = None
            return
        weight = step * vertex.value
        self._fitted += weight * self._f.column(vertex.index)
        if self._curved is not None:
            column = self._gram_column(vertex.index)
            self._curved *= 1.0 - step
            self._curved += weight * column

    def _anew(self) -> bool:
        """Every so often, compute what is kept from x; whether that was done."""
        self._moves += 1
        if self._moves % _ANEW:
            return False
        self._fitted, self._curved = np.asarray(self._f.matrix @ self.x), None
        return True

    def _gram_column(self, index: int) -> Array:
        """A'a_i / n, kept while there is room."""
        if index not in self._gram:
            fetched = [index, *self._likely(index)]
            columns = np.stack([self._f.column(one) for one in fetched])
            products = np.asarray(columns @ self._f.matrix) / self._f.n_samples  # a row for each
            self._gram |= dict(zip(fetched, products, strict=True))
        kept = self._gram[index]
        if len(self._gram) * self._f.n_features > MOST_KEPT:
            self._gram.clear()
        return kept

    def _likely(self, index: int) -> list[int]:
        """Columns that are not kept and have the largest gradients: they may well be next, and for
        a dense matrix the time goes into reading it, not into multiplying it by one more column.
        As many again as there are, so that there are few fetches and little is fetched in vain."""
        if sparse.issparse(self._f.matrix):
            return []
        count = min(max(len(self._gram), _FEWEST), _MOST) - 1
        steepness = np.abs(self.gradient())
        steepness[[index, *self._gram]] = -1.0
        found = np.argsort(-steepness, kind="stable")[:count]
        return [int(one) for one in found if steepness[one] >= 0.0]

    def along(self, block: slice, change: Array) -> None:
        super().along(block, change)
        if self._anew():
            return
        self._fitted += np.asarray(self._f.matrix[:, block] @ change)
        self._curved = None


def point_of(function: Smooth, x: Array) -> Point:
    """A point that moves, by the function's own means if it has any."""
    track = getattr(function, "track", None)
    return Point(function, x) if track is None else track(x)
