"""Which data the estimators accept, and that the caller's arrays stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_classification

from dpsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from dpsvm.rows import all_finite, scale_gamma

ALL = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)


@pytest.fixture
def blobs():
    return make_classification(300, 8, n_informative=4, flip_y=0.2, random_state=0)


def assert_same_fit(first, second):
    for name in ("support_", "dual_coef_", "intercept_", "n_iter_"):
        a, b = getattr(first, name), getattr(second, name)
        a, b = (v.toarray() if sp.issparse(v) else v for v in (a, b))
        np.testing.assert_array_equal(a, b, err_msg=name)


def test_inputs_and_parameters_are_never_changed(blobs: Any) -> None:
    X, y = blobs
    weight = np.ones(len(y))
    weight[:5] = 0
    copies = X.copy(), y.copy(), weight.copy()
    for estimator in ALL:
        machine = estimator()
        before = machine.get_params()
        machine.fit(X, y, sample_weight=weight).predict(X)
        assert machine.get_params() == before
    for array, copy in zip((X, y, weight), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_read_only_and_memory_mapped_rows(blobs: Any, tmp_path: Path) -> None:
    X, y = blobs
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    frozen = X.copy()
    frozen.flags.writeable = False
    reference = SVC().fit(X, y)
    for rows in (mapped, frozen):
        machine = SVC().fit(rows, y)
        assert_same_fit(machine, reference)
        assert type(machine.support_vectors_) is np.ndarray
        np.testing.assert_array_equal(machine.predict(rows), reference.predict(X))


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_csr_with_wide_indices_and_read_only_arrays(blobs: Any, container: type) -> None:
    X, y = blobs
    wide = container(X)
    reference = SVC().fit(wide, y)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for array in (wide.data, wide.indices, wide.indptr):
        array.flags.writeable = False
    machine = SVC().fit(wide, y)
    assert_same_fit(machine, reference)
    np.testing.assert_array_equal(machine.predict(wide), reference.predict(container(X)))
    assert wide.indices.dtype == np.int64


def test_unsorted_and_repeated_indices_are_understood_and_left_as_they_are() -> None:
    data = np.array([1.0, 2.0, 1.0, 5.0, -1.0, -2.0])
    indices = np.array([2, 0, 2, 1, 1, 0])
    indptr = np.array([0, 3, 4, 6])
    messy = sp.csr_array((data.copy(), indices.copy(), indptr.copy()), shape=(3, 3))
    y = [0, 1, 0]
    machine = SVC(kernel="linear").fit(messy, y)
    np.testing.assert_allclose(
        machine.decision_function(messy),
        SVC(kernel="linear").fit(messy.toarray(), y).decision_function(messy.toarray()),
    )
    np.testing.assert_array_equal(messy.data, data)
    np.testing.assert_array_equal(messy.indices, indices)


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_float32_is_kept(estimator: type, container: Any, blobs: Any) -> None:
    X, y = blobs
    machine = estimator().fit(container(X.astype(np.float32)), y)
    assert machine.support_vectors_.dtype == np.float32
    assert np.isfinite(machine.predict(container(X))).all()


def test_integers_and_lists_become_float64() -> None:
    machine = SVC().fit([[0, 1], [1, 0], [2, 2]], ["x", "y", "y"])
    assert machine.support_vectors_.dtype == np.float64


def test_rows_of_weight_zero_are_as_good_as_absent(blobs: Any) -> None:
    X, y = blobs
    weight = np.ones(len(y))
    weight[::3] = 0
    kept = np.flatnonzero(weight)
    for estimator in ALL:
        weighted = estimator(gamma=0.1).fit(X, y, sample_weight=weight)
        shorter = estimator(gamma=0.1).fit(X[kept], y[kept])
        np.testing.assert_array_equal(weighted.support_, kept[shorter.support_])
        np.testing.assert_array_equal(weighted.dual_coef_, shorter.dual_coef_)


def test_a_class_of_weight_zero_is_no_class() -> None:
    X, y = load_iris(return_X_y=True)
    machine = SVC(class_weight={0: 1.0, 1: 2.0, 2: 3.0}).fit(X, y, sample_weight=(y != 1))
    assert machine.classes_.tolist() == [0, 2]
    assert machine.class_weight_.tolist() == [1.0, 3.0]
    assert set(machine.predict(X)) == {0, 2}


def test_zero_weights_with_a_precomputed_kernel(blobs: Any) -> None:
    X, y = blobs
    weight = (np.arange(len(y)) % 4 > 0).astype(float)
    plain = SVC(kernel="linear").fit(X, y, sample_weight=weight)
    gram = SVC(kernel="precomputed").fit(X @ X.T, y, sample_weight=weight)
    np.testing.assert_array_equal(plain.support_, gram.support_)
    np.testing.assert_allclose(
        plain.decision_function(X), gram.decision_function(X @ X.T), rtol=1e-6, atol=1e-8
    )


def test_feature_names_are_remembered(blobs: Any) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = blobs
    frame = pandas.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    assert SVC().fit(frame, y).feature_names_in_.tolist() == frame.columns.tolist()


def test_no_support_vectors_is_a_constant() -> None:
    machine = SVR(epsilon=10.0).fit([[0.0], [1.0]], [1.0, 2.0])
    assert machine.support_.size == 0
    assert machine.support_vectors_.shape == (0, 1)
    np.testing.assert_array_equal(machine.predict([[5.0], [6.0]]), machine.intercept_[[0, 0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_scale_gamma_of_sparse_rows_is_that_of_dense_ones(
    dtype: type, offset: float, share: float
) -> None:
    rng = np.random.default_rng(0)
    dense = (rng.normal(size=(500, 4)) + offset).astype(dtype)
    dense[rng.random(dense.shape) > share] = 0
    expected = 1 / (4 * dense.astype(np.float64).var())
    assert scale_gamma(sp.csr_array(dense)) == pytest.approx(expected, rel=1e-12)
    assert scale_gamma(dense) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("value", [0.0, 1.0, 3.0, 1e6])
def test_scale_gamma_of_constant_rows_is_one(value: float) -> None:
    dense = np.full((7, 3), value)
    assert scale_gamma(sp.csr_array(dense)) == scale_gamma(dense) == 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 3, 8, 784])
def test_scale_gamma_is_numpys_variance_to_the_bit(dtype: type, columns: int) -> None:
    random = np.random.default_rng(columns)
    for size in (5, 8, 129, 65_535, 65_536, 65_537, 131_080, 200_001, 2**20 + 8, 1_234_567):
        scale, offset = random.choice([1e-3, 1.0, 1e5]), random.choice([0.0, 100.0])
        X = random.normal(offset, scale, (max(size // columns, 2), columns)).astype(dtype)
        expected = 1 / (columns * X.astype(np.float64).var())
        if int(np.__version__.partition(".")[0]) < 2:  # which adds long arrays in another order
            assert scale_gamma(X) == pytest.approx(expected, rel=1e-12)
        else:
            assert scale_gamma(X) == expected


def test_scale_gamma_of_far_rows_is_finite() -> None:
    X = np.array([[1e160], [1e160 + 1e150]])  # the square of the mean is not
    assert scale_gamma(X) == 1 / X.var()


def test_all_finite_looks_into_every_block() -> None:
    for at in (0, 70_000, 199_999):
        X = np.zeros((200_000, 1))
        assert all_finite(X)
        X[at] = np.nan
        assert not all_finite(X)
        assert not all_finite(sp.csr_array(X))


def test_rows_that_lie_apart_or_in_columns_decide_as_their_copies(
    blobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsvm.svm.fitted._BLOCK", 100)
    X, y = blobs
    for rows in (X[::2], X[::-1], np.asfortranarray(X), X[:, ::-1], X[:, :1]):
        copy = rows.copy(order="C")
        machine = SVC().fit(rows, y[: len(rows)])
        reference = SVC().fit(copy, y[: len(rows)])
        assert_same_fit(machine, reference)
        np.testing.assert_array_equal(
            machine.decision_function(rows), reference.decision_function(copy)
        )
    single = SVC().fit(X.astype(np.float32), y)
    np.testing.assert_array_equal(
        single.decision_function(X), single.decision_function(X.astype(np.float32))
    )


def test_a_machine_without_support_vectors(blobs: Any) -> None:
    X, y = blobs
    machine = SVR(kernel="linear", epsilon=10.0).fit(X, y)
    assert len(machine.support_) == 0
    np.testing.assert_array_equal(machine.predict(X), np.repeat(machine.intercept_, len(X)))
