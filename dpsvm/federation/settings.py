"""The settings of a job, given to the estimator or solver that has them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from dpsvm._renamed import check_names

Kind = TypeVar("Kind")


def with_settings(
    kind: type[Kind],
    settings: Mapping[str, Any],
    *,
    without: Sequence[str],
    renamed: Mapping[str, str],
    **more: Any,
) -> Kind:
    """An unfitted estimator or solver with these settings, and what else is given.

    without : those that are not for a job; renamed : those that have another name now

    >>> from dpsvm.admm import NetworkADMM
    >>> with_settings(NetworkADMM, {"cost": 1.0}, without=["track"], renamed={"cost": "C"})
    Traceback (most recent call last):
    ...
    ValueError: 'cost' is called 'C' now
    """
    known = [name for name in inspect.signature(kind).parameters if name not in without]
    check_names(settings, renamed)
    for name in settings:
        if name not in known:
            raise ValueError(f"unknown setting {name!r}; known are {', '.join(known)}")
    return kind(**settings, **more)
