"""An audit as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import numpy as np

from dpsvm.privacy.audit.result import AuditResult, rounded_down
from dpsvm.privacy.audit.worlds import WITH, WITHOUT

WIDTH = 80
_MARGIN = 12
_COLUMNS = WIDTH - _MARGIN
_SHADES = " .:-=+*#%@"
_RELATIONS = {"add-remove": "add or remove one record", "replace": "replace one record"}


def report_text(result: AuditResult) -> str:
    """What was run, what was seen, and what follows.

    >>> from dpsvm.privacy.audit import Rule
    >>> print(report_text(AuditResult(
    ...     estimator="Mean", record="a record", neighbouring="replace", confidence=0.95,
    ...     rule=Rule("score", 0.5, True, "with"), values={"with": np.ones(100),
    ...     "without": np.eye(100)[0]}, pilot_runs=50, claimed_epsilon=1.0, random_state=0)))
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
    lines = [line for name, text in _facts(result) for line in _wrapped(name, text)]
    return "\n".join([*lines, *_histogram(result), "", *_findings(result)])


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


def _histogram(result: AuditResult) -> Iterator[str]:
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
