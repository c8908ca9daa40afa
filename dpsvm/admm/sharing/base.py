"""What the estimators of ADMM sharing have in common: terms, the run, and what is kept of it."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from dpsvm._renamed import SHARING, renamed
from dpsvm._sklearn import one_of, with_callbacks
from dpsvm.admm.sharing.columns import Columns
from dpsvm.admm.sharing.coordinator import Coordinator
from dpsvm.admm.sharing.history import History, Recorder, assumptions, objective
from dpsvm.admm.sharing.messages import Ending
from dpsvm.admm.sharing.party import Party
from dpsvm.admm.sharing.privacy import MODES, Calibration, PublicBounds, calibrate
from dpsvm.admm.sharing.regularisers import PENALTIES, Ball, Box
from dpsvm.admm.sharing.run import run
from dpsvm.admm.sharing.terms import METHODS, Terms, automatic_rho, check_positive
from dpsvm.distributed.callbacks import Rounds, Tick
from dpsvm.distributed.estimator import DistributedEstimator
from dpsvm.distributed.split import SplitColumns
from dpsvm.losses import PredictionLoss
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import Release, tell
from dpsvm.warnings import warn_caller

Array = NDArray[np.float64]

_RELAXATION = 1.8
_BOUNDS = ("data_norm", "radius", "target_bound", "column_norm", "target_norm", "b1", "c1")
_PRIVATE = ("epsilon", "delta", *_BOUNDS, "accountant")


class BaseSharingADMM(SplitColumns, DistributedEstimator):
    """What the classifier and the regressor share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [one_of(*PENALTIES)],
        "method": [one_of(*METHODS)],
        "adaptive_rho": ["boolean"],
        "constraint": [Box, Ball, None],
        "rounds": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "intercept_party": [Interval(Integral, 0, None, closed="left"), None],
        "privacy": [one_of(*MODES), None],
        "accountant": [BudgetAccountant, None],
        "track": ["boolean"],
        "diagnose": ["boolean"],
    }

    @renamed(SHARING)
    def __init__(
        self,
        *,
        penalty: str = "l2",
        lam: float = 1.0,
        C: float = 1.0,
        method: str = "sharing",
        rho: float | str = "auto",
        kappa: float | None = None,
        relaxation: float | None = None,
        adaptive_rho: bool = False,
        constraint: Box | Ball | None = None,
        rounds: int = 20,
        tol: float = 0.0,
        intercept_party: int | None = None,
        privacy: str | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        data_norm: float | None = None,
        radius: float | None = None,
        target_bound: float | None = None,
        column_norm: float | None = None,
        target_norm: float | None = None,
        b1: float | None = None,
        c1: float | None = None,
        accountant: BudgetAccountant | None = None,
        track: bool = True,
        diagnose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.penalty = penalty
        self.lam = lam
        self.C = C
        self.method = method
        self.rho = rho
        self.kappa = kappa
        self.relaxation = relaxation
        self.adaptive_rho = adaptive_rho
        self.constraint = constraint
        self.rounds = rounds
        self.tol = tol
        self.intercept_party = intercept_party
        self.privacy = privacy
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.radius = radius
        self.target_bound = target_bound
        self.column_norm = column_norm
        self.target_norm = target_norm
        self.b1 = b1
        self.c1 = c1
        self.accountant = accountant
        self.track = track
        self.diagnose = diagnose
        self.random_state = random_state

    def _loss(self) -> PredictionLoss:
        raise NotImplementedError

    def _target(self, y: Any) -> Array:
        raise NotImplementedError

    def _known_target(self, y: Any) -> Array:
        raise NotImplementedError

    def _shaped(self, coef: Array, intercept: float) -> tuple[Any, Any]:
        """Both in the shapes that scikit-learn gives them."""
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any,
        parties: Sequence[Any] | None = None,
        *,
        evaluate_on: tuple[Any, Any] | None = None,
        measured: bool = False,
    ) -> Self:
        """Run the parties and the coordinator in this process.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), or a list of tables, one for each party
            Dense or sparse. Rows of the tables belong to the same samples.
        y : array-like of shape (n_samples,)
            Labels or numbers, held by the coordinator.
        parties : sequence, optional
            How one table is split: the numbers of columns of the parties, or the columns of each.
            Without it one party holds all of them.
        evaluate_on : (X, y), optional
            Data whose mean loss is noted in every round.
        measured : bool, default=False
            Whether a private fit also notes in ``history_`` what no guarantee covers.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit(X, y, parties, evaluate_on, measured=measured)
        return self

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit(
        self,
        X: Any,
        y: Any,
        parties: Sequence[Any] | None,
        evaluate_on: tuple[Any, Any] | None,
        tick: Tick | None = None,
        *,
        measured: bool = False,
    ) -> None:
        """Fit, and call ``tick`` after every round. What can be refused is, before a charge."""
        self._forget()
        self._validate_params()
        columns, target = self._data(X, y, parties)
        loss = self._loss()
        terms = self._terms(loss, len(columns))
        evaluation = self._evaluation(evaluate_on)
        sizes = [own.n_features for own in columns]
        calibration = self._calibration(terms, sizes)
        release = None if calibration is None else Release.of(self, calibration, self.privacy or "")
        noise = Noise(self.random_state) if release is None else release.noise
        members = [
            Party(m, own, terms, calibration.perturbation(m, noise) if calibration else None)
            for m, own in enumerate(columns)
        ]
        coordinator = Coordinator(
            target,
            loss,
            terms,
            rounds=int(self.rounds),
            tol=float(self.tol),
            adaptive=bool(self.adaptive_rho),
        )
        history = History(private=self._private, measured=measured or not self._private)
        recorder = Recorder(history, evaluation) if self.track else None
        tasks = Rounds(self, int(self.rounds), {"X": X, "y": y}, tick)
        if release is not None:
            release.charge()
        ending = self._run(coordinator, members, recorder, tasks)
        self._keep(coordinator, members, history, ending)
        tell(self, release)
        guarantee = self.message_guarantee_ = None if release is None else release.guarantee
        self.message_epsilon_ = None if guarantee is None else guarantee.epsilon
        self.message_delta_ = None if guarantee is None else guarantee.delta
        tasks.close()
        if ending.reason == "diverged":
            self._warn_of_divergence(ending, terms, loss)

    def _data(self, X: Any, y: Any, parties: Sequence[Any] | None) -> tuple[list[Columns], Array]:
        """The columns of every party, and the target."""
        blocks = self._split(X, parties)
        target = self._target(y)
        if len(target) != blocks[0].shape[0]:
            raise ValueError(f"X has {blocks[0].shape[0]} rows and y {len(target)}")
        chosen = self.intercept_party
        if chosen is not None and chosen >= len(blocks):
            raise ValueError(
                f"intercept_party must be below {len(blocks)}, the number of parties, got "
                f"{chosen!r}"
            )
        return self._with_constant(blocks), target

    def _with_constant(self, blocks: Sequence[Any]) -> list[Columns]:
        return [
            Columns(block, constant=party == self.intercept_party)
            for party, block in enumerate(blocks)
        ]

    def _terms(self, loss: PredictionLoss, parties: int) -> Terms:
        C = check_positive(self.C, "C")
        jacobi = self.method == "jacobi"
        kappa = None if self.kappa is None else check_positive(self.kappa, "kappa")
        if jacobi and kappa not in (None, 1.0):
            raise ValueError(f"method='jacobi' is kappa = 1, got kappa = {self.kappa!r}")
        kappa = 1.0 if jacobi else kappa
        relaxation = self.relaxation
        if relaxation is None:
            standard = kappa is None or kappa == parties
            relaxation = _RELAXATION if standard and not jacobi and self.privacy is None else 1.0
        constraint = self.constraint
        if self.privacy == "row" and constraint is None and self.radius is not None:
            constraint = Ball(check_positive(self.radius, "radius"))
        if isinstance(self.rho, str) and self.rho != "auto":
            raise ValueError(f"rho must be 'auto' or a finite number above 0, got {self.rho!r}")
        rho = automatic_rho(loss, C, parties) if isinstance(self.rho, str) else self.rho
        return Terms.of(
            parties=parties,
            C=C,
            lam=self.lam,
            rho=rho,
            kappa=kappa,
            relaxation=relaxation,
            penalty=self.penalty,
            constraint=constraint,
        )

    def _calibration(self, terms: Terms, sizes: list[int]) -> Calibration | None:
        """The noise of a private mode; without one, nothing that goes with it may be given."""
        mode = self.privacy
        if mode is None:
            for name in _PRIVATE:
                if (value := getattr(self, name)) is not None:
                    raise ValueError(
                        f"{name} goes with a private mode, got {name}={value!r} and privacy=None"
                    )
            return None
        if self.diagnose:
            raise ValueError("diagnose reads the columns without noise: fit without privacy for it")
        if self.adaptive_rho:
            raise ValueError("a private mode needs a fixed rho, got adaptive_rho=True")
        if self.epsilon is None or self.delta is None:
            missing = "an epsilon" if self.epsilon is None else "a delta"
            raise ValueError(f"privacy={mode!r} needs {missing}, got None")
        bounds = PublicBounds(**{name: getattr(self, name) for name in _BOUNDS})
        return calibrate(mode, terms, sizes, int(self.rounds), self.epsilon, self.delta, bounds)

    def _run(
        self,
        coordinator: Coordinator,
        members: Sequence[Party],
        recorder: Recorder | None,
        tasks: Rounds,
    ) -> Ending:
        """The run. A callback may end it, unless it is private: what it goes by may be, too."""

        def watch(coordinator: Coordinator, members: Sequence[Party]) -> bool:
            if recorder is not None:
                recorder(coordinator, members)
            stop = tasks.end() and self.privacy is None
            if coordinator.ending is None and not stop:
                tasks.begin()
            return stop

        tasks.begin()
        return run(coordinator, members, watch)

    def _columns(self, X: Any) -> list[Columns]:
        """Samples in the blocks of the fit, with the constant column where one was asked for."""
        return self._with_constant(self._blocks(X))

    def _evaluation(self, data: tuple[Any, Any] | None) -> tuple[list[Any], Array] | None:
        pair = self._evaluated(data)
        if pair is None:
            return None
        matrices = [own.matrix for own in self._columns(pair[0])]
        target = self._known_target(pair[1])
        if len(target) != matrices[0].shape[0]:
            raise ValueError(
                f"evaluate_on has {matrices[0].shape[0]} rows and {len(target)} targets"
            )
        return matrices, target

    def _keep(
        self,
        coordinator: Coordinator,
        members: Sequence[Party],
        history: History,
        ending: Ending,
    ) -> None:
        self.n_parties_ = len(members)
        self.rho_, self.kappa_ = coordinator.rho, coordinator.terms.kappa
        self.n_iter_, self.stop_reason_ = ending.round, ending.reason
        self.history_ = history
        self.dual_ = self.objective_ = self.assumptions_ = None
        if not self._private:  # no guarantee covers them, and the dual tells the labels
            self.dual_ = coordinator.dual
            self.objective_ = objective(coordinator.loss, coordinator.target, members)
        if self.diagnose:
            self.assumptions_ = assumptions(members, coordinator.loss, coordinator.rho)
        coef, intercept = np.zeros(self.n_features_in_), 0.0
        for places, party in zip(self._layout, members, strict=True):
            weights = party.weights
            if party.columns.constant:
                weights, intercept = weights[:-1], float(weights[-1])
            coef[places] = weights
        self.coef_, self.intercept_ = self._shaped(coef, intercept)

    @property
    def coefs_(self) -> list[Array]:
        """The weights of each party."""
        return [np.ravel(self.coef_)[places] for places in self._layout]

    def _decisions(self, X: Any) -> Array:
        check_is_fitted(self)
        blocks = self._blocks(X)
        parts = [np.asarray(X @ w) for X, w in zip(blocks, self.coefs_, strict=True)]
        return np.asarray(np.add.reduce(parts, axis=0) + self.intercept_)

    def _warn_of_divergence(self, ending: Ending, terms: Terms, loss: PredictionLoss) -> None:
        if not terms.convex(loss):
            advice = "a larger rho, or a convex loss and penalty, converges"
        elif terms.kappa < terms.parties:
            advice = (
                f"kappa = {terms.kappa:g} is below the number of parties, {terms.parties}: "
                "method='sharing' converges for every rho"
            )
        else:
            advice = "the numbers overflowed: scale the columns"
        warn_caller(
            f"the run diverged and was stopped at round {ending.round}; the weights are those of "
            f"the round whose messages had the least loss; {advice}",
            ConvergenceWarning,
        )
