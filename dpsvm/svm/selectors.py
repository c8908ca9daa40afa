"""The rules that pick the next pair of variables, as their C++ files register them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeVar

from dpsvm import _core
from dpsvm.constraints import Interval

_T = TypeVar("_T")


@dataclass(frozen=True)
class Number:
    """A number that some selectors read.

    >>> NUMBERS["sigma"].flag, str(NUMBERS["sigma"].allowed)
    ('--sigma', 'a float in the range (0.0, 1.0)')
    """

    name: str
    label: str
    meaning: str
    default: float
    low: float
    high: float

    @property
    def flag(self) -> str:
        """How a command line writes it."""
        return "--" + self.name.replace("_", "-")

    @property
    def allowed(self) -> Interval:
        """The values it may take."""
        return Interval(Real, self.low, self.high, closed="neither")

    @property
    def readers(self) -> str:
        """The selectors that read it."""
        return ", ".join(one.name for one in SELECTORS.values() if self in one.numbers)


@dataclass(frozen=True)
class Selector:
    """What is known of one rule; ``csrc/selector.hpp`` tells what each field means.

    >>> SELECTORS["wss4"].random, [number.name for number in SELECTORS["wss4"].numbers]
    (True, ['sigma'])
    """

    name: str
    label: str
    year: int
    numbers: tuple[Number, ...]
    random: bool
    once_only: bool
    as_libsvm: bool
    decomposition: bool
    budget: str | None
    caveat: str

    def notice(self, settings: Any, kernel: str) -> str | None:
        """What goes with every model trained with it; ``settings`` has the numbers.

        >>> from dpsvm.svm.parameters import Parameters
        >>> SELECTORS["dpwss"].notice(Parameters(), "linear").partition(":")[0]
        "selector='dpwss' gives no privacy guarantee"
        """
        if self.budget is None:
            return None
        claimed = f"{self.budget}={getattr(settings, self.budget):g}"
        notice = f"selector={self.name!r} gives no privacy guarantee: {claimed} {self.caveat}"
        if kernel != "linear":
            notice += f" With the {kernel} kernel the model itself contains training rows."
        return notice


def _selector(facts: dict[str, Any]) -> Selector:
    numbers = tuple(Number(**number) for number in facts["numbers"])
    return Selector(**(facts | {"numbers": numbers}))


SELECTORS: dict[str, Selector] = {facts["name"]: _selector(facts) for facts in _core.selectors()}
"""By name: LIBSVM's rule, which is the default, then the others in the order of their years."""

NUMBERS: dict[str, Number] = {
    number.name: number for one in SELECTORS.values() for number in one.numbers
}
"""By name, what any of the selectors reads."""

DEFAULT = next(iter(SELECTORS))


def with_numbers(column: Callable[[Number], Any]) -> Callable[[type[_T]], type[_T]]:
    """Give a class that is to be a dataclass a field, with its default, for each of the numbers."""

    def extended(cls: type[_T]) -> type[_T]:
        for name, number in NUMBERS.items():
            if name in cls.__annotations__:
                raise TypeError(f"{name!r} is a field of {cls.__name__}: no number of a selector")
            cls.__annotations__[name] = "float | None"
            setattr(cls, name, column(number))
        return cls

    return extended
