"""A fitted machine in scikit-learn's object, and what that object keeps.

As ``sklearn/svm/_base.py`` has it, ``_dual_coef_`` and ``_intercept_`` have LIBSVM's signs,
``dual_coef_`` and ``intercept_`` the opposite ones for two classes. A sparse ``_dual_coef_`` stores
its zeros, since LIBSVM is given its entries as a full table.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dpsvm._sklearn import PROBABILITY_DEPRECATED
from dpsvm.svm.parameters import CLASSIFIERS

PROBABILITIES = ("_probA", "_probB")
TRAINING_ROWS = "_BaseLibSVM__Xfit"  # where scikit-learn keeps what a callable kernel reads

_NAMES = {
    "c-svc": "SVC",
    "nu-svc": "NuSVC",
    "one-class": "OneClassSVM",
    "epsilon-svr": "SVR",
    "nu-svr": "NuSVR",
}
_KEPT_BY_BOTH = (
    "support_", "shape_fit_", "fit_status_", "n_iter_", "classes_", "class_weight_", "offset_",
    "n_features_in_", "feature_names_in_",
)  # fmt: skip
_MOST_ENTRIES = np.iinfo(np.int32).max


def their_class(name: str) -> type[Any]:
    """Return scikit-learn's own class of a name, even while dpsvm's is in its place.

    >>> their_class("SVC").__module__
    'sklearn.svm._classes'
    """
    from sklearn.svm import _classes

    theirs: type[Any] = getattr(_classes, name)
    return theirs


def to_sklearn(machine: Any) -> Any:
    """Return what ``as_sklearn()`` of a fitted machine of dpsvm gives."""
    check_is_fitted(machine)
    expansion, fitted = machine._expansion(), machine._parameters
    result = with_settings_of(machine, their_class(_NAMES[fitted.machine]))
    result.kernel = machine._kernel_function or fitted.kernel
    result.degree, result.coef0, result._gamma = fitted.degree, fitted.coef0, fitted.gamma

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
    sign = machine._sign
    result._dual_coef_, result._intercept_ = coef, 0.0 - expansion.rho
    result.dual_coef_, result.intercept_ = sign * coef, sign * result._intercept_
    result._num_iter = np.atleast_1d(result.n_iter_)
    for name in PROBABILITIES:
        setattr(result, name, np.array(getattr(machine, name, ()), dtype=np.float64))
    if PROBABILITY_DEPRECATED:
        result._effective_probability = result._probA.size > 0
    if machine._kernel_function is not None:
        setattr(result, TRAINING_ROWS, machine._kernel_rows)
    return result


def with_settings_of(machine: Any, target: type[Any]) -> Any:
    """Return a machine of the target class with the settings and attributes that both have."""
    common = [name for name in target._get_param_names() if hasattr(machine, name)]
    result = target(**{name: getattr(machine, name) for name in common})
    for name in _KEPT_BY_BOTH:
        if hasattr(machine, name):
            setattr(result, name, copy.copy(getattr(machine, name)))
    return result


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
