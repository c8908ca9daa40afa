"""Two data sets that differ in one record, and the record: the worlds an audit tells apart."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from dpsvm._arrays import Array
from dpsvm.names import OF_RECORDS
from dpsvm.privacy.guarantee import check_neighbouring

WITH, WITHOUT = "with", "without"
"""The two worlds."""

CANARIES = ("mislabelled", "natural", "unique-feature")
"""The records that an audit knows how to make or find."""

NEIGHBOURING = OF_RECORDS
"""The relations between neighbouring data sets that can be audited record by record."""

_WIDE = 1000  # features beyond which influence is estimated one feature at a time


@dataclass(frozen=True, eq=False)
class Worlds:
    """Rows and labels ``with`` and ``without`` the record, in dicts by world.

    >>> worlds = make_worlds([[0.0, 1.0], [1.0, 0.0], [0.9, 0.1]], [-1, 1, 1])
    >>> worlds.record, worlds.label, worlds.X["with"].shape, worlds.X["without"].shape
    (array([1., 0.]), -1, (4, 2), (3, 2))
    """

    X: dict[str, Any]
    y: dict[str, NDArray[Any]]
    record: Array
    label: Any
    description: str
    column: int | None = None
    """The feature that no other record has."""

    @property
    def row(self) -> Any:
        """The record as rows of the same kind as the data."""
        return _like(self.X[WITH], self.record)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of both data sets."""
        digest = hashlib.sha256()
        for world in (WITH, WITHOUT):
            rows = self.X[world]
            sparse = sp.issparse(rows)
            parts = (rows.data, rows.indices, rows.indptr) if sparse else (rows,)
            digest.update(repr((rows.shape, self.y[world].tolist())).encode())
            for part in parts:
                digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:16]


def make_worlds(
    X: Any,
    y: ArrayLike,
    canary: str | tuple[ArrayLike, Any] = "mislabelled",
    *,
    neighbouring: str = "add-remove",
    feature_range: tuple[ArrayLike, ArrayLike] | None = None,
    record: int | None = None,
) -> Worlds:
    """The two worlds of a canary.

    ``mislabelled``: in the corner of the feature range on the side of one class, with the label of
    another. ``unique-feature``: the same in a column added to the data, 0 for everyone else.
    ``natural``: a record of the data. ``(x, label)``: the caller's own. Under ``add-remove`` one
    world has the record and the other lacks it; under ``replace`` the other has, in its place, the
    same row with another label (or, for the caller's own, the record of the data that was there).

    >>> worlds = make_worlds(np.eye(3), [0, 0, 1], "natural", record=1)
    >>> worlds.y["without"], worlds.description
    (array([0, 1]), 'record 1 of the data (counted from 0), labelled 0')
    """
    rows, labels = _checked(X, y)
    check_neighbouring(neighbouring, NEIGHBOURING)
    if record is not None and not 0 <= record < len(labels):
        raise ValueError(f"record must be from 0 to {len(labels) - 1}, got {record!r}")
    if canary is not None and not isinstance(canary, str):
        return _own(rows, labels, canary, neighbouring, record)
    if canary not in CANARIES:
        known = ", ".join(map(repr, CANARIES))
        raise ValueError(f"canary must be {known} or a pair (x, label), got {canary!r}")
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(f"the {canary} record needs two classes, got {len(classes)}")
    if canary == "natural":
        return _natural(rows, labels, classes, neighbouring, record)
    return _mislabelled(rows, labels, classes, canary, neighbouring, feature_range, record)


def _checked(X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
    rows = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
    labels = np.asarray(y)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"y must hold one label per row, got {labels.shape} for {rows.shape}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y holds NaN or infinity")
    return rows, labels


def _own(
    rows: Any,
    labels: NDArray[Any],
    canary: tuple[ArrayLike, Any],
    neighbouring: str,
    record: int | None,
) -> Worlds:
    try:
        given, label = canary
    except (TypeError, ValueError):
        raise ValueError(f"canary must be a kind or a pair (x, label), got {canary!r}") from None
    x = np.asarray(given, dtype=np.float64).ravel()
    if x.shape != (rows.shape[1],) or not np.isfinite(x).all():
        raise ValueError(f"the record must hold {rows.shape[1]} finite features, got {given!r}")
    description = f"the caller's own record, labelled {label}"
    if neighbouring == "add-remove":
        inside, outside = _added(rows, labels, x, label), (rows, labels)
    else:
        place = 0 if record is None else record
        inside, outside = _replaced(rows, labels, place, x, label), (rows, labels)
        description += f", in place of record {place}"
    return _worlds(inside, outside, x, label, description)


def _natural(
    rows: Any, labels: NDArray[Any], classes: NDArray[Any], neighbouring: str, record: int | None
) -> Worlds:
    [place] = most_influential(rows, labels, 1) if record is None else [record]
    x, label = _flat(rows[[place]]), labels[place]
    description = f"record {place} of the data (counted from 0), labelled {label}"
    if neighbouring == "add-remove":
        kept = np.arange(len(labels)) != place
        outside = rows[kept], labels[kept]
    else:
        other = classes[-1] if label != classes[-1] else classes[0]
        outside = _replaced(rows, labels, place, x, other)
        description += f"; without it, the same row labelled {other}"
    return _worlds((rows, labels), outside, x, label, description)


def _mislabelled(
    rows: Any,
    labels: NDArray[Any],
    classes: NDArray[Any],
    canary: str,
    neighbouring: str,
    feature_range: tuple[ArrayLike, ArrayLike] | None,
    record: int | None,
) -> Worlds:
    low, high = _limits(rows, feature_range)
    label, looks = classes[0], classes[-1]
    towards = _flat(rows[labels == looks].mean(axis=0)) - _flat(rows[labels == label].mean(axis=0))
    nearest_to_zero = np.clip(0.0, low, high)
    x = np.where(towards > 0, high, np.where(towards < 0, low, nearest_to_zero))
    twin, column = x, None
    description = f"a record within the feature range that looks like {looks}, labelled {label}"
    if canary == "unique-feature":
        column = rows.shape[1]
        largest = float(max(np.max(np.abs(low)), np.max(np.abs(high)))) or 1.0
        empty = np.zeros((rows.shape[0], 1), dtype=rows.dtype)
        if sp.issparse(rows):
            rows = type(rows)(sp.hstack([rows, type(rows)(empty)], format="csr"))
        else:
            rows = np.ascontiguousarray(np.hstack([rows, empty]))
        x, twin = np.append(x, largest), np.append(x, 0.0)
        description += f", with {largest:g} in feature {column + 1}, which is 0 for everyone else"
    if neighbouring == "add-remove":
        inside, outside = _added(rows, labels, x, label), (rows, labels)
    else:
        place = int(np.flatnonzero(labels == looks)[0]) if record is None else record
        inside = _replaced(rows, labels, place, x, label)
        outside = _replaced(rows, labels, place, twin, looks)
        description += f"; without it, the same row labelled {looks}"
        if column is not None:
            description += f" and 0 in feature {column + 1}"
    return _worlds(inside, outside, x, label, description, column)


def _worlds(
    inside: tuple[Any, NDArray[Any]],
    outside: tuple[Any, NDArray[Any]],
    record: Array,
    label: Any,
    description: str,
    column: int | None = None,
) -> Worlds:
    return Worlds(
        X={WITH: inside[0], WITHOUT: outside[0]},
        y={WITH: inside[1], WITHOUT: outside[1]},
        record=record,
        label=label.item() if isinstance(label, np.generic) else label,
        description=description,
        column=column,
    )


def _limits(rows: Any, feature_range: tuple[ArrayLike, ArrayLike] | None) -> tuple[Array, Array]:
    """The range of every feature: the public one, or within it the observed one."""
    seen_low, seen_high = _flat(rows.min(axis=0)), _flat(rows.max(axis=0))
    if feature_range is None:
        return seen_low, seen_high
    try:
        low, high = (
            np.broadcast_to(np.asarray(one, dtype=np.float64), seen_low.shape)
            for one in feature_range
        )
    except (TypeError, ValueError):
        raise ValueError(
            f"feature_range must be two numbers, or two per feature, got {feature_range!r}"
        ) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise ValueError(f"feature_range must be finite and ascend, got {feature_range!r}")
    outside = np.flatnonzero((seen_low < low) | (seen_high > high))
    if outside.size:
        j = int(outside[0])
        raise ValueError(
            f"feature {j + 1} reaches from {seen_low[j]:g} to {seen_high[j]:g}, outside its "
            f"feature_range of {low[j]:g} to {high[j]:g}"
        )
    return low, high


def _flat(row: Any) -> Array:
    return np.asarray(row.toarray() if sp.issparse(row) else row, dtype=np.float64).ravel()


def _like(rows: Any, x: Array) -> Any:
    row = x[np.newaxis].astype(rows.dtype)
    return type(rows)(row) if sp.issparse(rows) else row


def _stacked(parts: list[Any]) -> Any:
    if sp.issparse(parts[0]):
        return type(parts[0])(sp.vstack(parts, format="csr"))
    return np.vstack(parts)


def _added(rows: Any, labels: NDArray[Any], x: Array, label: Any) -> tuple[Any, NDArray[Any]]:
    return _stacked([rows, _like(rows, x)]), np.append(labels, _label_like(labels, label))


def _replaced(
    rows: Any, labels: NDArray[Any], place: int, x: Array, label: Any
) -> tuple[Any, NDArray[Any]]:
    one = _label_like(labels, label)
    changed = labels.astype(np.result_type(labels, one))
    changed[place] = one[0]
    return _stacked([rows[:place], _like(rows, x), rows[place + 1 :]]), changed


def _label_like(labels: NDArray[Any], label: Any) -> NDArray[Any]:
    """One label in the kind of the others; ValueError if it would become another label."""
    one = np.asarray([label])
    both = np.result_type(labels, one) if labels.dtype.kind == one.dtype.kind else labels.dtype
    found = one.astype(both)
    if found.tolist() != one.tolist():
        raise ValueError(f"the record's label {label!r} is not of the kind of y, {labels.dtype}")
    return found


def influences(rows: Any, labels: NDArray[Any]) -> Array:
    """How far removing each record moves a least-squares fit to the labels, at that record.

    A stand-in for the estimator that is audited: cheap, and right about which records are odd.

    >>> X, y = np.array([[-1.0], [-0.9], [0.9], [1.0], [5.0]]), np.array([0, 0, 1, 1, 0])
    >>> int(influences(X, y).argmax())
    4
    """
    target = np.where(labels == np.unique(labels)[-1], 1.0, -1.0)
    ones = np.ones((len(target), 1))
    sparse = sp.issparse(rows)
    full: Any = sp.csr_array(sp.hstack([rows, ones])) if sparse else np.hstack([rows, ones])
    times = full.multiply if sparse else full.__mul__
    if full.shape[1] > _WIDE:
        projected = times(1.0 / (np.asarray(times(full).sum(axis=0)).ravel() + 1.0))
    else:
        gram = full.T @ full
        gram = gram.toarray() if sparse else gram
        projected = full @ np.linalg.inv(gram + np.eye(full.shape[1]))
    leverage = np.asarray(times(projected).sum(axis=1)).ravel().clip(0.0, 1.0 - 1e-9)
    fitted = np.asarray(projected @ (full.T @ target)).ravel()
    moved: Array = np.abs(target - fitted) * leverage / (1.0 - leverage)
    return moved


def most_influential(X: Any, y: ArrayLike, count: int) -> list[int]:
    """The records whose removal moves a least-squares fit most, the first one most.

    >>> most_influential([[-1.0], [-0.9], [0.9], [1.0], [5.0]], [0, 0, 1, 1, 0], 1)
    [4]
    """
    rows, labels = _checked(X, y)
    order = np.argsort(-influences(rows, labels), kind="stable")
    return [int(place) for place in order[:count]]
