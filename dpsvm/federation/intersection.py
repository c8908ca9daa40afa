"""The common elements of two sets of texts, by openmined-psi: the extra ``psi``.

The protocol is that of Diffie and Hellman on the curve P-256. H maps texts to points. The client,
with key a, sends H(x)^a for each of its texts x. The server, with key b, answers H(x)^ab, and sends
H(y)^b for its own texts y, in the order of the points. The client takes its key off and compares.
It learns which of its texts the server has, and how many texts that has; the server learns how many
the client has, and nothing else.

This holds against those who follow the protocol: a client may ask for texts that it has guessed, as
many as the size of its set that others were told.

Points are compared themselves (the package's data structure RAW). Its other two, Golomb sets and
Bloom filters, are shorter and find texts that are not common with a probability that is chosen, for
all of a client's texts together. One such error would join rows of different samples.

Points travel as rows of bytes. The package's own messages, of the format protobuf, are made and
read at the site they are for, and bytes of others are never parsed as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import private_set_intersection.python as psi

from dpsvm.federation.messages import Array
from dpsvm.federation.site import Refusal
from dpsvm.privacy.noise import Noise

POINT_BYTES = 33
"""Of a point: a sign, and a coordinate."""

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256
_UNUSED = 1e-9  # a rate of false positives, which RAW has not

Found = TypeVar("Found")


class Client:
    """The side that learns what is common. Its key is for one run.

    >>> client, server = Client(Noise(1)), Server(Noise(2))
    >>> answer = server.again(client.blinded(["ann", "bob"]), 2)
    >>> client.common(server.own(["bob", "eve", "zoe"]), answer, 2)
    [1]
    """

    def __init__(self, noise: Noise) -> None:
        self._client = psi.client.CreateFromKey(_key(noise), True)

    def blinded(self, texts: Sequence[str]) -> Array:
        """What it sends: a point for each of its texts."""
        return _rows(self._client.CreateRequest(list(texts)).encrypted_elements)

    def common(self, own: Array, twice: Array, count: int) -> list[int]:
        """The places of its texts that the server has too.

        own, twice : the server's points, and its answer
        count : how many texts the client has sent
        """
        points = _points(own)
        if any(one >= other for one, other in pairwise(points)):
            raise Refusal("the points of a set must differ and be in order")
        setup = psi.ServerSetup(raw=psi.ServerSetup.RawInfo(encrypted_elements=points))
        answer = psi.Response(encrypted_elements=_points(twice, count))
        return sorted(_asked(self._client.GetIntersection, setup, answer))


class Server:
    """The side that learns nothing but a number. Its key is for one run."""

    def __init__(self, noise: Noise) -> None:
        self._server = psi.server.CreateFromKey(_key(noise), True)

    def own(self, texts: Sequence[str]) -> Array:
        """A point for each of its texts, in an order that tells nothing of them."""
        given = _UNUSED, len(texts), list(texts), psi.DataStructure.RAW
        return _rows(self._server.CreateSetupMessage(*given).raw.encrypted_elements)

    def again(self, blinded: Array, count: int) -> Array:
        """A client's points, of which there must be so many, under its own key as well."""
        points = _points(blinded, count)
        request = psi.Request(reveal_intersection=True, encrypted_elements=points)
        return _rows(_asked(self._server.ProcessRequest, request).encrypted_elements)


def _key(noise: Noise) -> bytes:
    """A number from 1 to the order of the curve, all but equally likely."""
    number = 1 + int.from_bytes(noise.bytes(48), "big") % (_ORDER - 1)
    return number.to_bytes(32, "big")


def _rows(points: Sequence[bytes]) -> Array:
    return np.frombuffer(b"".join(points), np.uint8).reshape(-1, POINT_BYTES)


def _points(rows: Array, count: int | None = None) -> list[bytes]:
    """The points of rows of bytes, all different."""
    if rows.ndim != 2 or rows.shape[1] != POINT_BYTES:
        raise Refusal(f"points have {POINT_BYTES} bytes each, got an array {rows.shape}")
    if count is not None and len(rows) != count:
        raise Refusal(f"{count} points are needed, got {len(rows)}")
    found = [row.tobytes() for row in rows]
    if len(set(found)) != len(found):
        raise Refusal("the points of a set must differ and be in order")
    return found


def _asked(ask: Callable[..., Found], *given: Any) -> Found:
    """What the package makes of points of others, which may be none."""
    try:
        return ask(*given)
    except (RuntimeError, ValueError):
        raise Refusal("these bytes are no points of the curve") from None
