"""The half of an estimator that works on a fitted machine: deciding on new rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from dpsvm._arrays import Array
from dpsvm.rows import FLOAT_TYPES, core_rows, lies_in_rows, rows_to_read
from dpsvm.svm.expansion import Expansion
from dpsvm.svm.parameters import CLASSIFIERS, Parameters
from dpsvm.svm.sklearn_form import to_sklearn
from dpsvm.svm.voting import pair_dual_coef
from dpsvm.threads import thread_count

Kernel = str | Callable[[Any, Any], Any]

_BLOCK = 1 << 19  # entries converted together, of as many rows as that is or a few
_FEWEST = 64


class FittedSVM:
    """Decisions from the fitted attributes as they are now, checked anew each time."""

    _machine: ClassVar[str]
    kernel: Kernel
    n_jobs: int | None
    classes_: NDArray[Any]  # classifiers only
    support_: NDArray[np.int32]
    support_vectors_: Any
    n_support_: NDArray[np.int32]
    dual_coef_: Any
    intercept_: Array
    shape_fit_: tuple[int, ...]
    _mostly_bounded: bool  # more than half of the support vectors are at their bounds
    _decision_range: Array | None  # of each pair of classes over the training rows, if known
    _parameters: Parameters  # those of the fit, whatever set_params has done since
    _kernel_function: Callable[[Any, Any], Any] | None  # a callable kernel
    _kernel_rows: Any  # the training rows a callable kernel reads

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_parameters")

    def as_sklearn(self) -> Any:
        """Return this fitted machine as one of scikit-learn's own, for whatever looks at types.

        It has copies of the fitted attributes, and the settings that scikit-learn has; kernel,
        degree and coef0 are those of the fit. What only tells how to train, such as ``solver`` or
        ``selector``, is left out. Decisions agree to rounding.

        Returns
        -------
        machine : SVC, NuSVC, SVR, NuSVR or OneClassSVM of ``sklearn.svm``
            The same machine.

        Examples
        --------
        >>> from dpsvm import SVC
        >>> machine = SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"])
        >>> type(machine.as_sklearn())
        <class 'sklearn.svm._classes.SVC'>
        >>> machine.as_sklearn().predict([[2.0]])
        array(['yes'], dtype='<U3')
        """
        return to_sklearn(self)

    def _kernel_matrix(self, X: Any) -> Any:
        """Return the callable kernel of X with the training rows."""
        assert self._kernel_function is not None
        matrix = self._kernel_function(X, self._kernel_rows)
        matrix = matrix.toarray() if sp.issparse(matrix) else matrix
        return core_rows(check_array(matrix, dtype=FLOAT_TYPES, order="C", input_name="kernel"))

    @property
    def _sign(self) -> float:
        """-1 where the public signs are turned so that positive means ``classes_[1]``, else 1."""
        return -1.0 if self._machine in CLASSIFIERS and len(self.classes_) == 2 else 1.0

    @property
    def _gamma(self) -> float:
        return self._parameters.gamma

    def _expansion(self) -> Expansion:
        """Return the expansion that the public attributes describe now."""
        precomputed = self._parameters.kernel == "precomputed"
        try:
            return Expansion(
                self._parameters,
                support=self.support_,
                support_vectors=self.support_vectors_,
                n_support=self.n_support_,
                dual_coef=self._sign * self.dual_coef_,
                rho=-self._sign * self.intercept_,
                columns=self.shape_fit_[0 if precomputed else 1],
                n_classes=len(self.classes_) if self._machine in CLASSIFIERS else 1,
                decision_range=self._decision_range,
            )
        except (TypeError, ValueError) as error:
            name = type(self).__name__
            message = f"The internal representation of {name} was altered: {error}"
            raise ValueError(message) from None

    def _coefficients_for(self, fit: FittedSVM, rows: Any, C: float) -> Array | None:
        """Return the coefficient of every row for a new fit to continue from; None if it cannot.

        With a new C those at their bounds move along, so where most are, all are scaled with C.
        """
        n_rows, classes = _num_samples(rows), getattr(fit, "classes_", ())
        if n_rows != self.shape_fit_[0] or not np.array_equal(
            getattr(self, "classes_", ()), classes
        ):
            return None
        expansion = self._expansion()
        bounded = getattr(self, "_mostly_bounded", False)  # not told by scikit-learn's machines
        factor = C / self._parameters.C if bounded and math.isfinite(C) else 1.0
        table = np.zeros((len(expansion.dual_coef), n_rows))
        table[:, self.support_] = factor * expansion.dual_coef
        return table

    def _decisions(self, X: Any) -> Array:
        """Return the decision of every pair, of shape (n_samples, pairs), in LIBSVM's signs."""
        check_is_fitted(self)
        expansion = self._expansion()
        threads = thread_count(self.n_jobs)
        parts = self._queries(X, expansion)
        return np.concatenate([expansion.decision_values(rows, threads=threads) for rows in parts])

    def _queries(self, X: Any, expansion: Expansion) -> Iterator[Any]:
        """Yield the rows to decide in the core's form and in the element type of the model.

        An array that must be converted, which may be a map of a file, is so in blocks.
        """
        vectors = expansion.support_vectors
        dtypes = FLOAT_TYPES if vectors is None else (vectors.dtype,)
        as_it_is = lies_in_rows(X) and X.dtype in dtypes and not sp.issparse(vectors)
        form = {"dtype": dtypes, "order": None if as_it_is else "C", "accept_sparse": "csr"}
        if self._kernel_function is not None:
            yield self._query(self._kernel_matrix(X), expansion)
            return
        if as_it_is or not isinstance(X, np.ndarray) or X.ndim != 2 or X.size <= _BLOCK:
            yield self._query(validate_data(self, X, reset=False, **form), expansion)
            return
        validate_data(self, X, reset=False, skip_check_array=True)
        step = max(_BLOCK // X.shape[1], _FEWEST)
        for at in range(0, len(X), step):
            rows = check_array(X[at : at + step], estimator=self, input_name="X", **form)
            yield self._query(rows, expansion)

    def _query(self, rows: Any, expansion: Expansion) -> Any:
        """Return checked rows in the core's form if they go with the model."""
        vectors = expansion.support_vectors
        if vectors is None and rows.shape[1] != expansion.columns:
            raise ValueError(
                f"X.shape[1] = {rows.shape[1]} should be equal to {expansion.columns}, "
                "the number of samples at training time"
            )
        if sp.issparse(rows) and not sp.issparse(vectors):
            name = type(self).__name__
            raise ValueError(f"cannot use sparse input in {name!r} trained on dense data")
        if sp.issparse(vectors) and not sp.issparse(rows):
            rows = type(vectors)(rows)
        return rows_to_read(rows)

    @property
    def coef_(self) -> Any:
        """Weights of the features, one row per pair of classes; for the linear kernel only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self.dual_coef_
        if coef.shape[0] > 1:
            dense = coef.toarray() if sp.issparse(coef) else coef
            coef = pair_dual_coef(dense, self.n_support_)
        if sp.issparse(self.support_vectors_):
            coef = type(self.support_vectors_)(coef)
        coef = coef @ self.support_vectors_
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef
