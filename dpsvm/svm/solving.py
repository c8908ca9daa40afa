"""The calls of the core that make up one fit."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from dpsvm import _core
from dpsvm._arrays import Array
from dpsvm._result import Report, Solution
from dpsvm.progress import Monitor
from dpsvm.svm.parameters import Parameters
from dpsvm.svm.validation import Rows


class CoreFit:
    """Trains as often as one fit needs it; all its calls together keep the time limit.

    >>> import numpy as np
    >>> solve = CoreFit(Parameters(machine="one-class", kernel="linear"), threads=1)
    >>> float(solve(np.array([[1.0], [2.0]]), None).dual_coef.sum()), len(solve.reports)
    (1.0, 1)
    """

    def __init__(
        self,
        parameters: Parameters,
        *,
        threads: int,
        seed: int | None = None,
        watch: Callable[[], AbstractContextManager[Monitor | None]] = nullcontext,
    ) -> None:
        self.parameters = parameters
        self.threads = threads
        self.reports: list[Report] = []  # of every call
        self._seed = seed
        self._watch = watch  # gives the monitor of a call
        limit = parameters.time_limit
        self._deadline = None if limit is None else time.monotonic() + limit

    def __call__(
        self,
        problem: Any,  # rows, or their kernel matrix
        targets: Array | None,  # of each row trained on
        *,
        rows: Rows | None = None,  # to train on; None: all
        weight: Array | None = None,  # of each row trained on
        class_weight: Array | None = None,
        alpha: Array | None = None,  # coefficients to continue from
        nu: float | None = None,  # in the place of the parameters'
    ) -> Solution:
        options = self.parameters.train_options()
        if self._deadline is not None:
            options["time_limit"] = max(self._deadline - time.monotonic(), 1e-6)
        if nu is not None:
            options["nu"] = nu
        # nu-svc has no C to weigh; LIBSVM ignores class weights there too.
        by_class = class_weight if self.parameters.machine == "c-svc" else None
        with self._watch() as monitor:
            solution = _core.train(
                problem,
                targets,
                rows=rows,
                sample_weight=weight,
                class_weight=by_class,
                alpha=alpha,
                threads=self.threads,
                seed=self._seed,
                monitor=monitor,
                **options,
            )
        self.reports += solution.reports
        return solution
