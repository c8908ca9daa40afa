"""What other processes take of the cores while a benchmark runs."""

from __future__ import annotations

import time

from bench.common import busy_seconds

QUIET = 0.1  # cores that other processes may take, on average


def state(taken: float) -> str:
    """Whether times are worth keeping where others took so many cores."""
    return "a quiet machine" if taken <= QUIET else "NOT a quiet machine, times are indicative only"


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
        return f"cores taken by other processes, on average: {taken:.2f}: {state(taken)}"
