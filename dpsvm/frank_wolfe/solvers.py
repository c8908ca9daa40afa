"""The solvers as objects: settings in, a result out, for any smooth function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsvm.frank_wolfe.blocks import BlockOracle, minimize_blocks, whole_gap
from dpsvm.frank_wolfe.checks import Array
from dpsvm.frank_wolfe.core import minimize, starting_point
from dpsvm.frank_wolfe.curvature import Theorem1, theorem_1
from dpsvm.frank_wolfe.loop import Callback, Result
from dpsvm.frank_wolfe.objectives import Smooth, point_of
from dpsvm.frank_wolfe.samplings import Sampling, elementary
from dpsvm.frank_wolfe.sets import ConvexSet


@dataclass(frozen=True, kw_only=True, eq=False)
class FrankWolfe:
    """Frank-Wolfe over a set (:mod:`~dpsvm.frank_wolfe.core`).

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


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockCoordinateFrankWolfe(FrankWolfe):
    """Frank-Wolfe on blocks drawn at random (:mod:`~dpsvm.frank_wolfe.blocks`).

    domain, step, max_iter, tol, hessian : as for :class:`FrankWolfe`
    oracle, rho : an inexact oracle, and rho_g + rho_l, how inexact it and the gradient are taken to
        be by the bound (:mod:`~dpsvm.frank_wolfe.curvature`)

    >>> from dpsvm.frank_wolfe import Box, LeastSquares, TauNice
    >>> f = LeastSquares(np.eye(4), [0.1, 0.2, 0.3, 2.0])
    >>> solver = BlockCoordinateFrankWolfe(
    ...     domain=Box(np.zeros(4), np.ones(4)), sampling=TauNice(4, 2), hessian=f.hessian(),
    ...     max_iter=400, random_state=0,
    ... )
    >>> found = solver.minimize(f)
    >>> bool(found.value - 0.125 < found.history["bound"][-1] < 0.05)
    True
    """

    sampling: Sampling
    check_every: int | None = None
    oracle: BlockOracle | None = None
    rho: float = 0.0
    random_state: Any = None

    def minimize(self, f: Smooth, x0: Any = None, callback: Callback | None = None) -> Result:
        """Minimise f from a point of the set, its own start if none is given."""
        if self.rho and self.hessian is None:
            raise ValueError(f"rho is for the bound, which needs hessian; got rho={self.rho!r}")
        return minimize_blocks(
            f,
            self.domain,
            self.sampling,
            x0,
            step=self.step,
            max_iter=self.max_iter,
            tol=self.tol,
            check_every=self.check_every,
            oracle=self.oracle,
            callback=callback,
            bound=self._bound(f, x0, self.sampling, self.rho),
            random_state=self.random_state,
        )
