"""Do programs that nobody here wrote give the same output under ``dpsvm run``?

    python bench/interop/foreign_scripts.py

The examples of scikit-learn's source package, of the version that is installed, are fetched by pip.
Those that name one of the five classes run twice: by python, and by ``dpsvm run``, unchanged. What
they print must be the same text, with the same whole numbers and with fractions that agree to
1e-3; seconds are left out. What they draw must be the same pictures, save for a few pixels. An
example that python itself does not finish (it needs the network, a package that is absent, or more
than --limit seconds), or whose output differs from one run by python to the next, is named and not
counted.

Exit code 1 if a program's output differs, 2 if the examples cannot be fetched.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
import sklearn

from bench.common import Absent, Table, arguments, child_environment, note, run, write_results

CLASSES = re.compile(r"\b(SVC|NuSVC|SVR|NuSVR|OneClassSVM)\b")
FOLDERS = ("svm", "exercises", "classification", "model_selection", "compose")
QUICK = (
    "classification/plot_digits_classification.py",
    "svm/plot_svm_margin.py",
    "svm/plot_weighted_samples.py",
)
TIMED = {  # pictures that show how long something took
    "model_selection/plot_learning_curve.py",
    "model_selection/plot_grid_search_refit_callable.py",
}
NUMBERS = 1e-3  # relative, and absolute below 1
PIXELS = 0.02  # share of a picture's pixels that may differ
SHADE = 32  # of 255: what makes a pixel differ

SECONDS = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)? ?(s|sec|seconds|ms|min)\b")
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?")

# pip asks a package's build system for what PKG-INFO says already.
BACKEND = """
from email import message_from_string
from pathlib import Path

def get_requires_for_build_wheel(settings=None):
    return []

def prepare_metadata_for_build_wheel(folder, settings=None):
    text = Path("PKG-INFO").read_text(encoding="utf-8")
    about = message_from_string(text)
    place = Path(folder, about["Name"].replace("-", "_") + "-" + about["Version"] + ".dist-info")
    place.mkdir()
    (place / "METADATA").write_text(text, encoding="utf-8")
    return place.name

def build_wheel(*_):
    raise NotImplementedError
"""


def fetch(folder: Path) -> Path:
    """Return the examples of the installed scikit-learn, from its source package."""
    (folder / "mesonpy.py").write_text(BACKEND)
    package = f"scikit-learn=={sklearn.__version__}"
    flags = ["--no-deps", "--no-build-isolation", "--no-binary", "scikit-learn", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *flags, "-d", str(folder), package],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    archives = list(folder.glob("*.tar.gz"))
    if not archives:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Absent(f"pip cannot fetch the source of {package}: {last}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")
    return next(folder.glob("*/examples"))


@dataclass(frozen=True)
class Outcome:
    """How a program ended and what it showed."""

    code: int | None  # None if it was stopped
    printed: str
    complaints: str
    pictures: list[np.ndarray]


def perform(words: Sequence[str], script: Path, folder: Path, limit: float) -> Outcome:
    """Run a program in an empty folder, with figures drawn to files."""
    import matplotlib.pyplot as plt

    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    (work / "figures").mkdir(parents=True)
    (work / "modules").mkdir()
    shutil.copy(Path(__file__).with_name("figure_keeper.py"), work / "modules")
    home = child_environment()["PYTHONPATH"]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(work / "modules"), home]),
        "MPLBACKEND": "module://figure_keeper",
        "FIGURE_FOLDER": str(work / "figures"),
        "DPSVM_VERBOSE": "1",
    }
    try:
        done = subprocess.run(
            [sys.executable, *words, str(script)],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(None, "", f"took more than {limit:g} s", [])
    paths = sorted((work / "figures").iterdir(), key=lambda path: int(path.stem))
    return Outcome(done.returncode, done.stdout, done.stderr, [plt.imread(path) for path in paths])


def same_text(one: str, other: str) -> bool:
    """Whether two outputs say the same, numbers within their tolerance and seconds aside."""
    one, other = (SECONDS.sub("(time)", text) for text in (one, other))
    if NUMBER.sub("#", one).split() != NUMBER.sub("#", other).split():
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(map(_same_number, *zip(*pairs, strict=True))) if NUMBER.search(one) else True


def _same_number(one: str, other: str) -> bool:
    if re.fullmatch(r"[+-]?\d+", one + other):
        return one == other
    return abs(float(one) - float(other)) <= NUMBERS * max(1.0, abs(float(one)))


def pixels_apart(one: Outcome, other: Outcome) -> float | None:
    """The share of pixels that differ in the worst picture; None without pictures."""
    if [p.shape for p in one.pictures] != [p.shape for p in other.pictures]:
        return 1.0
    shares = [
        float((np.abs(a - b).max(axis=-1) > SHADE / 255).mean())
        for a, b in zip(one.pictures, other.pictures, strict=True)
    ]
    return max(shares, default=None)


def same_output(name: str, one: Outcome, other: Outcome) -> bool:
    """Whether two runs of a program ended alike, said the same and drew the same."""
    apart = None if name in TIMED else pixels_apart(one, other)
    alike = one.code == other.code and same_text(one.printed, other.printed)
    return alike and (apart is None or apart <= PIXELS)


def judge(name: str, plain: Outcome, ours: Outcome) -> list[object]:
    """Return a row of the table."""
    taken = "dpsvm: taken over: sklearn.svm" in ours.complaints
    agrees = taken and same_output(name, plain, ours)
    apart = None if name in TIMED else pixels_apart(plain, ours)
    share = None if apart is None else f"{100 * apart:.2f}%"
    lines = len(plain.printed.splitlines())
    return [name, lines, len(plain.pictures), share, "yes" if agrees else "NO"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the examples both ways and compare."""
    parser = arguments(__doc__)
    parser.add_argument("--limit", type=float, default=300, help="most seconds for a program")
    parser.add_argument("--only", nargs="+", help="these examples, as folder/name.py")
    options = parser.parse_args(argv)
    columns = ("program", "lines", "pictures", "pixels apart", "same")
    table = Table("scikit-learn's examples by python and by dpsvm run", columns)
    left_out = Table("Not counted", ("program", "reason"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        examples = fetch(folder)
        for program in options.only or (QUICK if options.quick else _chosen(examples)):
            script = examples / program
            plain = perform([], script, folder, options.limit)
            if plain.code != 0:
                reason = (plain.complaints.strip().splitlines() or [f"code {plain.code}"])[-1]
                left_out.rows.append([program, f"python alone: {reason}"])
                continue
            ours = perform(["-m", "dpsvm", "run"], script, folder, options.limit)
            row = judge(program, plain, ours)
            if row[-1] == "NO":
                again = perform([], script, folder, options.limit)
                if not same_output(program, plain, again):
                    left_out.rows.append([program, "differs from one run by python to the next"])
                    continue
                note(f"--- python\n{plain.printed}--- dpsvm run\n{ours.printed}{ours.complaints}")
            table.rows.append(row)
            note(" ".join(map(str, row)))
    same = sum(row[-1] == "yes" for row in table.rows)
    tables = [table, *([left_out] if left_out.rows else [])]
    verdicts = [f"{table.title}: the same output of {same} of {len(table.rows)}"]
    print(*(shown.text() for shown in tables), *verdicts, sep="\n")
    if not (options.quick or options.only):
        config = {"numbers": NUMBERS, "pixels": PIXELS, "limit": options.limit}
        write_results(options.results, "foreign_scripts", tables, config=config, verdicts=verdicts)
    return 0 if table.rows and same == len(table.rows) else 1


def _chosen(examples: Path) -> list[str]:
    paths = sorted(path for folder in FOLDERS for path in (examples / folder).glob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    return [str(path.relative_to(examples)) for path in paths if CLASSES.search(texts[path])]


if __name__ == "__main__":
    run(main)
