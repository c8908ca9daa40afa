"""How long does a command take before it begins to work?

    python bench/speed/startup.py ../shared

Runs every command in turn, over and over, and keeps the shortest time of each: ``dpsvm --version``
against ``python -c pass``, and dpsvm-train, dpsvm-predict and dpsvm-scale on heart_scale against
``python -c "import numpy"``. Without the data set, on as many rows of scikit-learn's breast cancer
data. The times are those of the Python that runs this script, so an editable install, whose finder
is imported every time, is measured with it. Then the modules that a command must not load are
looked for. Exit code 1 if a bar is missed or such a module was loaded.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import Table, arguments, child_environment, run, write_results
from bench.programs import programs
from bench.small_data import heart

RUNS = 20
BARS = {"dpsvm --version": ("python -c pass", 3.0), "dpsvm-train": ("import numpy", 4.0)}
UNWANTED = ("scipy", "sklearn", "joblib", "matplotlib", "rich", "pandas")


def commands(folder: Path, data: Path) -> dict[str, list[str]]:
    """What is timed, by name; the first of them leaves the model that a later one reads."""
    ours = {name: str(path) for name, path in programs(folder).items()}
    model, output = str(folder / "model"), str(folder / "output")
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "dpsvm --version": [ours["dpsvm"], "--version"],
        "import numpy": [sys.executable, "-c", "import numpy"],
        "dpsvm-train": [ours["dpsvm-train"], str(data), model],
        "dpsvm-predict": [ours["dpsvm-predict"], str(data), model, output],
        "dpsvm-scale": [ours["dpsvm-scale"], str(data)],
    }


def shortest(words: Mapping[str, Sequence[str]], runs: int) -> dict[str, float]:
    """The shortest time of each command in seconds; the runs take turns."""
    environment = child_environment()
    best = dict.fromkeys(words, float("inf"))
    for _ in range(runs):
        for name, command in words.items():
            begin = time.perf_counter()
            subprocess.run(command, env=environment, capture_output=True, check=True)
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def loaded(words: Sequence[str]) -> list[str]:
    """The packages, of those a command has no need for, that it loads."""
    script = (
        "import sys; from dpsvm.cli import main; code = main(sys.argv[1:]); "
        f"print(*sorted(set({UNWANTED!r}) & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *words],  # as installed, wherever this runs
        env=child_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr.split()


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    runs = 1 if options.quick else RUNS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = heart(folder, options.shared)
        words = commands(folder, data)
        best = shortest(words, runs)
        model, output = str(folder / "model"), str(folder / "output")
        asked = (
            ["--version"],
            ["train", "-q", str(data), model],
            ["train", "-q", "-v", "2", str(data)],
            ["predict", str(data), model, output],
            ["scale", str(data)],
        )
        modules = sorted({module for command in asked for module in loaded(command)})
    table = Table(
        f"Shortest of {runs} runs, in milliseconds", ("command", "ms", "against", "ratio")
    )
    against = {name: "import numpy" for name in words if name.startswith("dpsvm-")}
    against["dpsvm --version"] = "python -c pass"
    for name, seconds in best.items():
        other = against.get(name)
        ratio = None if other is None else round(seconds / best[other], 2)
        table.rows.append([name, round(1e3 * seconds, 1), other, ratio])
    print(table.text(), end="\n\n")
    met = {name: best[name] <= bar * best[other] for name, (other, bar) in BARS.items()}
    verdicts = [
        f"{name} at most {bar:g} times {other}: {best[name] / best[other]:.2f}"
        for name, (other, bar) in BARS.items()
    ]
    verdicts.append(
        f"loaded without need, of {', '.join(UNWANTED)}: {', '.join(modules) or 'none'}"
    )
    print("\n".join(verdicts))
    if options.quick:  # one run is no measurement
        return 1 if modules else 0
    config = {"runs": runs, "data": data.name}
    write_results(options.results, "startup", [table], config=config, verdicts=verdicts)
    return 0 if all(met.values()) and not modules else 1


if __name__ == "__main__":
    run(main)
