"""A party's step: the weights that fit a target.

Whatever the penalty R and the constraint set X, a party solves

    minimise over x in X   mu R(x) + |D x - c|^2 / 2,

with the same columns D in every round, a new target c, and a new mu only where rho changes. So the
work on D is done once.

    l2                    one Cholesky factor of mu I + D'D, or of mu I + DD' for wide D, in which
                          case x = D' (mu I + DD')^-1 c
    l2 in a ball          an eigendecomposition of the Gram matrix and one secular equation
    l1, or in a box       accelerated proximal gradient steps from the last round's weights, with
                          jumps to the minimiser on the current support
    geman-mcclure         quadratics that touch it from above, each minimised exactly

D'D is formed unless D is wide; then products go through D, but for the systems of geman-mcclure.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import brentq

from dpsvm.admm.sharing.columns import Columns
from dpsvm.admm.sharing.regularisers import Ball, Box, Constraint, GemanMcClure, Penalty

Array = NDArray[np.float64]

_STATIONARY = 1e-14  # of the gradient, relative to the size of its terms
_JUMP_EVERY = 10  # proximal gradient steps between two jumps
_MOST_STEPS = 100_000
_ROUNDING = 4.0 * np.finfo(np.float64).eps
_ANCHOR = 1e-12  # of the largest eigenvalue
_MOST_QUADRATICS = 500


class Step(ABC):
    """Solves a party's problem for one target after another."""

    @abstractmethod
    def solve(self, target: Array, mu: float) -> Array:
        """The weights that minimise mu R(x) + |D x - target|^2 / 2 over X."""


def make_step(columns: Columns, penalty: Penalty, constraint: Constraint | None) -> Step:
    """The way to solve the problem of a penalty and a constraint.

    >>> from dpsvm.admm.sharing.regularisers import L2
    >>> step = make_step(Columns(np.eye(2)), L2(), None)
    >>> step.solve(np.array([2.0, 4.0]), mu=1.0)
    array([1., 2.])
    """
    if isinstance(penalty, GemanMcClure):
        return NonConvexStep(columns, penalty, constraint)
    if penalty.name == "l2" and constraint is None:
        return RidgeStep(columns)
    if penalty.name == "l2" and isinstance(constraint, Ball):
        return BallStep(columns, constraint)
    return CompositeStep(columns, penalty, constraint)


class RidgeStep(Step):
    """The l2 penalty without a constraint: a linear system with a matrix that is factored once.

    A new mu is a new factorisation. That is cheaper than one eigendecomposition for all of them:
    rho changes a few times in a run, and eigenvectors cost many Cholesky factors.

    >>> RidgeStep(Columns(np.array([[3.0, 4.0]]))).solve(np.array([10.0]), mu=25.0)
    array([0.6, 0.8])
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.gram = columns.gram()
        self._factored: tuple[float, Definite] | None = None

    def solve(self, target: Array, mu: float) -> Array:
        """The ridge regression of the target."""
        if self._factored is None or self._factored[0] != mu:
            system = self.gram.copy()
            system[np.diag_indices_from(system)] += mu
            self._factored = mu, Definite(system)
        system_of_mu = self._factored[1]
        if self.columns.wide:
            return self.columns.transposed_times(system_of_mu.solve(target))
        return system_of_mu.solve(self.columns.transposed_times(target))


class BallStep(Step):
    """The l2 penalty in a ball |x| <= r.

    The multiplier of the ball is added to mu: x(t) = (t I + D'D)^-1 D'c with t = mu if that is
    inside, else with the one t > mu at which |x(t)| = r. In the eigenvectors of the Gram matrix
    |x(t)| is a sum, and 1/|x(t)| is nearly linear in t.

    >>> BallStep(Columns(np.array([[3.0, 4.0]])), Ball(0.5)).solve(np.array([10.0]), mu=25.0)
    array([0.3, 0.4])
    """

    def __init__(self, columns: Columns, ball: Ball) -> None:
        self.columns, self.ball = columns, ball
        values, self.vectors = eigh(columns.gram())
        self.values = np.maximum(values, 0.0)

    def solve(self, target: Array, mu: float) -> Array:
        """The ridge regression of the target in the ball."""
        wide = self.columns.wide
        seen = target if wide else self.columns.transposed_times(target)
        parts = self.vectors.T @ seen
        sizes = parts * np.sqrt(self.values) if wide else parts
        radius = self.ball.radius

        def short(shift: float) -> float:
            norm = float(np.linalg.norm(sizes / (self.values + shift)))
            return (1.0 / norm if norm > 0.0 else math.inf) - 1.0 / radius

        shift = mu
        if short(mu) < 0.0:
            enough = 2.0 * max(float(np.linalg.norm(sizes)) / radius, mu)
            shift = brentq(short, mu, enough, xtol=1e-15 * mu, rtol=_ROUNDING, maxiter=1000)
        found = self.vectors @ (parts / (self.values + shift))
        return self.ball.project(self.columns.transposed_times(found) if wide else found)


class CompositeStep(Step):
    """An l1 penalty, a constraint, or both, with the l2 penalty inside the quadratic part.

    Proximal gradient steps with Nesterov's momentum, started again whenever they turn uphill
    (O'Donoghue and Candes 2015), lead to the right support; a jump solves the linear system on it,
    and is the answer if it is stationary.

    >>> from dpsvm.admm.sharing.regularisers import L1
    >>> CompositeStep(Columns(np.eye(2)), L1(), None).solve(np.array([3.0, 0.5]), mu=1.0)
    array([2., 0.])
    """

    def __init__(self, columns: Columns, penalty: Penalty, constraint: Constraint | None) -> None:
        self.constraint = constraint
        self.sparse = penalty.name == "l1"
        self.quadratic = Quadratic.of(columns)
        self._weights = np.zeros(columns.n_features)

    def solve(self, target: Array, mu: float) -> Array:
        """The minimiser, from the weights of the last call."""
        threshold = mu if self.sparse else 0.0
        quadratic = self.quadratic if self.sparse else self.quadratic.shifted(mu)
        linear = quadratic.columns.transposed_times(target)
        self._weights = minimise_composite(
            quadratic, linear, threshold, self.constraint, self._weights
        )
        return self._weights


class NonConvexStep(Step):
    """The Geman-McClure penalty: a quadratic touches it from above at the last weights.

    x^2 / (1 + x^2) is concave in x^2, so its tangent there lies above it. Each minimiser of the sum
    with such a tangent is at least as good as the point it touches at; what they converge to is
    stationary. Large weights are hardly penalised, so a tiny quadratic about the last weights keeps
    the system definite.

    >>> step = NonConvexStep(Columns(np.eye(2)), GemanMcClure(), None)
    >>> step.solve(np.array([1.25, 0.0]), mu=1.0).round(6)
    array([1., 0.])
    """

    def __init__(
        self, columns: Columns, penalty: GemanMcClure, constraint: Constraint | None
    ) -> None:
        self.penalty, self.constraint = penalty, constraint
        self.quadratic = Quadratic.of(columns)
        self._weights = np.zeros(columns.n_features)

    def solve(self, target: Array, mu: float) -> Array:
        """A stationary point, from the weights of the last call."""
        pull = self.quadratic.columns.transposed_times(target)
        weights, anchor = self._weights, _ANCHOR * self.quadratic.largest
        for _ in range(_MOST_QUADRATICS):
            touching = self.quadratic.shifted(mu * self.penalty.steepness(weights) + anchor)
            linear = pull + anchor * weights
            if self.constraint is None:
                new = Definite(touching.among(np.ones(len(weights), dtype=bool))).solve(linear)
            else:
                new = minimise_composite(touching, linear, 0.0, self.constraint, weights)
            moved = float(np.abs(new - weights).max(initial=0.0))
            weights = new
            if moved <= 1e-13 * (1.0 + float(np.abs(weights).max(initial=0.0))):
                break
        self._weights = weights
        return weights


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
    largest: float  # at least the largest eigenvalue of Q
    shift: Array  # s, a number per feature

    @classmethod
    def of(cls, columns: Columns) -> Quadratic:
        """The quadratic of columns, s being 0."""
        gram = columns.gram()
        last = len(gram) - 1
        largest = float(eigh(gram, eigvals_only=True, subset_by_index=[last, last])[0])
        known = None if columns.wide else gram
        return cls(columns, known, largest * (1.0 + 1e-10), np.zeros(columns.n_features))

    def shifted(self, shift: float | Array) -> Quadratic:
        """The same with another s."""
        more = np.broadcast_to(shift, self.shift.shape)
        return replace(self, shift=more, largest=self.largest + float(more.max(initial=0.0)))

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
    if quadratic.largest <= 0.0:
        return np.zeros_like(linear)
    step = 1.0 / quadratic.largest
    size = float(np.abs(linear).max(initial=0.0)) + threshold

    def nearest(point: Array) -> Array:
        """The proximal map: soft thresholding, then projection (right for a box and a ball)."""
        shrunk = np.sign(point) * np.maximum(np.abs(point) - step * threshold, 0.0)
        return shrunk if constraint is None else constraint.project(shrunk)

    def stationary(x: Array) -> bool:
        moved = nearest(x - step * (quadratic.times(x) - linear)) - x
        return float(np.abs(moved).max(initial=0.0)) <= _STATIONARY * step * max(size, 1e-300)

    x = start if constraint is None else constraint.project(start)
    ahead, momentum = x, 1.0
    for count in range(_MOST_STEPS):
        if count % _JUMP_EVERY == 0 and not isinstance(constraint, Ball):
            jump = _jump(quadratic, linear, threshold, constraint, x)
            if jump is not None and stationary(jump):
                return jump
        new = nearest(ahead - step * (quadratic.times(ahead) - linear))
        if float((ahead - new) @ (new - x)) > 0.0:
            momentum, ahead = 1.0, new
        else:
            larger = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            ahead = new + (momentum - 1.0) / larger * (new - x)
            momentum = larger
        x = new
        if count % _JUMP_EVERY == 0 and stationary(x):
            break
    return x


def _jump(
    quadratic: Quadratic, linear: Array, threshold: float, constraint: Box | None, x: Array
) -> Array | None:
    """The minimiser with the signs and the active bounds of x, if there is one with them."""
    free = x != 0.0 if threshold > 0.0 else np.ones(len(x), dtype=bool)
    if constraint is not None:
        free &= (x > constraint.low) & (x < constraint.high)
    if quadratic.gram is None and np.count_nonzero(free) > quadratic.columns.n_samples:
        return None  # a system larger than any Gram matrix of the columns
    jump = x.copy()
    if free.any():
        signs = np.sign(x[free])
        held = quadratic.times(np.where(free, 0.0, x))
        rest = linear[free] - threshold * signs - held[free]
        try:
            factor = cho_factor(quadratic.among(free), lower=True)
        except np.linalg.LinAlgError:
            return None
        found = cho_solve(factor, rest, check_finite=False)
        if threshold > 0.0 and np.any(found * signs < 0.0):
            return None
        jump[free] = found
    return jump if constraint is None else constraint.project(jump)
