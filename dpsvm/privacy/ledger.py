"""A budget, what was charged to it, and what is reserved: the rules, wherever they are kept.

A reservation is of a release that is going to be made, by somebody who cannot know yet whether it
will be. It counts as spent, so that nobody else is given the same room, until it is committed,
which makes it a charge; refunded, which takes it away; or expired, which gives the room back.
Charges never go away.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dpsvm.names import NEIGHBOURING
from dpsvm.privacy.accounting import (
    Approximate,
    Event,
    Pure,
    epsilon_at_order,
    epsilon_of,
    filter_order,
)
from dpsvm.privacy.guarantee import check_delta, check_epsilon, check_neighbouring

HOURS = 8784.0
"""For which a reservation may be made at most: a year's."""

_ROUNDING = 1e-12  # three charges of 0.1 fit into 0.3


class BudgetError(ValueError):
    """A charge that the budget does not cover; nothing was charged, nothing may be released."""


class LedgerError(ValueError):
    """A ledger file that cannot be used; the text names it, and may quote what it holds."""


@dataclass(frozen=True)
class Charge:
    """One line of a ledger.

    time : when it was charged, in UTC; "" in what was taken over from a ledger of version 1
    job : digest of the federated job that it pays for, "" outside of a federation
    rounds : of that job
    identity : of the reservation that became this charge, "" where there was none
    """

    event: Event
    label: str = ""
    time: str = ""
    job: str = ""
    rounds: int = 0
    identity: str = ""


@dataclass(frozen=True)
class Reservation:
    """Room for a charge, kept free for whoever knows its identity.

    expires : when it ceases to count, in UTC
    """

    identity: str
    event: Event
    label: str
    expires: str
    job: str = ""
    rounds: int = 0

    @classmethod
    def of(
        cls, event: Event, label: Any, job: Any, rounds: Any, hours: Any, now: float
    ) -> Reservation:
        """A new one, with a random identity; what it is made of is checked."""
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 0:
            raise ValueError(f"rounds must be a whole number from 0 on, got {rounds!r}")
        if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 < hours <= HOURS:
            raise ValueError(f"hours must be a number above 0, at most {HOURS:g}, got {hours!r}")
        expires = at(math.ceil(now + 3600 * hours))
        return cls(secrets.token_hex(16), event, str(label), expires, str(job), rounds)

    def expired(self, now: float) -> bool:
        """Whether it has ceased to count."""
        return now >= seconds(self.expires)


@dataclass(frozen=True)
class Ledger:
    """A budget, what has been charged to it and what is reserved.

    Times are given in seconds since 1970.

    >>> ledger = Ledger.of(1.0).reserve(Reservation("r", Pure(0.75), "run", at(60)), None, now=0)
    >>> ledger.used(now=0), ledger.used(now=60)
    (0.75, 0.0)
    >>> ledger.commit("r", now=30).spent()
    0.75
    """

    epsilon: float
    delta: float
    neighbouring: str
    adaptive: bool = False
    charges: tuple[Charge, ...] = ()
    reservations: tuple[Reservation, ...] = ()  # expired ones, too: there may be room again

    @classmethod
    def of(
        cls,
        epsilon: Any,
        delta: Any = None,
        neighbouring: Any = None,
        adaptive: Any = None,
        charges: tuple[Charge, ...] = (),
        reservations: tuple[Reservation, ...] = (),
    ) -> Ledger:
        """One whose budget is checked."""
        if epsilon is None:
            raise ValueError("epsilon must be given: a budget has no default")
        limit = math.inf if epsilon == math.inf else check_epsilon(epsilon)
        number = 0.0 if delta is None or delta == 0 else check_delta(delta)
        relation = check_neighbouring(NEIGHBOURING[0] if neighbouring is None else neighbouring)
        if adaptive is not None and not isinstance(adaptive, bool):
            raise ValueError(f"adaptive must be True or False, got {adaptive!r}")
        return cls(limit, number, relation, bool(adaptive), charges, reservations)

    def spent(self, more: Sequence[Event] = ()) -> float:
        """The epsilon, at the budget's delta, of all charges and of some more."""
        events = [*(charge.event for charge in self.charges), *more]
        if self.adaptive and self.delta > 0:
            return epsilon_at_order(events, self.delta, filter_order(self.epsilon, self.delta))
        return epsilon_of(events, self.delta)

    def open(self, now: float) -> tuple[Reservation, ...]:
        """The reservations that count."""
        return tuple(one for one in self.reservations if not one.expired(now))

    def used(self, now: float, more: Sequence[Event] = ()) -> float:
        """The epsilon of all charges, of open reservations and of some more."""
        return self.spent([*(one.event for one in self.open(now)), *more])

    def require(self, events: Sequence[Event], neighbouring: str | None, now: float) -> None:
        """Raise BudgetError unless these releases fit beside all that is charged and reserved."""
        if neighbouring is not None and neighbouring != self.neighbouring:
            raise BudgetError(
                f"a release proved private under {neighbouring!r} cannot be charged to a budget "
                f"for {self.neighbouring!r}"
            )
        self._require_room(self.used(now, events), events, now)

    def charge(self, charge: Charge, neighbouring: str | None, now: float) -> Ledger:
        """The ledger with one more charge, if it fits."""
        self.require([charge.event], neighbouring, now)
        return replace(self, charges=(*self.charges, charge))

    def reserve(self, wanted: Reservation, neighbouring: str | None, now: float) -> Ledger:
        """The ledger with one more reservation, if it fits."""
        self.require([wanted.event], neighbouring, now)
        return replace(self, reservations=(*self.reservations, wanted))

    def commit(self, identity: str, now: float) -> Ledger:
        """The ledger in which a reservation has become a charge; itself if it has already.

        The charges never exceed the budget, wherever the clock was set in between.
        """
        if self._committed(identity):
            return self
        one = next((each for each in self.reservations if each.identity == identity), None)
        if one is None:
            raise ValueError(
                f"no reservation {identity!r} is in this ledger: it was refunded, or is another's"
            )
        rest = replace(self, reservations=tuple(r for r in self.reservations if r is not one))
        used = rest.used(now, [one.event]) if one.expired(now) else rest.spent([one.event])
        rest._require_room(used, [one.event], now)
        charge = Charge(one.event, one.label, at(now), one.job, one.rounds, identity)
        return replace(rest, charges=(*self.charges, charge))

    def refund(self, identity: str) -> Ledger:
        """The ledger without a reservation; itself if it has none of this identity."""
        if self._committed(identity):
            raise ValueError(f"reservation {identity!r} is committed: a charge stands")
        rest = tuple(one for one in self.reservations if one.identity != identity)
        return self if len(rest) == len(self.reservations) else replace(self, reservations=rest)

    def _committed(self, identity: str) -> bool:
        return bool(identity) and any(one.identity == identity for one in self.charges)

    def _require_room(self, used: float, events: Sequence[Event], now: float) -> None:
        if used <= self.epsilon * (1 + _ROUNDING):
            return
        if math.isinf(used) and not self.delta:
            raise BudgetError(
                "this release has a delta, and the budget has none: only pure releases fit, of an "
                "epsilon alone"
            )
        what = _describe(events[0], self.delta)
        what = what if len(events) == 1 else f"{len(events)} x {what}"
        reserved = " or reserved" if self.open(now) else ""
        raise BudgetError(
            f"{what} does not fit: {self.used(now):g} of {self.epsilon:g} is spent{reserved} "
            f"(delta = {self.delta:g})"
        )


def at(now: float) -> str:
    """A time as a ledger writes it, in UTC to the second.

    >>> at(0.5)
    '1970-01-01T00:00:00Z'
    """
    try:
        time = datetime.fromtimestamp(math.floor(now), UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"a ledger knows the years 1 to 9999, got {now!r} seconds") from None
    return f"{time.replace(tzinfo=None).isoformat()}Z"  # strftime writes the year 1 as 1


def seconds(time: str) -> float:
    """The time that a ledger has written, in seconds since 1970.

    >>> seconds("1970-01-02T00:00:00Z")
    86400.0
    """
    return datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()


def _describe(event: Event, delta: float) -> str:
    if isinstance(event, Pure):
        return f"epsilon = {event.epsilon:g}"
    if isinstance(event, Approximate):
        return f"epsilon = {event.epsilon:g}, delta = {event.delta:g}"
    return f"epsilon = {epsilon_of([event], delta):g} ({type(event).__name__})"
