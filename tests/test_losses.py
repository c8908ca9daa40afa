"""The losses: their derivatives, and the constants every mechanism relies on."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import dpsvm.losses
from dpsvm.losses import LOSSES, Hinge, HuberHinge, Logistic, SmoothHinge, make_loss

MARGINS = np.linspace(-6.0, 6.0, 24_001)
SMOOTH = [HuberHinge(0.5), HuberHinge(2.0), SmoothHinge(0.5), SmoothHinge(1.0), Logistic()]
ALL = [Hinge(), *SMOOTH]


def test_docstring_examples_run():
    assert doctest.testmod(dpsvm.losses).failed == 0


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_the_slope_is_the_derivative_of_the_value(loss):
    step = 1e-6
    middle = (loss.value(MARGINS + step) - loss.value(MARGINS - step)) / (2 * step)
    assert np.allclose(loss.slope(MARGINS), middle, atol=3e-6)


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_the_curvature_is_the_derivative_of_the_slope_away_from_corners(loss):
    step = 1e-6
    width = getattr(loss, "width", 1.0)
    away = (np.abs(MARGINS - 1) > 1e-4) & (np.abs(MARGINS - 1 + width) > 1e-4)
    at = MARGINS[away]
    middle = (loss.slope(at + step) - loss.slope(at - step)) / (2 * step)
    assert np.allclose(loss.curvature(at), middle, atol=1e-4)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_slopes_lie_between_minus_one_and_zero_and_only_grow(loss):
    slope = loss.slope(np.concatenate([[-1e300], MARGINS, [1e300]]))
    assert slope.min() >= -loss.lipschitz
    assert slope.max() <= 0
    assert np.all(np.diff(slope) >= 0)
    assert loss.lipschitz == 1


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_the_smoothness_is_reached_and_never_exceeded(loss):
    curvature = loss.curvature(MARGINS)
    assert curvature.max() == pytest.approx(loss.smoothness, rel=1e-6)
    assert curvature.max() <= loss.smoothness * (1 + 1e-12)
    change = np.abs(np.diff(loss.slope(MARGINS))) / np.diff(MARGINS)
    assert change.max() <= loss.smoothness * (1 + 1e-9)


def test_the_huber_hinge_is_the_one_of_the_specification():
    h, m = 0.4, np.array([1.2, 1.0, 0.8, 0.6, 0.0])
    wanted = [0.0, 0.0, 0.2**2 / (2 * h), 0.4**2 / (2 * h), 1.0 - h / 2]
    assert np.allclose(HuberHinge(h).value(m), wanted)


@pytest.mark.parametrize("kind", [HuberHinge, SmoothHinge])
def test_a_narrow_corner_is_the_hinge(kind):
    assert np.allclose(kind(1e-9).value(MARGINS), Hinge().value(MARGINS), atol=1e-8)


def test_the_smooth_hinge_has_a_continuous_second_derivative():
    loss = SmoothHinge(0.5)
    assert np.abs(np.diff(loss.curvature(MARGINS))).max() < 24 * np.diff(MARGINS).max() * 1.01


@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("kind", [HuberHinge, SmoothHinge])
def test_a_bad_width_is_named(kind, width):
    with pytest.raises(ValueError, match=f"width must be a finite number above 0, got {width}"):
        kind(width)


def test_every_name_makes_its_loss():
    assert [make_loss(name).name for name in LOSSES] == list(LOSSES)
