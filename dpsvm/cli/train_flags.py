"""The flags of ``dpsvm train``: LIBSVM's, then ours."""

from __future__ import annotations

from collections.abc import Sequence

from dpsvm.cli.options import Flag, positive, several, table_flag, whole
from dpsvm.cli.selector_flags import CHOICES, NUMBER_FLAGS
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


LIBSVM_FLAGS = (
    table_flag(
        "machine",
        "type",
        choices=tuple(
            f"  {i}  {name:<12} {task}".rstrip()
            for i, (name, task) in enumerate(zip(MACHINES, _TASKS, strict=True))
        ),
    ),
    table_flag(
        "kernel",
        "type",
        choices=tuple(
            f"  {i}  {name:<12} {formula}"
            for i, (name, formula) in enumerate(zip(KERNELS, _KERNEL_FORMULAS, strict=True))
        ),
    ),
    table_flag("degree", "degree"),
    table_flag(
        "gamma", "gamma", meaning="gamma in the kernel", default_text="1/number of features"
    ),
    table_flag("coef0", "coef0"),
    table_flag("C", "cost"),
    table_flag("nu", "nu"),
    table_flag("epsilon", "epsilon"),
    table_flag("cache_size", "MB"),
    table_flag("tol", "tolerance"),
    table_flag("shrinking", "0|1"),
    table_flag("probability", "0|1"),
    Flag(
        "-w",
        "class_weight",
        "factor on the cost of class i, in c-svc, for example -w-1 2",
        ("weight",),
        positive,
        default_text="1",
        labelled=True,
    ),
    Flag(
        "-v",
        "n_folds",
        "print the accuracy of n-fold cross-validation instead of writing a model",
        ("n",),
        whole(2),
    ),
    Flag("-q", "quiet", "print nothing but warnings, errors and the result of -v", default=False),
)
DPSVM_FLAGS = (
    table_flag("solver", "name", choices=("  " + " ".join(SOLVERS),)),
    table_flag("selector", "name", choices=CHOICES),
    *NUMBER_FLAGS,
    Flag(
        "--seed",
        "seed",
        "seed of the folds and of selectors that draw",
        ("n",),
        whole(0, 2**64 - 1),
        default_text="1 for folds, fresh for selectors",
    ),
    Flag(
        "--threads",
        "threads",
        "threads to use; the result does not depend on it",
        ("n",),
        several("threads"),
        default_text="one per core",
    ),
    table_flag("time_limit", "seconds", default_text="none"),
    table_flag(
        "max_iter", "n", default=None, default_text="10^7, or 100 n for n variables if more"
    ),
    Flag(
        "--json",
        "json",
        "write parameters, a report of every problem, stop reasons and versions to a file",
        ("file",),
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
