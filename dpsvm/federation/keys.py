"""Keys of a site: files that nobody else may read, signatures, and the public keys of others.

A site signs with an Ed25519 key of its own what it says of itself in a run, and others know it by
the public half, which an approver has put into their consent. Whoever approves runs for a site has
another key; the site's own process has the public half of it only.

It takes the extra ``federation`` (the package cryptography).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpsvm._secrets import write_secret
from dpsvm.federation.site import Refusal, Signer, Site
from dpsvm.federation.store import StoreError

KEY_BYTES = 32
"""Of an Ed25519 key, either half."""
SIGNATURE_BYTES = 64

_PUBLIC = "dpsvm-key"  # the first word of the file of a public key
_LARGEST_PUBLIC = 4096


@dataclass(frozen=True)
class PublicKey:
    """By which others know who has signed.

    >>> key = SigningKey("lab", bytes(32))
    >>> PublicKey.parse(key.public.text(), "lab.pub") == key.public
    True
    """

    name: str
    key: bytes

    def verifies(self, signature: bytes, *parts: str | bytes) -> bool:
        """Whether it was this key that signed these parts, in this order."""
        invalid, asymmetric = _cryptography()
        try:
            public = asymmetric.ed25519.Ed25519PublicKey.from_public_bytes(self.key)
            public.verify(signature, joined(*parts))
        except (invalid, ValueError):
            return False
        return True

    def text(self) -> str:
        """What its file holds: one line."""
        return f"{_PUBLIC} {self.name} {self.key.hex()}\n"

    @classmethod
    def parse(cls, text: str, where: str) -> PublicKey:
        """The key of a file's text; what is none is a ValueError that names the file."""
        try:
            word, name, digits = text.split()
            key = bytes.fromhex(digits)
        except ValueError:
            word, name, key = "", "", b""
        if word != _PUBLIC or len(key) != KEY_BYTES:
            raise ValueError(f"{where}: not a public key of dpsvm federation")
        return cls(name, key)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PublicKey:
        """Read the file of a public key."""
        with open(path, "rb") as file:
            data = file.read(_LARGEST_PUBLIC)
        return cls.parse(data.decode("utf-8", errors="replace"), os.fspath(path))


class SigningKey:
    """The secret half, with the name of its owner.

    >>> key = SigningKey.make("lab")
    >>> signature = key.sign("hello", b"1")
    >>> key.public.verifies(signature, "hello", b"1"), key.public.verifies(signature, "hello1")
    (True, False)
    """

    def __init__(self, name: str, seed: bytes) -> None:
        self.name, self._seed = name, seed
        _, asymmetric = _cryptography()
        self._key = asymmetric.ed25519.Ed25519PrivateKey.from_private_bytes(seed)

    @classmethod
    def make(cls, name: str) -> SigningKey:
        """A new one, of the operating system's entropy."""
        return cls(name, secrets.token_bytes(KEY_BYTES))

    @classmethod
    def load(cls, path: str | os.PathLike[str], name: str) -> SigningKey:
        """Read the file of one, which nobody else may be able to read."""
        try:
            seed = bytes.fromhex(read_secret(path).decode("ascii"))
        except ValueError as error:
            if isinstance(error, StoreError):
                raise
            seed = b""
        if len(seed) != KEY_BYTES:
            raise StoreError("not a signing key of dpsvm federation", Path(path))
        return cls(name, seed)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file that is not there yet and that only its owner may read."""
        write_secret(path, f"{self._seed.hex()}\n".encode())

    @property
    def public(self) -> PublicKey:
        """The half that others have."""
        return PublicKey(self.name, self._key.public_key().public_bytes_raw())

    def sign(self, *parts: str | bytes) -> bytes:
        """The signature of these parts, in this order."""
        signature: bytes = self._key.sign(joined(*parts))
        return signature


def joined(*parts: str | bytes) -> bytes:
    """Parts as one text of bytes from which they can be told again.

    >>> joined("ab", b"") == joined("a", "b")
    False
    """
    whole = [part.encode() if isinstance(part, str) else part for part in parts]
    return b"".join(len(part).to_bytes(8, "little") + part for part in whole)


def read_secret(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file of a secret; refused if others may read it.

    >>> import tempfile
    >>> from dpsvm._secrets import write_secret
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_secret(f"{folder}/key", b"secret")
    ...     read_secret(f"{folder}/key")
    b'secret'
    """
    with open(path, "rb") as file:
        rights = os.fstat(file.fileno()).st_mode
        if os.name == "posix" and rights & 0o077:
            raise StoreError("others may read this secret: chmod 600, and make another", Path(path))
        return file.read(1 << 16)


def introduce(sites: Sequence[Site]) -> list[Site]:
    """Sites of one process, each with the public keys of all; a site without a key gets one.

    Between organisations keys are made where they stay, and a consent holds those of the others.

    >>> import numpy as np
    >>> a, b = introduce([Site("a", np.eye(2)), Site("b", np.eye(2))])
    >>> a.known["b"] == b.identity.public
    True
    """
    keys: dict[str, Signer] = {}
    for site in sites:
        if site.identity is not None:
            keys[site.name] = site.identity
        elif site.name not in keys:
            keys[site.name] = SigningKey.make(site.name)
    known = {name: key.public for name, key in keys.items()}
    return [replace(site, identity=keys[site.name], known=known) for site in sites]


def _cryptography() -> tuple[Any, Any]:
    """The error of a wrong signature, and the keys."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import asymmetric
        from cryptography.hazmat.primitives.asymmetric import ed25519, x25519  # noqa: F401
    except ImportError:
        raise Refusal("keys need cryptography: pip install 'dpsvm[federation]'") from None
    return InvalidSignature, asymmetric
