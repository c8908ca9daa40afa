"""The columns and cells that the terminal and the page share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dpsvm.comparison.dataset import Facts
from dpsvm.comparison.settings import Setting
from dpsvm.comparison.summary import Spread, Summary

if TYPE_CHECKING:
    from dpsvm.comparison.comparison import Comparison

ITERATION_COLUMNS = (
    "selector",
    "runs",
    "iterations",
    "sd",
    "min",
    "max",
    "iterationRatio",
    "seconds",
    "kernel evaluations",
)
SOLUTION_COLUMNS = ("selector", "objective", "objError", "gap", "stopped")
SCORE_COLUMNS = (
    "selector",
    "AUC, ties 1/2",
    "AUC, stable sort",
    "accuracy",
    "precision",
    "recall",
    "F1",
    "MCC",
)
SCORE_WHERE = {
    "train": "on the training data",
    "cv": "by cross-validation",
    "test": "on the held-out file",
}
_SCORES = ("auc", "auc_stable", "accuracy", "precision", "recall", "f1", "mcc")


def data_columns() -> list[str]:
    """The columns of the data table, as in the paper's Table 2."""
    return ["data", "rows", "features", "range", "imbalance ratio"]


def data_cells(facts: Facts) -> list[str]:
    """The cells of one data set."""
    extent = f"[{facts.low:.4g}, {facts.high:.4g}]"
    return [facts.name, f"{facts.rows:,}", str(facts.features), extent, f"{facts.imbalance:.2f}"]


def iteration_cells(line: Summary) -> list[str]:
    """What one setting cost."""
    counts = line.iterations
    single = len(line.runs) == 1
    return [
        line.setting.label,
        str(len(line.runs)),
        f"{counts.mean:,.0f}",
        "-" if single else f"{counts.sd:,.0f}",
        "-" if single else f"{counts.low:,.0f}",
        "-" if single else f"{counts.high:,.0f}",
        number(line.iteration_ratio, ".3f"),
        f"{line.seconds.mean:.3f}",
        f"{line.kernel_evaluations:,.0f}",
    ]


def solution_cells(line: Summary) -> list[str]:
    """Where one setting ended."""
    return [
        line.setting.label,
        f"{line.objective.mean:.4f}",
        number(line.objective_error.mean, ".2g"),
        _gap(line.gap),
        ", ".join(f"{count} {reason}" for reason, count in line.stops.items()),
    ]


def _gap(gap: Spread) -> str:
    low, high = f"{gap.low:.2g}", f"{gap.high:.2g}"
    return low if low == high else f"{low} to {high}"


def score_cells(line: Summary, where: str) -> list[str]:
    """The cells of one setting's mean scores."""
    scores = line.scores(where)
    return [line.setting.label, *(number(getattr(scores, name), ".4f") for name in _SCORES)]


def number(value: float, form: str) -> str:
    """A number, or a dash where there is none.

    >>> number(0.25, ".1f"), number(float("nan"), ".1f")
    ('0.2', '-')
    """
    return "-" if math.isnan(value) else format(value, form)


def shrinking_title(comparison: Comparison, shrinking: bool) -> str:
    """The kernel, its numbers and the solver's, in a few words."""
    p = comparison.plan.parameters
    words = [f"{p.kernel} kernel", f"C={p.C:g}", f"tol={p.tol:g}"]
    if p.kernel != "linear":
        words.append(f"gamma={p.gamma:g}" if p.gamma else "gamma=1/features")
    return ", ".join([*words, f"shrinking {state(shrinking)}"])


def undrawn(comparison: Comparison, drawn: Iterable[Setting]) -> str:
    """What pictures of some settings leave out; nothing is left out unsaid."""
    shown = list(drawn)
    labels = {one.label for one in shown}
    others = [line.setting for line in comparison.summaries if not line.setting.is_reference]
    names = dict.fromkeys(one.label for one in others if one.label not in labels)
    said = [f"Not drawn: {', '.join(names)}."] if names else []
    if len({one.shrinking for one in others}) > 1:
        said.append(f"Drawn with shrinking {state(shown[0].shrinking)} alone.")
    return " ".join(said)


def state(shrinking: bool) -> str:
    """Shrinking in a word."""
    return "on" if shrinking else "off"
