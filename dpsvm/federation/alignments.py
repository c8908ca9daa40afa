"""The file of an alignment at a site: the ids of the samples that all sites have.

    dpsvm federation alignment, version 1
    {"job": DIGEST OF THE TERMS, "of": "data", "run": NAME, "samples": COUNT}
    "p001"
    ...
    sha256 DIGEST OF ALL BEFORE

An id a line, as a JSON string, so that an id may hold anything, in the order of the texts. It names
people: only its owner may read it, and it stays at the site.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dpsvm._streams import atomic_write, sync_folder
from dpsvm.federation.job import Job, check_name
from dpsvm.federation.site import Refusal
from dpsvm.federation.store import StoreError
from dpsvm.federation.tables import Counted, Table

Rows = TypeVar("Rows")

FOLDER = "alignments"
"""In the state folder of a site."""

_FORMAT = "dpsvm federation alignment, version 1"


@dataclass(frozen=True)
class Alignment:
    """The samples that a run has found at all sites.

    job : digest of the terms of that run
    of : "data", or "predict" of samples to predict

    >>> found = Alignment("ids-1", "0" * 64, "data", ("p1", 'p"2'))
    >>> Alignment.parse(found.text()) == found
    True
    """

    run: str
    job: str
    of: str
    ids: tuple[str, ...]

    def text(self) -> str:
        """What its file holds."""
        head = {"run": self.run, "job": self.job, "of": self.of, "samples": len(self.ids)}
        lines = [_FORMAT, _json(head), *map(_json, self.ids)]
        text = "\n".join(lines) + "\n"
        return f"{text}sha256 {_digest(text)}\n"

    @classmethod
    def parse(cls, text: str, path: Path | None = None) -> Alignment:
        """The alignment of a file's text; what is none is a StoreError that names the file."""
        body, _, last = text.removesuffix("\n").rpartition("\n")
        body += "\n"
        if not body.startswith(f"{_FORMAT}\n") or last != f"sha256 {_digest(body)}":
            raise StoreError("this is no alignment, or not all of one", path)
        _, head, *lines = body.removesuffix("\n").split("\n")
        try:
            told, ids = json.loads(head), tuple(map(json.loads, lines))
            found = cls(told["run"], told["job"], told["of"], ids)
        except (ValueError, KeyError, TypeError, RecursionError):
            found = None
        if found is None or found.text() != text:
            raise StoreError("this is no alignment, or not all of one", path)
        return found

    def save(self, folder: Path) -> None:
        """Keep it in a folder, where nothing but itself is replaced."""
        self.check_place(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(folder.parent)
        with atomic_write(folder / self.run, permissions=0o600) as file:
            file.write(self.text())

    def check_place(self, folder: Path) -> None:
        """Refuse to take the place of an alignment of other terms."""
        path = folder / check_name(self.run, "run")
        if path.is_file() and Alignment.parse(_read(path), path).job != self.job:
            raise StoreError(f"alignment {self.run} is there, of a run with other terms", path)

    @classmethod
    def load(cls, folder: Path, run: str, site: str) -> Alignment:
        """What a site keeps of a run; one that is not there is a Refusal."""
        path = folder / check_name(run, "alignment")
        if not path.is_file():
            raise Refusal(f"{site} has no alignment {run}: a run of that name has to find it")
        found = cls.parse(_read(path), path)
        if found.run != run:
            raise StoreError(f"this is the alignment of run {found.run}, not of {run}", path)
        return found


def aligned(table: Table, job: Job, folder: Path, site: str) -> Table:
    """The rows that all sites have, of a job that names an alignment; else all rows.

    >>> import numpy as np
    >>> table, job = Table(np.eye(2), ("a", "b")), Job("r", "sharing", ("lab",), "lab")
    >>> aligned(table, job, Path("alignments"), "lab") is table
    True
    """
    if job.alignment is None:
        return table
    return _chosen(table.chosen, job, folder, site)


def aligned_count(counted: Counted, job: Job, folder: Path, site: str) -> Counted:
    """The same of what is known of a table that was not read.

    >>> counted, job = Counted(2, ids=("a", "b")), Job("r", "sharing", ("lab",), "lab")
    >>> aligned_count(counted, job, Path("alignments"), "lab") is counted
    True
    """
    if job.alignment is None:
        return counted
    return _chosen(counted.chosen, job, folder, site)


def _chosen(choose: Callable[[Sequence[str]], Rows], job: Job, folder: Path, site: str) -> Rows:
    assert job.alignment is not None
    found = Alignment.load(folder, job.alignment, site)
    wanted = "predict" if job.algorithm == "predict" else "data"
    if found.of != wanted:
        raise Refusal(
            f"alignment {found.run} is of [{found.of}] samples, and run {job.run} has those of "
            f"[{wanted}]"
        )
    try:
        return choose(found.ids)
    except KeyError:
        raise Refusal(
            f"{site} has not all samples of alignment {found.run} any more: align again"
        ) from None


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise StoreError("this is no alignment, or not all of one", path) from None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
