"""Which way numbers are rounded: sensitivities and noise up, what is released to a public grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpsvm._arrays import Array
from dpsvm.constraints import check_positive

UP = 1.0 + 2.0**-40
"""A product of a few roundings times this is rounded upwards."""

OVER = 1.0 + 2.0**-41
"""How far above its public bound a computed norm may lie: less than ``UP`` covers."""

RANGE = (1e-100, 1e100)
"""Of public bounds, penalties and scales of noise: their squares neither vanish nor overflow."""

COVERING_SHARE = 1e-3
"""The share of epsilon or mu for the noise that hides an inexact minimiser."""

_GRID = 2.0**-20  # in units of the noise


def check_scale(value: Any, name: str) -> float:
    """Return a finite number above 0, within RANGE, as a float.

    >>> check_scale(1e200, "rho")
    Traceback (most recent call last):
    ...
    ValueError: rho must be from 1e-100 to 1e+100, got 1e+200
    """
    number = check_positive(value, name)
    if not RANGE[0] <= number <= RANGE[1]:
        raise ValueError(f"{name} must be from {RANGE[0]:g} to {RANGE[1]:g}, got {value!r}")
    return number


def on_grid(values: ArrayLike, noise: float) -> Array:
    """What is released with noise of a scale, rounded to a public grid far finer than that.

    Rounding what has been made private is post-processing. The grid is a power of two, 2^-20 of the
    noise or less.

    >>> on_grid([0.3, -1.9], 2.0**18)
    array([ 0.25, -2.  ])
    """
    return to_grid(values, 2.0 ** math.floor(math.log2(_GRID * noise)))


def to_grid(values: ArrayLike, grid: float) -> Array:
    """Round to the nearest multiples of a public grid.

    A grid far coarser than the spacing of floats hides which of them the noise hit; a power of two
    keeps the multiples exact.

    >>> to_grid([0.3, -1.9], 0.25)
    array([ 0.25, -2.  ])
    >>> to_grid([1.0], 0.0)
    Traceback (most recent call last):
    ...
    ValueError: grid must be a finite number above 0, got 0.0
    """
    if not 0 < grid < math.inf:
        raise ValueError(f"grid must be a finite number above 0, got {grid!r}")
    found = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        steps = np.round(found / grid)
    # A number of more steps than there are floats is on the grid, whose step is a power of two.
    return np.asarray(np.where(np.isfinite(steps), steps * grid, found))
