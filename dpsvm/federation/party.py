"""A party of a run: answers what it is asked once, keeps the answer, and gives it again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dpsvm.federation.job import Job
from dpsvm.federation.members import Content, Member, Shape, make_member
from dpsvm.federation.messages import VERSION, Message, refusal
from dpsvm.federation.models import dump_model
from dpsvm.federation.site import (
    Price,
    Refusal,
    Site,
    charge_label,
    charge_once,
    charged,
    check_affordable,
    check_not_aborted,
)
from dpsvm.federation.store import Phase, Store, StoreError, no_phase
from dpsvm.privacy.minimiser import CertificateError
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.stream import SecretStream

NOT_BEGUN = -1
"""The round that a party holds before a run."""


@dataclass
class _Progress:
    """How far a party is: all that is kept of a run."""

    held: int = NOT_BEGUN  # the last round it has answered
    asked: str = ""  # digest of the question of that round
    reply: Message | None = None
    shape: Shape | None = None
    member: Member | None = None
    ended: bool = False


class Party:
    """The state machine of a party.

    A run is a sequence of rounds: 0 begins it, the last ends it. An answer is computed once, kept
    together with all that it depends on, and only then sent: who asks again gets the same bytes,
    who asks something else in its place, or a round out of turn, is refused. The budget is charged
    in round 0, before anything of the run is computed, and is found again by the run's name.

    What is kept and what is charged must fit together. A charge without its snapshot, a snapshot
    without its charge or a run without its noise key is refused, never begun anew.

    >>> import numpy as np
    >>> from dpsvm.federation.store import MemoryStore
    >>> job = Job("heart-1", "sharing", ("lab",), "lab", {"rounds": 2}, ids=False)
    >>> party = Party(job, Site("lab", np.eye(2)), MemoryStore())
    >>> party.handle(Message("heart-2", -1, "greet", scalars={"version": 1, "job": ""})).scalars
    {'reason': 'lab takes part in run heart-1, not in heart-2'}
    """

    def __init__(self, job: Job, site: Site, store: Store, *, phase: Phase = no_phase) -> None:
        self.job, self.site, self.store = job, site, store
        self.place = job.place(site.name)
        self.refused: str | None = None  # why the last request was, in full
        self.stopped: str | None = None  # why the run was given up
        self.price: Price | None = None  # of the run, once it is known
        self._phase = phase
        self._label = charge_label(job, site.name)
        self.restore()

    @property
    def held(self) -> int:
        """The last round it has answered."""
        return self._now.held

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self._now.ended

    def hello(self) -> Message:
        """Who it is; nothing is computed and nothing charged."""
        budget = None if self.site.ledger is None else float(self.site.ledger.remaining())
        return self._message(
            NOT_BEGUN,
            Content(
                "hello",
                scalars={
                    "version": VERSION,
                    "job": self.job.digest,
                    "party": self.site.name,
                    "rows": self.site.rows,
                    "columns": self.site.columns,
                    "ids": self.site.digest() if self.job.ids else "",
                    "held": self.held,
                    "budget": budget,
                },
            ),
        )

    def handle(self, message: Message) -> Message:
        """The answer to a message, or a refusal that says why there is none."""
        self.refused = None
        try:
            return self._handle(message)
        except (ValueError, CertificateError) as error:
            self.refused = told = str(error)
        except OSError as error:
            self.refused = f"{error.filename or 'a file'}: {error.strerror or error}"
            told = f"{self.site.name} cannot read or write one of its files"
        if self._halfway:
            with suppress(ValueError, OSError):  # then it stays so, and the next request is told
                self.restore()
        return refusal(self.job.run, message.round, told)

    def handle_bytes(self, data: bytes) -> bytes:
        """The bytes of the answer to the bytes of a message."""
        try:
            message = Message.decode(data)
        except ValueError as error:
            self.refused = str(error)
            return refusal(self.job.run, NOT_BEGUN, str(error)).encode()
        return self.handle(message).encode()

    def snapshot(self) -> dict[str, Any]:
        """All that it needs to go on as if it had not been interrupted."""
        now, shape, reply = self._now, self._now.shape, self._now.reply
        return {
            "job": self.job.digest,
            "party": self.site.name,
            "shape": None if shape is None else [shape.rows, shape.sizes, shape.columns],
            "held": now.held,
            "asked": now.asked,
            "reply": None if reply is None else [reply.kind, reply.arrays, reply.scalars],
            "member": None if now.member is None else now.member.remember(),
            "ended": now.ended,
        }

    def restore(self) -> None:
        """Go on from the store; refuse what does not fit to the job or to the ledger."""
        self._now, self._halfway = _Progress(), True
        self._restore()
        self._halfway = False

    def _restore(self) -> None:
        check_not_aborted(self.job, self.site, self.store.read("aborted"))
        kept = self.store.load()
        if kept is None:
            if charged(self.site, self._label) is not None:
                raise StoreError(
                    f"run {self.job.run} was charged to the ledger of {self.site.name}, and its "
                    "snapshot is lost: it cannot go on. Begin another run"
                )
            return
        if kept["job"] != self.job.digest or kept["party"] != self.site.name:
            raise StoreError(f"run {self.job.run} was begun with other terms, or by another party")
        if kept["held"] == NOT_BEGUN:
            return  # killed on the way to the charge, or just after it
        rows, sizes, columns = kept["shape"]
        shape = Shape(rows, tuple(sizes), columns)
        member = self._make_member(shape, begun=True)
        self._require_charge(member)
        member.recall(kept["member"])
        reply = self._message(kept["held"], Content(*kept["reply"]))
        self._now = _Progress(kept["held"], kept["asked"], reply, shape, member, kept["ended"])

    def _require_charge(self, member: Member) -> None:
        found = charged(self.site, self._label)
        if member.price is not None and found != member.price.event:
            raise StoreError(
                f"the ledger of {self.site.name} does not hold the charge of run {self.job.run}, "
                "which has begun: it is not the ledger that the run was charged to"
            )

    def _handle(self, message: Message) -> Message:
        if self._halfway:
            self.restore()
        if message.run != self.job.run:
            raise Refusal(
                f"{self.site.name} takes part in run {self.job.run}, not in {message.run}"
            )
        if message.kind == "greet":
            self._check_terms(message)
            return self.hello()
        if message.kind == "stop":
            self.stopped = message.text("reason")
            return self._message(message.round, Content("ended"))
        if message.kind == "rehearse":
            member = self._make_member(self._shape_of(message), begun=False, rehearse=True)
            if charged(self.site, self._label) is None:
                check_affordable(self.site, member.price)
            return self._message(message.round, Content("ready"))
        acts: dict[str, Callable[[Message], Content]] = {"begin": self._begin, "end": self._end}
        return self._once(message, acts.get(message.kind, self._answer))

    def _once(self, message: Message, act: Callable[[Message], Content]) -> Message:
        """Answer a round, or give the answer that it got."""
        now = self._now
        asked = hashlib.sha256(message.encode()).hexdigest()
        if message.round == now.held and now.reply is not None:
            if asked != now.asked:
                raise Refusal(
                    f"{self.site.name} has answered round {now.held}, to another question"
                )
            return now.reply
        if now.ended:
            raise Refusal(f"run {self.job.run} is over for {self.site.name}")
        if message.round != now.held + 1 or (message.kind == "begin") != (message.round == 0):
            raise Refusal(
                f"{self.site.name} awaits round {now.held + 1}, got a {message.kind} for round "
                f"{message.round}"
            )
        self._halfway = True
        self._phase("before draw")
        self._question = f"{message.round} {asked}"
        content = act(message)
        self._phase("after draw")
        now.held, now.asked = message.round, asked
        now.reply = reply = self._message(message.round, content)
        self.store.save(self.snapshot(), self._phase)
        self._halfway = False
        self._phase("after snapshot")
        return reply

    def _begin(self, message: Message) -> Content:
        shape = self._shape_of(message)
        before = charged(self.site, self._label) is not None
        member = self._make_member(shape, begun=before)
        if not before:
            check_affordable(self.site, member.price)
        self._now.shape = shape
        self.store.save(self.snapshot(), self._phase)  # a charge without a snapshot is a lost run
        self._phase("before charge")
        charge_once(self.site, self._label, member.price)
        self._phase("after charge")
        self._now.member = member
        self._stream.seek(self._question)
        return member.open()

    def _answer(self, message: Message) -> Content:
        self._stream.seek(self._question)
        return self._begun().answer(message)

    def _end(self, message: Message) -> Content:
        model = self._begun().close(message)
        self.store.write("model.json", dump_model(self.job, self.site, model))
        self._now.ended = True
        return Content("ended")

    def _begun(self) -> Member:
        if self._now.member is None:
            raise Refusal(f"{self.site.name} has not begun run {self.job.run}")
        return self._now.member

    def _check_terms(self, message: Message) -> None:
        if message.whole("version") != VERSION:
            raise Refusal(
                f"{self.site.name} speaks version {VERSION} of the protocol, the coordinator "
                f"version {message.whole('version')}"
            )
        if message.text("job") != self.job.digest:
            raise Refusal(
                f"{self.site.name} was given other terms for run {self.job.run} than the "
                "coordinator"
            )

    def _shape_of(self, message: Message) -> Shape:
        sizes = tuple(int(size) for size in message.arrays["sizes"])
        if len(sizes) != len(self.job.parties):
            raise Refusal(f"{len(self.job.parties)} sizes are needed, got {len(sizes)}")
        rows, network = message.whole("rows"), self.job.algorithm == "network"
        own = (0, self.site.rows) if network else (self.site.rows, self.site.columns)
        if (rows, sizes[self.place]) != own:
            raise Refusal(
                f"{self.site.name} has {self.site.rows} rows and {self.site.columns} columns, and "
                "the coordinator thinks otherwise"
            )
        return Shape(rows, sizes, self.site.columns if network else 0)

    def _make_member(self, shape: Shape, *, begun: bool, rehearse: bool = False) -> Member:
        key = bytes(32) if rehearse else self.store.key(begun=begun)
        self._stream = SecretStream(key)
        member = make_member(self.job, self.place, self.site, shape, Noise(self._stream))
        self.price = member.price
        return member

    def _message(self, number: int, content: Content) -> Message:
        return Message(self.job.run, number, content.kind, content.arrays, content.scalars)
