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

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.frank_wolfe.checks import check_count
from dpsvm.frank_wolfe.core import Callback, check_gradient, check_tolerance, note, starting_point
from dpsvm.frank_wolfe.history import History, Iteration, Result
from dpsvm.frank_wolfe.objectives import Point, Smooth, point_of
from dpsvm.frank_wolfe.samplings import Indices, Sampling, least_marginal
from dpsvm.frank_wolfe.sets import ConvexSet
from dpsvm.frank_wolfe.steps import Schedule, make_schedule

Array = NDArray[np.float64]

BlockOracle = Callable[[int, Array, int], Array]
"""Takes a block, the gradient there and t; gives a point of the block, perhaps inexactly."""


def minimize_blocks(
    f: Smooth,
    domain: ConvexSet,
    sampling: Sampling,
    x0: Any = None,
    *,
    step: Any = "diminishing",
    max_iter: int = 1000,
    tol: float = 0.0,
    check_every: int | None = None,
    oracle: BlockOracle | None = None,
    callback: Callback | None = None,
    bound: Callable[[int], float] | None = None,
    random_state: Any = None,
) -> Result:
    """Minimise f over a product set, some blocks at a time.

    check_every : how many iterations apart the gap is looked at; None is about once for every
        block that is updated least
    oracle : an inexact one in the place of the set's own

    >>> from dpsvm.frank_wolfe import Box, LeastSquares, uniform_serial
    >>> f = LeastSquares(np.eye(2), [0.25, 2.0])
    >>> box = Box(np.zeros(2), np.ones(2))
    >>> found = minimize_blocks(
    ...     f, box, uniform_serial(2), step="line-search", tol=1e-12, random_state=0
    ... )
    >>> found.x, found.stop_reason
    (array([0.25, 1.  ]), 'gap')
    """
    if len(sampling.marginals) != len(domain.blocks):
        raise ValueError(
            f"a sampling of {len(domain.blocks)} blocks is needed, got one of "
            f"{len(sampling.marginals)}"
        )
    p = least_marginal(sampling)
    max_iter, schedule = check_count(max_iter, "max_iter", least=0), make_schedule(step, p)
    tol = check_tolerance(tol)
    every = round(1.0 / p) if check_every is None else check_count(check_every, "check_every", 0)
    if tol > 0.0 and every == 0:
        raise ValueError(f"tol = {tol!r} has no effect with check_every=0")
    rng = np.random.default_rng(random_state)
    point, history, gap = point_of(f, starting_point(domain, x0)), History(), float("nan")
    for t in range(max_iter + 1):
        looked = t == max_iter or (every > 0 and t % every == 0)
        gap = whole_gap(point, domain) if looked else float("nan")
        stop_reason = "gap" if gap <= tol else "iterations" if t == max_iter else ""
        length = float("nan")
        if not stop_reason:
            drawn = sampling.draw(rng)
            changes = _changes(point, domain, drawn, oracle, t)
            length = _length(point, domain, drawn, changes, schedule, t)
        past = float("nan") if bound is None else bound(t)
        record = Iteration(t, point.value(), gap, length, past)
        if note(history, record, point.x, callback):
            stop_reason = stop_reason or "stopped"
        if stop_reason:
            break
        for block, change in zip(drawn, changes, strict=True):
            point.along(domain.blocks[block], length * change)
    if not looked:
        gap = whole_gap(point, domain)
    return Result(point.x, record.value, gap, t, stop_reason, history)


def whole_gap(point: Point, domain: ConvexSet) -> float:
    """<x - s, gradient> over all the blocks."""
    gradient = point.gradient()
    check_gradient(gradient)
    return float((point.x - domain.lmo(gradient)) @ gradient)


def _changes(
    point: Point, domain: ConvexSet, drawn: Indices, oracle: BlockOracle | None, t: int
) -> list[Array]:
    """s_i - x_i of every block drawn, from the gradient before any of them moves."""
    changes = []
    places = [domain.blocks[block] for block in drawn]
    for block, here, gradient in zip(
        drawn.tolist(), places, point.gradients_in(places), strict=True
    ):
        check_gradient(gradient)
        if oracle is None:
            vertex = domain.block_lmo(block, gradient)
        else:
            vertex = np.asarray(oracle(block, gradient, t), dtype=np.float64)
        changes.append(vertex - point.x[here])
    return changes


def _length(
    point: Point,
    domain: ConvexSet,
    drawn: Indices,
    changes: list[Array],
    schedule: Schedule | None,
    t: int,
) -> float:
    if schedule is not None:
        return schedule(t)
    direction = np.zeros(domain.dimension)
    for block, change in zip(drawn, changes, strict=True):
        direction[domain.blocks[block]] = change
    return point.best_step(direction)
