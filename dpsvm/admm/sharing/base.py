"""What the estimators of ADMM sharing have in common: terms, the run, and what is kept of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from dpsvm._renamed import SHARING, renamed
from dpsvm.admm.sharing.agreement import Agreement, check_settings
from dpsvm.admm.sharing.columns import Columns
from dpsvm.admm.sharing.coordinator import Coordinator
from dpsvm.admm.sharing.history import History, Recorder, assumptions, objective
from dpsvm.admm.sharing.messages import Ending
from dpsvm.admm.sharing.party import Party
from dpsvm.admm.sharing.regularisers import Ball, Box
from dpsvm.admm.sharing.run import run
from dpsvm.distributed.estimator import AgreedEstimator
from dpsvm.distributed.split import SplitColumns
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.release import Release
from dpsvm.warnings import warn_caller

Array = NDArray[np.float64]


class BaseSharingADMM(SplitColumns, AgreedEstimator):
    """What the classifier and the regressor share."""

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

    def _agree(
        self, X: Any, y: Any, parties: Sequence[Any] | None
    ) -> tuple[Agreement, Coordinator, list[Columns]]:
        check_settings(self)
        blocks = self._split(X, parties)
        agreed = Agreement.of(self, [block.shape[1] for block in blocks])
        target, classes = agreed.target(y)
        if classes is not None:
            self.classes_ = classes
        if len(target) != blocks[0].shape[0]:
            raise ValueError(f"X has {blocks[0].shape[0]} rows and y {len(target)}")
        return agreed, agreed.lead(target), agreed.columns(blocks)

    def _held_out(self, X: Any, y: Any, agreed: Agreement) -> tuple[list[Any], Array]:
        matrices = [own.matrix for own in agreed.columns(self._blocks(X))]
        target = agreed.known_target(y, getattr(self, "classes_", None))
        if len(target) != matrices[0].shape[0]:
            raise ValueError(
                f"evaluate_on has {matrices[0].shape[0]} rows and {len(target)} targets"
            )
        return matrices, target

    def _recorder(self, agreed: Agreement, test: Any, **kind: Any) -> Recorder:
        return Recorder(History(**kind), test)

    def _run(self, lead: Coordinator, members: Sequence[Party], watch: Any) -> Ending:
        return run(lead, members, lambda *seen: watch(lead.ending is not None, *seen))

    def _keep(
        self,
        agreed: Agreement,
        coordinator: Coordinator,
        members: Sequence[Party],
        ending: Ending,
        release: Release | None,
    ) -> None:
        self.n_parties_ = len(members)
        self.rho_, self.kappa_ = coordinator.rho, coordinator.terms.kappa
        self.n_iter_, self.stop_reason_ = ending.round, ending.reason
        guarantee = self.message_guarantee_ = None if release is None else release.guarantee
        self.message_epsilon_ = None if guarantee is None else guarantee.epsilon
        self.message_delta_ = None if guarantee is None else guarantee.delta
        self.dual_ = self.objective_ = self.assumptions_ = None
        if not self._private:  # no guarantee covers them, and the dual tells the labels
            self.dual_ = coordinator.dual
            self.objective_ = objective(coordinator.loss, coordinator.target, members)
        if self.diagnose:
            self.assumptions_ = assumptions(members, coordinator.loss, coordinator.rho)
        coef, intercept = np.zeros(self.n_features_in_), 0.0
        for places, party in zip(self._layout, members, strict=True):
            weights, own = party.weights_and_intercept
            intercept = own if party.columns.constant else intercept
            coef[places] = weights
        self.coef_, self.intercept_ = self._shaped(coef, intercept)
        if ending.reason == "diverged":
            self._warn_of_divergence(ending, agreed)

    @property
    def coefs_(self) -> list[Array]:
        """The weights of each party."""
        return [np.ravel(self.coef_)[places] for places in self._layout]

    def _decisions(self, X: Any) -> Array:
        return np.asarray(super()._decisions(X) + self.intercept_)

    def _warn_of_divergence(self, ending: Ending, agreed: Agreement) -> None:
        terms = agreed.terms
        if not terms.convex(agreed.loss):
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
