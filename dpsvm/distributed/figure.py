"""How a run and its baselines are drawn: two panels, and one look for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsvm.report.picture import canvas, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpsvm.distributed.comparison import Comparison


def panels(title: str) -> tuple[Figure, Axes, Axes]:
    """A picture of two panels."""
    figure, (left, right) = canvas(1, 2, title=title)
    return figure, left, right


def draw_levels(
    axes: Axes, comparison: Comparison[Any, Any], looks: Mapping[str, dict[str, Any]], measure: str
) -> None:
    """A line across for every baseline of which the measure is known and not 0."""
    for outcome in comparison.outcomes:
        if outcome.name in looks and (level := getattr(outcome, measure)):
            axes.axhline(level, label=outcome.name, **looks[outcome.name])
    legend(axes)


def on_log_axis(numbers: Any) -> Any:
    """Numbers for a logarithmic axis, which has no place for 0.

    >>> on_log_axis([0.0, 2.0])
    array([1.e-16, 2.e+00])
    """
    return np.maximum(numbers, 1e-16)
