"""What a run may look at before it is paid for, when it pays, and what is given back."""

from __future__ import annotations

import json
import re
import shutil
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import federation_problems
import numpy as np
import pytest
from federation_problems import (
    BLOCKS,
    IDS,
    LABELS,
    NAMES,
    PRIVATE,
    SHARES,
    World,
    job_of,
    run,
    site_of,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from bench.federation import sites
from dpsvm.admm import NetworkADMM, SharingADMMClassifier
from dpsvm.admm.network import agreement as network_agreement
from dpsvm.admm.sharing.agreement import Agreement
from dpsvm.cli import main
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
    records,
    store,
    witness,
)
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.custody import MOST_REHEARSALS
from dpsvm.federation.site import Data, Unread
from dpsvm.federation.tables import Source
from dpsvm.frank_wolfe.privacy import check_entries, clip_entries
from dpsvm.privacy import BudgetAccountant
from dpsvm.privacy.preparation import clip_columns, clip_rows, row_norms
from dpsvm.privacy.rounding import OVER

every_private_run = pytest.mark.parametrize("name", PRIVATE)


class Watched:
    """A site whose values are read when they are asked for, and who looks when that is."""

    def __init__(self, world: World, name: str, **changes: Any) -> None:
        whole = world.site(name)
        self.opened: list[int] = []  # charges that were on the disk when the values were read
        self._path = world.ledger(name)

        def read() -> Data:
            ledger = BudgetAccountant(path=self._path)
            assert not ledger.reservations
            self.opened.append(len(ledger.charges))
            return Data(whole.table, whole.labels)

        table = Unread(whole.rows, whole.columns, whole.labels is not None, read)
        self.site = replace(whole, **{"table": table, "labels": None, **changes})


def opening(party: Party, kind: str = "begin", **arrays: Any) -> Message:
    """What begins a run at a party, or rehearses it, with whatever else it is to tell."""
    network = party.job.algorithm == "network"
    sizes = [len(own) for own in SHARES] if network else [block.shape[1] for block in BLOCKS]
    message = federation_problems.opening(party, kind, sizes, 0 if network else 30)
    return replace(message, arrays={**message.arrays, **arrays})


def question(world: World) -> Message:
    """The first question of a run."""
    run = world.job.run
    return {
        "sharing": Message(run, 1, "price", {"price": np.ones(30)}, {"rho": 0.05, "keep": False}),
        "network": Message(run, 1, "neighbours", {"weights": np.zeros((2, 7))}),
        "frank-wolfe": Message(run, 1, "query", {"residual": np.ones(8)}),
    }[world.job.algorithm]


def stop(world: World, number: int = 0) -> Message:
    return Message(world.job.run, number, "stop", scalars={"reason": "lab did not answer"})


def ledger_of(world: World, name: str = "lab", **more: Any) -> BudgetAccountant:
    return BudgetAccountant(path=world.ledger(name), **more)


# --- nothing is opened before it is paid for


@every_private_run
def test_values_are_read_after_the_charge_is_on_the_disk(name: str, tmp_path: Path) -> None:
    world = World.of(tmp_path, name)
    lab = Watched(world, "lab")
    party = Party(world.job, lab.site, world.store("lab"))
    assert party.handle(opening(party, "rehearse")).kind == "ready"
    assert party.handle(opening(party)).kind == "ready"
    assert (lab.opened, lab.site.opened) == ([], False)
    assert (world.charges()["lab"], len(ledger_of(world).reservations)) == (0, 1)
    assert party.handle(question(world)).kind != "refusal"
    assert (lab.opened, lab.site.opened) == ([1], True)
    assert ledger_of(world).charges[0].job == world.job.digest


def test_protected_labels_are_read_after_their_charge(tmp_path: Path) -> None:
    world = World.of(tmp_path, "frank-wolfe, private")
    hub = Watched(world, "hub", table=None)
    lab = Watched(world, "hub")
    hub.site = replace(hub.site, table=Unread(30, 0, True, lab.site.table.read))
    stores = {site: world.store(site) for site in (*NAMES, "hub")}
    runner = InProcessRunner([Party(world.job, world.site(one), stores[one]) for one in NAMES])
    dry = Coordinator(world.job, hub.site, MemoryStore(), dry=True)
    assert runner.run(dry).ended == "checked"
    assert (lab.opened, world.charges()["hub"]) == ([], 0)
    assert runner.run(Coordinator(world.job, hub.site, stores["hub"])).ended == "done"
    assert lab.opened == [1]


def test_rehearsals_tell_nothing_of_values_and_are_counted(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")

    def unreadable() -> Data:
        raise AssertionError("a rehearsal has read the values")

    whole = world.site("lab")
    site = replace(whole, table=Unread(30, 2, False, unreadable), labels=None)
    answers = set()
    for norm in np.linspace(0.01, 1.0, 30):
        settings = dict(world.job.settings) | {"data_norm": float(norm), "rho": 1e-6}
        party = Party(job_of("sharing, private", settings=settings), site, MemoryStore())
        answers.add(party.handle_bytes(opening(party, "rehearse").encode()))
    assert answers == {Message("run-1", -1, "ready").encode()}
    for number in range(MOST_REHEARSALS + 2):
        kept = world.store("lab")
        again = Party(world.job, site, kept)
        answer = again.handle(opening(again, "rehearse"))
        kept.close()
        assert answer.kind == ("ready" if number < MOST_REHEARSALS else "refusal")
    assert "has rehearsed run run-1 100 times" in answer.text("reason")
    (world.state("lab") / "run-1" / "rehearsals").write_text("many")
    party = Party(world.job, site, world.store("lab"))
    told = party.handle(opening(party, "rehearse"))
    assert "the count of the rehearsals of run run-1 is broken" in told.text("reason")


def test_what_is_wrong_with_values_is_found_after_the_charge_and_not_told(tmp_path: Path) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    data = problem.folder / "lab" / "data.csv"
    lines = data.read_text().splitlines()
    data.write_text("\n".join([*lines[:5], "secret" + lines[5], *lines[6:]]) + "\n")
    parties, coordinator = problem.make()
    lab = parties[1]
    assert InProcessRunner(parties).run(coordinator).reason == (
        "lab refused: the values of lab cannot be used, and it knows why"
    )
    price = {"price": np.zeros(24)}
    lab.handle(Message("trial", 1, "price", price, {"rho": 0.05, "keep": False}))
    assert "line 6: 'secret" in str(lab.refused)
    assert [len(charged) for charged in problem.charges().values()] == [1, 1, 1]
    data.write_text("\n".join(lines) + "\n")
    for one in (*parties, coordinator):
        one.store.close()
    parties, coordinator = problem.make()
    assert InProcessRunner(parties).run(coordinator).ended == "done"  # on the same charge
    assert [len(charged) for charged in problem.charges().values()] == [1, 1, 1]


def test_rows_that_came_after_they_were_counted_are_refused(tmp_path: Path) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    parties, coordinator = problem.make()
    data = problem.folder / "lab" / "data.csv"
    data.write_text(data.read_text() + "0,0,0,1\n")
    assert "the values of lab" in str(InProcessRunner(parties).run(coordinator).reason)
    price = {"price": np.zeros(24)}
    parties[1].handle(Message("trial", 1, "price", price, {"rho": 0.05, "keep": False}))
    assert "changed after its rows were counted" in str(parties[1].refused)


# --- what is stopped before is given back


def test_nine_jobs_that_begin_and_never_ask_cost_nothing(tmp_path: Path) -> None:
    job, now = job_of("sharing, private"), [0.0]
    path = tmp_path / "ledger"
    more: dict[str, Any] = {"path": path, "clock": lambda: now[0]}
    budget = BudgetAccountant(18.1, 1e-5, neighbouring="row", create=True, **more)
    for number in range(9):
        own = job_of("sharing, private", run=f"run-{number}")
        site = site_of("lab", BLOCKS[1], ids=IDS, salt="s", ledger=BudgetAccountant(**more))
        party = Party(own, site, MemoryStore())
        assert party.handle(opening(party)).kind == "ready"
        assert budget.remaining() < 18.1
        if number % 2:
            end = Message(own.run, 0, "stop", scalars={"reason": "no"})
            assert party.handle(end).kind == "stopped"
    assert budget.total().epsilon == 0
    assert len(budget.reservations) == 5  # of those who were not even told to stop
    now[0] += 25 * 3600.0
    assert budget.remaining() == 18.1
    assert job.digest


@every_private_run
def test_a_run_that_is_stopped_before_it_asks_is_refunded_and_burnt(
    name: str, tmp_path: Path
) -> None:
    world = World.of(tmp_path, name)
    party = Party(world.job, world.site("lab"), world.store("lab"))
    assert party.handle(opening(party)).kind == "ready"
    assert party.handle(stop(world)).kind == "stopped"
    ledger = ledger_of(world)
    assert (ledger.charges, ledger.reservations, ledger.remaining()) == ((), (), 100.0)
    told = "was stopped before lab answered anything"
    assert told in party.handle(opening(party)).text("reason")
    assert told in party.handle(question(world)).text("reason")
    party.store.close()
    with pytest.raises(Refusal, match=told):
        Party(world.job, world.site("lab"), world.store("lab"))
    assert not ledger_of(world).charges


def test_a_refund_that_was_interrupted_is_made_when_the_run_is_opened(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    party = Party(world.job, world.site("lab"), world.store("lab"))
    party.handle(opening(party))
    party.store.write("refunded", "the process was killed before it took it back\n")
    party.store.close()
    with pytest.raises(Refusal, match="was given back"):
        Party(world.job, world.site("lab"), world.store("lab"))
    assert not ledger_of(world).reservations


def test_a_stop_after_the_first_question_changes_no_charge(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    party = Party(world.job, world.site("lab"), world.store("lab"))
    party.handle(opening(party))
    party.handle(question(world))
    for number in (-1, 0, 1):
        assert party.handle(stop(world, number)).kind == "stopped"
    assert world.charges()["lab"] == 1
    assert party.handle(question(world)).kind == "masked"


def test_a_stop_in_round_1_keeps_the_reservation_for_a_run_that_is_resumed(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    party = Party(world.job, world.site("lab"), world.store("lab"))
    party.handle(opening(party))
    assert party.handle(stop(world, 1)).kind == "stopped"
    assert len(ledger_of(world).reservations) == 1
    assert party.handle(question(world)).kind == "masked"


def test_an_open_run_that_is_stopped_can_be_begun_again(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing")
    party = Party(world.job, world.site("lab"), world.store("lab"))
    party.handle(opening(party))
    party.handle(stop(world))
    assert party.handle(question(world)).kind == "masked"


def test_of_two_runs_on_a_budget_for_one_the_first_gets_it(tmp_path: Path) -> None:
    first = World.of(tmp_path, "sharing, private")
    second = World(tmp_path, job_of("sharing, private", run="run-2"), first.relation)
    first.new_ledger("lab", 2.5)
    runs = {}
    for world in (first, second):
        parties = [Party(world.job, world.site(one), world.store(one)) for one in NAMES]
        hub = Coordinator(world.job, world.site("hub"), world.store("hub"))
        runs[world.job.run] = (InProcessRunner(parties), hub)
    turns = {}
    for name, (runner, hub) in runs.items():  # both have rehearsed before either begins
        turns[name] = hub.start()
        for _ in range(2):
            turns[name] = hub.advance(runner.deliver(turns[name].messages))
    for name, (runner, hub) in runs.items():
        turns[name] = hub.advance(runner.deliver(turns[name].messages))
        if turns[name].over:
            runner.deliver(turns[name].messages)
    assert turns["run-1"].ended is None
    assert "lab refused: epsilon = 1.7" in str(turns["run-2"].reason)
    assert "does not fit: 1.70411 of 2.5 is spent or reserved" in str(turns["run-2"].reason)
    for site in NAMES:
        ledger = ledger_of(first, site)
        assert (len(ledger.charges), len(ledger.reservations)) == (0, 1)
        assert "run-1" in ledger.reservations[0].label
    runner, hub = runs["run-1"]
    while not turns["run-1"].over:
        turns["run-1"] = hub.advance(runner.deliver(turns["run-1"].messages))
    assert turns["run-1"].ended == "done"
    assert set(first.charges().values()) == {0, 1}
    runner, hub = runs["run-2"]
    with pytest.raises(Refusal, match="begin another run"):
        hub.start()
    late = World(tmp_path, job_of("sharing, private", run="run-3"), first.relation)
    assert "does not fit" in str(run(late)[0].reason)  # when it rehearses


def test_a_reservation_that_has_expired_is_tried_once_more(tmp_path: Path) -> None:
    for fits in (True, False):
        now = [0.0]
        more: dict[str, Any] = {"path": tmp_path / f"ledger {fits}", "clock": lambda: now[0]}  # noqa: B023
        BudgetAccountant(2.5, 1e-5, neighbouring="row", create=True, **more)
        world = World.of(tmp_path / str(fits), "sharing, private")
        lab = Watched(world, "lab", ledger=BudgetAccountant(**more))
        lab._path = more["path"]
        party = Party(world.job, lab.site, world.store("lab"))
        assert party.handle(opening(party)).kind == "ready"
        now[0] += 25 * 3600.0
        if not fits:
            BudgetAccountant(**more).spend(1.0, label="somebody else")
        answer = party.handle(question(world))
        assert answer.kind == ("masked" if fits else "refusal")
        assert lab.opened == ([1] if fits else [])
        if not fits:
            assert "does not fit" in answer.text("reason")


def test_labels_are_refunded_when_a_party_refuses_to_begin(tmp_path: Path) -> None:
    world = World.of(tmp_path, "frank-wolfe, private")
    stores = {site: world.store(site) for site in (*NAMES, "hub")}
    parties = [Party(world.job, world.site(one), stores[one]) for one in NAMES]
    runner, hub = InProcessRunner(parties), None
    hub = Coordinator(world.job, world.site("hub"), stores["hub"])
    turn = hub.start()
    for _ in range(2):
        turn = hub.advance(runner.deliver(turn.messages))
    assert len(ledger_of(world, "hub").reservations) == 1
    ledger_of(world, "registry").spend(99.0, label="meanwhile")
    turn = hub.advance(runner.deliver(turn.messages))
    runner.deliver(turn.messages)
    assert "registry refused" in str(turn.reason)
    for site in (*NAMES, "hub"):
        assert not ledger_of(world, site).reservations
    assert world.charges() == {"clinic": 0, "lab": 0, "registry": 1, "hub": 0}


# --- the folder and the ledger of a site


def both(folder: Path, copy: Path, *, back: bool = False) -> None:
    """Keep what a site has, or put it back."""
    old, new = (copy, folder) if back else (folder, copy)
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(old, new)


def two_runs(tmp_path: Path, between: Callable[[Path, Path], None]) -> Any:
    """A run, what happens to lab after it, and how another one ends."""
    problem = sites.make_problem(tmp_path / "sites", "sharing", keys=False)
    lab, copy = problem.folder / "lab", tmp_path / "copy"
    both(lab, copy)
    _run(problem, problem.job)
    between(lab, copy)
    return problem, _run(problem, replace(problem.job, run="second"))


def _run(problem: Any, job: Job) -> Any:
    made = replace(problem, job=job)
    sites.approve_all(job, made.site_files)
    parties, coordinator = made.make()
    try:
        return InProcessRunner(parties).run(coordinator)
    finally:
        for one in (*parties, coordinator):
            one.store.close()


def replaced(lab: Path, copy: Path) -> None:
    for name in ("ledger.json", "ledger.json.key"):
        (lab / name).unlink()
    BudgetAccountant(200.0, 1e-3, neighbouring="row", path=lab / "ledger.json", create=True)


def state_lost(lab: Path, copy: Path) -> None:
    shutil.rmtree(lab / "state")


def ledger_back(lab: Path, copy: Path) -> None:
    shutil.copy(copy / "ledger.json", lab / "ledger.json")


@pytest.mark.parametrize(
    ("between", "told"),
    [
        (replaced, "the ledger of lab does not hold the charge of run trial"),
        (ledger_back, "the ledger of lab does not hold the charge of run trial"),
        (state_lost, "run trial was charged, and nothing else of it is kept at lab"),
    ],
)
def test_a_new_run_sees_a_ledger_or_a_folder_that_is_another(
    between: Callable[[Path, Path], None],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    problem, turn = two_runs(tmp_path, between)
    assert told in str(turn.reason)
    assert main(["federation", "status", str(problem.site_file("lab"))]) == 2
    assert told in capsys.readouterr().err


def test_a_site_that_was_put_back_whole_is_found_out_by_the_others(tmp_path: Path) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing", keys=False)
    lab, copy = problem.folder / "lab", tmp_path / "copy"
    both(lab, copy)
    for name in ("first", "second"):
        assert _run(problem, replace(problem.job, run=name)).ended == "done"
    both(lab, copy, back=True)
    turn = _run(problem, replace(problem.job, run="third"))
    assert "saw 1 charges in the ledger of lab, which are not there" in str(turn.reason)
    seen = json.loads((problem.folder / "clinic" / "state" / witness.FILE).read_text())
    assert set(seen) == {"lab", "home"}


def test_a_charge_is_seen_by_others_when_the_next_run_begins(tmp_path: Path) -> None:
    """What remains: a site put back whole, to before a run after which it began no other."""
    problem = sites.make_problem(tmp_path / "sites", "sharing", keys=False)
    lab, copy = problem.folder / "lab", tmp_path / "copy"
    both(lab, copy)
    assert _run(problem, replace(problem.job, run="first")).ended == "done"
    both(lab, copy, back=True)
    assert _run(problem, replace(problem.job, run="second")).ended == "done"


def test_other_charges_under_the_same_count_are_found_out(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    ledger = ledger_of(world)
    ledger.spend(0.5, label="one")
    told = (1, ledger.head(1))
    nothing = (0, "")

    def begin(found: list[tuple[int, str]]) -> str:
        arrays = witness.witnessed("seen_ledgers", "seen_heads", found)
        party = Party(world.job, world.site("lab"), MemoryStore())
        answer = party.handle(opening(party, "rehearse", **arrays))
        return answer.text("reason") if answer.kind == "refusal" else answer.kind

    assert begin([told, nothing, told]) == "ready"
    assert "clinic saw 1 charges" in begin([(1, "ab" * 32), nothing, told])
    assert "registry saw 2 charges" in begin([told, nothing, (2, told[1])])
    assert "the ledgers of 3 sites are awaited" in begin([told])
    assert "the ledgers of 3 sites are awaited" in begin([told, (-1, told[1]), nothing])


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"lab": 3}', '{"lab": {"count": -1, "head": ""}}', "[" * 9000]
)
def test_what_was_seen_of_others_is_whole_or_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / witness.FILE).write_text(text)
    with pytest.raises(StoreError, match="what was seen of other ledgers cannot be read"):
        witness.seen(Site("lab", state=tmp_path), ["lab"])


def test_a_lower_count_does_not_replace_what_was_seen(tmp_path: Path) -> None:
    site, head = Site("clinic", state=tmp_path / "new" / "state"), "ab" * 32
    for lab in ((7, head), (6, "cd" * 32)):
        arrays = witness.witnessed("ledgers", "heads", [(9, head), lab, (0, "")])
        sizes = {"sizes": np.array([1, 1, 1]), **arrays}
        witness.keep(site, NAMES, Message("r", 0, "begin", sizes, {"rows": 1}))
    found = witness.seen(site, NAMES)
    assert witness.told(found["seen_ledgers"], found["seen_heads"], 3) == [
        (0, ""),
        (7, head),
        (0, ""),
    ]


def test_a_folder_that_was_put_back_from_before_the_charge_is_refused(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    party = Party(world.job, world.site("lab"), world.store("lab"))
    party.handle(opening(party))
    both(world.state("lab"), tmp_path / "copy")
    party.handle(question(world))
    party.store.close()
    both(world.state("lab"), tmp_path / "copy", back=True)
    with pytest.raises(StoreError, match="its folder was put back from before"):
        Party(world.job, world.site("lab"), world.store("lab"))


def test_a_ledger_that_was_replaced_before_the_first_question_is_missed(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    lab = Watched(world, "lab")
    party = Party(world.job, lab.site, world.store("lab"))
    party.handle(opening(party))
    world.new_ledger("lab")
    assert "does not hold what run run-1 has reserved" in party.handle(question(world)).text(
        "reason"
    )
    assert lab.opened == []


def test_a_commit_that_was_interrupted_is_no_disagreement(tmp_path: Path) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    parties, coordinator = problem.make()
    lab = parties[1]
    assert lab.handle(federation_problems.opening_among(parties)).kind == "ready"
    lab.store.write("charged", lab.custody._own_label)
    ledger, state = lab.site.ledger, problem.folder / "lab" / "state"
    assert ledger is not None
    assert not list(records.disagreements(state, "lab", ledger))
    coordinator.store.close()


def test_abort_gives_back_what_was_only_reserved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    parties, _ = problem.make()
    lab = parties[1]
    assert lab.handle(federation_problems.opening_among(parties)).kind == "ready"
    ledger, file = lab.site.ledger, str(problem.site_file("lab"))
    assert ledger is not None
    assert main(["federation", "status", file]) == 0
    assert re.search(r"reserved +epsilon = [\d.]+ until \d{4}-", capsys.readouterr().out)
    assert main(["federation", "abort", file, "trial"]) == 0
    assert "what it had reserved is given back" in capsys.readouterr().out
    assert not ledger.reservations
    price = {"price": np.ones(24)}
    answer = lab.handle(Message("trial", 1, "price", price, {"rho": 0.05, "keep": False}))
    assert answer.kind == "refusal"
    assert not ledger.charges
    assert not lab.site.opened


def test_all_folders_that_were_made_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(store, "sync_folder", lambda path: synced.append(Path(path)))
    RunFolder(tmp_path / "a" / "state" / "party", "run-1").close()
    made = [tmp_path, tmp_path / "a", tmp_path / "a" / "state", tmp_path / "a" / "state" / "party"]
    assert synced == made
    synced.clear()
    RunFolder(tmp_path / "a" / "state" / "party", "run-1").close()
    assert synced == made[-1:]


# --- rows are clipped


NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)
TABLES = st.integers(1, 5).flatmap(
    lambda d: st.lists(st.lists(NUMBERS, min_size=d, max_size=d), min_size=1, max_size=6)
)
BOUNDS = st.floats(1e-100, 1e100)


@given(TABLES, BOUNDS)
def test_clipped_tables_satisfy_the_check_of_their_family(
    rows: list[list[float]], bound: float
) -> None:
    table = np.array(rows)
    for own in (table, sparse.csr_array(table)):
        for clipped in (clip_rows(own, bound), clip_columns(own, bound).T):
            whole = sparse.csr_array(clipped) if sparse.issparse(clipped) else clipped
            assert np.all(row_norms(whole) <= bound * OVER)
        check_entries(clip_entries(own, bound), bound, "entry_bound")


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
@pytest.mark.parametrize("intercept", [None, 0])
def test_sharing_takes_what_it_has_clipped(make: Any, intercept: int | None) -> None:
    rng = np.random.default_rng(0)
    for limit in (1.0 + 2.0**-40, 1.1, 3.0):
        row = {"data_norm": limit, "radius": 1.0, "target_bound": 2.0}
        for mode, bounds in (("row", row), ("column", {"column_norm": limit, "target_norm": 2.0})):
            model = SharingADMMClassifier(
                privacy=mode,
                epsilon=1.0,
                delta=1e-5,
                rho=1e-3,
                intercept_party=intercept,
                **bounds,
            )
            agreed = Agreement.of(model, [4])
            agreed.check_sizes(0, 50)
            table = agreed.clipped(0, make(rng.standard_normal((50, 4)) * 100.0))
            agreed.calibration.check(agreed.columns_of(0, table), agreed.terms, 0)


def test_a_constant_column_needs_room_in_the_rows() -> None:
    bounds = {"data_norm": 1.0, "radius": 1.0, "target_bound": 2.0}
    model = SharingADMMClassifier(
        privacy="row", epsilon=1.0, delta=1e-5, rho=1e-3, intercept_party=0, **bounds
    )
    with pytest.raises(ValueError, match="data_norm must be above 1 where a constant column"):
        Agreement.of(model, [4]).check_sizes(0, 50)


def test_a_network_takes_what_it_has_clipped() -> None:
    model = NetworkADMM(classes=[-1, 1], privacy="objective", epsilon=5.0)
    agreed = network_agreement.Agreement.of(model, [30, 30])
    rows = agreed.clipped(np.random.default_rng(0).standard_normal((30, 4)) * 100.0)
    samples = agreed.samples(rows, LABELS, np.array([-1, 1]))
    agreed.calibration.check(0, samples, agreed.terms)


@every_private_run
def test_a_run_with_rows_above_their_bounds_is_done_on_clipped_ones(
    name: str, tmp_path: Path
) -> None:
    outcomes = []
    for number, factor in enumerate((1.0, 100.0)):
        world = World.of(tmp_path / str(number), name)
        size = SHARES[1] if world.job.algorithm == "network" else slice(None)
        table = BLOCKS[1] if world.job.algorithm != "network" else world.site("lab").table
        if world.job.algorithm == "frank-wolfe":
            table = np.sign(table)
        else:
            table = table / np.linalg.norm(table, axis=1, keepdims=True)
        changes = {"lab": {"site": {"table": table * factor}}}
        if world.job.algorithm == "frank-wolfe":
            changes["hub"] = {"site": {"labels": LABELS * factor}}
        turn, _ = run(world, changes=changes)
        assert turn.ended == "done", turn.reason
        assert size is not None
        outcomes.append(world.outcome())
    exact = world.job.algorithm == "frank-wolfe"  # the others are divided by a norm
    assert not exact or outcomes[0] == outcomes[1]


# --- what is read


def test_what_is_counted_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "lab.txt"
    path.write_bytes(b"# first\n1 1:0.5 3:2\r\n\n-1 2:1 # x\n \t \n# 1 1:1\n1\n")
    where = Source.of({"file": "lab.txt", "columns": [[1, 3]]}, tmp_path, "")
    assert (
        where.count().rows == len(where.read(labels=False, counted=where.count()).columns.shape) + 1
    )
    assert where.count().rows == 3
    path.write_bytes(b"1 1:secret\n-1 2:1\n")
    assert (where.count().rows, where.names(where.count(), labels=True)) == (2, ("1", "2", "3"))


def test_a_private_run_takes_no_width_from_the_data(tmp_path: Path) -> None:
    (tmp_path / "lab.txt").write_text("1 1:0.5 3:2\n-1 2:1\n")
    file = tmp_path / "site.toml"
    head = "name = 'lab'\nstate = 's'\nallow = 'not private'\n[data]\nfile = 'lab.txt'\n"
    private = {"privacy": "row", "epsilon": 2.0, "delta": 1e-5}

    def width(more: str, settings: dict[str, Any]) -> int:
        file.write_text(head + more)
        job = Job("r", "sharing", ("lab",), "lab", settings, ids=False)
        return SiteConfig.load(file).member(job).columns

    assert width("", {}) == 3
    with pytest.raises(Refusal, match="lab must give n_features or columns in its file"):
        width("", private)
    assert width("n_features = 7", private) == 7
    assert width("columns = [[2, 3], [9, 9]]", private) == 3


def test_reading_csv_takes_at_most_three_times_its_numbers(tmp_path: Path) -> None:
    rows, columns = 12_000, 40
    numbers = np.random.default_rng(0).standard_normal((rows, columns))
    path = tmp_path / "lab.csv"
    with open(path, "w") as file:
        file.write(",".join(["id", "label", *(f"x{j}" for j in range(columns))]) + "\n")
        for place, row in enumerate(numbers.tolist()):
            file.write(
                f"p{(place * 7919) % rows:05d},{place % 2}," + ",".join(map(repr, row)) + "\n"
            )
    where = Source.of({"file": "lab.csv", "id": "id", "label": "label"}, tmp_path, "")
    counted = where.count()
    tracemalloc.start()
    table = where.read(labels=True, counted=counted)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * numbers.nbytes
    order = sorted(range(rows), key=lambda place: (place * 7919) % rows)
    assert np.array_equal(table.columns, numbers[order])
