"""Private Frank-Wolfe: central, and over columns that parties hold; guarantees, not claims.

The proofs, and what is neighbouring to what, stand in :mod:`~dpsvm.frank_wolfe.privacy`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.constraints import check_positive
from dpsvm.frank_wolfe.agreement import Agreement, generator_of
from dpsvm.frank_wolfe.distributed import DistributedResult, Watch, check_blocks, run
from dpsvm.frank_wolfe.objectives import LeastSquares
from dpsvm.frank_wolfe.privacy import (
    CentralCalibration,
    check_entries,
    choose_vertex,
    concentrated_budget,
    gradient_sensitivity,
)
from dpsvm.frank_wolfe.sets import Atom
from dpsvm.frank_wolfe.steps import Diminishing
from dpsvm.frank_wolfe.theory import central_rounds
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.guarantee import Guarantee, check_epsilon
from dpsvm.privacy.release import Release


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateResult:
    """A private model. What it is worth on the data is not told: that would cost, too."""

    x: Array
    choices: list[Atom]  # the vertices chosen, in order: all that was released
    guarantee: Guarantee
    report: dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateFrankWolfe:
    """The lasso over an l1 ball, every vertex chosen by the exponential mechanism.

    rounds : None is what theory proposes (:mod:`~dpsvm.frank_wolfe.theory`)
    epsilon, delta : the whole run; without delta, pure
    entry_bound, label_bound : public bounds on |a_ij| and |y_i|; larger ones are refused
    accountant : charged before the first choice
    random_state : None for the operating system's entropy; a seed warns

    Steps are 2/(t+2) and all the rounds are run: a line search or a gap would read the data.

    >>> A = np.random.default_rng(0).uniform(-1, 1, (5000, 3))
    >>> solver = PrivateFrankWolfe(
    ...     radius=0.5, rounds=5, epsilon=100.0, delta=1e-5, entry_bound=1.0, label_bound=1.0
    ... )
    >>> found = solver.solve(A, 0.5 * A[:, 1])
    >>> print(found.guarantee)
    epsilon = 100, delta = 1e-05 (replace)
    >>> len(found.choices), bool(np.abs(found.x).sum() <= 0.5 + 1e-12)
    (5, True)
    """

    radius: float
    epsilon: float
    entry_bound: float
    label_bound: float
    delta: float | None = None
    rounds: int | None = None
    accountant: BudgetAccountant | None = None
    random_state: Any = None

    def solve(
        self, A: Any, y: Any, watch: Callable[[int, Array], Any] | None = None
    ) -> PrivateResult:
        """Release a model of y from the columns of A; ``watch`` sees every point, ends nothing."""
        f, radius = LeastSquares(A, y), check_positive(self.radius, "radius")
        entries = check_positive(self.entry_bound, "entry_bound")
        labels = check_positive(self.label_bound, "label_bound")
        check_entries(f.matrix, entries, "entry_bound")
        check_entries(f.target, labels, "label_bound")
        sensitivity = gradient_sensitivity(radius, f.n_samples, entries, labels)
        rounds = self.rounds
        if rounds is None:
            rounds = central_rounds(
                radius=radius,
                entry_bound=entries,
                sensitivity=sensitivity,
                n_features=f.n_features,
                epsilon=check_epsilon(self.epsilon),
                rho=None if self.delta is None else concentrated_budget(self.epsilon, self.delta),
            )
        calibration = CentralCalibration.of(rounds, sensitivity, self.epsilon, self.delta)
        release = Release.of(self, calibration)
        noise = release.charge()
        point, step, choices = f.track(np.zeros(f.n_features)), Diminishing(), []
        for t in range(calibration.rounds):
            place, sign = choose_vertex(
                point.gradient(), calibration.sensitivity, calibration.choice_epsilon, noise
            )
            choices.append(Atom(place, sign * radius))
            point.toward(choices[-1], step(t))
            if watch is not None:
                watch(t + 1, point.x.copy())
        assert release.guarantee is not None
        return PrivateResult(
            x=point.x,
            choices=choices,
            guarantee=release.guarantee,
            report=release.report,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateDistributedFrankWolfe:
    """:class:`~dpsvm.frank_wolfe.DistributedFrankWolfe` with noise on all that a party sends.

    rounds, sketch : T and m; None and "auto" are what theory proposes from public numbers
        (:mod:`~dpsvm.frank_wolfe.theory`). A sketch of None sends whole columns, with noise on n
        numbers
    epsilon, delta : the whole run
    entry_bound : public bound on |a_ij|; larger entries are refused
    public_labels : True says that labels may be known: they are not protected, and the guarantee
        is for the relation "features"
    label_bound : in its place, a public bound on |y_i|: the sketch of the labels is then released
        with noise, once, and the guarantee is for the relation "replace"
    accountant : charged, for that relation, before the first message

    The guarantee covers the messages, and so the model, which is made of them and of labels that
    are public. Useful only where n times epsilon is large: compare with
    :class:`PrivateFrankWolfe`.

    >>> rng = np.random.default_rng(0)
    >>> A = rng.uniform(-1, 1, (2000, 4))
    >>> solver = PrivateDistributedFrankWolfe(
    ...     radius=0.5, rounds=5, sketch=50, epsilon=1e4, delta=1e-5, entry_bound=1.0,
    ...     public_labels=True,
    ... )
    >>> found = solver.solve([A[:, :2], A[:, 2:]], A[:, 0] / 2)
    >>> print(found.guarantee)
    epsilon = 10000, delta = 1e-05 (features)
    >>> found.traffic.up_integers
    10
    """

    radius: Any
    epsilon: float
    delta: float
    entry_bound: float
    rounds: int | None = None
    problem: str = "l1"
    sketch: int | str | None = "auto"
    sketch_seed: int = 0
    tau: int | None = None
    step: Any = "diminishing"
    cache: bool = True
    public_labels: bool = False
    label_bound: float | None = None
    accountant: BudgetAccountant | None = None
    random_state: Any = None

    def solve(self, blocks: Any, y: Any, watch: Watch | None = None) -> DistributedResult:
        """Run the parties and the coordinator in this process; ``watch`` cannot end it early."""
        tables, target = check_blocks(blocks, y)
        sizes = [int(table.shape[1]) for table in tables]
        label_size = float(np.linalg.norm(target)) / math.sqrt(len(target))
        agreed = Agreement.of(self, sizes, len(target), label_size)
        calibration = agreed.calibration
        assert calibration is not None
        for table in tables:
            check_entries(table, calibration.entry_bound, "entry_bound")
        calibration.check_labels(target)
        release = Release.of(self, calibration)
        noise = release.charge()
        found = run(agreed, tables, target, generator_of(noise), noise=noise, watch=watch)
        return replace(found, guarantee=release.guarantee, report=release.report)
