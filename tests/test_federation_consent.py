"""What a site has agreed to, what it answers without that, and what it writes down of it."""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.federation import sites
from bench.federation.federation_consent_fuzz import fuzz
from bench.federation.sites import APPROVING, approve_all, key_of
from dpsvm.federation import FIELDS, InProcessRunner, Job, MemoryStore, Message, Party, Refusal
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.consent import Consent, consent_path, others_of, write_consent
from dpsvm.federation.facts import MEANING
from dpsvm.federation.journal import FILE as JOURNAL
from dpsvm.federation.journal import Journal
from dpsvm.federation.keys import PublicKey, SigningKey, introduce
from dpsvm.federation.messages import FROM_PARTY, VERSION
from dpsvm.federation.review import Review
from dpsvm.federation.revocations import FILE, Revocations
from dpsvm.federation.secure_sum import Roster, SumKey
from dpsvm.federation.site import Site
from dpsvm.federation.store import StoreError

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(days=1)


@pytest.fixture
def problem(tmp_path: Path) -> sites.Problem:
    """A private run of three sites that all of them have approved."""
    return sites.make_problem(tmp_path / "sites", "sharing")


def config_of(problem: sites.Problem, name: str = "lab") -> SiteConfig:
    return SiteConfig.load(problem.site_file(name))


def consent_file(problem: sites.Problem, name: str = "lab", job: Job | None = None) -> Path:
    return consent_path(config_of(problem, name).consent_folder, job or problem.job)


def approved(problem: sites.Problem, name: str = "lab", **changes: Any) -> None:
    """The consent of one site anew, with something else in it."""
    approve_all(problem.job, [problem.site_file(name)], **changes)


def greet(job: Job) -> Message:
    return Message(job.run, -1, "greet", scalars={"version": VERSION, "job": job.digest})


def opening(party: Party, kind: str = "rehearse") -> Message:
    """What rehearses or begins a run at one party, whose peers have keys of their own."""
    job, keys, signatures = party.job, [], []
    for name in job.parties:
        told = SumKey(name.encode().ljust(32)).introduced(job, key_of(name))
        if name == party.site.name:
            told = party.hello().scalars
        keys.append(bytes.fromhex(str(told["key"])))
        signatures.append(bytes.fromhex(str(told["signature"])))
    sizes = {"sizes": np.array(job.sizes, dtype=np.int64)}
    arrays = {**sizes, **Roster(job, keys, signatures).arrays}
    return Message(job.run, -1 if kind == "rehearse" else 0, kind, arrays, {"rows": 24})


def other_terms(job: Job) -> Job:
    """One number changed, in the last of its digits."""
    settings = {**job.settings, "epsilon": np.nextafter(job.settings["epsilon"], 0.0).item()}
    return replace(job, settings=settings)


def lines_of(problem: sites.Problem, name: str = "lab") -> list[dict[str, Any]]:
    text = (problem.folder / name / "state" / JOURNAL).read_text()
    return [json.loads(line) for line in text.splitlines()]


# A consent


def consent(job: Job, **changes: Any) -> Consent:
    known = {name: key_of(name).public for name in others_of(job, "lab")}
    given = {"issued": NOW, "expires": LATER, "epsilon": 1.0, "total": 3.0} | changes
    return Consent.of(job, "lab", known, **given)


JOB = Job("heart-1", "sharing", ("lab", "ward"), "office", {"rounds": 5})


def load(folder: Path, job: Job = JOB, **changes: Any) -> Consent:
    given: dict[str, Any] = {"name": "lab", "approver": APPROVING.public, "now": NOW} | changes
    return Consent.load(folder, job, given["name"], given["approver"], given["now"])


def test_a_consent_says_what_was_signed(tmp_path: Path) -> None:
    write_consent(tmp_path / "new" / "folder", JOB, consent(JOB), APPROVING)
    found = load(tmp_path / "new" / "folder")
    assert found == consent(JOB)
    assert sorted(found.known) == ["office", "ward"]
    assert found.known["ward"] == key_of("ward").public
    assert found.digest != consent(JOB, total=4.0).digest
    assert (found.epsilon, found.total, found.not_private) == (1.0, 3.0, False)


FORGED = {
    "other terms": (lambda job: consent(replace(job, settings={"rounds": 6})), "is to other terms"),
    "another run": (lambda job: consent(replace(job, run="heart-2")), "is to other terms"),
    "another site": (lambda job: replace(consent(job), site="ward"), "is that of another site"),
    "fewer keys": (lambda job: replace(consent(job), known={}), "does not hold the keys of"),
    "more keys": (
        lambda job: replace(
            consent(job), known={**consent(job).known, "lab": key_of("lab").public}
        ),
        "does not hold the keys of the other sites",
    ),
    "expired": (lambda job: consent(job, expires=NOW), "has expired, 2030-01-01T00:00:00Z"),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_consent_to_something_else_is_refused(what: str, tmp_path: Path) -> None:
    make, told = FORGED[what]
    write_consent(tmp_path, JOB, make(JOB), APPROVING)
    with pytest.raises(Refusal, match=told):
        load(tmp_path)


def test_only_the_approver_of_the_site_can_consent(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="lab has not approved these terms of run heart-1"):
        load(tmp_path)
    for forger in (SigningKey.make("approver"), key_of("lab"), key_of("office")):
        write_consent(tmp_path, JOB, consent(JOB), forger)
        with pytest.raises(Refusal, match="is not signed by the approver of this site"):
            load(tmp_path)
    write_consent(tmp_path, JOB, consent(JOB), APPROVING)
    with pytest.raises(Refusal, match="not signed by the approver"):
        load(tmp_path, approver=PublicKey("approver", bytes(32)))
    revoked = Revocations(tmp_path, "lab", APPROVING.public)
    revoked.add("0" * 64, APPROVING)  # what was signed as a list is no consent
    consent_path(tmp_path, JOB).write_bytes((tmp_path / FILE).read_bytes())
    with pytest.raises(Refusal, match="not signed by the approver"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", float("nan")),
        ("epsilon", -1.0),
        ("epsilon", 1),
        ("epsilon", True),
        ("total", "3"),
        ("not_private", 1),
        ("terms", "0" * 63),
        ("algorithm", "adding"),
        ("run", 5),
    ],
)
def test_a_value_of_another_kind_is_refused_though_it_is_signed(
    name: str, value: Any, tmp_path: Path
) -> None:
    try:
        write_consent(tmp_path, JOB, replace(consent(JOB), **{name: value}), APPROVING)
    except ValueError:
        assert value != value  # JSON has no NaN, and is asked for none
        return
    with pytest.raises(Refusal, match="the consent of lab to run heart-1 is broken"):
        load(tmp_path)


def test_a_file_that_is_no_file_is_refused(tmp_path: Path) -> None:
    consent_path(tmp_path, JOB).mkdir()
    with pytest.raises(Refusal, match="is not a file"):
        load(tmp_path)
    (tmp_path / FILE).mkdir()
    with pytest.raises(Refusal, match="is not a file"):
        Revocations(tmp_path, "lab", APPROVING.public).require("0" * 64)


def test_damaged_files_are_refused_and_nothing_else() -> None:
    found = fuzz(1_500, seed=1)
    assert found.faults == []
    assert sum(found.refused.values()) > 1_200
    assert sum(found.accepted.values()) > 10  # some edits change nothing


def test_what_it_covers() -> None:
    from dpsvm.privacy.accounting import Pure
    from dpsvm.privacy.guarantee import Guarantee
    from dpsvm.privacy.release import Price

    def price(epsilon: float) -> Price:
        return Price(Pure(epsilon), Guarantee(epsilon, 0.0, "row"))

    private = consent(JOB)
    private.require_price(price(1.0), 3.0)
    private.require_price(price(0.5), None)
    with pytest.raises(Refusal, match=r"costs lab epsilon = 1\.01, and it agreed to at most 1$"):
        private.require_price(price(1.01), 1.01)
    with pytest.raises(Refusal, match=r"would have spent epsilon = 3\.01 in all, .* at most 3$"):
        private.require_price(price(1.0), 3.01)
    with pytest.raises(Refusal, match="epsilon = nan in all"):
        private.require_price(price(1.0), float("nan"))
    with pytest.raises(Refusal, match="lab has agreed to private runs only"):
        private.require_price(None, None)
    replace(private, algorithm="align").require_price(None, None)  # of ids alone
    given = consent(JOB, epsilon=None, total=None, not_private=True)
    given.require_price(None, 7.0)
    with pytest.raises(Refusal, match="agreed to none"):
        given.require_price(price(0.1), None)


# Revocations


def test_a_list_of_revocations_only_grows(tmp_path: Path) -> None:
    write_consent(tmp_path, JOB, consent(JOB), APPROVING)
    seen = tmp_path / "seen"
    listed = Revocations(tmp_path, "lab", APPROVING.public, seen)
    assert listed.read() == ()
    assert not seen.exists()
    assert listed.add("0" * 64, APPROVING)
    short = (tmp_path / FILE).read_bytes()
    assert listed.add("1" * 64, APPROVING)
    assert not listed.add("1" * 64, APPROVING)
    quiet = Revocations(tmp_path, "lab", APPROVING.public, seen, notes=False)
    assert quiet.read() == ("0" * 64, "1" * 64)
    assert not seen.exists()
    assert listed.read() == ("0" * 64, "1" * 64)
    assert seen.read_text() == "2\n"
    (tmp_path / FILE).write_bytes(short)
    for one in (listed, quiet):
        with pytest.raises(Refusal, match="is gone, or shorter than it was"):
            one.require("5" * 64)
    (tmp_path / FILE).unlink()
    with pytest.raises(Refusal, match="is gone, or shorter than it was"):
        listed.require("5" * 64)
    for text in ("", "two", "-1", "9" * 20, "1 2"):
        seen.write_text(text)
        with pytest.raises(Refusal, match="has lost count"):
            listed.require("5" * 64)


def test_a_list_of_another_hand_or_site_refuses_everything(tmp_path: Path) -> None:
    write_consent(tmp_path, JOB, consent(JOB), APPROVING)
    forger = SigningKey.make("approver")
    Revocations(tmp_path, "lab", forger.public).add("0" * 64, forger)
    with pytest.raises(Refusal, match="the list of what lab has taken back is not signed by"):
        load(tmp_path)
    (tmp_path / FILE).unlink()
    Revocations(tmp_path, "ward", APPROVING.public).add("0" * 64, APPROVING)
    with pytest.raises(Refusal, match="is that of another site"):
        load(tmp_path)
    (tmp_path / FILE).write_bytes(b"\n\n")
    with pytest.raises(Refusal, match="is broken"):
        load(tmp_path)


@pytest.mark.parametrize("what", ["terms", "digest"])
def test_a_consent_is_taken_back_by_itself_or_by_its_terms(what: str, tmp_path: Path) -> None:
    given = consent(JOB)
    write_consent(tmp_path, JOB, given, APPROVING)
    found = load(tmp_path)
    Revocations(tmp_path, "lab", APPROVING.public).add(getattr(given, what), APPROVING)
    with pytest.raises(Refusal, match="lab has taken back its consent"):
        load(tmp_path)
    with pytest.raises(Refusal, match="lab has taken back its consent"):
        found.require(NOW)  # of a run that is under way
    write_consent(tmp_path, JOB, consent(JOB, total=2.0), APPROVING)
    if what == "digest":
        assert load(tmp_path).total == 2.0
    else:
        with pytest.raises(Refusal, match="lab has taken back its consent"):
            load(tmp_path)


# A site


def test_without_a_consent_nothing_is_read_and_nothing_begun(problem: sites.Problem) -> None:
    consent_file(problem).unlink()
    (problem.folder / "lab" / "data.csv").unlink()
    (problem.folder / "lab" / "ledger.json").unlink()
    for make in (config_of(problem).party, config_of(problem).coordinator):
        with pytest.raises(Refusal, match=r"^lab has not approved these terms of run trial$"):
            make(problem.job)
    assert [line["role"] for line in lines_of(problem)] == ["party", "coordinator"]
    for line in lines_of(problem):
        assert line["terms"] == problem.job.digest
        assert "has not approved these terms" in line["refused"]


def test_one_changed_number_is_another_job(problem: sites.Problem) -> None:
    job = other_terms(problem.job)
    assert job.digest != problem.job.digest
    with pytest.raises(Refusal, match="lab has not approved these terms of run trial"):
        config_of(problem).party(job)
    kept = consent_file(problem).read_bytes()
    consent_file(problem, job=job).write_bytes(kept)
    with pytest.raises(Refusal, match="the consent of lab to run trial is to other terms"):
        config_of(problem).party(job)
    assert lines_of(problem)[-1]["terms"] == job.digest


def test_a_site_has_its_own_key_and_knows_those_of_the_others(problem: sites.Problem) -> None:
    party = config_of(problem).party(problem.job)
    site = party.site
    party.store.close()
    assert site.identity is not None
    assert site.identity.public == key_of("lab").public
    assert dict(site.known) == {name: key_of(name).public for name in sites.PARTIES}
    key = config_of(problem).key_file
    key.chmod(0o644)
    with pytest.raises(StoreError, match="others may read this secret"):
        config_of(problem).party(problem.job)
    key.unlink()
    with pytest.raises(Refusal, match="lab has no key of its own"):
        config_of(problem).party(problem.job)
    APPROVING.save(key)
    with pytest.raises(Refusal, match="the key of lab is its approver's"):
        config_of(problem).party(problem.job)


def test_the_key_of_a_site_is_none_of_an_approver(problem: sites.Problem) -> None:
    path = problem.folder / "lab" / "approver.pub"
    path.write_text(key_of("lab").public.text())
    with pytest.raises(ValueError, match="the key of 'lab', not of an approver"):
        config_of(problem).party(problem.job)
    file = problem.site_file("lab")
    file.write_text(file.read_text().replace('[consent]\napprover = "approver.pub"\n', ""))
    with pytest.raises(Refusal, match=r"lab names no approver in \[consent\]"):
        config_of(problem).party(problem.job)


def test_a_consent_that_expires_ends_a_run_under_way(problem: sites.Problem) -> None:
    approved(problem, expires=LATER)
    times = iter([NOW])
    party = config_of(problem).party(problem.job, clock=lambda: next(times, LATER))
    told = party.handle(greet(problem.job))
    assert (told.kind, told.text("reason")) == (
        "refusal",
        "the consent of lab to run trial has expired, 2030-01-02T00:00:00Z",
    )
    stop = Message(problem.job.run, -1, "stop", scalars={"reason": "enough"})
    assert party.handle(stop).kind == "stopped"  # that it is over may always be told
    party.store.close()


def test_a_consent_that_is_taken_back_ends_a_run_under_way(problem: sites.Problem) -> None:
    parties, coordinator = problem.make()
    config = config_of(problem)
    listed = Revocations(config.consent_folder, "lab", APPROVING.public)

    class Revoking(InProcessRunner):
        """Takes it back after the second round."""

        def deliver(self, messages: Any) -> dict[str, Message | None]:
            if next(iter(messages.values())).round == 3:
                listed.add(problem.job.digest, APPROVING)
            return super().deliver(messages)

    turn = Revoking(parties).run(coordinator)
    assert turn.ended == "stopped"
    assert turn.reason == "lab refused: lab has taken back its consent"
    assert parties[1].held == 2
    for one in (*parties, coordinator):
        one.store.close()
    (config.consent_folder / FILE).unlink()  # seen, as its count was kept
    with pytest.raises(Refusal, match="is gone, or shorter than it was"):
        config.party(problem.job)


def test_a_coordinator_that_has_no_consent_any_more_asks_nothing(problem: sites.Problem) -> None:
    approved(problem, "clinic", expires=LATER)
    times = iter([NOW])
    clock = config_of(problem, "clinic").coordinator(problem.job, clock=lambda: next(times, LATER))
    turn = clock.start()
    assert (turn.ended, turn.messages) == ("stopped", {})
    assert turn.reason == "the consent of clinic to run trial has expired, 2030-01-02T00:00:00Z"
    clock.store.close()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"epsilon": 19.9}, "run trial costs lab epsilon = 20, and it agreed to at most 19.9"),
        ({"total": 0.5}, "in all, and it agreed to at most 0.5"),
        ({"epsilon": None}, "and it agreed to none"),
    ],
)
def test_a_price_above_the_consent_is_refused_before_it_is_paid(
    changes: dict[str, Any], told: str, problem: sites.Problem
) -> None:
    approved(problem, **changes)
    party = config_of(problem).party(problem.job)
    try:
        assert told in party.handle(opening(party)).text("reason")
        assert told in party.handle(opening(party, "begin")).text("reason")
    finally:
        party.store.close()
    assert problem.spent()["lab"] == 0.0


def answer_to_rehearsal(problem: sites.Problem) -> Message:
    party = config_of(problem).party(problem.job)
    try:
        return party.handle(opening(party))
    finally:
        party.store.close()


def test_the_total_counts_what_was_spent_before(problem: sites.Problem) -> None:
    approved(problem, total=0.5)
    reason = answer_to_rehearsal(problem).text("reason")
    found = re.search(r"with run trial lab would have spent epsilon = (\S+) in all", reason)
    assert found is not None
    approved(problem, total=float(found[1]) * 1.001)
    assert answer_to_rehearsal(problem).kind == "ready"
    ledger = config_of(problem).accountant()
    assert ledger is not None
    ledger.spend(1.0, neighbouring="row")
    assert "would have spent" in answer_to_rehearsal(problem).text("reason")


def open_problem(folder: Path) -> sites.Problem:
    return sites.make_problem(folder, "sharing", {"rounds": 4}, private=False)


def test_a_run_without_a_guarantee_needs_the_site_to_say_so(tmp_path: Path) -> None:
    problem = open_problem(tmp_path / "sites")
    parties, coordinator = problem.make()
    assert InProcessRunner(parties).run(coordinator).ended == "done"
    for one in (*parties, coordinator):
        one.store.close()
    file = problem.site_file("lab")
    file.write_text(file.read_text().replace('allow = "not private"\n', ""))
    with pytest.raises(Refusal, match="lab takes part in private runs only"):
        config_of(problem).party(problem.job)
    approved(problem, not_private=False)
    with pytest.raises(Refusal, match=r"has no \[bounds\] and no ledger for them"):
        config_of(problem).party(problem.job)
    with file.open("a") as text:
        text.write('[bounds]\ndata_norm = 1.0\n[budget]\nledger = "ledger.json"\n')
    with pytest.raises(Refusal, match="lab agreed to data_norm = 1, and run trial says nothing"):
        config_of(problem).party(problem.job)


def test_a_site_in_python_needs_none() -> None:
    job = Job("r", "sharing", ("a", "b"), "a", {"rounds": 2}, ids=False)
    found = introduce([Site("a", np.eye(2)), Site("b", np.eye(2))])
    assert found[0].consent is None
    assert Party(job, found[0], MemoryStore()).handle(greet(job)).kind == "hello"
    again = introduce([replace(found[0], known={}), Site("a", np.eye(2)), Site("c")])
    assert again[0].identity is again[1].identity is found[0].identity


# The journal


def test_the_journal_tells_what_was_asked_and_what_left(problem: sites.Problem) -> None:
    parties, coordinator = problem.make()
    assert InProcessRunner(parties).run(coordinator).ended == "done"
    for one in (*parties, coordinator):
        one.store.close()
    lines = lines_of(problem)
    kinds = [line["asked"]["kind"] for line in lines]
    assert kinds == ["greet", "rehearse", "begin", *["price"] * 4, "end"]
    assert {line["by"] for line in lines} == {"clinic"}
    assert {(line["run"], line["terms"]) for line in lines} == {("trial", problem.job.digest)}
    told = lines[4]["answered"]
    assert (lines[4]["asked"]["round"], told["round"]) == (2, 2)
    assert told["kind"] in ("contribution", "masked")
    assert told["bytes"] > 24 * 8
    assert len(told["sha256"]) == 64
    sent = [line for line in lines_of(problem, "clinic") if line["role"] == "coordinator"]
    opened = [(kind, [name]) for kind in kinds[1:3] for name in sites.PARTIES]  # each is told
    others = [(kind, list(sites.PARTIES)) for kind in kinds[3:]]  # what was seen of its ledger
    told = [(line["sent"]["kind"], line["to"]) for line in sent]
    assert told == [("greet", list(sites.PARTIES)), *opened, *others]
    path = problem.folder / "lab" / "state" / JOURNAL
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_others_cannot_forge_a_line(tmp_path: Path) -> None:
    party = Party(JOB, Site("lab", np.eye(2), ids=("a", "b")), MemoryStore())
    party._journal = Journal(tmp_path, JOB, "party", lambda: NOW)
    evil = 'x"}\n{"run": "forged"}\r\x1b[2J\u202e' * 50
    for message in (Message(evil, 1, "ask"), Message("heart-1", 1, "stop", {}, {"reason": evil})):
        party.handle(message)
    party.handle_bytes(evil.encode())
    text = (tmp_path / JOURNAL).read_bytes()
    assert text.isascii()
    assert text.count(b"\n") == len(text.splitlines()) == 3
    assert b"\x1b" not in text
    for line in text.splitlines():
        assert json.loads(line)["run"] == "heart-1"
        assert len(line) < 2_500


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    journal = Journal(tmp_path, JOB, "party", lambda: NOW)
    journal.refused("first")
    whole = (tmp_path / JOURNAL).read_bytes()
    (tmp_path / JOURNAL).write_bytes(whole + whole[:20])
    journal.refused("second")
    first, _, last = (tmp_path / JOURNAL).read_bytes().splitlines()
    assert (first + b"\n", json.loads(last)["refused"]) == (whole, "second")


def test_what_cannot_be_written_down_does_not_leave(problem: sites.Problem) -> None:
    party = config_of(problem).party(problem.job)
    (problem.folder / "lab" / "state" / JOURNAL).mkdir()
    told = party.handle(greet(problem.job))
    assert told.text("reason") == "this site cannot write its journal, and answers nothing"
    (problem.folder / "lab" / "state" / JOURNAL).rmdir()
    assert party.handle(greet(problem.job)).kind == "hello"
    party.store.close()


def test_a_full_disk_stops_the_answer(
    problem: sites.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    parties, coordinator = problem.make()
    write = os.write

    def short(descriptor: int, data: bytes) -> int:
        return write(descriptor, data[:5]) if data.startswith((b"{", b"\n{")) else 0

    monkeypatch.setattr("dpsvm.federation.journal.os.write", short)
    assert "journal, and answers nothing" in parties[0].handle(greet(problem.job)).text("reason")
    turn = coordinator.start()
    assert (turn.ended, turn.messages) == ("stopped", {})
    assert "journal, and sends nothing" in str(turn.reason)


# The review


def test_every_kind_that_leaves_a_party_is_explained() -> None:
    assert set(FROM_PARTY) <= set(MEANING)
    assert {"price", "query", "ask", "neighbours"} <= set(MEANING)
    job = Job("heart-1", "sharing", ("lab", "ward"), "lab", {"rounds": 20})
    text = dict(Review.of(job, config("ward")).lines())
    assert all(name in text["leaves once"] for name in FIELDS["hello"])


def config(name: str = "ward", **more: Any) -> SiteConfig:
    return SiteConfig(name=name, state=Path("state"), **more)


def told_of(job: Job, name: str = "ward", rows: int | None = None) -> str:
    return " ".join(f"{label} {text}" for label, text in Review.of(job, config(name), rows).lines())


def job_of(algorithm: str, settings: dict[str, Any], **more: Any) -> Job:
    owner = None if algorithm == "network" else "lab"
    parties = more.pop("parties", ("lab", "ward", "shop"))
    return Job("r", algorithm, parties, owner, settings, **more)


PRICED = {"epsilon": 2.0, "delta": 1e-5}
ROW = {"privacy": "row", "data_norm": 1.0, "radius": 3.0, "target_bound": 2.0} | PRICED
FACTS = [
    (job_of("sharing", {"rounds": 7}), "ward", "the joint column space of all parties"),
    (job_of("sharing", {"rounds": 7}), "ward", "in at most 7 rounds: 10 numbers in each, 70 in"),
    (job_of("sharing", {"rounds": 7}), "ward", "if all others (lab, shop) act together"),
    (job_of("sharing", {}, sums="open"), "ward", "it also learns whose columns are whose"),
    (job_of("sharing", {}, parties=("lab", "ward")), "ward", "masks hide nothing here"),
    (job_of("sharing", {}), "lab", "the price of each round tells each label"),
    (job_of("sharing", ROW), "ward", "epsilon = 2, delta = 1e-05 (row)"),
    (job_of("sharing", ROW), "ward", "at most data_norm x radius = 3"),
    (job_of("sharing", ROW), "ward", "of a person who has a row at every party: epsilon ="),
    (job_of("sharing", ROW), "ward", "clipped to them"),
    (job_of("frank-wolfe", {"radius": 1.0, "rounds": 5, "sketch": 0}), "ward", "whole raw columns"),
    (job_of("frank-wolfe", {"radius": 1.0, "rounds": 5, "sketch": 4}), "ward", "by linear program"),
    (job_of("network", {"classes": [0, 1]}), "ward", "weights after each round are known to its"),
    (job_of("network", {"classes": [0, 1]}), "ward", "the hub, which relays between all nodes"),
    (job_of("predict", {"model": "old"}), "ward", "it learns that column"),
    (
        job_of(
            "frank-wolfe",
            {"radius": 1.0, "rounds": 5, "sketch": 4, "entry_bound": 1.0, "label_bound": 1.0}
            | PRICED,
            sizes=(2, 3, 4),
        ),
        "lab",
        "your labels are covered by the guarantee",
    ),
]


@pytest.mark.parametrize(("job", "name", "fact"), FACTS, ids=[fact for _, _, fact in FACTS])
def test_a_review_tells_what_can_be_inferred(job: Job, name: str, fact: str) -> None:
    assert fact in told_of(job, name, rows=10)


def test_a_review_of_a_private_run_does_not_call_it_open_and_the_reverse() -> None:
    assert "column space" not in told_of(job_of("sharing", ROW))
    assert "not private" not in told_of(job_of("sharing", ROW))
    assert "none: this run is not private" in told_of(job_of("sharing", {}))


def test_a_review_knows_the_price_without_the_sizes_where_it_can() -> None:
    network = {"classes": [0, 1], "privacy": "objective", "epsilon": 5.0, "data_norm": 1.0}
    review = Review.of(job_of("network", network), config())
    assert review.epsilon == 5.0
    assert "--rows and --columns tell them" in told_of(job_of("network", network))
    assert "on the weights of an update" in told_of(job_of("network", network), rows=30)
    assert Review.of(job_of("sharing", {}), config()).epsilon is None


def test_a_review_reads_no_more_of_the_data_than_its_names(tmp_path: Path) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    (problem.folder / "lab" / "data.csv").write_bytes(b"x0,x1,x2,x3,y\n\xff\x00 no number\n")
    assert Review.of(problem.job, config_of(problem)).columns == 4
    (problem.folder / "lab" / "data.csv").unlink()
    assert Review.of(problem.job, config_of(problem)).columns is None
    assert list(Review.of(problem.job, config_of(problem)).lines())


def test_a_review_for_a_stranger_is_refused() -> None:
    with pytest.raises(Refusal, match="bank is neither a party of run r nor its label owner"):
        Review.of(job_of("sharing", {}), config("bank"))
