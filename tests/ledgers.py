"""Ledgers that tests put in the place of others."""

from __future__ import annotations

import os
from pathlib import Path

from dpsvm.privacy.accountant import BudgetAccountant


def begin_anew(
    path: str | os.PathLike[str],
    epsilon: float,
    delta: float | None = None,
    *,
    neighbouring: str | None = None,
) -> BudgetAccountant:
    """Remove a ledger with its key, and begin another in its place."""
    Path(path).unlink()
    Path(f"{os.fspath(path)}.key").unlink()
    return BudgetAccountant(epsilon, delta, neighbouring=neighbouring, path=path, create=True)
