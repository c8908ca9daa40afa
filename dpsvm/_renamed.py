"""Words of settings that are gone: whoever uses one is told what it is called now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SHARING = {"weight": "C", "row_norm": "data_norm"}
NETWORK = {"eta": "rho", "iterations": "rounds"}
FRANK_WOLFE = {"eta": "radius"}
VALUES = {"smooth-hinge": "huber"}
"""Words that were values of settings."""


def check_names(names: Iterable[str], now: Mapping[str, str], where: str = "") -> None:
    """Refuse a name that is gone.

    >>> check_names(["lam", "weight"], SHARING, "settings: ")
    Traceback (most recent call last):
    ...
    ValueError: settings: 'weight' is called 'C' now
    """
    for name in names:
        if name in now:
            raise ValueError(f"{where}{name!r} is called {now[name]!r} now")


def check_word(value: object, known: Iterable[str]) -> None:
    """Refuse a value that is gone, if what it is called now is known here.

    >>> check_word("smooth-hinge", ["hinge", "huber"])
    Traceback (most recent call last):
    ...
    ValueError: 'smooth-hinge' is called 'huber' now
    """
    if isinstance(value, str) and value in VALUES and VALUES[value] in known:
        check_names([value], VALUES)
