"""Expected curvature, and the bound that Theorem 1 makes of it.

For a set X of b blocks, a sampling S, and v_S the part of v in the blocks of S,

    C = sup (2 / g^2) E[ f(x + g (s - x)_S) - f(x) - g <(s - x)_S, grad f(x)> ]

over x, s in X and g in (0, 1]; 2/g^2 multiplies the whole bracket. If H is the Hessian of a
quadratic f, then C = sup over v in X - X of E v_S'H v_S = v'(P o H) v, P o H being H with every
block (i, j) times P_ij: a convex function of v, whose maximum is at differences of vertices, so it
can be found by enumeration. If f'' <= H everywhere, C is at most that.

Bounds for any number of blocks. Let C_f = sup v'Hv, C_i the same of block i alone, p the marginals.

1. C <= C_f: v_S = s' - x where s' is s in S and x elsewhere, for every S.
2. C <= sum_ij P_ij sqrt(C_i C_j): |H^(1/2) v_S| is at most the sum of its blocks' norms.
3. C <= a C_f + sum_i c_i C_i with, by sampling,
       serial              a = 0,        c_i = p_i
       tau-nice            a = q,        c_i = tau/b - q,  q = tau (tau-1) / (b (b-1))
       (K, tau)            a = max p^2,  c_i = p_k - q_k,  q_k that of group k
       independent         a = max p^2,  c_i = p_i (1 - p_i)
   Proof. P is diag(c) plus: nothing; q 11'; pp' minus (p_k^2 - q_k) 11' within each group, where
   q_k <= p_k^2; pp'. The part diag(c) gives sum c_i v_i'H v_i. With 11' comes v'Hv; with pp' comes
   w'Hw, w_i = p_i v_i, and w / max p is in X - X again, as x + t_i (s - x) is in X_i for t_i <= 1.
   What is subtracted is positive semidefinite, as is its Hadamard product with H (Schur).

Theorem 1. Let p = min p_i > 0, g_t = 2/(p t + 2) and h_t = E f(x_t) - f*. If the oracle and the
gradient are exact up to rho g_t C / 2 in expectation, then

    h_t <= 2 (h_0 + (1 + rho) C / p) / (p t + 2).

Proof. With G_i >= 0 the gap of block i, E[f(x_{t+1}) | x_t] <= f(x_t) - g_t sum_i p_i G_i +
(1 + rho) C g_t^2 / 2, and sum_i p_i G_i >= p (f(x_t) - f*). So h_{t+1} <= (1 - p g_t) h_t +
(1 + rho) C g_t^2 / 2. Let D be the bracket and u = p t + 2; then (1 + rho) C <= p D and h_{t+1} <=
(2 D / u) (1 - 2 p / u + p / u) <= 2 D / (u + p), as (u - p)(u + p) <= u^2. For t = 0: h_0 <= D.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice, product

import numpy as np

from dpsvm._arrays import Array
from dpsvm.constraints import check_positive
from dpsvm.frank_wolfe.samplings import (
    Distributed,
    Independent,
    Sampling,
    Serial,
    TauNice,
    least_marginal,
    pair_probability,
)
from dpsvm.frank_wolfe.sets import ConvexSet, OneBlock, largest_eigenvalue

MOST_POINTS = 2**18
"""Differences of vertices that are enumerated at most."""

MOST_NUMBERS = 2**20
"""Numbers of the differences of one block that are kept at most: 8 MB."""

_CHUNK = 4096


def enumerated_curvature(hessian: Array, domain: ConvexSet, sampling: Sampling) -> float | None:
    """The expected curvature of a quadratic, exactly; None where there is too much to enumerate.

    >>> from dpsvm.frank_wolfe import Box, TauNice
    >>> box = Box(np.zeros(2), np.ones(2))
    >>> enumerated_curvature(np.array([[2.0, 1.0], [1.0, 2.0]]), box, TauNice(2, 1))
    2.0
    >>> enumerated_curvature(np.array([[2.0, 1.0], [1.0, 2.0]]), box, TauNice(2, 2))
    6.0
    """
    pairs, blocks = sampling.pairs(), range(len(domain.blocks))
    if pairs is None:
        return None
    if isinstance(domain, OneBlock):
        return float(pairs[0, 0]) * domain.curvature(0, hessian)
    counts = [domain.n_differences(i) for i in blocks]
    sizes = [count * (b.stop - b.start) for count, b in zip(counts, domain.blocks, strict=True)]
    if math.prod(counts) > MOST_POINTS or max(sizes) > MOST_NUMBERS:
        return None
    choices = [domain.differences(i) for i in blocks]
    known = [one for one in choices if one is not None]
    if len(known) < len(choices):
        return None
    block_of = np.repeat(np.arange(len(known)), [one.shape[1] for one in known])
    weighted = hessian * pairs[np.ix_(block_of, block_of)]
    largest = 0.0
    points = product(*known)
    while chunk := list(islice(points, _CHUNK)):
        v = np.array([np.concatenate(parts) for parts in chunk])
        largest = max(largest, float(np.max(np.einsum("ij,ij->i", v @ weighted, v))))
    return largest


def curvature_bounds(hessian: Array, domain: ConvexSet, sampling: Sampling) -> dict[str, float]:
    """Every bound on the expected curvature that applies, by name; proofs above.

    >>> from dpsvm.frank_wolfe import Box, TauNice
    >>> box = Box(np.zeros(2), np.ones(2))
    >>> curvature_bounds(np.diag([4.0, 4.0]), box, TauNice(2, 1))
    {'whole': 8.0, 'pairs': 4.0, 'split': 4.0}
    """
    parts = np.array(
        [domain.curvature(i, hessian[b, b]) for i, b in enumerate(domain.blocks)], dtype=np.float64
    )
    roots = np.sqrt(np.maximum(parts, 0.0))
    whole = float(roots.sum()) ** 2
    if len(parts) > 1:
        diameter = float(np.sum(domain.diameters() ** 2))
        whole = min(whole, largest_eigenvalue(hessian) * diameter)
    bounds = {"whole": whole}
    pairs, split = sampling.pairs(), _split(sampling)
    if pairs is not None:
        bounds["pairs"] = float(roots @ pairs @ roots)
    if split is not None:
        bounds["split"] = split[0] * whole + float(split[1] @ parts)
    return bounds


def expected_curvature(hessian: Array, domain: ConvexSet, sampling: Sampling) -> float:
    """The expected curvature by enumeration if that can be done, else the least of the bounds.

    >>> from dpsvm.frank_wolfe import L1Ball, elementary
    >>> expected_curvature(np.diag([1.0, 3.0]), L1Ball(2, 0.5), elementary(1))
    3.0
    """
    exact = enumerated_curvature(hessian, domain, sampling)
    return min(curvature_bounds(hessian, domain, sampling).values()) if exact is None else exact


@dataclass(frozen=True)
class Theorem1:
    """The bound on E f(x_t) - f*, as a function of t.

    h0 : f(x_0) - f*, or what is known to be no less, such as the gap at x_0
    rho : rho_g + rho_l, the inexactness of gradient and oracle

    >>> Theorem1(h0=1.0, curvature=0.5, p=0.5)(4)
    1.0
    """

    h0: float
    curvature: float
    p: float = 1.0
    rho: float = 0.0

    def __post_init__(self) -> None:
        for name in ("h0", "curvature", "rho"):
            check_positive(getattr(self, name), name, zero=True)
        if not 0.0 < self.p <= 1.0:
            raise ValueError(f"p must lie above 0 and at most 1, got {self.p!r}")

    def __call__(self, t: int) -> float:
        """The bound at iteration t."""
        bracket = self.h0 + (1.0 + self.rho) * self.curvature / self.p
        return 2.0 * bracket / (self.p * t + 2.0)


def theorem_1(
    hessian: Array, domain: ConvexSet, sampling: Sampling, h0: float, rho: float = 0.0
) -> Theorem1:
    """The bound for a Hessian, a set and a sampling.

    >>> from dpsvm.frank_wolfe import Box, TauNice
    >>> theorem_1(np.eye(2), Box(np.zeros(2), np.ones(2)), TauNice(2, 1), h0=1.0).p
    0.5
    """
    curvature = expected_curvature(hessian, domain, sampling)
    return Theorem1(h0, curvature, least_marginal(sampling), rho)


def _split(sampling: Sampling) -> tuple[float, Array] | None:
    """a and c of bound 3; None for a sampling of one's own."""
    p = sampling.marginals
    if isinstance(sampling, Serial):
        return 0.0, p
    if isinstance(sampling, Independent):
        return float(np.max(p)) ** 2, p * (1.0 - p)
    if isinstance(sampling, TauNice):
        q = pair_probability(sampling.blocks, sampling.tau)
        return q, p - q
    if isinstance(sampling, Distributed):
        sizes = sampling.sizes
        within = np.repeat([pair_probability(size, sampling.tau) for size in sizes], sizes)
        return float(np.max(p)) ** 2, p - within
    return None
