"""Seconds per round of the runners: ADMM sharing between three parties of 10 columns each.

    python bench/federation/federation_speed.py [--rows N] [--rounds N]

A message has as many doubles as there are rows, 32,768. Every site keeps its answers and snapshots
on the disk, synced, with all runners. Rounds are timed at the coordinator, from the end of one to
the end of the next; reading data and starting processes do not count. Runners take turns.

Writes results/federation_speed.json and .md. Exit code 1 if MPI takes more than 5 times as long as
one process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import Table, arguments, child_environment, note, run, write_results
from bench.federation.sites import PARTIES, Problem, make_problem, mpirun
from dpsvm.federation import InProcessRunner

DRIVER = Path(__file__).with_name("driver.py")
COLUMNS = 10
TURNS = 3
FIRST = 2  # rounds that are not counted: factors are made, memory is touched
LIMIT = 5.0  # of MPI, in times of one process


def measure_in_process(problem: Problem) -> list[float]:
    """When each round ended; all sites in this process, which send bytes."""
    ends: list[float] = []
    parties, coordinator = problem.make()
    turn = InProcessRunner(parties, wire=True).run(
        coordinator, lambda metrics: ends.append(time.perf_counter())
    )
    if turn.ended != "done":
        raise RuntimeError(f"the run in one process: {turn.reason}")
    return ends


def measure_mpi(problem: Problem) -> list[float]:
    """When each round ended; a process for each site."""
    log = problem.folder / "log"
    log.mkdir()
    done = subprocess.run(
        mpirun([str(DRIVER), "--log", str(log), *problem.files]),
        capture_output=True,
        text=True,
        env=child_environment(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"),
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the run of MPI: {done.stderr}")
    lines = map(json.loads, (log / "0").read_text().splitlines())
    return [line["at"] for line in lines if "ended" in line]


RUNNERS: Mapping[str, Callable[[Problem], list[float]]] = {
    "in-process": measure_in_process,
    "mpi": measure_mpi,
}
"""By name: what runs a problem and tells when each of its rounds ended."""


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=32_768)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    rows, rounds, turns = options.rows, options.rounds, TURNS
    if options.quick:
        rows, rounds, turns = 512, 6, 1
    settings = {"loss": "logistic", "rounds": rounds}
    seconds: dict[str, list[float]] = {name: [] for name in RUNNERS}
    for turn in range(turns):
        for name, measure in RUNNERS.items():
            with tempfile.TemporaryDirectory() as folder:
                problem = make_problem(
                    Path(folder, "sites"),
                    "sharing",
                    settings,
                    rows=rows,
                    columns=COLUMNS,
                    private=False,
                )
                ends = measure(problem)
            taken = [after - before for before, after in pairwise(ends[FIRST:])]
            seconds[name] += taken
            note(f"turn {turn + 1} {name:12}{median(taken):.4f} s per round")
    table = Table(
        f"seconds per round, {len(PARTIES)} parties x {rows} doubles",
        ("runner", "median", "lower quartile", "upper quartile", "rounds", "times in-process"),
    )
    base = median(seconds["in-process"])
    for name, taken in seconds.items():
        low, middle, high = (round(one, 5) for one in quantiles(taken, n=4))
        table.rows.append((name, middle, low, high, len(taken), round(median(taken) / base, 2)))
    ratio = median(seconds["mpi"]) / base
    fine = ratio <= LIMIT
    verdicts = [
        f"MPI at most {LIMIT:g} times in-process: {'yes' if fine else 'NO'} ({ratio:.2f} times)"
    ]
    print(table.text())
    print("\n".join(verdicts))
    if not options.quick:
        config = {"rows": rows, "rounds": rounds, "columns": COLUMNS, "turns": turns}
        write_results(
            options.results, "federation_speed", [table], config=config, verdicts=verdicts
        )
    return int(not fine)


if __name__ == "__main__":
    run(main)
