"""``dpsvm audit``: what it prints, what it writes, and what it does with bad input."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import python, refusal, start
from sklearn.datasets import make_classification

from dpsvm.cli import main
from dpsvm.data import dump_libsvm
from dpsvm.privacy.audit import runs
from dpsvm.privacy.audit.journal import Journal
from dpsvm.privacy.audit.runs import Trainer

DPWSS = ["--selector", "dpwss", "--selection-epsilon", "0.1", "--sigma", "0.7", "-t", "0"]
QUICK = ["--runs", "40", "--pilot-runs", "40", "--jobs", "1", "--seed", "0"]
INTERRUPTED = [
    "dpsvm audit: warning: interrupted: the same command goes on from state",
    "dpsvm audit: interrupted",
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A current folder with a file of two classes and one of a single class."""
    monkeypatch.chdir(tmp_path)
    X, y = make_classification(60, 5, flip_y=0.1, random_state=0)
    dump_libsvm(X, 2 * y - 1, "two")
    dump_libsvm(np.eye(3), [1, 1, 1], "same")
    return tmp_path


def test_dpwss_is_refuted_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *DPWSS, *QUICK, "--canary", "mislabelled", "two"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "audited: epsilon is at least 2." in out
    assert "refuted: the claimed epsilon 0.1 is below the audited bound (95% confidence)" in out
    assert "epsilon 0.1 is claimed by the paper, not a guarantee" in out
    assert "PrivacyLeakWarning: selector='dpwss' gives no privacy guarantee" in " ".join(
        out.split()
    )
    assert max(map(len, out.splitlines())) <= 80


def test_a_unique_feature_is_said_to_be_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["audit", *DPWSS, *QUICK, "--canary=unique-feature", "--delta", "1e-5", "-q", "two"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "not private for any epsilon" in out
    assert out.startswith("audited: ")


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_natural_record_and_no_claim(relation: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--canary", "natural", "--record", "7", "--neighbouring", relation]
    assert main(["audit", *QUICK, *words, "two"]) == 0
    out = capsys.readouterr().out
    assert "record 7 of the data" in out
    assert "refuted" not in out
    assert "claimed" not in out


def test_facts_and_picture_are_written(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    for picture, head in (("r.png", b"\x89PNG"), ("r.svg", b"<?xml"), ("r.pdf", b"%PDF")):
        (folder / picture).write_text("an older file")
        words = ["audit", *DPWSS, *QUICK, "--json", "r.json", "--plot", picture, "two"]
        assert main(words) == 0
        assert (folder / picture).read_bytes().startswith(head)
    assert not list(folder.glob(".*"))  # no temporary file is left
    facts = json.loads((folder / "r.json").read_text())
    assert facts["refuted"] is True
    assert facts["runs"] == 40
    assert facts["epsilon_at_least"] > 0.1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "one FILE is needed, got 0"),
        ("two two", "one FILE is needed, got 2"),
        ("absent", "absent: No such file"),
        ("broken", "broken:2: "),
        ("same", "same: the mislabelled record needs two classes, got 1"),
        ("--canary yellow two", "--canary: 'yellow' is not mislabelled or natural"),
        ("--runs 5 two", "--runs: '5' is not a whole number from 20 to"),
        ("--pilot-runs x two", "--pilot-runs: 'x' is not"),
        ("--confidence 1 two", "--confidence: '1' is not a number between 0 and 1"),
        ("--delta 1 two", "--delta: '1' is not"),
        ("--delta nan two", "--delta: 'nan' is not"),
        ("--claimed-epsilon 0 two", "--claimed-epsilon: '0' is not a finite number above 0"),
        ("--neighbouring column two", "--neighbouring: 'column' is not"),
        ("--canary natural --record 60 two", "two: --record must be from 0 to 59, got 60"),
        ("--feature-range 0 1 two", "two: feature 1 reaches from"),
        ("--sigma 2 two", "--sigma 2: must be"),
        ("--selector wss9 two", "--selector wss9: must be"),
        ("-t 4 two", "-t 4: an audit adds and removes rows"),
        ("-c -1 two", "-c -1: must be"),
        ("--jobs 0 two", "--jobs: '0' is not a number of processes"),
        ("--epsilon 1 two", "--epsilon goes with --private"),
        ("--data-norm 1 two", "--data-norm goes with --private"),
        ("--private two", "--private needs --epsilon"),
        ("--private --epsilon 1 two", "--private needs --data-norm"),
        (
            "--private --epsilon 1 --data-norm 1 --selector dpwss two",
            "--selector: does not go with",
        ),
        ("--private --epsilon 1 --data-norm 1 -d 5 two", "-d: does not go with --private"),
        ("--private --epsilon 1 --data-norm 1 two", "--method objective-gaussian needs --delta"),
        ("--private --epsilon 1 --data-norm 1 -t 1 two", "--private has no poly kernel"),
        ("--private --epsilon 1 --data-norm 1 --method output -t 2 two", "needs -g"),
        ("--json nowhere/r two", "nowhere/r: the folder to write to does not exist"),
        ("--resume nowhere/r two", "nowhere/r: the folder to write to does not exist"),
        ("--resume notes two", "notes:1: not a line of an audit"),
        ("--plot . two", "Is a directory"),
        ("--plot r.doc two", "r.doc: the ending must be one of "),
        ("--method best --private two", "--method: 'best' is not objective-gaussian or"),
        ("--loss l2 --private two", "--loss: 'l2' is not hinge or huber"),
    ],
)
def test_bad_input_is_one_line_and_no_run(
    words: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / "broken").write_text("1 1:2\n1 1:x\n")
    (folder / "notes").write_text("my notes\n")
    before = sorted(folder.iterdir())
    if "notes" not in words:
        monkeypatch.setattr(Trainer, "fit", lambda *_: pytest.fail("a fit was made"))
    assert said in refusal(capsys, "audit", *words.split())
    assert sorted(folder.iterdir()) == before


def test_an_interrupted_audit_goes_on_to_the_same_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["audit", *DPWSS, *QUICK, "two"]
    assert main(words) == 0
    whole = capsys.readouterr().out
    real, calls = Trainer.fit, []

    def interrupted(self, world, number):
        calls.append(number)
        if len(calls) > 100:
            raise KeyboardInterrupt
        return real(self, world, number)

    monkeypatch.setattr(Trainer, "fit", interrupted)
    resuming = [*words, "--resume", "state"]
    assert main(resuming) == 130
    assert "the same command goes on from state" in capsys.readouterr().err
    monkeypatch.setattr(Trainer, "fit", real)
    assert main(resuming) == 0
    assert capsys.readouterr().out == whole


def _running(group):
    """The processes of a group that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, owner = path.read_text().rpartition(")")[2].split()[:3]
            found += [path.parent.name] * (int(owner) == group and state != "Z")
    return found


def _all_end(group: int) -> bool:
    """Whether the processes of a group end; the last of them may do so after their parent."""
    for _ in range(1200):
        if not _running(group):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
@pytest.mark.parametrize("stop", [os.kill, os.killpg])  # one process, or all as a terminal does
def test_ctrl_c_ends_the_workers_quietly_and_keeps_the_runs(stop: Any, folder: Path) -> None:
    words = [*DPWSS, "--runs", "200000", "--jobs", "2", "--seed", "0", "--resume", "state", "two"]
    with start("audit", *words, start_new_session=True) as process:
        state = folder / "state"
        while not (state.exists() and state.read_bytes().count(b"\n") >= 4):
            assert process.poll() is None
            time.sleep(0.1)
        assert len(_running(process.pid)) >= 3
        stop(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert _all_end(process.pid)
    assert out == ""
    assert err.splitlines() == INTERRUPTED
    lines = [json.loads(line) for line in (folder / "state").read_text().splitlines()]
    assert len(lines) >= 4


def test_ctrl_c_while_the_workers_start_is_answered_once_they_have(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(runs.Parallel):
        def __call__(self, tasks):
            signal.raise_signal(signal.SIGINT)
            return super().__call__(tasks)

    monkeypatch.setattr(runs, "Parallel", Interrupted)
    assert main(["audit", *DPWSS, *QUICK, "--jobs", "2", "--resume", "state", "two"]) == 130
    assert capsys.readouterr().err.splitlines() == INTERRUPTED


def test_ctrl_c_between_runs_is_as_quiet(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "add", interrupted)
    assert main(["audit", *DPWSS, *QUICK, "--jobs", "2", "--resume", "state", "two"]) == 130
    assert capsys.readouterr().err.splitlines() == INTERRUPTED


@pytest.mark.parametrize("killing", [True, False])
def test_the_thread_of_a_pool_may_fail_unheard_only_while_it_kills(
    killing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Manager(threading.Thread):
        executor_flags = SimpleNamespace(kill_workers=killing)

        def run(self):
            raise KeyError(1)

    told = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    with runs._no_word_of_killed_pools():
        manager = Manager()
        manager.start()
        manager.join()
    assert len(told) == (not killing)
    assert threading.excepthook == told.append


BLOCKED = """
import signal
from types import SimpleNamespace
from dpsvm.privacy.audit.runs import Batch, make
def blocked(*_):
    return [signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
trainer = SimpleNamespace(meter=None, fit=lambda *_: None)
todo = [Batch("with", 0, 1), Batch("without", 0, 1)]
print([one.values for one in make(trainer, blocked, todo, 2)], blocked())
"""


def test_workers_never_hear_ctrl_c_and_the_parent_hears_it_again() -> None:
    done = python("-c", BLOCKED)
    assert (done.returncode, done.stdout) == (0, "[[[True]], [[True]]] [False]\n")


def test_there_is_no_progress_in_a_pipe() -> None:
    with start("audit", *DPWSS, *QUICK, "two") as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert err == ""
    assert "audited: " in out


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--help"]) == 0
    out = capsys.readouterr().out
    for flag in ("--canary", "--runs", "--resume", "--private", "--data-norm", "--plot", "-c cost"):
        assert flag in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    "words",
    [
        "--method output",
        "--method output --delta 1e-5 --loss hinge --neighbouring replace",
        "--method output-laplace",
        "--method objective --neighbouring replace",
        "--delta 1e-5 -t 2 -g 0.5",
        "--method gradient --delta 1e-5",
    ],
)
def test_a_private_machine_is_not_refuted(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = f"--private --epsilon 1 --data-norm 3 -c 0.01 {words} --runs 20 --pilot-runs 20"
    assert main(["audit", *given.split(), "--jobs", "1", "--seed", "0", "two"]) == 0
    out = capsys.readouterr().out
    assert "PrivateSVC(C=0.01, " in out
    assert "not refuted: the audited bound does not exceed the claimed epsilon 1;" in out
