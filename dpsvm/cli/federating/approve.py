"""``dpsvm federation review``, ``approve`` and ``revoke``: what a site agrees to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dpsvm.cli.federating.command import Command
from dpsvm.cli.layout import line
from dpsvm.cli.options import Flag, UsageError, number, reader, whole
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.consent import (
    APPROVER,
    Consent,
    fingerprint,
    others_of,
    utc_now,
    write_consent,
)
from dpsvm.federation.job import Job
from dpsvm.federation.keys import PublicKey, SigningKey
from dpsvm.federation.review import Review
from dpsvm.federation.revocations import Revocations
from dpsvm.federation.site import Refusal

_DAYS = 30
_ROUNDING = 1e-9
_APPROVE = "usage: dpsvm federation approve JOB SITE --key FILE --peers PUB... [flags]"
_REVOKE = "usage: dpsvm federation revoke JOB SITE --key FILE"
_NEEDED = "JOB and SITE are needed"


def _review(job_path: str, site_path: str, *, rows: int | None, columns: int | None) -> None:
    review = Review.of(Job.load(job_path), SiteConfig.load(site_path), rows, columns)
    print("\n".join(line(label, text) for label, text in review.lines()))


def _approve(
    job_path: str,
    site_path: str,
    *more: str,
    key: str | None,
    peers: str | None,
    expires: datetime | None,
    epsilon: float | None,
    total_epsilon: float | None,
    rows: int | None,
    columns: int | None,
) -> None:
    job, site = Job.load(job_path), SiteConfig.load(site_path)
    review = Review.of(job, site, rows, columns)
    signer = _signer(site, key, _APPROVE)
    known = _peers(job, site, [*([] if peers is None else [peers]), *more])
    _require_others(site, known, [signer.public, *_own(site_path, site.name)])
    now = utc_now()
    until = now + timedelta(days=_DAYS) if expires is None else expires
    if until <= now:
        raise UsageError(f"--expires: {until:%Y-%m-%dT%H:%M:%SZ} is over")
    _require_allowed(review)
    most = _most(review.epsilon, epsilon)
    consent = Consent.of(
        job,
        site.name,
        known,
        issued=now,
        expires=until,
        epsilon=most,
        total=None if most is None else _total(site, most, total_epsilon),
        not_private=not review.private and not review.of_ids,
    )
    old = _earlier(job, site, signer)
    print("\n".join(line(label, text) for label, text in review.lines()))
    if old is not None and old.digest != consent.digest:
        Revocations(site.consent_folder, site.name, signer.public).add(old.digest, signer)
    path = write_consent(site.consent_folder, job, consent, signer)
    print("\n".join(["", *_consent_lines(consent), line("written", path)]))


def _require_allowed(review: Review) -> None:
    """Refuse what the site itself would refuse: it is told now and not in the run."""
    job, site = review.job, review.site
    if not review.private and not review.of_ids and site.private:
        raise Refusal(
            f"run {job.run} is not private, and {site.name} takes part in private runs only "
            'unless its file says allow = "not private"'
        )
    if review.takes_part:
        site.check(job)
        site.check_private(job)


def _most(price: float | None, given: float | None) -> float | None:
    if price is None:
        if given is not None:
            raise UsageError("--epsilon is for a private run, and this one has no guarantee")
        return None
    if given is not None and given < price * (1 - _ROUNDING):
        raise UsageError(f"--epsilon: the run costs {price:g}, more than {given:g}")
    return price if given is None else given


def _total(site: SiteConfig, most: float, given: float | None) -> float:
    """All that its ledger may hold: its own limit, and no more than this run where it has none."""
    if given is not None:
        return given
    ledger = site.accountant()
    if ledger is None:
        return most
    spent = ledger.total().epsilon
    budget = spent + ledger.remaining()
    return budget if math.isfinite(budget) else spent + most


def _earlier(job: Job, site: SiteConfig, key: SigningKey) -> Consent | None:
    """An earlier consent to the same terms; refused if they were taken back for good."""
    try:
        return Consent.load(site.consent_folder, job, site.name, key.public, utc_now())
    except Refusal:
        listed = Revocations(site.consent_folder, site.name, key.public)
        if job.digest in listed.read():
            raise Refusal(
                f"{site.name} has taken back its consent to these terms of run {job.run} for good: "
                "another run needs another name"
            ) from None
        return None


def _consent_lines(consent: Consent) -> list[str]:
    keys = [f"{name} {fingerprint(one)}" for name, one in sorted(consent.known.items())]
    costs = "the run is not private"
    if consent.epsilon is not None:
        costs = f"at most {consent.epsilon:g} for this run, at most {consent.total:g} in all"
    return [
        line("approved", f"run {consent.run} at {consent.site}, until {consent.until}"),
        line("epsilon", costs),
        line("keys of the others", "; ".join(keys) or "there are no others"),
    ]


def _revoke(job_path: str, site_path: str, *, key: str | None) -> None:
    job, site = Job.load(job_path), SiteConfig.load(site_path)
    signer = _signer(site, key, _REVOKE)
    listed = Revocations(site.consent_folder, site.name, signer.public)
    added = listed.add(job.digest, signer)
    told = "is taken back: it answers nothing of it from now on, also if it is under way"
    print(f"the consent of {site.name} to run {job.run} {told if added else 'was taken back'}")


def _signer(site: SiteConfig, path: str | None, usage: str) -> SigningKey:
    """The approver's key, which must be the one that the site knows."""
    if path is None:
        raise UsageError(f"--key is required; {usage}")
    found, wanted = SigningKey.load(path, APPROVER), site.approver_key()
    if found.public != wanted:
        raise UsageError(f"{path}: not the key of {site.approver}, the approver of {site.name}")
    return found


def _own(site_path: str, name: str) -> list[PublicKey]:
    """The public key of the site, if it lies where it was made."""
    path = Path(site_path).parent / f"{name}.pub"
    return [PublicKey.load(path)] if path.is_file() else []


def _require_others(
    site: SiteConfig, known: Mapping[str, PublicKey], ours: Sequence[PublicKey]
) -> None:
    """Refuse a key of this site, or of its approver, as that of another site."""
    for name, one in known.items():
        for our in ours:
            if one.key == our.key:
                raise UsageError(f"--peers: the key of {name} is that of {our.name} at {site.name}")


def _peers(job: Job, site: SiteConfig, paths: Sequence[str]) -> dict[str, PublicKey]:
    """The keys of all other sites by name."""
    found: dict[str, PublicKey] = {}
    wanted = others_of(job, site.name)
    for path in paths:
        one = PublicKey.load(path)
        if one.name not in wanted:
            raise UsageError(
                f"{path}: the key of {one.name!r}, which is no other site of run {job.run}"
            )
        if one.name in found:
            raise UsageError(f"{path}: a second key of {one.name}")
        for other in found.values():
            if other.key == one.key:
                raise UsageError(f"{path}: {one.name} has the key of {other.name}")
        found[one.name] = one
    missing = [name for name in wanted if name not in found]
    if missing:
        raise UsageError(f"--peers: the public key of {', '.join(missing)} is needed as well")
    return found


def _date(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        return found.replace(tzinfo=UTC)
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise ValueError("beyond the years 1 to 9999") from None


_AMOUNT = number("a number from 0 on", lambda value: value >= 0)
_KEY = Flag("--key", "the approver's secret key; required", "file", str)
_SIZES = (
    Flag("--rows", "rows of this site, for the noise that is to be expected", "n", whole(1)),
    Flag("--columns", "columns, where the names of a file do not tell", "n", whole(1)),
)
COMMANDS = {
    "review": Command(
        "usage: dpsvm federation review JOB SITE [flags]",
        "Tells what a job would have leave a site, to whom and how often, at what epsilon and "
        "with how much noise, and what whoever coordinates can infer from it, only by looking. "
        "Reads JOB and SITE, and of the data the line of names at most.",
        _review,
        _SIZES,
        (_NEEDED, 2, 2),
    ),
    "approve": Command(
        _APPROVE,
        "Prints the review of a job, and signs this site's consent to it with the key of its "
        "approver. The site answers nothing of a run without one. It holds the digest of all "
        "terms, the most epsilon of this run and in all, a date, whether the run may be without "
        "a guarantee, and the public key of every other site: PUB... are the files that they "
        "handed over. An earlier consent to the same terms is taken back.",
        _approve,
        (
            _KEY,
            Flag("--peers", "public keys of all the other sites", "pub", str),
            Flag(
                "--expires",
                "when it ends, UTC",
                "date",
                reader(_date, "a date such as 2030-01-31"),
                default_text=f"in {_DAYS} days",
            ),
            Flag("--epsilon", "most of this run", "e", _AMOUNT, default_text="what it costs"),
            Flag(
                "--total-epsilon",
                "most of all that is in the ledger with it",
                "e",
                _AMOUNT,
                default_text="the ledger's budget",
            ),
            *_SIZES,
        ),
        (_NEEDED, 2, math.inf),
    ),
    "revoke": Command(
        _REVOKE,
        "Takes back the consent of a site to a job, for good, also while the run is under way: "
        "the site reads the signed list of revocations before every answer.",
        _revoke,
        (_KEY,),
        (_NEEDED, 2, 2),
    ),
}
