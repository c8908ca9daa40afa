"""The facts without which a dpwss table cannot be read."""

from __future__ import annotations

from collections.abc import Iterable

from dpsvm.comparison.summary import Summary

NO_GUARANTEE = (
    "No privacy guarantee is attached to any dpwss run: eps sets how sharply a selection prefers "
    "the better pair and is no privacy budget, because the pairs that can be drawn depend on the "
    "data and every update reads raw rows."
)


def notes(summaries: Iterable[Summary], tol: float) -> list[str]:
    """What must be said under a table; nothing if dpwss is not in it.

    >>> notes([], 1e-3)
    []
    """
    ours = [summary for summary in summaries if summary.setting.selector == "dpwss"]
    if not ours:
        return []
    runs = [run for summary in ours for run in summary.runs]
    spent = [run for run in runs if run.stop_reason == "exhausted"]
    said = [f"None of the {len(runs)} dpwss runs ended exhausted."]
    if spent:
        gaps = [run.gap for run in spent]
        said = [
            f"{len(spent)} of {len(runs)} dpwss runs ended exhausted (no unused pair left to draw),"
            f" with a gap of {min(gaps):.2g} to {max(gaps):.2g} where {tol:g} was asked for: fewer"
            " iterations than wss2 means stopped earlier, not converged faster."
        ]
    said += [_early(summary) for summary in ours if _stops_early(summary)]
    return [*said, NO_GUARANTEE]


def _stops_early(summary: Summary) -> bool:
    """Whether some run left more than a tenth of the objective on the way."""
    reference = summary.reference
    return bool(reference) and summary.objective_error.high > 0.1 * abs(reference[0].objective)


def _early(summary: Summary) -> str:
    worst = max(summary.runs, key=lambda run: run.objective)
    return (
        f"{summary.setting.label}: a run stopped after {worst.iterations} iterations at objective "
        f"{worst.objective:.2f}, where wss2 reaches {summary.reference[0].objective:.2f}."
    )
