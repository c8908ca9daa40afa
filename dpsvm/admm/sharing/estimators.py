"""Linear models over vertically split columns, as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dpsvm._arrays import Array
from dpsvm._constructors import but_for, keeps_parameters
from dpsvm._renamed import SHARING
from dpsvm.admm.sharing.agreement import Agreement, check_settings
from dpsvm.admm.sharing.columns import Columns
from dpsvm.admm.sharing.coordinator import Coordinator, run
from dpsvm.admm.sharing.history import History, Recorder, assumptions, objective
from dpsvm.admm.sharing.party import Ending, Party
from dpsvm.admm.sharing.regularisers import Ball, Box
from dpsvm.distributed.estimator import AgreedEstimator, BinaryClassifier, LinearRegressor
from dpsvm.distributed.split import SplitColumns
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.release import Release
from dpsvm.warnings import warn_caller


class BaseSharingADMM(SplitColumns, AgreedEstimator):
    """What the classifier and the regressor share."""

    _gone = SHARING

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

    def _held_out(self, X: Any, y: Any, agreed: Agreement) -> tuple[list[Columns], Array]:
        columns = agreed.columns(self._blocks(X))
        target = agreed.known_target(y, getattr(self, "classes_", None))
        rows = columns[0].n_samples
        if len(target) != rows:
            raise ValueError(f"evaluate_on has {rows} rows and {len(target)} targets")
        return columns, target

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
        self.coef_ = coef if agreed.regression else coef[np.newaxis]
        self.intercept_ = intercept if agreed.regression else np.array([intercept])
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


class SharingADMMClassifier(BinaryClassifier, BaseSharingADMM):
    """A binary linear classifier over columns that several parties hold.

    Minimises C sum_i l(y_i z_i) + lam sum_m R(x_m), z = sum_m D_m x_m, by ADMM sharing (Boyd et al.
    2011, section 7.3; Hu, Liu, Kong and Niu 2019): each round, every party sends one number per
    sample. Nothing else leaves a party.

    Parameters
    ----------
    loss : {"logistic", "hinge", "huber", "smooth", "sigmoid", "squared"}, default="logistic"
        "huber" is the hinge with its corner rounded, "sigmoid" is not convex, "squared" regresses
        on +1, -1.
    width : float, default=0.5
        Of the rounded corner of "huber" and "smooth".
    penalty : {"l2", "l1", "geman-mcclure"}, default="l2"
        R: half the squared norm, the sum of absolute values, or half of x^2 / (1 + x^2), which is
        not convex.
    lam, C : float, default=1.0
        Of the penalty, and of the losses. scikit-learn's C is C / lam.
    method : {"sharing", "jacobi"}, default="sharing"
        "sharing" is kappa = M, the number of parties: it converges for every rho. "jacobi" is
        kappa = 1, the paper's iteration, which can diverge; it is then stopped and says so.
    rho : float or "auto", default="auto"
        The step. "auto" follows from the loss, C and M.
    kappa : float or None, default=None
        How many times rho a party resists a change of its contribution; None follows ``method``.
    relaxation : float or None, default=None
        Over-relaxation, between 0 and 2; only with kappa = M. None is 1.8 where it is allowed, and
        1, none, in a private mode.
    adaptive_rho : bool, default=False
        Whether rho is doubled or halved, in the first 50 rounds, when the residuals are more than
        5 times apart. Not in a private mode.
    constraint : Box, Ball or None, default=None
        Where each party's weights have to stay.
    rounds : int, default=20
        T, the most rounds; in a private mode the noise is calibrated for all of them.
    tol : float, default=0.0
        Stop when both relative residuals are at most this.
    intercept_party : int or None, default=None
        The party that adds a constant column; its weight is penalised like the others.
    privacy : {"row", "column", "paper"} or None, default=None
        What the messages hide: one row of one party replaced, or one column of one party. "paper"
        has noise of the paper's scale and no guarantee.
    epsilon, delta : float or None, default=None
        The budget of the run; with "paper" of one round, epsilon then at most 1. A private mode
        needs both.
    data_norm, radius, target_bound : float
        Public bounds of "row": on the norm of a row, of a party's weights, and of every entry of
        the target of a party's step, to which it is clipped.
    column_norm, target_norm : float
        Public bounds of "column": on the norm of a column and of the target.
    b1, c1 : float
        Of "paper": the constants of its Lemma 1.
    accountant : BudgetAccountant or None, default=None
        Charged before a private run begins: for "row", as if the record lay in all the parties.
    track : bool, default=True
        Whether ``history_`` is kept; it costs a product with every block a round.
    diagnose : bool, default=False
        Whether the assumptions of the paper's theorem are checked: an eigenvalue problem a party.
    random_state : None, int or Generator, default=None
        Of the noise; None draws it from the operating system, a seed is for experiments and warns.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second one is +1.
    coef_, intercept_ : ndarray of shape (1, n_features), ndarray of shape (1,)
        The weights in the order of X's columns. In a private mode, outside the guarantee.
    coefs_ : list of ndarray
        The weights of each party.
    history_ : History
        Objective, residuals, Lyapunov value, bytes up and down, test loss, of every round.
    n_iter_, stop_reason_ : int, str
        The rounds made, and why there were no more: "converged", "rounds", "diverged", or
        "stopped" by a callback.
    objective_, dual_ : float, ndarray of shape (n_samples,), or None
        The objective of the weights, and the coordinator's y; None in a private mode.
    rho_, kappa_, n_parties_ : float, float, int
        What the run ended with.
    assumptions_ : list of Assumption or None
        With ``diagnose``, which no private mode takes.
    message_epsilon_, message_delta_, message_guarantee_ : float, float, Guarantee, or None
        Of the messages of one party, all that a private mode covers; None without one.
    epsilon_, delta_, neighbouring_, privacy_guarantee_ : None
        No guarantee covers ``coef_``, whose last step reads the columns without noise.
    privacy_report_ : dict or None
        Guarantee, claimed, Corollary 1 and tight figures apart, and what is not protected.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsvm.admm import SharingADMMClassifier
    >>> X = np.array([[-1.0, 0.0, 0.5], [-0.5, -1.0, 0.0], [0.5, 1.0, 0.0], [1.0, 0.5, -0.5]])
    >>> model = SharingADMMClassifier(rounds=50).fit(X, ["no", "no", "yes", "yes"], parties=[2, 1])
    >>> model.predict(X)
    array(['no', 'no', 'yes', 'yes'], dtype='<U3')
    >>> int(model.history_["bytes_up"][0])  # two parties, four numbers each
    96
    """

    @keeps_parameters
    def __init__(
        self,
        loss: str = "logistic",
        *,
        width: float = 0.5,
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
    ) -> None: ...


class SharingADMMRegressor(LinearRegressor, BaseSharingADMM):
    """A linear regression over columns that several parties hold.

    Minimises C sum_i (z_i - y_i)^2 / 2 + lam sum_m R(x_m), z = sum_m D_m x_m, by ADMM sharing. The
    machinery, parameters and attributes are those of :class:`SharingADMMClassifier`, but for the
    loss, the classes, and ``coef_`` of shape (n_features,) with a float for ``intercept_``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsvm.admm import SharingADMMRegressor
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> model = SharingADMMRegressor(lam=1e-6, rounds=200)
    >>> model.fit([X[:, :1], X[:, 1:]], [1.0, 2.0, 3.0]).coef_.round(3)
    array([1., 2.])
    """

    __init__ = but_for(SharingADMMClassifier.__init__, "loss", "width")
