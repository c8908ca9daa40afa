"""Fit time beside scikit-learn, LIBSVM and scikit-learn-intelex.

    python bench/speed.py ../shared            # a5a, w8a, ijcnn1 and Fashion-MNIST 10k
    python bench/speed.py ../shared --all      # every workload of workloads.py

Every fit runs in a fresh process on the same saved arrays, with the same tolerance, cache and
threads; the libraries take turns, round after round, and the median counts. The dual objective
is worked out afresh from each library's support vectors, so a fast wrong answer shows. What
other processes took of the cores meanwhile is measured and told: only a quiet machine's times
are worth keeping. Exit code 1 if dpsvm's optimum is another one than scikit-learn's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adapters import ADAPTERS, Limits
from common import (
    Absent,
    Table,
    arguments,
    busy_seconds,
    note,
    run,
    shared_folder,
    write_results,
)
from workloads import WORKLOADS, Workload

OWN, REFERENCE = "dpsvm", "scikit-learn"
QUIET = 0.1  # cores that other processes may take, on average
SAME_OPTIMUM = 1e-4  # relative, of the dual objective, at tol 1e-3

COLUMNS = (
    "workload",
    "library",
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


def fit_once(library: str, problem: Path, threads: int) -> dict[str, Any]:
    """Run fit_once.py in a fresh process."""
    command = [sys.executable, str(Path(__file__).with_name("fit_once.py")), library, str(problem)]
    limit = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    # libsvm-official's OpenMP threads spin at barriers; beside any other load that costs it 5-fold.
    limit["OMP_WAIT_POLICY"] = "passive"
    everyone, family = busy_seconds()
    started = time.perf_counter()
    done = subprocess.run(
        [*command, "--threads", str(threads)],
        env=os.environ | limit,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{library} failed: {done.stderr.strip().splitlines()[-1:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    elapsed = time.perf_counter() - started
    everyone_after, family_after = busy_seconds()
    others = (everyone_after - everyone) - (family_after - family)
    return answer | {"taken": max(0.0, others / elapsed)}


def rounds(workload: Workload, problem: Path, options: argparse.Namespace) -> dict[str, list[Any]]:
    """The answers of each library, gathered in turns; a library that is absent is asked once."""
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in options.libraries}
    for turn in range(options.repeats):
        for library, known in answers.items():
            if known and "absent" in known[0]:
                continue
            answer = fit_once(library, problem, options.threads)
            known.append(answer)
            told = answer.get("absent") or f"{answer['seconds']:.2f} s"
            note(f"{workload.name} {turn + 1}/{options.repeats} {library}: {told}")
    return answers


def summarise(workload: str, answers: dict[str, list[dict[str, Any]]]) -> list[list[object]]:
    """Table rows, the ratio taken to dpsvm and the objective to scikit-learn (or to dpsvm)."""
    present = {name: runs for name, runs in answers.items() if "absent" not in runs[0]}
    medians = {
        name: statistics.median(r["seconds"] for r in runs) for name, runs in present.items()
    }
    reference = next((present[name][0] for name in (REFERENCE, OWN) if name in present), None)
    rows: list[list[object]] = []
    for name, runs in answers.items():
        if name not in present or reference is None:
            reason = runs[0].get("absent", "")
            rows.append([workload, name, reason, *[None] * (len(COLUMNS) - 3)])
            continue
        times, best = [r["seconds"] for r in runs], reference["objective"]
        rows.append(
            [
                workload,
                name,
                round(medians[name], 4),
                round(min(times), 4),
                round(max(times), 4),
                round(medians[name] / medians[OWN], 2) if OWN in medians else None,
                statistics.median(r["fit_mb"] for r in runs),
                statistics.median(r["peak_mb"] for r in runs),
                round(statistics.fmean(r["taken"] for r in runs), 2),
                runs[0]["iterations"],
                runs[0]["n_sv"],
                round(runs[0]["objective"], 6),
                f"{(runs[0]['objective'] - best) / abs(best):+.1e}",
            ]
        )
    return rows


def judge(rows: Sequence[Sequence[object]]) -> tuple[list[str], bool]:
    """Was the machine quiet, dpsvm ever slower than scikit-learn, the optimum the same?"""
    cells = {(row[0], row[1]): dict(zip(COLUMNS, row, strict=True)) for row in rows}
    slower, apart, compared = [], [], 0
    for (workload, library), own in cells.items():
        other = cells.get((workload, REFERENCE))
        if library != OWN or other is None or other["objective"] is None:
            continue
        compared += 1
        if float(str(own["seconds"])) > float(str(other["seconds"])):
            slower.append(str(workload))
        if abs(float(str(own["relative difference"]))) > SAME_OPTIMUM:
            apart.append(str(workload))
    taken = [float(str(cell["cores taken"])) for cell in cells.values() if cell["nSV"] is not None]
    most = max(taken, default=math.nan)
    state = "a quiet machine" if most <= QUIET else "NOT a quiet machine, times are indicative only"
    return [
        f"cores taken by other processes, at the most: {most:g}: {state}",
        f"slower than scikit-learn on: {', '.join(slower) or 'none'} of {compared}",
        f"another optimum than scikit-learn on: {', '.join(apart) or 'none'} of {compared}",
    ], not apart


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments(__doc__)
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("--all", action="store_true", help="every workload, not the first four")
    parser.add_argument("--workloads", nargs="+", choices=names, metavar="NAME")
    parser.add_argument("--libraries", nargs="+", choices=ADAPTERS, default=list(ADAPTERS))
    parser.add_argument("--float32", action="store_true", help="rows in single precision")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=Limits.threads)
    options = parser.parse_args(argv)
    if options.quick:
        options.repeats, options.workloads = 1, options.workloads or ["heart"]
    return options


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    shared = shared_folder(options.shared)
    dtype = "float32" if options.float32 else "float64"
    table = Table(f"Fit, {dtype}", COLUMNS)
    for workload in WORKLOADS:
        if options.workloads is None and not (options.all or workload.first):
            continue
        if options.workloads is not None and workload.name not in options.workloads:
            continue
        try:
            problem = workload.problem(shared, dtype)
        except Absent as reason:
            note(f"{workload.name}: skipped, {reason}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder, "problem.npz")
            problem.save(saved)
            del problem
            table.rows += summarise(workload.name, rounds(workload, saved, options))
    print(table.text(), end="\n\n")
    verdicts, same = judge(table.rows)
    print("\n".join(verdicts))
    if not options.quick:
        limits = Limits(threads=options.threads)
        config = vars(limits) | {"dtype": dtype, "repeats": options.repeats}
        name = "speed-float32" if options.float32 else "speed"
        write_results(options.results, name, [table], config=config, verdicts=verdicts)
    return 0 if same else 1


if __name__ == "__main__":
    run(main)
