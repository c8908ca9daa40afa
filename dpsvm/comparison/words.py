"""A comparison in words: the columns and cells of its tables, and the text for a terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from dpsvm.comparison.dataset import Facts
from dpsvm.comparison.results import Results
from dpsvm.comparison.settings import Setting
from dpsvm.comparison.summary import Spread, Summary

WIDTH = 80  # of a terminal
DATA_COLUMNS = ("data", "rows", "features", "range", "imbalance ratio")
"""As in the paper's Table 2."""


def data_cells(facts: Facts) -> list[str]:
    """The cells of one data set."""
    extent = f"[{facts.low:.4g}, {facts.high:.4g}]"
    return [facts.name, f"{facts.rows:,}", str(facts.features), extent, f"{facts.imbalance:.2f}"]


def number(value: float, form: str) -> str:
    """A number, or a dash where there is none.

    >>> number(0.25, ".1f"), number(float("nan"), ".1f")
    ('0.2', '-')
    """
    return "-" if math.isnan(value) else format(value, form)


def _of_several(line: Summary, value: float) -> str:
    return "-" if len(line.runs) == 1 else f"{value:,.0f}"


def _gap(gap: Spread) -> str:
    low, high = f"{gap.low:.2g}", f"{gap.high:.2g}"
    return low if low == high else f"{low} to {high}"


Columns = Mapping[str, Callable[[Summary], str]]
"""The cells of a setting, but for its label, by the names of their columns."""

_ITERATIONS: Columns = {
    "runs": lambda line: str(len(line.runs)),
    "iterations": lambda line: f"{line.iterations.mean:,.0f}",
    "sd": lambda line: _of_several(line, line.iterations.sd),
    "min": lambda line: _of_several(line, line.iterations.low),
    "max": lambda line: _of_several(line, line.iterations.high),
    "iterationRatio": lambda line: number(line.iteration_ratio, ".3f"),
    "seconds": lambda line: f"{line.seconds.mean:.3f}",
    "kernel evaluations": lambda line: f"{line.kernel_evaluations:,.0f}",
}
_SOLUTIONS: Columns = {
    "objective": lambda line: f"{line.objective.mean:.4f}",
    "objError": lambda line: number(line.objective_error.mean, ".2g"),
    "gap": lambda line: _gap(line.gap),
    "stopped": lambda line: ", ".join(f"{count} {why}" for why, count in line.stops.items()),
}
_SCORES = {
    "AUC, ties 1/2": "auc",
    "AUC, stable sort": "auc_stable",
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "F1": "f1",
    "MCC": "mcc",
}
_PLACES = {
    "train": "on the training data",
    "cv": "by cross-validation",
    "test": "on the held-out file",
}


def _score(line: Summary, where: str, name: str) -> str:
    return number(getattr(line.scores(where), name), ".4f")


@dataclass(frozen=True)
class Table:
    """Some settings in rows."""

    title: str
    aside: str
    columns: Columns
    lines: Sequence[Summary]

    @property
    def header(self) -> list[str]:
        """The names of all columns."""
        return ["selector", *self.columns]

    def cells(self, line: Summary) -> list[str]:
        """The row of one of the settings."""
        return [line.setting.label, *(cell(line) for cell in self.columns.values())]


def tables(comparison: Results, shrinking: bool) -> list[Table]:
    """What one shrinking setting cost, where it ended, and the scores that were taken."""
    lines = comparison.by_shrinking[shrinking]
    found = [
        Table("Iterations", shrinking_title(comparison, shrinking), _ITERATIONS, lines),
        Table("Where it ended", "gap: lowest to highest of the runs", _SOLUTIONS, lines),
    ]
    for where, place in _PLACES.items():
        scored = [line for line in lines if line.scores(where) is not None]
        columns = {title: partial(_score, where=where, name=n) for title, n in _SCORES.items()}
        if scored:
            found.append(Table(f"Scores {place}", "means of the runs", columns, scored))
    return found


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
    for shrinking in comparison.by_shrinking:
        for table in tables(comparison, shrinking):
            title = f"{table.title}: {table.aside}" if table.columns is _ITERATIONS else table.title
            rows = [table.cells(line) for line in table.lines]
            parts.append([title, *table_text(table.header, rows)])
        parts.append([line for note in comparison.notes(shrinking) for line in _wrapped(note)])
    return "\n\n".join("\n".join(part) for part in parts if part)


def _wrapped(note: str) -> list[str]:
    return textwrap.wrap(note, WIDTH, initial_indent="* ", subsequent_indent="  ")
