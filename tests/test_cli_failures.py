"""When a command cannot go on: one line, an exit code, and old files as they were."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from commands import refusal, start
from libsvm_tools import GOLDEN, slow_data, write_data

from dpsvm import _core
from dpsvm.cli import main
from dpsvm.data import dump_libsvm
from dpsvm.progress import solver_progress

MODELS = {case["case"]: case["model"] for case in GOLDEN["train"] if "model" in case}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with the data of the golden cases."""
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("train", "FILE is missing (usage: dpsvm train [flags] FILE [MODEL])"),
        ("train a b c", "unexpected 'c' (usage: dpsvm train [flags] FILE [MODEL])"),
        ("train -z 1 two", "unknown flag -z (--help explains the flags)"),
        ("train -t2 two", "unknown flag -t2: did you mean -t? (--help explains the flags)"),
        ("train -h", "-h must be followed by 0|1 (--help explains the flags)"),
        ("train two -c", "-c must be followed by cost"),
        ("train -c much two", "-c much: not a number"),
        ("train -c -1 two", "-c -1: must be a float in the range (0.0, inf], got -1.0"),
        ("train -c nan two", "-c nan: must be a float in the range (0.0, inf], got nan"),
        ("train -s 5 two", "-s 5: must be a code from 0 to 4"),
        ("train -t rbf two", "-t rbf: must be a code from 0 to 4"),
        ("train -h 2 two", "-h 2: must be 0 or 1"),
        ("train -wx 2 two", "-wx: no whole number after -w"),
        ("train -w1 0 two", "-w1: '0' is not a finite number above 0"),
        ("train -v 1 two", "-v: '1' is not a whole number from 2 to "),
        (
            "train --seed -1 two",
            "--seed: '-1' is not a whole number from 0 to 18446744073709551615",
        ),
        ("train --threads 0 two", "--threads: '0' is not a number of threads"),
        ("train -s 2 -b 1 two", "-b 1: a one-class machine gives no probability estimates"),
        ("train none", "none: No such file or directory"),
        ("train two none/m", "none/m: the folder to write to does not exist"),
        ("train two m --json none/j", "none/j: the folder to write to does not exist"),
        ("train . m", ".: Is a directory"),
        ("train curve", "curve:1: label -3.732 is not a class"),
        ("train -t 4 two", "two:1: a row of a precomputed kernel must have 0:serial"),
        ("train gram", "gram:1: index 0 is below 1"),
        ("train same", "same: every row has the label 1: classification needs two classes"),
        ("train -v 2 same", "same: every row has the label 1: classification needs two classes"),
        ("train bad", "bad:2: token "),
        ("train -t 4 serial", "serial: serial number 3 has no kernel values: the rows end at 2"),
        ("train -s 1 -n 0.9 two", "two: specified nu is infeasible"),
        ("predict two", "expected TEST MODEL OUTPUT, got 1 names"),
        ("predict none model out", "none: No such file or directory"),
        ("predict two none out", "none: No such file or directory"),
        ("predict two model none/out", "none/out: the folder to write to does not exist"),
        ("predict two two out", "two:1: unknown key '1'"),
        ("predict -b 1 two model out", "model: the model does not support probability estimates"),
        ("predict two gram.model out", "two:1: a row of a precomputed kernel must have 0:serial"),
        ("predict serial gram.model out", "serial: the model needs the kernel with training row"),
        ("scale", "one FILE is needed, got 0"),
        ("scale -s a -r b two", "-s and -r cannot be used together"),
        ("scale -l 1 -u 0 two", "lower and upper must be finite and ascend, got 1 and 0"),
        ("scale -y 0 x two", "-y: 'x' is not a number"),
        ("scale -r none two", "none: No such file or directory"),
        ("scale -s none/r two", "none/r: the folder to write to does not exist"),
    ],
)
def test_an_error_is_one_line_and_exit_code_two(
    words: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("same").write_text("1 1:1\n1 1:2\n1 1:3\n")
    Path("bad").write_text("1 1:1\n2 x\n")
    Path("serial").write_text("1 0:1 1:1 2:0\n2 0:3 1:0 2:1\n")
    Path("model").write_text(MODELS["two"])
    Path("gram.model").write_text(MODELS["gram -t 4"])
    before = sorted(Path.cwd().iterdir())
    assert refusal(capsys, *words.split()).startswith(reason)
    assert sorted(Path.cwd().iterdir()) == before


def test_an_unknown_command_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit"]) == 2
    assert capsys.readouterr().err.startswith("dpsvm: error: unknown command 'fit'")


def test_a_failed_command_leaves_old_outputs_alone(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("model", "out"):
        Path(name).write_text("old")
    refusal(capsys, "train", "-s", "1", "-n", "0.9", "two", "model")
    refusal(capsys, "predict", "two", "model", "out")
    assert [Path(name).read_text() for name in ("model", "out")] == ["old", "old"]


def test_running_out_of_memory_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(_core, "train", fail)
    assert refusal(capsys, "train", "two") == "out of memory"


def test_progress_is_shown_and_an_interrupt_keeps_the_old_model(folder: Path) -> None:
    pty = pytest.importorskip("pty", reason="needs a POSIX terminal")
    pytest.importorskip("rich")
    slow_data(folder / "slow")
    (folder / "model").write_text("old")
    flags = ["-t", "0", "-c", "1e6", "--json", "facts"]
    terminal, theirs = pty.openpty()
    with start("train", *flags, "slow", "model", stderr=theirs) as process:
        os.close(theirs)
        shown = read_until(terminal, b"iteration")
        process.send_signal(signal.SIGINT)
        shown += read_until(terminal, None)
        assert process.stdout is not None
        assert process.stdout.read() == ""
    os.close(terminal)
    assert process.returncode == 130
    assert shown.endswith(b"dpsvm train: interrupted\r\n")
    assert (folder / "model").read_text() == "old"
    assert not (folder / "facts").exists()


def read_until(terminal: int, word: bytes | None) -> bytes:
    """What is shown up to and with a word, or up to the end."""
    shown = b""
    while word is None or word not in shown:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux's end of file, once the other side is closed
            break
        if not part:
            break
        shown += part
    return shown


@pytest.mark.skipif(os.name != "posix", reason="POSIX pipes")
def test_a_reader_that_leaves_early_ends_the_command_quietly(folder: Path) -> None:
    dump_libsvm(np.random.default_rng(0).normal(size=(20000, 10)), np.ones(20000), "big")
    with start("scale", "big") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 141


@pytest.mark.skipif(os.name != "posix", reason="POSIX pipes")
def test_a_named_pipe_whose_reader_leaves_ends_the_command_quietly(folder: Path) -> None:
    dump_libsvm(np.random.default_rng(0).normal(size=(2000, 20)), np.arange(2000) % 2, "big")
    os.mkfifo("pipe")
    with start("train", "-q", "-e", "1", "big", "pipe") as process:
        with open("pipe", "rb", buffering=0) as reader:
            assert reader.read(8) == b"svm_type"
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 141


@pytest.mark.skipif(os.name != "posix", reason="POSIX descriptors")
@pytest.mark.parametrize(("model", "code"), [("m", 0), ("/dev/stdout", 2)])
def test_standard_output_may_be_closed(model: str, code: int, folder: Path) -> None:
    words = ["train", "-q", "two", model]
    with start(*words, preexec_fn=lambda: os.close(1)) as process:
        assert process.stderr is not None
        told = process.stderr.read()
    assert process.returncode == code
    assert told == ("" if code == 0 else "dpsvm train: error: /dev/stdout: Bad file descriptor\n")


@pytest.mark.skipif(os.name != "posix", reason="POSIX descriptors")
def test_scaled_rows_need_a_standard_output() -> None:
    with start("scale", "-s", "ranges", "two", preexec_fn=lambda: os.close(1)) as process:
        assert process.stderr is not None
        told = process.stderr.read()
    assert process.returncode == 2
    assert told == ("dpsvm scale: error: standard output, where the scaled file goes, is closed\n")
    assert not os.path.exists("ranges")


@pytest.mark.skipif(os.name != "posix", reason="POSIX descriptors")
@pytest.mark.parametrize(("data", "code"), [("two", 0), ("nowhere", 2)])
@pytest.mark.parametrize("closed", [[2], [0, 2]])
def test_standard_error_may_be_closed(data: str, code: int, closed: list[int]) -> None:
    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    with start("train", data, "m", preexec_fn=close) as process:
        assert process.stdout is not None
        said = process.stdout.read()
    assert process.returncode == code
    assert ("Total nSV" in said) == os.path.exists("m") == (code == 0)
    assert "error" not in said


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_full_disk_is_told_with_the_name_of_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "model").write_text(MODELS["two"])
    for words in (
        "train -q two /dev/full",
        "train -q two m --json /dev/full",
        "predict -q two model /dev/full",
        "scale two -s /dev/full",
    ):
        assert refusal(capsys, *words.split()) == "/dev/full: No space left on device"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
@pytest.mark.parametrize(("words", "code"), [("train nowhere", 2), ("train -s 0 two m", 0)])
def test_the_exit_code_tells_where_standard_error_cannot(words: str, code: int) -> None:
    with (
        open("/dev/full", "w") as full,
        start(*words.split(), stdout=subprocess.DEVNULL, stderr=full) as process,
    ):
        assert process.wait() == code


def test_a_file_to_write_has_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(capsys, "train", "two", "") == "the name of a file to write is empty"


def test_there_is_no_progress_without_a_terminal() -> None:
    with solver_progress() as monitor:
        assert monitor is None
