"""Frank-Wolfe: sets, samplings, curvature and convergence, against other solvers and theory."""

from __future__ import annotations

import re
from itertools import combinations, product
from typing import Any

import clarabel
import numpy as np
import pytest
from frank_wolfe_problems import make_lasso, make_quadratic
from scipy import sparse
from scipy.optimize import linprog, lsq_linear
from scipy.stats import chisquare
from sklearn.linear_model import Lasso
from statistical import DRAWS, LEVEL

from dpsvm.frank_wolfe import (
    BlockCoordinateFrankWolfe,
    Box,
    Distributed,
    FrankWolfe,
    Function,
    Independent,
    L1Ball,
    L2Ball,
    LeastSquares,
    ParallelStep,
    Product,
    Serial,
    SerialStep,
    Simplex,
    TauNice,
    Theorem1,
    UserSampling,
    by_importance,
    curvature_bounds,
    elementary,
    enumerated_curvature,
    expected_curvature,
    minimize,
    product_of_balls,
    uniform_serial,
)

# Sets

SETS = [
    L1Ball(4, 1.5),
    Simplex(4, 2.0),
    L2Ball(3, 0.5),
    Box([-1.0, 0.0, 2.0], [1.0, 3.0, 2.5]),
    Product([L1Ball(2, 1.0), L2Ball(3, 2.0), Simplex(2)]),
    product_of_balls([2, 3], [0.5, 2.0]),
]


def minimize_blocks(f: Any, domain: Any, sampling: Any, **settings: Any) -> Any:
    run = {name: settings.pop(name) for name in ("x0", "callback") if name in settings}
    solver = BlockCoordinateFrankWolfe(domain=domain, sampling=sampling, **settings)
    return solver.minimize(f, **run)


@pytest.mark.parametrize("domain", SETS, ids=lambda one: type(one).__name__)
def test_an_oracle_finds_a_point_of_its_set_that_no_other_beats(domain: Any) -> None:
    rng = np.random.default_rng(0)
    start = domain.start()
    assert domain.contains(start)
    points = [start]
    for _ in range(50):
        g = rng.standard_normal(domain.dimension)
        s = domain.lmo(g)
        assert domain.contains(s)
        assert not domain.contains(s - 1e-3 * g)
        parts = [domain.block_lmo(i, g[b]) for i, b in enumerate(domain.blocks)]
        assert np.array_equal(s, np.concatenate(parts))
        assert all(g @ s <= g @ other + 1e-12 for other in points)
        points.append(s)
    assert domain.contains(domain.lmo(np.zeros(domain.dimension)))


def test_the_oracle_of_the_l1_ball_is_that_of_a_linear_program() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        g = rng.standard_normal(5)
        found = linprog(np.r_[g, -g], A_ub=np.ones((1, 10)), b_ub=[2.0], bounds=(0, None))
        assert found.fun == pytest.approx(g @ L1Ball(5, 2.0).lmo(g))


@pytest.mark.parametrize("domain", SETS, ids=lambda one: type(one).__name__)
def test_curvatures_of_blocks_bound_all_differences_and_are_reached_at_vertices(
    domain: Any,
) -> None:
    rng = np.random.default_rng(2)
    for i, b in enumerate(domain.blocks):
        size = b.stop - b.start
        root = rng.standard_normal((size, size))
        H = root.T @ root
        found = domain.curvature(i, H)
        known = domain.differences(i)
        if known is not None:
            assert found == pytest.approx(np.max(np.einsum("ij,jk,ik->i", known, H, known)))
        for _ in range(100):
            g, h = rng.standard_normal((2, size))
            v = domain.block_lmo(i, g) - domain.block_lmo(i, h)
            assert v @ H @ v <= found * (1 + 1e-12)
            assert np.linalg.norm(v) <= domain.diameters()[i] * (1 + 1e-12)


# Samplings

HALVES = UserSampling(
    lambda rng: [0, 1] if rng.random() < 0.5 else [2, 3],
    [0.5] * 4,
    np.kron(np.eye(2), np.full((2, 2), 0.5)),
)
SAMPLINGS = [
    elementary(4),
    uniform_serial(4),
    Serial([0.1, 0.2, 0.3, 0.4]),
    TauNice(4, 2),
    Distributed([2, 2], 1),
    Distributed([1, 3], 1),
    Independent([0.1, 0.5, 0.9, 1.0]),
    HALVES,
]


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=lambda one: type(one).__name__)
def test_blocks_and_pairs_are_drawn_with_their_probabilities(sampling: Any) -> None:
    rng = np.random.default_rng(0)
    b = len(sampling.marginals)
    both, draws = np.zeros((b, b)), DRAWS // 10
    for _ in range(draws):
        S = sampling.draw(rng)
        assert np.all(np.diff(S) > 0)
        both[np.ix_(S, S)] += 1
    P = sampling.pairs()
    assert np.allclose(np.diag(P), sampling.marginals)
    assert np.min(np.linalg.eigvalsh(P)) >= -1e-12
    for i, j in product(range(b), repeat=2):
        if P[i, j] in (0.0, 1.0):
            assert both[i, j] == P[i, j] * draws
        else:
            observed = [both[i, j], draws - both[i, j]]
            level = chisquare(observed, [P[i, j] * draws, (1 - P[i, j]) * draws]).pvalue
            assert level > LEVEL / b**2


def test_tau_nice_sets_are_all_alike() -> None:
    rng = np.random.default_rng(1)
    sets = {S: 0 for S in combinations(range(5), 2)}
    for _ in range(DRAWS // 4):
        sets[tuple(TauNice(5, 2).draw(rng).tolist())] += 1
    assert chisquare(list(sets.values())).pvalue > LEVEL


def test_the_marginal_of_a_distributed_sampling_is_not_its_square() -> None:
    # K tau / d = 1/2 for 2 parties of 4 blocks with tau = 2; a table that squares it says 1/4.
    sampling, rng = Distributed([4, 4], 2), np.random.default_rng(0)
    share = np.mean([0 in sampling.draw(rng) for _ in range(2000)])
    assert sampling.marginals[0] == 0.5
    assert abs(share - 0.5) < 0.07
    assert chisquare([2000 * share, 2000 * (1 - share)], [500, 1500]).pvalue < LEVEL


def test_importance_is_in_proportion_up_to_one() -> None:
    sampling = by_importance([1.0, 2.0, 3.0, 100.0], 2.0)
    assert sampling.marginals == pytest.approx([1 / 6, 1 / 3, 1 / 2, 1.0])
    assert sampling.marginals.sum() == pytest.approx(2.0)
    assert by_importance([1.0, 5.0], 2).marginals == pytest.approx([1.0, 1.0])


# Curvature


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    "domain",
    [Box(-np.ones(4), [1.0, 2.0, 0.0, 1.0]), product_of_balls([1, 2, 1, 2], [1.0, 0.5, 2.0, 1.0])],
    ids=["box", "balls"],
)
def test_the_curvature_by_enumeration_is_that_of_its_definition_and_below_the_bounds(
    domain: Any, sampling: Any
) -> None:
    rng = np.random.default_rng(3)
    A = rng.standard_normal((9, domain.dimension))
    f = LeastSquares(A, rng.standard_normal(9))
    exact = enumerated_curvature(f.hessian(), domain, sampling)
    for name, bound in curvature_bounds(f.hessian(), domain, sampling).items():
        assert bound >= exact * (1 - 1e-12), name
    x, s = domain.lmo(rng.standard_normal((2, domain.dimension))[0]), domain.start()
    g, total, draws = 0.7, 0.0, 400
    for _ in range(draws):
        y = x.copy()
        for i in sampling.draw(rng):
            b = domain.blocks[i]
            y[b] += g * (s[b] - x[b])
        total += 2 / g**2 * (f.value(y) - f.value(x) - (y - x) @ f.gradient(x))
    block = np.repeat(range(4), [b.stop - b.start for b in domain.blocks])
    v = s - x
    mean = v @ (f.hessian() * sampling.pairs()[np.ix_(block, block)]) @ v
    assert total / draws == pytest.approx(mean, rel=0.25)
    assert mean <= exact * (1 + 1e-12)


def test_a_factor_on_part_of_the_bracket_would_make_the_curvature_infinite() -> None:
    """Printed, 2/g^2 multiplies f(x + g (s - x)_S) - f(x) alone."""
    f, x, s = LeastSquares(np.eye(2), [1.0, 1.0]), np.array([1.0, 0.0]), np.array([0.0, 1.0])
    whole, part = [], []
    for g in (1.0, 1e-2, 1e-4):
        rise, tangent = f.value(x + g * (s - x)) - f.value(x), g * float((s - x) @ f.gradient(x))
        whole.append(2 / g**2 * (rise - tangent))
        part.append(2 / g**2 * rise - tangent)
    exact = enumerated_curvature(f.hessian(), Simplex(2), elementary(1))
    assert whole == pytest.approx([exact] * 3)
    assert abs(part[2]) > 50 * abs(part[1]) > 50 * abs(part[0])


def test_where_there_is_too_much_to_enumerate_a_bound_is_taken() -> None:
    H = make_quadratic(d=30).hessian()
    box = Box(np.zeros(30), np.ones(30))
    assert enumerated_curvature(H, box, TauNice(30, 3)) is None
    assert expected_curvature(H, box, TauNice(30, 3)) == min(
        curvature_bounds(H, box, TauNice(30, 3)).values()
    )
    two, unknown = product_of_balls([10, 20], 1.0, "l2"), UserSampling(lambda rng: [0], [1.0])
    assert enumerated_curvature(H, two, elementary(2)) is None
    assert list(curvature_bounds(H, L2Ball(30), unknown)) == ["whole"]


def test_of_a_single_block_the_curvature_is_known_without_enumeration() -> None:
    H = make_quadratic(d=30).hessian()
    for domain, p in ((L1Ball(30, 2.0), 1.0), (Simplex(30), 0.5), (L2Ball(30), 1.0)):
        exact = enumerated_curvature(H, domain, Independent([p]))
        assert exact == pytest.approx(p * domain.curvature(0, H))
        known = domain.differences(0)
        if known is not None:
            assert exact == pytest.approx(p * np.max(np.einsum("ij,jk,ik->i", known, H, known)))
    large = np.eye(2000)  # whose (4000)^2 differences would fill no memory
    assert enumerated_curvature(large, L1Ball(2000), elementary(1)) == 4.0
    assert enumerated_curvature(large, product_of_balls([1000] * 2, 1.0), elementary(2)) is None


# Theorem 1

FIVE = {
    "elementary": elementary(8),
    "uniform serial": uniform_serial(8),
    "tau-nice": TauNice(8, 3),
    "distributed": Distributed([4, 4], 2),
    "independent": Independent(np.linspace(0.2, 0.9, 8)),
}


@pytest.mark.parametrize("name", FIVE)
def test_the_bound_of_theorem_1_holds(name: str) -> None:
    f, box = make_quadratic(), Box(np.zeros(8), np.ones(8))
    best = lsq_linear(f.matrix, f.target, (0.0, 1.0), method="bvls", tol=1e-14)
    least = f.value(best.x)
    curves = []
    runs = 1 if name == "elementary" else 15
    for seed in range(runs):
        solver = BlockCoordinateFrankWolfe(
            domain=box,
            sampling=FIVE[name],
            max_iter=300,
            check_every=0,
            hessian=f.hessian(),
            random_state=seed,
        )
        found = solver.minimize(f)
        curves.append(found.history["value"] - least)
    bounds = found.history["bound"]
    assert np.all(np.mean(curves, axis=0) <= bounds)
    assert np.mean(curves, axis=0)[-1] <= 0.2 * bounds[-1]
    exact = Theorem1(f.value(box.start()) - least, expected_curvature(f.hessian(), box, FIVE[name]))
    assert exact(0) <= 2 * bounds[0]


def test_an_inexact_oracle_stays_within_the_bound_for_its_inexactness() -> None:
    f, box, sampling, rho = make_quadratic(1), Box(np.zeros(8), np.ones(8)), TauNice(8, 2), 1.0
    curvature = expected_curvature(f.hessian(), box, sampling)

    def oracle(block, gradient, t):
        # The best point of the block, spoilt by rho g_t C / 2 shared among the blocks drawn.
        s = box.block_lmo(block, gradient)
        room = rho * 2.0 / (0.25 * t + 2.0) * curvature / 2.0 / 2.0
        size = float(np.abs(gradient[0]))
        return np.clip(s + (1.0 - 2.0 * s) * min(room / size, 1.0), 0.0, 1.0)

    least = f.value(lsq_linear(f.matrix, f.target, (0.0, 1.0), tol=1e-14).x)
    settings = {"domain": box, "sampling": sampling, "max_iter": 300, "check_every": 0}
    curves = []
    for seed in range(10):
        solver = BlockCoordinateFrankWolfe(
            **settings, oracle=oracle, rho=rho, hessian=f.hessian(), random_state=seed
        )
        found = solver.minimize(f)
        curves.append(found.history["value"] - least)
    assert np.all(np.mean(curves, axis=0) <= found.history["bound"])


# Equal special cases, and other solvers


def recurrence(A, y, eta, steps):
    """Frank-Wolfe on the lasso, step 2/(t+2), written out anew: what copt calls sublinear."""
    n, d = A.shape
    x, points = np.zeros(d), []
    for t in range(steps):
        points.append(x)
        g = A.T @ (A @ x - y) / n
        s = np.zeros(d)
        i = np.argmax(np.abs(g))
        s[i] = -eta * np.sign(g[i])
        x = x + 2.0 / (t + 2.0) * (s - x)
    return np.array(points)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_kept_gradients_give_the_iterates_of_those_computed_anew(kind: Any) -> None:
    A, y = make_lasso(n=200, d=30)
    points = []
    f = LeastSquares(kind(A), y)
    found = minimize(
        f, L1Ball(30, 0.8), max_iter=300, callback=lambda r, x: points.append(x.copy())
    )
    expected = recurrence(A, y, 0.8, 301)
    assert np.max(np.abs(np.array(points) - expected)) < 1e-12
    assert found.value == pytest.approx(f.value(found.x), rel=1e-12)
    assert np.all(np.abs(points).sum(axis=1) <= 0.8 * (1 + 1e-12))
    plain = minimize(Function(f.value, f.gradient), L1Ball(30, 0.8), max_iter=300)
    assert np.max(np.abs(plain.x - found.x)) < 1e-12


def test_where_there_is_no_room_gram_columns_are_computed_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    A, y = make_lasso(n=200, d=30)
    kept = minimize(LeastSquares(A, y), L1Ball(30, 0.8), max_iter=100)
    monkeypatch.setattr("dpsvm.frank_wolfe.objectives.MOST_KEPT", 2 * 30)
    point = LeastSquares(A, y).track(np.zeros(30))
    ball = L1Ball(30, 0.8)
    for t in range(100):
        point.toward(ball.atom(point.gradient()), 2.0 / (t + 2.0))
    assert len(point._gram) <= 2
    assert np.array_equal(point.x, kept.x)


@pytest.mark.filterwarnings("ignore:scipy.misc is deprecated:DeprecationWarning")
def test_copt_takes_the_same_steps() -> None:
    copt = pytest.importorskip("copt")
    A, y = make_lasso(n=50, d=10)
    f, points = LeastSquares(A, y), []
    copt.minimize_frank_wolfe(
        lambda x: (f.value(x), f.gradient(x)),
        np.zeros(10),
        copt.constraint.L1Ball(0.7).lmo,
        jac=True,
        step="sublinear",
        max_iter=50,
        tol=0,
        callback=lambda state: points.append(state["x"].copy()),
    )
    for run in (
        lambda **settings: minimize(f, L1Ball(10, 0.7), **settings),
        lambda **settings: minimize_blocks(f, L1Ball(10, 0.7), elementary(1), **settings),
    ):
        ours = []
        run(max_iter=len(points) - 1, callback=lambda _, x, ours=ours: ours.append(x.copy()))
        assert len(points) >= 50
        assert np.max(np.abs(np.array(points) - ours)) < 1e-14


def test_all_blocks_at_once_are_frank_wolfe() -> None:
    A, y = make_lasso(n=50, d=10)
    f = LeastSquares(A, y)
    box = Box(np.full(10, -0.5), np.full(10, 0.25))
    for domain in (L1Ball(10, 0.7), product_of_balls([4, 6], [0.3, 0.5]), box):
        for step in ("diminishing", "line-search"):
            whole = FrankWolfe(domain=domain, step=step, max_iter=60).minimize(f)
            sampling = elementary(len(domain.blocks))
            blocks = minimize_blocks(f, domain, sampling, step=step, max_iter=60)
            assert np.max(np.abs(whole.x - blocks.x)) < 1e-12
            assert np.allclose(whole.history["gap"], blocks.history["gap"], atol=1e-12)


def test_one_block_at_a_time_has_the_step_of_lacoste_julien() -> None:
    f, box = make_quadratic(2), Box(np.zeros(8), np.ones(8))
    settings = {"max_iter": 100, "random_state": 3}
    ours = minimize_blocks(f, box, uniform_serial(8), **settings)
    theirs = minimize_blocks(f, box, uniform_serial(8), step=SerialStep(8), **settings)
    assert np.max(np.abs(ours.x - theirs.x)) < 1e-12
    wang = minimize_blocks(f, box, TauNice(8, 3), step=ParallelStep(8, 3), **settings)
    assert box.contains(wang.x)


def test_the_gap_bounds_how_far_a_point_is_from_the_best() -> None:
    A, y = make_lasso(1)
    f = LeastSquares(A, y)
    best = minimize(f, L1Ball(12, 0.6), step="line-search", max_iter=5000, tol=1e-9)
    for step in ("diminishing", "line-search"):
        history = minimize(f, L1Ball(12, 0.6), step=step, max_iter=300).history
        assert np.all(history["value"] - best.value <= history["gap"] + 1e-12)
    falling = np.diff(history["value"])
    assert np.all(falling <= 1e-15)


def test_the_lasso_of_scikit_learn_has_the_same_objective() -> None:
    A, y = make_lasso(2, n=80, d=15)
    other = Lasso(alpha=0.02, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(A, y)
    eta = float(np.abs(other.coef_).sum())
    f = LeastSquares(A, y)
    found = minimize(f, L1Ball(15, eta), step="line-search", max_iter=5000, tol=5e-5)
    assert found.stop_reason == "gap"
    assert 0 <= found.value - f.value(other.coef_) + 1e-12 <= found.gap + 2e-12


def test_pairwise_steps_end_at_the_lasso_of_scikit_learn_to_many_digits() -> None:
    A, y = make_lasso(2, n=80, d=15)
    other = Lasso(alpha=0.02, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(A, y)
    f, ball = LeastSquares(A, y), L1Ball(15, float(np.abs(other.coef_).sum()))
    points = []
    for run in (f, LeastSquares(sparse.csr_array(A), y), Function(f.value, f.gradient)):
        found = minimize(
            run,
            ball,
            step="pairwise",
            tol=1e-13,
            max_iter=2000,
            callback=lambda record, x: points.append(x.copy()),
        )
        assert found.stop_reason == "gap"
        assert np.max(np.abs(found.x - other.coef_)) < 1e-5
        assert np.array_equal(found.x != 0.0, other.coef_ != 0.0)
        assert np.all(np.diff(found.history["value"]) <= 1e-15)
        assert found.value == pytest.approx(f.value(found.x), rel=1e-12)
    assert all(ball.contains(x) for x in points)


def test_pairwise_steps_leave_where_they_began() -> None:
    """From any point of the set, and on a simplex, whose start is no vertex either."""
    f = make_quadratic(5)
    least = minimize(f, Simplex(8, 0.7), step="pairwise", tol=1e-12).x
    for x0 in (np.full(8, 0.7 / 8), 0.7 * np.eye(8)[3], least):
        found = minimize(f, Simplex(8, 0.7), x0, step="pairwise", tol=1e-12)
        assert np.max(np.abs(found.x - least)) < 1e-6
        assert Simplex(8, 0.7).contains(found.x)
    slow = minimize(f, Simplex(8, 0.7), step="line-search", max_iter=20_000, tol=1e-6)
    assert np.max(np.abs(slow.x - least)) < 1e-2
    with pytest.raises(ValueError, match="is for an L1Ball or a Simplex, got L2Ball"):
        minimize(f, L2Ball(8), step="pairwise")


def test_entries_that_are_stored_in_parts_are_added_up() -> None:
    A, y = make_lasso(n=50, d=6)
    parts = sparse.csr_array((np.repeat(A.ravel() / 2, 2), np.repeat(np.tile(range(6), 50), 2),
                              np.arange(0, 601, 12)), shape=A.shape)  # fmt: skip
    assert not parts.has_canonical_format
    for step in ("diminishing", "pairwise"):
        whole = minimize(LeastSquares(A, y), L1Ball(6, 0.8), step=step, max_iter=50)
        found = minimize(LeastSquares(parts, y), L1Ball(6, 0.8), step=step, max_iter=50)
        assert np.max(np.abs(found.x - whole.x)) < 1e-12
        assert found.gap == pytest.approx(whole.gap, abs=1e-12)
    assert not parts.has_canonical_format  # the caller's own table is left as it was


@pytest.mark.parametrize("step", ["line-search", "diminishing", "pairwise"])
def test_what_is_kept_does_not_drift_from_what_is_true(step: str) -> None:
    rng = np.random.default_rng(7)
    A = rng.standard_normal((30, 8)) + 1e6
    f, ball = LeastSquares(A, rng.standard_normal(30)), L1Ball(8, 0.65)
    found = minimize(f, ball, step=step, max_iter=5000)
    g = f.gradient(found.x)
    assert found.value == pytest.approx(f.value(found.x), rel=1e-6)
    assert found.gap == pytest.approx(float((found.x - ball.lmo(g)) @ g), rel=0.01, abs=1e-3)


def test_after_many_exchanges_what_is_kept_is_still_exact() -> None:
    rng = np.random.default_rng(6)
    A = rng.standard_normal((40, 60)) * 10.0 ** rng.uniform(-2, 2, 60)
    f, ball = LeastSquares(A, rng.standard_normal(40)), L1Ball(60, 5.0)
    found = minimize(f, ball, step="pairwise", max_iter=3000)
    assert found.value == pytest.approx(f.value(found.x), rel=1e-11)
    g = f.gradient(found.x)
    assert found.gap == pytest.approx(float((found.x - ball.lmo(g)) @ g), abs=1e-9)


def test_a_conic_solver_finds_the_same_over_a_product_of_balls() -> None:
    A, y = make_lasso(3, n=40, d=7)
    f, sizes, radii = LeastSquares(A, y), [3, 4], [0.2, 0.4]
    # x = a - b, a and b from 0 on, and the sums of both at most the radius, block by block.
    split = np.hstack([np.eye(7), -np.eye(7)])
    H = split.T @ f.hessian() @ split
    q = -split.T @ (A.T @ y) / 40
    sums = np.repeat(np.eye(2), sizes, axis=1)
    rows = np.vstack([-np.eye(14), np.hstack([sums, sums])])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cone = [clarabel.NonnegativeConeT(16)]
    least = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(H)), q, sparse.csc_matrix(rows), np.r_[np.zeros(14), radii],
        cone, settings,
    ).solve()  # fmt: skip
    domain = product_of_balls(sizes, radii)
    solver = BlockCoordinateFrankWolfe(
        domain=domain,
        sampling=uniform_serial(2),
        step="line-search",
        max_iter=4000,
        tol=1e-6,
        random_state=0,
    )
    found = solver.minimize(f)
    assert domain.contains(found.x)
    above = found.value - (least.obj_val + y @ y / 80)
    assert -1e-8 <= above <= min(found.gap, 2e-5)


def test_a_callback_sees_every_iteration_and_may_end_the_run() -> None:
    f, seen = make_quadratic(), []
    box = Box(np.zeros(8), np.ones(8))

    def stop(record, x):
        seen.append(record.iteration)
        return len(seen) == 5

    for sampling in (None, TauNice(8, 2)):
        if sampling is None:
            found = minimize(f, box, callback=stop)
        else:
            found = minimize_blocks(f, box, sampling, callback=stop, random_state=0, check_every=0)
        assert (found.stop_reason, found.n_iter, seen) == ("stopped", 4, [0, 1, 2, 3, 4])
        assert found.value == pytest.approx(f.value(found.x), rel=1e-14)
        assert found.gap > 0
        seen.clear()


def test_a_step_towards_a_minimum_of_any_function_is_exact() -> None:
    rng = np.random.default_rng(4)
    A = rng.standard_normal((20, 3))
    f = Function(
        lambda x: float(np.logaddexp(0, A @ x).sum()),
        lambda x: A.T @ (1 / (1 + np.exp(-(A @ x)))),
    )
    found = minimize(f, L2Ball(3, 0.3), step="line-search", max_iter=100, tol=1e-8)
    assert found.stop_reason == "gap"


# Refusals

BAD = [
    (lambda: L1Ball(3, 0.0), "radius must be a finite number above 0, got 0.0"),
    (lambda: L1Ball(3, -2), "radius must be a finite number above 0, got -2"),
    (lambda: L1Ball(3, float("nan")), "radius must be a finite number above 0, got nan"),
    (lambda: L1Ball(0, 1.0), "dimension must be an integer from 1 on, got 0"),
    (lambda: Box([0.0, 1.0], [1.0, 1.0]), "lower must be below upper, got 1 and 1 at 1"),
    (lambda: Box([0.0], [np.inf]), "upper must hold finite numbers, got inf"),
    (lambda: Product([]), "at least one set"),
    (lambda: product_of_balls([2, 3], [1.0]), "radii must be one number or 2, got 1"),
    (lambda: product_of_balls([2], 1.0, "l7"), "norm must be 'l1' or 'l2', got 'l7'"),
    (lambda: TauNice(3, 4), "tau must be an integer from 1 to 3, got 4"),
    (lambda: TauNice(3, 1.5), "tau must be an integer from 1 to 3, got 1.5"),
    (lambda: Distributed([], 1), "at least one group"),
    (lambda: Distributed([5, 2], 3), "tau must be an integer from 1 to 2, got 3"),
    (lambda: Independent([0.5, 0.0]), "probabilities must lie above 0 and at most 1, got 0.0"),
    (lambda: Independent([0.5, 1.2]), "probabilities must lie above 0 and at most 1, got 1.2"),
    (lambda: Serial([0.5, 0.4]), "must sum to 1, got 0.9"),
    (lambda: UserSampling(3, [1.0]), "draw must be callable, got 3"),
    (lambda: UserSampling(lambda rng: [0], [0.5], [[0.4]]), "marginals on the diagonal"),
    (lambda: UserSampling(lambda rng: [7], [1.0]).draw(None), "blocks from 0 to 0, got [7]"),
    (lambda: UserSampling(lambda rng: [True], [1.0]).draw(None), "numbers of blocks, got [True]"),
    (lambda: UserSampling(lambda rng: [0.9], [1.0]).draw(None), "numbers of blocks, got [0.9]"),
    (lambda: by_importance([1.0, 0.0], 1.0), "weights must be above 0, got 0"),
    (lambda: by_importance([1.0], 2.0), "at most 1, got 2.0"),
    (lambda: Theorem1(h0=-1.0, curvature=1.0), "h0 must be a finite number from 0 on, got -1.0"),
    (lambda: LeastSquares(np.eye(2), [1.0]), "target must have 2 numbers, got 1"),
    (lambda: LeastSquares(np.full((2, 1), np.nan), [1.0, 2.0]), "finite numbers"),
    (lambda: LeastSquares(np.ones(3), np.ones(3)), "rows and columns"),
]


@pytest.mark.parametrize(("make", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_what_makes_no_sense_is_refused_with_the_reason(make: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        make()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"step": 0.5}, "step must be 'diminishing', 'line-search' or a callable, got 0.5"),
        ({"step": lambda t: 2.0}, "a step must lie between 0 and 1, got 2.0 at iteration 0"),
        ({"max_iter": -1}, "max_iter must be an integer from 0 on, got -1"),
        ({"tol": -1.0}, "tol must be a finite number from 0 on, got -1.0"),
        ({"tol": None}, "tol must be a finite number from 0 on, got None"),
        ({"x0": [2.0] * 8}, "x0 must lie in the set"),
        ({"x0": [0.0]}, "x0 must have 8 numbers, got 1"),
    ],
)
def test_bad_settings_of_a_run_are_refused(settings: dict[str, Any], reason: str) -> None:
    f, box = make_quadratic(), Box(np.zeros(8), np.ones(8))
    for run in (minimize, lambda f, box, **s: minimize_blocks(f, box, TauNice(8, 2), **s)):
        with pytest.raises(ValueError, match=re.escape(reason)):
            run(f, box, **settings)


def test_settings_without_effect_or_that_do_not_fit_are_refused() -> None:
    f, box = make_quadratic(), Box(np.zeros(8), np.ones(8))
    with pytest.raises(ValueError, match="a sampling of 8 blocks is needed, got one of 3"):
        minimize_blocks(f, box, TauNice(3, 1))
    with pytest.raises(ValueError, match="no effect with check_every=0"):
        minimize_blocks(f, box, TauNice(8, 1), tol=0.1, check_every=0)
    with pytest.raises(ValueError, match="x0 must be given"):
        minimize(f, box.lmo)
    with pytest.raises(ValueError, match="the bound is for step='diminishing'"):
        FrankWolfe(domain=box, step="line-search", hessian=f.hessian()).minimize(f)
    with pytest.raises(ValueError, match="8 rows and columns"):
        FrankWolfe(domain=box, hessian=np.eye(3)).minimize(f)
    with pytest.raises(ValueError, match="rho is for the bound"):
        BlockCoordinateFrankWolfe(domain=box, sampling=TauNice(8, 1), rho=1.0).minimize(f)
    endless = Function(lambda x: 0.0, lambda x: np.full(8, np.nan))
    with pytest.raises(ValueError, match="gradient is not finite"):
        minimize(endless, box)
