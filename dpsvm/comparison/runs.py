"""One training run of a comparison, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm import _core
from dpsvm._arrays import Array
from dpsvm._result import Solution
from dpsvm._version import __version__
from dpsvm.comparison.dataset import Dataset
from dpsvm.comparison.scores import Scores
from dpsvm.comparison.settings import Setting
from dpsvm.progress import Monitor
from dpsvm.rows import core_rows
from dpsvm.svm.expansion import Expansion
from dpsvm.svm.parameters import Parameters
from dpsvm.svm.validation import GlibcRandom, folds

LINEAR = Parameters(kernel="linear")
"""The paper's machine: linear, C = 1, tol = 1e-3."""


class Cancelled(Exception):
    """The run was told to stop, so there is no result."""


@dataclass(frozen=True)
class Run:
    """What one run gave.

    >>> run = Task(Dataset.of([[0.0], [1.0]], [-1, 1]), Setting("wss2")).run()
    >>> run.iterations, run.stop_reason, run.train.accuracy
    (1, 'stationary', 1.0)
    """

    seed: int
    iterations: int
    objective: float
    gap: float
    stop_reason: str
    seconds: float
    kernel_evaluations: int
    train: Scores
    cv: Scores | None = None
    test: Scores | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers; :meth:`from_dict` reads them back."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Run:
        """The run that :meth:`to_dict` wrote."""
        parts = {k: Scores(**values[k]) for k in ("train", "cv", "test") if values.get(k)}
        return Run(**{**values, "cv": None, "test": None, **parts})


@dataclass(frozen=True, eq=False)
class Task:
    """One run to be made."""

    data: Dataset
    setting: Setting
    base: Parameters = LINEAR
    seed: int = 0
    cv: int | None = None
    test: Dataset | None = None

    def key(self) -> dict[str, Any]:
        """What the run depends on, in plain values: equal keys give equal runs."""
        settled = asdict(self.parameters())
        for idle in ("cache_size", "probability", "nu", "epsilon"):
            del settled[idle]
        return settled | {
            "data": self.data.fingerprint,
            "seed": self.seed,
            "cv": self.cv,
            "test": None if self.test is None else self.test.fingerprint,
            "dpsvm": __version__,
        }

    def parameters(self) -> Parameters:
        """The parameters of the run."""
        return self.setting.parameters(self.base)

    def run(self, monitor: Monitor | None = None) -> Run:
        """Train and measure; Cancelled if the monitor says stop."""
        solution = self.solve(self.data, monitor)
        [report] = solution.reports
        cv = None if self.cv is None else self._cross_validate(self.cv, monitor)
        test = None if self.test is None else self._scores(solution, self.test)
        return Run(
            seed=self.seed,
            iterations=report.iterations,
            objective=report.objective,
            gap=report.gap,
            stop_reason=report.stop_reason,
            seconds=report.seconds,
            kernel_evaluations=report.kernel_evaluations,
            train=self._scores(solution, self.data),
            cv=cv,
            test=test,
        )

    def trace(self) -> NDArray[np.void]:
        """Gap and objective of every iteration of the run."""
        return self.solve(self.data, trace_every=1).reports[0].trace

    def solve(
        self, data: Dataset, monitor: Monitor | None = None, trace_every: int = 0
    ) -> Solution:
        """The solution for these or other data; Cancelled if the monitor says stop."""
        solution = _core.train(
            data.X,
            data.codes,
            seed=self.seed,
            monitor=monitor,
            trace_every=trace_every,
            **self.parameters().train_options(),
        )
        if solution.reports[0].stop_reason == "callback":
            raise Cancelled
        return solution

    def decisions(self, data: Dataset, solution: Solution, X: Any) -> Array:
        """Decision values for rows, positive where the positive class of the data is predicted."""
        machine = Expansion.of(self.parameters(), solution, data.X)
        decision = machine.decision_values(X, threads=1)[:, 0]
        return decision if data.positive_code == 0 else -decision

    def _scores(self, solution: Solution, judged: Dataset) -> Scores:
        return _measure(judged, self.decisions(self.data, solution, judged.X))

    def _cross_validate(self, n_folds: int, monitor: Monitor | None) -> Scores:
        """The scores of held-out rows, pooled, in the folds of ``svm-train -v``."""
        data = self.data
        decision = np.zeros(len(data.codes))
        for rows, held_out in folds(data.groups, n_folds, GlibcRandom()):
            part = Dataset(data.name, core_rows(data.X[rows]), data.codes[rows], data.labels)
            solution = self.solve(part, monitor)
            decision[held_out] = self.decisions(part, solution, core_rows(data.X[held_out]))
        return _measure(data, decision)


def _measure(data: Dataset, decision: Array) -> Scores:
    """Scores of decisions, where LIBSVM gives a row on the boundary the second class."""
    predicted = decision > 0 if data.positive_code == 0 else decision >= 0
    return Scores.of(decision, predicted, data.positive)
