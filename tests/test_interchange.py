"""Fitted machines as scikit-learn's and back: the same decisions, the same attributes."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import scale
from sklearn.svm import _classes
from sklearn.utils.validation import check_is_fitted

import dpsvm
import dpsvm.svm.fitted
import dpsvm.svm.interchange
from dpsvm import Model, from_estimator, from_sklearn

NAMES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
FORMS: dict[str, Callable[[Any], Any]] = {
    "dense": np.asarray,
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
}


def affine(A: Any, B: Any) -> Any:
    return np.asarray((A @ B.T).todense() if sp.issparse(A) else A @ B.T) + 1.0


def problem(name: str, n_classes: int = 3) -> tuple[Any, Any]:
    if name.endswith("SVC"):
        X, y = load_iris(return_X_y=True)
        X, y = X[y < n_classes], y[y < n_classes]
    else:
        X, y = load_diabetes(return_X_y=True)
    X = scale(X)[::3]
    X[X > 1] = 0.0  # so that a sparse form leaves entries out
    return X, y[::3]


def machine(library: Any, name: str, **options: Any) -> Any:
    if name == "NuSVC":
        options = {"nu": 0.2} | options
    return getattr(library, name)(**options)


def values(one: Any, X: Any) -> Any:
    return one.decision_function(X) if hasattr(one, "decision_function") else one.predict(X)


def assert_alike(one: Any, other: Any, X: Any, *, tol: float = 1e-12) -> None:
    size = max(np.abs(values(one, X)).max(), np.abs(one.dual_coef_).sum())
    np.testing.assert_allclose(values(other, X), values(one, X), rtol=0, atol=tol * size)
    if not hasattr(one, "epsilon") and not isinstance(one, dpsvm.NuSVR | _classes.NuSVR):
        np.testing.assert_array_equal(other.predict(X), one.predict(X))


def dense(table: Any) -> Any:
    return table.toarray() if sp.issparse(table) else table


def rows_for(name: str, kernel: Any, form: str) -> tuple[Any, np.ndarray]:
    """A machine's rows in a form, or their kernel matrix, and its targets."""
    X, y = problem(name)
    if kernel == "precomputed":
        if form != "dense":
            pytest.skip("a kernel matrix is dense")
        X = X @ X.T
    return FORMS[form](X), y


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", [*KERNELS, affine])
@pytest.mark.parametrize("name", NAMES)
def test_there_and_back(name: str, kernel: Any, form: str) -> None:
    X, y = rows_for(name, kernel, form)
    ours = machine(dpsvm, name, kernel=kernel).fit(X, y)
    theirs = ours.as_sklearn()
    assert type(theirs) is getattr(sklearn.svm, name)
    check_is_fitted(theirs)
    assert_alike(ours, theirs, X)
    back = from_sklearn(theirs)
    assert type(back) is getattr(dpsvm, name)
    assert_alike(theirs, back, X)
    for one in (theirs, back):
        for attribute in ("support_", "n_support_", "intercept_", "dual_coef_", "shape_fit_"):
            expected = dense(getattr(ours, attribute))
            np.testing.assert_array_equal(dense(getattr(one, attribute)), expected)
    assert_alike(theirs, pickle.loads(pickle.dumps(theirs)), X)
    assert_alike(back, pickle.loads(pickle.dumps(back)), X)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", [*KERNELS, affine])
@pytest.mark.parametrize("name", NAMES)
def test_scikit_learns_own_fits_are_taken(name: str, kernel: Any, form: str) -> None:
    X, y = rows_for(name, kernel, form)
    theirs = machine(sklearn.svm, name, kernel=kernel).fit(X, y)
    ours = from_sklearn(theirs)
    assert_alike(theirs, ours, X)
    again = ours.as_sklearn()
    assert_alike(theirs, again, X)
    assert set(vars(again)) == set(vars(theirs))
    for attribute, expected in vars(theirs).items():
        found = getattr(again, attribute)
        if isinstance(expected, np.ndarray) and attribute != "_n_support":
            np.testing.assert_array_equal(found, expected)
        if sp.issparse(expected) and attribute != "_BaseLibSVM__Xfit":
            np.testing.assert_array_equal(found.data, expected.data)  # zeros are stored
    with pytest.raises(AttributeError):
        _ = ours.dual_gap_  # scikit-learn does not tell


@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_two_classes_and_more_have_their_signs(name: str, shape: str, n_classes: int) -> None:
    X, y = problem(name, n_classes)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    ours = machine(dpsvm, name, kernel="linear", decision_function_shape=shape).fit(X, labels)
    theirs = ours.as_sklearn()
    assert_alike(ours, theirs, X)
    assert_alike(ours, from_sklearn(theirs), X)
    size = np.abs(ours.dual_coef_).sum()
    np.testing.assert_allclose(theirs.coef_, ours.coef_, rtol=0, atol=1e-12 * size)
    assert theirs.score(X, labels) == ours.score(X, labels)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_go_through(n_classes: int, form: str, kernel: str) -> None:
    X, y = problem("SVC", n_classes)
    X = FORMS[form](X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        theirs = sklearn.svm.SVC(kernel=kernel, probability=True, random_state=0).fit(X, y)
    again = from_sklearn(theirs).as_sklearn().set_params(probability=True)
    np.testing.assert_allclose(again.predict_proba(X), theirs.predict_proba(X), rtol=1e-9)
    model = from_estimator(theirs)
    np.testing.assert_array_equal(model.prob_a, theirs._probA)
    # LIBSVM couples two classes by an iteration that ends within 0.005, as old as scikit-learn's.
    tol = 0.005 if n_classes == 2 else 1e-9
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=tol)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["dense", "csr_matrix"])
def test_the_genuine_machine_can_be_cloned_and_refitted(name: str, form: str) -> None:
    X, y = problem(name)
    X = FORMS[form](X)
    ours = machine(dpsvm, name, tol=1e-4, cache_size=50).fit(X, y)
    theirs = ours.as_sklearn()
    assert clone(theirs).get_params() == theirs.get_params()
    assert theirs.get_params()["tol"] == 1e-4
    assert values(theirs.fit(X, y), X) == pytest.approx(values(ours, X), abs=0.01)
    back = from_sklearn(theirs)
    assert clone(back).get_params()["cache_size"] == 50
    assert values(back.fit(X, y), X) == pytest.approx(values(ours, X), abs=0.01)


def test_the_settings_are_those_of_the_fit() -> None:
    X, y = problem("SVC")
    ours = dpsvm.SVC(kernel="poly", degree=2, coef0=1.0).fit(X, y)
    before = ours.decision_function(X)
    ours.set_params(kernel="sigmoid", degree=5, coef0=-1.0, gamma=7.0)
    theirs = ours.as_sklearn()
    assert (theirs.kernel, theirs.degree, theirs.coef0) == ("poly", 2, 1.0)
    np.testing.assert_allclose(theirs.decision_function(X), before, rtol=1e-12)


def test_nothing_is_shared() -> None:
    X, y = problem("SVC")
    ours = dpsvm.SVC().fit(X, y)
    before = ours.decision_function(X)
    theirs = ours.as_sklearn()
    back = from_sklearn(theirs)
    for attribute in ("support_", "support_vectors_", "dual_coef_", "intercept_", "_n_support"):
        getattr(theirs, attribute)[...] = 0
    for one in (ours, back):
        np.testing.assert_array_equal(one.decision_function(X), before)


def test_what_only_dpsvm_trains_with_is_left_out() -> None:
    X, y = problem("SVC")
    ours = dpsvm.SVC(kernel="linear", solver="decomposition", n_jobs=1, time_limit=60.0).fit(X, y)
    theirs = ours.as_sklearn()
    assert_alike(ours, theirs, X)
    assert not hasattr(theirs, "solver")


def test_float32_rows_decide_to_single_precision() -> None:
    X, y = problem("SVC")
    ours = dpsvm.SVC().fit(X.astype(np.float32), y)
    theirs = ours.as_sklearn()
    assert theirs.support_vectors_.dtype == np.float64
    assert_alike(ours, theirs, X.astype(np.float32), tol=1e-6)


def test_indices_of_64_bits_become_32() -> None:
    X, y = problem("SVC")
    rows = sp.csr_matrix(X)
    wide = rows.copy()
    wide.indices, wide.indptr = (part.astype(np.int64) for part in (wide.indices, wide.indptr))
    theirs = dpsvm.SVC().fit(wide, y).as_sklearn()
    assert theirs.support_vectors_.indices.dtype == np.int32
    assert_alike(dpsvm.SVC().fit(rows, y), theirs, rows)


def test_more_entries_than_32_bits_count_are_refused() -> None:
    """An array that large is not made here; only its size is read before the error."""
    X, y = problem("SVC")
    ours = dpsvm.SVC().fit(sp.csr_matrix(X), y)
    expansion = ours._expansion()
    expansion.support_vectors = Mock(spec=sp.csr_matrix, nnz=2**31)
    with (
        patch.object(ours, "_expansion", return_value=expansion),
        pytest.raises(ValueError, match="at most 2147483647 entries, and these are 2147483648"),
    ):
        ours.as_sklearn()


@pytest.mark.parametrize("form", FORMS)
def test_a_machine_without_support_vectors(form: str) -> None:
    X, y = problem("SVR")
    X, y = FORMS[form](X), y / 1000
    ours = dpsvm.SVR(epsilon=10.0).fit(X, y)
    assert ours.n_support_.tolist() == [0]
    assert_alike(ours, ours.as_sklearn(), X)
    theirs = sklearn.svm.SVR(epsilon=10.0).fit(X, y)
    assert_alike(theirs, from_sklearn(theirs), X)


def test_a_derived_class_becomes_the_class_it_derives_from() -> None:
    class Mine(dpsvm.SVC):
        pass

    class Theirs(sklearn.svm.SVC):
        pass

    X, y = problem("SVC")
    assert type(Mine().fit(X, y).as_sklearn()) is sklearn.svm.SVC
    assert type(from_sklearn(Theirs().fit(X, y))) is dpsvm.SVC


def test_unfitted_machines_are_refused() -> None:
    for convert in (dpsvm.SVC().as_sklearn, lambda: from_sklearn(sklearn.svm.SVC())):
        with pytest.raises(NotFittedError, match="This SVC instance is not fitted yet"):
            convert()
    for unfitted in (dpsvm.SVC(), sklearn.svm.SVC()):
        with pytest.raises(NotFittedError, match="This SVC instance is not fitted yet"):
            from_estimator(unfitted)


@pytest.mark.parametrize("convert", [from_sklearn, from_estimator])
def test_other_estimators_are_named(convert: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"got sklearn\.svm\._classes\.LinearSVC"):
        convert(sklearn.svm.LinearSVC())
    with pytest.raises(ValueError, match=r"got builtins\.NoneType"):
        convert(None)


def test_altered_machines_are_refused() -> None:
    X, y = problem("SVC")
    ours, theirs = dpsvm.SVC().fit(X, y), sklearn.svm.SVC().fit(X, y)
    ours.dual_coef_ = ours.dual_coef_[:, 1:]
    theirs._dual_coef_ = theirs._dual_coef_[:, 1:]
    with pytest.raises(ValueError, match="internal representation of SVC was altered"):
        ours.as_sklearn()
    with pytest.raises(ValueError, match="internal representation of SVC was altered"):
        from_sklearn(theirs)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", NAMES)
def test_scikit_learns_machines_become_libsvm_model_files(
    name: str, kernel: str, tmp_path: Path
) -> None:
    X, y = problem(name)
    X = X @ X.T if kernel == "precomputed" else X
    theirs = machine(sklearn.svm, name, kernel=kernel).fit(X, y)
    from_estimator(theirs).save(tmp_path / "model")
    model = Model.load(tmp_path / "model")
    if name.endswith("SVC"):
        theirs.decision_function_shape = "ovo"
    expected = values(theirs, X).reshape(len(X), -1)
    size = max(np.abs(expected).max(), np.abs(theirs.dual_coef_).sum())
    np.testing.assert_allclose(model.decision_values(X), expected, rtol=0, atol=1e-12 * size)
    if name not in ("SVR", "NuSVR"):
        np.testing.assert_array_equal(model.predict(X), theirs.predict(X))


def test_a_callable_kernel_has_no_model_file() -> None:
    X, y = problem("SVC")
    for library in (dpsvm, sklearn.svm):
        with pytest.raises(ValueError, match="cannot hold a callable kernel"):
            from_estimator(library.SVC(kernel=affine).fit(X, y))
