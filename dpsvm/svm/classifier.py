"""What the two classifiers share: labels, their weights, and decisions turned into labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dpsvm.svm.base import BaseSVM, Rows
from dpsvm.svm.fitted import Floats
from dpsvm.svm.voting import one_vs_rest, winners


class BaseSVC(ClassifierMixin, BaseSVM):  # type: ignore[misc]
    """A support vector classifier: one machine for every pair of classes."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSVM._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
    }

    def __init__(
        self,
        *,
        class_weight: Mapping[Any, float] | str | None,
        decision_function_shape: str,
        break_ties: bool,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties

    def _targets(self, y: Any, kept: Rows | None) -> Floats:
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

    def decision_function(self, X: Any) -> Floats:
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
