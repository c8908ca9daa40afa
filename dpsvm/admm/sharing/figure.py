"""The picture of a comparison: the loss of the joint model round by round, and its baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpsvm.admm.sharing.comparison import CENTRAL, FIRST, Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito (2008).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
CENTRAL_LOOK = {"color": "#000000", "linestyle": "--", "linewidth": 1.2}
FIRST_LOOK = {"color": "#6b7480", "linestyle": ":", "linewidth": 1.6}


def picture(comparison: Comparison, title: str) -> Figure:
    """Objective gap, and loss, by round; the first party's own loss is always drawn.

    There is no relative gap to an optimum of 0. Of a private run of which nothing was measured, the
    loss and the residuals that its messages tell.
    """
    from matplotlib.figure import Figure

    history = comparison.model.history_
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    gaps, losses = figure.subplots(1, 2)
    rounds = history["round"]
    figure.suptitle(title)
    if not comparison.measured:
        gaps.plot(rounds, history["released_loss"], color=COLOURS[0])
        gaps.set(xlabel="round", ylabel="loss of the sum of the messages")
        for name, colour in zip(("primal", "dual"), COLOURS, strict=False):
            losses.plot(rounds, np.maximum(history[name], 1e-16), color=colour, label=name)
        losses.set(yscale="log", xlabel="round", ylabel="residual, relative")
        losses.legend(fontsize="small")
        return figure
    lowest = comparison[CENTRAL].objective
    if lowest > 0.0:
        gap = history["objective"] / lowest - 1.0
        gaps.plot(rounds, np.maximum(gap, 1e-16), color=COLOURS[0])
    gaps.set(yscale="log", xlabel="round", ylabel="objective above the optimum, relative")
    tested = comparison[CENTRAL].test_loss is not None
    measured = "test_loss" if tested else "train_loss"
    if tested:
        losses.plot(rounds, history["test_loss"], color=COLOURS[0], label="joint")
    else:
        losses.axhline(comparison["joint"].train_loss, color=COLOURS[0], label="joint")
    for name, look in ((CENTRAL, CENTRAL_LOOK), (FIRST, FIRST_LOOK)):
        losses.axhline(getattr(comparison[name], measured), label=name, **look)
    losses.set(xlabel="round", ylabel=measured.replace("_", " "))
    losses.legend(fontsize="small")
    return figure
