"""Convergence curves, thinned for drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dpsvm.comparison.comparison import Comparison
    from dpsvm.comparison.settings import Setting

POINTS = 240


@dataclass(frozen=True, eq=False)
class Curve:
    """Gap and objective of one run against its iterations."""

    setting: Setting
    iteration: NDArray[np.int64]
    gap: NDArray[np.float64]
    objective: NDArray[np.float64]


def curves(comparison: Comparison, shrinking: bool) -> list[Curve]:
    """One curve per setting; a run without any iteration has none."""
    traces = comparison.traces
    return [
        _curve(line.setting, traces[line.setting])
        for line in comparison.summaries
        if line.setting.shrinking == shrinking and len(traces[line.setting])
    ]


def _curve(setting: Setting, trace: NDArray[Any]) -> Curve:
    kept = trace[thinned(len(trace))]
    return Curve(setting, kept["iteration"], kept["gap"], kept["objective"])


def thinned(n: int, points: int = POINTS) -> NDArray[np.intp]:
    """Positions 0 to n - 1, evenly spaced on a logarithmic axis once there are too many.

    >>> thinned(3).tolist(), len(thinned(100_000)) <= 240
    ([0, 1, 2], True)
    """
    if n <= points:
        return np.arange(n)
    return np.unique(np.geomspace(1, n, points).round().astype(np.intp)) - 1
