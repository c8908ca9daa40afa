"""Coordinators that look, and coordinators that ask what they like: their side of the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.federation import Coordinator, InProcessRunner, Job, Message, Party, Turn, witness
from dpsvm.federation.fixed_point import FixedPoint, Words
from dpsvm.federation.messages import NOT_BEGUN, VERSION
from dpsvm.federation.secure_sum import Roster

Array = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]


class Stopped(Exception):
    """An attack got no further: who refused, and why."""


class Listener(InProcessRunner):
    """Carries messages as they are, and keeps what a coordinator gets to see."""

    turn: Turn

    def __init__(self, parties: list[Party]) -> None:
        super().__init__(parties, wire=True)
        self.job, self.rows = parties[0].job, parties[0].site.rows
        self.asked: list[Mapping[str, Message]] = []
        self.told: list[Mapping[str, Message | None]] = []

    def deliver(self, messages: Mapping[str, Message]) -> dict[str, Message | None]:
        replies = super().deliver(messages)
        if any(_numbers_of(one) is not None for one in replies.values()):
            self.asked.append(messages)
            self.told.append(replies)
        return replies

    def seen_of(self, name: str) -> list[Array]:
        """The numbers that a party sent, round by round; masked words as if they were some."""
        sent = [_there(replies[name]) for replies in self.told]
        if not self.job.masked:
            return sent
        unit = FixedPoint(len(self.job.parties), self.job.sum_range).unit
        return [one[: self.rows] * unit for one in sent]

    def sums(self) -> list[Array]:
        """What all sent, added up; the same of plain numbers and of masked ones."""
        return [summed(self.job, self.rows, replies) for replies in self.told]

    def prices(self) -> tuple[list[Array], list[float]]:
        """The price and the rho of every round."""
        questions = [next(iter(one.values())) for one in self.asked]
        return [one.arrays["price"] for one in questions], [one.real("rho") for one in questions]


def in_step(runs: Sequence[tuple[InProcessRunner, Coordinator]]) -> list[Turn]:
    """How some runs end that take turns: a message of the one, then a message of the next."""
    turns = [coordinator.start() for _, coordinator in runs]
    while not all(turn.over for turn in turns):
        going = [number for number, turn in enumerate(turns) if not turn.over]
        replies: dict[int, dict[str, Message | None]] = {number: {} for number in going}
        for place in range(max(len(runner.parties) for runner, _ in runs)):
            for number in going:
                runner, asked = runs[number][0], turns[number].messages
                for name in list(runner.parties)[place : place + 1]:
                    replies[number] |= runner.deliver({name: asked[name]})
        for number in going:
            runner, coordinator = runs[number]
            turns[number] = coordinator.advance(replies[number])
            if turns[number].over and turns[number].messages:
                runner.deliver(turns[number].messages)  # that it stopped, and why
    return turns


def summed(job: Job, rows: int, replies: Mapping[str, Message | None]) -> Array:
    """The sum of what parties sent in a round, as a coordinator can make it."""
    if not job.masked:
        return np.asarray(np.add.reduce([_there(one) for one in replies.values()]))
    words, wide = words_summed(rows, replies)
    try:
        return FixedPoint(len(job.parties), job.sum_range).decode(words, wide=wide).values
    except ValueError as error:
        raise Stopped(str(error)) from None


def words_summed(rows: int, replies: Mapping[str, Message | None]) -> tuple[Words, bool]:
    """The sum of masked words, and whether squares are summed in them."""
    sent = [_there(one).view(np.uint64) for one in replies.values()]
    wide = len(sent[0]) == FixedPoint.length(rows, wide=True)
    total = np.zeros_like(sent[0])
    for words in sent:
        total = FixedPoint.added(total, words, wide=wide)
    return total, wide


class Hostile:
    """A coordinator that asks what it likes, in the order that it likes.

    forgets : leaves out what parties saw of each other's ledgers
    """

    def __init__(self, job: Job, parties: Sequence[Party], *, forgets: bool = False) -> None:
        self.job, self.parties = job, {party.site.name: party for party in parties}
        self.round, self.forgets = 0, forgets

    def greet(self) -> dict[str, Message]:
        """The answers to a greeting."""
        scalars = {"version": VERSION, "job": self.job.digest}
        return self._each(NOT_BEGUN, "greet", {name: {} for name in self.parties}, scalars)

    def rehearse(self) -> None:
        """Rehearse with all."""
        self._open(NOT_BEGUN, "rehearse")

    def begin(self, only: Sequence[str] | None = None, roster: Arrays | None = None) -> None:
        """Begin with all parties, or with some of them; roster : other sum keys than theirs."""
        self._open(0, "begin", only, roster)

    def ask(self, kind: str, arrays: Arrays, **scalars: Any) -> dict[str, Message]:
        """The answers to the next round's question."""
        return self.ask_each(kind, dict.fromkeys(self.parties, arrays), **scalars)

    def ask_each(
        self, kind: str, arrays: Mapping[str, Arrays], **scalars: Any
    ) -> dict[str, Message]:
        """The answers to the next round's questions, one for each party."""
        self.round += 1
        return self._each(self.round, kind, arrays, scalars)

    def again(self) -> Hostile:
        """So that the next question is for the same round as the last."""
        self.round -= 1
        return self

    def reborn(self, parties: Sequence[Party]) -> Hostile:
        """The same, of parties that were begun and come back as they were then."""
        return Hostile(self.job, parties)

    def roster(self) -> Roster:
        """The sum keys as the parties tell them."""
        hellos = self.greet()
        return Roster.of_hellos(self.job, [hellos[name] for name in self.job.parties])

    def sum_of(self, replies: Mapping[str, Message | None]) -> Array:
        """The sum of the answers of a round."""
        return summed(self.job, next(iter(self.parties.values())).site.rows, replies)

    def _open(
        self,
        number: int,
        kind: str,
        only: Sequence[str] | None = None,
        roster: Arrays | None = None,
    ) -> None:
        """What all must know of each other for a beginning."""
        hellos = self.greet()
        told = [hellos[name] for name in self.job.parties]
        sizes = np.array([one.whole("columns") for one in told], dtype=np.int64)
        if roster is None:
            roster = Roster.of_hellos(self.job, told).arrays if self.job.masked else {}
        known = [witness.Told.by(one, len(told)) for one in told]
        arrays = {}
        for place, name in enumerate(self.job.parties):
            seen = {} if self.forgets else witness.opening(place, known)
            arrays[name] = {"sizes": sizes, **roster, **seen}
        wanted = {name: arrays[name] for name in (self.parties if only is None else only)}
        self._each(number, kind, wanted, {"rows": told[0].whole("rows")})

    def _each(
        self, number: int, kind: str, arrays: Mapping[str, Arrays], scalars: Mapping[str, Any]
    ) -> dict[str, Message]:
        found = {}
        for name, own in arrays.items():
            question = Message(self.job.run, number, kind, own, scalars)
            reply = Message.decode(self.parties[name].handle_bytes(question.encode()))
            if reply.kind == "refusal":
                raise Stopped(f"{name}: {reply.text('reason')}")
            found[name] = reply
        return found


def _numbers_of(reply: Message | None) -> NDArray[Any] | None:
    arrays = {} if reply is None or reply.kind == "hello" else reply.arrays
    return next(iter(arrays.values()), None)


def _there(reply: Message | None) -> NDArray[Any]:
    found = _numbers_of(reply)
    assert found is not None
    return found
