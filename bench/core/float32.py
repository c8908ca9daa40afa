"""float32 against float64 on the same numbers, and the same bits whatever shares the work.

    python bench/core/float32.py

1. Rows are drawn, rounded to float32, and given as they are and as float64: a cloud of standard
   deviation 1 at several offsets, two such clusters at several distances, and a cloud with one row
   at 1e6; five machines with the rbf kernel, dense and CSR, both fitted to tol 1e-6. Objectives
   must be within 1e-6 of each other (relative), decision values within 1e-4 of their range, and
   float32 may take 1.5 times as many iterations. All fits end at MAX_ITER iterations at the latest;
   where one did, the table says so, and the bars are the same. A case that both refuse with the
   same words counts as alike.
2. Fits with other numbers of threads and other caches, and predictions of rows alone and in
   batches, must have the same bits: in float32 and float64, dense, CSR, far from the origin, and
   zeros and ones.

Exit code 1 if a bar is missed or a bit differs.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp

from bench.common import Table, arguments, note, run, write_results
from bench.speed.adapters import Solution
from bench.speed.objective import dual_objective
from bench.speed.workloads import Problem

COLUMNS = 3
OFFSETS = (0.0, 1e1, 1e2, 1e3, 1e4, 1e5)
DISTANCES = (1e2, 1e3, 1e4, 1e5)
OUTLIER = 1e6
SIZES = (200, 5000)
ASKED = 1000  # rows predicted, half of them not fitted
MACHINES: Mapping[str, dict[str, float]] = {
    "SVC": {"C": 1.0},
    "NuSVC": {"nu": 0.4},
    "SVR": {"C": 1.0, "epsilon": 0.1},
    "NuSVR": {"C": 1.0, "nu": 0.5},
    "OneClassSVM": {"nu": 0.1},
}
TOL, MAX_ITER = 1e-6, 200_000
OBJECTIVE, DECISION, ITERATIONS = 1e-6, 1e-4, 1.5

THREADS = (1, 2, 3, 8)
BATCHES = (1, 2, 3, 5, 8, 16, 17, 63, 64, 65, 100, 333, 999, 1000)
FIT_ROWS = 1500


@dataclass(frozen=True)
class Case:
    """One problem in both precisions."""

    data: str
    gamma: str | float
    machine: str
    layout: str
    rows: int


@dataclass(frozen=True)
class Compared:
    """What two fits of the same numbers tell; ``refused`` if there were none."""

    objective: float = 0.0
    decision: float = 0.0
    iterations: tuple[int, int] = (0, 0)
    guarded: str = ""
    refused: str = ""

    @property
    def ratio(self) -> float:
        return self.iterations[0] / max(self.iterations[1], 1)

    def row(self, case: Case) -> list[object]:
        about = [case.data, str(case.gamma)[:6], case.machine, case.layout, case.rows]
        if self.refused:
            return [*about, None, None, None, None, self.refused]
        return [*about, self.objective, self.decision, *self.iterations, self.guarded]


def cases(quick: bool) -> Iterator[Case]:
    """Every case, or a few small ones."""
    clouds = [f"offset {far:g}" for far in OFFSETS] + [f"clusters {far:g}" for far in DISTANCES]
    pairs = [(data, gamma) for data in clouds for gamma in ("scale", 1 / COLUMNS)]
    pairs.append((f"one row at {OUTLIER:g}", "scale"))
    if quick:
        pairs = [pairs[0], pairs[1], pairs[6], pairs[15], pairs[-1]]
    for rows in SIZES[:1] if quick else SIZES:
        for data, gamma in pairs:
            for machine in MACHINES:
                for layout in ("dense", "CSR"):
                    yield Case(data, gamma, machine, layout, rows)


def draw(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a case in float32, their targets, and the rows asked about."""
    rng = np.random.default_rng(case.rows)
    cloud = rng.normal(size=(case.rows + ASKED // 2, COLUMNS))
    targets = np.sin(2 * cloud[:, 0]) + cloud[:, 1] * cloud[:, 2] / 2
    targets += rng.normal(scale=0.3, size=len(cloud))
    if case.machine in ("SVC", "NuSVC"):
        targets = np.where(targets > 0, 1.0, -1.0)
    kind, _, far = case.data.rpartition(" ")
    if kind == "offset":
        cloud += float(far)
    elif kind == "clusters":
        cloud[rng.random(len(cloud)) < 0.5] += float(far) / np.sqrt(COLUMNS)
    else:
        cloud[0] = float(far)
    rows = cloud.astype(np.float32)
    return rows[: case.rows], targets[: case.rows], rows[-ASKED:]


def lay(rows: np.ndarray, layout: str) -> Any:
    return sp.csr_array(rows) if layout == "CSR" else rows


def fitted(X: Any, y: np.ndarray, machine: str, **settings: Any) -> Any:
    """A fitted machine, or what it said instead."""
    import dpsvm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the guard, which the table tells
        try:
            return getattr(dpsvm, machine)(**MACHINES[machine], **settings).fit(X, y)
        except ValueError as error:
            return str(error)


def coefficients(model: Any) -> np.ndarray:
    coef = model.dual_coef_
    return coef.toarray() if sp.issparse(coef) else coef


def objective(model: Any, case: Case, rows: np.ndarray, y: np.ndarray, gamma: float) -> float:
    """Worked out afresh about the rows' mean; a nu machine, whose dual is rescaled, tells its own.

    Kernel values of the nu machines are always in double precision.
    """
    if case.machine.startswith("Nu"):
        return float(model.objective_)
    params = MACHINES[case.machine] | {"kernel": "rbf", "gamma": gamma}
    problem = Problem(rows - rows.mean(axis=0), y, case.machine, params)
    solution = Solution(model.support_, coefficients(model), model.n_support_, None)
    return dual_objective(problem, solution)


def compare(case: Case) -> Compared:
    """Both precisions on the same numbers."""
    from dpsvm.rows import scale_gamma

    rows, y, asked = draw(case)
    doubles = rows.astype(np.float64)
    gamma = scale_gamma(doubles) if case.gamma == "scale" else float(case.gamma)
    settings = {"gamma": case.gamma, "tol": TOL, "max_iter": MAX_ITER, "n_jobs": 1}
    models = [fitted(lay(X, case.layout), y, case.machine, **settings) for X in (rows, doubles)]
    if any(isinstance(model, str) for model in models):
        one, other = models
        return Compared(refused="refused alike" if one == other else "NOT REFUSED ALIKE")
    values = [
        model.decision_function(lay(X, case.layout))
        if hasattr(model, "decision_function")
        else model.predict(lay(X, case.layout))
        for model, X in zip(models, (asked, asked.astype(np.float64)), strict=True)
    ]
    single, double = (objective(model, case, doubles, y, gamma) for model in models)
    spread = float(np.abs(values[0] - values[1]).max())
    at_guard = [np.any(np.asarray(model.stop_reason_) == "max_iter") for model in models]
    return Compared(
        objective=_relative(abs(single - double), abs(double)),
        decision=_relative(spread, float(np.ptp(values[1]))),
        iterations=tuple(int(np.sum(model.n_iter_)) for model in models),
        guarded={(True, True): "both", (True, False): "float32", (False, True): "float64"}.get(
            tuple(map(bool, at_guard)), ""
        ),
    )


def _relative(difference: float, size: float) -> float:
    if difference == 0:
        return 0.0
    return difference / size if size else float("inf")


def precision_part(quick: bool) -> tuple[Table, list[str], bool]:
    """The table of all cases, the verdicts, and whether they are all met."""
    columns = ("data", "gamma", "machine", "layout", "rows", "objective", "decision values")
    columns += ("float32 iterations", "float64 iterations", "ended by the guard")
    table = Table("float32 against float64 on the same numbers", columns)
    found: list[tuple[Case, Compared]] = []
    for case in cases(quick):
        found.append((case, compare(case)))
        table.rows.append(found[-1][1].row(case))
        note(f"{len(found)}: {case}")
    refused = [one.refused for _, one in found if one.refused]
    judged = [(case, one) for case, one in found if not one.refused]
    bars = (
        (f"objective within {OBJECTIVE:g}", lambda one: one.objective <= OBJECTIVE),
        (
            f"decision values within {DECISION:g} of their range",
            lambda one: one.decision <= DECISION,
        ),
        (f"iterations at most {ITERATIONS:g} times", lambda one: one.ratio <= ITERATIONS),
    )
    lines, met = [], True
    for bar, holds in bars:
        good = sum(holds(one) for _, one in judged)
        met &= good == len(judged)
        lines.append(f"{bar}: {_yes(good == len(judged))}, {good} of {len(judged)}")
    unlike = refused.count("NOT REFUSED ALIKE")
    lines.append(f"refused alike: {_yes(not unlike)}, {len(refused) - unlike} of {len(refused)}")
    guarded = [case for case, one in judged if one.guarded]
    machines = ", ".join(name for name in MACHINES if any(name == c.machine for c in guarded))
    stopped = f"ended by the guard of {MAX_ITER:,} iterations: {len(guarded)} of {len(judged)}"
    lines.append(f"{stopped}{f' ({machines})' if machines else ''}")
    return table, lines, met and not unlike


def bit_problems(quick: bool) -> Iterator[tuple[str, Any, np.ndarray, Any]]:
    """Names, rows in float64, targets, and the rows asked about, some of them far away."""
    rng = np.random.default_rng(0)
    rows = 300 if quick else FIT_ROWS
    count = rows + (100 if quick else ASKED)
    dense = rng.normal(size=(count, 20)).astype(np.float32).astype(np.float64)
    thin = np.where(rng.random((count, 60)) < 0.2, rng.normal(size=(count, 60)), 0)
    thin = thin.astype(np.float32).astype(np.float64)
    bits = (rng.random((count, 80)) < 0.2).astype(np.float64)
    for X in (dense, thin):
        X[rows::10] *= 1000
    y = np.where(rng.random(count) < 0.15, -1, 1) * np.sign(dense[:, 0] + thin[:, 0] - bits[:, 0])
    y[y == 0] = 1
    for name, X in (("dense", dense), ("dense, 1e4 away", dense + 1e4), ("zeros and ones", bits)):
        yield name, X[:rows], y[:rows], X[rows:]
    for name, X in (("CSR", thin), ("CSR, zeros and ones", bits)):
        X = sp.csr_array(X)
        yield name, X[:rows], y[:rows], X[rows:]


def answers(model: Any, asked: Any, batch: int) -> bytes:
    """The bits of all decision values, predicted so many rows at a time."""
    ask = getattr(model, "decision_function", model.predict)
    parts = [ask(asked[k : k + batch]) for k in range(0, asked.shape[0], batch)]
    return np.concatenate(parts).tobytes()


def bits_part(quick: bool) -> tuple[Table, list[str], bool]:
    """The table of all problems, the verdict, and whether every one has one set of bits."""
    table = Table(
        "The same bits", ("data", "dtype", "machine", "kernel", "fits", "predictions", "sets")
    )
    kinds = [(machine, "rbf") for machine in MACHINES]
    kinds += [("SVC", "linear"), ("SVC", "poly"), ("SVC", "sigmoid")]
    for name, X, y, asked in bit_problems(quick):
        for dtype in (np.float32, np.float64):
            rows, questions = X.astype(dtype), asked.astype(dtype)
            for machine, kernel in kinds[:1] if quick else kinds:
                row = [name, np.dtype(dtype).name, machine, kernel]
                row += one_set(rows, y, questions, machine, kernel)
                table.rows.append(row)
                note(" ".join(map(str, row)))
    good = sum(row[-1] == 1 for row in table.rows)
    told = f"threads, caches and batches change no bit: {_yes(good == len(table.rows))}"
    return table, [f"{told}, {good} of {len(table.rows)}"], good == len(table.rows)


def one_set(rows: Any, y: np.ndarray, asked: Any, machine: str, kernel: str) -> list[object]:
    """How many fits and predictions were made, and how many sets of bits came out."""
    n = rows.shape[0]
    caches = [kept * n * rows.dtype.itemsize / 2**20 for kept in (3, n // 20, n)]
    fits, sets = 0, set()
    model = None
    for cache in caches:
        for threads in THREADS:
            settings = {"kernel": kernel, "cache_size": cache, "n_jobs": threads}
            model = fitted(rows, y, machine, **settings, max_iter=20 * n)
            known = (model.support_, coefficients(model), model.intercept_, model.n_iter_)
            bits = b"".join(np.asarray(part).tobytes() for part in known)
            sets.add(bits + answers(model, asked, asked.shape[0]))
            fits += 1
    batches = [batch for batch in BATCHES if batch <= asked.shape[0]]
    for threads in THREADS[:2]:
        model.set_params(n_jobs=threads)
        sets |= {bits + answers(model, asked, batch) for batch in batches}
    return [fits, fits + 2 * len(batches), len(sets)]


def _yes(good: bool) -> str:
    return "yes" if good else "NO"


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    compared, verdicts, met = precision_part(options.quick)
    print(compared.text(), end="\n\n", flush=True)
    bits, told, same = bits_part(options.quick)
    print(bits.text(), end="\n\n")
    verdicts += told
    print("\n".join(verdicts))
    if not options.quick:
        config = {"tol": TOL, "max_iter": MAX_ITER, "threads": THREADS, "batches": BATCHES}
        tables = [compared, bits]
        write_results(options.results, "float32", tables, config=config, verdicts=verdicts)
    return 0 if met and same else 1


if __name__ == "__main__":
    run(main)
