"""The pictures of ``network.py``: the paper's Figures 1 to 5, means and ranges."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.admm.network_figures import CENTRAL, PER_NODE, Figure

GAP = "objective above the optimum, relative"
LABELS = {
    1: ("round", GAP, "log"),
    2: ("lam", "test error", "linear"),
    3: ("round", GAP, "log"),
    4: ("growth of the penalties by update", "", "linear"),
    5: ("round", "", "linear"),
}
TITLES = {
    1: "Convergence on random graphs",
    2: "R-ADMM: test error against lam",
    3: "R-ADMM: gamma",
    4: "Growing penalties",
    5: "Four algorithms at epsilon 4.7",
}
Y_LABELS = {
    "gap without privacy": GAP,
    "loss with privacy": "L, outside the guarantee",
    "loss": "L, outside the guarantee",
    "test error": "test error, outside the guarantee",
    "bound": "bound on epsilon; dashed: the paper's",
}


def draw(path: Path, number: int, found: Figure, runs: int) -> None:
    """One figure: a panel for each of its parts, a line and its range for each method."""
    from matplotlib.figure import Figure as Canvas

    count = len(found.curves)
    canvas = Canvas(figsize=(max(5.2 * count, 7.2), 4.4), layout="constrained")
    for axes, panel in zip(canvas.subplots(1, count, squeeze=False)[0], found.curves, strict=True):
        _panel(axes, number, panel, found)
    canvas.suptitle(f"{TITLES[number]}, Adult, mean and range of {runs} runs")
    canvas.savefig(path, dpi=110)


def _panel(axes, number: int, panel: str, found: Figure) -> None:
    from dpsvm.report.palette import COLOURS

    x_label, y_label, y_scale = LABELS[number]
    points = found.points[panel]
    colours: dict[str, str] = {}
    for name, values in found.curves[panel].items():
        of_paper = name.endswith(", paper's")
        own = name.removesuffix(", paper's")
        colour = colours.setdefault(own, COLOURS[len(colours)])
        broken = of_paper or name in (CENTRAL, PER_NODE)  # they lie on other lines
        look = {"color": colour, "linestyle": "--" if broken else "-"}
        marker = "o" if len(points) < 10 else None
        label = None if of_paper else name
        axes.plot(points, values.mean(axis=0), marker=marker, label=label, **look)
        if len(values) > 1 and panel != "bound":
            low, high = values.min(axis=0), values.max(axis=0)
            axes.fill_between(points, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set(xlabel=x_label, ylabel=Y_LABELS.get(panel, y_label), yscale=_scale(panel, y_scale))
    if number == 2:
        axes.set_xscale("log")
    elif x_label == "round":
        axes.xaxis.get_major_locator().set_params(integer=True)
    if panel not in ("test error against lam", "gap by round"):
        axes.set_title(panel, fontsize="medium")
    if len(found.curves[panel]) > 1:
        axes.legend(fontsize="small")


def _scale(panel: str, usual: str) -> str:
    return "log" if panel == "gap without privacy" else usual


def floor(found: Figure) -> None:
    """Keep gaps above 0, for a logarithmic axis."""
    for panel in found.curves.values():
        for name, values in panel.items():
            panel[name] = np.maximum(values, 1e-12)
