"""A party, and what travels between it and the coordinator: one number per sample each way.

A party never sends its columns or its weights, and never sees those of another. The coordinator
never sends the labels; but its price, the dual variable, gives them away: labels are not protected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpsvm._arrays import Array
from dpsvm._memory import Remembers
from dpsvm.admm.sharing.columns import Columns
from dpsvm.admm.sharing.privacy import GaussianPerturbation
from dpsvm.admm.sharing.steps import make_step
from dpsvm.admm.sharing.terms import Terms

_COUNT = _NUMBER = 8  # bytes of a round or a party, and of a real number
_FLAG = 1


@dataclass(frozen=True)
class Broadcast:
    """From the coordinator to every party, before a round.

    >>> Broadcast(1, np.zeros(100), rho=0.5).nbytes
    817
    """

    round: int
    price: Array  # v = y + rho (S - z), one number per sample
    rho: float
    keep: bool = False  # the last answers were the best so far: remember the weights behind them

    @property
    def nbytes(self) -> int:
        """Its size on a wire, without framing."""
        return _COUNT + self.price.nbytes + _NUMBER + _FLAG


@dataclass(frozen=True)
class Contribution:
    """From a party to the coordinator: its part of every sample's prediction, in a private mode
    with noise.

    >>> Contribution(1, 0, np.zeros(100)).nbytes
    816
    """

    round: int
    party: int
    prediction: Array  # p_m = D_m x_m, one number per sample

    @property
    def nbytes(self) -> int:
        """Its size on a wire, without framing."""
        return 2 * _COUNT + self.prediction.nbytes


@dataclass(frozen=True)
class Ending:
    """From the coordinator to every party, after the last round.

    >>> Ending(20, "rounds").restore
    False
    """

    round: int
    reason: str  # "converged", "rounds" (there are no more), "diverged" or "stopped" (from outside)
    restore: bool = False  # go back to the weights that were kept last


class Party(Remembers):
    """A party m with its columns D_m and its weights x_m.

    With v the broadcast price and p_m its own last message,

        x_m = argmin over X of  lam R(x) + <v, D_m x> + (kappa rho / 2) |D_m x - p_m|^2,

    which is mu R(x) + |D_m x - c|^2 / 2 with c = p_m - v / (kappa rho) and mu = lam / (kappa rho),
    and p_m = D_m x_m is sent. In a private mode p_m is what was sent, noise included: then c is
    known to whoever saw the messages, and only D_m is secret. (Relaxing comes after the noise and
    uses nothing that was not sent, so it costs no privacy.)

    Over-relaxation (kappa = M): Boyd et al. write the problem with a copy z_m of every D_m x_m, and
    z_m = p_m - (S - z)/M at each round's end. p_m = a D_m x_m + (1 - a) z_m is sent in its place,
    a being the relaxation. A party need not be told S - z: prices differ by
    v_t - v_{t-1} = (rho_{t-1} + rho_t)(S_t - z_t) - rho_{t-1} (S_{t-1} - z_{t-1}).

    >>> party = Party(0, Columns(np.eye(2)), Terms.of(parties=1, rho=1.0))
    >>> party.answer(Broadcast(1, np.array([-2.0, 4.0]), rho=1.0)).prediction
    array([ 1., -2.])
    """

    _memory: ClassVar = (
        *("weights", "fitted", "sent", "step"),
        *("_price", "_rho", "_excess", "_kept", "_round"),
    )

    def __init__(
        self,
        index: int,
        columns: Columns,
        terms: Terms,
        perturbation: GaussianPerturbation | None = None,
    ) -> None:
        self.index, self.columns, self.terms = index, columns, terms
        self.perturbation = perturbation
        if perturbation is not None:
            perturbation.check(columns, terms, index)
        self.step = make_step(columns, terms.penalty, terms.constraint)
        self.weights = np.zeros(columns.n_features)  # x_m
        self.fitted = np.zeros(columns.n_samples)  # D_m x_m, without noise
        self.sent = np.zeros(columns.n_samples)  # p_m
        self._price, self._rho = np.zeros(columns.n_samples), terms.rho
        self._excess = np.zeros(columns.n_samples)  # S - z
        self._kept = self.weights, self.fitted
        self._round = 0

    @property
    def weights_and_intercept(self) -> tuple[Array, float]:
        """The weights of its own columns, and that of a constant one, 0 without."""
        if not self.columns.constant:
            return self.weights, 0.0
        return self.weights[:-1], float(self.weights[-1])

    def answer(self, broadcast: Broadcast) -> Contribution:
        """Take the step of a round and return the message that follows from it."""
        self._check(broadcast)
        if broadcast.keep:
            self._kept = self.weights, self.fitted
        resistance = self.terms.kappa * broadcast.rho
        with np.errstate(over="ignore"):  # a private party refuses it, and others diverge
            target = self.sent - broadcast.price / resistance
        if self.perturbation is not None:
            _require_finite(target, "price")  # NaN times a sparse row tells whether it is empty
            target = self.perturbation.bound(target)
        self.weights = self.step.solve(target, self.terms.mu(broadcast.rho))
        self.fitted = self.columns.times(self.weights)
        released = self.fitted
        if self.perturbation is not None:
            released = self.perturbation.release(released)
        self.sent = self._relaxed(released, broadcast)
        if self.perturbation is not None:
            _require_finite(self.sent, "message")
        return Contribution(broadcast.round, self.index, self.sent)

    def _check(self, broadcast: Broadcast) -> None:
        """Refuse what the step, or in a private mode the noise, was not made for."""
        if broadcast.round != self._round + 1:
            raise ValueError(
                f"party {self.index} awaits round {self._round + 1}, got round {broadcast.round}"
            )
        price = broadcast.price
        if price.shape != self.sent.shape:
            raise ValueError(f"a price of {price.shape} numbers for {len(self.sent)} samples")
        if self.perturbation is not None:
            if broadcast.rho != self.terms.rho:
                raise ValueError(
                    f"the noise was made for rho = {self.terms.rho:g}, got {broadcast.rho:g}"
                )
            if broadcast.round > self.perturbation.rounds:
                raise ValueError(
                    f"the noise was made for {self.perturbation.rounds} rounds, got round "
                    f"{broadcast.round}"
                )
        self._round = broadcast.round

    def close(self, ending: Ending) -> None:
        """End the run, if need be with the weights that were kept."""
        if ending.restore:
            self.weights, self.fitted = self._kept

    def _relaxed(self, prediction: Array, broadcast: Broadcast) -> Array:
        share = self.terms.relaxation
        if share == 1.0:
            return prediction
        change = broadcast.price - self._price
        self._excess = (change + self._rho * self._excess) / (self._rho + broadcast.rho)
        self._price, self._rho = broadcast.price, broadcast.rho
        return share * prediction + (1.0 - share) * (self.sent - self._excess / self.terms.parties)


def _require_finite(values: Array, what: str) -> None:
    if not np.all(np.isfinite(values)):
        raise ValueError(f"a private party takes and sends finite numbers, and a {what} is not")
