"""Who listens to the core while it works, and what is said of a fit, meanwhile and at its end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dpsvm._result import Report
from dpsvm.progress import Monitor

MANY = 10_000_000
"""Iterations at which LIBSVM gives up; here a fit goes on."""

ADVICE = (
    "scale the features (StandardScaler or MinMaxScaler), lower C or the degree, or take a larger "
    "tol"
)


@contextmanager
def subtasks(
    estimator: Any, context: Any, display: Monitor | None, data: Any
) -> Iterator[Monitor | None]:
    """The core's ``monitor`` as subtasks of a fit: each lasts from one call to the next.

    Gives the display, or None, which costs nothing, where no callback listens. A callback that
    returns True at the end of a subtask cancels the training.
    """
    if not hasattr(estimator, "_skl_callbacks"):
        yield display
        return

    def begin() -> Any:
        task = context.subcontext(task_name="solve")
        task.call_on_fit_task_begin(estimator=estimator, **data)
        return task

    task = begin()

    def step(progress: Mapping[str, Any]) -> bool:
        nonlocal task
        if display is not None:
            display(progress)
        cancelled = bool(task.call_on_fit_task_end(estimator=estimator, **data))
        task = begin()
        return cancelled

    yield step
    task.call_on_fit_task_end(estimator=estimator, **data)


class Patience:
    """A monitor for the core that tells, once in a fit, of a problem with very many iterations.

    >>> patience = Patience(None, tol=1e-3, tell=lambda text: print(text.partition(", where")[0]))
    >>> patience({"problem": 0, "iteration": 6_000_000, "gap": 0.5})
    False
    >>> patience({"problem": 0, "iteration": 10_000_123, "gap": 0.25})
    10,000,123 iterations, and the optimality gap is 0.25 (0.5 after 6,000,000)
    False
    """

    def __init__(self, monitor: Monitor | None, *, tol: float, tell: Callable[[str], Any]) -> None:
        self._monitor = monitor
        self._tol = tol
        self._tell = tell
        self._told = False
        self._before: Mapping[str, Any] | None = None  # the same problem, on half the way

    def __call__(self, progress: Mapping[str, Any]) -> bool:
        # A fit that begins anew has no gap to tell of yet, and one within tol is about to end.
        if not self._told and progress["gap"] > self._tol:
            self._look(progress)
        return self._monitor is not None and bool(self._monitor(progress))

    def _look(self, progress: Mapping[str, Any]) -> None:
        if self._before is not None and self._before["problem"] != progress["problem"]:
            self._before = None
        if self._before is None and progress["iteration"] >= MANY // 2:
            self._before = progress
        if self._before is None or progress["iteration"] < MANY:
            return
        self._told = True
        earlier = ""
        if self._before is not progress:
            earlier = f" ({self._before['gap']:.3g} after {self._before['iteration']:,})"
        self._tell(
            f"{progress['iteration']:,} iterations, and the optimality gap is "
            f"{progress['gap']:.3g}{earlier}, where tol={self._tol:g} is asked; the fit goes on. "
            f"To get there sooner, {ADVICE}; max_iter and time_limit end it."
        )


def print_reports(name: str, reports: tuple[Report, ...]) -> None:
    """Print one line per solved problem to standard error.

    >>> print_reports("SVC", ())
    """
    for number, report in enumerate(reports, start=1):
        print(
            f"[{name}] problem {number}/{len(reports)}: {report.iterations} iterations, "
            f"objective {report.objective:.6g}, gap {report.gap:.3g}, {report.n_sv} support "
            f"vectors ({report.n_bsv} bounded), {report.stop_reason}, {report.seconds:.3f} s",
            file=sys.stderr,
        )


def stall_notice(gap: float, tol: float) -> str:
    """Return what is said of a fit that was proved to get no further.

    >>> print(stall_notice(0.25, 1e-3).partition(":")[0])
    The solver stalled with an optimality gap of 0.25 (tol=0.001)
    """
    return (
        f"The solver stalled with an optimality gap of {gap:.3g} (tol={tol:g}): with kernel values "
        "in single precision its steps did not do what they promised, and in double precision they "
        f"did not get there either. To get a solution, {ADVICE}."
    )
