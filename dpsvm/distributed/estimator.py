"""What the estimators of the distributed families have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from dpsvm._sklearn import CallbackSupportMixin
from dpsvm.privacy.release import PrivateEstimator

Array = NDArray[np.float64]


class DistributedEstimator(PrivateEstimator, CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that can be fitted privately and hears callbacks."""

    def _evaluated(self, data: Any) -> tuple[Any, Any] | None:
        """The pair ``evaluate_on``, which is noted where a history is kept."""
        if data is None:
            return None
        if not self.track:
            raise ValueError("evaluate_on is noted in the history, which track=False leaves out")
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise ValueError("evaluate_on must be a pair (X, y)")
        return data[0], data[1]


def _has_probabilities(model: Any) -> bool:
    if model.loss != "logistic":
        raise AttributeError(f"probabilities need loss='logistic', got {model.loss!r}")
    return True


class BinaryClassifier(ClassifierMixin):  # type: ignore[misc]
    """Predicts by the sign of ``decision_function``, positive for ``classes_[1]``."""

    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def decision_function(self, X: Any) -> Array:
        """One number per sample."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each sample.

        Parameters
        ----------
        X : table, or list of tables, as in ``fit``
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            From ``classes_``.
        """
        decisions = self.decision_function(X)
        return np.asarray(self.classes_[(decisions > 0).astype(np.intp)])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of both classes, for the logistic loss alone.

        Parameters
        ----------
        X : table, or list of tables, as in ``fit``
            The samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            In the order of ``classes_``.
        """
        decisions = self.decision_function(X)
        return np.column_stack([expit(-decisions), expit(decisions)])
