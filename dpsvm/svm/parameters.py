"""The one table of settings behind the estimators, the command line and the model file.

Every row is a field of :class:`Parameters`: its name, LIBSVM's flag and default, the values it may
take, and what it means.
"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass, field, fields
from numbers import Integral, Real
from typing import Any

from dpsvm.constraints import Boolean, Constraint, Interval, Names, Nothing, check_setting
from dpsvm.svm.selectors import DEFAULT, SELECTORS, Number, with_numbers

MACHINES = ("c-svc", "nu-svc", "one-class", "epsilon-svr", "nu-svr")
"""Machine names, at the position of LIBSVM's code for ``-s``."""

KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
"""Kernel names, at the position of LIBSVM's code for ``-t``."""

SOLVERS = ("smo", "decomposition")
"""Solvers, the default first."""

CLASSIFIERS = frozenset({"c-svc", "nu-svc"})
"""The machines that take class labels."""

_POSITIVE = Interval(Real, 0.0, None, closed="neither")
_POSITIVE_OR_INFINITE = Interval(Real, 0.0, None, closed="right")
_FROM_ZERO = Interval(Real, 0.0, None, closed="left")


@dataclass(frozen=True)
class Setting:
    """One row of the table.

    >>> TABLE["C"].flag, TABLE["C"].default, TABLE["C"].meaning
    ('-c', 1.0, 'cost of a violation, in c-svc, epsilon-svr and nu-svr')
    >>> TABLE["kernel"].read("2")
    'rbf'
    """

    name: str
    meaning: str
    default: Any  # LIBSVM's, where LIBSVM has the setting
    allowed: tuple[Constraint, ...]  # a value must meet one of them
    flag: str
    codes: tuple[str, ...] = ()  # names in the order of LIBSVM's numeric codes

    def check(self, value: Any) -> None:
        """Raise ValueError, naming the value, unless it is one this setting may take.

        >>> TABLE["nu"].check(1.5)
        Traceback (most recent call last):
        ...
        ValueError: nu must be a float in the range (0.0, 1.0], got 1.5
        """
        check_setting(self.name, value, self.allowed)

    def read(self, text: str) -> Any:
        """Return the value that a command line's text stands for; ValueError names flag and text.

        >>> TABLE["shrinking"].read("0")
        False
        >>> TABLE["C"].read("much")
        Traceback (most recent call last):
        ...
        ValueError: -c much: not a number
        """
        try:
            value = self._convert(text)
            self.check(value)
        except ValueError as error:
            wrong = str(error).removeprefix(f"{self.name} ")
            raise ValueError(f"{self.flag} {text}: {wrong}") from None
        return value

    def _convert(self, text: str) -> Any:
        if self.codes:
            return self._decode(text)
        form = self.allowed[0]
        if isinstance(form, Boolean):
            if text not in ("0", "1"):
                raise ValueError("must be 0 or 1")
            return text == "1"
        if not isinstance(form, Interval):
            return text
        whole = form.kind is Integral
        try:
            return int(text) if whole else float(text)
        except ValueError:
            raise ValueError(f"not {'an integer' if whole else 'a number'}") from None

    def _decode(self, text: str) -> str:
        known = {str(code): name for code, name in enumerate(self.codes)}
        if text not in known:
            raise ValueError(f"{self.name} must be a code from 0 to {len(self.codes) - 1}")
        return known[text]


def _row(
    flag: str, default: Any, meaning: str, *allowed: Constraint, codes: tuple[str, ...] = ()
) -> Any:
    row = {"flag": flag, "meaning": meaning, "allowed": allowed, "codes": codes}
    return field(default=default, metadata=row)


def _number_row(number: Number) -> Any:
    meaning = f"for {number.readers}: {number.meaning}"
    return _row(number.flag, number.default, meaning, number.allowed)


@dataclass(frozen=True, kw_only=True)
@with_numbers(_number_row)
class Parameters:
    """Settings of one training run, checked on construction; the defaults are LIBSVM's.

    >>> Parameters(machine="nu-svc", nu=0.2).kernel
    'rbf'
    >>> Parameters(C=-1.0)
    Traceback (most recent call last):
    ...
    ValueError: C must be a float in the range (0.0, inf], got -1.0
    """

    machine: str = _row("-s", "c-svc", "which machine is trained", Names(MACHINES), codes=MACHINES)
    kernel: str = _row("-t", "rbf", "kernel function", Names(KERNELS), codes=KERNELS)
    degree: int = _row(
        "-d", 3, "degree of the polynomial kernel", Interval(Integral, 0, 2**31 - 1, closed="both")
    )
    gamma: float = _row(
        "-g",
        0.0,
        "gamma in the kernel; on the command line 0 stands for 1/number of features",
        _FROM_ZERO,
    )
    coef0: float = _row(
        "-r",
        0.0,
        "constant term in the polynomial and sigmoid kernels",
        Interval(Real, None, None, closed="neither"),
    )
    C: float = _row(
        "-c", 1.0, "cost of a violation, in c-svc, epsilon-svr and nu-svr", _POSITIVE_OR_INFINITE
    )
    nu: float = _row(
        "-n",
        0.5,
        "bound on the fraction of margin errors, in nu-svc, one-class and nu-svr",
        Interval(Real, 0.0, 1.0, closed="right"),
    )
    epsilon: float = _row(
        "-p", 0.1, "half width of the tube without loss, in epsilon-svr", _FROM_ZERO
    )
    cache_size: float = _row("-m", 100.0, "memory for kernel rows, in MB", _POSITIVE)
    tol: float = _row("-e", 1e-3, "stop when the optimality gap is below this", _POSITIVE)
    shrinking: bool = _row(
        "-h", True, "whether to set aside variables that look settled", Boolean()
    )
    probability: bool = _row(
        "-b", False, "whether the model also gives probability estimates", Boolean()
    )
    max_iter: int = _row(
        "--max-iter",
        -1,
        "most iterations for one binary problem; -1 for no limit",
        Interval(Integral, -1, 2**63 - 1, closed="both"),
    )
    time_limit: float | None = _row(
        "--time-limit",
        None,
        "most seconds for the whole training",
        _POSITIVE_OR_INFINITE,
        Nothing(),
    )
    solver: str = _row(
        "--solver",
        "smo",
        "smo follows LIBSVM; decomposition, linear kernel only, keeps w: faster on many rows",
        Names(SOLVERS),
    )
    selector: str = _row(
        "--selector", DEFAULT, "rule that picks the next pair of variables", Names(tuple(SELECTORS))
    )

    def __post_init__(self) -> None:
        for name, setting in TABLE.items():
            setting.check(getattr(self, name))
        if self.solver == "decomposition":
            able = [name for name, one in SELECTORS.items() if one.decomposition]
            for name, needed in (("kernel", ["linear"]), ("selector", able)):
                given = getattr(self, name)
                if given not in needed:
                    wanted = f"{name}={' or '.join(map(repr, needed))}"
                    raise ValueError(f"solver='decomposition' needs {wanted}, got {given!r}")

    def kernel_options(self) -> dict[str, Any]:
        """Return the kernel's keywords, shared by ``_core.train`` and ``_core.decision_values``.

        >>> Parameters(kernel="linear").kernel_options()
        {'kernel': 'linear', 'degree': 3, 'gamma': 0.0, 'coef0': 0.0}
        """
        return {name: getattr(self, name) for name in ("kernel", "degree", "gamma", "coef0")}

    def train_options(self) -> dict[str, Any]:
        """Return the keywords of ``_core.train`` that come from these settings.

        >>> Parameters(cache_size=1).train_options()["cache_bytes"]
        1048576
        """
        options = asdict(self)
        del options["probability"]  # not the core's
        options["cache_bytes"] = int(min(options.pop("cache_size") * 2**20, sys.maxsize))
        if self.time_limit is None:
            options["time_limit"] = math.inf
        return options


TABLE: dict[str, Setting] = {
    column.name: Setting(name=column.name, default=column.default, **column.metadata)
    for column in fields(Parameters)
}
"""The table, by name."""

BY_FLAG: dict[str, Setting] = {row.flag: row for row in TABLE.values()}
"""The table, by command-line flag."""
