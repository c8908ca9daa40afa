"""``dpsvm budget``: a ledger is begun once, and shows all that was charged to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import refusal

from dpsvm.cli import main
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.accounting import Gaussian, Pure


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A current folder with a ledger, notes that are none, and nothing else."""
    monkeypatch.chdir(tmp_path)
    BudgetAccountant(1.0, path="ledger", create=True)
    (tmp_path / "notes").write_text("my notes\n")
    return tmp_path


def test_a_ledger_is_begun_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--epsilon", "3", "--delta", "1e-5", "--neighbouring", "replace"]
    assert main(["budget", "create", "new", *words]) == 0
    expected = [
        "budget     epsilon = 3, delta = 1e-05 (replace)",
        "spent      epsilon = 0",
        "remaining  epsilon = 3",
        "charges    0",
    ]
    assert capsys.readouterr().out.splitlines() == expected
    assert main(["budget", "show", "new"]) == 0
    assert capsys.readouterr().out.splitlines() == expected
    accountant = BudgetAccountant(path="new")
    assert accountant.total().delta == 1e-5


def test_every_charge_is_shown_and_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    main(["budget", "create", "new", "--epsilon", "2", "--delta", "1e-5"])
    accountant = BudgetAccountant(path="new")
    accountant.spend(Pure(0.5), label="a histogram")
    accountant.spend(Gaussian(0.2))
    capsys.readouterr()
    assert main(["budget", "show", "new"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1] == f"spent      epsilon = {accountant.total().epsilon:g}"
    assert out[2] == f"remaining  epsilon = {accountant.remaining():g}"
    assert out[3] == "charges    2"
    assert out[4] == "        1  a histogram: Pure, epsilon = 0.499984 alone"  # at delta = 1e-5
    assert out[5].startswith("        2  (no label): Gaussian, epsilon = 0.7")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "expected create or show, got nothing"),
        ("reset ledger", "expected create or show, got 'reset'"),
        ("show", "one FILE is needed, got 0"),
        ("show ledger ledger", "one FILE is needed, got 2"),
        ("show none", "none: no such ledger; dpsvm budget create begins one"),
        ("show notes", "notes: not a privacy ledger: "),
        ("show .", ".: Is a directory"),
        ("show ledger --epsilon 1", "unknown flag --epsilon"),
        ("create new", "create needs --epsilon"),
        ("create --epsilon 1", "one FILE is needed, got 0"),
        ("create ledger --epsilon 9", "ledger: there is a file already, left as it is"),
        ("create notes --epsilon 9", "notes: there is a file already, left as it is"),
        ("create new --epsilon 0", "--epsilon: '0' is not a finite number above 0"),
        ("create new --epsilon nan", "--epsilon: 'nan' is not a finite number above 0"),
        ("create new --epsilon much", "--epsilon: 'much' is not a finite number above 0"),
        ("create new --epsilon 1 --delta 1", "--delta must be a number between 0 and 1, neither"),
        ("create new --epsilon 1 --delta nan", "--delta must be a number between 0 and 1, neither"),
        ("create new --epsilon 1 --neighbouring x", "--neighbouring: 'x' is not add-remove or"),
        ("create none/new --epsilon 1", "none/new: the folder to write to does not exist"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
    words: str, said: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert said in refusal(capsys, "budget", *words.split())
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_help_explains_both_actions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["budget", "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: dpsvm budget create")
    assert all(flag in out for flag in ("--epsilon x", "--delta x", "--neighbouring relation"))


def test_a_ledger_from_the_command_line_is_the_one_of_python(folder: Path) -> None:
    main(["budget", "create", "new", "--epsilon", "1"])
    BudgetAccountant(1.0, path="other", create=True)
    assert json.loads((folder / "new").read_text()) == json.loads((folder / "other").read_text())
