"""The time of Frank-Wolfe beside recomputed gradients, copt and scikit-learn's Lasso.

    python bench/frank_wolfe/speed.py SHARED      # one run on reuters, and its memory as JSON

The radius is the l1 norm of Lasso's solution, to 1e-10 of its own tolerance, so that all solve one
problem. A relative gap is (f(x) - f*) / f(0) of a point in the ball: Lasso's own, outside of it at
a loose tolerance, is scaled back first. One thread; everyone in turns; medians. Frank-Wolfe methods
are timed from the data until a point within the gap is known, Lasso at the loosest tolerance, of
1, 1e-1, .., 1e-8, that ends within it: to find that takes time of its own, which is not counted.

How much kept Gram columns gain depends on how many distinct atoms there are, so problems with 20,
50 and 100 telling columns are measured.
"""

from __future__ import annotations

import contextlib
import io
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from bench.common import (
    MEGABYTE,
    Absent,
    Table,
    child_environment,
    forget_peak,
    load,
    memory,
    note,
    shared_folder,
    version_of,
)
from bench.frank_wolfe.parts import Part, value
from bench.lock import holding

FASTER, STEPS, REPEATS = 30.0, 1000, 5
GAPS = (1e-3, 1e-4)
TOLERANCES = tuple(10.0**-k for k in range(9))
SHARE = 0.1  # of what the dense matrix would take: the most memory a sparse run may

Trace = list[tuple[float, float]]  # seconds since the start and f, step by step


@dataclass(frozen=True)
class Problem:
    """|A x - y|^2 / (2 n) over the ball that holds Lasso's solution."""

    name: str
    A: Any
    y: np.ndarray
    alpha: float  # of Lasso
    radius: float
    least: float  # f*

    def gap(self, found: float) -> float:
        """(f - f*) / f(0)."""
        return (found - self.least) / (float(self.y @ self.y) / (2.0 * len(self.y)))

    def within(self, x: np.ndarray) -> float:
        """The gap of a point, scaled back to the ball."""
        size = max(float(np.abs(x).sum()), 1e-300)
        return self.gap(value(self.A, self.y, x * min(1.0, self.radius / size)))


def problem(name: str, A: Any, y: np.ndarray, alpha: float) -> Problem:
    """Of data and Lasso's alpha."""
    found = _lasso(A, y, alpha, 1e-10)
    return Problem(name, A, y, alpha, float(np.abs(found).sum()), value(A, y, found))


def dense(n: int, d: int, telling: int = 20) -> Problem:
    """Gaussian columns, some of which tell y."""
    rng = np.random.default_rng(0)
    A = np.asfortranarray(rng.standard_normal((n, d)))
    x = np.zeros(d)
    x[rng.choice(d, telling, replace=False)] = rng.standard_normal(telling)
    name = f"made, {n} x {d}, {telling} tell"
    return problem(name, A, A @ x + 0.5 * rng.standard_normal(n), 0.1)


def reuters(shared: Path, rows: int | None = None) -> Problem:
    """Text, a class against the rest, no intercept; alpha is a tenth of what leaves no weight."""
    X, y = load(shared, "reuters", rows=rows)
    A = sp.csc_matrix(X)
    alpha = 0.1 * float(np.abs(A.T @ y).max()) / len(y)
    return problem(f"reuters, {A.shape[0]} x {A.shape[1]}", A, y, alpha)


def _lasso(A: Any, y: np.ndarray, alpha: float, tol: float) -> np.ndarray:
    from sklearn.linear_model import Lasso

    model = Lasso(alpha=alpha, fit_intercept=False, tol=tol, max_iter=100_000)
    return np.asarray(model.fit(A, y).coef_)


def minimiser(given: Problem) -> np.ndarray:
    """Lasso's solution."""
    return _lasso(given.A, given.y, given.alpha, 1e-10)


def kept(given: Problem, points: np.ndarray | None = None) -> None:
    """1,000 steps of dpsvm, Gram columns kept."""
    from dpsvm.frank_wolfe import LeastSquares

    _steps(LeastSquares(given.A, given.y), given, points)


def recomputed(given: Problem, points: np.ndarray | None = None) -> None:
    """The same with A'(A x - y) / n anew each time; f, which no step needs, is not worked out."""
    from dpsvm.frank_wolfe import Function

    A, y, n = given.A, given.y, len(given.y)
    _steps(Function(lambda x: 0.0, lambda x: A.T @ (A @ x - y) / n), given, points)


def _steps(f: Any, given: Problem, points: np.ndarray | None) -> None:
    from dpsvm.frank_wolfe import L1Ball, minimize

    def keep(record: Any, x: np.ndarray) -> None:
        if points is not None:
            points[record.iteration] = x

    ball = L1Ball(given.A.shape[1], given.radius)
    minimize(f, ball, max_iter=STEPS, callback=keep)


def gram(given: Problem, repeats: int, lock: Path | None) -> Part:
    """Kept Gram columns against recomputed gradients: how much faster, and how far apart."""
    kept(replace(given, A=given.A[:9], y=given.y[:9]))  # libraries
    points = {way: np.empty((STEPS + 1, given.A.shape[1])) for way in (kept, recomputed)}
    taken: dict[Any, list[float]] = {way: [] for way in points}
    with holding(lock):
        for turn in range(repeats):
            for way, places in points.items():
                taken[way].append(_seconds(partial(way, given, places if turn == 0 else None)))
                note(f"{given.name}: {way.__name__} {turn + 1}/{repeats}: {taken[way][-1]:.3f} s")
    apart = float(np.abs(points[kept] - points[recomputed]).max())
    medians = {way: statistics.median(times) for way, times in taken.items()}
    factor = medians[recomputed] / medians[kept]
    table = Table(
        f"{given.name}: seconds of {STEPS} steps 2/(t+2), median (range) of {repeats}",
        ("gradient", "seconds", "times as long"),
    )
    for way, name in ((kept, "Gram columns kept"), (recomputed, "A'(A x - y)/n anew")):
        ends = f"({min(taken[way]):.3f} to {max(taken[way]):.3f})"
        cells = [f"{medians[way]:.3f} {ends}", f"{medians[way] / medians[kept]:.1f}"]
        table.rows.append([name, *cells])
    line = f"{given.name}, {STEPS} steps: keeping Gram columns is {factor:.0f} times faster than "
    line += f"recomputing, at least {FASTER:g}"
    same = f"the {STEPS + 1} iterates of both differ by {apart:g}, at most 0"
    return Part([table], [(line, factor >= FASTER), (same, apart == 0.0)])


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def own(given: Problem, step: str, steps: int) -> Trace:
    """dpsvm until the smallest gap, or for so many steps."""
    from dpsvm.frank_wolfe import L1Ball, LeastSquares, minimize

    trace: Trace = []
    begun = time.perf_counter()

    def look(record: Any, x: np.ndarray) -> bool:
        trace.append((time.perf_counter() - begun, record.value))
        return given.gap(record.value) <= GAPS[-1]

    f, ball = LeastSquares(given.A, given.y), L1Ball(given.A.shape[1], given.radius)
    minimize(f, ball, step=step, max_iter=steps, callback=look)
    return trace


def copt(given: Problem, step: str, steps: int, lipschitz: float | None = None) -> Trace:
    """copt likewise."""
    from copt.constraint import L1Ball
    from copt.frank_wolfe import minimize_frank_wolfe
    from copt.loss import SquareLoss

    trace: Trace = []
    begun = time.perf_counter()

    def look(state: dict[str, Any]) -> bool:
        if not trace or given.gap(trace[-1][1]) > GAPS[-1]:  # it calls once more at the end
            trace.append((time.perf_counter() - begun, float(state["f_t"])))
        return given.gap(trace[-1][1]) > GAPS[-1]

    with contextlib.redirect_stdout(io.StringIO()):  # it prints what it estimates
        minimize_frank_wolfe(
            SquareLoss(given.A, given.y).f_grad,
            np.zeros(given.A.shape[1]),
            L1Ball(given.radius).lmo,
            jac=True,
            step=step,
            lipschitz=lipschitz,
            max_iter=steps,
            tol=0.0,
            callback=look,
        )
    return trace


def lipschitz_of(A: Any) -> float:
    """The largest eigenvalue of A'A / n, which step="DR" has to be told; not timed."""
    largest = sp.linalg.svds(A, k=1, return_singular_vectors=False, random_state=0)[0]
    return float(largest) ** 2 / A.shape[0]


def race(given: Problem, steps: int, repeats: int, lock: Path | None) -> Table:
    """Seconds until each gap, of everyone in turns."""
    runners: dict[str, Callable[[], Trace]] = {
        "dpsvm, pairwise": partial(own, given, "pairwise", steps),
        "dpsvm, 2/(t+2)": partial(own, given, "diminishing", steps),
        "dpsvm, line search": partial(own, given, "line-search", steps),
        "copt, sublinear": partial(copt, given, "sublinear", steps, 1.0),
        "copt, DR": partial(copt, given, "DR", steps, lipschitz_of(given.A)),
        "copt, backtracking": partial(copt, given, "backtracking", steps),
    }
    with holding(lock):
        tolerances = {gap: _tolerance(given, gap) for gap in GAPS}
    traces: dict[str, list[Trace]] = {name: [] for name in runners}
    lasso: dict[float, list[float]] = {tol: [] for tol in tolerances.values()}
    for turn in range(repeats):
        note(f"{given.name}: dpsvm, copt and Lasso {turn + 1}/{repeats}")
        with holding(lock):
            for name, runner in runners.items():
                traces[name].append(runner())
            for tol, known in lasso.items():
                fit = partial(_lasso, given.A, given.y, given.alpha, tol)
                fit()  # the first after the others takes up to five times as long
                known.append(_seconds(fit))
    table = Table(
        f"{given.name}: seconds until a relative gap, at most {steps} steps, median of {repeats}; "
        f"radius {given.radius:.4g}, f* {given.least:.4g}",
        ("method", *(f"to {gap:g}" for gap in GAPS), "steps", "last gap", "ms a step"),
    )
    for name, runs in traces.items():
        cells = [_until(given, runs, gap) for gap in GAPS]
        each = statistics.median(1000 * run[-1][0] / len(run) for run in runs)
        last = f"{given.gap(runs[0][-1][1]):.1e}"
        table.rows.append([name, *cells, len(runs[0]) - 1, last, f"{each:.3f}"])
    shown = [
        f"{statistics.median(lasso[tolerances[gap]]):.4f} (tol {tolerances[gap]:g})" for gap in GAPS
    ]
    last = f"{given.within(_lasso(given.A, given.y, given.alpha, tolerances[GAPS[-1]])):.1e}"
    table.rows.append(["scikit-learn's Lasso", *shown, "-", last, "-"])
    return table


def _until(given: Problem, runs: list[Trace], gap: float) -> str:
    found = [next((s for s, f in run if given.gap(f) <= gap), None) for run in runs]
    known = [seconds for seconds in found if seconds is not None]
    return f"{statistics.median(known):.4f}" if len(known) == len(runs) else "not reached"


def _tolerance(given: Problem, gap: float) -> float:
    """The loosest tolerance with which Lasso ends within a gap."""
    for tol in TOLERANCES:
        if abs(given.within(_lasso(given.A, given.y, given.alpha, tol))) <= gap:
            return tol
    raise AssertionError("no tolerance is small enough")


def child(shared: Path) -> dict[str, float]:
    """1,000 steps of each kind on reuters, and the memory they take beside the data."""
    from dpsvm.frank_wolfe import L1Ball, LeastSquares, minimize

    minimize(LeastSquares(sp.identity(9, format="csc"), np.ones(9)), L1Ball(9, 1.0), max_iter=9)
    X, y = load(shared, "reuters")
    forget_peak()
    before, begun = memory()[0], time.perf_counter()
    ball = L1Ball(X.shape[1], 22.0)
    for step in ("diminishing", "line-search", "pairwise"):
        minimize(LeastSquares(X, y), ball, step=step, max_iter=STEPS)
    return {
        "data_mb": (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / MEGABYTE,
        "dense_mb": X.shape[0] * X.shape[1] * 8 / MEGABYTE,
        "extra_mb": (memory()[1] - before) / MEGABYTE,
        "seconds": time.perf_counter() - begun,
    }


def sparse_memory(shared: Path) -> Part:
    """The same from a fresh process, judged."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), str(shared)],
        env=child_environment(OPENBLAS_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        check=True,
    )
    used: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    table = Table(
        f"reuters: resident MB of {STEPS} steps of each kind above what was resident with the data",
        ("sparse data", "dense matrix, never made", "peak", "seconds"),
    )
    names = ("data_mb", "dense_mb", "extra_mb", "seconds")
    table.rows.append([f"{used[name]:.3g}" for name in names])
    line = f"reuters is not made dense: {used['extra_mb']:.1f} MB at the peak, at most "
    line += f"{SHARE:g} of the {used['dense_mb']:.0f} MB of a dense matrix"
    return Part([table], [(line, used["extra_mb"] <= SHARE * used["dense_mb"])])


def speed(shared: Path, quick: bool, lock: Path | None = None) -> Part:
    """All of it."""
    if version_of("copt") is None:
        raise Absent("copt is not installed: it is raced here")
    size, repeats, steps = ((300, 100), 1, 100) if quick else ((4000, 2000), REPEATS, STEPS)
    made = [dense(*size, telling) for telling in ((20,) if quick else (20, 50, 100))]
    text = reuters(shared, 500 if quick else None)
    with threadpool_limits(1):
        parts = [gram(given, repeats, lock) for given in made]
        races = [race(given, steps, repeats, lock) for given in (made[0], text)]
    with holding(lock):
        room = sparse_memory(shared)
    tables = [table for part in parts for table in part.tables]
    bars = [bar for part in parts for bar in part.bars]
    return Part(tables + races + room.tables, bars + room.bars)


if __name__ == "__main__":
    print(json.dumps(child(shared_folder(sys.argv[1]))))
