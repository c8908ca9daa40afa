"""The runs of one setting, summed up and measured against wss2, and what must be said of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from dpsvm.comparison.runs import Run
from dpsvm.comparison.scores import Scores
from dpsvm.comparison.settings import REFERENCE, Setting
from dpsvm.svm.selectors import NUMBERS, SELECTORS

STOP_REASONS = ("stationary", "exhausted", "stalled", "max_iter", "time_limit")


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


def _spread(name: str) -> cached_property[Spread]:
    """That of one of the numbers of a run over the runs of a line."""
    return cached_property(lambda line: Spread.of(getattr(run, name) for run in line.runs))


@dataclass(frozen=True, eq=False)
class Summary:
    """One line of a comparison.

    ``reference`` holds the runs of wss2 under the same shrinking; without any, what is measured
    against them is NaN.
    """

    setting: Setting
    runs: Sequence[Run]
    reference: Sequence[Run] = ()

    iterations = _spread("iterations")
    objective = _spread("objective")  # the dual's, which is minimised
    gap = _spread("gap")  # the violation of optimality that was left
    seconds = _spread("seconds")  # of the solver

    @property
    def iteration_ratio(self) -> float:
        """Mean iterations as a multiple of wss2's."""
        if not self.reference:
            return math.nan
        return self.iterations.mean / fmean(run.iterations for run in self.reference)

    @cached_property
    def objective_error(self) -> Spread:
        """How far, without sign, the objective is from wss2's: the paper's objError."""
        if not self.reference:
            return Spread(math.nan, math.nan, math.nan, math.nan)
        best = fmean(run.objective for run in self.reference)
        return Spread.of(abs(run.objective - best) for run in self.runs)

    @cached_property
    def stops(self) -> dict[str, int]:
        """How many runs stopped for each reason."""
        return dict(Counter(run.stop_reason for run in self.runs))

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

    def record(self) -> dict[str, Any]:
        """A flat dict of numbers, the same keys for every setting of a comparison."""
        found = asdict(self.setting) | {"runs": len(self.runs)}
        for name in ("iterations", "objective", "objective_error", "gap", "seconds"):
            spread = asdict(getattr(self, name))
            found |= {f"{name}_{part}": value for part, value in spread.items()}
        found["iteration_ratio"] = self.iteration_ratio
        found["kernel_evaluations_mean"] = self.kernel_evaluations
        found |= {f"stopped_{reason}": self.stops.get(reason, 0) for reason in STOP_REASONS}
        for where in ("train", "cv", "test"):
            scores = self.scores(where)
            if scores is not None:
                found |= {f"{where}_{name}": value for name, value in asdict(scores).items()}
        return found


def notes(summaries: Iterable[Summary], tol: float) -> list[str]:
    """What must be said under a table; nothing if no selector in it claims privacy.

    >>> notes([], 1e-3)
    []
    """
    of: dict[str, list[Summary]] = {}
    for summary in summaries:
        of.setdefault(summary.setting.selector, []).append(summary)
    return [line for name, ours in of.items() for line in _notes(name, ours, tol)]


def _notes(name: str, ours: list[Summary], tol: float) -> list[str]:
    selector = SELECTORS[name]
    if selector.budget is None:
        return []
    runs = [run for summary in ours for run in summary.runs]
    spent = [run for run in runs if run.stop_reason == "exhausted"]
    said = [f"None of the {len(runs)} {name} runs ended exhausted."]
    if spent:
        gaps = [run.gap for run in spent]
        said = [
            f"{len(spent)} of {len(runs)} {name} runs ended exhausted (no unused pair left to draw)"
            f", with a gap of {min(gaps):.2g} to {max(gaps):.2g} where {tol:g} was asked for: fewer"
            f" iterations than {REFERENCE} means stopped earlier, not converged faster."
        ]
    said += [_early(summary) for summary in ours if _stops_early(summary)]
    reason = f"{NUMBERS[selector.budget].label} {selector.caveat}"
    return [*said, f"No privacy guarantee is attached to any {name} run: {reason}"]


def _stops_early(summary: Summary) -> bool:
    """Whether some run left more than a tenth of the objective on the way."""
    reference = summary.reference
    return bool(reference) and summary.objective_error.high > 0.1 * abs(reference[0].objective)


def _early(summary: Summary) -> str:
    worst = max(summary.runs, key=lambda run: run.objective)
    return (
        f"{summary.setting.label}: a run stopped after {worst.iterations} iterations at objective "
        f"{worst.objective:.2f}, where wss2 reaches {summary.reference[0].objective:.2f}."
    )
