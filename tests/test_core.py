"""The binding: conversions, limits, interruption, randomness."""

from __future__ import annotations

import _thread
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse, stats
from statistical import DRAWS, LEVEL

from dpsvm import _core


def two_clouds(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(np.float64)


def fit(X: object, y: np.ndarray | None, **options: object) -> _core.Solution:
    return _core.train(X, y, **{"machine": "c-svc", "kernel": "rbf", **options})


def dense_coefficients(solution: _core.Solution, n: int) -> np.ndarray:
    coefficients = np.zeros(n)
    coefficients[solution.support] = solution.dual_coef[0]
    return coefficients


@pytest.mark.parametrize("machine", ["c-svc", "one-class", "epsilon-svr"])
def test_the_optimum_is_that_of_an_independent_qp_solver(machine: str) -> None:
    X, y = two_clouds(24)
    y = X[:, 1].copy() if machine == "epsilon-svr" else y
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    if machine == "epsilon-svr":
        sign = np.repeat([1.0, -1.0], len(y))
        K, p, total = np.tile(K, (2, 2)), 0.1 - sign * np.tile(y, 2), 0.0
    elif machine == "c-svc":
        sign, p, total = np.where(y == 0, 1.0, -1.0), np.full(len(y), -1.0), 0.0
    else:
        sign, p, total = np.ones(len(y)), np.zeros(len(y)), 0.5 * len(y)
    Q = sign[:, None] * sign * K
    independent = optimize.minimize(
        lambda a: a @ Q @ a / 2 + p @ a,
        np.full(len(p), total / len(p)),
        jac=lambda a: Q @ a + p,
        bounds=[(0, 1)] * len(p),
        constraints={"type": "eq", "fun": lambda a: sign @ a - total, "jac": lambda a: sign},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    report = fit(X, y, machine=machine, tol=1e-8).reports[0]
    assert report.objective == pytest.approx(independent.fun, rel=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.ascontiguousarray, sparse.csr_array])
@pytest.mark.parametrize("machine", ["c-svc", "nu-svc", "one-class", "epsilon-svr"])
def test_rows_named_are_rows_taken(machine: str, form: type, dtype: type) -> None:
    X, y = two_clouds(90)
    rows = np.random.default_rng(3).permutation(90)[:70]
    weight = np.linspace(0.5, 1.5, 70)
    options = {"machine": machine, "nu": 0.3, "sample_weight": weight}
    whole = form(X.astype(dtype))
    named = fit(whole, y[rows], rows=rows, **options)
    taken = fit(whole[rows], y[rows], **options)
    np.testing.assert_array_equal(named.support, rows[taken.support])
    np.testing.assert_array_equal(named.dual_coef, taken.dual_coef)
    np.testing.assert_array_equal(named.rho, taken.rho)


def test_rows_of_a_precomputed_kernel_are_its_columns_too() -> None:
    X, y = two_clouds(40)
    rows = np.arange(1, 40, 2)
    gram = X @ X.T
    named = fit(gram, y[rows], rows=rows, kernel="precomputed")
    taken = fit(np.ascontiguousarray(gram[np.ix_(rows, rows)]), y[rows], kernel="precomputed")
    np.testing.assert_array_equal(named.support, rows[taken.support])
    np.testing.assert_array_equal(named.dual_coef, taken.dual_coef)


@pytest.mark.parametrize("row", [-1, 60])
def test_a_row_that_is_not_there_is_refused(row: int) -> None:
    X, y = two_clouds(60)
    with pytest.raises(ValueError, match=f"row {row} is not one of the 60 rows"):
        fit(X, y[:2], rows=np.array([0, row]))
    with pytest.raises(ValueError, match="there are no samples"):
        fit(X, y[:0], rows=np.array([], dtype=np.intp))


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_dense_and_sparse_rows_give_the_same_bits(index: type, kernel: str) -> None:
    X, y = two_clouds()
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0
    csr = sparse.csr_array(X)
    csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
    dense, compressed = fit(X, y, kernel=kernel), fit(csr, y, kernel=kernel)
    np.testing.assert_array_equal(dense.dual_coef, compressed.dual_coef)
    np.testing.assert_array_equal(dense.rho, compressed.rho)


def test_read_only_and_memory_mapped_arrays_are_accepted(tmp_path: Path) -> None:
    X, y = two_clouds()
    expected = fit(X, y).dual_coef
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    y.setflags(write=False)
    np.testing.assert_array_equal(fit(mapped, y).dual_coef, expected)


def test_single_precision_reaches_the_same_optimum() -> None:
    X, y = two_clouds(200)
    double = fit(X, y, tol=1e-6).reports[0]
    single = fit(X.astype(np.float32), y, tol=1e-6).reports[0]
    assert single.objective == pytest.approx(double.objective, rel=1e-5)


def test_a_precomputed_kernel_is_the_kernel_it_holds() -> None:
    X, y = two_clouds()
    by_kernel = fit(X, y, kernel="linear", tol=1e-8)
    by_gram = fit(np.ascontiguousarray(X @ X.T), y, kernel="precomputed", tol=1e-8)
    assert by_gram.reports[0].objective == pytest.approx(by_kernel.reports[0].objective, rel=1e-7)


def test_the_monitor_can_stop_the_fit() -> None:
    X, y = two_clouds(2000)
    seen: list[dict] = []

    def stop(progress: dict) -> bool:
        seen.append(progress)
        return True

    solution = fit(X, y, kernel="linear", C=1e6, tol=1e-12, monitor=stop)
    assert solution.reports[0].stop_reason == "callback"
    assert set(seen[0]) == {"problem", "problems", "iteration", "gap", "active", "marks"}


def test_an_error_in_the_monitor_comes_through() -> None:
    X, y = two_clouds(2000)

    def fail(progress: dict) -> bool:
        raise LookupError("monitor")

    with pytest.raises(LookupError, match="monitor"):
        fit(X, y, kernel="linear", C=1e6, tol=1e-12, monitor=fail)


@pytest.mark.parametrize("classes", [2, 4])
def test_ctrl_c_interrupts_a_fit_that_would_never_end(classes: int) -> None:
    X, y = two_clouds(3000)
    y += 2 * (X[:, 1] > 0) if classes == 4 else 0
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        fit(X, y, kernel="linear", C=1e9, tol=1e-14, shrinking=False, threads=2, time_limit=60)
    timer.join()
    assert fit(X[:50], y[:50] % 2).reports[0].converged


def test_a_time_limit_stops_and_says_so() -> None:
    X, y = two_clouds(2000)
    report = fit(X, y, kernel="linear", C=1e9, tol=1e-14, time_limit=0.05).reports[0]
    assert report.stop_reason == "time_limit"
    assert report.gap > 1e-14


def test_results_do_not_depend_on_threads_or_cache() -> None:
    X, y = two_clouds(900)
    alone = fit(X, y, C=10.0)
    for options in ({"threads": 2}, {"cache_bytes": 1}, {"threads": 3, "cache_bytes": 10**5}):
        np.testing.assert_array_equal(fit(X, y, C=10.0, **options).dual_coef, alone.dual_coef)


@pytest.mark.parametrize("rows", [50, 100, 200, 300, 500, 700])
def test_a_cache_for_some_of_the_rows_changes_no_result(rows: int) -> None:
    """Rows that were begun make room for others while both are computed: shrinking, then more."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 1500).astype(np.float64)
    X = random.normal(size=(1500, 10)) + np.outer(2 * y - 1, random.normal(size=10) / 5)
    for gamma in (0.1, 0.02):
        ample = fit(X, y, gamma=gamma, C=10.0)
        scarce = fit(X, y, gamma=gamma, C=10.0, cache_bytes=rows * 1500 * 4, max_iter=20_000)
        assert scarce.reports[0].iterations == ample.reports[0].iterations
        np.testing.assert_array_equal(scarce.dual_coef, ample.dual_coef)


def test_a_warm_start_continues_where_it_was() -> None:
    X, y = two_clouds(300)
    cold = fit(X, y)
    half = fit(X, y, max_iter=cold.reports[0].iterations // 2)
    warm = fit(X, y, alpha=dense_coefficients(half, len(y)))
    assert warm.reports[0].iterations < cold.reports[0].iterations
    assert warm.reports[0].objective == pytest.approx(cold.reports[0].objective, rel=1e-4)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"machine": "d-svc"}, "machine 'd-svc'"),
        ({"kernel": "cosine"}, "kernel 'cosine'"),
        ({"selector": "wss9"}, "selector 'wss9'"),
        ({"selector": "dpwss", "sigma": 1.0}, "sigma = 1 "),
        ({"selector": "dpwss", "selection_epsilon": 0.0}, "selection_epsilon = 0 "),
        ({"machine": "nu-svc", "nu": 0.99}, "specified nu is infeasible"),
        ({"sample_weight": np.ones(3)}, "sample_weight has shape"),
        ({"class_weight": np.ones(3)}, "class_weight has shape"),
        ({"alpha": np.zeros(7)}, "alpha has shape"),
        ({"alpha": np.full(60, np.nan)}, r"alpha\[0\] is not finite"),
        ({"kernel": "precomputed"}, "square"),
    ],
)
def test_bad_arguments_are_named(options: dict, reason: str) -> None:
    X, y = two_clouds()
    with pytest.raises(ValueError, match=reason):
        fit(X, y, **options)


def test_kernel_values_beyond_single_precision_are_refused() -> None:
    with pytest.raises(ValueError, match="does not fit single precision"):
        fit(np.array([[1e30], [1.0]]), np.array([0.0, 1.0]), kernel="linear")


def test_a_seed_repeats_dpwss_to_the_bit_and_its_absence_does_not() -> None:
    X, y = two_clouds(200)
    first, again, other, fresh = (
        fit(X, y, selector="dpwss", sigma=0.3, seed=seed).dual_coef for seed in (1, 1, 2, None)
    )
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or np.any(first != other)
    assert first.shape != fresh.shape or np.any(first != fresh)


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.2, 5.0), (0.7, 5.0), (0.2, 40.0)])
def test_dpwss_draws_its_partner_from_the_stated_distribution(sigma: float, epsilon: float) -> None:
    X, y = two_clouds(60, seed=3)
    tol = 1e-3
    K = X @ X.T
    half = fit(X, y, kernel="linear", max_iter=15, shrinking=False)
    start = dense_coefficients(half, len(y))

    sign = np.where(y == 0, 1.0, -1.0)
    alpha = start * sign
    v = sign - K @ start
    up = np.where(sign > 0, alpha < 1, alpha > 0)
    low = np.where(sign > 0, alpha > 0, alpha < 1)
    i = np.argmax(np.where(up, v, -np.inf))
    gap = v[i] - v[low].min()
    score = (v[i] - v) / gap
    candidates = np.flatnonzero(low & (score >= sigma) & (v[i] - v > tol))
    weight = np.exp(epsilon * score[candidates] / (2 * (1 - sigma)))
    assert weight.max() > 3 * weight.min()  # else the test could not tell it from uniform

    counts = dict.fromkeys(candidates.tolist(), 0)
    for seed in range(DRAWS):
        moved = fit(
            X, y, kernel="linear", alpha=start, max_iter=1, shrinking=False,
            selector="dpwss", sigma=sigma, selection_epsilon=epsilon, seed=seed,
        )  # fmt: skip
        changed = np.flatnonzero(dense_coefficients(moved, len(y)) != start)
        (j,) = changed[changed != i]
        counts[j] += 1
    expected = DRAWS * weight / weight.sum()
    assert stats.chisquare(list(counts.values()), expected).pvalue > LEVEL


def test_the_trace_ends_where_the_solver_does() -> None:
    X, y = two_clouds(300)
    report = fit(X, y, kernel="linear", trace_every=1, shrinking=False).reports[0]
    assert report.trace["iteration"].tolist() == list(range(1, report.iterations + 1))
    assert report.trace["objective"][-1] == pytest.approx(report.objective, rel=1e-9)
    assert np.all(np.diff(report.trace["objective"]) <= 1e-9)
    assert len(fit(X, y).reports[0].trace) == 0


def test_the_kernel_phase_is_a_part_of_the_fit() -> None:
    X, y = two_clouds(300)
    report = fit(X, y).reports[0]
    assert 0 < report.kernel_seconds < report.seconds
    assert report.kernel_rows <= report.kernel_evaluations <= report.kernel_rows * len(X)


def test_decision_values_are_the_expansion() -> None:
    X, y = two_clouds(80)
    solution = fit(X, y, gamma=0.7)
    distance = ((X[:, None] - X[solution.support]) ** 2).sum(axis=2)
    expected = np.exp(-0.7 * distance) @ solution.dual_coef[0] - solution.rho[0]
    found = _core.decision_values(
        X, X[solution.support], solution.dual_coef, solution.rho, solution.n_support,
        kernel="rbf", gamma=0.7, machine="c-svc", threads=2,
    )  # fmt: skip
    np.testing.assert_allclose(found[:, 0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("columns", [40, 64, 150])
@pytest.mark.parametrize("to_rows", [np.asarray, sparse.csr_array])
def test_rows_of_zeros_and_ones_have_the_decision_values_of_any_rows(
    columns: int, to_rows: Any
) -> None:
    """Their products are counted; one other entry among the queries, and they are multiplied."""
    random = np.random.default_rng(columns)
    X = (random.random((130, columns)) < 0.3).astype(np.float64)
    y = (X[:, :5].sum(axis=1) > 1).astype(np.float64)
    solution = fit(X, y, gamma=0.05)
    other = np.vstack([X, X[:1]])
    other[-1, 0] = 0.5
    counted, multiplied = (
        _core.decision_values(
            to_rows(queries), to_rows(X[solution.support]), solution.dual_coef, solution.rho,
            solution.n_support, kernel="rbf", gamma=0.05, machine="c-svc", threads=2,
        )
        for queries in (X, other)
    )  # fmt: skip
    np.testing.assert_array_equal(counted, multiplied[:-1])


def test_a_huge_column_number_needs_no_huge_memory() -> None:
    columns = np.array([0, 2**31 - 2, 1])
    X = sparse.csr_array((np.array([0.5, 1.0, 1.0]), columns, np.arange(4)), shape=(3, 2**31 - 1))
    solution = fit(X, np.array([0.0, 1.0, 0.0]))
    found = _core.decision_values(
        X, X[solution.support], solution.dual_coef, solution.rho, solution.n_support,
        kernel="rbf", machine="c-svc",
    )  # fmt: skip
    narrow = sparse.csr_array(np.array([[0.5, 0, 0], [0, 0, 1.0], [0, 1.0, 0]]))
    same = fit(narrow, np.array([0.0, 1.0, 0.0]))
    np.testing.assert_array_equal(solution.dual_coef, same.dual_coef)
    assert np.array_equal(found[:, 0] > 0, [True, False, True])


def test_rows_computed_ahead_change_no_result() -> None:
    X, y = two_clouds(1500, seed=5)
    X = np.hstack([X, np.random.default_rng(5).normal(size=(len(y), 100))])
    assert X.nbytes > 1 << 20  # else none is computed ahead
    ample, scarce = (fit(X, y, gamma=0.01, C=10, cache_bytes=size) for size in (100 << 20, 1))
    assert ample.reports[0].iterations == scarce.reports[0].iterations
    np.testing.assert_array_equal(ample.dual_coef, scarce.dual_coef)
    np.testing.assert_array_equal(ample.rho, scarce.rho)
