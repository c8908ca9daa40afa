"""What an algorithm does at a party and at the coordinator, apart from moving and keeping messages.

Every algorithm has a module with a member and a lead, made of the objects of :mod:`dpsvm.admm` and
:mod:`dpsvm.frank_wolfe`: they turn messages into those objects' own and back. The mathematics is
theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

from dpsvm._memory import Remembers
from dpsvm.federation.job import Job
from dpsvm.federation.messages import Array, Message, Scalar
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.tables import Table
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import Price, report_of


@dataclass(frozen=True, eq=False)
class Content:
    """A message without its run and round."""

    kind: str
    arrays: dict[str, Array] = field(default_factory=dict)
    scalars: dict[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True)
class Shape:
    """What all sites know of each other before a run begins."""

    rows: int  # of the samples all parties share; 0 in a network
    sizes: tuple[int, ...]  # columns of each party, or rows of each node
    columns: int = 0  # that all the nodes of a network have


Beside = tuple[dict[str, float], dict[str, float]]
"""The same figures of a joint model, and of one that a site could have had alone."""


class Member(Protocol):
    """A party's part in an algorithm."""

    price: Price | None

    def open(self) -> Content:
        """The answer to the beginning of a run."""

    def answer(self, message: Message) -> Content:
        """The answer to a round."""

    def close(self, message: Message) -> dict[str, Any]:
        """End the run; the model that the party keeps."""

    def remember(self) -> dict[str, Any]:
        """All that rounds have changed."""

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""


class Lead(Protocol):
    """The coordinator's part in an algorithm."""

    price: Price | None

    @property
    def ending(self) -> Content | None:
        """What ends the run, once it is over."""

    def open(self, replies: Sequence[Message]) -> list[Content]:
        """The first round: one content for all parties, or one for each."""

    def gather(self, replies: Sequence[Message]) -> list[Content]:
        """Take the answers of a round; the next one."""

    def metrics(self) -> dict[str, Any]:
        """How the run stands, from messages and labels."""

    def result(self) -> dict[str, Any]:
        """What the coordinator keeps."""

    def remember(self) -> dict[str, Any]:
        """All that rounds have changed."""

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""


def require_round(message: Message, last: int) -> None:
    """Refuse a round beyond those that the job names.

    >>> require_round(Message("r", 3, "ask"), 2)
    Traceback (most recent call last):
    ...
    dpsvm.federation.site.Refusal: the job has 2 rounds, got round 3
    """
    if message.round > last:
        raise Refusal(f"the job has {last} rounds, got round {message.round}")


class Keeper:
    """Remembers what an object of the mathematics does."""

    def __init__(self, keeps: Remembers) -> None:
        self._keeps = keeps

    def remember(self) -> dict[str, Any]:
        """All that rounds have changed."""
        return self._keeps.remember()

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        self._keeps.recall(memory)


def told_privacy(calibration: Any) -> dict[str, Any]:
    """What the coordinator's result tells of a run's privacy: guarantee and report, or None."""
    if calibration is None:
        return {"guarantee": None, "privacy": None}
    source = "a secret key of each site, from the operating system's entropy"
    report = report_of(calibration.guarantee, calibration.figures, seeded=False, source=source)
    return {"guarantee": report["guarantee"], "privacy": report}


_MODULES = {
    "sharing": "sharing",
    "network": "network",
    "frank-wolfe": "frank_wolfe",
    "predict": "prediction",
}


def settings_of_job(job: Job) -> Any:
    """The unfitted estimator or solver whose settings a job has: made once, for all its sites."""
    return job.once("settings", lambda: _of_settings(_module(job).settings_of, job))


def agreement_of(job: Job, shape: Shape) -> Any:
    """What the sites agree on once they know the shape of the data: made once, for all of them."""
    settings = settings_of_job(job)
    return job.once(shape, lambda: _of_settings(_module(job).agree, settings, shape))


def local_model(
    job: Job,
    tables: Mapping[str, Table],
    history: Sequence[dict[str, Any]],
    result: dict[str, Any],
) -> Beside:
    """The joint model beside one made alone, from the tables of one site, or of all the nodes."""
    found: Beside = _module(job).local_model(job, tables, history, result)
    return found


def _of_settings(make: Callable[..., Any], *given: Any) -> Any:
    try:
        return make(*given)
    except ValueError as error:
        raise ValueError(f"settings: {error}") from None


def make_member(job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> Member:
    """The part of a party; whatever it cannot do is refused here."""
    member: Member = _module(job).make_member(job, place, site, shape, noise)
    return member


def make_lead(job: Job, site: Site, shape: Shape, noise: Noise) -> Lead:
    """The part of the coordinator; whatever it cannot do is refused here."""
    lead: Lead = _module(job).make_lead(job, site, shape, noise)
    return lead


def _module(job: Job) -> Any:
    return import_module(f"dpsvm.federation.{_MODULES[job.algorithm]}")
