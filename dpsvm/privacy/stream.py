"""Random bytes that a secret key gives again: for a release that must survive a crash unchanged."""

from __future__ import annotations

import hashlib

KEY_BYTES = 32


class SecretStream:
    """Bytes of SHAKE-256 of a key, a place and a count: to whoever lacks the key, random.

    The key must be drawn from the operating system, be used for one run only, and never leave the
    disk of whoever the noise protects. The bytes of a place are always the same, so that a release
    that was interrupted is made again with the same noise, and costs nothing more.

    >>> stream = SecretStream(bytes(32))
    >>> stream.seek("round 1")
    >>> first = stream.bytes(4), stream.bytes(4)
    >>> stream.seek("round 1")
    >>> first == (stream.bytes(4), stream.bytes(4))
    True
    >>> first[0] == first[1]
    False
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, got {len(key)}")
        self._key, self._count = key, 0
        self._place: bytes | None = None

    def seek(self, place: str) -> None:
        """Go to the beginning of a place."""
        self._place, self._count = place.encode(), 0

    def bytes(self, count: int) -> bytes:
        """The next bytes of this place; there are none before the first :meth:`seek`."""
        if self._place is None:
            raise RuntimeError("a secret stream must be told where it is before it gives bytes")
        head = len(self._place).to_bytes(8, "little") + self._place
        state = hashlib.shake_256(self._key + head + self._count.to_bytes(8, "little"))
        self._count += 1
        return state.digest(count)
