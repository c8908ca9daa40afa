"""What travels between the coordinator and a party: one number per sample each way, and no more.

A party never sends its columns or its weights, and never sees those of another. The coordinator
never sends the labels; but its price, the dual variable, gives them away: labels are not protected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_COUNT = _NUMBER = 8  # bytes of a round or a party, and of a real number
_FLAG = 1


@dataclass(frozen=True)
class Broadcast:
    """From the coordinator to every party, before a round.

    >>> Broadcast(1, np.zeros(100), rho=0.5).nbytes
    817
    """

    round: int
    price: Array  # v = y + rho (S - z), one number per sample
    rho: float
    keep: bool = False  # the last answers were the best so far: remember the weights behind them

    @property
    def nbytes(self) -> int:
        """Its size on a wire, without framing."""
        return _COUNT + self.price.nbytes + _NUMBER + _FLAG


@dataclass(frozen=True)
class Contribution:
    """From a party to the coordinator: its part of every sample's prediction, in a private mode
    with noise.

    >>> Contribution(1, 0, np.zeros(100)).nbytes
    816
    """

    round: int
    party: int
    prediction: Array  # p_m = D_m x_m, one number per sample

    @property
    def nbytes(self) -> int:
        """Its size on a wire, without framing."""
        return 2 * _COUNT + self.prediction.nbytes


@dataclass(frozen=True)
class Ending:
    """From the coordinator to every party, after the last round.

    >>> Ending(20, "rounds").restore
    False
    """

    round: int
    reason: str  # "converged", "rounds" (there are no more), "diverged" or "stopped" (from outside)
    restore: bool = False  # go back to the weights that were kept last
