"""Linear models over vertically split columns, as scikit-learn estimators."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from dpsvm.admm.sharing.blocks import Layout, like, split
from dpsvm.admm.sharing.columns import Columns
from dpsvm.admm.sharing.coordinator import Coordinator
from dpsvm.admm.sharing.history import History, Recorder, assumptions, objective
from dpsvm.admm.sharing.messages import Ending
from dpsvm.admm.sharing.party import Party
from dpsvm.admm.sharing.privacy import MODES, Calibration, PublicBounds, calibrate
from dpsvm.admm.sharing.regularisers import PENALTIES, Ball, Box
from dpsvm.admm.sharing.run import run
from dpsvm.admm.sharing.terms import METHODS, Terms, automatic_rho, check_positive
from dpsvm.losses import PREDICTION_LOSSES, PredictionLoss, Squared, make_prediction_loss
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.selection import warn_of_seed
from dpsvm.warnings import PrivacyLeakWarning

Array = NDArray[np.float64]

_RELAXATION = 1.8


class BaseSharingADMM(BaseEstimator):  # type: ignore[misc]
    """What the classifier and the regressor share: terms, the run, and what is kept of it."""

    penalty: str
    lam: float
    weight: float
    method: str
    rho: float | str
    kappa: float | None
    relaxation: float | None
    adaptive_rho: bool
    constraint: Box | Ball | None
    rounds: int
    tol: float
    intercept_party: int | None
    privacy: str | None
    epsilon: float
    delta: float | None
    row_norm: float | None
    radius: float | None
    target_bound: float | None
    column_norm: float | None
    target_norm: float | None
    b1: float | None
    c1: float | None
    accountant: BudgetAccountant | None
    track: bool
    diagnose: bool
    random_state: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions(set(PENALTIES))],
        "method": [StrOptions(set(METHODS))],
        "adaptive_rho": ["boolean"],
        "constraint": [Box, Ball, None],
        "rounds": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "intercept_party": [Interval(Integral, 0, None, closed="left"), None],
        "privacy": [StrOptions(set(MODES)), None],
        "accountant": [BudgetAccountant, None],
        "track": ["boolean"],
        "diagnose": ["boolean"],
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def _loss(self) -> PredictionLoss:
        raise NotImplementedError

    def _target(self, y: Any) -> Array:
        raise NotImplementedError

    def _known_target(self, y: Any) -> Array:
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any,
        parties: Sequence[Any] | None = None,
        *,
        evaluate_on: tuple[Any, Any] | None = None,
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

        Returns
        -------
        self : object
            The fitted estimator.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a fit that fails leaves no fitted model
        self._validate_params()
        blocks, layout = split(X, parties)
        target = self._target(y)
        if len(target) != blocks[0].shape[0]:
            raise ValueError(f"X has {blocks[0].shape[0]} rows and y {len(target)}")
        loss = self._loss()
        terms = self._terms(loss, len(blocks))
        columns = [
            Columns(block, constant=party == self.intercept_party)
            for party, block in enumerate(blocks)
        ]
        self._layout = layout
        evaluation = self._evaluation(evaluate_on)  # what can be refused is refused before a charge
        calibration, noise = self._calibrated(terms, columns)
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
        history = History(private=self.privacy is not None)
        recorder = Recorder(history, evaluation)
        ending = run(coordinator, members, recorder if self.track else None)
        self._keep(coordinator, members, history, ending)
        self._keep_privacy(calibration, seeded=noise.seeded)
        if ending.reason == "diverged":
            _warn_of_divergence(ending, terms)
        return self

    def _terms(self, loss: PredictionLoss, parties: int) -> Terms:
        weight = check_positive(self.weight, "weight")
        jacobi = self.method == "jacobi"
        if jacobi and self.kappa not in (None, 1):
            raise ValueError(f"method='jacobi' is kappa = 1, got kappa = {self.kappa!r}")
        kappa = 1.0 if jacobi else self.kappa
        standard = kappa is None or kappa == parties
        relaxation = self.relaxation
        if relaxation is None:
            relaxation = _RELAXATION if standard and not jacobi and self.privacy is None else 1.0
        constraint = self.constraint
        if self.privacy == "row" and constraint is None and self.radius is not None:
            constraint = Ball(check_positive(self.radius, "radius"))
        if isinstance(self.rho, str) and self.rho != "auto":
            raise ValueError(f"rho must be 'auto' or a finite number above 0, got {self.rho!r}")
        rho = automatic_rho(loss, weight, parties) if isinstance(self.rho, str) else self.rho
        if self.intercept_party is not None and self.intercept_party >= parties:
            raise ValueError(
                f"intercept_party must be below {parties}, the number of parties, got "
                f"{self.intercept_party!r}"
            )
        return Terms.of(
            parties=parties,
            weight=weight,
            lam=self.lam,
            rho=rho,
            kappa=kappa,
            relaxation=relaxation,
            penalty=self.penalty,
            constraint=constraint,
        )

    def _calibrated(
        self, terms: Terms, columns: Sequence[Columns]
    ) -> tuple[Calibration | None, Noise]:
        """The noise of a private mode, charged before anything is released."""
        noise = Noise(self.random_state)
        if self.privacy is None:
            if self.accountant is not None:
                raise ValueError("an accountant goes with a private mode, got privacy=None")
            return None, noise
        if self.adaptive_rho:
            raise ValueError("a private mode needs a fixed rho, got adaptive_rho=True")
        if self.delta is None:
            raise ValueError(f"privacy={self.privacy!r} needs a delta, got None")
        names = ("row_norm", "radius", "target_bound", "column_norm", "target_norm", "b1", "c1")
        bounds = PublicBounds(**{name: getattr(self, name) for name in names})
        sizes = [own.n_features for own in columns]
        calibration = calibrate(
            self.privacy, terms, sizes, int(self.rounds), self.epsilon, self.delta, bounds
        )
        for party, own in enumerate(columns):
            calibration.check(own, party)
        if noise.seeded:
            warn_of_seed(stacklevel=3)
        guarantee = calibration.guarantee
        if guarantee is None:
            if self.accountant is not None:
                raise ValueError("privacy='paper' cannot charge an accountant: it has no guarantee")
            warnings.warn(
                "privacy='paper' gives no privacy guarantee: what the paper claims is reported as "
                "claimed",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        elif self.accountant is not None:
            self.accountant.spend(
                calibration.event,
                label=f"{type(self).__name__} {self.privacy}",
                neighbouring=guarantee.neighbouring,
            )
        return calibration, noise

    def _columns(self, X: Any) -> list[Columns]:
        """Samples in the blocks of the fit, with the constant column where one was asked for."""
        blocks = like(X, self._layout, type(self).__name__)
        return [
            Columns(block, constant=party == self.intercept_party)
            for party, block in enumerate(blocks)
        ]

    def _evaluation(self, data: tuple[Any, Any] | None) -> tuple[list[Any], Array] | None:
        if data is None:
            return None
        matrices = [own.matrix for own in self._columns(data[0])]
        target = self._known_target(data[1])
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
        self.n_features_in_ = sum(len(places) for places in self._layout)
        self.rho_, self.kappa_ = coordinator.rho, coordinator.terms.kappa
        self.n_iter_, self.ending_ = ending.round, ending.reason
        self.history_ = history
        self.dual_ = coordinator.dual
        self.objective_ = objective(coordinator.loss, coordinator.target, members)
        self.assumptions_ = None
        if self.diagnose:
            self.assumptions_ = assumptions(members, coordinator.loss, coordinator.rho)
        coef, intercept = np.zeros(self.n_features_in_), 0.0
        self.coefs_ = []
        for places, party in zip(self._layout, members, strict=True):
            weights = party.weights
            if party.columns.constant:
                weights, intercept = weights[:-1], float(weights[-1])
            coef[places] = weights
            self.coefs_.append(weights)
        self.coef_, self.intercept_ = coef, intercept

    def _keep_privacy(self, calibration: Calibration | None, *, seeded: bool) -> None:
        guarantee = None if calibration is None else calibration.guarantee
        self.privacy_guarantee_ = guarantee
        self.epsilon_ = None if guarantee is None else guarantee.epsilon
        self.delta_ = None if guarantee is None else guarantee.delta
        self.neighbouring_ = None if guarantee is None else guarantee.neighbouring
        self.privacy_report_ = None if calibration is None else calibration.report(seeded=seeded)

    def _decisions(self, X: Any) -> Array:
        check_is_fitted(self)
        layout: Layout = self._layout
        blocks = like(X, layout, type(self).__name__)
        parts = [np.asarray(X @ w) for X, w in zip(blocks, self.coefs_, strict=True)]
        return np.asarray(np.add.reduce(parts, axis=0) + self.intercept_)


class SharingADMMClassifier(ClassifierMixin, BaseSharingADMM):  # type: ignore[misc]
    """A binary linear classifier over columns that several parties hold.

    Minimises w sum_i l(y_i z_i) + lam sum_m R(x_m), z = sum_m D_m x_m, by ADMM sharing (Boyd et al.
    2011, section 7.3; Hu, Liu, Kong and Niu 2019): each round, every party sends one number per
    sample. Nothing else leaves a party.

    Parameters
    ----------
    loss : {"logistic", "hinge", "smooth-hinge", "smooth", "sigmoid", "squared"}, default="logistic"
        "smooth-hinge" is the Huber hinge, "sigmoid" is not convex, "squared" regresses on +1, -1.
    width : float, default=0.5
        Of the rounded corner of "smooth-hinge" and "smooth".
    penalty : {"l2", "l1", "geman-mcclure"}, default="l2"
        R: half the squared norm, the sum of absolute values, or half of x^2 / (1 + x^2), which is
        not convex.
    lam, weight : float, default=1.0
        Of the penalty, and w of the losses. scikit-learn's C is weight / lam.
    method : {"sharing", "jacobi"}, default="sharing"
        "sharing" is kappa = M, the number of parties: it converges for every rho. "jacobi" is
        kappa = 1, the paper's iteration, which can diverge; it is then stopped and says so.
    rho : float or "auto", default="auto"
        The step. "auto" follows from the loss, w and M.
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
    epsilon, delta : float
        The budget of the run; with "paper" of one round, epsilon then at most 1.
    row_norm, radius, target_bound : float
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
    coef_, intercept_ : ndarray of shape (n_features,), float
        The weights in the order of X's columns. In a private mode, outside the guarantee.
    coefs_ : list of ndarray
        The weights of each party.
    history_ : History
        Objective, residuals, Lyapunov value, bytes up and down, test loss, of every round.
    n_iter_, ending_ : int, str
        The rounds made, and why there were no more: "converged", "rounds" or "diverged".
    objective_, dual_ : float, ndarray of shape (n_samples,)
        The objective of the weights, and the coordinator's y.
    rho_, kappa_, n_parties_ : float, float, int
        What the run ended with.
    assumptions_ : list of Assumption or None
        With ``diagnose``.
    epsilon_, delta_, neighbouring_, privacy_guarantee_ : float, float, str, Guarantee, or None
        The guarantee of the messages of one party; None without one.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSharingADMM._parameter_constraints,
        "loss": [StrOptions(set(PREDICTION_LOSSES))],
        "width": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        loss: str = "logistic",
        *,
        width: float = 0.5,
        penalty: str = "l2",
        lam: float = 1.0,
        weight: float = 1.0,
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
        epsilon: float = 1.0,
        delta: float | None = None,
        row_norm: float | None = None,
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
        self.loss = loss
        self.width = width
        self.penalty = penalty
        self.lam = lam
        self.weight = weight
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
        self.row_norm = row_norm
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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _loss(self) -> PredictionLoss:
        return make_prediction_loss(self.loss, float(self.width))

    def _target(self, y: Any) -> Array:
        labels = column_or_1d(y, warn=True)
        kind = type_of_target(labels, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"Unknown label type: {kind}. Two classes are needed")
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            raise ValueError(
                f"Only binary classification is supported: y must hold two classes, got "
                f"{len(self.classes_)} class{'es' if len(self.classes_) > 1 else ''}"
            )
        return np.where(labels == self.classes_[1], 1.0, -1.0)

    def _known_target(self, y: Any) -> Array:
        labels = column_or_1d(y)
        unknown = labels[~np.isin(labels, self.classes_)]
        if len(unknown):
            raise ValueError(
                f"evaluate_on holds the label {unknown.tolist()[0]!r}, which is not in "
                f"{self.classes_.tolist()!r}"
            )
        return np.where(labels == self.classes_[1], 1.0, -1.0)

    def decision_function(self, X: Any) -> Array:
        """Return the sum of the parties' predictions, positive for ``classes_[1]``.

        Parameters
        ----------
        X : table, or list of tables, as in ``fit``
            The samples.

        Returns
        -------
        decisions : ndarray of shape (n_samples,)
            One number per sample.
        """
        return self._decisions(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each sample.

        Parameters
        ----------
        X : table, or list of tables, as in ``fit``
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            From ``classes_``.
        """
        decisions = self.decision_function(X)
        return np.asarray(self.classes_[(decisions > 0).astype(np.intp)])

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of both classes, for the logistic loss alone.

        Parameters
        ----------
        X : table, or list of tables, as in ``fit``
            The samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            In the order of ``classes_``.
        """
        if self.loss != "logistic":
            raise ValueError(f"probabilities need loss='logistic', got {self.loss!r}")
        decisions = self.decision_function(X)
        return np.column_stack([expit(-decisions), expit(decisions)])


class SharingADMMRegressor(RegressorMixin, BaseSharingADMM):  # type: ignore[misc]
    """A linear regression over columns that several parties hold.

    Minimises w sum_i (z_i - y_i)^2 / 2 + lam sum_m R(x_m), z = sum_m D_m x_m, by ADMM sharing. The
    machinery, parameters and attributes are those of :class:`SharingADMMClassifier`, but for the
    loss and the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsvm.admm import SharingADMMRegressor
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> model = SharingADMMRegressor(lam=1e-6, rounds=200)
    >>> model.fit([X[:, :1], X[:, 1:]], [1.0, 2.0, 3.0]).coef_.round(3)
    array([1., 2.])
    """

    def __init__(
        self,
        *,
        penalty: str = "l2",
        lam: float = 1.0,
        weight: float = 1.0,
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
        epsilon: float = 1.0,
        delta: float | None = None,
        row_norm: float | None = None,
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
        self.weight = weight
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
        self.row_norm = row_norm
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
        return Squared()

    def _target(self, y: Any) -> Array:
        numbers = np.asarray(column_or_1d(y, warn=True), dtype=np.float64)
        if not np.all(np.isfinite(numbers)):
            raise ValueError("y must hold finite numbers: it has NaN or infinity")
        return numbers

    def _known_target(self, y: Any) -> Array:
        return self._target(y)

    def predict(self, X: Any) -> Array:
        """Return the sum of the parties' predictions.

        Parameters
        ----------
        X : table, or list of tables, as in ``fit``
            The samples.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            One number per sample.
        """
        return self._decisions(X)


def _warn_of_divergence(ending: Ending, terms: Terms) -> None:
    advice = (
        f"kappa = {terms.kappa:g} is below the number of parties, {terms.parties}: "
        "method='sharing' converges for every rho"
        if terms.kappa < terms.parties
        else "a larger rho, or a convex loss and penalty, converges"
    )
    warnings.warn(
        f"the run diverged and was stopped at round {ending.round}; the weights are those of the "
        f"best round. {advice}.",
        ConvergenceWarning,
        stacklevel=3,
    )
