"""``dpsvm train --private``: what it tells, what it keeps to itself, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import environment, interrupted, refusal
from libsvm_tools import needs_libsvm, run_tool
from sklearn.datasets import make_blobs

import dpsvm
import dpsvm.cli.private
from dpsvm.cli import main
from dpsvm.cli.interrupt import prompt_interrupt
from dpsvm.cli.options import default_text_of
from dpsvm.cli.private_flags import MACHINE_FLAGS, PRIVATE_FLAGS, SHARED_FLAGS, TRAINING_FLAGS
from dpsvm.data import dump_libsvm
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.estimators import PrivateSVC
from dpsvm.privacy.methods import METHODS
from dpsvm.privacy.minimiser import CertificateError
from dpsvm.privacy.model_file import load_private
from dpsvm.svm.model import Model

N = 397
warned = pytest.mark.filterwarnings("always::dpsvm.PrivacyLeakWarning")
BASE = "train --private --epsilon 2 --data-norm 9 --n-features 4 --classes -1,1"
BOTH = f"{BASE} --delta 1e-5"
RBF = "-t 2 -g 0.05 --n-components 6"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A current folder with files of two and of three classes, and a ledger."""
    monkeypatch.chdir(tmp_path)
    X, y = rows_of(2)
    dump_libsvm(X, 2 * y - 1, "two")
    X, y = rows_of(3)
    dump_libsvm(X, y, "three")
    BudgetAccountant(3.0, 1e-5, path="ledger", create=True)
    return tmp_path


def rows_of(k):
    return make_blobs(N, 4, centers=k, cluster_std=3.0, random_state=k)


def run(*texts):
    return main(" ".join(texts).split())


def settings(**more):
    given = {"data_norm": 9.0, "classes": [-1, 1], "delta": 1e-5, "random_state": 3}
    return PrivateSVC(2.0, **(given | more))


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_guarantee_the_noise_and_what_is_not_covered_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(BOTH, "two m") == 0
    out, err = capsys.readouterr()
    assert err == ""
    told = " ".join(out.split())
    plan = PrivateSVC.plan(2.0, 1e-5, n=1, d=4, data_norm=9.0)
    assert out.startswith("guarantee               epsilon = 2, delta = 1e-05 (add-remove)\n")
    assert "method objective-gaussian" in told
    assert f"noise gaussian, scale {plan.noise_scale:.6g}, from the operating system" in told
    assert "budget the whole budget for one machine" in told
    assert "not covered flags that were chosen by looking at the data" in told
    assert "the time a fit takes, are not protected against" in told
    assert "model m" in told
    assert max(map(len, out.splitlines())) <= 80


def test_nothing_told_depends_on_the_data(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    X, _ = rows_of(2)
    dump_libsvm(X[:100] * 7, np.ones(100), "other")
    assert run(BOTH, "--json r two m") == 0
    ours = capsys.readouterr().out
    report = (folder / "r").read_text()
    assert run(BOTH, "--json r other m") == 0
    assert capsys.readouterr().out == ours
    assert (folder / "r").read_text() == report


def test_json_is_the_privacy_report(folder: Path) -> None:
    assert run(BOTH, "-q --json r two m") == 0
    facts = json.loads((folder / "r").read_text())
    assert facts["guarantee"] == "epsilon = 2, delta = 1e-05 (add-remove)"
    assert facts["model"] == "m"
    assert facts["public"]["classes"] == [-1, 1]
    assert facts["noise_source"] == "the operating system"


def test_quiet_training_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(BOTH, "-q two m") == 0
    assert capfd.readouterr() == ("", "")


@warned
@pytest.mark.parametrize(
    ("flags", "parameters"),
    [
        ("", {}),
        ("-s 0 -t 0 -c 0.1 -w1 3", {"C": 0.1, "class_weight": {1: 3.0}}),
        ("--method output --loss hinge -c 0.5", {"method": "output", "loss": "hinge", "C": 0.5}),
        ("--loss smooth --width 0.5", {"loss": "smooth", "width": 0.5}),
        ("--neighbouring replace", {"neighbouring": "replace"}),
        ("--method objective", {"method": "objective"}),
        ("--method gradient --n-steps 9", {"method": "gradient", "n_steps": 9}),
    ],
)
def test_the_flags_reach_the_estimator(
    flags: str, parameters: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(BOTH, flags, "-q --seed 3 two") == 0
    assert capsys.readouterr().err.startswith("dpsvm train: warning: --seed makes the noise")
    X, y = rows_of(2)
    with pytest.warns(dpsvm.PrivacyLeakWarning):
        model = settings(**parameters).fit(X, 2 * y - 1)
    loaded = Model.load("two.model")
    np.testing.assert_allclose(loaded.support_vectors.toarray(), model.coef_, rtol=1e-3)
    np.testing.assert_allclose(loaded.rho, -model.intercept_, rtol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_and_tells_its_guarantee(
    method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(BOTH, "--method", method, "two m") == 0
    relation = "replace" if method == "objective" else "add-remove"
    assert f"({relation})" in capsys.readouterr().out.splitlines()[0]


def test_without_delta_a_pure_method_has_a_pure_guarantee(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(BASE, "--method output two m") == 0
    assert capsys.readouterr().out.startswith("guarantee               epsilon = 2 (add-remove)\n")


@needs_libsvm
@pytest.mark.parametrize("name", ["two", "three"])
def test_a_linear_model_predicts_the_same_with_svm_predict(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    classes = "-1,1" if name == "two" else "2,0,1"
    assert run(BOTH, "--classes", classes, "-q", name, "m") == 0
    assert run("predict", name, "m ours") == 0
    said = run_tool("svm-predict", name, "m", "theirs", folder=folder)
    assert capsys.readouterr().out == said
    assert (folder / "ours").read_text() == (folder / "theirs").read_text()


@pytest.mark.parametrize("name", ["two", "three"])
def test_random_features_are_written_as_json_and_predicted_from(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    classes = "-1,1" if name == "two" else "0,1,2"
    assert run(BOTH, RBF, "--feature-seed 11 --classes", classes, "-q", name, "m") == 0
    document = json.loads((folder / "m").read_text())
    assert document["format"] == "dpsvm private model"
    assert document["parameters"]["feature_seed"] == 11
    assert document["n_features"] == 4
    assert run("predict", name, "m out") == 0
    X, _ = rows_of(len(classes.split(",")))
    predicted = np.loadtxt(folder / "out")
    assert np.array_equal(predicted, load_private("m").predict(X))
    assert capsys.readouterr().out.startswith("Accuracy = ")


def test_prediction_with_random_features_takes_narrower_rows_and_refuses_wider_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(BOTH, RBF, "-q two m")
    Path("narrow").write_text("1 1:2\n-1 2:1\n")
    Path("wide").write_text("1 1:2\n-1 5:1\n")
    assert run("predict -q narrow m out") == 0
    assert run("predict wide m out") == 2
    assert "wide:2: index of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("predict -b 1 two m out", "m: the model does not support probability estimates"),
        ("predict two broken out", "broken: not a private model: "),
        ("predict two words out", "words: its labels are no numbers"),
    ],
)
def test_a_json_model_that_cannot_be_used_is_one_line(
    words: str, said: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    run(BOTH, RBF, "-q two m")
    text = (folder / "m").read_text()
    (folder / "broken").write_text(text[:-20])
    document = json.loads(text)
    document["classes"] = ["no", "yes"]
    (folder / "words").write_text(json.dumps(document))
    assert refusal(capsys, *words.split()).startswith(said)
    assert not (folder / "out").exists()


def test_a_fit_is_charged_once_and_what_is_left_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BOTH, "--ledger ledger two m") == 0
    out = capsys.readouterr().out
    budget = BudgetAccountant(path="ledger")
    assert [charge.label for charge in budget.charges] == ["PrivateSVC objective-gaussian"]
    assert f"ledger: {budget.remaining():g} is left" in out


def test_a_fit_that_exceeds_the_budget_is_refused_and_nothing_is_written(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert run(BOTH, "-q --ledger ledger two m") == 0
    before = content(folder)
    assert run(BOTH, "--epsilon 2.9 --ledger ledger --json r two refused") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "dpsvm train: error: ledger: epsilon = 2.9 (Folded) does not fit: 2 of 3 is spent "
        "(delta = 1e-05); nothing was released\n"
    )
    assert content(folder) == before


def test_a_ledger_of_another_relation_is_refused(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    before = content(folder)
    assert run(BOTH, "--neighbouring replace --ledger ledger two m") == 2
    assert "'replace' cannot be charged to a budget for 'add-remove'" in capsys.readouterr().err
    assert content(folder).keys() - {"ledger.lock"} == before.keys() - {"ledger.lock"}
    assert content(folder)["ledger"] == before["ledger"]


def test_the_charge_stands_when_the_solver_fails_and_no_model_is_written(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_):
        raise CertificateError("could not be certified: nothing is released")

    monkeypatch.setattr("dpsvm.privacy.methods.objective_gaussian.minimise", fail)
    assert run(BOTH, "--ledger ledger two m") == 2
    assert capsys.readouterr().err.splitlines() == [
        "dpsvm train: warning: ledger: the charge for this fit stands",
        "dpsvm train: error: could not be certified: nothing is released",
    ]
    assert len(BudgetAccountant(path="ledger").charges) == 1
    assert not (folder / "m").exists()


def test_a_model_that_cannot_be_written_leaves_the_old_one(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "m").write_text("old")

    def full(*_, **__):
        raise OSError(28, "No space left on device", "m")

    monkeypatch.setattr(dpsvm.cli.private, "save_private", full)
    assert run(BOTH, "--ledger ledger two m") == 2
    assert capsys.readouterr().err.splitlines() == [
        "dpsvm train: warning: ledger: the charge for this fit stands",
        "dpsvm train: error: m: No space left on device",
    ]
    assert (folder / "m").read_text() == "old"


def test_a_plan_reads_nothing_charges_nothing_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    before = content(folder)
    assert run(BOTH, "--ledger ledger --json r --plan 1000 absent") == 0
    plan = PrivateSVC.plan(2.0, 1e-5, n=1000, d=4, data_norm=9.0)
    assert capsys.readouterr().out == f"{plan}\n"
    assert run(BOTH, "--classes 0,1,2 --plan 1000") == 0
    assert "machines                3: 3 equal machines" in capsys.readouterr().out
    assert content(folder) == before


REFUSED = sorted(
    {flag.spelling for flag in TRAINING_FLAGS}
    - {flag.spelling for flag in (*MACHINE_FLAGS, *SHARED_FLAGS)}
)


@pytest.mark.parametrize("flag", REFUSED)
def test_a_flag_that_means_nothing_for_a_private_fit_is_refused_by_name(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(BOTH, flag, "1 two m") == 2
    assert capsys.readouterr().err == f"dpsvm train: error: {flag}: does not go with --private\n"


@pytest.mark.parametrize("flag", PRIVATE_FLAGS[1:], ids=lambda flag: flag.spelling)
def test_a_private_flag_without_private_is_refused_by_name(
    flag: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", flag.spelling, "1 two m") == 2
    assert capsys.readouterr().err == f"dpsvm train: error: {flag.spelling}: goes with --private\n"


def test_the_flags_that_are_refused_are_all_but_the_ones_that_carry_over() -> None:
    assert {"-d", "-r", "-n", "-p", "-m", "-e", "-h", "-b", "-v", "--selector"} <= set(REFUSED)
    carried = {flag.spelling for flag in (*MACHINE_FLAGS, *SHARED_FLAGS)}
    assert carried == {"-s", "-t", "-g", "-c", "-w", "-q", "--seed", "--json"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--private two", "--private needs --epsilon: "),
        ("--private --epsilon 1 two", "--private needs --data-norm: "),
        ("--private --epsilon 1 --data-norm 1 --delta 0.1 --plan 9", "--plan needs --n-features: "),
        ("BOTH", "FILE is missing (usage: dpsvm train --private"),
        ("BOTH a b c", "unexpected 'c'"),
        ("BOTH --epsilon 0 two", "--epsilon: '0' is not a finite number above 0"),
        ("BOTH --epsilon nan two", "--epsilon: 'nan' is not a finite number above 0"),
        ("BOTH --epsilon inf two", "--epsilon: 'inf' is not a finite number above 0"),
        ("BOTH --delta 1 two", "--delta: '1' is not a number between 0 and 1"),
        ("BOTH --delta 0 two", "--delta: '0' is not a number between 0 and 1"),
        ("BOTH --data-norm -1 two", "--data-norm: '-1' is not a finite number above 0"),
        ("BOTH --classes 1 two", "--classes: '1' is not a list of at least two different"),
        ("BOTH --classes 1,1 two", "--classes: '1,1' is not a list of at least two different"),
        ("BOTH --classes a,b two", "--classes: 'a,b' is not a list of at least two different"),
        ("BOTH --classes 0,9999999999 two", "--classes: '0,9999999999' is not a list"),
        ("BOTH --n-features 0 two", "--n-features: '0' is not a whole number from 1"),
        ("BOTH --method magic two", "--method: 'magic' is not objective-gaussian or"),
        ("BOTH --loss square two", "--loss: 'square' is not hinge or huber"),
        ("BOTH --neighbouring column two", "--neighbouring: 'column' is not add-remove or"),
        ("BOTH --batch-rate 2 two", "--batch-rate: '2' is not a number above 0 and up to 1"),
        ("BOTH --plan 0", "--plan: '0' is not a whole number from 1"),
        ("BOTH --seed -1 two", "--seed: '-1' is not a whole number from 0"),
        ("BOTH -s 1 two", "-s: '1' is not 0: --private trains no other machine"),
        ("BOTH -t 1 two", "-t: '1' is not 0 or 2: --private has no other kernel"),
        ("BOTH -t 2 two", "--private with -t 2 needs -g"),
        ("BOTH -t 2 -g 0 two", "-g: '0' is not a finite number above 0"),
        ("BOTH -g 1 two", "-g goes with -t 2"),
        ("BOTH --n-components 9 two", "--n-components goes with -t 2"),
        ("BOTH --feature-seed 9 two", "--feature-seed goes with -t 2"),
        ("BOTH --n-steps 9 two", "--n-steps goes with --method gradient"),
        ("BOTH --batch-rate 0.5 two", "--batch-rate goes with --method gradient"),
        ("BOTH --loss logistic --width 1 two", "--width goes with --loss huber or smooth"),
        ("BOTH -w7 2 two", "-w7: 7 is not in --classes"),
        ("BOTH -c 7 two", "-c must be below "),
        ("BASE two", "--method objective-gaussian needs a delta"),
        ("BOTH --loss hinge two", "needs a loss of bounded curvature"),
        ("BOTH --method objective --neighbouring add-remove two", "--neighbouring replace only"),
        ("BOTH absent", "absent: No such file or directory"),
        ("BOTH .", ".: Is a directory"),
        ("BOTH empty", "empty: the file has no rows"),
        ("BOTH bad", "bad:2: token "),
        ("BOTH labels", "labels:3: label 7 is not in --classes -1,1"),
        ("BOTH half", "half:2: label 0.5 is not in --classes -1,1"),
        ("BOTH --n-features 3 two", "two:1: index of"),
        ("BOTH two none/m", "none/m: the folder to write to does not exist"),
        ("BOTH two m --json none/r", "none/r: the folder to write to does not exist"),
        ("BOTH two .", ".: Is a directory"),
        ("BOTH two two", "two cannot be both FILE and MODEL"),
        ("BOTH two m --json m", "m cannot be both MODEL and --json"),
        ("BOTH two ledger", "ledger cannot be both --ledger and MODEL"),
        ("BOTH two ledger.lock", "ledger.lock cannot be both the ledger's lock and MODEL"),
        ("BOTH two ledger.key", "ledger.key cannot be both the ledger's key and MODEL"),
        ("BOTH two ./ledger", "cannot be both --ledger and MODEL"),
        ("BOTH --ledger absent two", "absent: no such ledger; dpsvm budget create begins one"),
        ("BOTH --ledger bad two", "bad: not a privacy ledger"),
    ],
)
def test_bad_input_is_one_line_with_nothing_written_and_nothing_charged(
    words: str, said: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "empty").write_text("")
    (folder / "bad").write_text("1 1:1\n-1 x\n")
    (folder / "labels").write_text("1 1:1\n# a comment\n7 1:1\n-1 1:2\n")
    (folder / "half").write_text("1 1:1\n0.5 1:1\n")
    before = content(folder)
    flags, _, rest = words.partition(" ")
    starts = {"BOTH": BOTH, "BASE": BASE}
    ledger = "" if "--ledger" in words else "--ledger ledger"
    told = refusal(capsys, *f"{starts.get(flags, f'train {flags}')} {ledger} {rest}".split())
    assert said in told
    assert content(folder) == before


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_a_folder_that_cannot_be_written_is_told_before_the_charge(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "closed").mkdir()
    real = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: "closed" not in str(path) and real(path, mode)
    )
    assert run(BOTH, "--ledger ledger two closed/m") == 2
    assert capsys.readouterr().err == "dpsvm train: error: closed/m: Permission denied\n"
    assert BudgetAccountant(path="ledger").charges == ()


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
def test_ctrl_c_writes_no_model_and_the_charge_stands(folder: Path) -> None:
    (folder / "m").write_text("old")
    words = f"{BOTH} --method gradient --n-steps 100000000 --ledger ledger --json r two m".split()
    assert interrupted(*words, once=lambda: BudgetAccountant(path="ledger").charges) == [
        "dpsvm train: warning: ledger: the charge for this fit stands",
        "dpsvm train: interrupted",
    ]
    assert (folder / "m").read_text() == "old"
    assert sorted(path.name for path in folder.iterdir()) == [
        *("ledger", "ledger.key", "ledger.lock", "m", "three", "two")
    ]


@pytest.mark.parametrize("written", [True, False])
def test_ctrl_c_during_the_charge_tells_whether_it_stands(
    written: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = BudgetAccountant.spend

    def interrupted(self, *arguments, **options):
        if written:
            real(self, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(BudgetAccountant, "spend", interrupted)
    assert run(BOTH, "--ledger ledger two m") == 130
    told = "dpsvm train: warning: ledger: the charge for this fit stands"
    assert (told in capsys.readouterr().err) is written
    assert len(BudgetAccountant(path="ledger").charges) == written


STUCK = """
import signal
import time
from dpsvm.cli.interrupt import prompt_interrupt
waits = iter([True, True, False])
with prompt_interrupt(lambda: "last words", busy=lambda: next(waits)):
    signal.signal(signal.SIGINT, lambda *_: None)  # as in a call that does not return
    print("ready", flush=True)
    while True:
        time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
def test_ctrl_c_ends_a_call_that_does_not_return() -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", STUCK], env=environment(), **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err == "last words\n"


def test_ctrl_c_in_python_code_is_an_ordinary_exception() -> None:
    handler, descriptor = signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)
    with (
        pytest.raises(KeyboardInterrupt),
        prompt_interrupt(lambda: pytest.fail("ended"), busy=lambda: False),
    ):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is handler
    assert signal.set_wakeup_fd(descriptor) == -1


def test_help_names_every_private_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {flag.spelling} " in out for flag in PRIVATE_FLAGS)


def test_labels_are_minus_one_and_one_unless_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = "train --private --epsilon 2 --data-norm 9 --n-features 4 --delta 1e-5"
    assert run(words, "-q two m") == 0
    assert Model.load("m").labels.tolist() == [1, -1]
    assert run(words, "three m") == 2
    assert "is not in --classes -1,1" in capsys.readouterr().err


@warned
def test_a_number_of_features_taken_from_the_file_is_said_to_be_assumed_public(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("train --private --epsilon 2 --data-norm 9 --delta 1e-5 --seed 1 two m") == 0
    assert "two: the number of features is the largest index of the rows" in (
        capsys.readouterr().err
    )
    assert run(BOTH, "--seed 1 -q two stated") == 0
    assert "number of features" not in capsys.readouterr().err
    assert content(Path())["m"] == content(Path())["stated"]


def test_the_defaults_that_help_tells_are_those_of_the_estimator() -> None:
    # The flags state them, for help is not to wait for scikit-learn.
    told = {flag.name: flag.default_text for flag in PRIVATE_FLAGS if flag.default_text}
    for name, parameter in signature(PrivateSVC).parameters.items():
        if name in told and parameter.default is not None:
            assert told[name] == default_text_of(parameter.default)
