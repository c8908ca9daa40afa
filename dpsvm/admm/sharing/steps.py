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
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from dpsvm._arrays import Array
from dpsvm._memory import Remembers
from dpsvm.admm.sharing.columns import Columns
from dpsvm.admm.sharing.composite import Definite, Quadratic, minimise_composite
from dpsvm.admm.sharing.regularisers import Ball, Constraint, GemanMcClure, Penalty

_ROUNDING = 4.0 * np.finfo(np.float64).eps
_ANCHOR = 1e-12  # of the largest eigenvalue
_MOST_QUADRATICS = 500


class Step(Remembers, ABC):
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
            shift = brentq(short, mu, enough, xtol=1e-15 * mu, rtol=_ROUNDING, maxiter=5000)
        found = self.vectors @ (parts / (self.values + shift))
        return self.ball.project(self.columns.transposed_times(found) if wide else found)


class _FromLast(Step):
    """A step that begins at the weights of the last one."""

    _memory: ClassVar = ("_weights",)

    def __init__(self, columns: Columns, penalty: Any, constraint: Constraint | None) -> None:
        self.penalty, self.constraint = penalty, constraint
        self.quadratic = Quadratic.of(columns)
        self._weights = np.zeros(columns.n_features)


class CompositeStep(_FromLast):
    """An l1 penalty, a constraint, or both, with the l2 penalty inside the quadratic part.

    >>> from dpsvm.admm.sharing.regularisers import L1
    >>> CompositeStep(Columns(np.eye(2)), L1(), None).solve(np.array([3.0, 0.5]), mu=1.0)
    array([2., 0.])
    """

    def solve(self, target: Array, mu: float) -> Array:
        """The minimiser."""
        sparse = self.penalty.name == "l1"
        threshold = mu if sparse else 0.0
        quadratic = self.quadratic if sparse else self.quadratic.shifted(mu)
        linear = quadratic.columns.transposed_times(target)
        self._weights = minimise_composite(
            quadratic, linear, threshold, self.constraint, self._weights
        )
        return self._weights


class NonConvexStep(_FromLast):
    """The Geman-McClure penalty: a quadratic touches it from above at the last weights.

    x^2 / (1 + x^2) is concave in x^2, so its tangent there lies above it. Each minimiser of the sum
    with such a tangent is at least as good as the point it touches at; what they converge to is
    stationary. Large weights are hardly penalised, so a tiny quadratic about the last weights keeps
    the system definite.

    >>> step = NonConvexStep(Columns(np.eye(2)), GemanMcClure(), None)
    >>> step.solve(np.array([1.25, 0.0]), mu=1.0).round(6)
    array([1., 0.])
    """

    def solve(self, target: Array, mu: float) -> Array:
        """A stationary point."""
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
