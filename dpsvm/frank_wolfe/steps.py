"""How far to go towards the vertex of an iteration t = 0, 1, 2, ...

A schedule tells it beforehand: "diminishing" and those below, or any callable of t. "line-search"
is the least f on the way, and "pairwise" goes from another vertex
(:mod:`~dpsvm.frank_wolfe.pairwise`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpsvm._arrays import Array
from dpsvm.frank_wolfe.checks import check_count

LINE_SEARCH = "line-search"
PAIRWISE = "pairwise"

Schedule = Callable[[int], float]
"""Takes the number of an iteration, gives a step in (0, 1]."""


@dataclass(frozen=True)
class Diminishing:
    """2 / (p t + 2): Frank and Wolfe's for p = 1; else p is the least marginal of a sampling.

    >>> [Diminishing()(t) for t in range(3)]
    [1.0, 0.6666666666666666, 0.5]
    >>> Diminishing(1.5)
    Traceback (most recent call last):
    ...
    ValueError: p must lie above 0 and at most 1, got 1.5
    """

    p: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.p <= 1.0:
            raise ValueError(f"p must lie above 0 and at most 1, got {self.p!r}")

    def __call__(self, t: int) -> float:
        return 2.0 / (self.p * t + 2.0)


@dataclass(frozen=True)
class ParallelStep:
    """2 d tau / (tau^2 t + 2 d), d blocks (Wang et al. 2016); at most 1, or x would leave the set.

    >>> ParallelStep(8, 2)(0), ParallelStep(8, 2)(12)
    (1.0, 0.5)
    """

    blocks: int
    tau: int

    def __post_init__(self) -> None:
        check_count(self.blocks, "blocks")
        check_count(self.tau, "tau", most=self.blocks)

    def __call__(self, t: int) -> float:
        return min(2.0 * self.blocks * self.tau / (self.tau**2 * t + 2.0 * self.blocks), 1.0)


@dataclass(frozen=True)
class SerialStep(ParallelStep):
    """2 d / (t + 2 d), which is Diminishing(1 / d) (Lacoste-Julien et al. 2013).

    >>> SerialStep(4)(8)
    0.5
    """

    tau: int = field(default=1, init=False, repr=False)


def exact_step(direction: Array, residual: Array, most: float = 1.0) -> float:
    """The t in [0, most] with the least |residual + t direction|^2: a line search by its formula.

    >>> import numpy as np
    >>> exact_step(np.array([4.0]), np.array([-2.0]))
    0.5
    """
    slope, curvature = -float(direction @ residual), float(direction @ direction)
    if slope <= 0.0:
        return 0.0
    return most if slope >= most * curvature else slope / curvature


def make_schedule(step: Any, p: float = 1.0) -> Schedule | None:
    """The schedule of a setting: "diminishing" with this p, one's own, or None for a line search.

    What moves towards one vertex of a block or of a party has no "pairwise".

    >>> make_schedule("diminishing", 0.5)
    Diminishing(p=0.5)
    >>> make_schedule("huge")
    Traceback (most recent call last):
    ...
    ValueError: step must be 'diminishing', 'line-search' or a callable, got 'huge'
    """
    named = {LINE_SEARCH: None, "diminishing": Diminishing(p)}
    if isinstance(step, str) and step in named:
        return named[step]
    if callable(step):
        return _checked(step)
    raise ValueError(f"step must be 'diminishing', 'line-search' or a callable, got {step!r}")


def check_steps(step: Any, rounds: int, p: float = 1.0) -> None:
    """Refuse a step that one of the rounds would refuse.

    >>> check_steps(lambda t: 1.0 - t, rounds=3)
    Traceback (most recent call last):
    ...
    ValueError: a step must lie between 0 and 1, got -1.0 at iteration 2
    """
    schedule = make_schedule(step, p)
    if schedule is not None and callable(step):
        for t in range(rounds):
            schedule(t)


def _checked(step: Schedule) -> Schedule:
    def schedule(t: int) -> float:
        given: Any = step(t)
        try:
            length = float(given)
        except (TypeError, ValueError) as error:
            raise ValueError(f"a step must be a number, got {given!r}") from error
        if not 0.0 <= length <= 1.0:
            raise ValueError(f"a step must lie between 0 and 1, got {length!r} at iteration {t}")
        return length

    return schedule
