"""The solvers behind the private methods: what they certify is true, or nothing is returned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from dpsvm.losses import Hinge, HuberHinge, Logistic, SmoothHinge
from dpsvm.privacy.dual import HingeProblem, ProximalHinge, solve_hinge
from dpsvm.privacy.minimiser import CertificateError, Objective, minimise, newton

LOSSES = [HuberHinge(0.5), HuberHinge(1e-3), SmoothHinge(0.5), Logistic()]


def problem(n=200, d=8, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1)[:, None] * (1 + 1e-9)
    y = np.where(X[:, 0] + 0.5 * random.normal(size=n) > 0, 1.0, -1.0)
    return X, y, random.uniform(0.2, 1.0, n), random


def value(objective, w):
    losses = objective.weights @ objective.loss.value(objective.margins(w))
    return losses + objective.lam / 2 * (w @ w) + objective.linear @ w


def hinge_primal(X, y, weights, C, w):
    return 0.5 * w @ w + C * weights @ np.maximum(0, 1 - y * (X @ w))


class TestNewton:
    @pytest.mark.parametrize("loss", LOSSES, ids=repr)
    @pytest.mark.parametrize("lam", [1e-4, 1.0, 1e4])
    def test_the_certified_gradient_norm_is_true(self, loss: Any, lam: float) -> None:
        X, y, weights, random = problem()
        objective = Objective(X, y, weights, loss, lam, 5 * random.normal(size=8))
        tau = 1e-9 * max(lam, 1)
        w = minimise(objective, tau)
        exact = X.astype(np.longdouble)
        at = y * (exact @ w.astype(np.longdouble))
        gradient = exact.T @ (weights * y * loss.slope(at.astype(float))) + lam * w
        assert np.linalg.norm((gradient + objective.linear).astype(float)) <= tau

    @pytest.mark.parametrize("loss", LOSSES, ids=repr)
    def test_it_is_the_minimum_another_solver_finds(self, loss: Any) -> None:
        X, y, weights, random = problem()
        objective = Objective(X, y, weights, loss, 0.5, random.normal(size=8))
        ours = minimise(objective, 1e-9)
        theirs = minimize(
            lambda w: value(objective, w),
            ours * 0,
            jac=objective.gradient,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000},
        )
        assert value(objective, ours) <= theirs.fun + 1e-9
        assert np.linalg.norm(ours - theirs.x) < 1e-4

    def test_it_is_liblinears_logistic_minimum(self) -> None:
        X, y, weights, _ = problem()
        ours = minimise(Objective(X, y, weights, Logistic(), 0.5, np.zeros(8)), 1e-9)
        theirs = LogisticRegression(C=2.0, fit_intercept=False, solver="liblinear", tol=1e-10)
        theirs.fit(X, y, sample_weight=weights)
        assert np.allclose(ours, theirs.coef_[0], atol=1e-6)

    def test_a_wide_corner_is_liblinears_squared_hinge(self) -> None:
        # Nothing lies below the corner, so that the huber hinge is the square over 2 h.
        X, y, weights, _ = problem()
        ours = minimise(Objective(X, y, weights, HuberHinge(100.0), 0.01, np.zeros(8)), 1e-11)
        theirs = LinearSVC(loss="squared_hinge", C=0.5, fit_intercept=False, tol=1e-10)
        theirs.fit(X, y, sample_weight=weights)
        assert np.allclose(ours, theirs.coef_[0], atol=1e-6)

    @pytest.mark.parametrize(
        "change",
        {
            "one row": lambda X: X[:1],
            "no row": lambda X: X[:0],
            "repeated rows": lambda X: np.repeat(X[:3], 60, axis=0),
            "rows of many sizes": lambda X: X * np.logspace(-9, 0, len(X))[:, None],
            "columns of many sizes": lambda X: X * np.logspace(-9, 0, 8),
            "more weights than rows": lambda X: np.hstack([X[:5]] * 9) / 3.1,
            "zeros": np.zeros_like,
        }.items(),
        ids=lambda item: item[0],
    )
    @pytest.mark.parametrize("lam", [1e-2, 1e3])
    @pytest.mark.parametrize("loss", [*LOSSES, HuberHinge(1e-5)], ids=repr)
    def test_odd_data_are_certified_to_the_default_tolerance(
        self, change: tuple[Any, ...], lam: float, loss: Any
    ) -> None:
        X, y, weights, _ = problem()
        X = change[1](X)
        n, d = X.shape
        linear = np.full(d, 0.01)
        for rows in (X, sp.csr_array(X)):
            objective = Objective(rows, y[:n], weights[:n], loss, lam, linear)
            assert np.linalg.norm(objective.gradient(minimise(objective, 1e-6))) <= 1e-6

    @pytest.mark.parametrize("loss", LOSSES, ids=repr)
    def test_many_rows_are_certified_to_the_default_tolerance(self, loss: Any) -> None:
        random = np.random.default_rng(0)
        X = sp.random_array((50_000, 120), density=0.1, format="csr", random_state=random)
        X = X / (np.sqrt(X.multiply(X).sum(axis=1).max()) * (1 + 1e-9))
        y = np.sign(X @ random.normal(size=120) + 0.3 * random.normal(size=50_000))
        objective = Objective(X, y, np.ones(50_000), loss, 1.0, np.zeros(120))
        assert objective.certificate(minimise(objective, 1e-6)) <= 1e-6

    def test_a_long_first_step_is_shortened(self) -> None:
        # At 0 no row has curvature, so the step is the gradient over a tiny lam, 1e8 too long.
        X, y, weights, _ = problem()
        objective = Objective(X, y, weights, HuberHinge(0.01), 1e-7, np.zeros(8))
        norms = [norm for _, norm in newton(objective, np.zeros(8))]
        assert norms[-1] < 1e-7 < 1 < norms[0]

    def test_sparse_rows_give_the_dense_result(self) -> None:
        X, y, weights, _ = problem()
        X[np.abs(X) < 0.3] = 0
        dense = Objective(X, y, weights, Logistic(), 0.1, np.zeros(8))
        sparse = Objective(sp.csr_array(X), y, weights, Logistic(), 0.1, np.zeros(8))
        assert np.allclose(minimise(dense, 1e-10), minimise(sparse, 1e-10), atol=1e-8)

    @pytest.mark.parametrize("loss", [HuberHinge(0.5), Logistic()], ids=repr)
    def test_many_weights_are_solved_without_the_hessian(self, loss: Any) -> None:
        X, y, weights, random = problem(n=300, d=1600)
        objective = Objective(X, y, weights, loss, 2.0, random.normal(size=1600))
        w = minimise(objective, 1e-7)
        assert np.linalg.norm(objective.gradient(w)) <= 1e-7

    def test_what_cannot_be_certified_is_not_returned(self) -> None:
        X, y, weights, _ = problem()
        objective = Objective(X, y, weights, Logistic(), 0.5, np.zeros(8))
        with pytest.raises(CertificateError, match="nothing is released"):
            minimise(objective, 1e-17)

    @pytest.mark.parametrize("loss", [Hinge(), *LOSSES], ids=repr)
    def test_the_certificate_is_above_the_norm_it_bounds(self, loss: Any) -> None:
        X, y, weights, random = problem()
        for size in (1e-3, 1.0, 1e3):
            objective = Objective(X, y, weights, loss, 0.5, np.zeros(8))
            w = size * random.normal(size=8)
            norm = np.linalg.norm(objective.gradient(w))
            assert norm <= objective.certificate(w) <= norm * (1 + 1e-9) + 1e-9

    def test_the_certificate_counts_a_margin_that_may_lie_on_either_side_of_a_corner(self) -> None:
        # 0.1 * 3 + 0.7 is 1 but for rounding: the slope of the hinge there is 0 or -1.
        X, w = np.array([[0.1, 0.1, 0.1, 0.7]]), np.ones(4)
        objective = Objective(X, np.ones(1), np.ones(1), Hinge(), 1.0, -w)
        assert objective.certificate(w) >= 1.0


class TestDual:
    def test_the_proximal_hinge_is_the_maximum_it_says(self) -> None:
        random = np.random.default_rng(0)
        margin, last = random.normal(1.0, 0.5, 200), random.uniform(size=200)
        loss = ProximalHinge(0.3, last)
        r = np.linspace(0, 1, 100_001)[:, None]
        wanted = [
            np.max(r * (1 - m) - 0.15 * (r - q) ** 2) for m, q in zip(margin, last, strict=True)
        ]
        assert np.allclose(loss.value(margin), wanted, atol=1e-9)
        step = 1e-6
        difference = (loss.value(margin + step) - loss.value(margin - step)) / (2 * step)
        assert np.allclose(loss.slope(margin), difference, atol=1e-5)
        assert set(loss.curvature(margin)) == {0.0, loss.smoothness}

    @pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 30.0])
    @pytest.mark.parametrize("shape", [(200, 8), (30, 60), (1, 1)])
    def test_the_certified_gap_is_true(self, C: float, shape: tuple[int, ...]) -> None:
        X, y, weights, _ = problem(*shape)
        gap = (0.01 * C) ** 2 / 2
        w = solve_hinge(X, y, weights, C, gap)
        best = solve_hinge(X, y, weights, C, gap * 1e-4)
        over = hinge_primal(X, y, weights, C, w) - hinge_primal(X, y, weights, C, best)
        assert over <= gap
        assert np.linalg.norm(w - best) <= np.sqrt(2 * gap) + np.sqrt(2e-4 * gap)

    def test_it_is_liblinears_minimum(self) -> None:
        X, y, _, _ = problem()
        w = solve_hinge(X, y, np.ones(200), 2.0, 1e-8)
        theirs = LinearSVC(loss="hinge", C=2.0, fit_intercept=False, tol=1e-8, max_iter=10**6).fit(
            X, y
        )
        assert np.allclose(w, theirs.coef_[0], atol=1e-3)
        ours, liblinear = (hinge_primal(X, y, np.ones(200), 2.0, v) for v in (w, theirs.coef_[0]))
        assert ours <= liblinear + 1e-8

    @pytest.mark.parametrize("C", [1e-4, 1.0, 100.0])
    def test_many_rows_are_solved_to_the_gap_of_an_output_release(self, C: float) -> None:
        random = np.random.default_rng(0)
        X = sp.random_array((50_000, 120), density=0.1, format="csr", random_state=random)
        X = X / (np.sqrt(X.multiply(X).sum(axis=1).max()) * (1 + 1e-9))
        y = np.sign(X @ random.normal(size=120) + 0.3 * random.normal(size=50_000))
        assert np.isfinite(solve_hinge(X, y, np.ones(50_000), C, (0.01 * C) ** 2 / 2)).all()

    def test_many_weights_are_solved(self) -> None:
        X, y, weights, _ = problem(n=200, d=1600)
        w = solve_hinge(X, y, weights, 10.0, (0.01 * 10) ** 2 / 2)
        best = solve_hinge(X, y, weights, 10.0, (1e-4 * 10) ** 2 / 2)
        assert np.linalg.norm(w - best) <= 0.1 + 1e-3

    def test_it_is_the_limit_of_rounded_hinges(self) -> None:
        X, y, weights, _ = problem()
        rounded = Objective(X, y, weights, HuberHinge(1e-5), 1.0, np.zeros(8))
        w = solve_hinge(X, y, weights, 1.0, 1e-9)
        assert np.allclose(w, minimise(rounded, 1e-6), atol=1e-4)

    def test_zero_rows_repeated_rows_and_one_class_are_solved(self) -> None:
        X, _, _, _ = problem()
        X = np.vstack([X, X, np.zeros((5, 8))])
        y = np.ones(len(X))
        w = solve_hinge(X, y, np.ones(len(X)), 1.0, 1e-6)
        assert np.isfinite(w).all()
        sparse = solve_hinge(sp.csr_array(X), y, np.ones(len(X)), 1.0, 1e-6)
        assert np.allclose(w, sparse, atol=2 * np.sqrt(2e-6))

    def test_a_gap_out_of_reach_returns_nothing(self) -> None:
        X, y, weights, _ = problem()
        with pytest.raises(CertificateError, match="nothing is released"):
            solve_hinge(X, y, weights, 1.0, 1e-40)

    def test_the_gap_of_any_dual_point_bounds_the_distance_to_the_minimum(self) -> None:
        X, y, weights, random = problem()
        hinge = HingeProblem(X, y, weights)
        best = solve_hinge(X, y, weights, 1.0, 1e-9)
        for _ in range(20):
            dual = np.clip(random.uniform(-0.5, 1.5, 200), 0, 1) * weights
            w = hinge.weights(dual)
            over = hinge_primal(X, y, weights, 1.0, w) - hinge_primal(X, y, weights, 1.0, best)
            assert over <= hinge.gap(w, dual)
            exact = hinge_primal(X, y, weights, 1.0, w) - (dual.sum() - 0.5 * w @ w)
            assert hinge.gap(w, dual) == pytest.approx(exact, rel=1e-9)

    def test_the_hinge_loss_is_what_is_minimised(self) -> None:
        X, y, weights, _ = problem(50, 3)
        w = solve_hinge(X, y, weights, 0.7, 1e-9)
        at = y * (X @ w)
        assert hinge_primal(X, y, weights, 0.7, w) == pytest.approx(
            0.5 * w @ w + 0.7 * weights @ Hinge().value(at)
        )
