"""What passes between a coordinator and its runner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpsvm.federation.messages import Message

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
