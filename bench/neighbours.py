"""What other processes take of the cores while a benchmark runs."""

from __future__ import annotations

import time

from common import busy_seconds
from speed import QUIET


class Neighbours:
    """Watches from its making on."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._everyone, self._family = busy_seconds()

    def verdict(self) -> str:
        """How many cores they took on average, and whether times are worth keeping."""
        everyone, family = busy_seconds()
        others = (everyone - self._everyone) - (family - self._family)
        taken = max(0.0, others / (time.perf_counter() - self._started))
        quiet, loud = "a quiet machine", "NOT a quiet machine, times are indicative only"
        state = quiet if taken <= QUIET else loud
        return f"cores taken by other processes, on average: {taken:.2f}: {state}"
