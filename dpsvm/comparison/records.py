"""A comparison as flat records, for JSON, CSV and data frames."""

from __future__ import annotations

import csv
import io
import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import sklearn

from dpsvm import _core
from dpsvm._version import __version__
from dpsvm.report.plain_json import dumps
from dpsvm.svm.selectors import SELECTORS

if TYPE_CHECKING:
    from dpsvm.comparison.comparison import Comparison, Plan
    from dpsvm.comparison.summary import Summary

STOP_REASONS = ("stationary", "exhausted", "stalled", "max_iter", "time_limit")


def record(comparison: Comparison, line: Summary) -> dict[str, Any]:
    """One setting as a flat dict, the same keys for every setting of a comparison."""
    found: dict[str, Any] = {"data": comparison.data.name, **asdict(line.setting)}
    found["runs"] = len(line.runs)
    for name in ("iterations", "objective", "objective_error", "gap", "seconds"):
        spread = getattr(line, name)
        found |= {f"{name}_{part}": value for part, value in asdict(spread).items()}
    found["iteration_ratio"] = line.iteration_ratio
    found["kernel_evaluations_mean"] = line.kernel_evaluations
    found |= {f"stopped_{reason}": line.stops.get(reason, 0) for reason in STOP_REASONS}
    for where in ("train", "cv", "test"):
        scores = line.scores(where)
        if scores is not None:
            found |= {f"{where}_{name}": value for name, value in asdict(scores).items()}
    return found


def configuration(plan: Plan) -> dict[str, Any]:
    """What was run and with which versions."""
    names = dict.fromkeys(setting.selector for setting in plan.settings)
    used = ("kernel", "degree", "gamma", "coef0", "C", "tol", "cache_size", "max_iter")
    return {
        "parameters": {name: getattr(plan.parameters, name) for name in used},
        "selectors": {name: SELECTORS[name].label for name in names},
        "runs": plan.runs,
        "seed": plan.seed,
        "cv": plan.cv,
        "versions": {
            "dpsvm": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "cpu": _core.cpu_level(),
    }


def json_text(comparisons: Sequence[Comparison], failures: Sequence[str] = ()) -> str:
    """Every comparison as one JSON document; what JSON cannot say (NaN, infinity) is null."""
    document = {"comparisons": [one.to_dict() for one in comparisons], "failures": list(failures)}
    return dumps(document)


def csv_text(comparisons: Sequence[Comparison]) -> str:
    """One line per data set and setting; what was not measured is empty."""
    records = [line for one in comparisons for line in one.records()]
    text = io.StringIO()
    columns = list(dict.fromkeys(name for line in records for name in line))
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({k: "" if v is None else v for k, v in line.items()} for line in records)
    return text.getvalue()
