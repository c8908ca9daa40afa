"""The flags that ``dpsvm vertical``, ``network`` and ``lasso`` share, and how theirs are made.

A flag of a setting is read by the constraints of the estimator and tells its default. One that is
not given leaves the setting to the estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from numbers import Integral
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from dpsvm.cli.options import Flag, number, one_of, whole

N_FEATURES = Flag(
    "--n-features",
    "n_features",
    "the public number of columns",
    ("n",),
    whole(1),
    default_text="the largest index of FILE",
)
LEDGER = Flag("--ledger", "ledger", "charge the run to this ledger (dpsvm budget)", ("file",), str)
SEED = Flag("--seed", "random_state", "of the noise, for experiments only", ("n",), whole(0))
COMMON_FLAGS = (
    Flag("--test", "test", "held-out rows; losses on them are told too", ("file",), str),
    Flag(
        "--compare",
        "compare",
        "of a private run: also what is told without privacy, outside the guarantee",
        default=False,
    ),
    Flag(
        "--model",
        "model",
        "write the model for dpsvm predict: a LIBSVM model file, of a private run JSON with the "
        "guarantee",
        ("file",),
        str,
    ),
    Flag("--json", "json", "write everything, every round included", ("file",), str),
    Flag("--plot", "plot", "write a picture (matplotlib)", ("file",), str),
    Flag("-q", "quiet", "print nothing", default=False),
    Flag("--quiet", "quiet", "the same", default=False),
)
share = number("a number between 0 and 1, neither included", lambda value: 0.0 < value < 1.0)
"""A reader of deltas."""


def settings_of(estimator: Any) -> Callable[..., Flag]:
    """A maker of flags for the settings of an estimator.

    >>> from dpsvm.admm import NetworkADMM
    >>> flag = settings_of(NetworkADMM)("rounds", "n", "of both kinds")
    >>> flag.spelling, flag.default_text, flag.read("7")
    ('--rounds', '50', 7)
    """
    parameters, constraints = signature(estimator).parameters, estimator._parameter_constraints

    def flag(
        name: str,
        metavar: str,
        meaning: str,
        read: Callable[[str], Any] | None = None,
        *,
        spelling: str | None = None,
        default_text: str | None = None,
    ) -> Flag:
        default = parameters[name].default
        if default_text is None and default is not None:
            default_text = f"{default:g}" if isinstance(default, float) else str(default)
        spelling = spelling or f"--{name.replace('_', '-')}"
        if not metavar:
            return Flag(spelling, name, meaning)
        read = read or _reader(constraints[name])
        return Flag(spelling, name, meaning, (metavar,), read, default_text=default_text)

    return flag


def _reader(constraints: list[Any]) -> Callable[[str], Any]:
    for one in constraints:
        if isinstance(one, StrOptions):
            return one_of(tuple(one.options))
        if isinstance(one, Interval) and one.type is Integral:
            return whole(int(one.left))
        if isinstance(one, Interval):
            return number(_wanted(one), one.is_satisfied_by)
    raise TypeError(f"no text can be read by {constraints}")


def _wanted(interval: Interval) -> str:
    closed = interval.closed in ("left", "both")
    if interval.right is None:
        edge = f"from {interval.left:g} on" if closed else f"above {interval.left:g}"
        return f"a finite number {edge}"
    return f"a number from {interval.left:g} to {interval.right:g}"
