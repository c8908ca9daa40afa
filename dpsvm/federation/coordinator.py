"""The coordinator of a run: asks all parties in step, and keeps what it asks before it does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpsvm.federation import witness
from dpsvm.federation.consent import Clock, utc_now
from dpsvm.federation.custody import COORDINATOR, Custody
from dpsvm.federation.job import Job
from dpsvm.federation.journal import Journal
from dpsvm.federation.limits import require_numbers
from dpsvm.federation.members import (
    Content,
    Lead,
    Shape,
    SumLead,
    is_paid,
    make_lead,
    price_of_lead,
    rounds_of,
)
from dpsvm.federation.messages import NOT_BEGUN, VERSION, Array, Message, MessageError
from dpsvm.federation.models import dump_model
from dpsvm.federation.shapes import agreed_shape
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.store import MemoryStore, Phase, Store, StoreError, no_phase, told_of
from dpsvm.federation.sums import CoordinatorSums
from dpsvm.federation.turn import Replies, Turn
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import Price
from dpsvm.privacy.stream import KEY_BYTES


@dataclass
class _Progress:
    """How far the run is: all that is kept beside the lead's own memory."""

    stage: str = "new"  # "beginning", "running", "ending", "done"
    shape: Shape = field(default_factory=lambda: Shape(0, ()))
    round: int = NOT_BEGUN  # of the outbox
    outbox: list[Content] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    reserved: str = ""  # in the ledger, until it is charged
    roster: dict[str, Array] = field(default_factory=dict)  # sum keys of all parties


class Coordinator:
    """The state machine of the coordinator.

    It greets the parties, compares their terms, rows and ids with its own, lets all of them
    rehearse, so that none pays for a run that another refuses, begins, and goes round by round
    until its lead ends the run. What protected labels cost is reserved before it begins, and
    charged before they are looked at. What it will ask is kept on disk first, so that a
    coordinator that was killed asks the same again. It never mixes rounds: every party answers the
    round it was asked for, or the run stops, to be resumed.

    dry : greet and rehearse only; nothing is charged

    >>> import numpy as np
    >>> from dpsvm.federation.store import MemoryStore
    >>> job = Job("heart-1", "sharing", ("lab",), "lab", {"rounds": 2}, ids=False)
    >>> owner = Site("lab", labels=np.array([-1, 1]))
    >>> Coordinator(job, owner, MemoryStore()).start().messages["lab"].kind
    'greet'
    """

    def __init__(
        self,
        job: Job,
        site: Site,
        store: Store,
        *,
        dry: bool = False,
        phase: Phase = no_phase,
        clock: Clock = utc_now,
        journal: Journal | None = None,
    ) -> None:
        self.job, self.site, self.store, self.dry = job, site, store, dry
        self._clock, self._journal = clock, journal
        self._phase = phase
        unkept = MemoryStore(bytes(KEY_BYTES))
        self.custody = Custody(job, site, unkept if dry else store, COORDINATOR)
        self.sums = CoordinatorSums(job, site)
        self._lead: Lead | None = None
        self.price: Price | None = None  # of the run for the labels, once it is known
        self._now = _Progress()
        self._greeting = self._rehearsing = self._halfway = False
        self._told: list[witness.Told] = []  # of the parties' ledgers, by their hellos
        if not dry:
            self.restore()

    @property
    def round(self) -> int:
        """The round that is being asked."""
        return self._now.round

    @property
    def history(self) -> list[dict[str, Any]]:
        """The metrics of every round."""
        return self._now.history

    def start(self) -> Turn:
        """Greet everyone: at the beginning, and when a run is resumed."""
        if self._halfway:
            self.restore()
        self._greeting, self._rehearsing = True, False
        greet = Content("greet", scalars={"version": VERSION, "job": self.job.digest})
        try:
            if self.site.consent is not None:
                self.site.consent.require(self._clock())
            return self._noted(Turn(self._messages(NOT_BEGUN, [greet])))
        except Refusal as error:
            return Turn({}, ended="stopped", reason=str(error))

    def advance(self, replies: Replies) -> Turn:
        """Take the answers to the last messages; what to do next."""
        number = NOT_BEGUN if self._greeting or self._rehearsing else self._now.round
        try:
            if self.site.consent is not None:
                self.site.consent.require(self._clock())
            answers = self._checked(replies, number)
            if self._greeting:
                return self._noted(self._greeted(answers))
            self._halfway = True  # until what comes next is kept
            turn = self._rehearsed(answers) if self._rehearsing else self._gathered(answers)
            self._halfway = False
            return self._noted(turn)
        except ValueError as error:
            return self._stop(str(error), told_of(error))
        except OSError as error:
            reason = f"{error.filename or 'a file'}: {error.strerror or error}"
            return self._stop(reason, "the coordinator cannot read or write its files")

    def snapshot(self) -> dict[str, Any]:
        """All that it needs to go on as if it had not been interrupted."""
        lead = None if self._lead is None else self._lead.remember()
        return {
            "job": self.job.digest,
            **vars(self._now),
            "lead": lead,
            "data": self.custody.fingerprint,
        }

    def restore(self) -> None:
        """Go on from the store; refuse what was begun with other terms, or given up."""
        kept = self.custody.load()
        self._now, self._lead, self._halfway = _Progress(), None, False
        if kept is None:
            return
        if kept["job"] != self.job.digest:
            raise StoreError(f"run {self.job.run} was begun with other terms")
        rows, sizes, columns = kept["shape"]
        shape, outbox = Shape(rows, tuple(sizes), columns), [Content(*x) for x in kept["outbox"]]
        own = {name: kept[name] for name in ("stage", "round", "history", "reserved", "roster")}
        self._now = _Progress(shape=shape, outbox=outbox, **own)
        self._prepare(begun=True)
        if kept["lead"] is not None:
            self.custody.require_charge(self.price)
            lead = self._make_lead()
            self.custody.require_data(kept["data"])
            lead.recall(kept["lead"])

    def _greeted(self, hellos: Sequence[Message]) -> Turn:
        self._greeting = False
        shape = agreed_shape(self.job, self.site, hellos)
        if self._now.stage != "new":
            return self._resumed(shape, hellos)
        for party, hello in zip(self.job.parties, hellos, strict=True):
            if hello.whole("held") != NOT_BEGUN and not self.dry:
                raise Refusal(
                    f"{party} holds round {hello.whole('held')} of run {self.job.run}, of which "
                    "the coordinator has no snapshot: begin another run"
                )
        self._now.shape, self._now.roster = shape, self.sums.roster(hellos)
        self._told = [witness.Told.by(hello, len(hellos)) for hello in hellos]
        self._prepare(begun=False)
        self.custody.check(self.price)
        if self.price is None:  # what is wrong with labels is then found before anyone pays
            self._make_lead()
        self._rehearsing = True
        return Turn(self._messages(NOT_BEGUN, self._openings("rehearse")))

    def _rehearsed(self, replies: Sequence[Message]) -> Turn:
        self._rehearsing = False
        if any(reply.kind != "ready" for reply in replies):
            raise Refusal("every party must be ready before a run begins")
        if self.dry:
            return Turn({}, ended="checked")
        now = self._now
        self._phase("before reserve")
        now.reserved = self.custody.reserve(self.price, rounds_of(self.job, now.shape))
        self._phase("after reserve")
        now.stage, now.round, now.outbox = "beginning", 0, self._openings("begin")
        return self._send()

    def _openings(self, kind: str) -> list[Content]:
        """What every party must know of the others, and what they saw of its ledger."""
        shape = self._now.shape
        known = {"sizes": np.array(shape.sizes, dtype=np.int64), **self._now.roster}
        return [
            Content(kind, known | witness.opening(place, self._told), {"rows": shape.rows})
            for place in range(len(shape.sizes))
        ]

    def _resumed(self, shape: Shape, hellos: Sequence[Message]) -> Turn:
        if shape != self._now.shape:
            raise Refusal(f"the parties' tables are not those that run {self.job.run} began with")
        if self._now.stage == "done":
            return Turn({}, ended="done", reason="it was over already")
        self.sums.require(self._now.roster, hellos)
        for party, hello in zip(self.job.parties, hellos, strict=True):
            held = hello.whole("held")
            if held not in (self._now.round - 1, self._now.round):
                raise Refusal(
                    f"{party} holds round {held} and the coordinator asks for round "
                    f"{self._now.round}: they are out of step"
                )
        return Turn(self._messages(self._now.round, self._now.outbox))

    def _gathered(self, replies: Sequence[Message]) -> Turn:
        now = self._now
        self._phase("before gather")
        self._check_kinds(replies)
        lead = self._paid()
        if now.stage == "ending":
            lead.close()
            result = {"history": now.history, **lead.result()}
            self.store.write("result.json", dump_model(self.job, self.site, result))
            now.stage = "done"
            self.store.save(self.snapshot(), self._phase)
            return Turn({}, ended="done")
        metrics = None
        if now.stage == "beginning":
            now.outbox, now.stage = lead.open(replies), "running"
        else:
            now.outbox = self._next(lead, replies)
            metrics = {"round": now.round, **lead.metrics()}
            now.history.append(metrics)
        now.round += 1
        if (ending := lead.ending) is not None:
            now.outbox, now.stage = [ending], "ending"
        return self._send(metrics)

    def _paid(self) -> Lead:
        """The lead: where labels are paid for, they are charged before it is made of them."""
        if self._lead is None:
            self._phase("before charge")
            self.custody.commit(self.price, self._now.reserved)
            self._phase("after charge")
            self._now.reserved = ""
            return self._make_lead()
        return self._lead

    def _next(self, lead: Lead, replies: Sequence[Message]) -> list[Content]:
        """The next round; a lead that needs a sum only is told no more."""
        if not isinstance(lead, SumLead):
            return lead.gather(replies)
        total = self.sums.total(replies, self._now.shape.rows, wide=lead.squares)
        return lead.gather_sum(self._now.round, total)

    def _send(self, metrics: dict[str, Any] | None = None) -> Turn:
        for content in self._now.outbox:
            require_numbers(
                self.job, "what the coordinator would ask", content.kind, content.arrays
            )
        self._phase("after gather")
        self.store.save(self.snapshot(), self._phase)
        self._phase("after snapshot")
        return Turn(self._messages(self._now.round, self._now.outbox), metrics=metrics)

    def _noted(self, turn: Turn) -> Turn:
        if self._journal is not None:
            self._journal.sent(turn.messages)
        return turn

    def _stop(self, reason: str, told: str) -> Turn:
        """Stop all parties; before the first question what was reserved is given back."""
        now, stop = self._now, Content("stop", scalars={"reason": told[:4000]})
        if self._journal is not None:
            self._journal.refused(reason)
        if now.stage == "beginning" and is_paid(self.job, now.shape):
            self._halfway = True  # whatever comes next is refused
            with suppress(OSError):  # then it expires
                self.custody.refund(told)
        return Turn(self._messages(now.round, [stop]), ended="stopped", reason=reason)

    def _checked(self, replies: Replies, number: int) -> list[Message]:
        """The answers in the order of the parties, each to the round that was asked."""
        found = []
        for party in self.job.parties:
            reply = replies.get(party)
            if reply is None:
                raise Refusal(f"{party} did not answer in round {number}: resume the run")
            if reply.kind == "refusal":
                raise Refusal(f"{party} refused: {reply.text('reason')}")
            if reply.run != self.job.run or reply.round != number:
                raise MessageError(
                    f"{party} answered for round {reply.round} of run {reply.run}, not for round "
                    f"{number} of run {self.job.run}"
                )
            require_numbers(
                self.job, f"the {reply.kind} of {party} in round {number}", reply.kind, reply.arrays
            )
            found.append(reply)
        return found

    def _check_kinds(self, replies: Sequence[Message]) -> None:
        """Refuse what neither begins nor ends a run where it should; the lead sees to the rest."""
        wanted = {"beginning": "ready", "ending": "ended"}
        for party, reply in zip(self.job.parties, replies, strict=True):
            if reply.kind != wanted.get(self._now.stage, reply.kind):
                raise Refusal(f"{party} answered {self._now.stage} with a {reply.kind}")

    def _prepare(self, *, begun: bool) -> None:
        """Find out what the labels cost, and get the noise key."""
        self.price = price_of_lead(self.job, self._now.shape)
        self._stream = self.custody.stream(begun=begun)

    def _make_lead(self) -> Lead:
        self._stream.seek("coordinator")
        noise, own = Noise(self._stream), (self.job, self.site, self._now.shape)
        self._lead = lead = self.custody.opened(lambda: make_lead(*own, noise))
        return lead

    def _messages(self, number: int, contents: Sequence[Content]) -> dict[str, Message]:
        if len(contents) == 1:
            contents = [contents[0]] * len(self.job.parties)
        return {
            party: Message(self.job.run, number, *one)
            for party, one in zip(self.job.parties, contents, strict=True)
        }
