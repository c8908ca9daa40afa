"""The loop, in one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsvm.admm.network.messages import Iterate
from dpsvm.admm.network.node import Node

Watch = Callable[[int, Sequence[Node]], bool]
"""Called after every round with its number; looks, changes nothing, says whether to stop."""


def run(nodes: Sequence[Node], watch: Watch | None = None) -> int:
    """Let every node emit and absorb, once a round; return how many there were.

    >>> import numpy as np
    >>> from dpsvm.admm.network import Penalties, Samples, Terms, make_graph
    >>> from dpsvm.losses import Logistic
    >>> penalties = Penalties(make_graph("path", 2), np.full((60, 2), 0.5))
    >>> terms = Terms(penalties=penalties, loss=Logistic(), C=1.0, lam=2.0, rounds=60)
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
