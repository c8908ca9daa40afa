"""A party of a run: answers what it is asked once, keeps the answer, and gives it again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpsvm.federation import witness
from dpsvm.federation.consent import Clock, utc_now
from dpsvm.federation.custody import PARTY, Custody
from dpsvm.federation.fixed_point import Sum
from dpsvm.federation.job import Job
from dpsvm.federation.journal import Journal
from dpsvm.federation.limits import OutOfRange, require_numbers
from dpsvm.federation.members import (
    Content,
    Member,
    Shape,
    make_member,
    rehearse_member,
    rounds_of,
)
from dpsvm.federation.messages import NOT_BEGUN, VERSION, Array, Message, Scalar, refusal
from dpsvm.federation.models import dump_model
from dpsvm.federation.shapes import require_terms, shape_told
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.store import Phase, Store, StoreError, no_phase, told_of
from dpsvm.federation.sums import PartySums
from dpsvm.privacy.minimiser import CertificateError
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import Price


@dataclass
class _Progress:
    """How far a party is: all that is kept of a run."""

    shape: Shape | None = None
    roster: dict[str, Array] = field(default_factory=dict)  # sum keys of all parties
    held: int = NOT_BEGUN  # the last round it has answered
    asked: str = ""  # digest of the question of that round
    heard: str = ""  # digest of all that the parties were asked together, up to that round
    reply: Content | None = None
    member: Member | None = None  # once the run is charged
    reserved: str = ""  # in the ledger, until it is charged
    ended: bool = False
    closed: str | None = None  # why nothing more is answered, though the run is not over


class Party:
    """The state machine of a party.

    A run is a sequence of rounds: 0 begins it, the last ends it. An answer is computed once, kept
    together with all that it depends on, and only then sent: who asks again gets the same bytes,
    who asks something else in its place, or a round out of turn, is refused. So is who asks
    something else after an answer that was out of range: that it was depends on data. Round 0
    reserves what the run costs and looks at no data. The first question of round 1 charges it, on
    the disk, and only then are the data opened and is anything computed of them, an error included.
    What is stopped before that is refunded, and never begun again. What is only added up leaves it
    masked, unless the terms say that sums are open.

    What is kept and what is charged must fit together. A charge without its snapshot, a snapshot
    without its charge, a run without its noise key, other data or an uncertified result are
    refused, for good, and never begun anew. One thing no program on this disk can see: a folder put
    back from a backup that was made after the charge. It would answer rounds again that were
    answered: never restore one.

    >>> import numpy as np
    >>> from dpsvm.federation.store import MemoryStore
    >>> job = Job("heart-1", "sharing", ("lab",), "lab", {"rounds": 2}, ids=False)
    >>> party = Party(job, Site("lab", np.eye(2)), MemoryStore())
    >>> party.handle(Message("heart-2", -1, "greet", scalars={"version": 1, "job": ""})).scalars
    {'reason': 'lab takes part in run heart-1, not in heart-2'}
    """

    def __init__(
        self,
        job: Job,
        site: Site,
        store: Store,
        *,
        phase: Phase = no_phase,
        clock: Clock = utc_now,
        journal: Journal | None = None,
    ) -> None:
        self.job, self.site, self.store = job, site, store
        self._clock, self._journal = clock, journal
        self.place = job.place(site.name)
        self.refused: str | None = None  # why the last request was, in full
        self.stopped: str | None = None  # why the run was given up
        self.price: Price | None = None  # of the run, once it is known
        self._phase = phase
        self.custody = Custody(job, site, store, PARTY)
        self.sums = PartySums(job, site, store)
        self.restore()

    @property
    def held(self) -> int:
        """The last round it has answered."""
        return self._now.held

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self._now.ended

    @property
    def closed(self) -> str | None:
        """Why it answers nothing more though the run is not over, None if it does."""
        return self._now.closed

    @property
    def _begun(self) -> bool:
        return self.held != NOT_BEGUN or bool(self.custody.charges)

    def hello(self) -> Message:
        """Who it is; nothing is computed and nothing charged."""
        budget = None if self.site.ledger is None else float(self.site.ledger.remaining())
        budget = None if budget == math.inf else budget
        count, head = witness.head_of(self.site)
        scalars: dict[str, Scalar] = {
            "version": VERSION,
            "job": self.job.digest,
            "party": self.site.name,
            "rows": self.site.rows,
            "columns": self.site.columns,
            "ids": self.site.digest() if self.job.compares_ids else "",
            "held": self.held,
            "budget": budget,
            "ledger": count,
            "head": head,
            **self.sums.introduction(begun=self._begun),
        }
        seen = witness.seen(self.site, self.job.parties)
        return Message(self.job.run, NOT_BEGUN, "hello", seen, scalars)

    def handle(self, message: Message) -> Message:
        """The answer to a message, or a refusal that says why there is none."""
        self.refused = None
        try:
            if self.site.consent is not None and message.kind != "stop":
                self.site.consent.require(self._clock())
            if self._halfway:
                self.restore()
            answer = self._handle(message)
            return answer if self._journal is None else self._journal.answered(message, answer)
        except CertificateError as error:
            self.refused = told = str(error)
            self._close(told)
        except ValueError as error:
            self.refused, told = str(error), told_of(error)
        except OSError as error:
            self.refused = f"{error.filename or 'a file'}: {error.strerror or error}"
            told = f"{self.site.name} cannot read or write one of its files"
        except Exception as error:  # a party that answers is worth more than its stack
            self.refused = f"{type(error).__name__}: {error}"
            told = f"{self.site.name} failed, and knows why"
        if self._journal is not None:
            self._journal.refused(self.refused, message)
        return refusal(self.job.run, message.round, told)

    def handle_bytes(self, data: bytes) -> bytes:
        """The bytes of the answer to the bytes of a message."""
        try:
            message = Message.decode(data)
        except ValueError as error:
            self.refused = str(error)
            if self._journal is not None:
                self._journal.refused(self.refused)
            return refusal(self.job.run, NOT_BEGUN, str(error)).encode()
        return self.handle(message).encode()

    def snapshot(self) -> dict[str, Any]:
        """All that it needs to go on as if it had not been interrupted."""
        member = self._now.member
        progress = vars(self._now) | {"member": None if member is None else member.remember()}
        names = {"job": self.job.digest, "party": self.site.name}
        return {**names, **progress, "data": self.custody.fingerprint}

    def restore(self) -> None:
        """Go on from the store; refuse what does not fit to the job or to the ledger."""
        self._halfway = True  # until it has succeeded
        self._now = self._restored()
        self._halfway = False

    def _restored(self) -> _Progress:
        kept = self.custody.load()
        if kept is None:
            return _Progress()
        if kept["job"] != self.job.digest or kept["party"] != self.site.name:
            raise StoreError(f"run {self.job.run} was begun with other terms, or by another party")
        if kept["held"] == NOT_BEGUN:
            return _Progress()  # killed on the way to the charge, or just after it
        rows, sizes, columns = kept["shape"]
        shape = Shape(rows, tuple(sizes), columns)
        self._stream = self.custody.stream(begun=True)
        self.price = rehearse_member(self.job, self.place, self.site, shape)
        self.sums.use(kept["roster"])
        own = ("held", "asked", "heard", "ended", "closed", "reserved", "roster")
        reply = Content(*kept["reply"])
        now = _Progress(shape=shape, reply=reply, **{name: kept[name] for name in own})
        if now.held > 0:
            self.custody.require_charge(self.price)
            now.member = self._make_member(shape)
            self.custody.require_data(kept["data"])
            now.member.recall(kept["member"])
        return now

    def _close(self, reason: str) -> None:
        """Answer nothing more: go back to the last round, and keep that it was the last."""
        self.restore()
        self._now.closed = reason
        self.store.save(self.snapshot())

    def _handle(self, message: Message) -> Message:
        if message.run != self.job.run:
            raise Refusal(
                f"{self.site.name} takes part in run {self.job.run}, not in {message.run}"
            )
        if message.kind in ("greet", "rehearse") and message.round != NOT_BEGUN:
            raise Refusal(
                f"a {message.kind} belongs to no round, got one for round {message.round}"
            )
        if message.kind == "greet":
            require_terms(self.job, self.site, message)
            return self.hello()
        if message.kind == "stop":
            self.stopped = message.text("reason")
            self._give_back(message.round)
            return Message(self.job.run, message.round, "stopped")
        if message.kind == "rehearse":
            self.custody.rehearse()
            self.sums.checked(message.arrays, begun=self._begun)
            self._priced(message)
            return Message(self.job.run, message.round, "ready")
        acts: dict[str, Callable[[Message], Content]] = {"begin": self._begin, "end": self._end}
        return self._once(message, acts.get(message.kind, self._answer))

    def _once(self, message: Message, act: Callable[[Message], Content]) -> Message:
        """Answer a round, or give the answer that it got."""
        now = self._now
        asked = _digest(message)
        if message.round == now.held and now.reply is not None:
            if asked != now.asked:
                raise Refusal(
                    f"{self.site.name} has answered round {now.held}, to another question"
                )
            return Message(self.job.run, now.held, *now.reply)
        if now.ended:
            raise Refusal(f"run {self.job.run} is over for {self.site.name}")
        if now.closed is not None:
            raise Refusal(now.closed)
        if message.round != now.held + 1 or (message.kind == "begin") != (message.round == 0):
            raise Refusal(
                f"{self.site.name} awaits round {now.held + 1}, got a {message.kind} for round "
                f"{message.round}"
            )
        require_numbers(
            self.job, f"the {message.kind} for {self.site.name}", message.kind, message.arrays
        )
        self._halfway = True
        self._phase("before draw")
        self._asked = asked
        self.custody.require_question(message.round, asked)
        content = act(message)
        self._phase("after draw")
        reply = Message(self.job.run, message.round, *content)
        now.held, now.asked, now.reply = message.round, asked, content
        self.store.save(self.snapshot(), self._phase)
        self._halfway = False
        self._phase("after snapshot")
        return reply

    def _begin(self, message: Message) -> Content:
        roster = self.sums.checked(message.arrays, begun=self._begun)
        price = self._priced(message)
        self._stream = self.custody.stream(begun=bool(self.custody.charges))
        now = self._now
        now.shape, now.roster = shape_told(self.job, self.site, message), roster
        sizes = {"sizes": message.arrays["sizes"]}
        now.heard = _digest(Message(message.run, 0, "begin", sizes, message.scalars))
        self.store.save(self.snapshot(), self._phase)  # a charge without a snapshot is a lost run
        self._phase("before reserve")
        now.reserved = self.custody.reserve(price, rounds_of(self.job, now.shape))
        self._phase("after reserve")
        witness.keep(self.site, self.job.parties, message)
        self.sums.use(roster)
        return Content("ready")

    def _paid(self) -> Member:
        """The member: it is made of data, so the run is charged first, on the disk."""
        now = self._now
        if now.member is None:
            assert now.shape is not None
            self._phase("before charge")
            self.custody.commit(self.price, now.reserved)
            self._phase("after charge")
            now.member, now.reserved = self._make_member(now.shape), ""
        return now.member

    def _answer(self, message: Message) -> Content:
        member = self._paid()
        now = self._now
        now.heard = _digest(member.common(message), now.heard)
        self._stream.seek(f"{message.round} {now.heard} {self._asked}")
        found = member.answer(message)
        try:
            if isinstance(found, Sum):
                return self.sums.content(found, message.round, now.heard)
            require_numbers(self.job, f"the answer of {self.site.name}", found.kind, found.arrays)
        except OutOfRange:  # which depends on the data: no other question of the round is looked at
            self.custody.keep_question(message.round, self._asked)
            raise
        return found

    def _end(self, message: Message) -> Content:
        model = self._paid().close(message)
        self.store.write("model.json", dump_model(self.job, self.site, model))
        self._now.ended = True
        return Content("ended")

    def _give_back(self, number: int) -> None:
        """Refund a run that is stopped before anybody was asked for an answer from data.

        One that is stopped in round 1 may have been charged elsewhere, and may be resumed: its
        reservation stays until it expires, or until the site gives the run up.
        """
        reserved = self._now.held == 0 and self.price is not None
        if number <= 0 and (reserved or self.custody.reserved):
            self._halfway = True  # whatever comes next is refused
            self.custody.refund(str(self.stopped))

    def _priced(self, message: Message) -> Price | None:
        """What a run of these sizes costs; all that is refused without a look at the data is."""
        shape = shape_told(self.job, self.site, message)
        self.price = rehearse_member(self.job, self.place, self.site, shape)
        self.custody.check(self.price)
        witness.require_witnessed(self.site, self.job.parties, message)
        return self.price

    def _make_member(self, shape: Shape) -> Member:
        self._stream.seek("member")
        noise, own = Noise(self._stream), (self.job, self.place, self.site, shape)
        return self.custody.opened(lambda: make_member(*own, noise))


def _digest(message: Message, before: str = "") -> str:
    """Of a message, and of those before it."""
    return hashlib.sha256(before.encode() + message.encode()).hexdigest()
