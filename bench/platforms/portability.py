"""Does the core build and run elsewhere, and give the same bits?

    python bench/platforms/portability.py

The units of csrc/ and the C++ tests are built with the flags of setup.py by each compiler below
and run where they can be: natively, by qemu-user, by Wine. Then every vector loop and fits of
fixed data are computed at every level of each target (avx512.cpp) and compared with what GCC's
program computes natively: in float64 to the bit; in float32 with a level that fuses multiply and
add where the level does, and with the portable one where it does not.

The kernels are linear, poly and rbf: tanh is the C library's own, and so are the logarithms of
dpwss.

Not here: clang-cl, which needs Microsoft's headers, and macOS. The nearest there is are clang
with libc++, which macOS has, and MinGW.

What a target takes and is not installed is told with its Debian packages; such a target is left
out. --only names the targets to do; --quick builds and runs what reads and writes numbers alone.
Exit code 1 if a unit does not compile, a test fails, a level is missing or bits differ.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import ROOT, Table, arguments, note, run, write_results
from bench.platforms.avx512 import FLAGS, FUSED, SOURCE

NATIVE = "GCC"
SECONDS = 1800  # a program gets no more
QUICK_UNITS = ("exact_decimal", "reader", "writer")
QUICK_TESTS = ("test_exact_decimal", "test_reader")
TARGET_COLUMNS = ("target", "compiler", "run by", "units", "C++ tests", "levels")
BITS_COLUMNS = ("target", "level", "beside", "loops", "fits")


@dataclass(frozen=True)
class Target:
    """A compiler, and what runs its programs."""

    name: str
    compiler: str
    packages: tuple[str, ...]
    flags: tuple[str, ...] = ()
    runner: tuple[str, ...] = ()
    levels: tuple[str, ...] | None = None  # that there must be; None for those of this processor
    suffix: str = ""

    @property
    def build(self) -> tuple[object, ...]:
        """What two targets with the same programs have in common."""
        return self.compiler, self.flags

    def absent(self) -> str | None:
        """What to install, if something is missing."""
        programs = [self.compiler, *self.runner[:1]]
        if all(map(shutil.which, programs)) and self._compiles():
            return None
        return f"{self.name} is absent: apt-get install {' '.join(self.packages)}"

    def _compiles(self) -> bool:
        """Whether the compiler has its library."""
        return (
            subprocess.run(
                [self.compiler, *self.flags, "-xc++", "-fsyntax-only", "-"],
                input="#include <vector>",
                text=True,
                capture_output=True,
                check=False,
            ).returncode
            == 0
        )

    def version(self) -> str:
        found = subprocess.run(
            [self.compiler, "--version"], capture_output=True, text=True, check=True
        )
        return found.stdout.splitlines()[0]


TARGETS = (
    Target(NATIVE, "g++", ("g++",), ("-static",)),
    Target(
        "clang, libc++",
        "clang++",
        ("clang", "libc++-dev", "libc++abi-dev"),
        ("-stdlib=libc++",),
    ),
    Target(
        "64-bit ARM",
        "aarch64-linux-gnu-g++",
        ("g++-aarch64-linux-gnu", "qemu-user"),
        ("-static",),
        ("qemu-aarch64",),
        ("portable", "neon"),
    ),
    Target(
        "Windows, MinGW",
        "x86_64-w64-mingw32-g++-posix",
        ("g++-mingw-w64-x86-64-posix", "wine", "wine64"),
        ("-static", "-Wa,-muse-unaligned-vector-move"),
        ("wine",),
        suffix=".exe",
    ),
    Target(
        "a processor without AVX",
        "g++",
        ("g++", "qemu-user"),
        ("-static",),
        ("qemu-x86_64", "-cpu", "Nehalem"),
        ("portable",),
    ),
)


class Programs:
    """The core's objects and the programs made of them by one compiler, in one folder."""

    def __init__(self, target: Target, folder: Path, quick: bool) -> None:
        self.target = target
        self.folder = folder
        self.quick = quick
        sources = sorted((ROOT / "csrc").glob("*.cpp"))
        if quick:
            sources = [source for source in sources if source.stem in QUICK_UNITS]
        self.units = len(sources)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(self._object, sources))
        self.objects = [path for path in made if path is not None]

    @property
    def complete(self) -> bool:
        return len(self.objects) == self.units

    def _compile(self, *words: str | Path) -> bool:
        flags = (*FLAGS, "-O0" if self.quick else "-O3", *self.target.flags, f"-I{ROOT / 'csrc'}")
        command = [self.target.compiler, *flags, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            note(f"{self.target.name}: {done.stderr}")
        return done.returncode == 0

    def _object(self, source: Path) -> Path | None:
        path = self.folder / f"{source.stem}.o"
        return path if self._compile("-c", source, "-o", path) else None

    def program(self, source: Path) -> Path | None:
        """A program made of a source and the core; None if it cannot be made."""
        path = self.folder / (source.stem + self.target.suffix)
        if not path.exists() and not self._compile(source, *self.objects, "-o", path):
            return None
        return path


@dataclass(frozen=True)
class Machine:
    """Runs programs of a target in a folder."""

    target: Target
    folder: Path

    def run(self, program: Path, *words: str, level: str = "") -> tuple[int, str]:
        """The exit code of a program and what it printed, errors last."""
        settings = {
            "DPSVM_CPU": level,
            "WINEPREFIX": str(self.folder / "wine"),
            "WINEDEBUG": "-all",
        }
        done = subprocess.run(
            [*self.target.runner, str(program), *words],
            cwd=self.folder,
            env=os.environ | settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        return done.returncode, (done.stdout + done.stderr).strip()

    def levels(self, program: Path) -> list[str]:
        """The levels that the core names when it is asked for another."""
        _, text = self.run(program, "loops", level="another")
        return text.rpartition("(")[2].rstrip(")\n").split(", ")

    def answer(self, program: Path, words: Sequence[str], level: str) -> dict[str, str]:
        """The name=value words of an answer; none if the program failed."""
        code, text = self.run(program, *words, level=level)
        if code != 0:
            note(f"{self.target.name}, {level}, {' '.join(words)}: {text}")
            return {}
        fields = dict(word.split("=", 1) for word in text.split())
        if fields.pop("level", None) != level:
            note(f"{self.target.name}: DPSVM_CPU={level} gave another level")
            return {}
        return {name: exact(value) for name, value in fields.items()}


def exact(value: str) -> str:
    """The value, its hexadecimal doubles spelled in one way: libraries have several.

    >>> exact("0x1.80p+1,-0x1p-2")
    '0x1.8000000000000p+1,-0x1.0000000000000p-2'
    """
    parts = value.split(",")
    return ",".join(float.fromhex(part).hex() if "0x" in part else part for part in parts)


def write_data(folder: Path) -> None:
    """Three small problems in LIBSVM's format: dense, sparse with three classes, sets of bits."""
    numbers = random.Random(20)
    lines: dict[str, list[str]] = {"dense": [], "sparse": [], "bits": []}
    for _ in range(300):
        point = [numbers.gauss(0.0, 1.0) for _ in range(13)]
        label = point[0] * point[1] + 0.3 * numbers.gauss(0.0, 1.0)
        lines["dense"].append(_line(f"{label:+.0f}"[0] + "1", enumerate(point, 1)))
        columns = sorted(numbers.sample(range(1, 200), 9))
        values = [(column, round(numbers.uniform(-1.0, 1.0), 6)) for column in columns]
        lines["sparse"].append(_line(str(columns[4] % 3), values))
        lines["bits"].append(_line(f"{len(columns) + columns[0] / 8}", ((c, 1) for c in columns)))
    for name, text in lines.items():
        (folder / name).write_text("".join(text), encoding="ascii")


def _line(label: str, entries: Iterator[tuple[int, object]] | Sequence[tuple[int, object]]) -> str:
    return " ".join([label, *(f"{index}:{value!r}" for index, value in entries)]) + "\n"


def questions() -> list[list[str]]:
    """The words of every question to the program: the loops, then the fits."""
    fits = [
        ["file=dense", "kernel=rbf", "C=10"],
        ["file=dense", "kernel=poly", "degree=3", "coef0=1", "gamma=0.1"],
        ["file=dense", "kernel=linear", "C=0.5", "selector=wss1"],
        ["file=dense", "machine=nu-svc", "nu=0.4"],
        ["file=dense", "machine=one-class", "nu=0.2"],
        ["file=sparse", "kernel=rbf", "gamma=0.5", "C=4"],
        ["file=sparse", "kernel=linear", "selector=wss-wr"],
        ["file=bits", "machine=epsilon-svr", "kernel=rbf", "gamma=0.05", "C=20"],
        ["file=bits", "machine=nu-svr", "kernel=linear", "C=0.1"],
    ]
    both = [
        ["train", *words, f"precision={precision}"]
        for words in fits
        for precision in ("float64", "float32")
    ]
    return [["loops"], *both]


Answers = Mapping[str, Sequence[Mapping[str, str]]]  # by level, in the order of the questions


def same_bits(found: Answers, native: Answers, level: str) -> list[object]:
    """How many loops and fits of a level are the native ones, and beside which level."""
    fused = [name for name in native if name != "portable"]
    beside = level if level == "portable" else (fused[0] if fused else None)
    loops, fits = [], []
    for words, own, plain, like in zip(
        questions(),
        found[level],
        native["portable"],
        native[beside] if beside is not None else [{}] * len(questions()),
        strict=True,
    ):
        if words == ["loops"]:
            expected = {name: (like if name in FUSED else plain).get(name) for name in plain}
            loops = [own.get(name) == value for name, value in expected.items() if value]
        elif "precision=float32" not in words:
            fits.append(bool(own) and own == plain)
        elif like:
            fits.append(own == like)
    return [beside or "portable, in float64", _share(loops), _share(fits)]


def _share(passed: Sequence[bool]) -> str:
    return f"{sum(passed)} of {len(passed)}"


def whole(share: object) -> bool:
    """Whether N of M is all, and something.

    >>> whole("3 of 3"), whole("0 of 0")
    (True, False)
    """
    done, _, asked = str(share).partition(" of ")
    return done == asked != "0"


def check(target: Target, programs: Programs, folder: Path) -> tuple[list[object], Answers]:
    """A line of the first table, and what the target computes."""
    machine = Machine(target, folder)
    tests = sorted((ROOT / "tests" / "cpp").glob("test_*.cpp"))
    passed, levels, answers = [], [], {}
    for source in tests:
        if not programs.quick or source.stem in QUICK_TESTS:
            program = programs.program(source) if programs.complete else None
            code, text = machine.run(program) if program is not None else (1, "not built")
            passed.append(code == 0)
            if code != 0:
                note(f"{target.name}: {source.stem}: {text}")
    teller = programs.program(SOURCE) if not programs.quick else None
    if teller is not None:
        levels = machine.levels(teller)
        answers = {
            level: [machine.answer(teller, words, level) for words in questions()]
            for level in levels
        }
    row = [
        *(target.name, target.version(), " ".join(target.runner) or None),
        f"{len(programs.objects)} of {programs.units}",
        _share(passed),
        ", ".join(levels) or None,
    ]
    return row, answers


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument(
        "--only", nargs="+", metavar="TARGET", choices=[target.name for target in TARGETS]
    )
    options = parser.parse_args(argv)
    table = Table("Targets", TARGET_COLUMNS)
    bits = Table("Bits beside GCC's on this processor", BITS_COLUMNS)
    found: dict[str, Answers] = {}
    good, missing = True, []
    built: dict[tuple[object, ...], Programs] = {}
    with tempfile.TemporaryDirectory() as name:
        write_data(Path(name))
        for target in TARGETS:
            if options.only and target.name not in options.only:
                continue
            if reason := target.absent():
                missing.append(reason)
                note(reason)
                continue
            if target.build not in built:
                folder = Path(name, f"build-{len(built)}")
                folder.mkdir()
                built[target.build] = Programs(target, folder, options.quick)
            row, answers = check(target, built[target.build], Path(name))
            table.rows.append(row)
            note(" | ".join(map(str, row)))
            found[target.name] = answers
            good &= whole(row[3]) and whole(row[4])
            wanted = target.levels or tuple(found.get(NATIVE, answers))
            good &= options.quick or tuple(answers) == wanted
            for level in answers if NATIVE in found and target.name != NATIVE else ():
                bits.rows.append([target.name, level, *same_bits(answers, found[NATIVE], level)])
                good &= all(map(whole, bits.rows[-1][-2:]))
    tables = [one for one in (table, bits) if one.rows]
    verdicts = [f"all that was built and run is as it must be: {'yes' if good else 'NO'}", *missing]
    print("\n\n".join([*(one.text() for one in tables), "\n".join(verdicts)]))
    if not options.quick and not options.only:
        write_results(options.results, "portability", tables, config={}, verdicts=verdicts)
    return 0 if good else 1


if __name__ == "__main__":
    run(main)
