"""Probabilities beside scikit-learn's: the same folds, sigmoids and coupling."""

from __future__ import annotations

import pickle
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

import dpsvm
from dpsvm._sklearn import PROBABILITY_DEFAULT, PROBABILITY_DEPRECATED

pytestmark = pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")


def make_rows(n_classes, n_rows=90):
    X, y = make_classification(
        n_rows, 6, n_informative=4, n_classes=n_classes, flip_y=0.1, random_state=n_classes
    )
    return X, np.array(["one", "two", "three", "four"])[y]


def fitted_pair(name, X, y, weight=None, **parameters):
    parameters = {"probability": True, "random_state": 7} | parameters
    machines = getattr(dpsvm, name)(**parameters), getattr(svm, name)(**parameters)
    return [machine.fit(X, y, sample_weight=weight) for machine in machines]


def assert_same_probabilities(ours, theirs, X):
    np.testing.assert_allclose(ours._probA, theirs._probA, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours._probB, theirs._probB, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_scikit_learns_probabilities(name: str, kernel: str, n_classes: int) -> None:
    X, y = make_rows(n_classes)
    parameters = {"nu": 0.25} if name == "NuSVC" else {"C": 2.0}
    # Compressed rows: on dense ones scikit-learn adds up by BLAS, which rounds in its own ways.
    X = sp.csr_matrix(X)
    assert_same_probabilities(*fitted_pair(name, X, y, kernel=kernel, **parameters), X)


@pytest.mark.parametrize("seed", range(5))
def test_for_any_seed_and_weights(seed: int) -> None:
    X, y = make_rows(3)
    weight = np.random.default_rng(seed).uniform(-0.3, 2.0, len(y))
    found = fitted_pair("SVC", X, y, weight, random_state=seed, class_weight={"two": 3.0})
    assert_same_probabilities(*found, X)


def test_from_kernel_matrices_and_callable_kernels() -> None:
    X, y = make_rows(3)
    gram = rbf_kernel(X)
    ours, theirs = fitted_pair("SVC", gram, y, kernel="precomputed")
    assert_same_probabilities(ours, theirs, gram)
    by_call, _ = fitted_pair("SVC", X, y, kernel=rbf_kernel)
    np.testing.assert_array_equal(by_call.predict_proba(X), ours.predict_proba(gram))


def test_fewer_rows_than_folds_and_a_class_of_one_row() -> None:
    X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    assert_same_probabilities(*fitted_pair("SVC", X, y), X)
    X, y = load_iris(return_X_y=True)
    kept = np.r_[0:20, 50]
    assert_same_probabilities(*fitted_pair("SVC", X[kept], y[kept]), X)


def test_a_fold_that_is_too_small_for_nu_takes_a_smaller_one() -> None:
    X, y = make_rows(2, 40)
    few = np.flatnonzero(y == "one")[:10]
    rows = np.r_[few, np.flatnonzero(y == "two")[:10]]
    machine = dpsvm.NuSVC(nu=0.95, probability=True, random_state=0).fit(X[rows], y[rows])
    probabilities = machine.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.isfinite(machine._probA).all()


def test_a_fit_without_has_none() -> None:
    X, y = make_rows(2)
    machine = dpsvm.SVC().fit(X, y)
    assert not hasattr(machine, "predict_proba")
    assert not hasattr(machine, "predict_log_proba")
    with pytest.raises(AttributeError) as raised:
        machine.predict_proba(X)
    assert "not available when probability=False" in str(raised.value.__cause__)
    machine.set_params(probability=True)
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        machine.predict_proba(X)
    with pytest.raises(NotFittedError):
        dpsvm.SVC(probability=True).predict_proba(X)


def test_the_deprecation_is_the_installed_scikit_learns() -> None:
    X, y = make_rows(2)
    default = svm.SVC().get_params()["probability"]
    assert dpsvm.SVC().get_params()["probability"] == default == PROBABILITY_DEFAULT
    for ours, theirs in ((dpsvm.SVC, svm.SVC), (dpsvm.NuSVC, svm.NuSVC)):
        for probability in (True, False, default):
            told = [[], []]
            for Machine, heard in zip((ours, theirs), told, strict=True):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    machine = Machine(probability=probability).fit(X, y)
                    assert machine.probA_.shape == machine.probB_.shape
                # scikit-learn 1.9 names SVC in NuSVC's warning.
                words = [str(warning.message).replace("NuSVC", "SVC") for warning in caught]
                heard += zip([warning.category for warning in caught], words, strict=True)
            assert told[0] == told[1]
    assert (default == "deprecated") == PROBABILITY_DEPRECATED


def test_the_folds_are_part_of_status_and_time_limit() -> None:
    X, y = make_rows(2)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        machine = dpsvm.SVC(max_iter=3, probability=True, random_state=0).fit(X, y)
    assert machine.fit_status_ == 1
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        dpsvm.SVC(C=1e9, kernel="poly", tol=1e-14, time_limit=0.05, probability=True).fit(X, y)


def test_threads_and_copies_change_nothing() -> None:
    X, y = make_rows(3)
    settings = {"probability": True, "random_state": 0}
    alone = dpsvm.SVC(n_jobs=1, **settings).fit(X, y)
    found = [None] * 4

    def fit(k):
        found[k] = dpsvm.SVC(n_jobs=2, **settings).fit(X, y).predict_proba(X)

    threads = [threading.Thread(target=fit, args=(k,)) for k in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in found:
        np.testing.assert_array_equal(one, alone.predict_proba(X))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(alone)).predict_proba(X), alone.predict_proba(X)
    )
