"""Which ways of choosing pairs are compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from dpsvm.svm.parameters import TABLE, Parameters
from dpsvm.svm.selectors import DEFAULT, NUMBERS, SELECTORS, with_numbers

REFERENCE = DEFAULT
"""The selector the others are measured against."""


@dataclass(frozen=True)
@with_numbers(lambda _: None)
class Setting:
    """A selector with the numbers it reads; a number it does not read is None.

    >>> Setting("dpwss", selection_epsilon=1.0, sigma=0.7).label
    'dpwss eps=1 sigma=0.7'
    """

    selector: str
    shrinking: bool = True

    @property
    def numbers(self) -> dict[str, float]:
        """Those it reads, by name, in the order of the selector."""
        read = {one.name: getattr(self, one.name) for one in SELECTORS[self.selector].numbers}
        return {name: value for name, value in read.items() if value is not None}

    @property
    def label(self) -> str:
        """The selector and its numbers; shrinking is told apart by the tables."""
        numbers = (f"{NUMBERS[name].label}={value:g}" for name, value in self.numbers.items())
        return " ".join([self.selector, *numbers])

    @property
    def is_random(self) -> bool:
        """Whether runs with different seeds differ."""
        return SELECTORS[self.selector].random

    @property
    def is_reference(self) -> bool:
        """Whether the others are measured against this one."""
        return self.selector == REFERENCE

    def parameters(self, base: Parameters) -> Parameters:
        """The base with this selector."""
        numbers: dict[str, Any] = self.numbers
        return replace(base, selector=self.selector, shrinking=self.shrinking, **numbers)


def grid(
    selectors: Iterable[str] = SELECTORS,
    shrinking: Iterable[bool] = (True,),
    **numbers: Iterable[float],
) -> list[Setting]:
    """Every selector with every value of the numbers it reads, or the default of those not given.

    wss2 is first, whether it is named or not.

    >>> [setting.label for setting in grid(["dpwss", "wss1"], sigma=[0.1, 0.7])]
    ['wss2', 'dpwss eps=1 sigma=0.1', 'dpwss eps=1 sigma=0.7', 'wss1']
    """
    names = list(dict.fromkeys([REFERENCE, *selectors]))
    lists = {name: list(dict.fromkeys(values)) for name, values in numbers.items()}
    rows: list[tuple[str, list[Any]]] = [("selector", names), *lists.items()]
    for row, values in rows:
        if not values:
            raise ValueError(f"no {row} is given")
        for value in values:
            TABLE[row].check(value)
    found = []
    for shrink in dict.fromkeys(shrinking):
        for name in names:
            read = SELECTORS[name].numbers
            for point in product(*(lists.get(one.name, [one.default]) for one in read)):
                chosen: dict[str, Any] = dict(zip((one.name for one in read), point, strict=True))
                found.append(Setting(name, bool(shrink), **chosen))
    if not found:
        raise ValueError("no shrinking setting is given")
    return found
