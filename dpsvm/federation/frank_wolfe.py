"""Private distributed Frank-Wolfe between sites: the objects of :mod:`dpsvm.frank_wolfe`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from dpsvm._renamed import FRANK_WOLFE
from dpsvm.federation.frames import LARGEST
from dpsvm.federation.job import Job
from dpsvm.federation.members import Content, Shape, require_round, told_privacy
from dpsvm.federation.messages import Message
from dpsvm.federation.settings import made
from dpsvm.federation.site import Price, Refusal, Site
from dpsvm.frank_wolfe.checks import canonical_columns, check_count, check_vector
from dpsvm.frank_wolfe.distributed import DistributedFrankWolfe, least_share, make_coordinator
from dpsvm.frank_wolfe.messages import Proposal, Query
from dpsvm.frank_wolfe.party import Party
from dpsvm.frank_wolfe.privacy import DistributedCalibration
from dpsvm.frank_wolfe.private import PrivateDistributedFrankWolfe, check_labels
from dpsvm.frank_wolfe.sketches import Sketch
from dpsvm.frank_wolfe.steps import check_steps
from dpsvm.privacy.noise import Noise

Solver = DistributedFrankWolfe | PrivateDistributedFrankWolfe

_ELSEWHERE = ("accountant", "random_state", "send")


def solver_of(job: Job) -> Solver:
    """The solver whose settings a job has; with an epsilon, the private one.

    The numbers of rounds and of sketched rows must be given: theory would propose them from the
    labels, which the parties do not have. A sketch of 0 rows sends whole columns. A private run
    needs the sizes of all parties in the job: the noise of each depends on those of the others.

    >>> solver_of(Job("r", "frank-wolfe", ("a",), "a", {"radius": 1.0, "rounds": 5})).rounds
    5
    """
    private = "epsilon" in job.settings
    kind = PrivateDistributedFrankWolfe if private else DistributedFrankWolfe
    for name in ("radius", "rounds", *(("sketch", "delta", "entry_bound") if private else ())):
        if name not in job.settings:
            raise ValueError(f"settings: {name!r} is missing")
    if private and job.sizes is None:
        raise ValueError("a private Frank-Wolfe needs sizes, the columns of each party, in the job")
    settings = dict(job.settings)
    if settings.get("sketch") == 0:
        settings["sketch"] = None
    solver: Solver = made(kind, settings, {}, without=_ELSEWHERE, renamed=FRANK_WOLFE)
    check_count(solver.rounds, "rounds")
    if isinstance(solver.sketch, str):
        raise ValueError(f"settings: sketch must be a number of rows, got {solver.sketch!r}")
    if isinstance(solver, PrivateDistributedFrankWolfe):
        check_labels(solver.public_labels, solver.label_bound)
    return solver


def _calibration(solver: Solver, sketch: Sketch, shape: Shape) -> DistributedCalibration | None:
    if not isinstance(solver, PrivateDistributedFrankWolfe):
        return None
    return DistributedCalibration.of(
        sketch,
        shape.sizes,
        check_count(solver.rounds, "rounds"),
        solver.epsilon,
        solver.delta,
        solver.entry_bound,
        solver.label_bound,
        cache=solver.cache,
    )


class FrankWolfeMember:
    """A party's columns."""

    def __init__(self, job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> None:
        solver = solver_of(job)
        sketch = Sketch(shape.rows, solver.sketch, solver.sketch_seed)  # type: ignore[arg-type]
        calibration = _calibration(solver, sketch, shape)
        self._rounds = int(solver.rounds or 0)
        self.price = None
        if calibration is not None:
            self.price = Price(calibration.event, calibration.guarantee)
        table = canonical_columns(site.table) if sparse.issparse(site.table) else site.table
        seeds = (noise.uniform(4) * 2.0**52).astype(np.int64)  # for which columns are looked at
        self._party = Party(
            place,
            table,
            sketch,
            tau=solver.tau,
            cache=solver.cache,
            rng=np.random.default_rng(seeds.tolist()),
            perturbation=None if calibration is None else calibration.noise_of(place, noise),
        )

    def open(self) -> Content:
        """It is ready."""
        return Content("ready")

    def answer(self, message: Message) -> Content:
        """A vertex, and its column's sketch if it was not sent before."""
        if message.kind != "query":
            raise Refusal(f"a query is awaited, got a {message.kind}")
        require_round(message, self._rounds)
        proposal = self._party.answer(Query(message.round, message.arrays["residual"]))
        arrays = {} if proposal.sketch is None else {"sketch": proposal.sketch}
        return Content("proposal", arrays, {"choice": int(proposal.choice)})

    def close(self, message: Message) -> dict[str, Any]:
        """Nothing: the model is the coordinator's."""
        return {"weights": None}

    def remember(self) -> dict[str, Any]:
        """All that rounds have changed."""
        return self._party.remember()

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        self._party.recall(memory)


class FrankWolfeLead:
    """The owner of the labels and of the model."""

    def __init__(self, job: Job, site: Site, shape: Shape, noise: Noise) -> None:
        solver = self._solver = solver_of(job)
        if site.labels is None:
            raise Refusal(f"{site.name} owns the labels of run {job.run}, and has none")
        target = check_vector(site.labels, "the labels")
        sketch = Sketch(shape.rows, solver.sketch, solver.sketch_seed)  # type: ignore[arg-type]
        calibration = self._calibration = _calibration(solver, sketch, shape)
        self.price: Price | None = None
        check_steps(solver.step, int(solver.rounds or 0), least_share(solver.tau, shape.sizes))
        if calibration is None:
            goal = np.asarray(sketch.of(target)) / len(target)
        else:
            calibration.check_labels(target)
            goal = calibration.release_labels(target, noise)
            if calibration.label_bound is not None:
                self.price = Price(calibration.event, calibration.guarantee)
        kept = len(shape.sizes) * int(solver.rounds or 0) * sketch.size * 8
        if kept > LARGEST // 2:
            raise ValueError(f"{kept} bytes of sketches are too many for a snapshot: sketch more")
        self._coordinator = make_coordinator(solver, goal, len(target), shape.sizes)

    @property
    def ending(self) -> Content | None:
        """What ends the run, once it is over."""
        if self._coordinator.round < int(self._solver.rounds or 0):
            return None
        return Content("end", scalars={"reason": "rounds", "restore": False})

    def open(self, replies: Sequence[Message]) -> list[Content]:
        """The first query."""
        return [_query(self._coordinator.open())]

    def gather(self, replies: Sequence[Message]) -> list[Content]:
        """The next query."""
        return [
            _query(
                self._coordinator.gather(
                    [_proposal(place, reply) for place, reply in enumerate(replies)]
                )
            )
        ]

    def metrics(self) -> dict[str, Any]:
        """The objective as messages tell it."""
        found = self._coordinator
        return {"value": found.released_value, "step": found.step}

    def result(self) -> dict[str, Any]:
        """The model, the weights of each party's columns apart."""
        return {
            "stop_reason": "rounds",
            "rounds": self._coordinator.round,
            **told_privacy(self._calibration),
            "weights": [part.tolist() for part in self._coordinator.weights],
            "intercept": 0.0,
        }

    def remember(self) -> dict[str, Any]:
        """All that rounds have changed."""
        return self._coordinator.remember()

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        self._coordinator.recall(memory)


def make_member(job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> FrankWolfeMember:
    """A party."""
    return FrankWolfeMember(job, place, site, shape, noise)


def make_lead(job: Job, site: Site, shape: Shape, noise: Noise) -> FrankWolfeLead:
    """The owner of the labels, which may be protected by noise."""
    return FrankWolfeLead(job, site, shape, noise)


def _query(query: Query) -> Content:
    return Content("query", {"residual": query.residual})


def _proposal(place: int, reply: Message) -> Proposal:
    if reply.kind != "proposal":
        raise Refusal(f"a proposal is awaited, got a {reply.kind}")
    return Proposal(reply.round, place, reply.whole("choice"), reply.arrays.get("sketch"))
