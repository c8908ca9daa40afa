"""Where the time of a fit goes, by perf.

    python bench/speed/profiles.py ../shared
    python bench/speed/profiles.py ../shared --workloads w8a:float64 letter:float32

Each workload is loaded by a fresh process, which then fits it once with perf recording; imports
and reading are not in it. Symbols are gathered into phases (phases.py). Shares are of the samples
of all threads and, for the calling thread, of the fit's seconds (less those in which other
processes kept it from running): that thread takes part in all of the work, so what it spends in a
phase is what the fit would save if the phase cost nothing. Asleep, it waits for other threads.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import (
    Absent,
    Table,
    arguments,
    note,
    require_program,
    run,
    shared_folder,
    write_results,
)
from bench.speed.adapters import Limits
from bench.speed.neighbours import Neighbours
from bench.speed.phases import phase_of, short
from bench.speed.workloads import WORKLOADS

DEFAULT = ("a9a:float32", "ijcnn1:float64", "fashion:float32")
QUICK = ("a5a:float32",)
PER_SECOND = 1997  # samples; a prime, so as not to march with the fit
SYMBOLS = 15
ASLEEP = "asleep"
TOLD = 0.02  # phases below this share of the fit are left out of the summary

Key = TypeVar("Key")

_SAMPLE = re.compile(r"\s*(\d+)\s+(\d+)\s+[0-9a-f]+ (.*) \((\S+)\)$")


@dataclass(frozen=True)
class Sample:
    thread: int
    period: int
    symbol: str
    library: str


@dataclass(frozen=True)
class Profile:
    """The samples of one fit, and what its calling thread did with the seconds."""

    name: str
    samples: tuple[Sample, ...]
    thread: int
    seconds: float
    ran: float
    displaced: float  # ready to run, while other processes held the cores

    def by_symbol(self) -> dict[tuple[str, str], float]:
        """Share of the processor time by library and symbol, largest first."""
        return shares(((s.library, s.symbol), s.period) for s in self.samples)

    def by_phase(self) -> dict[str, float]:
        """Share of the processor time, largest first."""
        return phase_shares(self.samples)

    def by_phase_of_caller(self) -> dict[str, float]:
        """Share of the fit's seconds, as they would be were the cores its own; largest first."""
        running = min(1.0, self.ran / (self.seconds - self.displaced))
        mine = phase_shares(s for s in self.samples if s.thread == self.thread)
        found = {phase: share * running for phase, share in mine.items()} | {ASLEEP: 1.0 - running}
        return dict(sorted(found.items(), key=itemgetter(1), reverse=True))


def shares(weighed: Iterable[tuple[Key, int]]) -> dict[Key, float]:
    """The share of each key in all that was weighed, largest first."""
    weights: Counter[Key] = Counter()
    for key, weight in weighed:
        weights[key] += weight
    return {key: weight / weights.total() for key, weight in weights.most_common()}


def phase_shares(samples: Iterable[Sample]) -> dict[str, float]:
    return shares((phase_of(s.library, s.symbol), s.period) for s in samples)


def record(name: str, problem: Path, folder: Path, threads: int) -> Profile:
    """Fit in a fresh process under perf."""
    perf = require_program("perf")
    control, ack, data = folder / "control", folder / "ack", folder / "perf.data"
    os.mkfifo(control)
    os.mkfifo(ack)
    command = [perf, "record", "-q", "-F", str(PER_SECOND), "-D", "-1", "-o", str(data)]
    command += ["--control", f"fifo:{control},{ack}", "--", sys.executable]
    command += [str(Path(__file__).with_name("fit_profiled.py")), str(problem)]
    command += [str(control), str(ack), "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Absent(f"perf cannot record here: {done.stderr.strip().splitlines()[-1:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    samples = read_samples(perf, data)
    if not any(sample.thread == told["thread"] for sample in samples):
        raise RuntimeError(f"{name}: perf took no sample of the fit")
    return Profile(name, samples, **told)


def read_samples(perf: str, data: Path) -> tuple[Sample, ...]:
    """What perf recorded, sample by sample."""
    command = [perf, "script", "-i", str(data), "-F", "tid,period,ip,sym,dso"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = map(_SAMPLE.match, text.splitlines())
    return tuple(Sample(int(m[1]), int(m[2]), m[3], m[4]) for m in found if m)


def phase_rows(profile: Profile) -> list[list[object]]:
    """By phase: the share, and how many times as fast the fit would be without."""
    everyone, caller = profile.by_phase(), profile.by_phase_of_caller()
    return [
        [
            profile.name,
            phase,
            f"{everyone[phase]:.1%}" if phase in everyone else None,
            f"{share:.1%}",
            round(1 / (1 - share), 2) if share < 1 else None,
        ]
        for phase, share in (caller | {p: 0.0 for p in everyone if p not in caller}).items()
    ]


def symbol_rows(profile: Profile) -> list[list[object]]:
    return [
        [
            profile.name,
            f"`{short(symbol)}`",
            Path(library).name,
            phase_of(library, symbol),
            f"{share:.1%}",
        ]
        for (library, symbol), share in islice(profile.by_symbol().items(), SYMBOLS)
    ]


def what_is_left(profile: Profile) -> str:
    """The phases that count, largest first, and what each could still give."""
    parts = [
        f"{phase} {share:.0%} ({1 / (1 - share):.2f})"
        for phase, share in profile.by_phase_of_caller().items()
        if TOLD <= share < 1
    ]
    return (
        f"{profile.name}, {profile.seconds:.2f} s less {profile.displaced:.2f} s lost to other "
        f"processes; what is left (times as fast if it cost nothing): {', '.join(parts)}"
    )


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments(__doc__)
    names = [f"{w.name}:{dtype}" for w in WORKLOADS for dtype in ("float32", "float64")]
    parser.add_argument("--workloads", nargs="+", choices=names, metavar="NAME:DTYPE")
    parser.add_argument("--threads", type=int, default=Limits.threads)
    options = parser.parse_args(argv)
    options.workloads = options.workloads or (QUICK if options.quick else DEFAULT)
    return options


def profiles(shared: Path, options: argparse.Namespace) -> list[Profile]:
    """Every workload asked for."""
    known = {workload.name: workload for workload in WORKLOADS}
    found = []
    for asked in options.workloads:
        name, dtype = asked.split(":")
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder, "problem.npz")
            try:
                known[name].problem(shared, dtype).save(saved)
            except Absent as reason:
                note(f"{name}: skipped, {reason}")
                continue
            note(f"recording {name} {dtype}")
            found.append(record(f"{name} {dtype}", saved, Path(folder), options.threads))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    require_program("perf")
    neighbours = Neighbours()
    found = profiles(shared_folder(options.shared), options)
    by_phase = Table(
        "Phases",
        ("workload", "phase", "processor time", "the fit's seconds", "times as fast without"),
    )
    by_symbol = Table("Symbols", ("workload", "symbol", "library", "phase", "processor time"))
    for profile in found:
        by_phase.rows += phase_rows(profile)
        by_symbol.rows += symbol_rows(profile)
    verdicts = [*map(what_is_left, found), neighbours.verdict()]
    print(by_phase.text(), by_symbol.text(), "\n".join(verdicts), sep="\n\n")
    if not options.quick:
        config = vars(Limits(threads=options.threads)) | {"samples_per_second": PER_SECOND}
        tables = [by_phase, by_symbol]
        write_results(options.results, "profiles", tables, config=config, verdicts=verdicts)
    return 0


if __name__ == "__main__":
    run(main)
