"""ADMM sharing: convergence, speed, and what privacy costs; the paper's Figures 1 to 3.

    python bench/admm/sharing.py [SHARED]

On a9a, split 66/57, and on a made table of 6,000 x 5,000, split 2000/2000/1000, in the place of
gisette: the objective against the optimum and the test loss by epoch, beside Gauss-Seidel and
distributed SGD; the test loss of the private modes, beside the model of all features and that of
the first party alone. Then the time of 20 rounds against general optimisers for every step, how it
grows, and the composition of 20 rounds. Exit code 1 if a bar is missed.

The public numbers of the private modes (rho, radius, bounds, rounds) were chosen with a9a in view.
With a small rho the target of a step is clipped hard: much of the noise is cut off with it, and so
is much of what less noise could tell, so that a larger epsilon need not be better there.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp

from bench.admm import sharing_pictures as pictures
from bench.admm.sharing_paper import PaperRun
from bench.common import (
    Table,
    arguments,
    load,
    note,
    read_results,
    run,
    shared_folder,
    write_results,
)

EPSILONS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
DELTA = 1e-5
ROUNDS, PRIVATE_ROUNDS = 20, 5
SEEDS = (0, 1, 2)
FASTER = 100.0
BY_13, BY_20, EIGHT = 1e-3, 2e-4, 1e-3
NEAR_LINEAR = 1.25  # the largest exponent that counts as linear
SAME = 2e-3  # how far the general optimisers' own tolerance lets weights drift in 20 rounds
SHORT, LONG = "one row protected, rho 0.003", "one row protected, rho 0.03"
COLUMN = "one column protected"
OWN = "sharing, kappa = M"
NOISY_SGD = "clipped, noisy distributed SGD (no guarantee)"


@dataclass(frozen=True)
class Problem:
    """Training and test rows, and how the columns are split."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    sizes: tuple[int, ...]
    lam: float
    data_norm: float  # public: no row of a party is longer
    radius: float  # public: to which a party's weights are kept in the mode "row"
    rate: float  # of SGD

    @property
    def test(self) -> tuple[Any, np.ndarray]:
        return self.X_test, self.y_test


def a9a(shared: Path, rows: int | None) -> Problem:
    """a9a: 8 and 6 questions with one answer each, so no row is longer than the root of 8."""
    X, y = load(shared, "a9a", rows=rows)
    X_test, y_test = load(shared, "a9a.t", rows=rows)
    X_test.resize(X_test.shape[0], 123)
    X.resize(X.shape[0], 123)
    return Problem("a9a", X, y, X_test, y_test, (66, 57), 1.0, 8**0.5, 2.0, 0.3)


def stand_in(scale: float, seed: int = 0) -> Problem:
    """In the place of gisette: 6,000 x 5,000, an eighth of the entries not 0, rows of norm 1.

    A twentieth of the columns tells the classes apart, a little each; labels are noisy.
    """
    random = np.random.default_rng(seed)
    n, held_out = int(6000 * scale), int(1000 * scale)
    sizes = tuple(int(size * scale) for size in (2000, 2000, 1000))
    d = sum(sizes)
    X = random.random((n + held_out, d), dtype=np.float64)
    X *= random.random(X.shape, dtype=np.float32) < 0.125
    truth = np.zeros(d)
    telling = random.choice(d, max(d // 20, 2), replace=False)
    truth[telling] = random.standard_normal(len(telling))
    score = X @ truth
    score = (score - score.mean()) / score.std() + 0.3 * random.standard_normal(len(score))
    y = np.where(score > 0, 1.0, -1.0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    name = f"stand-in for gisette ({n} x {d})"
    return Problem(name, X[:n], y[:n], X[n:], y[n:], sizes, 0.3, 1.0, 10.0, 5.0)


def _model(problem: Problem, **settings: Any):
    from dpsvm.admm import SharingADMMClassifier

    return SharingADMMClassifier(lam=problem.lam, **settings)


def _fit(problem: Problem, sizes: Sequence[int] | None = None, **settings: Any):
    """A tracked fit; a seed's warning is not news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _model(problem, **settings).fit(
            problem.X, problem.y, list(sizes or problem.sizes), evaluate_on=problem.test
        )


@dataclass(frozen=True)
class Convergence:
    """Objective gaps and test losses by epoch, of every method."""

    table: Table
    gaps: dict[str, list[float]]
    losses: dict[str, list[float]]
    levels: pictures.Levels
    lowest: float  # the optimum


def convergence(problem: Problem, rounds: int) -> Convergence:
    """Objective gaps and test losses by epoch, of dpsvm's and of the baselines."""
    from dpsvm.admm.sharing import Coordinator, Party, Terms
    from dpsvm.admm.sharing.agreement import Agreement
    from dpsvm.admm.sharing.baselines import SGDSettings, distributed_sgd, gauss_seidel
    from dpsvm.admm.sharing.comparison import CENTRAL, FIRST, compare
    from dpsvm.admm.sharing.history import History, Recorder
    from dpsvm.distributed.split import cut, layout_of
    from dpsvm.losses import make_prediction_loss

    note(f"{problem.name}: joint, central and first party")
    found = compare(
        _model(problem, rounds=rounds),
        problem.X,
        problem.y,
        list(problem.sizes),
        test=problem.test,
    )
    levels = pictures.Levels(found[CENTRAL].test_loss, found[FIRST].test_loss)
    lowest = found[CENTRAL].objective
    histories = {OWN: found.model.history_}
    note(f"{problem.name}: without relaxation, Jacobi, Gauss-Seidel")
    histories["without relaxation"] = _fit(problem, rounds=rounds, relaxation=1.0).history_
    histories["Jacobi, kappa = 1"] = _fit(problem, rounds=rounds, method="jacobi").history_
    agreed = Agreement.of(found.model, problem.sizes)
    layout = layout_of(problem.sizes, problem.X.shape[1])
    columns = agreed.columns(cut(problem.X, layout))
    loss = make_prediction_loss("logistic")
    terms = Terms.of(parties=len(columns), rho=found.model.rho_, lam=problem.lam, kappa=1.0)
    test = agreed.columns(cut(problem.X_test, layout))
    history = History()
    gauss_seidel(
        Coordinator(problem.y, loss, terms, rounds=rounds),
        [Party(m, own, terms) for m, own in enumerate(columns)],
        Recorder(history, (test, problem.y_test)),
    )
    histories["Gauss-Seidel"] = history
    gaps = {name: list(h["objective"] / lowest - 1) for name, h in histories.items()}
    losses = {name: list(h["test_loss"]) for name, h in histories.items()}
    note(f"{problem.name}: distributed SGD")
    for name, more in (("distributed SGD", {}), (NOISY_SGD, {"clip": 1.0, "noise": 3.0})):
        settings = SGDSettings(rate=problem.rate, **more)
        steps = list(distributed_sgd(columns, problem.y, loss, terms, rounds, settings=settings))
        gaps[name], losses[name] = _scores(steps, columns, test, problem, lowest)
    marks = [mark for mark in (5, 10, 13, 20) if mark <= rounds]
    table = Table(
        f"{problem.name}: objective above the optimum, and test loss at the end",
        ("method", *(f"round {mark}" for mark in marks), "test loss"),
    )
    for name, gap in gaps.items():
        shown = [f"{gap[mark - 1]:.1e}" if mark <= len(gap) else "diverged" for mark in marks]
        table.rows.append([name, *shown, f"{losses[name][-1]:.4f}"])
    known = {"all features": levels.central, "first party": levels.first_party}
    for name, level in (known | {"predicting 0": math.log(2.0)}).items():
        table.rows.append([name, *("-" for _ in marks), f"{level:.4f}"])
    return Convergence(table, gaps, losses, levels, lowest)


def _scores(
    steps: list[list[np.ndarray]],
    columns: list[Any],
    test: list[Any],
    problem: Problem,
    lowest: float,
) -> tuple[list[float], list[float]]:
    from dpsvm.admm.sharing.columns import predicted

    gaps, losses = [], []
    for weights in steps:
        z = predicted(columns, weights)
        penalty = problem.lam / 2 * sum(x @ x for x in weights)
        gaps.append((np.logaddexp(0, -problem.y * z).sum() + penalty) / lowest - 1)
        z = predicted(test, weights)
        losses.append(np.logaddexp(0, -problem.y_test * z).mean())
    return gaps, losses


@dataclass(frozen=True)
class Cost:
    """Test losses of the joint model under privacy."""

    table: Table
    curves: dict[str, list[float]]  # by round, of LONG
    ends: dict[str, list[float]]  # after the last round, by epsilon


def private(
    problem: Problem, levels: pictures.Levels, epsilons: Sequence[float], seeds: Sequence[int]
) -> Cost:
    """Row privacy with a short and a long step, and column privacy; all bounds are public."""
    row = {"privacy": "row", "data_norm": problem.data_norm, "target_bound": 3.0}
    settings = {
        SHORT: row | {"radius": problem.radius, "rho": 0.003},
        LONG: row | {"radius": 1.5 * problem.radius, "rho": 0.03},
        COLUMN: {"privacy": "column", "rho": 0.01, "target_norm": 100.0}
        | {"column_norm": len(problem.y) ** 0.5},  # no entry is above 1
    }
    table = Table(
        f"{problem.name}: test loss of the joint model under privacy, {PRIVATE_ROUNDS} rounds",
        ("mode", "epsilon", "whole record", "noise", "test loss", "beats the first party"),
    )
    curves: dict[str, list[float]] = {}
    ends: dict[str, list[float]] = {name: [] for name in settings}
    for name, epsilon in itertools.product(settings, epsilons):
        note(f"{problem.name}: {name}, epsilon {epsilon:g}")
        public = settings[name] | {"rounds": PRIVATE_ROUNDS, "epsilon": epsilon, "delta": DELTA}
        fits = [_fit(problem, random_state=seed, **public) for seed in seeds]
        losses = np.mean([fit.history_["test_loss"] for fit in fits], axis=0)
        report = fits[0].privacy_report_
        scale, whole = report["noise_scales"][0], report.get("whole_record")
        ends[name].append(float(losses[-1]))
        if name == LONG:
            curves[f"epsilon = {epsilon:g}, noise {scale:.3g}"] = list(losses)
        better = "yes" if losses[-1] < levels.first_party else "no"
        shown = "-" if whole is None else f"{whole:.3g}"
        table.rows.append([name, epsilon, shown, f"{scale:.3g}", f"{losses[-1]:.4f}", better])
    return Cost(table, curves, ends)


def _seconds(work: Callable[[], object], clock: Callable[[], float], repeats: int = 3) -> float:
    taken = []
    for _ in range(repeats):
        begun = clock()
        work()
        taken.append(clock() - begun)
    return min(taken)


def speed(problem: Problem, rounds: int) -> tuple[Table, float, float]:
    """The time of some rounds beside general optimisers, the factor and how far weights differ."""
    own = _model(problem, rounds=rounds, relaxation=1.0, track=False)

    def fit() -> None:
        own.fit(problem.X, problem.y, list(problem.sizes))

    ours = _seconds(fit, time.perf_counter)
    note(f"{problem.name}: {rounds} rounds with general optimisers")
    cuts = np.cumsum((0, *problem.sizes))
    by_column = sp.csc_matrix(problem.X)
    blocks = [sp.csr_matrix(by_column[:, a:b]) for a, b in itertools.pairwise(cuts)]
    paper = PaperRun(blocks, problem.y, own.rho_, problem.lam)
    begun = time.perf_counter()
    weights = paper.run(rounds)
    theirs = time.perf_counter() - begun
    table = Table(
        f"{problem.name}: seconds of {rounds} rounds",
        ("", "seconds", "x steps", "z steps", "times as long"),
    )
    table.rows.append(["dpsvm, factorisation included", f"{ours:.3f}", "-", "-", 1])
    table.rows.append(
        [
            "L-BFGS-B and a scalar minimisation per sample",
            f"{theirs:.1f}",
            f"{paper.seconds['x']:.1f}",
            f"{paper.seconds['z']:.1f}",
            f"{theirs / ours:.0f}",
        ]
    )
    return table, theirs / ours, float(np.abs(weights - own.coef_.ravel()).max())


def growth(quick: bool) -> tuple[Table, dict[str, float]]:
    """Processor seconds a round against N and against M, and the exponents."""
    from dpsvm.admm import SharingADMMClassifier

    random = np.random.default_rng(0)
    unit = 1000 if quick else 20_000

    def seconds(n: int, parties: int) -> float:
        blocks = [sp.random(n, 60, 0.1, "csr", random_state=m) for m in range(parties)]
        y = np.where(random.random(n) < 0.5, 1.0, -1.0)
        model = SharingADMMClassifier(rounds=20, track=False)
        return _seconds(lambda: model.fit(blocks, y), time.process_time, repeats=5) / 20

    table = Table("Processor seconds a round", ("N", "M", "seconds"))
    exponents = {}
    series = {"N": [(unit * k, 2) for k in (1, 2, 4, 8)], "M": [(unit, m) for m in (4, 8, 16, 32)]}
    for name, points in series.items():
        note(f"growth with {name}")
        taken = [seconds(*point) for point in points]
        table.rows += [[n, m, f"{value:.5f}"] for (n, m), value in zip(points, taken, strict=True)]
        sizes = [point[0 if name == "N" else 1] for point in points]
        exponents[name] = float(np.polyfit(np.log(sizes), np.log(taken), 1)[0])
    return table, exponents


def composition() -> Table:
    """Twenty rounds at (1, 1e-6) each, added up in four ways."""
    from dpsvm.admm.sharing.privacy import composition_table

    found = composition_table(20, 1.0, 1e-6)
    table = Table(
        "Twenty rounds at epsilon 1, delta 1e-6 each, noise sqrt(2 log(1.25/delta))",
        ("rule", "epsilon", "total delta"),
    )
    for rule in ("corollary 1", "basic", "renyi", "tight"):
        total = 2e-5 if rule == "basic" else found["delta"]
        table.rows.append([rule, f"{found[rule]:.4g}", f"{total:.3g}"])
    return table


@dataclass(frozen=True)
class Bar:
    """Something that has to hold, and what was found."""

    line: str
    holds: bool

    def __str__(self) -> str:
        return f"{self.line}: {'yes' if self.holds else 'NO'}"


def convergence_bars(problem: Problem, gaps: Sequence[float], lowest: float) -> list[Bar]:
    """The default settings against the optimum they never saw."""
    eight = _fit(problem, [16] * 7 + [11], rounds=60).history_["objective"] / lowest - 1
    return [
        Bar(
            f"a9a, default settings: {gaps[12]:.1e} by round 13, below {BY_13:g}", gaps[12] < BY_13
        ),
        Bar(
            f"a9a, default settings: {gaps[19]:.1e} by round 20, below {BY_20:g}", gaps[19] < BY_20
        ),
        Bar(f"a9a, eight parties: {eight[-1]:.1e} by round 60, below {EIGHT:g}", eight[-1] < EIGHT),
    ]


def speed_bars(factor: float, apart: float, exponents: dict[str, float]) -> list[Bar]:
    """Faster, the same weights, and linear growth."""
    line = f"20 rounds {factor:.0f} times faster than general optimisers, at least {FASTER:g}"
    return [
        Bar(line, factor >= FASTER),
        Bar(f"the weights of both differ by {apart:.1e}, at most {SAME:g}", apart <= SAME),
        *(
            Bar(
                f"time grows with {name} to the power {power:.2f}, at most {NEAR_LINEAR:g}",
                power <= NEAR_LINEAR,
            )
            for name, power in exponents.items()
        ),
    ]


def kept(
    problem: Problem, found: Convergence, cost: Cost, epsilons: Sequence[float]
) -> dict[str, Any]:
    """What the three pictures of a problem are drawn from, in plain values."""
    return {
        "name": f"{problem.name}, split {'/'.join(map(str, problem.sizes))}",
        "mode": f"{LONG}, delta {DELTA:g}",
        "after": f"after {PRIVATE_ROUNDS} rounds, delta {DELTA:g}",
        "levels": asdict(found.levels),
        "gaps": {name: list(map(float, gaps)) for name, gaps in found.gaps.items()},
        "losses": {name: list(map(float, losses)) for name, losses in found.losses.items()},
        "noise": {name: list(map(float, losses)) for name, losses in cost.curves.items()},
        "epsilons": list(epsilons),
        "ends": cost.ends,
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--redraw", action="store_true", help="draw what results/ holds")
    options = parser.parse_args(argv)
    if options.redraw:
        pictures.draw(options.results, read_results(options.results, "sharing")["pictures"])
        return 0
    quick = options.quick
    shared = shared_folder(options.shared)
    real, made = a9a(shared, 1500 if quick else None), stand_in(0.05 if quick else 1.0)
    epsilons, seeds = (EPSILONS[:2], SEEDS[:1]) if quick else (EPSILONS, SEEDS)
    tables: list[Table] = []
    bars: list[Bar] = []
    remarks: list[str] = []
    drawn: dict[str, Any] = {}
    for problem, stem, rounds in ((real, "a9a", ROUNDS), (made, "gisette", 50)):
        found = convergence(problem, rounds)
        cost = private(problem, found.levels, epsilons, seeds if problem is real else seeds[:1])
        tables += [found.table, cost.table]
        won = [row[1] for row in cost.table.rows if row[0] != COLUMN and row[-1] == "yes"]
        least = f"from epsilon {min(won):g} on" if won else "at no epsilon tried"
        remarks.append(f"{problem.name}: a row-private joint model beats the first party {least}")
        if problem is real:
            bars += convergence_bars(problem, found.gaps[OWN], found.lowest)
        drawn[stem] = kept(problem, found, cost, epsilons)
    table, factor, apart = speed(real, 2 if quick else ROUNDS)
    grown, exponents = growth(quick)
    tables += [table, grown, composition()]
    bars += speed_bars(factor, apart, exponents)
    verdicts = [*map(str, bars), *remarks]
    print(*(table.text() for table in tables), *verdicts, sep="\n")
    if quick:  # small problems say nothing of the bars, but the weights are the same there too
        return 0 if apart <= SAME else 1
    config = {"delta": DELTA, "seeds on a9a": len(SEEDS), "target bound": 3}
    write_results(
        options.results, "sharing", tables, config=config, verdicts=verdicts, pictures=drawn
    )
    pictures.draw(options.results, drawn)
    return 0 if all(bar.holds for bar in bars) else 1


if __name__ == "__main__":
    run(main)
