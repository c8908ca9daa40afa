"""``dpsvm lasso``: what it prints, what it writes, and what it does with bad input."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from frank_wolfe_problems import make_lasso
from sklearn.linear_model import Lasso

import dpsvm
import dpsvm.cli.distributed
import dpsvm.cli.distributed_flags
import dpsvm.cli.files
import dpsvm.cli.layout
import dpsvm.cli.linear_model
import dpsvm.cli.wording
import dpsvm.frank_wolfe.comparison
from dpsvm.cli import main
from dpsvm.cli.lasso import COMMAND
from dpsvm.data import dump_libsvm, load_libsvm
from dpsvm.frank_wolfe import FrankWolfeLasso
from dpsvm.frank_wolfe.comparison import compare
from dpsvm.frank_wolfe.figure import picture
from dpsvm.privacy import BudgetAccountant

warned = pytest.mark.filterwarnings("always::dpsvm.PrivacyLeakWarning")
RADIUS = ["--radius", "0.5"]
CENTRAL = [
    *RADIUS,
    "--epsilon",
    "50",
    "--delta",
    "1e-5",
    "--entry-bound",
    "1",
    "--label-bound",
    "1",
]
CENTRAL += ["--rounds", "6", "--n-features", "9"]
PARTIES = [
    *RADIUS,
    "--parties",
    "4,3,2",
    "--epsilon",
    "50",
    "--delta",
    "1e-5",
    "--entry-bound",
    "1",
]
PARTIES += ["--public-labels", "--rounds", "5", "--sketch", "20"]
FIGURES = re.compile(r"^(objective|gap|all columns together|zero weights)\b", re.M)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A current folder with training and test files of nine columns, numbers of at most 1."""
    monkeypatch.chdir(tmp_path)
    A, y = make_lasso(n=200, d=9)
    dump_libsvm(A[:150], y[:150], "train")
    dump_libsvm(A[150:], y[150:], "test")
    dump_libsvm(A[:150], y[:150], "train.xz")
    return tmp_path


def record_of(*words):
    """What a command that prints nothing writes as JSON."""
    assert main(["lasso", *words, "--json", "out.json", "-q", "train"]) == 0
    return json.loads(Path("out.json").read_text())


def begin_ledger(epsilon, relation):
    """A ledger file of delta 1e-5."""
    words = ["--epsilon", str(epsilon), "--delta", "1e-5", "--neighbouring", relation, "ledger"]
    assert main(["budget", "create", *words]) == 0


class TestTheModel:
    def test_the_numbers_are_the_estimators(self, capsys):
        record = record_of(*RADIUS)
        assert capsys.readouterr().out == ""
        model = FrankWolfeLasso(radius=0.5).fit(*load_libsvm("train"))
        assert record["coef"] == model.coef_.tolist()
        assert record["outcomes"][0]["objective"] == pytest.approx(model.objective_, rel=1e-12)
        assert record["outcomes"][0]["gap"] == pytest.approx(model.dual_gap_, rel=1e-6)
        assert record["steps"] == model.n_iter_ == len(record["history"]) - 1
        assert record["stop_reason"] == "gap"
        assert record["traffic"] is record["privacy"] is record["parties"] is None
        assert record["outside_guarantee"] == []

    def test_it_is_printed_beside_zero_weights_with_its_gap(self, capsys):
        assert main(["lasso", *RADIUS, "--test", "test", "train.xz"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert "train.xz: 150 rows, 9 columns\n" in out
        assert re.search(r"^constraint +\|w\|_1 at most 0.5$", out, re.M)
        assert re.search(r"^steps +\d+ \(gap\)$", out, re.M)
        assert re.search(r"^weights +\d of 9 are not 0, \|w\|_1 = 0\.\d+$", out, re.M)
        rows = {line[:12].strip(): line[12:].split() for line in out.splitlines()}
        X, y = load_libsvm("train", n_features=9)
        model = FrankWolfeLasso(radius=0.5).fit(X, y)
        assert float(rows["this model"][0]) == pytest.approx(model.objective_, rel=1e-5)
        assert float(rows["zero weights"][0]) == pytest.approx(y @ y / 300, rel=1e-5)
        assert float(rows["zero weights"][1]) == 1.0
        tested = load_libsvm("test", n_features=9)
        assert float(rows["this model"][-1]) == pytest.approx(model.score(*tested), abs=1e-4)
        assert "the model beats zero weights" in out
        assert max(map(len, out.splitlines())) <= 80

    def test_it_is_scikit_learns_lasso_at_the_same_radius(self):
        X, y = load_libsvm("train")
        lasso = Lasso(alpha=0.02, fit_intercept=False, tol=1e-10).fit(X, y)
        record = record_of("--radius", repr(float(np.abs(lasso.coef_).sum())), "--tol", "3e-3")
        residual = X @ lasso.coef_ - y
        best = residual @ residual / 300
        outcome = record["outcomes"][0]
        assert (
            0
            <= outcome["objective"] - best
            <= outcome["gap"]
            <= 3e-3 * record["outcomes"][1]["objective"]
        )

    def test_a_run_without_enough_steps_says_so(self, capsys):
        assert main(["lasso", *RADIUS, "--max-iter", "2", "train"]) == 0
        out, err = capsys.readouterr()
        assert re.search(r"^steps +2 \(iterations\)$", out, re.M)
        assert "warning: the gap is" in err

    def test_its_model_file_predicts_what_the_estimator_does(self):
        assert main(["lasso", *RADIUS, "--model", "weights", "-q", "train"]) == 0
        assert main(["predict", "test", "weights", "predictions"]) == 0
        model = FrankWolfeLasso(radius=0.5).fit(*load_libsvm("train"))
        predictions = np.loadtxt("predictions")
        assert np.allclose(predictions, model.predict(load_libsvm("test")[0]), rtol=1e-5)


class TestParties:
    @pytest.mark.parametrize(("words", "sizes"), [("4", [3, 2, 2, 2]), ("4,3,2", [4, 3, 2])])
    def test_the_numbers_are_the_estimators(self, words, sizes):
        record = record_of(*RADIUS, "--parties", words, "--rounds", "30", "--sketch", "60")
        model = FrankWolfeLasso(radius=0.5, rounds=30, sketch=60)
        model.fit(*load_libsvm("train"), parties=sizes)
        assert record["parties"] == sizes
        assert record["coef"] == model.coef_.tolist()
        assert record["outcomes"][0]["objective"] == pytest.approx(model.objective_, rel=1e-12)
        assert record["rounds"] == len(record["history"]) == 30
        assert record["traffic"]["up_integers"] == 30 * len(sizes)

    def test_whole_columns_and_enough_rounds_reach_the_model_of_all_columns(self):
        record = record_of(*RADIUS, "--parties", "3", "--rounds", "400")
        joint, central, zero = record["outcomes"]
        assert central["name"] == "all columns together"
        assert joint["objective"] - central["objective"] <= joint["gap"] < 1e-3 * zero["objective"]

    def test_what_was_sent_stands_beside_the_prediction(self, capsys):
        words = ["--parties", "3", "--rounds", "10", "--sketch", "20"]
        assert main(["lasso", *RADIUS, *words, "--no-cache", "train"]) == 0
        out = capsys.readouterr().out
        assert re.search(r"^sent up +30 integers, 600 numbers, 5040 bytes$", out, re.M)
        assert re.search(
            r"^predicted +30 integers, 600 numbers, 5040 bytes, by proposals", out, re.M
        )
        assert re.search(r"^sent down +600 numbers, 4800 bytes$", out, re.M)
        assert main(["lasso", *RADIUS, *words, "train"]) == 0
        cached = re.search(r"^sent up +30 integers, (\d+)", capsys.readouterr().out, re.M)
        assert int(cached.group(1)) < 600

    def test_the_winner_alone_sends_its_column_and_the_model_is_the_same(self):
        words = ["--parties", "3", "--rounds", "10", "--no-cache"]
        everyone, winner = (record_of(*RADIUS, *words, "--send", who) for who in ("all", "winner"))
        assert winner["coef"] == everyone["coef"]
        assert everyone["traffic"]["up_floats"] == 3 * 10 * 150
        assert winner["traffic"]["up_floats"] == 10 * (3 + 150)

    def test_a_product_is_compared_with_a_product(self, capsys):
        words = ["--parties", "3", "--problem", "product", "--radius", "0.3", "--rounds", "500"]
        record = record_of(*words)
        joint, central, _ = record["outcomes"]
        parts = [np.abs(part).sum() for part in np.split(np.array(record["coef"]), 3)]
        assert max(parts) <= 0.3 + 1e-12 < sum(parts)
        assert 0 <= joint["objective"] - central["objective"] + 1e-6 <= joint["gap"] + 1e-6 < 1e-3
        assert main(["lasso", *words, "train"]) == 0
        assert "|w|_1 of each party at most 0.3" in capsys.readouterr().out

    def test_a_seed_draws_the_same_columns(self):
        words = [*RADIUS, "--parties", "3", "--tau", "1", "--rounds", "20", "--seed"]
        first, second, other = (record_of(*words, seed)["coef"] for seed in ("1", "1", "2"))
        assert first == second != other


class TestPrivacy:
    def test_a_private_run_tells_its_guarantee_and_no_figure_on_the_data(self, capsys):
        assert main(["lasso", *PARTIES, "train"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert re.search(r"^guarantee +epsilon = 50, delta = 1e-05 \(features\)$", out, re.M)
        told = "all the features of one record, whoever holds them; labels are public"
        assert told in " ".join(out.split())
        assert re.search(r"^choices +15$", out, re.M)
        assert re.search(r"^sketch noise +[\d.]+", out, re.M)
        assert re.search(r"^rounds +5 \(rounds\)$", out, re.M)
        assert re.search(r"^sent up +15 integers, ", out, re.M)
        assert not FIGURES.search(out)
        assert "this model" not in out
        assert max(map(len, out.splitlines())) <= 80

    def test_figures_on_the_data_are_shown_when_asked_for_and_marked(self, capsys):
        assert main(["lasso", *PARTIES, "--compare", "train"]) == 0
        out = capsys.readouterr().out
        before, after = out.split("outside the guarantee, because computed on the data:")
        assert not FIGURES.search(before)
        for name in ("this model", "private in one place", "all columns together", "zero"):
            assert re.search(rf"^{name}.* [\d.e-]+", after, re.M)
        assert "charged to no ledger" in " ".join(after.split())

    def test_figures_on_test_rows_are_marked_as_well(self, capsys):
        assert main(["lasso", *CENTRAL, "--test", "test", "train"]) == 0
        before, after = capsys.readouterr().out.split("outside the guarantee, for the rows of the")
        assert "this model" not in before
        row = re.search(r"^this model +- +- +- +\d +([\d.]+) +(-?[\d.]+)$", after, re.M)
        assert float(row.group(1)) > 0
        assert not FIGURES.search(after)

    def test_the_record_lists_what_is_outside_the_guarantee(self):
        record = record_of(*PARTIES)
        assert record["outcomes"] == record["outside_guarantee"] == []
        assert record["verdict"] is None
        assert record["privacy"]["guarantee"] == "epsilon = 50, delta = 1e-05 (features)"
        assert record_of(*PARTIES, "--compare")["outside_guarantee"] == ["outcomes", "verdict"]
        record = record_of(*PARTIES, "--test", "test")
        assert record["outside_guarantee"] == ["outcomes"]
        [outcome] = record["outcomes"]
        assert outcome["objective"] is outcome["gap"] is outcome["share"] is None
        assert outcome["test_loss"] > 0

    @warned
    def test_the_numbers_are_the_estimators(self, capsys):
        X, y = load_libsvm("train")
        settings = {"radius": 0.5, "epsilon": 50.0, "delta": 1e-5, "entry_bound": 1.0}
        settings["random_state"] = 3
        central = FrankWolfeLasso(**settings, label_bound=1.0, rounds=6)
        split = FrankWolfeLasso(**settings, public_labels=True, rounds=5, sketch=20)
        central.fit(X, y)
        split.fit(X, y, parties=[4, 3, 2])
        assert record_of(*CENTRAL, "--seed", "3")["coef"] == central.coef_.tolist()
        assert record_of(*PARTIES, "--seed", "3")["coef"] == split.coef_.tolist()
        assert "warning: --seed makes the noise repeatable" in capsys.readouterr().err

    def test_labels_can_be_protected_too(self, capsys):
        words = [word for word in PARTIES if word != "--public-labels"]
        assert main(["lasso", *words, "--label-bound", "1", "train"]) == 0
        out = capsys.readouterr().out
        assert re.search(r"^guarantee +epsilon = 50, delta = 1e-05 \(replace\)$", out, re.M)
        assert "one record, its label included" in out

    def test_rounds_and_sketch_follow_from_public_numbers(self):
        words = [word for word in PARTIES if word not in ("--rounds", "5", "--sketch", "20")]
        record = record_of(*words)
        assert record["rounds"] >= 1
        up, predicted = record["traffic"], record["predicted_traffic"]
        assert up["up_integers"] == predicted["up_integers"] == 3 * record["rounds"]
        assert up["up_floats"] <= predicted["up_floats"]

    @warned
    def test_a_width_found_in_the_data_is_warned_of(self, capsys):
        assert main(["lasso", *CENTRAL[:-2], "-q", "train"]) == 0
        assert "public, which --n-features 9 states" in capsys.readouterr().err

    @pytest.mark.parametrize(("words", "relation"), [(CENTRAL, "replace"), (PARTIES, "features")])
    def test_a_run_is_charged_once_and_refused_when_it_does_not_fit(self, words, relation, capsys):
        begin_ledger(80, relation)
        command = ["lasso", *words, "--compare", "--ledger", "ledger", "train"]
        capsys.readouterr()
        assert main(command) == 0
        told = re.search(
            r"^ledger +ledger: 80 before, (\d+\.?\d*) is left$", capsys.readouterr().out, re.M
        )
        account = BudgetAccountant(path="ledger")
        assert len(account.charges) == 1
        assert account.remaining() == pytest.approx(float(told.group(1)), rel=1e-4)
        assert main([*command, "--model", "weights"]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "nothing was released" in err
        assert len(account.charges) == 1
        assert not Path("weights").exists()

    def test_the_charge_comes_before_the_first_message(self, capsys, monkeypatch):
        begin_ledger(80, "features")
        charges = []

        def answer(self, query):
            charges.append(len(BudgetAccountant(path="ledger").charges))
            raise OSError("the party is gone")

        monkeypatch.setattr("dpsvm.frank_wolfe.party.Party.answer", answer)
        assert main(["lasso", *PARTIES, "--ledger", "ledger", "train"]) == 2
        assert charges == [1]
        assert "ledger: the charge for this fit stands" in capsys.readouterr().err

    def test_a_refused_run_is_not_charged(self, capsys):
        begin_ledger(80, "features")
        words = [*PARTIES, "--entry-bound", "0.1", "--ledger", "ledger"]
        assert main(["lasso", *words, "train"]) == 2
        assert BudgetAccountant(path="ledger").charges == ()

    def test_a_ledger_of_another_relation_is_refused(self, capsys):
        begin_ledger(80, "replace")
        assert main(["lasso", *PARTIES, "--ledger", "ledger", "train"]) == 2
        assert "features" in capsys.readouterr().err
        assert BudgetAccountant(path="ledger").charges == ()


def test_every_step_and_round_moves_the_bar():
    X, y = load_libsvm("train")
    ticks = []
    found = compare(FrankWolfeLasso(0.5), X, y, tick=lambda: ticks.append("step"))
    assert len(ticks) == found.model.n_iter_ + 1  # the last point has been looked at, too
    ticks.clear()
    compare(FrankWolfeLasso(0.5, rounds=7), X, y, [5, 4], tick=lambda: ticks.append("round"))
    assert len(ticks) == 7


class TestPicture:
    @pytest.mark.parametrize(
        "words",
        [RADIUS, [*RADIUS, "--parties", "3", "--rounds", "20"], PARTIES, [*PARTIES, "--compare"]],
    )
    def test_it_is_written(self, words):
        pytest.importorskip("matplotlib")
        assert main(["lasso", *words, "--plot", "picture.png", "-q", "train"]) == 0
        assert Path("picture.png").read_bytes().startswith(b"\x89PNG")
        assert Path("picture.png").stat().st_size > 10_000

    def test_a_private_one_draws_only_what_the_messages_tell(self):
        pytest.importorskip("matplotlib")
        settings = {"radius": 0.5, "epsilon": 50.0, "delta": 1e-5, "entry_bound": 1.0}
        model = FrankWolfeLasso(**settings, public_labels=True, rounds=5, sketch=20)
        found = compare(model, *load_libsvm("train"), [4, 3, 2], measured=False)
        values, sent = picture(found, "title").axes
        [curve] = values.lines
        told = [one.released_value for one in found.model.history_]
        assert curve.get_ydata().tolist() == told
        assert sent.lines[0].get_ydata()[-1] == found.model.traffic_.up_bytes


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["train"], "--radius is required"),
        (RADIUS, "one FILE is needed, got 0"),
        ([*RADIUS, "train", "test"], "one FILE is needed, got 2"),
        (["--radius", "0", "train"], "--radius: '0' is not a finite number above 0"),
        (["--radius", "-1", "train"], "--radius: '-1' is not a finite number above 0"),
        (["--radius", "nan", "train"], "--radius: 'nan' is not a finite number above 0"),
        ([*RADIUS, "absent"], "absent: No such file"),
        ([*RADIUS, "broken"], "broken:2: "),
        ([*RADIUS, "--n-features", "8", "train"], "is beyond 8"),
        ([*RADIUS, "--parties", "0", "train"], "--parties: '0' is not a whole number above 0"),
        ([*RADIUS, "--parties", "10", "train"], "--parties: 10 cannot share 9 columns"),
        ([*RADIUS, "--parties", "4,4", "train"], "is beyond 8"),
        ([*RADIUS, "--parties", "4,4", "--n-features", "9", "train"], "--parties are 8 columns"),
        ([*RADIUS, "--parties", "5,4", "--tau", "5", "train"], "--tau must be an integer from 1"),
        (
            [*RADIUS, "--parties", "3", "--tol", "0.1", "train"],
            "--tol is for a fit without",
        ),
        ([*RADIUS, "--parties", "3", "--step", "huge", "train"], "--step: 'huge' is not"),
        ([*RADIUS, "--tau", "2", "train"], "tau goes with parties"),
        ([*RADIUS, "--sketch", "20", "train"], "sketch goes with parties"),
        ([*RADIUS, "--no-cache", "train"], "cache goes with parties"),
        ([*RADIUS, "--send", "winner", "train"], "send goes with parties"),
        ([*RADIUS, "--rounds", "0", "train"], "--rounds: '0' is not a whole number from 1"),
        ([*RADIUS, "--delta", "1e-5", "train"], "delta goes with an epsilon"),
        ([*RADIUS, "--public-labels", "train"], "--public-labels goes with"),
        ([*RADIUS, "--ledger", "l", "train"], "--ledger goes with --epsilon"),
        ([*RADIUS, "--compare", "train"], "--compare goes with --epsilon"),
        ([*RADIUS, "--seed", "1", "train"], "--seed goes with --epsilon or --tau"),
        ([*CENTRAL, "--ledger", "l", "train"], "no such ledger"),
        ([*CENTRAL, "--epsilon", "-1", "train"], "--epsilon: '-1' is not a finite number above 0"),
        ([*CENTRAL, "--step", "line-search", "train"], "takes --step diminishing alone"),
        ([*CENTRAL, "--plot", "a.png", "train"], "--plot with --epsilon needs --parties"),
        ([*CENTRAL, "--entry-bound", "0.5", "plain"], "plain:4: value -0.75 is beyond"),
        ([*CENTRAL, "--label-bound", "0.5", "plain"], "plain:3: label 1 is beyond --label-bound"),
        ([*PARTIES, "--entry-bound", "0.5", "plain"], "plain:4: value -0.75 is beyond"),
        ([*PARTIES[:-5], "--rounds", "5", "train"], "--public-labels"),
        ([*PARTIES, "--label-bound", "1", "train"], "--label-bound"),
        ([*CENTRAL[:4], *CENTRAL[-2:], "--label-bound", "1", "train"], "needs --entry-bound"),
        ([*PARTIES, "--send", "winner", "train"], "winner"),
        ([*RADIUS, "--json", "no/where", "train"], "folder to write to does not exist"),
        ([*RADIUS, "--json", "train", "train"], "train cannot be both FILE and --json"),
        ([*RADIUS, "--model", "train", "train"], "train cannot be both FILE and --model"),
        ([*RADIUS, "--model", "a", "--json", "a", "train"], "a cannot be both --json and --model"),
        ([*RADIUS, "--test", "test", "--plot", "test", "train"], "both --test and --plot"),
        ([*PARTIES, "--ledger", "l", "--json", "l", "train"], "both --ledger and --json"),
        ([*PARTIES, "--ledger", "l", "--model", "l.lock", "train"], "the ledger's lock"),
    ],
)
def test_bad_input_is_one_line_with_the_reason(words, told, capsys):
    Path("broken").write_text("1 1:0.5\n0.5 1:x\n")
    Path("plain").write_text("0.25 1:0.5\n\n1 2:0.5\n0.5 9:-0.75\n")
    before = Path("train").read_bytes()
    assert main(["lasso", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("dpsvm lasso: error: ")
    assert told in err
    assert err.count("\n") == 1
    assert Path("train").read_bytes() == before


def test_a_picture_of_an_unknown_ending_is_refused_before_the_run(capsys):
    pytest.importorskip("matplotlib")
    assert main(["lasso", *RADIUS, "--plot", "picture.xyz", "absent"]) == 2
    assert "picture.xyz: the ending must be one of" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
def test_ctrl_c_writes_nothing_and_the_charge_stands(folder):
    begin_ledger(80, "features")
    Path("weights").write_text("old")
    before = sorted(path.name for path in folder.iterdir())
    words = [*PARTIES, "--rounds", "100000000", "--ledger", "ledger", "--model", "weights"]
    environment = os.environ | {"PYTHONPATH": str(Path(dpsvm.__file__).parents[1])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-m", "dpsvm", "lasso", *words, "--json", "out.json", "train"]
    with subprocess.Popen(command, env=environment, **pipes) as process:
        while not BudgetAccountant(path="ledger").charges:
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines() == [
        "dpsvm lasso: warning: ledger: the charge for this fit stands",
        "dpsvm lasso: interrupted",
    ]
    assert Path("weights").read_text() == "old"
    after = sorted(path.name for path in folder.iterdir())
    assert [name for name in after if name != "ledger.lock"] == [
        name for name in before if name != "ledger.lock"
    ]


def test_help_names_every_flag(capsys):
    assert main(["lasso", "--help"]) == 0
    out = capsys.readouterr().out
    for flag in COMMAND.flags:
        assert flag.spelling in out
    assert "no intercept: centre the data" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
