"""``dpsvm federation abort``: a run that a site will not go on with."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from dpsvm._streams import atomic_write
from dpsvm.cli.federating.cast import ROLES
from dpsvm.cli.options import Flag, UsageError, help_page, parse
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.job import check_name
from dpsvm.federation.store import FolderCopy, RunFolder, StoreError

_USAGE = "usage: dpsvm federation abort [--reason text] SITE RUN"
FLAGS = (Flag("--reason", "told to whoever asks", "text", str, "by its operator"),)


def help_text() -> str:
    """The help of the subcommand."""
    return help_page(
        _USAGE,
        "Gives up a run at a site, for good: the site refuses it from then on. What the run "
        "was charged stands, since what was sent cannot be taken back. Other sites are not "
        "told: their coordinator finds that this one refuses.",
        ("", FLAGS),
    )


def run(arguments: list[str]) -> None:
    """Carry out the subcommand."""
    values, words = parse(arguments, FLAGS)
    if len(words) != 2:
        raise UsageError(f"SITE and RUN are needed, got {len(words)}; {_USAGE}")
    site, name = SiteConfig.load(words[0]), check_name(words[1], "RUN")
    folders = [site.state / role / name for role in ROLES]
    folders = [folder for folder in folders if folder.is_dir()]
    if not folders:
        raise UsageError(f"{site.name} keeps nothing of a run {name}")
    open_ones = [folder for folder in folders if not _is_over(folder)]
    if not open_ones:
        raise UsageError(f"run {name} is over at {site.name}: there is nothing to give up")
    for folder in open_ones:
        with atomic_write(folder / "aborted") as file:
            file.write(f"{' '.join(values['reason'].split())}\n")
        if _is_busy(folder):
            print(f"{folder}: another process has this run; it is refused once that has ended")
    print(f"run {name} is given up at {site.name}; what it was charged stands")


def _is_over(folder: Path) -> bool:
    with suppress(StoreError):
        snapshot = FolderCopy(folder.parent, folder.name).load()
        return snapshot is not None and (
            bool(snapshot.get("ended")) or snapshot.get("stage") == "done"
        )
    return False  # a broken snapshot is given up as well


def _is_busy(folder: Path) -> bool:
    try:
        RunFolder(folder.parent, folder.name).close()
    except StoreError:
        return True
    return False
