"""Which ways of choosing pairs are compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from dpsvm.svm.parameters import RANDOM_SELECTORS, SELECTORS, TABLE, Parameters

REFERENCE = "wss2"
"""The selector the others are measured against."""


@dataclass(frozen=True)
class Setting:
    """A selector with the numbers it reads; a number it does not read is None.

    >>> Setting("dpwss", selection_epsilon=1.0, sigma=0.7).label
    'dpwss eps=1 sigma=0.7'
    """

    selector: str
    selection_epsilon: float | None = None
    sigma: float | None = None
    shrinking: bool = True

    @property
    def label(self) -> str:
        """The selector and its numbers; shrinking is told apart by the tables."""
        words = [self.selector]
        if self.selection_epsilon is not None:
            words.append(f"eps={self.selection_epsilon:g}")
        if self.sigma is not None:
            words.append(f"sigma={self.sigma:g}")
        return " ".join(words)

    @property
    def is_random(self) -> bool:
        """Whether runs with different seeds differ."""
        return self.selector in RANDOM_SELECTORS

    @property
    def is_reference(self) -> bool:
        """Whether the others are measured against this one."""
        return self.selector == REFERENCE

    def parameters(self, base: Parameters) -> Parameters:
        """The base with this selector."""
        numbers: dict[str, Any] = {
            name: value
            for name in ("selection_epsilon", "sigma")
            if (value := getattr(self, name)) is not None
        }
        return replace(base, selector=self.selector, shrinking=self.shrinking, **numbers)


def grid(
    selectors: Iterable[str] = SELECTORS,
    selection_epsilon: Iterable[float] = (1.0,),
    sigma: Iterable[float] = (0.5,),
    shrinking: Iterable[bool] = (True,),
) -> list[Setting]:
    """Every selector with every value it reads, wss2 first whether it is named or not.

    >>> [setting.label for setting in grid(["dpwss", "wss1"], sigma=[0.1, 0.7])]
    ['wss2', 'dpwss eps=1 sigma=0.1', 'dpwss eps=1 sigma=0.7', 'wss1']
    """
    names = list(dict.fromkeys([REFERENCE, *selectors]))
    epsilons, sigmas = list(dict.fromkeys(selection_epsilon)), list(dict.fromkeys(sigma))
    for row, values in (("selector", names), ("selection_epsilon", epsilons), ("sigma", sigmas)):
        if not values:
            raise ValueError(f"no {row} is given")
        for value in values:
            TABLE[row].check(value)
    found = []
    for shrink in dict.fromkeys(shrinking):
        for name in names:
            for eps in epsilons if name == "dpwss" else [None]:
                for share in sigmas if name in RANDOM_SELECTORS else [None]:
                    found.append(Setting(name, eps, share, bool(shrink)))
    if not found:
        raise ValueError("no shrinking setting is given")
    return found
