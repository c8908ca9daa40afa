"""A node's problem with the plain hinge, which has no curvature: solved in the dual.

    P(f) = sum_i c_i max(0, 1 - m_i) + kappa/2 |f|^2 + b . f,   m_i = y_i f . x_i
    D(r) = sum_i c_i r_i - kappa/2 |f(r)|^2,   0 <= r_i <= 1,
    f(r) = (sum_i c_i r_i y_i x_i - b) / kappa

For every r in the box P(f) - D(r) = sum_i c_i [max(0, 1 - m_i) - r_i (1 - m_i)] +
kappa/2 |f - f(r)|^2, no term of which is negative. P is kappa-strongly convex, so f is within
sqrt(2 gap / kappa) of the minimiser, and kappa times that is to the hinge what a gradient norm is
to a smooth loss. The rounds that lead to r are those of :mod:`dpsvm.privacy.dual`.

Only without privacy: a loss of unbounded curvature has no bound on what an update tells.
"""

from __future__ import annotations

import math
from itertools import islice

import numpy as np

from dpsvm._arrays import Array
from dpsvm.privacy.dual import proximal_rounds
from dpsvm.privacy.minimiser import Objective

HINGE_TOL = 1e-6
"""How far a hinge is solved at most: its gap, the square of that, is all that floats hold."""

_ROUNDS = 60
_NARROWEST = 1e-4  # corner of the rounded hinge of a round


def approach_hinge(objective: Objective, tol: float, start: Array) -> tuple[Array, float]:
    """A point and a bound on kappa times its distance from the minimiser, tol or the best found.

    >>> from dpsvm.losses import Hinge
    >>> F = Objective(np.eye(1), np.ones(1), np.ones(1), Hinge(), 1.0, np.array([0.5]))
    >>> f, bound = approach_hinge(F, 1e-6, np.zeros(1))
    >>> f.round(6), bound <= 1e-6
    (array([0.5]), True)
    """
    wanted = max(tol, HINGE_TOL)
    shares = np.clip(1.0 - objective.margins(start), 0.0, 1.0)
    best, least = start, math.inf
    narrowest = _NARROWEST * min(1.0, 1.0 / objective.lam)
    for now in islice(proximal_rounds(objective, start, shares, narrowest), _ROUNDS):
        found = _weights(objective, now)
        bound = math.sqrt(2.0 * objective.lam * _gap(objective, found, now))
        if bound < least:
            best, least = found, bound
        if least <= wanted:
            break
    return best, least


def _weights(objective: Objective, shares: Array) -> Array:
    """f(r)."""
    pull = objective.rows.T @ (objective.weights * shares * objective.signs)
    return np.asarray((pull - objective.linear) / objective.lam)


def _gap(objective: Objective, f: Array, shares: Array) -> float:
    """P(f) - D(r) for f = f(r), but for rounding."""
    short = 1.0 - objective.margins(f)
    return max(float(objective.weights @ (np.maximum(0.0, short) - shares * short)), 0.0)
