"""Frank-Wolfe: minimise a smooth convex f over a compact convex set X.

    s = argmin over X of <s, grad f(x_t)>,    x_{t+1} = (1 - g) x_t + g s,    g = 2/(t+2)

Required: x_0 in X. Ensured: every x_t in X, being a mean of points of X; f(x_t) - f* is at most the
gap <x_t - s, grad f(x_t)>, as f lies above its tangent; and, C being the curvature of f over X, at
most 2 C / (t + 2) from t = 1 on (Jaggi 2013).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.constraints import check_positive
from dpsvm.frank_wolfe.checks import check_count, check_vector
from dpsvm.frank_wolfe.curvature import Theorem1, theorem_1
from dpsvm.frank_wolfe.loop import Callback, Oracle, Result, TowardVertex, iterate, whole_gap
from dpsvm.frank_wolfe.objectives import Smooth, point_of
from dpsvm.frank_wolfe.pairwise import Pairwise
from dpsvm.frank_wolfe.samplings import Sampling, elementary
from dpsvm.frank_wolfe.sets import ConvexSet
from dpsvm.frank_wolfe.steps import PAIRWISE, make_schedule


def minimize(
    f: Smooth,
    lmo: ConvexSet | Oracle,
    x0: Any = None,
    *,
    step: Any = "diminishing",
    max_iter: int = 1000,
    tol: float = 0.0,
    callback: Callback | None = None,
    bound: Callable[[int], float] | None = None,
) -> Result:
    """Minimise f over the set of an oracle.

    lmo : a set, or a callable that takes a gradient; then x0 must be given and lie in the set
    step : "diminishing" 2/(t+2), "line-search", "pairwise" with a line search of its own
        (:mod:`~dpsvm.frank_wolfe.pairwise`), or a callable of t
    tol : stop when the gap is at most this
    bound : what theory says of f(x_t) - f*, for the history

    >>> from dpsvm.frank_wolfe import L1Ball, LeastSquares
    >>> f = LeastSquares(np.eye(2), [3.0, 1.0])
    >>> found = minimize(f, L1Ball(2, 2.0), step="line-search")
    >>> found.x, found.gap, found.stop_reason
    (array([2., 0.]), 0.0, 'gap')
    """
    max_iter = check_count(max_iter, "max_iter", least=0)
    tol = check_positive(tol, "tol", zero=True)
    start = starting_point(lmo, x0)
    oracle: Any = getattr(lmo, "atom", None) or getattr(lmo, "lmo", lmo)
    point = point_of(f, start)
    if isinstance(step, str) and step == PAIRWISE:
        move: TowardVertex = Pairwise(point, oracle, lmo, start)
    else:
        move = TowardVertex(point, oracle, make_schedule(step))
    return iterate(move, max_iter, tol, callback, bound)


@dataclass(frozen=True, kw_only=True, eq=False)
class FrankWolfe:
    """:func:`minimize` as an object: settings in, a result out, for any smooth function.

    hessian : the Hessian of a quadratic, or a matrix that no second derivative exceeds; with it the
        bound of Theorem 1 is in the history, for the step "diminishing"

    >>> from dpsvm.frank_wolfe import LeastSquares, Simplex
    >>> f = LeastSquares(np.eye(3), [0.5, 0.25, 0.25])
    >>> found = FrankWolfe(domain=Simplex(3), max_iter=200).minimize(f, [0.0, 0.0, 1.0])
    >>> found.value <= found.gap < 0.01
    True
    """

    domain: ConvexSet
    step: Any = "diminishing"
    max_iter: int = 1000
    tol: float = 0.0
    hessian: Array | None = None

    def minimize(self, f: Smooth, x0: Any = None, callback: Callback | None = None) -> Result:
        """Minimise f from a point of the set, its own start if none is given."""
        return minimize(
            f,
            self.domain,
            x0,
            step=self.step,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=callback,
            bound=self._bound(f, x0, elementary(len(self.domain.blocks))),
        )

    def _bound(self, f: Smooth, x0: Any, sampling: Sampling, rho: float = 0.0) -> Theorem1 | None:
        """Theorem 1's bound, h_0 being at most the gap at the start."""
        if self.hessian is None:
            return None
        size, hessian = self.domain.dimension, np.asarray(self.hessian, dtype=np.float64)
        if not isinstance(self.step, str) or self.step != "diminishing":
            raise ValueError(f"the bound is for step='diminishing', got step={self.step!r}")
        if hessian.shape != (size, size):
            raise ValueError(
                f"hessian must have {size} rows and columns, got shape {hessian.shape}"
            )
        start = whole_gap(point_of(f, starting_point(self.domain, x0)), self.domain)
        return theorem_1(hessian, self.domain, sampling, max(start, 0.0), rho)


def starting_point(lmo: Any, x0: Any) -> Array:
    """Where a run starts: a point of the set, its own if none is given."""
    if not hasattr(lmo, "contains"):
        if x0 is None:
            raise ValueError("x0 must be given with an oracle that is no set, got None")
        return check_vector(x0, "x0")
    if x0 is None:
        return np.asarray(lmo.start())
    start = check_vector(x0, "x0", lmo.dimension)
    if not lmo.contains(start):
        raise ValueError(f"x0 must lie in the set, got {x0!r}")
    return start
