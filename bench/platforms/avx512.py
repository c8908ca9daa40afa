"""Does the AVX-512 level give the same bits? It is run in an emulator, where no processor has it.

    python bench/platforms/avx512.py ../shared

avx512.cpp beside this file and the C++ tests are built with the flags of setup.py, put with their
data into a small Linux image, and run by Bochs as an Intel Skylake-X:

1. the C++ tests, at the AVX-512 level;
2. every vector loop, over random numbers, at the three levels;
3. fits and their decision values, at the three levels, beside what LIBSVM says of them.

What is computed in float64 must have the same bits at every level. In float32 the portable level
lacks the fused multiply-add of the other two, whose bits must be the same. Where this processor
runs a level itself, the emulator's answers must be the processor's.

It takes g++ and Debian's packages bochs, xorriso, isolinux, busybox-static, cpio and, at
--kernel if not in /boot, the file vmlinuz of linux-image-cloud-amd64. --quick does parts 2 and 3
for a few fits and without the emulator, at the levels this processor runs; the whole takes half
an hour.

Exit code 1 if anything disagrees.
"""

from __future__ import annotations

import lzma
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import (
    ROOT,
    Table,
    arguments,
    data_file,
    require_program,
    run,
    shared_folder,
    write_results,
)
from bench.core.exactness import BESIDE, QUICK_SETS, Check, printed
from bench.platforms.emulator import Answer, Answers, Emulator
from bench.settings import Outcome, Printed, Setting, run_libsvm

SOURCE = Path(__file__).with_name("avx512.cpp")
LEVELS = ("portable", "avx2", "avx512")
FLAGS = ("-std=c++17", "-ffp-contract=off", "-Wno-psabi", "-g0", "-pthread")
WHOLE, QUICK = ("-O3", "-static", "-s"), ("-O1",)
FUSED = {"dots_f32", "sparse_f32"}  # the loops in which the portable level may differ

SAME, DIFFER, FREE = "same bits", "DIFFER", "rounds otherwise"
AGREES, PASSED = "agrees", "passes"
COMPARED = ("avx512 and avx2", "avx2 and portable", "emulator and processor")
FIT_COLUMNS = (
    *("set", "machine", "setting", "precision", "iterations", "objective", "nSV", "LIBSVM"),
    *COMPARED,
)


@dataclass(frozen=True)
class Job:
    """A fit; ``options`` are further words for the program."""

    dataset: str
    setting: Setting
    precision: str = "float64"
    options: tuple[str, ...] = ()
    rows: int | None = None
    expected: Outcome | None = None  # what LIBSVM printed, where a file holds it

    @property
    def file(self) -> str:
        return self.dataset if self.rows is None else f"{self.dataset}-{self.rows}"

    def words(self) -> list[str]:
        """The program's arguments."""
        named = {"file": self.file, "precision": self.precision} | self.setting.changed()
        return ["train", *(f"{name}={value}" for name, value in named.items()), *self.options]

    def describe(self) -> str:
        return " ".join([self.setting.describe(), *self.options])


OWN = (
    Job("svmguide1", Setting()),
    Job("reuters", Setting(kernel="linear"), rows=500),
    Job("reuters", Setting(gamma=1.0), rows=500),
    Job("reuters", Setting(gamma=1.0), "float32", rows=500),
    Job("abalone_scale", Setting("epsilon-svr"), rows=1000),
    Job("abalone_scale", Setting("epsilon-svr"), "float32", rows=1000),
    Job("housing_scale", Setting("epsilon-svr", "linear", C=10), "float32"),
    Job("heart_scale", Setting("one-class"), "float32"),
    Job("dna.scale", Setting(kernel="linear")),
    Job("dna.scale", Setting(), "float32"),
    *(
        Job("heart_scale", Setting(), precision, (f"selector={selector}",))
        for selector in ("wss1", "wss3", "wss4", "wss-wr", "dpwss")
        for precision in ("float64", "float32")
    ),
    *(
        Job("a1a", Setting(kernel="linear"), precision, ("algorithm=decomposition",))
        for precision in ("float64", "float32")
    ),
)
BESIDE_SETS = {
    *("australian_scale", "diabetes_scale", "german.numer_scale", "heart_scale"),
    *("housing_scale", "ionosphere_scale", "sonar_scale", "splice_scale"),
}


def jobs(shared: Path, quick: bool) -> Iterator[Job]:
    """Rows of truth/libsvm.csv, small fits of bench/core/exactness.py, and those named above."""
    for dataset, setting, expected in printed(shared):
        if setting.shrinking and (dataset in QUICK_SETS or not quick):
            yield Job(dataset, setting, expected=expected)
            yield Job(dataset, setting, "float32")
    for dataset, setting in BESIDE:
        small = dataset in (QUICK_SETS if quick else BESIDE_SETS)
        if small and not setting.class_weight:
            yield Job(dataset, setting)
    yield from () if quick else OWN


def compare(
    answers: Answers, name: str, one: str, two: str, field: str | None = None
) -> str | None:
    """Whether two levels gave the same bits; None where one of them was not run."""
    if (name, one) not in answers or (name, two) not in answers:
        return None
    found = {level: answers[name, level].fields for level in (one, two)}
    for level, fields in found.items():
        if fields.pop("level", None) != level:
            return f"{level} FAILED"
    same = found[one] == found[two] if field is None else found[one][field] == found[two][field]
    return SAME if same else DIFFER


def across(found: Answers, here: Answers, name: str, field: str | None = None) -> str | None:
    """Whether the emulator gave this processor's bits, at every level that this one runs."""
    levels = [level for level in LEVELS if (name, level) in here]
    if found is here or not levels:
        return None
    pairs = [(found[name, level].fields, here[name, level].fields) for level in levels]
    if field is not None:
        pairs = [({field: one.get(field, "")}, {field: two.get(field, "")}) for one, two in pairs]
    return SAME if all(one == two for one, two in pairs) else DIFFER


def loops_table(found: Answers, here: Answers) -> Table:
    """Part two."""
    table = Table("Loops", ("loop", "hash at the best level", *COMPARED))
    best = [found["loops", level].fields for level in LEVELS if ("loops", level) in found][-1]
    loops = found["loops", "portable"].fields
    if not loops:
        raise RuntimeError(f"the program failed: {found['loops', 'portable'].text}")
    for loop in loops:
        if loop != "level":
            cells = (
                compare(found, "loops", "avx512", "avx2", loop),
                allow(loop in FUSED, compare(found, "loops", "avx2", "portable", loop)),
                across(found, here, "loops", loop),
            )
            table.rows.append([loop, best.get(loop), *cells])
    return table


def allow(may_differ: bool, cell: str | None) -> str | None:
    """The cell, where a difference may be allowed."""
    return FREE if may_differ and cell == DIFFER else cell


def fit_row(job: Job, name: str, found: Answers, here: Answers, folder: Path) -> list[object]:
    """A line of part three."""
    fields = [found[name, level].fields for level in LEVELS if (name, level) in found][-1]
    numbers: list[object] = [None, None, None, "FAILED"]
    if fields:
        fit = outcome(fields, job.setting.machine)
        numbers = [
            sum(problem.iterations for problem in fit.problems),
            round(sum(problem.objective for problem in fit.problems), 6),
            fit.total_sv,
            against_libsvm(job, fit, folder),
        ]
    return [
        *(job.file, job.setting.machine, job.describe(), job.precision),
        *numbers,
        compare(found, name, "avx512", "avx2"),
        allow(job.precision == "float32", compare(found, name, "avx2", "portable")),
        across(found, here, name),
    ]


def outcome(fields: Mapping[str, str], machine: str) -> Outcome:
    """What LIBSVM would print of a fit."""
    counts = {k: map(int, fields[k].split(",")) for k in ("iterations", "n_sv", "n_bsv")}
    reals = {
        k: list(map(float.fromhex, fields[k].split(","))) for k in ("objective", "rho", "r", "nu")
    }
    extra = {
        "nu-svc": [1.0 / r for r in reals["r"]],
        "nu-svr": [-r for r in reals["r"]],
        "one-class": [math.nan],
    }
    problems = zip(
        *(counts["iterations"], reals["objective"], reals["rho"], counts["n_sv"], counts["n_bsv"]),
        extra.get(machine, reals["nu"]),
        strict=True,
    )
    return Outcome(tuple(Printed(*problem) for problem in problems), int(fields["total_sv"]))


def against_libsvm(job: Job, found: Outcome, folder: Path) -> str | None:
    """How a float64 fit differs from LIBSVM's, if it does; None where LIBSVM has no such fit."""
    expected = job.expected
    if job.precision != "float64" or job.options:
        return None
    if expected is None:
        if shutil.which("svm-train") is None:
            return None
        expected = run_libsvm(job.setting, folder / job.file, folder / "model")
    check = Check(job.dataset, job.setting, expected, found)
    return "; ".join(check.disagreements()) or AGREES


class Build:
    """The core's objects and the programs made of them, in one folder."""

    def __init__(self, folder: Path, flags: Sequence[str]) -> None:
        self.folder = folder
        self.flags = (*FLAGS, *flags)
        self.compiler = require_program(os.environ.get("CXX", "g++"))
        sources = sorted((ROOT / "csrc").glob("*.cpp"))
        self.objects = [folder / f"{source.stem}.o" for source in sources]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self._object, sources, self.objects))

    def _compile(self, *words: str | Path) -> None:
        command = [self.compiler, *self.flags, f"-I{ROOT / 'csrc'}", *map(str, words)]
        subprocess.run(command, check=True)

    def _object(self, source: Path, target: Path) -> None:
        self._compile("-c", source, "-o", target)

    def program(self, source: Path) -> Path:
        target = self.folder / source.stem
        self._compile(source, *self.objects, "-o", target)
        return target


def run_here(program: Path, commands: Mapping[str, Sequence[str]]) -> Answers:
    """The answers of this processor, at the levels it runs."""
    answers: Answers = {}
    for name, words in commands.items():
        for level in LEVELS:
            done = subprocess.run(
                [program, *words],
                cwd=program.parent,
                env=os.environ | {"DPSVM_CPU": level},
                capture_output=True,
                text=True,
                check=False,
            )
            if "is not a level this processor runs" not in done.stderr:
                text = done.stdout if done.returncode == 0 else done.stderr
                answers[name, level] = Answer(done.returncode, text.strip())
    return answers


def write_data(shared: Path, job: Job, folder: Path) -> Path:
    """The job's rows as a plain LIBSVM file."""
    path = folder / job.file
    if not path.is_file():
        lines = lzma.decompress(data_file(shared, job.dataset).read_bytes()).splitlines(True)
        path.write_bytes(b"".join(lines[: job.rows]))
    return path


def verdict(title: str, cells: Sequence[object]) -> tuple[str, bool]:
    """How many of the cells that say something say that all is well."""
    said = [cell for cell in cells if cell is not None]
    good = sum(cell in (SAME, FREE, AGREES, PASSED) for cell in said)
    free = f" ({said.count(FREE)} in float32 round otherwise, as they may)" * (FREE in said)
    return f"{title}: {good} of {len(said)}{free}", good == len(said)


def verdicts(tables: Sequence[Table]) -> list[tuple[str, bool]]:
    """One for each column that judges."""
    judged = [
        (table.title, column, [row[table.columns.index(column)] for row in table.rows])
        for table in tables
        for column in table.columns
        if column in (*COMPARED, "LIBSVM", "outcome")
    ]
    return [
        verdict(f"{title}, {column}", cells)
        for title, column, cells in judged
        if any(cell is not None for cell in cells)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--kernel", type=Path, help="a Linux kernel (default: the last of /boot)")
    options = parser.parse_args(argv)
    shared = shared_folder(options.shared)
    emulator = None if options.quick else Emulator.find(options.kernel)
    work = {f"fit{k}": job for k, job in enumerate(jobs(shared, options.quick))}
    commands = {"loops": ["loops"]} | {name: job.words() for name, job in work.items()}
    tables: list[Table] = []
    config: dict[str, object] = {"flags": " ".join((*FLAGS, *WHOLE))}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {write_data(shared, job, folder) for job in work.values()}
        build = Build(folder, QUICK if emulator is None else WHOLE)
        program = build.program(SOURCE)
        found = here = run_here(program, commands)
        if emulator is not None:
            sources = sorted((ROOT / "tests" / "cpp").glob("test_*.cpp"))
            tests = [build.program(source) for source in sources]
            asked = {(test.name, "avx512"): [f"/{test.name}"] for test in tests} | {
                (name, level): [f"/{program.name}", *words]
                for name, words in commands.items()
                for level in LEVELS
            }
            started = time.perf_counter()
            found = emulator.run(folder, [program, *tests, *files], asked)
            config |= {
                "emulator": "Bochs",
                "emulated": found["processor", "any"].text,
                "emulator_seconds": round(time.perf_counter() - started),
            }
            tables.append(Table("C++ tests at the AVX-512 level", ("program", "outcome")))
            for test in tests:
                answer = found[test.name, "avx512"]
                how = PASSED if answer.code == 0 else f"exit {answer.code}: {answer.text}"
                tables[0].rows.append([test.name, how])
        tables.append(loops_table(found, here))
        tables.append(Table("Fits", FIT_COLUMNS))
        for name, job in work.items():
            tables[-1].rows.append(fit_row(job, name, found, here, folder))
    said = verdicts(tables)
    print("\n\n".join(table.text() for table in tables), end="\n\n")
    print("\n".join(line for line, _ in said))
    if emulator is not None:
        lines = [line for line, _ in said]
        write_results(options.results, "avx512", tables, config=config, verdicts=lines)
    return 0 if all(good for _, good in said) else 1


if __name__ == "__main__":
    run(main)
