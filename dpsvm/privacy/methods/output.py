"""Output perturbation: the minimiser moves by a bounded amount, and noise is added to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.losses import Hinge
from dpsvm.privacy.accounting import Gaussian, Pure, gaussian_mu
from dpsvm.privacy.dual import solve_hinge
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.methods.mechanism import Mechanism, Setup
from dpsvm.privacy.minimiser import Objective, minimise
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.rounding import UP

_GAP_SHARE = 0.01  # sqrt(2 g) / C for the hinge: its inexact minimiser adds twice that to C L


def output_sensitivity(setup: Setup) -> tuple[float, float]:
    """The sensitivity of the weights a certified solver returns, and the gap g it must certify.

    Lemma: |w - w'| <= C L (add-remove) or 2 C L (replace) for the minimisers w, w' of
    1/2 |w|^2 + C sum_i c_i loss_i on neighbouring data, and 2 sqrt(2 g) more for points within g of
    the minimum. Proof: the objective F is 1-strongly convex, so for neighbours F and F' = F + h
    |w - w'|^2 <= (grad F(w') - grad F(w)) . (w' - w) = -grad h(w') . (w' - w) <= |grad h| |w - w'|,
    h being C times one record's loss, or the difference of two. F(v) - F(w) <= g implies
    |v - w| <= sqrt(2 g), at either end. (Chaudhuri, Monteleoni and Sarwate 2011, lemma 7, with the
    constant feature regularised.) g is fixed beforehand: the hinge is solved in the dual to
    sqrt(2 g) = C / 100, the other losses to a gradient norm of tol, sqrt(2 g) = C tol.
    Neighbouring: either. Rounding: up.

    >>> from dpsvm.losses import Hinge
    >>> bound, gap = output_sensitivity(Setup(loss=Hinge(), C=2.0, dimension=3))
    >>> round(bound, 9), gap
    (2.04, 0.0002)
    """
    share = _GAP_SHARE if isinstance(setup.loss, Hinge) else setup.tol
    gap = (share * setup.C) ** 2 / 2.0
    return (setup.C * setup.difference + 2.0 * math.sqrt(2.0 * gap)) * UP, gap


@dataclass(frozen=True)
class Output(Mechanism):
    """Noise added to the minimiser."""

    def machine(self, rows: Any, signs: Array, weights: Array, noise: Noise) -> Array:
        """The minimiser, certified, plus noise."""
        return self._minimiser(rows, signs, weights) + self.draw(noise, self.noise_scale)

    def _minimiser(self, rows: Any, signs: Array, weights: Array) -> Array:
        setup = self.setup
        _, gap = output_sensitivity(setup)
        if isinstance(setup.loss, Hinge):
            return solve_hinge(rows, signs, weights, setup.C, gap)
        linear = np.zeros(setup.dimension)
        objective = Objective(rows, signs, weights, setup.loss, setup.lam, linear)
        # In units of sum loss + lam/2 |w|^2, a gradient of lam sqrt(2 g) leaves w within sqrt(2 g).
        return minimise(objective, setup.lam * math.sqrt(2.0 * gap))

    @property
    def weight_noise(self) -> float:
        """Exact: the noise is in the weights themselves."""
        squares = {"gaussian": 1.0, "laplace": 2.0, "spherical": self.setup.dimension + 1.0}
        return self.noise_scale * math.sqrt(squares[self.noise_law])

    def facts(self) -> dict[str, Any]:
        """Sensitivity and certified gap."""
        return dict(
            zip(("sensitivity", "certified_gap"), output_sensitivity(self.setup), strict=True)
        )


def calibrate_output_pure(setup: Setup, epsilon: float) -> Output:
    """Output perturbation with noise of density proportional to exp(-epsilon |b| / sensitivity).

    Guarantee: epsilon-differential privacy; each machine has epsilon / machines, and pure epsilons
    add up. Proof: the density at any point changes by at most exp(epsilon |w - w'| / sensitivity).
    The noise has a uniform direction and a Gamma(dimension, scale) norm. Neighbouring: either.
    Rounding: scale up.

    >>> from dpsvm.losses import Hinge
    >>> calibrate_output_pure(Setup(loss=Hinge(), C=1.0, dimension=3, machines=2), 1.0).event
    Pure(epsilon=1.0)
    """
    return _pure(setup, epsilon, "spherical", output_sensitivity(setup)[0])


def calibrate_output_gaussian(setup: Setup, epsilon: float, delta: float) -> Output:
    """Output perturbation with Gaussian noise.

    Guarantee: (epsilon, delta)-differential privacy, exactly: k machines, each with mu / sqrt(k),
    compose to one Gaussian mechanism with mu = the largest that (epsilon, delta) allows (Balle and
    Wang 2018; Dong, Roth and Su 2022). Neighbouring: either. Rounding: mu down, scale up.

    >>> from dpsvm.losses import Hinge
    >>> release = calibrate_output_gaussian(Setup(loss=Hinge(), C=1.0, dimension=3), 1.0, 1e-5)
    >>> round(release.noise_scale, 3)
    3.805
    """
    mu = gaussian_mu(epsilon, delta)
    return Output(
        setup=setup,
        event=Gaussian(mu),
        guarantee=Guarantee(epsilon, delta, setup.neighbouring),
        noise_scale=output_sensitivity(setup)[0] * math.sqrt(setup.machines) / mu * UP,
        noise_law="gaussian",
    )


def calibrate_output_laplace(setup: Setup, epsilon: float) -> Output:
    """A baseline: Laplace noise for each weight (Rubinstein, Bartlett, Huang and Taft 2012).

    Guarantee: epsilon-differential privacy. Proof: the weights' l1 sensitivity is at most
    sqrt(dimension) times the l2 bound above, and independent Laplace numbers of scale l1 / epsilon
    change their density by at most exp(epsilon). It needs about sqrt(2 dimension) times the noise
    that the norm of the weights calls for, which is why ``output`` is preferred. The paper's own
    constant, 4 C L, is replaced by 2 C L (replace) or C L (add-remove). Neighbouring: either.
    Rounding: scale up.

    >>> from dpsvm.losses import Hinge
    >>> round(calibrate_output_laplace(Setup(loss=Hinge(), C=1.0, dimension=4), 1.0).noise_scale, 6)
    2.04
    """
    l1 = output_sensitivity(setup)[0] * math.sqrt(setup.dimension)
    return _pure(setup, epsilon, "laplace", l1)


def _pure(setup: Setup, epsilon: float, noise_law: str, sensitivity: float) -> Output:
    """All machines with epsilon together, in equal parts; sensitivity : in the norm of the law."""
    return Output(
        setup=setup,
        event=Pure(epsilon),
        guarantee=Guarantee(epsilon, 0.0, setup.neighbouring),
        noise_scale=sensitivity * setup.machines / epsilon * UP,
        noise_law=noise_law,
    )
