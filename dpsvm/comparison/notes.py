"""The facts without which the table of a selector that claims privacy cannot be read."""

from __future__ import annotations

from collections.abc import Iterable

from dpsvm.comparison.settings import REFERENCE
from dpsvm.comparison.summary import Summary
from dpsvm.svm.selectors import NUMBERS, SELECTORS


def notes(summaries: Iterable[Summary], tol: float) -> list[str]:
    """What must be said under a table; nothing if no selector in it claims privacy.

    >>> notes([], 1e-3)
    []
    """
    of: dict[str, list[Summary]] = {}
    for summary in summaries:
        of.setdefault(summary.setting.selector, []).append(summary)
    return [line for name, ours in of.items() for line in _notes(name, ours, tol)]


def _notes(name: str, ours: list[Summary], tol: float) -> list[str]:
    selector = SELECTORS[name]
    if selector.budget is None:
        return []
    runs = [run for summary in ours for run in summary.runs]
    spent = [run for run in runs if run.stop_reason == "exhausted"]
    said = [f"None of the {len(runs)} {name} runs ended exhausted."]
    if spent:
        gaps = [run.gap for run in spent]
        said = [
            f"{len(spent)} of {len(runs)} {name} runs ended exhausted (no unused pair left to draw)"
            f", with a gap of {min(gaps):.2g} to {max(gaps):.2g} where {tol:g} was asked for: fewer"
            f" iterations than {REFERENCE} means stopped earlier, not converged faster."
        ]
    said += [_early(summary) for summary in ours if _stops_early(summary)]
    reason = f"{NUMBERS[selector.budget].label} {selector.caveat}"
    return [*said, f"No privacy guarantee is attached to any {name} run: {reason}"]


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
