"""Novelty detection."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin, _fit_context

from dpsvm._arrays import Array
from dpsvm._constructors import but_for
from dpsvm.svm.base import BaseSVM, Rows, constraints
from dpsvm.svm.regression import SVR


class OneClassSVM(OutlierMixin, BaseSVM):  # type: ignore[misc]
    """One-class support vector machine: finds rows unlike those it was fitted on.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: at most this fraction of the training rows lie outside, and at least this
        fraction are support vectors.

    The other parameters, and the attributes, are those of :class:`SVR`, and ``offset_``, the
    opposite of ``intercept_``.

    Examples
    --------
    >>> from dpsvm import OneClassSVM
    >>> machine = OneClassSVM(gamma="auto").fit([[0.0], [0.44], [0.45], [0.46], [1.0]])
    >>> machine.predict([[0.0], [0.45], [1.0]])
    array([-1,  1, -1])
    """

    _machine = "one-class"
    _settings = (*BaseSVM._settings, "nu")
    _parameter_constraints = BaseSVM._parameter_constraints | constraints("nu")

    __init__ = but_for(SVR.__init__, "C", "epsilon", nu=0.5)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the region where most rows lie.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the kernel matrix.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row. Rows of weight zero or less are left out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit(X, None, sample_weight)
        self.offset_ = -self.intercept_
        return self

    def _targets(self, y: Any, kept: Rows | None) -> None:
        return None

    def decision_function(self, X: Any) -> Array:
        """Return the signed distance of each row, positive for inliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; for ``kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            ``score_samples(X) - offset_``.
        """
        return self._decisions(X)[:, 0]

    def score_samples(self, X: Any) -> Array:
        """Return the scores of the rows X: ``decision_function(X) + offset_``."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return +1 for each inlier and -1 for each outlier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; for ``kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            +1 or -1.
        """
        return np.where(self.decision_function(X) > 0, 1, -1).astype(np.intp)
