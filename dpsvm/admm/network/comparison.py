"""A network's model beside the models it has to be measured against.

The model of all rows in one place is what the network would be at its best; what a node reaches
with its own rows is what it has without the network. Averaging the nodes' own models once is the
cheapest way to join them, and a network that does not beat it is not worth its messages:
:attr:`Comparison.verdict` says so.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsvm._arrays import Array
from dpsvm.admm.network.agreement import Agreement
from dpsvm.admm.network.estimators import NetworkADMM
from dpsvm.admm.network.hinge import approach_hinge
from dpsvm.admm.network.history import Test, tested
from dpsvm.admm.network.shares import Samples
from dpsvm.admm.network.terms import Terms
from dpsvm.distributed import comparison as distributed
from dpsvm.privacy.minimiser import Objective, approach

NETWORK, CENTRAL = "network", "all rows in one place"
MEAN_OF_LOCAL, ALONE = "mean of local models", "a node alone, on average"


@dataclass(frozen=True)
class Outcome:
    """How one model did; for the nodes alone, the mean over the nodes."""

    name: str
    objective: float = math.nan  # sum_i O_i; nan if it was not asked for
    train_loss: float = math.nan  # mean over the nodes of the mean loss on their rows; likewise
    test_loss: float | None = None
    test_error: float | None = None


class Comparison(distributed.Comparison[NetworkADMM, Outcome]):
    """A fitted network and its baselines.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 2))
    >>> found = compare(NetworkADMM(rounds=99), X, X.sum(axis=1) > 0)
    >>> [outcome.name for outcome in found.outcomes][:2]
    ['network', 'all rows in one place']
    >>> found.gap("network") < 1e-6
    True
    >>> X, y = np.array([[-1.0, 0.5], [1.0, 0.5]] * 9), [0, 1] * 9
    >>> found = compare(NetworkADMM("ring", n_nodes=3), X, y, test=(X, y))
    >>> found["mean of local models"].test_error
    0.0
    """

    def gap(self, name: str) -> float:
        """How far an objective lies above the central one, relatively; nan if not asked for."""
        return self[name].objective / self[CENTRAL].objective - 1.0 if self.measured else math.nan

    @property
    def verdict(self) -> str | None:
        """Whether the messages were worth it, by the test loss if there is one."""
        if not self.measured:
            return None
        others = [name for name in (MEAN_OF_LOCAL, ALONE) if self.beats(NETWORK, name)]
        if len(others) == 2:
            return f"the network beats the {MEAN_OF_LOCAL} and {ALONE}"
        if not others:
            return f"the network beats neither the {MEAN_OF_LOCAL} nor {ALONE}: it does not pay"
        return f"the network beats only {others[0]}"

    @staticmethod
    def _outcomes(model: Any, data: Any, test: Any, measured: bool, more: bool) -> list[Outcome]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit has said it all
            agreed, _, samples = model._agree(*data)
        task = _Task(agreed.terms, agreed.tol, samples, model._evaluation(test, agreed))
        joint = agreed.in_prepared_units(model.coef_[0], float(model.intercept_[0]))
        if not measured:
            return [Outcome(NETWORK, math.nan, math.nan, *tested(task.test, task.terms, joint))]
        local = task.local()
        return [
            task.outcome(NETWORK, joint),
            task.outcome(CENTRAL, task.minimiser(task.samples, task.terms.lam)),
            task.outcome(MEAN_OF_LOCAL, np.mean(local, axis=0)),
            _mean([task.outcome(ALONE, own) for own in local]),
        ]


compare = Comparison.of


def beside(
    agreed: Agreement, samples: Sequence[Samples], coef: Array, intercept: float
) -> tuple[float, float]:
    """The mean loss over all nodes of a joint model, and of the nodes' own models on average."""
    task = _Task(agreed.terms, agreed.tol, samples)
    losses = [task.outcome(ALONE, own).train_loss for own in task.local()]
    joint = task.outcome(NETWORK, agreed.in_prepared_units(coef, intercept)).train_loss
    return joint, math.fsum(losses) / len(losses)


@dataclass
class _Task:
    """The problem of a network, for the baselines: without privacy and in the open."""

    terms: Terms
    tol: float
    samples: Sequence[Samples]
    test: Test | None = None

    def local(self) -> list[Array]:
        """The minimiser of every O_i."""
        own_share = self.terms.lam / len(self.samples)
        return [self.minimiser([own], own_share) for own in self.samples]

    def outcome(self, name: str, weights: Array) -> Outcome:
        objective = math.fsum(own.objective(self.terms, weights) for own in self.samples)
        loss = math.fsum(own.mean_loss(self.terms, weights) for own in self.samples)
        mean = loss / len(self.samples)
        return Outcome(name, objective, mean, *tested(self.test, self.terms, weights))

    def minimiser(self, samples: Sequence[Samples], lam: float) -> Array:
        rows = [own.rows for own in samples]
        table = sp.vstack(rows, format="csr") if sp.issparse(rows[0]) else np.vstack(rows)
        objective = Objective(
            table,
            np.concatenate([own.signs for own in samples]),
            np.concatenate([np.full(own.size, self.terms.C / own.size) for own in samples]),
            self.terms.loss,
            lam,
            np.zeros(table.shape[1]),
            row_norm=max(1.0, *(own.longest for own in samples)),
        )
        solver = approach_hinge if self.terms.loss.name == "hinge" else approach
        return solver(objective, self.tol, np.zeros(table.shape[1]))[0]


def _mean(alone: Sequence[Outcome]) -> Outcome:
    def over_nodes(name: str) -> Any:
        values = [getattr(one, name) for one in alone]
        return None if values[0] is None else math.fsum(values) / len(values)

    measured = ("objective", "train_loss", "test_loss", "test_error")
    return Outcome(alone[0].name, *map(over_nodes, measured))
