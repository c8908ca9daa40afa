"""``dpsvm federation new-salt``: a secret that sites share, and nobody else."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress

from dpsvm.cli.federating.command import Command
from dpsvm.cli.files import require_folder

_BYTES = 32


def _new_salt(path: str) -> None:
    require_folder(path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        reason = "there is a file already, left as it is"
        raise FileExistsError(errno.EEXIST, reason, path) from None
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_hex(_BYTES)}\n")
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
    print(f"{path}: a new salt; hand it to every site, and to nobody else")


COMMANDS = {
    "new-salt": Command(
        "usage: dpsvm federation new-salt FILE",
        "Writes a fresh random salt of 64 hexadecimal digits that only its owner may read; a "
        "file that exists is left as it is. Hand the same salt to every site over a channel "
        "that you trust, and to nobody else: salt_file in [data] names it. Sites compare a "
        "digest of their ordered sample ids under this salt. That is NOT private set "
        "intersection: whoever has the salt can test a guessed list of ids.",
        _new_salt,
        needs=("one FILE is needed", 1, 1),
    )
}
