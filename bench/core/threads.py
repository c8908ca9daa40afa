"""Threads must not change a bit: eight that fit at once, or two that share one fit.

    python bench/core/threads.py ../shared

1. Every job is trained alone, then all of them, several times over, by eight threads at once.
   The answers must be the serial ones bit for bit, and nothing may be printed.
2. Workloads whose kernel rows dominate are fitted with one thread and with two, in turns; the
   answers must have the same bits, and the ratio of the median times is told.

Exit code 1 if a bit differs or a byte reaches stdout.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp

from bench.common import Absent, Table, arguments, load, note, run, shared_folder, write_results
from bench.settings import Setting, train
from bench.speed.workloads import WORKLOADS, Workload

if TYPE_CHECKING:
    from dpsvm._result import Solution

THREADS = 8
CLOCKED = ("seconds", "kernel_seconds")  # the only fields of a report that may differ


@dataclass(frozen=True)
class Job:
    """A fit; ``options`` go to the core as they are."""

    dataset: str
    setting: Setting
    options: dict[str, Any] = field(default_factory=dict)
    rows: int | None = None
    dense: bool = False
    dtype: type = np.float64

    def describe(self) -> str:
        extra = [f"{key}={value}" for key, value in self.options.items()]
        layout = f"{'dense' if self.dense else 'sparse'} {np.dtype(self.dtype).name}"
        return " ".join([self.setting.describe(), layout, *extra])

    def rows_and_targets(self, shared: Path) -> tuple[sp.csr_matrix | np.ndarray, np.ndarray]:
        X, y = load(shared, self.dataset, rows=self.rows, dtype=self.dtype)
        return (X.toarray() if self.dense else X), y


JOBS = (
    Job("heart_scale", Setting(kernel="linear")),
    Job("heart_scale", Setting("nu-svc", nu=0.3), dense=True),
    Job("heart_scale", Setting(kernel="linear", shrinking=False), {"selector": "dpwss", "seed": 7}),
    Job("heart_scale", Setting(), {"selector": "wss3", "seed": 3}),
    Job("a1a", Setting(), {"threads": 2}),
    Job("a1a", Setting("one-class"), dense=True, dtype=np.float32),
    Job("dna.scale", Setting(), rows=600),
    Job("housing_scale", Setting("epsilon-svr")),
    Job("housing_scale", Setting("nu-svr", "linear"), dense=True),
    Job("w1a", Setting(kernel="linear"), dtype=np.float32),
    Job("a5a", Setting()),
    Job("pendigits", Setting(gamma=1e-4), dense=True),
    Job("abalone_scale", Setting("epsilon-svr"), {"threads": 2}),
)
QUICK = 6  # jobs
SHARED_FITS = ("fashion", "synthetic", "ijcnn1")  # workloads
REPEATS = 5


def fingerprint(solution: Solution) -> bytes:
    """Every bit of an answer but its times."""
    arrays: list[np.ndarray] = [
        solution.support,
        solution.n_support,
        solution.dual_coef,
        solution.rho,
    ]
    reports = [
        sorted((k, repr(v)) for k, v in asdict(report).items() if k not in CLOCKED)
        for report in solution.reports
    ]
    return b"".join(np.asarray(array).tobytes() for array in arrays) + repr(reports).encode()


def flush_all() -> None:
    """Push out what Python's and C's buffers still hold."""
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)


@contextmanager
def captured_stdout() -> Iterator[BinaryIO]:
    """Everything written to file descriptor 1, by Python or by C, goes to the file yielded."""
    flush_all()
    kept = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield file
        finally:
            flush_all()
            os.dup2(kept, 1)
            os.close(kept)


def compare(shared: Path, jobs: Sequence[Job], repeats: int) -> tuple[Table, bool, int]:
    """The table, whether all answers are equal, and how many bytes reached stdout."""
    problems = [job.rows_and_targets(shared) for job in jobs]

    def fit(k: int) -> bytes:
        return fingerprint(train(*problems[k], jobs[k].setting, **jobs[k].options))

    with captured_stdout() as written, ThreadPoolExecutor(THREADS) as pool:
        alone = [fit(k) for k in range(len(jobs))]
        order = np.random.default_rng(0).permutation(np.repeat(np.arange(len(jobs)), repeats))
        together = list(pool.map(fit, order))
        flush_all()
        printed = written.seek(0, os.SEEK_END)
    table = Table(f"{THREADS} threads at once", ("set", "machine", "setting", "fits", "equal"))
    for k, job in enumerate(jobs):
        answers = [answer for which, answer in zip(order, together, strict=True) if which == k]
        equal = sum(answer == alone[k] for answer in answers)
        row = [job.dataset, job.setting.machine, job.describe(), len(answers), equal]
        table.rows.append(row)
    return table, all(row[3] == row[4] for row in table.rows), printed


def one_and_two(workload: Workload, shared: Path, dtype: str, repeats: int) -> list[object]:
    """A row of the table: median seconds with one thread and with two, and the same bits or not."""
    import dpsvm

    problem = workload.problem(shared, dtype)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    answers = set()
    for turn in range(repeats):
        for threads, times in seconds.items():
            model = dpsvm.SVC(**problem.params, cache_size=1000, n_jobs=threads)
            started = time.perf_counter()
            model.fit(problem.X, problem.y)
            times.append(time.perf_counter() - started)
            coef = model.dual_coef_
            coef = coef.toarray() if sp.issparse(coef) else coef
            arrays = (model.support_, coef, model.intercept_, model.n_iter_)
            answers.add(b"".join(np.asarray(array).tobytes() for array in arrays))
            told = f"{threads} threads: {times[-1]:.2f} s"
            note(f"{workload.name} {dtype} {turn + 1}/{repeats} {told}")
    one, two = (statistics.median(times) for times in seconds.values())
    same = "yes" if len(answers) == 1 else "NO"
    return [workload.name, dtype, repeats, round(one, 4), round(two, 4), round(one / two, 2), same]


def sharing_table(shared: Path, names: Sequence[str], repeats: int) -> Table:
    columns = ("workload", "dtype", "fits", "1 thread", "2 threads", "ratio", "same bits")
    table = Table("One fit on one thread and on two", columns)
    for workload in WORKLOADS:
        for dtype in ("float64", "float32"):
            if workload.name not in names:
                continue
            try:
                table.rows.append(one_and_two(workload, shared, dtype, repeats))
            except Absent as reason:
                note(f"{workload.name}: skipped, {reason}")
    return table


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    shared = shared_folder(options.shared)
    jobs, repeats = (JOBS[:QUICK], 3) if options.quick else (JOBS, 8)
    table, equal, printed = compare(shared, jobs, repeats)
    print(table.text(), end="\n\n", flush=True)
    names, turns = (("heart", "a1a"), 1) if options.quick else (SHARED_FITS, REPEATS)
    sharing = sharing_table(shared, names, turns)
    print(sharing.text(), end="\n\n")
    same = all(row[-1] == "yes" for row in sharing.rows)
    ratios = ", ".join(f"{row[0]} {row[1]} {row[5]}" for row in sharing.rows)
    verdicts = [
        f"serial answers bit for bit: {'yes' if equal else 'NO'}",
        f"bytes written to stdout by the fits: {printed}",
        f"one thread and two give the same bits: {'yes' if same else 'NO'}",
        f"times faster with two threads than with one: {ratios or 'not measured'}",
    ]
    print("\n".join(verdicts))
    if not options.quick:
        config = {"threads": THREADS, "repeats": repeats, "turns": turns}
        tables = [table, sharing]
        write_results(options.results, "threads", tables, config=config, verdicts=verdicts)
    return 0 if equal and printed == 0 and same else 1


if __name__ == "__main__":
    run(main)
