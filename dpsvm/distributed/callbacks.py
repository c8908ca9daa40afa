"""scikit-learn's callbacks: every round or iteration of a run is a task of the fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Tick = Callable[[], None]
"""Called after every round."""


class Rounds:
    """Tells the callbacks of an estimator of its rounds; costs nothing if there are none.

    estimator : has scikit-learn's CallbackSupportMixin
    data : X and y of the fit, which callbacks may ask for
    tick : also called after every round
    """

    def __init__(
        self, estimator: Any, rounds: int | None, data: dict[str, Any], tick: Tick | None = None
    ) -> None:
        """Begin the fit."""
        self._estimator, self._data, self._tick = estimator, data, tick
        self._listened = hasattr(estimator, "_skl_callbacks")
        self._context = estimator._init_callback_context(max_subtasks=rounds)
        self._context.call_on_fit_task_begin(estimator=estimator, **data)
        self._task: Any = None

    def begin(self) -> None:
        """A round begins."""
        if self._listened:
            self._task = self._context.subcontext(task_name="round")
            self._task.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end(self) -> bool:
        """A round ends; whether a callback asks for it to be the last."""
        if self._tick is not None:
            self._tick()
        if not self._listened:
            return False
        return bool(self._task.call_on_fit_task_end(estimator=self._estimator, **self._data))

    def close(self) -> None:
        """The fit ends, its attributes being in place."""
        self._context.call_on_fit_task_end(
            estimator=self._estimator, reconstruction_attributes={}, **self._data
        )
