"""Labels and targets, checked; two classes as signs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from dpsvm._arrays import Array


def checked_numbers(y: Any) -> Array:
    """Finite numbers, one for each sample.

    >>> checked_numbers([1, float("nan")])
    Traceback (most recent call last):
    ...
    ValueError: y must hold finite numbers: it has NaN or infinity
    """
    if y is None:
        raise ValueError("y must be given: requires y to be passed, but the target y is None")
    numbers = np.asarray(column_or_1d(y, warn=True), dtype=np.float64)
    if not np.all(np.isfinite(numbers)):
        raise ValueError("y must hold finite numbers: it has NaN or infinity")
    return numbers


def checked_labels(y: Any, name: str = "y") -> NDArray[Any]:
    """Labels of samples, one for each.

    >>> checked_labels([0.5, 1.5])
    Traceback (most recent call last):
    ...
    ValueError: Unknown label type: continuous. Two classes are needed
    """
    labels = column_or_1d(y, warn=True)
    kind = type_of_target(labels, input_name=name, raise_unknown=True)
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"Unknown label type: {kind}. Two classes are needed")
    return np.asarray(labels)


def joined(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The labels of all the nodes, which must be of one kind.

    >>> joined([np.array([1, 0]), np.array(["1", "0"])])
    Traceback (most recent call last):
    ...
    ValueError: the labels of node 1 are of another kind than those of node 0
    """
    kinds = [_kind(own) for own in labels]
    for node, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise ValueError(f"the labels of node {node} are of another kind than those of node 0")
    return np.concatenate(labels)


def _kind(labels: NDArray[Any]) -> str:
    return "number" if labels.dtype.kind in "biuf" else labels.dtype.kind


def two_classes(labels: NDArray[Any], classes: Any) -> NDArray[Any]:
    """The two classes: the public ones, or else those of the labels.

    >>> two_classes(np.array([1, 0, 1]), None)
    array([0, 1])
    >>> two_classes(np.array([1, 0, 7]), [0, 1])
    Traceback (most recent call last):
    ...
    ValueError: y holds a label that is not in classes = [0, 1]
    """
    if classes is None:
        found = np.unique(labels)
        if len(found) != 2:
            raise ValueError(
                f"Only binary classification is supported: y must hold two classes, got "
                f"{len(found)} class{'es' if len(found) > 1 else ''}"
            )
        return found
    try:
        given = np.asarray(classes)
        found = np.unique(given)
    except (TypeError, ValueError):
        given = found = np.array([])
    if found.shape != (2,) or given.shape != (2,):
        raise ValueError(f"classes must be two different labels, got {classes!r}")
    if _kind(found) != _kind(labels):
        raise ValueError(f"y holds labels of another kind than classes = {found.tolist()!r}")
    if not np.all(np.isin(labels, found)):
        raise ValueError(f"y holds a label that is not in classes = {found.tolist()!r}")
    return found


def signs_of(labels: NDArray[Any], classes: NDArray[Any]) -> Array:
    """+1 for the second class, -1 for the first.

    >>> signs_of(np.array(["a", "b"]), np.array(["a", "b"]))
    array([-1.,  1.])
    """
    return np.where(labels == classes[1], 1.0, -1.0)


def known_signs(y: Any, classes: NDArray[Any]) -> Array:
    """The signs of labels of which none is new, as those of ``evaluate_on`` must be.

    >>> known_signs(["b", "c"], np.array(["a", "b"]))
    Traceback (most recent call last):
    ...
    ValueError: evaluate_on holds the label 'c', which is not in ['a', 'b']
    """
    labels = column_or_1d(y)
    unknown = labels[~np.isin(labels, classes)]
    if len(unknown):
        raise ValueError(
            f"evaluate_on holds the label {unknown.tolist()[0]!r}, which is not in "
            f"{classes.tolist()!r}"
        )
    return signs_of(labels, classes)
