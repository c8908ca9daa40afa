"""What the solver returns: the solution, and a report on each problem that was solved for it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

TRACE = np.dtype([("iteration", "i8"), ("gap", "f8"), ("objective", "f8"), ("active", "i8")])
"""One point of a trace: the gap when the pair was selected, the objective after the step."""


@dataclass(frozen=True)
class Report:
    """One binary, regression or one-class problem.

    >>> Report(iterations=3, objective=-1.0, rho=0.0, gap=5e-4, stop_reason="stationary").converged
    True
    """

    iterations: int
    objective: float
    rho: float
    gap: float
    """Final violation of optimality m - M, over all variables."""
    stop_reason: str
    """``stationary``, ``exhausted``, ``stalled``, ``max_iter``, ``time_limit`` or ``callback``."""
    n_sv: int = 0
    n_bsv: int = 0
    """Support vectors at their bound."""
    seconds: float = 0.0
    kernel_rows: int = 0
    """Kernel rows computed, wholly or in part."""
    kernel_evaluations: int = 0
    """Kernel values computed."""
    kernel_seconds: float = 0.0
    """Of ``seconds``, those spent computing kernel values."""
    cache_hits: int = 0
    """Kernel rows served without computing."""
    decision_range: float = float("nan")
    """Largest less smallest decision value over the training rows."""
    nu: float = float("nan")
    """Sum of alpha / (C l), for C-SVC and epsilon-SVR with equal bounds."""
    r: float = float("nan")
    """The nu machines' second multiplier: C = 1 / r for nu-SVC, epsilon = -r for nu-SVR."""
    n_selections: int = 0
    """Randomised selections made."""
    marks: str = ""
    """As LIBSVM prints them: ``.`` each attempt to shrink, ``*`` when all variables are active."""
    trace: NDArray[np.void] = field(default_factory=lambda: np.empty(0, dtype=TRACE), repr=False)
    """Points of dtype ``TRACE``; empty unless asked for."""

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.stop_reason == "stationary"


@dataclass(frozen=True)
class Solution:
    """Support vectors and coefficients in LIBSVM's order and with LIBSVM's signs.

    >>> import numpy as np
    >>> from dpsvm._core import train
    >>> X = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> solution = train(X, np.array([0.0, 0.0, 1.0, 1.0]), machine="c-svc", kernel="linear")
    >>> solution.support.tolist(), solution.reports[0].stop_reason
    ([1, 2], 'stationary')
    """

    support: NDArray[np.int32]
    """[nSV] rows of the training data, by class, ascending within a class."""
    n_support: NDArray[np.int32]
    """[classes], or [1]."""
    dual_coef: NDArray[np.float64]
    """[max(classes - 1, 1), nSV]"""
    rho: NDArray[np.float64]
    """[pairs] in the order (0,1) (0,2) ... (1,2) ..."""
    reports: tuple[Report, ...]
    """[pairs]"""
