"""How a run and its baselines are drawn: two panels, and one look for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpsvm.distributed.comparison import Comparison

# Okabe and Ito (2008).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
CENTRAL_LOOK: dict[str, Any] = {"color": "#000000", "linestyle": "--", "linewidth": 1.2}
MIDDLE_LOOK: dict[str, Any] = {"color": COLOURS[1], "linestyle": "-.", "linewidth": 1.2}
FIRST_LOOK: dict[str, Any] = {"color": "#6b7480", "linestyle": ":", "linewidth": 1.6}


def panels(title: str) -> tuple[Figure, Axes, Axes]:
    """A picture of two panels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    figure.suptitle(title, fontsize="medium", wrap=True)
    return figure, *figure.subplots(1, 2)


def draw_levels(
    axes: Axes, comparison: Comparison[Any, Any], looks: Mapping[str, dict[str, Any]], measure: str
) -> None:
    """A line across for every baseline of which the measure is known and not 0."""
    for outcome in comparison.outcomes:
        if outcome.name in looks and (level := getattr(outcome, measure)):
            axes.axhline(level, label=outcome.name, **looks[outcome.name])
    axes.legend(fontsize="small")


def on_log_axis(numbers: Any) -> Any:
    """Numbers for a logarithmic axis, which has no place for 0.

    >>> on_log_axis([0.0, 2.0])
    array([1.e-16, 2.e+00])
    """
    return np.maximum(numbers, 1e-16)
