"""Block-coordinate Frank-Wolfe under an arbitrary sampling, over a product of blocks.

    draw S;   s_i = argmin over X_i of <s_i, grad_i f(x_t)>,   x_i <- (1 - g) x_i + g s_i,   i in S

with g = 2/(p t + 2), p the least marginal of the sampling. With all blocks always drawn it is
Frank-Wolfe itself; one at a time is the method of Lacoste-Julien et al. (2013); tau at a time, all
alike, is that of Wang et al. (2016) without delays. :mod:`~dpsvm.frank_wolfe.curvature` states and
proves how fast f(x_t) falls, in the mean over the draws.

The gap needs all the blocks. It is looked at every ``check_every`` iterations; 0 never does, except
at the last point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.constraints import check_positive
from dpsvm.frank_wolfe.checks import check_count
from dpsvm.frank_wolfe.core import FrankWolfe, starting_point
from dpsvm.frank_wolfe.loop import Callback, Result, TowardVertex, check_gradient, iterate
from dpsvm.frank_wolfe.objectives import Smooth, point_of
from dpsvm.frank_wolfe.samplings import Sampling, least_marginal
from dpsvm.frank_wolfe.sets import ConvexSet
from dpsvm.frank_wolfe.steps import make_schedule

BlockOracle = Callable[[int, Array, int], Array]
"""Takes a block, the gradient there and t; gives a point of the block, perhaps inexactly."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockCoordinateFrankWolfe(FrankWolfe):
    """Minimises a smooth function over a product set, some blocks at a time.

    domain, step, max_iter, tol, hessian : as for :class:`FrankWolfe`
    check_every : how many iterations apart the gap is looked at; None is about once for every
        block that is updated least
    oracle, rho : an inexact oracle in the place of the set's own, and rho_g + rho_l, how inexact it
        and the gradient are taken to be by the bound (:mod:`~dpsvm.frank_wolfe.curvature`)

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
        domain, sampling = self.domain, self.sampling
        if len(sampling.marginals) != len(domain.blocks):
            raise ValueError(
                f"a sampling of {len(domain.blocks)} blocks is needed, got one of "
                f"{len(sampling.marginals)}"
            )
        p, every = least_marginal(sampling), self.check_every
        max_iter = check_count(self.max_iter, "max_iter", least=0)
        tol = check_positive(self.tol, "tol", zero=True)
        every = round(1.0 / p) if every is None else check_count(every, "check_every", 0)
        if tol > 0.0 and every == 0:
            raise ValueError(f"tol = {tol!r} has no effect with check_every=0")
        move = _TowardBlocks(
            point=point_of(f, starting_point(domain, x0)),
            oracle=domain.lmo,
            schedule=make_schedule(self.step, p),
            domain=domain,
            sampling=sampling,
            every=every,
            of_block=self.oracle or (lambda block, gradient, t: domain.block_lmo(block, gradient)),
            rng=np.random.default_rng(self.random_state),
        )
        return iterate(move, max_iter, tol, callback, self._bound(f, x0, sampling, self.rho))


@dataclass(kw_only=True)
class _TowardBlocks(TowardVertex):
    """The blocks drawn go towards their vertices, all from the same gradient."""

    domain: ConvexSet
    sampling: Sampling
    every: int  # how many iterations apart the gap is looked at; 0 never is
    of_block: BlockOracle
    rng: np.random.Generator

    def gap(self, t: int, *, last: bool) -> float:
        looked = last or (self.every > 0 and t % self.every == 0)
        return super().gap(t, last=last) if looked else math.nan

    def length(self, t: int) -> float:
        drawn = self.sampling.draw(self.rng)
        places = [self.domain.blocks[block] for block in drawn]
        self.changes = []  # of every block drawn, where it is and s_i - x_i
        for block, here, gradient in zip(
            drawn.tolist(), places, self.point.gradients_in(places), strict=True
        ):
            check_gradient(gradient)
            vertex = np.asarray(self.of_block(block, gradient, t), dtype=np.float64)
            self.changes.append((here, vertex - self.point.x[here]))
        if self.schedule is not None:
            return self.schedule(t)
        direction = np.zeros(self.domain.dimension)
        for here, change in self.changes:
            direction[here] = change
        return self.point.best_step(direction)

    def go(self, length: float) -> None:
        for here, change in self.changes:
            self.point.along(here, length * change)
