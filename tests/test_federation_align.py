"""Alignment: what sites find to have in common, what they tell for it, and training on it."""

from __future__ import annotations

import itertools
import json
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benches import report_of
from federation_problems import Recorder, Sent

from bench.federation.sites import OWNER, PARTIES, Problem, alignment_of, make_problem, with_ids
from dpsvm.federation import (
    Coordinator,
    InProcessRunner,
    Job,
    MemoryStore,
    Message,
    Party,
    Refusal,
    RunFolder,
    Site,
    StoreError,
    Turn,
)
from dpsvm.federation import align as aligning
from dpsvm.federation.alignments import Alignment
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.custody import PARTY, Custody
from dpsvm.federation.frames import FrameError, pack, unpack
from dpsvm.federation.members import Shape
from dpsvm.federation.store import Phase, no_phase
from dpsvm.federation.tables import Table
from dpsvm.privacy import BudgetAccountant
from dpsvm.privacy.accounting import Pure
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import Price

there = find_spec("private_set_intersection") is not None
needs_psi = pytest.mark.skipif(not there, reason="openmined-psi is not installed")

ANN, BOB, EVE, ZOE = "ann", "bob", "eve", "zoe"
IDS: Mapping[str, Sequence[str]] = {
    "clinic": (ZOE, BOB, ANN, "only here"),
    "lab": (ANN, "only there", EVE, BOB),
    "home": (BOB, ANN, "neither"),
}
COMMON = (ANN, BOB)


class Killed(BaseException):
    """The end of a process."""


@dataclass
class Sites:
    """A label owner, whose ids come first, and parties, in memory or in folders."""

    ids: Mapping[str, Sequence[str]]
    folder: Path | None = None
    settings: Mapping[str, Any] | None = None
    phase: Callable[[str], Phase] = lambda site: no_phase

    @property
    def job(self) -> Job:
        """The terms: the label owner is no party."""
        owner, *parties = self.ids
        return Job("ids-1", "align", tuple(parties), owner, self.settings or {})

    def home(self, name: str) -> Path | None:
        """Where a site keeps its alignments."""
        return None if self.folder is None else self.folder / name / "alignments"

    def site(self, name: str) -> Site:
        """What a site brings."""
        state = None if self.folder is None else self.folder / name
        return Site(name, ids=tuple(self.ids[name]), state=state)

    def store(self, name: str) -> Any:
        """Where a site keeps the run; its noise key is given."""
        key = bytes([1 + list(self.ids).index(name)]) * 32
        if self.folder is None:
            return MemoryStore(key)
        where = self.folder / name / "runs" / self.job.run
        if not where.exists():
            where.mkdir(parents=True)
            (where / "noise.key").write_bytes(key)
        return RunFolder(where.parent, self.job.run)

    def make(self) -> tuple[list[Party], Coordinator]:
        """All sites, from what they keep."""
        owner, *names = self.ids
        parties = [
            Party(self.job, self.site(name), self.store(name), phase=self.phase(name))
            for name in names
        ]
        coordinator = Coordinator(
            self.job, self.site(owner), self.store(owner), phase=self.phase(owner)
        )
        return parties, coordinator

    def run(self, sent: Sent | None = None) -> Turn:
        """Run to the end, and let go of the folders."""
        parties, coordinator = self.make()
        try:
            return Recorder(parties, {} if sent is None else sent).run(coordinator)
        finally:
            for one in (coordinator, *parties):
                one.store.close()

    def found(self) -> dict[str, tuple[str, ...]]:
        """What every site keeps."""
        found = {}
        for name in self.ids:
            home = self.home(name)
            assert home is not None
            found[name] = Alignment.load(home, "ids-1", name).ids
        return found


def asked(sites: Sites) -> tuple[list[Party], Coordinator, Turn]:
    """A run whose parties have begun, and the first question about ids."""
    parties, coordinator = sites.make()
    runner = InProcessRunner(parties)
    turn = coordinator.start()
    while next(iter(turn.messages.values())).kind != "match":
        turn = coordinator.advance(runner.deliver(turn.messages))
    return parties, coordinator, turn


def answered(sites: Sites) -> tuple[list[Party], Coordinator, dict[str, Message | None]]:
    """The answers to that."""
    parties, coordinator, turn = asked(sites)
    return parties, coordinator, InProcessRunner(parties).deliver(turn.messages)


# --- what is found

LONG = "x" * 100_000
CASES: dict[str, tuple[list[Sequence[str]], set[str]]] = {
    "orders": ([(ZOE, ANN, BOB), (BOB, ZOE, EVE)], {BOB, ZOE}),
    "one": ([(ANN,), (ANN,)], {ANN}),
    "one of many": ([(ANN, BOB), (EVE, ANN)], {ANN}),
    "all": ([(ANN, BOB), (BOB, ANN), (ANN, BOB)], {ANN, BOB}),
    "unicode": (
        [("Zoë", "Zoe\u0308", "李", "\u2028", "😀"), ("Zoë", "李", "zoë", "😀", "\u2028")],
        {"Zoë", "李", "😀", "\u2028"},  # an accent of its own is another id
    ),
    "long": ([(LONG + "a", LONG + "b"), (LONG + "b", LONG)], {LONG + "b"}),
    "signs": (
        [
            ('a"b', "a,b", "a\nb", "a\r\nb", "a\tb", "", " a", "\0", "=1"),
            ('a"b', "a,b", "a\nb"),
            ('a"b', "a,b", "a\nb", "a", "\0"),
        ],
        {'a"b', "a,b", "a\nb"},
    ),
    "pairs only": ([(ANN, BOB), (ANN, EVE, BOB), (BOB, EVE)], {BOB}),
    "five parties": (
        [[f"p{n}" for n in range(k, 20 + k)] for k in range(6)],
        {f"p{n}" for n in range(5, 20)},
    ),
}


@needs_psi
@pytest.mark.parametrize("case", CASES)
def test_every_site_keeps_what_all_have(case: str, tmp_path: Path) -> None:
    given, common = CASES[case]
    sites = Sites({f"s{place}": ids for place, ids in enumerate(given)}, tmp_path)
    assert sites.run().ended == "done"
    assert set(sites.found().values()) == {tuple(sorted(common))}


@needs_psi
def test_a_label_owner_may_be_a_party_too(tmp_path: Path) -> None:
    job = Job("ids-1", "align", ("clinic", "lab"), "clinic")
    own = {name: Site(name, ids=IDS[name], state=tmp_path / name) for name in job.parties}
    parties = [Party(job, site, MemoryStore()) for site in own.values()]
    turn = InProcessRunner(parties, wire=True).run(Coordinator(job, own["clinic"], MemoryStore()))
    assert turn.ended == "done"
    assert Alignment.load(tmp_path / "clinic" / "alignments", "ids-1", "clinic").ids == COMMON


@needs_psi
def test_only_the_owner_may_read_the_file_which_says_what_it_is(tmp_path: Path) -> None:
    sites = Sites(IDS, tmp_path)
    sites.run()
    home = sites.home("lab")
    assert home is not None
    assert [path.name for path in home.iterdir()] == ["ids-1"]
    assert stat.S_IMODE((home / "ids-1").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    head, told, *ids, last = (home / "ids-1").read_text().splitlines()
    assert head == "dpsvm federation alignment, version 1"
    assert json.loads(told) == {
        "run": "ids-1",
        "job": sites.job.digest,
        "of": "data",
        "samples": 2,
    }
    assert ids == ['"ann"', '"bob"']
    assert last.startswith("sha256 ")


# --- what is told


@needs_psi
def test_neither_ids_nor_their_hashes_travel(tmp_path: Path) -> None:
    sent: Sent = {}
    sites = Sites({name: [f"patient-{one}" for one in ids] for name, ids in IDS.items()}, tmp_path)
    assert sites.run(sent).ended == "done"
    asked_too = [message.encode() for message in asked(Sites(sites.ids))[2].messages.values()]
    everything = b"".join([*set().union(*sent.values()), *asked_too])
    for one in itertools.chain(*sites.ids.values()):
        digest = sha256(one.encode())
        for text in (one.encode(), digest.digest(), digest.hexdigest().encode()):
            assert text not in everything


@needs_psi
def test_a_hello_tells_how_many_ids_and_nothing_of_them() -> None:
    parties, _ = Sites(IDS).make()
    told = dict(parties[0].hello().scalars)
    assert (told["rows"], told["columns"], told["ids"]) == (4, 0, "")


@needs_psi
def test_the_points_of_two_keys_and_of_two_runs_have_nothing_in_common() -> None:
    _, _, replies = answered(Sites(IDS))
    points: list[bytes] = []
    for reply in replies.values():
        assert reply is not None
        points += [row.tobytes() for array in reply.arrays.values() for row in array]
    assert len(points) == len(set(points))
    others = Site("lab", ids=tuple(IDS["lab"]))
    again = Party(Sites(IDS).job, others, MemoryStore())  # with a key of its own
    begin = Message("ids-1", 0, "begin", {"sizes": np.array([4, 3])}, {"rows": 4})
    assert again.handle(begin).kind == "ready"
    _, _, turn = asked(Sites(IDS))
    answer = again.handle(turn.messages["lab"])
    assert not {row.tobytes() for row in answer.arrays["own"]} & set(points)


@needs_psi
def test_the_label_owner_sees_pairs_and_a_party_the_common_set_alone(tmp_path: Path) -> None:
    ids = {"clinic": (ANN, BOB, EVE), "lab": (ANN, BOB), "home": (BOB, EVE)}
    sites = Sites(ids, tmp_path)
    parties, coordinator, replies = answered(sites)
    turn = coordinator.advance(replies)
    for name, message in turn.messages.items():
        assert len(message.arrays["own"]) == 1  # of BOB
        assert len(message.arrays["twice"]) == len(ids[name])
    kept = coordinator.snapshot()["lead"]
    assert kept["common"].tolist() == [1]
    for one in (coordinator, *parties):
        one.store.close()


# --- the same bytes again


@needs_psi
@pytest.mark.parametrize("wire", [False, True])
def test_the_same_noise_keys_give_the_same_bytes(wire: bool, tmp_path: Path) -> None:
    sent: list[Sent] = [{}, {}]
    for place, messages in enumerate(sent):
        sites = Sites(IDS, tmp_path / f"{wire}{place}")
        assert sites.run(messages).ended == "done"
    assert sent[0] == sent[1]
    assert all(len(one) == 1 for one in sent[0].values())
    parties, coordinator = Sites(IDS).make()
    assert InProcessRunner(parties, wire=wire).run(coordinator).ended == "done"


@needs_psi
def test_a_repeated_question_gets_the_same_bytes_and_another_none() -> None:
    parties, _, turn = asked(Sites(IDS))
    question = turn.messages["lab"]
    first = parties[0].handle_bytes(question.encode())
    assert parties[0].handle_bytes(question.encode()) == first
    changed = question.arrays["blinded"][::-1].copy()
    other = Message("ids-1", 1, "match", {"blinded": changed})
    assert "to another question" in parties[0].handle(other).text("reason")


@needs_psi
@pytest.mark.parametrize("victim", IDS)
def test_killed_between_rounds_and_resumed(victim: str, tmp_path: Path) -> None:
    plain, expected = Sites(IDS, tmp_path / "plain"), {}
    plain.run(expected)
    names = ("after draw", "during snapshot", "after snapshot", "after gather")
    trials = 0
    for phase, number in itertools.product(names, range(4)):
        count = itertools.count()

        def kill(site: str, phase: str = phase, number: int = number, count: Any = count) -> Phase:
            def at(name: str) -> None:
                if site == victim and name == phase and next(count) == number:
                    raise Killed

            return at

        sent: Sent = {}
        sites = Sites(IDS, tmp_path / f"{phase}{number}")
        try:
            replace(sites, phase=kill).run(sent)
        except Killed:
            trials += 1
            assert sites.run(sent).ended == "done"
        assert sites.found() == plain.found()
        assert sent == expected
    assert trials >= 6


@needs_psi
def test_other_ids_than_those_it_began_with_are_refused(tmp_path: Path) -> None:
    sites = Sites(IDS, tmp_path)
    parties, coordinator, _ = answered(sites)
    for one in (coordinator, *parties):
        one.store.close()
    changed = replace(sites, ids={**IDS, "lab": (*IDS["lab"][1:], "new")})
    with pytest.raises(StoreError, match="the data of lab are not those the run began with"):
        changed.make()
    RunFolder(tmp_path / "lab" / "runs", "ids-1").close()


# --- what is refused


@needs_psi
@pytest.mark.parametrize(
    ("lab", "settings", "reason"),
    [
        ((EVE,), {}, "no sample is common to all sites: there is nothing to train on"),
        ((ANN, EVE), {"least": 2}, "fewer than 2 samples are common to all sites"),
        ((ANN, BOB, ANN), {}, "lab has a sample id twice"),
        (("a\ud800",), {}, "lab has a sample id that is no text"),
        ((ANN,), {"of": "test"}, "settings: of must be one of 'data', 'predict', got 'test'"),
        ((ANN,), {"least": True}, "settings: least must be a whole number from 1, got True"),
        ((ANN,), {"most": 3}, "settings: unknown key 'most'; known are least, of"),
    ],
)
def test_what_cannot_be_aligned_is_refused_in_words(
    lab: Sequence[str], settings: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    sites = Sites({"clinic": (ANN, BOB, "c"), "lab": lab}, tmp_path, settings)
    turn = sites.run()
    assert turn.ended == "stopped"
    assert str(turn.reason).removeprefix("lab refused: ") == reason
    assert not list(tmp_path.glob("*/alignments/*"))


def test_a_site_without_ids_aligns_nothing() -> None:
    job = Job("ids-1", "align", ("lab",), "clinic")
    party = Party(job, Site("lab", np.eye(2)), MemoryStore())
    begin = Message("ids-1", 0, "begin", {"sizes": np.array([2])}, {"rows": 2})
    assert party.handle(begin).text("reason") == "lab has no sample ids, which run ids-1 aligns"


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "private_set_intersection.python", None)
    monkeypatch.delitem(sys.modules, "dpsvm.federation.intersection", raising=False)
    turn = Sites({"clinic": (ANN,), "lab": (ANN,)}).run()
    assert turn.reason == (
        "an alignment needs openmined-psi: pip install 'dpsvm[psi]', on Linux with x86-64 and "
        "Python 3.11 to 3.13"
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"algorithm": "align", "ids": False}, "matches sample ids: ids cannot be false"),
        ({"algorithm": "align", "alignment": "x"}, "'align' has no use for an alignment"),
        (
            {"algorithm": "network", "label_owner": None, "alignment": "x"},
            "'network' has no use for an alignment",
        ),
        ({"alignment": "x", "ids": False}, "matches rows by sample ids: ids cannot be false"),
        ({"alignment": "../x"}, "alignment must be a name of letters"),
        ({"alignment": 3}, "alignment must be a name of letters"),
        ({"algorithm": "align", "label_owner": None}, "'align' needs a label_owner, got none"),
    ],
)
def test_terms_that_make_no_sense_are_refused(changes: dict[str, Any], told: str) -> None:
    fields: dict[str, Any] = {"algorithm": "sharing", "label_owner": "lab"}
    with pytest.raises(ValueError, match=told):
        Job("r", parties=("lab",), **(fields | changes))


def test_points_beyond_a_frame_are_refused() -> None:
    job = Job("ids-1", "align", ("lab",), "clinic")
    terms = aligning.settings_of(job)
    aligning.agree(terms, Shape(10_000_000, (10_000_000,)))
    for shape in (Shape(1, (17_000_000,)), Shape(33_000_000, (1,)), Shape(9, (3_000_000,) * 12)):
        with pytest.raises(ValueError, match="bytes of points are too many for a message"):
            aligning.agree(terms, shape)


# --- a peer that does not follow the protocol


def spoilt(rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Points with something wrong."""
    place, kind = random.integers(len(rows)), random.integers(9)
    rows = rows.copy()
    if kind == 0:
        rows[place] = random.integers(0, 256, 33)
    elif kind == 1:
        rows[place] = 0
    elif kind == 2:
        rows[place, 0] = 4
    elif kind == 3:
        rows[place] = 255
    elif kind == 4:
        rows = rows[:-1]
    elif kind == 5:
        rows = np.concatenate([rows, rows])
    elif kind == 6:
        rows = rows[:, :-1]
    elif kind == 7:
        rows[place] = rows[place - 1]
    else:
        rows[place, random.integers(33)] ^= np.uint8(1 << random.integers(8))
    return np.ascontiguousarray(rows)


def one_line(reason: str) -> None:
    """What is said of it."""
    assert reason
    assert "\n" not in reason


@needs_psi
def test_a_party_refuses_what_are_no_points_and_goes_on() -> None:
    random = np.random.default_rng(1)
    parties, coordinator, turn = asked(Sites(IDS))
    lab, refused = parties[0], 0
    kept = lab.store.load()
    question = turn.messages["lab"]
    for _ in range(200):
        wrong = spoilt(question.arrays["blinded"], random)
        answer = lab.handle(Message("ids-1", 1, "match", {"blinded": wrong}))
        if answer.kind == "refusal":
            one_line(answer.text("reason"))
            refused += 1
        else:  # another point of the curve: asked by somebody with other ids
            lab.store.save(kept)
            lab.restore()
    assert refused > 150
    second = coordinator.advance(InProcessRunner(parties).deliver(turn.messages))
    kept, refused = lab.store.load(), 0
    for _ in range(200):
        arrays = dict(second.messages["lab"].arrays)
        field = ("own", "twice")[random.integers(2)]
        arrays[field] = spoilt(arrays[field], random)
        answer = lab.handle(Message("ids-1", 2, "common", arrays))
        if answer.kind == "refusal":
            one_line(answer.text("reason"))
            refused += 1
        else:  # fewer samples, or another point for one that is not common
            assert answer.whole("samples") == len(arrays["own"])
            lab.store.save(kept)
            lab.restore()
    assert refused > 120
    assert lab.handle(second.messages["lab"]).whole("samples") == 2


@needs_psi
def test_a_label_owner_refuses_what_are_no_points() -> None:
    random = np.random.default_rng(2)
    parties, coordinator, replies = answered(Sites(IDS))
    kept = coordinator.store.load()
    reply = replies["lab"]
    assert reply is not None
    stopped = 0
    for _ in range(200):
        field = ("own", "twice", "blinded")[random.integers(3)]
        arrays = {**reply.arrays, field: spoilt(reply.arrays[field], random)}
        turn = coordinator.advance({**replies, "lab": Message("ids-1", 1, "matched", arrays)})
        if turn.ended == "stopped":
            one_line(str(turn.reason))
            stopped += 1
        coordinator.store.save(kept)
        coordinator.restore()
    assert stopped > 100
    assert InProcessRunner(parties).run(coordinator).ended == "done"


@needs_psi
@pytest.mark.parametrize("field", ["own", "blinded"])
def test_nobody_asks_for_more_ids_than_it_has_told(field: str) -> None:
    from dpsvm.federation.intersection import Server

    more = Server(Noise(7)).own([ANN, BOB, EVE, ZOE, "guessed"])
    _, coordinator, replies = answered(Sites(IDS))
    reply = replies["lab"]
    assert reply is not None
    told = Message("ids-1", 1, "matched", {**reply.arrays, field: more})
    turn = coordinator.advance({**replies, "lab": told})
    assert turn.ended == "stopped"
    assert turn.reason in (
        "a party has sent more or fewer points than it has ids",
        "4 points are needed, got 5",
    )
    _, _, first = asked(Sites(IDS))
    again = Sites(IDS).make()[0][0]
    begin = Message("ids-1", 0, "begin", {"sizes": np.array([4, 3])}, {"rows": 4})
    assert again.handle(begin).kind == "ready"
    answer = again.handle(Message("ids-1", 1, "match", {"blinded": more}))
    assert answer.text("reason") == "4 points are needed, got 5"
    assert again.handle(first.messages["lab"]).kind == "matched"


@needs_psi
def test_bytes_changed_on_the_way_are_no_message() -> None:
    random = np.random.default_rng(3)
    parties, _, turn = asked(Sites(IDS))
    data = turn.messages["lab"].encode()
    for _ in range(300):
        wrong = bytearray(data)
        for place in random.integers(0, len(data), 3):
            wrong[place] ^= 1 + int(random.integers(255))
        answer = Message.decode(parties[0].handle_bytes(bytes(wrong[: random.integers(1, 500)])))
        one_line(answer.text("reason"))
    assert parties[0].handle(turn.messages["lab"]).kind == "matched"


@needs_psi
def test_a_label_owner_that_names_a_sample_of_another_is_found_out() -> None:
    from dpsvm.federation.intersection import Server

    parties, coordinator, replies = answered(Sites(IDS))
    turn = coordinator.advance(replies)
    lab, server = parties[0], Server(Noise(5))
    reply = replies["lab"]
    assert reply is not None
    arrays = {"own": server.own([ANN, ZOE]), "twice": server.again(reply.arrays["blinded"], 4)}
    answer = lab.handle(Message("ids-1", 2, "common", arrays))
    assert "not common to the label owner and this site" in answer.text("reason")
    assert lab.handle(turn.messages["lab"]).kind == "aligned"


@needs_psi
def test_the_kinds_of_an_alignment_have_their_rounds() -> None:
    parties, coordinator, replies = answered(Sites(IDS))
    second = coordinator.advance(replies).messages["lab"]
    first = Message("ids-1", 2, "match", {"blinded": second.arrays["twice"]})
    assert "are awaited, got a match" in parties[0].handle(first).text("reason")
    end = {"reason": "aligned", "restore": False}
    early = parties[0].handle(Message("ids-1", 2, "end", scalars=end))
    assert early.text("reason") == "the run ended before it has found anything"
    assert parties[0].handle(second).kind == "aligned"
    third = Message("ids-1", 3, "common", second.arrays)
    assert parties[0].handle(third).text("reason") == "the job has 2 rounds, got round 3"


# --- bytes in frames


def test_frames_hold_bytes_as_they_are() -> None:
    given = np.arange(66, dtype=np.uint8).reshape(2, 33)
    _, [found] = unpack(pack({}, [given]))
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, given)
    assert len(pack({}, [given])) < len(pack({}, [])) + 66 + 20
    for kind in ("u2", "u8", "i1", "b1", "S1"):
        with pytest.raises(FrameError, match="no array of"):
            pack({}, [given.astype(kind)])


# --- files of alignments


def test_a_file_that_was_changed_is_no_alignment(tmp_path: Path) -> None:
    found = Alignment("ids-1", "0" * 64, "data", (ANN, BOB))
    found.save(tmp_path)
    path, text = tmp_path / "ids-1", found.text()
    assert Alignment.load(tmp_path, "ids-1", "lab") == found
    random = np.random.default_rng(4)
    wrong = [text[:-1], text + "\n", "", "\n", text.replace("bob", "bod"), text.replace("2", "3")]
    for place in random.integers(0, len(text), 200):
        wrong.append(f"{text[:place]}{chr(32 + random.integers(90))}{text[place + 1 :]}")
    for one in wrong:
        path.write_text(one)
        if one != text:
            with pytest.raises(StoreError, match="no alignment, or not all of one") as caught:
                Alignment.load(tmp_path, "ids-1", "lab")
            one_line(str(caught.value))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(StoreError, match="no alignment"):
        Alignment.load(tmp_path, "ids-1", "lab")


def test_a_file_of_another_run_is_refused_and_never_replaced(tmp_path: Path) -> None:
    found = Alignment("ids-1", "0" * 64, "data", (ANN,))
    found.save(tmp_path)
    (tmp_path / "ids-1").rename(tmp_path / "ids-2")
    with pytest.raises(StoreError, match="the alignment of run ids-1, not of ids-2"):
        Alignment.load(tmp_path, "ids-2", "lab")
    with pytest.raises(StoreError, match="alignment ids-2 is there, of a run with other terms"):
        replace(found, run="ids-2", job="1" * 64).save(tmp_path)
    replace(found, run="ids-2").save(tmp_path)
    with pytest.raises(Refusal, match="lab has no alignment ids-3: a run of that name"):
        Alignment.load(tmp_path, "ids-3", "lab")


# --- training on what was found

ROWS = 60
KEPT = [row for row in range(ROWS) if row % 10 != 3]


def two_problems(folder: Path, algorithm: str) -> tuple[Problem, Problem]:
    """Sites with nine tenths in common, each in its own order; and data aligned beforehand."""
    plain = with_ids(
        make_problem(folder / "plain", algorithm, rows=ROWS), dict.fromkeys(PARTIES, KEPT)
    )
    rng = np.random.default_rng(6)
    rows = {
        party: rng.permutation(sorted({*range(ROWS)} - {*range(3 + 10 * place, ROWS, 30)})).tolist()
        for place, party in enumerate(PARTIES)
    }
    problem = make_problem(folder / "aligned", algorithm, rows=ROWS)
    return plain, with_ids(problem, rows, alignment="ids-1")


def carried_out(problem: Problem, *, wire: bool) -> Turn:
    """A run in this process."""
    parties, coordinator = problem.make()
    try:
        return InProcessRunner(parties, wire=wire).run(coordinator)
    finally:
        for one in (coordinator, *parties):
            one.store.close()


def models_of(problem: Problem) -> dict[str, str]:
    """Digests of the models and of the result, with the history."""
    kept = problem.kept()
    return {one: kept[one] for one in kept if one.endswith((".json",)) and "/trial/" in one}


@needs_psi
@pytest.mark.parametrize("wire", [False, True])
@pytest.mark.parametrize("algorithm", ["sharing", "frank-wolfe"])
def test_training_gives_the_bytes_of_data_aligned_beforehand(
    algorithm: str, wire: bool, tmp_path: Path
) -> None:
    plain, problem = two_problems(tmp_path, algorithm)
    assert carried_out(plain, wire=wire).ended == "done"
    assert carried_out(alignment_of(problem), wire=wire).ended == "done"
    assert carried_out(problem, wire=wire).ended == "done"
    assert len(models_of(plain)) == 4
    assert models_of(problem) == models_of(plain)
    assert problem.charges() == plain.charges()
    kept = Alignment.load(problem.folder / "lab" / "state" / "alignments", "ids-1", "lab")
    assert kept.ids == tuple(f"p{row:05}" for row in KEPT)


@needs_psi
def test_training_without_the_alignment_is_refused(tmp_path: Path) -> None:
    _, problem = two_problems(tmp_path, "sharing")
    config = SiteConfig.load(problem.site_file("lab"))
    with pytest.raises(Refusal, match="lab has no alignment ids-1"):
        config.member(problem.job)
    rows = replace(problem.job, alignment=None)
    member, owner = config.member(rows), SiteConfig.load(problem.site_file(OWNER)).owner(rows)
    assert member.digest() != owner.digest()


@needs_psi
def test_samples_that_are_gone_and_other_samples_are_refused(tmp_path: Path) -> None:
    _, problem = two_problems(tmp_path, "sharing")
    carried_out(alignment_of(problem), wire=False)
    data = problem.folder / "lab" / "data.csv"
    lines = [line for line in data.read_text().splitlines() if not line.startswith("p00001,")]
    data.write_text("\n".join([*lines, ""]))
    with pytest.raises(Refusal, match="lab has not all samples of alignment ids-1 any more"):
        SiteConfig.load(problem.site_file("lab")).member(problem.job)
    site = problem.site_file(OWNER)
    site.write_text(site.read_text() + '\n[predict]\nfile = "data.csv"\n')
    predicts = replace(problem.job, algorithm="predict", run="p", settings={"model": "trial"})
    where = problem.folder / OWNER / "state" / "coordinator" / "trial"
    where.mkdir(parents=True, exist_ok=True)
    kept = {"format": "dpsvm federation model, version 1", "algorithm": "sharing"}
    (where / "result.json").write_text(json.dumps(kept))
    with pytest.raises(Refusal, match=r"is of \[data\] samples, and run p has those of \[predict"):
        SiteConfig.load(site).owner(predicts)


def test_rows_are_chosen_by_their_ids() -> None:
    table = Table(np.arange(6.0).reshape(3, 2), ("a", "b"), (ANN, BOB, EVE), np.array([1, 2, 3]))
    found = table.chosen((EVE, ANN))
    assert found.columns.tolist() == [[4, 5], [0, 1]]
    assert (found.ids, found.labels.tolist()) == ((EVE, ANN), [3, 1])
    with pytest.raises(KeyError):
        table.chosen((ZOE,))


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_who_is_in_the_data_is_known_of_aligned_rows(relation: str) -> None:
    ledger = BudgetAccountant(2.0, neighbouring=relation)
    site, price = Site("lab", ledger=ledger), Price(Pure(1.0), Guarantee(1.0, 0.0, relation))
    job = Job("r", "sharing", ("lab",), "lab", alignment="ids-1")
    custody = Custody(job, site, MemoryStore(), PARTY)
    custody.stream(begun=False)
    if relation == "replace":
        custody.check(price)
        return
    for ask in (custody.check, lambda price: custody.reserve(price, 1)):
        with pytest.raises(Refusal, match="a guarantee of add-remove hides who is in the data"):
            ask(price)
    assert (ledger.charges, ledger.reservations) == ((), ())


@needs_psi
def test_a_private_site_may_align() -> None:
    job = Job("ids-1", "align", ("lab",), "clinic")
    lab = Party(job, Site("lab", ids=(ANN,), private=True), MemoryStore())
    owner = Coordinator(job, Site("clinic", ids=(ANN,)), MemoryStore())
    assert InProcessRunner([lab]).run(owner).ended == "done"


@needs_psi
def test_the_bench_of_alignment_runs() -> None:
    report = report_of("federation/federation_alignment.py", "--quick")
    assert "every site has the common ids: yes" in report
    assert "alignment of 3 sites x 100 ids, 90 in common" in report
