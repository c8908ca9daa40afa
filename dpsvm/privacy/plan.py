"""What a private fit would do, from public numbers alone: no data, no budget spent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpsvm.losses import Loss
from dpsvm.privacy.accounting import Folded, Gaussian, Pure, epsilon_of
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.methods import Mechanism

_LABEL_WIDTH = 24


@dataclass(frozen=True)
class PrivacyPlan:
    """What a fit would add, before anything is spent.

    >>> from dpsvm.privacy import PrivateSVC
    >>> plan = PrivateSVC.plan(1.0, 1e-5, n=1000, d=20)
    >>> print(plan.guarantee)
    epsilon = 1, delta = 1e-05 (add-remove)
    >>> plan.weight_noise < 2
    True
    """

    method: str
    guarantee: Guarantee
    noise_scale: float
    noise_law: str  # spherical, gaussian or laplace
    weight_noise: float  # bound on the root mean square of the noise in one weight
    C: float
    regularisation: float  # of the mean of the losses: 1 / (n C)
    machines: int
    budget_split: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, method: str, mechanism: Mechanism, n: int) -> PrivacyPlan:
        """What a mechanism would do to n rows."""
        C = mechanism.setup.C
        return cls(
            method=method,
            guarantee=mechanism.guarantee,
            C=C,
            regularisation=1.0 / (n * C),
            facts=mechanism.facts(),
            **noise_of(mechanism),
        )

    def __str__(self) -> str:
        told = {
            "method": self.method,
            "guarantee": self.guarantee,
            "noise": f"{self.noise_law}, scale {self.noise_scale:.6g}",
            "noise a weight": f"at most {self.weight_noise:.4g} (root mean square)",
            "C": f"{self.C:.6g}, {self.regularisation:.4g} of the mean loss",
            "machines": f"{self.machines}: {self.budget_split}",
        }
        told |= {name.replace("_", " "): _short(value) for name, value in self.facts.items()}
        lines = (f"{name:<{_LABEL_WIDTH}}{value}" for name, value in told.items())
        return "\n".join(lines)


def automatic_C(method: str, loss: Loss, epsilon: float, machines: int) -> float:
    """The C of ``C="auto"``: a public rule of epsilon, method and loss.

    The objective methods pay for curvature over regularisation out of epsilon: a tenth of it goes
    there. The others have no such limit; with much noise the weights had better be small.

    >>> from dpsvm.losses import HuberHinge
    >>> round(automatic_C("objective-gaussian", HuberHinge(1.0), 1.0, 1), 4)
    0.1052
    """
    share = epsilon / machines
    if method == "objective-gaussian":
        return min(math.expm1(min(share / 10.0, 1.0)), 1.0) / loss.smoothness
    if method == "objective":
        return min(math.expm1(min(share / 20.0, 1.0)), 1.0) / loss.smoothness
    return min(max(share, 1.0) * (0.1 if method == "gradient" else 0.01), 1.0)


def noise_of(mechanism: Mechanism) -> dict[str, Any]:
    """How much noise a release adds, and to what."""
    return {
        "noise_law": mechanism.noise_law,
        "noise_scale": mechanism.noise_scale,
        "weight_noise": mechanism.weight_noise,
        "machines": mechanism.setup.machines,
        "budget_split": budget_split(mechanism),
    }


def budget_split(mechanism: Mechanism) -> str:
    """How the machines share the budget, in words."""
    machines, event, guarantee = mechanism.setup.machines, mechanism.event, mechanism.guarantee
    if machines == 1:
        return "the whole budget for one machine"
    head = f"{machines} equal machines, one class against the rest"
    if isinstance(event, Pure):
        return f"{head}, epsilon = {event.epsilon / machines:g} each, added up"
    if isinstance(event, Gaussian):
        return f"{head}, mu = {event.mu / math.sqrt(machines):.4g} each, composed exactly"
    if isinstance(event, Folded):
        alone = epsilon_of([replace(event, parts=1)], guarantee.delta)
        return f"{head}, composed; one alone would have epsilon = {alone:.4g}"
    return f"{head}, composed by dp-accounting"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
