"""The tables of speed.py: what every library took, and how dpsvm stands to the fastest other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from bench.common import Table
from bench.speed.turns import OWN, Runs

Board: TypeAlias = dict[str, dict[str, Runs]]  # workload: library: runs

REFERENCES = ("LIBSVM", "scikit-learn", OWN)  # whose objective the others' are compared to
OTHERS = ("scikit-learn", "LIBSVM", "scikit-learn-intelex")  # who solve the same problem
KEEPING, BESIDE = "dpsvm keeping w", "liblinear"

FIT_COLUMNS = (
    "workload",
    "library",
    "runs",
    "seconds",
    "fastest",
    "slowest",
    "times dpsvm",
    "fit MB",
    "peak MB",
    "cores taken",
    "iterations",
    "nSV",
    "objective",
    "relative difference",
)
PREDICT_COLUMNS = (
    "workload",
    "library",
    "runs",
    "rows",
    "predict",
    "times dpsvm",
    "decision_function",
    "times dpsvm's",
    "score",
)
RATIO_COLUMNS = (
    "workload",
    "fastest other at fit",
    "fit",
    "at predict",
    "predict",
    "at decision_function",
    "decision",
    "fit MB",
    "others' fit MB",
    "liblinear",
    "keeping w to LIBSVM",
    "keeping w to liblinear",
)


def present(libraries: Mapping[str, Runs]) -> dict[str, Runs]:
    """The libraries that gave an answer."""
    return {name: runs for name, runs in libraries.items() if runs.absent is None}


def ratio(libraries: Mapping[str, Runs], one: str, other: str, what: str) -> float | None:
    """How many times the other's median one's is, None where either has none."""
    known = present(libraries)
    if one not in known or other not in known:
        return None
    above, below = known[one].median(what), known[other].median(what)
    return None if above is None or not below else above / below


def fastest_other(libraries: Mapping[str, Runs], what: str) -> tuple[str, float] | None:
    """The fastest of the others and its time over dpsvm's."""
    ratios = {name: ratio(libraries, name, OWN, what) for name in OTHERS}
    known = {name: value for name, value in ratios.items() if value is not None}
    return min(known.items(), key=lambda item: item[1]) if known else None


def difference(libraries: Mapping[str, Runs], library: str, reference: str) -> float | None:
    """Of the objectives, relative to the reference's."""
    known = present(libraries)
    if library not in known or reference not in known:
        return None
    best = float(known[reference].first("objective"))
    return (float(known[library].first("objective")) - best) / abs(best)


def fit_table(board: Board, dtype: str) -> Table:
    table = Table(f"Fit, {dtype}", FIT_COLUMNS)
    for workload, libraries in board.items():
        reference = next((name for name in REFERENCES if name in present(libraries)), None)
        for name, runs in libraries.items():
            if runs.absent is not None:
                row = [workload, name, 0, runs.absent, *[None] * (len(FIT_COLUMNS) - 4)]
                table.rows.append(row)
                continue
            times, taken = runs.values("seconds"), runs.values("taken")
            apart = None if reference is None else difference(libraries, name, reference)
            table.rows.append(
                [
                    workload,
                    name,
                    len(times),
                    _rounded(runs.median("seconds"), 4),
                    _rounded(min(times), 4),
                    _rounded(max(times), 4),
                    _rounded(ratio(libraries, name, OWN, "seconds"), 2),
                    runs.median("fit_mb"),
                    runs.median("peak_mb"),
                    _rounded(math.fsum(taken) / len(taken), 2),
                    runs.first("iterations"),
                    runs.first("n_sv"),
                    _rounded(runs.first("objective"), 6),
                    None if apart is None else f"{apart:+.1e}",
                ]
            )
    return table


def predict_table(board: Board, dtype: str) -> Table:
    table = Table(f"Predict, {dtype}", PREDICT_COLUMNS)
    for workload, libraries in board.items():
        for name, runs in present(libraries).items():
            table.rows.append(
                [
                    workload,
                    name,
                    len(runs.answers),
                    runs.first("rows"),
                    _rounded(runs.median("predict_seconds"), 5),
                    _rounded(ratio(libraries, name, OWN, "predict_seconds"), 2),
                    _rounded(runs.median("decision_seconds"), 5),
                    _rounded(ratio(libraries, name, OWN, "decision_seconds"), 2),
                    _rounded(runs.first("score"), 4),
                ]
            )
    return table


def ratio_table(board: Board, dtype: str) -> Table:
    table = Table(f"The fastest other's time over dpsvm's, {dtype}", RATIO_COLUMNS)
    for workload, libraries in board.items():
        cells: list[object] = [workload]
        for what in ("seconds", "predict_seconds", "decision_seconds"):
            name, times = fastest_other(libraries, what) or (None, None)
            cells += [name, _rounded(times, 2)]
        known = present(libraries)
        cells.append(known[OWN].median("fit_mb") if OWN in known else None)
        others = [known[name].median("fit_mb") for name in OTHERS if name in known]
        cells.append(" / ".join(f"{mb:g}" for mb in others if mb is not None) or None)
        cells.append(_rounded(ratio(libraries, BESIDE, OWN, "seconds"), 3))
        cells.append(_rounded(ratio(libraries, "LIBSVM", KEEPING, "seconds"), 2))
        cells.append(_rounded(ratio(libraries, BESIDE, KEEPING, "seconds"), 3))
        table.rows.append(cells)
    return table


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
