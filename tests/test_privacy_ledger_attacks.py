"""What attackers and careless users did to a budget, and what came of it."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import environment

from dpsvm.admm import NetworkADMM
from dpsvm.privacy import BudgetAccountant, BudgetError, Folded, Pure
from dpsvm.privacy.accounting import Event, ZCdp, epsilon_at_order, epsilon_of
from dpsvm.privacy.ledger import at, seconds
from dpsvm.privacy.ledger_file import LedgerFile

POSIX = pytest.mark.skipif(os.name != "posix", reason="hard links and /dev/full")
_YEAR_1 = -62135596800.0
_BEFORE = {"format": "dpsvm privacy ledger, version 1", "epsilon": 1.0, "delta": 0.0}
_BEFORE |= {"neighbouring": "add-remove", "adaptive": False, "charges": []}


class Cheap(Pure):
    """A charge of a kind that no ledger knows."""


# --- what is written can be read


@pytest.mark.parametrize("now", [_YEAR_1, -3e10, -1.0, 253402300799.0])
def test_a_clock_in_any_year_leaves_a_ledger_that_opens(tmp_path: Path, now: float) -> None:
    path = tmp_path / "ledger"
    accountant = BudgetAccountant(1.0, path=path, create=True, clock=lambda: now)
    accountant.spend(0.25)
    (charge,) = BudgetAccountant(path=path).charges
    assert seconds(charge.time) == now
    assert at(_YEAR_1) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize("now", [math.nan, math.inf, -math.inf, 1e20, 253402300800.0])
def test_a_time_outside_of_all_years_is_refused_and_charges_nothing(now: float) -> None:
    accountant = BudgetAccountant(1.0, clock=lambda: now)
    with pytest.raises(ValueError, match=re.escape(f"the years 1 to 9999, got {now!r} seconds")):
        accountant.spend(0.25)
    assert accountant.count == 0


def test_a_subclass_of_an_event_is_refused_and_the_ledger_opens(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    accountant = BudgetAccountant(1.0, path=path, create=True)
    for attempt in (accountant.spend, accountant.reserve, accountant.check):
        with pytest.raises(ValueError, match=r"of no subclass, got Cheap\(epsilon=0.1\)"):
            attempt(Cheap(0.1))
    assert BudgetAccountant(path=path).count == 0


@pytest.mark.parametrize("value", [True, "2", None, 1.5, math.nan, math.inf, 0, 10**400, [2], 2j])
@pytest.mark.parametrize("name", ["choices", "parts"])
def test_a_folded_charge_of_odd_counts_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a whole number from 1 on, got "):
        Folded(0.1, **{name: value})


@pytest.mark.parametrize("value", [True, "1", None, math.nan, math.inf, -1.0, [1.0], 1j])
def test_a_folded_charge_of_an_odd_offset_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="offset must be a finite number from 0 on, got "):
        Folded(0.1, value)


def test_a_folded_charge_of_numpy_numbers_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    event = Folded(np.float32(0.5), np.int64(0), np.int64(3), np.uint8(2))  # type: ignore[arg-type]
    BudgetAccountant(50.0, 1e-3, path=path, create=True).spend(event)
    (charge,) = BudgetAccountant(path=path).charges
    assert charge.event == Folded(0.5, 0.0, 3, 2)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("event", [Pure(1e308), Folded(0.1, 1e308), ZCdp(1e308)])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_charges_too_large_to_add_up_cost_infinitely_much(event: Event, delta: float) -> None:
    assert epsilon_of([event] * 2, delta) == math.inf
    assert epsilon_at_order([event] * 2, delta, 2.0) == math.inf
    accountant = BudgetAccountant(1.0, delta)
    with pytest.raises(BudgetError):
        accountant.check(event, times=2)


# --- a budget is not had twice


@POSIX
def test_an_old_ledger_of_two_names_is_not_taken_over_twice(tmp_path: Path) -> None:
    first, second = tmp_path / "ledger", tmp_path / "other"
    first.write_text(json.dumps(_BEFORE))
    os.link(first, second)
    for path in (first, second):
        with pytest.raises(BudgetError, match="must have one name, not hard links"):
            LedgerFile(path).adopt()
        assert not Path(f"{path}.key").exists()
    second.unlink()
    LedgerFile(first).adopt()
    BudgetAccountant(path=first).spend(1.0)


def test_a_folder_is_no_place_for_a_ledger_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileExistsError):
        BudgetAccountant(1.0, path=tmp_path / "folder", create=True)
    assert os.listdir(tmp_path) == ["folder"]


# --- the charge that stands is told


@POSIX
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize(
    "words",
    [
        "train --private --epsilon 1 --data-norm 1 --n-features 1 --method objective",
        "network --privacy objective --epsilon 1 --data-norm 1 --nodes 2 --rounds 1 --n-features 1",
    ],
)
@pytest.mark.parametrize("json_too", [False, True])
def test_a_full_disk_after_a_private_fit_says_that_the_charge_stands(
    tmp_path: Path, words: str, json_too: bool
) -> None:
    rows = "".join(f"{(-1) ** row:+d} 1:{(-1) ** row * 0.5}\n" for row in range(20))
    (tmp_path / "rows").write_text(rows)
    BudgetAccountant(2.0, neighbouring="replace", path=tmp_path / "ledger", create=True)
    more = ["--json", "/dev/full"] if json_too else []
    command = [sys.executable, "-m", "dpsvm", *words.split(), *more, "--ledger", "ledger", "rows"]
    with open("/dev/null" if json_too else "/dev/full", "w") as out:
        ended = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment(),
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    stands, error = ended.stderr.splitlines()
    assert stands.endswith("warning: ledger: the charge for this fit stands")
    assert error.endswith("No space left on device")
    assert BudgetAccountant(path=tmp_path / "ledger").count == 1


# --- what cannot be certified is refused before it is charged


@pytest.mark.parametrize("rounds", [1, 3])
def test_noise_that_rounding_alone_would_drown_is_refused_uncharged(rounds: int) -> None:
    """Later updates carry the noise of earlier ones: what is enough for one is not for two."""
    columns = 200_000 if rounds == 1 else 100_000
    accountant = BudgetAccountant(10.0, neighbouring="replace")
    model = NetworkADMM(
        privacy="objective",
        epsilon=0.5 if rounds == 1 else 1.0,
        rounds=rounds,
        data_norm=4.0,
        classes=(-1, 1),
        accountant=accountant,
    )
    X = np.random.default_rng(0).normal(size=(3, columns))
    with pytest.raises(ValueError, match="tol = 1e-09 is out of reach of floating-point numbers"):
        model.fit(X, np.array([-1, 1, 1]), nodes=np.arange(3))
    assert accountant.count == 0
