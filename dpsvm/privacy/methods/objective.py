"""Objective perturbation with a random linear term of Gamma-distributed norm: pure privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpsvm._arrays import Array
from dpsvm.privacy.accounting import Pure
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.methods.mechanism import Mechanism, Setup, smoothness
from dpsvm.privacy.minimiser import Objective, minimise
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.rounding import COVERING_SHARE, UP


@dataclass(frozen=True)
class ObjectivePure(Mechanism):
    """A random linear term of Gamma-distributed norm in the objective, and a little noise on its
    approximate minimiser.
    """

    epsilon_noise: float  # eps' of one machine
    extra: float  # n Delta, added to lam
    output_scale: float

    def machine(self, rows: Any, signs: Array, weights: Array, noise: Noise) -> Array:
        """The minimiser of the perturbed objective, its gradient certified."""
        setup = self.setup
        term = self.draw(noise, self.noise_scale)
        objective = Objective(rows, signs, weights, setup.loss, setup.lam + self.extra, term)
        w = minimise(objective, setup.tol)
        return w + self.draw(noise, self.output_scale)

    @property
    def weight_noise(self) -> float:
        """The linear term moves the minimiser by at most its norm over the strong convexity."""
        root = math.sqrt(self.setup.dimension + 1.0)
        moved = self.noise_scale / (self.setup.lam + self.extra)
        return root * math.hypot(moved, self.output_scale)

    def facts(self) -> dict[str, Any]:
        """How epsilon was spent, the regularisation used, and what covers the inexact minimiser."""
        return {
            "output_noise_scale": self.output_scale,
            "certified_gradient_norm": self.setup.tol,
            "epsilon_noise": self.epsilon_noise,
            "extra_regularisation": self.extra,
            "regularisation": self.setup.lam + self.extra,
        }


def calibrate_objective(setup: Setup, epsilon: float) -> ObjectivePure:
    """Objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011, algorithm 2, theorem 9).

    As printed: minimise mean loss + Lambda/2 |w|^2 + Delta/2 |w|^2 + b . w / n, b of uniform
    direction and norm Gamma(dimension, 2 / eps'), where eps' = eps - log(1 + 2c/(n Lambda) + c^2/(n
    Lambda)^2) and Delta = 0; if that eps' is not positive, Delta = c / (n (e^(eps/4) - 1)) - Lambda
    and eps' = eps/2. Here the objective is multiplied by n, so n Lambda = 1/C and n Delta appear,
    and n itself does not.

    Guarantee: epsilon-differential privacy when one record is replaced, n being public; each of k
    machines has epsilon / k. Proof in the paper: b is a function of the minimiser; between
    neighbours it moves by at most 2, which costs eps', and its Jacobian, A + a rank-2 matrix with A
    >= n (Lambda + Delta), changes its determinant by at most (1 + c / (n (Lambda + Delta)))^2,
    which costs the rest. For the huber hinge, whose slope has corners, the map from minimiser to b
    and its inverse are Lipschitz, so the change of variables holds almost everywhere, which is
    enough. Weights of at most 1 keep the bounds on slope and curvature.

    The paper releases exact minimisers. What is found here is within tau / (n Lambda + n Delta) of
    one: as if the exact one had been released at all but a thousandth of epsilon, and then the
    difference, of twice that sensitivity, under noise at that thousandth.
    Neighbouring: replace only. Rounding: eps' down, extra and scales up.

    >>> from dpsvm.losses import Logistic
    >>> setup = Setup(loss=Logistic(), C=0.4, dimension=3, neighbouring="replace")
    >>> release = calibrate_objective(setup, 1.0)
    >>> round(release.epsilon_noise, 6), release.extra  # 0.999 - 2 log(1.1)
    (0.80838, 0.0)
    """
    if setup.neighbouring != "replace":
        raise ValueError(
            "method='objective' is private under neighbouring='replace' only, "
            f"got {setup.neighbouring!r}"
        )
    curvature = smoothness(setup, "objective")
    covering = COVERING_SHARE * epsilon / setup.machines
    share = epsilon / setup.machines - covering
    left = (share - 2.0 * math.log1p(curvature * setup.C)) / UP
    extra = 0.0
    if left <= 0.0:
        extra = (curvature / math.expm1(share / 4.0)) * UP - setup.lam
        left = share / 2.0 / UP
    return ObjectivePure(
        setup=setup,
        event=Pure(epsilon),
        guarantee=Guarantee(epsilon, 0.0, setup.neighbouring),
        noise_scale=2.0 * setup.loss.lipschitz / left * UP,
        noise_law="spherical",
        epsilon_noise=left,
        extra=extra,
        output_scale=2.0 * setup.tol / (setup.lam + extra) / covering * UP,
    )
