"""Figures 1 to 5 of the paper on recycled ADMM, as tables and as what the pictures need."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import stats

from bench.admm.network_runs import GAMMA, Fits, Job
from bench.common import Table

EPSILON, PRIVATE_ROUNDS, GROWTH = 4.7, 20, 1.02
RHOS = (0.01, 0.22, 1.0, 5.0, 20.0)
GAMMAS = (0.0, GAMMA, 2.0, 10.0)
GROWTHS = (1.0, GROWTH, 1.05, 1.1)
LEVEL = 0.01
CENTRAL, PER_NODE = "all rows in one place", "MR-ADMM, per-node penalties"
NAMES = {"MR": "MR-ADMM", "R": "R-ADMM", "M": "M-ADMM", "": "ADMM"}
"""By increasing loss, as the paper has it."""


@dataclass(frozen=True)
class Scale:
    """How much is done: all of it, or a subset of seconds."""

    runs: int = 10
    rounds: int = 49
    private_rounds: int = PRIVATE_ROUNDS
    nodes: tuple[int, ...] = (5, 20)
    values: int | None = None  # of a figure's parameter


@dataclass
class Figure:
    """What a figure shows, and what has to hold."""

    tables: list[Table] = field(default_factory=list)
    curves: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    """By panel and name: values of shape (runs, points)."""
    points: dict[str, np.ndarray] = field(default_factory=dict)  # of each panel
    verdicts: list[tuple[str, bool]] = field(default_factory=list)


def spread(values: Any, form: str = ".4f") -> str:
    """The mean, and the range over the runs.

    >>> spread([1.0, 2.0, 3.0], ".1f")
    '2.0 (1.0 to 3.0)'
    """
    return f"{np.mean(values):{form}} ({np.min(values):{form}} to {np.max(values):{form}})"


def _series(fits: Fits, base: Job, scale: Scale, what: str) -> np.ndarray:
    """A quantity by round, of shape (runs, rounds)."""
    return np.array([fits[replace(base, run=run)][what] for run in range(scale.runs)])


def _make(fits: Fits, bases: Sequence[Job], scale: Scale, what: str) -> None:
    fits.make((replace(base, run=run) for run in range(scale.runs) for base in bases), what)


def figure_1(fits: Fits, scale: Scale) -> Figure:
    """Convergence: the gap of the objective by round, on random graphs."""
    found = Figure()
    table = Table(
        f"Figure 1: relative objective gap at round {scale.rounds}, mean (range) of "
        f"{scale.runs} runs",
        ("panel", "method", "gap", "consensus error", "data accesses"),
    )
    for nodes in scale.nodes:
        bases = {
            name: Job(0, recycle, nodes=nodes, rounds=scale.rounds)
            for name, recycle in (("R-ADMM", True), ("ADMM", False))
        }
        _curves(found, fits, bases, scale, f"(a) {nodes} nodes", table)
    forms = {"MR-ADMM": (True, "edge"), "M-ADMM": (False, "edge")}
    forms[PER_NODE] = (True, "per-node")
    bases = {
        name: Job(0, recycle, rounds=scale.rounds, paper_penalties=form)
        for name, (recycle, form) in forms.items()
    }
    _curves(found, fits, bases, scale, "(b) 5 nodes, the paper's penalties", table)
    found.tables.append(table)
    return found


def _curves(
    found: Figure, fits: Fits, bases: dict[str, Job], scale: Scale, panel: str, table: Table
) -> None:
    """The gaps of some methods in one panel, and a row of the table for each."""
    _make(fits, list(bases.values()), scale, f"figure 1 {panel}")
    found.points[panel] = np.arange(1, scale.rounds + 1)
    found.curves[panel] = {}
    for name, base in bases.items():
        gaps = found.curves[panel][name] = _series(fits, base, scale, "gap")
        apart = _series(fits, base, scale, "consensus")[:, -1]
        reads = int(_series(fits, base, scale, "accesses")[0])
        ends = spread(gaps[:, -1], ".2e")
        table.rows.append([panel, name, ends, spread(apart, ".1e"), reads])


def gap_bars(found: Figure, fits: Fits, scale: Scale, limits: dict[int, float]) -> None:
    """R-ADMM within the limits, with half of ADMM's data accesses."""
    for nodes, limit in limits.items():
        gaps = found.curves[f"(a) {nodes} nodes"]["R-ADMM"][:, -1]
        reads = [int(fits[Job(0, recycle, nodes=nodes)]["accesses"]) for recycle in (True, False)]
        line = f"{nodes} nodes: gap {spread(gaps, '.2e')} at round {scale.rounds}"
        line += f", mean at most {limit:g}, {reads[0]} data accesses for ADMM's {reads[1]}"
        half = reads[0] <= nodes * (scale.rounds + 1) / 2
        found.verdicts.append((line, bool(gaps.mean() <= limit and half)))


def figure_2(fits: Fits, scale: Scale) -> Figure:
    """The test error against lam, of R-ADMM and of all rows in one place."""
    lams = RHOS[: scale.values]
    bases = [Job(0, True, rounds=scale.rounds + 1, lam=lam, tol=1e-7) for lam in lams]
    _make(fits, bases, scale, "figure 2")
    found, panel = Figure(), "test error against lam"
    table = Table(
        f"Figure 2: test error after {scale.rounds + 1} rounds of R-ADMM, 5 nodes, mean "
        f"(range) of {scale.runs} runs",
        ("lam", "R-ADMM", CENTRAL, "gap"),
    )
    errors, best = [], []
    for base in bases:
        own = _series(fits, base, scale, "test_error")[:, -1]
        center = _series(fits, base, scale, "central")
        whole = np.array([one["test_error"] for one in center])
        gaps = _series(fits, base, scale, "gap")[:, -1]
        table.rows.append([base.lam, spread(own), spread(whole), spread(gaps, ".1e")])
        errors.append(own)
        best.append(whole)
    found.curves[panel] = {"R-ADMM": np.array(errors).T, CENTRAL: np.array(best).T}
    found.points[panel] = np.array(lams)
    found.tables.append(table)
    return found


def figure_3(fits: Fits, scale: Scale) -> Figure:
    """The gap by round for several gamma."""
    bases = {
        f"gamma = {gamma:g}": Job(0, True, rounds=scale.rounds + 1, gamma=gamma, tol=1e-7)
        for gamma in GAMMAS[: scale.values]
    }
    _make(fits, list(bases.values()), scale, "figure 3")
    found, panel = Figure(), "gap by round"
    table = Table(
        f"Figure 3: relative objective gap of R-ADMM, 5 nodes, mean (range) of {scale.runs} runs",
        ("gamma", f"at update {scale.rounds}", f"at recycled {scale.rounds + 1}"),
    )
    found.points[panel] = np.arange(1, scale.rounds + 2)
    found.curves[panel] = {}
    for name, base in bases.items():
        gaps = found.curves[panel][name] = _series(fits, base, scale, "gap")
        table.rows.append([base.gamma, spread(gaps[:, -2], ".2e"), spread(gaps[:, -1], ".2e")])
    found.tables.append(table)
    return found


def _private(growth: float, recycle: bool, scale: Scale) -> Job:
    return Job(
        0,
        recycle,
        graph="complete",
        rounds=scale.private_rounds,
        growth=growth,
        epsilon=EPSILON,
    )


def _last_update(fits: Fits, base: Job, scale: Scale, what: str) -> np.ndarray:
    """A quantity after the last update, whose weights are the model's, for each run."""
    updates = _series(fits, base, scale, "update")[0]
    return _series(fits, base, scale, what)[:, np.flatnonzero(updates)[-1]]


def figure_4(fits: Fits, scale: Scale) -> Figure:
    """What growing penalties do to the gap without privacy, and to the loss with it."""
    growths = GROWTHS[: scale.values]
    open_runs = [Job(0, True, rounds=scale.rounds, growth=q) for q in growths]
    private = {
        name: [_private(q, recycle, scale) for q in growths]
        for name, recycle in (("MR-ADMM", True), ("M-ADMM", False))
    }
    _make(fits, [*open_runs, *private["MR-ADMM"], *private["M-ADMM"]], scale, "figure 4")
    found = Figure()
    gaps = np.array([_series(fits, base, scale, "gap")[:, -1] for base in open_runs])
    losses = {
        name: np.array([_last_update(fits, base, scale, "loss") for base in bases])
        for name, bases in private.items()
    }
    table = Table(
        f"Figure 4: growth of the penalties by update, 5 nodes, mean (range) of {scale.runs} runs",
        (
            "growth",
            f"gap of MR-ADMM at round {scale.rounds}, open",
            *(f"L of {name}, epsilon {EPSILON:g}" for name in private),
        ),
    )
    for at, growth in enumerate(growths):
        cells = [spread(values[at]) for values in losses.values()]
        table.rows.append([growth, spread(gaps[at], ".2e"), *cells])
    found.points = dict.fromkeys(("gap without privacy", "loss with privacy"), np.array(growths))
    found.curves["gap without privacy"] = {"MR-ADMM": gaps.T}
    found.curves["loss with privacy"] = {name: values.T for name, values in losses.items()}
    found.tables.append(table)
    return found


def figure_5(fits: Fits, scale: Scale) -> Figure:
    """Four algorithms whose messages cost the same epsilon: loss, bound and test error."""
    bases = {
        name: _private(GROWTH if "M" in short else 1.0, "R" in short, scale)
        for short, name in NAMES.items()
    }
    _make(fits, list(bases.values()), scale, "figure 5")
    found = Figure()
    table = Table(
        f"Figure 5: 5 nodes on a complete graph, {scale.private_rounds} rounds, mean "
        f"(range) of {scale.runs} runs",
        ("method", "L", "test error", "tight bound", "paper's bound", "its condition"),
    )
    for panel, what in (("loss", "loss"), ("test error", "test_error"), ("bound", "privacy")):
        found.points[panel] = np.arange(1, scale.private_rounds + 1)
        found.curves[panel] = {
            name: _series(fits, base, scale, what) for name, base in bases.items()
        }
    for name, base in bases.items():
        one = fits[base]
        loss, error = (_last_update(fits, base, scale, what) for what in ("loss", "test_error"))
        bounds = [f"{one['tight']:.3f}", f"{one['paper']:.3f}"]
        table.rows.append([name, spread(loss), spread(error), *bounds, one["paper_condition"]])
        by_update = np.repeat(one["paper_by_update"], 2 if base.recycle else 1)
        found.curves["bound"][f"{name}, paper's"] = by_update[None, : scale.private_rounds]
    centers = _series(fits, bases["ADMM"], scale, "central")
    whole = [spread([one[what] for one in centers]) for what in ("loss", "test_error")]
    table.rows.append([f"{CENTRAL}, open", *whole, "-", "-", "-"])
    found.tables.append(table)
    return found


def _order(fits: Fits, scale: Scale, growth: float) -> list[tuple[str, str, float]]:
    """Each method, the one that should lose more, and p of a paired t test, one sided."""
    bases = {
        name: _private(growth if "M" in short else 1.0, "R" in short, scale)
        for short, name in NAMES.items()
    }
    _make(fits, list(bases.values()), scale, f"order at growth {growth:g}")
    losses = {name: _last_update(fits, base, scale, "loss") for name, base in bases.items()}
    return [
        (
            f"{lower} {losses[lower].mean():.4f}",
            f"{higher} {losses[higher].mean():.4f}",
            float(stats.ttest_rel(losses[lower], losses[higher], alternative="less").pvalue),
        )
        for lower, higher in itertools.pairwise(NAMES.values())
    ]


def order_bars(found: Figure, fits: Fits, scale: Scale) -> None:
    """MR < R < M < ADMM in mean loss, each step significant; other growths stand beside it."""
    table = Table(
        f"Order of L at epsilon {EPSILON:g} by growth: p of a paired t test, one sided, "
        f"{scale.runs} runs",
        ("growth", "lower", "higher", "p"),
    )
    for growth in GROWTHS[1 : scale.values]:
        steps = _order(fits, scale, growth)
        table.rows += [[growth, lower, higher, f"{p:.1e}"] for lower, higher, p in steps]
    found.tables.append(table)
    for lower, higher, p in _order(fits, scale, GROWTH):
        line = f"epsilon {EPSILON:g}, growth {GROWTH:g}: loss of {lower} below {higher}, p = "
        line += f"{p:.1e} at most {LEVEL:g} (paired t test, one sided, {scale.runs} runs)"
        found.verdicts.append((line, p <= LEVEL))


FIGURES: dict[int, Callable[[Fits, Scale], Figure]] = {
    1: figure_1,
    2: figure_2,
    3: figure_3,
    4: figure_4,
    5: figure_5,
}
