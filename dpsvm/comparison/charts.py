"""The charts of a comparison, for ``--html``, ``--plot`` and ``Results.plot`` alike."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.comparison.boundary import Boundary, boundary
from dpsvm.comparison.results import Results
from dpsvm.comparison.runs import Run
from dpsvm.comparison.settings import Setting
from dpsvm.comparison.summary import Summary
from dpsvm.comparison.words import state, undrawn
from dpsvm.report.palette import BLACK, COLOURS, NEGATIVE, POSITIVE, Look, looks
from dpsvm.report.picture import canvas, mark, shared_legend, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Looks = Mapping[str, Look]

POINTS = 240  # of a curve
_GRAY = "#6b7480"


@dataclass(frozen=True, eq=False)
class Curve:
    """Gap and objective of one run after so many steps, from 0 to the last."""

    setting: Setting
    steps: NDArray[np.int64]
    gap: NDArray[np.float64]
    objective: NDArray[np.float64]


def curves(comparison: Results, shrinking: bool) -> list[Curve]:
    """The first run of each setting."""
    traces = comparison.traces
    lines = comparison.by_shrinking[shrinking]
    return [_traced(line.setting, traces[line.setting], line.runs[0]) for line in lines]


def _traced(setting: Setting, trace: NDArray[Any], run: Run) -> Curve:
    # A trace has the gap before a step and the objective after it, which begins at 0.
    kept = thinned(len(trace) + 1)
    return Curve(
        setting,
        np.append(trace["iteration"] - 1, run.iterations)[kept],
        np.append(trace["gap"], run.gap)[kept],
        np.insert(trace["objective"], 0, 0.0)[kept],
    )


def thinned(n: int) -> NDArray[np.intp]:
    """Positions 0 to n - 1, evenly spaced on a logarithmic axis once there are too many.

    >>> thinned(3).tolist(), len(thinned(100_000)) <= 240
    ([0, 1, 2], True)
    """
    if n <= POINTS:
        return np.arange(n)
    return np.unique(np.geomspace(1, n, POINTS).round().astype(np.intp)) - 1


def ratio_chart(axes: Axes, lines: Sequence[Summary], styles: Looks) -> None:
    """Iterations as multiples of wss2's, one row per setting."""
    shown = [line for line in lines if not math.isnan(line.iteration_ratio)]
    rows = []
    for line in shown:
        one = line.iteration_ratio / line.iterations.mean
        spread = line.iterations
        rows.append((line.setting.label, spread.mean * one, spread.low * one, spread.high * one))
    axes.axvline(1.0, color=_GRAY, linestyle="--", linewidth=1.0)
    _rows(axes, rows, styles)
    axes.set_xlim(left=0.0)
    axes.set_xlabel("iterations / wss2's iterations")


def error_chart(axes: Axes, lines: Sequence[Summary], styles: Looks) -> None:
    """Distance of the objective from wss2's, one row per setting, on a logarithmic axis."""
    others = [line for line in lines if not line.setting.is_reference]
    spreads = [(line.setting.label, line.objective_error) for line in others]
    known = [value for _, s in spreads for value in (s.low, s.mean, s.high) if value > 0.0]
    floor = _floor(known)
    rows = [
        (label, max(spread.mean, floor), max(spread.low, floor), max(spread.high, floor))
        for label, spread in spreads
        if not math.isnan(spread.mean)
    ]
    _rows(axes, rows, styles)
    axes.set_xlabel("|objective - wss2's objective|")
    _log(axes, "x", floor, max(known, default=1.0))


def _rows(axes: Axes, rows: Sequence[tuple[str, float, float, float]], styles: Looks) -> None:
    for place, (label, mean, low, high) in enumerate(rows):
        colour = styles[label].colour
        axes.plot((low, high), (place, place), color=colour, linewidth=3.0, alpha=0.4)
        [dot] = axes.plot(mean, place, "o", color=colour)
        mark(dot, "dot", f"{label}: {mean:.4g} ({low:.4g} to {high:.4g})")
    axes.set_yticks(range(len(rows)), [label for label, *_ in rows], fontsize="small")
    axes.set_ylim(max(len(rows), 1) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def gap_chart(axes: Axes, drawn: Sequence[Curve], styles: Looks, tol: float) -> None:
    """The gap after each iteration; one of 0, which has no logarithm, lies on the lower edge."""
    gaps = np.concatenate([curve.gap for curve in drawn])
    floor = _floor(gaps[gaps > 0.0].tolist())
    axes.axhline(max(tol, floor), color=_GRAY, linestyle="--", linewidth=1.0)
    for curve in drawn:
        _curve(axes, curve, curve.steps, np.maximum(curve.gap, floor), styles)
    axes.set_ylabel("gap")
    _log(axes, "y", floor, float(gaps.max()))
    _steps(axes, drawn)


def objective_chart(axes: Axes, drawn: Sequence[Curve], styles: Looks) -> None:
    """The objective after each iteration."""
    for curve in drawn:
        _curve(axes, curve, curve.steps, curve.objective, styles)
    axes.set_ylabel("objective")
    _steps(axes, drawn)


def _curve(axes: Axes, curve: Curve, steps: np.ndarray, values: np.ndarray, styles: Looks) -> None:
    label = curve.setting.label
    look = styles[label]
    [line] = axes.plot(steps, values, label=label, linewidth=1.5, **look.line)
    [end] = axes.plot(steps[-1], values[-1], "o", markersize=4.5, color=look.colour)
    mark(line, "curve", label)
    mark(end, "end", f"{label} stops after {steps[-1]:,} iterations")


def _steps(axes: Axes, drawn: Sequence[Curve]) -> None:
    """Iterations from 0 on, evenly up to 1 and then by logarithm."""
    last = max(1, *(int(curve.steps[-1]) for curve in drawn))
    decades = [10**power for power in range(math.ceil(math.log10(1.2 * last)))]
    axes.set_xscale("symlog", linthresh=1.0, linscale=0.3)
    axes.set_xlim(0.0, 1.2 * last)
    axes.set_xticks([0, *decades])
    _label(axes.xaxis)
    axes.set_xlabel("iteration")


def _floor(positive: Sequence[float]) -> float:
    """A power of ten below all of them."""
    return float(10.0 ** (math.ceil(math.log10(min(positive, default=1.0))) - 1))


def _log(axes: Axes, which: str, low: float, high: float) -> None:
    """A logarithmic axis of whole decades with few, short labels."""
    first, last = round(math.log10(low)), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    powers = range(first, last + 1, math.ceil((last - first + 1) / 7))
    ends = 10.0**first / 1.3, 10.0**last * 1.3
    axes.set(**{f"{which}scale": "log", f"{which}lim": ends})
    axes.set(**{f"{which}ticks": [10.0**power for power in powers]})
    _label(getattr(axes, f"{which}axis"))


def _label(axis: Axis) -> None:
    """Few, short labels."""
    from matplotlib.ticker import NullLocator

    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: tick_label(value))


def tick_label(value: float) -> str:
    """A round number in few characters.

    >>> tick_label(100000.0), tick_label(0.001), tick_label(0.0)
    ('1e5', '0.001', '0')
    """
    if value and not 1e-3 <= value < 1e5:
        return f"1e{round(math.log10(value))}"
    return f"{value:,.10g}"


def boundary_chart(axes: Axes, found: Boundary, setting: Setting) -> None:
    """Points of both classes, wss2's boundary in black and one line per run of a setting."""
    for mask, marker, colour in ((found.positive, "o", POSITIVE), (~found.positive, "x", NEGATIVE)):
        a, b = found.points[mask].T
        points = axes.scatter(a, b, s=8, marker=marker, color=colour, alpha=0.5)
        mark(points, "points")
    runs = [(values, COLOURS[1], f"run {n}") for n, values in enumerate(found.drawn[setting], 1)]
    for values, colour, tip in (*runs, (found.reference, BLACK, "wss2")):
        if values.min() < 0.0 < values.max():
            line = axes.contour(found.x, found.y, values, levels=[0.0], colors=[colour])
            mark(line, "boundary", tip)
    axes.locator_params(nbins=6)
    axes.set(xlabel=f"feature {found.features[0]}", ylabel=f"feature {found.features[1]}")


def overview(comparison: Results, shrinking: bool | None = None) -> Figure:
    """iterationRatio, objError, gap and objective for one of the shrinking settings."""
    if shrinking is None:
        shrinking = comparison.summaries[0].setting.shrinking
    lines = comparison.by_shrinking[shrinking]
    styles = looks(line.setting.label for line in lines)
    drawn = curves(comparison, shrinking)
    name = f"{comparison.data.name}, shrinking {state(shrinking)}"
    figure, (ratio, error, gap, objective) = canvas(
        2,
        2,
        width=6.0,
        height=max(4.2, 0.3 * len(lines)),
        title=f"{name} (no run has a privacy guarantee)",
    )
    ratio_chart(ratio, lines, styles)
    error_chart(error, lines, styles)
    gap_chart(gap, drawn, styles, comparison.plan.parameters.tol)
    objective_chart(objective, drawn, styles)
    shared_legend(figure, gap)
    return figure


def boundaries(comparison: Results) -> Figure | None:
    """The two-feature picture, a panel per setting shown; None where there is none to draw."""
    found = boundary(comparison)
    if found is None:
        return None
    title = f"{comparison.data.name}: black is wss2. {undrawn(comparison, found.drawn)}".strip()
    figure, panels = canvas(1, len(found.drawn), width=4.6, height=4.6, title=title)
    for axes, setting in zip(panels, found.drawn, strict=True):
        boundary_chart(axes, found, setting)
        axes.set_title(setting.label, fontsize="medium")
    return figure


def save(comparisons: Sequence[Results], folder: str) -> list[Path]:
    """Write every figure as PNG into a folder, made if need be."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    written, stems = [], set[str]()
    for comparison in comparisons:
        stem = _stem(comparison.data.name, stems)
        figures: dict[str, Figure | None] = {}
        for shrinking in comparison.by_shrinking:
            figures[f"shrinking_{state(shrinking)}"] = overview(comparison, shrinking)
        figures["boundaries"] = boundaries(comparison)
        for name, figure in figures.items():
            if figure is not None:
                written.append(Path(folder) / f"{stem}_{name}.png")
                write(figure, written[-1])
    return written


def _stem(name: str, taken: set[str]) -> str:
    """A name for files, which no other data set has: folders may hold files of equal names.

    >>> taken = set()
    >>> _stem("heart (a)", taken), _stem("heart (a)", taken)
    ('heart_a', 'heart_a_2')
    """
    first = re.sub(r"[^\w.-]+", "_", name).strip("_")
    numbered = (f"{first}_{number}" for number in itertools.count(2))
    stem = next(one for one in itertools.chain([first], numbered) if one not in taken)
    taken.add(stem)
    return stem
