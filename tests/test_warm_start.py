"""Fits that continue from the last one: the same optimum, whatever has changed since."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.metrics.pairwise import rbf_kernel

import dpsvm

MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")


def make_data(name):
    if name.endswith("SVR"):
        X, y = make_regression(120, 5, noise=5.0, random_state=0)
        return X, y / np.abs(y).max()
    return make_classification(
        120, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=0
    )


def total(machine, name):
    return np.sum(getattr(machine, name))


@pytest.mark.parametrize("name", MACHINES)
def test_the_same_fit_again_has_nothing_to_do(name: str) -> None:
    X, y = make_data(name)
    machine = getattr(dpsvm, name)(warm_start=True, shrinking=False).fit(X, y)
    before, steps = machine.objective_, total(machine, "n_iter_")
    machine.fit(X, y)
    # dual_coef_ is the difference of a row's two coefficients, and with nu both may be positive.
    assert total(machine, "n_iter_") <= (steps / 5 if name == "NuSVR" else 3) < steps / 3
    np.testing.assert_allclose(machine.objective_, before, rtol=1e-3 if name == "NuSVR" else 1e-6)


@pytest.mark.parametrize(
    ("name", "setting", "values"),
    [
        ("SVC", "C", [0.01, 1.0, 100.0, 0.1]),
        ("SVR", "C", [0.01, 1.0, 100.0, 0.1]),
        ("NuSVR", "C", [0.01, 1.0, 100.0, 0.1]),
        ("NuSVC", "nu", [0.1, 0.5, 0.2]),
        ("NuSVR", "nu", [0.1, 0.9, 0.2]),
        ("OneClassSVM", "nu", [0.1, 0.9, 0.2]),
        ("SVC", "gamma", [0.01, 1.0, 100.0]),
        ("SVC", "kernel", ["rbf", "linear", "poly", "sigmoid"]),
        ("SVC", "selector", ["wss2", "wss1"]),
        ("SVC", "class_weight", [None, {0: 5.0}, {1: 0.01}]),
    ],
)
def test_a_path_of_settings_ends_at_the_cold_optima(
    name: str, setting: str, values: list[Any]
) -> None:
    X, y = make_data(name)
    machine = getattr(dpsvm, name)(warm_start=True, tol=1e-6)
    for value in values:
        machine.set_params(**{setting: value}).fit(X, y)
        cold = clone(machine).set_params(warm_start=False).fit(X, y)
        assert np.all(np.array(machine.stop_reason_) == "stationary")
        if value != "sigmoid":  # not convex: any stationary point will do
            # nu-svc divides by r, and with it its tolerance.
            tolerance = 1e-3 if name == "NuSVC" else 1e-6
            np.testing.assert_allclose(machine.objective_, cold.objective_, rtol=tolerance)


def test_it_saves_iterations_on_a_path_of_nu() -> None:
    X, _ = make_data("OneClassSVM")
    warm = dpsvm.OneClassSVM(warm_start=True)
    saved = 0
    for nu in (0.2, 0.3, 0.4, 0.5):
        saved += dpsvm.OneClassSVM(nu=nu).fit(X).n_iter_ - warm.set_params(nu=nu).fit(X).n_iter_
    assert saved > 0


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_targets_weights_and_rows_may_change(container: Any) -> None:
    X, y = make_data("SVC")
    rng = np.random.default_rng(0)
    machine = dpsvm.SVC(warm_start=True, tol=1e-6).fit(container(X), y)
    changes = [
        (X, rng.permutation(y), None),
        (X, y, rng.uniform(-0.5, 2.0, len(y))),
        (rng.permutation(X), y, None),
        (X * 100.0, y, None),
        (X, y, np.where(y == 2, 0.0, 1.0)),  # a class goes
        (X, y, None),  # and comes back
        (X[:60], y[:60], None),
        (X[:, :2], y, None),
    ]
    for rows, targets, weight in changes:
        machine.fit(container(rows), targets, sample_weight=weight)
        cold = dpsvm.SVC(tol=1e-6).fit(container(rows), targets, sample_weight=weight)
        np.testing.assert_allclose(machine.objective_, cold.objective_, rtol=1e-6)


def test_other_labels_and_other_numbers_of_rows_begin_anew() -> None:
    X, y = make_data("SVC")
    cold = dpsvm.SVC().fit(X[:90], y[:90])
    warm = dpsvm.SVC(warm_start=True).fit(X, y)
    np.testing.assert_array_equal(warm.fit(X[:90], y[:90]).n_iter_, cold.n_iter_)
    np.testing.assert_array_equal(warm.fit(X[:90], y[:90] + 5).n_iter_, cold.n_iter_)


def test_by_the_solver_that_keeps_w_and_from_kernel_matrices() -> None:
    X, y = load_iris(return_X_y=True)
    for rows, settings in (
        (X, {"kernel": "linear", "solver": "decomposition"}),
        (rbf_kernel(X), {"kernel": "precomputed"}),
        (X, {"kernel": rbf_kernel}),
    ):
        machine = dpsvm.SVC(warm_start=True, **settings).fit(rows, y)
        machine.set_params(C=3.0).fit(rows, y)
        cold = dpsvm.SVC(C=3.0, **settings).fit(rows, y)
        np.testing.assert_allclose(machine.objective_, cold.objective_, rtol=1e-4)


def test_a_failed_fit_leaves_nothing_to_continue_from() -> None:
    X, y = make_data("SVC")
    machine = dpsvm.SVC(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        machine.fit(np.full_like(X, np.nan), y)
    cold = dpsvm.SVC().fit(X, y)
    np.testing.assert_array_equal(machine.fit(X, y).n_iter_, cold.n_iter_)


def test_a_pickled_machine_continues_too() -> None:
    X, y = make_data("SVC")
    machine = pickle.loads(pickle.dumps(dpsvm.SVC(warm_start=True).fit(X, y)))
    assert total(machine.fit(X, y), "n_iter_") <= 3


def test_without_it_a_fit_forgets_the_last() -> None:
    X, y = make_data("SVC")
    machine = dpsvm.SVC().fit(X, y)
    first = machine.n_iter_
    np.testing.assert_array_equal(machine.fit(X, y).n_iter_, first)
