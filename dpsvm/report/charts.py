"""The charts of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpsvm.comparison.settings import Setting
from dpsvm.comparison.summary import Summary
from dpsvm.report.boundary import Boundary, Floats, zero_line
from dpsvm.report.curves import Curve
from dpsvm.report.palette import COLOURS, NEGATIVE, POSITIVE, Style
from dpsvm.report.svg import Drawing, Scale, fitted

WIDTH, HEIGHT = 560.0, 320.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 14.0, 12.0, 44.0
_ROW, _LABELS = 26.0, 176.0

Styles = Mapping[Setting, Style]


@dataclass(frozen=True)
class Bar:
    """A mean with the range around it."""

    setting: Setting
    mean: float
    low: float
    high: float


def ratio_chart(lines: Sequence[Summary], styles: Styles) -> str:
    """Iterations as multiples of wss2's, one row per setting."""
    bars = []
    for line in lines:
        if not math.isnan(line.iteration_ratio):
            one, counts = line.iteration_ratio / line.iterations.mean, line.iterations
            bars.append(
                Bar(line.setting, line.iteration_ratio, counts.low * one, counts.high * one)
            )
    return _rows("iterationRatio", "iterations / wss2's iterations", bars, styles, log=False)


def error_chart(lines: Sequence[Summary], styles: Styles) -> str:
    """Distance of the objective from wss2's, one row per setting, on a logarithmic axis."""
    bars = []
    for line in lines:
        error = line.objective_error
        if not line.setting.is_reference and not math.isnan(error.mean):
            bars.append(Bar(line.setting, error.mean, error.low, error.high))
    return _rows("objError", "|objective - wss2's objective|", bars, styles, log=True)


def _rows(kind: str, axis: str, bars: Sequence[Bar], styles: Styles, *, log: bool) -> str:
    height = _TOP + _ROW * len(bars) + _BOTTOM
    drawing = Drawing(WIDTH, height, f"{kind} of each selector", kind)
    values = [value for bar in bars for value in (bar.low, bar.mean, bar.high)]
    x = fitted(values, _LABELS, WIDTH - 24, log=log, zero=not log)
    bottom = height - _BOTTOM
    for tick in x.ticks():
        drawing.line(x(tick), _TOP, x(tick), bottom, "grid")
        drawing.text(x(tick), bottom + 16, _label(tick, log), css="tick")
    drawing.text((x.start + x.end) / 2, height - 6, axis, css="axis")
    if not log and x.low < 1.0 < x.high:
        drawing.line(x(1.0), _TOP, x(1.0), bottom, "one")
    for number, bar in enumerate(bars):
        y, colour = _TOP + _ROW * (number + 0.5), styles[bar.setting].colour
        drawing.text(_LABELS - 10, y + 4, bar.setting.label, anchor="end", css="row")
        low, high = (x(max(value, x.low)) for value in (bar.low, bar.high))
        drawing.line(low, y, high, y, "range", colour)
        tip = f"{bar.setting.label}: {bar.mean:.4g} ({bar.low:.4g} to {bar.high:.4g})"
        drawing.dot(x(bar.mean), y, 5.5, colour, tip)
    return drawing.svg()


def gap_chart(curves: Sequence[Curve], styles: Styles, tol: float) -> str:
    """The gap against the iteration, both on logarithmic axes."""
    drawing, x, y = _frame(
        "gap", "Gap against iteration", curves, [c.gap for c in curves], log=True
    )
    if y.low < tol < y.high:
        drawing.line(x.start, y(tol), x.end, y(tol), "one")
        drawing.text(x.start + 6, y(tol) - 5, f"tol {tol:g}", anchor="start", css="tick")
    for curve in curves:
        style = styles[curve.setting]
        points = [(x(i), y(g)) for i, g in zip(curve.iteration, curve.gap, strict=True) if g > 0]
        drawing.path(points, style.colour, style.dash, curve.setting.label)
        drawing.dot(*points[-1], 3.5, style.colour, f"{curve.setting.label} stops here")
    return drawing.svg()


def objective_chart(curves: Sequence[Curve], styles: Styles) -> str:
    """The objective against the iteration."""
    values = [c.objective for c in curves]
    drawing, x, y = _frame("objective", "Objective against iteration", curves, values, log=False)
    for curve in curves:
        style = styles[curve.setting]
        points = [(x(i), y(v)) for i, v in zip(curve.iteration, curve.objective, strict=True)]
        drawing.path(points, style.colour, style.dash, curve.setting.label)
        drawing.dot(*points[-1], 3.5, style.colour, f"{curve.setting.label} stops here")
    return drawing.svg()


def _frame(
    kind: str, title: str, curves: Sequence[Curve], values: Sequence[Floats], *, log: bool
) -> tuple[Drawing, Scale, Scale]:
    drawing = Drawing(WIDTH, HEIGHT, title, kind)
    bottom = HEIGHT - _BOTTOM
    last = max(2.0, *(float(curve.iteration[-1]) for curve in curves))
    x = Scale(1.0, 1.15 * last, _LEFT, WIDTH - _RIGHT, log=True)
    y = fitted((float(v) for part in values for v in part), bottom, _TOP, log=log)
    _axes(drawing, x, y, bottom, "iteration", kind)
    return drawing, x, y


def _axes(drawing: Drawing, x: Scale, y: Scale, bottom: float, x_words: str, y_words: str) -> None:
    for tick in x.ticks():
        drawing.line(x(tick), _TOP, x(tick), bottom, "grid")
        drawing.text(x(tick), bottom + 16, _label(tick, x.log), css="tick")
    for tick in y.ticks():
        drawing.line(x.start, y(tick), x.end, y(tick), "grid")
        drawing.text(x.start - 7, y(tick) + 4, _label(tick, y.log), anchor="end", css="tick")
    drawing.text((x.start + x.end) / 2, drawing.height - 6, x_words, css="axis")
    drawing.text(-(_TOP + bottom) / 2, 13, y_words, css="axis up")


def boundary_chart(found: Boundary, setting: Setting) -> str:
    """Points of both classes, wss2's boundary in black and one line per run of a setting."""
    first, second = found.features
    drawing = Drawing(WIDTH, HEIGHT, f"Boundaries of {setting.label}", "boundary")
    bottom = HEIGHT - _BOTTOM
    x = Scale(float(found.x[0]), float(found.x[-1]), _LEFT, WIDTH - _RIGHT)
    y = Scale(float(found.y[0]), float(found.y[-1]), bottom, _TOP)
    _axes(drawing, x, y, bottom, f"feature {first}", f"feature {second}")
    for (a, b), positive in zip(found.points, found.positive, strict=True):
        if positive:
            drawing.dot(x(a), y(b), 2.4, POSITIVE, "", "point")
        else:
            drawing.cross(x(a), y(b), 2.2, NEGATIVE)
    for number, values in enumerate(found.drawn[setting], 1):
        _contour(drawing, x, y, found, values, COLOURS["dpwss"], f"dpwss run {number}")
    _contour(drawing, x, y, found, found.reference, COLOURS["wss2"], "wss2")
    return drawing.svg()


def _contour(
    drawing: Drawing, x: Scale, y: Scale, found: Boundary, values: Floats, colour: str, tip: str
) -> None:
    parts = zero_line(found.x, found.y, values)
    way = "".join(f"M{x(x1):.1f} {y(y1):.1f}L{x(x2):.1f} {y(y2):.1f}" for x1, y1, x2, y2 in parts)
    if way:
        drawing.add_path(way, colour, "", tip)


def _label(value: float, log: bool) -> str:
    """A tick in few characters.

    >>> _label(100000.0, True), _label(0.001, True), _label(0.25, False)
    ('1e5', '0.001', '0.25')
    """
    if log and not 1e-3 <= value < 1e5:
        return f"1e{round(math.log10(value))}"
    return f"{value:,.10g}"
