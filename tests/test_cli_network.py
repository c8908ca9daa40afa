"""``dpsvm network``: what it prints, what it writes, and what it does with bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import refusal
from sklearn.linear_model import LogisticRegression

from dpsvm.admm import NetworkADMM
from dpsvm.admm.network.comparison import compare
from dpsvm.cli import main
from dpsvm.cli.network import COMMAND
from dpsvm.data import dump_libsvm, load_libsvm

warned = pytest.mark.filterwarnings("always::dpsvm.PrivacyLeakWarning")
COST = ["--C", "10", "--lam", "0.1"]
PRIVATE = [*COST, "--privacy", "objective", "--epsilon", "3", "--rounds", "6"]
PRIVATE += ["--n-features", "4"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A current folder with training and test files of four columns, rows of norm below 1."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    X /= 1.01 * np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ [2.0, -1.0, 1.0, 0.0] + 0.3 * rng.standard_normal(200) > 0, 1, -1)
    dump_libsvm(X[:150], y[:150], "train")
    dump_libsvm(X[150:], y[150:], "test")
    dump_libsvm(3 * X[:150], y[:150], "long")
    dump_libsvm(X[:150], np.arange(150) % 3, "three")
    return tmp_path


def test_the_network_stands_beside_its_baselines(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--graph", "ring", "--test", "test", "--rounds", "200"]
    assert main(["network", *COST, *words, "train"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "train: 150 rows, 30 at each of 5 nodes" in out
    assert "ring, 5 edges, 2 neighbours each" in out
    assert "200 (rounds), of which 100 read the data" in out
    assert re.search(r"^data accesses +500 of all nodes$", out, re.M)
    for label in (r"L\(t\)", "objective of the mean", "consensus error", r"\|sum lambda\|"):
        assert re.search(rf"^{label} +\d", out, re.M)
    rows = {line[:24].strip(): line[24:].split() for line in out.splitlines()}
    for name in ("network", "all rows in one place", "mean of local models"):
        assert float(rows[name][-1]) <= 0.2
    assert float(rows["network"][1]) < 1e-4
    assert "a node alone, on average" in rows
    assert "the network beats" in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_numbers_are_the_estimators(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network", *COST, "--deal-seed", "3", "--json", "out.json", "-q", "train"]) == 0
    assert capsys.readouterr().out == ""
    record = json.loads(Path("out.json").read_text())
    X, y = load_libsvm("train")
    nodes = np.random.default_rng(3).permutation(np.arange(150) % 5)
    model = NetworkADMM(C=10.0, lam=0.1).fit(X, y, nodes=nodes)
    assert np.allclose(record["coef"], model.coef_)
    assert record["outcomes"][0]["objective"] == pytest.approx(model.objective_)
    assert record["history"][-2]["objective"] == pytest.approx(model.objective_)
    assert len(record["history"]) == 50
    assert record["data_accesses"] == 125
    assert record["outside_guarantee"] == []
    assert record["privacy"] is None
    assert record["outcomes"][1]["gap"] == 0


def test_the_central_model_is_that_of_scikit_learn() -> None:
    assert main(["network", *COST, "--json", "out.json", "-q", "train"]) == 0
    central = json.loads(Path("out.json").read_text())["outcomes"][1]
    X, y = load_libsvm("train")
    model = LogisticRegression(C=10 / (30 * 0.1), fit_intercept=False, tol=1e-10)
    weights = model.fit(X, y).coef_.ravel()
    losses = np.logaddexp(0, -y * (X @ weights))
    assert central["train_loss"] == pytest.approx(losses.mean(), rel=1e-6)
    objective = 10 * 5 * losses.mean() + 0.05 * weights @ weights
    assert central["objective"] == pytest.approx(objective, rel=1e-9)


@pytest.mark.parametrize(
    ("algorithm", "recycle", "growth", "updates"),
    [
        ("admm", False, 1.0, 8),
        ("madmm", False, 1.1, 8),
        ("radmm", True, 1.0, 4),
        ("mradmm", True, 1.1, 4),
    ],
)
def test_four_algorithms(algorithm: str, recycle: bool, growth: float, updates: int) -> None:
    words = ["--algorithm", algorithm, "--rounds", "8", "--json", "out.json", "-q"]
    words += ["--growth", "1.1"] if growth > 1 else []
    assert main(["network", *COST, *words, "train"]) == 0
    record = json.loads(Path("out.json").read_text())
    assert record["updates"] == updates
    assert record["settings"]["recycle"] is recycle
    assert record["settings"]["growth"] == growth


def test_a_given_graph_and_a_constant_reach_the_estimator(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--graph", "0-1,1-2", "--nodes", "3", "--rho", "0.4,0.5,0.6", "--constant", "0.5"]
    words += ["--data-norm", "2", "--diagnose", "--rounds", "400", "--json", "out.json"]
    assert main(["network", *COST, *words, "train"]) == 0
    out = capsys.readouterr().out
    assert "given, 2 edges, 1 to 2 neighbours each" in out
    assert re.search(r"^rho +0.4, 0.5, 0.6, growth 1, edge$", out, re.M)
    assert "(0: bipartite): 0 against 0, does not hold" in out
    record = json.loads(Path("out.json").read_text())
    assert record["edges"] == [[0, 1], [1, 2]]
    assert record["intercept"] != 0
    assert abs(record["outcomes"][0]["gap"]) < 1e-6


def test_every_iteration_moves_the_bar() -> None:
    X, y = load_libsvm("train")
    ticks: list[int] = []
    compare(NetworkADMM(rounds=7), X, y, tick=lambda: ticks.append(1))
    assert len(ticks) == 7


@pytest.mark.parametrize("loss", ["hinge", "huber", "smooth"])
def test_every_loss_reaches_its_optimum(loss: str) -> None:
    words = ["--loss", loss, "--rounds", "101", "--json", "out.json", "-q"]
    assert main(["network", *COST, *words, "train"]) == 0
    outcomes = json.loads(Path("out.json").read_text())["outcomes"]
    assert 0 <= outcomes[0]["gap"] < 1e-2 < outcomes[3]["gap"]


def test_a_guarantee_is_told_apart_from_a_claim(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network", *PRIVATE, "train"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    tight = re.search(r"^tight +([\d.]+)$", out, re.M)
    paper = re.search(r"^paper +([\d.]+)$", out, re.M)
    assert re.search(r"^paper condition +2 c1 = 0.5 < ", out, re.M)
    assert re.search(r"^guarantee +epsilon = 3 \(replace\)$", out, re.M)
    assert float(tight.group(1)) < 3 < float(paper.group(1))
    assert re.search(r"^alphas +[\d.]+", out, re.M)
    assert "outside it" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80


def test_a_mode_without_a_claim_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--privacy", "gaussian", "--epsilon", "2", "--delta", "1e-5", "--rounds", "4"]
    assert main(["network", *COST, *words, "--n-features", "4", "train"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^guarantee +epsilon = 2, delta = 1e-05 \(replace\)$", out, re.M)
    assert not re.search(r"^paper +", out, re.M)
    assert re.search(r"^output scales +[\d.]+", out, re.M)


@warned
def test_what_a_guarantee_does_not_cover_is_listed_and_leaks_are_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [word for word in PRIVATE if word not in ("--n-features", "4")]
    words += ["--seed", "0", "--compare", "--json", "out.json", "-q"]
    assert main(["network", *words, "train"]) == 0
    err = capsys.readouterr().err
    assert "warning: train: the number of features" in err
    assert "warning: --seed makes the noise repeatable" in err
    outside = json.loads(Path("out.json").read_text())["outside_guarantee"]
    assert {"history.loss", "history.objective", "outcomes", "verdict"} <= set(outside)


def test_the_papers_penalties_warn_of_their_limit(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--rho", "0.3,0.4,0.5,0.6,0.7", "--penalty", "per-node"]
    assert main(["network", *COST, *words, "train"]) == 0
    err = capsys.readouterr().err
    assert err.count("does not lead to the minimiser") == 1


def test_a_picture_is_written(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    assert main(["network", *COST, "--test", "test", "--plot", "a.png", "-q", "train"]) == 0
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG")
    assert main(["network", *PRIVATE, "--compare", "--plot", "b.png", "-q", "train"]) == 0
    assert (folder / "b.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "one FILE is needed, got 0"),
        (["absent"], "absent: No such file"),
        (["three"], "must hold two classes, got 3"),
        (["--nodes", "1", "train"], "--nodes: '1' is not a whole number from 2"),
        (["--nodes", "200", "train"], "train: 150 rows are not enough for 200 nodes"),
        (["--graph", "cube", "train"], "--graph: 'cube' is not one of complete"),
        (["--graph", "0-1,2-3", "--nodes", "4", "train"], "the graph is not connected"),
        (["--graph", "0-1,1-2", "train"], "the graph has 3 nodes, and the data have 5"),
        (["--C", "31", "train"], "--C must be at most the number of samples"),
        (["--C", "0", "train"], "--C: '0' is not a number from 1e-100 to 1e+100"),
        (["--rho", "1,x", "train"], "--rho: '1,x' is not a number above 0"),
        (["--rho", "1,2", "train"], "--rho has 2 numbers for 5 nodes"),
        (["--growth", "1.1", "train"], "--growth goes with madmm or mradmm, not with radmm"),
        (["--algorithm", "mradmm", "--growth", "0.9", "train"], "growth must be at least 1"),
        (["--algorithm", "admm", "--gamma", "1", "train"], "--gamma goes with radmm or mradmm"),
        (["--constant", "1", "train"], "--constant goes with --data-norm"),
        (["--density", "0.5", "train"], "--density goes with --graph random"),
        (["--loss", "square", "train"], "--loss: 'square' is not"),
        ([*PRIVATE, "--loss", "hinge", "train"], "--loss hinge has no bound on its curvature"),
        (["--classes", "1,1", "train"], "--classes: '1,1' is not two different whole numbers"),
        (["--classes", "0,1", "train"], "not in classes"),
        (["--n-features", "3", "train"], "is beyond 3"),
        (["--json", "no/where", "train"], "folder to write to does not exist"),
        (["--epsilon", "1", "train"], "epsilon goes with a private mode"),
        (["--seed", "1", "train"], "--seed goes with --privacy"),
        (["--ledger", "l", "train"], "--ledger goes with --privacy"),
        ([*PRIVATE, "--ledger", "l", "train"], "no such ledger"),
        ([*PRIVATE, "--epsilon", "1e-3", "train"], "is too small for any noise"),
        ([*PRIVATE, "--alpha", "1", "train"], "give it without --epsilon"),
        ([*PRIVATE, "--delta", "1e-5", "train"], "--delta goes with --privacy gaussian"),
        ([*PRIVATE, "long"], "has a norm above 1"),
    ],
)
def test_bad_input_is_one_line_with_the_reason(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in refusal(capsys, "network", *words)


def test_a_run_is_charged_to_a_ledger_and_refused_when_it_does_not_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    create = ["--epsilon", "4", "--neighbouring", "replace", "ledger"]
    assert main(["budget", "create", *create]) == 0
    words = ["network", *PRIVATE, "--ledger", "ledger", "train"]
    assert main(words) == 0
    assert re.search(
        r"^ledger +ledger: 4 before, (1|0\.9\d*) is left$", capsys.readouterr().out, re.M
    )
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "nothing was released" in err


def test_a_minimiser_that_cannot_be_certified_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missed = "dpsvm.admm.network.node.approach"
    monkeypatch.setattr(missed, lambda objective, tol, start: (start, np.inf))
    assert main(["network", *PRIVATE, "train"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "could not certify its minimiser" in err.splitlines()[-1]


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network", "--help"]) == 0
    out = capsys.readouterr().out
    for flag in COMMAND.flags:
        assert flag.spelling in out
    assert max(map(len, out.splitlines())) <= 80
