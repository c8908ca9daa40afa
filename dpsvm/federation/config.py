"""The file of a site, in TOML: its data, its budget, and where it keeps what it must not lose.

    name = "lab"
    state = "state"                  # folder of snapshots, answers, noise keys and models
    allow = "not private"            # runs without a guarantee too, joint predictions included

    [data]
    file = "lab.csv"                 # CSV with a line of names, or LIBSVM text
    columns = ["crp", "ferritin"]    # default: all that are neither ids nor labels
    id = "patient"                   # CSV: the column of sample ids; rows are sorted by it
    label = "outcome"                # CSV: of the label owner, or of a node
    salt_file = "salt.txt"           # the same at all sites, and known to nobody else

    [predict]
    file = "new.csv"                 # samples for joint predictions, in the same columns

    [consent]                        # without it the site takes part in nothing
    approver = "approver.pub"        # whose consents count; the key itself is elsewhere
    folder = "consents"              # where they are; default: consents in the state folder

    [bounds]                         # what a private job must say, or it is refused
    data_norm = 1.0

    [budget]
    ledger = "ledger.json"           # of dpsvm budget create

Without ``allow`` the site takes part in private runs only, and needs bounds and a ledger for them.

Sites with the same samples are told by a digest of their ordered ids under the salt. This is not
private set intersection: it finds no common subset, and whoever has the salt can test a guessed
list of ids. Without a salt anybody can. A run of ``align`` finds the common subset, without a salt,
and keeps it in ``alignments`` of the state folder; a job that names it uses those rows only.

Paths are relative to the file. Of LIBSVM text ``columns`` are pairs of first and last index,
``n_features`` is the width, labels are the first numbers of the lines, and there are no ids. A
private run needs one of the two: no value is read before it is paid for, and no width measured.
``rows = [first, k]`` takes every k-th row only, from the first on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpsvm._renamed import SHARING, check_names
from dpsvm.federation.alignments import FOLDER, aligned, aligned_count
from dpsvm.federation.approving import approved
from dpsvm.federation.consent import WITHOUT_DATA, Clock, utc_now
from dpsvm.federation.coordinator import Coordinator
from dpsvm.federation.custody import COORDINATOR, PARTY
from dpsvm.federation.job import Job, check_keys, check_name, read_toml, told_where
from dpsvm.federation.journal import Journal
from dpsvm.federation.party import Party
from dpsvm.federation.reading import Reading, require_columns
from dpsvm.federation.site import Data, Refusal, Site, Unread
from dpsvm.federation.store import Phase, RunFolder, Store, StoreError, no_phase
from dpsvm.federation.tables import Source
from dpsvm.privacy.accountant import BudgetAccountant

_NOT_PRIVATE = "not private"


@dataclass(frozen=True, kw_only=True)
class SiteConfig(Reading):
    """What the file of a site says."""

    salt: str = ""
    bounds: Mapping[str, float] = field(default_factory=dict)
    ledger: Path | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SiteConfig:
        """Read the file of a site; what is wrong with it is a ValueError that names it."""
        content = read_toml(path)
        with told_where(os.fspath(path)):
            return cls._of(content, Path(path).resolve().parent)

    @classmethod
    def _of(cls, content: Mapping[str, Any], folder: Path) -> SiteConfig:
        known = {"name", "state", "allow", "data", "predict", "consent", "bounds", "budget"}
        if "private" in content:
            raise ValueError(
                "'private' is gone: a site takes part in private runs only unless it says "
                f"allow = {_NOT_PRIVATE!r}"
            )
        check_keys(content, known, {"name", "state"})
        for name in ("data", "predict", "consent", "bounds", "budget"):
            if not isinstance(content.get(name, {}), dict):
                raise ValueError(f"[{name}] must be a table, got {content[name]!r}")
        data, budget = dict(content.get("data", {})), content.get("budget", {})
        allow, consent = content.get("allow"), content.get("consent", {})
        if allow not in (None, _NOT_PRIVATE):
            raise ValueError(f"allow can be {_NOT_PRIVATE!r} only, got {allow!r}")
        if "consent" in content:
            with told_where("[consent]"):
                check_keys(consent, {"approver", "folder"}, {"approver"})
        salt = _salt(data, folder)
        if "budget" in content:
            with told_where("[budget]"):
                check_keys(budget, {"ledger"}, {"ledger"})
        bounds = content.get("bounds", {})
        check_names(bounds, SHARING, "[bounds] ")
        for name, value in bounds.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"[bounds] {name} must be a number, got {value!r}")
        source = Source.of(data, folder, "[data]") if data else None
        predict = None
        if "predict" in content:
            if source is None:
                raise ValueError("[predict] goes with [data], which says what the columns are")
            predict = source.another(content["predict"], folder)
        return cls(
            name=check_name(content["name"], "name"),
            state=folder / _text(content["state"], "state"),
            source=source,
            predict=predict,
            salt=salt,
            bounds=bounds,
            ledger=folder / _text(budget["ledger"], "ledger") if budget else None,
            private=allow is None,
            approver=folder / _text(consent["approver"], "approver") if consent else None,
            consents=folder / _text(consent["folder"], "folder") if "folder" in consent else None,
        )

    def party(
        self,
        job: Job,
        *,
        phase: Phase = no_phase,
        clock: Clock = utc_now,
        store: Store | None = None,
    ) -> Party:
        """The party of this site, if it has agreed: its data are read and its ledger is opened.

        store : where it keeps the run, if not in its state
        """
        journal = Journal(self.state, job, PARTY, clock)
        with journal.noting():
            agreed = self.approval(job, clock())
            site = approved(self.member(job), *agreed)
            with _held(RunFolder(self.state / PARTY, job.run) if store is None else store) as held:
                return Party(job, site, held, phase=phase, clock=clock, journal=journal)

    def coordinator(
        self,
        job: Job,
        *,
        dry: bool = False,
        phase: Phase = no_phase,
        clock: Clock = utc_now,
        store: Store | None = None,
    ) -> Coordinator:
        """The coordinator, at the site of the label owner; of a network, at any."""
        journal = Journal(self.state, job, COORDINATOR, clock)
        with journal.noting():
            agreed = self.approval(job, clock())
            site = approved(self.owner(job), *agreed)
            here = self.state / COORDINATOR
            with _held(RunFolder(here, job.run) if store is None else store) as held:
                return Coordinator(
                    job, site, held, dry=dry, phase=phase, clock=clock, journal=journal
                )

    def member(self, job: Job) -> Site:
        """What it brings as a party of the job."""
        self.check(job)
        self.check_private(job)
        job.place(self.name)
        return self.site(job, labels=job.algorithm == "network")

    def site(self, job: Job, *, labels: bool) -> Site:
        """What it brings as a party."""
        if job.algorithm == "align":
            return self._aligning(job)
        return self._site(job, self.model(job), labels=labels, columns=True)

    def owner(self, job: Job) -> Site:
        """What it brings as the coordinator: labels and ids, no columns."""
        self.check(job)
        if job.label_owner not in (None, self.name):
            raise Refusal(
                f"run {job.run} is coordinated by its label owner {job.label_owner}, not by "
                f"{self.name}"
            )
        if job.algorithm == "network":
            return Site(self.name)
        if job.algorithm == "align":
            return self._aligning(job)
        model = self.model(job, "coordinator", "result.json")
        return self._site(job, model, labels=job.algorithm != "predict", columns=False)

    def check(self, job: Job) -> None:
        """Refuse a job whose public bounds are not those that the site agreed to."""
        if job.algorithm in ("predict", "align"):
            return  # bounds are of the training
        for name, value in self.bounds.items():
            said = job.settings.get(name)
            if isinstance(said, bool) or not isinstance(said, (int, float)) or said != value:
                raise Refusal(
                    f"{self.name} agreed to {name} = {value:g}, and run {job.run} says "
                    f"{'nothing of it' if said is None else repr(said)}"
                )

    def check_private(self, job: Job) -> None:
        """Refuse to be a party without what a site needs that takes part in private runs only."""
        if not self.private or job.algorithm in ("predict", WITHOUT_DATA):
            return
        missing = [] if self.bounds else ["[bounds]"]
        missing += [] if self.ledger is not None else ["ledger"]
        if missing:
            raise Refusal(
                f"{self.name} takes part in private runs only, and has no "
                f"{' and no '.join(missing)} for them"
            )

    def _aligning(self, job: Job) -> Site:
        """What it brings to an alignment: ids alone."""
        counted = self.count(self.source_of(job))
        if counted.ids is None:
            raise Refusal(f"{self.name} has no sample ids, which run {job.run} aligns")
        return Site(
            self.name,
            ids=counted.ids,
            ledger=self.accountant(),
            private=self.private,
            state=self.state,
        )

    def _site(self, job: Job, model: dict[str, Any] | None, *, labels: bool, columns: bool) -> Site:
        """Its side, of which no value was read."""
        source = self.source_of(job, model if columns else None)
        if columns and (job.private or self.private) and not source.has_width:
            raise Refusal(
                f"{self.name} must give n_features or columns in its file: a private run takes no "
                "width from the data"
            )
        counted = aligned_count(self.count(source), job, self.state / FOLDER, self.name)
        names = source.names(counted, labels=labels, columns=columns)
        if columns and not source.has_width:
            names = self.read(source, job, labels=labels, columns=True).names
        if columns and not names:
            raise Refusal(f"{self.name} has no columns beside ids and labels")
        if job.ids and job.algorithm != "network" and counted.ids is None:
            raise Refusal(f"{self.name} has no sample ids, and run {job.run} matches rows by them")
        if job.compares_ids and counted.ids is not None and not self.salt:
            raise Refusal(f"{self.name} has no salt_file, without which ids could be guessed")
        if columns:
            require_columns(source, names, model)

        def read() -> Data:
            found = self.read(source, job, labels=labels, columns=columns)
            found = aligned(found, job, self.state / FOLDER, self.name)
            return Data(found.columns, found.labels)

        return Site(
            self.name,
            Unread(counted.rows, len(names), labels, read),
            ids=counted.ids,
            salt=self.salt,
            ledger=self.accountant(),
            features=names or None,
            model=model,
            private=self.private,
            state=self.state,
        )

    def accountant(self) -> BudgetAccountant | None:
        """Its ledger, opened; None if it has none."""
        if self.ledger is not None and not self.ledger.exists():
            reason = "no such ledger; dpsvm budget create begins one, never in the place of one"
            raise StoreError(f"{reason} that was lost", self.ledger)
        return None if self.ledger is None else BudgetAccountant(path=self.ledger)


@contextmanager
def _held(store: Store) -> Iterator[Store]:
    """A store that others may have again if what is made of it fails."""
    try:
        yield store
    except BaseException:
        store.close()
        raise


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a path, got {value!r}")
    return value


def _salt(data: dict[str, Any], folder: Path) -> str:
    """Taken out of [data]: the salt itself is not written into a file that is passed around."""
    if "salt_file" not in data:
        return ""
    path = folder / _text(data.pop("salt_file"), "salt_file")
    salt = path.read_text(encoding="utf-8", errors="replace").strip()
    if len(salt) < 16:
        raise ValueError(f"{path}: a salt needs 16 characters or more, got {len(salt)}")
    return salt
