"""The flags that ``dpsvm vertical``, ``network`` and ``lasso`` share, and how theirs are made.

A flag of a setting is read by the constraints of the estimator and tells its default. One that is
not given leaves the setting to the estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np

from dpsvm.cli.options import Flag, UsageError, default_text_of, number, one_of, reader, whole
from dpsvm.constraints import Boolean, Constraint, Interval, Names, Table

Parties = int | tuple[int, ...]

N_FEATURES = Flag(
    "--n-features",
    "the public number of columns",
    "n",
    whole(1),
    default_text="the largest index of FILE",
)
LEDGER = Flag("--ledger", "charge the run to this ledger (dpsvm budget)", "file", str)
SEED = Flag("--seed", "of the noise, for experiments only", "n", whole(0), name="random_state")
COMMON_FLAGS = (
    Flag("--test", "held-out rows; losses on them are told too", "file", str),
    Flag(
        "--compare",
        "of a private run: also what is told without privacy, outside the guarantee",
        default=False,
    ),
    Flag(
        "--model",
        "write the model for dpsvm predict: a LIBSVM model file, of a private run JSON with the "
        "guarantee",
        "file",
        str,
    ),
    Flag("--json", "write everything, every round included", "file", str),
    Flag("--plot", "write a picture (matplotlib)", "file", str),
    Flag("-q", "print nothing", default=False, name="quiet"),
    Flag("--quiet", "the same", default=False),
)


def _parties(text: str) -> Parties:
    sizes = tuple(int(part) for part in text.split(","))
    if min(sizes) < 1:
        raise ValueError
    return sizes[0] if len(sizes) == 1 else sizes


PARTIES = Flag(
    "--parties",
    "how many share the columns equally, or the columns of each",
    "K|n,n,...",
    reader(_parties, "a whole number above 0, nor a list of them like 66,57"),
)


def settings_of(estimator: Any, constraints: Table) -> Callable[..., Flag]:
    """A maker of flags for the settings of an estimator.

    constraints : of those settings whose flags have no reader of their own; they also tell what
        follows the flag, unless that has a name of its own

    >>> from dpsvm.admm import NetworkADMM
    >>> table = {"rounds": [Interval(Integral, 1, None, closed="left")]}
    >>> flag = settings_of(NetworkADMM, table)("rounds", "of both kinds")
    >>> flag.usage(), flag.default_text, flag.read("7")
    ('--rounds n', '50', 7)
    """
    parameters = signature(estimator).parameters

    def flag(
        name: str,
        meaning: str,
        takes: str = "",
        read: Callable[[str], Any] | None = None,
        default_text: str | None = None,
        *,
        spelling: str | None = None,
    ) -> Flag:
        spelling = spelling or f"--{name.replace('_', '-')}"
        if read is None:
            usual, read = _value_of(constraints[name])
            takes = takes or usual
        if not takes:
            return Flag(spelling, meaning, name=name)
        if default_text is None:
            default_text = default_text_of(parameters[name].default)
        return Flag(spelling, meaning, takes, read, default_text=default_text, name=name)

    return flag


def width_of(parties: Parties | None) -> int | None:
    """How many columns parties have together; None where that is not said.

    >>> width_of((66, 57)), width_of(4)
    (123, None)
    """
    return sum(parties) if isinstance(parties, tuple) else None


def sizes_of(parties: Parties, width: int) -> list[int]:
    """How many columns each party has.

    >>> sizes_of(3, 7)
    [3, 2, 2]
    """
    if isinstance(parties, tuple):
        return list(parties)
    if parties > width:
        raise UsageError(f"--parties: {parties} cannot share {width} columns")
    return [len(part) for part in np.array_split(np.arange(width), parties)]


def _value_of(allowed: Iterable[Constraint]) -> tuple[str, Callable[..., Any]]:
    """What follows a flag whose value meets these, and its reader."""
    for one in allowed:
        if isinstance(one, Boolean):
            return "", lambda: True
        if isinstance(one, Names):
            return "name", one_of(one.names)
        if isinstance(one, Interval) and one.kind is Integral:
            return "n", whole(int(one.left or 0))
        if isinstance(one, Interval):
            return "x", number(_wanted(one), one.allows)
    raise TypeError("no text can be read by these constraints")


def _wanted(interval: Interval) -> str:
    closed = interval.closed in ("left", "both")
    if interval.right is None:
        edge = f"from {interval.left:g} on" if closed else f"above {interval.left:g}"
        return f"a finite number {edge}"
    return f"a number from {interval.left:g} to {interval.right:g}"
