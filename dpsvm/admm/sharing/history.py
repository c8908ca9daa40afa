"""What happened in every round, and what the convergence theory asks for.

The theory paper measures a round by how far it is from a stationary point of the augmented
Lagrangian L = C sum l(z) + lam sum R(x_m) + <y, S - z> + (rho / 2) |S - z|^2, S = sum D_m x_m:

    V^t = sum_m |grad L in x_m|^2 + |grad L in z|^2 + |S - z|^2,    T(eps) = min {t : V^t <= eps}.

Where L has a kink or x_m is constrained, the gradient is the proximal one of unit step, x -
prox(x - gradient of the smooth part), as in Hong, Luo and Razaviyayn (2016). V^t = 0 if and only if
the round is a KKT point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import eigvalsh

from dpsvm._arrays import Array
from dpsvm.admm.sharing.columns import Columns, predicted
from dpsvm.admm.sharing.coordinator import Coordinator
from dpsvm.admm.sharing.party import Party
from dpsvm.admm.sharing.terms import Terms
from dpsvm.distributed import history as distributed
from dpsvm.distributed.history import Assumption
from dpsvm.losses import PredictionLoss

_FULL_RANK = 1e-10  # of the largest eigenvalue


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round. The first block is known to whoever sees the messages; the second is not."""

    round: int
    released_loss: float  # C sum l(S), S the sum of the messages as sent
    primal: float  # residuals, relative
    dual: float
    rho: float
    bytes_up: int  # of all the parties' messages of this round
    bytes_down: int

    objective: float | None = None  # from weights without noise
    lyapunov: float | None = None  # V^t
    test_loss: float | None = None  # mean, on data given for that


class History(distributed.History[Round]):
    """The rounds of a run.

    >>> history = History([
    ...     Round(round=t, released_loss=1.0, primal=0.1, dual=0.1, rho=1.0, bytes_up=8,
    ...           bytes_down=8, objective=1.0, lyapunov=10.0**-t)
    ...     for t in (1, 2, 3)
    ... ])
    >>> history.rounds_to(0.01)
    2
    >>> float(history["bytes_up"].sum())
    24.0
    """

    OUTSIDE: ClassVar = ("objective", "lyapunov", "test_loss")

    def rounds_to(self, epsilon: float) -> int | None:
        """T(epsilon): the first round with V^t <= epsilon, None if there is none."""
        reached = np.flatnonzero(self["lyapunov"] <= epsilon)
        return self.rounds[int(reached[0])].round if reached.size else None


@dataclass
class Recorder:
    """Watches a run: an observer that sees every party, which no participant does.

    test : the columns of every party of held-out samples, and their targets

    >>> from dpsvm.admm.sharing import Columns, Coordinator, Party, Terms, run
    >>> from dpsvm.losses import Squared
    >>> terms = Terms.of(parties=1, rho=1.0)
    >>> watch = Recorder(History())
    >>> coordinator = Coordinator(np.array([2.0, 4.0]), Squared(), terms, rounds=3)
    >>> _ = run(coordinator, [Party(0, Columns(np.eye(2)), terms)], watch)
    >>> watch.history["objective"]
    array([5., 5., 5.])
    """

    history: History
    test: tuple[Sequence[Columns], Array] | None = None

    def __call__(self, coordinator: Coordinator, parties: Sequence[Party]) -> bool:
        """Note a round; never stop there."""
        measured = {}
        if self.history.measured:  # computed from the parties' weights
            measured["objective"] = objective(coordinator.loss, coordinator.target, parties)
            measured["lyapunov"] = lyapunov(coordinator, parties)
        self.history.rounds.append(
            Round(
                round=coordinator.round,
                released_loss=coordinator.released_loss,
                primal=coordinator.residuals.primal,
                dual=coordinator.residuals.dual,
                rho=coordinator.rho,
                bytes_up=coordinator.bytes_up,
                bytes_down=coordinator.bytes_down,
                test_loss=self._test_loss(coordinator.loss, parties),
                **measured,
            )
        )
        return False

    def _test_loss(self, loss: PredictionLoss, parties: Sequence[Party]) -> float | None:
        if self.test is None:
            return None
        columns, target = self.test
        prediction = predicted(columns, [party.weights for party in parties])
        return float(loss.value(prediction, target).mean())


def objective(loss: PredictionLoss, target: Array, parties: Sequence[Party]) -> float:
    """C sum l(S) + lam sum R(x_m), of the parties' present weights.

    >>> from dpsvm.admm.sharing import Columns, Party, Terms
    >>> from dpsvm.losses import Squared
    >>> still = Party(0, Columns(np.eye(2)), Terms.of(parties=1, rho=1.0))
    >>> objective(Squared(), np.array([2.0, 4.0]), [still])
    10.0
    """
    terms = parties[0].terms
    total = np.add.reduce([party.fitted for party in parties], axis=0)
    penalty = math.fsum(terms.penalty.value(party.weights) for party in parties)
    return terms.C * float(loss.value(total, target).sum()) + terms.lam * penalty


def lyapunov(coordinator: Coordinator, parties: Sequence[Party]) -> float:
    """V^t, of the present round.

    >>> from dpsvm.admm.sharing import Columns, Coordinator, Party, Terms
    >>> from dpsvm.losses import Squared
    >>> terms = Terms.of(parties=1, rho=1.0)
    >>> coordinator = Coordinator(np.array([2.0, 4.0]), Squared(), terms, rounds=3)
    >>> lyapunov(coordinator, [Party(0, Columns(np.eye(2)), terms)])  # before the first round
    30.0
    """
    terms, loss, z = coordinator.terms, coordinator.loss, coordinator.z
    excess = np.add.reduce([party.fitted for party in parties], axis=0) - z
    price = coordinator.dual + coordinator.rho * excess
    if math.isfinite(loss.smoothness):
        rest = terms.C * loss.slope(z, coordinator.target) - price
    else:
        rest = z - loss.prox(z + price, coordinator.target, terms.C)
    gaps = [_gap(party.weights, party.columns.transposed_times(price), terms) for party in parties]
    return math.fsum([*(gap @ gap for gap in gaps), rest @ rest, excess @ excess])


def _gap(weights: Array, pull: Array, terms: Terms) -> Array:
    """The gradient of L in x_m, or the proximal one."""
    if terms.penalty.name != "l1" and terms.constraint is None:
        return terms.lam * terms.penalty.slope(weights) + pull
    if terms.penalty.name == "l1":
        point = weights - pull
        near = np.sign(point) * np.maximum(np.abs(point) - terms.lam, 0.0)
    else:
        near = weights - (terms.lam * terms.penalty.slope(weights) + pull)
    return weights - terms.project(near)


def assumptions(parties: Sequence[Party], loss: PredictionLoss, rho: float) -> list[Assumption]:
    """What the paper's theorem assumes, checked; computed from the columns, so never released.

    The theorem is the paper's. That its assumptions hold does not make the Jacobi iteration
    converge (three parties with one equal column satisfy all of them), and the sharing iteration,
    kappa = M, converges without them for convex losses and penalties.

    >>> from dpsvm.admm.sharing import Columns, Party, Terms
    >>> from dpsvm.losses import Squared
    >>> party = Party(0, Columns(np.eye(2)), Terms.of(parties=1, rho=2.0))
    >>> print(assumptions([party], Squared(), rho=2.0)[0])
    party 0: column rank: 2 against 2, holds
    """
    terms = parties[0].terms
    steepest = terms.C * loss.smoothness
    modulus = rho + terms.C * loss.least_curvature
    found = []
    for party in parties:
        values = eigvalsh(party.columns.gram())
        largest = float(values[-1])
        full = not party.columns.wide and float(values[0]) > _FULL_RANK * largest
        least = max(float(values[0]), 0.0) if full else 0.0
        convexity = terms.lam * terms.penalty.least_curvature + terms.kappa * rho * least
        rank = int(np.sum(values > _FULL_RANK * largest))
        who = f"party {party.index}"
        found += [
            Assumption(f"{who}: column rank", rank, party.columns.n_features),
            Assumption(
                f"{who}: strong convexity of its step >= 2 sigma_max", convexity, 2 * largest
            ),
        ]
    return [
        *found,
        Assumption("rho gamma > 2 L^2", rho * modulus, 2.0 * steepest**2, strict=True),
        Assumption("rho >= L", rho, steepest),
    ]
