"""What an audit found, and what may be said of it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsvm._arrays import Array
from dpsvm.privacy.audit.bounds import epsilon_at_least, probability_at_least
from dpsvm.privacy.audit.choice import Rule
from dpsvm.privacy.audit.worlds import WITH, WITHOUT
from dpsvm.report.palette import BLACK, COLOURS
from dpsvm.report.picture import canvas, legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 80
_MARGIN = 12
_COLUMNS = WIDTH - _MARGIN
_SHADES = " .:-=+*#%@"
_RELATIONS = {"add-remove": "add or remove one record", "replace": "replace one record"}

_FAR_OUT = 0.1  # per cent of the runs beyond either end of a histogram
_BINS = 60
_COLOURS = {WITH: COLOURS[1], WITHOUT: COLOURS[0]}


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditResult:
    """A lower bound on epsilon with its confidence. It can refute a claim; it never confirms one.

    >>> result = AuditResult(
    ...     estimator="SVC", record="a record", neighbouring="add-remove", confidence=0.95,
    ...     rule=Rule("score", 0.5, True, "with"), values={"with": np.ones(4000),
    ...     "without": np.zeros(4000)}, pilot_runs=1000, claimed_epsilon=1.0, random_state=0)
    >>> round(result.epsilon, 3), result.refuted
    (6.988, True)
    >>> print(result.finding)
    audited: epsilon is at least 6.98 (95% confidence)
    """

    estimator: str
    record: str
    """The record, in words."""
    neighbouring: str
    confidence: float
    rule: Rule
    values: dict[str, Array] = field(repr=False)
    """The statistic in every test run, by world: ``with`` and ``without`` the record."""
    pilot_runs: int
    """Runs of each world on which the rule was chosen."""
    random_state: int
    claimed_epsilon: float | None = None
    delta: float = 0.0
    impossible: str | None = None
    """Why the event cannot happen in the world where it is rare; None where that is not known."""
    warnings: dict[str, str] = field(default_factory=dict, repr=False)
    """The first message of each category of warning that the fits gave."""
    seconds: float = 0.0
    """How long this call took."""

    @property
    def runs(self) -> int:
        """Test runs of each world."""
        return len(self.values[WITH])

    @property
    def rare(self) -> str:
        """The world in which the event was expected to be rarer."""
        return WITHOUT if self.rule.likely == WITH else WITH

    @property
    def hits(self) -> dict[str, int]:
        """How often the event happened in the test runs of each world."""
        return {world: self.rule.count(self.values[world]) for world in (WITH, WITHOUT)}

    @property
    def epsilon(self) -> float:
        """The lower bound on epsilon at the delta given."""
        hits = self.hits
        return self._bound(hits[self.rule.likely], hits[self.rare])

    @property
    def largest(self) -> float:
        """The bound that this many runs give to an event that always tells the worlds apart."""
        return self._bound(self.runs, 0)

    def _bound(self, hits: int, others: int) -> float:
        return epsilon_at_least(
            hits, others, self.runs, delta=self.delta, confidence=self.confidence
        )

    def at_delta(self, delta: float) -> AuditResult:
        """The same runs, read for another delta.

        The event and the intervals stay, so that the bounds for all delta hold together.
        """
        return replace(self, delta=delta)

    @property
    def unbounded(self) -> bool:
        """Whether no epsilon holds: the event happens in one world and cannot in the other."""
        likely, level = self.hits[self.rule.likely], (1.0 - self.confidence) / 2.0
        return (
            self.impossible is not None
            and self.hits[self.rare] == 0
            and likely > 0
            and float(probability_at_least(likely, self.runs, level)) > self.delta
        )

    @property
    def refuted(self) -> bool | None:
        """Whether the claim is refuted; None if nothing was claimed."""
        if self.claimed_epsilon is None:
            return None
        return self.unbounded or self.epsilon > self.claimed_epsilon

    @property
    def finding(self) -> str:
        """The bound in words, rounded down."""
        at = f" at delta {self.delta:g}" if self.delta else ""
        return f"audited: epsilon is at least {rounded_down(self.epsilon)}{at} ({self._sure})"

    @property
    def verdict(self) -> str:
        """What the bound says of the claim, in one sentence."""
        if self.claimed_epsilon is None:
            return "nothing was claimed, so nothing is refuted"
        claim = f"the claimed epsilon {self.claimed_epsilon:g}"
        if self.unbounded:
            return f"refuted: {claim}, as any other, does not hold ({self._sure})"
        if self.refuted:
            return f"refuted: {claim} is below the audited bound ({self._sure})"
        return (
            f"not refuted: the audited bound does not exceed {claim}; "
            "that does not show that the claim holds"
        )

    @property
    def _sure(self) -> str:
        return f"{100 * self.confidence:.10g}% confidence"

    def histogram(self, bins: int) -> tuple[Array, dict[str, NDArray[np.intp]]]:
        """Edges, and how many values of each world lie between them.

        The few values far out are counted at the ends, and the threshold is within.

        >>> result = AuditResult(
        ...     estimator="SVC", record="a record", neighbouring="add-remove", confidence=0.95,
        ...     rule=Rule("score", 3.0, True, "with"), values={"with": np.arange(4.0),
        ...     "without": np.zeros(4)}, pilot_runs=20, random_state=0)
        >>> result.histogram(3)[1]
        {'with': array([1, 1, 2]), 'without': array([4, 0, 0])}
        """
        pooled = np.concatenate([self.values[WITH], self.values[WITHOUT]])
        low, high = np.percentile(pooled, [_FAR_OUT, 100.0 - _FAR_OUT])
        low, high = min(low, self.rule.threshold), max(high, self.rule.threshold)
        if not high > low:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, bins + 1)
        counts = {
            world: np.histogram(self.values[world].clip(low, high), edges)[0]
            for world in (WITH, WITHOUT)
        }
        return edges, counts

    def report(self) -> str:
        """What was run, what was seen, and what follows, for a terminal.

        >>> print(AuditResult(
        ...     estimator="Mean", record="a record", neighbouring="replace", confidence=0.95,
        ...     rule=Rule("score", 0.5, True, "with"), values={"with": np.ones(100),
        ...     "without": np.eye(100)[0]}, pilot_runs=50, claimed_epsilon=1.0,
        ...     random_state=0).report())
        estimator   Mean
        record      a record
        relation    replace one record
        pilot       50 runs with and 50 without the record, to choose the event
        test        100 runs with and 100 without, which can show an epsilon of 3.28 at
                    most
        event       score at least 0.5: in 100 runs with, 1 without the record
        with                                                                           @
        without     @                                                                  .
                    0 -------------------------------^-------------------------------- 1
        <BLANKLINE>
        audited: epsilon is at least 2.87 (95% confidence)
        refuted: the claimed epsilon 1 is below the audited bound (95% confidence)
        """
        lines = [line for name, text in _facts(self) for line in _wrapped(name, text)]
        return "\n".join([*lines, *_shaded(self), "", *_findings(self)])

    def __str__(self) -> str:
        return self.report()

    def plot(self) -> Figure:
        """A matplotlib figure: the statistic in the test runs of both worlds, and the threshold."""
        lines = [self.finding]
        if self.unbounded:
            lines.append("not private for any epsilon")
        if self.claimed_epsilon is not None:
            word = "refuted" if self.refuted else "not refuted"
            lines.append(f"claimed epsilon {self.claimed_epsilon:g}: {word}")
        figure, [axes] = canvas(width=8.0, height=4.9, title="\n".join(lines))
        edges, counts = self.histogram(_BINS)
        for world in (WITHOUT, WITH):
            colour = _COLOURS[world]
            label = f"{world} the record: event in {self.hits[world]} of {self.runs} runs"
            axes.stairs(counts[world], edges, fill=True, color=colour, alpha=0.35)
            axes.stairs(counts[world], edges, color=colour, linewidth=1.5, label=label)
        side = "at least" if self.rule.at_least else "below"
        threshold = f"event: {side} {self.rule.threshold:.4g}"
        axes.axvline(self.rule.threshold, color=BLACK, linestyle="--", label=threshold)
        axes.set(xlabel=self.rule.statistic, ylabel="runs", xlim=(edges[0], edges[-1]))
        legend(axes)
        return figure

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values, in plain values."""
        return {
            "estimator": self.estimator,
            "record": self.record,
            "neighbouring": self.neighbouring,
            "confidence": self.confidence,
            "delta": self.delta,
            "claimed_epsilon": self.claimed_epsilon,
            "runs": self.runs,
            "pilot_runs": self.pilot_runs,
            "random_state": self.random_state,
            "rule": self.rule.to_dict(),
            "event": self.rule.event,
            "hits": self.hits,
            "epsilon_at_least": self.epsilon,
            "epsilon_at_least_at_delta_0": self.at_delta(0.0).epsilon,
            "no_epsilon_holds": self.unbounded,
            "refuted": self.refuted,
            "finding": self.finding,
            "verdict": self.verdict,
            "warnings": self.warnings,
            "seconds": self.seconds,
        }


def rounded_down(bound: float) -> str:
    """Two decimals, never more than the bound."""
    return f"{math.floor(bound * 100.0) / 100.0:.2f}"


def _facts(result: AuditResult) -> Iterator[tuple[str, str]]:
    runs, pilot, hits = result.runs, result.pilot_runs, result.hits
    most = rounded_down(result.largest)
    yield "estimator", result.estimator
    yield "record", result.record
    yield "relation", _RELATIONS[result.neighbouring]
    yield "pilot", f"{pilot} runs with and {pilot} without the record, to choose the event"
    yield (
        "test",
        f"{runs} runs with and {runs} without, which can show an epsilon of {most} at most",
    )
    seen = f"in {hits[WITH]} runs with, {hits[WITHOUT]} without the record"
    yield "event", f"{result.rule.event}: {seen}"
    for category, message in result.warnings.items():
        yield "warning", f"{category}: {message}"


def _shaded(result: AuditResult) -> Iterator[str]:
    """The statistic in both worlds, darker where there are more runs; ^ is the threshold."""
    edges, counts = result.histogram(_COLUMNS)
    for world in (WITH, WITHOUT):
        shades = np.ceil(counts[world] / counts[world].max() * (len(_SHADES) - 1)).astype(int)
        yield (world.ljust(_MARGIN) + "".join(_SHADES[shade] for shade in shades)).rstrip()
    place = int(np.searchsorted(edges, result.rule.threshold).clip(1, _COLUMNS)) - 1
    axis = "-" * place + "^" + "-" * (_COLUMNS - 1 - place)
    low, high = f"{edges[0]:.3g} ", f" {edges[-1]:.3g}"
    if place >= len(low):
        axis = low + axis[len(low) :]
    if len(axis) - place > len(high):
        axis = axis[: -len(high)] + high
    yield " " * _MARGIN + axis


def _findings(result: AuditResult) -> Iterator[str]:
    if result.delta:
        yield result.at_delta(0.0).finding
    yield result.finding
    if result.unbounded:
        share = f"in {result.hits[result.rule.likely]} of {result.runs} runs"
        yield from textwrap.wrap(
            f"not private for any epsilon: {result.impossible}; {result.rule.likely} the record "
            f"it was not 0 {share}",
            WIDTH,
        )
    if result.claimed_epsilon is not None:
        yield from textwrap.wrap(result.verdict, WIDTH)


def _wrapped(name: str, text: str) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        WIDTH,
        initial_indent=name.ljust(_MARGIN),
        subsequent_indent=" " * _MARGIN,
        break_on_hyphens=False,
    )
