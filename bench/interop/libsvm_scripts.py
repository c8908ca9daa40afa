"""Do LIBSVM's own grid.py and easy.py take dpsvm's programs, and come to the same point?

    python bench/interop/libsvm_scripts.py ../shared

Both scripts run unchanged, as Debian's libsvm-tools has them (svm-grid and svm-easy), once with
svm-train, svm-predict and svm-scale and once with dpsvm-train, dpsvm-predict and dpsvm-scale. Of
grid.py every line must be the same: the rate of each point, and the best point. Of easy.py what it
prints (the best point, its rate, the accuracy on the test file), the scaled files, the range file
and the predictions. Then svm-train and dpsvm-train must print the same text, dots and stars
included; only LIBSVM's advice that "-h 0 may be faster" is left out. Without the data sets, on data
of scikit-learn's. Exit code 1 if anything differs, 2 if LIBSVM's scripts or programs, or gnuplot,
which easy.py insists on, are absent.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import (
    Absent,
    Table,
    arguments,
    child_environment,
    note,
    require_program,
    run,
    write_results,
)
from bench.programs import programs
from bench.small_data import plain

KINDS = ("train", "predict", "scale")
GNUPLOT = "/usr/bin/gnuplot"  # where easy.py looks for it


@dataclass(frozen=True)
class Grid:
    """One run of grid.py: a data set, its first rows, the name of the file, and the flags."""

    dataset: str
    flags: str
    rows: int | None = None
    name: str | None = None


SMALL = "-log2c -1,3,2 -log2g -1,-5,-2"
GRIDS = (
    Grid("heart_scale", ""),
    Grid("heart_scale", f"{SMALL} -v 10 -w1 2"),
    Grid("heart_scale", f"{SMALL} -s 1 -n 0.25"),
    Grid("heart_scale", f"{SMALL} -b 1", rows=150),
    Grid("heart_scale", "-log2c -5,5,2 -log2g null -t 0", name="hérz_scale"),
    Grid("dna.scale", SMALL, rows=600),
    Grid("housing_scale", f"{SMALL} -s 3 -v 5"),
)
TEXTS = (
    ("heart_scale", ""),
    ("heart_scale", "-c 1024 -g 0.5"),
    ("heart_scale", "-c 1024 -h 0"),
    ("heart_scale", "-c 64 -e 0.00000095367431640625"),
    ("heart_scale", "-t 1 -r 1 -c 8"),
    ("heart_scale", "-s 1 -n 0.25"),
    ("heart_scale", "-s 2 -n 0.25"),
    ("heart_scale", "-c 64 -b 1"),
    ("heart_scale", "-c 64 -v 5"),
    ("dna.scale", "-c 8 -g 0.03125"),
    ("dna.scale", "-b 1"),
    ("housing_scale", "-s 3 -c 256 -g 0.5"),
    ("housing_scale", "-s 4 -n 0.25 -c 64"),
    ("housing_scale", "-s 3 -b 1"),
)
ADVICE = "\nWARNING: using -h 0 may be faster\n"
QUICK = (Grid("heart_scale", "-log2c 0,1,1 -log2g -3,-4,-1", rows=100),)


@dataclass(frozen=True)
class Toolset:
    """The scripts, and one family of programs for them to call."""

    grid: Path
    easy: Path
    programs: dict[str, Path]  # by kind
    environment: dict[str, str]

    def run(self, words: Sequence[str], folder: Path) -> str:
        """What a script prints."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        if "quit." in done.stderr:  # grid.py goes on without a worker that failed
            raise RuntimeError(done.stderr)
        return done.stdout

    def search(self, data: Path, flags: str, folder: Path) -> list[str]:
        """What grid.py prints."""
        train = str(self.programs["train"])
        words = ["-svmtrain", train, "-gnuplot", "null", *flags.split(), data.name]
        return self.run([str(self.grid), *words], folder).splitlines()

    def easily(self, train: Path, test: Path, folder: Path) -> dict[str, str]:
        """What easy.py prints, and the files it leaves, by name."""
        for kind, path in self.programs.items():
            (folder / f"svm-{kind}").symlink_to(path)
        tools = folder / "tools"
        tools.mkdir()
        for script, name in ((self.easy, "easy.py"), (self.grid, "grid.py")):
            (tools / name).symlink_to(script)
        printed = self.run(["easy.py", str(train), str(test)], tools)
        kept = (".range", ".scale", ".predict")
        files = {path.name: path.read_text() for path in tools.iterdir() if path.suffix in kept}
        return {"printed": printed} | files


def toolsets(folder: Path) -> dict[str, Toolset]:
    """LIBSVM's programs and ours, under the same scripts."""
    grid, easy = Path(require_program("svm-grid")), Path(require_program("svm-easy"))
    if not Path(GNUPLOT).exists():
        raise Absent(f"no {GNUPLOT}")
    theirs = {kind: Path(require_program(f"svm-{kind}")) for kind in KINDS}
    ours = programs(folder)
    # easy.py calls grid.py by its first line, which asks for a "python".
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(shutil.which("python3") or sys.executable)
    environment = child_environment()
    environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{environment['PATH']}"
    return {
        "LIBSVM": Toolset(grid, easy, theirs, environment),
        "dpsvm": Toolset(grid, easy, {k: ours[f"dpsvm-{k}"] for k in KINDS}, environment),
    }


def compare_grids(tools: dict[str, Toolset], grids: Sequence[Grid], shared: str | None) -> Table:
    """Every grid with either family of programs."""
    columns = ("file", "flags", "points", "rates that differ", "best of LIBSVM", "best of dpsvm")
    table = Table("grid.py", columns)
    for grid in grids:
        found = []
        for tool in tools.values():
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                data = plain(folder, shared, grid.dataset, grid.rows)
                data = data.rename(folder / (grid.name or data.name))
                found.append(tool.search(data, grid.flags, folder))
        theirs, ours = found
        apart = sum(a != b for a, b in zip(theirs, ours, strict=True))
        best = theirs[-1], ours[-1]
        name = grid.name or grid.dataset
        table.rows.append([name, grid.flags or "none", len(theirs) - 1, apart, *best])
        note(" ".join(map(str, table.rows[-1])))
    return table


def compare_easy(tools: dict[str, Toolset], shared: str | None, rows: int | None) -> Table:
    """easy.py on two halves of a file, with either family of programs."""
    table = Table("easy.py", ("what", "the same", "lines"))
    found = []
    for tool in tools.values():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            lines = plain(folder, shared, "heart_scale", rows).read_text().splitlines(keepends=True)
            (folder / "one").write_text("".join(lines[::2]))
            (folder / "two").write_text("".join(lines[1::2]))
            found.append(tool.easily(folder / "one", folder / "two", folder))
    theirs, ours = found
    for name in sorted(theirs.keys() | ours.keys()):
        same = theirs.get(name) == ours.get(name)
        table.rows.append([name, "yes" if same else "NO", theirs.get(name, "").count("\n")])
        note(" ".join(map(str, table.rows[-1])))
    best = [line for line in ours["printed"].splitlines() if line.startswith(("Best", "Accuracy"))]
    table.rows.append([" ".join(best), "-", len(best)])
    return table


def compare_texts(
    tools: dict[str, Toolset], cases: Sequence[tuple[str, str]], shared: str | None
) -> Table:
    """What training prints with either family of programs."""
    columns = ("file", "flags", "lines", "dots and stars", "the same")
    table = Table("What is printed by training", columns)
    for dataset, flags in cases:
        with tempfile.TemporaryDirectory() as name:
            data = plain(Path(name), shared, dataset, 600)
            theirs, ours = (
                subprocess.run(
                    [str(tool.programs["train"]), *flags.split(), str(data), f"{data}.model"],
                    env=tool.environment,
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout.replace(ADVICE, "")
                for tool in tools.values()
            )
        marks = sum(len(line) for line in theirs.splitlines() if not line.strip(".*"))
        same = "yes" if theirs == ours else "NO"
        table.rows.append([dataset, flags or "none", theirs.count("\n"), marks, same])
        note(" ".join(map(str, table.rows[-1])))
    return table


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        tools = toolsets(Path(name))
        grids = compare_grids(tools, QUICK if options.quick else GRIDS, options.shared)
        texts = compare_texts(tools, TEXTS[:3] if options.quick else TEXTS, options.shared)
        tables = [grids, texts]
        if not options.quick:  # it searches the whole grid
            tables.append(compare_easy(tools, options.shared, None))
    print("\n\n".join(table.text() for table in tables), end="\n\n")
    same_best = sum(row[-1] == row[-2] for row in grids.rows)
    apart = sum(row[3] for row in grids.rows)
    verdicts = [
        f"grid.py finds the same best point: {same_best} of {len(grids.rows)}",
        f"points of grid.py with another rate: {apart} of {sum(row[2] for row in grids.rows)}",
        f"training prints the same: {sum(row[-1] == 'yes' for row in texts.rows)} of "
        f"{len(texts.rows)}",
    ]
    for table in tables[2:]:
        same = [row[1] == "yes" for row in table.rows if row[1] != "-"]
        verdicts.append(f"easy.py prints and writes the same: {sum(same)} of {len(same)}")
    print("\n".join(verdicts))
    if not options.quick:
        config = {"scripts": "Debian's libsvm-tools"}
        write_results(options.results, "libsvm_scripts", tables, config=config, verdicts=verdicts)
    alike = not any("NO" in row for table in tables for row in table.rows)
    return 0 if alike and not apart and same_best == len(grids.rows) else 1


if __name__ == "__main__":
    run(main)
