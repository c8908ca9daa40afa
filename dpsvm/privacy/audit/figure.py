"""The picture of an audit, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsvm.privacy.audit.worlds import WITH, WITHOUT
from dpsvm.report.palette import BLACK, COLOURS
from dpsvm.report.picture import canvas, legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpsvm.privacy.audit.result import AuditResult

_COLOURS = {WITH: COLOURS[1], WITHOUT: COLOURS[0]}
_BINS = 60


def histogram(result: AuditResult) -> Figure:
    """The statistic in the test runs of both worlds, and the threshold.

    >>> import numpy as np
    >>> from dpsvm.privacy.audit import AuditResult, Rule
    >>> result = AuditResult(
    ...     estimator="Mean", record="a record", neighbouring="replace", confidence=0.95,
    ...     rule=Rule("score", 0.5, True, "with"), values={"with": np.ones(100),
    ...     "without": np.zeros(100)}, pilot_runs=50, claimed_epsilon=1.0, random_state=0)
    >>> histogram(result).axes[0].get_xlabel()
    'score'
    """
    lines = [result.finding]
    if result.unbounded:
        lines.append("not private for any epsilon")
    if result.claimed_epsilon is not None:
        word = "refuted" if result.refuted else "not refuted"
        lines.append(f"claimed epsilon {result.claimed_epsilon:g}: {word}")
    figure, [axes] = canvas(width=8.0, height=4.9, title="\n".join(lines))
    edges, counts = result.histogram(_BINS)
    for world in (WITHOUT, WITH):
        colour = _COLOURS[world]
        label = f"{world} the record: event in {result.hits[world]} of {result.runs} runs"
        axes.stairs(counts[world], edges, fill=True, color=colour, alpha=0.35)
        axes.stairs(counts[world], edges, color=colour, linewidth=1.5, label=label)
    side = "at least" if result.rule.at_least else "below"
    threshold = f"event: {side} {result.rule.threshold:.4g}"
    axes.axvline(result.rule.threshold, color=BLACK, linestyle="--", label=threshold)
    axes.set(xlabel=result.rule.statistic, ylabel="runs", xlim=(edges[0], edges[-1]))
    legend(axes)
    return figure
