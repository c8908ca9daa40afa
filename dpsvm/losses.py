"""The losses of the private and the distributed machines, as functions of the margin.

The margin of a row is m = y (w . x), y being +1 or -1. Every loss of ``LOSSES`` is convex, falls
with the margin and has a slope between -1 and 0: for rows of norm at most 1 its gradient in w is at
most 1, and that is all a mechanism needs to know of the data.

    hinge              max(0, 1 - m)                                     no bound on the curvature
    huber hinge        0 from 1 on, (1 - m)^2 / (2 h) on [1 - h, 1],
                       1 - m - h/2 below                                 1/h
    C2 hinge           the same with a curvature that is continuous:
                       6 u (h - u) / h^3 at u = 1 - m on [0, h]          3 / (2 h)
    logistic           log(1 + exp(-m))                                  1/4

The C2 hinge is the doubly differentiable hinge of Chaudhuri, Monteleoni and Sarwate (2011), moved
so that it begins at a margin of 1 as the other two do.

Two more are for the distributed machines alone: the sigmoid loss 1 / (1 + exp(m)), which is smooth
and not convex, and the squared loss of a prediction, which is no function of a margin.

A distributed machine also needs the proximal map of a loss l,

    prox(m, step) = argmin over u of  step l(u) + (u - m)^2 / 2,

for all samples at once: in closed form where there is one, else the root of u - m + step l'(u).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from dpsvm._arrays import Array
from dpsvm._renamed import check_word
from dpsvm.names import LOSSES, PREDICTION_LOSSES


class Loss(ABC):
    """A loss of the margin with a slope between -1 and 0.

    >>> HuberHinge(width=0.5).smoothness
    2.0
    """

    name: ClassVar[str]
    lipschitz: ClassVar[float] = 1.0
    """The largest absolute slope."""
    least_curvature: ClassVar[float] = 0.0
    """The smallest curvature: below 0 for a loss that is not convex."""

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

    def prox(self, margin: Array, step: float) -> Array:
        """The proximal map; for a convex loss the one root, which lies between m and m + step.

        >>> u = Logistic().prox(np.array([-2.0]), 3.0)
        >>> bool(abs(u - (-2.0) - 3.0 * expit(-u)) < 1e-14)
        True
        """
        return _rising_root(self, margin, step, margin, margin + step * self.lipschitz)


@dataclass(frozen=True)
class Hinge(Loss):
    """The hinge, max(0, 1 - m).

    >>> Hinge().value(np.array([0.0, 2.0]))
    array([1., 0.])
    """

    name: ClassVar[str] = "hinge"
    smoothness = math.inf

    def value(self, margin: Array) -> Array:
        return np.maximum(0.0, 1.0 - margin)

    def slope(self, margin: Array) -> Array:
        """-1 below a margin of 1, else 0."""
        return np.where(margin < 1.0, -1.0, 0.0)

    def curvature(self, margin: Array) -> Array:
        """0 everywhere but at 1."""
        return np.zeros_like(margin)

    def prox(self, margin: Array, step: float) -> Array:
        """A full step up, but not past 1."""
        return np.maximum(margin, np.minimum(margin + step, 1.0))


@dataclass(frozen=True)
class _Rounded(Loss):
    """The hinge with its corner rounded over a width of h."""

    width: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.width < math.inf:
            raise ValueError(f"width must be a finite number above 0, got {self.width!r}")


@dataclass(frozen=True)
class HuberHinge(_Rounded):
    """The hinge with its corner rounded by a parabola of width h.

    >>> loss = HuberHinge(width=0.5)
    >>> loss.value(np.array([1.0, 0.5, 0.0]))
    array([0.  , 0.25, 0.75])
    >>> loss.slope(np.array([1.0, 0.75, 0.0]))
    array([-0. , -0.5, -1. ])
    """

    name: ClassVar[str] = "huber"

    @property
    def smoothness(self) -> float:
        """1 / h."""
        return 1.0 / self.width

    def value(self, margin: Array) -> Array:
        short = np.maximum(0.0, 1.0 - margin)
        curved = np.minimum(short, self.width)
        return np.asarray(curved * curved / (2.0 * self.width) + (short - curved))

    def slope(self, margin: Array) -> Array:
        return -np.clip((1.0 - margin) / self.width, 0.0, 1.0)

    def curvature(self, margin: Array) -> Array:
        """1 / h strictly between 1 - h and 1, else 0."""
        inside = (margin < 1.0) & (margin > 1.0 - self.width)
        return np.where(inside, 1.0 / self.width, 0.0)

    def prox(self, margin: Array, step: float) -> Array:
        """A full step below the corner, a share of the way to 1 in it, none beyond."""
        steep = step / self.width
        curved = (margin + steep) / (1.0 + steep)
        return np.where(
            margin >= 1.0, margin, np.where(margin + step < 1.0 - self.width, margin + step, curved)
        )


@dataclass(frozen=True)
class SmoothHinge(_Rounded):
    """The hinge with its corner rounded over a width of h and a continuous second derivative.

    >>> loss = SmoothHinge(width=0.5)
    >>> loss.smoothness
    3.0
    >>> loss.value(np.array([1.0, 0.5, 0.0]))
    array([0.  , 0.25, 0.75])
    """

    name: ClassVar[str] = "smooth"

    @property
    def smoothness(self) -> float:
        """3 / (2 h), half way through the corner."""
        return 1.5 / self.width

    def _part(self, margin: Array) -> tuple[Array, Array]:
        """How much the margin falls short of 1, and the share of the corner that covers."""
        short = np.maximum(0.0, 1.0 - margin)
        return short, np.minimum(short / self.width, 1.0)

    def value(self, margin: Array) -> Array:
        short, part = self._part(margin)
        curved = self.width * part**3 * (1.0 - part / 2.0)
        return curved + np.maximum(0.0, short - self.width)

    def slope(self, margin: Array) -> Array:
        _, part = self._part(margin)
        return -part * part * (3.0 - 2.0 * part)

    def curvature(self, margin: Array) -> Array:
        _, part = self._part(margin)
        return 6.0 * part * (1.0 - part) / self.width


@dataclass(frozen=True)
class Logistic(Loss):
    """The logistic loss, log(1 + exp(-m)).

    >>> Logistic().slope(np.array([0.0]))
    array([-0.5])
    """

    name: ClassVar[str] = "logistic"
    smoothness = 0.25  # at a margin of 0

    def value(self, margin: Array) -> Array:
        return np.logaddexp(0.0, -margin)

    def slope(self, margin: Array) -> Array:
        return np.asarray(-expit(-margin))

    def curvature(self, margin: Array) -> Array:
        return np.asarray(expit(margin) * expit(-margin))


@dataclass(frozen=True)
class Sigmoid(Loss):
    """The sigmoid loss, 1 / (1 + exp(m)): smooth, bounded and not convex.

    >>> Sigmoid().value(np.array([0.0]))
    array([0.5])
    """

    name: ClassVar[str] = "sigmoid"
    lipschitz: ClassVar[float] = 0.25
    smoothness = 1.0 / (6.0 * math.sqrt(3.0))
    least_curvature: ClassVar[float] = -smoothness

    def value(self, margin: Array) -> Array:
        return np.asarray(expit(-margin))

    def slope(self, margin: Array) -> Array:
        return np.asarray(-expit(margin) * expit(-margin))

    def curvature(self, margin: Array) -> Array:
        up, down = expit(margin), expit(-margin)
        return np.asarray(up * down * (up - down))

    def prox(self, margin: Array, step: float) -> Array:
        """The global minimiser, also where a long step leaves two local ones.

        u - m + step l'(u) rises, falls and rises again where step l'' is below -1, which is between
        the two points where it is -1. A minimum lies to the left of them, to the right, or both.
        """
        high = margin + step * self.lipschitz
        if step * self.smoothness <= 1.0:
            return _rising_root(self, margin, step, margin, high)
        turn = -math.log(2.0 + math.sqrt(3.0))  # where the curvature is least
        steep = [
            brentq(lambda u: 1.0 + step * float(self.curvature(np.array(u))), *ends)
            for ends in ((turn - math.log(8.0 + step), turn), (turn, 0.0))
        ]
        left, right = (
            np.clip(_rising_root(self, margin, step, *ends), *ends)
            for ends in (
                (np.minimum(margin, steep[0]), np.full_like(margin, steep[0])),
                (np.full_like(margin, steep[1]), np.maximum(high, steep[1])),
            )
        )

        def height(u: Array) -> Array:
            return np.asarray(step * self.value(u) + (u - margin) ** 2 / 2.0)

        return np.where(height(left) < height(right), left, right)


_KINDS: dict[str, type[Loss]] = {
    kind.name: kind for kind in (Hinge, HuberHinge, SmoothHinge, Logistic)
}


def make_loss(name: str, width: float = 0.5) -> Loss:
    """The loss of a name; the width is that of a rounded corner.

    >>> make_loss("huber", 1.0)
    HuberHinge(width=1.0)
    >>> make_loss("square")
    Traceback (most recent call last):
    ...
    ValueError: loss must be one of 'hinge', 'huber', 'smooth', 'logistic', got 'square'
    """
    check_word(name, LOSSES)
    if name not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}, got {name!r}")
    kind = _KINDS[name]
    return kind(width) if issubclass(kind, _Rounded) else kind()


class OfMargin:
    """A loss of the margin y z, the targets being +1 and -1.

    >>> OfMargin(Hinge()).prox(np.array([0.0, 0.0]), np.array([1.0, -1.0]), 0.25)
    array([ 0.25, -0.25])
    """

    def __init__(self, loss: Loss) -> None:
        self.of_margin = loss
        self.name, self.smoothness = loss.name, loss.smoothness
        self.least_curvature = loss.least_curvature

    def value(self, prediction: Array, target: Array) -> Array:
        """The loss of each sample."""
        return self.of_margin.value(target * prediction)

    def slope(self, prediction: Array, target: Array) -> Array:
        """Its derivative in the prediction."""
        return target * self.of_margin.slope(target * prediction)

    def prox(self, prediction: Array, target: Array, step: float) -> Array:
        """Its proximal map in the prediction."""
        return target * self.of_margin.prox(target * prediction, step)


class Squared:
    """Half the squared difference of prediction and target.

    >>> Squared().prox(np.array([0.0]), np.array([3.0]), 2.0)
    array([2.])
    """

    name = "squared"
    smoothness = 1.0
    least_curvature = 1.0

    def value(self, prediction: Array, target: Array) -> Array:
        return np.asarray((prediction - target) ** 2 / 2.0)

    def slope(self, prediction: Array, target: Array) -> Array:
        return prediction - target

    def prox(self, prediction: Array, target: Array, step: float) -> Array:
        return (prediction + step * target) / (1.0 + step)


PredictionLoss = OfMargin | Squared
"""A loss of a prediction z and a target y: what a distributed machine minimises over z."""


def make_prediction_loss(name: str, width: float = 0.5) -> PredictionLoss:
    """The loss of a prediction of a name; the width is that of a rounded corner.

    >>> make_prediction_loss("huber", 1.0).of_margin
    HuberHinge(width=1.0)
    >>> make_prediction_loss("cubic")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: loss must be one of 'logistic', 'hinge', ..., got 'cubic'
    """
    check_word(name, PREDICTION_LOSSES)
    if name not in PREDICTION_LOSSES:
        known = ", ".join(map(repr, PREDICTION_LOSSES))
        raise ValueError(f"loss must be one of {known}, got {name!r}")
    if name == "squared":
        return Squared()
    if name == "sigmoid":
        return OfMargin(Sigmoid())
    return OfMargin(make_loss(name, width))


_SMALL_STEP = 1e-8  # relative; the error after a Newton step of this size is its square
_ROUNDING = 4.0 * np.finfo(np.float64).eps
_MOST_STEPS = 200  # bisection alone needs fewer
_AT_ONCE = 8192  # samples: what the steps keep of them stays in a core's own cache


def _rising_root(loss: Loss, margin: Array, step: float, low: Array, high: Array) -> Array:
    """The root of u - m + step l'(u) between low and high, where it rises, for every sample.

    Newton's method, safeguarded: a point that is not strictly inside the bracket, or a step that
    did not halve, is replaced by bisection. (Newton clipped to the ends of the bracket can cycle.)
    A sample is frozen after a small Newton step, which is taken whatever the safeguards say: at the
    root rounding alone decides where it points. Where there is no root the nearer end is found.
    """
    m, a, b = (np.ravel(one) for one in np.broadcast_arrays(margin, low, high))
    root = np.empty(m.size)
    for start in range(0, m.size, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        root[part] = _roots_at_once(loss, m[part], step, a[part], b[part])
    return root.reshape(np.shape(margin))


def _roots_at_once(loss: Loss, m: Array, step: float, a: Array, b: Array) -> Array:
    root, todo = np.empty(m.size), np.arange(m.size)
    u = np.clip(m - step * loss.slope(m) / (1.0 + step * np.maximum(loss.curvature(m), 0.0)), a, b)
    last = b - a
    for _ in range(_MOST_STEPS):
        gap = u - m + step * loss.slope(u)
        a, b = np.where(gap <= 0.0, u, a), np.where(gap >= 0.0, u, b)
        rise = 1.0 + step * loss.curvature(u)
        move = -gap / np.where(rise > 0.0, rise, np.inf)
        small = (np.abs(move) <= _SMALL_STEP * (1.0 + np.abs(u))) & (rise > 0.0)
        good = small | ((u + move > a) & (u + move < b) & (np.abs(move) <= 0.5 * last))
        new = np.where(good, u + move, a + (b - a) / 2.0)
        last = np.abs(new - u)
        u = new
        done = small | (last <= _ROUNDING * (1.0 + np.abs(u)))
        if done.any():
            root[todo[done]] = u[done]
            left = ~done
            todo, m, a, b = todo[left], m[left], a[left], b[left]
            u, last = u[left], last[left]
            if not todo.size:
                break
    root[todo] = u
    return root
