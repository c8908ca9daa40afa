"""The picture of a comparison: a network round by round, and its baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpsvm.admm.network.comparison import ALONE, CENTRAL, MEAN_OF_LOCAL, Comparison
from dpsvm.admm.sharing.figure import CENTRAL_LOOK, COLOURS, FIRST_LOOK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOCAL_LOOK: dict[str, Any] = {"color": COLOURS[1], "linestyle": "-.", "linewidth": 1.2}
_LEVELS: dict[str, dict[str, Any]] = {
    CENTRAL: CENTRAL_LOOK,
    MEAN_OF_LOCAL: _LOCAL_LOOK,
    ALONE: FIRST_LOOK,
}


def picture(comparison: Comparison, title: str) -> Figure:
    """Objective gap and consensus, and loss, by round; a dot where the data were read."""
    from matplotlib.figure import Figure

    history = comparison.model.history_
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    rounds, updates = history["round"], np.flatnonzero(history["update"])
    look = {"marker": "o", "markersize": 3, "markevery": updates.tolist()}
    gap = history["objective"] / comparison[CENTRAL].objective - 1.0
    label = "objective of the mean, above the optimum"
    left.plot(rounds, np.maximum(gap, 1e-16), color=COLOURS[0], label=label, **look)
    apart = np.maximum(history["consensus"], 1e-16)
    left.plot(rounds, apart, color=COLOURS[2], label="consensus error")
    left.set(yscale="log", xlabel="round (dots: data read)", ylabel="relative gap; distance")
    left.legend(fontsize="small")
    _losses(right, comparison, look)
    figure.suptitle(title, fontsize="medium", wrap=True)
    return figure


def _losses(axes: Axes, comparison: Comparison, look: dict[str, Any]) -> None:
    history = comparison.model.history_
    measured = "train_loss" if comparison[CENTRAL].test_loss is None else "test_loss"
    series = "loss" if measured == "train_loss" else measured
    axes.plot(history["round"], history[series], color=COLOURS[0], label="network", **look)
    for name, level in _LEVELS.items():
        axes.axhline(getattr(comparison[name], measured), label=name, **level)
    axes.set(xlabel="round (dots: data read)", ylabel=measured.replace("_", " "))
    axes.legend(fontsize="small")
