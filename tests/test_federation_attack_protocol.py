"""What a hostile coordinator, a hostile peer or an edited disk tried, as bytes in and bytes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federation_problems import (
    KEYS,
    NAMES,
    ROWS,
    World,
    opening,
    roster_of,
)

from dpsvm.federation import Message, Party
from dpsvm.federation.fixed_point import FixedPoint
from dpsvm.federation.secure_sum import Roster
from dpsvm.federation.site import Refusal
from dpsvm.federation.witness import Told, witnessed


def parties_of(world: World, **changes: Any) -> list[Party]:
    """The parties of a world, none of which has begun."""
    return [Party(world.job, world.site(name, **changes), world.store(name)) for name in NAMES]


def roster(parties: list[Party]) -> dict[str, Any]:
    """The sum keys that the parties have told."""
    return Roster.of_hellos(parties[0].job, [party.hello() for party in parties]).arrays


def begin(parties: list[Party]) -> None:
    """Begin a run at all parties."""
    arrays = {"sizes": np.array([3, 2, 2]), **roster(parties)}
    for party in parties:
        answer = party.handle(Message("run-1", 0, "begin", arrays, {"rows": ROWS}))
        assert answer.kind == "ready", answer.scalars


def changed(message: Message, **arrays: Any) -> Message:
    """A message with other arrays."""
    whole = {**message.arrays, **arrays}
    return Message(message.run, message.round, message.kind, whole, message.scalars)


def price(number: int, values: Any, rho: float) -> Message:
    """A question of a sharing run."""
    scalars = {"rho": rho, "keep": False}
    return Message("run-1", number, "price", {"price": np.asarray(values, float)}, scalars)


def added(party: Party, answers: list[Message]) -> Any:
    """What masked answers add up to."""
    fixed = FixedPoint(len(NAMES), party.job.sum_range)
    words = np.zeros(len(answers[0].arrays["words"]), dtype=np.uint64)
    for answer in answers:
        fixed.added(words, answer.arrays["words"].view(np.uint64), wide=True)
    return fixed.decode(words, wide=True)


# --- sums that hide their parts


def test_one_question_after_different_ones_does_not_tell_a_part(tmp_path: Path) -> None:
    """A huge rho keeps what the last round made: the sum would be the part of clinic alone."""
    parties = parties_of(World.of(tmp_path, "sharing"))
    begin(parties)
    for party, size in zip(parties, (1.0, 0.0, 0.0), strict=True):
        assert party.handle(price(1, np.full(ROWS, size), 1.0)).kind == "masked"
    answers = [party.handle(price(2, np.zeros(ROWS), 1e12)) for party in parties]
    assert {answer.kind for answer in answers} == {"masked"}
    with pytest.raises(Refusal, match="do not add up"):
        added(parties[0], answers)


def test_the_same_questions_add_up_after_all_parties_were_killed(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing")
    parties = parties_of(world)
    begin(parties)
    for party in parties:
        party.handle(price(1, np.ones(ROWS), 1.0))
        party.store.close()
    answers = [party.handle(price(2, np.zeros(ROWS), 1.0)) for party in parties_of(world)]
    assert np.all(np.isfinite(added(parties[0], answers).values))


def test_other_sizes_told_to_one_party_spoil_the_sum(tmp_path: Path) -> None:
    parties = parties_of(World.of(tmp_path, "sharing"))
    keys = roster(parties)
    for party, sizes in zip(parties, ([3, 2, 2], [3, 2, 2], [3, 9, 2]), strict=True):
        arrays = {"sizes": np.array(sizes), **keys}
        assert party.handle(Message("run-1", 0, "begin", arrays, {"rows": ROWS})).kind == "ready"
    answers = [party.handle(price(1, np.ones(ROWS), 1.0)) for party in parties]
    with pytest.raises(Refusal, match="do not add up"):
        added(parties[0], answers)


@pytest.mark.parametrize("low", [0, 1, 2**255 - 20, 2**255 - 19, 2**255 - 18])
def test_a_key_of_low_order_is_refused_before_anybody_pays(low: int, tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    [clinic, *_] = parties_of(world)
    key, told = low.to_bytes(32, "little"), roster_of(clinic)
    told.keys[2] = key
    told.signatures[2] = KEYS["registry"].sign("dpsvm sum key", world.job.digest, "registry", key)
    for kind in ("rehearse", "begin"):
        answer = clinic.handle(changed(opening(clinic, kind), **told.arrays))
        assert answer.text("reason") == "the sum key of registry is none"
    assert world.charges()["clinic"] == 0
    assert not ledger_of(clinic).reservations


def ledger_of(party: Party) -> Any:
    """The ledger of a party."""
    assert party.site.ledger is not None
    return party.site.ledger


# --- what is told of ledgers


@pytest.mark.parametrize("count", [2**33, 2**62, 2**63 - 1])
def test_a_count_that_no_ledger_has_does_not_break_a_site(count: int, tmp_path: Path) -> None:
    """It was kept as it was told, could not be read again, and ended every later run."""
    world = World.of(tmp_path, "sharing, private")
    [clinic, *_] = parties_of(world, state=tmp_path / "kept")
    heads = witnessed("ledgers", "heads", [(count, "11" * 32)] * 3)
    for kind in ("rehearse", "begin"):
        answer = clinic.handle(changed(opening(clinic, kind), **heads))
        assert answer.text("reason").startswith("no ledger has so many charges")
    assert clinic.hello().kind == "hello"
    assert clinic.handle(opening(clinic)).kind == "ready"


def test_a_peer_that_tells_such_a_count_is_refused_by_the_coordinator(tmp_path: Path) -> None:
    parties = parties_of(World.of(tmp_path, "sharing, private"))
    hello = parties[0].hello()
    scalars = {**hello.scalars, "ledger": 2**62}
    with pytest.raises(Refusal, match="a count and a link of a ledger are awaited"):
        Told.by(Message("run-1", -1, "hello", hello.arrays, scalars), 3)


def test_ledgers_of_another_number_of_sites_are_refused_before_room_is_kept(
    tmp_path: Path,
) -> None:
    [clinic, *_] = parties_of(World.of(tmp_path, "sharing, private"))
    wrong = {"ledgers": np.zeros(2, np.int64), "heads": np.zeros((2, 4), np.int64)}
    assert clinic.handle(changed(opening(clinic), **wrong)).kind == "refusal"
    assert not ledger_of(clinic).reservations


@pytest.mark.parametrize("edit", ["flipped", "readable"])
def test_a_refusal_for_a_ledger_tells_neither_its_place_nor_its_text(
    edit: str, tmp_path: Path
) -> None:
    world = World.of(tmp_path, "sharing, private")
    [clinic, *_] = parties_of(world)
    if edit == "flipped":
        text = world.ledger("clinic").read_text().replace('"epsilon": 100.0', '"epsilon": 900.0')
        world.ledger("clinic").write_text(text)
    else:
        Path(f"{world.ledger('clinic')}.key").chmod(0o644)
    greet = Message("run-1", -1, "greet", scalars={"version": 2, "job": world.job.digest})
    answer = clinic.handle(greet)
    assert answer.text("reason") == "a ledger cannot be used, and its site knows why"
    assert str(world.ledger("clinic")) in (clinic.refused or "")


# --- one answer to a round


PAID: dict[str, tuple[float, list[int], int]] = {
    "sharing, private": (2.0, [3, 2, 2], ROWS),
    "frank-wolfe, private": (1e-3, [3, 2, 2], ROWS),
    "network, private": (1e-3, [10, 10, 10], 0),
}


def question(name: str, number: int, size: float) -> Message:
    """A question that any run of its kind can be asked."""
    if name.startswith("sharing"):
        return price(number, np.full(ROWS, size), 0.05)
    if name.startswith("network"):
        return Message("run-1", number, "neighbours", {"weights": np.full((2, 7), size)})
    return Message("run-1", number, "query", {"residual": np.full(8, size)})


@pytest.mark.parametrize("name", PAID)
def test_a_paid_party_says_once_that_its_number_is_out_of_range(name: str, tmp_path: Path) -> None:
    """Every question of a round has other noise: each refusal was one more look for one charge."""
    largest, sizes, rows = PAID[name]
    world = World.of(tmp_path, name, sum_range=largest)
    lab = parties_of(world)[1]
    arrays = {"sizes": np.array(sizes)} | (roster_of(lab).arrays if world.job.masked else {})
    assert lab.handle(Message("run-1", 0, "begin", arrays, {"rows": rows})).kind == "ready"
    first = lab.handle(question(name, 1, 0.0))
    assert first.kind == "refusal"
    assert f"sum_range = {largest:g}" in first.text("reason")
    lab.store.close()
    again = Party(world.job, world.site("lab"), world.store("lab"))
    assert again.closed == first.text("reason")

    def refuse(*_: Any) -> Any:
        raise AssertionError("the data are looked at again")

    again._make_member = refuse  # type: ignore[method-assign]
    for size in (0.0, 1e-9, 1e-4):
        assert again.handle(question(name, 1, size)).text("reason") == first.text("reason")
    assert world.charges()["lab"] == 1


def test_a_question_out_of_range_closes_nobody(tmp_path: Path) -> None:
    world = World.of(tmp_path, "network, private", sum_range=100.0)
    lab = parties_of(world)[1]
    arrays = {"sizes": np.array([10, 10, 10])}
    assert lab.handle(Message("run-1", 0, "begin", arrays, {"rows": 0})).kind == "ready"
    assert lab.handle(question("network", 1, 101.0)).kind == "refusal"
    assert (lab.closed, world.charges()["lab"]) == (None, 0)
    assert lab.handle(question("network", 1, 0.0)).kind == "iterate"
