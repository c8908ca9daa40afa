"""Fit one library once on one saved problem, in a process of its own, and print what it took.

    python bench/speed/fit_once.py LIBRARY PROBLEM.npz --threads 2 --queries 2000 --objective

Prints one JSON object: {"absent": reason}, or seconds, memory and iterations; with --queries the
seconds of predict and decision_function on that many of the first rows, and with --objective
the dual objective.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np

from bench.common import MEGABYTE, Absent, forget_peak, memory
from bench.speed.adapters import ADAPTERS, Adapter, Limits
from bench.speed.objective import dual_objective
from bench.speed.workloads import Problem

QUICK, QUICK_TO_PREDICT = 0.5, 0.1  # seconds; what takes less is timed over and over


def measure(
    library: str, path: Path, limits: Limits, *, queries: int, objective: bool
) -> dict[str, object]:
    """Fit, read the memory of the first fit, then do what else is asked."""
    problem = Problem.read(path)
    adapter = ADAPTERS[library](limits)
    adapter.prepare(problem)
    forget_peak()
    before, _ = memory()
    first = timed(adapter.fit)
    _, peak = memory()
    seconds = median_seconds(adapter.fit, QUICK, first)
    solution = adapter.solution()
    return {
        "seconds": seconds,
        "peak_mb": round(peak / MEGABYTE, 1),
        "fit_mb": round((peak - before) / MEGABYTE, 1),
        "iterations": solution.iterations,
        "n_sv": len(solution.support),
        **(predictions(adapter, problem, queries) if queries else {}),
        **({"objective": dual_objective(problem, solution)} if objective else {}),
    }


def predictions(adapter: Adapter, problem: Problem, queries: int) -> dict[str, object]:
    """Seconds of both, and a score by which a fast wrong answer shows."""
    count = min(queries, len(problem.y))
    adapter.ask(count)
    answers: list[np.ndarray] = []
    first = timed(lambda: answers.append(adapter.predict()))
    decides = problem.estimator != "SVR"
    return {
        "rows": count,
        "predict_seconds": median_seconds(adapter.predict, QUICK_TO_PREDICT, first),
        "decision_seconds": median_seconds(adapter.decide, QUICK_TO_PREDICT) if decides else None,
        "score": score(problem.estimator, answers[0], problem.y[:count]),
    }


def score(estimator: str, predicted: np.ndarray, y: np.ndarray) -> float:
    """The share of right labels, of accepted rows (one-class), or R2 (regression)."""
    if estimator == "SVR":
        return float(1 - np.square(predicted - y).sum() / np.square(y - y.mean()).sum())
    return float(np.mean(predicted == (1 if estimator == "OneClassSVM" else y)))


def median_seconds(work: Callable[[], object], quick: float, first: float | None = None) -> float:
    """The median of one run, or of many if it is quick; the first may be known."""
    seconds = [timed(work) if first is None else first]
    while seconds[0] < quick and sum(seconds) < 2 * quick:
        seconds.append(timed(work))
    return statistics.median(seconds)


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=ADAPTERS)
    parser.add_argument("problem", type=Path)
    parser.add_argument("--threads", type=int, default=Limits.threads)
    parser.add_argument("--queries", type=int, default=0)
    parser.add_argument("--objective", action="store_true")
    options = parser.parse_args()
    limits = Limits(threads=options.threads)
    asked = {"queries": options.queries, "objective": options.objective}
    try:
        result = measure(options.library, options.problem, limits, **asked)
    except Absent as reason:
        result = {"absent": str(reason)}
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
