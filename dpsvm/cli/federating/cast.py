"""The files of a job and of its sites, read together: who coordinates, and who takes part."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsvm.cli.options import UsageError
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.job import Job
from dpsvm.federation.store import PURGED, FolderCopy, StoreError

ROLES = ("coordinator", "party")
"""In which a site takes part in a run, and the folders of its state."""

OVER = "has ended it"


@dataclass(frozen=True)
class Cast:
    """A job, the site of its coordinator and those of its parties, in the order of the job."""

    job: Job
    job_path: str
    coordinator: SiteConfig
    parties: tuple[SiteConfig, ...]
    paths: tuple[str, ...]  # of the site files: the coordinator's, then the parties'

    @classmethod
    def load(cls, words: Sequence[str], usage: str) -> Cast:
        """The cast of a command line: JOB SITE..., the coordinator's first."""
        if len(words) < 2:
            raise UsageError(f"JOB and a SITE or more are needed, got {len(words)}; {usage}")
        job_path, first_path, *rest = words
        job, first = Job.load(job_path), SiteConfig.load(first_path)
        found: dict[str, tuple[str, SiteConfig]] = {}
        for path in rest:
            site = SiteConfig.load(path)
            if site.name not in job.parties:
                raise UsageError(f"{path}: {site.name} is no party of run {job.run}")
            if site.name in found:
                raise UsageError(f"{path} and {found[site.name][0]} are both of {site.name}")
            found[site.name] = path, site
        if first.name in job.parties:
            other, _ = found.setdefault(first.name, (first_path, first))
            if os.path.realpath(other) != os.path.realpath(first_path):
                raise UsageError(f"{first_path} and {other} are both of {first.name}")
            found[first.name] = other, first  # one site, whose files are read once
        missing = [party for party in job.parties if party not in found]
        if missing:
            raise UsageError(f"run {job.run} needs the SITE of {', '.join(missing)} as well")
        parties = [found[party] for party in job.parties]
        _check_states([first, *(site for _, site in parties)])
        paths = (first_path, *(path for path, _ in parties))
        return cls(job, job_path, first, tuple(site for _, site in parties), paths)

    @property
    def sites(self) -> list[SiteConfig]:
        """Every site once."""
        return list({site.name: site for site in (self.coordinator, *self.parties)}.values())

    def kept(self) -> list[str]:
        """What the sites keep of this run, in words; empty before it has begun."""
        found = []
        for place, site in enumerate((self.coordinator, *self.parties)):
            role = "party" if place else "coordinator"
            where = site.state / role / self.job.run
            if (where / "snapshot").exists() or (where / PURGED).exists():
                found.append(f"{site.name} ({role}) {words_of(role, where)}")
        return found

    def check_begun(self, *, resume: bool, again: str) -> None:
        """Refuse to begin a run that has begun, or to go on with one that has not.

        again : the command that would go on with it
        """
        kept = self.kept()
        if resume and not kept:
            raise UsageError(f"run {self.job.run} has not begun at these sites: nothing to resume")
        if not resume and kept:
            if all(one.endswith(OVER) for one in kept):
                raise UsageError(f"run {self.job.run} is over: another run needs another name")
            raise UsageError(f"run {self.job.run} has begun: {kept[0]}; {again} goes on with it")

    def resume_command(self, name: str = "resume") -> str:
        """What goes on with the run."""
        first, *rest = self.paths
        sites = (first, *(path for path in rest if path != first))
        return shlex.join(["dpsvm", "federation", name, self.job_path, *sites])

    def files(self) -> dict[str, str | None]:
        """All the files that a run reads, by what they are."""
        found: dict[str, str | None] = {"JOB": self.job_path}
        for path, site in zip(self.paths, (self.coordinator, *self.parties), strict=True):
            found[f"the SITE of {site.name}"] = path
            for source in (site.source, site.predict):
                if source is not None:
                    found[f"data of {site.name}, {source.file.name}"] = str(source.file)
            if site.ledger is not None:
                found[f"the ledger of {site.name}"] = str(site.ledger)
                key = f"{os.path.realpath(site.ledger)}.key"
                found[f"the key of the ledger of {site.name}"] = key
        return found

    def budgets(self) -> dict[str, float | None]:
        """The epsilon left in the ledger of every site; None without a ledger."""
        return {site.name: budget_of(site) for site in self.sites}


def budget_of(site: SiteConfig) -> float | None:
    """The epsilon left in the ledger of a site."""
    ledger = site.accountant()
    return None if ledger is None else ledger.remaining()


def words_of(role: str, where: Path) -> str:
    """How far a role is in a run, in words."""
    try:
        copy = FolderCopy(where.parent, where.name)
        return OVER if copy.read(PURGED) is not None else progress_words(role, copy.load())
    except (StoreError, KeyError, TypeError):
        return "keeps a broken snapshot"


def progress_words(role: str, snapshot: Any) -> str:
    """How far a snapshot is, in words.

    >>> progress_words("party", {"held": 3, "ended": False})
    'holds round 3'
    """
    if snapshot is None:
        return "has no snapshot: the run has not begun, or it was lost"
    if role == "party":
        if snapshot["ended"]:
            return OVER
        return f"holds round {snapshot['held']}" if snapshot["held"] >= 0 else "is about to begin"
    return OVER if snapshot["stage"] == "done" else f"asks for round {snapshot['round']}"


def _check_states(sites: Sequence[SiteConfig]) -> None:
    owners: dict[Path, str] = {}
    for site in sites:
        other = owners.setdefault(site.state.resolve(), site.name)
        if other != site.name:
            raise UsageError(f"{other} and {site.name} have one state folder, {site.state}")
