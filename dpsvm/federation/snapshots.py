"""Snapshots as bytes: nested lists and dicts with arrays among them, in one frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsvm.federation.frames import pack, unpack

_ARRAY = "$array"


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
