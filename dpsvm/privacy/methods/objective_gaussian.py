"""Objective perturbation with a Gaussian linear term: the default."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpsvm._arrays import Array
from dpsvm.privacy import accounting
from dpsvm.privacy.accounting import Event, Folded
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.methods.mechanism import Mechanism, Setup, smoothness
from dpsvm.privacy.minimiser import Objective, minimise
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.rounding import COVERING_SHARE, UP


@dataclass(frozen=True)
class ObjectiveGaussian(Mechanism):
    """A Gaussian linear term in the objective, and a little noise on its approximate minimiser."""

    output_scale: float

    def machine(self, rows: Any, signs: Array, weights: Array, noise: Noise) -> Array:
        """The minimiser of the perturbed objective, its gradient certified."""
        setup = self.setup
        term = self.draw(noise, self.noise_scale)
        w = minimise(Objective(rows, signs, weights, setup.loss, setup.lam, term), setup.tol)
        return w + self.draw(noise, self.output_scale)

    @property
    def weight_noise(self) -> float:
        """The linear term moves the minimiser by at most its norm over the strong convexity."""
        return math.hypot(self.noise_scale * self.setup.C, self.output_scale)

    def facts(self) -> dict[str, Any]:
        """The noise on the minimiser and the gradient norm it covers."""
        return {"output_noise_scale": self.output_scale, "certified_gradient_norm": self.setup.tol}


def objective_gaussian_event(setup: Setup, noise_scale: float, output_scale: float) -> Folded:
    """What the release of all machines by objective perturbation with a Gaussian term costs.

    Released is the minimiser of sum_i c_i loss_i + lam/2 |w|^2 + b . w, b ~ N(0, s^2 I), found to a
    certified gradient norm tau, with noise N(0, s_out^2 I).

    Lemma: the privacy loss of a machine is as :class:`~dpsvm.privacy.accounting.Folded` says, with
    offset = log(1 + beta/lam), beta being the smoothness, mu = sqrt((D/s)^2 + (2 tau / (lam
    s_out))^2), D = L and 2 choices for add-remove, D = 2 L and 4 choices for replace.

    Proof. The exact minimiser w determines b(w) = -grad(sum loss)(w) - lam w, one to one, so its
    density is that of b times |det Db(w)|. (The huber hinge's slope has corners: b and its inverse
    are Lipschitz, and the change of variables holds almost everywhere, which is enough.)

    Determinants: a record adds a matrix c loss'' x x^T to one that is at least lam I, which
    multiplies the determinant by 1 + c loss'' x^T H^-1 x, between 1 and 1 + beta/lam. So the ratio
    of two determinants is at most 1 + beta/lam, whether a record is added, removed or replaced.

    Densities of b, a record more or less: at the same w they are taken at points that differ by
    v = a u, where u = y x has a norm of at most 1 and 0 <= a <= L, because a slope lies between -L
    and 0. The logarithm of their ratio is (b . v + |v|^2 / 2) / s^2 up to the sign of u, a convex
    function of a, so at most the larger of its values at a = 0, which is 0, and at a = L, which is
    the loss of Gaussian noise with mu = L |u| / s: two choices. Both are at most mu^2 / 2 + mu |Z|
    for the standard normal Z along u.

    A record replaced: v = a u - a' u' is convex in (a, a') likewise, with the corners 0, L u,
    -L u' and L (u - u'): four choices, with mu = 2 L / s at most. And b . v <= L (|b . u| +
    |b . u'|), whose exponential moments are by Cauchy-Schwarz at most those of 2 L |b . u| for a
    unit u.

    The minimiser found is within tau / lam of the exact one. Taken as releasing the exact one, and
    then their difference, of sensitivity 2 tau / lam, under Gaussian noise: that adds its mu to
    every choice.

    Redberg, Koskela and Wang (2023) have mu |Z| from any Lipschitz loss and the larger offset
    -log(1 - beta/lam), for which lam must exceed beta; here it need not.
    Neighbouring: either. Rounding: mu and offset up.

    >>> from dpsvm.losses import Logistic
    >>> event = objective_gaussian_event(Setup(loss=Logistic(), C=1.0, dimension=3), 5.0, 1.0)
    >>> round(event.mu, 6), round(event.offset, 6), event.choices  # 1/5, log(5/4)
    (0.2, 0.223144, 2)
    """
    approximate = 2.0 * setup.tol * setup.C / output_scale
    return Folded(
        mu=math.hypot(setup.difference / noise_scale, approximate) * UP,
        offset=math.log1p(smoothness(setup, "objective-gaussian") * setup.C) * UP,
        choices=4 if setup.neighbouring == "replace" else 2,
        parts=setup.machines,
    )


def calibrate_objective_gaussian(setup: Setup, epsilon: float, delta: float) -> ObjectiveGaussian:
    """Objective perturbation with the least Gaussian term that (epsilon, delta) allows.

    Guarantee: (epsilon, delta)-differential privacy of all machines together, by
    :func:`objective_gaussian_event`. The offset is paid out of epsilon before any noise, which
    limits C. Neighbouring: either. Rounding: the search ends on the side of more noise.

    >>> from dpsvm.losses import HuberHinge
    >>> setup = Setup(loss=HuberHinge(0.5), C=0.05, dimension=14)
    >>> release = calibrate_objective_gaussian(setup, 1.0, 1e-5)
    >>> from dpsvm.privacy.accounting import epsilon_of
    >>> epsilon_of([release.event], 1e-5) <= 1.0
    True
    >>> calibrate_objective_gaussian(Setup(loss=HuberHinge(0.5), C=0.9, dimension=14), 1.0, 1e-5)
    Traceback (most recent call last):
    ...
    ValueError: C must be below 0.859 for epsilon = 1 and a smoothness of 2, got 0.9
    """
    beta = smoothness(setup, "objective-gaussian")
    machines = f", {setup.machines} machines" if setup.machines > 1 else ""
    limit = math.expm1(min(epsilon / setup.machines, 700.0)) / beta
    if not limit > setup.C * UP:
        raise ValueError(
            f"C must be below {limit:.3g} for epsilon = {epsilon:g}{machines} and a smoothness of "
            f"{beta:g}, got {setup.C:g}"
        )

    def output_scale(noise_scale: float) -> float:
        return 2.0 * setup.tol * setup.C * noise_scale / (setup.difference * COVERING_SHARE)

    def events(noise_scale: float) -> list[Event]:
        return [objective_gaussian_event(setup, noise_scale, output_scale(noise_scale))]

    scale = accounting.calibrate(events, epsilon, delta)
    return ObjectiveGaussian(
        setup=setup,
        event=events(scale)[0],
        guarantee=Guarantee(epsilon, delta, setup.neighbouring),
        noise_scale=scale,
        noise_law="gaussian",
        output_scale=output_scale(scale),
    )
