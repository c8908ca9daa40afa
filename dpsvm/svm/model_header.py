"""The header of a LIBSVM model file: ``key value ...`` lines, up to the line ``SV``."""

from __future__ import annotations

import re
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpsvm._errors import LibsvmFormatError

_SIZED_BY_NR_CLASS = ("rho", "label", "probA", "probB", "nr_sv")
_OTHER_KEYS = ("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Header:
    """The lines before ``SV``, each key at most once, with the line number of each.

    >>> import io
    >>> header = Header("a.model", io.BytesIO(b"nr_class 2\\nrho 0.5\\nSV\\n"))
    >>> header.integers("nr_class", 1, 2, 10), header.reals("rho", 1).tolist(), header.end
    ([2], [0.5], 3)
    """

    def __init__(self, path: str, stream: BinaryIO) -> None:
        self.path = path
        self.values: dict[str, list[str]] = {}
        self.lines: dict[str, int] = {}
        self.end = 0  # the number of the line that reads SV
        for self.end, line in enumerate(iter(stream.readline, b""), start=1):
            key, *values = self._tokens(line)
            if key == "SV" and not values:
                return
            self._add(key, values)
        self.fail("the file ends before the line SV", self.end or None)

    def _tokens(self, line: bytes) -> list[str]:
        try:
            tokens = line.decode("ascii").split()
        except UnicodeDecodeError:
            self.fail("the header holds characters that are not ASCII", self.end)
        return tokens or self.fail("blank line in the header", self.end)

    def _add(self, key: str, values: list[str]) -> None:
        if key not in _OTHER_KEYS + _SIZED_BY_NR_CLASS:
            self.fail(f"unknown key {_quoted(key)}", self.end)
        if key in self.values:
            self.fail(f"{key} was given on line {self.lines[key]} already", self.end)
        if key in _SIZED_BY_NR_CLASS and "nr_class" not in self.values:
            self.fail(f"{key} comes before nr_class", self.end)
        self.values[key], self.lines[key] = values, self.end

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def fail(self, reason: str, line: int | None) -> NoReturn:
        """Refuse the file for a fault on a line, or of the file as a whole."""
        raise LibsvmFormatError(self.path, line, reason)

    def tokens(self, key: str, count: int) -> list[str]:
        """Return the values of a key, of which there must be ``count``."""
        if key not in self.values:
            self.fail(f"the header has no {key}", self.end)
        values = self.values[key]
        if len(values) != count:
            self.fail(f"{key} needs {count} value(s), got {len(values)}", self.lines[key])
        return values

    def name(self, key: str, names: dict[str, str]) -> str:
        """Return what the value of a key stands for."""
        [token] = self.tokens(key, 1)
        if token not in names:
            self.fail(f"{key} {_quoted(token)} is not one of {', '.join(names)}", self.lines[key])
        return names[token]

    def integers(self, key: str, count: int, low: int, high: int) -> list[int]:
        """Return the values of a key as whole numbers within bounds."""
        numbers = []
        for token in self.tokens(key, count):
            if not _INTEGER.fullmatch(token) or not low <= int(token) <= high:
                self.fail(
                    f"{key} {_quoted(token)} is not a whole number from {low} to {high}",
                    self.lines[key],
                )
            numbers.append(int(token))
        return numbers

    def reals(self, key: str, count: int) -> NDArray[np.float64]:
        """Return the values of a key as finite numbers."""
        tokens = self.tokens(key, count)
        for token in tokens:
            if not _REAL.fullmatch(token) or not np.isfinite(float(token)):
                self.fail(f"{key} {_quoted(token)} is not a finite number", self.lines[key])
        return np.array([float(token) for token in tokens])


def _quoted(token: str) -> str:
    return repr(token if len(token) <= 40 else token[:40] + "...")
