"""What a site could have had from its own data, without the others and without privacy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsvm.admm.network.comparison import _Task
from dpsvm.cli.federating.cast import Cast
from dpsvm.federation.network import estimator_of as network_of
from dpsvm.federation.sharing import estimator_of as sharing_of
from dpsvm.federation.tables import Table
from dpsvm.frank_wolfe.distributed import DistributedFrankWolfe

_NOT_ALONE = (
    *("privacy", "epsilon", "delta", "data_norm", "radius", "target_bound", "column_norm"),
    *("target_norm", "b1", "c1"),
)
_FRANK_WOLFE = ("rounds", "step")


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
    job = cast.job
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run has said it all
        if job.algorithm == "network":
            return _of_nodes(cast, result)
        if cast.coordinator.source is None or not history:
            return None
        table = cast.coordinator.local_table(job)
        if not table.columns.shape[1]:
            return None
        if job.algorithm == "frank-wolfe":
            return _of_frank_wolfe(cast, table, history[-1])
        return _of_sharing(cast, table, history[-1])


def _of_sharing(cast: Cast, table: Table, last: dict[str, Any]) -> Baseline:
    """One party with the label owner's columns; the intercept stays if the joint model has one."""
    model = sharing_of(cast.job)
    constant = None if model.intercept_party is None else 0
    free: dict[str, Any] = dict.fromkeys(_NOT_ALONE)
    model.set_params(**free, intercept_party=constant, track=False)
    if model.kappa is not None:
        model.set_params(kappa=None, relaxation=None)
    model.fit(table.columns, table.labels)
    prediction, target = model._decisions(table.columns), model._known_target(table.labels)
    local = {"loss": float(np.mean(model._loss().value(prediction, target)))}
    if "accuracy" in last:
        local["accuracy"] = float(np.mean((prediction > 0) == (target > 0)))
    joint = {name: float(last[name]) for name in local}
    return Baseline(f"{cast.coordinator.name} alone", joint, local)


def _of_frank_wolfe(cast: Cast, table: Table, last: dict[str, Any]) -> Baseline:
    """The same ball and as many rounds over the label owner's columns, sent nowhere."""
    job, name = cast.job, cast.coordinator.name
    settings = {one: job.settings[one] for one in _FRANK_WOLFE if one in job.settings}
    radius = job.settings["radius"]
    if isinstance(radius, list):
        radius = radius[job.place(name)] if name in job.parties else max(radius)
    found = DistributedFrankWolfe(radius=radius, **settings).solve([table.columns], table.labels)
    local = {"value": float(found.value or 0.0)}
    return Baseline(f"{name} alone", {"value": float(last["value"])}, local)


def _of_nodes(cast: Cast, result: dict[str, Any]) -> Baseline:
    """The loss of the nodes' own models over all rows, on average, beside that of their mean."""
    model = network_of(cast.job)
    tables = [site.local_table(cast.job) for site in cast.parties]
    model.classes_ = np.unique(np.asarray(model.classes))
    model.coef_ = np.asarray(result["weights"])[None, :]
    model.intercept_ = np.array([float(result["intercept"])])
    task = _Task(model, [one.columns for one in tables], [one.labels for one in tables], None, None)
    losses = [task.outcome("alone", own).train_loss for own in task.local()]
    joint = task.outcome("joint", task.network()).train_loss
    mean = math.fsum(losses) / len(losses)
    return Baseline("a node alone, on average", {"loss": joint}, {"loss": mean})
