"""Newton's method for regularised linear losses, with a certificate.

    F(w) = sum_i c_i loss(y_i w . x_i) + lam/2 |w|^2 + b . w

F is lam-strongly convex: where its gradient is at most tau in norm, the minimiser is at most
tau / lam away. :func:`minimise` returns a point with a certified gradient norm or raises; the
number of steps it took and the norm it reached depend on the data and stay inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from dpsvm._arrays import Array
from dpsvm.losses import Loss

MAX_STEPS = 1000
_UNIT = 2.0**-53
_DENSE = 1500  # weights, or rows with curvature, up to which a matrix is factored
_REFUSED = 10  # small gradients without a certificate after which there will be none
_BLOCK = 2**30  # multiplications at a time
_CG_STEPS = 500
_NEVER_BETTER = 100  # steps without a smaller gradient after which Newton has given all it can


class CertificateError(RuntimeError):
    """A solver could not certify its result, so nothing is released; what was charged stays so.

    That it failed depends on the data, and no guarantee covers who sees it: raise it to whoever
    holds the data, not to whoever is given the model.
    """


@dataclass(frozen=True, eq=False)
class Objective:
    """A function to minimise, of rows of norm at most ``row_norm``.

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
    row_norm: float = 1.0  # no row is longer

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

        A margin is a sum of k products (:func:`products`), off by at most k units of rounding times
        |w| and the row's norm; the slopes of a convex loss at either end of that interval enclose
        the true slope, so a row far from any corner adds nothing. The rows are summed in blocks of
        about sqrt(n), so a sum of n terms goes through at most 2 sqrt(n) + 2 additions, whatever
        the order within a block: its error is at most that many units of rounding times the sum of
        absolute values (Higham 2002, chapter 4).

        Rounding: up.
        """
        n, d = self.rows.shape
        margins = self.margins(w)
        pull = self.weights * self.signs * self.loss.slope(margins)
        size = max(1, math.isqrt(n))
        total = np.zeros(d)
        for start in range(0, n, size):
            total += _combination(self.rows, pull, start, min(start + size, n))
        found = float(np.linalg.norm(total + self.lam * w + self.linear))
        length = float(np.linalg.norm(w))
        longest = self.row_norm
        off = 1.01 * (products(self.rows) + 8) * _UNIT * max(longest * length, 1.0)
        between = self.loss.slope(margins + off) - self.loss.slope(margins - off)
        enclosed = longest * float(self.weights @ between) * (1.0 + (n + 8) * _UNIT)
        summed = (size + math.ceil(n / size) + 16) * longest * float(np.sum(np.abs(pull)))
        rest = 8.0 * (self.lam * length + float(np.linalg.norm(self.linear)) + found)
        return float(found * (1.0 + (d + 8) * _UNIT) + enclosed + 1.01 * _UNIT * (summed + rest))


def _combination(rows: Any, factors: Array, start: int, stop: int) -> Array:
    """The sum of some rows, each times its factor."""
    if not sp.issparse(rows):
        return np.asarray(rows[start:stop].T @ factors[start:stop])
    first, last = rows.indptr[start], rows.indptr[stop]
    each = np.repeat(factors[start:stop], np.diff(rows.indptr[start : stop + 1]))
    entries = rows.data[first:last] * each
    total = np.bincount(rows.indices[first:last], weights=entries, minlength=rows.shape[1])
    return np.asarray(total, dtype=np.float64)


def products(rows: Any) -> int:
    """The largest number of products that a row's inner product with weights sums up.

    >>> products(np.eye(3)), products(sp.csr_array(np.eye(3)))
    (3, 1)
    """
    if sp.issparse(rows):
        return int(np.max(np.diff(rows.indptr), initial=0))
    return int(rows.shape[1])


def minimise(objective: Objective, tau: float, start: Array | None = None) -> Array:
    """A point where the gradient's norm is certified to be at most tau.

    Raises CertificateError where tau is out of reach of floating-point numbers.

    >>> from dpsvm.losses import HuberHinge
    >>> X, y = np.array([[1.0], [-0.5]]), np.array([1.0, -1.0])
    >>> F = Objective(X, y, np.ones(2), HuberHinge(0.5), 1.0, np.zeros(1))
    >>> w = minimise(F, 1e-10)
    >>> bool(F.certificate(w) <= 1e-10)
    True
    """
    w, bound = approach(objective, tau, start)
    if bound <= tau:
        return w
    raise CertificateError(
        f"the minimiser could not be certified to a gradient norm of {tau:g}: nothing is released, "
        "and what was charged stays charged. Raise tol, or lower C."
    )


def approach(objective: Objective, tau: float, start: Array | None = None) -> tuple[Array, float]:
    """The best point found on the way to a gradient norm of tau, and its certificate.

    start : where Newton's method begins, 0 if it is not given

    >>> from dpsvm.losses import HuberHinge
    >>> F = Objective(np.eye(1), np.ones(1), np.ones(1), HuberHinge(0.5), 0.1, np.zeros(1))
    >>> w, bound = approach(F, 1e-30)
    >>> 1e-30 < bound < 1e-12
    True
    """
    best = np.zeros(objective.dimension) if start is None else start
    least, refused = math.inf, 0
    for w, norm in newton(objective, best):
        if norm < least:
            best, least = w, norm
        if norm > 0.5 * tau:
            continue
        bound = objective.certificate(w)
        if bound <= tau:
            return w, bound
        refused += 1
        if refused > _REFUSED:
            break
    return best, objective.certificate(best) if math.isfinite(least) else math.inf


def newton(objective: Objective, start: Array) -> Iterator[tuple[Array, float]]:
    """The points of Newton's method, each with the norm of its gradient, while they get better.

    Steps with the generalised Hessian, each followed along its line to where the slope vanishes: on
    a convex function that search needs no tuning, and it costs no pass over the rows. For losses
    made of parabolas and lines the method ends at the minimum, but for rounding errors.

    >>> from dpsvm.losses import HuberHinge
    >>> F = Objective(np.eye(1), np.ones(1), np.ones(1), HuberHinge(0.5), 0.1, np.zeros(1))
    >>> norms = [norm for _, norm in newton(F, np.zeros(1))]
    >>> norms[0], norms[-1] < 1e-14
    (1.0, True)
    """
    w = np.array(start, dtype=np.float64)
    least, idle = math.inf, 0
    for _ in range(MAX_STEPS):
        margins = objective.margins(w)
        gradient = objective.gradient(w, margins)
        norm = float(np.linalg.norm(gradient))
        if not math.isfinite(norm):
            return
        yield w, norm
        idle = 0 if norm < 0.9 * least else idle + 1
        least = min(least, norm)
        if norm == 0.0 or idle > _NEVER_BETTER:
            return
        step = _newton_direction(objective, margins, gradient)
        along = np.asarray(objective.signs * (objective.rows @ step))
        length = _line_search(_line_slope(objective, w, margins, step, along))
        if length == 0.0:
            return
        w = w + length * step


def _newton_direction(objective: Objective, margins: Array, gradient: Array) -> Array:
    """Minus the inverse of the generalised Hessian lam I + S' S times the gradient.

    S holds the rows with curvature, times its root. Few weights: the Hessian is factored. Few such
    rows: (lam I + S' S)^-1 = (I - S' (lam I + S S')^-1 S) / lam. Else conjugate gradients.
    """
    curvature = objective.weights * objective.loss.curvature(margins)
    curved = np.flatnonzero(curvature > 0)
    half = np.sqrt(curvature[curved])
    d, lam = objective.dimension, objective.lam
    if d <= _DENSE:
        hessian = np.zeros((d, d))
        size = max(1, _BLOCK // d**2)  # a product is over in a moment, so an interrupt is heeded
        for start in range(0, len(curved), size):
            hessian += _inner(_scaled(objective.rows, curved, half, slice(start, start + size)).T)
        return _solve(hessian, lam, -gradient)
    scaled = _scaled(objective.rows, curved, half, slice(None))
    if len(curved) <= _DENSE:
        return np.asarray(
            (scaled.T @ _solve(_inner(scaled), lam, scaled @ gradient) - gradient) / lam
        )

    def product(v: Array) -> Array:
        return np.asarray(scaled.T @ (scaled @ v) + lam * v)

    operator = LinearOperator((d, d), matvec=product, dtype=np.float64)
    rest = max(1e-10, min(0.1, float(np.linalg.norm(gradient))))
    direction, _ = cg(operator, -gradient, rtol=rest, maxiter=_CG_STEPS)
    return np.asarray(direction)


def _scaled(rows: Any, which: NDArray[np.intp], factors: Array, part: slice) -> Any:
    """Some of the chosen rows, each times its factor."""
    chosen = rows[which[part]]
    if sp.issparse(chosen):
        return sp.diags_array(factors[part]) @ chosen
    return chosen * factors[part, None]


def _inner(matrix: Any) -> Array:
    """The inner products of a matrix's rows."""
    product = matrix @ matrix.T
    return np.asarray(product.todense() if sp.issparse(product) else product)


def _solve(matrix: Array, lam: float, right: Array) -> Array:
    """(matrix + lam I)^-1 right, for a matrix that is positive semidefinite but for rounding."""
    size = len(matrix)
    if size == 0:
        return np.zeros(0)
    diagonal = np.diag_indices(size)
    matrix[diagonal] += lam + 4.0 * size * _UNIT * float(np.max(matrix[diagonal]))
    factor = scipy.linalg.cho_factor(matrix, check_finite=False, overwrite_a=True)
    return np.asarray(scipy.linalg.cho_solve(factor, right, check_finite=False))


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

    False position with the Illinois rule: an end that stays put has its slope halved, so that the
    other cannot creep.

    >>> _line_search(lambda t: 4 * t - 1)
    0.25
    """
    at_zero = slope(0.0)
    if at_zero >= 0.0:
        return 1.0  # rounding: the step is as good as done, and the next gradient will tell
    enough = 1e-3 * -at_zero
    low, high, at_low, at_high = 0.0, 1.0, at_zero, slope(1.0)
    if at_high <= enough:
        return 1.0
    for _ in range(100):
        middle = low + (high - low) * at_low / (at_low - at_high)
        at_middle = slope(middle)
        if abs(at_middle) <= enough:
            return middle
        if at_middle < 0.0:
            low, at_low, at_high = middle, at_middle, at_high / 2.0
        else:
            high, at_high, at_low = middle, at_middle, at_low / 2.0
    return low
