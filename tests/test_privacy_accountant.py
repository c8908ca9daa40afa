"""A budget is never exceeded, never forked and never reset."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import BaseEstimator, clone

from dpsvm.privacy import BudgetAccountant, BudgetError, Folded, Gaussian, Pure, Rdp, ZCdp
from dpsvm.privacy.accounting import Approximate, epsilon_of, gaussian_mu

EVERY_EVENT = [
    Pure(0.1),
    Approximate(0.1, 1e-7),
    Gaussian(0.05),
    ZCdp(0.001),
    Folded(0.02, offset=0.001, choices=4, parts=3),
    Rdp((2.0, 32.0), (0.001, 0.016)),
]


class Holder(BaseEstimator):
    def __init__(self, accountant: BudgetAccountant | None = None) -> None:
        self.accountant = accountant


def spend_or_not(accountant: BudgetAccountant) -> bool:
    try:
        accountant.spend(0.1)
    except BudgetError:
        return False
    return True


def test_a_charge_that_does_not_fit_is_refused_and_not_recorded() -> None:
    accountant = BudgetAccountant(1.0)
    accountant.spend(0.75)
    for charge in (accountant.check, accountant.spend):
        with pytest.raises(BudgetError, match=r"epsilon = 0.5 does not fit: 0.75 of 1 is spent"):
            charge(0.5)
    assert [charge.event for charge in accountant.charges] == [Pure(0.75)]
    assert accountant.remaining() == 0.25


def test_a_budget_without_delta_takes_only_pure_releases() -> None:
    with pytest.raises(BudgetError, match="the budget has none: only pure releases fit"):
        BudgetAccountant(100.0).spend(Gaussian(0.01))


def test_three_tenths_hold_three_charges_of_a_tenth() -> None:
    accountant = BudgetAccountant(0.3)
    assert [spend_or_not(accountant) for _ in range(4)] == [True, True, True, False]


def test_gaussian_charges_compose_exactly() -> None:
    accountant = BudgetAccountant(1.0, 1e-5)
    event = Gaussian(gaussian_mu(1.0, 1e-5) / 10)
    accountant.check(event, times=100)
    for _ in range(100):
        accountant.spend(event)
    assert accountant.total().epsilon == pytest.approx(1.0)
    with pytest.raises(BudgetError):
        accountant.spend(event)


def test_a_charge_under_another_neighbouring_relation_is_refused() -> None:
    accountant = BudgetAccountant(1.0, neighbouring="replace")
    with pytest.raises(
        BudgetError, match="'add-remove' cannot be charged to a budget for 'replace'"
    ):
        accountant.spend(0.1, neighbouring="add-remove")
    accountant.spend(0.1, neighbouring="replace")


def test_copies_and_clones_are_the_same_budget() -> None:
    accountant = BudgetAccountant(1.0)
    cloned = clone(Holder(accountant))
    for other in (copy.copy(accountant), copy.deepcopy(accountant), cloned.accountant):
        assert other is accountant


def test_a_pickle_without_a_file_takes_no_charges() -> None:
    accountant = BudgetAccountant(1.0)
    accountant.spend(0.25)
    there = pickle.loads(pickle.dumps(accountant))
    assert there.total() == accountant.total()
    with pytest.raises(BudgetError, match="without a file takes no charge"):
        there.spend(0.1)


def _child(accountant: BudgetAccountant) -> str:
    try:
        accountant.spend(0.5)
    except BudgetError as refusal:
        return str(refusal)
    return "charged"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_does_not_double_the_budget() -> None:
    accountant = BudgetAccountant(1.0)
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, _child(accountant).encode())
        os._exit(0)
    os.wait()
    assert b"without a file takes no charge" in os.read(read, 1000)
    accountant.spend(0.5)


@pytest.mark.skipif(os.name == "nt", reason="links are for administrators")
def test_a_link_to_a_ledger_is_the_same_budget(tmp_path: Path) -> None:
    BudgetAccountant(1.0, path=tmp_path / "ledger", create=True)
    (tmp_path / "link").symlink_to(tmp_path / "ledger")
    BudgetAccountant(path=tmp_path / "link").spend(0.5)
    assert BudgetAccountant(path=tmp_path / "ledger").remaining() == 0.5
    assert not (tmp_path / "link.lock").exists()
    (tmp_path / "other").hardlink_to(tmp_path / "ledger")
    (tmp_path / "other.key").hardlink_to(tmp_path / "ledger.key")
    with pytest.raises(BudgetError, match="must have one name"):
        BudgetAccountant(path=tmp_path / "other").spend(0.5)


def test_a_pickle_outlives_its_ledger_and_takes_no_charge(tmp_path: Path) -> None:
    accountant = BudgetAccountant(1.0, path=tmp_path / "ledger", create=True)
    stored = pickle.dumps(accountant)
    (tmp_path / "ledger").unlink()
    with pytest.raises(BudgetError, match="no such ledger here"):
        pickle.loads(stored).spend(0.5)


def test_an_adaptive_budget_goes_by_one_rule_from_the_start(tmp_path: Path) -> None:
    charges = [Pure(0.2)] * 10
    for last in (Gaussian(0.494), Approximate(1e-13, 1e-2)):  # each fits by a rule of its own
        fixed, adaptive = (BudgetAccountant(2.0, 1e-2, adaptive=kind) for kind in (False, True))
        for charge in charges:
            fixed.spend(charge)
            adaptive.spend(charge)
        fixed.spend(last)
        with pytest.raises(BudgetError):
            adaptive.spend(last)
    path = tmp_path / "ledger"
    BudgetAccountant(2.0, 1e-2, adaptive=True, path=path, create=True).spend(Gaussian(0.3))
    again = BudgetAccountant(path=path)
    assert again.total().epsilon > epsilon_of([Gaussian(0.3)], 1e-2)
    with pytest.raises(ValueError, match="the ledger's adaptive is True, not False"):
        BudgetAccountant(path=path, adaptive=False)


def test_a_pickle_with_a_file_is_the_same_budget(tmp_path: Path) -> None:
    accountant = BudgetAccountant(1.0, path=tmp_path / "ledger.json", create=True)
    pickle.loads(pickle.dumps(accountant)).spend(0.75)
    assert accountant.remaining() == 0.25


def test_a_closed_accountant_takes_no_charges() -> None:
    with BudgetAccountant(1.0) as accountant:
        accountant.spend(0.5)
    with pytest.raises(BudgetError, match="closed"):
        accountant.check(0.1)
    assert accountant.total().epsilon == 0.5


def test_a_ledger_survives_its_process_and_reopening_does_not_reset_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    code = (
        "import os, sys; from dpsvm.privacy import BudgetAccountant;"
        "BudgetAccountant(1.0, 1e-6, path=sys.argv[1], create=True).spend(0.75, label='mean');"
        "os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert killed.returncode != 0
    again = BudgetAccountant(path=path)
    assert [charge.label for charge in again.charges] == ["mean"]
    with pytest.raises(BudgetError):
        again.spend(0.5)
    with pytest.raises(FileExistsError, match="there is a ledger already"):
        BudgetAccountant(9.0, path=path, create=True)
    with pytest.raises(ValueError, match=r"the ledger's epsilon is 1.0, not 2.0"):
        BudgetAccountant(2.0, path=path)


def test_every_kind_of_charge_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    accountant = BudgetAccountant(5.0, 1e-5, path=path, create=True)
    for event in EVERY_EVENT:
        accountant.spend(event, label=type(event).__name__)
    read = BudgetAccountant(path=path)
    assert [charge.event for charge in read.charges] == EVERY_EVENT
    assert read.total().epsilon == epsilon_of(EVERY_EVENT, 1e-5)


def test_a_ledger_is_begun_only_when_asked_to(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="create=True begins a new one"):
        BudgetAccountant(1.0, path=tmp_path / "ledger.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text[: len(text) // 2], "not a privacy ledger"),
        (lambda text: text.replace("Pure", "Puree"), "'Puree' is no kind of charge"),
        (lambda text: text.replace('"epsilon": 0.5', '"epsilon": -0.5'), "got -0.5"),
        (lambda text: text.replace('"delta"', '"gamma"'), "'delta' is missing"),
        (lambda text: text.replace("version 2", "version 9"), "its format is"),
        (lambda text: text.replace('"rounds": 0', '"rounds": false'), "got False"),
        (lambda text: text.replace('"time": "2', '"time": "x'), "does not match format"),
        (lambda text: text.replace('"job": ""', '"job": []'), "job must be a text, got []"),
        (lambda text: text.replace('"kind"', '"sort"'), "'kind' is missing"),
        (lambda text: text.replace("0.5", "1" * 400), "got 1111"),
        (lambda text: text.replace('"charges"', '"payments"'), "'charges' is missing"),
        (lambda text: text.replace('"epsilon": 1.0', '"epsilon": 9.0'), "something changed it"),
        (lambda text: text.replace('"epsilon": 1.0', '"epsilon": 1.00'), "something changed it"),
        (lambda text: text.replace("\n", "\r\n"), "something changed it"),
        (lambda text: text + "\n", "something changed it"),
        (lambda text: "[" * 100_000, "not a privacy ledger"),
        (lambda text: "", "not a privacy ledger"),
        (lambda text: "[]", "not a privacy ledger"),
    ],
)
def test_a_damaged_ledger_is_refused_by_name(tmp_path: Path, change: Any, reason: str) -> None:
    path = tmp_path / "ledger.json"
    BudgetAccountant(1.0, path=path, create=True).spend(0.5)
    path.write_bytes(change(path.read_text()).encode())
    with pytest.raises(ValueError, match=r"ledger.json: not a privacy ledger") as caught:
        BudgetAccountant(path=path)
    assert reason in str(caught.value)


def test_a_charge_that_cannot_be_written_is_an_error_and_leaves_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.json"
    accountant = BudgetAccountant(1.0, path=path, create=True)
    before = path.read_text()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        accountant.spend(0.5)
    monkeypatch.undo()
    assert path.read_text() == before
    assert json.loads(before)["charges"] == []


@pytest.mark.parametrize("kept", ["memory", "file"])
def test_threads_never_exceed_the_budget(tmp_path: Path, kept: str) -> None:
    where = {"path": tmp_path / "ledger.json", "create": True} if kept == "file" else {}
    accountant = BudgetAccountant(1.0, **where)
    with ThreadPoolExecutor(8) as pool:
        granted = list(pool.map(lambda _: spend_or_not(accountant), range(24)))
    assert sum(granted) == 10
    assert len(accountant.charges) == 10


def test_processes_never_exceed_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    BudgetAccountant(1.0, path=path, create=True)
    code = (
        "import sys; from dpsvm.privacy import BudgetAccountant, BudgetError\n"
        "accountant = BudgetAccountant(path=sys.argv[1])\n"
        "for _ in range(8):\n"
        "    try: accountant.spend(0.1)\n"
        "    except BudgetError: pass\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
    assert len(BudgetAccountant(path=path).charges) == 10


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "epsilon must be given"),
        ({"epsilon": 0}, "got 0"),
        ({"epsilon": float("nan")}, "got nan"),
        ({"epsilon": 1.0, "delta": 1.0}, "got 1.0"),
        ({"epsilon": 1.0, "delta": -1e-9}, "got -1e-09"),
        ({"epsilon": 1.0, "neighbouring": "friends"}, "got 'friends'"),
    ],
)
def test_a_budget_that_is_none_is_refused(arguments: dict[str, float], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        BudgetAccountant(**arguments)
