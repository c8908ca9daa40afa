"""Convergence curves, thinned for drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dpsvm.comparison.comparison import Comparison
    from dpsvm.comparison.runs import Run
    from dpsvm.comparison.settings import Setting

POINTS = 240


@dataclass(frozen=True, eq=False)
class Curve:
    """Gap and objective of one run after so many steps, from 0 to the last."""

    setting: Setting
    steps: NDArray[np.int64]
    gap: NDArray[np.float64]
    objective: NDArray[np.float64]


def curves(comparison: Comparison, shrinking: bool) -> list[Curve]:
    """The first run of each setting."""
    traces = comparison.traces
    return [
        _curve(line.setting, traces[line.setting], line.runs[0])
        for line in comparison.summaries
        if line.setting.shrinking == shrinking
    ]


def _curve(setting: Setting, trace: NDArray[Any], run: Run) -> Curve:
    # A trace has the gap before a step and the objective after it, which begins at 0.
    kept = thinned(len(trace) + 1)
    return Curve(
        setting,
        np.append(trace["iteration"] - 1, run.iterations)[kept],
        np.append(trace["gap"], run.gap)[kept],
        np.insert(trace["objective"], 0, 0.0)[kept],
    )


def thinned(n: int, points: int = POINTS) -> NDArray[np.intp]:
    """Positions 0 to n - 1, evenly spaced on a logarithmic axis once there are too many.

    >>> thinned(3).tolist(), len(thinned(100_000)) <= 240
    ([0, 1, 2], True)
    """
    if n <= points:
        return np.arange(n)
    return np.unique(np.geomspace(1, n, points).round().astype(np.intp)) - 1
