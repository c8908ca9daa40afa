"""Gradient steps with noise on the sum of the rows' gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.privacy.accounting import Approximate, Gaussian, gaussian_mu, least
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.methods.mechanism import Mechanism, Setup
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.rounding import UP, on_grid

Array = NDArray[np.float64]

_COUNT_SHARE = 0.01  # of mu^2, for the number of rows


@dataclass(frozen=True)
class Gradient(Mechanism):
    """Noisy gradient steps from 0 with Nesterov's momentum, and the mean of the later half.

    Momentum reaches in tens of steps what plain steps need hundreds for, each of which would want
    its share of the budget.
    """

    count_scale: float  # of the number of rows; 0 where it is public
    composed: str = "exact Gaussian composition"

    def release(self, rows: Any, signs: Array, weights: Array, noise: Noise) -> Array:
        """Every number that is used after a step is noisy: what follows is post-processing."""
        n = float(rows.shape[0])
        if self.count_scale > 0:
            n = max(n + float(noise.gaussian(self.count_scale, 1)[0]), self.count_scale, 1.0)
        step = 1.0 / (self.setup.lam + n * min(self.setup.loss.smoothness, 1.0))
        found = [self._descend(rows, sign, weights, noise, step) for sign in signs]
        return on_grid(np.array(found), self.weight_noise)

    def _descend(self, rows: Any, signs: Array, weights: Array, noise: Noise, step: float) -> Array:
        setup = self.setup
        w = before = total = np.zeros(setup.dimension)
        kept = 0
        for t in range(setup.steps):
            ahead = w + (t / (t + 3.0)) * (w - before)
            pull = weights * signs * setup.loss.slope(signs * np.asarray(rows @ ahead))
            if setup.rate < 1.0:
                pull = pull * (noise.uniform(len(pull)) < setup.rate)
            noisy = np.asarray(rows.T @ pull) + self.draw(noise, self.noise_scale)
            before, w = w, ahead - step * (noisy / setup.rate + setup.lam * ahead)
            if 2 * t + 1 >= setup.steps:
                total, kept = total + w, kept + 1
        return total / kept

    @property
    def weight_noise(self) -> float:
        """Steps of 1 / lam would carry the noise of one gradient into the weights whole."""
        return self.noise_scale * self.setup.C / self.setup.rate

    def facts(self) -> dict[str, Any]:
        """The steps, and how they were composed."""
        facts = {"steps": self.setup.steps, "composition": self.composed}
        if self.setup.rate < 1.0:
            facts["sampling_rate"] = self.setup.rate
        if self.count_scale > 0:
            facts["row_count_noise_scale"] = self.count_scale
        return facts


def calibrate_gradient(setup: Setup, epsilon: float, delta: float) -> Gradient:
    """Gradient descent with Gaussian noise on the sum of the rows' gradients.

    Rows of norm at most 1 and slopes of at most L clip every row's gradient to L. The step length
    needs the number of rows: it is public under replace; under add-remove it is released with noise
    too, for 1% of mu^2.

    Guarantee: (epsilon, delta)-differential privacy. T steps of each machine have sensitivity D = L
    (add-remove) or 2 L (replace), the count 1: adaptive Gaussian releases compose exactly to one
    with mu^2 = sum of (sensitivity / scale)^2 (Dong, Roth and Su 2022). With ``rate`` below 1 each
    step draws every row with that probability; the composition is then dp-accounting's (privacy
    loss distributions, rounded pessimistically), for add-remove. Neighbouring: either; add-remove
    with sampling. Rounding: mu down, scale up.

    >>> from dpsvm.losses import Hinge
    >>> release = calibrate_gradient(Setup(loss=Hinge(), C=1.0, dimension=3, steps=25), 1.0, 1e-5)
    >>> round(release.noise_scale, 1), round(1 / release.event.mu, 2)
    (18.7, 3.73)
    """
    if setup.rate < 1.0:
        return _calibrate_sampled(setup, epsilon, delta)
    mu = gaussian_mu(epsilon, delta)
    counted = setup.neighbouring == "add-remove"
    left = mu * math.sqrt(1.0 - _COUNT_SHARE) if counted else mu
    releases = setup.steps * setup.machines
    return Gradient(
        setup=setup,
        event=Gaussian(mu),
        guarantee=Guarantee(epsilon, delta, setup.neighbouring),
        noise_scale=setup.difference * math.sqrt(releases) / left * UP,
        noise_law="gaussian",
        count_scale=UP / (mu * math.sqrt(_COUNT_SHARE)) if counted else 0.0,
    )


def _calibrate_sampled(setup: Setup, epsilon: float, delta: float) -> Gradient:
    if setup.neighbouring != "add-remove":
        raise ValueError(
            "sampled gradient steps are accounted for under neighbouring='add-remove' only, "
            f"got {setup.neighbouring!r}"
        )
    try:
        from dp_accounting import dp_event
        from dp_accounting.pld import PLDAccountant
    except ImportError:
        raise ValueError(
            f"rate = {setup.rate:g}: sampled gradient steps are accounted for by the package "
            "dp-accounting, which is not installed (pip install dpsvm[privacy]); rate = 1 needs "
            "none"
        ) from None
    count_scale = UP / (gaussian_mu(epsilon, delta) * math.sqrt(_COUNT_SHARE))
    releases = setup.steps * setup.machines

    def cost(multiplier: float) -> float:
        accountant = PLDAccountant()
        accountant.compose(dp_event.GaussianDpEvent(count_scale))
        sampled = dp_event.PoissonSampledDpEvent(setup.rate, dp_event.GaussianDpEvent(multiplier))
        accountant.compose(sampled, releases)
        return float(accountant.get_epsilon(delta))

    enough = 1.0
    while cost(enough) > epsilon:
        enough *= 2.0
    too_little = enough / 2.0 if enough > 1.0 else 0.05
    enough = least(lambda scale: cost(scale) <= epsilon, too_little, enough, digits=4)
    return Gradient(
        setup=setup,
        event=Approximate(epsilon, delta),
        guarantee=Guarantee(epsilon, delta, setup.neighbouring),
        noise_scale=enough * setup.loss.lipschitz,
        noise_law="gaussian",
        count_scale=count_scale,
        composed="dp-accounting, privacy loss distributions",
    )
