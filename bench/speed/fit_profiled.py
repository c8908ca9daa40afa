"""Fit dpsvm once on one saved problem, with perf recording the fit and nothing else.

    perf record -D -1 --control fifo:CONTROL,ACK ... -- python bench/speed/fit_profiled.py \\
        PROBLEM.npz CONTROL ACK --threads 2

Prints one JSON object: the number of the calling thread, the fit's seconds, and how many of them
that thread ran and stood ready to run while others held the cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np

from bench.speed.adapters import Dpsvm, Limits
from bench.speed.workloads import Problem


@contextmanager
def recorded(control: Path, ack: Path) -> Iterator[None]:
    """Perf's events count inside the block."""
    with control.open("w") as orders, ack.open() as answers:

        def order(word: str) -> None:
            print(word, file=orders, flush=True)
            answers.readline()

        order("enable")
        try:
            yield
        finally:
            order("disable")


def displaced() -> float:
    """Seconds this thread could have run and was not let, where the kernel tells."""
    try:
        _ran, waited, _times = Path("/proc/thread-self/schedstat").read_text().split()
    except (OSError, ValueError):
        return 0.0
    return int(waited) / 1e9


def clocks() -> np.ndarray:
    return np.array([time.perf_counter(), time.thread_time(), displaced()])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", type=Path)
    parser.add_argument("control", type=Path)
    parser.add_argument("ack", type=Path)
    parser.add_argument("--threads", type=int, default=Limits.threads)
    options = parser.parse_args()
    adapter = Dpsvm(Limits(threads=options.threads))
    adapter.prepare(Problem.read(options.problem))
    with recorded(options.control, options.ack):
        started = clocks()
        adapter.fit()
        spent = dict(zip(("seconds", "ran", "displaced"), clocks() - started, strict=True))
    print(json.dumps({"thread": threading.get_native_id(), **spent}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
