"""How commands lay out what they print: paragraphs, labelled lines and tables."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

WIDTH = 80
"""Of all that a command prints, in columns."""

_LABEL_WIDTH = 24


def line(label: str, value: Any) -> str:
    """A value behind its label, in as many lines as it takes.

    >>> line("rounds", 20)
    'rounds                  20'
    >>> print(line("outside", "scores of the model " * 4))
    outside                 scores of the model scores of the model scores of the
                            model scores of the model
    """
    return fill(
        str(value),
        WIDTH,
        initial_indent=f"{label + ' ':<{_LABEL_WIDTH}}",
        subsequent_indent=" " * _LABEL_WIDTH,
        break_long_words=False,
        break_on_hyphens=False,
    )


def prose(text: str, indent: str = "") -> str:
    """A text in as many lines as it takes.

    >>> len(prose("the joint model beats the first party alone " * 4).splitlines())
    3
    """
    return fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells below each other, every column as wide as its widest.

    >>> table([("model", "loss"), ("joint", "0.25")])
    ['model  loss', 'joint  0.25']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
