"""How the time to fit grows with the number of rows, beside the other libraries.

    python bench/speed/growth.py

Two overlapping Gaussian classes of 20 dense columns, rbf, C = 1, gamma = 1 / 20, from 1,000 to
64,000 rows, each fit in a fresh process and the median of interleaved runs. scikit-learn and
LIBSVM stop at 16,000 rows. The exponent is that of rows ** exponent between a size and the one
before it. Rows computed are dpsvm's kernel rows, whole or in part, of one more fit. Exit code 1
if dpsvm gives no answer.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np

from bench.common import Table, arguments, run, write_results
from bench.settings import Setting, train
from bench.speed.adapters import Limits
from bench.speed.speed_bars import Verdict
from bench.speed.turns import OWN, Plan, Runs, take_turns
from bench.speed.workloads import Problem

SIZES = tuple(1000 * 2**k for k in range(7))
QUICK_SIZES = (250, 500)
COLUMNS = 20
LAST = {"scikit-learn": 16_000, "LIBSVM": 16_000}  # rows
LIBRARIES = (OWN, "scikit-learn-intelex", "scikit-learn", "LIBSVM")


def gaussians(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes whose centres are two standard deviations apart, seeded."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, rows).astype(np.float64)
    centre = np.full(COLUMNS, 1 / math.sqrt(COLUMNS))
    return random.normal(size=(rows, COLUMNS)) + np.outer(2 * y - 1, centre), y


def measure(rows: int, names: Sequence[str], plan: Plan) -> tuple[dict[str, Runs], int]:
    """The runs of each library, and the kernel rows dpsvm computed."""
    X, y = gaussians(rows)
    params: dict[str, Any] = {"kernel": "rbf", "C": 1.0, "gamma": 1 / COLUMNS}
    libraries = [name for name in names if rows <= LAST.get(name, rows)]
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder, "problem.npz")
        Problem(X, y, "SVC", params).save(saved)
        runs = take_turns(f"{rows} rows", libraries, saved, plan, objective=False)
    return runs, train(X, y, Setting(), threads=plan.threads).reports[0].kernel_rows


def exponent(sizes: tuple[int, int], seconds: tuple[float | None, float | None]) -> float | None:
    """Of the growth from the first to the second."""
    if seconds[0] is None or seconds[1] is None:
        return None
    return math.log(seconds[1] / seconds[0]) / math.log(sizes[1] / sizes[0])


def growth_table(
    sizes: Sequence[int], names: Sequence[str], plan: Plan
) -> tuple[Table, list[Verdict]]:
    columns = ("rows", "library", "runs", "seconds", "exponent", "nSV", "rows computed")
    table = Table(f"Time against rows (two Gaussians, {COLUMNS} columns, rbf, C=1)", columns)
    medians: dict[str, dict[int, float | None]] = {name: {} for name in names}
    silent = []
    for size in sizes:
        runs, computed = measure(size, names, plan)
        for name, known in runs.items():
            if known.absent is not None:
                silent += [str(size)] if name == OWN else []
                table.rows.append([size, name, 0, known.absent, None, None, None])
                continue
            median = known.median("seconds")
            step = exponent((size // 2, size), (medians[name].get(size // 2), median))
            medians[name][size] = median
            table.rows.append(
                [
                    size,
                    name,
                    len(known.answers),
                    None if median is None else round(median, 4),
                    None if step is None else round(step, 2),
                    known.first("n_sv"),
                    computed if name == OWN else None,
                ]
            )
    verdicts = [Verdict(f"dpsvm gave no answer at: {', '.join(silent) or 'none'}", bool(silent))]
    for name, times in medians.items():
        if len(times) > 1:
            ends = min(times), max(times)
            whole = exponent(ends, (times[ends[0]], times[ends[1]]))
            line = f"{name}: exponent {whole:.2f} from {ends[0]} to {ends[1]} rows"
            verdicts.append(Verdict(line))
    return table, verdicts


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=Limits.threads)
    parser.add_argument("--lock", type=Path, help="a file whose lock every run holds (flock)")
    options = parser.parse_args(argv)
    plan = Plan(1 if options.quick else options.repeats, options.threads, lock=options.lock)
    sizes = QUICK_SIZES if options.quick else SIZES
    table, verdicts = growth_table(sizes, options.libraries, plan)
    lines = [verdict.line for verdict in verdicts]
    print(table.text(), "\n".join(lines), sep="\n\n")
    if not options.quick:
        config = vars(Limits(threads=options.threads)) | {"repeats": options.repeats}
        write_results(options.results, "growth", [table], config=config, verdicts=lines)
    return 1 if any(verdict.failed for verdict in verdicts) else 0


if __name__ == "__main__":
    run(main)
