"""Bytes for a wire or a disk: a header in JSON, arrays of numbers, and a digest over all of it.

    8 bytes   magic, with the version of this layout
    4 bytes   length of the header, little-endian
    header    JSON: {"content": ..., "arrays": [[dtype, shape], ...]}
    arrays    little-endian, one after the other, rows first
    16 bytes  BLAKE2b of everything before

Nothing is executed to read it: no pickle. Every length is checked against what there is, and
against its limit, before memory is taken for it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"DPSVMFR1"
LARGEST = 1 << 30
"""Bytes of a frame, at most: 2**27 numbers."""

_LARGEST_HEADER = 1 << 20
_MOST_ARRAYS = 4096
_MOST_AXES = 2
_DIGEST = 16
_ARRAY = "$array"  # in a snapshot, the place of one
_DTYPES: dict[str, np.dtype[Any]] = {
    "f8": np.dtype("<f8"),
    "i8": np.dtype("<i8"),
    "u1": np.dtype("u1"),
}
_NAMES = {("f", 8): "f8", ("i", 8): "i8", ("u", 1): "u1"}


class FrameError(ValueError):
    """Bytes that are no frame, or one that is larger than allowed."""


def pack(content: Any, arrays: Sequence[NDArray[Any]] = (), *, strict: bool = True) -> bytes:
    """A frame of some content that JSON can hold, and of arrays of float64, int64 or bytes.

    strict : names in order, so that equal contents have equal bytes, and neither NaN nor infinity
        outside of arrays

    >>> content, [array] = unpack(pack({"round": 3}, [np.array([0.5, 1.0])]))
    >>> content, array
    ({'round': 3}, array([0.5, 1. ]))
    """
    if len(arrays) > _MOST_ARRAYS:
        raise FrameError(f"{len(arrays)} arrays are too many for a frame")
    described, parts = [], []
    for array in arrays:
        name = _NAMES.get((array.dtype.kind, array.dtype.itemsize))
        if name is None or array.ndim > _MOST_AXES:
            raise FrameError(f"no array of {array.dtype} with {array.ndim} axes can be packed")
        described.append([name, list(array.shape)])
        parts.append(np.ascontiguousarray(array, dtype=_DTYPES[name]).tobytes())
    text = json.dumps(
        {"content": content, "arrays": described},
        allow_nan=not strict,
        sort_keys=strict,
        separators=(",", ":"),
    ).encode()
    body = b"".join([MAGIC, len(text).to_bytes(4, "little"), text, *parts])
    if len(text) > _longest_header(strict) or len(body) + _DIGEST > LARGEST:
        raise FrameError(f"a frame of {len(body) + _DIGEST} bytes is too large")
    return body + _digest(body)


def unpack(
    data: bytes, *, largest: int = LARGEST, strict: bool = True
) -> tuple[Any, list[NDArray[Any]]]:
    """The content and the arrays of a frame, or a FrameError that says what is wrong with it.

    >>> unpack(b"DPSVMFR1 and so on")
    Traceback (most recent call last):
    ...
    dpsvm.federation.frames.FrameError: 18 bytes are too few for a frame
    """
    if len(data) > largest:
        raise FrameError(f"a frame of {len(data)} bytes is above the limit of {largest}")
    start = len(MAGIC) + 4
    if len(data) < start + _DIGEST:
        raise FrameError(f"{len(data)} bytes are too few for a frame")
    if data[: len(MAGIC)] != MAGIC:
        raise FrameError("these bytes are no frame of this version")
    if _digest(data[:-_DIGEST]) != data[-_DIGEST:]:
        raise FrameError("the digest does not fit: bytes were changed or lost")
    length = int.from_bytes(data[len(MAGIC) : start], "little")
    if length > _longest_header(strict) or start + length + _DIGEST > len(data):
        raise FrameError(f"a header of {length} bytes does not fit")
    header = _header(data[start : start + length], strict=strict)
    arrays = []
    place, end = start + length, len(data) - _DIGEST
    for dtype, shape in _descriptions(header["arrays"]):
        size = math.prod(shape) * dtype.itemsize
        if place + size > end:
            raise FrameError("the arrays are longer than the frame")
        flat = np.frombuffer(data, dtype, math.prod(shape), offset=place)
        arrays.append(flat.reshape(shape).astype(dtype.newbyteorder("=")))  # a copy, aligned
        place += size
    if place != end:
        raise FrameError(f"{end - place} bytes are left over")
    return header["content"], arrays


def _longest_header(strict: bool) -> int:
    """What others send is kept short; what a site has kept itself may grow with the run."""
    return _LARGEST_HEADER if strict else LARGEST


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()


def _header(text: bytes, *, strict: bool) -> dict[str, Any]:
    def constant(name: str) -> float:
        if strict:
            raise FrameError(f"the header holds {name}")
        return float(name.replace("Infinity", "inf"))

    try:
        found = json.loads(text.decode("utf-8"), parse_constant=constant)
    except FrameError:
        raise
    except (ValueError, RecursionError) as error:
        raise FrameError(f"the header is no JSON: {error}") from None
    if not isinstance(found, dict) or set(found) != {"content", "arrays"}:
        raise FrameError("the header must hold content and arrays, and nothing else")
    return found


def _descriptions(given: Any) -> list[tuple[np.dtype[Any], tuple[int, ...]]]:
    if not isinstance(given, list) or len(given) > _MOST_ARRAYS:
        raise FrameError("the header must list its arrays")
    found = []
    for one in given:
        try:
            name, shape = one
            dtype = _DTYPES[name]
        except (TypeError, ValueError, KeyError):
            raise FrameError(f"an array cannot be described as {one!r:.80}") from None
        fine = isinstance(shape, list) and len(shape) <= _MOST_AXES
        if not fine or not all(type(n) is int and 0 <= n <= LARGEST for n in shape):
            raise FrameError(f"an array cannot have the shape {shape!r:.80}")
        found.append((dtype, tuple(shape)))
    return found


def freeze(value: Any) -> bytes:
    """The bytes of a snapshot.

    >>> thaw(freeze({"weights": np.array([0.5]), "rounds": [1, None]}))
    {'weights': array([0.5]), 'rounds': [1, None]}
    """
    arrays: list[Any] = []

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {_ARRAY: len(arrays) - 1}
        if isinstance(value, dict):
            return {str(key): plain(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(one) for one in value]
        return value.item() if isinstance(value, np.generic) else value

    return pack(plain(value), arrays, strict=False)


def thaw(data: bytes) -> Any:
    """The snapshot of some bytes, or a FrameError that says what is wrong with them."""
    content, arrays = unpack(data, strict=False)

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            if set(value) == {_ARRAY}:
                return arrays[value[_ARRAY]]
            return {key: whole(one) for key, one in value.items()}
        return [whole(one) for one in value] if isinstance(value, list) else value

    return whole(content)
