"""What an algorithm does at a party and at the coordinator, apart from moving and keeping messages.

Every algorithm has a module, made of the objects of :mod:`dpsvm.admm` and
:mod:`dpsvm.frank_wolfe`, with

    settings_of(job)           the unfitted estimator or solver whose settings a job has
    agree(settings, shape)     what the sites agree on
    check_member(..)           what a member refuses without a look at its data
    make_member, make_lead     a :class:`Member` and a :class:`Lead`, which turn messages into those
                               objects' own and back. The mathematics is theirs
    local_model(run)           the joint model beside one that a site could have had alone
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, TypeVar

from dpsvm._renamed import check_names
from dpsvm.distributed.agreement import Agreement
from dpsvm.federation.fixed_point import Sum
from dpsvm.federation.job import Job, told_where
from dpsvm.federation.limits import check_rounds, require_frame
from dpsvm.federation.messages import Array, Message, Scalar
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.tables import Table
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import Price, report_of

Kind = TypeVar("Kind")

_KEY = "a secret key of each site, from the operating system's entropy"


class Content(NamedTuple):
    """A message without its run and round."""

    kind: str
    arrays: Mapping[str, Array] = {}
    scalars: Mapping[str, Scalar] = {}


def end_of_run(reason: str, *, restore: bool = False) -> Content:
    """What ends a run."""
    return Content("end", scalars={"reason": reason, "restore": restore})


class Shape(NamedTuple):
    """What all sites know of each other before a run begins."""

    rows: int  # of the samples all parties share, or the label owner's to align; 0 in a network
    sizes: tuple[int, ...]  # columns of each party, rows of each node, or ids to align
    columns: int = 0  # that all the nodes of a network have


@dataclass(frozen=True)
class Finished:
    """A finished run, and the tables of one site, or of all the nodes of a network."""

    job: Job
    tables: Mapping[str, Table]
    history: Sequence[dict[str, Any]]
    result: dict[str, Any]


Beside = tuple[dict[str, float], dict[str, float]]
"""The same figures of a joint model, and of one that a site could have had alone."""


class _Part:
    """What both sides are: made of what was agreed on, and of an object of the mathematics.

    keeps : that object, whose memory is kept
    """

    def __init__(self, agreed: Agreement, keeps: Any) -> None:
        self.agreed, self._keeps = agreed, keeps

    def remember(self) -> dict[str, Any]:
        """All that rounds have changed."""
        found: dict[str, Any] = self._keeps.remember()
        return found

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        self._keeps.recall(memory)


class Member(_Part):
    """A party's part in an algorithm."""

    @property
    def price(self) -> Price | None:
        """Of what the party has."""
        return self.agreed.member_price

    def answer(self, message: Message) -> Content | Sum:
        """The answer to a round, or what it adds to the sum of all parties."""
        raise NotImplementedError

    def common(self, message: Message) -> Message:
        """What all parties were asked, of a question: masks of a sum depend on it."""
        return message

    def close(self, message: Message) -> dict[str, Any]:
        """End the run; the model that the party keeps, without weights if it is not the party's."""
        return {"weights": None}

    def require_round(self, message: Message) -> None:
        """Refuse a round beyond those that the job names."""
        if message.round > self.agreed.rounds:
            raise Refusal(f"the job has {self.agreed.rounds} rounds, got round {message.round}")


class Lead(_Part):
    """The coordinator's part in an algorithm."""

    @property
    def price(self) -> Price | None:
        """Of what the coordinator has."""
        return self.agreed.lead_price

    @property
    def ending(self) -> Content | None:
        """What ends the run, once it is over."""
        return end_of_run("rounds") if self._keeps.round >= self.agreed.rounds else None

    def open(self, replies: Sequence[Message]) -> list[Content]:
        """The first round: one content for all parties, or one for each."""
        return [self.question(self._keeps.open())]

    def gather(self, replies: Sequence[Message]) -> list[Content]:
        """Take the answers of a round; the next one."""
        told = [self.told(place, reply) for place, reply in enumerate(replies)]
        return [self.question(self._keeps.gather(told))]

    def question(self, asked: Any) -> Content:
        """What the mathematics' object asks of all parties."""
        raise NotImplementedError

    def told(self, place: int, reply: Message) -> Any:
        """The answer of a party, as that object takes it."""
        raise NotImplementedError

    def close(self) -> None:
        """The run is over: keep what is kept outside of its folder."""

    def metrics(self) -> dict[str, Any]:
        """How the run stands, from messages and labels."""
        found: dict[str, Any] = self._keeps.metrics()
        return found

    def result(self) -> dict[str, Any]:
        """What the coordinator keeps: why the run ended, and what was guaranteed."""
        noise, report = self.agreed.calibration, None
        if noise is not None:
            report = report_of(noise.guarantee, noise.figures, seeded=False, source=_KEY)
        return {
            "stop_reason": None if self.ending is None else self.ending.scalars["reason"],
            "rounds": self._keeps.round,
            "guarantee": None if report is None else report["guarantee"],
            "privacy": report,
        }


class SumLead(Lead):
    """A lead that needs the sum of the answers only, and sees no single one.

    squares : whether squares are summed beside the numbers
    """

    squares: ClassVar[bool] = False

    def gather_sum(self, number: int, total: Sum) -> list[Content]:
        """Take the sum of a round; the next one."""
        raise NotImplementedError


def require_kind(message: Message, kind: str, what: str) -> None:
    """Refuse a message of another kind.

    >>> require_kind(Message("r", 3, "ready"), "price", "a price is")
    Traceback (most recent call last):
    ...
    dpsvm.federation.site.Refusal: a price is awaited, got a ready
    """
    if message.kind != kind:
        raise Refusal(f"{what} awaited, got a {message.kind}")


def require_labels(job: Job, site: Site) -> Any:
    """The labels of their owner."""
    if not site.labelled:
        raise Refusal(f"{site.name} owns the labels of run {job.run}, and has none")
    return site.open().labels


def with_settings(
    kind: type[Kind],
    settings: Mapping[str, Any],
    *,
    without: Sequence[str],
    renamed: Mapping[str, str],
    **more: Any,
) -> Kind:
    """An unfitted estimator or solver with these settings, and what else is given.

    without : those that are not for a job; renamed : those that have another name now

    >>> from dpsvm.admm import NetworkADMM
    >>> with_settings(NetworkADMM, {"cost": 1.0}, without=["track"], renamed={"cost": "C"})
    Traceback (most recent call last):
    ...
    ValueError: 'cost' is called 'C' now
    """
    parameters = inspect.signature(kind).parameters
    known = [name for name in parameters if name not in without]
    check_names(settings, renamed)
    for name, value in settings.items():
        if name not in known:
            raise ValueError(f"unknown setting {name!r}; known are {', '.join(known)}")
        switch = isinstance(parameters[name].default, bool)
        if isinstance(value, dict) or (isinstance(value, bool) and not switch):
            raise ValueError(f"{name} cannot be {value!r}")
    return kind(**settings, **more)


def settings_of_job(job: Job) -> Any:
    """The unfitted estimator or solver whose settings a job has: made once, for all its sites."""
    with _told_settings():
        return job.once("settings", lambda: _settings_of(job))


def most_rounds(job: Job) -> int:
    """How many rounds the settings of a job allow.

    >>> most_rounds(Job("r", "sharing", ("a", "b"), "a", {"rounds": 5}))
    5
    """
    return 1 if job.algorithm == "predict" else int(settings_of_job(job).rounds)


def agreement_of(job: Job, shape: Shape) -> Any:
    """What the sites agree on once they know the shape of the data: made once, for all of them."""
    settings = settings_of_job(job)
    with _told_settings():
        require_frame(shape.rows, "a number for every row")
        return job.once(shape, lambda: _module(job).agree(settings, shape))


def rehearse_member(job: Job, place: int, site: Site, shape: Shape) -> Price | None:
    """What a party's part costs; what can be refused without its data is. Nothing is opened."""
    agreed = agreement_of(job, shape)
    _module(job).check_member(job, place, site, shape)
    price: Price | None = agreed.member_price
    return price


def rounds_of(job: Job, shape: Shape) -> int:
    """How many rounds there are at most."""
    rounds: int = agreement_of(job, shape).rounds
    return rounds


def is_paid(job: Job, shape: Shape) -> bool:
    """Whether any side pays for a run."""
    return agreement_of(job, shape).price is not None


def price_of_lead(job: Job, shape: Shape) -> Price | None:
    """What the coordinator's part costs."""
    price: Price | None = agreement_of(job, shape).lead_price
    return price


def make_member(job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> Member:
    """The part of a party; whatever it cannot do is refused here."""
    member: Member = _module(job).make_member(job, place, site, shape, noise)
    return member


def make_lead(job: Job, site: Site, shape: Shape, noise: Noise) -> Lead:
    """The part of the coordinator; whatever it cannot do is refused here."""
    lead: Lead = _module(job).make_lead(job, site, shape, noise)
    return lead


def local_model(run: Finished) -> Beside:
    """The joint model of a run beside one that was made alone."""
    found: Beside = _module(run.job).local_model(run)
    return found


def _settings_of(job: Job) -> Any:
    found = _module(job).settings_of(job)
    check_rounds(getattr(found, "rounds", None))
    return found


@contextmanager
def _told_settings() -> Iterator[None]:
    """Settings of a type or a size that the mathematics cannot take are an error of theirs."""
    with told_where("settings"):
        try:
            yield
        except (TypeError, OverflowError, MemoryError, RecursionError) as error:
            raise ValueError(f"these cannot be used: {error or type(error).__name__}") from None


def _module(job: Job) -> Any:
    name = "prediction" if job.algorithm == "predict" else job.algorithm.replace("-", "_")
    return import_module(f"dpsvm.federation.{name}")
