"""The terms of a run, given to all sites alike: public numbers and names, no data.

A job file, in TOML:

    run = "heart-1"
    algorithm = "sharing"                 # or "network", "frank-wolfe", "predict", "align"
    parties = ["clinic", "lab"]
    label_owner = "clinic"                # not for "network"
    sizes = [12, 7]                       # columns of each party; a private "frank-wolfe" needs it
    sums = "masked"                       # or "open": whether the coordinator sees the parts
    sum_range = 65536.0                   # no number that a site answers with may be larger
    alignment = "ids-1"                   # the run of "align" that found the samples; else all rows

    [settings]                            # of SharingADMMClassifier, and so on
    loss = "logistic"
    rounds = 20

Sites compare a digest of it before anything else happens.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

from dpsvm.federation.toml_text import parse_toml

Made = TypeVar("Made")

ALGORITHMS = ("sharing", "network", "frank-wolfe", "predict", "align")
SUMS = ("masked", "open")
SUMMING = ("sharing", "predict")  # what needs a sum of the parties' numbers only

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LARGEST_FILE = 1 << 20


@dataclass(frozen=True, eq=False)
class Job:
    """The terms of one run.

    run : a name that no other run of these sites has or had
    parties : their names, in the order in which their columns or nodes count
    label_owner : the site at which the coordinator runs, with the labels; None for "network".
        An alignment finds what its ids have in common with those of the parties
    ids : whether rows are matched by sample ids; False takes them as they lie
    sizes : columns of each party, rows of each node, or ids to align, as all have agreed. The
        noise of private Frank-Wolfe depends on them, and no party should have to believe a
        coordinator there
    sums : "masked", so that the coordinator learns the sum of the parties' numbers and not the
        numbers, or "open"; for algorithms that need a sum only
    sum_range : the largest size of a number in an answer, or that a network or Frank-Wolfe asks
        with; of numbers that are summed under masks the last digit follows from it
    alignment : the run that found the samples which all sites have; they are the rows of this one.
        Whose samples they are is known then: no guarantee may be of "add-remove". Files of sites
        find the rows; a Site that is made in Python brings them

    >>> job = Job("heart-1", "sharing", ("clinic", "lab"), "clinic", {"rounds": 20})
    >>> job.digest == Job("heart-1", "sharing", ("clinic", "lab"), "clinic", {"rounds": 21}).digest
    False
    """

    run: str
    algorithm: str
    parties: tuple[str, ...]
    label_owner: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    ids: bool = True
    sizes: tuple[int, ...] | None = None
    sums: str = "masked"
    sum_range: float = 2.0**16
    alignment: str | None = None

    def __post_init__(self) -> None:
        check_name(self.run, "run")
        if self.algorithm not in ALGORITHMS:
            known = ", ".join(map(repr, ALGORITHMS))
            raise ValueError(f"algorithm must be one of {known}, got {self.algorithm!r}")
        for party in self.parties:
            check_name(party, "a party")
        if not self.parties or len(set(self.parties)) != len(self.parties):
            raise ValueError(f"parties must be different names, got {list(self.parties)!r}")
        sizes, count = self.sizes, len(self.parties)
        whole = isinstance(sizes, tuple) and all(type(one) is int and one >= 1 for one in sizes)
        if sizes is not None and not (whole and len(sizes) == count):
            raise ValueError(f"sizes must be {count} whole numbers from 1 on, got {sizes!r}")
        if type(self.ids) is not bool:
            raise ValueError(f"ids must be true or false, got {self.ids!r}")
        if self.algorithm == "network":
            if self.label_owner is not None:
                raise ValueError("a network has no label_owner: every node has its own labels")
        elif self.label_owner is None:
            raise ValueError(f"algorithm {self.algorithm!r} needs a label_owner, got none")
        else:
            check_name(self.label_owner, "label_owner")
        self._check_alignment()
        if self.sums not in SUMS:
            raise ValueError(f"sums must be one of 'masked', 'open', got {self.sums!r}")
        largest = self.sum_range
        if type(largest) not in (int, float) or not 1e-300 <= largest <= 1e300:
            raise ValueError(f"sum_range must lie between 1e-300 and 1e+300, got {largest!r}")
        object.__setattr__(self, "sum_range", float(largest))  # 1 and 1.0 are the same terms
        if not isinstance(self.settings, Mapping):
            raise ValueError(f"settings must be a table, got {self.settings!r}")
        try:
            self.canonical()
        except (TypeError, ValueError) as error:
            raise ValueError(f"settings must hold plain values: {error}") from None

    def _check_alignment(self) -> None:
        if self.algorithm == "align" and not self.ids:
            raise ValueError("algorithm 'align' matches sample ids: ids cannot be false")
        if self.alignment is None:
            return
        check_name(self.alignment, "alignment")
        if self.algorithm in ("network", "align"):
            raise ValueError(f"algorithm {self.algorithm!r} has no use for an alignment")
        if not self.ids:
            raise ValueError("an alignment matches rows by sample ids: ids cannot be false")

    def canonical(self) -> str:
        """The one text of these terms."""
        return json.dumps(asdict(self), sort_keys=True, allow_nan=False, separators=(",", ":"))

    @property
    def compares_ids(self) -> bool:
        """Whether sites must have the same ids: not where they are to find out which they share."""
        return self.ids and self.algorithm != "align"

    @cached_property
    def digest(self) -> str:
        """Of all of it: what sites compare."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    @property
    def private(self) -> bool:
        """Whether its settings say so; what a run guarantees follows from all of them.

        >>> Job("r", "sharing", ("a",), "a", {"privacy": "row"}).private
        True
        """
        return any(self.settings.get(name) is not None for name in ("privacy", "epsilon"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Job:
        """Read a job file; what is wrong with it is a ValueError that names it."""
        return cls.of(read_toml(path), os.fspath(path))

    @classmethod
    def of(cls, content: Mapping[str, Any], where: str = "job") -> Job:
        """The job of a table.

        >>> Job.of({"run": "heart-1", "parties": ["lab"]})
        Traceback (most recent call last):
        ...
        ValueError: job: 'algorithm' is missing
        """
        with told_where(where):
            check_keys(content, {one.name for one in fields(cls)}, {"run", "algorithm", "parties"})
            parties = content["parties"]
            if not isinstance(parties, list) or not all(isinstance(one, str) for one in parties):
                raise ValueError(f"parties must be a list of names, got {parties!r}")
            sizes = content.get("sizes")
            listed = tuple(sizes) if isinstance(sizes, list) else sizes
            return cls(**{**content, "parties": tuple(parties), "sizes": listed})

    def once(self, key: Any, make: Callable[[], Made]) -> Made:
        """What these terms make, made when it is first asked for: they are public and final.

        >>> job = Job("r", "sharing", ("a", "b"), "a")
        >>> job.once("parts", list) is job.once("parts", list)
        True
        """
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    @cached_property
    def _made(self) -> dict[Any, Any]:
        return {}

    @property
    def masked(self) -> bool:
        """Whether it adds up numbers that the coordinator does not see.

        >>> Job("r", "sharing", ("a",), "a").masked, Job("r", "network", ("a",)).masked
        (True, False)
        """
        return self.sums == "masked" and self.algorithm in SUMMING

    def place(self, party: str) -> int:
        """The number of a party.

        >>> Job("r", "sharing", ("a", "b"), "a").place("c")
        Traceback (most recent call last):
        ...
        ValueError: run r has the parties a, b, and not 'c'
        """
        if party not in self.parties:
            raise ValueError(
                f"run {self.run} has the parties {', '.join(self.parties)}, and not {party!r}"
            )
        return self.parties.index(party)


def check_name(value: Any, what: str) -> str:
    """A name that can stand in a file name on every system.

    >>> check_name("a/b", "run")
    Traceback (most recent call last):
    ...
    ValueError: run must be a name of letters, digits, '.', '_' and '-', got 'a/b'
    """
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(
            f"{what} must be a name of letters, digits, '.', '_' and '-', got {value!r}"
        )
    return value


@contextmanager
def told_where(where: str) -> Iterator[None]:
    """Errors of a file, or of a part of it, name it.

    >>> with told_where("job.toml"):
    ...     check_keys({"rnu": 1}, {"run"}, set())
    Traceback (most recent call last):
    ...
    ValueError: job.toml: unknown key 'rnu'; known are run
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def check_keys(content: Mapping[str, Any], known: set[str], needed: set[str]) -> None:
    """Refuse keys that mean nothing, and say which are missing."""
    for key in content:
        if key not in known:
            raise ValueError(f"unknown key {key!r}; known are {', '.join(sorted(known))}")
    for key in sorted(needed):
        if key not in content:
            raise ValueError(f"{key!r} is missing")


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A TOML file; what is none is a ValueError that names it."""
    with open(path, "rb") as file:
        data = file.read(_LARGEST_FILE + 1)  # and no more: it may be a device without an end
    with told_where(os.fspath(path)):
        if len(data) > _LARGEST_FILE:
            raise ValueError(f"more than {_LARGEST_FILE} bytes are too many for a settings file")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"not TOML: {error}") from None
        return parse_toml(text)
