"""The runs of one setting, summed up and measured against wss2."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from statistics import fmean, stdev

from dpsvm.comparison.runs import Run
from dpsvm.comparison.scores import Scores
from dpsvm.comparison.settings import Setting


@dataclass(frozen=True)
class Spread:
    """Mean, standard deviation (0 for one value) and range of some values.

    >>> Spread.of([1.0, 3.0])
    Spread(mean=2.0, sd=1.4142135623730951, low=1.0, high=3.0)
    """

    mean: float
    sd: float
    low: float
    high: float

    @staticmethod
    def of(values: Iterable[float]) -> Spread:
        """The spread of at least one value."""
        given = list(values)
        sd = stdev(given) if len(given) > 1 else 0.0
        return Spread(fmean(given), sd, min(given), max(given))


@dataclass(frozen=True, eq=False)
class Summary:
    """One line of a comparison.

    ``reference`` holds the runs of wss2 under the same shrinking; without any, what is measured
    against them is NaN.
    """

    setting: Setting
    runs: Sequence[Run]
    reference: Sequence[Run] = ()

    @cached_property
    def iterations(self) -> Spread:
        """Iterations of a run."""
        return Spread.of(run.iterations for run in self.runs)

    @property
    def iteration_ratio(self) -> float:
        """Mean iterations as a multiple of wss2's."""
        if not self.reference:
            return math.nan
        return self.iterations.mean / fmean(run.iterations for run in self.reference)

    @cached_property
    def objective(self) -> Spread:
        """The dual objective, which is minimised."""
        return Spread.of(run.objective for run in self.runs)

    @cached_property
    def objective_error(self) -> Spread:
        """How far, without sign, the objective is from wss2's: the paper's objError."""
        if not self.reference:
            return Spread(math.nan, math.nan, math.nan, math.nan)
        best = fmean(run.objective for run in self.reference)
        return Spread.of(abs(run.objective - best) for run in self.runs)

    @cached_property
    def gap(self) -> Spread:
        """The violation of optimality that was left."""
        return Spread.of(run.gap for run in self.runs)

    @cached_property
    def stops(self) -> dict[str, int]:
        """How many runs stopped for each reason."""
        return dict(Counter(run.stop_reason for run in self.runs))

    @property
    def seconds(self) -> Spread:
        """Seconds of the solver."""
        return Spread.of(run.seconds for run in self.runs)

    @property
    def kernel_evaluations(self) -> float:
        """Mean number of kernel values computed."""
        return fmean(run.kernel_evaluations for run in self.runs)

    def scores(self, where: str) -> Scores | None:
        """The mean of each measure on "train", "cv" or "test"; None if it was not taken."""
        taken = [scores for run in self.runs if (scores := getattr(run, where)) is not None]
        if not taken:
            return None
        names = [field.name for field in fields(Scores)]
        return Scores(**{name: fmean(getattr(one, name) for one in taken) for name in names})
