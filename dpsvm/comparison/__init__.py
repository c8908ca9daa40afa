"""Working-set selectors side by side: iterations, objectives, gaps and scores against wss2."""

from __future__ import annotations

from dpsvm.comparison.comparison import Comparison, compare
from dpsvm.comparison.dataset import Dataset, Facts
from dpsvm.comparison.execution import Journal
from dpsvm.comparison.results import Plan
from dpsvm.comparison.runs import Run, Task
from dpsvm.comparison.scores import Scores
from dpsvm.comparison.settings import Setting, grid
from dpsvm.comparison.summary import Spread, Summary

__all__ = [
    "Comparison",
    "Dataset",
    "Facts",
    "Journal",
    "Plan",
    "Run",
    "Scores",
    "Setting",
    "Spread",
    "Summary",
    "Task",
    "compare",
    "grid",
]
