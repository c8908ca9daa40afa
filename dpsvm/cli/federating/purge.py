"""``dpsvm federation purge``: removes what a site keeps of runs that are over."""

from __future__ import annotations

from pathlib import Path

from dpsvm.cli.federating.cast import OVER, ROLES, words_of
from dpsvm.cli.federating.command import Command
from dpsvm.cli.options import Flag, UsageError
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.job import check_name
from dpsvm.federation.store import PURGED, FolderCopy, RunFolder

_USAGE = "usage: dpsvm federation purge SITE (RUN | --finished) [--all]"
_GIVEN_UP = "has given it up"


def _purge(site_path: str, run: str | None = None, *, finished: bool, everything: bool) -> None:
    if finished == (run is not None):
        raise UsageError("a RUN or --finished is needed, one of both")
    site = SiteConfig.load(site_path)
    if run is not None:
        names = [check_name(run, "RUN")]
    else:
        found = {
            one.name for role in ROLES for one in (site.state / role).glob("*") if one.is_dir()
        }
        names = [name for name in sorted(found) if not _left(site, name)]
    for name in names:
        folders = _folders(site, name)
        if not folders:
            raise UsageError(f"{site.name} keeps nothing of a run {name}")
        if left := _left(site, name):
            raise UsageError(f"run {name} is not over at {site.name}: {left}")
        for folder in folders:
            if (words := _ended(folder)) is not None:
                with RunFolder(folder.parent, folder.name) as store:
                    store.purge(f"{words}\n", models=everything)
        print(f"run {name} is purged at {site.name}; what it was charged stands")
    if not names:
        print(f"{site.name} keeps no run that is over")


def _folders(site: SiteConfig, name: str) -> list[Path]:
    return [site.state / role / name for role in ROLES if (site.state / role / name).is_dir()]


def _left(site: SiteConfig, name: str) -> str:
    """Why a run is not over, "" if it is in every role in which it has begun."""
    folders = _folders(site, name)
    ends = {folder: _ended(folder) for folder in folders}
    for folder, end in ends.items():
        unused = not (folder / "snapshot").exists() and any(ends.values())
        if end is None and not unused:
            return f"as {folder.parent.name} it {words_of(folder.parent.name, folder)}"
    return ""


def _ended(folder: Path) -> str | None:
    """How a run has ended in one role, None if it has not."""
    copy = FolderCopy(folder.parent, folder.name)
    if (purged := copy.read(PURGED)) is not None:
        return purged.strip()
    if (reason := copy.read("aborted")) is not None:
        return f"{_GIVEN_UP}: {reason.strip()}"
    if copy.read("refunded") is not None:
        return "was stopped before it was charged"
    return OVER if words_of(folder.parent.name, folder) == OVER else None


COMMANDS = {
    "purge": Command(
        _USAGE,
        "Removes the snapshot, the last answer and the noise key that a site keeps of a RUN that "
        "is over or was given up, or with --finished of all such runs. The model and the result "
        "stay unless --all is given. The ledger stays as it is, and a mark stays in the run's "
        "folder: no run of that name is ever begun there again. A run that is not over is "
        "refused.",
        _purge,
        (
            Flag("--finished", "every run that is over", default=False),
            Flag("--all", "the model and the result too", default=False, name="everything"),
        ),
        needs=("SITE, and a RUN or --finished, are needed", 1, 2),
    )
}
