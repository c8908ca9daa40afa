"""What travels between a coordinator and a party: typed, versioned, bounded, and nothing else.

A message belongs to a run and a round, is of a kind, and holds named arrays and scalars. What a
kind may hold is listed in :data:`FIELDS`, field by field; a message that lacks a field, or has one
more, is neither sent nor taken. Every algorithm's own objects fill these fields and read them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.federation.frames import LARGEST, FrameError, pack, unpack

VERSION = 2
"""Of the protocol. Sites of different versions do not talk."""

NOT_BEGUN = -1
"""The round of a run that has not begun."""

Array = NDArray[Any]
Scalar = bool | int | float | str | None

_MOST_ROUNDS = 1 << 40
_LONGEST_TEXT = 4096


class MessageError(ValueError):
    """Bytes or values that are no message of this protocol."""


@dataclass(frozen=True)
class Numbers:
    """A field that holds an array."""

    axes: int
    dtype: str = "f8"
    needed: bool = True


@dataclass(frozen=True)
class Value:
    """A field that holds a scalar."""

    kind: type
    needed: bool = True


Fields = Mapping[str, Numbers | Value]

_OPENING: Fields = {
    "rows": Value(int),
    "sizes": Numbers(1, "i8"),
    "keys": Numbers(2, "i8", needed=False),  # of the parties' hellos, where parts are hidden
    "signatures": Numbers(2, "i8", needed=False),
    "ledgers": Numbers(1, "i8", needed=False),  # of the parties, as their hellos told
    "heads": Numbers(2, "i8", needed=False),
    "seen_ledgers": Numbers(1, "i8", needed=False),  # what each of them saw of this party's
    "seen_heads": Numbers(2, "i8", needed=False),
}

FIELDS: Mapping[str, Fields] = {
    # To a party: who are you? Its answer, before anything is computed or charged.
    "greet": {"version": Value(int), "job": Value(str)},
    "hello": {
        "version": Value(int),
        "job": Value(str),  # digest of the terms that it was given
        "party": Value(str),
        "rows": Value(int),
        "columns": Value(int),
        "ids": Value(str),  # salted digest of the ordered sample ids, "" without ids
        "held": Value(int),  # last round that it answered, -1 before the run
        "budget": Value(float, needed=False),  # epsilon left in its ledger
        "key": Value(str),  # X25519 of the run, for sums that hide their parts, else ""
        "signature": Value(str),  # of it, by the site's key
        "ledger": Value(int),  # charges that its ledger holds
        "head": Value(str),  # the link of the chain after the last, "" without a ledger
        "seen_ledgers": Numbers(1, "i8", needed=False),  # what it last saw of the parties' ledgers
        "seen_heads": Numbers(2, "i8", needed=False),
    },
    # To a party: begin, with what all of them must know of each other. "rehearse" charges nothing.
    "begin": _OPENING,
    "rehearse": _OPENING,
    "ready": {},
    # What a party adds to a sum: in words that its masks hide, or in the open.
    "masked": {"words": Numbers(1, "i8")},
    "contribution": {"prediction": Numbers(1), "squares": Value(float, needed=False)},
    # ADMM sharing.
    "price": {"price": Numbers(1), "rho": Value(float), "keep": Value(bool)},
    # ADMM over a network: a row for each neighbour, in increasing order.
    "neighbours": {"weights": Numbers(2)},
    "iterate": {"weights": Numbers(1)},
    # Frank-Wolfe.
    "query": {"residual": Numbers(1)},
    "proposal": {"choice": Value(int), "sketch": Numbers(1, needed=False)},
    # Joint prediction. Where the coordinator holds the model, each party is told its own weights
    # and the digests of everybody's.
    "ask": {"weights": Numbers(1, needed=False), "digests": Numbers(2, "i8", needed=False)},
    # Alignment: rows of 33 bytes, points of a curve that hide sample ids under somebody's key.
    "match": {"blinded": Numbers(2, "u1")},
    "matched": {name: Numbers(2, "u1") for name in ("own", "twice", "blinded")},
    "common": {"own": Numbers(2, "u1"), "twice": Numbers(2, "u1")},
    "aligned": {"samples": Value(int)},
    # The end of a run, and of one that is given up.
    "end": {"reason": Value(str), "restore": Value(bool)},
    "ended": {},
    "stop": {"reason": Value(str)},
    "stopped": {},
    "refusal": {"reason": Value(str)},
}
"""The protocol's list: the fields of every kind of message."""

FROM_PARTY = (
    *("hello", "ready", "masked", "contribution", "iterate", "proposal", "matched", "aligned"),
    *("ended", "stopped", "refusal"),
)
"""The kinds that leave a party."""


@dataclass(frozen=True, eq=False)
class Message:
    """One message.

    >>> message = Message("run-1", 3, "contribution", {"prediction": np.array([0.5])})
    >>> Message.decode(message.encode()).arrays["prediction"]
    array([0.5])
    >>> Message("run-1", 3, "contribution", scalars={"weights": 1.0})
    Traceback (most recent call last):
    ...
    dpsvm.federation.messages.MessageError: a contribution has no field 'weights'
    """

    run: str
    round: int
    kind: str
    arrays: Mapping[str, Array] = field(default_factory=dict)
    scalars: Mapping[str, Scalar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_text(self.run, "run")
        if type(self.round) is not int or not NOT_BEGUN <= self.round <= _MOST_ROUNDS:
            raise MessageError(f"a round cannot be {self.round!r:.80}")
        if not isinstance(self.kind, str) or self.kind not in FIELDS:
            raise MessageError(f"there is no message of kind {self.kind!r:.80}")
        if set(self.arrays) & set(self.scalars):
            raise MessageError(f"a {self.kind} has an array and a scalar of one name")
        for name, value in {**self.arrays, **self.scalars}.items():
            if name not in FIELDS[self.kind]:
                raise MessageError(f"a {self.kind} has no field {name!r:.80}")
            _check_field(self.kind, name, FIELDS[self.kind][name], value)
        for name, wanted in FIELDS[self.kind].items():
            there = name in (self.arrays if isinstance(wanted, Numbers) else self.scalars)
            if not there and wanted.needed:
                raise MessageError(f"a {self.kind} needs the field {name!r}")

    def encode(self) -> bytes:
        """Its bytes; the same message always gives the same ones."""
        names = sorted(self.arrays)
        content = [VERSION, self.run, self.round, self.kind, dict(self.scalars), names]
        return pack(content, [self.arrays[name] for name in names])

    @classmethod
    def decode(cls, data: bytes, *, largest: int = LARGEST) -> Message:
        """The message of some bytes, or a MessageError that says what is wrong with them.

        >>> Message.decode(b"hello")
        Traceback (most recent call last):
        ...
        dpsvm.federation.messages.MessageError: 5 bytes are too few for a frame
        """
        try:
            content, arrays = unpack(data, largest=largest)
        except FrameError as error:
            raise MessageError(str(error)) from None
        if not isinstance(content, list) or len(content) != 6:
            raise MessageError("these bytes hold no message")
        version, run, number, kind, scalars, names = content
        if type(version) is not int or version != VERSION:
            raise MessageError(f"a message of version {VERSION} is needed, got {version!r:.80}")
        listed = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not isinstance(scalars, dict) or not listed or len(names) != len(arrays):
            raise MessageError("these bytes hold no message")
        if names != sorted(set(names)):
            raise MessageError("the arrays of a message are named once each, in order")
        return cls(run, number, kind, dict(zip(names, arrays, strict=True)), scalars)

    def text(self, name: str) -> str:
        """A scalar that is a text."""
        return str(self.scalars[name])

    def whole(self, name: str) -> int:
        """A scalar that is a whole number."""
        return int(self.scalars[name] or 0)

    def real(self, name: str) -> float:
        """A scalar that is a number."""
        return float(self.scalars[name] or 0.0)


def refusal(run: str, number: int, reason: str) -> Message:
    """The message that says no, and why.

    >>> refusal("run-1", 2, "round 1 comes first").text("reason")
    'round 1 comes first'
    """
    return Message(run, number, "refusal", scalars={"reason": reason[:_LONGEST_TEXT]})


def refused_bytes(data: bytes, reason: str) -> bytes:
    """The bytes of the refusal of what some bytes ask."""
    try:
        asked = Message.decode(data)
    except MessageError:
        return refusal("", NOT_BEGUN, reason).encode()
    return refusal(asked.run, asked.round, reason).encode()


def decoded_answer(data: bytes, asked: Message) -> Message:
    """The answer in some bytes; what is no message counts as a refusal.

    >>> decoded_answer(b"hello", Message("run-1", 2, "ask")).text("reason")
    'it answered with what is no message: 5 bytes are too few for a frame'
    """
    try:
        return Message.decode(data)
    except MessageError as error:
        return refusal(asked.run, asked.round, f"it answered with what is no message: {error}")


def _check_field(kind: str, name: str, wanted: Numbers | Value, value: Any) -> None:
    if isinstance(wanted, Numbers):
        fits = isinstance(value, np.ndarray) and value.ndim == wanted.axes
        if not fits or value.dtype != np.dtype(wanted.dtype):
            raise MessageError(f"{name!r} of a {kind} must be {wanted.dtype}, axes {wanted.axes}")
        return
    if value is None and not wanted.needed:
        return
    if type(value) is not wanted.kind:
        raise MessageError(f"{name!r} of a {kind} must be {wanted.kind.__name__}: {value!r:.80}")
    if isinstance(value, float) and not math.isfinite(value):
        raise MessageError(f"{name!r} of a {kind} must be finite, got {value!r}")
    if isinstance(value, int) and not -(2**62) <= value <= 2**62:
        raise MessageError(f"{name!r} of a {kind} is too large")
    if isinstance(value, str):
        _check_text(value, name)


def _check_text(value: Any, name: str) -> None:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise MessageError(f"{name} must be a text of at most {_LONGEST_TEXT} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise MessageError(f"{name} must be a text that can be written in UTF-8") from None
