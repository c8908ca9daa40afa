"""What parties send, and what comes of it: counts, accuracy against uplink, and sketch errors.

Numbers up are integers and floats together, all parties and rounds. Whole columns count as n
numbers, also sparse ones. The gap is (f(x) - f*) / f(0), of the true f, also where parties and
coordinator know the sketched one alone. Problem "product" has the norms of the parts of the
minimiser for radii: then its own minimiser is the same. The known sketch errors do not say their
data, scale or number of steps: of 20, 100 and 400 steps, 20 came nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import Table, note
from bench.frank_wolfe.parts import Part, seeded, spread, uniform_data, value
from bench.frank_wolfe.speed import Problem, minimiser, reuters
from bench.lock import holding

PARTIES, DELTA = 4, 1e-5
ROUNDS = 300
SIZES = (100, 400, 1600)
MARKS = (1e-1, 1e-2, 1e-3)
SKETCH_SEEDS, SKETCH_ROUNDS = 20, 20
ERROR_OF_SPEC, EXACT_OF_SPEC = 0.002, 0.15

Curve = tuple[np.ndarray, np.ndarray]  # numbers up and gaps, round by round


@dataclass
class Uplink(Part):
    """With the curves that are drawn."""

    curves: dict[str, Curve] = field(default_factory=dict)


def columns(A: Any, parties: int) -> list[Any]:
    """Consecutive columns for each party, as equal as can be."""
    return [A[:, part] for part in np.array_split(np.arange(A.shape[1]), parties)]


def counts(quick: bool) -> Part:
    """Without a cache exactly K T integers and m K T floats; with one, what is saved."""
    from dpsvm.frank_wolfe import (
        DistributedFrankWolfe,
        PrivateDistributedFrankWolfe,
        longest_uplink,
    )

    n, d, rounds = (200, 12, 5) if quick else (2000, 40, 50)
    A, y = uniform_data(0, n, d, 0.1)
    table = Table(
        f"Uplink on {n} x {d}, {rounds} rounds",
        ("K", "problem", "m", "private", "integers", "floats", "as predicted", "sent with a cache"),
    )
    private = {"epsilon": 100.0, "delta": DELTA, "entry_bound": 1.0, "public_labels": True}
    exact, shares = [], []
    for parties, size, told in [(2, 50, ""), (4, 50, ""), (4, None, ""), (4, 50, "yes")]:
        for kind in ("l1", "product"):
            settings: dict[str, Any] = {"radius": 1.0, "problem": kind, "rounds": rounds}
            settings |= {"sketch": size, "random_state": 0} | (private if told else {})
            solver = PrivateDistributedFrankWolfe if told else DistributedFrankWolfe
            with seeded():
                sent, saved = (
                    solver(**settings, cache=cache).solve(columns(A, parties), y).traffic
                    for cache in (False, True)
                )
            exact.append(sent == longest_uplink(parties, rounds, size or n))
            shares.append(saved.up_floats / sent.up_floats)
            share = f"{saved.up_floats} floats, {shares[-1]:.0%}"
            cells = [sent.up_integers, sent.up_floats, "yes" if exact[-1] else "no", share]
            table.rows.append([parties, kind, size or f"{n} (n)", told or "no", *cells])
    line = f"uplink without cache: exactly K T integers and m K T floats in {sum(exact)} of "
    less = f"with a cache {1 - max(shares):.0%} to {1 - min(shares):.0%} of the floats are saved"
    return Part([table], [(f"{line}{len(exact)} settings", all(exact))], [less])


def methods(given: Problem, sizes: Sequence[int]) -> dict[str, dict[str, Any]]:
    """The settings of everything that proposes."""
    best = minimiser(given)
    norms = [float(np.abs(part).sum()) for part in np.array_split(best, PARTIES)]
    winner = {"send": "winner"}
    found = {}
    for size in sizes:
        found[f"sketch, m = {size}"] = {"sketch": size}
        found[f"sketch, m = {size}, no cache"] = {"sketch": size, "cache": False}
        found[f"sketch, m = {size}, winner sends"] = {"sketch": size} | winner
    found["whole columns"] = {}
    found["whole columns, no cache"] = {"cache": False}
    found["whole columns, winner sends (dFW)"] = winner
    found["whole columns, winner sends, no cache"] = {"cache": False} | winner
    found["product problem, whole columns"] = {"problem": "product", "radius": norms}
    found[f"product problem, m = {sizes[-1]}"] = found["product problem, whole columns"] | {
        "sketch": sizes[-1]
    }
    return found


def trade(given: Problem, rounds: int, sizes: Sequence[int]) -> Uplink:
    """Numbers up against accuracy, not private."""
    from dpsvm.frank_wolfe import DistributedFrankWolfe, OneShotSketching

    found, blocks = Uplink(), columns(given.A, PARTIES)
    table = Table(
        f"{given.name}, {PARTIES} parties, {rounds} rounds: numbers sent up until a relative gap",
        ("method", *(f"to {mark:g}" for mark in MARKS), "all", "last gap"),
    )
    for name, settings in methods(given, sizes).items():
        note(f"{given.name}: {name}")
        up, gaps = [], []

        def watch(one: Any, weights: Any, up: list = up, gaps: list = gaps) -> None:
            up.append(one.traffic.up_integers + one.traffic.up_floats)
            gaps.append(given.gap(value(given.A, given.y, np.concatenate(weights))))

        solver = DistributedFrankWolfe(**{"radius": given.radius, "rounds": rounds} | settings)
        solver.solve(blocks, given.y, watch)
        curve = found.curves[name] = (np.array(up), np.array(gaps))
        cells = [_sent(curve, mark) for mark in MARKS]
        table.rows.append([name, *cells, f"{up[-1]:,}", f"{gaps[-1]:.1e}"])
    for size in sizes:
        note(f"{given.name}: all features once, m = {size}")
        one = OneShotSketching(radius=given.radius, sketch=size).solve(blocks, given.y)
        gap = given.gap(value(given.A, given.y, one.x))
        name = f"all features once, m = {size}"
        curve = found.curves[name] = (np.array([one.traffic.up_floats]), np.array([gap]))
        cells = [_sent(curve, mark) for mark in MARKS]
        table.rows.append([name, *cells, f"{one.traffic.up_floats:,}", f"{gap:.1e}"])
    found.tables.append(table)
    return found


def _sent(curve: Curve, mark: float) -> str:
    up, gaps = curve
    reached = np.flatnonzero(gaps <= mark)
    return f"{up[reached[0]]:,}" if len(reached) else "not reached"


def sketch_errors(quick: bool) -> Part:
    """What a sketch costs after 20 steps, and what keeping A'y exact beside it does."""
    from dpsvm.frank_wolfe import DistributedFrankWolfe, Function, L1Ball, LeastSquares, minimize
    from dpsvm.frank_wolfe.sketches import Sketch

    n, d, sizes, seeds = 4000, 200, (25, 50, 100, 200, 400, 1000), SKETCH_SEEDS
    if quick:
        n, d, sizes, seeds = 400, 20, (50, 100), 2
    errors: dict[int, list[float]] = {size: [] for size in sizes}
    kept: dict[int, list[float]] = {size: [] for size in sizes}
    ball, rounds = L1Ball(d, 1.0), SKETCH_ROUNDS
    for seed in range(seeds):
        A, y = uniform_data(seed, n, d, 0.1)
        f = LeastSquares(A, y)
        start = f.value(np.zeros(d))
        whole = minimize(f, ball, max_iter=rounds).value
        for size in sizes:
            J = Sketch(n, size, seed)
            solver = DistributedFrankWolfe(radius=1.0, rounds=rounds, sketch=size, sketch_seed=seed)
            found = solver.solve(columns(A, PARTIES), y)
            errors[size].append((found.value - whole) / start)
            sketched = J.of(A)
            half = Function(lambda x: 0.0, lambda x, S=sketched, b=f.moment: S.T @ (S @ x) / n - b)
            x = minimize(half, ball, max_iter=rounds).x
            kept[size].append((f.value(x) - whole) / start)
    table = Table(
        f"Sketch error on {n} x {d} after {rounds} steps: (f - f without a sketch) / f(0), "
        f"mean (range) of {seeds} data and sketches",
        ("m", "residual sketched", "A'y kept exact"),
    )
    table.rows = [[size, spread(errors[size]), spread(kept[size])] for size in sizes]
    mean, other = np.mean(errors[100]), np.mean(kept[100])
    line = f"sketch error at m = 100: {spread(errors[100])}, with A'y exact {spread(kept[100])}, "
    part = Part([table], [(f"{line}which is worse", bool(other > mean))])
    for name, figure, values in (
        ("", ERROR_OF_SPEC, errors[100]),
        (" with A'y exact", EXACT_OF_SPEC, kept[100]),
    ):
        inside = min(values) <= figure <= max(values)
        part.remarks.append(
            f"the known sketch error{name}, {figure:g}, lies "
            f"{'within' if inside else 'outside'} that range"
        )
    return part


def uplink(shared: Path, quick: bool, lock: Path | None = None) -> Uplink:
    """All of it but the private runs."""
    given = reuters(shared, 300 if quick else None)
    with holding(lock):
        found = trade(given, 10 if quick else ROUNDS, SIZES[:1] if quick else SIZES)
    with holding(lock):
        for part in (counts(quick), sketch_errors(quick)):
            found.tables += part.tables
            found.bars += part.bars
            found.remarks += part.remarks
    return found
