"""Who hands the nodes' weights around where nodes do not talk to each other; it has no data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsvm._memory import Remembers
from dpsvm.admm.network.terms import Terms

Array = NDArray[np.float64]


class Relay(Remembers):
    """Takes the weights of all nodes, round by round, and gives each those of its neighbours.

    spent : the epsilon of the messages through each update, if the run is private

    >>> from dpsvm.admm.network import Penalties, make_graph
    >>> from dpsvm.losses import Logistic
    >>> penalties = Penalties(make_graph("path", 3), np.ones((1, 3)))
    >>> relay = Relay(Terms(penalties=penalties, loss=Logistic(), C=1.0, lam=1.0, rounds=1))
    >>> relay.take([np.zeros(1), np.ones(1), np.ones(1)])[0]
    array([[1.]])
    >>> relay.over
    False
    """

    _memory: ClassVar = ("round", "weights", "updated")

    def __init__(self, terms: Terms, spent: Array | None = None) -> None:
        self.terms, self.spent = terms, spent
        self.round = -1  # of the weights; 0 is where the nodes start
        self.weights = np.zeros((terms.graph.n_nodes, 0))  # f_i(t)
        self.updated = self.weights  # f_i of the last update

    @property
    def over(self) -> bool:
        """Whether there are no more rounds."""
        return self.round >= self.terms.rounds

    def take(self, weights: Sequence[Array]) -> list[Array]:
        """The next round: what each node is told, a row for each neighbour."""
        self.weights = np.array(weights)
        self.round += 1
        if self.round == 0 or self.terms.is_update(self.round):
            self.updated = self.weights
        return [self.weights[list(own)] for own in self.terms.graph.neighbours]

    def metrics(self) -> dict[str, float]:
        """How far the nodes are from agreeing, and what was spent."""
        apart = self.weights - self.weights.mean(axis=0)
        found = {"apart": float(np.linalg.norm(apart, axis=1).max())}
        if self.spent is not None:
            found["spent"] = float(self.spent[self.terms.update_of(self.round) - 1])
        return found
