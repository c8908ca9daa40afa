"""The JSON side file of a training run: what the model file has no place for."""

from __future__ import annotations

import platform
from dataclasses import asdict
from typing import Any

import numpy as np

from dpsvm import _core
from dpsvm._version import __version__
from dpsvm.cli.log import Log
from dpsvm.data import atomic_write
from dpsvm.report.plain_json import dumps
from dpsvm.svm.training import Problem, Trainer


def write_facts(
    path: str, trainer: Trainer, problem: Problem, data: str, log: Log, outcome: dict[str, Any]
) -> None:
    """Write the facts, whole or not at all; what JSON cannot say (NaN, infinity) becomes null."""
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
    with atomic_write(path) as file:
        file.write(dumps(facts))
