"""A ledger reserves before it charges, and a change of its file is seen."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from commands import environment, python
from ledgers import begin_anew

from dpsvm.privacy import BudgetAccountant, BudgetError, Gaussian, Pure
from dpsvm.privacy.ledger import at

HOUR = 3600.0
POSIX = pytest.mark.skipif(os.name != "posix", reason="rights of POSIX files")
OPEN = "import sys; from dpsvm.privacy import BudgetAccountant as B; a = B(path=sys.argv[1]); "


class Clock:
    """A clock that stands until it is set."""

    def __init__(self, now: float = 1e9) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "file"])
def budget(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> BudgetAccountant:
    """One of 1.0, kept in memory or in a file."""
    kept = {"path": tmp_path / "ledger", "create": True} if request.param == "file" else {}
    return BudgetAccountant(1.0, clock=clock, **kept)


def granted(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except BudgetError:
        return False
    return True


# --- reservations


def test_a_reservation_counts_as_spent_and_is_no_charge(budget: BudgetAccountant) -> None:
    identity = budget.reserve(0.75, label="run", job="ab", rounds=20)
    assert (budget.remaining(), budget.total().epsilon, budget.count) == (0.25, 0.0, 0)
    refusal = "epsilon = 0.5 does not fit: 0.75 of 1 is spent or reserved"
    for attempt in (budget.check, budget.spend, budget.reserve):
        with pytest.raises(BudgetError, match=refusal):
            attempt(0.5)
    (one,) = budget.reservations
    assert (one.identity, one.event, one.label) == (identity, Pure(0.75), "run")
    assert one.expires == at(1e9 + 24 * HOUR)
    budget.spend(0.25)


def test_a_committed_reservation_is_a_charge_once(budget: BudgetAccountant, clock: Clock) -> None:
    identity = budget.reserve(0.75, label="run", job="ab", rounds=20)
    clock.now += HOUR
    for _ in range(2):
        budget.commit(identity)
        (charge,) = budget.charges
        assert (charge.event, charge.label, charge.job, charge.rounds) == (
            *(Pure(0.75), "run", "ab", 20),
        )
        assert charge.time == at(1e9 + HOUR)
        assert budget.reservations == ()
    with pytest.raises(ValueError, match="is committed: a charge stands"):
        budget.refund(identity)
    assert budget.total().epsilon == 0.75


def test_a_refunded_reservation_is_gone_and_cannot_be_committed(budget: BudgetAccountant) -> None:
    identity = budget.reserve(0.75)
    for _ in range(2):
        budget.refund(identity)
        assert budget.remaining() == 1.0
    with pytest.raises(ValueError, match=f"no reservation '{identity}' is in this ledger"):
        budget.commit(identity)
    with pytest.raises(ValueError, match="no reservation '' is in this ledger"):
        budget.commit("")
    assert budget.charges == ()


def test_an_expired_reservation_gives_its_room_back(budget: BudgetAccountant, clock: Clock) -> None:
    first, second = (budget.reserve(0.75, hours=2.0), budget.reserve(0.25, hours=1.0))
    clock.now += HOUR - 1
    assert budget.remaining() == 0.0
    clock.now += 1
    assert [one.identity for one in budget.reservations] == [first]
    assert budget.remaining() == 0.25
    budget.commit(second)  # there is room for it still
    clock.now += HOUR
    budget.spend(0.5)
    with pytest.raises(BudgetError, match=r"epsilon = 0.75 does not fit: 0.75 of 1 is spent \("):
        budget.commit(first)
    assert budget.total().epsilon == 0.75
    budget.refund(first)


def test_an_expired_reservation_does_not_take_what_another_has(
    budget: BudgetAccountant, clock: Clock
) -> None:
    late = budget.reserve(0.75, hours=1.0)
    clock.now += HOUR
    other = budget.reserve(0.75)
    with pytest.raises(BudgetError):
        budget.commit(late)
    budget.commit(other)


def test_a_clock_set_back_refuses_no_entry_and_never_exceeds_the_budget(
    budget: BudgetAccountant, clock: Clock
) -> None:
    first = budget.reserve(0.75, hours=1.0)
    clock.now += 2 * HOUR
    second = budget.reserve(0.75, hours=1.0)
    clock.now -= 2 * HOUR  # both are open now
    assert budget.remaining() == 0.0
    budget.commit(first)
    with pytest.raises(BudgetError):
        budget.commit(second)
    budget.refund(second)
    clock.now = 0.0
    budget.spend(0.25)
    assert [charge.time for charge in budget.charges] == [at(1e9), "1970-01-01T00:00:00Z"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"hours": 0.0}, "hours must be a number above 0, at most 8784, got 0.0"),
        ({"hours": float("nan")}, "got nan"),
        ({"hours": 1e9}, "got 1000000000.0"),
        ({"hours": True}, "got True"),
        ({"hours": "1"}, "got '1'"),
        ({"rounds": -1}, "rounds must be a whole number from 0 on, got -1"),
        ({"rounds": True}, "got True"),
        ({"rounds": 1.5}, "got 1.5"),
        ({"neighbouring": "row"}, "'row' cannot be charged to a budget for 'add-remove'"),
        ({"event": 0.0}, "epsilon must be a finite number above 0"),
        ({"event": Gaussian(0.1)}, "only pure releases fit"),
    ],
)
def test_what_cannot_be_reserved_is_refused(
    budget: BudgetAccountant, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        budget.reserve(**{"event": 0.5, **fields})
    assert budget.reservations == ()


def test_a_closed_accountant_reserves_nothing(budget: BudgetAccountant) -> None:
    identity = budget.reserve(0.5)
    budget.close()
    for attempt in (lambda: budget.reserve(0.1), lambda: budget.commit(identity)):
        with pytest.raises(BudgetError, match="closed"):
            attempt()
    with pytest.raises(BudgetError, match="closed"):
        budget.refund(identity)
    assert len(budget.reservations) == 1


# --- threads and processes


def test_of_threads_on_a_budget_for_one_one_gets_it(budget: BudgetAccountant) -> None:
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: granted(lambda: budget.reserve(0.6)), range(16)))
    assert sum(got) == 1
    (one,) = budget.reservations
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: budget.commit(one.identity), range(16)))
    assert budget.count == 1


def test_of_processes_on_a_budget_for_one_one_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    BudgetAccountant(1.0, path=path, create=True)
    code = (
        "import sys; from dpsvm.privacy import BudgetAccountant, BudgetError\n"
        "accountant = BudgetAccountant(path=sys.argv[1]); sys.stdin.read()\n"
        "try: accountant.commit(accountant.reserve(0.6))\n"
        "except BudgetError: sys.exit(3)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    options: dict[str, Any] = {"stdin": subprocess.PIPE, "env": environment()}
    started = [subprocess.Popen(command, **options) for _ in range(3)]
    for process in started:
        process.stdin.close()  # type: ignore[union-attr]
    assert sorted(process.wait() for process in started) == [0, 3, 3]
    assert BudgetAccountant(path=path).count == 1


@POSIX
def test_a_reservation_outlives_its_process_and_expires(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    accountant = BudgetAccountant(1.0, path=path, create=True)
    killed = "a.reserve(0.75, label='run 1'); import os; os.kill(os.getpid(), 9)"
    assert python("-c", OPEN + killed, str(path)).returncode == -signal.SIGKILL
    (one,) = BudgetAccountant(path=path).reservations
    assert (one.label, accountant.remaining()) == ("run 1", 0.25)
    later = BudgetAccountant(path=path, clock=lambda: 4e9)
    assert (later.reservations, later.remaining()) == ((), 1.0)
    accountant.commit(one.identity)
    assert later.total().epsilon == 0.75


@POSIX
def test_what_was_committed_is_on_the_disk_before_commit_returns(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    BudgetAccountant(1.0, path=path, create=True)
    killed = "a.commit(a.reserve(0.75)); import os; os.kill(os.getpid(), 9)"
    assert python("-c", OPEN + killed, str(path)).returncode == -signal.SIGKILL
    assert BudgetAccountant(path=path).total().epsilon == 0.75


def test_a_commit_syncs_the_ledger_and_one_that_cannot_charges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accountant = BudgetAccountant(1.0, path=tmp_path / "ledger", create=True)
    identity = accountant.reserve(0.75)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            accountant.commit(identity)
    assert (accountant.count, accountant.remaining()) == (0, 0.25)
    accountant.commit(identity)
    assert accountant.count == 1


def test_a_commit_that_was_made_already_is_synced_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever made it may have been killed between the renaming and the syncing of the folder."""
    accountant = BudgetAccountant(1.0, path=tmp_path / "ledger", create=True)
    identity = accountant.reserve(0.75)
    accountant.commit(identity)
    synced: list[object] = []
    monkeypatch.setattr("dpsvm.privacy.ledger_file.sync_folder", synced.append)
    accountant.commit(identity)
    assert synced == [tmp_path]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_reserves_in_the_same_file_and_not_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    for kept in (BudgetAccountant(1.0, path=path, create=True), BudgetAccountant(1.0)):
        child = os.fork()
        if child == 0:
            os._exit(0 if granted(lambda one=kept: one.reserve(0.75)) else 3)  # type: ignore[misc]
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert (code, kept.remaining()) == ((0, 0.25) if "path" in repr(kept) else (3, 1.0))


def test_a_pickle_commits_what_was_reserved_and_holds_no_key(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    accountant = BudgetAccountant(1.0, path=path, create=True)
    identity = accountant.reserve(0.75)
    data = pickle.dumps(accountant)
    assert Path(f"{path}.key").read_bytes() not in data
    pickle.loads(data).commit(identity)
    assert accountant.count == 1


def test_a_reader_never_sees_half_a_change(tmp_path: Path) -> None:
    accountant = BudgetAccountant(1e6, path=tmp_path / "ledger", create=True)
    done = threading.Event()

    def write() -> None:
        for _ in range(100):
            accountant.commit(accountant.reserve(1.0))
        done.set()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not done.is_set():
            ledger = BudgetAccountant(path=tmp_path / "ledger")
            assert len(ledger.reservations) <= 1
        writing.result()
    assert accountant.count == 100


# --- the chain


def test_the_chain_grows_with_charges_alone(budget: BudgetAccountant) -> None:
    heads = [budget.head()]
    identity = budget.reserve(0.5)
    budget.refund(budget.reserve(0.125))
    assert budget.head() == heads[0]
    budget.commit(identity)
    heads.append(budget.head())
    budget.spend(0.125)
    heads.append(budget.head())
    assert len({*heads}) == 3
    assert [budget.head(count) for count in range(3)] == heads
    assert [budget.head(count) for count in (3, -1, 10**9)] == ["", "", ""]
    assert all(len(bytes.fromhex(head)) == 32 for head in heads)


def test_a_ledger_begun_anew_has_another_chain(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    first = BudgetAccountant(1.0, path=path, create=True).head()
    assert begin_anew(path, 1.0).head() != first


def test_what_is_left_of_a_longer_chain_shows_against_a_kept_head(tmp_path: Path) -> None:
    """What a ledger alone cannot see: an older state of it, put back."""
    path = tmp_path / "ledger"
    accountant = BudgetAccountant(1.0, path=path, create=True)
    accountant.spend(0.25)
    older = path.read_bytes()
    accountant.spend(0.5)
    count, head = accountant.count, accountant.head()
    path.write_bytes(older)
    again = BudgetAccountant(path=path)
    assert again.remaining() == 0.75
    again.spend(0.125)
    assert again.head(count) != head


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "budget": lambda text: text.update(epsilon=9.0),
    "no budget": lambda text: text.update(epsilon="inf"),
    "delta": lambda text: text.update(delta=0.5),
    "relation": lambda text: text.update(neighbouring="row"),
    "adaptive": lambda text: text.update(adaptive=True),
    "charge removed": lambda text: text["charges"].pop(),
    "first charge removed": lambda text: text["charges"].pop(0),
    "charges removed": lambda text: text["charges"].clear(),
    "charges swapped": lambda text: text["charges"].reverse(),
    "charge twice": lambda text: text["charges"].append(text["charges"][0]),
    "smaller charge": lambda text: text["charges"][0]["event"].update(epsilon=0.01),
    "label": lambda text: text["charges"][0].update(label="other"),
    "time": lambda text: text["charges"][0].update(time=at(0)),
    "job": lambda text: text["charges"][0].update(job="cd"),
    "rounds": lambda text: text["charges"][0].update(rounds=1),
    "reservation removed": lambda text: text["reserved"].clear(),
    "reservation expired": lambda text: text["reserved"][0].update(expires=at(0)),
    "reservation smaller": lambda text: text["reserved"][0]["event"].update(epsilon=0.01),
    "reservation twice": lambda text: text["reserved"].append(text["reserved"][0]),
    "no MAC": lambda text: text.update(mac=""),
    "another MAC": lambda text: text.update(mac="00" * 32),
    "MAC of another kind": lambda text: text.update(mac=7),
    "more": lambda text: text.update(note="hello"),
    "version 1": lambda text: text.update(format="dpsvm privacy ledger, version 1"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with two charges and a reservation."""
    path = tmp_path / "ledger"
    accountant = BudgetAccountant(2.0, path=path, create=True)
    accountant.spend(0.25, label="mean")
    accountant.commit(accountant.reserve(0.5, label="run", job="ab", rounds=20))
    accountant.reserve(0.5, label="another run")
    return path


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_a_ledger_is_seen(path: Path, edit: str) -> None:
    content = json.loads(path.read_text())
    EDITS[edit](content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="not a privacy ledger"):
        BudgetAccountant(path=path)


def test_an_edit_in_the_style_of_a_ledger_is_seen(path: Path) -> None:
    text = path.read_text()
    assert text.count('"epsilon": 0.25') == 1
    path.write_text(text.replace('"epsilon": 0.25', '"epsilon": 0.15'))
    with pytest.raises(ValueError, match="something changed it"):
        BudgetAccountant(path=path)


def test_a_lone_bit_is_seen_wherever_it_is(path: Path) -> None:
    whole = path.read_bytes()
    key = Path(f"{path}.key")
    secret = key.read_bytes()
    for at_byte in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[at_byte] ^= 1 << at_byte % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="not a privacy ledger"):
            BudgetAccountant(path=path)
    path.write_bytes(whole)
    key.write_bytes(bytes([secret[0] ^ 1]) + secret[1:])
    with pytest.raises(ValueError, match="something changed it"):
        BudgetAccountant(path=path)


def test_an_open_accountant_sees_it_too_and_charges_nothing(path: Path) -> None:
    accountant = BudgetAccountant(path=path)
    damaged = path.read_bytes().replace(b"0.25", b"0.15")
    path.write_bytes(damaged)
    for attempt in (lambda: accountant.spend(0.1), accountant.remaining, accountant.head):
        with pytest.raises(ValueError, match="something changed it"):
            attempt()
    assert path.read_bytes() == damaged


# --- files


def test_the_key_is_for_the_owner_alone(path: Path) -> None:
    key = Path(f"{path}.key")
    assert len(key.read_bytes()) == 32
    if os.name == "posix":
        assert key.stat().st_mode & 0o777 == 0o600


@POSIX
@pytest.mark.parametrize("rights", [0o640, 0o604, 0o620, 0o602, 0o610])
def test_a_key_that_others_may_read_is_refused(path: Path, rights: int) -> None:
    Path(f"{path}.key").chmod(rights)
    with pytest.raises(ValueError, match=r"ledger.key: others have rights to this key: chmod 600"):
        BudgetAccountant(path=path)


@POSIX
def test_a_key_is_for_the_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    code = "import os, sys; os.umask(0); from dpsvm.privacy import BudgetAccountant as B;"
    code += "B(1.0, path=sys.argv[1], create=True)"
    assert python("-c", code, str(tmp_path / "new")).returncode == 0
    assert (tmp_path / "new.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("length", [0, 31, 33, 100_000])
def test_a_key_of_another_length_is_refused(path: Path, length: int) -> None:
    key = Path(f"{path}.key")
    key.write_bytes(bytes(length))
    with pytest.raises(ValueError, match=r"the key of a ledger has 32 bytes, and this one not"):
        BudgetAccountant(path=path)


def test_a_missing_key_is_an_error_and_none_is_made(path: Path) -> None:
    key = Path(f"{path}.key")
    key.unlink()
    with pytest.raises(FileNotFoundError, match=r"ledger.key: the key of this ledger is missing"):
        BudgetAccountant(path=path)
    with pytest.raises(FileExistsError, match="there is a ledger already"):
        BudgetAccountant(9.0, path=path, create=True)
    assert not key.exists()


def test_a_ledger_that_was_copied_without_its_key_cannot_be_opened(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    with pytest.raises(FileNotFoundError, match=r"copy.key: the key of this ledger is missing"):
        BudgetAccountant(path=copy)
    BudgetAccountant(1.0, path=path.with_name("other"), create=True)
    Path(f"{copy}.key").write_bytes(path.with_name("other.key").read_bytes())
    Path(f"{copy}.key").chmod(0o600)
    with pytest.raises(ValueError, match="something changed it"):
        BudgetAccountant(path=copy)


def test_the_place_of_a_lost_ledger_is_kept_by_its_key(path: Path) -> None:
    path.unlink()
    with pytest.raises(FileNotFoundError, match="no such ledger"):
        BudgetAccountant(path=path)
    with pytest.raises(FileExistsError, match="there is a key already, so there was a ledger here"):
        BudgetAccountant(9.0, path=path, create=True)
    assert not path.exists()


def test_a_ledger_that_cannot_be_written_leaves_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(OSError, match="No space"):
            BudgetAccountant(1.0, path=tmp_path / "new", create=True)
    assert [one.name for one in tmp_path.iterdir()] == ["new.lock"]
    BudgetAccountant(1.0, path=tmp_path / "new", create=True)


def test_a_ledger_keeps_its_key_if_its_making_was_cut_short_after_it_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dpsvm._streams.sync_folder", stop)
        with pytest.raises(KeyboardInterrupt):
            BudgetAccountant(1.0, path=tmp_path / "new", create=True)
    assert BudgetAccountant(path=tmp_path / "new").remaining() == 1.0


@pytest.mark.parametrize("content", [b"", b"\0" * 1000, b"\xff\xfe", b"{}", b"{" * 200_000])
def test_what_is_no_ledger_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match="ledger: not a privacy ledger"):
        BudgetAccountant(path=path)


def test_a_huge_file_is_refused_unread(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="it has more than 67108864 bytes"):
        BudgetAccountant(path=path)


def test_a_ledger_never_outgrows_what_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()
    monkeypatch.setattr("dpsvm.privacy.ledger_file._LARGEST", len(before) + 100)
    with pytest.raises(BudgetError, match="this ledger is full: begin another"):
        BudgetAccountant(path=path).spend(0.1, label="a label " * 20)
    assert path.read_bytes() == before


@pytest.mark.parametrize("which", ["ledger", "ledger.key"])
def test_a_folder_in_the_place_of_a_file_is_refused(path: Path, which: str) -> None:
    path.with_name(which).unlink()
    path.with_name(which).mkdir()
    with pytest.raises(IsADirectoryError):
        BudgetAccountant(path=path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize("which", ["ledger", "ledger.key"])
def test_a_pipe_is_refused_at_once(path: Path, which: str) -> None:
    path.with_name(which).unlink()
    os.mkfifo(path.with_name(which), 0o600)
    with pytest.raises(ValueError, match=f"{which}: not a file"):
        BudgetAccountant(path=path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_shows_its_ledger_and_takes_no_charge(path: Path) -> None:
    Path(f"{path}.lock").unlink()
    path.parent.chmod(0o500)
    try:
        accountant = BudgetAccountant(path=path)
        assert accountant.remaining() == 0.75
        for attempt in (lambda: accountant.spend(0.1), lambda: accountant.reserve(0.1)):
            with pytest.raises(PermissionError):
                attempt()
        assert accountant.remaining() == 0.75
    finally:
        path.parent.chmod(0o700)


def test_names_with_spaces_and_other_letters_hold_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "Büro Zwei" / "das Buch"
    path.parent.mkdir()
    BudgetAccountant(1.0, path=path, create=True).spend(0.5, label="Größe \ud800 \x00")
    (charge,) = BudgetAccountant(path=path).charges
    assert charge.label == "Größe \ud800 \x00"
