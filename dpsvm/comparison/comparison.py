"""The comparison itself: every setting's runs on one data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from dpsvm.comparison.dataset import Dataset
from dpsvm.comparison.execution import Journal, execute
from dpsvm.comparison.notes import notes
from dpsvm.comparison.runs import LINEAR, Run, Task
from dpsvm.comparison.settings import Setting, grid
from dpsvm.comparison.summary import Summary
from dpsvm.svm.parameters import SELECTORS, Parameters
from dpsvm.threads import thread_count

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run on a data set.

    >>> plan = Plan(settings=grid(["wss2", "dpwss"]), runs=3)
    >>> len(plan.tasks(Dataset.of([[0.0], [1.0]], [-1, 1])))
    4
    """

    settings: Sequence[Setting] = field(default_factory=grid)
    parameters: Parameters = LINEAR
    runs: int = 10  # of a setting that draws; the others are run once
    seed: int = 0  # of the first run; the next ones count up
    cv: int | None = None

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise ValueError(f"runs must be at least 1, got {self.runs!r}")
        if self.cv is not None and self.cv < 2:
            raise ValueError(f"cv must be at least 2, got {self.cv!r}")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed must be from 0 to 2^63 - 1, got {self.seed!r}")
        if self.parameters.kernel == "precomputed":
            raise ValueError("a comparison computes its kernel: 'precomputed' is not for it")

    def task(self, data: Dataset, setting: Setting, seed: int, test: Dataset | None = None) -> Task:
        """One run, with LIBSVM's gamma for these data unless one is given."""
        gamma = self.parameters.gamma or 1.0 / max(data.X.shape[1], 1)
        base = replace(self.parameters, gamma=gamma)
        return Task(data, setting, base, seed, self.cv, test)

    def tasks(self, data: Dataset, test: Dataset | None = None) -> list[Task]:
        """Every run, in the order of the settings."""
        if self.cv is not None and self.cv > min(map(len, data.groups)):
            smallest = min(map(len, data.groups))
            raise ValueError(f"{self.cv} folds need as many rows of each class, got {smallest}")
        return [
            self.task(data, setting, self.seed + number, test)
            for setting in self.settings
            for number in range(self.runs if setting.is_random else 1)
        ]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The runs of every setting on one data set.

    >>> from dpsvm import compare
    >>> found = compare([[0.0], [1.0], [3.0], [4.0]], [-1, -1, 1, 1], selectors=["wss1"])
    >>> [(line.setting.label, line.iteration_ratio) for line in found.summaries]
    [('wss2', 1.0), ('wss1', 1.3333333333333333)]
    """

    plan: Plan
    data: Dataset
    runs: dict[Setting, list[Run]]
    test: Dataset | None = None

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
        for task, run in execute(plan.tasks(data, test), jobs=jobs, journal=journal, tick=tick):
            runs.setdefault(task.setting, []).append(run)
        return Comparison(plan, data, runs, test)

    @cached_property
    def summaries(self) -> list[Summary]:
        """One line per setting that has a run, in the plan's order."""
        found = []
        for setting in self.plan.settings:
            runs = sorted(self.runs.get(setting, []), key=lambda run: run.seed)
            reference = self.runs.get(Setting("wss2", shrinking=setting.shrinking), [])
            if runs:
                found.append(Summary(setting, runs, reference))
        return found

    def notes(self, shrinking: bool) -> list[str]:
        """What must be known to read the dpwss lines of one shrinking setting."""
        lines = [line for line in self.summaries if line.setting.shrinking == shrinking]
        return notes(lines, self.plan.parameters.tol)

    @cached_property
    def traces(self) -> dict[Setting, NDArray[Any]]:
        """Gap and objective of every iteration of each setting's first run, run again for it."""
        plan, data = self.plan, self.data
        return {
            line.setting: plan.task(data, line.setting, plan.seed).trace()
            for line in self.summaries
        }

    def records(self) -> list[dict[str, Any]]:
        """One flat dict of numbers per setting."""
        from dpsvm.report.records import record

        return [record(self, line) for line in self.summaries]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the traces, in plain values."""
        from dpsvm.report.records import configuration

        return {
            "data": asdict(self.data.facts) | {"fingerprint": self.data.fingerprint},
            "configuration": configuration(self.plan),
            "settings": self.records(),
            "runs": [
                asdict(line.setting) | run.to_dict() for line in self.summaries for run in line.runs
            ],
            "notes": {
                f"shrinking {'on' if shrinking else 'off'}": self.notes(shrinking)
                for shrinking in dict.fromkeys(line.setting.shrinking for line in self.summaries)
            },
        }

    def to_frame(self) -> pd.DataFrame:
        """The lines as a pandas DataFrame; ImportError without pandas."""
        import pandas as pd

        return pd.DataFrame.from_records(self.records())

    def plot(self) -> Any:
        """A matplotlib figure of the comparison; ImportError without matplotlib."""
        from dpsvm.report.figures import overview

        return overview(self)

    def __str__(self) -> str:
        from dpsvm.report.text import comparison_text

        return comparison_text(self)


def compare(
    X: Any,
    y: ArrayLike,
    *,
    selectors: Iterable[str] = SELECTORS,
    selection_epsilon: Iterable[float] = (1.0,),
    sigma: Iterable[float] = (0.5,),
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
    selection_epsilon : values for dpwss.
    sigma : values for wss3, wss4 and dpwss.
    shrinking : (True,), (False,) or both.
    runs : runs of each setting that draws random numbers, with the seeds from ``seed`` on.
    cv : folds of a cross-validation of every run, or None.
    test : held-out rows and labels, or None.
    n_jobs : runs at a time; -1 for one per core.
    resume : a file that keeps every run as it ends; runs found in it are not made again.
    kernel, parameters : ``C``, ``gamma`` (0: one over the number of features), ``degree``,
        ``coef0``, ``tol``, ``cache_size``, ``max_iter``, ``time_limit``, as for LIBSVM.

    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(60, random_state=0)
    >>> found = compare(X, y, selectors=["dpwss"], sigma=[0.1, 0.7], runs=2)
    >>> [(line.setting.label, line.stops) for line in found.summaries][-1]
    ('dpwss eps=1 sigma=0.7', {'exhausted': 2})
    """
    plan = Plan(
        settings=grid(selectors, selection_epsilon, sigma, shrinking),
        parameters=Parameters(kernel=kernel, **parameters),
        runs=runs,
        seed=seed,
        cv=cv,
    )
    data = Dataset.of(X, y, name)
    held_out = None if test is None else data.coded(*test)
    journal = None if resume is None else Journal(resume)
    return Comparison.of(plan, data, held_out, jobs=thread_count(n_jobs), journal=journal)
