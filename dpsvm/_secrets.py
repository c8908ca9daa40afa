"""Files of secrets: written once, and for their owner alone."""

from __future__ import annotations

import os
from contextlib import suppress


def write_secret(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file that is not there yet and that only its owner may read; nothing is replaced.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_secret(f"{folder}/key", b"secret")
    ...     open(f"{folder}/key", "rb").read()
    b'secret'
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
