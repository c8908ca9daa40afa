"""The lock of a file, for times that are taken on a machine that has other work to do.

Runs hold it meanwhile, and after a minute of runs leave a moment in which others can take it: what
is started with flock(1) on that file waits for its turn.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import time
from collections.abc import Iterator
from pathlib import Path

MOMENT = 0.2  # seconds between turns in which another process can take the lock
TURN = 60.0  # seconds of runs after which the lock is offered to others


@contextlib.contextmanager
def holding(lock: Path | None) -> Iterator[None]:
    """Have the lock of the file, if one is named."""
    if lock is None:
        yield
        return
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    time.sleep(MOMENT)


class Turn:
    """Holds the lock of a file, if one is named, from one run to the next."""

    def __init__(self, lock: Path | None) -> None:
        self._lock, self._held, self._since = lock, contextlib.ExitStack(), math.inf

    def take(self) -> None:
        """Have the lock."""
        if self._since == math.inf:
            self._held.enter_context(holding(self._lock))
            self._since = time.monotonic()

    def offer(self, after: float = TURN) -> None:
        """Leave the lock to others if it was held for so many seconds."""
        if time.monotonic() - self._since >= after:
            self._held.close()
            self._since = math.inf
