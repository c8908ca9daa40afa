"""Private classifiers: the guarantee is proved, and everything it assumes is enforced here."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from dpsvm._arrays import Array
from dpsvm._constructors import but_for, keeps_parameters
from dpsvm._sklearn import one_of
from dpsvm.losses import Loss, make_loss
from dpsvm.names import LOSSES, METHODS, OF_RECORDS
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.guarantee import check_delta, check_epsilon
from dpsvm.privacy.methods import Mechanism, Setup, calibrate
from dpsvm.privacy.plan import PrivacyPlan, automatic_C, noise_of
from dpsvm.privacy.preparation import Preparation, RandomFourierFeatures, clip_rows
from dpsvm.privacy.release import Price, PrivateEstimator, Release, tell
from dpsvm.privacy.rounding import RANGE
from dpsvm.rows import core_rows

_WITHHELD = (
    "iteration counts, gradient norms, objective values, training scores, the number of rows "
    "shortened to data_norm"
)

_SCALE = Interval(Real, *RANGE, closed="both")


class BasePrivateClassifier(PrivateEstimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier, or one on random Fourier features, released with a guarantee."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [one_of(*METHODS)],
        "kernel": [one_of("linear", "rbf")],
        "gamma": [_SCALE, None],
        "n_components": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "feature_seed": [Interval(Integral, 0, None, closed="left")],
        "data_norm": [Interval(Real, 1e-150, 1e150, closed="both")],
        "C": [Interval(Real, 1e-150, 1e150, closed="both"), one_of("auto")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [_SCALE],
        "class_weight": [dict, None],
        "neighbouring": [one_of(*OF_RECORDS), None],
        "n_steps": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "batch_rate": [Interval(Real, 1e-12, 1, closed="both")],
        "tol": [Interval(Real, 1e-12, 1, closed="both")],
        "accountant": [BudgetAccountant, None],
    }

    def _loss(self) -> Loss:
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: None = None) -> Self:
        """Charge the accountant, if there is one, and release a private classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows. Those longer than ``data_norm`` are shortened to it; how many is not told.
        y : array-like of shape (n_samples,)
            Labels from ``classes``. Not every class has to occur.
        sample_weight : None
            Refused: a weight without a public bound has no bounded influence.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._forget()
        if sample_weight is not None:
            raise ValueError(
                "sample_weight is refused: weights are public and belong to classes (class_weight)"
            )
        self._check_settings()
        classes = public_classes(self.classes)
        rows, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C")
        codes = _codes(labels, classes)
        n_features = rows.shape[1]
        preparation = self._preparation_for(n_features)
        mechanism = self._mechanism(preparation.dimension(n_features), len(classes))
        price = Price(mechanism.event, mechanism.guarantee, self._figures(mechanism, classes))
        release = Release.of(self, price, self.method)
        prepared = preparation(core_rows(rows))
        signs = _signs(codes, len(classes))
        weights = self._class_weights(classes)[0][codes]
        released = mechanism.release(prepared, signs, weights, release.charge())
        self._keep(released, classes, preparation, mechanism)
        tell(self, release)
        return self

    @classmethod
    def plan(
        cls,
        epsilon: float,
        delta: float | None,
        n: int,
        d: int,
        *,
        n_classes: int = 2,
        **parameters: Any,
    ) -> PrivacyPlan:
        """Show the noise that a fit would add; no data are needed and no budget is spent.

        Parameters
        ----------
        epsilon, delta : float
            The guarantee.
        n, d : int
            Numbers of rows and features, as far as they are public.
        n_classes : int, default=2
            How many classes there are; above 2, a machine for each.
        **parameters
            Parameters of the estimator.

        Returns
        -------
        plan : PrivacyPlan
            The noise scale and what it means for one weight.
        """
        for name, value in (("n", n), ("d", d), ("n_classes", n_classes)):
            if not isinstance(value, Integral) or value < (2 if name == "n_classes" else 1):
                raise ValueError(f"{name} must be a positive whole number, got {value!r}")
        settings: dict[str, Any] = {"data_norm": 1.0, "classes": range(n_classes), **parameters}
        model = cls(epsilon, delta, **settings)
        model._check_settings()
        classes = public_classes(model.classes)
        preparation = model._preparation_for(int(d))
        mechanism = model._mechanism(preparation.dimension(int(d)), len(classes))
        return PrivacyPlan.of(model.method, mechanism, int(n))

    def decision_function(self, X: Any) -> Array:
        """Return how strongly each row speaks for the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows. They are not shortened for a linear model, which is ``X @ coef_.T +
            intercept_`` and nothing else.

        Returns
        -------
        decisions : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one number, positive for ``classes_[1]``; for more, a column per class.
        """
        check_is_fitted(self)
        form = {"accept_sparse": "csr", "dtype": np.float64, "order": "C"}
        rows = core_rows(validate_data(self, X, reset=False, **form))
        features = self._preparation.features
        if features is not None:
            rows = features(clip_rows(rows, self._preparation.data_norm))
        decisions = np.asarray(rows @ self.coef_.T) + self.intercept_
        return decisions[:, 0] if len(self.classes_) == 2 else decisions

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The class that ``decision_function`` speaks for most.
        """
        decisions = self.decision_function(X)
        codes = (decisions > 0).astype(np.intp) if decisions.ndim == 1 else decisions.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def _check_settings(self) -> None:
        """Refuse what is wrong, and what would be measured from the data, by name and value."""
        check_epsilon(self.epsilon)
        if self.delta is not None:
            check_delta(self.delta)
        if self.data_norm is None:
            raise ValueError(
                "data_norm must be given: a public bound on the norm of a row, to which longer "
                "rows are shortened. It is never measured from the data."
            )
        if isinstance(self.gamma, str):
            raise ValueError(
                f"gamma must be a public number, got {self.gamma!r}: 'scale' is measured from the "
                "data, and 'auto' hides a choice that should be seen"
            )
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight must be None or a dict of public weights, got "
                f"{self.class_weight!r}: 'balanced' is measured from the data"
            )
        if self.classes is None:
            raise ValueError(
                "classes must be given: the set of labels is a public input, since finding it "
                "in the data would reveal a rare one"
            )
        self._validate_params()
        if self.method != "gradient" and self.batch_rate != 1.0:
            raise ValueError(
                f"batch_rate goes with method='gradient', got {self.batch_rate!r} with "
                f"{self.method!r}"
            )
        if self.kernel == "rbf" and self.gamma is None:
            raise ValueError("gamma must be a public number for kernel='rbf', got None")

    def _preparation_for(self, n_features: int) -> Preparation:
        features = None
        if self.kernel == "rbf":
            gamma = float(self.gamma)
            seed = int(self.feature_seed)
            features = RandomFourierFeatures(n_features, int(self.n_components), gamma, seed)
        constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
        return Preparation(float(self.data_norm), constant, features)

    def _class_weights(self, classes: NDArray[Any]) -> tuple[Array, float]:
        """Return the weight of each class over the largest, and the largest."""
        given = dict(self.class_weight or {})
        known = set(classes.tolist())
        for label, weight in given.items():
            if label not in known:
                raise ValueError(f"class_weight has the label {label!r}, which is not in classes")
            if not isinstance(weight, Real) or not RANGE[0] <= weight <= RANGE[1]:  # type: ignore[operator]
                raise ValueError(
                    f"class_weight must be from {RANGE[0]:g} to {RANGE[1]:g}, got {weight!r}"
                )
        weights = np.array([float(given.get(label, 1.0)) for label in classes.tolist()])
        return weights / weights.max(), float(weights.max())

    def _mechanism(self, dimension: int, n_classes: int) -> Mechanism:
        machines = 1 if n_classes == 2 else n_classes
        relation = self.neighbouring or ("replace" if self.method == "objective" else "add-remove")
        loss = self._loss()
        heaviest = self._class_weights(public_classes(self.classes))[1]
        C = (
            automatic_C(self.method, loss, float(self.epsilon), machines)
            if isinstance(self.C, str)
            else float(self.C) * heaviest
        )
        setup = Setup(
            loss=loss,
            C=C,
            dimension=dimension,
            neighbouring=relation,
            machines=machines,
            tol=float(self.tol),
            steps=int(self.n_steps),
            rate=float(self.batch_rate),
        )
        return calibrate(self.method, setup, float(self.epsilon), self.delta)

    def _keep(
        self,
        released: Array,
        classes: NDArray[Any],
        preparation: Preparation,
        mechanism: Mechanism,
    ) -> None:
        """Set the fitted attributes: the noisy weights, and numbers that were public before."""
        self.classes_ = classes
        self._preparation = preparation
        self.feature_map_ = preparation.features
        self.C_ = mechanism.setup.C
        self.noise_scale_ = mechanism.noise_scale
        self.coef_, self.intercept_ = preparation.unprepare(released)

    def _figures(self, mechanism: Mechanism, classes: NDArray[Any]) -> dict[str, Any]:
        """What the report tells beside the guarantee."""
        setup = mechanism.setup
        public: dict[str, Any] = {
            "classes": classes.tolist(),
            "data_norm": float(self.data_norm),
            "loss": setup.loss.name,
            "C": setup.C,
            "weights_per_machine": setup.dimension,
            "kernel": self.kernel,
            "intercept_scaling": float(self.intercept_scaling) if self.fit_intercept else None,
        }
        if hasattr(setup.loss, "width"):
            public["width"] = float(setup.loss.width)
        if self.kernel == "rbf":
            public |= {
                "gamma": float(self.gamma),
                "n_components": int(self.n_components),
                "feature_seed": int(self.feature_seed),
            }
        figures: dict[str, Any] = {
            "method": self.method,
            **noise_of(mechanism),
            **mechanism.facts(),
            "labels": "a record's label is protected together with its row",
            "public": public,
            "withheld": _WITHHELD,
        }
        if self.method == "output-laplace":
            figures["baseline"] = "Rubinstein et al. 2012; 'output' needs less noise"
        return figures


class PrivateSVC(BasePrivateClassifier):
    """Support vector classification with a differential privacy guarantee that holds.

    Minimises 1/2 |w|^2 + C sum of losses over rows of norm at most 1, with noise. The bias is the
    weight of a constant feature and is regularised with the others. More than two classes are told
    apart by one machine each, against the rest; all of them together stay within (epsilon, delta).

    Parameters
    ----------
    epsilon : float, default=1.0
        The privacy budget of one fit.
    delta : float or None, default=None
        Between 0 and 1, well below 1 / number of records. Needed by "objective-gaussian" and
        "gradient"; with it "output" adds Gaussian noise, without it "output" is pure. "objective"
        and "output-laplace" are pure in any case.
    method : {"objective-gaussian", "objective", "output", "gradient", "output-laplace"}, \
default="objective-gaussian"
        "objective-gaussian" adds a random linear term to the objective.
        "objective" does so with pure privacy, for replaced records only. "output" adds noise to the
        weights, "gradient" to every step of a gradient descent. "output-laplace" is a baseline.
    loss : {"huber", "smooth", "logistic", "hinge"}, default="huber"
        "hinge" is for "output" and "gradient" only.
    width : float, default=0.7
        Of the rounded corner of "huber" and "smooth".
    kernel : {"linear", "rbf"}, default="linear"
        "rbf" through random Fourier features: the model holds no training row.
    gamma : float or None, default=None
        Of the rbf kernel, in units of the rows as given; a public number, needed for "rbf".
    n_components : int, default=50
        Random frequencies, each giving two features.
    feature_seed : int, default=0
        Public seed of the random features, independent of the noise.
    data_norm : float
        A public bound on the norm of a row, never measured from the data. Longer rows are
        shortened.
    classes : array-like
        The public set of labels.
    C : float or "auto", default="auto"
        Weight of the losses. "auto" follows from epsilon, method and loss, not from data.
    fit_intercept : bool, default=True
        Whether there is a bias.
    intercept_scaling : float, default=0.3
        The constant feature, in units of ``data_norm``. A larger one makes the bias cheaper and
        leaves less of a row's norm to its features.
    class_weight : dict or None, default=None
        Public factors of C by class, 1 where none is given; with C="auto", which fixes the
        largest, only their ratios count.
    neighbouring : {"add-remove", "replace"} or None, default=None
        What the guarantee protects: a record more or less, or one replaced. None is "add-remove",
        and "replace" for the method "objective".
    n_steps : int, default=50
        Steps of the method "gradient".
    batch_rate : float, default=1.0
        Probability of a row to take part in a gradient step. Below 1 needs the package
        dp-accounting.
    tol : float, default=1e-6
        Certified norm of the gradient at the minimiser, public; the noise covers it.
    accountant : BudgetAccountant or None, default=None
        Charged once by every fit, once the input is known to be sound and before anything is
        computed from it. That an input was refused (a value that is not finite, a label that is
        not in ``classes``) is for whoever holds the data, and covered by no guarantee.
    random_state : None, int or Generator, default=None
        None draws the noise from the operating system. A seed is for experiments, and warns.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coef_, intercept_ : ndarray of shape (1 or n_classes, n_weights), (1 or n_classes,)
        The noisy weights, of the features as given or of the random ones.
    epsilon_, delta_, neighbouring_ : float, float, str
        The guarantee of this fit; also ``privacy_guarantee_``.
    noise_scale_ : float
        Scale of the noise, of the law named in ``privacy_report_``.
    privacy_report_ : dict
        What is guaranteed, how the budget was split, and every public number that went in.
    C_ : float
        The C used.
    feature_map_ : RandomFourierFeatures or None
        The random features.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Features seen by ``fit``.

    Examples
    --------
    >>> from dpsvm.privacy import PrivateSVC
    >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]] * 200, ["no", "no", "yes", "yes"] * 200
    >>> model = PrivateSVC(epsilon=1.0, delta=1e-5, data_norm=1.0, classes=["no", "yes"]).fit(X, y)
    >>> model.predict([[-0.9], [0.9]])
    array(['no', 'yes'], dtype='<U3')
    >>> print(model.privacy_guarantee_)
    epsilon = 1, delta = 1e-05 (add-remove)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BasePrivateClassifier._parameter_constraints,
        "loss": [one_of(*LOSSES)],
        "width": [_SCALE],
    }

    @keeps_parameters
    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        method: str = "objective-gaussian",
        loss: str = "huber",
        width: float = 0.7,
        kernel: str = "linear",
        gamma: float | str | None = None,
        n_components: int = 50,
        feature_seed: int = 0,
        data_norm: float | None = None,
        classes: ArrayLike | None = None,
        C: float | str = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float = 0.3,
        class_weight: Mapping[Any, float] | str | None = None,
        neighbouring: str | None = None,
        n_steps: int = 50,
        batch_rate: float = 1.0,
        tol: float = 1e-6,
        accountant: BudgetAccountant | None = None,
        random_state: Any = None,
    ) -> None: ...

    def _loss(self) -> Loss:
        return make_loss(self.loss, float(self.width))


class PrivateLogisticRegression(BasePrivateClassifier):
    """Logistic regression with a differential privacy guarantee that holds.

    The machinery, parameters and attributes are those of :class:`PrivateSVC`, with the logistic
    loss.

    Examples
    --------
    >>> from dpsvm.privacy import PrivateLogisticRegression
    >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]] * 200, [0, 0, 1, 1] * 200
    >>> model = PrivateLogisticRegression(1.0, 1e-5, data_norm=1.0, classes=[0, 1]).fit(X, y)
    >>> model.predict_proba([[-1.0], [1.0]]).argmax(axis=1)
    array([0, 1])
    """

    __init__ = but_for(PrivateSVC.__init__, "loss", "width")

    def _loss(self) -> Loss:
        return make_loss("logistic")

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, a function of the released weights alone.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            With more than two classes, each machine's probability over the sum of them.
        """
        decisions = self.decision_function(X)
        if decisions.ndim == 1:
            return np.column_stack([expit(-decisions), expit(decisions)])
        each = np.maximum(expit(decisions), np.finfo(np.float64).tiny)
        return np.asarray(each / each.sum(axis=1, keepdims=True))


def public_classes(classes: ArrayLike | None) -> NDArray[Any]:
    """The labels, sorted; ValueError for fewer than two or one given twice."""
    given = np.asarray(list(classes) if isinstance(classes, range) else classes)
    if given.ndim != 1 or len(given) < 2:
        raise ValueError(f"classes must be a list of at least two labels, got {classes!r}")
    if given.dtype.kind == "f" and not np.all(np.isfinite(given)):
        raise ValueError(f"classes must be finite, got {classes!r}")
    sorted_classes = np.unique(given)
    if len(sorted_classes) < len(given):
        raise ValueError(f"classes must not hold a label twice, got {classes!r}")
    return np.asarray(sorted_classes)


def _codes(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Each label's position in classes; ValueError names one that is not there."""
    positions = {label: code for code, label in enumerate(classes.tolist())}
    codes = [positions.get(label) for label in labels.tolist()]
    if None in codes:
        unknown = labels.tolist()[codes.index(None)]
        raise ValueError(
            f"y holds the label {unknown!r}, which is not in classes = {classes.tolist()!r}"
        )
    return np.array(codes, dtype=np.intp)


def _signs(codes: NDArray[np.intp], n_classes: int) -> Array:
    """+1 for the class of a machine and -1 for the rest; one machine for two classes."""
    machines = [1] if n_classes == 2 else range(n_classes)
    return np.array([np.where(codes == positive, 1.0, -1.0) for positive in machines])
