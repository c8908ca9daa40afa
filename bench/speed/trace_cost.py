"""Does the iteration trace cost anything when no one asks for it?

    python bench/speed/trace_cost.py

Builds one small program twice from csrc, as it is and with every use of the trace compiled away,
and counts the instructions of the same solves under valgrind's callgrind, trace off. The two
counts must be within 0.5 % and the iterations the same. Exit code 1 if they are not.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import ROOT, Table, arguments, note, require_program, run, write_results

WITHIN = 0.005
CASES = (("wss2", 1), ("wss2", 0), ("dpwss", 1), ("dpwss", 0))  # selector, shrinking
ASKED = "options_.trace_every > 0"  # how solver.cpp asks whether there is a trace to keep
FLAGS = ["-std=c++17", "-O3", "-ffp-contract=off", "-Wno-psabi", "-pthread"]
PROGRAM = """
#include <cstdlib>
#include <iostream>

#include "samples.hpp"
#include "train.hpp"

using namespace dpsvm;

int main(int, char** words) {
  const Cloud cloud = make_cloud(std::atoi(words[3]), 8, 0.3, 5);
  TrainInput input;
  input.x = cloud.view();
  input.y = cloud.y.data();
  input.classes = 2;
  TrainOptions options;
  options.kernel.type = KernelType::linear;
  options.selector.name = words[1];
  options.selector.seed = 1;
  options.solver.shrinking = words[2][0] == '1';
  Watch watch(nullptr, nullptr, 1e300);
  std::cout << train(input, options, watch).reports[0].result.iterations << '\\n';
}
"""


def compile_all(folder: Path) -> dict[str, Path]:
    """The program with the trace and without."""
    compiler = require_program(os.environ.get("CXX", "g++"))
    include = [f"-I{ROOT / 'tests' / 'cpp'}", f"-I{ROOT / 'csrc'}"]
    text = (ROOT / "csrc" / "solver.cpp").read_text()
    if ASKED not in text:
        raise RuntimeError(f"solver.cpp no longer asks {ASKED!r}")
    (folder / "with.cpp").write_text(text)
    (folder / "without.cpp").write_text(text.replace(ASKED, "false"))
    (folder / "main.cpp").write_text(PROGRAM)
    common = [path for path in (ROOT / "csrc").glob("*.cpp") if path.name != "solver.cpp"]
    sources = [*common, *(folder / f"{name}.cpp" for name in ("with", "without", "main"))]

    def build(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        command = [compiler, *FLAGS, *include, "-c", str(source), "-o", str(target)]
        subprocess.run(command, check=True)
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = {path.stem: path for path in pool.map(build, sources)}
    programs = {}
    for name, other in (("with", "without"), ("without", "with")):
        programs[name] = folder / f"program_{name}"
        chosen = [str(path) for stem, path in objects.items() if stem != other]
        subprocess.run([compiler, "-pthread", *chosen, "-o", str(programs[name])], check=True)
    return programs


def count(program: Path, words: Sequence[str], folder: Path) -> tuple[int, int]:
    """Instructions and iterations of one solve."""
    out = f"--callgrind-out-file={folder / 'callgrind.out'}"
    command = [require_program("valgrind"), "--tool=callgrind", out, str(program), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if counted is None:
        raise RuntimeError(f"callgrind counted nothing: {done.stderr[-300:]}")
    return int(counted[1]), int(done.stdout)


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    require_program("valgrind")
    rows = "300" if options.quick else "1500"
    columns = ("selector", "shrinking", "iterations", "without", "with", "with / without - 1")
    table = Table("Instructions of a solve with the trace off (callgrind)", columns)
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        note("building twice")
        programs = compile_all(folder)
        for selector, shrinking in CASES:
            words = [selector, str(shrinking), rows]
            note(f"counting {selector}, shrinking {shrinking}")
            counts = {key: count(program, words, folder) for key, program in programs.items()}
            (ours, iterations), (bare, same) = counts["with"], counts["without"]
            good &= iterations == same and abs(ours / bare - 1) <= WITHIN
            row = [selector, shrinking, iterations, bare, ours, f"{ours / bare - 1:+.4%}"]
            table.rows.append(row)
    verdict = f"the unused trace costs at most {WITHIN:.1%} of the instructions: "
    verdicts = [verdict + ("yes" if good else "NO")]
    print(table.text(), *verdicts, sep="\n")
    if not options.quick:
        config = {"rows": rows, "features": 8, "within": WITHIN}
        write_results(options.results, "trace_cost", [table], config=config, verdicts=verdicts)
    return 0 if good else 1


if __name__ == "__main__":
    run(main)
