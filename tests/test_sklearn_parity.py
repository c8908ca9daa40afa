"""Fits beside ``sklearn.svm``: with wss2 and float64 data the path is the same, step for step."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.metrics.pairwise import laplacian_kernel

import dpsvm
from dpsvm.svm.selectors import NUMBERS

CLASSES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
KERNELS = ("linear", "poly", "rbf", "sigmoid")
EXTRA = ("solver", "selector", "time_limit", "n_jobs", "warm_start", *NUMBERS)

# Powers of two, because scikit-learn adds up nu row by row: other values start it off by a rounding
# error that can take another path.
NU = {"NuSVC": 0.25, "NuSVR": 0.25, "OneClassSVM": 0.25}


def make_pair(name, **parameters):
    """The same estimator of dpsvm and of scikit-learn."""
    if name in NU:
        parameters.setdefault("nu", NU[name])
    return getattr(dpsvm, name)(**parameters), getattr(svm, name)(**parameters)


def make_data(name):
    if name in ("SVR", "NuSVR"):
        X, y = load_diabetes(return_X_y=True)
        return X[:150] * 20, y[:150] / 50
    return load_iris(return_X_y=True)


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def assert_same_machine(ours, theirs, X):
    """The same iterations, the same support vectors, the same decisions."""
    np.testing.assert_array_equal(ours.n_iter_, theirs.n_iter_)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    # Of a sparse X without classes scikit-learn's count is memory that nobody has written.
    counts = theirs.n_support_ if hasattr(theirs, "classes_") else [len(theirs.support_)]
    np.testing.assert_array_equal(ours.n_support_, counts)
    np.testing.assert_array_equal(dense(ours.support_vectors_), dense(theirs.support_vectors_))
    np.testing.assert_allclose(dense(ours.dual_coef_), dense(theirs.dual_coef_), atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-9, atol=1e-9)
    assert ours.fit_status_ == theirs.fit_status_
    assert ours.shape_fit_ == theirs.shape_fit_
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9, atol=1e-9)
    if hasattr(theirs, "decision_function"):
        expected = theirs.decision_function(X)
        np.testing.assert_allclose(ours.decision_function(X), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array, sp.coo_array])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", CLASSES)
def test_same_path_and_machine(name: str, kernel: str, container: Any) -> None:
    X, y = make_data(name)
    X = container(X)
    ours, theirs = make_pair(name, kernel=kernel)
    assert_same_machine(ours.fit(X, y), theirs.fit(X, y), X)


@pytest.mark.parametrize("name", CLASSES)
def test_same_machine_from_a_precomputed_and_from_a_callable_kernel(name: str) -> None:
    X, y = make_data(name)
    ours, theirs = make_pair(name, kernel="precomputed")
    gram = laplacian_kernel(X)
    assert_same_machine(ours.fit(gram, y), theirs.fit(gram, y), gram)
    by_call, _ = make_pair(name, kernel=laplacian_kernel)
    by_call.fit(X, y)
    np.testing.assert_array_equal(by_call.n_iter_, ours.n_iter_)
    np.testing.assert_array_equal(by_call.predict(X), ours.predict(gram))


@pytest.mark.parametrize("name", CLASSES)
def test_same_machine_with_sample_weights_and_rows_left_out(name: str) -> None:
    X, y = make_data(name)
    weight = np.random.default_rng(0).choice([-1.0, 0.0, 0.5, 1.0, 2.0], size=len(y))
    ours, theirs = make_pair(name, kernel="linear")
    ours.fit(X, y, sample_weight=weight)
    theirs.fit(X, y, sample_weight=weight)
    # scikit-learn counts support_ among the rows it kept, dpsvm among the rows it was given.
    np.testing.assert_array_equal(ours.support_, np.flatnonzero(weight > 0)[theirs.support_])
    theirs.support_ = ours.support_
    assert_same_machine(ours, theirs, X)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.1, 2: 5.0}])
@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_same_machine_with_class_weights(name: str, class_weight: Any) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[:120], y[:120]
    ours, theirs = make_pair(name, class_weight=class_weight)
    assert_same_machine(ours.fit(X, y), theirs.fit(X, y), X)
    np.testing.assert_array_equal(ours.class_weight_, theirs.class_weight_)


@pytest.mark.parametrize("options", [{"shrinking": False}, {"gamma": "auto"}, {"gamma": 0.3}])
@pytest.mark.parametrize("options2", [{"tol": 1e-6}, {"cache_size": 0.01}])
def test_same_machine_with_other_options(options: dict[str, Any], options2: dict[str, Any]) -> None:
    X, y = make_classification(400, flip_y=0.2, random_state=1)
    ours, theirs = make_pair("SVC", C=10.0, **options, **options2)
    assert_same_machine(ours.fit(X, y), theirs.fit(X, y), X)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_same_decision_function_for_four_classes(shape: str) -> None:
    X, y = make_classification(200, n_classes=4, n_informative=5, flip_y=0.3, random_state=3)
    labels = np.array(["d", "a", "c", "b"])[y]
    ours, theirs = make_pair("SVC", decision_function_shape=shape)
    ours.fit(X, labels), theirs.fit(X, labels)
    values = ours.decision_function(X)
    np.testing.assert_allclose(values, theirs.decision_function(X), rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", CLASSES)
def test_same_coef(name: str, container: Any) -> None:
    X, y = make_data(name)
    X = container(X)
    ours, theirs = make_pair(name, kernel="linear")
    ours.fit(X, y), theirs.fit(X, y)
    np.testing.assert_allclose(dense(ours.coef_), dense(theirs.coef_), atol=1e-8)
    assert sp.issparse(ours.coef_) == sp.issparse(X)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["SVC", "SVR", "OneClassSVM"])
def test_float32_rows_reach_the_same_optimum(name: str, kernel: str) -> None:
    X, y = make_data(name)
    ours, theirs = make_pair(name, kernel=kernel, tol=1e-5)
    ours.fit(X.astype(np.float32), y)
    theirs.fit(X.astype(np.float32).astype(np.float64), y)
    assert ours.support_vectors_.dtype == np.float32
    values, expected = ours.predict(X), theirs.predict(X)
    if name == "SVR":
        np.testing.assert_allclose(values, expected, atol=1e-2 * np.abs(expected).max())
    else:
        assert np.mean(values == expected) > 0.97


@pytest.mark.parametrize("name", CLASSES)
def test_parameters_are_scikit_learns_in_order_and_default_and_then_ours(name: str) -> None:
    ours = inspect.signature(getattr(dpsvm, name)).parameters
    theirs = dict(inspect.signature(getattr(svm, name)).parameters)
    assert [p for p in ours if p not in EXTRA and p != "random_state"] == [
        p for p in theirs if p != "random_state"
    ]
    assert [p for p in ours if p in EXTRA] == list(EXTRA)
    assert all(ours[p].default == theirs[p].default for p in theirs)
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in ours.values())


@pytest.mark.parametrize("name", CLASSES)
def test_fitted_attributes_are_scikit_learns_and_ours(name: str) -> None:
    X, y = make_data(name)
    ours, theirs = make_pair(name, kernel="linear")
    ours.fit(X, y), theirs.fit(X, y)

    def fitted(estimator):
        return {key for key in dir(estimator) if key.endswith("_") and not key.startswith("_")}

    new = {"stop_reason_", "dual_gap_", "objective_", "n_selections_", "privacy_guarantee_"}
    assert fitted(ours) == fitted(theirs) | new
    assert ours.n_features_in_ == theirs.n_features_in_
    assert type(ours.n_iter_) is type(theirs.n_iter_)
