"""ADMM sharing without privacy: the oracles, the references, the guard."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import lsq_linear
from shared_data import SHARED, needs_data
from sharing_problems import (
    boyd,
    make_problem,
    members,
    solve,
    sparse_blocks,
    two_blocks,
    weights,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.svm import LinearSVC

from dpsvm.admm.sharing import Columns, Contribution, Coordinator, Terms, run
from dpsvm.admm.sharing.coordinator import DivergenceGuard
from dpsvm.admm.sharing.history import History, Recorder, assumptions, lyapunov, objective
from dpsvm.admm.sharing.regularisers import L1, L2, Ball, Box, GemanMcClure
from dpsvm.admm.sharing.steps import BallStep, RidgeStep, make_step
from dpsvm.admm.sharing.totals import Adder, Total
from dpsvm.data import load_libsvm
from dpsvm.losses import Squared, make_prediction_loss

CONVEX = ("logistic", "hinge", "huber", "smooth", "squared")


# The same iteration as others


@pytest.mark.parametrize("loss", CONVEX)
@pytest.mark.parametrize("rounds", [1, 7, 30])
def test_kappa_equal_to_the_parties_is_the_sharing_admm_of_boyd(loss: str, rounds: int) -> None:
    blocks, y = make_problem()
    _, parties = solve(blocks, y, loss, rounds=rounds, rho=0.4, lam=0.7, C=1.3)
    wanted = boyd(blocks, y, loss, lam=0.7, C=1.3, rho=3 * 0.4, rounds=rounds)
    assert np.abs(weights(parties) - wanted).max() <= 1e-13 * max(1, np.abs(wanted).max())


@pytest.mark.parametrize("relaxation", [0.7, 1.0, 1.5, 1.8])
def test_over_relaxation_is_that_of_the_two_block_method(relaxation: float) -> None:
    blocks, y = make_problem(3)
    settings = {"lam": 0.7, "C": 1.3, "relaxation": relaxation, "rounds": 25}
    _, parties = solve(blocks, y, rho=0.4, **settings)
    wanted = two_blocks(blocks, y, "logistic", rho=3 * 0.4, **settings)
    assert np.abs(weights(parties) - wanted).max() <= 1e-12


def test_one_party_is_central_admm() -> None:
    blocks, y = make_problem(1)
    D = np.hstack(blocks)
    _, parties = solve([D], y, rounds=25, rho=0.4, lam=0.7)
    loss, x, u = make_prediction_loss("logistic"), np.zeros(D.shape[1]), np.zeros(len(y))
    for _ in range(25):
        z = loss.prox(D @ x + u, y, 1 / 0.4)
        u = u + D @ x - z
        x = np.linalg.solve(0.7 * np.eye(D.shape[1]) + 0.4 * D.T @ D, 0.4 * D.T @ (z - u))
    assert np.abs(weights(parties) - x).max() <= 1e-13


def test_a_kappa_of_one_is_the_jacobi_iteration_as_printed() -> None:
    blocks, y = make_problem(2, regression=True)
    rho, lam, rounds = 0.2, 0.5, 6
    _, parties = solve(blocks, y, "squared", kappa=1.0, rho=rho, lam=lam, rounds=rounds)
    x = [np.zeros(D.shape[1]) for D in blocks]
    dual = np.zeros(len(y))
    for _ in range(rounds):
        total = sum(D @ xm for D, xm in zip(blocks, x, strict=True))
        z = (y + dual + rho * total) / (1 + rho)
        dual = dual + rho * (total - z)
        parts = [D @ xm for D, xm in zip(blocks, x, strict=True)]
        others = [sum(parts) - part for part in parts]
        x = [
            np.linalg.solve(
                lam * np.eye(D.shape[1]) + rho * D.T @ D, D.T @ (rho * (z - other) - dual)
            )
            for D, other in zip(blocks, others, strict=True)
        ]
    assert np.abs(weights(parties) - np.concatenate(x)).max() <= 1e-12


# Invariances


def test_permuting_the_parties_changes_nothing() -> None:
    blocks, y = make_problem(4)
    _, parties = solve(blocks, y, relaxation=1.8)
    _, others = solve([blocks[m] for m in (2, 0, 1)], y, relaxation=1.8)
    back = [others[place] for place in (1, 2, 0)]
    assert np.abs(weights(parties) - weights(back)).max() <= 1e-12


def test_a_party_of_zero_columns_changes_nothing_at_the_same_kappa() -> None:
    blocks, y = make_problem(5)
    _, parties = solve(blocks, y, kappa=4.0)
    _, more = solve([*blocks, np.zeros((len(y), 2))], y, kappa=4.0)
    assert np.abs(weights(parties) - weights(more[:3])).max() <= 1e-12
    assert not more[3].weights.any()


@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
@pytest.mark.parametrize("adaptive", [False, True])
def test_scaling_loss_penalty_and_rho_together_changes_nothing(
    factor: float, adaptive: bool
) -> None:
    blocks, y = make_problem(6)
    settings = {"C": 1.0, "lam": 0.5, "rho": 0.01}
    _, parties = solve(blocks, y, adaptive=adaptive, **settings)
    scaled = {name: factor * value for name, value in settings.items()}
    _, others = solve(blocks, y, adaptive=adaptive, **scaled)
    assert np.abs(weights(parties) - weights(others)).max() <= 1e-12


@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_sparse_columns_give_what_dense_ones_give(shape: str) -> None:
    blocks, y = make_problem(7, n=60 if shape == "tall" else 5, sizes=(8, 9))
    dense, thin = sparse_blocks(blocks)
    _, parties = solve(dense, y)
    _, others = solve(thin, y)
    assert np.abs(weights(parties) - weights(others)).max() <= 1e-12


def test_nothing_sparse_is_made_dense_but_a_gram_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = []
    plain = sparse.csr_array.toarray
    monkeypatch.setattr(
        sparse.csr_array, "toarray", lambda self, *a, **k: shapes.append(self.shape) or plain(self)
    )
    blocks, y = make_problem(8, n=50, sizes=(6, 4))
    _, thin = sparse_blocks(blocks)
    solve(thin, y)
    assert shapes == [(6, 6), (4, 4)]


# The solution


def _optimum(blocks, y, loss, lam):
    """The minimiser for a smooth loss, by Newton's method on all the columns."""
    D, made = np.hstack(blocks), make_prediction_loss(loss)
    x = np.zeros(D.shape[1])
    for _ in range(50):
        z = D @ x
        bend = np.ones_like(z) if loss == "squared" else made.of_margin.curvature(y * z)
        H = lam * np.eye(len(x)) + D.T @ (bend[:, None] * D)
        x = x - np.linalg.solve(H, lam * x + D.T @ made.slope(z, y))
    return x


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("kappa", [1.0, 3.0])
def test_the_optimum_is_a_fixed_point(loss: str, kappa: float) -> None:
    blocks, y = make_problem(9)
    x = _optimum(blocks, y, loss, 0.5)
    terms = Terms.of(parties=3, rho=0.3, lam=0.5, kappa=kappa)
    parties, made = members(blocks, terms), make_prediction_loss(loss)
    coordinator = Coordinator(y, made, terms, rounds=1)
    for party, part in zip(parties, np.split(x, np.cumsum([4, 3])), strict=True):
        party.sent = party.columns.times(part)
    coordinator.total = coordinator.z = np.hstack(blocks) @ x
    coordinator.dual = made.slope(coordinator.z, y)
    run(coordinator, parties)
    assert np.abs(weights(parties) - x).max() <= 1e-12
    assert np.abs(coordinator.dual - made.slope(np.hstack(blocks) @ x, y)).max() <= 1e-12


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [
        *((loss, "l2") for loss in CONVEX),
        *((loss, "l1") for loss in ("logistic", "huber", "squared")),
        *((loss, "geman-mcclure") for loss in ("logistic", "squared")),
    ],
)
def test_a_long_run_ends_at_a_kkt_point(loss: str, penalty: str) -> None:
    blocks, y = make_problem(10)
    if penalty == "geman-mcclure":
        y[::4] *= -1  # no weights separate the classes: a bounded penalty would not keep them small
    settings = {"lam": 0.3, "penalty": penalty, "relaxation": 1.8}
    coordinator, parties = solve(blocks, y, loss, rounds=2000, tol=1e-11, **settings)
    z, dual = coordinator.z, coordinator.dual
    assert np.abs(sum(party.fitted for party in parties) - z).max() <= 1e-6
    if loss == "hinge":
        near = coordinator.loss.prox(z + dual, y, 1.0)
        assert np.abs(near - z).max() <= 1e-6
    else:
        assert np.abs(dual - coordinator.loss.slope(z, y)).max() <= 1e-6
    for party in parties:
        pull, x = party.columns.transposed_times(dual), party.weights
        if penalty == "l1":
            assert np.all(np.abs(pull[x == 0]) <= 0.3 + 1e-6)
            assert np.abs(pull + 0.3 * np.sign(x))[x != 0].max(initial=0) <= 1e-6
        else:
            assert np.abs(0.3 * coordinator.terms.penalty.slope(x) + pull).max() <= 1e-6
    assert lyapunov(coordinator, parties) <= 1e-11


@pytest.mark.parametrize("lam", [0.05, 2.0])
def test_logistic_regression_is_scikit_learns(lam: float) -> None:
    blocks, y = make_problem(11)
    _, parties = solve(blocks, y, rounds=3000, tol=1e-13, lam=lam, C=1.5, relaxation=1.8)
    reference = LogisticRegression(
        C=1.5 / lam, fit_intercept=False, solver="newton-cholesky", tol=1e-12
    ).fit(np.hstack(blocks), y)
    assert np.abs(weights(parties) - reference.coef_.ravel()).max() <= 1e-9


def test_the_lasso_is_scikit_learns_by_round_one_hundred() -> None:
    rng = np.random.default_rng(12)
    D = rng.standard_normal((500, 300))
    y = D[:, ::15] @ rng.standard_normal(20) + rng.standard_normal(500)
    lam = 0.1 * np.abs(D.T @ y).max()
    blocks = np.split(D, 3, axis=1)
    _, parties = solve(blocks, y, "squared", penalty="l1", rho=0.3, rounds=100, lam=lam)
    reference = Lasso(alpha=lam / 500, fit_intercept=False, tol=1e-15, max_iter=10**6).fit(D, y)
    assert 10 < np.count_nonzero(reference.coef_) < 100
    assert np.abs(weights(parties) - reference.coef_).max() <= 1e-11
    assert np.array_equal(weights(parties) != 0, reference.coef_ != 0)


def test_the_hinge_is_that_of_liblinear_and_of_a_conic_solver() -> None:
    blocks, y = make_problem(13, n=40, sizes=(2, 2))
    D, lam = np.hstack(blocks), 0.4
    _, parties = solve(blocks, y, "hinge", rounds=20000, tol=1e-10, lam=lam, relaxation=1.8)
    margin = y[:, None] * D
    # 1/2 lam |x|^2 + sum of slacks, slacks at least 0 and at least 1 - margin: a conic program.
    n, d = D.shape
    quadratic = sparse.csc_array(np.diag([lam] * d + [0.0] * n))
    linear = np.concatenate([np.zeros(d), np.ones(n)])
    rows = sparse.csc_array(np.vstack([np.hstack([-margin, -np.eye(n)]), -np.eye(d + n)[d:]]))
    right = np.concatenate([-np.ones(n), np.zeros(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [clarabel.NonnegativeConeT(2 * n)]
    program = clarabel.DefaultSolver(quadratic, linear, rows, right, cones, settings).solve()
    optimum = np.array(program.x[:d])
    liblinear = LinearSVC(
        C=1 / lam, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6
    ).fit(D, y)
    assert np.abs(weights(parties) - optimum).max() <= 1e-6
    assert np.abs(weights(parties) - liblinear.coef_.ravel()).max() <= 1e-5


def test_a_hinge_is_within_two_thousandths_after_one_hundred_rounds() -> None:
    blocks, y = make_problem(14, n=200, sizes=(6, 5))
    _, parties = solve(blocks, y, "hinge", rounds=100, rho=0.2, relaxation=1.8)
    liblinear = LinearSVC(C=1.0, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6)
    best = liblinear.fit(np.hstack(blocks), y).coef_.ravel()
    lowest = np.maximum(0, 1 - y * (np.hstack(blocks) @ best)).sum() + best @ best / 2
    assert objective(make_prediction_loss("hinge"), y, parties) <= 1.002 * lowest


def test_a_box_is_that_of_bounded_least_squares() -> None:
    blocks, y = make_problem(15, regression=True)
    D = np.hstack(blocks)
    _, parties = solve(
        blocks, y, "squared", rounds=3000, tol=1e-13, lam=0.2, constraint=Box(-0.3, 0.8)
    )
    stacked = np.vstack([D, np.sqrt(0.2) * np.eye(D.shape[1])])
    goal = np.concatenate([y, np.zeros(D.shape[1])])
    reference = lsq_linear(stacked, goal, (-0.3, 0.8), tol=1e-14).x
    assert np.any(np.isclose(reference, 0.8)) or np.any(np.isclose(reference, -0.3))
    assert np.abs(weights(parties) - reference).max() <= 1e-8


def test_a_box_with_an_l1_penalty_or_a_ball_with_one_ends_at_a_stationary_point() -> None:
    blocks, y = make_problem(16)
    for constraint in (Box(0.0, 0.5), Ball(0.7)):
        settings = {"lam": 0.3, "penalty": "l1", "constraint": constraint}
        coordinator, parties = solve(blocks, y, rounds=4000, tol=1e-12, **settings)
        assert lyapunov(coordinator, parties) <= 1e-14


@pytest.mark.parametrize("shape", [(30, 5), (5, 30)], ids=["tall", "wide"])
@pytest.mark.parametrize("mu", [1e-3, 0.1, 5.0])
def test_the_step_in_a_ball_is_the_constrained_minimum(shape: tuple[int, ...], mu: float) -> None:
    rng = np.random.default_rng(17)
    D, target = rng.standard_normal(shape), 3 * rng.standard_normal(shape[0])
    free = RidgeStep(Columns(D)).solve(target, mu)
    wide = BallStep(Columns(D), Ball(2 * np.linalg.norm(free))).solve(target, mu)
    assert np.allclose(wide, free, atol=1e-10)
    radius = np.linalg.norm(free) / 3
    x = BallStep(Columns(D), Ball(radius)).solve(target, mu)
    pull = D.T @ (target - D @ x) - mu * x  # a positive multiple of x, at the boundary
    assert np.linalg.norm(x) == pytest.approx(radius, rel=1e-12)
    assert pull @ x == pytest.approx(np.linalg.norm(pull) * radius, rel=1e-9)


@pytest.mark.parametrize("shape", [(30, 5), (5, 30)], ids=["tall", "wide"])
def test_the_ridge_step_solves_its_normal_equations(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(18)
    D, target = rng.standard_normal(shape), rng.standard_normal(shape[0])
    step = RidgeStep(Columns(D))
    for mu in (0.5, 2.0, 0.5):
        x = step.solve(target, mu)
        assert np.abs(D.T @ (D @ x - target) + mu * x).max() <= 1e-12


@pytest.mark.parametrize("shape", [(6, 40), (40, 6)], ids=["wide", "tall"])
@pytest.mark.parametrize("constraint", [None, Box(-0.2, 0.3)], ids=["free", "box"])
@pytest.mark.parametrize("sparse_rows", [False, True], ids=["dense", "sparse"])
def test_the_l1_step_is_stationary_and_forms_no_gram_matrix_of_wide_columns(
    shape: tuple[int, ...], constraint: Box | None, sparse_rows: bool
) -> None:
    rng = np.random.default_rng(26)
    D, target = rng.standard_normal(shape), rng.standard_normal(shape[0])
    step = make_step(Columns(sparse.csr_array(D) if sparse_rows else D), L1(), constraint)
    assert (step.quadratic.gram is None) == (shape[1] > shape[0])
    x = step.solve(target, 0.5)
    pull = D.T @ (target - D @ x)
    low, high = (-np.inf, np.inf) if constraint is None else (constraint.low, constraint.high)
    inside = (x > low) & (x < high)
    assert np.all(np.abs(pull[(x == 0)]) <= 0.5 + 1e-9)
    moving = inside & (x != 0)
    assert np.abs(pull - 0.5 * np.sign(x))[moving].max(initial=0) <= 1e-9
    assert np.all(pull[x == high] >= 0.5 - 1e-9)
    assert np.all(pull[x == low] <= -0.5 + 1e-9)


@pytest.mark.parametrize(
    ("shape", "largest"), [((100, 10), 1e5), ((10, 40), 30.0)], ids=["tall", "wide"]
)
def test_columns_of_very_different_sizes_give_the_lasso_and_the_box_all_the_same(
    shape: tuple[int, ...], largest: float
) -> None:
    rng = np.random.default_rng(28)
    sizes = np.geomspace(1, largest, shape[1])
    D = rng.standard_normal(shape) * sizes
    target = D @ (rng.standard_normal(shape[1]) / sizes) + rng.standard_normal(shape[0])

    def value(x, penalty):
        return np.sum((D @ x - target) ** 2) / 2 + penalty(x)

    def l1(x):
        return 0.1 * np.abs(x).sum()

    def l2(x):
        return 0.05 * x @ x

    x = make_step(Columns(D), L1(), None).solve(target, 0.1)
    lasso = Lasso(alpha=0.1 / shape[0], fit_intercept=False, tol=1e-12, max_iter=10**6)
    assert value(x, l1) <= value(lasso.fit(D, target).coef_, l1) * (1 + 1e-9)
    box = Box(-0.3, 0.3)
    x = make_step(Columns(D), L2(), box).solve(target, 0.1)
    stacked = np.vstack([D, np.sqrt(0.1) * np.eye(shape[1])])
    goal = np.concatenate([target, np.zeros(shape[1])])
    reference = lsq_linear(stacked, goal, (box.low, box.high), tol=1e-14).x
    assert value(x, l2) <= value(reference, l2) * (1 + 1e-9)
    assert np.all((x >= box.low) & (x <= box.high))


def test_a_step_that_is_not_exact_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsvm.admm.sharing.composite._MOST_STEPS", 3)
    D = np.random.default_rng(29).standard_normal((30, 4)) * [1, 10, 100, 1000]
    step = make_step(Columns(D), L1(), Ball(0.5))
    with pytest.warns(ConvergenceWarning, match="was not exact after 3 gradient steps"):
        step.solve(np.ones(30), 0.1)


@pytest.mark.parametrize("mu", [1e-18, 1e-25])
def test_columns_that_depend_on_each_other_but_for_rounding_are_fitted_all_the_same(
    mu: float,
) -> None:
    rng = np.random.default_rng(27)
    D = rng.standard_normal((50, 3))
    D = np.hstack([D, D @ rng.standard_normal((3, 3))])
    target = rng.standard_normal(50)
    fitted = D @ RidgeStep(Columns(D)).solve(target, mu)
    nearest = D @ np.linalg.lstsq(D, target, rcond=1e-10)[0]
    assert np.abs(fitted - nearest).max() <= 1e-6


def test_columns_whose_products_overflow_are_refused() -> None:
    with pytest.raises(ValueError, match="the columns are too large"):
        RidgeStep(Columns(np.full((2, 1), 1e200)))


def test_the_non_convex_step_is_stationary_and_no_worse_than_its_start() -> None:
    rng = np.random.default_rng(19)
    D, penalty = rng.standard_normal((30, 5)), GemanMcClure()
    step = make_step(Columns(D), penalty, None)
    for _ in range(5):
        target = 3 * rng.standard_normal(30)
        x = step.solve(target, 4.0)
        assert np.abs(D.T @ (D @ x - target) + 4.0 * penalty.slope(x)).max() <= 1e-9


def test_the_non_convex_step_takes_equal_columns_and_weights_it_hardly_penalises() -> None:
    column = np.ones((6, 1))
    step = make_step(Columns(np.hstack([column, column])), GemanMcClure(), None)
    x = step.solve(np.full(6, 1e6), 1.0)
    assert x.sum() == pytest.approx(1e6)


def test_a_non_convex_loss_ends_at_a_stationary_point() -> None:
    blocks, y = make_problem(20)
    coordinator, parties = solve(blocks, y, "sigmoid", rounds=500, rho=0.2, lam=0.2)
    assert np.linalg.norm(weights(parties)) > 0.1
    assert lyapunov(coordinator, parties) <= 1e-16


@pytest.mark.parametrize("rho", [0.002, 0.02, 0.2, 2.0, 20.0])
@pytest.mark.parametrize("loss", ["logistic", "huber", "hinge"])
def test_an_adaptive_rho_comes_into_range_from_far_away(rho: float, loss: str) -> None:
    blocks, y = make_problem(21, n=300)
    history = History()
    settings = {"rho": rho, "adaptive": True, "relaxation": 1.8, "watch": Recorder(history)}
    coordinator, _ = solve(blocks, y, loss, rounds=100, **settings)
    assert coordinator.ending.reason == "rounds"
    assert history["rho"][0] == rho
    _, best = solve(blocks, y, loss, rounds=3000, tol=1e-9)
    lowest = objective(make_prediction_loss(loss), y, best)
    assert history["objective"][-1] <= lowest * (1 + 2e-3)


# Divergence


def _counterexample():
    column = np.zeros((4, 1))
    column[0] = 1.0
    y = np.array([2.0, 0.5, -1.0, 2.0])
    terms = Terms.of(parties=3, rho=2.0, lam=1e-3, kappa=1.0)
    return members([column] * 3, terms), Coordinator(y, Squared(), terms, rounds=500)


def test_the_papers_iteration_diverges_on_three_equal_columns() -> None:
    parties, coordinator = _counterexample()
    told = {line.name: line.holds for line in assumptions(parties, Squared(), 2.0)}
    assert told["party 0: column rank"]
    assert told["rho gamma > 2 L^2"]
    assert told["rho >= L"]
    broadcast, adder = coordinator.open(), Adder(3, 4)
    for _ in range(74):
        broadcast = coordinator.gather(adder.add([party.answer(broadcast) for party in parties]))
    assert objective(Squared(), coordinator.target, parties) > 1e12


def test_the_guard_stops_a_divergence_and_the_best_round_is_kept() -> None:
    parties, coordinator = _counterexample()
    history = History()
    ending = run(coordinator, parties, Recorder(history))
    assert ending.reason == "diverged"
    assert ending.round < 30
    kept = objective(Squared(), coordinator.target, parties)
    assert kept == pytest.approx(history["objective"].min())


@pytest.mark.parametrize(("last", "restored"), [(0.9, False), (0.1, True)])
def test_the_weights_of_the_last_round_stay_if_it_was_the_best(last: float, restored: bool) -> None:
    coordinator = Coordinator(np.ones(1), Squared(), Terms.of(parties=1, rho=1.0), rounds=99)
    coordinator._guard = SimpleNamespace(diverging=lambda *_: coordinator.round == 3)
    for number, prediction in enumerate((0.2, 0.5, last), start=1):
        coordinator.gather(Total(number, np.array([prediction]), moved=1.0))
    assert coordinator.ending.reason == "diverged"
    assert coordinator.ending.restore is restored


def test_the_sharing_iteration_converges_on_three_equal_columns() -> None:
    column = np.eye(4)[:, :1]
    y = np.array([1.0, 0.5, -1.0, 2.0])
    _, parties = solve([column] * 3, y, "squared", rho=2.0, lam=1e-3, rounds=5000)
    assert weights(parties) == pytest.approx(np.full(3, 1 / (3 + 1e-3)), rel=1e-6)


def test_the_guard_lets_a_converged_run_rest() -> None:
    guard = DivergenceGuard(1.0)
    assert not any(guard.diverging(10.0**-t, 1e-20 * t) for t in range(1, 15))
    assert not any(guard.diverging(5e-3, 1e-12) for _ in range(20))
    assert guard.diverging(np.nan, 1.0)


# Messages


def test_the_first_price_already_tells_of_the_labels() -> None:
    y = np.array([1.0, -1.0, 1.0])
    terms = Terms.of(parties=1, rho=0.5)
    price = Coordinator(y, make_prediction_loss("logistic"), terms, rounds=1).open().price
    assert np.array_equal(np.sign(price), -y)


def test_parties_and_coordinator_need_nothing_but_the_messages() -> None:
    blocks, y = make_problem(22)
    terms = Terms.of(parties=3, rho=0.3, relaxation=1.8)
    parties = members(blocks, terms)
    coordinator = Coordinator(y, make_prediction_loss("logistic"), terms, rounds=9)

    def wire(message):
        return pickle.loads(pickle.dumps(message))

    broadcast, adder = coordinator.open(), Adder(3, len(y))
    while coordinator.ending is None:
        answers = [wire(party.answer(wire(broadcast))) for party in parties]
        assert all(answer.prediction.shape == y.shape for answer in answers)
        broadcast = coordinator.gather(adder.add(answers))
    _, others = solve(blocks, y, rounds=9, relaxation=1.8)
    assert np.array_equal(weights(parties), weights(others))


def test_a_message_of_the_wrong_round_or_length_or_too_few_are_refused() -> None:
    adder = Adder(1, 3)
    with pytest.raises(ValueError, match="1 contributions are needed, got 0"):
        adder.add([])
    with pytest.raises(ValueError, match="round 1 is needed, party 0 sent one to round 2"):
        adder.add([Contribution(2, 0, np.zeros(3))])
    with pytest.raises(ValueError, match=r"party 0 sent \(2,\) numbers for 3 samples"):
        adder.add([Contribution(1, 0, np.zeros(2))])
    terms = Terms.of(parties=1, rho=1.0)
    coordinator = Coordinator(np.ones(3), Squared(), terms, rounds=2)
    with pytest.raises(ValueError, match="round 1 is needed, got one of round 2"):
        coordinator.gather(Total(2, np.zeros(3), moved=0.0))
    with pytest.raises(ValueError, match=r"a sum of \(2,\) numbers for 3 samples"):
        coordinator.gather(Total(1, np.zeros(2), moved=0.0))


@pytest.mark.parametrize("kappa", [1.0, 3.0, 4.5])
def test_sums_over_the_parties_tell_how_far_all_copies_moved(kappa: float) -> None:
    blocks, y = make_problem(23)
    terms = Terms.of(parties=3, rho=0.3, kappa=kappa)
    parties = members(blocks, terms)
    coordinator = Coordinator(y, make_prediction_loss("logistic"), terms, rounds=30, adaptive=True)
    broadcast, adder = coordinator.open(), Adder(3, len(y))
    copies = np.tile(coordinator.z / kappa, (3, 1))
    while coordinator.ending is None:
        answers = [party.answer(broadcast) for party in parties]
        broadcast = coordinator.gather(adder.add(answers))
        last, excess = copies, coordinator.total - coordinator.z
        copies = np.array([answer.prediction for answer in answers]) - excess / kappa
        wanted = kappa * coordinator.rho * np.linalg.norm(copies - last)
        wanted /= np.sqrt(3) * np.linalg.norm(coordinator.dual)
        assert coordinator.residuals.dual == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"rho": 0.0}, "rho must be a finite number above 0, got 0.0"),
        ({"rho": float("nan")}, "rho must be a finite number above 0, got nan"),
        ({"lam": -1.0}, "lam must be a finite number above 0, got -1.0"),
        ({"C": 0}, "C must be a finite number above 0, got 0"),
        ({"kappa": "two"}, "kappa must be a finite number above 0, got 'two'"),
        ({"kappa": np.ones(2)}, "kappa must be a finite number above 0, got array"),
        ({"relaxation": 2.0}, "relaxation must lie between 0 and 2, got 2.0"),
        ({"relaxation": 1.5, "kappa": 1.0}, "relaxation = 1.5 needs kappa = 2"),
        ({"penalty": "l0"}, "penalty must be one of 'l2', 'l1', 'geman-mcclure', got 'l0'"),
    ],
)
def test_bad_terms_are_named(setting: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Terms.of(**({"parties": 2, "rho": 1.0} | setting))


# History


def test_the_lyapunov_value_falls_to_zero_and_gives_the_rounds_to_an_accuracy() -> None:
    blocks, y = make_problem(23)
    history = History()
    solve(blocks, y, rounds=300, rho=0.1, watch=Recorder(history))
    values = history["lyapunov"]
    assert values[-1] < 1e-8 * values[0]
    first = history.rounds_to(1e-6)
    assert values[first - 1] <= 1e-6 < values[: first - 1].min()
    assert history.rounds_to(0.0) is None


def test_every_round_sends_one_number_per_sample_each_way() -> None:
    blocks, y = make_problem(24)
    history = History()
    solve(blocks, y, rounds=3, watch=Recorder(history))
    assert np.all(history["bytes_up"] == 3 * (8 * len(y) + 16))
    assert np.all(history["bytes_down"] == 3 * (8 * len(y) + 17))


# Real data


@pytest.fixture(scope="module")
def a9a():
    X, y = load_libsvm(SHARED / "data" / "a9a.xz", n_features=123)
    optimum = LogisticRegression(fit_intercept=False, solver="newton-cholesky", tol=1e-10)
    x = optimum.fit(X, y).coef_.ravel()
    lowest = np.logaddexp(0, -y * (X @ x)).sum() + x @ x / 2
    return sparse.csc_array(X), y, lowest


def _gaps(a9a, sizes, rounds):
    from dpsvm.admm import SharingADMMClassifier

    X, y, lowest = a9a
    model = SharingADMMClassifier(rounds=rounds).fit(X, y, parties=sizes)
    return model.history_["objective"] / lowest - 1


@needs_data
def test_a9a_is_within_a_thousandth_by_round_13_and_two_ten_thousandths_by_round_20(
    a9a: Any,
) -> None:
    gaps = _gaps(a9a, [66, 57], 20)
    assert gaps[12] < 1e-3
    assert gaps[19] < 2e-4


@needs_data
def test_a9a_split_among_eight_converges(a9a: Any) -> None:
    gaps = _gaps(a9a, [16] * 7 + [11], 60)
    assert gaps[19] < 5e-3
    assert gaps[59] < 1e-3


def test_a_watch_can_stop_a_run() -> None:
    blocks, y = make_problem(25)
    coordinator, _ = solve(blocks, y, watch=lambda coordinator, _: coordinator.round == 3)
    assert (coordinator.ending.round, coordinator.ending.reason) == (3, "stopped")


@pytest.mark.parametrize("loss", ["hinge", "huber"])
def test_a_run_that_is_proved_to_converge_is_never_called_diverging(loss: str) -> None:
    blocks, y = make_problem(21, n=100, sizes=(4, 4, 4))
    coordinator, parties = solve(blocks, y, loss, rounds=400, rho=5.0)
    assert coordinator.ending.reason == "rounds"
    _, best = solve(blocks, y, loss, rounds=3000, rho=0.2)
    last, low = (objective(make_prediction_loss(loss), y, found) for found in (parties, best))
    assert last <= 1.05 * low
