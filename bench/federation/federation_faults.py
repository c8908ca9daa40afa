"""Kill sites of private runs in every phase, resume, and compare with runs that nobody killed.

    python bench/federation/federation_faults.py [--trials N] [--seed S]

Real processes under mpirun: a coordinator and three parties, whose noise keys are given so that
bytes can be compared. A trial kills one of them with SIGKILL at a phase of a round, resumes the
run, in some trials kills another, and resumes again. Every combination of algorithm, role and phase
comes first; the party, the round and the rest are drawn. At the end three things are compared with
the run that was not interrupted: what the sites have charged, every byte that was ever sent, and
every file that they keep.

Writes results/federation_faults.json and .md. Exit code 1 if anything differs.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np

from bench.common import Table, arguments, child_environment, note, run, write_results
from bench.federation.sites import PARTIES, PROBLEMS, Problem, make_problem, mpirun

DRIVER = Path(__file__).with_name("driver.py")
PHASES = {
    "party": (
        "before draw",
        "after draw",
        "during snapshot",
        "after snapshot",
        "before reserve",
        "after reserve",
        "before charge",
        "after charge",
        "before send",
        "after send",
    ),
    "coordinator": (
        "before reserve",
        "after reserve",
        "before charge",
        "after charge",
        "before gather",
        "after gather",
        "during snapshot",
        "after snapshot",
        "before send",
        "after send",
    ),
}
LIMIT = 120.0  # seconds after which a run counts as hanging
TWICE = 0.25  # of the trials have a second kill

Sent = tuple[int, int, int]  # from, to, round


@dataclass(frozen=True)
class Kill:
    """Where a rank dies: at a phase, for the so-manieth time."""

    rank: int
    phase: str
    count: int

    def __str__(self) -> str:
        return f"{self.rank}:{self.phase}:{self.count}"

    @property
    def site(self) -> str:
        return "coordinator" if self.rank == 0 else PARTIES[self.rank - 1]


@dataclass
class Log:
    """What the ranks of some runs did."""

    sent: dict[Sent, set[str]] = field(default_factory=dict)
    phases: Counter[tuple[int, str]] = field(default_factory=Counter)

    @classmethod
    def read(cls, folder: Path) -> Log:
        found = cls()
        for path in folder.iterdir():
            for line in map(json.loads, path.read_text().splitlines()):
                if "phase" in line:
                    found.phases[int(path.name), line["phase"]] += 1
                elif line.get("round", -1) >= 1:  # before, sites tell what their ledgers hold
                    way = int(path.name), line["to"], line["round"]
                    found.sent.setdefault(way, set()).add(line["digest"])
        return found


def launch(problem: Problem, log: Path, *, resume: bool, kill: Kill | None) -> tuple[int, str]:
    """Run all ranks to their end; the exit code and what they complained of."""
    options = ["--log", str(log), *(["--resume"] if resume else [])]
    options += ["--kill", str(kill)] if kill is not None else []
    done = subprocess.run(
        mpirun([str(DRIVER), *options, *problem.files]),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env=child_environment(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"),
        check=False,
    )
    return done.returncode, done.stderr


@dataclass(frozen=True)
class Undisturbed:
    """The run of an algorithm that nobody killed."""

    problem: Problem
    log: Log

    @classmethod
    def of(cls, folder: Path, algorithm: str) -> Undisturbed:
        problem = make_problem(folder / "sites", algorithm)
        (folder / "log").mkdir()
        code, complaint = launch(problem, folder / "log", resume=False, kill=None)
        if code:
            raise RuntimeError(f"the undisturbed run of {algorithm} failed: {complaint}")
        return cls(problem, Log.read(folder / "log"))


@dataclass(frozen=True)
class Outcome:
    """What a trial found."""

    stopped: bool
    completed: bool
    same_budget: bool
    same_bytes: bool
    seconds: float
    told: str = ""


def try_one(folder: Path, wanted: Undisturbed, kills: list[Kill]) -> Outcome:
    """Kill, resume, compare."""
    began = time.perf_counter()
    problem = make_problem(folder / "sites", wanted.problem.job.algorithm)
    (folder / "log").mkdir()
    stopped, told, code = True, "", 1
    try:
        for number, kill in enumerate([*kills, None]):
            code, told = launch(problem, folder / "log", resume=number > 0, kill=kill)
            if number == 0:
                stopped = code != 0
            if kill is not None and code == 0:
                break  # the second phase did not come again
    except subprocess.TimeoutExpired:
        told = f"a run did not end within {LIMIT:g} s"
    log = Log.read(folder / "log")
    return Outcome(
        stopped=stopped,
        completed=code == 0,
        same_budget=(problem.charges(), problem.spent())
        == (wanted.problem.charges(), wanted.problem.spent()),
        same_bytes=log.sent == wanted.log.sent and problem.kept() == wanted.problem.kept(),
        seconds=time.perf_counter() - began,
        told=told.strip(),
    )


def draw_trials(
    count: int, wanted: dict[str, Undisturbed], random: np.random.Generator
) -> list[tuple[str, list[Kill]]]:
    """Every algorithm, role and phase once before any comes again."""
    strata = [
        (algorithm, role, phase)
        for algorithm, (role, phases) in itertools.product(wanted, PHASES.items())
        for phase in phases
        if any(wanted[algorithm].log.phases[rank, phase] for rank in _ranks(role))
    ]
    places: list[int] = []
    while len(places) < count:
        places += random.permutation(len(strata)).tolist()
    found = []
    for place in places[:count]:
        algorithm, role, phase = strata[place]
        kills = [_drawn(role, phase, wanted[algorithm].log, random)]
        if random.random() < TWICE:
            role = str(random.choice(list(PHASES)))
            known = wanted[algorithm].log.phases
            there = [one for one in PHASES[role] if known[_ranks(role)[0], one]]
            phase = str(random.choice(there))
            kills.append(_drawn(role, phase, wanted[algorithm].log, random))
        found.append((algorithm, kills))
    return found


def _drawn(role: str, phase: str, log: Log, random: np.random.Generator) -> Kill:
    rank = int(random.choice(_ranks(role)))
    return Kill(rank, phase, int(random.integers(1, log.phases[rank, phase] + 1)))


def _ranks(role: str) -> range:
    return range(1) if role == "coordinator" else range(1, len(PARTIES) + 1)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    trials = 2 if options.quick else options.trials
    table = Table(
        "sites killed and resumed",
        ("algorithm", "killed", "phase", "time", "then", "budget", "bytes", "completed", "seconds"),
    )
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wanted = {name: Undisturbed.of(folder / name, name) for name in PROBLEMS}
        random = np.random.default_rng(options.seed)
        for number, (algorithm, kills) in enumerate(draw_trials(trials, wanted, random)):
            outcome = try_one(folder / f"trial {number}", wanted[algorithm], kills)
            outcomes.append(outcome)
            first, then = kills[0], str(kills[1]) if len(kills) > 1 else None
            told = (algorithm, first.site, first.phase, first.count, then)
            fine = (outcome.same_budget, outcome.same_bytes, outcome.completed and outcome.stopped)
            table.rows.append((*told, *fine, round(outcome.seconds, 1)))
            note(f"{number + 1:3} {algorithm:12}{first!s:26}{then or '':26}{fine}")
            if not all(fine):
                note(outcome.told)
    found = {
        "no lost or doubled budget": [one.same_budget for one in outcomes],
        "same bytes": [one.same_bytes for one in outcomes],
        "completed": [one.completed and one.stopped for one in outcomes],
    }
    verdicts = [f"{what}: {sum(which)} of {len(which)}" for what, which in found.items()]
    print(table.text())
    print("\n".join(verdicts))
    if not options.quick:
        config = {"trials": trials, "seed": options.seed, "parties": len(PARTIES), "twice": TWICE}
        write_results(
            options.results, "federation_faults", [table], config=config, verdicts=verdicts
        )
    return int(not all(itertools.chain(*found.values())))


if __name__ == "__main__":
    run(main)
