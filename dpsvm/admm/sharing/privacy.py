"""Private modes: how far one message can move, the noise that hides it, and what that adds up to.

A message is p = D x + N(0, s^2 I), x the minimiser over X of mu R(x) + |D x - c|^2 / 2, with noise
in SAMPLE space, mu = lam / (kappa rho) fixed beforehand, and c a function of earlier messages and
of the labels. Given those, only D is secret, so the sensitivity of D x at a fixed c is all there is
to know. Two relations, two bounds, proved at the functions:

    row     one row of one party is replaced       sqrt((R (R r + b))^2 / mu + (2 R r)^2)
    column  one column of one party comes, goes    B A^2 / (A^2 + mu)
            or is replaced; how many columns there are is public, one that goes leaves zeros

with R a bound on row norms, r on |x|, b on every |c_i|, A on column norms and B on |c|, all of them
public and enforced. Labels are not protected: the broadcast price gives them away.

The guarantee covers the messages. What comes from x without noise, weights, predictions, objective
and losses, is outside it. The steps are exact but for rounding: mu may not be smaller than 1e-8 of
a public bound on the largest eigenvalue of D'D, and every bound is a millionth larger than proved.

The paper ("Learning Privately over Distributed Features", Hu, Liu, Kong, Niu 2019) adds noise of
covariance s^2 (D'D)^-1 to x instead: D x + D xi then lies in the column space of D, which is the
secret, however large s is; and the constant of its Lemma 1 is not a bound. Its scale is offered as
mode "paper", with noise in sample space, and what it claims is shown as claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.admm.sharing.columns import Columns
from dpsvm.admm.sharing.regularisers import Ball
from dpsvm.admm.sharing.terms import Terms
from dpsvm.privacy.accounting import Gaussian, bounds_on_epsilon, epsilon_of, gaussian_mu
from dpsvm.privacy.guarantee import Guarantee, check_delta, check_epsilon
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.preparation import clip_columns, clip_rows
from dpsvm.privacy.rounding import OVER, RANGE, UP, check_scale, on_grid

MODES = ("row", "column", "paper")
"""The private modes; "paper" carries no guarantee."""

_STEP = 1.0 + 1e-6  # rounds a sensitivity up, past what its step may lack in exactness

_EXACT = 1e-8  # least mu, of the largest eigenvalue of D'D, for a step that is exact enough
_MOST_EPSILON = 1e6  # more is no privacy, and nothing to calibrate noise to

LABELS = "labels are not protected here: the broadcast price reveals them"
OUTSIDE = (
    "the guarantee covers the messages; coef_, predictions, objective, losses on rows, Lyapunov "
    "value, assumptions, and the models and the verdict of a comparison come from columns or "
    "weights without noise and are outside it"
)
_CLAIM = (
    "claimed by the paper, not a guarantee: the constant of its Lemma 1 is not a bound on the "
    "change of a message"
)


def row_sensitivity(mu: float, radius: float, target_bound: float, data_norm: float = 1.0) -> float:
    """How far D x moves, at most, when one row of D is replaced.

    mu : lam / (kappa rho); radius : bound on |x|, enforced by the step; target_bound : bound on
    every |c_i|; data_norm : bound on the norm of a row.

    Lemma: |D x - D' x'| <= sqrt(K^2 / mu + (2 R r)^2), K = R (R r + b). Proof: let d = x - x', and
    let E hold the rows that stay. x and x' minimise over the same ball, so the gradient of each
    objective at its minimiser makes no obtuse angle with the way to the other minimiser; added up,
    |E d|^2 + mu |d|^2 <= <a (a.x - c_i) - a' (a'.x' - c_i), x' - x>, a and a' being the old and the
    new row, which is at most 2 K |d|. Hence |E d|^2 <= 2 K |d| - mu |d|^2 <= K^2 / mu. The replaced
    row's own entry moves by |a.x - a'.x'| <= 2 R r. Rounding: up.

    >>> round(row_sensitivity(mu=1.0, radius=1.0, target_bound=1.0), 4)
    2.8284
    """
    reach = data_norm * (data_norm * radius + target_bound)
    return math.hypot(reach / math.sqrt(mu), 2.0 * data_norm * radius) * _STEP


def column_sensitivity(mu: float, column_norm: float, target_norm: float) -> float:
    """How far D x moves, at most, when a column of D comes, goes or is replaced by another.

    mu : lam / (kappa rho); column_norm : bound A on the norm of a column; target_norm : bound on
    |c|. For the l2 penalty without a constraint.

    Lemma: |D x - D' x'| <= |c| A^2 / (A^2 + mu). Proof: D x = H c with H = DD' (DD' + mu I)^-1 =
    I - mu (DD' + mu I)^-1. A further column a adds aa' to DD', so by Sherman and Morrison H grows
    by mu uu' / (1 + a'u) with u = (DD' + mu I)^-1 a: a positive semidefinite matrix of rank one,
    whose norm is at most s / (1 + s), s = A^2 / mu, as |u|^2 <= a'u / mu and a'u <= s. To replace a
    column is to grow from the same H by one such matrix or by another; their difference lies
    between the one and minus the other, so its norm is at most the larger of both. Rounding: up.

    >>> column_sensitivity(mu=1.0, column_norm=1.0, target_norm=2.0)
    1.000001
    """
    ratio = math.sqrt(mu) / column_norm
    return target_norm / (1.0 + ratio * ratio) * _STEP


def lemma_1(n_features: int, terms: Terms, b1: float, c1: float) -> float:
    """The constant of the paper's Lemma 1, 3 (lam c1 + (1 + M rho) b1) / (d_m rho).

    b1 : the paper's bound on x, z and y; c1 : its bound on the second derivative of the penalty.
    Claimed by the paper as a bound on how far x moves; it is not one.

    >>> lemma_1(3, Terms.of(parties=2, rho=0.5), b1=1.0, c1=1.0)
    6.0
    """
    pull = terms.lam * c1 + (1.0 + terms.parties * terms.rho) * b1
    return 3.0 * pull / (n_features * terms.rho)


def corollary_1(rounds: int, epsilon: float, delta: float) -> tuple[float, float]:
    """What the paper's Corollary 1 makes of T rounds: an epsilon, and the delta that goes with it.

    Advanced composition (Dwork, Rothblum and Vadhan 2010) with T delta spent once more:
    epsilon sqrt(2 T log(1 / (T delta))) + T epsilon (e^epsilon - 1), at a total delta of 2 T delta.

    >>> total, delta = corollary_1(20, 1.0, 1e-6)
    >>> round(total, 1), round(delta, 8)
    (55.2, 4e-05)
    """
    spent = rounds * delta
    spread = epsilon * math.sqrt(2.0 * rounds * math.log(1.0 / spent)) if spent < 1.0 else math.inf
    growth = math.expm1(epsilon) if epsilon < 700.0 else math.inf
    return spread + rounds * epsilon * growth, 2.0 * spent


def classical_noise(epsilon: float, delta: float) -> float:
    """The noise, in sensitivities, that the paper gives a round: sqrt(2 log(1.25/delta))/epsilon.

    >>> round(classical_noise(1.0, 1e-6), 4)
    5.2988
    """
    return math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def composition_table(rounds: int, epsilon: float, delta: float) -> dict[str, float]:
    """T rounds at a per-round (epsilon, delta), added up in four ways.

    Corollary 1 and basic composition start from the per-round figures; "renyi" and "tight" from
    the noise behind them, :func:`classical_noise`, at Corollary 1's total delta.

    >>> {rule: f"{value:.3g}" for rule, value in composition_table(20, 1.0, 1e-6).items()}
    {'corollary 1': '55.2', 'basic': '20', 'renyi': '3.62', 'tight': '3.32', 'delta': '4e-05'}
    """
    claimed, total = corollary_1(rounds, epsilon, delta)
    exact = bounds_on_epsilon([Gaussian(1.0 / classical_noise(epsilon, delta))] * rounds, total)
    return {
        "corollary 1": claimed,
        "basic": rounds * epsilon,
        "renyi": exact["renyi"],
        "tight": exact["gaussian"],
        "delta": total,
    }


@dataclass(frozen=True, kw_only=True)
class PublicBounds:
    """The public bounds of the private modes; each mode needs its own and takes no other."""

    data_norm: float | None = None  # R, row
    radius: float | None = None  # r, row
    target_bound: float | None = None  # b, row
    column_norm: float | None = None  # A, column
    target_norm: float | None = None  # B, column
    b1: float | None = None  # paper
    c1: float | None = None  # paper

    def of(self, mode: str) -> dict[str, float]:
        """The bounds of a mode, all given and positive, and no others.

        >>> PublicBounds(column_norm=1.0).of("column")
        Traceback (most recent call last):
        ...
        ValueError: privacy='column' needs the public bound target_norm, which is not given
        """
        found = {}
        for name, value in vars(self).items():
            if (value is not None) != (name in _NEEDED[mode]):
                wanted = "takes no public bound" if value is not None else "needs the public bound"
                got = "which is not given" if value is None else f"got {value!r}"
                raise ValueError(f"privacy={mode!r} {wanted} {name}, {got}")
            if value is not None:
                found[name] = check_scale(value, name)
        return found


BOUNDS = tuple(PublicBounds.__dataclass_fields__)
"""Their names."""

_NEEDED = {
    "row": ("data_norm", "radius", "target_bound"),
    "column": ("column_norm", "target_norm"),
    "paper": ("b1", "c1"),
}


@dataclass(frozen=True)
class GaussianPerturbation:
    """Clips a party's target to its public bound and adds Gaussian noise to its message.

    >>> still = GaussianPerturbation(0.0, Noise(0), target_bound=1.0)
    >>> still.bound(np.array([-3.0, 0.5]))
    array([-1. ,  0.5])
    >>> still.release(np.array([2.0]))
    array([2.])
    """

    scale: float
    noise: Noise
    rounds: int = 1  # how many messages there may be
    made_for: Calibration | None = None
    target_bound: float | None = None
    target_norm: float | None = None

    def check(self, columns: Columns, terms: Terms, party: int) -> None:
        """Refuse columns and terms that the noise was not made for."""
        if self.made_for is not None:
            self.made_for.check(columns, terms, party)

    def bound(self, target: Array) -> Array:
        """The target, clipped."""
        if self.target_bound is not None:
            target = np.clip(target, -self.target_bound, self.target_bound)
        if self.target_norm is not None:
            target = Ball(self.target_norm).project(target)
        return target

    def release(self, prediction: Array) -> Array:
        """The prediction with noise, on a public grid."""
        if self.scale == 0.0:
            return prediction
        return on_grid(prediction + self.noise.gaussian(self.scale, len(prediction)), self.scale)


@dataclass(frozen=True)
class Calibration:
    """The noise of every message of a run, and what the run costs.

    >>> bounds = PublicBounds(data_norm=1.0, radius=1.0, target_bound=2.0)
    >>> terms = Terms.of(parties=2, rho=0.5, constraint=Ball(1.0))
    >>> found = calibrate("row", terms, [66, 57], 20, 1.0, 1e-5, bounds)
    >>> print(found.guarantee)
    epsilon = 1, delta = 1e-05 (row), of the messages alone
    >>> found.noise_scales[0] > 10 * found.sensitivities[0]
    True
    """

    mode: str
    terms: Terms
    rounds: int
    epsilon: float  # of the whole run; in mode "paper" of one round
    delta: float
    bounds: dict[str, float]
    sensitivities: tuple[float, ...]  # of one message of each party; in mode "paper" as claimed
    noise_scales: tuple[float, ...]  # standard deviation of the noise of each party

    @property
    def message_mu(self) -> float:
        """Sensitivity over noise of one message."""
        return self.sensitivities[0] / self.noise_scales[0]

    @property
    def event(self) -> Gaussian:
        """What a fit is charged as: a row as part of a record that lies in all the parties."""
        parties = self.terms.parties if self.mode == "row" else 1
        return Gaussian(self.message_mu * math.sqrt(self.rounds * parties))

    @property
    def party_event(self) -> Gaussian:
        """What the messages of one party are: the charge of a ledger for its data alone."""
        return Gaussian(self.message_mu * math.sqrt(self.rounds))

    @property
    def guarantee(self) -> Guarantee | None:
        """What is proved of the messages of one party; None in mode "paper"."""
        if self.mode == "paper":
            return None
        return Guarantee(self.epsilon, self.delta, self.mode, covers="messages")

    def check(self, columns: Columns, terms: Terms, party: int) -> None:
        """Refuse other terms, data that exceed the public bounds, and a mu too small for both."""
        if terms != self.terms:
            raise ValueError(f"party {party} has other terms than its noise was made for")
        norms = {"row": columns.row_norms, "column": columns.column_norms}.get(self.mode)
        if norms is None:
            return
        self.check_sizes(columns.n_samples, columns.n_features, constant=columns.constant)
        name, limit = self._bound
        if np.max(norms(), initial=0.0) > limit * OVER:  # which one, and by how much, is private
            raise ValueError(
                f"a {self.mode} of party {party} has a norm above the public bound "
                f"{name} = {limit:g}"
            )

    @property
    def _bound(self) -> tuple[str, float]:
        name = "data_norm" if self.mode == "row" else "column_norm"
        return name, self.bounds[name]

    def clipped(self, table: Any, *, constant: bool) -> Any:
        """A table whose rows, or whose columns, are shortened to their bound.

        constant : whether a column of ones will be beside it, which counts in the norm of a row
        """
        if self.mode == "paper":
            return table
        _, limit = self._bound
        if self.mode == "column":
            return clip_columns(table, limit)
        return clip_rows(table, math.sqrt((limit - 1.0) * (limit + 1.0)) if constant else limit)

    def check_clips(self) -> None:
        """Refuse a bound that leaves nothing of the rows beside a constant column."""
        if self.mode == "row" and not self.bounds["data_norm"] > 1.0:
            raise ValueError(
                "data_norm must be above 1 where a constant column is part of the rows, got "
                f"{self.bounds['data_norm']:g}"
            )

    def check_sizes(self, n_samples: int, n_features: int, *, constant: bool) -> None:
        """Refuse a mu too small for the bounds, from public numbers.

        n_features : a constant column included
        """
        if self.mode == "paper":
            return
        _, limit = self._bound
        count = n_samples if self.mode == "row" else n_features
        free = n_samples if constant and self.mode == "column" else 0
        mu, largest = self.terms.mu(self.terms.rho), count * limit * limit + free
        if not mu >= _EXACT * largest:
            raise ValueError(
                f"lam / (kappa rho) = {mu:g} is too small beside {largest:g}, which the public "
                "bounds allow for D'D: the step would not be exact. Take a smaller rho"
            )

    def perturbation(self, party: int, noise: Noise) -> GaussianPerturbation:
        """What the mode does to the messages of a party."""
        clip = {name: self.bounds.get(name) for name in ("target_bound", "target_norm")}
        return GaussianPerturbation(self.noise_scales[party], noise, self.rounds, self, **clip)

    @property
    def figures(self) -> dict[str, Any]:
        """Claimed, Corollary 1 and tight figures, each under its own name."""
        figures = self._paper_figures() if self.mode == "paper" else self._sound_figures()
        return {
            "mode": self.mode,
            **figures,
            "rounds": self.rounds,
            "noise": "Gaussian in sample space, one number per sample and message",
            "noise_scales": list(self.noise_scales),
            "sensitivities": list(self.sensitivities),
            "public": dict(self.bounds)
            | {"rho": self.terms.rho, "kappa": self.terms.kappa, "lam": self.terms.lam}
            | {"rounds": self.rounds, "also": "how many rows and columns each party has"},
            "labels": LABELS,
            "outside": OUTSIDE,
        }

    def _sound_figures(self) -> dict[str, Any]:
        share = self.delta / (2.0 * self.rounds)
        each = self.message_mu * classical_noise(1.0, share)  # per-round epsilon, classically
        bounds = bounds_on_epsilon([Gaussian(self.message_mu)] * self.rounds, self.delta)
        figures: dict[str, Any] = {
            "protects": f"one {self.mode} of one party",
            "claimed": None,
            "per_round": each,
            "corollary_1": corollary_1(self.rounds, each, share)[0],
            "renyi": bounds["renyi"],
            "tight": bounds["gaussian"],
        }
        if self.mode == "row":
            messages = [Gaussian(self.message_mu)] * (self.rounds * self.terms.parties)
            figures["whole_record"] = epsilon_of(messages, self.delta)
        return figures

    def _paper_figures(self) -> dict[str, Any]:
        table = composition_table(self.rounds, self.epsilon, self.delta)
        return {
            "claimed": f"epsilon = {self.epsilon:g}, delta = {self.delta:g} a round",
            "reason": _CLAIM,
            "per_round": self.epsilon,
            "corollary_1": table["corollary 1"],
            "renyi": table["renyi"],
            "tight": table["tight"],
            "claimed_delta": table["delta"],
            "if": "the figures would hold if the constant of Lemma 1 did",
        }


def calibrate(
    mode: str,
    terms: Terms,
    sizes: list[int],
    rounds: int,
    epsilon: float,
    delta: float,
    bounds: PublicBounds,
) -> Calibration:
    """The noise with which T messages of a party cost (epsilon, delta).

    sizes : features of each party, which only mode "paper" looks at; there epsilon and delta are
    those of one round, and epsilon is at most 1.

    >>> bounds = PublicBounds(column_norm=1.0, target_norm=2.0)
    >>> found = calibrate("column", Terms.of(parties=1, rho=1.0), [5], 1, 1.0, 1e-5, bounds)
    >>> round(found.noise_scales[0] / found.sensitivities[0], 4)
    3.7306
    """
    if mode not in MODES:
        raise ValueError(f"privacy must be one of {', '.join(map(repr, MODES))}, got {mode!r}")
    if check_epsilon(epsilon) > _MOST_EPSILON:
        raise ValueError(f"epsilon must be at most {_MOST_EPSILON:g}, got {epsilon!r}")
    if check_delta(delta) / rounds < RANGE[0]:
        raise ValueError(f"delta must be at least {RANGE[0]:g} a round, got {delta!r}")
    given = bounds.of(mode)
    _check_terms(mode, terms, given)
    mu = terms.mu(terms.rho)
    if mode == "paper":
        if epsilon > 1.0:
            raise ValueError(
                f"privacy='paper' needs an epsilon of at most 1 a round, got {epsilon!r}"
            )
        steps = [lemma_1(size, terms, **given) for size in sizes]
        factor = classical_noise(epsilon, delta)
    else:
        bound: Callable[..., float] = row_sensitivity if mode == "row" else column_sensitivity
        steps = [bound(mu, **given)] * len(sizes)
        factor = math.sqrt(rounds) / gaussian_mu(epsilon, delta) * UP
    scales = tuple(step * factor for step in steps)
    for value in (*steps, *scales):
        if not RANGE[0] <= value <= RANGE[1]:
            raise ValueError(
                f"the public bounds {given} and lam / (kappa rho) = {mu:g} give a sensitivity or a "
                f"noise of {value:g}, outside of what floating point can do exactly"
            )
    return Calibration(
        mode, terms, rounds, float(epsilon), float(delta), given, tuple(steps), scales
    )


def _check_terms(mode: str, terms: Terms, bounds: dict[str, float]) -> None:
    """Refuse a penalty or a constraint that the mode's bound is not proved for."""
    if mode == "paper":
        return
    if terms.penalty.name != "l2":
        raise ValueError(
            f"privacy={mode!r} is proved for penalty='l2' alone, got {terms.penalty.name!r}"
        )
    if mode == "column" and terms.constraint is not None:
        raise ValueError(
            f"privacy='column' is proved without a constraint, got {terms.constraint!r}"
        )
    if mode == "row" and terms.constraint != Ball(bounds["radius"]):
        raise ValueError(
            f"privacy='row' keeps the weights in the ball of its radius, got the constraint "
            f"{terms.constraint!r}"
        )
