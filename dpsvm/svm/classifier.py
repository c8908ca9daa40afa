"""What the two classifiers share: labels, their weights, and decisions turned into labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state, compute_class_weight, deprecated
from sklearn.utils._param_validation import Hidden, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dpsvm._arrays import Array
from dpsvm._sklearn import PROBABILITY_DEPRECATED, one_of
from dpsvm.svm.base import BaseSVM, Rows
from dpsvm.svm.calibration import pair_sigmoids
from dpsvm.svm.probability import class_probabilities
from dpsvm.svm.solving import CoreFit
from dpsvm.svm.voting import one_vs_rest, winners


def _deprecated(name: str) -> Callable[[Any], Any]:
    """Return what marks a fitted attribute as deprecated, where scikit-learn's own is."""
    if not PROBABILITY_DEPRECATED:
        return lambda attribute: attribute
    mark: Callable[[Any], Any] = deprecated(  # scikit-learn's words: filters look for them
        f"Attribute `{name}` was deprecated in version 1.9 and will be removed in 1.11 as the "
        "`probability=True` option for SVC and NuSVC was deprecated and will be removed in 1.11."
    )
    return mark


def _offers_probabilities(machine: Any) -> bool:
    if machine.probability == "deprecated" or not machine.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class BaseSVC(ClassifierMixin, BaseSVM):  # type: ignore[misc]
    """A support vector classifier: one machine for every pair of classes."""

    class_weight: Mapping[Any, float] | str | None
    decision_function_shape: str
    break_ties: bool
    probability: bool | str

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSVM._parameter_constraints,
        "class_weight": [one_of("balanced"), dict, None],
        "decision_function_shape": [one_of("ovr", "ovo")],
        "break_ties": ["boolean"],
        "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
    }

    def _targets(self, y: Any, kept: Rows | None) -> Array:
        """Set ``classes_`` and ``class_weight_`` and return each row's position in ``classes_``."""
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(classes)} class"
            )
        weights = np.ones(len(classes))
        if self.class_weight is not None:
            weights = compute_class_weight(self.class_weight, classes=classes, y=y)
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise ValueError(f"class_weight must be positive and finite, got {weights}")
        if kept is not None:
            present, codes = np.unique(codes[kept], return_inverse=True)
            if len(present) < 2:
                raise ValueError(self._one_class_left)
            classes, weights = classes[present], weights[present]
        self.classes_ = classes
        self.class_weight_ = weights.astype(np.float64, copy=False)
        return codes.astype(np.float64)

    _one_class_left: ClassVar[str] = (
        "Invalid input - all samples with positive weights belong to the same class."
    )

    def decision_function(self, X: Any) -> Array:
        """Return how strongly each row speaks for the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; for ``kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        decisions : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            For two classes one number, positive for ``classes_[1]``. For more, a column per class
            (``decision_function_shape="ovr"``) or per pair of classes (``"ovo"``).
        """
        decisions = self._decisions(X)
        if len(self.classes_) == 2:
            return -decisions[:, 0]
        if self.decision_function_shape == "ovr":
            return one_vs_rest(decisions, len(self.classes_))
        return decisions

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; for ``kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The class with the most votes, the first among equals unless ``break_ties``.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        decisions = self._decisions(X)
        n_classes = len(self.classes_)
        codes: NDArray[np.intp]
        if self.break_ties and n_classes > 2:
            codes = one_vs_rest(decisions, n_classes).argmax(axis=1)
        else:
            codes = winners(decisions, n_classes)
        return self.classes_[codes]

    @available_if(_offers_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, by the sigmoids that ``probability=True`` fits.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; for ``kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``. The likeliest class need not be
            the one that ``predict`` returns.
        """
        decisions = self._decisions(X)
        if not len(self._probA):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        return class_probabilities(decisions, self._probA, self._probB, couple_two=True)

    @available_if(_offers_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of what :meth:`predict_proba` returns for the rows X."""
        logarithms: Array = np.log(self.predict_proba(X))
        return logarithms

    @_deprecated("probA_")  # type: ignore[prop-decorator]
    @property
    def probA_(self) -> Array:
        """Slopes of the sigmoids, one per pair of classes; empty without ``probability``."""
        return self._probA

    @_deprecated("probB_")  # type: ignore[prop-decorator]
    @property
    def probB_(self) -> Array:
        """Offsets of the sigmoids, one per pair of classes; empty without ``probability``."""
        return self._probB

    def _notices(self) -> list[tuple[str, type[Warning]]]:
        notices = super()._notices()
        if PROBABILITY_DEPRECATED and self.probability != "deprecated":
            name = type(self).__name__
            notice = (  # scikit-learn's words: filters look for them
                "The `probability` parameter was deprecated in 1.9 and will be removed in version "
                f"1.11. Use `CalibratedClassifierCV({name}(), ensemble=False)` instead of "
                f"`{name}(probability=True)`"
            )
            notices.append((notice, FutureWarning))
        return notices

    def _calibrate(
        self,
        solve: CoreFit,
        problem: Any,
        targets: Any,
        kept: Rows | None,
        weight: Array | None,
    ) -> None:
        self._probA = self._probB = np.empty(0)
        if self.probability == "deprecated" or not self.probability:
            return
        self._probA, self._probB = pair_sigmoids(
            solve,
            problem,
            np.arange(len(targets)) if kept is None else kept,
            targets,
            weight=weight,
            class_weight=self.class_weight_,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
        )
