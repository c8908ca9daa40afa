"""Private distributed Frank-Wolfe between sites: the objects of :mod:`dpsvm.frank_wolfe`."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from dpsvm._renamed import FRANK_WOLFE
from dpsvm.federation.job import Job
from dpsvm.federation.limits import require_frame
from dpsvm.federation.members import (
    Beside,
    Content,
    Finished,
    Lead,
    Member,
    Shape,
    agreement_of,
    require_kind,
    require_labels,
    settings_of_job,
    with_settings,
)
from dpsvm.federation.messages import Message
from dpsvm.federation.site import Site
from dpsvm.frank_wolfe.agreement import Agreement, check_labels
from dpsvm.frank_wolfe.checks import canonical_columns, check_count, check_vector
from dpsvm.frank_wolfe.comparison import alone
from dpsvm.frank_wolfe.distributed import DistributedFrankWolfe
from dpsvm.frank_wolfe.messages import Proposal, Query
from dpsvm.frank_wolfe.private import PrivateDistributedFrankWolfe
from dpsvm.privacy.noise import Noise

Solver = DistributedFrankWolfe | PrivateDistributedFrankWolfe

_ELSEWHERE = ("accountant", "random_state", "send")
_MOST_DRAWN = 1 << 30  # numbers of J


def settings_of(job: Job) -> Solver:
    """The solver whose settings a job has; with an epsilon, the private one.

    The numbers of rounds and of sketched rows must be given: theory would propose them from the
    labels, which the parties do not have. A sketch of 0 rows sends whole columns. A private run
    needs the sizes of all parties in the job: the noise of each depends on those of the others.

    >>> settings_of(Job("r", "frank-wolfe", ("a",), "a", {"radius": 1.0, "rounds": 5})).rounds
    5
    """
    private = "epsilon" in job.settings
    kind: type[Solver] = PrivateDistributedFrankWolfe if private else DistributedFrankWolfe
    settings = dict(job.settings)
    if settings.get("sketch") == 0:
        settings["sketch"] = None
    for name in ("radius", "rounds", *(("sketch", "delta", "entry_bound") if private else ())):
        if name not in settings:
            raise ValueError(f"{name!r} is missing")
    if private and job.sizes is None:
        raise ValueError("a private Frank-Wolfe needs sizes, the columns of each party, in the job")
    solver = with_settings(kind, settings, without=_ELSEWHERE, renamed=FRANK_WOLFE)
    check_count(solver.rounds, "rounds")
    if isinstance(solver.sketch, str):
        raise ValueError(f"sketch must be a number of rows, got {solver.sketch!r}")
    if isinstance(solver, PrivateDistributedFrankWolfe):
        check_labels(solver.public_labels, solver.label_bound)
    return solver


def agree(settings: Solver, shape: Shape) -> Agreement:
    """What the parties and the label owner agree on."""
    sketch = shape.rows if settings.sketch is None else int(settings.sketch)
    rounds = check_count(settings.rounds, "rounds")
    kept = sum(min(rounds, columns) for columns in shape.sizes)
    require_frame(sum(shape.sizes), "a weight for every column")
    require_frame(2 * kept * sketch, "a snapshot of all sketches, which a smaller one makes fit,")
    if settings.sketch is not None and sketch * shape.rows > _MOST_DRAWN:
        raise ValueError(f"a sketch of {sketch} x {shape.rows} numbers is too large to be drawn")
    return Agreement.of(settings, shape.sizes, shape.rows)


def check_member(job: Job, place: int, site: Site, shape: Shape) -> None:
    """There is nothing that the agreement has not refused."""


class FrankWolfeMember(Member):
    """A party's columns; the model is the coordinator's."""

    def __init__(self, job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> None:
        agreed = agreement_of(job, shape)
        table = site.open().table
        table = agreed.clipped(canonical_columns(table) if sparse.issparse(table) else table)
        self._party = agreed.member(place, table, noise)
        super().__init__(agreed, self._party)

    def answer(self, message: Message) -> Content:
        """A vertex, and its column's sketch if it was not sent before."""
        require_kind(message, "query", "a query is")
        self.require_round(message)
        proposal = self._party.answer(Query(message.round, message.arrays["residual"]))
        arrays = {} if proposal.sketch is None else {"sketch": proposal.sketch}
        return Content("proposal", arrays, {"choice": int(proposal.choice)})


class FrankWolfeLead(Lead):
    """The owner of the labels, which noise may protect, and of the model."""

    def __init__(self, job: Job, site: Site, shape: Shape, noise: Noise) -> None:
        agreed, labels = agreement_of(job, shape), require_labels(job, site)
        target = agreed.clipped_labels(check_vector(labels, "the labels"))
        super().__init__(agreed, agreed.lead(target, noise))

    def question(self, asked: Query) -> Content:
        """The residual."""
        return Content("query", {"residual": asked.residual})

    def told(self, place: int, reply: Message) -> Proposal:
        """A vertex, and its column's sketch if it was not sent before."""
        require_kind(reply, "proposal", "a proposal is")
        return Proposal(reply.round, place, reply.whole("choice"), reply.arrays.get("sketch"))

    def result(self) -> dict[str, Any]:
        """The model, the weights of each party's columns apart."""
        weights = [part.tolist() for part in self._keeps.weights]
        return super().result() | {"weights": weights, "intercept": 0.0}


make_member, make_lead = FrankWolfeMember, FrankWolfeLead


def local_model(run: Finished) -> Beside:
    """The value after the last round, beside that of the label owner's columns in the same ball."""
    [(owner, table)] = run.tables.items()
    settings = settings_of_job(run.job)
    radius = settings.radius
    if isinstance(radius, list):
        radius = radius[run.job.place(owner)] if owner in run.job.parties else max(radius)
    local = {"value": alone(settings, radius, table.columns, table.labels)}
    return {"value": float(run.history[-1]["value"])}, local
