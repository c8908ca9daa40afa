"""ADMM sharing: one linear model over columns that several parties hold and do not share."""

from __future__ import annotations

from dpsvm.admm.sharing.columns import Columns
from dpsvm.admm.sharing.coordinator import Coordinator, run
from dpsvm.admm.sharing.party import Broadcast, Contribution, Ending, Party
from dpsvm.admm.sharing.terms import Terms

__all__ = [
    "Broadcast",
    "Columns",
    "Contribution",
    "Coordinator",
    "Ending",
    "Party",
    "Terms",
    "run",
]
