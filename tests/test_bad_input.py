"""Bad input is refused with a ValueError that says what is wrong; nothing ever crashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from dpsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

ALL = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
X = np.array([[-2.0, -1.0], [-1.0, -1.0], [-1.0, -2.0], [1.0, 1.0], [1.0, 2.0], [2.0, 1.0]])
Y = np.array([1, 1, 1, 2, 2, 2])

BAD_PARAMETERS = [
    ("kernel", "gauss"),
    ("kernel", None),
    ("degree", -1),
    ("degree", 2.5),
    ("gamma", -1.0),
    ("gamma", np.nan),
    ("gamma", "wide"),
    ("coef0", np.inf),
    ("tol", 0.0),
    ("tol", np.nan),
    ("tol", np.inf),
    ("cache_size", 0),
    ("cache_size", -1.0),
    ("max_iter", -2),
    ("max_iter", 1.5),
    ("shrinking", "yes"),
    ("selector", "wss9"),
    ("selection_epsilon", 0.0),
    ("selection_epsilon", np.nan),
    ("sigma", 0.0),
    ("sigma", 1.0),
    ("time_limit", 0.0),
    ("time_limit", np.nan),
    ("n_jobs", 0),
    ("n_jobs", 2**40),
    ("n_jobs", 1.5),
    ("random_state", -1),
]


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS)
def test_a_bad_parameter_is_named_with_its_value(estimator: type, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"The '{name}' parameter of .* Got .*{value}"):
        estimator(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        (SVC, "C", 0.0),
        (SVC, "C", -1.0),
        (SVC, "C", np.nan),
        (SVR, "C", -1.0),
        (SVR, "epsilon", -0.1),
        (SVR, "epsilon", np.nan),
        (NuSVR, "C", 0.0),
        (NuSVC, "nu", 0.0),
        (NuSVR, "nu", 1.5),
        (OneClassSVM, "nu", np.nan),
        (SVC, "class_weight", "even"),
        (SVC, "decision_function_shape", "all"),
        (NuSVC, "break_ties", "maybe"),
    ],
)
def test_a_bad_parameter_of_one_machine_is_named_with_its_value(
    estimator: type, name: str, value: Any
) -> None:
    with pytest.raises(ValueError, match=rf"The '{name}' parameter of .* Got .*{value}"):
        estimator(**{name: value}).fit(X, Y)


def with_value(value):
    changed = X.copy()
    changed[2, 1] = value
    return changed


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (with_value(np.nan), "NaN"),
        (with_value(np.inf), "infinity"),
        (sp.csr_array(with_value(np.nan)), "NaN"),
        (np.empty((0, 2)), "0 sample"),
        (np.empty((6, 0)), "0 feature"),
        (X[0], "Expected 2D array"),
        (X[:, :, None], "dim 3"),
        (X.astype(complex), "Complex data not supported"),
        ([["a", "b"]] * 6, "could not convert string to float"),
    ],
)
def test_bad_rows(estimator: type, rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimator().fit(rows, Y)


@pytest.mark.parametrize("estimator", [SVC, NuSVC, SVR, NuSVR])
@pytest.mark.parametrize("kernel", ["rbf", lambda a, b: a @ b.T])
@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Y[:-1], "inconsistent numbers of samples"),
        ([1.0, 1.0, 1.0, 2.0, 2.0, np.nan], "NaN"),
        ([1.0, 1.0, 1.0, 2.0, 2.0, np.inf], "infinity"),
        (np.ones((6, 2)), "should be a 1d array|multi"),
        (None, "y"),
    ],
)
def test_bad_targets(estimator: type, kernel: Any, target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimator(kernel=kernel).fit(X, target)


@pytest.mark.parametrize("estimator", [SVC, NuSVC])
def test_labels_must_be_labels_of_two_classes_or_more(estimator: type) -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        estimator().fit(X, Y + 0.5)
    with pytest.raises(ValueError, match="classes has to be greater than one; got 1 class"):
        estimator().fit(X, np.ones(6))


@pytest.mark.parametrize("estimator", [SVR, NuSVR])
def test_regression_targets_must_be_numbers(estimator: type) -> None:
    with pytest.raises(ValueError, match=r"could not convert string to float: .*'a'"):
        estimator().fit(X, ["a"] * 6)


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(6), "all samples have zero or negative weights"),
        (-np.ones(6), "all samples have zero or negative weights"),
        (np.ones(5), r"incompatible shapes: \(5,\) for 6 samples"),
        (np.ones((6, 1)), r"incompatible shapes: \(6, 1\)"),
        (np.array([1.0, 1.0, 1.0, 1.0, 1.0, np.nan]), "sample_weight contains NaN"),
        (np.array([1.0, 1.0, 1.0, 1.0, 1.0, np.inf]), "sample_weight contains infinity"),
        (["a"] * 6, "could not convert string to float"),
    ],
)
def test_bad_sample_weights(estimator: type, weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimator().fit(X, Y, sample_weight=weight)


def test_weights_that_leave_one_class() -> None:
    weight = [1, 1, 1, 0, 0, 0]
    with pytest.raises(ValueError, match="positive weights belong to the same class"):
        SVC().fit(X, Y, sample_weight=weight)
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        NuSVC().fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_bad_class_weights(weight: float) -> None:
    with pytest.raises(ValueError, match="class_weight must be positive and finite"):
        SVC(class_weight={1: weight}).fit(X, Y)


def test_infeasible_nu() -> None:
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        NuSVC(nu=0.9).fit(X, [1, 2, 2, 2, 2, 2])


@pytest.mark.parametrize("estimator", ALL)
def test_bad_kernel_matrices(estimator: type) -> None:
    with pytest.raises(ValueError, match=r"must be a square matrix\. Input is a 6x2 matrix"):
        estimator(kernel="precomputed").fit(X, Y)
    with pytest.raises(TypeError, match="Sparse precomputed kernels are not supported"):
        estimator(kernel="precomputed").fit(sp.eye_array(6, format="csr"), Y)
    for result, message in ((X, "6x2 matrix for 6"), (np.eye(5), "5x5"), ([1.0], "2D")):
        with pytest.raises(ValueError, match=message):
            estimator(kernel=lambda a, b, result=result: result).fit(X, Y)
    with pytest.raises(ValueError, match="kernel contains NaN"):
        estimator(kernel=lambda a, b: np.full((6, 6), np.nan)).fit(X, Y)


@pytest.mark.parametrize("estimator", ALL)
def test_rows_too_large_for_the_kernel(estimator: type) -> None:
    rows = np.finfo(np.float64).max * np.random.default_rng(0).uniform(size=(6, 2))
    with pytest.raises(ValueError, match="The dual coefficients or intercepts are not finite"):
        estimator(kernel="linear").fit(rows, Y)


@pytest.mark.parametrize("estimator", ALL)
def test_bad_queries(estimator: type) -> None:
    machine = estimator().fit(X, Y)
    for rows, message in (
        (X[:, :1], "expecting 2 features"),
        (with_value(np.nan), "NaN"),
        (np.empty((0, 2)), "0 sample"),
        (sp.csr_array(X), "cannot use sparse input .* trained on dense data"),
    ):
        with pytest.raises(ValueError, match=message):
            machine.predict(rows)
    with pytest.raises(ValueError, match="not fitted"):
        estimator().predict(X)
    gram = estimator(kernel="precomputed").fit(X @ X.T, Y)
    with pytest.raises(ValueError, match="expecting 6 features"):
        gram.predict(X)
    called = estimator(kernel=lambda a, b: np.asarray(a) @ b.T).fit(X, Y)
    called._kernel_rows = X[:3]
    with pytest.raises(ValueError, match=r"X.shape\[1\] = 3 should be equal to 6"):
        called.predict(X)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_a_query_beyond_single_precision_is_refused() -> None:
    machine = SVC().fit(X.astype(np.float32), Y)
    with pytest.raises(ValueError, match="infinity"):
        machine.predict([[1e300, 0.0]])


def csr(data=(1.0, 1.0), indices=(0, 1), indptr=(0, 1, 2)):
    """A CSR array over arrays of our choice, whatever scipy would say about them."""
    array = sp.csr_array((2, 2))
    array.data, array.indices = np.array(data), np.array(indices)
    array.indptr = np.array(indptr)
    array.has_canonical_format = array.has_sorted_indices = True
    return array


@pytest.mark.parametrize(
    "rows",
    [
        csr(indices=(0, 2)),
        csr(indices=(0, -1)),
        csr(indices=(0, 10**9)),
        csr(indptr=(0, 2, 1)),
        csr(indptr=(0, 1, 9)),
        csr(indptr=(1, 1, 2)),
        csr(indptr=(0, 2)),
    ],
    ids=range(7),
)
def test_malformed_csr_is_refused_in_fit_and_predict(rows: Any) -> None:
    machine = SVC().fit(sp.csr_array(np.eye(2)), [0, 1])
    with pytest.raises(ValueError):  # noqa: PT011, scipy words these
        SVC().fit(rows, [0, 1])
    with pytest.raises(ValueError):  # noqa: PT011
        machine.predict(rows)


def nan_in(array):
    changed = (array.toarray() if sp.issparse(array) else array).astype(float)
    changed.flat[0] = np.nan
    return changed


TAMPERING = [
    ("support_vectors_", lambda v: v[:-1]),
    ("support_vectors_", lambda v: v[:, :1]),
    ("support_vectors_", lambda v: v.astype(np.int64)),
    ("support_vectors_", lambda v: v.astype(object)),
    ("support_vectors_", nan_in),
    ("support_vectors_", lambda v: None),
    ("support_vectors_", lambda v: v[0]),
    ("dual_coef_", lambda v: v[:, :-1]),
    ("dual_coef_", lambda v: v[:0]),
    ("dual_coef_", nan_in),
    ("dual_coef_", lambda v: v.astype(complex)),
    ("dual_coef_", lambda v: v.astype(str)),
    ("dual_coef_", lambda v: None),
    ("intercept_", lambda v: v[:0]),
    ("intercept_", lambda v: np.append(v, 0.0)),
    ("intercept_", nan_in),
    ("intercept_", lambda v: None),
    ("n_support_", lambda v: v + 1),
    ("n_support_", lambda v: v[:-1]),
    ("n_support_", lambda v: v.astype(float)),
    ("n_support_", lambda v: v * 1_000_000),
    ("n_support_", lambda v: -v),
    ("n_support_", lambda v: np.append(v, 0)),
    ("n_support_", lambda v: None),
]


@pytest.mark.parametrize(("name", "tamper"), TAMPERING)
@pytest.mark.parametrize("estimator", ALL)
def test_an_altered_machine_is_refused(estimator: type, name: str, tamper: Any) -> None:
    rows, labels = load_iris(return_X_y=True)
    machine = estimator().fit(rows, labels)
    setattr(machine, name, tamper(getattr(machine, name)))
    with pytest.raises(ValueError, match=f"representation of {estimator.__name__} was altered"):
        machine.predict(rows)


@pytest.mark.parametrize("counts", [[1_000_000, 0], [2, -1]])
def test_counts_altered_in_place_are_refused(counts: list[int]) -> None:
    machine = SVC(kernel="linear").fit(X, Y)
    machine.n_support_[:] = counts
    with pytest.raises(ValueError, match="The internal representation of SVC was altered"):
        machine.predict(X)


@pytest.mark.parametrize("support", [[0, 6], [-1, 2], [0], [0.0, 1.0], [0, 2**40]])
def test_support_altered_under_a_precomputed_kernel_is_refused(support: list[float]) -> None:
    machine = SVC(kernel="precomputed").fit(X @ X.T, Y)
    machine.support_ = np.array(support)
    with pytest.raises(ValueError, match="was altered: support_"):
        machine.predict(X @ X.T)


@pytest.mark.parametrize("field", ["indices", "indptr"])
def test_sparse_support_vectors_altered_inside_are_refused(field: str) -> None:
    machine = SVC().fit(sp.csr_array(X), Y)
    getattr(machine.support_vectors_, field)[-1] = 1_000_000
    with pytest.raises(ValueError, match="was altered"):
        machine.predict(X)
