"""Fitted machines exchanged with scikit-learn: the same decisions in either library's object.

What scikit-learn keeps is in ``sklearn/svm/_base.py``: ``_dual_coef_`` and ``_intercept_`` have
LIBSVM's signs, ``dual_coef_`` and ``intercept_`` the opposite ones for two classes. A sparse
``_dual_coef_`` stores its zeros, since LIBSVM is given its entries as a full table.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dpsvm._sklearn import PROBABILITY_DEPRECATED
from dpsvm.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from dpsvm.svm.fitted import FittedSVM
from dpsvm.svm.parameters import CLASSIFIERS, Parameters

_OURS: tuple[type[Any], ...] = (SVC, NuSVC, OneClassSVM, SVR, NuSVR)
_KEPT_BY_BOTH = (
    "support_", "shape_fit_", "fit_status_", "n_iter_", "classes_", "class_weight_", "offset_",
    "n_features_in_", "feature_names_in_",
)  # fmt: skip
_PROBABILITIES = ("_probA", "_probB")
_TRAINING_ROWS = "_BaseLibSVM__Xfit"  # where scikit-learn keeps what a callable kernel reads
_MOST_ENTRIES = np.iinfo(np.int32).max


def their_class(name: str) -> type[Any]:
    """Return scikit-learn's own class of a name, even while dpsvm's is in its place.

    >>> their_class("SVC").__module__
    'sklearn.svm._classes'
    """
    from sklearn.svm import _classes

    theirs: type[Any] = getattr(_classes, name)
    return theirs


def to_sklearn(machine: FittedSVM) -> Any:
    """Return scikit-learn's machine that decides as a fitted machine of dpsvm does.

    >>> to_sklearn(SVC(kernel="linear").fit([[0.0], [1.0]], ["a", "b"])).predict([[2.0]])
    array(['b'], dtype='<U1')
    """
    check_is_fitted(machine)
    expansion, fitted = machine._expansion(), machine._parameters
    [ours] = (one for one in _OURS if isinstance(machine, one))
    result = _with_settings_of(machine, their_class(ours.__name__), ours)
    result.kernel = machine._kernel_function or fitted.kernel
    result.degree, result.coef0, result._gamma = fitted.degree, fitted.coef0, fitted.gamma
    _copy_attributes(machine, result)

    n_support, coef = expansion.n_support, expansion.dual_coef
    result._n_support = n_support if fitted.machine in CLASSIFIERS else np.repeat(n_support, 2)
    result._sparse = sp.issparse(expansion.support_vectors)
    if expansion.support_vectors is None:
        result.support_vectors_ = np.empty((0, 0))
    elif result._sparse:
        result.support_vectors_ = _their_csr(expansion.support_vectors)
        coef = _full_csr(coef)
    else:
        result.support_vectors_ = np.array(expansion.support_vectors, np.float64, order="C")
    sign = -1.0 if machine._two_classes() else 1.0
    result._dual_coef_, result._intercept_ = coef, 0.0 - expansion.rho
    result.dual_coef_, result.intercept_ = sign * coef, sign * result._intercept_
    result._num_iter = np.atleast_1d(result.n_iter_)
    for name in _PROBABILITIES:
        setattr(result, name, np.array(getattr(machine, name, ()), dtype=np.float64))
    if PROBABILITY_DEPRECATED:
        result._effective_probability = result._probA.size > 0
    if machine._kernel_function is not None:
        setattr(result, _TRAINING_ROWS, machine._kernel_rows)
    return result


def from_sklearn(machine: Any) -> Any:
    """Return dpsvm's machine that decides as a fitted machine of scikit-learn does.

    It has the settings and the fitted attributes that scikit-learn's has; what scikit-learn does
    not tell of a fit, such as ``dual_gap_``, is absent.

    Parameters
    ----------
    machine : SVC, NuSVC, SVR, NuSVR or OneClassSVM of ``sklearn.svm``
        The fitted machine; its arrays are copied.

    Returns
    -------
    machine : the class of the same name
        The same machine.

    Examples
    --------
    >>> import sklearn.svm
    >>> import dpsvm
    >>> theirs = sklearn.svm.SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"])
    >>> dpsvm.from_sklearn(theirs).predict([[2.0]])
    array(['yes'], dtype='<U3')
    """
    ours = next((one for one in _OURS if isinstance(machine, their_class(one.__name__))), None)
    if ours is None:
        names = ", ".join(one.__name__ for one in _OURS)
        given = f"{type(machine).__module__}.{type(machine).__qualname__}"
        raise ValueError(f"expected one of scikit-learn's {names}, got {given}")
    check_is_fitted(machine)
    result = _with_settings_of(machine, ours, their_class(ours.__name__))
    _copy_attributes(machine, result)

    function = machine.kernel if callable(machine.kernel) else None
    kernel = "precomputed" if function else machine.kernel
    settings = {name: getattr(result, name) for name in ours._settings}
    result._parameters = Parameters(
        machine=ours._machine, kernel=kernel, gamma=machine._gamma, **settings
    )
    result._kernel_function = function
    result._kernel_rows = getattr(machine, _TRAINING_ROWS) if function else None
    sign = -1.0 if result._two_classes() else 1.0
    vectors, coef = machine.support_vectors_.copy(), machine._dual_coef_
    if sp.issparse(coef):
        coef = type(vectors)(coef.toarray())
    # Without classes, scikit-learn's count of a sparse fit may be left uninitialised.
    counts = machine.n_support_ if ours._machine in CLASSIFIERS else [len(machine.support_)]
    result.n_support_ = np.array(counts, dtype=np.int32)
    result.support_vectors_ = np.empty((0, 0)) if kernel == "precomputed" else vectors
    result.dual_coef_, result.intercept_ = sign * coef, sign * machine._intercept_
    for name in _PROBABILITIES:
        setattr(result, name, np.array(getattr(machine, name)))
    result._decision_range = None
    result.n_selections_, result.privacy_guarantee_ = 0, None
    result._expansion()
    return result


def _with_settings_of(machine: Any, target: type[Any], source: type[Any]) -> Any:
    """Return a new machine of the target class with the settings that both classes have."""
    common = set(target._get_param_names()) & set(source._get_param_names())
    return target(**{name: getattr(machine, name) for name in common})


def _copy_attributes(machine: Any, result: Any) -> None:
    for name in _KEPT_BY_BOTH:
        if hasattr(machine, name):
            setattr(result, name, copy.copy(getattr(machine, name)))


def _their_csr(vectors: Any) -> Any:
    if vectors.nnz > _MOST_ENTRIES:
        raise ValueError(
            f"scikit-learn's machines hold sparse support vectors of at most {_MOST_ENTRIES} "
            f"entries, and these are {vectors.nnz}"
        )
    indices, indptr = vectors.indices.astype(np.int32), vectors.indptr.astype(np.int32)
    return sp.csr_matrix((vectors.data.astype(np.float64), indices, indptr), shape=vectors.shape)


def _full_csr(table: NDArray[np.float64]) -> Any:
    """Return a table as CSR, zeros stored."""
    rows, columns = table.shape
    indices = np.tile(np.arange(columns, dtype=np.int32), rows)
    indptr = np.arange(rows + 1, dtype=np.int32) * columns
    return sp.csr_matrix((table.ravel(), indices, indptr), shape=table.shape)
