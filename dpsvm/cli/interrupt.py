"""Ctrl-C that is heard while numpy computes.

Python turns Ctrl-C into KeyboardInterrupt once the call it is in returns. The calls of a fit in
numpy are products and factors of matrices, which take seconds on large data. Nothing is on disk
yet at that point, so the process can simply end.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

_GRACE = 0.4  # seconds for the ordinary way out
_INTERRUPTED = 130


@contextmanager
def ended_in_order() -> Iterator[None]:
    """SIGTERM, or a terminal that is closed, leaves the block through its ``finally``.

    The exit code is 128 and the number of the signal: 143 of SIGTERM. A second one is not heard.

    >>> with ended_in_order():
    ...     print("not ended")
    not ended
    """

    def leave(number: int, _: object) -> NoReturn:
        for one in before:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before: dict[int, object] = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) == signal.SIG_DFL:
                number = getattr(signal, name)
                before[number] = signal.signal(number, leave)
    try:
        yield
    finally:
        for one in before:
            signal.signal(one, signal.SIG_DFL)


@contextmanager
def prompt_interrupt(last_words: Callable[[], str], busy: Callable[[], bool]) -> Iterator[None]:
    """End the process with exit code 130 if Ctrl-C has not left the block shortly after.

    last_words : what standard error is told if it comes to that
    busy : whether a file is being written, which is waited for

    Where Ctrl-C does not mean KeyboardInterrupt, in a thread or under another handler, the block
    runs as it is.

    >>> with prompt_interrupt(lambda: "interrupted", busy=lambda: False):
    ...     print("not interrupted")
    not interrupted
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    left = threading.Event()
    heard, told = socket.socketpair()
    told.setblocking(False)

    def watch() -> None:
        while signals := heard.recv(64):  # nothing comes once the other end is closed
            if signal.SIGINT in signals and not left.wait(_GRACE):
                _end(last_words, busy)

    before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        left.set()
        signal.set_wakeup_fd(before)
        told.close()
        watcher.join()
        heard.close()


def _end(last_words: Callable[[], str], busy: Callable[[], bool]) -> NoReturn:
    while busy():
        time.sleep(0.01)
    print(last_words(), file=sys.stderr, flush=True)
    os._exit(_INTERRUPTED)
