"""How numbers that are only added up travel: masked, or open where the terms of a run say so.

Members make a :class:`~dpsvm.federation.fixed_point.Sum`, and leads take one; what is on the way
between them is here. Both ways a number that is not finite or is out of its range is never sent:
its own site refuses. In the open the coordinator looks again, and names who has sent one. Of masked
words it sees the sum only, and a sum that is out of range names nobody. In a private run the
numbers are those that noise was added to, and that one of them was refused tells no more than they:
a party that is paid for refuses once, and then answers nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpsvm.federation.fixed_point import FixedPoint, Sum
from dpsvm.federation.job import Job
from dpsvm.federation.limits import OutOfRange
from dpsvm.federation.members import Content
from dpsvm.federation.messages import Array, Message, Scalar
from dpsvm.federation.secure_sum import Masks, Roster, SumKey
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.store import Store

_UNKNOWN: Mapping[str, Scalar] = {"key": "", "signature": ""}


class PartySums:
    """A party's side.

    >>> from dpsvm.federation.store import MemoryStore
    >>> job = Job("r", "sharing", ("lab",), "lab", sums="open", sum_range=2.0)
    >>> sums = PartySums(job, Site("lab"), MemoryStore())
    >>> sums.content(Sum(np.array([0.5])), 1, "").kind
    'contribution'
    >>> sums.content(Sum(np.array([2.5])), 1, "")
    Traceback (most recent call last):
    ...
    dpsvm.federation.limits.OutOfRange: a number of lab is not finite or above sum_range = 2
    """

    def __init__(self, job: Job, site: Site, store: Store) -> None:
        self.job, self.site, self.store = job, site, store
        self._fixed = FixedPoint(len(job.parties), job.sum_range)
        self._key: SumKey | None = None
        self._masks: Masks | None = None

    def introduction(self, *, begun: bool) -> Mapping[str, Scalar]:
        """What a hello tells of it: the sum key of the run, signed."""
        if not self.job.masked:
            return _UNKNOWN
        if self.site.identity is None:
            raise Refusal(
                f"{self.site.name} has no signing key, which sums that hide their parts need: "
                "dpsvm federation keys makes one, and in one process "
                'dpsvm.federation.keys.introduce; sums = "open" shows the coordinator every part'
            )
        return self._sum_key(begun=begun).introduced(self.job, self.site.identity)

    def checked(self, arrays: Mapping[str, Array], *, begun: bool) -> dict[str, Array]:
        """The roster that a coordinator passes on, whose keys are this run's; {} without one."""
        if not self.job.masked:
            if "keys" in arrays or "signatures" in arrays:
                raise Refusal(f"run {self.job.run} hides no parts of a sum, and has no sum keys")
            return {}
        roster = Roster.of_arrays(self.job, arrays)
        roster.verify(self.site.name, self.site.known)
        own, place = self._sum_key(begun=begun), self.job.place(self.site.name)
        if roster.keys[place] != own.public:
            raise Refusal(f"the sum key of {self.site.name} is another than the one passed on")
        Masks(place, own, roster).agree()
        return roster.arrays

    def use(self, roster: Mapping[str, Array]) -> None:
        """Take a roster that was checked, for all rounds of a run that has begun."""
        self._masks = None
        if roster:
            place = self.job.place(self.site.name)
            self._masks = Masks(
                place, self._sum_key(begun=True), Roster.of_arrays(self.job, roster)
            )

    def content(self, part: Sum, number: int, question: str) -> Content:
        """The answer of a round; question : digest of all that the parties were asked so far."""
        if not part.fits(self.job.sum_range):
            raise OutOfRange(
                f"a number of {self.site.name} is not finite or above sum_range = "
                f"{self.job.sum_range:g}"
            )
        wide = part.squares is not None
        if not self.job.masked:
            more: dict[str, Scalar] = {"squares": part.squares} if wide else {}
            return Content("contribution", {"prediction": part.values}, more)
        assert self._masks is not None
        words = self._masks.hide(self._fixed.encode(part), number, question, wide=wide)
        return Content("masked", {"words": words.view(np.int64)})

    def _sum_key(self, *, begun: bool) -> SumKey:
        if self._key is None:
            self._key = SumKey.of(self.store.key(begun=begun))
        return self._key


class CoordinatorSums:
    """The coordinator's side.

    >>> job = Job("r", "sharing", ("a", "b"), "a", sums="open")
    >>> replies = [Message("r", 1, "contribution", {"prediction": np.array([x])}) for x in (1., 2.)]
    >>> CoordinatorSums(job, Site("a")).total(replies, 1, wide=False).values
    array([3.])
    """

    def __init__(self, job: Job, site: Site) -> None:
        self.job, self.site = job, site
        self._fixed = FixedPoint(len(job.parties), job.sum_range)

    def roster(self, hellos: Sequence[Message]) -> dict[str, Array]:
        """The keys that the parties told, verified; {} where nothing is masked."""
        if not self.job.masked:
            return {}
        roster = Roster.of_hellos(self.job, list(hellos))
        roster.verify(self.site.name, self.site.known)
        return roster.arrays

    def require(self, roster: Mapping[str, Array], hellos: Sequence[Message]) -> None:
        """Refuse to go on with parties that have other sum keys than the run began with."""
        told = self.roster(hellos)
        for place, party in enumerate(self.job.parties if roster else ()):
            if not np.array_equal(told["keys"][place], roster["keys"][place]):
                raise Refusal(f"{party} has another sum key than run {self.job.run} began with")

    def total(self, replies: Sequence[Message], count: int, *, wide: bool) -> Sum:
        """The sum of so many numbers of each party, and of squares if they are summed too."""
        kind = "masked" if self.job.masked else "contribution"
        for party, reply in zip(self.job.parties, replies, strict=True):
            if reply.kind != kind:
                raise Refusal(f"{kind} numbers of {party} are awaited, got a {reply.kind}")
        arrays = [array for reply in replies for array in reply.arrays.values()]
        length = self._fixed.length(count, wide=wide) if self.job.masked else count
        for party, array in zip(self.job.parties, arrays, strict=True):
            if len(array) != length:
                raise Refusal(f"{party} sent {len(array)} numbers where {length} are added up")
        if not self.job.masked:
            squares = [_number(reply.scalars.get("squares")) for reply in replies]
            return self._of_parts(
                [Sum(*one) for one in zip(arrays, squares, strict=True)], wide=wide
            )
        return self._of_words(arrays, wide=wide)

    def _of_words(self, arrays: Sequence[Array], *, wide: bool) -> Sum:
        words = np.zeros(len(arrays[0]), dtype=np.uint64)
        for array in arrays:
            words = self._fixed.added(words, array.view(np.uint64), wide=wide)
        return self._fixed.decode(words, wide=wide)

    def _of_parts(self, parts: Sequence[Sum], *, wide: bool) -> Sum:
        for party, part in zip(self.job.parties, parts, strict=True):
            if wide != (part.squares is not None) or not part.fits(self.job.sum_range):
                raise Refusal(
                    f"{party} sent a number that is not finite or above sum_range = "
                    f"{self.job.sum_range:g}"
                )
        squares = sum((part.squares or 0.0 for part in parts), 0.0)
        values = np.add.reduce([part.values for part in parts])
        return Sum(values, squares if wide else None)


def _number(value: Scalar) -> float | None:
    return None if value is None else float(value)
