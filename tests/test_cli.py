"""The command line: LIBSVM's flags, LIBSVM's lines, and one line for every error."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from libsvm_tools import GOLDEN, assert_same_text, needs_libsvm, run_tool

from dpsvm import _core
from dpsvm.cli import main
from dpsvm.cli.options import Flag, UsageError, parse
from dpsvm.cli.train_flags import DPSVM_FLAGS, LIBSVM_FLAGS
from dpsvm.data import dump_libsvm
from dpsvm.progress import solver_progress
from dpsvm.svm.model import Model
from dpsvm.svm.parameters import BY_FLAG

TRAINED = [case for case in GOLDEN["train"] if "model" in case]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with the data of the golden cases."""
    monkeypatch.chdir(tmp_path)
    for name, text in GOLDEN["data"].items():
        (tmp_path / name).write_text(text)
    return tmp_path


def failure(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line a command fails with."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"dpsvm {words[0]}: error: ")
    assert err.count("\n") == 1
    return err.split("error: ", 1)[1].rstrip("\n")


def command(*words: str, **options: Any) -> subprocess.Popen[str]:
    root = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.Popen(
        [sys.executable, "-m", "dpsvm", *words], text=True, env=environment, **options
    )


def slow_data(path: Path) -> None:
    """A problem that takes minutes: pure noise with a hard margin."""
    random = np.random.default_rng(0)
    dump_libsvm(random.normal(size=(4000, 30)), np.where(random.random(4000) < 0.5, 1, -1), path)


# What LIBSVM prints


@pytest.mark.parametrize("case", GOLDEN["train"], ids=lambda case: case["case"])
def test_training_prints_what_svm_train_printed(
    case: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    name, *flags = case["case"].split()
    assert main(["train", *flags, name, "model"]) == 0
    assert_same_text(capsys.readouterr().out.splitlines(), case["train"], tolerance=1e-5)


@pytest.mark.parametrize("case", TRAINED, ids=lambda case: case["case"])
def test_our_model_has_the_header_of_libsvms(case: dict[str, Any]) -> None:
    name, *flags = case["case"].split()
    main(["train", "-q", *flags, name, "model"])
    ours = Path("model").read_text().split("SV\n")[0].splitlines()
    theirs = case["model"].split("SV\n")[0].splitlines()
    assert_same_text(ours, theirs, tolerance=1e-5)


@pytest.mark.parametrize("case", TRAINED, ids=lambda case: case["case"])
def test_prediction_with_libsvms_model_prints_and_writes_what_svm_predict_did(
    case: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    name, *flags = case["case"].split()
    Path("model").write_text(case["model"])
    probability = ["-b", "1"] if "-b" in flags else []
    assert main(["predict", *probability, name, "model", "out"]) == 0
    assert_same_text(capsys.readouterr().out.splitlines(), case["predict"], tolerance=1e-6)
    assert_same_text(Path("out").read_text().splitlines(), case["output"], tolerance=1e-6)


@pytest.mark.parametrize("case", GOLDEN["scale"], ids=lambda case: case["case"])
def test_scaling_prints_and_saves_what_svm_scale_did(
    case: dict[str, Any], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    name, *flags = case["case"].split()
    assert main(["scale", *flags, "-s", "range", name]) == 0
    assert capfdbinary.readouterr().out.decode().splitlines() == case["printed"]
    assert Path("range").read_text() == case["range"]
    assert main(["scale", "-r", "range", name]) == 0
    assert capfdbinary.readouterr().out.decode().splitlines() == case["printed"]


@needs_libsvm
@pytest.mark.parametrize("case", TRAINED, ids=lambda case: case["case"])
def test_svm_predict_gives_the_same_with_our_model(case: dict[str, Any], folder: Path) -> None:
    name, *flags = case["case"].split()
    probability = ["-b", "1"] if "-b" in flags else []
    main(["train", "-q", *flags, name, "model"])
    main(["predict", "-q", *probability, name, "model", "ours"])
    run_tool("svm-predict", *probability, name, "model", "theirs", folder=folder)
    ours, theirs = (Path(path).read_text().splitlines() for path in ("ours", "theirs"))
    assert_same_text(ours, theirs, tolerance=1e-6)


@needs_libsvm
def test_the_golden_file_is_what_its_generator_writes_today() -> None:
    sys.path.insert(0, str(Path(__file__).parent / "golden"))
    try:
        import make_libsvm_golden as generator
    finally:
        sys.path.pop(0)
    assert generator.make_data() == GOLDEN["data"]
    assert [case["case"] for case in GOLDEN["train"]] == list(generator.TRAIN_CASES)
    cases = [generator.train_case(Path.cwd(), case) for case in generator.TRAIN_CASES[:3]]
    assert cases == GOLDEN["train"][:3]


# What LIBSVM has not


def test_quiet_training_and_prediction_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "-q", "-b", "1", "three", "model"]) == 0
    assert main(["predict", "-q", "-b", "1", "three", "model", "out"]) == 0
    assert capfd.readouterr() == ("", "")


def test_the_result_of_cross_validation_is_printed_even_when_quiet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["train", "-q", "-v", "5", "two"]) == 0
    assert capsys.readouterr().out == "Cross Validation Accuracy = 70%\n"
    assert not Path("two.model").exists()


def test_the_model_is_named_after_the_data_and_put_in_the_current_folder() -> None:
    Path("elsewhere").mkdir()
    Path("two").rename("elsewhere/two")
    assert main(["train", "-q", "elsewhere/two"]) == 0
    assert Model.load("two.model").labels is not None


def test_another_seed_gives_other_folds(capsys: pytest.CaptureFixture[str]) -> None:
    def residual_scale(*flags: str) -> str:
        main(["train", "-s", "3", "-b", "1", *flags, "curve", "model"])
        return next(line for line in capsys.readouterr().out.splitlines() if "Laplace" in line)

    assert residual_scale("--seed", "1") == residual_scale() != residual_scale("--seed=2")


def test_json_holds_the_parameters_reports_and_versions() -> None:
    assert main(["train", "-q", "-c", "4", "-w9", "2", "three", "m", "--json", "facts"]) == 0
    facts = json.loads(Path("facts").read_text())
    assert facts["parameters"]["C"] == 4.0
    assert facts["parameters"]["gamma"] == pytest.approx(1 / 3)
    assert facts["parameters"]["class_weight"] == {"9": 2.0}
    assert facts["parameters"]["max_iter"] == 10**7
    assert facts["data"] == {"file": "three", "rows": 48, "features": 3}
    assert [problem["classes"] for problem in facts["problems"]] == [[5, -2], [5, 9], [-2, 9]]
    assert {problem["stop_reason"] for problem in facts["problems"]} == {"stationary"}
    assert all(problem["gap"] < 1e-3 for problem in facts["problems"])
    assert facts["outcome"]["labels"] == [5, -2, 9]
    assert facts["versions"].keys() >= {"dpsvm", "python", "numpy", "scipy"}


def test_json_tells_the_problems_of_the_model_from_those_of_its_probabilities() -> None:
    main(["train", "-q", "-b", "1", "two", "m", "--json", "facts"])
    purposes = [problem["purpose"] for problem in json.loads(Path("facts").read_text())["problems"]]
    assert purposes == ["probability"] * 5 + ["model"]


def test_dpwss_warns_once_that_it_gives_no_privacy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "-q", "--selector", "dpwss", "--seed", "1", "two", "m"]) == 0
    err = capsys.readouterr().err
    assert err.count("no privacy guarantee") == 1
    assert err.startswith("dpsvm train: warning: ")


def test_dpwss_repeats_itself_with_a_seed_and_tells_how_it_stopped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ["--selector", "dpwss", "--sigma", "0.7", "--selection-epsilon", "0.5", "-h", "0"]
    models = []
    for seed in ("1", "1", "2"):
        main(["train", "-q", *flags, "--seed", seed, "two", "m", "--json", "facts"])
        models.append(Path("m").read_bytes())
    assert models[0] == models[1] != models[2]
    [problem] = json.loads(Path("facts").read_text())["problems"]
    assert problem["n_selections"] > 0
    if problem["stop_reason"] == "exhausted":
        assert "ran out of pairs" in capsys.readouterr().err


def test_reaching_the_iteration_limit_is_told_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["train", "-q", "--max-iter", "3", "three", "m"]) == 0
    warning = "3 of 3 problems stopped at the iteration limit"
    assert warning in capsys.readouterr().err


def test_reaching_the_time_limit_is_told_on_standard_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow_data(folder / "slow")
    assert main(["train", "-q", "-c", "1e6", "--time-limit", "1e-6", "slow", "m"]) == 0
    assert "1 of 1 problems stopped at the time limit" in capsys.readouterr().err


def test_a_weight_for_an_absent_label_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "-q", "-w7", "2", "two", "m"]) == 0
    assert "class label 7 specified in weight is not found" in capsys.readouterr().err


def test_threads_do_not_change_the_model() -> None:
    for threads in ("1", "4"):
        main(["train", "-q", "-b", "1", "--threads", threads, "three", f"m{threads}"])
    assert Path("m1").read_bytes() == Path("m4").read_bytes()


def test_data_and_models_may_be_compressed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.gz").write_bytes(gzip.compress(Path("two").read_bytes()))
    assert main(["train", "-q", "two.gz", "m.xz"]) == 0
    assert main(["predict", "two.gz", "m.xz", "out"]) == 0
    assert capsys.readouterr().out == "Accuracy = 80% (32/40) (classification)\n"


def test_the_golden_scaling_warns_of_lost_sparsity_and_unseen_features(
    capfd: pytest.CaptureFixture[str],
) -> None:
    Path("sparse").write_text("1 1:1\n2 2:3\n3 3:2\n")
    assert main(["scale", "-s", "range", "sparse"]) == 0
    assert "original #nonzeros 3 > new #nonzeros 9" in capfd.readouterr().err
    Path("more").write_text("1 1:1 4:1\n2 1:2\n")
    assert main(["scale", "-r", "range", "more"]) == 0
    assert "range has no range for feature 4" in capfd.readouterr().err


# Help


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help_names_every_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in ("train", "predict", "scale"))


def test_help_of_train_shows_every_flag_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {flag} " in out for flag in BY_FLAG)
    assert "-wi weight" in out
    assert max(map(len, out.splitlines())) <= 110


def test_every_row_of_the_table_with_a_flag_is_taken_by_train() -> None:
    taken = {flag.spelling for flag in LIBSVM_FLAGS + DPSVM_FLAGS}
    assert set(BY_FLAG) <= taken


@pytest.mark.parametrize("name", ["predict", "scale"])
def test_help_of_the_other_commands_shows_usage(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: dpsvm {name} ")


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("dpsvm 0.")


# The syntax of flags


def test_flags_may_follow_file_names_and_two_dashes_end_them() -> None:
    flags = [Flag("-q", "quiet", ""), Flag("--json", "json", "", ("file",), str)]
    values, operands = parse(["data", "-q", "--json=facts", "--", "-model"], flags)
    assert values == {"quiet": True, "json": "facts"}
    assert operands == ["data", "-model"]


def test_a_value_may_look_like_a_flag() -> None:
    values, _ = parse(["-r", "-3"], LIBSVM_FLAGS)
    assert values["coef0"] == -3.0


def test_a_flag_without_its_value_says_what_is_missing() -> None:
    with pytest.raises(UsageError, match="-y must be followed by lower upper"):
        parse(["-y", "1"], [Flag("-y", "y", "", ("lower", "upper"), float)])


# Errors: one line, exit code 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("train", "FILE is missing (usage: dpsvm train [flags] FILE [MODEL])"),
        ("train a b c", "unexpected 'c' (usage: dpsvm train [flags] FILE [MODEL])"),
        ("train -z 1 two", "unknown flag -z"),
        ("train two -c", "-c must be followed by cost"),
        ("train -c much two", "-c much: not a number"),
        ("train -c -1 two", "-c -1: C must be a float in the range (0.0, inf], got -1.0"),
        ("train -c nan two", "-c nan: C must be a float in the range (0.0, inf], got nan"),
        ("train -s 5 two", "-s 5: machine must be a code from 0 to 4"),
        ("train -t rbf two", "-t rbf: kernel must be a code from 0 to 4"),
        ("train -h 2 two", "-h 2: must be 0 or 1"),
        ("train -wx 2 two", "-wx: no whole number after -w"),
        ("train -w1 0 two", "-w1: '0' is not a positive number"),
        ("train -v 1 two", "-v: '1' is not a whole number from 2 on"),
        ("train --seed -1 two", "--seed: '-1' is not a whole number from 0 to 2^64 - 1"),
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
        ("scale", "expected one FILE, got 0"),
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
    models = {case["case"]: case["model"] for case in TRAINED}
    Path("model").write_text(models["two"])
    Path("gram.model").write_text(models["gram -t 4"])
    before = sorted(Path.cwd().iterdir())
    assert failure(capsys, *words.split()).startswith(reason)
    assert sorted(Path.cwd().iterdir()) == before


def test_an_unknown_command_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit"]) == 2
    assert capsys.readouterr().err.startswith("dpsvm: error: unknown command 'fit'")


def test_a_failed_command_leaves_old_outputs_alone(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("model", "out"):
        Path(name).write_text("old")
    failure(capsys, "train", "-s", "1", "-n", "0.9", "two", "model")
    failure(capsys, "predict", "two", "model", "out")
    assert [Path(name).read_text() for name in ("model", "out")] == ["old", "old"]


def test_running_out_of_memory_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(_core, "train", fail)
    assert failure(capsys, "train", "two") == "out of memory"


# Signals and pipes


def test_progress_is_shown_and_an_interrupt_keeps_the_old_model(folder: Path) -> None:
    pty = pytest.importorskip("pty", reason="needs a POSIX terminal")
    pytest.importorskip("rich")
    slow_data(folder / "slow")
    (folder / "model").write_text("old")
    flags = ["-t", "0", "-c", "1e6", "--json", "facts"]
    terminal, theirs = pty.openpty()
    pipes = {"stdout": subprocess.PIPE, "stderr": theirs}
    with command("train", *flags, "slow", "model", **pipes) as process:
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
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with command("scale", "big", **pipes) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_there_is_no_progress_without_a_terminal() -> None:
    with solver_progress() as monitor:
        assert monitor is None
