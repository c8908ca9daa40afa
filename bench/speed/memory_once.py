"""Fit one machine on one memory-mapped matrix, in a process of its own, and print what it held.

    python bench/speed/memory_once.py \\
        '{"estimator": "SVC", "X": "X.npy", "y": "y.npy", "params": {}}'

Prints one JSON object of bytes, all of them anonymous memory (RssAnon of /proc/self/status) above
what the process held when everything was imported and a small machine had been fitted: the peak of
the fit, what the fitted machine keeps, and the peak of predicting all rows above that. Pages of the
map itself are the file's: the system drops them when it wants memory; they are told as "mapped".
"""

from __future__ import annotations

import json
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp

import dpsvm

EVERY = 0.001  # seconds between two looks: memory is touched at some MB in the meantime


def resident(kind: str) -> int:
    """Bytes of one kind, "RssAnon" or "RssFile", that this process holds now."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(kind))
    return int(line.split()[1]) * 1024


class Peak:
    """The largest RssAnon seen while the block runs, less what there was before it."""

    def __enter__(self) -> Peak:
        self.before = self.most = resident("RssAnon")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            self.most = max(self.most, resident("RssAnon"))

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._thread.join()
        self.most = max(self.most, resident("RssAnon"))

    @property
    def bytes(self) -> int:
        return self.most - self.before


def matrix(path: str) -> Any:
    """A mapped array, or the compressed rows whose three arrays are mapped."""
    if not path.endswith(".csr"):
        return np.load(path, mmap_mode="r")
    folder = Path(path)
    data, indices, indptr = (
        np.load(folder / f"{part}.npy", mmap_mode="r") for part in ("data", "indices", "indptr")
    )
    shape = tuple(json.loads((folder / "shape.json").read_text()))
    rows = sp.csr_matrix(shape, dtype=data.dtype)
    rows.data, rows.indices, rows.indptr = data, indices, indptr
    return rows


def measure(case: dict[str, Any]) -> dict[str, Any]:
    make: Callable[[], Any] = lambda: getattr(dpsvm, case["estimator"])(**case["params"])  # noqa: E731
    X, y = matrix(case["X"]), np.load(case["y"])
    X = X if case.get("step", 1) == 1 else X[:: case["step"]]
    weight = None if case.get("weight") is None else np.load(case["weight"])
    small = slice(0, case["warm"])
    fit(make(), X[small], y[small], None if weight is None else weight[small]).predict(X[small])

    machine = make()
    begun = time.perf_counter()
    with Peak() as fitting:
        fit(machine, X, y, weight)
    seconds = time.perf_counter() - begun
    kept = resident("RssAnon") - fitting.before
    with Peak() as predicting:
        machine.predict(X[: case["queries"]])
    return {
        "fit": fitting.bytes,
        "kept": kept,
        "predict": predicting.bytes,
        "mapped": resident("RssFile"),
        "seconds": seconds,
        "n_sv": len(machine.support_),
        "vectors": _bytes(machine.support_vectors_),
    }


def fit(machine: Any, X: Any, y: Any, weight: Any) -> Any:
    return machine.fit(X, y, sample_weight=weight)


def _bytes(vectors: Any) -> int:
    if not sp.issparse(vectors):
        return int(vectors.nbytes)
    return sum(part.nbytes for part in (vectors.data, vectors.indices, vectors.indptr))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(measure(json.loads(sys.argv[1]))))
