"""The pictures of ``sharing.py``: the paper's Figures 1 to 3, drawn from its results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Levels:
    """Lines that every picture of test losses has."""

    central: float
    first_party: float


def draw(folder: Path, kept: Mapping[str, Any]) -> None:
    """The three pictures of each problem; ``kept`` is what the results hold for them."""
    for stem, found in kept.items():
        for kind, picture in (("convergence", _convergence), ("noise", _noise), ("epsilon", _cost)):
            picture(found).savefig(folder / f"sharing_{stem}_{kind}.png", dpi=110)


def _levels(axes: Axes, found: Mapping[str, Any]) -> None:
    from dpsvm.report.palette import CENTRAL_LOOK, FIRST_LOOK
    from dpsvm.report.picture import shared_legend

    axes.axhline(found["levels"]["central"], label="all features", **CENTRAL_LOOK)
    axes.axhline(found["levels"]["first_party"], label="first party alone", **FIRST_LOOK)
    shared_legend(axes.figure, axes)


def _epochs(axes: Axes, curves: Mapping[str, list[float]]) -> None:
    from dpsvm.report.palette import COLOURS

    for (name, values), colour in zip(curves.items(), COLOURS, strict=False):
        axes.plot(np.arange(1, len(values) + 1), values, color=colour, label=name)
    axes.set(xlabel="epoch")
    axes.xaxis.get_major_locator().set_params(integer=True)


def _convergence(found: Mapping[str, Any]):
    """Objective gap and test loss by epoch; what is worse than predicting 0 is cut off."""
    from dpsvm.report.picture import canvas

    figure, (left, right) = canvas(1, 2, width=5.6, height=4.8, title=found["name"])
    _epochs(left, {name: np.maximum(gap, 1e-16) for name, gap in found["gaps"].items()})
    left.set(yscale="log", ylabel="objective above the optimum, relative")
    _epochs(right, found["losses"])
    lowest = min(found["levels"]["central"], *map(min, found["losses"].values()))
    right.set(
        ylabel="test loss, up to that of predicting 0", ylim=(0.97 * lowest, 1.02 * math.log(2.0))
    )
    _levels(right, found)
    return figure


def _noise(found: Mapping[str, Any]):
    """Test loss by epoch, one curve for each noise level."""
    from dpsvm.report.picture import canvas

    title = f"{found['name']}: {found['mode']}"
    figure, (axes,) = canvas(width=7.2, height=4.8, title=title)
    _epochs(axes, found["noise"])
    axes.set(ylabel="test loss (outside the guarantee)")
    _levels(axes, found)
    return figure


def _cost(found: Mapping[str, Any]):
    """The last test loss by epsilon."""
    from dpsvm.report.palette import COLOURS
    from dpsvm.report.picture import canvas

    title = f"{found['name']}: {found['after']}"
    figure, (axes,) = canvas(width=7.2, height=4.8, title=title)
    for (name, losses), colour in zip(found["ends"].items(), COLOURS, strict=False):
        axes.plot(found["epsilons"], losses, "o-", color=colour, label=name)
    axes.set(
        xscale="log",
        xlabel="epsilon of the messages of one party",
        ylabel="test loss (outside the guarantee)",
    )
    _levels(axes, found)
    return figure
