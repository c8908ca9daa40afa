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
    """The bound on the pilot runs, which chose the rule and so say more than they should."""

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

    def later_half(self, direction: Floats | None) -> Floats:
        """The statistics of the second half, and with a direction the parameters along it."""
        half = len(self.statistics) // 2
        kept = self.statistics[half:]
        if direction is None:
            return kept
        return np.column_stack([kept, self.parameters[half:] @ direction])


class _Split(NamedTuple):
    """A threshold on one statistic, compared by what it promises, then by the room around it."""

    bound: float
    room: float  # from the nearest value below to the nearest above, in standard deviations
    threshold: float
    at_least: bool
    likely: str


def choose(
    names: Sequence[str],
    with_record: Pilot,
    without_record: Pilot,
    *,
    delta: float,
    confidence: float,
) -> Rule:
    """The event whose bound on the pilot runs is largest; among equals the one with most room.

    With parameters, the first half of the runs gives a direction, and all is judged on the second.

    >>> inside, outside = (Pilot.of(np.arange(9.0)[:, None] + shift) for shift in (20.0, 0.0))
    >>> rule = choose(["score"], inside, outside, delta=0.0, confidence=0.95)
    >>> rule.event, rule.likely
    ('score at least 14', 'with')
    """
    offered, direction = list(names), None
    inside, outside = with_record.statistics, without_record.statistics
    if with_record.parameters.shape[1]:
        half = len(inside) // 2
        direction = _direction(with_record.parameters[:half], without_record.parameters[:half])
        inside, outside = with_record.later_half(direction), without_record.later_half(direction)
        offered += [LEARNED] * (direction is not None)
    ends = _Ends.of(len(inside), confidence)
    splits = [_best_split(*pair, ends, delta) for pair in zip(inside.T, outside.T, strict=True)]
    best = max(range(len(offered)), key=lambda column: splits[column][:2])
    name, split = offered[best], splits[best]
    learned = tuple(direction.tolist()) if direction is not None and name == LEARNED else None
    return Rule(name, split.threshold, split.at_least, split.likely, learned, split.bound)


@dataclass(frozen=True, eq=False)
class _Ends:
    """The ends of Clopper and Pearson's interval for every count."""

    runs: int
    low: Floats  # [runs + 1]
    high: Floats  # [runs + 1]

    @staticmethod
    def of(runs: int, confidence: float) -> _Ends:
        counts, level = np.arange(runs + 1), (1.0 - confidence) / 2.0
        return _Ends(
            runs,
            probability_at_least(counts, runs, level),
            probability_at_most(counts, runs, level),
        )


def _best_split(inside: Floats, outside: Floats, ends: _Ends, delta: float) -> _Split:
    values = np.unique(np.concatenate([inside, outside]))
    if len(values) == 1:  # nothing to tell apart
        return _Split(0.0, 0.0, float(values[0]), True, WITH)
    below, above = values[:-1], values[1:]
    thresholds = below / 2.0 + above / 2.0
    thresholds = np.where(thresholds > below, thresholds, above)
    reached = {
        WITH: ends.runs - np.searchsorted(np.sort(inside), thresholds),
        WITHOUT: ends.runs - np.searchsorted(np.sort(outside), thresholds),
    }
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        spread = np.sqrt((inside.var() + outside.var()) / 2.0)
        room = np.where(spread > 0.0, (above - below) / spread, np.inf)
    splits = []
    for likely, other in ((WITH, WITHOUT), (WITHOUT, WITH)):
        for at_least in (True, False):
            more, less = reached[likely], reached[other]
            if not at_least:
                more, less = ends.runs - more, ends.runs - less
            bound = epsilon_from(ends.low[more], ends.high[less], delta)
            best = np.lexsort((room, bound))[-1]
            threshold = float(thresholds[best])
            splits.append(
                _Split(float(bound[best]), float(room[best]), threshold, at_least, likely)
            )
    return max(splits, key=lambda split: split[:2])


def _direction(inside: Floats, outside: Floats) -> Floats | None:
    """Fisher's direction with a shrunken covariance; None where the means do not differ."""
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
