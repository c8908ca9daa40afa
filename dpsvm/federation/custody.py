"""What a site keeps of a run in one role: a snapshot, a noise key and a charge, which must fit."""

from __future__ import annotations

import hashlib
from typing import Any

from dpsvm.federation.job import Job
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.store import PURGED, Store, StoreError
from dpsvm.privacy.accountant import Charge
from dpsvm.privacy.accounting import Event
from dpsvm.privacy.release import Price
from dpsvm.privacy.stream import SecretStream

PARTY, COORDINATOR = "party", "coordinator"
"""The roles in which a site can be charged for a run."""


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
    >>> custody.pay(price)
    >>> custody.pay(price)
    >>> [charge.label for charge in site.ledger.charges]
    ['federation run heart-1 at lab as party, noise key 66687aadf862bd77']
    """

    def __init__(self, job: Job, site: Site, store: Store, role: str) -> None:
        self.job, self.site, self.store, self.role = job, site, store, role
        self.fingerprint = ""  # of the data, under the noise key
        self._label = f"federation run {job.run} at {site.name} as {role}, noise key "

    def load(self) -> Any:
        """The snapshot of a run that was not given up, None if it has not begun."""
        purged = self.store.read(PURGED)
        if purged is not None:
            raise Refusal(f"run {self.job.run} is over at {self.site.name}, and was purged")
        reason = self.store.read("aborted")
        if reason is not None:
            raise Refusal(f"run {self.job.run} was given up at {self.site.name}: {reason.strip()}")
        kept = self.store.load()
        if kept is None and self.charges:
            raise StoreError(
                f"run {self.job.run} was charged to the ledger of {self.site.name}, and its "
                "snapshot is lost: it cannot go on. Begin another run"
            )
        return kept

    def stream(self, *, begun: bool) -> SecretStream:
        """The bytes of the run's noise key, which is made unless the run has begun."""
        key = self.store.key(begun=begun)
        self.fingerprint = self.site.fingerprint(key)
        self._own_label = self._label + hashlib.sha256(key).hexdigest()[:16]
        return SecretStream(key)

    @property
    def charges(self) -> list[Charge]:
        """What the ledger holds for it, whichever key it was for."""
        charges = () if self.site.ledger is None else self.site.ledger.charges
        return [one for one in charges if one.label.startswith(self._label)]

    def due(self, price: Price | None) -> list[Event]:
        """What is still to be charged."""
        return [] if price is None or self.charges else [price.event]

    def check(self, price: Price | None) -> None:
        """Refuse a run that the budget does not cover, or a site's data do not take part in."""
        if price is None and self.role == PARTY and self.site.private:
            raise Refusal(f"{self.site.name} takes part in private runs only")
        if price is None or self.charges:
            return
        if self.site.ledger is None:
            raise Refusal(f"this is a private run, and {self.site.name} has no ledger to charge")
        self.site.ledger.check(price.event, neighbouring=price.guarantee.neighbouring)

    def pay(self, price: Price | None) -> None:
        """Charge the run, unless it was charged for this key: then that pays for it."""
        if price is None:
            return
        self.check(price)
        if self.charges:
            self.require_charge(price)
        elif self.site.ledger is not None:
            relation = price.guarantee.neighbouring
            self.site.ledger.spend(price.event, label=self._own_label, neighbouring=relation)

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
