"""The rows and columns of a run: what the sites tell of them, and what has to fit."""

from __future__ import annotations

from collections.abc import Sequence

from dpsvm.federation.job import Job
from dpsvm.federation.members import Shape
from dpsvm.federation.messages import VERSION, Message
from dpsvm.federation.site import Refusal, Site

_LARGEST = 2**31


def require_terms(job: Job, site: Site, greeting: Message) -> None:
    """Refuse a coordinator with another version of the protocol, or with other terms."""
    version = greeting.whole("version")
    if version != VERSION:
        raise Refusal(
            f"{site.name} speaks version {VERSION} of the protocol, the coordinator version "
            f"{version}"
        )
    if greeting.text("job") != job.digest:
        raise Refusal(f"{site.name} was given other terms for run {job.run} than the coordinator")


def shape_told(job: Job, site: Site, opening: Message) -> Shape:
    """The shape that a party is told, if it fits to the job and to the party.

    >>> import numpy as np
    >>> job = Job("r", "sharing", ("a",), "a", ids=False)
    >>> opening = Message("r", 0, "begin", {"sizes": np.array([2])}, {"rows": 5})
    >>> shape_told(job, Site("a", np.ones((4, 2))), opening)
    Traceback (most recent call last):
    ...
    dpsvm.federation.site.Refusal: a has 4 rows and 2 columns, and the coordinator thinks otherwise
    """
    sizes = tuple(int(size) for size in opening.arrays["sizes"])
    if len(sizes) != len(job.parties) or min(sizes) < 1:
        raise Refusal(f"{len(job.parties)} sizes from 1 on are needed, got {sizes}")
    if job.sizes not in (None, sizes):
        raise Refusal(f"the sizes of the parties were agreed to be {job.sizes}")
    rows, network = opening.whole("rows"), job.algorithm == "network"
    own = (0, site.rows) if network else (site.rows, site.columns)
    if job.algorithm == "align":
        own = (rows, site.rows)  # the label owner has others
    if (rows, sizes[job.place(site.name)]) != own:
        raise Refusal(
            f"{site.name} has {site.rows} rows and {site.columns} columns, and the coordinator "
            "thinks otherwise"
        )
    return Shape(rows, sizes, site.columns if network else 0)


def agreed_shape(job: Job, owner: Site, hellos: Sequence[Message]) -> Shape:
    """What the parties have in common with the coordinator, or a refusal that says what not."""
    for party, hello in zip(job.parties, hellos, strict=True):
        if hello.kind != "hello" or hello.text("party") != party:
            raise Refusal(f"{party} did not say hello in its own name")
        if hello.whole("version") != VERSION or hello.text("job") != job.digest:
            raise Refusal(f"{party} has another version of the protocol, or other terms")
    network, aligns = (job.algorithm == one for one in ("network", "align"))
    counts = [hello.whole("rows") for hello in hellos]
    columns = counts if aligns else [hello.whole("columns") for hello in hellos]
    for party, sizes in zip(job.parties, zip(counts, columns, strict=True), strict=True):
        if not all(1 <= size <= _LARGEST for size in sizes):
            raise Refusal(f"{party} says that it has {sizes[0]} rows, {sizes[1]} columns")
    agreed = tuple(counts if network else columns)
    if job.sizes not in (None, agreed):
        raise Refusal(f"sizes of {job.sizes} were agreed, the parties have {agreed}")
    if network:
        if len(set(columns)) > 1:
            raise Refusal(f"the nodes must have the same columns, got {columns} of them")
        return Shape(0, tuple(counts), columns[0])
    if not aligns:
        _require_same_samples(job, owner, hellos)
    return Shape(owner.rows, agreed)


def _require_same_samples(job: Job, owner: Site, hellos: Sequence[Message]) -> None:
    for party, hello in zip(job.parties, hellos, strict=True):
        if (count := hello.whole("rows")) != owner.rows:
            advice = ": an alignment finds those that all sites have" if job.ids else ""
            told = f"{owner.name} has {owner.rows} rows, {party} has {count}"
            raise Refusal(f"{told}{advice}")
    if not job.ids:
        return
    own = owner.digest()
    if not own:
        raise Refusal(f"{owner.name} has no sample ids, which this job matches rows by")
    for party, hello in zip(job.parties, hellos, strict=True):
        if hello.text("ids") != own:
            raise Refusal(
                f"the sample ids of {party} are not those of {owner.name}, in number, order or "
                "salt: rows would be mixed up"
            )
