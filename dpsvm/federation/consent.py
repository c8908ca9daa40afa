"""What a site has agreed to: the terms of one run, signed by whoever approves runs for it.

A site answers nothing without one. The approver's signing key is kept away from the account that
runs the site, which has the public half; so whoever submits jobs, runs the coordinator or reads
all that this account can read is able to approve nothing. Who can write the file of the site, or
that of the public half, names an approver of their own.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpsvm._streams import atomic_write
from dpsvm.federation.job import ALGORITHMS, Job
from dpsvm.federation.keys import KEY_BYTES, PublicKey, SigningKey
from dpsvm.federation.revocations import Revocations
from dpsvm.federation.signed import canonical, opened, read_signed, signed
from dpsvm.federation.site import Refusal
from dpsvm.federation.store import make_folder
from dpsvm.privacy.release import Price

Clock = Callable[[], datetime]

APPROVER = "approver"
"""The name in the file of an approver's public key: no site's own key can be taken for one."""

WITHOUT_DATA = "align"
"""The algorithm that looks at ids alone, which no guarantee here is about."""

_PURPOSE = "dpsvm consent"
_VERSION = 1
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ROUNDING = 1e-9
_KEYS = {
    *("version", "site", "run", "algorithm", "terms", "epsilon", "total", "not_private"),
    *("issued", "expires", "known"),
}


def utc_now() -> datetime:
    """What the system's clock says."""
    return datetime.now(UTC)


def others_of(job: Job, name: str) -> list[str]:
    """The other sites of a job; a network's relay, which no job names, is none.

    >>> others_of(Job("r", "sharing", ("lab", "ward"), "office"), "lab")
    ['office', 'ward']
    """
    return sorted({*job.parties, job.label_owner or job.parties[0]} - {name})


@dataclass(frozen=True, kw_only=True)
class Consent:
    """What was agreed to.

    site, run, algorithm, terms : whose it is, and to what; ``terms`` is the digest of the job
    epsilon : the most that this run may cost; None if it may cost nothing, as it is not private
    total : the most that the site's ledger may hold with this run
    not_private : whether a run without a guarantee is agreed to
    issued, expires : times; from the second on it does not hold
    known : the public keys of all other sites of the job

    >>> from datetime import timedelta
    >>> now = datetime(2030, 1, 1, tzinfo=UTC)
    >>> job, key = Job("r", "sharing", ("lab",), "lab"), SigningKey(APPROVER, bytes(32))
    >>> consent = Consent.of(job, "lab", {}, issued=now, expires=now + timedelta(1))
    >>> Consent.read(consent.signed(key), key.public, "the consent") == consent
    True
    >>> consent.require(now + timedelta(1))
    Traceback (most recent call last):
    ...
    dpsvm.federation.site.Refusal: the consent of lab to run r has expired, 2030-01-02T00:00:00Z
    """

    site: str
    run: str
    algorithm: str
    terms: str
    epsilon: float | None
    total: float | None
    not_private: bool
    issued: datetime
    expires: datetime
    known: Mapping[str, PublicKey]
    revocations: Revocations | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        job: Job,
        name: str,
        known: Mapping[str, PublicKey],
        *,
        issued: datetime,
        expires: datetime,
        epsilon: float | None = None,
        total: float | None = None,
        not_private: bool = False,
    ) -> Consent:
        """The consent of a site to a job."""
        return cls(
            site=name,
            run=job.run,
            algorithm=job.algorithm,
            terms=job.digest,
            epsilon=epsilon,
            total=total,
            not_private=not_private,
            issued=issued.replace(microsecond=0),
            expires=expires.replace(microsecond=0),
            known=known,
        )

    @classmethod
    def load(
        cls,
        folder: Path,
        job: Job,
        name: str,
        approver: PublicKey,
        now: datetime,
        *,
        seen: Path | None = None,
        notes: bool = True,
    ) -> Consent:
        """The consent of a site to a job, or a Refusal that says why there is none that holds.

        seen, notes : of :class:`Revocations`
        """
        what = f"the consent of {name} to run {job.run}"
        data = read_signed(consent_path(folder, job), what)
        if data is None:
            raise Refusal(f"{name} has not approved these terms of run {job.run}")
        found = cls.read(data, approver, what)
        if found.site != name:
            raise Refusal(f"{what} is that of another site")
        if (found.terms, found.run, found.algorithm) != (job.digest, job.run, job.algorithm):
            raise Refusal(f"{what} is to other terms")
        if sorted(found.known) != others_of(job, name):
            raise Refusal(f"{what} does not hold the keys of the other sites")
        listed = Revocations(folder, name, approver, seen, notes)
        found = replace(found, revocations=listed)
        found.require(now)
        return found

    @classmethod
    def read(cls, data: bytes, approver: PublicKey, what: str) -> Consent:
        """What some bytes say, or a Refusal."""
        content = opened(data, approver, _PURPOSE, what)
        if set(content) != _KEYS or type(content["version"]) is not int:
            raise Refusal(f"{what} is broken: it lacks a field, or has one more")
        if content["version"] != _VERSION:
            raise Refusal(f"{what} is of another version")
        try:
            return cls(
                site=_text(content["site"]),
                run=_text(content["run"]),
                algorithm=_one_of(content["algorithm"], ALGORITHMS),
                terms=_digest(content["terms"]),
                epsilon=_amount(content["epsilon"]),
                total=_amount(content["total"]),
                not_private=_one_of(content["not_private"], (True, False)),
                issued=_time(content["issued"]),
                expires=_time(content["expires"]),
                known=_keys(content["known"]),
            )
        except (ValueError, TypeError) as error:
            raise Refusal(f"{what} is broken: {error}") from None

    def signed(self, key: SigningKey) -> bytes:
        """The bytes of its file."""
        return signed(self._content(), key, _PURPOSE)

    @property
    def digest(self) -> str:
        """Of all of it: by which one consent among several to a job can be taken back."""
        return hashlib.sha256(canonical(self._content())).hexdigest()

    def _content(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            **{name: getattr(self, name) for name in ("site", "run", "algorithm", "terms")},
            **{name: getattr(self, name) for name in ("epsilon", "total", "not_private")},
            "issued": self.issued.strftime(_TIME),
            "expires": self.expires.strftime(_TIME),
            "known": {name: one.key.hex() for name, one in self.known.items()},
        }

    @property
    def until(self) -> str:
        """When it expires."""
        return self.expires.strftime(_TIME)

    def require(self, now: datetime) -> None:
        """Refuse what it does not hold for any more: it has expired, or was taken back."""
        if now >= self.expires:
            raise Refusal(f"the consent of {self.site} to run {self.run} has expired, {self.until}")
        if self.revocations is not None:
            self.revocations.require(self.terms, self.digest)

    def require_price(self, price: Price | None, total: float | None) -> None:
        """Refuse what it does not cover.

        price : of the run; None of one without a guarantee
        total : the epsilon of the whole ledger, the run with it; None without one
        """
        if price is None:
            if not self.not_private and self.algorithm != WITHOUT_DATA:
                raise Refusal(f"{self.site} has agreed to private runs only")
            return
        asked = price.guarantee.epsilon
        if self.epsilon is None or not asked <= self.epsilon * (1 + _ROUNDING):
            most = "none" if self.epsilon is None else f"at most {self.epsilon:g}"
            raise Refusal(
                f"run {self.run} costs {self.site} epsilon = {asked:g}, and it agreed to {most}"
            )
        if total is not None and (self.total is None or not total <= self.total * (1 + _ROUNDING)):
            most = "none" if self.total is None else f"at most {self.total:g}"
            raise Refusal(
                f"with run {self.run} {self.site} would have spent epsilon = {total:g} in all, and "
                f"it agreed to {most}"
            )


def consent_path(folder: Path, job: Job) -> Path:
    """The file of a consent: one for each terms."""
    return folder / f"{job.run}-{job.digest[:16]}.consent"


def write_consent(folder: Path, job: Job, consent: Consent, key: SigningKey) -> Path:
    """Sign it and put it in its place, in that of one to the same terms if there is one."""
    whole = consent.signed(key)
    make_folder(folder)
    path = consent_path(folder, job)
    with atomic_write(path, "wb", permissions=0o644) as file:
        file.write(whole)
    return path


def fingerprint(key: PublicKey) -> str:
    """Of a key, short enough to be read aloud.

    >>> fingerprint(PublicKey("lab", bytes(32)))
    '66687aad f862bd77 6c8fc18b 8e9f8e20'
    """
    digits = hashlib.sha256(key.key).hexdigest()
    return " ".join(digits[start : start + 8] for start in range(0, 32, 8))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a name is needed, got {value!r:.80}")
    return value


def _digest(value: Any) -> str:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise ValueError(f"a digest is needed, got {value!r:.80}")
    return value


def _one_of(value: Any, known: tuple[Any, ...]) -> Any:
    if not any(type(value) is type(one) and value == one for one in known):
        raise ValueError(f"one of {known} is needed, got {value!r:.80}")
    return value


def _amount(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) is not float or not (math.isfinite(value) and value >= 0.0):
        raise ValueError(f"a finite number from 0 on is needed, got {value!r:.80}")
    return value


def _time(value: Any) -> datetime:
    if not isinstance(value, str) or len(value) != 20:
        raise ValueError(f"a time is needed, got {value!r:.80}")
    return datetime.strptime(value, _TIME).replace(tzinfo=UTC)


def _keys(value: Any) -> dict[str, PublicKey]:
    if not isinstance(value, dict):
        raise ValueError(f"keys by name are needed, got {value!r:.80}")
    found = {}
    for name, digits in value.items():
        key = bytes.fromhex(_digest(digits))
        assert len(key) == KEY_BYTES
        found[name] = PublicKey(name, key)
    return found
