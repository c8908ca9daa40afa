"""Classification with C or nu."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsvm._constructors import but_for
from dpsvm._sklearn import PROBABILITY_DEFAULT
from dpsvm.svm.base import RandomState, constraints, keeps_its_parameters
from dpsvm.svm.classifier import BaseSVC
from dpsvm.svm.fitted import Kernel

OF_CLASSES = ("probability", "class_weight", "decision_function_shape", "break_ties")
"""Parameters that a machine without classes does not have."""


class SVC(BaseSVC):
    """C-support vector classification.

    Parameters, defaults, fitted attributes and results are those of :class:`sklearn.svm.SVC`.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin violation.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        The kernel. A callable takes two collections of rows and returns their kernel matrix.
    degree : int, default=3
        Degree of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the rbf, poly and sigmoid kernels: "scale" is 1 / (n_features * X.var()),
        "auto" is 1 / n_features.
    coef0 : float, default=0.0
        Constant term of the poly and sigmoid kernels.
    shrinking : bool, default=True
        Whether to set aside variables that look settled.
    probability : bool, default=False
        Whether to fit Platt's sigmoids for ``predict_proba``: to the decisions of five folds, which
        are scikit-learn's own for an int as ``random_state``. From scikit-learn 1.9 on it warns as
        there, that the parameter will be removed, and the default is "deprecated", which is False.
    tol : float, default=1e-3
        The fit stops when the optimality gap is below this.
    cache_size : float, default=200
        Memory for kernel rows, in MB.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" is n_samples / (n_classes * samples of the class).
    verbose : bool, default=False
        Show progress on standard error.
    max_iter : int, default=-1
        Most iterations for each pair of classes; -1 for no limit. A fit warns when it has taken ten
        million, and goes on; one that is proved to get no further ends as "stalled".
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With three or more classes, whether ``decision_function`` gives a column per class or per
        pair of classes. Training is always one against one.
    break_ties : bool, default=False
        Whether ``predict`` parts classes of equal votes by ``decision_function``.
    random_state : int, RandomState or None, default=None
        Makes the folds of ``probability`` and the selectors that draw repeatable.
    solver : {"smo", "decomposition"}, default="smo"
        "smo" follows LIBSVM step by step. "decomposition" keeps the weight vector and solves for a
        few hundred variables at a time: for ``kernel="linear"`` and ``selector="wss2"`` only, it
        reaches the same optimum, to the same ``tol``, in less time on many or sparse rows;
        ``shrinking`` does not apply to it.
    selector : str, default="wss2"
        The rule that picks the next pair of variables, one of ``dpsvm.svm.selectors.SELECTORS``.
        "dpwss" carries no privacy guarantee.
    sigma, selection_epsilon : float, default=0.5, 1.0
        Numbers that some selectors read; ``dpsvm.svm.selectors.NUMBERS`` tells what each does.
    time_limit : float or None, default=None
        Most seconds for the fit.
    n_jobs : int or None, default=None
        Threads: None for OMP_NUM_THREADS or else all cores, -1 for all cores. It changes the time
        a fit takes, never its result.
    warm_start : bool, default=False
        Whether ``fit`` begins with the coefficients of the last one, for as many rows and the same
        classes; C, the kernel and the targets may differ. Otherwise it begins at zero, as LIBSVM.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Factors of C by class.
    support_ : ndarray of shape (n_SV,)
        Training rows that are support vectors, class by class.
    support_vectors_ : {ndarray, sparse matrix} of shape (n_SV, n_features)
        Those rows; empty for a precomputed or callable kernel.
    n_support_ : ndarray of shape (n_classes,)
        Support vectors of each class.
    dual_coef_ : {ndarray, sparse matrix} of shape (n_classes - 1, n_SV)
        Their coefficients, in LIBSVM's layout.
    intercept_ : ndarray of shape (n_pairs,)
        Constants of the decision functions.
    coef_ : {ndarray, sparse matrix} of shape (n_pairs, n_features)
        Weights of the features, for the linear kernel only.
    probA_, probB_ : ndarray of shape (n_pairs,)
        Slopes and offsets of the sigmoids; empty without ``probability``.
    fit_status_ : int
        0 if every pair, and every fold of ``probability``, was solved to ``tol``, otherwise 1.
    n_iter_ : ndarray of shape (n_pairs,)
        Iterations for each pair of classes.
    stop_reason_ : str, or ndarray of str for several pairs
        "stationary", "exhausted", "stalled", "max_iter", "time_limit" or "callback".
    dual_gap_, objective_ : float, or ndarray for several pairs
        Optimality gap and dual objective at the end.
    n_selections_ : int
        Randomised selections made.
    privacy_guarantee_ : None
        No privacy guarantee is attached.
    shape_fit_ : tuple of int
        Shape of the training data.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Features seen by ``fit``.

    Examples
    --------
    >>> from dpsvm import SVC
    >>> machine = SVC(kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> machine.predict([[0.5], [2.5]])
    array(['a', 'b'], dtype='<U1')
    >>> machine.support_, machine.stop_reason_
    (array([1, 2], dtype=int32), 'stationary')
    """

    _machine = "c-svc"
    _settings = (*BaseSVC._settings, "C")
    _parameter_constraints = BaseSVC._parameter_constraints | constraints("C")

    @keeps_its_parameters
    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool | str = PROBABILITY_DEFAULT,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: RandomState = None,
        solver: str = "smo",
        selector: str = "wss2",
        time_limit: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        **numbers: float,
    ) -> None: ...


class NuSVC(BaseSVC):
    """Nu-support vector classification: :class:`SVC` with nu in place of C.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: at most this fraction of the rows are margin errors, and at least this fraction
        are support vectors. An infeasible value raises ValueError in ``fit``.
    class_weight : dict, "balanced" or None, default=None
        Kept in ``class_weight_``, but as in LIBSVM without effect on this machine.

    The other parameters, and the attributes, are those of :class:`SVC`.

    Examples
    --------
    >>> from dpsvm import NuSVC
    >>> machine = NuSVC(kernel="linear", nu=0.5).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> machine.predict([[0.5], [2.5]])
    array([0, 1])
    """

    _machine = "nu-svc"
    _settings = (*BaseSVC._settings, "nu")
    _parameter_constraints = BaseSVC._parameter_constraints | constraints("nu")
    _one_class_left = (
        "specified nu is infeasible: all samples with positive weights belong to the same class"
    )

    __init__ = but_for(SVC.__init__, "C", nu=0.5)
