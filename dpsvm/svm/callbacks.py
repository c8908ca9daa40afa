"""scikit-learn's callbacks and the lines of ``verbose``, fed by the core's monitor."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from dpsvm._result import Report
from dpsvm.progress import Monitor


class Subtasks:
    """The core's ``monitor`` as subtasks of a fit: each lasts from one call to the next.

    Used as a context manager, so that the last subtask ends too. A callback that returns True at
    the end of a subtask cancels the training.
    """

    def __init__(self, estimator: Any, context: Any, display: Monitor | None, data: Any) -> None:
        self._estimator = estimator
        self._context = context
        self._display = display
        self._data = data
        self._task: Any = None
        self._has_callbacks = hasattr(estimator, "_skl_callbacks")

    @property
    def monitor(self) -> Monitor | None:
        """What to hand to the core: None, which costs nothing, when nobody listens."""
        return self._step if self._has_callbacks else self._display

    def __enter__(self) -> Self:
        if self._has_callbacks:
            self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._has_callbacks and error is None:
            self._end()

    def _step(self, progress: Mapping[str, Any]) -> bool:
        if self._display is not None:
            self._display(progress)
        cancelled = self._end()
        self._begin()
        return cancelled

    def _begin(self) -> None:
        self._task = self._context.subcontext(task_name="solve")
        self._task.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def _end(self) -> bool:
        return bool(self._task.call_on_fit_task_end(estimator=self._estimator, **self._data))


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
