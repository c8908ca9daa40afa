"""How near the kernel phase of a fit comes to the speed of a matrix product.

    python bench/speed/roofline.py ../shared                              # every workload
    python bench/speed/roofline.py ../shared --workloads a9a fashion

For each workload, in float32 and float64: the kernel values computed, the flops that took, the
seconds the core clocked in computing them (``Report.kernel_seconds``: dot products, kernel
function, threads woken), and the GFLOP/s beside the best numpy's ``@`` reached in the same run,
in the same precision and with as many threads. A dot product counts 2 flops for each feature in
the dense layout, 2 for each nonzero of a row in the others. The dense columns count 2 for each
feature whatever the layout: what a matrix product would have to do for the same values.

One problem spreads its kernel rows over the threads; where there are several (more than two
classes) each has one thread, and one thread's peak beside it. Exit code 1 if the kernel phase of
a9a in float32 takes longer than a matrix product at half the peak would.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from bench.common import (
    MEGABYTE,
    ROOT,
    Absent,
    Table,
    arguments,
    note,
    run,
    shared_folder,
    write_results,
)
from bench.settings import Setting, train
from bench.speed.adapters import Limits
from bench.speed.neighbours import Neighbours
from bench.speed.workloads import WORKLOADS, Matrix, Problem

if TYPE_CHECKING:
    from dpsvm._result import Report

DTYPES = ("float32", "float64")
MACHINES = {"SVC": "c-svc", "SVR": "epsilon-svr", "OneClassSVM": "one-class"}
JUDGED = ("a9a", "float32")
WANTED = 0.5  # of the peak
GIGA = 1e9

COLUMNS = (
    "workload",
    "dtype",
    "layout",
    "threads",
    "fit seconds",
    "kernel seconds",
    "kernel values",
    "Gflop",
    "GFLOP/s",
    "dense Gflop",
    "dense GFLOP/s",
    "GEMM GFLOP/s",
    "share of peak",
    "dense share of peak",
)


@dataclass(frozen=True)
class Shape:
    """What a dot product of a matrix's rows costs."""

    layout: str
    features: int
    nonzeros: float  # of a row, on average

    @classmethod
    def of(cls, X: Matrix) -> Shape:
        """The layout that csrc/samples.cpp chooses for the rows of X."""
        rows, features = X.shape
        entries = X.data[X.data != 0] if sp.issparse(X) else X[X != 0]
        words = -(-features // 64)
        if np.all(entries == 1) and words * rows <= entries.size:
            layout = "bits"
        elif entries.size > dense_enough() * rows * features:
            layout = "dense"
        else:
            layout = "sparse"
        return cls(layout, features, entries.size / rows)

    @property
    def flops(self) -> float:
        return self.dense_flops if self.layout == "dense" else 2 * self.nonzeros

    @property
    def dense_flops(self) -> float:
        return 2.0 * self.features


def dense_enough() -> float:
    """The share of nonzeros from which the core lays rows out densely."""
    path = ROOT / "csrc" / "samples.cpp"
    found = re.search(r"kDenseEnough = ([\d.]+);", path.read_text())
    if found is None:
        raise RuntimeError(f"{path} no longer names kDenseEnough")
    return float(found[1])


@dataclass(frozen=True)
class Phase:
    """The kernel phase of one workload."""

    workload: str
    dtype: str
    shape: Shape
    threads: int  # that compute one kernel row
    fit_seconds: float
    seconds: float
    values: int

    @property
    def rate(self) -> float:
        return self.values * self.shape.flops / self.seconds

    @property
    def dense_rate(self) -> float:
        return self.values * self.shape.dense_flops / self.seconds

    def row(self, peak: float) -> list[object]:
        return [
            self.workload,
            self.dtype,
            self.shape.layout,
            self.threads,
            round(self.fit_seconds, 4),
            round(self.seconds, 4),
            self.values,
            round(self.values * self.shape.flops / GIGA, 3),
            round(self.rate / GIGA, 2),
            round(self.values * self.shape.dense_flops / GIGA, 3),
            round(self.dense_rate / GIGA, 2),
            round(peak / GIGA, 1),
            f"{self.rate / peak:.0%}",
            f"{self.dense_rate / peak:.0%}",
        ]


def gemm_peak(dtype: str, threads: int, size: int, tries: int) -> float:
    """Flops per second of the fastest of several products of two square matrices."""
    random = np.random.default_rng(0)
    a, b = (random.normal(size=(size, size)).astype(dtype) for _ in range(2))
    out = np.empty_like(a)
    best = math.inf
    with threadpool_limits(threads):
        for _ in range(tries):
            started = time.perf_counter()
            np.matmul(a, b, out=out)
            best = min(best, time.perf_counter() - started)
    return 2.0 * size**3 / best


def fit(problem: Problem, threads: int) -> tuple[float, tuple[Report, ...]]:
    """Train once; the seconds it took and the core's reports."""
    setting = Setting(MACHINES[problem.estimator], **problem.params)
    cache = {"cache_bytes": Limits.cache_mb * MEGABYTE, "tol": Limits.tol}
    started = time.perf_counter()
    solution = train(problem.X, problem.y, setting, threads=threads, **cache)
    return time.perf_counter() - started, solution.reports


def measure(name: str, dtype: str, problem: Problem, options: argparse.Namespace) -> Phase:
    """The kernel phase of the fit that spent the least time in it."""
    fits = [fit(problem, options.threads) for _ in range(options.repeats)]
    spent = [sum(report.kernel_seconds for report in reports) for _, reports in fits]
    best = int(np.argmin(spent))
    seconds, reports = fits[best]
    phase = Phase(
        name,
        dtype,
        Shape.of(problem.X),
        options.threads if len(reports) == 1 else 1,
        seconds,
        spent[best],
        sum(report.kernel_evaluations for report in reports),
    )
    note(f"{name} {dtype}: {phase.seconds:.3f} s in the kernel phase")
    return phase


def peaks(options: argparse.Namespace) -> dict[tuple[str, int], float]:
    """The peak by precision and number of threads."""
    size, tries = (400, 3) if options.quick else (2000, 6)
    return {
        (dtype, threads): gemm_peak(dtype, threads, size, tries)
        for dtype in DTYPES
        for threads in sorted({1, options.threads})
    }


def phases(shared: Path, options: argparse.Namespace) -> list[Phase]:
    """Every workload asked for, in both precisions."""
    found = []
    for workload in WORKLOADS:
        if options.workloads is not None and workload.name not in options.workloads:
            continue
        for dtype in DTYPES:
            try:
                problem = workload.problem(shared, dtype)
            except Absent as reason:
                note(f"{workload.name}: skipped, {reason}")
                break
            found.append(measure(workload.name, dtype, problem, options))
    return found


def judge(found: Sequence[Phase], peak: dict[tuple[str, int], float]) -> tuple[list[str], bool]:
    """Does the judged workload take less time than a matrix product at half the peak?"""
    phase = next((p for p in found if (p.workload, p.dtype) == JUDGED), None)
    if phase is None:
        return [f"{' '.join(JUDGED)} was not run: nothing judged"], True
    whole = peak[phase.dtype, phase.threads]
    allowed = phase.values * phase.shape.dense_flops / (WANTED * whole)
    good = phase.seconds <= allowed
    return [
        f"{' '.join(JUDGED)}, layout {phase.shape.layout}: {phase.seconds:.3f} s in the kernel "
        f"phase; a matrix product at {WANTED:.0%} of the peak ({whole / GIGA:.0f} GFLOP/s) takes "
        f"{allowed:.3f} s; less than that: {'yes' if good else 'NO'}"
    ], good


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments(__doc__)
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("--workloads", nargs="+", choices=names, metavar="NAME")
    parser.add_argument("--repeats", type=int, default=3, help="fits; the fastest counts")
    parser.add_argument("--threads", type=int, default=Limits.threads)
    options = parser.parse_args(argv)
    if options.quick:
        options.repeats, options.workloads = 1, options.workloads or ["heart", "a1a"]
    return options


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    shared = shared_folder(options.shared)
    neighbours = Neighbours()
    before = peaks(options)
    found = phases(shared, options)
    peak = {key: max(before[key], after) for key, after in peaks(options).items()}
    table = Table("Kernel phase of a fit", COLUMNS)
    table.rows += [phase.row(peak[phase.dtype, phase.threads]) for phase in found]
    print(table.text(), end="\n\n")
    verdicts, good = judge(found, peak)
    verdicts.append(neighbours.verdict())
    print("\n".join(verdicts))
    if not options.quick:
        config = vars(Limits(threads=options.threads)) | {"repeats": options.repeats}
        write_results(options.results, "roofline", [table], config=config, verdicts=verdicts)
    return 0 if good else 1


if __name__ == "__main__":
    run(main)
