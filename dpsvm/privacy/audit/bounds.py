"""From counts to a lower bound on epsilon that holds with a stated confidence.

A mechanism that is (epsilon, delta)-private gives every event a probability P in one world and Q in
the other with P <= exp(epsilon) Q + delta. So epsilon >= log((P - delta) / Q), and a P that is too
small and a Q that is too large make the bound smaller, never false. Counts may be fractions: what
is expected of runs that are still to be made.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv

from dpsvm._arrays import Array


def probability_at_least(hits: ArrayLike, runs: int, level: float) -> Array:
    """Clopper and Pearson's lower end: above the true probability with chance ``level`` at most.

    >>> probability_at_least([0, 1000], 1000, 0.025).round(4)
    array([0.    , 0.9963])
    """
    counted = np.asarray(hits, dtype=np.float64)
    low = betaincinv(np.where(counted > 0, counted, 1.0), runs - counted + 1.0, level)
    return np.where(counted > 0, low, 0.0)


def probability_at_most(hits: ArrayLike, runs: int, level: float) -> Array:
    """Clopper and Pearson's upper end: below the true probability with chance ``level`` at most.

    >>> probability_at_most([0, 1000], 1000, 0.025).round(4)
    array([0.0037, 1.    ])
    """
    counted = np.asarray(hits, dtype=np.float64)
    high = betainccinv(counted + 1.0, np.where(counted < runs, runs - counted, 1.0), level)
    return np.where(counted < runs, high, 1.0)


def epsilon_from(low: ArrayLike, high: ArrayLike, delta: float) -> Array:
    """The least epsilon under which an event may have probability ``low`` here, ``high`` there.

    >>> float(epsilon_from(0.5, 0.5, 0.0)), round(float(epsilon_from(0.6, 0.1, 0.1)), 4)
    (0.0, 1.6094)
    """
    ratio = (np.asarray(low, dtype=np.float64) - delta) / np.asarray(high, dtype=np.float64)
    return np.log(np.maximum(ratio, 1.0))  # an epsilon is never below 0


def epsilon_at_least(
    hits: int, others: int, runs: int, *, delta: float, confidence: float
) -> float:
    """The lower bound on epsilon from one event, counted in two worlds of ``runs`` runs each.

    ``hits`` are counted in the world where the event was expected more often, before these runs
    were made. Each of the two probabilities misses its bound with chance (1 - confidence) / 2 at
    most, so both hold, and with them the bound, with ``confidence``. Neither the independence of
    the two worlds nor a normal approximation is used.

    >>> round(epsilon_at_least(4000, 0, 4000, delta=0.0, confidence=0.95), 2)
    6.99
    >>> epsilon_at_least(10, 10, 4000, delta=0.0, confidence=0.95)
    0.0
    """
    level = (1.0 - confidence) / 2.0
    low = probability_at_least(hits, runs, level)
    high = probability_at_most(others, runs, level)
    return float(epsilon_from(low, high, delta))
