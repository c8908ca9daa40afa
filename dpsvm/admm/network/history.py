"""What happened in every round, as an observer sees it, and what the theory asks of a run.

The paper measures a run by L(t), the mean over the nodes of the mean loss of each node's weights on
its own samples, which weights that disagree can make small. So there stand beside it the objective
of the mean of the weights, sum_i O_i, and how far apart the nodes are.

The paper's Theorem 1 gives sufficient conditions for convergence, which never hold on bipartite
graphs (a path, a star, an even ring), where D + A, degrees plus adjacency, is singular; the method
converges there all the same. Told here is what such a proof rests on and no data are needed for:
that eigenvalue; gamma above 0, which damps the swing between odd and even iterates; symmetric
penalties, without which the limit is another point; and penalties that do not grow, for the same
reason. Nothing is refused for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigvalsh

from dpsvm._arrays import Array
from dpsvm.admm.network.graph import Graph
from dpsvm.admm.network.node import Iterate, Node
from dpsvm.admm.network.terms import Terms
from dpsvm.distributed import history as distributed
from dpsvm.distributed.history import Assumption

_ZERO = 1e-10  # of the largest eigenvalue

Test = tuple[Callable[[Array], Array], Array]
"""The decisions on held-out samples as a function of the weights, and their signs."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round. The first block follows from the messages; the second does not."""

    round: int
    update: bool  # whether the nodes read their data
    consensus: float  # root mean square distance of the nodes' weights from their mean
    dual_sum: float  # |sum_i lambda_i|, 0 but for rounding with symmetric penalties
    data_accesses: int  # of all the nodes, up to here
    bytes_sent: int  # of all the nodes, in this round
    privacy: float | None  # P: the epsilon spent up to here, None without privacy

    loss: float | None = None  # L(t)
    objective: float | None = None  # sum_i O_i of the mean
    gradient_norm: float | None = None  # the largest that a node certified; None if private
    test_error: float | None = None  # of the mean, on data given for that
    test_loss: float | None = None


class History(distributed.History[Round]):
    """The rounds of a run.

    >>> one = {"update": True, "consensus": 0.0, "dual_sum": 0.0, "data_accesses": 2,
    ...        "bytes_sent": 8, "privacy": None, "loss": 1.0, "gradient_norm": 0.0}
    >>> history = History([Round(round=t, objective=2.0 / t, **one) for t in (1, 2)])
    >>> history["objective"]
    array([2., 1.])
    >>> history.updates_only()["round"]
    array([1., 2.])
    """

    OUTSIDE: ClassVar = ("loss", "objective", "gradient_norm", "test_error", "test_loss")

    def updates_only(self) -> History:
        """The rounds that read the data, without those that recycle."""
        return History([one for one in self.rounds if one.update], self.private, self.measured)


@dataclass
class Recorder:
    """Watches a run.

    spent : the epsilon of the messages through each update, if the run is private

    >>> from dpsvm.admm.network import Node, Samples, Terms, run
    >>> terms = Terms.of("path", 2, C=1.0, lam=2.0, rounds=3)
    >>> nodes = [Node(i, Samples(np.eye(1), np.ones(1)), terms) for i in range(2)]
    >>> watch = Recorder(History())
    >>> run(nodes, watch)
    3
    >>> watch.history["data_accesses"], watch.history["consensus"]
    (array([2., 4., 6.]), array([0., 0., 0.]))
    """

    history: History
    spent: Array | None = None
    test: Test | None = None

    def __call__(self, round: int, nodes: Sequence[Node]) -> bool:
        """Note a round; never stop there."""
        terms, spent = nodes[0].terms, self.spent
        weights = np.array([node.state.weights for node in nodes])
        mean = weights.mean(axis=0)
        loss, error = tested(self.test, terms, mean)
        self.history.rounds.append(
            Round(
                round=round,
                update=terms.is_update(round),
                consensus=float(np.sqrt(np.mean(np.sum((weights - mean) ** 2, axis=1)))),
                dual_sum=float(np.linalg.norm(sum(node.state.dual for node in nodes))),
                data_accesses=sum(node.state.data_accesses for node in nodes),
                bytes_sent=_bytes(nodes),
                privacy=None if spent is None else float(spent[terms.update_of(round) - 1]),
                test_error=error,
                test_loss=loss,
                **(self._measured(nodes, weights, mean) if self.history.measured else {}),
            )
        )
        return False

    def _measured(self, nodes: Sequence[Node], weights: Array, mean: Array) -> dict[str, Any]:
        """What is computed from the rows of the nodes."""
        terms = nodes[0].terms
        losses = [
            node.samples.mean_loss(terms, own) for node, own in zip(nodes, weights, strict=True)
        ]
        certified = None
        if not self.history.private:
            certified = max(node.state.certificate for node in nodes)
        return {
            "loss": math.fsum(losses) / len(nodes),
            "objective": objective(nodes, mean),
            "gradient_norm": certified,
        }


def tested(test: Test | None, terms: Terms, weights: Array) -> tuple[float | None, float | None]:
    """The mean loss and the error of some weights on held-out samples, where there are some."""
    if test is None:
        return None, None
    decide, signs = test
    decisions = decide(weights)
    wrong = float(np.mean((decisions > 0.0) != (signs > 0.0)))
    return float(terms.loss.value(signs * decisions).mean()), wrong


def objective(nodes: Sequence[Node], weights: Array) -> float:
    """sum_i O_i of some weights.

    >>> from dpsvm.admm.network import Node, Samples, Terms
    >>> terms = Terms.of("path", 2, C=1.0, lam=2.0, rounds=3)
    >>> nodes = [Node(i, Samples(np.eye(1), np.ones(1)), terms) for i in range(2)]
    >>> round(objective(nodes, np.zeros(1)), 6)  # 2 ln 2
    1.386294
    """
    return math.fsum(node.samples.objective(node.terms, weights) for node in nodes)


def _bytes(nodes: Sequence[Node]) -> int:
    """Every node sends its message to each neighbour."""
    return sum(
        Iterate(node.state.round, node.index, node.state.weights).nbytes * len(node.neighbours)
        for node in nodes
    )


def least_signless(graph: Graph) -> float:
    """The smallest eigenvalue of D + A: 0 if and only if the graph is bipartite.

    >>> from dpsvm.admm.network.graph import make_graph
    >>> least_signless(make_graph("ring", 4))
    0.0
    >>> round(least_signless(make_graph("complete", 4)), 9)
    2.0
    """
    matrix = graph.adjacency()
    matrix[range(graph.n_nodes), range(graph.n_nodes)] += graph.degrees
    values = eigvalsh(matrix)
    return float(values[0]) if values[0] > _ZERO * values[-1] else 0.0


def conditions(terms: Terms) -> list[Assumption]:
    """What convergence proofs of the recycled method rest on and no data are needed for.

    >>> print(conditions(Terms.of("star", 4, C=1.0, lam=1.0, gamma=0.5, rounds=4))[0])
    smallest eigenvalue of D + A (0: bipartite): 0 against 0, does not hold
    """
    symmetric = terms.penalties.form == "edge" or terms.penalties.equal
    found = [
        Assumption(
            "smallest eigenvalue of D + A (0: bipartite)",
            least_signless(terms.graph),
            0.0,
            strict=True,
        ),
        Assumption("symmetric penalties", float(symmetric), 1.0),
        Assumption(
            "first penalty over the last (below 1: the nodes agree before they are done)",
            1.0 / terms.penalties.grown,
            1.0,
        ),
    ]
    if terms.gamma is not None:
        found.append(Assumption("gamma", terms.gamma, 0.0, strict=True))
    return found
