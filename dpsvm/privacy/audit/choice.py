"""The event that tells the two worlds apart, chosen on pilot runs that the bound never sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsvm.privacy.audit.bounds import epsilon_from, probability_at_least, probability_at_most
from dpsvm.privacy.audit.worlds import WITH, WITHOUT

Floats = NDArray[np.float64]

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

    def count(self, values: Floats) -> int:
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

    statistics: Floats
    parameters: Floats

    @staticmethod
    def of(statistics: Floats) -> Pilot:
        """Statistics alone."""
        return Pilot(statistics, np.empty((len(statistics), 0)))


@dataclass(frozen=True)
class Aim:
    """What the rule is chosen for: the bound of ``runs`` test runs of each world."""

    runs: int
    delta: float
    confidence: float

    def expected(self, likely: Floats, rare: Floats) -> Floats:
        """The bound if the event happens as often as its two probabilities say.

        >>> aim = Aim(runs=8000, delta=0.0, confidence=0.95)
        >>> aim.expected(np.array([1.0, 0.5]), np.array([1e-3, 0.0])).round(2)
        array([6.23, 6.97])
        """
        level = (1.0 - self.confidence) / 2.0
        low = probability_at_least(self.runs * likely, self.runs, level)
        high = probability_at_most(self.runs * rare, self.runs, level)
        return epsilon_from(low, high, self.delta)


class _Split(NamedTuple):
    """A threshold on one statistic, compared by what it promises, then by the room around it."""

    bound: float
    room: float  # from the nearest value below to the nearest above, in standard deviations
    threshold: float
    at_least: bool
    likely: str


def choose(names: Sequence[str], with_record: Pilot, without_record: Pilot, aim: Aim) -> Rule:
    """The event that promises the largest bound; among equals the one with most room.

    With parameters, the first half of the runs gives a direction, which the second half judges.

    >>> inside, outside = (Pilot.of(np.arange(40.0)[:, None] + shift) for shift in (900.0, 0.0))
    >>> rule = choose(["score"], inside, outside, Aim(runs=100, delta=0.0, confidence=0.95))
    >>> rule.event, rule.likely
    ('score at least 469.5', 'with')
    """
    columns = zip(names, with_record.statistics.T, without_record.statistics.T, strict=True)
    rules = [_rule(name, inside, outside, aim) for name, inside, outside in columns]
    half = len(with_record.parameters) // 2
    direction = _direction(with_record.parameters[:half], without_record.parameters[:half])
    if direction is not None:
        inside = with_record.parameters[half:] @ direction
        outside = without_record.parameters[half:] @ direction
        rules.append(_rule(LEARNED, inside, outside, aim, tuple(direction.tolist())))
    return max(rules, key=lambda found: found[0])[1]


def _rule(
    name: str, inside: Floats, outside: Floats, aim: Aim, direction: tuple[float, ...] | None = None
) -> tuple[tuple[float, float], Rule]:
    """The best rule on one statistic, after what it is compared by."""
    split = _best_split(inside, outside, aim)
    rule = Rule(name, split.threshold, split.at_least, split.likely, direction, split.bound)
    return split[:2], rule


def _best_split(inside: Floats, outside: Floats, aim: Aim) -> _Split:
    values = np.unique(np.concatenate([inside, outside]))
    if len(values) == 1:  # nothing to tell apart
        return _Split(0.0, 0.0, float(values[0]), True, WITH)
    below, above = values[:-1], values[1:]
    thresholds = below / 2.0 + above / 2.0
    thresholds = np.where(thresholds > below, thresholds, above)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        spread = np.sqrt((inside.var() + outside.var()) / 2.0)
        room = np.where(spread > 0.0, (above - below) / spread, np.inf)
    splits = []
    for likely, more, less in ((WITH, inside, outside), (WITHOUT, outside, inside)):
        for at_least in (True, False):
            side = thresholds, at_least
            bound = aim.expected(_at_least(more, *side), _at_most(less, *side))
            best = np.lexsort((room, bound))[-1]
            found = float(bound[best]), float(room[best]), float(thresholds[best])
            splits.append(_Split(*found, at_least, likely))
    return max(splits, key=lambda split: split[:2])


def _counts(values: Floats, thresholds: Floats, at_least: bool) -> NDArray[np.intp]:
    """How many values are on one side of each threshold."""
    below = np.searchsorted(np.sort(values), thresholds)
    return len(values) - below if at_least else below


def _at_least(values: Floats, thresholds: Floats, at_least: bool) -> Floats:
    """The chance of a value on one side of each threshold, less a standard error."""
    ends = probability_at_least(np.arange(len(values) + 1), len(values), _DOUBT)
    return ends[_counts(values, thresholds, at_least)]


def _at_most(values: Floats, thresholds: Floats, at_least: bool) -> Floats:
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


def _direction(inside: Floats, outside: Floats) -> Floats | None:
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
    direction: Floats = np.linalg.solve(covariance, difference)
    return direction / np.linalg.norm(direction)
