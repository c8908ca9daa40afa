"""The quadratic programs behind a fitted machine, evaluated in extended precision.

Kernel values are computed from the very numbers of the case, distances from differences. Nothing
here is the core's.

How far apart two answers may be is worked out in one place, ``Program.slack``. For a convex
program, a with gap g(a) = m - M, and any feasible z,

    f(a) - f(z) <= grad f(a).(a - z) <= g(a) / 2 * |a - z|_1,

since, with b midway between m and M, a_t < z_t needs t in I_up or I_low, where -y_t G_t is within
g / 2 of b on the wrong side at most. A solver that stops at tol has g(a) <= tol by the kernel
values it worked with. Those are off by ``Program.error``, so that the true gap is at most
tol + 2 noise(a), noise(a) = max over t of sum over s of error_ts |a_s|.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench.fuzz.cases import CLASSIFIERS, REGRESSORS, Case

Long = np.longdouble
FLOAT = 2.0**-24  # unit roundoffs
DOUBLE = 2.0**-53
SINGLE_RBF = 3e-6  # what single precision may cost a kernel value of rbf, where it is used at all
NEAR_BOUND = 1e-12  # of the bound: rescaled coefficients have lost their last digits


def kernel_values(params: Mapping[str, Any], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """K(x, z) in extended precision."""
    X, Z = X.astype(Long), Z.astype(Long)
    if params["kernel"] == "precomputed":
        return X
    if params["kernel"] == "rbf":
        squared = sum(np.square(x[:, None] - z) for x, z in zip(X.T, Z.T, strict=True))
        return np.exp(-Long(params["gamma"]) * squared)
    dots = X @ Z.T
    if params["kernel"] == "linear":
        return dots
    inner = Long(params["gamma"]) * dots + params["coef0"]
    return np.tanh(inner) if params["kernel"] == "sigmoid" else inner ** params["degree"]


def double_error(params: Mapping[str, Any], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """How far K(x, z) may be off in double precision: the sum of d products, what follows it."""
    if params["kernel"] == "precomputed":
        return DOUBLE * np.abs(X)
    sizes = np.abs(X) @ np.abs(Z).T
    unit = DOUBLE * (X.shape[1] + 8)
    if params["kernel"] == "linear":
        return unit * sizes
    gamma = params["gamma"]
    if params["kernel"] == "rbf":
        squared = np.square(X).sum(axis=1)[:, None] + np.square(Z).sum(axis=1)
        value = np.exp(-gamma * np.maximum(squared - 2 * (X @ Z.T), 0))
        return np.minimum(unit * (1 + 2 * gamma * (squared + sizes)) * value, 1)
    inner = gamma * sizes + abs(params["coef0"])
    if params["kernel"] == "sigmoid":
        return unit * (1 + inner)
    return unit * params["degree"] * 2 * inner ** params["degree"]


@dataclass
class Program:
    """min 1/2 c'Kc + p'a, c_s the sum of y_t a_t over the variables t of sample s; 0 <= a <= bound.

    Within each group of variables the sum of y a is given: one group, or one of each sign.
    """

    K: np.ndarray  # [samples, samples], extended
    error: np.ndarray  # [samples, samples] what the solver's kernel values may be off by
    y: np.ndarray  # [variables]
    p: np.ndarray
    bound: np.ndarray
    totals: tuple[float, ...]  # the sum of a over each group, or of y a over the one group
    near_bound: float = 0.0  # a variable so near to its bound, as a share of it, may be at it

    @property
    def samples(self) -> int:
        return len(self.K)

    @cached_property
    def groups(self) -> list[np.ndarray]:
        if len(self.totals) == 1:
            return [np.ones(len(self.y), dtype=bool)]
        return [self.y > 0, self.y < 0]

    def coefficients(self, a: np.ndarray) -> np.ndarray:
        return (self.y * a).reshape(-1, self.samples).sum(axis=0)

    def _v(self, a: np.ndarray) -> np.ndarray:
        """-y G."""
        repeats = len(self.y) // self.samples
        return -np.tile(self.K @ self.coefficients(a), repeats) - self.y * self.p

    def objective(self, a: np.ndarray) -> float:
        c = self.coefficients(a)
        return float(c @ (self.K @ c) / 2 + self.p @ a)

    def size(self, a: np.ndarray) -> float:
        """The terms of the objective, none of which cancels another."""
        c = np.abs(self.coefficients(a))
        return float(c @ (np.abs(self.K) @ c) / 2 + np.abs(self.p) @ a)

    def gaps(self, a: np.ndarray) -> tuple[float, float]:
        """m - M without, and with, the variables that cannot be told from ones at a bound."""
        v, answers = self._v(a), []
        for near in (self.near_bound, -self.near_bound):
            rises, falls = a < self.bound * (1 - near), a > self.bound * near
            up = np.where(self.y > 0, rises, falls)
            low = np.where(self.y > 0, falls, rises)
            widest = -np.inf
            for group in self.groups:
                if (up & group).any() and (low & group).any():
                    widest = max(widest, float(v[up & group].max() - v[low & group].min()))
            answers.append(widest)
        return answers[0], answers[1]

    def noise(self, a: np.ndarray, iterations: int = 0) -> float:
        """How far v may be off: by the kernel values, and by adding to it so many times."""
        c = np.abs(self.coefficients(a))
        added = DOUBLE * (iterations + 8) * float(np.max(np.abs(self.K) @ c) + np.abs(self.p).max())
        return float(np.max(self.error @ c)) + added

    def unbalanced(self, a: np.ndarray) -> float:
        """How far the sums are from those that are given."""
        if len(self.totals) == 1:
            return abs(float(self.y @ a) - self.totals[0])
        sums = [float(a[group].sum()) for group in self.groups]
        return max(abs(s - total) for s, total in zip(sums, self.totals, strict=True))

    def slack(self, a: np.ndarray, z: np.ndarray, tol: float, iterations: int) -> float:
        """How much larger than f(z) a fit to tol may leave f(a); see the top of the module."""
        apart = float(np.abs(a - z).sum())
        bent = float(np.abs(self._v(a)).max()) * (self.unbalanced(a) + self.unbalanced(z))
        rounding = 64 * DOUBLE * (self.size(a) + self.size(z))
        return (tol + 2 * self.noise(a, iterations)) / 2 * apart + 2 * bent + rounding

    def solve(self) -> np.ndarray | None:
        """The optimum by clarabel, an interior point method; None if it does not vouch for it."""
        import clarabel

        n, unit = len(self.y), float(self.bound.max())
        repeats = n // self.samples
        Q = np.tile(self.K.astype(np.float64), (repeats, repeats)) * np.outer(self.y, self.y)
        quadratic, linear = Q * unit**2, self.p * unit
        scale = max(np.abs(quadratic).max(), np.abs(linear).max()) or 1.0
        signs = np.array([self.y] if len(self.totals) == 1 else self.groups, dtype=float)
        eye = sp.eye_array(n, format="csc")
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        solution = clarabel.DefaultSolver(
            sp.csc_matrix(np.triu(quadratic / scale)),
            linear / scale,
            sp.csc_matrix(sp.vstack([sp.csc_array(signs), eye, -eye])),
            np.concatenate([np.array(self.totals) / unit, self.bound / unit, np.zeros(n)]),
            [clarabel.ZeroConeT(len(self.totals)), clarabel.NonnegativeConeT(2 * n)],
            settings,
        ).solve()
        if str(solution.status) != "Solved":
            return None
        return np.clip(np.array(solution.x) * unit, 0, self.bound)


@dataclass(frozen=True)
class Fitted:
    """What every library gives: LIBSVM's layout and signs."""

    support: np.ndarray
    dual_coef: np.ndarray  # [classes - 1, nSV]
    n_support: np.ndarray
    intercept: np.ndarray  # [pairs]


def fitted(model: Any, case: Case) -> Fitted:
    """The fitted attributes of an estimator; those of two classes are given with opposite signs."""
    coef = model.dual_coef_
    coef = coef.toarray() if sp.issparse(coef) else np.asarray(coef)
    classifier = case.machine in CLASSIFIERS
    sign = -1.0 if classifier and len(model.classes_) == 2 else 1.0
    sizes = model.n_support_ if classifier else [len(model.support_)]
    return Fitted(
        np.asarray(model.support_), sign * coef, np.asarray(sizes), sign * model.intercept_
    )


def pair_coefficients(fit: Fitted, n: int) -> list[np.ndarray]:
    """For every pair of classes, or the one problem, the coefficient of each row."""
    ends = np.cumsum(fit.n_support)
    classes = [np.arange(end - size, end) for end, size in zip(ends, fit.n_support, strict=True)]
    if len(classes) == 1:
        parts = [[(classes[0], 0)]]
    else:
        pairs = combinations(range(len(classes)), 2)
        parts = [[(classes[i], j - 1), (classes[j], i)] for i, j in pairs]
    answers = []
    for part in parts:
        c = np.zeros(n)
        for columns, line in part:
            c[fit.support[columns]] = fit.dual_coef[line, columns]
        answers.append(c)
    return answers


@dataclass
class Part:
    """One problem of a case: its program and its rows; of nu-SVC the coefficients are rescaled."""

    program: Program
    rows: np.ndarray
    rescaled: bool
    doubled: bool

    def alpha(self, c: np.ndarray) -> tuple[np.ndarray, float]:
        """The variables behind coefficients, and what they were divided by.

        nu-SVC divides by r, which no library keeps: the given sum of a tells it.
        """
        c, r = c[self.rows], 1.0
        program = self.program
        if self.doubled:
            return np.concatenate([np.maximum(c, 0), np.maximum(-c, 0)]), r
        if self.rescaled:
            total = float((c[program.y > 0]).sum())
            r = program.totals[0] / total if total else 1.0
        return program.y * c * r, r


def parts_of(case: Case, gamma: float) -> list[Part]:
    """The problems of a case, in the order of the pairs of classes."""
    params = case.params | {"gamma": gamma}
    K = kernel_values(params, case.X, case.X)
    error = FLOAT * np.abs(K).astype(np.float64) + double_error(params, case.X, case.X)
    if case.dtype == "float32" and case.kernel == "rbf":
        error = error + SINGLE_RBF
    weight = np.ones(len(K)) if case.weight is None else case.weight
    kept = np.flatnonzero(weight > 0)
    if case.machine not in CLASSIFIERS:
        return [_part(case, K, error, kept, weight, np.ones(len(K)))]
    classes, codes = np.unique(case.y, return_inverse=True)
    factor = class_factors(case, classes, codes)
    parts = []
    for i, j in combinations(range(len(classes)), 2):
        rows = np.concatenate([kept[codes[kept] == i], kept[codes[kept] == j]])
        signs = np.where(codes == i, 1.0, -1.0)
        parts.append(_part(case, K, error, rows, weight * factor[codes], signs))
    return parts


def class_factors(case: Case, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    given = case.params.get("class_weight")
    if given == "balanced":
        return len(codes) / (len(classes) * np.bincount(codes))
    return np.array([1.0 if given is None else given[label] for label in classes])


def _part(
    case: Case, K: np.ndarray, error: np.ndarray, rows: np.ndarray, weight: np.ndarray,
    y: np.ndarray,
) -> Part:  # fmt: skip
    K, error, w, y = K[np.ix_(rows, rows)], error[np.ix_(rows, rows)], weight[rows], y[rows]
    bound = w * case.params["C"] if "C" in case.params else w
    nu = case.params.get("nu", 0.0)
    totals: tuple[float, ...] = (0.0,)
    p = np.full(len(rows), -1.0 if case.machine == "SVC" else 0.0)
    if case.machine == "NuSVC":
        totals = (nu * w.sum() / 2,) * 2
    elif case.machine == "OneClassSVM":
        totals = (nu * w.sum(),)
    elif case.machine in REGRESSORS:
        target = case.y[rows]
        epsilon = case.params.get("epsilon", 0.0)
        p = np.concatenate([epsilon - target, epsilon + target])
        y = np.repeat([1.0, -1.0], len(rows))
        bound = np.tile(bound, 2)
        if case.machine == "NuSVR":
            totals = (case.params["C"] * nu * w.sum() / 2,) * 2
    rescaled = case.machine == "NuSVC"
    program = Program(K, error, y, p, bound, totals, NEAR_BOUND if rescaled else 0.0)
    return Part(program, rows, rescaled, case.machine in REGRESSORS)
