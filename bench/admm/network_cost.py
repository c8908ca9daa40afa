"""What ADMM over a network costs: the time of an update, and memory.

    python bench/admm/network_cost.py ROWS NODES FEATURES      # one fit, and its memory as JSON

The time of a node's update stands beside one fit of scikit-learn's logistic regression by Newton's
method on the rows of the same node, with the same strength of regularisation; both take turns, and
medians count. Memory is that of a process of its own: what is resident at the peak of the fit,
above what was resident before the data were made.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp

from bench.admm.network_runs import GAMMA, LAM, RHO, Split
from bench.common import MEGABYTE, child_environment, forget_peak, memory

ENTRIES = 10  # of a made row


def update_times(rows: Split, nodes: int, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of node 0's updates, and of scikit-learn's fits of the same rows, in turns."""
    from sklearn.linear_model import LogisticRegression

    from dpsvm.admm.network import Node, Penalties, Samples, Terms, make_graph, run, schedule
    from dpsvm.losses import Logistic

    table = schedule(RHO, 1.0, (rounds + 1) // 2, nodes)
    terms = Terms(
        penalties=Penalties(make_graph("complete", nodes), table),
        loss=Logistic(),
        C=rows.cost,
        lam=LAM,
        gamma=GAMMA,
        rounds=rounds,
    )
    tables, labels = rows.shares(nodes)
    members = [
        Node(i, Samples(X, y), terms) for i, (X, y) in enumerate(zip(tables, labels, strict=True))
    ]
    share = rows.cost / len(labels[0])
    theirs = LogisticRegression(
        C=share / float(terms.curvatures[0, 0]), fit_intercept=False, solver="newton-cholesky"
    )
    own: list[float] = []
    other: list[float] = []
    first, emit = members[0], members[0].emit

    def timed() -> Any:
        begun = time.perf_counter()
        message = emit()
        middle = time.perf_counter()
        if terms.is_update(message.round):
            theirs.fit(tables[0], labels[0])
            own.append(middle - begun)
            other.append(time.perf_counter() - middle)
        return message

    first.emit = timed
    run(members)
    return own, other


def median_times(rows: Split, nodes: int, rounds: int) -> tuple[float, float]:
    """The medians of both, the first update, which starts from nothing, included."""
    own, other = update_times(rows, nodes, rounds)
    return statistics.median(own), statistics.median(other)


def made(rows: int, features: int, nodes: int) -> tuple[list[Any], list[np.ndarray]]:
    """Sparse rows for each node, and labels that a tenth of the features decide."""
    random = np.random.default_rng(0)
    truth = random.standard_normal(features) * (random.random(features) < 0.1)
    tables, labels = [], []
    for size in np.diff(np.linspace(0, rows, nodes + 1).astype(int)):
        columns = random.integers(features, size=(size, ENTRIES), dtype=np.int32)
        columns.sort(axis=1)
        ends = np.arange(0, size * ENTRIES + 1, ENTRIES, dtype=np.int32)
        data = np.full(size * ENTRIES, ENTRIES**-0.5)
        X = sp.csr_array((data, columns.ravel(), ends), shape=(size, features))
        X.sum_duplicates()
        tables.append(X)
        noise = 0.1 * random.standard_normal(size)
        labels.append(np.where(X @ truth + noise > 0, 1.0, -1.0))
    return tables, labels


def size_of(tables: list[Any], labels: list[np.ndarray]) -> int:
    """Bytes of the rows and labels."""
    parts = [part for X in tables for part in (X.data, X.indices, X.indptr)]
    return sum(part.nbytes for part in [*parts, *labels])


def child(rows: int, nodes: int, features: int) -> dict[str, float]:
    """Make data, fit, and tell the memory of it."""
    from dpsvm.admm import NetworkADMM

    NetworkADMM(rounds=1).fit(np.eye(10), [0, 1] * 5)  # libraries and their pools
    before = memory()[0]
    tables, labels = made(rows, features, nodes)
    data = size_of(tables, labels)
    forget_peak()
    with_data = memory()[0]
    begun = time.perf_counter()
    model = NetworkADMM("ring", C=1.0, lam=0.01, rounds=3, track=False)
    model.fit(tables, labels)
    return {
        "data_mb": data / MEGABYTE,
        "grams_mb": nodes * features**2 * 8 / MEGABYTE,
        "with_data_mb": (with_data - before) / MEGABYTE,
        "peak_mb": (memory()[1] - before) / MEGABYTE,
        "seconds": time.perf_counter() - begun,
    }


def peak_memory(rows: int, nodes: int, features: int) -> dict[str, float]:
    """The same from a fresh process with one thread."""
    command = [sys.executable, str(Path(__file__)), *map(str, (rows, nodes, features))]
    done = subprocess.run(
        command,
        env=child_environment(OPENBLAS_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


if __name__ == "__main__":
    print(json.dumps(child(*map(int, sys.argv[1:4]))))
