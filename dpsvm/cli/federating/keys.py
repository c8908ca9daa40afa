"""``dpsvm federation keys``: the key of a site, and that of whoever approves runs for it."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from dpsvm.cli.federating.command import Command
from dpsvm.cli.files import require_folder
from dpsvm.cli.options import Flag, UsageError
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.consent import APPROVER, fingerprint
from dpsvm.federation.keys import SigningKey
from dpsvm.federation.store import make_folder

_KEPT = "for whoever approves runs; keep it away from the account that runs the site"
_USAGE = "usage: dpsvm federation keys SITE [--approver FILE]"


def _keys(site_path: str, *, approver: str | None) -> None:
    site = SiteConfig.load(site_path)
    public = Path(site_path).parent / f"{site.name}.pub"
    wanted = [(site.key_file, public, site.name)]
    if approver is not None:
        require_folder(approver)
        wanted.append((Path(approver), Path(f"{approver}.pub"), APPROVER))
    for secret, beside, _ in wanted:
        for path in (secret, beside):
            if os.path.lexists(path):
                reason = "there is a file already, left as it is, and no key was made"
                raise FileExistsError(errno.EEXIST, reason, str(path))
    files = [os.path.realpath(path) for secret, beside, _ in wanted for path in (secret, beside)]
    if len(set(files)) < len(files):
        raise UsageError(
            f"--approver: {approver} or {approver}.pub is where {site.name} has its own"
        )
    make_folder(site.state)
    site.state.chmod(0o700)
    made: list[SigningKey] = []
    try:
        for secret, beside, name in wanted:
            made.append(_make(secret, beside, name))
    except BaseException:
        for secret, beside, _ in wanted[: len(made)]:
            secret.unlink(missing_ok=True)
            beside.unlink(missing_ok=True)
        raise
    for (secret, beside, name), key in zip(wanted, made, strict=True):
        print(f"{secret}: secret, {_KEPT if name == APPROVER else 'and stays where it is'}")
        print(f"{beside}: fingerprint {fingerprint(key.public)}")
    print(
        f"hand {public} to the approver of every other site, who compares the fingerprint with "
        "you by another channel"
    )
    if approver is not None:
        print(f"name {approver}.pub in [consent] of {site_path}: approver = ...")


def _make(secret: Path, public: Path, name: str) -> SigningKey:
    """A pair of files, or none."""
    key = SigningKey.make(name)
    key.save(secret)
    try:
        with open(public, "x", encoding="ascii", opener=_readable) as file:
            file.write(key.public.text())
    except BaseException:
        with suppress(OSError):
            secret.unlink()
        raise
    return key


def _readable(path: str, flags: int) -> int:
    """Open what all may read and none but its owner replace, whatever the umask leaves them."""
    return os.open(path, flags, 0o644)


COMMANDS = {
    "keys": Command(
        _USAGE,
        "Makes the key by which others know a site: site.key in its state folder, which only its "
        "owner may read, and NAME.pub beside SITE, which goes to whoever approves runs at the "
        "other sites. With --approver it also makes the key of this site's approver, FILE, and "
        "FILE.pub, which [consent] of SITE names. A site answers nothing that this key has not "
        "approved: keep FILE away from the account that runs the site, on another machine or a "
        "token, or that account can approve what it likes. A file that exists is left as it is.",
        _keys,
        (Flag("--approver", "make the approver's key too", "file", str),),
        ("one SITE is needed", 1, 1),
    )
}
