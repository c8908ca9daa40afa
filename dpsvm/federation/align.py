"""Alignment: the samples that the label owner and all parties have, found by their ids.

The label owner finds what it has in common with each party, by private set intersection
(:mod:`dpsvm.federation.intersection`). What is in all of these is the common set; each party then
finds, in the same way, which of its own ids are in it. Each site keeps those ids in a file, and
trains on these rows, in the order of the ids, when a job names the run in ``alignment``.

Ids are equal if their bytes in UTF-8 are: nothing is trimmed, and no case or accent is unified. No
id leaves its site, and no hash of one that others could try guesses against.

What is revealed, by intent:

- to all sites, and to whoever carries the messages: how many ids each site has, and how many are
  common;
- to the label owner: for each party, which of the label owner's samples it has, also those that
  another party lacks;
- to each party: which of its samples are common to all sites. So it knows of other people's
  samples at the label owner and at every other party that they are there.

Whose samples a run on the common rows is about is therefore known to its sites, and how many there
are. Its guarantee may be of "replace", "row" or "column", and never of "add-remove", which would
hide just that.

All of it supposes sites that follow the protocol. A site may put ids that it has guessed among its
own, as many as the size it has told: the label owner then learns which of them a party has, and a
party which of them all others have. Nobody can tell a guessed id from a real one. How many ids each
site has told stands in what every site keeps of the run.

Settings: ``of = "predict"`` aligns the samples of the [predict] files, for a job that predicts;
``least``, 1 by default, is the least number of common samples with which sites go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from dpsvm._memory import Remembers
from dpsvm.distributed.agreement import Agreement
from dpsvm.federation.alignments import FOLDER, Alignment
from dpsvm.federation.frames import LARGEST
from dpsvm.federation.job import Job, check_keys
from dpsvm.federation.members import (
    Content,
    Lead,
    Member,
    Shape,
    agreement_of,
    end_of_run,
    require_kind,
)
from dpsvm.federation.messages import Array, Message
from dpsvm.federation.site import Refusal, Site
from dpsvm.privacy.noise import Noise

REVEALED = (
    "an alignment shows every site how many ids each has and how many are common to all; the label "
    "owner which of its samples each party has; each party which of its samples all others have. A "
    "site that puts guessed ids among its own learns the same of those"
)
"""What sites learn of each other."""

_POINT = 33  # bytes
_HEAD = 1 << 20  # bytes of a frame beside its points, at most


@dataclass(frozen=True)
class Terms:
    """The settings of an alignment.

    of : "data", or "predict" for the samples of the [predict] files
    least : how many samples must be common
    """

    of: str
    least: int
    rounds: int = 2


def settings_of(job: Job) -> Terms:
    """What a job says.

    >>> settings_of(Job("ids-1", "align", ("lab",), "clinic", {"least": 50})).of
    'data'
    """
    check_keys(job.settings, {"of", "least"}, set())
    of, least = job.settings.get("of", "data"), job.settings.get("least", 1)
    if of not in ("data", "predict"):
        raise ValueError(f"of must be one of 'data', 'predict', got {of!r}")
    if type(least) is not int or least < 1:
        raise ValueError(f"least must be a whole number from 1, got {least!r}")
    return Terms(of, least)


class _Agreed(Agreement):
    """Two rounds, without noise."""

    calibration = None

    def __init__(self, settings: Terms) -> None:
        self.rounds, self.settings = settings.rounds, settings


def agree(settings: Terms, shape: Shape) -> _Agreed:
    """Two rounds; refused where the points of all ids are too many for a frame."""
    own, others = shape.rows, shape.sizes
    if own < 1:
        raise ValueError(f"the label owner must have ids to align, got {own}")
    common = min(own, *others)
    answer = _POINT * (2 * max(others) + own)
    asked = _POINT * sum(other + common for other in others)  # of all parties, in one snapshot
    if max(answer, asked) + _HEAD > LARGEST:
        raise ValueError(
            f"{max(answer, asked)} bytes of points are too many for a message or a snapshot: the "
            f"limit is {LARGEST - _HEAD}"
        )
    return _Agreed(settings)


class _Found(Remembers):
    """How far an alignment is, and the places of the common ids among a site's own."""

    _memory: ClassVar = ("round", "common")
    round = 0
    common: Array | None = None

    def metrics(self) -> dict[str, Any]:
        """How many samples are common."""
        return {"samples": 0 if self.common is None else len(self.common)}


class _Own:
    """The ids of a site, in order, and what it keeps of those that are common."""

    def __init__(self, job: Job, site: Site, settings: Terms) -> None:
        self._job, self._site, self._settings = job, site, settings
        if site.ids is None:
            raise Refusal(f"{site.name} has no sample ids, which run {job.run} aligns")
        if not all(_is_text(one) for one in site.ids):
            raise Refusal(f"{site.name} has a sample id that is no text")
        self.ids = sorted(site.ids)
        if any(one == other for one, other in pairwise(self.ids)):
            raise Refusal(f"{site.name} has a sample id twice")
        self._folder = None if site.state is None else site.state / FOLDER
        if self._folder is not None:
            self._alignment(np.zeros(0, dtype=np.int64)).check_place(self._folder)

    def refuse_few(self, count: int) -> None:
        """End a run that has found too little."""
        if not count:
            raise Refusal("no sample is common to all sites: there is nothing to train on")
        if count < self._settings.least:
            raise Refusal(f"fewer than {self._settings.least} samples are common to all sites")

    def keep(self, places: Array) -> None:
        """Write the file of the alignment, where the site has a place for it."""
        if self._folder is not None:
            self._alignment(places).save(self._folder)

    def _alignment(self, places: Array) -> Alignment:
        ids = tuple(self.ids[place] for place in places)
        return Alignment(self._job.run, self._job.digest, self._settings.of, ids)


def check_member(job: Job, place: int, site: Site, shape: Shape) -> None:
    """Refuse a site whose ids cannot be aligned."""
    _Own(job, site, agreement_of(job, shape).settings)


class AlignmentMember(Member):
    """A party: the server of the label owner's question, and then a client of the common set."""

    def __init__(self, job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> None:
        agreed = agreement_of(job, shape)
        self._found, self._owned = _Found(), shape.rows
        super().__init__(agreed, self._found)
        self._own = _Own(job, site, agreed.settings)
        sides = _sides()
        self._server, self._client = sides.Server(noise), sides.Client(noise)

    def answer(self, message: Message) -> Content:
        """Its points, and the label owner's under its key; then how many samples are common."""
        self.require_round(message)
        return self._matched(message) if message.round == 1 else self._aligned(message)

    def close(self, message: Message) -> dict[str, Any]:
        """The file of the alignment is written; there is no model."""
        common = self._found.common
        if common is None:
            raise Refusal("the run ended before it has found anything")
        self._own.keep(common)
        return {"weights": None, "samples": len(common)}

    def _matched(self, message: Message) -> Content:
        require_kind(message, "match", "the label owner's points are")
        ids = self._own.ids
        arrays = {
            "own": self._server.own(ids),
            "twice": self._server.again(message.arrays["blinded"], self._owned),
            "blinded": self._client.blinded(ids),
        }
        self._found.round = 1
        return Content("matched", arrays)

    def _aligned(self, message: Message) -> Content:
        require_kind(message, "common", "the points of the common samples are")
        own, twice = message.arrays["own"], message.arrays["twice"]
        common: list[int] = []
        if len(own) <= min(self._owned, len(self._own.ids)):  # more take more than their message
            common = self._client.common(own, twice, len(self._own.ids))
        if len(common) != len(own):
            raise Refusal("samples were named that are not common to the label owner and this site")
        self._own.refuse_few(len(common))
        self._found.round, self._found.common = 2, np.array(common, dtype=np.int64)
        return Content("aligned", scalars={"samples": len(common)})


class AlignmentLead(Lead):
    """The label owner: a client of each party, and then the server of the common set."""

    def __init__(self, job: Job, site: Site, shape: Shape, noise: Noise) -> None:
        agreed = agreement_of(job, shape)
        self._found, self._shape = _Found(), shape
        super().__init__(agreed, self._found)
        self._own = _Own(job, site, agreed.settings)
        sides = _sides()
        self._client, self._server = sides.Client(noise), sides.Server(noise)

    @property
    def ending(self) -> Content | None:
        """What ends the run, once every party has found the common set."""
        return end_of_run("aligned") if self._found.round >= self.agreed.rounds else None

    def open(self, replies: Sequence[Message]) -> list[Content]:
        """Its points, for all parties."""
        return [Content("match", {"blinded": self._client.blinded(self._own.ids)})]

    def gather(self, replies: Sequence[Message]) -> list[Content]:
        """The common set, for each party under two keys; at last nothing more."""
        asked = self._confirmed(replies) if self._found.round else self._compared(replies)
        self._found.round += 1
        return asked

    def close(self) -> None:
        """Write the file of the alignment."""
        if self._found.common is not None:
            self._own.keep(self._found.common)

    def result(self) -> dict[str, Any]:
        """How many samples are common, of how many."""
        sizes = {"samples": self._found.metrics()["samples"], "sizes": list(self._shape.sizes)}
        return super().result() | sizes | {"owned": len(self._own.ids)}

    def _compared(self, replies: Sequence[Message]) -> list[Content]:
        ids, common = self._own.ids, set(range(len(self._own.ids)))
        for reply, size in zip(replies, self._shape.sizes, strict=True):
            require_kind(reply, "matched", "the points of a party are")
            if len(reply.arrays["own"]) != size:
                raise Refusal("a party has sent more or fewer points than it has ids")
            arrays = reply.arrays["own"], reply.arrays["twice"]
            common &= set(self._client.common(*arrays, len(ids)))
        self._own.refuse_few(len(common))
        self._found.common = np.array(sorted(common), dtype=np.int64)
        own = self._server.own([ids[place] for place in self._found.common])
        return [
            Content(
                "common", {"own": own, "twice": self._server.again(one.arrays["blinded"], size)}
            )
            for one, size in zip(replies, self._shape.sizes, strict=True)
        ]

    def _confirmed(self, replies: Sequence[Message]) -> list[Content]:
        count = self._found.metrics()["samples"]
        if any(one.kind != "aligned" or one.whole("samples") != count for one in replies):
            raise Refusal(f"every party must have found {count} samples")
        return []


make_member, make_lead = AlignmentMember, AlignmentLead


def _sides() -> Any:
    """The two sides of an intersection."""
    try:
        return import_module("dpsvm.federation.intersection")
    except ImportError:
        raise Refusal(
            "an alignment needs openmined-psi: pip install 'dpsvm[psi]', on Linux with x86-64 and "
            "Python 3.11 to 3.13"
        ) from None


def _is_text(value: Any) -> bool:
    try:
        str.encode(value)
    except (TypeError, UnicodeEncodeError):
        return False
    return True
