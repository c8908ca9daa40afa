"""The C++ solver. Arrays go in as they are; the callers have checked them for NaN."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm._result import Solution

def selectors() -> list[dict[str, Any]]:
    """What the files of the selectors register, as ``csrc/selector.hpp`` explains it."""

def train(
    X: Any,
    y: NDArray[np.float64] | None,
    *,
    machine: str,
    kernel: str,
    gamma: float = 1.0,
    coef0: float = 0.0,
    degree: int = 3,
    C: float = 1.0,
    nu: float = 0.5,
    epsilon: float = 0.1,
    tol: float = 1e-3,
    cache_bytes: int = ...,
    shrinking: bool = True,
    max_iter: int = -1,
    time_limit: float = ...,
    solver: str = "smo",
    selector: str = "wss2",
    seed: int | None = None,
    threads: int = 1,
    rows: NDArray[np.intp] | None = None,
    sample_weight: NDArray[np.float64] | None = None,
    class_weight: NDArray[np.float64] | None = None,
    alpha: NDArray[np.float64] | None = None,
    trace_every: int = 0,
    monitor: Callable[[dict[str, Any]], bool] | None = None,
    **numbers: float,
) -> Solution:
    """Fit one machine: ``c-svc``, ``nu-svc``, ``one-class``, ``epsilon-svr`` or ``nu-svr``.

    X: float32 or float64, 2-D array with contiguous rows (may be read-only), or CSR with sorted
        indices; for ``kernel="precomputed"`` the dense square Gram matrix.
    y: class codes 0 .. k-1 (class 0 is the positive class of each pair), or regression targets.
    solver: ``smo`` or, with the linear kernel and a selector that says so, ``decomposition``.
    numbers: what selectors read, by name; those left out have their default.
    seed: for the randomised selectors; None takes the operating system's entropy.
    rows: the rows of X that are the samples, in their order, read where they are; None: all. The
        arrays y, sample_weight and alpha have a number for each, and support names rows of X.
    sample_weight: positive factors of each sample's bound; class_weight: likewise by class code.
    alpha: signed coefficients to continue from, a number for each row; of classifiers, classes - 1
        lines of them, in the layout of ``dual_coef``. They are moved to a feasible point near them.
    trace_every: keep gap, objective and active size of every so many iterations; 0 keeps none.
    monitor: called at most about twenty times a second with a dict of ``problem``, ``problems``,
        ``iteration``, ``gap``, ``active`` and ``marks``; a true result stops the fit
        with ``callback``.

    Raises ValueError, MemoryError, or KeyboardInterrupt when Ctrl-C is pressed.
    """

def decision_values(
    X: Any,
    support_vectors: Any,
    dual_coef: NDArray[np.float64],
    rho: NDArray[np.float64],
    n_support: NDArray[np.int32],
    *,
    machine: str,
    kernel: str,
    gamma: float = 1.0,
    coef0: float = 0.0,
    degree: int = 3,
    support: NDArray[np.int32] | None = None,
    decision_range: NDArray[np.float64] | None = None,
    threads: int = 1,
) -> NDArray[np.float64]:
    """Decision values with LIBSVM's signs, shape (rows of X, pairs of classes or 1).

    X: queries, as in train; for ``kernel="precomputed"`` their kernel values with all training
        rows.
    support_vectors: dense or CSR with the columns of X; unused for ``kernel="precomputed"``, where
        ``support`` gives the columns of X that count.
    decision_range: of the decision values over the training rows, for each pair. Without it, or
        where rounding would show in it, float32 rows are computed in double precision.
    """

def cpu_level() -> str:
    """The instruction set chosen at run time: ``portable``, ``avx2``, ``avx512`` or ``neon``."""
