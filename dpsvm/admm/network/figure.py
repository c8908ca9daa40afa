"""The picture of a comparison: a network round by round, and its baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpsvm.admm.network.comparison import ALONE, CENTRAL, MEAN_OF_LOCAL, Comparison
from dpsvm.distributed.figure import (
    CENTRAL_LOOK,
    COLOURS,
    FIRST_LOOK,
    MIDDLE_LOOK,
    draw_levels,
    on_log_axis,
    panels,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEVELS = {CENTRAL: CENTRAL_LOOK, MEAN_OF_LOCAL: MIDDLE_LOOK, ALONE: FIRST_LOOK}
_ROUND = "round (dots: data read)"


def picture(comparison: Comparison, title: str) -> Figure:
    """Objective gap and consensus, and loss, by round; a dot where the data were read.

    Of a private run of which nothing was measured, consensus, and the epsilon spent.
    """
    history = comparison.model.history_
    figure, gaps, losses = panels(title)
    rounds, updates = history["round"], np.flatnonzero(history["update"])
    look: dict[str, Any] = {"marker": "o", "markersize": 3, "markevery": updates.tolist()}
    if comparison.measured:
        gap = history["objective"] / comparison[CENTRAL].objective - 1.0
        label = "objective of the mean, above the optimum"
        gaps.plot(rounds, on_log_axis(gap), color=COLOURS[0], label=label, **look)
    apart = on_log_axis(history["consensus"])
    gaps.plot(rounds, apart, color=COLOURS[2], label="consensus error")
    gaps.set(yscale="log", xlabel=_ROUND, ylabel="relative gap; distance")
    gaps.legend(fontsize="small")
    if not comparison.measured:
        losses.plot(rounds, history["privacy"], color=COLOURS[0], **look)
        losses.set(xlabel=_ROUND, ylabel="epsilon spent")
        return figure
    measured = "train_loss" if comparison[CENTRAL].test_loss is None else "test_loss"
    series = "loss" if measured == "train_loss" else measured
    losses.plot(rounds, history[series], color=COLOURS[0], label="network", **look)
    losses.set(xlabel=_ROUND, ylabel=measured.replace("_", " "))
    draw_levels(losses, comparison, _LEVELS, measured)
    return figure
