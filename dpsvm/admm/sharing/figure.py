"""The picture of a comparison: the loss of the joint model round by round, and its baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsvm.admm.sharing.comparison import CENTRAL, FIRST, Comparison
from dpsvm.distributed.figure import (
    CENTRAL_LOOK,
    COLOURS,
    FIRST_LOOK,
    draw_levels,
    on_log_axis,
    panels,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture(comparison: Comparison, title: str) -> Figure:
    """Objective gap, and loss, by round; the first party's own loss is always drawn.

    There is no relative gap to an optimum of 0. Of a private run of which nothing was measured, the
    loss and the residuals that its messages tell.
    """
    history = comparison.model.history_
    figure, gaps, losses = panels(title)
    rounds = history["round"]
    if not comparison.measured:
        gaps.plot(rounds, history["released_loss"], color=COLOURS[0])
        gaps.set(xlabel="round", ylabel="loss of the sum of the messages")
        for name, colour in zip(("primal", "dual"), COLOURS, strict=False):
            losses.plot(rounds, on_log_axis(history[name]), color=colour, label=name)
        losses.set(yscale="log", xlabel="round", ylabel="residual, relative")
        losses.legend(fontsize="small")
        return figure
    lowest = comparison[CENTRAL].objective
    if lowest > 0.0:
        gap = history["objective"] / lowest - 1.0
        gaps.plot(rounds, on_log_axis(gap), color=COLOURS[0])
    gaps.set(yscale="log", xlabel="round", ylabel="objective above the optimum, relative")
    tested = comparison[CENTRAL].test_loss is not None
    measured = "test_loss" if tested else "train_loss"
    if tested:
        losses.plot(rounds, history["test_loss"], color=COLOURS[0], label="joint")
    else:
        losses.axhline(comparison["joint"].train_loss, color=COLOURS[0], label="joint")
    losses.set(xlabel="round", ylabel=measured.replace("_", " "))
    draw_levels(losses, comparison, {CENTRAL: CENTRAL_LOOK, FIRST: FIRST_LOOK}, measured)
    return figure
