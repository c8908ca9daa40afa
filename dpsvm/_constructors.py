"""Constructors as scikit-learn wants them: each parameter is kept under its name, as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, cast

from dpsvm._renamed import check_names

Init = TypeVar("Init", bound=Callable[..., None])


def keeps_parameters(init: Init, *, more: Mapping[str, Any] | None = None) -> Init:
    """Make an ``__init__`` without a body keep its parameters.

    ``more`` are defaults of numbers it takes beside those it names. Of a class that has ``_gone``,
    who uses one of those names is told what it is called now.

    >>> class Model:
    ...     @keeps_parameters
    ...     def __init__(self, C=1.0, *, tol=0.1): ...
    >>> vars(Model(2.0))
    {'C': 2.0, 'tol': 0.1}
    >>> class Renamed(Model):
    ...     _gone = {"cost": "C"}
    >>> Renamed(cost=2.0)
    Traceback (most recent call last):
    ...
    ValueError: Renamed: 'cost' is called 'C' now
    """
    own = signature(init)
    first, *named = own.parameters.values()
    taken = {one.name: one for one in named if one.kind is not one.VAR_KEYWORD}
    for name, default in (more or {}).items():
        taken[name] = Parameter(name, Parameter.KEYWORD_ONLY, default=default)

    @wraps(init)
    def keep(self: Any, /, *positional: Any, **given: Any) -> None:
        kind = type(self).__name__
        check_names(given, getattr(self, "_gone", {}), f"{kind}: ")
        init(self, *positional, **given)  # its own words for a call that has these
        if unknown := given.keys() - taken:
            raise TypeError(
                f"{kind}.__init__() got an unexpected keyword argument {min(unknown)!r}"
            )
        given.update(zip(taken, positional, strict=False))
        for name, one in taken.items():
            setattr(self, name, given.get(name, one.default))

    keep.__signature__ = own.replace(parameters=[first, *taken.values()])  # type: ignore[attr-defined]
    return cast(Init, keep)


def but_for(init: Callable[..., None], *names: str, **instead: Any) -> Callable[..., None]:
    """The ``__init__`` of another class without some of its parameters.

    ``instead`` are the defaults of others, which stand where the first of them did.

    >>> class Model:
    ...     @keeps_parameters
    ...     def __init__(self, C=1.0, *, loss="hinge", tol=0.1): ...
    >>> class Regression:
    ...     __init__ = but_for(Model.__init__, "loss", width=2.0)
    >>> vars(Regression(2.0))
    {'C': 2.0, 'width': 2.0, 'tol': 0.1}
    """
    own = signature(init)
    taken = list(own.parameters.values())
    others = [Parameter(one, Parameter.KEYWORD_ONLY, default=instead[one]) for one in instead]
    place = min(list(own.parameters).index(name) for name in names)
    taken[place:] = [*others, *(one for one in taken[place:] if one.name not in names)]
    kept = own.replace(parameters=taken)

    def bare(self: Any, *positional: Any, **given: Any) -> None:
        try:
            kept.bind(self, *positional, **given)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}.__init__(): {error}") from None

    bare.__name__, bare.__signature__ = "__init__", kept  # type: ignore[attr-defined]
    return keeps_parameters(bare)
