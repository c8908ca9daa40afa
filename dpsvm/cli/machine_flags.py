"""The flags of a machine, from the table of parameters: several commands have them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpsvm.cli.options import Flag, several
from dpsvm.svm.parameters import TABLE, Parameters
from dpsvm.svm.selectors import NUMBERS, SELECTORS

_TAKES = {
    "machine": "type",
    "kernel": "type",
    "C": "cost",
    "cache_size": "MB",
    "tol": "tolerance",
    "shrinking": "0|1",
    "probability": "0|1",
    "max_iter": "n",
    "time_limit": "seconds",
    "solver": "name",
    "selector": "name",
    **dict.fromkeys(NUMBERS, "x"),
}
"""How help shows the value of a setting, where it is not by the setting's name."""


def table_flag(name: str, **changes: Any) -> Flag:
    """The flag of a row of the parameter table.

    >>> table_flag("C").usage()
    '-c cost'
    """
    row = TABLE[name]
    if row.flag is None:
        raise ValueError(f"{name} has no flag")
    default_text = str(row.codes.index(row.default)) if row.codes else None
    takes = _TAKES.get(name, name)
    flag = Flag(row.flag, row.meaning, takes, row.read, row.default, default_text, name=name)
    return replace(flag, **changes)


def take_parameters(values: dict[str, Any]) -> Parameters:
    """The parameters among the values of flags, which are taken out of these.

    >>> values = {"C": 2.0, "seed": 3}
    >>> take_parameters(values).C, values
    (2.0, {'seed': 3})
    """
    return Parameters(**{name: values.pop(name) for name in TABLE if name in values})


CHOICES = tuple(f"  {name:<8}{one.label}" for name, one in SELECTORS.items())
"""The selectors, as they are registered, as further lines of help."""
NUMBER_FLAGS = tuple(map(table_flag, NUMBERS))
GAMMA = table_flag("gamma", meaning="gamma in the kernel", default_text="1/number of features")
KERNEL_FLAGS = (
    table_flag(
        "kernel",
        default="linear",
        default_text="0",
        choices=("  0 linear, 1 poly, 2 rbf, 3 sigmoid",),
    ),
    table_flag("degree"),
    GAMMA,
    table_flag("coef0"),
)
"""Of commands whose kernel is linear unless they are told."""
THREADS = Flag(
    "--threads",
    "threads to use; the result does not depend on it",
    "n",
    several("threads"),
    default_text="one per core",
)
