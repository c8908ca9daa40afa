"""Private modes: target epsilon in, noise out, and what is charged and reported.

    objective  a random linear term in every update's problem: pure epsilon. Without recycling and
               with constant penalties this is dual variable perturbation (Zhang and Zhu 2017), with
               growing ones penalty perturbation
    primal     noise on every update's minimiser: pure epsilon; primal variable perturbation
    gaussian   Gaussian noise on every update's minimiser: (epsilon, delta)

The bounds and their proofs stand in :mod:`dpsvm.admm.network.bounds`. The guarantee covers all the
messages of all the nodes, and so the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.admm.network.bounds import (
    determinant_costs,
    gradient_change,
    largest_total,
    output_sensitivities,
    paper_condition,
    paper_costs,
    tight_costs,
)
from dpsvm.admm.network.penalties import positive_numbers
from dpsvm.admm.network.shares import Samples
from dpsvm.admm.network.terms import Terms
from dpsvm.privacy.accounting import Event, Gaussian, Pure, gaussian_epsilon, gaussian_mu
from dpsvm.privacy.guarantee import Guarantee, check_delta, check_epsilon
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.rounding import COVERING_SHARE, OVER, RANGE, UP, on_grid

MODES = ("objective", "primal", "gaussian")
"""The private modes."""

BOUNDS = ("tight", "paper")
"""What objective perturbation is calibrated to: the bound proved here, or the paper's."""

NEIGHBOURS = "replace"
_ROUNDINGS = 16 * 2.0**-53  # of a gradient, in units of its largest term
_CARRIED = 4.0  # what earlier updates' noise can make of one's: 3.9 times at most was measured
_EXACT = (
    "minimisers are certified to a gradient norm of {tol:g}, and what is left of their error is "
    "covered: {how}. Proved for real numbers; the gaps between floats and the time a fit takes "
    "are not protected against"
)
OUTSIDE = (
    "the guarantee covers all messages, coef_, coefs_, consensus and dual_sum; loss, objective and "
    "test error are computed from the data themselves and are outside it"
)


@dataclass(frozen=True, eq=False)
class NodeNoise:
    """The noise of one node, a fresh draw for each update.

    linear_scales, output_scales : of the random linear term (None for none) and of what is added to
        the minimiser, for each update
    made_for : the calibration and the node's number, which the node is checked against

    >>> noise = NodeNoise(2, Noise(0), 1e-9, None, np.array([0.0]), np.array([2.0**-10]))
    >>> noise.linear(1) is None, noise.release(1, np.array([0.5, 2.0]))
    (True, array([0.5, 2. ]))
    """

    dimension: int
    noise: Noise
    tol: float  # gradient norm of the minimisers that output_scales cover
    linear_scales: Array | None  # of shape (updates,)
    output_scales: Array
    widths: Array  # of all the noise in what is sent, which is rounded to their grids
    law: str = "spherical"  # of what is added to the minimiser
    made_for: tuple[Calibration, int] | None = None

    @property
    def updates(self) -> int:
        """How many updates the noise was made for."""
        return len(self.output_scales)

    def check(self, samples: Samples, terms: Terms) -> None:
        """Refuse samples and terms that the noise was not made for."""
        if self.made_for is not None:
            calibration, node = self.made_for
            calibration.check(node, samples, terms)

    def linear(self, update: int) -> Array | None:
        """The random linear term of an update's problem."""
        if self.linear_scales is None:
            return None
        return self.noise.spherical(self.dimension, float(self.linear_scales[update - 1]))

    def release(self, update: int, minimiser: Array) -> Array:
        """The minimiser with noise, on a public grid: all that is sent, and gone on from."""
        scale = float(self.output_scales[update - 1])
        if self.law == "gaussian":
            drawn = self.noise.gaussian(scale, self.dimension)
        else:
            drawn = self.noise.spherical(self.dimension, scale)
        return on_grid(minimiser + drawn, float(self.widths[update - 1]))


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration:
    """The noise of every update of a run, and what the run costs.

    >>> terms = Terms.of("complete", 2, rho=1.0, C=5.0, lam=1.0, gamma=0.5, rounds=4)
    >>> found = calibrate("objective", terms, [50, 100], tol=1e-9, epsilon=1.0)
    >>> print(found.guarantee)
    epsilon = 1 (replace)
    >>> found.alphas.round(2)
    array([[2.45, 4.95],
           [2.45, 4.95]])
    >>> found.spent.round(6)
    array([0.5, 1. ])
    """

    mode: str
    terms: Terms
    sizes: tuple[int, ...]  # B_i
    tol: float
    event: Event
    guarantee: Guarantee
    spent: Array  # P: the epsilon of the messages through each update, at the guarantee's delta
    output_scales: Array  # of what is added to minimisers, of shape (updates, N)
    alphas: Array | None = None  # of the linear term, of shape (updates, N)

    def check(self, node: int, samples: Samples, terms: Terms) -> None:
        """Refuse samples and terms that the noise of a node was not made for."""
        own, other = (
            (one.C, one.loss.name, one.loss.smoothness, one.curvatures.tolist())
            for one in (terms, self.terms)
        )
        if own != other:
            raise ValueError(f"node {node} has other terms than its noise was made for")
        if samples.size != self.sizes[node]:
            raise ValueError(
                f"the noise of node {node} was made for {self.sizes[node]} samples, got "
                f"{samples.size}"
            )
        if not samples.longest <= OVER:  # which row, and by how much, is private
            raise ValueError(
                f"a row of node {node} has a norm above 1, which no private mode covers: scale the "
                "rows by a public number, or give data_norm, to which longer rows are shortened"
            )
        self.check_floor(node, int(samples.rows.shape[1]))

    def check_floor(self, node: int, dimension: int) -> None:
        """Refuse a tolerance that rounding alone puts out of reach; public numbers only."""
        pulls = self.terms.curvatures[:, node]
        if self.alphas is not None:
            carried = min(1.25 * self.terms.updates, _CARRIED)
            pulls = np.maximum(pulls, carried * dimension / self.alphas[:, node])
        floor = _ROUNDINGS * float(pulls.max())
        if floor > self.tol:
            raise ValueError(
                f"tol = {self.tol:g} is out of reach of floating-point numbers: with penalties and "
                f"noise of up to {pulls.max():.3g} a gradient is known to {floor:.2g} at best. "
                "Raise tol, lower the growth, or make fewer updates"
            )

    def noise_of(self, node: int, dimension: int, noise: Noise) -> NodeNoise:
        """What the mode does to the updates of a node."""
        outer = self.output_scales[:, node]
        width = outer if self.mode == "gaussian" else outer * math.sqrt(dimension + 1.0)
        inner = None if self.alphas is None else 1.0 / self.alphas[:, node] * UP
        if inner is not None:
            moved = inner * math.sqrt(dimension + 1.0) / self.terms.curvatures[:, node]
            width = np.hypot(width, moved)
        law = "gaussian" if self.mode == "gaussian" else "spherical"
        made_for = self, node
        return NodeNoise(dimension, noise, self.tol, inner, outer, width, law, made_for)

    @property
    def figures(self) -> dict[str, Any]:
        """The paper's figure and the noise, each under its own name."""
        covered = (
            f"a share of {COVERING_SHARE:g} of epsilon pays for spherical noise that hides it"
            if self.mode == "objective"
            else "it is added to the sensitivity"
        )
        return {
            "mode": self.mode,
            "protects": "one sample of one node, its label included, replaced by another",
            "updates": self.terms.updates,
            **self._paper_figures(),
            "alphas": None if self.alphas is None else self.alphas.tolist(),
            "output_scales": self.output_scales.tolist(),
            "sizes": list(self.sizes),
            "assumes": _EXACT.format(tol=self.tol, how=covered),
            "outside": OUTSIDE,
        }

    def _paper_figures(self) -> dict[str, Any]:
        if self.alphas is None:
            return {"tight": self.guarantee.epsilon, "paper": None, "paper_condition": None}
        left, right = paper_condition(self.terms, self.sizes)
        costs = paper_costs(self.terms, self.sizes, self.alphas)
        tight = tight_costs(self.terms, self.sizes, self.alphas)
        verdict = "holds" if left < right else "does not hold, so the paper claims nothing here"
        return {
            "tight": float(largest_total(tight)[-1]),
            "paper": float(largest_total(costs)[-1]),
            "paper_condition": f"2 c1 = {left:.4g} < {right:.4g}: {verdict}",
        }


def calibrate(
    mode: str,
    terms: Terms,
    sizes: Sequence[int],
    *,
    tol: float,
    epsilon: float | None = None,
    delta: float | None = None,
    alpha: Any = None,
    bound: str = "tight",
) -> Calibration:
    """The noise with which a run costs epsilon, or (epsilon, delta), every node its full share.

    alpha : in mode "objective" instead of epsilon: one number, one for each node, or a table of
        shape (updates, N); epsilon then follows
    bound : in mode "objective", the bound that is made equal to epsilon

    >>> terms = Terms.of("complete", 2, rho=1.0, C=5.0, lam=1.0, gamma=0.5, rounds=4)
    >>> found = calibrate("gaussian", terms, [50, 100], tol=0.0, epsilon=1.0, delta=1e-5)
    >>> found.output_scales[0].round(4)
    array([0.4221, 0.211 ])
    """
    if mode not in MODES:
        raise ValueError(f"privacy must be one of {', '.join(map(repr, MODES))}, got {mode!r}")
    if not math.isfinite(terms.loss.smoothness):
        raise ValueError(
            "a private mode needs a loss of bounded curvature ('huber', 'smooth', 'logistic'), "
            f"got {terms.loss.name!r}"
        )
    curved = terms.curvatures
    if not np.all((curved >= RANGE[0]) & (curved <= RANGE[1])):
        raise ValueError(
            f"lam/N + 2 R_i must lie between {RANGE[0]:g} and {RANGE[1]:g}, got "
            f"{float(curved.min()):g} to {float(curved.max()):g}"
        )
    fixed: dict[str, Any] = {"mode": mode, "terms": terms, "sizes": tuple(sizes), "tol": tol}
    if mode == "objective":
        return _objective(fixed, epsilon, alpha, bound)
    number, updates = check_epsilon(epsilon), terms.updates
    steps = np.arange(1, updates + 1) / updates
    event: Event = Pure(number)
    small, spent, noise = 0.0, number * steps, updates / number  # the last in sensitivities
    if mode == "gaussian":
        small = check_delta(delta)
        mu = gaussian_mu(number, small)
        event, noise = Gaussian(mu), math.sqrt(updates) / mu
        spent = np.array([gaussian_epsilon(mu * math.sqrt(step), small) for step in steps])
    return Calibration(
        **fixed,
        event=event,
        guarantee=Guarantee(number, small, NEIGHBOURS),
        spent=spent,
        output_scales=output_sensitivities(terms, sizes, tol) * noise * UP,
    )


def _objective(fixed: dict[str, Any], epsilon: float | None, alpha: Any, bound: str) -> Calibration:
    terms, sizes, tol = fixed["terms"], fixed["sizes"], fixed["tol"]
    if alpha is None:
        alphas = _alphas_for(check_epsilon(epsilon), terms, sizes, bound)
    else:
        alphas = _given_alphas(alpha, terms)
    exact = largest_total(tight_costs(terms, sizes, alphas))
    whole = float(exact[-1]) / (1.0 - COVERING_SHARE) * UP
    if alpha is None and bound == "tight":
        whole = check_epsilon(epsilon)  # rounded up from the line above: see _alphas_for
    each = COVERING_SHARE * whole / terms.updates
    return Calibration(
        **fixed,
        event=Pure(whole),
        guarantee=Guarantee(whole, 0.0, NEIGHBOURS),
        spent=exact + each * np.arange(1, terms.updates + 1),
        output_scales=2.0 * tol / terms.curvatures / each * UP,
        alphas=alphas,
    )


def _alphas_for(epsilon: float, terms: Terms, sizes: Sequence[int], bound: str) -> Array:
    """The alpha of each node with which its bound is all of epsilon but the covering share.

    Rounding: down, by more than the roundings of the bound itself.
    """
    if bound not in BOUNDS:
        raise ValueError(f"bound must be one of {', '.join(map(repr, BOUNDS))}, got {bound!r}")
    share = epsilon * (1.0 - COVERING_SHARE) / UP**4
    if bound == "paper":
        left, right = paper_condition(terms, sizes)
        if not left < right:
            raise ValueError(
                f"bound='paper' needs 2 c1 < min_i (B_i / C) (lam/N + 2 R_i): {left:.4g} is not "
                f"below {right:.4g}. bound='tight' needs no condition"
            )
        fixed = paper_costs(terms, sizes, np.zeros_like(terms.curvatures))
    else:
        fixed = determinant_costs(terms, sizes)
    before = fixed.sum(axis=0) * (1.0 + terms.updates * math.ulp(1.0))
    if not np.all(before < share):
        raise ValueError(
            f"epsilon = {epsilon:g} is too small for any noise: the curvature of the loss alone "
            f"costs {float(before.max()):.4g} of {share:.4g} over {terms.updates} updates. Raise "
            "rho or lam, lower C, or make fewer updates"
        )
    found = (share - before) / (gradient_change(terms, sizes) * terms.updates) / UP**4
    return np.tile(found, (terms.updates, 1))


def _given_alphas(alpha: Any, terms: Terms) -> Array:
    shape, found = terms.curvatures.shape, positive_numbers(alpha, "alpha")
    try:
        return np.broadcast_to(found, shape).copy()
    except ValueError:
        raise ValueError(
            f"alpha must be a number, one for each of {shape[1]} nodes, or a table of shape "
            f"{shape}, got {alpha!r}"
        ) from None
