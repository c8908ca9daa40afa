"""A node, and what travels between neighbours: its weights after every round, and no more.

A node never sends its rows, its labels or its multiplier; but neighbours that heard every iterate
know the multiplier, and the proofs of privacy count everything that was sent as known to all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from dpsvm._arrays import Array
from dpsvm._memory import Remembers
from dpsvm.admm.network.hinge import approach_hinge
from dpsvm.admm.network.privacy import NodeNoise
from dpsvm.admm.network.shares import Samples
from dpsvm.admm.network.terms import Terms
from dpsvm.privacy.minimiser import CertificateError, Objective, approach

_COUNT = 8  # bytes of a round or a node

TOL = 1e-9
"""The gradient norm that a node certifies of its minimisers."""


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


@dataclass
class State(Remembers):
    """What a node remembers from round to round.

    All of it follows from messages but for the certificates, which are of the data.
    """

    weights: Array  # f_i(t)
    dual: Array  # lambda_i
    updated: Array  # f_i of the last update
    before: Array  # f_i(t - 1)
    round: int = 0  # t
    heard: Sequence[Array] = ()  # f_j(t) for each neighbour j
    heard_before: Sequence[Array] = ()  # f_j(t - 1)
    awaits: bool = True  # the neighbours' messages of round t
    data_accesses: int = 0  # updates made
    certificate: float = 0.0  # of the last minimiser's gradient norm: of the data, not released
    worst: float = 0.0  # the largest of them
    closed: bool = False  # a minimiser could not be certified: nothing more is sent


State._memory = tuple(one.name for one in fields(State))


class Node:
    """Node i with its samples, its weights f_i and its multiplier lambda_i.

    An update minimises, with e_i the noise of a private mode,

        O_i(f) + (2 lambda_i + e_i) . f + sum_j W_ij |(f_i + f_j) / 2 - f|^2,

    which is (C/B_i) sum l + kappa_i/2 |f|^2 + (2 lambda_i + e_i - sum_j W_ij (f_i + f_j)) . f but
    for a constant, kappa_i = lam/N + 2 R_i. After the neighbours' messages of an update,

        lambda_i <- lambda_i + 1/2 sum_j W_ij (f_i - f_j).

    An even step of a recycled run replaces O_i by its linear model at the last update with
    gamma/2 |f - f_i|^2, and the gradient in it by what the optimality of that update says it is:

        f_i(2k) = f_i(2k-1) + sum_j W_ij [2 f_j(2k-1) - f_i(2k-2) - f_j(2k-2)] / (2 R_i + gamma).

    It is a function of messages alone: no data, no privacy cost.

    >>> terms = Terms.of("complete", 2, rho=1.0, C=1.0, lam=1.0, rounds=1)
    >>> node = Node(0, Samples(np.eye(1), np.ones(1)), terms)
    >>> node.absorb([Iterate(0, 1, np.zeros(1))])
    >>> node.emit().weights.round(4)  # expit(-f) = 2.5 f
    array([0.1819])
    """

    def __init__(
        self,
        index: int,
        samples: Samples,
        terms: Terms,
        *,
        tol: float = TOL,
        start: Array | None = None,
        perturbation: NodeNoise | None = None,
    ) -> None:
        self.index, self.samples, self.terms = index, samples, terms
        self.tol = tol if perturbation is None else perturbation.tol
        if perturbation is not None:
            perturbation.check(samples, terms)
        self.neighbours = terms.graph.neighbours[index]
        self.perturbation = perturbation
        d = int(samples.rows.shape[1])
        first = np.zeros(d) if start is None else np.array(start, dtype=np.float64)
        self.state = State(first, np.zeros(d), updated=first, before=first)

    def opening(self) -> Iterate:
        """The message before the first round: where the node starts."""
        return Iterate(0, self.index, _sealed(self.state.weights))

    def emit(self) -> Iterate:
        """Take the next round and return the message that follows from it."""
        state, round = self.state, self.state.round + 1
        if state.awaits:
            raise ValueError(
                f"node {self.index} awaits its neighbours' messages of round {state.round}"
            )
        if state.closed:
            raise ValueError(f"node {self.index} missed a certificate and sends nothing more")
        if round > self.terms.rounds:
            raise ValueError(f"the run has {self.terms.rounds} rounds, got {round}")
        if self.terms.is_update(round):
            found = state.updated = self._update(self.terms.update_of(round))
        else:
            found = self._recycle(self.terms.update_of(round))
        state.before, state.weights = state.weights, found
        state.round, state.awaits = round, True
        return Iterate(round, self.index, _sealed(found))

    def absorb(self, messages: Sequence[Iterate]) -> None:
        """Take the neighbours' messages of the present round."""
        state = self.state
        weights = {message.node: self._checked(message) for message in messages}
        if (
            not state.awaits
            or len(messages) != len(weights)
            or set(weights) != set(self.neighbours)
        ):
            raise ValueError(
                f"node {self.index} takes one message from each of {list(self.neighbours)} an "
                f"round, got messages from {[message.node for message in messages]}"
            )
        state.heard_before, state.awaits = state.heard, False
        state.heard = [weights[other] for other in self.neighbours]
        if state.round > 0 and self.terms.is_update(state.round):
            edges = self.terms.penalties.of_edges(self.index, self.terms.update_of(state.round))
            apart = np.sum(edges) * state.weights - _sum(edges, state.heard)
            state.dual = state.dual + apart / 2.0

    def _checked(self, message: Iterate) -> Array:
        state = self.state
        if message.round != state.round:
            raise ValueError(
                f"node {self.index} awaits messages of round {state.round}, node "
                f"{message.node} sent one of round {message.round}"
            )
        if message.weights.shape != state.weights.shape:
            raise ValueError(
                f"node {message.node} sent {message.weights.shape} weights, node {self.index} has "
                f"{state.weights.shape}"
            )
        if not np.all(np.isfinite(message.weights)):
            raise ValueError(f"node {message.node} sent weights that are not finite")
        return message.weights

    def _update(self, update: int) -> Array:
        state, terms, samples = self.state, self.terms, self.samples
        noise = self.perturbation
        if noise is not None and update > noise.updates:
            raise ValueError(f"the noise was made for {noise.updates} updates, got {update}")
        edges = terms.penalties.of_edges(self.index, update)
        linear = 2.0 * state.dual - np.sum(edges) * state.weights - _sum(edges, state.heard)
        drawn = None if noise is None else noise.linear(update)
        objective = Objective(
            samples.rows,
            samples.signs,
            np.broadcast_to(terms.C / samples.size, samples.size),
            terms.loss,
            float(terms.curvatures[update - 1, self.index]),
            linear if drawn is None else linear + drawn,
            row_norm=max(samples.longest, 1.0),
        )
        state.data_accesses += 1
        solver = approach_hinge if terms.loss.name == "hinge" else approach
        found, state.certificate = solver(objective, self.tol, state.weights)
        state.worst = max(state.worst, state.certificate)
        if noise is None:
            return found
        if not state.certificate <= self.tol:
            state.closed = True
            raise CertificateError(
                f"node {self.index} could not certify its minimiser to a gradient norm of "
                f"{self.tol:g}: an inexact one is not covered, nothing more is released, and what "
                "was charged stays charged. Raise tol, or lower C."
            )
        return noise.release(update, found)

    def _recycle(self, update: int) -> Array:
        state = self.state
        edges = self.terms.penalties.of_edges(self.index, update)
        total = float(np.sum(edges))
        moved = 2.0 * _sum(edges, state.heard) - _sum(edges, state.heard_before)
        step = (moved - total * state.before) / (2.0 * total + float(self.terms.gamma or 0.0))
        return np.asarray(state.weights + step)


def _sealed(weights: Array) -> Array:
    """The same weights, which whoever gets them cannot change."""
    seen = weights.view()
    seen.flags.writeable = False
    return seen


def _sum(edges: Array, weights: Sequence[Array]) -> Array:
    """sum_j W_ij f_j."""
    return np.asarray(edges @ np.asarray(weights))
