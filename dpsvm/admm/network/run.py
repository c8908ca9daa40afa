"""The loop in one process, and a relay where nodes are elsewhere and do not talk to each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from dpsvm._arrays import Array
from dpsvm._memory import Remembers
from dpsvm.admm.network.node import Iterate, Node
from dpsvm.admm.network.terms import Terms

Watch = Callable[[int, Sequence[Node]], bool]
"""Called after every round with its number; looks, changes nothing, says whether to stop."""


def run(nodes: Sequence[Node], watch: Watch | None = None) -> int:
    """Let every node emit and absorb, once a round; return how many there were.

    >>> import numpy as np
    >>> from dpsvm.admm.network import Samples
    >>> terms = Terms.of("path", 2, C=1.0, lam=2.0, rounds=60)
    >>> nodes = [Node(i, Samples(np.eye(1) / (1 + i), np.ones(1)), terms) for i in range(2)]
    >>> run(nodes)
    60
    >>> nodes[0].state.weights.round(6) == nodes[1].state.weights.round(6)
    array([ True])
    """
    _deliver(nodes, [node.opening() for node in nodes])
    for round in range(1, nodes[0].terms.rounds + 1):
        _deliver(nodes, [node.emit() for node in nodes])
        if watch is not None and watch(round, nodes):
            break
    return round


def _deliver(nodes: Sequence[Node], messages: Sequence[Iterate]) -> None:
    for node in nodes:
        node.absorb([messages[other] for other in node.neighbours])


class Relay(Remembers):
    """Takes the weights of all nodes, round by round, and gives each those of its neighbours.

    It has no data.

    spent : the epsilon of the messages through each update, if the run is private

    >>> relay = Relay(Terms.of("path", 3, C=1.0, lam=1.0, rounds=1))
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
