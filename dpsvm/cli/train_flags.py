"""The flags of ``dpsvm train``: LIBSVM's, then ours."""

from __future__ import annotations

from collections.abc import Sequence

from dpsvm.cli.machine_flags import CHOICES, GAMMA, NUMBER_FLAGS, THREADS, table_flag
from dpsvm.cli.options import Flag, positive, whole
from dpsvm.svm.parameters import KERNELS, MACHINES, SOLVERS

_TASKS = (
    *("multi-class classification", "multi-class classification"),
    *("distribution estimation", "regression", "regression"),
)
_KERNEL_FORMULAS = (
    "u'v",
    "(gamma u'v + coef0)^degree",
    "exp(-gamma |u-v|^2)",
    "tanh(gamma u'v + coef0)",
    "in FILE: 0:serial 1:K(x,x1) ...",
)


def _coded(names: Sequence[str], meanings: Sequence[str]) -> tuple[str, ...]:
    """Lines of help for the names that LIBSVM's codes stand for."""
    told = enumerate(zip(names, meanings, strict=True))
    return tuple(f"  {code}  {name:<12} {meaning}".rstrip() for code, (name, meaning) in told)


LIBSVM_FLAGS = (
    table_flag("machine", choices=_coded(MACHINES, _TASKS)),
    table_flag("kernel", choices=_coded(KERNELS, _KERNEL_FORMULAS)),
    table_flag("degree"),
    GAMMA,
    *map(table_flag, ("coef0", "C", "nu", "epsilon", "cache_size", "tol")),
    *map(table_flag, ("shrinking", "probability")),
    Flag(
        "-w",
        "factor on the cost of class i, in c-svc, for example -w-1 2",
        "weight",
        positive,
        default_text="1",
        labelled=True,
        name="class_weight",
    ),
    Flag(
        "-v",
        "print the accuracy of n-fold cross-validation instead of writing a model",
        "n",
        whole(2),
        name="n_folds",
    ),
    Flag(
        "-q", "print nothing but warnings, errors and the result of -v", default=False, name="quiet"
    ),
)
DPSVM_FLAGS = (
    table_flag("solver", choices=("  " + " ".join(SOLVERS),)),
    table_flag("selector", choices=CHOICES),
    *NUMBER_FLAGS,
    Flag(
        "--seed",
        "seed of the folds and of selectors that draw",
        "n",
        whole(0, 2**64 - 1),
        default_text="1 for folds, fresh for selectors",
    ),
    THREADS,
    table_flag("time_limit", default_text="none"),
    table_flag("max_iter", default=None, default_text="10^7, or 100 n for n variables if more"),
    Flag(
        "--json",
        "write parameters, a report of every problem, stop reasons and versions to a file",
        "file",
        str,
    ),
)


def asks_for_private(arguments: Sequence[str]) -> bool:
    """Whether ``--private`` is among the flags.

    >>> asks_for_private(["--private", "heart"]), asks_for_private(["--", "--private"])
    (True, False)
    """
    words = list(arguments)
    return "--private" in words[: words.index("--") if "--" in words else None]
