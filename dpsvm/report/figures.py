"""The charts with matplotlib, for ``Comparison.plot`` and ``--plot``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsvm.report.boundary import boundary
from dpsvm.report.curves import curves
from dpsvm.report.palette import COLOURS, NEGATIVE, POSITIVE, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpsvm.comparison.comparison import Comparison
    from dpsvm.comparison.summary import Summary


def overview(comparison: Comparison, shrinking: bool | None = None) -> Figure:
    """iterationRatio, objError, gap and objective for one of the shrinking settings."""
    from matplotlib.figure import Figure

    lines = comparison.summaries
    if shrinking is None:
        shrinking = lines[0].setting.shrinking
    lines = [line for line in lines if line.setting.shrinking == shrinking]
    looks = styles(line.setting for line in lines)
    figure = Figure(figsize=(12, 8.5), layout="constrained")
    (ratio, error), (gap, objective) = figure.subplots(2, 2)
    _rows(ratio, [(line, line.iteration_ratio) for line in lines], looks, "iterationRatio")
    ratio.axvline(1.0, color="#6b7480", linestyle="--", linewidth=1)
    others = [(line, line.objective_error.mean) for line in lines if not line.setting.is_reference]
    _rows(error, others, looks, "objError")
    error.set_xscale("log")
    for curve in curves(comparison, shrinking):
        look = looks[curve.setting]
        shape = {"color": look.colour, "linestyle": _dashes(look.dash), "linewidth": 1.6}
        gap.plot(curve.iteration, curve.gap, label=curve.setting.label, **shape)
        objective.plot(curve.iteration, curve.objective, **shape)
    gap.set(xscale="log", yscale="log", xlabel="iteration", ylabel="gap")
    objective.set(xscale="log", xlabel="iteration", ylabel="objective")
    gap.legend(fontsize="small")
    state = "on" if shrinking else "off"
    figure.suptitle(f"{comparison.data.name}, shrinking {state} (dpwss: no privacy guarantee)")
    return figure


def _dashes(dash: str) -> str | tuple[int, tuple[float, ...]]:
    return (0, tuple(map(float, dash.split()))) if dash else "solid"


def _rows(axes: Axes, rows: Sequence[tuple[Summary, float]], looks: Any, title: str) -> None:
    for place, (line, value) in enumerate(rows):
        axes.plot(value, place, "o", color=looks[line.setting].colour)
    axes.set_yticks(range(len(rows)), [line.setting.label for line, _ in rows])
    axes.invert_yaxis()
    axes.grid(axis="x", color="#e8ebef")
    axes.set_xlabel(title)


def boundaries(comparison: Comparison) -> Figure | None:
    """The two-feature picture, a panel per dpwss setting; None where there is none to draw."""
    from matplotlib.figure import Figure

    found = boundary(comparison)
    if found is None:
        return None
    panels = len(found.drawn)
    figure = Figure(figsize=(4.6 * panels, 4.4), layout="constrained")
    for axes, (setting, runs) in zip(
        figure.subplots(1, panels, squeeze=False)[0], found.drawn.items(), strict=True
    ):
        for mask, marker, colour in (
            (found.positive, "o", POSITIVE),
            (~found.positive, "x", NEGATIVE),
        ):
            axes.scatter(*found.points[mask].T, s=12, marker=marker, color=colour, alpha=0.5)
        for values in runs:
            axes.contour(found.x, found.y, values, levels=[0.0], colors=[COLOURS["dpwss"]])
        axes.contour(found.x, found.y, found.reference, levels=[0.0], colors=[COLOURS["wss2"]])
        axes.set_title(f"{setting.label} and wss2 (black)")
        axes.set(xlabel=f"feature {found.features[0]}", ylabel=f"feature {found.features[1]}")
    return figure


def save(comparisons: Sequence[Comparison], folder: str) -> list[Path]:
    """Write every figure as PNG into a folder, made if need be."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    written = []
    for comparison in comparisons:
        stem = re.sub(r"[^\w.-]+", "_", comparison.data.name).strip("_")
        figures = {}
        for shrinking in dict.fromkeys(line.setting.shrinking for line in comparison.summaries):
            figures[f"shrinking_{'on' if shrinking else 'off'}"] = overview(comparison, shrinking)
        picture = boundaries(comparison)
        if picture is not None:
            figures["boundaries"] = picture
        for name, figure in figures.items():
            written.append(Path(folder) / f"{stem}_{name}.png")
            figure.savefig(written[-1], dpi=130)
    return written
