"""A mapped matrix is held once, in the solver's layout, or not at all: fits under a hard limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.format import open_memmap

import dpsvm

BYTES = 40_000_000
COLUMNS = 1000

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="no /proc to read the size of a process from"
)

# The limit is on private writable memory (RLIMIT_DATA), in which a read-only map does not count.
CHILD = """
import json, resource, sys, warnings
import numpy as np
import dpsvm

warnings.simplefilter("ignore")
case = json.loads(sys.argv[1])
X = np.load(case["X"], mmap_mode="r")[:: case["step"]]
y = np.arange(len(X)) % 2
weight = np.where(np.arange(len(X)) % 10 == 0, 0.0, 1.0) if case["weighted"] else None
make = lambda: getattr(dpsvm, case["estimator"])(cache_size=1, max_iter=30, **case["params"])
few = slice(0, 40)
make().fit(X[few], y[few], None if weight is None else weight[few]).predict(X[few])

status = open("/proc/self/status").read()
used = 1024 * int(status.partition("VmData:")[2].split()[0])
limit = used + case["limit"]
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
trained = slice(0, case["trained"])
machine = make().fit(X[trained], y[trained], None if weight is None else weight[trained])
machine.predict(X[: case["asked"]])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The matrices, by element type and order."""
    folder = tmp_path_factory.mktemp("mapped")
    random = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        rows = BYTES // (np.dtype(dtype).itemsize * COLUMNS)
        for order in "CF":
            path = folder / f"{dtype}-{order}.npy"
            X = open_memmap(path, "w+", dtype, (rows, COLUMNS), fortran_order=order == "F")
            X[...] = random.standard_normal((rows, COLUMNS), dtype=np.float32)
            X.flush()
    return folder


def fit(
    folder: Path,
    name: str,
    times: float,
    estimator: str = "SVC",
    *,
    weighted: bool = False,
    step: int = 1,
    trained: int | None = None,
    asked: int | None = 500,
    **params: object,
) -> subprocess.CompletedProcess[str]:
    """Fit, and predict, in a process that may take so many times the matrix."""
    case = {
        "X": str(folder / f"{name}.npy"),
        "estimator": estimator,
        "params": params,
        "weighted": weighted,
        "step": step,
        "trained": trained,
        "asked": asked,
        "limit": int(times * BYTES),
    }
    return subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(case)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(dpsvm.__path__[0]).parent)},
        check=False,
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("estimator", "weighted", "params"),
    [
        ("SVC", False, {}),
        ("SVR", True, {"gamma": 0.001}),
    ],
)
def test_the_rows_are_held_once(
    folder: Path, dtype: str, estimator: str, weighted: bool, params: dict[str, object]
) -> None:
    done = fit(folder, f"{dtype}-C", 1.4, estimator, weighted=weighted, **params)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_linear_decomposition_holds_a_round_only(folder: Path, dtype: str) -> None:
    done = fit(folder, f"{dtype}-C", 0.5, kernel="linear", solver="decomposition")
    assert done.returncode == 0, done.stderr


def test_a_second_copy_would_not_fit(folder: Path) -> None:
    done = fit(folder, "float64-F", 1.4)  # is brought into C order first
    assert done.returncode == 1
    assert "MemoryError" in done.stderr


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_other_row_is_read_where_it_lies(folder: Path, dtype: str) -> None:
    done = fit(folder, f"{dtype}-C", 0.8, gamma=0.001, step=2, asked=None)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("step", "dtype"), [(1, "float32"), (1, "float64"), (2, "float64")])
def test_columns_are_turned_into_rows_in_blocks_to_predict(
    folder: Path, dtype: str, step: int
) -> None:
    done = fit(folder, f"{dtype}-F", 0.45, step=step, trained=40, asked=None)
    assert done.returncode == 0, done.stderr
