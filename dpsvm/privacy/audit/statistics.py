"""What an audit measures on a released model: numbers that anyone who has the model can compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from dpsvm._arrays import Array

Statistic = Callable[[Any, Array], ArrayLike]

_LARGEST = 1e300  # so that the difference of two values is a number
_MOST_PARAMETERS = 2048


@dataclass(frozen=True, eq=False)
class Meter:
    """Measures models on one record.

    >>> from sklearn.svm import LinearSVC
    >>> model = LinearSVC().fit([[-1.0, 0.0], [1.0, 0.0]], [0, 1])
    >>> meter = Meter(row=np.array([[2.0, 0.0]]), record=np.array([2.0, 0.0]))
    >>> meter.names(model)[:2]
    ['weights along the record', 'weights along the record over their length']
    """

    row: Any
    """The record as the model takes rows, [1, features]."""
    record: Array
    """The same, [features]."""
    column: int | None = None
    """The feature that only the record has."""
    own: Statistic | None = None
    """The caller's statistic, a function of model and record: one number or several."""

    def names(self, model: Any) -> list[str]:
        """What can be measured on models like this one."""
        names = [name for group in self._groups(model) for name in group]
        if not names:
            raise ValueError(
                f"{type(model).__name__} has no coef_, decision_function, predict_proba or "
                "numeric predict to measure: give a statistic"
            )
        return names

    def measure(self, model: Any, names: Sequence[str]) -> list[float]:
        """The named statistics, from -1e300 to 1e300; what is no number becomes the least."""
        found: dict[str, float] = {}
        for group in self._groups(model):
            found |= group
            if found.keys() >= set(names):
                break
        missing = [name for name in names if name not in found]
        if missing:
            raise ValueError(f"a model has no {missing[0]!r}, which others had")
        # Any fixed answer for NaN keeps the statistic a function of the released model.
        values = np.nan_to_num([found[name] for name in names], nan=-_LARGEST)
        return [float(value) for value in values.clip(-_LARGEST, _LARGEST)]

    def parameters(self, model: Any) -> list[float]:
        """Coefficients and intercepts; none if too many, or if a statistic is given."""
        if self.own is not None or not hasattr(model, "coef_"):
            return []
        weights, intercepts = _linear(model)
        if weights.size + intercepts.size > _MOST_PARAMETERS:
            return []
        return [*weights.ravel().tolist(), *intercepts.tolist()]

    def _groups(self, model: Any) -> Iterator[dict[str, float]]:
        if self.own is not None:
            yield _numbered("statistic", self.own(model, self.record))
            return
        if hasattr(model, "coef_"):
            yield self._weights(model)
        yield _decisions(model, self.row)

    def _weights(self, model: Any) -> dict[str, float]:
        weights, intercepts = _linear(model)
        length = np.linalg.norm(weights, axis=1)
        found: dict[str, float] = {}
        if weights.shape[1] == len(self.record):
            along = weights @ self.record
            found |= _numbered("weights along the record", along)
            safe = np.where(length > 0.0, length, 1.0)
            found |= _numbered("weights along the record over their length", along / safe)
            if self.column is not None:
                unique = weights[:, self.column]
                found[nonzeros_of(self.column)] = float(np.count_nonzero(unique))
                found |= _numbered(f"weight of feature {self.column + 1}", unique)
        found |= _numbered("length of the weights", length)
        return found | _numbered("intercept", intercepts)


def nonzeros_of(column: int) -> str:
    """The name of the statistic that tells whether a feature has a weight.

    >>> nonzeros_of(13)
    'number of nonzeros in the weight of feature 14'
    """
    return f"number of nonzeros in the weight of feature {column + 1}"


def _linear(model: Any) -> tuple[Array, Array]:
    """Weights [outputs, features] and intercepts [outputs or 0]."""
    intercepts = np.asarray(getattr(model, "intercept_", ()), dtype=np.float64).ravel()
    return np.atleast_2d(_dense(model.coef_)), intercepts


def _dense(part: Any) -> Array:
    return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)


def _decisions(model: Any, row: Any) -> dict[str, float]:
    if hasattr(model, "decision_function"):
        return _numbered("decision value at the record", model.decision_function(row))
    if hasattr(model, "predict_proba"):
        probability = np.asarray(model.predict_proba(row), dtype=np.float64)
        return _numbered("probability at the record", probability)
    if hasattr(model, "predict"):
        predicted = np.asarray(model.predict(row))
        if predicted.dtype.kind in "biuf":
            return _numbered("prediction at the record", predicted)
    return {}


def _numbered(name: str, values: ArrayLike) -> dict[str, float]:
    given = np.asarray(values, dtype=np.float64).ravel()
    if len(given) == 1:
        return {name: float(given[0])}
    return {f"{name} (output {k})": float(value) for k, value in enumerate(given)}


def weights_are_sums_of_rows(model: Any, column: int) -> bool:
    """Whether the weights are a combination of training rows, all of them 0 in one feature.

    Then the weight of that feature is exactly 0, whatever the coefficients: no draw can change it.

    >>> from sklearn.svm import SVC
    >>> model = SVC(kernel="linear").fit([[-1.0, 0.0], [1.0, 0.0]], [0, 1])
    >>> weights_are_sums_of_rows(model, 1), weights_are_sums_of_rows(model, 0)
    (True, False)
    """
    if not all(hasattr(model, name) for name in ("coef_", "dual_coef_", "support_vectors_")):
        return False
    weights, coefficients, rows = map(
        _dense, (model.coef_, model.dual_coef_, model.support_vectors_)
    )
    if coefficients.shape[0] != 1 or rows.shape[1:] != weights.shape[1:] or not len(rows):
        return False
    combined = bool(np.allclose(coefficients @ rows, weights, rtol=1e-9, atol=1e-12))
    return combined and not rows[:, column].any()
