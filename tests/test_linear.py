"""The solver that keeps w: the optimum and the contract of the solver over all variables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from dpsvm import SVC, SVR, NuSVC, OneClassSVM, _core
from dpsvm._result import Report
from dpsvm.cli import main
from dpsvm.svm.parameters import Parameters

TOL = 1e-3
MACHINES = ("c-svc", "nu-svc", "one-class", "epsilon-svr", "nu-svr")


def clouds(n: int = 3000, d: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping classes, enough rows for many rounds; two of three entries are zero.

    Entries are quarters: kernel values are exact in single precision, so both solvers have one
    problem.
    """
    rng = np.random.default_rng(seed)
    X = np.round(4 * rng.normal(size=(n, d))) / 4 * (rng.random((n, d)) < 1 / 3)
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0).astype(np.float64)


def fit(X: object, y: np.ndarray | None, **options: object) -> _core.Solution:
    given = {"machine": "c-svc", "kernel": "linear", "solver": "decomposition", **options}
    return _core.train(X, y, **given)


def true_gap(X: np.ndarray, y: np.ndarray, bound: np.ndarray, solution: _core.Solution) -> float:
    """The gap of a C-SVC, from its coefficients and nothing else."""
    coefficient = np.zeros(len(y))
    coefficient[solution.support] = solution.dual_coef[0]
    sign = np.where(y == 0, 1.0, -1.0)
    alpha = sign * coefficient
    v = sign - X @ (X.T @ coefficient)
    up = np.where(sign > 0, alpha < bound, alpha > 0)
    low = np.where(sign > 0, alpha > 0, alpha < bound)
    return float(v[up].max() - v[low].min())


def minimised(report: Report, machine: str) -> float:
    """What the solver minimised: nu-svc reports it divided by r squared."""
    return report.objective * (report.r**2 if machine == "nu-svc" else 1.0)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine_has_the_optimum_of_smo(machine: str) -> None:
    X, y = clouds()
    X += 1.0
    if machine.endswith("svr"):
        y = 2 * X[:, 0] + np.random.default_rng(5).normal(size=len(y))
    kept = fit(X, y, machine=machine, nu=0.8, tol=TOL).reports[0]
    exact = fit(X, y, machine=machine, nu=0.8, tol=1e-5, solver="smo").reports[0]
    assert kept.stop_reason == "stationary"
    assert kept.gap < TOL
    assert minimised(kept, machine) == pytest.approx(minimised(exact, machine), rel=1e-6)
    assert kept.rho == pytest.approx(exact.rho, rel=1e-2)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_objective_is_that_of_smo_to_a_millionth(C: float) -> None:
    X, y = clouds(n=2500, d=6)
    kept, exact = (fit(X, y, C=C, tol=TOL, solver=name) for name in ("decomposition", "smo"))
    assert kept.reports[0].objective == pytest.approx(exact.reports[0].objective, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.ascontiguousarray, sparse.csr_matrix])
def test_the_gap_is_below_the_tolerance_in_truth(form: type, dtype: type) -> None:
    X, y = clouds()
    X = X.astype(dtype)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, len(y))
    solution = fit(form(X), y, sample_weight=weight, class_weight=np.array([1.0, 2.5]), tol=TOL)
    bound = weight * np.where(y == 1, 2.5, 1.0)
    assert true_gap(X.astype(np.float64), y, bound, solution) < TOL
    assert solution.reports[0].gap < TOL
    assert abs(solution.dual_coef.sum()) < 1e-9
    assert np.all(np.abs(solution.dual_coef[0]) <= bound[solution.support])


def test_binary_rows_and_many_columns_are_no_exception() -> None:
    rng = np.random.default_rng(2)
    X = sparse.random(2500, 10**6, density=2e-5, format="csr", random_state=rng)
    X.data[:] = 1.0
    X.sort_indices()
    y = (rng.random(2500) < 0.5).astype(np.float64)
    kept, exact = (fit(X, y, solver=name).reports[0] for name in ("decomposition", "smo"))
    assert kept.objective == pytest.approx(exact.objective, rel=1e-6)
    assert kept.stop_reason == "stationary"


def test_rows_that_lose_their_differences_in_floats_still_lower_the_objective() -> None:
    X, y = clouds(n=1500, d=5)
    report = fit(X + 3e4, y, max_iter=20_000).reports[0]
    reference = fit(X, y).reports[0]  # the same program: y'a = 0 takes the shift out of it
    assert 1.01 * reference.objective < report.objective < 0.1 * reference.objective < 0


@pytest.mark.parametrize("weight", [None, {0: 1.0, 1: 4.0, 2: 0.5}])
def test_several_classes(weight: dict[int, float] | None) -> None:
    X, _ = clouds(n=4500, d=5)
    y = (X[:, :3] + np.random.default_rng(3).normal(size=(4500, 3))).argmax(axis=1)
    settings = {"kernel": "linear", "class_weight": weight, "n_jobs": 2}
    kept = SVC(**settings, solver="decomposition").fit(X, y)
    exact = SVC(**settings, tol=1e-5).fit(X, y)
    assert kept.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    assert kept.coef_ == pytest.approx(exact.coef_, abs=1e-2)


@pytest.mark.parametrize("form", [np.ascontiguousarray, sparse.csr_matrix])
def test_threads_change_no_bit(form: type) -> None:
    X, y = clouds(n=20_000)
    one, two, three = (fit(form(X), y, threads=threads) for threads in (1, 2, 3))
    for other in (two, three):
        assert np.array_equal(one.dual_coef, other.dual_coef)
        assert np.array_equal(one.support, other.support)
        assert np.array_equal(one.rho, other.rho)
        assert one.reports[0].objective == other.reports[0].objective


def test_a_small_cache_changes_no_bit() -> None:
    X, y = clouds()
    large, small = (fit(X, y, cache_bytes=size) for size in (2**28, 2**12))
    assert np.array_equal(large.dual_coef, small.dual_coef)
    assert small.reports[0].kernel_rows > large.reports[0].kernel_rows


def test_it_computes_a_part_of_the_kernel_only() -> None:
    X, y = clouds(n=8000)
    report = fit(X, y).reports[0]
    assert 0 < report.kernel_evaluations < 8000**2 / 4


def test_a_start_at_the_optimum_needs_no_iteration() -> None:
    X, y = clouds()
    first = fit(X, y)
    start = np.zeros(len(y))
    start[first.support] = first.dual_coef[0]
    again = fit(X, y, alpha=start)
    assert again.reports[0].iterations == 0
    assert again.reports[0].objective == pytest.approx(first.reports[0].objective, rel=1e-12)


@pytest.mark.parametrize("limit", [0, 1, 700, 5000])
def test_max_iter_counts_over_all_rounds(limit: int) -> None:
    X, y = clouds()
    report = fit(X, y, max_iter=limit).reports[0]
    assert report.stop_reason == "max_iter"
    assert report.iterations == limit
    assert report.gap >= TOL


def test_the_time_limit_stops() -> None:
    X, y = clouds()
    report = fit(1e3 * X, y, C=1e3, tol=1e-9, time_limit=0.1).reports[0]
    assert report.stop_reason == "time_limit"
    assert report.iterations > 0


def test_the_monitor_sees_iterations_grow_and_can_stop() -> None:
    X, y = clouds()
    seen: list[int] = []

    def stop(state: dict[str, float]) -> bool:
        seen.append(int(state["iteration"]))
        return len(seen) == 3

    solution = fit(1e3 * X, y, C=1e3, tol=1e-9, monitor=stop)
    assert solution.reports[0].stop_reason == "callback"
    assert solution.reports[0].iterations >= seen[2] > seen[1] > seen[0]
    assert np.isfinite(solution.reports[0].objective)


def test_the_trace_falls_to_the_final_objective() -> None:
    X, y = clouds()
    report = fit(X, y, trace_every=1).reports[0]
    assert list(report.trace["iteration"]) == list(range(1, report.iterations + 1))
    assert np.all(np.diff(report.trace["objective"]) <= 1e-9 * abs(report.objective))
    assert report.trace["objective"][-1] == pytest.approx(report.objective, rel=1e-9)


@pytest.mark.parametrize("kernel", ["poly", "rbf", "sigmoid", "precomputed"])
def test_other_kernels_are_refused(kernel: str) -> None:
    X, y = clouds(n=20)
    X = X @ X.T if kernel == "precomputed" else X
    with pytest.raises(ValueError, match=f"kernel='linear', got '{kernel}'"):
        SVC(kernel=kernel, solver="decomposition").fit(X, y)
    with pytest.raises(ValueError, match="linear kernel"):
        fit(X, y, kernel=kernel)


@pytest.mark.parametrize("selector", ["wss1", "wss3", "wss4", "wss-wr", "dpwss"])
def test_other_selectors_are_refused(selector: str) -> None:
    with pytest.raises(ValueError, match=f"selector='wss2', got '{selector}'"):
        Parameters(kernel="linear", solver="decomposition", selector=selector)
    with pytest.raises(ValueError, match=f"the selector '{selector}'"):
        fit(*clouds(n=20), selector=selector)


def test_unknown_solvers_are_refused() -> None:
    with pytest.raises(ValueError, match="newton"):
        SVC(kernel="linear", solver="newton").fit(*clouds(n=20))
    with pytest.raises(ValueError, match="unknown solver 'newton'"):
        fit(*clouds(n=20), solver="newton")


@pytest.mark.parametrize("estimator", [SVC, NuSVC, SVR, OneClassSVM])
def test_every_estimator_takes_it(estimator: type) -> None:
    X, y = clouds(n=1500, d=3)
    settings = {"kernel": "linear"} | ({"nu": 0.8} if hasattr(estimator(), "nu") else {})
    kept = estimator(**settings, solver="decomposition").fit(X + 1.0, y)
    exact = estimator(**settings).fit(X + 1.0, y)
    assert kept.stop_reason_ == "stationary"
    assert kept.objective_ == pytest.approx(exact.objective_, rel=1e-5)


def test_the_command_line_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = clouds(n=100, d=3)
    lines = [
        " ".join([f"{label:g}", *(f"{k + 1}:{value:.17g}" for k, value in enumerate(row))])
        for row, label in zip(X, y, strict=True)
    ]
    Path("two").write_text("\n".join(lines) + "\n")
    assert main(["train", "-q", "-t", "0", "--solver", "decomposition", "two", "m"]) == 0
    assert "kernel_type linear" in Path("m").read_text()
    assert main(["train", "-q", "--solver", "decomposition", "two", "m"]) == 2
    assert "got 'rbf'" in capsys.readouterr().err
