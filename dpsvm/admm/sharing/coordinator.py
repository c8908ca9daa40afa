"""The coordinator: labels, the sum of the contributions, the price, when to stop; and the loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any, ClassVar

import numpy as np

from dpsvm._arrays import Array
from dpsvm._memory import Remembers
from dpsvm.admm.sharing.party import Broadcast, Contribution, Ending, Party
from dpsvm.admm.sharing.terms import Terms
from dpsvm.admm.sharing.totals import Adder, Total
from dpsvm.losses import PredictionLoss, Squared

_OUT_OF_BALANCE = 5.0  # how far the residuals may be apart before rho is doubled or halved
_ADAPTS_FOR = 50  # rounds; ADMM converges if rho stays put from some round on
_WORSE = 10.0  # times the best: diverging, if that lasts
_PATIENCE = 5  # rounds it has to last
_NEGLIGIBLE = 1e-3  # relative residual below which nothing diverges
_NOTHING = 1e-8  # share of the loss at 0 below which a loss counts as 0


@dataclass(frozen=True)
class Residuals:
    """How far a round left the iterates from a solution, relative to their own size."""

    primal: float  # |S - z| / max(|S|, |z|)
    dual: float  # kappa rho |change of all z_m| / (sqrt(M) |y|)


class DivergenceGuard(Remembers):
    """Tells a run that diverges: worse than ten times its best for five rounds, or not finite.

    >>> guard = DivergenceGuard(loss_at_zero=1.0)
    >>> [guard.diverging(0.5, loss) for loss in (1.0, 11.0, 20.0, 30.0, 40.0, 50.0)]
    [False, False, False, False, False, True]
    """

    _memory: ClassVar = ("_best", "_worse")

    def __init__(self, loss_at_zero: float, *, proved: bool = False) -> None:
        self._proved = proved  # convergence is: then only numbers that are not finite count
        self._least_loss = _NOTHING * loss_at_zero
        self._best = {"residual": math.inf, "loss": math.inf}
        self._worse = dict.fromkeys(self._best, 0)

    def diverging(self, residual: float, loss: float) -> bool:
        """Whether the run diverges, given the primal residual and the loss of a round."""
        if not (math.isfinite(residual) and math.isfinite(loss)):
            return True
        if self._proved:
            return False
        floors = {"residual": _NEGLIGIBLE, "loss": self._least_loss}
        for name, value in (("residual", residual), ("loss", loss)):
            self._best[name] = min(self._best[name], max(value, floors[name]))
            worse = value > _WORSE * self._best[name]
            self._worse[name] = self._worse[name] + 1 if worse else 0
        return max(self._worse.values()) >= _PATIENCE


class Coordinator(Remembers):
    """The owner of the labels; with S the sum of the contributions,

        z = argmin  C sum_i l(z_i; y_i) - <y, z> + (rho / 2) |S - z|^2,  y <- y + rho (S - z),

    which is the proximal map of C l / rho at S + y / rho, sample by sample. The price of the next
    round is v = y + rho (S - z). It takes this step once before the first round, with S = 0 and
    y = 0: no message is needed to know that, and the first price already tells of the labels.

    All it uses, for the price, rho, stopping and the guard, are sums of the messages over the
    parties, and the labels: in a private mode everything it does is post-processing, and no single
    message is needed.

    adaptive : double rho when the primal residual is five times the dual one, halve it in the
        mirror case, in the first 50 rounds.
    tol : stop when both residuals are at most this; 0 runs all rounds.

    >>> from dpsvm.losses import Squared
    >>> terms = Terms.of(parties=1, rho=2.0)
    >>> coordinator = Coordinator(np.array([3.0]), Squared(), terms, rounds=9)
    >>> coordinator.open().price
    array([-4.])
    >>> coordinator.gather(Total(1, np.array([0.5]), moved=0.25)).price
    array([-2.66666667])
    """

    _memory: ClassVar = (
        *("rho", "next_rho", "total", "z", "dual", "round", "bytes_up", "bytes_down"),
        *("residuals", "released_loss", "ending", "_guard", "_lowest_loss"),
    )

    def __init__(
        self,
        target: Array,
        loss: PredictionLoss,
        terms: Terms,
        *,
        rounds: int,
        tol: float = 0.0,
        adaptive: bool = False,
    ) -> None:
        self.target, self.loss, self.terms = target, loss, terms
        self.rounds, self.tol, self.adaptive = rounds, tol, adaptive
        n = len(target)
        self.rho = self.next_rho = terms.rho  # of the present round, and of the next
        self.total = self.z = self.dual = np.zeros(n)  # S, z and y
        self._settle()
        self.round = 0
        self.bytes_up = self.bytes_down = 0  # of the last messages, all parties together
        self.residuals = Residuals(math.inf, math.inf)
        self.released_loss = self._loss_of(self.total)  # C sum l(S), from messages and labels
        self.ending: Ending | None = None
        self._guard = DivergenceGuard(self.released_loss, proved=terms.proved_to_converge(loss))
        self._lowest_loss = math.inf

    def open(self) -> Broadcast:
        """The broadcast of the first round."""
        return self._broadcast(keep=False)

    def gather(self, total: Total) -> Broadcast:
        """Take the sums of a round; return the broadcast of the next."""
        self._check(total)
        self.rho = self.next_rho
        change, excess = total.prediction - self.total, self.total - self.z
        self.total = total.prediction
        self._settle()
        self.round += 1
        self.bytes_up = total.nbytes
        self.residuals = self._measure(total.moved, change, excess)
        self.released_loss = self._loss_of(self.total)
        best = self.released_loss < self._lowest_loss
        self._lowest_loss = min(self.released_loss, self._lowest_loss)
        self.ending = self._decide(best=best)
        if self.adaptive and self.round <= _ADAPTS_FOR:
            self.next_rho = self._balanced()
        return self._broadcast(keep=best)

    def remember(self) -> dict[str, Any]:
        """Everything that rounds have changed."""
        ending = self.ending and astuple(self.ending)
        return super().remember() | {"residuals": astuple(self.residuals), "ending": ending}

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        ending = memory["ending"] and Ending(*memory["ending"])
        super().recall(memory | {"residuals": Residuals(*memory["residuals"]), "ending": ending})

    def metrics(self) -> dict[str, float]:
        """Loss and accuracy of the sum of the messages, and how far they are from settled."""
        found = {
            "loss": self.released_loss / (self.terms.C * len(self.target)),
            "primal": self.residuals.primal,
            "dual": self.residuals.dual,
        }
        if not isinstance(self.loss, Squared):
            found["accuracy"] = accuracy(self.total, self.target)
        return found

    def stop(self) -> None:
        """End the run after this round, from outside."""
        self.ending = self.ending or Ending(self.round, "stopped")

    def _settle(self) -> None:
        rho = self.rho
        self.z = self.loss.prox(self.total + self.dual / rho, self.target, self.terms.C / rho)
        self.dual = self.dual + rho * (self.total - self.z)

    def _broadcast(self, *, keep: bool) -> Broadcast:
        price = self.dual + self.next_rho * (self.total - self.z)
        broadcast = Broadcast(self.round + 1, price, self.next_rho, keep)
        self.bytes_down = self.terms.parties * broadcast.nbytes
        return broadcast

    def _loss_of(self, prediction: Array) -> float:
        return self.terms.C * float(self.loss.value(prediction, self.target).sum())

    def _measure(self, moved: float, change: Array, before: Array) -> Residuals:
        """How far the round left the iterates, change being that of S and before the last S - z.

        With e = S - z a party's z_m is p_m - e / kappa, and so all of them have moved by
        sum |dp_m - de / kappa|^2 = sum |dp_m|^2 - 2 <dS, de> / kappa + M |de|^2 / kappa^2.
        """
        M, kappa = self.terms.parties, self.terms.kappa
        excess = self.total - self.z
        turned = excess - before
        cross, turn = float(np.vdot(change, turned)), float(np.vdot(turned, turned))
        length = moved - 2.0 * cross / kappa + M * turn / kappa / kappa
        size = max(np.linalg.norm(self.total), np.linalg.norm(self.z))
        all_moved = kappa * self.rho * math.sqrt(max(length, 0.0))
        price = math.sqrt(M) * np.linalg.norm(self.dual)
        return Residuals(_ratio(np.linalg.norm(excess), size), _ratio(all_moved, price))

    def _decide(self, *, best: bool) -> Ending | None:
        if self._guard.diverging(self.residuals.primal, self.released_loss):
            return Ending(self.round, "diverged", restore=not best)
        if self.tol > 0.0 and max(astuple(self.residuals)) <= self.tol:
            return Ending(self.round, "converged")
        return Ending(self.round, "rounds") if self.round >= self.rounds else None

    def _balanced(self) -> float:
        primal, dual = self.residuals.primal, self.residuals.dual
        if primal > _OUT_OF_BALANCE * dual:
            return self.rho * 2.0
        return self.rho / 2.0 if dual > _OUT_OF_BALANCE * primal else self.rho

    def _check(self, total: Total) -> None:
        if total.round != self.round + 1:
            raise ValueError(f"round {self.round + 1} is needed, got one of round {total.round}")
        if total.prediction.shape != self.target.shape:
            raise ValueError(
                f"a sum of {total.prediction.shape} numbers for {len(self.target)} samples"
            )


Watch = Callable[[Coordinator, Sequence[Party]], bool]
"""Called after every round; looks, changes nothing, and says whether to stop there."""

Answers = Callable[[Sequence[Party], Broadcast], list[Contribution]]
"""How the parties answer a broadcast."""


def all_at_once(parties: Sequence[Party], broadcast: Broadcast) -> list[Contribution]:
    """Every party answers what was broadcast, and hears of the others in the next round."""
    return [party.answer(broadcast) for party in parties]


def run(
    coordinator: Coordinator,
    parties: Sequence[Party],
    watch: Watch | None = None,
    answers: Answers = all_at_once,
) -> Ending:
    """Broadcast, answer, gather, until the coordinator ends it.

    >>> from dpsvm.admm.sharing import Columns
    >>> terms = Terms.of(parties=2, rho=1.0, lam=0.5)
    >>> parties = [Party(m, Columns(np.eye(2)[:, [m]]), terms) for m in range(2)]
    >>> coordinator = Coordinator(np.array([3.0, 6.0]), Squared(), terms, rounds=200, tol=1e-12)
    >>> run(coordinator, parties).reason
    'converged'
    >>> [float(round(party.weights[0], 9)) for party in parties]
    [2.0, 4.0]
    """
    broadcast = coordinator.open()
    adder = Adder(len(parties), len(coordinator.target))
    while coordinator.ending is None:
        broadcast = coordinator.gather(adder.add(answers(parties, broadcast)))
        if watch is not None and watch(coordinator, parties):
            coordinator.stop()
    for party in parties:
        party.close(coordinator.ending)
    return coordinator.ending


def accuracy(predictions: Array, target: Array) -> float:
    """The share of predictions on the side of their target.

    >>> accuracy(np.array([0.3, -0.1]), np.array([1.0, 1.0]))
    0.5
    """
    return float(np.mean((predictions > 0) == (target > 0)))


def _ratio(part: float | np.floating, whole: float | np.floating) -> float:
    """part / whole; 0 for 0 / 0."""
    if part == 0.0:
        return 0.0
    return float(part / whole) if whole > 0.0 else math.inf
