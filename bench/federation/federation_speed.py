"""Seconds per round of ADMM sharing: the runners, and sums that hide their parts.

    python bench/federation/federation_speed.py [--rows N] [--rounds N]

A message has as many doubles as there are rows, 32,768. Every site keeps its answers and snapshots
on the disk, synced, with all runners. Rounds are timed at the coordinator, from the end of one to
the end of the next; reading data and starting processes do not count. Runners take turns.

Masked and open sums are compared in one process, five parties of 10 columns, in turns: by the
clock with the disk, and by the time of the processor, which neither the disk nor other work on the
machine changes. That is what the bar is for: waiting for the disk takes as long both ways.

Writes results/federation_speed.json and .md. Exit code 1 if MPI takes more than 5 times as long as
one process, or a masked round more than 1.3 times as long as an open one.
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

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import Table, arguments, child_environment, note, run, write_results
from bench.federation.sites import PARTIES, Problem, make_problem, mpirun
from dpsvm.federation import Coordinator, InProcessRunner, Job, Party, RunFolder, Site
from dpsvm.federation.keys import introduce

DRIVER = Path(__file__).with_name("driver.py")
COLUMNS = 10
TURNS = 3
FIRST = 2  # rounds that are not counted: factors are made, memory is touched
LIMIT = 5.0  # of MPI, in times of one process
SUMMING = tuple(f"site{place}" for place in range(5))
MASKED_LIMIT = 1.3  # of a masked round, in times of an open one


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


def measure_sums(folder: Path, sums: str, rows: int, rounds: int) -> tuple[list[float], ...]:
    """Seconds of every round by the clock and of the processor, of five parties that send bytes."""
    settings = {"loss": "logistic", "rounds": rounds}
    job = Job("sums", "sharing", SUMMING, SUMMING[0], settings, ids=False, sums=sums)
    random = np.random.default_rng(0)
    sites = [Site(name, random.uniform(-0.3, 0.3, (rows, COLUMNS))) for name in SUMMING]
    owner = Site(SUMMING[0], labels=np.where(random.random(rows) < 0.5, -1, 1))
    *sites, owner = introduce([*sites, owner])
    stores = [RunFolder(folder / str(place), job.run) for place in range(len(sites) + 1)]
    parties = [Party(job, *one) for one in zip(sites, stores, strict=False)]
    ends: list[tuple[float, float]] = []
    with threadpool_limits(1):
        turn = InProcessRunner(parties, wire=True).run(
            Coordinator(job, owner, stores[-1]),
            lambda metrics: ends.append((time.perf_counter(), time.process_time())),
        )
    for store in stores:
        store.close()
    if turn.ended != "done":
        raise RuntimeError(f"the run with {sums} sums: {turn.reason}")
    clocks = zip(*ends[FIRST:], strict=True)
    return tuple([after - before for before, after in pairwise(clock)] for clock in clocks)


def compare_sums(rows: int, rounds: int, turns: int) -> tuple[Table, float]:
    """A row for each way, and how many times as long as an open round a masked one takes."""
    found: dict[str, tuple[list[float], list[float]]] = {"open": ([], []), "masked": ([], [])}
    for turn in range(turns):
        for sums, taken in found.items():
            with tempfile.TemporaryDirectory() as folder:
                for clock, more in zip(
                    taken, measure_sums(Path(folder), sums, rows, rounds), strict=True
                ):
                    clock += more
            note(f"turn {turn + 1} {sums:12}{median(taken[1]):.4f} s of the processor per round")
    table = Table(
        f"seconds per round in one process, {len(SUMMING)} parties x {rows} numbers",
        (
            "sums",
            "median",
            "least",
            "processor, median",
            "processor, least",
            "rounds",
            "times open",
        ),
    )
    base = median(found["open"][1])
    for sums, (clock, processor) in found.items():
        figures = (median(clock), min(clock), median(processor), min(processor))
        ratio = round(median(processor) / base, 2)
        table.rows.append((sums, *(round(one, 5) for one in figures), len(clock), ratio))
    return table, median(found["masked"][1]) / base


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
    sums, masked = compare_sums(rows, rounds, turns)
    good = masked <= MASKED_LIMIT
    verdicts = [
        f"MPI at most {LIMIT:g} times in-process: {'yes' if fine else 'NO'} ({ratio:.2f} times)",
        f"masked sums at most {MASKED_LIMIT:g} times open ones, by the processor: "
        f"{'yes' if good else 'NO'} ({masked:.2f} times)",
    ]
    print(table.text(), sums.text(), sep="\n\n")
    print("\n".join(verdicts))
    if not options.quick:
        config = {"rows": rows, "rounds": rounds, "columns": COLUMNS, "turns": turns}
        write_results(
            options.results, "federation_speed", [table, sums], config=config, verdicts=verdicts
        )
    return int(not (fine and good))


if __name__ == "__main__":
    run(main)
