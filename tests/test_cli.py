"""The command line: LIBSVM's flags, LIBSVM's lines, and one line for every error."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from libsvm_tools import (
    GOLDEN,
    assert_same_text,
    needs_libsvm,
    run_tool,
    slow_data,
    write_data,
)

from dpsvm._result import Report
from dpsvm.cli import main, programs
from dpsvm.cli.log import Log
from dpsvm.cli.options import Flag, UsageError, parse
from dpsvm.cli.train_flags import DPSVM_FLAGS, LIBSVM_FLAGS
from dpsvm.svm.model import Model
from dpsvm.svm.parameters import BY_FLAG

TRAINED = [case for case in GOLDEN["train"] if "model" in case]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with the data of the golden cases."""
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    return tmp_path


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


def test_an_offset_of_zero_has_no_sign(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mirrored").write_text("1 1:0.5 2:5\n-1 1:-0.5 2:-5\n")
    assert main(["train", "mirrored", "model"]) == 0
    assert "rho = 0.000000\n" in capsys.readouterr().out  # as svm-train prints
    assert "rho 0\n" in Path("model").read_text()


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


@needs_libsvm
@pytest.mark.parametrize("name", ["train", "predict", "scale"])
def test_help_lists_what_libsvms_lists(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = subprocess.run([f"svm-{name}"], capture_output=True, text=True, check=False).stdout
    flags = re.findall(r"^(-[a-z]+)", theirs, re.MULTILINE)
    assert len(flags) >= 2
    assert main([name, "--help"]) == 0
    ours = capsys.readouterr().out
    for flag in flags:
        assert re.search(rf"^  {flag}\b", ours, re.MULTILINE), flag
    for kind in re.findall(r"\((.*classification|regression)\)", theirs):
        assert kind in ours


@pytest.mark.parametrize("flags", ["", "-c 1000", "-c 1000 -h 0", "-s 1 -n 0.25 -e 1e-6"])
def test_dots_and_stars_come_as_the_solver_makes_them(
    flags: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *flags.split(), "two", "m"]) == 0
    marks, finished, *_ = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"[.*]*\*", marks)
    iterations = int(finished.rpartition(" ")[2])
    assert marks.count(".") >= iterations // 40  # an attempt to shrink every 40 of 40 variables


def test_the_dots_of_a_lone_problem_are_printed_once_and_of_others_at_their_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = Log("c-svc", quiet=False)
    for marks in ("..", "..*."):
        assert not log.progress({"problems": 1, "marks": marks})
    log.progress({"problems": 3, "marks": "unseen"})
    assert capsys.readouterr().out == "..*."
    facts = {"iterations": 3, "objective": -1.0, "rho": 0.0, "gap": 0.0, "stop_reason": "max_iter"}
    log.solved(Report(marks="..*..*", **facts), None, "model")
    assert capsys.readouterr().out.startswith(".*\noptimization finished, #iter = 3\n")
    log.solved(Report(marks="*", **facts), None, "model")
    assert capsys.readouterr().out.startswith("*\noptimization finished")


@pytest.mark.skipif(os.name != "posix", reason="POSIX descriptors")
def test_a_model_goes_to_standard_output_and_comes_from_a_pipe(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert main(["train", "-q", "two", "model"]) == 0
    assert main(["train", "-q", "two", "/dev/stdout"]) == 0
    text = capfdbinary.readouterr().out
    assert text == Path("model").read_bytes()
    ends = [os.pipe(), os.pipe()]
    for (_, end), content in zip(ends, (Path("two").read_bytes(), text), strict=True):
        os.write(end, content)  # less than a pipe holds
        os.close(end)
    data, model = (f"/dev/fd/{end}" for end, _ in ends)
    assert main(["predict", data, model, "out"]) == 0
    for end, _ in ends:
        os.close(end)
    main(["predict", "-q", "two", "model", "expected"])
    assert Path("out").read_bytes() == Path("expected").read_bytes()


@pytest.mark.parametrize("name", ["train", "predict", "scale"])
def test_each_program_is_its_command(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [f"dpsvm-{name}", "--help"])
    assert getattr(programs, name)() == 0
    assert capsys.readouterr().out.startswith(f"usage: dpsvm {name} ")
    monkeypatch.setattr(sys, "argv", [f"dpsvm-{name}"])
    assert getattr(programs, name)() == 2
    assert "--help" in capsys.readouterr().err


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


def test_flags_may_follow_file_names_and_two_dashes_end_them() -> None:
    flags = [Flag("-q", "", name="quiet"), Flag("--json", "", "file", str)]
    values, operands = parse(["data", "-q", "--json=facts", "--", "-model"], flags)
    assert values == {"quiet": True, "json": "facts"}
    assert operands == ["data", "-model"]


def test_a_value_may_look_like_a_flag() -> None:
    values, _ = parse(["-r", "-3"], LIBSVM_FLAGS)
    assert values["coef0"] == -3.0


def test_a_flag_without_its_value_says_what_is_missing() -> None:
    with pytest.raises(UsageError, match="-y must be followed by lower upper"):
        parse(["-y", "1"], [Flag("-y", "", "lower upper", float)])
