"""Regression with epsilon or nu."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin

from dpsvm._arrays import Array
from dpsvm._constructors import but_for
from dpsvm.svm.base import BaseSVM, RandomState, constraints, keeps_its_parameters
from dpsvm.svm.classification import OF_CLASSES, NuSVC
from dpsvm.svm.fitted import Kernel


class BaseSVR(RegressorMixin, BaseSVM):  # type: ignore[misc]
    """A support vector regressor."""

    def predict(self, X: Any) -> Array:
        """Return the predicted number of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; for ``kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            The predictions.
        """
        return self._decisions(X)[:, 0]


class SVR(BaseSVR):
    """Epsilon-support vector regression.

    Parameters
    ----------
    C : float, default=1.0
        Cost of an error beyond the tube.
    epsilon : float, default=0.1
        Half width of the tube within which errors cost nothing.

    The other parameters, and the attributes, are those of :class:`SVC` as far as they concern one
    machine without classes; ``n_iter_`` is an int.

    Examples
    --------
    >>> from dpsvm import SVR
    >>> machine = SVR(kernel="linear", C=10.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> machine.predict([[1.0], [3.0]]).round(2)
    array([1. , 2.8])
    """

    _machine = "epsilon-svr"
    _settings = (*BaseSVR._settings, "C", "epsilon")
    _parameter_constraints = BaseSVR._parameter_constraints | constraints("C", "epsilon")

    @keeps_its_parameters
    def __init__(
        self,
        *,
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        random_state: RandomState = None,
        solver: str = "smo",
        selector: str = "wss2",
        time_limit: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        **numbers: float,
    ) -> None: ...


class NuSVR(BaseSVR):
    """Nu-support vector regression: :class:`SVR` with nu in place of epsilon.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: at most this fraction of the rows are errors, and at least this fraction are
        support vectors.
    C : float, default=1.0
        Cost of an error beyond the tube.

    The other parameters, and the attributes, are those of :class:`SVR`.

    Examples
    --------
    >>> from dpsvm import NuSVR
    >>> machine = NuSVR(kernel="linear", C=10.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> machine.predict([[1.0], [3.0]]).round(2)
    array([1., 3.])
    """

    _machine = "nu-svr"
    _settings = (*BaseSVR._settings, "C", "nu")
    _parameter_constraints = BaseSVR._parameter_constraints | constraints("C", "nu")

    __init__ = but_for(NuSVC.__init__, "nu", *OF_CLASSES, nu=0.5, C=1.0)
