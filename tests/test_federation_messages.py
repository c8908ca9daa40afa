"""What may travel between sites: every kind, every field, every limit, and damaged bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federation_problems import opening_among

from bench.federation import federation_fuzz as fuzzing
from bench.federation import sites
from dpsvm.federation import FIELDS, Message, MessageError, RunFolder
from dpsvm.federation import frames as frames_module
from dpsvm.federation.frames import LARGEST, MAGIC, FrameError, pack, unpack
from dpsvm.federation.messages import FROM_PARTY, Numbers, Value, refusal

PRICE = Message("r", 1, "price", {"price": np.ones(2)}, {"rho": 0.5, "keep": True})


def frame(header: Any, rest: bytes = b"") -> bytes:
    """A frame of any header, with a digest that fits."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    body = MAGIC + len(text).to_bytes(4, "little") + text + rest
    return bytes(fuzzing.sealed(body))


def content(**changes: Any) -> bytes:
    """A frame of a ready message with something else in some places."""
    names = ("version", "run", "round", "kind", "scalars", "names")
    values = {**dict(zip(names, [2, "r", 0, "ready", {}, []], strict=True)), **changes}
    return frame({"content": list(values.values()), "arrays": []})


# --- kinds and fields


@pytest.mark.parametrize("kind", FIELDS)
def test_every_kind_survives_its_way(kind: str) -> None:
    message = fuzzing.made_up(kind, np.random.default_rng(1))
    found = Message.decode(message.encode())
    assert (found.run, found.round, found.kind) == (message.run, message.round, kind)
    assert found.scalars == message.scalars
    assert set(found.arrays) == set(message.arrays)
    for name, array in message.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype
    assert found.encode() == message.encode()


@pytest.mark.parametrize("kind", FIELDS)
def test_a_kind_has_its_fields_and_no_others(kind: str) -> None:
    message = fuzzing.made_up(kind, np.random.default_rng(1))
    arrays, scalars = dict(message.arrays), dict(message.scalars)
    with pytest.raises(MessageError, match=f"a {kind} has no field 'labels'"):
        Message("r", 0, kind, arrays, scalars | {"labels": 1})
    with pytest.raises(MessageError, match=f"a {kind} has no field 'labels'"):
        Message("r", 0, kind, arrays | {"labels": np.ones(2)}, scalars)
    for name, wanted in FIELDS[kind].items():
        fewer = [
            {key: one for key, one in part.items() if key != name} for part in (arrays, scalars)
        ]
        if wanted.needed:
            with pytest.raises(MessageError, match=f"a {kind} needs the field '{name}'"):
                Message("r", 0, kind, *fewer)
        else:
            Message("r", 0, kind, *fewer)
        for wrong in wrong_values(wanted):
            part = {name: wrong}
            there = isinstance(wrong, np.ndarray)
            given = (fewer[0] | part, fewer[1]) if there else (fewer[0], fewer[1] | part)
            with pytest.raises(MessageError, match=name):
                Message("r", 0, kind, *given)


def wrong_values(wanted: Numbers | Value) -> list[Any]:
    """What a field must not hold."""
    if isinstance(wanted, Numbers):
        other = "i8" if wanted.dtype == "f8" else "f8"
        axes = [1] * wanted.axes
        return [np.ones([*axes, 1], wanted.dtype), np.ones(axes, other), np.ones(axes, "f4"), [1.0]]
    values = [True, 1, 0.5, "text", [1], np.ones(1), *([None] if wanted.needed else [])]
    return [value for value in values if type(value) is not wanted.kind]


def test_what_leaves_a_party_is_a_list_of_its_own() -> None:
    assert set(FROM_PARTY) < set(FIELDS)
    leaving = {name for kind in FROM_PARTY for name in FIELDS[kind]}
    assert leaving == {
        *("version", "job", "party", "rows", "columns", "ids", "held", "budget"),
        *("ledger", "head", "seen_ledgers", "seen_heads"),
        *("key", "signature", "words", "prediction", "squares", "weights", "choice", "sketch"),
        *("reason", "own", "twice", "blinded", "samples"),
    }


def test_an_array_and_a_scalar_cannot_share_a_name() -> None:
    with pytest.raises(MessageError, match="of one name"):
        Message("r", 1, "contribution", {"prediction": np.ones(1)}, {"prediction": 1.0})


# --- limits


@pytest.mark.parametrize("number", [-2, 2**40 + 1, True, 1.0, "1", None])
def test_rounds_have_a_range(number: Any) -> None:
    Message("r", 2**40, "ready")
    with pytest.raises(MessageError, match="a round cannot be"):
        Message("r", number, "ready")


@pytest.mark.parametrize("text", ["x" * 4097, "\ud800", 3, None])
def test_texts_are_short_and_can_be_written(text: Any) -> None:
    Message("x" * 4096, 0, "ready")
    with pytest.raises(MessageError, match="run must be a text"):
        Message(text, 0, "ready")
    with pytest.raises(MessageError, match="reason"):
        Message("r", 0, "refusal", scalars={"reason": text})


def test_a_long_reason_is_cut() -> None:
    assert len(refusal("r", 0, "x" * 9999).text("reason")) == 4096


@pytest.mark.parametrize("wrong", [2**62 + 1, -(2**62) - 1])
def test_whole_numbers_have_a_range(wrong: int) -> None:
    with pytest.raises(MessageError, match="is too large"):
        Message("r", 0, "proposal", scalars={"choice": wrong})


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
def test_scalars_are_finite(wrong: float) -> None:
    scalars = {"rho": float(wrong), "keep": True}
    with pytest.raises(MessageError, match="must be finite"):
        Message("r", 0, "price", {"price": np.ones(1)}, scalars)


def test_a_frame_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    data = PRICE.encode()
    assert Message.decode(data, largest=len(data)).kind == "price"
    with pytest.raises(MessageError, match="above the limit of 10"):
        Message.decode(data, largest=10)
    monkeypatch.setattr(frames_module, "LARGEST", 100)
    with pytest.raises(FrameError, match="is too large"):
        PRICE.encode()


def test_a_header_has_a_largest_size() -> None:
    with pytest.raises(FrameError, match="is too large"):
        pack("x" * (1 << 20))
    with pytest.raises(FrameError, match="does not fit"):
        unpack(frame(json.dumps({"content": "x" * (1 << 20), "arrays": []})))


@pytest.mark.parametrize("count", [4097])
def test_a_frame_has_a_largest_number_of_arrays(count: int) -> None:
    described = [["f8", [0]]] * count
    with pytest.raises(FrameError, match="must list its arrays"):
        unpack(frame({"content": 0, "arrays": described}))
    assert len(unpack(frame({"content": 0, "arrays": described[1:]}))[1]) == count - 1
    with pytest.raises(FrameError, match="4097 arrays are too many"):
        pack(0, [np.ones(1)] * count)


@pytest.mark.parametrize(
    "shape", [[LARGEST + 1], [-1], [1, 1, 1], [1.0], [True], ["1"], None, 3, {"0": 1}]
)
def test_shapes_have_limits(shape: Any) -> None:
    with pytest.raises(FrameError, match="cannot have the shape"):
        unpack(frame({"content": 0, "arrays": [["f8", shape]]}))


@pytest.mark.parametrize("shape", [[1], [LARGEST], [LARGEST, LARGEST]])
def test_arrays_are_no_longer_than_their_frame(shape: list[int]) -> None:
    with pytest.raises(FrameError, match="longer than the frame"):
        unpack(frame({"content": 0, "arrays": [["f8", shape]]}, bytes(7)))


@pytest.mark.parametrize("array", [np.ones((1, 1, 1)), np.ones(1, "f4"), np.array(["a"])])
def test_other_arrays_are_not_packed(array: Any) -> None:
    with pytest.raises(FrameError, match="can be packed"):
        pack(0, [array])


@pytest.mark.parametrize("described", ["f8", ["f8"], ["f4", [1]], ["O", [1]], [["f8"], [1]], None])
def test_other_types_are_not_unpacked(described: Any) -> None:
    with pytest.raises(FrameError, match="cannot be described as"):
        unpack(frame({"content": 0, "arrays": [described]}, bytes(8)))


# --- bytes


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes are too few"),
        (b"DPSVMFR2" + PRICE.encode()[8:], "no frame of this version"),
        (PRICE.encode()[:-1] + b"x", "the digest does not fit"),
        (frame({"content": [], "arrays": []}), "hold no message"),
        (frame({"content": 0}), "content and arrays, and nothing else"),
        (frame({"content": 0, "arrays": [], "more": 0}), "content and arrays, and nothing else"),
        (frame("[" * 100_000), "the header is no JSON"),
        (frame('{"content": NaN, "arrays": []}'), "the header holds NaN"),
        (frame('{"content": ' + "1" * 5000 + ', "arrays": []}'), "the header is no JSON"),
        (frame({"content": 0, "arrays": []}, b"left"), "4 bytes are left over"),
        (content(version=1), "of version 2 is needed, got 1"),
        (content(version=True), "of version 2 is needed, got True"),
        (content(kind="pickle"), "no message of kind 'pickle'"),
        (content(kind=["ready"]), "no message of kind"),
        (content(scalars=[]), "hold no message"),
        (content(names=["price"]), "hold no message"),
        (content(names={}), "hold no message"),
    ],
)
def test_what_is_no_message_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        Message.decode(data)


def test_arrays_are_named_once_and_in_order() -> None:
    numbers = {"arrays": [["f8", [1]], ["f8", [1]]]}
    for names in (["price", "price"], ["rho", "price"]):
        header = {"content": [2, "r", 0, "price", {}, names], **numbers}
        with pytest.raises(MessageError, match="named once each, in order"):
            Message.decode(frame(header, bytes(16)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers as large as numbers get
def test_damaged_messages_are_messages_or_refused() -> None:
    found = fuzzing.fuzz(2_000, seed=1)
    assert found.faults == []
    assert found.total == 2_000
    assert found.answered > 0
    assert found.gone_on > 0


@pytest.mark.parametrize("kind", ["greet", "rehearse"])
def test_what_comes_before_a_run_belongs_to_no_round(kind: str, tmp_path: Path) -> None:
    parties, _ = sites.make_problem(tmp_path / "sites", "sharing").make()
    party = parties[0]
    terms = {"greet": {"version": 2, "job": party.job.digest}, "rehearse": {"rows": 24}}
    arrays = {"greet": {}, "rehearse": opening_among(parties, "rehearse").arrays}
    asked = [Message("trial", number, kind, arrays[kind], terms[kind]) for number in (-1, 0)]
    assert party.handle(asked[0]).kind == {"greet": "hello", "rehearse": "ready"}[kind]
    assert party.handle(asked[1]).text("reason") == (
        f"a {kind} belongs to no round, got one for round 0"
    )


# --- a party whose disk fails


def test_a_party_that_cannot_go_back_to_its_snapshot_refuses_until_it_can(tmp_path: Path) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    parties, coordinator = problem.make()
    party, turn = parties[0], coordinator.start()
    for _ in range(3):
        turn = coordinator.advance(
            {one.site.name: one.handle(turn.messages["lab"]) for one in parties}
        )
    question = turn.messages["clinic"]
    snapshot = problem.run_folder("clinic") / "snapshot"
    kept = snapshot.read_bytes()
    wrong = Message(question.run, 1, "price", {"price": np.ones(3)}, question.scalars)
    assert party.handle(wrong).kind == "refusal"
    snapshot.write_bytes(b"")
    for _ in range(2):
        assert "this snapshot cannot be used" in party.handle(question).text("reason")
    snapshot.write_bytes(kept)
    assert party.handle(question).kind == "masked"


def test_a_run_folder_forgets_what_was_left_half_written(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "r") as store:
        store.save({"round": 1})
    left = tmp_path / "r" / ".dpsvm-0123456789abcdef"
    left.write_bytes(b"half of a snap")
    with RunFolder(tmp_path, "r") as store:
        assert store.load() == {"round": 1}
    assert not left.exists()


def test_a_resumed_run_writes_the_result_of_one_that_was_not_interrupted(tmp_path: Path) -> None:
    texts = []
    for name, interrupted in (("whole", False), ("resumed", True)):
        problem = sites.make_problem(tmp_path / name, "sharing")
        parties, coordinator = problem.make()
        turn = coordinator.start()
        while not turn.over:
            turn = coordinator.advance(
                {one.site.name: one.handle(turn.messages[one.site.name]) for one in parties}
            )
            if interrupted and coordinator.round == 3:
                for site in (*parties, coordinator):
                    site.store.close()
                parties, coordinator = problem.make()
                turn, interrupted = coordinator.start(), False
        texts.append((problem.run_folder("clinic", "coordinator") / "result.json").read_text())
    assert texts[0] == texts[1]
