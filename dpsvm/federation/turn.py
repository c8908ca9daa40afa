"""What passes between a coordinator and its runner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpsvm.federation.job import Job
from dpsvm.federation.limits import require_numbers
from dpsvm.federation.messages import Message, MessageError
from dpsvm.federation.site import Refusal

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


def answers_of(job: Job, replies: Replies, number: int) -> list[Message]:
    """The answers in the order of the parties, each to the round that was asked.

    >>> answers_of(Job("r", "sharing", ("lab",), "lab"), {"lab": None}, 3)
    Traceback (most recent call last):
    ...
    dpsvm.federation.site.Refusal: lab did not answer in round 3: resume the run
    """
    found = []
    for party in job.parties:
        reply = replies.get(party)
        if reply is None:
            raise Refusal(f"{party} did not answer in round {number}: resume the run")
        if reply.kind == "refusal":
            raise Refusal(f"{party} refused: {reply.text('reason')}")
        if reply.run != job.run or reply.round != number:
            raise MessageError(
                f"{party} answered for round {reply.round} of run {reply.run}, not for round "
                f"{number} of run {job.run}"
            )
        require_numbers(
            job, f"the {reply.kind} of {party} in round {number}", reply.kind, reply.arrays
        )
        found.append(reply)
    return found
