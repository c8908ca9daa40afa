"""What a site keeps of a run in one role: a snapshot, a noise key and a charge, which must fit.

A run is paid for in two steps. When it begins, room for it is reserved in the ledger. Before the
first answer that depends on data the reservation becomes a charge, on the disk, and only then are
the data opened; from there on the charge stands, whatever follows. A run that is stopped before is
refunded, and its name and noise key are not used again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

from dpsvm.federation.job import Job
from dpsvm.federation.records import CHARGED, COORDINATOR, PARTY, label_of, require_records
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.store import PURGED, DataError, Store, StoreError
from dpsvm.privacy.accountant import BudgetError, Charge
from dpsvm.privacy.accounting import Event, epsilon_of
from dpsvm.privacy.release import Price
from dpsvm.privacy.stream import SecretStream

__all__ = ["COORDINATOR", "PARTY", "Custody"]

MOST_REHEARSALS = 100
"""Of one run: each of them is a look at what a site would refuse."""

Made = TypeVar("Made")

_REHEARSED, _REFUNDED, _TRIED = "rehearsals", "refunded", "tried"


class Custody:
    """The store of one run at one site in one role, and the account of what the run costs there.

    A charge names the run, the site, the role and a fingerprint of the noise key. So it pays for
    the noise of one folder only: another folder with the same ledger would draw other noise for the
    same answers, and finds that it was not the one that paid.

    >>> from dpsvm.federation.store import MemoryStore
    >>> from dpsvm.privacy import BudgetAccountant
    >>> from dpsvm.privacy.accounting import Pure
    >>> from dpsvm.privacy.guarantee import Guarantee
    >>> site = Site("lab", ledger=BudgetAccountant(2.0, neighbouring="row"))
    >>> job = Job("heart-1", "sharing", ("lab",), "lab")
    >>> custody = Custody(job, site, MemoryStore(bytes(32)), PARTY)
    >>> price, stream = Price(Pure(1.0), Guarantee(1.0, 0.0, "row")), custody.stream(begun=False)
    >>> reserved = custody.reserve(price, rounds=20)
    >>> site.ledger.remaining(), site.ledger.charges
    (1.0, ())
    >>> custody.commit(price, reserved)
    >>> custody.commit(price, reserved)
    >>> [charge.label for charge in site.ledger.charges]
    ['federation run heart-1 at lab as party, noise key 66687aadf862bd77']
    """

    def __init__(self, job: Job, site: Site, store: Store, role: str) -> None:
        self.job, self.site, self.store, self.role = job, site, store, role
        self.fingerprint = ""  # of the data, under the noise key, once they are opened
        self._label = label_of(job.run, site.name, role)

    @property
    def refunded(self) -> str | None:
        """Why the run was stopped before it was charged, None if it was not."""
        return self.store.read(_REFUNDED)

    def load(self) -> Any:
        """The snapshot of a run that was not given up, None if it has not begun."""
        name, run = self.site.name, self.job.run
        purged = self.store.read(PURGED)
        if purged is not None:
            raise Refusal(f"run {run} is over at {name}, and was purged")
        reason = self.store.read("aborted")
        if reason is not None:
            raise Refusal(f"run {run} was given up at {name}: {reason.strip()}")
        reason = self.refunded
        if reason is not None:
            self._take_back()  # by one that was killed before it could
            raise Refusal(
                f"run {run} was stopped before {name} answered anything, and what it had reserved "
                f"was given back ({reason.strip()}): begin another run"
            )
        kept = self.store.load()
        if self.charges and (kept is None or self.store.read(CHARGED) is None):
            lost = "its snapshot is lost" if kept is None else "its folder was put back from before"
            raise StoreError(
                f"run {run} was charged to the ledger of {name}, and {lost}: it cannot go on. "
                "Begin another run"
            )
        return kept

    def stream(self, *, begun: bool) -> SecretStream:
        """The bytes of the run's noise key, which is made unless the run has begun."""
        self._key = self.store.key(begun=begun)
        self._own_label = self._label + hashlib.sha256(self._key).hexdigest()[:16]
        return SecretStream(self._key)

    def opened(self, make: Callable[[], Made]) -> Made:
        """What is made of the data, which are opened: the run is paid for, or has no price."""
        try:
            self.fingerprint = self.site.fingerprint(self._key)
            return make()
        except (Refusal, StoreError):
            raise
        except ValueError as error:
            raise DataError(self.site.name, str(error)) from None

    @property
    def charges(self) -> list[Charge]:
        """What the ledger holds for it, whichever key it was for."""
        charges = () if self.site.ledger is None else self.site.ledger.charges
        return [one for one in charges if one.label.startswith(self._label)]

    @property
    def reserved(self) -> dict[str, str]:
        """The open reservations for it, whichever key they were for: the label of each identity."""
        found = () if self.site.ledger is None else self.site.ledger.reservations
        return {one.identity: one.label for one in found if one.label.startswith(self._label)}

    def due(self, price: Price | None) -> list[Event]:
        """What is still to be charged or reserved."""
        return [] if price is None or self.charges or self.reserved else [price.event]

    def check(self, price: Price | None) -> None:
        """Refuse a run that the budget does not cover, or a site's data do not take part in."""
        aligns = self.job.algorithm == "align"  # of ids alone, which no guarantee here is about
        if price is None and self.role == PARTY and self.site.private and not aligns:
            raise Refusal(f"{self.site.name} takes part in private runs only")
        if self.site.consent is not None and (price is not None or self.role == PARTY):
            self.site.consent.require_price(price, self._total(price))
        if self.charges:
            return
        if self.site.state is not None and self.site.ledger is not None:
            require_records(self.site.state, self.site.name, self.site.ledger)
        if price is None:
            return
        if self.job.alignment is not None and price.guarantee.neighbouring == "add-remove":
            raise Refusal(
                f"a guarantee of add-remove hides who is in the data, and alignment "
                f"{self.job.alignment} has told it: the guarantee must be of replace, row or column"
            )
        if self.site.ledger is None:
            raise Refusal(f"this is a private run, and {self.site.name} has no ledger to charge")
        for event in self.due(price):
            self.site.ledger.check(event, neighbouring=price.guarantee.neighbouring)

    def _total(self, price: Price | None) -> float | None:
        """The epsilon of the whole ledger, what is reserved and this run with it."""
        ledger = self.site.ledger
        if ledger is None:
            return None
        charged = [one.event for one in ledger.charges]
        reserved = [one.event for one in ledger.reservations]
        return epsilon_of([*charged, *reserved, *self.due(price)], ledger.total().delta)

    def rehearse(self) -> None:
        """Count a rehearsal, and refuse one too many."""
        text = self.store.read(_REHEARSED) or "0"
        if not text.strip().isdecimal():
            raise StoreError(f"the count of the rehearsals of run {self.job.run} is broken")
        if (count := int(text) + 1) > MOST_REHEARSALS:
            raise Refusal(
                f"{self.site.name} has rehearsed run {self.job.run} {MOST_REHEARSALS} times, and "
                "does not again"
            )
        self.store.write(_REHEARSED, f"{count}\n")

    def keep_question(self, number: int, digest: str) -> None:
        """Keep the question of a round whose answer was refused for what it was."""
        self.store.write(_TRIED, f"{number} {digest}\n")

    def require_question(self, number: int, digest: str) -> None:
        """Refuse another question for a round than the one whose answer was refused."""
        tried = (self.store.read(_TRIED) or "").split()
        if tried[:1] == [str(number)] and tried[1:] != [digest]:
            raise Refusal(
                f"{self.site.name} has refused its answer of round {number}, to another question"
            )

    def reserve(self, price: Price | None, rounds: int) -> str:
        """Keep room for the run, if that was not done; the identity of the reservation."""
        if price is None:
            return ""
        self.check(price)
        if self.charges:
            self.require_charge(price)
            return ""
        for identity, label in self.reserved.items():
            if label == self._own_label:
                return identity
            raise StoreError(
                f"run {self.job.run} is reserved in the ledger of {self.site.name}, and not for "
                "the noise key of this folder: the folder is another"
            )
        assert self.site.ledger is not None
        return self.site.ledger.reserve(
            price.event,
            label=self._own_label,
            neighbouring=price.guarantee.neighbouring,
            job=self.job.digest,
            rounds=rounds,
        )

    def commit(self, price: Price | None, reserved: str) -> None:
        """Charge the run, on the disk, unless it was charged for this key: then that pays for it.

        The folder knows of it first: a charge of which it knows nothing is not its own.
        """
        if price is None:
            return
        if not self.charges and self.site.ledger is not None:
            self.store.write(CHARGED, f"{self._own_label}\n")
            try:
                self.site.ledger.commit(reserved)
            except BudgetError:
                raise
            except ValueError:
                raise StoreError(
                    f"the ledger of {self.site.name} does not hold what run {self.job.run} has "
                    "reserved: it was taken back, or the ledger is another"
                ) from None
        self.require_charge(price)

    def refund(self, reason: str) -> None:
        """Give a run back that was never charged and has not looked at data, and never begin it."""
        if self.charges or (self.reserved and self.site.opened):
            return
        self.store.write(_REFUNDED, " ".join(reason.split()) + "\n")
        self._take_back()

    def _take_back(self) -> None:
        for identity in self.reserved:
            assert self.site.ledger is not None
            self.site.ledger.refund(identity)

    def require_charge(self, price: Price | None) -> None:
        """Refuse a run that has begun and was not charged for this key."""
        if price is None:
            return
        if (self._own_label, price.event) not in [(one.label, one.event) for one in self.charges]:
            raise StoreError(
                f"the ledger of {self.site.name} does not hold the charge of run {self.job.run} "
                "for the noise key of this folder: the ledger or the folder is another"
            )

    def require_data(self, fingerprint: str) -> None:
        """Refuse to go on with other data."""
        if fingerprint != self.fingerprint:
            raise StoreError(f"the data of {self.site.name} are not those the run began with")
