"""Opening files to read, compressed or not, and writing them whole or not at all."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, Any, BinaryIO

from dpsvm._errors import LibsvmFormatError

_CHUNK = 1 << 20
_READERS: dict[str, Callable[[str], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_WRITERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda file: gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0),
    ".bz2": partial(bz2.open, mode="wb"),
    ".xz": partial(lzma.open, mode="wb"),
}


_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def _suffix(path: str | os.PathLike[str]) -> str:
    return os.path.splitext(os.fspath(path))[1].lower()


class _Decompressed(io.RawIOBase):
    """The text inside a compressed file; damage is a LibsvmFormatError that names the file."""

    def __init__(self, path: str, suffix: str) -> None:
        self._path = path
        self._suffix = suffix
        self._file = _READERS[suffix](path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self._file.readinto(buffer))
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = f"the {self._suffix} stream is damaged: {error}"
            raise LibsvmFormatError(self._path, None, reason) from error

    def close(self) -> None:
        self._file.close()
        super().close()


def open_text(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file to read its bytes; names in .gz, .bz2 and .xz are decompressed as they are read.

    A damaged or truncated stream raises LibsvmFormatError when the damage is reached.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/two.gz"
    ...     with open(path, "wb") as file:
    ...         _ = file.write(gzip.compress(b"+1 1:2\\n-1 1:3\\n"))
    ...     with open_text(path) as text:
    ...         list(text)
    [b'+1 1:2\\n', b'-1 1:3\\n']
    """
    suffix = _suffix(path)
    if suffix not in _READERS:
        return open(path, "rb")
    return io.BufferedReader(_Decompressed(os.fspath(path), suffix), buffer_size=_CHUNK)


def chunks_of(file: IO[bytes]) -> Iterator[bytes]:
    """What is left of a file, in pieces of a mebibyte.

    >>> [len(chunk) for chunk in chunks_of(io.BytesIO(bytes(2**20 + 5)))]
    [1048576, 5]
    """
    while chunk := file.read(_CHUNK):
        yield chunk


def is_json(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as JSON does, and not as a LIBSVM model file.

    Only a regular file is looked into: what is taken from a pipe would be missing later.

    >>> is_json("no such file")
    False
    """
    if not os.path.isfile(path):
        return False
    with open_text(path) as file:
        return file.read(64).lstrip().startswith(b"{")


@contextmanager
def compressor(path: str | os.PathLike[str], file: IO[bytes]) -> Iterator[IO[bytes]]:
    """A file that compresses into `file` as the suffix of `path` asks, or `file` itself.

    >>> raw = io.BytesIO()
    >>> with compressor("a1a.gz", raw) as file:
    ...     _ = file.write(b"+1 1:2\\n")
    >>> gzip.decompress(raw.getvalue())
    b'+1 1:2\\n'
    """
    suffix = _suffix(path)
    if suffix not in _WRITERS:
        yield file
        return
    with _WRITERS[suffix](file) as packed:
        yield packed


@contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: str = "w", *, permissions: int = 0o666
) -> Iterator[IO[Any]]:
    """Write a file that replaces `path` only once it is complete; an error leaves the old file.

    The new file keeps the old one's permissions; without an old one it has those given, less what
    the umask takes. A symbolic link is followed. What cannot be replaced is written to as it is: a
    pipe, a device, and the descriptors that /dev/stdout, /dev/fd/63 and the like stand for,
    wherever they have got to.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(f"{folder}/note.txt") as file:
    ...         _ = file.write("all or nothing")
    ...     open(f"{folder}/note.txt").read()
    'all or nothing'
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"mode must be 'w' or 'wb', got {mode!r}")
    text: dict[str, Any] = {} if mode == "wb" else {"encoding": "utf-8", "newline": "\n"}
    if not os.fspath(path):  # which realpath would take for the current folder
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    old = os.stat(path).st_mode if os.path.exists(path) else None
    descriptor = _descriptor(path)
    if descriptor is not None or not (old is None or stat.S_ISREG(old)):
        place = path if descriptor is None else _again(descriptor, path)
        with _named(path), open(place, mode, **text) as file:
            yield file
        return
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".dpsvm-{os.urandom(8).hex()}")
    descriptor = _create(temporary, path, permissions)
    try:
        with _named(path), open(descriptor, mode, **text) as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        if old is not None:
            os.chmod(temporary, stat.S_IMODE(old))
        os.replace(temporary, target)
        sync_folder(os.path.dirname(target))
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """An error of the system that names no file, as of a full disk, is reported as one of this."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """See that a renamed file survives a power cut, where the system lets one."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _descriptor(path: str | os.PathLike[str]) -> int | None:
    """The open descriptor that a name stands for, if it does."""
    text = os.fspath(path)
    folder, name = os.path.split(text)
    if folder in ("/dev/fd", "/proc/self/fd") and name.isdecimal():
        return int(name)
    return _STANDARD.get(text)


def _again(descriptor: int, path: str | os.PathLike[str]) -> int:
    """A descriptor for the same place, to be closed; opening the name would begin a file anew."""
    if descriptor == 1 and sys.stdout is not None:  # None: closed by whoever began this process
        sys.stdout.flush()
    with _named(path):
        return os.dup(descriptor)


def _create(temporary: str, path: str | os.PathLike[str], permissions: int) -> int:
    """Create a temporary file; a failure is reported in the name of the file that was asked for."""
    try:
        return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, permissions)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
