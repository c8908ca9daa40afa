"""Attacks that end with columns of a site, or with what they span."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from bench.federation.attack_algebra import (
    binary_columns,
    column_space,
    few_ones,
    largest_sine,
    plain_predictions,
)
from bench.federation.attack_coordinators import Hostile, Listener, Stopped
from bench.federation.attack_sites import (
    OPEN,
    OWNER,
    TUTORIAL,
    Figure,
    World,
    close,
    public_terms,
    world,
)
from dpsvm.federation import Job
from dpsvm.frank_wolfe.sketches import Sketch

Array = NDArray[np.float64]

FIVE = (OWNER, "lab", "registry", "ward", "home")
OTHERS = TUTORIAL[1:]
RAW = 75  # rounds in which raw columns are taken
SKETCH = 200
ONES = 26  # of a rare trait's column
STARTS = 40  # of a search for a 0/1 column
_EXACT = 1e-12  # of a column's largest entry


def raw_columns(rounds: int = RAW, *, network: bool = True) -> list[Figure]:
    """A job without a sketch comes to sites that approved the tutorial's: honest, then chosen.

    network : over NVIDIA FLARE too
    """
    found = [_honest(rounds, "in process", _listened_to)]
    if network and find_spec("nvflare") is not None:
        found.append(_honest(rounds, "mutual TLS", World.submit))
    for attack, budget in (("no sketch, chosen residuals", None), ("the same, a ledger", 3.0)):
        with world(budget=budget) as sites:
            sites.approve(_job("joint-1", OPEN))
            taken, error, needed, stopped = _chosen_residuals(sites, _taking(rounds))
            what = "raw columns of 10"
            found.append(Figure(attack, what, taken, stopped, most=0))
            if budget is None:
                found.append(Figure(attack, "rounds they took", needed, stopped))
                found.append(Figure(attack, "largest error", error, stopped))
            else:
                unpaid = int(taken > 0 and not sites.charged("lab"))
                found.append(Figure(attack, "and nothing was charged", unpaid, stopped, most=0))
    with world() as sites:
        taken, *_, stopped = _chosen_residuals(sites, sites.approve(_taking(rounds)))
        attack = "no sketch, chosen residuals, a job that was approved"
        found.append(Figure(attack, "raw columns of 10", taken, stopped))
    return found


def _taking(rounds: int) -> Job:
    settings = {"rounds": rounds, "radius": 1.0, "sketch": 0}
    return Job("survey", "frank-wolfe", ("lab",), OWNER, settings)


def _honest(rounds: int, how: str, vectors_of: Callable[[World, Job], list[Array]]) -> Figure:
    """Columns of two sites in what a coordinator has that follows the protocol."""
    settings = {"rounds": rounds, "radius": 10.0, "sketch": 0}
    job = Job("survey", "frank-wolfe", OTHERS, OWNER, settings)
    taken, stopped = 0, ""
    with world() as sites:
        sites.approve(_job("joint-1", OPEN))
        sites.approve(job, only=[OWNER])  # it is the attacker
        tables = [sites.truth(name) for name in OTHERS]
        try:
            vectors = vectors_of(sites, job)
            taken = sum(_compared(table, vectors)[0] for table in tables)
        except Stopped as reason:
            stopped = str(reason)
    held = sum(table.shape[1] for table in tables)
    what = f"raw columns of {held}, {rounds} rounds"
    return Figure(f"no sketch, honest coordinator, {how}", what, taken, stopped, most=0)


def _listened_to(sites: World, job: Job) -> list[Array]:
    told = sites.listen(job).told
    replies = [reply for replies in told for reply in replies.values() if reply is not None]
    return [reply.arrays["sketch"] for reply in replies if "sketch" in reply.arrays]


def _chosen_residuals(sites: World, job: Job) -> tuple[int, float, int, str]:
    """Residuals at right angles to every column that is known: the answer is one that is not."""
    truth, rng = sites.truth("lab"), np.random.default_rng(0)
    vectors: list[Array] = []
    known, parties, stopped = np.zeros((len(truth), 0)), [], ""
    try:
        parties = sites.parties(job)
        hostile = Hostile(job, parties)
        hostile.begin()
        for _ in range(job.settings["rounds"]):
            residual = rng.standard_normal(len(truth))
            residual -= known @ (known.T @ residual)
            reply = hostile.ask("query", {"residual": residual})["lab"]
            if "sketch" not in reply.arrays:
                break  # a column that was sent before: there is no other
            vectors.append(reply.arrays["sketch"])
            known = np.linalg.qr(np.column_stack(vectors))[0]
    except Stopped as reason:
        stopped = str(reason)
    close(parties)
    taken, error = _compared(truth, vectors)
    return taken, error, len(vectors), stopped


def _compared(truth: Array, vectors: Sequence[Array]) -> tuple[int, float]:
    """How many columns are among vectors a / n, and by how much they are wrong at most."""
    taken, errors = set(), [0.0]
    for vector in vectors:
        if vector.shape != truth[:, 0].shape:
            continue
        gaps = np.max(np.abs(truth - len(truth) * vector[:, None]), axis=0)
        place = int(np.argmin(gaps))
        if gaps[place] <= _EXACT * np.max(np.abs(truth[:, place])):
            taken.add(place)
            errors.append(float(gaps[place]))
    return len(taken), max(errors)


def _job(run: str, settings: dict[str, object], names: Sequence[str] = TUTORIAL) -> Job:
    return Job(run, "sharing", tuple(names), OWNER, settings)


def _trait(columns: Array) -> Array:
    """A secret 0/1 column that has to do with the others."""
    noise = np.random.default_rng(1).standard_normal(len(columns))
    standard = (columns[:, 0] - columns[:, 0].mean()) / columns[:, 0].std()
    return np.asarray(standard + noise > 0.3, dtype=np.float64)


def passive(rounds: int = 20, starts: int = STARTS) -> list[Figure]:
    """An honest run of open sharing, and what a coordinator that only looks knows of each party."""
    found = []
    attack = "open sharing, passive coordinator"
    with world(secrets={"lab": _trait}) as sites:
        job = sites.approve(_job("joint-1", OPEN | {"rounds": rounds}))
        run = sites.listen(job)
        for name in TUTORIAL:
            space, sine = _space_of(sites, run, name)
            what = f"column space of {name}, largest sine to the true one"
            found.append(Figure(attack, what, sine))
            if name == "lab":
                secret = sites.secrets["lab"]
                rows = _rows_told(space, secret, starts)
        found.insert(0, _spaces(attack, [one.value for one in found], most=0))
        what = f"rows of {len(secret)} of a secret 0/1 column of lab"
        found.append(Figure(attack, what, rows, most=0))
        shown = sites.approve(replace(job, run="joint-2", sums="open"))
        run = sites.listen(shown)
        sines = [_space_of(sites, run, name)[1] for name in TUTORIAL]
        found.append(_spaces(f'{attack}, sums = "open"', sines, most=None))
    return found


def _space_of(sites: World, run: Listener, name: str) -> tuple[Array, float]:
    """What a party's messages span, and its largest sine to what its columns do."""
    prices, rhos = run.prices()
    (share, _), part = public_terms(sites, run.job), 1.0 / len(TUTORIAL)
    vectors = plain_predictions(run.seen_of(name), prices, rhos, share=share, part=part)
    space, truth = column_space(vectors), sites.truth(name)
    exact = space.shape[1] == truth.shape[1]
    return space, largest_sine(space, truth) if exact else 1.0


def _spaces(attack: str, sines: Sequence[float], most: float | None) -> Figure:
    known = sum(one < 1e-6 for one in sines)
    return Figure(attack, f"column spaces known, of {len(sines)} parties", known, most=most)


def _rows_told(space: Array, secret: Array, starts: int) -> int:
    """Rows of a secret column that are told, none if no 0/1 column is found that could be it."""
    rng, best = np.random.default_rng(2), 0
    if space.shape[1] > len(secret) // 4:
        return 0  # too many 0/1 columns would be there
    for found in binary_columns(space, rng, starts):
        best = max(best, int(np.sum(found == secret)))
        if best == len(secret):
            break
    return best


def from_sums(passive_rounds: int = 200, chosen_rounds: int = 40, starts: int = 4) -> list[Figure]:
    """What sums alone tell: that they hide data is not claimed."""
    found = []
    for chosen, rounds in ((False, passive_rounds), (True, chosen_rounds)):
        with world(FIVE, secrets={"lab": _trait}) as sites:
            job = sites.approve(_job("joint-1", OPEN | {"rounds": rounds, "tol": 0.0}, FIVE))
            share, rho = public_terms(sites, job)
            sums, prices = _with_chosen_prices(sites, job, rho) if chosen else _listened(sites, job)
            rhos = [rho] * len(sums)
            space = column_space(plain_predictions(sums, prices, rhos, share=share, part=1.0))
            truth, secret = np.hstack([sites.truth(name) for name in FIVE]), sites.secrets["lab"]
            attack = f"sums alone, {'chosen prices' if chosen else 'passive'}, {rounds} rounds"
            figures = {
                f"dimensions of {truth.shape[1]} of the joint column space": space.shape[1],
                "largest sine of the true one to it": largest_sine(space, truth),
                f"rows of {len(secret)} of a secret 0/1 column": _rows_told(space, secret, starts),
            }
            found += [Figure(attack, what, value) for what, value in figures.items()]
    return found


def _listened(sites: World, job: Job) -> tuple[list[Array], list[Array]]:
    run = sites.listen(job)
    return run.sums(), run.prices()[0]


def _with_chosen_prices(sites: World, job: Job, rho: float) -> tuple[list[Array], list[Array]]:
    rng, sums, asked = np.random.default_rng(3), [], []
    parties = sites.parties(job)
    hostile = Hostile(job, parties)
    hostile.begin()
    for _ in range(job.settings["rounds"]):
        asked.append(rng.standard_normal(len(sites.truth(OWNER))))
        replies = hostile.ask("price", {"price": asked[-1]}, rho=rho, keep=False)
        sums.append(hostile.sum_of(replies))
    close(parties)
    return sums, asked


def _rare(columns: Array) -> Array:
    """A column of few ones, where another is largest."""
    found = np.zeros(len(columns))
    found[np.argsort(columns[:, 0])[-ONES:]] = 1.0
    return found


def sketched(rounds: int = 40) -> list[Figure]:
    """A column of 26 ones, read off its sketch of 200 numbers by a linear program."""
    found = []
    settings = {"rounds": rounds, "radius": 10.0, "sketch": SKETCH}
    for approved in (False, True):
        with world(secrets={"lab": _rare}) as sites:
            job = Job("survey", "frank-wolfe", OTHERS, OWNER, settings)
            sites.approve(job if approved else _job("joint-1", OPEN))
            secret, rows, stopped = sites.secrets["lab"], 0, ""
            try:
                rows = _read_off(sites, job, secret)
            except Stopped as reason:
                stopped = str(reason)
            which = "a job that was approved" if approved else "a job that nobody approved"
            what = f"rows of {len(secret)} of a column of {ONES} ones"
            most = None if approved else 0
            found.append(Figure(f"{SKETCH} sketches, {which}", what, rows, stopped, most=most))
    return found


def _read_off(sites: World, job: Job, secret: Array) -> int:
    """Rows of a column that a coordinator knows which looks for it in all that lab sends."""
    parties = sites.parties(job)
    hostile, rng = Hostile(job, parties), np.random.default_rng(4)
    matrix = Sketch(len(secret), SKETCH).matrix
    assert matrix is not None
    best = 0
    try:
        hostile.begin()
        for _ in range(job.settings["rounds"]):
            residual = rng.standard_normal(SKETCH)
            reply = hostile.ask("query", {"residual": residual})["lab"]
            sketch = reply.arrays.get("sketch")
            vector = None if sketch is None else few_ones(matrix, len(secret) * sketch)
            if vector is not None:
                best = max(best, int(np.sum(vector == secret)))
    finally:
        close(parties)
    return best
