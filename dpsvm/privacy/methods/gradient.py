"""Gradient steps with noise on the sum of the rows' gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.privacy.accounting import Approximate, Event, Gaussian, gaussian_mu, least
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.methods.mechanism import Mechanism, Setup
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.rounding import UP, on_grid

_COUNT_SHARE = 0.01  # of mu^2, for the number of rows


@dataclass(frozen=True)
class Gradient(Mechanism):
    """Noisy gradient steps from 0 with Nesterov's momentum, and the mean of the later half.

    Momentum reaches in tens of steps what plain steps need hundreds for, each of which would want
    its share of the budget.
    """

    count_scale: float  # of the number of rows; 0 where it is public
    composed: str

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
    mu = gaussian_mu(epsilon, delta)
    counted = setup.neighbouring == "add-remove"
    count_scale = UP / (mu * math.sqrt(_COUNT_SHARE)) if counted else 0.0
    event: Event = Gaussian(mu)
    composed = "exact Gaussian composition"
    if setup.rate < 1.0:
        scale = setup.loss.lipschitz * _sampled_scale(setup, epsilon, delta, count_scale)
        event, composed = Approximate(epsilon, delta), "dp-accounting, privacy loss distributions"
    else:
        left = mu * math.sqrt(1.0 - _COUNT_SHARE) if counted else mu
        scale = setup.difference * math.sqrt(setup.steps * setup.machines) / left * UP
    return Gradient(
        setup=setup,
        event=event,
        guarantee=Guarantee(epsilon, delta, setup.neighbouring),
        noise_scale=scale,
        noise_law="gaussian",
        count_scale=count_scale,
        composed=composed,
    )


def _sampled_scale(setup: Setup, epsilon: float, delta: float, count_scale: float) -> float:
    """The noise of sampled steps, in units of their sensitivity, rounded up."""
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

    def holds(multiplier: float) -> bool:
        accountant = PLDAccountant()
        accountant.compose(dp_event.GaussianDpEvent(count_scale))
        sampled = dp_event.PoissonSampledDpEvent(setup.rate, dp_event.GaussianDpEvent(multiplier))
        accountant.compose(sampled, setup.steps * setup.machines)
        return bool(accountant.get_epsilon(delta) <= epsilon)

    enough = 1.0
    while not holds(enough):
        enough *= 2.0
    return least(holds, enough / 2.0 if enough > 1.0 else 0.05, enough, digits=4)
