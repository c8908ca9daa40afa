"""What releases cost together: composition, conversion and calibration.

A release is described by an event: the strongest statement that is proved about it.

    Pure(epsilon)                epsilon-differential privacy
    Approximate(epsilon, delta)  (epsilon, delta)-differential privacy, nothing more known
    Gaussian(mu)                 Gaussian noise of standard deviation sensitivity / mu
    ZCdp(rho)                    rho-zero-concentrated differential privacy
    Folded(mu, offset, ...)      a Gaussian random term in an objective, which only its minimiser
                                 shows
    Rdp(orders, values)          Renyi differential privacy, one value for each order

:func:`epsilon_of` composes events by every rule that applies and returns the smallest epsilon. What
is asked of the data may depend on earlier releases; what it may cost was settled beforehand.
(:func:`epsilon_at_order` is for costs that were not.) The rules:

* Gaussians alone: exactly, mu = sqrt(sum of mu**2), delta(epsilon) = Phi(mu/2 - epsilon/mu) -
  exp(epsilon) Phi(-mu/2 - epsilon/mu) (Balle and Wang 2018; Dong, Roth and Su 2022). Folded ones
  among them: the same, with their offsets taken from epsilon and delta divided by their choices.
* Everything through Renyi divergences, which add up. A pure event is bounded by randomised
  response, which dominates it; an approximate one is, but for a mass of delta, a pure one (Kairouz,
  Oh and Viswanath 2015), so that its delta is set aside.
* The pure and approximate events by adding their epsilons, the others by the rules above.

Rounding: searches stop at neighbouring floats and return the one on the safe side, a larger epsilon
or a smaller mu. The formulas themselves are evaluated in floating point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from dpsvm._arrays import Array
from dpsvm.constraints import check_positive, shown
from dpsvm.privacy.guarantee import check_delta, check_epsilon
from dpsvm.privacy.rounding import RANGE

ORDERS: tuple[float, ...] = (
    *(1 + k / 100 for k in range(2, 100)),
    *(2 + k / 20 for k in range(160)),
    *range(10, 64),
    *(2.0**k for k in range(6, 21)),
)
"""The orders of Renyi divergence that are tried."""


def _mu(value: Any) -> float:
    """A finite number above 0 whose square is one too."""
    number = check_positive(value, "mu")
    if number > RANGE[1]:
        raise ValueError(f"mu must be at most {RANGE[1]:g}, got {number!r}")
    return number


@dataclass(frozen=True)
class Pure:
    """A release that is epsilon-differentially private.

    >>> epsilon_of([Pure(0.5), Pure(0.25)], delta=0)
    0.75
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive(self.epsilon, "epsilon"))

    def rdp(self, orders: ArrayLike) -> Array:
        """Renyi divergences of randomised response, the worst of all epsilon-private releases."""
        order = np.asarray(orders, np.float64)
        yes, no = -np.logaddexp(0.0, -self.epsilon), -np.logaddexp(0.0, self.epsilon)
        both = np.logaddexp(order * yes + (1 - order) * no, order * no + (1 - order) * yes)
        return np.asarray(np.minimum(np.maximum(both, 0.0) / (order - 1), self.epsilon))


@dataclass(frozen=True)
class Approximate:
    """A release that is (epsilon, delta)-differentially private.

    >>> epsilon_of([Approximate(0.5, 1e-6), Approximate(0.5, 1e-6)], delta=2e-6)
    1.0
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", check_delta(self.delta))


@dataclass(frozen=True)
class Gaussian:
    """A release with Gaussian noise, mu = sensitivity / standard deviation.

    >>> round(epsilon_of([Gaussian(0.2)] * 25, delta=1e-5), 4)
    4.3772
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _mu(self.mu))

    def rdp(self, orders: ArrayLike) -> Array:
        """Renyi divergences of two Gaussians that lie mu standard deviations apart."""
        return np.asarray(orders, np.float64) * (self.mu**2 / 2)


@dataclass(frozen=True)
class ZCdp:
    """A release that is rho-zero-concentrated differentially private.

    >>> epsilon_of([ZCdp(0.5)], delta=1e-5) > epsilon_of([Gaussian(1.0)], delta=1e-5)
    True
    """

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_positive(self.rho, "rho"))

    def rdp(self, orders: ArrayLike) -> Array:
        """Its Renyi divergences, by definition."""
        return np.asarray(orders, np.float64) * self.rho


@dataclass(frozen=True)
class Folded:
    """A release that a Gaussian hides, though not by being added to it.

    Of the privacy loss of each of ``parts`` such releases two things are known, Z being standard
    normal: the mean of exp(s loss), s > 0, is at most that of exp(s (offset + mu^2 / 2 + mu |Z|)),
    and the loss is at most ``offset`` more than the largest of ``choices`` losses of Gaussian noise
    with this mu or less.

    The first gives Renyi divergences. The second gives a delta: that of the largest of several is
    at most the sum of theirs, so delta(epsilon) <= choices * gaussian_delta(mu, epsilon - offset).
    Over several releases offsets add up, mu^2 add up and choices multiply: for any fixed choice at
    each, every loss is, given the earlier ones, that of a Gaussian with its mu or less.

    >>> round(epsilon_of([Folded(0.2, offset=0.1)], delta=2e-5), 4)  # 0.1 + that of a Gaussian
    0.8255
    """

    mu: float
    offset: float = 0.0
    choices: int = 2
    parts: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _mu(self.mu))
        object.__setattr__(self, "offset", check_positive(self.offset, "offset", zero=True))
        for name in ("choices", "parts"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= value < 2**63:
                raise ValueError(f"{name} must be a whole number from 1 on, got {shown(value)}")
            object.__setattr__(self, name, int(value))

    def rdp(self, orders: ArrayLike) -> Array:
        """Renyi divergences, from the moments of a folded normal variable."""
        more = np.asarray(orders, np.float64) - 1
        folded = math.log(2) + log_ndtr(more * self.mu)
        each = self.offset + (more + 1) * (self.mu**2 / 2) + folded / more
        return np.asarray(self.parts * each)


@dataclass(frozen=True)
class Rdp:
    """A release of known Renyi divergences, one for each order.

    >>> epsilon_of([Rdp((2.0, 8.0), (0.1, 0.4))], delta=1e-5) < 2
    True
    """

    orders: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "orders", tuple(map(float, self.orders)))
        object.__setattr__(self, "values", tuple(map(float, self.values)))
        if not self.orders or len(self.orders) != len(self.values):
            raise ValueError(
                f"as many values as orders are needed, at least one, got {len(self.values)} "
                f"values for {len(self.orders)} orders"
            )
        for order in self.orders:
            if not 1 < order < math.inf:
                raise ValueError(f"an order must be a finite number above 1, got {order!r}")
        for value in self.values:
            if not value >= 0:
                raise ValueError(f"a divergence must be a number from 0 on, got {value!r}")

    def rdp(self, orders: ArrayLike) -> Array:
        """The divergences at orders that must be among its own."""
        known = dict(zip(self.orders, self.values, strict=True))
        return np.array([known[order] for order in np.asarray(orders, np.float64).tolist()])


Event = Pure | Approximate | Gaussian | ZCdp | Folded | Rdp
"""What is known of one release."""


def epsilon_of(events: Sequence[Event], delta: float) -> float:
    """The smallest epsilon that is proved for all the releases together; infinite if none is.

    >>> epsilon_of([], delta=0)
    0.0
    >>> epsilon_of([Gaussian(1.0)], delta=0)
    inf
    """
    return min(bounds_on_epsilon(events, delta).values())


def bounds_on_epsilon(events: Sequence[Event], delta: float) -> dict[str, float]:
    """Every bound that applies, by the name of its rule.

    "gaussian" is exact where all are Gaussian; "renyi" composes Renyi divergences; "basic" adds
    up epsilons, of each Gaussian, concentrated, folded or Renyi release too, at an equal share of
    delta.

    >>> rules = bounds_on_epsilon([Gaussian(0.1887)] * 20, delta=2e-5)
    >>> {rule: round(epsilon, 2) for rule, epsilon in rules.items()}
    {'basic': 15.67, 'renyi': 3.76, 'gaussian': 3.46}
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be a number from 0 to 1, got {delta!r}")
    spare = delta - math.fsum(event.delta for event in events if isinstance(event, Approximate))
    added = _added(e.epsilon for e in events if isinstance(e, Pure | Approximate))
    noisy = [event for event in events if not isinstance(event, Pure | Approximate)]
    if spare < -1e-12 * delta:
        return {"basic": math.inf}
    spare = max(spare, 0.0)
    share = spare / len(noisy) if noisy else 0.0
    price = {event: _alone(event, share) for event in set(noisy)}  # equal charges cost the same
    bounds = {"basic": _added([added, *(price[event] for event in noisy)])}
    if events and spare > 0:
        bounds["renyi"] = min(
            _by_renyi(
                [Pure(e.epsilon) if isinstance(e, Approximate) else e for e in events], spare
            ),
            added + _by_renyi(noisy, spare),
        )
    gaussian = [event for event in noisy if isinstance(event, Gaussian | Folded)]
    if noisy and len(gaussian) == len(noisy):
        bounds["gaussian"] = added + _by_gaussian(gaussian, spare)
    return bounds


def filter_order(epsilon: float, delta: float) -> float:
    """The order of Renyi divergence at which Gaussian releases fill a budget best.

    >>> filter_order(1.0, 1e-5)
    25
    """
    room = math.log(1.0 / delta)
    rho = (math.sqrt(room + epsilon) - math.sqrt(room)) ** 2
    best = 1.0 + math.sqrt(room / rho)
    return min(ORDERS, key=lambda order: abs(order - best))


def epsilon_at_order(events: Sequence[Event], delta: float, order: float) -> float:
    """What releases cost by Renyi divergences of one order, fixed before the first of them.

    This holds even if the cost of each was chosen in the light of earlier releases (Feldman and
    Zrnic 2021), where the smallest of several bounds would not: which one is the smallest would
    then depend on the data. One half of delta is for approximate events, the other for the
    conversion. Without delta epsilons are added up, which holds likewise.

    >>> round(epsilon_at_order([Gaussian(0.2)], 1e-5, 25.0), 3)
    0.834
    """
    approximate = [event for event in events if isinstance(event, Approximate)]
    others = [Pure(e.epsilon) if isinstance(e, Approximate) else e for e in events]
    if delta == 0:
        return epsilon_of(events, 0.0)
    if math.fsum(event.delta for event in approximate) > delta / 2 or any(
        isinstance(event, Rdp) and order not in event.orders for event in others
    ):
        return math.inf
    if not others:
        return 0.0
    total = _added(float(event.rdp([order])[0]) for event in others)
    return rdp_to_epsilon([order], [total], delta / 2)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The exact delta at epsilon of Gaussian noise with sensitivity / standard deviation = mu.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    if mu <= 0 or epsilon == math.inf:
        return 0.0
    if mu == math.inf:
        return 1.0
    over = float(log_ndtr(mu / 2 - epsilon / mu))
    under = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(over) * -math.expm1(min(under - over, 0.0))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest epsilon that holds for Gaussian noise at delta, rounded up.

    >>> round(gaussian_epsilon(1.0, 1e-5), 6)
    4.377178
    """
    if mu <= 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if delta <= 0:
        return math.inf
    enough = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    return least(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, 0.0, enough)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu that holds, rounded down: noise of sensitivity / mu gives (epsilon, delta).

    >>> round(1 / gaussian_mu(1.0, 1e-5), 4)
    3.7306
    """
    check_epsilon(epsilon)
    check_delta(delta)
    too_much = 1.0
    while gaussian_delta(too_much, epsilon) <= delta:
        too_much *= 2
    return _border(lambda mu: not gaussian_delta(mu, epsilon) <= delta, 0.0, too_much)[0]


def rdp_to_epsilon(orders: ArrayLike, values: ArrayLike, delta: float) -> float:
    """The smallest epsilon at delta that Renyi divergences prove.

    Order a and divergence r give epsilon = r + log(1 - 1/a) - log(delta a) / (a - 1) (Canonne,
    Kamath and Steinke 2020), and epsilon = 0 where delta >= sqrt(1 - exp(-r)) (Bretagnolle and
    Huber).

    >>> round(rdp_to_epsilon([2.0, 10.0], [0.2, 1.0], 1e-5), 4)
    1.918
    """
    order, value = np.asarray(orders, np.float64), np.asarray(values, np.float64)
    if not 0 < delta < 1:
        return math.inf
    epsilon = value + np.log1p(-1 / order) - np.log(delta * order) / (order - 1)
    epsilon = np.where(-np.expm1(-value) <= delta**2, 0.0, epsilon)
    return float(max(np.min(epsilon), 0.0))


def calibrate(events_of: Callable[[float], Sequence[Event]], epsilon: float, delta: float) -> float:
    """The least noise with which the events it makes stay within (epsilon, delta), rounded up.

    events_of : callable
        Takes a noise scale above 0 and gives the events; more noise must never cost more.

    >>> noise = calibrate(lambda sigma: [Gaussian(1 / sigma)] * 100, 1.0, 1e-5)
    >>> round(noise, 3)
    37.306
    """
    check_epsilon(epsilon)

    def holds(noise: float) -> bool:
        return _within(events_of(noise), epsilon, delta)

    enough = 1.0
    while not holds(enough):
        enough *= 2
        if enough > 2.0**100:
            raise ValueError(f"no noise reaches epsilon = {epsilon!r} at delta = {delta!r}")
    too_little = enough / 2
    while holds(too_little):
        enough, too_little = too_little, too_little / 2
        if too_little < 2.0**-100:
            return enough
    return least(holds, too_little, enough, digits=12)


def _added(values: Iterable[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _alone(event: Gaussian | ZCdp | Folded | Rdp, delta: float) -> float:
    """What one release costs at delta."""
    if isinstance(event, Gaussian):
        return _by_gaussian([event], delta)
    if isinstance(event, Folded):
        return min(_by_gaussian([event], delta), _by_renyi([event], delta))
    return _by_renyi([event], delta)


def _by_gaussian(events: Sequence[Gaussian | Folded], delta: float) -> float:
    """One Gaussian for all of them, with the offsets and choices of the folded ones."""
    mu, offset, choices = _as_one(events)
    return offset + gaussian_epsilon(mu, delta * math.exp(-choices))


def _as_one(events: Sequence[Gaussian | Folded]) -> tuple[float, float, float]:
    """The mu, the offset and the logarithm of the choices of all of them together."""
    folded = [event for event in events if isinstance(event, Folded)]
    mus = [event.mu for event in events if isinstance(event, Gaussian)]
    mus += [event.mu * math.sqrt(event.parts) for event in folded]
    offset = _added(event.parts * event.offset for event in folded)
    choices = math.fsum(event.parts * math.log(event.choices) for event in folded)
    return math.hypot(*mus), offset, choices


def _within(events: Sequence[Event], epsilon: float, delta: float) -> bool:
    """Whether epsilon is proved; to test one is cheaper than to find the smallest."""
    gaussian = [event for event in events if isinstance(event, Gaussian | Folded)]
    if len(gaussian) < len(events) or not events:
        return epsilon_of(events, delta) <= epsilon
    mu, offset, choices = _as_one(gaussian)
    left = (epsilon - offset) * (1 - 2.0**-50)  # so that adding the offset does not exceed epsilon
    if left >= 0 and gaussian_delta(mu, left) <= delta * math.exp(-choices):
        return True
    return choices > 0 and _by_renyi(gaussian, delta) <= epsilon


def _by_renyi(events: Sequence[Pure | Gaussian | ZCdp | Folded | Rdp], delta: float) -> float:
    if not events:
        return 0.0
    known = [set(event.orders) for event in events if isinstance(event, Rdp)]
    orders = sorted(set.intersection(*known)) if known else list(ORDERS)
    if not orders:
        return math.inf
    total = np.sum([event.rdp(orders) for event in events], axis=0)
    return rdp_to_epsilon(orders, total, delta)


def least(
    holds: Callable[[float], bool], low: float, high: float, *, digits: int | None = None
) -> float:
    """The least number for which it holds, given that it holds at `high` and not at `low`.

    >>> least(lambda x: x * x >= 2.0, 0.0, 2.0)
    1.4142135623730951
    """
    return _border(holds, low, high, digits)[1]


def _border(
    above: Callable[[float], bool], low: float, high: float, digits: int | None = None
) -> tuple[float, float]:
    """The neighbouring floats, or numbers of so many common digits, between which it sets in."""
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high or (digits and high - low <= 10.0**-digits * high):
            return low, high
        low, high = (low, middle) if above(middle) else (middle, high)
