"""float32 rows give what the same numbers give in float64: all of them in bench/core/float32.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpsvm import SVC, SVR, NuSVC, OneClassSVM


def apart(machine: Any, X: np.ndarray, y: Any) -> float:
    """Return how far the decision values are apart, as a share of their range."""
    double, single = X.astype(np.float64), X.astype(np.float32)
    name = "decision_function" if hasattr(machine, "decision_function") else "predict"
    expected = getattr(machine.fit(double, y), name)(double)
    return float(np.abs(getattr(machine.fit(single, y), name)(single) - expected).max()) / float(
        np.ptp(expected)
    )


def rows(n: int, d: int, offset: float) -> np.ndarray:
    cloud = np.random.default_rng(0).normal(size=(n, d)) + offset
    return cloud.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("offset", [0, 3, 10, 1e3, 1e5])
def test_regression_far_from_the_origin(offset: float) -> None:
    X = rows(200, 3, offset)
    y = np.sin(X[:, 0] - offset)
    assert apart(SVR(tol=1e-6), X, y) < 1e-4
    assert SVR().fit(X.astype(np.float32), y).score(X.astype(np.float32), y) > 0.9


# Each of these was off by more than 1e-4 of the range once.
@pytest.mark.parametrize(
    ("d", "offset", "gamma"),
    [(50, 25, 2e-4), (1000, 5, 1e-4), (1000, 20, 1e-5), (1000, 3, 1e-7), (5000, 1, 2e-4)],
)
def test_moderate_offsets_with_wide_kernels(d: int, offset: float, gamma: float) -> None:
    X = rows(200, d, offset)
    assert apart(OneClassSVM(gamma=gamma, tol=1e-6), X, None) < 1e-4
    assert apart(SVC(gamma=gamma, tol=1e-6), X, X[:, 0] > offset) < 1e-4


def test_large_coefficients() -> None:
    X = rows(300, 3, 0)
    y = np.random.default_rng(1).integers(0, 2, 300)
    machine = SVC(C=1e5, gamma=0.01, max_iter=20_000)
    single = machine.fit(X.astype(np.float32), y)
    values = single.decision_function(X.astype(np.float32))
    single.support_vectors_ = single.support_vectors_.astype(np.float64)  # the same sums, in double
    expected = single.decision_function(X)
    assert np.abs(values - expected).max() < 1e-4 * np.ptp(expected)


@pytest.mark.parametrize("scale", [1e-42, 1e-25, 1e-20, 1e-15, 1e15])
def test_any_scale(scale: float) -> None:
    X = (rows(50, 3, 0) * scale).astype(np.float32)
    y = X[:, 0] > 0
    fits = [SVC().fit(data, y) for data in (X, X.astype(np.float64))]
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=1e-4)


def test_nu_machines_are_computed_in_double_precision() -> None:
    X = rows(120, 4, 0)
    y = X[:, 0] + X[:, 1] > 0
    fits = [NuSVC(nu=0.3).fit(X.astype(dtype), y) for dtype in (np.float32, np.float64)]
    assert fits[0].dual_coef_.tobytes() == fits[1].dual_coef_.tobytes()
