"""Newton's method for regularised linear losses, with a certificate.

    F(w) = sum_i c_i loss(y_i w . x_i) + lam/2 |w|^2 + b . w

F is lam-strongly convex: where its gradient is at most tau in norm, the minimiser is at most
tau / lam away. :func:`minimise` returns a point with a certified gradient norm or raises; the
number of steps it took and the norm it reached depend on the data and stay inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from dpsvm.losses import Loss

Array = NDArray[np.float64]

MAX_STEPS = 500
_UNIT = 2.0**-53
_DENSE = 1500  # weights up to which the Hessian is formed
_NEVER_BETTER = 25  # steps without a smaller gradient after which Newton has given all it can


class CertificateError(RuntimeError):
    """A solver could not certify its result, so nothing is released; what was charged stays so."""


@dataclass(frozen=True, eq=False)
class Objective:
    """A function to minimise, of rows of norm at most 1.

    >>> from dpsvm.losses import Logistic
    >>> toy = Objective(np.eye(2), np.array([1.0, -1.0]), np.ones(2), Logistic(), 1.0, np.zeros(2))
    >>> toy.gradient(np.zeros(2))
    array([-0.5,  0.5])
    """

    rows: Any  # dense or CSR, of shape (n, d)
    signs: Array  # +1 or -1 for each row
    weights: Array  # c, from 0 to 1 for each row
    loss: Loss
    lam: float
    linear: Array  # b, of size d

    @property
    def dimension(self) -> int:
        """The number of weights."""
        return int(self.rows.shape[1])

    def margins(self, w: Array) -> Array:
        """y_i w . x_i."""
        return np.asarray(self.signs * (self.rows @ w))

    def gradient(self, w: Array, margins: Array | None = None) -> Array:
        """The gradient at w."""
        at = self.margins(w) if margins is None else margins
        pull = self.weights * self.signs * self.loss.slope(at)
        return np.asarray(self.rows.T @ pull + self.lam * w + self.linear)

    def certificate(self, w: Array) -> float:
        """An upper bound on the gradient's norm at w, rounding errors included.

        The rows are summed in blocks of about sqrt(n), so a sum of n terms goes through at most
        2 sqrt(n) + 2 additions, whatever the order within a block: its error is at most that many
        units of rounding times the sum of absolute values (Higham 2002, chapter 4). A margin is a
        sum of d products and moves the slope by at most the smoothness times its own error.

        Rounding: up.
        """
        n, d = self.rows.shape
        margins = self.margins(w)
        pull = self.weights * self.signs * self.loss.slope(margins)
        size = max(1, math.isqrt(n))
        total = np.zeros(d)
        for start in range(0, n, size):
            total += self.rows[start : start + size].T @ pull[start : start + size]
        found = float(np.linalg.norm(total + self.lam * w + self.linear))
        steps = size + math.ceil(n / size) + 16
        length = float(np.linalg.norm(w))
        summed = steps * float(np.sum(np.abs(pull)))
        curved = self.loss.smoothness * (d + 8) * length * float(np.sum(self.weights))
        rest = 8.0 * (self.lam * length + float(np.linalg.norm(self.linear)) + found)
        return float(found * (1.0 + (d + 8) * _UNIT) + 1.01 * _UNIT * (summed + curved + rest))


def minimise(
    objective: Objective, tau: float, start: Array | None = None, *, polish: bool = False
) -> Array:
    """A point where the gradient's norm is certified to be at most tau.

    Newton steps with the generalised Hessian, each followed along its line to where the slope
    vanishes: on a convex function that search needs no tuning, and it costs no pass over the rows.

    start : where to begin, 0 unless given
    polish : go on, once tau is reached, for as long as steps still halve the gradient

    Raises CertificateError where tau is out of reach of floating-point numbers.

    >>> from dpsvm.losses import HuberHinge
    >>> X, y = np.array([[1.0], [-0.5]]), np.array([1.0, -1.0])
    >>> F = Objective(X, y, np.ones(2), HuberHinge(0.5), 1.0, np.zeros(1))
    >>> w = minimise(F, 1e-10)
    >>> bool(F.certificate(w) <= 1e-10)
    True
    """
    w = np.zeros(objective.dimension) if start is None else np.array(start, dtype=np.float64)
    margins = objective.margins(w)
    reached: Array | None = None
    best, idle = math.inf, 0
    for _ in range(MAX_STEPS):
        gradient = objective.gradient(w, margins)
        norm = float(np.linalg.norm(gradient))
        if not math.isfinite(norm):
            break
        if norm <= 0.5 * tau and objective.certificate(w) <= tau:
            if not polish:
                return w
            if reached is not None and norm > 0.5 * best:
                return w if norm < best else reached
            reached = w
        idle = 0 if norm < 0.9 * best else idle + 1
        best = min(best, norm)
        if idle > _NEVER_BETTER:
            break
        step = _newton_direction(objective, margins, gradient)
        along = np.asarray(objective.signs * (objective.rows @ step))
        length = _line_search(_line_slope(objective, w, margins, step, along))
        if length == 0.0:
            break
        w = w + length * step
        margins = objective.margins(w)
    if reached is not None:
        return reached
    if objective.certificate(w) <= tau:
        return w
    raise CertificateError(
        f"the minimiser could not be certified to a gradient norm of {tau:g}: nothing is released, "
        "and what was charged stays charged. Raise tol, or lower C."
    )


def _newton_direction(objective: Objective, margins: Array, gradient: Array) -> Array:
    """Minus the inverse of the generalised Hessian times the gradient."""
    curvature = objective.weights * objective.loss.curvature(margins)
    curved = np.flatnonzero(curvature > 0)
    rows, curvature = objective.rows[curved], curvature[curved]
    d, lam = objective.dimension, objective.lam
    if d <= _DENSE:
        half = np.sqrt(curvature)
        if sp.issparse(rows):
            scaled = sp.diags_array(half) @ rows
            hessian = np.asarray((scaled.T @ scaled).todense())
        else:
            scaled = rows * half[:, None]
            hessian = scaled.T @ scaled
        hessian[np.diag_indices(d)] += lam
        factor = scipy.linalg.cho_factor(hessian, check_finite=False)
        return np.asarray(-scipy.linalg.cho_solve(factor, gradient, check_finite=False))

    def product(v: Array) -> Array:
        return np.asarray(rows.T @ (curvature * (rows @ v)) + lam * v)

    operator = LinearOperator((d, d), matvec=product, dtype=np.float64)
    tolerance = min(0.1, math.sqrt(float(np.linalg.norm(gradient)) / max(lam, 1e-300)))
    direction, _ = cg(operator, -gradient, rtol=max(tolerance, 1e-10), maxiter=10 * d)
    if float(direction @ gradient) >= 0.0:
        return -gradient / lam
    return np.asarray(direction)


def _line_slope(
    objective: Objective, w: Array, margins: Array, step: Array, along: Array
) -> Callable[[float], float]:
    """The slope of F along a step, as a function of its length."""
    weighted = objective.weights * along
    fixed = float(objective.lam * (w @ step) + objective.linear @ step)
    square = objective.lam * float(step @ step)

    def slope(length: float) -> float:
        inner = float(objective.loss.slope(margins + length * along) @ weighted)
        return inner + fixed + length * square

    return slope


def _line_search(slope: Callable[[float], float]) -> float:
    """A length in (0, 1] where a slope that only grows is not positive or all but zero.

    >>> _line_search(lambda t: 4 * t - 1)
    0.25
    """
    at_zero = slope(0.0)
    if at_zero >= 0.0:
        return 1.0  # rounding: the step is as good as done, and the next gradient will tell
    enough = 1e-3 * -at_zero
    if slope(1.0) <= enough:
        return 1.0
    low, high, at_low, at_high = 0.0, 1.0, at_zero, slope(1.0)
    for _ in range(100):
        middle = low + (high - low) * min(max(at_low / (at_low - at_high), 0.1), 0.9)
        at_middle = slope(middle)
        if abs(at_middle) <= enough:
            return middle
        if at_middle < 0.0:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
    return low
