"""How the commands that train models lay out what they print: labelled lines and tables."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

_LABEL_WIDTH = 24
_TEXT_WIDTH = 76


def line(label: str, value: Any) -> str:
    """A value behind its label.

    >>> line("rounds", 20)
    'rounds                  20'
    """
    return f"{label + ' ':<{_LABEL_WIDTH}}{value}"


def paragraph(label: str, text: str) -> list[str]:
    """A text behind its label, in as many lines as it takes.

    >>> [len(one) <= 100 for one in paragraph("outside", "scores of the model " * 5)]
    [True, True]
    """
    return [line(label * (not i), part) for i, part in enumerate(wrap(text, _TEXT_WIDTH))]


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells below each other, every column as wide as its widest.

    >>> table([("model", "loss"), ("joint", "0.25")])
    ['model  loss', 'joint  0.25']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
