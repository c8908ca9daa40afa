"""A budget for privacy: charged before anything is released, kept in memory or in a ledger file.

A change of a ledger file by whoever cannot read its key is an error on opening it: a flipped bit, a
line left out, put in or moved, a file cut short or of another key. Two things remain possible. Who
can read the key can write whatever ledger they like. And an older state of the ledger can be put
back, which shows only against what is newer elsewhere: a later ``head`` that a peer has kept, or
the folder of a run that was charged. If ledger, key and folders are put back together and no peer
has seen more, nobody can tell.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any, get_args

from dpsvm.privacy.accounting import Approximate, Event, Pure
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.ledger import BudgetError, Charge, Ledger, Reservation, at
from dpsvm.privacy.ledger_file import ELSEWHERE, LedgerFile, MemoryLedger

__all__ = ["BudgetAccountant", "BudgetError", "Charge", "Ledger", "Reservation"]


class BudgetAccountant:
    """Keeps the releases from one data set within (epsilon, delta).

    epsilon, delta : float
        The budget. Without delta only pure releases fit. Left out when a ledger file is opened,
        which holds them.
    neighbouring : "add-remove", "replace", "column", "row" or "features"
        The relation all charges must be proved under.
    path : path, optional
        A ledger file, shared by threads and processes: every charge is checked and written, whole,
        under a lock. Opening a ledger never resets it. Beside it lies its secret key,
        ``<path>.key``, which only its owner may read; without it a ledger cannot be opened.
    create : bool
        Begin a new ledger file and its key. They must not exist; without ``create`` they must.
    adaptive : bool
        Whether the size of a charge may be chosen in the light of what earlier charges paid for.
        If not, what is asked of the data may depend on that, but not what it costs; then the
        tightest composition holds. With ``adaptive`` one rule is fixed from the start
        (:func:`~dpsvm.privacy.accounting.epsilon_at_order`), which asks for a little more.
    clock : callable, optional
        Gives the time in seconds since 1970; the system's, unless given.

    A charge is made before what it pays for is computed. If that then fails, the charge stands.
    ``copy.deepcopy`` and ``sklearn.base.clone`` give the accountant itself: a copy would double the
    budget. For the same reason an accountant without a file takes no charge in another process
    than its own, and arrives from a pickle closed.

    Who cannot know yet whether a release will be made reserves room for it with ``reserve``, and
    calls ``commit`` before the release or ``refund`` in its place. Open reservations count in
    ``check``, ``spend``, ``reserve`` and ``remaining``; ``charges``, ``count``, ``head`` and
    ``total`` are of what was charged alone.

    >>> accountant = BudgetAccountant(1.0)
    >>> accountant.spend(Pure(0.25), label="count")
    >>> accountant.spend(0.5)
    >>> print(accountant.total())
    epsilon = 0.75 (add-remove)
    >>> accountant.remaining()
    0.25
    >>> accountant.spend(0.5)
    Traceback (most recent call last):
    ...
    dpsvm.privacy.ledger.BudgetError: epsilon = 0.5 does not fit: 0.75 of 1 is spent (delta = 0)

    As a context manager it is closed at the end, and takes no more charges:

    >>> with BudgetAccountant(1.0) as accountant:
    ...     accountant.spend(0.5)
    >>> accountant.spend(0.1)
    Traceback (most recent call last):
    ...
    dpsvm.privacy.ledger.BudgetError: this accountant is closed
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        neighbouring: str | None = None,
        path: str | os.PathLike[str] | None = None,
        create: bool = False,
        adaptive: bool | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._closed: str | None = None  # why no charge is taken
        self._clock = clock
        asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
        asked |= {"neighbouring": neighbouring, "adaptive": adaptive}
        if path is None:
            if create:
                raise ValueError("create=True begins a ledger file: path must be given, got None")
            self._store: MemoryLedger | LedgerFile = MemoryLedger(Ledger.of(**asked))
            return
        self._store = LedgerFile(Path(os.path.realpath(path)))
        if create:
            self._store.begin(Ledger.of(**asked))
        ledger = self._store.read()
        for name, value in asked.items():
            if value is not None and value != (found := getattr(ledger, name)):
                raise ValueError(
                    f"{os.fspath(path)}: the ledger's {name} is {found!r}, not {value!r}"
                )

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What has been charged so far, in order.

        >>> accountant = BudgetAccountant(1.0, clock=lambda: 0.0)
        >>> accountant.spend(0.5, label="first")
        >>> [(charge.event, charge.label, charge.time) for charge in accountant.charges]
        [(Pure(epsilon=0.5), 'first', '1970-01-01T00:00:00Z')]
        """
        return self._store.read().charges

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        """The open ones, in order: neither committed, nor refunded, nor expired.

        >>> BudgetAccountant(1.0).reservations
        ()
        """
        return self._store.read().open(self._clock())

    @property
    def count(self) -> int:
        """How many charges there are.

        >>> BudgetAccountant(1.0).count
        0
        """
        return len(self.charges)

    def head(self, count: int | None = None) -> str:
        """The link of the chain after so many charges, all of them by default, in hex.

        Who keeps it with its count sees later whether the ledger still goes back to it, and learns
        nothing of the charges. "" if there are not so many.

        >>> accountant = BudgetAccountant(1.0)
        >>> seen = accountant.head()
        >>> accountant.spend(0.5)
        >>> accountant.head(0) == seen, accountant.head(1) == seen, accountant.head(2)
        (True, False, '')
        """
        links = self._store.links()
        at_count = len(links) - 1 if count is None else count
        return links[at_count] if 0 <= at_count < len(links) else ""

    def check(
        self,
        event: Event | float,
        delta: float = 0.0,
        *,
        times: int = 1,
        neighbouring: str | None = None,
    ) -> None:
        """Raise BudgetError unless the release, made so many times, would fit.

        >>> BudgetAccountant(1.0).check(0.3, times=3)
        >>> try:
        ...     BudgetAccountant(1.0).check(0.3, times=4)
        ... except BudgetError as refusal:
        ...     print(refusal)
        4 x epsilon = 0.3 does not fit: 0 of 1 is spent (delta = 0)
        """
        self._require_open()
        if not isinstance(times, Integral) or times < 1:
            raise ValueError(f"times must be a whole number from 1 on, got {times!r}")
        events = [_event(event, delta)] * int(times)
        self._store.read().require(events, neighbouring, self._clock())

    def spend(
        self,
        event: Event | float,
        delta: float = 0.0,
        *,
        label: str = "",
        neighbouring: str | None = None,
    ) -> None:
        """Charge a release that is about to be made, or raise BudgetError and charge nothing.

        event : event or float
            What is known of the release (see :mod:`dpsvm.privacy.accounting`); a number is its
            epsilon.
        delta : float
            Its delta, with an epsilon.
        label : str
            What the release is, for whoever reads the ledger.
        neighbouring : str, optional
            The relation the event is proved under; must be the budget's.

        >>> accountant = BudgetAccountant(1.0)
        >>> accountant.spend(0.25, label="histogram")
        >>> accountant.remaining()
        0.75
        """
        self._require_open()
        now = self._clock()
        charge = Charge(_event(event, delta), str(label), at(now))
        self._store.update(lambda ledger: ledger.charge(charge, neighbouring, now))

    def reserve(
        self,
        event: Event | float,
        *,
        label: str = "",
        neighbouring: str | None = None,
        job: str = "",
        rounds: int = 0,
        hours: float = 24.0,
    ) -> str:
        """Keep room for a release that may be made, or raise BudgetError; returns its identity.

        event, label, neighbouring
            As for ``spend``.
        job, rounds : str and int
            The digest of the federated job it is for, and how many rounds that has.
        hours : float
            For which it counts as spent, unless it is committed or refunded before.

        Each call makes another one. Who was killed before the identity was kept finds it by the
        label in ``reservations``. One that has expired can still be committed if there is room.

        >>> accountant = BudgetAccountant(1.0)
        >>> identity = accountant.reserve(0.75, label="run 1")
        >>> accountant.remaining(), accountant.total().epsilon
        (0.25, 0.0)
        >>> accountant.refund(identity)
        >>> accountant.remaining()
        1.0
        """
        self._require_open()
        now = self._clock()
        wanted = Reservation.of(_event(event, 0.0), label, job, rounds, hours, now)
        self._store.update(lambda ledger: ledger.reserve(wanted, neighbouring, now))
        return wanted.identity

    def commit(self, identity: str) -> None:
        """Make a reservation a charge, on the disk before this returns; nothing if it is one.

        BudgetError if it has expired and there is no room for it any more; ValueError if there is
        none, because it was refunded or is of another ledger.

        >>> accountant = BudgetAccountant(1.0)
        >>> identity = accountant.reserve(0.75)
        >>> accountant.commit(identity)
        >>> accountant.commit(identity)
        >>> accountant.total().epsilon
        0.75
        """
        self._require_open()
        self._store.update(lambda ledger: ledger.commit(identity, self._clock()))

    def refund(self, identity: str) -> None:
        """Take a reservation away, if there is one of this identity; ValueError if it is committed.

        >>> BudgetAccountant(1.0).refund("never made")
        """
        self._require_open()
        self._store.update(lambda ledger: ledger.refund(identity))

    def total(self) -> Guarantee:
        """What all the charges together guarantee, at the budget's delta; reservations are none.

        >>> print(BudgetAccountant(1.0).total())
        epsilon = 0 (add-remove)
        """
        ledger = self._store.read()
        return Guarantee(ledger.spent(), ledger.delta, ledger.neighbouring)

    def remaining(self) -> float:
        """An epsilon that one more pure release may have, beside charges and open reservations.

        Tight composition may leave room for a little more: ``check`` knows.

        >>> BudgetAccountant(2.0).remaining()
        2.0
        """
        ledger = self._store.read()
        return max(ledger.epsilon - ledger.used(self._clock()), 0.0)

    def close(self) -> None:
        """Take no more charges. A ledger file can be opened again."""
        self._closed = "this accountant is closed"

    def __enter__(self) -> BudgetAccountant:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> BudgetAccountant:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BudgetAccountant:
        return self

    def __reduce__(self) -> tuple[Callable[..., BudgetAccountant], tuple[Any, ...]]:
        if isinstance(self._store, LedgerFile):
            return _unpickled, (self._store.path, self._closed)
        return _unpickled, (self._store.read(), ELSEWHERE)

    def __repr__(self) -> str:
        if isinstance(self._store, LedgerFile):
            return f"BudgetAccountant(path={str(self._store.path)!r})"
        ledger = self._store.read()
        budget = f"{ledger.epsilon!r}, {ledger.delta!r}, neighbouring={ledger.neighbouring!r}"
        return f"BudgetAccountant({budget}{', adaptive=True' if ledger.adaptive else ''})"

    def _require_open(self) -> None:
        if self._closed is not None:
            raise BudgetError(self._closed)


def _event(event: Event | float, delta: float) -> Event:
    if isinstance(event, Event):
        if type(event) not in get_args(Event):  # it could not be read back
            raise ValueError(f"a charge must be an event itself, of no subclass, got {event!r}")
        if delta:
            raise ValueError(f"delta = {delta!r} belongs to an epsilon, not to {event!r}")
        return event
    return Approximate(event, delta) if delta else Pure(event)


def _unpickled(kept: Path | Ledger, closed: str | None) -> BudgetAccountant:
    """The accountant of a ledger, or of a file; without the file, as elsewhere, a closed one."""
    accountant = BudgetAccountant.__new__(BudgetAccountant)
    accountant._store = MemoryLedger(kept) if isinstance(kept, Ledger) else LedgerFile(kept)
    if isinstance(kept, Path) and not kept.exists():
        closed = f"{kept}: no such ledger here"
    accountant._closed, accountant._clock = closed, time.time
    return accountant
