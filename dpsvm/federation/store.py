"""What a site keeps of a run on its own disk: a noise key, the last snapshot, the model.

Files are replaced whole, synced to the disk, and checked when they are opened. One process at a
time has the folder of a run. Nothing is ever begun anew because something is missing or broken:
that is an error, which says what is.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from dpsvm._locks import LockedError, lock
from dpsvm._streams import atomic_write, sync_folder
from dpsvm.federation.frames import FrameError
from dpsvm.federation.snapshots import freeze, thaw
from dpsvm.privacy.stream import KEY_BYTES

Phase = Callable[[str], None]
"""Called with the name of a phase when a site reaches it; does nothing outside of tests."""


class StoreError(ValueError):
    """Kept files that are missing, broken, or in use; where they lie is not for others to know."""

    def __init__(self, reason: str, path: Path | None = None) -> None:
        super().__init__(reason if path is None else f"{path}: {reason}")
        self.reason = reason


def told_of(error: Exception) -> str:
    """What other sites may know of an error.

    >>> told_of(StoreError("another process has this run", Path("state")))
    'another process has this run'
    """
    return error.reason if isinstance(error, StoreError) else str(error)


def no_phase(_: str) -> None:
    """What is called at a phase, outside of tests."""


class Store(Protocol):
    """Where a site keeps a run."""

    def key(self, *, begun: bool) -> bytes:
        """The key of the run's noise; drawn when first asked for, unless the run has begun."""

    def save(self, snapshot: Any, phase: Phase = no_phase) -> None:
        """Replace the snapshot."""

    def load(self) -> Any:
        """The snapshot, or None if none was ever saved."""

    def write(self, name: str, text: str) -> None:
        """Keep a file of text."""

    def read(self, name: str) -> str | None:
        """A file of text, None if there is none."""

    def close(self) -> None:
        """Let others have it."""


class MemoryStore:
    """A store that is gone with the process.

    >>> store = MemoryStore()
    >>> store.save({"round": 1})
    >>> store.load()
    {'round': 1}
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(KEY_BYTES) if key is None else key
        self._snapshot: bytes | None = None
        self._files: dict[str, str] = {}

    def key(self, *, begun: bool) -> bytes:
        """The key of the run's noise."""
        return self._key

    def save(self, snapshot: Any, phase: Phase = no_phase) -> None:
        """Replace the snapshot."""
        frozen = freeze(snapshot)
        phase("during snapshot")
        self._snapshot = frozen

    def load(self) -> Any:
        """The snapshot, or None if none was ever saved."""
        return None if self._snapshot is None else thaw(self._snapshot)

    def write(self, name: str, text: str) -> None:
        """Keep a file of text."""
        self._files[name] = text

    def read(self, name: str) -> str | None:
        """A file of text, None if there is none."""
        return self._files.get(name)

    def close(self) -> None:
        """Nothing to let go of."""


class FolderCopy(MemoryStore):
    """What a folder of a run holds, in memory: to look at a run without having it.

    It takes no lock, and leaves the folder as it is.
    """

    def __init__(self, folder: str | os.PathLike[str], run: str) -> None:
        super().__init__()
        self.path = Path(folder, run)
        self._key_there = (self.path / "noise.key").is_file()
        if self._key_there:
            self._key = (self.path / "noise.key").read_bytes()
        if (self.path / "snapshot").is_file():
            self._snapshot = (self.path / "snapshot").read_bytes()
        for name in ("aborted", "model.json", "result.json"):
            if (self.path / name).is_file():
                self._files[name] = (self.path / name).read_text(encoding="utf-8")

    def key(self, *, begun: bool) -> bytes:
        """The key of the run's noise."""
        if begun and not self._key_there:
            raise StoreError("the key of a run that has begun is lost", self.path / "noise.key")
        return _checked_key(self._key, self.path / "noise.key")

    def load(self) -> Any:
        """The snapshot, or None if none was ever saved."""
        return None if self._snapshot is None else _thawed(self._snapshot, self.path / "snapshot")


class RunFolder:
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
        self.path = Path(folder, run)
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)
        sync_folder(self.path.parent)  # a charge must not outlive the folder it was made for
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

    def key(self, *, begun: bool) -> bytes:
        """The key of the run's noise; drawn when first asked for, unless the run has begun."""
        path = self.path / "noise.key"
        if not path.exists():
            if begun:
                raise StoreError("the key of a run that has begun is lost", path)
            with atomic_write(path, "wb", permissions=0o600) as file:
                file.write(secrets.token_bytes(KEY_BYTES))
        return _checked_key(path.read_bytes(), path)

    def save(self, snapshot: Any, phase: Phase = no_phase) -> None:
        """Replace the snapshot."""
        with atomic_write(self.path / "snapshot", "wb") as file:
            file.write(freeze(snapshot))
            phase("during snapshot")

    def load(self) -> Any:
        """The snapshot, or None if none was ever saved."""
        path = self.path / "snapshot"
        return _thawed(path.read_bytes(), path) if path.exists() else None

    def write(self, name: str, text: str) -> None:
        """Keep a file of text."""
        with atomic_write(self.path / name) as file:
            file.write(text)

    def read(self, name: str) -> str | None:
        """A file of text, None if there is none."""
        try:
            return (self.path / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """Let others have it."""
        self._lock.release()


def _checked_key(key: bytes, path: Path) -> bytes:
    if len(key) != KEY_BYTES:
        raise StoreError(f"a key has {KEY_BYTES} bytes, this one {len(key)}", path)
    return key


def _thawed(data: bytes, path: Path) -> Any:
    try:
        return thaw(data)
    except FrameError as error:
        raise StoreError(f"this snapshot cannot be used: {error}", path) from None
