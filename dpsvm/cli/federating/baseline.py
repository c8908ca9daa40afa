"""What a site could have had from its own data, without the others and without privacy."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpsvm.cli.federating.cast import Cast
from dpsvm.federation.members import Finished, local_model


@dataclass(frozen=True)
class Baseline:
    """The joint model and one made alone, by the same figures."""

    alone: str  # whose
    joint: dict[str, float]
    local: dict[str, float]


def baseline(
    cast: Cast, history: Sequence[dict[str, Any]], result: dict[str, Any]
) -> Baseline | None:
    """The joint model beside a local one; None where a label owner has no columns."""
    job, owner = cast.job, cast.coordinator
    network = job.algorithm == "network"
    if not network and (owner.source is None or not history):
        return None
    tables = {site.name: site.local_table(job) for site in (cast.parties if network else [owner])}
    if not all(table.columns.shape[1] for table in tables.values()):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run has said it all
        joint, local = local_model(Finished(job, tables, history, result))
    return Baseline("a node alone, on average" if network else f"{owner.name} alone", joint, local)
