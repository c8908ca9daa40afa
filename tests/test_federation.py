"""The contract of the state machines: what every runner relies on."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federation_problems import (
    BLOCKS,
    IDS,
    KEYS,
    LABELS,
    NAMES,
    PRIVATE,
    SETTINGS,
    SHARES,
    TABLE,
    Sent,
    World,
    job_of,
    opening,
    run,
    site_of,
)
from scipy import sparse

from dpsvm import federation
from dpsvm.admm import NetworkADMM, SharingADMMClassifier
from dpsvm.federation import (
    FIELDS,
    InProcessRunner,
    Job,
    MemoryStore,
    Message,
    Party,
    RunFolder,
    Site,
    StoreError,
)
from dpsvm.federation.coordinator import Coordinator
from dpsvm.federation.messages import FROM_PARTY
from dpsvm.federation.secure_sum import SumKey
from dpsvm.frank_wolfe.distributed import DistributedFrankWolfe
from dpsvm.privacy import BudgetAccountant

every_run = pytest.mark.parametrize("name", SETTINGS)
every_private_run = pytest.mark.parametrize("name", PRIVATE)


class Killed(BaseException):
    """The end of a process."""


def weights_of(world: World) -> list[np.ndarray]:
    found = world.outcome()
    return [np.array(json.loads(found[site])["weights"]) for site in NAMES]


# --- the same bits as in one place


def test_sharing_gives_the_bits_of_the_estimator(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, open")
    turn, _ = run(world)
    assert turn.ended == "done"
    model = SharingADMMClassifier(rounds=4).fit(BLOCKS, LABELS)
    for own, wanted in zip(weights_of(world), model.coefs_, strict=True):
        assert np.array_equal(own, wanted)


def test_masked_sums_change_no_more_than_their_last_digits(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing")
    run(world)
    model = SharingADMMClassifier(rounds=4).fit(BLOCKS, LABELS)
    for own, wanted in zip(weights_of(world), model.coefs_, strict=True):
        assert own == pytest.approx(wanted, rel=1e-9)


def test_network_gives_the_bits_of_the_estimator(tmp_path: Path) -> None:
    world = World.of(tmp_path, "network")
    run(world)
    model = NetworkADMM(graph="path", rounds=5, classes=[-1, 1])
    model.fit([TABLE[own] for own in SHARES], [LABELS[own] for own in SHARES])
    assert np.array_equal(np.array(weights_of(world)), model.coefs_)
    assert json.loads(world.outcome()["hub"])["weights"] == model.coef_[0].tolist()


def test_frank_wolfe_gives_the_bits_of_the_solver(tmp_path: Path) -> None:
    settings = {"radius": 1.0, "rounds": 5, "sketch": 8}
    world = World.of(tmp_path, "frank-wolfe", settings=settings)
    run(world)
    found = DistributedFrankWolfe(**settings).solve(BLOCKS, LABELS)
    told = json.loads(world.outcome()["hub"])["weights"]
    assert np.array_equal(np.concatenate(told), found.x)


@every_run
def test_a_run_is_repeatable_to_the_byte(name: str, tmp_path: Path) -> None:
    sent: list[Sent] = [{}, {}]
    worlds = [World.of(tmp_path / str(k), name) for k in range(2)]
    for world, messages in zip(worlds, sent, strict=True):
        assert run(world, messages)[0].ended == "done"
    assert sent[0] == sent[1]
    assert worlds[0].outcome() == worlds[1].outcome()


# --- what leaves a party


@every_run
def test_nothing_leaves_a_party_but_the_fields_of_the_protocol(name: str, tmp_path: Path) -> None:
    sent: Sent = {}
    world = World.of(tmp_path, name)
    run(world, sent)
    lengths = {"sharing": {"words": 33, "prediction": 30}, "network": {"weights": 7}}
    lengths["frank-wolfe"] = {"sketch": 8}
    for data in set().union(*sent.values()):
        message = Message.decode(data)
        assert message.kind in FROM_PARTY
        held = set(message.arrays) | set(message.scalars)
        optional = {field for field, what in FIELDS[message.kind].items() if not what.needed}
        assert held | optional == set(FIELDS[message.kind])
        for field, array in message.arrays.items():
            assert array.shape == (lengths[world.job.algorithm][field],)


def test_a_hello_tells_sizes_a_digest_and_a_budget_and_no_more(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    party = Party(world.job, world.site("lab"), world.store("lab"))
    assert dict(party.hello().scalars) == {
        "version": 2,
        "job": world.job.digest,
        "party": "lab",
        "rows": 30,
        "columns": 2,
        "ids": world.site("lab").digest(),
        "held": -1,
        "budget": 100.0,
        "ledger": 0,
        "head": BudgetAccountant(path=world.ledger("lab")).head(),
        **SumKey.of(bytes([2]) * 32).introduced(world.job, KEYS["lab"]),
    }
    assert {name: array.any() for name, array in party.hello().arrays.items()} == {
        "seen_ledgers": False,
        "seen_heads": False,
    }


def test_noise_is_each_partys_own_secret(tmp_path: Path) -> None:
    job = job_of("sharing, private", sums="open")
    twins = []
    for _ in range(2):
        ledger = BudgetAccountant(100.0, 1e-4, neighbouring="row")
        site = site_of("lab", BLOCKS[1], ids=IDS, salt="s", ledger=ledger)
        twins.append(Party(job, site, MemoryStore()))
    scalars: dict[str, Any] = {"rho": 0.05, "keep": False}
    price = Message("run-1", 1, "price", {"price": np.zeros(30)}, scalars)
    answers = []
    for party in twins:
        assert party.handle(opening(party)).kind == "ready"
        answers.append(party.handle(price).arrays["prediction"])
    assert not np.any(answers[0] == answers[1])


# --- once, and the same again


def begun(world: World, site: str = "lab") -> tuple[Party, Message]:
    """A party in round 1, and the question that it was asked there."""
    party = Party(world.job, world.site(site), world.store(site))
    sizes = [len(own) for own in SHARES]
    if world.job.algorithm != "network":
        sizes = [block.shape[1] for block in BLOCKS]
    rows = 0 if world.job.algorithm == "network" else 30
    assert party.handle(opening(party, "begin", sizes, rows)).kind == "ready"
    question = {
        "sharing": Message(
            "run-1", 1, "price", {"price": np.ones(30)}, {"rho": 0.05, "keep": False}
        ),
        "network": Message("run-1", 1, "neighbours", {"weights": np.zeros((2, 7))}),
        "frank-wolfe": Message("run-1", 1, "query", {"residual": np.ones(8)}),
    }[world.job.algorithm]
    return party, question


@every_private_run
def test_a_repeated_request_gets_the_same_noisy_bytes(name: str, tmp_path: Path) -> None:
    world = World.of(tmp_path, name)
    party, question = begun(world)
    first = party.handle_bytes(question.encode())
    assert Message.decode(first).kind != "refusal"
    assert party.handle_bytes(question.encode()) == first
    party.store.close()
    again = Party(world.job, world.site("lab"), world.store("lab"))
    assert again.handle_bytes(question.encode()) == first
    assert world.charges()["lab"] == 1


@every_private_run
def test_another_question_for_an_answered_round_is_refused(name: str, tmp_path: Path) -> None:
    party, question = begun(World.of(tmp_path, name))
    party.handle(question)
    changed = {field: array + 1.0 for field, array in question.arrays.items()}
    other = Message("run-1", 1, question.kind, changed, question.scalars)
    assert "to another question" in party.handle(other).text("reason")


def test_rounds_out_of_order_are_refused_and_change_nothing(tmp_path: Path) -> None:
    party, question = begun(World.of(tmp_path, "sharing"))
    early = Message("run-1", 2, "price", question.arrays, question.scalars)
    assert "awaits round 1, got a price for round 2" in party.handle(early).text("reason")
    assert party.handle(question).kind == "masked"
    late = Message("run-1", 0, "price", question.arrays, question.scalars)
    assert "awaits round 2" in party.handle(late).text("reason")


def test_a_request_that_fails_halfway_leaves_the_party_where_it_was(tmp_path: Path) -> None:
    party, question = begun(World.of(tmp_path, "sharing"))
    short = Message("run-1", 1, "price", {"price": np.ones(3)}, question.scalars)
    assert "3" in party.handle(short).text("reason")
    wrong = Message("run-1", 1, "query", {"residual": np.ones(3)})
    assert party.handle(wrong).text("reason") == "a price is awaited, got a query"
    assert party.handle(question).kind == "masked"


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_prices_that_are_not_finite_are_refused(wrong: float, tmp_path: Path) -> None:
    party, question = begun(World.of(tmp_path, "sharing, private"))
    price = Message("run-1", 1, "price", {"price": np.full(30, wrong)}, question.scalars)
    assert "not finite" in party.handle(price).text("reason")


def test_huge_prices_do_not_show_which_rows_are_empty(tmp_path: Path) -> None:
    table = sparse.csr_array(np.where(np.arange(30)[:, None] == 4, 0.0, BLOCKS[1]))
    settings = {"rounds": 4, "rho": 0.05, "privacy": "column", "epsilon": 2.0, "delta": 1e-5}
    settings |= {"column_norm": 3.0, "target_norm": 2.0}
    job = job_of("sharing, private", settings=settings)
    ledger = BudgetAccountant(100.0, 1e-4, neighbouring="column")
    party = Party(job, site_of("lab", table, ids=IDS, salt="s", ledger=ledger), MemoryStore())
    assert party.handle(opening(party)).kind == "ready"
    huge = {"price": np.full(30, 1e308)}
    price = Message("run-1", 1, "price", huge, {"rho": 0.05, "keep": False})
    assert "finite numbers" in party.handle(price).text("reason")


def test_no_party_answers_more_rounds_than_the_job_names(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing")
    party, question = begun(world)
    for number in range(1, 5):
        asked = Message("run-1", number, "price", question.arrays, question.scalars)
        assert party.handle(asked).kind == "masked"
    beyond = Message("run-1", 5, "price", question.arrays, question.scalars)
    assert party.handle(beyond).text("reason") == "the job has 4 rounds, got round 5"


def test_a_missed_certificate_closes_a_private_node_for_good(tmp_path: Path) -> None:
    world = World.of(tmp_path, "network, private", sum_range=1e15)
    party, question = begun(world)
    wild = Message("run-1", 1, "neighbours", {"weights": np.full((2, 7), 1e12)})
    reason = party.handle(wild).text("reason")
    assert "could not certify" in reason
    assert party.handle(question).text("reason") == reason
    party.store.close()
    again = Party(world.job, world.site("lab"), world.store("lab"))
    assert again.handle(question).text("reason") == reason


def test_an_error_that_nobody_foresaw_is_a_refusal(tmp_path: Path) -> None:
    party, question = begun(World.of(tmp_path, "sharing"))
    party.store.save = None  # type: ignore[assignment]
    assert party.handle(question).text("reason") == "lab failed, and knows why"
    assert str(party.refused).startswith("TypeError")


def test_a_ledger_without_end_can_say_hello() -> None:
    ledger = BudgetAccountant(np.inf, 1e-4, neighbouring="row")
    site = site_of("lab", BLOCKS[1], ids=IDS, salt="s", ledger=ledger)
    party = Party(job_of("sharing, private"), site, MemoryStore())
    assert party.hello().scalars["budget"] is None


def test_malformed_and_oversized_bytes_are_refused(tmp_path: Path) -> None:
    party, _ = begun(World.of(tmp_path, "sharing"))
    for data in (b"", b"not a message", b"DPSVMFR1" + bytes(40)):
        assert Message.decode(party.handle_bytes(data)).kind == "refusal"
    with pytest.raises(ValueError, match="above the limit of 10"):
        Message.decode(bytes(11), largest=10)


# --- sites that do not fit together


def stopped(world: World, **changes: dict[str, Any]) -> tuple[str, list[Party]]:
    """Why a run stops; nothing must have been charged."""
    turn, parties = run(world, changes=changes)
    assert turn.ended == "stopped"
    assert all(count == 0 for count in world.charges().values())
    assert all(party.stopped == turn.reason for party in parties)  # told to every side
    return str(turn.reason), parties


def test_another_run_is_refused_with_the_reason_on_both_sides(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    party = Party(world.job, world.site("lab"), world.store("lab"))
    job = job_of("sharing, private", run="run-2")
    coordinator = Coordinator(job, world.site("hub"), MemoryStore())
    turn = InProcessRunner([party]).run(coordinator)
    assert turn.reason is not None
    answer = party.handle(coordinator.start().messages["lab"])
    assert answer.text("reason") == "lab takes part in run run-1, not in run-2" == party.refused


def test_other_terms_are_refused(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    other = job_of("sharing, private", settings={"rounds": 9})
    reason, _ = stopped(world, lab={"job": other})
    assert reason == ("lab refused: lab was given other terms for run run-1 than the coordinator")


def test_another_version_of_the_protocol_is_refused(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing")
    party = Party(world.job, world.site("lab"), world.store("lab"))
    greet = Message("run-1", -1, "greet", scalars={"version": 1, "job": world.job.digest})
    assert "speaks version 2 of the protocol" in party.handle(greet).text("reason")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ids": (*IDS[1:], IDS[0])}, "the sample ids of lab are not those of clinic"),
        ({"salt": "another salt of theirs"}, "the sample ids of lab are not those of clinic"),
        ({"table": BLOCKS[1][:29], "ids": IDS[:29]}, "clinic has 30 rows, lab has 29"),
    ],
    ids=["order", "salt", "rows"],
)
def test_rows_that_do_not_match_are_refused(
    changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    assert reason in stopped(World.of(tmp_path, "sharing, private"), lab={"site": changes})[0]


def test_nodes_with_other_columns_are_refused(tmp_path: Path) -> None:
    world = World.of(tmp_path, "network")
    table = TABLE[SHARES[1], :6]
    reason, _ = stopped(world, lab={"site": {"table": table}})
    assert reason == "the nodes must have the same columns, got [7, 6, 7] of them"


def test_a_coordinator_that_lies_about_sizes_is_refused(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    party = Party(world.job, world.site("lab"), world.store("lab"))
    begin = opening(party, sizes=(3, 5, 2))
    assert "the coordinator thinks otherwise" in party.handle(begin).text("reason")
    assert world.charges()["lab"] == 0


@pytest.mark.parametrize("sizes", [(1, 2, -2), (3, 2, 1), (0, 2, 2)])
def test_the_noise_of_frank_wolfe_does_not_depend_on_what_a_coordinator_says(
    sizes: tuple[int, ...], tmp_path: Path
) -> None:
    world = World.of(tmp_path, "frank-wolfe, private")
    party = Party(world.job, world.site("lab"), world.store("lab"))
    assert party.handle(opening(party, sizes=sizes)).kind == "refusal"
    assert world.charges()["lab"] == 0
    turn, _ = run(World.of(tmp_path / "none", "frank-wolfe, private", sizes=None))
    assert "needs sizes, the columns of each party" in turn.reason


def test_sizes_that_were_not_agreed_are_refused(tmp_path: Path) -> None:
    world = World.of(tmp_path, "frank-wolfe, private", sizes=(3, 2, 9))
    assert stopped(world)[0] == "sizes of (3, 2, 9) were agreed, the parties have (3, 2, 2)"


def test_rows_labels_and_ids_of_a_site_must_agree() -> None:
    with pytest.raises(ValueError, match="lab has 30 rows and 29 labels"):
        Site("lab", TABLE, labels=LABELS[:29])
    with pytest.raises(ValueError, match="lab has 30 rows and 2 ids"):
        Site("lab", TABLE, ids=("a", "b"))
    with pytest.raises(ValueError, match="NaN"):
        Site("lab", np.full((2, 2), np.nan))


# --- budgets


@every_private_run
def test_every_site_that_pays_is_charged_once_for_all(name: str, tmp_path: Path) -> None:
    world = World.of(tmp_path, name)
    run(world)
    paying = {"frank-wolfe": {"hub": 1}}.get(world.job.algorithm, {"hub": 0})
    assert world.charges() == dict.fromkeys(NAMES, 1) | paying


@every_private_run
def test_an_exhausted_budget_is_refused_and_nothing_charged(name: str, tmp_path: Path) -> None:
    world = World.of(tmp_path, name)
    world.new_ledger("lab", 0.1, 1e-6)
    turn, parties = run(world)
    assert "does not fit: 0 of 0.1 is spent" in str(turn.reason)
    assert "does not fit" in str(parties[1].stopped)
    assert set(world.charges().values()) == {0}


def test_a_rehearsal_tells_of_it_before_any_party_is_charged(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    world.new_ledger("registry", 0.1, 1e-6)
    parties = [Party(world.job, world.site(site), MemoryStore()) for site in NAMES]
    coordinator = Coordinator(world.job, world.site("hub"), MemoryStore(), dry=True)
    turn = InProcessRunner(parties).run(coordinator)
    assert turn.ended == "stopped"
    assert "registry refused" in str(turn.reason)
    assert set(world.charges().values()) == {0}


def test_a_rehearsal_in_the_middle_of_a_run_changes_nothing(tmp_path: Path) -> None:
    answers = []
    for number in range(2):
        party, question = begun(World.of(tmp_path / str(number), "sharing, private"))
        if number == 1:
            assert party.handle(opening(party, "rehearse")).kind == "ready"
        answers.append(party.handle_bytes(question.encode()))
    assert answers[0] == answers[1]


def test_a_private_run_without_a_ledger_is_refused(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    turn, _ = run(world, changes={"lab": {"site": {"ledger": None}}})
    assert turn.reason == "lab refused: this is a private run, and lab has no ledger to charge"


def test_a_budget_for_another_relation_is_refused(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    column = BudgetAccountant(9.0, 1e-4, neighbouring="column")
    turn, _ = run(world, changes={"lab": {"site": {"ledger": column}}})
    assert "cannot be charged to a budget for 'column'" in str(turn.reason)


# --- what must not be lost


def interrupted(world: World, site: str, phase: str, count: int) -> bool:
    """Run until a site reaches a phase for the count-th time; whether it ever did."""
    seen: Counter[str] = Counter()

    def phases(own: str) -> Any:
        def reached(name: str) -> None:
            seen[name] += own == site
            if own == site and name == phase and seen[name] == count:
                raise Killed

        return reached

    try:
        run(world, phases=phases)
    except Killed:
        return True
    return False


PARTY_PHASES = ("before draw", "after draw", "during snapshot", "after snapshot")
CHARGE_PHASES = ("before reserve", "after reserve", "before charge", "after charge")
HUB_PHASES = ("before gather", "after gather", "during snapshot", "after snapshot")


@every_run
def test_a_killed_site_resumes_to_the_same_bytes_and_one_charge(name: str, tmp_path: Path) -> None:
    whole = World.of(tmp_path / "whole", name)
    wanted: Sent = {}
    run(whole, wanted)
    kills = [("lab", phase, count) for phase in PARTY_PHASES for count in (1, 3, 6)]
    kills += [("lab", phase, 1) for phase in CHARGE_PHASES]
    kills += [("hub", phase, count) for phase in HUB_PHASES for count in (1, 2, 5)]
    kills += [("hub", phase, 1) for phase in CHARGE_PHASES[:2]]
    if name == "frank-wolfe, private":
        kills += [("hub", phase, 1) for phase in CHARGE_PHASES[2:]]
    for number, (site, phase, count) in enumerate(kills):
        world = World.of(tmp_path / str(number), name)
        assert interrupted(world, site, phase, count), (site, phase, count)
        sent: Sent = {}
        turn, _ = run(world, sent)
        assert turn.ended == "done", (site, phase, count, turn.reason)
        assert world.outcome() == whole.outcome()
        assert world.charges() == whole.charges()
        for key, messages in sent.items():
            assert messages == wanted[key]


def test_a_missing_party_stops_the_run_which_can_be_resumed(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing")
    whole = World.of(tmp_path / "whole", "sharing")
    run(whole)
    stores = {site: world.store(site) for site in (*NAMES, "hub")}
    parties = [Party(world.job, world.site(site), stores[site]) for site in NAMES]
    runner = InProcessRunner(parties)
    coordinator = Coordinator(world.job, world.site("hub"), stores["hub"])

    def lose_lab(metrics: dict[str, Any]) -> None:
        if metrics["round"] == 2:
            del runner.parties["lab"]

    turn = runner.run(coordinator, lose_lab)
    assert turn.reason == "lab did not answer in round 3: resume the run"
    for store in stores.values():
        store.close()
    assert run(world)[0].ended == "done"
    assert world.outcome() == whole.outcome()


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    run(world)
    sent: Sent = {}
    turn, parties = run(world, sent)
    assert (turn.ended, turn.reason) == ("done", "it was over already")
    assert not sent
    question = Message("run-1", 6, "price", {"price": np.ones(30)}, {"rho": 0.05, "keep": False})
    assert "is over for lab" in parties[1].handle(question).text("reason")


@every_private_run
@pytest.mark.parametrize(
    ("lose", "error", "told"),
    [
        (lambda world: world.ledger("lab").unlink(), FileNotFoundError, "no such ledger"),
        (
            lambda world: world.new_ledger("lab"),
            StoreError,
            "does not hold the charge of run run-1",
        ),
        (
            lambda world: (world.state("lab") / "run-1" / "snapshot").unlink(),
            StoreError,
            "its snapshot is lost",
        ),
        (
            lambda world: (world.state("lab") / "run-1" / "noise.key").unlink(),
            StoreError,
            "the key of a run that has begun is lost",
        ),
    ],
    ids=["a ledger", "a ledger begun anew", "a snapshot", "a noise key"],
)
def test_what_a_charged_run_has_lost_is_missed(
    name: str,
    lose: Callable[[World], None],
    error: type[Exception],
    told: str,
    tmp_path: Path,
) -> None:
    world = World.of(tmp_path, name)
    assert interrupted(world, "lab", "after snapshot", 2)
    lose(world)
    with pytest.raises(error, match=told):
        run(world)


def test_one_charge_does_not_pay_for_the_noise_of_two_folders(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    twins = [
        Party(world.job, world.site("lab"), RunFolder(tmp_path / name, "run-1"))
        for name in ("one", "two")
    ]
    assert twins[0].store.key(begun=False) != twins[1].store.key(begun=False)
    begin = opening(twins[0])
    assert twins[0].handle(begin).kind == "ready"
    told = twins[1].handle(opening(twins[1])).text("reason")
    assert "not for the noise key of this folder" in told
    assert world.charges()["lab"] == 0
    scalars = {"rho": 0.05, "keep": False}
    price = Message("run-1", 1, "price", {"price": np.ones(30)}, scalars)
    assert twins[0].handle(price).kind == "masked"
    assert twins[1].handle(opening(twins[1])).kind == "refusal"
    assert world.charges()["lab"] == 1


def test_a_label_owner_that_lost_its_folder_does_not_release_its_labels_again(
    tmp_path: Path,
) -> None:
    world = World.of(tmp_path, "frank-wolfe, private")
    assert interrupted(world, "hub", "after snapshot", 3)
    shutil.rmtree(world.state("hub"))
    with pytest.raises(StoreError, match="its snapshot is lost"):
        run(world)


def test_a_label_owner_whose_ledger_was_begun_anew_is_refused(tmp_path: Path) -> None:
    world = World.of(tmp_path, "frank-wolfe, private")
    assert interrupted(world, "hub", "after snapshot", 3)
    world.new_ledger("hub")
    with pytest.raises(StoreError, match="does not hold the charge of run run-1"):
        run(world)


@pytest.mark.parametrize("site", ["lab", "hub"])
def test_data_that_changed_in_the_middle_of_a_run_are_refused(site: str, tmp_path: Path) -> None:
    world = World.of(tmp_path, "frank-wolfe, private")
    assert interrupted(world, "hub", "after snapshot", 3)
    other = {"labels": LABELS * np.where(np.arange(30) == 5, -1.0, 1.0)}
    if site == "lab":
        other = {"table": BLOCKS[1] * np.where(np.arange(30)[:, None] == 5, 0.5, 1.0)}
    with pytest.raises(StoreError, match="are not those the run began with"):
        run(world, changes={site: {"site": other}})


def test_a_coordinator_that_could_not_keep_a_round_asks_the_last_one_again(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing")
    stores = {site: world.store(site) for site in (*NAMES, "hub")}
    runner = InProcessRunner([Party(world.job, world.site(one), stores[one]) for one in NAMES])
    coordinator = Coordinator(world.job, world.site("hub"), stores["hub"])
    keep, rounds = stores["hub"].save, []

    def full_once(*given: Any) -> None:
        rounds.append(coordinator.round)
        if len(rounds) == 3:
            raise OSError(28, "No space left on device")
        keep(*given)

    stores["hub"].save = full_once  # type: ignore[method-assign]
    turn = runner.run(coordinator)
    assert "No space left" in str(turn.reason)
    assert "No space" not in str(runner.parties["lab"].stopped)
    assert runner.run(coordinator).ended == "done"
    whole = World.of(tmp_path / "whole", "sharing")
    run(whole)
    assert world.outcome() == whole.outcome()


def test_a_broken_snapshot_is_refused(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing")
    assert interrupted(world, "lab", "after snapshot", 2)
    path = world.state("lab") / "run-1" / "snapshot"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="bytes were changed or lost"):
        run(world)


def test_a_run_whose_coordinator_lost_its_snapshot_is_not_begun_anew(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    assert interrupted(world, "hub", "after snapshot", 3)
    (world.state("hub") / "run-1" / "snapshot").unlink()
    turn, _ = run(world)
    assert "of which the coordinator has no snapshot" in str(turn.reason)


def test_sites_that_are_out_of_step_are_refused(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    assert interrupted(world, "lab", "after snapshot", 2)
    old = tmp_path / "old"
    shutil.copytree(world.state("lab"), old)
    assert interrupted(world, "hub", "after snapshot", 4)
    shutil.rmtree(world.state("lab"))
    shutil.copytree(old, world.state("lab"))
    assert "they are out of step" in str(run(world)[0].reason)


def test_one_process_at_a_time_has_a_run(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "run-1"), pytest.raises(StoreError, match="another process has"):
        RunFolder(tmp_path, "run-1")
    RunFolder(tmp_path, "run-1").close()


def test_noise_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "run-1") as store:
        key = store.key(begun=False)
        assert len(key) == 32
        assert store.key(begun=True) == key
    assert (tmp_path / "run-1" / "noise.key").stat().st_mode & 0o777 == 0o600
    with RunFolder(tmp_path, "run-2") as store:
        assert store.key(begun=False) != key


# --- what is imported late


def test_runners_and_nodes_are_names_of_the_package() -> None:
    for name in ("MpiRunner", "NVFlareRunner", "Node"):
        assert getattr(federation, name).__name__ == name
        assert name in federation.__all__
    with pytest.raises(AttributeError, match="has no attribute 'Runner'"):
        _ = federation.Runner


# --- joint prediction


@pytest.mark.parametrize("name", ["sharing, adaptive l1", "frank-wolfe"])
def test_joint_prediction_adds_up_partial_scores(name: str, tmp_path: Path) -> None:
    world = World.of(tmp_path, name)
    run(world)
    found = {site: json.loads(text) for site, text in world.outcome().items()}
    job = Job("ask-1", "predict", NAMES, "clinic", {"model": "run-1"}, ids=False)
    parties = [
        Party(job, site_of(site, BLOCKS[place][:5], model=found[site]), MemoryStore())
        for place, site in enumerate(NAMES)
    ]
    store = MemoryStore()
    owner = site_of("clinic", labels=np.zeros(5), model=found["hub"])
    assert InProcessRunner(parties).run(Coordinator(job, owner, store)).ended == "done"
    answer = json.loads(store.read("result.json") or "")
    parts = [found[site]["weights"] for site in NAMES]
    if name == "frank-wolfe":
        parts = found["hub"]["weights"]
    wanted = TABLE[:5] @ np.concatenate(parts) + sum(
        found[site].get("intercept", 0.0) for site in NAMES
    )
    assert np.allclose(answer["scores"], wanted, rtol=1e-12, atol=1e-14)
    assert "no privacy guarantee" in answer["warning"]
    ask = Message("ask-1", 2, "ask", {"weights": np.ones(3)})
    assert parties[0].handle(ask).kind == "refusal"
    if name != "frank-wolfe":
        assert answer["labels"] == np.where(wanted > 0, 1.0, -1.0).tolist()
