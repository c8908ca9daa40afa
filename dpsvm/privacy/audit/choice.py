"""The event that tells the two worlds apart, chosen on pilot runs that the bound never sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm._arrays import Array
from dpsvm.privacy.audit.bounds import epsilon_from, probability_at_least, probability_at_most
from dpsvm.privacy.audit.worlds import WITH, WITHOUT

LEARNED = "weights along the direction that parts the pilot runs"
"""The statistic whose direction comes from the pilot runs themselves."""

_SHRINK = 0.05  # share of the mean variance added to every variance before inverting
_TAIL = 0.05  # share of the pilot runs that shows how fast a tail falls off
_FEWEST = 10  # and the fewest runs that do
_DOUBT = 0.16  # chance that a probability is farther off than a standard error, on one side


@dataclass(frozen=True)
class Rule:
    """An event on the released model: a statistic at least, or below, a threshold.

    >>> rule = Rule("intercept", threshold=1.5, at_least=False, likely="with")
    >>> rule.event, rule.count(np.array([0.0, 1.5, 1.0]))
    ('intercept below 1.5', 2)
    """

    statistic: str
    threshold: float
    at_least: bool
    likely: str
    """The world in which the event was more frequent: its probability is bounded from below."""
    direction: tuple[float, ...] | None = None
    """Of ``LEARNED``: the weights of coefficients and intercepts."""
    promise: float = 0.0
    """The bound expected of the test runs when the rule was chosen."""

    @property
    def event(self) -> str:
        """The event in words."""
        return f"{self.statistic} {'at least' if self.at_least else 'below'} {self.threshold:.6g}"

    def count(self, values: Array) -> int:
        """How often the event happened."""
        above = int(np.count_nonzero(values >= self.threshold))
        return above if self.at_least else len(values) - above

    def to_dict(self) -> dict[str, Any]:
        """Plain values; :meth:`from_dict` reads them back."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Rule:
        """The rule that :meth:`to_dict` wrote."""
        given = values["direction"]
        return Rule(**{**values, "direction": None if given is None else tuple(given)})


@dataclass(frozen=True, eq=False)
class Pilot:
    """What was measured in one world: statistics [runs, names], parameters [runs, p]."""

    statistics: Array
    parameters: Array

    @staticmethod
    def of(statistics: Array) -> Pilot:
        """Statistics alone."""
        return Pilot(statistics, np.empty((len(statistics), 0)))


@dataclass(frozen=True)
class Aim:
    """What the rule is chosen for: the bound of ``runs`` test runs of each world."""

    runs: int
    delta: float
    confidence: float

    def expected(self, likely: Array, rare: Array) -> Array:
        """The bound if the event happens as often as its two probabilities say.

        >>> aim = Aim(runs=8000, delta=0.0, confidence=0.95)
        >>> aim.expected(np.array([1.0, 0.5]), np.array([1e-3, 0.0])).round(2)
        array([6.23, 6.97])
        """
        level = (1.0 - self.confidence) / 2.0
        low = probability_at_least(self.runs * likely, self.runs, level)
        high = probability_at_most(self.runs * rare, self.runs, level)
        return epsilon_from(low, high, self.delta)


def choose(names: Sequence[str], with_record: Pilot, without_record: Pilot, aim: Aim) -> Rule:
    """The event that promises the largest bound; among equals the one with most room.

    With parameters, the first half of the runs gives a direction, which the second half judges.

    >>> inside, outside = (Pilot.of(np.arange(40.0)[:, None] + shift) for shift in (900.0, 0.0))
    >>> rule = choose(["score"], inside, outside, Aim(runs=100, delta=0.0, confidence=0.95))
    >>> rule.event, rule.likely
    ('score at least 469.5', 'with')
    """
    statistics = with_record.statistics.T, without_record.statistics.T
    rules = [
        rule
        for name, inside, outside in zip(names, *statistics, strict=True)
        for rule in _rules(name, inside, outside, aim)
    ]
    half = len(with_record.parameters) // 2
    direction = _direction(with_record.parameters[:half], without_record.parameters[:half])
    if direction is not None:
        inside = with_record.parameters[half:] @ direction
        outside = without_record.parameters[half:] @ direction
        rules += _rules(LEARNED, inside, outside, aim, tuple(direction.tolist()))
    return max(rules, key=lambda found: found[0])[1]


def _rules(
    name: str, inside: Array, outside: Array, aim: Aim, direction: tuple[float, ...] | None = None
) -> Iterator[tuple[tuple[float, float], Rule]]:
    """The best rules on one statistic, each after what it is compared by: its bound, then its room.

    Room is from the nearest value below to the nearest above, in standard deviations.
    """
    values = np.unique(np.concatenate([inside, outside]))
    if len(values) == 1:  # nothing to tell apart
        yield (0.0, 0.0), Rule(name, float(values[0]), True, WITH, direction)
        return
    below, above = values[:-1], values[1:]
    thresholds = below / 2.0 + above / 2.0
    thresholds = np.where(thresholds > below, thresholds, above)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        spread = np.sqrt((inside.var() + outside.var()) / 2.0)
        room = np.where(spread > 0.0, (above - below) / spread, np.inf)
    for likely, more, less in ((WITH, inside, outside), (WITHOUT, outside, inside)):
        for at_least in (True, False):
            side = thresholds, at_least
            bound = aim.expected(_at_least(more, *side), _at_most(less, *side))
            best = np.lexsort((room, bound))[-1]
            promise, threshold = float(bound[best]), float(thresholds[best])
            rule = Rule(name, threshold, at_least, likely, direction, promise)
            yield (promise, float(room[best])), rule


def _counts(values: Array, thresholds: Array, at_least: bool) -> NDArray[np.intp]:
    """How many values are on one side of each threshold."""
    below = np.searchsorted(np.sort(values), thresholds)
    return len(values) - below if at_least else below


def _at_least(values: Array, thresholds: Array, at_least: bool) -> Array:
    """The chance of a value on one side of each threshold, less a standard error."""
    ends = probability_at_least(np.arange(len(values) + 1), len(values), _DOUBT)
    return ends[_counts(values, thresholds, at_least)]


def _at_most(values: Array, thresholds: Array, at_least: bool) -> Array:
    """The chance of a value on one side of each threshold and a standard error.

    Values of which none is beyond a threshold do not show how rare such a value is, and the first
    threshold beyond them all would promise too much. The outermost values show how fast the tail
    falls off; it is taken to go on like that, exponentially.

    >>> _at_most(np.arange(400.0), np.array([300.0, 420.0, 440.0]), at_least=True).round(4)
    array([0.2734, 0.002 , 0.0004])
    """
    ends = probability_at_most(np.arange(len(values) + 1), len(values), _DOUBT)
    chances = ends[_counts(values, thresholds, at_least)]
    count = min(max(int(_TAIL * len(values)), _FEWEST), len(values))
    tail = np.sort(values if at_least else -values)[-count:]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        beyond = (thresholds if at_least else -thresholds) - tail[0]
        length = (tail - tail[0]).mean() * (1.0 + count**-0.5)
        falling = ends[count] * np.exp(-beyond / length)
    return np.where((beyond > 0.0) & np.isfinite(falling), falling, chances)


def _direction(inside: Array, outside: Array) -> Array | None:
    """Fisher's direction with a shrunken covariance; None where the means do not differ."""
    if not inside.size:
        return None
    difference = inside.mean(axis=0) - outside.mean(axis=0)
    rest = np.vstack([inside - inside.mean(axis=0), outside - outside.mean(axis=0)])
    covariance = rest.T @ rest / len(rest)
    if not difference.any() or not (
        np.isfinite(difference).all() and np.isfinite(covariance).all()
    ):
        return None
    diagonal = np.diag_indices_from(covariance)
    covariance[diagonal] += _SHRINK * covariance[diagonal].mean() or 1.0
    direction: Array = np.linalg.solve(covariance, difference)
    return direction / np.linalg.norm(direction)
