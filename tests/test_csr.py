"""Our compressed rows do what scipy's do."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from scipy import sparse

import dpsvm._csr
from dpsvm import _core
from dpsvm._csr import Csr, is_sparse


def both(shape: tuple[int, int] = (7, 9), seed: int = 0) -> tuple[Csr, sparse.csr_array]:
    random = np.random.default_rng(seed)
    X = sparse.random_array(shape, density=0.4, format="csr", random_state=random)
    X.sort_indices()
    return Csr.of(X), X


def assert_same(ours: Csr, theirs: sparse.csr_array) -> None:
    assert ours.shape == theirs.shape
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    assert ours.indices.dtype == ours.indptr.dtype == np.int32


def test_docstrings() -> None:
    assert doctest.testmod(dpsvm._csr).failed == 0


@pytest.mark.parametrize(
    "rows",
    [
        slice(2, 5),
        slice(None),
        slice(4, 4),
        slice(5, 100),
        slice(20, 30),
        np.array([6, 0, 0, 3]),
        np.array([], dtype=np.intp),
    ],
    ids=str,
)
def test_some_rows(rows: slice | np.ndarray) -> None:
    ours, theirs = both()
    assert_same(ours[rows], theirs[rows])
    assert_same(ours[rows][:1], theirs[rows][:1])


@pytest.mark.parametrize("shape", [(7, 9), (0, 3), (3, 0), (1, 1)])
def test_dense_and_back(shape: tuple[int, int]) -> None:
    ours, theirs = both(shape)
    assert np.array_equal(ours.toarray(), theirs.toarray())
    assert_same(Csr.of(theirs.toarray()), theirs)
    assert_same(Csr.of(theirs.tocoo()), theirs)
    assert (ours.to_scipy() != theirs).nnz == 0


def test_some_columns() -> None:
    ours, theirs = both()
    for columns in ([0, 3, 8], [], list(range(9)), [8]):
        chosen = np.array(columns, dtype=np.int64)
        assert np.array_equal(ours.columns(chosen), theirs.toarray()[:, chosen])


def test_zeros_are_dropped_and_columns_added() -> None:
    ours, theirs = both()
    theirs = theirs.copy()
    ours.data[::2] = theirs.data[::2] = 0.0
    theirs.eliminate_zeros()
    assert_same(ours.without_zeros(), theirs)
    assert ours.widened(12).shape == (7, 12)
    assert np.array_equal(ours.widened(12).toarray()[:, :9], ours.toarray())


def test_duplicates_of_scipys_are_summed_and_the_caller_keeps_his_own() -> None:
    parts = (np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 3]))
    X = sparse.csr_array(parts, shape=(1, 2))
    assert Csr.of(X).toarray().tolist() == [[4.0, 3.0]]
    assert X.nnz == 3


def test_scipy_is_told_from_plain_arrays() -> None:
    ours, theirs = both()
    assert [is_sparse(X) for X in (ours, theirs, theirs.tocoo(), np.eye(2), [[1.0]])] == [
        *(False, True, True, False, False)
    ]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_core_takes_them_as_scipys(kernel: str) -> None:
    ours, theirs = both((40, 5))
    y = (np.arange(40) % 2).astype(np.float64)
    options = {"machine": "c-svc", "kernel": kernel, "gamma": 0.5}
    a, b = (_core.train(X, y, **options) for X in (ours, theirs))
    assert np.array_equal(a.dual_coef, b.dual_coef)
    assert np.array_equal(a.support, b.support)
