"""The losses of the private and the distributed machines, as functions of the margin.

The margin of a row is m = y (w . x), y being +1 or -1. Every loss here is convex, falls with the
margin and has a slope between -1 and 0: for rows of norm at most 1 its gradient in w is at most 1,
and that is all a mechanism needs to know of the data.

    hinge              max(0, 1 - m)                                     no bound on the curvature
    huber hinge        0 from 1 on, (1 - m)^2 / (2 h) on [1 - h, 1],
                       1 - m - h/2 below                                 1/h
    C2 hinge           the same with a curvature that is continuous:
                       6 u (h - u) / h^3 at u = 1 - m on [0, h]          3 / (2 h)
    logistic           log(1 + exp(-m))                                  1/4

The C2 hinge is the doubly differentiable hinge of Chaudhuri, Monteleoni and Sarwate (2011), moved
so that it begins at a margin of 1 as the other two do.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]


class Loss(ABC):
    """A convex loss of the margin with a slope between -1 and 0.

    >>> HuberHinge(width=0.5).smoothness
    2.0
    """

    name: ClassVar[str]
    lipschitz: ClassVar[float] = 1.0
    """The largest absolute slope."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """The largest curvature; infinite where the slope jumps."""

    @abstractmethod
    def value(self, margin: Array) -> Array:
        """The loss."""

    @abstractmethod
    def slope(self, margin: Array) -> Array:
        """Its first derivative, or an element of the subdifferential."""

    @abstractmethod
    def curvature(self, margin: Array) -> Array:
        """Its second derivative, where there is one, else one of its one-sided values."""


@dataclass(frozen=True)
class Hinge(Loss):
    """The hinge, max(0, 1 - m).

    >>> Hinge().value(np.array([0.0, 2.0]))
    array([1., 0.])
    """

    name: ClassVar[str] = "hinge"

    @property
    def smoothness(self) -> float:
        """Infinite: the slope jumps at a margin of 1."""
        return math.inf

    def value(self, margin: Array) -> Array:
        """The loss."""
        return np.maximum(0.0, 1.0 - margin)

    def slope(self, margin: Array) -> Array:
        """-1 below a margin of 1, else 0."""
        return np.where(margin < 1.0, -1.0, 0.0)

    def curvature(self, margin: Array) -> Array:
        """0 everywhere but at 1."""
        return np.zeros_like(margin)


@dataclass(frozen=True)
class HuberHinge(Loss):
    """The hinge with its corner rounded by a parabola of width h.

    >>> loss = HuberHinge(width=0.5)
    >>> loss.value(np.array([1.0, 0.5, 0.0]))
    array([0.  , 0.25, 0.75])
    >>> loss.slope(np.array([1.0, 0.75, 0.0]))
    array([-0. , -0.5, -1. ])
    """

    width: float = 0.5
    name: ClassVar[str] = "huber"

    def __post_init__(self) -> None:
        _check_width(self.width)

    @property
    def smoothness(self) -> float:
        """1 / h."""
        return 1.0 / self.width

    def value(self, margin: Array) -> Array:
        """The loss."""
        short = np.maximum(0.0, 1.0 - margin)
        curved = np.minimum(short, self.width)
        return np.asarray(curved * curved / (2.0 * self.width) + (short - curved))

    def slope(self, margin: Array) -> Array:
        """Its first derivative."""
        return -np.clip((1.0 - margin) / self.width, 0.0, 1.0)

    def curvature(self, margin: Array) -> Array:
        """1 / h strictly between 1 - h and 1, else 0."""
        inside = (margin < 1.0) & (margin > 1.0 - self.width)
        return np.where(inside, 1.0 / self.width, 0.0)


@dataclass(frozen=True)
class SmoothHinge(Loss):
    """The hinge with its corner rounded over a width of h and a continuous second derivative.

    >>> loss = SmoothHinge(width=0.5)
    >>> loss.smoothness
    3.0
    >>> loss.value(np.array([1.0, 0.5, 0.0]))
    array([0.  , 0.25, 0.75])
    """

    width: float = 0.5
    name: ClassVar[str] = "smooth"

    def __post_init__(self) -> None:
        _check_width(self.width)

    @property
    def smoothness(self) -> float:
        """3 / (2 h), half way through the corner."""
        return 1.5 / self.width

    def _part(self, margin: Array) -> tuple[Array, Array]:
        """How much the margin falls short of 1, and the share of the corner that covers."""
        short = np.maximum(0.0, 1.0 - margin)
        return short, np.minimum(short / self.width, 1.0)

    def value(self, margin: Array) -> Array:
        """The loss."""
        short, part = self._part(margin)
        curved = self.width * part**3 * (1.0 - part / 2.0)
        return curved + np.maximum(0.0, short - self.width)

    def slope(self, margin: Array) -> Array:
        """Its first derivative."""
        _, part = self._part(margin)
        return -part * part * (3.0 - 2.0 * part)

    def curvature(self, margin: Array) -> Array:
        """Its second derivative."""
        _, part = self._part(margin)
        return 6.0 * part * (1.0 - part) / self.width


@dataclass(frozen=True)
class Logistic(Loss):
    """The logistic loss, log(1 + exp(-m)).

    >>> Logistic().slope(np.array([0.0]))
    array([-0.5])
    """

    name: ClassVar[str] = "logistic"

    @property
    def smoothness(self) -> float:
        """1/4, at a margin of 0."""
        return 0.25

    def value(self, margin: Array) -> Array:
        """The loss."""
        return np.logaddexp(0.0, -margin)

    def slope(self, margin: Array) -> Array:
        """Its first derivative."""
        return np.asarray(-expit(-margin))

    def curvature(self, margin: Array) -> Array:
        """Its second derivative."""
        return np.asarray(expit(margin) * expit(-margin))


LOSSES = ("hinge", "huber", "smooth", "logistic")
"""The names of the losses."""


def make_loss(name: str, width: float = 0.5) -> Loss:
    """The loss of a name; the width is that of a rounded corner.

    >>> make_loss("huber", 1.0)
    HuberHinge(width=1.0)
    >>> make_loss("square")
    Traceback (most recent call last):
    ...
    ValueError: loss must be one of 'hinge', 'huber', 'smooth', 'logistic', got 'square'
    """
    if name == "hinge":
        return Hinge()
    if name == "huber":
        return HuberHinge(width)
    if name == "smooth":
        return SmoothHinge(width)
    if name == "logistic":
        return Logistic()
    raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}, got {name!r}")


def _check_width(width: float) -> None:
    if not 0.0 < width < math.inf:
        raise ValueError(f"width must be a finite number above 0, got {width!r}")
