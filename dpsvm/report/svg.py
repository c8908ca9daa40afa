"""Just enough of SVG to draw charts: scales with ticks, and shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """From values to pixels, evenly or by logarithm.

    >>> Scale(1.0, 100.0, 0.0, 200.0, log=True)(10.0)
    100.0
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value; values off the scale land on its ends."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, at = math.log10(low), math.log10(high), math.log10(at)
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self, wanted: int = 6) -> list[float]:
        """Round values on the scale.

        >>> Scale(0.0, 1.0, 0, 1).ticks(), Scale(1.0, 1000.0, 0, 1, log=True).ticks()
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [1.0, 10.0, 100.0, 1000.0])
        """
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high))
            every = max(1, math.ceil((last - first + 1) / (wanted + 1)))
            return [10.0**power for power in range(first, last + 1, every)]
        step = _round_up((self.high - self.low) / wanted)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(n * step, 12) for n in range(first, last + 1)]


def _round_up(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return power * next(round_step for round_step in _STEPS if round_step * power >= step * 0.999)


def fitted(
    values: Iterable[float], start: float, end: float, *, log: bool = False, zero: bool = False
) -> Scale:
    """A scale around some values, with a little room; ``zero`` keeps 0 on it."""
    known = [v for v in values if math.isfinite(v) and (v > 0 or not log)] or [1.0]
    low, high = min(known), max(known)
    if log:
        low, high = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
        return Scale(low, high if high > low else 10 * low, start, end, log=True)
    low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
    room = 0.05 * (high - low) or 1.0
    return Scale(low if zero and low == 0.0 else low - room, high + room, start, end)


@dataclass
class Drawing:
    """Shapes, one after the other."""

    width: float
    height: float
    title: str
    kind: str
    shapes: list[str] = field(default_factory=list)

    def text(
        self, x: float, y: float, words: str, *, anchor: str = "middle", css: str = ""
    ) -> None:
        """Words at a place."""
        where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        self.shapes.append(f'<text {where} class="{css}">{escape(words)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, css: str, colour: str = "") -> None:
        """A straight line."""
        stroke = f' stroke="{colour}"' if colour else ""
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        self.shapes.append(f'<line {ends} class="{css}"{stroke}/>')

    def path(self, points: Sequence[tuple[float, float]], colour: str, dash: str, tip: str) -> None:
        """A line through points."""
        way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.add_path(way, colour, dash, tip)

    def add_path(self, way: str, colour: str, dash: str, tip: str) -> None:
        """A line in the language of SVG paths."""
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.shapes.append(
            f'<path d="{way}" class="mark curve" stroke="{colour}"{dashes}>'
            f"<title>{escape(tip)}</title></path>"
        )

    def dot(self, x: float, y: float, radius: float, colour: str, tip: str, css: str = "") -> None:
        """A disc that says something when pointed at."""
        said = f"<title>{escape(tip)}</title>" if tip else ""
        self.shapes.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="mark {css}" '
            f'fill="{colour}">{said}</circle>'
        )

    def cross(self, x: float, y: float, size: float, colour: str) -> None:
        """A small diagonal cross."""
        way = (
            f"M{x - size:.1f} {y - size:.1f}l{2 * size:g} {2 * size:g}"
            f"M{x - size:.1f} {y + size:.1f}l{2 * size:g} {-2 * size:g}"
        )
        self.shapes.append(f'<path d="{way}" class="mark cross" stroke="{colour}"/>')

    def svg(self) -> str:
        """The whole drawing."""
        box = f"0 0 {self.width:g} {self.height:g}"
        return "\n".join(
            [
                f'<svg class="chart" data-kind="{self.kind}" viewBox="{box}" role="img">',
                f"<title>{escape(self.title)}</title>",
                *self.shapes,
                "</svg>",
            ]
        )
