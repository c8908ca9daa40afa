"""What a job asks of a site, in plain words, before the site agrees to it.

It reads the job and the file of the site. Of the data it reads the line of names at most: how many
columns there are, and nothing of what is in them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpsvm._streams import open_text
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.consent import WITHOUT_DATA, others_of
from dpsvm.federation.facts import (
    COVERED,
    INFERRED,
    MEANING,
    PASSED_ON,
    RAW_COLUMNS,
    SIGNED,
    SKETCHES,
    UNSIGNED,
)
from dpsvm.federation.job import SUMMING, Job
from dpsvm.federation.members import Shape, settings_of_job
from dpsvm.federation.messages import FIELDS
from dpsvm.federation.noise_told import agreed_quietly, noise_told
from dpsvm.federation.site import Refusal
from dpsvm.federation.tables import Source

_LONGEST = 1 << 20  # characters of a line of names

Told = tuple[str, str]
"""What it is about, and what is to be known."""

_ANSWERS = {
    "sharing": "contribution",
    "network": "iterate",
    "frank-wolfe": "proposal",
    "predict": "contribution",
    "align": "matched",
}
_ASKS = {
    "sharing": "price",
    "network": "neighbours",
    "frank-wolfe": "query",
    "predict": "ask",
    "align": "match",
}


@dataclass(frozen=True)
class Review:
    """A job as a site sees it.

    rows, columns : how many the site has, None where that is not known

    >>> job = Job("heart-1", "sharing", ("lab", "ward"), "lab", {"rounds": 20})
    >>> from pathlib import Path
    >>> review = Review(job, SiteConfig(name="ward", state=Path("state")))
    >>> dict(review.lines())["to whom"]
    'the coordinator, at lab, and nobody else; whoever runs the engine between them may count bytes'
    """

    job: Job
    site: SiteConfig
    rows: int | None = None
    columns: int | None = None

    @classmethod
    def of(
        cls, job: Job, site: SiteConfig, rows: int | None = None, columns: int | None = None
    ) -> Review:
        """The review of a job by one of its sites; settings that cannot be run are refused."""
        if job.algorithm != "network" and site.name not in (*job.parties, job.label_owner):
            raise Refusal(f"{site.name} is neither a party of run {job.run} nor its label owner")
        if job.algorithm != "predict":
            settings_of_job(job)
        source = site.predict if job.algorithm == "predict" else site.source
        return cls(job, site, rows, width_of(source) if columns is None else columns)

    @property
    def takes_part(self) -> bool:
        """Whether the site is a party."""
        return self.site.name in self.job.parties

    @property
    def coordinates(self) -> bool:
        """Whether the coordinator runs there; a network's may run at any site that is no node."""
        if self.job.algorithm == "network":
            return not self.takes_part
        return self.site.name == self.job.label_owner

    @property
    def of_ids(self) -> bool:
        """Whether it looks at sample ids alone."""
        return self.job.algorithm == WITHOUT_DATA

    @property
    def private(self) -> bool:
        """Whether the run has a guarantee."""
        return self.job.private and self.job.algorithm != "predict" and not self.of_ids

    @property
    def epsilon(self) -> float | None:
        """What the run costs in one role of the site; None of one that is not private."""
        if not self.private:
            return None
        if (found := self._agreed()) is not None and found.price is not None:
            return float(found.price.guarantee.epsilon)
        said = self.job.settings.get("epsilon")
        if isinstance(said, bool) or not isinstance(said, (int, float)):
            raise Refusal("what this run costs depends on sizes: --rows and --columns tell them")
        return float(said)

    def lines(self) -> Iterator[Told]:
        """All of it."""
        job, name = self.job, self.site.name
        yield "run", f"{job.run}, {job.algorithm}, of {', '.join(job.parties)}"
        yield "terms", job.digest
        yield "settings", json.dumps(dict(job.settings), ensure_ascii=True)
        roles = ["a party"] * self.takes_part + ["the coordinator"] * self.coordinates
        yield "this site", f"{name}, as {' and '.join(roles)}"
        yield from self._leaving()
        yield from self._guaranteed()
        yield from self._inferred()

    def _leaving(self) -> Iterator[Told]:
        rounds = 1 if self.job.algorithm == "predict" else int(settings_of_job(self.job).rounds)
        yield "to whom", self._receiver()
        yield "who is who", SIGNED if self.job.masked else UNSIGNED
        if self.takes_part:
            yield "leaves once", _of("hello")
            yield "passed on", PASSED_ON
            yield "leaves each round", f"{_of(self._answer())}; {self._masks()}"
            if self.of_ids:
                yield "", f"and last {_of('aligned')}"
            yield "how often", f"in at most {rounds} rounds{self._amount(rounds)}"
            yield "leaves besides", "; ".join(map(_of, ("ready", "ended", "stopped", "refusal")))
        if self.coordinates:
            yield "sent once", f"as the coordinator: {_of('begin')}"
            asks = ("match", "common") if self.of_ids else (_ASKS[self.job.algorithm],)
            told = "; then ".join(map(_of, asks))
            yield "sent as coordinator", told if self.of_ids else f"{told}; in each round"
            yield "sent besides", "; ".join(map(_of, ("greet", "rehearse", "end", "stop")))

    def _answer(self) -> str:
        """The kind of what it answers with."""
        return "masked" if self.job.masked else _ANSWERS[self.job.algorithm]

    def _receiver(self) -> str:
        if self.job.algorithm == "network":
            return (
                "its neighbours in the network; and the hub, which relays between all nodes, sees "
                "all that any of them sends"
            )
        if not self.takes_part:
            return f"all parties: {', '.join(self.job.parties)}"
        told = f"the coordinator, at {self.job.label_owner}, and nobody else"
        if self.coordinates:
            told += f"; as the coordinator, all parties: {', '.join(self.job.parties)}"
        return f"{told}; whoever runs the engine between them may count bytes"

    def _masks(self) -> str:
        if self.of_ids:
            return "no id leaves, and no hash of one that guesses could be tried against"
        if self.job.algorithm not in SUMMING:
            return "the coordinator sees what each party sends"
        if self.job.sums == "open":
            return "the coordinator sees the numbers of each party"
        return "masked, so that the coordinator learns the sum over the parties and no part of it"

    def _amount(self, rounds: int) -> str:
        if self.job.algorithm in SUMMING:
            if self.rows is None:
                return ": a number for each row in each"
            told = f": {self.rows} numbers in each, {self.rows * rounds} in all"
            squares = "; and in each the sum of their squares, in the same way"
            return told + squares * (self.job.algorithm == "sharing")
        if self.job.algorithm == "network" and self.columns is not None:
            return f": a number for each of {self.columns} columns in each"
        return ""

    def _guaranteed(self) -> Iterator[Told]:
        if not self.private:
            told = "looks at sample ids alone" if self.of_ids else "is not private"
            yield "guarantee", f"none: this run {told}, and adds no noise"
            return
        agreed = self._agreed()
        guarantee = None if agreed is None or agreed.price is None else agreed.price.guarantee
        yield "guarantee", (f"epsilon = {self.epsilon:g}" if guarantee is None else str(guarantee))
        if agreed is None:
            sizes = "depends on sizes that are not known: --rows and --columns tell them"
            yield "expected noise", sizes
        else:
            yield from noise_told(self.job, agreed)
        bounds = ", ".join(f"{name} = {value:g}" for name, value in self.site.bounds.items())
        yield (
            "bounds",
            (
                f"{bounds or 'this site has none'}; rows beyond the public bounds of the job are "
                "clipped to them, which changes the model"
            ),
        )

    def _inferred(self) -> Iterator[Told]:
        label = "what can be inferred"
        if self.private:
            yield label, COVERED
            yield from self._of_labels()
            return
        yield label, self._open_words()
        if self.job.algorithm in SUMMING:
            yield "", self._parts_words()
        yield from self._of_labels()

    def _open_words(self) -> str:
        if self.job.algorithm == "frank-wolfe":
            return SKETCHES if settings_of_job(self.job).sketch is not None else RAW_COLUMNS
        return INFERRED[self.job.algorithm]

    def _parts_words(self) -> str:
        others = others_of(self.job, self.site.name)
        if self.job.sums == "open":
            return "sums are open: it also learns whose columns are whose"
        alone = len(set(self.job.parties) - {self.job.label_owner}) < 2
        if self.takes_part and not self.coordinates and alone:
            return (
                "masks hide nothing here: the coordinator is the only other party, and its own "
                "part is all that is between the sum and yours"
            )
        return (
            "masked sums change only that nobody sees whose columns are whose; and nothing is "
            f"hidden if all others ({', '.join(others)}) act together, or in another run without "
            "this site, whose sums are less by its part"
        )

    def _of_labels(self) -> Iterator[Told]:
        if not self.coordinates or self.job.algorithm in ("network", "predict", WITHOUT_DATA):
            return
        agreed = self._agreed() if self.private else None
        if agreed is not None and agreed.lead_price is not None:
            yield "your labels", "are covered by the guarantee, as noise is added to them once"
            return
        kind = _ASKS[self.job.algorithm]
        yield "your labels", f"every party learns them: the {kind} of each round tells each label"

    def _agreed(self) -> Any:
        """What the sites would agree on, if all of them were like this one; None if unknown."""
        count = len(self.job.parties)
        rows, columns = self.rows, self.columns
        if self.job.algorithm == "network":
            sizes = self.job.sizes or (None if rows is None else (rows,) * count)
            shape = None if sizes is None else Shape(0, sizes, columns or 1)
        else:
            needs = self.job.algorithm == "frank-wolfe" and rows is None
            sizes = self.job.sizes or (columns or 1,) * count
            shape = None if needs else Shape(rows or 1, sizes)
        if shape is None:
            return None
        return agreed_quietly(self.job, shape)


def width_of(source: Source | None) -> int | None:
    """How many columns a table has, from what names them; None if only its values would tell."""
    if source is None:
        return None
    if not source.is_csv:
        if source.columns is None:
            return source.n_features
        return sum(int(last) - int(first) + 1 for first, last in source.columns)
    if source.columns is not None:
        return len(source.columns)
    try:
        with open_text(source.file) as file:
            text = file.readline(_LONGEST).decode("utf-8-sig", errors="replace")
        names = next(csv.reader([text]), [])
    except (OSError, csv.Error):  # whoever reviews may not have the data at all
        return None
    return sum(name not in (source.id, source.label) for name in names)


def _of(kind: str) -> str:
    """What a kind of message tells, with the names of all that it holds."""
    return f"{MEANING[kind]} ({kind}: {', '.join(FIELDS[kind]) or 'nothing else'})"
