"""The comparison itself: every setting's runs on one data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from dpsvm.comparison.charts import overview
from dpsvm.comparison.dataset import Dataset
from dpsvm.comparison.execution import Journal, execute
from dpsvm.comparison.results import Plan, Results
from dpsvm.comparison.runs import Run
from dpsvm.comparison.settings import Setting, grid
from dpsvm.comparison.words import comparison_text
from dpsvm.svm.parameters import Parameters
from dpsvm.svm.selectors import NUMBERS, SELECTORS
from dpsvm.threads import thread_count


@dataclass(frozen=True, eq=False)
class Comparison(Results):
    """The runs of every setting on one data set.

    >>> from dpsvm import compare
    >>> found = compare([[0.0], [1.0], [3.0], [4.0]], [-1, -1, 1, 1], selectors=["wss1"])
    >>> [(line.setting.label, line.iteration_ratio) for line in found.summaries]
    [('wss2', 1.0), ('wss1', 1.3333333333333333)]
    """

    @staticmethod
    def of(
        plan: Plan,
        data: Dataset,
        test: Dataset | None = None,
        *,
        jobs: int = 1,
        journal: Journal | None = None,
        tick: Callable[[], None] = lambda: None,
        into: dict[Setting, list[Run]] | None = None,
    ) -> Comparison:
        """Make every run of a plan; ``into`` receives the runs as they end."""
        runs = {} if into is None else into
        for task, run in execute(plan.tasks(data, test), jobs=jobs, journal=journal):
            tick()
            runs.setdefault(task.setting, []).append(run)
        return Comparison(plan, data, runs, test)

    def plot(self) -> Any:
        """A matplotlib figure of the comparison; ImportError without matplotlib."""
        return overview(self)

    def __str__(self) -> str:
        return comparison_text(self)


def compare(
    X: Any,
    y: ArrayLike,
    *,
    selectors: Iterable[str] = SELECTORS,
    shrinking: Iterable[bool] = (True,),
    runs: int = 10,
    seed: int = 0,
    cv: int | None = None,
    test: tuple[Any, ArrayLike] | None = None,
    n_jobs: int = 1,
    resume: str | PathLike[str] | None = None,
    name: str = "data",
    kernel: str = "linear",
    **parameters: Any,
) -> Comparison:
    """Train two-class data with several working-set selectors and compare them with wss2.

    Parameters
    ----------
    X, y : rows and labels of two classes, trained in LIBSVM's class order.
    selectors : names of selectors; wss2 is always among them.
    shrinking : (True,), (False,) or both.
    runs : runs of each setting that draws random numbers, with the seeds from ``seed`` on.
    cv : folds of a cross-validation of every run, or None.
    test : held-out rows and labels, or None.
    n_jobs : runs at a time; -1 for one per core.
    resume : a file that keeps every run as it ends; runs found in it are not made again.
    kernel, parameters : ``C``, ``gamma`` (0: one over the number of features), ``degree``,
        ``coef0``, ``tol``, ``cache_size``, ``max_iter``, ``time_limit``, as for LIBSVM; and of a
        number that selectors read, such as ``sigma``, the values to compare.

    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(60, random_state=0)
    >>> found = compare(X, y, selectors=["dpwss"], sigma=[0.1, 0.7], runs=2)
    >>> [(line.setting.label, line.stops) for line in found.summaries][-1]
    ('dpwss eps=1 sigma=0.7', {'exhausted': 2})
    """
    numbers = {name: parameters.pop(name) for name in NUMBERS if name in parameters}
    plan = Plan(
        settings=grid(selectors, shrinking, **numbers),
        parameters=Parameters(kernel=kernel, **parameters),
        runs=runs,
        seed=seed,
        cv=cv,
    )
    data = Dataset.of(X, y, name)
    held_out = None if test is None else data.coded(*test)
    journal = None if resume is None else Journal(resume)
    return Comparison.of(plan, data, held_out, jobs=thread_count(n_jobs), journal=journal)
