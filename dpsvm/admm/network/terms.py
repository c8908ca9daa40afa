"""What the nodes agree on before the first round: public numbers, no data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpsvm._arrays import Array
from dpsvm.admm.network.graph import Graph, make_graph
from dpsvm.admm.network.penalties import Penalties, schedule
from dpsvm.losses import Loss, make_loss


@dataclass(frozen=True, kw_only=True, eq=False)
class Terms:
    """The terms of a run.

        minimise sum_i O_i(f),   O_i(f) = (C / B_i) sum_n l(y_n f . x_n) + (lam / N) |f|^2 / 2

    Rounds count from 1. Without recycling each is an update, which reads the data; with it the
    odd ones are, and the even ones recycle what was heard.

    >>> terms = Terms.of("complete", 3, rho=1.0, C=1.0, lam=3.0, gamma=0.5, rounds=4)
    >>> [terms.is_update(t) for t in (1, 2, 3, 4)], terms.update_of(4)
    ([True, False, True, False], 2)
    >>> terms.curvatures[0]  # lam / N + 2 R_i, R_i = 2
    array([5., 5., 5.])
    """

    penalties: Penalties
    loss: Loss
    C: float
    lam: float
    rounds: int
    gamma: float | None = None  # of the even step; None without recycling
    curvatures: Array = field(init=False)
    """kappa_i(k) = lam / N + 2 R_i(k): how strongly convex a node's problem is, whatever its data;
    of shape (updates, N)."""

    def __post_init__(self) -> None:
        found = self.lam / self.graph.n_nodes + 2.0 * self.penalties.of_nodes()
        object.__setattr__(self, "curvatures", found)

    @classmethod
    def of(
        cls,
        graph: Any,
        n_nodes: int | None = None,
        *,
        rho: Any = 0.5,
        growth: Any = 1.0,
        form: str = "edge",
        loss: str = "logistic",
        width: float = 0.5,
        rounds: int,
        gamma: float | None = None,
        **others: float,
    ) -> Terms:
        """The terms of a graph, penalties and a loss, as ``make_graph``, ``schedule`` and
        ``make_loss`` take them.
        """
        network = make_graph(graph, n_nodes)
        updates = updates_in(rounds, recycle=gamma is not None)
        return cls(
            penalties=Penalties(network, schedule(rho, growth, updates, network.n_nodes), form),
            loss=make_loss(loss, width),
            rounds=rounds,
            gamma=gamma,
            **others,
        )

    @property
    def graph(self) -> Graph:
        """Who talks to whom."""
        return self.penalties.graph

    @property
    def updates(self) -> int:
        """How many of the rounds are updates."""
        return self.update_of(self.rounds)

    def is_update(self, round: int) -> bool:
        """Whether a round reads the data."""
        return self.gamma is None or round % 2 == 1

    def update_of(self, round: int) -> int:
        """The number of the last update up to a round."""
        return round if self.gamma is None else (round + 1) // 2


def updates_in(rounds: int, *, recycle: bool) -> int:
    """How many of so many rounds are updates.

    >>> updates_in(49, recycle=True), updates_in(49, recycle=False)
    (25, 49)
    """
    return (rounds + 1) // 2 if recycle else rounds
