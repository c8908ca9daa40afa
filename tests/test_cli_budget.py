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
    assert capsys.readouterr().out.splitlines()[:-1] == expected
    assert main(["budget", "show", "new"]) == 0
    accountant = BudgetAccountant(path="new")
    assert capsys.readouterr().out.splitlines() == [*expected, f"head       {accountant.head()}"]
    assert accountant.total().delta == 1e-5


def test_every_charge_is_shown_and_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    accountant = BudgetAccountant(2.0, 1e-5, path="new", create=True, clock=lambda: 0.0)
    accountant.spend(Pure(0.5), label="a histogram")
    accountant.spend(Gaussian(0.2))
    assert main(["budget", "show", "new"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1] == f"spent      epsilon = {accountant.total().epsilon:g}"
    assert out[2] == f"remaining  epsilon = {accountant.remaining():g}"
    assert out[3] == "charges    2"
    assert out[4] == "        1  1970-01-01T00:00:00Z  a histogram: Pure, epsilon = 0.499984 alone"
    assert out[5].startswith("        2  1970-01-01T00:00:00Z  (no label): Gaussian, epsilon = 0.7")
    assert out[6] == f"head       {accountant.head()}"
    assert len(out) == 7


def test_reservations_are_shown_and_taken_from_what_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    accountant = BudgetAccountant(2.0, path="new", create=True)
    job = {"job": "ab" * 32, "rounds": 20}
    accountant.commit(accountant.reserve(0.25, label="run\x1b[2J " + "long " * 40, **job))
    accountant.reserve(0.5, label="run 2", **job)
    assert main(["budget", "show", "new"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    words = " ".join(out.split())
    assert "spent epsilon = 0.25 remaining epsilon = 1.25 charges 1 1 2" in words
    assert f"20 rounds of job {'ab' * 32} reserved 1 until 2" in words
    assert "run 2: Pure, epsilon = 0.5 alone" in words


VERSION_1 = """{"format": "dpsvm privacy ledger, version 1", "epsilon": 3.0, "delta": 1e-05,
"neighbouring": "row", "adaptive": true, "charges": [
{"label": "mean", "kind": "Pure", "epsilon": 0.5}, {"label": "", "kind": "Gaussian", "mu": 0.2}]}
"""


def test_a_ledger_of_version_1_is_taken_over_when_asked(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "old").write_text(VERSION_1)
    assert "If you trust it as it is, dpsvm budget adopt" in refusal(
        capsys, "budget", "show", "old"
    )
    assert (folder / "old").read_text() == VERSION_1
    assert main(["budget", "adopt", "old"]) == 0
    assert "        1  (no time)  mean: Pure" in capsys.readouterr().out
    kept = BudgetAccountant(3.0, 1e-5, neighbouring="row", adaptive=True, path="old")
    assert [charge.event for charge in kept.charges] == [Pure(0.5), Gaussian(0.2)]
    kept.spend(0.25)
    (folder / "old").write_text(VERSION_1)  # back to what it was
    assert "there is a key already" in refusal(capsys, "budget", "adopt", "old")
    assert (folder / "old").read_text() == VERSION_1


def test_a_lost_key_is_one_line_and_no_new_one_is_made(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "ledger.key").unlink()
    assert "ledger.key: the key of this ledger is missing" in refusal(
        capsys, "budget", "show", "ledger"
    )
    assert not (folder / "ledger.key").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "expected create, show or adopt, got nothing"),
        ("reset ledger", "expected create, show or adopt, got 'reset'"),
        ("adopt", "one FILE is needed, got 0"),
        ("adopt none", "none: no such ledger; dpsvm budget create begins one"),
        ("adopt notes", "notes: not a privacy ledger: "),
        ("adopt .", ": Is a directory"),
        ("adopt ledger", "its format is 'dpsvm privacy ledger, version 2', not"),
        ("show", "one FILE is needed, got 0"),
        ("show ledger ledger", "one FILE is needed, got 2"),
        ("show none", "none: no such ledger; dpsvm budget create begins one"),
        ("show notes", "notes: not a privacy ledger: "),
        ("show .", ": Is a directory"),
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
    new, other = (json.loads((folder / name).read_text()) for name in ("new", "other"))
    assert new.pop("mac") != other.pop("mac")  # each has a key of its own
    assert new == other
