"""Colours that colour-blind readers can tell apart, and dashes without end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, cycle
from typing import Any

# Okabe and Ito (2008), and a purple in the place of their yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")
BLACK = "#000000"
POSITIVE, NEGATIVE = COLOURS[0], "#7A7F87"
CENTRAL_LOOK: dict[str, Any] = {"color": BLACK, "linestyle": "--", "linewidth": 1.2}
MIDDLE_LOOK: dict[str, Any] = {"color": COLOURS[1], "linestyle": "-.", "linewidth": 1.2}
FIRST_LOOK: dict[str, Any] = {"color": "#6b7480", "linestyle": ":", "linewidth": 1.6}

_STROKES, _SPACE = (7.0, 3.5, 1.0), 1.6  # in widths of the line


@dataclass(frozen=True)
class Look:
    """How a curve is drawn; dashes are strokes and spaces in widths of the line, none if solid."""

    colour: str
    dashes: tuple[float, ...]

    @property
    def line(self) -> dict[str, Any]:
        """The keywords of a matplotlib line."""
        return {"color": self.colour, "linestyle": (0, self.dashes) if self.dashes else "solid"}


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """A look for each label, by order: a colour, the first black, and a dash that no other has.

    >>> looks(["all", "fast", "all"])["fast"]
    Look(colour='#0072B2', dashes=(7.0, 1.6))
    """
    every = zip(chain([BLACK], cycle(COLOURS)), dash_patterns(), strict=False)
    drawn = zip(dict.fromkeys(labels), every, strict=False)
    return {label: Look(*look) for label, look in drawn}


def dash_patterns() -> Iterator[tuple[float, ...]]:
    """A solid line, then dashes of which none is another one begun elsewhere or repeated.

    They are the Lyndon words over three strokes, shortest first.

    >>> from itertools import islice
    >>> list(islice(dash_patterns(), 5))
    [(), (7.0, 1.6), (3.5, 1.6), (1.0, 1.6), (7.0, 1.6, 3.5, 1.6)]
    """
    yield ()
    length = 1
    while True:
        for word in _lyndon(length):
            yield tuple(part for stroke in word for part in (_STROKES[stroke], _SPACE))
        length += 1


def _lyndon(length: int) -> Iterator[tuple[int, ...]]:
    """The words of a length that come before each of their rotations, by Duval's algorithm."""
    word = [-1]
    while word:
        word[-1] += 1
        if len(word) == length:
            yield tuple(word)
        word = (word * length)[:length]
        while word and word[-1] == len(_STROKES) - 1:
            word.pop()
