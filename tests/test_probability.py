"""Sigmoids, coupling and residual scales, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from dpsvm.svm.probability import (
    class_probabilities,
    couple,
    fit_sigmoid,
    laplace_scale,
    sigmoid,
)


def platt_loss(parameters: np.ndarray, decision: np.ndarray, positive: np.ndarray) -> float:
    n_positive, n_negative = positive.sum(), (~positive).sum()
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    z = decision * parameters[0] + parameters[1]
    return float(np.sum(np.logaddexp(0.0, -z) + target * z))


@pytest.mark.parametrize("seed", range(5))
def test_the_fitted_sigmoid_minimises_the_cross_entropy(seed: int) -> None:
    random = np.random.default_rng(seed)
    positive = random.random(60) < 0.4
    decision = random.normal(size=60) + np.where(positive, 1.0, -1.0)
    fitted = fit_sigmoid(decision, positive)
    best = minimize(platt_loss, np.zeros(2), (decision, positive), method="BFGS")
    assert fitted == pytest.approx(best.x, rel=1e-3, abs=1e-4)
    assert platt_loss(np.array(fitted), decision, positive) <= best.fun + 1e-8


@pytest.mark.parametrize("positive", [np.ones(4, dtype=bool), np.zeros(4, dtype=bool)])
def test_a_single_class_still_gives_a_finite_sigmoid(positive: np.ndarray) -> None:
    assert np.isfinite(fit_sigmoid(np.array([1.0, 2.0, 3.0, 4.0]), positive)).all()


def test_equal_decisions_give_the_prior_of_platts_targets() -> None:
    positive = np.array([True, True, True, False])
    a, b = fit_sigmoid(np.zeros(4), positive)
    expected = (3 * (4 / 5) + 1 / 3) / 4
    assert sigmoid(np.zeros(1), a, b)[0] == pytest.approx(expected, abs=1e-6)


@given(st.floats(-1e300, 1e300), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_the_sigmoid_is_a_probability_wherever_it_is_evaluated(
    z: float, a: float, b: float
) -> None:
    with np.errstate(over="raise", invalid="raise"):
        p = sigmoid(np.array([np.clip(z, -1e290, 1e290)]), a, b)[0]
    assert 0.0 <= p <= 1.0


@given(st.integers(3, 7), st.integers(0, 2**32 - 1))
def test_coupling_finds_the_minimum_of_its_objective(n_classes: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    r = random.uniform(0.05, 0.95, size=(n_classes, n_classes))
    r = np.triu(r, 1) + np.tril(1.0 - r.T, -1)
    [p] = couple(r[None])
    assert p.sum() == pytest.approx(1.0)
    assert (p > 0).all()
    q = -r * r.T + np.diag((r**2).sum(axis=0))
    system = np.block([[q, np.ones((n_classes, 1))], [np.ones((1, n_classes)), np.zeros((1, 1))]])
    exact = np.linalg.solve(system, np.append(np.zeros(n_classes), 1.0))[:n_classes]
    assert p @ q @ p <= exact @ q @ exact + 0.005 / n_classes


def test_consistent_pairs_are_coupled_to_the_probabilities_they_come_from() -> None:
    p = np.array([0.5, 0.3, 0.2])
    r = p[:, None] / (p[:, None] + p)
    np.fill_diagonal(r, 0.0)
    assert couple(r[None])[0] == pytest.approx(p, abs=5e-3)


def test_a_row_is_coupled_alike_alone_and_among_others() -> None:
    random = np.random.default_rng(0)
    decision = random.normal(size=(50, 6)) * 3
    a, b = -random.uniform(0.5, 2, size=6), random.normal(size=6) / 5
    together = class_probabilities(decision, a, b)
    alone = np.vstack([class_probabilities(row[None], a, b) for row in decision])
    assert np.array_equal(together, alone)


def test_two_classes_have_the_sigmoid_itself_kept_off_zero_and_one() -> None:
    p = class_probabilities(np.array([[-900.0], [0.5], [900.0]]), np.array([-1.0]), np.array([0.0]))
    assert p[:, 0] == pytest.approx([1e-7, 1 / (1 + np.exp(-0.5)), 1 - 1e-7])
    assert p.sum(axis=1) == pytest.approx(np.ones(3))


def test_outliers_do_not_widen_the_laplace_scale() -> None:
    residuals = np.append(np.tile([1.0, -1.0], 50), 1000.0)
    assert laplace_scale(residuals) == 1.0
