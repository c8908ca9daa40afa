"""``dpsvm train``: LIBSVM's svm-train, with a choice of selectors, or ``--private``."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dpsvm import _core
from dpsvm._version import __version__
from dpsvm.cli.files import read_problem, require_folder, require_serials_in_range, write_json
from dpsvm.cli.log import Log
from dpsvm.cli.machine_flags import take_parameters
from dpsvm.cli.options import SEE_HELP, UsageError, help_page
from dpsvm.cli.private_flags import MACHINE_FLAGS, PRIVATE_FLAGS, SHARED_FLAGS, parse_plain
from dpsvm.cli.scores import scores, told
from dpsvm.cli.train_flags import DPSVM_FLAGS, LIBSVM_FLAGS, asks_for_private
from dpsvm.progress import Monitor, solver_progress
from dpsvm.svm.monitors import Patience
from dpsvm.svm.parameters import CLASSIFIERS, Parameters
from dpsvm.svm.selectors import SELECTORS
from dpsvm.svm.training import Problem, Trainer
from dpsvm.threads import thread_count

_USAGE = "usage: dpsvm train [flags] FILE [MODEL]"
_LEAST_CAP = 10_000_000


def help_text() -> str:
    """The help of the command, from the table of parameters."""
    carried_over = " ".join(flag.spelling for flag in (*MACHINE_FLAGS, *SHARED_FLAGS))
    return help_page(
        _USAGE,
        "Trains on FILE, in LIBSVM's format, plain or compressed (.gz, .bz2, .xz), and writes "
        "MODEL (default: the name of FILE with .model, in this folder).",
        ("LIBSVM's flags", LIBSVM_FLAGS),
        ("Further flags", DPSVM_FLAGS),
        (
            "With a privacy guarantee\n"
            f"Of the flags above {carried_over} go with --private; -t is then 0 (linear) or 2 (rbf "
            "through random features, with -g), -c follows from epsilon unless given, --seed is "
            "for experiments, and --json writes the privacy report. A linear model is written as "
            "a LIBSVM model file, one on random features as JSON.",
            PRIVATE_FLAGS,
        ),
        ending="The exit code is 0, 2 for an error and 130 when interrupted.",
    )


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What the command line asks for."""

    parameters: Parameters
    data: str
    model: str
    max_iter: int | None  # None: LIBSVM's own cap
    class_weight: dict[int, float]
    n_folds: int | None
    quiet: bool
    seed: int | None
    threads: int | None
    json: str | None


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    if asks_for_private(arguments):
        from dpsvm.cli import private

        private.run(arguments)
        return
    request = _read_request(arguments)
    require_folder(request.json)
    if request.n_folds is None:
        require_folder(request.model)
    log = Log(request.parameters.machine, request.quiet)
    notice = SELECTORS[request.parameters.selector].notice(
        request.parameters, request.parameters.kernel
    )
    if notice is not None:
        log.warn(notice)
    problem = _read_problem(request, log)
    request = replace(request, parameters=_completed(request, problem))
    trainer = Trainer(
        parameters=request.parameters,
        class_weight=request.class_weight,
        seed=request.seed,
        threads=thread_count(None) if request.threads is None else request.threads,
        listener=log,
        watch=lambda: _watched(request, log),
    )
    try:
        if request.n_folds is None:
            outcome = _train(trainer, problem, request.model)
        else:
            outcome = _cross_validate(trainer, problem, request.n_folds, log)
    except ValueError as error:
        raise ValueError(f"{request.data}: {error}") from error
    log.warn_of_unfinished(request.parameters.tol)
    if request.json is not None:
        _write_facts(request.json, request.data, trainer, problem, log, outcome)


@contextmanager
def _watched(request: _Request, log: Log) -> Iterator[Monitor]:
    """Progress on a terminal, or dots as they come, and a word on a problem that takes very long.

    The problems of probability estimates are told of before those they are for, and solved after.
    """
    with solver_progress(not request.quiet) as display:
        monitor = display or (None if request.parameters.probability else log.progress)
        yield Patience(monitor, tol=request.parameters.tol, tell=log.warn)


def _read_request(arguments: list[str]) -> _Request:
    values, operands = parse_plain(arguments)
    if not operands:
        raise UsageError(f"FILE is missing ({_USAGE}){SEE_HELP}")
    if len(operands) > 2:
        raise UsageError(f"unexpected {operands[2]!r} ({_USAGE})")
    max_iter = values.pop("max_iter")
    parameters = take_parameters(values)
    if parameters.machine == "one-class" and parameters.probability:
        raise UsageError("-b 1: a one-class machine gives no probability estimates")
    model = operands[1] if len(operands) == 2 else os.path.basename(operands[0]) + ".model"
    return _Request(
        parameters=parameters, data=operands[0], model=model, max_iter=max_iter, **values
    )


def _read_problem(request: _Request, log: Log) -> Problem:
    classifier = request.parameters.machine in CLASSIFIERS
    precomputed = request.parameters.kernel == "precomputed"
    problem = read_problem(request.data, classes=classifier, precomputed=precomputed)
    require_serials_in_range(request.data, problem)
    if classifier:
        for label in request.class_weight:
            if not np.any(problem.y == label):
                log.warn(f"class label {label} specified in weight is not found")
    return problem


def _completed(request: _Request, problem: Problem) -> Parameters:
    """The parameters with LIBSVM's defaults for what depends on the data."""
    parameters = request.parameters
    n_rows, n_features = problem.X.shape
    max_iter = request.max_iter
    if max_iter is None:
        variables = 2 * n_rows if parameters.machine.endswith("svr") else n_rows
        max_iter = max(_LEAST_CAP, 100 * variables)
    gamma = parameters.gamma or (1.0 / n_features if n_features else 0.0)
    return replace(parameters, gamma=gamma, max_iter=max_iter)


def _train(trainer: Trainer, problem: Problem, path: str) -> dict[str, Any]:
    model = trainer.fit(problem)
    model.save(path)
    labels = None if model.labels is None else model.labels.tolist()
    return {"model": path, "labels": labels, "support_vectors": model.dual_coef.shape[1]}


def _cross_validate(trainer: Trainer, problem: Problem, n_folds: int, log: Log) -> dict[str, Any]:
    n_rows = len(problem)
    if n_folds > n_rows:
        log.warn(f"more folds than rows: leaving out one of {n_rows} rows at a time")
    predicted = trainer.cross_validate(problem, n_folds)
    found = scores(predicted, problem.y, trainer.parameters.machine.endswith("svr"))
    for text in told(found):
        print(f"Cross Validation {text}")
    return found


def _write_facts(
    path: str, data: str, trainer: Trainer, problem: Problem, log: Log, outcome: dict[str, Any]
) -> None:
    """Write what the model file has no place for."""
    import scipy

    facts = {
        "data": {"file": data, "rows": len(problem), "features": problem.X.shape[1]},
        "parameters": asdict(trainer.parameters)
        | {"class_weight": dict(trainer.class_weight), "seed": trainer.seed},
        "threads": trainer.threads,
        "problems": log.problems,
        "outcome": outcome,
        "warnings": log.warnings,
        "versions": {
            "dpsvm": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "cpu": _core.cpu_level(),
    }
    write_json(path, facts)
