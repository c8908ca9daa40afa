"""``dpsvm vertical``: what it prints, what it writes, and what it does with bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import refusal
from sharing_problems import make_problem

from dpsvm.admm import SharingADMMClassifier
from dpsvm.cli import main
from dpsvm.cli.vertical import COMMAND
from dpsvm.data import dump_libsvm, load_libsvm

warned = pytest.mark.filterwarnings("always::dpsvm.PrivacyLeakWarning")
SIZES = ["--parties", "4,5"]
ROW = ["--privacy", "row", "--epsilon", "1", "--delta", "1e-5", "--data-norm", "3", "--radius", "2"]
ROW += ["--target-bound", "3", "--rounds", "5"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A current folder with training and test files of nine columns."""
    monkeypatch.chdir(tmp_path)
    blocks, y = make_problem(n=200)
    X = np.hstack(blocks)
    dump_libsvm(X[:150], y[:150], "train")
    dump_libsvm(X[150:], y[150:], "test")
    dump_libsvm(X[:150], X[:150].sum(axis=1), "numbers")
    dump_libsvm(X[:150], np.arange(150) % 3, "three")
    return tmp_path


def test_the_joint_model_stands_beside_both_baselines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vertical", "--parties", "4,3,2", "--test", "test", "train"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "train: 150 rows, parties of 4, 3, 2" in out
    assert "20 (rounds)" in out
    rows = {
        line[:17].strip(): line.split() for line in out.splitlines() if re.search(r"0\.\d", line)
    }
    assert {"joint", "all features", "first party alone"} <= set(rows)
    assert "the joint model beats the first party alone" in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_numbers_are_the_estimators(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vertical", "--parties", "4,3,2", "--json", "out.json", "-q", "train"]) == 0
    assert capsys.readouterr().out == ""
    record = json.loads(Path("out.json").read_text())
    X, y = load_libsvm("train", n_features=9)
    model = SharingADMMClassifier().fit(X, y, parties=[4, 3, 2])
    assert record["outcomes"][0]["objective"] == pytest.approx(model.objective_)
    assert record["history"][-1]["objective"] == pytest.approx(model.objective_)
    assert len(record["history"]) == 20
    assert record["outside_guarantee"] == []
    assert record["privacy"] is None
    assert record["outcomes"][1]["gap"] == 0


def test_all_baselines_and_the_assumptions_are_there_when_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--more", "--diagnose", "--rounds", "3", "--intercept-party", "1"]
    assert main(["vertical", *SIZES, *words, "train"]) == 0
    out = capsys.readouterr().out
    assert "Gauss-Seidel" in out
    assert "distributed SGD" in out
    assert "party 0: column rank: 4 against 4, holds" in out
    assert "rho >= L: 0.05 against 0.25, does not hold" in out


@warned
def test_a_guarantee_is_printed_with_what_it_does_not_cover(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["vertical", *SIZES, *ROW, "--seed", "0", "--compare", "train"]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"^guarantee +epsilon = 1, delta = 1e-05 \(row\), of the messages", out, re.M)
    assert re.search(r"^ +one row of one party$", out, re.M)
    assert re.search(r"^whole record +\d", out, re.M)
    assert re.search(r"^corollary 1 +\d", out, re.M)
    assert re.search(r"^tight +1$", out, re.M)
    assert "labels are not protected here" in out
    assert "are outside it" in " ".join(out.split())
    assert "does NOT beat the first party alone" in out
    assert "warning: --seed makes the noise repeatable" in err
    assert max(map(len, out.splitlines())) <= 80


@warned
def test_a_claim_is_printed_as_a_claim(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--privacy", "paper", "--epsilon", "1", "--delta", "1e-6", "--b1", "1", "--c1", "1"]
    assert main(["vertical", *SIZES, *words, "train"]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"^guarantee +none$", out, re.M)
    assert "claimed by the paper, not a guarantee" in " ".join(out.split())
    assert re.search(r"^corollary 1 +55.17$", out, re.M)
    assert re.search(r"^tight +3\.316$", out, re.M)
    assert "gives no privacy guarantee" in err


def test_a_picture_is_written(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    words = ["--test", "test", "--plot", "picture.png", "-q"]
    assert main(["vertical", *SIZES, *words, "train"]) == 0
    assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert main(["vertical", *SIZES, *ROW, "--compare", "--plot", "row.png", "-q", "train"]) == 0
    assert (folder / "row.png").stat().st_size > 10_000


def test_the_squared_loss_is_a_regression(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vertical", *SIZES, "--loss", "squared", "numbers"]) == 0
    assert "the joint model beats the first party alone" in capsys.readouterr().out


def test_a_divergence_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    column = np.zeros((4, 3))
    column[0] = 1.0
    dump_libsvm(column, [2.0, 0.5, -1.0, 2.0], "equal")
    words = ["--method", "jacobi", "--rho", "2", "--lam", "0.001", "--rounds", "500"]
    assert main(["vertical", "--parties", "1,1,1", "--loss", "squared", *words, "equal"]) == 0
    out, err = capsys.readouterr()
    assert "(diverged)" in out
    assert "warning: the run diverged" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["train"], "--parties is required"),
        ([*SIZES], "one FILE is needed, got 0"),
        (["--parties", "4,x", "train"], "--parties: '4,x' is not a whole number above 0"),
        (["--parties", "9,0", "train"], "--parties: '9,0' is not a whole number above 0"),
        (["--parties", "4,4", "train"], "is beyond 8"),
        ([*SIZES, "--lam", "0", "train"], "--lam: '0' is not a finite number above 0"),
        (
            [*SIZES, "--rho", "-1", "train"],
            "--rho: '-1' is not a finite number above 0",
        ),
        ([*SIZES, "three"], "must hold two classes, got 3"),
        ([*SIZES, "absent"], "absent: No such file"),
        ([*SIZES, "--json", "no/where", "train"], "folder to write to does not exist"),
        ([*SIZES, "--privacy", "row", "train"], "needs an epsilon"),
        ([*SIZES, *ROW[:4], "train"], "needs a delta"),
        ([*SIZES, *ROW[:6], "train"], "public bound --data-norm"),
        ([*SIZES, "--epsilon", "1", "train"], "epsilon goes with a private mode"),
        ([*SIZES, "--seed", "1", "train"], "--seed goes with --privacy"),
        ([*SIZES, "--json", "train", "train"], "cannot be both FILE and --json"),
        ([*SIZES, *ROW, "--ledger", "l", "--json", "l", "train"], "both --ledger and"),
        ([*SIZES, "--test", "test", "--plot", "test", "train"], "--test and --plot"),
        ([*SIZES, *ROW, "--epsilon", "1e50", "train"], "epsilon must be at most"),
        ([*SIZES, "--ledger", "l", "train"], "--ledger goes with --privacy"),
        ([*SIZES, *ROW, "--ledger", "l", "train"], "no such ledger"),
        ([*SIZES, "--box", "1,2", "train"], "--box: '1,2' is not two numbers around 0"),
        ([*SIZES, "--box", "-1,1", "--ball", "2", "train"], "exclude each other"),
        (
            [*SIZES, *ROW, "--data-norm", ".1", "train"],
            "above the public bound --data-norm",
        ),
    ],
)
def test_bad_input_is_one_line_with_the_reason(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in refusal(capsys, "vertical", *words)


def test_a_run_is_charged_to_a_ledger_and_refused_when_it_does_not_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    create = ["--epsilon", "2", "--delta", "1e-5", "--neighbouring", "row", "ledger"]
    assert main(["budget", "create", *create]) == 0
    words = ["vertical", *SIZES, *ROW, "--ledger", "ledger", "train"]
    assert main(words) == 0
    assert re.search(r"^ledger +ledger: 2 before, 0\.\d+ is left$", capsys.readouterr().out, re.M)
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "nothing was released" in err


@pytest.mark.parametrize("words", [["--box", "-0.1,0.1"], ["--ball", "0.1"], ["--kappa", "3"]])
def test_constraints_and_kappa_reach_the_estimator(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["vertical", *SIZES, *words, "--json", "out.json", "-q", "train"]) == 0
    record = json.loads(Path("out.json").read_text())
    if words[0] == "--kappa":
        assert record["kappa"] == 3
    else:
        assert str(0.1) in record["settings"]["constraint"]


@warned
def test_all_that_a_guarantee_does_not_cover_is_listed_in_the_record() -> None:
    words = [*ROW, "--seed", "0", "--compare", "--json", "out.json", "-q"]
    assert main(["vertical", *SIZES, *words, "train"]) == 0
    record = json.loads(Path("out.json").read_text())
    history = ["history.objective", "history.lyapunov"]
    assert record["outside_guarantee"] == [*history, "outcomes", "verdict"]
    assert record["assumptions"] is None


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vertical", "--help"]) == 0
    out = capsys.readouterr().out
    for flag in COMMAND.flags:
        assert flag.spelling in out
    assert "labels are not protected" in out
    assert max(map(len, out.splitlines())) <= 80
