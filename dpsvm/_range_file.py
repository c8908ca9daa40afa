"""The text of svm-scale's range files.

First, if labels are scaled, a line ``y``, a line ``LOWER UPPER`` with the limits they are scaled to
and a line ``MINIMUM MAXIMUM`` with their observed range. Then a line ``x``, a line ``LOWER UPPER``
and, for each feature that varies, a line ``INDEX MINIMUM MAXIMUM``.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

from dpsvm._errors import LibsvmFormatError
from dpsvm._streams import atomic_write, open_text

_LARGEST_INDEX = 2**31 - 1


@dataclass(frozen=True)
class RangeText:
    """x: lower, upper; rows: index, minimum, maximum; y: lower, upper, minimum, maximum."""

    x: tuple[float, float]
    rows: list[tuple[int, float, float]] = field(default_factory=list)
    y: tuple[float, float, float, float] | None = None


class _Lines:
    """The lines of a file, taken one at a time; failures name the line last taken."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with open_text(path) as file:
            self.tokens = [line.decode("ascii", "backslashreplace").split() for line in file]
        self.taken = 0

    def fail(self, reason: str) -> LibsvmFormatError:
        return LibsvmFormatError(self.path, self.taken or None, reason)

    def more(self) -> bool:
        return self.taken < len(self.tokens)

    def take(self, what: str, count: int) -> list[str]:
        if not self.more():
            raise self.fail(f"the file ends before {what}")
        self.taken += 1
        tokens = self.tokens[self.taken - 1]
        if len(tokens) != count:
            raise self.fail(f"expected {what}, got {' '.join(tokens)[:40]!r}")
        return tokens

    def number(self, token: str) -> float:
        try:
            value = float(token)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or "_" in token:
            raise self.fail(f"{token[:40]!r} is not a finite number")
        return value

    def limits(self) -> tuple[float, float]:
        lower, upper = map(self.number, self.take("a lower and an upper limit", 2))
        if lower >= upper:
            raise self.fail(f"lower limit {lower:g} is not below upper limit {upper:g}")
        return lower, upper

    def bounds(self, tokens: list[str], limits: tuple[float, float]) -> tuple[float, float]:
        minimum, maximum = map(self.number, tokens)
        if minimum > maximum:
            raise self.fail(f"minimum {minimum:g} is above maximum {maximum:g}")
        if not math.isfinite((limits[1] - limits[0]) * (maximum - minimum)):
            raise self.fail(f"the range from {minimum:g} to {maximum:g} is too wide to scale")
        return minimum, maximum

    def index(self, token: str, previous: int) -> int:
        index = int(token) if token.isascii() and token.isdigit() and len(token) < 18 else 0
        if not 1 <= index <= _LARGEST_INDEX:
            raise self.fail(f"index {token[:40]!r} is not from 1 to {_LARGEST_INDEX}")
        if index <= previous:
            raise self.fail(f"index {index} does not ascend: it follows {previous}")
        return index


def read_range_file(path: str | os.PathLike[str]) -> RangeText:
    """Read a range file, strictly."""
    lines = _Lines(path)
    y = None
    [section] = lines.take("a line y or x", 1)
    if section == "y":
        limits = lines.limits()
        y = (*limits, *lines.bounds(lines.take("the minimum and maximum label", 2), limits))
        [section] = lines.take("the line x", 1)
    if section != "x":
        raise lines.fail(f"expected a line y or x, got {section[:40]!r}")
    limits = lines.limits()
    rows: list[tuple[int, float, float]] = []
    while lines.more():
        index, *bounds = lines.take("an index, a minimum and a maximum", 3)
        number = lines.index(index, rows[-1][0] if rows else 0)
        rows.append((number, *lines.bounds(bounds, limits)))
    return RangeText(limits, rows, y)


def write_range_file(path: str | os.PathLike[str], text: RangeText) -> None:
    """Write a range file as svm-scale does, with 17 significant digits."""
    with atomic_write(path) as file:
        if text.y is not None:
            lower, upper, minimum, maximum = text.y
            file.write(f"y\n{lower:.17g} {upper:.17g}\n{minimum:.17g} {maximum:.17g}\n")
        file.write(f"x\n{text.x[0]:.17g} {text.x[1]:.17g}\n")
        for index, minimum, maximum in text.rows:
            file.write(f"{index} {minimum:.17g} {maximum:.17g}\n")
