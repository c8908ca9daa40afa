"""Quadratics as a party's steps meet them: their systems, and their minima to the last bit.

With an l1 penalty or a constraint, proximal gradient steps with Nesterov's momentum, started again
whenever they turn uphill (O'Donoghue and Candes 2015), lead to the right support; a jump solves the
linear system on it, and is the answer if it is stationary. Each feature is measured in the unit
that makes the quadratic's diagonal 1, so columns of very different sizes do no harm; but for a
ball, which would be none in such units.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.exceptions import ConvergenceWarning

from dpsvm._arrays import Array
from dpsvm.admm.sharing.columns import Columns
from dpsvm.admm.sharing.regularisers import Ball, Box, Constraint

_ROUNDING = 4.0 * np.finfo(np.float64).eps
_STATIONARY = 1e-14  # of the gradient, relative to the size of its terms
_JUMP_EVERY = 10  # proximal gradient steps between two jumps
_MOST_STEPS = 100_000


@dataclass(frozen=True)
class Quadratic:
    """x'Qx / 2 with Q = D'D + diag(s).

    >>> quadratic = Quadratic.of(Columns(np.array([[1.0, 2.0]]))).shifted(0.5)
    >>> quadratic.times(np.array([1.0, 1.0]))
    array([3.5, 6.5])
    >>> quadratic.among(np.array([True, False]))
    array([[1.5]])
    """

    columns: Columns
    gram: Array | None  # D'D; None for wide columns
    diagonal: Array  # of D'D
    largest: float  # at least the largest eigenvalue of D'D
    spread: float  # and, if all columns had norm 1 or 0, of that
    shift: Array  # s, a number per feature

    @classmethod
    def of(cls, columns: Columns) -> Quadratic:
        """The quadratic of columns, s being 0."""
        gram, diagonal = columns.gram(), columns.squares()
        scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        wide = columns.wide
        even = columns.scaled(1.0 / scale).gram() if wide else gram / np.outer(scale, scale)
        spread, none = _largest(even), np.zeros(columns.n_features)
        return cls(columns, None if wide else gram, diagonal, _largest(gram), spread, none)

    def shifted(self, shift: float | Array) -> Quadratic:
        """The same with another s."""
        return replace(self, shift=np.broadcast_to(shift, self.shift.shape))

    def units(self) -> tuple[Array, float]:
        """The unit of each feature that makes Q's diagonal 1, and a bound on Q's eigenvalues then.

        D'D is at most spread times its diagonal, so Q is at most max(spread, 1) times its own.
        """
        diagonal = self.diagonal + self.shift
        return np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), max(self.spread, 1.0)

    def one_unit(self) -> tuple[Array, float]:
        """The unit 1 for every feature, and a bound on Q's eigenvalues."""
        return np.ones(len(self.shift)), self.largest + float(self.shift.max(initial=0.0))

    def times(self, x: Array) -> Array:
        """Q x."""
        if self.gram is not None:
            return np.asarray(self.gram @ x + self.shift * x)
        return self.columns.transposed_times(self.columns.times(x)) + self.shift * x

    def among(self, features: NDArray[np.bool_]) -> Array:
        """Q of some of the features."""
        if self.gram is not None:
            block = self.gram[np.ix_(features, features)]
        else:
            block = self.columns.gram_of(features)
        block[np.diag_indices_from(block)] += self.shift[features]
        return block


def _largest(gram: Array) -> float:
    """The largest eigenvalue, rounded up."""
    last = len(gram) - 1
    return float(eigh(gram, eigvals_only=True, subset_by_index=[last, last])[0]) * (1.0 + 1e-10)


class Definite:
    """Solves systems with one symmetric matrix that is positive definite, but for rounding.

    >>> Definite(np.array([[2.0, 0.0], [0.0, 4.0]])).solve(np.array([2.0, 2.0]))
    array([1. , 0.5])
    """

    def __init__(self, system: Array) -> None:
        """Factor the matrix, by Cholesky or, where that breaks down, by its eigenvectors."""
        self._factor: tuple[Array, bool] | None = None
        try:
            self._factor = cho_factor(system, lower=True)
        except np.linalg.LinAlgError:
            values, self._vectors = eigh(system)
            self._values = np.maximum(values, len(values) * _ROUNDING * values[-1])

    def solve(self, right: Array) -> Array:
        """The solution for one right side."""
        if len(right) == 0:  # which scipy solves from 1.14 on
            return np.zeros(0)
        if self._factor is not None:
            return np.asarray(cho_solve(self._factor, right, check_finite=False))
        return np.asarray(self._vectors @ ((self._vectors.T @ right) / self._values))


def minimise_composite(
    quadratic: Quadratic,
    linear: Array,
    threshold: float,
    constraint: Constraint | None,
    start: Array,
) -> Array:
    """The minimiser of x'Qx / 2 - q'x + threshold |x|_1 over a constraint set.

    >>> unit = Quadratic.of(Columns(np.eye(2)))
    >>> minimise_composite(unit, np.array([3.0, 0.5]), 1.0, None, np.zeros(2))
    array([2., 0.])
    """
    ball = isinstance(constraint, Ball)
    unit, curvature = quadratic.one_unit() if ball else quadratic.units()
    if curvature <= 0.0:
        return np.zeros_like(linear)
    step, pull, thresholds = 1.0 / curvature, linear / unit, threshold / unit
    size = max(float(np.abs(pull).max(initial=0.0)), float(thresholds.max(initial=0.0)), 1e-300)

    def slope(u: Array) -> Array:
        return quadratic.times(u / unit) / unit - pull

    bounds: tuple[Any, Any] = (-np.inf, np.inf)
    if isinstance(constraint, Box):
        bounds = constraint.low * unit, constraint.high * unit

    def inside(u: Array) -> Array:
        return constraint.project(u) if isinstance(constraint, Ball) else np.clip(u, *bounds)

    def in_ones(u: Array) -> Array:
        return u / unit if constraint is None else constraint.project(u / unit)

    def nearest(point: Array) -> Array:
        """The proximal map: soft thresholding, then projection (right for a box and a ball)."""
        return inside(np.sign(point) * np.maximum(np.abs(point) - step * thresholds, 0.0))

    def stationary(u: Array) -> bool:
        moved = nearest(u - step * slope(u)) - u
        return float(np.abs(moved).max(initial=0.0)) <= _STATIONARY * step * size

    u = inside(start * unit)
    ahead, momentum = u, 1.0
    for count in range(_MOST_STEPS):
        if count % _JUMP_EVERY == 0 and not ball:
            jump = _jump(quadratic, pull, thresholds, bounds, u, unit)
            if jump is not None and stationary(jump):
                return in_ones(jump)
        new = nearest(ahead - step * slope(ahead))
        if float((ahead - new) @ (new - u)) > 0.0:
            momentum, ahead = 1.0, new
        else:
            larger = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            ahead = new + (momentum - 1.0) / larger * (new - u)
            momentum = larger
        u = new
        if count % _JUMP_EVERY == 0 and stationary(u):
            return in_ones(u)
    warnings.warn(
        f"a party's step was not exact after {_MOST_STEPS} gradient steps: scale the columns",
        ConvergenceWarning,
        stacklevel=2,
    )
    return in_ones(u)


def _jump(
    quadratic: Quadratic,
    pull: Array,
    thresholds: Array,
    bounds: tuple[Any, Any],
    u: Array,
    unit: Array,
) -> Array | None:
    """The minimiser with the signs and the active bounds of u, if there is one with them."""
    free = (u > bounds[0]) & (u < bounds[1])
    if np.any(thresholds > 0.0):
        free &= u != 0.0
    if quadratic.gram is None and np.count_nonzero(free) > quadratic.columns.n_samples:
        return None  # a system larger than any Gram matrix of the columns
    jump = u.copy()
    if free.any():
        signs, scale = np.sign(u[free]), unit[free]
        held = quadratic.times(np.where(free, 0.0, u / unit)) / unit
        rest = pull[free] - thresholds[free] * signs - held[free]
        try:
            factor = cho_factor(quadratic.among(free) / np.outer(scale, scale), lower=True)
        except np.linalg.LinAlgError:
            return None
        found = cho_solve(factor, rest, check_finite=False)
        if np.any(found * signs * thresholds[free] < 0.0):
            return None
        jump[free] = found
    return np.clip(jump, *bounds)
