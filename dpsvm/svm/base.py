"""What the five estimators share: from the caller's data to the core and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_array, check_consistent_length, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _num_samples, column_or_1d, validate_data

from dpsvm._arrays import Array
from dpsvm._constructors import keeps_parameters
from dpsvm._result import Report, Solution
from dpsvm._sklearn import CallbackSupportMixin, one_of
from dpsvm.progress import solver_progress
from dpsvm.rows import FLOAT_TYPES, lies_in_rows, rows_to_read, scale_gamma
from dpsvm.svm.fitted import FittedSVM
from dpsvm.svm.monitors import Patience, print_reports, stall_notice, subtasks
from dpsvm.svm.parameters import CLASSIFIERS, TABLE, Parameters
from dpsvm.svm.selectors import NUMBERS, SELECTORS
from dpsvm.svm.solving import CoreFit
from dpsvm.threads import thread_count
from dpsvm.warnings import PrivacyLeakWarning, warn_caller

Rows = NDArray[np.intp]
RandomState = int | np.random.RandomState | None

_NOT_FINITE = "The dual coefficients or intercepts are not finite"


def constraints(*names: str) -> dict[str, list[Any]]:
    """Return scikit-learn's constraints for rows of the table of parameters.

    >>> [str(constraint) for constraint in constraints("nu")["nu"]]
    ['a float in the range (0.0, 1.0]']
    """
    return {name: [one.to_sklearn() for one in TABLE[name].allowed] for name in names}


keeps_its_parameters = partial(
    keeps_parameters, more={name: number.default for name, number in NUMBERS.items()}
)
"""Decorates a constructor: besides those it names, it keeps the numbers that selectors read."""


class BaseSVM(FittedSVM, CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """A support vector machine trained by the core."""

    gamma: float | str
    tol: float
    verbose: bool
    random_state: RandomState
    selector: str
    warm_start: bool

    _settings: ClassVar[tuple[str, ...]] = (  # parameters handed to the core as they are
        "degree", "coef0", "tol", "shrinking", "cache_size", "max_iter", "time_limit",
        "solver", "selector", *NUMBERS,
    )  # fmt: skip
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **constraints(*_settings),
        "kernel": [*constraints("kernel")["kernel"], callable],
        "gamma": [one_of("scale", "auto"), *constraints("gamma")["gamma"]],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "n_jobs": [
            Interval(Integral, 1, 2**31 - 1, closed="both"),
            Interval(Integral, None, -1, closed="right"),
            None,
        ],
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the machine to training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; float32 and float64 are used without conversion. For
            ``kernel="precomputed"`` the kernel matrix, of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,)
            Class labels, or numbers for regression.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C for each row. Rows of weight zero or less are left out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Self:
        threads = thread_count(self.n_jobs)
        before = copy(self) if self.warm_start and self.__sklearn_is_fitted__() else None
        self.__dict__.pop("_parameters", None)  # a fit that fails leaves no fitted machine
        for notice, category in self._notices():
            warn_caller(notice, category)
        rows, y_checked = self._check_training_data(X, y)
        weight, kept = _kept_weights(sample_weight, _num_samples(rows))
        targets = self._targets(y_checked, kept)
        parameters = self._resolve_parameters(rows)
        alpha = None if before is None else before._coefficients_for(self, rows, parameters.C)
        alpha = alpha if alpha is None or kept is None else alpha[:, kept]
        problem = self._problem(rows)

        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        data = {"X": X, "y": y, "metadata": metadata}
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, **data)
        with (
            _familiar_words(),
            solver_progress(shown=bool(self.verbose)) as display,
            subtasks(self, context, display, data) as listener,
        ):
            warn = partial(warn_caller, category=ConvergenceWarning)
            monitor = Patience(listener, tol=self.tol, tell=warn)
            watch = partial(nullcontext, monitor)
            solve = CoreFit(parameters, threads=threads, seed=self._seed(), watch=watch)
            by_class = getattr(self, "class_weight_", None)
            solution = solve(
                problem, targets, rows=kept, weight=weight, class_weight=by_class, alpha=alpha
            )
            self._calibrate(solve, problem, targets, kept, weight)
        self._keep(solution, parameters, rows)
        self.fit_status_ = int(any(not report.converged for report in solve.reports))
        self._tell(solution.reports, solve.reports)
        context.call_on_fit_task_end(estimator=self, reconstruction_attributes={}, **data)
        return self

    def _notices(self) -> list[tuple[str, type[Warning]]]:
        """Return what to warn of before a fit, whatever the data."""
        kernel = "precomputed" if callable(self.kernel) else self.kernel
        notice = SELECTORS[self.selector].notice(self, kernel)
        return [] if notice is None else [(notice, PrivacyLeakWarning)]

    def _calibrate(
        self,
        solve: CoreFit,
        problem: Any,
        targets: Array | None,
        kept: Rows | None,
        weight: Array | None,
    ) -> None:
        """Fit what turns decisions into probabilities: nothing, except in classifiers."""

    def _tell(self, reports: Sequence[Report], all_reports: Sequence[Report]) -> None:
        """Print what ``verbose`` asks for and warn of a fit that was cut short, folds included."""
        if self.verbose:
            print_reports(type(self).__name__, tuple(reports))
        stalled = [report.gap for report in all_reports if report.stop_reason == "stalled"]
        if stalled:
            warn_caller(stall_notice(max(stalled), self.tol), ConvergenceWarning)
        for limit in ("max_iter", "time_limit"):
            if any(report.stop_reason == limit for report in all_reports):
                warn_caller(
                    f"Solver terminated early ({limit}={getattr(self, limit)}).  Consider "
                    "pre-processing your data with StandardScaler or MinMaxScaler.",
                    ConvergenceWarning,
                )

    def _check_training_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return X and y checked; X in the core's form unless a callable kernel will read it."""
        supervised = self._machine != "one-class"
        if callable(self.kernel):
            if supervised:
                y = check_array(column_or_1d(y, warn=True), ensure_2d=False, dtype=None)
                check_consistent_length(X, y)
            return X, y
        if sp.issparse(X) and self.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported.")
        order = None if lies_in_rows(X) else "C"
        form = {"dtype": FLOAT_TYPES, "order": order, "accept_sparse": "csr"}
        if supervised:
            X, y = validate_data(self, X, y, **form)
        else:
            X = validate_data(self, X, **form)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. "
                f"Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        return rows_to_read(X), y

    def _targets(self, y: Any, kept: Rows | None) -> Array | None:
        """Return what the core takes as y, for the rows kept."""
        targets = np.ascontiguousarray(y, dtype=np.float64)
        return targets if kept is None else targets[kept]

    def _resolve_parameters(self, rows: Any) -> Parameters:
        kernel = "precomputed" if callable(self.kernel) else self.kernel
        gamma: Any = self.gamma
        if kernel in ("linear", "precomputed"):
            gamma = 0.0  # not read
        elif gamma == "scale":
            gamma = scale_gamma(rows)
        elif gamma == "auto":
            gamma = 1.0 / rows.shape[1]
        settings = {name: getattr(self, name) for name in self._settings}
        return Parameters(machine=self._machine, kernel=kernel, gamma=gamma, **settings)

    def _problem(self, rows: Any) -> Any:
        """Return the rows in the core's form, or their kernel matrix."""
        self._kernel_function = self.kernel if callable(self.kernel) else None
        self._kernel_rows = rows if callable(self.kernel) else None
        if callable(self.kernel):
            n_samples = _num_samples(rows)
            rows = self._kernel_matrix(rows)
            if rows.shape != (n_samples, n_samples):
                shape = f"{rows.shape[0]}x{rows.shape[1]}"
                raise ValueError(f"kernel returned a {shape} matrix for {n_samples} samples")
        return rows

    def _seed(self) -> int | None:
        if not SELECTORS[self.selector].random or self.random_state is None:
            return None
        return int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))

    def _keep(self, solution: Solution, parameters: Parameters, rows: Any) -> None:
        """Set the fitted attributes."""
        if not (np.isfinite(solution.dual_coef).all() and np.isfinite(solution.rho).all()):
            raise ValueError(
                f"{_NOT_FINITE}. The input data may contain large values and need to be "
                "preprocessed."
            )
        self._parameters = parameters
        self.shape_fit_ = rows.shape if hasattr(rows, "shape") else (_num_samples(rows),)
        self.support_ = solution.support
        self.n_support_ = solution.n_support
        self.dual_coef_ = self._sign * solution.dual_coef
        self.intercept_ = -self._sign * solution.rho
        if parameters.kernel == "precomputed":
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = rows[self.support_]
            if sp.issparse(rows):
                self.dual_coef_ = type(rows)(self.dual_coef_)
        self._keep_reports(solution)

    def _keep_reports(self, solution: Solution) -> None:
        reports = solution.reports

        def of_each(name: str) -> Any:
            values = [getattr(report, name) for report in reports]
            return values[0] if len(values) == 1 else np.array(values)

        iterations = np.array([report.iterations for report in reports], dtype=np.int64)
        self.n_iter_ = iterations if self._machine in CLASSIFIERS else int(iterations[0])
        self.stop_reason_ = of_each("stop_reason")
        self.dual_gap_ = of_each("gap")
        self.objective_ = of_each("objective")
        self._decision_range = np.array([report.decision_range for report in reports])
        self._mostly_bounded = sum(2 * report.n_bsv - report.n_sv for report in reports) > 0
        self.n_selections_ = sum(report.n_selections for report in reports)
        self.privacy_guarantee_ = None


@contextmanager
def _familiar_words() -> Iterator[None]:
    """Say the core's refusal of numbers too large for it in words scikit-learn's users know."""
    try:
        yield
    except ValueError as error:
        if "single precision" in str(error):
            raise ValueError(f"{_NOT_FINITE}: {error}") from None
        raise


def _kept_weights(
    sample_weight: ArrayLike | None, n_samples: int
) -> tuple[Array | None, Rows | None]:
    """Return the positive weights and their rows; None where nothing is weighted or left out."""
    if sample_weight is None:
        return None, None
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight and X have incompatible shapes: {weight.shape} for {n_samples} samples"
        )
    kept = np.flatnonzero(weight > 0)
    if not len(kept):
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    if len(kept) == n_samples:
        return weight, None
    return weight[kept], kept
