"""Coordinators that look, and coordinators that ask what they like: their side of the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.federation import Coordinator, InProcessRunner, Job, Message, Party, Turn
from dpsvm.federation.messages import NOT_BEGUN, VERSION

Array = NDArray[np.float64]


class Stopped(Exception):
    """An attack got no further: who refused, and why."""


class Listener(InProcessRunner):
    """Carries messages as they are, and keeps what a coordinator gets to see."""

    turn: Turn

    def __init__(self, parties: list[Party]) -> None:
        super().__init__(parties, wire=True)
        self.asked: list[Mapping[str, Message]] = []
        self.told: list[Mapping[str, Message | None]] = []

    def deliver(self, messages: Mapping[str, Message]) -> dict[str, Message | None]:
        replies = super().deliver(messages)
        if any(_numbers_of(one) is not None for one in replies.values()):
            self.asked.append(messages)
            self.told.append(replies)
        return replies

    def seen_of(self, name: str) -> list[NDArray[Any]]:
        """The numbers that a party sent, round by round."""
        return [_there(replies[name]) for replies in self.told]

    def sums(self) -> list[Array]:
        """What all sent, added up; the same of plain numbers and of masked ones."""
        return [summed(replies) for replies in self.told]

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


def summed(replies: Mapping[str, Message | None]) -> Array:
    """The sum of what parties sent in a round, as a coordinator can make it."""
    with np.errstate(over="ignore"):  # masked numbers are added modulo 2**64
        total = np.add.reduce([_there(one) for one in replies.values()])
    return np.asarray(total, dtype=np.float64)


class Hostile:
    """A coordinator that asks what it likes, in the order that it likes."""

    def __init__(self, job: Job, parties: Sequence[Party]) -> None:
        self.job, self.parties = job, {party.site.name: party for party in parties}
        self.round = 0

    def greet(self) -> dict[str, Message]:
        """The answers to a greeting."""
        scalars = {"version": VERSION, "job": self.job.digest}
        return self._all(NOT_BEGUN, "greet", {}, scalars)

    def rehearse(self) -> None:
        """Rehearse with all."""
        self._all(NOT_BEGUN, "rehearse", *self.terms(self.greet()))

    def begin(self, only: Sequence[str] | None = None) -> None:
        """Begin with all parties, or with some of them."""
        self._all(0, "begin", *self.terms(self.greet()), only)

    def ask(self, kind: str, arrays: Mapping[str, Any], **scalars: Any) -> dict[str, Message]:
        """The answers to the next round's question."""
        self.round += 1
        return self._all(self.round, kind, arrays, scalars)

    def reborn(self, parties: Sequence[Party]) -> Hostile:
        """The same, of parties that were begun and come back as they were then."""
        return Hostile(self.job, parties)

    def terms(self, hellos: Mapping[str, Message]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What all must know of each other for a beginning."""
        shapes = [hellos[name] for name in self.job.parties]
        sizes = np.array([one.whole("columns") for one in shapes], dtype=np.int64)
        return {"sizes": sizes}, {"rows": shapes[0].whole("rows")}

    def _all(
        self,
        number: int,
        kind: str,
        arrays: Mapping[str, Any],
        scalars: Mapping[str, Any],
        only: Sequence[str] | None = None,
    ) -> dict[str, Message]:
        found = {}
        for name in self.parties if only is None else only:
            question = Message(self.job.run, number, kind, arrays, scalars)
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
