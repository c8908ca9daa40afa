"""Attacks on what a site has agreed to: runs that nobody approved, or not any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from bench.federation.attack_coordinators import Hostile, Stopped
from bench.federation.attack_sites import OPEN, OWNER, TUTORIAL, Figure, World, close, world
from bench.federation.sites import APPROVING, approve_all, key_of
from dpsvm.federation import Job
from dpsvm.federation.consent import APPROVER, Consent, consent_path, others_of, write_consent
from dpsvm.federation.keys import SigningKey
from dpsvm.federation.revocations import FILE, Revocations

VICTIM = "lab"
STRANGER = SigningKey(APPROVER, bytes([9]) * 32)
"""Who approves nothing here, and signs."""

Forge = Callable[[World, Job], object]


def consents() -> list[Figure]:
    """A job whose consent is not what it should be, at one site of three."""
    ways: dict[str, Forge] = {
        "to other terms, under the name of these": _of_other_terms,
        "that has expired": lambda sites, job: _approve(sites, job, expires=_day(2021)),
        "that is signed by another": lambda sites, job: _write(sites, job, STRANGER),
        "that is signed with the site's own key": (
            lambda sites, job: _write(sites, job, key_of(VICTIM))
        ),
        "of another site": _of_another_site,
        "with one changed bit": _flipped,
        "with other keys of the others": lambda sites, job: _pinned(sites, job, "kept out"),
        "without the key of one of them": lambda sites, job: _pinned(sites, job, "left out"),
        "that was taken back": _taken_back,
        "that was taken back, when the list was removed": _forgotten,
        "that does not allow a run that is not private": (
            lambda sites, job: _approve(sites, job, not_private=False)
        ),
        "that is not there": lambda sites, job: None,
    }
    open_ways: dict[str, Forge] = {
        "that holds": lambda sites, job: _approve(sites, job),
        "of a stranger, whose key was put in the place of the approver's": _usurped,
    }
    found = []
    for what, forge in {**ways, **open_ways}.items():
        answered, stopped = 1, ""
        with world() as sites:
            job = Job("joint-1", "sharing", TUTORIAL, OWNER, OPEN)
            sites.approve(job, only=[name for name in TUTORIAL if name != VICTIM])
            forge(sites, job)
            try:
                _first_answer(sites, job)
            except Stopped as reason:
                answered, stopped = 0, str(reason)
        most = None if what in open_ways else 0
        found.append(Figure(f"a consent {what}", "sites that answered", answered, stopped, most))
    return found


def ended_consents(rounds: int = 3) -> list[Figure]:
    """A consent that ends while a run is under way: what is answered afterwards."""
    found = []
    for what in ("expires", "is taken back"):
        with world() as sites:
            job = sites.approve(Job("joint-1", "sharing", TUTORIAL, OWNER, OPEN))
            now, answered, stopped = [datetime.now(UTC)], 0, ""
            party = sites.site(VICTIM).party(job, clock=lambda now=now: now[0])
            parties = [party if name == VICTIM else sites.party(job, name) for name in TUTORIAL]
            hostile = Hostile(job, parties)
            hostile.begin()
            _ask(sites, hostile)
            if what == "expires":
                now[0] = _day(2121)
            else:
                _take_back(sites, job)
            for _ in range(rounds):
                try:
                    hostile.parties = {VICTIM: party}
                    _ask(sites, hostile)
                    answered += 1
                except Stopped as reason:
                    stopped = str(reason)
            close(parties)
        attack = f"a consent that {what} in round 2"
        told = f"of {rounds} further questions, answered"
        found.append(Figure(attack, told, answered, stopped, most=0))
    return found


def _first_answer(sites: World, job: Job) -> None:
    parties = sites.parties(job)
    try:
        hostile = Hostile(job, parties)
        hostile.begin()
        _ask(sites, hostile)
    finally:
        close(parties)


def _ask(sites: World, hostile: Hostile) -> None:
    hostile.ask("price", {"price": np.ones(len(sites.truth(OWNER)))}, rho=0.1, keep=False)


def _file(sites: World, name: str = VICTIM) -> Path:
    return sites.folder / f"{name}.toml"


def _path(sites: World, job: Job, name: str = VICTIM) -> Path:
    return consent_path(sites.site(name).consent_folder, job)


def _day(year: int) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC)


def _approve(sites: World, job: Job, **changes: object) -> None:
    approve_all(job, [_file(sites)], **changes)


def _write(sites: World, job: Job, key: SigningKey) -> None:
    """What an approver writes, by somebody else."""
    known = {name: key_of(name).public for name in others_of(job, VICTIM)}
    until = datetime.now(UTC) + timedelta(days=1)
    more = {"issued": _day(2020), "expires": until, "not_private": True}
    consent = Consent.of(job, VICTIM, known, **more)
    write_consent(sites.site(VICTIM).consent_folder, job, consent, key)


def _usurped(sites: World, job: Job) -> None:
    """By whoever may write to the folder of the site's file: clinic and registry have others."""
    _write(sites, job, STRANGER)
    own = sites.folder / "stranger.pub"
    own.write_text(STRANGER.public.text())
    text = _file(sites).read_text()
    _file(sites).write_text(text.replace('"approver.pub"', '"stranger.pub"'))


def _of_other_terms(sites: World, job: Job) -> None:
    other = replace(job, settings=dict(job.settings) | {"rounds": 1})
    _approve(sites, other)
    _path(sites, other).rename(_path(sites, job))


def _of_another_site(sites: World, job: Job) -> None:
    path = _path(sites, job)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(_path(sites, job, "registry").read_bytes())


def _flipped(sites: World, job: Job) -> None:
    _approve(sites, job)
    data = bytearray(_path(sites, job).read_bytes())
    data[len(data) // 3] ^= 1
    _path(sites, job).write_bytes(data)


def _pinned(sites: World, job: Job, how: str) -> None:
    _approve(sites, job)
    known = {name: key_of(name).public for name in others_of(job, VICTIM)}
    if how == "kept out":
        known |= {"registry": replace(key_of("stranger").public, name="registry")}
    else:
        del known["registry"]
    more = {"issued": _day(2020), "expires": _day(2120), "not_private": True}
    consent = Consent.of(job, VICTIM, known, **more)
    write_consent(sites.site(VICTIM).consent_folder, job, consent, APPROVING)


def _take_back(sites: World, job: Job) -> Path:
    folder = sites.site(VICTIM).consent_folder
    Revocations(folder, VICTIM, APPROVING.public).add(job.digest, APPROVING)
    return folder / FILE


def _taken_back(sites: World, job: Job) -> Path:
    _approve(sites, job)
    return _take_back(sites, job)


def _forgotten(sites: World, job: Job) -> None:
    """The site has read the list once."""
    listed = _taken_back(sites, job)
    try:
        sites.party(job, VICTIM)
    except Stopped:
        listed.unlink()
