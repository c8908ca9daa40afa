"""The coordinator of a run: asks all parties in step, and keeps what it asks before it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpsvm.federation.job import Job
from dpsvm.federation.members import Content, Lead, Shape, make_lead
from dpsvm.federation.messages import VERSION, Message, MessageError
from dpsvm.federation.models import dump_model
from dpsvm.federation.party import NOT_BEGUN
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
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.stream import SecretStream

Replies = Mapping[str, Message | None]
"""The answer of each party by name; None of one that gave none."""


@dataclass(frozen=True, eq=False)
class Turn:
    """What a runner has to do next: move these messages, and for the last time once it is over.

    >>> Turn({}, ended="stopped", reason="lab did not answer").over
    True
    """

    messages: dict[str, Message]  # by party
    ended: str | None = None  # "done", "checked" or "stopped"
    reason: str | None = None
    metrics: dict[str, Any] | None = None  # of the round that was just gathered

    @property
    def over(self) -> bool:
        """Whether the run is."""
        return self.ended is not None


@dataclass
class _Progress:
    """How far the run is: all that is kept beside the lead's own memory."""

    stage: str = "new"  # "beginning", "running", "ending", "done"
    shape: Shape = field(default_factory=lambda: Shape(0, ()))
    round: int = NOT_BEGUN  # of the outbox
    outbox: list[Content] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)


class Coordinator:
    """The state machine of the coordinator.

    It greets the parties, compares their terms, rows and ids with its own, begins, and goes round
    by round until its lead ends the run. What it will ask is kept on disk before it is asked, so
    that a coordinator that was killed asks the same again. It never mixes rounds: every party
    answers the round it was asked for, or the run stops, to be resumed.

    dry : greet and rehearse only; nothing is computed on the data's behalf, and nothing charged

    >>> import numpy as np
    >>> from dpsvm.federation.store import MemoryStore
    >>> job = Job("heart-1", "sharing", ("lab",), "lab", {"rounds": 2}, ids=False)
    >>> owner = Site("lab", labels=np.array([-1, 1]))
    >>> Coordinator(job, owner, MemoryStore()).start().messages["lab"].kind
    'greet'
    """

    def __init__(
        self, job: Job, site: Site, store: Store, *, dry: bool = False, phase: Phase = no_phase
    ) -> None:
        self.job, self.site, self.store, self.dry = job, site, store, dry
        self._phase = phase
        self._label = charge_label(job, f"{site.name}, coordinator")
        self._lead: Lead | None = None
        self.price: Price | None = None  # of the run for the labels, once it is known
        self._now = _Progress()
        self._greeting = self._rehearsing = False
        self.budgets: dict[str, float | None] = {}  # of the parties, as they said hello
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
        self._greeting = True
        greet = Content("greet", scalars={"version": VERSION, "job": self.job.digest})
        return Turn(self._messages(NOT_BEGUN, [greet]))

    def advance(self, replies: Replies) -> Turn:
        """Take the answers to the last messages; what to do next."""
        number = NOT_BEGUN if self._greeting or self._rehearsing else self._now.round
        try:
            answers = self._checked(replies, number)
            if self._greeting:
                return self._greeted(answers)
            if self._rehearsing:
                return Turn({}, ended="checked")
            return self._gathered(answers)
        except ValueError as error:
            return self._stop(str(error), number)
        except OSError as error:
            told = f"{self.site.name} cannot read or write one of its files"
            return self._stop(str(error), number, told)

    def snapshot(self) -> dict[str, Any]:
        """All that it needs to go on as if it had not been interrupted."""
        now, shape = self._now, self._now.shape
        return {
            "job": self.job.digest,
            "stage": now.stage,
            "shape": [shape.rows, list(shape.sizes), shape.columns],
            "round": now.round,
            "outbox": [[one.kind, one.arrays, one.scalars] for one in now.outbox],
            "history": now.history,
            "lead": None if self._lead is None else self._lead.remember(),
        }

    def restore(self) -> None:
        """Go on from the store; refuse what was begun with other terms, or given up."""
        check_not_aborted(self.job, self.site, self.store.read("aborted"))
        kept = self.store.load()
        if kept is None:
            return
        if kept["job"] != self.job.digest:
            raise StoreError(f"run {self.job.run} was begun with other terms")
        rows, sizes, columns = kept["shape"]
        self._now = _Progress(
            stage=kept["stage"],
            shape=Shape(rows, tuple(sizes), columns),
            round=kept["round"],
            outbox=[Content(*one) for one in kept["outbox"]],
            history=kept["history"],
        )
        self._make_lead(begun=True)
        if kept["lead"] is not None and self._lead is not None:
            self._lead.recall(kept["lead"])

    def _greeted(self, hellos: Sequence[Message]) -> Turn:
        self._greeting = False
        self.budgets = {
            party: hello.scalars.get("budget")  # type: ignore[misc]
            for party, hello in zip(self.job.parties, hellos, strict=True)
        }
        shape = self._agree(hellos)
        if self._now.stage != "new":
            return self._resumed(shape, hellos)
        for party, hello in zip(self.job.parties, hellos, strict=True):
            if hello.whole("held") != NOT_BEGUN and not self.dry:
                raise Refusal(
                    f"{party} holds round {hello.whole('held')} of run {self.job.run}, of which "
                    "the coordinator has no snapshot: begin another run"
                )
        self._now.shape = shape
        sizes = {"sizes": np.array(shape.sizes, dtype=np.int64)}
        if self.dry:
            self._make_lead(begun=False)
            self._rehearsing = True
            rehearse = Content("rehearse", sizes, {"rows": shape.rows})
            return Turn(self._messages(NOT_BEGUN, [rehearse]))
        self._make_lead(begun=False)
        self._now.stage, self._now.round = "beginning", 0
        self._now.outbox = [Content("begin", sizes, {"rows": shape.rows})]
        return self._send()

    def _resumed(self, shape: Shape, hellos: Sequence[Message]) -> Turn:
        if shape != self._now.shape:
            raise Refusal(f"the parties' tables are not those that run {self.job.run} began with")
        if self._now.stage == "done":
            return Turn({}, ended="done", reason="it was over already")
        for party, hello in zip(self.job.parties, hellos, strict=True):
            held = hello.whole("held")
            if held not in (self._now.round - 1, self._now.round):
                raise Refusal(
                    f"{party} holds round {held} and the coordinator asks for round "
                    f"{self._now.round}: they are out of step"
                )
        return Turn(self._messages(self._now.round, self._now.outbox))

    def _gathered(self, replies: Sequence[Message]) -> Turn:
        now, lead = self._now, self._lead
        assert lead is not None
        self._phase("before gather")
        if now.stage == "ending":
            self.store.write("result.json", dump_model(self.job, self.site, self._result(lead)))
            now.stage = "done"
            self.store.save(self.snapshot(), self._phase)
            return Turn({}, ended="done")
        metrics = None
        if now.stage == "beginning":
            charge_once(self.site, self._label, lead.price)
            now.outbox, now.stage = lead.open(replies), "running"
        else:
            now.outbox = lead.gather(replies)
            metrics = {"round": now.round, **lead.metrics()}
            now.history.append(metrics)
        now.round += 1
        if (ending := lead.ending) is not None:
            now.outbox, now.stage = [ending], "ending"
        return self._send(metrics)

    def _send(self, metrics: dict[str, Any] | None = None) -> Turn:
        self._phase("after gather")
        self.store.save(self.snapshot(), self._phase)
        self._phase("after snapshot")
        return Turn(self._messages(self._now.round, self._now.outbox), metrics=metrics)

    def _stop(self, reason: str, number: int, told: str | None = None) -> Turn:
        """Stop, for a reason of which the parties may be told less."""
        stop = Content("stop", scalars={"reason": (told or reason)[:4000]})
        return Turn(self._messages(number, [stop]), ended="stopped", reason=reason)

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
            found.append(reply)
        return found

    def _agree(self, hellos: Sequence[Message]) -> Shape:
        """What the parties have in common, or a refusal that says what they have not."""
        network = self.job.algorithm == "network"
        for party, hello in zip(self.job.parties, hellos, strict=True):
            if hello.kind != "hello" or hello.text("party") != party:
                raise Refusal(f"{party} did not say hello in its own name")
            if hello.whole("version") != VERSION or hello.text("job") != self.job.digest:
                raise Refusal(f"{party} has another version of the protocol, or other terms")
        counts = [hello.whole("rows") for hello in hellos]
        columns = [hello.whole("columns") for hello in hellos]
        if network:
            if len(set(columns)) > 1:
                raise Refusal(f"the nodes must have the same columns, got {columns} of them")
            return Shape(0, tuple(counts), columns[0])
        for party, count in zip(self.job.parties, counts, strict=True):
            if count != self.site.rows:
                raise Refusal(f"{self.site.name} has {self.site.rows} rows, {party} has {count}")
        if self.job.ids:
            own = self.site.digest()
            if not own:
                raise Refusal(f"{self.site.name} has no sample ids, which this job matches rows by")
            for party, hello in zip(self.job.parties, hellos, strict=True):
                if hello.text("ids") != own:
                    raise Refusal(
                        f"the sample ids of {party} are not those of {self.site.name}, in number, "
                        "order or salt: rows would be mixed up"
                    )
        return Shape(self.site.rows, tuple(columns))

    def _make_lead(self, *, begun: bool) -> None:
        key = bytes(32) if self.dry else self.store.key(begun=begun)
        stream = SecretStream(key)
        stream.seek("coordinator")
        self._lead = make_lead(self.job, self.site, self._now.shape, Noise(stream))
        self.price = self._lead.price
        if not begun and charged(self.site, self._label) is None:
            check_affordable(self.site, self.price)

    def _result(self, lead: Lead) -> dict[str, Any]:
        return {"history": self._now.history, **lead.result()}

    def _messages(self, number: int, contents: Sequence[Content]) -> dict[str, Message]:
        if len(contents) == 1:
            contents = [contents[0]] * len(self.job.parties)
        return {
            party: Message(self.job.run, number, one.kind, one.arrays, one.scalars)
            for party, one in zip(self.job.parties, contents, strict=True)
        }
