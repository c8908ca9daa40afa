"""The mechanisms: how much noise an (epsilon, delta) asks for, and the release of noisy weights.

A mechanism sees rows of norm at most 1, signs +1 or -1 and weights between 0 and 1, which a
record's class decides; every loss has a slope between -1 and 0. So one record adds at most L = 1 to
the gradient of the sum of losses. Each machine of several (one class against the rest) is the same
mechanism, run on its own signs: a record takes part in all of them, and what is stated is their
composition.

    output              |w - w'| is bounded; noise is added to w
    output-laplace      the same with a Laplace number for each weight: a baseline
    objective           a random linear term is added to the objective; pure
    objective-gaussian  the same with a Gaussian term
    gradient            noisy gradient steps

:func:`calibrate` decides all the numbers of a release from public facts; ``release`` then looks at
the data. Nothing is returned but the noisy weights, rounded to a public grid. Proofs are for real
numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from dpsvm.names import METHODS
from dpsvm.privacy.guarantee import check_delta, check_epsilon
from dpsvm.privacy.methods.gradient import calibrate_gradient
from dpsvm.privacy.methods.mechanism import Mechanism, Setup
from dpsvm.privacy.methods.objective import ObjectivePure, calibrate_objective
from dpsvm.privacy.methods.objective_gaussian import (
    ObjectiveGaussian,
    calibrate_objective_gaussian,
    objective_gaussian_event,
)
from dpsvm.privacy.methods.output import (
    calibrate_output_gaussian,
    calibrate_output_laplace,
    calibrate_output_pure,
    output_sensitivity,
)

__all__ = [
    "METHODS",
    "NEED_DELTA",
    "Mechanism",
    "ObjectiveGaussian",
    "ObjectivePure",
    "Setup",
    "calibrate",
    "objective_gaussian_event",
    "output_sensitivity",
]

_PURE: dict[str, Callable[[Setup, float], Mechanism]] = {
    "objective": calibrate_objective,
    "output": calibrate_output_pure,
    "output-laplace": calibrate_output_laplace,
}
_APPROXIMATE: dict[str, Callable[[Setup, float, float], Mechanism]] = {
    "objective-gaussian": calibrate_objective_gaussian,
    "output": calibrate_output_gaussian,
    "gradient": calibrate_gradient,
}

NEED_DELTA = tuple(method for method in METHODS if method not in _PURE)
"""Those that are not pure for any setting."""


def calibrate(method: str, setup: Setup, epsilon: float, delta: float | None) -> Mechanism:
    """The mechanism of a name with the noise that (epsilon, delta) asks for.

    >>> from dpsvm.losses import HuberHinge
    >>> setup = Setup(loss=HuberHinge(0.5), C=0.1, dimension=14)
    >>> mechanism = calibrate("output", setup, 1.0, None)
    >>> round(mechanism.noise_scale, 6), mechanism.event
    (0.1, Pure(epsilon=1.0))
    """
    check_epsilon(epsilon)
    if delta is not None:
        check_delta(delta)
    if method not in METHODS:
        known = ", ".join(map(repr, METHODS))
        raise ValueError(f"method must be one of {known}, got {method!r}")
    if method in NEED_DELTA and delta is None:
        raise ValueError(f"method={method!r} needs a delta between 0 and 1, got None")
    if delta is not None and method in _APPROXIMATE:
        return _APPROXIMATE[method](setup, epsilon, delta)
    return _PURE[method](setup, epsilon)
