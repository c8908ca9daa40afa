"""How much an update can tell about one sample of one node: the bounds, and their proofs.

Setting. All messages are public. Given those of the earlier rounds, the multiplier and both
ends of every edge are known, so that an update of node i is a random function of its samples alone,

    f = argmin G(f) + e . f,   G(f) = (C/B) sum_n l(y_n f . x_n) + kappa/2 |f|^2 + b . f,

with b public, kappa = lam/N + 2 R_i(k) and e the noise. Neighbouring data: one sample of one node
is replaced, label included; the sizes B_i are public. Enforced: |x| <= 1, |l'| <= L = 1, and
0 <= l'' <= c (1/4 for the logistic loss, 1/h for the huber hinge of width h, 3/(2h) for the C2
hinge). So the gradient of G moves by at most 2 C L / B between neighbours, whatever f.

Only node i's own updates depend on its samples: the other nodes' messages are, given the earlier
ones, the same random functions for both data sets. A sample of node i therefore pays for the
updates of node i and for no other, and a run costs the largest of these sums. Even rounds and
multipliers are functions of messages and cost nothing.

Objective perturbation, e of density proportional to exp(-alpha |e|). An update costs at most

    ln(1 + q) + 2 C L alpha / B,   q = C c / (B kappa).

Proof. G is kappa-strongly convex with a Lipschitz gradient, so e = -grad G(f) is a bijection of f,
Lipschitz both ways, and f has the density p(-grad G(f)) |det Hess G(f)| almost everywhere. Between
neighbours grad G moves by at most 2 C L / B, which changes p by a factor of at most
exp(2 C L alpha / B). Let A be the Hessian without the sample that is replaced. With it, the
Hessian is A + a x x', 0 <= a <= C c / B, of determinant det A (1 + a x' A^-1 x), which lies between
det A and det A (1 + q) as A >= kappa I. So do both determinants, and their ratio is at most 1 + q
either way. Sums over updates: pure privacy composes adaptively by addition.

The paper prints, for the same mechanism, (2 C / B) (1.4 c / kappa + alpha) an update, under the
condition 2 c < (B / C) kappa. As ln(1 + q) <= q <= 2.8 q, the bound above is never larger and needs
no condition.

Output perturbation, e = 0 and noise on the minimiser. Between neighbours it moves by at most
2 C L / (B kappa): G and G' are kappa-strongly convex, so kappa |f - f'|^2 <= (grad G(f') -
grad G'(f')) . (f' - f) <= (2 C L / B) |f - f'|. The node must go on from what it sent: then that is
all there is to hide. Noise of density proportional to exp(-|z| / scale) costs sensitivity / scale
an update; Gaussian noise of deviation s has mu = sensitivity / s, and mu^2 add up exactly.

Inexact minimisers. A certified gradient norm of tau leaves the weights within tau / kappa of the
minimiser. Output perturbation adds 2 tau / kappa to the sensitivity. Objective perturbation is, in
all but a thousandth of epsilon, the release of the exact minimiser f; given f (which with the data
fixes e) the difference of what was found from f has a norm of at most tau / kappa, and a little
spherical noise of scale 2 tau / kappa over its share hides it at that thousandth. A node that
misses the certificate sends nothing.

All of this is for real numbers: noise inside a solver cannot be made safe against the gaps between
floats, and the time an update takes is not protected. Rounding: costs and sensitivities up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpsvm._arrays import Array
from dpsvm.admm.network.terms import Terms
from dpsvm.privacy.rounding import UP


def _sizes(sizes: Sequence[int]) -> Array:
    return np.asarray(sizes, dtype=np.float64)


def determinant_costs(terms: Terms, sizes: Sequence[int]) -> Array:
    """ln(1 + q_i(k)), of shape (updates, N): what an update costs before any noise is chosen.

    >>> terms = Terms.of("complete", 2, rho=1.0, C=4.0, lam=1.0, gamma=0.5, rounds=1)
    >>> determinant_costs(terms, [10, 10]).round(6)  # q = 4 (1/4) / (10 (0.5 + 2))
    array([[0.039221, 0.039221]])
    """
    q = terms.C * terms.loss.smoothness / (_sizes(sizes) * terms.curvatures)
    return np.log1p(q) * UP


def gradient_change(terms: Terms, sizes: Sequence[int]) -> Array:
    """2 C L / B_i, of shape (N,): how far a node's gradient moves when a sample is replaced."""
    return 2.0 * terms.C * terms.loss.lipschitz / _sizes(sizes) * UP


def tight_costs(terms: Terms, sizes: Sequence[int], alphas: Array) -> Array:
    """What each update of each node costs under objective perturbation, as proved above.

    alphas : of shape (updates, N)
    """
    return determinant_costs(terms, sizes) + gradient_change(terms, sizes) * alphas * UP


def paper_costs(terms: Terms, sizes: Sequence[int], alphas: Array) -> Array:
    """The same as the paper prints it, R_i in the place of its rho_i V_i.

    Its sum is never below that of :func:`tight_costs`, so it holds too, with or without the paper's
    condition.
    """
    curved = 1.4 * terms.loss.smoothness / terms.curvatures
    return 2.0 * terms.C / _sizes(sizes) * (curved + alphas) * UP


def paper_condition(terms: Terms, sizes: Sequence[int]) -> tuple[float, float]:
    """Both sides of the paper's condition 2 c < min_i (B_i / C) (lam/N + 2 R_i(1)).

    >>> terms = Terms.of("complete", 2, rho=1.0, loss="huber", C=4.0, lam=1.0, rounds=1)
    >>> paper_condition(terms, [10, 20])
    (4.0, 6.25)
    """
    right = np.min(_sizes(sizes) / terms.C * terms.curvatures[0])
    return 2.0 * terms.loss.smoothness, float(right)


def output_sensitivities(terms: Terms, sizes: Sequence[int], tau: float) -> Array:
    """How far a minimiser certified to tau moves when a sample is replaced, (updates, N).

    >>> terms = Terms.of("complete", 2, rho=1.0, C=5.0, lam=1.0, gamma=0.5, rounds=1)
    >>> output_sensitivities(terms, [10, 20], 0.0).round(6)
    array([[0.4, 0.2]])
    """
    return (gradient_change(terms, sizes) + 2.0 * tau) / terms.curvatures * UP


def largest_total(costs: Array) -> Array:
    """After each update, the most that any node's updates have cost together, rounded up.

    >>> largest_total(np.array([[1.0, 2.0], [4.0, 1.0]])).round(9)
    array([2., 5.])
    """
    totals = np.cumsum(costs, axis=0).max(axis=1)
    return np.asarray(totals * (1.0 + len(costs) * math.ulp(1.0)))
