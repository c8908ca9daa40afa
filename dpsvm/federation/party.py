"""A party of a run: answers what it is asked once, keeps the answer, and gives it again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpsvm.federation.custody import PARTY, Custody
from dpsvm.federation.fixed_point import Sum
from dpsvm.federation.job import Job
from dpsvm.federation.members import Content, Member, Shape, make_member
from dpsvm.federation.messages import NOT_BEGUN, VERSION, Array, Message, Scalar, refusal
from dpsvm.federation.models import dump_model
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.store import Phase, Store, StoreError, no_phase, told_of
from dpsvm.federation.sums import PartySums
from dpsvm.privacy.minimiser import CertificateError
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import Price
from dpsvm.privacy.stream import KEY_BYTES, SecretStream


@dataclass
class _Progress:
    """How far a party is: all that is kept of a run."""

    shape: Shape | None = None
    roster: dict[str, Array] = field(default_factory=dict)  # sum keys of all parties
    held: int = NOT_BEGUN  # the last round it has answered
    asked: str = ""  # digest of the question of that round
    reply: Content | None = None
    member: Member | None = None
    ended: bool = False
    closed: str | None = None  # why nothing more is answered, though the run is not over


class Party:
    """The state machine of a party.

    A run is a sequence of rounds: 0 begins it, the last ends it. An answer is computed once, kept
    together with all that it depends on, and only then sent: who asks again gets the same bytes,
    who asks something else in its place, or a round out of turn, is refused. The budget is charged
    in round 0, before anything of the run is computed, and is found again by the run's name. What
    is only added up leaves it masked, unless the terms say that sums are open.

    What is kept and what is charged must fit together. A charge without its snapshot, a snapshot
    without its charge, a run without its noise key, other data or an uncertified result are
    refused, for good, and never begun anew. One thing no program on this disk can see: a folder put
    back from a backup. It would answer rounds again that were answered: never restore one.

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
        scalars: dict[str, Scalar] = {
            "version": VERSION,
            "job": self.job.digest,
            "party": self.site.name,
            "rows": self.site.rows,
            "columns": self.site.columns,
            "ids": self.site.digest() if self.job.ids else "",
            "held": self.held,
            "budget": budget,
            **self.sums.introduction(begun=self._begun),
        }
        return Message(self.job.run, NOT_BEGUN, "hello", scalars=scalars)

    def handle(self, message: Message) -> Message:
        """The answer to a message, or a refusal that says why there is none."""
        self.refused = None
        try:
            if self._halfway:
                self.restore()
            return self._handle(message)
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
        member = self._make_member(shape, begun=True)
        self.custody.require_charge(member.price)
        self.custody.require_data(kept["data"])
        member.recall(kept["member"])
        self.sums.use(kept["roster"])
        own = {name: kept[name] for name in ("held", "asked", "ended", "closed", "roster")}
        return _Progress(shape=shape, reply=Content(*kept["reply"]), member=member, **own)

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
            self._check_terms(message)
            return self.hello()
        if message.kind == "stop":
            self.stopped = message.text("reason")
            return Message(self.job.run, message.round, "stopped")
        if message.kind == "rehearse":
            # Built and dropped: what would be refused in the run is refused now.
            self.sums.checked(message.arrays, begun=self._begun)
            unused = SecretStream(bytes(KEY_BYTES))
            self.custody.check(self._of_noise(unused, self._shape_of(message)).price)
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
        self._halfway = True
        self._phase("before draw")
        self._asked, self._question = asked, f"{message.round} {asked}"
        content = act(message)
        self._phase("after draw")
        reply = Message(self.job.run, message.round, *content)
        now.held, now.asked, now.reply = message.round, asked, content
        self.store.save(self.snapshot(), self._phase)
        self._halfway = False
        self._phase("after snapshot")
        return reply

    def _begin(self, message: Message) -> Content:
        self._now.roster = self.sums.checked(message.arrays, begun=self._begun)
        shape = self._shape_of(message)
        member = self._make_member(shape, begun=bool(self.custody.charges))
        self.custody.check(member.price)
        self._now.shape = shape
        self.store.save(self.snapshot(), self._phase)  # a charge without a snapshot is a lost run
        self._phase("before charge")
        self.custody.pay(member.price)
        self._phase("after charge")
        self._now.member = member
        self.sums.use(self._now.roster)
        self._stream.seek(self._question)
        return member.open()

    def _answer(self, message: Message) -> Content:
        self._stream.seek(self._question)
        member = self._now.member
        assert member is not None
        common = member.common(message)
        found = member.answer(message)
        if not isinstance(found, Sum):
            return found
        asked = self._asked if common is message else _digest(common)
        return self.sums.content(found, message.round, asked)

    def _end(self, message: Message) -> Content:
        assert self._now.member is not None
        model = self._now.member.close(message)
        self.store.write("model.json", dump_model(self.job, self.site, model))
        self._now.ended = True
        return Content("ended")

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
        if len(sizes) != len(self.job.parties) or min(sizes) < 1:
            raise Refusal(f"{len(self.job.parties)} sizes from 1 on are needed, got {sizes}")
        if self.job.sizes not in (None, sizes):
            raise Refusal(f"the sizes of the parties were agreed to be {self.job.sizes}")
        rows, network = message.whole("rows"), self.job.algorithm == "network"
        own = (0, self.site.rows) if network else (self.site.rows, self.site.columns)
        if (rows, sizes[self.place]) != own:
            raise Refusal(
                f"{self.site.name} has {self.site.rows} rows and {self.site.columns} columns, and "
                "the coordinator thinks otherwise"
            )
        return Shape(rows, sizes, self.site.columns if network else 0)

    def _make_member(self, shape: Shape, *, begun: bool) -> Member:
        self._stream = self.custody.stream(begun=begun)
        return self._of_noise(self._stream, shape)

    def _of_noise(self, stream: SecretStream, shape: Shape) -> Member:
        stream.seek("member")
        member = make_member(self.job, self.place, self.site, shape, Noise(stream))
        self.price = member.price
        return member


def _digest(message: Message) -> str:
    return hashlib.sha256(message.encode()).hexdigest()
