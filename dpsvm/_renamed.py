"""Names of settings that are gone: whoever uses one is told what it is called now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar

Init = TypeVar("Init", bound=Callable[..., None])

SHARING = {"weight": "C", "row_norm": "data_norm"}
NETWORK = {"eta": "rho", "iterations": "rounds"}
FRANK_WOLFE = {"eta": "radius"}


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


def renamed(now: Mapping[str, str]) -> Callable[[Init], Init]:
    """Decorates a constructor, which keeps its signature: names that are gone are refused.

    >>> class Model:
    ...     @renamed({"cost": "C"})
    ...     def __init__(self, C=1.0): ...
    >>> Model(cost=2.0)
    Traceback (most recent call last):
    ...
    ValueError: Model: 'cost' is called 'C' now
    """

    def decorate(init: Init) -> Init:
        @wraps(init)
        def checked(self: Any, *args: Any, **settings: Any) -> None:
            check_names(settings, now, f"{type(self).__name__}: ")
            init(self, *args, **settings)

        return checked  # type: ignore[return-value]

    return decorate
