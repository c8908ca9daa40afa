"""The error of a file that does not hold what its format asks for."""

from __future__ import annotations


class LibsvmFormatError(ValueError):
    """A line, or a whole file, that is not what its format asks for; read as ``FILE:LINE: reason``.

    >>> print(LibsvmFormatError("a1a", 3, "index 0 is below 1"))
    a1a:3: index 0 is below 1
    >>> print(LibsvmFormatError("a1a.gz", None, "the .gz stream is damaged"))
    a1a.gz: the .gz stream is damaged
    """

    def __init__(self, path: str, line: int | None, reason: str) -> None:
        super().__init__(path, line, reason)
        self.path = path
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.reason}"
