"""A comparison as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsvm.comparison import words

if TYPE_CHECKING:
    from dpsvm.comparison.comparison import Comparison

WIDTH = 80


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


def comparison_text(comparison: Comparison) -> str:
    """The data, then iterations, where they ended and scores, for each shrinking setting."""
    parts = [table_text(words.data_columns(), [words.data_cells(comparison.data.facts)])]
    for shrinking in dict.fromkeys(line.setting.shrinking for line in comparison.summaries):
        lines = [one for one in comparison.summaries if one.setting.shrinking == shrinking]
        title = words.shrinking_title(comparison, shrinking)
        rows = [words.iteration_cells(line) for line in lines]
        parts.append([f"Iterations: {title}", *table_text(words.ITERATION_COLUMNS, rows)])
        rows = [words.solution_cells(line) for line in lines]
        parts.append(["Where it ended", *table_text(words.SOLUTION_COLUMNS, rows)])
        for where, place in words.SCORE_WHERE.items():
            scored = [line for line in lines if line.scores(where) is not None]
            if scored:
                rows = [words.score_cells(line, where) for line in scored]
                parts.append([f"Scores {place}", *table_text(words.SCORE_COLUMNS, rows)])
        parts.append([line for note in comparison.notes(shrinking) for line in _wrapped(note)])
    return "\n\n".join("\n".join(part) for part in parts if part)


def _wrapped(note: str) -> list[str]:
    return textwrap.wrap(note, WIDTH, initial_indent="* ", subsequent_indent="  ")
