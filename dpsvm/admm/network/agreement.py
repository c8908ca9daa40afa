"""What the nodes of a network agree on (:mod:`dpsvm.distributed.agreement`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm._arrays import Array
from dpsvm.admm.network.graph import make_graph
from dpsvm.admm.network.node import Node
from dpsvm.admm.network.penalties import FORMS
from dpsvm.admm.network.privacy import BOUNDS, MODES, Calibration, calibrate
from dpsvm.admm.network.run import Relay
from dpsvm.admm.network.shares import Samples
from dpsvm.admm.network.terms import Terms
from dpsvm.constraints import Boolean, Instance, Interval, Names, Nothing, Table
from dpsvm.constraints import check_settings as check_table
from dpsvm.distributed import agreement as distributed
from dpsvm.distributed.agreement import check_goes_with
from dpsvm.distributed.labels import signs_of
from dpsvm.names import LOSSES
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.preparation import Preparation, clip_rows

_GROWN = 100.0  # times over: penalties that leave the mean hardly any way to go
_GAMMA = 0.5
_WIDTH = 0.5
_FROM_0 = Interval(Integral, 0, None, closed="left")
_SCALE = Interval(Real, 1e-100, 1e100, closed="both")

CONSTRAINTS: Table = {
    "recycle": [Boolean()],
    "penalty": [Names(FORMS)],
    "gamma": [Interval(Real, 0, None, closed="left"), Nothing()],
    "loss": [Names(LOSSES)],
    "width": [Interval(Real, 0, None, closed="neither"), Nothing()],
    "C": [_SCALE],
    "lam": [_SCALE],
    "rounds": [Interval(Integral, 1, None, closed="left")],
    "n_nodes": [Interval(Integral, 2, None, closed="left"), Nothing()],
    "graph_seed": [_FROM_0, Nothing()],
    "density": [Interval(Real, 0, 1, closed="both"), Nothing()],
    "start_seed": [_FROM_0, Nothing()],
    "data_norm": [Interval(Real, 1e-150, 1e150, closed="both"), Nothing()],
    "constant": [Interval(Real, 0, 1e100, closed="both")],
    "privacy": [Names(MODES), Nothing()],
    "bound": [Names(BOUNDS), Nothing()],
    "accountant": [Instance(BudgetAccountant), Nothing()],
    "tol": [Interval(Real, 1e-15, 1, closed="both")],
    "track": [Boolean()],
}
"""What the settings may be; those that are left out are checked where they are used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Agreement(distributed.Agreement):
    """The terms of a run, its noise and its price.

    >>> from dpsvm.admm import NetworkADMM
    >>> agreed = Agreement.of(NetworkADMM("path", rounds=9), sizes=[30, 20])
    >>> agreed.rounds, agreed.price, agreed.terms.updates
    (9, None, 5)
    >>> private = NetworkADMM(classes=[0, 1], privacy="objective", epsilon=9.0, data_norm=1.0)
    >>> print(Agreement.of(private, sizes=[30, 20]).price.guarantee)
    epsilon = 9 (replace)
    """

    terms: Terms
    tol: float
    start_seed: int | None
    preparation: Preparation | None  # of rows; None takes them as they are
    calibration: Calibration | None
    rounds: int  # of both kinds

    @classmethod
    def of(cls, settings: Any, sizes: Sequence[int]) -> Agreement:
        """The agreement of settings, those of a NetworkADMM, for nodes with so many samples."""
        check_settings(settings)
        terms = _terms(settings, sizes)
        calibration = None
        if settings.privacy is not None:
            calibration = calibrate(
                settings.privacy,
                terms,
                sizes,
                tol=float(settings.tol),
                epsilon=settings.epsilon,
                delta=settings.delta,
                alpha=settings.alpha,
                bound=settings.bound or "tight",
            )
        preparation = None
        if settings.data_norm is not None:
            preparation = Preparation(float(settings.data_norm), float(settings.constant))
        return cls(
            terms=terms,
            tol=float(settings.tol),
            start_seed=settings.start_seed,
            preparation=preparation,
            calibration=calibration,
            rounds=terms.rounds,
        )

    @property
    def remarks(self) -> list[str]:
        """What a reader of the settings should be told."""
        elsewhere, grown = self.terms.penalties.wrong_limit(), self.terms.penalties.grown
        found = [] if elsewhere is None else [elsewhere]
        if grown > _GROWN:
            found.append(
                f"the penalties grow {grown:.3g} times over in this run: the nodes come to agree "
                "before they reach the minimiser. A smaller growth, or fewer rounds, ends closer "
                "to it"
            )
        return found

    def check_sizes(self, place: int, n_features: int) -> None:
        """Refuse public numbers that the noise of a node is not made for."""
        if self.calibration is not None:
            self.calibration.check_floor(place, self._dimension(n_features))

    def clipped(self, rows: Any) -> Any:
        """Rows that the noise is made for; a preparation shortens them by itself."""
        if self.calibration is None or self.preparation is not None:
            return rows
        return clip_rows(rows, 1.0)

    def starts(self, n_features: int) -> Array:
        """Where the nodes start, which is public: a row for each."""
        return self._starts(self._dimension(n_features))

    def _starts(self, dimension: int) -> Array:
        shape = self.terms.graph.n_nodes, dimension
        if self.start_seed is None:
            return np.zeros(shape)
        drawn = np.random.default_rng(self.start_seed).standard_normal(shape)
        return np.asarray(drawn / np.sqrt(dimension))

    def _dimension(self, n_features: int) -> int:
        return n_features if self.preparation is None else self.preparation.dimension(n_features)

    def samples(self, rows: Any, labels: NDArray[Any], classes: NDArray[Any]) -> Samples:
        """What a node holds, as its steps see it."""
        prepared = rows if self.preparation is None else self.preparation(rows)
        return Samples(prepared, signs_of(labels, classes))

    def member(self, place: int, samples: Samples, noise: Noise) -> Node:
        """A node."""
        d = int(samples.rows.shape[1])
        made_for = self.calibration
        perturbation = None if made_for is None else made_for.noise_of(place, d, noise)
        start = self._starts(d)[place]
        return Node(
            place, samples, self.terms, tol=self.tol, start=start, perturbation=perturbation
        )

    def lead(self) -> Relay:
        """The relay, where nodes do not talk to each other."""
        return Relay(self.terms, None if self.calibration is None else self.calibration.spent)

    def in_given_units(self, weights: Array) -> tuple[Array, Array]:
        """Coefficients of the features as given, and intercepts, from weights of prepared rows."""
        if self.preparation is None:
            return weights, np.zeros(len(weights))
        return self.preparation.unprepare(weights)

    def in_prepared_units(self, coef: Array, intercept: float) -> Array:
        """The weights of prepared rows, from coefficients of the features as given."""
        made = self.preparation
        if made is None:
            return coef
        weights = coef * made.scale
        if made.constant == 0.0:
            return weights
        constant = made.constant * made.data_norm / made.scale  # what the rows were given
        return np.append(weights, intercept / constant)


def check_settings(settings: Any) -> None:
    """Refuse what is wrong, and what would have no effect, by name and value."""
    check_table(settings, CONSTRAINTS)
    private = settings.privacy is not None
    random = isinstance(settings.graph, str) and settings.graph == "random"
    rounded = settings.loss in ("huber", "smooth")
    rows = (
        (["gamma"], settings.recycle, "recycle=True"),
        (["width"], rounded, "loss='huber' or 'smooth'"),
        (["graph_seed", "density"], random, "graph='random'"),
        (["epsilon", "accountant"], private, "a private mode"),
        (["delta"], settings.privacy == "gaussian", "privacy='gaussian'"),
        (["alpha", "bound"], settings.privacy == "objective", "privacy='objective'"),
    )
    check_goes_with(settings, rows)
    if settings.constant > 0 and settings.data_norm is None:
        raise ValueError(f"constant goes with data_norm, got {settings.constant!r} without it")
    if private:
        _check_private(settings)


def _check_private(settings: Any) -> None:
    mode = settings.privacy
    if settings.loss == "hinge":
        raise ValueError(
            "loss='hinge' has no bound on its curvature, which every private mode needs: take "
            "'huber', 'smooth' or 'logistic'"
        )
    if settings.alpha is None and settings.epsilon is None:
        raise ValueError(f"privacy={mode!r} needs an epsilon, got None")
    if settings.alpha is not None and (settings.epsilon is not None or settings.bound is not None):
        raise ValueError(
            "alpha sets the noise and epsilon follows: give it without epsilon and bound"
        )
    if mode == "gaussian" and settings.delta is None:
        raise ValueError("privacy='gaussian' needs a delta, got None")
    if settings.classes is None:
        raise ValueError(
            "classes must be given with a private mode: the set of labels is a public input, "
            "since finding it in the data would reveal a rare one"
        )


def _terms(settings: Any, sizes: Sequence[int]) -> Terms:
    graph = make_graph(
        settings.graph,
        len(sizes),
        seed=settings.graph_seed or 0,
        density=settings.density,
    )
    for node, size in enumerate(sizes):
        if size < settings.C:
            raise ValueError(
                f"C must be at most the number of samples of every node, got {settings.C!r} for "
                f"the {size} of node {node}"
            )
    gamma = _GAMMA if settings.gamma is None else float(settings.gamma)
    return Terms.of(
        graph,
        rho=settings.rho,
        growth=settings.growth,
        form=settings.penalty,
        loss=settings.loss,
        width=_WIDTH if settings.width is None else float(settings.width),
        C=float(settings.C),
        lam=float(settings.lam),
        gamma=gamma if settings.recycle else None,
        rounds=int(settings.rounds),
    )
