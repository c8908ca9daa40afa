"""How many rounds T and how large a sketch m a private run should have, from public numbers alone.

Frank-Wolfe with steps 2/(t+2), whose oracle misses the least <s, gradient> by e in expectation, has

    E f(x_T) - f* <= 2 C / (T + 2) + e,

C being the curvature (the recursion of :mod:`~dpsvm.frank_wolfe.curvature`, e beside it). More
rounds make the first term small; but they share one budget, so each of them has more noise. On the
l1 ball of radius r with entries at most B, C <= 4 r^2 B^2, from one vertex to its opposite. A step
from the middle to a vertex has r^2 B^2 at most, and that is the C by which T is chosen here.

Central. The exponential mechanism over N scores that move by D misses the best by at most
(2 D / e0) log N in expectation, as sum p_i u_i + s H(p) >= max u_i for its own p and s = 2 D / e0.
So e <= r (2 D / e0) log 2d, and with e0^2/8 = rho / T this is sqrt(T) c: the best T is

    T = (4 C / c)^(2/3),     c = 2 r D log(2 d) / sqrt(8 rho),

of order (C n epsilon)^(2/3), as D and sqrt(rho) are of order 1/n and epsilon. Pure: e0 = epsilon/T,
so e <= T c with c = 2 r D log(2 d) / epsilon, and T = sqrt(2 C / c).

Distributed. T = (4 C / (c_g + c_l))^(2/3), the form of Theorem 3, with c_l for the choices, by the
central argument, and c_g for the noise of the sketches in the gradients; C / p^2 in the place of C
where parties look at a share p of their columns, as the first term is then 2 C / (p^2 T). c_g and
c_l are sizes, not bounds: they depend on J and on the course of the run, which are replaced by what
is typical,

    max_j |v_j| = Y (1/sqrt(n) + sqrt(2 log(2n) / m)) / sqrt(n),   |J_:j| = 1,   Y^2 = |y|^2 / n,

the second term of the first only with a sketch. A number of a released sketch has noise of
s = 2 B sqrt(K T / rho) / n; in q it comes weighted by x, r s at most, and in a gradient a'v it
makes B sqrt(n) r s; where the coordinator compares proposals, sqrt(n) Y s. Both count twice, with
sqrt(2 log 2d) for the worst of 2d.

The sketch. A product of two columns of length 1 keeps an error of order 1/sqrt(m) in it, all of T
rounds but for a probability of delta one of order sqrt(log(T / delta) / m): m = log(T / delta) /
iota^2 keeps it to the order of iota.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsvm.constraints import check_choice, check_positive
from dpsvm.frank_wolfe.checks import check_count

MOST_ROUNDS = 1000
"""More are never proposed."""

AUTO = "auto"

IOTA = 1.0 / 3.0
"""The distortion of products that a proposed sketch allows."""


def central_rounds(
    *,
    radius: float,
    entry_bound: float,
    sensitivity: float,
    n_features: int,
    epsilon: float,
    rho: float | None,
) -> int:
    """T of a central run with zCDP of rho, or, if that is None, with pure privacy.

    >>> settings = dict(radius=1.0, entry_bound=1.0, sensitivity=4e-5, n_features=40, epsilon=1.0)
    >>> central_rounds(**settings, rho=0.03), central_rounds(**settings, rho=None)
    (315, 76)
    """
    curvature = (radius * entry_bound) ** 2
    missed = 2.0 * radius * sensitivity * math.log(2.0 * n_features)
    if rho is None:
        return _whole(math.sqrt(2.0 * curvature * epsilon / missed))
    return _whole((4.0 * curvature * math.sqrt(8.0 * rho) / missed) ** (2.0 / 3.0))


@dataclass(frozen=True, kw_only=True)
class DistributedSizes:
    """The public numbers that T and m of a distributed run are made of.

    label_size : Y, the root mean square of the labels, or a public bound on them
    share : p, the least share of its columns that a party looks at
    """

    n_samples: int
    n_features: int
    parties: int
    radius: float
    entry_bound: float
    label_size: float
    rho: float
    share: float = 1.0

    def rounds(self, sketch: int | None) -> int:
        """T for a sketch of this size; None is for whole columns.

        >>> sizes = DistributedSizes(n_samples=100_000, n_features=40, parties=4, radius=1.0,
        ...     entry_bound=1.0, label_size=0.5, rho=1.0)
        >>> sizes.rounds(100), sizes.rounds(None)
        (10, 11)
        """
        n, log_choices = self.n_samples, math.log(2.0 * self.n_features)
        largest = self.label_size / n
        if sketch is not None:
            largest += self.label_size * math.sqrt(2.0 * math.log(2.0 * n) / (n * sketch))
        choice = 2.0 * self.radius * (2.0 * self.entry_bound * largest) * log_choices
        choice /= math.sqrt(4.0 * self.rho / self.parties)
        deviation = 2.0 * self.entry_bound * math.sqrt(self.parties / self.rho) / n
        sizes = self.entry_bound * self.radius + self.label_size
        gradient = 2.0 * self.radius * math.sqrt(n) * deviation * sizes
        gradient *= math.sqrt(2.0 * log_choices)
        curvature = (self.radius * self.entry_bound / self.share) ** 2
        return _whole((4.0 * curvature / (choice + gradient)) ** (2.0 / 3.0))

    def plan(
        self, delta: float, rounds: int | None = None, sketch: int | str | None = AUTO
    ) -> tuple[int, int | None]:
        """T and m as given, or, where rounds is None or the sketch "auto", to fit each other.

        A sketch that would be no shorter than a column is None: whole columns.

        >>> sizes = DistributedSizes(n_samples=100_000, n_features=40, parties=4, radius=1.0,
        ...     entry_bound=1.0, label_size=0.5, rho=1.0)
        >>> sizes.plan(1e-5)
        (10, 125)
        """
        if rounds is not None:
            check_count(rounds, "rounds")
        if not isinstance(sketch, str):
            return self.rounds(sketch) if rounds is None else rounds, sketch
        check_choice(sketch, "sketch", (AUTO,))
        size: int | None = None
        for _ in range(8):  # m moves with log T only: two or three turns settle it
            size = sketch_size(self.rounds(size) if rounds is None else rounds, delta)
            size = None if size >= self.n_samples else size
        return self.rounds(size) if rounds is None else rounds, size


def sketch_size(rounds: int, delta: float, iota: float = IOTA) -> int:
    """log(T / delta) / iota^2, rounded up.

    >>> sketch_size(20, 1e-5, 0.25)
    233
    """
    return math.ceil(math.log(rounds / delta) / check_positive(iota, "iota") ** 2)


def _whole(rounds: float) -> int:
    return max(1, min(MOST_ROUNDS, round(rounds)))
