"""Far from the origin rbf decides as exactly as near it: against sums in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import exp, fsum
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm

from dpsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from dpsvm.svm.interchange import from_sklearn

GAMMA = 0.25
MACHINES = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
OFFSETS = (0.0, 1e3, 1e5, 1e6, 1e8)


def cloud(offset: Any, n: int = 40, d: int = 4) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d)) + offset


def signs(X: np.ndarray) -> np.ndarray:
    return (np.arange(len(X)) % 3 == 0) ^ (X[:, 0] > np.median(X[:, 0]))


def values(machine: Any, X: Any) -> np.ndarray:
    decide = getattr(machine, "decision_function", machine.predict)
    return np.asarray(decide(X))


def squared_distance(x: np.ndarray, z: np.ndarray) -> Fraction:
    apart = x != z
    differences = [Fraction(a) - Fraction(b) for a, b in zip(x[apart], z[apart], strict=True)]
    return sum((d * d for d in differences), Fraction(0))


def exact(machine: Any, X: Any) -> np.ndarray:
    """The sums over the machine's own support vectors."""
    arrays = (machine.dual_coef_, machine.support_vectors_, X)
    coef, vectors, rows = (A.toarray() if sp.issparse(A) else np.asarray(A) for A in arrays)
    vectors, rows = vectors.astype(np.float64), rows.astype(np.float64)
    kernels = [[exp(-GAMMA * squared_distance(x, z)) for z in vectors] for x in rows]
    return np.array([fsum([machine.intercept_[0], *(coef[0] * k)]) for k in kernels])


def off(machine: Any, X: Any) -> float:
    """The largest error, as a share of what the terms of a sum add up to."""
    terms = np.abs(machine.dual_coef_).sum() + abs(float(machine.intercept_[0]))
    return float(np.abs(values(machine, X) - exact(machine, X)).max() / terms)


@pytest.mark.parametrize("offset", [*OFFSETS, 3.0, 10.0, 30.0])
@pytest.mark.parametrize("estimator", MACHINES)
def test_at_any_offset(estimator: Any, offset: float) -> None:
    X = cloud(offset)
    assert off(estimator(gamma=GAMMA).fit(X, signs(X)), X[::2]) < 1e-14


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_one_far_column(container: Any, offset: float) -> None:
    X = cloud([0, 0, offset, 0])
    assert off(SVC(gamma=GAMMA).fit(container(X), signs(X)), container(X[::2])) < 1e-14


@pytest.mark.parametrize("offset", OFFSETS)
def test_two_far_clusters(offset: float) -> None:
    X = cloud(np.where(np.arange(40) % 2, offset, -offset)[:, None])
    assert off(SVC(gamma=GAMMA).fit(X, signs(X)), X[:20]) < 1e-14


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("columns", [4, 400])  # written out, and compared entry by entry
def test_sparse_rows(columns: int, offset: float) -> None:
    random = np.random.default_rng(1)
    X = np.zeros((40, columns))
    for row, entries in zip(X, cloud(offset), strict=True):
        places = random.choice(columns if offset == 0 else min(columns, 6), 4, replace=False)
        row[places] = entries
    rows = sp.csr_array(X)
    machine = SVC(gamma=GAMMA).fit(rows, signs(cloud(0)))
    assert off(machine, rows[::2]) < 1e-14
    np.testing.assert_array_equal(values(machine, rows)[::2], values(machine, rows[::2]))


@pytest.mark.parametrize("offset", [1e3, 1e5, 1e6])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_float32(container: Any, offset: float) -> None:
    X = cloud(offset).astype(np.float32)
    machine = SVC(gamma=GAMMA).fit(container(X), signs(X))
    assert off(machine, container(X[::2])) < 1e-14


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_batch_is_alone_whatever_the_company_and_the_threads(container: Any) -> None:
    X = np.concatenate([cloud(offset) for offset in (0.0, 5.0, 1e3, 1e8)])
    machine = SVC(gamma=GAMMA, n_jobs=1).fit(container(X), np.arange(len(X)) % 2)
    together = values(machine, container(X))
    alone = [values(machine, container(X[k : k + 1]))[0] for k in range(len(X))]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together, values(machine.set_params(n_jobs=3), container(X)))


def test_dense_and_sparse_rows_have_the_same_bits() -> None:
    X = cloud(1e6)
    dense = SVC(gamma=GAMMA).fit(X, signs(X))
    sparse = SVC(gamma=GAMMA).fit(sp.csr_array(X), signs(X))
    np.testing.assert_array_equal(values(dense, X), values(sparse, sp.csr_array(X)))


def test_whole_numbers_are_exact_either_way() -> None:
    X = np.random.default_rng(0).integers(0, 30, (60, 5)).astype(float)
    machine = SVC(gamma=GAMMA).fit(X, np.arange(60) % 2)
    far = np.concatenate([X, [[0.5] * 5]])  # this one's company is not whole any more
    np.testing.assert_array_equal(values(machine, X), values(machine, far)[:-1])


def test_rows_whose_squares_overflow() -> None:
    X = np.array([[1e200], [1e200 + 1e185], [0.0], [1.0]])
    machine = SVC(gamma=GAMMA).fit(X[2:], [0, 1])
    np.testing.assert_array_equal(values(machine, X[:2]), [machine.intercept_[0]] * 2)


def test_scikit_learn_agrees() -> None:
    X = cloud(1e5)
    theirs = sklearn.svm.SVC(gamma=GAMMA).fit(X, signs(X))
    ours = from_sklearn(theirs)
    np.testing.assert_allclose(values(ours, X), values(theirs, X), rtol=0, atol=1e-14)
