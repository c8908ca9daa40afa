"""The fits that judge.py compares: dpsvm's, scikit-learn's and LIBSVM's own."""

from __future__ import annotations

import ctypes
import warnings
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench.fuzz.cases import AMPLE, CLASSIFIERS, Case, contained
from bench.fuzz.quadratic import Fitted, class_factors

HAS_LIBSVM = find_spec("libsvm") is not None
SECONDS = 20  # for a fit of ours
MAX_ITER = 2_000_000  # of scikit-learn's


def ours(case: Case, **changes: Any) -> Any:
    import dpsvm

    options: dict[str, Any] = {"time_limit": SECONDS, "n_jobs": case.n_jobs}
    options |= {"cache_size": case.cache_size} | case.options | case.params | changes
    if case.machine in CLASSIFIERS:
        options["decision_function_shape"] = "ovo"
    return getattr(dpsvm, case.machine)(**options)


def theirs(case: Case, gamma: float | None) -> Any:
    """With the gamma of ours: "scale" ends in other digits where the rows are sparse."""
    import sklearn.svm

    options = case.params | {"max_iter": MAX_ITER, "cache_size": AMPLE}
    if gamma is not None and "gamma" in case.params:
        options["gamma"] = gamma
    return getattr(sklearn.svm, case.machine)(**options)


def fitted_or_error(model: Any, X: Any, case: Case) -> tuple[Any, ValueError | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return model.fit(X, case.y, sample_weight=case.weight), None
        except ValueError as error:
            return None, error


def plain_rows(case: Case) -> Any:
    """For scikit-learn, in double precision: sparse, where it adds products up in LIBSVM's order.

    Dense rows it multiplies by BLAS, whose sums end in other digits. Of kernel values that are
    rounded to floats this changes next to none, but the diagonal is not rounded.
    """
    return contained(case.X, "C" if case.kernel == "precomputed" else "csr32", "float64")


def path_is_libsvms(case: Case) -> bool:
    """Whether scikit-learn's iterations can be asked for: the same start and the same bounds.

    - LIBSVM's nu times the sum of the bounds is a sum of products in scikit-learn. Where it ends in
      other digits, variables that one has at a bound are just off it in the other.
    - A sample weight, which LIBSVM knows nothing of, and a class weight make different last digits
      of a bound, depending on which is multiplied first.

    Ties are no exception: the last of equals is taken by all. Values of exp may differ by a unit of
    double precision; rounded to floats, one in hundreds of millions does.
    """
    if not (case.follows_libsvm and case.dtype == "float64"):
        return False
    weight = np.ones(len(case.y)) if case.weight is None else case.weight
    codes = np.zeros(len(case.y), dtype=int)
    if case.machine in CLASSIFIERS:
        classes, codes = np.unique(case.y, return_inverse=True)
        factor, cost = class_factors(case, classes, codes)[codes], case.params.get("C", 1.0)
        if not np.array_equal(weight * factor * cost, weight * (factor * cost)):
            return False
    return "nu" not in case.params or _same_total(case, weight, codes)


def _same_total(case: Case, weight: np.ndarray, codes: np.ndarray) -> bool:
    nu, cost = case.params["nu"], case.params.get("C", 1.0)
    for pair in combinations(range(int(codes.max()) + 1), 2) if codes.any() else [(0,)]:
        bounds = np.concatenate([weight[(codes == code) & (weight > 0)] for code in pair])
        if _one_by_one(bounds * cost * nu) != cost * nu * _one_by_one(bounds):
            return False
    return True


def _one_by_one(numbers: np.ndarray) -> float:
    """Their sum, rounded after each: Python's own sum keeps what is lost, from 3.12 on."""
    return float(np.cumsum(numbers)[-1])


def libsvm_takes(case: Case) -> bool:
    return case.kernel != "precomputed" and case.weight is None


def libsvm(case: Case, gamma: float) -> Fitted:
    """The fit of libsvm-official: rows ordered so that classes are first met in sorted order."""
    from libsvm import svm

    machine = ("SVC", "NuSVC", "OneClassSVM", "SVR", "NuSVR").index(case.machine)
    kernel = ("linear", "poly", "rbf", "sigmoid").index(case.kernel)
    flags: list[Any] = ["-q", "-s", machine, "-t", kernel, "-g", repr(float(gamma))]
    names = {"C": "-c", "nu": "-n", "epsilon": "-p", "tol": "-e", "degree": "-d", "coef0": "-r"}
    for name, flag in names.items():
        if name in case.params:
            flags += [flag, repr(case.params[name])]
    flags += ["-h", int(case.params["shrinking"])]
    classifier = case.machine in CLASSIFIERS
    y, order = case.y, np.arange(len(case.y))
    if classifier:
        classes, first, codes = np.unique(case.y, return_index=True, return_inverse=True)
        order = np.concatenate([first, np.setdiff1d(order, first)])
        y = codes.astype(np.float64)
        for code, factor in enumerate(class_factors(case, classes, codes)):
            flags += [f"-w{code}", repr(float(factor))]
    problem = svm.svm_problem(y[order], sp.csr_matrix(case.X)[order])
    parameter = svm.svm_parameter(" ".join(map(str, flags)))
    pointer = svm.libsvm.svm_train(problem, parameter)
    model, as_array = pointer.contents, np.ctypeslib.as_array
    count, lines = model.l, model.nr_class - 1
    coef = [as_array(model.sv_coef[k], (count,)).copy() for k in range(lines)] if count else []
    support = order[as_array(model.sv_indices, (count,)) - 1] if count else np.array([], dtype=int)
    sizes = as_array(model.nSV, (lines + 1,)).copy() if classifier else np.array([count])
    pairs = len(list(combinations(range(lines + 1), 2)))
    rho = as_array(model.rho, (max(pairs, 1),)).copy()
    svm.libsvm.svm_free_and_destroy_model(ctypes.byref(pointer))
    return Fitted(support, np.array(coef).reshape(lines, count), sizes, -rho)
