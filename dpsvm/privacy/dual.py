"""The hinge without an unregularised bias, solved in the dual to a certified gap.

    primal   P(w) = 1/2 |w|^2 + C sum_i c_i max(0, 1 - y_i w . x_i)
    dual     D(a) = sum_i a_i - 1/2 |w(a)|^2,   0 <= a_i <= C c_i,   w(a) = sum_i a_i y_i x_i

There is no equality constraint between the a_i, so one of them can be moved at a time, and every a
in the box is feasible: P(w) - D(a) bounds how far P(w) is from its minimum, and P being 1-strongly
convex, |w - minimiser| <= sqrt(2 gap). That gap is what :func:`solve_hinge` certifies.

Coordinate descent is slow far from the optimum and quick near it, so it starts from the minimiser
of hinges with a rounded corner, made ever sharper (:mod:`dpsvm.privacy.minimiser`): their slopes
are dual variables, most of them at a bound already.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dpsvm.losses import HuberHinge
from dpsvm.privacy.minimiser import CertificateError, Objective, minimise

Array = NDArray[np.float64]

MAX_ROUNDS = 200
_EPOCHS = 40  # sweeps over the working rows between two looks at all rows
_WORKING = 2000  # rows that are worked on at a time
_UNIT = 2.0**-53


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
        n, d = self.rows.shape
        margins = self.margins(w)
        short = 1.0 - margins
        terms = self.caps * np.maximum(0.0, short) - dual * short
        length = float(np.linalg.norm(w))
        error = (d + 8) * _UNIT * max(length, 1.0) * 1.01
        settled = ((dual == self.caps) & (short > error)) | ((dual == 0.0) & (short < -error))
        open_rows = ~settled
        total = math.fsum(terms[open_rows].tolist()) + error * math.fsum(
            self.caps[open_rows].tolist()
        )
        drift = (n + 8) * _UNIT * float(np.sum(dual)) * 1.01
        return float(total * (1.0 + 16 * _UNIT) + 0.5 * drift**2)


def solve_hinge(rows: Any, signs: Array, weights: Array, C: float, gap: float) -> Array:
    """A w with P(w) certified to be within ``gap`` of the minimum, or CertificateError.

    >>> X, y = np.array([[1.0], [0.5], [-1.0]]), np.array([1.0, 1.0, -1.0])
    >>> solve_hinge(X, y, np.ones(3), C=1.0, gap=1e-10).round(4)
    array([1.])
    """
    problem = HingeProblem(rows, signs, C * weights)
    dual = _smoothed_start(problem, C, gap)
    random = np.random.default_rng(0)  # the order of the sweeps, nothing secret
    for _ in range(MAX_ROUNDS):
        w = problem.weights(dual)
        if problem.gap(w, dual) <= gap:
            return w
        dual = _descend(problem, dual, w, random)
    raise CertificateError(
        f"the hinge could not be solved to a duality gap of {gap:g}: nothing is released, and what "
        "was charged stays charged. Lower C, or choose loss='huber'."
    )


def _smoothed_start(problem: HingeProblem, C: float, gap: float) -> Array:
    """Dual variables from ever sharper rounded hinges.

    At the minimiser of the hinge of width h, a_i = -C c_i loss'(m_i) leaves a gap of at most
    C h / 4 for each row within its corner; some d rows are.
    """
    d = problem.rows.shape[1]
    sharpest = max(4.0 * gap / (C * (d + 10)), 1e-8)
    linear, weights, w = np.zeros(d), problem.caps / C, np.zeros(d)
    width, used = 1.0, 1.0
    while True:
        loss = HuberHinge(width)
        objective = Objective(problem.rows, problem.signs, weights, loss, 1.0 / C, linear)
        try:
            w = minimise(objective, 1e-3 if width > sharpest else 1e-5, start=w)
        except CertificateError:
            break
        used = width
        if width <= sharpest:
            break
        width = max(width / 5.0, sharpest)
    return -problem.caps * HuberHinge(used).slope(problem.margins(w))


def _descend(problem: HingeProblem, dual: Array, w: Array, random: np.random.Generator) -> Array:
    """Coordinate descent over the rows that contribute most to the gap."""
    short = 1.0 - problem.margins(w)
    up, down = (dual < problem.caps) & (short > 0), (dual > 0) & (short < 0)
    pull = np.where(up, (problem.caps - dual) * short, np.where(down, -dual * short, 0.0))
    inside = (dual > 0) & (dual < problem.caps)
    working = np.flatnonzero((pull > 0) | inside)
    if len(working) > _WORKING:
        working = working[np.argsort(-pull[working], kind="stable")[:_WORKING]]
    block = problem.rows[working]
    gram = np.asarray((block @ block.T).todense()) if sp.issparse(block) else block @ block.T
    signs = problem.signs[working]
    gram = gram * np.outer(signs, signs)
    values, caps, slope = dual[working].tolist(), problem.caps[working].tolist(), -short[working]
    diagonal = np.diag(gram).tolist()
    for _ in range(_EPOCHS):
        moved = 0.0
        for i in random.permutation(len(working)).tolist():
            wanted = values[i] - slope[i] / diagonal[i] if diagonal[i] > 0 else caps[i]
            step = min(max(wanted, 0.0), caps[i]) - values[i]
            if step != 0.0:
                values[i] = min(max(wanted, 0.0), caps[i])
                slope += step * gram[i]
                moved = max(moved, abs(step))
        if moved == 0.0:
            break
    improved = dual.copy()
    improved[working] = values
    return improved
