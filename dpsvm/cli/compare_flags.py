"""The flags of ``dpsvm compare``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsvm.cli.machine_flags import CHOICES, GAMMA, table_flag
from dpsvm.cli.options import Flag, several, whole
from dpsvm.svm.parameters import TABLE, Setting
from dpsvm.svm.selectors import NUMBERS, SELECTORS

_SHRINKING = {"on": (True,), "off": (False,), "both": (True, False)}


def _listed(setting: Setting) -> Callable[[str], tuple[Any, ...]]:
    def read(text: str) -> tuple[Any, ...]:
        try:
            return tuple(setting.read(part) for part in text.split(","))
        except ValueError as error:  # it names the flag of one value
            raise ValueError(str(error).removeprefix(f"{setting.flag} ")) from None

    return read


def _shrinking(text: str) -> tuple[bool, ...]:
    if text not in _SHRINKING:
        raise ValueError(f"{text!r} is not on, off or both")
    return _SHRINKING[text]


def _number_flag(name: str) -> Flag:
    row = TABLE[name]
    return Flag(
        row.flag or name,
        name,
        f"values separated by commas, {row.meaning}",
        ("x,...",),
        _listed(row),
        default=(row.default,),
        default_text=f"{row.default:g}",
    )


RUN_FLAGS = (
    Flag(
        "--selectors",
        "selectors",
        "selectors to compare, separated by commas; wss2 is always run",
        ("names",),
        _listed(TABLE["selector"]),
        default=tuple(SELECTORS),
        default_text="all",
        choices=CHOICES,
    ),
    *map(_number_flag, NUMBERS),
    Flag(
        "--runs",
        "runs",
        "runs of each setting that draws random numbers",
        ("n",),
        whole(1),
        default=10,
    ),
    Flag(
        "--shrinking",
        "shrinking",
        "on, off or both",
        ("which",),
        _shrinking,
        default=(True,),
        default_text="on",
    ),
    Flag("--seed", "seed", "seed of the first run", ("n",), whole(0), default=0),
    Flag("--cv", "cv", "also score by cross-validation, in svm-train's folds", ("k",), whole(2)),
    Flag("--test", "test", "also score on a held-out file", ("file",), str),
    Flag(
        "--jobs",
        "jobs",
        "runs at a time, -1 for one per core",
        ("n",),
        several("runs"),
        default=1,
    ),
    Flag(
        "--resume",
        "resume",
        "keep every run in a file as it ends, and do not repeat the runs found there",
        ("file",),
        str,
    ),
)
KERNEL_FLAGS = (
    table_flag(
        "kernel",
        default="linear",
        default_text="0",
        choices=("  0 linear, 1 poly, 2 rbf, 3 sigmoid",),
    ),
    table_flag("degree"),
    GAMMA,
    *map(table_flag, ("coef0", "C", "cache_size", "tol")),
    table_flag("max_iter", default_text="none"),
)
OUTPUT_FLAGS = (
    Flag("--json", "json", "write everything, every run included, to a JSON file", ("file",), str),
    Flag("--csv", "csv", "write one line per setting to a CSV file", ("file",), str),
    Flag("--html", "html", "write one page of tables and charts (matplotlib)", ("file",), str),
    Flag("--plot", "plot", "write the charts to a folder as PNG (matplotlib)", ("folder",), str),
    Flag("-q", "quiet", "print no tables", default=False),
)
