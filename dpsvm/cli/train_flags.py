"""The flags of ``dpsvm train``: LIBSVM's, then ours."""

from __future__ import annotations

from collections.abc import Sequence

from dpsvm.cli.options import Flag, reader, table_flag
from dpsvm.svm.parameters import KERNELS, MACHINES, SELECTORS, SOLVERS
from dpsvm.threads import thread_count

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


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 2**64:
        raise ValueError
    return seed


def _positive(text: str) -> float:
    weight = float(text)
    if not 0.0 < weight < float("inf"):
        raise ValueError
    return weight


def _folds(text: str) -> int:
    n_folds = int(text)
    if n_folds < 2:
        raise ValueError
    return n_folds


def _thread_count(text: str) -> int:
    return thread_count(int(text))


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
        reader(_positive, "a positive number"),
        default_text="1",
        labelled=True,
    ),
    Flag(
        "-v",
        "n_folds",
        "print the accuracy of n-fold cross-validation instead of writing a model",
        ("n",),
        reader(_folds, "a whole number from 2 on"),
    ),
    Flag("-q", "quiet", "print nothing but warnings, errors and the result of -v", default=False),
)
DPSVM_FLAGS = (
    table_flag("solver", "name", choices=("  " + " ".join(SOLVERS),)),
    table_flag("selector", "name", choices=("  " + " ".join(SELECTORS),)),
    table_flag("selection_epsilon", "x"),
    table_flag("sigma", "x"),
    Flag(
        "--seed",
        "seed",
        "seed of the folds and of selectors that draw",
        ("n",),
        reader(_seed, "a whole number from 0 to 2^64 - 1"),
        default_text="1 for folds, fresh for selectors",
    ),
    Flag(
        "--threads",
        "threads",
        "threads to use; the result does not depend on it",
        ("n",),
        reader(_thread_count, "a number of threads"),
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
