"""What was run and what came of it, in Python, JSON and CSV."""

from __future__ import annotations

import csv
import io
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray

from dpsvm import _core
from dpsvm._version import __version__
from dpsvm.comparison.dataset import Dataset
from dpsvm.comparison.runs import LINEAR, Run, Task
from dpsvm.comparison.settings import REFERENCE, Setting, grid
from dpsvm.comparison.summary import Summary, notes
from dpsvm.report.plain_json import dumps
from dpsvm.svm.parameters import Parameters
from dpsvm.svm.selectors import SELECTORS

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
        smallest = min(map(len, data.groups))
        if self.cv is not None and self.cv > smallest:
            raise ValueError(f"{self.cv} folds need as many rows of each class, got {smallest}")
        return [
            self.task(data, setting, self.seed + number, test)
            for setting in self.settings
            for number in range(self.runs if setting.is_random else 1)
        ]

    def configuration(self) -> dict[str, Any]:
        """What was run and with which versions."""
        names = dict.fromkeys(setting.selector for setting in self.settings)
        used = ("kernel", "degree", "gamma", "coef0", "C", "tol", "cache_size", "max_iter")
        return {
            "parameters": {name: getattr(self.parameters, name) for name in used},
            "selectors": {name: SELECTORS[name].label for name in names},
            "runs": self.runs,
            "seed": self.seed,
            "cv": self.cv,
            "versions": {
                "dpsvm": __version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "scipy": scipy.__version__,
                "scikit-learn": sklearn.__version__,
            },
            "cpu": _core.cpu_level(),
        }


@dataclass(frozen=True, eq=False)
class Results:
    """The runs of every setting on one data set, and what they add up to."""

    plan: Plan
    data: Dataset
    runs: dict[Setting, list[Run]]
    test: Dataset | None = None

    @cached_property
    def summaries(self) -> list[Summary]:
        """One line per setting that has a run, in the plan's order."""
        found = []
        for setting in self.plan.settings:
            runs = sorted(self.runs.get(setting, []), key=lambda run: run.seed)
            reference = self.runs.get(Setting(REFERENCE, shrinking=setting.shrinking), [])
            if runs:
                found.append(Summary(setting, runs, reference))
        return found

    @cached_property
    def by_shrinking(self) -> dict[bool, list[Summary]]:
        """The lines of each shrinking setting."""
        found: dict[bool, list[Summary]] = {}
        for line in self.summaries:
            found.setdefault(line.setting.shrinking, []).append(line)
        return found

    def notes(self, shrinking: bool) -> list[str]:
        """What must be known to read the dpwss lines of one shrinking setting."""
        return notes(self.by_shrinking.get(shrinking, []), self.plan.parameters.tol)

    @cached_property
    def traces(self) -> dict[Setting, NDArray[Any]]:
        """Gap and objective of every iteration of each setting's first run, run again for it."""
        plan, data = self.plan, self.data
        return {
            line.setting: plan.task(data, line.setting, line.runs[0].seed).trace()
            for line in self.summaries
        }

    def records(self) -> list[dict[str, Any]]:
        """One flat dict of numbers per setting."""
        return [{"data": self.data.name} | line.record() for line in self.summaries]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the traces, in plain values."""
        return {
            "data": asdict(self.data.facts) | {"fingerprint": self.data.fingerprint},
            "configuration": self.plan.configuration(),
            "settings": self.records(),
            "runs": [
                asdict(line.setting) | run.to_dict() for line in self.summaries for run in line.runs
            ],
            "notes": {
                f"shrinking {'on' if shrinking else 'off'}": self.notes(shrinking)
                for shrinking in self.by_shrinking
            },
        }

    def to_frame(self) -> pd.DataFrame:
        """The lines as a pandas DataFrame; ImportError without pandas."""
        import pandas as pd

        return pd.DataFrame.from_records(self.records())


def json_text(comparisons: Sequence[Results], failures: Sequence[str] = ()) -> str:
    """Every comparison as one JSON document; what JSON cannot say (NaN, infinity) is null."""
    document = {"comparisons": [one.to_dict() for one in comparisons], "failures": list(failures)}
    return dumps(document)


def csv_text(comparisons: Sequence[Results]) -> str:
    """One line per data set and setting; what was not measured is empty."""
    records = [line for one in comparisons for line in one.records()]
    text = io.StringIO()
    columns = list(dict.fromkeys(name for line in records for name in line))
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({k: "" if v is None else v for k, v in line.items()} for line in records)
    return text.getvalue()
