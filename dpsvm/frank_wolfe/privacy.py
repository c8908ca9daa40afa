"""Private modes: how far a choice and a sketch can move, and the noise that hides them.

Choosing a vertex. Let u_1, ..., u_k be scores that move by at most D each between neighbouring
data. The largest of u_i + Gumbel(2 D / e) is at i with probability proportional to
exp(e u_i / 2 D): the exponential mechanism. Its log-probabilities move by a shift common to all and
by at most e / 2 each way: the privacy loss lies in an interval of length e that contains 0. So it
is e-differentially private, and e^2/8-zCDP (Cesar and Rogers 2021; Hoeffding's lemma). The scores
are those of all the signed vertices, -g_i and g_i: choosing i by |g_i| and telling the sign of g_i
would tell more than was paid for.

Central (Talwar, Thakurta and Zhang 2015). Neighbours: one record replaced, label included. With
|a_ij| <= B, |y_j| <= L and |x|_1 <= r, the part of a record in g_i = a_i'(A x - y) / n is at most
B (B r + L) / n, so D = 2 B (B r + L) / n. What is released are the T choices, and x is made of them
and of steps fixed beforehand.

Distributed. Neighbours: the features of one record replaced, whichever parties hold them; labels
are public, or else protected too, and then one record is replaced, label included. J is public. In
a round every party releases

    a choice among scores g_i = a_i'v, v = J'(q - J y / n), public: q is made of what was released
    before. One entry of a_i changes by at most 2 B, so D = 2 B max_j |v_j|. (2 r B / n is too
    small: v has an entry for every sample, and the error of the sketch is in each.)
    the sketch J a_i / n of the column chosen, which moves by at most 2 B max_j |J_:j| / n in norm,
    with Gaussian noise of mu = that / deviation, mu^2/2-zCDP. (The leading singular value of J in
    the place of its longest column holds too, and is larger.)

Protected labels are released once, before the first round, as the sketch J y / n with the noise of
its own sensitivity 2 L max_j |J_:j| / n: one more sketch, and from then on it stands for J y / n
everywhere, v included, which stays public.

A record touches every party, so all K T choices and all S sketches compose: zCDP adds up, also
where what is asked depends on earlier answers (Bun and Steinke 2016). One half of rho goes to the
choices, K T e^2/8 = rho/2, one to the sketches, S mu^2/2 = rho/2. S is K T without a cache. With
it, a sketch that was sent before is not sent again, so party k of d_k columns sends min(T, d_k) at
most, and S is the sum of these. Protected labels add 1.

All of this is for real numbers. Sketches are rounded to a public grid of 2^-20 of their noise,
after it. Rounding: sensitivities up, e and mu down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from dpsvm._arrays import Array
from dpsvm._memory import Remembers
from dpsvm.constraints import check_positive
from dpsvm.frank_wolfe.checks import check_count
from dpsvm.frank_wolfe.sketches import Sketch
from dpsvm.privacy.accounting import Event, Pure, ZCdp, calibrate
from dpsvm.privacy.guarantee import Guarantee, check_delta, check_epsilon
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.rounding import UP, on_grid

_LEAST = 1e-250  # the least noise: well above where floats lose digits, as does what it hides

PUBLIC_LABELS = "public: the coordinator's queries reveal them, and no noise hides them"
NOISY_LABELS = "protected: their sketch is released once, with noise"


def choose_vertex(
    gradient: Array, sensitivity: float, epsilon: float, noise: Noise
) -> tuple[int, int]:
    """The position and the sign of a vertex with a small <s, gradient>, chosen privately.

    sensitivity : how far a number of the gradient moves, at most, between neighbouring data
    epsilon : of this choice: epsilon-differentially private and epsilon^2/8-zCDP, proof above

    >>> choose_vertex(np.array([0.0, 9.0, -3.0]), 0.1, 1.0, Noise())
    (1, -1)
    """
    scores = np.concatenate([-gradient, gradient])
    if not math.isfinite(sensitivity) or (sensitivity == 0.0 and np.any(scores)):
        raise ValueError(f"scores with a sensitivity of {sensitivity!r} cannot be hidden")
    winner = int(np.argmax(scores + noise.gumbel(2.0 * sensitivity / epsilon * UP, len(scores))))
    return winner % len(gradient), 1 if winner < len(gradient) else -1


def gradient_sensitivity(
    radius: float, n_samples: int, entry_bound: float, label_bound: float
) -> float:
    """2 B (B r + L) / n: how far a number of the lasso's gradient moves when a record is replaced.

    >>> round(gradient_sensitivity(2.0, 100, 1.0, 1.0), 9)
    0.06
    """
    return 2.0 * entry_bound * (entry_bound * radius + label_bound) / n_samples * UP


def sketch_sensitivity(sketch: Sketch, entry_bound: float) -> float:
    """2 B max_j |J_:j| / n: how far J a / n moves when one entry of a column is replaced.

    >>> round(sketch_sensitivity(Sketch(100), 1.0), 9)
    0.02
    """
    return 2.0 * entry_bound * sketch.longest / sketch.n_samples * UP


def score_sensitivity(residual: Array, sketch: Sketch, entry_bound: float) -> float:
    """2 B max_j |v_j|, v = J'(q - J y / n): how far a score moves when an entry is replaced.

    >>> round(score_sensitivity(np.array([0.0, -0.25]), Sketch(2), 1.0), 9)
    0.5
    """
    return 2.0 * entry_bound * float(np.max(np.abs(sketch.back(residual)))) * UP


def concentrated_budget(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP gives (epsilon, delta), rounded down.

    >>> round(concentrated_budget(1.0, 1e-5), 5)
    0.03055
    """
    check_delta(delta)
    return 1.0 / calibrate(lambda scale: [ZCdp(1.0 / scale)], check_epsilon(epsilon), delta)


@dataclass(frozen=True, kw_only=True)
class CentralCalibration:
    """The noise of a central run."""

    rounds: int
    sensitivity: float  # of a number of the gradient
    choice_epsilon: float  # of one choice
    event: Event  # the whole run
    guarantee: Guarantee

    @classmethod
    def of(
        cls, rounds: int, sensitivity: float, epsilon: float, delta: float | None
    ) -> CentralCalibration:
        """Spend (epsilon, delta) on so many choices: epsilon by adding up, or, with delta and where
        that gives more to each of them, by zCDP.

        >>> found = CentralCalibration.of(20, 0.06, 1.0, 1e-5)
        >>> round(found.choice_epsilon, 4), found.guarantee.neighbouring
        (0.1105, 'replace')
        >>> CentralCalibration.of(2, 0.06, 1.0, 1e-5).event
        Pure(epsilon=1.0)
        """
        check_count(rounds, "rounds")
        budget = check_epsilon(epsilon)
        event: Event = Pure(budget)
        each, small = budget / rounds / UP, 0.0
        if delta is not None:
            small, rho = check_delta(delta), concentrated_budget(budget, delta)
            joint = math.sqrt(8.0 * rho / rounds) / UP
            if joint > each:
                each, event = joint, ZCdp(rho)
        check_size(sensitivity, "the sensitivity of a choice")
        check_size(2.0 * sensitivity / each, "the noise of a choice")
        return cls(
            rounds=rounds,
            sensitivity=sensitivity,
            choice_epsilon=each,
            event=event,
            guarantee=Guarantee(budget, small, "replace"),
        )

    @property
    def figures(self) -> dict[str, Any]:
        """The figures behind the guarantee."""
        return {
            "labels": "protected: part of the record",
            "choices": self.rounds,
            "choice_epsilon": self.choice_epsilon,
            "score_sensitivity": self.sensitivity,
            "event": repr(self.event),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class DistributedCalibration:
    """The noise of a distributed run of K parties and T rounds."""

    sketch: Sketch
    rounds: int
    sketches: tuple[int, ...]  # that each party may send
    entry_bound: float
    label_bound: float | None  # None of public labels
    choice_epsilon: float  # of one choice
    mu: float  # of one sketch
    sensitivity: float  # of a sketch, in norm
    event: ZCdp  # the whole run
    guarantee: Guarantee

    @classmethod
    def of(
        cls,
        sketch: Sketch,
        sizes: Sequence[int],
        rounds: int,
        epsilon: float,
        delta: float,
        entry_bound: float,
        label_bound: float | None = None,
        *,
        cache: bool = True,
    ) -> DistributedCalibration:
        """Spend (epsilon, delta), half of it on choices and half on sketches.

        sizes : how many columns each party has
        label_bound : public, of labels that are protected; None if they are public
        cache : whether a sketch is sent only once

        >>> found = DistributedCalibration.of(Sketch(1000), [50] * 3, 20, 1.0, 1e-5, 1.0)
        >>> round(found.choice_epsilon, 4), round(1 / found.mu, 1)
        (0.0451, 44.3)
        >>> found = DistributedCalibration.of(Sketch(1000), [5] * 3, 20, 1.0, 1e-5, 1.0)
        >>> found.sketches, round(1 / found.mu, 1)
        ((5, 5, 5), 22.2)
        """
        bound = check_positive(entry_bound, "entry_bound")
        choices = check_count(len(sizes), "parties") * check_count(rounds, "rounds")
        for size in sizes:
            check_count(size, "the columns of a party")
        protected = label_bound is not None
        sketches = tuple(min(rounds, size) if cache else rounds for size in sizes)
        rho = concentrated_budget(epsilon, delta)
        found = cls(
            sketch=sketch,
            rounds=rounds,
            sketches=sketches,
            entry_bound=bound,
            label_bound=check_positive(label_bound, "label_bound") if protected else None,
            choice_epsilon=math.sqrt(4.0 * rho / choices) / UP,
            mu=math.sqrt(rho / (sum(sketches) + protected)) / UP,
            sensitivity=sketch_sensitivity(sketch, bound),
            event=ZCdp(rho),
            guarantee=Guarantee(
                float(epsilon), float(delta), "replace" if protected else "features"
            ),
        )
        check_size(found.sensitivity, "the sensitivity of a sketch")
        check_size(found.scale, "the noise of a sketch")
        return found

    @property
    def scale(self) -> float:
        """The standard deviation of the noise on every number of a sketch."""
        return self.sensitivity / self.mu * UP

    def check_labels(self, target: Array) -> None:
        """Refuse protected labels above their public bound."""
        if self.label_bound is not None:
            check_entries(target, self.label_bound, "label_bound")

    def clipped(self, columns: Any) -> Any:
        """Columns whose entries are within their public bound."""
        return clip_entries(columns, self.entry_bound)

    def release_labels(self, target: Array, noise: Noise) -> Array:
        """J y / n as the coordinator may use it: with noise, unless labels are public."""
        goal = np.asarray(self.sketch.of(target)) / self.sketch.n_samples
        if self.label_bound is None:
            return goal
        scale = sketch_sensitivity(self.sketch, self.label_bound) / self.mu * UP
        return noisy(goal, scale, noise)

    def noise_of(self, party: int, noise: Noise) -> PartyNoise:
        """What a party adds to its messages."""
        check_count(party, "party", least=0, most=len(self.sketches) - 1)
        return PartyNoise(self, party, noise)

    @property
    def figures(self) -> dict[str, Any]:
        """The figures behind the guarantee, and the paper's sensitivity beside ours."""
        return {
            "labels": PUBLIC_LABELS if self.label_bound is None else NOISY_LABELS,
            "choices": len(self.sketches) * self.rounds,
            "sketches": sum(self.sketches) + (self.label_bound is not None),
            "choice_epsilon": self.choice_epsilon,
            "sketch_multiplier": 1.0 / self.mu,
            "sketch_sensitivity": self.sensitivity,
            "sketch_noise": self.scale,
            "published_sensitivity": (
                2.0 * self.entry_bound * self.sketch.leading / self.sketch.n_samples
            ),
            "event": repr(self.event),
        }


class PartyNoise(Remembers):
    """Noise on the choices and the sketches of one party, for as many rounds as were paid for.

    >>> calibration = DistributedCalibration.of(Sketch(4), [2], 1, 1e6, 1e-5, 1.0)
    >>> noise = calibration.noise_of(0, Noise())
    >>> noise.choose(np.array([1.0, -5.0]), np.full(4, 0.1))
    (1, 1)
    >>> noise.choose(np.array([1.0, -5.0]), np.full(4, 0.1))
    Traceback (most recent call last):
    ...
    ValueError: the noise of party 0 was made for 1 choices, all of which were made
    """

    _memory: ClassVar = ("_choices", "_sketches")

    def __init__(self, calibration: DistributedCalibration, party: int, noise: Noise) -> None:
        self._made_for, self._party, self._noise = calibration, party, noise
        self._choices = self._sketches = 0  # made so far

    def check(self, columns: Any, sketch: Sketch, party: int) -> None:
        """Refuse another party, another sketch, and entries above their public bound."""
        if party != self._party:
            raise ValueError(f"the noise was made for party {self._party}, got party {party}")
        if sketch is not self._made_for.sketch:
            raise ValueError("the noise was made for another sketch")
        check_entries(columns, self._made_for.entry_bound, "entry_bound")

    def choose(self, scores: Array, residual: Array) -> tuple[int, int]:
        """The position and the sign of a vertex, by the exponential mechanism."""
        made_for = self._made_for
        self._choices = self._counted(self._choices, made_for.rounds, "choices")
        sensitivity = score_sensitivity(residual, made_for.sketch, made_for.entry_bound)
        return choose_vertex(scores, sensitivity, made_for.choice_epsilon, self._noise)

    def release(self, sketched: Array) -> Array:
        """A sketch with Gaussian noise, on a public grid."""
        scale = self._made_for.scale
        allowed = self._made_for.sketches[self._party]
        self._sketches = self._counted(self._sketches, allowed, "sketches")
        return noisy(sketched, scale, self._noise)

    def _counted(self, made: int, allowed: int, what: str) -> int:
        if made >= allowed:
            raise ValueError(
                f"the noise of party {self._party} was made for {allowed} {what}, all of which "
                "were made"
            )
        return made + 1


def noisy(sketched: Array, scale: float, noise: Noise) -> Array:
    """Sketches with Gaussian noise of a standard deviation, on a public grid.

    >>> noisy(np.zeros(3), 1.0, Noise(0)).shape
    (3,)
    """
    return on_grid(sketched + noise.gaussian(scale, sketched.shape), scale)


def check_entries(values: Any, bound: float, name: str) -> None:
    """Refuse numbers above their public bound; which one, and by how much, is private.

    A sparse table must hold every entry once (:func:`~dpsvm.frank_wolfe.checks.canonical_columns`).

    >>> check_entries(np.array([[0.5, -2.0]]), 1.0, "entry_bound")
    Traceback (most recent call last):
    ...
    ValueError: entries must be at most entry_bound = 1 in absolute value, and one is not
    """
    numbers = values.data if sparse.issparse(values) else np.asarray(values)
    if not float(np.max(np.abs(numbers), initial=0.0)) <= bound:
        raise ValueError(
            f"entries must be at most {name} = {bound:g} in absolute value, and one is not"
        )


def clip_entries(values: Any, bound: float) -> Any:
    """Numbers moved to their public bound where they are above it, each by itself.

    >>> clip_entries(np.array([[0.5, -2.0]]), 1.0)
    array([[ 0.5, -1. ]])
    """
    if not sparse.issparse(values):
        return np.clip(values, -bound, bound)
    clipped = values.copy()
    clipped.data = np.clip(values.data, -bound, bound)
    return clipped


def check_size(scale: float, name: str) -> None:
    """Refuse noise that floats cannot hold, before anything is charged.

    >>> check_size(math.inf, "the noise of a choice")
    Traceback (most recent call last):
    ...
    ValueError: the noise of a choice is inf: the bounds or the radius are too large or too small
    """
    if not _LEAST <= scale < math.inf:
        raise ValueError(
            f"{name} is {scale:g}: the bounds or the radius are too large or too small"
        )
