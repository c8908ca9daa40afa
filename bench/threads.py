"""Eight threads fitting at once must give the serial answers bit for bit, and print nothing.

    python bench/threads.py ../shared

Every job is trained alone, then all of them, several times over, by eight threads at once.
Exit code 1 if a bit differs or a byte reaches stdout.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from common import Table, arguments, load, run, shared_folder, write_results
from settings import Setting, train

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
    return b"".join(array.tobytes() for array in arrays) + repr(reports).encode()


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


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    shared = shared_folder(options.shared)
    jobs, repeats = (JOBS[:QUICK], 3) if options.quick else (JOBS, 8)
    table, equal, printed = compare(shared, jobs, repeats)
    print(table.text(), end="\n\n")
    verdicts = [
        f"serial answers bit for bit: {'yes' if equal else 'NO'}",
        f"bytes written to stdout by the fits: {printed}",
    ]
    print("\n".join(verdicts))
    if not options.quick:
        config = {"threads": THREADS, "repeats": repeats}
        write_results(options.results, "threads", [table], config=config, verdicts=verdicts)
    return 0 if equal and printed == 0 else 1


if __name__ == "__main__":
    run(main)
