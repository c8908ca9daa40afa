"""A site: its table, the matching of its rows with those of others, and its privacy ledger."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpsvm.federation.job import Job
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.accounting import Event
from dpsvm.privacy.guarantee import Guarantee


class Refusal(ValueError):
    """A request that a site does not answer; the text may be told to the others."""


@dataclass(frozen=True)
class Price:
    """What a private run costs the data of one site."""

    event: Event
    guarantee: Guarantee


@dataclass(frozen=True, eq=False)
class Site:
    """What a site brings to a run.

    >>> import numpy as np
    >>> site = Site("lab", np.eye(2), ids=("p1", "p2"), salt="pepper")
    >>> site.digest() == Site("clinic", np.ones((2, 3)), ids=("p1", "p2"), salt="pepper").digest()
    True
    """

    name: str
    table: Any = None  # rows of its columns, dense or CSR; None at a coordinator without columns
    labels: Any = None  # of the label owner, or of a node
    ids: tuple[str, ...] | None = None  # of the samples, in the order of the rows
    salt: str = ""  # shared by all sites, and by nobody else
    ledger: BudgetAccountant | None = None
    features: tuple[str, ...] | None = None  # the names of its columns
    model: dict[str, Any] | None = None  # its part of a finished run, for a joint prediction

    @property
    def rows(self) -> int:
        """How many samples it has."""
        if self.table is not None:
            return int(self.table.shape[0])
        return 0 if self.labels is None else len(self.labels)

    @property
    def columns(self) -> int:
        """How many columns it has."""
        return 0 if self.table is None else int(self.table.shape[1])

    def digest(self) -> str:
        """Of its ordered sample ids, salted; "" without ids."""
        return "" if self.ids is None else digest_of(self.ids, self.salt)


def digest_of(ids: Sequence[str], salt: str) -> str:
    """HMAC-SHA-256 of ordered ids under a salt.

    Two sites that compare it learn whether they have the same samples in the same order, and no
    more. It is not private set intersection: whoever knows the salt can test whether a guessed
    list of ids is the one.

    >>> digest_of(["a", "b"], "salt") == digest_of(["ab", ""], "salt")
    False
    """
    mac = hmac.new(salt.encode(), digestmod=hashlib.sha256)
    for one in ids:
        text = one.encode()
        mac.update(len(text).to_bytes(8, "little"))
        mac.update(text)
    return mac.hexdigest()


def charge_label(job: Job, site: str) -> str:
    """What a ledger calls the charge of a run, by which it is found again.

    >>> charge_label(Job("heart-1", "sharing", ("lab",), "lab"), "lab")
    'federation run heart-1 at lab'
    """
    return f"federation run {job.run} at {site}"


def charged(site: Site, label: str) -> Event | None:
    """What the ledger of a site was charged under a label."""
    if site.ledger is None:
        return None
    return next((one.event for one in site.ledger.charges if one.label == label), None)


def check_affordable(site: Site, price: Price | None) -> None:
    """Refuse a run that the budget of a site does not cover; nothing is charged."""
    if price is None:
        return
    if site.ledger is None:
        raise Refusal(f"this is a private run, and {site.name} has no ledger to charge")
    site.ledger.check(price.event, neighbouring=price.guarantee.neighbouring)


def check_not_aborted(job: Job, site: Site, reason: str | None) -> None:
    """Refuse a run that was given up at a site.

    >>> check_not_aborted(Job("r", "sharing", ("lab",), "lab"), Site("lab"), "moved away")
    Traceback (most recent call last):
    ...
    dpsvm.federation.site.Refusal: run r was given up at lab: moved away
    """
    if reason is not None:
        raise Refusal(f"run {job.run} was given up at {site.name}: {reason.strip()}")


def charge_once(site: Site, label: str, price: Price | None) -> None:
    """Charge a run, unless the ledger holds its charge: then that one pays for it."""
    if price is None:
        return
    if site.ledger is None:
        raise Refusal(f"this is a private run, and {site.name} has no ledger to charge")
    before = charged(site, label)
    if before is None:
        site.ledger.spend(price.event, label=label, neighbouring=price.guarantee.neighbouring)
    elif before != price.event:
        raise Refusal(f"the ledger of {site.name} holds another charge for this run")
