"""What a privacy guarantee is made of, and the checks of its numbers.

Three words are kept apart everywhere. A **guarantee** is proved, its assumptions are enforced by
the code, and it names its neighbouring relation. What is **claimed** was printed somewhere and
does not hold as printed. What was **audited** is a lower bound on epsilon found by experiment, at
a confidence level: it can refute a claim and proves none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpsvm.constraints import check_choice, real, shown
from dpsvm.names import NEIGHBOURING
from dpsvm.privacy.rounding import check_scale


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy under a named neighbouring relation.

    covers : "model" or "messages": the messages of a run alone, of which the model is not made
    seeded : whether the noise is from a seed, which whoever knows it can take away

    >>> print(Guarantee(1.0, 1e-5, "add-remove"))
    epsilon = 1, delta = 1e-05 (add-remove)
    >>> print(Guarantee(0.5, 0.0, "row", covers="messages", seeded=True))
    epsilon = 0.5 (row), of the messages alone; the noise is from a seed: for experiments only
    """

    epsilon: float
    delta: float
    neighbouring: str
    covers: str = "model"
    seeded: bool = False

    def __str__(self) -> str:
        delta = f", delta = {self.delta:g}" if self.delta else ""
        alone = ", of the messages alone" if self.covers == "messages" else ""
        seeded = "; the noise is from a seed: for experiments only" if self.seeded else ""
        return f"epsilon = {self.epsilon:g}{delta} ({self.neighbouring}){alone}{seeded}"


def check_epsilon(value: Any, name: str = "epsilon") -> float:
    """Return an epsilon as a float, one whose noise neither overflows nor vanishes.

    >>> check_epsilon(1)
    1.0
    >>> check_epsilon(5e-324)
    Traceback (most recent call last):
    ...
    ValueError: epsilon must be from 1e-100 to 1e+100, got 5e-324
    """
    return check_scale(value, name)


def check_delta(value: Any, name: str = "delta") -> float:
    """Return a delta between 0 and 1, neither included, as a float.

    >>> check_delta(1e-5)
    1e-05
    >>> check_delta(0)
    Traceback (most recent call last):
    ...
    ValueError: delta must be a number between 0 and 1, neither included, got 0
    """
    number = real(value)
    if not 0 < number < 1:
        raise ValueError(
            f"{name} must be a number between 0 and 1, neither included, got {shown(value)}"
        )
    return number


def check_neighbouring(value: Any, known: tuple[str, ...] = NEIGHBOURING) -> str:
    """Return a neighbouring relation that is one of those known.

    >>> check_neighbouring("replace")
    'replace'
    >>> check_neighbouring("remove", ("add-remove", "replace"))
    Traceback (most recent call last):
    ...
    ValueError: neighbouring must be 'add-remove' or 'replace', got 'remove'
    """
    return check_choice(value, "neighbouring", known)
