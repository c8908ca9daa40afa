"""Every fit ends, or says why it goes on; and none ends with a number that is none."""

from __future__ import annotations

import subprocess
import sys
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from dpsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from dpsvm.svm.monitors import MANY, Patience

# The six rows of scikit-learn's issue 13075; columns that are zero in all of them left out.
HANGING = np.array(
    [
        [0, 0.3, 0, 0, 1, 0.625, 0, 0, 0.31865753, 0, 0],
        [0, 0, 0, 0, 0.33333333, 0.61538462, 0, 0, 0.59230137, 1, 1],
        [0, 0, 0, 0, 0, 0, 0, 0, 0.31778082, 1, 0],
        [0.66666667, 0, 0.5, 1, 0.8, 0, 1, 0.5625, 0.36430137, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 0.33638356, 1, 0],
        [0, 0.3, 0, 0, 1, 0.625, 0, 0, 0.31843836, 0, 0],
    ]
)
HANGING_GAMMA = 1 / 13  # "auto" over all thirteen columns


def cloud(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


def test_rows_that_floats_cannot_tell_apart_are_told_apart_by_doubles() -> None:
    X, y = np.array([[1, 99999], [2, 99999]]), [0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine = SVC(kernel="poly", degree=2, gamma=0.5).fit(X, y)

    def kernel(a: Any, b: Any) -> Fraction:
        return (Fraction(1, 2) * sum(int(p) * int(q) for p, q in zip(a, b, strict=True))) ** 2

    curvature = kernel(X[0], X[0]) + kernel(X[1], X[1]) - 2 * kernel(X[0], X[1])
    assert machine.stop_reason_ == "stationary"
    assert machine.dual_coef_[0, 1] == pytest.approx(2 / float(curvature), rel=1e-5)
    np.testing.assert_allclose(machine.decision_function(X), [-1, 1], atol=1e-4)


@pytest.mark.parametrize("seed", range(30))
def test_resamples_that_hung_end(seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 6, 6)
    y = np.array([0, 1, 1, 0, 1, 0])[rows]
    machine = NuSVC(coef0=10.0, gamma=HANGING_GAMMA, kernel="poly", nu=2 / 7)
    machine.fit(HANGING[rows], y)
    assert machine.stop_reason_ == "stationary"
    assert np.isfinite(machine.decision_function(HANGING)).all()


@pytest.mark.parametrize(("degree", "gamma"), [(7, 864.0), (7, 4318.0), (8, 864.0)])
def test_huge_kernel_values_end_or_are_refused_by_name(degree: int, gamma: float) -> None:
    X, y = load_iris(return_X_y=True)
    machine = SVC(kernel="poly", degree=degree, gamma=gamma, C=0.67)
    if (degree, gamma) == (7, 864.0):
        assert set(machine.fit(X, y).stop_reason_) == {"stationary"}
    else:
        with pytest.raises(ValueError, match=r"sample \d+ with itself is \d.*e\+\d+, which does"):
            machine.fit(X, y)


def run_dpsvm(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dpsvm", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def one_feature() -> tuple[np.ndarray, np.ndarray]:
    """Rows whose kernel, of rank one, is anything but positive semidefinite in single precision."""
    x = np.random.default_rng(0).normal(0, 3, 20)
    return x, (np.sin(x) + np.random.default_rng(1).normal(0, 0.5, 20) > 0).astype(int)


def test_a_proved_stall_warns_with_gap_and_advice() -> None:
    x, y = one_feature()
    machine = SVC(kernel="poly", degree=6, gamma=30.0, C=1e6, tol=1e-3)
    with pytest.warns(ConvergenceWarning) as caught:
        machine.fit(x[:, np.newaxis], y)
    assert machine.stop_reason_ == "stalled"
    assert machine.fit_status_ == 1
    told = [str(warning.message) for warning in caught]
    assert any(text.startswith("The solver stalled with an optimality gap of ") for text in told)
    assert all("scale the features" in text for text in told)
    assert {warning.filename for warning in caught} == {__file__}
    assert np.isfinite(machine.objective_)


def test_a_stall_is_a_warning_on_the_command_line(tmp_path: Path) -> None:
    x, y = one_feature()
    rows = "".join(f"{label} 1:{float(value)!r}\n" for label, value in zip(y, x, strict=True))
    (tmp_path / "rows").write_text(rows)
    words = [
        *("train", "-t", "1", "-d", "6", "-g", "30", "-c", "1e6", "-q"),
        *("--max-iter", "-1", "rows"),
    ]
    done = run_dpsvm(words, tmp_path)
    assert done.returncode == 0, done.stderr
    told, ended = done.stderr.splitlines()
    assert "iterations, and the optimality gap is" in told
    assert "1 of 1 problems stalled (scale the features" in ended


def test_ten_million_iterations_are_told_once_and_the_fit_goes_on() -> None:
    told: list[str] = []
    patience = Patience(None, tol=1e-3, tell=told.append)
    for iteration in (10, MANY // 2 + 1, MANY - 1, MANY + 5, 2 * MANY, 3 * MANY):
        assert not patience({"problem": 0, "iteration": iteration, "gap": 1e6 / iteration})
    assert len(told) == 1
    assert "10,000,005 iterations" in told[0]
    assert "(0.2 after 5,000,001)" in told[0]
    assert "tol=0.001" in told[0]


def test_a_monitor_behind_the_patience_may_still_cancel() -> None:
    assert Patience(lambda progress: True, tol=1e-3, tell=print)(
        {"problem": 0, "iteration": 1, "gap": 1.0}
    )


def test_ten_million_iterations_of_a_fit_warn_where_it_was_called() -> None:
    # Badly scaled: both columns of one class are nearly those of the other.
    random = np.random.default_rng(3)
    X = np.c_[random.normal(size=300) * 1e3, random.normal(size=300)]
    y = random.integers(0, 2, 300)
    machine = SVC(kernel="linear", C=1e6, max_iter=MANY + 2_000_000)
    with pytest.warns(ConvergenceWarning) as caught:
        machine.fit(X, y)
    first = str(caught[0].message)
    assert "iterations, and the optimality gap is" in first
    assert "the fit goes on" in first
    assert {warning.filename for warning in caught} == {__file__}


def test_a_kernel_that_can_overflow_between_samples_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(gamma \|x\|\^2 \+ \|coef0\|\)\^degree = 1e\+42"):
        SVC(kernel="poly", coef0=-1e14).fit(*cloud())


@pytest.mark.parametrize("seed", range(20))
def test_an_entry_of_a_gram_matrix_that_overflows_is_named(seed: int) -> None:
    X, y = cloud()
    random = np.random.default_rng(seed)
    i, j = random.choice(40, 2, replace=False)
    gram = X @ X.T
    gram[i, j] = 1e39
    with pytest.raises(ValueError, match=rf"samples {i} and {j} is 1e\+39, which does not fit"):
        SVC(kernel="precomputed").fit(gram, y)


def test_sums_that_overflow_are_refused() -> None:
    X, _ = cloud()
    with pytest.raises(ValueError, match=r"overflow|not finite"):
        SVR(kernel="rbf", C=1e308).fit(X, np.arange(40) * 1e300)


@pytest.mark.parametrize("selector", ["wss1", "wss2", "wss3", "wss4", "dpwss"])
@pytest.mark.filterwarnings("ignore::dpsvm.PrivacyLeakWarning")
def test_bounds_and_gaps_that_overflow_are_refused_by_every_selector(selector: str) -> None:
    random = np.random.default_rng(0)
    gram, y = random.normal(size=(60, 60)), np.arange(60) % 2
    weight = 10.0 ** random.choice([-300, 300, 0, 10], size=60)
    options = {"kernel": "precomputed", "selector": selector, "random_state": 0}
    with pytest.raises(ValueError, match=r"the bound of a coefficient, .* is infinite"):
        SVC(C=1e38, **options).fit(gram, y, sample_weight=weight)
    with pytest.raises(ValueError, match="overflow"):
        SVC(C=1e7, **options).fit(1e30 * gram, y, sample_weight=weight)


def test_bounds_that_vanish_are_refused() -> None:
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    with pytest.raises(ValueError, match=r"the bound of a coefficient, .* is zero"):
        SVC(kernel="linear", C=1e-300).fit(X, y, sample_weight=[1e-30] * 4)


def test_a_tiny_nu_has_finite_numbers() -> None:
    machine = NuSVC(nu=1e-200).fit(np.eye(2), [0, 1])
    assert np.isfinite(machine.objective_)
    assert np.isfinite(machine.dual_coef_).all()


def test_the_solver_that_keeps_w_notices_that_sums_overflow() -> None:
    X = np.random.default_rng(1).standard_cauchy((5, 8))
    machine = OneClassSVM(kernel="linear", nu=0.5, solver="decomposition")
    with pytest.raises(ValueError, match="overflow"):
        machine.fit(X, sample_weight=[1e200] * 3 + [1.0] * 2)


def test_names_may_be_numpys() -> None:
    machine = SVC(selector=np.str_("wss2"), solver=np.str_("smo"))
    assert machine.fit([[0.0], [1.0]], [0, 1]).stop_reason_ == "stationary"


# scikit-learn needs 3,747,318 and 1,793,559 iterations; a stall must not be seen in them.
@pytest.mark.parametrize("machine", ["SVR", "SVC"])
def test_a_long_fit_takes_libsvms_path_to_its_end(machine: str) -> None:
    sklearn_svm = pytest.importorskip("sklearn.svm")
    if machine == "SVR":
        x = [
            -4323.574910491683, 3524.2768371080097, 2755.8755104154334, -5769.874208738652,
            3730.944179242522, 2381.726969302901, 1809.3185694895596, 7844.109381272497,
            -1166.3059724991108, 369.26871103033204,
        ]  # fmt: skip
        y = [
            1.5183469156449092, 0.38559499972676387, -0.633256766265152, -1.307427366931051,
            0.3408269587030669, 0.8967532968527886, -1.0943543780298521, 1.425056501189162,
            -1.1130265857878254, -0.3554704095375167,
        ]  # fmt: skip
        settings = {"gamma": 0.001, "C": 0.01}
    else:
        x = [-7408, 6433, 13035, -7771, 10100, 4580, 3513, -2624, 5203, -3964]
        x += [7638, 909, -2674, -10147, -9778, 16421, 7129, 1923, 4264, 18730]
        y = [0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
        settings = {"gamma": 1e-5, "C": 0.1}
    settings |= {"kernel": "poly", "degree": 2, "coef0": 1.0}
    X = np.array(x, dtype=np.float64)[:, np.newaxis]
    theirs = getattr(sklearn_svm, machine)(**settings).fit(X, y)
    ours = {"SVR": SVR, "SVC": SVC}[machine](**settings).fit(X, y)
    assert int(np.sum(ours.n_iter_)) == int(np.sum(theirs.n_iter_)) > 1_000_000
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-9)


def test_nu_at_its_limit_leaves_the_offset_undetermined_and_says_so() -> None:
    X, y = cloud()
    nu = 2 * min(y.sum(), 40 - y.sum()) / 40
    with pytest.raises(ValueError, match=rf"nu = {nu:.6f} is as large as it can be"):
        NuSVC(nu=nu).fit(X, y)
    with pytest.raises(ValueError, match=r"nu = 1\.000000 is as large as it can be"):
        OneClassSVM(nu=1.0).fit(X)
    assert np.isfinite(NuSVC(nu=nu - 0.01).fit(X, y).intercept_).all()


@pytest.mark.parametrize("folds", [[], ["-v", "2"]])
def test_no_margin_is_one_line_and_exit_code_2(folds: list[str], tmp_path: Path) -> None:
    (tmp_path / "four").write_text("0 1:1\n0 1:1\n1 1:1\n1 1:1\n")
    words = ["train", "-s", "1", "-n", "0.5", "-t", "0", *folds, "four"]
    done = run_dpsvm(words, tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "four: the classes overlap so far that nu leaves no margin" in done.stderr
    assert not (tmp_path / "four.model").exists()


@pytest.mark.parametrize("settings", [{}, {"kernel": "linear", "solver": "decomposition"}])
def test_an_infinite_c_is_a_bound_that_no_coefficient_meets(settings: dict[str, str]) -> None:
    random = np.random.default_rng(0)
    X = np.vstack([random.normal(size=(40, 3)) - 4, random.normal(size=(40, 3)) + 4])
    y = np.repeat([0, 1], 40)
    weight = random.uniform(0.5, 2.0, 80)
    hard = SVC(C=np.inf, **settings).fit(X, y, sample_weight=weight)
    large = SVC(C=1e10, **settings).fit(X, y, sample_weight=weight)
    assert hard.stop_reason_ == "stationary"
    np.testing.assert_allclose(hard.decision_function(X), large.decision_function(X), rtol=1e-9)
    warm = SVC(C=1.0, warm_start=True, **settings).fit(X, y).set_params(C=np.inf).fit(X, y)
    np.testing.assert_allclose(warm.objective_, hard.objective_, rtol=1e-3)
    with pytest.raises(ValueError, match=r"the bound of a coefficient, .* is infinite"):
        NuSVR(C=np.inf).fit(X, y)
