"""What a site keeps of a run on its own disk: a noise key, the last snapshot, the model.

Files are replaced whole, synced to the disk, and checked when they are opened. One process at a
time has the folder of a run. Nothing is ever begun anew because something is missing or broken:
that is an error, which says what is.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpsvm._locks import LockedError, lock
from dpsvm._streams import atomic_write, sync_folder
from dpsvm.federation.frames import FrameError, freeze, thaw
from dpsvm.privacy.ledger import LedgerError
from dpsvm.privacy.stream import KEY_BYTES

Phase = Callable[[str], None]
"""Called with the name of a phase when a site reaches it; does nothing outside of tests."""

_KEY, _SNAPSHOT = "noise.key", "snapshot"
PURGED = "purged"
"""The file that stays of a run whose others were removed: it is never begun again."""

_MODELS = ("model.json", "result.json")
_KEPT = (
    *(_KEY, _SNAPSHOT, "charged", "aborted", "refunded", "rehearsals", PURGED),
    *_MODELS,
)


class StoreError(ValueError):
    """Kept files that are missing, broken, or in use; where they lie is not for others to know."""

    def __init__(self, reason: str, path: Path | None = None) -> None:
        super().__init__(reason if path is None else f"{path}: {reason}")
        self.reason = reason


class DataError(StoreError):
    """Values that a site cannot use; which they are is not for others to know.

    >>> told_of(DataError("lab", "lab.csv: line 7: '4O' in column 'age' is not a number"))
    'the values of lab cannot be used, and it knows why'
    """

    def __init__(self, site: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = f"the values of {site} cannot be used, and it knows why"


def told_of(error: Exception) -> str:
    """What other sites may know of an error.

    >>> told_of(StoreError("another process has this run", Path("state")))
    'another process has this run'
    """
    if isinstance(error, LedgerError):
        return "a ledger cannot be used, and its site knows why"
    return error.reason if isinstance(error, StoreError) else str(error)


def make_folder(folder: Path) -> None:
    """Make a folder for its owner alone, and those above it, all of which survive a power cut.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_folder(Path(folder, "state", "party"))
    ...     oct(Path(folder, "state").stat().st_mode)
    '0o40700'
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        with suppress(FileExistsError):
            one.mkdir(mode=0o700)
    for one in reversed(missing or [folder]):
        sync_folder(one.parent)


def no_phase(_: str) -> None:
    """What is called at a phase, outside of tests."""


class Store:
    """Where a site keeps a run: a few files, by name.

    path : the folder, None without one
    """

    path: Path | None = None

    def key(self, *, begun: bool) -> bytes:
        """The key of the run's noise; drawn when first asked for, unless the run has begun."""
        key = self._get(_KEY)
        if key is None:
            if begun:
                raise self._error(_KEY, "the key of a run that has begun is lost")
            key = secrets.token_bytes(KEY_BYTES)
            self._put(_KEY, key)
        if len(key) != KEY_BYTES:
            raise self._error(_KEY, f"a key has {KEY_BYTES} bytes, this one {len(key)}")
        return key

    def save(self, snapshot: Any, phase: Phase = no_phase) -> None:
        """Replace the snapshot."""
        self._put(_SNAPSHOT, freeze(snapshot), phase)

    def load(self) -> Any:
        """The snapshot, or None if none was ever saved."""
        data = self._get(_SNAPSHOT)
        try:
            return None if data is None else thaw(data)
        except FrameError as error:
            raise self._error(_SNAPSHOT, f"this snapshot cannot be used: {error}") from None

    def write(self, name: str, text: str) -> None:
        """Keep a file of text."""
        self._put(name, text.encode())

    def read(self, name: str) -> str | None:
        """A file of text, None if there is none."""
        data = self._get(name)
        return None if data is None else data.decode()

    def close(self) -> None:
        """Let others have it."""

    def _error(self, name: str, reason: str) -> StoreError:
        return StoreError(reason, None if self.path is None else self.path / name)

    def _get(self, name: str) -> bytes | None:
        """A file, None if there is none."""
        raise NotImplementedError

    def _put(self, name: str, data: bytes, phase: Phase = no_phase) -> None:
        """Replace a file; the phase is reached when it is written and not yet in its place."""
        raise NotImplementedError


class MemoryStore(Store):
    """A store that is gone with the process.

    >>> store = MemoryStore()
    >>> store.save({"round": 1})
    >>> store.load()
    {'round': 1}
    """

    def __init__(self, key: bytes | None = None, snapshot: bytes | None = None) -> None:
        given = {_KEY: secrets.token_bytes(KEY_BYTES) if key is None else key, _SNAPSHOT: snapshot}
        self._files = {name: data for name, data in given.items() if data is not None}

    def _get(self, name: str) -> bytes | None:
        return self._files.get(name)

    def _put(self, name: str, data: bytes, phase: Phase = no_phase) -> None:
        phase(f"during {name}")
        self._files[name] = data


class FolderCopy(MemoryStore):
    """What a folder of a run holds, in memory: to look at a run without having it.

    It takes no lock, and leaves the folder as it is.
    """

    def __init__(self, folder: str | os.PathLike[str], run: str) -> None:
        self.path: Path = Path(folder, run)
        there = [name for name in _KEPT if (self.path / name).is_file()]
        self._files = {name: (self.path / name).read_bytes() for name in there}


class RunFolder(Store):
    """A store on disk: the folder of one run at one site, which one process has at a time.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with RunFolder(folder, "heart-1") as store:
    ...         store.save({"round": 1})
    ...     with RunFolder(folder, "heart-1") as store:
    ...         store.load()
    {'round': 1}
    """

    def __init__(self, folder: str | os.PathLike[str], run: str) -> None:
        self.path: Path = Path(folder, run)
        make_folder(self.path)  # a charge must not outlive the folder it was made for
        _check_rights(self.path)
        try:
            self._lock = lock(self.path / "lock", wait=False)
        except LockedError:
            raise StoreError("another process has this run", self.path) from None
        for left in self.path.glob(".dpsvm-*"):  # by a process that was killed while it wrote
            left.unlink()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others have it."""
        self._lock.release()

    def purge(self, words: str, *, models: bool = False) -> None:
        """Remove what is kept of a run that is over, for good; a mark stays, which has the words.

        The mark is on the disk before anything is removed: who is killed meanwhile does it again.

        models : what the run has made as well
        """
        if self._get(PURGED) is None:
            self._put(PURGED, words.encode())
        stays = {PURGED, "charged", "lock", *(() if models else _MODELS)}
        for file in self.path.iterdir():
            if file.name not in stays:
                file.unlink()
        sync_folder(self.path)

    def _get(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def _put(self, name: str, data: bytes, phase: Phase = no_phase) -> None:
        with atomic_write(self.path / name, "wb", permissions=0o600) as file:
            file.write(data)
            phase(f"during {name}")


def _check_rights(folder: Path) -> None:
    """Refuse a run whose key others may have read or replaced; close a folder that has none yet."""
    if os.name != "posix":
        return
    if (folder / _SNAPSHOT).exists() and folder.stat().st_mode & 0o077:
        raise StoreError(
            "others may look into this run, and its noise key with it: chmod 700 if nobody has, "
            "else abort it",
            folder,
        )
    folder.chmod(0o700)
    for file in folder.iterdir():
        if file.is_file() and file.stat().st_mode & 0o077:
            file.chmod(0o600)
    for above in folder.parents[:2]:  # of the role, and of the site's state
        if above.stat().st_mode & 0o1002 == 0o002:  # in a sticky one each has its own files
            raise StoreError("all users may write to this folder: chmod o-w", above)
