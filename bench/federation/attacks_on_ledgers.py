"""Attacks on budgets, and on what a site keeps."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.federation.attack_algebra import bisected
from bench.federation.attack_coordinators import Hostile, Stopped
from bench.federation.attack_sites import (
    OWNER,
    PRIVATE,
    TUTORIAL,
    Figure,
    World,
    close,
    restored,
    world,
)
from dpsvm.federation import Job
from dpsvm.federation.custody import MOST_REHEARSALS

BUDGET = 3.0
BOUNDS = {"data_norm": PRIVATE["data_norm"]}
IDLE = 9
OF_NINE = 0.8732  # of each of nine jobs: all together leave .04
REHEARSALS = 30
QUESTIONS = 20


def _job(run: str, epsilon: float, **more: object) -> Job:
    return Job(run, "sharing", TUTORIAL, OWNER, PRIVATE | {"epsilon": epsilon} | more)


def idle_jobs(jobs: int = IDLE) -> list[Figure]:
    """Jobs that begin and never ask."""
    attack, begun, stopped = f"{jobs} jobs that begin and never ask", 0, ""
    with world(private=True, budget=BUDGET, bounds=BOUNDS) as sites:
        for number in range(jobs):
            job = sites.approve(_job(f"idle-{number}", OF_NINE))
            parties = []
            try:
                parties = sites.parties(job)
                Hostile(job, parties).begin()
                begun += 1
            except Stopped as reason:
                stopped = str(reason)
            close(parties)
        lost = BUDGET - sites.left("lab", BUDGET)
        charged, reserved = sites.charged("lab"), sites.reserved("lab")
    return [
        Figure(attack, "jobs begun", begun, stopped),
        Figure(attack, "epsilon that stays reserved for 24 hours", reserved),
        Figure(attack, f"epsilon of {BUDGET:g} lost for good, nothing answered", lost, most=0.0),
        Figure(attack, "charges at a site", charged, most=0),
    ]


def two_runs() -> list[Figure]:
    """Two honest runs at once on a budget for one, in opposite orders or in the same."""
    return [*_raced("two runs at once, a budget for one", opposite=True), *_raced_in_order()]


def _raced_in_order() -> list[Figure]:
    """The first that comes to a site is the first at all: it gets the budget."""
    done, charges = _raced("two runs at once, in the same order", opposite=False)
    lost = Figure(done.attack, "runs that failed", 2 - done.value, charges.stopped, most=1)
    return [done, lost, charges]


def _raced(attack: str, *, opposite: bool) -> list[Figure]:
    with world(private=True, budget=BUDGET, bounds=BOUNDS) as sites:
        jobs = [sites.approve(_job(f"race-{one}", 0.9 * BUDGET)) for one in "ab"]
        turns = sites.race(jobs, opposite=opposite)
        done = sum(turn.ended == "done" for turn in turns)
        why = "; ".join(str(turn.reason) for turn in turns if turn.ended != "done")
        charges = sum(sites.charged(name) for name in TUTORIAL)
    in_vain = charges - done * len(TUTORIAL)
    return [
        Figure(attack, "runs that ended well", done),
        Figure(attack, "charges for what failed", in_vain, why, most=0),
    ]


def rehearsals(count: int = REHEARSALS) -> list[Figure]:
    """Who refuses which bound tells the largest norm of a row: a site without [bounds]."""
    attack = f"{count} rehearsals"
    with world(private=True, budget=BUDGET) as sites:
        sites.approve(_job("joint-1", 1.0))
        error, stopped = _norm_told(sites, count, approved=False)
        charged = sites.charged("lab")
    with world(budget=BUDGET) as sites:
        clipped, _ = _norm_told(sites, count, approved=True)
    with world(private=True, budget=BUDGET, bounds=BOUNDS) as sites:
        answered = _rehearse(sites, sites.approve(_job("joint-1", 1.0)), 10 * count, patient=True)
    each = f"{count} rehearsals, each bound approved"
    free = f"of {10 * count} rehearsals of a job that was approved, free"
    return [
        Figure(attack, "digits of the largest norm of a row", _digits(error), stopped, most=0),
        Figure(attack, "relative error", error),
        Figure(attack, "charges", charged),
        Figure(each, "digits of the largest norm of a row", _digits(clipped), most=0),
        Figure(attack, free, answered, most=MOST_REHEARSALS),
    ]


def _digits(error: float) -> int:
    return int(min(max(-np.log10(max(error, 1e-16)), 0.0), 16.0))


def _norm_told(sites: World, count: int, *, approved: bool) -> tuple[float, str]:
    """The relative error of the largest norm that refusals tell, and the last of them."""
    truth, stops = float(np.max(np.linalg.norm(sites.truth("lab"), axis=1))), [""]

    def fits(bound: float) -> bool:
        job = replace(_job("rehearsed", 1.0, data_norm=bound), parties=("lab",))
        try:
            _rehearse(sites, sites.approve(job) if approved else job, 1)
        except Stopped as reason:
            stops.append(str(reason))
            return False
        return True

    return abs(bisected(fits, 0.0, 64.0, count) - truth) / truth, stops[-1]


def _rehearse(sites: World, job: Job, times: int, *, patient: bool = False) -> int:
    """How many of so many rehearsals are answered; a patient attacker takes a refusal."""
    parties, answered = sites.parties(job), 0
    try:
        hostile = Hostile(job, parties)
        for _ in range(times):
            hostile.rehearse()
            answered += 1
    except Stopped:
        if not patient:
            raise
    finally:
        close(parties)
    return answered


def replaced_ledger() -> list[Figure]:
    """Another ledger in the place of one with a charge, and then a new run."""
    attack, begun, stopped = "a replaced ledger", 0, ""
    with world(private=True, budget=BUDGET, bounds=BOUNDS) as sites:
        for number in range(3):
            job = sites.approve(_job(f"run-{number}", 0.9 * BUDGET))
            parties = []
            try:
                parties = sites.parties(job)
                _first_round(sites, Hostile(job, parties))
                begun += 1
            except Stopped as reason:
                stopped = str(reason)
            close(parties)
            for name in TUTORIAL:
                sites.new_ledger(name, BUDGET)
    what = f"runs of epsilon = {0.9 * BUDGET:g} that a budget of {BUDGET:g} paid for"
    return [Figure(attack, what, begun, stopped, most=1)]


def _first_round(sites: World, hostile: Hostile, seed: int = 0) -> None:
    """Begin and ask one question."""
    hostile.begin()
    _ask(sites, hostile, seed)


def _ask(sites: World, hostile: Hostile, seed: int) -> None:
    price = np.random.default_rng(seed).standard_normal(len(sites.truth(OWNER)))
    hostile.ask("price", {"price": price}, rho=PRIVATE["rho"], keep=False)


def flipped_bits(every: int = 1) -> list[Figure]:
    """All single bits of a ledger with a charge, one after the other: is it still believed?"""
    attack, counts = "one flipped bit of a ledger", Counter[str]()
    with world(private=True, budget=BUDGET, bounds=BOUNDS) as sites:
        job = sites.approve(_job("run-0", 1.0))
        parties = sites.parties(job)
        _first_round(sites, Hostile(job, parties))
        close(parties)
        path, ledger = sites.ledger_file("lab"), sites.ledger("lab")
        left, charges = ledger.remaining(), ledger.charges
        data = path.read_bytes()
        for place in range(0, 8 * len(data), every):
            changed = bytearray(data)
            changed[place // 8] ^= 1 << place % 8
            path.write_bytes(changed)
            counts[_believed(sites, left, charges)] += 1
    return [
        Figure(attack, "flips", sum(counts.values())),
        Figure(attack, "more budget", counts["more"], most=0),
        Figure(attack, "less budget", counts["less"], most=0),
        Figure(attack, "the same budget, other charges", counts["other"], most=0),
        Figure(attack, "it means the same (1e-05, 1E-05)", counts["same"]),
        Figure(attack, "an error", counts["error"]),
    ]


def _believed(sites: World, left: float, charges: object) -> str:
    try:
        ledger = sites.ledger("lab")
        found = ledger.remaining()
    except ValueError:
        return "error"
    if abs(found - left) <= 1e-9:
        return "same" if ledger.charges == charges else "other"
    return "more" if found > left else "less"


def restored_folder(questions: int = QUESTIONS) -> list[Figure]:
    """A state folder put back again and again, and another question each time."""
    found = []
    for with_ledger in (False, True):
        also = " and the ledger" if with_ledger else ""
        attack, answers, stopped = f"a restored state folder{also}", 0, ""
        with (
            world(private=True, budget=BUDGET, bounds=BOUNDS) as sites,
            tempfile.TemporaryDirectory() as kept,
        ):
            job = sites.approve(_job("run-0", 1.0))
            parties = sites.parties(job)
            hostile = Hostile(job, parties)
            hostile.begin()
            close(parties)
            saved = _save(sites, job, Path(kept), with_ledger=with_ledger)
            for number in range(questions):
                parties = []
                try:
                    parties = sites.parties(job)
                    again = hostile.reborn(parties)
                    _ask(sites, again, number)
                    answers += 1
                except Stopped as reason:
                    stopped = str(reason)
                close(parties)
                for folder, copy in saved:
                    restored(folder, copy)
            charges = sites.charged("lab")
        most = None if with_ledger else 1
        what = f"of {questions} questions for round 1, answered"
        found += [
            Figure(attack, what, answers, stopped, most=most),
            Figure(attack, "charges at a site", charges),
        ]
    return found


def _save(sites: World, job: Job, kept: Path, *, with_ledger: bool) -> list[tuple[Path, Path]]:
    """Copies of what is put back later."""
    paths = [sites.run_folder(name, job) for name in TUTORIAL]
    if with_ledger:
        paths += [path for name in TUTORIAL for path in sites.ledger_files(name)]
    return _copied(paths, kept)


def _copied(paths: list[Path], kept: Path) -> list[tuple[Path, Path]]:
    saved = []
    for number, path in enumerate(paths):
        copy = kept / str(number)
        (shutil.copytree if path.is_dir() else shutil.copyfile)(path, copy)
        saved.append((path, copy))
    return saved


def rolled_back() -> list[Figure]:
    """A whole site put back to before it was charged, when others have seen the charge or not."""
    found = []
    cases = [("that a peer has seen", 1, False), ("that no peer has seen", 0, False)]
    cases += [("that a peer has seen, and the coordinator leaves that out", 1, True)]
    for what, more, forgets in cases:
        with (
            world(private=True, budget=BUDGET, bounds=BOUNDS) as sites,
            tempfile.TemporaryDirectory() as kept,
        ):
            jobs = [sites.approve(_job(f"run-{number}", 1.0)) for number in range(2 + more)]
            ours = [sites.folder / "state-lab", *sites.ledger_files("lab")]
            saved = _copied(ours, Path(kept))
            for job in jobs[: 1 + more]:
                _first_rounds(sites, job)
            for path, copy in saved:
                restored(path, copy)
            begun, stopped = 1, ""
            try:
                _first_rounds(sites, jobs[-1], forgets=forgets)
            except Stopped as reason:
                begun, stopped = 0, str(reason)
        claimed = 0 if more and not forgets else None
        attack = f"a charge put back with all of its site, {what}"
        found.append(Figure(attack, "runs that began after it", begun, stopped, most=claimed))
    return found


def _first_rounds(sites: World, job: Job, *, forgets: bool = False) -> None:
    """Begin a run and ask one question, with parties that are closed in any case."""
    parties = sites.parties(job)
    try:
        _first_round(sites, Hostile(job, parties, forgets=forgets))
    finally:
        close(parties)
