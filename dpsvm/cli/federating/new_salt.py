"""``dpsvm federation new-salt``: a secret that sites share, and nobody else."""

from __future__ import annotations

import errno
import secrets

from dpsvm._secrets import write_secret
from dpsvm.cli.federating.command import Command
from dpsvm.cli.files import require_folder

_BYTES = 32


def _new_salt(path: str) -> None:
    require_folder(path)
    try:
        write_secret(path, f"{secrets.token_hex(_BYTES)}\n".encode())
    except FileExistsError:
        reason = "there is a file already, left as it is"
        raise FileExistsError(errno.EEXIST, reason, path) from None
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
