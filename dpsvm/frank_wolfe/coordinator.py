"""The coordinator's side: labels, the model, and q = J A x / n as the messages tell it.

Two problems, never the one for the other:

    "l1"       minimise f_J over |x|_1 <= r. The best of the K proposals is taken, by the gradient
               n b'(q - J y / n) that its sketch b gives it, and all of x moves towards it. If every
               party scans all its columns, this is Frank-Wolfe itself (Bellet et al. 2015).
    "product"  minimise f_J over |x_(k)|_1 <= r_k for every party k. All the proposals are taken,
               each for its own block. (Taking them all with the one radius r would leave the l1
               ball, for a point of norm K r.)

If parties draw only some of their columns, a proposal may point uphill. It is then not taken: <x -
s, gradient> of its block is at least 0 whatever was drawn, and with a probability of p = min tau /
d_k or more it is the whole gap of the block. So the step is 2/(p t + 2), and Theorem 1
(:mod:`~dpsvm.frank_wolfe.curvature`) holds with the curvature of f_J and this p: its proof asks for
no more. In a private mode q and the gradients have noise, and theory promises less.

All that is used here are messages and labels: in a private mode everything is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Any, ClassVar

import numpy as np

from dpsvm._arrays import Array
from dpsvm._memory import Remembers
from dpsvm.frank_wolfe.messages import Bid, Proposal, Query, Traffic
from dpsvm.frank_wolfe.steps import Schedule, exact_step

PROBLEMS = ("l1", "product")


class Coordinator(Remembers):
    """The owner of the labels and of the model.

    goal : J y / n, in a private mode perhaps with noise; n_samples : n
    radii : r in problem "l1", r_k of each party in problem "product"
    schedule : the steps; None for a line search
    cautious : whether a proposal that points uphill is left aside

    >>> coordinator = Coordinator(np.array([1.5, 0.5]), 2, [1, 1], [2.0], schedule=None)
    >>> coordinator.open().residual
    array([-1.5, -0.5])
    >>> answers = [Proposal(1, k, 1, np.eye(2)[k] / 2) for k in range(2)]
    >>> coordinator.gather(answers).residual
    array([-0.5, -0.5])
    >>> coordinator.weights
    [array([2.]), array([0.])]
    """

    _memory: ClassVar = ("weights", "_goal", "_parts", "_known", "round", "step", "traffic")

    def __init__(
        self,
        goal: Array,
        n_samples: int,
        sizes: Sequence[int],
        radii: Sequence[float],
        *,
        schedule: Schedule | None,
        problem: str = "l1",
        cautious: bool = False,
    ) -> None:
        self.problem, self.radii = problem, tuple(radii)
        self.weights = [np.zeros(size) for size in sizes]  # x_(k)
        self._n, self._goal = n_samples, goal
        self._parts = np.zeros((len(sizes), len(goal)))  # J A_k x_(k) / n, a row for each party
        self._known: dict[tuple[int, int], Array] = {}
        self._schedule, self._cautious = schedule, cautious
        self.round, self.step = 0, float("nan")
        self._winner: list[int] = []  # the party whose column is awaited
        self.traffic = Traffic()  # of all the rounds

    @property
    def residual(self) -> Array:
        """q - J y / n, as the messages tell it."""
        return np.asarray(self._parts.sum(axis=0) - self._goal)

    @property
    def released_value(self) -> float:
        """f_J(x) = n |q - J y / n|^2 / 2, from messages and labels."""
        residual = self.residual
        return self._n * float(residual @ residual) / 2.0

    def metrics(self) -> dict[str, float]:
        """The objective as messages tell it."""
        return {"value": self.released_value, "step": self.step}

    def remember(self) -> dict[str, Any]:
        """Everything that rounds have changed, but for an award that is not taken yet."""
        known = {
            "places": np.array(sorted(self._known), dtype=np.int64).reshape(-1, 2),
            "sketches": np.array([self._known[place] for place in sorted(self._known)]),
        }
        return super().remember() | {"_known": known, "traffic": astuple(self.traffic)}

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        places, sketches = memory["_known"]["places"], memory["_known"]["sketches"]
        known = {(int(k), int(i)): row for (k, i), row in zip(places, sketches, strict=True)}
        super().recall(memory | {"_known": known, "traffic": Traffic(*memory["traffic"])})

    def open(self) -> Query:
        """The query of the next round, which may be the first."""
        return Query(self.round + 1, self.residual)

    def gather(self, proposals: Sequence[Proposal]) -> Query:
        """Take the messages of a round; return the query of the next."""
        self._check(proposals, range(len(self.weights)))
        residual = self.residual
        slopes = [self._slope(message, residual) for message in proposals]
        floats = sum(message.n_floats for message in proposals)
        self.traffic += Traffic(len(proposals), floats, self._parts.size)
        best = [proposals[int(np.argmin(slopes))]]
        return self._advance(best if self.problem == "l1" else proposals, residual)

    def award(self, bids: Sequence[Bid]) -> int:
        """The party whose bid is best: the only one that is asked for its column."""
        self._check(bids, range(len(self.weights)))
        self.traffic += Traffic(len(bids), len(bids), self._parts.size)
        self._winner = [int(np.argmin([bid.slope for bid in bids]))]
        return self._winner[0]

    def take(self, proposal: Proposal) -> Query:
        """Take the column of the party that was awarded; return the query of the next round."""
        self._check([proposal], self._winner)
        self.traffic += Traffic(0, proposal.n_floats)
        self._winner = []
        return self._advance([proposal], self.residual)

    def _slope(self, message: Proposal, residual: Array) -> float:
        """<s, gradient> of a proposed s of radius 1, as its sketch tells; the sketch is kept."""
        return message.sign * self._n * float(self._sketch(message) @ residual)

    def _advance(self, taken: Sequence[Proposal], residual: Array) -> Query:
        """Go towards the vertices: all of x in problem "l1", else the blocks that are named."""
        moves: list[tuple[Proposal, float, Array]] = []  # a weight, and where q goes
        for message in taken:
            whole = self.problem == "l1"
            part = self._parts.sum(axis=0) if whole else self._parts[message.party]
            radius = self.radii[0 if whole else message.party]
            downhill = self._n * float(part @ residual) - radius * self._slope(message, residual)
            if downhill > 0.0 or not self._cautious:
                value = message.sign * radius
                moves.append((message, value, value * self._sketch(message) - part))
        self.step = 0.0
        if moves and self._schedule is not None:
            self.step = self._schedule(self.round)
        elif moves:
            self.step = exact_step(np.add.reduce([change for _, _, change in moves]), residual)
        for message, value, _ in moves:
            k = message.party
            for block in range(len(self.weights)) if self.problem == "l1" else (k,):
                self.weights[block] *= 1.0 - self.step
                self._parts[block] *= 1.0 - self.step
            self.weights[k][message.column] += self.step * value
            self._parts[k] += (self.step * value) * self._sketch(message)
        self.round += 1
        return self.open()

    def _sketch(self, message: Proposal) -> Array:
        key = (message.party, message.column)
        if message.sketch is not None:
            self._known[key] = message.sketch
        elif key not in self._known:
            raise ValueError(
                f"party {message.party} sent no sketch of column {message.column}, nor did before"
            )
        return self._known[key]

    def _check(self, messages: Sequence[Bid | Proposal], parties: Iterable[int]) -> None:
        """Refuse what is out of turn or of another shape, before anything is taken from it."""
        wanted = list(parties)
        if [message.party for message in messages] != wanted:
            raise ValueError(
                f"messages of the parties {wanted}, in order, are needed, got those of "
                f"{[message.party for message in messages]}"
            )
        for message in messages:
            columns = len(self.weights[message.party])
            if message.round != self.round + 1:
                raise ValueError(
                    f"a message for round {self.round + 1} is needed, party {message.party} sent "
                    f"one for round {message.round}"
                )
            if message.choice == 0 or message.column >= columns:
                raise ValueError(
                    f"party {message.party} of {columns} columns sent the choice {message.choice}"
                )
            numbers: Any = message.slope if isinstance(message, Bid) else message.sketch
            shape = () if isinstance(message, Bid) else self._goal.shape
            if numbers is None:  # the sketch of a column that was proposed before
                continue
            if np.shape(numbers) != shape or not np.all(np.isfinite(numbers)):
                raise ValueError(
                    f"party {message.party} must send finite numbers of shape {shape}, got shape "
                    f"{np.shape(numbers)}"
                )
