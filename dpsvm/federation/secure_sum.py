"""Sums that hide their parts: masks that each pair of parties shares and that cancel in the sum.

Every party has an X25519 key for the run, made of the run's noise key: a party that was killed and
comes back has the same one. It signs the public half with its site's key; the coordinator passes
all of them on, the roster, and every party checks them with the sites' keys that it knows itself.
So a coordinator cannot put keys of its own in the place of theirs.

In a round, parties i < j derive from their X25519 secret, by HKDF-SHA256, a key that depends on the
job, the roster, the round, all questions up to this one and both names, and from that key words by
AES-256 in counter mode. Party i adds them to its words and j subtracts them. One question of a
round has one answer, kept before it is sent and given again as it is: a mask is used once. Who was
asked something else, now or before, has other masks, which do not cancel any more: else sums of the
same question after different ones would tell the parties apart.

A coordinator that keeps to the protocol learns nothing of the words of two or more honest parties
but the sum of these, as long as X25519, HKDF and AES hold. It learns that sum exactly. Of two
parties one knows the other's part, and nothing is hidden where all others collude. A party that
lies spoils the sum, unnoticed if it stays in range, and reads nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from dpsvm.federation.fixed_point import FixedPoint, Words
from dpsvm.federation.job import Job
from dpsvm.federation.keys import KEY_BYTES, SIGNATURE_BYTES, joined
from dpsvm.federation.messages import Array, Message, Scalar
from dpsvm.federation.site import Known, Refusal, Signer
from dpsvm.privacy.stream import SecretStream

_WORD_BYTES = 8
_SIGNED = "dpsvm sum key"
_MASKED = "dpsvm mask"


class SumKey:
    """A party's X25519 key for one run.

    >>> one, other = SumKey(bytes(32)), SumKey(bytes([1]) * 32)
    >>> one.shared(other.public) == other.shared(one.public)
    True
    """

    def __init__(self, seed: bytes) -> None:
        self._key = _cryptography().private(seed)
        self.public: bytes = self._key.public_key().public_bytes_raw()

    @classmethod
    def of(cls, noise_key: bytes) -> SumKey:
        """The one of a run, which follows from the key of its noise."""
        stream = SecretStream(noise_key)
        stream.seek("sum key")
        return cls(stream.bytes(KEY_BYTES))

    def shared(self, public: bytes) -> bytes:
        """The secret that it has in common with another; a ValueError for what is no key."""
        secret: bytes = self._key.exchange(_cryptography().public(public))
        return secret

    def introduced(self, job: Job, identity: Signer) -> dict[str, Scalar]:
        """Its public half, signed, as a hello tells it."""
        signature = identity.sign(*_signed(job, identity.public.name, self.public))
        return {"key": self.public.hex(), "signature": signature.hex()}


class Roster:
    """The sum keys of all parties of a run, in the order of the job, as their sites signed them."""

    def __init__(self, job: Job, keys: list[bytes], signatures: list[bytes]) -> None:
        self.job, self.keys, self.signatures = job, keys, signatures

    @classmethod
    def of_hellos(cls, job: Job, hellos: list[Message]) -> Roster:
        """What the parties told."""
        told = list(zip(job.parties, hellos, strict=True))
        keys = [_bytes_of(party, hello, "key", KEY_BYTES) for party, hello in told]
        signed = [_bytes_of(party, hello, "signature", SIGNATURE_BYTES) for party, hello in told]
        return cls(job, keys, signed)

    @classmethod
    def of_arrays(cls, job: Job, arrays: Mapping[str, Array]) -> Roster:
        """What a coordinator passed on."""
        found = []
        for name, size in (("keys", KEY_BYTES), ("signatures", SIGNATURE_BYTES)):
            array, shape = arrays.get(name), (len(job.parties), size // _WORD_BYTES)
            if array is None or array.shape != shape:
                raise Refusal(f"{name} of {shape[0]} parties are needed, for sums that hide parts")
            found.append([row.astype("<i8").tobytes() for row in array])
        return cls(job, *found)

    @property
    def arrays(self) -> dict[str, Array]:
        """As a message passes it on."""
        whole = {"keys": self.keys, "signatures": self.signatures}
        return {
            name: np.frombuffer(b"".join(rows), "<i8").astype(np.int64).reshape(len(rows), -1)
            for name, rows in whole.items()
        }

    @cached_property
    def digest(self) -> bytes:
        """Of the job, and of all names and keys."""
        named = [part for pair in zip(self.job.parties, self.keys, strict=True) for part in pair]
        return hashlib.sha256(joined("dpsvm roster", self.job.digest, *named)).digest()

    def verify(self, site: str, known: Mapping[str, Known]) -> None:
        """Refuse a key that was not signed by its site, by the keys that this site knows."""
        for party, key, signature in zip(self.job.parties, self.keys, self.signatures, strict=True):
            if party not in known:
                raise Refusal(
                    f"{site} does not know the key of {party}: its consent must hold it, and in "
                    "one process dpsvm.federation.keys.introduce makes sites known to each other"
                )
            if not known[party].verifies(signature, *_signed(self.job, party, key)):
                raise Refusal(f"the sum key of {party} is not signed by the key that {site} knows")


class Masks:
    """What a party adds to its words in a run; secrets are made when they are first needed."""

    def __init__(self, place: int, key: SumKey, roster: Roster) -> None:
        self.place, self.roster = place, roster
        self._key = key
        self._secrets: dict[int, bytes] = {}

    def hide(self, words: Words, number: int, question: str, *, wide: bool) -> Words:
        """Words with the masks of a round; question : digest of all that they were asked."""
        for other in range(len(self.roster.keys)):
            if other != self.place:
                add = FixedPoint.added if self.place < other else FixedPoint.subtracted
                words = add(words, self.shared(other, number, question, len(words)), wide=wide)
        return words

    def agree(self) -> None:
        """Make the secrets that this party has with all others, or refuse a key that has none."""
        for other in range(len(self.roster.keys)):
            if other != self.place:
                self._secret(other)

    def shared(self, other: int, number: int, question: str, count: int) -> Words:
        """So many words that only this party and another can know."""
        names = [self.roster.job.parties[place] for place in sorted((self.place, other))]
        digests = self.roster.job.digest, self.roster.digest
        info = joined(_MASKED, *digests, str(number), question, *names)
        words: Words = _cryptography().words(self._secret(other), info, count)
        return words

    def _secret(self, other: int) -> bytes:
        if other not in self._secrets:
            try:
                self._secrets[other] = self._key.shared(self.roster.keys[other])
            except ValueError:
                party = self.roster.job.parties[other]
                raise Refusal(f"the sum key of {party} is none") from None
        return self._secrets[other]


def _bytes_of(party: str, hello: Message, name: str, size: int) -> bytes:
    try:
        found = bytes.fromhex(hello.text(name))
    except ValueError:
        found = b""
    if len(found) != size:
        raise Refusal(f"{party} told no {name} for sums that hide their parts")
    return found


def _signed(job: Job, party: str, key: bytes) -> tuple[str | bytes, ...]:
    return _SIGNED, job.digest, party, key


class _Cryptography(NamedTuple):
    """What is used of the package."""

    private: Any
    public: Any
    words: Any


@cache
def _cryptography() -> _Cryptography:
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError:
        raise Refusal(
            "sums that hide their parts need cryptography: pip install 'dpsvm[federation]'"
        ) from None

    def words(secret: bytes, info: bytes, count: int) -> Words:
        key = HKDF(SHA256(), KEY_BYTES, None, info).derive(secret)
        stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        return np.frombuffer(stream.update(bytes(_WORD_BYTES * count)), "<u8")

    private, public = x25519.X25519PrivateKey, x25519.X25519PublicKey
    return _Cryptography(private.from_private_bytes, public.from_public_bytes, words)
