"""The text of a ledger file, and the chain of MACs by which a change of it is seen.

A ledger has a secret key of 32 bytes. HMAC-SHA256 under it makes a chain: of the budget, then, for
each charge in order, of the link before and the charge. The MAC that the file ends with is of the
last link and all reservations, and a text is read only if the ledger that it gives is written as
the same bytes, that MAC included. So nothing of it can be changed, left out, put in or moved by
whoever has not the key. The links themselves are no secret: with its count, another site can keep
one, and see later whether this ledger still goes back to it.

What this cannot see: an older state of the same ledger put back in its place, if nobody keeps a
later link of it; and whatever is written by somebody who can read the key.
"""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from dpsvm.privacy.accounting import Approximate, Event, Folded, Gaussian, Pure, Rdp, ZCdp
from dpsvm.privacy.ledger import Charge, Ledger, Reservation, seconds

KEY_BYTES = 32
"""Of the key of a ledger."""

FORMAT, BEFORE = (f"dpsvm privacy ledger, version {number}" for number in (2, 1))
_BUDGET = ("epsilon", "delta", "neighbouring", "adaptive")
_KINDS: dict[str, Callable[..., Event]] = {
    kind.__name__: kind for kind in (Pure, Approximate, Gaussian, ZCdp, Folded, Rdp)
}


def written(ledger: Ledger, key: bytes) -> bytes:
    """The text of a ledger, in ASCII.

    >>> text = written(Ledger.of(1.0), bytes(32))
    >>> parsed(text, "ledger") == Ledger.of(1.0)
    True
    >>> require_unchanged(Ledger.of(9.0), text, bytes(32), "ledger")
    Traceback (most recent call last):
    ...
    ValueError: ledger: not a privacy ledger as dpsvm wrote it with this key: something changed it
    """
    charges, reserved = _lines(ledger.charges), _lines(ledger.reservations)
    last = bytes.fromhex(_chain(ledger, charges, key)[-1])
    end = _mac(key, "file", last, *(f"{line}\n" for line in reserved))
    head = ",\n ".join(
        f"{json.dumps(name)}: {json.dumps(value)}" for name, value in _budget(ledger).items()
    )
    body = f' "charges": {_listed(charges)},\n "reserved": {_listed(reserved)}'
    return f'{{{head},\n{body},\n "mac": "{end.hex()}"}}\n'.encode("ascii")


def links(ledger: Ledger, key: bytes) -> list[str]:
    """The chain in hex: one link of the budget, and one more for each charge.

    >>> [len(link) for link in links(Ledger.of(1.0), bytes(32))]
    [64]
    """
    return _chain(ledger, _lines(ledger.charges), key)


def require_unchanged(ledger: Ledger, text: bytes, key: bytes, path: str) -> None:
    """Refuse a text of a ledger that was not written with this key."""
    if not hmac.compare_digest(written(ledger, key), text):
        raise ValueError(
            f"{path}: not a privacy ledger as dpsvm wrote it with this key: something changed it"
        )


def parsed(text: bytes, path: str, expected: str = FORMAT) -> Ledger:
    """The ledger of a file's text, whoever wrote it; what is none is a ValueError."""
    try:
        content = json.loads(text.decode("utf-8"))
        if content["format"] != expected:
            raise ValueError(_other_format(content["format"], expected, path))
        for name in ("charges", *(["reserved"] if expected == FORMAT else [])):
            if not isinstance(content[name], list):
                raise ValueError(f"{name} must be a list, got {content[name]!r}")
        budget = {name: content[name] for name in _BUDGET}
        for name, value in budget.items():
            if value is None or value == math.inf:  # JSON has no infinity: a budget writes "inf"
                raise ValueError(f"{name} must not be {value!r}")
        if budget["epsilon"] == "inf":
            budget["epsilon"] = math.inf
        charges = tuple(_charge(line) for line in content["charges"])
        reserved = tuple(_reservation(line) for line in content.get("reserved", []))
        return Ledger.of(**budget, charges=charges, reservations=reserved)
    except RecursionError:
        raise ValueError(f"{path}: not a privacy ledger: it is nested too deeply") from None
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise ValueError(f"{path}: not a privacy ledger: {reason}") from error


def _other_format(found: Any, expected: str, path: str) -> str:
    if found == BEFORE:
        return (
            f"it is one of version 1, which nothing protects from changes. If you trust it as it "
            f"is, dpsvm budget adopt {path} takes it over"
        )
    return f"its format is {found!r}, not {expected!r}"


def _budget(ledger: Ledger) -> dict[str, Any]:
    epsilon = ledger.epsilon if math.isfinite(ledger.epsilon) else "inf"
    budget = (epsilon, ledger.delta, ledger.neighbouring, ledger.adaptive)
    return {"format": FORMAT, **dict(zip(_BUDGET, budget, strict=True))}


def _lines(entries: Sequence[Charge | Reservation]) -> list[str]:
    """One line of JSON for each."""
    found = []
    for entry in entries:
        event = {"kind": type(entry.event).__name__, **vars(entry.event)}
        found.append(json.dumps({**vars(entry), "event": event}))
    return found


def _listed(lines: Sequence[str]) -> str:
    return "[\n  " + ",\n  ".join(lines) + "\n ]" if lines else "[]"


def _chain(ledger: Ledger, lines: Sequence[str], key: bytes) -> list[str]:
    link = _mac(key, "budget", json.dumps(_budget(ledger)))
    found = [link.hex()]
    for line in lines:
        link = _mac(key, "charge", link, line)
        found.append(link.hex())
    return found


def _charge(line: dict[str, Any]) -> Charge:
    if "event" in line:
        return Charge(**_texts({**line, "event": _event(line["event"])}, "time"))
    event = dict(line)  # of version 1
    label = str(event.pop("label"))
    return Charge(_event(event), label)


def _reservation(line: dict[str, Any]) -> Reservation:
    return Reservation(**_texts({**line, "event": _event(line["event"])}, "expires"))


def _texts(fields: dict[str, Any], time: str) -> dict[str, Any]:
    """The fields of an entry, of the types they must have."""
    for name in ("label", "job", "identity", time):
        if not isinstance(fields[name], str):
            raise ValueError(f"{name} must be a text, got {fields[name]!r}")
    if type(fields["rounds"]) is not int:
        raise ValueError(f"rounds must be a whole number, got {fields['rounds']!r}")
    if fields[time] or time == "expires":
        seconds(fields[time])
    return fields


def _event(fields: dict[str, Any]) -> Event:
    rest = dict(fields)
    kind = rest.pop("kind")
    if kind not in _KINDS:
        raise ValueError(f"{kind!r} is no kind of charge")
    return _KINDS[kind](**rest)


def _mac(key: bytes, what: str, *parts: str | bytes) -> bytes:
    whole = [part.encode() if isinstance(part, str) else part for part in (f"{what}\n", *parts)]
    return hmac.digest(key, b"".join(whole), "sha256")
