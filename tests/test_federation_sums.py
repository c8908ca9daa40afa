"""Sums that hide their parts: what a coordinator sees of them, and what it can do with that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federation_problems import KEYS, NAMES, World, opening, roster_of, site_of

from dpsvm.federation import InProcessRunner, Job, MemoryStore, Message, Party, Refusal, Site
from dpsvm.federation import secure_sum as secure_sum_module
from dpsvm.federation.coordinator import Coordinator
from dpsvm.federation.fixed_point import FixedPoint, Sum, Words
from dpsvm.federation.keys import SigningKey, introduce
from dpsvm.federation.prediction import digest_of_weights
from dpsvm.federation.secure_sum import Masks, Roster, SumKey
from dpsvm.federation.sharing import SharingMember
from dpsvm.federation.sums import CoordinatorSums

NOBODY = (
    "the parties' masked numbers do not add up to a sum within its range: they were asked "
    "different things, or one of them sent something else. Who is not known"
)
PRICE: dict[str, Any] = {"rho": 0.25, "keep": False}


@dataclass
class Run:
    """Runs of some parties that differ in nothing but what a test changes."""

    count: int
    rounds: int = 3
    sums: str = "masked"
    rows: int = 12
    more: Mapping[str, Any] = field(default_factory=dict)
    name: str = "r"

    def __post_init__(self) -> None:
        self.names = tuple(f"site{place}" for place in range(self.count))
        settings = {"rounds": self.rounds, "adaptive_rho": True}
        self.job = Job(
            self.name,
            "sharing",
            self.names,
            "site0",
            settings,
            ids=False,
            sums=self.sums,
            **self.more,
        )
        random = np.random.default_rng(3)
        tables = random.uniform(-1.0, 1.0, (self.count, self.rows, 2))
        labels = np.where(random.random(self.rows) < 0.5, -1, 1)
        sites = [Site(name, table) for name, table in zip(self.names, tables, strict=True)]
        *self.sites, self.owner = introduce([*sites, Site("site0", labels=labels)])

    def make(self) -> tuple[list[Party], Coordinator]:
        """All sites, as they were made first."""
        stores = [MemoryStore(bytes([place + 1]) * 32) for place in range(self.count)]
        parties = [Party(self.job, *one) for one in zip(self.sites, stores, strict=True)]
        return parties, Coordinator(self.job, self.owner, MemoryStore(bytes(32)))


Change = Callable[[str, Message], Message]


class Watched(InProcessRunner):
    """Keeps all that the coordinator sends and gets, its whole view; may change what it moves."""

    def __init__(
        self,
        parties: list[Party],
        asked: Change = lambda name, message: message,
        answered: Change = lambda name, message: message,
    ) -> None:
        super().__init__(parties)
        self.view: list[tuple[str, bytes, bytes]] = []
        self._asked, self._answered = asked, answered

    def deliver(self, messages: Mapping[str, Message]) -> dict[str, Message | None]:
        """The answers."""
        changed = {name: self._asked(name, message) for name, message in messages.items()}
        found: dict[str, Message | None] = {}
        for name, answer in super().deliver(changed).items():
            assert answer is not None
            found[name] = self._answered(name, answer)
            self.view.append((name, messages[name].encode(), answer.encode()))
        return found


# --- the coordinator's whole view


class Parts(FixedPoint):
    """Keeps the words of a party's parts, or puts others in their place."""

    def __init__(self, job: Job, given: Sequence[Words] = ()) -> None:
        super().__init__(len(job.parties), job.sum_range)
        self.given, self.seen = given, list[Words]()

    def encode(self, part: Sum) -> Words:
        words = super().encode(part) if not self.given else self.given[len(self.seen)]
        self.seen.append(words.copy())
        return words.copy()


def other_parts(parts: Sequence[Words], fixed: FixedPoint, random: Any) -> list[Words]:
    """Arbitrary parts with the same sum, of numbers that are all in their range."""
    size = fixed.largest / len(parts) / 4
    count = len(parts[0]) - fixed.length(0, wide=True)
    total = fixed.decode(added(parts), wide=True)
    assert total.squares is not None
    found, left = [], added(parts)
    for _ in parts[1:]:
        values = random.uniform(-size, size, count)
        squares = float(random.uniform(0.0, total.squares / len(parts)))
        found.append(fixed.encode(Sum(values, squares)))
        left = fixed.subtracted(left, found[-1], wide=True)
    found.append(left)
    for one in found:
        assert fixed.decode(one, wide=True).fits(fixed.largest)
    return found


def added(parts: Sequence[Words]) -> Words:
    total = np.zeros_like(parts[0])
    for part in parts:
        total = FixedPoint.added(total, part, wide=True)
    return total


def shifts_of(parts: Sequence[Words], others: Sequence[Words]) -> list[Words]:
    """By how much the mask of each party with the next one has to move."""
    found, moved = [], np.zeros_like(parts[0])
    for part, other in zip(parts, others, strict=True):
        moved = FixedPoint.added(moved, part, wide=True)
        moved = FixedPoint.subtracted(moved, other, wide=True)
        found.append(moved.copy())
    assert not found.pop().any()
    return found


def test_arbitrary_parts_with_the_same_sums_give_the_coordinator_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, random = Run(5, rounds=4), np.random.default_rng(11)
    parties, coordinator = run.make()
    for party in parties:
        party.sums._fixed = Parts(run.job)
    first = Watched(parties)
    assert first.run(coordinator).ended == "done"
    seen = [party.sums._fixed.seen for party in parties]  # type: ignore[attr-defined]
    rounds = [list(parts) for parts in zip(*seen, strict=True)]
    assert len(rounds) == 4

    others = [other_parts(parts, FixedPoint(5, run.job.sum_range), random) for parts in rounds]
    for parts, changed in zip(rounds, others, strict=True):
        for own, other in zip(parts, changed, strict=True):
            assert np.mean(own != other) > 0.9
    shifts = [shifts_of(*pair) for pair in zip(rounds, others, strict=True)]
    shared = Masks.shared

    def shifted(self: Masks, other: int, number: int, question: str, count: int) -> Words:
        words = shared(self, other, number, question, count).copy()
        low, high = sorted((self.place, other))
        if high == low + 1:
            words = FixedPoint.added(words, shifts[number - 1][low], wide=True)
        return words

    monkeypatch.setattr(Masks, "shared", shifted)
    parties, coordinator = run.make()
    for place, party in enumerate(parties):
        party.sums._fixed = Parts(run.job, [changed[place] for changed in others])
    second = Watched(parties)
    assert second.run(coordinator).ended == "done"
    assert second.view == first.view


@pytest.mark.parametrize("sums", ["masked", "open"])
def test_in_the_open_the_coordinator_sees_who_has_which_part(
    sums: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two parties exchange their parts: no sum changes by a bit, and every open message does."""
    run, answer = Run(5, sums=sums), SharingMember.answer
    views, results, parts = [], [], [dict[int, Sum](), dict[int, Sum]()]

    def noted(self: SharingMember, message: Message) -> Sum:
        found = answer(self, message)
        if self._party.index < 2:
            parts[self._party.index][message.round] = found
        return found

    def exchanged(self: SharingMember, message: Message) -> Sum:
        found = answer(self, message)
        place = self._party.index
        return parts[1 - place][message.round] if place < 2 else found

    for acts in (noted, exchanged):
        monkeypatch.setattr(SharingMember, "answer", acts)
        parties, coordinator = run.make()
        watched = Watched(parties)
        assert watched.run(coordinator).ended == "done"
        views.append([one for one in watched.view if Message.decode(one[2]).round in (1, 2, 3)])
        results.append(coordinator.store.read("result.json"))
    assert results[0] == results[1]
    changed = [one[0] for one, other in zip(*views, strict=True) if one != other]
    assert changed == ["site0", "site1"] * 3
    told = Message.decode(views[0][0][2]).arrays
    in_view = [np.array_equal(array, parts[0][1].values) for array in told.values()]
    assert in_view == [sums == "open"]


def test_masks_look_like_noise_and_leave_no_part_in_a_message() -> None:
    parties, coordinator = Run(3, rows=3000).make()
    for party in parties:
        party.sums._fixed = Parts(party.job)
    watched = Watched(parties)
    watched.run(coordinator)
    sent = [Message.decode(data) for _, _, data in watched.view]
    words = np.concatenate([one.arrays["words"] for one in sent if one.kind == "masked"])
    bits = np.unpackbits(words.view(np.uint8))
    assert abs(bits.mean() - 0.5) < 5.0 / np.sqrt(len(bits)) / 2
    assert len(np.unique(words)) == len(words)


# --- numbers as whole numbers


@pytest.mark.parametrize("largest", [1e-300, 1e-5, 1.0, 3.0, 2.0**16, 1e9, 1e140])
@pytest.mark.parametrize("parties", [1, 2, 5, 1000])
def test_words_add_up_to_the_sum_of_the_numbers(parties: int, largest: float) -> None:
    random, fixed = np.random.default_rng(parties), FixedPoint(parties, largest)
    values = random.uniform(-largest, largest, (parties, 50))
    values[:, 0], values[:, 1] = largest, -largest
    squares = random.uniform(0.0, 4.0 * 50 * largest**2, parties)
    words = fixed.encode(Sum(values[0], float(squares[0])))
    for own, one in zip(values[1:], squares[1:], strict=True):
        words = fixed.added(words, fixed.encode(Sum(own, float(one))), wide=True)
    total = fixed.decode(words, wide=True)
    assert np.abs(total.values - values.sum(axis=0)).max() <= parties * largest * 1e-15 * parties
    assert total.squares == pytest.approx(squares.sum(), rel=1e-12)
    assert parties * largest * 2.0 ** min(fixed.power, 1000) < 2.0**62 * (1 + 1e-15)
    assert parties * largest >= 2.0**61 * fixed.unit


def test_words_are_added_and_subtracted_with_their_carry() -> None:
    random = np.random.default_rng(1)
    for _ in range(200):
        one, two = (random.integers(0, 2**64, 4, dtype=np.uint64) for _ in range(2))
        if random.random() < 0.3:
            two[-2] = one[-2]
        kept = [np.array(x) for x in (one, two)]
        both = [int(x[-2]) + (int(x[-1]) << 64) for x in kept]
        total = FixedPoint.added(one, two, wide=True)
        assert int(total[-2]) + (int(total[-1]) << 64) == (both[0] + both[1]) % 2**128
        assert np.array_equal(FixedPoint.subtracted(total, two, wide=True), kept[0])
        assert np.array_equal(two, kept[1])


def test_a_sum_beyond_its_range_is_none() -> None:
    fixed = FixedPoint(2, 1.0)
    good = fixed.encode(Sum(np.array([1.0, -1.0]), 0.5))
    assert fixed.decode(fixed.added(good.copy(), good, wide=True), wide=True).squares == 1.0
    for place, value in ((0, 2**62), (1, 2**63), (2, 1), (4, 2**63)):
        words = good.copy()
        words[place] = value
        with pytest.raises(Refusal, match="Who is not known"):
            fixed.decode(words, wide=True)


# --- numbers that must not be sent


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 65536.1, -1e300])
@pytest.mark.parametrize("sums", ["masked", "open"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_number_out_of_range_is_refused_by_its_own_site_and_not_told(
    sums: str, wrong: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = SharingMember.answer

    def spoilt(self: SharingMember, message: Message) -> Sum:
        found = answer(self, message)
        if self._party.index == count - 1 and message.round == 2:
            found.values[3] = wrong
        return found

    run = Run(count, sums=sums)
    parties, coordinator = run.make()
    watched = Watched(parties)
    with monkeypatch.context() as patch:
        patch.setattr(SharingMember, "answer", spoilt)
        turn = watched.run(coordinator)
    name = f"site{count - 1}"
    told = f"a number of {name} is not finite or above sum_range = 65536"
    assert (turn.ended, turn.reason) == ("stopped", f"{name} refused: {told}")
    assert parties[-1].held == 1
    assert watched.run(coordinator).ended == "done"  # as if nothing had happened
    whole, again = run.make()
    InProcessRunner(whole).run(again)
    assert coordinator.store.read("result.json") == again.store.read("result.json")


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e6])
def test_in_the_open_whoever_sent_a_number_out_of_range_is_named(wrong: float) -> None:
    parties, coordinator = Run(3, sums="open").make()

    def lie(name: str, answer: Message) -> Message:
        if (name, answer.kind, answer.round) != ("site1", "contribution", 2):
            return answer
        wrongs = {"prediction": np.full(12, wrong)}
        return Message(answer.run, 2, answer.kind, wrongs, answer.scalars)

    turn = Watched(parties, answered=lie).run(coordinator)
    assert turn.reason == "site1 sent a number that is not finite or above sum_range = 65536"
    assert InProcessRunner(parties).run(coordinator).ended == "done"


def test_numbers_at_the_edge_of_their_range_are_summed() -> None:
    run = Run(2, more={"sum_range": 1e-9})
    parties, coordinator = run.make()
    turn = InProcessRunner(parties).run(coordinator)
    assert "is not finite or above sum_range = 1e-09" in str(turn.reason)
    ones = Sum(np.array([1e-9, -1e-9]), 1e-18)
    assert ones.fits(1e-9)
    assert not Sum(ones.values, 1.0).fits(1e-9)
    assert not Sum(ones.values, float("nan")).fits(1e-9)
    assert not Sum(ones.values, -1e-30).fits(1e-9)


@pytest.mark.parametrize("sums", ["masked", "open"])
@pytest.mark.parametrize("length", [0, 11, 12, 13, 14, 15, 16])
def test_too_few_or_too_many_numbers_name_their_sender(length: int, sums: str) -> None:
    right = 15 if sums == "masked" else 12
    parties, coordinator = Run(3, sums=sums).make()

    def other_length(name: str, answer: Message) -> Message:
        if (name, answer.round) != ("site1", 1):
            return answer
        arrays = {key: np.resize(array, length) for key, array in answer.arrays.items()}
        return Message(answer.run, 1, answer.kind, arrays, answer.scalars)

    turn = Watched(parties, answered=other_length).run(coordinator)
    if length == right:
        assert turn.ended == "done"
    else:
        told = f"site1 sent {length} numbers where {right} are added up"
        assert turn.reason == told


@pytest.mark.parametrize("sums", ["masked", "open"])
def test_numbers_travel_as_the_terms_say(sums: str) -> None:
    parties, coordinator = Run(3, sums=sums).make()
    wanted, other = ("masked", "contribution")[:: 1 if sums == "masked" else -1]

    def other_kind(name: str, answer: Message) -> Message:
        if (name, answer.kind) != ("site2", wanted):
            return answer
        arrays: dict[str, Any] = {"prediction": np.zeros(12)}
        if other == "masked":
            arrays = {"words": np.zeros(15, dtype=np.int64)}
        return Message(answer.run, answer.round, other, arrays)

    turn = Watched(parties, answered=other_kind).run(coordinator)
    assert turn.reason == f"{wanted} numbers of site2 are awaited, got a {other}"


# --- a coordinator that does not keep to the protocol


def test_parties_that_were_told_different_prices_do_not_add_up() -> None:
    parties, coordinator = Run(5).make()

    def other_price(name: str, message: Message) -> Message:
        if (name, message.kind, message.round) != ("site3", "price", 2):
            return message
        price = message.arrays["price"].copy()
        price[0] = np.nextafter(price[0], np.inf)
        return Message(message.run, 2, "price", {"price": price}, message.scalars)

    turn = Watched(parties, other_price).run(coordinator)
    assert turn.reason == NOBODY
    assert all(party.stopped == NOBODY for party in parties)


def test_parties_that_are_asked_for_different_rounds_do_not_add_up() -> None:
    """The answer of one round in the place of the next: masks are another round's."""
    parties, coordinator = Run(3).make()
    kept: dict[str, Message] = {}

    def old(name: str, answer: Message) -> Message:
        if answer.kind == "masked" and answer.round == 1:
            kept[name] = answer
        if (name, answer.round) == ("site1", 2):
            return Message(answer.run, 2, "masked", kept[name].arrays)
        return answer

    assert Watched(parties, answered=old).run(coordinator).reason == NOBODY


def test_the_masks_of_another_run_do_not_cancel() -> None:
    """The same sites, noise keys, data and questions: only the name of the run is another."""
    kept: dict[tuple[str, int], Message] = {}

    def keep(name: str, answer: Message) -> Message:
        kept[name, answer.round] = answer
        return answer

    parties, coordinator = Run(3).make()
    assert Watched(parties, answered=keep).run(coordinator).ended == "done"

    def replayed(name: str, answer: Message) -> Message:
        if name == "site2" and answer.kind == "masked":
            return Message(answer.run, answer.round, "masked", kept[name, answer.round].arrays)
        return answer

    parties, coordinator = Run(3, name="another").make()
    assert Watched(parties, answered=replayed).run(coordinator).reason == NOBODY
    parties, coordinator = Run(3).make()
    assert Watched(parties, answered=replayed).run(coordinator).ended == "done"  # its own


def begun(party: Party, *, rounds: int = 0) -> Message:
    """A party of the world that has begun, and has answered some rounds; the next question."""
    assert party.handle(opening(party)).kind == "ready"
    for number in range(1, rounds + 1):
        asked = Message("run-1", number, "price", {"price": np.ones(30)}, PRICE)
        assert party.handle(asked).kind == "masked"
    return Message("run-1", rounds + 1, "price", {"price": np.ones(30)}, PRICE)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.of(tmp_path, "sharing")


@pytest.fixture
def lab(world: World) -> Party:
    return Party(world.job, world.site("lab"), MemoryStore(bytes([2]) * 32))


def test_an_answered_round_has_one_question_and_one_roster(lab: Party) -> None:
    question = begun(lab)
    first = lab.handle_bytes(question.encode())
    assert lab.handle_bytes(question.encode()) == first
    other = Message("run-1", 1, "price", {"price": np.zeros(30)}, PRICE)
    assert "answered round 1, to another question" in lab.handle(other).text("reason")
    begin = opening(lab)
    roster = roster_of(lab)
    told = SumKey(bytes([8]) * 32).introduced(lab.job, KEYS["clinic"])
    roster.keys[0] = bytes.fromhex(str(told["key"]))
    roster.signatures[0] = bytes.fromhex(str(told["signature"]))
    again = Message("run-1", 0, "begin", {**begin.arrays, **roster.arrays}, begin.scalars)
    assert "awaits round 2" in lab.handle(again).text("reason")
    assert lab.handle_bytes(question.encode()) == first


def test_a_party_that_begins_anew_with_another_roster_is_refused(lab: Party) -> None:
    begin = opening(lab)
    assert lab.handle(begin).kind == "ready"
    arrays = {name: array.copy() for name, array in begin.arrays.items()}
    arrays["signatures"][0, 0] ^= 1
    other = Message("run-1", 0, "begin", arrays, begin.scalars)
    assert "answered round 0, to another question" in lab.handle(other).text("reason")


def test_masks_depend_on_round_question_roster_and_names(lab: Party) -> None:
    key, roster = SumKey(bytes([7]) * 32), roster_of(lab)
    masks = Masks(1, SumKey.of(bytes([2]) * 32), roster)
    other = Masks(0, key, roster)
    words = masks.shared(0, 3, "question", 9)
    assert np.array_equal(words, other.shared(1, 3, "question", 9))
    changed = Roster(replace(lab.job, run="run-2"), roster.keys, roster.signatures)
    keys = [*roster.keys[:2], SumKey(bytes([9]) * 32).public]
    another = Roster(lab.job, keys, roster.signatures)
    for different in (
        masks.shared(0, 4, "question", 9),
        masks.shared(0, 3, "questions", 9),
        masks.shared(2, 3, "question", 9),  # whose key is the same: the names differ
        Masks(1, SumKey.of(bytes([2]) * 32), changed).shared(0, 3, "question", 9),
        Masks(1, SumKey.of(bytes([2]) * 32), another).shared(0, 3, "question", 9),
    ):
        assert not np.any(words == different)


def with_roster(lab: Party, change: Callable[[Roster], None], kind: str) -> str:
    """What a party says to a roster that was changed."""
    asked, roster = opening(lab, kind), roster_of(lab)
    change(roster)
    arrays = {**asked.arrays, **roster.arrays}
    answer = lab.handle(Message(asked.run, asked.round, kind, arrays, asked.scalars))
    if answer.kind != "refusal":
        return answer.kind
    assert lab.held == -1
    return answer.text("reason")


def coordinators_key(roster: Roster) -> None:
    roster.keys[0] = SumKey(bytes([99]) * 32).public


def not_signed(roster: Roster) -> None:
    roster.signatures[0] = bytes(64)


def signed_by_another(roster: Roster) -> None:
    told = SumKey(bytes([99]) * 32).introduced(roster.job, SigningKey("clinic", bytes(32)))
    roster.keys[0] = bytes.fromhex(str(told["key"]))
    roster.signatures[0] = bytes.fromhex(str(told["signature"]))


def signed_for_another_run(roster: Roster) -> None:
    other = replace(roster.job, run="run-2")
    told = SumKey(bytes([7]) * 32).introduced(other, KEYS["clinic"])
    roster.signatures[0] = bytes.fromhex(str(told["signature"]))


def exchanged(roster: Roster) -> None:
    for rows in (roster.keys, roster.signatures):
        rows[0], rows[2] = rows[2], rows[0]


def own_key(roster: Roster) -> None:
    told = SumKey(bytes([99]) * 32).introduced(roster.job, KEYS["lab"])
    roster.keys[1] = bytes.fromhex(str(told["key"]))
    roster.signatures[1] = bytes.fromhex(str(told["signature"]))


@pytest.mark.parametrize("kind", ["begin", "rehearse"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (coordinators_key, "the sum key of clinic is not signed by the key that lab knows"),
        (not_signed, "the sum key of clinic is not signed by the key that lab knows"),
        (signed_by_another, "the sum key of clinic is not signed by the key that lab knows"),
        (signed_for_another_run, "the sum key of clinic is not signed by the key that lab knows"),
        (exchanged, "the sum key of clinic is not signed by the key that lab knows"),
        (own_key, "the sum key of lab is another than the one passed on"),
        (lambda roster: None, "ready"),
    ],
)
def test_a_roster_of_other_keys_is_refused_before_anything(
    change: Callable[[Roster], None], told: str, kind: str, lab: Party
) -> None:
    assert with_roster(lab, change, kind) == told


@pytest.mark.parametrize("kind", ["begin", "rehearse"])
def test_a_roster_must_be_there_and_whole(kind: str, lab: Party, tmp_path: Path) -> None:
    asked = opening(lab, kind)

    def told(party: Party, **arrays: Any) -> str:
        message = Message("run-1", asked.round, kind, arrays, asked.scalars)
        return party.handle(message).text("reason")

    whole = dict(asked.arrays)
    for name in ("keys", "signatures"):
        for wrong in (None, whole[name][:2], whole[name][:, :3], whole[name].T.copy()):
            given = whole | ({} if wrong is None else {name: wrong})
            if wrong is None:
                del given[name]
            assert told(lab, **given).startswith(f"{name} of 3 parties are needed")
    open_world = World.of(tmp_path / "open", "sharing, open")
    party = Party(open_world.job, open_world.site("lab"), MemoryStore())
    assert told(party, **whole) == "run run-1 hides no parts of a sum, and has no sum keys"
    assert party.hello().text("key") == party.hello().text("signature") == ""


def test_a_key_of_low_order_is_none(lab: Party) -> None:
    roster = roster_of(lab)
    roster.keys[0] = bytes(32)
    signature = KEYS["clinic"].sign("dpsvm sum key", lab.job.digest, "clinic", bytes(32))
    roster.signatures[0] = signature
    asked = opening(lab)
    arrays = {**asked.arrays, **roster.arrays}
    answer = lab.handle(Message("run-1", 0, "begin", arrays, asked.scalars))
    assert answer.text("reason") == "the sum key of clinic is none"


def test_who_copies_the_key_of_another_does_not_take_masks_away() -> None:
    """Between two parties with one key, masks that were the same would cancel in the middle."""
    job = Job("run-1", "sharing", NAMES, "clinic", {"rounds": 2}, ids=False)
    parties = [Party(job, site_of(name, np.eye(30)), MemoryStore()) for name in NAMES]
    hellos = [party.hello() for party in parties]
    copied = bytes.fromhex(hellos[2].text("key"))
    signature = KEYS["clinic"].sign("dpsvm sum key", job.digest, "clinic", copied)
    scalars = {**hellos[0].scalars, "key": copied.hex(), "signature": signature.hex()}
    hellos[0] = Message("run-1", -1, "hello", scalars=scalars)
    roster = Roster.of_hellos(job, hellos)
    arrays = {"sizes": np.array([30, 30, 30]), **roster.arrays}
    lab = parties[1]
    lab.sums._fixed = Parts(job)
    assert lab.handle(Message("run-1", 0, "begin", arrays, {"rows": 30})).kind == "ready"
    question = Message("run-1", 1, "price", {"price": np.ones(30)}, PRICE)
    sent = lab.handle(question).arrays["words"].view(np.uint64)
    [part] = lab.sums._fixed.seen  # type: ignore[attr-defined]
    assert not np.any(sent == part)


# --- parties that do not keep to the protocol


def test_a_party_that_lies_spoils_the_sum_and_reads_nothing() -> None:
    run = Run(3)
    parties, coordinator = run.make()
    got: list[Message] = []

    def noted(name: str, message: Message) -> Message:
        if name == "site1":
            got.append(message)
        return message

    def lie(name: str, answer: Message) -> Message:
        if (name, answer.kind) != ("site1", "masked"):
            return answer
        words = answer.arrays["words"].copy()
        words[0] += 1 << 50
        return Message(answer.run, answer.round, "masked", {"words": words})

    turn = Watched(parties, noted, lie).run(coordinator)
    assert turn.ended == "done"  # in its range, so nobody can tell
    whole, other = run.make()
    InProcessRunner(whole).run(other)
    assert coordinator.store.read("result.json") != other.store.read("result.json")
    arrays = [set(message.arrays) for message in got]
    of_ledgers = {"ledgers", "heads", "seen_ledgers", "seen_heads"}
    opening_arrays = {"sizes", "keys", "signatures", *of_ledgers}
    assert all(names <= opening_arrays or names <= {"price"} for names in arrays)


def test_words_without_masks_are_noticed_and_nobody_is_named() -> None:
    parties, coordinator = Run(3).make()

    def bare(name: str, answer: Message) -> Message:
        if (name, answer.kind) != ("site1", "masked"):
            return answer
        words = np.zeros(len(answer.arrays["words"]), dtype=np.int64)
        return Message(answer.run, answer.round, "masked", {"words": words})

    assert Watched(parties, answered=bare).run(coordinator).reason == NOBODY


# --- runners, and how many parties there are


@pytest.mark.parametrize("sums", ["masked", "open"])
def test_bytes_on_a_wire_give_what_messages_give(sums: str) -> None:
    run, found = Run(5, sums=sums), []
    for wire in (False, True):
        parties, coordinator = run.make()
        assert InProcessRunner(parties, wire=wire).run(coordinator).ended == "done"
        texts = [party.store.read("model.json") for party in parties]
        found.append([*texts, coordinator.store.read("result.json")])
    assert found[0] == found[1]


@pytest.mark.parametrize("count", [1, 2])
def test_of_one_or_two_parties_the_sum_tells_the_parts(count: int) -> None:
    parties, coordinator = Run(count).make()
    for party in parties:
        party.sums._fixed = Parts(party.job)
    watched = Watched(parties)
    assert watched.run(coordinator).ended == "done"
    sent = [Message.decode(data) for _, _, data in watched.view]
    words = [one.arrays["words"].view(np.uint64) for one in sent if one.round == 1]
    parts = [party.sums._fixed.seen[0] for party in parties]  # type: ignore[attr-defined]
    left = added(words)
    if count == 2:
        assert not np.any(words[0] == parts[0])
        left = FixedPoint.subtracted(left, parts[1], wide=True)  # which one of them knows
    assert np.array_equal(left, parts[0])


# --- what a site needs for it


def test_a_site_without_keys_says_what_to_do(world: World) -> None:
    for name, changes, told in (
        ("lab", {"identity": None}, "lab has no signing key"),
        ("lab", {"known": {}}, "lab does not know the key of clinic"),
        ("hub", {"known": {}}, "clinic does not know the key of clinic"),
    ):
        parties = [
            Party(world.job, world.site(one, **(changes if one == name else {})), MemoryStore())
            for one in NAMES
        ]
        hub = world.site("hub", **(changes if name == "hub" else {}))
        turn = InProcessRunner(parties).run(Coordinator(world.job, hub, MemoryStore()))
        assert turn.ended == "stopped"
        assert told in str(turn.reason)
        assert "keys.introduce" in str(turn.reason)


def test_a_coordinator_verifies_what_it_passes_on(world: World) -> None:
    parties = [Party(world.job, world.site(name), MemoryStore()) for name in NAMES]

    def forged(change: dict[str, Any]) -> Change:
        def changed(name: str, answer: Message) -> Message:
            if (name, answer.kind) != ("lab", "hello"):
                return answer
            return Message(answer.run, -1, "hello", scalars={**answer.scalars, **change})

        return changed

    for change, told in (
        ({"signature": "00" * 64}, "the sum key of lab is not signed by the key that clinic knows"),
        ({"key": ""}, "lab told no key for sums that hide their parts"),
        ({"signature": "0"}, "lab told no signature for sums that hide their parts"),
        ({"key": "no" * 32}, "lab told no key for sums that hide their parts"),
        ({"key": "0 " * 32}, "lab told no key for sums that hide their parts"),
        ({"key": " 00" * 31 + " 0"}, "lab told no key for sums that hide their parts"),
    ):
        coordinator = Coordinator(world.job, world.site("hub"), MemoryStore())
        assert Watched(parties, answered=forged(change)).run(coordinator).reason == told


def test_a_run_does_not_go_on_with_another_sum_key(world: World) -> None:
    parties = [Party(world.job, world.site(name), MemoryStore()) for name in NAMES]
    sums = CoordinatorSums(world.job, world.site("hub"))
    hellos = [party.hello() for party in parties]
    roster = sums.roster(hellos)
    sums.require(roster, hellos)
    hellos[1] = Party(world.job, world.site("lab"), MemoryStore()).hello()
    with pytest.raises(Refusal, match="lab has another sum key than run run-1 began with"):
        sums.require(roster, hellos)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    secure_sum_module._cryptography.cache_clear()
    for name in [one for one in sys.modules if one.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(Refusal, match=r"pip install 'dpsvm\[federation\]'"):
        SumKey(bytes(32))
    parties, coordinator = open_run()
    assert InProcessRunner(parties).run(coordinator).ended == "done"


def open_run() -> tuple[list[Party], Coordinator]:
    """Without keys."""
    job = Job("r", "sharing", ("a", "b"), "a", {"rounds": 2}, ids=False, sums="open")
    owner = Site("a", labels=np.array([-1, 1]))
    parties = [Party(job, Site(name, np.eye(2)), MemoryStore()) for name in job.parties]
    return parties, Coordinator(job, owner, MemoryStore())


# --- joint prediction


def prediction(sums: str = "masked") -> tuple[list[Party], Coordinator, list[Any]]:
    """Of a model that the coordinator holds; each party's table and weights."""
    random = np.random.default_rng(4)
    tables = [random.standard_normal((6, 2)) for _ in NAMES]
    weights = [random.standard_normal(2) for _ in NAMES]
    job = Job("p", "predict", NAMES, "clinic", {"model": "run-1"}, ids=False, sums=sums)
    model = {"algorithm": "frank-wolfe", "weights": None, "intercept": 0.0}
    parties = [
        Party(job, site_of(name, table, model=model), MemoryStore())
        for name, table in zip(NAMES, tables, strict=True)
    ]
    whole = model | {"weights": [own.tolist() for own in weights]}
    owner = site_of("clinic", labels=np.zeros(6), model=whole)
    return parties, Coordinator(job, owner, MemoryStore()), [tables, weights]


@pytest.mark.parametrize("sums", ["masked", "open"])
def test_told_weights_are_bound_to_what_others_were_told(sums: str) -> None:
    parties, coordinator, _ = prediction(sums)

    def other_weights(name: str, message: Message) -> Message:
        if (name, message.kind) != ("lab", "ask"):
            return message
        arrays = {**message.arrays, "weights": message.arrays["weights"] + 1.0}
        return Message(message.run, message.round, "ask", arrays)

    turn = Watched(parties, other_weights).run(coordinator)
    told = "lab refused: the weights told to lab are not those of the list of digests"
    assert turn.reason == told


def test_parties_that_were_shown_different_lists_do_not_add_up() -> None:
    parties, coordinator, _ = prediction()

    def other_list(name: str, message: Message) -> Message:
        if (name, message.kind) != ("lab", "ask"):
            return message
        own = message.arrays["weights"] + 1.0
        digests = message.arrays["digests"].copy()
        digests[1] = digest_of_weights(own)
        return Message(message.run, 1, "ask", {"weights": own, "digests": digests})

    assert Watched(parties, other_list).run(coordinator).reason == NOBODY


def test_a_question_with_half_of_what_it_needs_is_refused() -> None:
    parties, coordinator, _ = prediction()

    def without(field: str) -> Change:
        def changed(name: str, message: Message) -> Message:
            if (name, message.kind) != ("lab", "ask"):
                return message
            arrays = {key: array for key, array in message.arrays.items() if key != field}
            return Message(message.run, 1, "ask", arrays)

        return changed

    for field_name in ("weights", "digests"):
        turn = Watched(parties, without(field_name)).run(coordinator)
        assert "is to be told weights, and the digests of all parties'" in str(turn.reason)


def test_a_coordinator_can_still_name_weights_that_single_a_party_out() -> None:
    """Not claimed otherwise: digests bind the weights, and do not choose them."""
    parties, coordinator, (tables, weights) = prediction()
    chosen = [np.zeros(2), weights[1], np.zeros(2)]
    model = {**(coordinator.site.model or {}), "weights": [own.tolist() for own in chosen]}
    store = MemoryStore()
    curious = Coordinator(coordinator.job, replace(coordinator.site, model=model), store)
    assert InProcessRunner(parties).run(curious).ended == "done"
    assert f"{(tables[1] @ weights[1])[0]:.6f}"[:8] in str(store.read("result.json"))


def test_a_range_means_the_same_as_a_whole_number_and_as_a_real_one() -> None:
    one, other = (Job("r", "sharing", ("a", "b"), "a", sum_range=size) for size in (64, 64.0))
    assert one.digest == other.digest


@pytest.mark.parametrize("size", [0, -1.0, float("nan"), 1e301, True, "8"])
def test_a_range_that_no_sum_can_have_is_refused_with_its_value(size: Any) -> None:
    with pytest.raises(ValueError, match=r"sum_range must lie between 1e-300 and 1e\+300, got"):
        Job("r", "sharing", ("a", "b"), "a", sum_range=size)
