"""What a setting may be, in scikit-learn's words and without its import, which takes a second.

A value must meet one of a setting's constraints; ``to_sklearn`` gives what scikit-learn's own
validation of an estimator's parameters takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from dpsvm._renamed import check_word


class Constraint(Protocol):
    """One condition; its text follows "must be"."""

    def allows(self, value: Any) -> bool:
        """Whether the value meets it."""

    def to_sklearn(self) -> Any:
        """The same condition for ``_parameter_constraints``."""


@dataclass(frozen=True)
class Interval:
    """Numbers of a kind between bounds, of which None is infinite.

    >>> print(Interval(Integral, 1, None, closed="left"))
    an int in the range [1, inf)
    >>> Interval(Integral, 1, None, closed="left").allows(0)
    False
    """

    kind: type  # numbers.Integral or numbers.Real
    left: float | None
    right: float | None
    closed: str  # "left", "right", "both" or "neither"

    def allows(self, value: Any) -> bool:
        if not isinstance(value, self.kind):
            return False
        number: Any = value
        left = -np.inf if self.left is None else self.left
        right = np.inf if self.right is None else self.right
        return bool(
            (left <= number if self.closed in ("left", "both") else left < number)
            and (number <= right if self.closed in ("right", "both") else number < right)
        )

    def to_sklearn(self) -> Any:
        from sklearn.utils import _param_validation

        return _param_validation.Interval(self.kind, self.left, self.right, closed=self.closed)

    def __str__(self) -> str:
        whole = self.kind is Integral
        bounds = [
            infinite if bound is None else str(bound if whole else float(bound))
            for bound, infinite in ((self.left, "-inf"), (self.right, "inf"))
        ]
        opening = "[" if self.closed in ("left", "both") else "("
        closing = "]" if self.closed in ("right", "both") else ")"
        kind = "an int" if whole else "a float"
        return f"{kind} in the range {opening}{', '.join(bounds)}{closing}"


@dataclass(frozen=True)
class Names:
    """One of some texts.

    >>> print(Names(("yes", "no")))
    a str among {'yes', 'no'}
    """

    names: tuple[str, ...]

    def allows(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.names

    def to_sklearn(self) -> Any:
        from dpsvm._sklearn import one_of

        return one_of(*self.names)

    def __str__(self) -> str:
        return f"a str among {{{', '.join(map(repr, self.names))}}}"


@dataclass(frozen=True)
class Boolean:
    """True or False.

    >>> Boolean().allows(np.bool_(True)), Boolean().allows(1)
    (True, False)
    """

    def allows(self, value: Any) -> bool:
        return isinstance(value, (bool, np.bool_))

    def to_sklearn(self) -> Any:
        return "boolean"

    def __str__(self) -> str:
        return "a bool"


@dataclass(frozen=True)
class Nothing:
    """None.

    >>> Nothing().allows(None)
    True
    """

    def allows(self, value: Any) -> bool:
        return value is None

    def to_sklearn(self) -> Any:
        return None

    def __str__(self) -> str:
        return "None"


@dataclass(frozen=True)
class Instance:
    """An object of a class.

    >>> print(Instance(dict))
    an instance of dict
    """

    kind: type

    def allows(self, value: Any) -> bool:
        return isinstance(value, self.kind)

    def to_sklearn(self) -> Any:
        return self.kind

    def __str__(self) -> str:
        return f"an instance of {self.kind.__name__}"


Table = Mapping[str, Iterable[Constraint]]
"""Settings by name, each of which must meet one of its constraints."""


def check_setting(name: str, value: Any, allowed: Iterable[Constraint]) -> None:
    """Refuse a value that meets none of the constraints.

    >>> check_setting("rounds", 0, [Interval(Integral, 1, None, closed="left"), Nothing()])
    Traceback (most recent call last):
    ...
    ValueError: rounds must be an int in the range [1, inf) or None, got 0
    """
    if not any(constraint.allows(value) for constraint in allowed):
        for one in allowed:
            check_word(value, one.names if isinstance(one, Names) else ())
        raise ValueError(f"{name} must be {' or '.join(map(str, allowed))}, got {value!r}")


def check_settings(settings: Any, table: Table) -> None:
    """Refuse settings, the attributes of an object, of which one meets none of its constraints."""
    for name, allowed in table.items():
        check_setting(name, getattr(settings, name), allowed)


def check_positive(value: Any, name: str, *, zero: bool = False) -> float:
    """Return a finite number above 0, or with ``zero`` from 0 on, as a float.

    >>> check_positive(float("nan"), "mu")
    Traceback (most recent call last):
    ...
    ValueError: mu must be a finite number above 0, got nan
    """
    number = real(value)
    if not 0.0 <= number < math.inf or (number == 0.0 and not zero):
        limit = "from 0 on" if zero else "above 0"
        raise ValueError(f"{name} must be a finite number {limit}, got {shown(value)}")
    return number


def check_choice(value: Any, name: str, known: tuple[str, ...]) -> str:
    """Return a word that is one of those known.

    >>> check_choice("l3", "problem", ("l1", "product"))
    Traceback (most recent call last):
    ...
    ValueError: problem must be 'l1' or 'product', got 'l3'
    """
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be {' or '.join(map(repr, known))}, got {value!r}")
    return value


def real(value: Any) -> float:
    """A number as a float, infinity for one beyond floats; NaN, in no range, for anything else.

    >>> real(2), real(10**400), real("two")
    (2.0, inf, nan)
    """
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def shown(value: Any) -> str:
    """A value, as far as a line holds it.

    >>> shown("x" * 100)[-7:], shown(10**9999)
    ('xxxx...', 'a number of thousands of digits')
    """
    try:
        text = repr(value)
    except ValueError:  # of an integer of thousands of digits
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
