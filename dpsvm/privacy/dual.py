"""The hinge without an unregularised bias, solved in the dual to a certified gap.

    primal   P(w) = 1/2 |w|^2 + C sum_i c_i max(0, 1 - y_i w . x_i)
    dual     D(a) = sum_i a_i - 1/2 |w(a)|^2,   0 <= a_i <= C c_i,   w(a) = sum_i a_i y_i x_i

There is no equality constraint between the a_i, so every a in the box is feasible: P(w) - D(a)
bounds how far P(w) is from its minimum, and P being 1-strongly convex, |w - minimiser| <=
sqrt(2 gap). That gap is what :func:`solve_hinge` certifies, whatever has led to a.

What leads to it is the proximal point method on the dual: each round maximises D(a) less a multiple
of the squared distance from the last a. In the primal that is a hinge with its corner rounded
(:class:`ProximalHinge`), which Newton's method minimises in a few steps, as most rows lie on a
straight piece of it. The rounds need no ever sharper corner to converge, so they stay well
conditioned (Li, Sun and Toh 2018 solve the lasso in this way).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from dpsvm._arrays import Array
from dpsvm.losses import Hinge, Loss
from dpsvm.privacy.minimiser import CertificateError, Objective, newton, products

MAX_ROUNDS = 100
_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class ProximalHinge(Loss):
    """The hinge of a round: max over r from 0 to 1 of r (1 - m) - h/2 (r - r_0)^2 for each row.

    Its slope is -r at the maximum, r being a_i / (C c_i). With r_0 = 0 it is the huber hinge, and
    where r = r_0 it is the hinge itself, however wide h.

    >>> ProximalHinge(0.5, np.array([0.0, 0.4])).slope(np.array([0.75, 1.0]))
    array([-0.5, -0.4])
    """

    width: float  # h
    last: Array  # r_0, for each row
    name: ClassVar[str] = "proximal hinge"

    @property
    def smoothness(self) -> float:
        """1 / h."""
        return 1.0 / self.width

    def value(self, margin: Array) -> Array:
        """The loss."""
        r = -self.slope(margin)
        return np.asarray(r * (1.0 - margin) - self.width / 2.0 * (r - self.last) ** 2)

    def slope(self, margin: Array) -> Array:
        """Its first derivative."""
        return -np.clip(self.last + (1.0 - margin) / self.width, 0.0, 1.0)

    def curvature(self, margin: Array) -> Array:
        """1 / h where the slope is strictly between -1 and 0, else 0."""
        slope = self.slope(margin)
        return np.where((slope < 0.0) & (slope > -1.0), 1.0 / self.width, 0.0)


@dataclass(frozen=True, eq=False)
class HingeProblem:
    """The rows, of norm at most 1, and the box."""

    rows: Any  # dense or CSR, of shape (n, d)
    signs: Array
    caps: Array  # C c_i, the largest a_i

    def weights(self, dual: Array) -> Array:
        """w(a)."""
        return np.asarray(self.rows.T @ (self.signs * dual))

    def margins(self, w: Array) -> Array:
        """y_i w . x_i."""
        return np.asarray(self.signs * (self.rows @ w))

    def gap(self, w: Array, dual: Array) -> float:
        """An upper bound on P(w) - D(a) for a w that is w(a) but for rounding errors.

        P(w) - D(a) = sum_i [C c_i max(0, 1 - m_i) - a_i (1 - m_i)] + 1/2 |w - w(a)|^2, no term of
        which is negative. A term is exactly 0, however m_i is rounded, where a_i is at its cap and
        m_i clearly below 1 or a_i is 0 and m_i clearly above; the others are off by at most the
        error of their margin times the cap. Rounding: up.

        >>> problem = HingeProblem(np.eye(1), np.ones(1), np.ones(1))
        >>> problem.gap(np.array([1.0]), np.array([1.0])) < 1e-14
        True
        """
        n = self.rows.shape[0]
        margins = self.margins(w)
        short = 1.0 - margins
        terms = self.caps * np.maximum(0.0, short) - dual * short
        length = float(np.linalg.norm(w))
        error = (products(self.rows) + 16) * _UNIT * max(length, 1.0) * 1.01
        settled = ((dual == self.caps) & (short > error)) | ((dual == 0.0) & (short < -error))
        open_rows = ~settled
        total = math.fsum(terms[open_rows].tolist()) + error * math.fsum(
            self.caps[open_rows].tolist()
        )
        drift = (n + 8) * _UNIT * float(np.sum(dual)) * 1.01
        return float(total * (1.0 + 16 * _UNIT) + 0.5 * drift**2)


def proximal_rounds(
    objective: Objective, w: Array, shares: Array, narrowest: float
) -> Iterator[Array]:
    """The shares r_i of every round, from those given on; Newton's method starts at w.

    A round brings a closer by a factor that falls with the width h over C, and rounds the dual
    variables' errors up by its inverse: from wide corners, where Newton's method starts well, h
    goes down to where both are small.
    """
    width = 1.0
    while True:
        loss = ProximalHinge(width, shares)
        before = math.inf
        for point, norm in newton(replace(objective, loss=loss), w):
            w = point
            if norm <= 1e-6 * width or before / 2.0 < norm <= 1e-6:  # done, or mere rounding
                break
            before = norm
        shares = -loss.slope(objective.margins(w))
        yield shares
        width = max(width / 10.0, narrowest)


def solve_hinge(rows: Any, signs: Array, weights: Array, C: float, gap: float) -> Array:
    """A w with P(w) certified to be within ``gap`` of the minimum, or CertificateError.

    >>> X, y = np.array([[1.0], [0.5], [-1.0]]), np.array([1.0, 1.0, -1.0])
    >>> solve_hinge(X, y, np.ones(3), C=1.0, gap=1e-10).round(4)
    array([1.])
    """
    problem = HingeProblem(rows, signs, C * weights)
    n, d = rows.shape
    objective = Objective(rows, signs, weights, Hinge(), 1.0 / C, np.zeros(d))
    rounds = proximal_rounds(objective, np.zeros(d), np.zeros(n), 1e-4 * min(1.0, math.sqrt(C)))
    for shares in islice(rounds, MAX_ROUNDS):
        dual = problem.caps * shares
        found = problem.weights(dual)
        if problem.gap(found, dual) <= gap:
            return found
    raise CertificateError(
        f"the hinge could not be solved to a duality gap of {gap:g}: nothing is released, and what "
        "was charged stays charged. Lower C, or choose loss='huber'."
    )
