"""The bars that speed.py's measurements are held to, one line each.

A wrong optimum, or no answer at all, is a failure. Slowness and memory are only told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench.speed.neighbours import state
from bench.speed.speed_tables import (
    KEEPING,
    OTHERS,
    Board,
    difference,
    fastest_other,
    present,
    ratio,
)
from bench.speed.turns import OWN
from bench.speed.workloads import KEEPING_W, WORKLOADS

WITHIN = 1e-6  # of LIBSVM's objective, relative
SAME_OPTIMUM = 1e-4  # as scikit-learn, relative, at tol 1e-3
GEOMETRIC_MEAN = {"float64": 2.0, "float32": 3.0}
KEEPING_W_TIMES = 5.0  # LIBSVM's speed
TIMED = {"fit": "seconds", "predict": "predict_seconds", "decision_function": "decision_seconds"}

COUNTED = tuple(workload.name for workload in WORKLOADS if workload.group == "reach")


@dataclass(frozen=True)
class Verdict:
    line: str
    failed: bool = False


def judge(board: Board, dtype: str) -> list[Verdict]:
    """Every bar, for the runs of one precision."""
    lines = [
        _quiet(board),
        _answered(board),
        _optimum(board),
        _objective(board),
        *(_speed(board, dtype, work) for work in TIMED),
        *(_none_below_one(board, work) for work in TIMED),
        _slower_than_scikit_learn(board),
        _memory(board, "smallest"),
        _memory(board, "largest"),
        *([_keeping_w(board)] if set(KEEPING_W) & set(board) else []),
    ]
    return [Verdict(f"{dtype}: {verdict.line}", verdict.failed) for verdict in lines]


def not_measured(boards: Mapping[str, Board]) -> Verdict:
    """What a full run was to hold and does not."""
    missing = [
        f"{name} ({dtype})"
        for dtype, board in boards.items()
        for name in COUNTED
        if name not in board
    ]
    return Verdict(f"workloads not measured: {_listed(missing)} of {len(COUNTED) * len(boards)}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _quiet(board: Board) -> Verdict:
    taken = [runs.values("taken") for libraries in board.values() for runs in libraries.values()]
    most = max((math.fsum(shares) / len(shares) for shares in taken if shares), default=math.nan)
    return Verdict(f"cores taken by other processes, at the most: {most:.2f}: {state(most)}")


def _answered(board: Board) -> Verdict:
    silent = [
        name for name, libraries in board.items() if OWN in libraries and libraries[OWN].absent
    ]
    return Verdict(f"dpsvm gave no answer on: {_listed(silent)} of {len(board)}", bool(silent))


def _optimum(board: Board) -> Verdict:
    apart = {name: difference(runs, OWN, "scikit-learn") for name, runs in board.items()}
    known = {name: value for name, value in apart.items() if value is not None}
    wrong = [name for name, value in known.items() if abs(value) > SAME_OPTIMUM]
    line = f"another optimum than scikit-learn on: {_listed(wrong)} of {len(known)}"
    return Verdict(line, bool(wrong))


def _objective(board: Board) -> Verdict:
    """dpsvm's objective and, where it ran, that of the option that keeps w."""
    wrong, compared, instead = [], 0, 0
    for name, libraries in board.items():
        known = present(libraries)
        reference = next((other for other in ("LIBSVM", "scikit-learn") if other in known), None)
        if reference is None:
            continue
        for own in (OWN, KEEPING):
            apart = difference(libraries, own, reference)
            if apart is None:
                continue
            compared += 1
            instead += reference != "LIBSVM"
            if not abs(apart) <= WITHIN:
                wrong.append(f"{name} ({'' if own == OWN else f'{own}, '}{apart:+.1e})")
    fallback = f" ({instead} of them with scikit-learn's)" if instead else ""
    line = f"objective within {WITHIN:g} of LIBSVM's: {_answer(not wrong)}"
    line += f", apart: {_listed(wrong)} of {compared}{fallback}"
    return Verdict(line, bool(wrong))


def _answer(good: bool) -> str:
    return "yes" if good else "NO"


def _ratios(board: Board, work: str) -> dict[str, tuple[str, float]]:
    known = {name: fastest_other(board[name], TIMED[work]) for name in COUNTED if name in board}
    return {name: found for name, found in known.items() if found is not None}


def _speed(board: Board, dtype: str, work: str) -> Verdict:
    ratios = [times for _, times in _ratios(board, work).values()]
    goal = GEOMETRIC_MEAN[dtype]
    head = f"{work}, geometric mean of the fastest other's time over dpsvm's at least {goal:g}"
    if not ratios:
        return Verdict(f"{head}: not measured")
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    return Verdict(f"{head}: {_answer(mean >= goal)}, {mean:.2f} over {len(ratios)} workloads")


def _none_below_one(board: Board, work: str) -> Verdict:
    ratios = _ratios(board, work)
    below = [f"{name} ({t:.2f}, {other})" for name, (other, t) in ratios.items() if t < 1]
    line = f"{work}, no workload below 1: {_answer(not below)}, below: {_listed(below)}"
    return Verdict(f"{line} of {len(ratios)}")


def _slower_than_scikit_learn(board: Board) -> Verdict:
    ratios = {name: ratio(runs, "scikit-learn", OWN, "seconds") for name, runs in board.items()}
    known = {name: times for name, times in ratios.items() if times is not None}
    slower = [name for name, times in known.items() if times < 1]
    return Verdict(f"slower than scikit-learn on: {_listed(slower)} of {len(known)}")


def _memory(board: Board, which: str) -> Verdict:
    """Of the fit, beside the smallest or the largest of the others, at the same cache size."""
    more, compared = [], 0
    for name in COUNTED:
        known = present(board.get(name, {}))
        sizes = [known[other].median("fit_mb") for other in OTHERS if other in known]
        others = [size for size in sizes if size is not None]
        own = known[OWN].median("fit_mb") if OWN in known else None
        if own is None or not others:
            continue
        compared += 1
        bound = min(others) if which == "smallest" else max(others)
        if own > bound:
            more.append(f"{name} (+{own - bound:.1f} MB)")
    line = f"memory of the fit no more than the {which} other's: {_answer(not more)}"
    return Verdict(f"{line}, more on: {_listed(more)} of {compared}")


def _keeping_w(board: Board) -> Verdict:
    head = f"keeping w at least {KEEPING_W_TIMES:g} times LIBSVM"
    ratios = {
        name: ratio(board[name], "LIBSVM", KEEPING, "seconds")
        for name in KEEPING_W
        if name in board
    }
    known = {name: times for name, times in ratios.items() if times is not None}
    if not known:
        absent = {runs[KEEPING].absent for runs in board.values() if KEEPING in runs}
        reasons = sorted(filter(None, absent)) or ["only one of the two ran"]
        return Verdict(f"{head}: not measured, {_listed(reasons)}")
    good = all(times >= KEEPING_W_TIMES for times in known.values())
    told = ", ".join(f"{name} {times:.2f}" for name, times in known.items())
    return Verdict(f"{head}: {_answer(good)}, {told}, of {len(KEEPING_W)}")
