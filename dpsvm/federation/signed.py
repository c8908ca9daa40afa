"""Small files of JSON that somebody has signed: one line of text, one line of its signature."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpsvm.federation.keys import SIGNATURE_BYTES, PublicKey, SigningKey
from dpsvm.federation.site import Refusal

LARGEST = 1 << 20
"""Bytes of a file that is read or written: fifteen thousand digests."""

_SIGNATURE = re.compile(rb"[0-9a-f]{%d}" % (2 * SIGNATURE_BYTES))


def signed(content: Mapping[str, Any], key: SigningKey, purpose: str) -> bytes:
    """The bytes of a file.

    purpose : what is signed, so that it can be taken for nothing else

    >>> key = SigningKey("approver", bytes(32))
    >>> opened(signed({"run": "heart-1"}, key, "test"), key.public, "test", "a list")
    {'run': 'heart-1'}
    """
    text = canonical(content)
    whole = text + b"\n" + key.sign(purpose, text).hex().encode() + b"\n"
    if len(whole) > LARGEST:
        raise Refusal(f"{len(whole)} bytes are too many to be signed, {LARGEST} at most")
    return whole


def opened(data: bytes, key: PublicKey, purpose: str, what: str) -> dict[str, Any]:
    """What such a file says; a Refusal if it is not this key that says it.

    Nothing is parsed before the signature is checked, and a text is taken in one form only.

    >>> opened(b"{}", SigningKey("approver", bytes(32)).public, "test", "a list")
    Traceback (most recent call last):
    ...
    dpsvm.federation.site.Refusal: a list is broken: a text and its signature are needed
    """
    if len(data) > LARGEST:
        raise Refusal(f"{what} is broken: more than {LARGEST} bytes")
    text, _, rest = data.partition(b"\n")
    signature, _, end = rest.partition(b"\n")
    if end or not rest.endswith(b"\n") or not _SIGNATURE.fullmatch(signature):
        raise Refusal(f"{what} is broken: a text and its signature are needed")
    if not key.verifies(bytes.fromhex(signature.decode()), purpose, text):
        raise Refusal(f"{what} is not signed by the approver of this site")
    try:
        content = json.loads(text)
        whole = isinstance(content, dict) and canonical(content) == text
    except (ValueError, RecursionError):
        whole = False
    if not whole:
        raise Refusal(f"{what} is broken: its text is not in the one form that it may have")
    found: dict[str, Any] = content
    return found


def read_signed(path: Path, what: str) -> bytes | None:
    """The bytes of such a file, None if there is none; a Refusal if it cannot be read."""
    try:
        if not path.exists():
            return None
        if not path.is_file():
            raise Refusal(f"{what} is not a file")
        with open(path, "rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise Refusal(f"{what} cannot be read: {error.strerror or error}") from None


def canonical(content: Mapping[str, Any]) -> bytes:
    """The one text of what is signed."""
    text = json.dumps(content, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return text.encode()
