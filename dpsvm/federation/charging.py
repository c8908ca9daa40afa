"""The charge of a run to the ledger of a site: made once, found again, and tied to its noise."""

from __future__ import annotations

import hashlib

from dpsvm.federation.job import Job
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.store import StoreError
from dpsvm.privacy.accountant import Charge
from dpsvm.privacy.release import Price

PARTY, COORDINATOR = "party", "coordinator"
"""The roles in which a site can be charged for a run."""


class Account:
    """What one run costs one site in one role.

    A charge names the run, the site, the role and a fingerprint of the noise key. So it pays for
    the noise of one folder only: another folder with the same ledger would draw other noise for the
    same answers, and finds that it was not the one that paid.

    >>> from dpsvm.privacy import BudgetAccountant
    >>> from dpsvm.privacy.accounting import Pure
    >>> from dpsvm.privacy.guarantee import Guarantee
    >>> from dpsvm.privacy.release import Price
    >>> site = Site("lab", ledger=BudgetAccountant(2.0, neighbouring="row"))
    >>> account = Account(Job("heart-1", "sharing", ("lab",), "lab"), site, PARTY)
    >>> price = Price(Pure(1.0), Guarantee(1.0, 0.0, "row"))
    >>> account.pay(price, bytes(32))
    >>> account.pay(price, bytes(32))
    >>> [charge.label for charge in site.ledger.charges]
    ['federation run heart-1 at lab as party, noise key 66687aadf862bd77']
    """

    def __init__(self, job: Job, site: Site, role: str) -> None:
        self.job, self.site, self.role = job, site, role
        self.label = f"federation run {job.run} at {site.name} as {role}"

    @property
    def charges(self) -> list[Charge]:
        """What the ledger holds for it, whichever key it was for."""
        if self.site.ledger is None:
            return []
        own = f"{self.label}, noise key "
        return [one for one in self.site.ledger.charges if one.label.startswith(own)]

    def check(self, price: Price | None) -> None:
        """Refuse a run that the budget does not cover, or a site's data do not take part in."""
        if price is None and self.role == PARTY and self.site.private:
            raise Refusal(f"{self.site.name} takes part in private runs only")
        if price is None or self.charges:
            return
        if self.site.ledger is None:
            raise Refusal(f"this is a private run, and {self.site.name} has no ledger to charge")
        self.site.ledger.check(price.event, neighbouring=price.guarantee.neighbouring)

    def pay(self, price: Price | None, key: bytes) -> None:
        """Charge the run, unless it was charged for this key: then that pays for it."""
        if price is None:
            return
        self.check(price)
        if self.charges:
            self.require(price, key)
        elif self.site.ledger is not None:
            label, relation = self._label_of(key), price.guarantee.neighbouring
            self.site.ledger.spend(price.event, label=label, neighbouring=relation)

    def require(self, price: Price | None, key: bytes) -> None:
        """Refuse a run that has begun and was not charged for this key."""
        if price is None:
            return
        if not any(
            one.label == self._label_of(key) and one.event == price.event for one in self.charges
        ):
            raise StoreError(
                f"the ledger of {self.site.name} does not hold the charge of run {self.job.run} "
                "for the noise key of this folder: the ledger or the folder is another"
            )

    def require_none(self) -> None:
        """Refuse to begin a run that was charged and of which nothing else is kept."""
        if self.charges:
            raise StoreError(
                f"run {self.job.run} was charged to the ledger of {self.site.name}, and its "
                "snapshot is lost: it cannot go on. Begin another run"
            )

    def _label_of(self, key: bytes) -> str:
        return f"{self.label}, noise key {hashlib.sha256(key).hexdigest()[:16]}"
