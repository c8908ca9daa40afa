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

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsvm.frank_wolfe.messages import Proposal, Query, Traffic
from dpsvm.frank_wolfe.sketches import Sketch
from dpsvm.frank_wolfe.steps import Schedule

Array = NDArray[np.float64]

PROBLEMS = ("l1", "product")


class Coordinator:
    """The owner of the labels and of the model.

    radii : r in problem "l1", r_k of each party in problem "product"
    schedule : the steps; None for a line search
    cautious : whether a proposal that points uphill is left aside

    >>> coordinator = Coordinator(np.array([3.0, 1.0]), Sketch(2), [1, 1], [2.0], schedule=None)
    >>> coordinator.open().residual
    array([-1.5, -0.5])
    >>> answers = [Proposal(1, k, 1, np.eye(2)[k] / 2) for k in range(2)]
    >>> coordinator.gather(answers).residual
    array([-0.5, -0.5])
    >>> coordinator.weights
    [array([2.]), array([0.])]
    """

    def __init__(
        self,
        target: Array,
        sketch: Sketch,
        sizes: Sequence[int],
        radii: Sequence[float],
        *,
        schedule: Schedule | None,
        problem: str = "l1",
        cautious: bool = False,
    ) -> None:
        self.problem, self.radii = problem, tuple(radii)
        self.weights = [np.zeros(size) for size in sizes]  # x_(k)
        self._n = sketch.n_samples
        self._goal = np.asarray(sketch.of(target)) / self._n  # J y / n
        self._parts = np.zeros((len(sizes), sketch.size))  # J A_k x_(k) / n, a row for each party
        self._known: dict[tuple[int, int], Array] = {}
        self._schedule, self._cautious = schedule, cautious
        self.round, self.step = 0, float("nan")
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

    def open(self) -> Query:
        """The query of the first round."""
        return self._query()

    def gather(self, proposals: Sequence[Proposal]) -> Query:
        """Take the messages of a round; return the query of the next."""
        self._check(proposals)
        sketches = [self._sketch(message) for message in proposals]
        residual = self.residual
        slopes = [
            message.sign * self._n * float(sketch @ residual)
            for message, sketch in zip(proposals, sketches, strict=True)
        ]
        if self.problem == "l1":
            best = int(np.argmin(slopes))
            chosen, parts = [best], [self._parts.sum(axis=0)]
        else:
            chosen, parts = list(range(len(proposals))), list(self._parts)
        moves: list[tuple[int, float, Array]] = []  # of a party: its weight, and where q goes
        for k, part in zip(chosen, parts, strict=True):
            radius = self.radii[k if self.problem == "product" else 0]
            downhill = self._n * float(part @ residual) - radius * slopes[k]
            if downhill > 0.0 or not self._cautious:
                value = proposals[k].sign * radius
                moves.append((k, value, value * sketches[k] - part))
        self._move(moves, proposals, sketches, residual)
        floats = sum(0 if message.sketch is None else len(message.sketch) for message in proposals)
        down = len(proposals) * len(residual)
        self.traffic = self.traffic + Traffic(len(proposals), floats, down)
        self.round += 1
        return self._query()

    def _move(
        self,
        moves: list[tuple[int, float, Array]],
        proposals: Sequence[Proposal],
        sketches: Sequence[Array],
        residual: Array,
    ) -> None:
        """Go towards the vertices: all of x in problem "l1", else the blocks that are named."""
        direction = np.add.reduce([change for _, _, change in moves]) if moves else residual * 0.0
        self.step = self._length(direction, residual) if moves else 0.0
        for k, value, _ in moves:
            for block in range(len(self.weights)) if self.problem == "l1" else (k,):
                self.weights[block] *= 1.0 - self.step
                self._parts[block] *= 1.0 - self.step
            self.weights[k][proposals[k].column] += self.step * value
            self._parts[k] += (self.step * value) * sketches[k]

    def _length(self, direction: Array, residual: Array) -> float:
        if self._schedule is not None:
            return self._schedule(self.round)
        slope, curvature = -float(direction @ residual), float(direction @ direction)
        if slope <= 0.0:
            return 0.0
        return 1.0 if slope >= curvature else slope / curvature

    def _query(self) -> Query:
        return Query(self.round + 1, self.residual)

    def _sketch(self, message: Proposal) -> Array:
        key = (message.party, message.column)
        if message.sketch is not None:
            self._known[key] = message.sketch
        elif key not in self._known:
            raise ValueError(
                f"party {message.party} sent no sketch of column {message.column}, nor did before"
            )
        return self._known[key]

    def _check(self, proposals: Sequence[Proposal]) -> None:
        if [message.party for message in proposals] != list(range(len(self.weights))):
            raise ValueError(
                f"a proposal of each of {len(self.weights)} parties, in order, is needed, got "
                f"those of {[message.party for message in proposals]}"
            )
        for message in proposals:
            if message.round != self.round + 1:
                raise ValueError(
                    f"a proposal for round {self.round + 1} is needed, party {message.party} sent "
                    f"one for round {message.round}"
                )
            if message.choice == 0 or message.column >= len(self.weights[message.party]):
                raise ValueError(
                    f"party {message.party} of {len(self.weights[message.party])} columns sent "
                    f"the choice {message.choice}"
                )
            if message.sketch is not None and message.sketch.shape != self._goal.shape:
                raise ValueError(
                    f"party {message.party} sent {message.sketch.shape} numbers for a sketch of "
                    f"{len(self._goal)}"
                )
