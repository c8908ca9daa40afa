"""Where a ledger is kept: in a file with a key beside it, or in the memory of one process."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpsvm._locks import lock
from dpsvm._secrets import write_secret
from dpsvm._streams import atomic_write, sync_folder
from dpsvm.privacy.ledger import BudgetError, Ledger, LedgerError
from dpsvm.privacy.ledger_text import BEFORE, KEY_BYTES, links, parsed, require_unchanged, written

ELSEWHERE = (
    "an accountant without a file takes no charge in another process or from a pickle: give path="
)
"""Why one is closed."""

_LARGEST = 1 << 26  # bytes of a ledger


class MemoryLedger:
    """A ledger that lives as long as its accountant.

    >>> MemoryLedger(Ledger.of(1.0)).read().epsilon
    1.0
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._key = secrets.token_bytes(KEY_BYTES)
        self._lock = threading.Lock()
        self._process = os.getpid()

    def read(self) -> Ledger:
        """The ledger as it is."""
        return self._ledger

    def links(self) -> list[str]:
        """Its chain."""
        return links(self._ledger, self._key)

    def update(self, change: Callable[[Ledger], Ledger]) -> None:
        """Change it, while nobody else does."""
        if os.getpid() != self._process:  # a fork would double the budget
            raise BudgetError(ELSEWHERE)
        with self._lock:
            self._ledger = change(self._ledger)


class LedgerFile:
    """A ledger file, replaced whole at every change while a lock file beside it is held.

    Beside it lies its key, in a file that only its owner may read; it is made with the ledger, and
    never again.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = LedgerFile(Path(folder, "ledger"))
    ...     file.begin(Ledger.of(1.0))
    ...     sorted(os.listdir(folder))
    ['ledger', 'ledger.key', 'ledger.lock']
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.key_path = Path(f"{path}.key")

    def begin(self, ledger: Ledger) -> None:
        """Write a new ledger and its key; neither may be there."""
        self._require_free()  # or a lock would be left beside what is no ledger
        with self._locked():
            self._require_free()
            self._write_first(ledger)

    def adopt(self) -> None:
        """Make a ledger of version 1 one of this version, as it is."""
        self._version_1()  # or a lock would be left beside what is no ledger
        with self._locked():
            self._require_one_name()
            self._write_first(self._version_1())

    def read(self) -> Ledger:
        """The ledger as it is now; ValueError if it is not as it was written."""
        return self._load()[0]

    def links(self) -> list[str]:
        """Its chain."""
        return links(*self._load())

    def update(self, change: Callable[[Ledger], Ledger]) -> None:
        """Change it, on the disk before this returns."""
        with self._locked():
            ledger, key = self._read()
            self._require_one_name()
            if (changed := change(ledger)) is not ledger:
                self._write(written(changed, key))
            else:  # whoever wrote it may have been killed before this
                sync_folder(self.path.parent)

    def _require_free(self) -> None:
        if self.path.exists():
            raise FileExistsError(f"{self.path}: there is a ledger already; open it without create")

    def _require_one_name(self) -> None:
        if os.stat(self.path).st_nlink > 1:  # replacing one of them would fork the budget
            raise BudgetError(f"{self.path}: a ledger file must have one name, not hard links")

    def _version_1(self) -> Ledger:
        return parsed(_bytes(self.path, _LARGEST), str(self.path), BEFORE)

    def _load(self) -> tuple[Ledger, bytes]:
        if os.name != "nt" or not self.path.exists():
            return self._read()
        with self._locked():  # Windows replaces no file that is being read
            return self._read()

    def _read(self) -> tuple[Ledger, bytes]:
        try:
            return self._checked()
        except ValueError as error:
            raise LedgerError(str(error)) from error

    def _checked(self) -> tuple[Ledger, bytes]:
        try:
            text = _bytes(self.path, _LARGEST)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{self.path}: no such ledger; create=True begins a new one"
            ) from None
        ledger = parsed(text, str(self.path))
        key = self._key()
        require_unchanged(ledger, text, key, str(self.path))
        return ledger, key

    def _key(self) -> bytes:
        try:
            key = _bytes(self.key_path, KEY_BYTES, secret=True)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{self.key_path}: the key of this ledger is missing, and without it nobody can "
                "tell whether the ledger was changed: put it back from where the ledger was begun, "
                "or from a copy. No new one is ever made for a ledger"
            ) from None
        if len(key) != KEY_BYTES:
            raise ValueError(
                f"{self.key_path}: the key of a ledger has {KEY_BYTES} bytes, and this one not"
            )
        return key

    def _write_first(self, ledger: Ledger) -> None:
        key = secrets.token_bytes(KEY_BYTES)
        text = written(ledger, key)
        try:
            write_secret(self.key_path, key)
        except FileExistsError:
            raise FileExistsError(
                f"{self.key_path}: there is a key already, so there was a ledger here: put that "
                "back, or choose another name. Only the key of a ledger that was never charged "
                "may be removed"
            ) from None
        try:
            sync_folder(self.path.parent)
            self._write(text)
        except BaseException:
            with suppress(OSError):
                if not self.path.exists() or self.path.read_bytes() != text:
                    self.key_path.unlink()
            raise

    def _write(self, text: bytes) -> None:
        if len(text) > _LARGEST:
            raise BudgetError(f"{self.path}: this ledger is full: begin another")
        with atomic_write(self.path, "wb") as file:
            file.write(text)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        held = lock(f"{self.path}.lock")
        try:
            yield
        finally:
            held.release()


def _bytes(path: Path, most: int, *, secret: bool = False) -> bytes:
    """What a file holds; refused if it is not one, or too large, or a secret others may read."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):  # to open a pipe could take forever
        raise ValueError(f"{path}: not a file")
    with open(path, "rb") as file:
        if secret and os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
            raise ValueError(
                f"{path}: others have rights to this key: chmod 600. Who has read it can write "
                "any ledger with it"
            )
        found = file.read(most + 1)
    if len(found) > most and not secret:
        raise ValueError(f"{path}: not a privacy ledger: it has more than {most} bytes")
    return found
