"""What the parts of frank_wolfe.py share: results with their bars, and made data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.common import Table

ON_SPHERE = (0.5, -0.3, 0.2)  # weights that are not 0, of norm 1
INSIDE = (0.4, -0.2, 0.1)  # of norm .7


@dataclass
class Part:
    """Tables, what has to hold, and what is worth saying beside."""

    tables: list[Table] = field(default_factory=list)
    bars: list[tuple[str, bool]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """Bars with their verdicts, then remarks."""
        return [*(f"{line}: {'yes' if ok else 'NO'}" for line, ok in self.bars), *self.remarks]


def spread(values: Any, digits: int = 3) -> str:
    """The mean and the range.

    >>> spread([1.0, 2.0, 3.0])
    '2 (1 to 3)'
    """
    shown = (np.mean(values), np.min(values), np.max(values))
    mean, low, high = (f"{value:.{digits}g}" for value in shown)
    return f"{mean} ({low} to {high})"


def uniform_data(
    seed: int, n: int, d: int, noise: float, truth: Sequence[float] = ON_SPHERE
) -> tuple[np.ndarray, np.ndarray]:
    """Entries uniform in [-1, 1], labels of the first columns and Gaussian noise, cut off at 1."""
    rng = np.random.default_rng(seed)
    A = rng.uniform(-1.0, 1.0, (n, d))
    x = np.zeros(d)
    x[: len(truth)] = truth
    return A, np.clip(A @ x + noise * rng.standard_normal(n), -1.0, 1.0)


def value(A: Any, y: np.ndarray, x: np.ndarray) -> float:
    """|A x - y|^2 / (2 n)."""
    residual = A @ x - y
    return float(residual @ residual) / (2.0 * len(y))


@contextmanager
def seeded() -> Iterator[None]:
    """A seed's warning is not news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
