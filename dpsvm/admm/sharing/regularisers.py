"""What keeps a party's weights small: penalties, and constraints.

    l2             |x|^2 / 2
    l1             |x|_1
    geman-mcclure  sum of x_j^2 / (1 + x_j^2) / 2: smooth, bounded and not convex; near 0 it is l2

A constraint is a box, low <= x_j <= high, or a ball, |x| <= radius.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpsvm._arrays import Array
from dpsvm.constraints import check_positive, real


class Penalty(ABC):
    """A penalty of a vector of weights, the sum of one function of each of them."""

    name: ClassVar[str]
    least_curvature: ClassVar[float]
    """The smallest curvature: its modulus of strong convexity, below 0 if it is not convex."""

    @abstractmethod
    def value(self, weights: Array) -> float:
        """The penalty."""

    @abstractmethod
    def slope(self, weights: Array) -> Array:
        """Its gradient, or the least element of the subdifferential at a kink."""


@dataclass(frozen=True)
class L2(Penalty):
    """Half the squared norm.

    >>> L2().value(np.array([3.0, 4.0]))
    12.5
    """

    name = "l2"
    least_curvature = 1.0

    def value(self, weights: Array) -> float:
        return float(weights @ weights) / 2.0

    def slope(self, weights: Array) -> Array:
        return weights


@dataclass(frozen=True)
class L1(Penalty):
    """The sum of absolute values.

    >>> L1().value(np.array([3.0, -4.0]))
    7.0
    """

    name = "l1"
    least_curvature = 0.0

    def value(self, weights: Array) -> float:
        return float(np.abs(weights).sum())

    def slope(self, weights: Array) -> Array:
        """The signs, 0 at 0."""
        return np.sign(weights)


@dataclass(frozen=True)
class GemanMcClure(Penalty):
    """Half of x^2 / (1 + x^2), summed: large weights cost no more than 1/2 each.

    >>> GemanMcClure().value(np.array([1.0, 0.0]))
    0.25
    """

    name = "geman-mcclure"
    least_curvature = -0.25

    def value(self, weights: Array) -> float:
        squares = weights * weights
        return float((squares / (1.0 + squares)).sum()) / 2.0

    def slope(self, weights: Array) -> Array:
        return weights * self.steepness(weights)

    def steepness(self, weights: Array) -> Array:
        """Its derivative in x^2 / 2: the weights of the quadratic that touches it from above."""
        return np.asarray((1.0 + weights * weights) ** -2.0)


_PENALTIES: dict[str, Penalty] = {one.name: one for one in (L2(), L1(), GemanMcClure())}

PENALTIES = tuple(_PENALTIES)
"""The names of the penalties."""


def make_penalty(name: str) -> Penalty:
    """The penalty of a name.

    >>> make_penalty("l1").name
    'l1'
    >>> make_penalty("l3")
    Traceback (most recent call last):
    ...
    ValueError: penalty must be one of 'l2', 'l1', 'geman-mcclure', got 'l3'
    """
    if name not in _PENALTIES:
        raise ValueError(f"penalty must be one of {', '.join(map(repr, PENALTIES))}, got {name!r}")
    return _PENALTIES[name]


@dataclass(frozen=True)
class Box:
    """Every weight between two numbers, 0 among them or between them.

    >>> Box(-1.0, 2.0).project(np.array([-3.0, 0.5, 4.0]))
    array([-1. ,  0.5,  2. ])
    >>> Box(1.0, 2.0)
    Traceback (most recent call last):
    ...
    ValueError: a box must hold 0 and be wider than that, got low=1.0, high=2.0
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = real(self.low), real(self.high)
        if not (low <= 0.0 <= high and low < high):
            raise ValueError(
                f"a box must hold 0 and be wider than that, got low={self.low!r}, "
                f"high={self.high!r}"
            )

    def project(self, weights: Array) -> Array:
        """The nearest point of the box."""
        return np.clip(weights, self.low, self.high)


@dataclass(frozen=True)
class Ball:
    """A norm of at most a radius.

    >>> Ball(1.0).project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    >>> Ball(0.0)
    Traceback (most recent call last):
    ...
    ValueError: radius must be a finite number above 0, got 0.0
    """

    radius: float

    def __post_init__(self) -> None:
        check_positive(self.radius, "radius")

    def project(self, weights: Array) -> Array:
        """The nearest point of the ball."""
        norm = float(np.linalg.norm(weights))
        return weights if norm <= self.radius else weights * (self.radius / norm)


Constraint = Box | Ball
"""A convex set that holds 0 and that the weights may not leave."""
