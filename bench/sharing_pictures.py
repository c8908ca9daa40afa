"""The pictures of ``bench/sharing.py``: the paper's Figures 1 to 3."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Levels:
    """Lines that every picture of test losses has."""

    central: float
    first_party: float


def _axes(count: int):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * count, 4.2), layout="constrained")
    return figure, figure.subplots(1, count, squeeze=False)[0]


def _draw_levels(axes, levels: Levels) -> None:
    from dpsvm.distributed.figure import CENTRAL_LOOK, FIRST_LOOK

    axes.axhline(levels.central, label="all features", **CENTRAL_LOOK)
    axes.axhline(levels.first_party, label="first party alone", **FIRST_LOOK)


def convergence(
    path: Path,
    title: str,
    gaps: Mapping[str, Sequence[float]],
    losses: Mapping[str, Sequence[float]],
    levels: Levels,
) -> None:
    """Objective gap and test loss by epoch, of several methods; what is worse than 0 is cut off."""
    from dpsvm.distributed.figure import COLOURS

    figure, (left, right) = _axes(2)
    for (name, gap), colour in zip(gaps.items(), COLOURS, strict=False):
        epochs = np.arange(1, len(gap) + 1)
        left.plot(epochs, np.maximum(gap, 1e-16), color=colour, label=name)
        right.plot(epochs, losses[name], color=colour, label=name)
    left.set(yscale="log", xlabel="epoch", ylabel="objective above the optimum, relative")
    lowest = min(levels.central, *map(min, losses.values()))
    limits = (0.97 * lowest, 1.02 * math.log(2.0))
    right.set(xlabel="epoch", ylabel="test loss", ylim=limits)
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=True)
    _draw_levels(right, levels)
    right.legend(fontsize="small")
    figure.suptitle(title)
    figure.savefig(path, dpi=110)


def noise(path: Path, title: str, curves: Mapping[str, Sequence[float]], levels: Levels) -> None:
    """Test loss by epoch, one curve for each noise level."""
    from dpsvm.distributed.figure import COLOURS

    figure, (axes,) = _axes(1)
    figure.set_size_inches(7.2, 4.6)
    for (name, losses), colour in zip(curves.items(), COLOURS, strict=False):
        axes.plot(np.arange(1, len(losses) + 1), losses, color=colour, label=name)
    _draw_levels(axes, levels)
    axes.set(xlabel="epoch", ylabel="test loss (outside the guarantee)")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(fontsize="small")
    axes.set_title(title, fontsize="medium")
    figure.savefig(path, dpi=110)


def against_epsilon(
    path: Path,
    title: str,
    epsilons: Sequence[float],
    series: Mapping[str, Sequence[float]],
    levels: Levels,
) -> None:
    """The last test loss by epsilon."""
    from dpsvm.distributed.figure import COLOURS

    figure, (axes,) = _axes(1)
    figure.set_size_inches(7.2, 4.6)
    for (name, losses), colour in zip(series.items(), COLOURS, strict=False):
        axes.plot(epsilons, losses, "o-", color=colour, label=name)
    _draw_levels(axes, levels)
    axes.set(
        xscale="log",
        xlabel="epsilon of the messages of one party",
        ylabel="test loss (outside the guarantee)",
    )
    axes.legend(fontsize="small")
    axes.set_title(title, fontsize="medium")
    figure.savefig(path, dpi=110)
