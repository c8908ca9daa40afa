"""Attacks of coordinators, and of those between, on sums that hide their parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.federation.attack_coordinators import Hostile, Stopped, words_summed
from bench.federation.attack_sites import (
    OPEN,
    OWNER,
    PRIVATE,
    TUTORIAL,
    Figure,
    World,
    close,
    public_terms,
    world,
)
from bench.federation.sites import key_of
from dpsvm.federation import InProcessRunner, Job, Message
from dpsvm.federation.fixed_point import FixedPoint
from dpsvm.federation.secure_sum import Roster, SumKey

Array = NDArray[np.float64]

VICTIM = "lab"
OTHERS = ("clinic", "registry")
NOISE = 0.2
"""A correlation of 569 random numbers with others is above it once in some hundred thousand."""

HONEST = "none, but those that the parties told"

_RHO = 0.1


def _job(run: str, **changes: Any) -> Job:
    return replace(Job(run, "sharing", TUTORIAL, OWNER, OPEN), **changes)


@contextmanager
def _begun(
    sites: World, job: Job, only: Sequence[str] | None = None, roster: Roster | None = None
) -> Iterator[Hostile]:
    parties = sites.parties(job)
    try:
        hostile = Hostile(job, parties)
        hostile.begin(only, None if roster is None else roster.arrays)
        yield hostile
    finally:
        close(parties)


def _price(sites: World, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(len(sites.truth(OWNER)))


def _asked(hostile: Hostile, prices: Mapping[str, Array]) -> dict[str, Message]:
    arrays = {name: {"price": price} for name, price in prices.items()}
    return hostile.ask_each("price", arrays, rho=_RHO, keep=False)


def rosters() -> list[Figure]:
    """Sum keys that are not the parties' own: how many of the two others take them."""
    attack = "a roster with other keys than the parties'"
    ways: Mapping[str, Callable[[World, Job, Roster], tuple[bytes, bytes]]] = {
        "the coordinator's own, signed by its site": _own_key,
        "the coordinator's own, signed in the name of the party by a key of its own": _self_signed,
        "a copy of another party's": lambda sites, job, told: (told.keys[2], told.signatures[2]),
        "the party's own of another run": _of_another_run,
        "a point of small order, unsigned": lambda sites, job, told: (bytes(32), bytes(64)),
    }
    found = []
    for what, forge in {**ways, HONEST: _as_told}.items():
        took, stopped = 0, ""
        with world() as sites:
            job = sites.approve(_job("joint-1"))
            parties = sites.parties(job)
            hostile = Hostile(job, parties)
            told = hostile.roster()
            told.keys[1], told.signatures[1] = forge(sites, job, told)
            for name in OTHERS:
                try:
                    hostile.begin([name], told.arrays)
                    took += 1
                except Stopped as reason:
                    stopped = str(reason)
            close(parties)
        most = None if what == HONEST else 0
        found.append(Figure(attack, f"{what}: parties of 2", took, stopped, most=most))
    return found


def _as_told(sites: World, job: Job, told: Roster) -> tuple[bytes, bytes]:
    return told.keys[1], told.signatures[1]


def _own_key(sites: World, job: Job, told: Roster) -> tuple[bytes, bytes]:
    return _introduced(job, OWNER)


def _self_signed(sites: World, job: Job, told: Roster) -> tuple[bytes, bytes]:
    key = SumKey(bytes([7]) * 32).public
    return key, key_of("stranger").sign("dpsvm sum key", job.digest, VICTIM, key)


def _introduced(job: Job, signer: str) -> tuple[bytes, bytes]:
    told = SumKey(bytes([7]) * 32).introduced(job, key_of(signer))
    return bytes.fromhex(str(told["key"])), bytes.fromhex(str(told["signature"]))


def _of_another_run(sites: World, job: Job, told: Roster) -> tuple[bytes, bytes]:
    other = sites.approve(replace(job, run="joint-0"))
    parties = sites.parties(other)
    found = Hostile(other, parties).roster()
    close(parties)
    return found.keys[1], found.signatures[1]


def different_prices() -> list[Figure]:
    """One party is asked something else, so that its part stands out of the sum."""
    attack = "different prices in one round"
    with world() as sites:
        same, other = _price(sites, 1), _price(sites, 2)
        asked = {OWNER: same, VICTIM: other, "registry": same}
        parts = sites.approve(_job("open-1", sums="open"))
        with _begun(sites, parts) as hostile:
            true = hostile.sum_of(_asked(hostile, asked))
        with _begun(sites, sites.approve(_job("joint-1"))) as hostile:
            told = _correlation(hostile, _asked(hostile, asked), true)
        with _begun(sites, sites.approve(_job("joint-2"))) as hostile:
            control = dict.fromkeys(TUTORIAL, same)
            replies = _asked(hostile, control)
            right = _correlation(hostile, replies, hostile.sum_of(replies))
        reason, named = _stopped_by(sites, sites.approve(_job("joint-3")), _other_price(other))
    return [
        Figure(attack, "correlation of the sum with the true one", told, reason, most=NOISE),
        Figure(attack, "the same, all asked alike", right),
        Figure(attack, "parties that are named", named, reason, most=0),
    ]


def _correlation(hostile: Hostile, replies: Mapping[str, Message], true: Array) -> float:
    """Of words that are added up, as numbers, with the numbers of a sum."""
    words, _ = words_summed(len(true), replies)
    unit = FixedPoint(len(TUTORIAL), hostile.job.sum_range).unit
    numbers = words[: len(true)].view(np.int64) * unit
    return float(abs(np.corrcoef(numbers, true)[0, 1]))


Change = Callable[[str, Message], Message]


class _Between(InProcessRunner):
    """Who carries messages, and changes some."""

    asked: Change | None = None
    told: Change | None = None

    def deliver(self, messages: Mapping[str, Message]) -> dict[str, Message | None]:
        if self.asked is not None:
            messages = {name: self.asked(name, one) for name, one in messages.items()}
        replies = super().deliver(messages)
        if self.told is not None:
            changed = {name: self.told(name, one) for name, one in replies.items() if one}
            return dict(changed)
        return replies


def _other_price(price: Array) -> dict[str, Change]:
    def asked(name: str, message: Message) -> Message:
        if (name, message.kind) != (VICTIM, "price"):
            return message
        return replace(message, arrays={"price": price})

    return {"asked": asked}


def _stopped_by(sites: World, job: Job, changes: Mapping[str, Change]) -> tuple[str, int]:
    """Why an honest coordinator stops, "" if it does not, and how many parties that names."""
    parties, coordinator = sites.parties(job), sites.site(OWNER).coordinator(job)
    runner = _Between(parties)
    vars(runner).update(changes)
    turn = runner.run(coordinator)
    close([*parties, coordinator])
    reason = "" if turn.ended == "done" else str(turn.reason)
    return reason, sum(name in reason for name in TUTORIAL)


def second_questions() -> list[Figure]:
    """Another question for a round that was answered; the same one; and after a new start."""
    attack = "a second question for an answered round"
    other = bytes_differ = 0
    stopped = ""
    with world() as sites:
        job = sites.approve(_job("joint-1"))
        first, second = _price(sites, 1), _price(sites, 2)
        with _begun(sites, job) as hostile:
            answers = [_bytes(_asked(hostile, dict.fromkeys(TUTORIAL, first)))]
        for price, again in ((first, True), (second, False)):
            for _ in range(2):  # by the next process, and by that once more
                parties = sites.parties(job)
                hostile = Hostile(job, parties)
                for _ in range(2):
                    try:
                        found = _bytes(_asked(hostile, dict.fromkeys(TUTORIAL, price)))
                        hostile.again()
                        other += not again
                        bytes_differ += again and found != answers[0]
                    except Stopped as reason:
                        stopped = str(reason)
                        hostile.again()
                        bytes_differ += again
                close(parties)
        rerostered = _begun_again(sites, job)
    return [
        Figure(attack, "of 4 other questions, answered", other, stopped, most=0),
        Figure(attack, "of 4 repeats, answered with other bytes", bytes_differ, most=0),
        Figure(attack, "beginnings anew, in the same run", rerostered, most=0),
    ]


def _bytes(replies: Mapping[str, Message]) -> list[bytes]:
    return [reply.encode() for reply in replies.values()]


def _begun_again(sites: World, job: Job) -> int:
    try:
        with _begun(sites, job):
            return 1
    except Stopped:
        return 0


def replayed() -> list[Figure]:
    """A masked message of another run, as it is or under the name of this one."""
    found = []
    for renamed in (False, True):
        with world() as sites:
            with _begun(sites, sites.approve(_job("joint-0"))) as hostile:
                old = _asked(hostile, dict.fromkeys(TUTORIAL, _price(sites, 1)))[VICTIM]

            def told(
                name: str, reply: Message, old: Message = old, renamed: bool = renamed
            ) -> Message:
                if name != VICTIM or reply.kind != "masked":
                    return reply
                return replace(old, run=reply.run, round=reply.round) if renamed else old

            reason, named = _stopped_by(sites, sites.approve(_job("joint-1")), {"told": told})
        how = "under the name of this one" if renamed else "as it is"
        attack = f"a masked message of another run, {how}"
        found.append(Figure(attack, "runs that went on", int(not reason), reason, most=0))
        if renamed:
            found.append(Figure(attack, "parties that are named", named, reason, most=0))
    return found


def out_of_range(questions: int = 40) -> list[Figure]:
    """A site refuses a number that is out of range: with chosen prices that compares it.

    Of an open run, prices move a number past the end of the range. Of a private one, noise does.
    """
    attack = f"{questions} questions for one round, answers out of range"
    with world() as sites:
        prices = [np.zeros(len(sites.truth(OWNER))) for _ in range(questions)]
        for number, price in enumerate(prices):
            price[0] = -(2.0**40) * 0.9**number
        job = sites.approve(_job("joint-1"))
        decided, stopped = _decided(sites, job, prices, _RHO)
    with world(private=True, budget=20.0, bounds={"data_norm": PRIVATE["data_norm"]}) as sites:
        prices = [_price(sites, seed) for seed in range(questions)]
        terms = Job("private-1", "sharing", TUTORIAL, OWNER, PRIVATE, sum_range=30.0)
        noisy, why = _decided(sites, sites.approve(terms), prices, PRIVATE["rho"])
    what = "that the data of lab decided"
    return [
        Figure(attack, f"{what}, an open run", decided, stopped, most=1),
        Figure(attack, f"{what}, a private run", noisy, why, most=1),
    ]


def _decided(sites: World, job: Job, prices: Sequence[Array], rho: float) -> tuple[int, str]:
    """How many questions for round 1 were answered, or refused for the numbers of the answer."""
    decided, stopped = 0, ""
    with _begun(sites, job) as hostile:
        hostile.parties = {VICTIM: hostile.parties[VICTIM]}
        for price in prices:
            try:
                hostile.ask("price", {"price": price}, rho=rho, keep=False)
                decided += 1
            except Stopped as reason:
                stopped = str(reason)
                decided += "is not finite or above" in stopped
            hostile.again()
    return decided, stopped


def alone() -> list[Figure]:
    """A sum of one party's numbers, which is what colluding others make of every sum."""
    with world() as sites:
        price = _price(sites, 1)
        found = []
        for run, sums in (("open-1", "open"), ("joint-1", "masked")):
            job = sites.approve(_job(run, parties=(VICTIM,), sums=sums))
            with _begun(sites, job) as hostile:
                found.append(hostile.sum_of(_asked(hostile, {VICTIM: price})))
    told = int(np.sum(np.abs(found[0] - found[1]) <= 1e-9))
    what = f"numbers of {len(price)} of its part"
    return [Figure("a party that is alone, or whose others collude", what, told)]


def without_one() -> list[Figure]:
    """Two runs that were approved, and one lacks a party: what their first sums differ by.

    A step depends on the number of parties times rho, which the coordinator keeps the same.
    """
    resistance = _RHO * len(TUTORIAL)
    with world() as sites:
        price, found = _price(sites, 1), []
        runs = (("joint-1", TUTORIAL, "masked"), ("joint-2", OTHERS, "masked"))
        for run, names, sums in (*runs, ("open-1", (VICTIM,), "open")):
            job = sites.approve(_job(run, parties=names, sums=sums))
            (share, first), rho = public_terms(sites, job), resistance / len(names)
            with _begun(sites, job) as hostile:
                replies = hostile.ask("price", {"price": price}, rho=rho, keep=False)
                found.append(hostile.sum_of(replies) + (1.0 - share) * price / (first + rho))
    told = int(np.sum(np.abs(found[0] - found[1] - found[2]) <= 1e-6))
    attack = "two runs that were approved, one of them without a party"
    return [Figure(attack, f"numbers of {len(price)} of its part", told)]


def liars() -> list[Figure]:
    """A party adds what it likes: it spoils the sum, which is said, and reads nothing."""
    shift = 3.0

    def told(name: str, reply: Message) -> Message:
        if name != "registry" or reply.kind != "masked":
            return reply
        words = reply.arrays["words"].copy()
        unit = FixedPoint(len(TUTORIAL), _job("joint-1").sum_range).unit
        words[0] += np.int64(shift / unit)
        return replace(reply, arrays={"words": words})

    with world() as sites:
        reason, _ = _stopped_by(sites, sites.approve(_job("joint-1")), {"told": told})
    attack = "a party adds 3 to its first masked number"
    return [Figure(attack, "runs that ended, and nobody saw it", int(not reason), reason)]
