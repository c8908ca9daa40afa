"""scikit-learn's callback protocol, and interruption."""

from __future__ import annotations

import _thread
import threading
from typing import Any

import numpy as np
import pytest
from listener import NO_CALLBACKS
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

from dpsvm import SVC, SVR, OneClassSVM

ScoringMonitor = pytest.importorskip("sklearn.callback", reason=NO_CALLBACKS).ScoringMonitor


class Recorder:
    """A callback that notes every hook and may cancel or fail at the end of a subtask."""

    def __init__(self, cancel=False, error=None):
        self.calls = []
        self.cancel = cancel
        self.error = error

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.calls.append(f"begin {context.task_name}")
        self.data = X, y

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, metadata=None):
        self.calls.append(f"end {context.task_name}")
        self.fitted, self.metadata = fitted_estimator, metadata
        if context.task_name == "solve" and self.error is not None:
            raise self.error
        return self.cancel


@pytest.fixture(scope="module")
def long_fit():
    """A fit of many seconds, if it is let run."""
    X, y = make_classification(3000, 20, flip_y=0.4, random_state=0)
    return SVC(C=1e6, tol=1e-9, n_jobs=1), X, y


@pytest.mark.parametrize("estimator", [SVC, SVR, OneClassSVM])
def test_the_hooks_of_a_fit_come_in_order(estimator: type) -> None:
    X, y = make_classification(50, random_state=0)
    recorder, weight = Recorder(), np.ones(50)
    machine = estimator().set_callbacks(recorder)
    machine.fit(X, y, sample_weight=weight)
    assert recorder.calls[:3] == ["setup", "begin fit", "begin solve"]
    assert recorder.calls[-3:] == ["end solve", "end fit", "teardown"]
    assert recorder.data[0] is X
    assert recorder.metadata["sample_weight"] is weight
    np.testing.assert_array_equal(recorder.fitted.predict(X), machine.predict(X))


def test_every_begun_task_ends_and_a_callback_can_cancel(long_fit: Any) -> None:
    machine, X, y = long_fit
    recorder = Recorder(cancel=True)
    machine.set_callbacks(recorder).fit(X, y)
    assert machine.stop_reason_ == "callback"
    assert machine.fit_status_ == 1
    assert machine.dual_gap_ > machine.tol
    assert recorder.calls.count("begin solve") == recorder.calls.count("end solve") == 2
    assert np.isfinite(machine.decision_function(X[:5])).all()


def test_an_exception_in_a_callback_ends_the_fit_and_tears_down(long_fit: Any) -> None:
    machine, X, y = long_fit
    recorder = Recorder(error=RuntimeError("enough"))
    with pytest.raises(RuntimeError, match="enough"):
        machine.set_callbacks(recorder).fit(X, y)
    assert recorder.calls[-1] == "teardown"


def test_ctrl_c_ends_a_fit(long_fit: Any) -> None:
    machine, X, y = long_fit
    working = threading.Event()

    class Starter(Recorder):
        def on_fit_task_end(self, estimator, context):
            working.set()

    def press():
        working.wait()
        _thread.interrupt_main()

    keys = threading.Thread(target=press)
    keys.start()
    with pytest.raises(KeyboardInterrupt):
        machine.set_callbacks(Starter()).fit(X, y)
    keys.join()


def test_scores_are_monitored_through_a_grid_search() -> None:
    X, y = make_classification(80, random_state=0)
    monitor = ScoringMonitor(scoring="accuracy")
    machine = SVC().set_callbacks(monitor)
    GridSearchCV(machine, {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    machine.fit(X, y)
    assert monitor.get_logs().data[-1]["accuracy"] == machine.score(X, y)


def test_callbacks_do_not_change_the_result() -> None:
    X, y = make_classification(400, flip_y=0.3, random_state=2)
    plain = SVC(C=100.0).fit(X, y)
    watched = SVC(C=100.0).set_callbacks(Recorder()).fit(X, y)
    np.testing.assert_array_equal(plain.dual_coef_, watched.dual_coef_)
