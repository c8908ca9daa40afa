"""What the coordinator needs of the contributions of a round: sums over the parties.

No single contribution is needed for the price, for rho or for stopping. So a sum that hides its
parts is enough; where the parts are at hand they are added up here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsvm._arrays import Array
from dpsvm.admm.sharing.party import Contribution


@dataclass(frozen=True)
class Total:
    """The sums over all parties of a round."""

    round: int
    prediction: Array  # S, the sum of all p_m
    moved: float  # the sum over the parties of |change of p_m|^2
    nbytes: int = 0  # of the messages, if they were seen


def moved(before: Array, after: Array) -> float:
    """The squared length of the change of a message.

    >>> moved(np.zeros(2), np.array([3.0, 4.0]))
    25.0
    """
    with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges
        change = after - before
    return float(np.vdot(change, change))


class Adder:
    """Adds up contributions, and keeps the last ones to know how far the next ones move.

    >>> adder = Adder(parties=1, samples=2)
    >>> adder.add([Contribution(1, 0, np.array([3.0, 4.0]))]).moved
    25.0
    >>> adder.add([Contribution(2, 0, np.array([3.0, 3.0]))]).moved
    1.0
    """

    def __init__(self, parties: int, samples: int) -> None:
        self.round = 0
        self._last = [np.zeros(samples) for _ in range(parties)]

    def add(self, contributions: Sequence[Contribution]) -> Total:
        """The sums of the next round."""
        self._check(contributions)
        predictions = [message.prediction for message in contributions]
        far = sum(map(moved, self._last, predictions), 0.0)
        self.round, self._last = self.round + 1, predictions
        nbytes = sum(message.nbytes for message in contributions)
        return Total(self.round, np.add.reduce(predictions, axis=0), far, nbytes)

    def _check(self, contributions: Sequence[Contribution]) -> None:
        if len(contributions) != len(self._last):
            raise ValueError(
                f"{len(self._last)} contributions are needed, got {len(contributions)}"
            )
        for message, last in zip(contributions, self._last, strict=True):
            if message.round != self.round + 1:
                raise ValueError(
                    f"a contribution to round {self.round + 1} is needed, party {message.party} "
                    f"sent one to round {message.round}"
                )
            if message.prediction.shape != last.shape:
                raise ValueError(
                    f"party {message.party} sent {message.prediction.shape} numbers for "
                    f"{len(last)} samples"
                )
