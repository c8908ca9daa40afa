"""LIBSVM's training run: its class order, its probability estimates, its cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm._arrays import Array
from dpsvm._result import Report, Solution
from dpsvm.progress import Monitor
from dpsvm.svm.model import Model
from dpsvm.svm.parameters import CLASSIFIERS, Parameters
from dpsvm.svm.probability import PROBABILITY_FOLDS, held_out_sigmoid, laplace_scale
from dpsvm.svm.solving import CoreFit
from dpsvm.svm.validation import GlibcRandom, Rows, folds


@dataclass(frozen=True, eq=False)
class Problem:
    """The rows of a LIBSVM data file.

    For a precomputed kernel, ``X[i, j]`` is the kernel of row i with the row whose serial is j + 1.
    """

    X: Any  # CSR: our own, or scipy's
    y: Array
    serials: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Rows) -> Problem:
        """The problem restricted to some rows, in their order."""
        serials = None if self.serials is None else self.serials[rows]
        return Problem(self.X[rows], self.y[rows], serials)

    def solver_input(self) -> Any:
        """What the solver trains on: the rows, or the Gram matrix if that is what they hold."""
        if self.serials is None:
            return self.X
        return np.take(self.X.toarray(), self.serials - 1, axis=1)


class Listener:
    """Hears of each step of a training run, in the order LIBSVM prints it."""

    def solved(self, report: Report, classes: tuple[int, int] | None, purpose: str) -> None:
        """One binary, regression or one-class problem was solved.

        The purpose is "model", "cross-validation" or "probability".
        """

    def trained(self, n_support: int) -> None:
        """One classifier, all its pairs of classes, was trained."""

    def single_class(self, label: int) -> None:
        """The training part of a fold holds one class only; its label will be predicted."""

    def laplace(self, scale: float) -> None:
        """The scale of a regression's residuals was estimated."""


def grouped_by_class(y: Array) -> tuple[NDArray[np.int64], list[Rows]]:
    """The labels in LIBSVM's order and the rows of each: first seen first, but +1 before -1.

    >>> labels, rows = grouped_by_class(np.array([-1.0, 1.0, -1.0]))
    >>> labels.tolist(), [group.tolist() for group in rows]
    ([1, -1], [[1], [0, 2]])
    """
    values, first = np.unique(y, return_index=True)
    labels = values[np.argsort(first)].astype(np.int64)
    if labels.tolist() == [-1, 1]:
        labels = labels[::-1]
    return labels, [np.flatnonzero(y == label) for label in labels]


@dataclass(eq=False, kw_only=True)
class Trainer:
    """Trains as ``svm-train`` does; one Trainer draws one random stream.

    >>> from scipy.sparse import csr_array
    >>> problem = Problem(csr_array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 0, 1, 1]))
    >>> Trainer(parameters=Parameters(kernel="linear")).fit(problem).labels.tolist()
    [0, 1]
    """

    parameters: Parameters
    class_weight: Mapping[int, float] = field(default_factory=dict)  # factors on C, by label
    seed: int | None = None  # of the folds (None: 1, as in LIBSVM) and of random selectors
    threads: int = 1  # the result does not depend on it
    listener: Listener = field(default_factory=Listener)
    watch: Callable[[], AbstractContextManager[Monitor | None]] = nullcontext

    def __post_init__(self) -> None:
        self._random = GlibcRandom(1 if self.seed is None else self.seed)
        self._solve = CoreFit(
            self.parameters, threads=self.threads, seed=self.seed, watch=self.watch
        )

    def fit(self, problem: Problem) -> Model:
        """Train one model on the whole problem."""
        return self._fit(problem, self.parameters.probability, "model")

    def cross_validate(self, problem: Problem, n_folds: int) -> Array:
        """What models trained on the other folds predict for each row."""
        probability = self.parameters.probability
        return self._cross_validate(problem, n_folds, probability, "cross-validation")

    @property
    def _is_classifier(self) -> bool:
        return self.parameters.machine in CLASSIFIERS

    def _fit(self, problem: Problem, probability: bool, purpose: str) -> Model:
        if self._is_classifier:
            return self._fit_classifier(problem, probability, purpose)
        scale = np.array([self._laplace_scale(problem)]) if probability else None
        solution = self._solve(problem.solver_input(), problem.y)
        self.listener.solved(solution.reports[0], None, purpose)
        return self._model(problem, solution, prob_a=scale)

    def _cross_validate(
        self, problem: Problem, n_folds: int, probability: bool, purpose: str
    ) -> Array:
        n = len(problem)
        groups = [np.arange(n)]
        if self._is_classifier:
            labels, by_class = grouped_by_class(problem.y)
            _require_two(labels)
            if n_folds < n:
                groups = by_class
        predicted = np.empty(n)
        for rows, held_out in folds(groups, min(n_folds, n), self._random):
            training, X = problem.take(rows), problem.X[held_out]
            if self._is_classifier and np.all(training.y == training.y[0]):
                self.listener.single_class(int(training.y[0]))
                predicted[held_out] = training.y[0]
                continue
            model = self._fit(training, probability, purpose)
            if model.labels is not None and probability:
                likeliest = np.argmax(model.predict_proba(X, threads=self.threads), axis=1)
                predicted[held_out] = model.labels[likeliest]
            else:
                predicted[held_out] = model.predict(X, threads=self.threads)
        return predicted

    def _fit_classifier(self, problem: Problem, probability: bool, purpose: str) -> Model:
        labels, groups = grouped_by_class(problem.y)
        _require_two(labels)
        codes = np.empty(len(problem))
        for code, rows in enumerate(groups):
            codes[rows] = code
        weight = np.array([self.class_weight.get(int(label), 1.0) for label in labels])
        solution = self._solve(problem.solver_input(), codes, class_weight=weight)
        sigmoids = []
        pairs = zip(*np.triu_indices(len(labels), 1), strict=True)
        for report, (i, j) in zip(solution.reports, pairs, strict=True):
            if probability:
                pair = problem.take(np.concatenate([groups[i], groups[j]]))
                positive = np.arange(len(pair)) < len(groups[i])
                sigmoids.append(self._sigmoid(pair, positive, weight[[i, j]]))
            self.listener.solved(report, (int(labels[i]), int(labels[j])), purpose)
        self.listener.trained(len(solution.support))
        prob_a, prob_b = np.array(sigmoids).T if sigmoids else (None, None)
        return self._model(problem, solution, labels=labels, prob_a=prob_a, prob_b=prob_b)

    def _sigmoid(
        self, pair: Problem, positive: NDArray[np.bool_], weight: Array
    ) -> tuple[float, float]:
        """Platt's sigmoid on the decision values of held-out rows."""

        def decide(rows: Rows, held_out: Rows) -> Array:
            training = pair.take(rows)
            codes = np.where(positive[rows], 0.0, 1.0)
            solution = self._solve(training.solver_input(), codes, class_weight=weight)
            self.listener.solved(solution.reports[0], None, "probability")
            self.listener.trained(len(solution.support))
            model = self._model(training, solution, labels=np.array([1, -1]))
            values = model.decision_values(pair.X[held_out], threads=self.threads)
            return values[:, 0]

        return held_out_sigmoid(positive, self._random, decide)

    def _laplace_scale(self, problem: Problem) -> float:
        predicted = self._cross_validate(problem, PROBABILITY_FOLDS, False, "probability")
        scale = laplace_scale(problem.y - predicted)
        self.listener.laplace(scale)
        return scale

    def _model(self, problem: Problem, solution: Solution, **parts: Any) -> Model:
        serials, support = problem.serials, solution.support
        return Model(
            parameters=self.parameters,
            rho=solution.rho,
            n_support=solution.n_support,
            dual_coef=solution.dual_coef,
            support_vectors=problem.X[support] if serials is None else None,
            serials=None if serials is None else serials[support],
            **parts,
        )


def _require_two(labels: NDArray[np.int64]) -> None:
    if len(labels) < 2:
        raise ValueError(f"every row has the label {labels[0]}: classification needs two classes")
