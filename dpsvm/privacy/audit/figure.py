"""The picture of an audit, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpsvm.privacy.audit.worlds import WITH, WITHOUT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpsvm.privacy.audit.result import AuditResult

_COLOURS = {WITH: "#D55E00", WITHOUT: "#0072B2"}  # Okabe and Ito (2008)
_BINS = 60
_TAIL = 0.1  # per cent of the runs beyond each end of the axis, drawn in the last bin


def histogram(result: AuditResult) -> Figure:
    """The statistic in the test runs of both worlds, and the threshold.

    >>> from dpsvm.privacy.audit import AuditResult, Rule
    >>> result = AuditResult(
    ...     estimator="Mean", record="a record", neighbouring="replace", confidence=0.95,
    ...     rule=Rule("score", 0.5, True, "with"), values={"with": np.ones(100),
    ...     "without": np.zeros(100)}, pilot_runs=50, claimed_epsilon=1.0, random_state=0)
    >>> histogram(result).axes[0].get_xlabel()  # doctest: +SKIP
    'score'
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.6), layout="constrained")
    axes = figure.subplots()
    pooled = np.concatenate([result.values[WITH], result.values[WITHOUT], [result.rule.threshold]])
    low, high = np.percentile(pooled, [_TAIL, 100.0 - _TAIL])
    low, high = min(low, result.rule.threshold), max(high, result.rule.threshold)
    edges = np.linspace(low, high, _BINS + 1) if high > low else np.array([low - 0.5, low + 0.5])
    for world in (WITHOUT, WITH):
        values = np.clip(result.values[world], edges[0], edges[-1])
        shape = {"color": _COLOURS[world], "alpha": 0.55, "label": f"{world} the record"}
        axes.hist(values, bins=edges, **shape)
    side = "at least" if result.rule.at_least else "below"
    axes.axvline(result.rule.threshold, color="#222222", linestyle="--", linewidth=1)
    axes.set(xlabel=result.rule.statistic, ylabel=f"runs of {result.runs}")
    axes.legend(title=f"event: {side} {result.rule.threshold:.4g}", fontsize="small")
    lines = [result.finding]
    if result.unbounded:
        lines.append("not private for any epsilon")
    if result.claimed_epsilon is not None:
        word = "refuted" if result.refuted else "not refuted"
        lines.append(f"claimed epsilon {result.claimed_epsilon:g}: {word}")
    axes.set_title("\n".join(lines), fontsize="medium")
    return figure
