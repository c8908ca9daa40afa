"""A lasso beside the models it has to be measured against.

Zero weights are always among them: a private model is easily worse than they are, and
:attr:`Comparison.verdict` says so. Every figure here is computed on the data, so that no guarantee
of the model covers it; of a private model none is made unless it is asked for.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dpsvm._arrays import Array
from dpsvm.distributed import comparison as distributed
from dpsvm.frank_wolfe.core import minimize
from dpsvm.frank_wolfe.distributed import DistributedFrankWolfe
from dpsvm.frank_wolfe.estimator import FrankWolfeLasso
from dpsvm.frank_wolfe.loop import whole_gap
from dpsvm.frank_wolfe.objectives import LeastSquares
from dpsvm.frank_wolfe.private import PrivateFrankWolfe
from dpsvm.frank_wolfe.products import product_of_balls
from dpsvm.frank_wolfe.sets import L1Ball
from dpsvm.frank_wolfe.steps import LINE_SEARCH, PAIRWISE
from dpsvm.warnings import PrivacyLeakWarning

MODEL, CENTRAL, ZERO = "this model", "all columns together", "zero weights"
PRIVATE = "private in one place"
_STEPS, _TOL = 1000, 1e-6  # of the central model: steps at most, and the gap over F(0)


@dataclass(frozen=True)
class Outcome:
    """How one model did."""

    name: str
    nonzeros: int  # weights other than 0
    objective: float | None = None  # |X w - y|^2 / (2 n); None if it was not asked for
    gap: float | None = None  # at least how far that lies above the least over the set
    test_loss: float | None = None  # the objective on held-out rows
    test_r2: float | None = None


class Comparison(distributed.Comparison[FrankWolfeLasso, Outcome]):
    """A fitted model and its baselines, of one table and the numbers of the parties' columns.

    A private model of parties stands beside one of :class:`~dpsvm.frank_wolfe.PrivateFrankWolfe`,
    at the same epsilon and delta: a release of its own, which is charged to no accountant.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> found = compare(FrankWolfeLasso(radius=2.0, rounds=20), X, 3.0 * X[:, 1], [2, 2])
    >>> [outcome.name for outcome in found.outcomes]
    ['this model', 'all columns together', 'zero weights']
    >>> round(found.share("this model"), 3)
    0.111
    >>> found.verdict
    'the model beats zero weights'
    """

    def share(self, name: str) -> float | None:
        """An objective over that of zero weights; None where it was not asked for."""
        objective = self[name].objective
        if objective is None:
            return None
        zero = self[ZERO].objective
        return objective / zero if zero else math.nan

    @property
    def verdict(self) -> str | None:
        """Whether the model is of any use, by the test loss if there is one."""
        if not self.measured:
            return None
        if self.beats(MODEL, ZERO, "objective"):
            return f"the model beats {ZERO}"
        reason = ": n times epsilon is too small" if self.model.epsilon is not None else ""
        return f"the model does NOT beat {ZERO}{reason}"

    @staticmethod
    def _outcomes(model: Any, data: Any, test: Any, measured: bool, more: bool) -> list[Outcome]:
        task, (_, _, parties) = _Task(model, data, test), data
        private = model.epsilon is not None
        weights = {MODEL: model.coef_}
        if measured:
            if private and parties is not None and not task.product:
                weights[PRIVATE] = task.private()
            if private or parties is not None:
                weights[CENTRAL] = task.central()
            weights[ZERO] = np.zeros_like(model.coef_)
        return [task.outcome(name, x, measured) for name, x in weights.items()]


compare = Comparison.of


def alone(settings: Any, radius: float, table: Any, y: Any) -> float:
    """The objective of one party's columns, sent nowhere, after as many rounds with its ball."""
    solver = DistributedFrankWolfe(radius=radius, rounds=settings.rounds, step=settings.step)
    return float(solver.solve([table], y).value or 0.0)


class _Task:
    """The problem of a fitted model, in the open."""

    def __init__(self, model: FrankWolfeLasso, data: Any, test: tuple[Any, Any] | None) -> None:
        X, y, parties = data
        self.model, self.test = model, test
        self.f = LeastSquares(X, y)
        self.product = model.problem == "product"
        sizes = [self.f.n_features] if parties is None or not self.product else list(parties)
        self.domain = product_of_balls(sizes, model.radius)

    def central(self) -> Array:
        """The minimiser over the same set, up to a gap that its outcome tells."""
        tol = _TOL * self.f.value(self.domain.start())
        if self.product:
            return minimize(self.f, self.domain, step=LINE_SEARCH, max_iter=_STEPS, tol=tol).x
        ball = L1Ball(self.f.n_features, self.model.radius)
        return minimize(self.f, ball, step=PAIRWISE, max_iter=_STEPS, tol=tol).x

    def private(self) -> Array:
        """The model of a central private run; labels that are public bound themselves."""
        bound = self.model.label_bound or float(np.max(np.abs(self.f.target))) or 1.0
        names = ("radius", "rounds", "epsilon", "delta", "entry_bound", "random_state")
        settings: dict[str, Any] = {name: getattr(self.model, name) for name in names}
        solver = PrivateFrankWolfe(label_bound=bound, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)  # of a seed, said by the fit
            return solver.solve(self.f.matrix, self.f.target).x

    def outcome(self, name: str, weights: Array, measured: bool) -> Outcome:
        figures: dict[str, float | None] = {}
        if measured:
            figures["objective"] = self.f.value(weights)
            figures["gap"] = whole_gap(self.f.track(weights), self.domain)
        if self.test is not None:
            figures["test_loss"], figures["test_r2"] = _tested(weights, *self.test)
        return Outcome(name, int(np.count_nonzero(weights)), **figures)


def _tested(weights: Array, X: Any, y: Array) -> tuple[float, float | None]:
    """The objective on other rows, and R^2, which needs targets that differ."""
    table = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    residual, spread = table @ weights - y, y - y.mean()
    total = float(spread @ spread)
    squares = float(residual @ residual)
    return squares / (2.0 * len(y)), None if total == 0.0 else 1.0 - squares / total
