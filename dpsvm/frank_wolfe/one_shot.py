"""Baseline for communication: every party sends the sketches of all its columns, once.

The coordinator then minimises f_J(x) = |J A x - J y|^2 / (2 n) over |x|_1 <= r by itself. That
takes d m numbers up, whatever the number of steps (Heinze-Deml, McWilliams and Meinshausen 2018
send random projections likewise), against m K T by proposals.

Private: J A / n with Gaussian noise. If the features of one record are replaced, B bounding them,
the d columns move by at most 2 B |J_:j| / n each, together by sqrt(d) times that in Frobenius norm:
one Gaussian release of that sensitivity, exactly (epsilon, delta). Labels are public; what follows
is post-processing. Rounding: the sensitivity up, mu down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.constraints import check_positive
from dpsvm.frank_wolfe.checks import check_count
from dpsvm.frank_wolfe.core import minimize
from dpsvm.frank_wolfe.distributed import check_blocks
from dpsvm.frank_wolfe.loop import Result
from dpsvm.frank_wolfe.messages import Traffic
from dpsvm.frank_wolfe.objectives import LeastSquares
from dpsvm.frank_wolfe.privacy import (
    PUBLIC_LABELS,
    check_entries,
    check_size,
    noisy,
    sketch_sensitivity,
)
from dpsvm.frank_wolfe.sets import L1Ball
from dpsvm.frank_wolfe.sketches import Sketch
from dpsvm.frank_wolfe.steps import PAIRWISE
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.accounting import Gaussian, gaussian_mu
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.release import Price, Release
from dpsvm.privacy.rounding import UP

_PRIVATE = ("delta", "entry_bound", "public_labels", "accountant", "random_state")


@dataclass(frozen=True, kw_only=True, eq=False)
class OneShotResult:
    """The minimiser of the sketched problem, and what was sent for it."""

    x: Array
    sketched: Result  # of the coordinator's own run: values and gap are those of f_J
    traffic: Traffic
    guarantee: Guarantee | None = None
    report: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class OneShotSketching:
    """The lasso over an l1 ball from sketches of all the columns, sent once.

    radius, sketch, sketch_seed : as for :class:`~dpsvm.frank_wolfe.DistributedFrankWolfe`
    max_iter, tol : of the coordinator's own run, by pairwise steps
    epsilon, delta, entry_bound, public_labels, accountant, random_state : of a private run, as for
        :class:`~dpsvm.frank_wolfe.PrivateDistributedFrankWolfe`

    >>> A = np.random.default_rng(0).standard_normal((200, 6))
    >>> found = OneShotSketching(radius=1.0, sketch=100).solve([A[:, :4], A[:, 4:]], A[:, 0])
    >>> found.traffic.up_floats, bool(found.x[0] > 0.9)
    (600, True)
    """

    radius: float
    sketch: int
    sketch_seed: int = 0
    max_iter: int = 1000
    tol: float = 0.0
    epsilon: float | None = None
    delta: float | None = None
    entry_bound: float | None = None
    public_labels: bool | None = None
    accountant: BudgetAccountant | None = None
    random_state: Any = None

    def solve(self, blocks: Any, y: Any) -> OneShotResult:
        """Send, and minimise."""
        tables, target = check_blocks(blocks, y)
        size = check_count(self.sketch, "sketch")
        check_count(self.max_iter, "max_iter", least=0)
        check_positive(self.tol, "tol", zero=True)
        sketch = Sketch(len(target), size, self.sketch_seed)
        ball = L1Ball(
            sum(table.shape[1] for table in tables), check_positive(self.radius, "radius")
        )
        price = self._price(tables, sketch)
        sent = np.hstack([sketch.of(table) for table in tables]) / len(target)
        guarantee, report = None, None
        if price is not None:
            release = Release.of(self, price)
            sent = noisy(sent, price.figures["sketch_noise"], release.charge())
            guarantee, report = release.guarantee, release.report
        # LeastSquares divides by its rows, which are m, not n.
        scale = math.sqrt(len(target) * size)
        goal = np.asarray(sketch.of(target)) / len(target)
        f = LeastSquares(sent * scale, goal * scale)
        found = minimize(f, ball, step=PAIRWISE, max_iter=self.max_iter, tol=self.tol)
        return OneShotResult(
            x=found.x,
            sketched=found,
            traffic=Traffic(0, size * ball.dimension, 0),
            guarantee=guarantee,
            report=report,
        )

    def _price(self, tables: list[Any], sketch: Sketch) -> Price | None:
        """Of a private run, all that it needs being given; None without an epsilon."""
        if self.epsilon is None:
            for name in _PRIVATE:
                if (value := getattr(self, name)) is not None:
                    raise ValueError(f"{name} goes with an epsilon, got {name}={value!r} without")
            return None
        if self.public_labels is not True:
            raise ValueError(
                "labels are not protected here: an epsilon needs public_labels=True, got "
                f"{self.public_labels!r}"
            )
        bound = check_positive(self.entry_bound, "entry_bound")
        for table in tables:
            check_entries(table, bound, "entry_bound")
        if self.delta is None:
            raise ValueError("a private run needs a delta, got None")
        mu = gaussian_mu(self.epsilon, self.delta)
        columns = sum(table.shape[1] for table in tables)
        moved = sketch_sensitivity(sketch, bound) * math.sqrt(columns)
        scale = moved / mu * UP
        check_size(scale, "the noise of the sketches")
        figures = {
            "labels": PUBLIC_LABELS,
            "sketches": 1,
            "sketch_multiplier": 1.0 / mu,
            "sketch_sensitivity": moved,
            "sketch_noise": scale,
        }
        guarantee = Guarantee(float(self.epsilon), float(self.delta), "features")
        return Price(Gaussian(mu), guarantee, figures)
