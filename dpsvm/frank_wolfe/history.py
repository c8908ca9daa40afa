"""What happened in every iteration, and how a run ended."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Iteration:
    """The point x_t and the step that left it."""

    iteration: int  # t, from 0
    value: float  # f(x_t)
    gap: float  # <x_t - s, gradient>, at least f(x_t) - f*; nan where it was not looked at
    step: float  # that leaves x_t, taken unless the run was stopped there; nan at the last point
    bound: float = float("nan")  # of Theorem 1 on the mean of f(x_t) - f*, if it was asked for


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
