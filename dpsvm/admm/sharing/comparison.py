"""A joint model beside the models it has to be measured against.

The first party's own model is always among them: a joint model that does not beat it has cost its
parties something for nothing, and :attr:`Comparison.verdict` says so. The objective gap stands
beside the test loss, because a test loss below the central model's is not a better optimiser but a
fit stopped early.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from dpsvm._arrays import Array
from dpsvm.admm.sharing.agreement import Agreement
from dpsvm.admm.sharing.baselines import central, distributed_sgd, gauss_seidel
from dpsvm.admm.sharing.columns import Columns, predicted
from dpsvm.admm.sharing.coordinator import Coordinator, accuracy
from dpsvm.admm.sharing.estimators import BaseSharingADMM
from dpsvm.admm.sharing.party import Party
from dpsvm.admm.sharing.privacy import BOUNDS
from dpsvm.distributed import comparison as distributed

JOINT, CENTRAL, FIRST = "joint", "all features", "first party alone"
GAUSS_SEIDEL, SGD = "Gauss-Seidel", "distributed SGD"


@dataclass(frozen=True)
class Outcome:
    """How one model did."""

    name: str
    objective: float = math.nan  # of the joint problem, of the first party's own for its model
    train_loss: float = math.nan  # mean; both are nan if they were not asked for
    test_loss: float | None = None
    test_accuracy: float | None = None


class Comparison(distributed.Comparison[BaseSharingADMM, Outcome]):
    """A fitted joint model and its baselines.

    >>> from dpsvm.admm import SharingADMMRegressor
    >>> rng = np.random.default_rng(0)
    >>> blocks = [rng.standard_normal((50, 2)) for _ in range(2)]
    >>> found = compare(SharingADMMRegressor(rounds=40), blocks, sum(b.sum(axis=1) for b in blocks))
    >>> [outcome.name for outcome in found.outcomes]
    ['joint', 'all features', 'first party alone']
    >>> found.gap("joint") < 1e-6
    True
    >>> found.verdict
    'the joint model beats the first party alone'
    >>> from dpsvm.admm import SharingADMMClassifier
    >>> X, y = np.array([[-1.0, 0.5], [1.0, 0.5]] * 9), [0, 1] * 9
    >>> found = compare(SharingADMMClassifier(), X, y, [1, 1], test=(X, y), more=True)
    >>> found["Gauss-Seidel"].test_accuracy
    1.0
    """

    def gap(self, name: str) -> float | None:
        """How far an objective lies above the central one, relatively; None for the first party,
        and where nothing was measured.
        """
        if name == FIRST or not self.measured:
            return None
        lowest = self[CENTRAL].objective
        return self[name].objective / lowest - 1.0 if lowest > 0.0 else math.nan

    @property
    def verdict(self) -> str | None:
        """Whether joining in was worth it, by the test loss if there is one."""
        if not self.measured:
            return None
        if self.beats(JOINT, FIRST):
            return "the joint model beats the first party alone"
        return "the joint model does NOT beat the first party alone: joining in does not pay"

    @staticmethod
    def _outcomes(model: Any, data: Any, test: Any, measured: bool, more: bool) -> list[Outcome]:
        """more : Gauss-Seidel for as many rounds, and distributed SGD for as many epochs"""
        X, y, _ = data
        task = _Task(model, X, y, test)
        if not measured:
            return [Outcome(JOINT, math.nan, math.nan, *task.tested(task.joint()))]
        weights = {JOINT: task.joint(), CENTRAL: task.central()}
        if more:
            weights |= {GAUSS_SEIDEL: task.gauss_seidel(), SGD: task.sgd()}
        outcomes = [task.outcome(name, x) for name, x in weights.items()]
        alone = task.alone()
        outcomes.insert(2, alone.outcome(FIRST, alone.central()))
        return outcomes


compare = Comparison.of

_NOT_ALONE = ("privacy", "epsilon", "delta", *BOUNDS)


def alone(settings: BaseSharingADMM, table: Any, y: Any) -> dict[str, float]:
    """Loss, and accuracy of a classifier, of a model of one party's columns, without privacy.

    It has a constant column if the joint model has one.
    """
    model = clone(settings).set_params(**dict.fromkeys(_NOT_ALONE), track=False)
    if model.intercept_party is not None:
        model.set_params(intercept_party=0)
    if model.kappa is not None:
        model.set_params(kappa=None, relaxation=None)
    model.fit(table, y)
    agreed = Agreement.of(model, [model.n_features_in_])
    target = agreed.known_target(y, getattr(model, "classes_", None))
    predictions = model.decision_function(table) if is_classifier(model) else model.predict(table)
    found = {"loss": float(np.mean(agreed.loss.value(predictions, target)))}
    if is_classifier(model):
        found["accuracy"] = accuracy(predictions, target)
    return found


class _Task:
    """The problem of a fitted model, for the baselines: without privacy and in the open."""

    def __init__(self, model: BaseSharingADMM, X: Any, y: Any, test: Any) -> None:
        agreed = Agreement.of(model, [len(places) for places in model._layout])
        self.model, self.loss = model, agreed.loss
        self.columns, self.target = model._held_out(X, y, agreed)
        self.test = model._evaluation(test, agreed)
        terms = agreed.terms
        self.terms = replace(
            terms, kappa=float(terms.parties), relaxation=1.0, constraint=model.constraint
        )

    def alone(self) -> _Task:
        """The problem of the first party's columns, with a constant if the joint model has one."""

        def first(columns: list[Columns]) -> list[Columns]:
            constant = self.model.intercept_party is not None and not columns[0].constant
            return [Columns(columns[0].matrix, constant=True) if constant else columns[0]]

        task = copy(self)
        task.columns = first(self.columns)
        task.test = None if self.test is None else (first(self.test[0]), self.test[1])
        task.terms = replace(self.terms, parties=1, kappa=1.0)
        return task

    def joint(self) -> list[Array]:
        """The weights of the joint model, that of a constant column included."""
        parts = list(self.model.coefs_)
        chosen = self.model.intercept_party
        if chosen is not None:
            parts[chosen] = np.append(parts[chosen], np.ravel(self.model.intercept_))
        return parts

    def central(self) -> list[Array]:
        cuts = np.cumsum([own.n_features for own in self.columns])[:-1]
        return np.split(central(self.columns, self.target, self.loss, self.terms), cuts)

    def gauss_seidel(self) -> list[Array]:
        terms = replace(self.terms, kappa=1.0)
        parties = [Party(m, own, terms) for m, own in enumerate(self.columns)]
        rounds = int(self.model.rounds)
        gauss_seidel(Coordinator(self.target, self.loss, terms, rounds=rounds), parties)
        return [party.weights for party in parties]

    def sgd(self) -> list[Array]:
        epochs = int(self.model.rounds)
        *_, last = distributed_sgd(self.columns, self.target, self.loss, self.terms, epochs)
        return last

    def outcome(self, name: str, weights: list[Array]) -> Outcome:
        prediction = predicted(self.columns, weights)
        losses = self.loss.value(prediction, self.target)
        penalty = math.fsum(self.terms.penalty.value(part) for part in weights)
        objective = self.terms.C * float(losses.sum()) + self.terms.lam * penalty
        return Outcome(name, objective, float(losses.mean()), *self.tested(weights))

    def tested(self, weights: list[Array]) -> tuple[float | None, float | None]:
        if self.test is None:
            return None, None
        columns, target = self.test
        prediction = predicted(columns, weights)
        loss = float(self.loss.value(prediction, target).mean())
        if not is_classifier(self.model):
            return loss, None
        return loss, accuracy(prediction, target)
