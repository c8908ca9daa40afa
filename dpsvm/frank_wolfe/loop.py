"""The loop that every method here runs, what moves in it, and what is kept of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.frank_wolfe.objectives import Point
from dpsvm.frank_wolfe.sets import Atom, ConvexSet
from dpsvm.frank_wolfe.steps import Schedule


@dataclass(frozen=True)
class Iteration:
    """The point x_t and the step that left it."""

    iteration: int  # t, from 0
    value: float  # f(x_t)
    gap: float  # <x_t - s, gradient>, at least f(x_t) - f*; nan where it was not looked at
    step: float  # that leaves x_t, taken unless the run was stopped there; nan at the last point
    bound: float = math.nan  # of Theorem 1 on the mean of f(x_t) - f*, if it was asked for


@dataclass
class History:
    """The iterations of a run.

    >>> history = History([Iteration(0, 4.0, 2.0, 1.0), Iteration(1, 3.0, 0.5, 0.5)])
    >>> history["gap"]
    array([2. , 0.5])
    >>> len(history)
    2
    """

    iterations: list[Iteration] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.iterations)

    def __getitem__(self, name: str) -> Array:
        """One quantity over all the iterations."""
        return np.array([getattr(one, name) for one in self.iterations], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Result:
    """A point, how good it is, and how it was found."""

    x: Array
    value: float  # f(x)
    gap: float  # at least f(x) - f*
    n_iter: int  # steps taken
    stop_reason: str  # "gap" is small enough, no more "iterations", "stopped" by a callback
    history: History


Callback = Callable[[Iteration, Array], Any]
"""Called with every iteration and its point, which it must not change; true ends the run."""

Oracle = Callable[[Array], Array | Atom]
"""Takes a gradient, gives a point of the set that minimises <s, gradient>."""


@dataclass
class TowardVertex:
    """What an iteration does: all of x goes towards the vertex that its gradient asks for."""

    point: Point
    oracle: Oracle
    schedule: Schedule | None  # None for a line search

    def gap(self, t: int, *, last: bool) -> float:
        """<x - s, gradient>; nan if it is not looked at, which it is at the last point."""
        x, gradient = self.point.x, self.point.gradient()
        check_gradient(gradient)
        self.gradient, self.vertex = gradient, self.oracle(gradient)
        if isinstance(self.vertex, Atom):
            return float(x @ gradient) - self.vertex.value * float(gradient[self.vertex.index])
        return float((x - self.vertex) @ gradient)

    def length(self, t: int) -> float:
        """How far to go; where to is settled then."""
        if self.schedule is None:
            return self.point.best_step_toward(self.vertex)
        return self.schedule(t)

    def go(self, length: float) -> None:
        """Go there."""
        self.point.toward(self.vertex, length)


def whole_gap(point: Point, domain: ConvexSet) -> float:
    """The gap at a point of a set."""
    return TowardVertex(point, domain.lmo, None).gap(0, last=True)


def iterate(
    move: TowardVertex,
    max_iter: int,
    tol: float,
    callback: Callback | None,
    bound: Callable[[int], float] | None,
) -> Result:
    """Look, note, go, until the gap is at most tol, no step is left, or the callback says so."""
    point, history = move.point, History()
    for t in range(max_iter + 1):
        gap = move.gap(t, last=t == max_iter)
        stop_reason = "gap" if gap <= tol else "iterations" if t == max_iter else ""
        length = math.nan if stop_reason else move.length(t)
        record = Iteration(t, point.value(), gap, length, math.nan if bound is None else bound(t))
        history.iterations.append(record)
        if callback is not None and callback(record, point.x):
            stop_reason = stop_reason or "stopped"
        if stop_reason:
            break
        move.go(length)
    if math.isnan(gap):
        gap = move.gap(t, last=True)
    return Result(point.x, record.value, gap, t, stop_reason, history)


def check_gradient(gradient: Array) -> None:
    """Refuse what no oracle can answer."""
    if not np.all(np.isfinite(gradient)):
        raise ValueError("the gradient is not finite: scale the data")
