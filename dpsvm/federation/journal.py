"""A site's own log: what it was asked, by whom, and what left it. One line of JSON for each."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsvm.federation.consent import Clock, utc_now
from dpsvm.federation.job import Job
from dpsvm.federation.messages import Message
from dpsvm.federation.site import Refusal
from dpsvm.federation.store import make_folder

FILE = "journal.jsonl"
"""The name of the log in a site's state folder."""

_LONGEST = 300  # characters of a text that others have sent


@dataclass(frozen=True)
class Journal:
    """The log of a site in one role of one run.

    A line is on the disk before what it tells of leaves. Texts of others are cut, and written as
    JSON without a character beyond ASCII: none can forge a line, or hide one on a screen.

    >>> import tempfile
    >>> job = Job("heart-1", "sharing", ("lab",), "office", ids=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder), job, "party")
    ...     asked = Message("heart-1", 3, "stop", scalars={"reason": "enough"})
    ...     journal.answered(asked, Message("heart-1", 3, "stopped")).kind
    ...     line = json.loads(Path(folder, FILE).read_text())
    ...     line["by"], line["asked"], line["answered"]["kind"]
    'stopped'
    ('office', {'kind': 'stop', 'round': 3}, 'stopped')
    """

    folder: Path
    job: Job
    role: str
    clock: Clock = utc_now

    def answered(self, asked: Message, answer: Message) -> Message:
        """Note an answer that is about to leave, and give it; a Refusal if it cannot be noted."""
        try:
            self._write(asked=_of(asked), answered=_weighed(answer))
        except OSError:
            raise Refusal("this site cannot write its journal, and answers nothing") from None
        return answer

    def sent(self, messages: Mapping[str, Message]) -> None:
        """Note what a coordinator is about to send, once where several get the same."""
        groups: dict[tuple[int, int], list[str]] = {}
        for name, message in messages.items():
            groups.setdefault((id(message.arrays), id(message.scalars)), []).append(name)
        try:
            for names in groups.values():
                self._write(sent=_weighed(messages[names[0]]), to=names)
        except OSError:
            raise Refusal("this site cannot write its journal, and sends nothing") from None

    def refused(self, reason: str, asked: Message | None = None) -> None:
        """Note what was refused, and why; it is refused whether or not that can be written."""
        more = {} if asked is None else {"asked": _of(asked)}
        with suppress(OSError):
            self._write(**more, refused=reason[:_LONGEST])

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note an error inside: what keeps a site from taking part at all."""
        try:
            yield
        except Exception as error:
            self.refused(f"{type(error).__name__}: {error}")
            raise

    def _write(self, **told: Any) -> None:
        now = self.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        names = {"time": now, "run": self.job.run, "terms": self.job.digest, "role": self.role}
        by = {"by": self.job.label_owner or "hub"} if self.role == "party" else {}
        line = json.dumps(names | by | told, ensure_ascii=True).encode() + b"\n"
        if not self.folder.exists():
            make_folder(self.folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self.folder / FILE, flags, 0o600)
        try:
            if _is_cut(descriptor):
                line = b"\n" + line
            if os.write(descriptor, line) != len(line):
                raise OSError("the disk is full")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _is_cut(descriptor: int) -> bool:
    """Whether the last line was cut off, by a process that was killed."""
    if not (size := os.fstat(descriptor).st_size):
        return False
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1) != b"\n"


def _of(message: Message) -> dict[str, Any]:
    return {"kind": message.kind, "round": message.round}


def _weighed(message: Message) -> dict[str, Any]:
    data = message.encode()
    return _of(message) | {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
