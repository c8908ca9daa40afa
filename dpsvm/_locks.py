"""Locks between threads and processes, which the system takes from a holder that dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOLCK

# Not when a lock is taken: a child that is forked meanwhile would wait for the import forever.
from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a lock file that is held
    fcntl = None  # type: ignore[assignment]

_POLL = 0.01  # seconds between two tries


class LockedError(Exception):
    """Somebody else has the lock."""


def lock(path: str | os.PathLike[str], *, wait: bool = True) -> BaseFileLock:
    """Take the lock of a file, which is created and left behind; its ``release`` gives it up.

    Every call is a lock of its own, so threads are kept apart as well as processes. Without
    ``wait``, LockedError if another has it. OSError where the file cannot be written, or where
    the system has no lock that ends with its holder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     held = lock(f"{folder}/lock")
    ...     try:
    ...         lock(f"{folder}/lock", wait=False)
    ...     except LockedError as refusal:
    ...         print(refusal)
    ...     held.release()
    another has the lock
    """
    file = FileLock(path, thread_local=False)
    try:
        file.acquire(poll_interval=_POLL, blocking=wait)
    except Timeout:
        raise LockedError("another has the lock") from None
    if isinstance(file, SoftFileLock):  # what filelock falls back to: it outlives its holder
        file.release()
        raise OSError(ENOLCK, "files cannot be locked here", os.fspath(path))
    return file


@contextmanager
def locked_itself(path: str | os.PathLike[str]) -> Iterator[None]:
    """Lock a file that is never replaced, as far as the system can; nothing if it is missing.

    Beside :func:`lock`, whose file anybody with rights to the folder can remove while it is held.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file, locked_itself(file.name):
    ...     print("locked")
    locked
    """
    if fcntl is None:
        yield
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opens a pipe without waiting
    except OSError:
        yield
        return
    try:
        with suppress(OSError):  # NFS locks no file that is open to be read
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):  # a forked child has the descriptor too
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
