"""A callback of scikit-learn's protocol that the tests of several estimators share."""

from __future__ import annotations

import pytest

from dpsvm._sklearn import RELEASE

NO_CALLBACKS = "scikit-learn has callbacks from 1.9 on"
needs_callbacks = pytest.mark.skipif(RELEASE < (1, 9), reason=NO_CALLBACKS)


class Listener:
    """Notes the hooks it hears; may ask to stop after so many tasks of a name."""

    def __init__(self, name="round", last=None):
        self.name, self.last, self.begun, self.ended = name, last, [], []

    def setup(self, estimator, context):
        self.open = True

    def teardown(self, estimator, context):
        self.open = False

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)
        return self.last is not None and self.ended.count(self.name) >= self.last


class Failing(Listener):
    """Fails at the first task."""

    def on_fit_task_begin(self, estimator, context):
        raise RuntimeError("no")


def assert_rounds_are_tasks(rounds, estimator, *data):
    """A fit begins and ends so many tasks of that name, and ends whatever else it begins."""
    listener = Listener()
    estimator.set_callbacks(listener).fit(*data)
    assert listener.begun.count("round") == listener.ended.count("round") == rounds
    assert sorted(listener.begun) == sorted(listener.ended)
    assert not listener.open
