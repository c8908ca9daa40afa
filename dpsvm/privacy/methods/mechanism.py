"""What the mechanisms share: the public facts they are calibrated to, and what they answer to."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.losses import Loss
from dpsvm.names import OF_RECORDS
from dpsvm.privacy.accounting import Event
from dpsvm.privacy.guarantee import Guarantee, check_neighbouring
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.rounding import on_grid


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The public facts a mechanism is calibrated to.

    >>> from dpsvm.losses import HuberHinge
    >>> Setup(loss=HuberHinge(0.5), C=0.1, dimension=14).difference
    1.0
    """

    loss: Loss
    C: float  # 1/2 |w|^2 + C sum_i c_i loss_i
    dimension: int  # weights of one machine, that of the constant feature included
    neighbouring: str = "add-remove"
    machines: int = 1
    tol: float = 1e-6  # certified norm of the gradient of sum_i c_i loss_i + lam/2 |w|^2 + ..
    steps: int = 50  # of the gradient method
    rate: float = 1.0  # share of the rows a gradient step draws

    def __post_init__(self) -> None:
        check_neighbouring(self.neighbouring, OF_RECORDS)

    @property
    def lam(self) -> float:
        """The regularisation of the sum of losses: sum_i c_i loss_i + lam/2 |w|^2."""
        return 1.0 / self.C

    @property
    def difference(self) -> float:
        """How much the sum of gradients differs between neighbouring data: L, or 2 L for replace.

        A record more or less changes the sum by its gradient, at most L = 1. A record replaced
        changes it by the difference of two.
        """
        return self.loss.lipschitz * (2.0 if self.neighbouring == "replace" else 1.0)


@dataclass(frozen=True)
class Mechanism(ABC):
    """A calibrated release."""

    setup: Setup
    event: Event  # what the release of all machines is charged as
    guarantee: Guarantee
    noise_scale: float
    noise_law: str  # what noise_scale is the scale of

    def release(self, rows: Any, signs: Array, weights: Array, noise: Noise) -> Array:
        """Noisy weights of every machine, on a public grid.

        rows : dense or CSR, of shape (n, d), every norm at most 1
        signs : of shape (machines, n), +1 or -1
        weights : of shape (n,), from 0 to 1
        """
        found = [self.machine(rows, sign, weights, noise) for sign in signs]
        return on_grid(np.array(found), self.weight_noise)

    def machine(self, rows: Any, signs: Array, weights: Array, noise: Noise) -> Array:
        """Noisy weights of one machine."""
        raise NotImplementedError

    def draw(self, noise: Noise, scale: float) -> Array:
        """Noise of ``noise_law`` for the weights of one machine."""
        d = self.setup.dimension
        if self.noise_law == "spherical":
            return noise.spherical(d, scale)
        return noise.gaussian(scale, d) if self.noise_law == "gaussian" else noise.laplace(scale, d)

    @property
    @abstractmethod
    def weight_noise(self) -> float:
        """An upper bound on the root mean square of the noise in one weight."""

    def facts(self) -> dict[str, Any]:
        """Public numbers of the calibration, for the report."""
        return {}


def smoothness(setup: Setup, method: str) -> float:
    """The bound on the curvature of the loss; ValueError names a method that cannot do without."""
    bound = setup.loss.smoothness
    if not math.isfinite(bound):
        raise ValueError(
            f"method={method!r} needs a loss of bounded curvature ('huber', 'smooth', "
            f"'logistic'), got {setup.loss.name!r}"
        )
    return bound
