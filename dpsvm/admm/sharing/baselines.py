"""What a joint model is measured against.

central          all the columns in one place: the optimum, or an upper bound on it
first party      the columns of one party alone: what it gains by joining in
Gauss-Seidel     sharing ADMM with the parties one after the other (Hong, Luo and Razaviyayn
                 2016): fewer rounds, M broadcasts in each, and no two parties at a time
distributed SGD  stochastic gradient descent over distributed features (Hu et al. 2019, FDML):
                 local predictions are summed, and every party takes a gradient step on its own
                 weights; with clipping and noise, but without any guarantee
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from dpsvm._arrays import Array
from dpsvm.admm.sharing.columns import Columns, predicted
from dpsvm.admm.sharing.coordinator import Coordinator, Watch, run
from dpsvm.admm.sharing.party import Broadcast, Contribution, Ending, Party
from dpsvm.admm.sharing.regularisers import Ball
from dpsvm.admm.sharing.terms import Terms, automatic_rho
from dpsvm.losses import PredictionLoss
from dpsvm.privacy.rounding import check_scale

_LONG = 3000  # rounds of ADMM where no smooth solver applies


def central(columns: Sequence[Columns], target: Array, loss: PredictionLoss, terms: Terms) -> Array:
    """The weights of a model of all the columns, one party's after the other's.

    A smooth loss with the l2 penalty is minimised by L-BFGS, anything else by sharing ADMM with
    many rounds. A ball constraint, which is each party's own, is kept as such.

    >>> from dpsvm.losses import Squared
    >>> D = Columns(np.array([[1.0], [1.0]]))
    >>> central([D], np.array([3.0, 3.0]), Squared(), Terms.of(parties=1, rho=1.0)).round(6)
    array([2.])
    """
    smooth = np.isfinite(loss.smoothness) and loss.least_curvature >= 0.0
    if smooth and terms.penalty.name == "l2" and terms.constraint is None:
        return _by_lbfgs(columns, target, loss, terms)
    count = len(columns)
    rho = automatic_rho(loss, terms.C, count)
    settled = replace(terms, parties=count, kappa=float(count), relaxation=1.0, rho=rho)
    parties = [Party(m, own, settled) for m, own in enumerate(columns)]
    run(Coordinator(target, loss, settled, rounds=_LONG, tol=1e-9), parties)
    return np.concatenate([party.weights for party in parties])


def _by_lbfgs(
    columns: Sequence[Columns], target: Array, loss: PredictionLoss, terms: Terms
) -> Array:
    cuts = np.cumsum([own.n_features for own in columns])[:-1]

    def value_and_slope(weights: Array) -> tuple[float, Array]:
        z = predicted(columns, np.split(weights, cuts))
        value = terms.C * float(loss.value(z, target).sum())
        pull = terms.C * loss.slope(z, target)
        slope = np.concatenate([own.transposed_times(pull) for own in columns])
        return value + terms.lam * terms.penalty.value(weights), slope + terms.lam * weights

    start = np.zeros(sum(own.n_features for own in columns))
    options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-7, "maxcor": 30}
    found = minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x)


def gauss_seidel(
    coordinator: Coordinator, parties: Sequence[Party], watch: Watch | None = None
) -> Ending:
    """Sharing ADMM with the parties one after the other, each hearing of those before it.

    The terms must have kappa = 1: party m minimises the augmented Lagrangian itself, at the last
    contributions of the others.

    >>> from dpsvm.losses import Squared
    >>> terms = Terms.of(parties=2, rho=1.0, lam=0.5, kappa=1.0)
    >>> parties = [Party(m, Columns(np.eye(2)[:, [m]]), terms) for m in range(2)]
    >>> coordinator = Coordinator(np.array([3.0, 6.0]), Squared(), terms, rounds=200, tol=1e-12)
    >>> gauss_seidel(coordinator, parties).reason
    'converged'
    """
    if parties[0].terms.kappa != 1.0:
        raise ValueError(f"Gauss-Seidel needs kappa = 1, got {parties[0].terms.kappa:g}")
    return run(coordinator, parties, watch, one_after_the_other)


def one_after_the_other(parties: Sequence[Party], broadcast: Broadcast) -> list[Contribution]:
    """Every party answers a price that has moved with the answers before its own."""
    contributions, price = [], broadcast.price
    for party in parties:
        before = party.sent
        now = Broadcast(broadcast.round, price, broadcast.rho, broadcast.keep)
        contributions.append(party.answer(now))
        price = price + broadcast.rho * (party.sent - before)
    return contributions


@dataclass(frozen=True, kw_only=True)
class SGDSettings:
    """How distributed stochastic gradient descent steps.

    clip, noise : norm to which each party clips its gradient of a batch, and the standard deviation
        of the Gaussian noise it adds to its local predictions. Neither carries a guarantee: the
        clipped gradient is that of a batch, and no sensitivity is bounded.

    >>> SGDSettings(clip=1.0, noise=2.0).GUARANTEE is None
    True
    """

    rate: float = 0.1  # of the mean loss's gradient, divided by sqrt(epoch)
    batch: int = 100
    clip: float | None = None
    noise: float = 0.0

    GUARANTEE = None
    LABEL = "distributed SGD with clipping and noise: no privacy guarantee"


def distributed_sgd(
    columns: Sequence[Columns],
    target: Array,
    loss: PredictionLoss,
    terms: Terms,
    epochs: int,
    *,
    settings: SGDSettings | None = None,
    random_state: int = 0,
) -> Iterator[list[Array]]:
    """The weights of every party after each epoch.

    >>> from dpsvm.losses import Squared
    >>> D = [Columns(np.eye(2)[:, [m]]) for m in range(2)]
    >>> terms = Terms.of(parties=2, rho=1.0, lam=1e-9)
    >>> steps = SGDSettings(rate=1.0, batch=2)
    >>> *_, last = distributed_sgd(D, np.array([3.0, 6.0]), Squared(), terms, 400, settings=steps)
    >>> [float(part[0].round(3)) for part in last]
    [3.0, 6.0]
    """
    how = settings or SGDSettings()
    check_scale(how.rate, "rate")
    if how.clip is not None:
        check_scale(how.clip, "clip")
    random = np.random.default_rng(random_state)
    n = len(target)
    x = [np.zeros(own.n_features) for own in columns]
    for epoch in range(1, epochs + 1):
        rate = how.rate / np.sqrt(epoch)
        order = random.permutation(n)
        for start in range(0, n, how.batch):
            rows = order[start : start + how.batch]
            blocks = [own.matrix[rows] for own in columns]
            local = [np.asarray(D @ part) for D, part in zip(blocks, x, strict=True)]
            if how.noise > 0.0:
                local = [z + how.noise * random.standard_normal(len(rows)) for z in local]
            pull = loss.slope(np.add.reduce(local, axis=0), target[rows]) / len(rows)
            slopes = [_slope(D, pull, part, terms, n) for D, part in zip(blocks, x, strict=True)]
            if how.clip is not None:
                slopes = [Ball(how.clip).project(slope) for slope in slopes]
            x = [terms.project(part - rate * slope) for part, slope in zip(x, slopes, strict=True)]
        yield [part.copy() for part in x]


def _slope(block: Any, pull: Array, weights: Array, terms: Terms, n: int) -> Array:
    """A party's gradient of the objective divided by C N."""
    shrink = terms.lam / (terms.C * n) * terms.penalty.slope(weights)
    return np.asarray(block.T @ pull) + shrink
