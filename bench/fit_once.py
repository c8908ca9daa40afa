"""Fit one library once on one saved problem, in a process of its own, and print what it took.

    python bench/fit_once.py LIBRARY PROBLEM.npz --threads 2

Prints one JSON object: {"absent": reason}, or seconds, memory, iterations and objective.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

from adapters import ADAPTERS, Adapter, Limits
from common import MEGABYTE, Absent, forget_peak, memory
from objective import dual_objective
from workloads import Problem

QUICK = 0.5  # seconds


def measure(library: str, path: Path, limits: Limits) -> dict[str, object]:
    """Fit, read the memory of the first fit, then repeat fits that are too quick to time once."""
    problem = Problem.read(path)
    adapter = ADAPTERS[library](limits)
    adapter.prepare(problem)
    forget_peak()
    before, _ = memory()
    seconds = [timed(adapter)]
    _, peak = memory()
    while seconds[0] < QUICK and sum(seconds) < 2 * QUICK:
        seconds.append(timed(adapter))
    solution = adapter.solution()
    return {
        "seconds": statistics.median(seconds),
        "peak_mb": round(peak / MEGABYTE, 1),
        "fit_mb": round((peak - before) / MEGABYTE, 1),
        "iterations": solution.iterations,
        "n_sv": len(solution.support),
        "objective": dual_objective(problem, solution),
    }


def timed(adapter: Adapter) -> float:
    started = time.perf_counter()
    adapter.fit()
    return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=ADAPTERS)
    parser.add_argument("problem", type=Path)
    parser.add_argument("--threads", type=int, default=Limits.threads)
    options = parser.parse_args()
    try:
        result = measure(options.library, options.problem, Limits(threads=options.threads))
    except Absent as reason:
        result = {"absent": str(reason)}
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
