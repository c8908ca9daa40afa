"""What the state folder and the ledger of a site say of its runs: it must be the same.

A folder of a run that was paid for says so, in a file that is written just before the charge. A
ledger that lacks such a charge was replaced or put back; a charge whose folder is missing, or knows
nothing of it, belongs to a folder that was. Both put back together, to one moment, agree: that only
others can see who remember more (:mod:`dpsvm.federation.witness`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from dpsvm.federation.store import PURGED, FolderCopy, StoreError
from dpsvm.privacy.accountant import BudgetAccountant

PARTY, COORDINATOR = "party", "coordinator"
"""The roles in which a site can be charged for a run, and the folders of its state."""

CHARGED = "charged"
"""The file with the label of the charge."""

_LABEL = re.compile(r"federation run (\S+) at (\S+) as (party|coordinator), ")


def label_of(run: str, site: str, role: str) -> str:
    """What the label of a charge begins with.

    >>> label_of("heart-1", "lab", "party")
    'federation run heart-1 at lab as party, noise key '
    """
    return f"federation run {run} at {site} as {role}, noise key "


def require_records(state: Path, site: str, ledger: BudgetAccountant) -> None:
    """Refuse a ledger and a state folder that do not fit to each other."""
    for told in disagreements(state, site, ledger):
        raise StoreError(told)


def disagreements(state: Path, site: str, ledger: BudgetAccountant) -> Iterator[str]:
    """What the two do not agree on, in words."""
    labels = {charge.label for charge in ledger.charges}
    for role in (PARTY, COORDINATOR):
        for path in sorted((state / role).glob(f"*/{CHARGED}")):
            run = path.parent.name
            if path.read_text(encoding="utf-8").strip() not in labels and _answered(path.parent):
                yield (
                    f"the ledger of {site} does not hold the charge of run {run}, which its state "
                    "folder keeps: the ledger was replaced or put back (another ledger needs "
                    "another state folder)"
                )
    for label in sorted(labels):
        found = _LABEL.match(label)
        if found is None or found[2] != site:
            continue
        folder = state / found[3] / found[1]
        if not folder.is_dir():
            yield f"run {found[1]} was charged, and nothing else of it is kept at {site}"
        elif not (folder / CHARGED).exists() and not (folder / PURGED).exists():
            yield (
                f"run {found[1]} was charged at {site}, and its folder knows nothing of that: it "
                "was put back from before"
            )


def _answered(folder: Path) -> bool:
    """Whether anything that depends on data has left: a commit may have been interrupted."""
    try:
        kept = FolderCopy(folder.parent, folder.name).load()
        if kept is None:
            return True
        return bool(kept["held"] > 0) if "held" in kept else kept["stage"] != "beginning"
    except (StoreError, KeyError, TypeError):
        return True
