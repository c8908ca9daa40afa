"""Random machines on random data, against scikit-learn, LIBSVM, clarabel and the programs' own.

    python bench/fuzz/core_fuzz.py --count 20000 --jobs 2
    python bench/fuzz/core_fuzz.py --case 175

Each case (cases.py) is drawn from the seed and its number. judge.py says what
is asked of it: a feasible optimum, told as it is, in the iterations of LIBSVM where they can be
expected; the same bits whatever the cache, the threads and the company of a row; the decision
values that the coefficients say; single precision as good as double.

A case that fails is made smaller and plainer as long as it fails the same way, and printed as
Python. Exit code 1 if any does.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import Absent, Table, arguments, note, run, write_results
from bench.fuzz.cases import Case, draw, simpler, smaller, snippet
from bench.fuzz.fits import HAS_LIBSVM
from bench.fuzz.judge import Verdict, judge

COUNT = 20_000
QUICK = 300
TOLD_EVERY = 500  # cases
MINIMISE_SECONDS = 60
MINIMISED = 5  # cases at most; the others that fail are named
FACTS = ("machine", "kernel", "dtype", "container")


@dataclass
class Tally:
    """What became of the cases so far."""

    cases: int = 0
    facts: dict[str, Counter[str]] = field(default_factory=lambda: {f: Counter() for f in FACTS})
    checks: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, case: Case, verdict: Verdict) -> None:
        self.cases += 1
        for fact, counter in self.facts.items():
            counter[str(getattr(case, fact))] += 1
        self.checks += verdict.checks
        self.notes += verdict.notes
        if verdict.refusal:
            self.refusals[verdict.refusal] += 1
        for check, told in verdict.failures[:1]:
            self.failures.append((case.number, check, told))

    def tables(self) -> list[Table]:
        counts = {f"Cases by {fact}": counter for fact, counter in self.facts.items()}
        counts |= {"Checks": self.checks, "Refusals": self.refusals, "Seen on the way": self.notes}
        tables = [
            Table(title, ("what", "count"), [[k, v] for k, v in sorted(counter.items())])
            for title, counter in counts.items()
        ]
        return [*tables, Table("Failures", ("case", "check", "seen"), list(self.failures))]


def verdicts(seed: int, numbers: Iterable[int], jobs: int) -> Iterator[tuple[Case, Verdict]]:
    """Judge cases, several at a time if asked to, in their order."""
    one = partial(_judged, seed)
    if jobs == 1:
        yield from map(one, numbers)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, numbers, chunksize=10)


def _judged(seed: int, number: int) -> tuple[Case, Verdict]:
    case = draw(seed, number)
    return case, judge(case)


def minimised(case: Case, check: str, seconds: float = MINIMISE_SECONDS) -> Case:
    """A smaller and plainer case that fails the same check, as far as the time takes it."""
    until = time.monotonic() + seconds
    found = True
    while found:
        found = False
        for candidate in chain(simpler(case), smaller(case)):
            if time.monotonic() > until:
                return case
            if any(name == check for name, _ in judge(candidate).failures):
                case, found = candidate, True
                break
    return case


def tell(case: Case, failures: Sequence[tuple[str, str]], minimise: bool) -> None:
    """Print a case that failed, and how to see it fail again."""
    print(f"case {case.number} of seed {case.seed} fails: {case.machine}, {case.kernel}")
    for check, told in failures:
        print(f"  {check}: {told}")
    if not minimise:
        return
    small = minimised(case, failures[0][0])
    why = [told for check, told in judge(small).failures if check == failures[0][0]]
    print(f"made smaller, {failures[0][0]}: {why[0] if why else 'not every time'}")
    print(snippet(small), end="\n\n", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, help=f"cases (default {COUNT})")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="this case alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    options = parser.parse_args(argv)
    if find_spec("clarabel") is None:
        raise Absent("clarabel is not installed")
    count = options.count or (QUICK if options.quick else COUNT)
    numbers = range(count) if options.case is None else [options.case]
    tally, told = Tally(), 0
    for case, verdict in verdicts(options.seed, numbers, options.jobs):
        tally.add(case, verdict)
        if verdict.failures:
            told += 1
            tell(case, verdict.failures, told <= MINIMISED)
        if sys.stderr.isatty() and tally.cases % TOLD_EVERY == 0:
            note(f"{tally.cases} of {count} cases, {told} failed")
    tables = tally.tables()
    print("\n\n".join(table.text() for table in tables), end="\n\n")
    lines = [f"{tally.cases} cases of seed {options.seed}, {told} failed"]
    if not HAS_LIBSVM:
        lines.append("libsvm-official is not installed: nothing was compared with LIBSVM itself")
    print("\n".join(lines))
    if not options.quick and options.case is None:
        config = {"count": count, "seed": options.seed}
        write_results(options.results, "core_fuzz", tables, config=config, verdicts=lines)
    return 1 if told else 0


if __name__ == "__main__":
    run(main)
