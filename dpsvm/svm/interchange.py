"""Machines that scikit-learn has fitted, as dpsvm's own; ``as_sklearn()`` is the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from dpsvm.svm.classification import SVC, NuSVC
from dpsvm.svm.one_class import OneClassSVM
from dpsvm.svm.parameters import CLASSIFIERS, Parameters
from dpsvm.svm.regression import SVR, NuSVR
from dpsvm.svm.sklearn_form import PROBABILITIES, TRAINING_ROWS, their_class, with_settings_of

_OURS: tuple[type[Any], ...] = (SVC, NuSVC, OneClassSVM, SVR, NuSVR)


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
    result = with_settings_of(machine, ours)
    function = machine.kernel if callable(machine.kernel) else None
    kernel = "precomputed" if function else machine.kernel
    settings = {name: getattr(result, name) for name in ours._settings}
    result._parameters = Parameters(
        machine=ours._machine, kernel=kernel, gamma=machine._gamma, **settings
    )
    result._kernel_function = function
    result._kernel_rows = getattr(machine, TRAINING_ROWS) if function else None
    sign = result._sign
    vectors, coef = machine.support_vectors_.copy(), machine._dual_coef_
    if sp.issparse(coef):
        coef = type(vectors)(coef.toarray())
    # Without classes, scikit-learn's count of a sparse fit may be left uninitialised.
    counts = machine.n_support_ if ours._machine in CLASSIFIERS else [len(machine.support_)]
    result.n_support_ = np.array(counts, dtype=np.int32)
    result.support_vectors_ = np.empty((0, 0)) if kernel == "precomputed" else vectors
    result.dual_coef_, result.intercept_ = sign * coef, sign * machine._intercept_
    for name in PROBABILITIES:
        setattr(result, name, np.array(getattr(machine, name)))
    result._decision_range = None
    result.n_selections_, result.privacy_guarantee_ = 0, None
    result._expansion()
    return result
