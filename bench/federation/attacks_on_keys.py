"""Who can read the keys of a federation's startup kits."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from bench.common import Absent
from bench.federation.attack_sites import TUTORIAL, Figure, World, world
from dpsvm.federation.nvflare_kits import assemble, provision, request, sign


def open_keys() -> list[Figure]:
    """What all users of the machine may read, and what one organisation holds of the others."""
    if find_spec("nvflare") is None:
        raise Absent("no nvflare")
    attack = "provisioned kits, umask 022"
    with world() as sites, tempfile.TemporaryDirectory() as scratch, _umask(0o022):
        folder = Path(scratch, "kits")
        provision(folder, [sites.folder / f"{name}.toml" for name in TUTORIAL])
        files = [path for path in folder.rglob("*") if path.is_file()]
        open_files = [path for path in files if _others_read(path, folder)]
        readable, held = (len(_keys_of(those)) for those in (open_files, files))
        apart = _made_apart(sites, Path(scratch, "apart"))
    return [
        Figure(attack, "private keys in files that all may read", readable, most=0),
        Figure(attack, "private keys that the provisioner has had", held),
        *apart,
    ]


def _made_apart(sites: World, folder: Path) -> list[Figure]:
    """The same of keys that each site makes, and asks a signer to sign."""
    folder.mkdir()
    asked = {name: request(folder / name, sites.folder / f"{name}.toml") for name in TUTORIAL}
    for name, signed in zip(asked, sign(folder / "signer", list(asked.values())), strict=True):
        assemble(folder / name, signed.file, fingerprint=signed.fingerprint)
    files = [path for path in folder.rglob("*") if path.is_file()]
    theirs = set[bytes]().union(*(_keys_of(_under(files, folder / name)) for name in TUTORIAL))
    held = _keys_of(_under(files, folder / "signer")) | _keys_of(list(asked.values()))
    readable = len(_keys_of([path for path in files if _others_read(path, folder)]))
    attack = "kits of keys made apart, umask 022"
    return [
        Figure(attack, "keys of sites", len(theirs)),
        Figure(attack, "private keys in files that all may read", readable, most=0),
        Figure(attack, "private keys of sites that the signer has had", len(theirs & held), most=0),
    ]


def _under(files: list[Path], folder: Path) -> list[Path]:
    return [path for path in files if path.is_relative_to(folder)]


def _keys_of(files: list[Path]) -> set[bytes]:
    """The private keys in some files, each as the digits between its lines."""
    found = set()
    for path in files:
        text = path.read_bytes().replace(b"\\n", b"").replace(b"\n", b"")
        for part in text.split(b"-----BEGIN ")[1:]:
            kind, _, rest = part.partition(b"-----")
            if kind.endswith(b"PRIVATE KEY"):
                found.add(rest.partition(b"-----END")[0])
    return found


def _others_read(path: Path, folder: Path) -> bool:
    """Whether all users may read a file: it, and every folder on the way to it."""
    ways = [path, *[one for one in path.parents if one.is_relative_to(folder)]]
    return all(one.stat().st_mode & 0o004 for one in ways)


@contextlib.contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
