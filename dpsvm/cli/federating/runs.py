"""``dpsvm federation status`` and ``abort``: what a site keeps of its runs, and one it gives up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dpsvm._streams import atomic_write
from dpsvm.cli.federating.cast import OVER, ROLES, budget_of, progress_words, words_of
from dpsvm.cli.federating.command import Command
from dpsvm.cli.layout import line
from dpsvm.cli.options import Flag, UsageError
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.job import check_name
from dpsvm.federation.records import disagreements, label_of
from dpsvm.federation.store import PURGED, FolderCopy, RunFolder, StoreError
from dpsvm.privacy.accountant import Charge, Reservation
from dpsvm.privacy.accounting import epsilon_of

_LABEL = "federation run "
_REASON = Flag("--reason", "told to whoever asks", "text", str, "by its operator")


def _status(site_path: str, run: str | None = None) -> None:
    view = _View(SiteConfig.load(site_path))
    only = None if run is None else check_name(run, "RUN")
    names = view.runs() if only is None else [only]
    lines = [line("site", view.site.name), line("state", view.site.state)]
    for name in names:
        found = list(view.lines_of(name))
        if not found and only is not None:
            raise UsageError(f"{view.site.name} keeps nothing of a run {only}")
        lines += ["", line("run", name), *found]
    if not names:
        lines += ["", line("runs", "none")]
    print("\n".join([*lines, "", line("budget", view.budget_words())]))
    view.check_records()
    if view.broken:
        raise ValueError("; ".join(view.broken))


@dataclass
class _View:
    """A site as its files tell; what is broken is noted, and does not stop the rest."""

    site: SiteConfig
    broken: list[str] = field(default_factory=list)

    def runs(self) -> list[str]:
        """The names of all runs that it keeps or was charged for."""
        found = {folder.name for role in ROLES for folder in _folders(self.site.state / role)}
        charged = {charge.label.split()[2] for charge in self._charges() if charge.label}
        return sorted(found | charged)

    def lines_of(self, name: str) -> Iterator[str]:
        """What is kept of a run."""
        for role in ROLES:
            folder = self.site.state / role / name
            if folder.is_dir():
                yield line(f"  as {role}", self._words(role, folder))
                files = [path.name for path in sorted(folder.iterdir())]
                shown = [one for one in files if one != "lock" and not one.startswith(".")]
                yield line("    files", ", ".join(shown) or "none")
                if (rehearsed := FolderCopy(folder.parent, name).read("rehearsals")) is not None:
                    yield line("    rehearsals", rehearsed.strip())
        charges = [one for one in self._charges() if one.label.startswith(f"{_LABEL}{name} at ")]
        for charge in charges:
            yield line("  charged", f"epsilon = {self._alone(charge):g} ({charge.label})")
        for one in self._reservations():
            if one.label.startswith(f"{_LABEL}{name} at "):
                yield line("  reserved", f"epsilon = {self._alone(one):g} until {one.expires}")
        if charges and not any((self.site.state / role / name).is_dir() for role in ROLES):
            yield line("  lost", "it was charged, and nothing else of it is kept")

    def budget_words(self) -> str:
        """What is left in its ledger."""
        if self.site.ledger is None:
            return "no ledger"
        try:
            return f"epsilon = {budget_of(self.site):g} is left in {self.site.ledger}"
        except (ValueError, OSError) as error:
            self.broken.append(str(error))
            return f"broken: {error}"

    def check_records(self) -> None:
        """Note what the ledger and the state folder do not agree on."""
        with suppress(ValueError, OSError):  # of a broken ledger, of which the budget tells
            ledger = self.site.accountant()
            if ledger is not None:
                self.broken.extend(disagreements(self.site.state, self.site.name, ledger))

    def _words(self, role: str, folder: Path) -> str:
        try:
            copy = FolderCopy(folder.parent, folder.name)
            if (purged := copy.read(PURGED)) is not None:
                return f"{purged.strip()}; what it kept was purged"
            words, aborted = progress_words(role, copy.load()), copy.read("aborted")
        except StoreError as error:
            self.broken.append(str(error))
            return "keeps a broken snapshot"
        except (KeyError, TypeError):
            self.broken.append(f"{folder / 'snapshot'}: this is no snapshot of a {role}")
            return "keeps a broken snapshot"
        if copy.read("refunded") is not None:
            return f"was stopped before it was charged ({words})"
        return words if aborted is None else f"has given it up: {aborted.strip()} ({words})"

    def _charges(self) -> list[Charge]:
        try:
            ledger = self.site.accountant()
            charges = () if ledger is None else ledger.charges
        except (ValueError, OSError):
            return []  # the budget tells
        return [one for one in charges if one.label.startswith(_LABEL)]

    def _reservations(self) -> tuple[Reservation, ...]:
        try:
            ledger = self.site.accountant()
            return () if ledger is None else ledger.reservations
        except (ValueError, OSError):
            return ()

    def _alone(self, charge: Charge | Reservation) -> float:
        ledger = self.site.accountant()
        return epsilon_of([charge.event], 0.0 if ledger is None else ledger.total().delta)


def _folders(path: Path) -> list[Path]:
    return [one for one in path.iterdir() if one.is_dir()] if path.is_dir() else []


def _abort(site_path: str, run: str, *, reason: str) -> None:
    site, name = SiteConfig.load(site_path), check_name(run, "RUN")
    folders = [site.state / role / name for role in ROLES]
    folders = [folder for folder in folders if folder.is_dir()]
    if not folders:
        raise UsageError(f"{site.name} keeps nothing of a run {name}")
    open_ones = [folder for folder in folders if words_of(folder.parent.name, folder) != OVER]
    if not open_ones:
        raise UsageError(f"run {name} is over at {site.name}: there is nothing to give up")
    for folder in open_ones:
        with atomic_write(folder / "aborted") as file:
            file.write(f"{' '.join(reason.split())}\n")
        if _is_busy(folder):
            print(f"{folder}: another process has this run; it is refused once that has ended")
    ledger = site.accountant()
    labels = tuple(label_of(name, site.name, role) for role in ROLES)
    reserved = [] if ledger is None else ledger.reservations
    ours = [one for one in reserved if one.label.startswith(labels)]
    for one in ours:
        assert ledger is not None
        ledger.refund(one.identity)
    what = "what it had reserved is given back" if ours else "what it was charged stands"
    print(f"run {name} is given up at {site.name}; {what}")


def _is_busy(folder: Path) -> bool:
    try:
        RunFolder(folder.parent, folder.name).close()
    except StoreError:
        return True
    return False


COMMANDS = {
    "status": Command(
        "usage: dpsvm federation status SITE [RUN]",
        "Prints every run of a site, or one: in which role, the last round that it holds, "
        "whether it has ended, its files, what it was charged, and the budget that is left. "
        "Only reads, also while a process has the run. The exit code is 2 if anything that is "
        "kept is broken, or if the ledger and the folders of runs do not agree.",
        _status,
        needs=("SITE is needed, and a RUN if one is meant", 1, 2),
    ),
    "abort": Command(
        "usage: dpsvm federation abort [--reason text] SITE RUN",
        "Gives up a run at a site, for good: the site refuses it from then on. What the run "
        "was charged stands, since what was sent cannot be taken back; what it had only "
        "reserved is given back. Other sites are not "
        "told: their coordinator finds that this one refuses.",
        _abort,
        (_REASON,),
        needs=("SITE and RUN are needed", 2, 2),
    ),
}
