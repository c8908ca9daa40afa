"""Which blocks are updated in an iteration: random sets S of blocks, drawn anew each time.

A sampling says with what probability p_i a block is in S (its marginals) and P_ij two blocks are
(pairs, P_ii = p_i), and draws S. Every p_i must be above 0: a block that is never drawn is never
updated. With b blocks:

    elementary(b)             all of them                      p = 1
    uniform_serial(b)         one, uniformly                   p = 1/b
    Serial(p)                 one, i with probability p_i      P_ij = 0
    TauNice(b, tau)           every tau alike                  p = tau/b,
                                                               P_ij = tau (tau-1) / (b (b-1))
    Distributed(sizes, tau)   tau alike of each of K groups    p = tau/b_k in group k; for K equal
                                                               groups K tau / b
    Independent(p)            each for itself                  P_ij = p_i p_j, S may be empty
    UserSampling(draw, p)     whatever ``draw`` gives          as told

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsvm._arrays import Array
from dpsvm.frank_wolfe.checks import check_count, check_vector

Indices = NDArray[np.intp]

_SUM = 1e-9  # how far from 1 the sum of probabilities may be


class Sampling(Protocol):
    """A random set of blocks."""

    marginals: Array
    """p_i, one for each block, above 0 and at most 1."""

    def draw(self, rng: np.random.Generator) -> Indices:
        """A set, in increasing order."""

    def pairs(self) -> Array | None:
        """P_ij, the probability that i and j are both drawn; None if it is not known."""


def least_marginal(sampling: Sampling) -> float:
    """p_min, by which every rate is divided.

    >>> least_marginal(TauNice(8, 2))
    0.25
    """
    return float(np.min(sampling.marginals))


class Distributed(Sampling):
    """From each of K groups of blocks, which parties hold, every tau of them alike.

    sizes : how many blocks each group has; the blocks of a group are consecutive

    The marginal is tau / b_k, so K tau / b if the groups are equal: not its square.

    >>> float(Distributed([4, 4], 2).marginals[0])
    0.5
    >>> Distributed([4, 2], 3)
    Traceback (most recent call last):
    ...
    ValueError: tau must be an integer from 1 to 2, got 3
    """

    def __init__(self, sizes: Sequence[int], tau: int) -> None:
        self.sizes = tuple(check_count(size, "the size of a group") for size in sizes)
        if not self.sizes:
            raise ValueError("at least one group is needed, got none")
        self.tau = check_count(tau, "tau", most=min(self.sizes))
        self.marginals = np.concatenate([np.full(size, self.tau / size) for size in self.sizes])
        self._first = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    def draw(self, rng: np.random.Generator) -> Indices:
        drawn = [
            first + np.sort(rng.choice(size, self.tau, replace=False))
            for first, size in zip(self._first, self.sizes, strict=True)
        ]
        return np.concatenate(drawn).astype(np.intp)

    def pairs(self) -> Array | None:
        """tau-nice within a group, independent between groups."""
        both = np.outer(self.marginals, self.marginals)
        for first, size in zip(self._first, self.sizes, strict=True):
            group = slice(first, first + size)
            both[group, group] = pair_probability(size, self.tau)
        np.fill_diagonal(both, self.marginals)
        return both


class TauNice(Distributed):
    """Every set of tau blocks with the same probability: one group alone.

    >>> TauNice(4, 3).marginals
    array([0.75, 0.75, 0.75, 0.75])
    >>> TauNice(4, 5)
    Traceback (most recent call last):
    ...
    ValueError: tau must be an integer from 1 to 4, got 5
    """

    def __init__(self, blocks: int, tau: int) -> None:
        self.blocks = check_count(blocks, "blocks")
        super().__init__([self.blocks], tau)

    def __repr__(self) -> str:
        return f"TauNice({self.blocks}, {self.tau})"


def elementary(blocks: int) -> TauNice:
    """All the blocks, always: the method of Frank and Wolfe itself.

    >>> elementary(3).draw(np.random.default_rng(0))
    array([0, 1, 2])
    """
    return TauNice(blocks, blocks)


def uniform_serial(blocks: int) -> TauNice:
    """One block, all alike (Lacoste-Julien et al. 2013).

    >>> uniform_serial(4).marginals
    array([0.25, 0.25, 0.25, 0.25])
    """
    return TauNice(blocks, 1)


class Serial(Sampling):
    """One block, i with probability p_i; the probabilities sum to 1.

    >>> Serial([0.5, 0.25, 0.25]).pairs()
    array([[0.5 , 0.  , 0.  ],
           [0.  , 0.25, 0.  ],
           [0.  , 0.  , 0.25]])
    """

    def __init__(self, probabilities: Any) -> None:
        self.marginals = _probabilities(probabilities)
        if abs(self.marginals.sum() - 1.0) > _SUM:
            raise ValueError(
                f"probabilities of one block must sum to 1, got {self.marginals.sum():g}"
            )

    def draw(self, rng: np.random.Generator) -> Indices:
        share = self.marginals / self.marginals.sum()
        return np.array([rng.choice(len(share), p=share)], dtype=np.intp)

    def pairs(self) -> Array | None:
        return np.diag(self.marginals)


class Independent(Sampling):
    """Every block for itself, i with probability p_i. The set may be empty.

    >>> Independent([0.5, 1.0]).pairs()
    array([[0.5, 0.5],
           [0.5, 1. ]])
    """

    def __init__(self, probabilities: Any) -> None:
        self.marginals = _probabilities(probabilities)

    def draw(self, rng: np.random.Generator) -> Indices:
        return np.flatnonzero(rng.random(len(self.marginals)) < self.marginals)

    def pairs(self) -> Array | None:
        both = np.outer(self.marginals, self.marginals)
        np.fill_diagonal(both, self.marginals)
        return both


class UserSampling(Sampling):
    """A sampling of one's own.

    draw : takes a numpy Generator, gives the numbers of the blocks
    marginals : the probability of each block; taken on trust
    pairs : P_ij, if known: then bounds on the curvature are tighter

    >>> halves = UserSampling(lambda rng: [0, 1] if rng.random() < 0.5 else [2], [0.5, 0.5, 0.5])
    >>> halves.draw(np.random.default_rng(1))
    array([2])
    """

    def __init__(
        self,
        draw: Callable[[np.random.Generator], Any],
        marginals: Any,
        pairs: Any = None,
    ) -> None:
        if not callable(draw):
            raise ValueError(f"draw must be callable, got {draw!r}")
        self._draw = draw
        self.marginals = _probabilities(marginals, "marginals")
        self._pairs = None if pairs is None else _pairs(pairs, self.marginals)

    def draw(self, rng: np.random.Generator) -> Indices:
        """What the callable gives, checked."""
        given = np.asarray(self._draw(rng))
        if given.size and given.dtype.kind not in "iu":
            raise ValueError(f"draw must give the numbers of blocks, got {given.tolist()!r}")
        found = np.unique(given.astype(np.intp))
        if len(found) and not 0 <= found[0] <= found[-1] < len(self.marginals):
            raise ValueError(
                f"draw must give blocks from 0 to {len(self.marginals) - 1}, got {found.tolist()!r}"
            )
        return found

    def pairs(self) -> Array | None:
        return self._pairs


def by_importance(weights: Any, expected: float) -> Independent:
    """An independent sampling with p_i proportional to weights, such as the norms of columns.

    weights : above 0, one for each block
    expected : how many blocks are drawn on average, at most all of them

    Where that would exceed 1, p_i is 1 and the others share what is left.

    >>> by_importance([1.0, 1.0, 2.0], 2.0).marginals
    array([0.5, 0.5, 1. ])
    """
    given = check_vector(weights, "weights")
    if not np.all(given > 0.0):
        raise ValueError(f"weights must be above 0, got {float(given.min()):g}")
    if not 0.0 < expected <= len(given):
        raise ValueError(f"expected must lie above 0 and at most {len(given)}, got {expected!r}")
    order = np.sort(given)[::-1]
    for sure in range(len(given)):
        scale = (expected - sure) / order[sure:].sum()
        if scale * order[sure] <= 1.0:
            break
    return Independent(np.minimum(given * scale, 1.0))


def _probabilities(values: Any, name: str = "probabilities") -> Array:
    found = check_vector(values, name)
    check_count(len(found), "blocks")
    wrong = found[~((found > 0.0) & (found <= 1.0))]
    if wrong.size:
        raise ValueError(f"{name} must lie above 0 and at most 1, got {wrong[0].item()!r}")
    return found


def _pairs(values: Any, marginals: Array) -> Array:
    found = np.asarray(values, dtype=np.float64)
    count = len(marginals)
    if found.shape != (count, count) or not np.allclose(found, found.T):
        raise ValueError(f"pairs must be a symmetric matrix of {count} rows, got {values!r}")
    if not np.allclose(np.diag(found), marginals) or np.any(found < 0.0) or np.any(found > 1.0):
        raise ValueError("pairs must hold probabilities, with the marginals on the diagonal")
    return found


def pair_probability(blocks: int, tau: int) -> float:
    """That tau of some blocks, all such sets alike, have two given blocks among them."""
    return tau * (tau - 1) / (blocks * (blocks - 1)) if blocks > 1 else 1.0
