"""How a site approves runs: whose consents count, where they lie, and the site's own key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from dpsvm.federation.consent import APPROVER, Consent
from dpsvm.federation.job import Job
from dpsvm.federation.keys import PublicKey, SigningKey
from dpsvm.federation.site import Refusal, Site


@dataclass(frozen=True, kw_only=True)
class Approving:
    """What a site goes by.

    >>> Approving(name="lab", state=Path("state")).approver_key()
    Traceback (most recent call last):
    ...
    dpsvm.federation.site.Refusal: lab names no approver in [consent], and so can approve nothing
    """

    name: str
    state: Path
    private: bool = True  # whether it takes part in nothing without a guarantee
    approver: Path | None = None  # the file of the public key
    consents: Path | None = None  # a folder, if not that in the state

    def approval(self, job: Job, now: datetime) -> tuple[Consent, SigningKey]:
        """The consent to a job and the site's own key, or a Refusal."""
        consent, identity = self.consent_to(job, now), self.identity()
        for name, one in consent.known.items():
            if one.key == identity.public.key:
                raise Refusal(f"the key of {name} in the consent of {self.name} is its own")
        return consent, identity

    def consent_to(self, job: Job, now: datetime, *, notes: bool = True) -> Consent:
        """What it has agreed to, or a Refusal.

        notes : whether a count of revocations is kept
        """
        key, seen = self.approver_key(), self.state / "revocations"
        folder = self.consent_folder
        found = Consent.load(folder, job, self.name, key, now, seen=seen, notes=notes)
        if found.not_private and self.private:
            raise Refusal(f"{self.name} takes part in private runs only")
        for name, one in found.known.items():
            if one.key == key.key:
                raise Refusal(f"the key of {name} is that of the approver of {self.name}")
        return found

    @property
    def consent_folder(self) -> Path:
        """Where its consents are."""
        return self.state / "consents" if self.consents is None else self.consents

    @property
    def key_file(self) -> Path:
        """Where its own key is."""
        return self.state / "site.key"

    def approver_key(self) -> PublicKey:
        """By which it knows its approver: from its own file, and from nowhere else."""
        if self.approver is None:
            raise Refusal(f"{self.name} names no approver in [consent], and so can approve nothing")
        found = PublicKey.load(self.approver)
        if found.name != APPROVER:
            raise ValueError(f"{self.approver}: the key of {found.name!r}, not of an approver")
        return found

    def identity(self) -> SigningKey:
        """Its own key; never the approver's."""
        if not self.key_file.exists():
            raise Refusal(f"{self.name} has no key of its own: dpsvm federation keys makes one")
        found = SigningKey.load(self.key_file, self.name)
        if self.approver is not None and found.public.key == self.approver_key().key:
            raise Refusal(f"the key of {self.name} is its approver's: it needs one of its own")
        return found


def approved(site: Site, consent: Consent, identity: SigningKey) -> Site:
    """A site that has agreed, with its own key and those of the others."""
    known = {**consent.known, identity.name: identity.public}
    return replace(site, identity=identity, known=known, consent=consent)
