"""What a site last saw of the ledgers of others, and the reverse.

Every site tells in its hello how many charges its ledger holds and the link of the chain after the
last, and what it saw of the others when it last began a run with them. A ledger that was put back
together with all that its site keeps is found out by the first who remembers more. A coordinator
that leaves out what others saw hides it; and it must be one of them who saw it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dpsvm._locks import lock
from dpsvm._streams import atomic_write
from dpsvm.federation.messages import Array, Message
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.store import StoreError, make_folder

_WORDS, _HEX = 4, 64
_LARGEST = 1 << 22
_MOST = 1 << 32  # charges, more than a ledger can hold

FILE = "witness.json"
"""Where it is kept, in the state folder."""


def head_of(site: Site) -> tuple[int, str]:
    """How many charges the ledger of a site holds, and the link after the last; 0 and "" without.

    >>> head_of(Site("lab"))
    (0, '')
    """
    if site.ledger is None:
        return 0, ""
    count = site.ledger.count
    return count, site.ledger.head(count)


def seen(site: Site, names: Sequence[str]) -> dict[str, Array]:
    """What a site last saw of others, as arrays of a message; zeros of whom it never saw."""
    known = _load(site)
    found = [known.get(name, (0, "")) for name in names]
    return witnessed("seen_ledgers", "seen_heads", found)


def witnessed(counts: str, heads: str, found: Sequence[tuple[int, str]]) -> dict[str, Array]:
    """Counts and links as two arrays with these names.

    >>> witnessed("counts", "heads", [(3, "00" * 31 + "01")])["heads"]
    array([[                0,                 0,                 0,
            72057594037927936]])
    """
    digits = b"".join(bytes.fromhex(head or "00" * (_HEX // 2)) for _, head in found)
    table = np.frombuffer(digits, dtype="<i8").reshape(len(found), _WORDS)
    return {
        counts: np.array([count for count, _ in found], dtype=np.int64),
        heads: np.array(table, dtype=np.int64),
    }


def head_told(count: int, head: str) -> tuple[int, str]:
    """What another has told of its ledger, if it can be that."""
    if not 0 <= count <= _MOST or len(head) not in (0, _HEX) or set(head) - set("0123456789abcdef"):
        raise Refusal(f"a count and a link of a ledger are awaited, got {count}, {head!r:.80}")
    return count, head


def told(counts: Array | None, heads: Array | None, size: int) -> list[tuple[int, str]]:
    """The same back, of so many sites; nothing seen where there are none."""
    if counts is None or heads is None:
        return [(0, "")] * size
    if counts.shape != (size,) or heads.shape != (size, _WORDS):
        raise Refusal(f"the ledgers of {size} sites are awaited, got {counts.shape}, {heads.shape}")
    if np.any((counts < 0) | (counts > _MOST)):
        raise Refusal(f"no ledger has so many charges: {counts.tolist()!r:.80}")
    words = [np.ascontiguousarray(one, dtype="<i8").tobytes().hex() for one in heads]
    return [
        (int(count), "" if not int(word, 16) else word)
        for count, word in zip(counts, words, strict=True)
    ]


class Told(NamedTuple):
    """What a party has told of its ledger, and of what it saw of all parties'."""

    own: tuple[int, str]
    seen: list[tuple[int, str]]

    @classmethod
    def by(cls, hello: Message, size: int) -> Told:
        """What a hello tells, if it can be that."""
        arrays = hello.arrays
        own = head_told(hello.whole("ledger"), hello.text("head"))
        return cls(own, told(arrays.get("seen_ledgers"), arrays.get("seen_heads"), size))


def opening(place: int, all_told: Sequence[Told]) -> dict[str, Array]:
    """What a party is told when a run begins: of all ledgers, and of what others saw of its own."""
    own = witnessed("ledgers", "heads", [one.own for one in all_told])
    return own | witnessed("seen_ledgers", "seen_heads", [one.seen[place] for one in all_told])


def require_witnessed(site: Site, names: Sequence[str], message: Message) -> None:
    """Refuse a ledger of which somebody saw more than it holds, or something else."""
    arrays = message.arrays
    told(arrays.get("ledgers"), arrays.get("heads"), len(names))  # what is kept once it is paid
    found = told(arrays.get("seen_ledgers"), arrays.get("seen_heads"), len(names))
    if site.ledger is None:
        return
    for name, (count, head) in zip(names, found, strict=True):
        if head and site.ledger.head(count) != head:
            raise StoreError(
                f"{name} saw {count} charges in the ledger of {site.name}, which are not there, or "
                "others: the ledger was put back or replaced (another ledger needs another name of "
                "the site)"
            )


def keep(site: Site, names: Sequence[str], message: Message) -> None:
    """Remember what the others told of their ledgers, as a run begins."""
    found = told(message.arrays.get("ledgers"), message.arrays.get("heads"), len(names))
    if site.state is None:
        return
    fresh = {name: one for name, one in zip(names, found, strict=True) if one[1]}
    fresh.pop(site.name, None)
    if not fresh:
        return
    make_folder(site.state)
    held = lock(site.state / f".{FILE}.lock")
    try:
        known = _load(site)
        later = {name: one for name, one in fresh.items() if one[0] >= known.get(name, one)[0]}
        if later.items() <= known.items():
            return
        content = {name: {"count": n, "head": head} for name, (n, head) in (known | later).items()}
        with atomic_write(site.state / FILE, permissions=0o600) as file:
            file.write(json.dumps(content, indent=1, sort_keys=True) + "\n")
    finally:
        held.release()


def _load(site: Site) -> dict[str, tuple[int, str]]:
    path = None if site.state is None else site.state / FILE
    if path is None or not path.exists():
        return {}
    try:
        data = path.read_bytes()
        content: Any = json.loads(data) if len(data) <= _LARGEST else None
        return {name: _entry(**one) for name, one in content.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise StoreError("what was seen of other ledgers cannot be read", path) from None


def _entry(count: int, head: str) -> tuple[int, str]:
    if type(count) is not int or not 0 <= count <= _MOST or len(bytes.fromhex(head)) * 2 != _HEX:
        raise ValueError(f"not an entry: {count!r:.80}, {head!r:.80}")
    return count, head
