"""The settings of a job, given to the estimator or solver that has them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from dpsvm._renamed import check_names


def made(
    kind: Any,
    settings: Mapping[str, Any],
    more: Mapping[str, Any],
    *,
    without: Sequence[str],
    renamed: Mapping[str, str],
) -> Any:
    """An estimator or solver with these settings, checked; those in ``without`` are not for a job.

    >>> from dpsvm.admm import NetworkADMM
    >>> made(NetworkADMM, {"rounds": 0}, {}, without=(), renamed={})
    Traceback (most recent call last):
    ...
    ValueError: settings: rounds must be an int in the range [1, inf), got 0
    """
    known = [name for name in inspect.signature(kind).parameters if name not in without]
    check_names(settings, renamed, "settings")
    for name in settings:
        if name not in known:
            raise ValueError(f"settings: unknown setting {name!r}; known are {', '.join(known)}")
    found = kind(**settings, **more)
    if hasattr(found, "_validate_params"):
        try:
            found._validate_params()
        except ValueError as error:
            raise ValueError(f"settings: {_brief(str(error))}") from None
    return found


def _brief(text: str) -> str:
    """scikit-learn's complaint about a parameter, in this library's words."""
    name, _, rest = text.partition(" parameter of ")
    wanted, _, got = rest.partition(" must be ")[2].partition(" Got ")
    if not wanted or not got:
        return text
    value = got.rstrip(".").removesuffix(" instead")
    return f"{name.removeprefix('The ').strip(chr(39))} must be {wanted.rstrip('.')}, got {value}"
