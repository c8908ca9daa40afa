"""One adapter per library. ``fit``, ``predict`` and ``decide`` are timed, the rest is not.

An adapter raises ``Absent`` when its library is not installed, or has no such estimator.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench.common import Absent
from bench.speed.workloads import Matrix, Problem


@dataclass(frozen=True)
class Limits:
    """What every library is given alike."""

    tol: float = 1e-3
    cache_mb: int = 1000
    threads: int = 2


@dataclass(frozen=True)
class Solution:
    """A fitted machine in LIBSVM's layout."""

    support: np.ndarray  # [nSV] row numbers, grouped by class
    dual_coef: np.ndarray | None  # [classes - 1, nSV]; one row for regression and one-class
    n_support: np.ndarray  # [classes]; one entry for regression and one-class
    iterations: int | None  # over all one-vs-one problems; None where the library does not tell
    objective: float | None = None  # of a library that solves its own problem, without dual_coef


class Adapter(ABC):
    name: ClassVar[str]

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    @classmethod
    def suits(cls, estimator: str, params: Mapping[str, Any]) -> bool:
        """Whether such a machine is the library's business at all."""
        return True

    @abstractmethod
    def prepare(self, problem: Problem) -> None:
        """Import the library and put the rows in the form it trains on."""

    @abstractmethod
    def fit(self) -> None:
        """Train."""

    @abstractmethod
    def solution(self) -> Solution:
        """What was found."""

    @abstractmethod
    def ask(self, count: int) -> None:
        """Put the first ``count`` rows in the form the library predicts from."""

    @abstractmethod
    def predict(self) -> np.ndarray:
        """The labels, or values, of the rows asked for."""

    @abstractmethod
    def decide(self) -> None:
        """The decision values of the rows asked for."""


class _Estimator(Adapter):
    """A library whose estimators are scikit-learn's: it takes the arrays as they are."""

    model: Any

    def _estimators(self) -> Any:
        raise NotImplementedError

    def _options(self) -> dict[str, Any]:
        return {"tol": self.limits.tol, "cache_size": self.limits.cache_mb}

    def prepare(self, problem: Problem) -> None:
        try:
            estimator = getattr(self._estimators(), problem.estimator)
        except ImportError as error:
            raise Absent("not installed") from error
        except AttributeError as error:
            raise Absent(f"has no {problem.estimator}") from error
        self.problem = problem
        self.model = estimator(**problem.params, **self._options())

    def fit(self) -> None:
        if self.problem.estimator == "OneClassSVM":
            self.model.fit(self.problem.X)
        else:
            self.model.fit(self.problem.X, self.problem.y)

    def solution(self) -> Solution:
        model = self.model
        coef = model.dual_coef_
        iterations = getattr(model, "n_iter_", None)
        classifier = self.problem.estimator == "SVC"
        return Solution(
            support=np.asarray(model.support_),
            dual_coef=coef.toarray() if sp.issparse(coef) else np.asarray(coef),
            n_support=np.asarray(model.n_support_ if classifier else [len(model.support_)]),
            iterations=None if iterations is None else int(np.sum(iterations)),
        )

    def ask(self, count: int) -> None:
        self.queries = self.problem.X[:count]

    def predict(self) -> np.ndarray:
        return np.asarray(self.model.predict(self.queries))

    def decide(self) -> None:
        self.model.decision_function(self.queries)


def _linear(estimator: str, params: Mapping[str, Any]) -> bool:
    return estimator == "SVC" and params["kernel"] == "linear"


class Dpsvm(_Estimator):
    name = "dpsvm"

    def _estimators(self) -> Any:
        import dpsvm

        return dpsvm

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"n_jobs": self.limits.threads}


class DpsvmKeepingW(Dpsvm):
    name = "dpsvm keeping w"

    @classmethod
    def suits(cls, estimator: str, params: Mapping[str, Any]) -> bool:
        return _linear(estimator, params)

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"solver": "decomposition"}


class ScikitLearn(_Estimator):
    name = "scikit-learn"

    def _estimators(self) -> Any:
        import sklearn.svm

        return sklearn.svm


class Intelex(_Estimator):
    name = "scikit-learn-intelex"

    def _estimators(self) -> Any:
        import_module("daal4py").daalinit(self.limits.threads)
        return import_module("sklearnex.svm")

    def fit(self) -> None:
        super().fit()
        if not hasattr(self.model, "_onedal_estimator"):
            raise Absent("fell back to scikit-learn")


class Liblinear(_Estimator):
    """LIBLINEAR as scikit-learn wraps it. It regularises the bias: another problem than the rest's.

    It gives no dual coefficients; the objective is its own primal's, negated like a dual's.
    """

    name = "liblinear"
    _ROUNDS = 100_000  # of coordinate descent; the usual 1000 stop a9a short of the tolerance

    @classmethod
    def suits(cls, estimator: str, params: Mapping[str, Any]) -> bool:
        return _linear(estimator, params)

    def prepare(self, problem: Problem) -> None:
        from sklearn.svm import LinearSVC

        if len(np.unique(problem.y)) != 2:
            raise Absent("does not pair classes")
        self.problem = problem
        self.model = LinearSVC(
            loss="hinge",
            dual=True,
            C=problem.params["C"],
            tol=self.limits.tol,
            max_iter=self._ROUNDS,
            random_state=0,
        )

    def solution(self) -> Solution:
        w, bias = self.model.coef_[0], self.model.intercept_[0]
        sign = np.where(self.problem.y == self.model.classes_[1], 1.0, -1.0)
        slack = 1 - sign * (self.problem.X @ w + bias)
        loss = self.problem.params["C"] * np.maximum(slack, 0).sum()
        return Solution(
            support=np.flatnonzero(slack >= 0),
            dual_coef=None,
            n_support=np.array([]),
            iterations=int(self.model.n_iter_),
            objective=-float((w @ w + bias**2) / 2 + loss),
        )


class Libsvm(Adapter):
    """The libsvm-official package, in process; its rows are always sparse and double.

    It takes the class it meets first as positive, which picks the path and, where the kernel's
    rounding counts, the optimum: one row of each class is moved to the front, in sorted order.
    """

    name = "LIBSVM"
    _TYPES: ClassVar = {"SVC": 0, "OneClassSVM": 2, "SVR": 3}
    _KERNELS: ClassVar = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3}
    _FLAGS: ClassVar = {"C": "-c", "gamma": "-g", "nu": "-n", "epsilon": "-p"}

    def prepare(self, problem: Problem) -> None:
        try:
            svm = import_module("libsvm.svm")
        except ImportError as error:
            raise Absent("not installed") from error
        flags = f"-q -s {self._TYPES[problem.estimator]} -e {self.limits.tol!r}"
        flags += f" -t {self._KERNELS[problem.params['kernel']]} -m {self.limits.cache_mb}"
        for name, flag in self._FLAGS.items():
            if name in problem.params:
                flags += f" {flag} {problem.params[name]!r}"
        self.library = svm.libsvm
        self.parameter = svm.svm_parameter(flags)
        self.classifier = problem.estimator == "SVC"
        y, self.order = problem.y, np.arange(len(problem.y))
        if self.classifier:
            self.classes, y, self.order = _by_sorted_classes(problem.y)
        self.rows = svm.svm_problem(y[self.order], _as_double_csr(problem.X)[self.order])

    def fit(self) -> None:
        self.model = self.library.svm_train(self.rows, self.parameter)

    def solution(self) -> Solution:
        model = self.model.contents
        count, classes = model.l, model.nr_class
        as_array = np.ctypeslib.as_array
        coef = [as_array(model.sv_coef[k], (count,)).copy() for k in range(classes - 1)]
        return Solution(
            support=self.order[as_array(model.sv_indices, (count,)) - 1],
            dual_coef=np.array(coef),
            n_support=as_array(model.nSV, (classes,)) if self.classifier else np.array([count]),
            iterations=None,
        )

    def ask(self, count: int) -> None:
        classes = self.model.contents.nr_class
        self.queries = [self.rows.x[k] for k in np.argsort(self.order)[:count].tolist()]
        self.values = (ctypes.c_double * max(classes * (classes - 1) // 2, 1))()

    def predict(self) -> np.ndarray:
        predict, model = self.library.svm_predict, self.model
        answers = np.array([predict(model, row) for row in self.queries])
        return self.classes[answers.astype(np.intp)] if self.classifier else answers

    def decide(self) -> None:
        decide, model, values = self.library.svm_predict_values, self.model, self.values
        for row in self.queries:
            decide(model, row, values)


def _by_sorted_classes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The classes, each row's class number, and the order of rows that meets 0, 1, ... first."""
    classes, first, codes = np.unique(y, return_index=True, return_inverse=True)
    rest = np.setdiff1d(np.arange(len(y)), first)
    return classes, codes.astype(np.float64), np.concatenate([first, rest])


def _as_double_csr(X: Matrix) -> sp.csr_matrix:
    return sp.csr_matrix(X, dtype=np.float64)


ADAPTERS: dict[str, type[Adapter]] = {
    adapter.name: adapter
    for adapter in (Dpsvm, DpsvmKeepingW, ScikitLearn, Libsvm, Intelex, Liblinear)
}
