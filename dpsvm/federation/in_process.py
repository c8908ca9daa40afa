"""All sites in one process: the default, and the measure of the other runners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpsvm.federation.coordinator import Coordinator
from dpsvm.federation.messages import Message
from dpsvm.federation.party import Party
from dpsvm.federation.turn import Turn

Watch = Callable[[dict[str, Any]], None]
"""Called with the metrics of every round."""


class InProcessRunner:
    """Moves messages between a coordinator and its parties.

    ``wire=True`` sends bytes, as the other runners do; else the messages themselves.

    >>> import numpy as np
    >>> from dpsvm.federation import Job, MemoryStore, Site
    >>> from dpsvm.federation.keys import introduce
    >>> job = Job("r", "sharing", ("a", "b"), "a", {"rounds": 3}, ids=False)
    >>> sites = [Site(name, np.eye(2)) for name in job.parties]
    >>> *sites, owner = introduce([*sites, Site("a", labels=np.array([-1, 1]))])
    >>> parties = [Party(job, site, MemoryStore()) for site in sites]
    >>> turn = InProcessRunner(parties).run(Coordinator(job, owner, MemoryStore()))
    >>> turn.ended, parties[0].ended
    ('done', True)
    """

    def __init__(self, parties: list[Party], *, wire: bool = False) -> None:
        self.parties = {party.site.name: party for party in parties}
        self.wire = wire
        self._refused: dict[str, str] = {}  # why parties refused last, in full

    def run(self, coordinator: Coordinator, watch: Watch | None = None) -> Turn:
        """Run to the end, or to what stops it."""
        return run_turns(coordinator, self.deliver, watch)

    def deliver(self, messages: Mapping[str, Message]) -> dict[str, Message | None]:
        """The answer of every party to its message."""
        found: dict[str, Message | None] = {}
        for name, message in messages.items():
            party = self.parties.get(name)
            if party is None:
                found[name] = None
            elif self.wire:
                found[name] = Message.decode(party.handle_bytes(message.encode()))
            else:
                found[name] = party.handle(message)
            if party is not None and party.refused is not None:
                self._refused[name] = party.refused
        return found

    def why(self, turn: Turn) -> str:
        """Why a run stopped, with what parties keep from the others: for whoever has them all."""
        told = str(turn.reason)
        own = [f"{name}: {one}" for name, one in self._refused.items() if one not in told]
        return "; ".join([told, *own])


def run_turns(
    coordinator: Coordinator,
    deliver: Callable[[Mapping[str, Message]], Mapping[str, Message | None]],
    watch: Watch | None = None,
) -> Turn:
    """The loop of every runner: deliver, advance, until the run is over."""
    turn = coordinator.start()
    while not turn.over:
        turn = coordinator.advance(deliver(turn.messages))
        if watch is not None and turn.metrics is not None:
            watch(turn.metrics)
    if turn.messages:
        deliver(turn.messages)  # that it stopped, and why
    return turn
