"""What numbers and arrays have to be, said once."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from dpsvm._arrays import Array


def check_count(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """Return an integer within its limits.

    >>> check_count(9, "tau", most=4)
    Traceback (most recent call last):
    ...
    ValueError: tau must be an integer from 1 to 4, got 9
    """
    whole = isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
    if not whole or value < least or (most is not None and value > most):
        limits = f"from {least} on" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be an integer {limits}, got {value!r}")
    return int(value)


def check_vector(value: Any, name: str, size: int | None = None) -> Array:
    """Return finite numbers as a vector, of a size if one is given.

    >>> check_vector([1.0, 2.0], "x", 3)
    Traceback (most recent call last):
    ...
    ValueError: x must have 3 numbers, got 2
    """
    found = np.asarray(value, dtype=np.float64)
    if found.ndim != 1:
        raise ValueError(f"{name} must be a vector, got shape {found.shape}")
    if size is not None and len(found) != size:
        raise ValueError(f"{name} must have {size} numbers, got {len(found)}")
    if not np.all(np.isfinite(found)):
        raise ValueError(
            f"{name} must hold finite numbers, got {found[~np.isfinite(found)][0].item()!r}"
        )
    return found


def canonical_columns(table: Any) -> Any:
    """A table of floats, a sparse one by columns with every entry stored once, the sum of repeats.

    >>> twice = sparse.coo_array(([0.5, 0.5], ([0, 0], [1, 1])), shape=(1, 2))
    >>> canonical_columns(twice).data
    array([1.])
    """
    if not sparse.issparse(table):
        return np.asarray(table, dtype=np.float64)
    found = sparse.csc_array(table, dtype=np.float64)
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    return found
