"""What travels between neighbours: the weights of a node after every round, and no more.

A node never sends its rows, its labels or its multiplier; but neighbours that heard every iterate
know the multiplier, and the proofs of privacy count everything that was sent as known to all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_COUNT = 8  # bytes of a round or a node


@dataclass(frozen=True, eq=False)
class Iterate:
    """From a node to each of its neighbours, after a round; round 0 is where it starts.

    >>> Iterate(1, 0, np.zeros(100)).nbytes
    816
    """

    round: int
    node: int
    weights: Array  # f_i(t), in a private mode with noise

    @property
    def nbytes(self) -> int:
        """Its size on a wire, without framing."""
        return 2 * _COUNT + self.weights.nbytes
