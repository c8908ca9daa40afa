"""Does the randomised selector behave as published, and what memory and time does it take?

    python bench/comparison/dpwss.py ../shared

1. heart_scale, linear, C = 1, no shrinking, selection_epsilon 1: over 200 seeds the mean number
   of iterations must be within 6 % of 1111, 700, 531 and 395 for sigma .1, .3, .5 and .7.
2. ijcnn1, linear, C = 1: the peak memory of dpwss must be within 64 MB of wss2's, with a cache
   of 200 MB for kernel rows, which both fill.
3. ijcnn1 and a9a, linear, C = 1: an iteration of dpwss at sigma .1 and .7 should take at most 1.3
   times one of wss2; one thread, the median of five interleaved fits.

Exit code 1 if either of the first two fails; the third is only told.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np

from bench.common import (
    MEGABYTE,
    Table,
    arguments,
    forget_peak,
    load,
    memory,
    note,
    run,
    shared_folder,
    write_results,
)
from bench.settings import Setting, train

SEEDS = 200
EXPECTED = {0.1: 1111, 0.3: 700, 0.5: 531, 0.7: 395}  # sigma: mean iterations
WITHIN = 0.06  # relative
MEMORY_MB = 64
CACHE_MB = 200  # where memory is compared
SELECTORS: dict[str, dict[str, Any]] = {
    "wss2": {},
    "dpwss, sigma .1": {"selector": "dpwss", "sigma": 0.1, "seed": 0},
    "dpwss, sigma .7": {"selector": "dpwss", "sigma": 0.7, "seed": 0},
}
REPEATS = 5
TIMES_WSS2 = 1.3  # per iteration
UNSHRUNK = Setting(kernel="linear", shrinking=False)


def iterations_table(shared: Path, seeds: int) -> tuple[Table, bool]:
    """Mean iterations over the seeds 0, 1, ... at each sigma."""
    columns = ("sigma", "seeds", "mean", "sd", "expected", "ratio", "stops", "verdict")
    table = Table("Iterations on heart_scale (linear, C=1, shrinking off)", columns)
    X, y = load(shared, "heart_scale")
    good = True
    for sigma, expected in EXPECTED.items():
        reports = [
            train(X, y, UNSHRUNK, selector="dpwss", sigma=sigma, seed=seed).reports[0]
            for seed in range(seeds)
        ]
        counts = np.array([report.iterations for report in reports])
        stops = Counter(report.stop_reason for report in reports)
        ratio = float(counts.mean() / expected)
        passed = abs(ratio - 1) <= WITHIN
        good &= passed
        table.rows.append(
            [
                sigma,
                seeds,
                round(float(counts.mean()), 1),
                round(float(counts.std(ddof=1)), 1),
                expected,
                round(ratio, 4),
                ", ".join(f"{reason} {count}" for reason, count in stops.items()),
                "within 6%" if passed else "OUTSIDE 6%",
            ]
        )
    return table, good


def peak_of(shared: Path, selector: str, dataset: str) -> dict[str, float]:
    """Train in this process and answer the peak of its memory."""
    X, y = load(shared, dataset)
    forget_peak()
    before, _ = memory()
    options: dict[str, Any] = {"sigma": 0.7, "seed": 0} if selector == "dpwss" else {}
    options["cache_bytes"] = CACHE_MB * MEGABYTE
    report = train(X, y, UNSHRUNK, selector=selector, **options).reports[0]
    _, peak = memory()
    return {
        "peak_mb": peak / MEGABYTE,
        "fit_mb": (peak - before) / MEGABYTE,
        "iterations": report.iterations,
        "seconds": report.seconds,
    }


def memory_table(shared: Path, dataset: str) -> tuple[Table, bool]:
    """wss2 and dpwss, each in a fresh process."""
    columns = ("selector", "iterations", "seconds", "fit MB", "peak MB")
    setting = f"linear, C=1, shrinking off, cache of {CACHE_MB} MB"
    table = Table(f"Memory on {dataset} ({setting})", columns)
    peaks = {}
    for selector in ("wss2", "dpwss"):
        note(f"memory: {dataset} with {selector}")
        command = [sys.executable, __file__, str(shared), "--peak-of", selector, dataset]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        answer = json.loads(done.stdout)
        peaks[selector] = answer["peak_mb"]
        table.rows.append(
            [
                selector,
                answer["iterations"],
                round(answer["seconds"], 2),
                round(answer["fit_mb"], 1),
                round(answer["peak_mb"], 1),
            ]
        )
    return table, peaks["dpwss"] - peaks["wss2"] <= MEMORY_MB


def cost_table(shared: Path, datasets: Sequence[str], repeats: int) -> tuple[Table, list[str]]:
    """Microseconds of an iteration, kernel rows included, and where dpwss takes too many."""
    columns = ("set", "selector", "fits", "iterations", "rows computed", "microseconds", "ratio")
    table = Table("Time of an iteration (linear, C=1, shrinking off, one thread)", columns)
    dear = []
    for dataset in datasets:
        X, y = load(shared, dataset)
        spent: dict[str, list[float]] = {name: [] for name in SELECTORS}
        reports = {}
        for turn in range(repeats):
            for name, options in SELECTORS.items():
                report = train(X, y, UNSHRUNK, **options).reports[0]
                spent[name].append(1e6 * report.seconds / report.iterations)
                reports[name] = report
                note(f"{dataset} {turn + 1}/{repeats} {name}: {spent[name][-1]:.1f} us")
        medians = {name: statistics.median(times) for name, times in spent.items()}
        for name, median in medians.items():
            ratio = median / medians["wss2"]
            dear += [f"{dataset} {name} ({ratio:.2f})"] if ratio > TIMES_WSS2 else []
            counts = [reports[name].iterations, reports[name].kernel_rows]
            row = [dataset, name, repeats, *counts, round(median, 2), round(ratio, 3)]
            table.rows.append(row)
    return table, dear


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--peak-of", nargs=2, metavar=("SELECTOR", "SET"), help="one memory run")
    options = parser.parse_args(argv)
    shared = shared_folder(options.shared)
    if options.peak_of:
        print(json.dumps(peak_of(shared, *options.peak_of)))
        return 0
    seeds = 40 if options.quick else SEEDS
    dataset = "a1a" if options.quick else "ijcnn1"
    iterations, near = iterations_table(shared, seeds)
    print(iterations.text(), end="\n\n", flush=True)
    peaks, small = memory_table(shared, dataset)
    print(peaks.text(), end="\n\n")
    timed = ("heart_scale", "a1a") if options.quick else ("ijcnn1", "a9a")
    costs, dear = cost_table(shared, timed, 1 if options.quick else REPEATS)
    print(costs.text(), end="\n\n")
    verdicts = [
        f"mean iterations within 6% of the published behaviour: {'yes' if near else 'NO'}",
        f"dpwss within {MEMORY_MB} MB of wss2: {'yes' if small else 'NO'}",
        f"an iteration of dpwss at most {TIMES_WSS2} times wss2's: {'NO' if dear else 'yes'}, "
        f"more on: {', '.join(dear) or 'none'}",
    ]
    print("\n".join(verdicts))
    if not options.quick:
        config = {"seeds": seeds, "selection_epsilon": 1.0, "within": WITHIN}
        config |= {"repeats": REPEATS}
        tables = [iterations, peaks, costs]
        write_results(options.results, "dpwss", tables, config=config, verdicts=verdicts)
    return 0 if near and small else 1


if __name__ == "__main__":
    run(main)
