"""A comparison in words: the columns and cells of its tables, and the text for a terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence

from dpsvm.comparison.dataset import Facts
from dpsvm.comparison.results import Results
from dpsvm.comparison.settings import Setting
from dpsvm.comparison.summary import Spread, Summary

WIDTH = 80  # of a terminal
DATA_COLUMNS = ("data", "rows", "features", "range", "imbalance ratio")
"""As in the paper's Table 2."""
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


def shrinking_title(comparison: Results, shrinking: bool) -> str:
    """The kernel, its numbers and the solver's, in a few words."""
    p = comparison.plan.parameters
    words = [f"{p.kernel} kernel", f"C={p.C:g}", f"tol={p.tol:g}"]
    if p.kernel != "linear":
        words.append(f"gamma={p.gamma:g}" if p.gamma else "gamma=1/features")
    return ", ".join([*words, f"shrinking {state(shrinking)}"])


def undrawn(comparison: Results, drawn: Iterable[Setting]) -> str:
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


def table_text(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned lines: the first column to the left, the others to the right.

    Columns that do not fit into WIDTH stand below, beside the first column again.

    >>> print("\\n".join(table_text(["name", "n"], [["a", "10"], ["bcd", "5"]])))
    name   n
    ----  --
    a     10
    bcd    5
    """
    cells = [list(columns), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    fitting = sum(sum(widths[:k]) + 2 * (k - 1) <= WIDTH for k in range(1, len(widths) + 1))
    if 1 < fitting < len(widths):
        below = [[first, *others[fitting - 1 :]] for first, *others in cells]
        above = [row[:fitting] for row in cells]
        return [*table_text(above[0], above[1:]), "", *table_text(below[0], below[1:])]
    cells.insert(1, ["-" * width for width in widths])
    lines = []
    for first, *others in cells:
        aligned = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *aligned]).rstrip())
    return lines


def comparison_text(comparison: Results) -> str:
    """The data, then iterations, where they ended and scores, for each shrinking setting."""
    parts = [table_text(DATA_COLUMNS, [data_cells(comparison.data.facts)])]
    for shrinking, lines in comparison.by_shrinking.items():
        title = shrinking_title(comparison, shrinking)
        rows = [iteration_cells(line) for line in lines]
        parts.append([f"Iterations: {title}", *table_text(ITERATION_COLUMNS, rows)])
        rows = [solution_cells(line) for line in lines]
        parts.append(["Where it ended", *table_text(SOLUTION_COLUMNS, rows)])
        for where, place in SCORE_WHERE.items():
            scored = [line for line in lines if line.scores(where) is not None]
            if scored:
                rows = [score_cells(line, where) for line in scored]
                parts.append([f"Scores {place}", *table_text(SCORE_COLUMNS, rows)])
        parts.append([line for note in comparison.notes(shrinking) for line in _wrapped(note)])
    return "\n\n".join("\n".join(part) for part in parts if part)


def _wrapped(note: str) -> list[str]:
    return textwrap.wrap(note, WIDTH, initial_indent="* ", subsequent_indent="  ")
