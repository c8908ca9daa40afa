"""What the estimators of the distributed families have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from dpsvm._arrays import Array
from dpsvm._sklearn import CallbackSupportMixin, with_callbacks
from dpsvm.distributed.callbacks import Rounds, Tick
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import PrivateEstimator, Release, tell


class DistributedEstimator(PrivateEstimator, CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that can be fitted privately and hears callbacks."""


class AgreedEstimator(DistributedEstimator):
    """Fitted in this process by the members of an agreement, and by its lead if they need one.

    A family has

        _agree(X, y, owners)         the agreement, the lead or None, and what each member holds
        _held_out(X, y, agreed)      data of ``evaluate_on`` as its recorder takes them
        _recorder(agreed, test, ..)  what notes a round in a history
        _run(lead, members, watch)   the loop; ``watch`` wants to know whether that was all
        _keep(agreed, lead, members, ending, release)
    """

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit(
        self,
        X: Any,
        y: Any,
        owners: Any,
        evaluate_on: tuple[Any, Any] | None,
        tick: Tick | None = None,
        *,
        measured: bool = False,
    ) -> None:
        """Fit, and call ``tick`` after every round. What can be refused is, before a charge."""
        self._forget()
        agreed, lead, held = self._agree(X, y, owners)
        test, private = self._evaluation(evaluate_on, agreed), self._private
        release = None
        if agreed.calibration is not None:
            release = Release.of(self, agreed.calibration, self.privacy)
        noise = Noise(self.random_state) if release is None else release.noise
        members = [agreed.member(place, own, noise) for place, own in enumerate(held)]
        recorder = self._recorder(agreed, test, private=private, measured=measured or not private)
        tasks = Rounds(self, agreed.rounds, {"X": X, "y": y}, tick)
        if release is not None:
            release.charge()

        def watch(over: bool, *seen: Any) -> bool:
            """A callback may end the run, unless it is private: what it goes by may be, too."""
            if self.track:
                recorder(*seen)
            stop = tasks.end() and not private
            if not over and not stop:
                tasks.begin()
            return stop

        tasks.begin()
        ending = self._run(lead, members, watch)
        self.history_ = recorder.history
        tell(self, release)
        self._keep(agreed, lead, members, ending, release)
        tasks.close()

    def _evaluation(self, data: Any, agreed: Any) -> Any:
        """The pair ``evaluate_on``, which is noted where a history is kept."""
        if data is None:
            return None
        if not self.track:
            raise ValueError("evaluate_on is noted in the history, which track=False leaves out")
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise ValueError("evaluate_on must be a pair (X, y)")
        return self._held_out(*data, agreed)


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
        """Return one number per sample, positive for ``classes_[1]``.

        Parameters
        ----------
        X : table, or list of tables, as in ``fit``
            The samples.

        Returns
        -------
        decisions : ndarray of shape (n_samples,)
            The sum of the products of weights and columns, and the intercept.
        """
        return np.asarray(self._decisions(X))

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


class LinearRegressor(RegressorMixin):  # type: ignore[misc]
    """Predicts by weights and columns."""

    def predict(self, X: Any) -> Array:
        """Return the predictions.

        Parameters
        ----------
        X : table, or list of tables, as in ``fit``
            The samples.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            One number per sample.
        """
        return np.asarray(self._decisions(X))
