"""What the estimators add to scikit-learn's, and what they promise about threads and output."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import dpsvm
from dpsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM, PrivacyLeakWarning
from dpsvm._sklearn import RELEASE
from dpsvm.svm.selectors import SELECTORS
from dpsvm.threads import thread_count

ALL = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
FITTED = ("support_", "n_support_", "dual_coef_", "intercept_", "n_iter_", "objective_")


@pytest.fixture
def blobs():
    return make_classification(300, 8, n_informative=4, flip_y=0.2, random_state=0)


def assert_identical(first, second):
    """Every fitted number the same, bit for bit."""
    for name in FITTED:
        a, b = getattr(first, name), getattr(second, name)
        a, b = (v.toarray() if sp.issparse(v) else v for v in (a, b))
        np.testing.assert_array_equal(a, b, err_msg=name)


class TestReports:
    def test_one_problem_gives_plain_values(self, blobs: Any) -> None:
        X, y = blobs
        for machine in (SVC(), SVR(), NuSVR(), OneClassSVM()):
            machine.fit(X, y)
            assert machine.stop_reason_ == "stationary"
            assert isinstance(machine.dual_gap_, float)
            assert machine.dual_gap_ < machine.tol
            assert isinstance(machine.objective_, float)
            assert machine.n_selections_ == 0
            assert machine.privacy_guarantee_ is None

    def test_several_pairs_give_arrays(self) -> None:
        machine = SVC().fit(*load_iris(return_X_y=True))
        assert machine.stop_reason_.tolist() == ["stationary"] * 3
        assert machine.dual_gap_.shape == machine.objective_.shape == machine.n_iter_.shape == (3,)

    def test_objective_is_that_of_the_dual_coefficients(self, blobs: Any) -> None:
        X, y = blobs
        machine = SVC(kernel="linear").fit(X, y)
        quadratic = machine.coef_ @ machine.coef_.T
        expected = quadratic.item() / 2 - np.abs(machine.dual_coef_).sum()
        assert machine.objective_ == pytest.approx(expected, rel=1e-5)

    def test_max_iter_is_reported_and_warned_of(self, blobs: Any) -> None:
        machine = SVC(max_iter=5)
        with pytest.warns(ConvergenceWarning, match=r"terminated early \(max_iter=5\)") as caught:
            machine.fit(*blobs)
        assert machine.stop_reason_ == "max_iter"
        assert machine.n_iter_.tolist() == [5]
        assert machine.fit_status_ == 1
        assert caught[0].filename == __file__

    def test_max_iter_counts_for_each_pair(self) -> None:
        with pytest.warns(ConvergenceWarning):
            machine = SVC(max_iter=4).fit(*load_iris(return_X_y=True))
        assert machine.n_iter_.tolist() == [4, 4, 4]

    def test_time_limit_is_reported_and_warned_of(self, blobs: Any) -> None:
        machine = SVC(time_limit=1e-9, C=1e6, tol=1e-9)
        with pytest.warns(ConvergenceWarning, match=r"terminated early \(time_limit=1e-09\)"):
            machine.fit(*blobs)
        assert machine.stop_reason_ == "time_limit"
        assert np.isfinite(machine.decision_function(blobs[0])).all()


class TestSelectors:
    @pytest.mark.parametrize("selector", ["wss1", "wss3", "wss4"])
    def test_other_selectors_reach_the_same_optimum(self, selector: str, blobs: Any) -> None:
        reference = SVC(tol=1e-6).fit(*blobs)
        other = SVC(tol=1e-6, selector=selector, random_state=0).fit(*blobs)
        assert other.stop_reason_ == "stationary"
        assert other.objective_ == pytest.approx(reference.objective_, rel=1e-6)

    def test_once_only_selection_is_exhausted_and_says_so(self, blobs: Any) -> None:
        machine = SVC(selector="wss-wr").fit(*blobs)
        assert machine.stop_reason_ == "exhausted"
        assert machine.fit_status_ == 1
        assert machine.n_iter_[0] <= len(blobs[0])

    @pytest.mark.parametrize("selector", ["wss3", "wss4", "dpwss"])
    @pytest.mark.filterwarnings("ignore::dpsvm.PrivacyLeakWarning")
    def test_random_state_makes_random_selectors_repeatable(
        self, selector: str, blobs: Any
    ) -> None:
        def fitted(seed):
            return SVC(selector=selector, random_state=seed).fit(*blobs)

        assert_identical(fitted(3), fitted(3))
        assert_identical(fitted(np.random.RandomState(3)), fitted(np.random.RandomState(3)))
        assert len({fitted(seed).objective_ for seed in range(5)}) > 1
        assert len({fitted(None).objective_ for _ in range(5)}) > 1

    def test_deterministic_selectors_leave_the_random_state_alone(self, blobs: Any) -> None:
        state = np.random.RandomState(0)
        SVC(random_state=state).fit(*blobs)
        assert state.randint(1000) == np.random.RandomState(0).randint(1000)

    def test_sigma_and_selection_epsilon_reach_the_core(self, blobs: Any) -> None:
        with pytest.warns(PrivacyLeakWarning):
            low = SVC(selector="dpwss", sigma=0.1, random_state=0).fit(*blobs)
        with pytest.warns(PrivacyLeakWarning):
            high = SVC(selector="dpwss", sigma=0.9, random_state=0).fit(*blobs)
        assert low.n_selections_ > high.n_selections_


class TestPrivacyLeakWarning:
    @pytest.mark.parametrize("estimator", ALL)
    def test_dpwss_warns_once_and_promises_nothing(self, estimator: type, blobs: Any) -> None:
        machine = estimator(selector="dpwss", random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            machine.fit(*blobs)
        leaks = [w for w in caught if issubclass(w.category, PrivacyLeakWarning)]
        assert len(leaks) == 1
        assert leaks[0].filename == __file__
        assert machine.privacy_guarantee_ is None
        assert machine.n_selections_ == np.sum(machine.n_iter_) > 0

    def test_other_selectors_do_not_warn(self, blobs: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert SVC(selector="wss4").fit(*blobs).n_selections_ > 0

    def test_selections_of_all_pairs_are_counted(self) -> None:
        with pytest.warns(PrivacyLeakWarning):
            machine = SVC(selector="dpwss").fit(*load_iris(return_X_y=True))
        assert machine.n_selections_ == machine.n_iter_.sum()

    def test_the_notice_speaks_of_training_rows_for_kernels_that_store_them(self) -> None:
        rows = "contains training rows"
        notice = SELECTORS["dpwss"].notice
        assert rows not in notice(SVC(), "linear")
        assert rows in notice(SVC(), "rbf")
        assert "selection_epsilon=0.25" in notice(SVC(selection_epsilon=0.25), "linear")
        assert SELECTORS["wss4"].notice(SVC(), "rbf") is None


class TestAfterFit:
    def test_the_public_arrays_are_what_predict_reads(self, blobs: Any) -> None:
        X, y = blobs
        machine = SVC(kernel="linear").fit(X, y)
        values = machine.decision_function(X)
        machine.dual_coef_ = 2 * machine.dual_coef_
        machine.intercept_ = 2 * machine.intercept_
        np.testing.assert_allclose(machine.decision_function(X), 2 * values)

    def test_set_params_after_fit_changes_the_next_fit_only(self, blobs: Any) -> None:
        X, y = blobs
        machine = SVC(gamma=0.1, coef0=1.0, kernel="poly").fit(X, y)
        values = machine.decision_function(X)
        machine.set_params(kernel="rbf", gamma=3.0, coef0=0.0, degree=1)
        np.testing.assert_array_equal(machine.decision_function(X), values)

    def test_a_failed_refit_leaves_no_fitted_machine(self, blobs: Any) -> None:
        machine = SVC().fit(*blobs)
        with pytest.raises(ValueError, match="NaN"):
            machine.fit([[np.nan], [1.0]], [5, 6])
        with pytest.raises(ValueError, match="not fitted"):
            machine.predict(blobs[0])

    @pytest.mark.parametrize("estimator", ALL)
    @pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
    def test_pickle_and_clone(self, estimator: type, container: Any, blobs: Any) -> None:
        X, y = container(blobs[0]), blobs[1]
        machine = estimator(gamma=0.2).fit(X, y)
        copy = pickle.loads(pickle.dumps(machine))
        assert_identical(copy, machine)
        np.testing.assert_array_equal(copy.predict(X), machine.predict(X))
        blank = clone(machine)
        assert not hasattr(blank, "support_")
        assert_identical(blank.fit(X, y), machine)

    def test_break_ties_follows_the_decision_function(self) -> None:
        X, y = make_classification(150, n_classes=3, n_informative=4, flip_y=0.5, random_state=5)
        machine = SVC(break_ties=True, gamma=10.0).fit(X[:60], y[:60])
        expected = machine.classes_[machine.decision_function(X).argmax(axis=1)]
        np.testing.assert_array_equal(machine.predict(X), expected)

    def test_grid_search_pipeline_and_routed_weights(self, blobs: Any) -> None:
        X, y = blobs
        weight = np.ones(len(y))
        with config_context(enable_metadata_routing=True):
            machine = SVC().set_fit_request(sample_weight=True)
            machine.set_score_request(sample_weight=True)
            alone = GridSearchCV(machine, {"C": [0.1, 1.0]}, cv=2)
            alone.fit(X, y, sample_weight=weight)
            # The score of a pipeline routes weights from scikit-learn 1.8 on.
            scorer = get_scorer("accuracy").set_score_request(sample_weight=True)
            scoring = None if RELEASE >= (1, 8) else scorer
            grid = {"svc__C": [0.1, 1.0]}
            search = GridSearchCV(make_pipeline(machine), grid, scoring=scoring, cv=2)
            search.fit(X, y, sample_weight=weight)
        assert search.best_score_ == alone.best_score_ > 0.5

    def test_html_and_tags(self) -> None:
        assert "SVC" in SVC()._repr_html_()
        assert SVC().__sklearn_tags__().input_tags.sparse
        assert SVC(kernel="precomputed").__sklearn_tags__().input_tags.pairwise


class TestThreads:
    def test_eight_fits_at_once_give_the_serial_results(self) -> None:
        tasks = [
            (estimator(n_jobs=jobs), *make_classification(250, flip_y=0.2, random_state=seed))
            for seed, jobs in enumerate((1, 2, 4))
            for estimator in (SVC, SVR, OneClassSVM)
        ]
        tasks += [(SVC(selector="wss4", random_state=1), *load_iris(return_X_y=True))] * 3
        serial = [clone(machine).fit(X, y) for machine, X, y in tasks]
        with ThreadPoolExecutor(8) as pool:
            parallel = list(pool.map(lambda task: clone(task[0]).fit(*task[1:]), tasks * 2))
        for machine, reference in zip(parallel, serial * 2, strict=True):
            assert_identical(machine, reference)

    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_results_do_not_depend_on_n_jobs(self, container: Any, dtype: type) -> None:
        X, y = make_regression(300, 20, noise=5.0, random_state=0)
        X = container(X.astype(dtype))
        y_class = np.digitize(y, [-50, 0, 50])
        for machine, target in ((SVR(C=10.0), y), (SVC(), y_class), (SVC(), y > 0)):
            fits = [clone(machine).set_params(n_jobs=n).fit(X, target) for n in (1, 2, 5)]
            for other in fits[1:]:
                assert_identical(other, fits[0])
                np.testing.assert_array_equal(other.predict(X), fits[0].predict(X))

    @pytest.mark.parametrize(
        ("value", "threads"), [("3", 3), ("2,4", 2), ("0", None), ("many", None), ("", None)]
    )
    def test_none_follows_omp_num_threads(
        self, monkeypatch: pytest.MonkeyPatch, value: str, threads: int | None
    ) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert thread_count(None) == (threads or thread_count(-1))

    def test_minus_one_is_every_core_this_process_may_use(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
        assert thread_count(-1) == thread_count(None) == 3
        assert thread_count(-2) == 2
        assert thread_count(-9) == 1


class TestOutput:
    def test_quiet_fits_write_nothing(self, capfd: pytest.CaptureFixture[str], blobs: Any) -> None:
        for estimator in ALL:
            estimator().fit(*blobs).predict(blobs[0])
        assert capfd.readouterr() == ("", "")

    def test_verbose_writes_to_standard_error_only(self, capfd: pytest.CaptureFixture[str]) -> None:
        SVC(verbose=True).fit(*load_iris(return_X_y=True))
        out, err = capfd.readouterr()
        assert out == ""
        assert [line.partition(":")[0] for line in err.splitlines()] == [
            f"[SVC] problem {number}/3" for number in (1, 2, 3)
        ]

    def test_importing_writes_nothing(self) -> None:
        home = os.path.dirname(dpsvm.__path__[0])
        run = subprocess.run(
            [sys.executable, "-c", "import dpsvm; dpsvm.SVC().fit([[0.0], [1.0]], [0, 1])"],
            capture_output=True,
            check=True,
            env=os.environ | {"PYTHONPATH": home},
        )
        assert (run.stdout, run.stderr) == (b"", b"")


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("to_rows", [np.asarray, sp.csr_array])
def test_linear_decisions_are_those_of_the_support_vectors(classes: int, to_rows: Any) -> None:
    X, y = make_classification(
        200, 12, n_informative=8, n_classes=classes, random_state=0, n_clusters_per_class=1
    )
    rows = to_rows(X)
    linear = SVC(kernel="linear", decision_function_shape="ovo").fit(rows, y)
    by_vectors = SVC(kernel="poly", degree=1, gamma=1.0, decision_function_shape="ovo").fit(rows, y)
    np.testing.assert_allclose(
        linear.decision_function(rows), by_vectors.decision_function(rows), rtol=1e-9, atol=1e-9
    )
