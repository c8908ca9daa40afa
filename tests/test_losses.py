"""The losses: their derivatives, and the constants every mechanism relies on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpsvm.losses import (
    Hinge,
    HuberHinge,
    Logistic,
    Sigmoid,
    SmoothHinge,
    Squared,
    make_loss,
    make_prediction_loss,
)
from dpsvm.names import LOSSES, PREDICTION_LOSSES

MARGINS = np.linspace(-6.0, 6.0, 24_001)
SMOOTH = [HuberHinge(0.5), HuberHinge(2.0), SmoothHinge(0.5), SmoothHinge(1.0), Logistic()]
ALL = [Hinge(), *SMOOTH]


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_the_slope_is_the_derivative_of_the_value(loss: Any) -> None:
    step = 1e-6
    middle = (loss.value(MARGINS + step) - loss.value(MARGINS - step)) / (2 * step)
    assert np.allclose(loss.slope(MARGINS), middle, atol=3e-6)


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_the_curvature_is_the_derivative_of_the_slope_away_from_corners(loss: Any) -> None:
    step = 1e-6
    width = getattr(loss, "width", 1.0)
    away = (np.abs(MARGINS - 1) > 1e-4) & (np.abs(MARGINS - 1 + width) > 1e-4)
    at = MARGINS[away]
    middle = (loss.slope(at + step) - loss.slope(at - step)) / (2 * step)
    assert np.allclose(loss.curvature(at), middle, atol=1e-4)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_slopes_lie_between_minus_one_and_zero_and_only_grow(loss: Any) -> None:
    slope = loss.slope(np.concatenate([[-1e300], MARGINS, [1e300]]))
    assert slope.min() >= -loss.lipschitz
    assert slope.max() <= 0
    assert np.all(np.diff(slope) >= 0)
    assert loss.lipschitz == 1


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_the_smoothness_is_reached_and_never_exceeded(loss: Any) -> None:
    curvature = loss.curvature(MARGINS)
    assert curvature.max() == pytest.approx(loss.smoothness, rel=1e-6)
    assert curvature.max() <= loss.smoothness * (1 + 1e-12)
    change = np.abs(np.diff(loss.slope(MARGINS))) / np.diff(MARGINS)
    assert change.max() <= loss.smoothness * (1 + 1e-9)


def test_the_huber_hinge_is_the_one_of_the_specification() -> None:
    h, m = 0.4, np.array([1.2, 1.0, 0.8, 0.6, 0.0])
    wanted = [0.0, 0.0, 0.2**2 / (2 * h), 0.4**2 / (2 * h), 1.0 - h / 2]
    assert np.allclose(HuberHinge(h).value(m), wanted)


@pytest.mark.parametrize("kind", [HuberHinge, SmoothHinge])
def test_a_narrow_corner_is_the_hinge(kind: type) -> None:
    assert np.allclose(kind(1e-9).value(MARGINS), Hinge().value(MARGINS), atol=1e-8)


def test_the_smooth_hinge_has_a_continuous_second_derivative() -> None:
    loss = SmoothHinge(0.5)
    assert np.abs(np.diff(loss.curvature(MARGINS))).max() < 24 * np.diff(MARGINS).max() * 1.01


@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("kind", [HuberHinge, SmoothHinge])
def test_a_bad_width_is_named(kind: type, width: float) -> None:
    with pytest.raises(ValueError, match=f"width must be a finite number above 0, got {width}"):
        kind(width)


def test_every_name_makes_its_loss() -> None:
    assert [make_loss(name).name for name in LOSSES] == list(LOSSES)


def _height(loss, u, margin, step):
    return step * loss.value(u) + (u - margin) ** 2 / 2


@pytest.mark.parametrize("loss", [*ALL, Sigmoid()], ids=repr)
@pytest.mark.parametrize("step", [1e-3, 0.1, 1.0, 10.0, 30.0, 1e3])
def test_no_point_of_a_grid_is_lower_than_the_proximal_map(loss: Any, step: float) -> None:
    margin = np.concatenate([np.linspace(-12, 12, 241), -np.geomspace(13, 1e3, 20), [100.0, 1e3]])
    u = loss.prox(margin, step)
    reach = np.linspace(0.0, 1.0, 2001)[:, None] * step * loss.lipschitz
    lowest = _height(loss, margin + reach, margin, step).min(axis=0)
    assert np.all(_height(loss, u, margin, step) <= lowest + 1e-12 * (1 + np.abs(lowest)))


@pytest.mark.parametrize("loss", [*SMOOTH, Sigmoid()], ids=repr)
@pytest.mark.parametrize("step", [1e-3, 0.1, 1.0, 21.0, 400.0, 1e3])
def test_the_proximal_map_is_stationary_to_rounding(loss: Any, step: float) -> None:
    margin = np.concatenate([np.linspace(-30, 30, 1201), [-1e3, -300.0, 300.0, 1e3]])
    u = loss.prox(margin, step)
    rest = u - margin + step * loss.slope(u)
    assert np.all(np.abs(rest) <= 1e-13 * (1 + step + np.abs(margin)))


def test_the_sigmoid_loss_has_the_derivatives_and_the_constants_it_names() -> None:
    loss, step = Sigmoid(), 1e-6
    middle = (loss.value(MARGINS + step) - loss.value(MARGINS - step)) / (2 * step)
    assert np.allclose(loss.slope(MARGINS), middle, atol=1e-9)
    middle = (loss.slope(MARGINS + step) - loss.slope(MARGINS - step)) / (2 * step)
    assert np.allclose(loss.curvature(MARGINS), middle, atol=1e-9)
    assert loss.slope(MARGINS).min() == pytest.approx(-loss.lipschitz)
    assert loss.curvature(MARGINS).max() == pytest.approx(loss.smoothness, rel=1e-6)
    assert loss.curvature(MARGINS).min() == pytest.approx(loss.least_curvature, rel=1e-6)


@pytest.mark.parametrize("name", PREDICTION_LOSSES)
def test_a_loss_of_a_prediction_treats_both_labels_alike(name: str) -> None:
    loss = make_prediction_loss(name)
    z, one = np.linspace(-3, 3, 61), np.ones(61)
    assert np.array_equal(loss.value(z, one), loss.value(-z, -one))
    assert np.array_equal(loss.slope(z, one), -loss.slope(-z, -one))
    assert np.array_equal(loss.prox(z, one, 0.7), -loss.prox(-z, -one, 0.7))


def test_the_squared_loss_has_its_proximal_map_in_closed_form() -> None:
    z, y = np.array([0.3, -1.0]), np.array([2.0, 5.0])
    u = Squared().prox(z, y, 0.5)
    assert np.allclose(u - z + 0.5 * Squared().slope(u, y), 0.0, atol=1e-15)
