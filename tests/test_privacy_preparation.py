"""Rows of norm at most 1, each from its own record alone; random features from a public seed."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpsvm.privacy.noise import Noise
from dpsvm.privacy.preparation import Preparation, RandomFourierFeatures, clip_rows, row_norms

finite = st.floats(-1e300, 1e300, allow_subnormal=False)


def exact_norms(rows):
    return np.sqrt(np.square(rows.astype(np.longdouble)).sum(axis=1))


@given(
    arrays(np.float64, (3, 4), elements=finite),
    st.floats(1e-3, 1e3),
    st.sampled_from([0.0, 0.1, 1.0, 30.0]),
)
def test_no_prepared_row_is_longer_than_one(X: Any, data_norm: Any, constant: Any) -> None:
    prepare = Preparation(data_norm, constant)
    assert exact_norms(prepare(X)).max() <= 1
    assert exact_norms(prepare(sp.csr_array(X)).toarray()).max() <= 1


def test_no_row_of_random_features_is_longer_than_one() -> None:
    features = RandomFourierFeatures(3, 40, 2.0, seed=1)
    X = np.random.default_rng(0).normal(scale=50, size=(200, 3))
    assert np.allclose(np.linalg.norm(features(X), axis=1), 1, atol=1e-14)
    norms = exact_norms(Preparation(10.0, 1.0, features)(X))
    assert norms.max() <= 1
    assert norms.min() > 1 - 1e-8


def test_a_row_is_prepared_from_itself_alone() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 5)) * 3
    other = X.copy()
    other[7] = 1e9
    prepare = Preparation(2.0, 1.0)
    same = np.delete(np.arange(30), 7)
    assert np.array_equal(prepare(X)[same], prepare(other)[same])
    assert np.array_equal(prepare(X)[:3], prepare(X[:3]))


def test_the_constant_that_rescales_does_not_depend_on_the_row() -> None:
    rows = Preparation(1.0, 2.0)(np.array([[0.0], [0.5], [1.0]]))
    assert np.allclose(rows[:, 1], 2 / np.sqrt(5))
    assert np.allclose(rows[:, 0], np.array([0, 0.5, 1]) / np.sqrt(5))


def test_sparse_rows_stay_sparse_and_equal_the_dense_ones() -> None:
    random = np.random.default_rng(1)
    X = sp.random_array((40, 6), density=0.3, random_state=random, format="csr") * 9
    prepared = Preparation(2.0, 0.5)(X)
    assert sp.issparse(prepared)
    assert np.allclose(prepared.toarray(), Preparation(2.0, 0.5)(X.toarray()))
    features = RandomFourierFeatures(6, 5, 1.0, 0)
    assert np.allclose(features(X), features(X.toarray()))


def test_the_callers_rows_are_left_alone() -> None:
    X, S = np.full((2, 2), 9.0), sp.csr_array(np.full((2, 2), 9.0))
    clip_rows(X, 1.0)
    clip_rows(S, 1.0)
    assert np.all(X == 9)
    assert np.all(S.data == 9)


def test_huge_rows_keep_their_direction() -> None:
    assert np.allclose(clip_rows(np.array([[3e250, 4e250]]), 1.0), [[0.6, 0.8]])
    assert row_norms(np.zeros((2, 3))).tolist() == [0, 0]


def test_inner_products_of_random_features_approximate_the_kernel() -> None:
    X = np.random.default_rng(3).normal(size=(20, 3))
    features = RandomFourierFeatures(3, 20_000, 0.7, seed=5)(X)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    assert np.abs(features @ features.T - np.exp(-0.7 * squares)).max() < 0.04


def test_random_features_follow_from_the_seed_and_a_pickle_holds_nothing_else() -> None:
    features = RandomFourierFeatures(3, 1000, 0.7, seed=5)
    before = features.frequencies.copy()
    stored = pickle.dumps(features)
    assert len(stored) < 500
    assert np.array_equal(pickle.loads(stored).frequencies, before)
    assert not np.array_equal(RandomFourierFeatures(3, 1000, 0.7, seed=6).frequencies, before)


def test_the_noise_of_the_same_seed_is_another_stream() -> None:
    features = RandomFourierFeatures(1, 5000, 0.5, seed=5).frequencies.ravel()
    noise = Noise(5).gaussian(1.0, 5000)
    assert not np.intersect1d(features, noise).size
    assert abs(np.corrcoef(features, noise)[0, 1]) < 0.08


@pytest.mark.parametrize("constant", [0.0, 1.0, 3.0])
def test_coefficients_in_the_rows_own_units_decide_the_same(constant: float) -> None:
    random = np.random.default_rng(2)
    X, w = random.normal(size=(9, 4)), random.normal(size=(3, 4 + (constant > 0)))
    prepare = Preparation(100.0, constant)
    coef, intercept = prepare.unprepare(w)
    assert np.allclose(X @ coef.T + intercept, prepare(X) @ w.T)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("data_norm", [1e-150, 1e-15, 1.0, 1e150])
def test_the_largest_numbers_are_shortened_to_the_bound(form: Any, data_norm: float) -> None:
    rows = np.array([[1e308, 1e308], [1.5e308, -1.5e308], [1e-308, 0.0], [np.inf, 1.0]])
    found = Preparation(data_norm, 0.3)(form(rows))
    norms = row_norms(found)
    assert np.all(np.isfinite(norms))
    assert np.all(norms <= 1.0)


def test_entries_that_overflow_when_added_up_make_a_row_of_zeros() -> None:
    twice = sp.csr_array((np.full(2, 1e308), np.zeros(2, int), np.array([0, 2])), shape=(1, 1))
    twice.sum_duplicates()
    assert clip_rows(twice, 1.0).toarray().tolist() == [[0.0]]
