"""What a fit on a memory-mapped matrix holds, beside what it must hold.

    python bench/speed/memory.py
    python bench/speed/memory.py --quick

Each case is fitted, and its rows predicted, in a fresh process (memory_once.py) that reads the
matrix from a map (numpy.load with mmap_mode). The peak is that of anonymous memory, above what the
process held after its imports and less the cache_size of the kernel cache; the pages of the map
are the file's and are not counted. Beside it stands what is held, by name:

    what                      bytes                    when
    layout, dense             4 or 8 per entry         a quarter of the entries are not zero: panels
    layout, sparse            8 or 12 per nonzero      otherwise: compressed rows
    layout, zeros and ones    1/8 per entry            where that is shorter
    no layout                 0                        linear, solver="decomposition"; precomputed
    support_vectors_          4 or 8 per entry         after the fit, when the layout is gone
    C order                   4 or 8 per entry         X in Fortran order; rows may lie apart
    C order, a block          8 MB or 64 rows          such rows, while they are predicted
    the model's layout        as the layout's          while rows are predicted; not for linear
    per row                   about 300                the solver's numbers; twice that for SVR

An entry of the layout has 4 bytes where X is float32 and single precision is enough for the kernel
(rbf, not for the nu machines, rows near the origin), else 8. Pairs of several classes hold their
own rows only, as many pairs at a time as there are threads. Of a linear decomposition's rows only
those of the current round are copied.

Exit code 1 if a peak is above 1.2 times the rows that are named, or, where these are none, above
a fifth of the matrix. Sparse rows are so short that the bytes per row are allowed beside.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
from numpy.lib.format import open_memmap

from bench.common import Absent, Table, arguments, child_environment, note, run, write_results

MEGA = 10**6
CACHE = 1  # cache_size, in 2**20 bytes: so small that it hides nothing
ALLOWED = 1.2
IN_PLACE = 0.2  # of the matrix, where no row need be held
PER_ROW = 300  # bytes
SCRATCH = 16 * MEGA  # blocks of queries and of kernel values while predicting
COLUMNS, WIDE = 784, 64_000
DENSITY = 0.05  # of the sparse matrix
QUERIES = 2000
SIZES = (92 * MEGA, 1000 * MEGA)
QUICK_SIZES = (40 * MEGA,)


@dataclass(frozen=True)
class Case:
    """One fit. `entry` is the layout's bytes per entry; `named` what else is held, per entry."""

    estimator: str
    dtype: str
    entry: int
    params: dict[str, Any] = field(default_factory=dict)
    form: str = "C"  # "C", "F", "apart" (every other row of a C matrix), "csr" or "wide"
    classes: int = 2
    kept: float = 1.0  # share of the rows with a weight, and whether there are weights at all
    held: float = 1.0  # share of the rows kept that are in a layout at once
    named: int = 0

    @property
    def label(self) -> str:
        words = [f"{key}={value}" for key, value in self.params.items()]
        words += [f"{self.classes} classes"] if self.classes > 2 else []
        words += [f"{1 - self.kept:.0%} of the weights 0"] if self.kept < 1 else []
        return ", ".join([self.estimator, *words])


LINEAR = {"kernel": "linear"}
ROUNDS = LINEAR | {"solver": "decomposition"}
NARROW = {"gamma": 0.001}
CASES = (
    Case("SVC", "float32", 4),
    Case("SVC", "float64", 8),
    Case("SVC", "float32", 4, NARROW),
    Case("SVC", "float64", 8, NARROW),
    Case("SVC", "float32", 4, form="F", named=4),
    Case("SVC", "float64", 8, form="F", named=8),
    Case("SVC", "float32", 4, NARROW, form="apart"),
    Case("SVC", "float64", 8, NARROW, form="apart"),
    Case("SVC", "float32", 4, form="csr"),
    Case("SVC", "float64", 8, form="csr"),
    Case("SVC", "float32", 4, NARROW, kept=0.9),
    Case("SVC", "float64", 8, NARROW, kept=0.9),
    Case("SVC", "float32", 4, NARROW | {"n_jobs": 1}, classes=3, held=2 / 3),
    Case("SVC", "float32", 4, NARROW | {"n_jobs": 2}, classes=3, held=4 / 3),
    Case("SVC", "float32", 8, LINEAR),
    Case("SVC", "float64", 8, LINEAR),
    Case("SVC", "float32", 0, ROUNDS),
    Case("SVC", "float64", 0, ROUNDS),
    Case("SVC", "float64", 0, ROUNDS, form="csr"),
    Case("SVR", "float32", 4, NARROW),
    Case("SVR", "float64", 8),
    Case("OneClassSVM", "float32", 4, {"nu": 0.001}),
    Case("OneClassSVM", "float64", 0, ROUNDS | {"nu": 0.9995}),
    Case("OneClassSVM", "float64", 8, {"nu": 0.9995}, form="wide"),
    Case("NuSVC", "float32", 8, {"nu": 0.001}),
    Case("NuSVC", "float64", 8, {"nu": 0.001}),
)
QUICK = (0, 1, 5, 7, 10, 16)  # of CASES


def shape_of(case: Case, size: int) -> tuple[int, int]:
    """Rows and columns of a matrix of so many bytes, those of its nonzeros if it is sparse."""
    per_entry = np.dtype(case.dtype).itemsize
    if case.form == "csr":
        return int(size / ((per_entry + 4) * COLUMNS * DENSITY)), COLUMNS
    columns = WIDE if case.form == "wide" else COLUMNS
    return size // (per_entry * columns), columns


def step_of(case: Case) -> int:
    """The named rows are each so many'th of the matrix."""
    return 2 if case.form == "apart" else 1


def make_matrix(folder: Path, case: Case, size: int) -> Path:
    """Write it block by block; one that is there is taken."""
    rows, columns = shape_of(case, size)
    rows *= step_of(case)
    path = folder / f"{case.dtype}-{case.form}.{'csr' if case.form == 'csr' else 'npy'}"
    if path.exists():
        return path
    random = np.random.default_rng(0)
    if case.form == "csr":
        return _make_sparse(path, random, (rows, columns), case.dtype)
    X = open_memmap(path, "w+", case.dtype, (rows, columns), fortran_order=case.form == "F")
    together = max(4 * MEGA // columns, 1)
    for at in range(0, rows, together):
        block = X[at : at + together]
        block[...] = random.standard_normal(block.shape, dtype=np.float32)
    X.flush()
    return path


def _make_sparse(path: Path, random: Any, shape: tuple[int, int], dtype: str) -> Path:
    """As many entries in every row, at random distances from each other."""
    path.mkdir()
    rows, columns = shape
    each = int(columns * DENSITY)
    data = open_memmap(path / "data.npy", "w+", dtype, (rows * each,))
    indices = open_memmap(path / "indices.npy", "w+", np.int32, (rows * each,))
    for at in range(0, rows, 10_000):
        count = min(10_000, rows - at)
        here = slice(at * each, (at + count) * each)
        gaps = random.integers(1, columns // each + 1, (count, each), dtype=np.int32)
        indices[here] = (np.cumsum(gaps, axis=1) - 1).ravel()
        data[here] = random.standard_normal(count * each, dtype=np.float32)
    np.save(path / "indptr.npy", np.arange(0, rows * each + 1, each, dtype=np.int32))
    (path / "shape.json").write_text(json.dumps(shape))
    return path


def measure(folder: Path, case: Case, size: int) -> dict[str, Any]:
    """Run one case in a process of its own."""
    X = make_matrix(folder, case, size)
    rows, _ = shape_of(case, size)
    y, weight = folder / "y.npy", folder / "weight.npy"
    np.save(y, np.arange(rows) % case.classes)
    np.save(weight, (np.arange(rows) % 10 >= round(10 * (1 - case.kept))).astype(np.float64))
    asked = {
        "estimator": case.estimator,
        "params": {"cache_size": CACHE, "max_iter": 50} | case.params,
        "X": str(X),
        "y": str(y),
        "weight": str(weight) if case.kept < 1 else None,
        "warm": 60,
        "queries": rows if case.form in ("F", "apart") else QUERIES,
        "step": step_of(case),
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("memory_once.py")), json.dumps(asked)],
        capture_output=True,
        text=True,
        env=child_environment(),
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{case.label}: {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def layout_bytes(case: Case, size: int, rows: float) -> float:
    """What a layout of so many rows takes."""
    _, columns = shape_of(case, size)
    if case.form == "csr":
        return rows * (int(columns * DENSITY) * (case.entry + 4) + 16)
    return rows * columns * case.entry


def judged(case: Case, size: int, answer: dict[str, Any]) -> tuple[list[object], str | None]:
    """A row of the table, and what is wrong with it if anything is."""
    rows, columns = shape_of(case, size)
    layout = layout_bytes(case, size, rows * case.kept * case.held) if case.entry else 0.0
    held = max(layout, answer["vectors"] if not case.entry else 0) + rows * columns * case.named
    peak = max(answer["fit"] - CACHE * 2**20, 0)
    few = not case.entry and answer["n_sv"] < rows / 2
    allowed = IN_PLACE * size if few else ALLOWED * held
    allowed += PER_ROW * rows if case.form == "csr" else 0
    linear = case.params.get("kernel") == "linear"
    model = 0.0 if linear else layout_bytes(case, size, answer["n_sv"])
    fine = peak <= allowed and answer["predict"] <= ALLOWED * model + SCRATCH
    name = f"{case.dtype} {case.form} {case.label}"
    cells = [
        round(size / MEGA),
        case.dtype,
        case.form,
        case.label,
        answer["n_sv"],
        round(held / MEGA, 1),
        round(peak / MEGA, 1),
        None if few else round(peak / held, 3),
        round((peak - held) / rows),
        round(answer["kept"] / MEGA, 1),
        round(answer["predict"] / MEGA, 1),
        round(answer["seconds"], 1),
    ]
    return cells, None if fine else name


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="of the matrices, in 10**6 bytes")
    parser.add_argument("--scratch", type=Path, help="where the matrices are written for a while")
    options = parser.parse_args(argv)
    if not Path("/proc/self/status").exists():
        raise Absent("this system tells no RssAnon in /proc/self/status")
    sizes = QUICK_SIZES if options.quick else SIZES
    if options.sizes:
        sizes = tuple(size * MEGA for size in options.sizes)
    cases = [CASES[k] for k in QUICK] if options.quick else list(CASES)
    columns = (
        *("X, MB", "type", "form", "machine", "nSV", "held, MB", "peak, MB", "peak / held"),
        *("beyond, bytes per row", "kept, MB", "predict, MB", "seconds"),
    )
    table = Table("Anonymous memory of a fit on a mapped matrix", columns)
    beyond = []
    for size in sizes:
        for form in ("C", "F", "apart", "csr", "wide"):
            with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
                for case in [case for case in cases if case.form == form]:
                    cells, wrong = judged(case, size, measure(Path(folder), case, size))
                    note("  ".join(map(str, cells)))
                    table.rows.append(cells)
                    beyond += [] if wrong is None else [f"{size // MEGA} MB {wrong}"]
    dense = [row[7] for row in table.rows if row[7] is not None and row[2] != "csr"]
    verdicts = [
        f"peak above the cache at most {ALLOWED} times the rows that are held, or {IN_PLACE} of X "
        f"where none are: {'yes' if not beyond else 'NO, above: ' + '; '.join(beyond)}",
        f"largest peak / held of dense rows: {max(dense)}",
    ]
    print(table.text(), "\n".join(verdicts), sep="\n\n")
    if not options.quick:
        config = {"cache_size": CACHE, "max_iter": 50, "queries": QUERIES, "density": DENSITY}
        write_results(options.results, "memory", [table], config=config, verdicts=verdicts)
    return 1 if beyond else 0


if __name__ == "__main__":
    run(main)
